#!/usr/bin/env python3
"""mlops_test.py: a pipeline's own code, in Python through the C library, tells a real server and asks it; in a file while
there is none."""
import math
import os
import pathlib
import random
import sys
import unittest

from harness import WEIR, Server, small_model, wait_until

BUILD = pathlib.Path(WEIR).resolve().parent.parent
os.environ["WEIR_MLOPS_LIBRARY"] = str(BUILD / "src/mlops/libweir_mlops.so.0")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "src/mlops"))
import weir_mlops  # noqa: E402

class Mlops(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--cpu-slots", "4").start()
        cls.addClassCleanup(cls.server.stop)
        cls.server.post("/datasets", {"name": "staff"})
        cls.server.post("/ions", {"name": "door", "pipelines": [
            {"name": "learn", "type": "training", "dataset": "staff", "model": "face-embed"}], "links": []})
        cls.token = (cls.server.state / "admin.token").read_text().strip()

    def open(self, **more):
        return weir_mlops.open(server=self.server.url, token=self.token, ion="door", **more)

    def statistics(self, name):
        return self.server.get(f"/ions/door/statistics?name={name}")["items"]

    def test_what_is_told_is_what_the_server_says(self):
        dice = random.Random(5)
        values = [dice.gauss(0, 1) for _ in range(1000)] + [math.nan]
        with self.open(pipeline="learn") as mlops:
            self.assertTrue(mlops.has_server)
            self.assertTrue(mlops.kpi("parcels", 120.5, "1/h"))
            self.assertTrue(mlops.bars("by-door", ["north", "south"], [12, 7]))
            self.assertTrue(mlops.table("t", ["a", "b"], [[1, "x"], [2, None]]))
            self.assertTrue(mlops.graph("g", [1, 2], up=[3, 4]))
            self.assertTrue(mlops.heat_map("h", ["r"], ["c"], [[1]]))
            self.assertTrue(mlops.lines("l", a=1, b=2))
            self.assertTrue(mlops.distribution("weight", values))
            self.assertTrue(mlops.alert("data", "fog", message="grey"))
            self.assertEqual(mlops.flush(20), 0, mlops.error)
            self.assertEqual(mlops.error, "")
            self.assertEqual([one["name"] for one in mlops.statistics("door", "l")], ["l"])
        self.assertEqual(self.server.get("/ions/door/kpis")["items"][0]["value"], 120.5)
        self.assertEqual(self.statistics("by-door")[0]["value"], {"labels": ["north", "south"], "values": [12, 7]})
        self.assertEqual(self.statistics("by-door")[0]["pipeline"], "learn")
        weight = self.statistics("weight")[0]["value"]
        self.assertEqual(sum(weight["counts"]), 1000)
        inner = [sum(1 for v in values if a <= v < b) for a, b in zip(weight["edges"][1:12], weight["edges"][2:13])]
        self.assertEqual(weight["counts"][1:12], inner)
        alerts = self.server.get("/alerts?kind=told")["items"]
        self.assertEqual([one["state"] for one in alerts], ["open"])
        with self.open() as mlops:
            mlops.alert("data", "fog", is_healthy=True)
        self.assertEqual([one["state"] for one in self.server.get("/alerts?kind=told")["items"]], ["resolved"])

    def test_what_the_server_refuses_is_lost_alone_and_said(self):
        mlops = self.open()
        for i in range(20):
            mlops.statistic("some", "number" if i != 7 else "pie", i)
        self.assertEqual(mlops.flush(20), 0)
        self.assertIn("no kind of statistic", mlops.error)
        self.assertEqual(mlops.close(), 1)
        self.assertIn("no kind of statistic", mlops.error)
        self.assertEqual(mlops.close(), 0)
        self.assertEqual(sorted(one["value"] for one in self.statistics("some")), [i for i in range(20) if i != 7])

    def test_a_file_is_told_later_and_twice_changes_nothing(self):
        file = self.server.root / "told.jsonl"
        # An address at which nobody listens stands for no server.
        with weir_mlops.open(server="http://127.0.0.1:1", token="x", file=file) as mlops:
            self.assertFalse(mlops.number("later", 1), "an ION must be named to a server")
        mlops = weir_mlops.open(server="http://127.0.0.1:1", token="x", ion="door", file=file)
        for i in range(5):
            self.assertTrue(mlops.number("later", i))
        self.assertEqual(mlops.close(0.1), 0)
        self.assertEqual(len(file.read_text().splitlines()), 5)
        for _ in range(2):
            with self.open() as mlops:
                self.assertEqual(mlops.send_file(file), 5, mlops.error)
        self.assertEqual(sorted(one["value"] for one in self.statistics("later")), [0, 1, 2, 3, 4])
        with file.open("a") as out:
            out.write('{"path": "/api/v1/ions/door/st')
        with self.open() as mlops:
            self.assertEqual(mlops.send_file(file), 5)
            self.assertIn("line 6", mlops.error)

    def test_a_model_is_registered_and_a_wrong_file_is_not(self):
        file = self.server.root / "y.onnx"
        file.write_bytes(small_model())
        (self.server.root / "none.onnx").write_bytes(b"hello")
        with self.open() as mlops:
            self.assertEqual(mlops.publish_model("ours", file, metrics={"accuracy": 0.5}), 1, mlops.error)
            self.assertIsNone(mlops.publish_model("ours", self.server.root / "none.onnx"))
            self.assertNotEqual(mlops.error, "")
            self.assertIsNone(mlops.last_approved_model(self.server.root / "got"))
            self.assertIn("no model of ion", mlops.error)
        version = self.server.get("/models/ours/versions/1")
        self.assertEqual(version["metrics"], {"accuracy": 0.5})

    def test_the_approved_model_is_fetched(self):
        file = self.server.root / "first.onnx"
        file.write_bytes(small_model("first", (None, 3, 2, 2)))
        rule = self.server.root / "rule.json"
        rule.write_text('{"width": 2, "height": 2, "mean": [0, 0, 0], "std": [1, 1, 1], "output_kind": "embedding"}')
        self.server.weir("model", "push", "chosen", str(file), "--preprocess", str(rule))
        self.server.post("/ions", {"name": "gate", "pipelines": [
            {"name": "see", "type": "prediction", "source": {"kind": "http"}, "gallery": {"dataset": "staff"}}],
            "links": [{"from": {"model": "chosen"}, "to": "see", "policy": "always-update"}]})
        with weir_mlops.open(server=self.server.url, token=self.token, ion="gate") as mlops:
            got = self.server.root / "got.onnx"
            wait_until(lambda: mlops.last_approved_model(got) == 1, 20, "the approved model")
            self.assertEqual(got.read_bytes(), file.read_bytes())


if __name__ == "__main__":
    unittest.main(verbosity=2)

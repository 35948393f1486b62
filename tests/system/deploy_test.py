#!/usr/bin/env python3
"""deploy_test.py: any model, served: pushed, deployed, asked by command and by plain HTTP; shares, no replica and back,
a replica killed under requests, and an end."""
import hashlib
import json
import os
import random
import signal
import sqlite3
import struct
import subprocess
import threading
import time
import unittest
import urllib.error
import urllib.request
import zlib

import harness
from harness import WEIR, HttpError, Server, small_model, wait_until

SIDE = 16


def grey_png(pixels):
    """SIDE x SIDE grey pixels as a PNG."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + bytes(pixels[y * SIDE:(y + 1) * SIDE]) for y in range(SIDE))
    head = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def stripes(name, seed):
    """Bars stand, stripes lie."""
    dice = random.Random(f"{name} {seed}")
    phase, period = dice.randint(0, 4), dice.randint(4, 6)
    return [200 if ((x if name == "bars" else y) + phase) % period < 2 else dice.randint(20, 60)
            for y in range(SIDE) for x in range(SIDE)]


class Deployments(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--cpu-slots", "8").start()
        cls.addClassCleanup(cls.server.stop)
        cls.dir = cls.server.root
        cls.environment = {**os.environ, "WEIR_STATE": str(cls.server.state)}

    def tearDown(self):
        for one in self.server.get("/deployments")["items"]:
            self.server.request("DELETE", f"/api/v1/deployments/{one['name']}")

    def weir(self, *words, status=0):
        done = subprocess.run([WEIR, *words], capture_output=True, text=True, timeout=120, cwd=self.dir, env=self.environment)
        if status is not None:
            self.assertEqual(done.returncode, status, f"weir {words}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def push(self, name, output="y", *words, status=0):
        (self.dir / f"{output}.onnx").write_bytes(small_model(output, (None, 4)))
        return self.weir("model", "push", name, f"{output}.onnx", *words, status=status)

    def infer(self, name, values=(1, 2, 3, 4)):
        body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 4], "data": list(values)}]}
        return self.server.request("POST", f"/v2/models/{name}/infer", body)

    def deployment(self, name):
        return self.server.get(f"/deployments/{name}")

    def test_what_is_no_model_becomes_no_version(self):
        (self.dir / "five.onnx").write_bytes(b"hello")
        self.assertIn("neither a model that Weir trained", self.weir("model", "push", "five", "five.onnx", status=2))
        with open(self.dir / "zeros.onnx", "wb") as file:
            file.truncate(2 << 30)
        began = time.monotonic()
        self.assertIn("neither a model that Weir trained", self.weir("model", "push", "five", "zeros.onnx", status=2))
        self.assertLess(time.monotonic() - began, 5)  # nothing was read, nothing was sent
        with self.assertRaises(HttpError) as caught:  # a client that sends them all the same
            self.server.request("PUT", f"/api/v1/blobs/{hashlib.sha256(bytes(64 << 20)).hexdigest()}?as=model", bytes(64 << 20))
        self.assertEqual(caught.exception.code, 400)
        self.assertEqual([file for file in (self.server.state / "uploads").iterdir() if file.is_file()], [])
        self.assertIn("there is no model", self.weir("deploy", "five", status=4))

    def golden(self, expected):
        def tensor(name, data):
            return {"name": name, "datatype": "FP32", "shape": [1, 4], "data": data}
        return json.dumps({"inputs": [tensor("x", [1, 2, 3, 4])], "outputs": [tensor("y", expected)]}).encode()

    def test_a_version_that_fails_its_golden_inputs_takes_no_traffic(self):
        (self.dir / "right.json").write_bytes(self.golden([2, 3, 4, 5]))
        (self.dir / "wrong.json").write_bytes(self.golden([2, 3, 4, 9]))
        self.assertIn("element 3 of 'y' is 5, expected 9", self.push("checked", "y", "--golden", "wrong.json", status=3))
        self.assertIn("golden   checked", self.push("checked", "y", "--golden", "right.json"))
        self.assertIn("SERVING", self.weir("deploy", "checked@v1"))
        # What passes here may fail on another processor: the replica says so, and the traffic stays as it was.
        self.push("checked", "y")
        wrong = hashlib.sha256(self.golden([2, 3, 4, 9])).hexdigest()
        self.server.request("PUT", f"/api/v1/blobs/{wrong}", self.golden([2, 3, 4, 9]))
        with sqlite3.connect(self.server.state / "weir.db", timeout=10) as base:
            base.execute("UPDATE model_versions SET golden = ? WHERE model = 'checked' AND version = 2", (wrong,))
        self.assertIn("element 3 of 'y' is 5, expected 9", self.weir("deploy", "checked@v2", status=None))
        self.assertEqual(self.infer("checked")["model_version"], "1")
        v2, = [one for one in self.deployment("checked")["versions"] if one["version"] == 2]
        self.assertEqual(v2["live_percent"], 0)

    def test_a_model_from_outside_answers_and_is_taken_away(self):
        said = self.push("adder", "y", "--alias", "stable")
        self.assertIn("run by onnx", said)
        self.assertIn("x FP32[-1,4]", said)
        self.assertIn("sums is SERVING: traffic v1=100", self.weir("deploy", "adder@stable", "--as", "sums"))
        self.assertIn("the processor", self.weir("describe", "deployment", "sums"))
        answer = self.infer("sums")
        self.assertEqual(answer["outputs"][0]["data"], [2, 3, 4, 5])
        self.assertEqual(answer["model_version"], "1")
        (self.dir / "q.json").write_text(json.dumps(
            {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 1, 1, 1]}]}))
        self.assertIn("y FP32[1,4] 2 2 2 2", self.weir("predict", "sums", "q.json"))
        self.assertIn("sums", self.weir("get", "versions", "adder"))
        self.weir("undeploy", "sums")
        with self.assertRaises(HttpError) as caught:
            wait_until(lambda: not self.infer("sums"), 5, "the end of the deployment")
        self.assertEqual(caught.exception.code, 404)
        wait_until(lambda: all(job["state"] == "CANCELLED" for job in self.server.get("/jobs?kind=serve")["items"]
                               if job["name"].startswith("sums-")), 30, "the end of its replicas")

    def picture_of(self, *shape):
        data = list(range(shape[0] * shape[1] * shape[2] * shape[3]))
        body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": list(shape), "data": data}]}
        output, = self.server.request("POST", "/v2/models/detector/infer", body)["outputs"]
        self.assertEqual((output["shape"], output["data"]), (list(shape), [value + 1 for value in data]))

    def test_an_input_has_the_shape_that_was_said_at_push(self):
        (self.dir / "fixed.onnx").write_bytes(small_model("y", (10, 3, 8, 8)))
        said = self.weir("model", "push", "detector", "fixed.onnx")
        self.assertIn('pushed with --input "x=N,3,H,W" it may take others', said)
        for shape, why in (("3,H,W", "has 4 dimensions, and its shape was said with 3"), ("N,3,-1,W", "expected up to 8 numbers and names")):
            self.assertIn(why, self.weir("model", "push", "detector", "fixed.onnx", "--input", f"x={shape}", status=2))
        self.assertIn("it has no input \"z\", but x", self.weir("model", "push", "detector", "fixed.onnx", "--input", "z=N,3,H,W", status=2))
        said = self.weir("model", "push", "detector", "fixed.onnx", "--input", "x=N,3,H,W")
        self.assertIn("x FP32[-1,3,-1,-1]", said)
        self.assertIn("y FP32[-1,3,-1,-1]", said)
        self.assertIn("shapes that were said", said)
        self.weir("deploy", "detector")
        for side in range(1, 12):  # more sizes than plans are kept
            self.picture_of(1 + side % 2, 3, side, 2 * side)
        with self.assertRaises(HttpError) as caught:
            self.picture_of(1, 4, 8, 8)
        self.assertEqual(caught.exception.code, 400)

    def test_shares_are_those_that_were_asked_for_and_none_fails_while_they_change(self):
        self.push("pair", "y")
        self.push("pair", "z", "--alias", "canary")
        self.weir("deploy", "pair@v1", "--cpus", "1", "--max-delay", "0ms")
        self.weir("deploy", "pair", "--traffic", "v1=75,canary=25")
        counts = {"1": 0, "2": 0}
        for _ in range(400):
            counts[self.infer("pair")["model_version"]] += 1
        self.assertTrue(60 <= counts["2"] <= 140, counts)
        failures, is_over = [], threading.Event()

        def ask():
            while not is_over.is_set():
                try:
                    self.infer("pair")
                except Exception as error:  # whatever it is, it is a failure
                    failures.append(error)

        asker = threading.Thread(target=ask)
        asker.start()
        for percent in (10, 90, 100, 50, 1, 99) * 3:
            share = "v1=100" if percent == 100 else f"v1={percent},v2={100 - percent}"
            self.server.request("PUT", "/api/v1/deployments/pair", {"traffic": share})
        is_over.set()
        asker.join()
        self.assertEqual(failures, [])
        self.assertIn("must sum to 100", self.weir("deploy", "pair", "--traffic", "v1=50", status=2))
        self.assertIn("there are v2, v1", self.weir("deploy", "pair@v7", status=4))

    def test_it_goes_down_to_no_replica_and_the_next_request_starts_one(self):
        self.push("rare")
        self.weir("deploy", "rare", "--replicas", "0..1", "--idle-after", "1s")
        wait_until(lambda: self.deployment("rare")["state"] == "IDLE" and not self.deployment("rare")["replicas"], 30,
                   "no replica")
        began = time.monotonic()
        self.assertEqual(self.infer("rare")["outputs"][0]["data"], [2, 3, 4, 5])
        print(f"from no replica to an answer: {time.monotonic() - began:.2f} s")
        self.assertEqual(self.deployment("rare")["n_started"], 2)

    def test_a_killed_replica_is_replaced_and_told(self):
        self.push("frail")
        self.weir("deploy", "frail", "--replicas", "1")
        wait_until(lambda: len(self.server.pids("weir-worker serve")) == 1, 30, "the end of the replicas of other tests")
        pid, = self.server.pids("weir-worker serve")
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: "killed by signal 9" in (self.deployment("frail")["reason"] or ""), 20, "the reason")
        wait_until(lambda: self.deployment("frail")["reason"] is None, 60, "the next process")
        self.assertEqual(self.infer("frail")["outputs"][0]["data"], [2, 3, 4, 5])

    def test_a_classifier_that_weir_trained_takes_pictures(self):
        for name in ("bars", "stripes"):
            for seed in range(30):
                folder = self.dir / "shapes" / name
                folder.mkdir(parents=True, exist_ok=True)
                (folder / f"{seed}.png").write_bytes(grey_png(stripes(name, seed)))
        self.server.post("/datasets", {"name": "shapes", "kind": "folder", "path": str(self.dir / "shapes")})
        self.server.post("/datasets/shapes/versions")
        job = self.server.post("/jobs", {"name": "learn", "kind": "train", "spec": {
            "model": "lenet", "dataset": "shapes", "epochs": 6, "batch_size": 10, "input": f"1,{SIDE},{SIDE}",
            "model_name": "shapes"}})["id"]
        ended = wait_until(lambda: (state := self.server.get(f"/jobs/{job}"))["finished_ms"] and state, 120, "the training")
        self.assertEqual(ended["state"], "SUCCEEDED", ended["reason"])
        signature = self.server.get("/models/shapes/versions/1")["signature"]
        self.assertEqual((signature["format"], signature["executor"], signature["labels"]), ("weir", "weir", ["bars", "stripes"]))
        self.weir("deploy", "shapes")
        for name in ("bars", "stripes"):
            (self.dir / f"{name}.png").write_bytes(grey_png(stripes(name, 1000)))
            table = self.weir("predict", "shapes", f"{name}.png")
            self.assertRegex(table.splitlines()[1], rf"{name}\.png +{name} ", table)
            answer = self.server.request("POST", "/v2/models/shapes/infer", grey_png(stripes(name, 1000)),
                                         headers={"Content-Type": "image/png"})
            self.assertEqual(answer["labels"][0]["label"], name)


if __name__ == "__main__":
    harness.main()

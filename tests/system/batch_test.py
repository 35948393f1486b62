#!/usr/bin/env python3
"""batch_test.py: a whole dataset predicted by a job: by two tasks of which one is killed, in a folder, as CSV; compared with
an undisturbed run byte for byte, with `weir evaluate`, and with what the same model answers when it is served."""
import csv
import hashlib
import json
import os
import random
import signal
import struct
import subprocess
import unittest
import zlib

import harness
from harness import WEIR, Server, small_model, wait_until

SIDE = 16
N_SCANS = 60


def grey_png(pixels, scale=1):
    """SIDE x SIDE grey pixels as a PNG, each pixel a square of `scale`."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b""
    for y in range(SIDE):
        row = b"\0" + b"".join(bytes([value]) * scale for value in pixels[y * SIDE:(y + 1) * SIDE])
        rows += row * scale
    head = struct.pack(">IIBBBBB", SIDE * scale, SIDE * scale, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b"")


def shape(name, seed):
    """Bars stand, stripes lie."""
    dice = random.Random(f"{name} {seed}")
    phase, period = dice.randint(0, 4), dice.randint(4, 6)
    return [200 if ((x if name == "bars" else y) + phase) % period < 2 else dice.randint(20, 60)
            for y in range(SIDE) for x in range(SIDE)]


class Batch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--cpu-slots", "8").start()
        cls.addClassCleanup(cls.server.stop)
        cls.dir = cls.server.root
        cls.environment = {**os.environ, "WEIR_STATE": str(cls.server.state)}
        for name in ("bars", "stripes"):
            for folder, n, scale in (("shapes", 30, 1), ("scans", N_SCANS // 2, 90), ("checks", 40, 1)):
                place = cls.dir / folder / name
                place.mkdir(parents=True)
                for i in range(n):
                    (place / f"{i:03}.png").write_bytes(grey_png(shape(name, f"{folder}{i}"), scale))
        (cls.dir / "scans/bars/007.png").write_bytes(grey_png(shape("bars", 7))[:100])
        (cls.dir / "scans/stripes/011.png").write_bytes(b"no picture at all, \"but\" a text\n")
        for folder in ("shapes", "scans", "checks"):
            cls.server.post("/datasets", {"name": folder, "kind": "folder", "path": str(cls.dir / folder)})
            cls.server.post(f"/datasets/{folder}/versions")
        job = cls.server.post("/jobs", {"name": "learn", "kind": "train", "spec": {
            "model": "lenet", "dataset": "shapes", "epochs": 4, "batch_size": 10, "input": f"1,{SIDE},{SIDE}",
            "model_name": "shapes"}})["id"]
        ended = wait_until(lambda: (state := cls.server.get(f"/jobs/{job}"))["finished_ms"] and state, 120, "the training")
        assert ended["state"] == "SUCCEEDED", ended["reason"]

    def weir(self, *words, status=0):
        done = subprocess.run([WEIR, *words], capture_output=True, text=True, timeout=120, cwd=self.dir, env=self.environment)
        self.assertEqual(done.returncode, status, f"weir {words}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def submit(self, *words):
        return json.loads(self.weir("batch", *words, "-o", "json"))["id"]

    def end_of(self, job):
        return wait_until(lambda: (state := self.server.get(f"/jobs/{job}"))["finished_ms"] and state, 120, "the prediction")

    def fetch(self, job, name):
        ended = self.end_of(job)
        self.assertEqual(ended["state"], "SUCCEEDED", ended["reason"])
        said = self.weir("job", "results", job, "--folder", name)
        self.assertIn("all are there", said)
        return {path.name: path.read_bytes() for path in (self.dir / name).iterdir()}

    @staticmethod
    def rows_of(files):
        return [json.loads(line) for name in sorted(files) if name.startswith("shard-") for line in files[name].splitlines()]

    def test_a_killed_task_changes_no_byte_of_the_results(self):
        whole = self.fetch(self.submit("shapes@v1", "scans", "--shard", "3", "--top", "2", "--name", "whole"), "whole")
        self.assertEqual(len([name for name in whole if name.startswith("shard-")]), N_SCANS // 3)
        job = self.submit("shapes", "scans@v1", "--tasks", "2", "--shard", "3", "--top", "2", "--name", "killed")
        answer = wait_until(lambda: len((now := self.server.get(f"/jobs/{job}/results"))["files"]) >= 4 and now, 60, "some shards")
        self.assertIsNone(answer["manifest"])
        pids = self.server.pids("weir-worker batch-predict")
        self.assertGreaterEqual(len(pids), 1)
        os.kill(pids[0], signal.SIGKILL)
        there = {file["name"] for file in self.server.get(f"/jobs/{job}/results")["files"]}
        self.assertLess(len(there), N_SCANS // 3 + 2)
        killed = self.fetch(job, "killed")
        self.assertGreaterEqual(self.server.get(f"/jobs/{job}")["n_restarts"], 1)
        self.assertEqual(whole, killed)
        manifest = json.loads(whole["manifest.json"])
        self.assertEqual((manifest["n_files"], manifest["n_errors"], manifest["model"], manifest["dataset"]),
                         (N_SCANS, 2, "shapes@v1", "scans@v1"))
        for one in manifest["shards"]:
            self.assertEqual(hashlib.sha256(whole[one["name"]]).hexdigest(), one["sha256"])
        rows = self.rows_of(whole)
        self.assertEqual([row["file"] for row in rows],
                         [f"{name}/{i:03}.png" for name in ("bars", "stripes") for i in range(N_SCANS // 2)])
        self.assertEqual({row["file"] for row in rows if "error" in row}, {"bars/007.png", "stripes/011.png"})
        for row in rows:
            self.assertTrue("error" in row or len(row["top"]) == 2 and row["top"][0]["label"] == row["label"], row)
        metrics = self.server.get(f"/runs/{self.server.get(f'/jobs/{job}')['run']}/metrics?key=shards")["items"]
        self.assertEqual(metrics[-1]["value"], N_SCANS // 3)

    def test_it_says_what_evaluation_and_the_served_model_say(self):
        rows = self.rows_of(self.fetch(self.submit("shapes", "checks", "--tasks", "3", "--shard", "7", "--batch", "4"), "checks-out"))
        self.assertEqual(len(rows), 80)
        self.weir("model", "get", "shapes", "--file", "shapes.safetensors")
        figures = json.loads(self.weir("evaluate", "--weights", "shapes.safetensors", "--data", "checks", "--format", "json"))
        right = sum(row["label"] == row["file"].split("/")[0] for row in rows)
        self.assertAlmostEqual(figures["accuracy"], right / len(rows), places=6)
        self.weir("deploy", "shapes")
        for row in rows[::9]:
            answer = self.server.request("POST", "/v2/models/shapes/infer", (self.dir / "checks" / row["file"]).read_bytes(),
                                         headers={"Content-Type": "image/png"})["labels"][0]
            self.assertEqual(answer["label"], row["label"])
            self.assertAlmostEqual(answer["probability"], row["probability"], places=4)
        self.weir("undeploy", "shapes")

    def test_a_folder_gets_csv_and_no_second_prediction(self):
        folder = self.dir / "out"
        folder.mkdir(mode=0o777)
        folder.chmod(0o777)
        job = self.submit("shapes", "scans", "--format", "csv", "--folder", str(folder), "--shard", "25", "--tasks", "2")
        ended = self.end_of(job)
        self.assertEqual(ended["state"], "SUCCEEDED", ended["reason"])
        self.assertIn(str(folder), self.weir("job", "results", job))
        rows = [row for name in sorted(folder.glob("shard-*.csv")) for row in csv.DictReader(name.read_text().splitlines(True))]
        self.assertEqual(len(rows), N_SCANS)
        self.assertEqual(sum(row["error"] != "" for row in rows), 2)
        self.assertGreater(sum(row["label"] == row["file"].split("/")[0] for row in rows), N_SCANS * 0.9)
        self.assertEqual(json.loads((folder / "manifest.json").read_text())["n_errors"], 2)
        other = self.end_of(self.submit("shapes", "checks", "--format", "csv", "--folder", str(folder)))
        self.assertEqual(other["state"], "FAILED")
        self.assertIn("another batch prediction", other["reason"])

    def test_what_cannot_be_predicted_is_refused_when_it_is_submitted(self):
        (self.dir / "adder.onnx").write_bytes(small_model("y", (None, 4)))
        self.weir("model", "push", "adder", "adder.onnx")
        self.assertIn("takes no picture", self.weir("batch", "adder", "scans", status=7))
        self.assertIn("did you mean \"shapes\"", self.weir("batch", "shape", "scans", status=4))
        self.assertIn("there is v1", self.weir("batch", "shapes@v9", "scans", status=4))
        self.assertIn("did you mean \"scans\"", self.weir("batch", "shapes", "scan", status=4))
        self.assertIn("no version 4", self.weir("batch", "shapes", "scans@v4", status=4))
        self.assertIn("absolute path", self.weir("batch", "shapes", "scans", "--folder", "here", status=2))
        self.assertIn("Weir's own folder", self.weir("batch", "shapes", "scans", "--folder", str(self.server.state), status=2))
        self.assertIn("jsonl", self.weir("batch", "shapes", "scans", "--format", "parquet", status=2))

    def test_a_file_that_changed_since_the_version_is_a_row_that_says_so(self):
        place = self.dir / "moving" / "one"
        place.mkdir(parents=True)
        for i in range(4):
            (place / f"{i}.png").write_bytes(grey_png(shape("bars", i)))
        self.server.post("/datasets", {"name": "moving", "kind": "folder", "path": str(self.dir / "moving")})
        self.server.post("/datasets/moving/versions")
        (place / "1.png").write_bytes(grey_png(shape("bars", 99)))
        (place / "2.png").unlink()
        rows = self.rows_of(self.fetch(self.submit("shapes", "moving"), "moving-out"))
        self.assertEqual([("error" in row) for row in rows], [False, True, True, False])
        self.assertIn("changed or removed since", rows[1]["error"])


if __name__ == "__main__":
    harness.main()

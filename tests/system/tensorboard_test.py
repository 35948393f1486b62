"""Event files of trainings, by the reader of TensorBoard itself where the package index can be reached: what a training wrote is what its run
has, and a training that went on from a checkpoint voids what it had written before."""
import json
import os
import pathlib
import subprocess
import sys
import unittest

import harness
from harness import BIN, ROOT, Server, wait_until

sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests/serve")]
from peers import install  # noqa: E402
from serving import drawn_face  # noqa: E402

READ = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0, "tensors": 0}).Reload()
found = {tag: [[e.step, e.value] for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}
print(json.dumps(found))
"""


def read(python, folder):
    done = subprocess.run([python, "-W", "ignore", "-c", READ, folder], capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)


def put_faces(folder):
    for person in range(3):
        (folder / f"p{person}").mkdir(parents=True)
        for photo in range(12):
            (folder / f"p{person}" / f"{photo}.pgm").write_bytes(drawn_face(person, photo, 28))


class Events(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.python = install(ROOT / "build/peers/tensorboard", ("tensorboard",))
        if cls.python is None:
            raise unittest.SkipTest("TensorBoard cannot be had here")

    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.stop)
        self.data = self.server.root / "faces"
        put_faces(self.data)

    def train(self, *more):
        return subprocess.run([BIN / "weir-worker", "train", "--model", "lenet-5", "--data", self.data, "--validation", self.data,
                               "--threads", "1", "--batch-size", "12", "--display-every", "1", "--tensorboard", self.server.root / "events",
                               "--checkpoint-dir", self.server.root / "checkpoints", "--output", self.server.root / "m.safetensors", *more],
                              capture_output=True, text=True, timeout=100)

    def test_the_curves_are_those_that_the_training_printed(self):
        done = self.train("--epochs", "4", "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        found = read(self.python, self.server.root / "events")
        printed = {line["step"]: line["loss"] for line in lines if line["event"] == "step"}
        loss = dict(map(tuple, found["loss"]))
        same = set(printed) & set(loss)
        self.assertGreater(len(same), 3, (printed, loss))
        for step in same:
            self.assertAlmostEqual(printed[step], loss[step], places=3)
        self.assertEqual(len(found["validation_accuracy"]), 4)
        self.assertEqual([step for step, _ in found["loss"]], sorted(loss))

    def test_a_job_keeps_them_with_its_run(self):
        self.server.start()
        self.server.post("/datasets", {"name": "faces", "path": str(self.data)})
        self.server.post("/datasets/faces/versions")
        job = self.server.post("/jobs", {"name": "t", "kind": "train", "spec": {
            "model": "lenet-5", "dataset": "faces", "validation": "faces", "epochs": 3, "batch_size": 12, "threads": 1}})
        wait_until(lambda: self.server.get(f"/jobs/{job['id']}")["state"] == "SUCCEEDED", 60, "the training's end")
        run = self.server.get(f"/jobs/{job['id']}")["run"]
        [file] = self.server.get(f"/runs/{run}/artifacts?path=tensorboard")["items"]
        name = file["path"]
        self.assertIn("events.out.tfevents.", name)
        folder = self.server.root / "fetched"
        folder.mkdir()
        (folder / pathlib.Path(name).name).write_bytes(self.server.request("GET", f"/api/v1/runs/{run}/artifacts/{name}", raw=True))
        found = read(self.python, folder)
        metrics = self.server.get(f"/runs/{run}/metrics?key=validation_accuracy")["items"]
        self.assertEqual([m["step"] for m in metrics], [step for step, _ in found["validation_accuracy"]])
        for metric, (_, value) in zip(metrics, found["validation_accuracy"]):
            self.assertAlmostEqual(metric["value"], value, places=5)


if __name__ == "__main__":
    harness.main()

"""Event files of trainings, by the reader of TensorBoard itself where the package index can be reached: what a training wrote is what its run
has, and a training that went on from a checkpoint voids what it had written before. And `weir tensorboard`: TensorBoard itself, behind
the proxy, shows what runs measure, as it comes."""
import json
import os
import pathlib
import subprocess
import sys
import unittest
import urllib.error
import urllib.parse
import urllib.request

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
        cls.python = install(ROOT / "build/peers/tensorboard", ("tensorboard", "setuptools<81"))
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


class Page(unittest.TestCase):
    """`weir tensorboard RUN`."""

    def setUp(self):
        python = install(ROOT / "build/peers/tensorboard", ("tensorboard", "setuptools<81"))
        if python is None:
            self.skipTest("TensorBoard cannot be had here")
        self.packages = next((ROOT / "build/peers/tensorboard/lib").glob("python3*/site-packages"))
        self.server = Server("--services-listen", "127.0.0.1:0", "--share", str(ROOT / "build/peers")).start()
        self.addCleanup(self.server.stop)

    def log(self, run, first, last):
        self.server.request("POST", "/api/2.0/mlflow/runs/log-batch", {"run_id": run, "metrics": [
            {"key": "train/loss", "value": 1 / step, "timestamp": 1_700_000_000_000 + step, "step": step} for step in range(first, last + 1)]})

    def ask(self, path, token=None, **query):
        """What TensorBoard answers, through the proxy."""
        url = self.service["url"] + path + ("?" + urllib.parse.urlencode(query) if query else "")
        request = urllib.request.Request(url)
        if token != "":
            request.add_header("Authorization", "Bearer " + (token or self.server.token))
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def points(self):
        """{run's name there: {step: value}}"""
        status, text = self.ask("data/plugin/scalars/tags")
        found = {}
        for run in json.loads(text) if status == 200 else ():
            status, text = self.ask("data/plugin/scalars/scalars", run=run, tag="train/loss")
            if status == 200:
                found[run] = {step: value for _, step, value in json.loads(text)}
        return found

    def test_the_curves_of_runs_as_they_come(self):
        runs = [self.server.request("POST", "/api/2.0/mlflow/runs/create", {"experiment_id": "0", "run_name": name})["run"]["info"]["run_id"]
                for name in ("first", "second")]
        for i, run in enumerate(runs):
            self.log(run, 1, 20 + i)
        status, _, err = self.server.weir("tensorboard", *runs, "--name", "board", "--wait", "-e", f"PYTHONPATH={self.packages}", check=False)
        self.assertEqual(status, 0, err)
        self.service = self.server.get("/services?name=board")["items"][0]
        wait_until(lambda: self.ask("")[0] == 200, 90, "TensorBoard to listen")
        self.assertIn("TensorBoard", self.ask("")[1])
        wait_until(lambda: sorted(len(steps) for steps in self.points().values()) == [20, 21], 90, "both curves")
        found = self.points()
        for run, steps in found.items():
            self.assertTrue(run.startswith(("first-", "second-")), found)
            for step, value in steps.items():
                self.assertAlmostEqual(value, 1 / step, places=5)
        self.log(runs[0], 21, 30)
        wait_until(lambda: sorted(len(steps) for steps in self.points().values()) == [21, 30], 60, "what came since")
        # Nobody gets there without Weir's login.
        for token in ("", "weir_nobody"):
            self.assertNotEqual(self.ask("data/plugin/scalars/tags", token=token)[0], 200)
        self.server.post(f"/services/{self.service['id']}/stop")
        wait_until(lambda: self.ask("")[0] != 200, 60, "its end")


if __name__ == "__main__":
    harness.main()

"""A graph of pipelines: a preparation makes a dataset's version, which starts a training, whose model goes live."""
import json
import os
import shutil
import signal
import subprocess
import unittest

import harness
from classifier_ion_test import CLASSES, picture
from harness import Server, wait_until

PER_CLASS = 12

PREPARE = """
import json, os, pathlib, shutil, sys
raw, out = pathlib.Path(json.loads(os.environ["WEIR_DATASETS"])["raw"]), pathlib.Path(os.environ["WEIR_OUTPUT"])
if (raw / "broken").exists():
    sys.exit("broken pictures")
for file in sorted(raw.glob("*/*.pgm")):
    (out / file.parent.name).mkdir(exist_ok=True)
    shutil.copyfile(file, out / file.parent.name / file.name)
"""


class Graph(unittest.TestCase):
    def setUp(self):
        self.server = Server().start()
        self.addCleanup(self.server.stop)
        self.raw, self.clean = self.server.root / "raw", self.server.root / "clean"
        for folder in (self.raw, self.clean, self.server.root / "frames" / "cam"):
            folder.mkdir(parents=True)
            folder.chmod(0o777)
        for name, folder in (("raw", self.raw), ("clean", self.clean)):
            self.server.post("/datasets", {"name": name, "path": str(folder)})
        self.put(0)

    def put(self, first):
        for name in CLASSES:
            (self.raw / name).mkdir(exist_ok=True)
            for seed in range(first, first + PER_CLASS):
                (self.raw / name / f"{seed}.pgm").write_bytes(picture(name, seed))

    def freeze_raw(self):
        return self.server.post("/datasets/raw/versions")["version"]

    def document(self, **prepare):
        return {
            "kind": "ion", "name": "sorter",
            "pipelines": [
                {"name": "prepare", "type": "preparation", "dataset": "raw", "output": "clean", "triggers": ["new-data"],
                 "parameters": {"argv": ["python3", "prepare.py"], "files": {"prepare.py": PREPARE}}, **prepare},
                {"name": "training", "type": "training", "dataset": "clean", "model": "lenet",
                 "parameters": {"epochs": 1, "batch_size": 16, "input": "1,16,16"}},
                {"name": "belt", "type": "prediction", "source": {"kind": "directory", "path": f"{self.server.root}/frames"}}],
            "links": [{"from": "prepare", "to": "training", "dataset": "clean"}, {"from": "training", "to": "belt", "policy": "always-update"}]}

    def pipeline(self, name):
        return next(one for one in self.server.get("/ions/sorter")["pipelines"] if one["name"] == name)

    def clean_versions(self):
        return [one["version"] for one in self.server.get("/datasets/clean/versions")["items"]]

    def serves(self):
        return self.server.get("/ions/sorter")["links"][0]["serving_version"]

    def measured(self, pipeline, n):
        """The metrics of its n runs, in order."""
        def runs():
            return sorted((one for one in self.server.get("/runs?ion=sorter")["items"] if one["pipeline"] == pipeline), key=lambda one: one["created_ms"])
        wait_until(lambda: [one["status"] for one in runs()] == ["FINISHED"] * n, 60, f"{n} runs of {pipeline}")
        return [{"run": one, **one["metrics"]} for one in runs()]

    def events(self, kind):
        return [one["message"] for one in self.server.get(f"/events?kind={kind}&limit=500")["items"]]

    def test_new_raw_data_is_prepared_trained_on_measured_and_served(self):
        server = self.server
        server.post("/datasets", {"name": "held-out"})
        for name in CLASSES:
            for seed in range(500, 520):
                server.request("PUT", f"/api/v1/datasets/held-out/files/{name}/{seed}.pgm", picture(name, seed))
        server.post("/datasets/held-out/versions")
        self.freeze_raw()
        document = self.document()
        document["pipelines"] += [
            {"name": "check", "type": "evaluation", "dataset": "held-out"},
            {"name": "duel", "type": "comparison", "dataset": "held-out", "against": "belt"}]
        document["links"] += [{"from": "training", "to": "check"}, {"from": "training", "to": "duel"}]
        server.post("/ions", document)
        wait_until(lambda: self.serves() == 1, 60, "the first model to be served")
        self.assertEqual(self.clean_versions(), [1])
        runs = {one["pipeline"]: one for one in server.get("/runs?ion=sorter")["items"]}
        self.assertEqual((runs["prepare"]["dataset"], runs["prepare"]["dataset_version"], runs["prepare"]["status"]), ("raw", 1, "FINISHED"))
        self.assertEqual((runs["training"]["dataset"], runs["training"]["dataset_version"]), ("clean", 1))
        self.assertEqual(runs["training"]["parameters"]["trigger"], "clean version 1")

        # What the evaluation measures is what the program says that only measures.
        [check] = self.measured("check", 1)
        blob = server.get("/models/sorter.training/versions")["items"][0]["blob"]
        weights = server.root / "model.safetensors"
        weights.write_bytes(server.request("GET", f"/api/v1/blobs/{blob}", raw=True))
        folder = server.root / "measured"
        for name in CLASSES:
            (folder / name).mkdir(parents=True)
            for seed in range(500, 520):
                (folder / name / f"{seed}.pgm").write_bytes(picture(name, seed))
        done = subprocess.run([harness.WEIR, "evaluate", "--weights", weights, "--data", folder, "--format", "json"], capture_output=True, text=True, timeout=120, check=True)
        said = json.loads(done.stdout)
        self.assertAlmostEqual(check["accuracy"], said["accuracy"], delta=1e-9)
        self.assertAlmostEqual(check["loss"], said["loss"], delta=1e-4 * max(1, said["loss"]))
        self.assertEqual((check["samples"], check["errors"]), (20 * len(CLASSES), 0))
        self.assertEqual(check["run"]["parameters"]["trigger"], "model sorter.training version 1")
        self.assertNotIn("better", self.measured("duel", 1)[0])

        # More of it: all once more, and the second model is compared with the first.
        self.put(PER_CLASS)
        self.freeze_raw()
        wait_until(lambda: self.serves() == 2, 60, "the second model to be served")
        self.measured("check", 2)
        duel = self.measured("duel", 2)[1]
        self.assertEqual(duel["run"]["parameters"]["live"], "sorter.training@v1")
        self.assertAlmostEqual(duel["difference"], duel["accuracy"] - duel["live_accuracy"], delta=1e-6)
        self.assertAlmostEqual(duel["live_accuracy"], said["accuracy"], delta=1e-6)
        self.assertIn(duel["better"], (-1, 0, 1))
        self.check_comparison(duel)
        self.assertEqual(self.clean_versions(), [2, 1])
        self.assertEqual(sorted(one["id"] for one in server.get("/ions/sorter")["starts"]), ["prepare:training", "training:check", "training:duel"])

    def check_comparison(self, duel):
        """What the two models disagree on, against the figures, the files and a prediction of each picture."""
        server = self.server
        found = server.get("/ions/sorter/comparison?version=2")["comparison"]
        kept = server.get(f"/runs/{found['run']}/disagreements?limit=1000")["items"]
        self.assertEqual((found["run"], found["live_version"], found["dataset"]), (duel["run"]["id"], 1, "held-out"))
        n_samples = duel["samples"]
        self.assertEqual((found["n_samples"], found["n_candidate_right"], found["n_live_right"]), (n_samples, duel["only_model"], duel["only_live"]))
        n_differ = round(duel["disagreement"] * n_samples)
        self.assertEqual(found["n_candidate_right"] + found["n_live_right"] + found["n_both_wrong"], n_differ)
        self.assertEqual((len(kept), found["n_kept"]), (min(n_differ, 200),) * 2)
        self.assertGreater(n_differ, 0, "the two should differ, or nothing is tested")
        for column, accuracy in (("n", duel["accuracy"]), ("live_n", duel["live_accuracy"])):
            self.assertEqual(sum(one[column] for one in found["confusions"]), round((1 - accuracy) * n_samples))
        self.assertEqual([one["file"] for one in server.get("/ions/sorter/disagreements?version=2&limit=1000")["items"]], [one["file"] for one in kept])
        for version, answer in ((2, "answer"), (1, "live_answer")):
            said = self.predicted(version, [one["file"] for one in kept])
            self.assertEqual([one[answer] for one in kept], said)
        for one in kept:
            name, seed = one["file"].split("/")
            self.assertEqual(one["label"], name)
            self.assertEqual(server.request("GET", f"/api/v1/blobs/{one['sha256']}", raw=True), picture(name, int(seed.removesuffix(".pgm"))))
        _, table, _ = server.weir("get", "disagreements", "sorter", "version=2")
        self.assertIn(kept[0]["file"], table)

    def predicted(self, version, files):
        """What a batch prediction says of each."""
        job = self.server.post("/jobs", {"kind": "batch", "name": "all", "spec": {"model": f"sorter.training@v{version}", "dataset": "held-out", "top": 1}})
        wait_until(lambda: self.server.get(f"/jobs/{job['id']}")["state"] == "SUCCEEDED", 60, "a prediction of each picture")
        rows = {}
        for one in self.server.get(f"/jobs/{job['id']}/results")["files"]:
            if one["name"].endswith(".jsonl"):
                text = self.server.request("GET", f"/api/v1/jobs/{job['id']}/results/{one['name']}", raw=True).decode()
                rows.update((row["file"], row["label"]) for row in map(json.loads, text.splitlines()))
        return [rows[file] for file in files]

    def test_the_example_runs_as_it_is_written(self):
        server, work = self.server, self.server.root / "work"
        (work / "frames").mkdir(parents=True)
        for name, folder in (("raw-parts", self.raw), ("parts", self.clean)):
            server.post("/datasets", {"name": name, "path": str(folder)})
        server.post("/datasets", {"name": "held-out-parts"})
        for name in CLASSES:
            shutil.copyfile(self.raw / name / "0.pgm", self.raw / name / "double.pgm")
            for seed in range(500, 510):
                server.request("PUT", f"/api/v1/datasets/held-out-parts/files/{name}/{seed}.pgm", picture(name, seed))
        server.post("/datasets/held-out-parts/versions")
        document = server.root / "ion.yaml"
        document.write_text((harness.ROOT / "examples/prepared-parts/ion.yaml").read_text().replace("@WORK@", str(work)))
        server.weir("apply", "-f", str(document))
        server.post("/datasets/raw-parts/versions")
        ion = lambda: server.get("/ions/prepared-parts")
        wait_until(lambda: ion()["links"][0]["pending_versions"] == [1], 60, "a model to review")
        self.assertEqual(server.get("/datasets/parts/versions")["items"][0]["n_files"], PER_CLASS * len(CLASSES), "without the doubles")
        wait_until(lambda: any(one["pipeline"] == "check" and one["status"] == "FINISHED" for one in server.get("/runs?ion=prepared-parts")["items"]), 60, "the evaluation")
        server.weir("approve", "prepared-parts")
        wait_until(lambda: ion()["links"][0]["serving_version"] == 1, 60, "the model to be served")
        _, described, _ = server.weir("describe", "prepared-parts")
        self.assertRegex(described, r"prepare:training +parts")
        self.assertEqual(ion()["health"]["status"], "ok")

    def test_a_preparation_that_fails_starts_again_by_its_rule_and_then_the_ion_is_down(self):
        server = self.server
        (self.raw / "broken").mkdir()
        (self.raw / "broken" / "0.pgm").write_bytes(picture("bars", 0))
        self.freeze_raw()
        server.post("/ions", self.document(critical=True, restart={"kind": "on-failure", "times": 2, "backoff_s": 0}))
        wait_until(lambda: self.pipeline("prepare")["n_failures"] == 3, 60, "three failures")
        self.assertEqual(self.pipeline("prepare")["training"], 3)
        self.assertEqual(server.get("/ions/sorter")["health"]["status"], "down")
        [alert] = [one for one in server.get("/alerts")["items"] if one["kind"] == "pipeline_failed"]
        self.assertEqual((alert["severity"], alert["state"]), ("critical", "open"))
        self.assertEqual(self.clean_versions(), [])
        # Once it is mended, it ends well, and so does the alert.
        shutil.rmtree(self.raw / "broken")
        self.freeze_raw()
        wait_until(lambda: self.clean_versions() == [1], 60, "a version")
        wait_until(lambda: self.pipeline("prepare")["state"] == "IDLE", 60, "the run to end")
        self.assertEqual(self.pipeline("prepare")["n_failures"], 0)
        self.assertNotIn("pipeline_failed", [one["kind"] for one in server.get("/alerts?state=open")["items"]])

    def test_a_server_that_is_killed_while_it_freezes_makes_the_version_once(self):
        server = self.server
        os.mkfifo(server.root / "hold")  # the command holds still until somebody writes
        document = self.document()
        document["pipelines"][0]["parameters"]["files"]["prepare.py"] += f"\nopen({str(server.root / 'hold')!r}).read()\n"
        self.freeze_raw()
        server.post("/ions", document)
        wait_until(lambda: (self.clean / CLASSES[-1]).exists(), 60, "the command to write")
        # Of a version that somebody freezes meanwhile nothing follows for the run.
        server.post("/datasets/clean/versions")
        with open(server.root / "hold", "w") as hold:
            hold.write("go")
        wait_until(lambda: self.pipeline("prepare")["state"] != "RUNNING", 60, "the command to end")
        server.kill(signal.SIGKILL)
        server.start("--listen", server.url.removeprefix("http://"))  # where its agent looks for it
        wait_until(lambda: self.pipeline("prepare")["state"] == "IDLE", 60, "the run to end")
        wait_until(lambda: self.serves(), 60, "a model to be served")
        self.assertEqual(self.pipeline("prepare")["training"], 1)
        self.assertEqual(len(self.events("run_finished")), 1)


if __name__ == "__main__":
    harness.main()

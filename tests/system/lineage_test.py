"""Lineage on a real server: raw data is prepared, trained on and served; a decision leads back to all of it, and all of it to the decision."""
import json
import unittest

import harness
from classifier_ion_test import CLASSES, picture
from graph_test import PER_CLASS, PREPARE
from harness import HttpError, Server, wait_until

N_FRAMES = 6


class Lineage(unittest.TestCase):
    def setUp(self):
        self.server = server = Server().start()
        self.addCleanup(server.stop)
        self.raw, self.clean, self.frames = (server.root / name for name in ("raw", "clean", "frames"))
        for folder in (self.raw, self.clean, self.frames / "cam"):
            folder.mkdir(parents=True)
            folder.chmod(0o777)
        for name in CLASSES:
            (self.raw / name).mkdir()
            for seed in range(PER_CLASS):
                (self.raw / name / f"{seed}.pgm").write_bytes(picture(name, seed))
        for name, folder in (("raw", self.raw), ("clean", self.clean)):
            server.post("/datasets", {"name": name, "path": str(folder)})

    def document(self):
        return {
            "kind": "ion", "name": "sorter",
            "pipelines": [
                {"name": "prepare", "type": "preparation", "dataset": "raw", "output": "clean", "triggers": ["new-data"],
                 "parameters": {"argv": ["python3", "prepare.py"], "files": {"prepare.py": PREPARE}}},
                {"name": "training", "type": "training", "dataset": "clean", "model": "lenet", "parameters": {"epochs": 1, "batch_size": 16, "input": "1,16,16"}},
                {"name": "belt", "type": "prediction", "source": {"kind": "directory", "path": str(self.frames)}},
                {"name": "check", "type": "evaluation", "dataset": "clean"}],
            "links": [{"from": "prepare", "to": "training", "dataset": "clean"}, {"from": "training", "to": "belt", "policy": "manual"}, {"from": "training", "to": "check"}]}

    def put_frames(self):
        for n in range(N_FRAMES):
            part = self.frames / "cam" / f".{n}.part"
            part.write_bytes(picture(CLASSES[0], 900 + n))
            part.rename(self.frames / "cam" / f"{n}.pgm")

    def decisions(self):
        return self.server.get("/decisions?ion=sorter")["items"]

    def weir(self, *words):
        return self.server.weir(*words)[1]

    def serve(self):
        server = self.server
        server.post("/datasets/raw/versions")
        server.post("/ions", self.document())
        wait_until(lambda: [one for one in server.get("/ions/sorter/candidates")["items"] if one["state"] == "PENDING_REVIEW"], 90, "the model to wait for review")
        server.post("/ions/sorter/approve", {"note": "good | enough"})
        wait_until(lambda: server.get("/ions/sorter")["links"][0]["serving_version"] == 1, 60, "the model to be served")
        self.put_frames()
        wait_until(lambda: len(self.decisions()) == N_FRAMES, 60, "the decisions")
        wait_until(lambda: [one["status"] for one in server.get("/runs?ion=sorter")["items"] if one["pipeline"] == "check"] == ["FINISHED"], 60, "the evaluation")

    def check_back(self, decision):
        found = self.server.get(f"/decisions/{decision}/lineage")
        by_pipeline = {one["pipeline"]: one for one in found["runs"]}
        self.assertEqual((found["version"]["model"], found["version"]["version"], found["is_certain"]), ("sorter.training", 1, True))
        self.assertEqual([one["pipeline"] for one in found["runs"]], ["training", "prepare"])
        self.assertEqual(by_pipeline["training"]["trigger"], "clean version 1")
        self.assertEqual(by_pipeline["training"]["parameters"]["epochs"], "1")
        self.assertTrue(by_pipeline["training"]["code"]["version"].startswith("weir "))
        datasets = {one["dataset"]: one for one in found["datasets"]}
        self.assertEqual(sorted(datasets), ["clean", "raw"])
        self.assertEqual((datasets["clean"]["created_by"], datasets["clean"]["run"]), ("ion/sorter", by_pipeline["prepare"]["id"]))
        self.assertEqual((datasets["raw"]["created_by"], datasets["raw"]["run"]), ("admin", None))
        self.assertEqual([(one["verdict"], one["actor"]) for one in found["place"]["policies"]][-1], ("promote", "admin"))
        self.assertEqual(found["place"]["policies"][-1]["note"], "good | enough")
        self.assertEqual((found["revision"]["revision"], found["revision"]["actor"]), (1, "admin"))
        self.assertEqual((found["unknown"], found["is_cut"]), ([], False))

    def check_forward(self, n_kept, ids):
        server = self.server
        for path in ("/datasets/raw/versions/1", "/datasets/clean/versions/1", "/models/sorter.training/versions/1"):
            found = server.get(path + "/lineage")
            [counts] = [one["decisions"] for one in found["places"]]
            self.assertEqual((counts["n_made"], counts["n_kept"], counts["is_whole"]), (N_FRAMES, n_kept, True), path)
            pages, cursor = [], ""
            while cursor is not None:
                page = server.get(f"{path}/decisions?limit=4{cursor and '&cursor=' + cursor}")
                pages += [one["id"] for one in page["items"]]
                cursor = page["next"]
            self.assertEqual(sorted(pages), sorted(ids), path)
        raw = server.get("/datasets/raw/versions/1/lineage")
        self.assertEqual([(one["dataset"], one["version"]) for one in raw["made"]], [("clean", 1)])
        self.assertEqual([one["model"] for one in raw["versions"]], ["sorter.training"])

    def test_a_decision_leads_back_to_raw_data_and_that_to_every_decision(self):
        server = self.server
        self.serve()
        ids = [one["id"] for one in self.decisions()]
        self.check_back(ids[0])
        self.check_forward(N_FRAMES, ids)

        tree = self.weir("lineage", "decision", ids[0])
        for line in ("  model sorter.training v1", "    run sorter.training.1", "      data clean@v1 (dataset) by ion/sorter", "        run sorter.prepare.1", "          data raw@v1 (dataset) by admin"):
            self.assertIn("\n" + line, tree)
        self.assertIn(f"decisions {N_FRAMES}, of which {N_FRAMES} are kept", self.weir("lineage", "dataset", "raw@v1"))

        card = json.loads(self.weir("model", "card", "sorter.training@v1", "-o", "json"))
        self.assertEqual({one["name"]: one["n_files"] for one in card["data"]["classes"]}, {name: PER_CLASS for name in CLASSES})
        [evaluation] = card["evaluations"]
        self.assertEqual((evaluation["dataset"], evaluation["metrics"]["samples"]), ("clean", PER_CLASS * len(CLASSES)))
        self.assertIn("Nobody has described this version.", card["limits"])
        file = server.root / "card.md"
        self.weir("model", "card", "sorter.training@v1", "--file", str(file))
        text = file.read_text(encoding="utf-8")
        for part in ("# sorter.training v1", "good \\| enough", "- No validation was measured", f"| {CLASSES[0]} | {PER_CLASS} |"):
            self.assertIn(part, text)

        server.kill()
        server.start()
        self.check_back(ids[0])

        # What retention deletes is not found, and stays counted.
        server.request("PUT", "/api/v1/retention", {"decisions": "0s"})
        server.weir("store", "sweep")
        wait_until(lambda: not self.decisions(), 30, "retention")
        with self.assertRaises(HttpError) as gone:
            server.get(f"/decisions/{ids[0]}/lineage")
        self.assertEqual(gone.exception.code, 404)
        self.check_forward(0, [])

    def test_a_job_notes_which_version_of_its_datasets_it_read(self):
        server = self.server
        server.post("/datasets/raw/versions")
        job = server.post("/jobs", {"name": "look", "kind": "command", "spec": {"argv": ["true"], "datasets": ["raw"]}})
        found = server.get("/datasets/raw/versions/1/lineage")
        self.assertEqual([one["id"] for one in found["read_by"]], [server.get(f"/jobs/{job['id']}")["run"]])


if __name__ == "__main__":
    harness.main()

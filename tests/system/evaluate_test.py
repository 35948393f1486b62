"""A link that measures its versions first: each stands beside the one that serves, on pictures that no training saw."""
import json
import signal
import unittest

import harness
from classifier_ion_test import CLASSES, picture
from harness import Server, wait_until

PER_CLASS = 12
HELD_OUT = 25


class Evaluate(unittest.TestCase):
    def setUp(self):
        self.server = Server().start()
        self.addCleanup(self.server.stop)
        for dataset, seeds in (("parts", range(PER_CLASS)), ("held-out", range(500, 500 + HELD_OUT))):
            self.server.post("/datasets", {"name": dataset})
            for name in CLASSES:
                for seed in seeds:
                    self.server.request("PUT", f"/api/v1/datasets/{dataset}/files/{name}/{seed}.pgm", picture(name, seed))
            self.server.post(f"/datasets/{dataset}/versions")
        (self.server.root / "frames" / "cam").mkdir(parents=True)

    def apply(self, **options):
        self.server.post("/ions", {
            "kind": "ion", "name": "sorter",
            "pipelines": [
                {"name": "training", "type": "training", "dataset": "parts", "model": "lenet", "triggers": ["manual"],
                 "parameters": {"epochs": 1, "batch_size": 16, "input": "1,16,16"}},
                {"name": "belt", "type": "prediction", "source": {"kind": "directory", "path": f"{self.server.root}/frames"}}],
            "links": [{"from": "training", "to": "belt",
                       "policy": [{"kind": "evaluate", "dataset": "held-out", "min_samples": 20} | options]}]})

    def train(self):
        self.server.weir("trigger", "sorter", "training")

    def state(self, version):
        found = [one for one in self.server.get("/ions/sorter/candidates")["items"] if one["version"] == version]
        return found[0]["state"] if found else None

    def decision(self, version, verdict):
        """The row in which evaluate said so."""
        def rows():
            return [one for one in self.server.get("/ions/sorter/policy-decisions")["items"]
                    if one["version"] == version and one["verdict"] == verdict and one["policy"] == "evaluate"]
        wait_until(lambda: rows(), 90, f"version {version}: {verdict}")
        return rows()[0]

    def serve_first(self):
        self.train()
        self.assertIn("serves no other version", self.decision(1, "promote")["rule"])
        wait_until(lambda: self.state(1) == "SERVING", 60, "the first to serve")

    def test_a_version_is_measured_beside_the_one_that_serves(self):
        self.apply(margin=0.9)  # so much better it cannot be
        self.serve_first()
        self.train()
        row = self.decision(2, "reject")
        self.assertIn("not surely more than 0.9", row["rule"])
        found = row["inputs"]["evaluation"]
        self.assertEqual((found["n_samples"], found["n_errors"], found["live_version"]), (HELD_OUT * len(CLASSES), 0, 1))
        self.assertAlmostEqual((found["only_candidate"] - found["only_live"]) / found["n_samples"], found["accuracy"] - found["live_accuracy"], delta=1e-6)
        run = self.server.get(f"/runs/{found['run']}")
        self.assertEqual((run["metrics"]["accuracy"], run["dataset"], run["ion"]), (found["accuracy"], "held-out", "sorter"))
        self.assertEqual(self.state(1), "SERVING")
        # Not worse by more than nearly everything: that passes. The chain is new, and so is the version that comes.
        self.apply(margin=-0.9)
        self.train()
        self.assertIn("surely more than -0.9", self.decision(3, "promote")["rule"])
        wait_until(lambda: self.state(3) == "SERVING", 60, "the third to serve")

    def test_what_cannot_be_measured_is_rejected_with_the_reason(self):
        with self.assertRaises(harness.HttpError) as caught:
            self.apply(dataset="held-in")
        self.assertIn('no dataset "held-in"', caught.exception.error["message"])
        self.server.post("/datasets", {"name": "held-in"})
        self.apply(dataset="held-in", least_accuracy=0.01)
        self.train()
        self.assertRegex(self.decision(1, "reject")["rule"], "nothing was measured: .*held-in.* has no version yet")
        self.assertEqual(self.state(1), "REJECTED")

    def test_a_server_that_is_killed_meanwhile_measures_once(self):
        server = self.server
        self.apply(least_accuracy=0.01)
        self.train()
        self.decision(1, "wait")
        server.kill(signal.SIGKILL)
        server.start("--listen", server.url.removeprefix("http://"))  # where its agent looks for it
        self.decision(1, "promote")
        self.assertEqual(len([one for one in server.get("/jobs")["items"] if one["kind"] == "measure"]), 1)


if __name__ == "__main__":
    harness.main()

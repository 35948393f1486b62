"""The reference use case, end to end: train, promote, decide, enrol, bar, retrain, swap."""
import json
import os
import re
import subprocess
import time
import unittest

import harness
from harness import Server, wait_until


class Demo(unittest.TestCase):
    def test_the_scenario_loses_and_doubles_nothing(self):
        server = Server().start()
        example = server.root / "example"
        example.mkdir()
        for name in ("ion.yaml", "cameras.yaml"):
            document = (harness.ROOT / "examples/building-security" / name).read_text()
            # Thirty drawn people are learnt sooner than the example's fifty.
            shorter, n = re.subn(r"steps: \d+", "steps: 250", document)
            self.assertEqual(n, 1)
            (example / name).write_text(shorter)
        try:
            begun = time.monotonic()
            done = subprocess.run(
                [harness.WEIR, "demo", "building-security", "--state", str(server.state), "--once", "-o", "json",
                 "--people", "30", "--photos", "12", "--passers", "60", "--seconds", "8", "--example",
                 str(example)],
                capture_output=True, text=True, timeout=540)
            print(done.stderr[-4000:])
            self.assertEqual(done.returncode, 0, done.stderr[-3000:] + server.log_text())
            report = json.loads(done.stdout)
            print(json.dumps({k: v for k, v in report.items() if k != "models"}), round(time.monotonic() - begun), "s")
            self.assertEqual((report["lost"], report["doubled"]), (0, 0))
            self.assertGreater(report["frames_sent"], 100)
            self.assertEqual(report["frames_sent"], report["decisions"])
            self.assertGreaterEqual(report["swaps"], 2)
            self.assertEqual(report["wrong"]["damaged"], 0)
            self.assertGreater(report["right"]["damaged"], 0)
            right, wrong = sum(report["right"].values()), sum(report["wrong"].values())
            self.assertGreater(right / (right + wrong), 0.8)
            self.assertGreaterEqual(len(report["models"]), 3)
            for model in report["models"]:
                self.assertTrue(model["run"] and model["dataset_version"] and model["code_version"], model)
            self.check_passages(report)
            self.check_records(server, report)
        finally:
            server.stop()

    def run_what_is_printed(self, server):
        """`make run` prints these lines, for who looks at what it plays."""
        printed = re.findall(r"^ {4}(weir .*)$", (harness.ROOT / "packaging/run.sh").read_text(), re.M)
        self.assertGreater(len(printed), 2)
        for line in printed:
            subprocess.run(line, shell=True, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "PATH": f"{harness.BIN}:{os.environ['PATH']}", "WEIR_STATE": str(server.state)})

    def check_passages(self, report):
        """Where weir-camera is, the cameras streamed in the end: each who walked by is decided once, and nobody is let in for another."""
        self.assertEqual("passages" in report, (harness.BIN / "weir-camera").exists())
        if "passages" in report:
            passages = report["passages"]
            right, wrong = (sum(passages[key].values()) for key in ("right", "wrong"))
            self.assertEqual((passages["lost"], passages["doubled"]), (0, 0), passages)
            self.assertEqual(passages["sent"], passages["decisions"])
            self.assertEqual(passages["sent"], right + wrong)
            self.assertGreater(passages["sent"], 20)
            self.assertGreater(right / passages["sent"], 0.5)
            for kind, verdicts in passages["wrong_verdicts"].items():
                self.assertLessEqual(verdicts.get("grant", 0), 1 if kind == "unknown" else 0, passages)

    def check_records(self, server, report):
        ion = server.get("/ions/building-security")
        decisions = server.get("/ions/building-security/policy-decisions")["items"]
        promoted = [d["version"] for d in decisions if d["verdict"] == "promote"]
        self.assertEqual(sorted(promoted), sorted(m["version"] for m in report["models"]))
        self.assertEqual(ion["links"][0]["serving_version"], max(promoted))
        self.check_threshold(server, ion, report)
        runs = server.get("/runs?ion=building-security")["items"]
        self.assertTrue(all(run["status"] == "FINISHED" for run in runs), runs)
        for run in runs:
            self.assertEqual(run["started_ms"], server.get(f"/jobs/{run['job']}")["started_ms"])
            made = server.get(f"/models/{run['registered']['model']}/versions/{run['registered']['version']}")
            self.assertEqual(made["run"], run["id"])
        history = server.get(f"/runs/{runs[0]['id']}/metrics?key=loss")["items"]
        self.assertGreater(len(history), 3)
        self.assertLess(history[-1]["value"], history[0]["value"])
        one = server.get("/decisions?ion=building-security&verdict=grant&limit=1")["items"][0]
        for key in ("camera", "frame", "model_version", "gallery_version", "score", "threshold", "latency_us"):
            self.assertIsNotNone(one[key], key)
        image = wait_until(lambda: self.image(server, one["id"]), 30, "the decision's picture")
        self.assertEqual(image[:2], b"\xff\xd8")
        server.weir("rollback", "building-security", "--note", "test")
        back = server.get("/ions/building-security")["links"][0]["wanted_version"]
        self.assertLess(back, max(promoted))
        self.run_what_is_printed(server)
        server.weir("delete", "building-security")
        wait_until(lambda: all(job["state"] in ("SUCCEEDED", "CANCELLED") for job in server.get("/jobs")["items"]),
                   60, "all jobs over")
        wait_until(lambda: not server.pids("weir-worker"), 30, "no worker left")

    def check_threshold(self, server, ion, report):
        """The passers-by set it; what is told of it is what decisions were made with."""
        told = next(p for p in ion["pipelines"] if p["name"] == "entrance")["threshold"]
        self.assertEqual((told["rule"], told["people"], told["scores"]), ("impostors", 60, 180), told)
        self.assertEqual((told["impostors_enrolled"], told["photos_skipped"]), (0, 0), told)
        self.assertAlmostEqual(told["asked_rate"], 0.01)
        self.assertLess(told["expected_rate"], 0.02)
        self.assertEqual(told["model_version"], max(model["version"] for model in report["models"]))
        shown = server.weir("describe", "building-security")[1]
        self.assertRegex(shown, r"thresholds\nPIPELINE .*RULE .*OWN PHOTOS BELOW.*\nentrance +impostors +0\.\d+")
        self.assertRegex(shown, r"entrance +gallery_people +\d+ +people +The people whom")
        figures = {one["name"]: one["value"] for one in next(p for p in server.get("/ions/building-security")["pipelines"] if p["name"] == "entrance")["claims"]}
        self.assertGreater(figures["gallery_people"], 1)
        self.assertAlmostEqual(figures["claimable_rate"], 3 / 60)
        self.assertAlmostEqual(figures["false_admits_a_day"], figures["unknown_a_day"] * max(figures["claimable_rate"], figures["measured_rate"]))
        last = server.get("/decisions?ion=building-security&limit=1")["items"][0]
        self.assertIn(last["threshold"], (told["threshold"], told["deny_threshold"]))
        document = dict(ion["document"], name="other")
        place, entrance = next((i, one) for i, one in enumerate(document["pipelines"]) if one["name"] == "entrance")
        entrance["gallery"]["impostors"] = "nobody"
        with self.assertRaises(harness.HttpError) as refused:
            server.post("/ions", document)
        self.assertIn(f'$.pipelines[{place}].gallery.impostors: there is no dataset "nobody": create it first',
                      refused.exception.error["message"])

    @staticmethod
    def image(server, decision):
        try:
            return server.request("GET", f"/api/v1/decisions/{decision}/image", raw=True)
        except harness.HttpError:
            return None


if __name__ == "__main__":
    harness.main()

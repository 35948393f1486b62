"""An ION in a sandbox: trained several times over and live on frames that lie there, without touching anything that its document
names; then in production, as the same revision."""
import json
import unittest

import harness
from classifier_ion_test import CLASSES, document, picture
from harness import HttpError, Server, wait_until

PER_CLASS = 6


class Sandbox(unittest.TestCase):
    def setUp(self):
        self.server = Server().start()
        self.addCleanup(self.server.stop)
        self.server.post("/datasets", {"name": "shapes"})
        for name in CLASSES:
            for seed in range(PER_CLASS):
                self.server.request("PUT", f"/api/v1/datasets/shapes/files/{name}/{seed}.pgm", picture(name, seed))
        self.server.post("/datasets/shapes/versions")
        self.frames = self.server.root / "frames" / "cam"
        self.frames.mkdir(parents=True)
        self.sink = self.server.root / "decisions.jsonl"

    def put_frames(self, numbers):
        for number in numbers:
            (self.frames / ".new").write_bytes(picture("rings", number))
            (self.frames / ".new").rename(self.frames / f"{number}.pgm")

    def decided(self, n):
        def all_there():
            items = self.server.get("/decisions?ion=sorter&limit=100")["items"]
            return len(items) == n and items
        return {one["frame"]: one for one in wait_until(all_there, 60, f"{n} decisions")}

    def test_what_is_tried_touches_nothing_real_and_goes_on_in_production(self):
        ion = document(self.server.root)
        ion["pipelines"][0]["parameters"] = {"epochs": 1, "batch_size": 8, "input": "1,16,16"}
        file = self.server.root / "sorter.json"
        file.write_text(json.dumps(ion), encoding="utf-8")
        self.assertIn("in the sandbox", self.server.weir("apply", "--sandbox", "-f", str(file))[1])
        self.put_frames(range(1, 4))
        self.server.weir("ion", "run", "sorter", "--times", "2")
        versions = wait_until(lambda: self.server.get("/runs?ion=sorter&status=FINISHED")["items"][1:], 120, "two trainings")
        self.assertEqual(len(versions), 1)
        tried = self.decided(3)
        self.assertEqual({one["is_sandbox"] for one in tried.values()}, {True})
        # What the document names is as it was; the decisions are in the ION's own folder.
        self.assertFalse(self.sink.exists())
        self.assertEqual(sorted(path.name for path in self.frames.iterdir()), ["1.pgm", "2.pgm", "3.pgm"])
        own = lambda: [json.loads(line) for path in (self.server.state / "sandbox").glob("*/belt-0-0.jsonl") for line in path.read_text().splitlines()]
        self.assertEqual({one["frame"] for one in wait_until(lambda: len(own()) == 3 and own(), 30, "the sandbox's file")}, {1, 2, 3})
        self.put_frames([4])
        self.decided(4)
        self.assertIn("sandbox", self.server.weir("get", "ions")[1])
        self.assertEqual(self.server.get("/ions/sorter")["mode"], "sandbox")
        # Its mode changes in one way only, and not for who may only apply.
        with self.assertRaises(HttpError) as caught:
            self.server.request("POST", "/api/v1/ions?mode=production", ion)
        self.assertEqual(caught.exception.code, 409)
        revision = self.server.get("/ions/sorter")["revision"]
        self.server.weir("ion", "promote", "sorter")
        after = self.server.get("/ions/sorter")
        self.assertEqual((after["mode"], after["revision"]), ("production", revision))
        lines = lambda: [json.loads(line) for line in self.sink.read_text().splitlines()] if self.sink.exists() else []
        wait_until(lambda: len(lines()) == 4, 60, "the real sink")  # the frames lie there still: now they are decided
        wait_until(lambda: not list(self.frames.iterdir()), 30, "the frames to be taken")
        real = self.decided(4)
        wait_until(lambda: not any(one["is_sandbox"] for one in self.decided(4).values()), 30, "decisions that had an effect")
        self.assertEqual(set(real), {1, 2, 3, 4})
        kinds = [event["kind"] for event in self.server.get("/events?subject=ion/sorter&limit=200")["items"]]
        self.assertEqual(kinds.count("ion_promoted"), 1)
        self.assertEqual(self.server.weir("ion", "promote", "sorter", check=False)[0], 5)
        self.assertEqual(self.server.weir("apply", "--sandbox", "-f", str(file), check=False)[0], 5)

    def test_an_alert_of_what_is_tried_is_marked_and_says_nothing_of_the_platform(self):
        ion = document(self.server.root)
        ion["pipelines"][0]["parameters"] = {"epochs": 1, "batch_size": 8, "input": "1,16,16", "weights": "/nowhere/at/all"}
        self.server.request("POST", "/api/v1/ions?mode=sandbox", ion)
        self.server.weir("ion", "run", "sorter", "--times", "5")
        alerts = lambda: [one for one in self.server.get("/alerts")["items"] if one["subject"] == "ion/sorter" and one["is_sandbox"]]
        wait_until(alerts, 90, "the alert of a training that fails")
        reasons = self.server.get("/health/summary")["reasons"]
        self.assertNotIn("ion/sorter", [one["subject"] for one in reasons])
        self.assertEqual(self.server.get("/ions/sorter")["pipelines"][0]["runs_left"], 0)  # the row has ended
        # In production what is open counts.
        self.server.weir("ion", "promote", "sorter")
        wait_until(lambda: not alerts(), 30, "the rules to look at it again")
        reasons = self.server.get("/health/summary")["reasons"]
        self.assertIn("ion/sorter", [one["subject"] for one in reasons])


if __name__ == "__main__":
    harness.main()

"""A pipeline that a person pauses, and an ION that a rule pauses: replicas and trainings stop to begin, and go on when they may."""
import json
import unittest

import harness
from classifier_ion_test import CLASSES, document, picture
from harness import Server, wait_until

PER_CLASS = 6


class Pause(unittest.TestCase):
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

    def put_frame(self, number):
        (self.frames / ".new").write_bytes(picture("rings", number))
        (self.frames / ".new").rename(self.frames / f"{number}.pgm")

    def pipeline(self, name):
        return [one for one in self.server.get("/ions/sorter")["pipelines"] if one["name"] == name][0]

    def decided(self):
        return {one["frame"] for one in self.server.get("/decisions?ion=sorter&limit=100")["items"]}

    def test_what_is_paused_begins_nothing_until_it_goes_on(self):
        ion = document(self.server.root)
        ion["pipelines"][0]["parameters"] = {"epochs": 1, "batch_size": 8, "input": "1,16,16"}
        file = self.server.root / "sorter.json"
        file.write_text(json.dumps(ion), encoding="utf-8")
        self.server.weir("apply", "-f", str(file))
        self.server.weir("trigger", "sorter", "training")
        self.put_frame(1)
        wait_until(lambda: self.decided() == {1}, 120, "the first decision")
        job = self.pipeline("belt")["job"]
        self.assertIn("belt is paused", self.server.weir("ion", "pause", "sorter", "belt")[1])
        wait_until(lambda: self.server.get(f"/jobs/{job}")["state"] == "CANCELLED", 60, "its replica to stop")
        paused = self.pipeline("belt")
        self.assertEqual((paused["state"], paused["state_reason"], paused["paused_by"]), ("WAITING", "paused by admin", "admin"))
        self.assertIn("paused by admin", self.server.weir("describe", "ion", "sorter")[1])
        self.put_frame(2)
        # A rule pauses what is left, the training.
        self.server.request("PUT", "/api/v1/alert-rules/stop", {"kinds": ["told"], "receivers": [], "actions": [{"kind": "pause"}]})
        self.server.post("/ions/sorter/told", {"about": "data", "title": "lens", "is_healthy": False})
        wait_until(lambda: self.pipeline("training")["paused_by"] == "rule/stop", 30, "the rule to act")
        self.assertEqual(self.server.weir("ion", "pause", "sorter", check=False)[0], 5)
        training = self.pipeline("training")["training"]
        self.server.weir("trigger", "sorter", "training")
        held = self.pipeline("training")
        self.assertEqual((held["training"], held["state"]), (training, "IDLE"))
        # Killed meanwhile, it is as it was.
        self.server.kill()
        self.server.start()
        self.assertEqual(self.pipeline("belt")["state_reason"], "paused by admin")
        self.assertEqual(self.decided(), {1})
        self.server.weir("ion", "resume", "sorter")
        wait_until(lambda: self.decided() == {1, 2}, 60, "the decision that waited")
        self.assertEqual(self.pipeline("training")["training"], training + 1)
        wait_until(lambda: self.server.get("/runs?ion=sorter&status=FINISHED")["items"][1:], 60, "the training that waited")
        kinds = [event["kind"] for event in self.server.get("/events?subject=ion/sorter&limit=200")["items"]]
        self.assertEqual((kinds.count("pipeline_paused"), kinds.count("pipeline_resumed")), (2, 2))


if __name__ == "__main__":
    harness.main()

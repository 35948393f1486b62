"""A training that cuts its photos as a pipeline cuts its frames: it waits until the detector has a version, gets its file, and says what it cut."""
import math
import random
import unittest

from harness import HttpError, Server, main, onnx_model, wait_until

WIDTH, HEIGHT, KERNEL, STRIDE = 96, 64, 16, 4
SQUARES = {"as": "centernet", "threshold": 0.55, "width": WIDTH, "height": HEIGHT}


def squares():
    """The bytes of a detector of the kind centernet, which finds bright squares."""
    def conv(name, channels, weight, bias):
        nodes.append(("Conv", ["x", f"{name}_w", f"{name}_b"], name, {"kernel_shape": [KERNEL] * 2, "strides": [STRIDE] * 2, "pads": [6] * 4}))
        constants[f"{name}_w"] = ((channels, 3, KERNEL, KERNEL), [weight] * (channels * 3 * KERNEL * KERNEL))
        constants[f"{name}_b"] = ((channels,), [bias] * channels)
        taken.append((name, (1, channels, HEIGHT // STRIDE, WIDTH // STRIDE)))

    nodes, constants, taken = [], {}, []
    conv("heat", 1, 1 / (3 * 255 * KERNEL * KERNEL), 0)
    conv("scale", 2, 0, math.log(4))
    conv("offset", 2, 0, 0)
    conv("lm", 10, 0, 0)
    return onnx_model(nodes, constants, ("x", (1, 3, HEIGHT, WIDTH)), taken)


def photo(draw, has_face):
    pixels = [[draw.randrange(30) for _ in range(WIDTH)] for _ in range(HEIGHT)]
    left, top = draw.randrange(WIDTH - 24), draw.randrange(HEIGHT - 24)
    for y in range(top, top + 24 * has_face):
        for x in range(left, left + 24):
            pixels[y][x] = draw.randrange(170, 256)
    return b"P5 %d %d 255\n" % (WIDTH, HEIGHT) + bytes(value for row in pixels for value in row)


def document(**training):
    return {"kind": "ion", "name": "site", "pipelines": [
        {"name": "training", "type": "training", "dataset": "people", "model": "face-embed",
         "parameters": {"steps": 2, "batch_size": 8}, "triggers": {"manual": True}, **training},
        {"name": "entrance", "type": "prediction", "source": {"kind": "http"}, "gallery": {"dataset": "people", "default": "allow"},
         "stages": ["decode", {"kind": "detect", "model": "squares@best", **SQUARES}, {"kind": "align", "by": "box"}, "embed", "match", "decide"]}],
        "links": [{"from": "training", "to": "entrance", "policy": "always-update"}]}


class Cut(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server().start()
        cls.addClassCleanup(cls.server.stop)
        cls.server.post("/datasets", {"name": "people"})
        draw = random.Random(1)
        for person in "abc":
            for i in range(6):
                cls.server.request("PUT", f"/api/v1/datasets/people/files/{person}/{i}.pgm", photo(draw, i != 2))
        cls.server.post("/datasets/people/versions")

    def pipeline(self, name):
        return next(one for one in self.server.get("/ions/site")["pipelines"] if one["name"] == name)

    def versions(self):
        try:
            return self.server.get("/models/site.training/versions")["items"]
        except HttpError:
            state = self.pipeline("training")["state_reason"]
            return None if not state else self.fail(state)

    def test_it_waits_for_the_detector_then_cuts_by_its_version(self):
        file = self.server.root / "squares.onnx"
        file.write_bytes(squares())
        self.server.weir("model", "push", "squares", str(file))
        job = {"name": "t", "kind": "train", "spec": {"model": "face-embed", "dataset": "people", "detector": "squares@best"}}
        with self.assertRaises(HttpError) as refused:
            self.server.post("/jobs", job)
        self.assertIn("$.spec.detector: ", str(refused.exception))
        with self.assertRaises(HttpError) as refused:
            self.server.post("/ions", document(cut_as="entrance", model="face-detect"))
        self.assertIn("$.pipelines[0].cut_as: ", str(refused.exception))
        self.server.post("/ions", document(cut_as="entrance"))
        self.server.weir("trigger", "site", "training")
        waiting = self.pipeline("training")
        self.assertEqual(waiting["state"], "IDLE")
        self.assertIn("stage detect needs squares@best, and that names no version yet", waiting["state_reason"])
        self.server.weir("model", "alias", "squares", "best", "1")
        wait_until(lambda: self.versions(), 120, "a version")
        version = self.server.get("/models/site.training/versions/1")
        run = self.server.get("/runs/" + version["run"])
        self.assertEqual((run["parameters"]["detector_model"], run["parameters"]["detector_version"]), ("squares", 1))
        cut = version["parameters"]["cut"]
        self.assertEqual((cut["detector"], cut["digest"]), ("squares/1", self.server.get("/models/squares/versions/1")["blob"]))
        self.assertEqual(cut["align"]["by"], "box")
        log = self.server.weir("logs", run["job"])[1]
        self.assertIn("photos_cut", log)
        self.assertIn("cut=15 whole=3", log)
        self.assertIn("a/2.pgm", log)

        # The alias goes, and the pipeline still finds with what it named: so is cut.
        self.server.request("DELETE", "/api/v1/models/squares/aliases/best?force=1")
        self.server.weir("trigger", "site", "training")
        wait_until(lambda: self.versions()[1:], 120, "a second version")
        self.assertEqual(self.server.get("/models/site.training/versions/2")["parameters"]["cut"]["detector"], "squares/1")

    def test_it_is_cut_by_no_model_that_its_sender_may_not_read(self):
        """By hand all names are looked up where jobs may be submitted; an ION starts its own, where its sender may read."""
        file = self.server.root / "hidden.onnx"
        file.write_bytes(squares())
        self.server.weir("model", "push", "hidden", str(file))
        self.server.post("/projects", {"name": "guests"})
        self.server.post("/users", {"name": "eve", "kind": "person", "role": "member"})
        self.server.post("/roles", {"name": "maker", "rights": ["submit jobs", "apply ions", "register models"]})
        self.server.post("/roles", {"name": "reader", "rights": ["read datasets"]})
        for project, role in (("guests", "maker"), ("default", "reader")):
            self.server.request("PUT", f"/api/v1/projects/{project}/members/user/eve", {"role": role})
        self.server.post("/datasets", {"name": "theirs", "project": "guests"})
        self.server.request("PUT", "/api/v1/datasets/theirs/files/a/1.pgm", photo(random.Random(2), True))
        self.server.post("/datasets/theirs/versions")
        eve = self.server.post("/tokens", {"user": "eve", "name": "t", "role": "member"})["secret"]
        document = {"kind": "ion", "name": "own", "project": "guests", "pipelines": [
            {"name": "t", "type": "training", "dataset": "theirs", "model": "face-embed", "parameters": {"detector": "hidden"}}]}
        self.server.request("POST", "/api/v1/ions", document, token=eve)
        self.server.weir("trigger", "own", "t")
        failure = wait_until(lambda: [event for event in self.server.get("/events")["items"] if event["kind"] == "training_failed"], 60, "a failure")
        self.assertIn('$.spec.detector: there is no model "hidden"', failure[0]["message"])


if __name__ == "__main__":
    main()

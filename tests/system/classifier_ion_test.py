"""An ION with a classifier: trained on made-up pictures, live without a gallery, as good as `weir evaluate` says, swapped
without losing a frame."""
import gzip
import hmac
import http.server
import json
import math
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import threading
import time
import unittest

import harness
import howto_given
from harness import WEIR, HttpError, Server, wait_until

SIDE = 16
CLASSES = ("bars", "boxes", "rings", "stripes")
PER_CLASS = 40


def picture(name, seed):
    """A pattern under noise, as PGM: some of them are hard to tell."""
    dice = random.Random(f"{name} {seed}")
    period, phase, centre = dice.randint(3, 5), dice.randint(0, 4), SIDE / 2 + dice.uniform(-2, 2)
    radius, noise = dice.uniform(3, 6), dice.uniform(20, 150)
    pixels = bytearray()
    for y in range(SIDE):
        for x in range(SIDE):
            away = {"rings": math.hypot(x - centre, y - centre), "boxes": max(abs(x - centre), abs(y - centre))}.get(name)
            is_lit = {"bars": (x + phase) % period < 2, "stripes": (y + phase) % period < 2}.get(name, away and abs(away - radius) < 1.2)
            pixels.append(min(255, max(0, int(60 + 120 * bool(is_lit) + dice.gauss(0, noise)))))
    return b"P5 %d %d 255\n" % (SIDE, SIDE) + bytes(pixels)


def document(root, seed=1, **prediction):
    return {
        "kind": "ion", "name": "sorter",
        "pipelines": [
            {"name": "training", "type": "training", "dataset": "shapes", "model": "lenet",
             "parameters": {"epochs": 4, "batch_size": 16, "validation": "held-out", "input": "1,16,16", "seed": seed}},
            {"name": "belt", "type": "prediction", "source": {"kind": "directory", "path": f"{root}/frames"},
             "sinks": [{"kind": "jsonl", "path": f"{root}/decisions.jsonl"}], **prediction}],
        "links": [{"from": "training", "to": "belt", "policy": "always-update"}]}


class Hook(http.server.BaseHTTPRequestHandler):
    """A program that decisions are sent to. The first post it is too busy for; what is not signed rightly it refuses."""
    KEY = b"a key that stands in no document"
    taken, n_posts = {}, 0  # decisions by identifier

    def do_POST(self):
        Hook.n_posts += 1
        body = self.rfile.read(int(self.headers["Content-Length"]))
        signature = hmac.new(self.KEY, self.headers["Weir-Timestamp"].encode() + b"." + body, "sha256").hexdigest()
        is_right = self.headers["Weir-Signature"] == "v1=" + signature
        if is_right and self.n_posts > 1:
            self.taken.update((one["id"], one) for one in json.loads(body)["decisions"])
        self.send_response(503 if self.n_posts == 1 else 204 if is_right else 400)
        self.end_headers()

    def log_message(self, *words):
        pass


class ClassifierIon(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.hook = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook)
        cls.addClassCleanup(cls.hook.server_close)
        cls.addClassCleanup(cls.hook.shutdown)
        threading.Thread(target=cls.hook.serve_forever, daemon=True).start()
        cls.server = Server().start()
        cls.addClassCleanup(cls.server.stop)
        cls.server.request("PUT", "/api/v1/projects/default/secrets/belt-key", {"value": Hook.KEY.decode()})
        cls.held_out = [(name, seed) for name in CLASSES for seed in range(1000, 1000 + PER_CLASS)]
        for dataset, first in (("shapes", 0), ("held-out", 1000)):
            cls.server.post("/datasets", {"name": dataset})
            for name in CLASSES:
                for seed in range(first, first + PER_CLASS):
                    cls.server.request("PUT", f"/api/v1/datasets/{dataset}/files/{name}/{seed}.pgm", picture(name, seed))
            cls.server.post(f"/datasets/{dataset}/versions")
        (cls.server.root / "frames" / "cam").mkdir(parents=True)
        cls.frames = {}  # number -> class
        cls.no_frames = [cls.server.root / "frames" / "cam" / "IMG_0001.jpg", cls.server.root / "frames" / "top.jpg"]
        for path in cls.no_frames:
            path.write_bytes(picture("rings", 1))
            os.utime(path, (time.time() - 60,) * 2)

    def tearDown(self):
        """Replicas keep the machine's slots, which the next training needs."""
        for ion in self.server.get("/ions")["items"]:
            self.server.request("DELETE", f"/api/v1/ions/{ion['name']}")

    def put_frame(self, name, seed):
        number = len(self.frames) + 1
        folder = self.server.root / "frames" / "cam"
        (folder / ".new").write_bytes(picture(name, seed))
        (folder / ".new").rename(folder / f"{number}.pgm")
        self.frames[number] = name
        return number

    def decisions(self):
        """Of all frames, by number."""
        found, after = {}, 0
        while True:
            page = self.server.get(f"/decisions?ion=sorter&after={after}&limit=500")["items"]
            if not page:
                return found
            for one in page:
                self.assertNotIn(one["frame"], found, "decided once")
                found[one["frame"]] = one
                after = one["seq"]

    def wait_for_decisions(self):
        wait_until(lambda: self.server.get("/decisions/summary?ion=sorter")["decisions"] == len(self.frames), 60, "all decisions")
        return self.decisions()

    def versions(self):
        try:
            return self.server.get("/models/sorter.training/versions")["items"]
        except HttpError:
            return []

    def serves(self, version):
        link = self.server.get("/ions/sorter")["links"][0]
        return link["serving_version"] == version

    def evaluate(self, version):
        """Accuracy and loss of a version on the held-out pictures, by the program that only measures."""
        blob = next(one["blob"] for one in self.versions() if one["version"] == version)
        weights, data = self.server.root / "model.safetensors", self.server.root / "evaluated"
        weights.write_bytes(self.server.request("GET", f"/api/v1/blobs/{blob}", raw=True))
        for name, seed in self.held_out:
            (data / name).mkdir(parents=True, exist_ok=True)
            (data / name / f"{seed}.pgm").write_bytes(picture(name, seed))
        done = subprocess.run([WEIR, "evaluate", "--weights", weights, "--data", data, "--format", "json"], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def check_against_evaluation(self, version, numbers):
        """The decisions about the held-out pictures are what the evaluation found."""
        found = self.decisions()
        mine = [found[number] for number in numbers]
        self.assertEqual({one["model_version"] for one in mine}, {version})
        chances = [{label["label"]: label["score"] for label in one["labels"]} for one in mine]
        n_right = sum(max(chance, key=chance.get) == self.frames[one["frame"]] for chance, one in zip(chances, mine))
        loss = sum(-math.log(chance[self.frames[one["frame"]]]) for chance, one in zip(chances, mine)) / len(mine)
        measured = self.evaluate(version)
        self.assertAlmostEqual(n_right / len(mine), measured["accuracy"], delta=1e-9)
        self.assertAlmostEqual(loss, measured["loss"], delta=1e-4 * max(1, loss))
        self.assertGreater(measured["accuracy"], 0.5, "it has learned something")
        print(f"version {version}: accuracy {measured['accuracy']:.3f}, loss {measured['loss']:.4f}, of decisions {loss:.4f}", file=sys.stderr)
        return mine

    def test_a_classifier_goes_live_and_is_swapped_without_losing_a_frame(self):
        server = self.server
        stages = ["decode", {"kind": "classify", "top": len(CLASSES), "threshold": 0.6}, "decide"]
        sinks = [{"kind": "jsonl", "path": f"{server.root}/decisions.jsonl"},
                 {"kind": "webhook", "url": f"http://127.0.0.1:{self.hook.server_port}/in", "secrets": ["secret=belt-key"]}]
        server.post("/ions", document(server.root, stages=stages, sinks=sinks))
        server.post("/ions/sorter/trigger", {"pipeline": "training"})
        wait_until(lambda: self.versions() and self.serves(1), 180, "the first model live")
        first = [self.put_frame(*one) for one in self.held_out]
        self.wait_for_decisions()
        for one in self.check_against_evaluation(1, first):
            is_sure = one["score"] >= 0.6
            self.assertEqual(one["verdict"], "label" if is_sure else "unknown")
            self.assertEqual(one["label"], one["labels"][0]["label"] if is_sure else None)
            self.assertAlmostEqual(one["score"], one["labels"][0]["score"], delta=1e-6)
            self.assertEqual((one["threshold"], one["person"], one["gallery_version"], one["error"]), (0.6, None, 0, None))
            self.assertAlmostEqual(sum(label["score"] for label in one["labels"]), 1, delta=1e-4)
        verdicts = server.get("/decisions/summary?ion=sorter")["verdicts"]
        self.assertEqual(verdicts["label"] + verdicts["unknown"], len(first))
        self.assertGreater(verdicts["label"], 0)

        # What lies there and is no frame is counted and told, as long as it lies there.
        health = lambda: server.get("/ions/sorter")["health"]
        wait_until(lambda: health()["status"] == "degraded", 30, "the ION to be degraded")
        self.assertIn("Pipeline belt ignores what its source is given", health()["reason"])
        [replica] = server.get("/ions/sorter/replicas")["items"]
        self.assertEqual(replica["frames_ignored"], 2)
        for path in self.no_frames:
            path.unlink()

        # A second model, by another seed, while frames go on coming.
        server.post("/ions", document(server.root, seed=2, stages=stages, sinks=sinks))
        server.post("/ions/sorter/trigger", {"pipeline": "training"})
        seed, deadline = 5000, time.monotonic() + 180
        while not self.serves(2):
            self.assertLess(time.monotonic(), deadline, "the second model live")
            self.put_frame(CLASSES[seed % len(CLASSES)], seed)
            seed += 1
            wait_until(lambda: len(list((server.root / "frames" / "cam").glob("*.pgm"))) < 50, 60, "frames are taken")
        second = [self.put_frame(*one) for one in self.held_out]
        found = self.wait_for_decisions()
        self.assertEqual(sorted(found), sorted(self.frames))
        self.assertEqual({one["model_version"] for one in found.values()}, {1, 2})
        self.assertEqual([one for one in found.values() if one["verdict"] == "error"], [])
        wait_until(lambda: not list((server.root / "frames" / "cam").glob("*.pgm")), 20, "frames are acknowledged")
        self.check_against_evaluation(2, second)

        # What else shows it.
        lines = [json.loads(line) for line in (server.root / "decisions.jsonl").read_text().splitlines()]
        self.assertEqual({line["frame"]: line["label"] for line in lines}, {number: one["label"] for number, one in found.items()})
        wait_until(lambda: len(Hook.taken) >= len(found), 60, "the webhook has all decisions")
        self.assertEqual({one["id"]: one["label"] for one in Hook.taken.values()},
                         {one["id"]: one["label"] for one in found.values()})
        with self.assertRaises(HttpError) as caught:  # in use
            server.request("DELETE", "/api/v1/projects/default/secrets/belt-key")
        self.assertIn("ION sorter", caught.exception.error["message"])
        label = next(one["label"] for one in found.values() if one["label"])
        of_label = server.get(f"/decisions?ion=sorter&label={label}&limit=500")["items"]
        self.assertTrue(of_label and all(one["label"] == label for one in of_label))
        _, table, _ = server.weir("get", "decisions", "ion=sorter", f"label={label}", "--limit", "5")
        self.assertIn("LABEL", table.splitlines()[0])
        self.assertTrue(all(label in line for line in table.splitlines()[1:]), table)
        baseline = self.versions()[0]["baseline"]
        self.assertEqual(sum(baseline["score"]["counts"]), len(self.held_out), "of the validation data")

        wait_until(lambda: health()["status"] == "ok", 60, "the ION to be well again")

        # Back to the first.
        server.post("/ions/sorter/rollback", {})
        wait_until(lambda: self.serves(1), 60, "the first model again")
        number = self.put_frame("rings", 1000)
        self.assertEqual(self.wait_for_decisions()[number]["model_version"], 1)

    def test_a_link_begins_at_a_registered_model(self):
        server = self.server
        without_training = document(server.root)
        without_training["name"] = "pushed"
        del without_training["pipelines"][0]
        without_training["pipelines"][0]["source"]["path"] = f"{server.root}/pushed-frames"
        without_training["links"] = [{"from": {"model": "shapes-net"}, "to": "belt", "policy": "manual"}]
        with self.assertRaises(HttpError) as caught:
            server.post("/ions", without_training)
        self.assertIn("$.links[0].from.model: there is no model", caught.exception.error["message"])
        self.register("shapes-net", 1)
        answer = server.post("/ions", without_training)
        self.assertEqual(answer["links"][0]["id"], "model/shapes-net:belt")
        self.assertEqual(answer["links"][0]["pending_versions"], [1])
        server.post("/ions/pushed/approve", {})
        link = lambda: server.get("/ions/pushed")["links"][0]
        wait_until(lambda: link()["serving_version"] == 1, 60, "the pushed model live")
        folder = server.root / "pushed-frames" / "cam"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".new").write_bytes(picture("rings", 1))
        (folder / ".new").rename(folder / "1.pgm")
        decided = lambda: server.get("/decisions?ion=pushed")["items"]
        one = wait_until(decided, 30, "a decision")[0]
        self.assertIn(one["verdict"], ("label", "unknown"))
        self.assertEqual(one["model_version"], 1)
        self.register("shapes-net", 2)
        self.assertEqual(link()["pending_versions"], [2])
        server.post("/ions/pushed/approve", {})
        wait_until(lambda: link()["serving_version"] == 2, 60, "its second version live")
        server.post("/ions/pushed/rollback", {})
        wait_until(lambda: link()["serving_version"] == 1, 60, "its first version again")

        # The same model as an ONNX file from elsewhere: the executor is another, the decision the same.
        onnx = str(server.root / "shapes.onnx")
        server.weir("model", "export", "shapes-net@v1", "--format", "onnx", "--file", onnx)
        server.weir("model", "push", "shapes-net", onnx)
        self.assertEqual(link()["pending_versions"], [3])
        server.post("/ions/pushed/approve", {})
        wait_until(lambda: link()["serving_version"] == 3, 60, "the ONNX file live")
        (folder / ".new").write_bytes(picture("rings", 1))
        (folder / ".new").rename(folder / "2.pgm")
        wait_until(lambda: len(decided()) == 2, 30, "a decision by the ONNX file")
        two = decided()[0]
        self.assertEqual((two["frame"], two["model_version"]), (2, 3))
        self.assertAlmostEqual(two["score"], one["score"], delta=1e-4)
        self.assertEqual(two["label"], one["label"])

    def test_each_picture_of_a_film_is_decided(self):
        """weir-camera reads it, as the replica's task starts it: in the sandbox of a job where there is one."""
        server, n, side = self.server, 25, 64
        if not (harness.BIN / "weir-camera").exists():
            self.skipTest("weir-camera is not built: it needs the libraries of ffmpeg")
        film = server.root / "film.y4m"
        grey = bytes([128]) * (side * side // 2)
        film.write_bytes(b"YUV4MPEG2 W%d H%d F10:1 C420jpeg\n" % (side, side) +
                         b"".join(b"FRAME\n" + bytes([16 + 8 * i]) * (side * side) + grey for i in range(n)))
        os.chmod(film, 0o644)
        self.register("film-net", 1)
        source = {"kind": "video", "fps": 0, "pace": "fast", "cameras": [{"name": "reel", "path": str(film)}]}
        watched = document(server.root, source=source)
        watched["name"], watched["links"] = "cinema", [{"from": {"model": "film-net"}, "to": "belt", "policy": "always-update"}]
        del watched["pipelines"][0]
        server.post("/ions", watched)
        decided = lambda: server.get("/decisions?ion=cinema&after=0&limit=500")["items"]
        wait_until(lambda: len(decided()) >= n, 60, "all pictures decided")
        self.assertEqual(sorted((one["camera"], one["frame"]) for one in decided()), [("reel", i) for i in range(n)])
        self.assertEqual({one["error"] for one in decided()}, {None})

    def test_the_example_sorts_clothing(self):
        """examples/sorting-belt on the first pictures of Fashion-MNIST, and what it says of pictures of the test split."""
        server, real = self.server, pathlib.Path(os.environ.get("WEIR_SHARED_DATA") or harness.ROOT.parent / "shared" / "data") / "fashion-mnist"
        if not real.is_dir():
            self.skipTest(f"{real} is not there")
        data, work = server.root / "fashion-mnist", server.root / "belt"
        data.mkdir()
        n_train, n_test = 3000, 200
        for split, n in (("train", n_train), ("t10k", n_test)):
            images = gzip.decompress((real / f"{split}-images-idx3-ubyte.gz").read_bytes())
            labels = gzip.decompress((real / f"{split}-labels-idx1-ubyte.gz").read_bytes())
            (data / f"{split}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 2051, n, 28, 28) + images[16:16 + n * 784])
            (data / f"{split}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 2049, n) + labels[8:8 + n])
        server.weir("dataset", "create", "clothing", "--path", str(data), "--kind", "idx")
        server.weir("dataset", "freeze", "clothing")
        folder = work / "frames" / "cam"
        folder.mkdir(parents=True)
        example = (harness.ROOT / "examples/sorting-belt/ion.yaml").read_text().replace("@WORK@", str(work))
        (server.root / "ion.yaml").write_text(example)
        server.weir("apply", "-f", str(server.root / "ion.yaml"))
        wait_until(lambda: server.get("/ions/sorting-belt")["links"][0]["serving_version"] == 1, 300, "its model live")
        for i in range(n_test):
            (folder / ".new").write_bytes(b"P5 28 28 255\n" + images[16 + i * 784:16 + (i + 1) * 784])
            (folder / ".new").rename(folder / f"{i}.pgm")
        wait_until(lambda: server.get("/decisions/summary?ion=sorting-belt")["decisions"] == n_test, 60, "all decisions")
        found = server.get("/decisions?ion=sorting-belt&after=0&limit=500")["items"]
        n_right = sum(one["labels"][0]["label"] == str(labels[8 + one["frame"]]) for one in found)
        n_named = sum(one["verdict"] == "label" for one in found)
        sure = [one["label"] == str(labels[8 + one["frame"]]) for one in found if one["verdict"] == "label"]
        print(f"clothing: {n_right} of {n_test} right; {n_named} named, {sum(sure)} of them rightly", file=sys.stderr)
        self.assertGreater(n_right / n_test, 0.7)
        self.assertGreater(sum(sure) / len(sure), n_right / n_test, "who is sure is righter")
        version = server.get("/models/sorting-belt.training/versions")["items"][0]
        blob = server.request("GET", f"/api/v1/blobs/{version['blob']}", raw=True)
        (server.root / "clothing.safetensors").write_bytes(blob)
        done = subprocess.run([WEIR, "evaluate", "--weights", server.root / "clothing.safetensors", "--data", data, "--format", "json"],
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertAlmostEqual(n_right / n_test, json.loads(done.stdout)["accuracy"], delta=1e-9)

    def test_the_example_counts_what_is_in_the_yard(self):
        """examples/counted-yard over a folder, with a detector that sees one thing in a bright picture."""
        server = self.server
        howto_given.list_detector(server.root / "people.onnx")
        said = server.weir("model", "push", "people", str(server.root / "people.onnx"))[1]
        self.assertRegex(said, r"detector Taken for yolo: version end2end")
        folder, file = server.root / "yard" / "cam", server.root / "yard.yaml"
        folder.mkdir(parents=True)
        example = re.sub(r"    source:\n(      .*\n)+", f"    source: {{kind: directory, path: {folder.parent}}}\n",
                         (harness.ROOT / "examples/counted-yard/ion.yaml").read_text())
        example = example.replace("over: 5", "over: 0").replace("for_s: 10 ", "for_s: 0\n        enter_ms: 0 ")
        for right, wrong, sentence in (
                ("model: people", "model: people, as: scrfd", r'\$.pipelines\[0\].stages: detect: version 1 of model "people": .*scrfd'),
                ("[[0.1, 0.4], [0.9, 0.4], [0.9, 1], [0.1, 1]]", "[[0, 0], [0.5, 0.5], [1, 1]]", r"\$.pipelines\[0\].stages\[3\].*no area")):
            self.assertIn(right, example)
            file.write_text(example.replace(right, wrong))
            status, _, said = server.weir("apply", "-f", str(file), "--dry-run", check=False)
            self.assertNotEqual(status, 0)
            self.assertRegex(said, sentence)
        file.write_text(example)
        server.weir("apply", "-f", str(file))
        wait_until(lambda: server.get("/ions/counted-yard")["pipelines"][0]["state"] == "SERVING", 60, "its detector live")
        (folder / ".new").write_bytes(b"P5 64 32 255\n" + b"\xff" * 64 * 32)
        (folder / ".new").rename(folder / "1.pgm")

        def alerts(state):
            return [one for one in server.get("/alerts?limit=200")["items"] if one["kind"] == "place_condition" and one["state"] == state]
        wait_until(lambda: alerts("open"), 30, "more than none is told")
        self.assertIn('Camera cam, place "dock": there are more than 0.', alerts("open")[0]["message"])
        wait_until(lambda: alerts("resolved"), 60, "nothing is there any more, by the clock")
        found = server.get("/decisions?ion=counted-yard&after=0&limit=500")["items"]
        self.assertEqual([one["counted"]["what"] for one in found], ["entered", "over", "left", "within"])
        self.assertEqual([one["label"] for one in found], ["0", "too many", "0", "within limits"])
        self.assertEqual([one["counted"]["n"] for one in found], [1, 1, 0, 0])
        self.assertEqual({(one["verdict"], one["model_version"], one["counted"]["place"]) for one in found}, {("label", 1, "dock")})
        self.assertEqual(found[2]["passage"]["first"], found[0]["time_ms"])

    def register(self, model, version):
        """A version that no job of this server made: trained at the command line."""
        data, weights = self.server.root / "by-hand", self.server.root / f"by-hand-{version}.safetensors"
        for name in CLASSES:
            (data / name).mkdir(parents=True, exist_ok=True)
            for seed in range(10):
                (data / name / f"{seed}.pgm").write_bytes(picture(name, seed))
        done = subprocess.run([WEIR, "train", "--model", "lenet", "--input", "1,16,16", "--data", data, "--epochs", "1", "--batch-size", "8",
                               "--seed", str(version), "--output", weights, "--workers", "1"], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.server.weir("model", "push", model, str(weights))

    def test_what_cannot_work_is_refused_with_what_to_change(self):
        embeds = document(self.server.root)
        embeds["pipelines"][0]["model"] = "face-embed"
        embeds["pipelines"][0]["parameters"] = {}
        people = document(self.server.root, gallery={"dataset": "shapes"})
        for wrong, said in ((embeds, "add gallery: {dataset: NAME}"), (people, "take the gallery of \"belt\" out")):
            wrong["name"] = "refused"
            with self.assertRaises(HttpError) as caught:
                self.server.post("/ions", wrong)
            self.assertEqual(caught.exception.error["status"], "UNSUPPORTED")
            self.assertIn(said, caught.exception.error["message"])


if __name__ == "__main__":
    harness.main()

"""A site of the benchmark: who is on it, the data sets that Weir learns from, and a server that decides about its cameras."""

import json
import os
import pathlib
import random
import subprocess
import sys
import time

import cv2
import scenes

ROOT = pathlib.Path(__file__).parents[2]
os.environ.setdefault("WEIR_BIN", str(ROOT / "build/release/programs"))
sys.path.insert(0, str(ROOT / "tests/system"))
from harness import Server, wait_until  # noqa: E402

N_UNKNOWN, N_IMPOSTORS, N_WALKERS = 3, 7, 8  # of the enrolled so many walk; the last of them is barred
PLACE = {"kind": "align", "by": "box", "left": 0.113, "top": 0.171, "right": 0.876, "bottom": 0.936}  # where both detectors' boxes lie in the photos
RATE_A_LOOK = 0.1  # of impostors, a look: of a passage several looks must agree
JUDGE = {"kind": "judge", "min_width": 24}  # the recogniser's own pictures show a face 38 pixels wide
TRACK = {"kind": "track", "n": 2, "m": 3, "accept": 0.01}  # who crosses is seen for two or three frames that say something new
DETECTORS = {"own": {"model": "finder"}, "centerface": {"model": "centerface"}}


class Cast:
    """Who is what in a draw."""

    def __init__(self, faces, seed):
        names = sorted(faces)
        self.draw = random.Random(seed)
        self.draw.shuffle(names)
        self.unknown, self.impostors = names[:N_UNKNOWN], names[N_UNKNOWN:N_UNKNOWN + N_IMPOSTORS]
        self.enrolled = names[N_UNKNOWN + N_IMPOSTORS:]
        self.barred = self.enrolled[N_WALKERS - 1]

    def walk(self):
        """An order of those who pass a camera, with their roles."""
        walkers = [(one, "enrolled") for one in self.enrolled[:N_WALKERS - 1]] + [(self.barred, "barred")]
        walkers += [(one, "unknown") for one in self.unknown]
        self.draw.shuffle(walkers)
        return walkers


def write_people(folder, people, faces, photos, n_photos, n_seen, draw):
    """A folder a person: photos, and the same as cameras would see them."""
    mask = scenes.head_mask()
    for person in people:
        (folder / person).mkdir(parents=True)
        pictures = faces[person][:n_photos]
        shown = pictures + [scenes.seen(draw, pictures, photos, mask) for _ in range(n_seen)]
        for i, picture in enumerate(shown):
            cv2.imwrite(str(folder / person / f"{i}.png"), picture)


def chain(detector, tracks, **more):
    stages = ["decode", {"kind": "detect", **DETECTORS[detector], **more}, PLACE, JUDGE, "embed", "match"]
    return stages + ([TRACK] if tracks else []) + ["decide"]


def cut_by(detector):
    """Parameters of a training whose photos are cut as such a chain cuts its frames."""
    options = {key: value for key, value in DETECTORS[detector].items() if key != "model"}
    place = {key: value for key, value in PLACE.items() if key != "kind"}
    return {"detector": DETECTORS[detector]["model"], "detect": json.dumps(options), "align": json.dumps(place)}


class Site:
    """A server with detectors, to which draws and doors are added."""

    def __init__(self):
        self.server = Server().start()
        self.folder = self.server.root / "site"
        self.folder.mkdir()

    def stop(self):
        self.server.stop()

    def dataset(self, name, folder):
        self.server.weir("dataset", "create", name)
        self.server.weir("dataset", "put", name, str(folder), timeout=600)
        self.server.weir("dataset", "freeze", name)

    def apply(self, document):
        path = self.folder / "ion.json"
        path.write_text(json.dumps({"kind": "ion", **document}))
        self.server.weir("apply", "-f", str(path))

    def start_training(self, name, **pipeline):
        """Of a version of the model that is called name."""
        self.apply({"name": f"train-{name}", "pipelines": [{"name": "training", "type": "training", "registers": name, **pipeline}]})
        self.server.weir("trigger", f"train-{name}")

    def wait_trained(self, name):
        def is_there():
            job = next((one for one in self.server.get("/jobs?limit=500")["items"] if one["name"].startswith(f"train-{name}.")), None)
            if job and job["state"] == "FAILED":
                raise AssertionError(f"{job['name']}: {job.get('reason')}")
            return job and job["state"] == "SUCCEEDED"

        wait_until(is_there, 3600, f"the training of {name}")

    def begin(self, name, model, dataset, barred, source, stages):
        """A door that decides, and notes it in a file."""
        entrance = {"name": "entrance", "type": "prediction", "source": source, "stages": stages,
                    "gallery": {"dataset": dataset, "impostors": f"{dataset}-others", "default": "allow", "false_accept_rate": RATE_A_LOOK},
                    "sinks": [{"kind": "jsonl", "path": str(self.folder / f"{name}.jsonl")}]}
        self.apply({"name": name, "pipelines": [entrance], "links": [{"from": {"model": model}, "to": "entrance", "policy": "always-update"}]})
        self.server.weir("member", "deny", name, barred)

    def wait_serving(self, name):
        """@return When it did, by this machine's clock in ms, and the file of its decisions."""
        def is_ready():
            pipeline = self.server.get(f"/ions/{name}")["pipelines"][0]
            if "FAILED" in pipeline["state"]:
                raise AssertionError(json.dumps(pipeline))
            return pipeline["state"] == "SERVING"

        wait_until(is_ready, 600, f"{name} serves")
        return time.time() * 1000, self.folder / f"{name}.jsonl"

    def end(self, names):
        for name in names:
            self.server.weir("delete", "ion", name, "--force")
        wait_until(lambda: not self.server.pids("weir-worker predict"), 60, f"{names} end")


class Cameras:
    """An RTSP server whose cameras play clips, again and again."""

    def __init__(self, folder, clips):
        self.log = folder / "sent.jsonl"
        self.log.unlink(missing_ok=True)
        command = ["/usr/bin/python3", str(pathlib.Path(__file__).with_name("rtsp.py")), "--log", str(self.log)]
        for clip in clips:
            command += ["--clip", str(clip)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().split()[1])
        self.n = len(clips)

    def url(self, i):
        return f"rtsp://127.0.0.1:{self.port}/camera-{i}"

    def source(self, fps=10):
        return {"kind": "rtsp", "fps": fps, "cameras": [{"name": f"camera-{i}", "url": self.url(i)} for i in range(self.n)]}

    def sent(self):
        """Of each camera its plays: lists of the frames' times, in ms."""
        plays = [{} for _ in range(self.n)]
        for line in self.log.read_text().splitlines():
            note = json.loads(line)
            plays[note["camera"]].setdefault(note["play"], []).append(note["time_ms"])
        return [list(one.values()) for one in plays]

    def stop(self):
        self.process.terminate()
        self.process.wait()

#!/usr/bin/env python3
"""Single looks at the faces of one draw's scene, without detector, server or video: is somebody known, and how far may a box lie beside the face?

    bench/cameras/looks.py [--draw 1] [--steps 700] [--augment face] [--seen 25] [--beside 0.04,0.08] [--faces DIR] [--photos DIR]

Trains `face-embed` as run.py does, with one thread, and compares every fourth frame's faces, cut by their true boxes moved at random (deviation, in
face widths; their size by one and a half times that), with the gallery. The threshold is what the stated share of the impostors' photos reach.
Needs onnxruntime and cv2: run it by build/peers/venv/bin/python.
"""

import argparse
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

import cv2
import numpy
import onnxruntime

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import scenes  # noqa: E402
from grounds import JUDGE, Cast, write_people  # noqa: E402
from truth import SEEN  # noqa: E402

N_PHOTOS, N_GALLERY, SIZE, EVERY = 5, 15, (1920, 1080), 4
RATES = (.1, .05, .01)


class Recogniser:
    """A model file of face-embed, run by onnxruntime."""

    def __init__(self, worker, weights):
        onnx = weights.with_suffix(".onnx")
        subprocess.run([worker, "export", weights, "--output", onnx], check=True, stdout=subprocess.DEVNULL)
        with open(weights, "rb") as file:
            header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        self.input = json.loads(header["__metadata__"]["weir.input"])
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(str(onnx), options, providers=["CPUExecutionProvider"])

    def embed(self, picture):
        small = cv2.resize(picture, (self.input["w"], self.input["h"]), interpolation=cv2.INTER_AREA) / 255
        small = ((small - self.input["mean"][0]) / self.input["std"][0]).astype(numpy.float32)
        name = self.session.get_inputs()[0].name
        both = [self.session.run(None, {name: numpy.ascontiguousarray(one[None, None])})[0].ravel() for one in (small, small[:, ::-1])]
        vector = sum(one / numpy.linalg.norm(one) for one in both)
        return vector / numpy.linalg.norm(vector)

    def embed_all(self, folder, people, n):
        return numpy.array([self.embed(cv2.imread(str(folder / person / f"{i}.png"), cv2.IMREAD_GRAYSCALE)) for person in people for i in range(n)])


def train(worker, folder, given, cast):
    draw = given.draw
    write_people(folder / "people", cast.enrolled, given.faces, given.photos, N_PHOTOS, given.seen, random.Random(draw))
    write_people(folder / "others", cast.impostors, given.faces, given.photos, 10, 10, random.Random(draw + 1000))
    subprocess.run([worker, "train", "--model", "face-embed", "--data", folder / "people", "--steps", str(given.steps), "--augment", given.augment, "--threads", "1",
                    "--output", folder / "faces.safetensors"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return Recogniser(worker, folder / "faces.safetensors")


def looks(given, cast, beside, recogniser):
    """Of each face that is seen: role, person, embedding."""
    draw, moved = random.Random(100 + given.draw), random.Random(5)
    people = scenes.people_of(draw, cast.walk(), given.faces, given.photos, SIZE, 20)
    background, roles = scenes.background_of(draw.choice(given.photos), SIZE), {one.number: one.role for one in people}
    noise = numpy.random.default_rng(given.draw).normal(0, 2.5, (1, SIZE[1], SIZE[0], 3)).astype(numpy.int8)
    for number in range(0, 200, EVERY):
        picture, there = scenes.frame_of(background, people, (1190, 1240), number / 10, number, noise)
        grey = cv2.cvtColor(cv2.imdecode(cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, 70])[1], cv2.IMREAD_COLOR), cv2.COLOR_BGR2GRAY)
        for one in there:
            x, y, w, h = one["box"]
            if one["visible"] >= SEEN and w >= JUDGE["min_width"]:
                by = 1 + moved.gauss(0, 1.5 * beside)
                x, y = x + moved.gauss(0, beside) * w + w * (1 - by) / 2, y + moved.gauss(0, beside) * h + h * (1 - by) / 2
                yield roles[one["passage"]], one["person"], recogniser.embed(scenes.cut(grey, (x, y, w * by, h * by)))


def report(given, cast, folder, recogniser):
    n = min(N_GALLERY, N_PHOTOS + given.seen)
    gallery, owners = recogniser.embed_all(folder / "people", cast.enrolled, n), [one for one in cast.enrolled for _ in range(n)]
    scores = numpy.sort((recogniser.embed_all(folder / "others", cast.impostors, 20) @ gallery.T).max(1))
    thresholds = [scores[int(len(scores) * (1 - rate)) - 1] for rate in RATES]
    for beside in map(float, given.beside.split(",")):
        known, unknown = [], []
        for role, person, vector in looks(given, cast, beside, recogniser):
            found = gallery @ vector
            (unknown if role == "unknown" else known).append((found.max(), owners[int(found.argmax())] == person))
        right = " ".join(f"{numpy.mean([is_right and score >= one for score, is_right in known]):.2f}" for one in thresholds)
        wrong = " ".join(f"{numpy.mean([score >= one for score, _ in unknown]):.2f}" for one in thresholds)
        print(f"draw {given.draw}, {given.steps} steps, {given.augment}, {given.seen} seen, beside by {beside}: looks {len(known)}, first right "
              f"{numpy.mean([is_right for _, is_right in known]):.2f}; known at 10, 5, 1 % a look: {right}; unknown, {len(unknown)} looks: {wrong}", flush=True)


def main():
    shared = pathlib.Path(os.environ.get("WEIR_SHARED_DATA", str(pathlib.Path(__file__).parents[3] / "shared/data")))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("--draw", 1), ("--steps", 700), ("--seen", 25), ("--augment", "face"), ("--beside", "0.04,0.08"), ("--faces", str(shared / "orl_faces")),
                          ("--photos", str(shared / "clothing-small/validation"))):
        parser.add_argument(name, default=default, type=type(default))
    given = parser.parse_args()
    given.faces, given.photos = scenes.faces_in(given.faces), scenes.photos_in(given.photos, 60)
    cv2.setNumThreads(1)
    cast, worker = Cast(given.faces, given.draw), pathlib.Path(os.environ["WEIR_BIN"]) / "weir-worker"
    with tempfile.TemporaryDirectory() as name:
        report(given, cast, pathlib.Path(name), train(worker, pathlib.Path(name), given, cast))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""howto_given.py WHAT …: makes what the reader of a how-to page has already, of the smallest kind (see howto.py)."""
import http.server
import io
import os
import pathlib
import random
import socket
import struct
import sys
import zipfile
import zlib

import harness
from harness import onnx_model

sys.path.insert(0, str(harness.ROOT / "bench"))
from serving import drawn_face  # noqa: E402


def png(rows):
    """Grey pixels as a PNG."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 0, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def people(folder, *names, photos=6):
    """A folder of photos for each person."""
    for name in names:
        photographs(pathlib.Path(folder) / name, name, photos)


def photographs(folder, name, photos=3):
    """Photos of one person."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for photo in range(int(photos)):
        (folder / f"{photo}.pgm").write_bytes(drawn_face(zlib.crc32(name.encode()), photo, 32))


def classes(folder, pictures, *names, side=28):
    """A folder with so many pictures for each class: bars of an own width."""
    for number, name in enumerate(names):
        place = pathlib.Path(folder) / name
        place.mkdir(parents=True, exist_ok=True)
        for picture in range(int(pictures)):
            dice = random.Random(f"{name} {picture}")
            phase = dice.randint(0, 3)
            (place / f"{picture:04}.png").write_bytes(png([[(200 if (x + phase) // (number + 1) % 2 else 40) + dice.randint(0, 15)
                                                            for x in range(side)] for _ in range(side)]))


def picture(file, side=64):
    """One picture."""
    pathlib.Path(file).write_bytes(png([[(x * y) % 256 for x in range(int(side))] for y in range(int(side))]))


def classifier(file, n_classes, seed=1):
    """An ONNX file that takes coloured pictures and gives probabilities."""
    dice, n = random.Random(int(seed)), int(n_classes)
    pathlib.Path(file).write_bytes(onnx_model(
        [("GlobalAveragePool", ["x"], "p"), ("Flatten", ["p"], "f"), ("MatMul", ["f", "w"], "z"), ("Softmax", ["z"], "y")],
        {"w": ((3, n), [dice.uniform(-1, 1) for _ in range(3 * n)])}, ("x", (None, 3, 224, 224)), ("y", (None, n))))


def list_detector(file):
    """An ONNX file with a finished list of one box, whose score is how bright the picture is: one thing in light, none in the dark."""
    n = 3 * 32 * 64
    pathlib.Path(file).write_bytes(onnx_model(
        [("Flatten", ["x"], "f"), ("MatMul", ["f", "w"], "m"), ("Add", ["m", "b"], "y")],
        {"w": ((1, n, 6), [0, 0, 0, 0, 1 / n, 0] * n), "b": ((1, 1, 6), [16, 6, 48, 28, 0, 0])},
        ("x", (1, 3, 32, 64)), ("y", (1, 1, 6))))


def model(file, name="one"):
    """An ONNX file that adds 1 to four numbers. Another name is another file."""
    pathlib.Path(file).write_bytes(onnx_model([("Add", ["x", name], "y")], {name: ((), [1])}, ("x", (None, 4)), ("y", (None, 4))))


def detector(file, window=48, scale=(3.3, 3.1)):
    """A detector of faces as CenterFace's file is, whose input says 32 × 32: what is bright before a dark wall it calls a face.
    window, scale: how large."""
    n, each = 3, [("strides", [4, 4])]
    around = [*each, ("pads", [(window - 4) // 2] * 4)]
    points = [0.45, 0.33, 0.45, 0.67, 0.6, 0.5, 0.78, 0.36, 0.78, 0.64]  # y, x of eyes, nose, corners of the mouth
    constants = {"w": ((1, n, window, window), [0.05 / n / window ** 2] * (n * window ** 2)), "b": ((1,), [-5.0])}
    nodes = [("Conv", ["input.1", "w", "b"], "bright", around), ("Sigmoid", ["bright"], "heat")]
    for name, values in (("scale", list(scale)), ("offset", [0, 0]), ("points", points)):
        constants |= {f"{name}.w": ((len(values), n, 1, 1), [0.0] * (n * len(values))), f"{name}.b": ((len(values),), values)}
        nodes.append(("Conv", ["input.1", f"{name}.w", f"{name}.b"], name, each))
    pathlib.Path(file).write_bytes(onnx_model(nodes, constants, ("input.1", (10, n, 32, 32)), [
        (name, (10, k, 8, 8)) for name, k in (("heat", 1), ("scale", 2), ("offset", 2), ("points", 10))]))


def wheel(folder, name):
    """A package for pip that has one empty module."""
    info, out = f"{name}-1.0.dist-info", io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(f"{name}.py", "")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", f"{name}.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    (pathlib.Path(folder) / f"{name}-1.0-py3-none-any.whl").write_bytes(out.getvalue())


class Listener(http.server.SimpleHTTPRequestHandler):
    """Gives the files of its folder, and takes whatever is sent."""

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def web(folder):
    """The address of a web server of this folder, which lives as long as the page is played."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), lambda *words: Listener(*words, directory=folder))
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    if os.fork() == 0:
        for fd in (0, 1, 2):
            os.dup2(os.open(os.devnull, os.O_RDWR), fd)
        server.serve_forever()


def port():
    """A port that is free."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1])


if __name__ == "__main__":
    made = {function.__name__: function for function in (people, photographs, classes, picture, classifier, model, detector, list_detector, wheel, web, port)}
    made[sys.argv[1]](*sys.argv[2:])

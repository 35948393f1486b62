"""Faces in streams the way a script does it: OpenCV reads and aligns, onnxruntime detects and embeds.

peer.py --detector FILE --embedder FILE --people N --seconds S [--settle S] [--naive] URL…

--detector  CenterFace (ONNX); its weights are taken out of the graph's inputs, or onnxruntime folds nothing (not with --naive)
--naive     as first written: the file as it is, one loop over the cameras, onnxruntime's own threads

A thread a camera keeps the newest frame; as many workers as cores detect (640 x 384), align by five points, embed (colour or grey, as the network
takes it), and compare with N rows.
--settle: so long it runs before the tuned way is measured, for what has waited since the cameras were opened.
Prints one JSON object: frames decided, by camera; CPU seconds; for each frame its number in the picture and when it was decided.
"""

import argparse
import json
import os
import resource
import threading
import time

import cv2
import numpy
import onnx
import onnxruntime

from scenes import read_number

WIDTH, HEIGHT, LEAST, OVERLAP = 640, 384, 0.5, 0.3
TEMPLATE = numpy.array([[38.2946, 51.6963], [73.5318, 51.5014], [56.0252, 71.7366], [41.5493, 92.3655], [70.7299, 92.2041]], numpy.float32)


def session_of(path, is_naive, is_detector):
    model = onnx.load(path)
    weights = {one.name for one in model.graph.initializer}
    options = onnxruntime.SessionOptions()
    if not is_naive:
        inputs = [one for one in model.graph.input if one.name not in weights]
        del model.graph.input[:]
        model.graph.input.extend(inputs)
        options.intra_op_num_threads = 1
    first = next(one for one in model.graph.input if one.name not in weights)
    if is_detector:
        for place, side in zip(first.type.tensor_type.shape.dim, ("N", 3, "H", "W")):
            place.Clear()
            if isinstance(side, int):
                place.dim_value = side
            else:
                place.dim_param = side
        for output in model.graph.output:
            output.type.tensor_type.ClearField("shape")
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]), first.name


class Pipeline:
    def __init__(self, given):
        self.detector, self.detector_input = session_of(given.detector, given.naive, True)
        self.embedder, self.embedder_input = session_of(given.embedder, given.naive, False)
        self.people = numpy.random.default_rng(1).normal(size=(given.people, self.embedder.get_outputs()[0].shape[1])).astype(numpy.float32)
        self.people /= numpy.linalg.norm(self.people, axis=1, keepdims=True)

    def detect(self, frame):
        blob = cv2.dnn.blobFromImage(frame, 1.0, (WIDTH, HEIGHT), swapRB=True)
        heat, scale, offset, points = self.detector.run(None, {self.detector_input: blob})
        rows, columns = numpy.where(heat[0, 0] > LEAST)
        if len(rows) == 0:
            return []
        size = numpy.exp(scale[0][:, rows, columns]) * 4
        middle_y, middle_x = (rows + offset[0, 0, rows, columns] + .5) * 4, (columns + offset[0, 1, rows, columns] + .5) * 4
        x, y = middle_x - size[1] / 2, middle_y - size[0] / 2
        kept = cv2.dnn.NMSBoxes(numpy.stack([x, y, size[1], size[0]], 1).tolist(), heat[0, 0, rows, columns].tolist(), LEAST, OVERLAP)
        found = points[0][:, rows, columns]
        faces = []
        for i in numpy.array(kept).flatten():
            five = numpy.array([[found[2 * k + 1, i] * size[1, i] + x[i], found[2 * k, i] * size[0, i] + y[i]] for k in range(5)], numpy.float32)
            faces.append(five * (frame.shape[1] / WIDTH, frame.shape[0] / HEIGHT))
        return faces

    def embed(self, frame, five):
        matrix, _ = cv2.estimateAffinePartial2D(five.astype(numpy.float32), TEMPLATE, method=cv2.LMEDS)
        if matrix is None:
            return
        face = cv2.warpAffine(frame, matrix, (112, 112))
        _, channels, height, width = self.embedder.get_inputs()[0].shape
        face = cv2.cvtColor(face, cv2.COLOR_BGR2GRAY) if channels == 1 else face
        vector = self.embedder.run(None, {self.embedder_input: cv2.dnn.blobFromImage(face, 1 / 127.5, (width, height), 127.5, swapRB=channels == 3)})[0][0]
        vector /= numpy.linalg.norm(vector)
        (self.people @ vector).argmax()

    def decide(self, frame):
        for five in self.detect(frame):
            self.embed(frame, five)


class Newest:
    """The newest frame of each camera; whoever takes it leaves none."""

    def __init__(self):
        self.frames, self.changed, self.is_over = {}, threading.Condition(), False

    def put(self, camera, frame):
        with self.changed:
            self.frames[camera] = frame
            self.changed.notify()

    def take(self):
        with self.changed:
            while not self.frames and not self.is_over:
                self.changed.wait()
            return self.frames.popitem() if self.frames else (None, None)

    def end(self):
        with self.changed:
            self.is_over = True
            self.changed.notify_all()


def open_camera(url):
    camera = cv2.VideoCapture(url, cv2.CAP_FFMPEG)
    if not camera.isOpened():
        raise SystemExit(f"{url} cannot be opened")
    return camera


def read(number, camera, newest):
    while not newest.is_over:
        is_there, frame = camera.read()
        if not is_there:
            return
        newest.put(number, frame)


def note(decided, camera, frame):
    number = read_number(frame[:, :, 0])
    decided.append({"camera": camera, "frame": number, "time_ms": time.time() * 1000})


def work(pipeline, newest, decided):
    while True:
        camera, frame = newest.take()
        if frame is None:
            return
        pipeline.decide(frame)
        note(decided, camera, frame)


def play_tuned(pipeline, cameras, seconds, settle):
    newest, decided = Newest(), []
    threads = [threading.Thread(target=read, args=(i, camera, newest)) for i, camera in enumerate(cameras)]
    threads += [threading.Thread(target=work, args=(pipeline, newest, decided)) for _ in range(os.cpu_count())]
    for one in threads:
        one.start()
    time.sleep(settle)  # what has waited since the cameras were opened is over then
    decided.clear()
    before, begin = used_s(), time.monotonic()
    time.sleep(seconds)
    told = {"seconds": time.monotonic() - begin, "cpu_s": used_s() - before, "n_frames": len(decided), "decided": list(decided)}
    newest.end()
    for one in threads:
        one.join()
    return told


def play_naive(pipeline, cameras, seconds, _settle):
    decided, before, begin = [], used_s(), time.monotonic()
    end = begin + seconds
    while time.monotonic() < end:
        for number, camera in enumerate(cameras):
            is_there, frame = camera.read()
            if is_there:
                pipeline.decide(frame)
                note(decided, number, frame)
    return {"seconds": time.monotonic() - begin, "cpu_s": used_s() - before, "n_frames": len(decided), "decided": decided}


def used_s():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("urls", nargs="+", metavar="URL")
    parser.add_argument("--detector", required=True)
    parser.add_argument("--embedder", required=True)
    parser.add_argument("--people", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=12)
    parser.add_argument("--settle", type=float, default=6)
    parser.add_argument("--naive", action="store_true")
    given = parser.parse_args()
    if not given.naive:
        cv2.setNumThreads(1)
    pipeline = Pipeline(given)
    cameras = [open_camera(url) for url in given.urls]
    print(json.dumps((play_naive if given.naive else play_tuned)(pipeline, cameras, given.seconds, given.settle)), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()

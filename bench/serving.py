#!/usr/bin/python3
"""Frame to decision: latency quiet, while two workers train beside it, and under swaps.

Starts a server of its own, trains a recogniser on drawn faces, then sends frames of 112 x 112 pixels
at a fixed rate over HTTP and reads the recorded decisions: latency_us is from the last byte of the
frame received to the decision handed to the sinks, durable_us until it is on disk.

    bench/serving.py [--fps 100] [--seconds 20] [--swaps 100] [-o json]

Prints medians and 99th percentiles of each phase, and the ratio under swaps to that without.
"""
import argparse
import http.client
import json
import pathlib
import random
import socket
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests/system"))
import harness  # noqa: E402
from harness import Server, wait_until  # noqa: E402

ION = {
    "kind": "ion", "name": "bench", "project": "default",
    "pipelines": [
        {"name": "training", "type": "training", "dataset": "faces", "model": "face-embed", "workers": 2,
         "parameters": {"epochs": 30, "batch_size": 32}, "triggers": {"manual": True}},
        {"name": "door", "type": "prediction", "replicas": 1, "source": {"kind": "http", "listen": None},
         "gallery": {"dataset": "faces", "false_accept_rate": 0.01, "default": "allow"}},
    ],
    "links": [{"from": "training", "to": "door", "policy": "always-update"}],
}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def drawn_face(person, photo, size=112):
    """A blob face of its own kind: enough for a recogniser to learn, no data needed."""
    who, how = random.Random(person), random.Random(person * 1000 + photo)
    cx, cy = 0.5 + how.gauss(0, 0.02), 0.5 + how.gauss(0, 0.02)
    marks = [(who.uniform(.2, .8), who.uniform(.2, .8), who.uniform(.03, .15), who.uniform(-120, 120)) for _ in range(9)]
    light, rows = how.uniform(-30, 30), bytearray()
    for y in range(size):
        for x in range(size):
            u, v = x / size - cx + .5, y / size - cy + .5
            tone = 128 + light * (u - .5)
            for mx, my, r, t in marks:
                d = ((u - mx) ** 2 + (v - my) ** 2) / (r * r)
                if d < 4:
                    tone += t * (1 - d / 4)
            rows.append(max(0, min(255, int(tone + how.gauss(0, 4)))))
    return b"P5\n%d %d\n255\n" % (size, size) + bytes(rows)


class Camera(threading.Thread):
    """Sends frames at a rate; a frame that is not answered with 200 counts as failed."""

    def __init__(self, port, name, fps, photos, first):
        super().__init__()
        self.port, self.camera, self.fps, self.photos, self.first = port, name, fps, photos, first
        self.sent, self.failed, self.stopping = 0, 0, threading.Event()

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        due = time.monotonic()
        while not self.stopping.is_set():
            try:
                connection.request("POST", f"/frames/{self.camera}/{self.first + self.sent}",
                                   self.photos[self.sent % len(self.photos)])
                answer = connection.getresponse()
                answer.read()
                self.failed += answer.status != 200
            except OSError:
                self.failed += 1
                connection.close()
            self.sent += 1
            due += 1 / self.fps
            time.sleep(max(0, due - time.monotonic()))


def quantile(values, q):
    values = sorted(values)
    return values[min(len(values) - 1, int(q * len(values)))] if values else float("nan")


class Bench:
    def __init__(self, options):
        self.options, self.server, self.port, self.first = options, Server().start(), free_port(), 0
        self.people = 12
        self.shown = [drawn_face(p, k) for p in range(self.people) for k in range(5, 8)]
        random.Random(1).shuffle(self.shown)

    def serving_version(self):
        return self.server.get("/ions/bench")["links"][0]["serving_version"] or 0

    def train(self):
        before = self.serving_version()
        self.server.post("/ions/bench/trigger", {"pipeline": "training"})
        wait_until(lambda: self.serving_version() > before, 900, "a new model")

    def prepare(self):
        self.server.post("/datasets", {"name": "faces"})
        for person in range(self.people):
            for photo in range(5):
                self.server.request("PUT", f"/api/v1/datasets/faces/files/p{person:02}/{photo}.pgm",
                                    drawn_face(person, photo))
        self.server.post("/datasets/faces/versions")
        ION["pipelines"][1]["source"]["listen"] = f"127.0.0.1:{self.port}"
        self.server.post("/ions", ION)
        wait_until(lambda: self.serving_version() >= 1, 900, "the first model")
        self.train()
        wait_until(self.answers, 120, "the replica to answer")

    def answers(self):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
            self.first += 1
            connection.request("POST", f"/frames/probe/{self.first}", self.shown[0])
            return connection.getresponse().status == 200
        except OSError:
            return False

    def phase(self, name, seconds, meanwhile=None):
        after = self.server.get("/decisions/summary?ion=bench")["last_seq"]
        cameras = [Camera(self.port, f"{name}-{i}", self.options.fps / 2, self.shown, 0) for i in range(2)]
        for camera in cameras:
            camera.start()
        begun = time.monotonic()
        if meanwhile:
            meanwhile()
        time.sleep(max(0, seconds - (time.monotonic() - begun)))
        for camera in cameras:
            camera.stopping.set()
        for camera in cameras:
            camera.join()
        sent = sum(c.sent for c in cameras)
        decisions = wait_until(lambda: (lambda d: d if len(d) >= sent else None)(self.decisions(after, name)), 60,
                               "all decisions")
        latency = [d["latency_us"] / 1000 for d in decisions]
        durable = [d["durable_us"] / 1000 for d in decisions if d["durable_us"] and d["durable_us"] > 0]
        return {"sent": sent, "failed": sum(c.failed for c in cameras), "decisions": len(decisions),
                "lost": sent - len({(d["camera"], d["frame"]) for d in decisions}),
                "versions": len({d["model_version"] for d in decisions}),
                "p50_ms": quantile(latency, .5), "p99_ms": quantile(latency, .99), "max_ms": max(latency),
                "durable_p50_ms": quantile(durable, .5), "durable_p99_ms": quantile(durable, .99)}

    def decisions(self, after, name):
        found = []
        while True:
            items = self.server.get(f"/decisions?ion=bench&after={after}&limit=1000")["items"]
            if not items:
                return found
            found += [d for d in items if d["camera"].startswith(name)]
            after = items[-1]["seq"]

    def swap_many(self):
        """Each roll-back to the other version is a whole swap: load, warm up, re-embed, switch."""
        for i in range(self.options.swaps):
            version = 1 + i % 2
            self.server.post("/ions/bench/rollback", {"version": version})
            revision = self.revision()
            wait_until(lambda: self.deployed() >= revision, 60, "the swap")

    def revision(self):
        return self.server.get("/ions/bench/pipelines/door/deployment")["revision"]

    def deployed(self):
        job = next(p for p in self.server.get("/ions/bench")["pipelines"] if p["name"] == "door")["job"]
        folder = self.server.state / "replicas" / f"{job}-0"
        try:
            return json.loads((folder / "deployment.json").read_text()).get("revision", 0)
        except (OSError, ValueError):
            return 0

    def run(self):
        report = {"fps": self.options.fps, "seconds": self.options.seconds}
        self.prepare()
        report["quiet"] = self.phase("quiet", self.options.seconds)
        report["training"] = self.phase("training", self.options.seconds, self.train)
        report["swapping"] = self.phase("swapping", self.options.seconds, self.swap_many)
        report["swaps"] = self.options.swaps
        report["swap_p99_ratio"] = report["swapping"]["p99_ms"] / report["quiet"]["p99_ms"]
        return report


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fps", type=float, default=100)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--swaps", type=int, default=100)
    parser.add_argument("-o", dest="output", choices=["text", "json"], default="text")
    bench = Bench(parser.parse_args())
    try:
        report = bench.run()
    finally:
        bench.server.stop()
    if bench.options.output == "json":
        print(json.dumps(report, indent=2))
        return
    print(f"{'phase':10} {'sent':>6} {'lost':>5} {'failed':>6} {'p50 ms':>8} {'p99 ms':>8} {'max ms':>8} {'durable p99':>12}")
    for phase in ("quiet", "training", "swapping"):
        r = report[phase]
        print(f"{phase:10} {r['sent']:6} {r['lost']:5} {r['failed']:6} {r['p50_ms']:8.2f} {r['p99_ms']:8.2f} "
              f"{r['max_ms']:8.2f} {r['durable_p99_ms']:12.2f}")
    print(f"{report['swaps']} swaps: p99 {report['swap_p99_ratio']:.2f} x that without")


if __name__ == "__main__":
    main()

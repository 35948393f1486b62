#!/usr/bin/python3
"""Frame to decision: latency quiet, while two workers train beside it, and under swaps.

Starts a server of its own, trains a recogniser on drawn faces, then sends frames of 112 x 112 pixels
at a fixed rate over HTTP and reads the recorded decisions: latency_us is from the last byte of the
frame received to the decision handed to the sinks, durable_us until it is on disk.

    bench/serving.py [--fps 100] [--seconds 20] [--swaps 100] [--rounds 3] [-o json]

The phases alternate for some rounds. Prints median and 99th percentile of each, and the median over the
rounds of the p99 under swaps to that without.
"""
import argparse
import http.client
import json
import os
import pathlib
import random
import socket
import statistics
import sys
import threading
import time

ROOT = pathlib.Path(__file__).parents[1]
os.environ.setdefault("WEIR_BIN", str(ROOT / "build/release/programs"))
sys.path.insert(0, str(ROOT / "tests/system"))
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


def say(text):
    print(text, file=sys.stderr, flush=True)


def free_port():
    """A port below those that Linux gives to outgoing connections: whoever tries to reach a server that
    is down would sooner or later be given its port, and keep it from coming back."""
    while True:
        port = random.randrange(20000, 32768)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


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
        say(f"drawing {self.people} people")
        for person in range(self.people):
            for photo in range(5):
                self.server.request("PUT", f"/api/v1/datasets/faces/files/p{person:02}/{photo}.pgm",
                                    drawn_face(person, photo))
        self.server.post("/datasets/faces/versions")
        ION["pipelines"][1]["source"]["listen"] = f"127.0.0.1:{self.port}"
        self.server.post("/ions", ION)
        say("training two versions")
        self.train()
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
        say(f"{name}: {self.options.fps:g} frames/s for at least {seconds:g} s")
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
                "swaps": sum(a["model_version"] != b["model_version"] for a, b in zip(decisions, decisions[1:])),
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

    def train_throughout(self):
        """Trainings back to back, until the phase's time is over."""
        end = time.monotonic() + self.options.seconds
        while time.monotonic() < end:
            self.train()

    def run(self):
        self.prepare()
        rounds = []
        for _ in range(self.options.rounds):
            rounds.append({
                "quiet": self.phase(f"quiet{len(rounds)}", self.options.seconds),
                "training": self.phase(f"training{len(rounds)}", self.options.seconds, self.train_throughout),
                "swapping": self.phase(f"swapping{len(rounds)}", self.options.seconds, self.swap_many)})
        ratios = [r["swapping"]["p99_ms"] / r["quiet"]["p99_ms"] for r in rounds]
        return {"fps": self.options.fps, "seconds": self.options.seconds, "swaps": self.options.swaps,
                "rounds": rounds, "swap_p99_ratio": statistics.median(ratios)}


def print_table(report):
    print(f"{'phase':10} {'sent':>6} {'lost':>5} {'failed':>6} {'swaps':>6} {'p50 ms':>8} {'p99 ms':>8} {'max ms':>8} "
          f"{'durable p99':>12}")
    for r in report["rounds"]:
        for name, p in r.items():
            print(f"{name:10} {p['sent']:6} {p['lost']:5} {p['failed']:6} {p['swaps']:6} {p['p50_ms']:8.2f} "
                  f"{p['p99_ms']:8.2f} {p['max_ms']:8.2f} {p['durable_p99_ms']:12.2f}")
    print(f"p99 under {report['swaps']} swaps a round: {report['swap_p99_ratio']:.2f} x that without (median)")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fps", type=float, default=100)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--swaps", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("-o", dest="output", choices=["text", "json"], default="text")
    bench = Bench(parser.parse_args())
    try:
        report = bench.run()
    finally:
        bench.server.stop()
    if bench.options.output == "json":
        print(json.dumps(report, indent=2))
    else:
        print_table(report)


if __name__ == "__main__":
    main()

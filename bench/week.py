#!/usr/bin/env python3
"""week.py [--scale N] [--hours H]: does the disk reach a plateau under its bound, and is no frame lost?

A door with 3 cameras at 10 frames/s decides 18.1 million frames in seven days. This ships them to a server of its own
as replicas do, with a picture each of the size that a face has (about 1.9 kB), --rate frames a second: 1500 is fifty times what a door
sends, and deletion has to keep up with that.
--scale divides both: the number of frames and the bounds of retention (default 20). --scale 1 is the week itself, more than an hour.
At this rate sizes are reached long before ages, so ages play no part. Since time is compressed, the limits are applied
once a second instead of once a minute.

Prints a line for each simulated day (state folder, database, pictures, rows), then what it found; ends with 1 if the
folder passed its bound, a decision is missing, or a step held the writer too long.
"""
import argparse
import base64
import hashlib
import json
import pathlib
import random
import sqlite3
import sys
import threading
import time
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests/system"))
import harness  # noqa: E402

FPS, CAMERAS, BATCH = 30, 3, 200
BOUNDS = {"decisions": 1200e6, "pictures": 800e6}
WHOLE_BOUND = 5e9


def make_pictures():
    """JPEG-like bytes do not compress; their length is that of a face of 112 pixels."""
    chance = random.Random(7)
    return [b"\xff\xd8" + chance.randbytes(chance.randint(1500, 2300)) for _ in range(64)]


class Week:
    def __init__(self, server, frames, scale, rate):
        self.server, self.frames, self.scale, self.rate = server, frames, scale, rate
        self.began = time.monotonic()
        self.pictures = [(base64.b64encode(p).decode(), hashlib.sha256(p).hexdigest()) for p in make_pictures()]
        self.stored = self.failed = 0
        self.latencies = []
        self.lock = threading.Lock()

    def decision(self, camera, frame):
        picture, digest = self.pictures[frame % len(self.pictures)]
        now = int(time.time() * 1000)
        ident = f"{now:012x}"
        return {"id": f"{ident[:8]}-{ident[8:]}-7{uuid.uuid4().hex[:3]}-8{uuid.uuid4().hex[:3]}-{uuid.uuid4().hex[:12]}",
                "ion": "building-security", "pipeline": "recognition", "replica": "recognition-0",
                "camera": f"entrance-{camera}", "frame": frame, "time_ms": now, "verdict": "grant",
                "person": f"person-{frame % 70}", "score": 0.8123456789, "threshold": 0.4234567891,
                "model_version": 3, "gallery_version": 5, "list_revision": 2, "latency_us": 1234, "durable_us": 4321,
                "brightness": 0.4712345678, "error": None, "image": digest, "picture": picture}

    def feed(self, camera):
        for first in range(0, self.frames // CAMERAS, BATCH):
            n = min(BATCH, self.frames // CAMERAS - first)
            body = {"ion": "building-security", "pipeline": "recognition",
                    "decisions": [self.decision(camera, first + i) for i in range(n)]}
            due = self.began + CAMERAS * first / self.rate
            time.sleep(max(0.0, due - time.monotonic()))
            began = time.monotonic()
            answer = self.server.request("POST", "/api/v1/decisions", body)
            took = time.monotonic() - began
            with self.lock:
                self.stored += answer["stored"]
                self.latencies.append(took)

    def usage(self):
        answer = self.server.get("/store/usage")
        return answer, {item["kind"]: item for item in answer["items"]}


def run(server, arguments):
    frames = int(arguments.hours * 3600 * FPS / arguments.scale) // CAMERAS * CAMERAS
    week = Week(server, frames, arguments.scale, arguments.rate)
    limits = {kind: f"{int(bound / arguments.scale)}B" for kind, bound in BOUNDS.items()}
    server.request("PUT", "/api/v1/retention", limits)
    print(f"{frames} frames, bounds {limits}", flush=True)
    print("day  all MB  database MB  pictures MB  rows  stored", flush=True)
    feeders = [threading.Thread(target=week.feed, args=(camera,)) for camera in range(CAMERAS)]
    began = time.monotonic()
    for feeder in feeders:
        feeder.start()
    day_frames = 24 * 3600 * FPS / arguments.scale
    days, peak, peaks = 0, 0, []
    while any(feeder.is_alive() for feeder in feeders):
        server.post("/store/sweep")
        time.sleep(1)
        answer, kinds = week.usage()
        peak = max(peak, answer["total_bytes"])
        while week.stored >= (days + 1) * day_frames or (week.stored == frames and days == 0):
            days += 1
            peaks.append(answer["total_bytes"])
            print(f"{days:3}  {answer['total_bytes'] / 1e6:6.0f}  {kinds['database']['used_bytes'] / 1e6:11.0f}  "
                  f"{kinds['pictures']['used_bytes'] / 1e6:11.0f}  {kinds['decisions']['n']}  {week.stored}", flush=True)
    seconds = time.monotonic() - began
    settled = week_settles(server, week)
    return report(server, week, arguments, peak, seconds, settled)


def week_settles(server, week):
    server.post("/store/sweep")
    bound = BOUNDS["decisions"] / week.scale
    return harness.wait_until(lambda: week.usage()[1]["decisions"]["used_bytes"] <= bound, 120, "the last sweep")


def report(server, week, arguments, peak, seconds, settled):
    answer, kinds = week.usage()
    database = sqlite3.connect(f"file:{server.state}/weir.db?mode=ro", uri=True)
    first, last, rows = database.execute("SELECT min(seq), max(seq), count(*) FROM decisions").fetchone()
    pages, free, page = (database.execute(f"PRAGMA {name}").fetchone()[0]
                         for name in ("page_count", "freelist_count", "page_size"))
    newest = database.execute("SELECT camera, max(frame) FROM decisions GROUP BY camera").fetchall()
    kept = database.execute("SELECT id FROM decisions ORDER BY seq DESC LIMIT 1").fetchone()[0]
    face = server.request("GET", f"/api/v1/decisions/{kept}/image", raw=True)
    steps, latencies = answer["steps"], sorted(week.latencies)
    at = lambda share: 1000 * latencies[min(len(latencies) - 1, int(share * len(latencies)))]
    bound = WHOLE_BOUND / arguments.scale
    checks = {
        "every frame was acknowledged once": week.stored == week.frames,
        "what is left is the newest, without a hole": last == week.frames and rows == last - first + 1,
        "the last frame of each camera is there": sorted(newest) == [
            (f"entrance-{c}", week.frames // CAMERAS - 1) for c in range(CAMERAS)],
        "its picture too": face[:2] == b"\xff\xd8",
        f"the folder stayed under {bound / 1e6:.0f} MB": peak <= bound,
        "at most one step in twenty took over 10 ms": steps["n_over_10_ms"] <= 0.05 * max(steps["n"], 1),
    }
    print(json.dumps({
        "frames": week.frames, "seconds": round(seconds, 1), "frames_per_s": round(week.frames / seconds),
        "peak_MB": round(peak / 1e6, 1), "bound_MB": bound / 1e6, "rows_left": rows,
        "row_bytes": round((pages - free) * page / max(rows, 1)), "files_of_pictures": kinds["pictures"]["n"],
        "steps": steps, "batch_ms": {"p50": round(at(0.5), 1), "p99": round(at(0.99), 1), "max": round(at(1), 1)},
        "checks": checks}, indent=1))
    print(server.weir("store", "usage")[1])
    return all(checks.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=20, help="divides frames and bounds")
    parser.add_argument("--rate", type=float, default=1500, help="frames a second, of all cameras together")
    parser.add_argument("--hours", type=float, default=7 * 24, help="how long the door is simulated")
    arguments = parser.parse_args()
    server = harness.Server("--no-agent").start()
    try:
        return 0 if run(server, arguments) else 1
    finally:
        server.stop()


if __name__ == "__main__":
    sys.exit(main())

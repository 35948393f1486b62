#!/usr/bin/python3
"""Predictions on a GPU beside the processor: frame to decision, and models behind HTTP. JSON lines, as soon as each is known.

    bench/gpu_decisions.py [--bin FOLDER] [--run PROGRAM] [--devices gpu,processor] [--seconds 60] [--model resnet50] [--frames FOLDER]

decision   `weir-worker predict` without a server: a face-embed of random weights, a gallery of 32 people with 4 photos each, frames of
           112 x 112 pixels (PNG; --frames: those of a folder, JPEG or PNG) over HTTP, one after the other. decision_*_ms is from
           the last byte of a frame received to the decision handed to the sinks; answer_*_ms what the camera waits until the
           decision is on disk and its answer there.
serve      `weir-worker serve`: an image model in a binary tensor of the Open Inference Protocol. latency_*_ms of one request at a
           time, and rows_s with 64 connections, four batches at a time.
agreement  The largest difference of the first answer of each device and precision to the processor's in f32, in parts of
           1 + the largest number.

Wants weir-worker, infer-load and make_net: those of build/release, or all in --bin, as in what tools/gpu-pack.sh packs, whose `run`
goes to --run. A phase that has no time left is left out, with a line that says so; a large model's first start on a GPU takes
half a minute, in which cuDNN's engines are measured. Ends with 1 where a phase failed, and with 77
where gpu is asked for and there is none.
"""
import argparse
import contextlib
import functools
import hashlib
import http.client
import json
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAMS = {"weir-worker": "programs/weir-worker", "infer-load": "tools/infer-load", "make_net": "tests/make_net"}
PEOPLE, PHOTOS, SIDE = 32, 4, 112
BATCH_MAX, CONNECTIONS = 16, 64
WARM_FRAMES, FRAMES_MAX = 50, 5000
TARGET_P99_MS = 2
SKIPPED = 77


class Failed(Exception):
    pass


def quantile(values, q):
    values = sorted(values)
    return round(values[min(len(values) - 1, int(q * len(values)))], 4)


def spread(name, values):
    return {f"{name}_p50_ms": quantile(values, .5), f"{name}_p99_ms": quantile(values, .99), f"{name}_max_ms": round(max(values), 4)}


# ---- pictures --------------------------------------------------------------------------------------------------

def face(person, photo):
    """Grey pixels: blobs of the person's own, moved and lit by the photo."""
    who, how = random.Random(person), random.Random(person * 1000 + photo)
    marks = [(who.uniform(.1, .9), who.uniform(.1, .9), who.uniform(.04, .2), who.uniform(-100, 100)) for _ in range(6)]
    dx, dy, light = how.gauss(0, .02), how.gauss(0, .02), how.uniform(-25, 25)
    rows = bytearray()
    for y in range(SIDE):
        v = y / SIDE + dy
        near = [(mx, r, t, (v - my) ** 2) for mx, my, r, t in marks if (v - my) ** 2 < 4 * r * r]
        for x in range(SIDE):
            u, tone = x / SIDE + dx, 128 + light
            for mx, r, t, dv in near:
                d = ((u - mx) ** 2 + dv) / (r * r)
                tone += t * (1 - d / 4) if d < 4 else 0
            rows.append(max(0, min(255, int(tone))))
    return bytes(rows)


@functools.lru_cache(maxsize=None)
def photo_of(person, photo):
    return png(face(person, photo))


def png(pixels):
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    lines = b"".join(b"\0" + pixels[y * SIDE:(y + 1) * SIDE] for y in range(SIDE))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", SIDE, SIDE, 8, 0, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))


# ---- programs --------------------------------------------------------------------------------------------------

class Bench:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.end = time.monotonic() + options.seconds
        self.has_failed, self.first_answers = False, {}

    def left(self):
        return self.end - time.monotonic()

    def words(self, program, *words):
        if self.options.bin:
            path = pathlib.Path(self.options.bin) / program
        else:
            path = ROOT / "build/release" / PROGRAMS[program]
        return ([self.options.run, program] if self.options.run else [str(path)]) + [str(w) for w in words]

    def say(self, **record):
        print(json.dumps(record), flush=True)

    @contextlib.contextmanager
    def running(self, *words):
        """A program; when it ends by itself, its last words are the failure."""
        log = self.folder / f"log-{time.monotonic_ns()}"
        with open(log, "wb") as out:
            process = subprocess.Popen(self.words(*words), stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            yield process, lambda: log.read_text(errors="replace")
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def wait(self, process, log, what, is_there):
        """is_there() gives something true; returns it and how long that took."""
        began = time.monotonic()
        while True:
            found = is_there()
            if found:
                return found, round(time.monotonic() - began, 2)
            if process.poll() is not None:
                raise Failed(f"{what}: ended with {process.returncode}: {log().strip().splitlines()[-1:]}")
            if self.left() < 1:
                raise Failed(f"{what}: not ready in time")
            time.sleep(0.02)

    def make_model(self, name, side):
        path = self.folder / f"{name}.safetensors"
        if not path.exists():
            subprocess.run(self.words("make_net", name, side, path), check=True)
        return path

    def phase(self, name, run, **facts):
        """Runs it if there is time; what it lacks is a line, not the end."""
        if self.left() < 4:
            self.say(phase=name, **facts, left_out="no time left")
            return
        try:
            self.say(phase=name, **facts, **run())
        except (Failed, OSError, ValueError, http.client.HTTPException, subprocess.SubprocessError) as problem:
            self.has_failed = True
            self.say(phase=name, **facts, failed=str(problem))


# ---- frame to decision -----------------------------------------------------------------------------------------

def digest_of(data):
    return hashlib.sha256(data).hexdigest()


def write_replica(bench, folder, model):
    """What a replica keeps of its last deployment: with it, it serves without a server."""
    cache, people = folder / "cache", folder / "people"
    cache.mkdir(parents=True)
    files = []
    for person in range(PEOPLE):
        (people / f"p{person:02}").mkdir(parents=True)
        for photo in range(PHOTOS):
            data = photo_of(person, photo)
            (people / f"p{person:02}/{photo}.png").write_bytes(data)
            files.append({"class": f"p{person:02}", "file": f"{photo}.png", "sha256": digest_of(data), "bytes": len(data)})
    manifest, blob = json.dumps({"dataset": "people", "files": files}).encode(), digest_of(model.read_bytes())
    shutil.copy(model, cache / f"model-{blob}")
    (cache / f"manifest-{digest_of(manifest)}").write_bytes(manifest)
    (folder / "deployment.json").write_text(json.dumps({
        "revision": 1, "model": {"name": "face-embed", "version": 1, "id": blob, "blob": blob},
        "gallery": {"dataset": "people", "version": 1, "path": str(people), "digest": digest_of(manifest), "blob": digest_of(manifest)},
        "list_revision": 1, "lists": {"allow": [], "deny": []}, "default": "allow", "false_accept_rate": 0.01}))
    spec = folder / "spec.json"
    spec.write_text(json.dumps({
        "ion": "bench", "pipeline": "door", "replica": "bench-0", "replicas": 1, "dir": str(folder),
        "source": {"kind": "http", "listen": "127.0.0.1:0"},
        "sinks": [{"kind": "jsonl", "path": str(folder / "decisions.jsonl")}]}))
    return spec


def frames_of(bench):
    if bench.options.frames:
        frames = [path.read_bytes() for path in sorted(pathlib.Path(bench.options.frames).iterdir()) if path.is_file()]
        if not frames:
            raise Failed(f"{bench.options.frames}: no frames")
        return frames
    return [photo_of(person, 100 + photo) for photo in range(2) for person in range(PEOPLE)]


def post(connection, number, frame):
    began = time.perf_counter()
    connection.request("POST", f"/frames/cam/{number}", frame)
    answer = connection.getresponse()
    body = answer.read()
    return answer.status, (time.perf_counter() - began) * 1e3, body


def is_deciding(port, frame):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    status, _, _ = post(connection, 0, frame)
    connection.close()
    return status == 200


def decide(bench, device, precision):
    folder = bench.folder / f"predict-{device}-{precision}"
    frames = frames_of(bench)
    spec = write_replica(bench, folder, bench.make_model("face-embed", 0))
    seconds = bench.options.phase_seconds
    with bench.running("weir-worker", "predict", "--spec", spec, "--device", device, "--precision", precision) as (process, log):
        endpoint = folder / "endpoint.json"
        bench.wait(process, log, "predict", endpoint.exists)
        port = urllib.parse.urlsplit(json.loads(endpoint.read_text())["url"]).port
        _, ready_s = bench.wait(process, log, "predict", lambda: is_deciding(port, frames[0]))
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        for i in range(WARM_FRAMES):
            post(connection, 1 + i, frames[i % len(frames)])
        latencies, waits, verdicts = [], [], {}
        end = time.monotonic() + min(seconds, bench.left() - 1)
        for i in range(FRAMES_MAX):
            status, ms, body = post(connection, 1000 + i, frames[i % len(frames)])
            decision = json.loads(body)
            if status != 200 or decision["verdict"] == "error":
                raise Failed(f"a frame was answered {status}: {body[:200]!r}")
            waits.append(ms)
            latencies.append(decision["latency_us"] / 1e3)
            verdicts[decision["person"]] = verdicts.get(decision["person"], 0) + 1
            if time.monotonic() > end:
                break
        place = [line.split('place="')[1].split('"')[0] for line in log().splitlines() if 'place="' in line]
    p99 = quantile(latencies, .99)
    return {"place": place[-1] if place else None, "ready_s": ready_s, "frames": len(latencies), "people_seen": len(verdicts),
            **spread("decision", latencies), **spread("answer", waits), "target_p99_ms": TARGET_P99_MS, "meets_target": p99 < TARGET_P99_MS}


# ---- models behind HTTP ----------------------------------------------------------------------------------------

def tensor_body(rows, channels, side):
    rng = random.Random(7)
    # Values that repeat are as good, and made at once.
    period = struct.pack("<251f", *(rng.gauss(0, 1) for _ in range(251)))
    size = 4 * rows * channels * side * side
    data = (period * (size // len(period) + 1))[:size]
    head = json.dumps({"inputs": [{"name": "input", "datatype": "FP32", "shape": [rows, channels, side, side],
                                   "parameters": {"binary_data_size": len(data)}}]}).encode()
    return head + data, ["Content-Type: application/octet-stream", f"Inference-Header-Content-Length: {len(head)}"]


def load(bench, url, body_path, headers, requests, connections):
    words = ["infer-load", url, "--rate", 0, "--requests", requests, "--connections", connections, "--body", body_path, "-o", "json"]
    for header in headers:
        words += ["--header", header]
    done = subprocess.run(bench.words(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                          timeout=max(5, bench.left()))
    if done.returncode not in (0, 1):  # 1: some requests failed, which the summary says
        raise Failed(f"infer-load: {done.stderr.strip() or done.stdout.strip()}")
    return json.loads(done.stdout)


def is_ready(log):
    ports = [line.rsplit(" ", 1)[1] for line in log().splitlines() if line.startswith("serving at port ")]
    return int(ports[0]) if ports else None


def answer_of(port, body, headers):
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v2/models/m/infer", body,
                                     dict(header.split(": ", 1) for header in headers))
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)["outputs"][0]["data"]


def serve(bench, device, precision, side):
    model = bench.make_model(bench.options.model, side)
    body, headers = tensor_body(1, 3, side)
    body_path = bench.folder / "body"
    body_path.write_bytes(body)
    seconds = bench.options.phase_seconds
    with bench.running("weir-worker", "serve", "--model", f"m={model}", "--listen", "127.0.0.1:0", "--batch-max", BATCH_MAX,
                       "--device", device, "--precision", precision) as (process, log):
        port, ready_s = bench.wait(process, log, "serve", lambda: is_ready(log))
        url = f"http://127.0.0.1:{port}/v2/models/m/infer"
        bench.first_answers[(device, precision)] = answer_of(port, body, headers)
        probe = load(bench, url, body_path, headers, 5, 1)
        n = max(10, min(2000, int(seconds * 1e3 / max(probe["p50_ms"], 0.05))))
        one = load(bench, url, body_path, headers, n, 1)
        n = max(2 * CONNECTIONS, min(20000, 4 * n if device == "gpu" else n))
        many = load(bench, url, body_path, headers, n, CONNECTIONS)
        place = [line.split('place="')[1].split('"')[0] for line in log().splitlines() if 'place="' in line]
    return {"model": bench.options.model, "side": side, "place": place[-1] if place else None, "ready_s": ready_s,
            "requests": one["n"], "latency_p50_ms": one["p50_ms"], "latency_p99_ms": one["p99_ms"],
            "rows_s": round(many["answered_s"], 1), "busy_p50_ms": many["p50_ms"], "busy_p99_ms": many["p99_ms"],
            "failed_requests": one["n_failed"] + many["n_failed"]}


def say_agreement(bench):
    expected = bench.first_answers.get(("processor", "f32"))
    for (device, precision), answer in bench.first_answers.items():
        if expected is not None and (device, precision) != ("processor", "f32"):
            d = max(abs(a - b) for a, b in zip(answer, expected)) / (1 + max(abs(b) for b in expected))
            bench.say(phase="agreement", device=device, precision=precision, difference=d)


def has_gpu(bench):
    """A replica that must have a GPU says what lacks, and ends."""
    model = bench.make_model("face-embed", 0)
    with bench.running("weir-worker", "serve", "--model", f"m={model}", "--listen", "127.0.0.1:0", "--device", "gpu",
                       "--batch-max", 1) as (process, log):
        while process.poll() is None and not is_ready(log) and bench.left() > 1:
            time.sleep(0.02)
        return process.poll() is None, (log().strip().splitlines() or [""])[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", help="folder with weir-worker, infer-load and make_net")
    parser.add_argument("--run", help="program that runs them with their libraries: `run` of a gpu-pack")
    parser.add_argument("--devices", default="gpu,processor")
    parser.add_argument("--precisions", default="bf16", help="of serve on a GPU, besides f32: bf16, tf32")
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--side", type=int, default=224)
    parser.add_argument("--seconds", type=float, default=60, help="of all phases together")
    parser.add_argument("--phase-seconds", type=float, default=4, help="of the measurement in a phase")
    parser.add_argument("--frames", help="folder of frames, JPEG or PNG, in place of drawn ones")
    options = parser.parse_args()
    devices = options.devices.split(",")
    with tempfile.TemporaryDirectory(prefix="gpu-decisions-") as folder:
        bench = Bench(options, pathlib.Path(folder))
        if "gpu" in devices:
            is_there, words = has_gpu(bench)
            bench.say(phase="gpu", is_there=is_there, said=words)
            if not is_there:
                return SKIPPED
        for device in devices:
            bench.phase("decision", lambda d=device: decide(bench, d, "f32"), device=device, precision="f32")
        others = options.precisions.split(",") if "gpu" in devices else []
        for device, precision in [(device, "f32") for device in devices] + [("gpu", precision) for precision in others]:
            bench.phase("serve", lambda d=device, p=precision: serve(bench, d, p, options.side), device=device, precision=precision)
        say_agreement(bench)
    return 1 if bench.has_failed else 0


if __name__ == "__main__":
    sys.exit(main())

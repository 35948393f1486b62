#!/usr/bin/python3
"""Models in service: the engine beside onnxruntime, what the gateway adds, latency under load, beside a Python server, under
swaps, shares, a mirror, a kill.

    make all tools && bench/inference.py

measures all of it and prints each figure with its goal and its ratio to the goal: at most 1 where the goal is met.

Starts a server of its own, pushes models and deploys them, and loads them by build/infer-load at fixed rates, latency counted from
when each request was due. Phases that are compared alternate within a round; ratios are medians over the rounds.

    bench/inference.py [--only engine,gateway,rate,lenet,peer,swap,mirror,kill,start] [--rounds 3] [--seconds 10] [--swaps 100] [-o json]

The Python server (bench/inference_peer.py) runs in a virtual environment under build/ with onnxruntime, FastAPI, uvicorn and
aiohttp; where the packages cannot be got, that phase is left out. So is the engine's, which is bench/onnx_against_onnxruntime.py
in a virtual environment with onnxruntime and onnx: with --rounds 3, nine rounds for each model and batch.
"""
import argparse
import collections
import contextlib
import json
import os
import pathlib
import random
import re
import select
import signal
import socket
import statistics
import struct
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).parents[1]
BIN = pathlib.Path(os.environ.setdefault("WEIR_BIN", str(ROOT / "build/release/programs")))
sys.path[:0] = [str(ROOT / "tests/system"), str(ROOT / "tests/serve"), str(ROOT / "bench")]
import inference_models  # noqa: E402
from harness import Server, wait_until  # noqa: E402

LOAD = os.environ.get("INFER_LOAD", str(BIN.parent / "tools/infer-load"))
MAKE_NET = BIN.parent / "tests/make_net"
LIGHT = pathlib.Path(os.environ.get("WEIR_SHARED_DATA", ROOT / "../shared/data")) / "onnx/light"
PEER_PACKAGES = ["onnxruntime", "numpy", "fastapi", "uvicorn", "httptools", "uvloop", "aiohttp", "orjson"]
ENGINE_PACKAGES = ["onnxruntime", "onnx", "numpy"]
ENGINE_LINE = re.compile(r"(\S+) +batch +(\d+) +weir +([\d.]+) ms +onnxruntime +([\d.]+) ms")

Goal = collections.namedtuple("Goal", "text limit")
GOALS = {
    "engine_1_ratio": Goal("the engine's time of one to onnxruntime's, the slowest of the models", 1),
    "engine_16_ratio": Goal("the engine's time of 16 to onnxruntime's, the slowest of the models", 1 / 1.1),
    "gateway_small_ms": Goal("the gateway adds to p50, small body, ms", 0.3),
    "gateway_large_ms": Goal("the gateway adds to p50, 600 KB body, ms", 0.3),
    "rate_p99_ms": Goal("small model at 3,000 requests/s, p99, ms", 5),
    "peer_small_ratio": Goal("p99 to the Python server's at its saturation, small model", 0.2),
    "peer_squeezenet_ratio": Goal("p99 to the Python server's at its saturation, SqueezeNet", 0.2),
    "swap_failed": Goal("failed under swaps", 0),
    "swap_ratio": Goal("p99 under swaps to that without", 1.25),
    "shares_failed": Goal("failed under changes of shares", 0),
    "shares_ratio": Goal("p99 under changes of shares to that without", 1.25),
    "shares_effect_ms": Goal("a change of shares takes effect (the slowest), ms", 50),
    "mirror_ratio": Goal("p99 with a mirror to that without", 1.05),
    "kill_failed_unbegun": Goal("failed after a replica was killed, though not begun", 0),
    "start_beyond_load_s": Goal("from no replica to the first answer beyond the load of the model, s", 1),
}


def say(text):
    print(text, file=sys.stderr, flush=True)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


Record = collections.namedtuple("Record", "due sent done status version")


class Load:
    """A running infer-load."""

    def __init__(self, bench, url, body, rate, seconds=None, requests=None, connections=32, headers=()):
        self.trace = bench.folder / f"trace-{time.monotonic_ns()}"
        body_path = bench.folder / f"body-{len(body)}-{hash(body) & 0xffffffff:x}"
        if not body_path.exists():
            body_path.write_bytes(body)
        words = [LOAD, url, "--rate", f"{rate:g}", "--connections", str(connections), "--body", str(body_path),
                 "--trace", str(self.trace), "-o", "json"]
        words += ["--requests", str(requests)] if requests else ["--seconds", f"{seconds:g}"]
        for header in headers:
            words += ["--header", header]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end(self):
        """The summary, with the records of every request."""
        out, err = self.process.communicate()
        if self.process.returncode not in (0, 1):
            raise RuntimeError(err)
        summary = json.loads(out)
        summary["records"] = [Record(*map(int, line.split())) for line in self.trace.read_text().splitlines()]
        self.trace.unlink()
        return summary

    def is_running(self):
        return self.process.poll() is None


def without_records(summary):
    return {key: value for key, value in summary.items() if key != "records"}


def oip_json(values):
    return json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, len(values)], "data": values}]}).encode()


def oip_binary(name, shape, values):
    """A tensor's bytes behind Triton's head; returns body and headers."""
    data = struct.pack(f"<{len(values)}f", *values)
    head = json.dumps({"inputs": [{"name": name, "datatype": "FP32", "shape": shape,
                                   "parameters": {"binary_data_size": len(data)}}],
                       "parameters": {"binary_data_output": True}}).encode()
    return head + data, (f"Inference-Header-Content-Length: {len(head)}", "Content-Type: application/octet-stream"), data


class Bench:
    def __init__(self, options):
        self.options, self.figures, self.details, self.peers = options, {}, {}, []
        self.server = Server("--cpu-slots", "16").start()
        self.folder = self.server.root / "bench"
        self.folder.mkdir()
        self.small = oip_json([round(random.Random(i).gauss(0, 1), 3) for i in range(16)])
        dice = random.Random(7)
        self.picture = [dice.random() for _ in range(3 * 224 * 224)]
        self.json_headers = ("Content-Type: application/json",)

    # ---- what is served ---------------------------------------------------------------------------

    def push(self, name, data):
        path = data if isinstance(data, pathlib.Path) else self.folder / f"{name}.onnx"
        if not isinstance(data, pathlib.Path):
            path.write_bytes(data)
        self.server.weir("model", "push", name, str(path))

    def deploy(self, name, *words):
        self.server.weir("deploy", name, "--cpus", "1", *words)

    def undeploy(self, name):
        self.server.weir("undeploy", name)
        wait_until(lambda: not self.server.pids("weir-worker serve"), 60, "the end of the replicas")

    def replicas(self, name):
        return self.server.get(f"/deployments/{name}")["replicas"]

    def wait_ready(self, name, n):
        wait_until(lambda: sum(r["state"] == "READY" for r in self.replicas(name)) == n, 60, f"{n} replicas of {name}")

    def secret(self, name):
        """The replica's, as its specification says it."""
        for pid in self.server.pids("weir-worker serve"):
            for path in pathlib.Path(f"/proc/{pid}/cwd/").glob("spec.json"):
                spec = json.loads(path.read_text())
                if spec["deployment"] == name:
                    return spec["secret"]
        raise RuntimeError(f"no specification of {name}")

    def load(self, name, body, rate, headers=None, direct=False, **more):
        path = f"/v2/models/{name}{'/versions/1' if direct else ''}/infer"
        base = self.replicas(name)[0]["url"] if direct else self.server.url
        token = self.secret(name) if direct else self.server.token
        headers = (*(headers or self.json_headers), f"Authorization: Bearer {token}")
        return Load(self, base + path, body, rate, headers=headers, **more)

    # ---- phases -----------------------------------------------------------------------------------

    def gateway(self):
        """The same request to the replica and through the gateway, one at a time, in turns."""
        self.push("small", inference_models.perceptron(1))
        self.push("wide", inference_models.average())
        large, large_headers, _ = oip_binary("x", [1, 3, 224, 224], self.picture)
        for size, name, body, headers, n in (("small", "small", self.small, None, 2000),
                                             ("large", "wide", large, large_headers, 500)):
            self.deploy(name, "--max-delay", "0us")
            added, direct_p50, through_p50 = [], [], []
            for _ in range(self.options.rounds + 1):
                took = [self.load(name, body, 0, headers, direct=is_direct, requests=n, connections=1).end()
                        for is_direct in (True, False)]
                direct_p50.append(took[0]["p50_ms"])
                through_p50.append(took[1]["p50_ms"])
                added.append(through_p50[-1] - direct_p50[-1])
            self.details[f"gateway_{size}"] = {"direct_p50_ms": direct_p50[1:], "through_p50_ms": through_p50[1:]}
            self.figures[f"gateway_{size}_ms"] = statistics.median(added[1:])  # the first warms up
            self.undeploy(name)

    def rate(self):
        self.push("rapid", inference_models.perceptron(2))
        self.deploy("rapid")
        self.load("rapid", self.small, 1000, seconds=2).end()
        rounds = [self.load("rapid", self.small, 3000, seconds=self.options.seconds).end() for _ in range(self.options.rounds)]
        self.details["rate"] = [without_records(r) for r in rounds]
        self.figures["rate_p99_ms"] = statistics.median(r["p99_ms"] for r in rounds)
        self.undeploy("rapid")

    def engine(self):
        from peers import install
        python = install(ROOT / "build/peers/engine", ENGINE_PACKAGES)
        tool = BIN.parent / "tools/onnx-bench"
        if python is None or not tool.exists():
            say("onnxruntime cannot be got: left out" if python is None else f"{tool} is not there (make tools): left out")
            return
        done = subprocess.run([python, ROOT / "bench/onnx_against_onnxruntime.py", "--rounds", str(3 * self.options.rounds)],
                              env={**os.environ, "ONNX_BENCH": str(tool)}, stdout=subprocess.PIPE, text=True, check=True)
        say(done.stdout)
        rows = [(name, batch, float(ours), float(theirs)) for name, batch, ours, theirs in ENGINE_LINE.findall(done.stdout)]
        for batch in ("1", "16"):
            ratios = {name: ours / theirs for name, of, ours, theirs in rows if of == batch}
            self.details[f"engine_{batch}"] = ratios
            self.figures[f"engine_{batch}_ratio"] = max(ratios.values())

    def peer(self):
        from peers import install
        python = install(ROOT / "build/peers/inference", PEER_PACKAGES)
        if python is None:
            say("the peer's packages cannot be got: left out")
            return
        self.push("mlp", inference_models.perceptron(3))
        self.peer_case("small", python, "mlp", self.folder / "mlp.onnx", self.small, self.json_headers, self.small,
                       self.json_headers, 3000)
        squeezenet = LIGHT / "light_squeezenet.onnx"
        if squeezenet.exists():
            self.push("squeezenet", squeezenet)
            signature = self.server.get("/models/squeezenet/versions/1")["signature"]
            name, shape = signature["inputs"][0]["name"], [max(d, 1) for d in signature["inputs"][0]["shape"]]
            body, headers, raw = oip_binary(name, shape, self.picture)
            self.peer_case("squeezenet", python, "squeezenet", squeezenet, body, headers, raw,
                           ("Content-Type: application/octet-stream",), 200)

    def stop_peers(self):
        for process in self.peers:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self.peers.clear()

    def start_peer(self, python, kind, path):
        port = free_port()
        process = subprocess.Popen([python, ROOT / "bench/inference_peer.py", kind, path, str(port), "2"], start_new_session=True)
        self.peers.append(process)

        def answers():
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0
        wait_until(answers, 60, "the Python server")
        time.sleep(1)  # the other worker too
        return f"http://127.0.0.1:{port}/infer"

    def peer_case(self, case, python, name, path, body, headers, peer_body, peer_headers, n):
        """At what the better of the Python servers can answer when it is asked as fast as it can: p99 of both."""
        self.deploy(name)
        saturation = {}
        for kind in ("uvicorn", "aiohttp"):
            url = self.start_peer(python, kind, path)
            took = [Load(self, url, peer_body, 0, requests=n, connections=16, headers=peer_headers).end() for _ in range(2)]
            saturation[kind] = took[1]["answered_s"]
            self.stop_peers()
        own = [self.load(name, body, 0, headers, requests=n, connections=16).end() for _ in range(2)][1]["answered_s"]
        best = max(saturation, key=saturation.get)
        rate, rounds = saturation[best], []
        url = self.start_peer(python, best, path)
        for _ in range(self.options.rounds):
            peer = Load(self, url, peer_body, rate, seconds=self.options.seconds, headers=peer_headers).end()
            ours = self.load(name, body, rate, headers, seconds=self.options.seconds).end()
            rounds.append((without_records(ours), without_records(peer)))
        self.stop_peers()
        self.details[f"peer_{case}"] = {"saturation_s": saturation, "own_saturation_s": own, "rounds": rounds}
        self.figures[f"peer_{case}_ratio"] = statistics.median(ours["p99_ms"] / peer["p99_ms"] for ours, peer in rounds)
        self.undeploy(name)

    def change(self, name, version, changes):
        """Deploy a version; `changes` gets when it was asked for and what."""
        changes.append((time.monotonic_ns(), version))
        self.server.request("PUT", f"/api/v1/deployments/{name}", {"traffic": f"v{version}=100"})

    def under_changes(self, name, versions, pace_s):
        """A load while the versions are deployed one after the other."""
        changes = []
        load = self.load(name, self.small, 1000, seconds=len(versions) * pace_s + 2)
        time.sleep(1)
        for version in versions:
            began = time.monotonic()
            self.change(name, version, changes)
            wait_until(lambda: self.server.get(f"/deployments/{name}")["is_settled"], 60, f"v{version}")
            time.sleep(max(0, pace_s - (time.monotonic() - began)))
        summary = load.end()
        end_ns = max(r.sent for r in summary["records"])
        effects, applied = [], [c for c in changes if c[0] < end_ns]
        for i, (at, version) in enumerate(applied):  # until the last request that another version answered
            until = applied[i + 1][0] if i + 1 < len(applied) else end_ns
            others = [r.sent - at for r in summary["records"] if at < r.sent < until and r.version not in (version, 0)]
            effects.append(max(others, default=0) / 1e6)
        return summary, effects

    def swap(self):
        """Each swap loads a version that was never loaded; each change of shares moves all requests among two that are."""
        n = self.options.swaps
        for seed in range(n + 2):
            self.push("swapped", inference_models.perceptron(100 + seed))
        self.deploy("swapped@v1")
        self.server.request("PUT", "/api/v1/deployments/swapped", {"traffic": "v1=50,v2=50"})
        wait_until(lambda: self.server.get("/deployments/swapped")["is_settled"], 60, "both versions")
        self.load("swapped", self.small, 1000, seconds=2).end()
        ratios, failed, effects = {"swap": [], "shares": []}, {"swap": 0, "shares": 0}, {"swap": [], "shares": []}
        at, per_round = 3, max(1, n // self.options.rounds)
        for _ in range(self.options.rounds):
            for kind in ("shares", "swap"):
                versions = list(range(at, at + per_round)) if kind == "swap" else [1 + i % 2 for i in range(per_round)]
                at += per_round if kind == "swap" else 0
                self.change("swapped", 1 if kind == "swap" else 2, [])
                wait_until(lambda: self.server.get("/deployments/swapped")["is_settled"], 60, "the first version")
                quiet = self.load("swapped", self.small, 1000, seconds=self.options.seconds).end()
                busy, took = self.under_changes("swapped", versions, 0.5 if kind == "swap" else 0.2)
                ratios[kind].append(busy["p99_ms"] / quiet["p99_ms"])
                failed[kind] += busy["n_failed"] + quiet["n_failed"]
                effects[kind] += took
                self.details.setdefault(kind, []).append(
                    {"quiet": without_records(quiet), "busy": without_records(busy), "n_changes": len(took)})
        for kind in ("swap", "shares"):
            self.figures[f"{kind}_failed"] = failed[kind]
            self.figures[f"{kind}_ratio"] = statistics.median(ratios[kind])
            self.details[f"{kind}_effect_ms"] = {"median": statistics.median(effects[kind]), "max": max(effects[kind])}
        self.figures["shares_effect_ms"] = max(effects["shares"])
        self.undeploy("swapped")

    def mirror(self):
        for seed in (4, 5):
            self.push("copied", inference_models.perceptron(seed))
        self.deploy("copied@v1", "--mirror", "v2")
        self.load("copied", self.small, 1000, seconds=2).end()
        ratios = []
        for _ in range(self.options.rounds):
            took = []
            for mirror in ("none", "v2"):
                self.server.request("PUT", "/api/v1/deployments/copied", {"mirror": mirror})
                wait_until(lambda: self.server.get("/deployments/copied")["is_settled"], 60, "the mirror")
                time.sleep(1)
                took.append(self.load("copied", self.small, 1000, seconds=self.options.seconds).end())
            ratios.append(took[1]["p99_ms"] / took[0]["p99_ms"])
            self.details.setdefault("mirror", []).append([without_records(t) for t in took])
        self.figures["mirror_ratio"] = statistics.median(ratios)
        self.undeploy("copied")

    def kill(self):
        self.push("frail", inference_models.perceptron(6))
        self.deploy("frail", "--replicas", "2")
        begun, unbegun = 0, 0
        for _ in range(self.options.rounds):
            self.wait_ready("frail", 2)
            load = self.load("frail", self.small, 1000, seconds=6)
            time.sleep(2)
            victim = self.server.pids("weir-worker serve")[0]
            watched = os.pidfd_open(victim)
            killed_ns = time.monotonic_ns()
            os.kill(victim, signal.SIGKILL)
            select.select([watched], [], [], 60)  # until it has ended its sockets take what comes
            killed_end_ns = time.monotonic_ns()
            os.close(watched)
            summary = load.end()
            failed = [r for r in summary["records"] if not 200 <= r.status < 300]
            begun += sum(r.sent <= killed_end_ns for r in failed)
            unbegun += sum(r.sent > killed_end_ns for r in failed)
            self.details.setdefault("kill", []).append(
                {**without_records(summary), "dying_ms": (killed_end_ns - killed_ns) / 1e6, "failed_after_ms": [(r.sent - killed_ns) / 1e6 for r in failed]})
            wait_until(lambda: self.server.get("/deployments/frail")["reason"] is None, 60, "the next process")
        self.details["kill_failed_begun"] = begun
        self.figures["kill_failed_unbegun"] = unbegun
        self.undeploy("frail")

    def start(self):
        cases = [("rare", inference_models.perceptron(8), self.small, self.json_headers)]
        squeezenet = LIGHT / "light_squeezenet.onnx"
        if squeezenet.exists():
            body, headers, _ = oip_binary("data_0", [1, 3, 224, 224], self.picture)
            cases.append(("seldom", squeezenet, body, headers))
        beyond = []
        for name, data, body, headers in cases:
            self.push(name, data)
            self.deploy(name, "--replicas", "0..1", "--idle-after", "1s")
            for _ in range(self.options.rounds):
                wait_until(lambda: self.server.get(f"/deployments/{name}")["state"] == "IDLE"
                           and not self.server.pids("weir-worker serve"), 60, "no replica")
                took = self.load(name, body, 0, headers, requests=1, connections=1).end()
                loaded = self.replicas(name)[0]["versions"][0]["load_ms"]
                if took["n_failed"]:
                    raise RuntimeError(f"no answer: {took['statuses']}")
                self.details.setdefault(f"start_{name}", []).append({"first_answer_ms": took["p50_ms"], "load_ms": loaded})
                beyond.append((took["p50_ms"] - loaded) / 1e3)
            self.undeploy(name)
        self.figures["start_beyond_load_s"] = statistics.median(beyond)

    def lenet(self):
        """Weir's own network at 200 requests a second."""
        path = self.folder / "lenet.weir"
        if not MAKE_NET.exists():
            say(f"{MAKE_NET} is not built: no LeNet")
            return
        subprocess.run([MAKE_NET, "lenet", "28", path], check=True)
        self.push("lenet", path)
        port = self.server.get("/models/lenet/versions/1")["signature"]["inputs"][0]
        shape = [max(d, 1) for d in port["shape"]]
        n = shape[1] * shape[2] * shape[3]
        body, headers, _ = oip_binary(port["name"], shape, self.picture[:n])
        self.deploy("lenet")
        took = [self.load("lenet", body, 200, headers, seconds=self.options.seconds).end() for _ in range(self.options.rounds)]
        self.details["lenet_200_s"] = [without_records(t) for t in took]
        self.undeploy("lenet")


PHASES = ("engine", "gateway", "rate", "lenet", "peer", "swap", "mirror", "kill", "start")


def print_table(report):
    print(f"load of the machine before and after: {report['load_before']}, {report['load_after']}")
    print(f"{'figure':75} {'is':>9} {'goal':>6} {'ratio':>6}")
    for key, value in report["figures"].items():
        goal = GOALS[key]
        ratio = f"{value / goal.limit:6.2f}" if goal.limit > 0 else f"{'':6}"
        print(f"{goal.text:75} {value:9.3f} {goal.limit:6.3g} {ratio} {'' if value <= goal.limit else 'missed'}")
    for name, rows in report["details"].items():
        print(f"{name}: {json.dumps(rows)[:600]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join(PHASES), help="phases: " + ",".join(PHASES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--swaps", type=int, default=100)
    parser.add_argument("-o", dest="output", choices=["text", "json"], default="text")
    options = parser.parse_args()
    chosen = options.only.split(",")
    if set(chosen) - set(PHASES):
        parser.error(f"--only: there are {', '.join(PHASES)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was started is stopped then too
    bench, before = Bench(options), os.getloadavg()
    try:
        for name in PHASES:
            if name in chosen:
                say(name)
                getattr(bench, name)()
    finally:
        bench.stop_peers()
        bench.server.stop()
    report = {"load_before": before, "load_after": os.getloadavg(), "figures": bench.figures, "details": bench.details}
    if options.output == "json":
        print(json.dumps(report, indent=2))
    else:
        print_table(report)


if __name__ == "__main__":
    main()

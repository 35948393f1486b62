#!/usr/bin/env python3
"""What workers lose by their exchange.

    bench/workers.py [--rounds 6] [--model resnet50] [--batch 8] [--fabric] [--weir-worker PROGRAM] [-o json]

Two workers of one thread each on this machine, with an exchange and without one, in turns: how long
a step takes, and how much processor time it costs. The efficiency by step time has in it what each
worker waits because the other was held up; that by processor time is what the exchange itself costs.
With --fabric also four workers on an imagined network of 10 Gbit/s: with all-reduce, with servers
shared by the workers, and with one server, each as a share of what its links allow.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODES = {"exchange": "replicated", "none": "independent"}
FABRIC = {"all-reduce": ["--variable-update", "replicated"],
          "shared servers": ["--variable-update", "parameter_server", "--num-ps", "0"],
          "one server": ["--variable-update", "parameter_server"]}


def run(worker, *words):
    done = subprocess.run([worker, "bench-train", "--use-bf16", "--optimizer", "momentum", "-o", "json", *words],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"bench/workers.py: {worker} failed: {done.stderr.strip()}")
    return json.loads(done.stdout[done.stdout.index("{"):])


def take_round(worker, args, is_turned):
    words = ["--model", args.model, "--batch-size", str(args.batch), "--num-batches", "12",
             "--num-warmup-batches", "2", "--threads", "1", "--workers", "2", "--variable-update"]
    out = {}
    for name in reversed(MODES) if is_turned else MODES:
        got = run(worker, *words, MODES[name])
        out[name] = {"step_ms": got["step_ms"]["p50"], "cpu_ms": got["cpu_ms_per_step"] / 2}
    out["by_time"] = out["none"]["step_ms"] / out["exchange"]["step_ms"]
    out["by_cpu"] = out["none"]["cpu_ms"] / out["exchange"]["cpu_ms"]
    return out


def fabric_round(worker, args):
    words = ["--model", args.model, "--workers", "4", "--batch-size", str(args.batch), "--num-warmup-batches", "4",
             "--num-batches", "12", "--emulate-fabric", "10", "--accelerator", "p100"]
    out = {}
    for name, more in FABRIC.items():
        fabric = run(worker, *words, *more)["emulated_fabric"]
        # a link with more to carry than a step is long bounds the step: 1.12 times as long with one server
        out[name] = fabric["efficiency"] * max(1, fabric["ratio"])
    return out


def find_worker(given):
    for path in [given] if given else [ROOT / f"build/{kind}/programs/weir-worker" for kind in ("release", "dev")]:
        if pathlib.Path(path).exists():
            return str(path)
    sys.exit("bench/workers.py: no weir-worker: build it or say --weir-worker")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--batch", type=int, default=8, help="pictures of a worker's step")
    parser.add_argument("--fabric", action="store_true", help="also four workers on an imagined network")
    parser.add_argument("--weir-worker", help="program to measure")
    parser.add_argument("-o", "--output", choices=["json"], help="print the rounds as JSON at the end")
    args = parser.parse_args()
    worker = find_worker(args.weir_worker)
    rounds, fabric = [], []
    for i in range(args.rounds):
        rounds.append(take_round(worker, args, i % 2 == 1))
        last = rounds[-1]
        print("  ".join(f"{name}: {last[name]['step_ms']:.0f} ms, processor {last[name]['cpu_ms']:.0f} ms" for name in MODES)
              + f"  efficiency {last['by_time']:.1%} by time, {last['by_cpu']:.1%} by processor time", flush=True)
        if args.fabric:
            fabric.append(fabric_round(worker, args))
            print("  10 Gbit/s: " + ", ".join(f"{name} {value:.1%}" for name, value in fabric[-1].items()), flush=True)
    for key, title in (("by_time", "by time"), ("by_cpu", "by processor time")):
        values = [r[key] for r in rounds]
        print(f"2 workers, efficiency {title}: median {statistics.median(values):.1%} ({min(values):.1%} to {max(values):.1%})")
    for name in FABRIC if fabric else ():
        values = [r[name] for r in fabric]
        print(f"4 workers on 10 Gbit/s, {name}: median {statistics.median(values):.1%} ({min(values):.1%} to {max(values):.1%})")
    if args.output:
        print(json.dumps({"rounds": rounds, "fabric": fabric}))


if __name__ == "__main__":
    main()

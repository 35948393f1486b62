#!/usr/bin/python3
"""What checkpoints cost a step: the same training without any, with one as often as the disk can, and by default.

    bench/checkpoints.py --data DIR [--model lenet] [--input C,H,W] [--steps 200] [--rounds 5] [--worker PATH]

Runs `weir-worker train` with --checkpoint-every-s 1000000, 0 and 30 in turn, so many rounds, each in a new folder,
and prints the processor time of a step of each, threads that write included (median of the rounds), and the ratio to
no checkpoints; the clock's time too, which other work on the machine disturbs. Checkpoints that were seen are counted.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

WAYS = {"none": "1000000", "as often as the disk can": "0", "every 30 s": "30"}


def options():
    here = pathlib.Path(__file__).resolve().parents[1]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--model", default="lenet")
    parser.add_argument("--input")
    parser.add_argument("--batch-size", default="64")
    parser.add_argument("--workers", default="1")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--worker", default=str(here / "build/dev/programs/weir-worker"))
    return parser.parse_args()


def processor_s(launcher):
    """User and system time of the launcher's ranks so far."""
    total = 0
    for pid in pathlib.Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split():
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def run(given, every):
    """Processor and clock seconds of a step, and the number of checkpoints that were seen."""
    n, begin, seen = 0, None, set()
    with tempfile.TemporaryDirectory(prefix="weir-checkpoints-") as folder:
        command = [given.worker, "train", "--model", given.model, "--data", given.data, "--workers", given.workers,
                   "--batch-size", given.batch_size, "--epochs", "1000", "--checkpoint-every-s", every,
                   "--checkpoint-dir", f"{folder}/c", "--output", f"{folder}/m", "--format", "json",
                   "--display-every", "1"]
        command += ["--input", given.input] if given.input else []
        training = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for line in training.stdout:
            if json.loads(line)["event"] != "step":
                continue
            n += 1
            if n == given.steps // 10:
                begin = time.monotonic(), processor_s(training.pid)
            seen.update(path.name for path in pathlib.Path(f"{folder}/c").glob("step-*.safetensors"))
            if n == given.steps:
                break
        wall, busy = time.monotonic() - begin[0], processor_s(training.pid) - begin[1]
        training.kill()
        training.wait()
    n -= given.steps // 10
    return busy / n, wall / n, len(seen)


def main():
    given = options()
    steps = {way: [] for way in WAYS}
    for _ in range(given.rounds):
        for way, every in WAYS.items():
            busy, wall, n_seen = run(given, every)
            steps[way].append(busy)
            print(f"{way}: {1000 * busy:.2f} ms of processors a step, {1000 * wall:.2f} ms by the clock, "
                  f"{n_seen} checkpoints in {given.steps} steps", flush=True)
    base = statistics.median(steps["none"])
    for way, values in steps.items():
        here = statistics.median(values)
        print(f"{given.model}, {way}: {1000 * here:.2f} ms a step, {100 * (here / base - 1):+.1f} %")


if __name__ == "__main__":
    main()

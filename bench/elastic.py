#!/usr/bin/python3
"""Kill -9 one worker of an elastic training, again and again, and look how long the others need.

Starts `weir-worker train --elastic` on this host, kills a worker that is not the launcher, waits until the
group has all its workers back, and kills the next; the leader is killed in its turn.

    bench/elastic.py --data DIR [--model lenet] [--workers 4] [--kills 10] [--worker PATH] [-o json]

Measured from the kill, by the clock of this program as it reads the leader's progress:
  shrink   to the first step that the others have completed without the lost worker;
  rejoin   to the first step completed with another worker in its place: its process was started, has
           opened the data, met the group, and holds its weights and its optimiser's state.
Steps are counted: none may be missing from the progress and none done twice. Status 1 if it is so.
"""
import argparse
import json
import os
import pathlib
import queue
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

SETTLED_STEPS = 5
PATIENCE_S = 60


def options():
    here = pathlib.Path(__file__).resolve().parents[1]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--model", default="lenet")
    parser.add_argument("--input")
    parser.add_argument("--batch-size", default="64")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--transport", default="auto")
    parser.add_argument("--worker", default=str(here / "build/dev/programs/weir-worker"))
    parser.add_argument("-o", "--format", default="text", choices=("text", "json"))
    return parser.parse_args()


def follow(pipe, lines):
    for line in pipe:
        lines.put((time.monotonic(), json.loads(line)))
    lines.put((time.monotonic(), None))


class Training:
    def __init__(self, given, folder):
        command = [given.worker, "train", "--elastic", "--model", given.model, "--data", given.data, "--workers",
                   str(given.workers), "--batch-size", given.batch_size, "--transport", given.transport, "--threads",
                   "1", "--epochs", "1000", "--max-restarts", str(given.kills + 1), "--format", "json",
                   "--display-every", "1", "--output", f"{folder}/model.safetensors"]
        command += ["--input", given.input] if given.input else []
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.lines = queue.Queue()
        self.steps = []
        self.joined = None  # the last time that somebody did
        threading.Thread(target=follow, args=(self.process.stdout, self.lines), daemon=True).start()

    def next(self):
        at, line = self.lines.get(timeout=PATIENCE_S)
        if line is None:
            sys.exit("the training ended by itself")
        if line["event"] == "step":
            self.steps.append(line["step"])
        elif line["event"] == "workers" and line["joined"]:
            self.joined = line
        return at, line

    def take_steps(self, n):
        """When the n-th step from now on was completed."""
        while n > 0:
            at, line = self.next()
            n -= line["event"] == "step"
        return at

    def wait_for(self, what):
        while True:
            _, line = self.next()
            if line["event"] == "workers" and line[what]:
                return line

    def children(self):
        pid = self.process.pid
        return [int(p) for p in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=PATIENCE_S)


def measure(training, given):
    results = []
    victims = training.children()
    for i in range(given.kills):
        training.take_steps(SETTLED_STEPS)
        victim = victims[i % len(victims)]
        training.joined = None
        before = time.monotonic()
        os.kill(victim, signal.SIGKILL)
        lost = training.wait_for("lost")
        shrink = training.take_steps(1) - before
        rejoin = shrink  # the new one may have come before the next step
        if training.joined is None:
            training.wait_for("joined")
            rejoin = training.take_steps(1) - before
        joined = training.joined
        if joined["workers"] != given.workers:
            sys.exit(f"{joined['workers']} workers, not {given.workers}")
        new = [pid for pid in training.children() if pid not in victims]
        victims[i % len(victims)] = new[0]
        results.append({"worker": lost["lost"][0], "shrink_s": shrink, "rejoin_s": rejoin,
                        "regroup_s": lost["seconds"], "takes_in_s": joined["seconds"]})
    return results


def main():
    given = options()
    with tempfile.TemporaryDirectory(prefix="weir-elastic-") as folder:
        training = Training(given, folder)
        training.take_steps(SETTLED_STEPS)
        results = measure(training, given)
        training.stop()
    is_whole = training.steps == list(range(training.steps[0], training.steps[0] + len(training.steps)))
    summary = {"model": given.model, "workers": given.workers, "kills": len(results), "steps_whole": is_whole}
    for key in ("shrink_s", "rejoin_s", "regroup_s", "takes_in_s"):
        values = [result[key] for result in results]
        summary[key] = {"median": statistics.median(values), "most": max(values)}
    if given.format == "json":
        print(json.dumps({"summary": summary, "kills": results}))
    else:
        for result in results:
            print("worker {worker}  next step {shrink_s:.3f} s  with all {rejoin_s:.3f} s  "
                  "(regroup {regroup_s:.3f} s, taking in {takes_in_s:.3f} s)".format(**result))
        print(f"medians of {len(results)}: next step {summary['shrink_s']['median']:.3f} s, with all workers "
              f"{summary['rejoin_s']['median']:.3f} s; most {summary['shrink_s']['most']:.3f} s, "
              f"{summary['rejoin_s']['most']:.3f} s; no step {'missing or done twice' if is_whole else 'RULE BROKEN'}")
    sys.exit(0 if is_whole else 1)


if __name__ == "__main__":
    main()

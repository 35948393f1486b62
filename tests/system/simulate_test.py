#!/usr/bin/env python3
"""simulate_test.py: the figures of docs/howto/replay-a-month.md's commands on examples/scheduler, and wrong use."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
WEIR = pathlib.Path(os.environ.get("WEIR_BIN", ROOT / "build/dev/programs")) / "weir"
HERE = ROOT / "examples/scheduler"


def weir(*words, status=0):
    answer = subprocess.run([WEIR, *map(str, words)], cwd=HERE, capture_output=True, text=True, timeout=60)
    assert answer.returncode == status, f"weir {words}: {answer.returncode}: {answer.stderr}"
    return answer.stdout if status == 0 else answer.stderr


def replay(*words):
    return json.loads(weir("simulate", "--trace", "jobs.csv", *words, "-o", "json"))


def check_replay():
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "report.html"
        report = replay("--cluster", "cluster.yaml", "--html", page)
        assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert (report["jobs"], report["finished"], report["accelerators"]) == (8, 8, 16), report
    # Work asked for, added up by hand from jobs.csv, is what was held less what was lost.
    asked = 16 * 10 + 0.5 * 8 + 4 * 1 * 2 + 4 * 4 + 8 * 3
    done = report["held_device_hours"] - report["lost_device_hours"] - report["overhead_device_hours"]
    assert abs(done - asked) < 1e-6, (done, asked)
    fifo = replay("--gpus", "24", "--profile", "fifo")
    assert fifo["evictions"] == 0 and fifo["finished"] == 8, fifo
    alone = replay("--cluster", "cluster.yaml", "--profile", "static")  # pretrain asks for 16, speech has 4
    assert (alone["finished"], alone["never_ran"], alone["evictions"]) == (7, 1, 0), alone
    assert replay("--cluster", "cluster.yaml", "--profile", "kai", "--option", "placement=spread")["finished"] == 8


def check_names():
    said = weir("simulate", "--trace", "jobs.csv", "--gpus", "4", "--profile", "nosuch", status=4)
    for name in ("default", "kai", "fifo", "fifo-skip", "sjf", "las", "static"):
        assert name in said, said


def check_snapshot():
    ask = lambda *words: json.loads(weir(*words, "--snapshot", "snapshot.json", "--profile", "kai", "-o", "json"))
    outcomes = {job["job"]: job["outcome"] for job in ask("simulate")["jobs"]}
    assert outcomes == {"pretrain": "stays", "borrower": "stays", "finetune": "waits"}, outcomes
    smaller = {job["job"]: job["after"] for job in ask("what-if", "--job", "finetune", "--accelerators", "4")["jobs"]}
    assert smaller == {"finetune": "starts when room is free", "borrower": "evicted"}, smaller
    shares = ask("what-if", "--queue", "vision", "--quota", "8")["queues"]
    assert shares[0]["fair_share_after"] == 8, shares


def check_wrong_use():
    assert "either --cluster FILE or --gpus N" in weir("simulate", "--trace", "jobs.csv", status=2)
    assert "no option" in weir("simulate", "--trace", "jobs.csv", "--gpus", "8", "--option", "x=1", status=2)
    assert "no column" in weir("simulate", "--trace", "cluster.yaml", "--gpus", "8", status=2)
    assert "has its own nodes" in weir("simulate", "--snapshot", "snapshot.json", "--gpus", "8", status=2)
    assert "only a replay" in weir("simulate", "--snapshot", "snapshot.json", "--html", "x.html", status=2)
    assert "places nothing" in weir("simulate", "--snapshot", "snapshot.json", "--profile", "sjf", status=2)
    assert "what changes?" in weir("what-if", "--snapshot", "snapshot.json", "--job", "finetune", status=2)
    assert "no queue" in weir("what-if", "--snapshot", "snapshot.json", "--queue", "x", "--quota", "1", status=4)


def main():
    for check in (check_replay, check_names, check_snapshot, check_wrong_use):
        check()
    print("replay, snapshot and wrong use are as the documents say")
    return 0


if __name__ == "__main__":
    sys.exit(main())

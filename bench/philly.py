#!/usr/bin/python3
"""Completion and waiting on the Philly trace (82,247 jobs), in hours, beside plain disciplines.

    bench/philly.py [--gpus 416] [--profiles fifo,fifo-skip,sjf,las,default] [--cycle 60] [--by-queue] [-o json]

Plays philly/sia_philly.csv of the shared data with `weir simulate` once for each profile, nodes of eight
accelerators, all jobs in one queue, as the disciplines know none; --by-queue: in the trace's 15, with
quotas by demand. No run time is told to the scheduler; an eviction costs 60 s and the work since the last
checkpoint, one each 30 minutes. fifo, fifo-skip and sjf (which knows run times) evict nobody. "First
start" is the longest time from submission to the first start, "max wait" the longest that a job did not
run in all. A profile of the scheduler takes 2 to 20 minutes on one core.
"""
import argparse
import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).parents[1]
WEIR = pathlib.Path(os.environ.get("WEIR_BIN", ROOT / "build/release/programs")) / "weir"
TRACE = pathlib.Path(os.environ.get("WEIR_SHARED_DATA", ROOT / "../shared/data")) / "scheduler/philly/sia_philly.csv"


def play(profile, options):
    answer = subprocess.run(
        [WEIR, "simulate", "--trace", TRACE, "--format", "philly-csv", "--gpus", str(options.gpus), "--profile", profile,
         "--option", f"cycle={options.cycle}", "--option",
         "quota=demand" if options.by_queue else "one-queue=true", "-o", "json"],
        check=True, stdout=subprocess.PIPE, text=True)
    report = json.loads(answer.stdout)
    sizes = {size["accelerators"]: size for size in report["sizes"]}
    every, large = sizes["all"], sizes["8 and more"]
    hours = lambda seconds: seconds / 3600
    return {
        "profile": profile,
        "mean": hours(every["completion_s"]["mean"]),
        "p50": hours(every["completion_s"]["p50"]),
        "p99": hours(every["completion_s"]["p99"]),
        "mean_wait": hours(every["waiting_s"]["mean"]),
        "max_wait": hours(every["waiting_s"]["max"]),
        "max_first_start": hours(every["first_start_s"]["max"]),
        "mean_wait_large": hours(large["waiting_s"]["mean"]),
        "evictions": report["evictions"],
        "lost_device_hours": report["lost_device_hours"],
        "jain": report["jain"],
        "cycle_p99_ms": report.get("cycle_ms", {}).get("p99"),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", type=int, default=416)
    parser.add_argument("--profiles", default="fifo,fifo-skip,sjf,las,default")
    parser.add_argument("--cycle", type=float, default=60)
    parser.add_argument("--by-queue", action="store_true")
    parser.add_argument("-o", "--output", choices=["text", "json"], default="text")
    options = parser.parse_args()
    rows = []
    if options.output == "text":
        print(f"{'profile':10} {'mean':>8} {'p50':>8} {'p99':>8} {'wait':>8} {'max wait':>9} {'first start':>12} "
              f"{'wait >= 8':>10} {'evictions':>10}", flush=True)
    for profile in options.profiles.split(","):
        row = play(profile, options)
        rows.append(row)
        if options.output == "text":
            print(f"{row['profile']:10} {row['mean']:8.2f} {row['p50']:8.2f} {row['p99']:8.1f} {row['mean_wait']:8.2f} "
                  f"{row['max_wait']:9.0f} {row['max_first_start']:12.0f} {row['mean_wait_large']:10.1f} "
                  f"{row['evictions']:10}",
                  flush=True)
    if options.output == "json":
        print(json.dumps(rows, indent=2))


main()

#!/usr/bin/python3
"""Completion and waiting on the Philly trace (82,247 jobs), in hours, beside plain policies.

    bench/philly.py [--gpus 416] [--profiles fifo,fifo-skip,sjf,las,default] [--cycle 60] [--by-queue] [-o json]
    bench/philly.py [--gpus 416] --bound

Plays philly/sia_philly.csv of the shared data (`make tools` builds what converts it) with `weir simulate` once for each profile, nodes of eight
accelerators, all jobs in one queue, as the policies know none; --by-queue: in the trace's 15, with
quotas by demand. No run time is told to the scheduler; an eviction costs 60 s and the work since the last
checkpoint, one each 30 minutes. fifo, fifo-skip and sjf (which knows run times) evict nobody. "First
start" is the longest time from submission to the first start, "max wait" the longest that a job did not
run in all. A profile of the scheduler takes 2 to 20 minutes on one core.

--bound says which longest wait no scheduler can get below, though it knew all run times from the beginning, evicted
for nothing and had no nodes to fit jobs into: by each hour x, a job that never waits for more than T has been served
for min(run time, x - submission - T) or more, and the cluster has served no more than it has accelerators and there
were jobs to run. The lines after the first do not let jobs wait that ask for little in all, run time times accelerators.
"""
import argparse
import csv
import datetime
import json
import math
import os
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).parents[1]
WEIR = pathlib.Path(os.environ.get("WEIR_BIN", ROOT / "build/release/programs")) / "weir"
CONVERT = ROOT / "build/release/tools/trace-convert"
TRACE = pathlib.Path(os.environ.get("WEIR_SHARED_DATA", ROOT / "../shared/data")) / "scheduler/philly/sia_philly.csv"


def play(profile, trace, options):
    answer = subprocess.run(
        [WEIR, "simulate", "--trace", trace, "--gpus", str(options.gpus), "--profile", profile,
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


def read_jobs():
    """Hours since the first submission, hours of run time, accelerators."""
    with open(TRACE, encoding="utf-8") as file:
        rows = [(datetime.datetime.fromisoformat(row["timestamp"]).timestamp() / 3600, float(row["duration"]) / 3600,
                 int(row["num_gpus"])) for row in csv.DictReader(file)]
    first = min(row[0] for row in rows)
    return [(at - first, run, gpus) for at, run, gpus in rows]


def served_at_once(jobs, n_hours):
    """Device hours by each whole hour, if each job runs when it is submitted."""
    changes = sorted([(at, gpus) for at, run, gpus in jobs] + [(at + run, -gpus) for at, run, gpus in jobs])
    served, rate, total, last, i = [], 0, 0.0, 0.0, 0
    for hour in range(n_hours):
        while i < len(changes) and changes[i][0] <= hour:
            total += rate * (changes[i][0] - last)
            last, rate = changes[i][0], rate + changes[i][1]
            i += 1
        served.append(total + rate * (hour - last))
    return served


def least_longest_wait(jobs, gpus, above):
    """Whole hours: no schedule has a smaller longest wait if jobs of up to `above` device hours never wait."""
    n_hours = 2 + int(max(at + run for at, run, _ in jobs))
    at_once = served_at_once(jobs, n_hours)
    room, least = [], math.inf
    for hour, served in enumerate(at_once):
        least = min(least, served - gpus * hour)
        room.append(least + gpus * hour)
    may_wait = served_at_once([job for job in jobs if job[1] * job[2] > above], n_hours)
    others = [served - waits for served, waits in zip(at_once, may_wait)]
    fits = lambda wait: all(others[hour] + (may_wait[hour - wait] if hour >= wait else 0) <= room[hour] + 1e-6
                            for hour in range(n_hours))
    low, high = 0, n_hours
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle + 1, high)
    return low


def play_ideal(jobs, gpus, at_once, step=0.25):
    """Mean completion and longest waiting, hours: the first `at_once` device hours of a job before all else, then the most waited."""
    import numpy
    submission, run, width = (numpy.array(column, float) for column in zip(*sorted(jobs)))
    served, waited = numpy.zeros(len(jobs)), numpy.zeros(len(jobs))
    active, n_submitted, now = numpy.empty(0, int), 0, 0.0
    while n_submitted < len(jobs) or len(active) > 0:
        end = numpy.searchsorted(submission, now + step)
        active = numpy.concatenate([active, numpy.arange(n_submitted, end)])
        n_submitted = end
        present = numpy.minimum(step, now + step - submission[active])
        wish = numpy.minimum(run[active] - served[active], present)
        first = served[active] * width[active] < at_once
        order = numpy.argsort(numpy.where(first, -math.inf, -waited[active]), kind="stable")
        device_hours = (wish * width[active])[order]
        before = numpy.cumsum(device_hours) - device_hours
        gets = numpy.empty(len(active))
        gets[order] = wish[order] * numpy.clip((gpus * step - before) / numpy.maximum(device_hours, 1e-12), 0, 1)
        served[active] += gets
        done = served[active] >= run[active] - 1e-9
        waited[active] += numpy.where(done, wish, present) - gets
        active = active[~done]
        now += step
    return float((run + waited).mean()), float(waited.max())


def print_bounds(gpus):
    jobs = read_jobs()
    print(f"{'jobs that may wait':42} {'jobs':>7} {'longest wait, h':>16}")
    for above in (0, 20, 50, 100, 200):
        n_waiting = sum(run * width > above for _, run, width in jobs)
        title = f"those of more than {above} device hours" if above > 0 else "all"
        print(f"{title:42} {n_waiting:7} {least_longest_wait(jobs, gpus, above):16}", flush=True)
    print(f"\n{'run times unknown, evictions for nothing':42} {'mean, h':>7} {'longest wait, h':>16}")
    for at_once in (1, 5, 10, 20, 50, 100):
        mean, longest = play_ideal(jobs, gpus, at_once)
        print(f"{f'the first {at_once} device hours of all at once':42} {mean:7.1f} {longest:16.0f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", type=int, default=416)
    parser.add_argument("--profiles", default="fifo,fifo-skip,sjf,las,default")
    parser.add_argument("--cycle", type=float, default=60)
    parser.add_argument("--by-queue", action="store_true")
    parser.add_argument("--bound", action="store_true", help="what no scheduler can get below")
    parser.add_argument("-o", "--output", choices=["text", "json"], default="text")
    options = parser.parse_args()
    if options.bound:
        print_bounds(options.gpus)
        return
    rows = []
    if options.output == "text":
        print(f"{'profile':10} {'mean':>8} {'p50':>8} {'p99':>8} {'wait':>8} {'max wait':>9} {'first start':>12} "
              f"{'wait >= 8':>10} {'evictions':>10}", flush=True)
    trace = tempfile.NamedTemporaryFile(suffix=".csv")
    subprocess.run([CONVERT, "philly-csv", TRACE], stdout=trace, check=True)
    for profile in options.profiles.split(","):
        row = play(profile, trace.name, options)
        rows.append(row)
        if options.output == "text":
            print(f"{row['profile']:10} {row['mean']:8.2f} {row['p50']:8.2f} {row['p99']:8.1f} {row['mean_wait']:8.2f} "
                  f"{row['max_wait']:9.0f} {row['max_first_start']:12.0f} {row['mean_wait_large']:10.1f} "
                  f"{row['evictions']:10}",
                  flush=True)
    if options.output == "json":
        print(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()

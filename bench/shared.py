#!/usr/bin/python3
"""A shared cluster against one that is divided among its users: use, slowdown of gangs, finished jobs, guarantees.

    bench/shared.py [--seeds 20] [--first-seed 1] [--keep FOLDER] [--durations all|by-size] [-o json]
    bench/shared.py --rows FILE ...     what runs of some seeds each wrote with -o json, as one table

A seed takes a quarter of a minute to some minutes on a core, by how crowded its cluster is.

The cluster: 4 nodes of 8 accelerators and 4 of 16, 96 in all; 12 users in 3 departments, of each department one with 16
accelerators, one with 8 and two with 4. 40 days are played with `weir simulate`, twice:

    static   each user has so many whole accelerators, in order of arrival, the first that does not fit blocks those behind
             it; a notebook holds an accelerator; nothing is lent (--profile static; it counts accelerators, and decides at
             once, where the scheduler plans each 30 s).
    shared   the same numbers are guarantees (--profile default): what is idle is lent, and taken back; notebooks take a
             share; half of the gangs are elastic from half their size on; run times are not known.

The work, drawn anew for each seed. None of it was chosen by what comes out but the last line:

    sessions     users come to work: a Poisson process, by day and night 1 + 0.8 cos(2 pi (hour - 15) / 24)
    users        of a session: by Zipf's law (exponent 1) over the 12 users in an order that is drawn, whatever they own
    a session    one job after the other, 10 in the mean (geometric): the next one is submitted when the last one has ended
                 and its user has thought, 30 minutes in the mean (exponential)
    jobs         30 % notebooks: 0.1, 0.2 or 0.3 of an accelerator, idle 70 % of the time, not preemptible
                 55 % trainings on one accelerator
                 15 % gangs of 8, 12 or 16 tasks of an accelerator each, no more than the user owns (who owns 4 has no gangs)
    run times    drawn from all 82,247 of Philly; with --durations by-size from Philly's jobs of the same size
    sessions/day searched by bisection, so that 29 % (28.5 to 29.5) of the static cluster are used; a seed of which it
                 cannot be, as its busiest users own too little, is left out, and the next one played instead

Arrivals of sessions are open and the jobs of one are a closed loop, as people work: a faster cluster is asked for more, but not
without end. "any" is what no scheduler can exceed: the same sessions on so many accelerators that nobody ever waits.

use        accelerator time in which something is computed, of all there is in the 40 days. A notebook that idles, lost work and
           restarts are not use. Of "any": of the 96, but no more than 100 %.
slowdown   of gangs: from submission to end, of the run time; the mean. A gang that has not ended counts with its run time and
           what it has waited so far, which makes the longer-waiting cluster look better than it is.
below      longest that any job waited though it would have fitted into what its queue held less than its guarantee. A reclaim
           takes up to one cycle, 30 s (evictions take effect at once in a replay).
"""
import argparse
import bisect
import csv
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[1]
WEIR = pathlib.Path(os.environ.get("WEIR_BIN", ROOT / "build/release/programs")) / "weir"
PHILLY = pathlib.Path(os.environ.get("WEIR_SHARED_DATA", ROOT / "../shared/data")) / "scheduler/philly/sia_philly.csv"

DAYS, DAY_S, HOUR_S = 40, 86400, 3600
ACCELERATORS, CYCLE_S = 96, 30
DEPARTMENTS = ["radiology", "pathology", "genomics"]
OWNED = [16, 8, 4, 4]
USERS = [(f"{department}-{i + 1}", owned) for department in DEPARTMENTS for i, owned in enumerate(OWNED)]
NOTEBOOKS, TRAININGS = 0.30, 0.55
BUSY_PCT = 30
SESSION_JOBS, THINK_S = 10, 1800
USED_PCT, TOLERANCE_PCT = 29, 0.5
PLENTY = 20000
TARGETS = {"use": 2.1, "slowdown": 31, "finished": 1.85}


def cluster_file():
    lines = ["nodes:", "  - {name: small, count: 4, accelerators: 8}", "  - {name: large, count: 4, accelerators: 16}", "queues:"]
    for department in DEPARTMENTS:
        lines.append(f"  - {{name: {department}, quota: {sum(OWNED)}}}")
        lines += [f"  - {{name: {user}, parent: {department}, quota: {owned}}}" for user, owned in USERS
                  if user.startswith(department)]
    return "\n".join(lines) + "\n"


def philly_durations(rule):
    """Run times that jobs of one accelerator, and gangs, are drawn from."""
    with open(PHILLY, encoding="utf-8") as file:
        rows = [(int(row["num_gpus"]), float(row["duration"])) for row in csv.DictReader(file)]
    if rule == "all":
        every = [duration for _, duration in rows]
        return every, every
    return ([duration for size, duration in rows if size == 1], [duration for size, duration in rows if size >= 8])


def moments(rng, per_day):
    """Arrivals: unit steps of the integral of the rate, which is inverted on a table of minutes."""
    step_s = 60
    total, integral = 0.0, [0.0]
    for i in range(DAYS * DAY_S // step_s):
        hour = i * step_s / HOUR_S % 24
        total += per_day * (1 + 0.8 * math.cos(2 * math.pi * (hour - 15) / 24)) * step_s / DAY_S
        integral.append(total)
    at = rng.expovariate(1)
    while at < total:
        i = bisect.bisect_right(integral, at) - 1
        yield (i + (at - integral[i]) / (integral[i + 1] - integral[i])) * step_s
        at += rng.expovariate(1)


def make_job(rng, owned, durations):
    single, gang = durations
    kind = rng.random() * (1 if owned >= 8 else NOTEBOOKS + TRAININGS)
    if kind < NOTEBOOKS:
        return {"kind": "notebook", "share": rng.choice([0.1, 0.2, 0.3]), "duration": rng.choice(single)}
    if kind < NOTEBOOKS + TRAININGS:
        return {"kind": "training", "duration": rng.choice(single)}
    return {"kind": "gang", "tasks": rng.choice([size for size in (8, 12, 16) if size <= owned]),
            "is_elastic": rng.random() < 0.5, "duration": rng.choice(gang)}


def make_sessions(seed, per_day, durations):
    """Each session has its own generator, so that another rate moves sessions and adds some, and changes none."""
    rng = random.Random(seed)
    order = rng.sample(USERS, len(USERS))
    weights = [1 / rank for rank in range(1, len(USERS) + 1)]
    for i, at in enumerate(moments(rng, per_day)):
        own = random.Random(f"{seed} {i}")
        user, owned = own.choices(order, weights)[0]
        jobs = [make_job(own, owned, durations)]
        while own.random() > 1 / SESSION_JOBS:
            jobs.append(make_job(own, owned, durations) | {"think": own.expovariate(1 / THINK_S)})
        yield at, user, jobs


def as_row(job, is_shared):
    """Columns of the trace: accelerators, share, tasks, min_tasks, busy_pct, preemptible."""
    if job["kind"] == "training":
        return [1, "", 1, "", 100, "yes"]
    if job["kind"] == "gang":
        return [1, "", job["tasks"], job["tasks"] // 2 if is_shared and job["is_elastic"] else "", 100, "yes"]
    if is_shared:
        return [1, job["share"], 1, "", BUSY_PCT, "no"]
    return [1, "", 1, "", round(job["share"] * BUSY_PCT), "no"]


def write_trace(path, sessions, is_shared):
    with open(path, "w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["name", "submit", "after", "think", "duration", "queue", "user", "accelerators", "share", "tasks",
                        "min_tasks", "busy_pct", "preemptible"])
        # Time starts with the first submission: a job of no work stands for the beginning of the 40 days.
        table.writerow(["start", 0, "", "", 0, USERS[0][0], "", 1, "", 1, "", 100, "yes"])
        for s, (at, user, jobs) in enumerate(sessions):
            for j, job in enumerate(jobs):
                when = [f"{at:.3f}", "", ""] if j == 0 else ["", f"s{s}-{j - 1}", f"{job['think']:.3f}"]
                table.writerow([f"s{s}-{j}", *when, job["duration"], user, user, *as_row(job, is_shared)])


def play(trace, *words):
    command = [str(WEIR), "simulate", "--trace", str(trace), *map(str, words), "--option", f"until={DAYS * DAY_S}"]
    answer = subprocess.run([*command, "-o", "json"], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    report = json.loads(answer.stdout)
    gangs = [size for size in report["sizes"] if size["accelerators"] == "8 and more"]
    return {
        "command": " ".join(command),
        "use_pct": report["utilisation_pct"],
        "held_pct": report["allocation_all_pct"],
        "finished": report["finished"],
        "submitted": report["submitted"],
        "slowdown": gangs[0]["slowdown"]["mean"],
        "gangs": gangs[0]["jobs"],
        "evictions": report["evictions"],
        "below_s": max(queue["longest_below_guarantee_s"] for queue in report["queues"]),
        "unreclaimed_s": max(queue["longest_unreclaimed_s"] for queue in report["queues"]),
        "kept": min(queue["guarantee_kept"] for queue in report["queues"]),
        "cycle_ms": report.get("cycle_ms", {}).get("mean"),
    }


def play_static(folder, seed, per_day, durations):
    write_trace(folder / "static.csv", make_sessions(seed, per_day, durations), False)
    return play(folder / "static.csv", "--cluster", folder / "cluster.yaml", "--profile", "static")


class NeverUsed(Exception):
    """However many sessions come, the static cluster is not used as it should be."""


def search_rate(folder, seed, durations):
    """Sessions a day at which the static cluster is used as it should be."""
    low, high = 0.0, 8.0
    while play_static(folder, seed, high, durations)["use_pct"] < USED_PCT:
        low, high = high, high * 2
        if high > 4096:
            raise NeverUsed(f"seed {seed} is left out: its static cluster is never used to {USED_PCT} %")
    for _ in range(24):
        middle = (low + high) / 2
        static = play_static(folder, seed, middle, durations)
        if abs(static["use_pct"] - USED_PCT) <= TOLERANCE_PCT:
            return middle, static
        low, high = (middle, high) if static["use_pct"] < USED_PCT else (low, middle)
    raise NeverUsed(f"seed {seed} is left out: no rate gives a use of {USED_PCT} %")


def ratios(static, other):
    return {"use": other["use_pct"] / static["use_pct"], "slowdown": static["slowdown"] / other["slowdown"],
            "finished": other["finished"] / static["finished"]}


def measure(folder, seed, options, durations):
    (folder / "cluster.yaml").write_text(cluster_file(), encoding="utf-8")
    per_day, static = search_rate(folder, seed, durations)
    write_trace(folder / "shared.csv", make_sessions(seed, per_day, durations), True)
    shared = play(folder / "shared.csv", "--cluster", folder / "cluster.yaml", "--profile", options.profile,
                  "--option", f"cycle={CYCLE_S}", *[word for text in options.option for word in ("--option", text)])
    best = play(folder / "shared.csv", "--gpus", PLENTY, "--profile", "fifo-skip")
    best["use_pct"] = min(100.0, best["use_pct"] * PLENTY / ACCELERATORS)
    return {"seed": seed, "sessions_per_day": per_day, "static": static, "shared": shared, "any": best,
            "ratio": ratios(static, shared), "bound": ratios(static, best)}


def tenth_percentile(values):
    values = sorted(values)
    at = 0.1 * (len(values) - 1)
    low = int(at)
    return values[low] + (at - low) * (values[min(low + 1, len(values) - 1)] - values[low])


def summary(rows):
    figures = {}
    for name, target in TARGETS.items():
        figures[name] = {"target": target, "p10": tenth_percentile([row["ratio"][name] for row in rows]),
                         "p50": sorted(row["ratio"][name] for row in rows)[len(rows) // 2],
                         "bound_p10": tenth_percentile([row["bound"][name] for row in rows])}
    for name in ("below_s", "unreclaimed_s"):
        figures[name] = max(row["shared"][name] for row in rows)
    return figures


HEADINGS = ("seed", "sessions", "use %", "use %", "any", "gangs", "slowdown", "slowdown", "finished", "finished", "any",
            "evict-", "below s", "use", "slowdown", "finished")
PLACES = ("", "/day", "static", "shared", "", "", "static", "shared", "static", "shared", "",
          "ions", "", "ratio", "ratio", "ratio")
FORMS = ("{:4}", "{:8.1f}", "{:6.1f}", "{:6.1f}", "{:6.1f}", "{:5}", "{:9.1f}", "{:9.2f}", "{:8}", "{:8}", "{:6}",
         "{:6}", "{:8.1f}", "{:6.2f}", "{:8.1f}", "{:8.2f}")
WIDTHS = [len(form.format(0)) for form in FORMS]


def print_row(row):
    static, shared, best, ratio = row["static"], row["shared"], row["any"], row["ratio"]
    values = (row["seed"], row["sessions_per_day"], static["use_pct"], shared["use_pct"], best["use_pct"], shared["gangs"],
              static["slowdown"], shared["slowdown"], static["finished"], shared["finished"], best["finished"],
              shared["evictions"], shared["below_s"], ratio["use"], ratio["slowdown"], ratio["finished"])
    print(" ".join(form.format(value) for form, value in zip(FORMS, values)), flush=True)


def print_summary(figures):
    print(f"\n{'10th percentile of the ratio':30} {'measured':>9} {'wanted':>7} {'any':>9}")
    for name in TARGETS:
        figure = figures[name]
        print(f"{name:30} {figure['p10']:9.2f} {figure['target']:7} {figure['bound_p10']:9.2f}")
    print(f"{'longest below a guarantee, s':30} {figures['below_s']:9.1f} {CYCLE_S:7}")
    print(f"{'... with enough to be had, s':30} {figures['unreclaimed_s']:9.1f} {CYCLE_S:7}")


def measure_seeds(options):
    durations = philly_durations(options.durations)
    n_played, seed = 0, options.first_seed
    while n_played < options.seeds:
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            if options.keep:
                folder = options.keep / f"seed-{seed}"
                folder.mkdir(parents=True, exist_ok=True)
            try:
                row = measure(folder, seed, options, durations)
                n_played += 1
                yield row
            except NeverUsed as why:
                print(f"bench/shared.py: {why}", file=sys.stderr)
        seed += 1


def read_rows(paths):
    rows = [row for path in paths for row in json.loads(path.read_text(encoding="utf-8"))["seeds"]]
    return sorted(rows, key=lambda row: row["seed"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--durations", choices=["all", "by-size"], default="all")
    parser.add_argument("--profile", default="default", help="of the shared cluster")
    parser.add_argument("--option", action="append", default=[], help="of the shared cluster's replay")
    parser.add_argument("--keep", type=pathlib.Path, help="leave the traces and the cluster file there")
    parser.add_argument("--rows", type=pathlib.Path, nargs="+", metavar="FILE")
    parser.add_argument("-o", "--output", choices=["text", "json"], default="text")
    options = parser.parse_args()
    rows = []
    if options.output == "text":
        for words in (HEADINGS, PLACES):
            print(" ".join(f"{word:>{width}}" for word, width in zip(words, WIDTHS)), flush=True)
    for row in read_rows(options.rows) if options.rows else measure_seeds(options):
        rows.append(row)
        if options.output == "text":
            print_row(row)
    if options.output == "json":
        print(json.dumps({"seeds": rows, "summary": summary(rows)}, indent=2))
    else:
        print_summary(summary(rows))


if __name__ == "__main__":
    main()

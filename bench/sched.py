#!/usr/bin/python3
"""How long the scheduler's plans take, beside what KAI-Scheduler published for its own.

    bench/sched.py [--profiles default,kai] [--cycles 120] [--nodes 10000] [-o json]

Runs `sched-bench` (of `make tools`) once for each scenario and profile; times are CPU time of one core, in milliseconds,
of one plan. Theirs are those of its scale tests (500 simulated nodes of eight accelerators) and include
the API server, binding and the life of pods; ours are the decisions alone, nothing is sent or stored.
So the columns are beside each other, not against each other. How their gangs of 250 and 500 came to run
is not told: ours take their places back from 4,000 jobs.

The last lines say what a plan needs beside its snapshot, at most, for clusters of 1,000 to 16,000 nodes with six
tasks each: if bytes a task do not grow, memory is linear.
"""
import argparse
import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).parents[1]
BENCH = pathlib.Path(os.environ.get("WEIR_SCHED_BENCH", ROOT / "build/release/tools/sched-bench"))
SCENARIOS = [  # name, what it is, their seconds
    ("fill", "4,000 jobs of 1 on 500 nodes", 397.8),
    ("reclaim-one", "reclaim of 1 among 4,000 that run", 13.9),
    ("reclaim-4000", "4,000 reclaims of 1", 694),
    ("reclaim-250x8", "a gang of 250 x 8", 102),
    ("reclaim-500x8", "a gang of 500 x 8", 85),
    ("reclaim-50x10x8", "50 gangs of 10 x 8", 717),
    ("consolidate", "41 gangs of 10 x 8 by moving work", 456),
    ("refuse", "a gang of 10 x 8 that may not: the reason", 249.5),
    ("topology", "a gang of 512 in one zone, rather one rack", 48.7),
    ("throughput", "50,000 tasks on 5,000 nodes", None),
    ("live", "a cycle of a cluster that lives: p50", None),
]
MEMORY_NODES = [1000, 2000, 4000, 8000, 16000]


def measure(scenario, profile, options, nodes=None):
    answer = subprocess.run(
        [BENCH, "-p", profile, "-n", str(options.cycles), "-N", str(nodes or options.nodes), scenario],
        check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return json.loads(answer.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profiles", default="default,kai")
    parser.add_argument("--cycles", type=int, default=120)
    parser.add_argument("--nodes", type=int, default=10000, help="of the cluster that lives")
    parser.add_argument("-o", "--output", choices=["text", "json"], default="text")
    options = parser.parse_args()
    profiles = options.profiles.split(",")
    rows = []
    if options.output == "text":
        print(f"{'':44}" + "".join(f"{profile + ' ms':>14}" for profile in profiles) + f"{'theirs ms':>14}", flush=True)
    for scenario, title, theirs in SCENARIOS:
        results = [measure(scenario, profile, options) for profile in profiles]
        rows += [dict(result, theirs_ms=theirs and theirs * 1000) for result in results]
        if options.output == "json":
            continue
        print(f"{title:44}" + "".join(f"{result['ms']:14.2f}" for result in results)
              + (f"{theirs * 1000:14,.0f}" if theirs else ""), flush=True)
        if scenario == "throughput":
            print(f"{'  decisions a second':44}"
                  + "".join(f"{result['decisions'] / result['ms'] * 1000:14,.0f}" for result in results), flush=True)
        if scenario == "live":
            for key, name in (("p99_ms", "  p99"), ("max_ms", "  longest")):
                print(f"{name:44}" + "".join(f"{result[key]:14.2f}" for result in results), flush=True)
    for nodes in MEMORY_NODES:
        results = [measure("memory", profile, options, nodes) for profile in profiles]
        rows += [dict(result, nodes=nodes) for result in results]
        if options.output == "text":
            title = f"bytes a task, {nodes:,} nodes, {results[0]['tasks']:,} tasks"
            print(f"{title:44}" + "".join(f"{result['plan_kib'] * 1024 / result['tasks']:14.0f}" for result in results),
                  flush=True)
    if options.output == "json":
        print(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()

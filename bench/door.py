#!/usr/bin/python3
"""Who is let in: the reference use case with real photographs, drawn several times.

Each draw shuffles who is enrolled, who joins later, who is barred, who is unknown and who passes by, and
plays `weir demo building-security --faces` with them to its end, on a server of its own. What is printed
comes from the demo's report, which compares the frames sent with the decisions recorded.

    bench/door.py [--faces DIR] [--draws 10] [--first-seed 1] [-o json]

DIR has a folder per person; by default the ORL faces of the shared data.
"""
import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[1]
os.environ.setdefault("WEIR_BIN", str(ROOT / "build/release/programs"))
sys.path.insert(0, str(ROOT / "tests/system"))
import harness  # noqa: E402
from harness import Server  # noqa: E402

COLUMNS = ("enrolled right", "newly enrolled right", "barred denied", "barred granted", "unknown granted", "threshold",
           "deny threshold", "own photos refused")


def draw(faces, seed):
    """One play; its figures by COLUMNS."""
    people = sorted(p for p in faces.iterdir() if p.is_dir())
    random.Random(seed).shuffle(people)
    with tempfile.TemporaryDirectory(prefix="weir-door-") as folder:
        for i, person in enumerate(people):
            (pathlib.Path(folder) / f"p{i:03}").symlink_to(person)
        server = Server().start()
        try:
            done = subprocess.run(
                [harness.WEIR, "demo", "building-security", "--state", str(server.state), "--once", "-o", "json",
                 "--faces", folder, "--seed", str(seed), "--example", str(ROOT / "examples/building-security")],
                capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"draw {seed}: {done.stderr[-2000:]}")
            report = json.loads(done.stdout)
            pipelines = server.get("/ions/building-security")["pipelines"]
            threshold = next(p["threshold"] for p in pipelines if p.get("threshold"))
        finally:
            server.stop()
    right, wrong = report["right"], report["wrong"]

    def share(kind, n):
        return n / max(right[kind] + wrong[kind], 1)

    def granted(kind):
        return share(kind, report["wrong_verdicts"].get(kind, {}).get("grant", 0))

    return (share("enrolled", right["enrolled"]), share("newly_enrolled", right["newly_enrolled"]),
            share("barred", right["barred"]), granted("barred"), granted("unknown"),
            threshold["threshold"], threshold["deny_threshold"], threshold["refused_share"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    shared = os.environ.get("WEIR_SHARED_DATA", str(ROOT.parent / "shared/data"))
    parser.add_argument("--faces", type=pathlib.Path, default=pathlib.Path(shared) / "orl_faces")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("-o", choices=("text", "json"), default="text")
    args = parser.parse_args()
    if not args.faces.is_dir():
        sys.exit(f"{args.faces} is not a folder: name one with --faces")
    rows = []
    for seed in range(args.first_seed, args.first_seed + args.draws):
        rows.append(draw(args.faces, seed))
        if args.o == "text":
            print(f"draw {seed}: " + ", ".join(f"{c} {v:.3f}" for c, v in zip(COLUMNS, rows[-1])), flush=True)
    means = [sum(column) / len(rows) for column in zip(*rows)]
    if args.o == "json":
        print(json.dumps({"draws": [dict(zip(COLUMNS, row)) for row in rows], "mean": dict(zip(COLUMNS, means))}))
    else:
        print("mean: " + ", ".join(f"{c} {v:.4f}" for c, v in zip(COLUMNS, means)))


main()

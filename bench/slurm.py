#!/usr/bin/python3
"""Weir on a Slurm cluster beside Slurm itself: the first line of a job beside srun's, many short tasks beside a job array, and
what a server with many allocations costs.

Starts a Slurm cluster of its own (tests/system/slurm_cluster.py: four nodes of 16 made-up CPUs on this machine) and a server. It wants root and
Debian's packages of Slurm.

    bench/slurm.py [--times 10] [--tasks 500] [--allocations 2000] [-o json]

Of each pair Weir and Slurm take turns; medians are printed, and their ratio. Each first line is of a job for which no allocation is there.
"""
import argparse
import json
import os
import pathlib
import sqlite3
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).parents[1]
os.environ.setdefault("WEIR_BIN", str(ROOT / "build/release/programs"))
sys.path.insert(0, str(ROOT / "tests/system"))
import slurm_cluster  # noqa: E402
from harness import WEIR, Server, wait_until  # noqa: E402


def say(text):
    print(text, file=sys.stderr, flush=True)


class World:
    def __init__(self, slurm):
        self.slurm = slurm
        self.environment = {**os.environ, **slurm.environment, "PATH": f"{pathlib.Path(WEIR).parent}:/usr/sbin:/usr/bin:/sbin:/bin"}
        self.server = Server()
        self.server.program = ["env", f"SLURM_CONF={slurm.conf}", WEIR]
        self.server.start("--no-agent")
        self.server.weir("cluster", "add", "slurm", "--driver", "slurm", "--yes", "--set", f"program={WEIR}")

    def close(self):
        self.slurm.run("scancel", "--user", "root", check=False)
        self.server.stop()

    def seconds(self, *argv):
        """Until it has printed its line, and ended."""
        began, first = time.monotonic(), None
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=self.environment)
        for line in process.stdout:
            if "hello" in line and first is None:
                first = time.monotonic() - began
        process.wait()
        return first

    def no_allocations(self):
        for allocation in self.server.get("/allocations?view=open&limit=1000")["items"]:
            self.server.post(f"/allocations/{allocation['id']}/release")
        wait_until(lambda: not self.server.get("/allocations?view=open")["items"], 30, "no allocations")

    def first_line(self):
        self.no_allocations()
        slurm = self.seconds("srun", "echo", "hello")
        batch = self.batch_line()
        weir = self.seconds(WEIR, "job", "run", "--state", str(self.server.state), "--follow", "--", "echo", "hello")
        return weir, slurm, batch

    def batch_line(self):
        """sbatch of a script that starts a step: what an allocation is."""
        out = self.slurm.dir / "line"
        out.unlink(missing_ok=True)
        began = time.monotonic()
        self.slurm.run("sbatch", f"--output={out}", "--wrap", "srun echo hello")
        wait_until(lambda: out.exists() and "hello" in out.read_text(), 20, "the batch job's line")
        return time.monotonic() - began

    def many(self, n):
        self.no_allocations()
        began = time.monotonic()
        self.slurm.run("sbatch", "-o", "/dev/null", f"--array=1-{n}", "--job-name=many", "--wrap", "true")
        wait_until(lambda: not self.slurm.run("squeue", "-h", "-n", "many"), 120, "the array's end")  # --wait looks rarely
        slurm = time.monotonic() - began
        began = time.monotonic()
        self.server.weir("job", "run", "--array", str(n), "--cpus", "1", "--follow", "--", "true", timeout=600)
        return time.monotonic() - began, slurm

    def parts(self):
        text = self.server.request("GET", "/metrics", raw=True).decode()
        return {line.split('"')[1]: float(line.split()[-1]) for line in text.splitlines() if line.startswith("weir_engine_seconds_total{")}

    def many_allocations(self, n):
        """Rows of n allocations that wait in Slurm, as a server has them that was started again; what its rounds take."""
        self.no_allocations()
        url, port = self.server.url, self.server.url.rsplit(":", 1)[1]
        self.server.weir("cluster", "set", "slurm", "--idle", "1h")
        held = [self.server.weir("job", "run", "--cpus", "16", "--", "sleep", "600")[1] for _ in range(8)]
        wait_until(lambda: self.server.get("/allocations?view=open")["items"], 30, "an allocation")
        self.server.kill()
        names = [f"slurm-{i:08x}" for i in range(n)]
        for name in names:
            self.slurm.run("sbatch", "--hold", f"--job-name={name}", "--wrap", "true")
        with sqlite3.connect(self.server.state / "weir.db") as db:
            columns = [row[1] for row in db.execute("PRAGMA table_info(allocations)")]
            row = dict(zip(columns, db.execute("SELECT * FROM allocations LIMIT 1").fetchone()))
            now = int(time.time() * 1000)
            for name in names:
                values = {**row, "id": name, "state": "pending", "asked_ms": now, "ended_ms": 0, "their_id": None, "ending": None, "idle_since_ms": 0}
                db.execute(f"INSERT INTO allocations ({','.join(columns)}) VALUES ({','.join('?' * len(columns))})", [values[c] for c in columns])
            db.execute("UPDATE counters SET value = value + 1 WHERE name = 'cluster_revisions'")
        db.close()
        self.server.start("--no-agent", "--listen", f"127.0.0.1:{port}")
        wait_until(lambda: all(a["their_id"] for a in self.server.get("/allocations?view=open&limit=1000")["items"][:50]), 60, "they are known")
        before, began, longest = self.parts(), time.monotonic(), 0
        for _ in range(16):
            last = self.parts()["jobs"]
            time.sleep(0.5)
            longest = max(longest, self.parts()["jobs"] - last)
        after, took = self.parts(), time.monotonic() - began
        assert held and url
        polls = []
        for _ in range(10):
            begun = time.monotonic()
            self.slurm.run("squeue", "-h", "-a", "-t", "all", "-o", "%i|%j|%T|%r|%N|%S|%e")
            polls.append(time.monotonic() - begun)
        return {"allocations": n, "engine_share": sum(after[part] - before[part] for part in after) / took,
                "jobs_longest_half_second_s": longest, "squeue_s": statistics.median(polls)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--tasks", type=int, default=500)
    parser.add_argument("--allocations", type=int, default=2000)
    parser.add_argument("-o", "--output", choices=["text", "json"], default="text")
    asked = parser.parse_args()
    if why := slurm_cluster.why_not():
        sys.exit(why)
    with slurm_cluster.Cluster() as slurm:
        world = World(slurm)
        try:
            lines = [world.first_line() for _ in range(asked.times)]
            say(f"first lines (weir, srun, sbatch): {[tuple(round(x, 3) for x in line) for line in lines]}")
            many = [world.many(asked.tasks) for _ in range(3)]
            say(f"{asked.tasks} tasks (weir, slurm): {[tuple(round(x, 2) for x in pair) for pair in many]}")
            found = {"first_line_s": {name: statistics.median(line[i] for line in lines) for i, name in enumerate(("weir", "srun", "sbatch"))},
                     "tasks": asked.tasks,
                     "tasks_s": {name: statistics.median(pair[i] for pair in many) for i, name in enumerate(("weir", "slurm"))},
                     "many": world.many_allocations(asked.allocations) if asked.allocations else None}
        finally:
            world.close()
    if asked.output == "json":
        print(json.dumps(found, indent=2))
        return
    line, tasks = found["first_line_s"], found["tasks_s"]
    print(f"first line      weir {line['weir']:.3f} s   srun {line['srun']:.3f} s   sbatch {line['sbatch']:.3f} s   weir - srun {line['weir'] - line['srun']:.3f} s")
    print(f"{asked.tasks} short tasks weir {tasks['weir']:.2f} s   sbatch --array {tasks['slurm']:.2f} s   ratio {tasks['weir'] / tasks['slurm']:.2f}")
    if found["many"]:
        many = found["many"]
        print(f"{many['allocations']} allocations: one squeue {many['squeue_s']:.3f} s; the engine works {100 * many['engine_share']:.1f} % of the time, "
              f"at most {1000 * many['jobs_longest_half_second_s']:.0f} ms of any half second on jobs and clusters")


if __name__ == "__main__":
    main()

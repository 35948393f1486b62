"""The same jobs on own nodes and on a Slurm cluster, which is a real one (slurm_cluster.py): what is borrowed comes back after it was
saved; a server that is killed at any moment asks Slurm for nothing twice; what Slurm takes away goes on elsewhere. What is
counted is counted by Slurm, and by what programs wrote, not by Weir."""
import json
import os
import pathlib
import random
import signal
import subprocess
import time
import unittest

import harness
import slurm_cluster
from borrowing import World
from harness import WEIR, wait_until

SEED = int(os.environ.get("WEIR_SEED", str(random.SystemRandom().randrange(1 << 32))))


class OwnNodes(World):
    def supply(self):
        devices = self.server.root / "devices.yaml"
        devices.write_text(json.dumps({"devices": [{"model": "h200", "count": 4}]}))
        for name in ("a", "b"):
            folder = self.server.root / f"agent-{name}"
            folder.mkdir()
            (folder / "token").write_text(self.server.post(
                "/tokens", {"name": name, "role": "agent", "user": "agent", "node": name})["secret"])
            agent = subprocess.Popen(
                [WEIR, "agent", "--server", self.server.url, "--dir", folder, "--node", name, "--cpu-slots", "16", "--devices",
                 devices, "--share", f"{self.server.root}:rw"], stderr=subprocess.DEVNULL, start_new_session=True)
            self.addCleanup(agent.wait)
            self.addCleanup(agent.kill)

    def test_what_is_borrowed_comes_back(self):
        self.check_borrowed_comes_back()


@unittest.skipIf(slurm_cluster.why_not(), slurm_cluster.why_not() or "")
class OnSlurm(World):
    """Its nodes are those of partition short: two of four devices each."""

    def supply(self):
        self.slurm = slurm_cluster.Cluster(kill_wait=5)
        self.slurm.__enter__()
        self.addCleanup(self.slurm.__exit__)
        self.addCleanup(self.end_jobs)
        self.add_cluster()

    def add_cluster(self):
        options = {"conf": str(self.slurm.conf), "partition": "short", "program": WEIR, "shares": json.dumps([f"{self.server.root}:rw"])}
        words = [word for key, value in options.items() for word in ("--set", f"{key}={value}")]
        self.server.weir("cluster", "add", "slurm-a", "--driver", "slurm", "--yes", *words)

    def end_jobs(self):
        """Before Slurm: what runs in an allocation ends with it."""
        self.slurm.run("scancel", "--user", "root", check=False)
        wait_until(lambda: not self.slurm.run("squeue", "-h"), 20, "an empty queue")

    def names(self):
        """Slurm's: one line for each job that it ever had."""
        return [line.split("=")[1] for line in self.slurm.run("scontrol", "-o", "show", "job").split() if line.startswith("JobName=")]

    def running(self):
        return self.slurm.run("squeue", "-h", "-t", "R", "-o", "%i").split()

    def restart(self):
        port = self.server.url.rsplit(":", 1)[1]
        self.server.start("--no-agent", "--listen", f"127.0.0.1:{port}")

    def test_what_is_borrowed_comes_back(self):
        self.check_borrowed_comes_back()

    def test_a_server_that_is_killed_asks_for_nothing_twice(self):
        print(f"WEIR_SEED={SEED}")
        rng = random.Random(SEED)
        jobs = []
        for i in range(6):
            path, script = self.counter(f"killed-{i}")
            pathlib.Path(f"{path}.end").touch()
            jobs.append(self.submit(f"killed-{i}", "blue", script, resources={"cpus": 9, "accelerators": 1}))
            time.sleep(rng.random() * 0.8)
            self.server.kill()
            self.restart()
        self.await_all(jobs, "SUCCEEDED", 60)
        names = self.names()
        self.assertEqual(len(names), len(set(names)), names)
        for i in range(6):
            self.assertEqual(self.lines(self.work / f"killed-{i}.ends"), ["end"])
        self.assertEqual({self.job(job)["n_restarts"] for job in jobs}, {0})

    def test_what_slurm_takes_away_goes_on(self):
        path, script = self.counter("taken")
        job = self.submit("taken", "blue", script)
        self.await_all([job], "RUNNING")
        wait_until(lambda: self.lines(pathlib.Path(f"{path}.starts")), 20, "it can save")
        self.slurm.run("scancel", *wait_until(self.running, 10, "a running job of Slurm's"))
        wait_until(lambda: len(self.lines(pathlib.Path(f"{path}.starts"))) == 2, 30, "it runs again")
        self.assertEqual(self.lines(pathlib.Path(f"{path}.saved")), ["saved"])
        found = self.job(job)
        self.assertEqual((found["n_restarts"], found["n_evictions"]), (0, 1))
        self.check_partition_down(job, path)

    def check_partition_down(self, job, path):
        """A partition that is taken down keeps what runs; what waits says so, and starts when it is up."""
        self.slurm.run("scontrol", "update", "partition=short", "state=down")
        waits = self.submit("waits", "green", "true", tasks=5)
        reason = lambda: self.job(waits)["reason"] or ""  # noqa: E731
        wait_until(lambda: "PartitionDown" in reason() or "partition" in reason(), 40, "it says why")
        self.assertEqual(self.job(job)["state"], "RUNNING")
        self.slurm.run("scontrol", "update", "partition=short", "state=up")
        pathlib.Path(f"{path}.end").touch()
        self.await_all([job, waits], "SUCCEEDED", 60)

    def test_a_share_of_a_device_is_asked_for_in_shards(self):
        """A node of the cluster has ten shards of each of its GPUs: a quarter is three of them, and what is left of these is shared."""
        out = self.work / "share"
        script = f"echo $CUDA_VISIBLE_DEVICES >>{out}; until test -e {out}.end; do sleep 0.05; done"
        share = lambda part: {"resources": {"cpus": 0.1, "accelerators": 1, "accelerator_share": part}}  # noqa: E731
        jobs = [self.submit("quarter", "blue", script, **share(0.25))]
        self.await_all(jobs, "RUNNING")
        jobs.append(self.submit("beside", "blue", script, **share(0.05)))
        self.await_all(jobs, "RUNNING")
        jobs.append(self.submit("half", "blue", script, **share(0.5)))
        self.await_all(jobs, "RUNNING")
        jobs.append(self.submit("whole", "blue", script, resources={"cpus": 1, "accelerators": 1}))
        self.await_all(jobs, "RUNNING")
        asked = self.slurm.run("scontrol", "-o", "show", "job")
        self.assertEqual(sorted(word for word in asked.split() if word.startswith("TresPerNode=")),
                         ["TresPerNode=gres:gpu:h200:1", "TresPerNode=gres:shard:3", "TresPerNode=gres:shard:5"])
        found = {one["accelerator_milli"] for one in self.server.get("/allocations")["items"]}
        self.assertEqual(found, {0, 300, 500})
        nodes = self.server.get("/nodes")["items"]
        self.assertEqual({(one["n_accelerators"], one["device_milli"]) for one in nodes}, {(1, 0), (1, 300), (1, 500)})
        wait_until(lambda: len(self.lines(out)) == 4 and all(line.isdigit() for line in self.lines(out)), 20, "each has a device")
        pathlib.Path(f"{out}.end").touch()
        self.await_all(jobs, "SUCCEEDED")


if __name__ == "__main__":
    harness.main()

"""The same jobs on own nodes, on Slurm (slurm_test.py) and on Kubernetes, whose API server, scheduler and kubelet are a strict stand-in
(tests/kube) that runs pods as processes: what is borrowed comes back after it was saved; whoever is killed, nothing is doubled.
What is counted is counted by the stand-in, and by what programs wrote, not by Weir."""
import json
import os
import pathlib
import random
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from tests.kube.cluster import Cluster

import harness
from borrowing import World
from harness import BIN, wait_until

SEED = int(os.environ.get("WEIR_SEED", str(random.SystemRandom().randrange(1 << 32))))


class OnKubernetes(World):
    """Two nodes of four devices each."""

    def supply(self):
        self.kube = Cluster(nodes=0, mode="process", images={"weir:test": str(BIN)})
        self.kube.__enter__()
        self.addCleanup(self.end)
        for name in ("n-1", "n-2"):
            self.kube.add_node(name, gpus=4, labels={"nvidia.com/gpu.product": "h200"})
        self.kube.create("namespaces", {"metadata": {"name": "train"}})
        self.kube.create("serviceaccounts", {"metadata": {"name": "weir-agent"}}, "train")
        self.jobs = set()
        self.add_cluster()

    def add_cluster(self, **more):
        options = {"kubeconfig": str(self.kube.kubeconfig), "namespace": "train", "image": "weir:test", "grace": "5s",
                   "volumes": json.dumps([{"path": str(self.server.root), "host": str(self.server.root), "writable": True}]), **more}
        words = [word for key, value in options.items() for word in ("--set", f"{key}={value}")]
        self.server.weir("cluster", "add", "k8s-a", "--driver", "kubernetes", "--yes", *words)

    def end(self):
        complaints, failures = self.kube.complaints, self.kube.failures()
        self.kube.__exit__()
        self.assertEqual((complaints, failures), ([], []))

    def made(self):
        """Names of all Jobs that were ever made, each as often as it was."""
        return [one.path.rsplit("/", 1)[1] for one in self.kube.asked("POST", "/jobs") if one.status == 201 and "dryRun" not in (one.query or "")]

    def pods(self):
        return [pod["metadata"]["name"] for pod in self.kube.list("pods", "train") if pod["status"].get("phase") == "Running"]

    def restart(self):
        port = self.server.url.rsplit(":", 1)[1]
        self.server.start("--no-agent", "--listen", f"127.0.0.1:{port}")

    def test_what_is_borrowed_comes_back(self):
        self.check_borrowed_comes_back()

    def test_what_is_taken_away_goes_on(self):
        path, script = self.counter("taken")
        job = self.submit("taken", "blue", script)
        self.await_all([job], "RUNNING")
        wait_until(lambda: self.lines(pathlib.Path(f"{path}.starts")), 20, "it can save")
        self.kube.evict("train", self.pods()[0])
        wait_until(lambda: len(self.lines(pathlib.Path(f"{path}.starts"))) == 2, 30, "it runs again")
        self.assertEqual(self.lines(pathlib.Path(f"{path}.saved")), ["saved"])
        found = self.job(job)
        self.assertEqual((found["n_restarts"], found["n_evictions"]), (0, 1))
        pathlib.Path(f"{path}.end").touch()
        self.await_all([job], "SUCCEEDED")

    def test_a_gang_that_lost_a_node_does_not_wait_for_its_other_one(self):
        """The pod that is left is given back at once: the gang needs two, and the cluster has no third."""
        path, script = self.counter("gang")
        job = self.submit("gang", "blue", script, tasks=2, resources={"cpus": 15, "accelerators": 1})
        self.await_all([job], "RUNNING")
        wait_until(lambda: len(self.lines(pathlib.Path(f"{path}.starts"))) == 2, 20, "each can save")
        self.kube.delete_pod("train", self.pods()[0])
        wait_until(lambda: len(self.lines(pathlib.Path(f"{path}.starts"))) == 4, 30, "both run again")
        pathlib.Path(f"{path}.end").touch()
        self.await_all([job], "SUCCEEDED")
        self.assertEqual(self.job(job)["n_restarts"], 0)

    def test_whoever_is_killed_nothing_is_doubled(self):
        """The server by KILL, the API server for a moment."""
        print(f"WEIR_SEED={SEED}")
        rng = random.Random(SEED)
        jobs = []
        for i in range(6):
            path, script = self.counter(f"killed-{i}")
            pathlib.Path(f"{path}.end").touch()
            jobs.append(self.submit(f"killed-{i}", "blue", script, resources={"cpus": 9, "accelerators": 1}))
            time.sleep(rng.random() * 0.8)
            if i % 2 == 0:
                self.server.kill()
                self.restart()
            else:
                self.kube.faults.on("apiserver_away", seconds=rng.random())
        self.await_all(jobs, "SUCCEEDED", 60)
        for i in range(6):
            self.assertEqual(self.lines(self.work / f"killed-{i}.ends"), ["end"])
        self.assertEqual({self.job(job)["n_restarts"] for job in jobs}, {0})


if __name__ == "__main__":
    harness.main()

"""The same jobs on own nodes, on Slurm (slurm_test.py) and on Kubernetes, whose API server, scheduler and kubelet are a strict stand-in
(tests/kube) that runs pods as processes: what is borrowed comes back after it was saved; whoever is killed, nothing is doubled.
What is counted is counted by the stand-in, and by what programs wrote, not by Weir."""
import os
import pathlib
import random
import time

import harness
import kubernetes_cluster
from borrowing import World
from harness import wait_until
from kubernetes_cluster import NAMESPACE

SEED = int(os.environ.get("WEIR_SEED", str(random.SystemRandom().randrange(1 << 32))))


class OnKubernetes(World):
    """Two nodes of four devices each."""

    def supply(self):
        self.kube = kubernetes_cluster.Cluster()
        self.kube.__enter__()
        self.addCleanup(self.end)
        words = [word for key, value in self.kube.options(self.server.root).items() for word in ("--set", f"{key}={value}")]
        self.server.weir("cluster", "add", "k8s-a", "--driver", "kubernetes", "--yes", *words)

    def end(self):
        complaints, failures = self.kube.complaints, self.kube.failures()
        self.kube.__exit__()
        self.assertEqual((complaints, failures), ([], []))

    def pods(self):
        return [pod["metadata"]["name"] for pod in self.kube.list("pods", NAMESPACE) if pod["status"].get("phase") == "Running"]

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
        self.kube.evict(NAMESPACE, self.pods()[0])
        wait_until(lambda: len(self.lines(pathlib.Path(f"{path}.starts"))) == 2, 30, "it runs again")
        self.assertEqual(self.lines(pathlib.Path(f"{path}.saved")), ["saved"])
        found = self.job(job)
        self.assertEqual((found["n_restarts"], found["n_evictions"]), (0, 1))
        pathlib.Path(f"{path}.end").touch()
        self.await_all([job], "SUCCEEDED")

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

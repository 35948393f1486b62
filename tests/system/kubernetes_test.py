"""The same jobs on own nodes, on Slurm (slurm_test.py) and on Kubernetes, whose API server, scheduler and kubelet are a strict stand-in
(tests/kube) that runs pods as processes: what is borrowed comes back after it was saved; whoever is killed, nothing is doubled.
What is counted is counted by the stand-in, and by what programs wrote, not by Weir."""
import json
import os
import pathlib
import random
import time

import harness
import kubernetes_cluster
from borrowing import World
from harness import BIN, wait_until
from kubernetes_cluster import NAMESPACE, WEIRJOBS, install_weirjobs

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

    def test_a_job_has_pods_of_its_own_image_with_its_volumes(self):
        own, weir = self.server.root / "own", self.server.root / "weir/bin"
        for folder in (own, weir):
            folder.mkdir(parents=True)
        (own / "own-tool").write_text("#!/bin/sh\necho own\n")
        (own / "own-tool").chmod(0o755)
        for program in ("weir", "weir-worker"):
            (weir / program).symlink_to(BIN / program)
        self.kube.images["registry.example/team/own:1"] = str(own)
        self.kube.kubelet.image_paths[kubernetes_cluster.image()] = {"/weir": str(weir.parent)}
        self.kube.create("persistentvolumeclaims", {"metadata": {"name": "things"}, "spec": {
            "accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}}, NAMESPACE)
        self.server.weir("cluster", "set", "k8s-a", "--set", 'job_volumes=["claim:things"]')
        wanted = ["--image", "registry.example/team/own:1", "--volume", "claim:things:/things:rw"]
        job = self.server.weir("job", "run", "--name", "own", "--detach", "--project", "blue", *wanted, "-o", "json", "--", "own-tool")[1]
        job = json.loads(job)["id"]
        path, script = self.counter("plain")
        plain = self.submit("plain", "blue", script)
        self.await_all([job], "SUCCEEDED")
        self.await_all([plain], "RUNNING")
        self.assertEqual(self.server.weir("logs", job)[1], "own\n")
        pods = {pod["spec"]["containers"][0]["image"]: pod["spec"] for pod in self.kube.list("pods", NAMESPACE)}
        self.assertEqual(set(pods), {"registry.example/team/own:1", kubernetes_cluster.image()})
        spec = pods["registry.example/team/own:1"]
        mounts = {mount["mountPath"]: mount for mount in spec["containers"][0]["volumeMounts"]}
        self.assertFalse(mounts["/things"].get("readOnly"))
        volume = next(one for one in spec["volumes"] if one["name"] == mounts["/things"]["name"])
        self.assertEqual(volume["persistentVolumeClaim"]["claimName"], "things")
        self.assertNotIn("/things", [mount["mountPath"] for mount in pods[kubernetes_cluster.image()]["containers"][0]["volumeMounts"]])

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

    def seen(self, name):
        """The job's object, as people of the cluster see it; None: there is none."""
        return next((one for one in self.kube.list(WEIRJOBS, NAMESPACE) if one["spec"].get("name") == name), None)

    def state_seen(self, name):
        return ((self.seen(name) or {}).get("status") or {}).get("state")

    def delete(self, name):
        self.kube.api.delete(self.kube.api.resource(WEIRJOBS), NAMESPACE, self.seen(name)["metadata"]["name"])

    def test_people_see_jobs_and_cancel_them(self):
        """Also while the server is away."""
        install_weirjobs(self.kube)
        self.server.kill()  # it looks for the definition when it begins, and then once a minute
        self.restart()
        _, script = self.counter("never")
        jobs = {name: self.submit(name, "blue", script) for name in ("first", "second", "third")}
        self.await_all(jobs.values(), "RUNNING")
        wait_until(lambda: {self.state_seen(name) for name in jobs} == {"RUNNING"}, 20, "all are seen to run")
        found = self.seen("first")
        self.assertEqual((found["spec"]["queue"], found["status"]["nodes"], found["status"]["job"]), ("blue", 1, jobs["first"]))
        self.kube.create(WEIRJOBS, {"metadata": {"name": "forged", "labels": found["metadata"]["labels"]}, "spec": {"name": "forged"}}, NAMESPACE)
        self.kube.api.delete(self.kube.api.resource(WEIRJOBS), NAMESPACE, "forged")
        self.delete("first")
        self.await_all([jobs["first"]], "CANCELLED")
        self.assertEqual(self.job(jobs["first"])["reason"], "cancelled by cluster/k8s-a")
        wait_until(lambda: self.seen("first") is None, 10, "it is let go")
        self.server.kill()
        self.delete("second")
        self.restart()
        self.await_all([jobs["second"]], "CANCELLED")
        self.assertEqual(self.job(jobs["third"])["state"], "RUNNING")
        self.server.weir("job", "cancel", jobs["third"])
        wait_until(lambda: self.state_seen("third") == "CANCELLED", 20, "its end is seen")


if __name__ == "__main__":
    harness.main()

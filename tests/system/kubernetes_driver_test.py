"""The driver of clusters under Kubernetes against a strict stand-in of the API server (tests/kube): each operation, each thing that
can lack, each way in which an allocation ends, and faults of the API server. What is counted is counted by the stand-in."""
import json
import os
import pathlib
import random
import socket
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from tests.kube.cluster import Cluster

from harness import BIN, wait_until
from kubernetes_cluster import WEIRJOBS, install_weirjobs

CASE = str(BIN.parent / "tests/driver_case")
RIGHTS = pathlib.Path(__file__).resolve().parents[2] / "src/cluster/kubernetes/rights.def"
SEED = int(os.environ.get("WEIR_SEED", str(random.SystemRandom().randrange(1 << 32))))
GPU = "nvidia.com/gpu"


class Refused(Exception):
    pass


class Link:
    """One link to a cluster, as a server keeps it."""

    def __init__(self, cluster, user=None, **options):
        config = {"kubeconfig": str(cluster.kubeconfig), "namespace": "train", "image": "weir:test", **options}
        self.process = subprocess.Popen([CASE, "kubernetes", json.dumps(config)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, *words):
        self.process.stdin.write(json.dumps([str(word) for word in words]) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        answer = json.loads(line)
        if isinstance(answer, dict) and "status" in answer:
            raise Refused(f'{answer["status"]}: {answer["error"]}')
        return answer

    def request(self, tag, n_nodes=1, pool=None, **more):
        wanted = {"tag": tag, "pool": pool or "16c-64g", "n_nodes": n_nodes, "cpu_slots": 2, "server": "http://weir:1", "secret": "s", **more}
        return self("request", json.dumps(wanted))

    def poll(self, tag):
        return self("poll", tag)[0]

    def end(self):
        self.process.stdin.close()
        return self.process.wait(20)


class Proxy(threading.Thread):
    """Tunnels by CONNECT, each on two threads; counts them."""

    def __init__(self):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.n_tunnels = 0

    def run(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            head = b""
            while b"\r\n\r\n" not in head:
                head += client.recv(4096)
            host, port = head.split()[1].decode().rsplit(":", 1)
            server = socket.create_connection((host, int(port)))
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            self.n_tunnels += 1
            for pair in ((client, server), (server, client)):
                threading.Thread(target=self.carry, args=pair, daemon=True).start()

    @staticmethod
    def carry(source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass


class DriverTest(unittest.TestCase):
    nodes = 2

    def setUp(self):
        self.cluster = Cluster(nodes=self.nodes)
        self.cluster.__enter__()
        self.addCleanup(self.end)
        self.cluster.create("namespaces", {"metadata": {"name": "train"}})
        self.cluster.create("serviceaccounts", {"metadata": {"name": "weir-agent"}}, "train")
        self.cluster.wait(lambda: self.cluster.get("serviceaccounts", "default", "train"), 5, "its own account")
        self.links = []

    def end(self):
        for link in self.links:
            link.end()
            link.process.stdout.close()
        complaints, failures = self.cluster.complaints, self.cluster.failures()
        self.cluster.__exit__()
        self.assertEqual((complaints, failures), ([], []))

    def link(self, **options):
        link = Link(self.cluster, **options)
        self.links.append(link)
        return link

    def names(self):
        """Of all pods of the namespace."""
        return sorted(pod["metadata"]["name"] for pod in self.cluster.list("pods", "train"))

    def until(self, link, tag, phase, seconds=10):
        report = {}

        def reached():
            nonlocal report
            report = link.poll(tag)
            return report["phase"] == phase
        try:
            wait_until(reached, seconds, f"{tag} {phase}")
        except AssertionError as error:
            raise AssertionError(f"{error}: {report}") from None
        return report


class OperationsTest(DriverTest):
    def test_pools_are_shapes_of_nodes(self):
        self.cluster.garbage.switch(False)  # the daemon's owner is not there
        self.cluster.add_node("g-1", gpus=4, labels={"nvidia.com/gpu.product": "H200", "team": "ml"})
        self.cluster.add_node("g-2", gpus=4, labels={"nvidia.com/gpu.product": "H200", "team": "ml"})
        self.cluster.create("pods", {"metadata": {"name": "daemon", "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "1", "controller": True}]},
            "spec": {"nodeName": "g-1", "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}]}}, "train")
        self.cluster.create("pods", {"metadata": {"name": "others"}, "spec": {"nodeName": "g-2", "containers": [
            {"name": "c", "image": "i", "resources": {"requests": {"cpu": "3", "memory": "1Gi"}}}]}}, "train")
        pools = {pool["name"]: pool for pool in self.link()("list")}
        self.assertEqual(set(pools), {"16c-64g", "16c-64g-4xH200"})
        gpus = pools["16c-64g-4xH200"]
        self.assertEqual([gpus["cpu_slots"], gpus["n_accelerators"], gpus["accelerator"], gpus["max_nodes"], gpus["memory_bytes"] >> 30], [15, 4, "H200", 2, 63])
        self.assertEqual([pool["name"] for pool in self.link(pool_label="team")("list")], ["ml"])
        self.assertEqual([pool["name"] for pool in self.link(node_selector={"team": "ml"})("list")], ["16c-64g-4xH200"])

    def test_an_allocation_is_a_job_of_pods_on_as_many_nodes(self):
        self.cluster.add_node("g-1", gpus=4, labels={"nvidia.com/gpu.product": "H200"}, taints=[{"key": GPU, "value": "present", "effect": "NoSchedule"}])
        link = self.link()
        for _ in range(2):
            link.request("a-1", pool="16c-64g-4xH200", n_accelerators=3, memory_bytes=1 << 30, text="job x of ann", time_ms=3600000)
        report = self.until(link, "a-1", "running")
        self.assertEqual([report["nodes"], report["id"]], [["g-1"], "train/a-1"])
        self.assertAlmostEqual(report["ends_ms"] / 1000, time.time() + 3600, delta=30)
        self.assertEqual(len(self.cluster.list("jobs.batch", "train")), 1)
        pod = self.cluster.list("pods", "train")[0]
        container = pod["spec"]["containers"][0]
        self.assertEqual(container["resources"]["limits"], {"cpu": "2", "memory": "1Gi", GPU: "3"})
        self.assertEqual(pod["metadata"]["annotations"]["weir.dev/for"], "job x of ann")
        self.assertNotIn('"s"', json.dumps(pod), "the secret is not in the pod")
        secret = self.cluster.get("secrets", "a-1", "train")
        self.assertEqual(secret["metadata"]["ownerReferences"][0]["name"], "a-1")
        link("release", "a-1")
        link("release", "a-1")
        wait_until(lambda: link.poll("a-1")["phase"] in ("unknown", "ended") and not self.names(), 10, "all of it gone")
        self.assertIsNone(self.cluster.get("secrets", "a-1", "train"))

    def test_more_than_there_is_waits_with_the_schedulers_sentence(self):
        link = self.link()
        link.request("big-1", n_nodes=2, cpu_slots=16)
        self.until(link, "big-1", "running")
        link.request("big-2", n_nodes=2, cpu_slots=16)
        wait_until(lambda: "Insufficient cpu" in (link.poll("big-2")["why"] or ""), 10, "the reason")
        report = link.poll("big-2")
        self.assertEqual((report["phase"], report["said"]), ("pending", "Unschedulable"))
        link("release", "big-1")
        self.until(link, "big-2", "running")
        with self.assertRaisesRegex(Refused, "LIMIT.*at most 2 nodes, not 3"):
            link.request("big-3", n_nodes=3)
        with self.assertRaisesRegex(Refused, "INVALID.*less than is asked for"):
            link.request("big-3", cpu_slots=64)
        with self.assertRaisesRegex(Refused, "NOT_FOUND.*no pool"):
            link.request("big-3", pool="none")

    def test_the_agent_comes_into_any_image(self):
        link = self.link(pod_image="pytorch:2", queues={"vision": {"pod_image": "tensorflow:2"}})
        link.request("torch")
        link.request("tf", queue="vision")
        self.until(link, "torch", "running")
        self.until(link, "tf", "running")
        for tag, image in (("torch", "pytorch:2"), ("tf", "tensorflow:2")):
            spec = next(pod for pod in self.cluster.list("pods", "train") if pod["metadata"]["labels"]["weir.dev/allocation"] == tag)["spec"]
            self.assertEqual([spec["containers"][0]["image"], spec["initContainers"][0]["image"]], [image, "weir:test"])
        self.assertNotEqual(link("payer", "vision"), link("payer", "other"), "their nodes are not shared")

    def test_kueue_admits_what_it_has_room_for(self):
        self.cluster.kueue.switch(True)
        link = self.link(scheduler="kueue", kueue_queue="team", queues={"vision": {"kueue_queue": "vis", "priority_class": "high"}})
        self.assertEqual([link("payer", "vision"), link("payer", "other")], ["train/vis/high/", "train/team//"])
        link.request("k-1")
        wait_until(lambda: "Kueue" in (link.poll("k-1")["why"] or ""), 10, "its sentence")
        job = self.cluster.get("jobs.batch", "k-1", "train")
        self.assertEqual([job["spec"]["suspend"], job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"]], [True, "team"])
        self.assertEqual(self.names(), [])


class EndingsTest(DriverTest):
    """How an allocation ends, and what is said of it."""

    def begin(self, link, tag, n_nodes=1, **more):
        link.request(tag, n_nodes=n_nodes, **more)
        self.until(link, tag, "running")
        return [name for name in self.names() if name.startswith(f"{tag}-")]

    def expect(self, link, tag, ending, why):
        report = self.until(link, tag, "ended")
        self.assertEqual(report["ending"], ending, report)
        self.assertRegex(report["why"] or "", why or ".*")

    def test_how_an_allocation_ends_is_told(self):
        link = self.link()
        pod = self.begin(link, "done")[0]
        self.cluster.finish("train", pod)
        self.expect(link, "done", "released", "")

        pod = self.begin(link, "failed")[0]
        self.cluster.finish("train", pod, 3, message="a\nweir agent: cannot reach http://weir:1")
        self.expect(link, "failed", "failed", "exit status 3: weir agent: cannot reach http://weir:1")

        pod = self.begin(link, "memory")[0]
        self.cluster.out_of_memory("train", pod)
        self.expect(link, "memory", "failed", "more memory than it asked for")

        pod = self.begin(link, "evicted")[0]
        self.cluster.evict("train", pod)
        self.expect(link, "evicted", "preempted", "")

        pod = self.begin(link, "deleted")[0]
        self.cluster.delete_pod("train", pod)
        self.expect(link, "deleted", "cancelled", "")

        self.begin(link, "job-deleted")
        self.cluster.api.delete(self.cluster.api.resource("jobs.batch"), "train", "job-deleted", {"propagationPolicy": "Background"})
        self.expect(link, "job-deleted", "cancelled", "deleted")

    def test_a_time_that_is_over(self):
        link = self.link()
        self.begin(link, "short", time_ms=1000)
        self.expect(link, "short", "time", "")

    def test_a_lost_node_takes_its_pods_along(self):
        link = self.link()
        self.begin(link, "lost", n_nodes=2, cpu_slots=16)
        self.cluster.delete_node("node-1")
        report = self.until(link, "lost", "ended")
        self.assertEqual(report["ending"], "failed" if report["ending"] == "failed" else "cancelled")

    def test_a_closed_node_is_told(self):
        link = self.link()
        self.begin(link, "closed")
        node = link.poll("closed")["nodes"][0]
        self.cluster.cordon(node)
        wait_until(lambda: link.poll("closed")["closed_node"] == node, 10, "that it is closed")
        self.assertEqual(link.poll("closed")["closed_why"], "it is cordoned")

    def test_an_image_that_is_not_there(self):
        self.cluster.kubelet.mode = "process"
        link = self.link(image="nowhere/none:1")
        link.request("image")
        wait_until(lambda: "nowhere/none:1" in (link.poll("image")["why"] or ""), 10, "the sentence")
        self.assertEqual(link.poll("image")["phase"], "pending")


class CheckTest(DriverTest):
    """What lacks is named."""
    nodes = 1

    def missing(self, **options):
        return self.link(**options)("check")["missing"]

    def test_nothing_lacks(self):
        self.assertIsNone(self.missing())

    def test_each_wrong_configuration_has_its_sentence(self):
        certain = self.cluster.dir / "wrong-ca.kubeconfig"
        config = json.loads(pathlib.Path(self.cluster.kubeconfig).read_text())
        config["clusters"][0]["cluster"].pop("certificate-authority")
        certain.write_text(json.dumps(config))
        token = self.cluster.dir / "token.kubeconfig"
        config = json.loads(pathlib.Path(self.cluster.kubeconfig).read_text())
        config["users"][0]["user"] = {"token": "stale"}
        token.write_text(json.dumps(config))
        cases = [({"namespace": "nowhere"}, 'namespaces "nowhere" not found'),
                 ({"kubeconfig": "/nowhere/config"}, "/nowhere/config"),
                 ({"context": "other"}, 'contexts has no "other": there are test'),
                 ({"kubeconfig": str(certain)}, "no trusted connection"),
                 ({"kubeconfig": str(token)}, "does not know who asks"),
                 ({"scheduler": "slurm"}, 'scheduler: "slurm" is none'),
                 ({"scheduler": "kueue"}, "kueue_queue: "),
                 ({"scheduler": "kueue", "kueue_queue": "q"}, "Kueue is not installed"),
                 ({"node_selector": {"disk": "none"}}, "node_selector: no node"),
                 ({"pool_label": "none"}, "pool_label: no node has the label"),
                 ({"priority_class": "gold"}, "gold"),
                 ({"queues": {"vision": {"namespace": "none"}}}, 'namespaces "none" not found'),
                 ({"volumes": [{"path": "data"}]}, r"volumes\[0\]: "),
                 ({"tolerations": [{"operator": "Never"}]}, "olerations"),
                 ({"time": "soon"}, 'time: in place of "soon"'),
                 ({"queues": {"vision": {"account": "x"}}}, "queues.vision.account")]
        for options, said in cases:
            with self.subTest(options=options):
                try:
                    missing = self.missing(**options)
                except Refused as error:
                    missing = str(error)
                self.assertRegex(missing or "", said)

    def test_each_right_that_lacks_is_named(self):
        """A role as rights.def has it, with one verb taken away, each in turn."""
        all_rights = [line.split('"')[1:6:2] + [line.split(",")[3].strip(), line.split(",")[4].strip()]
                      for line in RIGHTS.read_text().splitlines() if line.startswith("RIGHT(")]
        rights = [right for right in all_rights if right[4] == "ALWAYS"]
        self.assertGreater(len(rights), 8)
        self.check_each_right(rights, range(-1, len(rights)))
        install_weirjobs(self.cluster)
        rights += [right for right in all_rights if right[4] == "JOBS"]
        self.check_each_right(rights, [-1, *(i for i, right in enumerate(rights) if right[4] == "JOBS")])

    def check_each_right(self, rights, aways):
        for away in aways:
            user = f"user{away + 1}-{len(rights)}"
            for i, (verb, group, resource, where, _) in enumerate(rights):
                if i != away:
                    self.cluster.allow(user, [verb], [resource], [group], None if where == "CLUSTER" else "train")
            missing = self.missing(kubeconfig=str(self.cluster.kubeconfig_for(user)))
            if away < 0:
                self.assertIsNone(missing)
            else:
                self.assertIn(f'the role lacks the verb "{rights[away][0]}" on {rights[away][2]}', missing)


class ShownTest(DriverTest):
    """Jobs as people of the cluster see them; what is deleted there, and by whom."""
    nodes = 1
    SERVER = "http://weir:1"

    def setUp(self):
        super().setUp()
        self.cluster.create("namespaces", {"metadata": {"name": "vision"}})
        self.ask = self.link(queues={"vision": {"namespace": "vision"}})

    def job(self, number, state="PENDING", **more):
        return {"id": f"00000000-0000-7000-8000-{number:012}", "name": f"job-{number}", "project": "blue", "queue": "blue", "kind": "command",
                "state": state, **more}

    def show(self, *jobs, server=SERVER):
        return self.ask("show", server, json.dumps(jobs))

    def until(self, condition, *jobs, what="what is shown"):
        """Show these jobs until it holds; what is said then."""
        said = {}

        def holds():
            said.update(self.show(*jobs))
            return condition(said)
        wait_until(holds, 15, what)
        return said

    def object(self, number, space="train"):
        return self.cluster.get(WEIRJOBS, f"job-{number}-{number:012}", space)

    def state(self, number, space="train"):
        return ((self.object(number, space) or {}).get("status") or {}).get("state")

    def delete(self, name, space="train"):
        self.cluster.api.delete(self.cluster.api.resource(WEIRJOBS), space, name)

    def writes(self):
        return [one for one in self.cluster.requests if "weirjobs" in one.path and one.method != "GET"]

    def install(self):
        install_weirjobs(self.cluster)
        self.until(lambda said: said["is_wanted"], what="the definition is found")

    def test_without_the_definition_nothing_is_asked(self):
        for _ in range(3):
            self.assertEqual(self.show(self.job(1)), {"is_wanted": False, "ids": [], "deleted": []})
        asked = {one.path for one in self.cluster.requests if "weir.dev" in one.path}
        self.assertLessEqual(asked, {"/apis/weir.dev/v1"})

    def test_a_job_is_seen_as_it_is(self):
        self.install()
        vision = self.job(2, queue="vision", reason="no room")
        self.until(lambda _: self.state(1) == "PENDING" and self.state(2, "vision") == "PENDING", self.job(1), vision)
        self.assertEqual(self.object(2, "vision")["spec"], {"name": "job-2", "project": "blue", "queue": "vision", "kind": "command", "server": self.SERVER})
        self.assertEqual(self.object(1)["metadata"]["labels"]["weir.dev/job"], self.job(1)["id"])
        running = self.job(1, "RUNNING", n_nodes=3, started_ms=1800000000000)
        said = self.until(lambda said: self.state(1) == "RUNNING" and len(said["ids"]) == 2, running, vision)
        self.assertEqual(set(said["ids"]), {self.job(1)["id"], vision["id"]}, "they are asked after until they have ended")
        self.assertEqual(self.object(1)["status"], {"job": self.job(1)["id"], "state": "RUNNING", "reason": "", "nodes": 3,
                                                    "startTime": "2027-01-15T08:00:00Z"})
        n_writes = len(self.writes())
        for _ in range(20):
            self.show(running, vision)
        self.assertEqual(len(self.writes()), n_writes, "only what has changed is written")
        now_ms = int(time.time() * 1000)
        over = self.job(1, "SUCCEEDED", ended_ms=now_ms, is_ending=True)
        long_over = {**vision, "state": "FAILED", "ended_ms": now_ms - 3700000, "is_ending": True}
        self.until(lambda said: self.state(1) == "SUCCEEDED" and said["ids"] == [] and self.object(2, "vision") is None, over, long_over)
        self.assertEqual(self.show()["ids"], [])
        self.assertIn("completionTime", self.object(1)["status"], "it is kept for an hour")
        self.delete(f"job-1-{1:012}")
        self.until(lambda _: self.object(1) is None, what="what has ended is let go")

    def test_a_deletion_is_told_until_the_job_ends(self):
        self.install()
        self.until(lambda _: self.state(1) == "PENDING", self.job(1))
        self.delete(f"job-1-{1:012}")
        self.until(lambda said: said["deleted"] == [self.job(1)["id"]], self.job(1))
        self.assertIsNotNone(self.object(1), "it is held")
        self.until(lambda said: self.object(1) is None and said["deleted"] == [], self.job(1, "CANCELLED", is_ending=True, ended_ms=1))
        self.show(self.job(1, "CANCELLED", is_ending=True, ended_ms=1))
        self.assertIsNone(self.object(1))

    def test_a_deletion_that_nobody_saw_is_seen_later(self):
        self.install()
        self.until(lambda _: self.state(1) == "PENDING", self.job(1))
        self.links.remove(self.ask)
        self.ask.end()
        self.ask.process.stdout.close()
        self.delete(f"job-1-{1:012}")
        self.ask = self.link()
        self.until(lambda said: said["ids"] == [self.job(1)["id"]], what="it is asked after")
        self.until(lambda said: said["deleted"] == [self.job(1)["id"]], self.job(1))

    def test_what_a_person_makes_cancels_nothing(self):
        self.install()
        vision = self.job(2, queue="vision")
        self.until(lambda _: self.state(2, "vision") == "PENDING", vision)
        true = self.object(2, "vision")
        for name, space in ((true["metadata"]["name"], "train"), ("mine", "vision"), ("mine", "train")):
            copy = {"metadata": {"name": name, "labels": true["metadata"]["labels"], "finalizers": ["weir.dev/job", "other/one"]},
                    "spec": true["spec"], "status": true["status"]}
            self.cluster.create(WEIRJOBS, copy, space)
        forged = [(true["metadata"]["name"], "train"), ("mine", "vision"), ("mine", "train")]

        def refused(name, space):
            found = self.cluster.get(WEIRJOBS, name, space)
            return found["status"].get("state") == "NotSupported" and found["metadata"]["finalizers"] == ["other/one"]
        self.until(lambda _: all(self.cluster.get(WEIRJOBS, *one).get("status") and refused(*one) for one in forged), vision)
        for one in forged:
            self.delete(*one)
        # One that may write statuses, too, says that an object elsewhere is the job's.
        self.cluster.create(WEIRJOBS, {"metadata": {"name": "stolen", "finalizers": ["weir.dev/job", "other/one"]}, "spec": true["spec"]}, "train")
        self.cluster.api.change(WEIRJOBS, "train", "stolen", lambda obj: obj.update(status=true["status"]))
        self.delete("stolen")
        self.until(lambda _: self.cluster.get(WEIRJOBS, "stolen", "train")["metadata"]["finalizers"] == ["other/one"], vision)
        end = time.monotonic() + 1.5
        self.until(lambda said: self.assertEqual(said["deleted"], []) or time.monotonic() > end, vision)
        self.assertEqual(self.state(2, "vision"), "PENDING")

    def test_whoever_deletes_the_definition_means_no_job(self):
        self.install()
        jobs = [self.job(i) for i in range(1, 4)]
        self.until(lambda _: all(self.state(i) for i in range(1, 4)), *jobs)
        key = "customresourcedefinitions.apiextensions.k8s.io"
        self.cluster.api.delete(self.cluster.api.resource(key), "", WEIRJOBS)
        self.until(lambda said: self.assertEqual(said["deleted"], []) or self.cluster.get(key, WEIRJOBS, "") is None, *jobs)

    def test_jobs_that_are_not_known_are_taken_away_but_not_those_of_another_server(self):
        self.install()
        self.until(lambda _: self.state(1) == "PENDING", self.job(1))
        other = self.job(1, state=None)
        self.until(lambda said: said["ids"] == [other["id"]], what="it is asked after")
        end = time.monotonic() + 1
        self.ask("show", "http://another:1", json.dumps([other]))
        wait_until(lambda: self.ask("show", "http://another:1", json.dumps([other])) and time.monotonic() > end, 5, "another server has looked")
        self.assertIsNotNone(self.object(1))
        self.until(lambda _: self.object(1) is None, other)

    def test_whatever_the_api_server_does_all_is_shown_in_the_end(self):
        print(f"WEIR_SEED={SEED}")
        rng = random.Random(SEED)
        self.install()
        jobs, asked = {}, lambda: len([one for one in self.cluster.requests if "weir.dev" in one.path])
        for i in range(5):
            for name, options in rng.sample([("throttle", {"retry_after": 0}), ("error500", {}), ("unavailable503", {}), ("conflict", {}),
                                             ("drop", {"when": "before"}), ("drop", {"when": "after"}), ("gone", {})], 2):
                self.cluster.faults.on(name, count=rng.randrange(1, 3), where="weir.dev", **options)
            jobs[i % 4] = self.job(i % 4, rng.choice(["PENDING", "RUNNING", "STOPPING"]), n_nodes=i)
            n_asked = asked()
            self.until(lambda said, n_asked=n_asked: self.assertEqual(said["deleted"], []) or asked() > n_asked, *jobs.values())
        self.cluster.faults.off()
        self.until(lambda _: all((self.object(i) or {}).get("status", {}).get("nodes") == job["n_nodes"] and self.state(i) == job["state"]
                                 for i, job in jobs.items()), *jobs.values())

    def test_what_is_refused_is_not_asked_over_and_over(self):
        user = self.cluster.kubeconfig_for("reader")
        for verb in ("list", "watch"):
            self.cluster.allow("reader", [verb], ["weirjobs", "nodes", "pods"], ["weir.dev", ""])
        self.ask = self.link(kubeconfig=str(user))
        self.install()
        self.until(lambda _: len(self.writes()) == 1, self.job(1))
        for state in ("RUNNING", "STOPPING", "PENDING"):
            self.show(self.job(1, state))
        self.assertLessEqual(len(self.writes()), 2)


class FaultsTest(DriverTest):
    """Whatever the API server does, nothing is asked for twice, nothing is lost, and nothing wrong is said."""

    def test_faults_of_all_kinds_at_random(self):
        print(f"WEIR_SEED={SEED}")
        rng = random.Random(SEED)
        link = self.link()
        alive = set()
        for i in range(12):
            faults = rng.sample([("throttle", {"retry_after": 0}), ("conflict", {}), ("error500", {}), ("unavailable503", {}),
                                 ("drop", {"when": "before"}), ("drop", {"when": "after"}), ("drop", {"when": "middle"}),
                                 ("gone", {}), ("slow_watch", {"seconds": 0.1})], 2)
            for name, options in faults:
                self.cluster.faults.on(name, count=rng.randrange(1, 3), **options)
            try:
                if alive and rng.random() < 0.4:
                    tag = rng.choice(sorted(alive))
                    link("release", tag)
                    alive.discard(tag)
                else:
                    tag = f"t-{i}"
                    alive.add(tag)
                    link.request(tag, cpu_slots=1)
            except Refused as error:
                self.assertRegex(str(error), "UNAVAILABLE")
            self.cluster.faults.off()
            for tag in sorted(alive):
                report = link.poll(tag)
                self.assertNotEqual(report["phase"], "ended", report)
                if report["phase"] == "unknown":
                    link.request(tag, cpu_slots=1)
        for tag in sorted(alive):
            self.until(link, tag, "running")
        self.assertEqual({job["metadata"]["name"] for job in self.cluster.list("jobs.batch", "train")}, alive)
        wait_until(lambda: len(self.names()) == len(alive), 10, "one pod each")

    def test_the_watch_goes_on_after_all_is_forgotten(self):
        link = self.link()
        link.request("first")
        self.until(link, "first", "running")
        for _ in range(3):
            self.cluster.faults.on("gone", count=1)
            self.cluster.compact()
            self.cluster.faults.on("apiserver_away")
            self.cluster.faults.off("apiserver_away")
        link.request("second")
        self.until(link, "second", "running", 20)
        self.assertEqual(link.poll("first")["phase"], "running")

    def test_a_token_that_is_changed(self):
        config = json.loads(pathlib.Path(self.cluster.kubeconfig).read_text())
        path, file = self.cluster.dir / "rotated.kubeconfig", self.cluster.dir / "token"
        config["users"][0]["user"] = {"tokenFile": str(file)}
        path.write_text(json.dumps(config))
        self.cluster.tokens.set("first", "admin", ["system:masters"])
        file.write_text("first")
        link = self.link(kubeconfig=str(path))
        link.request("one")
        self.cluster.tokens.remove("first")
        self.cluster.tokens.set("second", "admin", ["system:masters"])
        file.write_text("second\n")
        link.request("two")
        self.until(link, "two", "running")

    def changed_config(self, name, user=None, cluster=None):
        config = json.loads(pathlib.Path(self.cluster.kubeconfig).read_text())
        config["users"][0]["user"] = user or config["users"][0]["user"]
        config["clusters"][0]["cluster"] |= cluster or {}
        path = self.cluster.dir / f"{name}.kubeconfig"
        path.write_text(json.dumps(config))
        return str(path)

    def test_credentials_of_all_kinds(self):
        """A client certificate, a program that prints a token, one user for another; each is who the API server takes it for."""
        program = self.cluster.dir / "credential.sh"
        program.write_text("#!/bin/sh\nprintf '{\"apiVersion\": \"client.authentication.k8s.io/v1\", \"kind\": \"ExecCredential\", \"status\": "
                           "{\"token\": \"%s\"}}' \"$TOKEN\"\n")
        program.chmod(0o755)
        self.cluster.tokens.set("printed", "robot", ["system:masters"])
        admin = json.loads(pathlib.Path(self.cluster.kubeconfig).read_text())["users"][0]["user"]
        plugin = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "./credential.sh", "env": [{"name": "TOKEN", "value": "printed"}]}}
        paths = {"cert": self.cluster.kubeconfig_with_certificate("cert", ["system:masters"]),
                 "robot": self.changed_config("plugin", plugin), "deputy": self.changed_config("deputy", admin | {"as": "deputy", "as-groups": ["system:masters"]})}
        for user, path in paths.items():
            with self.subTest(user=user):
                try:
                    self.assertIsNone(self.link(kubeconfig=str(path))("check")["missing"])
                except Refused as error:
                    self.fail(str(error))
                if user != "deputy":
                    self.assertIn(user, {getattr(one.user, "name", one.user) for one in self.cluster.requests})

    def test_a_second_api_server(self):
        """The first address leads nowhere."""
        path = self.changed_config("away", cluster={"server": "https://127.0.0.1:1"})
        self.assertIsNone(self.link(kubeconfig=path, servers=[self.cluster.url])("check")["missing"])

    def test_an_api_server_behind_a_proxy(self):
        proxy = Proxy()
        proxy.start()
        self.addCleanup(proxy.listener.close)
        link = self.link(kubeconfig=self.changed_config("proxy", cluster={"proxy-url": proxy.url}))
        self.assertIsNone(link("check")["missing"])
        link.request("proxied")
        self.until(link, "proxied", "running")
        self.assertGreaterEqual(proxy.n_tunnels, 3, "its questions, and two watches")

    def test_an_api_server_behind_another_name(self):
        """Its certificate is for localhost; with the name that it is for it is trusted."""
        url = self.cluster.url.replace("127.0.0.1", "127.0.0.2")
        wrong = self.changed_config("wrong", cluster={"server": url})
        with self.assertRaisesRegex(Refused, "cannot reach|no trusted connection"):
            self.link(kubeconfig=wrong)("check")
        right = self.changed_config("right", cluster={"tls-server-name": "localhost"})
        self.assertIsNone(self.link(kubeconfig=right)("check")["missing"])

    def test_an_api_server_that_is_away_is_said(self):
        link = self.link()
        link.request("one")
        self.until(link, "one", "running")
        self.cluster.faults.on("apiserver_away")
        with self.assertRaisesRegex(Refused, "UNAVAILABLE.*cannot reach"):
            link("check")
        self.cluster.faults.off("apiserver_away")
        self.assertIsNone(link("check")["missing"])
        self.assertEqual(link.poll("one")["phase"], "running")


if __name__ == "__main__":
    unittest.main()

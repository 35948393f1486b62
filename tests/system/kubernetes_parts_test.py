"""Parts of accelerators for pods that Weir places in a cluster under Kubernetes, against a strict stand-in of the API server
(tests/kube), whose kubelet gives devices to containers as a device plugin does. Who has what of which device is counted by what
containers were given."""
import collections
import os
import pathlib
import random
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

import harness
import kubernetes_scheduler_test as base
from harness import wait_until
from tests.kube import pods

SEED = int(os.environ.get("WEIR_SEED", str(random.SystemRandom().randrange(1 << 32))))
VARIABLE = "NVIDIA_VISIBLE_DEVICES"
HOLDER = "holder"


class Division:
    """What pods have of each device, counted at every revision of the stand-in: never more than all of it."""

    def __init__(self, cluster):
        self.cluster, self.broken = cluster, []
        cluster.store.listeners.append(self.follow)

    @staticmethod
    def part(pod):
        """(device, thousandths) of a pod that has a part."""
        notes = pod["metadata"].get("annotations") or {}
        if not pod["spec"].get("nodeName") or pods.has_ended(pod) or "weir.dev/gpu-device" not in notes:
            return None
        return notes["weir.dev/gpu-device"], round(float(notes["weir.dev/gpu-fraction"]) * 1000)

    def sums(self):
        found = collections.Counter()
        for pod in self.cluster.list("pods"):
            device, milli = self.part(pod) or (None, 0)
            found[device] += milli
        return found

    def follow(self, key, event):
        if key != "pods" or event.new is None:
            return
        for device, milli in self.sums().items():
            if device and milli > 1000:
                self.broken.append(f"{device} is given to {milli} thousandths")


class PartsTest(base.SchedulerTest):
    nodes = 1
    gpus = 2

    def setUp(self):
        super().setUp()
        self.division = Division(self.cluster)
        self.addCleanup(lambda: self.assertEqual(self.division.broken, []))
        self.cluster.create("namespaces", {"metadata": {"name": "weir"}})
        self.cluster.wait(lambda: self.cluster.get("serviceaccounts", "default", "weir"), 5, "its own account")
        self.cluster.create("serviceaccounts", {"metadata": {"name": "weir-agent"}}, "weir")
        self.printed = lambda environment: f"{VARIABLE}={environment.get(VARIABLE, '')}"
        self.cluster.kubelet.prints = lambda pod, container, environment: (
            [self.printed(environment)] if container["name"] == HOLDER else [])

    def weir(self, queues=base.EQUAL, **options):
        return super().weir(queues, **{"namespace": "weir", **options})

    def part(self, name, fraction="0.5", config=None, reads=None, gpus=0, annotations=None, **more):
        amounts = {"cpu": "1", "memory": "1Gi", **({base.GPU: str(gpus)} if gpus else {})}
        config = config or f"{name}-gpu"
        self.pod(name, annotations={"weir.dev/gpu-fraction": fraction, "weir.dev/gpu-config": config, **(annotations or {})},
                 containers=[{"name": "c", "image": "i", "resources": {"requests": amounts, "limits": amounts},
                              "envFrom": [{"configMapRef": {"name": reads or config}}]}], **{"restartPolicy": "Never", **more})

    def holders(self):
        return [pod for pod in self.cluster.list("pods", "weir") if pod["metadata"]["name"].startswith("weir-gpu-")]

    def given(self, name):
        """What the container of a pod was told of devices."""
        return (self.cluster.kubelet.environment("train", name) or {}).get(VARIABLE)

    def await_given(self, *names):
        wait_until(lambda: all(self.given(name) for name in names), 20, f"{names} begin")
        for name in names:
            owner = self.cluster.kubelet.devices.held[self.node(name), self.given(name)]
            self.assertIn(owner[0], [pod["metadata"]["uid"] for pod in self.holders()], "Weir holds it")

    def await_none_held(self):
        wait_until(lambda: not self.holders(), 20, "nothing is held")


class SharingTest(PartsTest):
    def test_a_part_with_a_claim_that_waits_for_its_node(self):
        self.cluster.create("storageclasses.storage.k8s.io", {"metadata": {"name": "made"}, "provisioner": "made.up", "volumeBindingMode": "WaitForFirstConsumer"})
        self.cluster.create("persistentvolumeclaims", {"metadata": {"name": "home"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "made", "resources": {"requests": {"storage": "1Gi"}}}}, "train")
        self.weir()
        self.part("notebook", volumes=[{"name": "home", "persistentVolumeClaim": {"claimName": "home"}}])
        self.await_bound(["notebook"])
        pod = self.cluster.get("pods", "notebook", "train")
        self.assertIn("weir.dev/gpu-device", pod["metadata"]["annotations"])
        self.assertEqual(self.cluster.get("persistentvolumeclaims", "home", "train")["status"]["phase"], "Bound")

    def test_parts_share_a_device_which_is_given_back_with_the_last_of_them(self):
        self.weir()
        for name, fraction in (("a", "0.5"), ("b", "0.25"), ("c", "0.25")):
            self.part(name, fraction)
        self.await_given("a", "b", "c")
        self.assertEqual(len({self.given(name) for name in "abc"}), 1, [self.given(name) for name in "abc"])
        told = self.cluster.kubelet.environment("train", "b")
        self.assertEqual((told["CUDA_VISIBLE_DEVICES"], told["WEIR_GPU_FRACTION"]), ("0", "0.25"))
        self.pod("whole", gpus=1)
        self.await_bound(["whole"])
        self.part("late", "0.1")
        self.pod("second", gpus=1)
        self.await_said("late", "accelerator")
        self.cluster.delete_pod("train", "b", 0)
        self.await_given("late")
        self.assertEqual(self.given("late"), self.given("a"))
        self.assertIsNone(self.node("second"))
        for name in ("a", "c", "late"):
            self.cluster.finish("train", name)
        self.await_bound(["second"])
        self.await_none_held()
        for name in ("a", "c", "late"):
            self.cluster.delete_pod("train", name, 0)
        wait_until(lambda: not [one for one in self.cluster.list("configmaps", "train") if one["metadata"]["name"].endswith("-gpu")], 5, "no ConfigMaps")

    def test_pods_of_one_configmap_share_its_device(self):
        self.weir()
        self.part("first", "0.8")
        self.await_given("first")
        self.part("one", "0.3", config="both")
        self.part("two", "0.3", config="both")
        self.part("three", "0.3", config="both")
        self.part("other", "0.2", config="both")
        wait_until(lambda: len([name for name in ("one", "two", "three") if self.given(name)]) == 3, 20, "three")
        self.assertEqual(len({self.given(name) for name in ("one", "two", "three")}), 1)
        self.await_said("other", "another part")
        self.part("large", "0.3", config="both")
        self.await_said("large", "no room")
        self.cluster.finish("train", "two")
        self.await_given("large")

    def test_a_gang_of_parts_begins_whole(self):
        self.weir()
        for i in range(5):
            self.part(f"g-{i}", "0.5", labels={"weir.dev/gang": "g", "weir.dev/gang-size": "5"})
        self.await_said("g-0", "together or not at all")
        self.assertEqual(self.holders(), [])
        self.cluster.delete_pod("train", "g-4", 0)
        for i in range(4):
            self.cluster.api.change("pods", "train", f"g-{i}", lambda pod: pod["metadata"]["labels"].update({"weir.dev/gang-size": "4"}))
        self.await_given(*(f"g-{i}" for i in range(4)))
        self.assertEqual(sorted(collections.Counter(self.given(f"g-{i}") for i in range(4)).values()), [2, 2])

    def test_what_is_guaranteed_comes_back_from_parts(self):
        queues = [{"name": "default"}, {"name": "blue", "quota": {"gpu": 1, "cpu": 8, "gib": 32}}, {"name": "green", "quota": {"gpu": 1, "cpu": 8, "gib": 32}}]
        self.weir(queues)
        for i in range(4):
            self.part(f"b-{i}", "0.5")
        self.await_given(*(f"b-{i}" for i in range(4)))
        self.pod("g", gpus=1, queue="green")
        self.await_bound(["g"], 30)
        self.assertEqual(len(self.bound("b-")), 2)
        self.assertEqual(len(self.holders()), 1)


class SentencesTest(PartsTest):
    def test_what_cannot_be_is_said(self):
        self.cluster.create("configmaps", {"metadata": {"name": "theirs"}, "data": {"key": "value"}}, "train")
        self.weir()
        self.pod("none", annotations={"weir.dev/gpu-fraction": "0.5"})
        self.part("unread", reads="else")
        self.part("much", "1.5")
        self.part("both", gpus=1)
        self.part("memory", annotations={"weir.dev/gpu-memory": "2000"})
        self.part("theirs", config="theirs")
        for name, text in (("none", "weir.dev/gpu-config"), ("unread", "envFrom"), ("much", "less than 1"), ("both", "one of the two"),
                           ("memory", "not supported"), ("theirs", "is not Weir's")):
            self.await_said(name, text)
        self.assertEqual(self.bound(), {})
        self.assertEqual(self.cluster.get("configmaps", "theirs", "train")["data"], {"key": "value"})
        self.cluster.delete_pod("train", "theirs", 0)
        self.await_none_held()

    def test_a_node_that_tells_of_no_device(self):
        self.printed = lambda environment: f"{VARIABLE}=void"
        self.weir()
        self.part("a")
        self.await_said("a", "container runtime")
        self.printed = lambda environment: f"{VARIABLE}={environment[VARIABLE]}"
        for pod in self.holders():
            self.cluster.delete_pod("weir", pod["metadata"]["name"], 0)
        self.await_given("a")

    def test_a_right_that_lacks_is_said_of_the_pod_and_the_manifest_gives_all(self):
        rights = [[word.strip().strip('"') for word in line[len("RIGHT("):].split(",", 5)[:5]]
                  for line in base.RIGHTS.read_text().splitlines() if line.startswith("RIGHT(")]
        lacks = [right for right in rights if right[2] == "configmaps"]
        for right in rights:
            if right not in lacks:
                self.allow(right)
        self.links.append(base.Weir(self.cluster.kubeconfig_for("weir"), base.EQUAL, namespace="weir"))
        self.part("a")
        self.await_said("a", 'cannot create resource "configmaps"')
        self.pod("whole", gpus=1)
        self.await_bound(["whole"])
        for right in lacks:
            self.allow(right)
        self.await_given("a")
        self.cluster.finish("train", "a")
        self.part("b", config="a-gpu")
        self.await_given("b")
        self.cluster.finish("train", "b")
        self.await_none_held()
        self.assertEqual([one for one in self.cluster.requests if one.status == 403 and "configmaps" not in one.path], [])

    def allow(self, right):
        verb, group, resource, where, _ = right
        self.cluster.allow("weir", [verb], [resource], [group], None if where == "CLUSTER" else "weir")


class LossTest(PartsTest):
    def take_holder(self):
        holder = self.holders()[0]
        self.cluster.delete_pod("weir", holder["metadata"]["name"], 0)
        wait_until(lambda: [pod for pod in self.holders() if pod["metadata"]["uid"] != holder["metadata"]["uid"]
                            and self.cluster.is_pod_ready("weir", pod["metadata"]["name"])], 20, "it is held again")

    def test_a_device_that_is_held_again_stays_with_its_pods(self):
        self.weir()
        self.part("a")
        self.await_given("a")
        self.take_holder()
        self.part("b")
        self.await_given("a", "b")
        self.assertEqual(self.given("a"), self.given("b"))
        self.assertEqual(self.cluster.asked("POST", "/eviction"), [])

    def test_pods_whose_device_may_be_anothers_are_ended(self):
        self.weir()
        self.part("a")
        self.await_given("a")
        self.cluster.kubelet.devices.choose = lambda free: sorted(free, reverse=True)
        self.take_holder()
        wait_until(lambda: self.cluster.get("pods", "a", "train") is None, 20, "its device is not held for it")
        self.await_none_held()

    def test_a_holder_that_fails_is_made_again(self):
        self.weir()
        self.cluster.create("pods", {"metadata": {"name": "thief"}, "spec": {"nodeName": "n-1", "containers": [
            {"name": "c", "image": "i", "resources": {"limits": {base.GPU: "1"}, "requests": {base.GPU: "1"}}}]}}, "train")
        wait_until(lambda: self.cluster.kubelet.devices.held, 5, "it has one")
        self.cluster.kubelet.devices.held[("n-1", "GPU-n-1-1")] = (self.cluster.get("pods", "thief", "train")["metadata"]["uid"], "c")
        self.part("a")
        self.await_said("a", "failed: Pod was rejected")
        self.cluster.delete_pod("train", "thief", 0)
        self.await_given("a")

    def test_whoever_is_killed_nothing_is_doubled_or_leaked(self):
        print(f"WEIR_SEED={SEED}")
        rng = random.Random(SEED)
        weir = self.weir()
        self.cluster.faults.on("drop", count=2, when="after", where="POST .*/weir/pods")
        self.cluster.faults.on("drop", count=2, when="after", where="POST .*/configmaps")
        self.cluster.faults.on("conflict", count=2, where="POST .*/binding")
        self.cluster.faults.on("error500", count=2, where="GET .*/log")
        self.cluster.faults.on("slow_binding", count=3, seconds=0.2)
        for i in range(6):
            self.part(f"p-{i}", "0.5")
            time.sleep(rng.random() * 0.2)
            weir.kill()
            weir = self.weir()
        wait_until(lambda: len([i for i in range(6) if self.given(f"p-{i}")]) == 4, 30, "all of two devices")
        self.assertEqual(len(self.holders()), 2)
        for i in range(6):
            if self.given(f"p-{i}"):
                self.cluster.finish("train", f"p-{i}")
        wait_until(lambda: len([i for i in range(6) if self.given(f"p-{i}")]) == 6, 30, "the others")
        for i in range(6):
            self.cluster.finish("train", f"p-{i}")
        self.await_none_held()
        self.assertEqual(self.cluster.asked("POST", "/eviction"), [])


if __name__ == "__main__":
    harness.main()

#!/usr/bin/env python3
"""Tests of what runs behind the server of the test double: scheduler, Jobs, kubelet, and many events at once."""
import pathlib
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from tests.kube.fixture import JOBS, MERGE, PODS, ClusterTest, job, pod  # noqa: E402


class SchedulingTest(ClusterTest):
    options = {"nodes": 0}

    def setUp(self):
        for resource_key in ("pods", "nodes", "poddisruptionbudgets.policy"):
            for one in self.cluster.list(resource_key):
                metadata = one["metadata"]
                self.cluster.api.delete(self.cluster.api.resource(resource_key), metadata.get("namespace"), metadata["name"],
                                        {"gracePeriodSeconds": 0})
        self.cluster.wait(lambda: not self.cluster.list("pods"))

    def resources(self, cpu="1", gpus=0):
        limits = {"cpu": cpu, **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
        return [{"name": "main", "image": "weir:test", "resources": {"limits": limits}}]

    def test_why_there_is_no_place(self):
        self.cluster.add_node("a", cpu="1")
        self.cluster.add_node("b", taints=[{"key": "a", "value": "b", "effect": "NoSchedule"}])
        self.cluster.add_node("c", taints=[{"key": "a", "value": "b", "effect": "NoSchedule"}])
        self.ask("POST", PODS, pod("big", containers=self.resources("2")))
        condition = self.cluster.wait(lambda: (self.cluster.get("pods", "big")["status"].get("conditions") or [None])[0])
        self.assertEqual((condition["type"], condition["status"], condition["reason"]), ("PodScheduled", "False", "Unschedulable"))
        self.assertTrue(condition["message"].startswith("0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint {a: b}."),
                        condition["message"])
        self.cluster.wait(lambda: any(one["reason"] == "FailedScheduling" for one in self.cluster.list("events")))
        self.cluster.untaint("b", "a")
        self.cluster.wait_phase("big", "Running")
        self.assertEqual(self.cluster.get("pods", "big")["spec"]["nodeName"], "b")

    def test_selectors_and_gpus(self):
        self.cluster.add_node("a", gpus=4, labels={"gpu": "h200"})
        self.cluster.add_node("b")
        for i in range(2):
            self.ask("POST", PODS, pod(f"g{i}", containers=self.resources("1", 3), nodeSelector={"gpu": "h200"}))
        self.cluster.wait_phase("g0", "Running")
        condition = self.cluster.wait(lambda: (self.cluster.get("pods", "g1")["status"].get("conditions") or [None])[0])
        self.assertIn("1 Insufficient nvidia.com/gpu, 1 node(s) didn't match Pod's node affinity/selector", condition["message"])
        self.cluster.finish("default", "g0")
        self.cluster.wait_phase("g1", "Running")

    def test_preemption(self):
        self.cluster.add_node("a", cpu="2")
        self.ask("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "urgent"}, "value": 1000})
        for i in range(2):
            self.ask("POST", PODS, pod(f"low{i}", containers=self.resources(), terminationGracePeriodSeconds=0))
            self.cluster.wait_phase(f"low{i}", "Running")
        watch = self.client.watch(PODS + "?watch=1&resourceVersion=" + self.ask("GET", PODS).body["metadata"]["resourceVersion"])
        self.ask("POST", PODS, pod("high", containers=self.resources(), priorityClassName="urgent"))
        self.cluster.wait_phase("high", "Running")
        victim = watch.until("DELETED")["object"]
        watch.close()
        reasons = [one["reason"] for one in victim["status"]["conditions"] if one["type"] == "DisruptionTarget"]
        self.assertEqual(reasons, ["PreemptionByKubeScheduler"])
        self.assertEqual(len(self.cluster.list("pods")), 2)

    def test_binding(self):
        self.cluster.add_node("a")
        self.ask("POST", PODS, pod("mine", schedulerName="weir"))
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "mine"}, "target": {"kind": "Node", "name": "none"}}
        self.assertEqual(self.ask("POST", PODS + "/mine/binding", binding).code, 404)
        binding["target"]["name"] = "a"
        binding["metadata"]["annotations"] = {"said": "by the binding"}
        self.assertEqual(self.ask("POST", PODS + "/mine/binding", binding).code, 201)
        self.assert_status(self.ask("POST", PODS + "/mine/binding", binding), 409, "Conflict", 'is already assigned to node "a"')
        self.assertEqual(self.cluster.wait_phase("mine", "Running")["metadata"]["annotations"]["said"], "by the binding")

    def test_eviction_and_budgets(self):
        self.cluster.add_node("a")
        labelled = pod("guarded")
        labelled["metadata"]["labels"] = {"app": "x"}
        budget = {"metadata": {"name": "pdb"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}}
        self.ask("POST", "/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget)
        self.ask("POST", PODS, labelled)
        self.cluster.wait(lambda: self.cluster.is_pod_ready("default", "guarded"))
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "guarded"}, "deleteOptions": {"gracePeriodSeconds": 1}}
        answer = self.ask("POST", PODS + "/guarded/eviction", eviction)
        self.assert_status(answer, 429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.")
        self.assertEqual(answer.body["details"]["causes"][0]["message"], "The disruption budget pdb needs 1 healthy pods and has 1 currently")
        self.ask("DELETE", "/apis/policy/v1/namespaces/default/poddisruptionbudgets/pdb")
        self.assertEqual(self.ask("POST", PODS + "/guarded/eviction", eviction).code, 201)
        self.cluster.wait(lambda: self.cluster.get("pods", "guarded") is None)

    def test_drain(self):
        self.cluster.add_node("a")
        labelled = pod("kept")
        labelled["metadata"]["labels"] = {"app": "kept"}
        self.cluster.create("poddisruptionbudgets.policy", {
            "metadata": {"name": "all"}, "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "kept"}}}})
        self.ask("POST", PODS, labelled)
        self.ask("POST", PODS, pod("moved"))
        for name in ("kept", "moved"):
            self.cluster.wait(lambda name=name: self.cluster.is_pod_ready("default", name))
        self.assertEqual(self.cluster.drain("a"), ["kept"])
        self.cluster.wait(lambda: self.cluster.get("pods", "moved") is None)
        self.ask("POST", PODS, pod("late"))
        self.cluster.wait(lambda: "node(s) were unschedulable" in str(self.cluster.get("pods", "late")["status"]))
        self.cluster.cordon("a", False)
        self.cluster.wait_phase("late", "Running")

    def test_a_node_falls_silent(self):
        self.cluster.add_node("a")
        self.cluster.add_node("b", labels={"spare": "yes"})
        self.cluster.api.toleration_seconds = 0
        self.ask("POST", PODS, pod("silent", nodeSelector={"kubernetes.io/hostname": "a"}))
        self.cluster.api.toleration_seconds = 300
        self.cluster.wait_phase("silent", "Running")
        self.cluster.lose_node("a")
        self.cluster.wait(lambda: self.cluster.get("pods", "silent")["metadata"].get("deletionTimestamp"))
        time.sleep(0.05)
        lost = self.cluster.get("pods", "silent")
        self.assertEqual([one["reason"] for one in lost["status"]["conditions"] if one["type"] == "DisruptionTarget"],
                         ["DeletionByTaintManager"])
        self.cluster.lose_node("a", False)
        self.cluster.wait(lambda: self.cluster.get("pods", "silent") is None)

    def test_taints_and_lost_nodes(self):
        self.cluster.add_node("a")
        self.ask("POST", PODS, pod("t1"))
        self.ask("POST", PODS, pod("t2", tolerations=[{"operator": "Exists"}]))
        for name in ("t1", "t2"):
            self.cluster.wait_phase(name, "Running")
        self.cluster.taint("a", "maintenance")
        self.cluster.wait(lambda: self.cluster.get("pods", "t1") is None)
        self.assertEqual(self.cluster.get("pods", "t2")["status"]["phase"], "Running")
        self.cluster.delete_node("a")
        self.cluster.wait(lambda: self.cluster.get("pods", "t2") is None)


class DeviceTest(ClusterTest):
    options = {"nodes": 0}

    def test_devices_and_variables_of_a_container(self):
        """A device belongs to one container until its pod has ended; a pod says a variable after its device does."""
        self.cluster.add_node("a", gpus=1)
        gpu = {"name": "main", "image": "weir:1", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
        self.ask("POST", PODS, pod("first", containers=[gpu], nodeName="a"))
        self.cluster.wait_phase("first", "Running")
        self.assertEqual(self.cluster.kubelet.environment("default", "first"), {"NVIDIA_VISIBLE_DEVICES": "GPU-a-0"})
        self.ask("POST", PODS, pod("second", containers=[gpu], nodeName="a"))
        refused = self.cluster.wait_phase("second", "Failed")["status"]
        self.assertEqual((refused["reason"], "Requested: 1, Available: 0" in refused["message"]), ("UnexpectedAdmissionError", True))
        self.cluster.finish("default", "first")
        self.ask("POST", PODS, pod("third", containers=[{**gpu, "envFrom": [{"configMapRef": {"name": "late"}}]}], nodeName="a"))
        self.cluster.wait(lambda: "CreateContainerConfigError" in str(self.cluster.get("pods", "third")["status"]))
        self.cluster.kubelet.prints = lambda pod, container, environment: [environment["NVIDIA_VISIBLE_DEVICES"]]
        self.cluster.create("configmaps", {"metadata": {"name": "late"}, "data": {"NVIDIA_VISIBLE_DEVICES": "own"}})
        self.cluster.wait_phase("third", "Running")
        self.assertEqual(self.ask("GET", PODS + "/third/log").raw, b"own\n")


class JobTest(ClusterTest):
    def pods_of(self, name):
        return [one for one in self.cluster.list("pods") if (one["metadata"].get("labels") or {}).get("job-name") == name]

    def running(self, name, n):
        def found():
            pods = [one for one in self.pods_of(name) if one["status"]["phase"] == "Running"]
            return pods if len(pods) == n else None
        return self.cluster.wait(found, 5, f"{n} pods of {name} run")

    def end_of(self, name):
        def condition():
            found = [one for one in self.cluster.get("jobs.batch", name)["status"].get("conditions") or [] if one["status"] == "True"]
            return next((one for one in found if one["type"] in ("Complete", "Failed")), None)
        return self.cluster.wait(condition, 5, f"{name} ends")

    def test_indexed_job(self):
        self.ask("POST", JOBS, job("idx"))
        pods = self.running("idx", 2)
        one = pods[0]
        self.assertRegex(one["metadata"]["name"], "^idx-[01]-[a-z0-9]{5}$")
        index = one["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]
        self.assertEqual((one["spec"]["hostname"], one["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"]), (f"idx-{index}", index))
        self.assertEqual(one["spec"]["containers"][0]["env"][0]["name"], "JOB_COMPLETION_INDEX")
        for one in pods:
            self.cluster.finish("default", one["metadata"]["name"])
        self.cluster.wait_phase(pods[0]["metadata"]["name"], "Succeeded")
        self.assertNotIn("succeeded", self.cluster.get("jobs.batch", "idx")["status"])
        self.assertEqual(self.end_of("idx")["type"], "Complete")
        status = self.cluster.get("jobs.batch", "idx")["status"]
        self.assertEqual((status["succeeded"], status["completedIndexes"]), (2, "0,1"))
        answer = self.ask("DELETE", JOBS + "/idx")
        self.assertIn("child pods are preserved by default", answer.headers["Warning"])
        self.cluster.wait(lambda: self.cluster.get("jobs.batch", "idx") is None)
        time.sleep(0.05)
        self.assertEqual(len(self.pods_of("idx")), 2)

    def test_failures(self):
        self.ask("POST", JOBS, job("bad", 1))
        self.cluster.finish("default", self.running("bad", 1)[0]["metadata"]["name"], 3)
        end = self.end_of("bad")
        self.assertEqual((end["type"], end["reason"], end["message"]),
                         ("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"))
        rules = [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
                 {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]
        self.ask("POST", JOBS, job("policy", 1, podFailurePolicy={"rules": rules}, backoffLimit=3))
        first = self.running("policy", 1)[0]["metadata"]["name"]
        self.cluster.evict("default", first)
        self.cluster.wait(lambda: self.cluster.get("pods", first) is None)
        second = self.running("policy", 1)[0]["metadata"]["name"]
        self.cluster.finish("default", second, 42)
        self.assertEqual(self.end_of("policy")["message"],
                         f"Container main for pod default/{second} failed with exit code 42 matching FailJob rule at index 1")
        self.assertEqual(self.cluster.get("jobs.batch", "policy")["status"]["failed"], 1)

    def test_retry_suspend_and_cascade(self):
        self.ask("POST", JOBS, job("again", 1, backoffLimit=2))
        self.cluster.finish("default", self.running("again", 1)[0]["metadata"]["name"], 1)
        self.running("again", 1)
        self.ask("PATCH", JOBS + "/again", {"spec": {"suspend": True}}, MERGE)
        self.cluster.wait(lambda: any(one["type"] == "Suspended" for one in self.cluster.get("jobs.batch", "again")["status"].get(
            "conditions") or []))
        self.assertEqual([one for one in self.pods_of("again") if one["status"]["phase"] == "Running"], [])
        self.ask("PATCH", JOBS + "/again", {"spec": {"suspend": False}}, MERGE)
        self.running("again", 1)
        self.assertEqual(self.ask("DELETE", JOBS + "/again", {"propagationPolicy": "Foreground"}).code, 200)
        self.cluster.wait(lambda: self.cluster.get("jobs.batch", "again") is None and not self.pods_of("again"))

    def test_deadline_and_time_to_live(self):
        self.ask("POST", JOBS, job("late", 1, activeDeadlineSeconds=1, ttlSecondsAfterFinished=0))
        self.cluster.wait(lambda: self.cluster.get("jobs.batch", "late") is None, 5)
        self.assertTrue(any(one["reason"] == "DeadlineExceeded" for one in self.cluster.list("events")))

    def test_kueue(self):
        self.cluster.install_kueue()
        self.assertEqual(self.ask("GET", "/apis/kueue.x-k8s.io").code, 200)
        queued = job("queued", 1, suspend=True)
        queued["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "team"}
        self.ask("POST", JOBS, queued)
        time.sleep(0.05)
        self.assertEqual(self.pods_of("queued"), [])
        self.cluster.kueue.set_quota({"team": {"pods": "1"}})
        queued["metadata"]["name"] = "queued-2"
        self.ask("POST", JOBS, queued)
        self.cluster.finish("default", self.running("queued", 1)[0]["metadata"]["name"])
        self.running("queued-2", 1)

    def test_out_of_memory_and_logs(self):
        self.ask("POST", PODS, pod("memory"))
        self.cluster.wait_phase("memory", "Running")
        self.cluster.write_log("default", "memory", "one\ntwo\n")
        self.assertEqual(self.ask("GET", PODS + "/memory/log?tailLines=1").raw, b"two\n")
        self.assertRegex(self.ask("GET", PODS + "/memory/log?timestamps=1").raw, rb"^\d{4}-\d\d-\d\dT[0-9:.]+Z one\n")
        self.cluster.out_of_memory("default", "memory")
        ended = self.cluster.wait_phase("memory", "Failed")["status"]["containerStatuses"][0]["state"]["terminated"]
        self.assertEqual((ended["exitCode"], ended["reason"]), (137, "OOMKilled"))
        self.assert_status(self.ask("GET", PODS + "/memory/log?container=no"), 400, "BadRequest", "container no is not valid for pod memory")


    def test_a_job_with_a_wrong_owner_or_none(self):
        self.ask("POST", JOBS, job("owner", 1))
        owned = pod("owned", schedulerName="nobody")
        owned["metadata"]["ownerReferences"] = [{"apiVersion": "batch/v1", "kind": "Job", "name": "owner", "uid": "wrong"}]
        self.assertEqual(self.ask("POST", PODS, owned).code, 201)
        self.cluster.wait(lambda: self.cluster.get("pods", "owned") is None)

    def test_a_deleted_pod_of_a_job_is_replaced(self):
        self.ask("POST", JOBS, job("replace", 1, backoffLimit=1))
        first = self.running("replace", 1)[0]["metadata"]["name"]
        self.ask("DELETE", f"{PODS}/{first}?gracePeriodSeconds=0")
        self.cluster.wait(lambda: self.cluster.get("jobs.batch", "replace")["status"].get("failed") == 1)
        self.cluster.wait(lambda: self.cluster.get("pods", first) is None)
        self.running("replace", 1)

    def test_kubelet_refuses_what_it_has_not(self):
        self.cluster.kubelet.missing_images.add("weir:none")
        self.ask("POST", PODS, pod("none", containers=[{"name": "main", "image": "weir:none"}]))
        self.cluster.wait(lambda: "ImagePullBackOff" in str(self.cluster.get("pods", "none")["status"]))
        self.cluster.kubelet.missing_images.clear()
        self.cluster.wait_phase("none", "Running")
        self.ask("POST", PODS, pod("short", activeDeadlineSeconds=1))
        self.assertEqual(self.cluster.wait_phase("short", "Failed")["status"]["reason"], "DeadlineExceeded")


class ProcessTest(ClusterTest):
    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        program = pathlib.Path(folder) / "greet"
        program.write_text('#!/bin/sh\necho "hello $1"\n', encoding="ascii")
        program.chmod(0o755)
        cls.options = {"nodes": 1, "mode": "process", "images": {"weir:test": folder}}
        super().setUpClass()

    def run_pod(self, name, script, phase="Succeeded", **spec):
        container = {"name": "main", "image": "weir:test", "command": ["/bin/sh", "-c", script], **spec.pop("container", {})}
        self.assertEqual(self.ask("POST", PODS, pod(name, containers=[container], **spec)).code, 201)
        self.cluster.wait_phase(name, phase)
        return self.ask("GET", f"{PODS}/{name}/log").raw.decode()

    def test_what_a_process_is_given(self):
        secret = {"metadata": {"name": "key"}, "stringData": {"token": "s3cret"}}
        self.ask("POST", "/api/v1/namespaces/default/secrets", secret)
        env = [{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)2"}, {"name": "DATA", "value": "/data/sub"},
               {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
               {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "key", "key": "token"}}}]
        mounts = [{"name": "data", "mountPath": "/data"}, {"name": "key", "mountPath": "/etc/key"}]
        text = self.run_pod("given", "greet you; env; cat /etc/key/token; cat /data/file; echo done > /dev/termination-log",
                            container={"env": env, "volumeMounts": mounts},
                            volumes=[{"name": "data", "emptyDir": {}}, {"name": "key", "secret": {"secretName": "key"}}],
                            initContainers=[{"name": "init", "image": "weir:test", "command": ["sh", "-c", "echo made > /data/file"],
                                             "volumeMounts": mounts[:1]}])
        lines = text.splitlines()
        self.assertEqual(lines[0], "hello you")
        self.assertLessEqual({"A=1", "B=12", "NODE=node-1", "TOKEN=s3cret"}, set(lines))
        self.assertIn("s3cretmade", text)
        self.assertFalse(any(line.startswith("HOME=") for line in lines))
        self.assertRegex(text, rf"DATA={self.cluster.dir}/pods/[-0-9a-f]+/volumes/data/sub")
        status = self.cluster.get("pods", "given")["status"]["containerStatuses"][0]["state"]["terminated"]
        self.assertEqual((status["exitCode"], status["message"]), (0, "done\n"))

    def test_claims_that_wait_for_a_node(self):
        """As the real controller manager does: a note of a node binds nothing that no class makes; a volume that names the claim does."""
        def claim(name, of):
            self.cluster.create("persistentvolumeclaims", {"metadata": {"name": name}, "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": of, "resources": {"requests": {"storage": "1Gi"}}}}, "default")
        for name, provisioner in (("local", "kubernetes.io/no-provisioner"), ("made", "made.up")):
            self.cluster.create("storageclasses.storage.k8s.io", {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"})
        rule = {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-1"]}]}]}}
        self.cluster.create("persistentvolumes", {"metadata": {"name": "pv-1"}, "spec": {
            "capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local", "local": {"path": "/x"}, "nodeAffinity": rule}})
        claims = "/api/v1/namespaces/default/persistentvolumeclaims/"
        for name in ("local", "made"):
            claim(name, name)
            self.ask("PATCH", claims + name, {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "node-1"}}}, MERGE)
        self.cluster.wait(lambda: self.cluster.get("persistentvolumeclaims", "made")["status"]["phase"] == "Bound")
        self.cluster.wait(lambda: self.cluster.get("persistentvolumes", "pv-1")["status"]["phase"] == "Available")
        found = self.cluster.get("persistentvolumeclaims", "local")
        self.assertEqual(found["status"]["phase"], "Pending")
        self.ask("PATCH", "/api/v1/persistentvolumes/pv-1", {"spec": {"claimRef": {"namespace": "default", "name": "local", "uid": found["metadata"]["uid"]}}}, MERGE)
        self.cluster.wait(lambda: self.cluster.get("persistentvolumeclaims", "local")["status"]["phase"] == "Bound")
        refused = self.ask("PATCH", claims + "local", {"spec": {"storageClassName": "made"}}, MERGE)
        self.assert_status(refused, 422, "Invalid", "spec is immutable after creation")

    def test_volumes(self):
        self.ask("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "conf"}, "data": {"a": "one", "b": "two"}})
        claim = {"metadata": {"name": "disk"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
        self.ask("POST", "/api/v1/namespaces/default/persistentvolumeclaims", claim)
        self.cluster.wait(lambda: self.cluster.get("persistentvolumeclaims", "disk")["status"]["phase"] == "Bound")
        host = self.enterContext(tempfile.TemporaryDirectory())
        sources = [{"configMap": {"name": "conf", "items": [{"key": "a", "path": "sub/a"}]}}, {"serviceAccountToken": {"path": "token"}},
                   {"downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}}]
        volumes = [{"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}}, {"name": "host", "hostPath": {"path": host}},
                   {"name": "all", "projected": {"sources": sources}}, {"name": "conf", "configMap": {"name": "conf"}}]
        mounts = [{"name": "disk", "mountPath": "/disk"}, {"name": "host", "mountPath": "/host"}, {"name": "all", "mountPath": "/all"},
                  {"name": "conf", "mountPath": "/host/conf"}, {"name": "disk", "mountPath": "/part", "subPath": "x/y"}]
        script = "cat /all/sub/a /all/name /host/conf/b; echo /other/disk /disks; echo kept > /disk/file; echo it > /host/file; ls -d /part"
        text = self.run_pod("volumes", script, volumes=volumes, container={"volumeMounts": mounts})
        self.assertTrue(text.startswith("onevolumestwo/other/disk /disks\n"), text)
        self.assertEqual(pathlib.Path(host, "file").read_text(), "it\n")
        self.assertIn(f"{self.cluster.dir}/claims/default/disk/x/y", text)
        self.assertEqual(self.run_pod("later", "cat /disk/file", volumes=volumes, container={"volumeMounts": mounts}), "kept\n")

    def test_programs_of_an_image(self):
        text = self.run_pod("absolute", "", container={"command": ["/opt/made-up/greet", "path"]})
        self.assertEqual(text, "hello path\n")
        self.cluster.kubelet.entrypoints["weir:test"] = ["greet"]
        text = self.run_pod("entry", "", container={"command": None, "args": ["entry"]})
        self.assertEqual(text, "hello entry\n")
        self.run_pod("lacks", "", "Failed", container={"command": ["no-such-program"]})
        ended = self.cluster.get("pods", "lacks")["status"]["containerStatuses"][0]["state"]["terminated"]
        self.assertEqual((ended["exitCode"], ended["reason"]), (128, "StartError"))
        self.run_pod("says", "echo why; exit 1", "Failed", container={"terminationMessagePolicy": "FallbackToLogsOnError"})
        ended = self.cluster.get("pods", "says")["status"]["containerStatuses"][0]["state"]["terminated"]
        self.assertEqual(ended["message"], "why\n")

    def test_exit_codes_and_restarts(self):
        self.run_pod("exit", "exit 7", "Failed")
        self.assertEqual(self.cluster.get("pods", "exit")["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"], 7)
        self.run_pod("restart", "if [ -e /d/x ]; then exit 0; fi; touch /d/x; exit 1", restartPolicy="OnFailure",
                     container={"volumeMounts": [{"name": "d", "mountPath": "/d"}]}, volumes=[{"name": "d", "emptyDir": {}}])
        self.assertEqual(self.cluster.get("pods", "restart")["status"]["containerStatuses"][0]["restartCount"], 1)

    def test_what_is_not_there(self):
        self.ask("POST", PODS, pod("image", containers=[{"name": "main", "image": "none:1", "command": ["true"]}]))
        self.cluster.wait(lambda: self.waiting("image") == "ImagePullBackOff")
        self.assertEqual(self.ask("GET", PODS + "/image/log").code, 400)
        volumes = [{"name": "s", "secret": {"secretName": "later"}}]
        self.ask("POST", PODS, pod("mount", volumes=volumes))
        self.cluster.wait(lambda: any(one["reason"] == "FailedMount" and 'secret "later" not found' in one["message"]
                                      for one in self.cluster.list("events")))
        self.assertEqual(self.waiting("mount"), "ContainerCreating")
        self.ask("POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "later"}})
        self.cluster.wait_phase("mount", "Succeeded")

    def waiting(self, name):
        states = self.cluster.get("pods", name)["status"].get("containerStatuses") or [{}]
        return states[0].get("state", {}).get("waiting", {}).get("reason")

    def test_signals(self):
        self.run_pod("gentle", "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.02; done", "Running")
        with self.client.begin("GET", PODS + "/gentle/log?follow=1", connection=self.client.connect()) as log:
            self.assertEqual(log.readline(), b"up\n")
            self.ask("DELETE", PODS + "/gentle")
            self.assertEqual(log.read(), b"bye\n")
        self.cluster.wait(lambda: self.cluster.get("pods", "gentle") is None)
        self.run_pod("hard", "trap '' TERM; echo up; while :; do sleep 0.02; done", "Running")
        begun = time.monotonic()
        self.ask("DELETE", PODS + "/hard?gracePeriodSeconds=1")
        self.cluster.wait(lambda: self.cluster.get("pods", "hard") is None)
        self.assertGreater(time.monotonic() - begun, 0.9)

    def test_a_job_of_processes(self):
        self.ask("POST", JOBS, job("proc", 2, ["sh", "-c", "echo index $JOB_COMPLETION_INDEX"]))
        self.cluster.wait(lambda: self.cluster.get("jobs.batch", "proc")["status"].get("succeeded") == 2)
        names = sorted(one["metadata"]["name"] for one in self.cluster.list("pods") if one["metadata"]["name"].startswith("proc-"))
        self.assertEqual([self.ask("GET", f"{PODS}/{name}/log").raw for name in names], [b"index 0\n", b"index 1\n"])


class LoadTest(ClusterTest):
    options = {"nodes": 0}

    def test_events_to_three_watchers(self):
        pods = [pod(f"p{i:04d}", schedulerName="nobody", automountServiceAccountToken=False) for i in range(1500)]
        for one in pods:
            self.cluster.create("pods", one)
        revision = self.ask("GET", PODS).body["metadata"]["resourceVersion"]
        watches = [self.client.watch(f"{PODS}?watch=1&resourceVersion={revision}") for _ in range(3)]
        begun = time.process_time()
        changed = threading.Thread(target=self.change_all, args=(200,))
        changed.start()
        for watch in watches:
            for _ in range(200):
                self.assertEqual(watch.next()["type"], "MODIFIED")
            watch.close()
        changed.join()
        self.assertLess(time.process_time() - begun, 1.5)

    def change_all(self, n):
        for i in range(n):
            self.cluster.api.change("pods", "default", f"p{i:04d}", lambda obj: obj["metadata"].setdefault("labels", {}).update(a="b"))


if __name__ == "__main__":
    unittest.main()

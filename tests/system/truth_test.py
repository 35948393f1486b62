"""It never says that all is well when it is not, and nobody is let in by a typing error."""
import hashlib
import time
import unittest
import uuid

import harness
from harness import HttpError, Server, small_model, wait_until

DOOR = """
kind: ion
name: door
pipelines:
  - {name: learn, type: training, dataset: staff, model: face-embed}
  - name: see
    type: prediction
    source: {kind: http}
    gallery: {dataset: staff}
links:
  - {from: learn, to: see}
"""


class Names(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--no-agent").start()
        cls.server.post("/datasets", {"name": "staff"})
        for person in ("ada", "ben", "carla"):
            cls.server.request("PUT", f"/api/v1/datasets/staff/files/{person}/1.jpg", person.encode())
        cls.server.post("/datasets/staff/versions")
        cls.apply(DOOR)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    @classmethod
    def apply(cls, text, check=True):
        file = cls.server.root / "ion.yaml"
        file.write_text(text)
        return cls.server.weir("apply", "-f", str(file), check=check)

    def members(self):
        return {item["person"]: item["list"] for item in self.server.get("/ions/door/members")["items"]}

    def test_a_person_who_is_not_enrolled_is_barred_only_if_one_insists(self):
        weir = self.server.weir
        status, out, err = weir("member", "deny", "door", "crala", check=False)
        self.assertEqual((status, out), (4, ""), err)
        self.assertIn('did you mean "carla"?', err)
        self.assertIn("--not-enrolled", err)
        self.assertEqual(self.members(), {})
        weir("member", "deny", "door", "carla")
        weir("member", "allow", "door", "zoe", "--not-enrolled")
        self.assertEqual(self.members(), {"carla": "deny", "zoe": "allow"})
        status, _, err = weir("member", "remove", "door", "karla", check=False)
        self.assertEqual(status, 4, err)
        self.assertIn('did you mean "carla"?', err)
        self.assertEqual(self.members(), {"carla": "deny", "zoe": "allow"})
        weir("member", "remove", "door", "carla")
        weir("member", "remove", "door", "zoe")
        weir("member", "remove", "door", "ada")  # on no list already
        self.assertEqual(self.members(), {})

    def refused(self, text, *said):
        status, out, err = self.apply(text, check=False)
        self.assertIn(status, (2, 7), out + err)
        for words in said:
            self.assertIn(words, err)
        self.assertEqual(self.server.get("/ions/door")["revision"], 1)

    def test_a_pair_that_cannot_work_is_refused_before_it_trains(self):
        self.refused(DOOR.replace("face-embed", "lenet"), "$.links[0]", '"see"', "lenet, a classifier",
                     "model: face-embed in $.pipelines[0]")
        self.refused(DOOR.replace("face-embed", "face-detect"), "$.links[0]", '"see"', "face-detect, a detector", "registers")
        self.refused(DOOR.replace("face-embed", "face-embd"), "$.pipelines[0].model", 'did you mean "face-embed"?')
        self.refused(DOOR.replace("face-embed", "models/own.json"), "$.pipelines[0].model", "relative path")
        classifier = self.server.root / "classifier.json"
        classifier.write_text('{"layers": [], "loss": {"type": "softmax"}}')
        self.refused(DOOR.replace("face-embed", str(classifier)), "a classifier", "margin")
        self.server.post("/datasets", {"name": "digits", "kind": "idx"})
        self.refused(DOOR.replace("gallery: {dataset: staff}", "gallery: {dataset: digits}"),
                     "$.pipelines[1].gallery.dataset", "kind idx")
        heap = self.server.root / "heap"
        heap.mkdir()
        (heap / "photo.jpg").write_bytes(b"a photo of nobody in particular")
        self.server.post("/datasets", {"name": "heap", "path": str(heap)})
        self.server.post("/datasets/heap/versions")
        self.refused(DOOR.replace("gallery: {dataset: staff}", "gallery: {dataset: heap}"), "has no classes")

    def test_a_template_and_relative_paths_are_refused_and_missing_folders_are_said(self):
        example = (harness.ROOT / "examples/building-security/ion.yaml").read_text()
        status, _, err = self.apply(example, check=False)
        self.assertEqual(status, 2, err)
        self.assertIn("$.pipelines[1].source.path", err)
        self.assertIn("mark @WORK@ of a template", err)
        self.refused(DOOR.replace("{kind: http}", "{kind: directory, path: frames}"), "relative path", "absolute")
        self.server.post("/datasets", {"name": "faces"})
        self.server.post("/datasets", {"name": "passers-by"})
        nowhere = self.server.root / "nowhere"
        _, out, err = self.apply(example.replace("@WORK@", str(nowhere)))
        self.assertIn("applied, revision 1", out)
        for words in (f"warning: {self.server.root}/ion.yaml: $.pipelines[1].source.path: {nowhere}/frames is no folder",
                      "$.pipelines[1].sinks[0].path", 'dataset "faces" has no version yet'):
            self.assertIn(words, err)
        self.server.weir("delete", "building-security")


def reasons(server):
    """Why the platform is not well, but for this machine's own disk."""
    summary = server.get("/health/summary")
    if not summary["reasons"]:
        assert summary["status"] == "ok", summary
    return [(r["status"], r["subject"]) for r in summary["reasons"] if r["kind"] != "disk_filling"]


class Door:
    """A server without an agent, an ION with a training and a door, and the part of the replica played by the test."""

    def __init__(self):
        self.server = server = Server("--no-agent").start()
        server.post("/datasets", {"name": "staff"})
        for person in ("ada", "ben", "carla"):
            server.request("PUT", f"/api/v1/datasets/staff/files/{person}/1.pgm", b"P5\n2 2\n255\n" + person.encode()[:3] + b"!")
        server.post("/datasets/staff/versions")
        self.apply(DOOR.replace("to: see}", "to: see, policy: always-update}"))

    def apply(self, text):
        file = self.server.root / "ion.yaml"
        file.write_text(text)
        self.server.weir("apply", "-f", str(file))

    def learn(self):
        """A training's run makes a model, which goes to the door."""
        server, model = self.server, small_model()
        if self.pipeline("learn")["job"]:
            server.post(f"/jobs/{self.pipeline('learn')['job']}/cancel")
        server.post("/ions/door/trigger", {"pipeline": "learn"})
        run = wait_until(lambda: server.get("/runs?ion=door&status=SCHEDULED")["items"], 10, "a run")[0]["id"]
        blob = hashlib.sha256(model).hexdigest()
        server.request("PUT", "/api/v1/blobs/" + blob, model)
        made = server.post("/models/door.learn/versions", {"id": str(uuid.uuid4()), "run": run, "blob": blob,
                                                                 "bytes": len(model)})
        wait_until(lambda: self.pipeline()["job"], 10, "the replicas' job")
        return made["version"]

    def pipeline(self, name="see"):
        return next(p for p in self.server.get("/ions/door")["pipelines"] if p["name"] == name)

    def link(self):
        return self.server.get("/ions/door")["links"][0]

    def report(self, state, revision, served, rank=0, job=None, **more):
        body = {"state": state, "revision": revision, "served_revision": served, **more}
        job = job or self.pipeline()["job"]
        self.server.request("PUT", f"/api/v1/ions/door/pipelines/see/replicas/{job}-{rank}", body)

    def alerts(self, kind, state="open"):
        return [a for a in self.server.get(f"/alerts?kind={kind}&limit=1000")["items"] if a["state"] == state]


class Deployments(unittest.TestCase):
    def setUp(self):
        self.door = Door()

    def tearDown(self):
        self.door.server.stop()

    def candidates(self):
        return {c["version"]: c["state"] for c in self.door.server.get("/ions/door/candidates")["items"]}

    def test_a_pipeline_that_cannot_serve_is_not_serving_anywhere(self):
        door, server = self.door, self.door.server
        self.assertEqual((door.pipeline()["state"], door.link()["serving_version"]), ("WAITING", None))
        self.assertEqual(door.learn(), 1)
        self.assertEqual((door.pipeline()["state"], door.link()["serving_version"]), ("DEPLOYING", None))
        self.assertEqual(self.candidates(), {1: "DEPLOYING"})
        door.report("FAILED", 1, 0, reason="model door.learn version 1 is a classifier")
        failed = door.pipeline()
        self.assertEqual((failed["state"], failed["state_reason"]),
                         ("DEPLOY_FAILED", "model door.learn version 1 is a classifier"))
        link = door.link()
        self.assertEqual((link["serving_version"], link["wanted_version"], link["deployment_state"]),
                         (None, 1, "DEPLOY_FAILED"))
        self.assertEqual(self.candidates(), {1: "DEPLOY_FAILED"})
        alert, = door.alerts("deployment_failed")
        self.assertEqual((alert["subject"], alert["severity"]), ("ion/door", "critical"))
        self.assertIn("see", alert["message"])
        self.assertIn("is a classifier", alert["message"])
        self.assertIn("deployment_failed", [e["kind"] for e in server.get("/events?subject=ion/door")["items"]])
        door.report("APPLIED", 1, 1, frames_taken=3, frames_decided=3)
        self.assertEqual((door.pipeline()["state"], door.link()["serving_version"]), ("SERVING", 1))
        self.assertEqual(self.candidates(), {1: "SERVING"})
        self.assertEqual((door.alerts("deployment_failed"), len(door.alerts("deployment_failed", "resolved"))), ([], 1))

    def test_what_served_before_is_said_to_serve_on(self):
        door, server = self.door, self.door.server
        door.learn()
        door.report("APPLIED", 1, 1)
        self.assertEqual(door.learn(), 2)
        door.report("FAILED", 2, 1, reason="damaged")
        self.assertEqual(self.candidates(), {1: "SERVING", 2: "DEPLOY_FAILED"})
        self.assertEqual((door.link()["serving_version"], door.link()["wanted_version"]), (1, 2))
        alert, = door.alerts("deployment_failed")
        self.assertEqual(alert["severity"], "warning")
        _, out, _ = server.weir("rollback", "door", "--version", "1")
        self.assertIn("serving version 1", out)
        door.report("APPLIED", 3, 3)
        self.assertEqual(door.alerts("deployment_failed"), [])

    def test_only_replicas_of_the_door_may_speak_for_it(self):
        door, server = self.door, self.door.server
        door.learn()
        for code, arguments in ((409, {"job": "another"}), (400, {"state": "FINE"})):
            with self.assertRaises(HttpError) as caught:
                door.report(**{"state": "APPLIED", "revision": 1, "served": 1, **arguments})
            self.assertEqual(caught.exception.code, code)
        door.report("APPLIED", 1, 1)
        first = door.pipeline()["job"]
        door.apply(DOOR.replace("to: see}", "to: see, policy: always-update}").replace("{kind: http}", "{kind: http, token: t}"))
        wait_until(lambda: door.pipeline()["job"] not in (None, first), 10, "replicas anew")
        self.assertEqual(door.pipeline()["state"], "DEPLOYING")
        door.report("APPLIED", 2, 2)
        self.assertEqual([r["replica"] for r in server.get("/ions/door/replicas")["items"]], [door.pipeline()["job"] + "-0"])


    def health(self):
        return self.door.server.get("/ions/door")["health"]

    def test_a_source_without_frames_degrades_the_door_until_one_comes(self):
        door, server = self.door, self.door.server
        self.assertEqual(self.health()["status"], "waiting")
        door.apply(DOOR.replace("to: see}", "to: see, policy: always-update}")
                   .replace("gallery:", "no_frames_after_s: 1\n    gallery:"))
        door.learn()
        door.report("APPLIED", 1, 1, last_frame_ms=int(time.time() * 1000))
        alert, = wait_until(lambda: door.alerts("no_frames"), 15, "an alert")
        self.assertEqual((alert["subject"], alert["severity"]), ("ion/door", "warning"))
        self.assertEqual(self.health()["status"], "degraded")
        self.assertIn("see has taken no frame since", self.health()["reason"])
        self.assertIsNotNone(self.health()["since"])
        self.assertEqual(reasons(server), [("degraded", "ion/door")])

        def frames_come():
            door.report("APPLIED", 1, 1, last_frame_ms=int(time.time() * 1000) + 60000)
            return not door.alerts("no_frames")
        door.apply(DOOR.replace("to: see}", "to: see, policy: always-update}"))  # a longer bound
        wait_until(frames_come, 15, "no alert")
        self.assertEqual(self.health(), {"status": "ok", "reason": None, "since": None})
        self.assertEqual(reasons(server), [])

    def test_a_member_who_leaves_the_gallery_and_decisions_that_do_not_get_out_are_told(self):
        door, server = self.door, self.door.server
        server.weir("member", "deny", "door", "zoe", "--not-enrolled")
        door.learn()
        door.report("APPLIED", 1, 1, backlog_ms=70000, backlog_reader="sink-0")
        alert, = wait_until(lambda: door.alerts("outbox_stuck"), 15, "an alert")
        self.assertIn("sink-0", alert["message"])
        door.report("APPLIED", 1, 1)
        wait_until(lambda: not door.alerts("outbox_stuck"), 15, "no alert")
        alert, = wait_until(lambda: door.alerts("member_not_enrolled"), 45, "an alert")
        self.assertIn("zoe", alert["message"])


class Machines(unittest.TestCase):
    def setUp(self):
        self.server = Server().start()

    def tearDown(self):
        self.server.stop()

    def alerts(self, kind, state="open"):
        return [a for a in self.server.get(f"/alerts?kind={kind}")["items"] if a["state"] == state]

    def test_a_machine_that_dies_is_lost_and_told_until_it_is_back(self):
        server = self.server
        node, = wait_until(lambda: server.get("/nodes")["items"], 30, "a node")
        self.assertEqual(node["state"], "ready")
        server.request("PUT", "/api/v1/nodes/second", {"cpu_slots": 1})  # an agent that reports once
        self.assertIn("ready", server.weir("get", "nodes")[1])
        state = lambda: {n["name"]: n["state"] for n in server.get("/nodes")["items"]}["second"]
        wait_until(lambda: state() == "silent", 30, "a silent node")
        alert, = wait_until(lambda: self.alerts("node_lost"), 30, "an alert")
        self.assertEqual((alert["subject"], state()), ("node/second", "lost"))
        self.assertIn("lost", server.weir("get", "nodes")[1])
        raised = [e["message"] for e in server.get("/events?kind=alert_raised")["items"]]
        self.assertTrue(any("second" in message for message in raised), raised)
        self.assertEqual(reasons(server), [("degraded", "node/second")])
        server.request("PUT", "/api/v1/nodes/second", {"cpu_slots": 1})
        wait_until(lambda: self.alerts("node_lost", "resolved"), 10, "the alert's end")
        self.assertEqual((state(), self.alerts("node_lost")), ("ready", []))

    def test_a_failed_job_is_an_alert_until_one_of_its_name_succeeds(self):
        server = self.server

        def run(*argv):
            job = server.post("/jobs", {"name": "nightly", "kind": "command", "max_restarts": 0,
                                        "spec": {"argv": list(argv)}})["id"]
            wait_until(lambda: server.get("/jobs/" + job)["state"] in ("FAILED", "SUCCEEDED"), 60, "the job's end")
            return job
        run("false")
        second = run("false")
        alert, = self.alerts("job_failed")
        self.assertEqual((alert["count"], alert["subject"]), (2, "job/" + second))
        self.assertEqual(reasons(server), [])  # somebody's script is not the platform
        run("true")
        self.assertEqual((self.alerts("job_failed"), len(self.alerts("job_failed", "resolved"))), ([], 1))


if __name__ == "__main__":
    harness.main()

"""rollout_test.py: a link of an ION that leads to a deployment: two people approve, a canary answers a share of the requests,
a guard that trips gives them all back at once, and no request fails meanwhile."""
import datetime
import random
import signal
import struct
import threading
import time
import unittest

import harness
from harness import HttpError, Server, small_model, wait_until

ION = """
kind: ion
name: sums
pipelines: []
links:
  - from: {model: adder}
    to: {deployment: sums}
    policy:
      - {kind: manual, approvals: 2}
      - {kind: canary, steps: [50, 100], hold_s: 1, min_requests: 20, min_judged: 10, max_disagreement: 0.1, max_error_rate: 0}
"""
GOOD = small_model("y", (None, 4))
ALSO_GOOD = GOOD.replace(b"\x12\x01g", b"\x12\x01h")  # the same sums by a graph of another name
NARROW = small_model("y", (None, 3))  # refuses what the others take
BAD = GOOD.replace(b"Add", b"Mul").replace(struct.pack("<f", 1), struct.pack("<f", -3))


class Caller(threading.Thread):
    """Asks all the time; keeps when each answer came, and of which version."""

    def __init__(self, server, deployment="sums", ask=lambda: [1, 2, 3, 4]):
        super().__init__(daemon=True)
        self.server, self.deployment, self.ask = server, deployment, ask
        self.answers, self.failures, self.is_over = [], [], threading.Event()

    def run(self):
        while not self.is_over.is_set():
            body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 4], "data": self.ask()}]}
            began = time.time()
            try:
                answer = self.server.request("POST", f"/v2/models/{self.deployment}/infer", body)
                self.answers.append((began, answer["model_version"]))
            except (HttpError, OSError) as error:
                self.failures.append(repr(error))
                self.last_failure = time.time()

    def stop(self):
        self.is_over.set()
        self.join(60)


class Rollout(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--cpu-slots", "8").start()
        cls.addClassCleanup(cls.server.stop)
        cls.tokens = []
        for name in ("ann", "bob"):
            cls.server.post("/users", {"name": name, "kind": "person", "role": "admin"})
            cls.tokens.append(cls.server.post("/tokens", {"name": name, "user": name, "role": "admin"})["secret"])

    def push(self, model):
        file = self.server.root / "model.onnx"
        file.write_bytes(model)
        return self.server.weir("model", "push", "adder", str(file))[2]

    def approve(self, version):
        for token in self.tokens:
            self.server.request("POST", "/api/v1/ions/sums/approve", {"version": version}, token=token)

    def candidate(self, version):
        found = [one for one in self.server.get("/ions/sums/candidates")["items"] if one["version"] == version]
        return found[0] if found else {"state": None}

    def is_in(self, version, state, timeout=60):
        wait_until(lambda: self.candidate(version)["state"] == state, timeout, f"version {version} to be {state}")

    def traffic(self):
        return {one["version"]: one["live_percent"] for one in self.server.get("/deployments/sums")["versions"] if one["live_percent"]}

    def decision(self, version, verdict):
        found = [one for one in self.server.get("/ions/sums/policy-decisions")["items"]
                 if one["version"] == version and one["verdict"] == verdict]
        self.assertEqual(len(found), 1, found)
        return found[0]

    def test_a_canary_serves_or_goes_back_and_no_request_fails(self):
        self.push(GOOD)
        file = self.server.root / "ion.yaml"
        file.write_text(ION)
        self.server.weir("apply", "-f", str(file))
        self.approve(1)
        wait_until(lambda: self.traffic_if_there() == {1: 100}, 60, "the deployment to serve version 1")
        caller = Caller(self.server)
        caller.start()
        try:
            self.push(ALSO_GOOD)
            self.approve(2)
            self.is_in(2, "SERVING")
            wait_until(lambda: self.traffic() == {2: 100}, 10, "all requests for version 2")
            self.assertIn("no guard tripped in 2 steps", self.decision(2, "promote")["rule"])
            self.push(BAD)
            self.approve(3)
            self.is_in(3, "ROLLED_BACK")
            decision = self.decision(3, "rollback")
            self.assertIn("answers were not those of the version that serves", decision["rule"])
            wait_until(lambda: self.traffic() == {2: 100}, 10, "all requests for version 2 again")
            n = len(caller.answers)
            wait_until(lambda: len(caller.answers) > n + 50, 30, "further answers")
        finally:
            caller.stop()
        self.assertEqual(caller.failures, [])
        by_three = [at for at, version in caller.answers if version == "3"]
        self.assertTrue(by_three)
        # It needed 10 compared requests to see the breach; nobody was sent there a second after it was seen.
        seen = datetime.datetime.fromisoformat(decision["time_ms"].replace("Z", "+00:00")).timestamp()
        self.assertLess(by_three[-1], seen + 1)
        self.refuses_what_the_other_takes()

    def refuses_what_the_other_takes(self):
        """Said at the push, to who approves, at a deployment by hand; and where all of them approve, the canary finds it."""
        # A refusal is a disagreement too, and either guard may have seen enough first: here the other one is left out.
        file = self.server.root / "ion.yaml"
        file.write_text(ION.replace(" min_judged: 10, max_disagreement: 0.1,", ""))
        self.server.weir("apply", "-f", str(file))
        changes = "its input x is FP32 [-1,3], before FP32 [-1,4]"
        self.assertIn("weir: warning: version 4 is not compatible with version 3: " + changes, self.push(NARROW))
        self.assertIn("not compatible with version 2, which serves: " + changes, self.candidate(4)["waits_why"])
        caller = Caller(self.server)
        caller.start()
        try:
            self.approve(4)
            self.is_in(4, "ROLLED_BACK")
            wait_until(lambda: self.traffic() == {2: 100}, 10, "all requests for version 2 again")
            time_of_end, n = time.time(), len(caller.answers)
            wait_until(lambda: len(caller.answers) > n + 50, 30, "further answers")
        finally:
            caller.stop()
        self.assertLess(caller.last_failure, time_of_end + 1)
        self.assertIn("refused (4xx)", self.decision(4, "rollback")["rule"])
        self.assertTrue(all("HTTP 400" in one for one in caller.failures), caller.failures[:3])
        warning = self.server.weir("deploy", "adder", "--as", "sums", "--mirror", "none", "--traffic", "v2=60,v4=40", "--no-wait")[2]
        self.assertIn("weir: warning: version 4 is not compatible with version 2: " + changes, warning)
        self.is_not_deleted_while_something_leads_to_it()

    def is_not_deleted_while_something_leads_to_it(self):
        weir, server = self.server.weir, self.server
        code, _, said = weir("undeploy", "sums", check=False)
        self.assertEqual(code, 5)
        self.assertIn("link model/adder:deployment/sums of ION sums leads to it", said)
        server.request("PUT", "/api/v1/projects/default/secrets/key", {"value": "x"})
        job = server.post("/jobs", {"name": "named", "project": "default", "kind": "command",
                                    "spec": {"argv": ["true"], "secrets": ["key"], "cpu_slots": 4096}})["id"]
        self.assertIn("job named", weir("secret", "delete", "key", check=False)[2])
        server.post(f"/jobs/{job}/cancel", {})
        wait_until(lambda: server.get(f"/jobs/{job}")["state"] == "CANCELLED", 30, "the job to be cancelled")
        weir("secret", "delete", "key")
        weir("model", "alias", "adder", "stable", "2")
        weir("deploy", "adder@stable", "--as", "follower", "--follow", "--no-wait")
        self.assertIn("deployment follower follows it", weir("model", "alias", "adder", "stable", "--delete", check=False)[2])
        weir("undeploy", "follower")
        weir("model", "alias", "adder", "stable", "--delete")
        weir("undeploy", "sums", "--force")
        health = lambda: server.get("/ions/sums")["health"]
        wait_until(lambda: health()["status"] == "down", 60, "the ION to be down")
        self.assertIn("deployment sums is not there. `weir deploy adder@v2 --as sums` makes it again", health()["reason"])
        weir("deploy", "adder@v2", "--as", "sums", "--no-wait")
        wait_until(lambda: health()["status"] == "ok", 60, "the ION to be well")

    def traffic_if_there(self):
        try:
            return self.traffic()
        except HttpError as error:
            self.assertEqual(error.code, 404)
            return None


DRIFTING = """
kind: ion
name: classes
pipelines: []
links:
  - from: {model: classifier}
    to: {deployment: classes}
    policy: {kind: canary, steps: [50, 100], hold_s: 1, min_requests: 20, max_error_rate: 1, drift_false_alarm_rate: 0.01, drift_window: 60}
"""


class Drift(unittest.TestCase):
    """The likeliest class is the largest input, of a good model; of a bad one the least."""

    def setUp(self):
        self.server = Server("--cpu-slots", "8").start()
        self.addCleanup(self.server.stop)
        self.rng = random.Random(7)

    def ask(self):
        """The first is the largest of seven in ten."""
        values = [self.rng.random() for _ in range(4)]
        values[0] += self.rng.random() < 0.6
        return values

    def push(self, model):
        file, labels, kind = (self.server.root / name for name in ("model.onnx", "labels", "kind.yaml"))
        file.write_bytes(model)
        labels.write_text("a\nb\nc\nd\n")
        kind.write_text("output_kind: logits\n")
        self.server.weir("model", "push", "classifier", str(file), "--labels", str(labels), "--preprocess", str(kind))

    def candidate(self, version):
        return next((one for one in self.server.get("/ions/classes/candidates")["items"] if one["version"] == version), {"state": None, "begun_ms": None})

    def is_in(self, version, state):
        wait_until(lambda: self.candidate(version)["state"] == state, 60, f"version {version} to be {state}")

    def rules(self, version):
        return [one for one in self.server.get("/ions/classes/policy-decisions")["items"] if one["version"] == version]

    def wait_until_it_answers(self):
        """Until then requests fail, which is no matter of a canary."""
        def answers():
            try:
                return self.server.request("POST", "/v2/models/classes/infer", {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}]})
            except (HttpError, OSError):
                return None
        wait_until(answers, 60, "an answer")

    def test_drift_is_a_guard_also_after_a_kill(self):
        server = self.server
        self.push(GOOD)
        file = server.root / "ion.yaml"
        file.write_text(DRIFTING)
        server.weir("apply", "-f", str(file))
        self.is_in(1, "SERVING")
        self.wait_until_it_answers()
        caller = Caller(server, "classes", self.ask)
        caller.start()
        try:
            self.push(ALSO_GOOD)
            self.is_in(2, "SERVING")
            self.push(BAD)
            self.is_in(3, "ROLLED_BACK")
        finally:
            caller.stop()
        self.assertEqual(caller.failures, [])
        looks = [one for one in self.rules(2) if "no drift between the" in one["rule"]]
        self.assertGreaterEqual(len(looks), 2, "each step is looked at")
        [back] = [one for one in self.rules(3) if one["verdict"] == "rollback"]
        self.assertIn("canary: drift: the ", back["rule"])
        # What it looked at is there, to be computed again: class by class.
        trial = back["inputs"]["trial"]
        self.assertGreaterEqual(sum(trial["outputs"]["classes"]), 60)
        mine, live = ([n / sum(counts) for n in (counts + 4 * [0])[:4]] for counts in (trial["outputs"]["classes"], trial["live_outputs"]["classes"]))
        self.assertGreater(live[0], 0.5)
        self.assertLess(mine[0], 0.3)

        # A server that is killed while a version is tried looks on, with what it counts from then on.
        self.push(BAD.replace(b"\x12\x01g", b"\x12\x01h"))
        self.is_in(4, "CANARY")
        wait_until(lambda: self.candidate(4)["begun_ms"], 60, "the step to be in effect")
        server.kill(signal.SIGKILL)
        server.start("--listen", server.url.removeprefix("http://"))
        self.wait_until_it_answers()
        self.assertEqual(self.candidate(4)["state"], "CANARY")
        caller = Caller(server, "classes", self.ask)
        caller.start()
        try:
            self.is_in(4, "ROLLED_BACK")
        finally:
            caller.stop()
        [back] = [one for one in self.rules(4) if one["verdict"] == "rollback"]
        self.assertIn("canary: drift: the ", back["rule"])
        self.assertEqual(self.candidate(2)["state"], "SERVING")


if __name__ == "__main__":
    harness.main()

"""rollout_test.py: a link of an ION that leads to a deployment: two people approve, a canary answers a share of the requests,
a guard that trips gives them all back at once, and no request fails meanwhile."""
import datetime
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
BAD = GOOD.replace(b"Add", b"Mul").replace(struct.pack("<f", 1), struct.pack("<f", -3))


class Caller(threading.Thread):
    """Asks all the time; keeps when each answer came, and of which version."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.answers, self.failures, self.is_over = server, [], [], threading.Event()

    def run(self):
        body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}]}
        while not self.is_over.is_set():
            began = time.time()
            try:
                answer = self.server.request("POST", "/v2/models/sums/infer", body)
                self.answers.append((began, answer["model_version"]))
            except (HttpError, OSError) as error:
                self.failures.append(repr(error))

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
        self.server.weir("model", "push", "adder", str(file))

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

    def traffic_if_there(self):
        try:
            return self.traffic()
        except HttpError as error:
            self.assertEqual(error.code, 404)
            return None


if __name__ == "__main__":
    harness.main()

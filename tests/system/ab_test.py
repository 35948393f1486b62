"""ab_test.py: two versions share the requests of a deployment; clients tell what came of each. The better one serves, the worse
one goes back, and each outcome counts once, though the server is killed at each step and clients tell again what they are not sure of."""
import json
import math
import random
import re
import unittest
import urllib.error
import urllib.request

import harness
from harness import HttpError, Server, small_model, wait_until

ION = """
kind: ion
name: sums
pipelines: []
links:
  - from: {model: adder}
    to: {deployment: sums}
    policy: {kind: ab, share: 40, metric: METRIC, min_samples: 40, confidence: 0.95, timeout_s: 3600}
"""
MODELS = [small_model("y", (None, 4)).replace(b"\x12\x01g", b"\x12\x01" + letter) for letter in (b"g", b"h", b"i")]
SUCCESS = {1: 0.3, 2: 0.75, 3: 0.3}  # what became of requests that a version answered
SEED = 20


def chance(arms, min_samples):
    """By the row's figures alone: how likely it is that the candidate has such a lead at any look, if it is no better."""
    n, m = arms["n"], arms["live_n"]
    lead = arms["mean"] - arms["live_mean"]
    about_all = (arms["m2"] + arms["live_m2"] + n * m / (n + m) * lead ** 2) / (n + m - 1) * (1 / n + 1 / m)
    own = arms["m2"] / (n - 1) / n + arms["live_m2"] / (m - 1) / m
    z, rho = lead / math.sqrt(max(about_all, own)), 2 * n * m / (n + m) / min_samples
    below = (1 + math.erf(z * math.sqrt(rho / (1 + rho)) / math.sqrt(2))) / 2
    return math.sqrt(1 + rho) / (2 * below * math.exp(z * z * rho / (2 * (1 + rho))))


class Comparison(unittest.TestCase):
    def setUp(self):
        self.server = Server("--cpu-slots", "8").start()
        self.addCleanup(self.server.stop)
        print("seed", SEED)
        self.dice = random.Random(SEED)
        self.told = {}  # request: (version, outcome), of those that the server has acknowledged

    def push(self, number):
        file = self.server.root / "model.onnx"
        file.write_bytes(MODELS[number - 1])
        self.server.weir("model", "push", "adder", str(file))

    def apply(self, metric):
        file = self.server.root / "ion.yaml"
        file.write_text(ION.replace("METRIC", metric))
        self.server.weir("apply", "-f", str(file))

    def kill(self):
        self.server.kill()
        self.server.start()

    def infer(self, key=None):
        """The version that answered, and the request's identifier."""
        body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}]}
        headers = {"Authorization": "Bearer " + self.server.token, **({"Weir-Key": key} if key else {})}

        def ask():
            request = urllib.request.Request(self.server.url + "/v2/models/sums/infer", json.dumps(body).encode(), headers)
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return int(answer.headers["Weir-Model-Version"]), answer.headers["Weir-Request"]
            except urllib.error.HTTPError as error:  # its replica is not known again yet
                if error.code not in (404, 503):
                    raise
                return None
        return wait_until(ask, 60, "an answer")

    def tell(self, request, version, is_success):
        self.server.post("/feedback", {"request": request, "success": is_success})
        self.told[request] = (version, is_success)

    def state(self, version):
        found = [one for one in self.server.get("/ions/sums/candidates")["items"] if one["version"] == version]
        return found[0] if found else {"state": None, "begun_ms": None}

    def traffic(self):
        try:
            return {one["version"]: one["live_percent"] for one in self.server.get("/deployments/sums")["versions"] if one["live_percent"]}
        except HttpError:
            return None

    def comparison(self):
        found = self.server.get("/ions/sums")["comparisons"]
        return found[0] if found else None

    def counted(self):
        return {arm["version"]: (arm["n"], round(arm["n"] * (arm["mean"] or 0))) for arm in self.comparison()["arms"]}

    def expected(self, *versions):
        return {v: (sum(1 for one, _ in self.told.values() if one == v), sum(1 for one, good in self.told.values() if one == v and good))
                for v in versions}

    def begin(self, version):
        """Version 1 or what serves, beside this one; killed before it begins, and when it has begun."""
        self.told = {}
        self.push(version)
        wait_until(lambda: self.state(version)["state"] == "AB", 60, "the comparison to be asked for")
        self.kill()
        wait_until(lambda: self.state(version)["begun_ms"], 90, "the comparison to begin")
        self.kill()

    def play(self, version, live, end):
        """Requests and outcomes until it is decided; a kill now and then, in the middle of telling."""
        for i in range(1500):
            answered, request = self.infer()
            is_success = self.dice.random() < SUCCESS[answered]
            if i in (30, 70):  # told, killed, and told again by a client that has not seen the answer
                self.tell(request, answered, is_success)
                self.kill()
            if self.state(version)["state"] != "AB":
                break
            try:
                self.tell(request, answered, is_success)
            except HttpError:
                break
            if i in (30, 75):
                self.assertEqual(self.counted(), self.expected(live, version))
        wait_until(lambda: self.state(version)["state"] == end, 30, f"version {version} to be {end}")

    def decision(self, version, verdict):
        found = [one for one in self.server.get("/ions/sums/policy-decisions")["items"]
                 if one["version"] == version and one["verdict"] == verdict]
        self.assertEqual(len(found), 1, found)
        return found[0]

    def keys(self):
        return {key: self.infer(key)[0] for key in (f"customer-{i}" for i in range(30))}

    def test_the_better_one_serves_and_the_worse_one_goes_back_whatever_is_killed(self):
        self.push(1)
        self.apply("conversion")
        wait_until(lambda: self.traffic() == {1: 100}, 60, "version 1 to serve")
        old = self.infer()[1]
        self.begin(2)
        self.server.post("/feedback", {"request": old, "success": True})  # answered before it began: no sample
        before = self.keys()
        self.assertEqual(set(before.values()), {1, 2})
        self.assertEqual(self.counted(), {1: (0, 0), 2: (0, 0)})
        self.play(2, 1, "SERVING")
        self.kill()
        wait_until(lambda: self.traffic() == {2: 100}, 60, "all requests for version 2")
        decision = self.decision(2, "promote")
        self.assertIn("surely better at a confidence of 0.95", decision["rule"])
        self.assertEqual((decision["policy"], decision["actor"]), ("ab", "policy"))
        arms = decision["inputs"]["arms"]
        self.assertGreaterEqual(min(arms["n"], arms["live_n"]), 40)
        self.assertGreater(arms["mean"], arms["live_mean"])
        told = float(re.search(r"p = ([0-9.e-]+)\)", decision["rule"])[1])
        self.assertLessEqual(told, 0.05)
        self.assertAlmostEqual(chance(arms, 40) / told, 1, delta=0.01)
        self.begin(3)
        self.assertEqual(self.keys(), self.keys())
        self.kill()
        self.play(3, 2, "ROLLED_BACK")
        self.kill()
        self.assertIn("surely worse", self.decision(3, "rollback")["rule"])
        wait_until(lambda: self.traffic() == {2: 100}, 60, "all requests for version 2 again")
        self.assertIsNone(self.comparison())

    def test_what_came_of_a_request_can_be_told_by_hand_and_is_seen(self):
        self.push(1)
        self.apply("error")
        wait_until(lambda: self.traffic() == {1: 100}, 60, "version 1 to serve")
        self.push(2)
        wait_until(lambda: self.state(2)["begun_ms"], 60, "the comparison to begin")
        before = self.keys()
        told = {1: [0, 0], 2: [0, 0]}
        for i in range(8):
            version, request = self.infer()
            words = [["success"], ["failure"], ["--decided", "cat", "cat"], ["--decided", "cat", "dog"]][i % 4]
            self.server.weir("feedback", "--request", request, *words)
            told[version][0] += 1
            told[version][1] += i % 2
        self.assertEqual(self.counted(), {version: tuple(pair) for version, pair in told.items()})
        self.assertEqual(self.server.weir("feedback", "--request", request, "--kpi", "basket", "12.5")[1], "1 told\n")
        self.server.weir("kpi", "sums", "basket", "7", "--version", "adder@v2")
        self.assertIn("has no version 9", self.server.weir("kpi", "sums", "basket", "7", "--version", "adder@v9", check=False)[2])
        self.assertIn("basket  7", self.server.weir("kpi", "sums")[1])
        self.assertEqual({(one["name"], one["value"]) for one in self.server.get("/outcomes?name=basket")["items"]}, {("basket", 12.5)})
        self.assertEqual([one["model_version"] for one in self.server.get("/ions/sums/kpis")["items"]], [2])
        for noun, name in (("ion", "sums"), ("deployment", "sums")):
            text = self.server.weir("describe", noun, name)[1]
            self.assertIn("compared", text)
            self.assertIn("model/adder:deployment/sums  error", text)
        self.kill()
        self.assertEqual(self.keys(), before)
        status, _, text = self.server.weir("feedback", "--request", request.replace(".2.", ".1.").replace(".1.", ".9."), "success", check=False)
        self.assertNotEqual(status, 0)
        self.assertIn("is no request that this server has answered", text)
        self.assertNotEqual(self.server.weir("feedback", "--request", request, "perhaps", check=False)[0], 0)


if __name__ == "__main__":
    harness.main()

"""A server that stands still, a network that is cut and a clock that is set: none of it is the nodes' doing, and
nothing that runs is begun again for it."""
import json
import os
import signal
import subprocess
import time
import unittest

import harness
from fault_test import shift_clock
from harness import Server, WEIR, small_model, wait_until

TIMEOUT_S = 10


class Silence(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.stop)
        self.shift = shift_clock(self, self.server.root)
        self.agents = {}
        self.server.start("--no-agent", "--node-timeout", str(TIMEOUT_S))
        self.gate = self.server.root / "gate"

    def start_agent(self, node):
        folder = self.server.root / node
        folder.mkdir(mode=0o700)
        (folder / "token").write_text(json.loads(self.server.weir(
            "token", "create", node, "--role", "agent", "--user", "agent", "--node", node, "-o", "json")[1])["secret"])
        with open(self.server.root / f"{node}.log", "ab") as log:
            self.agents[node] = subprocess.Popen(
                [WEIR, "agent", "--server", self.server.url, "--dir", str(folder), "--node", node, "--cpu-slots", "4",
                 "--share", f"{self.server.root}:rw"], stderr=log, start_new_session=True)
        wait_until(lambda: node in self.nodes(), 20, node)

    def nodes(self):
        return {node["name"]: node["state"] for node in self.server.get("/nodes")["items"]}

    def job(self, name, **spec):
        job = self.server.post("/jobs", {"name": name, "kind": "command", "spec": {
            "argv": ["sh", "-c", f"echo $WEIR_ATTEMPT >> {self.server.root}/{name}.ran; "
                     f"while [ ! -e {self.gate} ]; do sleep 0.1; done"], **spec}})["id"]
        wait_until(lambda: self.get(job)["state"] == "RUNNING", 20, name)
        return job

    def get(self, job):
        return self.server.get("/jobs/" + job)

    def alerts(self):
        return {alert["kind"] for alert in self.server.get("/alerts?limit=100")["items"] if alert["state"] != "resolved"}

    def replicas(self):
        return [(one["id"], one["state"]) for one in self.server.get("/deployments/plus")["replicas"]]

    def deploy(self):
        file = self.server.root / "plus.onnx"
        file.write_bytes(small_model())
        self.server.weir("model", "push", "plus", str(file))
        self.server.weir("deploy", "plus", "--replicas", "2", "--cpus", "1")
        wait_until(lambda: [state for _, state in self.replicas()] == ["READY"] * 2, 30, "the replicas")

    def stand_still(self, processes, seconds):
        for process in processes:
            process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)  # what is tried is that time passes
        for process in processes:
            process.send_signal(signal.SIGCONT)

    def test_silence_of_the_server_s_own_and_silence_of_a_node(self):
        for node in ("a", "b"):
            self.start_agent(node)
        self.deploy()
        homes = [self.server.get(f"/jobs/{job['id']}/tasks")["items"][0]["node"] for job in self.server.get("/jobs?kind=serve")["items"]]
        self.assertEqual(sorted(homes), ["a", "b"], "one replica on each")
        limited = self.job("limited", time_limit="30m")
        fenced = self.job("fenced", fenced=True)
        replicas = self.replicas()
        with self.subTest("the server stands still"):
            self.stand_still([self.server.process], 3 * TIMEOUT_S)
            wait_until(lambda: "server_away" in self.alerts(), 20, "the alert")
            self.assertNotIn("node_lost", self.alerts())
            self.assertEqual(set(wait_until(lambda: set(self.nodes().values()) == {"ready"} and self.nodes(), 10, "nodes")),
                             {"a", "b"})
        for by in (86400, 86400 - 3600, 0):
            with self.subTest("the clock is set", by=by):
                self.shift.write_text(str(by))
                seen = time.time() + by
                wait_until(lambda: abs(self.clock() - seen) < 60, 20, "the server to follow")
                wait_until(lambda: set(self.nodes().values()) == {"ready"}, 20, "the nodes")
        with self.subTest("all nodes fall silent at once"):
            self.stand_still(self.agents.values(), 2 * TIMEOUT_S)
            wait_until(lambda: set(self.nodes().values()) == {"ready"}, 20, "the nodes")
            self.assertIn("server_cut_off", {a["kind"] for a in self.server.get("/alerts?limit=100")["items"]})
        self.assertEqual(self.replicas(), replicas)
        job = self.get(limited)
        self.assertEqual((job["state"], job["attempt"]), ("RUNNING", 1))
        self.assertEqual((self.server.root / "limited.ran").read_text().split(), ["1"])
        with self.subTest("one node falls silent"):
            node = self.server.get(f"/jobs/{limited}/tasks")["items"][0]["node"]
            self.agents[node].send_signal(signal.SIGSTOP)
            wait_until(lambda: self.nodes()[node] == "lost", 3 * TIMEOUT_S, "the node to be lost")
            wait_until(lambda: self.get(limited)["attempt"] == 2, 20, "the second attempt")
            self.agents[node].send_signal(signal.SIGCONT)
            wait_until(lambda: set(self.nodes().values()) == {"ready"}, 20, "the nodes")
        with self.subTest("a fenced job on it"):
            beats = self.server.root / "beats"
            self.gate.touch()
            for job in (limited, fenced):
                wait_until(lambda: self.get(job)["state"] == "SUCCEEDED", 20, "its end")
            fenced = self.server.post("/jobs", {"name": "beats", "kind": "command", "spec": {"fenced": True, "argv": [
                "sh", "-c", f"while :; do echo $WEIR_ATTEMPT >> {beats}; sleep 0.1; done"]}})["id"]
            wait_until(lambda: self.get(fenced)["state"] == "RUNNING", 20, "it to run")
            node = self.server.get(f"/jobs/{fenced}/tasks")["items"][0]["node"]
            self.agents[node].send_signal(signal.SIGSTOP)  # its supervisor is not
            wait_until(lambda: "2" in beats.read_text().split(), 4 * TIMEOUT_S, "the second attempt")
            self.agents[node].send_signal(signal.SIGCONT)
            wait_until(lambda: set(self.nodes().values()) == {"ready"}, 20, "the nodes")
            ran = beats.read_text().split()
            self.assertEqual(ran, sorted(ran), "one after the other")

    def clock(self):
        """The time that the server stamps its heartbeats with."""
        text = self.server.get("/nodes")["items"][0]["last_seen_ms"]
        return time.mktime(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S")) - time.timezone


if __name__ == "__main__":
    harness.main()

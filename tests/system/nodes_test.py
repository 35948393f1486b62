"""Four agents in network namespaces, which have joined by one command each: a cable is pulled, a device goes bad, a node
is drained under load. Nothing is lost, and each is told in one sentence."""
import json
import os
import pathlib
import shutil
import subprocess
import unittest

import harness
from harness import Server, WEIR, wait_until

N_NODES = 4
SWITCH = f"weirn{os.getpid() % 10000}s"
FAKE_NVML = harness.BIN.parent / "src/device/libweir_fake_nvml.so"


def host(i):
    return f"weirn{os.getpid() % 10000}h{i}"


def inside(space):
    """`ip netns exec` would mount /sys anew, which not every machine lets it."""
    return ["nsenter", f"--net=/run/netns/{space}"]


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


def make_network():
    """A bridge in a namespace of its own, and N_NODES + 1 hosts on it; the last is the server's."""
    ip("netns", "add", SWITCH)
    ip("-n", SWITCH, "link", "add", "br0", "type", "bridge")
    ip("-n", SWITCH, "link", "set", "br0", "up")
    for i in range(N_NODES + 1):
        ip("netns", "add", host(i))
        ip("-n", host(i), "link", "set", "lo", "up")
        ip("link", "add", "eth0", "netns", host(i), "type", "veth", "peer", "name", f"p{i}", "netns", SWITCH)
        ip("-n", SWITCH, "link", "set", f"p{i}", "master", "br0", "up")
        ip("-n", host(i), "addr", "add", f"10.78.0.{i + 1}/24", "dev", "eth0")
        ip("-n", host(i), "link", "set", "eth0", "up")


def remove_network():
    for space in [SWITCH, *(host(i) for i in range(N_NODES + 1))]:
        subprocess.run(["ip", "netns", "del", space], capture_output=True, check=False)


class Nodes(unittest.TestCase):
    def setUp(self):
        if os.geteuid() != 0 or shutil.which("ip") is None or shutil.which("nsenter") is None:
            self.skipTest("network namespaces need root, ip and nsenter")
        self.addCleanup(remove_network)
        try:
            make_network()
        except subprocess.CalledProcessError as error:
            self.skipTest(f"no network namespaces here: {error.stderr.strip()}")
        self.server = Server()
        self.addCleanup(self.stop)
        self.faults = self.server.root / "faults"
        self.faults.write_text("")
        self.address = f"http://10.78.0.{N_NODES + 1}"
        self.server.program = [*inside(host(N_NODES)), WEIR]
        self.server.start("--listen", "0.0.0.0:0", "--no-agent")
        self.url = f"{self.address}:{self.server.url.rsplit(':', 1)[1]}"

    def stop(self):
        for i in range(N_NODES):
            self.on(i, "agent", "stop", "--dir", self.folder(i), "--timeout", "5")
        self.server.stop()

    def folder(self, i):
        return str(self.server.root / f"agent-{i}")

    def on(self, i, *arguments, **environment):
        """Run a command on a host. @return (status, what it printed)."""
        done = subprocess.run([*inside(host(i)), WEIR, *arguments], capture_output=True, text=True, timeout=60,
                              check=False, env={**os.environ, **environment})
        return done.returncode, done.stdout + done.stderr

    def weir(self, *arguments):
        status, text = self.on(N_NODES, *arguments, "--state", str(self.server.state))
        self.assertEqual(status, 0, text)
        return text

    def items(self, *words):
        return json.loads(self.weir("get", *words, "-o", "json"))["items"]

    def node(self, name):
        return json.loads(self.weir("get", "node", name, "-o", "json"))

    def command_to_join(self, i):
        words = self.weir("node", "token", "--node", f"n{i}").splitlines()[0].split()
        self.assertEqual(words[:3], ["weir", "node", "join"])
        return [*words[1:3], self.url, words[4]]

    def join(self, i, **environment):
        command = self.command_to_join(i)
        options = ["--node", f"n{i}", "--dir", self.folder(i), "--cpu-slots", "2", "--share", f"{self.server.root}:rw"]
        status, text = self.on(i, *command, *options, **environment)
        self.assertEqual(status, 0, text)
        self.assertIn(f"n{i}: has joined", text)
        return command, options

    def alert(self, kind, subject):
        return next((alert for alert in self.items("alerts")
                     if (alert["kind"], alert["subject"]) == (kind, subject) and alert["state"] != "resolved"), None)

    def submit(self, name, tasks, script):
        spec = self.server.root / f"{name}.yaml"
        spec.write_text(json.dumps({"name": name, "kind": "command", "max_restarts": 5,
                                    "spec": {"argv": ["sh", "-c", script], "tasks": tasks}}))
        self.weir("job", "submit", "-f", str(spec))

    def job(self, name):
        return next(job for job in self.items("jobs") if job["name"] == name)

    def places(self, name):
        return sorted(task["node"] or "" for task in self.items("tasks", self.job(name)["id"])
                      if task["state"] in ("STARTING", "RUNNING"))

    def await_ready(self):
        wait_until(lambda: sum(node["state"] == "ready" for node in self.items("nodes")) == N_NODES, 30, "four nodes")

    def test_four_nodes_join_lose_a_cable_a_device_and_a_drain_and_nothing_is_lost(self):
        environment = {"WEIR_NVML_LIBRARY": str(FAKE_NVML), "WEIR_FAKE_NVML": str(self.faults)}
        command, options = self.join(0, **environment)
        for i in range(1, N_NODES):
            self.join(i)
        self.await_ready()
        self.check_joining_again(command, options)
        self.check_device()
        self.check_drain()
        self.check_drain_that_evicts()
        self.check_cable()
        self.check_leaving()

    def check_joining_again(self, command, options):
        status, text = self.on(0, *command, *options)
        self.assertEqual(status, 0, text)
        self.assertIn("n0: has joined already", text)
        status, text = self.on(1, *command, "--node", "n0", "--dir", self.folder(9))
        self.assertNotEqual(status, 0)
        self.assertIn("node n0 has joined with this token", text)
        self.assertFalse((pathlib.Path(self.folder(9)) / "token").exists())

    def check_device(self):
        wait_until(lambda: self.node("n0")["n_accelerators"] == 8, 20, "eight accelerators")
        self.assertEqual({device["state"] for device in self.node("n0")["devices"] if device["kind"] == "gpu"}, {"ok"})
        self.assertIn("cpu", {device["kind"] for device in self.node("n1")["devices"]})
        self.faults.write_text("ecc 3 2\n")
        alert = wait_until(lambda: self.alert("device_bad", "node/n0"), 20, "the alert of a bad device")
        self.assertRegex(alert["message"], r"^Device n0/\d+ \(NVIDIA H100 80GB HBM3\) is bad: its memory had 2 errors .*\.$")
        self.assertIsNone(self.node("n0")["unhealthy"])
        self.faults.write_text("count 7\n")
        wait_until(lambda: self.alert("device_gone", "node/n0"), 20, "the alert of a device that is gone")
        self.assertIsNone(self.alert("device_bad", "node/n0"))
        self.faults.write_text("")
        wait_until(lambda: not self.alert("device_gone", "node/n0"), 20, "the end of the alert")
        self.faults.write_text("hang\n")  # The agent goes on reporting meanwhile.
        alert = wait_until(lambda: self.alert("node_unhealthy", "node/n0"), 30, "the alert of a driver that hangs")
        self.assertIn("all its accelerators are bad: its driver does not answer", alert["message"])
        self.assertEqual(self.node("n0")["state"], "ready")

    def check_drain(self):
        gate = self.server.root / "gate"
        self.submit("load", 4, f"until test -e {gate}; do sleep 0.1; done; echo done")
        wait_until(lambda: len(self.places("load")) == 4 and self.job("load")["state"] == "RUNNING", 30, "the load")
        self.assertNotIn("n0", self.places("load"))  # unhealthy
        there = self.places("load")[0]
        self.weir("node", "drain", there)
        self.submit("later", 2, "true")
        wait_until(lambda: self.job("later")["state"] == "SUCCEEDED", 30, "the later job")
        self.assertNotIn(there, [task["node"] for task in self.items("tasks", self.job("later")["id"])])
        self.assertIn(there, self.places("load"))
        gate.touch()
        wait_until(lambda: self.job("load")["state"] == "SUCCEEDED", 30, "the load's end")
        self.assertEqual(self.job("load")["n_restarts"], 0)
        self.weir("node", "resume", there)

    def check_drain_that_evicts(self):
        gate = self.server.root / "moves"
        self.submit("moves", 2, f"until test -e {gate}; do sleep 0.1; done; echo done")
        wait_until(lambda: len(self.places("moves")) == 2 and self.job("moves")["state"] == "RUNNING", 30, "the job")
        there = self.places("moves")[0]
        self.weir("node", "drain", there, "--evict")
        wait_until(lambda: self.job("moves")["state"] == "RUNNING" and there not in self.places("moves"), 40, "the job elsewhere")
        self.assertEqual((self.job("moves")["n_evictions"], self.job("moves")["n_restarts"]), (1, 0))
        gate.touch()
        wait_until(lambda: self.job("moves")["state"] == "SUCCEEDED", 30, "its end")
        self.weir("node", "resume", there)

    def check_cable(self):
        gate = self.server.root / "second"
        self.submit("cable", 2, f"until test -e {gate}; do sleep 0.1; done")
        wait_until(lambda: self.job("cable")["state"] == "RUNNING", 30, "the job")
        lost = self.places("cable")[0]
        ip("-n", SWITCH, "link", "set", f"p{lost[1:]}", "down")
        alert = wait_until(lambda: self.alert("node_lost", f"node/{lost}"), 40, "the alert of a lost node")
        self.assertRegex(alert["message"], rf"^Node {lost} has not been heard of since .*: look whether .*\.$")
        wait_until(lambda: self.job("cable")["state"] == "RUNNING" and lost not in self.places("cable"), 40,
                   "the job elsewhere")
        gate.touch()
        wait_until(lambda: self.job("cable")["state"] == "SUCCEEDED", 30, "its end")
        ip("-n", SWITCH, "link", "set", f"p{lost[1:]}", "up")
        wait_until(lambda: not self.alert("node_lost", f"node/{lost}"), 40, "the node's return")

    def check_leaving(self):
        status, text = self.on(1, "node", "leave", "--dir", self.folder(1))
        self.assertEqual(status, 0, text)
        self.assertIn("n1: has left", text)
        self.assertEqual(self.node("n1")["state"], "left")
        self.assertFalse((pathlib.Path(self.folder(1)) / "token").exists())


if __name__ == "__main__":
    harness.main()

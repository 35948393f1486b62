"""Agents in an allocation of somebody's cluster, as Slurm would start them, without Slurm: they join with one token, offer
what the environment says, and when every process of the allocation is told to end, their jobs go on elsewhere."""
import os
import pathlib
import signal
import subprocess
import unittest

import harness
from harness import Server, WEIR, wait_until

N_NODES = 3
TAG = "slurm-1"


class LentNodes(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.stop)
        self.agents = {}
        self.server.start("--no-agent")
        command = self.server.weir("node", "token", "--nodes", str(N_NODES))[1]
        self.secret = command.splitlines()[0].split()[4]

    def folder(self, name):
        return self.server.root / f"agent-{name}"

    def start_agent(self, name, **variables):
        environment = {**{key: value for key, value in os.environ.items() if not key.startswith(("SLURM", "CUDA", "WEIR_"))},
                       "SLURM_JOB_ID": "4711", "SLURM_JOB_PARTITION": "lo", "SLURMD_NODENAME": name,
                       "SLURM_CPUS_ON_NODE": "2", "SLURM_MEM_PER_NODE": "512", "WEIR_JOIN_SECRET": self.secret, **variables}
        return subprocess.Popen(
            [WEIR, "agent", "--allocation", TAG, "--server", self.server.url, "--dir", str(self.folder(name)),
             "--share", f"{self.server.root}:rw"], env=environment, stderr=subprocess.PIPE, text=True)

    def node(self, name):
        return self.server.get(f"/nodes/{TAG}-{name}")

    def nodes(self):
        return self.server.get("/nodes")["items"]

    def job(self, name):
        return next(job for job in self.server.get("/jobs?newest=1")["items"] if job["name"] == name)

    def place(self, name):
        """Where its one task runs; None: nowhere."""
        tasks = self.server.get(f"/jobs/{self.job(name)['id']}/tasks")["items"]
        return tasks[0]["node"] if tasks[0]["state"] == "RUNNING" else None

    def submit(self, name, script, **more):
        self.server.post("/jobs", {"name": name, "kind": "command", "spec": {"argv": ["sh", "-c", script], **more}})

    def processes_of(self, name):
        """All below an agent, as a cluster's step has them, the agent too."""
        word = str(self.folder(name))
        found = set(self.server.pids(word))
        found.add(self.agents[name].pid)
        parents = {}
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit():
                parents[int(entry.name)] = harness.parent_of(int(entry.name))
        while True:
            more = {pid for pid, parent in parents.items() if parent in found} - found
            if not more:
                return found
            found |= more

    def test_one_token_joins_three_and_what_they_run_outlives_one_of_them(self):
        self.agents["n1"] = self.start_agent("n1", CUDA_VISIBLE_DEVICES="2,3", WEIR_ACCELERATOR_MODEL="h200")
        for name in ("n2", "n3"):
            self.agents[name] = self.start_agent(name)
        wait_until(lambda: [node["state"] for node in self.nodes()] == ["ready"] * N_NODES, 20, "three nodes")
        self.check_fourth()
        self.check_share()
        self.check_secret()
        self.check_device()
        self.check_taking_back()

    def check_fourth(self):
        fourth = self.start_agent("n4")
        self.assertIn("it is good for 3", fourth.communicate(timeout=20)[1])
        self.assertNotEqual(fourth.returncode, 0)
        self.assertEqual(len(self.nodes()), N_NODES)

    def check_share(self):
        node = wait_until(lambda: next((n for n in [self.node("n1")] if n.get("devices")), None), 20, "devices of n1")
        self.assertEqual((node["cpu_slots"], node["memory_bytes"], node["n_accelerators"]), (2, 512 << 20, 2))
        self.assertEqual(node["inventory"]["slurm"], {"job_id": "4711", "node": "n1", "partition": "lo"})
        gpus = [(device["id"], device["model"]) for device in node["devices"] if device["kind"] == "gpu"]
        self.assertEqual(gpus, [("2", "h200"), ("3", "h200")])
        self.assertEqual(self.node("n2")["n_accelerators"], 0)

    def check_secret(self):
        """No process has it: neither the agent's environment as others of its user see it, nor an argument."""
        for pid in self.processes_of("n1"):
            for what in ("environ", "cmdline"):
                try:
                    text = pathlib.Path(f"/proc/{pid}/{what}").read_bytes()
                except OSError:
                    continue
                self.assertNotIn(self.secret.encode(), text, f"{what} of {pid}")

    def check_device(self):
        self.submit("look", "echo cuda=$CUDA_VISIBLE_DEVICES; env", resources={"accelerators": 1, "accelerator_model": "h200"})
        wait_until(lambda: self.job("look")["state"] == "SUCCEEDED", 20, "the job that looks")
        text = self.server.weir("logs", self.job("look")["id"])[1]
        self.assertRegex(text, r"cuda=[23]\n")
        self.assertNotIn("WEIR_JOIN_SECRET", text)

    def check_taking_back(self):
        self.submit("long", "trap 'echo saved; exit 1' TERM; while :; do sleep 0.05; done")
        name = wait_until(lambda: self.place("long"), 20, "the long job").removeprefix(f"{TAG}-")
        for pid in self.processes_of(name):
            try:
                os.kill(pid, signal.SIGTERM)
            except ProcessLookupError:
                pass
        said = self.agents[name].communicate(timeout=20)[1]
        self.assertEqual(self.agents[name].returncode, 0, said)
        self.assertEqual(self.server.pids(str(self.folder(name))), [])
        self.assertEqual(self.node(name)["state"], "left")
        other = wait_until(lambda: self.place("long"), 20, "the long job elsewhere")
        self.assertNotEqual(other, f"{TAG}-{name}")
        job = self.job("long")
        self.assertEqual((job["n_restarts"], job["n_evictions"], job["state"]), (0, 1, "RUNNING"))
        events = [event["kind"] for event in self.server.get(f"/events?subject=node/{TAG}-{name}")["items"]]
        self.assertEqual(events.count("node_leaving"), 1)
        alerts = self.server.get("/alerts")["items"]
        self.assertFalse([alert for alert in alerts if alert["subject"] == f"node/{TAG}-{name}"])
        self.server.weir("job", "cancel", job["id"])
        for left in set(self.agents) - {name}:
            self.agents[left].terminate()
            self.assertIn("agent_stopped", self.agents[left].communicate(timeout=20)[1])


if __name__ == "__main__":
    harness.main()

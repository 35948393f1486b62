"""A node with eight declared devices: jobs get what they ask for, are told which, and wait for what lacks. Agent, server,
supervisors and tasks are killed again and again, and no device is had by two tasks at once, and no job is lost."""
import json
import os
import pathlib
import random
import signal
import subprocess
import unittest

import harness
from harness import Server, WEIR, wait_until

KILLS = int(os.environ.get("WEIR_KILLS", "30"))
SEED = int(os.environ.get("WEIR_SEED", "1"))
N_DEVICES = 8
N_JOBS = 10

# Each device that a task was given is locked as long as any process of the task lives.
HOLD = r"""
fd=3
for device in $(echo "$WEIR_DEVICES" | tr , ' '); do
    eval "exec $fd>LOCKS/$device"
    flock -n $fd || echo "$WEIR_TASK has $device, and so has another" >>LOCKS/doubled
    fd=$((fd + 1))
done
echo "devices=$WEIR_DEVICES cuda=[$CUDA_VISIBLE_DEVICES] share=$WEIR_DEVICE_SHARE memory=$WEIR_DEVICE_MEMORY"
"""


class Devices(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.stop)
        self.server.start("--no-agent")
        self.port = self.server.url.rsplit(":", 1)[1]
        self.locks = self.server.root / "locks"
        self.locks.mkdir()
        self.locks.chmod(0o777)
        self.dir = self.server.root / "agent"
        self.dir.mkdir()
        (self.dir / "token").write_text(self.server.post(
            "/tokens", {"name": "a", "role": "agent", "user": "agent", "node": "a"})["secret"])
        self.declare(N_DEVICES)
        self.agent = None
        self.start_agent()
        self.addCleanup(self.stop_agent)
        wait_until(lambda: len(self.devices()) == N_DEVICES, 30, "the devices")

    def declare(self, count):
        text = json.dumps({"devices": [{"model": "X1", "count": count, "memory": "80GiB"}]})
        (self.server.root / "devices.yaml").write_text(text)

    def start_agent(self):
        with open(self.server.root / "agent.log", "ab") as log:
            self.agent = subprocess.Popen(
                [WEIR, "agent", "--server", self.server.url, "--dir", self.dir, "--node", "a", "--cpu-slots", "32",
                 "--devices", self.server.root / "devices.yaml", "--share", f"{self.server.root}:rw"],
                stderr=log, stdout=log, start_new_session=True)

    def stop_agent(self):
        self.agent.kill()
        self.agent.wait()

    def start_server(self):
        self.server.start("--no-agent", "--listen", f"127.0.0.1:{self.port}")

    def devices(self):
        return [device for device in self.server.get("/devices?node=a&limit=1000")["items"]
                if device["kind"] == "declared" and device["state"] == "ok"]

    def submit(self, name, script, resources, **members):
        spec = {"argv": ["sh", "-c", HOLD.replace("LOCKS", str(self.locks)) + script], "resources": resources, **members}
        return self.server.post("/jobs", {"name": name, "kind": "command", "max_restarts": 1000, "spec": spec})["id"]

    def job(self, job):
        return self.server.get(f"/jobs/{job}")

    def tasks(self, job):
        return self.server.get(f"/jobs/{job}/tasks")["items"]

    def await_state(self, job, state, seconds=30):
        return wait_until(lambda: self.job(job)["state"] == state and self.job(job), seconds,
                          f"job {job} {state}: {self.job(job)}")

    def log(self, job):
        return self.server.request("GET", f"/api/v1/tasks/{self.tasks(job)[0]['id']}/log", raw=True).decode()

    def doubled(self):
        path = self.locks / "doubled"
        return path.read_text() if path.exists() else ""

    def test_jobs_get_what_they_ask_for_and_wait_for_what_lacks(self):
        gate = self.server.root / "gate"
        wait = f"until test -e {gate}; do sleep 0.1; done"
        six = self.submit("six", wait, {"accelerators": 6, "accelerator_model": "X1"})
        half = self.submit("half", wait, {"accelerator_share": 0.5})
        memory = self.submit("memory", wait, {"accelerator_memory": "40GiB"})
        for job in (six, half, memory):
            self.await_state(job, "RUNNING")
        three = self.submit("three", "", {"accelerators": 3, "accelerator_model": "X1"})
        wait_until(lambda: "waits for 3 × X1 on one node: 1 free on node a" in (self.job(three)["reason"] or ""), 10,
                   "the reason")
        model = self.submit("model", "", {"accelerators": 1, "accelerator_model": "Y9"})
        wait_until(lambda: "needs 1 × Y9, and no node" in (self.job(model)["reason"] or ""), 10, "the other reason")
        limit = self.submit("limit", "trap 'echo asked; exit 3' TERM; while :; do sleep 0.1; done",
                            {"cpus": 1}, time_limit=3)  # its trap is set by then
        self.assertIn("its time limit of 3 s is over", self.await_state(limit, "FAILED")["reason"])
        self.assertIn("asked", self.log(limit))
        self.assertEqual(len(self.tasks(six)[0]["devices"].split(",")), 6)
        self.assertEqual(sum(device["holders"] == "six/0" for device in self.devices()), 6)
        self.assertEqual(sum(device["used_milli"] for device in self.devices()), 7000)
        self.assertIn("six/0", self.server.weir("get", "devices")[1])
        device = self.log(six).split("devices=")[1].split(",")[0]  # The lock of a device that is had is seen as such.
        oracle = self.submit("oracle", f"exec 9>{self.locks}/{device}; flock -n 9 || echo it is had", {"cpus": 1})
        self.await_state(oracle, "SUCCEEDED")
        self.assertIn("it is had", self.log(oracle))
        gate.touch()
        for job in (six, half, memory, three):
            self.await_state(job, "SUCCEEDED")
        self.assertEqual(len(self.log(six).split("devices=")[1].split()[0].split(",")), 6)
        self.assertIn("cuda=[]", self.log(six))
        self.assertIn("share=0.5 memory=42949672960", self.log(half))
        self.assertIn("devices= cuda=[]", self.log(limit))
        self.assertEqual([device["used_milli"] for device in self.devices()], [0] * N_DEVICES)
        self.server.post(f"/jobs/{model}/cancel")

    def test_a_job_moves_when_its_device_is_gone(self):
        first = self.submit("first", "sleep 1000", {"accelerators": 5})
        second = self.submit("second", "sleep 1000", {"accelerators": 3})
        for job in (first, second):
            self.await_state(job, "RUNNING")
        self.declare(5)
        mover = wait_until(lambda: next((job for job in (first, second) if self.job(job)["state"] == "PENDING"), None), 30,
                           "a job that moves")
        self.assertEqual(self.job(mover)["n_restarts"], 0)
        other = second if mover == first else first
        wait_until(lambda: self.job(mover)["reason"], 20, "why it waits")
        if self.job(other)["state"] == "RUNNING":
            self.server.post(f"/jobs/{other}/cancel")
        self.await_state(mover, "RUNNING")
        self.assertTrue(all(int(idx) < N_DEVICES for idx in self.tasks(mover)[0]["devices"].split(",")))
        events = self.server.weir("get", "events")[1]
        self.assertIn("moves: a device that it had on node a is gone", events)

    def kill_any(self, rng):
        what = rng.choice(["agent", "server", "task", "task", "supervisor"])
        if what == "agent":
            self.stop_agent()
            self.start_agent()
        elif what == "server":
            self.server.kill()
            self.start_server()
        else:
            word = "--supervise" if what == "supervisor" else "LOAD-OF-THE-TEST"
            pids = [pid for pid in self.server.pids(word) if what == "supervisor" or not self.is_supervisor(pid)]
            if pids:
                try:
                    os.kill(rng.choice(pids), signal.SIGKILL)
                except ProcessLookupError:
                    pass
        return what

    @staticmethod
    def is_supervisor(pid):
        try:
            return b"--supervise" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return True

    def test_no_device_is_had_twice_and_no_job_is_lost_whatever_is_killed(self):
        rng = random.Random(SEED)
        print(f"seed {SEED}, {KILLS} kills")
        jobs = [self.submit(f"load-{i}", f": LOAD-OF-THE-TEST; sleep {0.3 + rng.random():.2f}",
                            {"accelerators": rng.randint(1, 4)}) for i in range(N_JOBS)]
        wait_until(lambda: any(self.job(job)["state"] == "RUNNING" for job in jobs), 20, "a job that runs")
        for _ in range(KILLS):
            self.kill_any(rng)
            self.assertEqual(self.doubled(), "")
        for job in jobs:  # What was killed often waits up to a minute before it starts again.
            self.await_state(job, "SUCCEEDED", 30 + KILLS)
        self.assertEqual(self.doubled(), "")
        wait_until(lambda: [device["used_milli"] for device in self.devices()] == [0] * N_DEVICES, 20,
                   "free devices")


if __name__ == "__main__":
    harness.main()

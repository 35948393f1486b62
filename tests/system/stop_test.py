#!/usr/bin/env python3
"""`weir server stop`: whatever was started, and whatever was killed before, nothing is left."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import harness
from harness import WEIR, wait_until


class Stop(unittest.TestCase):
    def setUp(self):
        self.server = harness.Server().start()
        self.addCleanup(self.server.stop)

    def submit(self, script, **spec):
        body = {"name": "t", "kind": "command", "spec": {"argv": ["/bin/sh", "-c", script], **spec}}
        job = self.server.post("/jobs", body)["id"]
        wait_until(lambda: self.server.get(f"/jobs/{job}")["state"] == "RUNNING", 60, "job runs")
        return job

    def runs_as(self, job, attempt):
        now = self.server.get(f"/jobs/{job}")
        return now["state"] == "RUNNING" and now["attempt"] == attempt

    def end(self, *flags, check=True):
        done = subprocess.run([WEIR, "server", "stop", *flags, "--state", str(self.server.state)],
                              capture_output=True, text=True, timeout=120)
        if check:
            self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def reap(self):
        """The server is this test's child."""
        self.server.process.wait(timeout=20)

    def shell_pids(self):
        return self.server.pids("/bin/sh")

    def test_without_tasks_only_the_server_ends(self):
        self.submit("while :; do sleep 0.1; done")
        done = self.end()
        self.reap()
        self.assertIn("server: stopped", done.stdout)
        self.assertEqual(self.server.process.returncode, 0)
        self.assertFalse((self.server.state / "server.json").exists())
        self.assertTrue(self.shell_pids(), "the task goes on")
        self.assertTrue(self.server.pids("agent --dir"), "the agent goes on")
        again = self.end("--tasks")
        self.assertIn("server: not running", again.stdout)
        self.assertEqual(self.server.pids(), [])

    def test_in_the_background_the_command_ends_when_the_server_answers(self):
        state = self.server.root / "background"
        def start():
            return subprocess.run([WEIR, "server", "--background", "--no-agent", "--listen", "127.0.0.1:0", "--state", str(state)],
                                  stdout=subprocess.PIPE, stderr=open(self.server.root / "background.log", "a"), timeout=60)
        self.assertEqual(start().returncode, 0)
        self.addCleanup(subprocess.run, [WEIR, "server", "stop", "--state", str(state)], capture_output=True)
        asked = subprocess.run([WEIR, "get", "nodes", "--state", str(state)], capture_output=True, text=True, timeout=30)
        self.assertEqual(asked.returncode, 0, asked.stderr)
        self.assertEqual(start().returncode, 5, "its state folder is in use")
        self.assertIn("another server uses", (self.server.root / "background.log").read_text())

    def test_with_tasks_nothing_is_left_and_jobs_go_on_at_the_next_start(self):
        job = self.submit("while :; do sleep 0.1; done")
        deaf = self.submit("trap '' TERM; (setsid sleep 1000 &); while :; do sleep 0.1; done", stop_grace_ms=300)
        answer = json.loads(self.end("--tasks", "-o", "json").stdout)
        self.reap()
        self.assertEqual(self.server.pids(), [])
        self.assertEqual((answer["server"], answer["agent"], answer["tasks"]), ("stopped", "stopped", 2))
        self.server.start()
        for each in (job, deaf):
            wait_until(lambda: self.runs_as(each, 2), 60, "it runs again")

    def test_what_was_killed_is_found_by_its_locks(self):
        self.submit("while :; do sleep 0.1; done")
        self.submit("while :; do sleep 0.1; done")
        def find():  # a task is running before it is its program: until then it has its supervisor's command line
            found = self.server.pids("--supervise")
            return found if len(found) == 2 else None
        supervisors = wait_until(find, 60, "two supervisors, and each task its own program")
        self.server.kill()
        for pid in self.server.pids("agent --dir") + supervisors[:1]:
            os.kill(pid, signal.SIGKILL)
        self.assertTrue((self.server.state / "server.json").exists())
        self.assertTrue(self.shell_pids())
        self.end("--tasks")
        self.assertEqual(self.server.pids(), [])
        self.assertFalse((self.server.state / "server.json").exists())

    def test_a_number_in_a_file_is_nobody(self):
        """server.json of a killed server may name the process of somebody else by now."""
        self.server.kill()
        stranger = subprocess.Popen(["sleep", "60"])
        self.addCleanup(stranger.kill)
        about = self.server.state / "server.json"
        about.write_text(json.dumps({**json.loads(about.read_text()), "pid": stranger.pid}))
        self.end("--tasks")
        self.assertIsNone(stranger.poll())

    def test_killed_in_the_middle_it_can_be_done_again(self):
        self.submit("trap '' TERM; while :; do sleep 0.1; done", stop_grace_ms=60000)
        first = subprocess.Popen([WEIR, "server", "stop", "--tasks", "--state", str(self.server.state)],
                                 stdout=subprocess.PIPE, text=True)
        for line in first.stdout:
            if line.startswith("tasks still running"):
                break
        first.kill()
        first.communicate()
        self.end("--tasks", "--timeout", "3")
        self.reap()
        self.assertEqual(self.server.pids(), [])

    def test_an_agent_of_its_own_ends_with_its_tasks(self):
        self.submit("while :; do sleep 0.1; done")
        folder = self.server.state / "agent"
        self.server.kill(signal.SIGTERM)
        done = subprocess.run([WEIR, "agent", "stop", "--dir", folder], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("agent: stopped", done.stdout)
        self.assertIn("tasks: 1 stopped", done.stdout)
        self.assertEqual(self.server.pids(), [])
        done = subprocess.run([WEIR, "agent", "stop", "--dir", self.server.root], capture_output=True, text=True)
        self.assertIn("no folder of an agent", done.stderr)

    def test_a_folder_that_is_none(self):
        done = subprocess.run([WEIR, "server", "stop", "--state", str(self.server.root / "no")],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 4)
        self.assertIn("there is no state folder", done.stderr)
        done = subprocess.run([WEIR, "server", "stop", "--state", str(self.server.root)], capture_output=True, text=True)
        self.assertIn("no weir.db", done.stderr)
        self.assertFalse((self.server.root / "server.lock").exists())


if __name__ == "__main__":
    harness.main()

#!/usr/bin/env python3
"""The state folder is its owner's alone, and the server keeps this machine's agent alive."""
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import harness
from harness import WEIR, wait_until


def open_paths(folder):
    """What group or others may do anything with. Links have no mode of their own; what a job has as its
    /tmp is open within the job, behind a closed folder."""
    found = []
    for path in [folder, *folder.rglob("*")]:
        if path.relative_to(folder).parts[:2] == ("agent", "jobs") and "tmp" in path.parts[len(folder.parts) + 3:]:
            continue
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            continue  # removed meanwhile
        if not stat.S_ISLNK(mode) and mode & 0o077:
            found.append(f"{mode & 0o7777:o} {path}")
    return found


class State(unittest.TestCase):
    def test_everything_that_is_made_is_private(self):
        server = harness.Server()
        self.addCleanup(server.stop)
        before = os.umask(0o000)  # the most generous
        self.addCleanup(os.umask, before)
        server.start()
        script = "echo a >a; mkdir b; echo c >b/c; while :; do sleep 0.1; done"
        job = server.post("/jobs", {"name": "t", "kind": "command", "spec": {"argv": ["/bin/sh", "-c", script]}})["id"]
        wait_until(lambda: server.get(f"/jobs/{job}")["state"] == "RUNNING", 60, "job runs")
        work = wait_until(lambda: list(server.state.glob("agent/tasks/*/work/b/c")), 20, "its files")
        self.assertTrue(work)
        server.weir("dataset", "create", "d")
        photos = server.root / "photos/ada"
        photos.mkdir(parents=True)
        (photos / "1.pgm").write_bytes(b"P5 1 1 255\n\0")
        server.weir("dataset", "put", "d", str(photos.parent))
        server.weir("dataset", "freeze", "d")
        self.assertEqual(open_paths(server.state), [])

    def test_what_was_open_is_closed_with_a_warning_that_counts(self):
        server = harness.Server().start()
        self.addCleanup(server.stop)
        server.kill(signal.SIGTERM)
        os.chmod(server.state, 0o755)
        os.chmod(server.state / "weir.db", 0o644)
        os.chmod(server.state / "admin.token", 0o640)
        os.chmod(server.state / "blobs", 0o755)
        server.start()
        wait_until(lambda: "state_was_open_to_others" in server.log_text(), 20, "the warning")
        self.assertRegex(server.log_text(), r"state_was_open_to_others .*closed=3 ")
        self.assertEqual(open_paths(server.state), [])

    def test_a_folder_that_cannot_be_used_gives_its_true_reason(self):
        if os.geteuid() != 0:
            self.skipTest("needs root, to be another user")
        folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-test-", dir="/var/tmp"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        program = folder / "weir"
        shutil.copy(os.path.realpath(WEIR), program)
        os.chmod(folder, 0o755)
        theirs, own = folder / "theirs", folder / "own"
        theirs.mkdir()
        own.mkdir()
        os.chown(own, 65534, 65534)
        os.chmod(own, 0o500)

        def start(state):
            done = subprocess.run([program, "server", "--state", state, "--listen", "127.0.0.1:0"], user=65534,
                                  group=65534, extra_groups=[], capture_output=True, text=True, timeout=30)
            self.assertNotEqual(done.returncode, 0)
            self.assertNotIn("another server", done.stderr)
            return done.stderr

        self.assertIn("belongs to the user with number 0", start(theirs))
        self.assertIn("Permission denied", start(own))

    def test_an_empty_variable_is_as_none(self):
        with tempfile.TemporaryDirectory() as home:
            done = subprocess.run([WEIR, "get", "nodes"], env={"HOME": home, "WEIR_STATE": ""}, capture_output=True,
                                  text=True, timeout=30)
        self.assertNotIn("runs from :", done.stderr)
        folder = "/var/lib/weir" if os.geteuid() == 0 else f"{home}/.local/share/weir"
        if done.returncode != 0:  # no server of this user
            self.assertIn(folder, done.stderr)

    def test_an_agent_that_died_is_started_again_and_again(self):
        server = harness.Server().start()
        self.addCleanup(server.stop)
        for _ in range(2):
            agent = wait_until(lambda: server.pids("agent --dir"), 20, "an agent")
            wait_until(lambda: server.get("/nodes")["items"], 20, "its node")
            killed_at = time.time()
            os.kill(agent[0], signal.SIGKILL)
            wait_until(lambda: server.pids("agent --dir") and server.pids("agent --dir") != agent, 30, "another agent")
            job = server.post("/jobs", {"name": "t", "kind": "command", "spec": {"argv": ["/bin/true"]}})["id"]
            wait_until(lambda: server.get(f"/jobs/{job}")["state"] == "SUCCEEDED", 60, "a job is done by it")
            self.assertLess(time.time() - killed_at, 60)
        self.assertEqual(server.log_text().count("agent_restarted"), 2)


if __name__ == "__main__":
    harness.main()

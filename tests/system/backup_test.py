#!/usr/bin/env python3
"""`weir backup` and `weir restore`: consistent while the server works, verified, whole or not at all."""
import json
import os
import pathlib
import signal
import sqlite3
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import harness
from harness import WEIR, wait_until


def run(*arguments):
    return subprocess.run([WEIR, *map(str, arguments)], capture_output=True, text=True, timeout=120)


class Backup(unittest.TestCase):
    def setUp(self):
        self.server = harness.Server().start()
        self.addCleanup(self.server.stop)
        self.state = self.server.state
        self.target = self.server.root / "backup"

    def put_photos(self, n, person="ada"):
        folder = self.server.root / "photos" / person
        folder.mkdir(parents=True, exist_ok=True)
        for i in range(n):
            (folder / f"{i}.pgm").write_bytes(b"P5 2 2 255\n" + bytes([i % 256, i // 256, 1, 2]))
        self.server.weir("dataset", "put", "faces", str(folder.parent))

    def make_state(self):
        self.server.weir("dataset", "create", "faces")
        self.put_photos(5)
        self.server.weir("dataset", "freeze", "faces")
        return self.server.post("/jobs", {"name": "t", "kind": "command",
                                          "spec": {"argv": ["/bin/sh", "-c", "echo hello; while :; do sleep 1; done"]}})["id"]

    def backup(self, *more):
        done = run("backup", self.target, "--state", self.state, *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def restored(self, to):
        done = run("restore", self.target, "--state", to)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_a_running_state_comes_back_with_all_it_knew(self):
        job = self.make_state()
        wait_until(lambda: self.server.get(f"/jobs/{job}")["state"] == "RUNNING", 60, "job runs")
        versions = self.server.get("/datasets/faces/versions")["items"]
        self.server.request("PUT", "/api/v1/projects/default/secrets/word", {"value": "open sesame"})
        report = json.loads(self.backup("-o", "json").stdout)
        check = subprocess.run(["sha256sum", "--quiet", "-c", "manifest.sha256"], cwd=self.target)
        self.assertEqual(check.returncode, 0)
        found = [path for path in self.target.rglob("*") if path.is_file() and "state" in path.parts]
        self.assertEqual(report["files"], len([path for path in found if path.is_relative_to(self.target / "state")]))
        for path in [self.target, *self.target.rglob("*")]:
            self.assertEqual(path.stat().st_mode & 0o077, 0, path)
        # The old one goes, as after a lost disk, and the copy takes its place.
        token = (self.state / "admin.token").read_text()
        self.assertEqual(run("server", "stop", "--tasks", "--state", self.state).returncode, 0)
        self.server.process.wait(timeout=20)
        os.rename(self.state, self.server.root / "lost")
        self.restored(self.state)
        self.server.start()
        self.assertEqual((self.state / "admin.token").read_text(), token)
        self.assertEqual(self.server.get("/datasets/faces/versions")["items"], versions)
        for version in versions:
            self.server.request("GET", f"/api/v1/blobs/{version['blob']}", raw=True)
        told = self.server.post("/jobs", {"name": "told", "kind": "command", "spec": {
            "argv": ["sh", "-c", "[ \"$WORD\" = 'open sesame' ]"], "secrets": ["word"]}})["id"]
        wait_until(lambda: self.server.get(f"/jobs/{told}")["state"] == "SUCCEEDED", 60, "its secret is known again")
        wait_until(lambda: self.server.pids("echo hello"), 60, "the job starts again")
        self.assertEqual(self.server.get(f"/jobs/{job}")["state"], "RUNNING")

    def test_every_blob_of_the_database_is_there_while_photos_come_in(self):
        self.server.weir("dataset", "create", "faces")
        is_over = threading.Event()

        def feed():
            n = 0
            while not is_over.is_set():
                n += 1
                self.put_photos(n, f"p{n}")
                self.server.weir("dataset", "freeze", "faces")
                has_one.set()

        has_one = threading.Event()
        feeder = threading.Thread(target=feed)
        feeder.start()
        try:
            self.assertTrue(has_one.wait(60), "a first version")
            for i in range(3):
                self.target = self.server.root / f"backup-{i}"
                self.backup()
        finally:
            is_over.set()
            feeder.join()
        n_manifests = 0
        for i in range(3):
            copy = self.server.root / f"backup-{i}/state"
            database = sqlite3.connect(copy / "weir.db")
            self.assertEqual(database.execute("PRAGMA integrity_check").fetchone(), ("ok",))
            for (manifest,) in database.execute("SELECT blob FROM dataset_versions"):
                n_manifests += 1
                listed = json.loads((copy / "blobs" / manifest[:2] / manifest).read_text())
                for entry in listed["files"]:
                    blob = copy / "blobs" / entry["sha256"][:2] / entry["sha256"]
                    self.assertEqual(blob.stat().st_size, entry["bytes"])
            database.close()
        self.assertGreater(n_manifests, 0)

    def test_killed_in_the_middle_there_is_no_backup_and_the_next_is_whole(self):
        self.make_state()
        with open(self.state / "large", "wb") as file:
            file.truncate(300 << 20)  # so that it takes a while
        partial = pathlib.Path(str(self.target) + ".partial")
        first = subprocess.Popen([WEIR, "backup", self.target, "--state", self.state])
        wait_until(lambda: (partial / "state").exists(), 20, "it has begun")
        second = run("backup", self.target, "--state", self.state)
        self.assertIn("at work", second.stderr)
        first.kill()
        first.wait()
        self.assertFalse(self.target.exists())
        os.truncate(self.state / "large", 1)
        self.backup()
        self.assertFalse(partial.exists())
        self.assertFalse((self.target / "weir-partial").exists())
        again = run("backup", self.target, "--state", self.state)
        self.assertIn("exists already", again.stderr)

    def test_a_restore_that_was_killed_leaves_no_state_folder(self):
        self.make_state()
        with open(self.state / "large", "wb") as file:
            file.truncate(200 << 20)
        self.backup()
        to = self.server.root / "new"
        first = subprocess.Popen([WEIR, "restore", self.target, "--state", to])
        wait_until(lambda: pathlib.Path(f"{to}.partial").exists(), 20, "it has begun")
        first.kill()
        first.wait()
        self.assertFalse(to.exists())
        self.restored(to)
        self.assertTrue((to / "weir.db").exists())
        self.assertFalse(pathlib.Path(f"{to}.partial").exists())

    def test_what_is_damaged_or_missing_is_named_and_nothing_is_made(self):
        self.make_state()
        self.backup()
        to = self.server.root / "new"
        blob = next(path for path in (self.target / "state/blobs").glob("*/*") if path.is_file())
        content = blob.read_bytes()
        os.chmod(blob, 0o600)
        for damage, message in ((content[:-1] + b"?", "differs"), (None, "missing")):
            blob.unlink()
            if damage is not None:
                blob.write_bytes(damage)
            done = run("restore", self.target, "--state", to)
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn(blob.name, done.stderr)
            self.assertIn(message, done.stderr)
            self.assertFalse(to.exists())
        blob.write_bytes(content)
        manifest = self.target / "manifest.sha256"
        lines = manifest.read_text()
        manifest.write_text("".join(lines.splitlines(keepends=True)[1:]))
        self.assertIn("not the list", run("restore", self.target, "--state", to).stderr)
        manifest.write_text(lines)
        self.assertIn("is not empty", run("restore", self.target, "--state", self.state).stderr)
        self.assertIn("is no backup", run("restore", self.server.root, "--state", to).stderr)
        self.assertIn("lies in the state folder", run("backup", self.state / "b", "--state", self.state).stderr)
        self.assertFalse((self.state / "b.partial").exists())
        self.restored(to)

    def test_a_stopped_state_can_be_copied_too(self):
        self.make_state()
        self.server.kill(signal.SIGTERM)
        self.backup()
        to = self.server.root / "new"
        self.assertIn("Restore to the same path", self.restored(to).stdout)


if __name__ == "__main__":
    harness.main()

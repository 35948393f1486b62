#!/usr/bin/env python3
"""Is a server on a broken disk ever green?

The law: after a random fault (pages of the database overwritten, files of blobs cut, changed or removed; a disk that has become read-only,
fails, is full or has no inode left) either all that people do works, with what was there before, or `/health`, the summary, the alerts and
`weir doctor` say that the server is down; or it does not start and says what to do. WEIR_FAULTS: how many damaged databases (2); with
more than these, disks fail in every way, else in one. WEIR_SEED: which.
"""
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import time
import unittest

import shims
from harness import HttpError, Server, small_model, wait_until
from shims import DISK_FAULTS

N = int(os.environ.get("WEIR_FAULTS", "2"))
SEED = int(os.environ.get("WEIR_SEED", random.randrange(1 << 31)))

LISTS = ["/jobs", "/models", "/models/net/versions", "/datasets", "/experiments", "/users", "/tokens", "/projects", "/nodes", "/events",
         "/alerts?state=resolved", "/runs", "/ions", "/deployments", "/queues"]


class BrokenDisk(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--log-level", "debug")
        cls.addClassCleanup(cls.server.stop)
        cls.fault = cls.server.root / "fault"
        saved = dict(os.environ)
        cls.addClassCleanup(lambda: (os.environ.clear(), os.environ.update(saved)))
        cls.shimmed = shims.environment([shims.build(cls.server.root, "disk", shims.DISK)], DISK_FAULT=cls.fault,
                                        DISK_STATE=cls.server.state)
        cls.server.start()
        cls.model = small_model()
        cls.blob = hashlib.sha256(cls.model).hexdigest()
        path = cls.server.root / "net.onnx"
        path.write_bytes(cls.model)
        cls.server.weir("dataset", "create", "faces")
        cls.server.weir("model", "push", "net", str(path))
        for i in range(40):  # more than a page of several tables
            cls.server.post("/experiments", {"name": f"e{i}"})
        cls.run_job()
        cls.end()
        cls.base = cls.server.root / "base"
        shutil.copytree(cls.server.state, cls.base, ignore=lambda folder, names: [
            name for name in names if not (os.path.isfile(f"{folder}/{name}") or os.path.isdir(f"{folder}/{name}"))])  # no sockets

    @classmethod
    def run_job(cls):
        job = cls.server.post("/jobs", {"name": "t", "kind": "command", "spec": {"argv": ["/bin/true"]}})["id"]
        wait_until(lambda: cls.server.get(f"/jobs/{job}")["state"] == "SUCCEEDED", 8, "the job has ended")

    @classmethod
    def end(cls):
        if cls.server.process.poll() is None:
            cls.server.kill(signal.SIGTERM)
        for pid in cls.server.pids(str(cls.server.state)):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def start_again(self, **environment):
        (self.server.root / "server.log").unlink(missing_ok=True)
        saved = dict(os.environ)
        os.environ.update(environment)
        try:
            self.server.start()
        finally:
            if self.server.process.poll() is not None:
                self.server.log.close()
            os.environ.clear()
            os.environ.update(saved)

    def fresh(self, damage=None, **environment):
        """The server anew, on the state of before as `damage` leaves it; False: it does not start, and says what to do."""
        self.end()
        shutil.rmtree(self.server.state)
        shutil.copytree(self.base, self.server.state)
        if damage is not None:
            damage(self.server.state)
        try:
            self.start_again(**environment)
        except AssertionError as error:
            self.assertRegex(str(error), "restore")
            return False
        return True

    def lists(self):
        def ids(path):
            items = self.server.get(path + ("&" if "?" in path else "?") + "limit=1000")["items"]
            return {str(item.get("id", item.get("name", item.get("seq", item.get("version"))))) for item in items}
        return {path: ids(path) for path in LISTS}

    def wrong(self, with_job=True):
        """The first thing that does not work, or is not as before."""
        try:
            now = self.lists()
            for path, ids in self.whole.items():
                if not ids <= now[path]:
                    return f"{path}: {sorted(ids - now[path])[:3]} are gone"
            if hashlib.sha256(self.server.request("GET", f"/api/v1/blobs/{self.blob}", raw=True)).hexdigest() != self.blob:
                return "other bytes of the model"
            name = f"p{random.randrange(1 << 40)}"
            self.server.request("PUT", "/api/v1/blobs/" + hashlib.sha256(name.encode()).hexdigest(), name.encode())
            self.server.post("/experiments", {"name": name})
            if with_job:
                self.run_job()
        except (HttpError, AssertionError) as error:
            return str(error)
        return None

    def green(self):
        """Who of those that are asked says that all is well."""
        said = []
        try:
            self.server.request("GET", "/health", token="")
            said.append("/health")
        except HttpError as error:
            self.assertEqual(error.code, 503)
            self.assertIn(json.loads(error.body)["status"], "down")
        for path, is_green in (("/health/summary", lambda answer: answer["status"] != "down"),
                               ("/alerts", lambda answer: not any(alert["subject"] == "server/state" and alert["severity"] == "critical"
                                                                  and alert["state"] == "open" for alert in answer["items"]))):
            try:
                said += [path] if is_green(self.server.get(path)) else []
            except HttpError as error:
                self.assertGreaterEqual(error.code, 500)
        return said

    def is_not_green(self, what, problem):
        """What does not work is told, by all who are asked."""
        try:
            wait_until(lambda: not self.green(), 25, "everybody to say it")
        except AssertionError:
            self.fail(f"seed {SEED}: {what}: {problem}; and this is green: {self.green()}")
        code, out, _ = self.server.weir("doctor", check=False)
        self.assertNotEqual(code, 0, f"seed {SEED}: {what}: {problem}; doctor: {out}")
        self.assertNotRegex(str(problem), r"SELECT|COMMIT|HTTP 4(03|22)")

    def law(self, what):
        wait_until(lambda: "store_checked" in self.log() or "store_is_damaged" in self.log(), 20, "the check")
        problem = self.wrong()
        if problem is not None:
            self.is_not_green(what, problem)
        return problem

    def log(self):
        return (self.server.root / "server.log").read_text(errors="replace")

    def test_no_fault_is_hidden(self):
        chance = random.Random(SEED)
        print(f"seed {SEED}", flush=True)
        self.assertTrue(self.fresh())
        type(self).whole = self.lists()
        self.assertIsNone(self.law("nothing"))
        self.assertEqual(self.green(), ["/health", "/health/summary", "/alerts"])
        seen = {"not started": 0, "works": 0, "told": 0}
        for i in range(N):
            page_bytes, n_pages = 4096, (self.base / "weir.db").stat().st_size // 4096
            pages = [chance.randrange(1, n_pages) for _ in range(chance.choice((1, 1, 1, 2, 8)))]

            def overwrite(state):
                with open(state / "weir.db", "r+b") as file:
                    for page in pages:
                        file.seek(page * page_bytes)
                        file.write(chance.randbytes(page_bytes))
            what = f"fault {i}: pages {pages} of {n_pages}"
            if not self.fresh(overwrite):
                seen["not started"] += 1
                continue
            seen["works" if self.law(what) is None else "told"] += 1
        print(seen, flush=True)

    def test_a_disk_that_fails_is_told_and_forgotten_when_it_works_again(self):
        self.fault.write_text("0")
        self.assertTrue(self.fresh(**self.shimmed))
        type(self).whole = self.lists()
        chance = random.Random(SEED)
        for name in DISK_FAULTS if N > 2 else chance.sample(sorted(DISK_FAULTS), 1):
            with self.subTest(f"{name}, seed {SEED}"):
                self.fault.write_text(DISK_FAULTS[name])
                problem = wait_until(lambda: self.wrong(with_job=False), 20, "something that does not work")
                self.is_not_green(name, problem)
                self.fault.write_text("0")
                wait_until(lambda: len(self.green()) == 3, 30, "all to be well again")
                self.assertIsNone(self.wrong(with_job=False))
        wait_until(lambda: self.wrong() is None, 60, "a job to run again")
        self.server.post("/experiments", {"name": "acknowledged"})
        self.server.kill(signal.SIGKILL)  # the log is not folded into the database
        os.truncate(self.server.state / "weir.db-wal", 0)
        self.fault.write_text("28 new")
        with self.assertRaisesRegex(AssertionError, "df -i"):
            self.start_again(**self.shimmed)
        self.start_again()
        self.assertIn("has lost what was stored last", self.log())
        wait_until(lambda: not self.green(), 10, "everybody to say that what was stored is gone")

    def test_a_blob_with_other_bytes_is_told_and_mended(self):
        self.assertTrue(self.fresh())
        good, chance, folder = self.server.root / "good", random.Random(SEED), self.server.state / "blobs"
        self.assertEqual(self.server.weir("backup", str(good))[0], 0)
        path = folder / self.blob[:2] / self.blob

        def cut():
            os.truncate(path, chance.randrange(len(self.model)))

        def flip():
            i = chance.randrange(len(self.model))
            with open(path, "r+b") as file:
                file.seek(i)
                file.write(bytes([self.model[i] ^ 1 << chance.randrange(8)]))

        def mend_by_put():
            self.server.request("PUT", "/api/v1/blobs/" + self.blob, self.model)

        def mend_by_push():
            self.server.weir("model", "push", "net", str(self.server.root / "net.onnx"))

        def mend_by_backup():
            code, out, _ = self.server.weir("store", "verify", "--mend", "--from", str(good))
            self.assertRegex(out, f"{self.blob}  mended: version . of model net")
        for i, break_it in enumerate((cut, flip, path.unlink)):
            for mend in (mend_by_put, mend_by_push, mend_by_backup):
                with self.subTest(f"{break_it.__name__}, {mend.__name__}, seed {SEED}"):
                    break_it()
                    with self.assertRaises(HttpError) as refused:
                        self.server.request("GET", "/api/v1/blobs/" + self.blob, raw=True)
                    self.assertEqual(refused.exception.code, 404 if break_it == path.unlink else 500)
                    for words in (["store", "verify"], ["backup", str(self.server.root / f"b{i}{mend.__name__}")]):
                        code, out, err = self.server.weir(*words, check=False)
                        self.assertEqual(code, 3, err)
                        self.assertRegex(out, f"{self.blob}  (damaged|missing): version . of model net")
                    mend()
                    self.assertEqual(self.server.request("GET", "/api/v1/blobs/" + self.blob, raw=True), self.model)
                    self.assertEqual(self.server.weir("store", "verify")[0], 0)
        flip()
        state = self.server.root / "restored"
        self.server.weir("backup", str(self.server.root / "bad"), check=False)
        done = subprocess.run([self.server.program[0], "restore", str(self.server.root / "bad"), "--state", str(state)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn(f"{self.blob}  damaged", done.stdout)
        self.assertIn("moved to blobs/damaged", self.server.weir("store", "verify", "--mend", check=False)[1])
        self.assertFalse(path.exists())


if __name__ == "__main__":
    import harness
    harness.main()

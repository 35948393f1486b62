#!/usr/bin/env python3
"""The audit's chain against Python's hashlib, over a real server's database, whole, altered and in a backup."""
import hashlib
import json
import pathlib
import sqlite3
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import harness
from harness import WEIR

FIELDS = "chain", "seq", "time_ms", "topic", "kind", "subject", "actor", "message", "data"
ACCESSES = {"token_used", "login_link_made", "session_begun", "session_ended", "login_refused", "access_refused"}


def run(*arguments):
    return subprocess.run([WEIR, *map(str, arguments)], capture_output=True, text=True, timeout=60)


def digest(before, row):
    """As docs/security.md says it."""
    text = before + "\n"
    for field in FIELDS:
        value = row[field]
        text += f"{field}=-\n" if value is None else f"{field}={len(str(value).encode())}:{value}\n"
    return hashlib.sha256(text.encode()).hexdigest()


class Audit(unittest.TestCase):
    def setUp(self):
        self.server = harness.Server().start()
        self.addCleanup(self.server.stop)
        self.database = pathlib.Path(self.server.state) / "weir.db"

    def act(self):
        self.server.post("/projects", {"name": "vision", "description": "Tür und Tor"})
        self.server.post("/datasets", {"name": "faces", "project": "vision"})
        self.server.weir("user", "create", "bob", "--role", "viewer")
        with self.assertRaises(harness.HttpError):
            self.server.request("GET", "/api/v1/datasets", token="wrong")
        self.server.request("PUT", "/api/v1/queues/vision", {})

    def rows(self):
        with sqlite3.connect(self.database) as database:
            database.row_factory = sqlite3.Row
            rows = database.execute("SELECT * FROM events WHERE topic = 'audit' ORDER BY seq").fetchall()
        database.close()
        return rows

    def change(self, sql):
        database = sqlite3.connect(self.database, timeout=20)
        database.execute(sql)
        database.commit()
        database.close()

    def verify(self, *words):
        done = run("audit", "verify", *words, "-o", "json")
        return done.returncode, json.loads(done.stdout)

    def test_the_chain_is_the_one_that_hashlib_makes(self):
        self.act()
        ends = {False: "0" * 64, True: "0" * 64}
        numbers = {False: 0, True: 0}
        made = {False: {}, True: {}}
        code, answer = self.verify("--state", self.server.state)
        self.assertEqual((code, answer["is_whole"]), (0, True))
        for row in self.rows():
            is_access = row["kind"] in ACCESSES
            numbers[is_access] += 1
            self.assertEqual(row["chain"], numbers[is_access])
            ends[is_access] = digest(ends[is_access], row)
            self.assertEqual(row["hash"], ends[is_access], dict(row))
            made[is_access][row["chain"]] = row["hash"]
        self.assertGreaterEqual(numbers[False], 4)
        self.assertGreaterEqual(numbers[True], 2)
        for chain, is_access in zip(answer["chains"], (False, True)):
            self.assertEqual(chain["hash"], made[is_access][chain["number"]])
        listed = self.server.get("/audit?kind=queues_change")["items"]
        self.assertEqual([(row["actor"], row["subject"]) for row in listed], [("admin", "queue/vision")])
        export = self.server.root / "audit.jsonl"
        self.server.weir("audit", "export", str(export))
        self.assertGreaterEqual(len(export.read_text().splitlines()), sum(numbers.values()))

    def test_one_altered_row_is_found_by_the_server_without_it_and_in_a_backup(self):
        self.act()
        backup = self.server.root / "backup"
        self.assertEqual(run("backup", backup, "--state", self.server.state).returncode, 0)
        self.assertEqual(self.verify(backup)[0], 0)
        noted = self.verify(self.server.state)[1]["chains"][0]
        self.change("UPDATE events SET actor = 'bob' WHERE kind = 'datasets_change'")
        altered = [row["seq"] for row in self.rows() if row["kind"] == "datasets_change"]
        for words in ([self.server.state], ["--state", self.server.state]):
            code, answer = self.verify(*words)
            self.assertEqual(code, 3)
            finding = answer["chains"][0]["finding"]
            self.assertEqual((finding["what"], finding["seq"]), ("altered", altered[0]))
        self.assertEqual(self.verify(backup)[0], 0)
        pin = f"{noted['number']}:{noted['hash']}"
        self.assertEqual(self.verify(backup, "--acts", pin)[0], 0)
        self.assertEqual(self.verify(backup, "--acts", pin[:-1] + ("0" if pin[-1] != "0" else "1"))[0], 3)

    def test_a_killed_server_goes_on_with_the_chain(self):
        self.act()
        self.server.kill()
        self.server.start()
        self.server.post("/projects", {"name": "sound"})
        code, answer = self.verify("--state", self.server.state)
        self.assertEqual((code, answer["is_whole"]), (0, True), answer)


if __name__ == "__main__":
    harness.main()

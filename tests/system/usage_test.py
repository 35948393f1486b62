"""The account of what jobs had, over kills of the server: what the command and the route say is compared with when the attempt
began and ended. /metrics is checked by promtool, where there is one (Debian's package prometheus has it)."""
import csv
import io
import json
import os
import shutil
import subprocess
import unittest

import harness
from harness import Server, wait_until

PROMTOOL = os.environ.get("WEIR_PROMTOOL") or shutil.which("promtool")
ENDED = ("SUCCEEDED", "FAILED", "CANCELLED")
BEAT_S = 5


class Usage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server().start()
        cls.addClassCleanup(cls.server.stop)
        wait_until(lambda: cls.server.get("/nodes")["items"], 30, "the node")
        cls.server.post("/projects", {"name": "vision"})
        cls.server.request("PUT", "/api/v1/queues/vision", {"project": "vision", "shares": {"cpus": {"guarantee": 1}}})

    def job(self, seconds):
        return self.server.post("/jobs", {"name": "sleeper", "kind": "command", "project": "vision", "max_restarts": 0,
                                          "spec": {"argv": ["sleep", str(seconds)]}})["id"]

    def seconds(self, job):
        """(what its attempt had by its task's own times, what the account has)"""
        task = self.server.get(f"/jobs/{job}/tasks")["items"][0]
        rows = self.server.get(f"/usage?by=job&job={job}")["items"]
        begun, ended = (subprocess.run(["date", "-d", task[name], "+%s.%N"], capture_output=True, text=True, check=True).stdout
                        for name in ("started_ms", "finished_ms"))
        return (float(ended) - float(begun)) * task["cpu_slots"], sum(row["given_cpu_s"] for row in rows)

    def test_1_an_attempt_is_counted_as_long_as_it_was_and_kills_change_nothing(self):
        job = self.job(9)
        wait_until(lambda: self.server.get(f"/jobs/{job}")["state"] == "RUNNING", 30, "the job to run")
        for _ in range(3):
            self.server.kill()
            self.server.start()
        wait_until(lambda: self.server.get(f"/jobs/{job}")["state"] in ENDED, 60, "its end")
        had, counted = self.seconds(job)
        self.assertGreater(had, 8)
        self.assertAlmostEqual(counted, had, delta=0.01)

    def test_2_one_that_runs_is_behind_by_a_heartbeat_at_most(self):
        job = self.job(1000)
        self.addCleanup(self.server.post, f"/jobs/{job}/cancel")
        given = lambda: sum(row["given_cpu_s"] for row in self.server.get(f"/usage?by=job&job={job}")["items"])
        first = wait_until(given, 30, "the first heartbeat")
        wait_until(lambda: given() > first, 3 * BEAT_S, "the next one")

    def test_3_the_command_tells_it_as_a_table_as_csv_and_as_json(self):
        table = self.server.weir("usage", "--by", "user", "--project", "vision")[1]
        self.assertIn("Hours of devices", table)
        self.assertIn("in all", table)
        rows = list(csv.DictReader(io.StringIO(self.server.weir("usage", "--by", "project", "--csv")[1])))
        answer = json.loads(self.server.weir("usage", "--by", "project", "-o", "json")[1])
        of = {row["project"]: float(row["asked_cpu_s"]) for row in rows}
        self.assertGreater(of["vision"], 8)
        self.assertAlmostEqual(of["vision"], next(item["asked_cpu_s"] for item in answer["items"] if item["key"] == "vision"), delta=20)
        self.assertIsNot(answer["total"]["given_device_s"], None)
        for wrong in (["--month", "2026-13"], ["--month", "May"], ["--by", "colour"], ["--month", "2026-11", "--from", "2026-11-01"]):
            self.assertNotEqual(self.server.weir("usage", *wrong, check=False)[0], 0, wrong)
        self.assertEqual(self.server.weir("usage", "--month", "1999-02", check=False)[0], 0)

    def test_4_queues_have_a_history(self):
        def of_vision():
            items = self.server.get("/usage/queues?project=vision&step_s=300")["items"]
            return items and items[-1]
        point = wait_until(of_vision, 60, "a sample")
        self.assertEqual(point["guarantee"]["cpus"], 1)
        self.assertEqual(point["queue"], "vision")

    def test_5_the_metrics_are_what_prometheus_reads(self):
        text = self.server.request("GET", "/metrics", raw=True)
        self.assertIn(b'weir_usage_cpu_seconds_total{project="vision"', text)
        self.assertIn(b'weir_queue_guarantee{queue="vision",project="vision",resource="cpus"} 1', text)
        if PROMTOOL is None:
            self.skipTest("no promtool here")
        checked = subprocess.run([PROMTOOL, "check", "metrics"], input=text, capture_output=True, check=False)
        self.assertEqual((checked.returncode, checked.stdout + checked.stderr), (0, b""))


if __name__ == "__main__":
    harness.main()

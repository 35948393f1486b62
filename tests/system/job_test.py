"""Jobs on a real agent: they run once, log, restart, stop, and survive the server's and the agent's end."""
import json
import os
import signal
import unittest

import harness
from harness import Server, wait_until


class Jobs(unittest.TestCase):
    def setUp(self):
        self.server = Server().start()
        wait_until(lambda: self.server.get("/nodes")["items"], 20, "the agent to register")

    def tearDown(self):
        self.server.stop()

    def submit(self, script, **spec):
        spec["argv"] = ["sh", "-c", script]
        restarts = spec.pop("max_restarts", 0)
        return self.server.post("/jobs", {"name": "t", "kind": "command", "max_restarts": restarts, "spec": spec})["id"]

    def job(self, job):
        return self.server.get("/jobs/" + job)

    def wait_state(self, job, *states, seconds=30):
        return wait_until(lambda: (lambda j: j if j["state"] in states else None)(self.job(job)), seconds,
                          f"{job} in {states}, is {self.job(job)}")

    def log(self, job):
        task = self.server.get(f"/jobs/{job}/tasks")["items"][0]["id"]
        return self.server.request("GET", f"/api/v1/tasks/{task}/log", raw=True).decode()

    def log_tail(self, job, n):
        task = self.server.get(f"/jobs/{job}/tasks")["items"][0]["id"]
        return self.server.request("GET", f"/api/v1/tasks/{task}/log?tail={n}", raw=True).decode()

    def test_a_job_runs_once_and_its_log_arrives(self):
        job = self.submit("echo hello from $WEIR_RANK; echo again >&2")
        self.wait_state(job, "SUCCEEDED")
        wait_until(lambda: "again" in self.log(job), 10, "the log")
        self.assertEqual(self.log(job).count("hello from 0"), 1)
        status, out, _ = self.server.weir("logs", job)
        self.assertIn("hello from 0", out)
        self.assertEqual(self.server.weir("logs", "-g", "^HELLO.*[0-9]$", "-i", job)[1], "hello from 0\n")
        self.assertEqual(self.server.weir("logs", "--grep", "nothing", job)[1], "")
        stamped = self.server.weir("logs", "--timestamps", job)[1].splitlines()
        first, second = [line.split(" ", 1) for line in stamped]
        self.assertEqual((first[1], second[1]), ("hello from 0", "again"))
        self.assertEqual(self.server.weir("logs", "--since", first[0], job)[1], "hello from 0\nagain\n")
        self.assertEqual(self.server.weir("logs", "--since", "1h", "--tail", "1", "-t", "-g", "^again$", job)[1], stamped[1] + "\n")
        self.assertEqual(self.server.weir("logs", "--since", "2999-01-01T00:00:00Z", job)[1], "")
        self.assertEqual(self.server.weir("logs", "--grep", "(", job, check=False)[0], 2)

    def test_the_last_lines_of_a_log_can_be_had_alone(self):
        job = self.submit("i=1; while [ $i -le 30000 ]; do echo line $i of a log that is longer than a mebibyte; "
                          "i=$((i+1)); done; printf end")
        self.wait_state(job, "SUCCEEDED")
        wait_until(lambda: self.log_tail(job, 1) == "end", 20, "the whole log")
        line = "line {} of a log that is longer than a mebibyte\n".format
        self.assertEqual(self.log_tail(job, 3), line(29999) + line(30000) + "end")
        self.assertEqual(self.log_tail(job, 0), "")
        most = self.log_tail(job, 100000)
        self.assertTrue(most.startswith("line "), most[:80])
        self.assertTrue(1000000 < len(most) <= 1 << 20, len(most))
        self.assertTrue((30000 * len(line(30000)) - len(most)) > 100000, "the log is longer than what is given")
        self.assertEqual(self.server.weir("logs", "--tail", "2", job)[1], line(30000) + "end")
        short = self.submit("echo one; echo two")
        self.wait_state(short, "SUCCEEDED")
        wait_until(lambda: "two" in self.log(short), 10, "the log")
        self.assertEqual(self.log_tail(short, 1), "two\n")
        self.assertEqual(self.log_tail(short, 9), "one\ntwo\n")
        self.assertEqual(self.server.weir("logs", "-n", "0", short)[1], "")

    def test_a_failing_gang_restarts_and_then_fails_with_a_reason(self):
        marks = self.server.root / "marks"
        job = self.submit(f"echo attempt $WEIR_ATTEMPT says something long; echo $WEIR_ATTEMPT >> {marks}; exit 3",
                          max_restarts=1)
        failed = self.wait_state(job, "FAILED", seconds=60)
        self.assertIn("3", failed["reason"])
        self.assertEqual(marks.read_text().split(), ["1", "2"])
        wait_until(lambda: "attempt 2 says something long" in self.log(job), 10, "the second attempt's own log")
        self.assertTrue(any(a["kind"] == "job_failed" for a in self.server.get("/alerts")["items"]))

        def kinds(query):
            return [e["kind"] for e in self.server.get("/events?after=0&" + query)["items"]]
        self.assertEqual(kinds("severity=error"), ["job_failed"])
        self.assertEqual(kinds("severity=warning&subject=job/" + job), ["job_restarting"])
        self.assertEqual(kinds("kind=job_submitted"), ["job_submitted"])

    def test_a_task_outlives_server_and_agent_and_is_found_again(self):
        gate, marks = self.server.root / "gate", self.server.root / "marks"
        os.mkfifo(gate)
        job = self.submit(f"echo begun >> {marks}; read word < {gate}; echo $word >> {marks}; exit 0")
        self.wait_state(job, "RUNNING")
        wait_until(marks.exists, 20, "the task to begin")
        for pid in self.server.pids("weir agent --dir"):
            os.kill(pid, signal.SIGKILL)
        self.server.kill()
        with open(gate, "w") as pipe:
            pipe.write("free\n")
        wait_until(lambda: "free" in marks.read_text(), 10, "the task to end while nobody watches")
        self.server.start()
        self.wait_state(job, "SUCCEEDED", seconds=60)
        self.assertEqual(marks.read_text().split(), ["begun", "free"])
        self.assertEqual(self.server.get(f"/jobs/{job}/tasks")["items"][0]["attempt"], 1)

    def test_cancel_stops_a_task_with_its_children(self):
        job = self.submit("sleep 1000 & sleep 1000")
        self.wait_state(job, "RUNNING")
        children = wait_until(lambda: [p for p in self.server.pids("sleep 1000")][1:], 20, "the children")
        self.assertTrue(children)
        self.server.post(f"/jobs/{job}/cancel")
        self.wait_state(job, "CANCELLED", seconds=30)
        wait_until(lambda: not self.server.pids("sleep 1000"), 10, "no child left")

    def test_a_gang_that_does_not_fit_waits_whole_with_a_reason(self):
        slots = self.server.get("/nodes")["items"][0]["cpu_slots"]
        big = self.submit("true", tasks=slots + 1)
        reason = wait_until(lambda: self.job(big)["reason"], 10, "a reason")
        self.assertIn("CPU", reason)
        self.assertTrue(all(t["node"] is None for t in self.server.get(f"/jobs/{big}/tasks")["items"]))
        small = self.submit("true")
        self.wait_state(small, "SUCCEEDED")


if __name__ == "__main__":
    harness.main()

"""What fails again and again is told once and ends with a success; what a person ends is no failure."""
import hashlib
import unittest
import uuid

import harness
from harness import Server, small_model, wait_until

DOOR = {"kind": "ion", "name": "door",
        "pipelines": [{"name": "learn", "type": "training", "dataset": "staff", "model": "face-embed",
                       "triggers": {"new_data": False}},
                      {"name": "see", "type": "prediction", "source": {"kind": "http"}, "gallery": {"dataset": "staff"}}],
        "links": [{"from": "learn", "to": "see", "policy": "always-update"}]}


class Case(unittest.TestCase):
    def alerts(self, state="open"):
        return {alert["kind"]: alert for alert in self.server.get("/alerts?state=" + state)["items"]}

    def job(self, **what):
        """The one job that is not over."""
        def found():
            jobs = [job for job in self.server.get("/jobs")["items"]
                    if job["state"] in ("PENDING", "STARTING", "RUNNING")
                    and all(job[key] == value for key, value in what.items())]
            return jobs[0] if jobs else None
        return wait_until(found, 20, f"a job with {what}")


class Commands(Case):
    @classmethod
    def setUpClass(cls):
        cls.server = Server().start()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def run_job(self, *argv):
        job = self.server.post("/jobs", {"name": "nightly", "kind": "command", "max_restarts": 0,
                                         "spec": {"argv": list(argv)}})["id"]
        wait_until(lambda: self.server.get("/jobs/" + job)["state"] in ("FAILED", "SUCCEEDED"), 60, "the job's end")
        return job

    def test_the_third_failure_in_a_row_is_told_until_one_succeeds(self):
        self.run_job("false")
        self.run_job("false")
        self.assertEqual(list(self.alerts()), ["job_failed"])
        last = self.run_job("sh", "-c", "echo no such disk; exit 1")
        told = wait_until(lambda: self.alerts().get("job_failing"), 20, "the alert")
        self.assertEqual((told["severity"], told["subject"]), ("critical", "job/" + last))
        self.assertIn("3 times in a row", told["message"])
        self.assertIn("no such disk", told["message"])
        self.assertIn("failed 3 times", self.server.weir("get", "alerts")[1])
        self.run_job("true")
        wait_until(lambda: self.alerts() == {}, 20, "the end of both alerts")
        self.assertIn("job_failing", self.alerts("resolved"))

    def run_words(self, *words):
        done = harness.subprocess.run([harness.WEIR, "job", "run", "--state", str(self.server.state), *words],
                                      capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout, done.stderr

    def test_what_cannot_be_run_is_refused_or_ends_at_once(self):
        here = self.server.root / "here"
        here.mkdir()
        (here / "go").write_text("#!/bin/sh\necho went\n")
        status, _, err = self.run_words("--dir", str(here), "--", "./go")
        self.assertEqual(status, 2, err)
        self.assertIn("chmod +x", err)
        status, _, err = self.run_words("--dir", str(here), "--", "./gone")
        self.assertEqual(status, 2, err)
        self.assertIn("did you mean ./go?", err)
        status, _, err = self.run_words("--dir", str(here), "--", "./elsewhere.sh")
        self.assertEqual(status, 2, err)
        self.assertIn("there is no ./elsewhere.sh", err)
        (here / "go").chmod(0o755)
        self.assertIn("went", self.run_words("-f", "--dir", str(here), "--", "./go")[1])
        locked = here / "locked"
        locked.write_text("#!/bin/sh\n")
        locked.chmod(0o644)
        for argv, code, words, warning in (
                ([str(locked)], 126, "Permission denied (exit 126: it may not be run)", "chmod +x"),
                (["weir-no-such"], 127, "No such file or directory (exit 127: there is no such program)", ""),
                (["sh", "-c", "PATH=/usr/bin; exec weir-no-such"], 127, "command 0: exec: weir-no-such: not found (exit 127", "")):
            status, _, err = self.run_words("-f", "--no-files", "--restarts", "3", "unrunnable", "--", *argv)
            self.assertEqual(status, code, err)
            self.assertIn(words, err)
            self.assertIn(warning, err)
        ends = [(job["state"], job["n_restarts"]) for job in self.server.get("/jobs")["items"] if job["name"] == "unrunnable"]
        self.assertEqual(ends, [("FAILED", 0)] * 3)


class Trainings(Case):
    """Nothing runs here: who cancels does so while a job waits for a node."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server("--no-agent").start()
        cls.server.post("/datasets", {"name": "staff"})
        for person in ("ann", "bob"):
            cls.server.request("PUT", f"/api/v1/datasets/staff/files/{person}/1.pgm", b"P5\n1 1\n255\n" + person[:1].encode())
        cls.server.post("/datasets/staff/versions")
        cls.server.post("/ions", DOOR)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def pipeline(self, name):
        return next(one for one in self.server.get("/ions/door")["pipelines"] if one["name"] == name)

    def test_1_a_training_cancelled_by_a_person_raises_nothing(self):
        self.server.weir("trigger", "door", "learn")
        self.server.weir("job", "cancel", self.job(kind="train")["id"])
        wait_until(lambda: self.pipeline("learn")["state"] == "IDLE", 20, "the pipeline to be idle")
        self.assertEqual(self.alerts(), {})
        event, = self.server.get("/events?kind=training_cancelled")["items"]
        self.assertEqual(event["subject"], "ion/door")
        self.assertIn("cancelled by admin", event["message"])
        self.assertNotIn("degraded", self.server.weir("get", "ions")[1])
        self.assertEqual(self.server.get("/events?kind=training_failed")["items"], [])

    def test_2_replicas_whose_job_was_cancelled_come_back_with_the_next_deployment(self):
        self.server.weir("trigger", "door", "learn")
        run, model = self.job(kind="train")["run"], small_model()
        blob = hashlib.sha256(model).hexdigest()
        self.server.request("PUT", "/api/v1/blobs/" + blob, model)
        version = {"id": str(uuid.uuid4()), "run": run, "blob": blob, "bytes": len(model), "dataset": "staff", "dataset_version": 1}
        self.server.post("/models/door.learn/versions", version)
        first = self.job(kind="predict")
        why = wait_until(lambda: self.pipeline("see").get("state_reason"), 20, "the job's reason at its pipeline")
        self.assertEqual(self.pipeline("see")["state"], "DEPLOYING")
        self.assertEqual(why, f"{first['name']} is PENDING: no node has registered yet")
        self.assertIn(why, self.server.weir("describe", "ion", "door")[1])
        self.assertIn(why, self.server.weir("explain", "job", first["id"])[1])
        self.server.weir("job", "cancel", first["id"])
        see = self.pipeline("see")
        self.assertEqual((see["state"], see["state_reason"]), ("WAITING", "its replicas have ended: cancelled by admin"))
        told = wait_until(lambda: self.alerts().get("not_serving"), 20, "the alert")
        self.assertIn("replicas have ended", told["message"])
        self.server.post("/models/door.learn/versions", {**version, "id": str(uuid.uuid4())})
        self.assertNotEqual(self.job(kind="predict")["id"], first["id"])
        wait_until(lambda: "not_serving" not in self.alerts(), 20, "the end of the alert")


if __name__ == "__main__":
    harness.main()

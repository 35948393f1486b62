"""What a person types: specifications are checked when they are handed in, failures say why and are tried
again only where that helps, and the command line finds, follows, starts again and fetches."""
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import unittest

import harness
from harness import HttpError, Server, wait_until

sys.path.insert(0, str(harness.ROOT / "bench"))
from serving import drawn_face  # noqa: E402


def put_faces(server, name, people=3, photos=4):
    server.post("/datasets", {"name": name})
    for person in range(people):
        for photo in range(photos):
            server.request("PUT", f"/api/v1/datasets/{name}/files/p{person}/{photo}.pgm", drawn_face(person, photo, 28))
    server.post(f"/datasets/{name}/versions")


class Hand(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--cpu-slots", "4").start()
        wait_until(lambda: cls.server.get("/nodes")["items"], 20, "the agent to register")
        put_faces(cls.server, "faces")
        put_faces(cls.server, "one", people=1)
        cls.folder = cls.server.root / "work"
        cls.folder.mkdir()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def weir(self, *arguments, status=0):
        """Standard output, or with a status the sentence on standard error."""
        found, out, err = self.server.weir(*map(str, arguments), check=False)
        self.assertEqual(found, status, f"weir {' '.join(map(str, arguments))}: {out}{err}")
        return err if status else out

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def ended(self, job, seconds=60):
        return wait_until(lambda: (lambda j: j if j["finished_ms"] else None)(self.server.get("/jobs/" + job)),
                          seconds, f"the end of {job}")

    def events(self, query):
        return self.server.get("/events?after=0&" + query)["items"]


class Reasons(Hand):
    def test_a_command_that_fails_is_not_tried_again_and_its_last_line_is_the_reason(self):
        marks = self.folder / "marks"
        job = self.server.post("/jobs", {"name": "t", "kind": "command", "spec": {"argv": [
            "sh", "-c", f"echo one >> {marks}; echo begun; printf '\\033[31mError: no such key\\033[0m\\n' >&2; exit 3"]}})
        failed = self.ended(job["id"])
        self.assertEqual(failed["state"], "FAILED")
        self.assertEqual(failed["reason"], "command 0: Error: no such key (exit 3)")
        self.assertEqual((failed["n_restarts"], marks.read_text()), (0, "one\n"))

    def test_a_file_of_the_job_that_is_called_like_a_program_is_said_how_to_run(self):
        for name, how in (("report.py", "python3 report.py"), ("go", "./go")):
            job = self.server.post("/jobs", {"name": "t", "kind": "command", "spec": {"argv": [name], "files": {name: "#!/bin/sh\n"}}})
            reason = self.ended(job["id"])["reason"]
            self.assertIn(f"to run the job's own file say {how} (exit 127", reason)
        job = self.server.post("/jobs", {"name": "t", "kind": "command", "spec": {"argv": ["none-such"], "files": {"go": ""}}})
        self.assertNotIn("own file", self.ended(job["id"])["reason"])

    def test_a_training_that_a_second_try_cannot_mend_fails_at_once_with_the_workers_sentence(self):
        job = self.server.post("/jobs", {"name": "t", "kind": "train", "spec": {
            "model": "lenet", "data": "/nowhere/at-all", "epochs": 1}})
        failed = self.ended(job["id"])
        self.assertEqual((failed["state"], failed["n_restarts"]), ("FAILED", 0))
        self.assertRegex(failed["reason"], r"^worker 0: .*/nowhere/at-all.*No such file.* \(exit 4\)$")

    def test_a_validation_set_may_be_named_and_one_class_is_warned_of(self):
        job = self.server.post("/jobs", {"name": "t", "kind": "train", "spec": {
            "model": "lenet", "dataset": "one", "validation": "one", "epochs": 1, "input": "1,28,28"}})
        ended = self.ended(job["id"])
        self.assertEqual(ended["state"], "SUCCEEDED", ended["reason"])
        parameters = self.server.get("/runs/" + ended["run"])["parameters"]
        self.assertEqual((parameters["validation_dataset"], parameters["validation_dataset_version"]), ("one", 1))
        [event] = self.events("kind=one_class&subject=job/" + job["id"])
        self.assertEqual(event["severity"], "warning")
        self.assertIn("one class", event["message"])
        wait_until(lambda: "one_class" in self.weir("logs", job["id"]), 10, "the worker's warning")

    def test_a_detector_is_composed_of_two_named_datasets(self):
        job = self.server.post("/jobs", {"name": "t", "kind": "train", "spec": {
            "model": "face-detect", "dataset": "one", "backgrounds": "one", "input": "1,32,48", "scenes": 32, "epochs": 1}})
        ended = self.ended(job["id"])
        self.assertEqual(ended["state"], "SUCCEEDED", ended["reason"])
        run = self.server.get("/runs/" + ended["run"])
        self.assertEqual((run["parameters"]["backgrounds_dataset"], run["parameters"]["backgrounds_dataset_version"]), ("one", 1))
        self.assertEqual(self.events("kind=one_class&subject=job/" + job["id"]), [])
        job = self.server.post("/jobs", {"name": "t", "kind": "train", "spec": {
            "model": "lenet", "dataset": "one", "backgrounds": "one", "epochs": 1, "input": "1,28,28"}})
        self.assertIn("backgrounds: only a detector", self.ended(job["id"])["reason"])


class Models(Hand):
    def test_a_model_without_a_name_stays_with_its_run_until_it_gets_one(self):
        job = self.server.post("/jobs", {"name": "first-try", "kind": "train", "spec": {
            "model": "lenet", "dataset": "one", "epochs": 1, "input": "1,28,28"}})
        ended = self.ended(job["id"])
        self.assertEqual(ended["state"], "SUCCEEDED", ended["reason"])
        [file] = [one for one in self.server.get(f"/runs/{ended['run']}/artifacts")["items"] if not one["is_folder"]]
        self.assertEqual(file["path"], "model.safetensors")
        self.weir("model", "push", "mine", "--run", "first-try", "--alias", "best")
        version = self.server.get("/models/mine/versions/1")
        self.assertEqual((version["run"], version["blob"], version["dataset"], version["aliases"]), (ended["run"], file["blob"], "one", ["best"]))
        self.assertEqual(version["metrics"], self.server.get("/runs/" + ended["run"])["metrics"])
        self.assertEqual(version["executor"], "weir")


class Specifications(Hand):
    def refused(self, spec, kind="train", **more):
        try:
            self.server.post("/jobs", {"name": "t", "kind": kind, "spec": spec, **more})
        except HttpError as error:
            return error.code, error.error["message"]
        raise AssertionError(f"{spec} was accepted")

    def test_what_cannot_work_is_refused_when_it_is_handed_in(self):
        good = {"model": "lenet", "dataset": "faces"}
        for change, code, sentence in [
                ({"model": "lenett"}, 400, '$.spec.model: there is no model "lenett"; did you mean "lenet"?'),
                ({"learning_rate": "fast"}, 400, '$.spec.learning_rate: expected a number, got "fast"'),
                ({"epochs": 1e99}, 400, "$.spec.epochs: expected an integer"),
                ({"epoch": 3}, 400, "$.spec.epoch: unknown option; did you mean epochs?"),
                ({"dataset": "facs"}, 404, '$.spec.dataset: there is no dataset "facs"; did you mean "faces"?'),
                ({"validation": "fases"}, 404, '$.spec.validation: there is no dataset "fases"; did you mean "faces"?'),
                ({"validation": "fashion-val"}, 404, "absolute path"),
                ({"data": "photos"}, 400, '$.spec.data: "photos" is relative')]:
            with self.subTest(change=change):
                found, message = self.refused({**good, **change})
                self.assertEqual(found, code, message)
                self.assertIn(sentence, message)
        self.assertIn("$.max_restarts", self.refused(good, max_restarts=-1)[1])
        self.assertEqual([j for j in self.server.get("/jobs?kind=train")["items"] if j["name"] == "t"
                          and j["state"] == "PENDING"], [])

    def test_a_training_of_an_ion_is_checked_when_the_document_is_applied(self):
        ion = {"kind": "ion", "name": "doors", "pipelines": [
            {"name": "training", "type": "training", "dataset": "faces", "model": "face-embed",
             "parameters": {"epochs": "many"}}]}
        with self.assertRaises(HttpError) as refused:
            self.server.post("/ions", ion)
        self.assertIn("$.pipelines[0].parameters.epochs: expected an integer", refused.exception.error["message"])

    def test_more_slots_than_any_node_has_wait_with_the_reason_and_absurdly_many_are_refused(self):
        job = self.server.post("/jobs", {"name": "wide", "kind": "command", "spec": {"argv": ["true"], "cpu_slots": 100}})
        reason = wait_until(lambda: self.server.get("/jobs/" + job["id"])["reason"], 10, "a reason")
        self.assertIn("needs 100 CPUs", reason)
        self.server.post(f"/jobs/{job['id']}/cancel")
        self.assertIn("0 … 4096", self.refused({"argv": ["true"], "cpu_slots": 5000}, kind="command")[1])


class Jobs(Hand):
    def run_job(self, *arguments, status=0):
        """weir job run in self.folder; (status, stdout, stderr)."""
        done = subprocess.run([harness.WEIR, "job", "run", "--state", str(self.server.state), *map(str, arguments)],
                              capture_output=True, text=True, timeout=120, cwd=self.folder)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout, done.stderr

    def newest(self, name):
        return self.server.get("/jobs?newest=1&limit=1&name=" + name)["items"][0]

    def test_a_script_travels_with_its_folder_and_follow_ends_as_it_ends(self):
        self.write("hello.py", "import lib.words, os, sys\nprint(lib.words.TEXT, os.environ['COLOUR'], "
                   "os.environ['WEIR_SIZE'])\nsys.exit(int(sys.argv[1]))\n")
        self.write("lib/words.py", "TEXT = 'bonjour é'\n")
        self.write(".gitignore", "secret*\n")
        self.write("secret.txt", "hunter2")
        (self.folder / "picture.bin").write_bytes(b"\xff\0\1")
        out, err = self.run_job("--env", "COLOUR=blue", "-e", "A=b=c", "--follow", "--", "python3", "hello.py", "0")
        self.assertIn("bonjour é blue 1", out)
        self.assertRegex(err, r"sent (\d+) of \1 files")
        job = self.newest("hello")
        self.assertEqual(job["state"], "SUCCEEDED")
        spec = self.server.get("/jobs/" + job["id"])["spec"]
        manifest = self.server.request("GET", "/api/v1/blobs/" + spec["code"]["manifest"], raw=True).decode()
        self.assertIn("\tpicture.bin\n", manifest)
        self.assertNotIn("secret.txt", manifest)
        out, err = self.run_job("-n", "again", "--follow", "-e", "COLOUR=red", "--", "python3", "hello.py", "7", status=7)
        self.assertIn("the job is FAILED: command 0: bonjour é red 1 (exit 7)", err)

    def test_what_a_command_needs_is_asked_for_by_flags_and_one_line_says_what_became_of_it(self):
        out, _ = self.run_job("wide", "--cpus", "2", "--memory", "1.5G", "--tasks", "2", "--restarts", "3", "--", "true")
        self.assertRegex(out, r"^job wide \([0-9a-f]{8}\) is submitted\n$")
        job = self.newest("wide")
        spec = self.server.get("/jobs/" + job["id"])["spec"]
        self.assertEqual((spec["cpus"], spec["memory_max_bytes"], spec["tasks"], job["max_restarts"]),
                         (2, 3 << 29, 2, 3))
        self.assertNotIn("files", spec)

    def test_a_folder_that_is_too_large_is_refused_by_its_largest_files(self):
        self.write("big/data.csv", "x")
        os.truncate(self.folder / "big/data.csv", 3 << 30)
        self.write("big/a.py", "1")
        _, err = self.run_job("--dir", "big", "--", "python3", "a.py", status=3)
        self.assertIn("data.csv (3072 MiB)", err)
        self.assertIn(".gitignore", err)
        for name in ("data.csv", "a.py"):
            (self.folder / "big" / name).unlink()

    def test_earlier_attempts_have_their_logs_and_a_job_goes_by_its_name_and_by_parts_of_its_identifier(self):
        self.run_job("twice", "--restarts", "1", "--", "sh", "-c", "echo attempt $WEIR_ATTEMPT; exit 1")
        job = self.ended(self.newest("twice")["id"])["id"]
        wait_until(lambda: "attempt 2" in self.weir("logs", "twice"), 10, "the last attempt's log")
        self.assertEqual(self.weir("logs", "--attempt", "1", "twice"), "attempt 1\n")
        for word in (job, job[-8:], job[:23], job[-4:], "twice"):
            self.assertIn("attempt 2", self.weir("logs", word))
        self.assertIn('there is no job "thrice"', self.weir("logs", "thrice", status=4))
        self.assertIn("twice", self.weir("logs", job[:4], status=2))  # all began in the same days

    def test_a_job_that_is_over_is_started_again_and_one_that_runs_is_not(self):
        marks = self.folder / "again"
        self.run_job("again", "--", "sh", "-c", f"echo x >> {marks}; exit 1")
        first = self.ended(self.newest("again")["id"])
        self.assertIn("begins again anew", self.weir("job", "restart", "again"))
        second = self.newest("again")
        self.assertNotEqual(first["id"], second["id"])
        self.assertEqual(second["spec"], first["spec"])
        self.ended(second["id"])
        self.assertEqual(marks.read_text(), "x\nx\n")
        [event] = self.events("kind=job_started_again&subject=job/" + second["id"])
        self.assertIn(first["id"], event["message"])
        self.assertIn("weir job restart", self.weir("job", "resume", "again", status=7))
        self.run_job("long", "--", "sleep", "1000")
        self.assertIn("weir job cancel", self.weir("job", "restart", "long", status=5))
        self.assertIn("is cancelled", self.weir("job", "cancel", "long"))

    def test_a_cancelled_training_goes_on_from_its_checkpoint(self):
        spec = {"model": "lenet", "dataset": "faces", "epochs": 40, "batch_size": 4, "learning_rate": 0.0005, "checkpoint_every_s": 0.01}
        job = self.server.post("/jobs", {"name": "slow", "kind": "train", "spec": spec})["id"]
        folder = self.server.state / "checkpoints" / job
        wait_until(lambda: folder.exists() and any(folder.iterdir()), 60, "a checkpoint")
        self.server.post(f"/jobs/{job}/cancel")
        if self.ended(job)["state"] == "SUCCEEDED":
            self.skipTest("it was done before it could be cancelled")
        self.assertIn("goes on from the last checkpoint", self.weir("job", "resume", "slow"))
        resumed = self.newest("slow")
        self.assertEqual(self.server.get("/runs/" + resumed["run"])["parameters"]["resumed_from"], job)
        ended = self.ended(resumed["id"])
        self.assertEqual(ended["state"], "SUCCEEDED", ended["reason"])
        wait_until(lambda: "resum" in self.weir("logs", "slow").lower(), 10, "the worker to say that it goes on")
        self.assertIn("succeeded", self.weir("job", "resume", "slow", status=5))
        none = self.server.post("/jobs", {"name": "none", "kind": "train", "spec": {"model": "lenet", "data": "/nowhere"}})
        self.ended(none["id"])
        self.assertIn("has no checkpoint", self.weir("job", "resume", "none", status=4))


class Looking(Hand):
    def test_lists_are_filtered_and_bounded_and_show_identifiers_short_or_whole(self):
        for i in range(5):
            self.server.post("/jobs", {"name": f"few-{i % 2}", "kind": "command", "spec": {"argv": ["false"]}})
        self.assertEqual(len(self.weir("get", "jobs", "name=few-0").splitlines()), 4)
        newest = self.server.get("/jobs?newest=1&limit=1")["items"][0]["id"]
        wait_until(lambda: "FAILED" in self.weir("get", "jobs", "state=failed", "name=few-1"), 30, "the end")
        short = self.weir("jobs", "--limit", "1").splitlines()
        self.assertEqual(len(short), 2)
        self.assertTrue(short[1].startswith(newest[-8:] + " "), short)
        self.assertIn(newest, self.weir("get", "jobs", "--limit", "1", "-o", "wide"))
        answer = json.loads(self.weir("get", "jobs", "--limit", "3", "-o", "json"))
        self.assertEqual((len(answer["items"]), answer["more"]), (3, True))
        self.assertEqual(self.weir("describe", "job", newest[-8:]).split()[:1], ["state"])
        self.assertIn("begins it anew", self.weir("explain", "job", newest) if self.ended(newest) else "")

    def test_runs_are_compared_and_a_model_is_fetched(self):
        ids = []
        for rate in (0.001, 0.002):
            job = self.server.post("/jobs", {"name": f"rate-{rate}", "kind": "train", "spec": {
                "model": "lenet", "dataset": "faces", "validation": "faces", "epochs": 2, "input": "1,28,28",
                "learning_rate": rate, "model_name": "rates"}})
            ended = self.ended(job["id"])
            self.assertEqual(ended["state"], "SUCCEEDED", ended["reason"])
            ids.append(ended["run"])
        table = self.weir("runs", "compare", *ids)
        self.assertRegex(table, r"learning_rate +0.001 +0.002")
        self.assertIn("validation_accuracy", table)
        self.assertNotIn("\nepochs", table)
        self.assertIn("validation_accuracy", self.weir("get", "metrics", ids[0][-8:], "key=validation_accuracy"))
        file = self.folder / "rates.safetensors"
        said = self.weir("model", "get", "rates", "--file", file)
        versions = self.server.get("/models/rates/versions")["items"]
        self.assertEqual(hashlib.sha256(file.read_bytes()).hexdigest(), versions[0]["blob"])
        self.assertIn("version 2", said)
        self.assertIn("--force", self.weir("model", "get", "rates", "--file", file, status=5))
        self.assertIn("rates", self.weir("model", "list"))


if __name__ == "__main__":
    harness.main()

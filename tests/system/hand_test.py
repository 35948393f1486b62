"""What a person types: specifications are checked when they are handed in, failures say why and are tried
again only where that helps, and the command line finds, follows, starts again and fetches."""
import json
import os
import pathlib
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
        self.assertIn("needs 100 CPU slots", reason)
        self.server.post(f"/jobs/{job['id']}/cancel")
        self.assertIn("0 to 4096", self.refused({"argv": ["true"], "cpu_slots": 5000}, kind="command")[1])


if __name__ == "__main__":
    harness.main()

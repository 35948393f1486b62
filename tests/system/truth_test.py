"""It never says that all is well when it is not, and nobody is let in by a typing error."""
import unittest

import harness
from harness import Server

DOOR = """
kind: ion
name: door
pipelines:
  - {name: learn, type: training, dataset: staff, model: face-embed}
  - name: see
    type: prediction
    source: {kind: http}
    gallery: {dataset: staff}
links:
  - {from: learn, to: see}
"""


class Names(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--no-agent").start()
        cls.server.post("/datasets", {"name": "staff"})
        for person in ("ada", "ben", "carla"):
            cls.server.request("PUT", f"/api/v1/datasets/staff/files/{person}/1.jpg", person.encode())
        cls.server.post("/datasets/staff/versions")
        cls.apply(DOOR)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    @classmethod
    def apply(cls, text, check=True):
        file = cls.server.root / "ion.yaml"
        file.write_text(text)
        return cls.server.weir("apply", "-f", str(file), check=check)

    def members(self):
        return {item["person"]: item["list"] for item in self.server.get("/ions/door/members")["items"]}

    def test_a_person_who_is_not_enrolled_is_barred_only_if_one_insists(self):
        weir = self.server.weir
        status, out, err = weir("member", "deny", "door", "crala", check=False)
        self.assertEqual((status, out), (4, ""), err)
        self.assertIn('did you mean "carla"?', err)
        self.assertIn("--not-enrolled", err)
        self.assertEqual(self.members(), {})
        weir("member", "deny", "door", "carla")
        weir("member", "allow", "door", "zoe", "--not-enrolled")
        self.assertEqual(self.members(), {"carla": "deny", "zoe": "allow"})
        status, _, err = weir("member", "remove", "door", "karla", check=False)
        self.assertEqual(status, 4, err)
        self.assertIn('did you mean "carla"?', err)
        self.assertEqual(self.members(), {"carla": "deny", "zoe": "allow"})
        weir("member", "remove", "door", "carla")
        weir("member", "remove", "door", "zoe")
        weir("member", "remove", "door", "ada")  # on no list already
        self.assertEqual(self.members(), {})

    def refused(self, text, *said):
        status, out, err = self.apply(text, check=False)
        self.assertIn(status, (2, 7), out + err)
        for words in said:
            self.assertIn(words, err)
        self.assertEqual(self.server.get("/ions/door")["revision"], 1)

    def test_a_pair_that_cannot_work_is_refused_before_it_trains(self):
        self.refused(DOOR.replace("face-embed", "lenet"), "$.links[0]", '"see"', "lenet, a classifier",
                     "model: face-embed in $.pipelines[0]")
        self.refused(DOOR.replace("face-embed", "face-embd"), "$.pipelines[0].model", 'did you mean "face-embed"?')
        self.refused(DOOR.replace("face-embed", "models/own.json"), "$.pipelines[0].model", "relative path")
        classifier = self.server.root / "classifier.json"
        classifier.write_text('{"layers": [], "loss": {"type": "softmax"}}')
        self.refused(DOOR.replace("face-embed", str(classifier)), "a classifier", "margin")
        self.server.post("/datasets", {"name": "digits", "kind": "idx"})
        self.refused(DOOR.replace("gallery: {dataset: staff}", "gallery: {dataset: digits}"),
                     "$.pipelines[1].gallery.dataset", "kind idx")
        heap = self.server.root / "heap"
        heap.mkdir()
        (heap / "photo.jpg").write_bytes(b"a photo of nobody in particular")
        self.server.post("/datasets", {"name": "heap", "path": str(heap)})
        self.server.post("/datasets/heap/versions")
        self.refused(DOOR.replace("gallery: {dataset: staff}", "gallery: {dataset: heap}"), "has no classes")

    def test_a_template_and_relative_paths_are_refused_and_missing_folders_are_said(self):
        example = (harness.ROOT / "examples/building-security/ion.yaml").read_text()
        status, _, err = self.apply(example, check=False)
        self.assertEqual(status, 2, err)
        self.assertIn("$.pipelines[1].source.path", err)
        self.assertIn("mark @WORK@ of a template", err)
        self.refused(DOOR.replace("{kind: http}", "{kind: directory, path: frames}"), "relative path", "absolute")
        self.server.post("/datasets", {"name": "faces"})
        self.server.post("/datasets", {"name": "passers-by"})
        nowhere = self.server.root / "nowhere"
        _, out, err = self.apply(example.replace("@WORK@", str(nowhere)))
        self.assertIn("applied, revision 1", out)
        for words in (f"warning: {self.server.root}/ion.yaml: $.pipelines[1].source.path: {nowhere}/frames is no folder",
                      "$.pipelines[1].sinks[0].path", 'dataset "faces" has no version yet'):
            self.assertIn(words, err)
        self.server.weir("delete", "building-security")


if __name__ == "__main__":
    harness.main()

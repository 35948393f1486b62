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


if __name__ == "__main__":
    harness.main()

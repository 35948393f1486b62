"""What is kept and for how long: limits are changed, what is over goes, what is needed stays."""
import base64
import hashlib
import json
import os
import sqlite3
import time
import unittest

import harness
from harness import HttpError, Server, wait_until



def decision(i, **more):
    return {"id": f"01900000-0000-7000-8000-{i:012d}", "ion": "door", "pipeline": "p", "camera": f"c{i % 3}",
            "frame": i, "time_ms": int(time.time() * 1000), "verdict": "grant", "score": 0.5, "threshold": 0.4,
            "model_version": 1, "gallery_version": 1, "list_revision": 1, "latency_us": 900, "durable_us": 2000,
            **more}


class Retention(unittest.TestCase):
    def setUp(self):
        self.server = Server("--no-agent").start()
        self.addCleanup(self.server.stop)

    def usage(self, kind):
        answer = json.loads(self.server.weir("store", "usage", "-o", "json")[1])
        return next(item for item in answer["items"] if item["kind"] == kind)

    def ship(self, decisions):
        self.server.request("POST", "/api/v1/decisions", {"ion": "door", "pipeline": "p", "decisions": decisions})

    def test_limits_are_shown_changed_and_applied(self):
        server = self.server
        table = server.weir("store", "usage")[1]
        for kind in ("decisions", "events", "checkpoints", "logs", "blobs", "database", "datasets"):
            self.assertIn(kind, table)
        self.assertIn("Free on its disk", table)
        for i in range(0, 2000, 500):
            self.ship([decision(k) for k in range(i, i + 500)])
        self.assertEqual(self.usage("decisions")["n"], 2000)
        rules = server.weir("store", "retain", "decisions=1d,57kB")[1]
        self.assertIn("1d,57kB", rules)
        self.assertEqual(self.usage("decisions")["limit"], "1d,57kB")
        server.weir("store", "sweep")
        wait_until(lambda: self.usage("decisions")["n"] <= 100, 20, "the oldest decisions gone")
        left = [item["frame"] for item in server.get("/decisions?limit=1000")["items"]]
        self.assertEqual(sorted(left), list(range(1900, 2000)))
        changes = server.get("/events?kind=retention_changed")["items"]
        self.assertIn("decisions", changes[0]["message"])
        # The policy outlives the server.
        server.kill()
        server.start("--no-agent")
        self.assertEqual(self.usage("decisions")["limit"], "1d,57kB")
        server.weir("store", "retain", "decisions=default")
        self.assertEqual(self.usage("decisions")["limit"], "30d,1200MB")

    def test_a_wrong_limit_or_a_lesser_role_is_refused(self):
        server = self.server
        for words, expected in ((["decisions=30"], "30d"), (["faces=30d"], "faces"), (["decisions"], "KIND=LIMIT"),
                                (["=30d"], "KIND=LIMIT")):
            status, _, error = server.weir("store", "retain", *words, check=False)
            self.assertNotEqual(status, 0, words)
            self.assertIn(expected, error)
        viewer = server.post("/tokens", {"name": "v", "role": "viewer"})["secret"]
        for method, path, body in (("PUT", "/retention", {"logs": "0s"}), ("POST", "/store/sweep", {})):
            with self.assertRaises(HttpError) as refused:
                server.request(method, "/api/v1" + path, body, token=viewer)
            self.assertEqual(refused.exception.code, 403)
        self.assertIn("items", server.request("GET", "/api/v1/store/usage", token=viewer))
        self.assertIn("items", server.request("GET", "/api/v1/retention", token=viewer))

    def test_what_a_kill_left_is_cleared_and_what_is_over_goes(self):
        server = self.server
        server.kill()
        (server.state / "uploads").mkdir(exist_ok=True)
        (server.state / "uploads" / "half").write_bytes(b"x" * 1000)
        long_ago = time.time() - 90 * 86400
        for name in ("checkpoints/nobody/1", "rendezvous/nobody"):
            folder = server.state / name
            folder.mkdir(parents=True)
            (folder / "data").write_bytes(b"x" * 10000)
            for path in (folder / "data", folder, folder.parent):
                os.utime(path, (long_ago, long_ago))
        server.start("--no-agent")
        self.assertFalse((server.state / "uploads" / "half").exists())
        wait_until(lambda: not (server.state / "checkpoints" / "nobody").exists(), 30, "checkpoints of no job gone")
        wait_until(lambda: not (server.state / "rendezvous" / "nobody").exists(), 30, "rendezvous of no job gone")

    def test_a_blob_that_nothing_names_goes(self):
        server = self.server

        lost, fresh = (hashlib.sha256(text).hexdigest() for text in (b"lost", b"fresh"))
        server.request("PUT", f"/api/v1/blobs/{lost}", b"lost")
        server.request("PUT", f"/api/v1/blobs/{fresh}", b"fresh")
        path = server.state / "blobs" / lost[:2] / lost
        os.utime(path, (time.time() - 2 * 86400,) * 2)
        server.weir("store", "sweep")
        wait_until(lambda: not path.exists(), 20, "the blob gone")
        self.assertTrue((server.state / "blobs" / fresh[:2] / fresh).exists())

    def test_pictures_lie_in_few_files_and_go_with_their_pack(self):
        server = self.server
        faces = {i: bytes([255, 216]) + bytes([i % 251]) * (1500 + i) for i in range(300)}
        for start in range(0, 300, 100):
            self.ship([decision(i, image=hashlib.sha256(faces[i]).hexdigest(),
                                picture=base64.b64encode(faces[i]).decode()) for i in range(start, start + 100)])
        listed = {item["frame"]: item for item in server.get("/decisions?limit=1000")["items"]}
        for i in (0, 150, 299):
            self.assertEqual(listed[i]["image"], hashlib.sha256(faces[i]).hexdigest())
            self.assertNotIn("pack", listed[i])
            self.assertEqual(self.picture(i), faces[i])
        packs = list((server.state / "pictures").iterdir())
        self.assertEqual(len(packs), 1)
        self.assertLess(packs[0].stat().st_size, sum(map(len, faces.values())) + 300 * 64)
        self.assertEqual(self.usage("pictures")["n"], 1)
        # What is damaged is left out, and its decision stays.
        self.ship([decision(500, picture="no base64!", image="0" * 64)])
        with self.assertRaises(HttpError) as missing:
            self.picture(500)
        self.assertEqual(missing.exception.code, 404)
        # The pack goes, the decisions stay and say so; the next picture is put.
        server.weir("store", "retain", "pictures=0s")
        server.weir("store", "sweep")
        wait_until(lambda: not list((server.state / "pictures").iterdir()), 20, "the pack gone")
        with self.assertRaises(HttpError) as gone:
            self.picture(0)
        self.assertEqual(gone.exception.code, 404)
        self.assertIn("no longer kept", gone.exception.error["message"])
        self.assertEqual(self.usage("decisions")["n"], 301)
        server.weir("store", "retain", "pictures=default")
        server.kill()
        server.start("--no-agent")
        self.ship([decision(501, picture=base64.b64encode(faces[1]).decode())])
        self.assertEqual(self.picture(501), faces[1])

    def test_a_project_keeps_its_own_for_less_and_is_told_before(self):
        server = self.server
        for project in ("vision", "speech"):
            server.weir("project", "create", project)
        now = int(time.time() * 1000)
        for ion, project, age_days in (("v", "vision", 3), ("v", "vision", 0), ("s", "speech", 3), ("s", "speech", 0)):
            self.add_ion(ion, project)
            self.ship_to(ion, [decision(100 * age_days + 10 * (ion == "v") + k, ion=ion, time_ms=now - age_days * 86400000) for k in range(5)])
        keep = ["project", "set", "vision", "--retention", "decisions=2d", "--retention", "logs=12h"]
        going = json.loads(server.weir(*keep, "--dry-run", "-o", "json")[1])["items"]
        self.assertEqual([(one["kind"], one["keep"], one["keep_now"], one["n_going"]) for one in going],
                         [("decisions", "2d", "30d", 5), ("logs", "12h", "30d", 0)])
        self.assertEqual(self.usage("decisions")["n"], 20)
        self.assertIsNone(self.kept("vision", "decisions")["own"])
        table = server.weir(*keep)[1]
        self.assertIn("0s..30d", table)
        self.assertEqual((self.kept("vision", "decisions")["keep"], self.kept("speech", "decisions")["keep"]), ("2d", "30d"))
        server.weir("store", "sweep")
        wait_until(lambda: self.usage("decisions")["n"] == 15, 20, "the decisions of vision that are 3 days old are gone")
        self.assertEqual(sorted(one["ion"] for one in server.get("/decisions?limit=100")["items"]), ["s"] * 10 + ["v"] * 5)
        acts = server.get("/audit?subject=project/vision&kind=project_retention_changed")["items"]
        self.assertIn("decisions 2d, before 30d", acts[0]["message"])
        # It outlives the server, and goes back to the platform's.
        server.kill()
        server.start("--no-agent")
        self.assertEqual(self.kept("vision", "logs")["own"], "12h")
        server.weir("project", "set", "vision", "--retention", "decisions=default")
        self.assertEqual(self.kept("vision", "decisions")["keep"], "30d")

    def test_what_projects_may_keep_has_bounds_that_an_admin_sets(self):
        server = self.server
        server.weir("project", "create", "vision")
        self.assert_refused("0s..30d", "project", "set", "vision", "--retention", "decisions=31d")
        server.weir("store", "bounds", "decisions=1d..90d")
        server.weir("project", "set", "vision", "--retention", "decisions=60d")
        self.assert_refused("1d..90d", "project", "set", "vision", "--retention", "decisions=1h")
        self.assert_refused("1d..90d", "project", "set", "vision", "--retention", "decisions=1h", "--dry-run")
        server.weir("store", "bounds", "decisions=1d..7d")  # narrower ones hold at once
        kept = self.kept("vision", "decisions")
        self.assertEqual((kept["own"], kept["keep"], kept["bounds"]), ("60d", "7d", "1d..7d"))
        for words, expected in ((("audit=1d",), "platform"), (("faces=1d",), "faces"), (("logs=1GB",), "age"), (("logs",), "KIND=AGE")):
            self.assert_refused(expected, "project", "set", "vision", "--retention", *words)
        self.assert_refused("retention", "project", "set", "vision")
        self.assert_refused("1d..90d", "store", "bounds", "logs=3d")
        self.assert_refused("vsion", "project", "retention", "vsion")
        viewer = server.post("/tokens", {"name": "v", "role": "ml-engineer"})["secret"]
        for path in ("/projects/vision/retention", "/retention/bounds"):
            with self.assertRaises(HttpError) as refused:
                server.request("PUT", "/api/v1" + path, {"logs": "1d"}, token=viewer)
            self.assertEqual(refused.exception.code, 403)
            self.assertIn("items", server.request("GET", "/api/v1" + path, token=viewer))

    def assert_refused(self, expected, *words):
        status, _, error = self.server.weir(*words, check=False)
        self.assertNotEqual(status, 0, words)
        self.assertIn(expected, error)

    def kept(self, project, kind):
        return next(one for one in self.server.get(f"/projects/{project}/retention")["items"] if one["kind"] == kind)

    def add_ion(self, ion, project):
        self.server.kill()
        database = sqlite3.connect(self.server.state / "weir.db")
        database.execute("INSERT INTO ions (name, project, document, revision, state, list_revision, n_decisions, n_served, created_ms,"
                         " updated_ms) VALUES (?, ?, '{}', 1, 'ACTIVE', 0, 0, 0, 1, 1) ON CONFLICT DO NOTHING", (ion, project))
        database.commit()
        database.close()
        self.server.start("--no-agent")

    def ship_to(self, ion, decisions):
        self.server.request("POST", "/api/v1/decisions", {"ion": ion, "pipeline": "p", "decisions": decisions})

    def picture(self, i):
        return self.server.request("GET", f"/api/v1/decisions/01900000-0000-7000-8000-{i:012d}/image", raw=True)


if __name__ == "__main__":
    harness.main()

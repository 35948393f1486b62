#!/usr/bin/env python3
"""`weir person forget`: every file of the state folder is searched for what should be gone."""
import hashlib
import http.client
import json
import os
import pathlib
import re
import sqlite3
import struct
import subprocess
import sys
import tarfile
import threading
import time
import unittest
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import harness
from harness import WEIR, wait_until


ION = {"kind": "ion", "name": "door",
       "pipelines": [{"name": "learn", "type": "training", "model": "face-embed", "dataset": "faces"},
                     {"name": "see", "type": "prediction", "source": {"kind": "http", "token": "any"}, "gallery": {"dataset": "faces"}}],
       "links": [{"from": "learn", "to": "see", "policy": "manual"}]}


def photo(size=16):
    return b"P5 %d %d 255\n" % (size, size) + os.urandom(size * size)


class Forget(unittest.TestCase):
    def setUp(self):
        self.server = harness.Server("--no-agent").start()
        self.addCleanup(self.server.stop)
        self.state = pathlib.Path(self.server.state)
        self.now = int(time.time() * 1000) # retention takes what is old
        self.photos = {"ada": [photo() for _ in range(4)], "bob": [photo() for _ in range(2)]}
        self.crops = {"ada": os.urandom(900), "bob": os.urandom(900)}
        self.told = {"ada": os.urandom(900), "bob": os.urandom(900)}  # said "unknown"; feedback says who it was
        self.vectors = {person: [os.urandom(32) for _ in photos] for person, photos in self.photos.items()}
        self.server.weir("dataset", "create", "faces")
        self.put({"ada": self.photos["ada"][:3], "bob": self.photos["bob"]})
        self.put({"ada": self.photos["ada"]})
        self.server.post("/ions", ION)
        self.server.kill()
        self.craft()
        self.server.start("--no-agent")

    def put(self, photos):
        folder = self.server.root / "photos"
        for person, pictures in photos.items():
            (folder / person).mkdir(parents=True, exist_ok=True)
            for i, picture in enumerate(pictures):
                (folder / person / f"{i}.pgm").write_bytes(picture)
        self.server.weir("dataset", "put", "faces", str(folder))
        self.server.weir("dataset", "freeze", "faces")

    def craft(self):
        """What a replica leaves: photos in its cache, embeddings, pictures; and pictures in a pack."""
        replica = self.state / "replicas" / "job-0"
        (replica / "cache").mkdir(parents=True)
        (replica / "images").mkdir()
        rows = b""
        for person, pictures in self.photos.items():
            for i, picture in enumerate(pictures):
                digest = hashlib.sha256(picture).hexdigest()
                (replica / "cache" / f"photo-{digest}").write_bytes(picture)
                rows += digest.encode() + self.vectors[person][i]
        data = b"WEIREMB1" + struct.pack("<IQ", 8, 6) + rows
        (replica / "cache" / "embeddings").write_bytes(data + struct.pack("<I", zlib.crc32(data)))
        pack, offset = b"", 0
        database = sqlite3.connect(self.state / "weir.db")
        columns = [row[1] for row in database.execute("PRAGMA table_info(decisions)")]
        shown = [(person, person, crop) for person, crop in self.crops.items()]
        shown += [(None, person, crop) for person, crop in self.told.items()]
        for i, (decided, person, crop) in enumerate(shown):
            name = f"018f0000-0000-7000-8000-00000000000{i}"
            (replica / "images" / f"{name}.jpg").write_bytes(crop)
            values = {"id": name, "seq": i + 1, "ion": "door", "pipeline": "p", "replica": "job-0", "camera": "c", "frame": i,
                      "time_ms": self.now + i, "key": None, "verdict": "grant" if decided else "unknown", "person": decided, "image": hashlib.sha256(crop).hexdigest(),
                      "pack": self.now, "pack_offset": offset, "pack_bytes": len(crop)}
            values = {column: values.get(column, 0) for column in columns}
            database.execute("INSERT INTO feedback (decision, seq, ion, pipeline, camera, model_version, decided, truth, is_right,"
                             " decided_ms, time_ms) VALUES (?, ?, 'door', 'p', 'c', 1, ?, ?, ?, ?, ?)",
                             (name, i + 1, decided or "unknown", person, decided == person, self.now, self.now))
            database.execute(f"INSERT INTO decisions ({','.join(columns)}) VALUES ({','.join('?' * len(columns))})",
                             [values[column] for column in columns])
            record = b"WPK1" + struct.pack("<I", len(crop)) + name.encode() + crop
            pack += record
            offset += len(record)
        database.commit()
        database.close()
        (self.state / "pictures").mkdir(exist_ok=True)
        (self.state / "pictures" / f"{self.now:016}.pack").write_bytes(pack)

    def bytes_of(self, person):
        pictures = [picture.split(b"\n", 1)[1] for picture in self.photos[person]]
        return pictures + [self.crops[person], self.told[person]] + self.vectors[person]

    def found(self, person, folder):
        """Files that hold bytes of the person, by content."""
        wanted = self.bytes_of(person)
        return [path for path in pathlib.Path(folder).rglob("*") if path.is_file() and not path.is_symlink()
                and any(piece in path.read_bytes() for piece in wanted)]

    def check_gone(self):
        self.assertEqual(self.found("ada", self.state), [])
        kept = {str(path.relative_to(self.state)).split("/")[0] for path in self.found("bob", self.state)}
        self.assertLessEqual({"datasets", "blobs", "pictures", "replicas"}, kept)
        versions = self.server.get("/datasets/faces/versions")["items"]
        tombstones = {version["version"]: [(stone["person"], stone["n_files"]) for stone in version["tombstones"]]
                      for version in versions}
        self.assertEqual((tombstones[1], tombstones[2]), ([("ada", 3)], [("ada", 4)]))
        database = sqlite3.connect(self.state / "weir.db")
        left = database.execute("SELECT person, pack FROM decisions ORDER BY seq").fetchall()
        truth = database.execute("SELECT decided, truth, is_right FROM feedback ORDER BY seq").fetchall()
        database.close()
        self.assertEqual(left, [("ada", 0), ("bob", self.now), (None, 0), (None, self.now)])
        self.assertEqual(truth, [("(forgotten)", "(forgotten)", 1), ("bob", "bob", 1), ("unknown", "(forgotten)", 0),
                                 ("unknown", "bob", 0)])

    def test_a_persons_photos_crops_and_embeddings_are_nowhere(self):
        self.server.weir("snapshot", "create", "door", "--name", "monday", "--from", "2026-01-01T00:00:00Z")
        exported = self.server.root / "monday.tar"
        before = {str(path.relative_to(self.state)).split("/")[0] for path in self.found("ada", self.state)}
        self.assertLessEqual({"datasets", "blobs", "pictures", "replicas"}, before)
        refused = subprocess.run([WEIR, "person", "forget", "ada", "--state", str(self.state)], capture_output=True)
        self.assertNotEqual(refused.returncode, 0)
        self.assertNotEqual(self.found("ada", self.state), [])
        answer = json.loads(self.server.weir("person", "forget", "ada", "--yes", "--reason", "left", "-o", "json")[1])
        self.assertEqual(answer["state"], "done")
        summary = answer["summary"]
        self.assertEqual({key: summary[key] for key in ("photos", "blobs", "pictures", "embedding_files", "cached", "feedback", "snapshots")},
                         {"photos": 4, "blobs": 4, "pictures": 2, "embedding_files": 1, "cached": 4, "feedback": 3, "snapshots": 1})
        wait_until(lambda: len(self.server.get("/datasets/faces/versions")["items"]) == 3, 30, "a version without ada")
        self.check_gone()
        self.check_snapshot(exported)
        newest = self.server.get("/datasets/faces/versions")["items"][0]
        self.assertEqual((newest["n_files"], newest["tombstones"]), (2, []))
        acts = [(act["kind"], act["subject"], act["actor"]) for act in self.server.get("/audit?subject=person/ada")["items"]]
        self.assertEqual(acts, [("person_forgotten", "person/ada", "admin"), ("person_forget_asked", "person/ada", "admin")])
        backup = self.server.root / "backup"
        self.server.weir("backup", str(backup))
        self.assertEqual(self.found("ada", backup), [])
        self.assertNotEqual(self.found("bob", backup), [])
        self.assertIn("whole", self.server.weir("audit", "verify")[1])

    def check_snapshot(self, exported):
        """Its rows do not name ada any more, bob's are as they were, and its sums are right."""
        self.server.weir("snapshot", "export", "monday", str(exported))
        with tarfile.open(exported) as archive:
            files = {one.name.split("/", 1)[1]: archive.extractfile(one).read() for one in archive.getmembers()}
        named = {name: re.sub(rb"\b[0-9a-f]{64}\b", b"", data) for name, data in files.items()}  # a digest may hold it by chance
        self.assertEqual([name for name, data in named.items() if b"ada" in data], [])
        said = [json.loads(line) for line in files["rows/decisions.jsonl"].splitlines()]
        self.assertEqual([(row["person"], row["image"]) for row in said],
                         [("(forgotten)", None), ("bob", hashlib.sha256(self.crops["bob"]).hexdigest()), (None, None),
                          (None, hashlib.sha256(self.told["bob"]).hexdigest())])
        for line in files["SHA256SUMS"].decode().splitlines():
            digest, name = line.split("  ")
            self.assertEqual(hashlib.sha256(files[name]).hexdigest(), digest, name)
        self.assertEqual(json.loads(files["manifest.json"])["forgotten"][0]["rows"], 4)
        found = self.server.get("/snapshots/monday")
        self.assertEqual(found["bytes"], exported.stat().st_size)
        self.assertIsNotNone(found["changed_ms"])

    def test_a_killed_server_goes_on_forgetting(self):
        self.server.kill()
        database = sqlite3.connect(self.state / "weir.db")
        database.execute("INSERT INTO forgotten_people (id, person, project, state, actor, created_ms) VALUES"
                         " ('018f0000-0000-7000-8000-0000000000ff', 'ada', '', 'running', 'admin', 1)")
        database.commit()
        database.close()
        os.unlink(self.state / "datasets/faces/ada/0.pgm")  # it was killed in the middle
        self.server.start("--no-agent")
        self.check_gone()
        self.assertEqual([(one["person"], one["state"]) for one in self.server.get("/forgotten-people")["items"]], [("ada", "done")])
        wait_until(lambda: len(self.server.get("/datasets/faces/versions")["items"]) == 3, 30, "a version without ada")

    def test_a_server_killed_at_any_moment_of_it_goes_on(self):
        """It is killed when the first thing of each kind is gone, by the look of the disk, while the request runs."""
        moments = {"photos": lambda: not (self.state / "datasets/faces/ada/0.pgm").exists(),
                   "blobs": lambda: not all((self.state / "blobs" / one[:2] / one).exists() for one in self.digests("ada")),
                   "copies": lambda: not (self.state / "replicas/job-0/cache/embeddings").exists(),
                   "pictures": lambda: not (self.state / "replicas/job-0/images/018f0000-0000-7000-8000-000000000000.jpg").exists()}
        for i, (what, is_gone) in enumerate(moments.items()):
            with self.subTest(what):
                if i > 0:
                    self.again()
                request = threading.Thread(target=self.ask_for_it)
                request.start()
                deadline = time.monotonic() + 30
                while not is_gone() and time.monotonic() < deadline:
                    pass
                self.server.kill()
                request.join()
                self.server.start("--no-agent")
                self.check_gone()
                self.assertEqual([one["state"] for one in self.server.get("/forgotten-people")["items"]], ["done"])

    def digests(self, person):
        return [hashlib.sha256(picture).hexdigest() for picture in self.photos[person]]

    def again(self):
        self.server.stop()
        self.doCleanups()
        self.setUp()

    def ask_for_it(self):
        try:
            self.server.post("/people/ada/forget", {"reason": "left"})
        except (OSError, http.client.HTTPException):
            pass  # it was killed


if __name__ == "__main__":
    harness.main()

"""A snapshot of an ION: taken, exported, read by Python's own tar, CSV and SHA-256, and taken in by an empty server; hostile and
changed archives are refused."""
import csv
import hashlib
import io
import json
import re
import tarfile
import threading
import time
import unittest

import harness
from harness import HttpError, Server, small_model, wait_until

FOLDER = "timeline-export/"
ION = {"kind": "ion", "name": "door",
       "pipelines": [{"name": "learn", "type": "training", "model": "face-embed", "dataset": "faces"},
                     {"name": "see", "type": "prediction", "source": {"kind": "http", "token": "a-token-that-nobody-may-see"},
                      "gallery": {"dataset": "faces"}}],
       "links": [{"from": "learn", "to": "see", "policy": [{"kind": "rate-limit", "min_interval_s": 3600}, {"kind": "manual"}]}]}


def stamp(i):
    return f"2026-01-31T1{i}:30:00.000Z"


def read_tar(data):
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        assert all(member.isfile() for member in tar)
        return {member.name.removeprefix(FOLDER): tar.extractfile(member).read() for member in tar}


def make_tar(files, **facts):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(FOLDER + name)
            info.size = len(data)
            for key, value in facts.get(name.replace(".", "_"), {}).items():
                setattr(info, key, value)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


class Snapshot(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server, cls.other = Server("--no-agent").start(), Server("--no-agent").start()
        cls.addClassCleanup(cls.server.stop)
        cls.addClassCleanup(cls.other.stop)
        cls.server.post("/datasets", {"name": "faces"})
        for person in ("ada", "ben"):
            cls.server.request("PUT", f"/api/v1/datasets/faces/files/{person}/1.pgm", b"P5\n2 2\n255\nabcd")
        cls.server.post("/datasets/faces/versions")
        cls.server.post("/ions", ION)
        cls.server.post("/ions/door/trigger", {"pipeline": "learn"})  # it waits for a node: the test is the training
        cls.run_id = wait_until(lambda: cls.server.get("/runs?ion=door")["items"], 30, "the run")[0]["id"]
        cls.server.post(f"/runs/{cls.run_id}/metrics", {"metrics": [{"key": "loss", "step": i, "value": 1 / (1 + i)} for i in range(3)]})
        cls.blobs = [cls.push(version) for version in (1, 2)]
        cls.server.post("/ions/door/approve", {"note": "it \"looks\" good, really"})
        served = time.monotonic()
        wait_until(lambda: time.monotonic() > served + 1.1, 10, "more than the least interval of another document")
        cls.blobs.append(cls.push(3))
        decision = {"ion": "door", "pipeline": "see", "replica": "r", "camera": "a, \"b\"", "verdict": "label", "label": "cat",
                    "score": 0.5, "latency_us": 900}
        cls.server.post("/decisions", {"decisions": [{**decision, "id": f"d{i}", "frame": i, "time_ms": stamp(i)} for i in range(8)]})
        for i in range(3):
            cls.server.post("/health-reports", {"ion": "door", "pipeline": "see", "replica": "r", "signal": "score", "statistic": "location",
                                                "value": 1.5 + i, "p_value": [0.5, 0.005, 0.0001][i], "drifted": False, "n_samples": 200,
                                                "model_version": 1})
        cls.server.weir("snapshot", "create", "door", "--name", "monday", "--models", "--from", "2026-01-31T12:00:00Z")
        cls.file = cls.server.root / "monday.tar"
        cls.server.weir("snapshot", "export", "monday", str(cls.file))
        cls.data = cls.file.read_bytes()
        cls.files = read_tar(cls.data)
        cls.manifest = json.loads(cls.files["manifest.json"])

    @classmethod
    def push(cls, version):
        model = small_model(name=f"out{version}")
        blob = hashlib.sha256(model).hexdigest()
        cls.server.request("PUT", "/api/v1/blobs/" + blob, model)
        cls.server.post("/models/door.learn/versions", {"id": f"0190a0b0-0000-7000-8000-00000000000{version}", "blob": blob,
                                                        "bytes": len(model), "run": cls.run_id})
        return blob

    def test_1_every_sum_is_that_of_its_file(self):
        listed = {entry["name"]: entry for entry in self.manifest["files"]}
        self.assertEqual(set(listed) | {"manifest.json", "SHA256SUMS"}, set(self.files))
        for name, entry in listed.items():
            self.assertEqual(entry["bytes"], len(self.files[name]), name)
            self.assertEqual(entry["sha256"], hashlib.sha256(self.files[name]).hexdigest(), name)
        sums = dict(reversed(line.split("  ")) for line in self.files["SHA256SUMS"].decode().splitlines())
        self.assertEqual(sums, {name: hashlib.sha256(data).hexdigest() for name, data in self.files.items() if name != "SHA256SUMS"})

    def test_2_the_records_are_those_of_the_server(self):
        wanted = [one for one in self.server.get("/decisions?ion=door&limit=100")["items"] if one["time_ms"] >= "2026-01-31T12"]
        self.assertEqual(lines(self.files["rows/decisions.jsonl"]), sorted(wanted, key=lambda one: one["time_ms"]))
        self.assertEqual(len(wanted), 6)
        decided = lines(self.files["rows/policy-decisions.jsonl"])
        self.assertEqual({one["id"]: one for one in decided},
                         {one["id"]: one for one in self.server.get("/ions/door/policy-decisions")["items"]})
        self.assertGreater(len(decided), 3)
        self.assertEqual(lines(self.files["rows/revisions.jsonl"]), self.server.get("/ions/door/revisions")["items"])
        for name, data in self.files.items():
            self.assertNotIn(b"a-token-that-nobody-may-see", data, name)
        for blob in self.blobs[-2:]:
            self.assertEqual(hashlib.sha256(self.files["models/" + blob]).hexdigest(), blob)

    def test_3_the_tables_are_those_that_other_programs_read(self):
        name = next(name for name in self.files if name.startswith("door-events-"))
        rows = list(csv.DictReader(io.StringIO(self.files[name].decode(), newline="")))
        self.assertEqual(list(rows[0]), "time,host,eventId,event,eventType,seq,raiseAlert,createdTime,clearedTime,deletedTime".split(","))
        events = {str(event["seq"]): event for event in self.server.get("/events?subject=ion/door&limit=1000")["items"]}
        for row in rows:
            if row["raiseAlert"] == "false":  # and none of the audit, which not everybody may see
                self.assertEqual((row["event"], row["eventType"], row["time"]),
                                 tuple(events[row["seq"]][key] for key in ("message", "kind", "time_ms")))
        name = next(name for name in self.files if "-stats-" in name and "-Instance-see-" in name)
        rows = list(csv.DictReader(io.StringIO(self.files[name].decode(), newline="")))
        self.assertEqual([(float(row["value"]), float(row["p_value"])) for row in rows], [(1.5, 0.5), (2.5, 0.005), (3.5, 0.0001)])
        name = next(name for name in self.files if "-aggregates-" in name)
        rows = list(csv.DictReader(io.StringIO(self.files[name].decode(), newline="")))
        self.assertEqual([(row["time"], row["n"], row["label"]) for row in rows],
                         [(f"2026-01-31T1{i}:00:00.000Z", "1", "1") for i in range(2, 8)])
        self.assertIn("PipelineID: see Mode: online Type: model_consumer", self.files["ion-details.txt"].decode())

    def test_4_an_empty_server_takes_it_in_and_gives_the_same_bytes(self):
        self.other.weir("snapshot", "import", str(self.file))
        made = json.loads(self.other.weir("describe", "snapshot", "monday", "-o", "json")[1])
        self.assertEqual((made["ion"], made["is_imported"], made["rows"]), ("door", True, self.manifest["rows"]))
        again = self.other.root / "again.tar"
        self.other.weir("snapshot", "export", "monday", str(again))
        self.assertEqual(again.read_bytes(), self.data)
        for model in made["models"]:
            self.assertEqual(hashlib.sha256(self.other.request("GET", "/api/v1/blobs/" + model["blob"], raw=True)).hexdigest(), model["blob"])
        self.assertEqual(self.other.weir("snapshot", "import", str(self.file), check=False)[0], 5)  # the name is taken
        self.other.kill()
        self.other.start()
        self.assertIn("monday", self.other.weir("get", "snapshots")[1])
        usage = {item["kind"]: item for item in self.other.get("/store/usage")["items"]}
        self.assertGreaterEqual(usage["snapshots"]["used_bytes"], len(self.data))

    def test_5_what_is_not_whole_or_means_harm_is_refused(self):
        def refused(data):
            with self.assertRaises(HttpError) as caught:
                self.other.request("POST", "/api/v1/snapshots/import?name=harm", data)
            self.assertIn(caught.exception.code, (400, 422), caught.exception.body)
            return caught.exception.body
        changed = {**self.files, "rows/decisions.jsonl": self.files["rows/decisions.jsonl"].replace(b"cat", b"dog")}
        self.assertIn("decisions.jsonl", refused(make_tar(changed)))
        self.assertIn("lists", refused(make_tar({**self.files, "extra.txt": b"x"})))
        less = dict(self.files)
        less.pop("rows/events.jsonl")
        refused(make_tar(less))
        refused(make_tar({**self.files, "../../../weir.db": b"x"}))
        refused(make_tar({**self.files, "link": b""}, link={"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"}))
        refused(self.data[: len(self.data) // 2])
        refused(b"no tar at all")
        with self.assertRaises(HttpError) as caught:
            self.other.request("POST", "/api/v1/snapshots/import?name=harm&project=nowhere", self.data)
        self.assertEqual(caught.exception.code, 404)
        self.assertEqual([path.suffix for path in (self.other.state / "snapshots").iterdir()], [".tar"])
        wait_until(lambda: not list((self.other.state / "uploads").iterdir()), 10, "the uploads to go")
        self.other.request("POST", "/api/v1/snapshots/import?name=repacked", make_tar(self.files))  # another's tar, the same files

    def test_6_replayed_elsewhere_the_same_policies_decide_the_same_and_others_otherwise(self):
        if not self.other.get("/snapshots")["items"]:
            self.other.weir("snapshot", "import", str(self.file))
        replay = lambda server, name, *options: json.loads(server.weir("snapshot", "replay", name, *options, "-o", "json")[1])
        same = replay(self.other, "monday")
        self.assertEqual(same, replay(self.server, "monday"))
        recorded = [one for one in lines(self.files["rows/policy-decisions.jsonl"]) if one["time_ms"] >= self.manifest["from"] and one["policy"] != "none"]
        self.assertEqual([(one["id"], one["replayed"]["verdict"], one["replayed"]["rule"]) for one in same["policies"]["decisions"]],
                         [(one["id"], one["verdict"], one["rule"]) for one in recorded])
        self.assertEqual((same["is_same"], same["policies"]["n_same"]), (True, same["policies"]["n"]))
        # The same document gives the same; one with another threshold says which, and what it would have changed.
        self.assertTrue(replay(self.other, "monday", "--revision", "1")["is_same"])
        changed = json.loads(json.dumps(ION).replace("3600", "1"))
        document = self.server.root / "other.json"
        document.write_text(json.dumps(changed), encoding="utf-8")
        other = replay(self.other, "monday", "--file", str(document))
        differ = [one for one in other["policies"]["decisions"] if one["differs"]]
        self.assertFalse(other["is_same"])
        self.assertEqual([(one["version"], one["recorded"]["verdict"], one["replayed"]["verdict"]) for one in differ], [(3, "wait", "pass")])
        for one in differ:
            self.assertEqual(one["policy"], "rate-limit")
            self.assertIn("min_interval_s is 1, it was 3600", one["why"])
        text = self.other.weir("snapshot", "replay", "monday", "--file", str(document))[1]
        self.assertIn("min_interval_s is 1, it was 3600", text)
        drift = [line for line in text.splitlines() if line.startswith("drift of")]
        self.assertEqual(len(drift), len(set(drift)), text)
        counts = [int(one) for line in drift for one in re.findall(r" \((\d+) replicas\)$", line) or ["1"]]
        self.assertEqual(sum(counts), len(other["drift"]["signals"]), "each replica's is in a line")
        for wrong in (["--revision", "9"], ["--confirm", "3/2"], ["--file", "/nowhere"], ["--window", "3"]):
            self.assertNotEqual(self.other.weir("snapshot", "replay", "monday", *wrong, check=False)[0], 0, wrong)

    def test_7_a_slider_shows_what_served_and_waited(self):
        decided = [one for one in lines(self.files["rows/policy-decisions.jsonl"])]
        begin = next(one for one in decided if one["verdict"] == "promote")
        state = self.server.get("/snapshots/monday/state?time=" + begin["time_ms"])
        self.assertEqual((state["links"][0]["id"], state["links"][0]["version"], state["links"][0]["actor"]),
                         ("learn:see", begin["version"], begin["actor"]))
        before = self.server.get("/snapshots/monday/state?time=2026-01-31T14:00:00Z")
        self.assertEqual((before["links"], before["decisions"]["n"], before["events"]), ([], 2, []))  # it was not applied yet
        last = self.server.get("/snapshots/monday/state")
        waiting = {one["version"] for one in last["links"][0]["waiting"]}
        self.assertIn(3, waiting)
        self.assertEqual(last["decisions"]["label"], 6)
        self.assertEqual(last["health"][0]["value"], 3.5)
        with self.assertRaises(HttpError):
            self.server.get("/snapshots/monday/state?time=2020-01-01T00:00:00Z")

    def test_8_a_half_made_one_goes_when_the_server_starts_and_a_deleted_one_at_once(self):
        rest = self.server.state / "snapshots" / "0190a0b0-0000-7000-8000-0000000000ff.tar"
        rest.write_bytes(self.data)
        (self.server.state / "snapshots" / "x.tar.tmp").write_bytes(b"half")
        self.server.kill()
        self.server.start()
        self.assertEqual(len(list((self.server.state / "snapshots").iterdir())), 1)
        self.server.weir("snapshot", "delete", "monday")
        self.assertEqual(list((self.server.state / "snapshots").iterdir()), [])
        self.assertEqual(self.server.weir("describe", "snapshot", "monday", check=False)[0], 4)

    def test_9_killed_at_any_moment_there_is_a_whole_one_or_none(self):
        server = self.server
        for i in range(6):
            taking = threading.Thread(target=lambda: server.weir("snapshot", "create", "door", "--name", f"k{i}", "--models", check=False))
            taking.start()
            folder = server.state / "snapshots"
            if i % 2:  # once there is a file, whole or not; else whenever that is
                deadline = time.monotonic() + 5
                while time.monotonic() < deadline and not any(folder.iterdir()):
                    pass
            server.kill()
            taking.join()
            server.start()
            names = [one["name"] for one in server.get("/snapshots")["items"]]
            self.assertLessEqual(set(names), {f"k{i}"})
            self.assertEqual(len(list(folder.iterdir())), len(names))
            for name in names:
                files = read_tar(server.request("GET", f"/api/v1/snapshots/{name}/export", raw=True))
                for entry in json.loads(files["manifest.json"])["files"]:
                    self.assertEqual(hashlib.sha256(files[entry["name"]]).hexdigest(), entry["sha256"])
                server.weir("snapshot", "delete", name)


if __name__ == "__main__":
    harness.main()

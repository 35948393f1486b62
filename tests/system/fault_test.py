"""Bad input, full disks, damaged files, clocks set back: an error says what, where and what to do, and
leaves everything else as it was."""
import contextlib
import hashlib
import http.client
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import unittest

import harness
import shims
from harness import HttpError, Server, WEIR, wait_until

sys.path.insert(0, str(harness.ROOT / "bench"))
from serving import drawn_face  # noqa: E402

GOOD_PIPELINE = "kind: ion\nname: doors\npipelines:\n  - name: training\n    type: training\n" \
                "    dataset: faces\n    model: face-embed\n"


def run(*arguments, **options):
    return subprocess.run([WEIR, *map(str, arguments)], capture_output=True, text=True, timeout=120, **options)


def refused(server, *arguments, **options):
    """The error that the request is answered with."""
    try:
        server.request(*arguments, **options)
    except HttpError as error:
        return error
    raise AssertionError(f"{arguments[:2]} was accepted")


def put_faces(server, people=6, photos=4, name="faces"):
    server.post("/datasets", {"name": name})
    for person in range(people):
        for photo in range(photos):
            server.request("PUT", f"/api/v1/datasets/{name}/files/p{person}/{photo}.pgm", drawn_face(person, photo))
    server.post(f"/datasets/{name}/versions")


def write_folder(folder, people=3, photos=4):
    for person in range(people):
        (folder / f"p{person}").mkdir(parents=True)
        for photo in range(photos):
            (folder / f"p{person}" / f"{photo}.pgm").write_bytes(drawn_face(person, photo, 28))
    return folder


class Requests(unittest.TestCase):
    """What people type and send."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server().start("--no-agent")
        cls.server.post("/datasets", {"name": "faces"})

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def tearDown(self):
        self.assertEqual(self.server.get("/ions")["items"], [])
        self.assertEqual(self.server.request("GET", "/health", token="")["status"], "ok")

    def apply(self, text):
        path = self.server.root / "ion.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        status, out, err = self.server.weir("apply", "-f", str(path), check=False)
        self.assertIn(str(path), err)
        self.assertEqual(out, "")
        return status, err

    def test_yaml_that_is_none_is_refused_by_line_and_column(self):
        status, err = self.apply("kind: ion\nname: doors\npipelines:\n  - name: a\n   type: training\n")
        self.assertEqual(status, 2)
        self.assertIn("line 5, column 4", err)
        status, err = self.apply(b"kind: ion\nname: \xff\xff\xff\n")
        self.assertEqual(status, 2)
        self.assertIn("UTF-8", err)

    def test_an_ion_with_a_mistake_is_refused_by_its_path(self):
        for wrong, place, what in [
                (GOOD_PIPELINE + "    wrokers: 2\n", "$.pipelines[0].wrokers", "unknown field"),
                (GOOD_PIPELINE + "    workers: many\n", "$.pipelines[0].workers", "integer"),
                (GOOD_PIPELINE + "    workers: 0\n", "$.pipelines[0].workers", "1 to"),
                (GOOD_PIPELINE + "color: red\n", "$.color", "unknown field"),
                (GOOD_PIPELINE + "links:\n  - {from: training, to: door}\n", "$.links[0].to", '"door"'),
                (GOOD_PIPELINE.replace("faces", "nobody"), "$.pipelines[0]", "weir dataset create nobody"),
                (GOOD_PIPELINE.replace("kind: ion", "kind: iron"), "$.kind", "ion"),
                (GOOD_PIPELINE + '    triggers: {schedule: "every day"}\n', "$.pipelines[0].triggers.schedule",
                 "field")]:
            with self.subTest(wrong=wrong):
                status, err = self.apply(wrong)
                self.assertEqual(status, 2, err)
                self.assertIn(place, err)
                self.assertIn(what, err)

    def test_a_replica_that_could_not_serve_is_refused(self):
        links = "links:\n  - {from: training, to: door}\n"
        door = "  - {name: door, type: prediction, source: {kind: http}, stages: [%s]}\n"
        for stages, said in [
                ("decode, embed, match, decide", "gallery: {dataset: NAME}"),
                ("decode, detect, classify, decide", "stages[1].model"),
                ("classify, decide", "takes a picture")]:
            with self.subTest(stages=stages):
                status, err = self.apply(GOOD_PIPELINE + door % stages + links)
                self.assertNotEqual(status, 0)
                self.assertIn("$.pipelines[1].stages", err)
                self.assertIn(said, err)

    def test_a_file_that_is_not_there_is_named(self):
        nowhere = "/nowhere/at-all"
        for arguments in [("apply", "-f", nowhere), ("train", "--model", "lenet", "--data", nowhere),
                          ("evaluate", "--weights", nowhere, "--data", self.server.root)]:
            with self.subTest(arguments=arguments):
                state = ["--state", self.server.state] if arguments[0] == "apply" else []
                done = run(*arguments, *state)
                self.assertEqual(done.returncode, 4, done.stderr)
                self.assertIn(nowhere, done.stderr)
                self.assertIn("No such file", done.stderr)
        data = write_folder(self.server.root / "pictures")
        done = run("train", "--model", nowhere, "--data", data)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn(nowhere, done.stderr)
        status, _, err = self.server.weir("dataset", "create", "d", "--path", nowhere, check=False)
        self.assertEqual(status, 2)
        self.assertIn(f"$.path: {nowhere} is not a folder on the server", err)

    def answer_to(self, method, path, **headers):
        """Only the head of a request is sent, as far as the server can tell: the answer must not wait for the rest."""
        connection = http.client.HTTPConnection(self.server.url.split("//")[1], timeout=20)
        connection.putrequest(method, path)
        for name, value in {"Authorization": "Bearer " + self.server.token, **headers}.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        answer = connection.getresponse()
        body = json.loads(answer.read())
        connection.close()
        return answer.status, body["error"]

    def test_a_huge_request_is_refused_before_it_is_sent(self):
        for method, path in [("POST", "/api/v1/ions"), ("PUT", "/api/v1/datasets/faces/files/a/b.pgm"),
                             ("POST", "/api/v1/decisions")]:
            status, error = self.answer_to(method, path, Content_Length=str(1 << 40))
            self.assertEqual((status, error["status"]), (413, "LIMIT"), path)
            self.assertIn("bytes", error["message"])

    def test_json_that_is_none_or_too_deep_is_refused_by_its_place(self):
        for body, what in [(b'{"kind": ', "line 1"), (b"[" * 100000, "depth"),
                           (b'{"kind": "\xff"}', "column 10: unable to decode byte 0xff"),
                           (b'{"kind": "ion", "kind": "ion"}', "duplicate"), (b"", "$.name: missing")]:
            error = refused(self.server, "POST", "/api/v1/ions", body)
            self.assertEqual(error.code, 400)
            self.assertIn(what, error.error["message"])

    def test_a_wrong_token_opens_nothing(self):
        for token in ("weir_wrong", self.server.token[:-1], self.server.token + "0", "\u00e9"):
            error = refused(self.server, "GET", "/api/v1/ions", headers={
                "Authorization": ("Bearer " + token).encode("utf-8").decode("latin-1")}, token="")
            self.assertEqual((error.code, error.error["status"]), (401, "UNAUTH"))
        status, out, err = self.server.weir("get", "ions", "--token", "weir_wrong", check=False)
        self.assertEqual((status, out), (6, ""))
        self.assertIn("token", err)

    def test_a_port_that_is_taken_is_named_with_what_to_do(self):
        address = self.server.url.split("//")[1]
        done = run("server", "--no-agent", "--state", self.server.root / "other", "--listen", address)
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn(address, done.stderr)
        self.assertIn("--listen", done.stderr)
        done = run("server", "--no-agent", "--state", self.server.state, "--listen", "127.0.0.1:0")
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn(f"another server uses the state folder {self.server.state}", done.stderr)
        self.assertIn("--state", done.stderr)

    def test_a_blob_whose_bytes_are_others_is_not_stored(self):
        name = hashlib.sha256(b"right").hexdigest()
        error = refused(self.server, "PUT", "/api/v1/blobs/" + name, b"wrong")
        self.assertEqual(error.code, 422)
        self.assertIn(hashlib.sha256(b"wrong").hexdigest(), error.error["message"])
        self.assertEqual(refused(self.server, "GET", "/api/v1/blobs/" + name).code, 404)
        self.assertEqual(list((self.server.state / "blobs/tmp").iterdir()), [])


class Door(unittest.TestCase):
    """A door with a trained recogniser and a camera."""

    def start_door(self):
        server = self.server.start()
        self.frames, self.sink, self.n_frames = server.root / "frames/cam", server.root / "decisions.jsonl", 0
        self.frames.mkdir(parents=True)
        put_faces(server)
        self.train(1)
        server.post("/ions/doors/approve", {"version": 1})
        self.assertEqual(self.decide(drawn_face(0, 7), 60)["model_version"], 1)

    def train(self, version):
        """Each with a seed of its own: the same training again gives the same bytes."""
        self.server.post("/ions", {
            "kind": "ion", "name": "doors", "pipelines": [
                {"name": "training", "type": "training", "dataset": "faces", "model": "face-embed",
                 "parameters": {"epochs": 3, "batch_size": 12, "seed": version}},
                {"name": "door", "type": "prediction",
                 "source": {"kind": "directory", "path": str(self.frames.parent)},
                 "gallery": {"dataset": "faces", "default": "allow"},
                 "sinks": [{"kind": "jsonl", "path": str(self.sink)}]}],
            "links": [{"from": "training", "to": "door", "policy": "manual"}]})
        self.server.post("/ions/doors/trigger", {"pipeline": "training"})
        wait_until(lambda: any(c["version"] == version for c in self.server.get("/ions/doors/candidates")["items"]), 90,
                   f"version {version}")

    def put(self, picture, suffix="pgm"):
        frame, self.n_frames = self.n_frames, self.n_frames + 1
        (self.frames / ".new").write_bytes(picture)
        (self.frames / ".new").rename(self.frames / f"{frame}.{suffix}")
        return frame

    def decide(self, picture, seconds=20, suffix="pgm"):
        frame = self.put(picture, suffix)

        def decided():
            lines = self.sink.read_bytes().splitlines() if self.sink.exists() else []
            return next((d for d in map(json.loads, lines) if d["frame"] == frame), None)
        return wait_until(decided, seconds, f"a decision of frame {frame}")

    def summary(self):
        return self.server.get("/decisions/summary?ion=doors")


class FullDisk(Door):
    def setUp(self):
        self.disk = pathlib.Path(harness.tempfile.mkdtemp(prefix="weir-small-"))
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96m", "tmpfs", self.disk], capture_output=True)
        if mounted.returncode != 0:
            self.disk.rmdir()
            self.skipTest("no small disk can be mounted: needs root")
        self.server = Server(state=self.disk / "state")

    def tearDown(self):
        self.server.stop()
        for pid in self.server.pids():
            os.kill(pid, signal.SIGKILL)
        subprocess.run(["umount", "-l", self.disk], check=True)
        self.disk.rmdir()

    def fill(self):
        with open(self.disk / "fill", "wb", buffering=0) as file:
            for size in (65536, 4096, 512):
                try:
                    while file.write(bytes(size)) == size:
                        pass
                except OSError:
                    pass
        self.assertEqual(os.statvfs(self.disk).f_bavail, 0)

    def assert_no_space(self, *arguments):
        error = refused(self.server, *arguments)
        self.assertEqual((error.code, error.error["status"]), (507, "NOSPACE"))
        self.assertRegex(error.error["message"], "No space left|disk is full")

    def test_a_full_disk_stops_writing_and_nothing_else(self):
        server = self.server.start("--no-agent")
        put_faces(server, 1)
        small, large = os.urandom(5000), os.urandom(3 << 20)
        names = {data: hashlib.sha256(data).hexdigest() for data in (small, large)}
        server.request("PUT", "/api/v1/blobs/" + names[small], small, raw=True)
        self.fill()
        self.assert_no_space("PUT", "/api/v1/blobs/" + names[large], large)
        self.assert_no_space("PUT", "/api/v1/datasets/faces/files/p0/9.pgm", drawn_face(0, 9))
        for i in range(20):
            self.assert_no_space("POST", "/api/v1/projects", {"name": f"while-full-{i}"})
        status, _, err = server.weir("trigger", "nothing", "training", check=False)
        self.assertNotEqual(status, 0, err)
        health = refused(server, "GET", "/health")
        self.assertEqual(health.code, 503)
        self.assertRegex(json.loads(health.body)["reason"], "Nothing can be stored: .*disk is full.*make room")
        self.assertEqual([p["name"] for p in server.get("/projects")["items"]], ["default"])
        self.assertEqual(server.request("GET", "/api/v1/blobs/" + names[small], raw=True), small)
        self.assertEqual(refused(server, "GET", "/api/v1/blobs/" + names[large]).code, 404)

        os.unlink(self.disk / "fill")
        server.post("/projects", {"name": "after"})
        self.assertEqual(server.request("GET", "/health", token="")["status"], "ok")
        server.request("PUT", "/api/v1/blobs/" + names[large], large, raw=True)
        self.assertEqual(server.post("/datasets/faces/versions")["version"], 1, "nothing was added")
        server.kill()
        self.check_state()
        server.start("--no-agent")
        self.assertEqual({p["name"] for p in server.get("/projects")["items"]}, {"default", "after"})

    def waiting_when_quiet(self):
        """How many frames are left once none has gone for two seconds (a few decisions fit into the last page)."""
        seen = []

        def is_quiet():
            seen.append((time.monotonic(), len(list(self.frames.glob("*.pgm")))))
            changed = [at for at, n in seen if n != seen[-1][1]]
            return seen[-1][0] - (changed[-1] if changed else seen[0][0]) > 2
        wait_until(is_quiet, 30, "the door to wait")
        return seen[-1][1]

    def test_a_door_on_a_full_disk_waits_and_loses_nothing(self):
        self.start_door()
        self.fill()
        faces, n_sent = [drawn_face(person, 7) for person in range(6)], 60
        for i in range(n_sent):
            self.put(faces[i % 6])
        self.assertGreater(self.waiting_when_quiet(), 0, "a frame may go only when its decision is on disk")
        os.unlink(self.disk / "fill")
        wait_until(lambda: self.summary()["decisions"] == self.n_frames, 30, "every frame decided")
        wait_until(lambda: not list(self.frames.glob("*.pgm")), 10, "every frame acknowledged")
        # The sink tries again at its own pace, which is not the server's.
        wait_until(lambda: self.sink.read_bytes().count(b"\n") >= self.n_frames, 30, "every decision in the sink")
        lines = [json.loads(line) for line in self.sink.read_bytes().splitlines()]
        self.assertEqual([line["frame"] for line in lines], list(range(self.n_frames)))
        self.server.kill()
        for pid in self.server.pids():
            os.kill(pid, signal.SIGKILL)
        self.check_state()

    def check_state(self):
        with sqlite3.connect(self.server.state / "weir.db") as database:
            self.assertEqual(database.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
            self.assertEqual(database.execute("PRAGMA foreign_key_check").fetchall(), [])
        database.close()
        for blob in (self.server.state / "blobs").glob("??/*"):
            self.assertEqual(hashlib.sha256(blob.read_bytes()).hexdigest(), blob.name)
        self.assertEqual(list((self.server.state / "blobs/tmp").iterdir()), [])
        self.assertEqual([p for p in self.server.state.rglob("*.tmp") if p.is_file()], [])


def shift_clock(test, folder):
    """What the test starts from now on has a wall clock that is off by the seconds in the file that is returned."""
    shift = folder / "shift"
    shift.write_text("0")
    saved = dict(os.environ)
    test.addCleanup(lambda: (os.environ.clear(), os.environ.update(saved)))
    os.environ.update(shims.environment([shims.build(folder, "clock", shims.CLOCK)], CLOCK_SHIFT=shift))
    return shift


class ClockSetBack(unittest.TestCase):
    """The wall clock of server, agent and tasks jumps back by an hour; the monotonic clock goes on."""

    def setUp(self):
        self.server = Server()
        self.shift = shift_clock(self, self.server.root)
        self.server.start()

    def tearDown(self):
        self.server.stop()

    def submit(self, script, **spec):
        return self.server.post("/jobs", {"name": "t", "kind": "command", "max_restarts": 1,
                                          "spec": {"argv": ["sh", "-c", script], **spec}})["id"]

    def wait_state(self, job, *states):
        return wait_until(lambda: (lambda j: j if j["state"] in states else None)(self.server.get("/jobs/" + job)), 30,
                          f"{states} of {self.server.get('/jobs/' + job)}")

    def test_jobs_run_and_restart_when_the_clock_is_set_back_by_an_hour(self):
        server = self.server
        wait_until(lambda: server.get("/nodes")["items"], 20, "the agent")
        before = server.get("/nodes")["items"][0]["last_seen_ms"]
        marks = server.root / "marks"
        gate = server.root / "gate"
        failing = self.submit(f"echo $WEIR_ATTEMPT >> {marks}; [ $WEIR_ATTEMPT -gt 1 ]")
        running = self.submit(f"while [ ! -e {gate} ]; do sleep 0.1; done")
        self.wait_state(running, "RUNNING")
        self.wait_state(failing, "RESTARTING")
        self.shift.write_text("-3600")
        self.wait_state(self.submit("true"), "SUCCEEDED")
        wait_until(lambda: server.get("/nodes")["items"][0]["last_seen_ms"] < before, 30, "a heartbeat by the new time")
        gate.touch()
        self.assertEqual(self.wait_state(running, "SUCCEEDED")["attempt"], 1, "it was never lost")
        self.wait_state(failing, "SUCCEEDED")
        self.assertEqual(marks.read_text().split(), ["1", "2"])
        events = server.get("/events?after=0&limit=1000")["items"]
        self.assertEqual([e["seq"] for e in events], sorted(e["seq"] for e in events))

    def test_a_clock_set_forward_loses_no_node_and_ends_no_time_limit(self):
        server = self.server
        wait_until(lambda: server.get("/nodes")["items"], 20, "the agent")
        before = server.get("/nodes")["items"][0]["last_seen_ms"]
        gate = server.root / "gate"
        running = self.submit(f"while [ ! -e {gate} ]; do sleep 0.1; done", time_limit="30m")
        self.wait_state(running, "RUNNING")
        self.shift.write_text("3600")
        wait_until(lambda: server.get("/nodes")["items"][0]["last_seen_ms"][:13] > before[:13], 30,
                   "a heartbeat by the new time")
        self.wait_state(self.submit("true"), "SUCCEEDED")
        gate.touch()
        self.assertEqual(self.wait_state(running, "SUCCEEDED")["attempt"], 1, "it was never lost")

    def test_a_node_that_dies_while_the_clock_is_set_back_is_lost(self):
        server = self.server
        wait_until(lambda: server.get("/nodes")["items"], 20, "the agent")
        running = self.submit("exec sleep 1000")
        self.wait_state(running, "RUNNING")
        os.kill(server.agent(), signal.SIGSTOP)  # one that died would be started again
        self.shift.write_text("-3600")
        self.wait_state(running, "RESTARTING", "PENDING")


class Pictures(Door):
    """Damaged pictures, models and checkpoints."""

    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.stop)

    def replica_log(self):
        return "".join(p.read_text(errors="replace") for p in sorted(self.server.state.glob("agent/tasks/*/log")))

    def door_job(self):
        return next(job for job in self.server.get("/jobs?kind=predict")["items"])

    def test_damaged_frames_are_decided_as_errors_that_say_what_is_wrong(self):
        self.start_door()
        face = drawn_face(1, 7)
        for name, picture, suffix, what in [
                ("cut off", face[:len(face) // 2], "pgm", "truncated"),
                ("empty", b"", "pgm", "empty"),
                ("text", b"This is not a picture.\n", "jpg", "not a picture|known format|PGM|JPEG"),
                ("huge", b"P5\n60000 60000\n255\n" + bytes(100), "pgm", "pixels|60000"),
                ("no size", b"P5\n-3 4\n255\n", "pgm", "PNM"),
                ("JPEG head only", b"\xff\xd8\xff\xe0" + bytes(60), "jpg", "JPEG"),
                ("PNG head only", b"\x89PNG\r\n\x1a\n" + bytes(60), "png", "PNG")]:
            with self.subTest(name):
                decision = self.decide(picture, suffix=suffix)
                self.assertEqual((decision["verdict"], decision["person"], decision["score"]), ("error", None, None))
                self.assertRegex(decision["error"], what)
                self.assertIn(" ", decision["error"], "a sentence")
        good = self.decide(face)
        self.assertNotEqual(good["verdict"], "error")
        self.assertIsNone(good["error"])
        wait_until(lambda: not list(self.frames.glob("*.*")), 10, "the frames to be acknowledged")
        wait_until(lambda: self.summary()["decisions"] == self.n_frames, 10, "every decision on the server")
        self.assertEqual(self.summary()["verdicts"]["error"], 7)
        task = self.server.get(f"/jobs/{self.door_job()['id']}/tasks")["items"][0]
        self.assertEqual((task["attempt"], task["state"]), (1, "RUNNING"))

    def damage(self, path):
        """Turn one bit in the middle of a file."""
        os.chmod(path, 0o600)
        with open(path, "r+b") as file:
            file.seek(path.stat().st_size // 2)
            byte = file.read(1)[0]
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte ^ 0x40]))

    def test_a_damaged_model_is_refused_and_the_old_one_serves_on(self):
        self.start_door()
        self.train(2)
        blob = self.server.get("/models/doors.training/versions/2")["blob"]
        stored = self.server.state / "blobs" / blob[:2] / blob
        whole = stored.read_bytes()
        self.damage(stored)
        self.server.post("/ions/doors/approve", {"version": 2})
        wait_until(lambda: blob in self.replica_log(), 30, "the refusal in the replica's log")
        line = next(line for line in self.replica_log().splitlines() if blob in line)
        self.assertRegex(line, f"deployment_failed .*{blob}.*damaged")
        self.assertEqual(self.decide(drawn_face(2, 7))["model_version"], 1)
        stored.write_bytes(whole)
        wait_until(lambda: self.decide(drawn_face(2, 7))["model_version"] == 2, 60, "the mended model in service")

    def test_a_damaged_copy_of_a_model_is_fetched_anew_after_a_restart(self):
        self.start_door()
        task = self.server.get(f"/jobs/{self.door_job()['id']}/tasks")["items"][0]
        copy = next(iter(self.server.state.glob("replicas/*/**/model-*")))
        before, score = copy.read_bytes(), self.decide(drawn_face(3, 7))["score"]
        self.damage(copy)
        os.kill(task["pid"], signal.SIGKILL)
        decision = self.decide(drawn_face(3, 7), 30)
        self.assertEqual((decision["model_version"], decision["score"]), (1, score))
        self.assertEqual(copy.read_bytes(), before)
        self.assertRegex(self.replica_log(), f"cached_file_damaged path=.*{copy.name}")

    # ---- training -----------------------------------------------------------------------------------

    def train_folder(self, data, *more, **options):
        return run("train", "--model", "lenet-5", "--data", data, "--epochs", 4, "--batch-size", 4, "--output",
                   self.server.root / "model.safetensors", *more, **options)

    def test_a_damaged_picture_in_a_training_is_named_and_skipped_or_fatal(self):
        data = write_folder(self.server.root / "data")
        bad = data / "p1/2.pgm"
        bad.write_bytes(bad.read_bytes()[:100])
        done = self.train_folder(data)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("p1/2.pgm", done.stderr)
        self.assertIn("truncated", done.stderr)
        output = self.server.root / "model.safetensors"
        output.unlink()
        done = self.train_folder(data, "--on-damage", "fatal")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertRegex(done.stderr, "weir-worker train: .*p1/2.pgm: .*truncated")
        self.assertFalse(output.exists())

    def test_a_rank_that_waits_for_others_ends_as_soon_as_it_is_told_to(self):
        data, rendezvous = write_folder(self.server.root / "data"), self.server.root / "rendezvous"
        rank = subprocess.Popen([harness.BIN / "weir-worker", "train", "--model", "lenet-5", "--data", data,
                                 "--workers", "2", "--rank", "0", "--role", "worker", "--secret", "s", "--rendezvous",
                                 f"file://{rendezvous}", "--checkpoint-dir", self.server.root / "checkpoints",
                                 "--output", self.server.root / "model.safetensors"])
        self.addCleanup(lambda: rank.kill() if rank.poll() is None else None)
        wait_until(lambda: rendezvous.exists() and list(rendezvous.iterdir()), 20, "the rank to wait for the other")
        rank.send_signal(signal.SIGTERM)
        self.assertEqual(rank.wait(timeout=3), 10)

    def test_a_training_goes_on_from_the_checkpoint_before_a_damaged_one(self):
        data, checkpoints = write_folder(self.server.root / "data"), self.server.root / "checkpoints"
        options = ("--checkpoint-dir", checkpoints, "--checkpoint-every-s", "0.01", "--seed", "3")
        self.assertEqual(self.train_folder(data, *options, "--output", self.server.root / "straight").returncode, 0)
        shutil.rmtree(checkpoints)
        process = subprocess.Popen([WEIR, "train", "--model", "lenet-5", "--data", data, "--epochs", "4",
                                    "--batch-size", "4", *map(str, options), "--output", self.server.root / "resumed"],
                                   stdout=subprocess.DEVNULL)
        wait_until(lambda: len(list(checkpoints.glob("step-*.safetensors"))) >= 2, 30, "two checkpoints")
        for pid in self.server.pids("train"):
            with contextlib.suppress(ProcessLookupError):  # the ranks go with their parent
                os.kill(pid, signal.SIGKILL)
        process.wait()
        wait_until(lambda: not self.server.pids("train"), 10, "no rank left")
        newest = max(checkpoints.glob("step-*.safetensors"), key=lambda p: int(p.name.split("-")[1].split(".")[0]))
        self.damage(newest)
        done = self.train_folder(data, *options, "--output", self.server.root / "resumed")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(newest.name, done.stderr)
        self.assertEqual((self.server.root / "resumed").read_bytes(), (self.server.root / "straight").read_bytes())


if __name__ == "__main__":
    harness.main()

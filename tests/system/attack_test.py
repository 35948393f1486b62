#!/usr/bin/env python3
"""Hostile requests: none may end the server, take memory without a bound, or keep others waiting.

Each test plays an attack against the server that it started itself, and asks afterwards: is the
attack refused or bounded, does /health answer at once, and how much memory does the server hold?
"""
import contextlib
import json
import os
import pathlib
import pty
import resource
import socket
import subprocess
import time
import urllib.request

from harness import WEIR, HttpError, Server, main, unittest, wait_until

MIB = 1 << 20
PGM = b"P5\n2 2\n255\nabcd"


class AttackTest(unittest.TestCase):
    def setUp(self):
        self.server = Server("--no-agent", "--grpc-listen", "127.0.0.1:0").start()
        self.addCleanup(self.server.stop)

    def rss(self, field="VmRSS"):
        text = pathlib.Path(f"/proc/{self.server.process.pid}/status").read_text()
        return next(int(line.split()[1]) << 10 for line in text.splitlines() if line.startswith(field + ":"))

    def assert_well(self, rss_below):
        """The server lives, answers at once, and its memory never was more than that."""
        self.assertIsNone(self.server.process.poll(), self.server.log_text())
        begin = time.monotonic()
        with urllib.request.urlopen(self.server.url + "/health", timeout=10) as answer:
            self.assertEqual(answer.status, 200)
        self.assertLess(time.monotonic() - begin, 5)
        self.assertLess(self.rss("VmHWM"), rss_below, "peak memory")

    def assert_refused(self, code, call):
        with self.assertRaises(HttpError) as caught:
            call()
        self.assertEqual(caught.exception.code, code, caught.exception.body[:300])
        return caught.exception.error["message"]

    def command(self, **spec):
        return self.server.post("/jobs", {"name": "x", "kind": "command", "spec": {"argv": ["true"], **spec}})


class TextTest(AttackTest):
    """Much text in jobs and decisions."""

    def test_tasks_times_text_is_refused(self):
        message = self.assert_refused(413, lambda: self.command(tasks=1024, files={"d": "x" * 100_000}))
        self.assertIn("1024 tasks", message)
        self.assert_refused(413, lambda: self.command(tasks=1024, files={"d": "x" * 900_000}))
        self.assertEqual(self.server.get("/jobs")["items"], [])
        self.assert_well(200 * MIB)

    def test_many_large_jobs_in_the_queue_survive_a_restart(self):
        for _ in range(60):
            self.command(files={"d": "x" * 1_000_000})
        self.assertEqual(self.command(tasks=64, files={"d": "x" * 100_000})["state"], "PENDING")
        self.assert_well(400 * MIB)
        self.server.kill()
        self.server.start()
        # the engine comes round to all of them: each gets its reason
        wait_until(lambda: self.n_with_reason() == 61, 60, "the engine's reason for each job")
        self.assert_well(400 * MIB)

    def pages(self, path):
        """Items of all pages; and how many pages there were."""
        items, n, cursor = [], 0, None
        while n == 0 or cursor is not None:
            page = self.server.get(path + (f"&cursor={cursor}" if cursor else ""))
            items += page["items"]
            n, cursor = n + 1, page["next"]
        return items, n

    def n_with_reason(self):
        items, n_pages = self.pages("/jobs?limit=1000")
        self.assertGreater(n_pages, 1)
        return sum(1 for job in items if job["reason"] is not None)

    def test_decisions_have_bounded_fields(self):
        def ship(**fields):
            body = {"decisions": [{"id": "d", "ion": "i", "pipeline": "p", "replica": "r", "camera": "c",
                                   "frame": 1, "verdict": "grant", **fields}]}
            return self.server.post("/decisions", body)

        message = self.assert_refused(413, lambda: ship(person="x" * 3_900_000))
        self.assertIn("$.decisions[0].person", message)
        self.assert_refused(413, lambda: ship(id="x" * 5000))
        self.assertEqual(ship(person="x" * 255)["stored"], 1)
        self.assertEqual(len(self.server.get("/decisions?limit=1000")["items"]), 1)
        self.assert_well(200 * MIB)

    def test_a_body_of_many_values_is_refused(self):
        body = b'{"name":"x","kind":"command","spec":[' + b"[]," * 300_000 + b"[]]}"
        message = self.assert_refused(413, lambda: self.server.request("POST", "/api/v1/jobs", body))
        self.assertIn("values", message)
        self.assert_well(100 * MIB)


class StrangerTest(AttackTest):
    """Without a token: bodies, and connections that say nothing."""

    def connect(self):
        host, port = self.server.url.removeprefix("http://").split(":")
        connection = socket.create_connection((host, int(port)), timeout=20)
        self.addCleanup(connection.close)
        return connection

    def test_bodies_of_strangers_are_not_read(self):
        before = self.rss()
        head = "PUT /api/v1/datasets/x/files/a/b HTTP/1.1\r\nHost: x\r\n{}\r\n"
        answers = []
        for framing in ["Content-Length: 67108864\r\n"] * 12 + ["Transfer-Encoding: chunked\r\n"] * 12:
            connection = self.connect()
            connection.sendall(head.format(framing).encode())
            try:  # as many of 63 MiB as it takes
                if framing.startswith("T"):
                    connection.sendall(b"3f00000\r\n")
                for _ in range(63):
                    connection.sendall(bytes(MIB))
            except OSError:
                pass
            try:
                answers.append(connection.recv(100))
            except ConnectionResetError:
                answers.append(b"")
        self.assertLess(self.rss("VmHWM") - before, 40 * MIB)
        for answer in answers:
            self.assertIn(answer[:12], (b"HTTP/1.1 401", b""))
        self.assertIn(b"HTTP/1.1 401", {answer[:12] for answer in answers})
        self.assert_well(100 * MIB)

    def test_who_may_not_call_the_route_is_not_read_either(self):
        viewer = self.server.post("/tokens", {"name": "v", "role": "viewer"})["secret"]
        connection = self.connect()
        connection.sendall((f"POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {viewer}\r\n"
                            "Content-Length: 1000000\r\n\r\n").encode())
        self.assertIn(b"HTTP/1.1 403", connection.recv(100))  # before a byte of the body

    def test_idle_connections_keep_nobody_out(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        for i in range(min(4300, hard - 200)):
            self.connect()
            if i % 500 == 0:
                self.assert_well(200 * MIB)
        self.assert_well(200 * MIB)

    def test_a_request_with_two_meanings_is_400(self):
        for framing in ("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", "Content-Length: 4\r\nContent-Length: 5\r\n",
                        "Transfer-Encoding : chunked\r\n"):
            connection = self.connect()
            connection.sendall(f"POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\n{framing}\r\n".encode())
            answer = b""
            while chunk := connection.recv(4096):
                answer += chunk
            self.assertTrue(answer.startswith(b"HTTP/1.1 400"), answer[:200])


class PasswordTest(AttackTest):
    """Guesses at a password: slowed, told of, and in nobody's way."""

    def log_in(self, user, password, address):
        """The status of a login from this address of the machine, and its Retry-After."""
        host, port = self.server.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=30, source_address=(address, 0)) as connection:
            body = json.dumps({"user": user, "password": password}).encode()
            connection.sendall(b"POST /api/v1/password-login HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                               b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            answer = b""
            while chunk := connection.recv(4096):
                answer += chunk
        return int(answer[9:12]), b"Retry-After:" in answer

    def test_guesses_are_slowed_and_told_and_keep_nobody_out(self):
        for name in ("ann", "ben"):
            self.server.post("/users", {"name": name, "kind": "person", "role": "viewer"})
            self.server.request("PUT", f"/api/v1/users/{name}/password", {"password": f"the right one of {name}"})
        self.assertEqual(self.log_in("ben", "the right one of ben", "127.0.0.9")[0], 200)
        codes = [self.log_in("ann", "wrong", "127.0.0.2")[0] for _ in range(8)]
        self.assertEqual(codes[:5], [401] * 5)
        self.assertIn(503, codes[5:])
        self.assertEqual(self.log_in("ann", "the right one of ann", "127.0.0.2"), (503, True))
        self.assertEqual(self.log_in("ann", "the right one of ann", "127.0.0.3")[0], 200)
        self.assertEqual(self.log_in("ben", "the right one of ben", "127.0.0.9")[0], 200)
        rows = [e for e in self.server.get("/audit?limit=100")["items"] if e["kind"] == "login_refused"]
        self.assertIn("user/ann", {row["subject"] for row in rows})
        self.assert_well(300 * MIB)


class DeputyTest(AttackTest):
    """What acts for somebody does no more than they may."""

    def test_a_rule_does_what_its_maker_may(self):
        self.server.post("/roles", {"name": "ruler", "rights": ["change alert rules", "read alerts"]})
        self.server.post("/users", {"name": "eve", "kind": "person", "role": "member"})
        self.server.request("PUT", "/api/v1/projects/default/members/user/eve", {"role": "ruler"})
        eve = self.server.post("/tokens", {"user": "eve", "name": "t", "role": "member"})["secret"]
        rule = {"receivers": [], "project": "default", "actions": [{"kind": "pause"}]}

        def put(rule):
            return self.server.request("PUT", "/api/v1/alert-rules/evil", rule, token=eve)

        message = self.assert_refused(403, lambda: put(rule))
        self.assertIn("pause ions", message)
        self.assertEqual(put({**rule, "actions": []})["set_by"], "eve")


class GrpcTest(AttackTest):
    """Messages of strangers over gRPC."""

    def frame(self, kind, flags, stream, payload):
        return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload

    def headers(self, path):
        """Literal fields without indexing and without Huffman."""
        def text(value):
            return bytes((len(value),)) + value.encode()
        return b"".join(b"\0" + text(name) + text(value) for name, value in (
            (":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "x"),
            ("content-type", "application/grpc"), ("te", "trailers"), ("authorization", "Bearer weir_nobody")))

    def has_headers(self, connection):
        """Does an answer come, in a frame of headers?"""
        with connection.makefile("rb") as stream:
            while head := stream.read(9):
                stream.read(int.from_bytes(head[:3], "big"))
                if head[3] == 1:
                    return True
        return False

    def test_messages_of_strangers_are_not_held(self):
        address = json.loads((self.server.state / "server.json").read_text())["grpc"]
        host, port = address.rsplit(":", 1)
        before = self.rss("VmHWM")
        answered = 0
        for _ in range(5):
            connection = socket.create_connection((host, int(port)), timeout=20)
            self.addCleanup(connection.close)
            call = self.frame(1, 4, 1, self.headers("/inference.GRPCInferenceService/ModelInfer"))
            # With the largest window that a server gives, and more: what it does not ask for it may drop or refuse.
            connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + self.frame(4, 0, 0, b"") + call)
            with contextlib.suppress(OSError):
                connection.sendall(self.frame(0, 0, 1, b"\0\x03\xa0\0\0" + bytes(16000)) +
                                   b"".join(self.frame(0, 0, 1, bytes(16384)) for _ in range(3500)))
            with contextlib.suppress(OSError):
                answered += self.has_headers(connection)
        self.assertGreater(answered, 0)
        self.assertLess(self.rss("VmHWM") - before, 30 * MIB)
        self.assert_well(200 * MIB)


class DatasetTest(AttackTest):
    """Folders that hang, links out of them, folders that are nobody's dataset."""

    def dataset(self, name="faces", **fields):
        return self.server.post("/datasets", {"name": name, **fields})

    def test_folders_of_the_system_and_of_the_state_are_refused(self):
        state = str(self.server.state)
        for path in ("/", "/proc", "/proc/self", "/sys", "/dev", "/etc", "/etc/ssl", state, state + "/blobs",
                     str(self.server.root), "relative", "/nonexistent"):
            with self.subTest(path):
                self.assert_refused(400, lambda: self.dataset(path=path))
        link = self.server.root / "link"
        link.symlink_to("/etc")
        self.assert_refused(400, lambda: self.dataset(path=str(link)))
        viewer = self.server.post("/tokens", {"name": "v", "role": "viewer"})["secret"]
        self.assert_refused(403, lambda: self.server.request("POST", "/api/v1/datasets", {"name": "x"}, token=viewer))

    def test_links_are_never_followed(self):
        secret = self.server.root / "secret"
        secret.write_bytes(b"top secret")
        self.dataset()
        self.server.request("PUT", "/api/v1/datasets/faces/files/ada/1.pgm", PGM)
        folder = self.server.state / "datasets/faces"
        link = folder / "ada/2.pgm"
        link.symlink_to(secret)
        message = self.assert_refused(400, lambda: self.server.post("/datasets/faces/versions"))
        self.assertIn("ada/2.pgm is a link", message)
        self.server.request("PUT", "/api/v1/datasets/faces/files/ada/2.pgm", PGM)  # in place of the link
        self.assertEqual(secret.read_bytes(), b"top secret")
        self.assertFalse(link.is_symlink())
        (folder / "eve").symlink_to(self.server.root)
        self.assert_refused(400, lambda: self.server.request("PUT", "/api/v1/datasets/faces/files/eve/x", PGM))
        self.assert_refused(400, lambda: self.server.post("/datasets/faces/versions"))
        (folder / "eve").unlink()
        folder.rename(self.server.root / "elsewhere")
        folder.symlink_to(self.server.root / "elsewhere")
        self.assert_refused(400, lambda: self.server.post("/datasets/faces/versions"))
        self.assertEqual(sorted(path.name for path in self.server.root.glob("x")), [])
        blobs = [path for path in (self.server.state / "blobs").rglob("*") if path.is_file()]
        self.assertNotIn(b"top secret", [path.read_bytes() for path in blobs])

    def test_a_file_that_does_not_answer_holds_up_nobody(self):
        folder = self.server.root / "pictures"
        (folder / "ada").mkdir(parents=True)
        (folder / "ada/1.pgm").write_bytes(PGM)
        os.mkfifo(folder / "ada/2.pgm")  # a reader that opened it would wait for a writer
        self.dataset(path=str(folder))
        version = self.server.post("/datasets/faces/versions")
        self.assertEqual(version["n_files"], 1)  # what is no file is left out
        self.assert_well(100 * MIB)

    def test_freezes_that_take_long_hold_up_nobody(self):
        for name in "abcdef":
            folder = self.server.root / name
            (folder / "x").mkdir(parents=True)
            with open(folder / "x/large", "wb") as file:
                file.truncate(40 << 30)  # sparse: minutes to hash, no disk
            self.dataset(name, path=str(folder))
        begun = [self.server.post(f"/datasets/{name}/versions?wait_s=0") for name in "abcd"]
        self.assertEqual([progress["state"] for progress in begun], ["running"] * 4)
        self.assert_refused(503, lambda: self.server.post("/datasets/e/versions?wait_s=0"))
        again = self.server.post("/datasets/a/versions?wait_s=0")  # joins the one in progress
        self.assertEqual(again["state"], "running")
        wait_until(lambda: self.server.get("/datasets/a/freeze")["bytes"] > MIB, 20, "progress")
        self.assert_well(100 * MIB)
        begin = time.monotonic()
        self.server.kill(15)
        self.assertLess(time.monotonic() - begin, 10)

    def test_damaged_pictures_are_named(self):
        self.dataset()
        put = lambda name, data: self.server.request("PUT", f"/api/v1/datasets/faces/files/ada/{name}", data)
        put("1.pgm", PGM)
        put("2.png", b"\x89PNG\r\n\x1a\n cut")
        put("3.jpg", b"hello")
        self.assertIn("empty", self.assert_refused(400, lambda: put("4.jpg", b"")))
        version = self.server.post("/datasets/faces/versions")
        self.assertEqual((version["n_files"], version["n_damaged"]), (3, 2))
        self.assertIn("ada/2.png is cut off", version["damaged"])


    def test_put_looks_at_all_files_before_it_sends_one(self):
        folder = self.server.root / "people"
        for name, data in (("ada/1.pgm", PGM), ("ada/2.pgm", b""), ("bob/1.png", b"\x89PNG\r\n\x1a\n cut")):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
        self.server.weir("dataset", "create", "faces")
        # An empty file is left out; one with something in it too, and then the status says so.
        (folder / "bob/large.png").touch()
        os.truncate(folder / "bob/large.png", 64 * MIB + 1)
        status, stdout, stderr = self.server.weir("dataset", "put", "faces", str(folder), check=False)
        self.assertEqual(status, 2)
        self.assertIn("2 of 4 files are left out: ada/2.pgm is empty, bob/large.png is larger than 64 MiB", stderr)
        self.assertIn("1 of the files that were left out is not empty", stderr)
        self.assertIn("2 files put", stdout)
        (folder / "bob/large.png").unlink()
        (folder / "ada/Thumbs.db").write_bytes(b"x")
        (folder / "bob/names.csv").write_bytes(b"name\nbob\n")
        _, stdout, stderr = self.server.weir("dataset", "put", "faces", str(folder))
        self.assertIn("3 files put", stdout)
        self.assertIn("bob/1.png is cut off", stderr)
        self.assertIn("1 of 4 files is left out: ada/2.pgm is empty", stderr)
        self.assertIn("1 of 3 files are no pictures (JPEG, PNG, PGM or PPM)", stderr)
        _, stdout, stderr = self.server.weir("dataset", "freeze", "faces")
        self.assertIn("version 1: 3 files in 2 classes", stdout)
        self.assertIn("1 of 3 files seem damaged", stderr)
        self.assertIn("bob/1.png is cut off", stderr)
        self.assertIn("1 of 3 files are no pictures", stderr)


class TerminalTest(AttackTest):
    """What a task prints must not steer the terminal of who reads it."""

    def logs_on_a_terminal(self, *arguments):
        master, slave = pty.openpty()
        with os.fdopen(master, "rb", buffering=0) as output:
            subprocess.run([WEIR, "logs", *arguments, "--state", str(self.server.state)], stdout=slave, check=True, timeout=60)
            os.close(slave)
            return output.read(4096)

    def test_control_characters_of_a_log_are_harmless(self):
        job = self.command()["id"]
        task = self.server.get(f"/jobs/{job}/tasks")["items"][0]["id"]
        log = b"\x1b]0;evil\x07 \xc2\x9b31m \x7f gr\xc3\xb6\xc3\x9fe\tok\n"
        self.server.request("POST", f"/api/v1/tasks/{task}/log?offset=0&attempt=0", log)
        shown = self.logs_on_a_terminal(job)
        self.assertEqual(shown.strip(), "?]0;evil? ??31m ? größe\tok".encode())
        self.assertIn(b"\x1b]0;evil\x07", self.logs_on_a_terminal(job, "--raw"))
        piped = subprocess.run([WEIR, "logs", job, "--state", str(self.server.state)], capture_output=True, timeout=60)
        self.assertEqual(piped.stdout, log)
        with urllib.request.urlopen(urllib.request.Request(
                f"{self.server.url}/api/v1/tasks/{task}/log", headers={"Authorization": "Bearer " + self.server.token})) as answer:
            self.assertEqual(answer.headers["Content-Type"], "text/plain; charset=utf-8")
            self.assertEqual(answer.headers["X-Content-Type-Options"], "nosniff")


class UnreadableTest(AttackTest):
    """What is in the database already: one damaged ION must not stop the others, nor the server."""

    def test_a_damaged_ion_is_named_and_can_be_deleted(self):
        import sqlite3
        self.server.kill()
        with sqlite3.connect(self.server.state / "weir.db") as database:
            database.execute("INSERT INTO ions (name, project, document, state, revision, list_revision, n_decisions,"
                             " n_served, created_by, created_ms, updated_ms)"
                             " VALUES ('broken', 'default', '{\"kind\":', 'ACTIVE', 1, 0, 0, 0, 'admin', 1, 1)")
        database.close()
        self.server.start()
        job = self.command()
        alert = wait_until(lambda: next(iter(self.server.get("/alerts?kind=unreadable")["items"]), None), 20, "alert")
        self.assertIn("broken", alert["message"])
        self.assertIn("weir delete broken", alert["message"])
        shown = self.server.get("/ions")["items"]
        self.assertEqual([ion["name"] for ion in shown], ["broken"])
        self.assertIn("problem", shown[0])
        wait_until(lambda: self.server.get(f"/jobs/{job['id']}")["reason"], 20, "the engine goes on with others")
        self.server.weir("delete", "broken")
        self.assertEqual(self.server.get("/ions")["items"], [])
        self.assertEqual(self.server.get("/alerts?kind=unreadable")["items"][0]["state"], "resolved")
        self.assert_well(100 * MIB)


if __name__ == "__main__":
    main()

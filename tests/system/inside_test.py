"""A look into a task that runs: a shell at a terminal, commands, files, ports; who may, what is written of it, and how it ends."""
import concurrent.futures
import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import pty
import random
import select
import signal
import socket
import struct
import subprocess
import termios
import threading
import time
import unittest

from harness import WEIR, HttpError, Server, main, wait_until

VISITS = int(os.environ.get("WEIR_VISITS", "8"))  # at once
ENDED = ("SUCCEEDED", "FAILED", "CANCELLED")
# Answers what it gets, and listens as long as its task lives.
ECHO = """
import os, socketserver, sys
class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while data := self.request.recv(65536):
            self.request.sendall(data)
class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
server = Server(("127.0.0.1", 0), Echo)
print("port", server.server_address[1], flush=True)
server.serve_forever()
"""


class Terminal:
    """`weir job shell` at a terminal of ours."""

    def __init__(self, *argv, rows=31, columns=97):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.environ["TERM"] = "vt100"
            os.execv(argv[0], argv)
        self.text = b""

    def expect(self, what, seconds=20):
        deadline = time.monotonic() + seconds
        while what not in self.text:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                raise AssertionError(f"no {what!r} in {self.text!r}")
            try:
                part = os.read(self.fd, 65536)
            except OSError:
                part = b""
            if not part:
                raise AssertionError(f"it ended without {what!r}: {self.text!r}")
            self.text += part
        before, _, self.text = self.text.partition(what)
        return before

    def type(self, text):
        os.write(self.fd, text)

    def kill(self):
        with contextlib.suppress(OSError):
            os.kill(self.pid, signal.SIGKILL)

    def end(self):
        while True:
            try:
                part = os.read(self.fd, 65536)
            except OSError:
                part = b""
            if not part:
                break
            self.text += part
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.fd)
        return status


class InsideTest(unittest.TestCase):
    """One server, several jobs that wait to be looked into."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server().start("--cpu-slots", "12")
        cls.addClassCleanup(cls.server.stop)
        cls.token = None
        wait_until(lambda: cls.server.get("/nodes")["items"], 20, "the node")
        cls.jobs = {}
        for name, argv in (("idle", ["sleep", "3600"]), ("echo", ["python3", "-u", "-c", ECHO])):
            cls.begin(name, argv)

    @classmethod
    def begin(cls, name, argv, **spec):
        job = cls.server.post("/jobs", {"name": name, "kind": "command", "max_restarts": 0,
                                        "spec": {"argv": argv, "env": {"COLOUR": "blue"}, **spec}})["id"]
        cls.jobs[name] = job
        wait_until(lambda: cls.server.get(f"/jobs/{job}")["state"] != "PENDING" and
                   all(task["state"] == "RUNNING" for task in cls.server.get(f"/jobs/{job}/tasks")["items"]), 30, f"{name} to run")
        return job

    def argv(self, *words):
        n_own = words.index("--") if "--" in words else len(words)
        return [WEIR, *words[:n_own], "--state", str(self.server.state), *words[n_own:]]

    def run_weir(self, *words, input=None, timeout=60):
        return subprocess.run(self.argv(*words), input=input, capture_output=True, timeout=timeout,
                              stdin=subprocess.DEVNULL if input is None else None)

    def popen(self, *words, **options):
        process = subprocess.Popen(self.argv(*words), **options)
        self.addCleanup(process.__exit__, None, None, None)
        self.addCleanup(process.kill)
        return process

    def inside(self, job="idle"):
        """The processes in the task, but for those that look."""
        text = self.run_weir("job", "exec", job, "--", "ps", "axo", "args").stdout.decode()
        return [line for line in text.splitlines()[1:] if not line.startswith("ps axo")]

    def audit(self, kind):
        return self.server.request("GET", "/api/v1/events?topic=audit&limit=1000&newest=1&kind=" + kind)["items"]

    def visits_of_the_node(self):
        names = []
        for pid in self.server.pids():
            with contextlib.suppress(OSError):
                names.append(pathlib.Path(f"/proc/{pid}/comm").read_text())
        return [name for name in names if name == "weir-visit\n"]

    # ---- commands -----------------------------------------------------------------------------------

    def test_a_command_is_where_the_task_is_and_ends_as_it_ends(self):
        done = self.run_weir("job", "exec", "idle", "--", "sh", "-c",
                             "echo $COLOUR $WEIR_RANK; pwd; id -u; cat; echo oops >&2; grep -E 'NoNewPrivs|Seccomp:|CapEff' /proc/self/status; "
                             "cat /proc/self/cgroup; ls -d /proc/[0-9]*; exit 41", input=b"from here\n")
        self.assertEqual(done.returncode, 41, done)
        self.assertEqual(done.stderr, b"oops\n")
        lines = done.stdout.decode().splitlines()
        self.assertEqual(lines[0], "blue 0")
        self.assertTrue(lines[1].endswith("/work"), lines)
        self.assertIn("from here", lines)
        self.assertIn("NoNewPrivs:\t1", lines)
        task = self.server.get(f"/jobs/{self.jobs['idle']}/tasks")["items"][0]
        own = pathlib.Path(f"/proc/{task['pid']}/cgroup").read_text().splitlines()
        self.assertEqual([line for line in lines if line in own], own)
        text = pathlib.Path(f"/proc/{task['pid']}/status").read_text()
        status = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
        self.assertEqual(lines[2], status["Uid"].split()[0])
        self.assertIn("CapEff:\t" + status["CapEff"], lines)
        self.assertIn("Seccomp:\t" + status["Seccomp"], lines)
        for code, argv in ((127, ["no-such-program"]), (126, ["/etc/passwd"]), (137, ["sh", "-c", "kill -9 $$"])):
            self.assertEqual(self.run_weir("job", "exec", "idle", "--", *argv).returncode, code, argv)
        self.assertEqual(self.run_weir("job", "exec", "idle", "--no-input", "--", "cat", input=b"x").stdout, b"")
        for words, said in ((("idle/7", "--", "ls"), 'no task "7"'), (("none", "--", "ls"), 'no job "none"'),
                            (("idle", "ls"), "put -- in front")):
            self.assertIn(said, self.run_weir("job", "exec", *words).stderr.decode())

    def test_bytes_pass_as_they_are_both_ways(self):
        seed = int.from_bytes(os.urandom(4), "big")
        print("seed", seed)
        data = random.Random(seed).randbytes(3_000_000)
        done = self.run_weir("job", "exec", "idle", "--", "cat", input=data)
        self.assertEqual(hashlib.sha256(done.stdout).digest(), hashlib.sha256(data).digest())
        self.assertEqual(done.returncode, 0)

    def test_who_does_not_read_holds_up_the_writer(self):
        process = self.popen("job", "exec", "idle", "--", "yes", stdout=subprocess.PIPE)
        self.assertEqual(process.stdout.read(8), b"y\ny\ny\ny\n")

        def memory():
            pages = 0
            for pid in (process.pid, self.server.process.pid, *self.server.pids("weir agent")):
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # what an agent starts has its name for a moment
                    pages += int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1])
            return pages * 4096

        def spent():  # of the program's time: it waits
            rows = json.loads(self.run_weir("job", "top", "idle", "-o", "json").stdout)
            return sum(row["cpu_ms"] for row in rows if row["command"].strip() == "yes")

        before = memory()
        wait_until(lambda: spent() == spent(), 20, "it to be held up")
        self.assertLess(memory() - before, 16 << 20)
        self.assertIn("yes", self.inside())
        process.stdout.read(1 << 20)
        process.stdout.close()  # nobody reads it: it ends, as of a pipe
        self.assertEqual(process.wait(timeout=20), 141)
        wait_until(lambda: "yes" not in self.inside(), 20, "it to end there")

    def test_signals_are_passed_on(self):
        process = self.popen("job", "exec", "idle", "--", "sh", "-c", "trap 'echo told; exit 9' INT; echo ready; while :; do sleep 0.05; done",
                             stdout=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.stdout.read(), b"told\n")
        self.assertEqual(process.wait(timeout=20), 9)

    def test_many_at_once(self):
        processes = [self.popen("job", "exec", "idle", "--", "sh", "-c", f"read word; echo $word {number}", stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE) for number in range(VISITS)]
        wait_until(lambda: len(self.server.get(f"/jobs/{self.jobs['idle']}/visits")["items"]) >= VISITS, 60, "all to be inside")
        said = [process.communicate(b"hello\n", timeout=60)[0] for process in processes]
        self.assertEqual(said, [f"hello {number}\n".encode() for number in range(VISITS)])
        if VISITS > 8:  # one too many is told so
            processes = [self.popen("job", "exec", "idle", "--", "cat", stdin=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(70)]
            refused = wait_until(lambda: [process for process in processes if process.poll() is not None], 60, "some to be refused")
            self.assertIn(b"64 are inside this job already", refused[0].stderr.read())

    # ---- a shell ------------------------------------------------------------------------------------

    def test_a_shell_at_a_terminal(self):
        terminal = Terminal(*self.argv("job", "shell", "idle/command-0"))
        self.addCleanup(terminal.kill)
        terminal.expect(b"$ ")
        terminal.type(b"stty size; echo $TERM-$COLOUR; test -t 0 && echo is_a_tt''y; tty\n")
        terminal.expect(b"31 97")
        terminal.expect(b"vt100-blue")
        terminal.expect(b"is_a_tty")
        terminal.expect(b"/dev/pts/")
        fcntl.ioctl(terminal.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 132, 0, 0))
        terminal.type(b"until [ \"$(stty size)\" = '50 132' ]; do :; done; echo resi''zed\n")
        terminal.expect(b"resized")
        terminal.type(b"sleep 1234\n")
        wait_until(lambda: "sleep 1234" in self.inside(), 20, "it to sleep")
        terminal.type(b"\x03")
        terminal.expect(b"$ ")
        terminal.type(b"echo inter''rupted\n")
        terminal.expect(b"interrupted")
        before = termios.tcgetattr(terminal.fd)
        self.assertFalse(before[3] & termios.ECHO)  # raw, while it is inside
        terminal.type(b"printf '\\033[?1049h\\033[?1000h\\033[31m'; exit 5\n")
        self.assertEqual(terminal.end(), 5)
        self.assertIn(b"\033[?1000l", terminal.text)
        self.assertIn(b"\033[?1047l", terminal.text)
        events = wait_until(lambda: [event for event in self.audit("visit_ended") if event["message"].startswith("shell of admin")], 20,
                            "its end in the audit")
        self.assertIn("exit 5", events[0]["message"])
        self.assertNotIn("1049h", json.dumps(self.audit("visit_begun") + events))  # what is typed is nowhere

    # ---- files --------------------------------------------------------------------------------------

    def test_files_are_copied_whole_or_not_at_all(self):
        root = self.server.root
        data = os.urandom(2_000_001)
        (root / "here").write_bytes(data)
        (root / "here").chmod(0o755)
        self.assertEqual(self.run_weir("job", "cp", str(root / "here"), "idle:").returncode, 0)
        self.assertEqual(self.run_weir("job", "cp", str(root / "here"), "idle:/tmp/there").returncode, 0)
        done = self.run_weir("job", "exec", "idle", "--", "sh", "-c", "stat -c %a:%U here; cmp here /tmp/there && echo same")
        self.assertEqual(done.stdout, b"755:weir-task\nsame\n", done)
        self.assertEqual(self.run_weir("job", "cp", "idle/0:/tmp/there", str(root / "back")).returncode, 0)
        self.assertEqual((root / "back").read_bytes(), data)
        self.run_weir("job", "exec", "idle", "--", "ln", "-sf", "/etc/shadow", "link")
        for words, said in ((("idle:none", str(root / "x")), "none: No such file"), (("idle:/tmp", "-"), "is a folder"),
                            (("idle:link", str(root / "x")), "Permission denied"),
                            (("idle:/proc/self/maps", str(root / "x")), "tells of a process"),
                            ((str(root / "here"), "idle:/etc/x"), "denied"), ((str(root / "none"), "idle:x"), "none: No such file"),
                            (("a", "b"), "JOB[/TASK]:PATH"), (("idle:a", "idle:b"), "JOB[/TASK]:PATH")):
            done = self.run_weir("job", "cp", *words)
            self.assertIn(said, done.stderr.decode())
            self.assertNotEqual(done.returncode, 0)
        self.assertFalse((root / "x").exists())
        # Who goes away before the end leaves nothing there.
        process = self.popen("job", "cp", "-", "idle:half", stdin=subprocess.PIPE)
        process.stdin.write(b"x" * 100_000)
        process.stdin.flush()
        wait_until(lambda: b".weir-" in self.run_weir("job", "exec", "idle", "--", "ls", "-A").stdout, 20, "it to begin")
        process.kill()
        wait_until(lambda: b".weir-" not in self.run_weir("job", "exec", "idle", "--", "ls", "-A").stdout, 20, "it to be gone")
        self.assertNotIn(b"half", self.run_weir("job", "exec", "idle", "--", "ls", "-A").stdout)

    def test_a_folder_is_copied_with_all_below_it(self):
        def look(folder):
            return {str(path.relative_to(folder)): (path.lstat().st_mode, os.readlink(path) if path.is_symlink() else
                                                    path.is_file() and path.read_bytes()) for path in folder.rglob("*")}

        root = self.server.root / "tree"
        for i in range(40):
            (root / f"d{i}" / "empty").mkdir(parents=True)
            for k in range(25):
                (root / f"d{i}" / f"f\n{k}").write_bytes(os.urandom(10 * k))
        (root / "d1" / "f\n1").chmod(0o640)
        (root / "d2").chmod(0o700)
        (root / "d3" / "link").symlink_to("../d4/f\n4")
        (root / "out").symlink_to("/etc/passwd")
        before = look(root)
        done = self.run_weir("job", "cp", str(root), "idle:/tmp")
        self.assertEqual((done.returncode, done.stdout), (1, b"idle:/tmp: 1000 files, 0.1 MiB copied, less what was left out\n"), done)
        self.assertIn("/tree/out: a link that leads out of what is copied", done.stderr.decode())
        (root / "out").unlink()
        del before["out"]
        self.assertEqual(self.run_weir("job", "cp", str(root), "idle:/tmp/").returncode, 0)  # once more, over it
        done = self.run_weir("job", "cp", "idle:/tmp/tree", str(self.server.root / "tree-back"))
        self.assertEqual(done.returncode, 0, done)
        self.assertEqual(look(self.server.root / "tree-back"), before)
        # Cut in the middle: what is said to be there is there, whole.
        self.run_weir("job", "exec", "idle", "--", "sh", "-c", "mkdir much; for i in $(seq 60); do head -c 1000000 /dev/zero > much/$i; done")
        process = self.popen("job", "cp", "idle:much", str(self.server.root / "part"), stderr=subprocess.PIPE, stdout=subprocess.PIPE)
        wait_until(lambda: list((self.server.root / "part").glob("[0-9]*")), 20, "the first file")
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=20)[1].decode()
        self.assertIn("it was interrupted", said)
        files = [path.stat().st_size for path in (self.server.root / "part").iterdir()]
        self.assertEqual(files, [1_000_000] * int(said.split("weir: ")[1].split()[0]), said)

    # ---- ports --------------------------------------------------------------------------------------

    def test_a_port_with_many_connections(self):
        port = wait_until(lambda: [line for line in self.server.weir("logs", "echo")[1].splitlines() if line.startswith("port ")], 20,
                          "the port")[0].split()[1]
        process = self.popen("job", "forward", "echo", f"0:{port}", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        local = int(process.stdout.readline().split()[0].split(b":")[1])

        def talk(number):
            data = random.Random(number).randbytes(300_000)
            with socket.create_connection(("127.0.0.1", local), timeout=30) as connection:
                sender = threading.Thread(target=lambda: (connection.sendall(data), connection.shutdown(socket.SHUT_WR)))
                sender.start()
                got = b""
                while part := connection.recv(65536):
                    got += part
                sender.join()
            return got == data

        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            self.assertEqual(list(pool.map(talk, range(12))), [True] * 12)
        job = self.jobs["echo"]
        visits = self.server.get(f"/jobs/{job}/visits")["items"]
        self.assertEqual([(visit["kind"], visit["who"], visit["what"]) for visit in visits], [("forward", "admin", f"port {port}")])
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=20), 0)
        wait_until(lambda: not self.server.get(f"/jobs/{job}/visits")["items"], 20, "the visit to end")
        process = self.popen("job", "forward", "echo", "0:9", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        local = int(process.stdout.readline().split()[0].split(b":")[1])
        with socket.create_connection(("127.0.0.1", local), timeout=30) as connection:
            self.assertEqual(connection.recv(1), b"")
        self.assertIn(b"nobody listens on port 9", process.stderr.readline())

    def test_the_processes_of_a_job(self):
        rows = json.loads(self.run_weir("job", "top", "echo", "-o", "json").stdout)
        self.assertTrue(any("python" in row["command"] and row["rss_bytes"] > 1 << 20 for row in rows), rows)
        self.assertIn(b"CPU %", self.run_weir("job", "top", "echo/0").stdout)

    # ---- who may ------------------------------------------------------------------------------------

    def test_others_are_told_what_they_are_told_of_no_job(self):
        server, job = self.server, self.jobs["idle"]
        server.post("/projects", {"name": "other"})
        tokens = {}
        for name, project, role in (("nan", "other", "ml-engineer"), ("vic", "default", "viewer"), ("dan", "default", "data-scientist")):
            server.post("/users", {"name": name, "kind": "person", "role": "member"})
            server.request("PUT", f"/api/v1/projects/{project}/members/user/{name}", {"role": role})
            tokens[name] = server.post("/tokens", {"user": name, "name": "t", "role": role})["secret"]

        def ask(token, path, body=None):
            try:
                return server.request("POST" if body else "GET", "/api/v1" + path, body, token=token)
            except HttpError as error:
                return error.code, error.error["message"]

        body = {"kind": "exec", "command": ["id"]}
        none = "01a00000-0000-7000-8000-000000000000"
        there, not_there = ask(tokens["nan"], f"/jobs/{job}/visits", body), ask(tokens["nan"], f"/jobs/{none}/visits", body)
        self.assertEqual(there[0], 404, there)
        self.assertEqual(there[1].replace(job, none), not_there[1])
        self.assertEqual(ask(tokens["nan"], f"/jobs/{job}/visits")[0], 404)
        self.assertEqual(ask(tokens["vic"], f"/jobs/{job}/visits", body)[0], 403)
        # Who may end no job of others goes into none of theirs: from inside it can be ended.
        server.post("/roles", {"name": "sender", "description": "sends jobs", "rights": ["submit jobs", "read jobs"]})
        server.post("/users", {"name": "sam", "kind": "person", "role": "member"})
        server.request("PUT", "/api/v1/projects/default/members/user/sam", {"role": "sender"})
        sam = server.post("/tokens", {"user": "sam", "name": "t", "role": "member"})["secret"]
        code, said = ask(sam, f"/jobs/{job}/visits", body)
        self.assertEqual(code, 403)
        self.assertIn("the right to cancel jobs, too", said)
        visit = ask(tokens["dan"], f"/jobs/{job}/visits", body)["id"]
        # The visit is its maker's alone, and the task's side is for who has the stream's secret.
        for token, path in ((tokens["nan"], "stream"), (server.token, "stream"), ("", "place"), (tokens["dan"], "place")):
            self.assertIn(self.upgrade(token, f"/api/v1/visits/{visit}/{path}"), (401, 404), path)
        for role in (tokens["nan"], tokens["dan"]):
            environment = {**os.environ, "WEIR_TOKEN": role}
            done = subprocess.run([WEIR, "job", "exec", "--server", server.url, "--token", role, job, "--", "id", "-u"], capture_output=True,
                                  env=environment, timeout=60, stdin=subprocess.DEVNULL)
            self.assertEqual(done.returncode, 4 if role == tokens["nan"] else 0, done)
        # Nor may a task, with its own token, go into another or itself.
        task_token = self.run_weir("job", "exec", "idle", "--", "cat", "token").stdout.decode().strip()
        self.assertEqual(ask(task_token, f"/jobs/{job}/visits", body)[0], 403)
        if VISITS <= 8:
            return
        # Whose token is taken back goes out, within 10 s.
        process = subprocess.Popen([WEIR, "job", "exec", "--server", server.url, "--token", tokens["dan"], job, "--", "sleep", "2345"],
                                   stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        self.addCleanup(process.__exit__, None, None, None)
        self.addCleanup(process.kill)
        wait_until(lambda: any("2345" in line for line in self.inside()), 20, "it to begin")
        (token,) = [token["id"] for token in server.get("/tokens")["items"] if token["user"] == "dan"]
        server.request("DELETE", f"/api/v1/tokens/{token}")
        self.assertEqual(process.wait(timeout=30), 255)
        self.assertIn(b"may not be so any more", process.stderr.read())

    def upgrade(self, token, path, *lines, send=b""):
        host, port = self.server.url.split("//")[1].split(":")
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            head = [f"GET {path} HTTP/1.1", "Host: x", "Connection: Upgrade", "Upgrade: weir-visit", *lines]
            head += [f"Authorization: Bearer {token}"] if token else []
            connection.sendall("\r\n".join(head + ["", ""]).encode() + send)
            got = b""
            while part := connection.recv(65536):
                got += part
                if b" 101 " not in got.partition(b"\r\n")[0]:
                    break
        self.body = got.partition(b"\r\n\r\n")[2]
        return int(got.split()[1])

    def test_what_is_said_of_a_visit_is_text_wherever_it_is_cut(self):
        job, seed = self.jobs["idle"], int.from_bytes(os.urandom(4), "big")
        print("seed", seed)
        rng = random.Random(seed)
        lengths = [398, 399, *rng.sample(range(380, 398), 4)]
        for n in lengths:
            visit = self.server.post(f"/jobs/{job}/visits", {"kind": "exec", "command": ["e" * n + rng.choice("é€😀") * 9]})
            self.assertLessEqual(len(visit["what"].encode()), 400)
            self.assertIn(visit["id"], [other["id"] for other in self.server.get(f"/jobs/{job}/visits")["items"]])
        said = [event["message"] for event in self.audit("visit_begun") if ": eeee" in event["message"]]
        self.assertEqual(len(said), len(lengths))

    def test_what_is_no_frame_ends_the_visit(self):
        for sent in (b"\x01\xff\xff\xff\xff", b"\x12\0\0\0\x01x", b"\x63\0\0\0\0", b"\x01\0\0\0\0", os.urandom(64) + b"\x99" * 64):
            visit = self.server.post(f"/jobs/{self.jobs['idle']}/visits", {"kind": "exec", "command": ["sleep", "4321"]})["id"]
            self.assertEqual(self.upgrade(self.server.token, f"/api/v1/visits/{visit}/stream", send=sent), 101)
        wait_until(lambda: not any("4321" in line for line in self.inside()), 20, "what they began to end")
        visits = self.server.get(f"/jobs/{self.jobs['idle']}/visits")["items"]
        self.assertEqual([visit for visit in visits if "4321" in visit["what"]], [])
        # A forwarded port's first stream takes no input: its runner breaks off, and does not break down.
        visit = self.server.post(f"/jobs/{self.jobs['idle']}/visits", {"kind": "forward", "port": 80})["id"]
        self.assertEqual(self.upgrade(self.server.token, f"/api/v1/visits/{visit}/stream", send=b"\x01\0\0\0\x01x"), 101)
        self.assertEqual(self.body[:5], b"\x11\0\0\0\0")  # READY: it went on to its end

    # ---- the audit ----------------------------------------------------------------------------------

    def test_the_audit_has_who_when_what_and_how_it_ended(self):
        self.run_weir("job", "exec", "idle", "--", "sh", "-c", "read word; echo it was $word; exit 3", "\x1b[31m-red", input=b"swordfish\n")
        ended = wait_until(lambda: [event for event in self.audit("visit_ended") if "exit 3 " in event["message"]], 20, "the end")[0]
        visit = json.loads(ended["data"])["visit"] if isinstance(ended["data"], str) else ended["data"]["visit"]
        begun = [event for event in self.audit("visit_begun") if visit in event["message"]][0]
        self.assertEqual((begun["actor"], begun["subject"]), ("admin", "job/" + self.jobs["idle"]))
        self.assertIn("exec in task command-0 of job idle: sh -c read word", begun["message"])
        self.assertNotIn("\x1b", begun["message"])
        self.assertEqual(ended["actor"], "admin")
        self.assertNotIn("swordfish", json.dumps([begun, ended]))

    # ---- a task that failed -------------------------------------------------------------------------

    def test_the_place_of_a_task_that_failed_is_kept_for_a_look(self):
        server = self.server
        program = ["sh", "-c", "echo $$ > left; echo trouble; exit 3"]
        spec = {"argv": program, "hold_on_failure": "30m"}
        kept = server.post("/jobs", {"name": "kept", "kind": "command", "max_restarts": 0, "spec": spec})["id"]
        brief = server.post("/jobs", {"name": "brief", "kind": "command", "max_restarts": 0,
                                      "spec": {**spec, "hold_on_failure": 1}})["id"]
        wait_until(lambda: "is held until" in (server.get(f"/jobs/{kept}")["reason"] or ""), 30, "it to be kept")
        job, task = server.get(f"/jobs/{kept}"), server.get(f"/jobs/{kept}/tasks")["items"][0]
        self.assertEqual((job["state"], task["state"]), ("RUNNING", "RUNNING"))
        self.assertIn("its program failed with exit 3: trouble", task["message"])
        done = self.run_weir("job", "exec", "kept", "--", "sh", "-c", "cat left; echo $COLOUR; pwd")
        self.assertTrue(done.stdout.decode().splitlines()[-1].endswith("/work"), done)
        wait_until(lambda: [alert for alert in server.get("/alerts")["items"] if alert["kind"] == "task_kept"
                            and alert["subject"] == f"job/{kept}"], 30, "the alert")
        process = self.popen("job", "exec", "kept", "--", "sleep", "1000", stderr=subprocess.PIPE)
        wait_until(lambda: any("1000" in line for line in self.inside("kept")), 20, "it to begin")
        server.weir("job", "cancel", "kept")
        self.assertEqual(process.wait(timeout=30), 255)
        wait_until(lambda: server.get(f"/jobs/{kept}")["state"] == "CANCELLED", 30, "it to end")
        self.assertEqual(server.get(f"/jobs/{kept}/tasks")["items"][0]["exit_code"], 3)
        wait_until(lambda: server.get(f"/jobs/{brief}")["state"] == "FAILED", 30, "the brief one to end")
        self.assertIn("exit 3", server.get(f"/jobs/{brief}")["reason"])
        for more, said in (({"hold_on_failure": "2d"}, "1 s to 24 hours"), ({"hold_on_failure": "5m", "image": "x"}, "in an image goes with it")):
            with self.assertRaises(HttpError) as caught:
                server.post("/jobs", {"name": "x", "kind": "command", "spec": {"argv": ["true"], **more}})
            self.assertIn(said, str(caught.exception))

    # ---- ends ---------------------------------------------------------------------------------------

    def test_it_ends_with_its_visitor_its_task_and_its_server_and_not_with_the_agent(self):
        began = "trap '' HUP; sleep 5432 & wait" if VISITS > 8 else "sleep 5432 & wait"  # its grace is 5 s
        process = self.popen("job", "exec", "idle", "--", "sh", "-c", began)
        wait_until(lambda: any("5432" in line for line in self.inside()), 20, "it to begin")
        process.kill()
        wait_until(lambda: not any("5432" in line for line in self.inside()), 20, "what it began to end")

        self.begin("short", ["sleep", "3600"])
        process = self.popen("job", "exec", "short", "--", "sh", "-c", "trap '' TERM; exec sleep 1000", stderr=subprocess.PIPE)
        wait_until(lambda: any("1000" in line for line in self.inside("short")), 20, "it to begin")
        self.server.weir("job", "cancel", "short")
        self.assertEqual(process.wait(timeout=30), 255)
        self.assertIn(b"ended with its task", process.stderr.read())

        agent = json.loads((self.server.state / "agent/agent.json").read_text())["pid"]
        process = self.popen("job", "exec", "idle", "--", "sh", "-c", "read word; echo $word", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        wait_until(lambda: any("read word" in line for line in self.inside()), 20, "it to begin")
        os.kill(agent, signal.SIGKILL)
        self.assertEqual(process.communicate(b"still here\n", timeout=20)[0], b"still here\n")

        process = self.popen("job", "exec", "echo", "--", "sleep", "6543", stderr=subprocess.PIPE)
        wait_until(lambda: any("6543" in line for line in self.inside("echo")), 20, "it to begin")
        self.server.kill()
        self.assertEqual(process.wait(timeout=30), 255)
        self.assertIn(b"the server went away", process.stderr.read())
        self.server.start("--cpu-slots", "12")
        wait_until(lambda: not any("6543" in line for line in self.inside("echo")), 30, "what it began to end")
        wait_until(lambda: not self.visits_of_the_node(), 20, "all of it to end")


if __name__ == "__main__":
    main()

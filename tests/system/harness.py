"""What the system tests share: a server in a folder of its own, REST calls, waiting with a deadline.

Nothing here sleeps blindly: wait_until polls a condition until its deadline. Ports are chosen by the
kernel, folders are temporary, and whatever was started is stopped, agents and tasks included.
"""
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

BIN = pathlib.Path(os.environ.get("WEIR_BIN", pathlib.Path(__file__).parents[2] / "build/dev/programs"))
ROOT = pathlib.Path(__file__).parents[2]
WEIR = str(BIN / "weir")


def wait_until(condition, seconds, what):
    """Return the first true value of condition(); AssertionError after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.05)


def proto_field(number, value):
    """A field of a Protocol Buffers message: an integer, or bytes or text by its length."""
    if isinstance(value, int):
        return proto_varint(number << 3) + proto_varint(value)
    value = value.encode() if isinstance(value, str) else value
    return proto_varint(number << 3 | 2) + proto_varint(len(value)) + value


def proto_varint(value):
    more = bytearray()
    while value > 127:
        more.append(value & 127 | 128)
        value >>= 7
    return bytes(more) + bytes([value])


def onnx_model(nodes, constants, given, taken):
    """The bytes of an ONNX model of floats. nodes: (operator, inputs, output), and lists of whole numbers by name;
    constants: name → (shape, floats); given and taken, its input and its output: (name, shape), None for a size that is
    free; of several outputs a list."""
    field = proto_field

    def port(label, dims):
        sizes = b"".join(field(1, field(2, "n") if size is None else field(1, size)) for size in dims)
        return field(1, label) + field(2, field(1, field(1, 1) + field(2, sizes)))

    def node(operator, inputs, output, numbers=()):
        lists = dict(numbers)
        return field(1, b"".join(field(1, name) for name in inputs) + field(2, output) + field(4, operator) + b"".join(
            field(5, field(1, name) + b"".join(field(8, number) for number in lists[name]) + field(20, 7)) for name in lists))

    graph = b"".join(node(*one) for one in nodes) + field(2, "g")
    for name, (shape, values) in constants.items():
        dims = b"".join(field(1, size) for size in shape)
        graph += field(5, dims + field(2, 1) + field(8, name) + field(9, struct.pack(f"<{len(values)}f", *values)))
    graph += field(11, port(*given)) + b"".join(field(12, port(*one)) for one in (taken if isinstance(taken, list) else [taken]))
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 13))


def small_model(name="y", shape=(1, 4)):
    """The bytes of a real ONNX model, y = x + 1 of floats: nothing else becomes a version. Another name is another file."""
    return onnx_model([("Add", ["x", "one"], name)], {"one": ((), [1])}, ("x", shape), (name, shape))


class HttpError(Exception):
    def __init__(self, code, body, headers):
        super().__init__(f"HTTP {code}: {body[:300]}")
        self.code, self.body, self.headers = code, body, headers

    @property
    def error(self):
        return json.loads(self.body)["error"]


def parent_of(pid):
    """The parent's pid, or None of a process that is gone."""
    try:
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


def line_of(pid):
    """The command line of a process; "" if it has ended."""
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


class Server:
    """A `weir server` on a temporary state folder."""

    def __init__(self, *flags, state=None):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="weir-test-"))
        self.state = pathlib.Path(state) if state else self.root / "state"
        self.flags = flags
        self.program = [WEIR]  # how it is started
        self.process = None

    def start(self, *flags):
        (self.state / "server.json").unlink(missing_ok=True)
        self.log = open(self.root / "server.log", "ab")
        self.process = subprocess.Popen(
            [*self.program, "server", "--state", str(self.state), "--listen", "127.0.0.1:0", "--share", f"{self.root}:rw",
             *self.flags, *flags],
            stderr=self.log, start_new_session=True)
        wait_until(lambda: (self.state / "server.json").exists() or self.process.poll() is not None, 60,
                   "server.json")
        if self.process.poll() is not None:
            raise AssertionError("the server ended: " + self.log_text())
        self.url = json.loads((self.state / "server.json").read_text())["url"]
        self.token = (self.state / "admin.token").read_text().strip()
        return self

    def log_text(self):
        return (self.root / "server.log").read_text(errors="replace")[-4000:]

    def kill(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        self.process.wait(timeout=60)
        self.log.close()

    def stop(self):
        """Stop server, agent and every task of this state folder; remove the folder."""
        if self.process is not None and self.process.poll() is None:
            self.kill(signal.SIGTERM)
        for pid in self.pids():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        shutil.rmtree(self.root, ignore_errors=True)

    def pids(self, word=""):
        """Processes that belong to this server's folders (by command line or working folder)."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                cwd = os.readlink(entry / "cwd")
            except OSError:
                continue
            places = (str(self.root), str(self.state))
            if any(place in line or cwd.startswith(place) for place in places) and word in line:
                found.append(int(entry.name))
        return found

    def agent(self):
        """The process of the server's own agent. What it has just forked still has its name, and is none."""
        found = self.pids("weir agent --dir")
        return next((pid for pid in found if parent_of(pid) not in found), None)

    def request(self, method, path, body=None, token=None, headers=None, raw=False):
        data = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self.url + path, data=data, method=method)
        if token is None:
            token = self.token
        if token:
            request.add_header("Authorization", "Bearer " + token)
        for name, value in (headers or {}).items():
            request.add_header(name, value)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                text = answer.read()
                return text if raw else json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            raise HttpError(error.code, error.read().decode(errors="replace"), dict(error.headers)) from None
        except urllib.error.URLError as error:
            if self.process is None or self.process.poll() is None:
                raise
            raise urllib.error.URLError(f"{error.reason}; the server ended with {self.process.returncode}: {self.log_text()}") from None

    def get(self, path):
        return self.request("GET", "/api/v1" + path)

    def post(self, path, body=None):
        return self.request("POST", "/api/v1" + path, body if body is not None else {})

    def weir(self, *arguments, check=True, timeout=120):
        """Run the command line against this server; returns (status, stdout, stderr)."""
        n_own = arguments.index("--") if "--" in arguments else len(arguments)  # what follows is a program's
        done = subprocess.run([WEIR, *arguments[:n_own], "--state", str(self.state), *arguments[n_own:]], capture_output=True,
                              text=True, timeout=timeout)
        if check and done.returncode != 0:
            raise AssertionError(f"weir {' '.join(arguments)}: {done.returncode}: {done.stderr}")
        return done.returncode, done.stdout, done.stderr


def main():
    if not pathlib.Path(WEIR).exists():
        print(f"{WEIR} is not built")
        sys.exit(77)
    result = unittest.main(exit=False, verbosity=2).result
    ran_none = result.skipped and result.testsRun in (0, len(result.skipped))  # 0: whole classes were skipped
    sys.exit(1 if not result.wasSuccessful() else 77 if ran_none else 0)

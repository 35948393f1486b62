#!/usr/bin/env python3
"""Hostile clients of models in service: ten thousand connections that say little, bodies that never end, pictures that
are bombs, tensors that fit nowhere, a large file of zeros as a model (WEIR_ZEROS_BYTES=2147483648: 2 GB of them). Each
gets a clear answer or nothing; memory stays bounded, the processes live, and others are answered meanwhile."""
import json
import os
import pathlib
import resource
import select
import socket
import struct
import sys
import threading
import time
import unittest
import zlib

import harness
from harness import HttpError, Server, wait_until

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "bench"))
import inference_models  # noqa: E402

MIB = 1 << 20
N_CONNECTIONS = 10000
ZEROS_BYTES = int(os.environ.get("WEIR_ZEROS_BYTES", 256 * MIB))
SIDE = 32


def raise_open_files(n):
    """How many files this process, and what it starts, may have open."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(n, hard), max(n, hard)))
        return n
    except (ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        return hard


def png(width, height, idat):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", idat) + chunk(b"IEND", b"")


def zeros_deflated(n_bytes):
    packer = zlib.compressobj(1)
    block = bytes(MIB)
    return b"".join(packer.compress(block) for _ in range(n_bytes // MIB)) + packer.compress(bytes(n_bytes % MIB)) + packer.flush()


def tensor(values, shape=(1, 16), name="x", datatype="FP32", **more):
    return {"inputs": [{"name": name, "datatype": datatype, "shape": list(shape), "data": values, **more}]}


class ServingAttack(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.n_files = raise_open_files(N_CONNECTIONS + 1000)
        cls.server = Server("--cpu-slots", "8").start()
        cls.addClassCleanup(cls.server.stop)
        folder = cls.server.root
        (folder / "mlp.onnx").write_bytes(inference_models.perceptron(1))
        (folder / "eye.onnx").write_bytes(inference_models.average(SIDE))
        (folder / "eye.json").write_text(json.dumps({"width": SIDE, "height": SIDE, "mean": [0, 0, 0], "std": [1, 1, 1]}))
        cls.server.weir("model", "push", "mlp", str(folder / "mlp.onnx"))
        cls.server.weir("model", "push", "eye", str(folder / "eye.onnx"), "--preprocess", str(folder / "eye.json"))
        for name in ("mlp", "eye"):
            cls.server.weir("deploy", name)
        cls.pids = sorted(cls.server.pids("weir-worker serve"))

    def setUp(self):
        self.before = {pid: self.memory(pid) for pid in [self.server.process.pid, *self.pids]}

    def tearDown(self):
        """The same processes as before, and they answer."""
        self.assertIsNone(self.server.process.poll(), self.server.log_text())
        self.assertEqual(sorted(self.server.pids("weir-worker serve")), self.pids, "a replica has ended")
        self.infer()

    def memory(self, pid, field="VmRSS"):
        text = pathlib.Path(f"/proc/{pid}/status").read_text()
        return next(int(line.split()[1]) << 10 for line in text.splitlines() if line.startswith(field + ":"))

    def assert_memory_bounded(self, more):
        """No process holds that many bytes more than before the test."""
        for pid, before in self.before.items():
            self.assertLess(self.memory(pid) - before, more, f"memory of {pid}")

    def infer(self, body=None, name="mlp", headers=None):
        return self.server.request("POST", f"/v2/models/{name}/infer", tensor([1] * 16) if body is None else body, headers=headers)

    def refused(self, *arguments, **more):
        """The status and the sentence of what must not be answered by 200."""
        with self.assertRaises(HttpError) as caught:
            self.infer(*arguments, **more)
        error = json.loads(caught.exception.body)["error"]
        return caught.exception.code, error["message"] if isinstance(error, dict) else error

    def connect(self, address, wait=True):
        port = int(self.server.url.rsplit(":", 1)[1])
        connection = socket.socket()
        connection.setblocking(wait)
        connection.settimeout(20 if wait else 0)
        connection.bind((address, 0))
        connection.connect_ex(("127.0.0.1", port))
        return connection

    def head(self, n_bytes):
        return (f"POST /v2/models/mlp/infer HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.server.token}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {n_bytes}\r\n\r\n").encode()

    def test_ten_thousand_connections_keep_nobody_out(self):
        n = min(N_CONNECTIONS, self.n_files - 200)
        said = (b"", b"POST /v2/models/mlp/infer HTTP/1.1\r\nX-Slow: ", self.head(10000) + b"{")  # idle, slow head, slow body
        held, slowest, answered = [], 0, 0
        self.addCleanup(lambda: [one.close() for one in held])
        for i in range(n):
            one = self.connect(f"127.0.{1 + i // 1000}.1", wait=False)
            held.append(one)
            if i % 1000 == 999:  # those that are connected say what they say; then somebody else asks
                _, ready, _ = select_all(held[-1000:])
                for at, connection in enumerate(ready):
                    try:
                        connection.send(said[at % len(said)] or b"G")
                    except OSError:
                        pass
                began = time.monotonic()
                self.infer()
                answered += 1
                slowest = max(slowest, time.monotonic() - began)
        for _ in range(20):
            began = time.monotonic()
            self.infer()
            slowest = max(slowest, time.monotonic() - began)
        print(f"{n} connections held; an answer took {slowest:.2f} s at most")
        self.assertLess(slowest, 10)
        self.assert_memory_bounded(400 * MIB)

    def test_bodies_that_are_promised_and_do_not_come_have_a_bound(self):
        held = [self.connect("127.0.2.1") for _ in range(8)]
        for one in held:
            one.sendall(self.head(60 << 20) + b"{")
        refused = 0
        deadline = time.monotonic() + 10
        while refused < 6 and time.monotonic() < deadline:
            ready, _, _ = select.select(held, [], [], 1)
            for one in ready:
                answer = one.recv(4096)
                held.remove(one)
                one.close()
                self.assertIn(b" 503 ", answer.split(b"\r\n")[0])
                self.assertIn(b"as many bytes of requests as it may", answer)
                refused += 1
            self.infer()
        self.assertEqual(refused, 6)  # two of them are 120 of the 128 MiB that one address may have
        self.assert_memory_bounded(100 * MIB)
        for one in held:
            one.close()

    def test_a_body_over_the_limit_is_413(self):
        one = self.connect("127.0.3.1")
        one.sendall(self.head(3 << 30))
        self.assertIn(b" 413 ", one.recv(4096).split(b"\r\n")[0])
        one.close()

    def test_wrong_tensors_are_named(self):
        numbers = [1] * 16
        cases = [
            (tensor(numbers, name="picture"), "has no input 'picture'"),
            (tensor(numbers, datatype="INT8"), "x"),
            (tensor(numbers, datatype="FLOAT"), "expected a datatype"),
            (tensor(numbers, shape=(1, 17)), "x"),
            (tensor(numbers, shape=(16,)), "x"),
            (tensor(numbers, shape=(-1, 16)), "a dimension"),
            (tensor(numbers, shape=(1 << 62, 16)), ""),
            (tensor(numbers[:15]), ""),
            (tensor(["one"] * 16), ""),
            ({"inputs": []}, "'x' is missing"),
            ({"inputs": tensor(numbers)["inputs"] * 2}, "given twice"),
            ({**tensor(numbers), "outputs": [{"name": "z"}]}, "has no output 'z'"),
            (tensor(numbers, parameters={"binary_data_size": 1 << 40}), ""),
            (b"{", ""), (b"", ""), (b"[" * 100000, ""), (b"\xff" * 100, "")]
        for body, words in cases:
            code, message = self.refused(body)
            self.assertIn(code, (400, 413), (str(body)[:100], message))
            self.assertIn(words, message)
            self.assertGreater(len(message), 10)
        self.assertEqual(self.refused(name="nobody")[0], 404)
        self.assert_memory_bounded(50 * MIB)

    def inspection(self):
        """What /proc says of the process that looks at a model file; None: there is none, or it has not begun."""
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
                said = dict(line.split(":\t", 1) for line in (folder / "status").read_text().splitlines() if ":\t" in line)
                if words[1:2] == [b"inspect"] and str(self.server.state).encode() in b" ".join(words) and said["Seccomp"] == "2":
                    return {**said, "net": os.readlink(folder / "ns/net"), "root": os.readlink(folder / "root")}
            except (OSError, ValueError, KeyError):
                continue
        return None

    def test_a_file_is_looked_at_by_a_process_that_may_do_nothing(self):
        if os.geteuid() != 0:
            self.skipTest("root's rights are what is given up")
        path = self.server.root / "slow.onnx"
        path.write_bytes(inference_models.perceptron(1, sizes=(16, 2500, 2500, 10)))
        pushing = threading.Thread(target=self.server.weir, args=("model", "push", "slow", str(path)))
        pushing.start()
        try:
            seen = wait_until(lambda: self.inspection() or (None if pushing.is_alive() else {"Uid": "never seen"}), 60, "an inspection")
        finally:
            pushing.join()
        self.assertEqual(seen["Uid"].split(), ["65534"] * 4)
        self.assertEqual(seen["Gid"].split(), ["65534"] * 4)
        for kind in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            self.assertEqual(int(seen[kind], 16), 0, kind)
        self.assertEqual(seen["NoNewPrivs"], "1")
        self.assertNotEqual(seen["net"], os.readlink("/proc/self/ns/net"))
        self.assertTrue(seen["root"].startswith("/tmp/weir-inspect-"), seen["root"])

    def test_pictures_that_are_bombs_cost_nothing(self):
        good = png(SIDE, SIDE, zlib.compress((b"\0" + b"\x40" * 3 * SIDE) * SIDE))
        kind = {"Content-Type": "image/png"}
        self.assertAlmostEqual(self.infer(good, "eye", kind)["outputs"][0]["data"][0], 0x40 / 255, places=3)
        bombs = [
            (png(60000, 60000, zeros_deflated(MIB)), "says that it has 3.6 Gi pixels"),
            (png(16384, 16384, zeros_deflated(MIB)), "is within the sides, and has too many pixels"),
            (good[:60], "ends early"),
            (b"\x89PNG\r\n\x1a\n" + bytes(1000), "is no picture"),
            (b"\xff\xd8\xff\xe0" + os.urandom(1000), "is no JPEG"),
            (b"", "is empty")]
        for body, what in bombs:
            code, message = self.refused(body, "eye", kind)
            self.assertTrue(400 <= code < 500, (what, code, message))
            self.assertGreater(len(message), 10, what)
        # More data than the head has pixels: it is refused, and not unpacked.
        code, message = self.refused(png(SIDE, SIDE, zeros_deflated(300 * MIB)), "eye", kind)
        self.assertEqual((code, "more data than" in message), (422, True), message)
        # As many pixels as may be, several at once.
        large = png(4000, 4000, zeros_deflated(4000 * 12001))
        codes = []

        def ask():
            try:
                self.infer(large, "eye", kind)
                codes.append(200)
            except HttpError as error:
                codes.append(error.code)
        askers = [threading.Thread(target=ask) for _ in range(6)]
        for asker in askers:
            asker.start()
        for asker in askers:
            asker.join()
        self.assertTrue(all(code == 200 or 400 <= code < 500 or code == 503 for code in codes), codes)
        print(f"six pictures of 16 million pixels: {codes}; replicas held at most "
              f"{[self.memory(pid, 'VmHWM') >> 20 for pid in self.pids]} MiB")
        for pid in self.pids:
            self.assertLess(self.memory(pid, "VmHWM"), 700 * MIB)

    def test_a_large_file_of_zeros_is_no_model(self):
        path = self.server.root / "zeros.onnx"
        with open(path, "wb") as file:
            file.truncate(ZEROS_BYTES)
        ended = []
        asker = threading.Thread(target=lambda: ended.append(
            self.server.weir("model", "push", "zeros", str(path), check=False, timeout=300)))
        asker.start()
        peak = slowest = 0
        while asker.is_alive():
            began = time.monotonic()
            self.infer()
            slowest = max(slowest, time.monotonic() - began)
            peak = max([peak, *(self.memory_of_any(pid) for pid in self.server.pids("weir"))])
            asker.join(0.2)
        status, _, said = ended[0]
        print(f"refused with {status}: {said.strip()[:200]}; answers took {slowest:.2f} s at most, "
              f"the largest process held {peak >> 20} MiB")
        self.assertNotEqual(status, 0)
        self.assertIn("neither a model that Weir trained", said)
        self.assertLess(peak, 1000 * MIB)
        self.assertLess(slowest, 10)
        with self.assertRaises(HttpError):
            self.server.get("/models/zeros/versions/1")
        left = [f.name for f in self.server.state.rglob("upload-*") if f.is_file()]
        self.assertEqual(left, [], "what was refused is still where uploads lie")

    def memory_of_any(self, pid):
        try:
            return self.memory(pid)
        except (OSError, StopIteration):
            return 0


def select_all(connections):
    """Which of these are connected by now? select() has no room for numbers over 1023."""
    poller = select.poll()
    by_number = {one.fileno(): one for one in connections}
    for number in by_number:
        poller.register(number, select.POLLOUT)
    events = poller.poll(200)
    return [], [by_number[number] for number, event in events if event & select.POLLOUT], []


if __name__ == "__main__":
    harness.main()

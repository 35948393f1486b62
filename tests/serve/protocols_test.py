#!/usr/bin/env python3
"""The protocols of a replica, spoken by their own clients: tritonclient and curl, unmodified.

What is expected is computed here by numpy. And what a bad client may do: the replica stays up, and its
memory bounded.
"""
import json
import pathlib
import re
import signal
import socket
import struct
import subprocess
import tempfile
import unittest
import zlib

from peers import BIN, run_in_peers

run_in_peers()

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import tritonclient.http as triton  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from tritonclient.utils import InferenceServerException  # noqa: E402

IN, OUT, SIDE = 6, 3, 4


def perceptron(rng):
    """x [N, 6] to y = relu(x w + b) [N, 3], and its sum of a row."""
    w, b = rng.normal(0, 1, (IN, OUT)).astype(np.float32), rng.normal(0, 1, OUT).astype(np.float32)
    nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["h"]), helper.make_node("Relu", ["h"], ["y"]),
             helper.make_node("ReduceMax", ["y"], ["top"], axes=[1], keepdims=1)]
    graph = helper.make_graph(
        nodes, "perceptron", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", IN])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", OUT]),
         helper.make_tensor_value_info("top", TensorProto.FLOAT, ["N", 1])],
        [numpy_helper.from_array(w, "w"), numpy_helper.from_array(b, "b")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), w, b


def eyes(rng):
    """A picture [N, 3, 4, 4] to logits [N, 3]."""
    w = rng.normal(0, 0.3, (3 * SIDE * SIDE, OUT)).astype(np.float32)
    nodes = [helper.make_node("Flatten", ["picture"], ["f"]), helper.make_node("MatMul", ["f", "w"], ["logits"])]
    graph = helper.make_graph(
        nodes, "eyes", [helper.make_tensor_value_info("picture", TensorProto.FLOAT, ["N", 3, SIDE, SIDE])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", OUT])], [numpy_helper.from_array(w, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), w


def png(pixels):
    """A PNG of [H, W, 3] bytes."""
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def bomb():
    """A few KB that say 60000 x 60000 pixels."""
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 60000, 60000, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(bytes(1 << 20))) + chunk(b"IEND", b""))


class Protocols(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="weir-protocols-")
        root = pathlib.Path(cls.folder.name)
        rng = np.random.default_rng(1)
        model, cls.w, cls.b = perceptron(rng)
        onnx.save(model, root / "mlp.onnx")
        model, cls.eye_w = eyes(rng)
        onnx.save(model, root / "eyes.onnx")
        (root / "labels").write_text("cat\ndog\neel\n")
        (root / "preprocess").write_text("mean: [0.5, 0.5, 0.5]\nstd: [0.25, 0.5, 1]\noutput_kind: logits\n")
        cls.process = subprocess.Popen(
            [BIN / "weir-worker", "serve", "--model", f"mlp@2={root}/mlp.onnx", "--model", f"eyes={root}/eyes.onnx",
             "--labels", f"eyes={root}/labels", "--preprocess", f"eyes={root}/preprocess", "--threads", "1",
             "--listen", "127.0.0.1:0", "--body-max-mb", "4"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        line = cls.process.stdout.readline()
        cls.port = int(re.fullmatch(r"serving at port (\d+)\n", line).group(1))
        cls.url = f"http://127.0.0.1:{cls.port}"
        cls.client = triton.InferenceServerClient(f"127.0.0.1:{cls.port}")
        cls.rng = rng

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.process.send_signal(signal.SIGTERM)
        assert cls.process.wait(30) == 0
        cls.process.stdout.close()
        cls.folder.cleanup()

    def expected(self, x):
        return np.maximum(x.astype(np.float64) @ self.w + self.b, 0)

    def curl(self, path, *flags, body=None):
        words = ["curl", "-sS", "-w", "\n%{http_code}", *flags, self.url + path]
        if body is not None:
            words += ["--data-binary", "@-"]
        done = subprocess.run(words, input=body, capture_output=True, timeout=60)
        text, code = done.stdout.rsplit(b"\n", 1)
        return int(code), text

    def post(self, path, value):
        code, text = self.curl(path, "-H", "Content-Type: application/json", body=json.dumps(value).encode())
        return code, json.loads(text)

    def memory_mb(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) / 1024

    # ---- tritonclient ----

    def test_triton_asks_about_server_and_models(self):
        client = self.client
        self.assertTrue(client.is_server_live() and client.is_server_ready() and client.is_model_ready("mlp"))
        self.assertTrue(client.is_model_ready("mlp", "2"))
        self.assertFalse(client.is_model_ready("mlp", "3"))
        self.assertIn("binary_tensor_data", client.get_server_metadata()["extensions"])
        metadata = client.get_model_metadata("mlp")
        self.assertEqual(metadata["inputs"], [{"name": "x", "datatype": "FP32", "shape": [-1, IN]}])
        self.assertEqual(metadata["versions"], ["2"])
        config = client.get_model_config("mlp")
        self.assertEqual((config["max_batch_size"], config["input"][0]["dims"]), (16, [IN]))
        self.assertEqual({(row["name"], row["version"], row["state"]) for row in client.get_model_repository_index()},
                         {("mlp", "2", "READY"), ("eyes", "1", "READY")})

    def test_triton_infers_in_each_form(self):
        for rows in (1, 5, 40):
            x = self.rng.normal(0, 1, (rows, IN)).astype(np.float32)
            for is_binary_in in (False, True):
                for is_binary_out in (False, True):
                    given = triton.InferInput("x", x.shape, "FP32")
                    given.set_data_from_numpy(x, binary_data=is_binary_in)
                    asked = [triton.InferRequestedOutput(name, binary_data=is_binary_out) for name in ("top", "y")]
                    result = self.client.infer("mlp", [given], outputs=asked, request_id="r")
                    np.testing.assert_allclose(result.as_numpy("y"), self.expected(x), rtol=1e-4, atol=1e-5)
                    np.testing.assert_allclose(result.as_numpy("top"), self.expected(x).max(1, keepdims=True), rtol=1e-4, atol=1e-5)
                    self.assertEqual(result.get_response()["model_version"], "2")
                    self.assertEqual(result.get_response()["id"], "r")

    def test_triton_asks_many_at_a_time_and_reads_the_statistics(self):
        before = self.client.get_inference_statistics("mlp", "2")["model_stats"][0]["inference_stats"]["success"]["count"]
        with triton.InferenceServerClient(f"127.0.0.1:{self.port}", concurrency=8) as client:
            given = []
            for _ in range(200):
                x = self.rng.normal(0, 1, (1, IN)).astype(np.float32)
                tensor = triton.InferInput("x", x.shape, "FP32")
                tensor.set_data_from_numpy(x)
                given.append((x, client.async_infer("mlp", [tensor])))
            for x, later in given:
                np.testing.assert_allclose(later.get_result().as_numpy("y"), self.expected(x), rtol=1e-4, atol=1e-5)
        stats = self.client.get_inference_statistics("mlp")["model_stats"][0]
        self.assertEqual(stats["inference_stats"]["success"]["count"] - before, 200)
        self.assertEqual(sum(size["batch_size"] * size["compute_infer"]["count"] for size in stats["batch_stats"]),
                         stats["inference_count"])

    def test_triton_gets_classes_and_sentences(self):
        picture = self.rng.normal(0, 1, (2, 3, SIDE, SIDE)).astype(np.float32)
        given = triton.InferInput("picture", picture.shape, "FP32")
        given.set_data_from_numpy(picture)
        result = self.client.infer("eyes", [given], outputs=[triton.InferRequestedOutput("logits", class_count=1)])
        logits = picture.reshape(2, -1) @ self.eye_w
        for row, text in zip(logits, result.as_numpy("logits").reshape(-1)):
            value, index, label = text.decode().split(":")
            self.assertEqual((int(index), label), (row.argmax(), ("cat", "dog", "eel")[row.argmax()]))
            self.assertAlmostEqual(float(value), row.max(), places=4)
        wrong = triton.InferInput("z", [1, IN], "FP32")
        wrong.set_data_from_numpy(np.zeros((1, IN), np.float32))
        with self.assertRaisesRegex(InferenceServerException, "no input 'z'; it has: x"):
            self.client.infer("mlp", [wrong])

    # ---- curl ----

    def test_curl_on_predict_and_invocations(self):
        x = self.rng.normal(0, 1, (3, IN)).astype(np.float32)
        y = self.expected(x)
        code, answer = self.post("/v1/models/mlp:predict", {"instances": x.tolist()})
        self.assertEqual(code, 200)
        np.testing.assert_allclose([row["y"] for row in answer["predictions"]], y, rtol=1e-4, atol=1e-5)
        code, answer = self.post("/v1/models/mlp/versions/2:predict", {"inputs": {"x": x.tolist()}})
        np.testing.assert_allclose(answer["outputs"]["y"], y, rtol=1e-4, atol=1e-5)
        columns = [f"c{i}" for i in range(IN)]
        for body in ({"dataframe_split": {"columns": columns, "data": x.tolist()}},
                     {"dataframe_records": [dict(zip(columns, row)) for row in x.tolist()]},
                     {"instances": x.tolist()}, {"inputs": x.tolist()}):
            code, answer = self.post("/models/mlp/invocations", body)
            self.assertEqual(code, 200, answer)
            np.testing.assert_allclose(answer["predictions"]["y"], y, rtol=1e-4, atol=1e-5)
        self.assertEqual(self.curl("/ping")[0], 200)

    def test_a_picture_gets_labels(self):
        pixels = self.rng.integers(0, 256, (SIDE, SIDE, 3)).astype(np.uint8)
        code, text = self.curl("/v2/models/eyes/infer", "-H", "Content-Type: image/png", body=png(pixels))
        self.assertEqual(code, 200, text)
        answer = json.loads(text)
        values = (pixels.astype(np.float64) / 255 - 0.5) / np.array([0.25, 0.5, 1])
        logits = values.transpose(2, 0, 1).reshape(-1) @ self.eye_w
        np.testing.assert_allclose(answer["outputs"][0]["data"], logits, rtol=1e-3, atol=1e-4)
        shares = np.exp(logits - logits.max())
        shares /= shares.sum()
        names = np.array(["cat", "dog", "eel"])[np.argsort(-shares)]
        self.assertEqual([row["label"] for row in answer["labels"]], list(names))
        np.testing.assert_allclose([row["probability"] for row in answer["labels"]], np.sort(shares)[::-1], atol=1e-4)

    def test_metrics_name_what_was_counted(self):
        code, text = self.curl("/metrics")
        self.assertEqual(code, 200)
        names = re.findall(r"^# TYPE (\S+) (counter|gauge|histogram)$", text.decode(), re.M)
        self.assertEqual(len(names), len(set(names)))
        self.assertIn(("nv_inference_request_success", "counter"), names)
        for line in text.decode().splitlines():
            self.assertRegex(line, r'^(# (HELP|TYPE) \S+ .+|[a-z_:]+\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\} \S+)$')

    # ---- bad clients ----

    def test_what_is_too_large_or_damaged_is_refused_and_costs_no_memory(self):
        before = self.memory_mb()
        picture = ["-H", "Content-Type: image/png"]
        whole = png(np.zeros((SIDE, SIDE, 3), np.uint8))
        cases = [("/v2/models/eyes/infer", picture, whole[:40]), ("/v2/models/eyes/infer", picture, bomb()),
                 ("/v2/models/eyes/infer", picture, b"\xff\xd8\xff" + bytes(1000)),
                 ("/v2/models/mlp/infer", [], b"[" * 1000000), ("/v2/models/mlp/infer", [], b'{"inputs":' + b'[[],' * 1000000),
                 ("/v2/models/mlp/infer", [], bytes(5 << 20)),
                 ("/v2/models/mlp/infer", [], b'{"inputs":[{"name":"x","shape":[9223372036854775807,6],"datatype":"FP32","data":[]}]}'),
                 ("/v2/models/mlp/infer", [], b'{"parameters":{"sequence_id":7,"sequence_start":true},"inputs":[]}'),
                 ("/v2/models/mlp/infer", ["-H", "Inference-Header-Content-Length: 99999999999"], b"{}"),
                 ("/v1/models/mlp:predict", [], json.dumps({"instances": [[0] * IN] * 70000}).encode()),
                 ("/v1/models/mlp:predict", ["-H", "Content-Encoding: gzip"], zlib.compress(bytes(1 << 22)))]
        for path, flags, body in cases:
            code, text = self.curl(path, *flags, body=body)
            self.assertTrue(400 <= code < 500, (path, code, text[:200]))
            self.assertIn(b"error", text)
        self.assertLess(self.memory_mb() - before, 300)
        self.assertTrue(self.client.is_server_ready())

    def test_many_connections_and_slow_clients_hold_nobody_up(self):
        sockets = []
        for i in range(1000):
            one = socket.create_connection(("127.0.0.1", self.port))
            if i % 2:
                one.sendall(b"POST /v2/models/mlp/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
            sockets.append(one)
        code, answer = self.post("/v1/models/mlp:predict", {"instances": [[1] * IN]})
        self.assertEqual(code, 200, answer)
        for one in sockets:
            one.close()


if __name__ == "__main__":
    unittest.main()

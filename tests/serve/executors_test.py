#!/usr/bin/env python3
"""onnxruntime as an executor: a transformer that Weir's own cannot run, and what it may not do.

The transformer has operators of onnxruntime's own domain. Its answers are computed here by numpy.
"""
import json
import pathlib
import subprocess
import tempfile
import unittest

from peers import MODEL_CASE, WORKER, onnxruntime_folder, run_in_peers

run_in_peers()

import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

WIDTH, HEADS, WORDS, CLASSES = 32, 4, 50, 5


def weights(rng):
    shape = {"table": (WORDS, WIDTH), "qkv": (WIDTH, 3 * WIDTH), "qkv_bias": (3 * WIDTH,), "gain": (WIDTH,), "offset": (WIDTH,),
             "up": (WIDTH, 4 * WIDTH), "down": (4 * WIDTH, WIDTH), "out": (WIDTH, CLASSES)}
    return {name: rng.normal(0, 0.3, dims).astype(np.float32) for name, dims in shape.items()}


def transformer(w):
    """Token numbers [N, T] to logits [N, CLASSES]: one block, mean over the tokens."""
    own = {"domain": "com.microsoft"}
    nodes = [
        helper.make_node("Gather", ["table", "tokens"], ["x"]),
        helper.make_node("Attention", ["x", "qkv", "qkv_bias"], ["a"], num_heads=HEADS, **own),
        helper.make_node("SkipLayerNormalization", ["x", "a", "gain", "offset"], ["n"], epsilon=1e-5, **own),
        helper.make_node("MatMul", ["n", "up"], ["u"]),
        helper.make_node("Gelu", ["u"], ["g"], **own),
        helper.make_node("MatMul", ["g", "down"], ["d"]),
        helper.make_node("SkipLayerNormalization", ["n", "d", "gain", "offset"], ["m"], epsilon=1e-5, **own),
        helper.make_node("ReduceMean", ["m"], ["mean"], axes=[1], keepdims=0),
        helper.make_node("MatMul", ["mean", "out"], ["logits"]),
    ]
    graph = helper.make_graph(
        nodes, "transformer", [helper.make_tensor_value_info("tokens", TensorProto.INT64, ["N", "T"])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", CLASSES])],
        [numpy_helper.from_array(value, name) for name, value in w.items()])
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def erf(x):
    from math import erf as scalar
    return np.vectorize(scalar)(x)


def normalise(x, w):
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * w["gain"] + w["offset"]


def expected(tokens, w):
    w = {name: value.astype(np.float64) for name, value in w.items()}
    x = w["table"][tokens]
    n, t, _ = x.shape
    q, k, v = (part.reshape(n, t, HEADS, -1).transpose(0, 2, 1, 3) for part in np.split(x @ w["qkv"] + w["qkv_bias"], 3, -1))
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(WIDTH // HEADS)
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    a = (scores / scores.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3).reshape(n, t, WIDTH)
    x = normalise(x + a, w)
    u = x @ w["up"]
    x = normalise(x + u * (1 + erf(u / np.sqrt(2))) / 2 @ w["down"], w)
    return (x.mean(1) @ w["out"]).astype(np.float32)


def save(folder, kind, arrays):
    for i, array in enumerate(arrays):
        (folder / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())


def run(executor, model, folder, library=None):
    return subprocess.run([MODEL_CASE, executor, model, folder, library or onnxruntime_folder()],
                          capture_output=True, text=True, check=False)


class Executors(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name)
        self.model = self.folder / "model.onnx"

    def test_a_transformer_is_run_by_onnxruntime_at_any_batch_and_length(self):
        rng = np.random.default_rng(7)
        w = weights(rng)
        onnx.save(transformer(w), self.model)
        for shape in ((1, 3), (4, 9), (7, 1)):
            tokens = rng.integers(0, WORDS, shape)
            save(self.folder, "input", [tokens])
            save(self.folder, "output", [expected(tokens, w)])
            done = run("choose", self.model, self.folder)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("because Weir cannot", done.stdout)
            self.assertIn("com.microsoft.Attention", done.stdout)

    def test_strings_go_in_and_out(self):
        nodes = [helper.make_node("Identity", ["x"], ["i"]), helper.make_node("StringConcat", ["x", "x"], ["y"])]
        text = lambda name: helper.make_tensor_value_info(name, TensorProto.STRING, [None])
        graph = helper.make_graph(nodes, "texts", [text("x")], [text("y"), text("i")])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), self.model)
        given = np.array(["one", "", "zwölf", "x" * 300], dtype=object)
        save(self.folder, "input", [given])
        save(self.folder, "output", [np.array([text + text for text in given], dtype=object), given])
        done = run("onnxruntime", self.model, self.folder)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_no_other_file_is_read(self):
        (self.folder / "secret").write_bytes(bytes(16))
        tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
        tensor.external_data.add(key="location", value="secret")
        graph = helper.make_graph(
            [helper.make_node("Add", ["x", "w"], ["y"])], "leak", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])], [tensor])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
        self.model.write_bytes(model.SerializeToString())
        for executor in ("choose", "onnxruntime"):
            done = run(executor, self.model, self.folder)
            self.assertEqual(done.returncode, 7, done.stdout + done.stderr)
            self.assertIn("another file", done.stderr)

    def test_a_file_of_the_domain_of_classifiers_alone_is_run_by_onnxruntime(self):
        """As converters of XGBoost write it: no operator of ONNX's own, and no set of them."""
        port = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 3])
        scaler = helper.make_node("Scaler", ["x"], ["y"], name="first", domain="ai.onnx.ml", offset=[1.0, 2.0, 3.0], scale=[2.0, 0.5, -1.0])
        graph = helper.make_graph([scaler], "scaled", [port("x")], [port("y")])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("ai.onnx.ml", 1)], ir_version=8)
        self.model.write_bytes(model.SerializeToString())
        x = np.random.default_rng(3).normal(size=(4, 3)).astype(np.float32)
        save(self.folder, "input", [x])
        save(self.folder, "output", [(x - np.float32([1, 2, 3])) * np.float32([2, 0.5, -1])])
        done = run("choose", self.model, self.folder)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("operator ai.onnx.ml.Scaler of opset 1 (node \"first\")", done.stdout)
        self.assertNotIn(str(self.folder), done.stdout, "where the server keeps the file")
        done = run("choose", self.model, self.folder, "/nowhere/libonnxruntime.so")
        self.assertEqual(done.returncode, 7)
        self.assertIn("operator ai.onnx.ml.Scaler of opset 1", done.stderr)
        self.assertIn("onnxruntime, which has more operators, would be tried, but", done.stderr)

    def test_golden_integers_are_the_same_to_the_last_digit(self):
        port = lambda name: helper.make_tensor_value_info(name, TensorProto.INT64, [2])
        graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "whole", [port("x")], [port("y")])
        self.model.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8).SerializeToString())
        golden = self.folder / "golden.json"
        tensor = lambda name, data: [{"name": name, "shape": [2], "datatype": "INT64", "data": data}]
        for expected, more, status in (([-2**53 - 1, -1001], {}, 0), ([-2**53, -1001], {}, 3), ([-2**53 - 1, -1000], {}, 3),
                                       ([-2**53 - 1, -1000], {"tolerance": 0.001}, 0), ([-2**53, -1001], {"tolerance": 0}, 3)):
            golden.write_text(json.dumps({"inputs": tensor("x", [2**53 + 1, 1001]), "outputs": tensor("y", expected), **more}), encoding="utf-8")
            done = subprocess.run([WORKER, "inspect", self.model, "--golden", golden], capture_output=True, text=True, env={"HOME": str(self.folder)}, check=False)
            self.assertEqual(done.returncode, status, f"{expected} {more}: {done.stderr}")

    def test_a_map_of_probabilities_names_the_option_of_the_converter(self):
        import onnxruntime
        iris = pathlib.Path(onnxruntime.__file__).parent / "datasets/logreg_iris.onnx"
        done = run("choose", iris, self.folder)
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertIn("operator ai.onnx.ml.", done.stderr)
        self.assertIn("zipmap=False", done.stderr)

    def test_an_operator_that_nobody_has_is_named(self):
        graph = helper.make_graph(
            [helper.make_node("Quark", ["x"], ["y"], name="odd")], "odd", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])])
        self.model.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8).SerializeToString())
        done = run("choose", self.model, self.folder)
        self.assertEqual(done.returncode, 7)
        self.assertIn("Quark", done.stderr)
        self.assertIn("odd", done.stderr)

    def test_what_weir_loads_but_cannot_run_is_run_by_onnxruntime(self):
        dims = {"x": [1, 1, 2, 2, 2, 2], "k": [1, 1, 1, 1, 1, 1], "y": [1, 1, 2, 2, 2, 2]}
        ports = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in dims.items()}
        node = helper.make_node("Conv", ["x", "k"], ["y"])
        graph = helper.make_graph([node], "four dimensions", [ports["x"], ports["k"]], [ports["y"]])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8), self.model)
        done = subprocess.run([WORKER, "inspect", self.model, "--onnxruntime", onnxruntime_folder()], capture_output=True, text=True,
                              env={"HOME": str(self.folder)}, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertFalse((self.folder / ".cache").exists(), "what the library would send to its maker")
        said = json.loads(done.stdout)
        self.assertEqual((said["executor"], said["is_batched"]), ("onnxruntime", False))
        self.assertIn("inputs of 6 dimensions are not supported", said["why"])

    def test_requests_of_a_model_in_training_mode_are_not_joined(self):
        node = helper.make_node("BatchNormalization", ["x", "s", "b", "m", "v"], ["y"], training_mode=1)
        given = [numpy_helper.from_array(np.ones(3, np.float32), name) for name in ("s", "b", "m", "v")]
        rows = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 3]) for name in ("x", "y")]
        for training, joins in ((1, False), (0, True)):
            node.attribute[0].i = training
            graph = helper.make_graph([node], "training", rows[:1], rows[1:], given)
            onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8), self.model)
            done = subprocess.run([WORKER, "inspect", self.model], capture_output=True, text=True, env={"HOME": str(self.folder)}, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            said = json.loads(done.stdout)
            self.assertEqual((said["executor"], said["is_batched"]), ("onnx", True))
            self.assertEqual("requests are not joined" not in said["why"], joins, said["why"])

    def test_a_run_beyond_the_memory_bound_fails_and_a_smaller_one_does_not(self):
        graph = helper.make_graph(
            [helper.make_node("Expand", ["x", "shape"], ["y"])], "wide",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1]), helper.make_tensor_value_info("shape", TensorProto.INT64, [1])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None])])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), self.model)
        for n, status in ((1 << 33, 1), (1 << 10, 0)):
            save(self.folder, "input", [np.ones(1, np.float32), np.array([n])])
            save(self.folder, "output", [np.ones(min(n, 1 << 10), np.float32)])
            done = run("onnxruntime", self.model, self.folder)
            self.assertEqual(done.returncode, status, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()

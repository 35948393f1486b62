#!/usr/bin/env python3
"""weir-worker inspect on files that are no models, hostile ones, and one that is."""
import json
import pathlib
import struct
import subprocess
import tempfile
import unittest

from peers import WORKER

INVALID, DAMAGED, NOT_FOUND, UNSUPPORTED, MEMORY, TIMEOUT = 2, 3, 4, 7, 8, 9


def field(number, content):
    """A field of a protobuf message: a number, or bytes."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def port(name, dims):
    shape = b"".join(field(1, field(1, dim) if dim > 0 else field(2, b"N")) for dim in dims)
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)))


def node(kind, *names):
    return field(1, b"".join(field(1, name) for name in names[:-1]) + field(2, names[-1]) + field(4, kind))


def model(nodes, inputs, outputs, opset=13):
    graph = b"".join(nodes) + b"".join(field(11, p) for p in inputs) + b"".join(field(12, p) for p in outputs)
    return field(1, 8) + field(8, field(2, opset)) + field(7, graph)


def inspect(path, *flags):
    return subprocess.run([WORKER, "inspect", path, *flags], capture_output=True, text=True, check=False, timeout=120)


class Inspect(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name)
        self.file = self.folder / "model"

    def refused(self, status, *words, flags=()):
        done = inspect(self.file, *flags)
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        return done.stderr

    def test_what_is_no_model(self):
        self.refused(NOT_FOUND, "No such file")
        self.file.write_bytes(b"hello")
        self.refused(INVALID, "neither a model that Weir trained (safetensors) nor ONNX")
        self.assertNotIn(str(self.folder), self.refused(INVALID, "m.onnx: neither", flags=["--name", "m.onnx"]))
        self.file.write_bytes(b"")
        self.refused(INVALID, "empty")

    def test_two_gigabytes_of_zeros(self):
        with open(self.file, "wb") as file:
            file.truncate(2 << 30)
        self.refused(INVALID, "neither")

    def test_a_header_that_promises_more_than_there_is(self):
        self.file.write_bytes(struct.pack("<Q", 1 << 40) + b'{"a":1}')
        self.refused(INVALID, "neither")
        self.file.write_bytes(struct.pack("<Q", 7) + b'{"a":1}')
        self.refused(DAMAGED)

    def test_a_file_that_was_cut_off(self):
        whole = model([node(b"Neg", b"x", b"y")], [port(b"x", [-1, 4])], [port(b"y", [-1, 4])])
        for n in range(4, len(whole), 7):
            self.file.write_bytes(whole[:n])
            self.assertNotEqual(inspect(self.file).returncode, 0)

    def test_a_model_that_needs_too_much_memory(self):
        dims = [1 << 14, 1 << 14]
        self.file.write_bytes(model([node(b"Neg", b"x", b"y")], [port(b"x", dims)], [port(b"y", dims)]))
        self.refused(MEMORY, "no memory for 16384x16384", flags=["--memory-mb", "512", "--onnxruntime", "/nowhere"])

    def test_a_model_that_takes_too_long(self):
        dims = [1 << 13, 1 << 13]
        nodes = [node(b"MatMul", b"x" if i == 0 else b"v%d" % i, b"x", b"v%d" % (i + 1)) for i in range(2000)]
        self.file.write_bytes(model(nodes, [port(b"x", dims)], [port(b"v2000", dims)]))
        self.refused(TIMEOUT, "not done within 1 s", flags=["--timeout-s", "1"])

    def test_an_operator_that_nobody_has(self):
        self.file.write_bytes(model([node(b"Quark", b"x", b"y")], [port(b"x", [-1, 4])], [port(b"y", [-1, 4])]))
        self.refused(UNSUPPORTED, "operator Quark of opset 13", "onnxruntime", flags=["--onnxruntime", "/nowhere"])

    def test_a_model_that_is_one(self):
        rule = self.folder / "rule.yaml"
        labels = self.folder / "labels"
        rule.write_text("width: 6\nheight: 5\nmean: 0.5\n")
        labels.write_text("a\nb\nc\nd\ne\nf\n")
        dims = [-1, 3, -1, 6]
        self.file.write_bytes(model([node(b"Softmax", b"x", b"y")], [port(b"x", dims)], [port(b"y", dims)]))
        done = inspect(self.file, "--labels", labels, "--preprocess", rule)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = json.loads(done.stdout)
        self.assertEqual((said["format"], said["executor"], said["is_batched"]), ("onnx", "onnx", True))
        self.assertEqual(said["inputs"], [{"name": "x", "datatype": "FP32", "shape": dims}])
        self.assertEqual((said["picture"]["height"], said["picture"]["mean"]), (5, [0.5] * 3))
        self.assertEqual(said["labels"], list("abcdef"))
        rule.write_text("height: 5\nwidth: 7\n")
        done = inspect(self.file, "--preprocess", rule)
        self.assertEqual(done.returncode, INVALID)
        self.assertIn("do not fit input", done.stderr)

    def test_the_shape_of_an_input_is_said(self):
        shapes = self.folder / "shapes.yaml"
        dims = [10, 3, 32, 32]
        self.file.write_bytes(model([node(b"Softmax", b"x", b"y")], [port(b"x", dims)], [port(b"y", dims)]))
        self.assertIn('--input "x=N,3,H,W"', json.loads(inspect(self.file).stdout)["why"])
        for text, wanted in (('{x: "N,3,H,W"}', [-1, 3, -1, -1]), ('{x: "1,3,64,W"}', [1, 3, 64, -1])):
            shapes.write_text(text)
            said = json.loads(inspect(self.file, "--inputs", shapes).stdout)
            self.assertEqual((said["inputs"][0]["shape"], said["outputs"][0]["shape"]), (wanted, wanted))
        for text, words in (('{x: "N,3"}', "has 4 dimensions"), ('{z: "N"}', 'no input "z", but x'), ('{x: "N,,3,4"}', "expected up to 8"),
                            ('{x: "0,3,4,5"}', "expected up to 8"), ("{x: 3}", "expected up to 8"), ("3", "expected the shapes")):
            shapes.write_text(text)
            self.refused(INVALID, words, flags=["--inputs", shapes])


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""Random graphs of ONNX's operators beside onnxruntime: what Weir's engine makes of them, it makes too.

src/onnx/test/random_graphs_test.c writes the graphs, their inputs, what came out, and how far each number may be off.
Graphs that onnxruntime refuses, as for types that it has no operator for, say nothing. SEEDS=FIRST:N plays others.
It runs them as they are: what its optimisations make of pairs of QuantizeLinear is another thing.
"""
import os
import pathlib
import subprocess
import tempfile
import unittest

from peers import BIN, run_in_peers

run_in_peers()

import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime as ort  # noqa: E402
from onnx import numpy_helper  # noqa: E402

WRITER = BIN.parent / "src/onnx/onnx_random_graphs_test"
FIRST, N = (int(number) for number in os.environ.get("SEEDS", "1:150").split(":"))
TYPES = {1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64, 9: np.bool_, 10: np.float16,
         11: np.float64, 12: np.uint32, 13: np.uint64, 16: ml_dtypes.bfloat16}


def read(path, has_tolerances):
    """Name to tensor, or to tensor and tolerances."""
    data, at, tensors = path.read_bytes(), 0, {}
    while at < len(data):
        end = data.index(b"\n", at)
        name, dtype, _, *dims = data[at:end].decode().split()
        dims = [int(size) for size in dims]
        count, at = int(np.prod(dims)), end + 1
        if int(dtype) not in TYPES:
            return None
        tensor = np.frombuffer(data, TYPES[int(dtype)], count, at).reshape(dims)
        at += tensor.nbytes
        tensors[name] = tensor
        if has_tolerances:
            tensors[name] = (tensor, np.frombuffer(data, np.float64, count, at).reshape(dims))
            at += 8 * count
    return tensors


# Where onnxruntime lets NaN or infinities go another way than ONNX's own reference does.
PECULIAR = {"Clip", "Conv", "ConvTranspose", "GlobalMaxPool", "Hardmax", "LRN", "Max", "MaxPool", "Min", "ReduceMax", "ReduceMin", "Resize", "RoiAlign"}


def is_peculiar(path, tensors):
    """Does a graph with such an operator meet such numbers?"""
    model = onnx.load(str(path))
    constants = [numpy_helper.to_array(tensor) for tensor in model.graph.initializer]
    numbers = [tensor for tensor in [*tensors, *constants] if tensor.dtype.kind in "fV"]
    is_whole = all(np.isfinite(tensor.astype(np.float64)).all() for tensor in numbers)
    types = {node.op_type for node in model.graph.node}
    return "MeanVarianceNormalization" in types or (not is_whole and bool(PECULIAR & types))


def differs(got, want, tolerances):
    """A sentence, or None."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"is {got.dtype} {got.shape}, not {want.dtype} {want.shape}"
    a, b = got.astype(np.float64), want.astype(np.float64)
    largest = np.max(np.abs(b), initial=0, where=np.isfinite(b))
    with np.errstate(invalid="ignore"):
        near = np.abs(a - b) <= tolerances + (tolerances > 0) * (1e-5 * np.abs(b) + 2e-5 * largest)
        bad = ~((a == b) | (np.isnan(a) & np.isnan(b)) | near | np.isnan(tolerances))
    if not bad.any():
        return None
    i = np.argmax(bad)
    return f"[{i}] of {bad.size}, {bad.sum()} in all, is {b.flat[i]:.9g}; onnxruntime says {a.flat[i]:.9g} +- {tolerances.flat[i]:.3g}"


class RandomGraphs(unittest.TestCase):
    def test_graphs_come_out_as_onnxruntime_computes_them(self):
        options = ort.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        played, wrong = 0, []
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([WRITER, "--write", folder, str(FIRST), str(N)], check=True)
            for path in sorted(pathlib.Path(folder).glob("*.onnx")):
                feed, want = read(path.with_suffix(".in"), False), read(path.with_suffix(".out"), True)
                if feed is None or want is None or is_peculiar(path, [*feed.values(), *(tensor for tensor, _ in want.values())]):
                    continue
                try:
                    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
                    got = dict(zip(want, session.run(list(want), feed)))
                except Exception:  # its kinds of refusal have no common class
                    continue
                played += 1
                for name, (tensor, tolerances) in want.items():
                    sentence = differs(np.asarray(got[name]), tensor, tolerances)
                    if sentence:
                        node = next(node for node in onnx.load(str(path)).graph.node if name in node.output)
                        wrong.append(f"seed {path.stem}: {name} of {node.op_type}({', '.join(node.input)}) {sentence}")
        print(f"{played} of {N} graphs were played")
        self.assertGreater(played, N // 4)
        self.assertEqual([], wrong, "\n".join(wrong))


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""Weir's engine for ONNX files beside onnxruntime, in alternation, on the same inputs.

    python3 -m venv build/bench-onnx && build/bench-onnx/bin/pip install onnx onnxruntime numpy
    make tools
    build/bench-onnx/bin/python bench/onnx_against_onnxruntime.py [MODEL …] [--batches 1,16] [--rounds 9] [--threads 2] [--shape 1,3,384,640]

MODEL is a name of bench/onnx_models.py, or a file. onnxruntime runs with all optimisations, sequentially, with
each number of threads up to --threads; its best one counts. A round is a few runs of the one and then of the other. Told
are the medians of all runs, and the ratio of onnxruntime's to Weir's: above 1, Weir is faster. --shape: of the input, in place
of the file's; weights are then no inputs any more, which onnxruntime could not fold and pack.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime as ort

import onnx_models

ROOT = pathlib.Path(__file__).resolve().parent.parent
MADE = ROOT / "build" / "bench-models"
SETTLE_S = 0.1  # until the other one's threads have stopped to spin
BLOCK_MS = 150  # of runs of the one in a round
TOOL = pathlib.Path(os.environ.get("ONNX_BENCH", ROOT / "build/release/tools/onnx-bench"))


def find(name):
    """The file of a model; it is made where there is none."""
    if pathlib.Path(name).exists():
        return pathlib.Path(name)
    MADE.mkdir(parents=True, exist_ok=True)
    path = MADE / f"{name}.onnx"
    if path.exists():
        return path
    if name.endswith("_int8"):
        source = find(name[:-5])
        folded = MADE / f"{name[:-5]}_folded.onnx"
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.optimized_model_filepath = str(folded)
        ort.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])
        onnx_models.quantise(str(folded), str(path), 299 if name.startswith("inception") else 224)
    else:
        onnx_models.MODELS[name](str(path))
    return path


def reshape(path, shape):
    """The file with another shape of its input, and without weights among its inputs."""
    model = onnx.load(str(path))
    graph = model.graph
    weights = {tensor.name for tensor in graph.initializer}
    inputs = [port for port in graph.input if port.name not in weights]
    del graph.input[:], graph.value_info[:]
    graph.input.extend(inputs)
    for dim, size in zip(graph.input[0].type.tensor_type.shape.dim, shape):
        dim.dim_value = size
    for port in graph.output:
        port.type.tensor_type.ClearField("shape")
    MADE.mkdir(parents=True, exist_ok=True)
    path = MADE / f"{path.stem}_{'x'.join(map(str, shape))}.onnx"
    onnx.save(model, str(path))
    return path


class Peer:
    """onnxruntime, at a number of threads."""

    def __init__(self, path, threads, feed):
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        self.session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.feed = feed
        self.output = self.session.run(None, feed)[0]

    def run(self, n):
        times = []
        for _ in range(n):
            begin = time.perf_counter()
            self.session.run(None, self.feed)
            times.append((time.perf_counter() - begin) * 1e3)
        return times


class Weir:
    def __init__(self, path, threads, batch, values, folder):
        (folder / "in").write_bytes(values.tobytes())
        self.process = subprocess.Popen(
            [str(TOOL), str(path), str(batch), str(threads), str(folder / "in"), str(folder / "out")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ready = self.process.stdout.readline().strip()
        self.output = np.fromfile(folder / "out", np.float32)

    def run(self, n):
        self.process.stdin.write(f"{n}\n")
        self.process.stdin.flush()
        return [float(t) for t in self.process.stdout.readline().split()]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def shape_of(session, batch):
    port = session.get_inputs()[0]
    return port.name, [d if isinstance(d, int) else batch for d in port.shape]


def compare(name, batch, rounds, threads, shape=None):
    path = reshape(find(name), shape) if shape else find(name)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    port, shape = shape_of(ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"]), batch)
    values = np.random.default_rng(6).normal(0, 1, shape).astype(np.float32)
    peers = [Peer(path, t, {port: values}) for t in range(1, threads + 1)]
    with tempfile.TemporaryDirectory() as folder:
        weir = Weir(path, threads, batch, values, pathlib.Path(folder))
        peers = [min(peers, key=lambda p: statistics.median(p.run(3)))]
        each = max(1, int(BLOCK_MS / statistics.median(peers[0].run(3))))
        ours, theirs = [], []
        for _ in range(rounds):
            time.sleep(SETTLE_S)
            ours += weir.run(each)
            time.sleep(SETTLE_S)
            theirs += peers[0].run(each)
        weir.close()
    peer = peers[0].output.ravel()
    off = float(np.abs(peer - weir.output).max() / (np.abs(peer).max() + 1e-30)) if peer.size == weir.output.size else -1
    a, b = statistics.median(ours), statistics.median(theirs)
    print(f"{path.stem:16} batch {batch:3}  weir {a:9.2f} ms  onnxruntime {b:9.2f} ms  ratio {b / a:5.2f}  "
          f"largest difference {off:.1e} of the largest output  ({weir.ready})", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*")
    parser.add_argument("--batches", default="1,16")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--shape", type=lambda text: [int(size) for size in text.split(",")])
    arguments = parser.parse_args()
    ort.set_default_logger_severity(3)
    if not TOOL.exists():
        sys.exit(f"{TOOL} is not there: make tools")
    for name in arguments.models or [*onnx_models.MODELS, "resnet50_int8"]:
        for batch in arguments.batches.split(","):
            compare(name, int(batch), arguments.rounds, arguments.threads, arguments.shape)


if __name__ == "__main__":
    main()

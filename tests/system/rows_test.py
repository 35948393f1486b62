#!/usr/bin/env python3
"""rows_test.py: an answer is a function of its request alone. Random networks, half of them with a step that looks at the
whole batch, are pushed and deployed; eight callers ask at once, one of them with numbers far from all others, and each must
get what the same rows get alone. WEIR_ROWS_MODELS=1000: how many (default 2); WEIR_ROWS_SEED: the first one's seed."""
import math
import os
import pathlib
import random
import struct
import sys
import threading
import unittest

import harness
from harness import HttpError, Server, wait_until

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "bench"))
from inference_models import field, port, tensor  # noqa: E402

N_MODELS = int(os.environ.get("WEIR_ROWS_MODELS", 2))
FIRST_SEED = int(os.environ.get("WEIR_ROWS_SEED", 1))
N_CALLERS = 8
WIDTH = 4
FAR = 1e4
ROUNDING = 1e-4  # of an answer's size


class Net:
    """Values of [n, WIDTH], a step after the other."""

    def __init__(self, seed):
        self.dice, self.nodes, self.tensors, self.n = random.Random(seed), [], [], 0
        n_steps = self.dice.randint(1, 5)
        at = self.dice.randrange(n_steps) if seed % 2 else -1
        x = "x"
        for i in range(n_steps):
            steps = self.mixing if i == at else self.apart
            x = self.dice.choice(steps())(x)
        self.node("Identity", x, out="y")

    def name(self):
        self.n += 1
        return f"t{self.n}"

    def node(self, op, *inputs, out=None, **attributes):
        out = out or self.name()
        parts = b"".join(field(1, i) for i in inputs) + field(2, out) + field(4, op)
        for key, value in attributes.items():
            parts += field(5, field(1, key) + field(3, value & (1 << 64) - 1) + field(20, 2))
        self.nodes.append(parts)
        return out

    def floats(self, *dims):
        name = self.name()
        self.tensors.append(tensor(name, dims, [self.dice.gauss(0, 1) for _ in range(math.prod(dims))]))
        return name

    def ints(self, *values, scalar=False):
        name = self.name()
        dims = b"" if scalar else field(1, len(values))
        self.tensors.append(dims + field(2, 7) + field(8, name) + field(9, struct.pack(f"<{len(values)}q", *values)))
        return name

    def count(self, x):
        return self.node("Gather", self.node("Shape", x), self.ints(0), axis=0)

    def apart(self):
        node, ints, floats = self.node, self.ints, self.floats
        return [lambda x: node(self.dice.choice(["Relu", "Sigmoid", "Tanh", "Abs"]), x),
                lambda x: node("MatMul", x, floats(WIDTH, WIDTH)),
                lambda x: node("Gemm", x, floats(WIDTH, WIDTH), floats(WIDTH)),
                lambda x: node("Softmax", x, axis=-1),
                lambda x: node("Reshape", node("Softmax", node("Reshape", x, node("Concat", self.count(x), ints(2, -1), axis=0)), axis=2),
                               ints(-1, WIDTH)),
                lambda x: node("Sub", x, node("ReduceMean", x, ints(1), keepdims=1)),
                lambda x: node("Flatten", node("Unsqueeze", x, ints(1)), axis=1)]

    def mixing(self):
        node, ints = self.node, self.ints
        return [lambda x: node("Softmax", x, axis=0),
                lambda x: node("Sub", x, node("ReduceMean", x, ints(0), keepdims=1)),
                lambda x: node("Div", x, node("ReduceMax", x, keepdims=1)),
                lambda x: node("MatMul", node("MatMul", x, node("Transpose", x)), x),
                lambda x: node("Add", x, node("Gather", x, ints(0), axis=0)),
                lambda x: node("CumSum", x, ints(0, scalar=True)),
                lambda x: node("Mul", x, node("Cast", self.count(x), to=1)),
                lambda x: node("Slice", x, ints(-1), ints(-(1 << 62)), ints(0), ints(-1)),
                lambda x: node("Reshape", node("Softmax", node("Reshape", x, ints(WIDTH, -1)), axis=1), ints(-1, WIDTH)),
                lambda x: self.quantised(x)]

    def quantised(self, x):
        """One scale for the whole batch, as every quantize_dynamic export has it."""
        q, scale, zero = self.name(), self.name(), self.name()
        self.nodes.append(field(1, x) + b"".join(field(2, o) for o in (q, scale, zero)) + field(4, "DynamicQuantizeLinear"))
        return self.node("DequantizeLinear", q, scale, zero)

    def bytes(self):
        graph = b"".join(field(1, n) for n in self.nodes) + field(2, "g") + b"".join(field(5, t) for t in self.tensors)
        graph += field(11, port("x", (None, WIDTH))) + field(12, port("y", (None, WIDTH)))
        return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 18))


def is_near(answer, alone):
    if not isinstance(answer, list) or not isinstance(alone, list) or len(answer) != len(alone):
        return answer == alone
    size = max((abs(v) for v in alone if v is not None), default=0)
    return all(a == b or (a is not None and b is not None and abs(a - b) <= ROUNDING * size) for a, b in zip(answer, alone))


class Rows(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--cpu-slots", "8").start()
        cls.addClassCleanup(cls.server.stop)

    def ask(self, name, rows):
        """The numbers, or the error's words."""
        body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [len(rows), WIDTH], "data": sum(rows, [])}]}
        try:
            return self.server.request("POST", f"/v2/models/{name}/infer", body)["outputs"][0]["data"]
        except HttpError as error:
            return f"{error.code} {error.error}"

    def play(self, seed):
        """Answers that are not those to the same rows alone, and whether requests were joined."""
        name, dice = f"net{seed}", random.Random(seed)
        path = self.server.root / f"{name}.onnx"
        path.write_bytes(Net(seed).bytes())
        self.server.weir("model", "push", name, str(path))
        self.server.weir("deploy", name)
        wait_until(lambda: not str(self.ask(name, [[0.0] * WIDTH])).startswith("503"), 60, f"a replica of {name}")
        rows = [[[dice.gauss(0, 1) * (FAR if i == 3 else 1) for _ in range(WIDTH)] for _ in range(dice.randint(1, 2))]
                for i in range(N_CALLERS)]
        alone = [self.ask(name, r) for r in rows]
        together = [None] * N_CALLERS

        def call(i):
            together[i] = self.ask(name, rows[i])
        for _ in range(3):
            threads = [threading.Thread(target=call, args=(i,)) for i in range(N_CALLERS)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            wrong = [i for i in range(N_CALLERS) if not is_near(together[i], alone[i])]
            self.assertEqual(wrong, [], f"WEIR_ROWS_SEED={seed}: {[(alone[i], together[i]) for i in wrong][:2]}")
        why = self.server.get(f"/models/{name}/versions/1")["signature"]["why"]
        self.server.weir("undeploy", name)
        return "not joined" not in why

    def test_an_answer_is_a_function_of_its_request_alone(self):
        n_joined = sum(self.play(seed) for seed in range(FIRST_SEED, FIRST_SEED + N_MODELS))
        print(f"{N_MODELS} networks, requests of {n_joined} are joined", flush=True)
        if N_MODELS > 1:
            self.assertGreaterEqual(n_joined, N_MODELS // 2)


if __name__ == "__main__":
    harness.main()

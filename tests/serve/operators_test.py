#!/usr/bin/env python3
"""Every operator of Weir's own executor, each with random types, shapes, attributes and elements, against two others.

A model of one node is run by the interpreter and by the fast path (model_case stream), by onnx.reference and by
onnxruntime. Integers must be what these say to the bit, floats but for rounding. Where the two differ it must be
what one of them says; where both compute integers in floats, it must be what Python's integers give. Elements are
chosen from the ends of their type, from the neighbours of 2^53, from NaN, the infinities, both zeros and subnormals.
The fast path is not asked about floats that are not finite here.

WEIR_OPERATOR_CASES models are made (default 400), from WEIR_SEED or a seed that is printed; WEIR_OPERATOR makes them
of one operator.
"""
import os
import random
import re
import struct
import subprocess
import unittest
import warnings

from peers import MODEL_CASE, ROOT, run_in_peers

run_in_peers()

import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402
from onnx import numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402
from operator_cases import INTEGERS, OPERATORS  # noqa: E402

warnings.simplefilter("ignore")
onnxruntime.set_default_logger_severity(4)
np.seterr(all="ignore")

SEED = int(os.environ.get("WEIR_SEED", random.SystemRandom().randrange(1 << 32)))
CASES = int(os.environ.get("WEIR_OPERATOR_CASES", 400))
CLOSE = {"float16": 2e-3, "float32": 2e-5, "float64": 1e-9}
SHOWN = 20


# ---- answers -------------------------------------------------------------------------------------------------------

def blob(data):
    return struct.pack("I", len(data)) + data


def weir(cases, *how):
    """What Weir says to each: arrays, or a text."""
    stream = b"".join(
        struct.pack("I", 1 + len(case.feed())) + blob(case.model().SerializeToString()) +
        b"".join(blob(numpy_helper.from_array(x).SerializeToString()) for x in case.feed().values()) for case in cases)
    done = subprocess.run([MODEL_CASE, "stream", *how], input=stream, capture_output=True, check=False)
    lines = done.stdout.decode("utf-8", "replace").split("\n")[:-1]
    if done.returncode != 0 or len(lines) != len(cases):
        raise AssertionError(f"exit {done.returncode} after {len(lines)} of {len(cases)}: {cases[min(len(lines), len(cases) - 1)]}\n{done.stderr.decode()}")
    return [parse(line) for line in lines]


KINDS = {"FLOAT": np.float32, "DOUBLE": np.float64, "FLOAT16": np.float16, "BOOL": np.bool_} | {np.dtype(t).name.upper(): t for t in INTEGERS}


def parse(line):
    if not line.startswith("ok "):
        return line
    words = line[3:].split(" ")
    arrays = []
    for name, dims, data in zip(words[0::3], words[1::3], words[2::3]):
        shape = () if dims == "scalar" else tuple(int(n) for n in dims.split("x"))
        if name == "STRING":
            arrays.append(np.array([bytes.fromhex(t).decode() for t in data.split(",")[:-1]], dtype=object).reshape(shape))
            continue
        arrays.append(np.frombuffer(b"" if data == "-" else bytes.fromhex(data), dtype=KINDS[name]).reshape(shape))
    return arrays


def judged(judge):
    try:
        return [np.asarray(x) for x in judge()]
    except Exception:  # pylint: disable=broad-except  what a judge cannot run, it does not judge
        return None


def agrees(got, judges, close):
    """Is each number what one of the judges says?"""
    for k, a in enumerate(got):
        said = [want[k] for want in judges if len(want) == len(got) and want[k].dtype == a.dtype and want[k].shape == a.shape]
        right = np.zeros(a.shape, dtype=bool)
        for b in said:
            if np.issubdtype(a.dtype, np.floating):
                near = max(close or 0, CLOSE[a.dtype.name])
                right |= np.isclose(a.astype(np.float64), b.astype(np.float64), rtol=near, atol=near, equal_nan=True)
            else:
                right |= a == b
        if not said or not right.all():
            return False
    return True


class Operators(unittest.TestCase):
    def test_each_operator_of_the_source_is_tried_here(self):
        tables = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "src/onnx/ops").glob("*.c")))
        in_source = set(re.findall(r'(?:^    \{|UNARY\(|BINARY\(|REDUCE\()"(\w+)",', tables, re.M))
        self.assertGreater(len(in_source), 130)
        self.assertEqual(in_source, set(OPERATORS))

    def test_random_nodes_give_what_others_give(self):
        print(f"WEIR_SEED={SEED} WEIR_OPERATOR_CASES={CASES}", flush=True)
        rng = random.Random(SEED)
        names = [os.environ["WEIR_OPERATOR"]] if "WEIR_OPERATOR" in os.environ else sorted(OPERATORS)
        ops = [names[k % len(names)] for k in range(CASES)]
        cases = [OPERATORS[op](rng, op) for op in ops]
        answers = {"interpreted": weir(cases, "interpret"), "fast": weir(cases)}
        wrong, n_judged, n_refused = [], 0, {}
        for k, case in enumerate(cases):
            session = lambda case=case: onnxruntime.InferenceSession(case.model().SerializeToString(), providers=["CPUExecutionProvider"]).run(None, case.feed())
            given = {"reference": judged(lambda case=case: ReferenceEvaluator(case.model()).run(None, case.feed())), "onnxruntime": judged(session)}
            judges = {name: said for name, said in given.items() if said is not None}
            judges = judges if case.exact is None else {"integers": case.exact}
            n_judged += len(judges) > 0
            is_odd = any(np.issubdtype(x.dtype, np.floating) and not np.isfinite(x).all() for x in case.feed().values())
            for way, said in answers.items():
                if way == "fast" and is_odd:
                    continue
                if isinstance(said[k], str):
                    n_refused[case.op] = n_refused.get(case.op, 0) + 1
                    if judges:
                        wrong.append(f"{case}\n  {way}: {said[k]}")
                elif judges and not agrees(said[k], judges.values(), case.close):
                    wrong.append(f"{case}\n  {way}: {[a.tolist() for a in said[k]]}\n" + "\n".join(f"  {n}: {[a.tolist() for a in w]}" for n, w in judges.items()))
        print(f"{len(cases)} models, {n_judged} judged, {len(wrong)} wrong, refused: {n_refused}")
        self.assertEqual(len(wrong), 0, "\n" + "\n".join(wrong[:SHOWN]))


if __name__ == "__main__":
    unittest.main()

"""Random models of one node: what goes into each operator, and what Python's integers say of the answer.

MAKERS says which function makes the cases of which operators: it takes a generator of random numbers and the
operator's name. Used by operators_test.py, in the environment of peers.py.
"""
import fractions
import math

import numpy as np
from onnx import helper, numpy_helper

INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
FLOATS = [np.float32, np.float32, np.float16, np.float64]
NUMBERS = INTEGERS + FLOATS


# ---- elements ------------------------------------------------------------------------------------------------------

def integers(rng, dtype, shape, low=None, high=None):
    ends = np.iinfo(dtype)
    low, high = (ends.min if low is None else low), (ends.max if high is None else high)
    near = [v for v in (0, 1, -1, 2, 3, low, low + 1, high, high - 1, 2**53, 2**53 - 1, 2**53 + 1, 2**63 - 1, 2**63, 2**63 + 1,
                        -2**53 - 1, 2**31 - 1, 2**24 + 1) if low <= v <= high]
    pick = lambda: rng.choice(near) if rng.random() < 0.5 else rng.randint(low, high) if rng.random() < 0.3 else rng.randint(max(low, -9), min(high, 9))
    return np.array([pick() for _ in range(math.prod(shape))], dtype=dtype).reshape(shape)


def floats(rng, dtype, shape, odd=True, scale=4.0):
    tiny = float(np.finfo(dtype).smallest_subnormal)
    strange = [math.nan, math.inf, -math.inf, 0.0, -0.0, tiny, -tiny, 0.5, -0.5, 1.0]
    pick = lambda: rng.choice(strange) if odd and rng.random() < 0.15 else rng.gauss(0, scale)
    return np.array([pick() for _ in range(math.prod(shape))], dtype=np.float64).astype(dtype).reshape(shape)


def factors(rng, dtype, shape):
    """Floats whose product is the same in any order, but for rounding: what is finite neither grows nor vanishes on the way."""
    pick = lambda: rng.choice([math.nan, math.inf, -math.inf, 0.0, -0.0]) if rng.random() < 0.1 else rng.choice([1, -1]) * rng.uniform(0.97, 1.03)
    return np.array([pick() for _ in range(math.prod(shape))], dtype=np.float64).astype(dtype).reshape(shape)


def elements(rng, dtype, shape, odd=True):
    if dtype is bool:
        return np.array([rng.random() < 0.5 for _ in range(math.prod(shape))]).reshape(shape)
    return integers(rng, dtype, shape) if np.issubdtype(dtype, np.integer) else floats(rng, dtype, shape, odd)


def some_shape(rng, least=1, most=4):
    return tuple(rng.randint(1, 5) for _ in range(rng.randint(least, most)))


def broadcast_shapes(rng):
    shape = some_shape(rng)
    other = tuple(1 if rng.random() < 0.3 else n for n in shape)[rng.choice([0, 0, 1]):]
    return (shape, other) if rng.random() < 0.5 else (other, shape)


def any_axis(rng, rank):
    return rng.randrange(-rank, rank)


def i64(*values):
    return np.array(values, dtype=np.int64)


# ---- cases ---------------------------------------------------------------------------------------------------------

class Case:
    """A node, what goes into it, and what is known of the answer beside the two judges."""

    def __init__(self, op, inputs, n_out=1, opset=21, exact=None, close=None, **attributes):
        self.op, self.inputs, self.n_out, self.opset = op, inputs, n_out, opset
        self.exact, self.close, self.attributes = exact, close, attributes

    def model(self):
        names = ["" if x is None else f"i{k}" for k, x in enumerate(self.inputs)]
        outs = [f"o{k}" for k in range(self.n_out)]
        value = lambda name, x: helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        graph = helper.make_graph(
            [helper.make_node(self.op, names, outs, **self.attributes)], "one",
            [value(n, x) for n, x in zip(names, self.inputs) if n], [helper.make_empty_tensor_value_info(o) for o in outs])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10)

    def feed(self):
        return {f"i{k}": x for k, x in enumerate(self.inputs) if x is not None}

    def __str__(self):
        shown = [f"{x.dtype}{list(x.shape)}{x.flatten()[:8].tolist()}" if x is not None else "-" for x in self.inputs]
        return f"{self.op}-{self.opset} {self.attributes} of {', '.join(shown)}"


def unary(*dtypes):
    return lambda rng, op: Case(op, [elements(rng, rng.choice(dtypes), some_shape(rng))])


def activation(**choices):
    def make(rng, op):
        attributes = {name: rng.choice(values) for name, values in choices.items() if rng.random() < 0.7}
        return Case(op, [elements(rng, rng.choice(FLOATS), some_shape(rng))], **attributes)
    return make


def binary(dtypes, **attributes):
    def make(rng, op):
        dtype = rng.choice(dtypes)
        return Case(op, [elements(rng, dtype, shape) for shape in broadcast_shapes(rng)], **attributes)
    return make


def divided(rng, op):
    """What divides is not zero, and not -1 below the least."""
    dtype = rng.choice(NUMBERS)
    a, b = (elements(rng, dtype, shape) for shape in broadcast_shapes(rng))
    if np.issubdtype(dtype, np.integer):
        b[(b == 0) | (b == np.array(-1).astype(dtype))] = 3
    fmod = int(np.issubdtype(dtype, np.floating) or rng.random() < 0.5)
    return Case(op, [a, b], **({"fmod": fmod} if op == "Mod" else {}))


def powers(rng, op):
    base = rng.choice([np.int32, np.int64, np.float32, np.float64, np.float16])
    exponent = rng.choice([base, *INTEGERS, np.float32])
    a, b = broadcast_shapes(rng)
    if np.issubdtype(base, np.integer):
        x, y = integers(rng, base, a, -3, 3), integers(rng, np.int64, b, 0, 18).astype(exponent)
        return Case(op, [x, y], opset=15)
    return Case(op, [floats(rng, base, a, False, 1.5), integers(rng, np.int64, b, 0, 3).astype(exponent)], opset=15)


def shifts(rng, op):
    dtype = rng.choice([np.uint8, np.uint16, np.uint32, np.uint64])
    a, b = broadcast_shapes(rng)
    return Case(op, [integers(rng, dtype, a), integers(rng, dtype, b, 0, 8 * np.dtype(dtype).itemsize - 1)], direction=rng.choice(["LEFT", "RIGHT"]))


def several(rng, op):
    dtype = rng.choice(FLOATS if op in ("Sum", "Mean") else NUMBERS)
    shape = some_shape(rng)
    return Case(op, [elements(rng, dtype, shape) for _ in range(rng.randint(1, 4))], opset=13)


def wrapped(value, dtype):
    bits = 8 * np.dtype(dtype).itemsize
    value &= (1 << bits) - 1
    return value - (1 << bits) if np.issubdtype(dtype, np.signedinteger) and value >> (bits - 1) else value


def cut(value, n):
    return value // n if value >= 0 else -(-value // n)


WHOLE = {
    "ReduceSum": sum, "ReduceMean": lambda v: cut(sum(v), len(v)), "ReduceL1": lambda v: sum(map(abs, v)), "ReduceProd": math.prod,
    "ReduceSumSquare": lambda v: sum(n * n for n in v), "ReduceL2": lambda v: math.isqrt(sum(n * n for n in v)), "ReduceMax": max, "ReduceMin": min,
}


def reductions(rng, op):
    dtype = rng.choice(NUMBERS if op in WHOLE else FLOATS)
    shape = some_shape(rng)
    x = elements(rng, dtype, shape)
    if op == "ReduceProd" and np.issubdtype(dtype, np.floating):
        x = factors(rng, dtype, shape)
    if op == "ReduceL2" and np.issubdtype(dtype, np.integer):
        x //= 32  # the root has to fit
    axes = sorted(rng.sample(range(len(shape)), rng.randint(0, len(shape))))
    keeps = rng.randint(0, 1)
    over = axes or list(range(len(shape)))
    exact = None
    if np.issubdtype(dtype, np.integer):
        kept = [k for k in range(len(shape)) if k not in over]
        rows = x.transpose(kept + over).reshape(math.prod(shape[k] for k in kept), -1)
        dims = [1 if k in over else n for k, n in enumerate(shape) if keeps or k not in over]
        exact = [np.array([wrapped(WHOLE[op]([int(n) for n in row]), dtype) for row in rows], dtype=dtype).reshape(dims)]
    close = 0.02 if dtype is np.float16 else 3e-4 if dtype is np.float32 else None
    return Case(op, [x] + ([i64(*axes)] if axes else []), opset=18, exact=exact, close=close, keepdims=keeps)


def where_is(rng, op):
    shape = some_shape(rng)
    return Case(op, [elements(rng, rng.choice(NUMBERS), shape)], axis=any_axis(rng, len(shape)), keepdims=rng.randint(0, 1), select_last_index=rng.randint(0, 1))


def top_k(rng, op):
    shape = some_shape(rng)
    axis = any_axis(rng, len(shape))
    return Case(op, [elements(rng, rng.choice(NUMBERS), shape), i64(rng.randint(1, shape[axis]))], n_out=2, axis=axis, largest=rng.randint(0, 1))


def cumulative(rng, op):
    shape, dtype = some_shape(rng), rng.choice([np.int32, np.int64, np.uint32, np.uint64, np.float32, np.float64])
    return Case(op, [elements(rng, dtype, shape), np.array(any_axis(rng, len(shape)))], exclusive=rng.randint(0, 1), reverse=rng.randint(0, 1))


def clips(rng, op):
    dtype = rng.choice(NUMBERS)
    bounds = [None if rng.random() < 0.2 else elements(rng, dtype, (), False) for _ in range(2)]
    while bounds and bounds[-1] is None:
        bounds.pop()
    return Case(op, [elements(rng, dtype, some_shape(rng)), *bounds], opset=13)


def ranges(rng, op):
    dtype = rng.choice([np.int16, np.int32, np.int64, np.float32, np.float64])
    n, step = rng.randint(0, 20), rng.choice([-3, -1, 1, 2, 5])
    if np.issubdtype(dtype, np.integer):
        ends = np.iinfo(dtype)
        start = rng.choice([0, 5, ends.max - 110, ends.min + 110, *([2**53 + 1] if dtype is np.int64 else [])])
        given = [start, start + n * step + (step // abs(step) if n else 0), step]
        exact = [np.array(list(range(*given)), dtype=dtype)]
    else:
        start, step = rng.randint(-8, 8) / 4, step / 4
        given, exact = [start, start + n * step, step], None
    return Case(op, [np.array(v, dtype=dtype) for v in given], opset=11, exact=exact)


def products(rng, op):
    dtype = rng.choice([np.int32, np.int64, np.uint32, np.uint64, np.float32, np.float64])
    m, k, n = (rng.randint(1, 5) for _ in range(3))
    a, b = elements(rng, dtype, (m, k), False), elements(rng, dtype, (k, n), False)
    whole = np.issubdtype(dtype, np.integer)
    exact = None
    if whole:
        sums = [[sum(int(a[i, c]) * int(b[c, j]) for c in range(k)) for j in range(n)] for i in range(m)]
        exact = [np.array([wrapped(v, dtype) for row in sums for v in row], dtype=dtype).reshape(m, n)]
    if op == "MatMul":
        return Case(op, [a, b], exact=exact, close=1e-4)
    turns = rng.randint(0, 1), rng.randint(0, 1)
    return Case(op, [a.T.copy() if turns[0] else a, b.T.copy() if turns[1] else b], exact=exact, close=1e-4, transA=turns[0], transB=turns[1])


def matmul_integer(rng, op):
    m, k, n = (rng.randint(1, 5) for _ in range(3))
    types = [rng.choice([np.uint8, np.int8]) for _ in range(2)]
    a, b = integers(rng, types[0], (m, k)), integers(rng, types[1], (k, n))
    zeros = [integers(rng, types[0], ()), integers(rng, types[1], ())]
    exact = [((a.astype(np.int64) - zeros[0].astype(np.int64)) @ (b.astype(np.int64) - zeros[1].astype(np.int64))).astype(np.int32)]
    return Case(op, [a, b, *zeros], exact=exact)


def qlinear_matmul(rng, op):
    m, k, n = (rng.randint(1, 5) for _ in range(3))
    dtype = rng.choice([np.uint8, np.int8])
    scale = lambda: np.array(rng.choice([0.5, 0.25, 1, 2]), dtype=np.float32)
    zero = lambda: integers(rng, dtype, (), None, 100)
    return Case(op, [integers(rng, dtype, (m, k)), scale(), zero(), integers(rng, dtype, (k, n)), scale(), zero(), np.array(64, np.float32), zero()])


def texts(rng):
    """Integers to text and back, digit by digit."""
    dtype = rng.choice(INTEGERS)
    x = integers(rng, dtype, some_shape(rng))
    written = np.array([str(v) for v in x.flatten()], dtype=object).reshape(x.shape)
    if rng.random() < 0.5:
        return Case("Cast", [x], to=helper.np_dtype_to_tensor_dtype(np.dtype(object)), exact=[written])
    return Case("Cast", [written], to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), exact=[x])


def casts(rng, op):
    if op == "Cast" and rng.random() < 0.2:
        return texts(rng)
    given, to = rng.choice(NUMBERS + [bool]), rng.choice(NUMBERS + [bool])
    x = elements(rng, given, some_shape(rng))
    if np.issubdtype(given, np.floating) and np.issubdtype(to, np.integer):
        ends = np.iinfo(to)
        x = np.array([min(max(v, max(ends.min, -60000)), min(ends.max, 60000)) if math.isfinite(v) else 3 for v in x.astype(float).flatten()]).astype(given)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(to))
    exact = None
    if np.issubdtype(given, np.integer) and np.issubdtype(to, np.floating):
        exact = [np.array([nearest(int(v), to) for v in x.flatten()], dtype=to).reshape(x.shape)]
    return Case(op, [x], to=kind, exact=exact) if op == "Cast" else Case(op, [x, np.zeros(1, to)], exact=exact)


def nearest(value, dtype):
    """The float next to an integer, of two the even one, by quotients of integers."""
    bits = np.finfo(dtype).nmant + 1
    size, drop = abs(value), max(abs(value).bit_length() - bits, 0)
    kept, lost = size >> drop, size & ((1 << drop) - 1)
    half = (1 << drop) >> 1
    kept += lost > half or (lost == half and drop > 0 and kept & 1)
    size = kept << drop
    return math.copysign(math.inf if size > int(np.finfo(dtype).max) else size, value)


def gathers(rng, op):
    x = elements(rng, rng.choice(NUMBERS + [bool]), some_shape(rng))
    axis = any_axis(rng, x.ndim)
    if op == "Gather":
        return Case(op, [x, integers(rng, np.int64, some_shape(rng, 0, 2), -x.shape[axis], x.shape[axis] - 1)], axis=axis)
    if op == "GatherElements":
        return Case(op, [x, integers(rng, np.int64, x.shape, -x.shape[axis], x.shape[axis] - 1)], axis=axis)
    return Case(op, [x, np.array([[rng.randrange(-n, n) for n in x.shape[:1]] for _ in range(3)], dtype=np.int64)])


def scatters(rng, op):
    dtype = rng.choice(NUMBERS)
    x, is_odd = elements(rng, dtype, some_shape(rng)), True
    axis = any_axis(rng, x.ndim)
    how = {"reduction": rng.choice(["none", "add", "mul", "max", "min"])}
    if np.issubdtype(dtype, np.floating) and how["reduction"] in ("max", "min"):
        x, is_odd = np.nan_to_num(x), False  # the judges lose a NaN, each in its own way
    if op == "Scatter":
        how = {}
    if op in ("ScatterElements", "Scatter"):
        dims = list(x.shape)
        indices = np.argsort(np.array([rng.random() for _ in range(x.size)]).reshape(dims), axis=axis) if how.get("reduction", "none") == "none" else \
            integers(rng, np.int64, dims, -x.shape[axis], x.shape[axis] - 1)
        return Case(op, [x, indices.astype(np.int64), elements(rng, dtype, dims, is_odd)], opset=9 if op == "Scatter" else 18, axis=axis, **how)
    n = x.shape[0] if how["reduction"] == "none" else 4
    indices = [[k] for k in rng.sample(range(x.shape[0]), n)] if how["reduction"] == "none" else [[rng.randrange(x.shape[0])] for _ in range(n)]
    return Case(op, [x, np.array(indices, dtype=np.int64), elements(rng, dtype, (n, *x.shape[1:]), is_odd)], opset=18, **how)


def one_hot(rng, op):
    depth, shape = rng.randint(1, 5), some_shape(rng, 1, 3)
    kinds = [np.int32, np.int64, np.float32]
    indices = integers(rng, np.int64, shape, -2 * depth, 2 * depth).astype(rng.choice(kinds))
    return Case(op, [indices, np.array(depth).astype(rng.choice(kinds)), elements(rng, rng.choice([np.int32, np.int64, np.float32]), (2,), False)],
                opset=11, axis=any_axis(rng, len(shape) + 1))


def compress(rng, op):
    x = elements(rng, rng.choice(NUMBERS), some_shape(rng))
    axis = any_axis(rng, x.ndim)
    return Case(op, [x, elements(rng, bool, (x.shape[axis],))], axis=axis)


def moved(rng, op):
    x = elements(rng, rng.choice(NUMBERS + [bool]), some_shape(rng, 2, 4))
    axis = rng.randrange(x.ndim)
    if op == "Transpose":
        return Case(op, [x], perm=rng.sample(range(x.ndim), x.ndim))
    if op == "Concat":
        return Case(op, [x, x[::-1].copy(), x], axis=axis)
    if op == "Split":
        first = rng.randint(0, x.shape[axis])
        return Case(op, [x, i64(first, x.shape[axis] - first)], n_out=2, axis=axis)
    if op == "Slice":
        return Case(op, [x, i64(rng.randint(-6, 6)), i64(rng.choice([rng.randint(-6, 6), 2**63 - 1, -2**63])), i64(axis), i64(rng.choice([-2, -1, 1, 2]))])
    if op == "Pad":
        pads = [rng.randint(0, 2) for _ in range(2 * x.ndim)]
        return Case(op, [x, i64(*pads), elements(rng, x.dtype.type if x.dtype != bool else bool, ())], mode="constant") if rng.random() < 0.5 else \
            Case(op, [x, i64(*pads)], mode="edge")
    if op == "Trilu":
        return Case(op, [x, np.array(rng.choice([-2, -1, 0, 1, 2**62]))], upper=rng.randint(0, 1), opset=14)
    if op == "Tile":
        return Case(op, [x, i64(*(rng.randint(0, 3) for _ in x.shape))])
    if op == "Expand":
        return Case(op, [x, i64(rng.randint(1, 3), *x.shape)])
    if op == "Flatten":
        return Case(op, [x], axis=axis)
    if op == "Reshape":
        return Case(op, [x, i64(0, -1)])
    if op == "Unsqueeze":
        return Case(op, [x, i64(axis)])
    return Case(op, [x.reshape(1, *x.shape), i64(0)])


def blocks(rng, op):
    n, c, h, w = (rng.randint(1, 3) for _ in range(4))
    dtype = rng.choice([np.float32, np.float64])
    return Case(op, [elements(rng, dtype, (n, 4 * c, h, w))], blocksize=2, mode=rng.choice(["DCR", "CRD"])) if op == "DepthToSpace" else \
        Case(op, [elements(rng, dtype, (n, c, 2 * h, 2 * w))], blocksize=2)


def shapes(rng, op):
    x = elements(rng, rng.choice(NUMBERS), some_shape(rng))
    return Case(op, [x])


def eye(rng, op):
    return Case(op, [elements(rng, rng.choice([np.int32, np.int64, np.float32, np.float64, np.uint64]), some_shape(rng, 2, 2))], k=rng.randint(-2, 2))


def constants(rng, op):
    value = numpy_helper.from_array(elements(rng, rng.choice(NUMBERS), (1,)))
    return Case(op, [i64(*some_shape(rng))], value=value) if op == "ConstantOfShape" else Case(op, [], value=numpy_helper.from_array(elements(rng, rng.choice(NUMBERS), some_shape(rng))))


def where(rng, op):
    shape, dtype = some_shape(rng), rng.choice(NUMBERS)
    return Case(op, [elements(rng, bool, shape), elements(rng, dtype, shape), elements(rng, dtype, shape)])


def vectors(rng, op):
    shape = some_shape(rng)
    if op == "LpNormalization":  # the judges square in the element's type, where subnormals are lost
        return Case(op, [elements(rng, rng.choice(FLOATS), shape, False)], axis=any_axis(rng, len(shape)), p=2)
    return Case(op, [elements(rng, rng.choice(FLOATS), shape)], axis=any_axis(rng, len(shape)))


def pools(rng, op):
    dtype = rng.choice([np.float32, np.float64, *([np.int8, np.uint8] if op == "MaxPool" else [])])
    x = elements(rng, dtype, (rng.randint(1, 2), rng.randint(1, 3), rng.randint(3, 6), rng.randint(3, 6)), op == "AveragePool" and dtype is np.float32)
    if op.startswith("Global"):
        return Case(op, [x], close=1e-4)
    more = {"count_include_pad": rng.randint(0, 1)} if op == "AveragePool" else {}
    return Case(op, [x], close=1e-4, opset=18, kernel_shape=[rng.randint(1, 3)] * 2, strides=[rng.randint(1, 2)] * 2, pads=[rng.randint(0, 0)] * 4, **more)


def convolutions(rng, op):
    groups, c, k = rng.choice([1, 2]), rng.randint(1, 2), rng.randint(1, 2)
    dims = (rng.randint(1, 2), groups * c, rng.randint(3, 5), rng.randint(3, 5))
    kernel = (groups * c, k, 2, 2) if op == "ConvTranspose" else (groups * k, c, 2, 2)
    attributes = dict(group=groups, strides=[rng.randint(1, 2)] * 2, pads=[rng.randint(0, 1)] * 4)
    if op in ("Conv", "ConvTranspose"):
        return Case(op, [floats(rng, np.float32, dims, False), floats(rng, np.float32, kernel, False), floats(rng, np.float32, (groups * k,), False)], close=1e-4, **attributes)
    dtype = rng.choice([np.uint8])
    x, w = integers(rng, dtype, dims), integers(rng, dtype, kernel)
    zero = lambda: integers(rng, dtype, (), 0, 100)
    if op == "ConvInteger":
        return Case(op, [x, w, zero(), zero()], **attributes)
    scale = lambda: np.array(rng.choice([0.5, 0.25]), dtype=np.float32)
    return Case(op, [x, scale(), zero(), w, scale(), zero(), np.array(64, np.float32), zero()], **attributes)


def quantized(rng, op):
    kind = rng.choice([np.uint8, np.int8, np.uint16, np.int16])
    scale, zero = np.array(rng.choice([0.5, 0.25, 2.0]), dtype=np.float32), integers(rng, kind, ())
    shape = some_shape(rng)
    if op == "DynamicQuantizeLinear":
        return Case(op, [floats(rng, np.float32, shape, False)], n_out=3, opset=11)
    if op == "QuantizeLinear":
        x = floats(rng, np.float32, shape, False, 60) if rng.random() < 0.7 else integers(rng, np.int32, shape, -2**23, 2**23)
        return Case(op, [x, scale, zero])
    if rng.random() < 0.3:
        return Case(op, [integers(rng, np.int32, shape), scale])
    return Case(op, [integers(rng, kind, shape), scale, zero])


def norms(rng, op):
    x = floats(rng, np.float32, (rng.randint(1, 3), 4, rng.randint(2, 4), 3), op != "LRN" and rng.random() < 0.3)
    weights = lambda n: floats(rng, np.float32, (n,), False)
    if op == "BatchNormalization":
        return Case(op, [x, weights(4), weights(4), weights(4), np.abs(weights(4)) + 0.5], close=1e-3)
    if op == "InstanceNormalization":
        return Case(op, [x, weights(4), weights(4)], close=1e-3)
    if op == "GroupNormalization":
        return Case(op, [x, weights(4), weights(4)], close=1e-3, num_groups=2)
    if op == "LayerNormalization":
        return Case(op, [x, weights(3), weights(3)], close=1e-3, opset=17)
    if op == "RMSNormalization":
        return Case(op, [x, weights(3)], close=1e-3, opset=23)
    return Case(op, [x], close=1e-3, **({"size": 3} if op == "LRN" else {}))


def dropout(rng, op):
    return Case(op, [elements(rng, np.float32, some_shape(rng))], opset=13)


def resized(rng, op):
    """To the nearest: what is exactly between two pixels is found by fractions."""
    n, to, dtype = rng.randint(1, 40), rng.randint(1, 40), rng.choice([np.float32, np.int32, np.uint8])
    x = np.arange(n).astype(dtype)
    if op == "Upsample" or rng.random() < 0.3:
        scale = np.array([rng.choice([1.0, 2.0, 3.0, 4.0])], dtype=np.float32)
        return Case(op, [x, scale], opset=9, mode="nearest") if op == "Upsample" else Case(op, [x, None, scale], opset=19, mode="nearest")
    mode = rng.choice(["half_pixel", "pytorch_half_pixel", "half_pixel_symmetric", "asymmetric", "align_corners"])
    places = [place(k, n, to, mode) for k in range(to)]
    if rng.random() < 0.3:
        x, kind = floats(rng, np.float32, (n,), False), rng.choice(["linear", "cubic"])
        exact = [np.array([mean(x, at, kind) for at in places], dtype=np.float32)]
        return Case(op, [x, None, None, i64(to)], opset=19, exact=exact, mode=kind, coordinate_transformation_mode=mode)
    rounding, half = rng.choice(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]), fractions.Fraction(1, 2)
    whole = {"floor": math.floor, "ceil": math.ceil, "round_prefer_floor": lambda at: math.ceil(at - half), "round_prefer_ceil": lambda at: math.floor(at + half)}
    picks = [min(max(whole[rounding](at), 0), n - 1) for at in places]
    return Case(op, [x, None, None, i64(to)], opset=19, exact=[np.array(picks).astype(dtype)], mode="nearest", coordinate_transformation_mode=mode, nearest_mode=rounding)


def place(k, n, to, mode):
    """Where output k of `to` lies among n."""
    if mode == "asymmetric":
        return fractions.Fraction(k * n, to)
    if mode == "align_corners":
        return fractions.Fraction(k * (n - 1), to - 1) if to > 1 else fractions.Fraction(0)
    half = fractions.Fraction(1, 2)
    return -half if mode == "pytorch_half_pixel" and to == 1 else fractions.Fraction((2 * k + 1) * n, 2 * to) - half


def mean(x, at, kind):
    """Of the neighbours of a place; what lies outside is the pixel at the edge."""
    near, a = math.floor(at), fractions.Fraction(-3, 4)
    cubic = lambda d: ((a + 2) * d - (a + 3)) * d * d + 1 if d <= 1 else ((a * d - 5 * a) * d + 8 * a) * d - 4 * a if d < 2 else 0
    weigh = cubic if kind == "cubic" else lambda d: max(1 - d, 0)
    return float(sum(weigh(abs(at - k)) * fractions.Fraction(float(x[min(max(k, 0), len(x) - 1)])) for k in range(near - 1, near + 3)))


def suppression(rng, op):
    n = rng.randint(1, 8)
    corners = np.sort(np.array([rng.randint(0, 8) for _ in range(4 * n)], dtype=np.float32).reshape(1, n, 2, 2), axis=2).reshape(1, n, 4)
    scores = np.array([rng.sample(range(100), n) for _ in range(2)], dtype=np.float32).reshape(1, 2, n) / 100
    inputs = [corners, scores, i64(rng.choice([0, 1, 3, 2**62])), np.array([rng.choice([0.15, 0.45])], np.float32)]
    return Case(op, inputs + ([np.array([0.305], np.float32)] if rng.random() < 0.5 else []))


def regions(rng, op):
    x = floats(rng, np.float32, (2, 2, 5, 5), False)
    boxes = np.array([[0, 0, rng.randint(1, 4), rng.randint(1, 4)] for _ in range(2)], dtype=np.float32)
    return Case(op, [x, boxes, i64(0, 1)], close=1e-4, opset=16, output_height=2, output_width=2, sampling_ratio=2, mode="avg")


MAKERS = {
    "Abs Sign": unary(*NUMBERS), "Neg": unary(np.int8, np.int16, np.int32, np.int64, *FLOATS), "Relu": unary(np.int8, np.int16, np.int32, np.int64, *FLOATS),
    "Erf HardSwish": lambda rng, op: Case(op, [elements(rng, rng.choice(FLOATS), some_shape(rng))], close=1e-6),
    "Sqrt Exp Tanh Sigmoid Log Reciprocal Floor Ceil Round Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh Softplus Softsign Mish IsNaN IsInf":
        unary(*FLOATS),
    "LeakyRelu Elu Celu ThresholdedRelu": activation(alpha=[0.25, 1.5]), "Swish": lambda rng, op: Case(op, [elements(rng, rng.choice(FLOATS), some_shape(rng))], opset=24), "HardSigmoid": activation(alpha=[0.25], beta=[0.75]),
    "Selu": activation(alpha=[1.5], gamma=[2.0]), "Gelu": lambda rng, op: Case(op, [elements(rng, rng.choice(FLOATS), some_shape(rng))], close=1e-4, approximate=rng.choice(["none", "tanh"])),
    "Shrink": lambda rng, op: shrink(rng, op),
    "Identity": unary(*NUMBERS, bool), "Not": unary(bool), "BitwiseNot": unary(*INTEGERS),
    "Add Sub Mul": binary(NUMBERS), "Div Mod": divided, "Pow": powers, "BitShift": shifts, "PRelu": lambda rng, op: prelu(rng, op),
    "Equal Less LessOrEqual Greater GreaterOrEqual": binary(NUMBERS), "And Or Xor": binary([bool]), "BitwiseAnd BitwiseOr BitwiseXor": binary(INTEGERS),
    "Max Min Sum Mean": several, "Where": where,
    "ReduceSum ReduceMean ReduceL1 ReduceL2 ReduceSumSquare ReduceProd ReduceMax ReduceMin ReduceLogSum ReduceLogSumExp": reductions,
    "ArgMax ArgMin": where_is, "TopK": top_k, "CumSum": cumulative, "Clip": clips, "Range": ranges, "MatMul Gemm": products, "MatMulInteger": matmul_integer,
    "QLinearMatMul": qlinear_matmul, "Cast CastLike": casts, "Gather GatherElements GatherND": gathers, "ScatterElements Scatter ScatterND": scatters,
    "OneHot": one_hot, "NonZero": unary(*NUMBERS, bool), "Compress": compress,
    "Transpose Concat Split Slice Pad Trilu Tile Expand Flatten Reshape Unsqueeze Squeeze": moved, "DepthToSpace SpaceToDepth": blocks, "Shape Size": shapes,
    "EyeLike": eye, "Constant ConstantOfShape": constants, "Softmax LogSoftmax Hardmax LpNormalization": vectors,
    "MaxPool AveragePool LpPool GlobalMaxPool GlobalAveragePool GlobalLpPool": pools, "Conv ConvInteger QLinearConv ConvTranspose": convolutions,
    "QuantizeLinear DequantizeLinear DynamicQuantizeLinear": quantized, "Dropout": dropout,
    "BatchNormalization InstanceNormalization GroupNormalization LayerNormalization RMSNormalization MeanVarianceNormalization LRN": norms,
    "Resize Upsample": resized, "NonMaxSuppression": suppression, "RoiAlign": regions,
}
OPERATORS = {op: maker for ops, maker in MAKERS.items() for op in ops.split()}


def shrink(rng, op):
    x, lambd, bias = elements(rng, rng.choice(NUMBERS), some_shape(rng)), rng.choice([0.5, 1.0]), rng.choice([0, 1, 2])
    exact = None
    if np.issubdtype(x.dtype, np.integer):
        exact = [np.array([wrapped(v + bias if v < -lambd else v - bias if v > lambd else 0, x.dtype) for v in map(int, x.flatten())], dtype=x.dtype).reshape(x.shape)]
    return Case(op, [x], exact=exact, lambd=lambd, bias=float(bias))


def prelu(rng, op):
    dtype, shape = rng.choice([np.int32, np.int64, np.uint32, np.uint64, *FLOATS]), some_shape(rng)
    x, slope = elements(rng, dtype, shape), elements(rng, dtype, shape[-1:], False)
    exact = None
    if np.issubdtype(dtype, np.integer):
        full = np.broadcast_to(slope, shape)
        exact = [np.array([wrapped(int(v) * int(s) if v < 0 else int(v), dtype) for v, s in zip(x.flatten(), full.flatten())], dtype=dtype).reshape(shape)]
    return Case(op, [x, slope], opset=16, exact=exact)

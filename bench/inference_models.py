"""Models for bench/inference.py, written as ONNX without a package: a small perceptron, and one that only averages pictures."""
import random
import struct


def varint(value):
    more = bytearray()
    while value > 127:
        more.append(value & 127 | 128)
        value >>= 7
    return bytes(more) + bytes([value])


def field(number, value):
    """One field of a protocol buffer."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def port(name, dims):
    """An input or output of floats; None is the batch."""
    sizes = b"".join(field(1, field(2, "n") if size is None else field(1, size)) for size in dims)
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, sizes)))


def tensor(name, dims, values):
    return b"".join(field(1, d) for d in dims) + field(2, 1) + field(8, name) + field(9, struct.pack(f"<{len(values)}f", *values))


def node(op, inputs, output):
    return b"".join(field(1, name) for name in inputs) + field(2, output) + field(4, op)


def model(nodes, tensors, x, y):
    graph = b"".join(field(1, n) for n in nodes) + field(2, "g") + b"".join(field(5, t) for t in tensors)
    graph += field(11, x) + field(12, y)
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 13))


def perceptron(seed, sizes=(16, 64, 10)):
    """16 numbers in, 10 out; another seed is another version."""
    dice, nodes, tensors, value = random.Random(seed), [], [], "x"
    for i, (n_in, n_out) in enumerate(zip(sizes, sizes[1:])):
        is_last = i == len(sizes) - 2
        tensors += [tensor(f"w{i}", (n_in, n_out), [dice.gauss(0, n_in ** -.5) for _ in range(n_in * n_out)]),
                    tensor(f"b{i}", (n_out,), [dice.gauss(0, .1) for _ in range(n_out)])]
        nodes += [node("MatMul", (value, f"w{i}"), f"m{i}"), node("Add", (f"m{i}", f"b{i}"), "y" if is_last else f"a{i}")]
        if not is_last:
            nodes.append(node("Relu", (f"a{i}",), f"r{i}"))
        value = f"r{i}"
    return model(nodes, tensors, port("x", (None, sizes[0])), port("y", (None, sizes[-1])))


def average(side=224):
    """A picture's mean colours: 600 KB in and hardly anything to compute."""
    return model([node("GlobalAveragePool", ("x",), "y")], [], port("x", (None, 3, side, side)), port("y", (None, 3, 1, 1)))

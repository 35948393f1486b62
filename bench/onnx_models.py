"""Models for bench/onnx_against_onnxruntime.py: the shapes of published networks, with random weights of a sensible size."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Net:
    """A graph that is written from the input to the output."""

    def __init__(self, name, size, seed):
        self.name, self.nodes, self.weights, self.n = name, [], [], 0
        self.random = np.random.default_rng(seed)
        self.size = size

    def add(self, op, inputs, **attributes):
        self.n += 1
        out = f"v{self.n}"
        self.nodes.append(helper.make_node(op, inputs, [out], name=f"{op}_{self.n}", **attributes))
        return out

    def weight(self, values):
        self.n += 1
        name = f"w{self.n}"
        self.weights.append(numpy_helper.from_array(np.asarray(values, np.float32), name))
        return name

    def conv(self, x, c, k, kernel, stride=1, pads=None, groups=1, act="Relu", norm=True):
        kh, kw = (kernel, kernel) if isinstance(kernel, int) else kernel
        deviation = np.sqrt(2.0 / (c // groups * kh * kw))
        w = self.weight(self.random.normal(0, deviation, (k, c // groups, kh, kw)))
        if pads is None:
            pads = [kh // 2, kw // 2, kh // 2, kw // 2]
        inputs = [x, w] if norm else [x, w, self.weight(self.random.normal(0, 0.01, k))]
        x = self.add("Conv", inputs, kernel_shape=[kh, kw], strides=[stride, stride], pads=pads, group=groups)
        if norm:
            ones = self.random.uniform(0.8, 1.2, k)
            x = self.add("BatchNormalization", [x, self.weight(ones), self.weight(self.random.normal(0, 0.05, k)),
                                                self.weight(self.random.normal(0, 0.05, k)),
                                                self.weight(self.random.uniform(0.8, 1.2, k))])
        if act == "Relu6":
            return self.add("Clip", [x, self.weight(0.0), self.weight(6.0)])
        return self.add(act, [x]) if act else x

    def pool(self, op, x, kernel, stride, pads=(0, 0, 0, 0), **attributes):
        return self.add(op, [x], kernel_shape=[kernel, kernel], strides=[stride, stride], pads=list(pads), **attributes)

    def head(self, x, c, k):
        x = self.add("Flatten", [self.add("GlobalAveragePool", [x])])
        w = self.weight(self.random.normal(0, np.sqrt(1.0 / c), (k, c)))
        return self.add("Gemm", [x, w, self.weight(np.zeros(k))], transB=1)

    def save(self, path, y):
        shape = ["batch", 3, self.size, self.size]
        graph = helper.make_graph(
            self.nodes, self.name, [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info(y, TensorProto.FLOAT, ["batch", 1000])], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
        onnx.checker.check_model(model)
        onnx.save(model, path)


def resnet50(path):
    net = Net("resnet50", 224, 1)
    x = net.pool("MaxPool", net.conv("x", 3, 64, 7, 2), 3, 2, (1, 1, 1, 1))
    c = 64
    for k, n, first in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(n):
            stride = first if i == 0 else 1
            y = net.conv(x, c, k, 1)
            y = net.conv(y, k, k, 3, stride)
            y = net.conv(y, k, 4 * k, 1, act=None)
            short = net.conv(x, c, 4 * k, 1, stride, act=None) if i == 0 else x
            x = net.add("Relu", [net.add("Add", [y, short])])
            c = 4 * k
    net.save(path, net.head(x, c, 1000))


def mobilenet_v2(path):
    net = Net("mobilenet_v2", 224, 2)
    x, c = net.conv("x", 3, 32, 3, 2, act="Relu6"), 32
    for t, k, n, first in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
                           (6, 320, 1, 1)):
        for i in range(n):
            stride = first if i == 0 else 1
            y = net.conv(x, c, c * t, 1, act="Relu6") if t > 1 else x
            y = net.conv(y, c * t, c * t, 3, stride, groups=c * t, act="Relu6")
            y = net.conv(y, c * t, k, 1, act=None)
            x, c = (net.add("Add", [x, y]) if stride == 1 and c == k else y), k
    net.save(path, net.head(net.conv(x, c, 1280, 1, act="Relu6"), 1280, 1000))


def squeezenet(path):
    net = Net("squeezenet", 224, 3)
    x = net.pool("MaxPool", net.conv("x", 3, 64, 3, 2, pads=[0, 0, 0, 0], norm=False), 3, 2)
    c = 64
    for s, e, pools in ((16, 64, 0), (16, 64, 1), (32, 128, 0), (32, 128, 1), (48, 192, 0), (48, 192, 0), (64, 256, 0),
                        (64, 256, 0)):
        y = net.conv(x, c, s, 1, norm=False)
        x = net.add("Concat", [net.conv(y, s, e, 1, norm=False), net.conv(y, s, e, 3, norm=False)], axis=1)
        c = 2 * e
        if pools:
            x = net.pool("MaxPool", x, 3, 2)
    x = net.add("GlobalAveragePool", [net.conv(x, c, 1000, 1, norm=False)])
    net.save(path, net.add("Flatten", [x]))


def inception_v3(path):
    net = Net("inception_v3", 299, 4)
    none = [0, 0, 0, 0]
    x = net.conv("x", 3, 32, 3, 2, none)
    x = net.conv(net.conv(x, 32, 32, 3, 1, none), 32, 64, 3)
    x = net.conv(net.pool("MaxPool", x, 3, 2), 64, 80, 1)
    x = net.pool("MaxPool", net.conv(x, 80, 192, 3, 1, none), 3, 2)
    c = 192
    for p in (32, 64, 64):
        x = net.add("Concat", [
            net.conv(x, c, 64, 1), net.conv(net.conv(x, c, 48, 1), 48, 64, 5),
            net.conv(net.conv(net.conv(x, c, 64, 1), 64, 96, 3), 96, 96, 3),
            net.conv(net.pool("AveragePool", x, 3, 1, (1, 1, 1, 1), count_include_pad=1), c, p, 1)], axis=1)
        c = 224 + p
    x = net.add("Concat", [
        net.conv(x, c, 384, 3, 2, none),
        net.conv(net.conv(net.conv(x, c, 64, 1), 64, 96, 3), 96, 96, 3, 2, none), net.pool("MaxPool", x, 3, 2)], axis=1)
    c = 768
    for k in (128, 160, 160, 192):
        y = net.conv(net.conv(net.conv(x, c, k, 1), k, k, (1, 7)), k, 192, (7, 1))
        z = net.conv(net.conv(net.conv(x, c, k, 1), k, k, (7, 1)), k, k, (1, 7))
        z = net.conv(net.conv(z, k, k, (7, 1)), k, 192, (1, 7))
        pooled = net.pool("AveragePool", x, 3, 1, (1, 1, 1, 1), count_include_pad=1)
        x = net.add("Concat", [net.conv(x, c, 192, 1), y, z, net.conv(pooled, c, 192, 1)], axis=1)
    y = net.conv(net.conv(x, c, 192, 1), 192, 320, 3, 2, none)
    z = net.conv(net.conv(net.conv(x, c, 192, 1), 192, 192, (1, 7)), 192, 192, (7, 1))
    x = net.add("Concat", [y, net.conv(z, 192, 192, 3, 2, none), net.pool("MaxPool", x, 3, 2)], axis=1)
    c = 1280
    for _ in range(2):
        y, z = net.conv(x, c, 384, 1), net.conv(net.conv(x, c, 448, 1), 448, 384, 3)
        pooled = net.pool("AveragePool", x, 3, 1, (1, 1, 1, 1), count_include_pad=1)
        x = net.add("Concat", [
            net.conv(x, c, 320, 1), net.conv(y, 384, 384, (1, 3)), net.conv(y, 384, 384, (3, 1)),
            net.conv(z, 384, 384, (1, 3)), net.conv(z, 384, 384, (3, 1)), net.conv(pooled, c, 192, 1)], axis=1)
        c = 2048
    net.save(path, net.head(x, c, 1000))


MODELS = {"resnet50": resnet50, "mobilenet_v2": mobilenet_v2, "squeezenet": squeezenet, "inception_v3": inception_v3}


def quantise(source, path, size):
    """Static QDQ: unsigned activations, signed weights by channel."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class Reader(CalibrationDataReader):
        def __init__(self):
            random = np.random.default_rng(5)
            self.left = [{"x": random.normal(0, 1, (1, 3, size, size)).astype(np.float32)} for _ in range(4)]

        def get_next(self):
            return self.left.pop() if self.left else None

    quantize_static(source, path, Reader(), quant_format=QuantFormat.QDQ, activation_type=QuantType.QUInt8,
                    weight_type=QuantType.QInt8, per_channel=True, reduce_range=False)

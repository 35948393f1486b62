#!/usr/bin/python3
"""Compare the zoo with torchvision's models, and where it has none with zoo_published.py's: the same
weights, by name, and the same input.

    bench/zoo_against_torch.py BUILD_FOLDER [MODEL ...]

Wants torch and torchvision (Debian: python3-torch, python3-torchvision), and the target zoo-dump
of the build folder. torchvision makes the weights; every parameter and running statistic must be one
of Weir's of the same name and shape, and Weir's gradients must have the names of torchvision's.
Dropout is off in both. The measure is PyTorch's own result in f64, and "torch" is PyTorch in
f32: how close f32 comes at all. Printed is the length of the difference over the length of the whole:
of the output with running statistics, of the output of a training step, of all gradients together,
and of the worst gradient of one tensor, with its name. Where a rounding error turns a rectifier or
the winner of a pool, gradients differ by what goes through that one cell, in torch as here.
"""
import copy
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy
import torch
import torchvision

from zoo_published import BUILDERS, SHAPES

MODELS = ["trivial", "lenet", "alexnet", "vgg11", "vgg16", "vgg19", "googlenet", "inception_v3", "inception_v4",
          "resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "resnet50_v1", "resnet50_v2", "densenet121",
          "mobilenet_v1", "mobilenet_v2"]


def save(path, tensors):
    header, offset = {}, 0
    for name, array in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in tensors.values():
            file.write(numpy.ascontiguousarray(array, "<f4").tobytes())


def load(path):
    data = pathlib.Path(path).read_bytes()
    n, = struct.unpack("<Q", data[:8])
    tensors = {}
    for name, entry in json.loads(data[8:8 + n]).items():
        if name != "__metadata__":
            first, end = entry["data_offsets"]
            tensors[name] = numpy.frombuffer(data[8 + n + first:8 + n + end], "<f4").reshape(entry["shape"])
    return tensors


def published(name):
    """The model with weights at random, norms and biases not all ones and zeros."""
    torch.manual_seed(7)
    heads = {"googlenet": {"aux_logits": False, "init_weights": False},
             "inception_v3": {"aux_logits": False, "init_weights": False}}
    if name in BUILDERS:
        model = BUILDERS[name]()
    else:
        model = getattr(torchvision.models, name)(weights=None, **heads.get(name, {}))
        model.transform_input = False
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        if isinstance(module, (torch.nn.Conv2d, torch.nn.Linear)):
            torch.nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
        if isinstance(module, torch.nn.BatchNorm2d):
            module.weight.data.uniform_(0.5, 1.5)
            module.bias.data.normal_(0, 0.2)
            module.running_mean.normal_(0, 0.2)
            module.running_var.uniform_(0.5, 1.5)
    return model


def results(model, x, labels):
    """Inference, output of a step, gradients by name."""
    model.eval()
    with torch.no_grad():
        inference = model(x)
    model.train()
    output = model(x)
    torch.nn.functional.cross_entropy(output, labels).backward()
    found = {"inference": inference, "output": output.detach()}
    found.update({f"gradient.{name}": p.grad for name, p in model.named_parameters()})
    return {name: value.double().numpy() for name, value in found.items()}


def distance(expected, got, floor=0.0):
    return numpy.linalg.norm(expected - got) / max(numpy.linalg.norm(expected), floor)


def compare(expected, got):
    """Differences of inference, output, all gradients and the worst gradient, and its name."""
    gradients = [name for name in expected if name.startswith("gradient.")]
    whole = [numpy.concatenate([values[name].ravel() for name in gradients]) for values in (expected, got)]
    floor = 1e-2 * numpy.linalg.norm(whole[0])
    far = {name: distance(expected[name], got[name], floor) for name in gradients}
    worst = max(far, key=far.get)
    return (distance(expected["inference"], got["inference"]), distance(expected["output"], got["output"]),
            distance(*whole), far[worst], worst[len("gradient."):])


def check(dump, name, batch):
    model = published(name)
    x = torch.randn(batch, *SHAPES.get(name, (3, 224, 224)))
    labels = torch.arange(batch) * 37 % 1000
    state = {k: v.numpy() for k, v in model.state_dict().items() if not k.endswith("num_batches_tracked")}
    with tempfile.TemporaryDirectory() as folder:
        save(f"{folder}/in", {"input": x.numpy(), "labels": labels.numpy().astype("f4"), **state})
        subprocess.run([dump, name, f"{folder}/in", f"{folder}/out"], check=True)
        got = load(f"{folder}/out")
    exact = results(copy.deepcopy(model).double(), x.double(), labels)
    if set(exact) != set(got):
        sys.exit(f"{name}: of one only: {sorted(set(exact) ^ set(got))[:9]}")
    n = sum(p.numel() for p in model.parameters())
    torch32 = results(model, x, labels)
    for what, other in (("weir", got), ("torch", torch32)):
        *numbers, worst = compare(exact, other)
        print(f"{name:14}{n:12,}  {what:6}" + "".join(f"{x:11.1e}" for x in numbers) + f"  {worst}", flush=True)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    dump = pathlib.Path(sys.argv[1]).resolve() / "tools/zoo-dump"
    torch.set_num_threads(2)
    print(f"{'model':14}{'parameters':>12}  {'f32 of':6}{'inference':>11}{'output':>11}{'gradients':>11}{'worst':>11}")
    for name in sys.argv[2:] or MODELS:
        check(dump, name, 4)


if __name__ == "__main__":
    main()

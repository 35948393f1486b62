#!/usr/bin/python3
"""Train Weir and PyTorch from the same weights on the same batches, and compare the weights afterwards.

    bench/steps_against_torch.py WEIR_WORKER [--steps 20] [--precision f32|bf16] [--convolution auto|direct|winograd]
                                 [--workers 1] [--seeds 1] [MODEL ...]

Wants torch, torchvision and PIL (Debian: python3-torch, python3-torchvision, python3-pil). The data are 16 drawn
pictures, so that each batch is all of them and their order is no matter. SGD with momentum 0.9, constant rate. The
measure is PyTorch in f64; "torch" is PyTorch in f32, or under autocast in bfloat16: how close a type comes at all.
Printed is, over all parameters together, the length of the difference over the length of how far training has moved
them, then the same of the worst tensor, and the largest difference of a step's loss. Models without dropout that take colours.
Ends with 1 where Weir is further from f64 than twice what torch is.
"""
import argparse
import copy
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy
import PIL.Image
import torch

from zoo_against_torch import load, published, save

MODELS = ["resnet18", "resnet50", "resnet50_v2", "densenet121", "mobilenet_v1"]
N_CLASSES, N_PICTURES, SIZE = 4, 16, 64


def draw_pictures(folder, seed):
    """A colour and a direction for each class, with noise: something that can be learnt."""
    random = numpy.random.default_rng(seed)
    y, x = numpy.mgrid[0:SIZE, 0:SIZE] / SIZE
    pictures = {}
    for i in range(N_PICTURES):
        label = i % N_CLASSES
        angle = numpy.pi * label / N_CLASSES
        waves = numpy.sin(20 * (x * numpy.cos(angle) + y * numpy.sin(angle)) + random.uniform(0, 6))
        picture = 128 + 60 * waves[..., None] * (1, 0.5, -0.5) + random.normal(0, 25, (SIZE, SIZE, 3))
        path = pathlib.Path(folder) / f"class{label}" / f"{i:02}.png"
        path.parent.mkdir(exist_ok=True)
        pictures[path] = numpy.clip(picture, 0, 255).astype("u1")
        PIL.Image.fromarray(pictures[path]).save(path)
    return list(pictures.values()), [i % N_CLASSES for i in range(N_PICTURES)]


def train_weir(options, name, folder):
    command = [options.worker, "train", "--model", name, "--input", f"3,{SIZE},{SIZE}", "--data", f"{folder}/data",
               "--weights", f"{folder}/in.safetensors", "--steps", options.steps, "--epochs", options.steps,
               "--batch-size", N_PICTURES, "--optimizer", "sgd", "--learning-rate", options.learning_rate,
               "--schedule", "constant", "--weight-decay", 0, "--precision", options.precision, "--convolution", options.convolution,
               "--workers", options.workers, "--threads", 1, "--output", f"{folder}/out.safetensors",
               "--checkpoint-dir", f"{folder}/checkpoints", "--display-every", 1, "-o", "json"]
    text = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    losses = {line["step"]: line["loss"] for line in lines if "loss" in line and "step" in line}
    return load(f"{folder}/out.safetensors"), losses


def input_rule(path):
    """Mean and deviation by which Weir has normalised."""
    data = pathlib.Path(path).read_bytes()
    n = int.from_bytes(data[:8], "little")
    rule = json.loads(json.loads(data[8:8 + n])["__metadata__"]["weir.input"])
    return numpy.array(rule["mean"]), numpy.array(rule["std"])


def train_torch(model, x, labels, options, is_autocast):
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=options.learning_rate, momentum=0.9)
    losses = {}
    for step in range(1, options.steps + 1):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=is_autocast):
            output = model(x)
        loss = torch.nn.functional.cross_entropy(output.to(x.dtype), labels)
        loss.backward()
        optimizer.step()
        losses[step] = loss.item()
    return {name: p.detach().double().numpy() for name, p in model.named_parameters()}, losses


def compare(start, exact, got, exact_losses, losses):
    moved = {name: numpy.linalg.norm(exact[name] - start[name]) for name in exact}
    far = {name: numpy.linalg.norm(exact[name] - got[name].astype("f8")) for name in exact}
    whole = numpy.linalg.norm(list(far.values())) / numpy.linalg.norm(list(moved.values()))
    floor = 1e-2 * numpy.linalg.norm(list(moved.values()))
    worst = max(exact, key=lambda name: far[name] / max(moved[name], floor))
    loss = max(abs(losses[step] - exact_losses[step]) for step in exact_losses if step in losses)
    return whole, far[worst] / max(moved[worst], floor), loss, worst


def check(options, name, seed):
    """Of Weir and of torch."""
    model = published(name)
    for child in (module for module in model.modules() if hasattr(module, "fc") or hasattr(module, "classifier")):
        head = "fc" if hasattr(child, "fc") else "classifier"
        old = getattr(child, head)
        setattr(child, head, torch.nn.Linear(old.in_features, N_CLASSES))
    start = {key: value.numpy() for key, value in model.state_dict().items() if not key.endswith("num_batches_tracked")}
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "data").mkdir()
        pictures, labels = draw_pictures(f"{folder}/data", seed)
        save(f"{folder}/in.safetensors", start)
        got, losses = train_weir(options, name, folder)
        mean, std = input_rule(f"{folder}/out.safetensors")
    x = torch.tensor(((numpy.stack(pictures) / 255 - mean) / std).transpose(0, 3, 1, 2))
    labels = torch.tensor(labels)
    exact, exact_losses = train_torch(copy.deepcopy(model).double(), x, labels, options, False)
    peer, peer_losses = train_torch(copy.deepcopy(model), x.float(), labels, options, options.precision == "bf16")
    return (compare(start, exact, got, exact_losses, losses), compare(start, exact, peer, exact_losses, peer_losses))


def agrees(options, name):
    pairs = [check(options, name, 5 + i) for i in range(options.seeds)]
    for i, what in enumerate(("weir", "torch")):
        whole, worst, loss = (statistics.median(pair[i][k] for pair in pairs) for k in range(3))
        print(f"{name:14}{what:7}{whole:11.1e}{worst:11.1e}{loss:11.1e}  {pairs[0][i][3]}", flush=True)
    if options.seeds > 1:
        print("  each: " + ", ".join(f"{ours[0]:.1e} ({theirs[0]:.1e})" for ours, theirs in pairs), flush=True)
    ours, theirs = (statistics.median(pair[i][0] for pair in pairs) for i in range(2))
    return ours <= 2 * theirs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("worker")
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--learning-rate", type=float, default=0.01)
    parser.add_argument("--precision", choices=("f32", "bf16"), default="f32")
    parser.add_argument("--convolution", choices=("auto", "direct", "winograd"), default="auto")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_intermixed_args()
    torch.set_num_threads(1)
    print(f"{'model':14}{options.precision:7}{'weights':>11}{'worst':>11}{'loss':>11}")
    sys.exit(0 if all([agrees(options, name) for name in options.models]) else 1)


if __name__ == "__main__":
    main()

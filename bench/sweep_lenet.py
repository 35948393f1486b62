"""ASHA beside random search: LeNet on Fashion-MNIST (part of it), the same points by the same seed, on one server.

    python3 bench/sweep_lenet.py [--trials 64] [--epochs 12] [--pictures 1500] [--parallel 2] [--seed 1]

Prints what each method came to, how many epochs its trials computed, and how long it took. WEIR_SHARED_DATA names the folder
that has fashion-mnist (https://github.com/zalandoresearch/fashion-mnist)."""
import argparse
import gzip
import os
import pathlib
import struct
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests/system"))
from harness import ROOT, Server  # noqa: E402

SPLITS = (("train", "pictures"), ("t10k", "validation"))


def put_part(source, folder, n):
    """The first n pictures of each split, as IDX files."""
    folder.mkdir()
    for split, most in SPLITS:
        n_split = n[most]
        for kind, header, size in (("images-idx3", 16, 784), ("labels-idx1", 8, 1)):
            data = gzip.open(source / f"{split}-{kind}-ubyte.gz").read()
            words = list(struct.unpack(f">{header // 4}I", data[:header]))
            words[1] = n_split
            (folder / f"{split}-{kind}-ubyte").write_bytes(struct.pack(f">{header // 4}I", *words)
                                                           + data[header:header + n_split * size])


def document(name, data, method, asked):
    return {
        "name": name, "seed": asked.seed, "trials": asked.trials, "parallel": asked.parallel, "max_failures": asked.trials,
        "job": {"kind": "train", "spec": {"model": "lenet-5", "data": str(data), "validation": str(data), "threads": 1,
                                          "learning_rate": "{{lr}}", "momentum": "{{momentum}}", "batch_size": "{{batch}}",
                                          "weight_decay": "{{decay}}", "epochs": asked.epochs, "schedule": "constant"}},
        "parameters": {"lr": {"kind": "log_uniform", "min": 1e-5, "max": 1}, "momentum": {"kind": "uniform", "min": 0, "max": 0.98},
                       "decay": {"kind": "log_uniform", "min": 1e-6, "max": 1e-1}, "batch": [16, 32, 64, 128, 256]},
        "goal": {"metric": "validation_accuracy", "direction": "maximize", "value": "best"}, "method": method}


def run(server, sweep):
    begun = time.monotonic()
    sweep = server.post("/sweeps", sweep)
    while sweep["state"] in ("RUNNING", "STOPPING"):
        time.sleep(1)
        sweep = server.get(f"/sweeps/{sweep['id']}")
    took = time.monotonic() - begun
    trials = server.get(f"/sweeps/{sweep['id']}/trials")["items"]
    epochs = 0
    for trial in trials:
        metrics = server.get(f"/runs/{trial['run']}")["metrics"] if trial["run"] else {}
        # What was computed until it ended, the part behind its last rung too.
        epochs += (metrics.get("progress") or 0) * (metrics.get("epochs") or 0)
    best = next(trial for trial in trials if trial["number"] == sweep["best"])
    return sweep, best, epochs, took


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in (("trials", 64), ("epochs", 12), ("pictures", 1500), ("validation", 1000), ("parallel", 2), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=value)
    asked = parser.parse_args()
    source = pathlib.Path(os.environ.get("WEIR_SHARED_DATA") or ROOT.parent / "shared" / "data") / "fashion-mnist"
    server = Server("--cpu-slots", str(asked.parallel))
    try:
        server.start()
        data = server.root / "data"
        put_part(source, data, {"pictures": asked.pictures, "validation": asked.validation})
        methods = {"random": {"kind": "random"},
                   "asha": {"kind": "asha", "min_resource": 1, "eta": 3, "max_resource": asked.epochs, "resource": "epoch"}}
        results = {}
        for name, method in methods.items():
            sweep, best, epochs, took = run(server, document(name, data, method, asked))
            results[name] = (sweep["best_value"], epochs, took)
            print(f"{name:7} {sweep['state']}: best {sweep['best_value']:.4f} (trial {best['number']}, {best['parameters']}), "
                  f"{sweep['n_succeeded']} to the end, {sweep['n_stopped']} stopped early, {sweep['n_failed']} failed, "
                  f"{epochs:g} epochs, {took:.0f} s", flush=True)
        print(f"seed {asked.seed}: asha needed {results['asha'][1] / results['random'][1]:.2f} of the epochs and "
              f"{results['asha'][2] / results['random'][2]:.2f} of the time; its best is "
              f"{results['asha'][0] - results['random'][0]:+.4f} beside that of chance")
    finally:
        server.stop()


if __name__ == "__main__":
    main()

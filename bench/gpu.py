#!/usr/bin/python3
"""Weir beside PyTorch on a GPU: nn-bench and bench/gpu_peer.py by turns, on the same machine in the same run.

    bench/gpu.py [--cases resnet50:bf16:64,...] [--seconds 600] [--rounds 1] [--variants graph,compile] [--output gpu.jsonl]

A case is MODEL:PRECISION:BATCH, a training, or MODEL:PRECISION:inferBATCH (gpu_peer.py says more); infer1 is the latency of
one picture. The first cases matter most and are given the most time; what has no time left is left out. For each case the
fastest variant of PyTorch counts. Printed are images a second, the ratio (above 1: Weir is faster), shares of the matrix
product that PyTorch reaches on this GPU, and memory: what Weir's net takes, and PyTorch's largest once its algorithms are
chosen (cuDNN's and the driver's own is in neither). --output gets all that was measured as JSON lines, as soon as it is known.

Wants build/nn-bench (`make tools`) or --nn-bench. Libraries of --libraries are for nn-bench alone. Ends with 77 where there is
no GPU or no torch, and with 1 where a case has no figure of both.
"""
import argparse
import importlib.util
import json
import os
import pathlib
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODELS = ("resnet50", "resnet152", "inception3", "vgg16")
CASE_SECONDS_MIN, PEAK_SECONDS, PEER_GRACE_S = 45, 120, 15
WEIR_SHARE = 0.4  # of a case's time, at most


def default_cases():
    first = ["resnet50:bf16:64", "resnet50:bf16:256", "resnet50:bf16:infer1", "resnet50:bf16:infer128", "resnet50:tf32:64",
             "resnet50:fp16:64", "mobilenet_v2:bf16:64"]
    rest = [f"{model}:{precision}:{batch}" for precision in ("bf16", "tf32") for model in MODELS for batch in (64, 256)]
    return first + [case for case in rest if case not in first]


def case_of(text):
    """(model, precision, batch, is it inference)."""
    model, precision, batch = text.split(":")
    return model, precision, int(batch.removeprefix("infer")), batch.startswith("infer")


# ---- runs ------------------------------------------------------------------------------------------------------

def lines_of(text):
    """The JSON objects in what a program printed; the last line may be half of one."""
    records = []
    for line in text.splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            records.append(record)
    return records


def run(command, limit_s, env=None):
    """(exit status, records, end of stderr). Status None: it was ended at its limit; what it had printed counts."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = subprocess.Popen(command, stdout=out, stderr=err, env=env)
        try:
            code = child.wait(timeout=limit_s)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            end(child)
        out.seek(0)
        err.seek(0)
        return code, lines_of(out.read()), err.read().strip()[-800:]


def end(child):
    """SIGTERM first: the peer ends what it has started."""
    child.terminate()
    try:
        child.wait(timeout=5)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def nn_bench_command(options, text):
    model, precision, batch, is_inference = case_of(text)
    command = [options.nn_bench, model, "--backend", options.backend, "--precision", precision, "--batch", str(batch),
               "--seconds", str(options.run_seconds), "-o", "json"]
    if is_inference:
        command += ["--inference", "--latency"] if batch == 1 else ["--inference"]
    return command + shlex.split(options.nn_bench_flags)


def run_weir(options, text, limit_s):
    env = dict(os.environ)
    if options.libraries:
        env["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [options.libraries, env.get("LD_LIBRARY_PATH")]))
    code, records, said = run(nn_bench_command(options, text), limit_s, env)
    if code != 0 or not records:
        reason = f"ended after {limit_s:.0f} s" if code is None else f"ended with {code}: {said}"
        return [{"program": "weir", "case": text, "error": reason}]
    return [dict(record, case=text) for record in records]


def run_peer(options, text, limit_s):
    command = [options.python, options.peer, "--seconds", f"{limit_s:.0f}", "--run-seconds", str(options.run_seconds),
               "--variants", options.variants, text]
    code, records, said = run(command, limit_s + PEER_GRACE_S)
    if code == 77:
        skip(said or "the peer found no GPU")
    if code != 0:
        records.append({"program": "torch", "case": text, "error": f"ended with {code}: {said}"})
    return records


def skip(reason):
    print(f"gpu: {reason}", file=sys.stderr)
    sys.exit(77)


def check_machine(options):
    if options.backend == "cuda" and not (os.path.exists("/dev/nvidiactl") or shutil.which("nvidia-smi")):
        skip("there is no GPU")
    if options.python == sys.executable and not importlib.util.find_spec("torch"):
        skip("torch is not installed; --python names one that has it")
    if not os.path.exists(options.nn_bench):
        sys.exit(f"gpu: there is no {options.nn_bench}; `make tools` builds it")


# ---- results ---------------------------------------------------------------------------------------------------

class Results:
    """All records, in the file as soon as they are known."""

    def __init__(self, path):
        self.records = []
        self.file = open(path, "w", encoding="utf-8")

    def add(self, records, i_round):
        for record in records:
            self.records.append(dict(record, round=i_round))
            self.file.write(json.dumps(self.records[-1]) + "\n")
            if "error" in record or "record_error" in record:
                print(f"  {record.get('case')} {record['program']} {record.get('variant', '')}: "
                      f"{record.get('error') or 'not recorded: ' + record['record_error']}", file=sys.stderr)
        self.file.flush()

    def figures(self, text, program):
        return [r for r in self.records if r.get("case") == text and r["program"] == program and "images_per_s" in r]

    def peak(self, precision):
        precision = {"fp16": "bf16"}.get(precision, precision)  # the same units
        return next((r[f"{precision}_flop_per_s"] for r in self.records if f"{precision}_flop_per_s" in r), None)


def median_of(records):
    """The record of the middle speed."""
    return sorted(records, key=lambda r: r["images_per_s"])[len(records) // 2] if records else None


def best_of(records):
    """The middle record of the variant that is fastest."""
    variants = {r["variant"] for r in records}
    middles = [median_of([r for r in records if r["variant"] == variant]) for variant in variants]
    return max(middles, key=lambda r: r["images_per_s"], default=None)


def cell(value, form):
    return "-" if value is None else format(value, form)


def mib(record):
    return record["memory_bytes"] / 2 ** 20 if record and "memory_bytes" in record else None


def share(record, flop, peak):
    return 100 * record["images_per_s"] * flop / peak if record and flop and peak else None


def speed(record, is_latency):
    if record is None:
        return "-"
    return f"{record['step_ms']:.3f}/{record['p99_ms']:.3f}" if is_latency else f"{record['images_per_s']:.1f}"


def row_of(results, text):
    _, precision, batch, is_inference = case_of(text)
    ours, theirs = median_of(results.figures(text, "weir")), best_of(results.figures(text, "torch"))
    ratio = ours["images_per_s"] / theirs["images_per_s"] if ours and theirs else None
    flop, peak = ours.get("flop_per_image") if ours else None, results.peak(precision)
    is_latency = is_inference and batch == 1
    return [text, speed(ours, is_latency), speed(theirs, is_latency), theirs.get("variant", "-") if theirs else "-",
            cell(ratio, ".3f"), cell(share(ours, flop, peak), ".1f"), cell(share(theirs, flop, peak), ".1f"),
            cell(mib(ours), ".0f"), cell(mib(theirs), ".0f")]


HEAD = ["case", "Weir", "torch", "variant", "ratio", "Weir %", "torch %", "Weir MiB", "torch MiB"]
WIDTHS = [26, 14, 14, 8, 7, 7, 8, 9, 10]


def line(cells):
    return " ".join(f"{text:<{width}}" if i in (0, 3) else f"{text:>{width}}"
                    for i, (text, width) in enumerate(zip(cells, WIDTHS)))


def print_peak(results):
    peak = next((r for r in results.records if r.get("case") == "peak"), {})
    print(", ".join(f"{key} {peak[key]}" for key in ("gpu", "driver", "torch", "cudnn", "cuda") if peak.get(key)))
    rates = [f"{name} {peak[key] / 1e12:.{digits}f} T{unit}/s" for name, key, digits, unit in (
        ("bf16", "bf16_flop_per_s", 0, "FLOP"), ("tf32", "tf32_flop_per_s", 0, "FLOP"), ("copy", "copy_bytes_per_s", 2, "B"))
             if key in peak]
    print("peak: " + (", ".join(rates) or "not measured") + "; images/s, infer1: ms, median/p99", flush=True)


def print_summary(results, cases):
    print()
    print(line(HEAD))
    rows = [row_of(results, text) for text in cases]
    for row in rows:
        print(line(row))
    ratios = [float(row[4]) for row in rows if row[4] != "-"]
    if ratios:
        print(f"ratio: geometric mean {statistics.geometric_mean(ratios):.3f}, least {min(ratios):.3f}")
    return len(ratios) == len(cases)


# ---- program ---------------------------------------------------------------------------------------------------

def run_case(options, results, text, limit_s, i_round):
    begin = time.monotonic()
    results.add(run_weir(options, text, WEIR_SHARE * limit_s), i_round)
    results.add(run_peer(options, text, max(1, limit_s - (time.monotonic() - begin) - PEER_GRACE_S)), i_round)
    print(line(row_of(results, text)), flush=True)


def run_cases(options, results):
    finish = time.monotonic() + options.seconds
    results.add(run_peer(options, "peak", min(PEAK_SECONDS, options.seconds)), 0)
    print_peak(results)
    print(line(HEAD))
    turns = [(i, text) for i in range(options.rounds) for text in options.cases]
    for i, (i_round, text) in enumerate(turns):
        left = finish - time.monotonic()
        if left < CASE_SECONDS_MIN:
            print(f"no time left for {len(turns) - i} of {len(turns)}", file=sys.stderr)
            break
        run_case(options, results, text, min(left, max(CASE_SECONDS_MIN, 1.5 * left / (len(turns) - i))), i_round)


def nn_bench_here():
    paths = [ROOT / "build" / "nn-bench", ROOT / "build" / "release" / "tools" / "nn-bench"]
    return str(next((path for path in paths if path.exists()), paths[0]))


def options_of():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=lambda text: text.split(","), default=default_cases())
    parser.add_argument("--seconds", type=float, default=600, help="for all")
    parser.add_argument("--run-seconds", type=float, default=1, help="of one of a figure's five runs")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--variants", default="graph,jit,compile", help="of PyTorch")
    parser.add_argument("--output", default="gpu.jsonl")
    parser.add_argument("--nn-bench", default=nn_bench_here())
    parser.add_argument("--nn-bench-flags", default="", help="further flags, as one word: '--keeps-all'")
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--libraries", help="LD_LIBRARY_PATH of nn-bench")
    parser.add_argument("--python", default=sys.executable, help="one that has torch")
    parser.add_argument("--peer", default=str(ROOT / "bench" / "gpu_peer.py"))
    options = parser.parse_args()
    for text in options.cases:
        try:
            case_of(text)
        except ValueError:
            parser.error(f"{text} is not MODEL:PRECISION:BATCH or MODEL:PRECISION:inferBATCH")
    return options


def main():
    options = options_of()
    check_machine(options)
    results = Results(options.output)
    run_cases(options, results)
    sys.exit(0 if print_summary(results, options.cases) else 1)


if __name__ == "__main__":
    main()

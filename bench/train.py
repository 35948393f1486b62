#!/usr/bin/python3
"""Training and inference against torch (and TensorFlow), in alternation, on this machine.

    bench/train.py [--case NAME]… [--rounds 5] [--quick] [--threads N] [--neighbour] [--venv DIR]… [--peer TEXT]…
                   [--blas DIR] [--weir-worker FILE] [-o FILE]

Peers: Debian's torch as it comes ("stock": the number of threads is set, channels last, nothing else), and with
memory and kernels tuned ("best": huge pages and no trimming in malloc, AVX-512 kernels in torch, OpenBLAS instead of
the reference BLAS that torch's package is content with: without it a linear layer takes ten times as long). With
--venv the newest torch (also "compiled": best, through torch.compile, which wants a C++ compiler), and TensorFlow, of
a virtual environment too; --peer takes only those whose names contain a text. Each round runs ours and every peer once,
beginning with another one each time; beside inference also steps of nothing but multiplications (steady_work.c), whose
p99 over median is the machine's own. Prints raw times, medians over the rounds and ratios; -o keeps everything as JSON.
Ends with 1 if a peer is missing or a run fails: nothing is left out silently.

The machine should do nothing else: each run notes how busy the processors were before it, and runs that began
with more than a tenth of them busy are marked.
"""
import argparse
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
PEER = ROOT / "bench/train_peer.py"
BUSY = 0.10

TUNED = {
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1:glibc.malloc.mmap_max=0:"
                      "glibc.malloc.trim_threshold=1000000000000:glibc.malloc.top_pad=268435456",
    "OPENBLAS_CORETYPE": "SkylakeX", "ATEN_CPU_CAPABILITY": "avx512",
}

OPENBLAS = ("openblas-openmp", "openblas-pthread")  # the first shares torch's threads

MLP = """input: [1, 28, 28]
layers:
  - {name: fc1, type: linear, k: 128}
  - {name: relu, type: relu}
  - {name: fc2, type: linear, k: classes}
loss: {type: softmax}
"""


def case(model, batch, steps, threads=2, bf16=False, forward_only=False, workers=1, independent=False):
    """batch: of a worker. independent: workers that exchange nothing."""
    return {"model": model, "batch": batch, "steps": steps, "warmup": max(2, steps // 5), "threads": threads,
            "bf16": bf16, "forward_only": forward_only, "workers": workers, "independent": independent}


CASES = {
    "resnet50-bf16": case("resnet50", 16, 12, bf16=True),
    "resnet50-f32": case("resnet50", 16, 8),
    "resnet152-bf16": case("resnet152", 16, 5, bf16=True),
    "inception3-bf16": case("inception3", 16, 8, bf16=True),
    "vgg16-f32": case("vgg16", 16, 4),
    "vgg16-bf16": case("vgg16", 16, 6, bf16=True),
    "mlp-b1": case("mlp", 1, 4000, threads=1),
    "mlp-b32": case("mlp", 32, 3000, threads=1),
    "mlp-b128": case("mlp", 128, 2000, threads=1),
    "lenet-b1": case("lenet", 1, 300, threads=1),
    "lenet-b32": case("lenet", 32, 60, threads=1),
    "resnet50-bf16-2procs": case("resnet50", 8, 12, threads=1, bf16=True, workers=2),
    "resnet50-bf16-2procs-independent": case("resnet50", 8, 12, threads=1, bf16=True, workers=2, independent=True),
    "resnet50-infer-b1-f32": case("resnet50", 1, 100, forward_only=True),
    "resnet50-infer-b1-bf16": case("resnet50", 1, 150, bf16=True, forward_only=True),
}
QUICK_STEPS = 3


def fail(text):
    print(f"bench/train.py: {text}", file=sys.stderr)
    sys.exit(1)


def busy_share(seconds=0.5):
    """How much of the processors others use, between 0 and 1."""
    def read():
        fields = [int(word) for word in open("/proc/stat", encoding="ascii").readline().split()[1:9]]
        return sum(fields), fields[3] + fields[4]
    total, idle = read()
    time.sleep(seconds)
    total_after, idle_after = read()
    return 1 - (idle_after - idle) / max(total_after - total, 1)


def find_worker(given):
    builds = [given] if given else [ROOT / "build/release/programs/weir-worker", ROOT / "build/dev/programs/weir-worker"]
    for path in builds:
        if pathlib.Path(path).exists():
            return str(path)
    fail("no weir-worker: build it (cmake --preset release && cmake --build --preset release) or say --weir-worker")


def find_blas(given):
    """The folder of an OpenBLAS, as Debian's packages lay it out."""
    folders = [pathlib.Path(given)] if given else [path for name in OPENBLAS for path in pathlib.Path("/usr/lib").glob(f"*/{name}")]
    for folder in folders:
        if (folder / "libblas.so.3").exists():
            return str(folder)
    fail(f"no OpenBLAS for torch: {given} has no libblas.so.3" if given else
         "no OpenBLAS for torch: install libopenblas0-openmp, or unpack it and say --blas DIR")


def run(words, env, what):
    done = subprocess.run(words, env=dict(os.environ, **env), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        fail(f"{what} ended with {done.returncode}: {(done.stderr or done.stdout).strip()[-600:]}")
    return json.loads(done.stdout[done.stdout.index("{"):])


class Ours:
    name = "weir"

    def __init__(self, worker, folder):
        self.worker = worker
        self.mlp = folder / "mlp-784-128-10.yaml"
        self.mlp.write_text(MLP, encoding="utf-8")

    def words(self, c):
        model = str(self.mlp) if c["model"] == "mlp" else c["model"]
        words = [self.worker, "bench-train", "--model", model, "--batch_size", str(c["batch"]),
                 "--num_batches", str(c["steps"]), "--num_warmup_batches", str(c["warmup"]),
                 "--threads", str(c["threads"]), "--workers", str(c["workers"]), "--optimizer", "momentum",
                 "--variable_update", "independent" if c["independent"] else "replicated", "-o", "json"]
        return words + ["--use_bf16"] * c["bf16"] + ["--forward_only"] * c["forward_only"]

    def run(self, c):
        out = run(self.words(c), {}, "weir-worker bench-train")
        keys = ("peak_fraction", "peak_gflop_s", "peak_rss_bytes", "page_faults_per_step")
        return dict({key: out[key] for key in keys}, median_s=out["step_ms"]["p50"] / 1e3,
                    p99_s=out["step_ms"]["p99"] / 1e3, mean_s=out["step_ms"]["mean"] / 1e3)


def p99_of(ordered):
    """Nearest rank."""
    return ordered[-(-99 * len(ordered) // 100) - 1]


class Peer:
    def __init__(self, name, python, framework, env, is_compiled=False):
        self.name, self.python, self.framework, self.env = name, str(python), framework, env
        self.is_compiled = is_compiled
        self.versions = {}

    def check(self):
        probe = subprocess.run([self.python, "-c", f"import {self.framework}"], capture_output=True, text=True, check=False)
        if probe.returncode != 0:
            fail(f"the peer {self.name} is missing: {self.python} cannot import {self.framework}: "
                 f"{probe.stderr.strip().splitlines()[-1] if probe.stderr.strip() else ''}")

    def run(self, c):
        env = dict(self.env, OMP_NUM_THREADS=str(c["threads"]))
        given = json.dumps(dict(c, compile=self.is_compiled))
        out = run([self.python, str(PEER), self.framework, given], env, self.name)
        self.versions = out["versions"]
        ordered = sorted(out["times"])
        return {"median_s": statistics.median(ordered), "mean_s": statistics.fmean(ordered),
                "p99_s": p99_of(ordered), "peak_rss_bytes": out["peak_rss_bytes"],
                "page_faults_per_step": out["page_faults_per_step"], "times": out["times"]}


class Bare:
    """Steps of a fixed number of multiplications: how uneven they are is the machine's doing alone."""
    name = "multiplications"
    STEP_MS = 10

    def __init__(self, folder):
        self.versions, self.program = {}, folder / "steady_work"
        subprocess.run(["cc", "-O2", "-o", self.program, ROOT / "bench/steady_work.c", "-lpthread"], check=True)

    def run(self, c):
        ordered = sorted(run([str(self.program), str(c["threads"]), str(c["steps"]), str(self.STEP_MS)], {}, self.name)["times"])
        return {"median_s": statistics.median(ordered), "mean_s": statistics.fmean(ordered), "p99_s": p99_of(ordered)}


def peers_of(args):
    tuned = dict(TUNED, LD_LIBRARY_PATH=find_blas(args.blas))
    peers = [Peer("torch stock", "/usr/bin/python3", "torch", {}), Peer("torch best", "/usr/bin/python3", "torch", tuned)]
    for folder in args.venv:
        python = pathlib.Path(folder) / "bin/python"
        probe = lambda module: subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0
        if not python.exists():
            fail(f"--venv {folder}: there is no {python}")
        there = [module for module in ("torch", "tensorflow") if probe(module)]
        if not there:
            fail(f"--venv {folder}: it has neither torch nor tensorflow")
        for module in there:
            label = f"{module} of {pathlib.Path(folder).name}"
            peers.append(Peer(f"{label} stock", python, module, {}))
            if module == "torch":
                peers.append(Peer(f"{label} best", python, module, TUNED))
                peers.append(Peer(f"{label} compiled", python, module, TUNED, is_compiled=True))
    peers = [peer for peer in peers if not args.peer or any(text in peer.name for text in args.peer)]
    if not peers:
        fail("--peer: no peer has such a name")
    for peer in peers:
        peer.check()
    return peers


def measure(name, c, programs, rounds):
    """Raw results: program → one dict a round."""
    results = {program.name: [] for program in programs}
    for i in range(rounds):
        for program in programs[i % len(programs):] + programs[:i % len(programs)]:
            busy = busy_share()
            result = dict(program.run(c), busy_before=busy)
            results[program.name].append(result)
            mark = f"   ({busy:.0%} of the processors were busy before)" if busy > BUSY else ""
            print(f"  {name:24} round {i + 1}  {program.name:24} {result['median_s'] * 1e3:10.3f} ms "
                  f"(p99 {result['p99_s'] * 1e3:10.3f}){mark}", flush=True)
    return results


def over_rounds(results, key):
    """None where a program has no such number."""
    return statistics.median(result[key] for result in results) if key in results[0] else None


def summary(name, c, results, ours):
    rows = []
    own_s, own_rss = (over_rounds(results[ours], key) for key in ("median_s", "peak_rss_bytes"))
    for program, runs in results.items():
        step_s, rss = over_rounds(runs, "median_s"), over_rounds(runs, "peak_rss_bytes")
        rows.append({"case": name, "program": program, "median_ms": step_s * 1e3,
                     "p99_over_median": statistics.median(run["p99_s"] / run["median_s"] for run in runs),
                     "least_ms": min(run["median_s"] for run in runs) * 1e3,
                     "most_ms": max(run["median_s"] for run in runs) * 1e3, "p99_ms": over_rounds(runs, "p99_s") * 1e3,
                     "images_per_second": rss and c["batch"] * c["workers"] / step_s,
                     "ours_is_faster_by": rss and step_s / own_s, "peak_rss_mib": rss and rss / 2**20,
                     "ours_takes_of_memory": rss and own_rss / rss,
                     "page_faults_per_step": over_rounds(runs, "page_faults_per_step"),
                     "peak_fraction": over_rounds(runs, "peak_fraction")})
    return rows


COLUMNS = (("median ms", "median_ms", "10.3f"), ("least", "least_ms", "10.3f"), ("p99", "p99_ms", "10.3f"),
           ("p99/p50", "p99_over_median", "8.2f"), ("images/s", "images_per_second", "9.1f"),
           ("ours is", "ours_is_faster_by", "8.2f"), ("MiB", "peak_rss_mib", "6.0f"),
           ("faults", "page_faults_per_step", "8.1f"), ("of peak", "peak_fraction", "8.1%"))


def print_summary(rows):
    width = {title: int(form.split(".")[0]) for title, _, form in COLUMNS}
    print(f"\n{'case':24} {'program':24} " + " ".join(f"{title:>{width[title]}}" for title, _, _ in COLUMNS))
    for row in rows:
        cells = (f"{'':{width[title]}}" if row[key] is None else f"{row[key]:{form}}" for title, key, form in COLUMNS)
        print(f"{row['case']:24} {row['program']:24} " + " ".join(cells))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", action="append", choices=list(CASES), help="only this one; may be repeated")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one round of three steps: does everything run?")
    parser.add_argument("--venv", action="append", default=[], help="virtual environment with newer peers; may be repeated")
    parser.add_argument("--peer", action="append", default=[], help="only peers with this in their names; may be repeated")
    parser.add_argument("--threads", type=int, help="computing threads of every case instead of its own")
    parser.add_argument("--neighbour", action="store_true", help="a process that takes one processor runs beside all")
    parser.add_argument("--blas", help="folder of the OpenBLAS that tuned torch uses (libblas.so.3)")
    parser.add_argument("--weir-worker", help="program to measure")
    parser.add_argument("-o", "--output", help="write everything as JSON")
    args = parser.parse_args()
    rounds = 1 if args.quick else args.rounds
    folder = pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / f"weir-bench-train-{os.getpid()}"
    folder.mkdir()
    ours = Ours(find_worker(args.weir_worker), folder)
    peers = peers_of(args)
    bare = Bare(folder)
    everything, rows = {}, []
    neighbour = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if args.neighbour else None
    try:
        for name in args.case or CASES:
            c = dict(CASES[name], **({"steps": QUICK_STEPS, "warmup": 1} if args.quick else {}))
            c["threads"] = args.threads or c["threads"]
            programs = [ours, *peers, *[bare] * c["forward_only"]]
            everything[name] = {"case": c, "command": ours.words(c), "rounds": measure(name, c, programs, rounds)}
            rows += summary(name, c, everything[name]["rounds"], ours.name)
    finally:
        if neighbour:
            neighbour.kill()
            neighbour.wait()
        shutil.rmtree(folder)
    print_summary(rows)
    versions = {peer.name: peer.versions for peer in peers}
    print("\nversions:", json.dumps(versions))
    print("best:", " ".join(f"{key}={value}" for key, value in TUNED.items()), "and OpenBLAS")
    if args.output:
        about = {"machine": platform.uname()._asdict(), "cpus": len(os.sched_getaffinity(0)), "versions": versions,
                 "tuned": TUNED, "cases": everything, "summary": rows}
        pathlib.Path(args.output).write_text(json.dumps(about, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()

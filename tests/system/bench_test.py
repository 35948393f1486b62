#!/usr/bin/env python3
"""bench_test.py: weir bench as people and scripts call it; ssh is a script that goes nowhere."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
WEIR = pathlib.Path(os.environ.get("WEIR_BIN", ROOT / "build/dev/programs")) / "weir"
SMALL = ("--model", "lenet-5", "--batch_size=4", "--num_batches=3", "--num_warmup_batches=1", "--threads=1")

# As another host would: another folder, no environment of ours.
SSH = '#!/bin/sh\nshift 5\ncd /\nexec env -i PATH="$PATH" sh -c "$1"\n'


def bench(*words, status=0, path=None):
    env = dict(os.environ, PATH=f"{path}:{os.environ['PATH']}") if path else None
    answer = subprocess.run([WEIR, "bench", *words], env=env, capture_output=True, text=True, timeout=120)
    assert answer.returncode == status, f"weir bench {words}: {answer.returncode}: {answer.stderr}"
    return answer.stdout if status == 0 else answer.stderr


def check_lines():
    """What scripts that read tf_cnn_benchmarks look for."""
    text = bench("train", *SMALL)
    assert re.search(r"^Model:       lenet-5$", text, re.M), text
    steps = re.findall(r"^\d+\timages/sec: ([\d.]+) \+/- [\d.]+ \(jitter = [\d.]+\)\t[\d.]+$", text, re.M)
    total = re.search(r"^-{64}\ntotal images/sec: ([\d.]+)\n-{64}$", text, re.M)
    assert steps and total and float(total[1]) > 0, text


def check_json(*words, **how):
    out = json.loads(bench("train", *SMALL, *words, "-o", "json", **how))
    for key in ("images_per_second", "images_per_second_stddev", "peak_fraction", "peak_rss_bytes",
                "page_faults_per_step", "cpu_ms_per_step"):
        assert isinstance(out[key], (int, float)) and out[key] >= 0, (key, out)
    assert 0 < out["step_ms"]["p50"] <= out["step_ms"]["p99"], out
    return out


def check_hosts():
    with tempfile.TemporaryDirectory() as folder:
        ssh = pathlib.Path(folder) / "ssh"
        ssh.write_text(SSH, encoding="ascii")
        ssh.chmod(0o755)
        out = check_json("--hosts", "a,b", "--rendezvous", f"file://{folder}", path=folder)
        assert out["workers"] == 2 and out["transport"] == "shm", out
        error = bench("train", "--model", "no-such", "--hosts", "a,b", status=4, path=folder)
        assert "rank 0 on a" in error or "rank 1 on b" in error, error


def check_refusals():
    assert "is no benchmark" in bench("everything", status=2)
    assert "not supported: --num-gpus=8" in bench("train", "--num_gpus=8", status=7)
    assert "Benchmarks:" in bench("--help")


def main():
    check_lines()
    assert check_json()["workers"] == 1
    assert check_json("--workers=2", "--variable_update=parameter_server")["parameter_servers"] == 1
    check_hosts()
    check_refusals()
    assert json.loads(bench("allreduce", "--bytes", "1K", "-o", "json"))
    print("bench: all well")


if __name__ == "__main__":
    sys.exit(main())

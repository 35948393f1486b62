"""Python peers of the tests here: packages in a virtual environment under build/.

A test calls run_in("onnx", "onnxruntime", "numpy") first. It then goes on in the environment's
interpreter; where the packages cannot be got, it ends with 77 (skipped).
"""
import fcntl
import hashlib
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("WEIR_BIN", ROOT / "build/dev/programs"))
WORKER = str(BIN / "weir-worker")
MODEL_CASE = str(BIN.parent / "tests/model_case")
SKIPPED = 77


def install(folder, packages):
    """The environment's interpreter; None where the packages cannot be got."""
    python = folder / "bin/python"
    ready = folder / "ready"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{folder}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ready.exists():
            pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
            for command in ([sys.executable, "-m", "venv", "--clear", folder], pip):
                done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
                if done.returncode != 0:
                    return None
            ready.touch()
    return python


def run_in(*packages):
    """Go on in an environment with these packages."""
    name = hashlib.sha256(" ".join(packages).encode()).hexdigest()[:12]
    folder = ROOT / "build/peers" / name
    if pathlib.Path(sys.prefix) == folder:
        return
    python = install(folder, packages)
    if python is None:
        print("skipped: cannot get " + ", ".join(packages))
        sys.exit(SKIPPED)
    os.execv(python, [str(python), *sys.argv])


def onnxruntime_folder():
    """Where the package has the library."""
    import onnxruntime
    return str(pathlib.Path(onnxruntime.__file__).parent / "capi")

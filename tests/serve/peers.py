"""Python peers of the tests here: packages in a virtual environment under build/.

A test calls run_in_peers() first. It then goes on in the environment's interpreter; where the
packages cannot be got, it ends with 77 (skipped). All tests share one environment: to make it takes
longer than most of them.
"""
import fcntl
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("WEIR_BIN", ROOT / "build/dev/programs"))
WORKER = str(BIN / "weir-worker")
MODEL_CASE = str(BIN.parent / "tests/model_case")
SKIPPED = 77
os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # onnxruntime would tell its maker


PACKAGES = ("numpy", "onnx", "onnxruntime", "pillow", "tritonclient[grpc,http]")
INSTALL_S = 240  # a test has 600 s


def install(folder, packages=PACKAGES):
    """The environment's interpreter; None where the packages cannot be got."""
    python = folder / "bin/python"
    ready = folder / "ready"
    make = [sys.executable, "-m", "venv", folder]
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{folder}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ready.exists():
            for command in (make, pip):
                try:
                    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=INSTALL_S, check=True)
                except subprocess.SubprocessError:
                    return None
            ready.touch()
    return python


def run_in_peers():
    """Go on in the environment with the packages."""
    folder = ROOT / "build/peers/tests"
    if pathlib.Path(sys.prefix) == folder:
        return
    python = install(folder)
    if python is None:
        print("skipped: cannot get " + ", ".join(PACKAGES))
        sys.exit(SKIPPED)
    os.execv(python, [str(python), *sys.argv])


def onnxruntime_folder():
    """Where the package has the library."""
    import onnxruntime
    return str(pathlib.Path(onnxruntime.__file__).parent / "capi")

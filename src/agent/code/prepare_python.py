"""An environment with the packages of .weir-requirements.txt, then the program in it.

python3 -c THIS FOLDER IMAGE PROGRAM …. It runs as the task, in its sandbox. FOLDER is the project's on this
node: an environment is made once for its text, interpreter and image, and used by all tasks that want the
same. Whoever makes it holds its lock alone; whoever uses it shares the lock, with the program.
"""
import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import time

folder, image, program = sys.argv[1], sys.argv[2], sys.argv[3:]
READY = "weir-is-ready"


def fail(text):
    print(f"weir: {text}", file=sys.stderr)
    sys.exit(8)


def tell(text):
    print(f"weir: {text}", file=sys.stderr, flush=True)


def make(path, requirements):
    began = time.monotonic()
    shutil.rmtree(path, ignore_errors=True)
    before = os.umask(0o007)
    # The system's pip is seen from the environment: its own takes seconds to make.
    without = ["--without-pip"] if importlib.util.find_spec("pip") is not None else []
    made = subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", *without, path],
                          stdin=subprocess.DEVNULL, stdout=sys.stderr)
    if made.returncode != 0:
        fail("no Python environment can be made here: apt-get install python3-venv python3-pip")
    pip = [os.path.join(path, "bin", "python"), "-m", "pip"]
    tell("installing the job's Python packages; pip says:")
    installed = subprocess.run([*pip, "install", "--disable-pip-version-check", "--no-input", "--no-cache-dir",
                                "--progress-bar", "off", "-r", requirements], stdin=subprocess.DEVNULL,
                               stdout=sys.stderr)
    if installed.returncode != 0:
        shutil.rmtree(path, ignore_errors=True)
        fail("the job's Python packages could not be installed: see pip's words above")
    with open(os.path.join(path, READY), "w"):
        pass
    os.umask(before)
    tell(f"the packages are there after {time.monotonic() - began:.0f} s; the next job with this list finds them")


def take(lock, how):
    """Another task may be making the same environment: that is told, since it may take minutes."""
    try:
        fcntl.flock(lock, how | fcntl.LOCK_NB)
    except BlockingIOError:
        tell("another task uses or makes the same Python packages: waiting for it")
        fcntl.flock(lock, how)


def main():
    requirements = ".weir-requirements.txt"
    with open(requirements, encoding="utf-8") as file:
        text = file.read()
    what = "\0".join([text, sys.version, sys.executable, sysconfig.get_platform(), image])
    path = os.path.join(folder, hashlib.sha256(what.encode()).hexdigest())
    try:
        lock = os.open(path + ".lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o660)
        take(lock, fcntl.LOCK_SH)
        if not os.path.exists(os.path.join(path, READY)):
            fcntl.flock(lock, fcntl.LOCK_UN)
            take(lock, fcntl.LOCK_EX)
            if not os.path.exists(os.path.join(path, READY)):
                make(path, requirements)
            fcntl.flock(lock, fcntl.LOCK_SH)
        else:
            tell("the job's Python packages are here already")
        os.utime(lock)
    except OSError as error:
        fail(f"no Python environment can be made in {folder}: {error}")
    os.set_inheritable(lock, True)
    os.environ["VIRTUAL_ENV"] = path
    os.environ["PATH"] = os.path.join(path, "bin") + os.pathsep + os.environ.get("PATH", os.defpath)
    os.environ.pop("PYTHONHOME", None)
    try:
        os.execvp(program[0], program)
    except OSError as error:
        print(f"cannot start \"{program[0]}\": {error.strerror}", file=sys.stderr)
        sys.exit(127 if isinstance(error, FileNotFoundError) else 126)


main()

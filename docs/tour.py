#!/usr/bin/env python3
"""tour.py: plays the tour of README.md and writes what its commands print below them.

The tour is the console block between "<!-- tour: begin" and "<!-- tour: end -->". Lines that begin
with "$ " are commands of one bash session in the repository's root; the others are output and are
replaced. Needs what `make` builds; takes some minutes. Nothing is left running.
"""
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
STATE = ROOT / "build/tour"
MARK = "\x01end of command\x01"


def play(commands):
    """What each command printed, in order."""
    script = "set -m\n" + "\n".join(f"{command}\nprintf '%s' '{MARK}'" for command in commands)
    done = subprocess.run(["bash", "-c", script], cwd=ROOT, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=True)
    return done.stdout.split(MARK)[:len(commands)]


def main():
    page = ROOT / "README.md"
    text = page.read_text(encoding="utf-8")
    tour = re.search(r"<!-- tour: begin.*?<!-- tour: end -->", text, re.S)
    block = re.search(r"```console\n(.*?)```", tour[0], re.S)
    commands = re.findall(r"^\$ (.*)", block[1], re.M)
    shutil.rmtree(STATE, ignore_errors=True)
    try:
        outputs = play(commands)
    finally:
        # The tour ends what it started; this is for one that was interrupted.
        subprocess.run([ROOT / "build/weir", "server", "stop", "--tasks", "--state", STATE],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    lines = [f"$ {command}\n{output}" for command, output in zip(commands, outputs)]
    # That the shell's job is done the shell says, not Weir.
    lines = [re.sub(r"^\[1\][+-] .*\n", "", line, flags=re.M) for line in lines]
    played = "".join(line if line.endswith("\n") else line + "\n" for line in lines)
    whole = tour[0].replace(block[1], re.sub(r"[ \t]+$", "", played, flags=re.M))
    page.write_text(text.replace(tour[0], whole), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

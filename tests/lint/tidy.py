#!/usr/bin/env python3
"""tidy.py BUILD [--all]: clang-tidy (.clang-tidy) over the source files of a configured build.

A file that was clean is not looked at again while nothing changes that it is made of: its text, the text of every file of
ours that it includes, its compile command, the rules and clang-tidy itself. What was clean is remembered by such sums in
${XDG_CACHE_HOME:-~/.cache}/weir/tidy. --all looks at every file. Exits with 1 if a file is not clean, after what clang-tidy says.
"""
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "weir/tidy"
TIDY = "clang-tidy-14"
# The last two want headers of a toolkit that few machines have, and of a oneDNN that Debian 12 has not.
LEFT_OUT = re.compile(r"_fuzz\.c$|cuda/abi_test\.c$|dnn/(layout|op)_v3\.c$")
INCLUDE = re.compile(rb'^\s*#\s*include\s+"([^"]+)"', re.M)
FILES_AT_ONCE = 6  # of one process: clang-tidy reads its rules once


@functools.lru_cache(maxsize=None)
def read(path):
    """The sum of a file and the names that it includes; None for what is no file."""
    try:
        text = path.read_bytes()
    except OSError:
        return None
    return hashlib.sha256(text).digest(), tuple(name.decode() for name in INCLUDE.findall(text))


def made_of(source):
    """The files of ours that a source file is made of, itself first."""
    files, waiting = {}, [source]
    while waiting:
        path = waiting.pop()
        if path in files or read(path) is None:
            continue
        files[path] = read(path)[0]
        for name in read(path)[1]:
            waiting += [path.parent / name, ROOT / "src" / name, ROOT / "tools" / name]
    return files


def sum_of(source, command, rules):
    digest = hashlib.sha256(rules + command.replace(str(ROOT), "").encode())
    for path, content in sorted(made_of(source).items()):
        digest.update(str(path.relative_to(ROOT)).encode() + content)
    return digest.hexdigest()


def look_at(build, files):
    """Those of the files that are clean, and what clang-tidy says of the others."""
    said = subprocess.run([TIDY, "--quiet", "-p", build, "--extra-arg=-Wno-unknown-warning-option", *map(str, files)],
                          cwd=ROOT, capture_output=True, text=True)
    text = "\n".join(line for line in (said.stdout + said.stderr).splitlines()
                     if not re.fullmatch(r"\d+ warnings? generated\.", line))
    if said.returncode == 0:
        return files, text
    if len(files) == 1:
        return [], text
    parts = [look_at(build, [file]) for file in files]
    return [file for clean, _ in parts for file in clean], "\n".join(text for _, text in parts if text)


def main():
    build, is_all = sys.argv[1], "--all" in sys.argv[2:]
    commands = {pathlib.Path(row["file"]): row["command"] for row in json.loads((ROOT / build / "compile_commands.json").read_text())}
    listed = subprocess.run(["git", "ls-files", "src/*.c", "programs/*.c", "tools/*.c"], cwd=ROOT, capture_output=True, text=True, check=True)
    sources = [ROOT / name for name in listed.stdout.split() if not LEFT_OUT.search(name) and (ROOT / name).exists()]
    if shutil.which(TIDY) is None:
        print(f"no {TIDY}, Debian 12's: nothing is looked at")
        sys.exit(77)
    version = subprocess.run([TIDY, "--version"], capture_output=True, check=True).stdout
    rules = version + (ROOT / ".clang-tidy").read_bytes()
    sums = {source: sum_of(source, commands.get(source, ""), rules) for source in sources}
    known = set(CACHE.read_text().split()) if CACHE.exists() and not is_all else set()
    files = [source for source in sources if sums[source] not in known]
    clean = set(sources) - set(files)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        groups = [files[i:i + FILES_AT_ONCE] for i in range(0, len(files), FILES_AT_ONCE)]
        for done, text in pool.map(lambda group: look_at(build, group), groups):
            clean.update(done)
            if text:
                print(text, flush=True)
    CACHE.parent.mkdir(parents=True, exist_ok=True)
    CACHE.write_text("\n".join(sorted(sums[source] for source in clean)) + "\n")
    print(f"{len(files)} of {len(sources)} files looked at, {len(sources) - len(clean)} not clean")
    return 0 if len(clean) == len(sources) else 1


if __name__ == "__main__":
    sys.exit(main())

"""Counts of what there should be less of: by domain, in a file beside the lint, and they may only fall.

A lint makes its counts of each domain's product code, and calls `main`: a count that is higher than the file says is a
problem; where one is lower the file is to say so, which --write does. It never writes more than there was.
"""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEST = re.compile(r"_test\.c$|_fuzz\.c$|_fixture\.h$|^test_|_laws\.h$")


def product_texts():
    """(domain, path, text) of each file of C and of the console that is no test."""
    for top, *patterns in (("src", "*/**/*.[ch]"), ("web/src", "**/*.ts", "**/*.tsx")):
        for pattern in patterns:
            for path in sorted((ROOT / top).glob(pattern)):
                if not TEST.search(path.name):
                    domain = path.relative_to(ROOT / top).parts[0] if top == "src" else "web"
                    yield domain, path, path.read_text(encoding="utf-8")


def problems_of(counts, allowed, what, instead):
    """One line for each count that is another."""
    for key in sorted(set(counts) | set(allowed)):
        n, most = counts[key], allowed.get(key, 0)
        if n > most:
            yield f"{key}: {n} {what}, and {most} are allowed: {instead}"
        elif n < most:
            yield f"{key}: {n} {what}, no longer {most}: run {sys.argv[0]} --write"


def check_itself():
    planted = collections.Counter({"a": 3, "b": 1})
    assert not list(problems_of(planted, {"a": 3, "b": 1}, "x", "y"))
    assert next(problems_of(planted, {"a": 2, "b": 1}, "x", "y")) == "a: 3 x, and 2 are allowed: y"
    assert next(problems_of(planted, {"b": 1}, "x", "y")) == "a: 3 x, and 0 are allowed: y"
    assert "no longer 2" in next(problems_of(planted, {"a": 3, "b": 2}, "x", "y"))


def main(file, counts, what, instead):
    """The exit status. `file`: lines "KEY COUNT"; a key may have spaces."""
    check_itself()
    lines = [line.rsplit(" ", 1) for line in file.read_text(encoding="utf-8").splitlines()]
    allowed = {key: int(n) for key, n in lines}
    if "--write" in sys.argv:
        allowed = {key: min(n, counts[key]) for key, n in allowed.items() if counts[key] > 0}
        file.write_text("".join(f"{key} {n}\n" for key, n in sorted(allowed.items())), encoding="utf-8")
    problems = list(problems_of(counts, allowed, what, instead))
    print("\n".join(problems) if problems else f"{sum(counts.values())} {what}: 0 problems")
    return 1 if problems else 0

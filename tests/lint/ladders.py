#!/usr/bin/env python3
"""ladders.py [--write]: does no function grow a ladder of statuses?

A step of one is a condition that goes on while all went well, "if (status == WEIR_OK)" or "status == WEIR_OK && …":
WEIR_TRY and WEIR_AUTO (src/base/macros.h) say the same in a line. ladders.txt has the steps of each domain's product
code; there may be no more, and when there are fewer, it is to say so. --write does that; it never writes more than
there were. Exits with 0, or with 1 after one line for each domain.
"""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
COUNTS = pathlib.Path(__file__).with_suffix(".txt")
STEP = re.compile(r"\bstatus == WEIR_OK(?: &&|\))")
TEST = re.compile(r"_test\.c$|_fuzz\.c$|_fixture\.h$|^test_|_laws\.h$")
COMMENT_OR_TEXT = re.compile(r'"(?:\\.|[^"\\\n])*"|/\*.*?\*/|//[^\n]*', re.S)


def steps_of(text):
    return len(STEP.findall(re.sub(r"\s+", " ", COMMENT_OR_TEXT.sub(" ", text))))


def count():
    counts = collections.Counter()
    for path in (ROOT / "src").glob("*/**/*.[ch]"):
        if not TEST.search(path.name):
            counts[path.relative_to(ROOT / "src").parts[0]] += steps_of(path.read_text(encoding="utf-8"))
    return counts


def problems_of(counts, allowed):
    """One line for each domain whose count is another."""
    for domain in sorted(set(counts) | set(allowed)):
        n, most = counts[domain], allowed.get(domain, 0)
        if n > most:
            yield f"src/{domain}: {n} steps of ladders of statuses, and {most} are allowed: WEIR_TRY, WEIR_TRY_GOTO or WEIR_AUTO"
        elif n < most:
            yield f"src/{domain}: {n} steps of ladders of statuses, no longer {most}: run tests/lint/ladders.py --write"


def check_itself():
    ladder = "if (status == WEIR_OK) {\n    status = f();\n}\nif (status ==\n    WEIR_OK && x) {\n}"
    assert steps_of(ladder) == 2
    assert steps_of('/* status == WEIR_OK && */ "status == WEIR_OK)" return status == WEIR_OK ? 0 : 1;') == 0
    planted = collections.Counter({"a": 3, "b": 1})
    assert not list(problems_of(planted, {"a": 3, "b": 1}))
    assert "src/a: 3 steps" in next(problems_of(planted, {"a": 2, "b": 1}))
    assert "no longer 2" in next(problems_of(planted, {"a": 3, "b": 2}))


def main():
    check_itself()
    counts = count()
    allowed = {domain: int(n) for domain, n in map(str.split, COUNTS.read_text(encoding="utf-8").splitlines())}
    if "--write" in sys.argv:
        allowed = {domain: min(n, counts[domain]) for domain, n in allowed.items() if counts[domain] > 0}
        COUNTS.write_text("".join(f"{domain} {n}\n" for domain, n in sorted(allowed.items())), encoding="utf-8")
    problems = list(problems_of(counts, allowed))
    print("\n".join(problems) if problems else f"{sum(counts.values())} steps of ladders of statuses: 0 problems")
    return 1 if problems else 0


sys.exit(main())

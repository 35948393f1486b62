#!/usr/bin/env python3
"""ladders.py [--write]: does no function grow a ladder of statuses?

A step of one is a condition that goes on while all went well, "if (status == WEIR_OK)" or "status == WEIR_OK && …":
WEIR_TRY and WEIR_AUTO (src/base/macros.h) say the same in a line. ladders.txt has the steps of each domain's product
code, and they may only fall (counts.py). Exits with 0, or with 1 after one line for each domain.
"""
import collections
import pathlib
import re
import sys

import counts

STEP = re.compile(r"\bstatus == WEIR_OK(?: &&|\))")
COMMENT_OR_TEXT = re.compile(r'"(?:\\.|[^"\\\n])*"|/\*.*?\*/|//[^\n]*', re.S)


def steps_of(text):
    return len(STEP.findall(re.sub(r"\s+", " ", COMMENT_OR_TEXT.sub(" ", text))))


def check_itself():
    ladder = "if (status == WEIR_OK) {\n    status = f();\n}\nif (status ==\n    WEIR_OK && x) {\n}"
    assert steps_of(ladder) == 2
    assert steps_of('/* status == WEIR_OK && */ "status == WEIR_OK)" return status == WEIR_OK ? 0 : 1;') == 0


def main():
    check_itself()
    found = collections.Counter()
    for domain, path, text in counts.product_texts():
        if path.suffix in (".c", ".h"):
            found[domain] += steps_of(text)
    return counts.main(pathlib.Path(__file__).with_suffix(".txt"), found, "steps of ladders of statuses",
                       "WEIR_TRY, WEIR_TRY_GOTO or WEIR_AUTO")


sys.exit(main())

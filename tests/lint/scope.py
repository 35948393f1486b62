#!/usr/bin/env python3
"""scope.py: does SQL outside of src/store name tables past the views that hide other projects' rows?

A statement names a table alone; what it reads is then what the transaction's scope has of it (src/store/row_scope.h).
A name with a schema before it (main.jobs, "main" . jobs, temp.jobs) does not compile at run time; here it is
found before; so is a proof of a project (struct weir_proven) that is not the scope's own. Looks at the string constants of all C files, those that stand one behind the other taken together.
Exits with 0, or with 1 after one line for each place.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|\'(?:\\.|[^\'\\\n])*\'|(?P<text>"(?:\\.|[^"\\\n])*")|(?P<space>[\s\\]+)|.', re.S)
GAP = r"(?:\s|/\*.*?\*/|--[^\n]*\n)*"
PAST = re.compile(rf"(?<![\w.$/-])([\"'\[`]?)(?:main|temp)[\"'\]`]?{GAP}\.{GAP}[\"'\[`]?[a-z_%]", re.I | re.S)
# A proof is made by a look at the scope, and by nothing else.
MADE_UP = re.compile(r"\(struct weir_proven\)\s*\{(?!NULL\})|\bproven\.project\s*=[^=]|(?<!void )\bstruct weir_proven \w+ = \{(?!NULL\})")
PROOFS = {"(struct weir_proven){&name}": 1, "x->proven.project = &name;": 1, "struct weir_proven p = {&name};": 1,
          "(struct weir_proven){NULL}": 0, "if (sql->proven.project == NULL)": 0, "struct weir_proven p = weir_txn_proven(txn, name);": 0}
# Files that are called so.
FILES = re.compile(r"\bmain\.(c|h|cc|py|sh|js|ts|tsx|rs|go)\b")
OUTSIDE = "src/nouns/scope_property_test.c"  # compares what a scope sees with the tables themselves
WAYS_PAST = ['"SELECT 1 FROM main.jobs"', '"FROM " "main" ".jobs"', r'"SELECT 1 FROM \"main\".jobs"', '"SELECT 1 FROM main . jobs"',
             '"DELETE FROM [main].[jobs]"', '"FROM main/* */./* */jobs"', '"FROM temp.jobs"', '"UPDATE MAIN.\\"%s\\" SET x = 1"',
             '"FROM main -- a\\n.jobs"', "\"FROM 'main'.jobs\""]
HARMLESS = ['"main.py"', '"SELECT main FROM jobs"', '"a.main.x"', '// main.jobs\n', '/* main.jobs */', '"domain.jobs"', '"src/main.c"']


def constants(text):
    """(place, text) of string constants; what stands one behind the other, with nothing but space or comments between, is one."""
    start, parts = 0, []
    for token in TOKEN.finditer(text):
        if token["text"]:
            start = start if parts else token.start()
            parts.append(token["text"][1:-1])
        elif not token["space"] and not token[0].startswith(("//", "/*")) and parts:
            yield start, "".join(parts)
            parts = []
    if parts:
        yield start, "".join(parts)


def ways_past(text):
    for at, constant in constants(text):
        sql = constant.replace('\\"', '"').replace("\\n", "\n").replace("\\t", "\t")
        if PAST.search(FILES.sub("", sql)):
            yield at, sql


def main():
    for planted in WAYS_PAST:
        if not list(ways_past(planted)):
            sys.exit(f"scope.py does not find {planted}")
    for harmless in HARMLESS:
        if list(ways_past(harmless)):
            sys.exit(f"scope.py takes {harmless} for a way past the views")
    for text, n in PROOFS.items():
        if len(MADE_UP.findall(text)) != n:
            sys.exit(f"scope.py judges {text} wrongly")
    listed = subprocess.run(["git", "ls-files", "src"], cwd=ROOT, capture_output=True, text=True, check=False)
    files = listed.stdout.split() if listed.returncode == 0 else [str(p.relative_to(ROOT)) for p in ROOT.glob("src/**/*")]
    problems = []
    for name in files:
        if name.startswith("src/store/") or name == OUTSIDE or not name.endswith((".c", ".h", ".def")):
            continue
        text = (ROOT / name).read_text(encoding="utf-8")
        problems += [f"{name}:{text.count(chr(10), 0, at) + 1}: names a table past its scope: {sql[:80]!r}: name the table alone"
                     for at, sql in ways_past(text)]
        problems += [f"{name}:{text.count(chr(10), 0, match.start()) + 1}: makes up that a scope has a project: ask weir_txn_proven"
                     for match in MADE_UP.finditer(text)]
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

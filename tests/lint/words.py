#!/usr/bin/env python3
"""words.py [--count]: does the source use the words of docs/glossary.md?

Its table "Words that are not used" names words, and the folders in which they must not be parts of
identifiers, or stand in text that people see: string literals, documents, manual pages. Folders behind
"not" are left out: there the word means another thing. Comments are free, and so are lines that say
"old word", which accept it for one version. Exits with 0, or with 1 after one line for each place;
--count: only how many each word has.
"""
import collections
import functools
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TERMS_MAX = 81
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|`[^`]*`|[A-Za-z_][A-Za-z0-9_]*', re.S)


def rows(title):
    """The rows of the table under a heading of the glossary."""
    text = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    part = text.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]
    table = [line for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in table[2:]]


def quoted(cell):
    return re.findall(r"`([^`]+)`", cell)


@functools.lru_cache(maxsize=None)
def identifier_parts(name, terms=()):
    """The words of an identifier; a term of several words is one (n_bf16_pairs)."""
    snake = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()
    for term in terms:
        snake = re.sub(rf"(?<![a-z0-9]){term}(?![a-z0-9])", term.replace("_", ""), snake)
    return re.findall(r"[a-z0-9]+", snake)


def is_below(name, folders):
    return any(name == at or name.startswith(at + "/") for at in folders)


def words_of(path, text, terms):
    """(line, word, is text that people see) of all that the lint looks at."""
    if path.suffix not in (".c", ".h", ".ts", ".tsx"):
        for match in re.finditer(r"[A-Za-z]+", text):
            yield match.start(), match[0].lower(), True
        return
    for token in TOKEN.finditer(text):
        if token[0].startswith(("//", "/*")):
            continue
        is_text = token[0][0] in "\"'`"
        for word in re.findall(r"[A-Za-z]+", token[0].lower()) if is_text else identifier_parts(token[0], terms):
            yield token.start(), word, is_text


def main():
    problems, counts = [], collections.Counter()
    terms = [row[0] for row in rows("Terms")]
    if len(terms) > TERMS_MAX or len(set(terms)) != len(terms) or terms != sorted(terms, key=str.lower):
        problems.append(f"docs/glossary.md: {len(terms)} terms: at most {TERMS_MAX}, each once, in order")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    files = listed.stdout.split() if listed.returncode == 0 else [
        str(p.relative_to(ROOT)) for p in ROOT.rglob("*") if p.is_file() and "build" not in p.parts]
    rules = [(set(quoted(words)), use, [quoted(part) for part in f"{where} not ".split(" not ")[:2]], "text" in kinds)
             for words, use, where, kinds in rows("Words that are not used")]
    several = tuple(sorted({term.replace(" ", "_") for _, use, _, _ in rules for term in re.split("[,;] ", use)
                            if " " in term}))
    for name in files:
        here = [rule for rule in rules if is_below(name, rule[2][0]) and not is_below(name, rule[2][1])]
        path = ROOT / name
        if not here or path.suffix not in (".c", ".h", ".ts", ".tsx", ".md", ".scd", ".yaml") or name == "docs/glossary.md":
            continue
        text = path.read_text(encoding="utf-8")
        text = re.sub(r"[^\n]*old word[^\n]*", "", text)
        for at, word, is_text in words_of(path, text, several):
            for words, use, _, with_text in here:
                if word in words and (not is_text or (with_text and not path.stem.endswith("_test"))):
                    counts[word, name.split("/")[1] if "/" in name else name] += 1
                    problems.append(f"{name}:{text.count(chr(10), 0, at) + 1}: \"{word}\": say {use}")
        for words, use, _, _ in here:
            if words & set(identifier_parts(path.stem, several)):
                problems.append(f"{name}: the file's name: say {use}")
    if "--count" in sys.argv:
        for (word, where), n in sorted(counts.items(), key=lambda entry: (entry[0][1], -entry[1])):
            print(f"{where:12} {word:12} {n}")
    else:
        print("\n".join(dict.fromkeys(problems)))
    return 1 if problems else 0


sys.exit(main())

#!/usr/bin/env python3
"""dialect.py: is SQL outside of the database's driver what databases share, and does nothing but the driver know which one it is?

src/store/db.h says what a driver is and what the SQL may rely on; src/store/sqlite is one. Elsewhere no code names SQLite,
and no statement says what SQLite alone understands, or understands in its own way. Looks at the code and the string
constants of all product C files, those that stand one behind the other taken together. Exits with 0, or with 1 after
one line for each place.
"""
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True
from scope import constants  # pylint: disable=wrong-import-position

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Comments of the form /*+ … */ are hints for the driver's database.
# The driver; and how it holds the scope.
DRIVER = ("src/store/sqlite/", "src/store/scope_sql.")
TEST = re.compile(r"_test\.c$|_fuzz\.c$|fixture\.[ch]$|/test_|_laws\.h$|_template\.h$")
NOT_CODE = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', re.S)
CODE = re.compile(r"\b(?:sqlite3_\w+|SQLITE_\w+)|<sqlite3\.h>")
SQL = re.compile(r"\b(?:SELECT|FROM|WHERE|UPDATE|INSERT|DELETE|ORDER BY|VALUES|JOIN|CASE|EXISTS)\b")
INNER = r"(?:[^()]|\([^()]*\))*"
DEEP = rf"(?:[^()]|\((?:[^()]|\((?:[^()]|\({INNER}\))*\))*\))*"
VALUE = r"(?:[a-z_]\w*\.)?\"?[a-z_]\w*\"?"
# Of any text: what nobody writes by chance.
ANYWHERE = {
    rf"\b(?:max|min)\((?:[a-z_.:]|\({INNER}\))+, [a-z_.:]{INNER}\)": "max or min of two values: CASE",
    r"\bPRAGMA\b": "a pragma: an operation of the driver",
    r"\b(?:strftime|julianday|unixepoch)\('": "a time of SQLite's: weir_now_ms(), or in C",
    r"\bsqlite_(?:master|schema|temp_master|sequence)\b": "SQLite's own table: an operation of the driver",
    r"\bjson_(?:each|tree|extract|type|set|remove|insert|replace|array_length|valid|group_array|group_object|patch)\s*\(":
        "JSON taken apart in SQL: weir_stmt_json",
}
IN_SQL = {
    rf"\b(?:sum|total|avg)\({INNER}?(?<!THEN )(?:[=<>]|\bIN \(|\bIS\b){INNER}\)": None,  # see truth()
    r"\btotal\s*\(": "total(): sum()",
    r"\b_?rowid_?\b|\boid\b": "the number of a row: its key",
    r"\bGLOB\b|\bREGEXP\b|\bMATCH\b": "GLOB and its like: LIKE, which looks at case",
    r"\b(?:ifnull|iif|group_concat|printf|typeof|hex|randomblob|zeroblob|char|last_insert_rowid|changes|"
    r"quote|likely|unlikely)\s*\(": "a function of SQLite's",
    r"\bINSERT OR\b|\bUPDATE OR\b|\bREPLACE INTO\b": "OR REPLACE and its like: ON CONFLICT",
    r"\bINDEXED BY\b|\bNOT INDEXED\b": "INDEXED BY",
    r"\bIS (?:NOT )?(?:[:?@]|[a-z])": "IS of two values: IS NOT DISTINCT FROM",
    r"\bCROSS JOIN (?:(?!\b(?:JOIN|WHERE|ORDER|GROUP)\b).)*\bON\b": "ON of a CROSS JOIN: WHERE",
    r"[ (]\+[a-z_]+\.?[a-z_]*\b": "a column behind +",
    rf"\b(?:WHERE|AND|OR|NOT|WHEN|HAVING)\s+\(*(?:NOT\s+)?{VALUE}\s*(?=\)|\bAND\b|\bOR\b|\bTHEN\b|\bORDER\b|\bGROUP\b|\bLIMIT\b)":
        "a number as a truth: = 1",
    r"\bWHERE (?:0|1)(?! ?=)\b": "a number as a truth: 1 = 1",
    r"\bcoalesce\([^()]* (?:[=<>]|IN|LIKE) [^()]*, [01]\)": "a truth as a number: IS TRUE",
    r"LIMIT -1\b": "LIMIT -1",
    rf"\bFROM \({DEEP}\)(?= *(?:WHERE|ORDER|GROUP|LIMIT|$))":
        "a table without a name: AS name",
    r":(\w+) IS NULL OR (?![^()]*:\1 IS NULL)[^()]* = :\1\b": "a value whose type is not known yet: x = :x OR :x IS NULL",
    r"\bDO UPDATE SET .*?\b(?<![.])(\w+) = \1 (?:\+|\|\||-)": "a column of two rows: TABLE.column",
}
FOUND = ['"SELECT max(a.x, b.y) FROM t"', '"max(m.updated_ms, m.created_ms)"', '"PRAGMA page_size"', '"SELECT 1 FROM sqlite_" "master"',
         '"SELECT sum(state = \'x\') FROM jobs"', '"SELECT sum(a.x IN (1, 2)) FROM t"', '"SELECT total(x) FROM t"', '"DELETE FROM t WHERE rowid = 1"',
         '"SELECT x FROM t WHERE x GLOB :p"', '"SELECT json_extract(x, \'$.a\') FROM t"', '"INSERT OR REPLACE INTO t VALUES (1)"',
         '"SELECT 1 FROM t WHERE key IS :key"', '"SELECT 1 FROM t WHERE a IS NOT b"', '"FROM a CROSS JOIN b ON b.x = a.x WHERE 1 = 1"',
         '"SELECT 1 FROM t WHERE +t.project = :p"', '"SELECT 1 FROM t WHERE is_held AND x = 1"', '"SELECT 1 FROM t WHERE NOT is_held ORDER BY x"',
         '"SELECT CASE WHEN is_held THEN 1 ELSE 0 END FROM t"', '"SELECT x FROM t WHERE 1 AND x = 2"', '"SELECT x FROM t WHERE coalesce(a = ?, 0)"',
         '"SELECT count(*) FROM (SELECT 1 FROM t WHERE x IN (1, 2) LIMIT 1)"', '"SELECT 1 FROM t WHERE (:x IS NULL OR x = :x)"',
         '"INSERT INTO t VALUES (1) ON CONFLICT (a) DO UPDATE SET b = 1, n = n + 1"', '"strftime(\'%s\', \'now\')"', '"SELECT ifnull(x, 0) FROM t"', "sqlite3_step(x);", "#include <sqlite3.h>", "int x = SQLITE_OK;"]
HARMLESS = ['"SELECT max(x), min(y) FROM t"', '"SELECT max(coalesce(x, 0)) FROM t"', '"SELECT sum(CASE WHEN a = 1 THEN x ELSE 0 END) FROM t"',
            '"SELECT x FROM t WHERE x BETWEEN 1 AND :most AND y = 1"', '"SELECT x FROM t WHERE x IS NULL AND y IS NOT NULL"',
            '"SELECT 1 FROM t WHERE key IS NOT DISTINCT FROM :key"', '"FROM a CROSS JOIN b JOIN c ON c.x = b.x"', '"a max(1, 2) of words"',
            '"SELECT x FROM t WHERE a = 1 AND (b = 2 OR c IN (1, 2))"', '/* sqlite3_step */', '"sqlite3_step"', '"SELECT count(*) FROM t WHERE (a = ?) IS TRUE"',
            '"SELECT count(*) FROM (SELECT 1 FROM t LIMIT 1) AS some"', '"SELECT 1 FROM t WHERE (x = :x OR :x IS NULL)"',
            '"INSERT INTO t VALUES (1) ON CONFLICT (a) DO UPDATE SET n = t.n + 1"', '"SELECT 1 FROM t WHERE x BETWEEN a AND b ORDER BY x"', '"UPDATE t SET x = x + 1 WHERE y = 1"']


def is_plain_case(found):
    """sum(CASE … END) compares within its CASE alone."""
    return re.match(r"\w+\((?:coalesce\()?CASE\b.*\bEND\b", found, re.S) is not None


def is_between(sql, at):
    return re.search(r"\bBETWEEN\s+\S+\s*$", sql[:at]) is not None


def words_of_sql(sql):
    """(place, what to do) of what SQLite alone understands, in a string constant."""
    for pattern, instead in ANYWHERE.items():
        for hit in re.finditer(pattern, sql):
            yield hit.start(), instead
    if not SQL.search(sql):
        return
    for pattern, instead in IN_SQL.items():
        for hit in re.finditer(pattern, sql, re.S):
            if instead is None and is_plain_case(hit[0]) or is_between(sql, hit.start()):
                continue
            if re.match(r"IS (?:NOT )?(?:null|true|false|distinct)\b", hit.string[hit.start():], re.I):
                continue
            yield hit.start(), instead or "a truth as a number: sum(CASE WHEN … THEN 1 ELSE 0 END)"


def problems_of(text):
    """(place, what was found, what to do)"""
    bare = NOT_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    for hit in CODE.finditer(bare):
        yield hit.start(), hit[0], "an operation of the driver (src/store/db.h)"
    for at, constant in constants(text):
        sql = re.sub(r"/\*\+.*?\*/", "", constant).replace('\\"', '"').replace("\\n", "\n")
        for place, instead in words_of_sql(sql):
            yield at, sql[max(0, place - 20):place + 60], instead


def main():
    for planted in FOUND:
        if not list(problems_of(planted)):
            sys.exit(f"dialect.py does not find {planted}")
    for harmless in HARMLESS:
        if list(problems_of(harmless)):
            sys.exit(f"dialect.py takes {harmless} for SQLite's own: {list(problems_of(harmless))}")
    listed = subprocess.run(["git", "ls-files", "src"], cwd=ROOT, capture_output=True, text=True, check=False)
    files = listed.stdout.split() if listed.returncode == 0 else [str(p.relative_to(ROOT)) for p in ROOT.glob("src/**/*")]
    problems = []
    for name in files:
        if not name.endswith((".c", ".h", ".def")) or name.startswith(DRIVER) or TEST.search(name) or not (ROOT / name).exists():
            continue
        text = (ROOT / name).read_text(encoding="utf-8")
        problems += [f"{name}:{text.count(chr(10), 0, at) + 1}: SQLite's own: {found!r}: {instead}" for at, found, instead in problems_of(text)]
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""docs.py [--write]: do the documents say what the code does?

Reads the tables in the sources (routes, records, options, statuses, DEPENDS) and compares them with
the documents. Exits with 0, or with 1 after one line for each thing that is missing or wrong.
--write first brings the generated parts of docs/reference/ up to date: what stands between
"<!-- generated: NAME -->" and "<!-- end of generated part -->" (in a page of the manual: "; generated:
NAME" and "; end of generated part").
"""
import functools
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMON_OPTIONS = ["server", "context", "token", "ca-file", "state", "output", "help"]
WORKER_DOMAINS = ("framework", "train", "predict", "bench", "serve", "batch", "gang")
OWN_PAGE = {"server": "weir-server.8", "agent": "weir-agent.8"}
# Nouns of which there are kinds: where they are listed, and each one's file (src/base/kind.h).
KINDS = {
    "source": ("src/endpoint/sources.def", "src/endpoint/source/{}.c"),
    "sink": ("src/endpoint/sinks.def", "src/endpoint/sink/{}.c"),
    "door": ("src/endpoint/doors.def", "src/endpoint/door/{}.c"),
    "stage": ("src/endpoint/stages.def", "src/endpoint/stage/{}.c"),
    "policy": ("src/ion/policies.def", "src/ion/policy/{}.c"),
    "trigger": ("src/ion/triggers.def", "src/ion/trigger/{}.c"),
    "restart": ("src/ion/restarts.def", "src/ion/restart/{}.c"),
    "job": ("src/framework/job_kinds.def", "src/framework/{}.c"),
    "driver": ("src/cluster/drivers.def", "src/cluster/{}.c"),
    "receiver": ("src/notify/receivers.def", "src/notify/receiver/{}.c"),
    "alert-action": ("src/notify/actions.def", "src/notify/action/{}.c"),
    "sweep-method": ("src/sweep/methods.def", "src/sweep/method/{}.c"),
    "sweep-parameter": ("src/sweep/parameters.def", "src/sweep/parameter/{}.c"),
    "proof": ("src/identity/identities.def", "src/identity/kind/{}.c"),
    "detector": ("src/vision/detectors.def", "src/vision/detector/{}.c"),
}
# Options that several kinds or commands share, as a macro of this file.
OPTION_MACROS = {
    "CLI_CLUSTER_OPTIONS": "src/cli/cluster/cluster.c",
    "PROGRAM_OPTIONS": "src/framework/program.h",
    "JOB_ASK_OPTIONS": "src/cli/job/job_ask.h",
    "JOB_PROGRAM_OPTIONS": "src/cli/job/job_program.h",
    "JOB_CODE_OPTIONS": "src/cli/job/job_code.h",
    "SERVICE_OPTIONS": "src/cli/job/service.c",
    "DESCRIPTION_OPTION": "src/cli/track/label.c",
    "TAG_OPTIONS": "src/cli/track/label.c",
    "NAME_OPTION": "src/cli/track/label.c",
    "WEIR_SWEEP_RUNGS_OPTIONS": "src/sweep/rungs.h",
    "SWEEP_RANGE_MIN": "src/sweep/parameter/range.h",
    "SWEEP_RANGE_MAX": "src/sweep/parameter/range.h",
    "SWEEP_RANGE_POINTS": "src/sweep/parameter/range.h",
    "WEIR_SOURCE_VIDEO_OPTIONS": "src/endpoint/source/camera.h",
    "WEIR_SOURCE_VIDEO_PASSWORD": "src/endpoint/source/camera.h",
    "WEIR_CAMERA_OPTIONS": "src/endpoint/source/camera.h",
    "WEIR_CAMERA_PASSWORD": "src/endpoint/source/camera.h",
}
ION_KINDS = ("source", "sink", "stage", "policy")
END = "<!-- end of generated part -->"
problems = []


def complain(where, what):
    problems.append(f"{where}: {what}")


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


# ---- a little C: the arguments of a macro or the members of an initialiser ----------------------

def without_comments(text):
    pattern = r'"(?:\\.|[^"\\])*"|/\*.*?\*/|//[^\n]*'
    keep = lambda match: match[0] if match[0].startswith('"') else " "
    return re.sub(pattern, keep, text, flags=re.S)


def closing(text, start):
    """Index behind the bracket that closes the one at `start`."""
    depth = 0
    for token in re.finditer(r"""["](?:\\.|[^"\\])*["]|'(?:\\.|[^'\\])*'|[(){}\[\]]""", text[start:]):
        if token[0] in "({[":
            depth += 1
        elif token[0] in ")}]":
            depth -= 1
        if depth == 0:
            return start + token.end()
    raise ValueError("unbalanced brackets: " + text[start:start + 60])


def parts(text):
    """Split at the commas that are in no string and no bracket."""
    found, depth, last = [], 0, 0
    for token in re.finditer(r"""["](?:\\.|[^"\\])*["]|'(?:\\.|[^'\\])*'|[(){}\[\],]""", text):
        if token[0] in "({[":
            depth += 1
        elif token[0] in ")}]":
            depth -= 1
        elif token[0] == "," and depth == 0:
            found.append(text[last:token.start()].strip())
            last = token.end()
    found.append(text[last:].strip())
    return [part for part in found if part]


def string(text):
    """A C string, its literals joined; None for NULL."""
    literals = re.findall(r'"((?:\\.|[^"\\])*)"', text)
    return "".join(literals).replace('\\"', '"').replace("\\n", "\n") if literals else None


def braces_after(text, position):
    start = text.index("{", position)
    return text[start + 1:closing(text, start) - 1]


def sources(folder, pattern="**/*.c"):
    for path in sorted((ROOT / folder).glob(pattern)):
        if not path.name.endswith(("_test.c", "_fuzz.c")):
            yield path, without_comments(path.read_text(encoding="utf-8"))


# ---- the tables --------------------------------------------------------------------------------

def load_statuses():
    rows = re.findall(r'^X\((\w+),\s*"([^"]+)",\s*(\d+),\s*(\d+),\s*(\w+)\)', read("src/base/status.def"), re.M)
    return [(name, text, int(http), int(code), retry == "true") for name, text, http, code, retry in rows]


def load_rights():
    rows = re.findall(r'^X\((\w+), "([^"]+)", "([^"]+)", (\w+), "(\w*)"\)', read("src/store/rights.def"), re.M)
    return {right: (noun, verb, scope.lower(), who) for right, noun, verb, scope, who in rows}


def load_query(text):
    """The names of the parameters of "QUERY(Q_LIMIT, Q_INT("skip", …))"."""
    shared = {name: named or other for name, other, named in re.findall(
        r'^#define (Q_\w+)(?:\([^)]*\))? +(Q_\w+)\((?:"(\w+)")?', read("src/api/core/rows.h"), re.M)}
    names = []
    for item in parts(text[text.index("(") + 1:text.rindex(")")]):
        name = re.match(r"\w+", item).group()
        while name in shared:
            name = shared[name]
        name = string(item.split(",")[0]) if name.startswith("Q_") else name
        names.append(name)
    return " ".join(names)


def load_routes():
    rights = {right: f"{verb} {noun}" for right, (noun, verb, *_) in load_rights().items()}
    routes = []
    for family in re.findall(r'"(api/\w+/routes_\w+\.def)"', read("src/api/core/routes.def")):
        text = re.sub(r'\bAPI "', '"/api/v1', without_comments(read(f"src/{family}")))
        for match in re.finditer(r"^ROUTE\(", text, re.M):
            row = parts(text[match.end():closing(text, match.end() - 1) - 1])
            _, method, path, summary, right, _, *rest = row
            column = dict(re.match(r"\.(\w+) = (.*)", item, re.S).groups() for item in rest)
            flags = column.get("flags", "0").replace("ROUTE_RECORDS", "ROUTE_LIST")
            routes.append({
                "method": method, "path": string(path), "summary": string(summary),
                "right": "" if "ROUTE_OPEN" in flags else rights[right], "flags": flags,
                "in": column.get("in", "NULL"), "out": column.get("out", "NULL"),
                "query": load_query(column["query"]) if "query" in column else ""})
    return routes


def bytes_text(limit):
    """A maximum of a field, "256" or "64 << 10" in C, in words; a named one as its name."""
    number, _, shift = limit.partition(" << ")
    return f"{number} {({'': 'bytes', '10': 'KiB', '20': 'MiB'})[shift]}" if number.isdigit() else limit


def load_fields(text, table):
    fields = []
    for row in parts(braces_after(text, text.index(f"{table}[]"))):
        macro, _, rest = row.partition("(")
        if macro in ("WEIR_FIELD", "WEIR_FIELD_SIZED"):
            _, name, kind, flags, *limit, unit, doc = parts(rest[:-1])
            note = f" (at most {bytes_text(limit[0])})" if limit else ""
            fields.append((name, kind, flags, string(unit) or "", (string(doc) or "") + note))
        elif macro == "WEIR_FIELD_AT":
            _, name, _, kind, flags, unit, doc = parts(rest[:-1])
            fields.append((name, kind, flags, string(unit) or "", string(doc) or ""))
        elif macro in ("WEIR_FIELD_RECORD", "WEIR_FIELD_RECORDS"):
            _, name, _, flags, doc = parts(rest[:-1])
            fields.append((name, "JSON", flags, "", string(doc) or ""))
    return fields


def load_records():
    """C name of each resource → (its name, its fields)."""
    records = {}
    for _, text in sources("src"):
        for match in re.finditer(r'weir_resource (\w+)\s*=\s*WEIR_RESOURCE\(', text):
            name, _, _, table, *_ = parts(text[match.end():closing(text, match.end() - 1) - 1])
            records[match[1]] = (string(name), load_fields(text, table))
    return records


def option_rows(body):
    """(name, default, argument, explanation) of each row of an option table."""
    rows = []
    for row in (row for one in parts(body) for row in shared_options(one)):
        member = lambda name: re.search(rf'\.{name} = ((?:"(?:\\.|[^"\\])*"\s*)+)', row)
        value = lambda name: string(member(name)[1]) if member(name) else None
        if row.startswith("CLI_COMMON_OPTIONS"):
            rows += [(name, None, None, "") for name in COMMON_OPTIONS]
        elif row.startswith("CLI_OUTPUT_OPTIONS"):
            rows += [(name, None, None, "") for name in ("output", "help")]
        elif row.startswith("CLI_HELP_OPTION"):
            rows.append(("help", None, None, ""))
        elif row.startswith("{") and ".words" in row and ".arg" not in row:
            continue  # its value has no name: it stands in JSON alone
        elif row.startswith("{"):
            rows.append((value("name"), value("fallback"), value("arg"), value("doc")))
        elif re.match(r"CLI_(TEXT|LIST|FLAG)\(", row):
            cells = parts(row[row.index("(") + 1:-1])
            rows.append((string(cells[2]), None, string(cells[4]) if len(cells) == 6 else None, string(cells[-1])))
        elif row.startswith("WEIR_OPT("):
            cells = parts(row[len("WEIR_OPT("):-1])
            rows.append((string(cells[2]), string(cells[5]), string(cells[8]), string(cells[9])))
        elif re.match(r"OPT_(FLAGS|WORDS)\(", row):
            cells = parts(row[row.index("(") + 1:-1])
            rows.append((string(cells[-7]), string(cells[-5]), string(cells[-2]), string(cells[-1])))
        elif row.startswith("OPT("):
            cells = parts(row[len("OPT("):-1])
            # with or without a letter behind the name: the others are counted from the end
            rows.append((string(cells[1]), string(cells[-5]), string(cells[-2]), string(cells[-1])))
    return rows


def option_tables(text):
    for match in re.finditer(r"struct weir_option (\w+)\[\]\s*=\s*\{", text):
        yield match[1], option_rows(braces_after(text, match.start()))


def shared_options(row):
    """The rows that a macro of OPTION_MACROS puts into a table; any other row is itself."""
    name = row.split("(")[0]
    if name not in OPTION_MACROS:
        return [row]
    text = without_comments(read(OPTION_MACROS[name])).replace("\\\n", " ")
    rows = parts(re.search(rf"#define {name}(?:\([^)]*\))?(.*)", text)[1])
    return [inner for one in rows for inner in shared_options(one)]


def with_constants(text):
    """The text with constants of texts written out: "in " WEIR_DOOR_PROGRAMS "…"."""
    return re.sub(r"\bWEIR_[A-Z_]+\b", lambda match: text_constants().get(match[0], match[0]), text)


@functools.cache
def text_constants():
    return {name: value for _, source in sources("src", "**/*.h")
            for name, value in re.findall(r'^#define (WEIR_[A-Z_]+)\s+("(?:\\.|[^"\\])*")$', source, re.M)}


def load_kinds():
    """Noun → (name, explanation, rows of its options, and of what its items are if it has any) of each kind, in the registry's order."""
    kinds = {}
    for noun, (registry, pattern) in KINDS.items():
        for kind in re.findall(r"^WEIR_KIND(?:_WITH)?\((?:\w+, )?(\w+)\)$", read(registry), re.M):
            text = with_constants(without_comments(read(pattern.format(kind))))
            body = braces_after(text, re.search(r"struct weir_kind (?!item\b)\w+\s*=", text).start())
            item = re.search(r"struct weir_kind item\s*=", text)
            item_table = item and re.search(r"WEIR_KIND_OPTIONS\(\w+, (\w+)\)", braces_after(text, item.start()))[1]
            member = lambda name: string(re.search(rf'\.{name} =\s*((?:"(?:\\.|[^"\\])*"\s*)+)', body)[1])
            rows, item_rows = [], []
            for match in re.finditer(r"struct weir_option (\w+)\[\]\s*=\s*\{", text):
                given = [row for one in parts(braces_after(text, match.start())) for row in shared_options(one)]
                (item_rows if match[1] == item_table else rows).extend(
                    kind_option(row) for row in given if row.startswith(("WEIR_OPT_JSON(", "{")))
            kinds.setdefault(noun, []).append((member("name"), member("doc"), rows, item_rows))
    return kinds


def request_parts():
    """What a job of any kind asks for, and the resources of its tasks: the two tables of src/framework/request.c."""
    text = without_comments(read("src/framework/request.c"))
    tables = [[kind_option(row) for row in parts(braces_after(text, match.start())) if row.startswith("WEIR_OPT_JSON(")]
              for match in re.finditer(r"struct weir_option \w+\[\]\s*=\s*\{", text)]
    return {"any job": options_table(tables[0]), "resources": options_table(tables[1])}


def detector_parts():
    """What each kind of detector takes beside its own options."""
    text = without_comments(read("src/vision/detectors.c"))
    match = re.search(r"struct weir_option \w+\[\]\s*=\s*\{", text)
    rows = [row for row in parts(braces_after(text, match.start())) if row.startswith(("WEIR_OPT_JSON(", "{"))]
    return {"any detector": options_table([kind_option(row) for row in rows])}


def number(text):
    """A number in a table of options; a constant's value in place of its name."""
    for _, source in [*sources("src"), *sources("src", "**/*.h")] if re.match(r"[A-Z]", text) else []:
        if match := re.search(rf"#define {text}\s+(\d+)\s*$", source, re.M):
            return match[1]
    return text


def kind_option(row):
    """(key, type, flags, default, range, explanation) of one WEIR_OPT_JSON, or of one that is written out, which may be one of some words."""
    if row.startswith("{"):
        member = lambda name: match[1] if (match := re.search(rf'\.{name} =\s+((?:"(?:\\.|[^"\\])*"\s*)+|[A-Z_| ]+(?:\([^)]*\))?)', row)) else ""
        words = " or ".join(re.findall(r'"(\w+)"', member("words")))
        return string(member("name")).replace("-", "_"), member("type").removeprefix("WEIR_OPTION_TYPE_").removeprefix("WEIR_OPTION_"), member("flags"), string(member("fallback")), words, string(member("doc"))
    _, _, name, kind, flags, fallback, low, high, doc = parts(row[len("WEIR_OPT_JSON("):-1])
    low, high = number(low), number(high)
    bounds = f"{low} to {high}" if kind in ("INT", "F64", "CPUS") and low != high else ""
    return string(name).replace("-", "_"), kind, flags, string(fallback), bounds, string(doc)


def load_commands():
    """Command → names of its long options, from the tables of src/cli; of `demo`, which starts a program, from its."""
    commands = {}
    for _, text in [*sources("src/cli"), *sources("src/demo")]:
        tables = dict(option_tables(text))
        for match in re.finditer(r"struct cli_command (?:cli|weir)_\w+\s*=\s*\{", text):
            body = braces_after(text, match.start())
            table = re.search(r"CLI_OPTIONS\(\w+, (\w+)\)", body)
            name = string(re.search(r'\.name = ("[^"]+")', body)[1])
            plain = COMMON_OPTIONS if "CLI_PLAIN" in body else []
            commands[name] = [row[0] for row in tables[table[1]]] if table else plain
    return commands


def load_worker_options():
    """Source file → rows of its option tables, for what weir-worker parses."""
    rows = {}
    for domain in WORKER_DOMAINS:
        for path, text in sources(f"src/{domain}"):
            for _, table in option_tables(text):
                rows.setdefault(str(path.relative_to(ROOT)), []).extend(table)
    return rows


def load_depends():
    depends = {}
    for path in sorted((ROOT / "src").glob("*/CMakeLists.txt")):
        call = re.search(r"weir_library\((\w+)(.*?)\)", path.read_text(encoding="utf-8"), re.S)
        words = re.search(r"\bDEPENDS\b([^A-Z]*)", call[2])
        depends[call[1]] = set(words[1].split()) if words else set()
    return depends


# ---- generated parts ---------------------------------------------------------------------------

def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    cell = lambda text: str(text).replace("|", "\\|").replace("\n", " ")
    return "\n".join(lines + ["| " + " | ".join(map(cell, row)) + " |" for row in rows])


def slug(title):
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def answer_text(route, records):
    if "ROUTE_EVENTS" in route["flags"]:
        return "event stream"
    if "ROUTE_BYTES_OUT" in route["flags"]:
        return "bytes"
    if route["out"] == "NULL":
        return ""
    name = records[route["out"].lstrip("&")][0]
    return f"{'list of ' if 'ROUTE_LIST' in route['flags'] else ''}[{name}](#{slug(name)})"


def body_text(route, records):
    if route["flags"] != "0" and re.search("ROUTE_BYTES_IN|ROUTE_UPLOAD", route["flags"]):
        return "bytes"
    if route["in"] == "NULL" or route["method"] == "DELETE":
        return ""
    name = records[route["in"].lstrip("&")][0]
    return f"[{name}](#{slug(name)})"


def rights_part():
    """The matrix of roles and rights."""
    roles = [("v", "viewer"), ("a", "approver"), ("o", "operator"), ("d", "data-scientist"), ("m", "ml-engineer")]
    rows = [(f"{verb} {noun}", scope, *("×" if letter in who else "" for letter, _ in roles), "×")
            for noun, verb, scope, who in load_rights().values()]
    return table(("right", "with what is of", *(role for _, role in roles), "admin"), rows)


def routes_part(routes, records):
    rows = []
    for route in routes:
        who = route["right"] or "anybody"
        query = ", ".join(f"`{name}`" for name in route["query"].split())
        rows.append((f"`{route['method']} {route['path']}`", route["summary"], who, query,
                     body_text(route, records), answer_text(route, records)))
    return table(("route", "what it does", "right", "query", "body", "answer"), rows)


def records_part(routes, records):
    used = {route[key].lstrip("&") for route in routes for key in ("in", "out")} - {"NULL"}
    text = []
    for name, fields in sorted(records[c_name] for c_name in used):
        rows = []
        for field, kind, flags, unit, doc in fields:
            if "SECRET" in flags:
                continue
            notes = [note for flag, note in (("KEY", "key"), ("REQUIRED", "required"),
                     ("READ_ONLY", "made by the server"), ("FIELD_NAME", "a name")) if flag in flags]
            kind = {"TIME": "time", "F64": "number", "INT": "integer", "TEXT": "text",
                    "BOOL": "true or false", "JSON": "any JSON"}[kind]
            unit = f" ({unit})" if unit and kind != "time" else ""
            rows.append((f"`{field}`", kind, ", ".join(notes), doc + unit))
        text.append(f"### {name}\n\n" + table(("field", "type", "", "meaning"), rows))
    return "\n\n".join(text)


def options_part(rows, has_keys):
    cells = []
    for name, default, arg, doc in rows:
        if name not in ("help", "spec"):
            shown = f"`{default}`" if default is not None else ""
            key = [f"`{name.replace('-', '_')}`"] if has_keys else []
            cells.append((f"`--{name}`", *key, arg or "", shown, doc))
    return table(("flag", *(["key of spec.json"] if has_keys else []), "value", "default", "meaning"), cells)


def options_table(rows):
    names = {"TEXT": "text", "INT": "integer", "F64": "number", "BOOL": "true or false", "TEXTS": "list of texts",
             "MAP": "texts by name", "JSON": "any JSON", "CPUS": "number or text"}
    cells = []
    for key, kind, flags, fallback, bounds, meaning in rows:
        if "INTERNAL" in flags:
            continue
        default = "required" if "REQUIRED" in flags else f"`{fallback}`" if fallback is not None else ""
        notes = [note for flag, note in (("WEIR_OPTION_PATH", "an absolute path"), ("SECRET", "secret")) if flag in flags]
        cells.append((f"`{key}`", ", ".join([names[kind], *notes]), default, bounds, meaning))
    return table(("option", "type", "default", "range", "meaning"), cells) if cells else ""


def kinds_part(kinds):
    text = []
    for name, doc, rows, item_rows in kinds:
        options, items = options_table(rows), options_table(item_rows)
        text.append(f"### {name}\n\n{doc}" + (f"\n\n{options}" if options else "") + (f"\n\nEach of its cameras:\n\n{items}" if items else ""))
    return "\n\n".join(text)


def kinds_man_part(kinds):
    """The same for a page of the manual: scdoc, a paragraph per kind and one per option."""
    plain = lambda text: text.replace("_", "\\_").replace("`", "")
    text = []
    for name, doc, rows, item_rows in kinds:
        text.append(f"*{name}*\n\t{plain(doc)}")
        of_items = [(f"cameras: {key}", *rest) for key, *rest in item_rows]
        for key, _, flags, fallback, bounds, meaning in rows + of_items:
            if "INTERNAL" not in flags:
                notes = ["required"] if "REQUIRED" in flags else [f"default {fallback}"] if fallback is not None else []
                notes += [bounds] if bounds else []
                note = f" ({', '.join(notes)})" if notes else ""
                text.append(f"\t*{plain(key)}*{plain(note)}: {plain(meaning)}.")
    return "\n" + "\n\n".join(text) + "\n"


def alerts_part():
    text = without_comments(read("src/store/alert_kind.c"))
    rows = [parts(row[1:-1]) for row in parts(braces_after(text, text.index("kinds[]")))]
    effects = {"NONE": "", "DEGRADES": "degraded", "BREAKS": "down if critical, else degraded"}
    return table(("kind", "about", "severity", "health", "raised", "resolved"),
                 [(f"`{string(kind)}`", string(noun), string(severity) or "by case", effects[effect],
                   string(raised), string(resolved))
                  for kind, severity, effect, noun, _, raised, resolved in rows])


def models_part():
    rows = []
    for row in parts(braces_after(text := without_comments(read("src/nn/zoo/zoo.c")),
                                  text.index("struct weir_zoo_model models[]"))):
        name, doc, shape, *_ = parts(row[1:-1])
        rows.append((f"`{string(name)}`", "×".join(re.findall(r"\d+", shape)), string(doc)))
    return table(("name", "input", "what"), rows)


def security_parts():
    """What the tests of hostile jobs and stolen tokens try."""
    folder = str(ROOT / "tests/system")
    listed = subprocess.run([sys.executable, f"{folder}/hostile_task.py", "--list"], capture_output=True, text=True, check=True)
    attempts = json.loads(listed.stdout)
    sys.path.insert(0, folder)
    import stolen_test
    rows = [("dead", "; ".join(stolen_test.DEAD)), ("alive", "; ".join(stolen_test.LIVING))]
    asked = {}
    for least, method, route, _ in stolen_test.REQUESTS:
        asked.setdefault(least, {})[f"`{method} {route}`"] = None
    return {"attempts": table(("subject", "attempts", ""), [
                (about, len(names), "; ".join(names)) for about, names in attempts.items()]),
            "thefts": table(("token", "which"), rows),
            "requests": table(("who may", "requests"), [(least, ", ".join(which)) for least, which in asked.items()])}


def generated(statuses, routes, records, worker, kinds):
    return {
        "docs/reference/errors.md": {"statuses": table(
            ("status", "meaning", "HTTP", "exit", "tried again"),
            [(f"`{name}`", text, http, code, "yes" if retry else "") for name, text, http, code, retry in statuses])},
        "docs/reference/rest.md": {"rights": rights_part(), "routes": routes_part(routes, records),
                                   "records": records_part(routes, records)},
        "docs/reference/health.md": {"alerts": alerts_part()},
        "docs/security.md": security_parts(),
        "docs/reference/metrics.md": {"metrics": metrics_part()},
        "docs/reference/kinds.md": {**{noun: kinds_part(kinds[noun]) for noun in kinds}, **request_parts(), **detector_parts()},
        "man/weir-ion.5.scd": {noun: kinds_man_part(kinds[noun]) for noun in ION_KINDS},
        "docs/reference/training.md": {
            "options": options_part(worker["src/framework/training.c"], True),
            "evaluate options": options_part(worker["src/train/evaluate_main.c"], False),
            "models": models_part()},
        "docs/reference/bench-train.md": {
            "options": options_part(worker["src/bench/training_options.c"], False)},
    }


def load_metrics():
    """(name, type, labels, explanation) of each row of the table of `GET /metrics`."""
    text = without_comments(read("src/api/core/metrics.c"))
    body = braces_after(text, re.search(r"struct api_metric api_metrics\[\]\s*=", text).start())
    for row in parts(body):
        name, kind, doc, labels = (string(cell) for cell in parts(row.strip()[1:-1])[:4])
        yield name, kind, labels, doc


def metrics_part():
    return table(("metric", "type", "labels", "what"),
                 [(f"`{name}`", kind, " ".join(f"`{label}`" for label in labels.split()), doc)
                  for name, kind, labels, doc in load_metrics()])


def check_dashboard():
    """The dashboard for Grafana asks for metrics that there are."""
    path = "packaging/grafana/weir.json"
    known = {name for name, *_ in load_metrics()}
    for name in set(re.findall(r"\bweir_[a-z_]+", read(path))) - known:
        complain(path, f"there is no metric {name}")


def check_generated(wanted, is_writing):
    for path, regions in wanted.items():
        old = text = read(path)
        for name, body in regions.items():
            start, stop = f"<!-- generated: {name} -->", END
            if path.endswith(".scd"):
                start, stop = f"; generated: {name}", "; end of generated part"
            if start not in text:
                complain(path, f"has no part \"{start}\"")
                continue
            head, tail = text.split(start, 1)
            text = head + start + "\n" + body + "\n" + stop + tail.split(stop, 1)[1]
        if text != old and is_writing:
            (ROOT / path).write_text(text, encoding="utf-8")
        elif text != old:
            complain(path, "is not what the sources say; run tests/lint/docs.py --write")


# ---- checks ------------------------------------------------------------------------------------

def man_section(page, title):
    """The part of an scdoc page below the heading `title`, down to the next of the same rank."""
    match = re.search(rf"^(#+) {re.escape(title)}$", page, re.M)
    if not match:
        return None
    rest = page[match.end():]
    end = re.search(rf"^#{{1,{len(match[1])}}} ", rest, re.M)
    return rest[:end.start()] if end else rest


def has_option(text, name):
    """--name, in bold, with scdoc's backslash before what it would take for markup."""
    return f"*--{name}*" in text.replace("\\", "")


def check_commands(commands, worker):
    pages = {path.name[:-4]: path.read_text(encoding="utf-8") for path in (ROOT / "man").glob("*.scd")}
    common = man_section(pages["weir.1"], "COMMON OPTIONS") or ""
    for name, options in commands.items():
        section = man_section(pages["weir.1"], f"weir {name}")
        if section is None:
            complain("man/weir.1.scd", f"has no section \"weir {name}\"")
            continue
        text = pages[OWN_PAGE[name]] if name in OWN_PAGE else section + common
        where = OWN_PAGE.get(name, "weir.1")
        for option in options:
            if not has_option(text, option):
                complain(f"man/{where}.scd", f"does not explain --{option} of weir {name}")
    for path, rows in worker.items():
        for option in {row[0] for row in rows}:
            if not has_option(pages["weir-worker.1"], option):
                complain("man/weir-worker.1.scd", f"does not explain --{option} ({path})")
    check_built_commands(commands)


def check_built_commands(commands):
    """A built program that is newer than its sources must list the same commands and options."""
    program = ROOT / "build/dev/programs/weir"
    newest = max(path.stat().st_mtime for path, _ in [*sources("src/cli"), *sources("src/demo")])
    if not program.exists() or program.stat().st_mtime < newest:
        return
    ask = lambda *words: subprocess.run([program, *words], capture_output=True, text=True).stdout
    listed = re.findall(r"^  (\S+(?: \S+)?)  ", ask("help", "all"), re.M)
    for name in set(listed) ^ (set(commands) - {"complete"}):
        complain("tests/lint/docs.py", f"reads the table of commands wrongly: {name}")
    for name, options in commands.items():
        shown = re.findall(r"--(?!no-)([a-z][a-z-]+)", ask(*name.split(), "--help").partition("Options:")[2])
        for option in set(options) - set(shown):
            complain("tests/lint/docs.py", f"reads the options of {name} wrongly: {option}")


def load_bounds():
    """Command → fewest and most words that it takes, and whether they go on to another program."""
    bounds = {}
    for _, text in [*sources("src/cli"), *sources("src/demo")]:
        for match in re.finditer(r"struct cli_command (?:cli|weir)_\w+\s*=\s*\{", text):
            body = braces_after(text, match.start())
            most = re.search(r"CLI_WORDS\(\d+, (\d+)\)", body)
            name = string(re.search(r'\.name = ("[^"]+")', body)[1])
            is_open = not most and "CLI_WORDS" in body  # a number with a name
            bounds[name] = (1000 if is_open else int(most[1]) if most else 0, "CLI_RAW" in body)
    return bounds


def load_nouns():
    text = without_comments(read("src/cli/core/noun.c"))
    rows = parts(braces_after(text, text.index("cli_nouns[]")))
    return {string(cell) for row in rows for cell in parts(row[1:-1])[:2]}


def check_hint(where, said, commands, bounds, nouns):
    """One command that a sentence names: it is there, has the options, takes so many words, and knows the noun."""
    words = said.split()
    size = 2 if " ".join(words[:2]) in commands else 1
    name, rest = " ".join(words[:size]), words[size:]
    if words[0] == "X" or name == "help":
        return
    if name not in commands:
        if not any(command.startswith(name + " ") for command in commands) or rest:
            complain(where, f"`weir {said}`: there is no such command")
        return
    most, is_raw = bounds[name]
    given = rest[:rest.index("--")] if "--" in rest else rest
    plain = [word for word in given if not word.startswith("-") and word not in ("…", "[…]")]
    for i, word in enumerate(given):
        option = re.match(r"--(?:no-)?([a-z-]+)", word)
        if option and not is_raw and option[1] not in commands[name]:
            complain(where, f"`weir {said}`: {name} has no option {word}")
        if word.startswith("-") and len(plain) > most and i + 1 < len(given) and given[i + 1] in plain:
            plain.remove(given[i + 1])
    if len(plain) > most and not is_raw and "--" not in rest:
        complain(where, f"`weir {said}`: {name} takes {most} words at most")
    noun = plain[0] if name in ("get", "describe", "delete", "wait") and plain else None
    if noun and re.fullmatch(r"[a-z,-]+", noun) and not set(noun.split(",")) <= nouns:
        complain(where, f"`weir {said}`: there is no noun {noun}")


def check_hints(commands):
    """Whatever an error, a hint or a help names as a command can be typed so: none leads in a circle."""
    bounds, nouns = load_bounds(), load_nouns()
    for path, text in sources("src"):
        for match in re.finditer(r'"(?:\\.|[^"\\])*"(?:\s*"(?:\\.|[^"\\])*")*', text):
            for said in re.findall(r"`weir ([^`]+)`", string(match[0])):
                said = re.sub(r"%[-.*\d]*l*[a-zA-Z]|\{[^}]*\}", "X", said.replace("\n", " "))
                check_hint(path.relative_to(ROOT), said, commands, bounds, nouns)


def check_kinds_are_used():
    """Each option of a source, sink or stage is used by the code of that kind."""
    for noun in ("source", "sink", "stage"):
        code = f"src/predict/{noun}/{{}}.c"
        registry, pattern = KINDS[noun]
        for kind in re.findall(r"^WEIR_KIND(?:_WITH)?\((?:\w+, )?(\w+)\)$", read(registry), re.M):
            text = without_comments(read(code.format(kind)))
            for shared in re.findall(r'#include "(find/\w+)\.h"', text):  # what a training does by the same code
                text += without_comments(read(f"src/{shared}.c"))
            if "predict/camera_source.h" in text:  # what the kinds of video share, and weir-camera
                for path in [*(ROOT / "src/camera").glob("*.c"), ROOT / f"src/camera/input/{kind}.c", ROOT / "src/endpoint/camera.c"]:
                    text += without_comments(path.read_text())
            for member in re.findall(r"WEIR_OPT_JSON\(\w+, (\w+),", read(pattern.format(kind))):
                if not re.search(rf"->{member}\b", text):
                    complain(code.format(kind), f"does not use the option {member}")


def check_words(path, words, kind, form="`{}`"):
    text = read(path).replace("\\", "")
    for word in sorted(set(words)):
        if form.format(word) not in text:
            complain(path, f"does not explain the {kind} {word}")


def check_ion_keys(records):
    tables = ("document", "training", "triggers", "prediction", "gallery", "link")
    keys = [field[0] for name in tables for field in records[f"{name}_resource"][1]]
    text = without_comments(read("src/ion/doc/ion_doc.c"))
    keys += re.findall(r'\{ *\.name = "(\w+)"', text)
    check_words("docs/reference/ion-file.md", keys, "key")
    check_words("man/weir-ion.5.scd", keys, "key", "*{}*")


def check_names():
    """Layers, metrics and events that the sources name."""
    found = lambda folder, pattern: [name for _, text in sources(folder) for name in re.findall(pattern, text)]
    layers = found("src/nn", r'\{"(\w+)",\s+(?:true|false),')
    check_words("docs/reference/model-file.md", layers, "layer")
    check_words("docs/reference/health.md", found("src/train", r'train_tick_add\(&\w+, "(\w+)"'), "metric")
    events = found("src", r'\b(?:engine_tell\(engine|tell\(step), "(\w+)"')
    events += found("src/api", r'control_log\((?:&?\w+), txn, "\w+", "(\w+)"')
    events += found("src/job", r'append_event\((?:[^;"]*), "(\w+)"')
    check_words("docs/reference/health.md", events, "event")


def check_domains(depends):
    text = read("docs/architecture.md")
    rows = dict(re.findall(r"^\| `(\w+)` \| ([a-z ]*)\|", text, re.M))
    known = re.search(r"set\(WEIR_ALL_DOMAINS ([^)]*)\)", read("CMakeLists.txt"))[1].split()
    for domain in known:
        if domain not in rows:
            complain("docs/architecture.md", f"the table \"Who may use whom\" has no row for {domain}")
        elif domain in depends and set(rows[domain].split()) != depends[domain]:
            complain("docs/architecture.md",
                     f"{domain} may use {' '.join(sorted(rows[domain].split()))}, but its CMakeLists.txt "
                     f"has DEPENDS {' '.join(sorted(depends[domain]))}")
    for domain in set(rows) - set(known):
        complain("docs/architecture.md", f"there is no domain {domain}")


def documents():
    skipped = {"build", "node_modules", ".git"}
    for path in sorted(ROOT.rglob("*.md")):
        if not skipped & set(path.relative_to(ROOT).parts):
            yield path, path.read_text(encoding="utf-8")


def anchors(text):
    prose = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    return {slug(title) for title in re.findall(r"^#+ (.+?)\s*$", prose, re.M)}


def check_links(path, text):
    where = path.relative_to(ROOT)
    prose = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    for target in re.findall(r"\]\(([^)\s]+)\)|src=\"([^\"]+)\"", prose):
        target = target[0] or target[1]
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        other = path.parent / name if name else path
        if not other.exists():
            complain(where, f"the link {target} leads nowhere")
        elif anchor and other.suffix == ".md" and anchor not in anchors(other.read_text(encoding="utf-8")):
            complain(where, f"the link {target}: there is no such heading")
    for name in re.findall(r"`((?:src|cmake|docs|examples|packaging|tests|man|web|programs)/[\w./-]+)`", prose):
        if not (ROOT / name).exists() and not (path.parent / name).exists():
            complain(where, f"{name} does not exist")


# Words of the product that who comes new does not know, or knows as something else.
EVERYDAY_USES = r"\b(?:in|into|out of|puts?) service\b|\bsystem services?\b|\b[Ss]ymbolic links?\b|\bfreeze windows?\b|\ba link that\b"
PRODUCT_WORDS = ("ION", "link", "policy", "candidate", "gallery", "impostor", "freeze", "service", "snapshot", "queue", "guarantee")


def check_first_use(path, text):
    """The first use of such a word explains it: it stands in *italics* there, beside what it means, or leads to the glossary."""
    prose = re.sub(rf"^```.*?^```|^#.*?$|<!--.*?-->|`[^`\n]*`|{EVERYDAY_USES}", lambda match: " " * len(match[0]), text, flags=re.S | re.M)
    explained = [match.span() for match in re.finditer(r"\[[^][]*\]\([^)\s]*glossary\.md[^)\s]*\)|(?<![*\w])\*[^*\n]+\*(?!\*)", prose)]
    prose = re.sub(r"\]\([^)\s]*\)", lambda match: " " * len(match[0]), prose)
    for word in PRODUCT_WORDS:
        form = rf"{word[:-1]}(?:y|ies)" if word.endswith("y") else rf"(?:{word}|{word[0].upper()}{word[1:]})(?:s|\b)"
        first = re.search(rf"\b{form}\b", prose)
        if first and not any(begin <= first.start() < end for begin, end in explained):
            complain(f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, first.start()) + 1}",
                     f"\"{first[0]}\" is used before it is explained: say what it is, the word in *italics*, or lead to glossary.md")


def check_shell(path, text, commands, worker):
    """Commands in shell blocks, and those that the text of a page names, exist and have the options they are given."""
    where = path.relative_to(ROOT)
    prose = re.sub(r"^ *```.*?^ *```", "", text, flags=re.S | re.M)
    named = [] if path.name == "CHANGELOG.md" else [" ".join(span.split()) for span in re.findall(r"`(weir [^`]+)`", prose)]
    for block in re.findall(r"^ *```(?:sh|console)\n(.*?)^ *```", text, re.S | re.M) + named:
        block = block.replace("\\\n", " ")
        for line in re.findall(r"(?:^|[|;&(] *)(?:\$ )?(?:build/)?weir ([a-z][^\n|;&)]*)", block, re.M):
            line = re.sub(r"\"[^\"]*\"|'[^']*'", "", line.split(" #")[0])
            name, *words = line.split()
            if words and f"{name} {words[0]}" in commands:
                name, *words = f"{name} {words[0]}", *words[1:]
            known = commands.get(name)
            if known is None and name != "help":
                complain(where, f"there is no command weir {name}")
                continue
            if name in ("train", "evaluate"):
                known = [row[0] for rows in worker.values() for row in rows]
            given = words[:words.index("--")] if "--" in words else words
            for word in given:
                option = re.match(r"--(?:no-)?([a-z-]+)", word)
                if option and known and option[1] not in known:
                    complain(where, f"weir {name} has no option {word}")


def main():
    statuses, routes, records = load_statuses(), load_routes(), load_records()
    commands, worker, kinds = load_commands(), load_worker_options(), load_kinds()
    check_generated(generated(statuses, routes, records, worker, kinds), "--write" in sys.argv[1:])
    check_commands(commands, worker)
    check_hints(commands)
    check_ion_keys(records)
    check_kinds_are_used()
    check_dashboard()
    check_names()
    check_domains(load_depends())
    for path, text in documents():
        check_links(path, text)
        if path.parent.name == "howto" or path == ROOT / "README.md":
            check_first_use(path, text)
        check_shell(path, text, commands, worker)
    for problem in problems:
        print(problem)
    print(f"{len(routes)} routes, {len(records)} records, {len(commands)} commands, "
          f"{len(statuses)} statuses: {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

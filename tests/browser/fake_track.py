"""What the stand-in server knows of experiments: many runs of made-up figures, found and ordered as the server does."""

import hashlib
import json
import math
import random
import re
import time

import fake_data as made

EXPERIMENTS = [("Default", 0), ("fashion", 1), ("face-embed", 2)]
OPTIMISERS = ["sgd", "adamw", "lamb"]
NOTE = "mlflow.note.content"  # the tag that is a description
FILES = {
    "model/MLmodel": b"flavors:\n  python_function:\n    loader_module: mlflow.pytorch\n",
    "model/model.onnx": b"\x08\x07onnx" * 40,
    "confusion.json": b'{"classes": ["shirt", "shoe"], "matrix": [[9, 1], [2, 8]]}',
    "predictions.csv": b'image,label,"score, percent"\n1,shirt,"99,1"\n2,"sho""e",87\n',
    "plots/confusion.png": None,
    "notes.txt": b"It learns.\n" * 3,
}


BLOB = "ab" * 32  # of any artifact


def files_of(state, run):
    """Runs with a batch of 1024 left no model."""
    changes = state.artifacts.get(run["id"], {})
    made_by_it = [name for name in FILES if run["params"]["batch"] != "1024" or not name.startswith("model/")]
    return [name for name in {**dict.fromkeys(made_by_it), **changes} if changes.get(name, b"") is not None]


def number(i):
    """Of the i-th run, the same at every call: a figure from 0 to 1 that looks like chance."""
    return random.Random(i).random()


class Many:
    """As many runs as one asks for, made when somebody looks at them."""

    def __init__(self, n):
        self.n = n
        self.begun = time.time()
        self.changes = {}
        self.made = []  # while nothing has changed

    def run(self, i):
        best = round(0.80 + 0.14 * number(i), 4)
        params = {"lr": ["0.02", "0.05", "0.1", "0.2"][i % 4], "batch": ["256", "512", "1024"][i % 3], "optimiser": OPTIMISERS[i % 3], "epochs": "40", "smoothing": ["0.0", "0.1"][i % 2]}
        started = self.begun - 600 * (i + 1)
        run = {
            "id": f"0192{self.n - i:08d}", "name": f"fashion-resnet-{self.n - i}", "project": "default", "experiment": 1, "experiment_name": "fashion", "kind": "external",
            "status": "RUNNING" if i == 0 else "FAILED" if i % 50 == 7 else "FINISHED", "job": None, "ion": None, "pipeline": None, "model": None, "registered": None, "parameters": None,
            "params": params, "tags": {"stage": "search", "mlflow.source.git.commit": "8b21c0de" + "0" * 32, "mlflow.source.name": "train.py", "mlflow.user": "mara", "weir.code.manifest": "tree-1", "weir.code.patch": "source-2", "weir.code.dirty": "true"},
            "metrics": {"val/acc": best, "val/loss": round(0.9 - 0.75 * best, 4), "train/loss": round(0.7 - 0.6 * best, 4)}, "user": ["mara", "lea", "sweep"][i % 3],
            "dataset": None, "dataset_version": 0, "code_version": None, "summary": None, "created_by": "admin", "created_ms": made.rfc3339(started), "start_ms": made.rfc3339(started),
            "started_ms": made.rfc3339(started), "finished_ms": None if i == 0 else made.rfc3339(started + 500), "deleted_ms": None, "lifecycle": "active", "progress": None, "epoch": None, "epochs": None,
            "loss": None, "accuracy": None, "images_per_second": None, "validation_loss": None, "validation_accuracy": None,
        }
        change = self.changes.get(run["id"], {})
        run["tags"] = {key: value for key, value in {**run["tags"], **change.get("tags", {})}.items() if value is not None}
        run["parameters"], run["params"] = change.get("parameters"), {**params, **change.get("params", {})}
        run["lifecycle"] = change.get("lifecycle", run["lifecycle"])
        run["deleted_ms"] = made.rfc3339(self.begun) if run["lifecycle"] == "deleted" else None
        return run

    def all(self):
        """Each of them. They are made once: a hundred thousand cost seconds, and a page asks three times for them."""
        if self.changes:
            return [self.run(i) for i in range(self.n)]
        if not self.made:
            self.made = [self.run(i) for i in range(self.n)]
        return self.made

    def at(self, run_id):
        return self.run(self.n - int(run_id[4:])) if re.fullmatch(r"0192\d{8}", run_id) else None


def value_of(run, name):
    family, _, key = name.replace("`", "").partition(".")
    if key:
        return run[{"metric": "metrics", "param": "params", "tag": "tags"}.get(family, family)].get(key)
    return run[{"run_name": "name", "run_id": "id", "start_time": "start_ms", "status": "status", "user": "user"}[family]]


# Comparisons are joined by and only: parentheses round some of them say nothing more.
COMPARISON = re.compile(r"\s*[(]*(not\s+)?((?:metrics|params|tags)\.(?:`[^`]+`|[\w./-]+)|status|user|run_name|run_id|start_time)\s*(>=|<=|!=|>|<|=|like|in)\s*(\"[^\"]*\"|'[^']*'|[\d.]+|[(][^)]*[)])[)]*\s*(and|$)", re.IGNORECASE)


def parse(text):
    """Comparisons joined by and; else the place, from 1, where it goes wrong."""
    found, place = [], 0
    while place < len(text):
        match = COMPARISON.match(text, place)
        if not match:
            return None, place + len(text[place:]) - len(text[place:].lstrip()) + 1
        is_not, name, op, literal, _ = match.groups()
        value = literal.strip("'\"") if literal[0] in "'\"" else re.findall(r"\"([^\"]*)\"", literal) if literal[0] == "(" else float(literal)
        found.append((name, "none" if is_not and op == "like" and value == "%" else op, value))
        place = match.end()
    return found, 0


def holds(run, comparison):
    name, op, wanted = comparison
    have = value_of(run, name)
    if op in ("none", "in"):
        return have is None if op == "none" else have in wanted
    if have is None or isinstance(have, str) != isinstance(wanted, str):
        return False
    return {">": have > wanted, "<": have < wanted, ">=": have >= wanted, "<=": have <= wanted, "=": have == wanted, "!=": have != wanted}[op]


def curve(run_id, key, most):
    rng = random.Random(run_id + key)
    n = 40
    top = 0.8 + 0.14 * rng.random()
    points = []
    for step in range(n):
        part = step / n
        value = top * (1 - math.exp(-5 * part)) if "acc" in key else 2.3 * math.exp(-4 * part) + 0.2
        if (step > n // 2 and int(run_id[-2:]) % 50 == 7) or (step % 2 and int(run_id[-2:]) % 50 == 8):
            continue  # one that ended early, one that logs every other step
        points.append({"run": run_id, "key": key, "step": step, "value": value + 0.01 * rng.uniform(-1, 1), "time_ms": made.rfc3339(1_790_000_000 + 12 * step)})
    return points[:most]


def experiments(state):
    rows = [{"id": i, "project": "default", "name": name, "tags": {}, "artifact_location": None, "created_by": "admin", "created_ms": made.rfc3339(0), "updated_ms": made.rfc3339(i),
             "deleted_ms": None, "n_runs": state.many.n if name == "fashion" and state.many else len(state.runs) if i == 0 else 0} for name, i in EXPERIMENTS if i == 0 or state.many]
    rows += [{**rows[0], "n_runs": 0, **one} for one in state.more_experiments]
    for row in rows:
        row["tags"] = {key: value for key, value in state.experiment_tags.get(str(row["id"]), {}).items() if value is not None}
    return rows


def problem(path, query):
    """What the server says of a filter that it cannot read; None: it can."""
    if path in ("runs", "runs/summary", "runs/groups") and query.get("filter"):
        comparisons, place = parse(query["filter"])
        return None if comparisons is not None else f"filter, character {place}: expected a comparison, as metrics.accuracy > 0.9"
    return None


def page(state, query):
    """GET /runs with a filter, an order or a page of many."""
    comparisons, _ = parse(query.get("filter", ""))
    limit, begin = int(query.get("limit", 100)), int(query.get("cursor") or query.get("skip", 0))
    is_deleted = query.get("view") == "deleted"
    if not state.many or query.get("experiment") in ("0", "2"):
        mine = [] if query.get("experiment") == "2" else [{"lifecycle": "active", "params": {}, "tags": {}, **run} for run in state.runs[::-1]]
    elif not comparisons and "order" not in query and not is_deleted and not state.many.changes:
        mine = [state.many.run(i) for i in range(begin, min(state.many.n, begin + limit))]
        return {"items": mine, "next": str(begin + limit) if begin + limit < state.many.n else None}
    else:
        mine = state.many.all()
    found = [run for run in mine if all(holds(run, one) for one in comparisons) and (query.get("view") == "all" or (run["lifecycle"] == "deleted") == is_deleted)]
    if "order" in query:
        name, _, direction = query["order"].rpartition(" ")
        found.sort(key=lambda run: value_of(run, name), reverse=direction == "DESC")
    return {"items": found[begin:begin + limit], "next": str(begin + limit) if begin + limit < len(found) else None}


def count(state, query):
    everything = state.many.n if state.many else len(state.runs)
    return len(page(state, {**query, "limit": everything, "order": "run_name ASC"})["items"]) if query.keys() & {"filter", "view"} else everything


def flat(parameters, prefix=""):
    """Names of the plain values of what a run was started with."""
    return {name for key, value in parameters.items() for name in (flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key})}


def groups(state, query):
    """GET /runs/groups: by value, those without one first."""
    found = {}
    everything = page(state, {**query, "limit": state.many.n if state.many else 1000, "cursor": 0, "order": "run_name ASC"})["items"]
    for run in everything:
        found.setdefault(value_of(run, query["by"]), []).append(run["metrics"].get(query.get("metric")))
    rows = []
    for value in sorted(found, key=lambda one: (one is not None, one or "")):
        numbers = [one for one in found[value] if one is not None]
        rows.append({"value": value, "n_runs": len(found[value]), "n_measured": len(numbers), "mean": sum(numbers) / len(numbers) if numbers else None,
                     "least": min(numbers, default=None), "greatest": max(numbers, default=None)})
    begin, limit = int(query.get("cursor", 0)), int(query.get("limit", 200))
    return {"items": rows[begin:begin + limit], "next": str(begin + limit) if begin + limit < len(rows) else None}


def find(state, path, parts, query):
    if path == "experiments":
        return experiments(state)
    if path == "runs" and query.keys() & {"experiment", "filter", "order", "columns", "view", "cursor"}:
        state.searches.append(query)
        return page(state, query)
    if path == "runs/groups":
        state.searches.append(query)
        return groups(state, query)
    if path == "runs/summary":
        runs = [state.many.run(i) for i in range(3)] if state.many else state.runs
        names = {family: sorted({key for run in runs for key in run.get(family) or {} if not key.startswith("mlflow.")}) for family in ("metrics", "params", "tags")}
        given = [flat(run.get("parameters") or {}) for run in runs]
        logged = sorted({key for run, keys in zip(runs, given) for key in run.get("params") or {} if key not in keys})
        return {"n": count(state, query), **names, "logged_params": logged}
    if parts[0] != "runs" or len(parts) < 2:
        return None
    run = state.many.at(parts[1]) if state.many else None
    if len(parts) == 2:
        return run or next(({**one, "metrics": {**one["metrics"], **{more["key"]: more["value"] for more in state.more_metrics}}} for one in state.runs if one["id"] == parts[1]), None)
    if parts[2] == "lineage":
        return lineage(state, run or next(one for one in state.runs if one["id"] == parts[1]))
    if parts[2] == "uploads":
        return [shown(one) for one in state.uploads.values() if one["run"] == parts[1]]
    if parts[2] == "metrics" and run:
        return {"items": curve(parts[1], query["key"], int(query.get("max_points", 1000))), "next": None}
    if parts[2:] == ["artifacts"]:
        folder = query.get("path", "")
        below = [name[len(folder) + 1 if folder else 0:] for name in files_of(state, run) if not folder or name.startswith(folder + "/")] if run else []
        return [{"path": f"{folder}/{one}" if folder else one, "is_folder": any(name.startswith(one + "/") for name in below),
                 "blob": BLOB, "bytes": len(artifact(f"{folder}/{one}" if folder else one) or b"")} for one in sorted({name.split("/")[0] for name in below})]
    return None


def put(state, method, parts, body):
    """(status, answer) of a change of a run's files; None: it is of something else. The body is bytes."""
    if parts[0] != "runs" or len(parts) < 3 or parts[2] not in ("artifacts", "uploads"):
        return None
    files = state.artifacts.setdefault(parts[1], {})
    if parts[2] == "artifacts":
        path = "/".join(parts[3:])
        gone = [name for name in files_of(state, state.many.at(parts[1])) if name == path or name.startswith(path + "/")] if method == "DELETE" else []
        files.update({name: None for name in gone} if method == "DELETE" else {path: body})
        return 200, {"path": path}
    if len(parts) == 3:
        upload = {"id": f"upload-{len(state.uploads)}", "run": parts[1], **json.loads(body), "parts": [], "created_by": "admin", "created_ms": made.rfc3339(0), "bytes": {}}
        state.uploads[upload["id"]] = upload
        return 200, shown(upload)
    upload = state.uploads.get(parts[3])
    if upload is None:
        return 404, {"error": {"status": "NOT_FOUND", "message": "there is no such upload"}}
    if method == "DELETE":
        return 200, state.uploads.pop(parts[3]) and {}
    if parts[-1] == "complete":
        files[upload["path"]] = b"".join(upload["bytes"][number] for number in range(1, upload["n_parts"] + 1))
        return 200, state.uploads.pop(parts[3]) and {}
    upload["bytes"][int(parts[5])] = body
    upload["parts"].append({"number": int(parts[5]), "bytes": len(body), "sha256": hashlib.sha256(body).hexdigest()})
    return 200, upload["parts"][-1]


def shown(upload):
    return {key: value for key, value in upload.items() if key != "bytes"}


def lineage(state, run):
    versions = [one for model in state.served for one in state.served[model] if one.get("run") == run["id"]] + [one for one in state.versions if one["run"] == run["id"]]
    inputs = [{"name": "faces", "digest": "0123456789", "context": "training", "source_type": "local", "source": "/data"},
              {"name": "fashion.csv", "digest": "ab12cd34ef", "context": None, "source_type": None, "source": None}] if run["experiment"] == 1 else []
    return {"inputs": inputs, "versions": versions}


def artifact(path):
    """The bytes of a file; None: there is none."""
    return made.face_png("artifact") if path.endswith(".png") and path in FILES else FILES.get(path)


def change(state, method, parts, document):
    """What the server answers to a change of what is tracked; None: it is of something else."""
    if method == "PATCH" and parts[0] in ("runs", "experiments") and "description" in document:
        document = {**document, "tags": {**document.get("tags", {}), NOTE: document["description"]}}
    if method == "PATCH" and parts[0] == "runs" and not state.many:
        run = next(one for one in state.runs if one["id"] == parts[1])
        run["tags"] = {key: value for key, value in {**run["tags"], **document.get("tags", {})}.items() if value is not None}
        return run
    if method == "PATCH" and parts[0] == "runs" and state.many and state.many.at(parts[1]):
        own = state.many.changes.setdefault(parts[1], {})
        own["tags"] = {**own.get("tags", {}), **document.get("tags", {})}
        own.update({key: value for key, value in document.items() if key == "lifecycle"})
        return state.many.at(parts[1])
    if parts[0] == "experiments":
        if method == "PATCH":
            state.experiment_tags.setdefault(parts[1], {}).update(document.get("tags", {}))
        return {"id": 9, **document}
    return None

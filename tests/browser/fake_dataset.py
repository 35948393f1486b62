"""Datasets as the server makes, fills and freezes them, for the console's tests."""

import fake_data as made


def version(name, number, n_files):
    return {"id": f"{name}-{number}", "dataset": name, "version": number, "digest": "%064x" % number, "blob": f"manifest-{number}", "n_files": n_files,
            "n_classes": 2, "bytes": 1000 * n_files, "state": "frozen", "created_ms": made.rfc3339(1_790_000_000)}


def change(state, command, parts, body, document):
    """(HTTP status, answer) of a change of datasets; None: it is none."""
    if parts[0] != "datasets":
        return None
    if command == "POST" and len(parts) == 1:
        if document["name"] in [one["name"] for one in state.datasets]:
            return 409, {"error": {"status": "EXISTS", "message": f"there is a dataset {document['name']}"}}
        one = {"name": document["name"], "project": document["project"], "kind": "folder", "path": "/var/lib/weir/datasets/x", "is_uploaded": True,
               "created_by": "admin", "created_ms": made.rfc3339(1_790_000_000)}
        state.datasets.append(one)
        state.files[one["name"]] = {}
        return 200, one
    if command == "PUT" and parts[2] == "files":
        if body in state.refused_files:
            return 507, {"error": {"status": "NOSPACE", "message": "the disk is full"}}
        state.files.setdefault(parts[1], {})["/".join(parts[3:])] = body
        return 200, {}
    if command == "DELETE" and parts[2:3] == ["files"]:
        return (204, {}) if state.files[parts[1]].pop("/".join(parts[3:]), None) else (404, {"error": {"status": "NOT_FOUND", "message": "there is no such file"}})
    if command == "POST" and parts[2] == "versions":
        before = state.frozen.get(parts[1], {"version": 7 if parts[1] == "people" else 0})
        state.frozen[parts[1]] = version(parts[1], before["version"] + 1, len(state.files[parts[1]]))
        return 202, {}
    return None


def freeze(state, name):
    """How the last freeze of this dataset ended."""
    frozen = state.frozen[name]
    damaged = [path for path, body in sorted(state.files[name].items()) if body == b"damaged"]
    return {"dataset": name, "state": "done", "files": frozen["n_files"], "bytes": frozen["bytes"], "n_damaged": len(damaged), "n_other": 0,
            "damaged": [f"{path}: it is no picture" for path in damaged], "version": frozen, "error": None}

"""Lineage and model cards, made up of what the other fakes have, as GET …/lineage and …/card answer them."""

import fake_data as made

AT = made.rfc3339(1_790_000_000)
FORGOTTEN = {"person": "georg", "n_files": 4, "actor": "admin", "reason": "asked for it", "time_ms": AT}


def dataset(name, version, **more):
    return {"dataset": name, "version": version, "is_there": True, "digest": "%064x" % version, "n_files": 40 * version, "n_classes": 4 * version, "bytes": 123_456,
            "created_by": "ann", "created_ms": AT, "run": None, "forgotten": [], **more}


def run_of(state, version):
    run = next((one for one in state.runs if version and one["id"] == version["run"]), state.runs[0])
    code = {"version": "weir 1.0", "commit": "0123456789abcdef", "branch": "main", "repository": None, "dirty": "false", "patch": None, "manifest": None, "source": "train.py"}
    reads = [{"name": "faces", "version": 4, "digest": None, "as": "dataset"}]
    return {"id": run["id"], "name": run["name"], "kind": "train", "status": "FINISHED", "project": "default", "job": None, "ion": made.ION, "pipeline": "training", "created_by": "ann", "user": None,
            "trigger": "manual by ann", "weights": None, "created_ms": AT, "finished_ms": AT, "deleted_ms": None, "code": code, "parameters": {"epochs": "7"}, "reads": reads, "parent": None}


def version_of(one):
    return {"id": one["id"], "model": one["model"], "version": one["version"], "run": one["run"], "source": None, "source_run": None, "dataset": "faces", "dataset_version": 4, "code_version": None,
            "blob": one["blob"], "stage": "None", "created_by": "ann", "deleted_by": None, "bytes": one["bytes"], "created_ms": AT, "deleted_ms": None}


def place(one, decisions):
    policy = {"id": f"p{one['version']}", "ion": made.ION, "link": "training:entrance", "candidate": f"c{one['version']}", "model_version": one["id"], "version": one["version"], "policy": "manual",
              "position": 0, "inputs": {}, "rule": "a person approves", "verdict": "promote", "actor": "rita", "note": "fewer false denials", "time_ms": AT}
    return {"candidate": f"c{one['version']}", "ion": made.ION, "link": "training:entrance", "pipeline": made.PIPELINE, "deployment": None, "model": one["model"], "version": one["version"],
            "state": "SERVING", "made_by": "ann", "served_ms": AT, "created_ms": AT, "policies": [policy], "are_policies_gone": False, "decisions": decisions}


COUNTS = {"n_made": 1234, "n_kept": 1200, "n_tried": 0, "first_ms": AT, "last_ms": AT, "is_whole": True, "why": None}


def back(state, version, datasets, **more):
    return {"runs": [run_of(state, version)], "datasets": datasets, "unknown": [], "is_cut": False, **more}


def of_version(state, one):
    return {"version": version_of(one), "places": [place(one, COUNTS)], "deployments": [],
            "finders": [{"ion": made.ION, "pipeline": made.PIPELINE, "since_ms": AT, "until_ms": None}], **back(state, one, [dataset("faces", 4, forgotten=[FORGOTTEN])])}


def card(state, one):
    accuracy = {"name": None, "n": 20, "right": 18, "accuracy": 0.9, "low": 0.7, "high": 0.97}
    signal = {"signal": "score", "statistic": "ks", "value": 0.1, "p_value": 0.4, "drifted": False, "n_samples": 500, "time_ms": AT}
    return {"made_ms": AT, "model": {"name": one["model"], "project": "default", "description": None, "created_ms": AT, "tags": {}}, "version": {**one, "description": "For **doors**"},
            "architecture": "face-embed", "n_labels": None, "lineage": of_version(state, one),
            "data": {"dataset": "faces", "version": 4, "classes": [{"name": "ada", "n_files": 9}], "n_others": 0, "why": None}, "baseline": ["score", "brightness"], "evaluations": [],
            "live": [{"ion": made.ION, "pipeline": made.PIPELINE, "since_ms": AT, "accuracy": accuracy, "cameras": [{**accuracy, "name": "north"}], "signals": [signal]}],
            "limits": ["No validation was measured: its figures are those of its training data, or nobody has said of which."]}


def find(state, path, parts, query):
    """The answer to a question about lineage; None: it is about something else."""
    versions = state.versions + [one for served in state.served.values() for one in served]
    if parts[0] == "models" and len(parts) == 5 and parts[4] in ("lineage", "card"):
        one = next((one for one in versions if one["model"] == parts[1] and str(one["version"]) == parts[3]), None)
        return one and (of_version(state, one) if parts[4] == "lineage" else card(state, one))
    if parts[0] == "datasets" and len(parts) == 5 and parts[4] == "lineage" and state.versions:
        own, one = dataset(parts[1], int(parts[3])), state.versions[0]
        gallery = {"ion": made.ION, "pipeline": made.PIPELINE, "dataset": parts[1], "version": own["version"], "decisions": {**COUNTS, "is_whole": False, "why": "Some may have been deleted."}}
        reader = {key: run_of(state, one)[key] for key in ("id", "name", "kind", "status", "created_by", "created_ms")}
        return {"dataset": own, "read_by": [reader], "made": [], "versions": [version_of(one)], "places": [place(one, COUNTS)], "galleries": [gallery], **back(state, one, [own], runs=[])}
    if parts[0] == "decisions" and len(parts) == 3 and parts[2] == "lineage":
        decision = next((one for one in state.decisions + state.forgotten if one["id"] == parts[1]), None)
        if decision is None:
            return None
        one = next((one for one in state.versions if one["version"] == decision["model_version"]), state.versions[0])
        gallery = {"dataset": "people", "version": 2}
        return {"decision": decision, "forgotten": FORGOTTEN if decision["person"] == "georg" else None, "revision": {"revision": 3, "actor": "eve", "time_ms": AT}, "gallery": gallery,
                "place": place(one, None), "is_certain": True, "version": version_of(one),
                "detector": {**version_of(one), "id": "squares-3", "model": "squares", "version": 3}, **back(state, one, [dataset("faces", 4), dataset("people", 2)])}
    return None

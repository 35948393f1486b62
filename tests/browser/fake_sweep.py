"""Sweeps of the stand-in server: one that runs, stopped early where trials do badly, and one that is over."""

import random
import time

import fake_data as made

DOCUMENT = {
    "name": "lenet-lr", "project": "default", "job": {"kind": "train", "spec": {"model": "lenet5", "learning_rate": "{{lr}}"}},
    "parameters": {"lr": {"kind": "log_uniform", "min": 0.001, "max": 1}, "batch": {"kind": "choice", "values": [32, 64, 128]}, "optimiser": {"kind": "choice", "values": ["sgd", "adam"]}},
    "goal": {"metric": "validation_accuracy", "direction": "maximize"}, "method": {"kind": "asha", "min_resource": 1, "max_resource": 27, "eta": 3, "resource": "epoch"},
    "trials": 64, "parallel": 4, "seed": 7}


def trial(rng, sweep, number, begun):
    lr = 10 ** rng.uniform(-3, 0)
    value = 0.95 - 0.12 * abs(rng.gauss(0, 1)) - 0.04 * abs(lr - 0.1)
    n_rungs = 1 if value < 0.85 else 2 if value < 0.91 else 3
    state = "RUNNING" if number > 36 else "FAILED" if number == 9 else "SUCCEEDED" if n_rungs == 3 else "STOPPED"
    return {"id": f"{sweep}:{number}", "sweep": sweep, "number": number, "state": state, "parameters": {"lr": lr, "batch": rng.choice([32, 64, 128]), "optimiser": rng.choice(["sgd", "adam"])},
            "point": [0.5], "job": f"job-{number}", "run": f"run-{number}", "ends_as": None, "reason": {"STOPPED": f"at rung {n_rungs}: place 9 of 12, 4 go on", "FAILED": "exit 1"}.get(state),
            "value": None if number == 9 else value, "resource": 3 ** n_rungs, "step": 100, "rungs": [value - 0.02 * (3 - k) for k in range(n_rungs)],
            "created_ms": made.rfc3339(begun + 40 * number), "started_ms": made.rfc3339(begun + 40 * number + 2), "ended_ms": None if state == "RUNNING" else made.rfc3339(begun + 40 * number + 90)}


def fill(state):
    begun = time.time() - 1700
    rng = random.Random(3)
    for name, is_over in (("lenet-lr", False), ("face-margin", True)):
        sweep = made.make_id(rng)
        trials = [trial(rng, sweep, number, begun) for number in range(1, 41)]
        best = max((one for one in trials if one["value"] is not None), key=lambda one: one["value"])
        count = lambda word: sum(one["state"] == word for one in trials)
        state.trials[sweep] = trials
        state.sweeps.append({"id": sweep, "name": name, "project": "default", "state": "SUCCEEDED" if is_over else "RUNNING", "reason": None, "ends_as": None, "document": {**DOCUMENT, "name": name},
                             "method": "asha", "metric": "validation_accuracy", "n_trials": 64, "n_made": 40, "n_open": 0 if is_over else count("RUNNING"), "n_succeeded": count("SUCCEEDED"),
                             "n_stopped": count("STOPPED"), "n_failed": 1, "best": best["number"], "best_value": best["value"], "work": sum(one["resource"] for one in trials), "created_by": "mara",
                             "created_ms": made.rfc3339(begun), "ended_ms": made.rfc3339(begun + 1600) if is_over else None})


def find(state, path, parts, query):
    if path == "sweeps":
        return state.sweeps[::-1]
    if parts[0] == "sweeps":
        return state.trials.get(parts[1]) if parts[2:] == ["trials"] else next((one for one in state.sweeps if one["id"] == parts[1]), None)
    return None


def problem(document):
    """What the server would refuse of a sweep's document; None: nothing."""
    if document.get("method", {}).get("kind") not in ("asha", "random", "grid", "tpe"):
        return "$.method.kind: expected asha, grid, random or tpe"
    return None


def change(state, method, parts, document, is_dry):
    if parts[0] != "sweeps":
        return None
    if method == "POST" and len(parts) == 1:
        made_one = {**state.sweeps[0], "id": "sweep-of-the-page", "name": document["name"], "document": document, "method": document["method"]["kind"], "n_made": 0, "n_open": 0, "n_stopped": 0,
                    "n_failed": 0, "best": 0, "best_value": None, "n_trials": document["trials"], "work": 0}
        if not is_dry:
            state.sweeps.append(made_one)
            state.trials[made_one["id"]] = []
        return made_one
    found = next(one for one in state.sweeps if one["id"] == parts[1])
    if method == "DELETE":
        state.sweeps.remove(found)
    elif parts[2] == "pause":
        found.update(state="PAUSED", reason="paused by admin")
    elif parts[2] == "resume":
        found.update(state="RUNNING", reason=None)
    else:
        found.update(state="CANCELLED", n_open=0, reason="stopped by admin")
    return found

"""Notebooks and services of the stand-in server; a ticket leads to a page of the same server."""

import time

import fake_data as made


def service(name, kind, state, owner="admin", idle_s=30, is_shared=False, why=None):
    at = made.rfc3339(time.time() - idle_s)
    return {"id": f"id-of-{name}", "name": name, "project": "default", "kind": kind, "owner": owner, "is_shared": is_shared, "spec": None, "port": 0, "keeps_path": True, "idle_after_ms": 8 * 3_600_000,
            "job": f"job-of-{name}", "address_attempt": 1, "reason": None, "created_ms": at, "started_ms": at, "stopped_ms": None, "used_ms": at, "state": state, "why": why,
            "node": "rack1-a" if state == "RUNNING" else None, "is_mine": owner == "admin" or is_shared, "url": f"http://127.0.0.1/services/{name}/"}


def fill(state):
    state.services += [service("notebook", "notebook", "RUNNING"), service("explore", "notebook", "RUNNING", "mara", 3 * 3600), service("old", "notebook", "STOPPED", idle_s=90_000, why="idle for 8 h"),
                       service("board", "tensorboard", "RUNNING", "lea", 300, True), service("demo", "service", "FAILED", why="exit 69: this node has no Jupyter")]


def find(state, path, parts, query):
    return state.services if path == "services" else None


def change(state, method, parts, document, url):
    if parts[0] != "services":
        return None
    if len(parts) == 1:
        made_one = {**service(document["name"], document["kind"], "STARTING"), "is_shared": document["is_shared"]}
        state.services.append(made_one)
        return made_one
    found = next(one for one in state.services if one["id"] == parts[1])
    if method == "DELETE":
        state.services.remove(found)
    elif parts[2] == "ticket":
        return {"url": f"{url}/p/-/nodes?ticket=1", "address": found["url"], "expires_s": 60}
    else:
        found.update(state="STARTING" if parts[2] == "start" else "STOPPED")
    return found

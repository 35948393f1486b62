"""Clusters that supply nodes, made up. A part of the stand-in server."""

import time

import fake_data as made


def cluster(name, state="ready", **more):
    now = time.time()
    return {"name": name, "driver": "slurm", "options": {"partition": "gpu-a100", "account": "weir-speech"}, "is_draining": False, "after_ms": 600_000, "idle_ms": 60_000,
            "time_ms": 43_200_000, "max_nodes": 8, "state": state, "said": None, "heard_ms": made.rfc3339(now - 3), "created_by": "admin", "created_ms": made.rfc3339(now - 90_000),
            "n_allocations": 0, "n_nodes": 0, "n_wanted": 0, **more}


def pool(of, name, model, n_nodes, max_nodes, **more):
    return {"id": f"{of}/{name}", "cluster": of, "name": name, "cpu_slots": 64, "memory_bytes": 512 << 30, "n_accelerators": 8 if model else 0, "accelerator": model,
            "max_nodes": max_nodes, "time_max_ms": 43_200_000, "weight": 1.0, "cpus_busy": 200, "accelerator_parts": 0, "why": None, "n_nodes": n_nodes, "n_wanted": 0, **more}


def allocation(of, number, state, job, **more):
    now = time.time()
    runs = state == "running"
    return {"id": f"{of}-{number:08x}", "cluster": of, "pool": "gpu-a100", "state": state, "their_id": str(number), "job": job, "project": "default", "queue": "default", "n_nodes": 2,
            "cpu_slots": 16, "memory_bytes": 64 << 30, "n_accelerators": 4, "accelerator_milli": 0, "accelerator": None, "time_ms": 0, "nodes": ["a100-07", "a100-08"] if runs else None, "joined": [],
            "said": "RUNNING" if runs else "PENDING (Priority)", "why": None, "ending": None, "starts_ms": None if runs else made.rfc3339(now + 1200),
            "ends_ms": made.rfc3339(now + 7200) if runs else None, "created_ms": made.rfc3339(now - 900), "asked_ms": made.rfc3339(now - 890),
            "started_ms": made.rfc3339(now - 600) if runs else None, "idle_since_ms": None, "ended_ms": None, **more}


def fill(state):
    state.clusters += [
        cluster("hpc-north", n_allocations=2, n_nodes=2, n_wanted=2),
        cluster("hpc-south", "wrong", said="account: sacctmgr knows no account weir-vision; ask for one, or set another: weir cluster set hpc-south --set account=NAME", after_ms=0),
    ]
    state.pools += [pool("hpc-north", "gpu-a100", "A100", 2, 8, n_wanted=2), pool("hpc-north", "gpu-h100", "H100", 0, 2, why="the partition is down"), pool("hpc-south", "cpu", None, 0, 40)]
    state.allocations += [allocation("hpc-north", 814102, "running", state.jobs[0]["id"]), allocation("hpc-north", 814223, "pending", state.jobs[1]["id"])]


KIND = {"id": "driver/slurm", "noun": "driver", "plural": "drivers", "name": "slurm", "is_planned": False, "doc": "A Slurm cluster, by its command line.",
        "options": [{"name": "partition", "type": "text", "required": True, "doc": "Partition whose nodes are asked for"},
                    {"name": "account", "type": "text", "doc": "Account that pays"}, {"name": "nodes_max", "type": "integer", "minimum": 0, "doc": "Nodes of one job"}]}


def find(state, path, parts, query):
    if path == "kinds" and query.get("noun") == "driver":
        return [KIND]
    if path == "allocations":
        return [one for one in state.allocations if query.get("job", one["job"]) == one["job"] and (query.get("view") == "all" or one["state"] != "ended")]
    if parts[0] == "allocations":
        return next((one for one in state.allocations if one["id"] == parts[1]), None)
    return {"clusters": state.clusters, "pools": state.pools}.get(path)


def said_of(state, document):
    """What the cluster of this document says when it is asked."""
    options = document.get("options") or {}
    missing = None if options.get("partition") == "gpu-a100" else f"partition: sinfo knows no partition {options.get('partition')}"
    return {"is_ready": missing is None, "missing": missing, "notice": None, "pools": [] if missing else [pool(document.get("name") or "new", "gpu-a100", "A100", 0, 8)]}


def change(state, method, parts, document):
    if parts[0] == "allocations":
        found = next(one for one in state.allocations if one["id"] == parts[1])
        found.update(state="releasing", why="released by admin")
        return found
    if parts[0] != "clusters":
        return None
    if parts == ["clusters", "check"]:
        return said_of(state, document)
    if parts == ["clusters", "guess"]:
        return {"driver": document["driver"], "options": {"partition": "gpu-a100", **document["options"]}}
    if parts == ["clusters"]:
        state.clusters.append(cluster(document["name"], "new", heard_ms=None, **{key: document[key] for key in ("options", "after_ms", "idle_ms", "time_ms", "max_nodes")}))
        return state.clusters[-1]
    found = next(one for one in state.clusters if one["name"] == parts[1])
    if parts[-1] == "check":
        return said_of(state, found)
    if method == "DELETE":
        state.clusters.remove(found)
    else:
        found.update(document)
    return found

"""What teams share, made up: queues, roles, kinds of jobs, and what the scheduler would do. A part of the stand-in server."""

import fake_data as made
import fake_serve

ROLES = ["member", "viewer", "approver", "operator", "data-scientist", "ml-engineer", "admin"]
MATRIX = {  # who may, besides an admin
    "read jobs": ROLES[1:6], "read decisions": ROLES[1:6], "submit jobs": ROLES[4:6], "cancel jobs": ROLES[3:6], "change runs": ROLES[4:6], "change experiments": ROLES[4:6], "operate nodes": ["operator", "ml-engineer"],
    "change queues": [], "change secrets": ROLES[4:6], "grant projects": [], "create projects": [], "read users": ROLES[1:6], "change users": [], "change tokens": [],
    "apply ions": ROLES[4:6], "change alert rules": ["operator"], "change alert receivers": [], "acknowledge alerts": ["operator"], "promote ions": ["operator", "ml-engineer"], "pause ions": ["operator", "ml-engineer"],
    "trigger ions": ROLES[3:6], "roll back ions": ["operator", "ml-engineer"], "list people ions": ["operator", "ml-engineer"], "change snapshots": ROLES[3:6], "change datasets": ["data-scientist", "ml-engineer"], "change nodes": [], "read usage": ROLES[1:6], "review ions": ["approver", "operator", "ml-engineer"], **fake_serve.RIGHTS,
}
OF_PLATFORM = {"operate nodes", "change queues", "create projects", "read users", "change users", "change tokens", "change nodes"}
RIGHTS = [*MATRIX]


def role(name, rights, project_rights, is_custom=False, description=None):
    made_by = {"created_by": "admin", "created_ms": made.rfc3339(0), "changed_by": "admin", "changed_ms": made.rfc3339(0)}
    return {"name": name, "description": description, "is_of_projects": name != "member", "is_custom": is_custom, "rights": rights, "project_rights": project_rights,
            **{key: value if is_custom else None for key, value in made_by.items()}}


def roles(state):
    return [*builtin_roles(), *(role(name, rights, rights, True, about) for name, (rights, about) in sorted(state.custom_roles.items()))]


def builtin_roles():
    return [role(one,
                 [right for right, who in MATRIX.items() if one == "admin" or one in who],
                 [right for right, who in MATRIX.items() if right not in OF_PLATFORM and (one == "admin" or one in who)])
            for one in ROLES]


def change_roles(state, method, parts, body):
    """As the server: a role that somebody has stays."""
    name = body["name"] if method == "POST" else parts[1]
    if method == "DELETE" and any(one["role"] == name for members in state.members_of.values() for one in members):
        return None
    if method == "DELETE":
        del state.custom_roles[name]
        return {}
    state.custom_roles[name] = (body["rights"], body["description"])
    return role(name, body["rights"], body["rights"], True, body["description"])


def amounts(accelerators, cpus=0, memory=0):
    return {"accelerators": accelerators, "cpus": cpus, "memory": memory}


def queue(name, project, guarantee, limit, used, waiting=0, **more):
    return {"name": name, "parent": None, "project": project, "priority": 100, "times": None, "min_run_ms": -1, "idle_after_ms": -1, "clusters": None, "overflow_after_ms": -1,
            "shares": {"accelerators": {"guarantee": guarantee, "limit": limit, "weight": 1}}, "created_ms": made.rfc3339(0), "is_set": True,
            "guarantee": amounts(guarantee), "fair_share": amounts(guarantee), "used": amounts(used), "borrowed": amounts(max(0, used - guarantee)), "waiting": amounts(waiting),
            "n_running": used, "n_waiting": int(waiting > 0), **more}


def queues():
    """Two projects that share the two devices of rack1-a: one has both, the other waits for its own."""
    return [queue("default", "default", 1, 2, 2), queue("speech", "speech", 1, None, 0, 1)]


def queue_share(state, name):
    found = next((one for one in state.queues if one["name"] == name), None)
    return found and {key: found[key] for key in ("guarantee", "fair_share", "used", "borrowed", "waiting")}


def what_if(state, change):
    counts = {"starts": 0, "waits": 1, "stays": 1, "evicted": 0}
    job = {"id": state.jobs[2]["id"], "name": state.jobs[2]["name"], "project": "default", "queue": "default", "before": "waits", "after": "starts",
           "why_before": "", "why_after": "on rack1-a"}
    is_more = "first" in change or change.get("shares", {}).get("accelerators", {}).get("guarantee", 0) > 1
    share = queue_share(state, change.get("queue"))
    guarantee = change.get("shares", {}).get("accelerators", {}).get("guarantee", 0)
    total = sum(one["guarantee"]["accelerators"] for one in state.queues if one["name"] != change.get("queue")) + guarantee
    return {"before": counts, "after": {**counts, "starts": int(is_more), "waits": 1 - is_more}, "jobs": [job] if is_more else [],
            "n_others": int(is_more), "others": {"evicted": 1} if is_more else {},
            "queues": [{"name": change["queue"], "before": share, "after": {**share, "fair_share": amounts(guarantee)}}] if "queue" in change else [],
            "guarantees": {"sum": amounts(total), "capacity": amounts(2), "can_be_kept": total <= 2,
                           "why": None if total <= 2 else f"guarantees of {total} accelerators in all are more than the 2 accelerators that the nodes have"}}


def option(name, kind, doc, **more):
    return {"name": name, "type": kind, "doc": doc, **more}


def kind_of(noun, name, doc, options):
    return {"id": f"{noun}/{name}", "noun": noun, "plural": noun + "s", "name": name, "is_planned": False, "doc": doc, "options": options}


def kinds():
    """Kinds of jobs; the second is one that no page knows."""
    common = [option("resources", "any", "What each task needs: {accelerators, memory}"),
              option("priority", "integer", "Within its queue", minimum=0, maximum=1000),
              option("time_limit", "any", "Longest run: 90m, 12h")]
    return [
        {"id": "job-kind/command", "noun": "job-kind", "plural": "job-kinds", "name": "command", "is_planned": False, "doc": "Any program.",
         "options": [option("argv", "array", "The program and its arguments", required=True), option("env", "object", "Environment variables", secret=True), option("code", "any", "Its files"),
                     option("network", "text", "host or none", default="host", words=["host", "none"]), *common]},
        {"id": "job-kind/quantum", "noun": "job-kind", "plural": "job-kinds", "name": "quantum", "is_planned": False, "doc": "Anneals.",
         "options": [option("qubits", "integer", "How many", required=True, minimum=1, maximum=64), *common]},
        {"id": "job-kind/pytorch", "noun": "job-kind", "plural": "job-kinds", "name": "pytorch", "is_planned": False, "doc": "A program of PyTorch as a gang.",
         "options": [option("argv", "array", "The program and its arguments", required=True), option("code", "any", "Its files"), option("python", "text", "Python packages"),
                     option("secrets", "array", "Secrets, as NAME or VARIABLE=NAME"), option("nodes", "any", "Nodes"), option("processes_per_node", "integer", "Processes", default=1, minimum=1), *common]},
        {"id": "job-kind/mpi", "noun": "job-kind", "plural": "job-kinds", "name": "mpi", "is_planned": True, "doc": None, "options": None},
        {"id": "job-kind/train", "noun": "job-kind", "plural": "job-kinds", "name": "train", "is_planned": False, "doc": "Trains.",
         "options": [option("steps", "integer", "Mini-batches", minimum=1), option("optimizer", "text", "How weights are changed", words=["sgd", "adam"]), option("seed", "integer", "Of all that is drawn by lot")]},
        *(kind_of(*one) for one in (
            ("source", "directory", "Files of a folder.", [option("path", "text", "Folder on the node", required=True, path=True)]), ("source", "http", "Frames are sent.", []),
            ("sink", "jsonl", "A file with a line per decision.", [option("path", "text", "File on the node", required=True, path=True)]),
            ("restart", "never", "Only triggers start it.", []), ("restart", "on-failure", "A run that has failed is followed by another.", [option("times", "integer", "So often in a row", default=3, minimum=1, maximum=1000)]),
            ("trigger", "new-data", "Its dataset has a new version.", []), ("trigger", "schedule", "A time comes.", [option("cron", "text", "With seconds, in UTC", required=True)]),
            ("trigger", "drift", "Health windows of a signal have drifted.", [option("signal", "text", "Whose windows count"), option("k", "integer", "So many have drifted", default=3, minimum=1, maximum=100)]),
            ("job-kind", "measure", "How right a classifier is.", [option("alpha", "number", "Of a comparison", default=0.05)]),
            ("stage", "decode", "Bytes become a picture.", []), ("stage", "decide", "Grant or deny.", []),
            ("policy", "always-update", "A new version passes at once.", []), ("policy", "manual", "A version waits for people.", [option("approvals", "integer", "How many must approve", default=1, minimum=1, maximum=16)]),
            ("policy", "canary", "A version gets a growing part of the requests.", [option("steps", "array", "Shares of the requests")]),
            ("policy", "rate-limit", "A version waits.", [option("min_interval_s", "integer", "Least time between two", required=True, minimum=1)])))
    ]


def explanation(job):
    return {"id": job["id"], "name": job["name"], "project": job["project"], "state": job["state"], "why": job["reason"], "code": "full",
            "resource": "accelerators", "need": 4, "have": 1, "since": job["created_ms"], "expected_start": None, "n_ahead": 1, "queue": "default",
            "helps": [{"change": "one more node like rack1-a", "outcome": "starts", "why": "on another rack1-a"}]}


def nic(node):
    return {"name": f"{node}/90", "node": node, "idx": 90, "id": "mlx5_0", "kind": "nic", "model": None, "state": "ok", "reason": None, "parent": -1, "profile": None,
            "numa": 0, "memory_bytes": 0, "memory_used_bytes": -1, "temperature_c": None, "power_w": None, "utilisation_pct": None, "used_milli": 0,
            "holders": None, "ecc_errors": -1, "details": {"rdma": True, "link": "up", "mbit_s": 200000}, "idle_since_ms": None, "changed_ms": made.rfc3339(0)}


def events(state, query):
    """By pages, newest first, as GET /events; those of the audit only where they are asked for."""
    of_topic = state.audit if query.get("topic") == "audit" else state.events
    found = sorted((one for one in of_topic if all(one[key] == query[key] for key in ("actor", "kind", "subject") if key in query)),
                   key=lambda one: one["seq"], reverse=True)
    begin, limit = int(query.get("cursor") or 0), int(query.get("limit", 100))
    return {"items": found[begin:begin + limit], "next": str(begin + limit) if len(found) > begin + limit else None}


HOUR_S = 3600


def figures(given_h, borrowed_h=0.0, idle_h=0.0, waited_h=0.0):
    return {"asked_device_s": (given_h + waited_h) * HOUR_S, "given_device_s": given_h * HOUR_S, "used_device_s": 0.9 * given_h * HOUR_S,
            "unknown_device_s": 0.0, "idle_device_s": idle_h * HOUR_S, "borrowed_device_s": borrowed_h * HOUR_S,
            "asked_cpu_s": 4 * given_h * HOUR_S, "given_cpu_s": 4 * given_h * HOUR_S, "borrowed_cpu_s": 0.0}


def usage(query):
    by, begin, end = query["by"], made.seconds(query["from"]), made.seconds(query["to"])
    of = {"default": figures(30, 10, 6, 0), "speech": figures(12, 0, 0, 8)}
    row = lambda key, is_, **more: {"key": key, "name": None, "project": None, **is_, **more}
    if by in ("day", "hour"):
        step = 86400 if by == "day" else HOUR_S
        first = begin - begin % step
        share = {None: 42, "default": 30, "speech": 12}.get(query.get("project"), 0)
        items = [row(made.rfc3339(first + i * step), figures(share / 2)) for i in range(2)]
    else:
        items = [row(key, is_, project=key) for key, is_ in of.items() if query.get("project", key) == key]
    return {"by": by, "from": made.rfc3339(begin), "to": made.rfc3339(end), "items": items, "total": figures(42, 10, 6, 8), "next": None}


def queue_series(query):
    begin, step = made.seconds(query["from"]), int(query["step_s"])
    amounts_of = lambda devices: {"accelerators": devices, "cpus": 0}
    points = [{"time": made.rfc3339(begin + i * step), "queue": name, "project": name, "asked": amounts_of(2), "guarantee": amounts_of(1), "used": amounts_of(used),
               "borrowed": amounts_of(0), "waiting": amounts_of(2 - used)}
              for i in (0, 1, 3) for name, used in (("default", 2), ("speech", 0.5 * i / 3))]  # the third step has no sample
    return {"from": query["from"], "to": query["to"], "step_s": step, "items": points, "next": None}


def kept_times(state):
    return [{"kind": kind, "what": what, "rule": "The oldest go first.", "keep": state.kept.get(kind) or platform, "own": state.kept.get(kind),
             "platform": platform, "bounds": f"0s..{platform}"}
            for kind, what, platform in (("decisions", "What replicas decided about frames, one row each", "30d"), ("logs", "What tasks wrote", "30d"))]


def kept(state):
    pipeline = {"ion": made.ION, "pipeline": made.PIPELINE, "kind": "pictures", "own": "1d", "keep": "1d"}
    return {"items": kept_times(state), "pipelines": [pipeline], "next": None}


def find(state, path, parts, query):
    """What a GET of one of these answers; None: it is none of these."""
    if parts[0] == "projects" and parts[2:] == ["retention"]:
        return kept(state)
    if parts[0] == "projects" and parts[2:] == ["retention", "preview"]:
        return [{"kind": query["kind"], "keep": query["keep"], "keep_now": "30d", "unit": "rows", "n_going": 12 if query["keep"] == "2d" else 0, "bytes_going": 6240}]
    if parts[0] == "projects" and parts[-1] == "secrets":
        uses = [{"kind": "job", "id": job["id"], "name": job["name"], "state": job["state"]} for job in state.jobs if job["state"] == "PENDING"]
        return [{"id": f"{parts[1]}/{name}", "name": name, "project": parts[1], "created_by": by, "created_ms": made.rfc3339(0), "updated_ms": made.rfc3339(0), "used_by": uses if name == "HF_TOKEN" else []}
                for name, by in sorted(state.secrets.items())]
    if path == "roles":
        return roles(state)
    if parts[0] == "nodes" and len(parts) == 2:
        node = next((one for one in state.nodes if one["name"] == parts[1]), None)
        return node and {**node, "devices": [nic(parts[1]), *(one for one in state.devices if one["node"] == parts[1])]}
    if parts[0] == "groups" and parts[-1] == "members":
        return [{"name": f"{parts[1]}/{user}", "group": parts[1], "user": user, "created_ms": made.rfc3339(0)} for user in state.group_members.get(parts[1], [])]
    if path == "events":
        return events(state, query)
    if path == "usage":
        return usage(query)
    if path == "usage/queues":
        return queue_series(query)
    if path == "kinds":
        return [one for one in kinds() if query.get("noun", one["noun"]) == one["noun"]]
    if parts[0] == "jobs" and parts[-1] == "explanation":
        return explanation(next(one for one in state.jobs if one["id"] == parts[1]))
    if parts[0] == "jobs" and len(parts) == 2:
        return next((one for one in state.jobs if one["id"] == parts[1]), None)
    if path == "queues":
        return {"items": state.queues, "next": None, "others": {"n_queues": 0, "n_running": 0, "n_waiting": 0}}
    if parts[0] == "queues":
        found = next((one for one in state.queues if one["name"] == parts[1]), None)
        return found and {**found, **state.unseen_changes}
    return None


def change_job(state, parts, body):
    if len(parts) == 1:
        job = {**state.jobs[2], **body, "id": made.make_id(state.rng), "state": "PENDING", "reason": None}
        state.jobs.append(job)
        return job
    job = next((one for one in state.jobs if one["id"] == parts[1]), None)
    if job and parts[2] in ("hold", "requeue", "resume"):
        job.update(state="PENDING", is_held=parts[2] == "hold", n_evictions=1)
    return job or {}


def change_people(state, method, parts, body):
    if len(parts) == 1:
        getattr(state, parts[0]).append({"is_disabled": False, "description": None, "created_ms": made.rfc3339(0), **body})
    elif method == "PATCH":
        next(one for one in state.users if one["name"] == parts[1]).update(body)
    elif parts[0] == "groups" and len(parts) == 4:
        members = state.group_members.setdefault(parts[1], [])
        (members.append if method == "PUT" else members.remove)(parts[3])
    elif method == "DELETE":
        setattr(state, parts[0], [one for one in getattr(state, parts[0]) if one["name"] != parts[1]])
    return {}


def change(state, method, parts, body):
    """What a change of one of these answers; None: it is none of these."""
    if parts[0] == "projects" and parts[2:] == ["retention"]:
        state.kept.update({kind: None if age == "default" else age for kind, age in body.items()})
        return kept(state)
    if parts[0] == "projects" and parts[2:3] == ["secrets"]:
        if method == "DELETE":
            del state.secrets[parts[3]]
        else:
            state.secrets[parts[3]] = "admin"
        return {"name": parts[3]}
    if parts == ["what-if"]:
        return what_if(state, body)
    if parts[0] == "jobs" and method == "POST":
        return change_job(state, parts, body)
    if parts[0] == "roles":
        return change_roles(state, method, parts, body)
    if parts[0] in ("users", "groups"):
        return change_people(state, method, parts, body)
    if parts == ["tokens"]:
        state.tokens.append({"id": made.make_id(state.rng), "node": None, "project": None, "created_ms": made.rfc3339(0), "used_ms": None,
                             **body, "expires_ms": None})
        return {**state.tokens[-1], "secret": "weir_shown-this-once"}
    if parts == ["node-joins"]:
        return {"id": "j", "created_by": "admin", "created_ms": made.rfc3339(0), "expires_ms": made.rfc3339(body["expires_ms"] / 1000),
                "node": body.get("node"), "secret": "weir_join-this-once", "used_by": None, "used_ms": None}
    if parts[0] == "queues":
        state.queues = [one for one in state.queues if one["name"] != parts[1] or method != "DELETE"]
        found = next((one for one in state.queues if one["name"] == parts[1]), None)
        if method == "PUT" and found is None:
            state.queues.append(queue(parts[1], body.get("project"), 0, None, 0))
        elif method == "PUT":
            found.update(body)
        return {}
    return None

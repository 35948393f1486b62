"""What teams share, made up: queues, roles, kinds of jobs, and what the scheduler would do. A part of the stand-in server."""

import fake_data as made

ROLES = ["member", "viewer", "approver", "operator", "data-scientist", "ml-engineer", "admin"]
MATRIX = {  # who may, besides an admin
    "read jobs": ROLES[1:6], "submit jobs": ROLES[4:6], "cancel jobs": ROLES[3:6], "operate nodes": ["operator", "ml-engineer"],
    "change queues": [], "grant projects": [], "create projects": [], "read users": ROLES[1:6], "change users": [], "change tokens": [],
    "change nodes": [], "review ions": ["approver", "operator", "ml-engineer"],
}
OF_PLATFORM = {"operate nodes", "change queues", "create projects", "read users", "change users", "change tokens", "change nodes"}
RIGHTS = [*MATRIX]


def roles():
    return [{"name": role, "is_of_projects": role != "member",
             "rights": [right for right, who in MATRIX.items() if role == "admin" or role in who],
             "project_rights": [right for right, who in MATRIX.items() if right not in OF_PLATFORM and (role == "admin" or role in who)]}
            for role in ROLES]


def amounts(accelerators, cpus=0, memory=0):
    return {"accelerators": accelerators, "cpus": cpus, "memory": memory}


def queue(name, project, guarantee, limit, used, waiting=0, **more):
    return {"name": name, "parent": None, "project": project, "priority": 100, "times": None, "min_run_ms": -1, "idle_after_ms": -1,
            "shares": {"accelerators": {"guarantee": guarantee, "limit": limit, "weight": 1}}, "created_ms": made.rfc3339(0), "is_set": True,
            "fair_share": amounts(guarantee), "used": amounts(used), "borrowed": amounts(max(0, used - guarantee)), "waiting": amounts(waiting),
            "n_running": used, "n_waiting": int(waiting > 0), **more}


def queues():
    """Two projects that share the two devices of rack1-a: one has both, the other waits for its own."""
    return [queue("default", "default", 1, 2, 2), queue("speech", "speech", 1, None, 0, 1)]


def what_if(state, change):
    counts = {"starts": 0, "waits": 1, "stays": 1, "evicted": 0}
    job = {"id": state.jobs[2]["id"], "name": state.jobs[2]["name"], "project": "default", "queue": "default", "before": "waits", "after": "starts",
           "why_before": "", "why_after": "on rack1-a"}
    is_more = "first" in change or change.get("shares", {}).get("accelerators", {}).get("guarantee", 0) > 1
    return {"before": counts, "after": {**counts, "starts": int(is_more), "waits": 1 - is_more}, "jobs": [job] if is_more else []}


def find(state, path, parts, query):
    """What a GET of one of these answers; None: it is none of these."""
    if path == "roles":
        return roles()
    if path == "queues":
        return state.queues
    if parts[0] == "queues":
        return next((one for one in state.queues if one["name"] == parts[1]), None)
    return None


def change(state, method, parts, body):
    """What a change of one of these answers; None: it is none of these."""
    if parts == ["what-if"]:
        return what_if(state, body)
    if parts[0] == "queues":
        state.queues = [one for one in state.queues if one["name"] != parts[1] or method != "DELETE"]
        found = next((one for one in state.queues if one["name"] == parts[1]), None)
        if method == "PUT" and found is None:
            state.queues.append(queue(parts[1], body.get("project"), 0, None, 0))
        elif method == "PUT":
            found.update(body)
        return {}
    return None

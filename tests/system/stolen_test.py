"""Stolen tokens: what a hostile job asks of the server with each kind of token, dead or alive, is refused.

REQUESTS says who may do what, apart from the code: the least role that may, or nobody. A dead token is refused
everything, of every route that is not open; one that lives, everything of REQUESTS that its role or scope does not cover.
The table of requests, thefts and answers
is printed."""
import hashlib
import http.cookiejar
import json
import os
import pathlib
import re
import secrets
import subprocess
import sys
import threading
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request
import uuid

import harness
from harness import WEIR, Server, small_model, wait_until

ENDED = ("SUCCEEDED", "FAILED", "CANCELLED")
ROLES = ("viewer", "operator", "ml-engineer", "admin")
STOLEN = (pathlib.Path(__file__).parent / "stolen_task.py").read_text()
ZERO = "0" * 64
METRICS = {"metrics": [{"key": "loss", "step": 1, "value": 0.5}]}

# (least role, method, path, body): {…} are names of the victim's, filled in by the test. "nobody": only the agent of
# that node, or the task that it belongs to, beside admins.
REQUESTS = [
    ("viewer", "GET", "/session", None), ("viewer", "GET", "/sessions", None), ("viewer", "GET", "/projects", None),
    ("viewer", "GET", "/users", None), ("viewer", "GET", "/tokens", None), ("viewer", "GET", "/kinds", None),
    ("viewer", "GET", "/nodes", None), ("viewer", "GET", "/health/summary", None), ("viewer", "GET", "/jobs", None),
    ("viewer", "GET", "/jobs/{job}", None), ("viewer", "GET", "/jobs/{job}/tasks", None),
    ("viewer", "GET", "/tasks/{task}/log", None), ("viewer", "GET", "/runs", None), ("viewer", "GET", "/runs/{run}", None),
    ("viewer", "GET", "/runs/{run}/metrics", None), ("viewer", "GET", "/models", None),
    ("viewer", "GET", "/models/{model}/versions/1", None), ("viewer", "GET", "/datasets", None),
    ("viewer", "GET", "/datasets/faces", None), ("viewer", "GET", "/datasets/faces/versions", None),
    ("ml-engineer", "GET", "/datasets/faces/freeze", None), ("viewer", "GET", "/ions", None),
    ("viewer", "GET", "/ions/doors", None), ("viewer", "GET", "/ions/doors/candidates", None),
    ("viewer", "GET", "/ions/doors/policy-decisions", None), ("viewer", "GET", "/ions/doors/replicas", None),
    ("viewer", "GET", "/ions/doors/members", None),
    ("viewer", "GET", "/ions/doors/pipelines/entrance/deployment", None), ("viewer", "GET", "/decisions", None),
    ("viewer", "GET", "/decisions/summary?ion=doors", None), ("viewer", "GET", "/decisions/{decision}", None),
    ("viewer", "GET", "/events", None), ("admin", "GET", "/events?topic=audit", None), ("viewer", "GET", "/alerts", None),
    ("viewer", "GET", "/stream?topics=events", None), ("viewer", "GET", "/store/usage", None),
    ("viewer", "GET", "/retention", None), ("admin", "GET", "/nodes/{node}/desired", None),
    ("admin", "POST", "/users", {"name": "eve", "kind": "person", "role": "admin"}),
    ("admin", "PATCH", "/users/admin", {"role": "viewer"}), ("admin", "DELETE", "/users/ann", None),
    ("admin", "POST", "/projects", {"name": "hers"}),
    ("admin", "POST", "/tokens", {"name": "eve", "role": "admin"}),
    ("admin", "POST", "/tokens", {"name": "eve", "role": "agent", "node": "{node}"}),
    ("admin", "DELETE", "/tokens/{token}", None), ("admin", "POST", "/store/sweep", {}),
    ("admin", "PUT", "/retention", {"audit": "1d"}),
    ("ml-engineer", "POST", "/jobs", {"name": "x", "kind": "command", "spec": {"argv": ["true"]}}),
    ("operator", "POST", "/jobs/{job}/cancel", {}), ("ml-engineer", "POST", "/jobs/{job}/restart", {}),
    ("ml-engineer", "POST", "/jobs/{job}/resume", {}),
    ("nobody", "PUT", "/nodes/{node}", {"cpu_slots": 1}), ("nobody", "PUT", "/nodes/a-first", {"cpu_slots": 999}),
    ("nobody", "PUT", "/tasks/{task}/status", {"attempt": 1, "state": "exited", "exit_code": 0}),
    ("nobody", "POST", "/tasks/{task}/log?offset=0&attempt=1", {"forged": True}),
    ("ml-engineer", "POST", "/datasets", {"name": "hers"}), ("ml-engineer", "POST", "/datasets/faces/versions", {}),
    ("ml-engineer", "PUT", "/datasets/faces/files/eve/1.pgm", {}), ("ml-engineer", "DELETE", "/datasets/faces/files/ann/1.pgm", None),
    ("ml-engineer", "DELETE", "/datasets/faces/files/ann", None), ("ml-engineer", "PATCH", "/runs/{run}", {"status": "FAILED"}),
    ("ml-engineer", "POST", "/runs/{run}/metrics", METRICS),
    ("ml-engineer", "POST", "/models/{model}/versions", {"run": "{run}", "blob": "{blob}", "bytes": 7}),
    ("ml-engineer", "POST", "/ions", {"kind": "ion", "name": "hers", "pipelines": [], "links": []}),
    ("ml-engineer", "DELETE", "/ions/doors", None), ("operator", "POST", "/ions/doors/trigger", {"pipeline": "training"}),
    ("operator", "POST", "/ions/doors/approve", {}), ("operator", "POST", "/ions/doors/reject", {}),
    ("operator", "POST", "/ions/doors/rollback", {}),
    ("operator", "PUT", "/ions/doors/members/eve", {"list": "allow"}),
    ("operator", "DELETE", "/ions/doors/members/ann", None),
    ("nobody", "PUT", "/ions/doors/pipelines/entrance/threshold", {"rule": "x", "deployment_revision": 1, "value": 0.0}),
    ("nobody", "PUT", "/ions/doors/pipelines/entrance/replicas/{job}-0", {"deployment_revision": 1, "state": "serving"}),
    ("nobody", "POST", "/decisions", {"decisions": [{"id": "x", "ion": "doors", "pipeline": "entrance", "camera": "c",
                                                      "frame": 2, "verdict": "grant", "person": "eve"}]}),
    ("nobody", "POST", "/health-reports", {"ion": "doors", "pipeline": "entrance", "kind": "drift", "state": "ok"}),
    ("operator", "POST", "/alerts/{alert}/acknowledge", {}),
    ("viewer", "GET", "/metrics", None), ("viewer", "GET", "/openapi.json", None), ("viewer", "DELETE", "/session", None),
    ("viewer", "POST", "/session/link", {}), ("viewer", "DELETE", "/sessions/{session}", None),
    ("viewer", "GET", "/nodes/{node}", None), ("operator", "PATCH", "/nodes/{node}", {"is_draining": True}),
    ("admin", "DELETE", "/nodes/{node}", None), ("viewer", "GET", "/devices", None), ("admin", "GET", "/node-joins", None),
    ("admin", "POST", "/node-joins", {}), ("viewer", "GET", "/models/{model}", None),
    ("viewer", "GET", "/models/{model}/versions", None), ("viewer", "GET", "/blobs/{blob}", None),
    ("ml-engineer", "PUT", "/blobs/{blob}", {}), ("viewer", "GET", "/decisions/{decision}/image", None),
    ("viewer", "GET", "/queues", None), ("viewer", "GET", "/queues/{queue}", None),
    ("admin", "PUT", "/queues/{queue}", {"project": "default", "shares": {"cpus": {"limit": 0}}}),
    ("admin", "PUT", "/queues/hers", {}), ("admin", "DELETE", "/queues/{queue}", None),
    ("viewer", "POST", "/what-if", {"first": "{job}"}), ("viewer", "GET", "/jobs/{job}/explanation", None),
    ("operator", "PATCH", "/jobs/{job}", {"priority": 999}), ("operator", "POST", "/jobs/{job}/hold", {}), ("operator", "POST", "/jobs/{job}/requeue", {}),
    ("viewer", "GET", "/usage", None), ("viewer", "GET", "/usage?by=job&format=csv", None), ("viewer", "GET", "/usage/queues", None),
    ("viewer", "GET", "/groups", None), ("admin", "POST", "/groups", {"name": "hers"}),
    ("viewer", "GET", "/groups/{group}/members", None), ("admin", "PUT", "/groups/{group}/members/ann", {}),
    ("admin", "DELETE", "/groups/{group}/members/ann", None), ("admin", "DELETE", "/groups/{group}", None),
    ("viewer", "GET", "/projects/default/members", None),
    ("admin", "PUT", "/projects/default/members/user/ann", {"role": "admin"}),
    ("admin", "DELETE", "/projects/default/members/user/ann", None),
    ("admin", "PUT", "/users/ann/password", {"password": "a long new one"}),
]
# Roles beside the row that least, middle and most form: what they may of a higher role's, and what not of a lower one's.
APPROVES = {"POST /ions/doors/approve", "POST /ions/doors/reject"}
OPERATES = APPROVES | {"POST /ions/doors/rollback", "PUT /ions/doors/members/eve", "DELETE /ions/doors/members/ann",
                       "POST /alerts/{alert}/acknowledge", "PATCH /nodes/{node}"}
ASIDE = {"approver": ("viewer", APPROVES, set()), "data-scientist": ("ml-engineer", set(), OPERATES)}
# Who belongs to no project, and whose token is for another one: what is left, beside lists of their own that are empty.
MEMBER = {f"{method} {path}" for _, method, path, _ in REQUESTS
          if path.split("/")[1].split("?")[0] in ("session", "sessions", "tokens", "openapi.json") and method == "GET"} | {
    "GET /kinds", "GET /nodes", "GET /nodes/{node}", "GET /devices", "GET /queues", "DELETE /session", "POST /session/link", "DELETE /sessions/{session}"}
ELSEWHERE = MEMBER | {"GET /projects", "GET /jobs", "GET /runs", "GET /models", "GET /datasets", "GET /ions", "GET /decisions", "GET /decisions/summary?ion=doors", "GET /events",
                      "GET /alerts", "GET /health/summary", "GET /usage", "GET /usage?by=job&format=csv", "GET /usage/queues", "GET /stream?topics=events", "POST /jobs", "POST /datasets", "POST /ions", "PUT /blobs/{blob}"}
NO_PREFIX = ("/metrics",)
UNLISTED = "?"
# Living thefts: what of REQUESTS each may do, beside what its role covers.
OWN = {"a member's token": MEMBER, "another project's token": ELSEWHERE, "a job's own token": {"GET /session", "GET /openapi.json", "GET /blobs/{blob}", "PUT /blobs/{blob}"}, "the token of its node's agent": set(), "the token of another node's agent": set()}
DEAD = ("no token", "a made-up token", "an API token that was revoked", "an API token that has expired",
        "a token of a disabled admin", "a made-up session", "a session that was logged out",
        "a session whose token was revoked", "a session whose token has expired", "a login link, as a token",
        "a login link, as a session", "an API token, as a session", "a session's CSRF value, as a token",
        "a token that a machine joins with", "the token of a job that is over", "a job's token, for another attempt", "a job's token, for another task")
LIVING = (*OWN, "a viewer's token", "a viewer's session", "an operator's token", "an operator's session",
          "an ml-engineer's token", "an ml-engineer's session", "an approver's token", "an approver's session", "a data-scientist's token",
          "a data-scientist's session", "an admin's session, without its CSRF value")


def fill(value, names):
    if isinstance(value, dict):
        return {key: fill(one, names) for key, one in value.items()}
    if isinstance(value, list):
        return [fill(one, names) for one in value]
    return re.sub(r"\{(\w+)\}", lambda match: names[match[1]], value) if isinstance(value, str) else value


class VictimNode:
    """An agent of the test's own, on whose node the victim's tasks are. It goes on speaking."""

    def __init__(self, server, name):
        self.server, self.name, self.slots = server, name, 64
        made = server.post("/tokens", {"name": name, "role": "agent", "user": "agent", "node": name})
        self.secret, self.id = made["secret"], made["id"]
        self.over = threading.Event()
        self.beat()
        self.thread = threading.Thread(target=self.go_on)
        self.thread.start()

    def request(self, method, path, body=None):
        return self.server.request(method, "/api/v1" + path, body, token=self.secret)

    def beat(self):
        self.request("PUT", f"/nodes/{self.name}", {"cpu_slots": self.slots})

    def go_on(self):
        while not self.over.wait(2):
            self.beat()

    def stop(self):
        self.over.set()
        self.thread.join()

    def task_of(self, job):
        def find():
            tasks = self.request("GET", f"/nodes/{self.name}/desired")["tasks"]
            return [task for task in tasks if task["job"] == job]
        return wait_until(find, 20, "a task of " + job)[0]


class Stolen(unittest.TestCase):
    def setUp(self):
        self.server = Server("--no-agent").start()
        self.addCleanup(self.server.stop)
        self.node = VictimNode(self.server, "victim")
        self.addCleanup(self.node.stop)

    def token(self, role, **more):
        return self.server.post("/tokens", {"name": "t", "role": role, **more})

    def command(self, name, argv, **spec):
        return self.server.post("/jobs", {"name": name, "kind": "command", "max_restarts": 0,
                                          "spec": {"argv": argv, **spec}})["id"]

    def make_victim(self):
        """Something of every noun, all of it on the victim's node. Returns the names."""
        server = self.server
        server.post("/users", {"name": "ann", "kind": "person", "role": "viewer"})
        server.request("PUT", "/api/v1/queues/blue", {"project": "default"})
        server.post("/groups", {"name": "night"})
        server.request("PUT", "/api/v1/groups/night/members/ann", {})
        server.request("PUT", "/api/v1/projects/default/members/user/ann", {"role": "viewer"})
        server.post("/datasets", {"name": "faces"})
        server.request("PUT", "/api/v1/datasets/faces/files/ann/1.pgm", b"P5\n1 1\n255\na")
        server.request("PUT", "/api/v1/datasets/faces/files/bob/1.pgm", b"P5\n1 1\n255\nb")
        server.post("/datasets/faces/versions")
        frames = server.root / "frames"
        frames.mkdir()
        server.post("/ions", {"kind": "ion", "name": "doors", "pipelines": [
            {"name": "training", "type": "training", "dataset": "faces", "model": "face-embed"},
            {"name": "entrance", "type": "prediction", "source": {"kind": "directory", "path": str(frames)},
             "gallery": {"dataset": "faces"}}],
            "links": [{"from": "training", "to": "entrance", "policy": "always-update"}]})
        server.post("/ions/doors/trigger", {"pipeline": "training"})
        training = wait_until(lambda: [job for job in server.get("/jobs")["items"] if job["kind"] == "train"], 20,
                              "a training")[0]["id"]
        worker = self.node.task_of(training)["files"]["token"]
        run, model = server.get("/jobs/" + training)["run"], small_model()
        blob = hashlib.sha256(model).hexdigest()
        ask = lambda method, path, body: server.request(method, "/api/v1" + path, body, token=worker)
        ask("PUT", "/blobs/" + blob, model)
        ask("POST", f"/runs/{run}/metrics", METRICS)
        ask("POST", "/models/doors.training/versions", {"id": str(uuid.uuid4()), "run": run, "blob": blob,
                                                        "bytes": len(model), "dataset": "faces", "dataset_version": 1})
        decision = str(uuid.uuid4())
        server.post("/decisions", {"decisions": [{"id": decision, "ion": "doors", "pipeline": "entrance", "replica": "r",
                                                  "camera": "door", "frame": 1, "verdict": "grant", "person": "ann"}]})
        job = self.command("victim", ["true"])
        task = self.node.task_of(job)
        self.node.request("POST", f"/tasks/{task['id']}/log?offset=0&attempt={task['attempt']}", b"precious")
        return {"job": job, "task": task["id"], "run": run, "model": "doors.training", "blob": blob,
                "decision": decision, "node": "victim", "queue": "blue", "group": "night", "token": self.node.id, "alert": str(uuid.uuid4()), "session": str(uuid.uuid4())}

    def start_agent(self):
        """A real one, whose node gets the hostile job; the victim's is full."""
        self.node.slots = 1
        self.node.beat()
        secret = self.token("agent", user="agent", node="hostile")["secret"]
        folder = self.server.root / "agent"
        folder.mkdir()
        (folder / "token").write_text(secret)
        agent = subprocess.Popen([WEIR, "agent", "--server", self.server.url, "--dir", str(folder), "--node", "hostile"],
                                 stderr=subprocess.DEVNULL)
        self.addCleanup(agent.wait)
        self.addCleanup(agent.terminate)
        wait_until(lambda: len(self.server.get("/nodes")["items"]) == 2, 20, "the agent")
        self.agent_dir = folder
        return secret

    def end(self, job):
        return wait_until(lambda: (found := self.server.get(f"/jobs/{job}"))["state"] in ENDED and found, 60, "its end")

    def cookie(self, token, log_out=False):
        """A session's cookie and CSRF value."""
        link = self.server.request("POST", "/api/v1/session/link", {}, token=token)["url"]
        jar = http.cookiejar.CookieJar()
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
        page = opener.open(link).read().decode()
        secret = re.search(r'name=link value="([^"]+)"', page)[1]
        opener.open(self.server.url + "/login", data=urllib.parse.urlencode({"link": secret}).encode())
        session = json.loads(opener.open(self.server.url + "/api/v1/session").read())
        stolen = {"cookie": next(one.value for one in jar if one.name == "weir_session"), "csrf": session["csrf"]}
        if log_out:
            opener.open(urllib.request.Request(self.server.url + "/api/v1/session", method="DELETE",
                                               headers={"X-Weir-Csrf": session["csrf"]}))
        return stolen

    def ended_task_token(self):
        job = self.command("over", ["sh", "-c", "cat token; echo"])
        self.end(job)
        return wait_until(lambda: self.server.weir("logs", job)[1].strip(), 20, "its log")

    def dead(self, own):
        """Tokens of every kind that were good once, or never."""
        revoked = self.token("admin")
        begun = self.token("admin")
        link = self.server.post("/session/link")["url"].partition("link=")[2]
        self.server.post("/users", {"name": "gone", "kind": "person", "role": "admin"})
        expired = self.token("admin", expires_ms=time.time_ns() // 1_000_000 + 1500)
        thefts = {"no token": {}, "a made-up token": {"token": "weir_" + secrets.token_urlsafe(32)},
                  "an API token that was revoked": {"token": revoked["secret"]},
                  "a token of a disabled admin": {"token": self.token("admin", user="gone")["secret"]},
                  "a session that was logged out": self.cookie(self.server.token, log_out=True),
                  "a session whose token was revoked": self.cookie(begun["secret"]),
                  "a session whose token has expired": self.cookie(expired["secret"]),
                  "a made-up session": {"cookie": "weir_" + secrets.token_urlsafe(32)},
                  "a login link, as a token": {"token": link}, "a login link, as a session": {"cookie": link},
                  "an API token, as a session": {"cookie": self.server.token},
                  "an API token that has expired": {"token": expired["secret"]},
                  "a token that a machine joins with": {"token": self.server.post("/node-joins")["secret"]},
                  "a session's CSRF value, as a token": {"token": self.cookie(self.server.token)["csrf"]},
                  "the token of a job that is over": {"token": self.ended_task_token()}}
        kind, task, attempt, mac = own.split(".")
        thefts["a job's token, for another attempt"] = {"token": f"{kind}.{task}.{int(attempt) + 1}.{mac}"}
        thefts["a job's token, for another task"] = {"token": f"{kind}.{self.names['task']}.{attempt}.{mac}"}
        for one in (revoked, begun):
            self.server.request("DELETE", "/api/v1/tokens/" + one["id"])
        self.server.weir("user", "disable", "gone")
        wait_until(lambda: time.time_ns() // 1_000_000 > expired["expires_ms"] if isinstance(expired["expires_ms"], int)
                   else self.is_refused(expired["secret"]), 20, "the token to expire")
        return thefts

    def is_refused(self, token):
        try:
            self.server.request("GET", "/api/v1/session", token=token)
        except harness.HttpError as error:
            return error.code == 401
        return False

    def unlisted(self):
        """Rows for the other routes: they are asked for with dead tokens alone."""
        rows = []
        for path, operations in self.server.get("/openapi.json")["paths"].items():
            short = path.removeprefix("/api/v1")
            pattern = re.sub(r"\\\{\w+\\\}", "[^/?]+", re.escape(short)) + r"(\?.*)?"
            for method, operation in operations.items():
                is_open = operation.get("security") == []
                if not is_open and not any(one == method.upper() and re.fullmatch(pattern, asked)
                                           for _, one, asked, _ in REQUESTS):
                    rows.append((UNLISTED, method.upper(), re.sub(r"\{\w+\}", str(uuid.uuid4()), short),
                                 None if method in ("get", "delete") else {}))
        return rows

    def may(self, theft, request):
        """Is this no attack, but its right?"""
        least, method, path, _ = request
        if least == UNLISTED:
            return True
        if theft in OWN:
            return f"{method} {path}" in OWN[theft]
        role = theft.split("'s ")[0].split()[-1]
        if "without its CSRF value" in theft and method != "GET":
            return False
        role, more, less = ASIDE.get(role, (role, (), ()))
        if f"{method} {path}" in less:
            return False
        return f"{method} {path}" in more or (least in ROLES and ROLES.index(role) >= ROLES.index(least))

    def run_job(self, requests, thefts):
        targets = json.dumps({"requests": requests, "thefts": thefts})
        job = self.command("hostile", ["python3", "stolen_task.py"], files={"stolen_task.py": STOLEN,
                                                                            "targets.json": targets})
        ended = self.end(job)
        log = wait_until(lambda: self.server.weir("logs", job)[1], 20, "its log")
        self.assertEqual(ended["state"], "SUCCEEDED", log[-2000:])
        return {row["theft"]: row["answers"] for row in map(json.loads, log.splitlines())}

    def test_what_is_asked_with_a_stolen_token_is_refused(self):
        self.names = self.make_victim()
        agent = self.start_agent()
        holder = self.command("holder", ["sh", "-c", "cat token; echo; exec sleep 1000"])
        own = wait_until(lambda: self.server.weir("logs", holder)[1].strip(), 20, "the token of a job that runs")
        rows = REQUESTS + self.unlisted()
        requests = [[method, ("" if path in NO_PREFIX else "/api/v1") + fill(path, self.names), fill(body, self.names)]
                    for _, method, path, body in rows]
        for method, path, _ in requests[:len(REQUESTS)]:  # what is refused below is there
            if method == "GET" and not path.startswith("/api/v1/stream") and not path.endswith("/image"):
                self.server.request(method, path, raw=True)
        dead = self.dead(own)
        self.assertEqual(set(dead), set(DEAD))
        living = {"a job's own token": {"token": own}, "the token of its node's agent": {"token": agent},
                  "the token of another node's agent": {"token": self.token("agent", user="agent", node="b")["secret"]}}
        for role in (*ROLES[:3], *ASIDE):
            article = "a" if role in ("viewer", "data-scientist") else "an"
            living[f"{article} {role}'s token"] = {"token": self.token(role)["secret"]}
            living[f"{article} {role}'s session"] = self.cookie(self.token(role)["secret"])
        self.server.post("/users", {"name": "mel", "kind": "person", "role": "member"})
        self.server.post("/projects", {"name": "elsewhere"})
        living["a member's token"] = {"token": self.token("ml-engineer", user="mel")["secret"]}
        living["another project's token"] = {"token": self.token("ml-engineer", project="elsewhere")["secret"]}
        admins = self.cookie(self.server.token)
        living["an admin's session, without its CSRF value"] = {"cookie": admins["cookie"]}
        self.assertEqual(set(living), set(LIVING))
        thefts = {**{name: {**theft, "skip": []} for name, theft in dead.items()},
                  **{name: {**theft, "skip": [i for i, one in enumerate(rows) if self.may(name, one)]}
                     for name, theft in living.items()}}
        answers = self.run_job(requests, thefts)
        self.show(rows, answers)
        self.assertEqual(list(answers), list(thefts))
        for theft, codes in answers.items():
            good = (401,) if theft in dead else (401, 403, 404)
            wrong = [(theft, *rows[i][1:3], code) for i, code in enumerate(codes) if code is not None and code not in good]
            self.assertEqual(wrong, [])
        # Nobody was hurt.
        self.assertIn("precious", self.server.weir("logs", self.names["job"])[1])
        self.assertEqual([user["name"] for user in self.server.get("/users")["items"] if user["name"] == "eve"], [])
        self.assertEqual(len(self.server.get("/decisions")["items"]), 1)
        self.assertEqual({node["name"] for node in self.server.get("/nodes")["items"]}, {"victim", "hostile"})

    @staticmethod
    def show(rows, answers):
        for theft, codes in answers.items():
            counts = {code: codes.count(code) for code in sorted({code for code in codes if code is not None})}
            text = ", ".join(f"{count} × {code}" for code, count in counts.items())
            print(f"  {theft:45} {sum(counts.values()):3} requests: {text}", file=sys.stderr)
        for i, (_, method, path, _) in enumerate(rows):
            asked = [codes[i] for codes in answers.values() if codes[i] is not None]
            text = ", ".join(f"{asked.count(code)} × {code}" for code in sorted(set(asked)))
            print(f"  {method:6} {path:60} {text}", file=sys.stderr)


if __name__ == "__main__":
    harness.main()

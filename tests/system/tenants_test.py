"""Two teams on one server: each route is asked by each role of one team for what the other has, and answers nothing of it; what
a role may among its own is compared with a table written by hand. Passwords, groups, tokens of one project."""
import hashlib
import itertools
import json
import os
import pathlib
import random
import re
import unittest
import urllib.error
import urllib.parse
import urllib.request
import uuid

import acts
import harness
from harness import HttpError, Server, small_model, wait_until

ROLES = ("viewer", "approver", "operator", "data-scientist", "ml-engineer", "admin")
ENDED = ("SUCCEEDED", "FAILED", "CANCELLED")
TEAMS = ("red", "blue")
NUMBER = {"red": "1", "blue": "2"}

# Who may do what among their own: (what, method, path, body, roles). {team} and {id…} are filled in.
OWN = [
    ("read jobs", "GET", "/jobs/{job}", None, ROLES),
    ("read a log", "GET", "/tasks/{task}/log", None, ROLES),
    ("read a dataset", "GET", "/datasets/{team}-faces", None, ROLES),
    ("see members", "GET", "/projects/{team}/members", None, ROLES),
    ("make a dataset", "POST", "/datasets", {"name": "{role}-new"}, ("data-scientist", "ml-engineer", "admin")),
    ("change a dataset", "PUT", "/datasets/{team}-faces/files/ann/9.pgm", b"P5\n1 1\n255\na", ("data-scientist", "ml-engineer", "admin")),
    ("see a deployment", "GET", "/deployments/{team}-served", None, ROLES),
    ("change a deployment", "PUT", "/deployments/{team}-served", {"batch_max": 4}, ("data-scientist", "ml-engineer", "admin")),
    ("name a version", "PUT", "/models/{team}-model/aliases/good", {"version": 1}, ("data-scientist", "ml-engineer", "admin")),
    ("submit a job", "POST", "/jobs", {"name": "mine", "kind": "command", "spec": {"argv": ["true"]}},
     ("data-scientist", "ml-engineer", "admin")),
    ("set a secret", "PUT", "/projects/{team}/secrets/{role}", {"value": "x"}, ("data-scientist", "ml-engineer", "admin")),
    ("list secrets", "GET", "/projects/{team}/secrets", None, ("data-scientist", "ml-engineer", "admin")),
    ("cancel a job", "POST", "/jobs/{job}/cancel", {}, ("operator", "data-scientist", "ml-engineer", "admin")),
    ("roll back", "POST", "/ions/{team}-door/rollback", {"version": 1}, ("operator", "ml-engineer", "admin")),
    ("approve", "POST", "/ions/{team}-door/approve", {}, ("approver", "operator", "ml-engineer", "admin")),
    ("bar somebody", "PUT", "/ions/{team}-door/members/ann", {"list": "deny"}, ("operator", "ml-engineer", "admin")),
    ("promote a sandbox", "POST", "/ions/{team}-door/promote", {}, ("operator", "ml-engineer", "admin")),
    ("start a training", "POST", "/ions/{team}-door/trigger", {"pipeline": "nothing"},
     ("operator", "data-scientist", "ml-engineer", "admin")),
    ("delete a snapshot", "DELETE", "/snapshots/{team}-none", None, ("operator", "data-scientist", "ml-engineer", "admin")),
    ("set a rule of alerts", "PUT", "/alert-rules/{team}-rule", {"kinds": ["drift"], "receivers": []}, ("operator", "ml-engineer", "admin")),
    ("silence alerts", "POST", "/alert-silences", {"kinds": ["drift"], "until_ms": 1}, ("operator", "ml-engineer", "admin")),
    ("see rules of alerts", "GET", "/alert-rules/{team}-rule", None, ROLES),
    ("set a receiver of alerts", "PUT", "/alert-receivers/{role}-own", {"kind": "webhook", "options": {"url": "http://127.0.0.1:9/"}}, ()),
    ("give a role", "PUT", "/projects/{team}/members/user/nobody-else", {"role": "viewer"}, ("admin",)),
    ("make a project", "POST", "/projects", {"name": "{role}-own"}, ()),
    ("make a user", "POST", "/users", {"name": "{role}-made", "kind": "person", "role": "viewer"}, ()),
    ("drain a node", "PATCH", "/nodes/{node}", {"is_draining": False}, ()),
    ("sweep the disk", "POST", "/store/sweep", {}, ()),
    ("read the audit", "GET", "/events?topic=audit", None, ()),
    ("read all users", "GET", "/users", None, ()),
    ("read metrics of the platform", "GET", "!/metrics", None, ()),
]
BODIES = {"/jobs": {"name": "x", "kind": "command", "project": "blue", "spec": {"argv": ["true"]}},
          "/datasets": {"name": "stolen", "project": "blue"},
          "/ions": {"kind": "ion", "name": "blue-door", "project": "blue", "pipelines": [], "links": []},
          "/models/{name}/versions": {"blob": "{blob}", "bytes": 5, "run": "{run}"},
          "/runs/{id}/metrics": {"metrics": [{"key": "loss", "step": 9, "value": 1}]},
          "/runs/{id}": {"status": "FAILED"}, "/projects/{name}/members/{kind}/{who}": {"role": "admin"},
          "/ions/{name}/members/{person}": {"list": "deny"}, "/users/{name}/password": {"password": "a long new one"},
          "/ions/{name}/trigger": {"pipeline": "training"}, "/ions/{name}/approve": {}, "/ions/{name}/run": {"times": 1},
          "/ions/{name}/reject": {}, "/ions/{name}/rollback": {"version": 1},
          "/what-if": {"first": "{alive}"}, "/queues/{name}": {"project": "blue"}, "/jobs/{id}": {"priority": 70},
          "/feedback": {"decision": "blue-d", "truth": "ann"}, "/ions/{name}/kpis": {"name": "stolen", "value": 1}, "/ions/{name}/statistics": {"statistics": []}, "/ions/{name}/told": {"about": "data", "title": "stolen", "is_healthy": False},
          "/models/{name}/versions/{version}/baseline": {"features": {}}, "/ions/{name}/pipelines/{pipeline}/windows": {"model": "blue-model", "version": 1, "features": {}},
          "/snapshots": {"name": "stolen", "ion": "blue-door"}, "/blobs/missing": {"project": "blue", "blobs": ["{sent}"]},
          "/experiments": {"name": "stolen", "project": "blue"}, "/projects/{name}/secrets/{secret}": {"value": "stolen"},
          "/groups": {"name": "stolen"}, "/users": {"name": "stolen", "kind": "person", "role": "admin"}}
OPEN = {"/health", "/login", "/login/password", "/api/v1/join", "/api/v1/password-login"}


class Tenants(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--cpu-slots", "16").start()
        cls.addClassCleanup(cls.server.stop)
        wait_until(lambda: cls.server.get("/nodes")["items"], 30, "the node")
        cls.node = cls.server.get("/nodes")["items"][0]["name"]
        cls.document = cls.server.get("/openapi.json")
        cls.tokens, cls.things = {}, {}
        cls.server.post("/users", {"name": "nobody-else", "kind": "person", "role": "member"})
        for team in TEAMS:
            cls.server.post("/projects", {"name": team})
            cls.things[team] = cls.fill(team)
            for role in ROLES:
                cls.tokens[team, role] = cls.make_member(f"{team}-{role}", team, role)

    @classmethod
    def make_member(cls, name, team, role):
        cls.server.post("/users", {"name": name, "kind": "person", "role": "member"})
        cls.server.request("PUT", f"/api/v1/projects/{team}/members/user/{name}", {"role": role})
        return cls.server.post("/tokens", {"name": "t", "user": name, "role": role})["secret"]

    @classmethod
    def fill(cls, team):
        """One of each thing; every identifier of it."""
        server, post = cls.server, cls.server.post
        post("/datasets", {"name": f"{team}-faces", "project": team})
        for person in ("ann", "bob"):
            server.request("PUT", f"/api/v1/datasets/{team}-faces/files/{person}/1.pgm", b"P5\n2 2\n255\n" + team.encode().ljust(4))
        post(f"/datasets/{team}-faces/versions")
        job = post("/jobs", {"name": f"{team}-job", "kind": "command", "project": team,
                             "spec": {"argv": ["echo", f"{team}-secret-words"]}})["id"]
        wait_until(lambda: server.get(f"/jobs/{job}")["state"] in ENDED, 60, "the job's end")
        train = post("/jobs", {"name": f"{team}-train", "kind": "train", "project": team,
                               "spec": {"model": "lenet", "dataset": f"{team}-faces"}})["id"]
        run = server.get(f"/jobs/{train}")["run"]
        server.request("POST", f"/api/v1/runs/{run}/metrics", {"metrics": [{"key": "loss", "step": 1, "value": 0.5}]})
        post(f"/jobs/{train}/cancel")
        wait_until(lambda: server.get(f"/jobs/{train}")["state"] in ENDED, 60, "the training's end")
        model = small_model(team)
        blob = hashlib.sha256(model).hexdigest()
        server.request("PUT", "/api/v1/blobs/" + blob, model)
        version = f"0190a0b0-0000-7000-8000-00000000000{NUMBER[team]}"
        post(f"/models/{team}-model/versions", {"id": version, "blob": blob, "bytes": len(model), "run": run})
        server.request("PUT", f"/api/v1/models/{team}-model/aliases/best", {"version": 1})
        server.request("PUT", f"/api/v1/deployments/{team}-served", {"model": f"{team}-model", "replicas": "0..1"})
        post("/ions", {"kind": "ion", "name": f"{team}-door", "project": team,
                       "pipelines": [{"name": "training", "type": "training", "model": "face-embed", "dataset": f"{team}-faces"},
                                     {"name": "entrance", "type": "prediction", "gallery": {"dataset": f"{team}-faces"},
                                      "source": {"kind": "http", "listen": "127.0.0.1:0"}}],
                       "links": [{"from": "training", "to": "entrance", "policy": "manual"}]})
        post("/decisions", {"decisions": [{"ion": f"{team}-door", "pipeline": "entrance", "replica": "r", "camera": "c", "id": f"{team}-d",
                                           "frame": 1, "time_ms": "2026-01-31T10:00:00.000Z", "verdict": "unknown", "score": 0.3,
                                           "threshold": 0.6, "latency_us": 900}]})
        post("/snapshots", {"name": f"{team}-monday", "ion": f"{team}-door"})
        server.request("PUT", f"/api/v1/alert-rules/{team}-rule", {"project": team, "kinds": ["drift"], "receivers": []})
        task = server.get(f"/jobs/{job}/tasks")["items"][0]["id"]
        alive = post("/jobs", {"name": f"{team}-alive", "kind": "command", "project": team, "spec": {"argv": ["sleep", "1000"]}})["id"]
        wait_until(lambda: server.get(f"/jobs/{alive}")["state"] == "RUNNING", 60, "a job that lives")
        experiment = str(post("/experiments", {"name": f"{team}-experiment", "project": team})["id"])
        server.request("PUT", f"/api/v1/runs/{run}/artifacts/deep/left.txt", f"{team}-left".encode())
        server.request("PUT", f"/api/v1/projects/{team}/secrets/{team}-password", {"value": f"{team}-secret-words"})
        sweep = post("/sweeps", {"name": f"{team}-sweep", "project": team, "trials": 1, "parameters": {"a": [1]},
                                 "goal": {"metric": "loss", "direction": "minimize"},
                                 "job": {"kind": "command", "spec": {"argv": ["true"]}}})["id"]
        wait_until(lambda: server.get(f"/sweeps/{sweep}")["state"] in ENDED, 60, "the sweep's end")
        file = f"{team}-file".encode()
        sent = hashlib.sha256(file).hexdigest()
        server.request("PUT", f"/api/v1/blobs/{sent}?project={team}", file)
        return {"job": job, "train": train, "run": run, "blob": blob, "task": task, "version": version, "alive": alive, "sent": sent,
                "sweep": sweep, "_experiment": experiment}

    def ask(self, method, path, token, body=None):
        """(status, text)"""
        path = path[1:] if path.startswith("!") else "/api/v1" + path
        try:
            return 200, self.server.request(method, path, body, token=token, raw=True).decode(errors="replace")
        except HttpError as error:
            return error.code, error.body

    def path_of(self, pattern, team):
        """The route's path for what the team has."""
        things, noun = self.things[team], pattern.split("/")[3] if pattern.startswith("/api/v1/") else ""
        values = {"datasets": f"{team}-faces", "models": f"{team}-model", "ions": f"{team}-door", "deployments": f"{team}-served", "snapshots": f"{team}-monday", "alert-rules": f"{team}-rule", "projects": team, "nodes": self.node,
                  "users": f"{team}-viewer", "groups": "all"}
        ids = {"jobs": things["job"], "runs": things["run"], "tasks": things["task"], "decisions": f"{team}-d",
               "experiments": things["_experiment"], "sweeps": things["sweep"]}
        fills = {"{name}": values.get(noun, "x"), "{id}": ids.get(noun, "x"), "{version}": "1", "{sha256}": things["blob"],
                 "{class}": "ann", "{file}": "1.pgm", "{person}": "ann", "{pipeline}": "entrance", "{replica}": "r", "{kind}": "user", "{alias}": "best",
                 "{who}": "red-viewer", "{user}": "red-viewer", "{path}": "deep/left.txt", "{secret}": f"{team}-password", "{number}": "1"}
        for name, value in fills.items():
            pattern = pattern.replace(name, value)
        return pattern

    def marks(self, team):
        """What only this team's things have in them."""
        return [*(value for name, value in self.things[team].items() if name[0] != "_"), f"{team}-left", f"{team}-password",
                f"{team}-experiment", f"{team}-sweep", f"{team}-faces", f"{team}-door", f"{team}-model", f"{team}-secret-words", f"{team}-d",
                f"{team}-job", f"{team}-train", f"{team}-alive", f"{team}-served", f"{team}-monday", f"{team}-rule"]

    def snapshot(self, team):
        """All that an admin of the platform reads of a team's."""
        paths = (f"/datasets/{team}-faces", f"/datasets/{team}-faces/versions", f"/jobs?project={team}", f"/runs?project={team}",
                 f"/models/{team}-model/versions", f"/models/{team}-model/aliases", f"/ions/{team}-door", f"/ions/{team}-door/members", f"/ions/{team}-door/health?since=2020-01-01T00:00:00Z", f"/feedback?ion={team}-door", f"/ions/{team}-door/drift?since=2020-01-01T00:00:00Z&until=2021-01-01T00:00:00Z", f"/projects/{team}/members",
                 f"/runs/{self.things[team]['run']}/metrics", f"/runs/{self.things[team]['run']}/artifacts?path=deep",
                 f"/experiments?project={team}", f"/projects/{team}/secrets")
        changing = r'"(last_seen_ms|health|revision|used_ms)":[^,}]*|"system/[a-z0-9_/]*": [^,}]*(, )?'  # what tasks use comes as they run
        return [re.sub(changing, "", json.dumps(self.server.get(path))) for path in paths]

    def test_1_no_route_shows_or_changes_what_another_team_has(self):
        before, asked = self.snapshot("blue"), 0
        for role in ROLES:
            token = self.tokens["red", role]
            for pattern, operations in self.document["paths"].items():
                for method in ("get", "put", "post", "patch", "delete"):
                    if method not in operations or pattern in OPEN or pattern.endswith(("/session", "/session/link", "/stream", "/openapi.json")):
                        continue
                    body = BODIES.get(pattern.removeprefix("/api/v1"), {}) if method != "get" else None
                    if body:
                        body = json.loads(json.dumps(body).replace("{blob}", self.things["blue"]["blob"]).replace("{run}", self.things["blue"]["run"])
                                          .replace("{alive}", self.things["blue"]["alive"]).replace("{sent}", self.things["blue"]["sent"]))
                    status, text = self.ask(method.upper(), "!" + self.path_of(pattern, "blue"), token, body)
                    asked += 1
                    where = f"{role}: {method.upper()} {pattern}: {status} {text[:300]}"
                    self.assertLess(status, 500, where)
                    if status < 300:
                        for mark in self.marks("blue"):
                            self.assertNotIn(mark, text, where)
                    if "{" in pattern and not pattern.startswith(("/api/v1/nodes", "/api/v1/users", "/api/v1/groups", "/api/v1/tokens",
                                                                  "/api/v1/sessions", "/api/v1/alerts", "/api/v1/queues")):
                        refusals = (403, 404, 422) if "blobs" in pattern and method == "put" else (403, 404)
                        is_empty = method == "get" and status == 200 and json.loads(text).get("items") == []
                        self.assertTrue(status in refusals or is_empty, where)
        self.assertGreater(asked, 500)
        self.assertEqual(before, self.snapshot("blue"))

    def test_2_each_role_may_among_its_own_what_the_table_says(self):
        things = {"team": "red", "node": self.node, **self.things["red"]}
        for what, method, path, body, may in OWN:
            for role in ROLES:
                text = path
                for name, value in things.items():
                    text = text.replace("{" + name + "}", value)
                sent = json.loads(json.dumps(body).replace("{role}", role)) if isinstance(body, dict) else body
                status, answer = self.ask(method, text, self.tokens["red", role], sent)
                self.assertEqual(status != 403, role in may, f"{role}: {what}: {status} {answer[:200]}")

    def test_3_one_sees_ones_own_and_streams_tell_nothing_of_others(self):
        token = self.tokens["red", "viewer"]
        for path, own in (("/jobs", self.things["red"]["job"]), ("/runs", self.things["red"]["run"]), ("/datasets", "red-faces"),
                          ("/ions", "red-door"), ("/models", "red-model"), ("/deployments", "red-served"), ("/decisions", "red-d"), ("/projects", "red"),
                          ("/events", "red-faces")):
            status, text = self.ask("GET", path, token)
            self.assertEqual(status, 200)
            self.assertIn(own, text, path)
        request = urllib.request.Request(self.server.url + "/api/v1/stream?topics=events,jobs,runs,decisions,models,ions",
                                         headers={"Authorization": "Bearer " + token})
        stream = urllib.request.urlopen(request, timeout=30)  # answered: from here on it hears of everything
        self.addCleanup(stream.close)
        for team in ("blue", "red"):
            self.server.post("/jobs", {"name": f"{team}-streamed", "kind": "command", "project": team, "spec": {"argv": ["true"]}})
        self.server.post(f"/datasets/blue-faces/versions")
        self.server.request("PUT", "/api/v1/ions/red-door/members/bob", {"list": "allow"})
        seen = b""
        while b"red-door" not in seen:
            seen += stream.readline()
        self.assertNotIn(b"blue", seen)

    def test_3_what_the_cluster_does_for_others_is_counted_and_not_named(self):
        """Jobs of both teams that wait for the same node: whoever asks what would help sees their own."""
        for job in self.server.get("/jobs?limit=1000")["items"]:  # of the tests before: they would take the node
            if job["state"] not in ENDED and not job["name"].endswith("-alive"):
                status, answer = self.ask("POST", f"/jobs/{job['id']}/cancel", self.server.token, {})
                self.assertIn(status, (200, 409), answer)  # or it is over by now
        slots = self.server.get("/nodes")["items"][0]["cpu_slots"]
        waiting = {}
        for team in TEAMS:
            waiting[team] = self.server.post("/jobs", {"name": f"{team}-waits", "kind": "command", "project": team,
                                                       "spec": {"argv": ["true"], "resources": {"cpus": slots}}})["id"]
            self.addCleanup(self.server.post, f"/jobs/{waiting[team]}/cancel")
        more = {"add_node": self.node, "n_nodes": 2}
        everything = json.loads(self.ask("POST", "/what-if", self.server.token, more)[1])
        self.assertEqual({job["name"] for job in everything["jobs"]}, {"red-waits", "blue-waits"})
        self.assertEqual(everything["n_others"], 0)
        for role in ROLES:
            token = self.tokens["red", role]
            status, text = self.ask("POST", "/what-if", token, more)
            answer = json.loads(text)
            self.assertEqual((status, [job["name"] for job in answer["jobs"]], answer["n_others"]), (200, ["red-waits"], 1), text)
            for mark in ("blue", waiting["blue"], self.things["blue"]["alive"]):
                self.assertNotIn(mark, text)
            for path in ("/queues", "/devices", f"/nodes/{self.node}", f"/jobs/{waiting['red']}/explanation", f"/jobs/{waiting['red']}"):
                status, text = self.ask("GET", path, token)
                self.assertEqual(status, 200, path)
                self.assertNotIn("blue", text, path)
            queues = json.loads(self.ask("GET", "/queues", token)[1])
            self.assertEqual(([queue["name"] for queue in queues["items"]], queues["others"]["n_queues"]), (["red"], 1))
            for path in (f"/queues/blue", f"/jobs/{waiting['blue']}/explanation"):
                self.assertEqual(self.ask("GET", path, token)[0], 404, path)
            for body in ({"first": waiting["blue"]}, {"queue": "blue", "shares": {}}):
                self.assertEqual(self.ask("POST", "/what-if", token, body)[0], 404)
            for act in ("hold", "requeue", "resume", "cancel"):
                self.assertIn(self.ask("POST", f"/jobs/{waiting['blue']}/{act}", token, {})[0], (403, 404))

    def test_4_groups_give_and_take_at_once(self):
        weir = self.server.weir
        self.server.post("/users", {"name": "gil", "kind": "person", "role": "member"})
        token = self.server.post("/tokens", {"name": "t", "user": "gil", "role": "viewer"})["secret"]
        self.assertEqual(self.ask("GET", "/jobs", token)[0], 403)
        weir("group", "create", "night-shift")
        weir("group", "add", "night-shift", "gil")
        weir("project", "grant", "red", "night-shift", "--group", "--role", "ml-engineer")
        self.assertEqual(self.ask("GET", f"/jobs/{self.things['red']['job']}", token)[0], 200)
        self.assertEqual(self.ask("POST", "/datasets", token, {"name": "no"})[0], 403, "the token is a viewer's")
        self.assertIn("night-shift", weir("get", "project-members", "red")[1])
        weir("group", "remove", "night-shift", "gil")
        self.assertEqual(self.ask("GET", "/jobs", token)[0], 403)
        weir("group", "delete", "night-shift")
        self.assertNotIn("night-shift", weir("get", "project-members", "red")[1])

    def test_5_a_password_opens_a_session_or_makes_a_token(self):
        self.make_member("pia", "red", "data-scientist")
        file = self.server.root / "password"
        file.write_text("correct horse battery\n")
        self.server.weir("user", "password", "pia", "--password-file", str(file))
        for user, password in (("pia", "wrong horse battery"), ("nobody", "correct horse battery"), ("pia", ""), ("pia", "x" * 300)):
            with self.assertRaises(HttpError) as refused:
                self.server.request("POST", "/api/v1/password-login", {"user": user, "password": password}, token="")
            self.assertEqual(refused.exception.code, 401)
            self.assertEqual(refused.exception.error["message"], "user and password do not fit")
        page = urllib.parse.urlencode({"password": "correct horse battery", "user": "pia"}).encode()
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        self.assertIn(b"Weir", opener.open(self.server.url + "/login/password", page).read())
        self.assertEqual(json.load(opener.open(self.server.url + "/api/v1/session"))["user"], "pia")
        with self.assertRaises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(self.server.url + "/login/password", page.replace(b"horse", b"house"))
        self.assertIn(b"do not fit", refused.exception.read())
        made = json.loads(self.server.weir("login", "--user", "pia", "--password-file", str(file), "--project", "red", "-o", "json")[1])
        self.assertEqual(self.ask("GET", f"/jobs/{self.things['red']['job']}", made["secret"])[0], 200)
        self.assertEqual(self.ask("POST", "/jobs", made["secret"], {"name": "p", "kind": "command", "spec": {"argv": ["true"]}})[0], 200)
        self.assertIn("in project red you may", self.server.weir("whoami", "--token", made["secret"])[1])
        self.assertEqual(self.ask("PUT", "/users/pia/password", made["secret"], {"password": "another good one"})[0], 403)
        self.assertEqual(self.ask("PUT", "/users/pia/password", made["secret"],
                                  {"password": "another good one", "current": "correct horse battery"})[0], 200)
        for secret in (made["secret"],):  # made with the password of before: it ended with it
            self.assertEqual(self.ask("GET", "/jobs", secret)[0], 401)
        file.write_text("another good one\n")
        self.assertEqual(self.server.weir("login", "--user", "pia", "--password-file", str(file), check=False)[0], 0)
        self.server.weir("user", "disable", "pia")
        self.assertNotEqual(self.server.weir("login", "--user", "pia", "--password-file", str(file), check=False)[0], 0)
        self.assertEqual(self.ask("GET", "/jobs", made["secret"])[0], 401)
        stored = (self.server.state / "weir.db").read_bytes() + (self.server.state / "weir.db-wal").read_bytes()
        self.assertNotIn(b"another good one", stored)

    def test_6_a_token_of_one_project_is_for_that_one(self):
        self.make_member("max", "red", "ml-engineer")
        self.server.request("PUT", "/api/v1/projects/blue/members/user/max", {"role": "viewer"})
        both = self.server.post("/tokens", {"name": "both", "user": "max", "role": "ml-engineer"})["secret"]
        blue = self.server.post("/tokens", {"name": "blue", "user": "max", "role": "ml-engineer", "project": "blue"})["secret"]
        all_of_it = self.server.post("/tokens", {"name": "admins", "role": "admin", "project": "red"})["secret"]
        paths = {team: f"/jobs/{self.things[team]['job']}" for team in TEAMS}
        self.assertEqual([self.ask("GET", paths[team], both)[0] for team in TEAMS], [200, 200])
        self.assertEqual([self.ask("GET", paths[team], blue)[0] for team in TEAMS], [404, 200])
        self.assertEqual([self.ask("GET", paths[team], all_of_it)[0] for team in TEAMS], [200, 404])
        self.assertEqual(self.ask("POST", "/users", all_of_it, {"name": "eve", "kind": "person", "role": "admin"})[0], 403)
        for team, status in (("red", 200), ("blue", 403)):
            self.assertEqual(self.ask("POST", "/datasets", both, {"name": f"max-{team}", "project": team})[0], status)
        status, text = self.ask("POST", "/jobs", both, {"name": "x", "kind": "train", "project": "red",
                                                        "spec": {"model": "lenet", "dataset": "blue-faces"}})
        self.assertIn(status, (400, 403, 404, 422), text)

    def spellings(self, team):
        """Below the state folder, as many ways to write it as there are."""
        state = str(self.server.state)
        link = self.server.root / f"to-{team}"
        link.is_symlink() or link.symlink_to(f"{state}/datasets/{team}-faces")
        text = [f"{state}/datasets/{team}-faces", f"{state}/datasets/{team}-faces/", f"/{state}/datasets/{team}-faces", f"{state}/./datasets//{team}-faces",
                f"{state}/datasets/red-faces/../{team}-faces", f"file://{state}/datasets/{team}-faces", f"../../../../datasets/{team}-faces",
                f"{state}/datasets/{team}-faces/ann/1.pgm", f"{state}/blobs", f"{state}/weir.db", f"{state}/demo/x", state]
        return text, [str(link), f"{self.server.root}/state/datasets/{team}-faces" if "state" not in state else str(link),
                      f"/proc/self/root{state}/datasets/{team}-faces", f"/proc/thread-self/root{state}/datasets/{team}-faces"]

    def test_8_no_path_that_people_name_leads_below_the_state_folder(self):
        token = self.tokens["red", "ml-engineer"]
        train = lambda **spec: {"name": "steal", "kind": "train", "project": "red", "max_restarts": 0, "spec": {"model": "lenet", "batch_size": 1, "epochs": 1, **spec}}
        texts, links = self.spellings("blue")
        ion = lambda **parameters: {"kind": "ion", "name": "red-thief", "project": "red", "links": [], "pipelines": [
            {"name": "training", "type": "training", "model": "lenet", "dataset": "red-faces", "parameters": parameters}]}
        sweep = lambda body: {"name": "thief", "project": "red", "trials": 1, "parameters": {"lr": [0.1]}, "goal": {"metric": "loss", "direction": "minimize"},
                              "job": {key: body[key] for key in ("kind", "spec")}}
        options = ("data", "validation", "weights", "model", "tuning", "output", "checkpoint_dir", "source", "sinks")
        sweeps = []
        for number, (option, path) in enumerate(itertools.product(options, texts)):
            if option in ("source", "sinks"):
                end = {"kind": "directory", "path": path} if option == "source" else [{"kind": "jsonl", "path": path}]
                status, text = self.ask("POST", "/ions", token, {"kind": "ion", "name": "red-thief", "project": "red", "links": [], "pipelines": [
                    {"name": "see", "type": "prediction", "source": {"kind": "http", "listen": "127.0.0.1:0"}, option: end}]}) if path[0] == "/" else (400, "")
                self.assertIn(status, (400, 422), f"{option} {path}: {text[:300]}")
                continue
            body = train(**{option: path} if option == "data" else {"dataset": "red-faces", option: path})
            for where, sent in (("/jobs", body), ("/ions", ion(**{option: path}))):
                if where == "/jobs" or option != "model":
                    status, text = self.ask("POST", where, token, sent)
                    self.assertIn(status, (400, 422), f"{where} {option} {path}: {text[:300]}")
            if number % 11 == 0:
                status, text = self.ask("POST", "/sweeps", token, sweep(body))
                sweeps += [json.loads(text)["id"]] if status == 200 else []
        for one in sweeps:  # each trial is a job, which is refused
            wait_until(lambda: self.server.get(f"/sweeps/{one}")["state"] in ENDED, 30, "the sweep's end")
            self.assertEqual([trial for trial in self.server.get(f"/sweeps/{one}/trials")["items"] if trial["state"] == "SUCCEEDED"], [])
        # A link is the agent's to look at: the task is not started.
        for path in links:
            status, text = self.ask("POST", "/jobs", token, train(data=path))
            self.assertEqual(status, 200, text)
            job = json.loads(text)["id"]
            wait_until(lambda: self.server.get(f"/jobs/{job}")["state"] in ENDED, 60, "the end of " + path)
            ended = self.server.get(f"/jobs/{job}")
            self.assertEqual(ended["state"], "FAILED", path)
            self.assertNotIn("ann", ended["reason"] or "", path)

    def test_8_names_of_another_team_are_found_by_nothing_that_one_starts(self):
        """By jobs, by trials of sweeps and by what IONs start: who stands behind them sees no more there."""
        token = self.tokens["red", "ml-engineer"]
        blue = ({"dataset": "blue-faces"}, {"dataset": "red-faces", "validation": "blue-faces"})
        bodies = [{"kind": "train", "spec": {"model": "lenet", **more}} for more in blue]
        bodies += [{"kind": "command", "spec": {"argv": ["true"], "datasets": ["blue-faces"]}},
                   {"kind": "batch", "spec": {"model": "blue-model", "dataset": "red-faces"}}, {"kind": "batch", "spec": {"model": "red-model", "dataset": "blue-faces"}},
                   {"kind": "measure", "spec": {"model": "blue-model", "dataset": "blue-faces"}}]
        for body in bodies:
            status, text = self.ask("POST", "/jobs", token, {"name": "thief", "project": "red", **body})
            self.assertIn(status, (400, 404, 501), f"{body}: {text}")  # 501: a model of one's own that takes no picture
            status, text = self.ask("POST", "/sweeps", token, {"name": "thief", "project": "red", "trials": 1, "parameters": {"lr": [0.1]},
                                                               "goal": {"metric": "loss", "direction": "minimize"}, "job": body})
            if status == 200:
                sweep = json.loads(text)["id"]
                wait_until(lambda: self.server.get(f"/sweeps/{sweep}")["state"] in ENDED, 30, "the sweep's end")
        for number, more in enumerate(({"parameters": {"validation": "blue-faces"}}, {"kind": "command", "type": "preparation", "parameters": {"argv": ["true"], "datasets": ["blue-faces"]}},
                                       {"kind": "pytorch", "parameters": {"argv": ["true"], "datasets": ["blue-faces"]}})):
            pipeline = {"name": "training", "type": "training", "dataset": "red-faces", **({"model": "lenet"} if "kind" not in more else {}), **more}
            status, text = self.ask("POST", "/ions", token, {"kind": "ion", "name": f"red-thief-{number}", "project": "red", "pipelines": [pipeline], "links": []})
            if status == 200:
                self.ask("POST", f"/ions/red-thief-{number}/trigger", token, {"pipeline": "training"})
                wait_until(lambda: "blue-faces" in json.dumps(self.server.get(f"/ions/red-thief-{number}")) and
                           "there is no dataset" in json.dumps(self.server.get(f"/events?subject=ion/red-thief-{number}")), 30, "the training's failure")
                self.ask("DELETE", f"/ions/red-thief-{number}", token)
        jobs = {job["id"] for job in self.server.get("/jobs?project=red&limit=1000")["items"]}
        for task in self.server.get(f"/nodes/{self.node}/desired")["tasks"]:
            self.assertFalse(task["job"] in jobs and "blue-faces" in json.dumps(task), task)

    def test_8_bytes_belong_to_who_has_sent_them(self):
        red, blue = self.tokens["red", "ml-engineer"], self.tokens["blue", "ml-engineer"]
        manifest = self.server.get("/datasets/blue-faces/versions")["items"][0]["blob"]
        listed = json.loads(self.server.request("GET", f"/api/v1/blobs/{manifest}", raw=True))
        photo = listed["files"][0]["sha256"]
        things = {"photo": photo, "manifest": manifest, "model": self.things["blue"]["blob"], "file": self.things["blue"]["sent"]}
        never = "0" * 64
        for what, sha256 in things.items():
            self.assertEqual(self.ask("GET", f"/blobs/{sha256}", blue)[0], 200, what)
            hidden, none = self.ask("GET", f"/blobs/{sha256}", red), self.ask("GET", f"/blobs/{never}", red)
            self.assertEqual((hidden[0], hidden[1].replace(sha256, never)), none, what)
            for member in ({"blob": sha256}, {"blob": self.things["red"]["blob"], "golden": sha256}):
                body = {"id": str(uuid.uuid4()), "bytes": 1, "project": "red", **member}
                named = self.ask("POST", "/models/red-copy/versions", red, body)
                other = self.ask("POST", "/models/red-copy/versions", red, json.loads(json.dumps(body).replace(sha256, never)))
                self.assertEqual((named[0], named[1]), other, what)
                self.assertIn(named[0], (404, 409), what)
            for spec in ({"code": {"manifest": sha256}}, {"code": {"patch": sha256}}, {"image": "sha256:" + sha256}):
                status, text = self.ask("POST", "/jobs", red, {"name": "thief", "kind": "command", "project": "red", "spec": {"argv": ["true"], **spec}})
                if status == 200:  # an image is fetched by the task, which does not get it
                    job = json.loads(text)["id"]
                    wait_until(lambda: self.server.get(f"/jobs/{job}")["state"] in ENDED + ("PENDING",), 60, "the image's refusal")
                    self.ask("POST", f"/jobs/{job}/cancel", red, {})
            self.assertEqual(self.ask("GET", f"/blobs/{sha256}", red)[0], 404, what + " after it was named")
        # Whoever has the same bytes may send them, and use them as their own: also another team's list of code.
        text = self.server.request("GET", f"/api/v1/blobs/{photo}", raw=True)
        for project, token in (("blue", blue), ("red", red)):
            self.server.request("PUT", f"/api/v1/blobs/{photo}?project={project}", text, token=token)
            tree = f"weir-tree 1\nf\t{photo}\t{len(text)}\tphoto.pgm\n".encode()
            folder = hashlib.sha256(tree).hexdigest()
            self.server.request("PUT", f"/api/v1/blobs/{folder}?project={project}&as=code", tree, token=token)
            if project == "red":  # a file whose bytes are blue's list
                self.server.request("PUT", f"/api/v1/blobs/{folder}?project=red", tree, token=token)
            nested = f"weir-tree 1\nf\t{folder}\t{len(tree)}\tlist\nf\t{photo}\t{len(text)}\tphoto.pgm\n".encode()
            if project == "red":
                name = hashlib.sha256(nested).hexdigest()
                self.server.request("PUT", f"/api/v1/blobs/{name}?project=red&as=code", nested, token=token)
                status, text = self.ask("POST", "/jobs", red, {"name": "same", "kind": "command", "project": "red", "spec": {
                    "argv": ["test", "-s", "list"], "code": {"manifest": name}}})
                self.assertEqual(status, 200, text)
                job = json.loads(text)["id"]
                wait_until(lambda: self.server.get(f"/jobs/{job}")["state"] in ENDED, 60, "the job's end")
                self.assertEqual(self.server.get(f"/jobs/{job}")["state"], "SUCCEEDED", self.server.get(f"/jobs/{job}")["reason"])

    def test_8_another_teams_ion_stops_nobody(self):
        for role, may in (("ml-engineer", True), ("admin", True), ("data-scientist", False)):
            token = self.tokens["red", role]
            body = {"id": str(uuid.uuid4()), "blob": self.things["red"]["blob"], "bytes": 1, "project": "red"}
            self.assertEqual(self.ask("POST", "/models/red-spare/versions", self.server.token, body)[0], 200)
            status, text = self.ask("DELETE", "/models/red-spare/versions/1" if role == "ml-engineer" else "/models/red-spare", token)
            self.assertEqual(status, (204 if False else 200) if may else 403, text)
            self.assertNotIn("blue", text)
            if may and role == "admin":
                break

    def test_8_a_snapshot_shows_what_its_reader_may_read(self):
        self.server.post("/roles", {"name": "ion-reader", "rights": ["read ions"]})
        self.server.post("/roles", {"name": "event-reader", "rights": ["read events"]})
        reader = self.make_member("red-ion-reader", "red", "ion-reader")
        self.assertEqual(self.ask("GET", "/snapshots/red-monday", reader)[0], 200)
        for method, what in (("GET", "export"), ("GET", "state"), ("POST", "replay")):
            self.assertEqual(self.ask(method, f"/snapshots/red-monday/{what}", reader, {} if method == "POST" else None)[0], 403, what)
            self.assertEqual(self.ask(method, f"/snapshots/red-monday/{what}", self.tokens["red", "viewer"], {} if method == "POST" else None)[0], 200, what)
        hears = self.make_member("red-event-reader", "red", "event-reader")
        request = urllib.request.Request(self.server.url + "/api/v1/stream?topics=decisions,events", headers={"Authorization": "Bearer " + hears})
        stream = urllib.request.urlopen(request, timeout=30)
        self.addCleanup(stream.close)
        self.server.post("/decisions", {"decisions": [{"ion": "red-door", "pipeline": "entrance", "replica": "r", "camera": "c", "id": "red-late", "frame": 2,
                                                       "time_ms": "2026-01-31T10:00:01.000Z", "verdict": "unknown", "score": 0.3, "threshold": 0.6, "latency_us": 900}]})
        self.server.request("PUT", "/api/v1/ions/red-door/members/bob", {"list": "deny"})
        seen = b""
        while b"red-door" not in seen or b"event: events" not in seen:
            line = stream.readline()
            self.assertTrue(line, seen)  # it goes on
            seen += line
        self.assertNotIn(b"event: decisions", seen)

    def test_8_who_has_no_project_is_told_of_the_node_and_of_no_job(self):
        self.server.post("/users", {"name": "stranger", "kind": "person", "role": "member"})
        token = self.server.post("/tokens", {"name": "t", "user": "stranger", "role": "viewer"})["secret"]
        status, text = self.ask("POST", "/what-if", token, {"add_node": self.node, "n_nodes": 2})
        answer = json.loads(text)
        self.assertEqual((status, answer["before"], answer["after"], answer["jobs"], answer["n_others"], answer["others"]), (200, {}, {}, [], 0, {}))

    def test_9_a_new_password_ends_what_the_old_one_opened(self):
        self.make_member("ida", "red", "ml-engineer")
        given = self.server.post("/tokens", {"name": "by an admin", "user": "ida", "role": "viewer"})["secret"]
        login = lambda password: self.server.request("POST", "/api/v1/password-login", {"user": "ida", "password": password, "token": "own"}, token="")["secret"]
        self.server.request("PUT", "/api/v1/users/ida/password", {"password": "the first of them"})
        leaked = login("the first of them")
        self.assertEqual(self.ask("GET", "/jobs", leaked)[0], 200)
        self.assertEqual([one["origin"] for one in self.server.get("/tokens?limit=1000")["items"] if one["user"] == "ida" and one["name"] == "own"], ["password"])
        link = self.server.request("POST", "/api/v1/session/link", {}, token=leaked)["url"]
        self.server.request("PUT", "/api/v1/users/ida/password", {"password": "the second of them"})
        self.assertEqual(self.ask("GET", "/jobs", leaked)[0], 401)
        with self.assertRaises(urllib.error.HTTPError):
            urllib.request.urlopen(link)
        self.assertEqual(self.ask("GET", "/jobs", given)[0], 200, "one that an admin made is not the password's")
        self.assertEqual(self.ask("GET", "/jobs", login("the second of them"))[0], 200)

    def test_7_random_acts_have_the_verdict_of_the_model(self):
        seed = int(os.environ.get("WEIR_SEED", random.SystemRandom().randrange(1 << 32)))
        print("seed", seed, flush=True)
        world = acts.World(self.server, seed)
        world.run(int(os.environ.get("WEIR_ACTS", "300")))
        print(world.n, flush=True)
        world.check_audit()
        for what, n in world.n.items():
            self.assertGreater(n, 20, what)


if __name__ == "__main__":
    unittest.main(verbosity=2)

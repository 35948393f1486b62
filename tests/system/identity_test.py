"""Who may do what, tried as an attacker would: tokens, login links, sessions and users."""
import datetime
import hashlib
import http.cookiejar
import json
import re
import sqlite3
import unittest
import urllib.error
import urllib.parse
import urllib.request
import uuid

import harness
from harness import HttpError, Server, small_model, wait_until


def log_in(opener, link):
    """Open the link and press the button of its page."""
    with opener.open(link) as answer:
        page = answer.read().decode()
    secret = re.search(r'name=link value="([^"]+)"', page)[1]
    server = link.partition("/login")[0]
    return opener.open(server + "/login", data=urllib.parse.urlencode({"link": secret}).encode())


class Browser:
    """A browser that opens login links and sends the session's cookie and CSRF value."""

    def __init__(self, server, link):
        self.server = server
        jar = http.cookiejar.CookieJar()
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
        log_in(self.opener, link)
        self.csrf = self.request("GET", "/session")["csrf"]

    def open(self, method, path, body=None):
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self.server.url + "/api/v1" + path, data=data, method=method)
        if method != "GET":
            request.add_header("X-Weir-Csrf", self.csrf)
        return self.opener.open(request, timeout=30)

    def request(self, method, path, body=None):
        try:
            with self.open(method, path, body) as answer:
                text = answer.read()
                return json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            raise HttpError(error.code, error.read().decode(), dict(error.headers)) from None


class IdentityCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--no-agent").start()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def refused(self, code, method, path, body=None, **more):
        with self.assertRaises(HttpError) as caught:
            self.server.request(method, "/api/v1" + path, body, **more)
        self.assertEqual(caught.exception.code, code, caught.exception.body)
        return caught.exception.error["message"]

    def token(self, role="viewer", **more):
        return self.server.post("/tokens", {"name": "t", "role": role, **more})

    def browser(self, secret):
        link = self.server.request("POST", "/api/v1/session/link", {}, token=secret)["url"]
        return Browser(self.server, link)


class Sessions(IdentityCase):
    def browser_is_refused(self, browser, code, method, path, body=None):
        with self.assertRaises(HttpError) as caught:
            browser.request(method, path, body)
        self.assertEqual(caught.exception.code, code, caught.exception.body)
        return caught.exception.error["message"]

    def test_a_viewers_token_becomes_no_admin_session(self):
        made = self.token()
        browser = self.browser(made["secret"])
        self.assertEqual(browser.request("GET", "/session")["role"], "viewer")
        message = self.browser_is_refused(browser, 403, "POST", "/tokens", {"name": "evil", "role": "admin"})
        self.assertIn('this session of "admin" has the role "viewer"', message)
        # Nor does a link that the session makes, or the session of that link.
        link = browser.request("POST", "/session/link", {})["url"]
        self.browser_is_refused(Browser(self.server, link), 403, "GET", "/node-joins")
        message = self.refused(403, "POST", "/tokens", {"name": "evil"}, token=made["secret"])
        self.assertIn('this token of "admin" has the role "viewer"', message)

    def test_sessions_and_links_die_with_their_token(self):
        made = self.token("operator")
        browser = self.browser(made["secret"])
        link = self.server.request("POST", "/api/v1/session/link", {}, token=made["secret"])["url"]
        browser.request("GET", "/jobs")
        self.server.request("DELETE", "/api/v1/tokens/" + made["id"])
        self.browser_is_refused(browser, 401, "GET", "/jobs")
        with self.assertRaises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(link)
        self.assertEqual(caught.exception.code, 401)

    def test_a_session_ends_when_its_token_expires(self):
        made = self.token(expires_ms=harness.time.time_ns() // 1_000_000 + 2000)
        browser = self.browser(made["secret"])
        def is_over():
            try:
                browser.request("GET", "/jobs")
            except HttpError as error:
                return error.code == 401
        wait_until(is_over, 10, "the session to end with its token")

    def test_a_stream_ends_with_its_token(self):
        made = self.token()
        request = urllib.request.Request(self.server.url + "/api/v1/stream?topics=events",
                                         headers={"Authorization": "Bearer " + made["secret"]})
        with urllib.request.urlopen(request, timeout=20) as stream:
            self.server.request("DELETE", "/api/v1/tokens/" + made["id"])
            self.server.post("/jobs", {"name": "unseen", "kind": "command", "spec": {"argv": ["true"]}})
            self.assertNotIn(b"unseen", stream.read())

    def test_looking_at_a_link_does_not_use_it_up(self):
        link = self.server.post("/session/link")["url"]
        for method in ("HEAD", "GET", "GET"):
            urllib.request.urlopen(urllib.request.Request(link, method=method)).read()
        Browser(self.server, link)
        with self.assertRaises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(link)
        self.assertEqual(caught.exception.code, 401)

    def test_another_sites_page_cannot_log_a_browser_in(self):
        link = self.server.post("/session/link")["url"]
        form = urllib.parse.urlencode({"link": link.partition("link=")[2]}).encode()
        for header, value in (("Origin", "https://evil.example"), ("Origin", "null"), ("Sec-Fetch-Site", "cross-site")):
            request = urllib.request.Request(self.server.url + "/login", data=form, headers={header: value})
            with self.assertRaises(urllib.error.HTTPError) as caught:
                urllib.request.urlopen(request)
            self.assertEqual(caught.exception.code, 403, header)
        page = urllib.request.urlopen(link)  # the link is still good, and says whose it is
        self.assertIn("form-action 'self'", page.headers["Content-Security-Policy"])
        self.assertIn(b"Log in as admin", page.read())
        request = urllib.request.Request(self.server.url + "/login", data=form, headers={"Origin": self.server.url})
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
        self.assertEqual(opener.open(request).status, 200)

    def test_sessions_are_listed_and_ended_by_their_user_and_by_an_admin(self):
        self.server.post("/users", {"name": "ann", "kind": "person", "role": "operator"})
        secret = self.token("operator", user="ann")["secret"]
        admin = self.browser(self.server.token)
        ann = self.browser(secret)
        own = ann.request("GET", "/sessions")["items"]
        self.assertEqual([(one["user"], one["role"]) for one in own], [("ann", "operator")])
        self.assertNotIn("csrf", own[0])
        self.assertNotIn("secret_hash", own[0])
        every = {one["id"]: one for one in self.server.get("/sessions")["items"]}
        self.assertIn(own[0]["id"], every)
        admins = next(name for name, one in every.items() if one["role"] == "admin")
        self.browser_is_refused(ann, 404, "DELETE", "/sessions/" + admins)
        # A token of the admin's own that may less does not end it either.
        self.refused(404, "DELETE", "/sessions/" + admins, token=self.token()["secret"])
        admin.request("GET", "/jobs")
        self.assertIn("ann", self.server.weir("get", "sessions")[1])
        self.server.weir("session", "end", own[0]["id"])
        self.browser_is_refused(ann, 401, "GET", "/jobs")
        again = self.browser(secret)
        again.request("DELETE", "/sessions/" + again.request("GET", "/sessions")["items"][0]["id"])
        self.browser_is_refused(again, 401, "GET", "/jobs")


class Users(IdentityCase):
    def test_a_disabled_user_has_lost_tokens_and_sessions_at_once(self):
        self.server.weir("user", "create", "bob", "--role", "operator")
        secret = self.token("operator", user="bob")["secret"]
        browser = self.browser(secret)
        self.server.weir("user", "disable", "bob")
        self.assertIn("disabled", self.refused(401, "GET", "/jobs", token=secret))
        with self.assertRaises(HttpError):
            browser.request("GET", "/jobs")
        self.server.weir("user", "enable", "bob")
        self.server.request("GET", "/api/v1/jobs", token=secret)
        with self.assertRaises(HttpError) as caught:  # its session has ended, not slept
            browser.request("GET", "/jobs")
        self.assertEqual(caught.exception.code, 401)

    def test_a_role_counts_from_the_next_request_on(self):
        self.server.post("/users", {"name": "carl", "kind": "person", "role": "ml-engineer"})
        secret = self.token("ml-engineer", user="carl")["secret"]
        self.server.request("POST", "/api/v1/datasets", {"name": "of-carl"}, token=secret)
        self.server.weir("user", "role", "carl", "viewer")
        self.refused(403, "POST", "/datasets", {"name": "more"}, token=secret)
        status, _, message = self.server.weir("user", "role", "carl", "king", check=False)
        self.assertNotEqual(status, 0)
        self.assertIn("not a role", message)

    def test_the_last_admin_stays(self):
        for change in ({"is_disabled": True}, {"role": "operator"}):
            self.assertIn("last admin", self.refused(409, "PATCH", "/users/admin", change))
        self.assertIn("last admin", self.refused(409, "DELETE", "/users/admin"))
        self.server.post("/users", {"name": "root2", "kind": "person", "role": "admin"})
        secret = self.token("admin", user="root2")["secret"]
        self.server.weir("user", "disable", "admin", "--token", secret)
        self.refused(401, "GET", "/jobs")
        self.assertIn("last admin", self.refused(409, "PATCH", "/users/root2", {"is_disabled": True}, token=secret))
        # A server that starts again does not let it in by a new token.
        self.server.kill(harness.signal.SIGTERM)
        self.server.start()
        self.refused(401, "GET", "/jobs")
        admins = self.server.request("GET", "/api/v1/tokens", token=secret)["items"]
        self.assertEqual(len([one for one in admins if one["user"] == "admin" and one["name"] == "built-in"]), 1)
        self.server.weir("user", "enable", "admin", "--token", secret)
        self.server.request("GET", "/api/v1/jobs")

    def test_who_is_named_somewhere_is_not_deleted(self):
        self.server.post("/users", {"name": "dora", "kind": "person", "role": "ml-engineer"})
        made = self.token("ml-engineer", user="dora")
        job = {"name": "hers", "kind": "command", "spec": {"argv": ["true"]}}
        self.server.request("POST", "/api/v1/jobs", job, token=made["secret"])
        self.assertIn("tokens (1)", self.refused(409, "DELETE", "/users/dora"))
        self.assertIn(made["id"], self.server.weir("token", "revoke", made["id"][-8:])[1])  # as `get tokens` shows it
        self.assertIn("jobs (1): disable", self.refused(409, "DELETE", "/users/dora"))
        self.server.post("/users", {"name": "emil", "kind": "person", "role": "viewer"})
        self.assertIn("deleted", self.server.weir("user", "delete", "emil")[1])
        self.assertNotIn("emil", self.server.weir("get", "users")[1])
        self.refused(404, "DELETE", "/users/emil")
        self.refused(403, "DELETE", "/users/dora", token=self.token()["secret"])


class FakeNode:
    """An agent of the test's own: it registers a node, and sees what should run there."""

    def __init__(self, server, name, slots=8):
        self.server, self.name = server, name
        self.secret = server.post("/tokens", {"name": name, "role": "agent", "user": "agent", "node": name})["secret"]
        self.beat(slots)

    def request(self, method, path, body=None):
        return self.server.request(method, "/api/v1" + path, body, token=self.secret)

    def beat(self, slots=8):
        self.request("PUT", f"/nodes/{self.name}", {"cpu_slots": slots})

    def tasks(self):
        self.beat()
        return self.request("GET", f"/nodes/{self.name}/desired")["tasks"]

    def task_of(self, job):
        found = wait_until(lambda: [task for task in self.tasks() if task["job"] == job and
                                    task["desired"] == "running"], 20, "a task of " + job)
        return found[0]

    def report(self, task, state, **more):
        self.request("PUT", f"/tasks/{task['id']}/status", {"attempt": task["attempt"], "state": state, **more})


def own_token(task):
    return task["files"]["token"]


class Agents(IdentityCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.node = FakeNode(cls.server, "node-a")

    def setUp(self):
        self.node.beat()  # a test before may have restarted the server: who has not spoken since gets nothing

    def submit(self, name, **spec):
        body = {"name": name, "kind": "command", "spec": {"argv": ["true"], **spec}}
        return self.server.post("/jobs", body)["id"]

    def test_an_agent_speaks_for_its_own_node_only(self):
        job = self.submit("hers", cpu_slots=2)  # no other node has so many
        task = self.node.task_of(job)
        other = self.server.post("/tokens", {"name": "b", "role": "agent", "user": "agent", "node": "node-b"})["secret"]
        self.assertIn('bound to node "node-b"', self.refused(403, "GET", "/nodes/node-a/desired", token=other))
        self.refused(403, "PUT", "/nodes/node-a", {"cpu_slots": 999}, token=other)
        self.refused(403, "PUT", "/nodes/a-first", {"cpu_slots": 999}, token=other)
        done = {"attempt": task["attempt"], "state": "exited", "exit_code": 0}
        self.refused(404, "PUT", f"/tasks/{task['id']}/status", done, token=other)
        self.refused(404, "POST", f"/tasks/{task['id']}/log?offset=0&attempt=1", b"forged", token=other)
        self.assertEqual(self.server.get("/jobs/" + job)["state"], "STARTING")
        # Nor may it report an attempt of its own node that was never placed.
        with self.assertRaises(HttpError):
            self.node.report({**task, "attempt": 7}, "exited", exit_code=0)
        self.node.request("POST", f"/tasks/{task['id']}/log?offset=0&attempt=1", b"mine")
        self.node.report(task, "exited", exit_code=0)
        wait_until(lambda: self.server.get("/jobs/" + job)["state"] == "SUCCEEDED", 10, "its end")

    def test_what_no_machine_has_is_refused(self):
        for body in ({"cpu_slots": -5}, {"cpu_slots": 0}, {"cpu_slots": 1 << 40},
                     {"cpu_slots": 1, "memory_bytes": -1}, {"cpu_slots": 1, "memory_bytes": 1 << 60},
                     {"cpu_slots": 1, "n_accelerators": -1}, {"cpu_slots": 1, "agent_version": "x" * 999}):
            self.refused(400, "PUT", "/nodes/node-a", body, token=self.node.secret)
        slots = {node["name"]: node["cpu_slots"] for node in self.server.get("/nodes")["items"]}
        self.assertEqual(slots["node-a"], 8)

    def test_a_token_is_made_for_a_node(self):
        self.assertIn("--node", self.refused(400, "POST", "/tokens", {"name": "x", "role": "agent"}))
        self.assertIn("role agent", self.refused(400, "POST", "/tokens", {"name": "x", "node": "n"}))
        self.refused(400, "POST", "/tokens", {"name": "x", "role": "agent", "node": "No Name"})
        self.assertIn("tasks", self.refused(400, "POST", "/tokens", {"name": "x", "role": "worker"}))
        self.server.weir("token", "create", "c", "--role", "agent", "--user", "agent", "--node", "node-c",
                         "--expires-days", "30")
        made = next(one for one in self.server.get("/tokens")["items"] if one["node"] == "node-c")
        days = datetime.datetime.fromisoformat(made["expires_ms"].rstrip("Z")) - datetime.datetime.fromisoformat(made["created_ms"].rstrip("Z"))
        self.assertEqual(round(days.total_seconds() / 86400), 30)
        self.assertIn("node-c", self.server.weir("get", "tokens")[1])

    def test_an_agent_may_nothing_else(self):
        for path in ("/jobs", "/nodes", "/runs", "/decisions", "/events", "/session", "/blobs/" + "0" * 64):
            self.refused(403, "GET", path, token=self.node.secret)

    def test_a_token_of_before_is_bound_by_its_first_registration(self):
        made = self.server.post("/tokens", {"name": "old", "role": "agent", "user": "agent", "node": "node-old"})
        self.server.kill(harness.signal.SIGTERM)
        with sqlite3.connect(self.server.state / "weir.db") as database:
            database.execute("UPDATE tokens SET node = NULL WHERE id = ?", (made["id"],))
        database.close()
        self.server.start("--no-agent")
        self.assertIn("no node yet", self.refused(403, "GET", "/nodes/node-a/desired", token=made["secret"]))
        # It cannot take a node that has a token.
        self.assertIn("another token", self.refused(409, "PUT", "/nodes/node-a", {"cpu_slots": 1}, token=made["secret"]))
        self.server.request("PUT", "/api/v1/nodes/node-old", {"cpu_slots": 1}, token=made["secret"])
        self.refused(403, "PUT", "/nodes/node-other", {"cpu_slots": 1}, token=made["secret"])
        events = self.server.get("/events?topic=audit&kind=token_bound")["items"]
        self.assertEqual([event["subject"] for event in events], ["token/" + made["id"]])
        self.assertIn("node-old", events[0]["message"])


class Tasks(IdentityCase):
    """The token of a task's attempt: what it may, and when it ends."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        server = cls.server
        cls.node = FakeNode(server, "node-a")
        server.post("/datasets", {"name": "faces"})
        for person in ("ann", "bob"):
            server.request("PUT", f"/api/v1/datasets/faces/files/{person}/1.pgm", b"P5\n1 1\n255\n" + person[:1].encode())
        server.post("/datasets/faces/versions")
        for name in ("doors", "gates"):
            frames = server.root / ("frames-" + name)
            frames.mkdir()
            server.post("/ions", {
                "kind": "ion", "name": name, "pipelines": [
                    {"name": "training", "type": "training", "dataset": "faces", "model": "face-embed"},
                    {"name": "entrance", "type": "prediction", "source": {"kind": "directory", "path": str(frames)},
                     "gallery": {"dataset": "faces"}}],
                "links": [{"from": "training", "to": "entrance", "policy": "always-update"}]})
        cls.training = cls.start_training("doors")
        cls.run_id = server.get("/jobs/" + cls.training["job"])["run"]

    @classmethod
    def start_training(cls, ion):
        cls.server.post(f"/ions/{ion}/trigger", {"pipeline": "training"})
        job = wait_until(lambda: [job for job in cls.server.get("/jobs")["items"]
                                  if job["ion"] == ion and job["kind"] == "train"], 20, "a training")[0]
        return cls.node.task_of(job["id"])

    def as_task(self, task, method, path, body=None):
        return self.server.request(method, "/api/v1" + path, body, token=own_token(task))

    def register(self, task, model, run, name=None):
        blob = hashlib.sha256(model).hexdigest()
        self.as_task(task, "PUT", "/blobs/" + blob, model)
        body = {"id": str(uuid.uuid4()), "run": run, "blob": blob, "bytes": len(model), "dataset": "faces",
                "dataset_version": 1}
        return self.as_task(task, "POST", f"/models/{name or 'doors.training'}/versions", body)

    def test_a_worker_reaches_its_own_run_and_model_only(self):
        mine, other = self.training, self.start_training("gates")
        others_run = self.server.get("/jobs/" + other["job"])["run"]
        self.assertNotEqual(own_token(mine), own_token(other))
        self.assertEqual(self.as_task(mine, "GET", "/session")["role"], "worker")
        self.as_task(mine, "GET", "/runs/" + self.run_id)
        metrics = {"metrics": [{"key": "loss", "step": 1, "value": 0.5}]}
        self.as_task(mine, "POST", f"/runs/{self.run_id}/metrics", metrics)
        for method, path, body in (("GET", "/runs/" + others_run, None), ("PATCH", "/runs/" + others_run, {"status": "FAILED"}),
                                   ("POST", f"/runs/{others_run}/metrics", metrics), ("GET", f"/runs/{others_run}/metrics", None)):
            self.assertIn("own run", self.refused(403, method, path, body, token=own_token(mine)))
        for run, name in ((others_run, "doors.training"), (self.run_id, "gates.training"), (None, "doors.training")):
            with self.assertRaises(HttpError) as caught:
                self.register(mine, b"forged", run, name)
            self.assertEqual(caught.exception.code, 403, caught.exception.body)
        # Not what people may, nor what agents may, nor what replicas may.
        for path in ("/jobs", "/models", "/datasets", "/users", "/events", "/decisions", "/nodes/node-a/desired",
                     "/ions/doors/pipelines/entrance/deployment", "/stream"):
            self.refused(403, "GET", path, token=own_token(mine))
        forged = {"decisions": [{"id": str(uuid.uuid4()), "ion": "doors", "pipeline": "entrance", "camera": "door",
                                 "frame": 1, "verdict": "grant", "person": "mallory"}]}
        self.refused(403, "POST", "/decisions", forged, token=own_token(mine))
        self.assertEqual(self.server.get("/decisions?person=mallory")["items"], [])

    def test_a_replica_reaches_its_own_pipeline_only(self):
        self.assertEqual(self.register(self.training, small_model(), self.run_id)["version"], 1)
        job = wait_until(lambda: [job for job in self.server.get("/jobs")["items"] if job["kind"] == "predict"], 20,
                         "the prediction's job")[0]
        task = self.node.task_of(job["id"])
        self.as_task(task, "GET", "/ions/doors/pipelines/entrance/deployment")
        good = {"id": str(uuid.uuid4()), "ion": "doors", "pipeline": "entrance", "camera": "door", "frame": 1,
                "verdict": "grant", "person": "ann"}
        self.assertEqual(self.as_task(task, "POST", "/decisions", {"decisions": [good]})["stored"], 1)
        sibling = job["id"] + "-1"
        self.assertEqual(task["rank"], 0)
        for change in ({"ion": "gates"}, {"pipeline": "training"}, {"ion": None}, {"replica": sibling}):
            self.refused(403, "POST", "/decisions", {"decisions": [good, {**good, **change}]}, token=own_token(task))
        for change in ({"person": "x\u001b[2J"}, {"person": "x" * 300}, {"camera": "a\nb"}, {"camera": "\u009b1m"},
                       {"verdict": "open"}, {"image": "../../etc"}, {"id": "x" * 99}):
            code = 413 if len(change.get("person", "")) > 256 else 400
            self.refused(code, "POST", "/decisions", {"decisions": [{**good, **change}]}, token=own_token(task))
        for path in ("/ions/gates/pipelines/entrance/deployment", "/ions/doors/pipelines/training/deployment",
                     "/runs/" + self.run_id):
            self.refused(403, "GET", path, token=own_token(task))
        threshold = {"rule": "quantile", "deployment_revision": 1, "value": 0.0}
        self.refused(403, "PUT", "/ions/gates/pipelines/entrance/threshold", threshold, token=own_token(task))
        health = {"ion": "gates", "pipeline": "entrance", "signal": "score", "statistic": "ks", "drifted": True}
        self.refused(403, "POST", "/health-reports", health, token=own_token(task))
        self.as_task(task, "POST", "/health-reports", {**health, "ion": "doors"})
        # Nor in the name of a sibling, of a replica of another job, or of one whose name begins like its own.
        own, mine = job["id"] + "-0", {**health, "ion": "doors"}
        for replica in (sibling, own + "0", str(uuid.uuid4()) + "-0"):
            for method, path, body in (
                    ("PUT", "/ions/doors/pipelines/entrance/replicas/" + replica, {"state": "APPLIED", "revision": 1}),
                    ("PUT", "/ions/doors/pipelines/entrance/threshold", {**threshold, "replica": replica}),
                    ("POST", "/health-reports", {**mine, "replica": replica})):
                self.assertIn("its own replica", self.refused(403, method, path, body, token=own_token(task)))
        self.as_task(task, "PUT", "/ions/doors/pipelines/entrance/replicas/" + own, {"state": "STARTING"})
        self.assertEqual([item["replica"] for item in self.server.get("/ions/doors/replicas")["items"]], [own])
        self.as_task(task, "POST", "/health-reports", {**mine, "replica": own})
        self.as_task(task, "POST", "/decisions", {"decisions": [{**good, "id": str(uuid.uuid4()), "frame": 2, "replica": own}]})

    def test_a_token_dies_with_its_attempt(self):
        job = self.server.post("/jobs", {"name": "short", "kind": "command", "max_restarts": 1,
                                         "spec": {"argv": ["true"]}})["id"]
        first = self.node.task_of(job)
        self.as_task(first, "GET", "/session")
        self.node.report(first, "exited", exit_code=1)
        self.assertIn("over", self.refused(401, "GET", "/session", token=own_token(first)))
        second = wait_until(lambda: next((task for task in self.node.tasks() if task["job"] == job and
                                          task["attempt"] == 2), None), 20, "the second attempt")
        self.assertNotEqual(own_token(first), own_token(second))
        self.refused(401, "GET", "/session", token=own_token(first))
        self.as_task(second, "GET", "/session")
        self.server.post(f"/jobs/{job}/cancel")
        self.as_task(second, "GET", "/session")  # it may hand in what it has until it has ended
        self.node.report(second, "exited", exit_code=0)
        self.refused(401, "GET", "/session", token=own_token(second))

    def test_a_token_outlives_the_server_and_cannot_be_made_up(self):
        good = own_token(self.training)
        word, task, attempt, mac = good.split(".")
        for forged in (f"{word}.{task}.2.{mac}", f"{word}.{task}.{attempt}.{'0' * 64}", f"{word}.{task}.0{attempt}.{mac}",
                       f"{word}.{task}.{attempt}.{mac.upper()}", f"{word}.{task}.{attempt}", f"{word}.{'x' * 500}", word + ".",
                       good + "0", good + "." + mac):
            self.assertIn("not valid", self.refused(401, "GET", "/session", token=forged))
        self.server.kill()
        self.server.start("--no-agent")
        self.as_task(self.training, "GET", "/session")
        self.assertFalse((self.server.state / "worker.token").exists())


class Secrets(IdentityCase):
    """A value that is given to a job or a source is shown to nobody, the admin included."""
    WORD = "hunter2-is-the-password"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.node = FakeNode(cls.server, "node-a")

    def everything_shown(self):
        """All that GET routes and the command line show of jobs, runs, IONs, events and nodes."""
        shown = []
        for path, operations in self.server.get("/openapi.json")["paths"].items():
            if "get" in operations and "{" not in path and path not in ("/login", "/services/enter", "/api/v1/stream", "/api/v1/decisions/summary"):
                query = "?by=params.argv" if path == "/api/v1/runs/groups" else ""
                shown.append(self.server.request("GET", path + query, raw=True).decode())
        for job in self.server.get("/jobs")["items"]:
            shown += [json.dumps(self.server.get("/jobs/" + job["id"])), json.dumps(self.server.get(f"/jobs/{job['id']}/tasks")),
                      self.server.weir("describe", "job", job["id"])[1]]
        for ion in self.server.get("/ions")["items"]:
            shown += [json.dumps(self.server.get("/ions/" + ion["name"])), self.server.weir("describe", "ion", ion["name"])[1]]
        return shown + [json.dumps(self.server.get("/nodes/node-a/desired")), self.server.log_text()]

    def assert_hidden(self):
        for text in self.everything_shown():
            self.assertNotIn(self.WORD, text)

    def test_environment_and_files_of_a_job_are_masked(self):
        spec = {"argv": ["true"], "env": {"DB_PASSWORD": self.WORD}, "files": {"key.pem": self.WORD}}
        stream = urllib.request.urlopen(urllib.request.Request(
            self.server.url + "/api/v1/stream?topics=events,jobs", headers={"Authorization": "Bearer " + self.server.token}), timeout=20)
        made = self.server.post("/jobs", {"name": "with-secrets", "kind": "command", "spec": spec})
        with stream:
            seen = b""
            while b"with-secrets" not in seen or b"event: jobs" not in seen:
                seen += stream.readline()
        self.assertNotIn(self.WORD.encode(), seen)
        masked = {"DB_PASSWORD": "***"}
        self.assertEqual((made["spec"]["env"], made["spec"]["files"]), (masked, {"key.pem": "***"}))
        self.assertEqual(self.server.get("/jobs/" + made["id"])["spec"]["env"], masked)
        # Its agent gets them, and only it does.
        task = self.node.task_of(made["id"])
        self.assertEqual((task["env"]["DB_PASSWORD"], task["files"]["key.pem"]), (self.WORD, self.WORD))
        self.assertEqual(self.server.get("/nodes/node-a/desired")["tasks"][0]["files"]["token"], "***")
        self.assert_hidden()
        # What was shown is no value to start with.
        message = self.refused(400, "POST", "/jobs", {"name": "again", "kind": "command", "spec": made["spec"]})
        self.assertIn("$.spec.env.DB_PASSWORD", message)

    def test_the_token_of_a_source_is_masked_and_kept(self):
        server = self.server
        server.post("/datasets", {"name": "faces"})
        for person in ("ann", "bob"):
            server.request("PUT", f"/api/v1/datasets/faces/files/{person}/1.pgm", b"P5\n1 1\n255\n" + person[:1].encode())
        server.post("/datasets/faces/versions")
        def document(token, name="entrance"):
            return {"kind": "ion", "name": "doors", "pipelines": [
                {"name": "training", "type": "training", "dataset": "faces", "model": "face-embed"},
                {"name": name, "type": "prediction", "gallery": {"dataset": "faces"},
                 "source": {"kind": "http", "listen": "127.0.0.1:0", "token": token}}],
                "links": [{"from": "training", "to": name, "policy": "always-update"}]}
        server.post("/ions", document(self.WORD))
        shown = server.get("/ions/doors")
        self.assertEqual(shown["document"]["pipelines"][1]["source"]["token"], "***")
        self.assert_hidden()
        # The document as it was fetched, with a change: the token stays what it was.
        again = shown["document"]
        again["pipelines"][0]["triggers"] = {"schedule": "0 0 3 * * *"}
        self.assertEqual(server.post("/ions", again)["revision"], 2)
        server.post("/ions/doors/trigger", {"pipeline": "training"})
        training = wait_until(lambda: [job for job in server.get("/jobs")["items"] if job["kind"] == "train"], 20, "a training")[0]
        task = self.node.task_of(training["id"])
        model = small_model()
        blob = hashlib.sha256(model).hexdigest()
        server.request("PUT", "/api/v1/blobs/" + blob, model, token=own_token(task))
        server.request("POST", "/api/v1/models/doors.training/versions", token=own_token(task), body={
            "id": str(uuid.uuid4()), "run": training["run"], "blob": blob, "dataset": "faces", "dataset_version": 1})
        job = wait_until(lambda: [job for job in server.get("/jobs")["items"] if job["kind"] == "predict"], 20, "a prediction")[0]
        replica = self.node.task_of(job["id"])
        self.assertEqual(json.loads(replica["files"]["spec.json"])["source"]["token"], self.WORD)
        path = "/api/v1/ions/doors/pipelines/entrance/deployment"
        self.assertEqual(server.request("GET", path)["source"]["token"], "***")
        self.assertEqual(server.request("GET", path, token=own_token(replica))["source"]["token"], self.WORD)
        self.assert_hidden()
        self.assertIn("$.pipelines[1].source.token", self.refused(400, "POST", "/ions", document("***", "other")))


class Audit(IdentityCase):
    """Each act of identity, and each refusal, leaves an event with actor and address, for admins."""

    def audit(self, **filters):
        query = "&".join(f"{name}={value}" for name, value in {"topic": "audit", "limit": 1000, **filters}.items())
        return self.server.get("/events?" + query)["items"]

    def test_acts_leave_an_event_with_actor_and_address(self):
        server = self.server
        server.post("/users", {"name": "ann", "kind": "person", "role": "operator"})
        made = self.token("operator", user="ann")
        browser = self.browser(made["secret"])
        session = browser.request("GET", "/sessions")["items"][0]["id"]
        browser.request("DELETE", "/session")
        server.request("PATCH", "/api/v1/users/ann", {"role": "viewer", "is_disabled": True})
        server.request("DELETE", "/api/v1/tokens/" + made["id"])
        server.request("DELETE", "/api/v1/users/ann")
        found = [(event["kind"], event["actor"]) for event in reversed(self.audit())]
        for act in (("user_created", "admin"), ("token_created", "admin"), ("token_used", "ann"), ("login_link_made", "ann"),
                    ("session_begun", "ann"), ("session_ended", "ann"), ("user_changed", "admin"), ("token_revoked", "admin"),
                    ("user_deleted", "admin")):
            self.assertIn(act, found)
        begun = self.audit(subject="session/" + session)
        self.assertEqual([event["kind"] for event in begun], ["session_ended", "session_begun"])
        self.assertEqual((begun[1]["data"]["address"], begun[1]["data"]["token"]), ("127.0.0.1", None))
        used = self.audit(kind="token_used", subject="token/" + made["id"])
        self.assertEqual([event["data"]["address"] for event in used], ["127.0.0.1"])
        for secret in (made["secret"], browser.csrf):
            self.assertNotIn(secret, json.dumps(self.audit()))
        self.assertIn("given this role instead of operator", json.dumps(self.audit(kind="user_changed")))

    def test_refusals_are_counted_and_do_not_fill_the_disk(self):
        server = self.server
        server.post("/users", {"name": "vic", "kind": "person", "role": "viewer"})
        viewer = self.token(user="vic")["secret"]
        link = server.post("/session/link")["url"]
        Browser(server, link)
        before = len(self.audit())
        for _ in range(60):
            self.refused(401, "GET", "/jobs", token="weir_wrong")
            self.refused(401, "GET", "/jobs", token="")
            self.refused(403, "POST", "/users", {"name": "x"}, token=viewer)
            with self.assertRaises(urllib.error.HTTPError):
                urllib.request.urlopen(link)
        events = self.audit()
        self.assertLessEqual(len(events) - before, 8)  # of the first, and at most one for a minute that ended
        kinds = {(event["kind"], event["actor"]) for event in events}
        self.assertLessEqual({("login_refused", "nobody"), ("access_refused", "vic")}, kinds)
        refused = next(event for event in events if event["actor"] == "vic" and event["kind"] == "access_refused")
        self.assertIn('POST /api/v1/users of vic from 127.0.0.1 was refused: ', refused["message"])
        self.assertEqual(refused["severity"], "warning")
        # What was counted is written when the server ends.
        server.kill(harness.signal.SIGTERM)
        server.start("--no-agent")
        counted = [event["data"].get("count", 1) for event in self.audit(kind="access_refused", actor="vic")]
        self.assertEqual(sum(counted), 60)

    def test_admins_read_it_where_they_ask_for_it_and_nobody_else_does(self):
        self.assertIn("right to read audit", self.refused(403, "GET", "/events?topic=audit", token=self.token("ml-engineer")["secret"]))
        self.assertNotIn("audit", {event["topic"] for event in self.server.get("/events?limit=1000")["items"]})
        self.assertEqual(self.server.get("/events?kind=token_created")["items"], [])
        self.assertTrue(self.audit(kind="token_created"))
        request = urllib.request.Request(self.server.url + "/api/v1/stream?topics=events",
                                         headers={"Authorization": "Bearer " + self.server.token, "Last-Event-ID": "0-0"})
        self.server.post("/jobs", {"name": "seen", "kind": "command", "spec": {"argv": ["true"]}})
        with urllib.request.urlopen(request, timeout=20) as stream:
            text = b""
            while b"Job seen" not in text:
                text += stream.readline()
        self.assertNotIn(b"audit", text)


class Proofs(IdentityCase):
    """What an operator turns off proves nothing any more, and the rest goes on."""

    def test_the_operator_chooses_how_people_prove_who_they_are(self):
        server = self.server
        server.post("/users", {"name": "ann", "kind": "person", "role": "viewer"})
        server.request("PUT", "/api/v1/users/ann/password", {"password": "a long password"})
        by_password = {"user": "ann", "password": "a long password"}
        self.assertEqual(server.request("POST", "/api/v1/password-login", by_password, token="")["user"], "ann")
        standing = self.browser(server.token)
        server.kill(harness.signal.SIGTERM)
        server.start("--no-agent", "--proofs", "{kind: link, minutes: 1},token")
        self.assertEqual(server.get("/session")["proofs"], ["link", "token"])
        self.assertIn('turned "password" on', self.refused(501, "POST", "/password-login", by_password, token=""))
        self.assertEqual(standing.request("GET", "/session")["user"], "admin")  # sessions that stand go on
        self.assertEqual(server.post("/session/link")["expires_s"], 60)
        self.assertEqual(self.browser(server.token).request("GET", "/session")["role"], "admin")
        server.kill(harness.signal.SIGTERM)
        for proofs, said in (("password", '"token" must be among them'), ("token,pasword", '"pasword" is none of')):
            status, _, error = server.weir("server", "--no-agent", "--listen", "127.0.0.1:0", "--proofs", proofs, check=False)
            self.assertEqual(status, 2, error)
            self.assertIn("--proofs: " + said, error)
        server.start("--no-agent")


if __name__ == "__main__":
    harness.main()

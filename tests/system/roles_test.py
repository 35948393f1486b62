"""Roles that an admin defines, in a server that runs: given to people, groups and tokens, changed while they are used, over a kill of the
server, and in a database that lost one. What each may is compared with a table written by hand."""
import json
import signal
import sqlite3
import unittest

from harness import HttpError, Server, wait_until

# What "night" may after each change, among these: (method, path, body).
ASKED = {"see the project": ("GET", "/projects/red", None), "read jobs": ("GET", "/jobs", None), "read datasets": ("GET", "/datasets", None),
         "make a dataset": ("POST", "/datasets", {"name": "x", "project": "red"}), "cancel a job": ("POST", "/jobs/{job}/cancel", {}),
         "set a secret": ("PUT", "/projects/red/secrets/s", {"value": "v"}), "give a role": ("PUT", "/projects/red/members/user/bob", {"role": "night"}),
         "read users": ("GET", "/users", None), "define a role": ("POST", "/roles", {"name": "mine", "like": "viewer"}),
         "change its role": ("PUT", "/roles/night", {"like": "admin"}), "make a project": ("POST", "/projects", {"name": "green"})}
CHANGES = [
    ({"rights": ["projects read"]}, {"see the project"}),
    ({"rights": ["projects read", "cancel jobs", "read jobs"]}, {"see the project", "read jobs", "cancel a job"}),
    ({"like": "night", "rights": ["change secrets"], "without": ["cancel jobs"]}, {"see the project", "read jobs", "set a secret"}),
    ({"like": "data-scientist"}, {"see the project", "read jobs", "read datasets", "make a dataset", "cancel a job", "set a secret"}),
    ({"rights": ["grant projects", "projects read"]}, {"see the project", "give a role"}),
    ({"like": "admin"}, {"see the project", "read jobs", "read datasets", "make a dataset", "cancel a job", "set a secret", "give a role"}),
]


class Roles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--cpu-slots", "2").start()
        cls.addClassCleanup(cls.server.stop)
        wait_until(lambda: cls.server.get("/nodes")["items"], 30, "the node")
        for project in ("red", "blue"):
            cls.server.post("/projects", {"name": project})
        cls.tokens = {}
        for name in ("ada", "bob"):
            cls.server.post("/users", {"name": name, "kind": "person", "role": "member"})
            cls.tokens[name] = cls.server.post("/tokens", {"name": "t", "user": name, "role": "admin"})["secret"]

    def ask(self, method, path, token, body=None):
        try:
            return 200, self.server.request(method, "/api/v1" + path, body, token=token, raw=True).decode()
        except HttpError as error:
            return error.code, error.body

    def may(self, token):
        """Those of ASKED that are not refused."""
        job = self.server.post("/jobs", {"name": "j", "kind": "command", "project": "red", "spec": {"argv": ["sleep", "1000"]}})["id"]
        self.addCleanup(self.ask, "POST", f"/jobs/{job}/cancel", self.server.token, {})
        statuses = {what: self.ask(method, path.replace("{job}", job), token, body)[0] for what, (method, path, body) in ASKED.items()}
        self.assertLess(max(statuses.values()), 500)
        self.ask("DELETE", "/datasets/x", self.server.token)
        return {what for what, status in statuses.items() if status not in (403, 404)}

    def test_1_what_a_role_allows_is_what_it_says_after_each_change(self):
        weir = self.server.weir
        weir("role", "create", "night", "--right", "models read", "--description", "On call")
        weir("project", "grant", "red", "ada", "--role", "night")
        self.assertIn("night", weir("get", "project-members", "red")[1])
        for change, expected in CHANGES:
            self.server.request("PUT", "/api/v1/roles/night", change)
            self.assertEqual(self.may(self.tokens["ada"]), expected, change)
            self.assertEqual(self.may(self.tokens["bob"]) - expected, set(), "who was given it, at most, has it too")
            self.ask("DELETE", "/projects/red/members/user/bob", self.server.token)
            self.assertEqual(self.ask("GET", "/projects/blue", self.tokens["ada"])[0], 404 if "see the project" in expected else 403)

    def test_2_it_is_there_after_a_kill(self):
        self.server.request("PUT", "/api/v1/roles/night", CHANGES[1][0])
        before = self.server.get("/roles/night")
        self.server.kill()
        self.server.start()
        wait_until(lambda: self.server.get("/nodes")["items"], 30, "the node")
        self.assertEqual(self.server.get("/roles/night"), before)
        self.assertEqual(self.may(self.tokens["ada"]), CHANGES[1][1])

    def test_3_it_goes_when_nobody_has_it(self):
        weir = self.server.weir
        weir("group", "create", "team")
        weir("project", "grant", "blue", "team", "--group", "--role", "night")
        weir("token", "create", "ci", "--user", "ada", "--role", "night")
        code, out, err = weir("role", "delete", "night", check=False)
        self.assertNotEqual(code, 0)
        for holder in ("user ada in project red", "group team in project blue", "token ci of ada"):
            self.assertIn(holder, out + err)

    def test_4_who_has_a_role_that_is_gone_has_nothing_and_is_told(self):
        """As after putting back a database of another time."""
        self.server.kill(signal.SIGTERM)
        with sqlite3.connect(self.server.state / "weir.db") as database:
            database.execute("DELETE FROM custom_roles")
        database.close()
        self.server.start()
        wait_until(lambda: self.server.get("/nodes")["items"], 30, "the node")
        self.assertEqual(self.may(self.tokens["ada"]), set())
        status, text = self.ask("GET", "/jobs", self.tokens["ada"])
        self.assertEqual(status, 403)
        self.assertIn("in project red is gone: it gives no rights", json.loads(text)["error"]["message"])
        self.assertIn("in project red your role night is gone", self.server.weir("whoami", "--token", self.tokens["ada"])[1])
        self.assertIn("the role night is gone", self.server.weir("get", "project-members", "red")[1])
        self.server.weir("role", "create", "night", "--like", "viewer")
        self.assertEqual(self.may(self.tokens["ada"]), {"see the project", "read jobs", "read datasets"})

    def test_5_the_audit_has_each_change(self):
        messages = [event["message"] for event in self.server.get("/audit?kind=role_changed&limit=1000")["items"]]
        self.assertEqual(len(messages), len(CHANGES) + 1)
        self.assertTrue(any("it allows read projects, read jobs, look" in one or "before it allowed read models, look models" in one for one in messages), messages)
        self.assertTrue(all("admin" in one for one in messages), messages)


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""Who may do what, tried as an attacker would: tokens, login links, sessions and users."""
import http.cookiejar
import json
import unittest
import urllib.error
import urllib.request

import harness
from harness import HttpError, Server, wait_until


class Browser:
    """A browser that opens login links and sends the session's cookie and CSRF value."""

    def __init__(self, server, link):
        self.server = server
        jar = http.cookiejar.CookieJar()
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
        self.opener.open(link).read()
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
        self.browser_is_refused(Browser(self.server, link), 403, "GET", "/tokens")
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
        urllib.request.urlopen(urllib.request.Request(link, method="HEAD")).read()
        Browser(self.server, link)

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
        self.server.post("/users", {"name": "carl", "kind": "person", "role": "scientist"})
        secret = self.token("scientist", user="carl")["secret"]
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
        self.server.post("/users", {"name": "dora", "kind": "person", "role": "scientist"})
        made = self.token("scientist", user="dora")
        job = {"name": "hers", "kind": "command", "spec": {"argv": ["true"]}}
        self.server.request("POST", "/api/v1/jobs", job, token=made["secret"])
        self.assertIn("tokens (1)", self.refused(409, "DELETE", "/users/dora"))
        self.server.weir("token", "revoke", made["id"])
        self.assertIn("jobs (1): disable", self.refused(409, "DELETE", "/users/dora"))
        self.server.post("/users", {"name": "emil", "kind": "person", "role": "viewer"})
        self.assertIn("deleted", self.server.weir("user", "delete", "emil")[1])
        self.assertNotIn("emil", self.server.weir("get", "users")[1])
        self.refused(404, "DELETE", "/users/emil")
        self.refused(403, "DELETE", "/users/dora", token=self.token()["secret"])


if __name__ == "__main__":
    harness.main()

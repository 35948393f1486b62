"""The REST API and the command line, as a client sees them."""
import hashlib
import http.cookiejar
import json
import pathlib
import re
import socket
import struct
import subprocess
import tempfile
import unittest
import urllib.error
import urllib.request

import harness
from harness import ROOT, HttpError, Server, small_model, wait_until


def pgm(seed):
    return b"P5\n8 8\n255\n" + bytes((seed * 31 + i * 7) % 256 for i in range(64))


class Api(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--no-agent").start()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def refused(self, code, method, path, body=None, **more):
        with self.assertRaises(HttpError) as caught:
            self.server.request(method, path, body, **more)
        self.assertEqual(caught.exception.code, code, caught.exception.body)
        return caught.exception.error["message"]

    def test_nothing_but_health_and_login_without_identity(self):
        paths = self.server.get("/openapi.json")["paths"]
        self.assertGreater(len(paths), 40)
        for path, operations in paths.items():
            for method in operations:
                concrete = path.replace("{", "").replace("}", "")
                if path in ("/health", "/version", "/login", "/login/{kind}", "/login/{kind}/back", "/api/v1/password-login", "/services/enter", "/api/v1/visits/{id}/place"):
                    continue  # the last asks for a secret of its own
                with self.assertRaises(HttpError) as caught:
                    self.server.request(method.upper(), concrete, token="")
                self.assertEqual(caught.exception.code, 401, (method, path))
        self.assertEqual(self.server.request("GET", "/health", token="")["status"], "ok")
        self.refused(404, "GET", "/services/enter?service=x&nonce=y", token="")
        self.refused(404, "GET", "/api/v1/visits/x/place", token="")
        for page in ("/app.js", "/plot.js", "/dagre.js", "/alerts.js", "/cameras.js", "/clusters.js", "/enrol.js", "/passage.js", "/snapshots.js", "/app.css", "/"):
            with self.assertRaises(urllib.error.HTTPError) as caught:
                urllib.request.urlopen(self.server.url + page)
            self.assertEqual((caught.exception.code, caught.exception.url), (401, self.server.url + "/login"))
            self.assertIn(b"weir login", caught.exception.read())

    def test_every_screen_of_the_console_opens_by_its_address_without_a_project(self):
        """The server's list of screens (src/api/core/page.c) is the one of web/src/screens."""
        text = "".join(file.read_text() for file in sorted((ROOT / "web/src/screens").glob("*.tsx")))
        screens = set(re.findall(r"\baddress: '([a-z]+)['/?]", text))
        self.assertGreaterEqual(len(screens), 18)
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        browser.open(self.server.url + "/login", data=b"link=" + self.server.post("/session/link")["url"].partition("link=")[2].encode())
        html = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
        for screen in sorted(screens):
            address = f"{self.server.url}/{screen}/x?q=1"
            with browser.open(urllib.request.Request(address, headers={"Accept": html})) as answer:
                self.assertEqual((answer.url, answer.headers["Content-Type"]), (address, "text/html; charset=utf-8"))
                self.assertIn(b'id="app"', answer.read())
            with self.assertRaises(urllib.error.HTTPError) as caught:  # who has no session logs in
                urllib.request.urlopen(urllib.request.Request(address, headers={"Accept": html}))
            self.assertEqual((caught.exception.code, caught.exception.url), (401, f"{self.server.url}/login?next=%2F{screen}%2Fx%3Fq%3D1"))
            for accept in ("*/*", "application/json"):
                with self.assertRaises(urllib.error.HTTPError) as caught:
                    urllib.request.urlopen(urllib.request.Request(address, headers={"Accept": accept}))
                self.assertEqual((caught.exception.code, json.load(caught.exception)["error"]["status"]), (404, "NOT_FOUND"))

    def test_wrong_tokens_and_roles_are_refused(self):
        self.assertIn("token", self.refused(401, "GET", "/api/v1/jobs", token="weir_wrong"))
        made = self.server.post("/tokens", {"name": "viewer", "role": "viewer"})
        self.server.request("GET", "/api/v1/jobs", token=made["secret"])
        message = self.refused(403, "POST", "/api/v1/datasets", {"name": "x"}, token=made["secret"])
        self.assertIn("right to change datasets", message)
        self.assertNotIn("secret_hash", json.dumps(self.server.get("/tokens")))
        self.server.request("DELETE", "/api/v1/tokens/" + made["id"])
        self.refused(401, "GET", "/api/v1/jobs", token=made["secret"])

    def test_a_login_link_works_once_and_changes_need_the_csrf_value(self):
        link = self.server.post("/session/link")["url"]
        jar = http.cookiejar.CookieJar()
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
        self.assertIn(b"Log in as admin", browser.open(link).read())
        page = browser.open(self.server.url + "/login", data=b"link=" + link.partition("link=")[2].encode())
        self.assertIn(b"<!doctype html>", page.read().lower())
        cookie = list(jar)[0]
        self.assertTrue(cookie.has_nonstandard_attr("HttpOnly"))
        self.assertEqual(cookie.get_nonstandard_attr("SameSite"), "Strict")
        session = json.load(browser.open(self.server.url + "/api/v1/session"))
        change = urllib.request.Request(self.server.url + "/api/v1/projects", method="POST",
                                        data=b'{"name":"by-browser"}')
        with self.assertRaises(urllib.error.HTTPError) as caught:
            browser.open(change)
        self.assertEqual(caught.exception.code, 403)
        change.add_header("X-Weir-Csrf", session["csrf"])
        self.assertEqual(json.load(browser.open(change))["name"], "by-browser")
        with self.assertRaises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(link)
        self.assertEqual(caught.exception.code, 401)

    def test_a_dataset_is_frozen_by_content(self):
        server = self.server
        server.post("/datasets", {"name": "tiny"})
        files = {("ann", "1.pgm"): pgm(1), ("ann", "2.pgm"): pgm(2), ("bob", "1.pgm"): pgm(3)}
        for (person, name), data in files.items():
            server.request("PUT", f"/api/v1/datasets/tiny/files/{person}/{name}", data)
        first = server.post("/datasets/tiny/versions")
        lines = "".join(f"{hashlib.sha256(data).hexdigest()}  {person}/{name}\n"
                        for (person, name), data in sorted(files.items()))
        self.assertEqual(first["digest"], hashlib.sha256(lines.encode()).hexdigest())
        self.assertEqual((first["version"], first["n_files"], first["n_classes"]), (1, 3, 2))
        self.assertEqual(server.post("/datasets/tiny/versions")["version"], 1)
        server.request("PUT", "/api/v1/datasets/tiny/files/bob/2.pgm", pgm(4))
        self.assertEqual(server.post("/datasets/tiny/versions")["version"], 2)
        manifest = json.loads(server.request("GET", "/api/v1/blobs/" + first["blob"], raw=True))
        self.assertEqual(len(manifest["files"]), 3)
        photo = server.request("GET", "/api/v1/blobs/" + manifest["files"][0]["sha256"], raw=True)
        self.assertEqual(photo, files[("ann", "1.pgm")])
        for wrong in ("..%2F..%2Fetc", ".hidden", "a%2Fb", "%00"):
            with self.assertRaises(HttpError) as caught:
                server.request("PUT", f"/api/v1/datasets/tiny/files/{wrong}/x.pgm", b"x")
            self.assertIn(caught.exception.code, (400, 404), wrong)
        self.assertIn("unknown field", self.refused(400, "POST", "/api/v1/datasets", {"name": "a", "colour": 1}))
        self.assertIn("read-only", self.refused(400, "POST", "/api/v1/datasets", {"name": "a", "created_by": "me"}))
        self.refused(409, "POST", "/api/v1/datasets", {"name": "tiny"})

    def test_blobs_are_what_their_name_says(self):
        data = b"some bytes" * 1000
        name = hashlib.sha256(data).hexdigest()
        self.server.request("PUT", "/api/v1/blobs/" + name, data)
        self.assertEqual(self.server.request("GET", "/api/v1/blobs/" + name, raw=True), data)
        other = hashlib.sha256(b"other").hexdigest()
        self.refused(422, "PUT", "/api/v1/blobs/" + other, data)
        self.refused(404, "GET", "/api/v1/blobs/" + other)
        self.refused(400, "GET", "/api/v1/blobs/nonsense")

    def test_bad_requests_say_what_where_and_what_to_do(self):
        self.assertIn("line 1", self.refused(400, "POST", "/api/v1/projects", b"{nonsense"))
        self.assertIn("object", self.refused(400, "POST", "/api/v1/projects", b"[1]"))
        self.assertIn("openapi", self.refused(404, "GET", "/api/v1/nothing"))
        self.refused(405, "PATCH", "/api/v1/projects", {})
        self.assertIn("limit", self.refused(400, "GET", "/api/v1/jobs?limit=many"))
        self.refused(413, "POST", "/api/v1/projects", b"x" * (2 << 20))
        deep = b'{"name":' + b"[" * 5000 + b"]" * 5000 + b"}"
        self.refused(400, "POST", "/api/v1/projects", deep)
        self.assertEqual(self.server.request("GET", "/health")["status"], "ok")

    def test_a_command_job_waits_with_a_reason_without_nodes(self):
        job = self.server.post("/jobs", {"name": "hello", "kind": "command", "spec": {"argv": ["true"]}})
        waiting = wait_until(lambda: self.server.get("/jobs/" + job["id"])["reason"], 10, "a reason")
        self.assertRegex(waiting, "(?i)cpu slot|node")
        self.assertIn("argv", self.refused(400, "POST", "/api/v1/jobs", {"name": "x", "kind": "command", "spec": {}}))
        self.refused(501, "POST", "/api/v1/jobs", {"name": "x", "kind": "ray", "spec": {}})
        cancelled = self.server.post(f"/jobs/{job['id']}/cancel")
        self.assertEqual(cancelled["state"], "CANCELLED")
        self.refused(409, "POST", f"/api/v1/jobs/{job['id']}/cancel", {})

    def test_metrics_and_model_versions_are_idempotent(self):
        server = self.server
        data = small_model()
        blob = hashlib.sha256(data).hexdigest()
        server.request("PUT", "/api/v1/blobs/" + blob, data)
        body = {"id": "0190a0b0-0000-7000-8000-000000000001", "blob": blob, "bytes": len(data), "parameters": {"a": 1}}
        first = server.post("/models/m.one/versions", body)
        self.assertEqual(first["version"], 1)
        self.assertEqual(server.post("/models/m.one/versions", body)["version"], 1)
        body["id"] = "0190a0b0-0000-7000-8000-000000000002"
        self.assertEqual(server.post("/models/m.one/versions", body)["version"], 2)
        self.assertEqual([v["version"] for v in server.get("/models/m.one/versions")["items"]], [2, 1])
        body["blob"] = hashlib.sha256(b"not there").hexdigest()
        body["id"] = "0190a0b0-0000-7000-8000-000000000003"
        self.refused(409, "POST", "/api/v1/models/m.one/versions", body)

    def test_every_answer_fits_the_document(self):
        schemas = self.server.get("/openapi.json")
        for path, operations in schemas["paths"].items():
            if "{" in path or "get" not in operations:
                continue
            content = operations["get"]["responses"]["2XX"]["content"]
            if "application/json" not in content or path in ("/api/v1/decisions/summary", "/api/v1/runs/groups"):
                continue
            answer = self.server.request("GET", path)
            schema = content["application/json"]["schema"]
            if "properties" in schema:
                name = schema["properties"]["items"]["items"]["$ref"].rsplit("/", 1)[1]
                known = schemas["components"]["schemas"][name]["properties"]
                for item in answer["items"]:
                    for key in known:
                        self.assertIn(key, item, (path, key))

    def test_the_stream_sends_events_and_goes_on_where_it_broke(self):
        request = urllib.request.Request(self.server.url + "/api/v1/stream?topics=events",
                                         headers={"Authorization": "Bearer " + self.server.token})
        with urllib.request.urlopen(request, timeout=30) as stream:
            self.server.post("/datasets", {"name": "streamed"})
            self.server.request("PUT", "/api/v1/datasets/streamed/files/a/1.pgm", pgm(9))
            self.server.post("/datasets/streamed/versions")
            told = [self.read_event(stream) for _ in range(3)]
        kinds = ["dataset_created", "dataset_file_put", "dataset_version"]
        self.assertEqual([json.loads(event["data"])["kind"] for event in told], kinds)
        self.server.request("PUT", "/api/v1/datasets/streamed/files/a/2.pgm", pgm(10))
        self.server.post("/datasets/streamed/versions")
        request.add_header("Last-Event-ID", told[-1]["id"])
        with urllib.request.urlopen(request, timeout=30) as stream:
            told = [json.loads(self.read_event(stream)["data"]) for _ in range(2)]
        self.assertEqual([event["kind"] for event in told], kinds[1:])
        self.assertIn("version 2", told[1]["message"])

    @staticmethod
    def read_event(stream):
        event = {}
        for line in stream:
            text = line.decode().rstrip("\n")
            if not text and event:
                return event
            if ":" in text and not text.startswith(":"):
                name, _, value = text.partition(": ")
                event[name] = value
        raise AssertionError("the stream ended")

    def test_the_command_line_speaks_json_and_gives_exit_statuses(self):
        status, out, _ = self.server.weir("get", "projects", "-o", "json")
        self.assertIn("default", [item["name"] for item in json.loads(out)["items"]])
        status, _, err = self.server.weir("get", "ion", "none", check=False)
        self.assertEqual((status, "none" in err), (4, True), err)
        status, _, err = self.server.weir("get", "things", check=False)
        self.assertEqual(status, 2)
        status, _, err = self.server.weir("aply", check=False)
        self.assertEqual(status, 2)
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write("kind: ion\nname: [broken\n")
            file.flush()
            status, _, err = self.server.weir("apply", "-f", file.name, check=False)
        self.assertEqual(status, 2)
        self.assertIn("line", err)
        status, out, _ = self.server.weir("doctor", "-o", "json")
        self.assertTrue(any(f["check"] == "isolation" for f in json.loads(out)))
        done = subprocess.run([harness.WEIR, "get", "jobs", "--server", "http://127.0.0.1:1", "--token", "x"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 9, done.stderr)

    def test_a_second_server_and_a_taken_port_are_told_apart(self):
        port = self.server.url.rsplit(":", 1)[1]
        same_state = subprocess.run([harness.WEIR, "server", "--state", str(self.server.state)],
                                    capture_output=True, text=True, timeout=60)
        self.assertEqual(same_state.returncode, 5)
        self.assertIn("another server uses the state folder", same_state.stderr)
        with tempfile.TemporaryDirectory() as other:
            same_port = subprocess.run([harness.WEIR, "server", "--state", other, "--no-agent", "--listen",
                                        "127.0.0.1:" + port], capture_output=True, text=True, timeout=60)
        self.assertEqual(same_port.returncode, 5, same_port.stderr)
        self.assertIn(port, same_port.stderr)


if __name__ == "__main__":
    harness.main()

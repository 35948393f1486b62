#!/usr/bin/env python3
"""mlflow_registry_test.py: MLflow's registry and artifacts, from outside: one test for each of MLflow's own that is about
them (tests/tracking/test_model_registry.py, and what test_rest_tracking.py has of artifacts), with raw HTTP; and its real
client, where build/venv-mlflow has one (python3 -m venv build/venv-mlflow && build/venv-mlflow/bin/pip install
"mlflow==2.22.*" onnx)."""
import json
import os
import pathlib
import subprocess
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

import harness
from harness import ROOT, HttpError, Server, small_model, wait_until

CLIENT = ROOT / "build" / "venv-mlflow" / "bin" / "python"
PROXY = "/api/2.0/mlflow-artifacts/"


class Refused(Exception):
    """An answer of MLflow's form: {"error_code", "message"}."""

    def __init__(self, status, body):
        super().__init__(f"{status}: {body}")
        self.status, self.code, self.message = status, body["error_code"], body["message"]


class Registry(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--no-agent").start()
        cls.addClassCleanup(cls.server.stop)
        cls.n = 0

    # ---- asking

    def call(self, method, place, body=None, prefix="/api/2.0/mlflow/", **query):
        query = {name: value for name, value in query.items() if value is not None}
        url = prefix + place + ("?" + urllib.parse.urlencode(query, doseq=True) if query else "")
        try:
            return self.server.request(method, url, body)
        except HttpError as error:
            raise Refused(error.code, json.loads(error.body)) from None

    def refused(self, code, words, method, place, body=None, **more):
        with self.assertRaises(Refused) as caught:
            self.call(method, place, body, **more)
        self.assertEqual(caught.exception.code, code, caught.exception)
        self.assertIn(words, caught.exception.message)
        self.assertLess(caught.exception.status, 500)
        return caught.exception

    def fresh(self, word="model"):
        type(self).n += 1
        return f"{word} {self.n}"

    def make(self, name=None, **more):
        name = name or self.fresh()
        return self.call("POST", "registered-models/create", {"name": name, **more})["registered_model"]

    def model(self, name):
        return self.call("GET", "registered-models/get", name=name)["registered_model"]

    def make_version(self, name, source="s3://bucket/model", **more):
        return self.call("POST", "model-versions/create", {"name": name, "source": source, **more})["model_version"]

    def version(self, name, version):
        return self.call("GET", "model-versions/get", name=name, version=version)["model_version"]

    def run_of(self, experiment="0"):
        return self.call("POST", "runs/create", {"experiment_id": experiment, "start_time": 1})["run"]["info"]

    def put(self, run, path, data):
        place = f"artifacts/{run['experiment_id']}/{run['run_id']}/artifacts/{urllib.parse.quote(path)}"
        return self.call("PUT", place, data, prefix=PROXY)

    def fetch(self, run, path, headers=None):
        place = f"{PROXY}artifacts/{run['experiment_id']}/{run['run_id']}/artifacts/{urllib.parse.quote(path)}"
        return self.server.request("GET", place, headers=headers, raw=True)

    def raw(self, method, path, body=None):
        """A path as it is, however odd: status and body."""
        request = urllib.request.Request(self.server.url + path, data=body, method=method)
        request.add_header("Authorization", "Bearer " + self.server.token)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    # ---- registered models (test_model_registry.py)

    def test_create_and_query_registered_model_flow(self):
        name = self.fresh()
        made = self.make(name, description="d", tags=[{"key": "a", "value": "1"}, {"key": "b", "value": "2"}])
        self.assertEqual(made["name"], name)
        got = self.model(name)
        self.assertEqual({tag["key"]: tag["value"] for tag in got["tags"]}, {"a": "1", "b": "2"})
        self.assertEqual(got["description"], "d")
        self.assertEqual(got["latest_versions"], [])
        self.assertGreaterEqual(got["last_updated_timestamp"], got["creation_timestamp"])
        found = self.call("GET", "registered-models/search", filter=f"name = '{name}'")["registered_models"]
        self.assertEqual([model["name"] for model in found], [name])
        self.refused("RESOURCE_ALREADY_EXISTS", f"Registered Model (name={name}) already exists", "POST",
                     "registered-models/create", {"name": name})
        self.refused("INVALID_PARAMETER_VALUE", "Missing value for required parameter 'name'", "POST", "registered-models/create", {})
        self.refused("INVALID_PARAMETER_VALUE", "Invalid value 1 for parameter 'name' supplied", "POST",
                     "registered-models/create", {"name": 1})
        self.refused("RESOURCE_DOES_NOT_EXIST", "Registered Model with name=none not found", "GET", "registered-models/get",
                     name="none")
        for bad in ("a/b", "a:b", "..", "x" * 257):
            self.refused("INVALID_PARAMETER_VALUE", "name", "POST", "registered-models/create", {"name": bad})

    def test_paginated_search_registered_models(self):
        word = self.fresh("pages")
        names = [f"{word} {i:02}" for i in range(25)]
        for name in names:
            self.make(name)
        seen, token = [], None
        while True:
            page = self.call("GET", "registered-models/search", filter=f"name LIKE '{word}%'", max_results=10, page_token=token)
            seen += [model["name"] for model in page["registered_models"]]
            token = page.get("next_page_token")
            if not token:
                break
        self.assertEqual(seen, names)
        found = self.call("GET", "registered-models/search", filter=f"name ilike '{word.upper()}%'", max_results=1000)
        self.assertEqual(len(found["registered_models"]), 25)
        self.refused("INVALID_PARAMETER_VALUE", "max_results", "GET", "registered-models/search", max_results=1001)
        self.refused("INVALID_PARAMETER_VALUE", "nosuch", "GET", "registered-models/search", filter="nosuch = 'a'")
        self.refused("INVALID_PARAMETER_VALUE", "", "GET", "registered-models/search", page_token="nonsense")

    def test_registered_model_search_order_by(self):
        word = self.fresh("order")
        for letter in "bca":
            self.make(f"{word} {letter}")
        made = {letter: self.call("GET", "registered-models/get", name=f"{word} {letter}")["registered_model"]["creation_timestamp"]
                for letter in "bca"}
        by_time = "".join(sorted("abc", key=lambda letter: (made[letter], letter)))  # two may be of one millisecond
        for order, expected in ((["name ASC"], "abc"), (["name DESC"], "cba"), (["creation_timestamp ASC", "name"], by_time)):
            found = self.call("GET", "registered-models/search", filter=f"name LIKE '{word}%'", order_by=order)
            self.assertEqual("".join(model["name"][-1] for model in found["registered_models"]), expected, order)

    def test_search_registered_models_by_tag(self):
        name, other = self.fresh(), self.fresh()
        self.make(name, tags=[{"key": "team", "value": f"t-{name}"}])
        self.make(other)
        found = self.call("GET", "registered-models/search", filter=f"tags.team = 't-{name}'")["registered_models"]
        self.assertEqual([model["name"] for model in found], [name])

    def test_rename_registered_model_flow(self):
        name, new = self.fresh(), self.fresh("renamed")
        self.make(name)
        self.make_version(name)
        self.call("POST", "registered-models/alias", {"name": name, "alias": "best", "version": "1"})
        renamed = self.call("POST", "registered-models/rename", {"name": name, "new_name": new})["registered_model"]
        self.assertEqual(renamed["name"], new)
        self.assertEqual(renamed["aliases"], [{"alias": "best", "version": "1"}])
        self.assertEqual(self.version(new, 1)["name"], new)
        self.refused("RESOURCE_DOES_NOT_EXIST", "not found", "GET", "registered-models/get", name=name)
        other = self.make()["name"]
        self.refused("RESOURCE_ALREADY_EXISTS", "already exists", "POST", "registered-models/rename", {"name": new, "new_name": other})
        self.refused("INVALID_PARAMETER_VALUE", "new_name", "POST", "registered-models/rename", {"name": new})

    def test_update_registered_model_flow(self):
        name = self.make(description="one")["name"]
        model = self.call("PATCH", "registered-models/update", {"name": name, "description": "two"})["registered_model"]
        self.assertEqual(model["description"], "two")
        self.assertEqual(self.model(name)["description"], "two")
        self.refused("RESOURCE_DOES_NOT_EXIST", "not found", "PATCH", "registered-models/update", {"name": "none", "description": "x"})

    def test_delete_registered_model_flow(self):
        name = self.make()["name"]
        self.make_version(name)
        self.call("POST", "registered-models/alias", {"name": name, "alias": "best", "version": "1"})
        self.assertEqual(self.call("DELETE", "registered-models/delete", {"name": name}), {})
        self.refused("RESOURCE_DOES_NOT_EXIST", "not found", "GET", "registered-models/get", name=name)
        self.refused("RESOURCE_DOES_NOT_EXIST", "not found", "DELETE", "registered-models/delete", {"name": name})
        self.refused("RESOURCE_DOES_NOT_EXIST", "not found", "GET", "model-versions/get", name=name, version="1")
        self.assertEqual(self.make(name)["latest_versions"], [])

    def test_set_registered_model_tag_flow(self):
        name = self.make()["name"]
        self.assertEqual(self.call("POST", "registered-models/set-tag", {"name": name, "key": "k", "value": "1"}), {})
        self.call("POST", "registered-models/set-tag", {"name": name, "key": "k", "value": "2"})
        self.assertEqual(self.model(name)["tags"], [{"key": "k", "value": "2"}])
        self.assertEqual(self.call("DELETE", "registered-models/delete-tag", {"name": name, "key": "k"}), {})
        self.assertEqual(self.model(name)["tags"], [])
        self.refused("INVALID_PARAMETER_VALUE", "Missing value for required parameter 'key'", "POST", "registered-models/set-tag",
                     {"name": name, "value": "1"})
        self.refused("RESOURCE_DOES_NOT_EXIST", "not found", "POST", "registered-models/set-tag", {"name": "none", "key": "k", "value": "v"})

    def test_set_registered_model_alias_flow(self):
        name = self.make()["name"]
        for _ in range(2):
            self.make_version(name)
        self.assertEqual(self.call("POST", "registered-models/alias", {"name": name, "alias": "Champion", "version": "1"}), {})
        self.assertEqual(self.call("GET", "registered-models/alias", name=name, alias="Champion")["model_version"]["version"], "1")
        self.assertEqual(self.version(name, 1)["aliases"], ["Champion"])
        self.call("POST", "registered-models/alias", {"name": name, "alias": "Champion", "version": "2"})
        self.assertEqual(self.model(name)["aliases"], [{"alias": "Champion", "version": "2"}])
        self.assertEqual(self.version(name, 1)["aliases"], [])
        for bad in ("v1", "V22", "latest", "a b", "a!", "x" * 256):
            self.refused("INVALID_PARAMETER_VALUE", "alias", "POST", "registered-models/alias", {"name": name, "alias": bad, "version": "1"})
        self.refused("RESOURCE_DOES_NOT_EXIST", "not found", "POST", "registered-models/alias", {"name": name, "alias": "a", "version": "9"})

    def test_delete_registered_model_alias_flow(self):
        name = self.make()["name"]
        self.make_version(name)
        self.call("POST", "registered-models/alias", {"name": name, "alias": "best", "version": "1"})
        self.assertEqual(self.call("DELETE", "registered-models/alias", {"name": name, "alias": "best"}), {})
        self.assertEqual(self.call("DELETE", "registered-models/alias", {"name": name, "alias": "best"}), {})
        self.refused("INVALID_PARAMETER_VALUE", "alias best not found", "GET", "registered-models/alias", name=name, alias="best")

    # ---- model versions

    def test_create_and_query_model_version_flow(self):
        name = self.make()["name"]
        run = self.run_of()
        made = self.make_version(name, "s3://bucket/a", run_id=run["run_id"], run_link="http://x", description="d",
                                 tags=[{"key": "a", "value": "1"}])
        self.assertEqual(made["version"], "1")
        got = self.version(name, "1")
        for key, value in {"name": name, "source": "s3://bucket/a", "run_id": run["run_id"], "run_link": "http://x",
                           "description": "d", "current_stage": "None", "status": "READY",
                           "tags": [{"key": "a", "value": "1"}]}.items():
            self.assertEqual(got[key], value, key)
        self.assertEqual(self.make_version(name, "s3://bucket/b", run_id="of-elsewhere")["version"], "2")
        self.assertEqual(self.version(name, 2)["run_id"], "of-elsewhere")
        self.assertEqual([version["version"] for version in self.model(name)["latest_versions"]], ["2"])
        found = self.call("GET", "model-versions/search", filter=f"name = '{name}'")["model_versions"]
        self.assertEqual(sorted(version["version"] for version in found), ["1", "2"])
        found = self.call("GET", "model-versions/search", filter=f"run_id = '{run['run_id']}'")["model_versions"]
        self.assertEqual([version["version"] for version in found], ["1"])
        self.assertEqual(self.call("GET", "model-versions/get-download-uri", name=name, version="1"), {"artifact_uri": "s3://bucket/a"})
        self.refused("RESOURCE_DOES_NOT_EXIST", "Registered Model with name=none not found", "POST", "model-versions/create",
                     {"name": "none", "source": "s3://a"})
        self.refused("INVALID_PARAMETER_VALUE", "Missing value for required parameter 'source'", "POST", "model-versions/create",
                     {"name": name})

    def test_get_model_version(self):
        name = self.make()["name"]
        self.make_version(name)
        self.assertEqual(self.version(name, 1)["version"], "1")
        self.refused("RESOURCE_DOES_NOT_EXIST", f"Model Version (name={name}, version=7) not found", "GET", "model-versions/get",
                     name=name, version="7")
        self.refused("INVALID_PARAMETER_VALUE", "Model version must be an integer", "GET", "model-versions/get", name=name, version="x")
        self.refused("INVALID_PARAMETER_VALUE", "Missing value for required parameter 'version'", "GET", "model-versions/get", name=name)

    def test_update_model_version_flow(self):
        name = self.make()["name"]
        self.make_version(name)
        version = self.call("PATCH", "model-versions/update", {"name": name, "version": "1", "description": "new"})["model_version"]
        self.assertEqual(version["description"], "new")
        self.assertGreaterEqual(version["last_updated_timestamp"], version["creation_timestamp"])

    def test_transition_stage_and_latest_models(self):
        name = self.make()["name"]
        for _ in range(4):
            self.make_version(name)
        move = lambda version, stage, archive=False: self.call(
            "POST", "model-versions/transition-stage",
            {"name": name, "version": version, "stage": stage, "archive_existing_versions": archive})["model_version"]["current_stage"]
        self.assertEqual(move("1", "Production"), "Production")
        self.assertEqual(move("2", "staging"), "Staging")
        self.assertEqual(move("3", "Production"), "Production")
        latest = lambda stages=(): {version["current_stage"]: version["version"] for version in self.call(
            "POST", "registered-models/get-latest-versions", {"name": name, "stages": list(stages)})["model_versions"]}
        self.assertEqual(latest(), {"Production": "3", "Staging": "2", "None": "4"})
        self.assertEqual(latest(["Production"]), {"Production": "3"})
        self.assertEqual(latest(["Archived"]), {})
        self.assertEqual(move("4", "Production", True), "Production")
        self.assertEqual(latest(), {"Production": "4", "Staging": "2", "Archived": "3"})
        self.refused("INVALID_PARAMETER_VALUE", "Invalid Model Version stage", "POST", "model-versions/transition-stage",
                     {"name": name, "version": "1", "stage": "nowhere"})
        self.refused("INVALID_PARAMETER_VALUE", "not an Active stage", "POST", "model-versions/transition-stage",
                     {"name": name, "version": "1", "stage": "None", "archive_existing_versions": True})

    def test_delete_model_version_flow(self):
        name = self.make()["name"]
        for _ in range(2):
            self.make_version(name)
        self.assertEqual(self.call("DELETE", "model-versions/delete", {"name": name, "version": "1"}), {})
        self.refused("RESOURCE_DOES_NOT_EXIST", "not found", "GET", "model-versions/get", name=name, version="1")
        self.assertEqual([version["version"] for version in self.model(name)["latest_versions"]], ["2"])
        self.refused("RESOURCE_DOES_NOT_EXIST", "not found", "DELETE", "model-versions/delete", {"name": name, "version": "1"})
        self.assertEqual(self.make_version(name)["version"], "3")

    def test_set_model_version_tag_flow(self):
        name = self.make()["name"]
        self.make_version(name)
        where = {"name": name, "version": "1"}
        self.assertEqual(self.call("POST", "model-versions/set-tag", {**where, "key": "k", "value": "1"}), {})
        self.assertEqual(self.version(name, 1)["tags"], [{"key": "k", "value": "1"}])
        found = self.call("GET", "model-versions/search", filter=f"name = '{name}' AND tags.k = '1'")["model_versions"]
        self.assertEqual(len(found), 1)
        self.assertEqual(self.call("DELETE", "model-versions/delete-tag", {**where, "key": "k"}), {})
        self.assertEqual(self.version(name, 1)["tags"], [])

    def test_search_model_versions_order_by_and_pages(self):
        name = self.make()["name"]
        for _ in range(5):
            self.make_version(name)
        seen, token = [], None
        while True:
            page = self.call("GET", "model-versions/search", filter=f"name = '{name}'", order_by=["version_number ASC"],
                             max_results=2, page_token=token)
            seen += [version["version"] for version in page["model_versions"]]
            token = page.get("next_page_token")
            if not token:
                break
        self.assertEqual(seen, ["1", "2", "3", "4", "5"])
        word = self.fresh("both")
        for letter in "bac":
            self.make_version(self.make(f"{word} {letter}")["name"])
        found = self.call("GET", "model-versions/search", filter=f"name LIKE '{word}%'", order_by=["version_number DESC"])
        self.assertEqual("".join(version["name"][-1] for version in found["model_versions"]), "abc")

    def test_a_model_has_changed_when_its_versions_have(self):
        name = self.make()["name"]
        def is_later(act):
            before = self.model(name)["last_updated_timestamp"]
            wait_until(lambda: time.time() * 1000 > before + 1, 5, "the next millisecond")
            act()
            self.assertGreater(self.model(name)["last_updated_timestamp"], before)
        is_later(lambda: self.make_version(name))
        is_later(lambda: self.call("POST", "model-versions/transition-stage", {
            "name": name, "version": "1", "stage": "Staging", "archive_existing_versions": False}))
        is_later(lambda: self.call("DELETE", "model-versions/delete", {"name": name, "version": "1"}))
        self.assertEqual(self.make_version(name)["description"], "")

    def test_a_prompt_is_refused_as_one(self):
        with self.assertRaises(Refused) as caught:
            self.make(tags=[{"key": "mlflow.prompt.is_prompt", "value": "true"}])
        self.assertIn("prompts are not supported", caught.exception.message)

    # ---- where a version comes from (test_rest_tracking.py)

    def test_create_model_version_with_path_source(self):
        name, run = self.make()["name"], self.run_of()
        for source in ("/etc", "models/x", "./x", "../x", "/tmp/a/../../etc", "C:\\x"):
            self.refused("INVALID_PARAMETER_VALUE", "Invalid model version source", "POST", "model-versions/create",
                         {"name": name, "source": source, "run_id": run["run_id"]})

    def test_create_model_version_with_file_uri(self):
        name, run = self.make()["name"], self.run_of()
        for source in ("file:///etc/passwd", "file://localhost/etc", "file:a", "file:///a#fragment"):
            self.refused("INVALID_PARAMETER_VALUE", "Invalid model version source", "POST", "model-versions/create",
                         {"name": name, "source": source, "run_id": run["run_id"]})

    def test_a_source_hides_no_nul(self):
        name = self.make()["name"]
        for source in ("mlflow-artifacts://host/a%00", "s3://bucket/%2500x", "https://host/%00/../a"):
            self.refused("INVALID_PARAMETER_VALUE", "Invalid model version source", "POST", "model-versions/create",
                         {"name": name, "source": source})

    def test_create_model_version_with_non_local_source(self):
        name, run = self.make()["name"], self.run_of()
        for source in ("https://example.com/m", "http://h:9000/m", "s3://bucket/m", "mlflow-artifacts:/0/x/artifacts/m",
                       "mlflow-artifacts://host:9000/m", "dbfs:/a..b", run["artifact_uri"] + "/model"):
            self.assertEqual(self.make_version(name, source, run_id=run["run_id"])["source"], source)
        for source in ("mlflow-artifacts://host:9000/models/../../../", "http://host:9000/models/../../..", "https://h/m/..?a=b",
                       "s3a:/my_bucket/models/..%2f..%2fartifacts", "ftp:///host:8888/m/artifact/%2e%2e/", "s3://b/%252e%252e/x",
                       run["artifact_uri"] + "/../../../x"):
            self.refused("INVALID_PARAMETER_VALUE", "Invalid model version source", "POST", "model-versions/create",
                         {"name": name, "source": source})

    # ---- artifacts

    def test_artifacts(self):
        run = self.run_of()
        self.put(run, "a.txt", b"one")
        self.put(run, "dir/b.txt", b"two two")
        self.put(run, "dir/deep/c.txt", b"")
        listed = self.call("GET", "artifacts/list", run_id=run["run_id"])
        self.assertEqual(listed["root_uri"], run["artifact_uri"])
        self.assertEqual(listed["files"], [{"path": "a.txt", "is_dir": False, "file_size": 3}, {"path": "dir", "is_dir": True}])
        listed = self.call("GET", "artifacts/list", run_uuid=run["run_id"], path="dir")["files"]
        self.assertEqual([(file["path"], file["is_dir"]) for file in listed], [("dir/b.txt", False), ("dir/deep", True)])
        listed = self.call("GET", "artifacts", prefix=PROXY, path=f"0/{run['run_id']}/artifacts/dir")["files"]
        self.assertEqual([file["path"] for file in listed], ["b.txt", "deep"])
        self.assertEqual(self.call("GET", "artifacts/list", run_id=run["run_id"], path="none")["files"], [])
        self.assertEqual(self.fetch(run, "dir/b.txt"), b"two two")
        self.assertEqual(self.fetch(run, "dir/deep/c.txt"), b"")
        self.assertEqual(self.fetch(run, "dir/b.txt", {"Range": "bytes=4-"}), b"two")
        self.put(run, "a.txt", b"changed")
        self.assertEqual(self.fetch(run, "a.txt"), b"changed")
        self.refused("RESOURCE_DOES_NOT_EXIST", "No such artifact", "GET", f"artifacts/0/{run['run_id']}/artifacts/none", prefix=PROXY)
        self.refused("RESOURCE_DOES_NOT_EXIST", "not found", "GET", "artifacts/list", run_id="0123")
        self.assertEqual(self.call("DELETE", f"artifacts/0/{run['run_id']}/artifacts/dir", prefix=PROXY), {})
        self.assertEqual(len(self.call("GET", "artifacts/list", run_id=run["run_id"])["files"]), 1)

    def test_path_validation(self):
        run = self.run_of()
        self.put(run, "a", b"x")
        place = f"{PROXY}artifacts/0/{run['run_id']}/artifacts/"
        for path in ("..%2f..%2fa", "a%2f..%2f..%2fb", "%2e%2e%2fb", "%252e%252e%252fb", "a%00", "a%23b", "..%5c..%5cb", "%5cb", "C%3A%2fb",
                     "a%0ab", "%25252e%25252e%25252fb", "file%3A%2f%2f%2fetc", "a%ff", "a/%2e%2e/b", "./%2e/b"):
            for method in ("GET", "PUT", "DELETE"):
                status, body = self.raw(method, place + path, b"x" if method == "PUT" else None)
                self.assertEqual(status, 400, (method, path, body))
        for path in ("../x", "/etc", "a/../../b", "%2e%2e", "a#b", "C:/x", "."):
            self.refused("INVALID_PARAMETER_VALUE", "Invalid path", "GET", "artifacts/list", run_id=run["run_id"], path=path)
        self.assertEqual(len(self.call("GET", "artifacts/list", run_id=run["run_id"])["files"]), 1)

    def test_upload_artifact_handler(self):
        run = self.run_of()
        ajax = "/ajax-api/2.0/mlflow/"
        self.call("POST", "upload-artifact", b"bytes", prefix=ajax, run_uuid=run["run_id"], path="a/b.txt")
        self.assertEqual(self.fetch(run, "a/b.txt"), b"bytes")
        self.assertEqual(self.server.request("GET", f"/get-artifact?run_id={run['run_id']}&path=a/b.txt", raw=True), b"bytes")

    def test_upload_artifact_handler_rejects_invalid_requests(self):
        run = self.run_of()
        ajax = "/ajax-api/2.0/mlflow/"
        self.refused("INVALID_PARAMETER_VALUE", "run_id", "POST", "upload-artifact", b"x", prefix=ajax, path="a")
        self.refused("INVALID_PARAMETER_VALUE", "path", "POST", "upload-artifact", b"x", prefix=ajax, run_uuid=run["run_id"])
        self.refused("INVALID_PARAMETER_VALUE", "Invalid path", "POST", "upload-artifact", b"x", prefix=ajax, run_uuid=run["run_id"],
                     path="../x")
        self.refused("RESOURCE_DOES_NOT_EXIST", "not found", "POST", "upload-artifact", b"x", prefix=ajax, run_uuid="none", path="a")

    def test_multipart_upload(self):
        run = self.run_of()
        where = f"mpu/{{}}/0/{run['run_id']}/artifacts/deep"
        begun = self.call("POST", where.format("create"), {"path": "/home/ann/big.bin", "num_parts": 3}, prefix=PROXY)
        self.assertEqual([one["part_number"] for one in begun["credentials"]], [1, 2, 3])
        parts = [os.urandom(300_000), os.urandom(300_000), b"end"]
        etags = {}
        for i in (2, 0, 1):  # in any order, to the addresses that were given
            one = begun["credentials"][i]
            request = urllib.request.Request(one["url"], data=parts[i], method="PUT", headers=one["headers"])
            with urllib.request.urlopen(request, timeout=30) as answer:
                etags[i + 1] = answer.headers["ETag"]
        done = {"path": "/home/ann/big.bin", "upload_id": begun["upload_id"],
                "parts": [{"part_number": n, "etag": etag, "url": ""} for n, etag in etags.items()]}
        wrong = {**done, "parts": [{"part_number": 1, "etag": etags[2], "url": ""}]}
        self.refused("INVALID_PARAMETER_VALUE", "part 1", "POST", where.format("complete"), wrong, prefix=PROXY)
        self.assertEqual(self.call("POST", where.format("complete"), done, prefix=PROXY), {})
        self.assertEqual(self.fetch(run, "deep/big.bin"), b"".join(parts))
        begun = self.call("POST", where.format("create"), {"path": "b", "num_parts": 2}, prefix=PROXY)
        self.refused("INVALID_PARAMETER_VALUE", "part 1 of 2 is missing", "POST", where.format("complete"),
                     {"path": "b", "upload_id": begun["upload_id"], "parts": []}, prefix=PROXY)
        self.assertEqual(self.call("POST", where.format("abort"), {"path": "b", "upload_id": begun["upload_id"]}, prefix=PROXY), {})
        self.refused("RESOURCE_DOES_NOT_EXIST", "no upload", "POST", where.format("abort"), {"path": "b", "upload_id": begun["upload_id"]},
                     prefix=PROXY)

    # ---- what is Weir's own: a version of MLflow's is one of Weir's

    def test_a_model_that_can_be_served_is_found_among_its_files(self):
        name, run = self.make()["name"], self.run_of()
        model = small_model()
        self.put(run, "model/MLmodel", b"flavors: {}")
        self.put(run, "model/model.onnx", model)
        self.call("POST", "runs/log-metric", {"run_id": run["run_id"], "key": "accuracy", "value": 0.9, "timestamp": 1, "step": 0})
        self.make_version(name, run["artifact_uri"] + "/model", run_id=run["run_id"])
        version = self.server.get(f"/models/{urllib.parse.quote(name)}/versions/1")
        self.assertEqual((version["bytes"], version["run"], version["unservable"]), (len(model), run["run_id"], None))
        self.assertEqual(version["metrics"], {"accuracy": 0.9})
        self.assertEqual(self.server.request("GET", f"/api/v1/blobs/{version['blob']}", raw=True), model)
        served = self.server.request("PUT", "/api/v1/deployments/served", {"model": name, "version": "v1", "replicas": "0..1"})
        self.assertEqual(served["model"], name)
        self.refused("INVALID_PARAMETER_VALUE", "deployment", "POST", "registered-models/rename", {"name": name, "new_name": "other"})
        self.refused("INVALID_PARAMETER_VALUE", "deployment served", "DELETE", "registered-models/delete", {"name": name})

    def test_what_cannot_be_served_says_so_when_somebody_deploys_it(self):
        name, run = self.make()["name"], self.run_of()
        self.put(run, "model/python_model.pkl", b"pickle")
        self.put(run, "bad/model.onnx", b"this is no model")
        self.make_version(name, run["artifact_uri"] + "/model")
        self.make_version(name, run["artifact_uri"] + "/bad")
        for version, words in ((1, "no ONNX or safetensors file"), (2, "")):
            with self.assertRaises(HttpError) as caught:
                self.server.request("PUT", "/api/v1/deployments/never", {"model": name, "version": f"v{version}"})
            self.assertEqual(caught.exception.error["status"], "CONFLICT")
            self.assertIn("not servable: ", caught.exception.error["message"])
            self.assertIn(words, caught.exception.error["message"])

    def test_an_alias_that_moves_takes_the_deployment_that_follows_it_along(self):
        name, run = self.make()["name"], self.run_of()
        for i, label in enumerate("yz"):
            self.put(run, f"{i}/model.onnx", small_model(label))
            self.make_version(name, f"{run['artifact_uri']}/{i}")
        self.call("POST", "registered-models/alias", {"name": name, "alias": "prod", "version": "1"})
        self.server.request("PUT", "/api/v1/deployments/follower", {"model": name, "version": "@prod", "replicas": "0..1"})
        share = lambda: [one["version"] for one in self.server.get("/deployments/follower")["versions"] if one["percent"] == 100]
        self.assertEqual(share(), [1])
        self.call("POST", "registered-models/alias", {"name": name, "alias": "prod", "version": "2"})
        self.assertEqual(share(), [2])

    def test_a_link_from_an_alias_takes_what_the_alias_comes_to_name(self):
        name, run = self.make()["name"], self.run_of()
        for i, label in enumerate("yzx"):
            self.put(run, f"{i}/model.onnx", small_model("o" + label))
        self.make_version(name, f"{run['artifact_uri']}/0")
        self.call("POST", "registered-models/alias", {"name": name, "alias": "ready", "version": "1"})
        self.server.request("PUT", "/api/v1/deployments/aliased", {"model": name, "replicas": "0..1"})
        self.server.post("/ions", {"kind": "ion", "name": "aliased", "pipelines": [], "links": [
            {"from": {"model": name, "alias": "ready"}, "to": {"deployment": "aliased"}, "policy": "manual"}]})
        came = lambda: sorted(one["version"] for one in self.server.get("/ions/aliased/candidates")["items"])
        self.assertEqual(came(), [1])
        self.make_version(name, f"{run['artifact_uri']}/1")
        self.make_version(name, f"{run['artifact_uri']}/2")
        self.assertEqual(came(), [1])
        self.call("POST", "registered-models/alias", {"name": name, "alias": "ready", "version": "3"})
        self.assertEqual(came(), [1, 3])
        self.server.request("DELETE", "/api/v1/deployments/aliased?force=1")
        self.refused("INVALID_PARAMETER_VALUE", "ION aliased", "POST", "registered-models/rename", {"name": name, "new_name": "x"})

    def test_another_project_is_not_there(self):
        self.server.post("/projects", {"name": "other"})
        self.server.post("/users", {"name": "eve", "kind": "person", "role": "member"})
        self.server.request("PUT", "/api/v1/projects/other/members/user/eve", {"role": "data-scientist"})
        token = self.server.post("/tokens", {"name": "t", "user": "eve", "role": "data-scientist"})["secret"]
        name, run = self.make()["name"], self.run_of()
        self.put(run, "secret", b"x")
        for path in (f"registered-models/get?name={urllib.parse.quote(name)}", f"artifacts/list?run_id={run['run_id']}"):
            with self.assertRaises(HttpError) as caught:
                self.server.request("GET", "/api/2.0/mlflow/" + path, token=token)
            self.assertEqual(caught.exception.code, 404)
        found = self.server.request("GET", "/api/2.0/mlflow/registered-models/search", token=token)
        self.assertEqual(found["registered_models"], [])
        with self.assertRaises(HttpError) as caught:
            self.server.request("GET", f"{PROXY}artifacts/0/{run['run_id']}/artifacts/secret", token=token)
        self.assertEqual(caught.exception.code, 404)
        made = self.server.request("POST", "/api/2.0/mlflow/registered-models/create", {"name": "hers"}, token=token)
        self.assertEqual(made["registered_model"]["name"], "hers")
        self.assertEqual(self.server.get("/models/hers")["project"], "other")

    def test_the_command_line_puts_lists_and_gets_files_and_goes_on_with_a_large_one(self):
        run = self.run_of()["run_id"]
        folder = pathlib.Path(self.server.root) / "folder"
        (folder / "sub dir").mkdir(parents=True)
        (folder / "sub dir" / "ü&b").write_bytes(b"bytes")
        (folder / "empty").write_bytes(b"")
        (folder / "link").symlink_to("/etc/passwd")
        self.server.weir("artifact", "put", run, str(folder), "from here")
        listed = json.loads(self.server.weir("artifact", "list", run, "from here", "-o", "json")[1])["items"]
        self.assertEqual([item["path"] for item in listed], ["from here/empty", "from here/sub dir"])
        back = pathlib.Path(self.server.root) / "back"
        self.server.weir("artifact", "get", run, "from here", str(back))
        self.assertEqual((back / "sub dir" / "ü&b").read_bytes(), b"bytes")
        self.assertEqual((back / "empty").read_bytes(), b"")
        large = pathlib.Path(self.server.root) / "large"
        data = os.urandom(1 << 20) * 70
        large.write_bytes(data)
        upload = self.server.post(f"/runs/{run}/uploads", {"path": "large", "n_parts": 2})["id"]
        self.server.request("PUT", f"/api/v1/runs/{run}/uploads/{upload}/parts/1", data[:64 << 20])
        self.server.kill()  # what came is there after it
        self.server.start("--no-agent")
        self.server.weir("artifact", "put", run, str(large))
        self.assertEqual(self.server.get(f"/runs/{run}/uploads")["items"], [])
        self.server.weir("artifact", "get", run, "large", str(back / "large"))
        self.assertEqual((back / "large").read_bytes(), data)
        status, _, stderr = self.server.weir("artifact", "get", run, "nothing", check=False)
        self.assertEqual(status, 4, stderr)

    # ---- the real client

    def test_the_client_itself(self):
        if not CLIENT.exists():
            self.skipTest(f"{CLIENT}: no MLflow client here")
        model = pathlib.Path(self.server.root) / "model.onnx"
        model.write_bytes(small_model())
        home = pathlib.Path(self.server.root) / "home"
        home.mkdir()
        environment = {**os.environ, "MLFLOW_TRACKING_URI": self.server.url, "MLFLOW_TRACKING_TOKEN": self.server.token,
                       "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0", "GIT_PYTHON_REFRESH": "quiet", "NO_PROXY": "127.0.0.1",
                       "HOME": str(home), "TMPDIR": str(home)}
        done = subprocess.run([CLIENT, pathlib.Path(__file__).with_name("mlflow_registry_client.py"), model], env=environment,
                              capture_output=True, text=True, timeout=300, cwd=home)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        seen = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual(seen["refused"], {
            "twice": "RESOURCE_ALREADY_EXISTS", "nothing": "RESOURCE_DOES_NOT_EXIST", "slash": "INVALID_PARAMETER_VALUE",
            "local source": "INVALID_PARAMETER_VALUE", "up": "INVALID_PARAMETER_VALUE", "no file": seen["refused"]["no file"]})
        self.assertEqual(self.server.get("/models/Plus%20One/versions/1")["unservable"], None)


if __name__ == "__main__":
    harness.main()

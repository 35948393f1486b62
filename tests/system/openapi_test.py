#!/usr/bin/env python3
"""openapi_test.py [--write]: does every answer fit the OpenAPI document, and do the console's types?

--write makes web/src/api.ts anew from the document of the built server.
"""
import hashlib
import json
import sys
import unittest

import harness
from harness import ROOT, Server, small_model, wait_until

sys.path.insert(0, str(ROOT / "web"))
import api_types

API_TS = ROOT / "web" / "src" / "api.ts"
MINE = "/ions/door"
ION = {
    "kind": "ion", "name": "door",
    "pipelines": [
        {"name": "training", "type": "training", "model": "face-embed", "dataset": "faces"},
        {"name": "entrance", "type": "prediction", "gallery": {"dataset": "faces"}, "source": {"kind": "http", "listen": "127.0.0.1:0"}},
    ],
    "links": [{"from": "training", "to": "entrance", "policy": "manual"}],
}


class Misfit(AssertionError):
    pass


class Checker:
    """Compares a JSON value with a schema of the document: types, null, members that are missing or that nobody named."""

    def __init__(self, document):
        self.schemas = document["components"]["schemas"]

    def fit(self, value, schema, where):
        if "$ref" in schema:
            self.fit(value, self.schemas[schema["$ref"].rsplit("/", 1)[1]], where)
        elif value is None:
            if not schema.get("nullable") and ("type" in schema or "allOf" in schema):
                raise Misfit(f"{where}: null, and the document says never")
        elif "allOf" in schema:
            self.fit(value, schema["allOf"][0], where)
        elif "type" in schema:
            getattr(self, schema["type"])(value, schema, where)

    def is_a(self, value, kinds, where):
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise Misfit(f"{where}: {value!r} is none of {kinds}")

    def object(self, value, schema, where):
        self.is_a(value, (dict,), where)
        known = schema.get("properties", {})
        if "additionalProperties" in schema:
            for key, inner in value.items():
                if inner is not None:  # a measurement that was not a number
                    self.fit(inner, schema["additionalProperties"], f"{where}.{key}")
            return
        missing = set(known) - set(value) - set(schema.get("x-weir-optional", []))
        if missing or (known and set(value) - set(known) - LOOSE.get(where.split(".")[-1].split("[")[0], set())):
            raise Misfit(f"{where}: missing {sorted(missing)}, not in the document {sorted(set(value) - set(known))}")
        for key, inner in value.items():
            if key in known:
                self.fit(inner, known[key], f"{where}.{key}")

    def array(self, value, schema, where):
        self.is_a(value, (list,), where)
        for i, inner in enumerate(value):
            self.fit(inner, schema["items"], f"{where}[{i}]")

    def string(self, value, schema, where):
        self.is_a(value, (str,), where)
        if schema.get("format") == "date-time" and not (value.endswith("Z") and "T" in value):
            raise Misfit(f"{where}: {value!r} is no time")

    def integer(self, value, _schema, where):
        self.is_a(value, (int,), where)

    def number(self, value, _schema, where):
        self.is_a(value, (int, float), where)

    def boolean(self, value, _schema, where):
        self.is_a(value, (bool,), where)


# A deployment is what a replica reads, too: the document names the part that people look at.
LOOSE = {"deployment": {"revision", "list_revision", "lists", "default", "false_accept_rate", "false_deny_rate", "source", "sinks"},
         "gallery": {"path", "digest", "blob", "strangers"}, "model": {"blob", "id", "baseline"},
         "threshold": {"deployment_revision"}}


class OpenApi(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server().start()
        cls.addClassCleanup(cls.server.stop)
        cls.document = cls.server.get("/openapi.json")
        cls.fill(cls.server)

    @staticmethod
    def fill(server):
        """One of each record that a person can make or that a job leaves behind."""
        server.post("/datasets", {"name": "faces"})
        for person in ("ada", "ben"):
            server.request("PUT", f"/api/v1/datasets/faces/files/{person}/1.pgm", b"P5\n2 2\n255\nabcd")
        server.post("/datasets/faces/versions")
        job = server.post("/jobs", {"name": "hello", "kind": "command", "spec": {"argv": ["true"]}})
        wait_until(lambda: server.get(f"/jobs/{job['id']}")["state"] == "SUCCEEDED", 30, "the job's end")
        model = small_model()
        blob = hashlib.sha256(model).hexdigest()
        server.request("PUT", "/api/v1/blobs/" + blob, model)
        server.post("/models/m/versions", {"id": "0190a0b0-0000-7000-8000-000000000001", "blob": blob, "bytes": len(model),
                                           "metrics": {"accuracy": 0.5}, "parameters": {"epochs": 3}})
        server.request("PUT", "/api/v1/models/m/versions/1/baseline", {"features": {"city": {"kind": "category", "counts": {"paris": 3}}}})
        train = server.post("/jobs", {"name": "train", "kind": "train", "spec": {"model": "lenet", "dataset": "faces"}})
        run = server.get(f"/jobs/{train['id']}")["run"]
        server.request("POST", f"/api/v1/runs/{run}/metrics", {"metrics": [{"key": "loss", "step": 1, "value": 0.5}]})
        server.post(f"/jobs/{train['id']}/cancel")
        server.post("/ions", ION)
        server.request("PUT", "/api/v1/ions/door/members/ada", {"list": "deny"})
        decision = {"ion": "door", "pipeline": "entrance", "replica": "r", "camera": "c", "time_ms": "2026-01-31T10:00:00.000Z",
                    "verdict": "unknown", "score": 0.3, "threshold": 0.6, "latency_us": 900}
        server.request("POST", "/api/v1/decisions", {"decisions": [{**decision, "id": f"d{i}", "frame": i} for i in range(3)]})
        server.post("/snapshots", {"name": "monday", "ion": "door"})

    def params(self, path):
        found = {"{name}": {"datasets": "faces", "models": "m", "ions": "door", "snapshots": "monday", "nodes": None}.get(path.split("/")[3]), "{version}": "1"}
        if path.split("/")[3] in ("jobs", "runs", "decisions"):
            found["{id}"] = self.server.get("/" + path.split("/")[3])["items"][0]["id"]
        for key, value in found.items():
            path = path.replace(key, value or key)
        return path

    def test_every_answer_fits_the_document(self):
        checker, looked_at, filled = Checker(self.document), 0, set()
        queries = {"/api/v1/decisions/summary": "?ion=door&since=2026-01-31T09:00:00Z&until=2026-01-31T11:00:00Z&buckets=4",
                   "/api/v1/runs/groups": "?by=status&metric=loss"}
        for pattern, operations in self.document["paths"].items():
            content = operations.get("get", {}).get("responses", {}).get("2XX", {}).get("content", {})
            path = self.params(pattern) if pattern.startswith("/api/v1/") else pattern
            if "application/json" not in content or "{" in path or pattern.endswith("/freeze"):
                continue
            answer = self.server.request("GET", path + queries.get(pattern, ""))
            checker.fit(answer, content["application/json"]["schema"], pattern)
            looked_at += 1
            if isinstance(answer, dict) and answer.get("items"):
                filled.add(pattern)
        self.assertGreater(looked_at, 30)
        for pattern in ("/ions", "/jobs", "/runs", "/models", "/datasets", "/decisions", "/events", "/nodes", "/ions/{name}/members",
                        "/models/{name}/versions", "/datasets/{name}/versions", "/jobs/{id}/tasks", "/runs/{id}/metrics", "/store/usage", "/snapshots",
                        "/ions/{name}/revisions", "/runs/groups"):
            self.assertIn("/api/v1" + pattern, filled, "there must be something to compare")

    def test_a_wrong_answer_would_be_found(self):
        checker, schema = Checker(self.document), {"$ref": "#/components/schemas/ION"}
        ion = self.server.get(MINE)
        for change in ({"links": None}, {"revision": "4"}, {"pipelines": [{}]}, {"health": {"status": None}}, {"colour": "red"}):
            with self.assertRaises(Misfit, msg=change):
                checker.fit({**ion, **change}, schema, "ion")

    def test_the_consoles_types_are_those_of_the_document(self):
        self.assertEqual(API_TS.read_text(encoding="utf-8"), api_types.types(self.document),
                         "web/src/api.ts is old: run tests/system/openapi_test.py --write, then npm run build in web/")


def write():
    server = Server("--no-agent").start()
    try:
        API_TS.write_text(api_types.types(server.get("/openapi.json")), encoding="utf-8")
    finally:
        server.stop()


if __name__ == "__main__":
    if "--write" in sys.argv:
        write()
    else:
        sys.exit(harness.main())

"""MLflow's REST API, as its clients speak it: a test for each test of MLflow's own test_rest_tracking.py (what they check is told in
MLflow's documentation), all against one server; and what Weir adds: projects in the path, passwords, tasks and tenants.
With a client from the Python index (mlflow 2.22, in a virtual environment under build/), a whole script too; skipped without."""
import base64
import json
import math
import os
import pathlib
import subprocess
import sys
import threading
import unittest
import urllib.error
import urllib.parse
import urllib.request

import harness
from harness import ROOT, Server

API = "/api/2.0/mlflow/"


class Mlflow(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--no-agent").start()
        cls.addClassCleanup(cls.server.stop)
        cls.n = 0

    def ask(self, method, path, body=None, headers=None, prefix="", raw=None):
        """(status, answer)"""
        data = raw if raw is not None else json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self.server.url + prefix + API + path, data=data, method=method)
        request.add_header("Content-Type", "application/json")
        for name, value in (headers or {"Authorization": "Bearer " + self.server.token}).items():
            request.add_header(name, value)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            text = error.read()
            return error.code, json.loads(text) if text else None

    def get(self, path, **arguments):
        status, answer = self.ask("GET", path + "?" + urllib.parse.urlencode(arguments, doseq=True))
        self.assertEqual(status, 200, answer)
        return answer

    def post(self, path, body=None, **members):
        status, answer = self.ask("POST", path, body or members)
        self.assertEqual(status, 200, answer)
        return answer

    def refused(self, words, path, body=None, status=400, code="INVALID_PARAMETER_VALUE", method="POST"):
        found, answer = self.ask(method, path, body)
        self.assertEqual((found, answer["error_code"]), (status, code), answer)
        self.assertIn(words, answer["message"])

    def experiment(self, **more):
        type(self).n += 1
        return self.post("experiments/create", {"name": f"experiment {self.n}", **more})["experiment_id"]

    def run_of(self, experiment=None, **more):
        return self.post("runs/create", {"experiment_id": experiment or self.experiment(), **more})["run"]

    def run_id(self, *arguments, **more):
        return self.run_of(*arguments, **more)["info"]["run_id"]

    def data(self, run):
        data = self.get("runs/get", run_id=run)["run"]["data"]
        return ({m["key"]: m["value"] for m in data["metrics"]}, {p["key"]: p["value"] for p in data["params"]},
                {t["key"]: t["value"] for t in data["tags"]})

    # ---- experiments

    def test_create_get_search_experiment(self):
        made = self.experiment(artifact_location="my_location", tags=[{"key": "key1", "value": "val1"}, {"key": "key2", "value": "val2"}])
        found = self.get("experiments/get", experiment_id=made)["experiment"]
        self.assertEqual((found["artifact_location"], found["lifecycle_stage"], len(found["tags"])), ("my_location", "active", 2))
        self.assertEqual(self.get("experiments/get-by-name", experiment_name=found["name"])["experiment"], found)
        self.assertEqual(self.get("experiments/get", experiment_id="0")["experiment"]["name"], "Default")
        names = lambda **body: {e["name"] for e in self.post("experiments/search", {"max_results": 1000, **body})["experiments"]}
        self.assertTrue({found["name"], "Default"} <= names())
        self.post("experiments/delete", experiment_id=made)
        self.assertNotIn(found["name"], names())
        self.assertIn(found["name"], names(view_type="DELETED_ONLY"))
        self.assertIn(found["name"], names(view_type=3))
        times = [e["creation_time"] for e in self.post("experiments/search", {"max_results": 1000, "view_type": "ALL"})["experiments"]]
        self.assertEqual(times, sorted(times, reverse=True))
        first = self.post("experiments/search", {"max_results": 1, "view_type": "ALL"})
        second = self.post("experiments/search", {"max_results": 1, "view_type": "ALL", "page_token": first["next_page_token"]})
        self.assertNotEqual(first["experiments"][0]["experiment_id"], second["experiments"][0]["experiment_id"])

    def test_create_experiment_validation(self):
        self.refused("Invalid value 123 for parameter 'name' supplied", "experiments/create", {"name": 123})
        self.refused("Missing value for required parameter 'name'", "experiments/create", {})
        self.refused("Missing value for required parameter 'name'", "experiments/create", {"name": ""})
        self.refused("Invalid value 4 for parameter 'artifact_location'", "experiments/create", {"name": "ok", "artifact_location": 4})
        self.refused("Invalid value \"x\" for parameter 'tags'", "experiments/create", {"name": "ok", "tags": "x"})
        self.refused("exceeds the maximum length", "experiments/create", {"name": "x" * 501})
        self.refused("fragments or params", "experiments/create", {"name": "frag", "artifact_location": "s3://x/#a"})
        self.post("experiments/create", name="taken")
        self.refused("already exists", "experiments/create", {"name": "taken"}, code="RESOURCE_ALREADY_EXISTS")

    def test_delete_restore_experiment(self):
        made = self.experiment()
        stage = lambda: self.get("experiments/get", experiment_id=made)["experiment"]["lifecycle_stage"]
        run = self.run_id(made)
        self.post("experiments/delete", experiment_id=made)
        self.assertEqual(stage(), "deleted")
        self.refused("must be in the 'active' state", "runs/create", {"experiment_id": made})
        self.refused("must be in the 'active' state", "runs/log-metric", {"run_id": run, "key": "m", "value": 1, "timestamp": 1})
        self.refused("exists", "experiments/delete", {"experiment_id": made}, 404, "RESOURCE_DOES_NOT_EXIST")
        self.post("experiments/restore", experiment_id=made)
        self.assertEqual(stage(), "active")
        self.post("runs/log-metric", run_id=run, key="m", value=1, timestamp=1)

    def test_rename_experiment(self):
        made = self.experiment()
        self.post("experiments/update", experiment_id=made, new_name="a good name")
        self.assertEqual(self.get("experiments/get", experiment_id=made)["experiment"]["name"], "a good name")
        self.refused("Missing value for required parameter 'new_name'", "experiments/update", {"experiment_id": made})
        self.refused("No Experiment with id=9999 exists", "experiments/update", {"experiment_id": "9999", "new_name": "x"}, 404,
                     "RESOURCE_DOES_NOT_EXIST")

    def test_set_experiment_tag(self):
        made, other = self.experiment(), self.experiment()
        tags = lambda e: {t["key"]: t["value"] for t in self.get("experiments/get", experiment_id=e)["experiment"]["tags"]}
        for value in ("imagenet1K", "birdbike", "two\nlines"):
            self.post("experiments/set-experiment-tag", experiment_id=made, key="dataset", value=value)
            self.assertEqual(tags(made), {"dataset": value})
        self.assertEqual(tags(other), {})
        self.post("experiments/delete-experiment-tag", experiment_id=made, key="dataset")
        self.assertEqual(tags(made), {})

    def test_set_experiment_tag_with_empty_string_as_value(self):
        made = self.experiment()
        self.post("experiments/set-experiment-tag", experiment_id=made, key="tag", value="")
        self.assertEqual(self.get("experiments/get", experiment_id=made)["experiment"]["tags"], [{"key": "tag", "value": ""}])

    def test_search_experiments(self):
        mark = f"mark-{os.getpid()}"
        made = [self.experiment(tags=[{"key": "mark", "value": mark}, {"key": "i", "value": str(i)}]) for i in range(3)]
        search = lambda filter, **more: [e["experiment_id"] for e in self.post("experiments/search", {
            "max_results": 100, "filter": f"tags.mark = '{mark}'" + filter, **more})["experiments"]]
        self.assertEqual(search(""), made[::-1])  # the last changed first
        self.assertEqual(search(" AND tags.i = '1'"), [made[1]])
        self.assertEqual(search("", order_by=["name ASC"]), made)
        self.assertEqual(search(" and name LIKE '%x'"), [])
        self.refused("Invalid clause(s) in filter string", "experiments/search", {"filter": "foo"})

    # ---- runs

    def test_create_run_all_args(self):
        made = self.experiment()
        tags = {"mlflow.user": "username", "mlflow.source.type": "LOCAL", "mlflow.runName": "my name", "my": "tag", "other": "tag",
                "mlflow.parentRunId": "7"}
        created = self.run_of(made, user_id="username", start_time="456", tags=[{"key": k, "value": v} for k, v in tags.items()])
        fetched = self.get("runs/get", run_uuid=created["info"]["run_id"])["run"]
        self.assertEqual(created, fetched)
        info = created["info"]
        self.assertEqual((info["experiment_id"], info["user_id"], info["start_time"], info["run_name"], info["status"]),
                         (made, "username", 456, "my name", "RUNNING"))
        self.assertEqual(info["run_id"], info["run_uuid"])
        self.assertEqual({t["key"]: t["value"] for t in created["data"]["tags"]}, tags)
        self.assertTrue(info["artifact_uri"].endswith(f"/{made}/{info['run_id']}/artifacts"))
        self.refused("different values", "runs/create", {"experiment_id": made, "run_name": "a",
                                                         "tags": [{"key": "mlflow.runName", "value": "b"}]})

    def test_create_run_defaults(self):
        info = self.run_of()["info"]
        self.assertTrue(info["run_name"])
        self.assertEqual(self.data(info["run_id"])[2]["mlflow.runName"], info["run_name"])
        self.assertNotIn("end_time", info)

    def test_log_metrics_params_tags(self):
        run = self.run_id()
        self.post("runs/log-metric", run_uuid=run, key="metric", value=123.456, timestamp=789, step=2)
        for key, value in (("nan", "NaN"), ("inf", "Infinity"), ("-inf", "-Infinity"), ("bare", float("inf"))):
            self.post("runs/log-metric", run_id=run, key=key, value=value, timestamp=1)
        self.post("runs/log-metric", run_id=run, key="stepless", value="987.654", timestamp="321")
        self.post("runs/log-parameter", run_id=run, key="param", value="value")
        self.post("runs/set-tag", run_id=run, key="taggity", value="do-dah")
        metrics, params, tags = self.data(run)
        self.assertEqual((metrics["metric"], metrics["stepless"], metrics["nan"]), (123.456, 987.654, "NaN"))
        self.assertGreaterEqual(metrics["inf"], 1.7976931348623157e308)
        self.assertLessEqual(metrics["-inf"], -1.7976931348623157e308)
        self.assertEqual(metrics["bare"], metrics["inf"])
        self.assertEqual((params["param"], tags["taggity"]), ("value", "do-dah"))
        history = self.get("metrics/get-history", run_id=run, metric_key="metric")["metrics"]
        self.assertEqual(history, [{"key": "metric", "value": 123.456, "timestamp": 789, "step": 2}])
        self.assertEqual(self.get("metrics/get-history", run_id=run, metric_key="stepless")["metrics"][0]["step"], 0)

    def test_log_metric_validation(self):
        run = self.run_id()
        good = {"run_id": run, "key": "m", "value": 41, "timestamp": 59, "step": 1}
        for name, wrong in (("run_id", 31), ("key", 32), ("value", "str"), ("timestamp", "x"), ("step", "x")):
            self.refused(f"Invalid value {json.dumps(wrong)} for parameter '{name}' supplied", "runs/log-metric", {**good, name: wrong})
        for name in ("run_id", "key", "value", "timestamp"):
            self.refused(f"Missing value for required parameter '{name}'", "runs/log-metric",
                         {k: v for k, v in good.items() if k != name})

    def test_log_param_validation(self):
        run = self.run_id()
        self.refused("Invalid value 31 for parameter 'run_id' supplied", "runs/log-parameter", {"run_id": 31, "key": "a", "value": "b"})
        self.refused("Missing value for required parameter 'key'", "runs/log-parameter", {"run_id": run, "value": "b"})
        self.post("runs/log-parameter", run_id=run, key="a", value="b")
        self.post("runs/log-parameter", run_id=run, key="a", value="b")
        self.refused("Changing param values is not allowed", "runs/log-parameter", {"run_id": run, "key": "a", "value": "c"})
        self.post("runs/log-parameter", run_id=run, key="long", value="é" * 7000)
        self.assertEqual(len(self.data(run)[1]["long"]), 6000)

    def test_log_param_with_empty_string_as_value(self):
        run = self.run_id()
        self.post("runs/log-parameter", run_id=run, key="param", value="")
        self.assertEqual(self.data(run)[1], {"param": ""})

    def test_set_tag_with_empty_string_as_value(self):
        run = self.run_id()
        self.post("runs/set-tag", run_id=run, key="tag", value="")
        self.assertEqual(self.data(run)[2]["tag"], "")

    def test_log_batch_containing_params_with_empty_string_as_value(self):
        run = self.run_id()
        self.post("runs/log-batch", run_id=run, params=[{"key": "k", "value": ""}], tags=[{"key": "t", "value": ""}])
        self.assertEqual((self.data(run)[1], self.data(run)[2]["t"]), ({"k": ""}, ""))

    def test_set_tag_validation(self):
        run = self.run_id()
        self.refused("Invalid value 31 for parameter 'run_id' supplied", "runs/set-tag", {"run_id": 31, "key": "tag", "value": "41"})
        self.refused("Missing value for required parameter 'run_id'", "runs/set-tag", {"key": "tag", "value": "41"})
        self.refused("Invalid value 5 for parameter 'value' supplied", "runs/set-tag", {"run_id": run, "key": "tag", "value": 5})

    def test_path_validation(self):
        run = self.run_id()
        for key in ("../a", "/a", "a//b", "./a", "a/", "a/../b", "."):
            self.refused("Invalid value", "runs/log-metric", {"run_id": run, "key": key, "value": 1, "timestamp": 1})
            self.refused("Invalid value", "runs/log-parameter", {"run_id": run, "key": key, "value": "1"})
            self.refused("Invalid value", "runs/set-tag", {"run_id": run, "key": key, "value": "1"})
        self.refused("Names may only contain", "runs/log-metric", {"run_id": run, "key": "a?b", "value": 1, "timestamp": 1})
        self.refused("Invalid value", "runs/get?run_id=..%2F..", method="GET")
        self.post("runs/log-metric", run_id=run, key="a/b c.d-e:f", value=1, timestamp=1)

    def test_delete_tag(self):
        run = self.run_id()
        self.post("runs/set-tag", run_id=run, key="taggity", value="do-dah")
        self.post("runs/delete-tag", run_id=run, key="taggity")
        self.assertNotIn("taggity", self.data(run)[2])
        self.refused("No tag with name: fakeTag", "runs/delete-tag", {"run_id": run, "key": "fakeTag"}, 404, "RESOURCE_DOES_NOT_EXIST")
        self.refused("not found", "runs/delete-tag", {"run_id": "fake_run_id", "key": "x"}, 404, "RESOURCE_DOES_NOT_EXIST")
        self.post("runs/delete", run_id=run)
        self.refused(f"The run {run} must be in", "runs/delete-tag", {"run_id": run, "key": "taggity"})

    def test_log_batch(self):
        run = self.run_id()
        self.post("runs/log-batch", run_id=run, metrics=[{"key": "metric", "value": 123.456, "timestamp": 789, "step": 3}],
                  params=[{"key": "param", "value": "value"}], tags=[{"key": "taggity", "value": "do-dah"}])
        metrics, params, tags = self.data(run)
        self.assertEqual((metrics["metric"], params["param"], tags["taggity"]), (123.456, "value", "do-dah"))
        again = [{"key": "m", "value": i % 3, "timestamp": 5, "step": i // 4} for i in range(1000)]
        for _ in range(2):  # the same again is nothing new
            self.post("runs/log-batch", run_id=run, metrics=again)
        points = self.get("metrics/get-history", run_id=run, metric_key="m")["metrics"]
        self.assertEqual(len(points), len({(m["step"], m["value"]) for m in again}))
        self.assertEqual(self.data(run)[0]["m"], max((m["step"], m["value"]) for m in again)[1])

    def test_log_batch_validation(self):
        run = self.run_id()
        metric = {"key": "m", "value": 1, "timestamp": 1}
        for name in ("metrics", "params", "tags"):
            self.refused(f"Invalid value \"x\" for parameter '{name}' supplied", "runs/log-batch", {"run_id": run, name: "x"})
        for name in metric:
            self.refused(f"Missing value for required parameter 'metrics[0].{name}'", "runs/log-batch",
                         {"run_id": run, "metrics": [{k: v for k, v in metric.items() if k != name}]})
        self.refused("Missing value for required parameter 'params[0].key'", "runs/log-batch", {"run_id": run, "params": [{"value": "x"}]})
        self.refused("at most 1000 metrics", "runs/log-batch", {"run_id": run, "metrics": [metric] * 1001})
        self.refused("at most 100 params", "runs/log-batch", {"run_id": run, "params": [{"key": f"p{i}", "value": ""} for i in range(101)]})
        self.refused("at most 1000 metrics, params, and tags", "runs/log-batch",
                     {"run_id": run, "metrics": [metric] * 1000, "tags": [{"key": "t", "value": "x"}]})
        self.refused("Duplicate parameter keys", "runs/log-batch", {"run_id": run, "params": [{"key": "p", "value": "1"}] * 2})
        self.refused("at most 1000000 bytes", "runs/log-batch", {"run_id": run, "tags": [{"key": "t", "value": "x" * 1000000}]})
        self.refused("metrics[1].name", "runs/log-batch", {"run_id": run, "metrics": [metric, {**metric, "key": "../x"}]})
        self.assertEqual(self.data(run)[0], {})  # all or nothing

    def test_log_model(self):
        run = self.run_id()
        models = [{"artifact_path": f"model/{i}", "flavors": {}, "utc_time_created": "now", "run_id": run} for i in range(3)]
        for model in models:
            self.post("runs/log-model", run_id=run, model_json=json.dumps(model))
        self.assertEqual(json.loads(self.data(run)[2]["mlflow.log-model.history"]), models)
        self.refused("Malformed model info", "runs/log-model", {"run_id": run, "model_json": "{x"})
        self.refused("missing mandatory fields", "runs/log-model", {"run_id": run, "model_json": "{}"})

    def test_set_terminated_defaults_and_status(self):
        run = self.run_id()
        for status in ("FINISHED", "FAILED", "KILLED", "RUNNING", "SCHEDULED"):
            info = self.post("runs/update", run_id=run, status=status, end_time=25)["run_info"]
            self.assertEqual((info["status"], info["end_time"]), (status, 25))
        self.refused("Invalid value \"DONE\" for parameter 'status'", "runs/update", {"run_id": run, "status": "DONE"})

    def test_update_run_name_without_changing_status(self):
        run = self.run_id()
        self.post("runs/update", run_id=run, status="FAILED", end_time=7)
        info = self.post("runs/update", run_id=run, run_name="a new name")["run_info"]
        self.assertEqual((info["status"], info["run_name"], info["end_time"]), ("FAILED", "a new name", 7))
        self.assertEqual(self.data(run)[2]["mlflow.runName"], "a new name")
        self.post("runs/set-tag", run_id=run, key="mlflow.runName", value="by tag")
        self.assertEqual(self.get("runs/get", run_id=run)["run"]["info"]["run_name"], "by tag")

    def test_delete_restore_run(self):
        made = self.experiment()
        run = self.run_id(made)
        search = lambda view: [r["info"]["run_id"] for r in self.post("runs/search", experiment_ids=[made], run_view_type=view)["runs"]]
        self.post("runs/delete", run_id=run)
        self.assertEqual((search("ACTIVE_ONLY"), search("DELETED_ONLY"), search("ALL")), ([], [run], [run]))
        self.assertEqual(self.get("runs/get", run_id=run)["run"]["info"]["lifecycle_stage"], "deleted")
        self.refused("must be in the 'active' state", "runs/log-parameter", {"run_id": run, "key": "a", "value": "b"})
        self.post("runs/restore", run_id=run)
        self.assertEqual(search("ACTIVE_ONLY"), [run])

    # ---- searches

    def test_search_pagination(self):
        made = self.experiment()
        runs = [self.run_id(made, start_time=i) for i in range(10)]
        found, token = [], None
        while token != "":
            page = self.post("runs/search", experiment_ids=[made], max_results=3, **({"page_token": token} if token else {}))
            found += [r["info"]["run_id"] for r in page["runs"]]
            token = page.get("next_page_token", "")
            if len(found) == 3:  # what comes meanwhile moves no page
                self.run_id(made, start_time=99)
        self.assertEqual(found, runs[::-1])
        self.refused("Invalid page token", "runs/search", {"experiment_ids": [made], "page_token": "nonsense"})

    def test_search_validation(self):
        self.refused("Invalid value 123456 for parameter 'max_results' supplied", "runs/search", {"max_results": 123456})
        self.refused("Invalid value \"x\" for parameter 'max_results'", "runs/search", {"max_results": "x"})
        self.refused("Invalid value 5 for parameter 'filter'", "runs/search", {"filter": 5})
        self.refused("for parameter 'order_by'", "runs/search", {"order_by": [5]})
        self.refused("Invalid order_by clause", "runs/search", {"order_by": ["loss UP"]})
        self.refused("character 15: expected AND, OR or the end", "runs/search", {"filter": "metrics.a > 1 metrics.b < 2"})

    def test_search_runs(self):
        made = self.experiment()
        runs = []
        for i in range(4):
            runs.append(self.run_id(made, start_time=i))
            self.post("runs/log-batch", run_id=runs[i], metrics=[{"key": "loss", "value": [0.1, "NaN", 0.3, 0.2][i], "timestamp": 1}],
                      params=[{"key": "learning rate", "value": f"{i}"}], tags=[{"key": "team", "value": "Red" if i % 2 else "blue"}])
        bare = self.run_id(made, start_time=9)
        search = lambda filter="", **more: [r["info"]["run_id"] for r in self.post(
            "runs/search", {"experiment_ids": [made], "filter": filter, **more})["runs"]]
        pick = lambda *which: [runs[i] for i in which]
        self.assertEqual(search(), [bare, *pick(3, 2, 1, 0)])
        self.assertEqual(search("metrics.loss < 0.25"), pick(3, 0))
        self.assertEqual(search("metrics.loss != 0.1"), pick(3, 2))  # what has none fits nothing
        self.assertEqual(search("params.`learning rate` = '2' or tags.team ILIKE 're%' and not metrics.loss > 0"), pick(2, 1))
        self.assertEqual(search("tags.team LIKE 're%'"), [])
        self.assertEqual(search("attributes.run_id IN ('%s', '%s')" % (runs[0], runs[2])), pick(2, 0))
        self.assertEqual(search("attributes.start_time >= 2 AND status = 'RUNNING'"), [bare, *pick(3, 2)])
        self.assertEqual(search(order_by=["metrics.loss ASC"]), [*pick(0, 3, 2), runs[1], bare])
        self.assertEqual(search(order_by=["metrics.loss DESC"]), [*pick(2, 3, 0), runs[1], bare])
        self.assertEqual(search(order_by=["params.\"learning rate\" DESC", "start_time"]), [*pick(3, 2, 1, 0), bare])
        self.assertEqual(self.post("runs/search", experiment_ids=[])["runs"], [])
        self.assertEqual(self.post("runs/search", experiment_ids=["9999"])["runs"], [])

    # ---- inputs and histories

    def inputs(self, name="d", digest="x", context="train"):
        return [{"tags": [{"key": "mlflow.data.context", "value": context}],
                 "dataset": {"name": name, "digest": digest, "source_type": "local", "source": "there", "schema": "s", "profile": "p"}}]

    def test_log_inputs(self):
        made = self.experiment()
        run = self.run_id(made)
        for _ in range(2):
            self.post("runs/log-inputs", run_id=run, datasets=self.inputs())
        self.assertEqual(self.get("runs/get", run_id=run)["run"]["inputs"]["dataset_inputs"], self.inputs())
        found = self.post("runs/search", experiment_ids=[made], filter="dataset.name = 'd' and dataset.context = 'train'")["runs"]
        self.assertEqual(found[0]["inputs"]["dataset_inputs"], self.inputs())
        self.assertEqual(self.server.get(f"/runs/{run}/lineage"),
                         {"inputs": [{"name": "d", "digest": "x", "context": "train", "source_type": "local", "source": "there"}], "versions": []})

    def test_log_inputs_validation(self):
        run = self.run_id()
        self.refused("Missing value for required parameter 'datasets'", "runs/log-inputs", {"run_id": run})
        self.refused("Invalid value \"x\" for parameter 'datasets'", "runs/log-inputs", {"run_id": run, "datasets": "x"})
        self.refused("Missing value for required parameter 'datasets[0].dataset.name'", "runs/log-inputs",
                     {"run_id": run, "datasets": [{"dataset": {"digest": "x"}}]})
        self.refused("a dataset has 37 bytes", "runs/log-inputs", {"run_id": run, "datasets": self.inputs(digest="x" * 37)})

    def test_search_dataset_handler_rejects_invalid_requests(self):
        self.refused("must specify at least one experiment_id", "experiments/search-datasets", {})
        self.refused("must specify at least one experiment_id", "experiments/search-datasets", {"experiment_ids": []})
        self.refused("cannot specify more than 20", "experiments/search-datasets", {"experiment_ids": [str(i) for i in range(21)]})
        self.refused("for parameter 'experiment_ids'", "experiments/search-datasets", {"experiment_ids": "5"})

    def test_search_dataset_handler_returns_expected_results(self):
        made = self.experiment()
        run = self.run_id(made)
        self.post("runs/log-inputs", run_id=run, datasets=self.inputs("a") + self.inputs("b", context="eval"))
        found = self.post("experiments/search-datasets", experiment_ids=[made])["dataset_summaries"]
        self.assertEqual(found, [{"experiment_id": made, "name": "a", "digest": "x", "context": "train"},
                                 {"experiment_id": made, "name": "b", "digest": "x", "context": "eval"}])

    def curve(self, run, n, key="m"):
        for first in range(0, n, 1000):
            self.post("runs/log-batch", run_id=run, metrics=[
                {"key": key, "value": i / 7, "timestamp": 1000 + i, "step": i} for i in range(first, min(n, first + 1000))])

    def test_get_metric_history_pages(self):
        run = self.run_id()
        self.curve(run, 25)
        steps, token = [], ""
        while token is not None:
            page = self.get("metrics/get-history", run_id=run, metric_key="m", max_results=10, page_token=token)
            steps += [m["step"] for m in page["metrics"]]
            token = page.get("next_page_token")
        self.assertEqual(steps, list(range(25)))
        self.assertEqual(self.get("metrics/get-history", run_id=run, metric_key="none")["metrics"], [])

    def test_get_metric_history_bulk_rejects_invalid_requests(self):
        self.refused("must specify at least one run_id", "metrics/get-history-bulk?metric_key=m", method="GET")
        self.refused("cannot specify more than 100 run_ids. Received 101", "metrics/get-history-bulk?metric_key=m" + "&run_id=a" * 101,
                     method="GET")
        self.refused("must specify a metric_key", "metrics/get-history-bulk?run_id=a", method="GET")

    def test_get_metric_history_bulk_returns_expected_metrics_in_expected_order(self):
        made = self.experiment()
        runs = sorted(self.run_id(made) for _ in range(2))
        for run in runs:
            self.curve(run, 5)
        found = self.get("metrics/get-history-bulk", run_id=runs[::-1], metric_key="m")["metrics"]
        self.assertEqual([(m["run_id"], m["step"]) for m in found], [(run, i) for run in runs for i in range(5)])

    def test_get_metric_history_bulk_respects_max_results(self):
        run = self.run_id()
        self.curve(run, 20)
        found = self.get("metrics/get-history-bulk", run_id=[run], metric_key="m", max_results=7)["metrics"]
        self.assertEqual([m["step"] for m in found], list(range(7)))

    def test_get_metric_history_bulk_interval_rejects_invalid_requests(self):
        base = "metrics/get-history-bulk-interval"
        self.refused("Missing value for required parameter 'run_ids'", base + "?metric_key=m", method="GET")
        self.refused("Missing value for required parameter 'metric_key'", base + "?run_ids=a", method="GET")
        self.refused("at most 100 run_ids. Received 101", base + "?metric_key=m" + "&run_ids=a" * 101, method="GET")
        self.refused("between 1 and 2500", base + "?metric_key=m&run_ids=a&max_results=2501", method="GET")
        self.refused("both must be specified", base + "?metric_key=m&run_ids=a&start_step=1", method="GET")
        self.refused("end_step must be greater than start_step", base + "?metric_key=m&run_ids=a&start_step=2&end_step=1", method="GET")

    def test_get_metric_history_bulk_interval_respects_max_results(self):
        made = self.experiment()
        runs = [self.run_id(made), self.run_id(made)]
        self.curve(runs[0], 100)
        self.curve(runs[1], 10)
        ask = lambda **more: self.get("metrics/get-history-bulk-interval", run_ids=runs, metric_key="m", **more)["metrics"]
        steps = [m["step"] for m in ask(max_results=5) if m["run_id"] == runs[0]]
        self.assertEqual(steps, [0, 9, 20, 40, 60, 80, 99])  # five, and the first and the last of each run
        self.assertEqual([m["step"] for m in ask(start_step=3, end_step=5) if m["run_id"] == runs[1]], [3, 4, 5])
        self.assertEqual(len(ask()), 110)

    # ---- hostile bodies

    def test_bodies_that_are_none(self):
        for raw in (b"{", b"[]", b"5", b"\xff\xfe", b'{"run_id": "\xff"}', b"[" * 100000, b'{"a":' * 5000, b"NaN"):
            status, answer = self.ask("POST", "runs/log-metric", raw=raw)
            self.assertEqual((status, answer["error_code"]), (400, "INVALID_PARAMETER_VALUE"), raw[:20])
        status, _ = self.ask("POST", "runs/log-metric", raw=b'{"x":"' + b"y" * (2 << 20) + b'"}')
        self.assertEqual(status, 413)
        status, answer = self.ask("POST", "no/such/thing", {})
        self.assertEqual((status, answer["error_code"]), (404, "ENDPOINT_NOT_FOUND"))

    # ---- who may what

    def test_a_project_in_the_path_is_the_world_of_the_call(self):
        self.server.post("/projects", {"name": "vision"})
        ask = lambda method, path, body=None: self.ask(method, path, body, prefix="/p/vision")
        status, answer = ask("POST", "runs/create", {"experiment_id": "0", "run_name": "mine"})
        self.assertEqual(status, 200, answer)
        run = answer["run"]["info"]
        self.assertNotEqual(run["experiment_id"], "0")  # the project's own "Default"
        self.assertEqual(ask("GET", "experiments/get-by-name?experiment_name=Default")[1]["experiment"]["experiment_id"],
                         run["experiment_id"])
        names = {e["name"] for e in ask("POST", "experiments/search", {"max_results": 100})[1]["experiments"]}
        self.assertEqual(names, {"Default"})
        other = self.run_id()
        self.assertEqual(ask("GET", f"runs/get?run_id={other}")[0], 404)
        self.assertEqual(ask("POST", "runs/log-parameter", {"run_id": other, "key": "a", "value": "b"})[0], 404)
        self.assertEqual(self.server.get(f"/runs/{run['run_id']}")["project"], "vision")

    def test_names_and_passwords_and_tenants(self):
        server = self.server
        for project in ("red", "green"):
            server.post("/projects", {"name": project})
        server.post("/users", {"name": "rita", "kind": "person", "role": "member"})
        server.request("PUT", "/api/v1/users/rita/password", {"password": "a long password"})
        server.request("PUT", "/api/v1/projects/red/members/user/rita", {"role": "data-scientist"})
        basic = lambda pair: {"Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}
        ask = lambda *call, pair="rita:a long password", prefix="": self.ask(*call, headers=basic(pair), prefix=prefix)
        for _ in range(3):  # the second and third are remembered
            status, answer = ask("POST", "runs/create", {"experiment_id": "0"})
            self.assertEqual(status, 200, answer)
        mine, foreign = answer["run"]["info"]["run_id"], self.run_id()
        self.assertEqual(server.get(f"/runs/{mine}")["project"], "red")  # the only one she has
        self.assertEqual(ask("GET", f"runs/get?run_id={mine}")[0], 200)
        for prefix in ("", "/p/red"):
            self.assertEqual(ask("GET", f"runs/get?run_id={foreign}", prefix=prefix)[0], 404)
            self.assertEqual(ask("POST", "runs/set-tag", {"run_id": foreign, "key": "a", "value": "b"}, prefix=prefix)[0], 404)
            self.assertEqual(ask("POST", "experiments/delete", {"experiment_id": "0" if prefix == "" else "9999"}, prefix=prefix)[0] // 100, 4)
        found = {run["info"]["run_id"] for run in ask("POST", "runs/search", {"experiment_ids": ["0"]})[1]["runs"]}
        self.assertIn(mine, found)
        self.assertNotIn(foreign, found)
        self.assertEqual(ask("GET", "experiments/get?experiment_id=0", prefix="/p/green")[0], 404)
        for pair in ("rita:wrong password", "nobody:a long password", "rita", "rita:"):
            status, answer = ask("GET", "experiments/get?experiment_id=0", pair=pair)
            self.assertEqual((status, answer["error_code"]), (401, "UNAUTHENTICATED"))
        server.request("PUT", "/api/v1/users/rita/password", {"password": "another password"})
        self.assertEqual(ask("GET", "experiments/get?experiment_id=0")[0], 401)  # at once, though remembered
        self.assertEqual(ask("GET", "experiments/get?experiment_id=0", pair="rita:another password")[0], 200)
        self.assertEqual(ask("GET", "experiments/get?experiment_id=0", pair="x:" + server.token)[0], 200)  # a token in its place
        self.assertEqual(self.ask("GET", "experiments/get?experiment_id=0", headers={"X": "y"})[0], 401)

    def test_many_writers_at_once(self):
        run, wrong = self.run_id(), []

        def write(i):
            for k in range(5):
                status, answer = self.ask("POST", "runs/log-metric", {"run_id": run, "key": "w", "value": i, "timestamp": k, "step": i * 5 + k})
                if status != 200:
                    wrong.append(answer)

        threads = [threading.Thread(target=write, args=(i,)) for i in range(64)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        self.assertEqual(wrong, [])
        self.assertEqual(len(self.get("metrics/get-history", run_id=run, metric_key="w")["metrics"]), 320)

    def test_what_programs_log_outlives_a_kill(self):
        server = Server("--no-agent").start()
        self.addCleanup(server.stop)
        post = lambda path, body: server.request("POST", API + path, body)
        run = post("runs/create", {"experiment_id": "0"})["run"]["info"]["run_id"]
        for i in range(20):
            post("runs/log-batch", {"run_id": run, "metrics": [{"key": "m", "value": i, "timestamp": i, "step": i}]})
        server.kill()
        server.start()
        found = server.request("GET", API + f"metrics/get-history?run_id={run}&metric_key=m")["metrics"]
        self.assertEqual([m["step"] for m in found], list(range(20)))


SCRIPT = """
import math, mlflow
from mlflow import MlflowClient
from mlflow.entities import Metric, ViewType
client = MlflowClient()
mlflow.set_experiment("by the client")
with mlflow.start_run(run_name="first") as run:
    mlflow.log_params({"lr": 0.1, "layers": 3})
    for i in range(10):
        mlflow.log_metric("loss", 1 / (i + 1), step=i)
    mlflow.log_metric("nan", float("nan"))
    mlflow.set_tag("team", "red")
    with mlflow.start_run(nested=True) as child:
        mlflow.log_metric("loss", 5)
found = client.get_run(run.info.run_id)
assert found.data.params == {"lr": "0.1", "layers": "3"} and found.info.status == "FINISHED", found
assert math.isnan(found.data.metrics["nan"])
assert [m.step for m in client.get_metric_history(run.info.run_id, "loss")] == list(range(10))
pages = client.search_runs([found.info.experiment_id], "metrics.loss < 1", order_by=["metrics.loss ASC"])
assert [page.info.run_id for page in pages] == [run.info.run_id], pages
client.log_batch(run.info.run_id, metrics=[Metric("many", i, i, i) for i in range(2500)])
assert len(client.get_metric_history(run.info.run_id, "many")) == 2500
client.delete_run(child.info.run_id)
assert len(client.search_runs([found.info.experiment_id], run_view_type=ViewType.DELETED_ONLY)) == 1
try:
    client.get_run("0" * 32)
    raise SystemExit("a run that is not there was found")
except mlflow.exceptions.MlflowException as error:
    assert error.error_code == "RESOURCE_DOES_NOT_EXIST", error
print("done")
"""


class Client(unittest.TestCase):
    """The client as it comes from the Python index."""

    @classmethod
    def setUpClass(cls):
        folder = pathlib.Path(os.environ.get("WEIR_MLFLOW_VENV", ROOT / "build/mlflow-client"))
        cls.python = folder / "bin/python"
        if not (folder / "bin/mlflow").exists():
            made = subprocess.run([sys.executable, "-m", "venv", folder], capture_output=True)
            if made.returncode == 0:
                made = subprocess.run([folder / "bin/pip", "install", "--quiet", "--timeout", "10", "--retries", "0",
                                       "mlflow-skinny==2.22.*"], capture_output=True)
        has_client = cls.python.exists() and subprocess.run([cls.python, "-c", "import mlflow"], capture_output=True).returncode == 0
        if not has_client:
            raise unittest.SkipTest("mlflow's client cannot be had from the Python index")
        cls.server = Server("--no-agent").start()
        cls.addClassCleanup(cls.server.stop)

    def test_a_script_is_tracked_unmodified(self):
        self.server.post("/projects", {"name": "vision"})
        for uri in (self.server.url, self.server.url + "/p/vision"):
            done = subprocess.run([self.python, "-c", SCRIPT], capture_output=True, text=True, timeout=300, env={
                **os.environ, "MLFLOW_TRACKING_URI": uri, "MLFLOW_TRACKING_TOKEN": self.server.token, "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1"})
            self.assertIn("done", done.stdout, done.stderr[-2000:])
        projects = {run["project"] for run in self.server.get("/runs")["items"]}
        self.assertEqual(projects, {"default", "vision"})


if __name__ == "__main__":
    harness.main()

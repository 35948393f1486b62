"""MLflow 3's logged models: by raw HTTP as its protocol has them, and by its newest client from the Python index (a virtual environment
under build/; skipped without): an ordinary script, by itself and as the job of `weir job run`."""
import json
import os
import subprocess
import sys
import unittest
import urllib.parse

import harness
from harness import ROOT, HttpError, Server, small_model, wait_until

sys.path[:0] = [str(ROOT / "tests/serve")]
from peers import install  # noqa: E402

API = "/api/2.0/mlflow/"
PROXY = "/api/2.0/mlflow-artifacts/artifacts/"


class LoggedModels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--no-agent").start()
        cls.addClassCleanup(cls.server.stop)
        cls.server.post("/projects", {"name": "red"})
        cls.n = 0

    def ask(self, method, place, body=None, prefix="", **query):
        return self.server.request(method, prefix + API + place + ("?" + urllib.parse.urlencode(query) if query else ""), body)

    def refused(self, code, words, method, place, body=None, **more):
        with self.assertRaises(HttpError) as caught:
            self.ask(method, place, body, **more)
        error = json.loads(caught.exception.body)
        self.assertEqual(error["error_code"], code, error)
        self.assertIn(words, error["message"])

    def make(self, **more):
        return self.ask("POST", "logged-models", {"experiment_id": "0", "name": "net", **more})["model"]

    def run_of(self):
        return self.ask("POST", "runs/create", {"experiment_id": "0"})["run"]["info"]

    def experiment(self):
        type(self).n += 1
        return self.ask("POST", "experiments/create", {"name": f"experiment {self.n}"})["experiment_id"]

    def test_create_get_and_finalize(self):
        run = self.run_of()
        made = self.make(source_run_id=run["run_id"], model_type="agent", params=[{"key": "depth", "value": "3"}],
                         tags=[{"key": "team", "value": "red"}])
        info = made["info"]
        self.assertRegex(info["model_id"], "^m-[0-9a-f]{32}$")
        self.assertEqual((info["name"], info["status"], info["source_run_id"], info["experiment_id"], info["model_type"]),
                         ("net", "LOGGED_MODEL_PENDING", run["run_id"], "0", "agent"))
        self.assertTrue(info["artifact_uri"].startswith(run["artifact_uri"] + "/"))
        self.assertEqual((made["data"]["params"], info["tags"]), ([{"key": "depth", "value": "3"}], [{"key": "team", "value": "red"}]))
        place = "logged-models/" + info["model_id"]
        self.assertEqual(self.ask("GET", place)["model"], made)
        for status in ("LOGGED_MODEL_READY", 3, "LOGGED_MODEL_UPLOAD_FAILED", 2):
            told = self.ask("PATCH", place, {"model_id": info["model_id"], "status": status})["model"]["info"]["status"]
            self.assertEqual(told, {2: "LOGGED_MODEL_READY", 3: "LOGGED_MODEL_UPLOAD_FAILED"}.get(status, status))
        self.refused("INVALID_PARAMETER_VALUE", "status", "PATCH", place, {"status": "DONE"})
        self.refused("INVALID_PARAMETER_VALUE", "cannot contain", "POST", "logged-models", {"experiment_id": "0", "name": "a/b"})
        self.refused("RESOURCE_DOES_NOT_EXIST", "not found", "GET", "logged-models/m-" + "0" * 32)
        elsewhere = self.ask("POST", "logged-models", {"experiment_id": "0", "source_run_id": "nothing"})["model"]["info"]
        self.assertEqual(elsewhere["source_run_id"], "nothing")
        for number in ("1", "2"):
            self.ask("POST", "registered-models/create", {"name": "listed"}) if number == "1" else None
            self.ask("POST", "model-versions/create", {"name": "listed", "source": "models:/" + elsewhere["model_id"],
                                                       "model_id": elsewhere["model_id"]})
        tags = {tag["key"]: tag["value"] for tag in self.ask("GET", "logged-models/" + elsewhere["model_id"])["model"]["info"]["tags"]}
        self.assertEqual(json.loads(tags["mlflow.modelVersions"]), [{"name": "listed", "version": "1"}, {"name": "listed", "version": "2"}])
        self.assertTrue(self.make(name="")["info"]["name"])

    def test_one_without_a_run_gets_one_for_its_files(self):
        info = self.make(name="alone")["info"]
        self.assertNotIn("source_run_id", info)
        run = info["artifact_uri"].split("/")[2]
        self.assertEqual(self.server.get(f"/runs/{run}")["name"], "alone")

    def test_parameters_are_written_once_and_tags_change(self):
        place = "logged-models/" + self.make()["info"]["model_id"]
        self.ask("POST", place + "/params", {"params": [{"key": "a", "value": "1"}, {"key": "b", "value": "2"}]})
        self.ask("POST", place + "/params", {"params": [{"key": "a", "value": "1"}]})
        self.refused("INVALID_PARAMETER_VALUE", "Changing param values", "POST", place + "/params", {"params": [{"key": "a", "value": "2"}]})
        self.ask("PATCH", place + "/tags", {"tags": [{"key": "a/b c", "value": "1"}]})
        told = self.ask("PATCH", place + "/tags", {"tags": [{"key": "a/b c", "value": "2"}]})["model"]
        self.assertEqual(told["info"]["tags"], [{"key": "a/b c", "value": "2"}])
        self.assertEqual(len(told["data"]["params"]), 2)
        self.ask("DELETE", place + "/tags/" + urllib.parse.quote("a/b c"))
        self.assertEqual(self.ask("GET", place)["model"]["info"]["tags"], [])
        self.refused("RESOURCE_DOES_NOT_EXIST", "No tag", "DELETE", place + "/tags/none")

    def test_measurements_of_a_run_are_a_models_too(self):
        run, model = self.run_of()["run_id"], self.make()["info"]["model_id"]
        of = {"timestamp": 1, "model_id": model}
        self.ask("POST", "runs/log-metric", {"run_id": run, "key": "acc", "value": 0.5, "step": 1, **of})
        self.ask("POST", "runs/log-batch", {"run_id": run, "metrics": [
            {"key": "acc", "value": 0.7, "step": 2, **of}, {"key": "acc", "value": 0.1, "step": 1, **of},
            {"key": "acc", "value": 0.6, "step": 2, **of, "dataset_name": "test", "dataset_digest": "d1"},
            {"key": "other", "value": 1, "step": 1, "timestamp": 1}]})
        metrics = self.ask("GET", "logged-models/" + model)["model"]["data"]["metrics"]
        self.assertEqual([(m["key"], m["value"], m["step"], m.get("dataset_name"), m["run_id"], m["model_id"]) for m in metrics],
                         [("acc", 0.7, 2, None, run, model), ("acc", 0.6, 2, "test", run, model)])
        self.assertEqual(len(self.ask("GET", "metrics/get-history", run_id=run, metric_key="acc")["metrics"]), 4)
        self.refused("RESOURCE_DOES_NOT_EXIST", "Logged model", "POST", "runs/log-metric",
                     {"run_id": run, "key": "acc", "value": 1, "timestamp": 1, "model_id": "m-" + "0" * 32})

    def test_runs_tell_what_they_made_and_read(self):
        run, made, read = self.run_of()["run_id"], self.make()["info"]["model_id"], self.make()["info"]["model_id"]
        self.ask("POST", "runs/outputs", {"run_id": run, "models": [{"model_id": made, "step": 4}]})
        self.ask("POST", "runs/log-inputs", {"run_id": run, "models": [{"model_id": read}]})
        told = self.ask("GET", "runs/get", run_id=run)["run"]
        self.assertEqual((told["outputs"]["model_outputs"], told["inputs"]["model_inputs"]),
                         ([{"model_id": made, "step": 4}], [{"model_id": read}]))
        found = self.ask("POST", "runs/search", {"experiment_ids": ["0"], "filter": f"run_id = '{run}'"})["runs"]
        self.assertEqual(found, [told])
        self.refused("RESOURCE_DOES_NOT_EXIST", "Logged model", "POST", "runs/outputs", {"run_id": run, "models": [{"model_id": "m-none"}]})
        self.refused("INVALID_PARAMETER_VALUE", "models[0].model_id", "POST", "runs/outputs", {"run_id": run, "models": [{}]})

    def test_search(self):
        experiment, run = self.experiment(), self.run_of()["run_id"]
        made = []
        for i in range(7):
            info = self.make(experiment_id=experiment, name=f"net {i % 2}", params=[{"key": "depth", "value": str(i % 3)}])["info"]
            made.append(info["model_id"])
            self.ask("POST", "runs/log-metric", {"run_id": run, "key": "acc", "value": 3 * i % 7, "timestamp": 1, "model_id": made[-1]})

        def search(filter="", pages_of=100, **more):
            found, token = [], None
            while token != "":
                page = self.ask("POST", "logged-models/search", {"experiment_ids": [experiment], "filter": filter, "max_results": pages_of,
                                                                 **({"page_token": token} if token else {}), **more})
                found += [made.index(model["info"]["model_id"]) for model in page.get("models", [])]
                token = page.get("next_page_token", "")
            return found

        by_acc = sorted(range(7), key=lambda i: 3 * i % 7)
        self.assertEqual(search(order_by=[{"field_name": "metrics.acc"}], pages_of=2), by_acc)
        self.assertEqual(search(order_by=[{"field_name": "metrics.acc", "ascending": False}]), by_acc[::-1])
        self.assertEqual(sorted(search("name = 'net 1' AND params.depth = '0'")), [3])
        self.assertEqual(sorted(search("metrics.acc >= 5")), sorted(i for i in range(7) if 3 * i % 7 >= 5))
        self.assertEqual(search(f"model_id = '{made[2]}'"), [2])
        self.ask("DELETE", "logged-models/" + made[2])
        self.assertNotIn(2, search())
        self.refused("RESOURCE_DOES_NOT_EXIST", "not found", "GET", "logged-models/" + made[2])
        self.refused("INVALID_PARAMETER_VALUE", "dataset", "POST", "logged-models/search",
                     {"experiment_ids": [experiment], "datasets": [{"dataset_name": "d"}]})
        self.refused("INVALID_PARAMETER_VALUE", "field", "POST", "logged-models/search",
                     {"experiment_ids": [experiment], "order_by": [{"ascending": True}]})
        self.assertEqual(self.ask("POST", "logged-models/search", {"experiment_ids": []})["models"], [])

    def test_its_files_become_a_version_that_serves(self):
        run = self.run_of()
        info = self.make(source_run_id=run["run_id"])["info"]
        folder = info["artifact_uri"].replace("mlflow-artifacts:/", PROXY)
        self.server.request("PUT", folder + "/model.onnx", small_model("y", (None, 4)))
        self.server.request("PUT", folder + "/data/a.txt", b"a")
        place = f"logged-models/{info['model_id']}/artifacts/directories"
        told = self.ask("GET", place)
        self.assertEqual((told["root_uri"], [(file["path"], file["is_dir"]) for file in told["files"]]),
                         (info["artifact_uri"], [("data", True), ("model.onnx", False)]))
        told = self.ask("GET", place, artifact_directory_path="data")
        self.assertEqual([(file["path"], file["file_size"]) for file in told["files"]], [("data/a.txt", 1)])
        self.refused("INVALID_PARAMETER_VALUE", "Invalid path", "GET", place, artifact_directory_path="../..")
        self.ask("POST", "registered-models/create", {"name": "of a logged one"})
        version = self.ask("POST", "model-versions/create", {"name": "of a logged one", "source": "models:/" + info["model_id"],
                                                             "model_id": info["model_id"]})["model_version"]
        self.assertEqual((version["status"], version.get("status_message"), version["model_id"]), ("READY", None, info["model_id"]))
        where = {"name": "of a logged one", "version": "1"}
        self.assertEqual(self.ask("GET", "model-versions/get-download-uri", **where)["artifact_uri"], info["artifact_uri"])
        self.ask("DELETE", "logged-models/" + info["model_id"])  # which takes nothing from the version
        got = self.server.request("GET", "/model-versions/get-artifact?" + urllib.parse.urlencode({**where, "path": "data/a.txt"}), raw=True)
        self.assertEqual(got, b"a")
        self.refused("RESOURCE_DOES_NOT_EXIST", "Logged model", "POST", "model-versions/create",
                     {"name": "of a logged one", "source": "models:/m-" + "0" * 32})

    def test_another_projects_is_not_there(self):
        info = self.make()["info"]
        place = "logged-models/" + info["model_id"]
        red = {"prefix": "/p/red"}
        self.refused("RESOURCE_DOES_NOT_EXIST", "not found", "GET", place, **red)
        self.refused("RESOURCE_DOES_NOT_EXIST", "not found", "PATCH", place, {"status": 2}, **red)
        self.refused("RESOURCE_DOES_NOT_EXIST", "not found", "DELETE", place, **red)
        self.refused("RESOURCE_DOES_NOT_EXIST", "not found", "GET", place + "/artifacts/directories", **red)
        self.ask("POST", "registered-models/create", {"name": "reds"}, **red)
        self.refused("RESOURCE_DOES_NOT_EXIST", "not found", "POST", "model-versions/create",
                     {"name": "reds", "source": "models:/" + info["model_id"]}, **red)
        own = self.ask("POST", "logged-models", {"experiment_id": "0", "name": "n", "tags": [{"key": "k", "value": "v"}]}, **red)["model"]
        found = self.ask("POST", "logged-models/search", {"experiment_ids": ["0"]}, **red)["models"]
        self.assertEqual(found, [own])

    def test_traces_are_refused_in_words_that_clients_read(self):
        for path in ("/api/3.0/mlflow/traces", "/api/2.0/mlflow/traces", "/api/3.0/mlflow/runs/get"):
            with self.assertRaises(HttpError) as refused:
                self.server.request("POST", path, {})
            self.assertEqual(refused.exception.code, 404)
            error = json.loads(refused.exception.body)
            self.assertEqual(error["error_code"], "ENDPOINT_NOT_FOUND")
            self.assertIn("traces", error["message"])


# What people write. argv: where the script is told what to print goes.
SCRIPT = """
import os, sys, tempfile
import mlflow, mlflow.pyfunc
from mlflow import MlflowClient

class Adder(mlflow.pyfunc.PythonModel):
    def predict(self, context, model_input, params=None):
        return [value + 1 for value in model_input]

client = MlflowClient()
if "MLFLOW_RUN_ID" not in os.environ:
    mlflow.set_experiment("three")
with mlflow.start_run() as run:
    mlflow.log_params({"lr": 0.1, "layers": 3})
    for step in range(5):
        mlflow.log_metric("loss", 1 / (step + 1), step=step)
    mlflow.log_text("hello", "notes/hello.txt")
    info = mlflow.pyfunc.log_model(name="adder", python_model=Adder(), pip_requirements=[], registered_model_name=sys.argv[1])
    mlflow.log_metric("acc", 0.9, model_id=info.model_id)
assert mlflow.pyfunc.load_model(info.model_uri).predict([1, 2]) == [2, 3]
assert mlflow.pyfunc.load_model(f"runs:/{run.info.run_id}/adder").predict([1]) == [2]
client.set_registered_model_alias(sys.argv[1], "champion", 1)
assert mlflow.pyfunc.load_model(f"models:/{sys.argv[1]}@champion").predict([4]) == [5]
model = mlflow.get_logged_model(info.model_id)
assert str(model.status) == "READY" and model.source_run_id == run.info.run_id, model
assert ("acc", 0.9) in [(metric.key, metric.value) for metric in model.metrics], model.metrics
experiment = client.get_run(run.info.run_id).info.experiment_id
found = client.search_logged_models([experiment], "metrics.acc > 0.5", order_by=[{"field_name": "metrics.acc", "ascending": False}])
assert [one.model_id for one in found] == [info.model_id], found
assert [one.model_id for one in client.get_run(run.info.run_id).outputs.model_outputs] == [info.model_id]
client.set_logged_model_tags(info.model_id, {"a": "b"})
assert client.get_logged_model(info.model_id).tags["a"] == "b"
again = mlflow.register_model(info.model_uri, sys.argv[1] + " again")
assert mlflow.pyfunc.load_model(f"models:/{sys.argv[1]} again/1").predict([1]) == [2]
assert "hello" in mlflow.artifacts.load_text(f"runs:/{run.info.run_id}/notes/hello.txt")
runs = client.search_runs([experiment], "metrics.acc > 0.5", order_by=["metrics.loss ASC"])
assert [one.info.run_id for one in runs] == [run.info.run_id], runs
print("done", mlflow.__version__, run.info.run_id)
"""

FIT = """
import mlflow, mlflow.sklearn
from sklearn.linear_model import LogisticRegression
mlflow.sklearn.autolog(serialization_format="cloudpickle")
with mlflow.start_run() as run:
    LogisticRegression().fit([[0.0], [1.0], [0.1], [0.9]], [0, 1, 0, 1])
found = mlflow.MlflowClient().get_run(run.info.run_id)
assert found.data.params["C"] == "1.0" and found.data.metrics["training_accuracy_score"] == 1, found.data
assert len(found.outputs.model_outputs) == 1
print("done", run.info.run_id)
"""


class Client(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.python = install(ROOT / "build/peers/mlflow3", ("mlflow-skinny>=3", "pandas", "scikit-learn"))
        if cls.python is None:
            raise unittest.SkipTest("MLflow 3 cannot be had here")
        cls.server = Server("--cpu-slots", "4", "--share", str(ROOT / "build/peers")).start()
        cls.addClassCleanup(cls.server.stop)
        cls.server.post("/projects", {"name": "vision"})

    def test_an_ordinary_script(self):
        done = subprocess.run([self.python, "-W", "ignore", "-c", SCRIPT, "adder"], capture_output=True, text=True, timeout=300, env={
            **os.environ, "MLFLOW_TRACKING_URI": self.server.url + "/p/vision", "MLFLOW_TRACKING_TOKEN": self.server.token,
            "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1", "GIT_PYTHON_REFRESH": "quiet"})
        self.assertIn("done 3.", done.stdout, done.stderr[-2000:])
        model = [one for one in self.server.get("/models?limit=100")["items"] if one["name"] == "adder"]
        self.assertEqual(model[0]["project"], "vision")

    def job(self, name, script, *arguments):
        """`weir job run` of the script, which says nothing of Weir. @return (job, its run)"""
        folder = self.server.root / name
        folder.mkdir()
        (folder / "train.py").write_text(script)
        done = subprocess.run([harness.WEIR, "job", "run", name, "--dir", folder, "--project", "vision", "-e", "GIT_PYTHON_REFRESH=quiet",
                               "--follow", "--state", self.server.state, "--", self.python, "-W", "ignore", "train.py", *arguments],
                              capture_output=True, text=True, timeout=300)
        out = done.stdout
        self.assertEqual(done.returncode, 0, out[-1500:] + done.stderr[-1500:])
        [job] = [one for one in self.server.get("/jobs?limit=100")["items"] if one["name"] == name]
        self.assertIn("done", out)
        self.assertIn(job["run"], out)
        return job, self.server.get(f"/runs/{job['run']}")

    def test_the_same_script_as_a_job(self):
        job, run = self.job("tracked", SCRIPT, "from a job")
        self.assertEqual((run["status"], run["project"], run["job"]), ("FINISHED", "vision", job["id"]))
        version = self.server.get("/models/from%20a%20job/versions/1")
        self.assertEqual(version["run"], job["run"])

    def test_a_fit_that_logs_by_itself_as_a_job(self):
        _, run = self.job("fitted", FIT)
        self.assertEqual(run["status"], "FINISHED")


if __name__ == "__main__":
    harness.main()

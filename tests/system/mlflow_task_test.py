"""The token of a job's task in MLflow's API: what it may do to its own job's runs and in its project, and that it does nothing else:
no other run, no other project, no person, no secret; and nothing once its job is over."""
import json
import unittest
import urllib.parse

import harness
from harness import HttpError, Server, small_model, wait_until

API = "/api/2.0/mlflow/"
PROXY = "/api/2.0/mlflow-artifacts/"


def own(answer):
    """A run without what its node measures of it meanwhile."""
    answer["run"]["data"]["metrics"] = [one for one in answer["run"]["data"].get("metrics", []) if not one["key"].startswith("system/")]
    return answer


class TaskToken(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = server = Server("--cpu-slots", "4")
        cls.addClassCleanup(server.stop)
        server.start()
        for project in ("red", "green"):
            server.post("/projects", {"name": project})
        server.request("PUT", "/api/v1/projects/red/secrets/password", {"value": "not to be seen"})
        cls.work = server.root / "work"
        cls.work.mkdir()
        cls.work.chmod(0o777)
        cls.job, cls.token = cls.start("own")
        cls.own = cls.job["run"]
        cls.other_job, _ = cls.start("other")
        cls.foreign = {"of nobody": cls.admin("POST", "runs/create", {"experiment_id": "0"}, prefix="/p/red")["run"]["info"],
                       "of another job": cls.admin("GET", "runs/get", run_id=cls.other_job["run"])["run"]["info"]}
        cls.green = cls.admin("POST", "runs/create", {"experiment_id": "0"}, prefix="/p/green")["run"]["info"]
        for project, run in (("red", cls.foreign["of nobody"]), ("green", cls.green)):
            cls.put(run, "f.txt", b"of another", server.token)
            cls.put(run, "model.onnx", small_model("y", (None, 4)), server.token)
            cls.admin("POST", "registered-models/create", {"name": f"the {project} one"}, prefix=f"/p/{project}")
            cls.admin("POST", "model-versions/create", {"name": f"the {project} one", "source": run["artifact_uri"],
                                                        "run_id": run["run_id"]}, prefix=f"/p/{project}")
        cls.info = cls.admin("GET", "runs/get", run_id=cls.own)["run"]["info"]

    @classmethod
    def start(cls, name):
        """A job of project red that gives its token away, and waits. @return (job, token)"""
        argv = ["sh", "-c", f"cp token {cls.work}/{name}.new && chmod 644 {cls.work}/{name}.new && mv {cls.work}/{name}.new "
                            f"{cls.work}/{name} && exec sleep 600"]
        job = cls.server.post("/jobs", {"name": name, "kind": "command", "project": "red", "spec": {"argv": argv, "stop_grace_ms": 500}})
        wait_until((cls.work / name).exists, 60, f"the token of job {name}")
        return job, (cls.work / name).read_text().strip()

    # ---- asking

    @classmethod
    def admin(cls, method, path, body=None, prefix="", **query):
        return cls.server.request(method, prefix + API + path + ("?" + urllib.parse.urlencode(query) if query else ""), body)

    @classmethod
    def put(cls, run, path, data, token):
        place = f"{PROXY}artifacts/{run['experiment_id']}/{run['run_id']}/artifacts/{path}"
        return cls.server.request("PUT", place, data, token=token)

    def ask(self, method, place, body=None, prefix="", api=API, **query):
        """As the task."""
        return self.server.request(method, prefix + api + place + ("?" + urllib.parse.urlencode(query) if query else ""), body,
                                   token=self.token)

    def refused(self, statuses, method, place, body=None, **more):
        with self.assertRaises(HttpError, msg=f"{method} {place} {body}") as caught:
            self.ask(method, place, body, **more)
        self.assertIn(caught.exception.code, statuses, (method, place, body, caught.exception.body))
        return caught.exception

    # ---- what it may

    def test_it_logs_to_its_own_run(self):
        run = self.own
        self.ask("POST", "runs/log-metric", {"run_id": run, "key": "loss", "value": 0.5, "timestamp": 1, "step": 1})
        self.ask("POST", "runs/log-parameter", {"run_id": run, "key": "lr", "value": "0.1"})
        self.ask("POST", "runs/set-tag", {"run_id": run, "key": "team", "value": "vision"})
        self.ask("POST", "runs/set-tag", {"run_id": run, "key": "gone", "value": "soon"})
        self.ask("POST", "runs/delete-tag", {"run_id": run, "key": "gone"})
        self.ask("POST", "runs/log-batch", {"run_id": run, "metrics": [{"key": "acc", "value": 0.9, "timestamp": 2, "step": 2}],
                                            "params": [{"key": "layers", "value": "3"}], "tags": [{"key": "a", "value": "b"}]})
        self.ask("POST", "runs/log-inputs", {"run_id": run, "datasets": [{"dataset": {"name": "d", "digest": "1", "source_type": "local",
                                                                                      "source": "{}"}}]})
        data = self.ask("GET", "runs/get", run_id=run)["run"]["data"]
        self.assertLessEqual({("loss", 0.5), ("acc", 0.9)}, {(m["key"], m["value"]) for m in data["metrics"]})
        self.assertLessEqual({("lr", "0.1"), ("layers", "3")}, {(p["key"], p["value"]) for p in data["params"]})
        tags = {t["key"]: t["value"] for t in data["tags"]}
        self.assertEqual((tags["team"], tags["a"], "gone" in tags), ("vision", "b", False))

    def test_it_keeps_files_with_its_own_run(self):
        self.put(self.info, "notes/n.txt", b"a note", self.token)
        listed = self.ask("GET", "artifacts/list", run_id=self.own, path="notes")["files"]
        self.assertEqual([(file["path"], file["file_size"]) for file in listed], [("notes/n.txt", 6)])
        place = f"{self.info['experiment_id']}/{self.own}/artifacts/"
        self.assertEqual(self.server.request("GET", f"{PROXY}artifacts/{place}notes/n.txt", token=self.token, raw=True), b"a note")
        self.ask("DELETE", f"artifacts/{place}notes/n.txt", api=PROXY)
        self.assertEqual(self.ask("GET", "artifacts/list", run_id=self.own, path="notes").get("files", []), [])
        begun = self.ask("POST", f"mpu/create/{place}big", {"path": "big.bin", "num_parts": 1}, api=PROXY)
        self.ask("POST", f"mpu/abort/{place}big", {"path": "big.bin", "upload_id": begun["upload_id"]}, api=PROXY)

    def test_it_makes_runs_that_are_its_jobs(self):
        made = self.ask("POST", "runs/create", {"experiment_id": self.info["experiment_id"],
                                                "tags": [{"key": "mlflow.parentRunId", "value": self.own}]})["run"]["info"]
        self.ask("POST", "runs/log-metric", {"run_id": made["run_id"], "key": "m", "value": 1, "timestamp": 1})
        self.ask("POST", "runs/update", {"run_id": made["run_id"], "status": "FINISHED", "end_time": 5})
        found = self.server.get(f"/runs/{made['run_id']}")
        self.assertEqual((found["project"], found["job"], found["status"]), ("red", self.job["id"], "FINISHED"))

    def test_it_registers_a_model_in_its_project(self):
        self.put(self.info, "net/model.onnx", small_model("y", (None, 4)), self.token)
        self.ask("POST", "registered-models/create", {"name": "own model"})
        version = self.ask("POST", "model-versions/create", {"name": "own model", "source": self.info["artifact_uri"] + "/net",
                                                             "run_id": self.own})["model_version"]
        self.assertEqual((version["version"], version["status"], version.get("status_message")), ("1", "READY", None))
        self.ask("POST", "registered-models/alias", {"name": "own model", "alias": "best", "version": "1"})
        self.ask("POST", "model-versions/set-tag", {"name": "own model", "version": "1", "key": "k", "value": "v"})
        found = self.ask("GET", "registered-models/alias", name="own model", alias="best")["model_version"]
        self.assertEqual((found["run_id"], found["tags"]), (self.own, [{"key": "k", "value": "v"}]))
        model = [one for one in self.server.get("/models?limit=100")["items"] if one["name"] == "own model"]
        self.assertEqual([one["project"] for one in model], ["red"])

    def test_it_logs_models_of_its_own_run(self):
        made = self.ask("POST", "logged-models", {"experiment_id": self.info["experiment_id"], "name": "net"})["model"]["info"]
        self.assertEqual(made["source_run_id"], self.own)  # also if it does not say so
        self.ask("PATCH", f"logged-models/{made['model_id']}", {"status": "LOGGED_MODEL_READY"})
        self.ask("PATCH", f"logged-models/{made['model_id']}/tags", {"tags": [{"key": "k", "value": "v"}]})
        self.ask("POST", "runs/outputs", {"run_id": self.own, "models": [{"model_id": made["model_id"]}]})
        self.ask("POST", "runs/log-metric", {"run_id": self.own, "key": "m", "value": 1, "timestamp": 1, "model_id": made["model_id"]})
        found = self.ask("POST", "logged-models/search", {"experiment_ids": [self.info["experiment_id"]]})["models"]
        self.assertIn(made["model_id"], [one["info"]["model_id"] for one in found])

    # ---- what it may not

    def test_it_changes_no_other_logged_model(self):
        for whose, info in self.foreign.items():
            other = self.admin("POST", "logged-models", {"experiment_id": info["experiment_id"], "name": "net", "source_run_id": info["run_id"]})
            place = "logged-models/" + other["model"]["info"]["model_id"]
            self.ask("GET", place)
            self.refused((403,), "PATCH", place, {"status": "LOGGED_MODEL_READY"})
            self.refused((403,), "DELETE", place)
            self.refused((403,), "PATCH", place + "/tags", {"tags": [{"key": "k", "value": "v"}]})
            self.refused((403,), "POST", place + "/params", {"params": [{"key": "k", "value": "v"}]})
            self.refused((403,), "POST", "runs/outputs", {"run_id": info["run_id"], "models": []})
            self.refused((403,), "POST", "logged-models", {"experiment_id": info["experiment_id"], "source_run_id": info["run_id"]})
            self.assertEqual(self.admin("GET", place), other, whose)
        green = self.admin("POST", "logged-models", {"experiment_id": self.green["experiment_id"], "name": "net"})["model"]["info"]
        for method, place in (("GET", ""), ("DELETE", ""), ("GET", "/artifacts/directories")):
            self.refused((404,), method, f"logged-models/{green['model_id']}{place}")
        self.refused((404,), "POST", "logged-models", {"experiment_id": self.green["experiment_id"]})
        self.refused((404,), "POST", "runs/log-metric", {"run_id": self.own, "key": "m", "value": 1, "timestamp": 1,
                                                         "model_id": green["model_id"]})

    def test_it_changes_no_other_run_of_its_project(self):
        for whose, info in self.foreign.items():
            run, place = info["run_id"], f"{info['experiment_id']}/{info['run_id']}/artifacts"
            before = own(self.admin("GET", "runs/get", run_id=run))
            self.ask("GET", "runs/get", run_id=run)  # which it may see, as its project's
            for path, body in (("log-metric", {"key": "m", "value": 1, "timestamp": 1}), ("log-parameter", {"key": "p", "value": "v"}),
                               ("set-tag", {"key": "t", "value": "v"}), ("delete-tag", {"key": "mlflow.runName"}),
                               ("log-batch", {"metrics": [{"key": "m", "value": 1, "timestamp": 1, "step": 0}]}),
                               ("log-batch", {"params": [{"key": "m", "value": "1"}]}),
                               ("log-inputs", {"datasets": [{"dataset": {"name": "d", "digest": "1", "source_type": "l", "source": "s"}}]}),
                               ("log-model", {"model_json": json.dumps({"artifact_path": "m", "flavors": {}, "utc_time_created": "now", "run_id": run})}), ("update", {"status": "FAILED"}),
                               ("delete", {}), ("restore", {})):
                refused = self.refused((403,), "POST", "runs/" + path, {"run_id": run, **body})
                self.assertEqual(json.loads(refused.body)["error_code"], "PERMISSION_DENIED", (whose, path))
            self.refused((403,), "PUT", f"artifacts/{place}/f.txt", b"forged", api=PROXY)
            self.refused((403,), "DELETE", f"artifacts/{place}/f.txt", api=PROXY)
            self.refused((403,), "POST", f"mpu/create/{place}", {"path": "big.bin", "num_parts": 1}, api=PROXY)
            self.refused((403,), "POST", "upload-artifact", b"forged", run_uuid=run, path="f.txt")
            self.refused((403,), "POST", "model-versions/create", {"name": "the red one", "source": info["artifact_uri"], "run_id": run})
            self.assertEqual(own(self.admin("GET", "runs/get", run_id=run)), before, whose)
        begun = self.server.request("POST", f"{PROXY}mpu/create/{place}", {"path": "big.bin", "num_parts": 1})
        for verb in ("abort", "complete"):
            self.refused((403, 404), "POST", f"mpu/{verb}/{place}", {"path": "big.bin", "upload_id": begun["upload_id"]}, api=PROXY)

    def test_another_project_is_not_there(self):
        run, place = self.green["run_id"], f"{self.green['experiment_id']}/{self.green['run_id']}/artifacts"
        self.refused((404,), "GET", "runs/get", run_id=run)
        self.refused((404,), "GET", "runs/get", run_id=run, prefix="/p/green")
        self.refused((404,), "GET", "experiments/get", experiment_id=self.green["experiment_id"])
        self.refused((404,), "GET", "artifacts/list", run_id=run)
        self.refused((404,), "GET", f"artifacts/{place}/f.txt", api=PROXY)
        self.refused((404,), "GET", "artifacts", api=PROXY, path=place)
        self.refused((404,), "GET", "metrics/get-history", run_id=run, metric_key="m")
        self.refused((404,), "GET", "registered-models/get", name="the green one")
        self.refused((404,), "GET", "model-versions/get", name="the green one", version="1")
        self.refused((404,), "GET", "model-versions/get-download-uri", name="the green one", version="1")
        self.refused((404,), "POST", "runs/log-metric", {"run_id": run, "key": "m", "value": 1, "timestamp": 1})
        self.refused((404,), "POST", "runs/create", {"experiment_id": self.green["experiment_id"]})
        self.refused((404,), "POST", "runs/create", {"experiment_id": "0"}, prefix="/p/green")
        self.refused((404,), "PUT", f"artifacts/{place}/f.txt", b"forged", api=PROXY)
        self.refused((404,), "POST", "model-versions/create", {"name": "the green one", "source": self.info["artifact_uri"]})
        self.refused((404,), "POST", "registered-models/alias", {"name": "the green one", "alias": "a", "version": "1"})
        self.refused((404,), "POST", "model-versions/create", {"name": "the red one", "source": "models:/the green one/1"})
        taken = self.ask("POST", "model-versions/create", {"name": "the red one", "source": self.green["artifact_uri"]})["model_version"]
        self.assertIn("not on this server", taken["status_message"])
        names = {model["name"] for model in self.ask("GET", "registered-models/search").get("registered_models", [])}
        self.assertIn("the red one", names)
        self.assertNotIn("the green one", names)
        found = self.ask("POST", "runs/search", {"experiment_ids": [self.green["experiment_id"], self.info["experiment_id"], "0"]})
        self.assertNotIn(run, {one["info"]["run_id"] for one in found.get("runs", [])})
        found = self.ask("POST", "experiments/search", {"max_results": 100})["experiments"]
        self.assertNotIn(self.green["experiment_id"], {one["experiment_id"] for one in found})

    def test_it_deletes_and_renames_nothing_of_its_project(self):
        self.refused((403,), "DELETE", "registered-models/delete", {"name": "the red one"})
        self.refused((403,), "POST", "registered-models/rename", {"name": "the red one", "new_name": "mine"})
        self.refused((403,), "DELETE", "model-versions/delete", {"name": "the red one", "version": "1"})
        experiment = {"experiment_id": self.foreign["of nobody"]["experiment_id"]}
        for verb, more in (("delete", {}), ("restore", {}), ("update", {"new_name": "mine"})):
            self.refused((403,), "POST", f"experiments/{verb}", {**experiment, **more})

    def test_people_secrets_and_the_rest_are_none_of_its_business(self):
        for method, path, body in (("GET", "users", None), ("POST", "users", {"name": "eve", "kind": "person", "role": "admin"}),
                                   ("GET", "tokens", None), ("POST", "tokens", {"user": "admin", "name": "t"}), ("GET", "projects/red/secrets", None),
                                   ("PUT", "projects/red/secrets/password", {"value": "mine"}), ("DELETE", "projects/red/secrets/password", None),
                                   ("GET", "projects/green/secrets", None), ("GET", "jobs", None), ("GET", f"jobs/{self.other_job['id']}", None),
                                   ("POST", f"jobs/{self.other_job['id']}/cancel", {}), ("POST", "jobs", {"name": "x", "kind": "command",
                                                                                                      "spec": {"argv": ["true"]}}),
                                   ("PUT", "projects/red/members/user/eve", {"role": "owner"}), ("GET", "audit", None), ("GET", "sweeps", None)):
            refused = self.refused((403, 404), method, path, body, api="/api/v1/")
            self.assertNotIn(b"not to be seen", refused.body if isinstance(refused.body, bytes) else refused.body.encode())

    def test_a_token_ends_with_its_job(self):
        job, token = self.start("brief")
        ask = lambda: self.server.request("GET", API + "runs/get?run_id=" + job["run"], token=token)
        ask()
        self.server.post(f"/jobs/{job['id']}/cancel")
        wait_until(lambda: self.server.get(f"/jobs/{job['id']}")["state"] == "CANCELLED", 60, "the job's end")
        with self.assertRaises(HttpError) as refused:
            ask()
        self.assertEqual(refused.exception.code, 401)


if __name__ == "__main__":
    harness.main()

"""program_ion_test.py: a training of an ION that is a program of somebody's own: what it registers by MLflow's API goes through the
link's policy into a deployment, live, and nothing else does."""
import json
import sys
import time
import unittest

import harness
from harness import Server, small_model, wait_until

GOOD = small_model("y", (None, 4))
OTHER = GOOD.replace(b"\x12\x01g", b"\x12\x01h")  # the same sums by a graph of another name

# What MLflow's client sends for log_artifact, create_registered_model and create_model_version.
TRAIN = '''
import json, os, urllib.error, urllib.request

root, run = os.environ["MLFLOW_TRACKING_URI"], os.environ["MLFLOW_RUN_ID"]

def call(method, path, body):
    is_bytes = isinstance(body, bytes)
    request = urllib.request.Request(root + path, body if is_bytes else json.dumps(body).encode(), method=method)
    request.add_header("Authorization", "Bearer " + os.environ["MLFLOW_TRACKING_TOKEN"])
    request.add_header("Content-Type", "application/octet-stream" if is_bytes else "application/json")
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read() or b"{}")

def get(path):
    request = urllib.request.Request(root + path, headers={"Authorization": "Bearer " + os.environ["MLFLOW_TRACKING_TOKEN"]})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())

here = get("/api/2.0/mlflow/runs/get?run_id=" + run)["run"]["info"]["artifact_uri"]
folder = here.replace("mlflow-artifacts:", "/api/2.0/mlflow-artifacts/artifacts")
call("POST", "/api/2.0/mlflow/runs/log-batch", {"run_id": run, "params": [{"key": "depth", "value": "3"}],
     "metrics": [{"key": "loss", "value": 1 / (1 + i), "timestamp": 1700000000000 + i, "step": i} for i in range(5)]})
for name, file in (("scratch", "other.onnx"), (os.environ["WEIR_MODEL_NAME"], "good.onnx")):
    data = open(file, "rb").read()
    call("PUT", f"{folder}/{name}/model.onnx", data)
    try:
        call("POST", "/api/2.0/mlflow/registered-models/create", {"name": name})
    except urllib.error.HTTPError as error:
        assert json.loads(error.read())["error_code"] == "RESOURCE_ALREADY_EXISTS"
    made = call("POST", "/api/2.0/mlflow/model-versions/create", {"name": name, "source": f"{here}/{name}", "run_id": run})
    print(name, made["model_version"]["version"], flush=True)
'''


def document(**training):
    return {
        "kind": "ion", "name": "sums",
        "pipelines": [{"name": "training", "type": "training", "kind": "command", "registers": "adder",
                       "parameters": {"argv": ["/usr/bin/python3", "train.py"], "code": "src"}, **training}],
        "links": [{"from": "training", "to": {"deployment": "sums"}, "policy": "always-update"}]}


class ProgramIon(unittest.TestCase):
    def setUp(self):
        self.server = Server("--cpu-slots", "4").start()
        self.addCleanup(self.server.stop)

    def answered_by(self):
        """The version of the model that answers a request now; None: there is none."""
        body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}]}
        try:
            return self.server.request("POST", "/v2/models/sums/infer", body)["model_version"]
        except harness.HttpError:
            return None

    def test_what_a_program_registers_is_served_and_nothing_else(self):
        server = self.server
        folder = server.root / "sums"
        (folder / "src").mkdir(parents=True)
        for name, content in (("train.py", TRAIN.encode()), ("good.onnx", GOOD), ("other.onnx", OTHER)):
            (folder / "src" / name).write_bytes(content)
        file = folder / "ion.json"
        file.write_text(json.dumps(document()), encoding="utf-8")
        unsent = {"code": {"manifest": "0" * 64}, "argv": ["true"]}
        with self.assertRaises(harness.HttpError) as refused:
            server.post("/ions", document(parameters=unsent))
        self.assertIn("$.pipelines[0].parameters.code.manifest", refused.exception.error["message"])
        server.weir("apply", "-f", str(file))
        server.weir("trigger", "sums", "training")
        for version in ("1", "2"):
            wait_until(lambda: self.answered_by() == version, 90, f"version {version} to answer")
            live = time.time()
            job = server.get("/jobs?kind=command&newest=1")["items"][0]
            wait_until(lambda: server.get(f"/jobs/{job['id']}")["state"] == "SUCCEEDED", 30, "the training's end")
            print(f"version {version} answered {live - time.time():+.1f} s from the end of its program", file=sys.stderr)
            if version == "1":
                server.weir("trigger", "sums", "training")
        run = [one for one in server.get("/runs?ion=sums")["items"] if one["job"] == job["id"]][0]
        self.assertEqual((run["status"], run["kind"], run["pipeline"]), ("FINISHED", "command", "training"))
        candidates = server.get("/ions/sums/candidates")["items"]
        self.assertEqual({(one["model"], one["version"]) for one in candidates}, {("adder", 1), ("adder", 2)})
        self.assertEqual(len(server.get("/models/scratch/versions")["items"]), 2)
        told = server.get("/events?topic=ions&limit=200")["items"]
        self.assertTrue(any(one["kind"] == "model_aside" and "scratch" in one["message"] for one in told), told)

    def test_a_program_that_fails_is_a_failed_training(self):
        failing = document(parameters={"argv": ["/bin/sh", "-c", "echo no data >&2; exit 3"]})
        self.server.post("/ions", failing)
        self.server.post("/ions/sums/trigger", {"pipeline": "training"})
        wait_until(lambda: any(one["kind"] == "training_failed" for one in self.server.get("/alerts")["items"]), 30, "the alert")
        alert = [one for one in self.server.get("/alerts")["items"] if one["kind"] == "training_failed"][0]
        self.assertIn("no data", alert["message"])
        job = self.server.get("/jobs")["items"][0]["id"]
        self.assertEqual([task["attempt"] for task in self.server.get(f"/jobs/{job}/tasks")["items"]], [1], "it was not tried again")


if __name__ == "__main__":
    harness.main()

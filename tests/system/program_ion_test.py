"""program_ion_test.py: a training of an ION that is a program of somebody's own: what it registers by MLflow's API goes through the
link's policy into a deployment, live, and nothing else does."""
import json
import subprocess
import sys
import time
import unittest

import harness
from harness import ROOT, Server, small_model, wait_until

sys.path[:0] = [str(ROOT / "tests/serve")]
from peers import install  # noqa: E402

PYTHON = "/usr/bin/python3"  # Debian's, which has Debian's torch

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


# A training in PyTorch, of two processes: they learn y = x @ [1, 2, 3, 4], and the first logs what came of it by MLflow's client.
TORCH = '''
import os
import mlflow, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(1)
wanted = torch.tensor([[1.0], [2.0], [3.0], [4.0]])
model = torch.nn.Linear(4, 1)
net = DistributedDataParallel(model)
optimizer = torch.optim.SGD(net.parameters(), lr=0.2)
for step in range(150):
    torch.manual_seed(2 * step + dist.get_rank())
    x = torch.randn(64, 4)
    loss = (net(x) - x @ wanted).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if dist.get_rank() == 0 and step % 30 == 0:
        mlflow.log_metric("loss", loss.item(), step=step)
if dist.get_rank() == 0:
    torch.onnx.export(model, torch.zeros(1, 4), "model.onnx", input_names=["x"], output_names=["y"],
                      dynamic_axes={"x": {0: "n"}, "y": {0: "n"}})
    mlflow.log_metric("loss", loss.item(), step=150)
    mlflow.log_artifact("model.onnx", "net")
    mlflow.register_model(f"runs:/{mlflow.active_run().info.run_id}/net", os.environ["WEIR_MODEL_NAME"])
    print("registered", flush=True)
dist.barrier()
'''


def document(**training):
    return {
        "kind": "ion", "name": "sums",
        "pipelines": [{"name": "training", "type": "training", "kind": "command", "registers": "adder",
                       "parameters": {"argv": ["/usr/bin/python3", "train.py"], "code": "src"}, **training}],
        "links": [{"from": "training", "to": {"deployment": "sums"}, "policy": "always-update"}]}


class ProgramIon(unittest.TestCase):
    def setUp(self):
        (ROOT / "build/peers").mkdir(parents=True, exist_ok=True)
        self.server = Server("--cpu-slots", "4", "--share", str(ROOT / "build/peers")).start()
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

    def test_a_model_of_pytorch_is_served_as_soon_as_it_is_registered(self):
        if subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode != 0:
            self.skipTest("torch is not installed (python3-torch)")
        client = install(ROOT / "build/peers/mlflow2", ("mlflow-skinny==2.22.*",))
        if client is None:
            self.skipTest("mlflow's client cannot be had from the Python index")
        server = self.server
        folder = server.root / "torch"
        (folder / "src").mkdir(parents=True)
        (folder / "src/train.py").write_text(TORCH)
        [packages] = (ROOT / "build/peers/mlflow2/lib").glob("python3*/site-packages")
        file = folder / "ion.json"
        file.write_text(json.dumps(document(kind="pytorch", parameters={
            "argv": [PYTHON, "train.py"], "code": "src", "processes_per_node": 2, "cpu_slots": 2,
            "env": {"PYTHONPATH": str(packages), "GIT_PYTHON_REFRESH": "quiet", "OMP_NUM_THREADS": "1"}})))
        server.weir("apply", "-f", str(file))
        server.weir("trigger", "sums", "training")
        job = wait_until(lambda: server.get("/jobs?kind=pytorch&newest=1")["items"], 30, "the training's job")[0]
        wait_until(lambda: self.answered_by() == "1" or server.get(f"/jobs/{job['id']}")["state"] == "FAILED", 120, "the model to answer")
        live = time.time()
        self.assertEqual(self.answered_by(), "1", server.weir("logs", job["id"], check=False)[1])
        wait_until(lambda: server.get(f"/jobs/{job['id']}")["state"] == "SUCCEEDED", 60, "the training's end")
        print(f"PyTorch's model answered {live - time.time():+.1f} s from the end of its training", file=sys.stderr)
        body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [2, 4], "data": [1, 1, 1, 1, 0, 0, 0, 2]}]}
        [output] = server.request("POST", "/v2/models/sums/infer", body)["outputs"]
        for given, wanted in zip(output["data"], (10, 8)):
            self.assertAlmostEqual(given, wanted, delta=0.2)
        [run] = [one for one in server.get("/runs?ion=sums")["items"] if one["job"] == job["id"]]
        self.assertEqual((run["status"], run["kind"], run["pipeline"]), ("FINISHED", "pytorch", "training"))
        version = server.get("/models/adder/versions/1")
        self.assertEqual(version["run"], run["id"])
        self.assertLess(version["metrics"]["loss"], 0.01)

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

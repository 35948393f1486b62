"""What a data scientist does with MLflow's own client: files of a run, a model, the registry. Run by
mlflow_registry_test.py with the client's Python; MLFLOW_TRACKING_URI and MLFLOW_TRACKING_TOKEN say where and who.

Prints one JSON line of what it saw, and ends with an error if anything differs from what it put there.
"""
import json
import os
import pathlib
import sys
import tempfile

import mlflow
import mlflow.onnx
import mlflow.pyfunc
import onnx
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException, RestException

folder = pathlib.Path(tempfile.mkdtemp())
client = MlflowClient()
seen = {"version": mlflow.__version__}


class Adder(mlflow.pyfunc.PythonModel):
    def predict(self, context, model_input, params=None):
        return [value + 1 for value in model_input]


def put_files():
    (folder / "notes.txt").write_text("a note")
    (folder / "sub").mkdir()
    (folder / "sub" / "empty").write_bytes(b"")
    (folder / "sub" / "with space & ünicode.bin").write_bytes(bytes(range(256)) * 1000)
    with mlflow.start_run() as run:
        mlflow.log_param("a", 1)
        mlflow.log_metric("accuracy", 0.9)
        mlflow.log_artifact(folder / "notes.txt")
        mlflow.log_artifacts(folder / "sub", artifact_path="deep/er")
        mlflow.log_text("hello", "texts/hello.txt")
        mlflow.log_dict({"a": [1, 2]}, "d.json")
    names = sorted(file.path for file in client.list_artifacts(run.info.run_id))
    assert names == ["d.json", "deep", "notes.txt", "texts"], names
    names = sorted(file.path for file in client.list_artifacts(run.info.run_id, "deep/er"))
    assert names == ["deep/er/empty", "deep/er/with space & ünicode.bin"], names
    local = pathlib.Path(client.download_artifacts(run.info.run_id, "", dst_path=tempfile.mkdtemp()))
    assert (local / "notes.txt").read_text() == "a note"
    assert (local / "deep/er/with space & ünicode.bin").read_bytes() == bytes(range(256)) * 1000
    assert (local / "deep/er/empty").read_bytes() == b""
    assert mlflow.artifacts.load_text(f"runs:/{run.info.run_id}/texts/hello.txt") == "hello"
    return run.info.run_id


def put_parts(run_id):
    """A file in parts: the client does so from a size on, if asked to."""
    os.environ["MLFLOW_ENABLE_PROXY_MULTIPART_UPLOAD"] = "true"
    os.environ["MLFLOW_MULTIPART_UPLOAD_MINIMUM_FILE_SIZE"] = "1000000"
    os.environ["MLFLOW_MULTIPART_UPLOAD_CHUNK_SIZE"] = str(5 << 20)
    data = os.urandom(12_000_000)
    (folder / "big.bin").write_bytes(data)
    client.log_artifact(run_id, str(folder / "big.bin"), "parts")
    os.environ["MLFLOW_ENABLE_PROXY_MULTIPART_UPLOAD"] = "false"
    local = client.download_artifacts(run_id, "parts/big.bin", dst_path=tempfile.mkdtemp())
    assert pathlib.Path(local).read_bytes() == data


def log_models():
    model = onnx.load_model_from_string(pathlib.Path(sys.argv[1]).read_bytes())
    with mlflow.start_run() as run:
        mlflow.log_metric("accuracy", 0.95)
        mlflow.onnx.log_model(model, "model", registered_model_name="Plus One")
        mlflow.pyfunc.log_model("python", python_model=Adder(), pip_requirements=[])
    version = client.get_model_version("Plus One", "1")
    assert version.status == "READY" and version.run_id == run.info.run_id, version
    assert version.current_stage == "None", version
    python = mlflow.register_model(f"runs:/{run.info.run_id}/python", "Python One", tags={"kind": "python"})
    assert python.version == "1" or python.version == 1, python
    assert client.get_model_version("Python One", "1").tags == {"kind": "python"}
    return run.info.run_id


def use_registry(run_id):
    client.set_registered_model_alias("Plus One", "champion", "1")
    client.set_registered_model_tag("Plus One", "team", "vision")
    client.update_registered_model("Plus One", description="adds one")
    model = client.get_registered_model("Plus One")
    assert model.aliases == {"champion": "1"} and model.tags == {"team": "vision"}, model
    assert model.description == "adds one"
    found = client.get_model_version_by_alias("Plus One", "champion")
    assert found.version == "1" and found.aliases == ["champion"], found
    local = mlflow.artifacts.download_artifacts("models:/Plus One@champion", dst_path=tempfile.mkdtemp())
    assert (pathlib.Path(local) / "model.onnx").is_file() and (pathlib.Path(local) / "MLmodel").is_file()
    loaded = mlflow.pyfunc.load_model("models:/Python One/1")
    assert loaded.predict([1, 2]) == [2, 3]
    names = [model.name for model in client.search_registered_models("name ILIKE 'plus%'")]
    assert names == ["Plus One"], names
    names = [model.name for model in client.search_registered_models("name LIKE '% One'", order_by=["name DESC"])]
    assert names == ["Python One", "Plus One"], names
    found = client.search_model_versions(f"run_id = '{run_id}'")
    assert sorted(version.name for version in found) == ["Plus One", "Python One"], found
    copy = client.copy_model_version("models:/Plus One/1", "Copied")
    assert copy.source == "models:/Plus One/1", copy
    local = mlflow.artifacts.download_artifacts("models:/Copied/1", dst_path=tempfile.mkdtemp())
    assert (pathlib.Path(local) / "model.onnx").is_file()
    client.transition_model_version_stage("Plus One", "1", "Production")
    assert client.get_latest_versions("Plus One", ["Production"])[0].version == "1"
    client.rename_registered_model("Copied", "Copy Two")
    client.delete_registered_model("Copy Two")


def refusals(run_id):
    refused = {}
    for what, call in {
            "twice": lambda: client.create_registered_model("Plus One"),
            "nothing": lambda: client.get_registered_model("nothing"),
            "slash": lambda: client.create_registered_model("a/b"),
            "local source": lambda: client.create_model_version("Plus One", "/etc", run_id=run_id),
            "up": lambda: client.create_model_version("Plus One", "mlflow-artifacts:/0/x/artifacts/../../y"),
            "no file": lambda: client.download_artifacts(run_id, "nothing.txt")}.items():
        try:
            call()
            refused[what] = None
        except RestException as error:
            refused[what] = error.error_code
        except (MlflowException, OSError) as error:
            refused[what] = type(error).__name__
    seen["refused"] = refused


seen["files"] = put_files()
put_parts(seen["files"])
seen["run"] = log_models()
use_registry(seen["run"])
refusals(seen["run"])
print(json.dumps(seen))

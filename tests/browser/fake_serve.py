"""What serves models, made up: versions with a signature, a deployment of two versions, its figures and its answers.
A part of the stand-in server."""

import hashlib
import json
import time

import fake_data as made

MODEL = "clothes"
RIGHTS = {"read deployments": ["viewer", "data-scientist"], "predict with deployments": ["data-scientist", "ml-engineer"],
          "change deployments": ["data-scientist", "ml-engineer"], "register models": ["data-scientist", "ml-engineer"], "name models": ["data-scientist", "ml-engineer"], "label models": ["data-scientist", "ml-engineer"]}
REFUSED = "the file is neither a model that Weir trained nor ONNX"
TOO_LONG = "$.description: 1001 bytes; at most 1000 are allowed"
FAILED = "v3: the operator Loop of opset 18 is not supported, and onnxruntime was not found"
LABELS = ["Pullover", "Coat", "Shirt", "Bag"]
CHANCES = {1: [0.612, 0.301, 0.082, 0.005], 2: [0.903, 0.062, 0.031, 0.004]}
TIMES = "read;dur=4.100, queue;dur=0.200, input;dur=0.010, compute;dur=1.700, output;dur=0.010, write;dur=0.050"


def signature(has_picture=True):
    return {"format": "onnx", "executor": "onnx", "why": "Weir runs it, because Weir has all of its operators",
            "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 1, 28, 28] if has_picture else [-1, 4]}],
            "outputs": [{"name": "y", "datatype": "FP32", "shape": [-1, 4]}], "is_batched": True, "output_kind": "logits" if has_picture else "tensor",
            "picture": {"input": "x", "width": 28, "height": 28, "channels": 1, "layout": "NCHW", "datatype": "FP32", "fit": "stretch", "order": "RGB",
                        "scale": 1, "mean": [0.286], "std": [0.353]} if has_picture else None,
            "labels": LABELS if has_picture else None}


def version(rng, number, model=MODEL, has_picture=True):
    return {**made.version(rng, number, time.time() - 3600 * (9 - number), None), "model": model, "dataset": None, "dataset_version": 0, "code_version": None,
            "parameters": None, "metrics": None, "created_by": "admin", "bytes": 4096, "signature": signature(has_picture), "executor": "onnx",
            "aliases": ["stable"] if number == 1 else [], "deployments": [model] if number < 3 else []}


def served(number, percent, **more):
    return {"version": number, "percent": percent, "live_percent": percent, "is_mirror": False, "state": "READY", "reason": None, "n_ready": 1, **more}


def replica(name, number, **more):
    stats = {"success": 120, "failure": 0, "rows": 168, "batches": 120, "p50_ms": 1.8, "p99_ms": 11.0, "memory_bytes": 9 << 20}
    loaded = [{"version": n, "state": "READY", "reason": None, "executor": "onnx", "load_ms": 31.0} for n in (1, 2)]
    return {"id": f"{name}-{number}", "deployment": name, "number": number, "job": None, "job_state": "RUNNING", "state": "READY", "url": "http://h:1", "revision": 1,
            "versions": loaded, "n_running": 0, "stats": stats, "reason": None, "created_ms": made.rfc3339(0), "time_ms": None, **more}


def deployment(name, model, versions, **more):
    at = made.rfc3339(time.time() - 600)
    return {"name": name, "project": "default", "model": model, "mirror": 0, "replicas_min": 1, "replicas_max": 2, "batch_max": 8, "delay_max_us": 2000, "queue_max": 1024,
            "cpus": 1, "cpu_millis": 1000, "gpus": 0, "memory_bytes": 0, "idle_after_ms": 60000, "hold_ms": 30000, "state": "SERVING", "reason": None, "state_ms": at, "revision": 3,
            "previous": [{"version": 1, "percent": 100}], "n_wanted": 1, "n_ready": 1, "n_started": 1, "n_failures": 0, "failure": None, "next_start_ms": None,
            "more_ms": None, "less_ms": None, "created_by": "admin", "created_ms": at, "updated_ms": at, "is_settled": True, "traffic": "", "versions": versions,
            "replicas": [replica(name, 1)], **more}


def comparison(n_live, n):
    """Version 2 beside version 1, which serves."""
    def arm(number, count, mean, low, high):
        return {"version": number, "is_live": number == 1, "n": count, "mean": mean, "variance": mean * (1 - mean), "low": low, "high": high}
    at = made.rfc3339(time.time() - 600)
    return {"ion": "building-security", "link": "model/clothes:deployment/clothes", "deployment": MODEL, "model": MODEL, "metric": "conversion", "is_rate": True,
            "is_less_better": False, "confidence": 0.95, "min_samples": 100, "share_percent": 20.0, "begun_ms": at, "until_ms": at, "left_s": 86400,
            "arms": [arm(1, n_live, 0.25, 0.226, 0.275), arm(2, n, 0.3, 0.251, 0.354)], "difference": 0.05, "difference_low": -0.02, "difference_high": 0.12,
            "uplift": 0.2, "z": 1.75, "p": 0.04, "p_better": 0.2, "p_worse": 1.0}


def fill(state):
    state.served = {MODEL: [version(state.rng, 3), version(state.rng, 2), version(state.rng, 1)], "adder": [version(state.rng, 1, "adder", False)]}
    state.deployments = [deployment(MODEL, MODEL, [served(1, 90.0), served(2, 10.0)]),
                         deployment("sums", "adder", [served(1, 100.0)], state="IDLE", replicas=[], n_wanted=0, n_ready=0, replicas_min=0, previous=None)]
    state.blobs, state.asked = {}, []  # by SHA-256; (version, type) of each request for an inference


def shown(state, one):
    """A deployment as the server tells it: reports are young while it is up."""
    for its in one["replicas"]:
        its["time_ms"] = made.rfc3339(time.time()) if its["state"] == "READY" and not its.get("is_silent") else its["time_ms"]
    one["traffic"] = ",".join(f"v{it['version']}={it['live_percent']:g}" for it in one["versions"] if it["live_percent"]) or "none"
    return one


def named(state, name):
    return next((one for one in state.deployments if one["name"] == name), None)


def figures(state, name):
    """10 requests/s of each version that answers, of 5 ms; the slowest of 12 ms. Told as of the moment of the last request:
    between two looks the rate is exactly this, however long they take."""
    n = int(10 * (time.time() - state.began))
    one = {"n_requests": n, "n_failed": 0, "n_refused": 0, "n_cancelled": 0, "n_retried": 0, "n_mirrored": 0, "n_mirror_dropped": 0, "n_disagreed": 0, "n_in_flight": 1,
           "n_held": 0, "sum_us": 5000 * n, "p50_us": 5119, "p99_us": 12287, "buckets": [[5120, n - n // 20], [12288, n // 20]]}
    return {"time_ms": made.rfc3339(state.began + n / 10), "items": [{"version": it["version"], **one} for it in named(state, name)["versions"]], "next": None}


def find(state, path, parts, query):
    """What a GET of one of these answers; None: it is none of these."""
    if path == "deployments":
        return [shown(state, one) for one in state.deployments]
    if parts[0] == "deployments":
        one = named(state, parts[1])
        return one and (figures(state, parts[1]) if parts[2:] == ["figures"] else shown(state, one))
    if parts[0] == "models" and len(parts) == 3 and parts[1] in state.served:
        return list(state.served[parts[1]])
    return None


def put(state, name, body):
    one = named(state, name)
    if one is None:
        number = int(body["version"][1:])
        one = deployment(name, body["model"], [served(number, 100.0)], previous=None)
        state.deployments.append(one)
    if "replicas" in body:
        one["replicas_min"], one["replicas_max"] = (int(part) for part in body["replicas"].split(".."))
    if "mirror" in body:
        one["mirror"] = 0 if body["mirror"] == "none" else int(body["mirror"][1:])
    if "traffic" in body:
        asked = {it["version"]: it["percent"] for it in body["traffic"]}
        assert sum(asked.values()) == 100, asked
        before = [{"version": it["version"], "percent": it["percent"]} for it in one["versions"] if it["percent"]]
        if 3 in asked:  # no replica can load it: the shares stay
            one["versions"].append(served(3, asked[3], live_percent=0, state="FAILED", reason=FAILED, n_ready=0))
            one["is_settled"] = True
        else:
            one["versions"] = [served(it, asked.get(it, 0)) for it in sorted({*asked, *(it["version"] for it in one["versions"])})]
            one["previous"] = before
    return shown(state, one)


def register(state, model, body):
    if not state.blobs.get(body["blob"], b"\x08").startswith(b"\x08"):  # an artifact's bytes are a model's
        return 400, {"error": {"status": "INVALID", "message": f"{model}: {REFUSED}"}}
    number = len(state.served.setdefault(model, [])) + 1
    found = {**version(state.rng, number, model), "id": body["id"], "blob": body["blob"], "run": body.get("run"), "aliases": [body["alias"]] if body.get("alias") else [], "deployments": []}
    state.served[model].insert(0, found)
    return 200, found


def describe(state, parts, body):
    """PATCH of a model, or of one of its versions."""
    if len(body.get("description") or "") > 1000:  # the server takes more; what it refuses is shown where it happens
        return 400, {"error": {"status": "LIMIT", "message": TOO_LONG}}
    if len(parts) == 2:
        state.model_descriptions[parts[1]] = body["description"]
        return 200, {}
    versions = state.served.get(parts[1]) or state.versions
    found = next(one for one in versions if str(one["version"]) == parts[3])
    if body.get("archive_others"):
        for one in versions:
            one["stage"] = "Archived" if one.get("stage") == body["stage"] else one.get("stage")
    found.update({key: value for key, value in body.items() if key != "archive_others"})
    return 200, found


def change(state, method, parts, body):
    """(status, answer) of a change; None: it is none of these. The body is bytes."""
    if parts[0] == "blobs":
        assert hashlib.sha256(body).hexdigest() == parts[1], "the page hashes as the server does"
        state.blobs[parts[1]] = body
        return 200, {}
    if parts[0] == "deployments" and method == "PUT":
        return 200, put(state, parts[1], json.loads(body))
    if parts[0] == "deployments":
        state.deployments = [one for one in state.deployments if one["name"] != parts[1]]
        return 200, {}
    if parts[0] == "models" and parts[-1] == "versions":
        return register(state, parts[1], json.loads(body))
    if parts[0] == "models" and method == "PATCH":
        return describe(state, parts, json.loads(body))
    if parts[0] == "models" and parts[2:3] == ["aliases"]:
        wanted = json.loads(body)["version"] if method == "PUT" else 0
        for one in state.served[parts[1]]:
            one["aliases"] = [alias for alias in one["aliases"] if alias != parts[3]] + ([parts[3]] if one["version"] == wanted else [])
        return 200, {}
    return None


def infer(state, path, content_type):
    """(status, headers, answer) of POST /v2/models/NAME/versions/V/infer."""
    _, _, _, name, _, number, _ = path.split("/")
    state.asked.append((int(number), content_type))
    if named(state, name) is None:
        return 404, [], {"error": f"there is no deployment {name}"}
    answer = {"model_name": name, "model_version": number, "outputs": [{"name": "y", "datatype": "FP32", "shape": [1, 4], "data": [2, 3, 4, 5]}]}
    if content_type.startswith("image/"):
        answer["labels"] = [{"label": label, "probability": chance} for label, chance in zip(LABELS, CHANCES[int(number)])]
    return 200, [("Weir-Times", TIMES), ("Weir-Model-Version", number)], answer

"""Made-up but plausible data for the console: one ION that guards an entrance. Same seed, same data."""

import json
import math
import random
import struct
import time
import uuid
import zlib
from datetime import datetime, timezone

PEOPLE = ["ada", "ben", "chen", "dora", "emil", "fatima", "georg", "hana"]
CAMERAS = ["front-door", "garage", "loading-dock"]
ION = "building-security"
PIPELINE = "entrance"
MODEL = "building-security.training"  # in the registry: made by that pipeline
ARCHITECTURE = "face-embed"


def rfc3339(seconds):
    moment = datetime.fromtimestamp(seconds, timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def seconds(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


_last_id = 0


def make_id(rng):
    """A UUIDv7: the time first, so that ids sort by age, even those made in the same millisecond."""
    global _last_id
    _last_id = max(_last_id + 1, time.time_ns() // 1_000_000 << 12)
    return str(uuid.UUID(int=_last_id >> 12 << 80 | 7 << 76 | (_last_id & 0xFFF) << 64 | 2 << 62 | rng.getrandbits(62)))


# ------------------------------------------------------------------------------------------------- pictures

WIDTH, HEIGHT = 92, 112


def face_pixels(name):
    """A drawn face in grey, different for every name: rows of bytes."""
    rng = random.Random(name)
    skin, hair, back = rng.randint(140, 215), rng.randint(25, 110), rng.randint(60, 235)
    wide, tall = rng.uniform(23, 28), rng.uniform(33, 38)
    eyes, mouth = rng.uniform(8, 11), rng.uniform(6, 10)
    hairline = rng.uniform(-22, -14)
    rows = []
    for y in range(HEIGHT):
        row = bytearray()
        for x in range(WIDTH):
            dx, dy = x - WIDTH / 2, y - 52
            shade = back - 0.25 * y
            if (dx / 42) ** 2 + ((y - 118) / 32) ** 2 < 1:
                shade = hair + 40  # shoulders
            if (dx / (wide + 4)) ** 2 + ((dy + 4) / (tall + 3)) ** 2 < 1:
                shade = hair
            if (dx / wide) ** 2 + (dy / tall) ** 2 < 1 and dy > hairline - abs(dx) * 0.1:
                shade = skin - 0.6 * dx
                for side in (-1, 1):
                    ex, ey = dx - side * eyes, dy + 5
                    if (ex / 5) ** 2 + (ey / 2.6) ** 2 < 1:
                        shade = 245
                    if ex * ex + ey * ey < 5:
                        shade = 30
                    if abs(ex) < 6 and abs(ey + 7) < 1.2:
                        shade = hair
                if abs(dx) < 2.2 and -4 < dy < 8:
                    shade -= 22
                if abs(dx) < mouth and abs(dy - 17 - 0.02 * dx * dx * (1 if hair > 60 else -1)) < 1.6:
                    shade = 80
            row.append(max(0, min(255, int(shade))))
        rows.append(bytes(row))
    return rows


def face_png(name):
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    raw = b"".join(b"\0" + row for row in face_pixels(name))
    head = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")


def face_pgm(name):
    return b"P5\n# made up\n%d %d\n255\n" % (WIDTH, HEIGHT) + b"".join(face_pixels(name))


# -------------------------------------------------------------------------------------------------- records


def decision(rng, seq, frame, at, model_version):
    threshold = 0.62
    verdict = rng.choices(["grant", "deny", "unknown", "error"], [70, 9, 18, 3])[0]
    person, score, error = rng.choice([one for one in PEOPLE if one != "georg"]), None, None
    if verdict in ("grant", "deny"):
        score = rng.uniform(threshold + 0.03, 0.97)
        person = "georg" if verdict == "deny" else person
    elif verdict == "unknown":
        score, person = rng.uniform(0.2, threshold - 0.02), None
    else:
        person, error = None, "no face found in the frame"
    return {
        "id": make_id(rng),
        "seq": seq,
        "ion": ION,
        "pipeline": PIPELINE,
        "replica": "entrance-0",
        "camera": rng.choice(CAMERAS),
        "frame": frame,
        "time_ms": rfc3339(at),
        "verdict": verdict,
        "person": person,
        "label": None,
        "labels": None,
        "score": score,
        "threshold": threshold,
        "model_version": model_version,
        "gallery_version": 7,
        "list_revision": 3,
        "latency_us": int(rng.lognormvariate(9.2, 0.3)),
        "durable_us": int(rng.lognormvariate(6.5, 0.4)),
        "brightness": rng.uniform(0.35, 0.6),
        "error": error,
        "image": None if verdict == "error" else "%064x" % (zlib.crc32((person or "impostor").encode()) + 1),
    }


def document():
    """What was applied, as docs/reference/ion-file.md has it."""
    return {
        "kind": "ion", "name": ION, "project": "default",
        "pipelines": [
            {"name": "training", "type": "training", "dataset": "faces", "model": ARCHITECTURE, "workers": 2,
             "triggers": {"new_data": True, "schedule": "0 0 3 * * *"}},
            {"name": PIPELINE, "type": "prediction", "source": {"kind": "directory", "path": "/srv/frames"},
             "gallery": {"dataset": "people", "impostors": "passers-by"}, "sinks": [{"kind": "jsonl", "path": "/srv/decisions.jsonl"}]}],
        "links": [{"from": "training", "to": PIPELINE, "policy": [{"kind": "rate-limit", "min_interval_s": 60}, "manual"]}]}


def problem_of(document):
    """What the server would refuse, with its place; None: nothing."""
    if not document.get("name"):
        return "$.name: missing"
    for i, one in enumerate(document["pipelines"]):
        for key in {"training": ("dataset", "model"), "prediction": ("source",), "preparation": ("output", "parameters")}.get(one["type"], ("dataset",)):
            if not one.get(key):
                return f"$.pipelines[{i}].{key}: missing"
        if one["type"] == "prediction" and not any(link.get("to") == one["name"] for link in document.get("links", [])):
            return f"$.pipelines[{i}]: no link leads to it"
    return None


def threshold(at):
    """How the replica set the threshold, as docs/reference/rest.md has it."""
    return {
        "deployment_revision": 9,
        "replica": "entrance-0",
        "threshold": 0.62,
        "threshold_low": 0.588,
        "threshold_high": 0.655,
        "deny_threshold": 0.547,
        "rule": "impostors",
        "scores": 1240,
        "people": 62,
        "asked_rate": 0.01,
        "expected_rate": 0.008,
        "refused_share": 0.043,
        "impostors_enrolled": 0,
        "photos_skipped": 1,
        "model_version": 2,
        "gallery_version": 7,
        "impostors_version": 2,
        "time_ms": rfc3339(at),
    }


def claims():
    """What that threshold can claim, as docs/reference/rest.md has it."""
    return [{"name": name, "value": value, "unit": unit, "rests_on": rests_on} for name, value, unit, rests_on in (
        ("gallery_people", 48, "people", "The people whom each face is compared with: version 7 of the gallery."),
        ("impostor_searches", 1240, "searches", "Photos of 62 impostors, each searched for in the whole gallery."),
        ("claimable_rate", 3 / 62, "share", "3 / 62, with 95 %: by impostors, not by their photos."),
        ("measured_rate", 0.008, "share", "The share of these searches that would name somebody at the threshold."),
        ("unknown_a_day", 200, "per day", "1400 decisions of the last 7.0 days knew nobody."),
        ("false_admits_a_day", 9.68, "per day", "200 (unknown) a day, of whom 4.84 % are taken for somebody: no liveness is claimed."))]


def version(rng, number, at, run):
    return {
        "id": make_id(rng),
        "model": MODEL,
        "version": number,
        "run": run,
        "blob": "%064x" % rng.getrandbits(256),
        "dataset": "faces",
        "dataset_version": number + 2,
        "code_version": "%040x" % rng.getrandbits(160),
        "parameters": {
            "epochs": 20,
            "batch_size": 32,
            "optimizer": "adam",
            "learning_rate": 0.001,
            "schedule": "cosine",
            "augment": "face",
            "workers": 2,
            "seed": 1,
        },
        "metrics": {
            "accuracy": round(0.93 + 0.012 * number, 4),
            "loss": round(0.31 - 0.04 * number, 4),
            "false_accept_rate": round(0.012 - 0.0015 * number, 4),
        },
        "bytes": 4_812_344 + 128 * number,
        "baseline": None,
        "created_by": "system",
        "created_ms": rfc3339(at),
    }


def metrics(run_id, steps, start=None):
    """The curves of one run: points for every key and step, deterministic."""
    rng = random.Random(run_id)
    start = time.time() - 300 if start is None else start
    items = []
    for step in range(1, steps + 1):
        part = step / 400
        noise = rng.uniform(-1, 1)
        values = {
            "loss": 2.3 * math.exp(-4 * part) + 0.11 + 0.05 * noise * math.exp(-2 * part),
            "accuracy": min(0.995, 0.985 - 0.9 * math.exp(-5 * part) + 0.012 * noise),
            "images_per_second": 1480 + 60 * noise,
            "progress": part,
            "epoch": 1 + step * 20 // 401,
            "epochs": 20,
        }
        if step % 20 == 0:
            values["validation_loss"] = 2.25 * math.exp(-3.6 * part) + 0.17
            values["validation_accuracy"] = 0.972 - 0.88 * math.exp(-4.6 * part)
        for key, value in values.items():
            items.append({"key": key, "step": step, "value": value, "time_ms": rfc3339(start + step * 0.4)})
    return items


def policy_decision(number, at, version_number, verdict, rule, actor, note):
    return {"id": f"{ION}:{number}", "ion": ION, "link": f"training:{PIPELINE}", "candidate": f"{ION}:training:{PIPELINE}:{version_number}", "model_version": "",
            "version": version_number, "policy": "manual", "inputs": None, "rule": rule, "verdict": verdict, "actor": actor, "note": note, "time_ms": rfc3339(at)}


def usage():
    """What the state folder takes, as docs/reference/rest.md has it."""
    rows = [("decisions", "decisions of replicas", "rows", 54_000, 31 << 20, "30d,10GB"), ("pictures", "faces of decisions", "files", 210, 1900 << 20, "7d,20GB"),
            ("models", "files of model versions", "files", 3, 14 << 20, "keep 10"), ("logs", "logs of tasks", "files", 41, 5 << 20, "30d")]
    items = [{"kind": kind, "what": what, "rule": "the oldest first", "unit": unit, "n": n, "n_needed": 0, "used_bytes": used, "limit": limit,
              "oldest_ms": rfc3339(time.time() - 86400), "next": None} for kind, what, unit, n, used, limit in rows]
    return {"items": items, "next": None, "total_bytes": sum(one["used_bytes"] for one in items), "disk_bytes": 500 << 30, "disk_free_bytes": 120 << 30,
            "steps": {"n": 4, "n_over_10_ms": 0, "longest_ms": 1.5}}


def blob(name):
    """The list of a dataset's files, a picture of one, or the file of a model."""
    kind, _, rest = name.partition("-")
    if kind == "tree":
        return b"weir-tree 1\nf\tphoto-ada\t10318\tpictures/ada.pgm\nl\ttrain.py\tnow.py\nx\tsource-1\t24\ttrain.py\n"
    if kind == "source":
        return b"import torch\nprint('hi')\n"
    if kind == "manifest":
        files = [{"class": person, "file": f"{i}.pgm", "sha256": f"photo-{person}", "bytes": 10318} for person in PEOPLE for i in range(50 * int(rest))]
        return json.dumps({"dataset": "faces", "files": files}).encode()
    return face_pgm(rest) if kind == "photo" else b"model " + name.encode()

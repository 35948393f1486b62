#!/usr/bin/env python3
"""A stand-in for the Weir server, for work on the console and for its tests: serves web/dist and made-up data.

    tests/browser/fake_server.py [--port N] [--runs N] [--empty]     then open the link it prints

The tests import FakeServer and drive its state directly: push a decision, cut the streams, refuse all requests.
Routes, records and stream messages have the shapes of src/api; keep them so.
Python's standard library only.
"""

import argparse
import json
import queue
import random
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import fake_data as made
import fake_camera
import fake_cluster
import fake_dataset
import fake_ion
import fake_lineage
import fake_passage
import fake_serve
import fake_service
import fake_share
import fake_sweep
import fake_track

DIST = Path(__file__).resolve().parents[2] / "web" / "dist"
LATER = ("plot.js", "dagre.js", "alerts.js", "cameras.js", "clusters.js", "enrol.js", "passage.js", "snapshots.js")  # fetched when the page needs them
CSP = "default-src 'self'; img-src 'self' blob: data:; style-src 'self' 'unsafe-inline'"
LOGIN_CSP = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
CSRF = "csrf-of-the-test"
COOKIE = "session-of-the-test"
LINK = "link-of-the-test"
REPLAY = 1000
SEVERITIES = {"job_failed": "error", "review_wanted": "warning", "model_rejected": "warning"}
STEPS = 400
FIRST_GPU = 4
DRIFT = "brightness of entrance no longer looks like the training data (ks 0.412, p = 0.002 over 500 frames)"
LOGIN_PAGE = (f'<!doctype html><html lang=en><meta charset=utf-8><title>Weir: log in</title><h1>Log in to Weir</h1>'
              f'<form method=post action="/login"><input type=hidden name=link value="{LINK}"><p>This link is good once.</p>'
              f'<button id=log-in autofocus>Log in as admin</button></form>')


class State:
    """Everything the server knows. All access under the lock; streams get messages through bounded queues."""

    def __init__(self, is_empty=False, seed=1):
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.rng = random.Random(seed)
        self.seq = 0
        self.history = []  # (seq, topic, record): what a reconnecting stream is given
        self.streams = []
        self.requests = []  # (method, path, headers, body) of every change
        self.reads = []  # path with query of everything that was asked for
        self.resumes = []  # Last-Event-ID of every stream that was opened
        self.is_down = False
        self.faults = {}  # path prefix → (status, code, message)
        self.decisions, self.events, self.alerts = [], [], []
        self.runs, self.jobs, self.tasks, self.logs = [], [], {}, {}
        self.versions, self.candidates, self.nodes, self.ions = [], [], [], []
        self.datasets = []
        self.files, self.frozen, self.refused_files = {}, {}, set()  # of datasets that the page made
        self.members = []  # of every ION
        self.policy_decisions = []  # of every ION
        self.passages = [] if is_empty else fake_passage.passages()  # newest first
        self.truths, self.order_state = [], "done"
        self.look = {"lena": 0.61, "dora": 0.58, "ada": 0.52}  # whom the pictures of an enrolment resemble; None: no replica says so
        self.audit = []
        self.devices = []
        self.clusters, self.pools, self.allocations = [], [], []
        self.members_of = {}
        self.custom_roles = {}
        self.groups, self.tokens, self.sessions, self.group_members = [], [], [], {}
        self.rights = [*fake_share.RIGHTS, "give feedback"]
        self.own_projects = {}  # rights in single projects
        self.role = "admin"
        self.began = time.time() - 100
        self.served, self.deployments, self.blobs, self.asked = {}, [], {}, []
        self.queues = [] if is_empty else fake_share.queues()
        self.unseen_changes = {}  # of a queue that is read alone: what no list has said yet
        self.users = [{"name": "admin", "kind": "person", "role": "admin", "is_disabled": False, "created_ms": made.rfc3339(0)}]
        self.sweeps, self.trials, self.services = [], {}, []
        self.model_descriptions = {}
        self.projects = [{"name": "default", "description": None, "created_ms": made.rfc3339(0)}]
        self.kept = {}  # ages that a project has set, by kind
        self.secrets = {} if is_empty else {"HF_TOKEN": "mara", "WANDB": "admin"}  # who set each
        self.many, self.searches, self.experiment_tags = None, [], {}
        self.more_experiments = []
        self.artifacts, self.uploads = {}, {}  # run → path → bytes, None: deleted; parts of files on their way
        self.cameras = [] if is_empty else fake_camera.cameras()
        self.blind, self.stuck = set(), set()  # cameras of which no picture comes, and of which always the same
        self.lets = threading.Event()  # what comes as a file's part waits for it
        self.lets.set()
        self.platform = []  # reasons why the platform is not well
        self.summaries = []  # the queries of all summaries asked for
        self.forgotten = []  # decisions that no list has any more; the page may still ask for their pictures
        self.more_metrics = []  # of every run
        self.frame = 1000
        self.step = 150
        if not is_empty:
            self.fill()

    def health(self):
        worst = "down" if any(one["status"] == "down" for one in self.platform) else "degraded" if self.platform else "ok"
        return {"status": worst, "reason": self.platform[0]["reason"] if self.platform else None, "since": None, "reasons": self.platform}

    # ------------------------------------------------------------------------------------------ first contents

    def fill(self):
        now = time.time()
        train_job, predict_job = made.make_id(self.rng), made.make_id(self.rng)
        for number in range(1, 6):
            is_last = number == 5
            run = {
                "id": made.make_id(self.rng),
                "name": f"{made.ION}.training.{number}",
                "project": "default",
                "kind": "train",
                "ion": made.ION,
                "pipeline": "training",
                "job": train_job if is_last else made.make_id(self.rng),
                "status": "RUNNING" if is_last else "FAILED" if number == 2 else "FINISHED",
                "model": made.ARCHITECTURE,
                "registered": None, "params": {}, "tags": {}, "deleted_ms": None, "experiment": 0, "experiment_name": "Default", "user": None, "start_ms": None,
                "parameters": {"model": made.ARCHITECTURE, "epochs": 20, "batch_size": 32, "learning_rate": 0.001},
                "dataset": "faces",
                "dataset_version": number + 2,
                "progress": self.step / STEPS if is_last else 0.4 if number == 2 else 1.0,
                "images_per_second": 1480 + 10 * number,
                "epoch": 8 if is_last or number == 2 else 20,
                "epochs": 20,
                "loss": 0.31 - 0.04 * number,
                "accuracy": 0.93 + 0.012 * number,
                "validation_loss": 0.39 - 0.04 * number,
                "validation_accuracy": 0.90 + 0.011 * number,
                "created_ms": made.rfc3339(now - 86400 * (5 - number) - 170),
                "started_ms": made.rfc3339(now - 86400 * (5 - number) - 160),
                "finished_ms": None if is_last else made.rfc3339(now - 86400 * (5 - number)),
            }
            run["metrics"] = {key: run[key] for key in ("loss", "accuracy", "images_per_second", "validation_loss", "validation_accuracy", "epoch", "epochs", "progress")}
            self.runs.append(run)
            if number not in (2, 5):
                run["registered"] = {"model": made.MODEL, "version": len(self.versions) + 1}
                self.versions.append(made.version(self.rng, run["registered"]["version"], now - 86400 * (5 - number), run["id"]))
        self.candidates += [self.candidate(1, "RETIRED"), self.candidate(2, "SERVING"), self.candidate(3)]
        self.ions.append(self.ion(train_job, predict_job, now))
        self.fill_jobs(train_job, predict_job, now)
        fake_cluster.fill(self)
        self.datasets += [{"name": name, "project": "default", "kind": "folder", "path": f"/var/lib/weir/datasets/{name}",
                           "is_uploaded": True, "created_by": "admin", "created_ms": made.rfc3339(now - 500000)}
                          for name in ("faces", "people", "passers-by")]
        self.nodes += [
            self.node("rack1-a", now, "AMD EPYC 9354", 32, 256, 2),
            self.node("edge-door", now, "Intel N100", 4, 16, 0),
            self.node("rack1-b", now - 4000, "AMD EPYC 9354", 32, 256, 0, "lost"),
        ]
        self.devices += [self.device("rack1-a", i, f"{made.ION}.training.5/{i}" if i == 0 else None) for i in range(2)]
        for i in range(60):
            self.decisions.append(made.decision(self.rng, i + 1, self.next_frame(), now - 90 + 1.5 * i, 2))
        for kind, subject, message in (
            ("applied", f"ion/{made.ION}", "revision 4 applied"),
            ("model_registered", f"model/{made.MODEL}", f"{made.MODEL} v2 registered by run {self.runs[2]['id']}"),
            ("model_promoted", f"ion/{made.ION}", f"entrance serves {made.MODEL} v2"),
            ("job_failed", f"job/{self.jobs[3]['id']}", "training failed: worker 1 on rack1-b was lost"),
            ("node_lost", "node/rack1-b", "rack1-b was not heard of for 60 s"),
            ("list_changed", f"ion/{made.ION}", "georg is on the list: deny"),
            ("model_registered", f"model/{made.MODEL}", f"{made.MODEL} v3 registered by run {self.runs[3]['id']}"),
            ("review_wanted", f"ion/{made.ION}", f"{made.MODEL} v3 waits for approval to go to entrance"),
            ("drift", f"ion/{made.ION}", "brightness of entrance no longer looks like the training data"),
            ("job_started", f"job/{train_job}", "training started on rack1-a: 2 workers"),
        ):
            self.event(kind, subject, message)
        self.policy_decisions += [
            made.policy_decision(1, now - 300000, 1, "promote", "manual: an operator decides", "admin", "the first one"),
            made.policy_decision(2, now - 90000, 2, "promote", "manual: an operator decides", "admin", "better at night"),
            made.policy_decision(3, now - 170, 3, "wait", "manual: an operator decides", "policy", None),
        ]
        self.audit.append({"seq": 1, "time_ms": made.rfc3339(now - 60), "topic": "audit", "kind": "login", "severity": "info", "subject": "user/admin",
                           "actor": "admin", "message": "admin logged in from 127.0.0.1", "data": None})
        fake_serve.fill(self)
        fake_sweep.fill(self)
        fake_service.fill(self)
        self.alerts += [
            self.alert("drift", f"ion/{made.ION}", "open", now - 700, DRIFT),
            self.alert("node_lost", "node/rack1-b", "acknowledged", now - 4000, "rack1-b was not heard of for 60 s"),
        ]

    def alert(self, kind, subject, state, at, message):
        return {"id": made.make_id(self.rng), "key": f"{kind}:{subject}", "severity": "warning", "kind": kind, "subject": subject,
                "message": message, "data": None, "state": state, "count": 1, "raised_ms": made.rfc3339(at), "last_ms": made.rfc3339(at),
                "acknowledged_by": None, "acknowledged_ms": None, "resolved_ms": None}

    @staticmethod
    def node(name, seen, cpu, slots, memory_gib, n_accelerators, state="ready"):
        accelerators = [{"index": i, "name": "NVIDIA L40S", "memory_bytes": 48 << 30, "used_bytes": (7 + 13 * i) << 30}
                        for i in range(n_accelerators)]
        return {"name": name, "cpu_slots": slots, "memory_bytes": memory_gib << 30, "n_accelerators": n_accelerators,
                "inventory": {"cpu_model": cpu, "accelerators": accelerators}, "disk_bytes": 960 << 30, "disk_free_bytes": (80 * slots % 900) << 30,
                "cpus_used": slots / 4, "cpus_free": slots - slots / 4, "cpus_busy": 0.5, "memory_kept_bytes": 0, "memory_used_bytes": 1 << 30, "accelerators_used": 0, "n_tasks": 1, "agent_version": "0.1.0", "is_draining": False, "state": state,
                "desired_revision": 3, "last_seen_ms": made.rfc3339(seen), "created_ms": made.rfc3339(seen - 90000)}

    @staticmethod
    def device(node, idx, holders, **more):
        # An inventory counts the processor, the memory, a disk and a network card before the first GPU.
        return {"name": f"{node}/{idx + FIRST_GPU}", "node": node, "idx": idx + FIRST_GPU, "id": f"GPU-{node}-{idx}", "kind": "gpu", "model": "NVIDIA L40S", "state": "ok",
                "reason": None, "parent": -1, "profile": None, "numa": 0, "memory_bytes": 48 << 30, "memory_used_bytes": (7 + 13 * idx) << 30,
                "temperature_c": 61.0 + idx, "power_w": 210.0, "utilisation_pct": 92.0 if holders else 0.0, "used_milli": 1000 if holders else 0,
                "holders": holders, "ecc_errors": 0, "details": {"driver_index": idx, "pci": f"0000:{idx:02x}:00.0"}, "changed_ms": made.rfc3339(0), **more}

    def fill_jobs(self, train_job, predict_job, now):
        common = {"project": "default", "ion": made.ION, "created_by": "system", "reason": None, "n_restarts": 0, "run": None, "finished_ms": None}
        self.jobs += [
            {**common, "id": train_job, "name": f"{made.ION}.training.5", "kind": "train", "state": "RUNNING", "pipeline": "training",
             "run": self.runs[-1]["id"],
             "created_ms": made.rfc3339(now - 170), "started_ms": made.rfc3339(now - 160)},
            {**common, "id": predict_job, "name": f"{made.ION}.entrance", "kind": "predict", "state": "RUNNING", "pipeline": "entrance",
             "created_ms": made.rfc3339(now - 90000), "started_ms": made.rfc3339(now - 89990)},
            {**common, "id": made.make_id(self.rng), "name": "nightly-evaluation", "kind": "command", "state": "PENDING", "ion": None,
             "pipeline": None, "created_ms": made.rfc3339(now - 300), "started_ms": None,
             "reason": "needs 40 CPU slots on one node; rack1-a has 29 free, edge-door 3"},
            {**common, "id": made.make_id(self.rng), "name": f"{made.ION}.training.2", "kind": "train", "state": "FAILED", "pipeline": "training",
             "created_ms": made.rfc3339(now - 259400), "started_ms": made.rfc3339(now - 259360),
             "finished_ms": made.rfc3339(now - 259200), "reason": "worker 1 on rack1-b was lost"},
        ]
        for job, role, count in ((train_job, "worker", 2), (predict_job, "replica", 1)):
            self.tasks[job] = []
            for rank in range(count):
                task = made.make_id(self.rng)
                self.tasks[job].append({"id": task, "job": job, "role": role, "rank": rank, "attempt": 1,
                                        "node": "edge-door" if role == "replica" else "rack1-a", "state": "RUNNING", "desired": "running",
                                        "pid": 4100 + rank, "exit_code": -1, "signal": 0, "message": None,
                                        "started_ms": made.rfc3339(now - 150), "finished_ms": None})
                if role == "worker":
                    self.tasks[job][-1]["devices"] = str(FIRST_GPU + rank)
                self.logs[task] = bytearray()
                for i in range(40):
                    self.logs[task] += f"info  {role}_step rank {rank} step {i} loss {2.3 * 0.93 ** i:.4f}\n".encode()

    def ion(self, train_job, predict_job, now):
        return {
            "name": made.ION, "project": "default", "mode": "production", "state": "ACTIVE", "revision": 4, "document": made.document(), "created_by": "admin", "created_ms": made.rfc3339(now - 400000),
            "health": {"status": "degraded", "reason": DRIFT, "since": made.rfc3339(now - 700)},
            "pipelines": [
                {"name": "training", "type": "training", "state": "TRAINING", "job": train_job, "run": self.runs[-1]["id"],
                 "cause": "schedule", "pending_cause": None, "next_fire_ms": made.rfc3339(now + 9000), "dataset": "faces",
                 "model": made.ARCHITECTURE, "workers": 2, "parameter_servers": 0, "schedule": "0 0 3 * * *", "new_data": True},
                {"name": "entrance", "type": "prediction", "state": "SERVING", "job": predict_job, "replicas": 1, "dataset": "people",
                 "impostors": "passers-by", "state_reason": None, "served_revision": 9, "threshold": made.threshold(now - 3000), "claims": made.claims(),
                 "deployment": {"revision": 9, "model": {"name": made.MODEL, "version": 2},
                                "gallery": {"dataset": "people", "version": 7}}},
            ],
            "links": [{"id": "training:entrance", "from": "training", "to": "entrance", "policy": "rate-limit, manual", "policies": ["rate-limit", "manual"], "deployment_state": "SERVING", "wanted_version": 2,
                       "waiting": [self.waiting(3)], "serving_version": 2, "serving_model": made.MODEL, "pending_versions": [3]}],
        }

    @staticmethod
    def waiting(number):
        """How a version stands at the second policy of the link."""
        return {"model": made.MODEL, "version": number, "state": "PENDING_REVIEW", "position": 1, "policy": "manual", "until_ms": 0,
                "why": "manual: a person must approve it", "approvals": []}

    def candidate(self, number, state="PENDING_REVIEW"):
        found = next(one for one in self.versions if one["version"] == number)
        return {"id": f"{made.ION}:training:entrance:{found['id']}", "ion": made.ION, "link": "training:entrance",
                "link_from": "training", "link_to": "entrance", "model": made.MODEL, "model_version": found["id"],
                "version": number, "state": state, "served_seq": number if state in ("RETIRED", "SERVING") else 0, "served_ms": found["created_ms"] if state in ("RETIRED", "SERVING") else None, "position": 1, "position_ms": found["created_ms"], "until_ms": None, "waits_for": None, "waits_why": None, "approvals": None, "made_by": None, "created_ms": found["created_ms"], "metrics": found["metrics"]}

    def next_frame(self):
        self.frame += 1
        return self.frame

    # --------------------------------------------------------------------------------------------- what happens

    def publish(self, topic, record):
        with self.lock:
            self.seq += 1
            self.history = (self.history + [(self.seq, topic, record)])[-REPLAY:]
            for stream in list(self.streams):
                try:
                    stream.put_nowait((self.seq, topic, record))
                except queue.Full:
                    self.streams.remove(stream)

    def event(self, kind, subject, message):
        with self.lock:
            record = {"seq": len(self.events) + 1, "time_ms": made.rfc3339(time.time()), "topic": subject.split("/")[0] + "s",
                      "kind": kind, "severity": SEVERITIES.get(kind, "info"), "subject": subject, "actor": "system", "message": message, "data": None}
            self.events.append(record)
            self.publish("events", record)

    def push_decision(self, **fields):
        with self.lock:
            serving = self.ions[0]["links"][0]["serving_version"]
            record = {**made.decision(self.rng, self.decisions[-1]["seq"] + 1, self.next_frame(), time.time(), serving), **fields}
            self.decisions = (self.decisions + [record])[-4000:]
            self.publish("decisions", record)
            return record

    def push_version(self):
        """A training run made a model: it is registered and waits at the link."""
        with self.lock:
            number = len(self.versions) + 1
            self.versions.append(made.version(self.rng, number, time.time(), self.runs[-1]["id"]))
            self.candidates.append(self.candidate(number))
            self.ions[0]["links"][0]["pending_versions"].append(number)
            self.ions[0]["links"][0]["waiting"].append(self.waiting(number))
            self.publish("models", self.versions[-1])
            self.event("model_registered", f"model/{made.MODEL}", f"{made.MODEL} v{number} registered by run training")
            self.publish("ions", {"name": made.ION})
            return number

    def serve(self, number):
        with self.lock:
            link = self.ions[0]["links"][0]
            link["serving_version"] = link["wanted_version"] = number
            link["waiting"] = [one for one in link["waiting"] if one["version"] != number]
            link["pending_versions"] = [one for one in link["pending_versions"] if one != number]
            self.ions[0]["pipelines"][1]["deployment"]["model"]["version"] = number
            for one in self.candidates:
                if one["version"] == number:
                    one.update(state="SERVING", served_seq=1 + max(it["served_seq"] for it in self.candidates), served_ms=made.rfc3339(time.time()))
                elif one["state"] == "SERVING":
                    one["state"] = "RETIRED"
            self.event("model_promoted", f"ion/{made.ION}", f"entrance serves {made.MODEL} v{number}")
            self.publish("ions", {"name": made.ION})

    def append_log(self, task, text):
        with self.changed:
            self.logs[task] += text.encode()
            self.changed.notify_all()

    def advance(self):
        """One beat of the training run."""
        with self.lock:
            run = self.runs[-1]
            self.step = self.step + 1 if self.step < STEPS else 40
            points = [one for one in made.metrics(run["id"], self.step) if one["step"] == self.step]
            run.update({one["key"]: one["value"] for one in points if one["key"] in run})
            self.publish("runs", {"id": run["id"], "metrics": [{"run": run["id"], **one} for one in points]})
            task = self.tasks[run["job"]][0]["id"]
            self.append_log(task, f"info  train_step step {self.step} loss {run['loss']:.4f} accuracy {run['accuracy']:.4f}\n")

    def cut_streams(self):
        with self.lock:
            for stream in self.streams:
                stream.put(None)
            self.streams = []

    # ---------------------------------------------------------------------------------------------- the changes

    def decide(self, verb, body):
        number = body.get("version")
        with self.lock:
            if verb == "reject":
                for one in self.candidates:
                    if one["version"] == number:
                        one["state"] = "REJECTED"
                link = self.ions[0]["links"][0]
                link["pending_versions"] = [one for one in link["pending_versions"] if one != number]
                link["waiting"] = [one for one in link["waiting"] if one["version"] != number]
                self.event("model_rejected", f"ion/{made.ION}", f"{made.MODEL} v{number} rejected: {body.get('note', '')}")
            else:
                self.serve(number)

    def acknowledge(self, alert_id):
        with self.lock:
            for alert in self.alerts:
                if alert["id"] == alert_id:
                    alert.update(state="acknowledged", acknowledged_by="admin", acknowledged_ms=made.rfc3339(time.time()))
                    self.publish("alerts", dict(alert))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: State

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", content_type="application/json", headers=()):
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", CSP)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-store")
        for name, value in headers:
            self.send_header(name, value)
        try:
            self.end_headers()
            self.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the reader went to another page while it waited

    def error(self, status, code, message):
        is_draft = status in (400, 404) and self.headers.get("X-Weir-Draft") is not None
        self.answer(200 if is_draft else status, {"error": {"status": code, "message": message}}, headers=[("X-Weir-Status", str(status))] if is_draft else [])

    def is_refused(self, path):
        if self.state.is_down:
            self.close_connection = True
            self.connection.close()
            return True
        for prefix, fault in self.state.faults.items():
            if path.startswith(prefix):
                self.error(*fault)
                return True
        if path.startswith("/api/v1/") and COOKIE not in (self.headers.get("Cookie") or ""):
            self.error(401, "UNAUTHENTICATED", "sign in first")
            return True
        return False

    # --------------------------------------------------------------------------------------------------- reading

    def do_GET(self):
        url = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        if self.is_refused(url.path):
            return
        if url.path == "/login":
            if query.get("link") == LINK:
                self.answer(200, LOGIN_PAGE.encode(), "text/html; charset=utf-8", [("Content-Security-Policy", LOGIN_CSP)])
            else:
                self.error(403, "FORBIDDEN", "this link was used already")
        elif url.path.startswith("/api/v1/"):
            self.read(unquote(url.path[len("/api/v1/"):]), query)
        else:
            is_page = url.path == "/" or url.path.startswith("/p/") or "text/html" in (self.headers.get("Accept") or "")
            name = "index.html" if is_page else url.path[1:]
            file = DIST / name
            if name in ("index.html", "app.js", "app.css", *LATER) and file.exists():
                self.answer(200, file.read_bytes(), TYPES[file.suffix])
            else:
                self.error(404, "NOT_FOUND", "no such file")

    def read(self, path, query):
        state = self.state
        with state.lock:
            state.reads = [*state.reads[-2000:], path + "".join(f" {key}={query[key]}" for key in sorted(query))]
        parts = path.split("/")
        if path == "stream":
            self.stream(query["topics"].split(","))
            return
        if parts[0] == "tasks" and parts[-1] == "log":
            self.log(parts[1] + query.get("attempt", ""), int(query.get("offset", 0)), float(query.get("wait_s", 0)))
            return
        if parts[0] == "blobs":
            self.answer(200, made.blob(parts[1]), "application/octet-stream")
            return
        shot = fake_passage.picture(state, parts) if parts[0] == "decisions" and len(parts) > 2 else None
        if shot:
            self.answer(200, shot, "image/jpeg")
            return
        if parts[0] == "decisions" and parts[-1] == "image":
            self.image(parts[1])
            return
        if parts[0] == "runs" and "artifacts" in parts[2:3] and len(parts) > 3:
            found = fake_track.artifact("/".join(parts[3:]))
            self.answer(200 if found else 404, found or b"", "application/octet-stream")
            return
        if parts[0] == "ions" and parts[2:3] == ["cameras"] and parts[-1] == "live":
            status, answer = fake_camera.live(state, parts[3], int(query.get("after", 0)))
            self.answer(status, answer) if status == 200 else self.error(status, "NOT_FOUND" if status == 404 else "UNAVAILABLE", answer)
            return
        wrong = fake_track.problem(path, query)
        if wrong:
            self.error(400, "INVALID", wrong)
            return
        with state.lock:
            found = self.decisions(query) if path == "decisions" else self.find(path, parts, query)
        if found is None:
            self.error(404, "NOT_FOUND", f"{path} is not there")
        elif isinstance(found, list):
            self.answer(200, {"items": found[: int(query.get("limit", 100))], "next": None})
        else:
            self.answer(200, found)

    @staticmethod
    def buckets(decisions, query):
        """Counts by verdict in equal parts of the time asked for."""
        count = int(query.get("buckets", 0))
        begin = made.seconds(query["since"]) if "since" in query else time.time() - 1800
        end = made.seconds(query["until"]) if "until" in query else time.time()
        width = max(0.001, (end - begin) / max(1, count))
        found = [{"time_ms": made.rfc3339(begin + i * width), "grant": 0, "deny": 0, "unknown": 0, "error": 0, "label": 0} for i in range(count)]
        for one in decisions:
            place = int((made.seconds(one["time_ms"]) - begin) / width)
            if 0 <= place < count:
                found[place][one["verdict"]] += 1
        return found

    def find(self, path, parts, query):
        state = self.state
        fixed = {
            "session": {"user": "admin", "role": state.role, "csrf": CSRF, "version": "0.1.0", "projects": state.own_projects, "rights": state.rights},
            "users": state.users, "groups": state.groups, "tokens": state.tokens, "sessions": state.sessions, "devices": state.devices,
            "projects": state.projects,
            "health/summary": state.health(),
            "store/usage": made.usage(),
        }
        if path in fixed:
            return fixed[path]
        for part in (fake_cluster, fake_camera, fake_passage, fake_lineage, fake_share, fake_serve, fake_track, fake_sweep, fake_service):
            found = part.find(state, path, parts, query)
            if found is not None:
                return found
        found = fake_ion.find(state, parts, query)
        if found is not None:
            return found
        if parts[0] == "projects" and parts[-1] == "members":
            return state.members_of.get(parts[1], [])
        if path == "events" and query.get("topic") == "audit":
            return state.audit
        if parts[0] == "alerts" and len(parts) == 2:
            found = next((one for one in state.alerts if one["id"] == parts[1]), None)
            return found and {**found, "firings": [], "deliveries": fake_ion.alerting(state)["alert-deliveries"]}
        if parts[0] == "decisions" and len(parts) == 2 and parts[1] != "summary":
            return next((one for one in state.decisions if one["id"] == parts[1]), None)
        if parts[0] == "ions" and parts[-1] == "policy-decisions":
            return state.policy_decisions[::-1]
        lists = {"ions": state.ions, "runs": state.runs[::-1], "jobs": state.jobs, "nodes": state.nodes, "alerts": state.alerts,
                 "events": state.events[::-1]}
        if path == "models":
            names = [*([made.MODEL] if state.versions else []), *state.served]
            return [{"name": name, "project": "default", "description": state.model_descriptions.get(name)} for name in names]
        if path == "decisions/summary":
            state.summaries.append(query)
            mine = [one for one in state.decisions if one["ion"] == query["ion"]]
            some = [one for one in mine if query.get("since", "") <= one["time_ms"] < query.get("until", "~")]
            first = query["since"] if len(mine) > len(some) else some[0]["time_ms"] if some else None
            covered_s = max(1.0, time.time() - made.seconds(first)) if first else 1.0
            times = sorted(one["latency_us"] / 1000 for one in some) or [None]
            counts = {verdict: sum(one["verdict"] == verdict for one in some) for verdict in ("grant", "deny", "unknown", "error", "label")}
            return {"decisions": len(some), "verdicts": counts, "buckets": self.buckets(some, query), "from_ms": first if some else None, "per_second": len(some) / covered_s,
                    "latency_ms": {"p50": times[len(times) // 2], "p90": times[len(times) * 9 // 10], "p99": times[len(times) * 99 // 100]}}
        if path == "jobs" and "state" in query:
            return [one for one in state.jobs if one["state"] == query["state"]]
        if path in lists:
            return list(lists[path])
        if parts[0] == "ions" and parts[-1] == "members":
            return list(state.members)
        if parts[0] == "ions" and parts[-1] == "candidates":
            return state.candidates[::-1]
        if parts[0] == "ions":
            return next((one for one in state.ions if one["name"] == parts[1]), None)
        if path == "datasets":
            return state.datasets
        if parts[0] == "datasets" and parts[-1] == "freeze":
            return fake_dataset.freeze(state, parts[1])
        if parts[0] == "datasets" and parts[1] in state.files:
            return [one for one in [state.frozen.get(parts[1])] if one] if parts[-1] == "versions" else None
        if parts[0] == "datasets":
            found = next((one for one in state.datasets if one["name"] == parts[1]), None)
            return found and [{"id": f"{parts[1]}-{n}", "dataset": parts[1], "version": n, "digest": "%064x" % n, "blob": f"manifest-{n}", "n_files": 40 * n,
                               "n_classes": 4 * n, "bytes": 123_456 * n, "created_ms": found["created_ms"]} for n in (2, 1)]
        if parts[0] == "models":
            if parts[1] != made.MODEL or len(parts) > 4:
                return None
            return next((one for one in state.versions if str(one["version"]) == parts[3]), None) if len(parts) == 4 else list(state.versions)
        if parts[0] == "runs" and parts[-1] == "metrics":
            is_last = parts[1] == state.runs[-1]["id"]
            return {"items": made.metrics(parts[1], state.step if is_last else STEPS) + state.more_metrics, "next": None}
        if parts[0] == "jobs" and parts[-1] == "tasks":
            return list(state.tasks.get(parts[1], []))
        if path == "top/jobs":
            there = {job for job, tasks in state.tasks.items() if any(one["node"] == query.get("node") and one["state"] not in ("EXITED", "LOST") for one in tasks)}
            return [{key: one[key] for key in ("id", "name", "project", "kind")} for one in state.jobs if one["id"] in there]
        if parts[0] == "jobs" and len(parts) == 2:
            return next((one for one in state.jobs if one["id"] == parts[1]), None)
        return None

    def decisions(self, query):
        """A page of what matches, newest first; as GET /decisions."""
        wanted = {key: query[key] for key in ("ion", "camera", "verdict", "person", "label") if key in query}
        found = [one for one in self.state.decisions if all((one[key] or "") == value for key, value in wanted.items())
                 and query.get("since", "") <= one["time_ms"] < query.get("until", "~")]
        found.sort(key=lambda one: (one["time_ms"], one["id"]), reverse=True)
        limit = int(query.get("limit", 100))
        return {"items": found[:limit], "next": "more" if len(found) > limit else None}

    def image(self, decision_id):
        with self.state.lock:
            found = next((one for one in self.state.decisions + self.state.forgotten if one["id"] == decision_id), None)
        if found is None or found["image"] is None:
            self.error(404, "NOT_FOUND", "no picture was kept")
            return
        person = found["person"] or "impostor"
        # Half of the people as graymaps, which the page has to decode itself; the server does not name the kind.
        self.answer(200, made.face_pgm(person) if len(person) % 2 else made.face_png(person), "image/jpeg")

    def log(self, task, offset, wait_s):
        deadline = time.monotonic() + wait_s
        with self.state.changed:
            if task not in self.state.logs:
                self.error(404, "NOT_FOUND", "this task has no log")
                return
            while len(self.state.logs[task]) <= offset and time.monotonic() < deadline and not self.state.is_down:
                self.state.changed.wait(0.2)
            body = bytes(self.state.logs[task][offset:])
        self.answer(200, body, "text/plain; charset=utf-8", [("X-Weir-Offset", str(offset + len(body)))])

    def stream(self, topics):
        last = int(self.headers.get("Last-Event-ID") or 0)
        mine = queue.Queue(maxsize=10_000)
        with self.state.lock:
            missed = [one for one in self.state.history if last and one[0] > last]
            self.state.streams.append(mine)
            self.state.resumes.append(last)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-store")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            self.wfile.write(b": hello\n\n")
            for message in missed:
                self.event(message, topics)
            self.wfile.flush()
            while True:
                try:
                    message = mine.get(timeout=10)
                except queue.Empty:
                    self.wfile.write(b": still here\n\n")
                    continue
                if message is None:
                    return
                self.event(message, topics)
        except (BrokenPipeError, ConnectionResetError):
            pass
        finally:
            with self.state.lock:
                if mine in self.state.streams:
                    self.state.streams.remove(mine)

    def event(self, message, topics):
        seq, topic, record = message
        if topic in topics:
            self.wfile.write(f"event: {topic}\nid: {seq}\ndata: {json.dumps(record)}\n\n".encode())
            self.wfile.flush()

    # --------------------------------------------------------------------------------------------------- changing

    def change(self):
        path = unquote(urlsplit(self.path).path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.is_refused(path):
            return
        if path == "/login":
            self.log_in(body.decode())
            return
        with self.state.lock:
            self.state.requests.append((self.command, path, dict(self.headers), body.decode(errors="replace")))
        if self.headers.get("X-Weir-Csrf") != CSRF:
            self.error(403, "FORBIDDEN", "the request does not carry the session's token")
            return
        if path.startswith("/v2/"):
            status, headers, answer = fake_serve.infer(self.state, path, self.headers["Content-Type"])
            self.answer(status, answer, headers=headers)
            return
        parts = path.split("/")[3:]
        if parts[0] == "runs" and "parts" in parts:
            self.state.lets.wait(30)
        with self.state.lock:
            served = fake_track.put(self.state, self.command, parts, body) or fake_serve.change(self.state, self.command, parts, body)
        if served is not None:
            self.answer(*served)
            return
        is_file = parts[0] == "datasets" and self.command == "PUT"
        document = json.loads(body) if body and not is_file else {}
        with self.state.lock:
            served = fake_dataset.change(self.state, self.command, parts, body, document) or fake_passage.change(self.state, self.command, parts, document)
        if served is not None:
            self.answer(*served)
            return
        with self.state.lock:
            wrong = fake_sweep.problem(document) if parts == ["sweeps"] else None
            changes = [] if wrong else [
                lambda: fake_cluster.change(self.state, self.command, parts, document),
                lambda: fake_share.change(self.state, self.command, parts, document), lambda: fake_track.change(self.state, self.command, parts, document),
                lambda: fake_sweep.change(self.state, self.command, parts, document, "dry_run" in urlsplit(self.path).query),
                lambda: fake_service.change(self.state, self.command, parts, document, f"http://{self.headers['Host']}")]
            shared = next((answer for answer in (change() for change in changes) if answer is not None), None)
        if wrong is not None:
            self.error(400, "INVALID", wrong)
            return
        if shared is not None:
            self.answer(200, shared)
            return
        if parts[0] == "snapshots" and parts[-1] == "replay":
            self.answer(200, fake_ion.replay(self.state, document))
            return
        if self.command == "POST" and parts == ["ions"]:
            self.apply(document, "dry_run" in urlsplit(self.path).query)
            return
        if parts[0] == "ions" and parts[-1] in ("approve", "reject", "rollback", "set-model"):
            self.state.decide(parts[-1], document)
        elif parts[0] == "alerts" and parts[-1] == "acknowledge":
            self.state.acknowledge(parts[1])
        elif parts[0] not in ("ions", "jobs", "session", "nodes", "projects", "snapshots", "alerts", "alert-rules", "alert-receivers", "alert-silences"):
            self.error(404, "NOT_FOUND", "no such thing")
            return
        self.answer(200, {})

    def apply(self, document, is_dry):
        """As POST /ions: what is wrong is named with its place; a dry run changes nothing."""
        with self.state.lock:
            known = next((one for one in self.state.ions if one["name"] == document.get("name")), None)
            problem = made.problem_of(document)
            if problem:
                self.error(400, "INVALID", problem)
                return
            as_it_would_be = {**(known or self.state.ions[0]), "name": document["name"], "revision": known["revision"] + 1 if known else 1, "document": document}
            if not is_dry:
                if known:
                    known.update(as_it_would_be)
                else:
                    self.state.ions.append({**as_it_would_be, "pipelines": [], "links": []})
            effects = [{"kind": "start", "pipeline": "entrance", "link": None, "text": 'The replicas of "entrance" start.'}] if is_dry else []
        self.answer(200, {**as_it_would_be, "warnings": ["$.pipelines[0].model: it is not on the server's machine"], "effects": effects})

    def log_in(self, form):
        if form != f"link={LINK}":
            self.error(401, "UNAUTHENTICATED", "this link was used already")
            return
        self.answer(303, headers=[("Location", "/"), ("Set-Cookie", f"weir_session={COOKIE}; HttpOnly; SameSite=Strict; Path=/")])

    do_POST = do_PUT = do_PATCH = do_DELETE = change


class Http(ThreadingHTTPServer):
    request_queue_size = 128  # a page opens many connections at once
    daemon_threads = True

    def handle_error(self, request, client_address):
        """A browser that goes to another page resets what it waited for; anything else is a fault of this file."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class FakeServer:
    def __init__(self, port=0, is_empty=False):
        self.state = State(is_empty)
        handler = type("BoundHandler", (Handler,), {"state": self.state})
        self.http = Http(("127.0.0.1", port), handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        self.login = f"{self.url}/login?link={LINK}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def close(self):
        self.state.cut_streams()
        self.http.shutdown()
        self.http.server_close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=8099)
    parser.add_argument("--runs", type=int, default=0, help="so many runs of a program, to search in")
    parser.add_argument("--empty", action="store_true", help="a fresh installation: nothing in any list")
    arguments = parser.parse_args()
    server = FakeServer(arguments.port, arguments.empty)
    server.state.many = fake_track.Many(arguments.runs) if arguments.runs else None
    print(f"console: {server.login}", flush=True)
    beat = 0
    while True:
        time.sleep(0.25)
        beat += 1
        if arguments.empty:
            continue
        for _ in range(server.state.rng.choice([0, 1, 1, 2])):
            server.state.push_decision()
        if beat % 4 == 0:
            server.state.advance()
        if beat % 80 == 0:
            server.state.push_version()


if __name__ == "__main__":
    main()

"""A small plant of two machines in use, with probes that ask whether it works and a ledger of what it acknowledged."""
import collections
import hashlib
import http.client
import json
import os
import random
import signal
import sqlite3
import subprocess
import threading
import time
import uuid

import shims
from classifier_ion_test import CLASSES, picture
from harness import WEIR, Server, small_model, wait_until

HERE, THERE = "10.99.0.1", "10.99.0.2"  # the server's machine; the one behind the cable
PORT, GATE = 8440, 8500
NODE_TIMEOUT_S = 10
NOTHING_SAID = "no answer"  # in place of reasons
NO_ANSWER = (OSError, ValueError, KeyError, http.client.HTTPException, AssertionError)

# Logs a value for each step until the server has acknowledged it, and notes that; a later attempt goes on behind what was noted.
LOGS = """
import json, os, sys, time, urllib.request
noted = open(sys.argv[1], "a+")
noted.seek(0)
for step in range(len(noted.read().split()), 20):
    body = json.dumps({"metrics": [{"key": "value", "step": step, "value": step * 0.5}]}).encode()
    while True:
        request = urllib.request.Request(f"{os.environ['WEIR_SERVER']}/api/v1/runs/{os.environ['MLFLOW_RUN_ID']}/metrics", body)
        request.add_header("Authorization", "Bearer " + os.environ["MLFLOW_TRACKING_TOKEN"])
        try:
            urllib.request.urlopen(request, timeout=5).read()
            break
        except OSError:
            time.sleep(0.1)
    noted.write(f"{step}\\n")
    noted.flush()
    time.sleep(0.1)
"""


def ask(method, path, body=None, token=None, address=(HERE, PORT), timeout=3):
    """The answer's bytes; an OSError of whatever else than 2xx."""
    connection = http.client.HTTPConnection(*address, timeout=timeout)
    try:
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path, data, {"Authorization": "Bearer " + token} if token else {})
        answer = connection.getresponse()
        text = answer.read()
        if not 200 <= answer.status < 300:
            raise OSError(f"{method} {path}: {answer.status} {text[:200]}")
        return text
    finally:
        connection.close()


class Ledger:
    """What was asked for, by kind and name with its content, and what of it was acknowledged."""

    def __init__(self):
        self.lock, self.sent, self.acked = threading.Lock(), collections.defaultdict(dict), collections.defaultdict(dict)

    def send(self, kind, name, content):
        with self.lock:
            self.sent[kind][name] = content

    def ack(self, kind, name):
        with self.lock:
            self.acked[kind].setdefault(name, time.monotonic())

    def some(self, kind, dice):
        with self.lock:
            return dice.choice(list(self.acked[kind])) if self.acked[kind] else None

    def restored(self, at):
        """A backup of that time was restored: what was acknowledged since may be there or not."""
        with self.lock:
            for names in self.acked.values():
                for name in [name for name, when in names.items() if when >= at]:
                    del names[name]

    def wrong(self, kind, found):
        """What is not as it was acknowledged. found: (name, content) of each that is there."""
        times, wrong = collections.Counter(name for name, _ in found), []
        for problem, names in (("lost", set(self.acked[kind]) - set(times)), ("never asked for", set(times) - set(self.sent[kind])),
                               ("doubled", {name for name, n in times.items() if n > 1}),
                               ("of other content", {name for name, content in found if self.sent[kind].get(name, content) != content})):
            if names:
                wrong.append(f"{kind}: {len(names)} of {len(self.acked[kind])} {problem}: {sorted(map(str, names))[:5]}")
        return wrong


class Probe(threading.Thread):
    """Asks for one thing again and again. bound_s: how long it may fail before the server must say that something is wrong."""

    def __init__(self, world, name, bound_s, once, pause_s=0.1):
        super().__init__(daemon=True, name=name)
        self.world, self.bound_s, self.once, self.pause_s = world, bound_s, once, pause_s
        self.since = self.error = None  # since when it fails, and how
        self.worked = 0                 # when the last attempt that worked was begun
        self.is_idle, self.n = True, 0

    def run(self):
        while not self.world.stopping.is_set():
            self.is_idle = not self.world.going.is_set()
            if not self.world.going.wait(0.5):
                continue
            self.is_idle, begun = False, time.monotonic()
            try:
                self.once()
                self.since, self.worked, self.error = None, begun, None
            except NO_ANSWER as error:
                self.failed(begun, error)
            self.n += 1
            time.sleep(self.pause_s)

    def failed(self, begun, error):
        self.since = max(self.since or begun, self.world.there_since)
        self.error = f"{type(error).__name__}: {error}"[:300]
        green = self.world.was_green(self.since + self.bound_s, begun)
        if green:
            self.world.hidden.append(f"{self.name} failed for {begun - self.since:.1f} s ({self.error}), and after "
                                     f"{green - self.since:.1f} s of it all was said to be well")


class World:
    def __init__(self, seed):
        self.server, self.ledger, self.dice = Server(), Ledger(), random.Random(seed + 1)
        self.root, self.stopping, self.going = self.server.root, threading.Event(), threading.Event()
        self.samples, self.hidden, self.there_since, self.n_told = collections.deque(maxlen=4000), [], 0, collections.Counter()
        self.n_frames = collections.Counter()
        self.machine = self.agent = None

    # ---- what there is

    def make_network(self):
        """The other machine: a network behind a cable, and a disk of its own below the server's state folder."""
        self.server.state.mkdir(mode=0o700)
        script = f"mount -t tmpfs -o mode=700 tmpfs {self.server.state} && echo ready && exec sleep infinity"
        self.machine = subprocess.Popen(["unshare", "--net", "--mount", "sh", "-c", script], stdout=subprocess.PIPE, text=True)
        assert self.machine.stdout.readline() == "ready\n"
        for words in ("link set lo up", f"link add cable type veth peer name eth0 netns {self.machine.pid}",
                      f"addr add {HERE}/24 dev cable", "link set cable up"):
            subprocess.run(["ip", *words.split()], check=True)
        for words in ("link set lo up", f"addr add {THERE}/24 dev eth0", "link set eth0 up"):
            self.over_there("ip", *words.split())

    def inside(self):
        return ["nsenter", "--net", "--mount", "-t", str(self.machine.pid)]

    def over_there(self, *words):
        subprocess.run([*self.inside(), *words], check=True)

    def with_faults(self, name, state):
        """The environment of a program whose disk and clock have faults by the files `name`.disk and `name`.clock."""
        for what in ("disk", "clock"):
            (self.root / f"{name}.{what}").write_text("0")
        return shims.environment(self.shims, DISK_FAULT=self.root / f"{name}.disk", CLOCK_SHIFT=self.root / f"{name}.clock",
                                 DISK_STATE=state)

    def start_server(self):
        saved = dict(os.environ)
        os.environ.update(self.environment)
        try:
            self.server.start("--listen", f"0.0.0.0:{PORT}", "--node", "a", "--cpu-slots", "8", "--node-timeout", str(NODE_TIMEOUT_S))
        finally:
            os.environ.clear()
            os.environ.update(saved)
        self.there_since = time.monotonic()

    def start_agent(self):
        with open(self.root / "b.log", "ab") as log:
            self.agent = subprocess.Popen(
                [*self.inside(), WEIR, "agent", "--server", f"http://{HERE}:{PORT}", "--dir", str(self.root / "b"), "--node", "b",
                 "--cpu-slots", "8", "--share", f"{self.root}:rw"], stderr=log, start_new_session=True,
                env={**os.environ, **self.with_faults("b", self.root / "b")})

    def start(self):
        self.make_network()
        self.shims = [shims.build(self.root, "disk", shims.DISK), shims.build(self.root, "clock", shims.CLOCK)]
        self.environment = self.with_faults("a", self.server.state)
        for folder in ("frames/cam", "marks", "noted"):
            (self.root / folder).mkdir(parents=True)
            os.chmod(self.root / folder, 0o777)
        os.chmod(self.root, 0o755)
        self.start_server()
        (self.root / "b").mkdir(mode=0o700)
        (self.root / "b/token").write_text(json.loads(self.server.weir(
            "token", "create", "b", "--role", "agent", "--user", "agent", "--node", "b", "-o", "json")[1])["secret"])
        self.start_agent()
        self.fill()
        # How long each may fail: replicas are silent after 15 s, nodes after the time-out, and the server looks every 2 s.
        self.probes = [Probe(self, *words) for words in (
            ("frames of a folder", 20, self.put_frame), ("frames of HTTP", 20, self.send_frame),
            ("a model's answers", 20, self.infer, 0.05), ("a job", NODE_TIMEOUT_S + 10, self.run_job),
            ("what is stored", 5, self.write), ("what was stored", 5, self.read), ("a job that logs", NODE_TIMEOUT_S + 40, self.run_logs))]
        self.observer = threading.Thread(target=self.observe, daemon=True)
        for thread in (self.observer, *self.probes):
            thread.start()
        self.go_on()
        wait_until(lambda: self.is_well(self.there_since), 120, "the plant")

    def fill(self):
        post, server = self.server.post, self.server
        post("/datasets", {"name": "shapes"})
        for name in CLASSES[:2]:
            for seed in range(8):
                server.request("PUT", f"/api/v1/datasets/shapes/files/{name}/{seed}.pgm", picture(name, seed))
        post("/datasets/shapes/versions")
        post("/datasets", {"name": "kept"})
        post("/ions", {
            "kind": "ion", "name": "sorter", "pipelines": [
                {"name": "training", "type": "training", "dataset": "shapes", "model": "lenet",
                 "parameters": {"epochs": 1, "batch_size": 8, "input": "1,16,16"}, "triggers": {"manual": True}},
                {"name": "belt", "type": "prediction", "source": {"kind": "directory", "path": f"{self.root}/frames"},
                 "sinks": [{"kind": "jsonl", "path": f"{self.root}/belt.jsonl"}]},
                {"name": "gate", "type": "prediction", "source": {"kind": "http", "listen": f"0.0.0.0:{GATE}"}}],
            "links": [{"from": "training", "to": door, "policy": "always-update"} for door in ("belt", "gate")]})
        post("/ions/sorter/trigger", {"pipeline": "training"})
        (self.root / "plus.onnx").write_bytes(small_model())
        server.weir("model", "push", "plus", str(self.root / "plus.onnx"))
        server.weir("deploy", "plus", "--replicas", "2", "--cpus", "1")
        self.run = post("/runs", {"name": "probe", "experiment": "probe"})["id"]

    def stop(self):
        self.stopping.set()
        self.going.set()
        for process in (self.server.process, self.agent):
            if process is not None and process.poll() is None:
                process.kill()
        for pid in self.server.pids():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if self.machine is not None:
            self.machine.kill()
            self.machine.wait()
            self.machine.stdout.close()
        self.server.stop()

    # ---- what is asked of it

    def call(self, method, path, body=None, timeout=3):
        text = ask(method, "/api/v1" + path, body, self.server.token, timeout=timeout)
        return json.loads(text) if text else None

    def items(self, path):
        """All of a list."""
        found, cursor = [], ""
        while True:
            page = self.call("GET", f"{path}{'&' if '?' in path else '?'}limit=1000{cursor}", timeout=30)
            found += page["items"]
            if not page.get("next"):
                return found
            cursor = "&cursor=" + page["next"]

    def count(self, what):
        self.n_frames[what] += 1
        return self.n_frames[what]

    def picture(self, number):
        """None is like one before, which would be told as drift."""
        return picture(CLASSES[number % 2], 1000 + number)

    def put_frame(self):
        """A file goes only when its decision is on disk."""
        number = self.n_frames["cam"]
        path = self.root / f"frames/cam/{number}.pgm"
        if ("cam", number) not in self.ledger.sent["frame"]:
            self.ledger.send("frame", ("cam", number), None)
            (path.parent / ".new").write_bytes(self.picture(number))
            (path.parent / ".new").rename(path)
        wait_until(lambda: not path.exists(), 3, "the frame to go")
        self.ledger.ack("frame", ("cam", number))
        self.n_frames["cam"] += 1

    def send_frame(self):
        number, answer = self.n_frames["gate"], None
        self.ledger.send("frame", ("gate", number), None)
        for address in (HERE, THERE):
            try:
                answer = json.loads(ask("POST", f"/frames/gate/{number}", self.picture(number), address=(address, GATE), timeout=2))
                break
            except NO_ANSWER as error:
                reason = error
        if answer is None:
            raise reason
        self.ledger.ack("frame", ("gate", number))
        assert answer["verdict"] == "label", answer
        self.ledger.send("decision", answer["id"], answer["label"])
        self.ledger.ack("decision", answer["id"])
        self.n_frames["gate"] += 1

    def infer(self):
        number = float(self.count("request"))
        answer = json.loads(ask("POST", "/v2/models/plus/infer", {"inputs": [
            {"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [number, 0, 1, 2]}]}, self.server.token))
        data = answer["outputs"][0]["data"]
        if data != [number + 1, 1, 2, 3]:
            self.hidden.append(f"a wrong answer: {data} of {number}")

    def run_job(self):
        name = f"j{self.count('job')}"
        self.submit(name, 8, ["sh", "-c", f"echo $WEIR_ATTEMPT >> {self.root}/marks/{name}"])

    def run_logs(self):
        name = f"logs{self.count('logs')}"
        self.submit(name, 40, ["python3", "-c", LOGS, f"{self.root}/noted/{name}"])

    def submit(self, name, seconds, argv):
        """A job that is to succeed within these."""
        self.ledger.send("job", name, None)
        job = self.call("POST", "/jobs", {"name": name, "kind": "command", "max_restarts": 20, "spec": {"argv": argv}})["id"]
        self.ledger.ack("job", name)

        def has_succeeded():
            try:
                return self.call("GET", f"/jobs/{job}")["state"] == "SUCCEEDED"
            except OSError:
                return False
        wait_until(has_succeeded, seconds, f"job {name} to succeed")

    def shipped(self):
        """A decision that the server has, and no feedback about it; or None."""
        name = self.ledger.some("decision", self.dice)
        is_there = name is not None and time.monotonic() - self.ledger.acked["decision"].get(name, time.monotonic()) > 10
        return name if is_there and name not in self.ledger.sent["feedback"] else None

    def write(self):
        """One of what people and programs store."""
        kind, decision = self.dice.choice(("metric", "blob", "version", "file", "experiment", "feedback")), self.shipped()
        kind = "metric" if kind == "feedback" and decision is None else kind
        number, name = self.count("write"), f"w{self.n_frames['write']}"
        data = name.encode() * 50
        if kind == "metric":
            name, content, words = number, number * 0.5, ("POST", f"/runs/{self.run}/metrics",
                                                          {"metrics": [{"key": "probe", "step": number, "value": number * 0.5}]})
        elif kind == "blob":
            name = content = hashlib.sha256(data).hexdigest()
            words = "PUT", f"/blobs/{name}", data
        elif kind == "version":
            model, name = small_model(name), str(uuid.uuid4())
            content = hashlib.sha256(model).hexdigest()
            self.call("PUT", f"/blobs/{content}", model)
            words = "POST", "/models/other/versions", {"id": name, "blob": content, "bytes": len(model)}
        elif kind == "file":
            content, words = hashlib.sha256(data).hexdigest(), ("PUT", f"/datasets/kept/files/all/{name}", data)
        elif kind == "experiment":
            content, words = None, ("POST", "/experiments", {"name": name})
        else:
            name, content = decision, CLASSES[0]
            words = "POST", "/feedback", {"decision": name, "truth": content}
        self.ledger.send(kind, name, content)
        self.call(*words)
        self.ledger.ack(kind, name)

    def read(self):
        """What was acknowledged is there again."""
        name = self.ledger.some("blob", self.dice)
        if name is not None:
            self.blob_is_right(name)
        self.call("GET", "/jobs?limit=5")
        self.call("GET", "/decisions?ion=sorter&limit=5")

    def blob_is_right(self, name):
        """Other bytes than it should have are never given out."""
        data = ask("GET", f"/api/v1/blobs/{name}", token=self.server.token)
        if hashlib.sha256(data).hexdigest() != name:
            self.hidden.append(f"blob {name} was answered with other bytes")

    # ---- what it says of itself

    def observe(self):
        while not self.stopping.is_set():
            begun, reasons = time.monotonic(), [NOTHING_SAID]
            try:
                ask("GET", "/health", timeout=2)
                summary = self.call("GET", "/health/summary", timeout=2)
                reasons = [] if summary["status"] == "ok" else [one["kind"] for one in summary["reasons"]]
            except NO_ANSWER as error:
                reasons = ["down"] if "/health: 503 " in str(error) else reasons
            if not self.samples or reasons != self.samples[-1][1]:
                self.n_told.update(set(reasons) - set(self.samples[-1][1] if self.samples else []))
            self.samples.append((begun, reasons))
            time.sleep(0.2)

    def was_green(self, since, until):
        """When all was said to be well between these times, or None."""
        return next((when for when, reasons in list(self.samples) if since <= when <= until and not reasons), None)

    def red(self, since=0):
        """What is said to be wrong, asked since then."""
        return self.samples[-1][1] if self.samples[-1][0] > since else []

    def told(self):
        return dict(self.n_told)

    def is_well(self, since):
        """Has all worked, and was all said to be well, since then?"""
        works = all(probe.worked > since and not probe.error for probe in self.probes if probe.once != self.run_logs)  # which takes long
        return works and self.samples[-1][0] > since and not self.red()

    def state(self):
        return {"said": self.red(), "fail": {probe.name: probe.error for probe in self.probes if probe.error},
                "slow": [probe.name for probe in self.probes if not probe.error and time.monotonic() - probe.worked > 10],
                "log": self.server.log_text()[-1500:]}

    # ---- the reckoning

    def rest(self):
        """Nothing more is asked; what is under way ends."""
        self.going.clear()
        wait_until(lambda: all(probe.is_idle for probe in self.probes), 60, "the probes to rest")
        wait_until(lambda: not [job for job in self.items("/jobs?kind=command") if not job["finished_ms"]], 60, "the jobs to end")
        n = len(self.ledger.acked["frame"])
        wait_until(lambda: self.call("GET", "/decisions/summary?ion=sorter")["decisions"] >= n, 30, f"{n} decisions on the server")

    def go_on(self):
        self.there_since = time.monotonic()
        for probe in getattr(self, "probes", []):
            probe.since = None
        self.going.set()

    def reckon(self):
        """What is not as it was acknowledged."""
        ledger, wrong = self.ledger, []
        decisions = self.items("/decisions?ion=sorter")
        jobs = self.items("/jobs?kind=command")
        found = {
            "frame": [((one["camera"], one["frame"]), None) for one in decisions],
            "decision": [(one["id"], one["label"]) for one in decisions if one["id"] in ledger.sent["decision"]],
            "metric": [(one["step"], one["value"]) for one in self.items(f"/runs/{self.run}/metrics?key=probe")],
            "version": [(one["id"], one["blob"]) for one in self.items("/models/other/versions")],
            "experiment": [(one["name"], None) for one in self.items("/experiments") if one["name"].startswith("w")],
            "feedback": [(one["decision"], one["truth"]) for one in self.items("/feedback?ion=sorter")],
            "job": [(one["name"], None) for one in jobs]}
        for kind, rows in found.items():
            wrong += ledger.wrong(kind, rows)
        wrong += [f"job {job['name']} is {job['state']}: {job['reason']}" for job in jobs if job["state"] != "SUCCEEDED"]
        wrong += [f"job {name} did not run" for name in ledger.acked["job"] if name[0] == "j" and not (self.root / "marks" / name).exists()]
        for job in jobs:
            if job["name"].startswith("logs") and job["name"] in ledger.acked["job"]:
                rows = sorted((one["step"], one["value"]) for one in self.items(f"/runs/{job['run']}/metrics?key=value"))
                if rows != [(step, step * 0.5) for step in range(20)]:
                    wrong.append(f"job {job['name']}: {len(rows)} of 20 values")
        for name in [*ledger.acked["blob"], *(ledger.sent["version"][id] for id in ledger.acked["version"])]:
            self.blob_is_right(name)
        wrong += self.wrong_files() + self.wrong_lines(decisions) + self.wrong_database()
        return wrong + self.hidden

    def wrong_files(self):
        paths = (self.server.state / "datasets/kept/all").glob("w*")
        return self.ledger.wrong("file", [(path.name, hashlib.sha256(path.read_bytes()).hexdigest()) for path in paths])

    def wrong_lines(self, decisions):
        """The file of decisions has each of the folder's frames once, decided as the server has it."""
        lines = [json.loads(line) for line in (self.root / "belt.jsonl").read_bytes().splitlines()]
        times, stored = collections.Counter(line["frame"] for line in lines), {one["id"]: one["label"] for one in decisions}
        return [f"{what} in the sink: {frames[:5]}" for what, frames in (
            ("lost", [n for n in range(self.n_frames["cam"]) if n not in times]),
            ("doubled", [n for n, many in times.items() if many > 1]),
            ("decided otherwise", [line["frame"] for line in lines if stored.get(line["id"], line["label"]) != line["label"]])) if frames]

    def wrong_database(self):
        wrong = []
        with sqlite3.connect(f"file:{self.server.state / 'weir.db'}?mode=ro", uri=True) as database:
            answers = [database.execute(f"PRAGMA {check}").fetchall() for check in ("integrity_check", "foreign_key_check")]
        database.close()
        if answers != [[("ok",)], []]:
            wrong.append(f"database: {answers}")
        for words in (["audit", "verify"], ["store", "verify"], ["doctor"]):
            code, out, err = self.server.weir(*words, check=False)
            if code != 0:
                wrong.append(f"weir {' '.join(words)}: {code}: {out[-300:]} {err[-300:]}")
        return wrong

#!/usr/bin/python3
"""Tracking beside `mlflow server`: pages of runs, new runs, measurements by the thousand, writers at the same time.

    bench/tracking.py [--runs 100000] [--no-peer] [-o json]

Both servers answer the same requests of MLflow's REST API on this machine, one after the other, over HTTP/1.1 connections that
stay open. The peer is `mlflow server` on SQLite as it comes, from the Python index in a virtual environment under build/peers
(made when it is not there). Both databases are filled by SQL before the servers start: so many runs with 10 metrics, 5
parameters and 2 tags each, the same for both.

page       POST runs/search, max_results 1000, of one experiment with all runs: the first page; p50 and p99 of the answer whole
deep       the page behind five others
by metric  order_by metrics.m1 DESC, the first 1000
filtered   metrics.m0 > 0.5 and params.p1 = '3', order_by metrics.m1 DESC, 1000 of them
create     POST runs/create by one client
log-batch  1000 metrics in a body, 4 clients: metrics a second; each answer is durable
log-metric one by one, 8 clients: a second
history    GET metrics/get-history of 100,000 points, whole
writers    64 clients that write at the same time: answers that are errors
memory     resident size of the server's processes after all that, MiB
"""
import argparse
import http.client
import json
import os
import pathlib
import random
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

ROOT = pathlib.Path(__file__).parents[1]
WEIR = pathlib.Path(os.environ.get("WEIR_BIN", ROOT / "build/release/programs")) / "weir"
PEERS = ROOT / "build/peers"
API = "/api/2.0/mlflow/"
N_METRICS, N_PARAMS = 10, 5


def rows(n, seed=5):
    """Of each run: metrics, parameters."""
    rng = random.Random(seed)
    for i in range(n):
        yield i, [rng.random() for _ in range(N_METRICS)], [str(rng.randrange(10)) for _ in range(N_PARAMS)]


class Server:
    def __init__(self, name):
        self.name, self.process = name, None
        self.root = pathlib.Path(tempfile.mkdtemp(prefix=f"bench-tracking-{name}-"))
        self.headers = {"Content-Type": "application/json"}

    def wait(self):
        end = time.monotonic() + 300
        while time.monotonic() < end:
            try:
                connection = self.connect()
                connection.request("GET", "/health")
                connection.getresponse().read()
                return self
            except OSError:
                time.sleep(0.05)
        raise SystemExit(f"{self.name} does not answer")

    def connect(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def call(self, connection, method, path, body=None):
        connection.request(method, API + path, json.dumps(body) if isinstance(body, dict) else body, self.headers)
        answer = connection.getresponse()
        return answer.status, answer.read()

    def rss_mib(self):
        total = 0
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    if str(self.root) in (entry / "cmdline").read_text() or os.getpgid(int(entry.name)) == self.process.pid:
                        total += int(re.search(r"VmRSS:\s+(\d+)", (entry / "status").read_text()).group(1))
                except (OSError, AttributeError):
                    pass
        return total / 1024

    def stop(self):
        if self.process is not None:
            os.killpg(self.process.pid, 15)
            self.process.wait(60)
            self.process = None

    def remove(self):
        self.stop()
        shutil.rmtree(self.root, ignore_errors=True)


class Weir(Server):
    def start(self):
        state = self.root / "state"
        (state / "server.json").unlink(missing_ok=True)
        self.process = subprocess.Popen([WEIR, "server", "--state", state, "--listen", "127.0.0.1:0", "--no-agent", "--log-level", "error"],
                                        stderr=subprocess.DEVNULL, start_new_session=True)
        end = time.monotonic() + 60
        while not (state / "server.json").exists() and time.monotonic() < end:
            time.sleep(0.02)
        self.port = urllib.parse.urlparse(json.loads((state / "server.json").read_text())["url"]).port
        self.headers["Authorization"] = "Bearer " + (state / "admin.token").read_text().strip()
        return self.wait()

    def fill(self, n):
        db = sqlite3.connect(self.root / "state/weir.db")
        names = [f"m{k}" for k in range(N_METRICS)] + [f"p{k}" for k in range(N_PARAMS)] + ["team", "mlflow.runName"]
        db.executemany("INSERT INTO track_keys (name) VALUES (?)", [(name,) for name in names])
        key = dict(db.execute("SELECT name, id FROM track_keys"))
        for i, metrics, params in rows(n):
            number, when = i + 1, 1_700_000_000_000 + i
            db.execute('INSERT INTO runs (number, id, name, project, experiment, kind, status, dataset_version, "user", created_ms,'
                       " start_ms, finished_ms) VALUES (?, ?, ?, 'default', 0, 'external', 'FINISHED', 0, 'ann', ?, ?, ?)",
                       (number, f"{i:032x}", f"run-{i}", when, when, when + 5))
            points = [(number, key[f"m{k}"], 9, when, value, 0) for k, value in enumerate(metrics)]
            db.executemany("INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?)", points)
            db.executemany("INSERT INTO latest_metrics VALUES (?, ?, ?, ?, ?, ?)", points)
            db.executemany("INSERT INTO run_parameters VALUES (?, ?, ?)", [(number, key[f"p{k}"], v) for k, v in enumerate(params)])
            db.executemany("INSERT INTO run_tags VALUES (?, ?, ?)",
                           [(number, key["team"], f"t{i % 7}"), (number, key["mlflow.runName"], f"run-{i}")])
        db.commit()
        db.close()


class Mlflow(Server):
    def start(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.process = subprocess.Popen(
            [PEERS / "bin/mlflow", "server", "--backend-store-uri", f"sqlite:///{self.root}/mlflow.db", "--host", "127.0.0.1",
             "--port", str(self.port), "--artifacts-destination", self.root / "artifacts"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            env={**os.environ, "PATH": f"{PEERS}/bin:{os.environ['PATH']}"})
        return self.wait()

    def fill(self, n):
        db = sqlite3.connect(self.root / "mlflow.db")
        for i, metrics, params in rows(n):
            run, when = f"{i:032x}", 1_700_000_000_000 + i
            db.execute("INSERT INTO runs (run_uuid, name, source_type, source_name, entry_point_name, user_id, status, start_time,"
                       " end_time, source_version, lifecycle_stage, artifact_uri, experiment_id) VALUES (?, ?, 'UNKNOWN', '', '',"
                       " 'ann', 'FINISHED', ?, ?, '', 'active', ?, 0)",
                       (run, f"run-{i}", when, when + 5, f"mlflow-artifacts:/0/{run}/artifacts"))
            db.executemany("INSERT INTO metrics (key, value, timestamp, step, is_nan, run_uuid) VALUES (?, ?, ?, 9, 0, ?)",
                           [(f"m{k}", value, when, run) for k, value in enumerate(metrics)])
            db.executemany("INSERT INTO latest_metrics (key, value, timestamp, step, is_nan, run_uuid) VALUES (?, ?, ?, 9, 0, ?)",
                           [(f"m{k}", value, when, run) for k, value in enumerate(metrics)])
            db.executemany("INSERT INTO params (key, value, run_uuid) VALUES (?, ?, ?)",
                           [(f"p{k}", value, run) for k, value in enumerate(params)])
            db.executemany("INSERT INTO tags (key, value, run_uuid) VALUES (?, ?, ?)",
                           [("team", f"t{i % 7}", run), ("mlflow.runName", f"run-{i}", run)])
        db.commit()
        db.close()


def quantile(values, q):
    return sorted(values)[min(len(values) - 1, int(len(values) * q))]


def timed(server, n, *request, seconds=20):
    """Milliseconds of each of n answers, or of as many as come within the time; the last answer."""
    connection, times, body = server.connect(), [], b""
    end = time.monotonic() + seconds
    while len(times) < n and (not times or time.monotonic() < end):
        began = time.perf_counter()
        try:
            status, body = server.call(connection, *request)
        except (OSError, http.client.HTTPException) as problem:  # mlflow's workers are ended after 30 s
            print(f"{server.name}: {request[1]} was not answered: {problem}", file=sys.stderr)
            return times or [float("nan")], body
        times.append((time.perf_counter() - began) * 1000)
        assert status == 200, body[:300]
    return times, body


def crowd(server, n_clients, seconds, body_of, path):
    """Answers within a time, from clients at the same time: how many a second, and how many were errors."""
    counts, errors, messages = [0] * n_clients, [0] * n_clients, set()
    end = time.monotonic() + seconds

    def work(i):
        connection, k = server.connect(), 0
        while time.monotonic() < end:
            try:
                status, answer = server.call(connection, "POST", path, body_of(i, k))
            except OSError as problem:
                status, answer, connection = 0, str(problem).encode(), server.connect()
            k += 1
            counts[i] += status == 200
            errors[i] += status != 200
            if status != 200:
                messages.add(answer[:160])

    began = time.monotonic()
    threads = [threading.Thread(target=work, args=(i,)) for i in range(n_clients)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    return sum(counts) / (time.monotonic() - began), sum(errors), messages


def measure(server):
    class Found(dict):
        def __setitem__(self, name, value):
            print(f"{server.name} {name} {value:.2f}", file=sys.stderr)
            super().__setitem__(name, value)

    found = Found()
    search = {"experiment_ids": ["0"], "max_results": 1000}
    times, body = timed(server, 100, "POST", "runs/search", search)
    page = json.loads(body)
    assert len(page["runs"]) == 1000 and len(page["runs"][7]["data"]["metrics"]) == N_METRICS
    found["page_p50_ms"], found["page_p99_ms"] = quantile(times, 0.5), quantile(times, 0.99)
    connection = server.connect()
    for _ in range(5):
        page = json.loads(server.call(connection, "POST", "runs/search", {**search, "page_token": page["next_page_token"]})[1])
        if "next_page_token" not in page:
            break
    deep = {**search, "page_token": page["next_page_token"]} if "next_page_token" in page else search
    found["deep_p50_ms"] = quantile(timed(server, 20, "POST", "runs/search", deep)[0], 0.5)
    ordered = {**search, "order_by": ["metrics.m1 DESC"]}
    found["by_metric_p50_ms"] = quantile(timed(server, 20, "POST", "runs/search", ordered)[0], 0.5)
    hard = {**search, "filter": "metrics.m0 > 0.5 and params.p1 = '3'", "order_by": ["metrics.m1 DESC"]}
    found["filtered_p50_ms"] = quantile(timed(server, 20, "POST", "runs/search", hard)[0], 0.5)
    times, body = timed(server, 1000, "POST", "runs/create", {"experiment_id": "0", "start_time": 5, "tags": [{"key": "a", "value": "b"}]})
    found["create_p50_ms"] = quantile(times, 0.5)
    connection = server.connect()  # the one of before was idle for too long
    runs = [json.loads(body)["run"]["info"]["run_id"]]
    for _ in range(63):
        runs.append(json.loads(server.call(connection, "POST", "runs/create", {"experiment_id": "0"})[1])["run"]["info"]["run_id"])

    def batch(i, k):
        step = k * 1000
        points = ",".join(f'{{"key":"loss","value":{(step + j) * 0.37},"timestamp":{step + j},"step":{step + j}}}' for j in range(1000))
        return f'{{"run_id":"{runs[i]}","metrics":[{points}]}}'

    made = {(i, k): batch(i, k) for i in range(4) for k in range(300)}
    rate, _, _ = crowd(server, 4, 5, lambda i, k: made.get((i, k)) or batch(i, k), "runs/log-batch")
    found["batch_metrics_per_s"] = rate * 1000
    one = lambda i, k: f'{{"run_id":"{runs[i]}","key":"one","value":{k}.5,"timestamp":{k},"step":{k}}}'
    found["log_metric_per_s"], _, _ = crowd(server, 8, 4, one, "runs/log-metric")
    connection = server.connect()
    for k in range(100):
        server.call(connection, "POST", "runs/log-batch", batch(10, k))
    times, _ = timed(server, 5, "GET", f"metrics/get-history?run_id={runs[10]}&metric_key=loss&max_results=100000")
    found["history_100k_ms"] = quantile(times, 0.5)
    _, found["writers_64_errors"], messages = crowd(server, 64, 5, one, "runs/log-metric")
    if messages:
        print(server.name, "of 64 writers:", messages, file=sys.stderr)
    found["rss_mib"] = server.rss_mib()
    return found


def scene(server, n):
    try:
        server.start()
        server.stop()
        server.fill(n)
        server.start()
        return measure(server)
    finally:
        server.remove()


def find_peer():
    if not (PEERS / "bin/mlflow").exists():
        PEERS.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-m", "venv", PEERS], check=True)
        subprocess.run([PEERS / "bin/pip", "install", "--quiet", "mlflow==2.22.*", "sqlalchemy<2.1"], check=True)


TARGETS = {"page_p50_ms": ("<=", 15), "create_p50_ms": ("<=", 1), "batch_metrics_per_s": (">=", 300000), "rss_mib": ("<=", 64),
           "writers_64_errors": ("<=", 0)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100000)
    parser.add_argument("--no-peer", action="store_true")
    parser.add_argument("-o", dest="output", choices=["table", "json"], default="table")
    options = parser.parse_args()
    found = {"weir": scene(Weir("weir"), options.runs)}
    if not options.no_peer:
        find_peer()
        found["mlflow"] = scene(Mlflow("mlflow"), options.runs)
    if options.output == "json":
        print(json.dumps(found, indent=1))
        return
    print(f"{options.runs} runs{'':15} {'weir':>12} {'mlflow':>12} {'ratio':>8}  target")
    for name, value in found["weir"].items():
        peer = found.get("mlflow", {}).get(name)
        better = (value / peer if name.endswith("_per_s") else peer / value) if peer and value else None
        op, target = TARGETS.get(name, ("", ""))
        print(f"{name:26} {value:12.2f} {peer if peer is not None else float('nan'):12.2f} {better or float('nan'):8.1f}  {op} {target}")


if __name__ == "__main__":
    main()

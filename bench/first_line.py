#!/usr/bin/python3
"""From a job's submission to the first line that its reader sees: one job at a time on a free node.

    bench/first_line.py [--jobs 100] [--cli 30] [--tasks 1] [-o json]

A server with an agent of its own; each job's program is `echo`. Measured from the client's side, by its clock:
"answered" until POST /jobs is answered, "started" until the program runs (its own words: date), "seen" until a
reader who follows GET /tasks/ID/log has the line. The reader asks as soon as the submission is answered.

--cli N: as many of `weir job run --follow -- date` in an empty folder: from the start of the command to its first line, and to
its end. --tasks N: tasks of a job, each read by a connection of its own; seen is the last of their first lines.

Between two jobs it pauses, so that the cluster is idle. No peer is measured beside it.
"""
import argparse
import http.client
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests/system"))
from harness import WEIR, Server, wait_until  # noqa: E402


IDLE_S = 0.2  # what is left of a job is tidied up: the cluster is idle


class Connection:
    """One connection that stays open: a client does not pay for another with each call."""

    def __init__(self, server):
        self.http = http.client.HTTPConnection(urllib.parse.urlparse(server.url).netloc, timeout=60)
        self.http.connect()
        self.headers = {"Authorization": "Bearer " + server.token, "Content-Type": "application/json"}

    def call(self, method, path, body=None):
        self.http.request(method, "/api/v1" + path, json.dumps(body) if body is not None else None, self.headers)
        answer = self.http.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {text[:200]}")
        return text


def first_line(connection, task, out, i):
    text = b""
    while b"\n" not in text:
        text += connection.call("GET", f"/tasks/{task}/log?wait_s=30&offset={len(text)}")
    out[i] = (time.time(), int(text.split()[0]) / 1e9)


def one(server, connections, n_tasks):
    """Seconds until the answer, the program, and the line that is seen last."""
    begin = time.time()
    job = json.loads(connections[0].call("POST", "/jobs", {"name": "one", "kind": "command", "spec": {
        "argv": ["date", "+%s%N"], "tasks": n_tasks, "cpus": 0.1}}))["id"]
    answered = time.time()
    tasks = [task["id"] for task in json.loads(connections[0].call("GET", f"/jobs/{job}/tasks"))["items"]]
    seen = [None] * len(tasks)
    readers = [threading.Thread(target=first_line, args=(connections[i], tasks[i], seen, i)) for i in range(1, len(tasks))]
    for reader in readers:
        reader.start()
    first_line(connections[0], tasks[0], seen, 0)
    for reader in readers:
        reader.join()
    wait_until(lambda: json.loads(connections[0].call("GET", f"/jobs/{job}"))["state"] == "SUCCEEDED", 60, "the end")
    time.sleep(IDLE_S)
    return answered - begin, max(run for _, run in seen) - begin, max(at for at, _ in seen) - begin


def by_command(server, n):
    """Seconds until the command's first line, and until it ends."""
    seen, ended = [], []
    with tempfile.TemporaryDirectory() as empty:
        for _ in range(n):
            begin = time.time()
            command = subprocess.Popen([WEIR, "job", "run", "--follow", "--state", str(server.state), "--", "date"], cwd=empty,
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            while b":" not in command.stdout.readline():
                pass
            seen.append(time.time() - begin)
            command.stdout.read()
            command.wait(60)
            ended.append(time.time() - begin)
    return {"command_seen": seen, "command_ended": ended}


def row(values):
    ms = sorted(1000 * value for value in values)
    return {"p50": round(statistics.median(ms), 1), "p90": round(ms[int(0.9 * (len(ms) - 1))], 1),
            "p99": round(ms[int(0.99 * (len(ms) - 1))], 1), "largest": round(ms[-1], 1)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--cli", type=int, default=30)
    parser.add_argument("--tasks", type=int, default=1)
    parser.add_argument("-o", dest="output", choices=("text", "json"), default="text")
    options = parser.parse_args()
    server = Server().start()
    try:
        wait_until(lambda: server.get("/nodes")["items"], 60, "a node")
        connections = [Connection(server) for _ in range(options.tasks)]
        one(server, connections, options.tasks)  # the first has pages to read
        times = {"answered": [], "started": [], "seen": []}
        for _ in range(options.jobs):
            for name, value in zip(times, one(server, connections, options.tasks)):
                times[name].append(value)
        if options.cli > 0:
            times.update(by_command(server, options.cli))
        result = {name: row(values) for name, values in times.items() if values}
        result["load"] = round(os.getloadavg()[0], 1)
    finally:
        server.stop()
    if options.output == "json":
        print(json.dumps(result, indent=1))
        return
    for name, values in result.items():
        print(f"{name:14}" + (f" {values}" if name == "load" else
                              " ms: p50 {p50}, p90 {p90}, p99 {p99}, largest {largest}".format(**values)))


if __name__ == "__main__":
    main()

#!/usr/bin/python3
"""From a job's submission to its start: one at a time on a free node, and thousands at once.

    bench/submit.py [--jobs 4000] [--nodes 500] [--clients 8] [--singles 50] [--submissions 0] [-o json]

Single: a server with an agent of its own. A job that writes down when it runs is submitted, and the next when it
has ended. "bound" is from the job's row to its task's, by the server's clock; "started" is until the program runs.

Many: a server without an agent, and nodes of 8 CPU slots that are heartbeats alone. Clients, each a process with
one connection, submit jobs of one task as fast as they are answered; beside them the nodes go on speaking. Measured
is from the first request to the last task that has a node, and to the last answer.

--submissions N: what a submission costs the server where no node is: N jobs by one client and by four, with no event stream
open and beside 200 whose readers do not read; CPU and bytes written (/proc) until a second after the last answer, medians of
three servers each.
"""
import argparse
import http.client
import itertools
import json
import multiprocessing
import os
import pathlib
import socket
import sqlite3
import statistics
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests/system"))
from harness import Server, wait_until  # noqa: E402

SLOTS = 8
HEARTBEAT_S = 4


def connect(url):
    return http.client.HTTPConnection(urllib.parse.urlparse(url).netloc, timeout=60)


def call(connection, token, method, path, body):
    connection.request(method, "/api/v1" + path, json.dumps(body),
                       {"Authorization": "Bearer " + token, "Content-Type": "application/json"})
    answer = connection.getresponse()
    text = answer.read()
    if answer.status >= 300:
        raise RuntimeError(f"{method} {path}: {answer.status} {text[:200]}")
    return json.loads(text) if text else None


def quantile(values, q):
    return sorted(values)[min(len(values) - 1, int(len(values) * q))]


def times(server, job):
    """(created, placed) of a job of one task, in ms of the server's clock."""
    with sqlite3.connect(f"file:{server.state}/weir.db?mode=ro", uri=True) as database:
        return database.execute("SELECT j.created_ms, t.started_ms FROM jobs j JOIN tasks t ON t.job = j.id"
                                " WHERE j.id = ?", (job,)).fetchone()


def singles(n):
    """ms to the bind, and to the program's first words, of n jobs one after the other."""
    server = Server().start()
    bound, started = [], []
    try:
        wait_until(lambda: server.get("/nodes")["items"], 60, "a node")
        for i in range(n):
            job = server.post("/jobs", {"name": "one", "kind": "command",
                                        "spec": {"argv": ["date", "+%s%3N"]}})["id"]
            wait_until(lambda: server.get(f"/jobs/{job}")["state"] == "SUCCEEDED", 60, "the job's end")
            task = server.get(f"/jobs/{job}/tasks")["items"][0]["id"]
            said = int(server.request("GET", f"/api/v1/tasks/{task}/log", raw=True).decode().split()[0])
            created_ms, placed_ms = times(server, job)
            bound.append(placed_ms - created_ms)
            started.append(said - created_ms)
    finally:
        server.stop()
    return bound, started


def submit(url, token, n, ready, go, answers):
    connection = connect(url)
    call(connection, token, "GET", "/nodes?limit=1", None)
    ready.release()
    go.wait()
    latencies = []
    first = time.time()
    for i in range(n):
        at = time.monotonic()
        call(connection, token, "POST", "/jobs", {"name": "many", "kind": "command",
                                                   "spec": {"argv": ["sleep", "1000"]}})
        latencies.append(time.monotonic() - at)
    answers.put((first, time.time(), latencies))


def beat(server, nodes, stop):
    connection = connect(server.url)
    while not stop.is_set():
        begin = time.monotonic()
        for node in nodes:
            if stop.is_set():
                return
            call(connection, server.token, "PUT", f"/nodes/{node}", {"cpu_slots": SLOTS, "memory_bytes": 64 << 30})
        stop.wait(max(0, HEARTBEAT_S - (time.monotonic() - begin)))


def many(n_jobs, n_nodes, n_clients):
    server = Server("--no-agent").start()
    stop = threading.Event()
    nodes = [f"node-{i:05}" for i in range(n_nodes)]
    beating = threading.Thread(target=beat, args=(server, nodes, stop))
    beating.start()
    try:
        wait_until(lambda: len(server.get("/nodes?limit=1000")["items"]) >= min(n_nodes, 1000), 60, "the nodes")
        ready, go, answers = multiprocessing.Semaphore(0), multiprocessing.Event(), multiprocessing.Queue()
        clients = [multiprocessing.Process(target=submit, args=(server.url, server.token, n_jobs // n_clients, ready, go,
                                                                answers)) for _ in range(n_clients)]
        for client in clients:
            client.start()
        for _ in clients:
            if not ready.acquire(timeout=60):
                raise RuntimeError("a client did not connect")
        go.set()
        told = [answers.get(timeout=600) for _ in clients]
        for client in clients:
            client.join()
        n_sent = n_jobs // n_clients * n_clients

        def n_bound():
            with sqlite3.connect(f"file:{server.state}/weir.db?mode=ro", uri=True) as database:
                return database.execute("SELECT count(*), max(started_ms), max(started_ms - (SELECT created_ms FROM jobs"
                                        " WHERE id = job)) FROM tasks WHERE node IS NOT NULL").fetchone()
        wait_until(lambda: n_bound()[0] >= n_sent, 600, "all jobs bound")
        first = min(begin for begin, _, _ in told)
        _, last_bound_ms, longest_ms = n_bound()
        return {"jobs": n_sent, "nodes": n_nodes, "clients": n_clients,
                "all_answered_s": round(max(end for _, end, _ in told) - first, 2),
                "all_bound_s": round(last_bound_ms / 1000 - first, 2),
                "longest_wait_ms": longest_ms,
                "answer_p50_ms": round(1000 * quantile([x for _, _, ls in told for x in ls], 0.5), 1),
                "answer_p99_ms": round(1000 * quantile([x for _, _, ls in told for x in ls], 0.99), 1)}
    finally:
        stop.set()
        beating.join()
        server.stop()


def used(pid):
    """CPU seconds and bytes written by a process."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    written = int(next(line.split()[1] for line in pathlib.Path(f"/proc/{pid}/io").read_text().splitlines()
                       if line.startswith("write_bytes")))
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), written


def unread_stream(server):
    """A connection that has asked for all events and reads none."""
    where = urllib.parse.urlparse(server.url)
    stream = socket.create_connection((where.hostname, where.port))
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    stream.sendall(f"GET /api/v1/events/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.token}\r\n\r\n".encode())
    return stream


def submissions(n_jobs, n_clients, n_streams):
    """(CPU ms, KB written) of one of so many submissions to a server without a node."""
    server = Server("--no-agent").start()
    try:
        streams = [unread_stream(server) for _ in range(n_streams)]
        time.sleep(1)
        cpu, written = used(server.process.pid)
        ready, go, answers = multiprocessing.Semaphore(0), multiprocessing.Event(), multiprocessing.Queue()
        clients = [multiprocessing.Process(target=submit, args=(server.url, server.token, n_jobs // n_clients, ready, go, answers))
                   for _ in range(n_clients)]
        for client in clients:
            client.start()
        go.set()
        for client in clients:
            answers.get(timeout=600)
            client.join()
        time.sleep(1)
        cpu_after, written_after = used(server.process.pid)
        for stream in streams:
            stream.close()
        n = n_jobs // n_clients * n_clients
        return 1000 * (cpu_after - cpu) / n, (written_after - written) / n / 1000
    finally:
        server.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=4000)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--singles", type=int, default=50)
    parser.add_argument("--submissions", type=int, default=0)
    parser.add_argument("-o", dest="output", choices=("text", "json"), default="text")
    options = parser.parse_args()
    result = {}
    if options.singles > 0:
        bound, started = singles(options.singles)
        for name, values in (("bound", bound), ("started", started)):
            result[name + "_ms"] = {"p50": statistics.median(values), "p90": quantile(values, 0.9), "max": max(values)}
    if options.jobs > 0:
        result["many"] = many(options.jobs, options.nodes, options.clients)
    if options.submissions > 0:
        result["submissions"] = []
        for n_clients, n_streams in itertools.product((1, 4), (0, 200)):
            seen = [submissions(options.submissions, n_clients, n_streams) for _ in range(3)]
            result["submissions"].append({"clients": n_clients, "streams": n_streams,
                                          "cpu_ms": round(statistics.median(cpu for cpu, _ in seen), 2),
                                          "kb_written": round(statistics.median(kb for _, kb in seen), 1)})
    if options.output == "json":
        print(json.dumps(result, indent=1))
        return
    for name in ("bound", "started"):
        if name + "_ms" in result:
            print(f"{name:8} p50 {result[name + '_ms']['p50']} ms, p90 {result[name + '_ms']['p90']} ms, "
                  f"largest {result[name + '_ms']['max']} ms")
    if "many" in result:
        print("{jobs} jobs by {clients} clients on {nodes} nodes: all answered {all_answered_s} s, all bound "
              "{all_bound_s} s after the first request; a job waited {longest_wait_ms} ms at most; an answer took "
              "{answer_p50_ms} ms (p50), {answer_p99_ms} ms (p99)".format(**result["many"]))
    for row in result.get("submissions", []):
        print("a submission by one of {clients} clients beside {streams} streams: {cpu_ms} ms of CPU, {kb_written} KB written"
              .format(**row))


if __name__ == "__main__":
    main()

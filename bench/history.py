#!/usr/bin/python3
"""What is asked of a server with a year behind it: how long it takes.

    bench/history.py [--jobs 100000] [--rows 1000000] [--rounds 50] [--whole] [--state DIR] [-o json]

The past of tests/system/history_test.py: jobs that are over, each with a task, a run and its parameters, and so many rows of
decisions, events and metrics of runs. Each request is made so often on one kept connection, one after the other, with nothing
else on the server; milliseconds (p50, p99) until the answer is there whole, and of the server's CPU. --whole: also whole lists, by
pages of 1,000.
--state: the folder of a past that an earlier call has left, or where this one is to leave it.
"""
import argparse
import http.client
import json
import pathlib
import statistics
import sys
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests/system"))
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from harness import Server, wait_until  # noqa: E402
from history_test import Past  # noqa: E402
from submit import quantile, used  # noqa: E402

PAGES = """
jobs?limit=100
jobs?limit=100&newest=1
jobs?limit=100&newest=1&kind=train
jobs?limit=100&newest=1&state=FAILED
jobs?limit=100&newest=1&kind=train&state=FAILED
jobs?limit=100&newest=1&project=default
decisions?ion=door&limit=100
decisions?ion=door&limit=100&verdict=deny
decisions?ion=door&limit=100&person=p7
decisions?ion=door&limit=100&person=nobody
decisions?ion=door&limit=100&camera=c
decisions?ion=door&limit=100&label=none
decisions?ion=door&limit=100&after=5
events?limit=100
events?limit=100&topic=jobs
events?limit=100&kind=past
events?limit=100&severity=error
events?limit=100&subject=job/past
events?limit=100&actor=nobody
audit?limit=100
audit?limit=100&actor=nobody
audit?limit=100&severity=error
alerts?limit=100&newest=1
alerts?limit=100&newest=1&state=open
alerts?limit=100&newest=1&severity=critical
alerts?limit=100&newest=1&kind=job_failed&state=open
runs?limit=100
runs?limit=100&status=FAILED
runs?limit=100&filter=metrics.past.loss%20%3E%2099990
runs?limit=100&order=metrics.past.loss
runs/run-1/metrics?key=past.loss&max_points=500
runs/run-1/metrics?key=past.loss
decisions/summary?ion=door
feedback?ion=door&limit=100
feedback?ion=door&limit=100&truth=nobody
ions/door/health
ions/door/drift
ions/door/kpis
queues
usage
health/summary
""".split()
HOME = "projects ions health/summary alerts?state=open&limit=100 jobs?limit=100&newest=1 nodes?limit=100 events?limit=100".split()
WHOLE = ["jobs?limit=1000", "decisions?ion=door&limit=1000", "events?limit=1000", "runs?limit=1000"]


class Asker:
    def __init__(self, server):
        self.pid = server.process.pid
        self.connection = http.client.HTTPConnection(urllib.parse.urlparse(server.url).netloc, timeout=120)
        self.headers = {"Authorization": "Bearer " + server.token}

    def ask(self, path):
        """(ms, answer)"""
        began = time.monotonic()
        self.connection.request("GET", path, headers=self.headers)
        answer = self.connection.getresponse()
        text = answer.read()
        took = 1000 * (time.monotonic() - began)
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status} {text[:200]}")
        return took, text

    def page(self, paths, rounds):
        """(p50, p99, CPU) of requests that are made one after the other, in ms."""
        before, _ = used(self.pid)
        times = [sum(self.ask(path)[0] for path in paths) for _ in range(rounds)]
        cpu = 1000 * (used(self.pid)[0] - before) / rounds
        return round(statistics.median(times), 2), round(quantile(times, 0.99), 2), round(cpu, 2)

    def whole(self, path, most):
        """(ms, CPU, rows) of up to so many pages."""
        took, n, more = 0, 0, ""
        before, _ = used(self.pid)
        for _ in range(most):
            ms, text = self.ask("/api/v1/" + path + more)
            took += ms
            answer = json.loads(text)
            n += len(answer["items"])
            if answer.get("next") is None:
                break
            more = "&cursor=" + urllib.parse.quote(answer["next"])
        return round(took, 2), round(1000 * (used(self.pid)[0] - before), 2), n


def with_past(n_jobs, n_rows, state):
    server = Server(state=state)
    if state is not None and pathlib.Path(state).exists():
        return server
    server.start()
    kinds = [rule["kind"] for rule in server.get("/retention")["items"]]
    server.request("PUT", "/api/v1/retention", {kind: "forever,unbounded" for kind in kinds})  # all of it stays
    server.weir("dataset", "create", "faces")
    server.post("/ions", {"kind": "ion", "name": "door", "pipelines": [
        {"name": "training", "type": "training", "model": "face-embed", "dataset": "faces"},
        {"name": "entrance", "type": "prediction", "gallery": {"dataset": "faces"}, "source": {"kind": "http", "listen": "127.0.0.1:0"}}],
        "links": [{"from": "training", "to": "entrance", "policy": "manual"}]})
    job = server.post("/jobs", {"name": "t", "kind": "command", "spec": {"argv": ["/bin/true"]}})["id"]
    wait_until(lambda: server.get(f"/jobs/{job}")["state"] == "SUCCEEDED", 60, "the job has ended")
    server.kill(15)
    Past(server.state / "weir.db", int(time.time() * 1000), n_jobs, n_rows).make(job)
    return server


def is_at_rest(pid):
    before, _ = used(pid)
    time.sleep(2)
    return used(pid)[0] - before <= 0.05


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--state")
    parser.add_argument("-o", dest="output", choices=("text", "json"), default="text")
    options = parser.parse_args()
    server = with_past(options.jobs, options.rows, options.state)
    try:
        server.start()
        asker = Asker(server)
        wait_until(lambda: is_at_rest(server.process.pid), 300, "the server's own work after its start")
        result = {}
        for path in PAGES:
            result[path] = asker.page(["/api/v1/" + path], options.rounds)
        result["/metrics"] = asker.page(["/metrics"], options.rounds)
        result["what the console's first page asks"] = asker.page(["/api/v1/" + path for path in HOME], options.rounds)
        if options.whole:
            for path in WHOLE:
                ms, cpu, n = asker.whole(path, 100)
                result[f"{path}, {n} rows"] = ms, ms, cpu
        if options.output == "json":
            print(json.dumps(result, indent=1))
            return
        for path, (p50, p99, cpu) in result.items():
            print(f"{p50:10.2f} {p99:10.2f} {cpu:10.2f} ms  {path}")
    finally:
        server.stop()


if __name__ == "__main__":
    main()

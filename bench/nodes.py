#!/usr/bin/python3
"""What many nodes cost the server, at rest and when work comes.

    bench/nodes.py [--nodes 500] [--jobs 4000] [--rest 20] [--clients 4] [--steady]

Each node is scripted: it has a token of its own, registers with eight devices, says every four seconds (agents: five) that it is
there, and waits for what it should run on a second connection (a long poll). What it is told to run it reports as running, and
what it is told to end as ended. No process is started. What a heartbeat says of its disk's room and of its devices'
temperature, power, use and memory is another each time, as it is in life; with --steady it is always the same.

At rest: so many seconds of nothing but that, with a task running on each of the nodes' CPU slots. CPU of the server
in per cent of a core and bytes written a second (/proc). Work: clients submit jobs of one task as fast as they are answered;
from the first request until all are bound, and until an agent has reported the last one as running.
"""
import argparse
import asyncio
import json
import multiprocessing
import pathlib
import random
import statistics
import sys
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests/system"))
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from harness import Server  # noqa: E402
from submit import submit, used  # noqa: E402

SLOTS = 8
HEARTBEAT_S = 4
WAIT_S = 30


class Connection:
    """One kept connection: a request after the other."""

    def __init__(self, url, token):
        where = urllib.parse.urlparse(url)
        self.address, self.token, self.streams = (where.hostname, where.port), token, None

    async def call(self, method, path, body=None):
        if self.streams is None:
            self.streams = await asyncio.open_connection(*self.address)
        reader, writer = self.streams
        data = b"" if body is None else json.dumps(body).encode()
        writer.write(f"{method} /api/v1{path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.token}\r\n"
                     f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = next((int(line.split(":")[1]) for line in head.split("\r\n") if line.startswith("content-length")), 0)
        text = await reader.readexactly(length)
        status = int(head.split(" ", 2)[1])
        if status >= 300:
            raise RuntimeError(f"{method} {path}: {status} {text[:200]}")
        return json.loads(text) if text else None


class Node:
    def __init__(self, name, url, token, is_steady):
        self.name, self.running, self.n_refused, self.is_steady = name, {}, 0, is_steady
        self.beats, self.waits = Connection(url, token), Connection(url, token)

    def report(self):
        def reading(low, high):
            return low if self.is_steady else random.randint(low, high)

        devices = [{"id": f"{self.name}-gpu{i}", "kind": "gpu", "idx": i, "model": "H100", "memory_bytes": 80 << 30,
                    "state": "ok", "temperature_c": reading(40, 80), "power_w": reading(100, 700), "utilisation_pct": reading(50, 99),
                    "memory_used_bytes": reading(1, 80) << 30, "ecc_errors": 0} for i in range(SLOTS)]
        return {"cpu_slots": SLOTS, "memory_bytes": 64 << 30, "devices": devices, "inventory": {"os": "linux", "cpus": "x" * 1000},
                "disk_bytes": 1 << 40, "disk_free_bytes": reading(300, 500) << 30, "time_ms": int(time.time() * 1000),
                "attempts": [{"task": task, "attempt": attempt} for task, attempt in self.running.items()]}

    async def beat(self, delay):
        await asyncio.sleep(delay)
        while True:
            at = time.monotonic()
            try:
                await self.beats.call("PUT", f"/nodes/{self.name}", self.report())
            except RuntimeError:
                self.n_refused += 1
            await asyncio.sleep(max(0, HEARTBEAT_S - (time.monotonic() - at)))

    async def follow(self, told):
        revision = -1
        while True:
            try:
                answer = await self.waits.call("GET", f"/nodes/{self.name}/desired?after={revision}&wait_s={WAIT_S}")
            except RuntimeError:
                self.n_refused += 1
                await asyncio.sleep(0.2)
                continue
            revision = answer["revision"]
            wanted = {task["id"]: task for task in answer["tasks"] if task["desired"] == "running"}
            for task in [task for task in answer["tasks"] if task["id"] not in self.running and task["id"] in wanted]:
                self.running[task["id"]] = task["attempt"]
                await self.tell(task["id"], "running", pid=1)
                told(task["id"])
            for task in [task for task in self.running if task not in wanted]:
                await self.tell(task, "exited", pid=1, exit_code=0, signal=0, message="")
                del self.running[task]

    async def tell(self, task, state, **more):
        try:
            await self.waits.call("PUT", f"/tasks/{task}/status", {"attempt": self.running[task], "state": state,
                                                                  "time_ms": int(time.time() * 1000), **more})
        except RuntimeError:
            self.n_refused += 1


async def rest(pid, seconds):
    begin, (cpu, written) = time.monotonic(), used(pid)
    await asyncio.sleep(seconds)
    took, (cpu_after, written_after) = time.monotonic() - begin, used(pid)
    return {"cpu_percent": round(100 * (cpu_after - cpu) / took, 2), "kb_written_s": round((written_after - written) / took / 1000, 1)}


async def work(server, nodes, n_jobs, n_clients, seen):
    ready, go, answers = multiprocessing.Semaphore(0), multiprocessing.Event(), multiprocessing.Queue()
    clients = [multiprocessing.Process(target=submit, args=(server.url, server.token, n_jobs // n_clients, ready, go, answers))
               for _ in range(n_clients)]
    for client in clients:
        client.start()
    cpu, _ = used(server.process.pid)
    go.set()
    told, n = [], n_jobs // n_clients * n_clients
    while len(told) < n_clients or len(seen) < n:
        await asyncio.sleep(0.02)
        while not answers.empty():
            told.append(answers.get())
    for client in clients:
        client.join()
    first = min(begin for begin, _, _ in told)
    latencies = [x for _, _, ls in told for x in ls]
    return {"jobs": n, "all_answered_s": round(max(end for _, end, _ in told) - first, 2),
            "all_running_s": round(max(seen.values()) - first, 2),
            "server_cpu_s": round(used(server.process.pid)[0] - cpu, 2), "answer_p50_ms": round(1000 * statistics.median(latencies), 1)}


async def play(server, options):
    seen = {}
    nodes = []
    for name in [f"node-{i:05}" for i in range(options.nodes)]:
        token = server.post("/tokens", {"name": name, "role": "agent", "user": "agent", "node": name})["secret"]
        nodes.append(Node(name, server.url, token, options.steady))
    tasks = []
    for i, node in enumerate(nodes):
        await node.beats.call("PUT", f"/nodes/{node.name}", node.report())
        tasks.append(asyncio.create_task(node.beat(HEARTBEAT_S * i / len(nodes))))
        tasks.append(asyncio.create_task(node.follow(lambda task: seen.setdefault(task, time.time()))))
    result = {"nodes": options.nodes}
    await asyncio.sleep(2 * HEARTBEAT_S)
    result["empty"] = await rest(server.process.pid, options.rest)
    if options.jobs > 0:
        result["work"] = await work(server, nodes, options.jobs, options.clients, seen)
        await asyncio.sleep(2 * HEARTBEAT_S)
        result["full"] = await rest(server.process.pid, options.rest)
    result["refused"] = sum(node.n_refused for node in nodes)
    for task in tasks:
        if task.done():
            task.result()  # a node has stopped speaking: why?
        task.cancel()
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--jobs", type=int, default=4000)
    parser.add_argument("--rest", type=float, default=20)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--steady", action="store_true")
    options = parser.parse_args()
    server = Server("--no-agent").start()
    try:
        print(json.dumps(asyncio.run(play(server, options)), indent=1))
    finally:
        server.stop()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""How fast pods get their nodes: kubernetes.py KUBECONFIG [--nodes 500] [--pods 1000] [--queues 4] [--rounds 1] [--held PID]

On a Kubernetes API server of one's own, whose scheduler kube-scheduler is, and which has no nodes: makes nodes and pods, once
for kube-scheduler and once for Weir, each alone with them. With the process of kube-scheduler (--held) both find all pods there, and
the time is that from when they may begin to the last pod that has a node; else it is from the first pod that is asked for, and pods
are not placed faster than they are made. KUBECONFIG is of one who may do all. Everything it made is removed. Prints one line of JSON; "skipped" where there is no kubectl
(which reads the file), or no API server.
"""
import argparse
import base64
import concurrent.futures
import http.client
import json
import os
import pathlib
import shutil
import signal
import ssl
import subprocess
import sys
import threading
import time
import urllib.parse
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests/system"))

CREATORS = 16
LONGEST_S = 120


class Api:
    """An API server, with a connection for each thread."""

    def __init__(self, kubeconfig):
        shown = subprocess.run(["kubectl", "--kubeconfig", kubeconfig, "config", "view", "--raw", "--minify", "-o", "json"], capture_output=True, check=True)
        config = json.loads(shown.stdout)
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.url = urllib.parse.urlsplit(cluster["server"])
        self.context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        self.headers = {"Authorization": f"Bearer {user['token']}", "Content-Type": "application/json"}
        self.own = threading.local()

    def connection(self):
        return http.client.HTTPSConnection(self.url.hostname, self.url.port, context=self.context, timeout=LONGEST_S)

    def __call__(self, method, path, body=None, kind="application/json"):
        if not hasattr(self.own, "connection"):
            self.own.connection = self.connection()
        self.own.connection.request(method, path, json.dumps(body) if body is not None else None, {**self.headers, "Content-Type": kind})
        reply = self.own.connection.getresponse()
        answer = json.loads(reply.read())
        if reply.status >= 300 and reply.status != 409:
            raise RuntimeError(f"{method} {path}: {reply.status} {answer.get('message')}")
        return answer


class Bound:
    """Counts the pods of a namespace that have a node, as a watch tells them."""

    def __init__(self, api, space):
        self.api, self.path, self.is_over = api, f"/api/v1/namespaces/{space}/pods?watch=1", False
        self.names, self.last, self.changed = set(), 0.0, threading.Condition()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        while not self.is_over:  # an API server ends a watch whose reader is slow
            connection = self.api.connection()
            connection.request("GET", self.path, headers=self.api.headers)
            self.read_to_end(connection.getresponse())
            connection.close()

    def read_to_end(self, reply):
        for line in reply:
            pod = json.loads(line)["object"]
            if pod.get("kind") == "Pod" and pod["metadata"]["name"] not in self.names and pod["spec"].get("nodeName"):
                with self.changed:
                    self.names.add(pod["metadata"]["name"])
                    self.last = time.monotonic()
                    self.changed.notify_all()

    def wait(self, n):
        with self.changed:
            if not self.changed.wait_for(lambda: len(self.names) >= n, LONGEST_S):
                raise RuntimeError(f"{len(self.names)} of {n} pods have a node after {LONGEST_S} s")
        self.is_over = True
        return self.last


def at_once(function, items):
    with concurrent.futures.ThreadPoolExecutor(CREATORS) as pool:
        list(pool.map(function, items))


def make_node(api, name):
    amounts = {"cpu": "16", "memory": "64Gi", "pods": "110", "ephemeral-storage": "100Gi", "nvidia.com/gpu": "4"}
    api("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}})
    api("PATCH", f"/api/v1/nodes/{name}/status", {"status": {"capacity": amounts, "allocatable": amounts, "conditions": [
        {"type": "Ready", "status": "True", "reason": "KubeletReady"}]}}, "application/merge-patch+json")
    api("PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": None}}, "application/merge-patch+json")


def round_of(api, scheduler, n_pods, n_queues, let_begin=None):
    """Pods per second of one scheduler. let_begin: lets it begin, when all pods are there; else it has begun."""
    space = f"weir-bench-{uuid.uuid4().hex[:8]}"
    api("POST", "/api/v1/namespaces", {"metadata": {"name": space}})
    bound = Bound(api, space)

    def make(i):
        amounts = {"cpu": "1", "memory": "1Gi", **({"nvidia.com/gpu": "1"} if i % 2 else {})}
        api("POST", f"/api/v1/namespaces/{space}/pods", {
            "metadata": {"name": f"p-{i}", "labels": {"weir.dev/queue": f"bench-{i % n_queues}"}},
            "spec": {"schedulerName": scheduler, "automountServiceAccountToken": False, "containers": [
                {"name": "c", "image": "i", "resources": {"requests": amounts, "limits": amounts}}]}})
    begun = time.monotonic()
    at_once(make, range(n_pods))
    made = time.monotonic()
    rate = round(n_pods / (made - begun), 1)
    if let_begin is not None:
        begun = time.monotonic()
        let_begin()
    last = bound.wait(n_pods)
    api("DELETE", f"/api/v1/namespaces/{space}/pods?gracePeriodSeconds=0")
    api("DELETE", f"/api/v1/namespaces/{space}")
    return {"pods_per_s": round(n_pods / (last - begun), 1), "made_per_s": rate, "seconds": round(last - begun, 2)}


def of_kube_scheduler(api, arguments):
    if arguments.held is None:
        return round_of(api, "default-scheduler", arguments.pods, arguments.queues)
    os.kill(arguments.held, signal.SIGSTOP)
    try:
        return round_of(api, "default-scheduler", arguments.pods, arguments.queues, lambda: os.kill(arguments.held, signal.SIGCONT))
    finally:
        os.kill(arguments.held, signal.SIGCONT)


def of_weir(api, arguments):
    from harness import Server
    server = Server()

    def add():
        server.weir("cluster", "add", "bench", "--driver", "kubernetes", "--yes", "--force", "--set", f"kubeconfig={arguments.kubeconfig}",
                    "--set", "namespace=default", "--set", "image=weir", "--set", "scheduler=weir")
    try:
        server.start("--no-agent")
        for i in range(arguments.queues):
            server.post("/projects", {"name": f"bench-{i}"})
            server.weir("queue", "create", f"bench-{i}", "--project", f"bench-{i}", "--guarantee", "accelerators=100")
        if arguments.held is None:
            add()
        return round_of(api, "weir", arguments.pods, arguments.queues, add if arguments.held is not None else None)
    finally:
        server.stop()


def main():
    parser = argparse.ArgumentParser(description="How fast pods get their nodes, beside kube-scheduler.")
    parser.add_argument("kubeconfig", nargs="?")
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--queues", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--held", type=int, metavar="PID", help="process of the kube-scheduler, which is held while pods are made")
    arguments = parser.parse_args()
    if arguments.kubeconfig is None or not pathlib.Path(arguments.kubeconfig).exists() or shutil.which("kubectl") is None:
        print(json.dumps({"skipped": "no kubeconfig of an API server of one's own, or no kubectl"}))
        return
    api = Api(arguments.kubeconfig)
    names = [f"bench-{i}" for i in range(arguments.nodes)]
    results = {"nodes": arguments.nodes, "pods": arguments.pods, "kube-scheduler": [], "weir": []}
    try:
        at_once(lambda name: make_node(api, name), names)
        for _ in range(arguments.rounds):
            results["kube-scheduler"].append(of_kube_scheduler(api, arguments))
            results["weir"].append(of_weir(api, arguments))
    finally:
        at_once(lambda name: api("DELETE", f"/api/v1/nodes/{name}"), names)
    best = {name: max(one["pods_per_s"] for one in results[name]) for name in ("kube-scheduler", "weir")}
    print(json.dumps({**results, "ratio": round(best["weir"] / best["kube-scheduler"], 2)}))


if __name__ == "__main__":
    main()

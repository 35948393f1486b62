#!/usr/bin/env python3
"""kubernetes_watch.py [--pods N] [--events N] [--seconds S] [--scheduler weir]: what the driver of clusters under Kubernetes costs while it watches.

The stand-in of an API server (tests/kube) has N pods and changes so many of them a second; the driver is asked once a second how its
allocation is, as a server asks; with --scheduler weir it places pods besides, of which one waits. Printed are the driver's share of a core and its resident memory, before and after all that was watched is
forgotten (410) and listed again.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.kube.cluster import Cluster  # noqa: E402

CASE = os.environ.get("DRIVER_CASE", str(ROOT / "build/release/tests/driver_case"))
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_s(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident_mb(pid):
    return int(next(line for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS")).split()[1]) / 1024


def pod(i):
    return {"metadata": {"name": f"pod-{i}", "labels": {"app": "others"}, "annotations": {"of": "x" * 200}},
            "spec": {"nodeName": f"node-{i % 500 + 1}", "containers": [{"name": "c", "image": "i", "env": [
                {"name": f"V{k}", "value": "v" * 20} for k in range(10)], "resources": {"requests": {"cpu": "100m", "memory": "100Mi"}}}]}}


WAITS = {"metadata": {"name": "waits"}, "spec": {"schedulerName": "weir", "containers": [
    {"name": "c", "image": "i", "resources": {"requests": {"cpu": "4000"}}}]}}


def watch(cluster, ask, pid, arguments):
    """Changes for so long; (share of a core, memory)."""
    begun, cpu, n = time.monotonic(), cpu_s(pid), 0
    polled = begun
    while (now := time.monotonic()) - begun < arguments.seconds:
        while n < (now - begun) * arguments.events:
            def change(one):
                one["metadata"]["annotations"]["n"] = str(n)
            cluster.api.change("pods", "default", f"pod-{n % arguments.pods}", change)
            n += 1
        if now - polled >= 1:
            polled = now
            assert ask("poll", "ours")[0]["phase"] in ("pending", "running")
        time.sleep(0.005)
    return (cpu_s(pid) - cpu) / (time.monotonic() - begun), resident_mb(pid), n


def main():
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--events", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--scheduler", default="cluster", choices=("cluster", "weir"))
    arguments = parser.parse_args()
    with Cluster(nodes=500) as cluster:
        cluster.wait(lambda: cluster.get("serviceaccounts", "default"), 5, "an account")
        cluster.create("serviceaccounts", {"metadata": {"name": "weir-agent"}})
        cluster.kubelet.switch(False)
        for i in range(arguments.pods):
            cluster.create("pods", pod(i))
        driver = subprocess.Popen([CASE, "kubernetes", json.dumps({"kubeconfig": str(cluster.kubeconfig), "scheduler": arguments.scheduler})], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)

        def ask(*words):
            driver.stdin.write(json.dumps(words) + "\n")
            driver.stdin.flush()
            return json.loads(driver.stdout.readline())
        if arguments.scheduler == "weir":
            cluster.create("pods", WAITS)
            ask("tend", json.dumps([{"name": "default"}]))
        begun = time.monotonic()
        pools = ask("list")
        print(f"first list of {arguments.pods} pods and 500 nodes: {time.monotonic() - begun:.2f} s, {cpu_s(driver.pid):.2f} s of a core, "
              f"{resident_mb(driver.pid):.0f} MB")
        ask("request", json.dumps({"tag": "ours", "pool": pools[0]["name"], "n_nodes": 1, "cpu_slots": 1, "server": "http://s", "secret": "s"}))
        for what in ("watching", "after 410"):
            share, memory, n = watch(cluster, ask, driver.pid, arguments)
            print(f"{what}: {n / arguments.seconds:.0f} events/s, {100 * share:.1f} % of a core, {memory:.0f} MB")
            cluster.faults.on("gone", count=4)
            cluster.compact()
        driver.stdin.close()
        driver.wait()


if __name__ == "__main__":
    main()

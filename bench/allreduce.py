#!/usr/bin/python3
"""All-reduces beside those of Open MPI and of gloo (torch.distributed), on this machine, in alternation.

    bench/allreduce.py [--scenes shm2,shm4,tcp2,net2,net4,1g2,10g2] [--sizes 1K,64K,1M,25M,100M] [--rounds 5] [-o json]

A scene is a way to join ranks and a number of them:

    shm   on this host, by shared memory; Open MPI: btl vader; gloo has nothing but TCP
    tcp   on this host, by TCP over loopback
    net   each rank in a network namespace of its own, joined by a bridge; unshaped (as root)
    1g, 10g, 25g    the same, with each link shaped by tbf to so many Gbit/s in both directions (as root)
    ucx   on this host, by shared memory; Open MPI with UCX (pml ucx) instead

All peers sum floats in place, measured alike: a sample is a barrier and then all-reduces for 0.1 ms, at least one; its time is
that of the slowest rank; a run's time is the median of up to 20 samples. The peers take turns for some rounds; printed is the
median over the rounds, and the median of the rounds' ratios to Weir. For shaped links there is the share of the limit: the time
in which 2(N-1)/N of the bytes pass through a link at its rate. --peers weir,bare: beside a program that only moves the bytes of
a direct all-reduce between the ranks (move_bytes.c), or in shared memory reads every rank's array once and writes it once
(move_memory.c), to see what the machine carries.

Needs mpicc and mpirun (Debian: openmpi-bin, libopenmpi-dev) and torch in /usr/bin/python3 (python3-torch); a peer that is not
there is left out.
"""
import argparse
import datetime
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
TIMEOUT_S = 300
SHAPES = {"1g": ("1gbit", "128k", 1e9), "10g": ("10gbit", "1m", 10e9), "25g": ("25gbit", "4m", 25e9)}
NETWORK = "10.213.77"
DEVICE = "weir0"


def say(text):
    print(text, file=sys.stderr, flush=True)


def size_of(text):
    return int(text.rstrip("KMG")) << {"K": 10, "M": 20, "G": 30}.get(text[-1], 0)


# ---- gloo's side: this script, started once per rank -------------------------------------------------

def gloo_rank(rank, n_ranks, url, sizes):
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=url, rank=rank, world_size=n_ranks,
                            timeout=datetime.timedelta(seconds=TIMEOUT_S))

    def time_once(buf, n):
        dist.barrier()
        start = time.perf_counter()
        for _ in range(n):
            dist.all_reduce(buf)
        return (time.perf_counter() - start) / n

    found = {}
    for size in sizes:
        buf = torch.zeros(size // 4)
        for _ in range(5):
            time_once(buf, 1)
        guess = torch.tensor([time_once(buf, 3)], dtype=torch.float64)
        dist.broadcast(guess, 0)
        n = int(min(max(100e-6 / guess.item(), 1), 1000))
        samples = []
        for _ in range(int(min(20, max(2 / (n * guess.item()), 5)))):
            slowest = torch.tensor([time_once(buf, n)], dtype=torch.float64)
            dist.all_reduce(slowest, dist.ReduceOp.MAX)
            samples.append(slowest.item())
        found[size] = statistics.median_high(samples) * 1e6
    if rank == 0:
        print(json.dumps(found), flush=True)
    dist.barrier()


# ---- namespaces ---------------------------------------------------------------------------------------

def run(*words, check=True):
    return subprocess.run([str(word) for word in words], check=check, capture_output=True, text=True)


class Network:
    """Namespaces weirb-0 … with a veth each into a bridge in weirb-hub."""

    def __init__(self, n_ranks, shape=None):
        self.spaces = [f"weirb-{i}" for i in range(n_ranks)]
        self.close()
        run("ip", "netns", "add", "weirb-hub")
        self.inside("weirb-hub", "ip", "link", "add", "br0", "type", "bridge")
        self.inside("weirb-hub", "ip", "link", "set", "br0", "up")
        for i, space in enumerate(self.spaces):
            run("ip", "netns", "add", space)
            run("ip", "-n", space, "link", "add", DEVICE, "mtu", 9000, "type", "veth", "peer", "name", f"port{i}", "mtu", 9000,
                "netns", "weirb-hub")
            self.inside("weirb-hub", "ip", "link", "set", f"port{i}", "master", "br0", "up")
            run("ip", "-n", space, "addr", "add", f"{NETWORK}.{i + 1}/24", "dev", DEVICE)
            run("ip", "-n", space, "link", "set", "lo", "up")
            run("ip", "-n", space, "link", "set", DEVICE, "up")
            # bbr, the default in places, does not fill a veth.
            run("ip", "-n", space, "route", "change", f"{NETWORK}.0/24", "dev", DEVICE, "src", f"{NETWORK}.{i + 1}",
                "congctl", "cubic", check=False)
            if shape:
                rate, burst, _ = SHAPES[shape]
                for where, device in ((space, DEVICE), ("weirb-hub", f"port{i}")):
                    self.inside(where, "tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", rate, "burst", burst,
                                "latency", "5ms")

    @staticmethod
    def inside(space, *words):
        return run("ip", "netns", "exec", space, *words)

    def close(self):
        for space in [*self.spaces, "weirb-hub"]:
            run("ip", "netns", "del", space, check=False)


def can_shape():
    return os.geteuid() == 0 and shutil.which("ip") and run("ip", "netns", "add", "weirb-try", check=False).returncode == 0 and \
        run("ip", "netns", "del", "weirb-try", check=False).returncode == 0


# ---- one run of a peer: size → microseconds -----------------------------------------------------------

class Peers:
    def __init__(self, worker, folder, port):
        self.worker, self.folder, self.port = worker, pathlib.Path(folder), port
        self.mpi = self.build_mpi()
        self.has_gloo = subprocess.run(["/usr/bin/python3", "-c", "import torch.distributed"], capture_output=True).returncode == 0
        for name, is_there in (("Open MPI", self.mpi), ("gloo", self.has_gloo)):
            if not is_there:
                say(f"{name} is not here: left out")

    def build(self, name):
        program = self.folder / name
        if not program.exists():
            run("cc", "-O2", "-march=native", "-o", program, ROOT / f"bench/{name}.c", "-lpthread")
        return program

    def bare(self, kind, n, sizes, network):
        if kind in ("shm", "ucx"):
            return self.numbers(self.together([[self.build("move_memory"), n, *sizes]]))
        self.port += n
        return self.numbers(self.together([self.at(network, r, [
            self.build("move_bytes"), r, n, f"{NETWORK}." if network else "127.0.0.", self.port, *sizes]) for r in range(n)]))

    def build_mpi(self):
        if not shutil.which("mpicc") or not shutil.which("mpirun"):
            return None
        program = self.folder / "allreduce_mpi"
        run("mpicc", "-O2", "-o", program, ROOT / "bench/allreduce_mpi.c")
        return program

    def names(self):
        return ["weir", "bare"] + ["mpi"] * bool(self.mpi) + ["gloo"] * self.has_gloo

    def together(self, commands, env=None):
        """Start the ranks; what rank 0 prints."""
        ranks = [subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE if i == 0 else subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True, env={**os.environ, **(env or {})})
                 for i, command in enumerate(commands)]
        output, complaint = ranks[0].communicate(timeout=TIMEOUT_S)
        for rank in ranks[1:]:
            rank.communicate(timeout=60)
        if any(rank.returncode for rank in ranks):
            raise RuntimeError(f"{commands[0][0]}: {complaint.strip()[-500:]}")
        return output

    def at(self, network, rank, command):
        return ["ip", "netns", "exec", network.spaces[rank], *command] if network else command

    def weir(self, kind, n, sizes, network):
        self.port += 1
        transport = "shm" if kind in ("shm", "ucx") else "tcp"
        where = f"tcp://{NETWORK}.1:{self.port}" if network else f"tcp://127.0.0.1:{self.port}"
        output = self.together([self.at(network, r, [
            self.worker, "bench-allreduce", "-n", n, "--rank", r, "--rendezvous", where, "--secret", "bench", "--transport",
            transport, "--bytes", ",".join(map(str, sizes)), "-o", "json"]) for r in range(n)],
            {"UCX_NET_DEVICES": DEVICE} if network else {})
        results = json.loads(output)["results"]
        if any(row["wrong"] for row in results):
            raise RuntimeError("a sum was wrong")
        return {row["bytes"]: row["time_us"] for row in results}

    def mpi_run(self, kind, n, sizes, network):
        words = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", n]
        if kind == "ucx":
            words += ["--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any"]
        else:
            words += ["--mca", "pml", "ob1", "--mca", "btl", "self,vader" if kind == "shm" else "self,tcp"]
        if network:
            # orted in each namespace, under a host name of its own, reached by a shell script instead of ssh
            agent = self.folder / "agent.sh"
            agent.write_text(f'#!/bin/sh\nhost=$1; shift\nexec ip netns exec weirb-$((${{host##*.}} - 1)) unshare -u '
                             f'sh -c "hostname rank-${{host##*.}}; $*"\n')
            agent.chmod(0o755)
            words += ["--mca", "plm_rsh_agent", agent, "--mca", "btl_tcp_if_include", DEVICE, "--mca", "oob_tcp_if_include", DEVICE,
                      "-H", ",".join(f"{NETWORK}.{i + 1}" for i in range(n))]
        return self.numbers(self.together([self.at(network, 0, [*words, self.mpi, *sizes])]))

    def gloo(self, kind, n, sizes, network):
        self.port += 1
        host = f"{NETWORK}.1" if network else "127.0.0.1"
        return self.numbers(self.together([self.at(network, r, [
            "/usr/bin/python3", ROOT / "bench/allreduce.py", "--gloo-rank", r, "--gloo-ranks", n, "--gloo-url",
            f"tcp://{host}:{self.port}", "--sizes", ",".join(map(str, sizes))]) for r in range(n)],
            {"GLOO_SOCKET_IFNAME": DEVICE if network else "lo", "OMP_NUM_THREADS": "1"}))

    @staticmethod
    def numbers(text):
        return {int(size): us for size, us in json.loads(text.strip().splitlines()[-1]).items()}

    def measure(self, peer, *given):
        return {"weir": self.weir, "bare": self.bare, "mpi": self.mpi_run, "gloo": self.gloo}[peer](*given)


# ---- all of it ----------------------------------------------------------------------------------------

def scene(peers, kind, n, sizes, rounds):
    network = None
    found = {peer: [] for peer in peers.names()}
    if kind in ("net", *SHAPES):
        if not can_shape():
            say(f"{kind}{n}: network namespaces want root and the kernel's leave: left out")
            return None
        network = Network(n, kind if kind in SHAPES else None)
    try:
        for i in range(rounds):
            for peer in list(found):
                try:
                    found[peer].append(peers.measure(peer, kind, n, sizes, network))
                except (RuntimeError, subprocess.TimeoutExpired) as problem:
                    say(f"{kind}{n}, {peer}: {problem}: left out")
                    del found[peer]
            say(f"{kind}{n}: round {i + 1} of {rounds}")
    finally:
        if network:
            network.close()
    return found


def rows(kind, n, sizes, found):
    for size in sizes:
        row = {"scene": kind, "ranks": n, "bytes": size}
        for peer, runs in found.items():
            row[f"{peer}_us"] = statistics.median(run[size] for run in runs)
            if peer != "weir" and "weir" in found:
                row[f"{peer}_ratio"] = statistics.median(run[size] / own[size] for run, own in zip(runs, found["weir"]))
        if kind in SHAPES:
            limit_us = 2 * (n - 1) / n * size * 8 / SHAPES[kind][2] * 1e6
            for peer in found:
                row[f"{peer}_of_limit"] = limit_us / row[f"{peer}_us"]
        yield row


def table(all_rows):
    peers = [name for name in ("weir", "bare", "mpi", "gloo") if any(f"{name}_us" in row for row in all_rows)]
    print(f"{'scene':6} {'ranks':>5} {'bytes':>10}" + "".join(f" {peer + ' us':>11}" for peer in peers) +
          "".join(f" {peer + '/weir':>10}" for peer in peers[1:]) + "".join(f" {peer + ' limit':>11}" for peer in peers))
    for row in all_rows:
        cell = lambda key, form, width: f" {format(row[key], form) if key in row else '':>{width}}"
        print(f"{row['scene']:6} {row['ranks']:>5} {row['bytes']:>10}" +
              "".join(cell(f"{peer}_us", ".1f", 11) for peer in peers) +
              "".join(cell(f"{peer}_ratio", ".2f", 10) for peer in peers[1:]) +
              "".join(cell(f"{peer}_of_limit", ".1%", 11) for peer in peers))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenes", default="shm2,shm4,tcp2,net2,net4,1g2,10g2")
    parser.add_argument("--sizes", default="1K,64K,1M,25M,100M")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers", default="weir,mpi,gloo")
    parser.add_argument("--worker", default=ROOT / "build/release/programs/weir-worker")
    parser.add_argument("-o", "--format", choices=["text", "json"], default="text")
    for name in ("rank", "ranks"):
        parser.add_argument(f"--gloo-{name}", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--gloo-url", help=argparse.SUPPRESS)
    given = parser.parse_args()
    sizes = [size_of(text) for text in given.sizes.split(",")]
    if given.gloo_rank is not None:
        return gloo_rank(given.gloo_rank, given.gloo_ranks, given.gloo_url, sizes)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        peers = Peers(given.worker, folder, 20000 + os.getpid() % 10000)
        peers.names = lambda names=[name for name in peers.names() if name in given.peers.split(",")]: names
        for text in given.scenes.split(","):
            kind, n = text.rstrip("0123456789"), int("".join(filter(str.isdigit, text.lstrip("0123456789"))))
            runs = scene(peers, kind, n, sizes, given.rounds)
            found += list(rows(kind, n, sizes, runs)) if runs else []
    if given.format == "json":
        print(json.dumps(found, indent=1))
    else:
        table(found)


if __name__ == "__main__":
    main()

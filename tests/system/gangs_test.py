"""Gangs of other frameworks over two agents in network namespaces: their ranks find each other, a lost one is replaced and the
gang goes on from its checkpoint. What is not installed here is skipped."""
import json
import os
import pathlib
import shutil
import subprocess
import threading
import unittest

import harness
from harness import Server, WEIR, wait_until

N_NODES = 2
SWITCH = f"weirg{os.getpid() % 10000}s"
PYTHON = "/usr/bin/python3"  # Debian's, which has Debian's torch
ARRAY = int(os.environ.get("WEIR_ARRAY", "100"))
TENSORFLOW = harness.ROOT / "build/venv-tf"

SPARK = harness.ROOT / "build/venv-spark/lib/python3.11/site-packages/pyspark"
COUNT = """
import time
from pyspark.sql import SparkSession
context = SparkSession.builder.getOrCreate().sparkContext
peers = lambda: context._jsc.sc().getExecutorMemoryStatus().size() - 1  # without the driver
deadline = time.monotonic() + 60
while peers() < 2 and time.monotonic() < deadline:
    time.sleep(0.1)
print("sum", context.parallelize(range(1000), 8).sum(), "of", peers(), "executors", flush=True)
"""

TRACK = """
import json, os, urllib.error, urllib.request

def ask(method, path, body=None):
    request = urllib.request.Request(os.environ["MLFLOW_TRACKING_URI"] + "/api/2.0/mlflow/" + path, method=method,
                                     data=json.dumps(body).encode() if body is not None else None)
    request.add_header("Authorization", "Bearer " + os.environ["MLFLOW_TRACKING_TOKEN"])
    request.add_header("Content-Type", "application/json")
    try:
        return json.load(urllib.request.urlopen(request))
    except urllib.error.HTTPError as error:
        return json.load(error)

run = os.environ["MLFLOW_RUN_ID"]
place = lambda: ask("GET", "runs/get?run_id=" + run)["run"]["info"]["experiment_id"]
assert place() == os.environ["MLFLOW_EXPERIMENT_ID"]
assert ask("GET", "experiments/get-by-name?experiment_name=mine")["error_code"] == "RESOURCE_DOES_NOT_EXIST"
made = ask("POST", "experiments/create", {"name": "mine"})["experiment_id"]
found = ask("GET", "experiments/get-by-name?experiment_name=mine")["experiment"]["experiment_id"]
print("its run is in it:", made == found == place())
ask("POST", "runs/log-metric", {"run_id": run, "key": "loss", "value": 1, "timestamp": 1})
ask("POST", "experiments/create", {"name": "other"})
print("after a metric it stays:", place() == made)
"""

TORCH = """
import os, signal, sys
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(1)
model = torch.nn.Linear(4, 1)
saved = os.path.join(os.environ["WEIR_CHECKPOINT"], "model.pt")
begin = 0
if os.path.exists(saved):
    state = torch.load(saved)
    begin = state["step"]
    model.load_state_dict(state["model"])
net = DistributedDataParallel(model)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for step in range(begin, 6):
    torch.manual_seed(100 * step + rank)
    x = torch.randn(32, 4)
    loss = (net(x) - x.sum(1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if rank == 0:
        torch.save({"step": step + 1, "model": model.state_dict()}, saved + ".tmp")
        os.replace(saved + ".tmp", saved)
    dist.barrier()
    if step == 2 and begin == 0 and rank == size - 1 and "die" in sys.argv:
        os.kill(os.getpid(), signal.SIGKILL)
total = torch.tensor([float(rank)])
dist.all_reduce(total)
same = [torch.zeros(1, 4) for _ in range(size)]
dist.all_gather(same, model.weight.detach())
assert all(torch.equal(one, same[0]) for one in same)
print(f"rank {rank} of {size} local {os.environ['LOCAL_RANK']} began at {begin} sum {int(total)}", flush=True)
del net  # else torch 1.13 may abort at its end: threads of the group that nobody has joined
dist.destroy_process_group()
"""

SERVED = """
import json, os, time
import tensorflow as tf
config = json.loads(os.environ["TF_CONFIG"])
role, index = config["task"]["type"], config["task"]["index"]
if role == "evaluator":
    print("role evaluator", index, "began", flush=True)
    time.sleep(600)
resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if role in ("worker", "ps"):
    server = tf.distribute.Server(resolver.cluster_spec(), job_name=role, task_index=index, protocol="grpc")
    print("role", role, index, "serves", flush=True)
    server.join()
strategy = tf.distribute.ParameterServerStrategy(resolver)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    weights = tf.Variable(tf.zeros((4, 1)))

@tf.function
def step(seed):
    x = tf.random.stateless_normal((64, 4), (seed, 2))
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((x @ weights - tf.reduce_sum(x, 1, keepdims=True)) ** 2)
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss

for seed in range(60):
    loss = coordinator.schedule(step, args=(seed,))
coordinator.join()
cluster = config["cluster"]
print("role chief", index, "loss", "small" if loss.fetch() < 0.01 else loss.fetch(), "of", len(cluster["ps"]), "servers",
      len(cluster["worker"]), "workers", flush=True)
"""

# Ends as soon as it has made ten steps as one of two.
GROWING = """
import os, pathlib, time
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
saved = pathlib.Path(os.environ["WEIR_CHECKPOINT"]) / "step"
begin = step = int(saved.read_text()) if saved.exists() else 0
print(f"grows: rank {rank} of {size} from {begin}", flush=True)
while size < 2 or step < begin + 10:
    step += 1
    if rank == 0:
        saved.with_suffix(".new").write_text(str(step))
        saved.with_suffix(".new").rename(saved)
    time.sleep(0.2)
"""

FLOW = """
import json, os
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    weights = tf.Variable(tf.zeros((4, 1)), aggregation=tf.VariableAggregation.MEAN)
x = tf.random.stateless_normal((64, 4), (1, 2))
data = tf.data.Dataset.from_tensor_slices((x, tf.reduce_sum(x, 1, keepdims=True))).batch(16)

def train_on(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((x @ weights - y) ** 2)
    gradient = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.MEAN, tape.gradient(loss, weights))
    weights.assign_sub(0.1 * gradient)
    return loss

@tf.function
def step(batch):
    return strategy.reduce(tf.distribute.ReduceOp.MEAN, strategy.run(train_on, args=batch), axis=None)

for epoch in range(4):
    for batch in strategy.experimental_distribute_dataset(data):
        loss = step(batch)
task = json.loads(os.environ["TF_CONFIG"])["task"]
print(f"{task['type']} {task['index']} of {strategy.num_replicas_in_sync} loss {float(loss):.6f}", flush=True)
"""


MESSAGES = r"""
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int rank, size, sum;
    char name[256] = "?";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    int has_file = access("data.txt", R_OK) == 0;
    printf("mpi %d of %d sum %d file %d\n", rank, size, sum, has_file);
    MPI_Finalize();
    return 0;
}
"""


def host(i):
    return f"weirg{os.getpid() % 10000}h{i}"


def inside(space):
    return ["nsenter", f"--net=/run/netns/{space}"]


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


def make_network():
    """A bridge in a namespace of its own, and N_NODES + 1 hosts on it; the last is the server's."""
    ip("netns", "add", SWITCH)
    ip("-n", SWITCH, "link", "add", "br0", "type", "bridge")
    ip("-n", SWITCH, "link", "set", "br0", "up")
    for i in range(N_NODES + 1):
        ip("netns", "add", host(i))
        ip("-n", host(i), "link", "set", "lo", "up")
        ip("link", "add", "eth0", "netns", host(i), "type", "veth", "peer", "name", f"p{i}", "netns", SWITCH)
        ip("-n", SWITCH, "link", "set", f"p{i}", "master", "br0", "up")
        ip("-n", host(i), "addr", "add", f"10.79.0.{i + 1}/24", "dev", "eth0")
        ip("-n", host(i), "link", "set", "eth0", "up")


def remove_network():
    for space in [SWITCH, *(host(i) for i in range(N_NODES + 1))]:
        subprocess.run(["ip", "netns", "del", space], capture_output=True, check=False)


class Gangs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if os.geteuid() != 0 or shutil.which("ip") is None or shutil.which("nsenter") is None:
            raise unittest.SkipTest("network namespaces need root, ip and nsenter")
        cls.addClassCleanup(remove_network)
        try:
            make_network()
        except subprocess.CalledProcessError as error:
            raise unittest.SkipTest(f"no network namespaces here: {error.stderr.strip()}") from None
        cls.server = server = Server()
        cls.addClassCleanup(cls.stop)
        server.program = [*inside(host(N_NODES)), WEIR]
        server.start("--listen", "0.0.0.0:0", "--no-agent")
        url = f"http://10.79.0.{N_NODES + 1}:{server.url.rsplit(':', 1)[1]}"
        for i in range(N_NODES):
            token = cls.weir("node", "token", "--node", f"n{i}").splitlines()[0].split()[4]
            share = [word for folder in (TENSORFLOW, SPARK) if folder.exists() for word in ("--share", str(folder))]
            cls.on(i, "node", "join", url, token, "--node", f"n{i}", "--dir", cls.folder(i), "--cpu-slots", "4", "--share",
                   str(server.root), *share)
        wait_until(lambda: sum(node["state"] == "ready" for node in cls.items("nodes")) == N_NODES, 30, "two nodes")

    @classmethod
    def stop(cls):
        for i in range(N_NODES):
            subprocess.run([*inside(host(i)), WEIR, "agent", "stop", "--dir", cls.folder(i), "--timeout", "5"],
                           capture_output=True, check=False)
        cls.server.stop()

    @classmethod
    def folder(cls, i):
        return str(cls.server.root / f"agent-{i}")

    @classmethod
    def on(cls, i, *arguments):
        command = [*inside(host(i)), "unshare", "-u", "sh", "-c", f"hostname n{i}; exec \"$@\"", "sh", WEIR, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0:
            raise AssertionError(f"weir {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stdout

    @classmethod
    def weir(cls, *arguments):
        return cls.on(N_NODES, *arguments, "--state", str(cls.server.state))

    @classmethod
    def items(cls, *words):
        return json.loads(cls.weir("get", *words, "-o", "json"))["items"]

    def run_job(self, name, kind, spec, seconds=60, **more):
        """Submit a job, wait for its end. @return (its record, the logs of its tasks together)."""
        document = self.server.root / f"{name}.json"
        document.write_text(json.dumps({"name": name, "kind": kind, "spec": spec, **more}))
        self.weir("job", "submit", "-f", str(document))
        job = lambda: next(job for job in self.items("jobs") if job["name"] == name)
        logs = lambda: "\n".join(log.read_text(errors="replace") for log in (self.server.state / "logs").glob("*.log"))[-6000:]
        try:
            wait_until(lambda: job()["state"] in ("SUCCEEDED", "FAILED"), seconds, f"the end of {name}")
        except AssertionError as error:
            raise AssertionError(f"{error}: {job()}\n{logs()}") from None
        tasks = self.items("tasks", job()["id"], "--limit", "1024")
        logs = [self.server.state / "logs" / f"{task['id']}.{task['attempt']}.log" for task in tasks]
        text = "\n".join(log.read_text(errors="replace") for log in logs if log.exists())
        return job(), tasks, text + "\n".join(task["message"] or "" for task in tasks)

    def needs(self, path, what):
        if not pathlib.Path(path).exists():
            self.skipTest(f"{what} is not installed")

    def test_torch_finds_its_ranks_and_goes_on_from_its_checkpoint(self):
        self.needs("/usr/lib/python3/dist-packages/torch/distributed/run.py", "python3-torch")
        job, tasks, log = self.run_job("ddp", "pytorch", {
            "argv": [PYTHON, "train.py", "die"], "files": {"train.py": TORCH}, "nodes": 2, "processes_per_node": 2,
            "cpu_slots": 3, "env": {"OMP_NUM_THREADS": "1"}}, max_restarts=2, seconds=240)
        self.assertEqual(job["state"], "SUCCEEDED", log)
        self.assertEqual({task["node"] for task in tasks}, {"n0", "n1"})
        self.assertEqual(job["n_restarts"], 1)
        for rank in range(4):
            self.assertIn(f"rank {rank} of 4 local {rank % 2} began at 3 sum 6", log)
        run = next(run for run in self.items("runs") if run["job"] == job["id"])
        self.assertEqual((run["id"], run["status"], run["kind"]), (job["run"], "FINISHED", "pytorch"))

    def test_torchrun_of_an_elastic_gang_meets_over_two_nodes(self):
        self.needs("/usr/lib/python3/dist-packages/torch/distributed/run.py", "python3-torch")
        job, tasks, log = self.run_job("elastic", "pytorch", {
            "argv": ["sh", "-c", "echo rank $RANK of $WORLD_SIZE at $MASTER_ADDR"], "nodes": {"min": 1, "max": 2}, "cpu_slots": 3,
            "env": {"PATH": "/usr/bin:/bin"}}, seconds=180)
        self.assertEqual(job["state"], "SUCCEEDED", log)
        self.assertEqual({task["node"] for task in tasks}, {"n0", "n1"})
        for rank in range(2):
            self.assertRegex(log, rf"rank {rank} of 2 at 10\.79\.0\.[12]\n")

    def test_torch_of_one_process_a_task(self):
        self.needs("/usr/lib/python3/dist-packages/torch/distributed/run.py", "python3-torch")
        job, _, log = self.run_job("ddp-1", "pytorch", {
            "argv": [PYTHON, "train.py"], "files": {"train.py": TORCH}, "nodes": 2, "cpu_slots": 3})
        self.assertEqual(job["state"], "SUCCEEDED", log)
        self.assertIn("rank 1 of 2 local 0 began at 0 sum 1", log)

    def test_tensorflow_workers_mirror_each_other(self):
        self.needs(TENSORFLOW / "bin/python3", "tensorflow (build/venv-tf)")
        job, tasks, log = self.run_job("mirrored", "tensorflow", {
            "argv": [str(TENSORFLOW / "bin/python3"), "train.py"], "files": {"train.py": FLOW}, "workers": 2, "cpu_slots": 3},
            seconds=120)
        self.assertEqual(job["state"], "SUCCEEDED", log)
        self.assertEqual({task["node"] for task in tasks}, {"n0", "n1"})
        said = sorted(line for line in log.splitlines() if line.startswith("worker "))
        self.assertEqual([line.split(" loss ")[0] for line in said], ["worker 0 of 2", "worker 1 of 2"])
        self.assertEqual(said[0].split(" loss ")[1], said[1].split(" loss ")[1])

    def test_tensorflow_with_parameter_servers_is_coordinated_by_its_chief(self):
        self.needs(TENSORFLOW / "bin/python3", "tensorflow (build/venv-tf)")
        job, tasks, log = self.run_job("served", "tensorflow", {
            "argv": [str(TENSORFLOW / "bin/python3"), "train.py"], "files": {"train.py": SERVED}, "workers": 2, "parameter_servers": 2,
            "chief": True, "evaluator": True, "cpu_slots": 2}, seconds=240)
        self.assertEqual(job["state"], "SUCCEEDED", log)
        self.assertEqual(len(tasks), 6)
        self.assertEqual({task["node"] for task in tasks}, {"n0", "n1"})
        said = sorted(line for line in log.splitlines() if line.startswith("role "))
        self.assertEqual(said, ["role chief 0 loss small of 2 servers 2 workers", "role evaluator 0 began", "role ps 0 serves",
                                "role ps 1 serves", "role worker 0 serves", "role worker 1 serves"], log)

    def test_an_elastic_gang_of_torchrun_grows_while_it_runs(self):
        self.needs("/usr/lib/python3/dist-packages/torch/distributed/run.py", "python3-torch")
        blocker = self.server.root / "blocker.json"
        blocker.write_text(json.dumps({"name": "blocker", "kind": "command", "spec": {"argv": ["sleep", "600"], "cpu_slots": 3}}))
        self.weir("job", "submit", "-f", str(blocker))
        state = lambda name: next(job for job in self.items("jobs") if job["name"] == name)["state"]
        self.addCleanup(lambda: state("blocker") == "CANCELLED" or self.weir("job", "cancel", "blocker"))
        wait_until(lambda: state("blocker") == "RUNNING", 30, "a job on one of the nodes")

        def said():
            return [line for log in sorted((self.server.state / "logs").glob("*.log"))
                    for line in log.read_text(errors="replace").splitlines() if line.startswith("grows: ")]

        def free_the_other():
            wait_until(lambda: "grows: rank 0 of 1 from 0" in said(), 120, "the gang of one")
            self.weir("job", "cancel", "blocker")

        helper = threading.Thread(target=free_the_other)
        helper.start()
        self.addCleanup(helper.join)
        job, _, log = self.run_job("growing", "pytorch", {
            "argv": [PYTHON, "train.py"], "files": {"train.py": GROWING}, "nodes": {"min": 1, "max": 2}, "cpu_slots": 3},
            seconds=180)
        self.assertEqual(job["state"], "SUCCEEDED", log)
        grown = [int(line.split()[-1]) for line in said() if "rank 0 of 2 from" in line]
        self.assertTrue(grown and grown[-1] > 0, said())  # and it went on where it was

    def message(self, compiler, launcher, spec):
        if shutil.which(compiler) is None or shutil.which(launcher) is None:
            self.skipTest(f"{compiler} and {launcher} are not installed")
        folder = self.server.root / launcher
        folder.mkdir(mode=0o755)
        (folder / "a.c").write_text(MESSAGES)
        os.chmod(self.server.root, 0o755)
        subprocess.run([compiler, str(folder / "a.c"), "-o", str(folder / "a")], check=True)
        name = launcher.replace(".", "-")
        job, tasks, log = self.run_job(name, "mpi", {
            "argv": [str(folder / "a")], "files": {"data.txt": "1"}, **spec})
        self.assertEqual(job["state"], "SUCCEEDED", log)
        self.assertEqual({task["node"] for task in tasks}, {"n0", "n1"})
        self.assertEqual(sorted(line for line in log.splitlines() if line.startswith("mpi ")),
                         [f"mpi {rank} of 4 sum 6 file 1" for rank in range(4)], log)

    def test_open_mpi_starts_its_daemons_through_the_server(self):
        self.message("mpicc.openmpi", "mpirun.openmpi", {"mpi": "openmpi", "nodes": 4, "cpu_slots": 2})  # two tasks a machine
        program = str(self.server.root / "mpirun.openmpi/a")
        job, _, log = self.run_job("own-mpirun", "mpi", {
            "argv": ["sh", "-c", f"for n in 2 3; do mpirun -n $n {program} || exit; done"], "mpi": "none", "nodes": 2,
            "processes_per_node": 2})
        self.assertEqual(job["state"], "SUCCEEDED", log)
        self.assertEqual([log.count(f" of {n} sum ") for n in (2, 3)], [2, 3], log)

    def test_mpich_starts_its_proxies_through_the_server(self):
        self.message("mpicc.mpich", "mpiexec.mpich", {"mpi": "mpich", "nodes": 2, "processes_per_node": 2, "cpu_slots": 3})

    def test_spark_counts_over_two_workers(self):
        self.needs(SPARK / "bin/spark-submit", "Spark (build/venv-spark)")
        job, tasks, log = self.run_job("counting", "spark", {
            "argv": ["count.py"], "files": {"count.py": COUNT}, "nodes": 2, "cpu_slots": 3, "cores": 1, "executor_memory": "512m",
            "env": {"SPARK_HOME": str(SPARK), "PYSPARK_PYTHON": PYTHON,
                    "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}}, seconds=300)
        self.assertEqual(job["state"], "SUCCEEDED", log[-3000:])
        self.assertEqual({task["node"] for task in tasks}, {"n0", "n1"})
        self.assertIn("sum 499500 of 2 executors", log)

    def test_a_node_without_spark_says_so(self):
        job, _, log = self.run_job("no-spark", "spark", {"argv": ["a.py"], "env": {"SPARK_HOME": "/nowhere"}})
        self.assertEqual(job["state"], "FAILED")
        self.assertIn("this node has no Spark", job["reason"])

    def test_tasks_of_an_array_are_on_their_own(self):
        job, tasks, log = self.run_job("many", "command", {
            "argv": ["sh", "-c", "echo part $WEIR_ARRAY_INDEX of $WEIR_ARRAY_SIZE; "
                     "test $WEIR_ARRAY_INDEX != 7 || test $WEIR_ATTEMPT != 1"],
            "array": ARRAY, "cpu_slots": 1}, seconds=30 + ARRAY // 4, max_restarts=1)
        self.assertEqual(job["state"], "SUCCEEDED", log[-2000:])
        self.assertEqual(sorted(line for line in log.splitlines() if line), sorted(f"part {i} of {ARRAY}" for i in range(ARRAY)))
        self.assertEqual([task["attempt"] for task in tasks if task["attempt"] != 1], [2])
        self.assertEqual({task["node"] for task in tasks}, {"n0", "n1"})

    def test_a_run_goes_to_the_experiment_that_its_program_names(self):
        """What mlflow.set_experiment and then mlflow.start_run ask of the server."""
        job, _, log = self.run_job("named", "command", {"argv": [PYTHON, "track.py"], "files": {"track.py": TRACK}})
        self.assertEqual(job["state"], "SUCCEEDED", log)
        self.assertIn("its run is in it: True", log)
        self.assertIn("after a metric it stays: True", log)

    def test_a_program_is_told_its_run_and_where_to_track(self):
        job, tasks, log = self.run_job("told", "command", {
            "argv": ["sh", "-c", "env | grep -E '^(MLFLOW|WEIR)_' | sort; touch $WEIR_CHECKPOINT/here"]})
        self.assertEqual(job["state"], "SUCCEEDED", log)
        self.assertIn(f"MLFLOW_RUN_ID={job['run']}", log)
        self.assertIn(f"WEIR_RUN={job['run']}", log)
        self.assertRegex(log, r"MLFLOW_TRACKING_URI=http://10.79.0.3:\d+/p/default\n")
        self.assertRegex(log, r"MLFLOW_TRACKING_TOKEN=weir_task\.")
        self.assertTrue((self.server.state / "checkpoints" / job["id"] / "here").exists())


if __name__ == "__main__":
    harness.main()

"""A real Slurm cluster in a folder of its own: munged, slurmctld, four slurmd with made-up GPUs and shards, and
with accounting=True mariadbd and slurmdbd, accounts and QOS.

    with slurm_cluster.Cluster() as cluster:
        cluster.run("sinfo")                         # its standard output
        cluster.environment                          # SLURM_CONF: what a program needs to reach it

It needs root and Debian's packages (why_not says what is missing), no systemd and nothing of /etc/slurm. All
sockets, ports and files are its own; all processes run in a process namespace that ends with the test, however
that ends.
"""
import contextlib
import ctypes
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

N_NODES = 4
CPUS = 16
MEMORY_MB = 65536
GPUS = 4
SHARDS = 40
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "sinfo", "scontrol", "scancel", "srun")
ACCOUNTING_PROGRAMS = ("slurmdbd", "sacct", "sacctmgr", "mariadbd", "mariadb-install-db", "mariadb")
PR_SET_PDEATHSIG = 1
NODES = f"n[1-{N_NODES}]"

CONF = """\
ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={ctld_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={dir}/munge/socket
CredType=cred/munge
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool-%n
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/slurmd-%n.pid
SlurmctldLogFile={dir}/slurmctld.log
SlurmdLogFile={dir}/slurmd-%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SchedulerType=sched/backfill
SchedulerParameters=sched_min_interval=0,batch_sched_delay=0,bf_interval=1,sched_interval=1,default_queue_depth=1000
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
PreemptMode=REQUEUE
PriorityType=priority/multifactor
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
JobRequeue=1
MinJobAge={min_job_age}
KillWait={kill_wait}
ReturnToService=2
SlurmdTimeout=10
InactiveLimit=0
MessageTimeout=4
GresTypes=gpu,shard
NodeName={nodes} NodeHostname=localhost NodeAddr=127.0.0.1 Port=[{node_ports}] CPUs={cpus} Sockets=1 CoresPerSocket={cpus} ThreadsPerCore=1 RealMemory={memory} Gres=gpu:h200:{gpus},shard:{shards} Feature=fast State=UNKNOWN
PartitionName=lo Nodes={nodes} Default=YES MaxTime=INFINITE State=UP PriorityTier=1 PreemptMode=REQUEUE GraceTime={grace} DefMemPerCPU=100
PartitionName=hi Nodes={nodes} MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF DefMemPerCPU=100
PartitionName=short Nodes=n[1-2] MaxTime=10 State=UP PriorityTier=1 PreemptMode=OFF DefMemPerCPU=100
"""
CONF_PLAIN = "PreemptType=preempt/partition_prio\n"
CONF_ACCOUNTING = """\
PreemptType=preempt/qos
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePass={dir}/munge/socket
AccountingStoragePort={dbd_port}
AccountingStorageTRES=gres/gpu,gres/shard
AccountingStorageEnforce=associations,limits,qos
"""
DBD_CONF = """\
AuthType=auth/munge
AuthInfo=socket={dir}/munge/socket
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={dbd_port}
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageLoc=slurm_acct_db
StorageUser=root
PidFile={dir}/slurmdbd.pid
LogFile={dir}/slurmdbd.log
CommunicationParameters=NoInAddrAny
"""


def why_not(accounting=False):
    """Why no cluster can be started here: a sentence; None: one can."""
    if os.geteuid() != 0:
        return "a Slurm cluster of the test's own wants root"
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/bin"
    missing = [name for name in PROGRAMS + (ACCOUNTING_PROGRAMS if accounting else ()) if shutil.which(name, path=path) is None]
    return f"Slurm is not installed here: there is no {', '.join(missing)}" if missing else None


def free_ports(n):
    """n ports that nobody listens on."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(n)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def wait_until(condition, seconds, what):
    """The first true value of condition(), which may fail meanwhile."""
    deadline = time.monotonic() + seconds
    while True:
        with contextlib.suppress(subprocess.CalledProcessError):
            value = condition()
            if value:
                return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.02)


def die_with_parent():
    """In a child: SIGKILL when the test has ended."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Cluster:
    """See above. `conf` are more lines of slurm.conf; `user` may submit, and read what is there, like root."""

    def __init__(self, accounting=False, min_job_age=300, kill_wait=2, grace=0, conf=""):
        self.accounting = accounting
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="weir-slurm-"))
        ports = free_ports(N_NODES + 2)
        self.values = {
            "dir": self.dir, "nodes": NODES, "ctld_port": ports[0], "dbd_port": ports[1],
            "node_ports": ",".join(map(str, ports[2:])), "cpus": CPUS, "memory": MEMORY_MB, "gpus": GPUS, "shards": SHARDS,
            "min_job_age": min_job_age, "kill_wait": kill_wait, "grace": grace}
        self.more = conf
        self.conf = self.dir / "slurm.conf"
        self.for_server = {"SLURM_CONF": str(self.conf)}
        self.environment = {"SLURM_CONF": str(self.conf), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}
        self.processes = {}
        self.init = None

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    # ---- processes ------------------------------------------------------------------------------

    def start_init(self):
        """The first process of a namespace: all others of it end with this one, which ends with the test."""
        self.init = subprocess.Popen(
            ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", "echo ready; read ignored"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=die_with_parent)
        self.init.stdout.readline()
        children = pathlib.Path(f"/proc/{self.init.pid}/task/{self.init.pid}/children").read_text(encoding="ascii")
        self.inside = ["nsenter", "--target", children.split()[0], "--pid", "--mount"]

    def spawn(self, name, *argv, environment=None):
        """Start a daemon, which stays in the foreground."""
        with open(self.dir / f"{name}.out", "ab") as out:
            self.processes[name] = subprocess.Popen(
                [*self.inside, *argv], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                env={**self.environment, **(environment or {})}, preexec_fn=die_with_parent, start_new_session=True)

    def send(self, name, how):
        """Send a daemon a signal."""
        process = self.processes[name]
        inside = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii").split()
        for pid in map(int, inside or [process.pid]):  # the child of nsenter
            os.kill(pid, how)

    def end(self, name, how=signal.SIGKILL):
        """End a daemon that spawn started, and wait for it."""
        self.send(name, how)
        self.processes.pop(name).wait(timeout=20)

    def run(self, *argv, check=True, user=None, text=""):
        """Run a command of Slurm's; what it printed. user: as whom."""
        as_user = ["runuser", "-u", user, "--"] if user else []
        done = subprocess.run([*self.inside, *as_user, *argv], env=self.environment, input=text, capture_output=True,
                              text=True, check=False, timeout=60)
        if check and done.returncode != 0:
            raise subprocess.CalledProcessError(done.returncode, argv, done.stdout, done.stderr)
        return done.stdout if check else done

    # ---- the cluster ----------------------------------------------------------------------------

    def write_conf(self, **values):
        """slurm.conf again, with other values."""
        self.values.update(values)
        text = CONF + (CONF_ACCOUNTING if self.accounting else CONF_PLAIN) + self.more
        self.conf.write_text(text.format(**self.values), encoding="ascii")

    def start(self):
        """Start all; returns when all nodes are idle."""
        os.chmod(self.dir, 0o755)
        for name in ["state", "gpus"] + [f"spool-n{i + 1}" for i in range(N_NODES)]:
            (self.dir / name).mkdir()
        for i in range(GPUS):  # character devices: of others Slurm sets no CUDA_VISIBLE_DEVICES
            os.mknod(self.dir / "gpus" / f"nvidia{i}", 0o666 | 0o020000, os.makedev(1, 3))
        (self.dir / "gres.conf").write_text(
            f"NodeName={NODES} Name=gpu Type=h200 File={self.dir}/gpus/nvidia[0-{GPUS - 1}]\n"
            f"NodeName={NODES} Name=shard Count={SHARDS}\n", encoding="ascii")
        (self.dir / "cgroup.conf").write_text("CgroupAutomount=no\n", encoding="ascii")
        self.write_conf()
        self.start_init()
        self.start_munge()
        if self.accounting:
            self.start_accounting()
        self.start_ctld()
        for i in range(N_NODES):
            self.start_node(f"n{i + 1}")
        wait_until(lambda: self.run("sinfo", "-h", "-p", "lo", "-t", "idle", "-o", "%D").strip() == str(N_NODES), 20,
                   "all nodes idle")

    def start_munge(self, name="munge"):
        """munged in a folder of that name, with a key of its own: another one's credentials are refused."""
        folder = self.dir / name
        folder.mkdir()
        (folder / "key").write_bytes(os.urandom(128))
        os.chmod(folder / "key", 0o600)
        self.spawn(name, "munged", "--foreground", "--force", f"--key-file={folder}/key", f"--socket={folder}/socket",
                   f"--pid-file={folder}/pid", f"--log-file={folder}/log", f"--seed-file={folder}/seed")
        wait_until((folder / "socket").exists, 10, "munged's socket")

    def start_ctld(self):
        """slurmctld; returns when it answers."""
        self.spawn("slurmctld", "slurmctld", "-D")
        wait_until(lambda: "UP" in self.run("scontrol", "ping"), 20, "slurmctld answers")

    def start_node(self, name):
        """slurmd of a node."""
        self.spawn(name, "slurmd", "-D", "-N", name)

    def start_accounting(self):
        """mariadbd and slurmdbd, accounts and QOS: vis with guar (8 GPUs of its own) and over, which makes room."""
        data, address = self.dir / "mysql", self.dir / "mysql.socket"
        small = ["--no-defaults", f"--datadir={data}", "--innodb-log-file-size=4M", "--innodb-buffer-pool-size=8M",
                 "--innodb-flush-log-at-trx-commit=0"]
        self.run("mariadb-install-db", *small, "--user=root", "--auth-root-authentication-method=normal", "--skip-test-db")
        self.spawn("mariadbd", "mariadbd", *small, "--user=root", "--skip-networking", f"--socket={address}",
                   f"--pid-file={self.dir}/mysql.pid")
        wait_until(lambda: self.run("mariadb", "--no-defaults", f"--socket={address}", "-e",
                                    "CREATE DATABASE IF NOT EXISTS slurm_acct_db; SELECT 1"), 20, "mariadbd answers")
        conf = self.dir / "slurmdbd.conf"
        conf.write_text(DBD_CONF.format(**self.values), encoding="ascii")
        os.chmod(conf, 0o600)
        self.spawn("slurmdbd", "slurmdbd", "-D", environment={"MYSQL_UNIX_PORT": str(address)})
        wait_until(lambda: "test" in self.run("sacctmgr", "-i", "add", "cluster", "test", check=False).stdout + self.run(
            "sacctmgr", "-n", "-P", "show", "cluster", "format=cluster"), 20, "slurmdbd answers")

    def add_accounts(self):
        """What start_accounting says; GPUs are known there once slurmctld runs."""
        for words in ("add qos over priority=1", "add qos guar priority=1000 preempt=over grptres=gres/gpu=8",
                      "add account vis", "add account other", "add user root account=vis qos=guar,over,normal defaultqos=over"):
            self.run("sacctmgr", "-i", *words.split())

    def left_behind(self):
        """What jobs that are killed now leave in /tmp, by their names."""
        if "slurmctld" not in self.processes:
            return []
        with contextlib.suppress(subprocess.SubprocessError):
            names = set(self.run("squeue", "-h", "-a", "-t", "all", "-o", "%j").split())
            return [path for path in pathlib.Path("/tmp").glob("weir-*.*") if path.name[len("weir-"):].rpartition(".")[0] in names]
        return []

    def stop(self):
        """End all that was started; twice is harmless."""
        left = []
        if self.init is not None:
            left += self.left_behind()
            self.init.kill()  # and with it, all of the namespace
            self.init.wait()
            self.init.stdin.close()
            self.init.stdout.close()
            self.init = None
        for process in self.processes.values():
            process.kill()
            process.wait()
        self.processes = {}
        for path in left:
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        shutil.rmtree(self.dir, ignore_errors=True)

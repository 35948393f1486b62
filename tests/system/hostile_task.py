"""What a hostile job tries, from inside: started by hostile_test.py as a task, with what it may know of its machine in
TARGETS (JSON). One line of JSON per attempt: {"attempt", "got"}; got is null where it was refused, with "answer".
--list prints the attempts by subject, for docs/security.md, and tries none."""
import ctypes
import errno
import fcntl
import glob
import json
import os
import pathlib
import signal
import socket
import stat
import subprocess
import sys
import termios
import urllib.error
import urllib.request

IS_LIST = "--list" in sys.argv
NOWHERE = {"state": "/nowhere", "victim_dir": "/nowhere", "groups": ["/nowhere/x"], "is_root": True, "key": 0, "queue": "x",
           "victim_job": "JOB", "victim_task": "TASK", "node": "NODE",
           **{who: 1 for who in ("server", "agent", "supervisor", "victim")}}
T = NOWHERE if IS_LIST else json.loads(os.environ["TARGETS"])
STATE, AGENT, VICTIM = T["state"], T["state"] + "/agent", T["victim_dir"]
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.syscall.restype = ctypes.c_long
ATTEMPTS = []  # (subject, name, function)
SUBJECT = ""
SYSCALLS = {  # x86-64
    "mount": 165, "umount2": 166, "pivot_root": 155, "ptrace": 101, "keyctl": 250, "add_key": 248, "request_key": 249,
    "init_module": 175, "finit_module": 313, "delete_module": 176, "kexec_load": 246, "bpf": 321, "perf_event_open": 298,
    "userfaultfd": 323, "io_uring_setup": 425, "reboot": 169, "sethostname": 170, "settimeofday": 164, "swapon": 167,
    "quotactl": 179, "acct": 163, "syslog": 103, "open_by_handle_at": 304, "open_tree": 428, "fsopen": 430, "setns": 308,
    "unshare": 272, "clone": 56, "process_vm_readv": 310, "pidfd_open": 434, "pidfd_getfd": 438, "capset": 126,
    "setgroups": 116, "prlimit64": 302, "iopl": 172, "shmget": 29, "semget": 64, "msgget": 68, "mq_open": 240,
    "move_mount": 429, "clock_settime": 227, "personality": 135, "memfd_secret": 447, "uretprobe": 335, "statmount": 457,
    "listmount": 458, "open_tree_attr": 467, "file_setattr": 469, "a call that no kernel has yet": 999}


def attempt(name):
    def note(function):
        ATTEMPTS.append((SUBJECT, name, function))
        return function
    return note


def subject(text):
    global SUBJECT
    SUBJECT = text


def call(name, *arguments):
    """A system call; OSError if it is refused."""
    values = [ctypes.c_char_p(a) if isinstance(a, bytes) else ctypes.c_long(a) if isinstance(a, int) else a
              for a in arguments]
    rc = LIBC.syscall(ctypes.c_long(SYSCALLS[name]), *values)
    if rc < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return f"{name} = {rc}"


def reads(path):
    return lambda: pathlib.Path(path).read_bytes()[:40] or None


def writes(path, text="x"):
    def go():
        with open(path, "a") as file:
            file.write(text)
        return f"wrote {path}"
    return go


def lists(path, known=()):
    return lambda: sorted(set(os.listdir(path)) - set(known)) or None


def calls(name, *arguments):
    return lambda: call(name, *arguments)


def kills(pid, number=signal.SIGKILL):
    def go():
        os.kill(pid, number)
        return f"signalled {pid}"
    return go


subject("files of Weir and of the machine")
for name in ("admin.token", "worker.token", "weir.db", "weir.db-wal", "server.json", "agent/token", "agent/agent.json",
             "agent/lock"):
    attempt(f"read {name} of the state folder")(reads(f"{STATE}/{name}"))
for name in ("blobs", "datasets", "checkpoints", "rendezvous", "replicas", "pictures", "logs"):
    attempt(f"list {name} of the state folder")(lists(f"{STATE}/{name}", [os.environ.get("WEIR_JOB", "")]))
attempt("list the state folder")(lists(STATE, ["agent", "checkpoints"]))  # of which it sees its own alone
attempt("list the agent's folder")(lists(AGENT, ["tasks", "given"]))
attempt("list the tasks of others")(lists(f"{AGENT}/tasks", [pathlib.Path.cwd().parent.name]))
attempt("list the jobs' folders")(lists(f"{AGENT}/jobs"))
attempt("make a file in the state folder")(writes(f"{STATE}/mine"))
attempt("make a file in the agent's folder")(writes(f"{AGENT}/mine"))
attempt("make a file among the tasks")(writes(f"{AGENT}/tasks/mine"))
for name in ("log", "task.json", "run.json", "work/token", "work/secret"):
    attempt(f"read {name} of another job's task")(reads(f"{VICTIM}/{name}"))
for name in ("exit.json", "stop", "run.json", "log", "lock"):
    attempt(f"forge {name} of its own task")(writes(f"../{name}"))
attempt("put another folder in the place of its own")(lambda: os.rename("../work", "../old") or "renamed")
attempt("change Weir's program")(writes(f"{AGENT}/given/weir"))
attempt("change Weir's program for trainings")(writes(f"{AGENT}/given/weir-worker"))
attempt("take Weir's program from others")(lambda: os.chmod(f"{AGENT}/given/weir", 0o700) or "changed")
attempt("remove Weir's program")(lambda: os.unlink(f"{AGENT}/given/weir") or "removed")
attempt("change Weir's program by a hard link")(lambda: os.link(f"{AGENT}/given/weir", "weir") or "linked")
for name, known in (("home", ()), ("root", ()), ("srv", ()), ("mnt", ()), ("media", ()), ("boot", ()), ("var/log", ()), ("var/lib", ()),
                    ("var/backups", ()), ("run/user", ()), ("run/weir-users", ()), ("run/systemd/private", ())):
    attempt(f"list /{name}")(lists("/" + name, known))
attempt("read /var/lib/dpkg/status")(reads("/var/lib/dpkg/status"))
attempt("read /etc/shadow")(reads("/etc/shadow"))
attempt("hard link to /etc/shadow")(lambda: os.link("/etc/shadow", "shadow") or "linked")
attempt("write /etc/passwd")(writes("/etc/passwd"))
attempt("write into /usr/bin")(writes("/usr/bin/weir-hostile"))
attempt("write into /etc/cron.d")(writes("/etc/cron.d/weir-hostile"))
attempt("open a file by its handle")(calls("open_by_handle_at", -100, ctypes.create_string_buffer(64), 0))


subject("processes")
def reads_memory(pid):
    """By a call that needs no file of /proc; the address is one of this program's, which a fork of it would share."""
    def go():
        here, there = ctypes.create_string_buffer(8), ctypes.create_string_buffer(8)
        mine = (ctypes.c_size_t * 2)(ctypes.addressof(here), 8)
        theirs = (ctypes.c_size_t * 2)(ctypes.addressof(there), 8)
        try:
            return call("process_vm_readv", pid, mine, 1, theirs, 1, 0)
        except OSError as error:
            return error.errno == errno.EFAULT and "let in, at a wrong address" or raises(error)
    return go


def raises(error):
    raise error


attempt("see processes of others")(lambda: [p for p in os.listdir("/proc") if p.isdigit() and os.stat(f"/proc/{p}").st_uid
                                            != os.getuid()] or None)
attempt("see more processes than its own")(lambda: (n := len([p for p in os.listdir("/proc") if p.isdigit()])) > 4 and n)
for who in ("server", "agent", "supervisor", "victim"):
    attempt(f"read the environment of the {who}")(reads(f"/proc/{T[who]}/environ"))
    attempt(f"kill the {who}")(kills(T[who]))
    attempt(f"stop the {who}")(kills(T[who], signal.SIGSTOP))
    attempt(f"trace the {who}")(calls("ptrace", 16, T[who], 0, 0))
    attempt(f"read the memory of the {who}")(reads_memory(T[who]))
    attempt(f"hold the {who} by a descriptor")(calls("pidfd_open", T[who], 0))
for name in ("environ", "maps", "mem", "auxv"):
    attempt(f"read {name} of the job's init")(reads(f"/proc/1/{name}"))
attempt("leave by the root of the job's init")(lists("/proc/1/root"))
attempt("list descriptors of the job's init")(lists("/proc/1/fd"))
attempt("read the memory of the job's init")(reads_memory(1))
attempt("trace the job's init")(calls("ptrace", 16, 1, 0, 0))
if T["is_root"]:  # else the init has the job's user, which may spoil its own
    attempt("set limits of the job's init")(calls("prlimit64", 1, 7, ctypes.create_string_buffer(16), None))


@attempt("kill the job's init")
def kill_init():
    os.kill(1, signal.SIGKILL)
    os.kill(1, signal.SIGTERM)
    return None  # allowed to say so in its namespace, where it is deaf: hostile_test.py sees that it lives


attempt("be spared when memory is out")(writes("/proc/self/oom_score_adj", "-1000"))
attempt("run before all others")(lambda: os.setpriority(os.PRIO_PROCESS, 0, -20) or "nice -20")
attempt("run in real time")(lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50)) or "SCHED_FIFO")
attempt("inherit a descriptor")(lambda: [path for path in glob.glob("/proc/self/fd/*") if os.path.islink(path) and
                                         T["state"] in os.readlink(path) and "/work/" not in os.readlink(path)] or None)
attempt("find a token in its environment")(lambda: [k for k, v in os.environ.items() if v in T["secrets"]] or None)

subject("other jobs' memory and messages")
attempt("list System V memory of others")(lambda: open("/proc/sysvipc/shm").read().splitlines()[1:] or None)
attempt("open System V memory of another job")(calls("shmget", T["key"], 0, 0))
attempt("open a semaphore of another job")(calls("semget", T["key"], 0, 0))
attempt("open a message queue of another job")(calls("msgget", T["key"], 0))
attempt("open a POSIX message queue of another job")(calls("mq_open", T["queue"].encode(), os.O_RDWR, 0, 0))
attempt("read another job's /dev/shm")(reads("/dev/shm/victim"))
attempt("read another job's /tmp")(reads("/tmp/victim"))
attempt("list /dev/shm of all jobs")(lambda: glob.glob("/dev/shm/*weir*") or None)

subject("privileges")
if os.getuid() != 0 or IS_LIST:  # else it is called so in a user namespace, and has none of its rights
    attempt("become root")(lambda: os.setuid(0) or "root")
    attempt("join group 0")(lambda: os.setgid(0) or "group")
attempt("become the next job's user")(lambda: os.setuid(os.getuid() + 1) or "user")
attempt("join any group")(calls("setgroups", 0, None))
attempt("become root by su")(lambda: subprocess.run(["su", "-c", "id", "root"], stdin=subprocess.DEVNULL,
                                                    capture_output=True).returncode == 0)
attempt("find a capability")(lambda: [line for line in open("/proc/self/status") if line.startswith("Cap") and
                                      int(line.split()[1], 16)] or None)
attempt("gain one by a set-user-ID program")(
    lambda: "NoNewPrivs:\t1" not in open("/proc/self/status").read() and "no_new_privs is off")
for flag, what in ((0x10000000, "user"), (0x20000, "mount"), (0x20000000, "PID"), (0x08000000, "IPC"),
                   (0x40000000, "network"), (0x04000000, "host name"), (0x02000000, "control group")):
    attempt(f"make a {what} namespace")(calls("unshare", flag))
attempt("make a user namespace by clone")(calls("clone", 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0))
attempt("enter a namespace of the init")(lambda: call("setns", os.open("/proc/1/ns/mnt", os.O_RDONLY), 0))
attempt("enter a namespace")(lambda: call("setns", os.open("/proc/self/ns/net", os.O_RDONLY), 0))

subject("mounts, roots, devices")
attempt("mount a file system")(calls("mount", b"none", b"/tmp", b"tmpfs", 0, 0))
attempt("mount the disk")(calls("mount", b"/dev/vda", b"/tmp", b"ext4", 0, 0))
attempt("mount the state folder elsewhere")(calls("open_tree", -100, STATE.encode(), 1))
attempt("make a file system")(calls("fsopen", b"tmpfs", 0))
for path in ("/proc", "/tmp", "/dev", STATE):
    attempt(f"uncover {'the state folder' if path == STATE else path}")(calls("umount2", path.encode(), 2))
attempt("change its root")(lambda: os.chroot(".") or "chroot")
attempt("exchange its root")(calls("pivot_root", b".", b"."))
attempt("make a disk's device file")(lambda: os.mknod("disk", stat.S_IFBLK | 0o600, os.makedev(8, 0)) or "made")
attempt("make memory's device file")(lambda: os.mknod("mem", stat.S_IFCHR | 0o600, os.makedev(1, 1)) or "made")
for name in ("mem", "kmsg", "port", "vda", "sda", "nvme0n1", "loop0", "loop-control", "kvm", "fuse", "net/tun", "vsock"):
    attempt(f"open /dev/{name}")(lambda name=name: os.open(f"/dev/{name}", os.O_RDONLY) >= 0 and "opened")
attempt("make a file in /dev")(writes("/dev/mine"))
attempt("see terminals of others")(lists("/dev/pts", ["ptmx"]))


@attempt("type into a terminal")
def type_into():
    leader, follower = os.openpty()
    fcntl.ioctl(follower, termios.TIOCSTI, b"x")
    return "typed"


subject("the kernel")
for name, arguments in (("init_module", (0, 0, b"")), ("finit_module", (0, b"", 0)), ("delete_module", (b"x", 0)),
                        ("kexec_load", (0, 0, 0, 0)), ("bpf", (0, 0, 0)), ("perf_event_open", (0, 0, -1, -1, 0)),
                        ("userfaultfd", (0,)), ("io_uring_setup", (1, 0)), ("sethostname", (b"x", 1)),
                        ("settimeofday", (ctypes.create_string_buffer(16), 0)), ("swapon", (b"x", 0)), ("acct", (b"x",)),
                        ("quotactl", (0, b"x", 0, 0)), ("syslog", (3, 0, 0)), ("keyctl", (0, -3, 1)),
                        ("add_key", (b"user", b"x", b"y", 1, -3)), ("request_key", (b"user", b"x", 0, -3)), ("iopl", (3,)),
                        ("memfd_secret", (0,)), ("uretprobe", ()), ("statmount", (0, 0, 0, 0)), ("listmount", (0, 0, 0, 0)),
                        ("open_tree_attr", (-1, b"", 0, 0, 0)), ("file_setattr", (-100, b".", 0, 0, 0)),
                        ("a call that no kernel has yet", ()), ("reboot", (0xfee1dead - (1 << 32), 672274793, 0, 0))):
    attempt(f"call {name}")(calls(name, *arguments))
for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/randomize_va_space", "/proc/sys/vm/drop_caches",
             "/proc/sysrq-trigger", "/proc/sys/net/ipv4/ip_forward", "/sys/kernel/mm/transparent_hugepage/enabled",
             "/sys/kernel/uevent_helper", "/proc/self/loginuid" if T["is_root"] else "/proc/sys/kernel/hostname"):
    attempt(f"write {path}")(writes(path))

subject("control groups")  # its own, the victim's, and the folder of all
def own_groups():
    if IS_LIST:
        yield "/nowhere/x"
        return
    for line in open("/proc/self/cgroup"):
        _, controllers, path = line.strip().split(":", 2)
        for mount in ("/sys/fs/cgroup/" + controllers, "/sys/fs/cgroup/unified", "/sys/fs/cgroup"):
            if path != "/" and os.path.exists(mount + path + "/cgroup.procs"):
                yield mount + path
                break


for whose, folders in (("its own", list(own_groups())), ("another job's", T["groups"]),
                       ("all jobs'", sorted({os.path.dirname(folder) for folder in T["groups"]}))):
    for folder in folders:
        kind = "/".join(folder.split("/")[4:5])
        attempt(f"enter {whose} control group ({kind})")(writes(folder + "/cgroup.procs", "0"))
        attempt(f"change {whose} control group ({kind})")(
            lambda folder=folder: [name for name in os.listdir(folder) if os.access(f"{folder}/{name}", os.W_OK)] or None)
        attempt(f"make a control group in {whose} ({kind})")(lambda folder=folder: os.mkdir(folder + "/mine") or "made")


subject("sockets")
def opens(family, kind, protocol=0):
    return lambda: socket.socket(family, kind, protocol) and "a socket"


attempt("listen to the wire")(opens(socket.AF_PACKET, socket.SOCK_RAW, 3))
attempt("send raw IP")(opens(socket.AF_INET, socket.SOCK_RAW, 1))
attempt("speak to the hypervisor")(opens(40, socket.SOCK_STREAM))
attempt("use the kernel's ciphers")(opens(38, socket.SOCK_SEQPACKET))
attempt("speak of keys with the kernel")(opens(15, socket.SOCK_RAW, 2))


@attempt("connect to a socket of Weir's folders")
def connect_to_sockets():
    found = [line.split()[-1] for line in open("/proc/net/unix") if STATE in line]
    for path in found:
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(path)
            return path
    return None


for path in ("/run/systemd/private", "/run/dbus/system_bus_socket", "/run/docker.sock", "/var/run/crun.sock"):
    def connect(path=path):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(path)
            s.sendall(b"\0AUTH EXTERNAL 30\r\n" if "dbus" in path else b"GET / HTTP/1.0\r\n\r\n")
            return "OK" in s.recv(64).decode(errors="replace") and path
    attempt(f"command {path}")(connect)

subject("the server, with the job's own token")
TOKEN = pathlib.Path("token").read_text().strip() if not IS_LIST and pathlib.Path("token").exists() else ""


def asks(method, path, body=None):
    def go():
        request = urllib.request.Request(os.environ["WEIR_SERVER"] + "/api/v1" + path, method=method,
                                         data=json.dumps(body).encode() if body is not None else None)
        request.add_header("Authorization", "Bearer " + TOKEN)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return f"{answer.status} {answer.read(60)}"
        except urllib.error.HTTPError as error:
            raise OSError(errno.EACCES, f"{error.code}") from None
    return go


for method, path, body in (
        ("GET", "/users", None), ("POST", "/users", {"name": "eve", "kind": "person", "role": "admin"}),
        ("GET", "/tokens", None), ("POST", "/tokens", {"name": "eve", "role": "admin"}), ("GET", "/jobs", None),
        ("POST", "/jobs", {"name": "x", "kind": "command", "spec": {"argv": ["true"]}}),
        ("GET", f"/jobs/{T['victim_job']}", None), ("POST", f"/jobs/{T['victim_job']}/cancel", {}),
        ("GET", f"/tasks/{T['victim_task']}/attempts/1/log", None), ("PUT", f"/nodes/{T['node']}", {"cpu_slots": 1}),
        ("GET", f"/nodes/{T['node']}/desired", None), ("GET", "/decisions", None), ("GET", "/events", None),
        ("GET", "/datasets", None), ("DELETE", "/projects/default", None)):
    attempt(f"{method} /api/v1{path}")(asks(method, path, body))


def run(function):
    """In a process of its own, which may be killed by what it tries."""
    source, sink = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(10)
        try:
            got = function()
            text = {"got": str(got) if got else None, "answer": "nothing there"}
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            text = {"got": None, "answer": str(error)}
        os.write(sink, json.dumps(text).encode()[:4000])
        os._exit(0)
    os.close(sink)
    text = b""
    while chunk := os.read(source, 4096):
        text += chunk
    os.close(source)
    os.waitpid(pid, 0)
    return json.loads(text) if text else {"got": None, "answer": "killed"}


if IS_LIST:
    by_subject = {}
    for about, name, _ in ATTEMPTS:
        by_subject.setdefault(about, {})[name.partition(" (")[0]] = None  # of all hierarchies of control groups: one
    print(json.dumps({about: list(names) for about, names in by_subject.items()}))
    sys.exit(0)
for _, name, function in ATTEMPTS:
    print(json.dumps({"attempt": name, **run(function)}), flush=True)
# What the agent must not follow when it ships the log and removes the folder.
os.symlink("/etc/shadow", "log")
os.symlink(STATE, "state")
os.mkfifo("fifo")
os.makedirs("closed/in")
os.chmod("closed", 0)
subprocess.Popen(["setsid", "sh", "-c", "unset WEIR_TASK_KEY; exec sleep 1000"])
print(json.dumps({"attempt": "end", "got": None}), flush=True)
sys.exit(0)

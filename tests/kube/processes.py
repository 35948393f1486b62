"""Containers as processes: a thread for each pod runs its init containers one after another, then all its containers.

Each process has a session of its own and dies with the thread that started it, so with the test; a guard kills what is left
of its session. When it ends by itself, what it left behind in its session is killed, as a container's end does.
"""
import ctypes
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

from .containers import NotReady, Plan, Translation, Volumes

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)
MESSAGE_MAX = 4096


def die_with_parent():
    """In a child: SIGKILL when the thread that started it has ended."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def parents():
    """The parent of each process."""
    found = {}
    for path in pathlib.Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                text = (path / "stat").read_text(encoding="latin-1")
            except OSError:
                continue
            found[int(path.name)] = int(text.rpartition(")")[2].split()[1])
    return found


def descendants(pid):
    """The processes below one, and itself."""
    found = parents()
    children = {}
    for child, parent in found.items():
        children.setdefault(parent, []).append(child)
    tree, left = [], [pid]
    while left:
        one = left.pop()
        tree.append(one)
        left += children.get(one, [])
    return tree


def kill_quietly(pid, how):
    try:
        os.kill(pid, how)
    except OSError:
        pass


GUARD = """
import os, pathlib, signal, sys
sessions = set()
for line in sys.stdin:
    (sessions.add if line[0] == "+" else sessions.discard)(int(line[1:]))
for path in pathlib.Path("/proc").iterdir():
    if path.name.isdigit():
        try:
            if int((path / "stat").read_text(encoding="latin-1").rpartition(")")[2].split()[3]) in sessions:
                os.kill(int(path.name), signal.SIGKILL)
        except OSError:
            pass
"""


class Guard:
    """A process that is told of the sessions of containers, and kills what is left of them when the test has ended in any way."""

    def __init__(self):
        self.process = None
        self.lock = threading.Lock()

    def say(self, sign, session):
        with self.lock:
            if self.process is None:
                self.process = subprocess.Popen([sys.executable, "-c", GUARD], stdin=subprocess.PIPE, start_new_session=True)
            self.process.stdin.write(f"{sign}{session}\n".encode())
            self.process.stdin.flush()

    def stop(self):
        with self.lock:
            if self.process is not None:
                self.process.stdin.close()
                self.process.wait()
                self.process = None


class Process:
    """One run of a container. The thread that makes it must live as long as it."""

    def __init__(self, plan, log, guard):
        self.process = subprocess.Popen(plan.argv, env=plan.environment, cwd=plan.folder, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
                                        preexec_fn=die_with_parent)
        self.guard = guard
        guard.say("+", self.process.pid)
        self.reader = threading.Thread(target=self.read, args=(log,), daemon=True)
        self.reader.start()

    def read(self, log):
        for line in self.process.stdout:
            log.write(line)

    def terminate(self):
        if self.process.poll() is None:
            kill_quietly(self.process.pid, signal.SIGTERM)

    def kill(self):
        """Kill it and all below it."""
        if self.process.poll() is None:
            for pid in descendants(self.process.pid):
                kill_quietly(pid, signal.SIGKILL)

    def wait(self):
        """Its exit code as a container's; what it left behind in its session is killed."""
        code = self.process.wait()
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except OSError:
            pass
        self.guard.say("-", self.process.pid)
        self.reader.join(timeout=2)
        self.process.stdout.close()
        return code if code >= 0 else 128 - code


class PodWorker(threading.Thread):
    """Runs one pod."""

    def __init__(self, kubelet, pod, state):
        super().__init__(name=f"pod {state.key}", daemon=True)
        self.kubelet, self.pod, self.state = kubelet, pod, state
        self.folder = pathlib.Path(kubelet.folder) / "pods" / state.uid
        self.volumes = Volumes(kubelet.store, pod, self.folder, pathlib.Path(kubelet.folder) / "claims", kubelet.make_token)
        self.running = {}  # processes by the container's name
        self.lock = threading.Lock()
        self.must_stop = threading.Event()
        self.killer = None
        self.has_ended = False

    # ---- called by others ---------------------------------------------------------------------------

    def stop(self, deadline):
        """SIGTERM now, SIGKILL at a deadline; earlier when it is called again with an earlier one."""
        is_first = not self.must_stop.is_set()
        self.must_stop.set()
        with self.lock:
            processes = list(self.running.values())
            if self.killer is not None:
                self.killer.cancel()
            self.killer = threading.Timer(max(0.0, deadline - time.monotonic()), self.kill_all)
            self.killer.daemon = True
            self.killer.start()
        if is_first:
            for process in processes:
                process.terminate()

    def kill_all(self):
        with self.lock:
            processes = list(self.running.values())
        for process in processes:
            process.kill()

    def kill(self, name):
        with self.lock:
            process = self.running.get(name)
        if process is not None:
            process.kill()

    def is_over(self):
        return self.has_ended

    # ---- the pod ------------------------------------------------------------------------------------

    def run(self):
        try:
            self.run_pod()
        finally:
            self.has_ended = True
            if self.killer is not None:
                self.killer.cancel()
            self.kubelet.publish(self.state)
            self.kubelet.add(self.state.key, 0.0)

    def run_pod(self):
        self.kubelet.publish(self.state)
        if not self.mount():
            return
        for container in self.state.init:
            if not self.run_container(container):
                return
        threads = [threading.Thread(target=self.run_container, args=(one,), daemon=True) for one in self.state.main]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def mount(self):
        """Realise the volumes, when all that they need is there; False: the pod is to stop."""
        while not self.must_stop.is_set():
            try:
                self.volumes.realise()
                return True
            except NotReady as problem:
                volume = next(one["name"] for one in self.pod["spec"]["volumes"] if one["name"] not in self.volumes.places)
                self.kubelet.failed_mount(self.pod, volume, problem)
            self.must_stop.wait(self.kubelet.retry_seconds)
        return False

    def run_container(self, container):
        """Run a container, again where its pod's policy wants it; True when it ended well."""
        while not self.must_stop.is_set():
            plan = self.plan(container)
            if plan is None:
                continue
            code = self.run_once(container, plan)
            self.kubelet.publish(self.state)
            if not self.runs_again(container, code):
                return code == 0
            self.wait_before_restart(container)
        return False

    def runs_again(self, container, code):
        policy = self.state.restart_policy
        if self.must_stop.is_set() or policy == "Never":
            return False
        return code != 0 or policy == "Always" and container in self.state.main

    def wait_before_restart(self, container):
        container.last = container.state
        namespace, name = self.state.key
        container.wait_for("CrashLoopBackOff", f"back-off 10s restarting failed container={container.name} "
                                               f"pod={name}_{namespace}({self.state.uid})")
        self.kubelet.publish(self.state)
        self.must_stop.wait(self.kubelet.restart_seconds)
        if self.must_stop.is_set():
            container.state = container.last
        container.restarts += 1

    def plan(self, container):
        """What to start; None after a while when something is missing."""
        try:
            if self.kubelet.wait_for_image(self.pod, container):
                folder = self.folder / "root" / container.name
                translation = Translation(container.spec, self.volumes, self.termination_log(container),
                                          self.kubelet.image_paths.get(container.image))
                plan = Plan(self.kubelet.store, self.pod, container.spec, translation, self.kubelet.images[container.image],
                            self.kubelet.entrypoints.get(container.image, []), folder)
                devices = self.kubelet.devices.environment(self.state.devices.get(container.name))
                plan.environment = {**self.kubelet.more_environment, **devices, **plan.environment}
                return plan
        except NotReady as problem:
            container.wait_for(problem.reason, str(problem))
        self.kubelet.publish(self.state)
        self.must_stop.wait(self.kubelet.retry_seconds)
        return None

    def termination_log(self, container):
        path = self.folder / "termination" / container.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        return path

    def run_once(self, container, plan):
        container.begin()
        try:
            with self.lock:
                process = self.running[container.name] = Process(plan, container.log, self.kubelet.guard)
        except OSError as problem:
            container.end(128, "StartError", "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc "
                          f'create failed: unable to start container process: exec: "{plan.argv[0]}": {problem.strerror.lower()}: unknown')
            return 128
        if self.must_stop.is_set():
            process.terminate()
        self.kubelet.publish(self.state)
        code = process.wait()
        with self.lock:
            del self.running[container.name]
        message = self.termination_log(container).read_text(encoding="utf-8", errors="replace")[:MESSAGE_MAX]
        container.end(code, message=message)
        return code

"""The kubelet of all nodes: it runs pods that have a node and says in their status how they fare.

mode "pretend": containers only seem to run. A pod goes to Running and ends as finish() says, or as `plan` says, a function
of the pod that gives (seconds, exit code) or None.
mode "process": containers are processes of this machine (processes.py).
"""
import threading
import time

from . import pods, values
from .containers import NotReady, data_of, environment_of
from .devices import Devices, Unavailable
from .loops import Loop
from .processes import Guard, PodWorker

LOG_MAX_LINES = 200000


class Log:
    """The lines of a container's log, with the time of each."""

    def __init__(self):
        self.condition = threading.Condition()
        self.kept, self.is_over = [], False

    def write(self, line):
        with self.condition:
            if len(self.kept) < LOG_MAX_LINES:
                self.kept.append((time.time(), line))
            self.condition.notify_all()

    def end(self):
        with self.condition:
            self.is_over = True
            self.condition.notify_all()

    def lines(self):
        with self.condition:
            return list(self.kept)

    def wait(self, begun, seconds):
        """(lines from a number on, whether no more will come); waits for them a while."""
        with self.condition:
            if len(self.kept) <= begun and not self.is_over:
                self.condition.wait(seconds)
            return self.kept[begun:], self.is_over


class Container:
    """What the kubelet knows of one container."""

    def __init__(self, spec, pod_uid):
        self.spec, self.name, self.image = spec, spec["name"], spec["image"]
        self.state = {"waiting": {"reason": "ContainerCreating"}}
        self.last = {}
        self.restarts = 0
        self.log, self.previous_log = None, None
        self.id = f"containerd://{pod_uid.replace('-', '')}{abs(hash(self.name)) % 10 ** 8:08d}"
        self.oom = False  # it was killed for memory

    def begin(self):
        self.state = {"running": {"startedAt": values.time_text()}}
        self.previous_log, self.log = self.log, Log()

    def wait_for(self, reason, message=""):
        self.state = {"waiting": {"reason": reason, **({"message": message} if message else {})}}

    def end(self, code, reason=None, message=""):
        started = (self.state.get("running") or {}).get("startedAt") or values.time_text()
        if reason is None:
            reason = "OOMKilled" if self.oom else "Completed" if code == 0 else "Error"
        if code and not message and self.log is not None and self.spec.get("terminationMessagePolicy") == "FallbackToLogsOnError":
            message = b"".join(line for _, line in self.log.lines()[-80:])[-2048:].decode(errors="replace")
        record = {"exitCode": code, "reason": reason, "startedAt": started, "finishedAt": values.time_text(), "containerID": self.id}
        if message:
            record["message"] = message
        self.state = {"terminated": record}
        if self.log is not None:
            self.log.end()

    def is_running(self):
        return "running" in self.state

    def code(self):
        """Its exit code; None while it has not ended."""
        ended = self.state.get("terminated")
        return None if ended is None else ended["exitCode"]

    def status(self):
        has_begun = self.log is not None
        return {"name": self.name, "state": self.state, "lastState": self.last, "ready": self.is_running(), "restartCount": self.restarts,
                "image": self.image, "imageID": f"{self.image}@sha256:0" if has_begun else "", "started": self.is_running(),
                **({"containerID": self.id} if has_begun else {})}


class PodState:
    """What the kubelet knows of one pod."""

    def __init__(self, pod):
        uid = pod["metadata"]["uid"]
        self.uid, self.key = uid, (pod["metadata"]["namespace"], pod["metadata"]["name"])
        self.init = [Container(one, uid) for one in pod["spec"].get("initContainers") or []]
        self.main = [Container(one, uid) for one in pod["spec"]["containers"]]
        for one in self.main if self.init else ():
            one.wait_for("PodInitializing")
        self.start_time = values.time_text()
        self.deadline = pod["spec"].get("activeDeadlineSeconds")
        self.restart_policy = pod["spec"].get("restartPolicy")
        self.reason, self.message = None, None  # why the pod as a whole failed
        self.stop_at = None  # when what still runs is to be killed
        self.worker = None
        self.has_begun = False
        self.devices = {}  # names of devices by the name of the container
        self.environments = {}  # in mode "pretend", by the name of the container

    def containers(self):
        return self.init + self.main

    def phase(self):
        if self.reason:
            return "Failed"
        if any(one.code() not in (None, 0) for one in self.init) and self.restart_policy == "Never":
            return "Failed"
        codes = [one.code() for one in self.main]
        if None not in codes and (self.restart_policy != "Always" or self.stop_at is not None):
            if not any(codes):
                return "Succeeded"
            if self.restart_policy == "Never" or self.stop_at is not None:
                return "Failed"
        if any(one.log is not None for one in self.main):
            return "Running"
        return "Pending"

    def write(self, obj):
        """Give a pod its status."""
        status = obj["status"]
        before = repr(status)
        phase = self.phase()
        status.update({"phase": phase, "hostIP": "127.0.0.1", "startTime": self.start_time,
                       "containerStatuses": [one.status() for one in self.main]})
        if self.init:
            status["initContainerStatuses"] = [one.status() for one in self.init]
        if any(one.log is not None for one in self.containers()):
            status.update({"podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]})
        for key, value in (("reason", self.reason), ("message", self.message)):
            if value:
                status[key] = value
        self.write_conditions(obj, phase)
        return repr(status) != before

    def write_conditions(self, obj, phase):
        completed = "PodCompleted" if phase == "Succeeded" else "PodFailed" if phase == "Failed" else None
        is_initialized = all(one.code() == 0 for one in self.init)
        pods.set_condition(obj, "Initialized", "True" if is_initialized else "False",
                           (completed if phase == "Succeeded" else "") if is_initialized else "ContainersNotInitialized")
        unready = [one.name for one in self.main if not one.is_running()]
        why = (completed or "ContainersNotReady") if unready else ""
        message = f"containers with unready status: [{' '.join(unready)}]" if unready and not completed else ""
        for kind in ("Ready", "ContainersReady"):
            pods.set_condition(obj, kind, "False" if unready else "True", why, message)


class Kubelet(Loop):
    def __init__(self, api, folder, tokens):
        super().__init__("kubelet", api)
        self.folder, self.tokens = folder, tokens
        self.mode = "pretend"
        self.plan = None
        self.prints = None  # in mode "pretend": a function of (pod, container, environment) that gives the lines of its log
        self.devices = Devices(self.store)
        self.images = {}  # folders for PATH by image, in mode "process"
        self.image_paths = {}  # {image: {path in it: folder of this machine}}, where a path is asked for
        self.entrypoints = {}  # what is run of an image where a container has no command, as lists of words
        self.missing_images = set()  # in mode "pretend"
        self.more_environment = {}  # variables that every process gets beside its pod's: KUBERNETES_SERVICE_HOST, say
        self.dead_nodes = set()  # names of nodes whose kubelet does nothing
        self.restart_seconds = 0.05  # before a container is started again; the real one waits 10 s, then twice as long each time
        self.retry_seconds = 0.1  # before an image or a volume is looked for again
        self.stop_seconds = 0.0  # that a pod which only seems to run takes to end after SIGTERM
        self.states = {}  # by uid
        self.account_tokens = {}
        self.guard = Guard()

    def follow(self, resource_key, event):
        if resource_key != "pods":
            return
        if event.new is None:
            self.add(("gone", event.old.obj["metadata"]["uid"]), 0.0)
        elif event.new.obj["spec"].get("nodeName") and (event.old is None or self.concerns(event.old.obj, event.new.obj)):
            self.add(event.new.key)

    @staticmethod
    def concerns(old, new):
        """Did anything change that a kubelet looks at?"""
        return (old["spec"] != new["spec"] or old["metadata"].get("deletionTimestamp") != new["metadata"].get("deletionTimestamp")
                or old["metadata"].get("deletionGracePeriodSeconds") != new["metadata"].get("deletionGracePeriodSeconds"))

    def sync(self, key):
        if key[0] == "gone":
            self.end_gone(key[1])
            return
        item = self.store.get("pods", *key)
        if item is None or item.obj["spec"].get("nodeName") in self.dead_nodes:
            return
        pod = item.obj
        uid = pod["metadata"]["uid"]
        state = self.states.get(uid)
        if state is None:
            if pods.has_ended(pod):
                self.remove_if_deleted(pod, None)
                return
            state = self.states[uid] = PodState(pod)
            self.admit(pod, state)
        if pod["metadata"].get("deletionTimestamp"):
            self.stop_pod(pod, state)
        elif pods.has_ended(pod) or state.reason:
            return
        elif self.mode == "process":
            self.start_worker(pod, state)
        else:
            self.pretend(pod, state)
        self.watch_deadline(pod, state)

    def admit(self, pod, state):
        """Have devices for a pod; without them it fails."""
        try:
            state.devices = self.devices.give(pod)
        except Unavailable as problem:
            state.reason, state.message = "UnexpectedAdmissionError", f"Pod was rejected: {problem}"
            self.publish(state)

    def publish(self, state):
        """Write what is known of a pod into its status."""
        def change(obj):
            if obj["metadata"]["uid"] != state.uid or pods.has_ended(obj):
                return False
            return state.write(obj)
        self.api.change("pods", *state.key, change)

    def record(self, pod, kind, reason, message):
        self.api.record(self.api.resource("pods"), pod, kind, reason, message, "kubelet")

    # ---- waiting for what a pod needs ---------------------------------------------------------------

    def has_image(self, image):
        return image in self.images if self.mode == "process" else image not in self.missing_images

    def wait_for_image(self, pod, container):
        """Say that an image is not there; True when it is."""
        if self.has_image(container.image):
            return True
        name = container.image if "/" in container.image else f"docker.io/library/{container.image}"
        if container.spec.get("imagePullPolicy") == "Never":
            container.wait_for("ErrImageNeverPull", f'Container image "{container.image}" is not present with pull policy of Never')
        elif (container.state.get("waiting") or {}).get("reason") in ("ErrImagePull", "ImagePullBackOff"):
            container.wait_for("ImagePullBackOff", f'Back-off pulling image "{container.image}"')
            self.record(pod, "Normal", "BackOff", f'Back-off pulling image "{container.image}"')
        else:
            message = (f'rpc error: code = NotFound desc = failed to pull and unpack image "{name}": failed to resolve reference "{name}": '
                       f"{name}: not found")
            container.wait_for("ErrImagePull", message)
            self.record(pod, "Warning", "Failed", f'Failed to pull image "{container.image}": {message}')
        return False

    def volume_problem(self, pod):
        """Why the volumes of a pod cannot be mounted; None when they can."""
        for volume in pod["spec"].get("volumes") or []:
            for kind, name_key in (("secret", "secretName"), ("configMap", "name")):
                source = volume.get(kind)
                if source and not source.get("optional") and data_of(self.store, kind.lower(), pod["metadata"]["namespace"],
                                                                     source.get(name_key, "")) is None:
                    return volume["name"], f'{kind.lower()} "{source.get(name_key, "")}" not found'
        return None

    def failed_mount(self, pod, volume, problem):
        self.record(pod, "Warning", "FailedMount", f'MountVolume.SetUp failed for volume "{volume}" : {problem}')

    # ---- pretending ---------------------------------------------------------------------------------

    def pretend(self, pod, state):
        if state.has_begun:
            return
        problem = self.volume_problem(pod)
        if problem is not None:
            self.failed_mount(pod, *problem)
        missing = [one for one in state.containers() if not self.wait_for_image(pod, one) or not self.has_environment(pod, state, one)]
        if problem is not None or missing:
            self.publish(state)
            self.add(state.key, self.retry_seconds)
            return
        state.has_begun = True
        for one in state.init:
            one.begin()
            one.end(0)
        for one in state.main:
            one.begin()
            for line in self.prints(pod, one.spec, state.environments[one.name]) if self.prints else ():
                one.log.write(f"{line}\n".encode())
        self.publish(state)
        planned = self.plan(pod) if self.plan else None
        if planned is not None:
            timer = threading.Timer(planned[0], self.finish, (*state.key, planned[1]))
            timer.daemon = True
            timer.start()

    def has_environment(self, pod, state, container):
        """Say what of a container's variables is not there; True when all is. Devices come first: what a pod says stands before them."""
        try:
            state.environments[container.name] = {**self.devices.environment(state.devices.get(container.name)),
                                                  **environment_of(self.store, pod, container.spec)}
            return True
        except NotReady as problem:
            container.wait_for(problem.reason, str(problem))
            return False

    def finish(self, namespace, name, code=0, reason=None, message="", container=None):
        """End a pod that only seems to run, or one of its containers. True when it ran."""
        item = self.store.get("pods", namespace, name)
        state = self.states.get(item.obj["metadata"]["uid"]) if item else None
        if state is None:
            return False
        running = [one for one in state.main if one.is_running() and container in (None, one.name)]
        for one in running:
            one.end(code, reason, message)
            self.restart_pretended(state, one, code)
        self.publish(state)
        return bool(running)

    def restart_pretended(self, state, container, code):
        if state.restart_policy == "Always" or state.restart_policy == "OnFailure" and code:
            container.last = container.state
            container.restarts += 1
            container.begin()

    # ---- ends ---------------------------------------------------------------------------------------

    def stop_pod(self, pod, state):
        """A deleted pod gets SIGTERM, and SIGKILL after its grace; then it is removed."""
        grace = pod["metadata"].get("deletionGracePeriodSeconds", 0)
        stop_at = time.monotonic() + (grace if state.worker else min(grace, self.stop_seconds))
        state.stop_at = stop_at if state.stop_at is None else min(state.stop_at, stop_at)
        if state.worker is not None:
            state.worker.stop(state.stop_at)
            if not state.worker.is_over():
                return  # the worker adds the pod again
        elif time.monotonic() < state.stop_at:
            self.add(state.key, state.stop_at - time.monotonic())
            return
        for one in state.containers():
            if one.code() is None:
                one.end(137 if one.log is None else 143)
        self.publish(state)
        self.remove_if_deleted(pod, state)

    def remove_if_deleted(self, pod, state):
        """Let the server remove a pod that was deleted and has ended."""
        metadata = pod["metadata"]
        with self.store.lock:
            item = self.store.get("pods", metadata["namespace"], metadata["name"])
            if item is not None and item.obj["metadata"]["uid"] == metadata["uid"] and item.obj["metadata"].get("deletionTimestamp"):
                self.api.delete(self.api.resource("pods"), metadata["namespace"], metadata["name"], {"gracePeriodSeconds": 0})

    def end_gone(self, uid):
        """A pod was removed by force: what still runs of it is killed."""
        state = self.states.pop(uid, None)
        if state is not None and state.worker is not None:
            state.worker.stop(time.monotonic())

    def watch_deadline(self, pod, state):
        """A pod may be active for activeDeadlineSeconds."""
        if state.deadline is None or state.reason or pods.has_ended(pod):
            return
        left = values.seconds_of(state.start_time) + state.deadline - time.time()
        if left > 0:
            self.add(state.key, left)
            return
        state.reason, state.message = "DeadlineExceeded", "Pod was active on the node longer than the specified deadline"
        if state.worker is not None:
            state.worker.stop(time.monotonic())
        for one in state.main:
            if one.code() is None and state.worker is None:
                one.end(143)
        self.publish(state)

    # ---- processes ----------------------------------------------------------------------------------

    def start_worker(self, pod, state):
        if state.worker is None:
            state.worker = PodWorker(self, pod, state)
            state.worker.start()

    def make_token(self, pod):
        """The token of a pod's service account."""
        namespace, name = pod["metadata"]["namespace"], pod["spec"].get("serviceAccountName", "default")
        if (namespace, name) not in self.account_tokens:
            token = self.account_tokens[namespace, name] = "sa-" + values.suffix(40)
            self.tokens.set_service_account(token, namespace, name)
        return self.account_tokens[namespace, name]

    def stop_all(self):
        """Kill all that runs: the cluster ends."""
        workers = [state.worker for state in list(self.states.values()) if state.worker is not None]
        for worker in workers:
            worker.stop(time.monotonic())
        for worker in workers:
            worker.join(timeout=5)
        self.guard.stop()

    # ---- for tests and for logs ---------------------------------------------------------------------

    def container(self, namespace, name, container=None):
        """What is known of a container; None when its pod has no kubelet yet."""
        item = self.store.get("pods", namespace, name)
        state = self.states.get(item.obj["metadata"]["uid"]) if item else None
        if state is None:
            return None
        return next((one for one in state.containers() if container in (None, one.name) and (container or one in state.main)), None)

    def environment(self, namespace, name):
        """What the first container of a pod was given, in mode "pretend"; None while it has not begun."""
        item = self.store.get("pods", namespace, name)
        state = self.states.get(item.obj["metadata"]["uid"]) if item else None
        return state.environments.get(state.main[0].name) if state and state.has_begun else None

    def log_of(self, pod, name, previous):
        found = self.container(pod["metadata"]["namespace"], pod["metadata"]["name"], name)
        if found is None:
            return None
        return found.previous_log if previous else found.log

    def out_of_memory(self, namespace, name, container=None):
        """Kill a container as the kernel does when it has used all its memory."""
        found = self.container(namespace, name, container)
        if found is None or not found.is_running():
            return False
        found.oom = True
        state = self.states[self.store.get("pods", namespace, name).obj["metadata"]["uid"]]
        if state.worker is not None:
            state.worker.kill(found.name)
            return True
        return self.finish(namespace, name, 137, container=found.name)

"""A Kubernetes cluster for tests: API server, controllers, scheduler and kubelet in this process, on a port of 127.0.0.1.

    with Cluster(nodes=3) as cluster:
        cluster.kubeconfig                        # path of a kubeconfig for the user `admin`, who may do all
        cluster.kubeconfig_for("weir")            # one for another user, with a token of its own
        cluster.allow("weir", ["get", "list"], ["pods"], namespace="default")
        cluster.faults.on("throttle", count=3)    # faults.py lists them
        cluster.finish("default", "pod-1", 1)     # a container that only seems to run ends
        assert not cluster.complaints             # no request had a field that the API does not know

By hand:  python3 -m tests.kube.cluster --dir DIR [--nodes N] [--process IMAGE=FOLDER ...]
"""
import argparse
import json
import pathlib
import shutil
import signal
import ssl
import tempfile
import time

from . import controllers, rbac, values, volumes
from .api import Api, Writing
from .certificates import Authority
from .faults import Faults
from .jobs import JobController
from .kubelet import Kubelet
from .pods import Pods, is_ready, set_condition
from .resources import Catalogue
from .scheduler import UNSCHEDULABLE, Scheduler
from .server import Server
from .status import ApiError
from .store import Store

ADMIN_TOKEN = "admin-token"
UNREACHABLE = "node.kubernetes.io/unreachable"


class Cluster:
    """See above. Parts that tests may turn: `api`, `store`, `tokens`, `faults`, `server`, and the loops `jobs`, `scheduler`,
    `kubelet`, `namespaces`, `garbage`, `taints`, `quotas`, `budgets`, `claims`, `definitions`, `kueue` (loops.py: switch(),
    delay). `dir`: where files and pods' folders are; a temporary folder that is removed at the end when it is None.
    """

    def __init__(self, dir=None, nodes=1, mode="pretend", images=None, seed=1):
        self.is_own_dir = dir is None
        self.dir = pathlib.Path(dir or tempfile.mkdtemp(prefix="weir-kube-")).resolve()
        self.dir.mkdir(parents=True, exist_ok=True)
        self.complaints = []  # unknown fields of requests, one sentence each
        self.faults = Faults(seed)
        self.store = Store()
        self.tokens = rbac.Tokens()
        self.api = Api(self.store, Catalogue(), self.faults, self.complaints)
        self.pods = Pods(self.api)
        self.authority = Authority()
        self.make_loops(mode, images or {})
        self.server = Server(self.api, self.tokens, self.pods, self.tls_context())
        self.store.listeners += [loop.follow for loop in self.loops]
        self.faults.go_away, self.faults.come_back = self.server.listener.close, self.server.listener.open
        self.faults.wake = self.server.wake
        self.n_nodes = nodes

    def make_loops(self, mode, images):
        self.kubelet = self.pods.kubelet = Kubelet(self.api, self.dir, self.tokens)
        self.kubelet.mode, self.kubelet.images = mode, images
        self.jobs, self.scheduler = JobController(self.api), Scheduler(self.api, self.pods)
        self.namespaces = controllers.Namespaces(self.api, self.authority.certificate)
        self.garbage, self.taints = controllers.GarbageCollector(self.api), controllers.Taints(self.api)
        self.quotas, self.budgets = controllers.Quotas(self.api), controllers.Budgets(self.api)
        self.claims, self.definitions = volumes.Volumes(self.api), controllers.Definitions(self.api)
        self.kueue = controllers.Kueue(self.api)
        self.loops = [self.kubelet, self.jobs, self.scheduler, self.namespaces, self.garbage, self.taints, self.quotas, self.budgets,
                      self.claims, self.definitions, self.kueue]

    # ---- start and stop -----------------------------------------------------------------------------

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        for loop in self.loops:
            loop.start()
        for resource_key, obj in rbac.bootstrap():
            self.create(resource_key, obj)
        for name in ("default", "kube-system", "kube-public", "kube-node-lease"):
            self.create("namespaces", {"metadata": {"name": name}})
        self.wait(lambda: self.store.get("serviceaccounts", "default", "default"), 5, "the default service account")
        self.tokens.set(ADMIN_TOKEN, "admin", [rbac.MASTERS])
        self.server.listener.open()
        (self.dir / "ca.crt").write_text(self.authority.certificate, encoding="ascii")
        self.kubeconfig = self.write_kubeconfig("admin", {"token": ADMIN_TOKEN})
        for i in range(self.n_nodes):
            self.add_node(f"node-{i + 1}")

    def stop(self):
        """End all; twice is harmless."""
        self.faults.off()
        self.server.listener.close()
        self.kubelet.stop_all()
        for loop in self.loops:
            loop.stop()
            if loop.is_alive():
                loop.join(timeout=5)
        if self.is_own_dir:
            shutil.rmtree(self.dir, ignore_errors=True)

    def tls_context(self):
        certificate, key = self.authority.pair("kube-apiserver", (), ["localhost", "kubernetes.default.svc"], ["127.0.0.1"])
        (self.dir / "server.pem").write_text(certificate + key, encoding="ascii")
        (self.dir / "ca.crt").write_text(self.authority.certificate, encoding="ascii")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.dir / "server.pem")
        context.load_verify_locations(self.dir / "ca.crt")
        context.verify_mode = ssl.CERT_OPTIONAL
        context.set_alpn_protocols(["http/1.1"])
        return context

    @property
    def port(self):
        return self.server.listener.port

    @property
    def url(self):
        return f"https://127.0.0.1:{self.port}"

    @property
    def requests(self):
        """Every request: method, path, query, user, status, when."""
        return self.server.requests

    @property
    def images(self):
        """Folders for PATH by image, in mode "process"."""
        return self.kubelet.images

    def failures(self):
        """What went wrong in this double itself: tracebacks."""
        return [text for loop in self.loops for text in loop.failures] + self.server.failures

    # ---- who may ask --------------------------------------------------------------------------------

    def write_kubeconfig(self, user, credentials, namespace="default"):
        """A kubeconfig, in the part of YAML that is JSON."""
        path = self.dir / f"{user}.kubeconfig".replace(":", "-")
        config = {"apiVersion": "v1", "kind": "Config", "current-context": "test",
                  "clusters": [{"name": "test", "cluster": {"server": self.url, "certificate-authority": str(self.dir / "ca.crt")}}],
                  "contexts": [{"name": "test", "context": {"cluster": "test", "user": user, "namespace": namespace}}],
                  "users": [{"name": user, "user": credentials}]}
        path.write_text(json.dumps(config, indent=1), encoding="ascii")
        return path

    def kubeconfig_for(self, user, groups=(), namespace="default", token=None):
        """The kubeconfig of a user with a bearer token."""
        token = token or f"token-{values.suffix(20)}"
        self.tokens.set(token, user, groups)
        return self.write_kubeconfig(user, {"token": token}, namespace)

    def kubeconfig_with_certificate(self, user, groups=(), namespace="default"):
        """The kubeconfig of a user with a client certificate."""
        certificate, key = self.authority.pair(user, groups)
        paths = [self.dir / f"{user}.{kind}".replace(":", "-") for kind in ("crt", "key")]
        for path, text in zip(paths, (certificate, key)):
            path.write_text(text, encoding="ascii")
        return self.write_kubeconfig(user, {"client-certificate": str(paths[0]), "client-key": str(paths[1])}, namespace)

    def service_account_token(self, namespace, name):
        """A token of a service account, which need not be there yet."""
        return self.kubelet.make_token({"metadata": {"namespace": namespace}, "spec": {"serviceAccountName": name}})

    def allow(self, user, verbs, what, groups=("*",), namespace=None, names=None, kind="User"):
        """Bind a role of these verbs and resources to a user: in a namespace, or in the cluster."""
        rule = {"verbs": list(verbs), "apiGroups": list(groups), "resources": list(what), **({"resourceNames": names} if names else {})}
        name = f"allow-{values.suffix(8)}"
        prefix = "" if namespace else "cluster"
        subject = {"kind": kind, "name": user}
        if kind == "ServiceAccount":
            subject["namespace"], subject["name"] = user.split(":")
        self.create(f"{prefix}roles.{rbac.GROUP}", {"metadata": {"name": name}, "rules": [rule]}, namespace)
        self.create(f"{prefix}rolebindings.{rbac.GROUP}", {
            "metadata": {"name": name}, "subjects": [subject],
            "roleRef": {"apiGroup": rbac.GROUP, "kind": "Role" if namespace else "ClusterRole", "name": name}}, namespace)
        return name

    # ---- objects, past HTTP -------------------------------------------------------------------------

    def create(self, resource_key, obj, namespace=None):
        """Create an object as a controller does: "pods", "jobs.batch"; what is stored."""
        namespace = namespace or obj["metadata"].get("namespace") or "default"
        resource = self.api.resource(resource_key)
        obj = json.loads(json.dumps(obj))
        return self.api.create(resource, namespace if resource.namespaced else "", obj, Writing()).copy()

    def get(self, resource_key, name, namespace="default"):
        """A copy of an object; None when it is not there."""
        resource = self.api.resource(resource_key)
        with self.store.lock:
            item = self.store.get(resource_key, namespace if resource.namespaced else "", name)
            return item.copy() if item else None

    def list(self, resource_key, namespace=None):
        """All objects of a resource. They are the store's own: do not change them."""
        return self.store.objects(resource_key, namespace)

    def wait(self, condition, seconds=10, what="the condition"):
        """The first true value of condition(); AssertionError after so many seconds."""
        deadline = time.monotonic() + seconds
        while not (value := condition()):
            if time.monotonic() > deadline:
                raise AssertionError(f"not within {seconds} s: {what}")
            time.sleep(0.005)
        return value

    def wait_phase(self, name, phase, namespace="default", seconds=10):
        """Wait until a pod is in a phase."""
        def reached():
            pod = self.get("pods", name, namespace)
            return pod if pod and pod["status"].get("phase") == phase else None
        return self.wait(reached, seconds, f"pod {name} {phase}")

    def install_kueue(self):
        """Serve the group kueue.x-k8s.io; its stand-in is `kueue`. Returns when the paths are there."""
        free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        for plural, kind, scope in (("clusterqueues", "ClusterQueue", "Cluster"), ("localqueues", "LocalQueue", "Namespaced"),
                                    ("workloads", "Workload", "Namespaced")):
            version = {"name": "v1beta1", "served": True, "storage": True, "schema": {"openAPIV3Schema": free}, "subresources": {"status": {}}}
            self.create("customresourcedefinitions.apiextensions.k8s.io", {"metadata": {"name": f"{plural}.kueue.x-k8s.io"}, "spec": {
                "group": "kueue.x-k8s.io", "scope": scope, "names": {"plural": plural, "kind": kind}, "versions": [version]}})
        self.wait(lambda: len([one for one in list(self.api.catalogue.resources) if one[0] == "kueue.x-k8s.io"]) == 3)

    # ---- nodes --------------------------------------------------------------------------------------

    def add_node(self, name, cpu="16", memory="64Gi", gpus=0, labels=None, taints=None, pods="110", more=None):
        """A node that is ready."""
        capacity = {"cpu": cpu, "memory": memory, "pods": pods, "ephemeral-storage": "100Gi", **(more or {})}
        if gpus:
            capacity["nvidia.com/gpu"] = str(gpus)
        now = values.time_text()
        condition = {"type": "Ready", "status": "True", "lastHeartbeatTime": now, "lastTransitionTime": now, "reason": "KubeletReady",
                     "message": "kubelet is posting ready status"}
        info = {"kubeletVersion": "v1.26.5", "operatingSystem": "linux", "architecture": "amd64", "osImage": "Debian GNU/Linux 12",
                "kernelVersion": "6.1.0", "containerRuntimeVersion": "containerd://1.6.20", "machineID": name, "systemUUID": name,
                "bootID": name, "kubeProxyVersion": "v1.26.5"}
        basic = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
        return self.create("nodes", {
            "metadata": {"name": name, "labels": {**basic, **(labels or {})}}, "spec": {"taints": taints} if taints else {},
            "status": {"capacity": capacity, "allocatable": dict(capacity), "conditions": [condition], "nodeInfo": info,
                       "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}, {"type": "Hostname", "address": name}]}})

    def change_node(self, name, change):
        """Let a function change a node."""
        return self.api.change("nodes", "", name, change)

    def cordon(self, name, is_on=True):
        """Make a node unschedulable, or schedulable again."""
        def change(node):
            node["spec"].pop("unschedulable", None)
            if is_on:
                node["spec"]["unschedulable"] = True
        self.change_node(name, change)
        if is_on:
            self.taint(name, UNSCHEDULABLE, effect="NoSchedule")
        else:
            self.untaint(name, UNSCHEDULABLE)

    def taint(self, name, key, value=None, effect="NoExecute"):
        """Add a taint to a node; NoExecute deletes the pods that do not tolerate it."""
        taint = {"key": key, "effect": effect, **({"value": value} if value else {})}
        if effect == "NoExecute":
            taint["timeAdded"] = values.time_text()
        self.change_node(name, lambda node: node["spec"].setdefault("taints", []).append(taint))

    def untaint(self, name, key):
        def change(node):
            node["spec"]["taints"] = [one for one in node["spec"].get("taints") or [] if one["key"] != key]
            if not node["spec"]["taints"]:
                del node["spec"]["taints"]
        self.change_node(name, change)

    def drain(self, name):
        """Cordon a node and evict its pods; names of those that a disruption budget protects."""
        self.cordon(name)
        kept = []
        for pod in self.list("pods"):
            if pod["spec"].get("nodeName") == name:
                try:
                    self.pods.evict(pod["metadata"]["namespace"], pod["metadata"]["name"], {})
                except ApiError:  # the budget is spent
                    kept.append(pod["metadata"]["name"])
        return kept

    def delete_node(self, name):
        """Remove a node; its pods have lost it, and go."""
        self.api.delete(self.api.resource("nodes"), "", name)

    def lose_node(self, name, is_lost=True):
        """A node's kubelet falls silent: Ready is Unknown and pods that do not tolerate it go; or it comes back."""
        (self.kubelet.dead_nodes.add if is_lost else self.kubelet.dead_nodes.discard)(name)

        def change(node):
            set_condition(node, "Ready", "Unknown" if is_lost else "True", "NodeStatusUnknown" if is_lost else "KubeletReady",
                          "Kubelet stopped posting node status." if is_lost else "kubelet is posting ready status")
        self.change_node(name, change)
        if is_lost:
            self.taint(name, UNREACHABLE)
            return
        self.untaint(name, UNREACHABLE)
        for pod in self.list("pods"):
            if pod["spec"].get("nodeName") == name:
                self.kubelet.add((pod["metadata"]["namespace"], pod["metadata"]["name"]))

    # ---- pods ---------------------------------------------------------------------------------------

    def finish(self, namespace, name, code=0, reason=None, message="", container=None):
        """In mode "pretend": end a pod's containers, or one of them, with an exit code."""
        return self.kubelet.finish(namespace, name, code, reason, message, container)

    def out_of_memory(self, namespace, name, container=None):
        """Kill a container for memory: OOMKilled, 137."""
        return self.kubelet.out_of_memory(namespace, name, container)

    def write_log(self, namespace, name, text, container=None):
        """In mode "pretend": a container prints something."""
        found = self.kubelet.container(namespace, name, container)
        for line in text.splitlines(keepends=True):
            found.log.write(line.encode())

    def evict(self, namespace, name):
        """Evict a pod by the API. ApiError 429 when a disruption budget is in the way."""
        self.pods.evict(namespace, name, {})

    def delete_pod(self, namespace, name, grace=None):
        """Delete a pod."""
        options = {} if grace is None else {"gracePeriodSeconds": grace}
        self.api.delete(self.api.resource("pods"), namespace, name, options)

    def is_pod_ready(self, namespace, name):
        pod = self.get("pods", name, namespace)
        return pod is not None and is_ready(pod)

    # ---- the server ---------------------------------------------------------------------------------

    def send_bookmarks(self):
        """Send a bookmark to all watches that want some, now; else they come every second."""
        self.server.reader.n_bookmarks += 1
        self.server.wake()

    def compact(self, keep=0):
        """Forget the history: older revisions are then answered 410."""
        self.store.compact(keep)

    def asked(self, method=None, path=None):
        """Requests of a method whose path contains a text."""
        return [one for one in list(self.requests) if method in (None, one.method) and (path is None or path in one.path)]


def main():
    parser = argparse.ArgumentParser(description="Serve a Kubernetes cluster that is a test double.")
    parser.add_argument("--dir", required=True, help="folder for the kubeconfig and for pods")
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--process", action="append", default=[], metavar="IMAGE=FOLDER",
                        help="run containers of this image as processes that find programs in this folder")
    arguments = parser.parse_args()
    images = dict(one.split("=", 1) for one in arguments.process)
    with Cluster(arguments.dir, arguments.nodes, "process" if images else "pretend", images) as cluster:
        print(cluster.kubeconfig, flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})


if __name__ == "__main__":
    main()

"""The smaller controllers: namespaces, the garbage collector, taints and lost nodes, quotas, disruption budgets,
custom resources, and a stand-in for Kueue. Jobs, volumes, the scheduler and the kubelet are files of their own.
"""
import collections
import time

from . import admission, pods, resources, scheduler, values
from .api import CLEANUP
from .jobs import finished
from .loops import Loop

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"


class Namespaces(Loop):
    """Gives a new namespace its service account, and empties one that goes."""

    def __init__(self, api, certificate):
        super().__init__("namespace", api)
        self.certificate = certificate

    def follow(self, resource_key, event):
        if resource_key == "namespaces" and event.new is not None:
            self.add(event.new.key[1])
        elif event.new is None and event.old.key[0]:
            item = self.store.get("namespaces", "", event.old.key[0])
            if item is not None and item.obj["metadata"].get("deletionTimestamp"):
                self.add(event.old.key[0])

    def sync(self, key):
        item = self.store.get("namespaces", "", key)
        if item is None:
            return
        if item.obj["metadata"].get("deletionTimestamp"):
            self.empty(key)
            return
        for resource_key, name, more in (("serviceaccounts", "default", {}),
                                         ("configmaps", "kube-root-ca.crt", {"data": {"ca.crt": self.certificate}})):
            if self.store.get(resource_key, key, name) is None:
                self.api.create(self.api.resource(resource_key), key, {"metadata": {"name": name}, **more})

    def empty(self, namespace):
        """Delete all that is in a namespace, and when nothing is left, the namespace."""
        with self.store.lock:
            for resource in list(self.api.catalogue.resources.values()):
                for key in [key for key in self.store.table(resource.key).items if resource.namespaced and key[0] == namespace]:
                    self.api.delete(resource, *key, {"propagationPolicy": "Background"})
            if any(key[0] == namespace for table in self.store.tables.values() for key in table.items):
                return

            def finish(obj):
                obj["spec"]["finalizers"] = []
            self.api.change("namespaces", "", namespace, finish)


class GarbageCollector(Loop):
    """Deletes what nobody owns any more, orphans what is to be orphaned, and waits for dependents in the foreground."""

    def __init__(self, api):
        super().__init__("garbage", api)
        self.places = {}  # (resource key, key) by uid
        self.dependents = collections.defaultdict(set)  # (resource key, key) by the uid of an owner

    def follow(self, resource_key, event):
        if event.old is not None:
            self.forget(resource_key, event.old, event.new is None)
        if event.new is None:
            return
        metadata = event.new.obj["metadata"]
        self.places[metadata["uid"]] = (resource_key, event.new.key)
        for owner in metadata.get("ownerReferences") or ():
            self.dependents[owner["uid"]].add((resource_key, event.new.key))
        if event.old is None and metadata.get("ownerReferences"):
            self.add(("object", resource_key, *event.new.key))
        if metadata.get("deletionTimestamp") and set(metadata.get("finalizers") or ()) & {"orphan", "foregroundDeletion"}:
            self.add(("owner", resource_key, *event.new.key))

    def forget(self, resource_key, item, is_gone):
        metadata = item.obj["metadata"]
        for owner in metadata.get("ownerReferences") or ():
            self.dependents[owner["uid"]].discard((resource_key, item.key))
            if is_gone and owner["uid"] in self.places:
                owner_key, key = self.places[owner["uid"]]
                self.add(("owner", owner_key, *key))
        if is_gone:
            self.places.pop(metadata["uid"], None)
            for dependent_key, key in self.dependents.get(metadata["uid"], ()):
                self.add(("object", dependent_key, *key))

    def sync(self, key):
        what, resource_key, namespace, name = key
        with self.store.lock:
            item = self.store.get(resource_key, namespace, name)
            if item is None:
                return
            if what == "object":
                self.collect(resource_key, item)
            else:
                self.release(resource_key, item)

    def collect(self, resource_key, item):
        """Delete an object all of whose owners are gone."""
        owners = item.obj["metadata"].get("ownerReferences") or ()
        if owners and not any(self.is_there(owner, item.key[0]) for owner in owners):
            self.api.delete(self.api.resource(resource_key), *item.key, {"propagationPolicy": "Background"})

    def is_there(self, owner, namespace):
        """Is an owner there, under its uid, in the namespace of what it owns or in none?"""
        resource_key, key = self.places.get(owner["uid"], (None, None))
        return key is not None and key[0] in ("", namespace) and key[1] == owner["name"]

    def release(self, resource_key, item):
        metadata = item.obj["metadata"]
        finalizers = metadata.get("finalizers") or ()
        if not metadata.get("deletionTimestamp"):
            return
        found = list(self.dependents.get(metadata["uid"], ()))
        if "orphan" in finalizers:
            for dependent_key, key in found:
                self.api.change(dependent_key, *key, lambda obj: drop_owner(obj, metadata["uid"]))
            self.remove_finalizer(resource_key, item, "orphan")
        elif "foregroundDeletion" in finalizers:
            blocking = [one for one in found if self.blocks(*one, metadata["uid"])]
            for dependent_key, key in found:
                dependent = self.store.get(dependent_key, *key)
                if dependent is not None and not dependent.obj["metadata"].get("deletionTimestamp"):
                    self.api.delete(self.api.resource(dependent_key), *key, {"propagationPolicy": "Background"})
            if not blocking:
                self.remove_finalizer(resource_key, item, "foregroundDeletion")

    def blocks(self, dependent_key, key, uid):
        item = self.store.get(dependent_key, *key)
        return item is not None and any(owner["uid"] == uid and owner.get("blockOwnerDeletion")
                                        for owner in item.obj["metadata"].get("ownerReferences") or ())

    def remove_finalizer(self, resource_key, item, name):
        def change(obj):
            obj["metadata"]["finalizers"] = [one for one in obj["metadata"].get("finalizers") or [] if one != name]
            if not obj["metadata"]["finalizers"]:
                del obj["metadata"]["finalizers"]
        self.api.change(resource_key, *item.key, change)


def drop_owner(obj, uid):
    obj["metadata"]["ownerReferences"] = [one for one in obj["metadata"].get("ownerReferences") or [] if one["uid"] != uid]
    if not obj["metadata"]["ownerReferences"]:
        del obj["metadata"]["ownerReferences"]


class Taints(Loop):
    """Deletes pods that do not tolerate a NoExecute taint of their node, and pods whose node is gone."""

    def __init__(self, api):
        super().__init__("taint", api)
        self.node_pods = collections.defaultdict(set)

    def follow(self, resource_key, event):
        if resource_key == "pods":
            for item in filter(None, (event.old, event.new)):
                node = item.obj["spec"].get("nodeName")
                if node:
                    (self.node_pods[node].add if item is event.new else self.node_pods[node].discard)(item.key)
            if event.new is not None and event.new.obj["spec"].get("nodeName") and (
                    event.old is None or not event.old.obj["spec"].get("nodeName")):
                self.add(event.new.key)
        elif resource_key == "nodes" and (event.old is None or event.new is None or event.old.obj["spec"].get("taints")
                                          != event.new.obj["spec"].get("taints")):
            for key in list(self.node_pods[(event.new or event.old).key[1]]):
                self.add(key)

    def sync(self, key):
        with self.store.lock:
            item = self.store.get("pods", *key)
            if item is None or not item.obj["spec"].get("nodeName"):
                return
            node = self.store.get("nodes", "", item.obj["spec"]["nodeName"])
            if node is None:
                self.collect(key, item.obj)
                return
            for taint in node.obj["spec"].get("taints") or ():
                if taint["effect"] == "NoExecute":
                    self.judge(key, item.obj, taint)

    def judge(self, key, pod, taint):
        if pod["metadata"].get("deletionTimestamp"):
            return
        matching = [one for one in pod["spec"].get("tolerations") or () if scheduler.tolerates([one], taint)]
        seconds = [one["tolerationSeconds"] for one in matching if one.get("tolerationSeconds") is not None]
        if matching and not seconds:
            return
        begun = values.seconds_of(taint["timeAdded"]) if taint.get("timeAdded") else time.time()
        left = begun + min(seconds, default=0) - time.time()
        if matching and left > 0:
            self.add(key, left)
            return
        self.api.change("pods", *key, lambda obj: pods.set_condition(
            obj, "DisruptionTarget", "True", "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint"))
        self.api.delete(self.api.resource("pods"), *key)

    def collect(self, key, pod):
        """A pod without a node has failed, and is removed at once."""
        if not pods.has_ended(pod):
            def change(obj):
                pods.set_condition(obj, "DisruptionTarget", "True", "DeletionByPodGC", "PodGC: node no longer exists")
                obj["status"]["phase"] = "Failed"
            self.api.change("pods", *key, change)
        self.api.delete(self.api.resource("pods"), *key, {"gracePeriodSeconds": 0})


class Quotas(Loop):
    """Keeps the status of ResourceQuotas."""

    def __init__(self, api):
        super().__init__("quota", api)

    def follow(self, resource_key, event):
        key = (event.new or event.old).key
        if key[0] and (resource_key == "resourcequotas" or any(other[0] == key[0] for other in self.store.table("resourcequotas").items)):
            self.add(key[0])

    def sync(self, key):
        with self.store.lock:
            for quota in self.store.objects("resourcequotas", key):
                hard = quota["spec"].get("hard") or {}
                used = admission.quota_used(self.store, self.api.usage, quota)
                status = {"hard": hard, "used": {name: admission.show(name, number) for name, number in used.items()}}

                def change(obj):
                    obj["status"] = status
                self.api.change("resourcequotas", key, quota["metadata"]["name"], change)


class Budgets(Loop):
    """Keeps the status of PodDisruptionBudgets."""

    def __init__(self, api):
        super().__init__("disruption", api)

    def follow(self, resource_key, event):
        namespace = (event.new or event.old).key[0]
        if resource_key == "poddisruptionbudgets.policy" or resource_key == "pods" and any(
                key[0] == namespace for key in self.store.table("poddisruptionbudgets.policy").items):
            self.add(namespace)

    def sync(self, key):
        with self.store.lock:
            for budget in self.store.objects("poddisruptionbudgets.policy", key):
                status = pods.budget_status(budget, pods.selected_pods(self.store, budget))

                def change(obj):
                    old = {**(obj.get("status") or {}), "conditions": None}
                    if old == {**status, "conditions": None}:
                        return False
                    obj["status"] = status
                    return True
                self.api.change("poddisruptionbudgets.policy", key, budget["metadata"]["name"], change)


class Definitions(Loop):
    """Establishes CustomResourceDefinitions some time after they were created; a while later their paths are served."""

    KEY = "customresourcedefinitions.apiextensions.k8s.io"

    def __init__(self, api):
        super().__init__("definition", api)
        self.establish_seconds, self.serve_seconds = 0.15, 0.1
        self.going = set()  # definitions that are being deleted

    def follow(self, resource_key, event):
        if resource_key != self.KEY:
            if event.new is None and resource_key in self.going:
                self.add(("empty", resource_key), 0.0)
            return
        name = event.new.key[1] if event.new is not None else event.old.key[1]
        if event.new is None:
            self.add(("remove", event.old.obj["spec"]["group"], event.old.obj["spec"]["names"]["plural"]), 0.0)
        elif event.new.obj["metadata"].get("deletionTimestamp"):
            self.add(("empty", name), self.serve_seconds)
        elif event.old is None:
            self.add(("establish", name), self.establish_seconds)
        elif event.old.obj["spec"] != event.new.obj["spec"]:
            self.add(("serve", name), self.serve_seconds)

    def sync(self, key):
        if key[0] == "remove":
            self.remove(*key[1:])
            return
        item = self.store.get(self.KEY, "", key[1])
        if item is None:
            return
        if key[0] == "empty":
            self.empty(key[1])
        elif key[0] == "establish":
            self.api.change(self.KEY, "", key[1], self.establish)
            self.add(("serve", key[1]), self.serve_seconds)
        else:
            for version in item.obj["spec"]["versions"]:
                if version.get("served"):
                    self.api.catalogue.add(resources.of_definition(item.obj, version))

    def establish(self, obj):
        for kind, reason, message in (("NamesAccepted", "NoConflicts", "no conflicts found"),
                                      ("Established", "InitialNamesAccepted", "the initial names have been accepted")):
            pods.set_condition(obj, kind, "True", reason, message)
        obj["status"]["acceptedNames"] = obj["spec"]["names"]

    def empty(self, name):
        """Delete all that a definition defines, and when nothing is left, the definition."""
        self.going.add(name)
        with self.store.lock:
            for resource in [one for one in self.api.catalogue.resources.values() if one.key == name]:
                resource.is_going = True
                for key in list(self.store.table(name).items):
                    if not self.store.get(name, *key).obj["metadata"].get("deletionTimestamp"):
                        self.api.delete(resource, *key, {"propagationPolicy": "Background"})
            if self.store.table(name).items:
                return

            def finish(obj):
                obj["metadata"]["finalizers"] = [one for one in obj["metadata"].get("finalizers") or () if one != CLEANUP]
            self.api.change(self.KEY, "", name, finish)

    def remove(self, group, plural):
        with self.store.lock:
            self.going.discard(f"{plural}.{group}")
            self.api.catalogue.remove(group, plural)


class Kueue(Loop):
    """A stand-in for Kueue: starts suspended Jobs that name a queue, when told to, or while its quota has room.

    `quota` is None (only admit() starts Jobs), or what each queue has: {"team-a": {"cpu": "4", "nvidia.com/gpu": "8"}}.
    """

    def __init__(self, api):
        super().__init__("kueue", api)
        self.quota = None

    def follow(self, resource_key, event):
        if resource_key == "jobs.batch":
            self.add("all")

    def set_quota(self, quota):
        self.quota = quota
        self.add("all")

    def admit(self, namespace, name):
        """Start a Job."""
        def change(obj):
            obj["spec"]["suspend"] = False
        return self.api.change("jobs.batch", namespace, name, change) is not None

    def suspend(self, namespace, name):
        """Stop a Job: Kueue preempts it."""
        def change(obj):
            obj["spec"]["suspend"] = True
        return self.api.change("jobs.batch", namespace, name, change) is not None

    def sync(self, key):
        if self.quota is None:
            return
        with self.store.lock:
            queued = [job for job in self.store.objects("jobs.batch") if (job["metadata"].get("labels") or {}).get(QUEUE_LABEL) in self.quota]
            used = collections.defaultdict(dict)
            for job in queued:
                if not job["spec"].get("suspend") and not finished(job):
                    add_to(used[queue_of(job)], requests_of(job))
            for job in sorted(queued, key=lambda job: int(job["metadata"]["resourceVersion"])):
                if job["spec"].get("suspend") and not finished(job) and not job["metadata"].get("deletionTimestamp"):
                    self.admit_if_fits(job, used[queue_of(job)])

    def admit_if_fits(self, job, used):
        wanted = requests_of(job)
        room = self.quota[queue_of(job)]
        if all(used.get(name, 0) + wanted.get(name, 0) <= values.amount(quantity) for name, quantity in room.items()):
            add_to(used, wanted)
            self.admit(job["metadata"]["namespace"], job["metadata"]["name"])


def queue_of(job):
    return job["metadata"]["labels"][QUEUE_LABEL]


def requests_of(job):
    """What all pods of a Job want at once."""
    n_pods = job["spec"]["parallelism"]
    each = admission.pod_resources(job["spec"]["template"]["spec"])
    return {**{name: number * n_pods for name, number in each.items()}, "pods": n_pods}


def add_to(total, more):
    for name, number in more.items():
        total[name] = total.get(name, 0) + number

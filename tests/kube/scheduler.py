"""The scheduler: finds a node for each pod of schedulerName default-scheduler, or says why there is none; preempts by priority."""
import collections

from . import admission, pods, values
from .loops import Loop
from .status import ApiError

NAME = "default-scheduler"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
ALL = ("all",)


def tolerates(tolerations, taint):
    for one in tolerations or ():
        if one.get("effect") and one["effect"] != taint["effect"]:
            continue
        if one.get("key") and one["key"] != taint["key"]:
            continue
        if one.get("operator", "Equal") == "Exists" or one.get("key") and one.get("value", "") == taint.get("value", ""):
            return True
    return False


def node_term_matches(term, node):
    """Does a node fit one term of a node selector? An empty term fits none."""
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not expressions and not fields:
        return False
    labels = node["metadata"].get("labels") or {}
    names = {"metadata.name": node["metadata"]["name"]}
    return all(node_requirement(labels, one) for one in expressions) and all(node_requirement(names, one) for one in fields)


def node_requirement(labels, one):
    wanted = one.get("values") or []
    if one["operator"] in ("Gt", "Lt"):
        text = labels.get(one["key"], "")
        if not text.lstrip("-").isdigit():
            return False
        return int(text) > int(wanted[0]) if one["operator"] == "Gt" else int(text) < int(wanted[0])
    return values.REQUIREMENTS[one["operator"]](labels, one["key"], wanted)


def fits_selectors(pod, node):
    spec, labels = pod["spec"], node["metadata"].get("labels") or {}
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    terms = values.at_path(spec, "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms")
    return terms is None or any(node_term_matches(term, node) for term in terms)


class Scheduler(Loop):
    def __init__(self, api, binder):
        super().__init__("scheduler", api)
        self.binder = binder
        self.waiting = set()  # keys of pods without a place
        self.used = collections.defaultdict(dict)  # requests of bound pods that have not ended, summed by node
        self.bound = collections.defaultdict(set)  # keys of these pods by node
        self.nominated = set()  # keys of waiting pods for which a node was made free
        self.rooms = {}  # what nodes have, by name, with the resourceVersion

    # ---- what is known ------------------------------------------------------------------------------

    def follow(self, resource_key, event):
        if resource_key == "pods":
            self.account(event.old, -1)
            self.account(event.new, 1)
            self.follow_pod(event)
        elif resource_key == "nodes":
            self.add(ALL)

    def account(self, item, sign):
        if item is None or not item.obj["spec"].get("nodeName") or pods.has_ended(item.obj):
            return
        node = item.obj["spec"]["nodeName"]
        used = self.used[node]
        for name, number in self.requests(item.obj).items():
            used[name] = used.get(name, 0) + sign * number
        (self.bound[node].add if sign > 0 else self.bound[node].discard)(item.key)

    def follow_pod(self, event):
        old, new = event.old, event.new
        is_nominated = new is not None and self.is_mine(new.obj) and new.obj["status"].get("nominatedNodeName")
        (self.nominated.add if is_nominated else self.nominated.discard)((new or old).key)
        if new is not None and self.is_mine(new.obj):
            if old is None or old.obj["spec"] != new.obj["spec"]:
                self.add(new.key)
            self.waiting.add(new.key)
            return
        self.waiting.discard((new or old).key)
        freed = old is not None and old.obj["spec"].get("nodeName") and not pods.has_ended(old.obj) and (
            new is None or pods.has_ended(new.obj))
        if freed and self.waiting:
            self.add(ALL)

    @staticmethod
    def is_mine(pod):
        return (not pod["spec"].get("nodeName") and pod["spec"].get("schedulerName") == NAME and not pods.has_ended(pod)
                and not pod["metadata"].get("deletionTimestamp"))

    @staticmethod
    def requests(pod):
        """What a pod takes of a node; a place for a pod counts as `pods`."""
        found = admission.pod_resources(pod["spec"])
        found["pods"] = 1
        return found

    # ---- one pod ------------------------------------------------------------------------------------

    def sync(self, key):
        if key == ALL:
            self.place_all()
        else:
            self.place(key)

    def place_all(self):
        """Try all waiting pods, the most important first; of those that want the same, none after one that found no place."""
        with self.store.lock:
            found = [self.store.get("pods", *one) for one in self.waiting]
            found = [item for item in found if item is not None]
        found.sort(key=lambda item: (-item.obj["spec"].get("priority", 0), item.obj["metadata"]["creationTimestamp"], item.revision))
        hopeless = set()
        for item in found:
            shape = self.shape(item.obj)
            if shape not in hopeless and not self.place(item.key):
                hopeless.add(shape)

    def shape(self, pod):
        """What decides where a pod may go."""
        spec = pod["spec"]
        return repr([spec.get(key) for key in ("nodeSelector", "affinity", "tolerations", "priority", "preemptionPolicy")]
                    + sorted(self.requests(pod).items())) + pod["status"].get("nominatedNodeName", "")

    def place(self, key):
        """Bind a pod, or say why not; False when it found no place."""
        with self.store.lock:
            item = self.store.get("pods", *key)
            if item is None or not self.is_mine(item.obj) or item.obj["spec"].get("schedulingGates"):
                return True
            pod = item.obj
            nodes = self.store.objects("nodes")
            wanted = self.requests(pod)
            reasons = {node["metadata"]["name"]: self.why_not(pod, node, wanted) for node in nodes}
            free = [node for node in nodes if not reasons[node["metadata"]["name"]]]
            if free:
                self.bind(key, self.best(pod, free, wanted))
            else:
                self.give_up(key, pod, nodes, wanted, reasons)
            return bool(free)

    def bind(self, key, node):
        try:
            self.binder.bind(*key, {"kind": "Node", "name": node})
        except ApiError:
            self.add(key, 0.1)
            return
        item = self.store.get("pods", *key)
        self.api.record(self.api.resource("pods"), item.obj, "Normal", "Scheduled", f"Successfully assigned {key[0]}/{key[1]} to {node}",
                        NAME)

    def best(self, pod, nodes, wanted):
        """The nominated node, else the one that is emptiest of what the pod wants."""
        nominated = pod["status"].get("nominatedNodeName")
        if any(node["metadata"]["name"] == nominated for node in nodes):
            return nominated

        def load(node):
            room, used = self.room(node), self.used[node["metadata"]["name"]]
            shares = [used.get(name, 0) / room[name] for name in wanted if room.get(name)]
            return max(shares, default=0), node["metadata"]["name"]
        return min(nodes, key=load)["metadata"]["name"]

    def room(self, node):
        """What a node has for pods."""
        metadata, status = node["metadata"], node.get("status") or {}
        version, room = self.rooms.get(metadata["name"], (None, None))
        if version != metadata["resourceVersion"]:
            room = {}
            values.add_amounts(room, status.get("allocatable") or status.get("capacity"))
            self.rooms[metadata["name"]] = (metadata["resourceVersion"], room)
        return room

    # ---- filters ------------------------------------------------------------------------------------

    def why_not(self, pod, node, wanted, freed=None):
        """Reasons why a pod does not fit a node, [] when it does. freed: what would be freed before."""
        tolerations = pod["spec"].get("tolerations")
        if node["spec"].get("unschedulable") and not tolerates(tolerations, {"key": UNSCHEDULABLE, "effect": "NoSchedule"}):
            return ["node(s) were unschedulable"]
        for taint in node["spec"].get("taints") or ():
            if taint["effect"] in ("NoSchedule", "NoExecute") and not tolerates(tolerations, taint):
                value = f" {taint['value']}" if taint.get("value") else " "
                return [f"node(s) had untolerated taint {{{taint['key']}:{value}}}"]
        if not fits_selectors(pod, node):
            return ["node(s) didn't match Pod's node affinity/selector"]
        return self.lacking(node, wanted, freed or {}, pod)

    def lacking(self, node, wanted, freed, pod):
        name, room = node["metadata"]["name"], self.room(node)
        used = self.used[name]
        promised = self.promised(name, pod)
        reasons = []
        for what, number in wanted.items():
            taken = used.get(what, 0) + promised.get(what, 0) - freed.get(what, 0)
            if number and taken + number > room.get(what, 0 if what != "pods" else 110):
                reasons.append("Too many pods" if what == "pods" else f"Insufficient {what}")
        return reasons

    def promised(self, node, pod):
        """What pods of at least the same priority wait for on a node that was made free for them."""
        total = {}
        for key in self.nominated:
            item = self.store.get("pods", *key)
            if item is not None and item.obj["metadata"]["uid"] != pod["metadata"]["uid"] and item.obj["status"].get(
                    "nominatedNodeName") == node and item.obj["spec"].get("priority", 0) >= pod["spec"].get("priority", 0):
                for name, number in self.requests(item.obj).items():
                    total[name] = total.get(name, 0) + number
        return total

    # ---- no place -----------------------------------------------------------------------------------

    def give_up(self, key, pod, nodes, wanted, reasons):
        node, victims = self.preempt(pod, nodes, wanted, reasons)
        message = self.message(len(nodes), reasons, victims is not None)
        for victim in victims or ():
            self.evict(pod, victim)

        def change(obj):
            changed = pods.set_condition(obj, "PodScheduled", "False", "Unschedulable", message)
            if node and obj["status"].get("nominatedNodeName") != node:
                obj["status"]["nominatedNodeName"] = node
                changed = True
            return changed
        if self.api.change("pods", *key, change) is not None:
            self.api.record(self.api.resource("pods"), pod, "Warning", "FailedScheduling", message, NAME)

    @staticmethod
    def message(n_nodes, reasons, has_victims):
        if not n_nodes:
            return "no nodes available to schedule pods"
        counts = collections.Counter(reason for found in reasons.values() for reason in found)
        text = ", ".join(sorted(f"{n} {reason}" for reason, n in counts.items()))
        message = f"0/{n_nodes} nodes are available: {text}."
        if has_victims:
            return message
        hopeless = sum(not is_helped_by_preemption(found) for found in reasons.values())
        parts = [f"{n_nodes - hopeless} No preemption victims found for incoming pod"] if n_nodes > hopeless else []
        parts += [f"{hopeless} Preemption is not helpful for scheduling"] if hopeless else []
        return f"{message} preemption: 0/{n_nodes} nodes are available: {', '.join(parts)}."

    def preempt(self, pod, nodes, wanted, reasons):
        """(node, pods to evict); (None, None) when nobody of lower priority is in the way."""
        if pod["spec"].get("preemptionPolicy") == "Never":
            return None, None
        choices = []
        for node in nodes:
            if is_helped_by_preemption(reasons[node["metadata"]["name"]]):
                victims = self.victims(pod, node, wanted)
                if victims is not None:
                    choices.append((self.cost(victims), node["metadata"]["name"], victims))
        if not choices:
            return None, None
        _, node, victims = min(choices, key=lambda choice: choice[:2])
        return node, victims

    def cost(self, victims):
        """How bad it is to evict these: broken disruption budgets first, then the highest priority, then their number."""
        return self.n_violations(victims), max((one["spec"].get("priority", 0) for one in victims), default=-1), len(victims)

    def victims(self, pod, node, wanted):
        """The fewest pods of lower priority whose end makes room; None when not even all would do."""
        found = [self.store.get("pods", *key) for key in self.bound[node["metadata"]["name"]]]
        lower = [item.obj for item in found if item is not None and item.obj["spec"].get("priority", 0) < pod["spec"].get("priority", 0)]
        if not lower or self.why_not(pod, node, wanted, self.total(lower)):
            return None
        protected = [one for one in lower if self.n_violations([one])]
        free = [one for one in lower if one not in protected]
        kept_first = sorted(protected, key=self.importance) + sorted(free, key=self.importance)
        victims = list(lower)
        for one in kept_first:  # spare those that the pod can do without
            rest = [other for other in victims if other is not one]
            if not self.why_not(pod, node, wanted, self.total(rest)):
                victims = rest
        return [one for one in victims if not one["metadata"].get("deletionTimestamp")]

    @staticmethod
    def importance(pod):
        return -pod["spec"].get("priority", 0), pod["status"].get("startTime") or "9"

    def total(self, found):
        total = {}
        for pod in found:
            for name, number in self.requests(pod).items():
                total[name] = total.get(name, 0) + number
        return total

    def n_violations(self, victims):
        """How many of these pods a disruption budget would protect."""
        left, violations = {}, 0
        for pod in victims:
            for budget in pods.budgets_of(self.store, pod):
                name = budget["metadata"]["name"]
                if name not in left:
                    left[name] = pods.budget_status(budget, pods.selected_pods(self.store, budget))["disruptionsAllowed"]
                left[name] -= 1
                violations += left[name] < 0
        return violations

    def evict(self, pod, victim):
        metadata = victim["metadata"]
        self.api.change("pods", metadata["namespace"], metadata["name"], lambda obj: pods.set_condition(
            obj, "DisruptionTarget", "True", "PreemptionByKubeScheduler", "Kube-scheduler: preempting"))
        self.api.delete(self.api.resource("pods"), metadata["namespace"], metadata["name"])
        self.api.record(self.api.resource("pods"), victim, "Normal", "Preempted",
                        f"Preempted by {pod['metadata']['namespace']}/{pod['metadata']['name']} on node {victim['spec']['nodeName']}", NAME)


def is_helped_by_preemption(found):
    """Is it only for want of resources that a node does not take a pod?"""
    return all(one.startswith(("Insufficient", "Too many")) for one in found)

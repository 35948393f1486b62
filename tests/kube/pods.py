"""What pods have beside: binding, eviction with its disruption budgets, logs, and the conditions that say why a pod ends."""
from . import status, values
from .status import ApiError
from .wire import Closed


def condition_of(obj, kind):
    return next((one for one in (obj.get("status") or {}).get("conditions") or [] if one["type"] == kind), None)


def set_condition(obj, kind, value, reason="", message=""):
    """Set a condition; its time only changes with its status. Says whether anything changed."""
    conditions = obj.setdefault("status", {}).setdefault("conditions", [])
    old = condition_of(obj, kind)
    new = {"type": kind, "status": value, "lastProbeTime": None, "lastTransitionTime": values.time_text()}
    if reason:
        new["reason"] = reason
    if message:
        new["message"] = message
    if old is None:
        conditions.append(new)
        return True
    if old["status"] == value:
        new["lastTransitionTime"] = old["lastTransitionTime"]
    if old == new:
        return False
    conditions[conditions.index(old)] = new
    return True


def is_ready(pod):
    found = condition_of(pod, "Ready")
    return found is not None and found["status"] == "True" and not pod["metadata"].get("deletionTimestamp")


def has_ended(pod):
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


# ---- disruption budgets -----------------------------------------------------------------------------

def share(value, total):
    """A number, or so many percent of the total, rounded up."""
    if isinstance(value, str):
        return -(-int(value.rstrip("%")) * total // 100)
    return value


def budget_status(budget, pods):
    """The status of a disruption budget over the pods that it selects."""
    alive = [pod for pod in pods if not has_ended(pod)]
    expected = len(alive)
    healthy = sum(is_ready(pod) for pod in alive)
    spec = budget.get("spec") or {}
    if spec.get("maxUnavailable") is not None:
        desired = max(0, expected - share(spec["maxUnavailable"], expected))
    else:
        desired = share(spec.get("minAvailable", 1), expected)
    allowed = max(0, healthy - desired) if expected else 0
    return {"observedGeneration": budget["metadata"].get("generation", 1), "disruptionsAllowed": allowed, "currentHealthy": healthy,
            "desiredHealthy": desired, "expectedPods": expected,
            "conditions": [{"type": "DisruptionAllowed", "status": "True" if allowed else "False",
                            "observedGeneration": budget["metadata"].get("generation", 1), "lastTransitionTime": values.time_text(),
                            "reason": "SufficientPods" if allowed else "InsufficientPods", "message": ""}]}


def selected_pods(store, budget):
    selector = (budget.get("spec") or {}).get("selector")
    return [pod for pod in store.objects("pods", budget["metadata"]["namespace"])
            if values.matches_selector(selector, pod["metadata"].get("labels"))]


def budgets_of(store, pod):
    return [budget for budget in store.objects("poddisruptionbudgets.policy", pod["metadata"]["namespace"])
            if values.matches_selector((budget.get("spec") or {}).get("selector"), pod["metadata"].get("labels"))]


class Pods:
    """The subresources of pods. `kubelet` has the logs."""

    def __init__(self, api):
        self.api, self.store = api, api.store
        self.resource = api.resource("pods")
        self.kubelet = None

    # ---- binding ------------------------------------------------------------------------------------

    def bind(self, namespace, name, target, annotations=None):
        """Give a pod its node, and the binding's annotations."""
        if target.get("kind", "Node") not in ("Node", "Minion", ""):
            raise status.bad_request('Binding is invalid: target.kind: Unsupported value: supported values: "Node", "<empty>"')
        node = target.get("name", "")
        if not node:
            raise ApiError(422, "Invalid", f'Binding "{name}" is invalid: target.name: Required value', {
                "name": name, "kind": "Binding", "causes": [status.required("target.name").record()]})
        with self.api.lock:
            pod = self.api.get(self.resource, namespace, name).obj
            if self.store.get("nodes", "", node) is None:
                raise status.not_found(self.api.resource("nodes"), node)
            if pod["metadata"].get("deletionTimestamp"):
                raise self.conflict(name, f"pod {name} is being deleted, cannot be assigned to a host")
            if pod["spec"].get("nodeName"):
                raise self.conflict(name, f"pod {name} is already assigned to node \"{pod['spec']['nodeName']}\"")

            def assign(obj):
                obj["spec"]["nodeName"] = node
                if annotations:
                    obj["metadata"]["annotations"] = {**(obj["metadata"].get("annotations") or {}), **annotations}
                set_condition(obj, "PodScheduled", "True")
            self.api.change("pods", namespace, name, assign)

    @staticmethod
    def conflict(name, why):
        return ApiError(409, "Conflict", f'Operation cannot be fulfilled on pods/binding "{name}": {why}',
                        {"name": name, "kind": "pods/binding"})

    # ---- eviction -----------------------------------------------------------------------------------

    def evict(self, namespace, name, options, dry=False):
        """Delete a pod unless a disruption budget is in the way."""
        with self.api.lock:
            pod = self.api.get(self.resource, namespace, name).obj
            if not has_ended(pod) and not pod["metadata"].get("deletionTimestamp") and pod["status"].get("phase") != "Pending":
                self.check_budgets(pod)
            if dry:
                return
            if not has_ended(pod):
                self.api.change("pods", namespace, name, lambda obj: set_condition(
                    obj, "DisruptionTarget", "True", "EvictionByEvictionAPI", "Eviction API: evicting"))
            self.api.delete(self.resource, namespace, name, options)

    def check_budgets(self, pod):
        budgets = budgets_of(self.store, pod)
        if len(budgets) > 1:
            raise status.internal("This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.")
        for budget in budgets:
            now = budget_status(budget, selected_pods(self.store, budget))
            if is_ready(pod) and now["disruptionsAllowed"] <= 0:
                raise status.too_many_requests("Cannot evict pod as it would violate the pod's disruption budget.", causes=[
                    {"reason": "DisruptionBudget", "message": f"The disruption budget {budget['metadata']['name']} needs "
                     f"{now['desiredHealthy']} healthy pods and has {now['currentHealthy']} currently"}])

    # ---- logs ---------------------------------------------------------------------------------------

    def log(self, connection, namespace, name, query):
        """Answer with the log of a container, or stream it while it runs."""
        pod = self.api.get(self.resource, namespace, name).obj
        container = self.container(pod, query.get("container"))
        log = self.kubelet.log_of(pod, container, query.get("previous") == "true")
        if log is None:
            raise self.not_there(pod, container, query)
        options = LogOptions(query)
        if query.get("follow") not in ("true", "1"):
            connection.answer(200, options.text(log.lines()), "text/plain")
            return
        connection.begin_stream("text/plain")
        begun = 0
        while True:
            lines, is_over = log.wait(begun, 1.0)
            text = options.text(lines)
            if text:
                connection.chunk(text)
            begun += len(lines)
            options.begin_following()
            if is_over:
                break
            if connection.is_cut or connection.has_left():
                raise Closed
        connection.end_stream()

    @staticmethod
    def container(pod, wanted):
        names = [one["name"] for one in pod["spec"]["containers"]]
        others = [one["name"] for one in pod["spec"].get("initContainers") or []]
        name = pod["metadata"]["name"]
        if wanted is None and len(names) == 1:
            return names[0]
        if wanted is None:
            also = f" or one of the init containers: [{' '.join(others)}]" if others else ""
            raise status.bad_request(f"a container name must be specified for pod {name}, choose one of: [{' '.join(names)}]{also}")
        if wanted not in names + others:
            raise status.bad_request(f"container {wanted} is not valid for pod {name}")
        return wanted

    @staticmethod
    def not_there(pod, container, query):
        name = pod["metadata"]["name"]
        if query.get("previous") == "true":
            return status.bad_request(f'previous terminated container "{container}" in pod "{name}" not found')
        if not pod["spec"].get("nodeName"):
            return status.bad_request(f"pod {name} does not have a host assigned")
        states = pod["status"].get("containerStatuses") or []
        waiting = next((one["state"]["waiting"] for one in states if one["name"] == container and "waiting" in one.get("state", {})), {})
        return status.bad_request(f'container "{container}" in pod "{name}" is waiting to start: '
                                  f"{waiting.get('message') or waiting.get('reason') or 'ContainerCreating'}")


class LogOptions:
    """Which lines of a log a client wants, and how."""

    def __init__(self, query):
        self.with_times = query.get("timestamps") in ("true", "1")
        self.tail = int(query["tailLines"]) if query.get("tailLines") else None
        self.limit = int(query["limitBytes"]) if query.get("limitBytes") else None
        self.since = None
        if query.get("sinceTime"):
            self.since = values.seconds_of(query["sinceTime"])
        elif query.get("sinceSeconds"):
            self.since = values.now().timestamp() - int(query["sinceSeconds"])

    def text(self, lines):
        """Lines are (seconds since 1970, bytes)."""
        if self.since is not None:
            lines = [line for line in lines if line[0] >= self.since]
        if self.tail is not None:
            lines = lines[len(lines) - min(self.tail, len(lines)):]
        text = b"".join(self.stamp(when) + line for when, line in lines)
        return text if self.limit is None else text[:self.limit]

    def stamp(self, when):
        if not self.with_times:
            return b""
        return values.datetime.datetime.fromtimestamp(when, values.datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f000Z ").encode()

    def begin_following(self):
        """The tail is only of what was there at first."""
        self.tail = None

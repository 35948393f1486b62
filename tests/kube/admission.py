"""What the server adds to, or refuses of, objects that are well formed: service accounts, priorities, pod security, quotas."""
from . import status, values

POD_SECURITY = "pod-security.kubernetes.io/"
WITH_PODS = ("pods", "jobs.batch", "deployments.apps", "statefulsets.apps")
TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
SYSTEM_CLASSES = {"system-cluster-critical": 2000000000, "system-node-critical": 2000001000}
# Prefixes of a quota's resources that count what is requested or limited.
COMPUTE = {"cpu": ("requests", "cpu"), "memory": ("requests", "memory"), "ephemeral-storage": ("requests", "ephemeral-storage")}
COUNTED = {"pods": "pods", "configmaps": "configmaps", "secrets": "secrets", "services": "services",
           "persistentvolumeclaims": "persistentvolumeclaims", "resourcequotas": "resourcequotas"}
RESTRICTED_VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}


def namespace(store, resource, obj, namespaces):
    """Nothing is created in a namespace that is not there, or that goes."""
    name = obj["metadata"]["namespace"]
    item = store.get("namespaces", "", name)
    if item is None:
        raise status.not_found(namespaces, name)
    if item.obj["metadata"].get("deletionTimestamp"):
        refusal = status.forbidden(resource, obj["metadata"].get("name", ""),
                                   f"unable to create new content in namespace {name} because it is being terminated")
        refusal.status["details"]["causes"] = [{"reason": "NamespaceTerminating", "message": f"namespace {name} is being terminated",
                                                "field": "metadata.namespace"}]
        raise refusal


# ---- pods: what is added ----------------------------------------------------------------------------

def mutate_pod(store, resource, pod, toleration_seconds):
    service_account(store, resource, pod)
    default_tolerations(pod, toleration_seconds)
    priority(store, resource, pod)


def service_account(store, resource, pod):
    spec, metadata = pod["spec"], pod["metadata"]
    name = spec.get("serviceAccountName") or "default"
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    account = store.get("serviceaccounts", metadata["namespace"], name)
    if account is None:
        raise status.forbidden(resource, metadata.get("name", ""), f"error looking up service account {metadata['namespace']}/{name}: "
                                                                   f'serviceaccount "{name}" not found')
    wanted = spec.get("automountServiceAccountToken")
    if wanted is None:
        wanted = account.obj.get("automountServiceAccountToken", True)
    if wanted:
        mount_token(spec)


def mount_token(spec):
    """The volume with the service account's token, in all containers that have nothing there."""
    containers = [one for one in (spec.get("initContainers") or []) + (spec.get("containers") or [])
                  if not any(mount.get("mountPath") == TOKEN_PATH for mount in one.get("volumeMounts") or [])]
    if not containers:
        return
    name = "kube-api-access-" + values.suffix()
    sources = [{"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
               {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
               {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}}]
    spec["volumes"] = (spec.get("volumes") or []) + [{"name": name, "projected": {"sources": sources, "defaultMode": 0o644}}]
    for container in containers:
        mount = {"name": name, "readOnly": True, "mountPath": TOKEN_PATH}
        container["volumeMounts"] = (container.get("volumeMounts") or []) + [mount]


def default_tolerations(pod, seconds):
    tolerations = pod["spec"].setdefault("tolerations", [])
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(one.get("key") in (key, None, "") and one.get("effect") in ("NoExecute", None, "") for one in tolerations):
            tolerations.append({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds})


def priority(store, resource, pod):
    spec = pod["spec"]
    name = spec.get("priorityClassName")
    found = default_class(store) if not name else class_of(store, name)
    if found is None and name:
        raise status.forbidden(resource, pod["metadata"].get("name", ""), f"no PriorityClass with name {name} was found")
    value, policy, class_name = found or (0, "PreemptLowerPriority", None)
    if spec.get("priority") not in (None, value):
        raise status.forbidden(resource, pod["metadata"].get("name", ""), "the integer value of priority "
                               f"({spec['priority']}) must not be provided in pod spec; priority admission controller computed {value} "
                               "from the given PriorityClass name")
    spec["priority"] = value
    spec.setdefault("preemptionPolicy", policy)
    if class_name:
        spec["priorityClassName"] = class_name


def class_of(store, name):
    if name in SYSTEM_CLASSES:
        return SYSTEM_CLASSES[name], "PreemptLowerPriority", name
    item = store.get("priorityclasses.scheduling.k8s.io", "", name)
    return (item.obj.get("value", 0), item.obj.get("preemptionPolicy", "PreemptLowerPriority"), name) if item else None


def default_class(store):
    for one in store.objects("priorityclasses.scheduling.k8s.io"):
        if one.get("globalDefault"):
            return class_of(store, one["metadata"]["name"])
    return None


# ---- pods: what is refused --------------------------------------------------------------------------

def pod_security(store, resource, obj, warnings):
    """The namespace's labels say which pods it takes, and of which pods, also in templates, it warns."""
    item = store.get("namespaces", "", obj["metadata"]["namespace"])
    labels = (item.obj["metadata"].get("labels") or {}) if item else {}
    refusal = violations(labels, "enforce", obj["spec"]) if resource.key == "pods" else None
    if refusal is not None:
        raise status.forbidden(resource, obj["metadata"].get("name", ""), f"violates PodSecurity {refusal}")
    spec = obj["spec"] if resource.key == "pods" else obj["spec"]["template"]["spec"]
    warning = violations(labels, "warn", spec)
    if warning is not None:
        warnings.append(f"would violate PodSecurity {warning}")


def violations(labels, mode, spec):
    """What a pod does that the level of a namespace forbids: the rest of a sentence; None when it is nothing."""
    level = labels.get(POD_SECURITY + mode)
    if level not in ("baseline", "restricted"):
        return None
    found = list(baseline_violations(spec))
    if level == "restricted":
        found += restricted_violations(spec)
    return f'"{level}:{labels.get(f"{POD_SECURITY}{mode}-version", "latest")}": ' + ", ".join(found) if found else None


def containers_of(spec):
    return (spec.get("initContainers") or []) + spec["containers"]


def named(containers):
    names = ", ".join(f'"{one["name"]}"' for one in containers)
    return f"container{'s' if len(containers) > 1 else ''} {names}"


def context(container):
    return container.get("securityContext") or {}


def baseline_violations(spec):
    hosts = [f"{key}=true" for key in ("hostNetwork", "hostPID", "hostIPC") if spec.get(key)]
    if hosts:
        yield f"host namespaces ({', '.join(hosts)})"
    paths = [f'"{one["name"]}"' for one in spec.get("volumes") or [] if one.get("hostPath")]
    if paths:
        yield f"hostPath volumes (volume{'s' if len(paths) > 1 else ''} {', '.join(paths)})"
    privileged = [one for one in containers_of(spec) if context(one).get("privileged")]
    if privileged:
        yield f"privileged ({named(privileged)} must not set securityContext.privileged=true)"
    ports = [one for one in containers_of(spec) if any(port.get("hostPort") for port in one.get("ports") or [])]
    if ports:
        yield f"hostPort ({named(ports)} uses hostPorts)"


def restricted_violations(spec):
    pod = spec.get("securityContext") or {}
    escalating = [one for one in containers_of(spec) if context(one).get("allowPrivilegeEscalation") is not False]
    if escalating:
        yield f"allowPrivilegeEscalation != false ({named(escalating)} must set securityContext.allowPrivilegeEscalation=false)"
    capable = [one for one in containers_of(spec) if "ALL" not in ((context(one).get("capabilities") or {}).get("drop") or [])]
    if capable:
        yield f'unrestricted capabilities ({named(capable)} must set securityContext.capabilities.drop=["ALL"])'
    odd = [one for one in spec.get("volumes") or [] if not set(one) - {"name"} <= RESTRICTED_VOLUMES]
    for one in odd:
        kind = next(key for key in one if key != "name")
        yield f'restricted volume types (volume "{one["name"]}" uses restricted volume type "{kind}")'
    roots = [one for one in containers_of(spec) if not context(one).get("runAsNonRoot", pod.get("runAsNonRoot"))]
    if roots:
        yield f"runAsNonRoot != true (pod or {named(roots)} must set securityContext.runAsNonRoot=true)"
    zero = [one for one in containers_of(spec) if context(one).get("runAsUser") == 0]
    if pod.get("runAsUser") == 0:
        yield "runAsUser=0 (pod must not set runAsUser=0)"
    elif zero:
        yield f"runAsUser=0 ({named(zero)} must not set runAsUser=0)"
    profiles = ("RuntimeDefault", "Localhost")
    open_ones = [one for one in containers_of(spec)
                 if (context(one).get("seccompProfile") or pod.get("seccompProfile") or {}).get("type") not in profiles]
    if open_ones:
        yield f'seccompProfile (pod or {named(open_ones)} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")'


# ---- quotas -----------------------------------------------------------------------------------------

def pod_usage(pod):
    """What a pod counts as, by the names of a quota's resources. A pod that has ended counts as nothing."""
    if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return {}
    usage = {"pods": 1, "count/pods": 1}
    for which in ("requests", "limits"):
        for name, number in pod_resources(pod["spec"], which).items():
            usage[f"{which}.{name}"] = number
            if which == "requests" and name in COMPUTE:
                usage[name] = number
    return usage


def pod_resources(spec, which="requests"):
    """The sum over containers, or what an init container wants at most."""
    total, most = {}, {}
    for container in spec["containers"]:
        values.add_amounts(total, (container.get("resources") or {}).get(which))
    for container in spec.get("initContainers") or []:
        for name, quantity in ((container.get("resources") or {}).get(which) or {}).items():
            most[name] = max(most.get(name, 0), values.amount(quantity))
    result = {name: max(total.get(name, 0), most.get(name, 0)) for name in {**total, **most}}
    if which == "requests":
        values.add_amounts(result, spec.get("overhead"))
    return result


def usage_of(resource, obj):
    """What a new object counts as."""
    if resource.plural == "pods" and not resource.group:
        return pod_usage(obj)
    usage = {f"count/{resource.key}": 1}
    if resource.key in COUNTED:
        usage[resource.key] = 1
    if resource.key == "persistentvolumeclaims":
        usage["requests.storage"] = values.amount(obj["spec"]["resources"]["requests"]["storage"])
    return usage


class Usage:
    """What the pods of each namespace count as. It follows the store, so that a quota needs no look at all pods."""

    def __init__(self, store):
        self.store = store
        self.totals = {}  # by namespace and resource
        store.listeners.append(self.follow)

    def follow(self, resource_key, event):
        if resource_key != "pods":
            return
        for item, sign in ((event.old, -1), (event.new, 1)):
            if item is not None:
                total = self.totals.setdefault(item.key[0], {})
                for name, number in pod_usage(item.obj).items():
                    total[name] = total.get(name, 0) + sign * number

    def used(self, namespace_name, resource_name):
        """How much of one resource of a quota is used in a namespace."""
        if resource_name in COUNTED and resource_name != "pods":
            return len(self.store.objects(resource_name, namespace_name))
        if resource_name.startswith("count/") and resource_name != "count/pods":
            return len(self.store.objects(resource_name.partition("/")[2], namespace_name))
        if resource_name == "requests.storage":
            return sum(values.amount(one["spec"]["resources"]["requests"]["storage"])
                       for one in self.store.objects("persistentvolumeclaims", namespace_name))
        return self.totals.get(namespace_name, {}).get(resource_name, 0)


def in_scope(quota, obj):
    """Do the quota's scopes take in a pod?"""
    spec = obj.get("spec") or {}
    wanted = [{"scopeName": name, "operator": "Exists"} for name in quota["spec"].get("scopes") or ()]
    wanted += (quota["spec"].get("scopeSelector") or {}).get("matchExpressions") or ()
    best_effort = (obj.get("status") or {}).get("qosClass") == "BestEffort"
    terminating = spec.get("activeDeadlineSeconds") is not None
    facts = {"BestEffort": best_effort, "NotBestEffort": not best_effort, "Terminating": terminating, "NotTerminating": not terminating}
    for one in wanted:
        if one["scopeName"] == "PriorityClass":
            labels = {"class": spec["priorityClassName"]} if spec.get("priorityClassName") else {}
            if not values.REQUIREMENTS[one["operator"]](labels, "class", one.get("values") or ()):
                return False
        elif not facts.get(one["scopeName"], False):
            return False
    return True


def quota_used(store, usage, quota):
    """The numbers of a quota's status.used."""
    namespace_name = quota["metadata"]["namespace"]
    if not quota["spec"].get("scopes") and not quota["spec"].get("scopeSelector"):
        return {name: usage.used(namespace_name, name) for name in quota["spec"].get("hard") or ()}
    total = {}
    for pod in store.objects("pods", namespace_name):
        if in_scope(quota, pod):
            for name, number in pod_usage(pod).items():
                total[name] = total.get(name, 0) + number
    return {name: total.get(name, 0) for name in quota["spec"].get("hard") or ()}


def check_quotas(store, usage, resource, obj):
    """ApiError 403 when a quota of the namespace has no room for a new object."""
    wanted = usage_of(resource, obj)
    for quota in store.objects("resourcequotas", obj["metadata"]["namespace"]):
        if resource.key != "pods" or in_scope(quota, obj):
            check_quota(store, usage, resource, obj, quota, wanted)


def check_quota(store, usage, resource, obj, quota, wanted):
    name, hard = quota["metadata"]["name"], quota["spec"].get("hard") or {}
    if resource.key == "pods":
        lacking = sorted(key for key in hard if key not in wanted and is_compute(key))
        if lacking:
            raise status.forbidden(resource, obj["metadata"]["name"],
                                   f"failed quota: {name}: must specify {','.join(lacking)} for: "
                                   + ",".join(one["name"] for one in containers_of(obj["spec"])))
    used = quota_used(store, usage, quota) if set(wanted) & set(hard) else {}
    over = sorted(key for key in hard if wanted.get(key, 0) and used[key] + wanted[key] > values.amount(hard[key]))
    if over:
        numbers = [",".join(f"{key}={show(key, of[key])}" for key in over) for of in (wanted, used)]
        limits = ",".join(f"{key}={hard[key]}" for key in over)
        raise status.forbidden(resource, obj["metadata"]["name"], f"exceeded quota: {name}, requested: {numbers[0]}, used: {numbers[1]}, "
                                                                  f"limited: {limits}")


def is_compute(key):
    """Resources that each container must name once a quota limits them; others count as 0."""
    return key.rpartition(".")[2] in COMPUTE


def show(key, number):
    """A number as a quantity: bytes with a binary suffix."""
    value = values.Fraction(number)
    return values.binary_text(value) if "memory" in key or "storage" in key else values.decimal_text(value)


# ---- a webhook --------------------------------------------------------------------------------------

def refuse_by_webhook(fault):
    """What the webhook of the fault refuse_admission answers."""
    name = fault.options.get("webhook", "policy.weir.test")
    code = fault.options.get("code", 403)
    reason = {400: "BadRequest", 403: "Forbidden"}.get(code, "")
    raise status.ApiError(code, reason, f'admission webhook "{name}" denied the request: '
                          + fault.options.get("message", "without explanation"))


def refuse_by_quota(resource, obj):
    """What the fault `quota` answers."""
    raise status.forbidden(resource, obj["metadata"].get("name", ""),
                           "exceeded quota: fault, requested: pods=1, used: pods=4, limited: pods=4")

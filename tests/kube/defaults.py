"""What the server fills in where a client is silent. Each function changes an object that is not stored yet."""
import base64
import itertools


def set_default(obj, key, value):
    if obj.get(key) is None:
        obj[key] = value
    return obj[key]


# ---- pods -------------------------------------------------------------------------------------------

def pod_spec(spec):
    for key, value in (("restartPolicy", "Always"), ("terminationGracePeriodSeconds", 30), ("dnsPolicy", "ClusterFirst"),
                       ("schedulerName", "default-scheduler")):
        set_default(spec, key, value)
    set_default(spec, "securityContext", {})
    if spec.get("serviceAccountName"):
        spec["serviceAccount"] = spec["serviceAccountName"]
    elif spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"]
    for container in (spec.get("initContainers") or []) + (spec.get("containers") or []):
        container_defaults(container)
    for volume in spec.get("volumes") or []:
        volume_defaults(volume)


def container_defaults(container):
    set_default(container, "terminationMessagePath", "/dev/termination-log")
    set_default(container, "terminationMessagePolicy", "File")
    image = container.get("image", "")
    tag = image.rpartition("/")[2].partition(":")[2]
    set_default(container, "imagePullPolicy", "Always" if tag in ("", "latest") and "@" not in image else "IfNotPresent")
    set_default(container, "resources", {})
    for port in container.get("ports") or []:
        set_default(port, "protocol", "TCP")
    for variable in container.get("env") or []:
        reference = (variable.get("valueFrom") or {}).get("fieldRef")
        if reference:
            set_default(reference, "apiVersion", "v1")
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(name):
            probe_defaults(container[name])


def probe_defaults(probe):
    for key, value in (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)):
        set_default(probe, key, value)
    if probe.get("httpGet"):
        set_default(probe["httpGet"], "path", "/")
        set_default(probe["httpGet"], "scheme", "HTTP")


def volume_defaults(volume):
    if not any(key != "name" for key in volume):
        volume["emptyDir"] = {}
    for kind in ("secret", "configMap", "projected", "downwardAPI"):
        if volume.get(kind) is not None:
            set_default(volume[kind], "defaultMode", 0o644)
    if volume.get("hostPath"):
        set_default(volume["hostPath"], "type", "")
    for source in (volume.get("projected") or {}).get("sources") or []:
        if source.get("serviceAccountToken"):
            set_default(source["serviceAccountToken"], "expirationSeconds", 3600)


def requests_of_limits(container):
    """A resource that has a limit and no request requests its limit."""
    limits = (container.get("resources") or {}).get("limits") or {}
    for name, quantity in limits.items():
        requests = container["resources"].setdefault("requests", {})
        requests.setdefault(name, quantity)


def pod(obj):
    pod_spec(obj["spec"])
    set_default(obj["spec"], "enableServiceLinks", True)
    for container in (obj["spec"].get("initContainers") or []) + (obj["spec"].get("containers") or []):
        requests_of_limits(container)


def quality_of_service(spec):
    """Guaranteed, Burstable or BestEffort."""
    containers = (spec.get("initContainers") or []) + (spec.get("containers") or [])
    resources = [one.get("resources") or {} for one in containers]
    named = [(one.get(which) or {}).get(name) for one in resources for which in ("requests", "limits") for name in ("cpu", "memory")]
    if not any(named):
        return "BestEffort"
    same = all((one.get("limits") or {}).get(name) and (one.get("requests") or {}).get(name) == one["limits"][name]
               for one in resources for name in ("cpu", "memory"))
    return "Guaranteed" if same else "Burstable"


# ---- others -----------------------------------------------------------------------------------------

def template(obj):
    """The pod template of a workload."""
    set_default(obj["spec"]["template"], "metadata", {}).setdefault("creationTimestamp", None)
    pod_spec(set_default(obj["spec"]["template"], "spec", {}))


def job(obj):
    spec = obj["spec"]
    if "parallelism" not in spec and "completions" not in spec:
        spec["parallelism"] = spec["completions"] = 1
    for key, value in (("parallelism", 1), ("backoffLimit", 6), ("completionMode", "NonIndexed"), ("suspend", False)):
        set_default(spec, key, value)
    template(obj)


def workload(obj):
    set_default(obj["spec"], "replicas", 1)
    set_default(obj["spec"], "revisionHistoryLimit", 10)
    template(obj)


CLUSTER_IPS = itertools.count(2)


def service(obj):
    spec = obj["spec"]
    set_default(spec, "type", "ClusterIP")
    set_default(spec, "sessionAffinity", "None")
    set_default(spec, "internalTrafficPolicy", "Cluster")
    for port in spec.get("ports") or []:
        set_default(port, "protocol", "TCP")
        set_default(port, "targetPort", port.get("port"))
    if spec["type"] != "ExternalName":
        if not spec.get("clusterIP"):
            number = next(CLUSTER_IPS)
            spec["clusterIP"] = f"10.96.{number // 250}.{number % 250 + 1}"
        spec["clusterIPs"] = [spec["clusterIP"]]
        set_default(spec, "ipFamilies", ["IPv4"])
        set_default(spec, "ipFamilyPolicy", "SingleStack")
    obj.setdefault("status", {"loadBalancer": {}})


def secret(obj):
    set_default(obj, "type", "Opaque")
    for key, text in (obj.pop("stringData", None) or {}).items():
        obj.setdefault("data", {})[key] = base64.b64encode(text.encode()).decode()


def namespace(obj):
    set_default(obj, "spec", {})["finalizers"] = ["kubernetes"]
    obj["status"] = {"phase": "Active"}
    obj["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = obj["metadata"].get("name", "")


def node(obj):
    set_default(obj, "spec", {})
    status = set_default(obj, "status", {})
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])


def priority_class(obj):
    set_default(obj, "preemptionPolicy", "PreemptLowerPriority")
    set_default(obj, "value", 0)


def claim(obj):
    set_default(obj["spec"], "volumeMode", "Filesystem")
    obj["status"] = {"phase": "Pending"}


def volume(obj):
    set_default(obj["spec"], "volumeMode", "Filesystem")
    set_default(obj["spec"], "persistentVolumeReclaimPolicy", "Retain")
    obj["status"] = {"phase": "Pending"}


def storage_class(obj):
    set_default(obj, "reclaimPolicy", "Delete")
    set_default(obj, "volumeBindingMode", "Immediate")


def role_binding(obj):
    for subject in obj.get("subjects") or []:
        if subject.get("kind") in ("User", "Group"):
            set_default(subject, "apiGroup", "rbac.authorization.k8s.io")
    set_default(obj["roleRef"], "apiGroup", "rbac.authorization.k8s.io")


def definition(obj):
    names = obj["spec"]["names"]
    set_default(names, "singular", names.get("kind", "").lower())
    set_default(names, "listKind", names.get("kind", "") + "List")
    set_default(obj["spec"], "conversion", {"strategy": "None"})
    set_default(obj, "status", {"conditions": [], "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": [
        one.get("name", "") for one in obj["spec"].get("versions") or [] if one.get("storage")]})


def network_policy(obj):
    spec = obj["spec"]
    set_default(spec, "policyTypes", ["Ingress"] + (["Egress"] if spec.get("egress") else []))


BY_KIND = {"Pod": pod, "Job": job, "StatefulSet": workload, "Deployment": workload, "Service": service, "Secret": secret,
           "Namespace": namespace, "Node": node, "PriorityClass": priority_class, "PersistentVolumeClaim": claim,
           "PersistentVolume": volume, "StorageClass": storage_class, "RoleBinding": role_binding, "ClusterRoleBinding": role_binding, "CustomResourceDefinition": definition,
           "NetworkPolicy": network_policy}


# Structs that are there even when a client leaves them out.
ALWAYS_THERE = {"Pod": ("spec",), "Job": ("spec", "spec.template"), "StatefulSet": ("spec", "spec.template"),
                "Deployment": ("spec", "spec.template"), "Service": ("spec",), "PersistentVolumeClaim": ("spec",),
                "PersistentVolume": ("spec",),
                "RoleBinding": ("roleRef",), "ClusterRoleBinding": ("roleRef",), "NetworkPolicy": ("spec",),
                "CustomResourceDefinition": ("spec", "spec.names")}


def fill_in(resource, obj):
    """Defaults of a new object, or of one that is about to take the place of a stored one."""
    if resource.is_custom:
        return
    for path in ALWAYS_THERE.get(resource.kind, ()):
        inner = obj
        for key in path.split("."):
            inner = set_default(inner, key, {})
    if resource.kind in BY_KIND:
        BY_KIND[resource.kind](obj)


def job_selector(obj):
    """The selector and labels by which a Job finds its pods; set when it is created."""
    spec, metadata = obj["spec"], obj["metadata"]
    if spec.get("manualSelector"):
        return
    spec["selector"] = {"matchLabels": {"controller-uid": metadata["uid"]}}
    labels = spec["template"]["metadata"].setdefault("labels", {})
    labels.update({"controller-uid": metadata["uid"], "job-name": metadata["name"]})
    if not metadata.get("labels"):
        metadata["labels"] = dict(labels)
    metadata.setdefault("annotations", {})["batch.kubernetes.io/job-tracking"] = ""

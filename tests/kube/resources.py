"""The resources that the server has, by group, version and plural, and what discovery says of them."""
from . import schema, values

READ_WRITE = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
WRITES = ("create", "patch", "update")
RBAC_GROUP = "rbac.authorization.k8s.io"
POD_FIELDS = ("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "status.phase", "status.podIP",
              "status.nominatedNodeName")
EVENT_FIELDS = ("involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
                "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason",
                "reportingComponent", "source", "type")


class Resource:
    """One resource. `type` is its type of schema.py; `fields` are what a fieldSelector may name beside the name and namespace."""

    def __init__(self, group, version, plural, kind, namespaced=True, subresources=(), fields=(), names=values.subdomain_problem,
                 verbs=READ_WRITE, short=(), type=None, is_custom=False):
        self.group, self.version, self.plural, self.kind, self.namespaced = group, version, plural, kind, namespaced
        self.subresources, self.verbs, self.short, self.names = tuple(subresources), tuple(verbs), tuple(short), names
        self.fields = {"metadata.name", *fields} | ({"metadata.namespace"} if namespaced else set())
        self.type = type or schema.TYPES[kind]
        self.is_custom = is_custom
        self.is_going = False  # its definition is being deleted: nothing new is made
        self.singular = kind.lower()
        self.api_version = f"{group}/{version}" if group else version
        self.key = f"{plural}.{group}" if group else plural
        self.prefix = f'{{"kind":"{kind}","apiVersion":"{self.api_version}"'.encode()

    def discovery(self):
        """Its entries of an APIResourceList."""
        base = {"name": self.plural, "singularName": self.singular if self.is_custom else "", "namespaced": self.namespaced,
                "kind": self.kind, "verbs": [verb for verb in self.verbs if not self.is_going or verb not in WRITES]}
        if self.short:
            base["shortNames"] = list(self.short)
        yield base
        for name in self.subresources:
            yield {"name": f"{self.plural}/{name}", "singularName": "", "namespaced": self.namespaced, **SUBRESOURCES[name](self)}


SUBRESOURCES = {
    "status": lambda resource: {"kind": resource.kind, "verbs": ["get", "patch", "update"]},
    "binding": lambda resource: {"kind": "Binding", "verbs": ["create"]},
    "eviction": lambda resource: {"group": "policy", "version": "v1", "kind": "Eviction", "verbs": ["create"]},
    "log": lambda resource: {"kind": "Pod", "verbs": ["get"]},
    "token": lambda resource: {"group": "authentication.k8s.io", "version": "v1", "kind": "TokenRequest", "verbs": ["create"]},
}


def built_in():
    label, segment = values.label_problem, values.path_segment_problem
    create = ("create",)
    return [
        Resource("", "v1", "namespaces", "Namespace", False, ["status"], ["status.phase"], label, short=["ns"],
                 verbs=[verb for verb in READ_WRITE if verb != "deletecollection"]),
        Resource("", "v1", "nodes", "Node", False, ["status"], ["spec.unschedulable"], short=["no"]),
        Resource("", "v1", "pods", "Pod", True, ["status", "binding", "eviction", "log"], POD_FIELDS, short=["po"]),
        Resource("", "v1", "secrets", "Secret", fields=["type"]),
        Resource("", "v1", "configmaps", "ConfigMap", short=["cm"]),
        Resource("", "v1", "services", "Service", True, ["status"], ["spec.clusterIP", "spec.type"], values.service_problem, short=["svc"]),
        Resource("", "v1", "endpoints", "Endpoints", short=["ep"]),
        Resource("", "v1", "events", "Event", fields=EVENT_FIELDS, short=["ev"]),
        Resource("", "v1", "serviceaccounts", "ServiceAccount", True, ["token"], short=["sa"]),
        Resource("", "v1", "resourcequotas", "ResourceQuota", True, ["status"], short=["quota"]),
        Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", True, ["status"], short=["pvc"]),
        Resource("", "v1", "persistentvolumes", "PersistentVolume", False, ["status"], short=["pv"]),
        Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", False, short=["sc"]),
        Resource("batch", "v1", "jobs", "Job", True, ["status"], ["status.successful"]),
        Resource("apps", "v1", "statefulsets", "StatefulSet", True, ["status"], names=label, short=["sts"]),
        Resource("apps", "v1", "deployments", "Deployment", True, ["status"], short=["deploy"]),
        Resource("networking.k8s.io", "v1", "ingresses", "Ingress", True, ["status"], short=["ing"]),
        Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", True, ["status"], short=["netpol"]),
        Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", True, ["status"], short=["pdb"]),
        Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", False, short=["pc"]),
        Resource(RBAC_GROUP, "v1", "roles", "Role", names=segment),
        Resource(RBAC_GROUP, "v1", "clusterroles", "ClusterRole", False, names=segment),
        Resource(RBAC_GROUP, "v1", "rolebindings", "RoleBinding", names=segment),
        Resource(RBAC_GROUP, "v1", "clusterrolebindings", "ClusterRoleBinding", False, names=segment),
        Resource("coordination.k8s.io", "v1", "leases", "Lease"),
        Resource("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", False, verbs=create),
        Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", False, verbs=create),
        Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False, ["status"],
                 short=["crd"]),
    ]


def of_definition(definition, version):
    """The resource that a version of a CustomResourceDefinition makes."""
    spec = definition["spec"]
    names = spec["names"]
    openapi = (version.get("schema") or {}).get("openAPIV3Schema")
    return Resource(spec["group"], version["name"], names["plural"], names["kind"], spec["scope"] == "Namespaced",
                    ["status"] if "status" in (version.get("subresources") or {}) else [], short=names.get("shortNames") or (),
                    type=schema.custom_type(names["kind"], openapi), is_custom=True)


class Catalogue:
    """All resources; custom ones come and go."""

    def __init__(self):
        self.resources = {}
        for resource in built_in():
            self.add(resource)

    def add(self, resource):
        self.resources[resource.group, resource.version, resource.plural] = resource

    def remove(self, group, plural):
        for key in [key for key in self.resources if (key[0], key[2]) == (group, plural)]:
            del self.resources[key]

    def find(self, group, version, plural):
        return self.resources.get((group, version, plural))

    def by_key(self, key):
        return next(one for one in list(self.resources.values()) if one.key == key)

    def groups(self):
        """Versions by group, without the core group."""
        found = {}
        for group, version, _ in list(self.resources):
            if group and version not in found.setdefault(group, []):
                found[group].append(version)
        return found

    def api_group(self, group):
        versions = [{"groupVersion": f"{group}/{version}", "version": version} for version in self.groups()[group]]
        return {"name": group, "versions": versions, "preferredVersion": versions[0]}

    def resource_list(self, group, version):
        """The APIResourceList of a version; None when there is no such version."""
        found = [one for one in list(self.resources.values()) if (one.group, one.version) == (group, version)]
        if not found:
            return None
        entries = [entry for one in sorted(found, key=lambda one: one.plural) for entry in one.discovery()]
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{group}/{version}" if group else version,
                "resources": entries}

"""What an object may say: required fields, names, numbers, and what must not change. Each function gives causes of a 422."""
import json
import re

from . import schema, values
from .status import Cause, duplicate, forbidden_field, invalid, not_found_field, not_supported, required

POD_CHANGES = ("pod updates may not change fields other than `spec.containers[*].image`, `spec.initContainers[*].image`, "
               "`spec.activeDeadlineSeconds`, `spec.tolerations` (only additions to existing tolerations), "
               "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)")


def at_least(field, value, least):
    if value is not None and value < least:
        yield invalid(field, value, f"must be greater than or equal to {least}")


# ---- metadata ---------------------------------------------------------------------------------------

def metadata(resource, obj):
    meta = obj["metadata"]
    name = meta.get("name", "")
    if not name:
        yield required("metadata.name", "name or generateName is required")
    elif problem := resource.names(name):
        yield invalid("metadata.name", name, problem)
    yield from labels("metadata.labels", meta.get("labels"))
    yield from annotations(meta.get("annotations"))
    for i, owner in enumerate(meta.get("ownerReferences") or []):
        for key in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(key):
                yield invalid(f"metadata.ownerReferences[{i}].{key}", owner.get(key, ""), f"{key} must not be empty")
    if sum(bool(owner.get("controller")) for owner in meta.get("ownerReferences") or []) > 1:
        yield invalid("metadata.ownerReferences", "", "Only one reference can have Controller set to true")
    for finalizer in meta.get("finalizers") or []:
        if "/" not in finalizer and finalizer not in ("orphan", "foregroundDeletion", "kubernetes"):
            yield invalid("metadata.finalizers", finalizer, "name is neither a standard finalizer name nor is it fully qualified")


def labels(field, found):
    for key, value in (found or {}).items():
        if problem := values.key_problem(key):
            yield invalid(field, key, problem)
        if problem := values.label_value_problem(value):
            yield invalid(field, value, problem)


def annotations(found):
    for key in found or {}:
        if problem := values.key_problem(key.lower()):
            yield invalid("metadata.annotations", key, problem)
    if sum(len(key) + len(value) for key, value in (found or {}).items()) > 256 * 1024:
        yield Cause("FieldValueTooLong", "metadata.annotations", "Too long: must have at most 262144 bytes")


def metadata_update(old, new):
    for key in ("uid", "creationTimestamp"):
        if new["metadata"].get(key) != old["metadata"].get(key):
            yield invalid(f"metadata.{key}", new["metadata"].get(key), "field is immutable")
    if old["metadata"].get("deletionTimestamp"):
        more = set(new["metadata"].get("finalizers") or []) - set(old["metadata"].get("finalizers") or [])
        if more:
            yield forbidden_field("metadata.finalizers", "no new finalizers can be added if the object is being deleted, found new "
                                                         f"finalizers {json.dumps(sorted(more))}")


# ---- pods -------------------------------------------------------------------------------------------

def pod_spec(spec, path):
    yield from containers(spec, path)
    for i, toleration in enumerate(spec.get("tolerations") or []):
        yield from toleration_problems(toleration, f"{path}.tolerations[{i}]")
    yield from at_least(f"{path}.terminationGracePeriodSeconds", spec.get("terminationGracePeriodSeconds"), 0)
    yield from at_least(f"{path}.activeDeadlineSeconds", spec.get("activeDeadlineSeconds"), 1)
    for key in ("hostname", "subdomain"):
        if spec.get(key) and (problem := values.label_problem(spec[key])):
            yield invalid(f"{path}.{key}", spec[key], problem)
    for key in ("nodeName", "serviceAccountName", "priorityClassName"):
        if spec.get(key) and (problem := values.subdomain_problem(spec[key])):
            yield invalid(f"{path}.{key}", spec[key], problem)
    yield from labels(f"{path}.nodeSelector", spec.get("nodeSelector"))
    for i, term in enumerate(values.at_path(spec, "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
                                            ".nodeSelectorTerms") or []):
        yield from node_term(term, f"{path}.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
                                   f".nodeSelectorTerms[{i}]")


def node_term(term, path):
    for i, one in enumerate(term.get("matchExpressions") or []):
        n_values = len(one.get("values") or [])
        if one["operator"] in ("In", "NotIn") and n_values == 0:
            yield required(f"{path}.matchExpressions[{i}].values", "must be specified when `operator` is 'In' or 'NotIn'")
        if one["operator"] in ("Exists", "DoesNotExist") and n_values:
            yield forbidden_field(f"{path}.matchExpressions[{i}].values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
        if one["operator"] in ("Gt", "Lt") and n_values != 1:
            yield required(f"{path}.matchExpressions[{i}].values", "must be specified single value when `operator` is 'Lt' or 'Gt'")


def containers(spec, path):
    volumes = {}
    for i, volume in enumerate(spec.get("volumes") or []):
        yield from volume_problems(volume, f"{path}.volumes[{i}]", volumes)
        volumes[volume.get("name")] = volume
    seen = set()
    for kind in ("initContainers", "containers"):
        for i, container in enumerate(spec.get(kind) or []):
            field = f"{path}.{kind}[{i}]"
            if container.get("name") in seen:
                yield duplicate(f"{field}.name", container["name"])
            seen.add(container.get("name"))
            yield from container_problems(container, field, volumes)


def volume_problems(volume, field, seen):
    name = volume.get("name", "")
    if name and (problem := values.label_problem(name)):
        yield invalid(f"{field}.name", name, problem)
    if name in seen:
        yield duplicate(f"{field}.name", name)
    sources = [key for key in volume if key != "name"]
    for more in sources[1:]:
        yield forbidden_field(f"{field}.{more}", "may not specify more than 1 volume type")
    if volume.get("secret") is not None and not volume["secret"].get("secretName"):
        yield required(f"{field}.secret.secretName")
    if volume.get("configMap") is not None and not volume["configMap"].get("name"):
        yield required(f"{field}.configMap.name")


def container_problems(container, field, volumes):
    name = container.get("name", "")
    if name and (problem := values.label_problem(name)):
        yield invalid(f"{field}.name", name, problem)
    yield from resources(container.get("resources") or {}, f"{field}.resources")
    for i, variable in enumerate(container.get("env") or []):
        yield from variable_problems(variable, f"{field}.env[{i}]")
    paths = set()
    for i, mount in enumerate(container.get("volumeMounts") or []):
        if mount.get("name") and mount["name"] not in volumes:
            yield not_found_field(f"{field}.volumeMounts[{i}].name", mount["name"])
        if mount.get("mountPath") in paths:
            yield invalid(f"{field}.volumeMounts[{i}].mountPath", mount["mountPath"], "must be unique")
        paths.add(mount.get("mountPath"))
        if mount.get("subPath", "").startswith("/") or ".." in mount.get("subPath", "").split("/"):
            yield invalid(f"{field}.volumeMounts[{i}].subPath", mount["subPath"], "must be a relative path, and must not contain '..'")
    for i, port in enumerate(container.get("ports") or []):
        if not 0 < port.get("containerPort", 1) < 65536:
            yield invalid(f"{field}.ports[{i}].containerPort", port["containerPort"], "must be between 1 and 65535, inclusive")


def variable_problems(variable, field):
    if variable.get("name") and not values.ENV_NAME.match(variable["name"]):
        yield invalid(f"{field}.name", variable["name"],
                      "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not "
                      "start with a digit (e.g. 'my.env-name',  or 'MY_ENV.NAME',  or 'MyEnvName1', regex used for validation is "
                      "'[-._a-zA-Z][-._a-zA-Z0-9]*')")
    source = variable.get("valueFrom")
    if source is not None:
        if variable.get("value"):
            yield invalid(f"{field}.valueFrom", "", "may not be specified when `value` is not empty")
        if len(source) != 1:
            yield invalid(f"{field}.valueFrom", "", "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`")


def resources(found, field):
    limits = found.get("limits") or {}
    for which in ("limits", "requests"):
        for name, quantity in (found.get(which) or {}).items():
            inner = f"{field}.{which}[{name}]"
            if values.amount(quantity) < 0:
                yield invalid(inner, quantity, "must be greater than or equal to 0")
            if "/" not in name and name not in ("cpu", "memory", "ephemeral-storage") and not name.startswith("hugepages-"):
                yield invalid(inner, name, "must be a standard resource type or fully qualified")
            if "/" in name and values.amount(quantity).denominator != 1:
                yield invalid(inner, quantity, "must be an integer")
    for name, quantity in (found.get("requests") or {}).items():
        if name in limits and values.amount(quantity) > values.amount(limits[name]):
            yield invalid(f"{field}.requests", quantity, f"must be less than or equal to {name} limit")
        if "/" in name and limits.get(name) != quantity:
            detail = f"must be equal to {name} limit" if name in limits else ""
            yield invalid(f"{field}.requests", quantity, detail) if detail else required(
                f"{field}.limits", "Limit must be set for non overcommitable resources")


def toleration_problems(toleration, field):
    how = toleration.get("operator", "Equal")
    if not toleration.get("key") and how != "Exists":
        yield invalid(f"{field}.operator", toleration.get("operator", ""),
                      "operator must be Exists when `key` is empty, which means \"match all values and all keys\"")
    if how == "Exists" and toleration.get("value"):
        yield invalid(f"{field}.operator", toleration["value"], "value must be empty when `operator` is 'Exists'")
    if toleration.get("tolerationSeconds") is not None and toleration.get("effect") != "NoExecute":
        yield invalid(f"{field}.effect", toleration.get("effect", ""), "effect must be 'NoExecute' when `tolerationSeconds` is set")


def pod(obj):
    yield from pod_spec(obj["spec"], "spec")


def pod_update(old, new):
    """Of a pod's spec only images, deadlines and further tolerations may change."""
    def fixed(obj):
        spec = json.loads(json.dumps(obj["spec"]))
        for container in (spec.get("initContainers") or []) + spec["containers"]:
            container.pop("image", None)
        spec.pop("activeDeadlineSeconds", None)
        tolerations = spec.pop("tolerations", None) or []
        return spec, tolerations
    (before, had), (after, has) = fixed(old), fixed(new)
    if before != after or any(one not in has for one in had):
        yield forbidden_field("spec", POD_CHANGES)


# ---- jobs -------------------------------------------------------------------------------------------

def job(obj):
    spec = obj["spec"]
    for key in ("parallelism", "completions", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished"):
        yield from at_least(f"spec.{key}", spec.get(key), 0)
    if spec["completionMode"] == "Indexed":
        yield from indexed_job(obj)
    pod_template = spec["template"]
    yield from pod_spec(pod_template["spec"], "spec.template.spec")
    yield from labels("spec.template.labels", pod_template["metadata"].get("labels"))
    policy = pod_template["spec"].get("restartPolicy")
    if policy not in ("OnFailure", "Never"):
        yield required("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')
    if spec.get("selector") and not values.matches_selector(spec["selector"], pod_template["metadata"].get("labels")):
        yield invalid("spec.template.metadata.labels", json.dumps(pod_template["metadata"].get("labels")),
                      "`selector` does not match template `labels`")
    if spec.get("podFailurePolicy"):
        yield from failure_policy(spec)


def indexed_job(obj):
    spec = obj["spec"]
    if spec.get("completions") is None:
        yield required("spec.completions", "when completion mode is Indexed")
        return
    if spec["parallelism"] > 100000:
        yield invalid("spec.parallelism", spec["parallelism"], "must be less than or equal to 100000 when completion mode is Indexed")
    name = f"{obj['metadata'].get('name', '')}-{max(spec['completions'] - 1, 0)}"
    if obj["metadata"].get("name") and (problem := values.label_problem(name)):
        yield invalid("metadata.name", obj["metadata"]["name"], f"will not able to create pod with invalid DNS label: {name}: {problem}")


def failure_policy(spec):
    if spec["template"]["spec"].get("restartPolicy") != "Never":
        yield invalid("spec.template.spec.restartPolicy", spec["template"]["spec"].get("restartPolicy"),
                      'only "Never" is supported when podFailurePolicy is specified')
    names = [one["name"] for kind in ("containers", "initContainers") for one in spec["template"]["spec"].get(kind) or []]
    for i, rule in enumerate(spec["podFailurePolicy"]["rules"]):
        field = f"spec.podFailurePolicy.rules[{i}]"
        codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions")
        if (codes is None) == (not conditions):
            yield invalid(field, "", "specifying one of OnExitCodes and OnPodConditions is required" if codes is None
                          else "specifying both OnExitCodes and OnPodConditions is not supported")
        if codes:
            if codes.get("containerName") and codes["containerName"] not in names:
                yield invalid(f"{field}.onExitCodes.containerName", codes["containerName"], "must be one of the container or "
                              "initContainer names in the pod template")
            if codes["operator"] == "In" and 0 in codes["values"]:
                yield invalid(f"{field}.onExitCodes.values[{codes['values'].index(0)}]", 0, "must not be 0 for the In operator")
        for k, condition in enumerate(conditions or []):
            if not condition.get("status"):
                yield required(f"{field}.onPodConditions[{k}].status", 'valid values: ["False" "True" "Unknown"]')


SCHEDULING = ("nodeSelector", "tolerations")


def scheduling_free(pod_template):
    """A template without what may change while a Job is suspended and has never started."""
    copy = json.loads(json.dumps(pod_template))
    for key in SCHEDULING:
        copy["spec"].pop(key, None)
    (copy["spec"].get("affinity") or {}).pop("nodeAffinity", None)
    if not copy["spec"].get("affinity"):
        copy["spec"].pop("affinity", None)
    copy["metadata"].pop("labels", None)
    copy["metadata"].pop("annotations", None)
    return copy


def job_update(old, new):
    before, after = old["spec"], new["spec"]
    for key in ("completions", "selector", "completionMode", "podFailurePolicy"):
        if before.get(key) != after.get(key):
            yield invalid(f"spec.{key}", json.dumps(after.get(key)), "field is immutable")
    had, has = before["template"], after["template"]
    if before.get("suspend") and not (old.get("status") or {}).get("startTime"):
        had, has = scheduling_free(had), scheduling_free(has)
    if had != has:
        yield invalid("spec.template", json.dumps(after["template"]), "field is immutable")


# ---- others -----------------------------------------------------------------------------------------

def config_keys(obj):
    for field in ("data", "binaryData"):
        for key in obj.get(field) or {}:
            if len(key) > 253 or key in (".", "..") or not values.CONFIG_KEY.match(key):
                yield invalid(f"{field}[{key}]", key, "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "
                              "'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')")
    size = sum(len(value) for field in ("data", "binaryData") for value in (obj.get(field) or {}).values())
    if size > 1024 * 1024 * (4 / 3 if "type" in obj else 1):
        yield Cause("FieldValueTooLong", "data", "Too long: must have at most 1048576 bytes")


def config_update(old, new):
    if old.get("immutable") and any(old.get(key) != new.get(key) for key in ("data", "binaryData", "immutable")):
        yield forbidden_field("data", "field is immutable when `immutable` is set")
    if old.get("type") != new.get("type"):
        yield invalid("type", new.get("type"), "field is immutable")


def service(obj):
    spec = obj["spec"]
    if not spec.get("ports") and spec.get("clusterIP") != "None" and spec["type"] != "ExternalName":
        yield required("spec.ports")
    names = set()
    for i, port in enumerate(spec.get("ports") or []):
        if not 0 < port.get("port", 1) < 65536:
            yield invalid(f"spec.ports[{i}].port", port["port"], "must be between 1 and 65535, inclusive")
        if len(spec["ports"]) > 1 and not port.get("name"):
            yield required(f"spec.ports[{i}].name")
        if port.get("name") in names and port.get("name"):
            yield duplicate(f"spec.ports[{i}].name", port["name"])
        names.add(port.get("name"))


def service_update(old, new):
    if old["spec"].get("clusterIP") != new["spec"].get("clusterIP"):
        yield invalid("spec.clusterIP", new["spec"].get("clusterIP"), "field is immutable")


def workload(obj):
    spec = obj["spec"]
    if not values.matches_selector(spec.get("selector"), spec["template"]["metadata"].get("labels")):
        yield invalid("spec.template.metadata.labels", json.dumps(spec["template"]["metadata"].get("labels")),
                      "`selector` does not match template `labels`")
    yield from pod_spec(spec["template"]["spec"], "spec.template.spec")
    if spec["template"]["spec"].get("restartPolicy") != "Always":
        yield not_supported("spec.template.spec.restartPolicy", spec["template"]["spec"].get("restartPolicy"), ["Always"])


def workload_update(old, new):
    if old["spec"].get("selector") != new["spec"].get("selector"):
        yield invalid("spec.selector", json.dumps(new["spec"].get("selector")), "field is immutable")


def budget(obj):
    spec = obj.get("spec") or {}
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        yield invalid("spec", "", "minAvailable and maxUnavailable cannot be both set")
    for key in ("minAvailable", "maxUnavailable"):
        value = spec.get(key)
        if isinstance(value, str) and not re.match(r"^\d+%$", value):
            yield invalid(f"spec.{key}", value, "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or "
                                                "'93%', regex used for validation is '[0-9]+%')")


def role_reference_update(old, new):
    if old["roleRef"] != new["roleRef"]:
        yield invalid("roleRef", json.dumps(new["roleRef"]), "cannot change roleRef")


def lease(obj):
    spec = obj.get("spec") or {}
    if spec.get("leaseDurationSeconds") is not None and spec["leaseDurationSeconds"] <= 0:
        yield invalid("spec.leaseDurationSeconds", spec["leaseDurationSeconds"], "must be greater than 0")
    if spec.get("leaseTransitions") is not None and spec["leaseTransitions"] < 0:
        yield invalid("spec.leaseTransitions", spec["leaseTransitions"], "must be greater than or equal to 0")


def priority_class(obj):
    if obj.get("value", 0) > 1000000000:
        yield forbidden_field("value", "maximum allowed value of a user defined priority is 1000000000")


def priority_class_update(old, new):
    if old.get("value") != new.get("value"):
        yield forbidden_field("Value", "may not be changed in an update.")


def claim(obj):
    if not obj["spec"].get("accessModes"):
        yield required("spec.accessModes", "at least 1 access mode is required")
    if not values.at_path(obj, "spec.resources.requests.storage"):
        yield required("spec.resources[storage]")


def claim_update(old, new):
    def fixed(obj):
        spec = {key: one for key, one in obj["spec"].items() if key != "resources"}
        return {key: one for key, one in spec.items() if key != "volumeName" or old["spec"].get("volumeName")}
    if fixed(old) != fixed(new):
        yield forbidden_field("spec", "spec is immutable after creation except resources.requests for bound claims")


VOLUME_SOURCES = ("local", "hostPath", "nfs", "csi")


def volume(obj):
    spec = obj["spec"]
    if not spec.get("accessModes"):
        yield required("spec.accessModes")
    if not (spec.get("capacity") or {}).get("storage"):
        yield required("spec.capacity")
    sources = [key for key in VOLUME_SOURCES if spec.get(key) is not None]
    if not sources:
        yield required("spec", "must specify a volume type")
    for more in sources[1:]:
        yield forbidden_field(f"spec.{more}", "may not specify more than 1 volume type")
    if spec.get("local") is not None and not values.at_path(spec, "nodeAffinity.required"):
        yield required("spec.nodeAffinity", "Local volume requires node affinity")
    for i, term in enumerate(values.at_path(spec, "nodeAffinity.required.nodeSelectorTerms") or []):
        yield from node_term(term, f"spec.nodeAffinity.required.nodeSelectorTerms[{i}]")


def volume_update(old, new):
    for source in VOLUME_SOURCES:
        if old["spec"].get(source) != new["spec"].get(source):
            yield forbidden_field("spec.persistentvolumesource", "spec.persistentvolumesource is immutable after creation")
    if old["spec"].get("nodeAffinity") and old["spec"]["nodeAffinity"] != new["spec"].get("nodeAffinity"):
        yield invalid("spec.nodeAffinity", json.dumps(new["spec"].get("nodeAffinity")), "field is immutable")
    if old["spec"].get("volumeMode") != new["spec"].get("volumeMode"):
        yield invalid("spec.volumeMode", new["spec"].get("volumeMode"), "field is immutable")


def storage_class(obj):
    if not obj.get("provisioner"):
        yield required("provisioner")


def storage_class_update(old, new):
    for key in ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"):
        if old.get(key) != new.get(key):
            yield forbidden_field(key, "updates to " + key + " are forbidden.")


def definition(obj):
    spec, name = obj["spec"], obj["metadata"].get("name", "")
    if name != f"{spec['names']['plural']}.{spec['group']}":
        yield invalid("metadata.name", name, "must be spec.names.plural+\".\"+spec.group")
    if sum(bool(one.get("storage")) for one in spec["versions"]) != 1:
        yield invalid("spec.versions", "", "must have exactly one version marked as storage version")
    for i, version in enumerate(spec["versions"]):
        if not values.at_path(version, "schema.openAPIV3Schema"):
            yield required(f"spec.versions[{i}].schema.openAPIV3Schema", "schemas are required")
            continue
        where = "spec" if len(spec["versions"]) == 1 else f"spec.versions[{i}]"
        part = "validation" if len(spec["versions"]) == 1 else "schema"
        yield from structural(version["schema"]["openAPIV3Schema"], f"{where}.{part}.openAPIV3Schema", "at the root")
        for k, column in enumerate(version.get("additionalPrinterColumns") or []):
            yield from printer_column(column, f"{where}.additionalPrinterColumns[{k}]")


def structural(schema_of, field, whose="for specified object fields"):
    """Each part of a schema says of which type it is."""
    if not schema_of.get("type") and not schema_of.get("x-kubernetes-int-or-string") and not schema_of.get(
            "x-kubernetes-preserve-unknown-fields"):
        yield required(f"{field}.type", f"must not be empty {whose}")
    if schema_of.get("type") == "array" and not schema_of.get("items"):
        yield required(f"{field}.items", "must be specified")
    for key, one in (schema_of.get("properties") or {}).items():
        yield from structural(one, f"{field}.properties[{key}]")
    if isinstance(schema_of.get("items"), dict):
        yield from structural(schema_of["items"], f"{field}.items", "for specified array items")
    if isinstance(schema_of.get("additionalProperties"), dict):
        yield from structural(schema_of["additionalProperties"], f"{field}.additionalProperties")


def printer_column(column, field):
    if not column.get("name"):
        yield required(f"{field}.name")
    if column.get("type") not in ("boolean", "date", "integer", "number", "string"):
        yield invalid(f"{field}.type", column.get("type", ""), "must be one of boolean,date,integer,number,string")
    if not column.get("jsonPath"):
        yield required(f"{field}.JSONPath")
    elif not column["jsonPath"].startswith("."):
        yield invalid(f"{field}.JSONPath", column["jsonPath"], "must be a simple json path starting with .")


def event(obj):
    if obj["involvedObject"].get("namespace", "default") != obj["metadata"].get("namespace"):
        yield invalid("involvedObject.namespace", obj["involvedObject"].get("namespace", ""), "does not match event.namespace")


CREATE = {"Pod": pod, "Job": job, "ConfigMap": config_keys, "Secret": config_keys, "Service": service, "StatefulSet": workload,
          "Deployment": workload, "PodDisruptionBudget": budget, "Lease": lease, "PriorityClass": priority_class,
          "PersistentVolumeClaim": claim, "PersistentVolume": volume, "StorageClass": storage_class, "CustomResourceDefinition": definition, "Event": event}
UPDATE = {"Pod": pod_update, "Job": job_update, "ConfigMap": config_update, "Secret": config_update, "Service": service_update,
          "StatefulSet": workload_update, "Deployment": workload_update, "RoleBinding": role_reference_update,
          "ClusterRoleBinding": role_reference_update, "PriorityClass": priority_class_update,
          "PersistentVolumeClaim": claim_update, "PersistentVolume": volume_update, "StorageClass": storage_class_update}


def of_object(resource, obj, unsupported=()):
    """All that is wrong with an object. The checks of its kind suppose that its required fields are there."""
    causes = list(metadata(resource, obj))
    causes += [not_supported(path, value, choices) for path, value, choices in unsupported]
    lacking = sorted(schema.missing(resource.type, obj))
    causes += [required(path) for path in lacking]
    if not lacking and not resource.is_custom and resource.kind in CREATE:
        causes += CREATE[resource.kind](obj)
    return causes


def of_update(resource, old, new):
    causes = list(metadata_update(old, new))
    if not resource.is_custom and resource.kind in UPDATE:
        causes += UPDATE[resource.kind](old, new)
    return causes

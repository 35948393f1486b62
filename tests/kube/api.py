"""What the server does with objects: create, update, patch and delete them as the real one does, without HTTP.

server.py calls it for clients, the controllers call it for themselves. All is done under the store's lock.
"""
import uuid

from . import admission, apply, defaults, patch, pods, schema, status, validation, values
from .store import Item

# Resources of which a PUT creates what is not there, and those of which it must say which version it replaces.
CREATED_BY_UPDATE = {"leases.coordination.k8s.io", "endpoints", "events", "services", "priorityclasses.scheduling.k8s.io",
                     "roles.rbac.authorization.k8s.io", "clusterroles.rbac.authorization.k8s.io",
                     "rolebindings.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io"}
NEEDS_VERSION = {"leases.coordination.k8s.io", "poddisruptionbudgets.policy", "customresourcedefinitions.apiextensions.k8s.io"}
WITHOUT_GENERATION = {"ConfigMap", "Secret", "Event", "ServiceAccount", "Endpoints", "Lease", "Namespace", "Node", "Service", "Role",
                      "ClusterRole", "RoleBinding", "ClusterRoleBinding", "PersistentVolumeClaim", "ResourceQuota", "Pod"}
JOB_WARNING = ("child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
               "propagationPolicy=Orphan to suppress this warning")
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
SERVER_METADATA = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink", "managedFields")


class Writing:
    """How a write is done: by which manager of fields, on which subresource, whether it is only tried, and what it warned of."""

    def __init__(self, manager=None, subresource="", dry=False, strict="Warn", what=""):
        self.manager, self.subresource, self.dry, self.strict, self.what = manager, subresource, dry, strict, what
        self.warnings = []
        self.unsupported = []  # values of the body that are none of the allowed ones
        self.check = None  # a function of the object that may refuse it


class Api:
    def __init__(self, store, catalogue, faults, complaints):
        self.store, self.catalogue, self.faults, self.complaints = store, catalogue, faults, complaints
        self.lock = store.lock
        self.usage = admission.Usage(store)
        self.namespaces = catalogue.find("", "v1", "namespaces")
        self.toleration_seconds = 300  # for which pods stay on a node that is lost, unless they say otherwise
        self.events = {}  # names of Events by what they say

    def resource(self, key):
        return self.catalogue.by_key(key)

    # ---- bodies -------------------------------------------------------------------------------------

    def decode(self, resource, kind, body, writing, in_patch=False):
        """A body as an object of a type, without kind and apiVersion. Unknown fields are refused, or warned of and left out."""
        report = schema.Report()
        try:
            obj = schema.decode(kind, body, report)
        except schema.TypeMismatch as problem:
            raise self.undecodable(resource, kind, body, str(problem), in_patch) from problem
        if report.unknown:
            self.complaints.extend(f"{writing.what}: unknown field \"{path}\"" for path in report.unknown)
            sentences = [f'unknown field "{path}"' for path in report.unknown]
            if writing.strict == "Strict":
                raise self.undecodable(resource, kind, body, "strict decoding error: " + ", ".join(sentences), in_patch)
            if writing.strict == "Warn":
                writing.warnings += sentences
        writing.unsupported = report.unsupported
        obj.pop("kind", None)
        obj.pop("apiVersion", None)
        obj["metadata"] = obj.get("metadata") or {}
        return obj

    @staticmethod
    def undecodable(resource, kind, body, problem, in_patch):
        wrong = list(schema.wrong_types(kind, body)) if resource.is_custom and kind is resource.type else []
        if wrong:
            name = (body.get("metadata") or {}).get("name", "")
            return status.invalid_object(resource, name, [
                status.wrong_type(path, value, wanted, schema.openapi_type(value)) for path, value, wanted in wrong])
        if in_patch:
            return status.bad_patch(str(body)[:200], problem)
        return status.bad_request(f'{kind.name} in version "{resource.version}" cannot be handled as a {kind.name}: {problem}')

    # ---- create -------------------------------------------------------------------------------------

    def create(self, resource, namespace, obj, writing=None):
        """Store a new object; its item."""
        writing = writing or Writing()
        with self.lock:
            self.prepare_new(resource, namespace, obj)
            if resource.is_going:
                raise status.forbidden(resource, obj["metadata"].get("name", ""),
                                       "create not allowed while custom resource definition is terminating")
            defaults.fill_in(resource, obj)
            if resource.namespaced:
                admission.namespace(self.store, resource, obj, self.namespaces)
            if resource.key == "pods":
                admission.mutate_pod(self.store, resource, obj, self.toleration_seconds)
            elif resource.key == "jobs.batch":
                defaults.job_selector(obj)
            causes = validation.of_object(resource, obj, writing.unsupported)
            if causes:
                raise status.invalid_object(resource, obj["metadata"].get("name", ""), causes)
            if writing.check is not None:
                writing.check(obj)
            self.admit(resource, obj, writing)
            if self.store.get(resource.key, namespace, obj["metadata"]["name"]) is not None:
                raise status.already_exists(resource, obj["metadata"]["name"])
            if writing.manager:
                apply.track_update(resource.type, None, obj, writing.manager, resource.api_version, writing.subresource)
            return self.keep(resource, obj, writing)

    def prepare_new(self, resource, namespace, obj):
        metadata = obj["metadata"]
        if metadata.get("resourceVersion"):
            raise status.ApiError(500, "", "resourceVersion should not be set on objects to be created")
        self.check_namespace(resource, namespace, metadata)
        for key in SERVER_METADATA:
            metadata.pop(key, None)
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = metadata["generateName"][:58] + values.suffix()
        metadata["uid"] = str(uuid.uuid4())
        metadata["creationTimestamp"] = values.time_text()
        if resource.kind not in WITHOUT_GENERATION:
            metadata["generation"] = 1
        if "status" in resource.subresources and resource.key not in ("nodes", "services"):
            obj.pop("status", None)
        if resource.key == "pods":
            obj["status"] = {"phase": "Pending", "qosClass": defaults.quality_of_service(obj.get("spec") or {})}
        elif resource.key in ("jobs.batch", "resourcequotas", "poddisruptionbudgets.policy"):
            obj["status"] = {}

    @staticmethod
    def check_namespace(resource, namespace, metadata):
        if not resource.namespaced:
            if metadata.get("namespace"):
                raise status.bad_request("namespace is not allowed on this type")
            return
        if metadata.setdefault("namespace", namespace) != namespace:
            raise status.bad_request("the namespace of the provided object does not match the namespace sent on the request")

    def admit(self, resource, obj, writing):
        """Refuse what webhooks, pod security and quotas refuse."""
        fault = self.faults.take("refuse_admission", writing.what or f"POST /{resource.key}")
        if fault is not None:
            admission.refuse_by_webhook(fault)
        if resource.key in admission.WITH_PODS:
            admission.pod_security(self.store, resource, obj, writing.warnings)
        if resource.key == "pods" and self.faults.take("quota", writing.what or "POST /pods") is not None:
            admission.refuse_by_quota(resource, obj)
        if resource.namespaced:
            admission.check_quotas(self.store, self.usage, resource, obj)

    def keep(self, resource, obj, writing):
        if writing.dry:
            return self.unstored(obj)
        return self.store.put(resource.key, obj)

    @staticmethod
    def unstored(obj):
        """What is answered when a write is only tried."""
        return Item((obj["metadata"].get("namespace", ""), obj["metadata"]["name"]), obj, 0)

    # ---- read ---------------------------------------------------------------------------------------

    def get(self, resource, namespace, name):
        item = self.store.get(resource.key, namespace, name)
        if item is None:
            raise status.not_found(resource, name)
        return item

    # ---- update -------------------------------------------------------------------------------------

    def update(self, resource, namespace, name, obj, writing):
        """Put an object in the place of a stored one; (item, whether it was created)."""
        with self.lock:
            self.check_names(resource, namespace, name, obj["metadata"])
            item = self.store.get(resource.key, namespace, name)
            if item is None and resource.key in CREATED_BY_UPDATE and not writing.subresource:
                if obj["metadata"].pop("resourceVersion", None):
                    raise status.conflict(resource, name, "StorageError: invalid object, Code: 4, Precondition failed")
                return self.create(resource, namespace, obj, writing), True
            if item is None:
                raise status.not_found(resource, name)
            self.check_version(resource, name, obj, item)
            return self.replace(resource, item, obj, writing), False

    def check_names(self, resource, namespace, name, metadata):
        self.check_namespace(resource, namespace, metadata)
        if not metadata.get("name"):
            raise status.bad_request("name must be provided")
        if metadata["name"] != name:
            raise status.bad_request(f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})")

    @staticmethod
    def check_version(resource, name, obj, item):
        version, uid = obj["metadata"].get("resourceVersion"), obj["metadata"].get("uid")
        if uid and uid != item.obj["metadata"]["uid"]:
            raise status.conflict(resource, name, f"Precondition failed: UID in precondition: {uid}, UID in object meta: "
                                                  f"{item.obj['metadata']['uid']}")
        if not version:
            if resource.key in NEEDS_VERSION or resource.is_custom:
                raise status.invalid_object(resource, name, [status.Cause(
                    "FieldValueInvalid", "metadata.resourceVersion", "Invalid value: 0x0: must be specified for an update")])
        elif version != str(item.revision):
            raise status.modified(resource, name)

    def replace(self, resource, item, obj, writing, managed=False):
        """Check and store a new state of an object. managed: its managedFields are made already."""
        old = item.obj
        self.keep_what_is_fixed(resource, item, obj, writing)
        if not writing.subresource:
            defaults.fill_in(resource, obj)
            if "status" in resource.subresources:
                restore(obj, old, "status")
        causes = validation.of_update(resource, old, obj) if not writing.subresource else []
        causes = causes or validation.of_object(resource, obj, writing.unsupported)
        if causes:
            raise status.invalid_object(resource, old["metadata"]["name"], causes)
        if writing.check is not None:
            writing.check(obj)
        if resource.kind not in WITHOUT_GENERATION and content(obj) != content(old):
            obj["metadata"]["generation"] = old["metadata"].get("generation", 1) + 1
        if not managed:
            restore(obj["metadata"], old["metadata"], "managedFields")
            if obj != old and writing.manager:
                apply.track_update(resource.type, old, obj, writing.manager, resource.api_version, writing.subresource)
        return self.put_changed(resource, item, obj, writing)

    @staticmethod
    def keep_what_is_fixed(resource, item, obj, writing):
        """The server's own metadata, and what the other subresource has, stay as they are."""
        old, metadata = item.obj, obj["metadata"]
        for key in ("uid", "creationTimestamp"):
            if not metadata.get(key):
                metadata[key] = old["metadata"][key]
        for key in ("deletionTimestamp", "deletionGracePeriodSeconds", "generation", "generateName"):
            restore(metadata, old["metadata"], key)
        metadata["resourceVersion"] = str(item.revision)
        if resource.key == "services" and not obj.get("spec", {}).get("clusterIP"):
            obj.setdefault("spec", {})["clusterIP"] = old["spec"].get("clusterIP")
        if writing.subresource == "status":
            for key in old.keys() | obj.keys():
                if key not in ("status", "metadata"):
                    restore(obj, old, key)
            if resource.key != "nodes":
                managed = metadata.get("managedFields")
                obj["metadata"] = {**old["metadata"]}
                if managed is not None:
                    obj["metadata"]["managedFields"] = managed

    def put_changed(self, resource, item, obj, writing):
        """Store a new state; one that is the old one is not stored. What was only waiting for its finalizers is removed."""
        if obj == item.obj:
            return item
        if writing.dry:
            return self.unstored(obj)
        metadata = obj["metadata"]
        if metadata.get("deletionTimestamp") and not metadata.get("finalizers") and not metadata.get("deletionGracePeriodSeconds"):
            if resource.key != "namespaces" or not (obj.get("spec") or {}).get("finalizers"):
                return self.store.remove(resource.key, metadata.get("namespace"), metadata["name"])
        return self.store.put(resource.key, obj)

    def change(self, resource_key, namespace, name, change):
        """For controllers: let a function change an object as it is stored now. None when it is gone, or it returns False."""
        with self.lock:
            item = self.store.get(resource_key, namespace, name)
            if item is None:
                return None
            obj = item.copy()
            if change(obj) is False:
                return None
            resource = self.resource(resource_key)
            if resource.kind not in WITHOUT_GENERATION and content(obj) != content(item.obj):
                obj["metadata"]["generation"] = item.obj["metadata"].get("generation", 1) + 1
            return self.put_changed(resource, item, obj, Writing())

    # ---- patch --------------------------------------------------------------------------------------

    def patch(self, resource, namespace, name, how, body, writing, force=False):
        """Patch an object; (item, whether it was created). how: merge, json, strategic or apply."""
        with self.lock:
            item = self.store.get(resource.key, namespace, name)
            if how == "apply":
                return self.apply(resource, namespace, name, item, body, writing, force)
            if item is None:
                raise status.not_found(resource, name)
            patched = self.patched(resource, item.copy(), how, body)
            obj = self.decode(resource, resource.type, patched, writing, in_patch=True)
            self.check_names(resource, namespace, name, obj["metadata"])
            self.check_version(resource, name, obj, item)
            return self.replace(resource, item, obj, writing), False

    @staticmethod
    def patched(resource, target, how, body):
        if how == "json":
            return patch.json_patch({"kind": resource.kind, "apiVersion": resource.api_version, **target}, body)
        if not isinstance(body, dict):
            raise status.bad_request("json: cannot unmarshal array into Go value of type map[string]interface {}")
        if how == "merge":
            return patch.merge_patch(target, body)
        if resource.is_custom:
            raise status.unsupported_media_type(["application/json-patch+json", "application/merge-patch+json",
                                                 "application/apply-patch+yaml"])
        return patch.strategic_patch(resource.type, target, body)

    def apply(self, resource, namespace, name, item, body, writing, force):
        config = self.decode_applied(resource, namespace, name, body, writing)
        if config["metadata"].get("managedFields"):
            raise status.bad_request("metadata.managedFields must be nil")
        self.check_names(resource, namespace, name, {**config["metadata"], "name": config["metadata"].get("name", name)})
        config["metadata"].setdefault("name", name)
        if item is None:
            if writing.subresource:
                raise status.not_found(resource, name)
            if config["metadata"].get("uid"):
                raise status.conflict(resource, name, f"uid mismatch: the provided object specified uid {config['metadata']['uid']}, and no "
                                                      "existing object was found")
            return self.create_applied(resource, namespace, config, writing), True
        if config["metadata"].get("resourceVersion") or config["metadata"].get("uid"):
            self.check_version(resource, name, config, item)
        obj = apply.apply(resource.type, item.copy(), config, writing.manager, resource.api_version, writing.subresource, force)
        if same_but_times(obj, item.obj):
            return item, False
        return self.replace(resource, item, obj, writing, managed=True), False

    def decode_applied(self, resource, namespace, name, body, writing):
        """A configuration. What is not of the kind's schema is an error, whatever fieldValidation says: 500 up to 1.27."""
        report = schema.Report()
        try:
            schema.decode(resource.type, body, report)
            problems = [f".{path}: field not declared in schema" for path in report.unknown]
        except schema.TypeMismatch as problem:
            problems = [str(problem)]
        if not problems:
            return self.decode(resource, resource.type, body, writing)
        self.complaints.extend(f"{writing.what}: {problem}" for problem in problems)
        text = problems[0] if len(problems) == 1 else "errors:\n" + "".join(f"  {one}\n" for one in problems)
        where = f"{namespace}/{name}" if namespace else f"/{name}"
        raise status.ApiError(500, "", f"failed to create typed patch object ({where}; {resource.api_version}, Kind={resource.kind}): {text}")

    def create_applied(self, resource, namespace, config, writing):
        paths = {path for path, _ in apply.fields_of(resource.type, config)}
        made = Writing(None, "", writing.dry, writing.strict, writing.what)
        made.unsupported, made.check, made.warnings = writing.unsupported, writing.check, writing.warnings
        item = self.create(resource, namespace, config, made)
        item.obj["metadata"]["managedFields"] = [apply.entry(writing.manager, "Apply", resource.api_version, paths, "")]
        return item

    # ---- delete -------------------------------------------------------------------------------------

    def delete(self, resource, namespace, name, options=None, writing=None):
        """Delete an object, or begin to: (item, whether it is gone)."""
        options, writing = options or {}, writing or Writing()
        with self.lock:
            item = self.get(resource, namespace, name)
            check_preconditions(resource, item, options.get("preconditions") or {})
            policy = self.policy(resource, options, writing)
            obj = item.copy()
            metadata = obj["metadata"]
            add_policy_finalizer(metadata, policy)
            grace = self.grace(resource, obj, options)
            if resource.kind == "CustomResourceDefinition":
                begin_cleanup(obj)
            stays = grace > 0 or metadata.get("finalizers") or resource.key == "namespaces"
            if writing.dry:
                return item, not stays
            if not stays:
                return self.store.remove(resource.key, namespace, name), True
            mark_deleted(metadata, grace)
            if resource.key == "namespaces":
                obj["status"] = {**obj.get("status", {}), "phase": "Terminating"}
            return (item if obj == item.obj else self.store.put(resource.key, obj)), False

    @staticmethod
    def policy(resource, options, writing):
        if options.get("propagationPolicy") and options.get("orphanDependents") is not None:
            raise status.invalid_object(resource, "", [status.invalid(
                "propagationPolicy", options["propagationPolicy"], "orphanDependents and deletionPropagation cannot be both set")])
        if options.get("propagationPolicy"):
            return options["propagationPolicy"]
        if options.get("orphanDependents") is not None:
            return "Orphan" if options["orphanDependents"] else "Background"
        if resource.key == "jobs.batch":
            writing.warnings.append(JOB_WARNING)
            return "Orphan"
        return "Background"

    @staticmethod
    def grace(resource, obj, options):
        """How many seconds a pod has to end; others have none."""
        if resource.key != "pods":
            return 0
        seconds = options.get("gracePeriodSeconds")
        if seconds is None:
            seconds = obj["spec"].get("terminationGracePeriodSeconds", 30)
        if seconds < 0:
            seconds = 1
        if not obj["spec"].get("nodeName") or obj["status"].get("phase") in ("Succeeded", "Failed"):
            return 0
        return seconds

    # ---- events -------------------------------------------------------------------------------------

    def record(self, resource, obj, kind, reason, message, component):
        """An Event about an object; the same one again only counts."""
        metadata = obj["metadata"]
        namespace = metadata.get("namespace") or "default"
        with self.lock:
            said = (namespace, metadata["uid"], reason, message)
            found = self.store.get("events", namespace, self.events.get(said))
            now = values.time_text()
            if found is not None:
                event = found.copy()
                event["count"] = event.get("count", 1) + 1
                event["lastTimestamp"] = now
                self.store.put("events", event)
                return
            if self.store.get("namespaces", "", namespace) is None:
                return
            reference = {"kind": resource.kind, "namespace": metadata.get("namespace"), "name": metadata["name"], "uid": metadata["uid"],
                         "apiVersion": resource.api_version, "resourceVersion": metadata.get("resourceVersion")}
            reference = {key: value for key, value in reference.items() if value}
            self.events[said] = f"{metadata['name']}.{uuid.uuid4().hex[:16]}"
            self.store.put("events", {
                "metadata": {"name": self.events[said], "namespace": namespace, "uid": str(uuid.uuid4()),
                             "creationTimestamp": now},
                "involvedObject": reference, "reason": reason, "message": message, "source": {"component": component},
                "firstTimestamp": now, "lastTimestamp": now, "count": 1, "type": kind, "eventTime": None, "reportingComponent": "",
                "reportingInstance": ""})


def restore(obj, old, key):
    """Give a key the value it had, also none."""
    if key in old:
        obj[key] = old[key]
    else:
        obj.pop(key, None)


def content(obj):
    return {key: value for key, value in obj.items() if key not in ("metadata", "status")}


def same_but_times(obj, old):
    """Are two states the same but for the times of their managedFields?"""
    def plain(one):
        managed = [{key: value for key, value in record.items() if key != "time"}
                   for record in one["metadata"].get("managedFields") or []]
        return {**one, "metadata": {**one["metadata"], "managedFields": managed}}
    return plain(obj) == plain(old)


def check_preconditions(resource, item, wanted):
    metadata = item.obj["metadata"]
    for key, words in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        if wanted.get(key) and wanted[key] != metadata[key]:
            raise status.conflict(resource, metadata["name"], f"Precondition failed: {words} in precondition: {wanted[key]}, {words} in "
                                                              f"object meta: {metadata[key]}")


def add_policy_finalizer(metadata, policy):
    finalizers = [one for one in metadata.get("finalizers") or [] if one not in ("orphan", "foregroundDeletion")]
    if policy == "Orphan":
        finalizers.append("orphan")
    elif policy == "Foreground":
        finalizers.append("foregroundDeletion")
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)


def begin_cleanup(definition):
    """A definition stays until all that it defines is gone."""
    finalizers = definition["metadata"].setdefault("finalizers", [])
    if CLEANUP not in finalizers:
        finalizers.append(CLEANUP)
    if not definition["metadata"].get("deletionTimestamp"):
        pods.set_condition(definition, "Terminating", "True", "InstanceDeletionPending",
                           "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon")


def mark_deleted(metadata, grace):
    """Begin a deletion, or shorten one that has begun."""
    if not metadata.get("deletionTimestamp"):
        metadata["deletionTimestamp"] = values.time_text(values.now() + values.datetime.timedelta(seconds=grace))
        metadata["deletionGracePeriodSeconds"] = grace
        if "generation" in metadata:
            metadata["generation"] += 1
    elif grace < metadata.get("deletionGracePeriodSeconds", 0):
        metadata["deletionGracePeriodSeconds"] = grace
        metadata["deletionTimestamp"] = values.time_text(values.now() + values.datetime.timedelta(seconds=grace))

"""The HTTP side of the server: who asks, what for, may they, and the answer as JSON."""
import collections
import contextlib
import json
import re
import threading
import time
import traceback

from . import rbac, reading, schema, status, values
from .api import Writing
from .store import Item, whole
from .wire import BODY_MAX, Closed, Listener, Malformed

VERSION = {"major": "1", "minor": "26", "gitVersion": "v1.26.5", "gitCommit": "", "gitTreeState": "clean",
           "buildDate": "2023-05-17T00:00:00Z", "goVersion": "go1.19.9", "compiler": "gc", "platform": "linux/amd64"}
PATCHES = {"application/json-patch+json": "json", "application/merge-patch+json": "merge",
           "application/strategic-merge-patch+json": "strategic", "application/apply-patch+yaml": "apply"}
HEALTH = ("/healthz", "/livez", "/readyz")
OK = b"ok"
METHODS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
POD_CREATED_BY = {"binding": "Binding", "eviction": "Eviction"}


class Route:
    """What a path is of: a resource, a namespace, a name and a subresource. Those that it does not have are empty."""

    def __init__(self, resource, namespace="", name="", subresource=""):
        self.resource, self.namespace, self.name, self.subresource = resource, namespace, name, subresource


class Record:
    """A request that was asked, for tests that count. status is None while it is not answered, or was cut."""

    def __init__(self, method, path, query, user, status_code):
        self.method, self.path, self.query, self.user, self.status = method, path, query, user, status_code
        self.when = time.monotonic()

    def __repr__(self):
        return f"{self.method} {self.path} {self.query} by {self.user}: {self.status}"


class Server:
    """Serves an Api. `pods` does what pods have beside (log, eviction, binding)."""

    def __init__(self, api, tokens, pods, context):
        self.api, self.tokens, self.pods = api, tokens, pods
        self.store, self.catalogue, self.faults = api.store, api.catalogue, api.faults
        self.authorizer = rbac.Authorizer(api.store)
        self.reader = reading.Reader(api.store, api.faults)
        self.requests = []
        self.failures = []  # tracebacks of what went wrong in here
        self.checks_access = True
        self.listener = Listener(context, self.serve, self.wake)
        self.lock = threading.Lock()

    def wake(self):
        """Let all watches look whether their connection was cut."""
        with self.store.lock:
            for table in self.store.tables.values():
                table.changed.notify_all()

    # ---- one connection -----------------------------------------------------------------------------

    def serve(self, connection):
        while True:
            try:
                request = connection.read()
            except Malformed:
                connection.answer(400, b"400 Bad Request", "text/plain; charset=utf-8", [("Connection", "close")])
                return
            record = Record(request.method, request.path, request.query_text, None, None)
            with self.lock:
                self.requests.append(record)
            connection.record = record
            self.handle(connection, request, record)
            if request.headers.get("connection", "").lower() == "close" or request.is_too_large:
                return

    def handle(self, connection, request, record):
        """Answer a request; what fails is answered as a Status."""
        try:
            user = rbac.identify(self.tokens, request.headers.get("authorization"), request.certificate)
            record.user = user.name
            self.befall(connection, request)
            code, body = self.answer_of(connection, request, user)
        except status.ApiError as error:
            if connection.has_begun:
                raise Closed from error
            connection.answer(error.code, encode(error.status), headers=error.headers)
            return
        if body is not None:
            self.finish(connection, request, code, body)

    def answer_of(self, connection, request, user):
        """(code, body). What goes wrong in here is answered 500, and kept for the test."""
        try:
            return self.dispatch(connection, request, user)
        except (status.ApiError, Closed):
            raise
        except Exception as problem:
            self.failures.append(traceback.format_exc())
            raise status.internal(repr(problem)) from problem

    def befall(self, connection, request):
        """Faults that come before anything is done."""
        what = request.what()
        if self.faults.take("silent", what) is not None:
            while True:
                connection.receive()
        if self.faults.take("drop", what, when="before") is not None:
            raise Closed
        if self.faults.take("error500", what) is not None:
            raise status.internal("etcdserver: leader changed")
        if self.faults.take("unavailable503", what) is not None:
            raise status.unavailable()
        fault = self.faults.take("throttle", what)
        if fault is not None:
            raise status.too_many_requests("too many requests, please try again later", fault.options.get("retry_after", 1))

    def finish(self, connection, request, code, body):
        """Send an answer, or cut the connection where a fault wants it."""
        what = request.what()
        if self.faults.take("drop", what, when="after") is not None:
            raise Closed
        if self.faults.take("drop", what, when="middle") is not None:
            connection.answer_part(code, body)
            raise Closed
        kind = "text/plain; charset=utf-8" if body == OK else "application/json"
        connection.answer(code, b"" if request.method == "HEAD" else body, kind)

    # ---- which path ---------------------------------------------------------------------------------

    def dispatch(self, connection, request, user):
        """(code, body); body is None when a stream was sent."""
        check_accept(request.headers.get("accept", "*/*"))
        if request.is_too_large:
            raise status.too_large(BODY_MAX)
        parts = [part for part in request.path.split("/") if part]
        route = self.route(parts)
        if route is None:
            return self.other_path(request, parts, user)
        verb = self.verb(request, route)
        self.check(user, route, verb, request.query)
        if route.resource is None:
            raise status.no_such_path()
        return self.perform(connection, request, user, route, verb)

    def route(self, parts):
        """The route of a path; None when it is no path of resources. Its resource is None when there is no such one."""
        if parts[:1] == ["api"] and len(parts) >= 3:
            group, version, rest = "", parts[1], parts[2:]
        elif parts[:1] == ["apis"] and len(parts) >= 4:
            group, version, rest = parts[1], parts[2], parts[3:]
        else:
            return None
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2 and not (len(rest) == 3 and rest[2] in ("status", "finalize")):
            namespace, rest = rest[1], rest[2:]
        rest = rest + ["", ""]
        resource = self.catalogue.find(group, version, rest[0])
        known = resource is not None and len(rest) <= 5 and self.fits(resource, namespace, rest[1], rest[2])
        route = Route(resource if known else None, namespace, rest[1], rest[2])
        route.group, route.plural = group, rest[0]
        return route

    @staticmethod
    def fits(resource, namespace, name, subresource):
        if subresource and subresource not in resource.subresources:
            return False
        if resource.namespaced:
            return bool(namespace) or not name
        return not namespace

    @staticmethod
    def verb(request, route):
        verb = METHODS.get(request.method)
        if verb is None:
            raise status.method_not_allowed()
        if verb == "get" and not route.name:
            return "watch" if is_watch(request.query) else "list"
        if verb == "get" and is_watch(request.query) and not route.subresource:
            return "watch"
        return "deletecollection" if verb == "delete" and not route.name else verb

    def check(self, user, route, verb, query):
        if self.checks_access:
            namespace = route.name if (route.group, route.plural) == ("", "namespaces") else route.namespace
            name = route.name or (selected_name(query) if verb in ("list", "watch", "deletecollection") else "")
            self.authorizer.check(user, rbac.Question(verb, route.group, route.plural, route.subresource, namespace, name))

    def other_path(self, request, parts, user):
        path = "/" + "/".join(parts)
        if self.checks_access:
            self.authorizer.check(user, rbac.Question(request.method.lower(), path=request.path))
        answer = self.document(parts, path)
        if answer is None:
            raise status.no_such_path()
        if request.method not in ("GET", "HEAD"):
            raise status.method_not_allowed()
        return 200, encode(answer) if not isinstance(answer, bytes) else answer

    def document(self, parts, path):
        """What is served beside objects."""
        if path == "/version":
            return VERSION
        if parts[:1] and "/" + parts[0] in HEALTH:
            return OK
        if path == "/api":
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [
                {"clientCIDR": "0.0.0.0/0", "serverAddress": f"127.0.0.1:{self.listener.port}"}]}
        if path == "/apis":
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [self.catalogue.api_group(one) for one in self.catalogue.groups()]}
        if len(parts) == 2 and parts[0] == "api":
            return self.catalogue.resource_list("", parts[1])
        if len(parts) == 2 and parts[0] == "apis" and parts[1] in self.catalogue.groups():
            return {"kind": "APIGroup", "apiVersion": "v1", **self.catalogue.api_group(parts[1])}
        if len(parts) == 3 and parts[0] == "apis":
            return self.catalogue.resource_list(parts[1], parts[2])
        return None

    # ---- what is done -------------------------------------------------------------------------------

    def perform(self, connection, request, user, route, verb):
        resource = route.resource
        if route.subresource in POD_CREATED_BY or route.subresource in ("log", "token"):
            return self.perform_special(connection, request, route, verb)
        if not takes(route, verb):
            raise status.method_not_allowed()
        if verb == "list":
            selection = reading.Selection(resource, route.namespace, request.query)
            return 200, self.reader.list(resource, selection, request.query, request.what())
        if verb == "watch":
            selection = reading.Selection(resource, route.namespace, request.query, route.name)
            self.reader.watch(connection, resource, selection, request.query, request.what())
            return 200, None
        if verb == "get":
            return 200, whole(resource, self.api.get(resource, route.namespace, route.name))
        return self.write(connection, request, user, route, verb)

    def write(self, connection, request, user, route, verb):
        resource = route.resource
        writing = self.writing(request, route)
        if resource.group == rbac.GROUP and self.checks_access:
            writing.check = lambda obj: self.authorizer.check_grant(user, resource, obj, route.namespace)
        if verb != "create" and self.faults.take("conflict", request.what()) is not None:
            raise status.modified(resource, route.name)
        if verb == "delete":
            code, body = self.delete(request, route, writing)
        elif verb == "deletecollection":
            code, body = self.delete_collection(request, route, writing)
        elif verb == "patch":
            code, body = self.patch(request, route, writing)
        elif resource.kind in ("SelfSubjectAccessReview", "TokenReview"):
            code, body = self.review(request, user, route, writing)
        else:
            code, body = self.put_or_post(request, route, verb, writing)
        connection.warnings = writing.warnings
        return code, body

    def judge_duplicates(self, request, writing):
        """A key that stands twice in an object is refused or warned of as an unknown one is."""
        sentences = [f'duplicate field "{key}"' for key in request.duplicates]
        self.api.complaints.extend(f"{writing.what}: {one}" for one in sentences)
        if sentences and writing.strict == "Strict":
            raise status.bad_request("strict decoding error: " + ", ".join(sentences))
        if writing.strict == "Warn":
            writing.warnings += sentences

    def writing(self, request, route):
        strict = request.query.get("fieldValidation") or "Warn"
        if strict not in ("Strict", "Warn", "Ignore"):
            raise status.ApiError(422, "Invalid", f'CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "{strict}": '
                                                  'supported values: "Ignore", "Strict", "Warn"')
        dry = request.query.get("dryRun")
        if dry not in (None, "All"):
            raise status.ApiError(422, "Invalid", f'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: "{dry}": supported '
                                                  'values: "All"')
        manager = request.query.get("fieldManager") or request.headers.get("user-agent", "unknown").partition("/")[0]
        return Writing(manager[:128] or "unknown", route.subresource, dry == "All", strict, f"{request.method} {request.path}")

    def put_or_post(self, request, route, verb, writing):
        resource = route.resource
        body = object_of(request, resource.kind, resource.api_version)
        self.judge_duplicates(request, writing)
        obj = self.api.decode(resource, resource.type, body, writing)
        if verb == "create":
            return 201, whole(resource, self.api.create(resource, route.namespace, obj, writing))
        item, is_new = self.api.update(resource, route.namespace, route.name, obj, writing)
        return (201 if is_new else 200), whole(resource, item)

    def patch(self, request, route, writing):
        resource = route.resource
        how = PATCHES.get(media_type(request))
        if how is None:
            raise status.unsupported_media_type(PATCHES)
        body = parse(request, "error decoding YAML: yaml: " if how == "apply" else "error decoding patch: ")
        self.judge_duplicates(request, writing)
        force = request.query.get("force")
        if how == "apply":
            if not request.query.get("fieldManager"):
                raise status.ApiError(422, "Invalid", 'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for '
                                                      "apply patch")
            if not isinstance(body, dict) or not body.get("kind") or not body.get("apiVersion"):
                raise status.bad_request("Object 'Kind' is missing in '" + request.body[:100].decode("latin-1") + "'")
            check_kind(body, resource.kind, resource.api_version)
        elif force is not None:
            raise status.ApiError(422, "Invalid", 'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for '
                                                  "non-apply patch")
        item, is_new = self.api.patch(resource, route.namespace, route.name, how, body, writing, force in ("true", "1"))
        return (201 if is_new else 200), whole(resource, item)

    # ---- deletion -----------------------------------------------------------------------------------

    def delete_options(self, request):
        """Options of the body, or of the query."""
        options = {}
        if request.body.strip():
            check_json_type(request)
            report = schema.Report()
            try:
                options = schema.decode(schema.TYPES["DeleteOptions"], parse(request, ""), report)
            except schema.TypeMismatch as problem:
                raise status.bad_request(str(problem)) from problem
            self.api.complaints.extend(f'{request.method} {request.path}: unknown field "{path}"' for path in report.unknown)
            if report.unsupported:
                path, value, choices = report.unsupported[0]
                raise status.ApiError(422, "Invalid", f'DeleteOptions.meta.k8s.io "" is invalid: '
                                                      f"{status.not_supported(path, value, choices)}")
        if request.query.get("gracePeriodSeconds"):
            options.setdefault("gracePeriodSeconds", int(request.query["gracePeriodSeconds"]))
        if request.query.get("propagationPolicy"):
            options.setdefault("propagationPolicy", request.query["propagationPolicy"])
        return options

    def delete(self, request, route, writing):
        resource = route.resource
        options = self.delete_options(request)
        writing.dry = writing.dry or options.get("dryRun") == ["All"]
        item, is_gone = self.api.delete(resource, route.namespace, route.name, options, writing)
        if is_gone and resource.key != "pods":
            details = status.details_of(resource, route.name, uid=item.obj["metadata"]["uid"])
            return 200, encode(status.success(details=details))
        return 200, whole(resource, item)

    def delete_collection(self, request, route, writing):
        resource = route.resource
        selection = reading.Selection(resource, route.namespace, request.query)
        options = self.delete_options(request)
        gone = {}
        for key, item in sorted(self.store.table(resource.key).items.copy().items()):
            if selection.has(item):
                with contextlib.suppress(status.ApiError):
                    gone[key] = self.api.delete(resource, key[0], key[1], options, writing)[0]
        everything = reading.Selection(resource, "", {})
        return 200, reading.list_body(resource, everything, self.store.revision, gone, None, None)

    # ---- reviews, and what pods have beside ---------------------------------------------------------

    def review(self, request, user, route, writing):
        resource = route.resource
        obj = self.api.decode(resource, resource.type, object_of(request, resource.kind, resource.api_version), writing)
        if resource.kind == "TokenReview":
            obj["status"] = self.token_status(obj.get("spec") or {})
        else:
            obj["status"] = self.access_status(user, obj.get("spec") or {})
        obj["metadata"]["creationTimestamp"] = None
        return 201, whole(resource, Item(("", ""), obj, 0))

    def token_status(self, spec):
        user = self.tokens.user(spec.get("token", ""))
        if user is None:
            return {"user": {}, "error": "invalid bearer token"}
        return {"authenticated": True, "user": user.record(), "audiences": ["https://kubernetes.default.svc.cluster.local"]}

    def access_status(self, user, spec):
        asked, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
        if (asked is None) == (path is None):
            raise status.ApiError(422, "Invalid", 'SelfSubjectAccessReview.authorization.k8s.io "" is invalid: spec.resourceAttributes: '
                                  'Invalid value: "null": exactly one of nonResourceAttributes or resourceAttributes must be specified')
        if path is not None:
            question = rbac.Question(path.get("verb", ""), path=path.get("path", ""))
        else:
            question = rbac.Question(*(asked.get(key, "") for key in ("verb", "group", "resource", "subresource", "namespace", "name")))
        return {"allowed": self.authorizer.allows(user, question)}

    def perform_special(self, connection, request, route, verb):
        """pods/log, pods/binding, pods/eviction, serviceaccounts/token."""
        namespace, name = route.namespace, route.name
        if route.subresource == "log":
            if verb != "get":
                raise status.method_not_allowed()
            self.pods.log(connection, namespace, name, request.query)
            return 200, None
        if verb != "create":
            raise status.method_not_allowed()
        writing = self.writing(request, route)
        if route.subresource == "token":
            return self.make_token(request, route, writing)
        kind = schema.TYPES[POD_CREATED_BY[route.subresource]]
        api_version = "v1" if kind.name == "Binding" else "policy/v1"
        obj = self.api.decode(route.resource, kind, object_of(request, kind.name, api_version), writing)
        if obj["metadata"].get("name", name) != name:
            raise status.bad_request(f"name in URL does not match name in {kind.name} object")
        if route.subresource == "binding":
            fault = self.faults.take("slow_binding", request.what())
            if fault is not None:
                time.sleep(fault.options.get("seconds", 0.5))
            self.pods.bind(namespace, name, obj.get("target") or {}, obj["metadata"].get("annotations"))
        else:
            self.pods.evict(namespace, name, obj.get("deleteOptions") or {}, writing.dry)
        return 201, encode(status.success(201))

    def make_token(self, request, route, writing):
        resource = route.resource
        obj = self.api.decode(resource, schema.TYPES["TokenRequest"], object_of(request, "TokenRequest", "authentication.k8s.io/v1"), writing)
        account = self.api.get(resource, route.namespace, route.name)
        token = f"sa-{values.suffix(40)}"
        self.tokens.set_service_account(token, route.namespace, route.name, account.obj["metadata"]["uid"])
        seconds = (obj.get("spec") or {}).get("expirationSeconds", 3600)
        expires = values.time_text(values.now() + values.datetime.timedelta(seconds=seconds))
        obj["status"] = {"token": token, "expirationTimestamp": expires}
        return 201, encode({"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", **obj})


# ---- headers and bodies -----------------------------------------------------------------------------

def encode(obj):
    return json.dumps(obj, separators=(",", ":")).encode()


def is_watch(query):
    return query.get("watch") is not None and query["watch"].lower() not in ("0", "false")


def selected_name(query):
    """The name that a fieldSelector asks for: access to a list of one is that to the object."""
    match = re.fullmatch(r"metadata\.name==?([^,]+)", query.get("fieldSelector", ""))
    return match[1] if match else ""


def takes(route, verb):
    """Does what a path is of have this verb?"""
    if route.subresource:
        return verb in ("get", "update", "patch")
    if verb not in route.resource.verbs:
        return False
    if verb in ("create", "deletecollection"):
        return not route.name and bool(route.namespace) == route.resource.namespaced
    return bool(route.name) or verb in ("list", "watch")


def check_accept(accept):
    """ApiError 406 when JSON is none of what the client takes."""
    for clause in accept.split(","):
        kind, *parameters = [part.strip() for part in clause.split(";")]
        if kind in ("application/json", "application/*", "*/*") and not any(one.startswith("as=") for one in parameters):
            return
    raise status.not_acceptable()


def media_type(request):
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def check_json_type(request):
    """A body without a type is taken for JSON, as the real server does."""
    if media_type(request) not in ("application/json", ""):
        raise status.unsupported_media_type(["application/json"])


def parse(request, prefix):
    def pairs(found):
        request.duplicates += [key for key, n in collections.Counter(key for key, _ in found).items() if n > 1]
        return dict(found)
    try:
        return json.loads(request.body, parse_constant=refuse_constant, object_pairs_hook=pairs)
    except (ValueError, RecursionError) as problem:
        raise status.bad_request(f"{prefix}{problem}") from problem


def refuse_constant(text):
    raise ValueError(f"invalid character '{text[0]}' looking for beginning of value")


def object_of(request, kind, api_version):
    """The object of a body, which must be of this kind."""
    check_json_type(request)
    body = parse(request, "the object provided is unrecognized (must be of type " + kind + "): couldn't get version/kind; json parse error: ")
    check_kind(body, kind, api_version)
    return body


def check_kind(body, kind, api_version):
    if not isinstance(body, dict):
        raise status.bad_request(f"the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error: "
                                 "json: cannot unmarshal array into Go value of type struct")
    found = body.get("apiVersion") or api_version
    if found != api_version:
        raise status.bad_request(f"the API version in the data ({found}) does not match the expected API version ({api_version})")
    if (body.get("kind") or kind) != kind:
        raise status.bad_request(f'{body["kind"]} in version "{api_version.rpartition("/")[2]}" cannot be handled as a {kind}: converting '
                                 f'(v1.{body["kind"]}) to (v1.{kind}): unknown conversion')

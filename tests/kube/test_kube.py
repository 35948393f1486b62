#!/usr/bin/env python3
"""Tests of the test double: it answers plain HTTP clients as the API's documents say. Takes seconds, and needs nothing."""
import contextlib
import http.client
import json
import pathlib
import ssl
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from tests.kube import rbac, values  # noqa: E402
from tests.kube.cluster import ADMIN_TOKEN, Cluster  # noqa: E402

JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
PODS = "/api/v1/namespaces/default/pods"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
MAPS = "/api/v1/namespaces/default/configmaps"


class Answer:
    def __init__(self, response):
        self.code, self.headers, self.raw = response.status, response.headers, response.read()
        with contextlib.suppress(ValueError):
            self.body = json.loads(self.raw)


class Client:
    """A client with one connection."""

    def __init__(self, cluster, token=ADMIN_TOKEN, certificate=None):
        self.context = ssl.create_default_context(cafile=str(cluster.dir / "ca.crt"))
        if certificate:
            self.context.load_cert_chain(*certificate)
        self.token, self.port = token, cluster.port
        self.connections = []
        self.connection = self.connect()

    def connect(self):
        self.connections.append(http.client.HTTPSConnection("127.0.0.1", self.port, context=self.context, timeout=10))
        return self.connections[-1]

    def close(self):
        for connection in self.connections:
            connection.close()

    def begin(self, method, path, body=None, kind=JSON, headers=None, connection=None):
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        every = {"User-Agent": "test/1", **({"Authorization": f"Bearer {self.token}"} if self.token else {}),
                 **({"Content-Type": kind} if data is not None and kind else {}), **(headers or {})}
        connection = connection or self.connection
        connection.request(method, path, data, every)
        return connection.getresponse()

    def ask(self, method, path, body=None, kind=JSON, **headers):
        return Answer(self.begin(method, path, body, kind, {key.replace("_", "-"): value for key, value in headers.items()}))

    def watch(self, path):
        connection = self.connect()
        return Watch(connection, self.begin("GET", path, connection=connection))


class Watch:
    """Lines of a watch."""

    def __init__(self, connection, response):
        self.connection, self.response = connection, response

    def next(self):
        line = self.response.readline()
        return json.loads(line) if line else None

    def until(self, kind, name=None):
        """The next event of a kind, of an object."""
        while (event := self.next()) is not None:
            if event["type"] == kind and name in (None, event["object"]["metadata"].get("name")):
                return event
        raise AssertionError(f"the watch ended without {kind} {name}")

    def close(self):
        self.response.close()
        self.connection.close()


def pod(name, **spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "weir:test", "command": ["true"]}], **spec}}


def job(name, completions=2, command=None, **spec):
    template = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "weir:test", "command": command or ["true"]}]}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
            "spec": {"completionMode": "Indexed", "completions": completions, "parallelism": completions, "backoffLimit": 0,
                     "template": {"spec": template}, **spec}}


def config_map(name, data=None, **metadata):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": data or {}}


class ClusterTest(unittest.TestCase):
    """A cluster for all tests of a class."""
    options = {"nodes": 2}

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(**cls.options)
        cls.enterClassContext(cls.cluster)
        cls.client = Client(cls.cluster)
        cls.addClassCleanup(cls.client.close)
        cls.ask = cls.client.ask

    def client_of(self, *arguments):
        """Another client."""
        client = Client(self.cluster, *arguments)
        self.addCleanup(client.close)
        return client

    def tearDown(self):
        self.cluster.faults.off()
        self.assertEqual(self.cluster.failures(), [])

    def assert_status(self, answer, code, reason, *parts):
        self.assertEqual((answer.code, answer.body.get("reason")), (code, reason), answer.body)
        self.assertEqual((answer.body["kind"], answer.body["apiVersion"], answer.body["status"], answer.body["code"]),
                         ("Status", "v1", "Failure", code))
        for part in parts:
            self.assertIn(part, answer.body["message"])

    def namespace(self, name, **labels):
        """A namespace with its service account."""
        self.cluster.create("namespaces", {"metadata": {"name": name, "labels": labels}})
        self.cluster.wait(lambda: self.cluster.get("serviceaccounts", "default", name))


class HttpTest(ClusterTest):
    def test_discovery_and_version(self):
        self.assertEqual(self.ask("GET", "/version").body["gitVersion"], "v1.26.5")
        self.assertEqual(self.ask("GET", "/readyz").raw, b"ok")
        self.assertEqual(self.ask("GET", "/api").body["versions"], ["v1"])
        groups = {one["name"] for one in self.ask("GET", "/apis").body["groups"]}
        self.assertLessEqual({"batch", "apps", "policy", "networking.k8s.io", "coordination.k8s.io"}, groups)
        names = {one["name"] for one in self.ask("GET", "/api/v1").body["resources"]}
        self.assertLessEqual({"pods", "pods/status", "pods/log", "pods/binding", "pods/eviction", "nodes/status"}, names)
        self.assertEqual(self.ask("GET", "/apis/batch").body["preferredVersion"]["version"], "v1")

    def test_wrong_paths_methods_and_types(self):
        self.assert_status(self.ask("GET", "/nothing"), 404, "NotFound")
        self.assert_status(self.ask("GET", "/apis/batch/v2/jobs"), 404, "NotFound")
        self.assert_status(self.ask("GET", PODS + "/no"), 404, "NotFound", 'pods "no" not found')
        self.assert_status(self.ask("POST", PODS + "/no", pod("no")), 405, "MethodNotAllowed")
        self.assert_status(self.ask("POST", "/api/v1/pods", pod("no")), 405, "MethodNotAllowed")
        self.assert_status(self.ask("POST", PODS, b"kind: Pod", "application/xml"), 415, "UnsupportedMediaType")
        self.assert_status(self.ask("PATCH", PODS + "/no", {}, JSON), 415, "UnsupportedMediaType")
        self.assert_status(self.ask("GET", PODS, Accept="text/plain"), 406, "NotAcceptable")
        self.assertEqual(self.ask("GET", PODS, Accept="application/json;as=Table;v=v1;g=meta.k8s.io,application/json").code, 200)
        self.assert_status(self.ask("POST", PODS, b"{"), 400, "BadRequest")
        self.assert_status(self.ask("POST", PODS, config_map("x")), 400, "BadRequest", "cannot be handled as a Pod")
        self.assert_status(self.ask("POST", "/api/v1/namespaces/none/pods", pod("x")), 404, "NotFound", 'namespaces "none" not found')
        self.assert_status(self.ask("POST", MAPS, b"x" * (3 * 1024 * 1024 + 1)), 413, "RequestEntityTooLarge")
        self.client.connection.close()

    def test_unknown_fields(self):
        self.cluster.complaints.clear()
        bad = config_map("unknown")
        bad["spec"] = {"foo": 1}
        answer = self.ask("POST", MAPS + "?fieldValidation=Strict", bad)
        self.assert_status(answer, 400, "BadRequest",
                           'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "spec"')
        answer = self.ask("POST", MAPS, bad)
        self.assertEqual((answer.code, answer.headers["Warning"]), (201, '299 - "unknown field \\"spec\\""'))
        self.assertNotIn("spec", answer.body)
        self.assertEqual(len(self.cluster.complaints), 2)
        answer = self.ask("PATCH", MAPS + "/unknown?fieldValidation=Strict", {"dat": {}}, MERGE)
        self.assert_status(answer, 422, "Invalid", 'unknown field "dat"')

    def test_wrong_types_and_values(self):
        wrong = pod("wrong")
        wrong["spec"]["containers"][0]["env"] = [{"name": "A", "value": 1}]
        self.assert_status(self.ask("POST", PODS, wrong), 400, "BadRequest",
                           "cannot unmarshal number into Go struct field EnvVar.spec.containers.env.value of type string")
        wrong = pod("wrong", containers=[{"name": "Main", "volumeMounts": [{"name": "x", "mountPath": "/x"}]}])
        answer = self.ask("POST", PODS, wrong)
        self.assert_status(answer, 422, "Invalid")
        self.assertIn({"reason": "FieldValueRequired", "message": "Required value", "field": "spec.containers[0].image"},
                      answer.body["details"]["causes"])
        wrong = pod("wrong", containers=[{"name": "m", "image": "i", "resources": {"limits": {"cpu": "much"}}}])
        self.assert_status(self.ask("POST", PODS, wrong), 400, "BadRequest", "quantities must match the regular expression")
        wrong = pod("wrong", restartPolicy="Sometimes")
        self.assert_status(self.ask("POST", PODS, wrong), 422, "Invalid", 'spec.restartPolicy: Unsupported value: "Sometimes"')
        self.assert_status(self.ask("POST", MAPS, config_map("Upper")), 422, "Invalid", "metadata.name: Invalid value")
        self.assert_status(self.ask("POST", MAPS, config_map("a" * 254)), 422, "Invalid", "no more than 253 characters")
        lease = {"metadata": {"name": "l"}, "spec": {"renewTime": "2026-01-01T00:00:00Z"}}
        self.assert_status(self.ask("POST", "/apis/coordination.k8s.io/v1/namespaces/default/leases", lease), 400, "BadRequest",
                           "2006-01-02T15:04:05.000000Z07:00")

    def test_quantities_are_given_back_in_one_form(self):
        self.assertEqual([values.canonical(one) for one in ("0.5", "1024Mi", "1000m", "1e3", "1500M", "0.1Gi", "12345")],
                         ["500m", "1Gi", "1", "1k", "1500M", "107374182400m", "12345"])

    def test_defaults_of_a_pod(self):
        made = self.ask("POST", PODS, pod("defaults", restartPolicy=None, schedulerName="nobody")).body
        self.assertEqual((made["kind"], made["apiVersion"], made["status"]["phase"]), ("Pod", "v1", "Pending"))
        spec = made["spec"]
        self.assertEqual((spec["restartPolicy"], spec["terminationGracePeriodSeconds"], spec["dnsPolicy"], spec["serviceAccountName"]),
                         ("Always", 30, "ClusterFirst", "default"))
        self.assertEqual({one["tolerationSeconds"] for one in spec["tolerations"]}, {300})
        self.assertEqual((spec["containers"][0]["imagePullPolicy"], spec["priority"]), ("IfNotPresent", 0))
        self.assertTrue(spec["volumes"][0]["name"].startswith("kube-api-access-"))

    def test_create_update_and_conflicts(self):
        made = self.ask("POST", MAPS, config_map("one", {"a": "1"})).body
        self.assert_status(self.ask("POST", MAPS, config_map("one")), 409, "AlreadyExists", 'configmaps "one" already exists')
        again = self.ask("PUT", MAPS + "/one", {**made, "data": {"a": "2"}})
        self.assertEqual((again.code, again.body["data"]), (200, {"a": "2"}))
        self.assert_status(self.ask("PUT", MAPS + "/one", made), 409, "Conflict", "the object has been modified")
        self.assert_status(self.ask("PUT", MAPS + "/other", made), 400, "BadRequest", "does not match the name on the URL (other)")
        same = self.ask("PUT", MAPS + "/one", again.body).body
        self.assertEqual(same["metadata"]["resourceVersion"], again.body["metadata"]["resourceVersion"])
        named = self.ask("POST", MAPS, {"metadata": {"generateName": "gen-"}}).body["metadata"]["name"]
        self.assertRegex(named, "^gen-[a-z0-9]{5}$")
        leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
        self.assertEqual(self.ask("PUT", leases + "/put", {"metadata": {"name": "put"}}).code, 201)
        self.assert_status(self.ask("PUT", leases + "/put", {"metadata": {"name": "put"}}), 422, "Invalid", "must be specified for an update")

    def test_delete_with_preconditions_and_finalizers(self):
        made = self.ask("POST", MAPS, config_map("gone", finalizers=["weir.test/wait"])).body
        wrong = {"preconditions": {"uid": "x"}}
        self.assert_status(self.ask("DELETE", MAPS + "/gone", wrong), 409, "Conflict", "Precondition failed: UID in precondition: x")
        waiting = self.ask("DELETE", MAPS + "/gone", {"preconditions": {"uid": made["metadata"]["uid"]}}).body
        self.assertTrue(waiting["metadata"]["deletionTimestamp"])
        self.assertEqual(self.ask("PATCH", MAPS + "/gone", {"metadata": {"finalizers": None}}, MERGE).code, 200)
        self.assertEqual(self.ask("GET", MAPS + "/gone").code, 404)
        self.ask("POST", MAPS, config_map("plain"))
        answer = self.ask("DELETE", MAPS + "/plain")
        self.assertEqual((answer.body["status"], answer.body["details"]["name"]), ("Success", "plain"))

    def test_immutable_fields(self):
        self.ask("POST", PODS, pod("fixed", schedulerName="nobody"))
        answer = self.ask("PATCH", PODS + "/fixed", {"spec": {"hostname": "other"}}, MERGE)
        self.assert_status(answer, 422, "Invalid", "pod updates may not change fields other than")
        self.ask("POST", JOBS, job("fixed", suspend=True))
        more = {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}}
        self.assertEqual(self.ask("PATCH", JOBS + "/fixed", more, MERGE).code, 200)
        self.ask("PATCH", JOBS + "/fixed", {"spec": {"suspend": False}}, MERGE)
        self.cluster.wait(lambda: self.cluster.get("jobs.batch", "fixed")["status"].get("startTime"))
        answer = self.ask("PATCH", JOBS + "/fixed", {"spec": {"template": {"spec": {"nodeSelector": {"a": "c"}}}}}, MERGE)
        self.assert_status(answer, 422, "Invalid", "spec.template", "field is immutable")
        answer = self.ask("POST", JOBS, {**job("bad"), "spec": {"template": {"spec": {"containers": [{"name": "a", "image": "b"}]}}}})
        self.assert_status(answer, 422, "Invalid", 'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"')

    def test_dry_run_changes_nothing(self):
        self.assertEqual(self.ask("POST", MAPS + "?dryRun=All", config_map("dry")).code, 201)
        self.assertEqual(self.ask("GET", MAPS + "/dry").code, 404)

    def test_connection_is_kept_and_requests_are_recorded(self):
        n = len(self.cluster.requests)
        for _ in range(3):
            self.ask("GET", MAPS + "?limit=1")
        last = self.cluster.requests[n:]
        self.assertEqual([(one.method, one.path, one.query, one.user, one.status) for one in last], [("GET", MAPS, "limit=1", "admin", 200)] * 3)


class PatchTest(ClusterTest):
    def test_json_patch(self):
        self.ask("POST", MAPS, config_map("json", {"a": "1"}))
        patch = [{"op": "test", "path": "/data/a", "value": "1"}, {"op": "add", "path": "/data/b~1c", "value": "2"}]
        self.assert_status(self.ask("PATCH", MAPS + "/json", patch, PATCH), 422, "Invalid", "data[b/c]")
        patch[1]["path"] = "/data/b"
        self.assertEqual(self.ask("PATCH", MAPS + "/json", patch, PATCH).body["data"], {"a": "1", "b": "2"})
        patch[0]["value"] = "other"
        self.assert_status(self.ask("PATCH", MAPS + "/json", patch, PATCH), 422, "Invalid")

    def test_strategic_merge_patch(self):
        self.ask("POST", PODS, pod("strategic", schedulerName="nobody"))
        status = {"status": {"conditions": [{"type": "A", "status": "True"}]}}
        self.ask("PATCH", PODS + "/strategic/status", status, STRATEGIC)
        status["status"]["conditions"][0]["type"] = "B"
        found = self.ask("PATCH", PODS + "/strategic/status", status, STRATEGIC).body["status"]["conditions"]
        self.assertLessEqual({"A", "B"}, {one["type"] for one in found})
        image = {"spec": {"containers": [{"name": "main", "image": "other:1"}]}}
        self.assertEqual(self.ask("PATCH", PODS + "/strategic", image, STRATEGIC).body["spec"]["containers"][0]["command"], ["true"])

    def test_status_is_its_own(self):
        self.ask("POST", PODS, pod("split", schedulerName="nobody"))
        both = {"status": {"phase": "Running"}, "metadata": {"labels": {"a": "b"}}}
        self.assertEqual(self.ask("PATCH", PODS + "/split", both, MERGE).body["status"]["phase"], "Pending")
        body = self.ask("PATCH", PODS + "/split/status", {"status": {"phase": "Running"}, "spec": {"hostname": "x"}}, MERGE).body
        self.assertEqual((body["status"]["phase"], body["spec"].get("hostname"), body["metadata"]["labels"]), ("Running", None, {"a": "b"}))

    def test_apply(self):
        path = MAPS + "/applied?fieldManager="
        self.assert_status(self.ask("PATCH", MAPS + "/applied", config_map("applied"), APPLY), 422, "Invalid", "fieldManager: Required value")
        self.assertEqual(self.ask("PATCH", path + "a", config_map("applied", {"x": "1", "y": "1"}), APPLY).code, 201)
        self.assertEqual(self.ask("PATCH", path + "b", config_map("applied", {"z": "1"}), APPLY).body["data"], {"x": "1", "y": "1", "z": "1"})
        answer = self.ask("PATCH", path + "b", config_map("applied", {"x": "2"}), APPLY)
        self.assert_status(answer, 409, "Conflict", 'Apply failed with 1 conflict: conflict with "a": .data.x')
        self.assertEqual(answer.body["details"]["causes"], [
            {"reason": "FieldManagerConflict", "message": 'conflict with "a"', "field": ".data.x"}])
        self.assertEqual(self.ask("PATCH", path + "b&force=true", config_map("applied", {"x": "2"}), APPLY).body["data"], {"x": "2", "y": "1"})
        forced = self.ask("PATCH", path + "a", config_map("applied", {}), APPLY).body
        self.assertEqual(forced["data"], {"x": "2"})
        self.assertEqual({one["manager"] for one in forced["metadata"]["managedFields"]}, {"a", "b"})
        self.assert_status(self.ask("PATCH", path + "a", b"\x00", APPLY), 400, "BadRequest")
        answer = self.ask("PATCH", path + "a", {**config_map("applied"), "spec": {}}, APPLY)
        self.assertEqual((answer.code, answer.body["message"]), (500, "failed to create typed patch object (default/applied; v1, "
                                                                 "Kind=ConfigMap): .spec: field not declared in schema"))

    def test_apply_and_update_share_fields(self):
        self.ask("POST", MAPS, config_map("shared", {"x": "1"}))
        answer = self.ask("PATCH", MAPS + "/shared?fieldManager=a", config_map("shared", {"x": "2"}), APPLY)
        self.assert_status(answer, 409, "Conflict", 'conflict with "test" using v1')

    def test_apply_merges_containers_by_name(self):
        jobs = job("ssa", suspend=True)
        self.assertEqual(self.ask("PATCH", JOBS + "/ssa?fieldManager=a", jobs, APPLY).code, 201)
        again = self.ask("PATCH", JOBS + "/ssa?fieldManager=a", jobs, APPLY)
        self.assertEqual((again.code, len(again.body["spec"]["template"]["spec"]["containers"])), (200, 1))


class AccessTest(ClusterTest):
    def test_identities(self):
        anonymous = self.client_of(None)
        self.assertEqual(anonymous.ask("GET", "/version").code, 200)
        self.assert_status(anonymous.ask("GET", PODS), 403, "Forbidden", 'User "system:anonymous" cannot list resource "pods"')
        self.assert_status(self.client_of("nonsense").ask("GET", PODS), 401, "Unauthorized")

    def test_roles(self):
        self.cluster.kubeconfig_for("weir", token="weir-token")
        weir = self.client_of("weir-token")
        answer = weir.ask("GET", "/api/v1/pods")
        self.assert_status(answer, 403, "Forbidden")
        self.assertEqual(answer.body["message"],
                         'pods is forbidden: User "weir" cannot list resource "pods" in API group "" at the cluster scope')
        self.cluster.allow("weir", ["get", "list"], ["pods", "pods/log"], [""], "default")
        self.cluster.allow("weir", ["get"], ["configmaps"], [""], "default", names=["mine"])
        self.assertEqual(weir.ask("GET", PODS).code, 200)
        self.assert_status(weir.ask("GET", "/api/v1/namespaces/kube-system/pods"), 403, "Forbidden", 'in the namespace "kube-system"')
        self.assert_status(weir.ask("POST", PODS, pod("x")), 403, "Forbidden", 'cannot create resource "pods"')
        self.assertEqual(weir.ask("GET", MAPS + "/mine").code, 404)
        self.assert_status(weir.ask("GET", MAPS + "/yours"), 403, "Forbidden", 'configmaps "yours" is forbidden')
        self.assert_status(weir.ask("PATCH", PODS + "/a/status", {}, MERGE), 403, "Forbidden", 'resource "pods/status"')

        def may(**attributes):
            review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": attributes}}
            return weir.ask("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review).body["status"]["allowed"]
        self.assertTrue(may(verb="list", resource="pods", namespace="default"))
        self.assertFalse(may(verb="list", resource="pods"))
        self.cluster.allow("weir", ["create"], ["roles"], [rbac.GROUP], "default")
        role = {"metadata": {"name": "more"}, "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods", "secrets"]}]}
        roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"
        self.assert_status(weir.ask("POST", roles, role), 403, "Forbidden", "is attempting to grant RBAC permissions not currently held")
        role["rules"][0]["resources"] = ["pods"]
        self.assertEqual(weir.ask("POST", roles, role).code, 201)
        self.cluster.tokens.rotate("weir-token", "newer-token")
        self.assertEqual(weir.ask("GET", PODS).code, 401)
        self.assertEqual(self.client_of("newer-token").ask("GET", PODS).code, 200)

    def test_client_certificate(self):
        config = json.loads(self.cluster.kubeconfig_with_certificate("jane", ["team"]).read_text())
        user = config["users"][0]["user"]
        self.cluster.allow("team", ["list"], ["nodes"], [""], kind="Group")
        jane = self.client_of(None, (user["client-certificate"], user["client-key"]))
        self.assertEqual(jane.ask("GET", "/api/v1/nodes").code, 200)
        self.assert_status(jane.ask("GET", PODS), 403, "Forbidden", 'User "jane"')

    def test_service_account_and_token_review(self):
        token = self.cluster.service_account_token("default", "robot")
        review = {"spec": {"token": token}}
        answer = self.ask("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review).body["status"]
        self.assertEqual(answer["user"]["username"], "system:serviceaccount:default:robot")
        self.cluster.allow("default:robot", ["list"], ["pods"], [""], "default", kind="ServiceAccount")
        self.assertEqual(self.client_of(token).ask("GET", PODS).code, 200)


class WatchTest(ClusterTest):
    def test_pages_and_their_end(self):
        for i in range(5):
            self.ask("POST", MAPS, config_map(f"page-{i}", labels={"page": "yes"}))
        first = self.ask("GET", MAPS + "?limit=2&labelSelector=page%3Dyes").body
        self.assertNotIn("kind", first["items"][0])
        self.ask("DELETE", MAPS + "/page-4")
        names = [one["metadata"]["name"] for one in first["items"]]
        page = first
        while page["metadata"].get("continue"):
            page = self.ask("GET", MAPS + f"?limit=2&labelSelector=page%3Dyes&continue={page['metadata']['continue']}").body
            names += [one["metadata"]["name"] for one in page["items"]]
        self.assertEqual(names, [f"page-{i}" for i in range(5)])
        self.cluster.compact()
        answer = self.ask("GET", MAPS + f"?limit=2&continue={first['metadata']['continue']}")
        self.assert_status(answer, 410, "Expired", "The provided continue parameter is too old")

    def test_selectors(self):
        for name, labels in (("a", {"x": "1"}), ("b", {"x": "2"}), ("c", {"y": "1"})):
            self.ask("POST", MAPS, config_map(f"sel-{name}", labels={"sel": "y", **labels}))

        def found(**query):
            text = "&".join(f"{key}={value}" for key, value in query.items())
            return [one["metadata"]["name"][4:] for one in self.ask("GET", f"{MAPS}?{text}").body["items"]]
        self.assertEqual(found(labelSelector="sel,x=1"), ["a"])
        self.assertEqual(found(labelSelector="sel,x!=1"), ["b", "c"])
        self.assertEqual(found(labelSelector="sel,x%20in%20(1,2)"), ["a", "b"])
        self.assertEqual(found(labelSelector="sel,x%20notin%20(1)"), ["b", "c"])
        self.assertEqual(found(labelSelector="sel,!x"), ["c"])
        self.assertEqual(found(fieldSelector="metadata.name=sel-a"), ["a"])
        self.assert_status(self.ask("GET", MAPS + "?fieldSelector=data.x%3D1"), 400, "BadRequest", "field label not supported: data.x")

    def test_events_and_selection(self):
        revision = self.ask("GET", MAPS).body["metadata"]["resourceVersion"]
        watch = self.client.watch(f"{MAPS}?watch=1&labelSelector=in%3Dyes&allowWatchBookmarks=true&resourceVersion={revision}")
        self.ask("POST", MAPS, config_map("w1", labels={"in": "no"}))
        self.ask("PATCH", MAPS + "/w1", {"metadata": {"labels": {"in": "yes"}}}, MERGE)
        self.assertEqual((watch.next()["type"]), "ADDED")
        self.ask("PATCH", MAPS + "/w1", {"data": {"a": "b"}}, MERGE)
        event = watch.next()
        self.assertEqual((event["type"], event["object"]["kind"]), ("MODIFIED", "ConfigMap"))
        self.ask("PATCH", MAPS + "/w1", {"metadata": {"labels": {"in": "no"}}}, MERGE)
        gone = watch.next()
        self.assertEqual((gone["type"], gone["object"]["metadata"]["name"]), ("DELETED", "w1"))
        self.cluster.send_bookmarks()
        bookmark = watch.next()
        self.assertEqual(bookmark["type"], "BOOKMARK")
        self.assertGreaterEqual(int(bookmark["object"]["metadata"]["resourceVersion"]), int(gone["object"]["metadata"]["resourceVersion"]))
        watch.close()

    def test_old_revisions_are_gone(self):
        revision = self.ask("POST", MAPS, config_map("old")).body["metadata"]["resourceVersion"]
        self.ask("POST", MAPS, config_map("new"))
        self.cluster.compact()
        event = self.client.watch(f"{MAPS}?watch=1&resourceVersion={revision}").next()
        self.assertEqual((event["type"], event["object"]["code"], event["object"]["reason"]), ("ERROR", 410, "Expired"))
        self.assert_status(self.ask("GET", MAPS + "?resourceVersion=999999"), 504, "Timeout", "Too large resource version")
        self.assert_status(self.ask("GET", MAPS + f"?resourceVersion={revision}&resourceVersionMatch=Exact"), 410, "Expired")

    def test_a_watch_ends_in_time(self):
        begun = time.monotonic()
        watch = self.client.watch(MAPS + "?watch=1&timeoutSeconds=1&resourceVersion=0")
        while watch.next() is not None:
            pass
        self.assertLess(time.monotonic() - begun, 2)


class FaultTest(ClusterTest):
    options = {"nodes": 0}

    def test_answers_that_are_faults(self):
        self.cluster.faults.on("throttle", count=1)
        answer = self.ask("GET", MAPS)
        self.assert_status(answer, 429, "TooManyRequests")
        self.assertEqual(answer.headers["Retry-After"], "1")
        self.cluster.faults.on("throttle", count=1, retry_after=0)
        self.assertEqual(self.ask("GET", MAPS).headers["Retry-After"], "0")
        for name, code in (("error500", 500), ("unavailable503", 503)):
            self.cluster.faults.on(name, count=1, where="GET .*configmaps")
            self.assertEqual(self.ask("GET", MAPS).code, code)
        self.cluster.faults.on("conflict", count=1)
        made = self.ask("POST", MAPS, config_map("faulty")).body
        self.assert_status(self.ask("PUT", MAPS + "/faulty", made), 409, "Conflict")
        self.cluster.faults.on("refuse_admission", count=1, message="no such team")
        self.assert_status(self.ask("POST", MAPS, config_map("refused")), 403, "Forbidden",
                           'admission webhook "policy.weir.test" denied the request: no such team')
        self.assertEqual(self.ask("GET", MAPS).code, 200)

    def cut(self, method, path, body=None):
        client = self.client_of()
        with self.assertRaises((http.client.HTTPException, OSError)):
            client.ask(method, path, body)

    def test_connections_that_break(self):
        self.cluster.faults.on("drop", count=1, when="before")
        self.cut("POST", MAPS, config_map("cut"))
        self.assertIsNone(self.cluster.get("configmaps", "cut"))
        self.cluster.faults.on("drop", count=1, when="after")
        self.cut("POST", MAPS, config_map("cut"))
        self.assertIsNotNone(self.cluster.get("configmaps", "cut"))
        self.cluster.faults.on("drop", count=1, when="middle")
        self.cut("GET", MAPS)

    def test_a_watch_breaks(self):
        self.cluster.faults.on("gone", count=1, after=1)
        watch = self.client.watch(MAPS + "?watch=1&resourceVersion=0")
        events = [watch.next() for _ in range(2)]
        self.assertEqual([one["type"] for one in events], ["ADDED", "ERROR"])
        self.assertIsNone(watch.next())
        self.cluster.faults.on("gone", count=1, http=True)
        self.assert_status(self.ask("GET", MAPS + "?watch=1&resourceVersion=1"), 410, "Expired")
        self.cluster.faults.on("drop", count=1, when="middle", after=0)
        watch = self.client.watch(MAPS + "?watch=1&resourceVersion=0")
        with self.assertRaises((http.client.HTTPException, OSError, ValueError)):
            self.assertIsNotNone(watch.next())

    def test_the_server_goes_and_comes_back(self):
        self.cluster.faults.on("apiserver_away")
        with self.assertRaises(OSError):
            self.client_of().ask("GET", "/version")
        self.cluster.faults.off("apiserver_away")
        self.assertEqual(self.client_of().ask("GET", "/version").code, 200)
        self.client.connection.close()

    def test_silence_and_stale_lists(self):
        self.cluster.faults.on("silent", count=1)
        client = self.client_of()
        client.connection.timeout = 0.2
        with self.assertRaises(OSError):
            client.ask("GET", MAPS)
        self.ask("POST", MAPS, config_map("fresh"))
        self.cluster.faults.on("stale_list", count=1, behind=1)
        names = [one["metadata"]["name"] for one in self.ask("GET", MAPS + "?resourceVersion=0").body["items"]]
        self.assertNotIn("fresh", names)


class AdmissionTest(ClusterTest):
    options = {"nodes": 1}

    def test_quota(self):
        self.namespace("small")
        quota = {"metadata": {"name": "gpus"}, "spec": {"hard": {"requests.nvidia.com/gpu": "2", "pods": "5"}}}
        self.ask("POST", "/api/v1/namespaces/small/resourcequotas", quota)
        wanted = pod("q", schedulerName="nobody",
                     containers=[{"name": "m", "image": "weir:test", "resources": {"limits": {"nvidia.com/gpu": "2"}}}])
        self.assertEqual(self.ask("POST", "/api/v1/namespaces/small/pods", wanted).code, 201)
        wanted["metadata"]["name"] = "q2"
        self.assert_status(self.ask("POST", "/api/v1/namespaces/small/pods", wanted), 403, "Forbidden",
                           'pods "q2" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=2, '
                           "used: requests.nvidia.com/gpu=2, limited: requests.nvidia.com/gpu=2")
        self.cluster.wait(lambda: self.cluster.get("resourcequotas", "gpus", "small")["status"].get("used") == {
            "requests.nvidia.com/gpu": "2", "pods": "1"})
        self.ask("POST", "/apis/batch/v1/namespaces/small/jobs", job("q", 1, template={"spec": wanted["spec"]}))
        self.cluster.wait(lambda: any(one["reason"] == "FailedCreate" and "exceeded quota" in one["message"]
                                      for one in self.cluster.list("events", "small")))

    def test_pod_security_priority_and_accounts(self):
        self.namespace("tight", **{"pod-security.kubernetes.io/enforce": "restricted"})
        answer = self.ask("POST", "/api/v1/namespaces/tight/pods", pod("loose", hostNetwork=True))
        self.assert_status(answer, 403, "Forbidden", 'violates PodSecurity "restricted:latest": host namespaces (hostNetwork=true)',
                           'allowPrivilegeEscalation != false (container "main" must set securityContext.allowPrivilegeEscalation=false)',
                           "runAsNonRoot != true", "seccompProfile")
        self.assert_status(self.ask("POST", PODS, pod("p", priorityClassName="none")), 403, "Forbidden",
                           "no PriorityClass with name none was found")
        self.ask("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 100})
        self.assertEqual(self.ask("POST", PODS, pod("p", priorityClassName="high")).body["spec"]["priority"], 100)
        self.assert_status(self.ask("POST", PODS, pod("q", serviceAccountName="none")), 403, "Forbidden",
                           'error looking up service account default/none: serviceaccount "none" not found')

    def test_custom_resources_come_late(self):
        schema = {"type": "object", "properties": {"spec": {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}},
                                                   "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}}}
        definition = {"metadata": {"name": "runs.weir.test"}, "spec": {
            "group": "weir.test", "scope": "Namespaced", "names": {"plural": "runs", "kind": "Run"}, "versions": [version]}}
        self.assertEqual(self.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).code, 201)
        path = "/apis/weir.test/v1/namespaces/default/runs"
        self.assertEqual(self.ask("GET", path).code, 404)
        self.cluster.wait(lambda: self.ask("GET", path).code == 200)
        run = {"apiVersion": "weir.test/v1", "kind": "Run", "metadata": {"name": "r"}, "spec": {"n": 1, "m": 2}, "status": {"x": 1}}
        made = self.ask("POST", path, run)
        self.assertEqual((made.code, made.body["spec"], made.body.get("status")), (201, {"n": 1}, None))
        self.assertEqual(self.ask("PATCH", path + "/r/status", {"status": {"x": 2}}, MERGE).body["status"], {"x": 2})
        run["spec"] = {}
        run["metadata"]["name"] = "s"
        self.assert_status(self.ask("POST", path, run), 422, "Invalid", "spec.n: Required value")
        self.assertEqual(self.ask("GET", path).body["items"][0]["kind"], "Run")

    def test_a_namespace_takes_all_with_it(self):
        self.namespace("going")
        self.ask("POST", "/api/v1/namespaces/going/configmaps", config_map("x"))
        self.assertEqual(self.ask("DELETE", "/api/v1/namespaces/going").body["status"]["phase"], "Terminating")
        answer = self.ask("POST", "/api/v1/namespaces/going/configmaps", config_map("y"))
        self.assertIn(answer.code, (403, 404))
        self.cluster.wait(lambda: self.ask("GET", "/api/v1/namespaces/going").code == 404)


class SchedulingTest(ClusterTest):
    options = {"nodes": 0}

    def setUp(self):
        for resource_key in ("pods", "nodes", "poddisruptionbudgets.policy"):
            for one in self.cluster.list(resource_key):
                metadata = one["metadata"]
                self.cluster.api.delete(self.cluster.api.resource(resource_key), metadata.get("namespace"), metadata["name"],
                                        {"gracePeriodSeconds": 0})
        self.cluster.wait(lambda: not self.cluster.list("pods"))

    def resources(self, cpu="1", gpus=0):
        limits = {"cpu": cpu, **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
        return [{"name": "main", "image": "weir:test", "resources": {"limits": limits}}]

    def test_why_there_is_no_place(self):
        self.cluster.add_node("a", cpu="1")
        self.cluster.add_node("b", taints=[{"key": "a", "value": "b", "effect": "NoSchedule"}])
        self.cluster.add_node("c", taints=[{"key": "a", "value": "b", "effect": "NoSchedule"}])
        self.ask("POST", PODS, pod("big", containers=self.resources("2")))
        condition = self.cluster.wait(lambda: (self.cluster.get("pods", "big")["status"].get("conditions") or [None])[0])
        self.assertEqual((condition["type"], condition["status"], condition["reason"]), ("PodScheduled", "False", "Unschedulable"))
        self.assertTrue(condition["message"].startswith("0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint {a: b}."),
                        condition["message"])
        self.cluster.wait(lambda: any(one["reason"] == "FailedScheduling" for one in self.cluster.list("events")))
        self.cluster.untaint("b", "a")
        self.cluster.wait_phase("big", "Running")
        self.assertEqual(self.cluster.get("pods", "big")["spec"]["nodeName"], "b")

    def test_selectors_and_gpus(self):
        self.cluster.add_node("a", gpus=4, labels={"gpu": "h200"})
        self.cluster.add_node("b")
        for i in range(2):
            self.ask("POST", PODS, pod(f"g{i}", containers=self.resources("1", 3), nodeSelector={"gpu": "h200"}))
        self.cluster.wait_phase("g0", "Running")
        condition = self.cluster.wait(lambda: (self.cluster.get("pods", "g1")["status"].get("conditions") or [None])[0])
        self.assertIn("1 Insufficient nvidia.com/gpu, 1 node(s) didn't match Pod's node affinity/selector", condition["message"])
        self.cluster.finish("default", "g0")
        self.cluster.wait_phase("g1", "Running")

    def test_preemption(self):
        self.cluster.add_node("a", cpu="2")
        self.ask("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "urgent"}, "value": 1000})
        for i in range(2):
            self.ask("POST", PODS, pod(f"low{i}", containers=self.resources(), terminationGracePeriodSeconds=0))
            self.cluster.wait_phase(f"low{i}", "Running")
        watch = self.client.watch(PODS + "?watch=1&resourceVersion=" + self.ask("GET", PODS).body["metadata"]["resourceVersion"])
        self.ask("POST", PODS, pod("high", containers=self.resources(), priorityClassName="urgent"))
        self.cluster.wait_phase("high", "Running")
        victim = watch.until("DELETED")["object"]
        watch.close()
        reasons = [one["reason"] for one in victim["status"]["conditions"] if one["type"] == "DisruptionTarget"]
        self.assertEqual(reasons, ["PreemptionByKubeScheduler"])
        self.assertEqual(len(self.cluster.list("pods")), 2)

    def test_binding(self):
        self.cluster.add_node("a")
        self.ask("POST", PODS, pod("mine", schedulerName="weir"))
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "mine"}, "target": {"kind": "Node", "name": "none"}}
        self.assertEqual(self.ask("POST", PODS + "/mine/binding", binding).code, 404)
        binding["target"]["name"] = "a"
        self.assertEqual(self.ask("POST", PODS + "/mine/binding", binding).code, 201)
        self.assert_status(self.ask("POST", PODS + "/mine/binding", binding), 409, "Conflict", 'is already assigned to node "a"')
        self.cluster.wait_phase("mine", "Running")

    def test_eviction_and_budgets(self):
        self.cluster.add_node("a")
        labelled = pod("guarded")
        labelled["metadata"]["labels"] = {"app": "x"}
        budget = {"metadata": {"name": "pdb"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}}
        self.ask("POST", "/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget)
        self.ask("POST", PODS, labelled)
        self.cluster.wait(lambda: self.cluster.is_pod_ready("default", "guarded"))
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "guarded"}, "deleteOptions": {"gracePeriodSeconds": 1}}
        answer = self.ask("POST", PODS + "/guarded/eviction", eviction)
        self.assert_status(answer, 429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.")
        self.assertEqual(answer.body["details"]["causes"][0]["message"], "The disruption budget pdb needs 1 healthy pods and has 1 currently")
        self.ask("DELETE", "/apis/policy/v1/namespaces/default/poddisruptionbudgets/pdb")
        self.assertEqual(self.ask("POST", PODS + "/guarded/eviction", eviction).code, 201)
        self.cluster.wait(lambda: self.cluster.get("pods", "guarded") is None)

    def test_taints_and_lost_nodes(self):
        self.cluster.add_node("a")
        self.ask("POST", PODS, pod("t1"))
        self.ask("POST", PODS, pod("t2", tolerations=[{"operator": "Exists"}]))
        for name in ("t1", "t2"):
            self.cluster.wait_phase(name, "Running")
        self.cluster.taint("a", "maintenance")
        self.cluster.wait(lambda: self.cluster.get("pods", "t1") is None)
        self.assertEqual(self.cluster.get("pods", "t2")["status"]["phase"], "Running")
        self.cluster.delete_node("a")
        self.cluster.wait(lambda: self.cluster.get("pods", "t2") is None)


class JobTest(ClusterTest):
    def pods_of(self, name):
        return [one for one in self.cluster.list("pods") if (one["metadata"].get("labels") or {}).get("job-name") == name]

    def running(self, name, n):
        def found():
            pods = [one for one in self.pods_of(name) if one["status"]["phase"] == "Running"]
            return pods if len(pods) == n else None
        return self.cluster.wait(found, 5, f"{n} pods of {name} run")

    def end_of(self, name):
        def condition():
            found = [one for one in self.cluster.get("jobs.batch", name)["status"].get("conditions") or [] if one["status"] == "True"]
            return next((one for one in found if one["type"] in ("Complete", "Failed")), None)
        return self.cluster.wait(condition, 5, f"{name} ends")

    def test_indexed_job(self):
        self.ask("POST", JOBS, job("idx"))
        pods = self.running("idx", 2)
        one = pods[0]
        self.assertRegex(one["metadata"]["name"], "^idx-[01]-[a-z0-9]{5}$")
        index = one["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]
        self.assertEqual((one["spec"]["hostname"], one["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"]), (f"idx-{index}", index))
        self.assertEqual(one["spec"]["containers"][0]["env"][0]["name"], "JOB_COMPLETION_INDEX")
        for one in pods:
            self.cluster.finish("default", one["metadata"]["name"])
        self.cluster.wait_phase(pods[0]["metadata"]["name"], "Succeeded")
        self.assertNotIn("succeeded", self.cluster.get("jobs.batch", "idx")["status"])
        self.assertEqual(self.end_of("idx")["type"], "Complete")
        status = self.cluster.get("jobs.batch", "idx")["status"]
        self.assertEqual((status["succeeded"], status["completedIndexes"]), (2, "0,1"))
        answer = self.ask("DELETE", JOBS + "/idx")
        self.assertIn("child pods are preserved by default", answer.headers["Warning"])
        self.cluster.wait(lambda: self.cluster.get("jobs.batch", "idx") is None)
        time.sleep(0.05)
        self.assertEqual(len(self.pods_of("idx")), 2)

    def test_failures(self):
        self.ask("POST", JOBS, job("bad", 1))
        self.cluster.finish("default", self.running("bad", 1)[0]["metadata"]["name"], 3)
        end = self.end_of("bad")
        self.assertEqual((end["type"], end["reason"], end["message"]),
                         ("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"))
        rules = [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
                 {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]
        self.ask("POST", JOBS, job("policy", 1, podFailurePolicy={"rules": rules}, backoffLimit=3))
        first = self.running("policy", 1)[0]["metadata"]["name"]
        self.cluster.evict("default", first)
        self.cluster.wait(lambda: self.cluster.get("pods", first) is None)
        second = self.running("policy", 1)[0]["metadata"]["name"]
        self.cluster.finish("default", second, 42)
        self.assertEqual(self.end_of("policy")["message"],
                         f"Container main for pod default/{second} failed with exit code 42 matching FailJob rule at index 1")
        self.assertEqual(self.cluster.get("jobs.batch", "policy")["status"]["failed"], 1)

    def test_retry_suspend_and_cascade(self):
        self.ask("POST", JOBS, job("again", 1, backoffLimit=2))
        self.cluster.finish("default", self.running("again", 1)[0]["metadata"]["name"], 1)
        self.running("again", 1)
        self.ask("PATCH", JOBS + "/again", {"spec": {"suspend": True}}, MERGE)
        self.cluster.wait(lambda: any(one["type"] == "Suspended" for one in self.cluster.get("jobs.batch", "again")["status"].get(
            "conditions") or []))
        self.assertEqual([one for one in self.pods_of("again") if one["status"]["phase"] == "Running"], [])
        self.ask("PATCH", JOBS + "/again", {"spec": {"suspend": False}}, MERGE)
        self.running("again", 1)
        self.assertEqual(self.ask("DELETE", JOBS + "/again", {"propagationPolicy": "Foreground"}).code, 200)
        self.cluster.wait(lambda: self.cluster.get("jobs.batch", "again") is None and not self.pods_of("again"))

    def test_deadline_and_time_to_live(self):
        self.ask("POST", JOBS, job("late", 1, activeDeadlineSeconds=1, ttlSecondsAfterFinished=0))
        self.cluster.wait(lambda: self.cluster.get("jobs.batch", "late") is None, 5)
        self.assertTrue(any(one["reason"] == "DeadlineExceeded" for one in self.cluster.list("events")))

    def test_kueue(self):
        queued = job("queued", 1, suspend=True)
        queued["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "team"}
        self.ask("POST", JOBS, queued)
        time.sleep(0.05)
        self.assertEqual(self.pods_of("queued"), [])
        self.cluster.kueue.set_quota({"team": {"pods": "1"}})
        queued["metadata"]["name"] = "queued-2"
        self.ask("POST", JOBS, queued)
        self.cluster.finish("default", self.running("queued", 1)[0]["metadata"]["name"])
        self.running("queued-2", 1)

    def test_out_of_memory_and_logs(self):
        self.ask("POST", PODS, pod("memory"))
        self.cluster.wait_phase("memory", "Running")
        self.cluster.write_log("default", "memory", "one\ntwo\n")
        self.assertEqual(self.ask("GET", PODS + "/memory/log?tailLines=1").raw, b"two\n")
        self.assertRegex(self.ask("GET", PODS + "/memory/log?timestamps=1").raw, rb"^\d{4}-\d\d-\d\dT[0-9:.]+Z one\n")
        self.cluster.out_of_memory("default", "memory")
        ended = self.cluster.wait_phase("memory", "Failed")["status"]["containerStatuses"][0]["state"]["terminated"]
        self.assertEqual((ended["exitCode"], ended["reason"]), (137, "OOMKilled"))
        self.assert_status(self.ask("GET", PODS + "/memory/log?container=no"), 400, "BadRequest", "container no is not valid for pod memory")


class ProcessTest(ClusterTest):
    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        program = pathlib.Path(folder) / "greet"
        program.write_text('#!/bin/sh\necho "hello $1"\n', encoding="ascii")
        program.chmod(0o755)
        cls.options = {"nodes": 1, "mode": "process", "images": {"weir:test": folder}}
        super().setUpClass()

    def run_pod(self, name, script, phase="Succeeded", **spec):
        container = {"name": "main", "image": "weir:test", "command": ["/bin/sh", "-c", script], **spec.pop("container", {})}
        self.assertEqual(self.ask("POST", PODS, pod(name, containers=[container], **spec)).code, 201)
        self.cluster.wait_phase(name, phase)
        return self.ask("GET", f"{PODS}/{name}/log").raw.decode()

    def test_what_a_process_is_given(self):
        secret = {"metadata": {"name": "key"}, "stringData": {"token": "s3cret"}}
        self.ask("POST", "/api/v1/namespaces/default/secrets", secret)
        env = [{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)2"}, {"name": "DATA", "value": "/data/sub"},
               {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
               {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "key", "key": "token"}}}]
        mounts = [{"name": "data", "mountPath": "/data"}, {"name": "key", "mountPath": "/etc/key"}]
        text = self.run_pod("given", "greet you; env; cat /etc/key/token; cat /data/file; echo done > /dev/termination-log",
                            container={"env": env, "volumeMounts": mounts},
                            volumes=[{"name": "data", "emptyDir": {}}, {"name": "key", "secret": {"secretName": "key"}}],
                            initContainers=[{"name": "init", "image": "weir:test", "command": ["sh", "-c", "echo made > /data/file"],
                                             "volumeMounts": mounts[:1]}])
        lines = text.splitlines()
        self.assertEqual(lines[0], "hello you")
        self.assertLessEqual({"A=1", "B=12", "NODE=node-1", "TOKEN=s3cret"}, set(lines))
        self.assertIn("s3cretmade", text)
        self.assertFalse(any(line.startswith("HOME=") for line in lines))
        self.assertRegex(text, rf"DATA={self.cluster.dir}/pods/[-0-9a-f]+/volumes/data/sub")
        status = self.cluster.get("pods", "given")["status"]["containerStatuses"][0]["state"]["terminated"]
        self.assertEqual((status["exitCode"], status["message"]), (0, "done\n"))

    def test_exit_codes_and_restarts(self):
        self.run_pod("exit", "exit 7", "Failed")
        self.assertEqual(self.cluster.get("pods", "exit")["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"], 7)
        self.run_pod("restart", "if [ -e /d/x ]; then exit 0; fi; touch /d/x; exit 1", restartPolicy="OnFailure",
                     container={"volumeMounts": [{"name": "d", "mountPath": "/d"}]}, volumes=[{"name": "d", "emptyDir": {}}])
        self.assertEqual(self.cluster.get("pods", "restart")["status"]["containerStatuses"][0]["restartCount"], 1)

    def test_what_is_not_there(self):
        self.ask("POST", PODS, pod("image", containers=[{"name": "main", "image": "none:1", "command": ["true"]}]))
        self.cluster.wait(lambda: self.waiting("image") == "ImagePullBackOff")
        self.assertEqual(self.ask("GET", PODS + "/image/log").code, 400)
        volumes = [{"name": "s", "secret": {"secretName": "later"}}]
        self.ask("POST", PODS, pod("mount", volumes=volumes))
        self.cluster.wait(lambda: any(one["reason"] == "FailedMount" and 'secret "later" not found' in one["message"]
                                      for one in self.cluster.list("events")))
        self.assertEqual(self.waiting("mount"), "ContainerCreating")
        self.ask("POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "later"}})
        self.cluster.wait_phase("mount", "Succeeded")

    def waiting(self, name):
        states = self.cluster.get("pods", name)["status"].get("containerStatuses") or [{}]
        return states[0].get("state", {}).get("waiting", {}).get("reason")

    def test_signals(self):
        self.run_pod("gentle", "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.02; done", "Running")
        with self.client.begin("GET", PODS + "/gentle/log?follow=1", connection=self.client.connect()) as log:
            self.assertEqual(log.readline(), b"up\n")
            self.ask("DELETE", PODS + "/gentle")
            self.assertEqual(log.read(), b"bye\n")
        self.cluster.wait(lambda: self.cluster.get("pods", "gentle") is None)
        self.run_pod("hard", "trap '' TERM; echo up; while :; do sleep 0.02; done", "Running")
        begun = time.monotonic()
        self.ask("DELETE", PODS + "/hard?gracePeriodSeconds=1")
        self.cluster.wait(lambda: self.cluster.get("pods", "hard") is None)
        self.assertGreater(time.monotonic() - begun, 0.9)

    def test_a_job_of_processes(self):
        self.ask("POST", JOBS, job("proc", 2, ["sh", "-c", "echo index $JOB_COMPLETION_INDEX"]))
        self.cluster.wait(lambda: self.cluster.get("jobs.batch", "proc")["status"].get("succeeded") == 2)
        names = sorted(one["metadata"]["name"] for one in self.cluster.list("pods") if one["metadata"]["name"].startswith("proc-"))
        self.assertEqual([self.ask("GET", f"{PODS}/{name}/log").raw for name in names], [b"index 0\n", b"index 1\n"])


class LoadTest(ClusterTest):
    options = {"nodes": 0}

    def test_events_to_three_watchers(self):
        pods = [pod(f"p{i:04d}", schedulerName="nobody", automountServiceAccountToken=False) for i in range(1500)]
        for one in pods:
            self.cluster.create("pods", one)
        revision = self.ask("GET", PODS).body["metadata"]["resourceVersion"]
        watches = [self.client.watch(f"{PODS}?watch=1&resourceVersion={revision}") for _ in range(3)]
        begun = time.process_time()
        changed = threading.Thread(target=self.change_all, args=(200,))
        changed.start()
        for watch in watches:
            for _ in range(200):
                self.assertEqual(watch.next()["type"], "MODIFIED")
            watch.close()
        changed.join()
        self.assertLess(time.process_time() - begun, 1.5)

    def change_all(self, n):
        for i in range(n):
            self.cluster.api.change("pods", "default", f"p{i:04d}", lambda obj: obj["metadata"].setdefault("labels", {}).update(a="b"))


if __name__ == "__main__":
    unittest.main()

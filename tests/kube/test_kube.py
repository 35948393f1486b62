#!/usr/bin/env python3
"""Tests of the server of the test double: it answers a plain HTTP client as the API's documents say."""
import gzip
import http.client
import json
import pathlib
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from tests.kube import rbac, values  # noqa: E402
from tests.kube.cluster import Cluster  # noqa: E402
from tests.kube.fixture import (  # noqa: E402
    APPLY, JOBS, JSON, MAPS, MERGE, PATCH, PODS, STRATEGIC, ClusterTest, config_map, job, pod)


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
        twice = b'{"metadata":{"name":"twice"},"data":{"a":"1","a":"2"}}'
        self.assert_status(self.ask("POST", MAPS + "?fieldValidation=Strict", twice), 400, "BadRequest", 'duplicate field "a"')
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

    def test_large_answers_are_compressed(self):
        self.ask("POST", MAPS, config_map("large", {"x": "a" * 200000}))
        answer = self.ask("GET", MAPS + "/large", Accept_Encoding="gzip")
        self.assertEqual(answer.headers["Content-Encoding"], "gzip")
        self.assertEqual(json.loads(gzip.decompress(answer.raw))["data"], {"x": "a" * 200000})
        self.ask("DELETE", MAPS + "/large")

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
        self.cluster.allow("weir", ["list"], ["secrets"], [""], "default", names=["one"])
        secrets = "/api/v1/namespaces/default/secrets"
        self.assertEqual(weir.ask("GET", secrets + "?fieldSelector=metadata.name%3Done").code, 200)
        self.assertEqual(weir.ask("GET", secrets).code, 403)
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
        watch = self.client.watch(MAPS + "?watch=1&resourceVersion=0")
        self.assertEqual(watch.next()["type"], "ADDED")
        self.cluster.faults.on("gone", count=1)
        self.assertEqual(watch.until("ERROR")["object"]["code"], 410)
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

    def test_slow_and_split_watches(self):
        self.cluster.faults.on("split_watch", count=1, size=5)
        watch = self.client.watch(MAPS + "?watch=1&resourceVersion=0&timeoutSeconds=1")
        self.assertEqual(watch.next()["object"]["kind"], "ConfigMap")
        watch.close()
        revision = self.ask("GET", MAPS).body["metadata"]["resourceVersion"]
        self.cluster.faults.on("slow_watch", seconds=0.2)
        watch = self.client.watch(f"{MAPS}?watch=1&resourceVersion={revision}")
        begun = time.monotonic()
        self.ask("POST", MAPS, config_map("slow"))
        self.assertEqual(watch.next()["object"]["metadata"]["name"], "slow")
        self.assertGreater(time.monotonic() - begun, 0.19)
        watch.close()

    def test_probabilities_come_from_the_seed(self):
        def run():
            with Cluster(nodes=0, seed=7) as cluster:
                cluster.faults.on("error500", probability=0.5)
                return [cluster.faults.take("error500", "GET /") is not None for _ in range(20)]
        first = run()
        self.assertEqual(first, run())
        self.assertEqual({True, False}, set(first))

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
        self.namespace("tight", **{"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "baseline"})
        hosted = job("hosted", template={"spec": pod("x", hostNetwork=True)["spec"]})
        answer = self.ask("POST", "/apis/batch/v1/namespaces/tight/jobs", hosted)
        self.assertIn('would violate PodSecurity \\"baseline:latest\\": host namespaces (hostNetwork=true)', answer.headers["Warning"])
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
        run["spec"] = {"n": "one"}
        self.assert_status(self.ask("POST", path, run), 422, "Invalid", 'spec.n: Invalid value: "string": spec.n in body must be of type integer: "string"')
        self.assertEqual(self.ask("GET", path).body["items"][0]["kind"], "Run")

    def test_a_definition_says_of_which_type_all_is(self):
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

        def ask(schema, **more):
            version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **more}
            return self.ask("POST", path, {"metadata": {"name": "runs.weir.test"}, "spec": {
                "group": "weir.test", "scope": "Namespaced", "names": {"plural": "runs", "kind": "Run"}, "versions": [version]}})
        self.assert_status(ask({"properties": {}}), 422, "Invalid", "openAPIV3Schema.type: Required value: must not be empty at the root")
        self.assert_status(ask({"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {"type": "array"}, "b": {}}}}}), 422,
                           "Invalid", "properties[a].items: Required value: must be specified",
                           "properties[b].type: Required value: must not be empty for specified object fields")
        self.assert_status(ask({"type": "object"}, additionalPrinterColumns=[{"name": "A", "type": "text", "jsonPath": "status"}]), 422, "Invalid",
                           "must be one of boolean,date,integer,number,string", "must be a simple json path starting with .")

    def test_a_definition_goes_when_all_of_it_is_gone(self):
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        self.cluster.create("customresourcedefinitions.apiextensions.k8s.io", {"metadata": {"name": "runs.weir.test"}, "spec": {
            "group": "weir.test", "scope": "Namespaced", "names": {"plural": "runs", "kind": "Run"}, "versions": [version]}})
        group, path = "/apis/weir.test/v1", "/apis/weir.test/v1/namespaces/default/runs"
        self.cluster.wait(lambda: self.ask("GET", path).code == 200)
        run = {"apiVersion": "weir.test/v1", "kind": "Run", "metadata": {"name": "r", "finalizers": ["weir.test/x"]}}
        self.assertEqual(self.ask("POST", path, run).code, 201)
        definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/runs.weir.test"
        self.assertEqual(self.ask("DELETE", definition).body["status"]["conditions"][-1]["type"], "Terminating")
        self.cluster.wait(lambda: "deletionTimestamp" in self.ask("GET", path + "/r").body["metadata"])
        self.assertEqual(self.ask("GET", group).body["resources"][0]["verbs"], ["delete", "deletecollection", "get", "list", "watch"])
        run["metadata"]["name"] = "s"
        self.assert_status(self.ask("POST", path, run), 403, "Forbidden", "create not allowed while custom resource definition is terminating")
        self.assertEqual(self.ask("PATCH", path + "/r", {"metadata": {"finalizers": None}}, MERGE).code, 200)
        self.cluster.wait(lambda: self.ask("GET", definition).code == 404)
        self.cluster.wait(lambda: self.ask("GET", group).code == 404)

    def test_a_namespace_takes_all_with_it(self):
        self.namespace("going")
        self.ask("POST", "/api/v1/namespaces/going/configmaps", config_map("x"))
        self.assertEqual(self.ask("DELETE", "/api/v1/namespaces/going").body["status"]["phase"], "Terminating")
        answer = self.ask("POST", "/api/v1/namespaces/going/configmaps", config_map("y"))
        self.assertIn(answer.code, (403, 404))
        self.cluster.wait(lambda: self.ask("GET", "/api/v1/namespaces/going").code == 404)


if __name__ == "__main__":
    unittest.main()

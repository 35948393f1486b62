"""What the tests of the test double share: an HTTP client, objects to send, and a cluster for each class of tests."""
import contextlib
import http.client
import json
import ssl
import unittest

from .cluster import ADMIN_TOKEN, Cluster

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

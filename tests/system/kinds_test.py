"""What kinds there are: the API, the document and the command line say the same, and what they say is taken."""
import json
import re
import unittest

import harness
from harness import ROOT, HttpError, Server, small_model

NOUNS = {"source": "src/endpoint/sources.def", "sink": "src/endpoint/sinks.def", "policy": "src/ion/policies.def",
         "door-kind": "src/endpoint/doors.def", "job-kind": "src/framework/job_kinds.def", "driver": "src/cluster/drivers.def", "detector": "src/vision/detectors.def"}
ION = {"kind": "ion", "name": "door",
       "pipelines": [{"name": "learn", "type": "training", "dataset": "staff", "model": "face-embed"},
                     {"name": "see", "type": "prediction", "source": {"kind": "http"}, "gallery": {"dataset": "staff"}}],
       "links": [{"from": "learn", "to": "see"}]}


SAMPLES = {
    "freeze-window": {"days": "MON-FRI", "from": "08:00", "to": "18:00"},
    "evaluate": {"dataset": "staff", "metric": "loss", "margin": -0.1, "alpha": 0.01, "min_samples": 10, "least_accuracy": 0.5, "on_failure": "pass"},
    "ab": {"share": 20, "metric": "money", "better": "lower", "confidence": 0.9, "min_samples": 50},
    "canary": {"steps": [10, 100], "hold_s": 60, "max_error_rate": 0.01, "max_p99_ms": 50.0},
    "shadow": {"min_requests": 100, "max_disagreement": 0.05, "max_latency_ratio": 1.5},
    "webhook": {"url": "http://127.0.0.1/in", "token": "t"},
    "rtsp": {"cameras": [{"name": "door", "url": "rtsp://127.0.0.1/door"}]},
    "mjpeg": {"cameras": [{"name": "door", "url": "http://127.0.0.1/door"}]},
    "v4l2": {"cameras": [{"name": "door", "device": "/dev/video0"}]},
    "video": {"cameras": [{"name": "door", "path": "/clips/door.mp4"}]},
    "mqtt": {"url": "mqtt://127.0.0.1", "topic": "site/{camera}"},
    "manual": {"approvals": 2, "roles": ["operator"], "four_eyes": True, "timeout_s": 60, "on_timeout": "reject"},
}


class Kinds(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--no-agent").start()
        cls.server.post("/datasets", {"name": "staff"})
        (cls.server.root / "stamps.onnx").write_bytes(small_model())
        cls.server.weir("model", "push", "stamps", str(cls.server.root / "stamps.onnx"))
        cls.kinds = cls.server.get("/kinds")["items"]

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def names(self, noun, planned=False):
        return [kind["name"] for kind in self.kinds if kind["noun"] == noun and kind["is_planned"] == planned]

    def said(self, *words):
        return self.server.weir(*words)[1]

    def test_the_registries_are_listed(self):
        for noun, file in NOUNS.items():
            listed = re.findall(r"^WEIR_KIND(?:_WITH)?\((?:\w+, )?(\w+)\)$", (ROOT / file).read_text(), re.M)
            self.assertEqual([name.replace("-", "_") for name in self.names(noun)], listed)
            asked = self.server.get("/kinds?noun=" + noun)["items"]
            self.assertEqual(asked, [kind for kind in self.kinds if kind["noun"] == noun])
        with self.assertRaises(HttpError) as caught:
            self.server.get("/kinds?noun=horse")
        self.assertEqual(caught.exception.code, 400)
        for kind in self.kinds:
            self.assertEqual(kind["doc"] is None, kind["is_planned"], kind)

    def test_the_document_has_the_same_options(self):
        schemas = self.server.get("/openapi.json")["components"]["schemas"]
        for kind in self.kinds:
            if kind["is_planned"]:
                self.assertNotIn(f"{kind['noun']}.{kind['name']}", schemas)
                continue
            schema = schemas[f"{kind['noun']}.{kind['name']}"]
            self.assertEqual([option["name"] for option in kind["options"]], list(schema["properties"]))
            self.assertEqual([option["name"] for option in kind["options"] if option.get("required")],
                             schema.get("required", []))
            self.assertIn({"$ref": f"#/components/schemas/{kind['noun']}.{kind['name']}"},
                          schemas[kind["noun"]]["anyOf"])

    def apply(self, change):
        document = json.loads(json.dumps(ION))
        change(document)
        return self.server.request("POST", "/api/v1/ions", document)

    def put_policy(self, document, given):
        document["links"][0].update(policy=given)
        if given["kind"] in ("canary", "ab", "shadow", "evaluate"):  # they try versions on requests, or on pictures of classes
            document["links"].append({"from": {"model": "stamps"}, "to": {"deployment": "stamps"}, "policy": given})
            document["links"][0].update(policy="manual")

    def sample(self, kind):
        """Options with which a kind is taken: those that hang together are in SAMPLES."""
        value = {"text": "/x", "integer": 1, "number": 1, "boolean": False}
        given = SAMPLES.get(kind["name"]) or {option["name"]: option.get("default", value[option["type"]])
                                              for option in kind["options"] if option["type"] in value}
        self.assertLessEqual(set(given), {option["name"] for option in kind["options"]})
        return {"kind": kind["name"]} | given

    def test_what_is_listed_is_taken_and_what_is_planned_is_told_apart(self):
        for noun, put in (("source", lambda document, given: document["pipelines"][1].update(source=given)),
                          ("sink", lambda document, given: document["pipelines"][1].update(sinks=[given])),
                          ("policy", self.put_policy)):
            for kind in (kind for kind in self.kinds if kind["noun"] == noun and not kind["is_planned"]):
                given = self.sample(kind)
                self.apply(lambda document: put(document, given))
                with self.assertRaises(HttpError) as caught:
                    self.apply(lambda document: put(document, given | {"shoe_size": 44}))
                self.assertEqual(caught.exception.code, 400)
                self.assertIn("shoe_size: unknown option", caught.exception.error["message"])
            for name in self.names(noun, planned=True):
                with self.assertRaises(HttpError) as caught:
                    self.apply(lambda document: put(document, {"kind": name}))
                self.assertEqual(caught.exception.code, 501, name)

    def test_the_command_line_explains_them(self):
        for noun in NOUNS:
            text = self.said("explain", noun)
            for name in self.names(noun):
                self.assertRegex(text, rf"(?m)^{name} ")
        text = self.said("explain", "sinks")
        self.assertIn("jsonl", text)
        text = self.said("explain", "sink", "jsonl")
        self.assertRegex(text, r"(?m)^max_mb +integer +128 +1 to 1000000 +Size")
        self.assertRegex(text, r"(?m)^path +text +- +required ")
        self.assertIn("Planned", self.said("explain", "source", "kafka"))
        status, _, message = self.server.weir("explain", "source", "horse", check=False)
        self.assertNotEqual(status, 0)
        self.assertIn("weir explain source", message)
        self.assertIn("there is no noun", self.server.weir("explain", "horse", check=False)[2])
        shown = json.loads(self.said("get", "kinds", "noun=driver", "-o", "json"))["items"]
        self.assertEqual([kind["name"] for kind in shown], self.names("driver") + self.names("driver", planned=True))

    def test_every_noun_is_explained_and_listed(self):
        nouns = re.search(r"Nouns: (.*?)\n\n", self.said("help", "get"), re.S)[1]
        plain, of = nouns.split(";")
        for noun in plain.split():
            word = {"roles": "role", "sources": "endpoint"}.get(noun, noun)  # roles: what each may; sources: kinds of them
            self.assertRegex(self.said("explain", word), r"(?m)^(id|name|seq) +(string|integer) ", noun)
            self.assertRegex(self.said("get", noun), r"^[A-Z]+ ", noun)
        for noun in re.findall(r"([a-z-]+) [A-Z]+\b", of.split(":", 1)[-1]):
            self.assertIn("MEANING", self.said("explain", noun))
            self.assertGreater(len(self.said("explain", noun).splitlines()), 5, noun)


if __name__ == "__main__":
    harness.main()

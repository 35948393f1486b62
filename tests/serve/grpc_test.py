#!/usr/bin/env python3
"""Unmodified clients of Triton, over gRPC and REST, to a model behind `weir server`: as onnxruntime says."""
import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
import peers  # noqa: E402

peers.run_in_peers()

import numpy  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
import PIL.Image  # noqa: E402
import tritonclient.grpc  # noqa: E402
import tritonclient.http  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import harness  # noqa: E402
from harness import Server, wait_until  # noqa: E402


def make_model(path, seed):
    """y = softmax(relu(x w1) w2) of 16 numbers, in batches of any size."""
    dice = numpy.random.default_rng(seed)
    weights = [numpy_helper.from_array(dice.standard_normal(shape).astype(numpy.float32), name)
               for name, shape in (("w1", (16, 32)), ("w2", (32, 4)))]
    nodes = [helper.make_node("MatMul", ["x", "w1"], ["a"]), helper.make_node("Relu", ["a"], ["b"]),
             helper.make_node("MatMul", ["b", "w2"], ["c"]), helper.make_node("Softmax", ["c"], ["y"], axis=1)]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 16])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


def make_foreign(path):
    """Classes of a grey picture of 8 x 8 by an operator that only onnxruntime has."""
    weight = numpy_helper.from_array(numpy.random.default_rng(9).standard_normal((64, 3)).astype(numpy.float32), "w")
    nodes = [helper.make_node("Gelu", ["x"], ["g"], domain="com.microsoft"), helper.make_node("Flatten", ["g"], ["f"]),
             helper.make_node("MatMul", ["f", "w"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 1, 8, 8])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3])], [weight])
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)


class Clients(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--grpc-listen", "127.0.0.1:0", "--cpu-slots", "4", "--onnxruntime", peers.onnxruntime_folder()).start()
        cls.addClassCleanup(cls.server.stop)
        cls.model = str(cls.server.root / "small.onnx")
        make_model(cls.model, 1)
        cls.server.weir("model", "push", "small", cls.model)
        cls.server.weir("deploy", "small", "--replicas", "1")
        cls.session = onnxruntime.InferenceSession(cls.model, providers=["CPUExecutionProvider"])
        cls.address = json.loads((cls.server.state / "server.json").read_text())["grpc"]
        cls.headers = {"authorization": "Bearer " + cls.server.token}

    def grpc(self):
        client = tritonclient.grpc.InferenceServerClient(self.address)
        self.addCleanup(client.close)
        return client

    def truth(self, x):
        return self.session.run(None, {"x": x})[0]

    def ask(self, client, module, x, **more):
        tensor = module.InferInput("x", list(x.shape), "FP32")
        tensor.set_data_from_numpy(x)
        return client.infer("small", [tensor], headers=self.headers, **more)

    def test_grpc_answers_what_onnxruntime_does(self):
        client = self.grpc()
        self.assertTrue(client.is_server_live())
        self.assertTrue(client.is_server_ready())
        self.assertTrue(client.is_model_ready("small", headers=self.headers))
        self.assertEqual(client.get_server_metadata().name, "weir")
        metadata = client.get_model_metadata("small", headers=self.headers)
        self.assertEqual([(t.name, t.datatype, list(t.shape)) for t in metadata.inputs], [("x", "FP32", [-1, 16])])
        index = client.get_model_repository_index(headers=self.headers)
        self.assertEqual([(m.name, m.version, m.state) for m in index.models], [("small", "1", "READY")])
        dice = numpy.random.default_rng(2)
        for n in (1, 3, 8):
            x = dice.standard_normal((n, 16)).astype(numpy.float32)
            answer = self.ask(client, tritonclient.grpc, x, request_id=f"r{n}")
            numpy.testing.assert_allclose(answer.as_numpy("y"), self.truth(x), atol=1e-3)
            self.assertEqual((answer.get_response().id, answer.get_response().model_version), (f"r{n}", "1"))

    def test_a_model_for_onnxruntime_alone_is_pushed_served_and_run_over_a_dataset(self):
        path = self.server.root / "foreign.onnx"
        make_foreign(str(path))
        (self.server.root / "rule.json").write_text('{"width": 8, "height": 8, "output_kind": "logits"}')
        (self.server.root / "labels.txt").write_text("cat\ndog\nemu\n")
        said = self.server.weir("model", "push", "foreign", str(path), "--preprocess", str(self.server.root / "rule.json"),
                                "--labels", str(self.server.root / "labels.txt"))[1]
        self.assertIn("run by onnxruntime", said)
        self.server.weir("deploy", "foreign", "--replicas", "1")
        self.addCleanup(self.server.weir, "undeploy", "foreign")
        x = numpy.random.default_rng(6).random((2, 1, 8, 8), numpy.float32)
        truth = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
        body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [2, 1, 8, 8], "data": x.ravel().tolist()}]}
        answer = self.server.request("POST", "/v2/models/foreign/infer", body)
        numpy.testing.assert_allclose(answer["outputs"][0]["data"], truth.ravel(), atol=1e-3)
        folder = self.server.root / "greys" / "all"
        folder.mkdir(parents=True)
        for seed in range(3):
            pixels = numpy.random.default_rng(seed).integers(0, 256, (8, 8), numpy.uint8)
            PIL.Image.fromarray(pixels).save(folder / f"{seed}.png")
        self.server.post("/datasets", {"name": "greys", "kind": "folder", "path": str(folder.parent)})
        self.server.post("/datasets/greys/versions")
        job = json.loads(self.server.weir("batch", "foreign", "greys", "--name", "greys-out", "-o", "json")[1])["id"]
        wait_until(lambda: self.server.get(f"/jobs/{job}")["state"] in ("SUCCEEDED", "FAILED"), 60, "the batch")
        self.assertEqual(self.server.get(f"/jobs/{job}")["state"], "SUCCEEDED", self.server.get(f"/jobs/{job}")["reason"])

    def test_configuration_and_statistics(self):
        client = self.grpc()
        config = client.get_model_config("small", headers=self.headers).config
        self.assertEqual((config.name, config.backend, [(p.name, p.data_type, list(p.dims)) for p in config.input]),
                         ("small", "onnx", [("x", 11, [16])]))
        self.assertEqual([(p.name, p.data_type, list(p.dims)) for p in config.output], [("y", 11, [4])])
        self.assertEqual(config.max_batch_size, 8)
        self.ask(client, tritonclient.grpc, numpy.zeros((3, 16), numpy.float32))
        stats, = client.get_inference_statistics("small", headers=self.headers).model_stats
        rest, = self.server.request("GET", "/v2/models/small/stats")["model_stats"]
        self.assertEqual((stats.name, stats.version, stats.inference_count), ("small", "1", rest["inference_count"]))
        self.assertGreaterEqual(stats.inference_count, 3)
        self.assertEqual(stats.inference_stats.success.ns, rest["inference_stats"]["success"]["ns"])
        self.assertGreaterEqual(stats.inference_stats.compute_infer.count, 1)
        self.assertEqual(sum(batch.batch_size * batch.compute_infer.count for batch in stats.batch_stats), stats.inference_count)

    def test_many_at_once(self):
        client = self.grpc()
        x = numpy.random.default_rng(3).standard_normal((200, 1, 16)).astype(numpy.float32)
        answers = {}
        for i in range(200):
            tensor = tritonclient.grpc.InferInput("x", [1, 16], "FP32")
            tensor.set_data_from_numpy(x[i])
            client.async_infer("small", [tensor], headers=self.headers,
                               callback=lambda result, error, i=i: answers.__setitem__(i, (result, error)))
        wait_until(lambda: len(answers) == 200, 60, "200 answers")
        for i, (result, error) in answers.items():
            self.assertIsNone(error)
            numpy.testing.assert_allclose(result.as_numpy("y"), self.truth(x[i]), atol=1e-3)

    def test_typed_contents(self):
        from tritonclient.grpc import service_pb2, service_pb2_grpc
        import grpc
        x = numpy.random.default_rng(4).standard_normal((2, 16)).astype(numpy.float32)
        request = service_pb2.ModelInferRequest(model_name="small")
        tensor = request.inputs.add(name="x", datatype="FP32", shape=[2, 16])
        tensor.contents.fp32_contents.extend(x.ravel().tolist())
        with grpc.insecure_channel(self.address) as channel:
            answer = service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer(
                request, metadata=[("authorization", "Bearer " + self.server.token)])
        y = numpy.frombuffer(answer.raw_output_contents[0], numpy.float32).reshape(2, 4)
        numpy.testing.assert_allclose(y, self.truth(x), atol=1e-3)

    def test_refusals_are_clear(self):
        client = self.grpc()
        x = numpy.zeros((1, 16), numpy.float32)
        tensor = tritonclient.grpc.InferInput("x", [1, 16], "FP32")
        tensor.set_data_from_numpy(x)
        cases = [("small", {}, "UNAUTHENTICATED"), ("small", {"authorization": "Bearer weir_no"}, "UNAUTHENTICATED"),
                 ("large", self.headers, "NOT_FOUND")]
        for model, headers, code in cases:
            with self.assertRaises(tritonclient.grpc.InferenceServerException) as caught:
                client.infer(model, [tensor], headers=headers)
            self.assertIn(code, str(caught.exception.status()))
        with self.assertRaises(tritonclient.grpc.InferenceServerException) as caught:
            self.ask(client, tritonclient.grpc, numpy.zeros((1, 15), numpy.float32))
        self.assertIn("INVALID_ARGUMENT", str(caught.exception.status()))
        self.ask(client, tritonclient.grpc, x)  # and it still answers

    def test_rest_answers_what_onnxruntime_does(self):
        client = tritonclient.http.InferenceServerClient(self.server.url.removeprefix("http://"))
        self.addCleanup(client.close)
        self.assertTrue(client.is_server_ready())
        self.assertTrue(client.is_model_ready("small", headers=self.headers))
        x = numpy.random.default_rng(5).standard_normal((5, 16)).astype(numpy.float32)
        answer = self.ask(client, tritonclient.http, x)
        numpy.testing.assert_allclose(answer.as_numpy("y"), self.truth(x), atol=1e-3)
        body = {"instances": x.tolist()}
        predicted = self.server.request("POST", "/v1/models/small:predict", body)["predictions"]
        numpy.testing.assert_allclose(predicted, self.truth(x), atol=1e-3)
        predicted = self.server.request("POST", "/models/small/invocations", body)["predictions"]
        numpy.testing.assert_allclose(predicted, self.truth(x), atol=1e-3)

    def test_a_revoked_token_ends_at_once(self):
        made = self.server.post("/tokens", {"user": "admin", "name": "short", "role": "admin"})
        headers = {"authorization": "Bearer " + made["secret"]}
        client = self.grpc()
        self.assertTrue(client.is_model_ready("small", headers=headers))
        self.server.request("DELETE", "/api/v1/tokens/" + made["id"])
        with self.assertRaises(tritonclient.grpc.InferenceServerException) as caught:
            client.is_model_ready("small", headers=headers)
        self.assertIn("UNAUTHENTICATED", str(caught.exception.status()))

    def test_the_figures_count(self):
        text = self.server.request("GET", "/metrics", raw=True).decode()
        self.assertIn('nv_inference_request_success{model="small"', text)
        self.assertIn('weir_deployment_requests_total{deployment="small"', text)


if __name__ == "__main__":
    harness.main()

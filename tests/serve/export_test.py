#!/usr/bin/env python3
"""Models that Weir trained, exported to ONNX: valid, and onnxruntime gives the same answers."""
import pathlib
import subprocess
import tempfile
import unittest

from peers import MODEL_CASE, WORKER, run_in_peers

run_in_peers()

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
from onnx import numpy_helper  # noqa: E402

MAKE_NET = str(pathlib.Path(MODEL_CASE).parent / "make_net")
MODELS = [("lenet", None), ("face-embed", None), ("resnet18", 64), ("resnet50", 64), ("mobilenet_v2", 64), ("inception_v3", 139),
          ("googlenet", 64), ("densenet121", 64)]


class Export(unittest.TestCase):
    def test_models_of_the_zoo(self):
        for name, side in MODELS:
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                self.compare(name, side, pathlib.Path(folder))

    def compare(self, name, side, folder):
        net, exported = folder / "net", folder / "model.onnx"
        subprocess.run([MAKE_NET, name, str(side or 0), net], check=True)
        subprocess.run([WORKER, "export", net, "--output", exported], check=True)
        onnx.checker.check_model(str(exported), full_check=True)
        session = onnxruntime.InferenceSession(str(exported), providers=["CPUExecutionProvider"])
        dims = session.get_inputs()[0].shape
        self.assertEqual(dims[0], "batch")
        for batch in (1, 3):
            given = np.random.default_rng(batch).normal(size=[batch, *dims[1:]]).astype(np.float32)
            expected = session.run(None, {"input": given})[0]
            scale = max(1, np.abs(expected).max())
            for kind, array in (("input", given), ("output", expected)):
                (folder / f"{kind}_0.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())
            for executor, file in (("weir", net), ("onnx", exported)):
                done = subprocess.run([MODEL_CASE, executor, file, folder], capture_output=True, text=True, check=False)
                difference = float(done.stdout.split()[1]) if done.stdout else 1
                self.assertLessEqual(difference, 1e-4 * scale, f"{executor} {name} {batch}: {done.stdout}{done.stderr}")

    def test_it_carries_what_weir_knows(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            subprocess.run([MAKE_NET, "lenet", "0", folder / "net"], check=True)
            subprocess.run([WORKER, "export", folder / "net", "-o", folder / "model.onnx"], check=True)
            said = [subprocess.run([WORKER, "inspect", folder / file], capture_output=True, text=True, check=True).stdout
                    for file in ("net", "model.onnx")]
            kept = [[line for line in text.splitlines() if not any(key in line for key in ('"format"', '"executor"', '"why"'))] for text in said]
            self.assertEqual(kept[0], kept[1])
            self.assertIn('"class 9"', said[1])

    def test_what_is_no_model_of_weir_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([WORKER, "export", __file__, "-o", folder + "/x"], capture_output=True, text=True, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual(list(pathlib.Path(folder).iterdir()), [])


if __name__ == "__main__":
    unittest.main()

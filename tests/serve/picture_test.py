#!/usr/bin/env python3
"""A picture becomes the tensor that PIL and numpy make of it: torchvision's Resize, CenterCrop, Normalize."""
import json
import pathlib
import subprocess
import tempfile
import unittest

from peers import MODEL_CASE, run_in_peers

run_in_peers()

import numpy as np  # noqa: E402
from PIL import Image  # noqa: E402

PICTURE_CASE = str(pathlib.Path(MODEL_CASE).parent / "picture_case")
LEVELS = 1.01  # PIL rounds between its two passes, and Weir does not: one grey level


def signature(rule, shape):
    port = {"name": "x", "datatype": "FP32", "shape": shape}
    return {"format": "onnx", "executor": "onnx", "inputs": [port], "outputs": [{**port, "name": "y"}], "picture": rule}


def crop(image, shorter, width, height):
    w, h = image.size
    size = (shorter, int(shorter * h / w)) if w <= h else (int(shorter * w / h), shorter)
    image = image.resize(size, Image.BILINEAR)
    left, top = int(round((size[0] - width) / 2)), int(round((size[1] - height) / 2))
    return image.crop((left, top, left + width, top + height))


def smooth(rng, width, height):
    """Random colours without sharp edges, as photographs have them."""
    coarse = rng.integers(0, 256, (7, 9, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize((width, height), Image.BICUBIC)


class Picture(unittest.TestCase):
    def test_pictures_of_many_sizes(self):
        rng = np.random.default_rng(3)
        with tempfile.TemporaryDirectory() as name:
            for i in range(24):
                self.compare(rng, pathlib.Path(name), is_crop=i % 2 == 0, is_nhwc=i % 3 == 0, is_bgr=i % 4 < 2, scale=1 if i % 5 else 255)

    def compare(self, rng, folder, is_crop, is_nhwc, is_bgr, scale):
        width, height = (int(n) for n in rng.integers(8, 60, 2))
        shorter = max(width, height) + int(rng.integers(0, 9))
        image = smooth(rng, *(int(n) for n in rng.integers(20, 300, 2)))
        mean, std = rng.normal(size=3) * scale, (0.2 + rng.random(3)) * scale
        rule = {"width": width, "height": height, "layout": "NHWC" if is_nhwc else "NCHW", "order": "BGR" if is_bgr else "RGB",
                "scale": scale, "mean": list(mean), "std": list(std), "fit": "crop" if is_crop else "stretch"}
        if is_crop:
            rule["shorter"] = shorter
        shape = [-1, height, width, 3] if is_nhwc else [-1, 3, height, width]
        (folder / "signature").write_text(json.dumps(signature(rule, shape)))
        image.save(folder / "picture.png")
        done = subprocess.run([PICTURE_CASE, folder / "signature", folder / "picture.png"], capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        fitted = crop(image, shorter, width, height) if is_crop else image.resize((width, height), Image.BILINEAR)
        pixels = np.asarray(fitted).astype(np.float64)
        pixels = pixels[:, :, ::-1] if is_bgr else pixels
        expected = (pixels * scale / 255 - mean) / std
        got = np.frombuffer(done.stdout, np.float32)
        got = got.reshape(height, width, 3) if is_nhwc else got.reshape(3, height, width).transpose(1, 2, 0)
        levels = np.abs(got - expected) * std * 255 / scale
        self.assertLessEqual(levels.max(), LEVELS, f"{image.size} {rule}")


if __name__ == "__main__":
    unittest.main()

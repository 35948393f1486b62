#!/usr/bin/env python3
"""pages_test.py: the console's pages of tracking on a real server: what they send fits what it takes.

The page's own tests (tests/browser) ask a stand-in; this one goes once through what changes something. Exit: 77 without Chromium.
"""
import hashlib
import os
import pathlib
import random
import sys
import tempfile
import unittest

import harness
from harness import ROOT, Server, small_model

sys.path.insert(0, str(ROOT / "tests/browser"))
import page as browser

SKIPPED = 77
FILES = 'ul[aria-label="Files"]'


class PagesTest(unittest.TestCase):
    def setUp(self):
        self.server = Server("--no-agent")
        self.server.start()
        self.addCleanup(self.server.stop)
        self.runs = [self.make_run(i) for i in range(6)]
        self.page = browser.Page()
        self.addCleanup(self.page.close)
        self.page.driver.get(self.server.post("/session/link")["url"])
        self.page.one("button").click()
        self.page.one(".topbar")

    def make_run(self, i):
        run = self.server.post("/runs", {"name": f"try-{i}", "experiment": "real", "params": {"lr": ["0.1", "0.01"][i % 2]}, "tags": {"team": "a"} if i < 2 else {}})
        points = [{"key": "val/acc", "step": step, "value": 0.5 + 0.05 * i + 0.001 * step} for step in range(20)]
        self.server.request("POST", f"/api/v1/runs/{run['id']}/metrics", {"metrics": points})
        return run["id"]

    def groups_are_the_servers(self):
        page = self.page
        page.go("experiments/real?group=params.lr&open=%253D0.1")
        page.until(lambda: len(page.all("tr.heading")) == 2 and len(page.all("tr[data-row]")) == 3, "two groups, one with its runs")
        self.assertIn("mean 0.6690 · best 0.7690", page.texts("tr.heading")[0])  # of 0.569, 0.669 and 0.769
        page.go("experiments/real?group=tags.team")
        page.until(lambda: [text.split("\n")[0].strip() for text in page.texts("tr.heading")] == ["team = a", "team not set"], "who has the tag, and who has not")
        page.js("document.querySelectorAll('tr.heading a')[1].click()")
        page.until(lambda: len(page.all("tr[data-row]")) == 4, "those without it")

    def files_come_whole_and_in_parts(self, run):
        page = self.page
        content = random.Random(1).randbytes(20_000_000)
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.server.root))
        page.go(f"runs/{run}?tab=artifacts")
        page.has_text("main", "No artifacts")
        for name, what in (("model.onnx", small_model()), ("big.dat", content)):
            (folder / name).write_bytes(what)
            page.driver.find_element("css selector", "input[name=artifact]").send_keys(str(folder / name))
            page.until(lambda: name in page.text(FILES), name, 60)
        there = {one["path"]: one["blob"] for one in self.server.get(f"/runs/{run}/artifacts")["items"]}
        self.assertEqual(there["big.dat"], hashlib.sha256(content).hexdigest())
        page.button("Delete big.dat").click()
        page.button("Delete the file", "dialog").click()
        page.until(lambda: "big.dat" not in page.text(FILES), "it to go")

    def the_best_becomes_a_version_with_lineage(self, run):
        page = self.page
        page.go("experiments/real")
        page.one("table.rows [data-row]")
        page.button("Register best").click()
        page.has_text("dialog .best-run", "model.onnx")
        page.button("Register it", "dialog").click()
        page.until(lambda: "/models/real/v1" in page.address(), "the version", 60)
        version = self.server.get("/models/real/versions/1")
        self.assertEqual((version["run"], version["parameters"]), (run, {"lr": "0.01"}))
        page.go(f"runs/{run}?tab=lineage")
        page.has_text(".lineage", "real v1")

    def a_secret_is_set(self):
        page = self.page
        page.go("people?tab=secrets")
        page.button("Set a secret of default").click()
        page.one('dialog input[name="name"]').send_keys("KEY")
        page.one('dialog input[name="value"]').send_keys("v")
        page.button("Set it", "dialog").click()
        page.has_text('ul[aria-label="Secrets of default"]', "KEY set by admin")

    def test_what_the_pages_send_fits_what_the_server_takes(self):
        best = self.runs[-1]
        self.groups_are_the_servers()
        self.files_come_whole_and_in_parts(best)
        self.the_best_becomes_a_version_with_lineage(best)
        self.page.go(f"experiments/real/compare?runs={','.join(self.runs)}")
        self.page.until(lambda: len(self.page.all("table.compare tbody tr")) == 6 and self.page.all(".chart-panel canvas"), "all of them beside each other")
        self.a_secret_is_set()
        self.assertEqual(self.page.console_errors(), [])


if __name__ == "__main__":
    if not all(os.access(file, os.X_OK) for file in (browser.CHROMIUM, browser.DRIVER)):
        print("skipped: no Chromium")
        sys.exit(SKIPPED)
    harness.main()

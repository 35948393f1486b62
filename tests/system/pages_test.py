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

    def write(self, button, text):
        page = self.page
        page.button(button).click()
        page.one("textarea[name=description]").send_keys(text)
        page.button("Save", "form").click()
        page.until(lambda: text in page.texts("main .described"), text)

    def what_people_say_is_changed_where_it_stands(self, run):
        page, server = self.page, self.server
        page.go("models/real/v1")
        self.write("Describe real", "of the test")
        self.write("Describe real v1", "the best of six")
        page.button("Edit the stage of v1").click()
        page.js("const e = document.querySelector('select[name=stage]'); e.value = 'Production'; e.dispatchEvent(new Event('change', {bubbles: true}))")
        page.one("input[name=archive_others]").click()
        page.button("Save", "form").click()
        page.has_text(".version-words .facts", "Production")
        page.go(f"runs/{run}")
        self.write("Describe try-5", "with a small step")
        page.go("experiments/real")
        self.write("Describe real", "six tries")
        version = server.get("/models/real/versions/1")
        self.assertEqual((server.get("/models/real")["description"], version["description"], version["stage"]), ("of the test", "the best of six", "Production"))
        self.assertEqual(server.get(f"/runs/{run}")["tags"]["mlflow.note.content"], "with a small step")
        self.assertEqual([one["tags"].get("mlflow.note.content") for one in server.get("/experiments")["items"] if one["name"] == "real"], ["six tries"])

    def what_a_program_logged_comes_first(self):
        page = self.page
        job = self.server.post("/jobs", {"name": "prog", "kind": "command", "spec": {"argv": ["true"], "env": {"A": "1"}}})
        self.server.request("PATCH", f"/api/v1/runs/{job['run']}", {"params": {"width": "3", "zoom": "2"}})
        page.driver.get(f"{self.server.url}/p/-/experiments")
        page.until(lambda: "width" in page.texts("table.rows th"), "what it logged")
        heads = [one for one in page.texts("table.rows th") if one in ("argv", "cpu_slots", "env.A", "lr", "width", "zoom")]
        self.assertEqual(heads, ["lr", "width", "zoom"])

    def a_typed_address_leads_to_the_console_or_the_login_page(self):
        page, url = self.page, self.server.url
        page.driver.get(f"{url}/models/real/v1")  # as a person types it
        page.until(lambda: page.address() == "/p/-/models/real/v1", "the project that was shown last")
        page.has_text("#model-title", "real")
        page.driver.delete_all_cookies()
        page.driver.get(f"{url}/jobs?q=a")
        page.has_text("h1", "Log in to Weir")
        self.assertEqual(page.js("return document.querySelector('input[name=next]').value"), "/jobs?q=a")
        page.console_errors()  # the browser reports the 401

    def a_viewer_reads_it_as_text(self):
        page, server = self.page, self.server
        viewer = server.post("/tokens", {"name": "viewer", "role": "viewer"})["secret"]
        page.driver.get(server.request("POST", "/api/v1/session/link", token=viewer)["url"])
        page.one("button").click()
        page.one(".topbar")
        page.go("models/real/v1")
        page.until(lambda: page.texts("main .described") == ["of the test", "the best of six"], "what admin wrote")
        page.has_text(".version-words .facts", "Production")
        self.assertEqual(page.all(".in-place button"), [])

    def test_what_the_pages_send_fits_what_the_server_takes(self):
        best = self.runs[-1]
        self.groups_are_the_servers()
        self.files_come_whole_and_in_parts(best)
        self.the_best_becomes_a_version_with_lineage(best)
        self.page.go(f"experiments/real/compare?runs={','.join(self.runs)}")
        self.page.until(lambda: len(self.page.all("table.compare tbody tr")) == 6 and self.page.all(".chart-panel canvas"), "all of them beside each other")
        self.a_secret_is_set()
        self.what_people_say_is_changed_where_it_stands(best)
        self.what_a_program_logged_comes_first()
        self.assertEqual(self.page.console_errors(), [])
        self.a_typed_address_leads_to_the_console_or_the_login_page()
        self.a_viewer_reads_it_as_text()
        self.assertEqual(self.page.console_errors(), [])


if __name__ == "__main__":
    if not all(os.access(file, os.X_OK) for file in (browser.CHROMIUM, browser.DRIVER)):
        print("skipped: no Chromium")
        sys.exit(SKIPPED)
    harness.main()

"""An ION that is drawn in the console's builder, in a real Chromium, from nothing: applied, trained, serving, and deciding.

WEIR_SHOTS=DIR leaves pictures of the pages there.
"""
import os
import pathlib
import sys
import unittest

import harness
from harness import ROOT, Server, wait_until

sys.path.insert(0, str(ROOT / "tests" / "browser"))
import page as browser
from classifier_ion_test import CLASSES, picture

SHOTS = os.environ.get("WEIR_SHOTS")
PER_CLASS = 16
SET_VALUE = """const [e, value] = arguments; const at = Object.getPrototypeOf(e)
    Object.getOwnPropertyDescriptor(at, 'value').set.call(e, value)
    e.dispatchEvent(new Event(e.tagName === 'SELECT' ? 'change' : 'input', {bubbles: true}))"""


def missing():
    for file in (browser.CHROMIUM, browser.DRIVER):
        if not os.access(file, os.X_OK):
            return f"{file} is not installed"
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "python3-selenium is not installed (run with /usr/bin/python3)"
    return None


@unittest.skipIf(missing(), missing())
class Builder(unittest.TestCase):
    def setUp(self):
        self.server = Server().start()
        self.addCleanup(self.server.stop)
        self.server.post("/datasets", {"name": "shapes"})
        for name in CLASSES:
            for seed in range(PER_CLASS):
                self.server.request("PUT", f"/api/v1/datasets/shapes/files/{name}/{seed}.pgm", picture(name, seed))
        self.server.post("/datasets/shapes/versions")
        self.frames = self.server.root / "frames" / "cam"
        self.frames.mkdir(parents=True)
        self.page = browser.Page()
        self.addCleanup(self.page.close)
        self.page.resize(1440, 1000)
        self.page.driver.get(self.server.post("/session/link")["url"])
        self.page.one("#log-in").click()
        self.page.one(".topbar")

    def shot(self, name):
        if SHOTS:
            for shade in ("light", "dark"):
                for width, kind in ((1440, "desktop"), (390, "phone")):
                    self.page.media(shade, "reduce")
                    self.page.resize(width, 1000)
                    self.page.until(lambda: self.page.overflow_px() <= 0, f"{name} without a sideways scroll at {width}")
                    height = min(4000, self.page.js("return document.documentElement.scrollHeight"))
                    self.page.resize(width, max(1000, height))
                    (pathlib.Path(SHOTS) / f"{name}-{kind}-{shade}.png").write_bytes(self.page.driver.get_screenshot_as_png())
            self.page.media()
            self.page.resize(1440, 1000)

    def fill(self, name, value, within=".builder-form"):
        field = self.page.one(f'{within} [name="{name}"]')
        self.page.js(SET_VALUE, field, value)
        return field

    def rename(self, name):
        field = self.fill("pipeline-name", name)
        self.page.js("arguments[0].dispatchEvent(new Event('change', {bubbles: true}))", field)
        self.page.one(f'[data-node="{name}"]')

    def drag(self, begin, end):
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.page.driver, duration=60).click_and_hold(self.page.one(begin)).move_by_offset(30, 10).move_to_element(self.page.one(end)).release().perform()

    def test_an_ion_is_drawn_applied_and_runs(self):
        page = self.page
        page.go("ions")
        page.one('a[href$="/ions/new"]').click()
        page.has_text("main h1", "A new ION")
        self.fill("name", "sorter")
        page.button("Training", ".builder-add").click()
        page.one('[data-node="training"]')
        self.fill("dataset", "shapes")
        self.fill("model", "lenet")
        for key, value in (("steps", "30"), ("batch_size", "16")):
            self.fill(key, value)
        self.fill("parameters-search", "input")
        self.fill("input", "1,16,16")
        page.button("Prediction", ".builder-add").click()
        self.rename("belt")
        # Whoever forgets something is told by the server, with the place, and sees it on the canvas.
        page.has_text("[aria-labelledby=p-problems]", "belt")
        page.one(".sketch-node.is-wrong")
        self.shot("builder-problem")
        self.fill("source-kind", "directory")
        self.fill("path", str(self.frames.parent))
        self.drag('[data-node="training"] .port', '[data-node="belt"] .sketch-body')
        page.one('[data-link="training>belt"]')
        self.fill("policy-kind", "always-update")
        page.has_text("[aria-labelledby=p-problems]", "The server would take it as it is")
        page.has_text("[aria-labelledby=p-what-apply-will-do]", "Nothing starts")
        self.assertEqual(self.server.get("/ions")["items"], [], "what is only drawn is nowhere")
        self.shot("builder-new")
        page.until(lambda: page.button("Apply…").is_enabled(), "the check to be over")
        page.button("Apply…").click()
        page.button("Apply", "dialog").click()
        page.until(lambda: page.address().endswith("/ions/sorter/graph"), "the live graph")
        document = self.server.get("/ions/sorter")["document"]
        self.assertEqual(document["links"], [{"from": "training", "to": "belt", "policy": "always-update"}])
        self.assertEqual(document["pipelines"][0]["parameters"], {"steps": 30, "batch_size": 16, "input": "1,16,16"})

        page.button("Train now").click()
        page.button("Start training", "dialog").click()
        wait_until(lambda: self.server.get("/ions/sorter")["links"][0]["serving_version"] == 1, 60, "the trained version to serve")
        for i, name in enumerate(CLASSES):
            (self.frames / ".new").write_bytes(picture(name, 100 + i))
            (self.frames / ".new").rename(self.frames / f"{i + 1}.pgm")
        wait_until(lambda: self.server.get("/decisions/summary?ion=sorter")["decisions"] == len(CLASSES), 30, "all decisions")
        page.has_text('[data-link="training>belt"]', "live v1")
        page.has_text('[data-pipeline="belt"]', "sorter.training v1")
        self.shot("graph-live")

        page.go("ions/sorter/builder")
        page.has_text("#builder-form", "The ION")
        page.one('[data-node="belt"] .sketch-body').click()
        self.fill("replicas", "2")
        page.has_text("[aria-labelledby=p-change-to-revision-1]", "replicas: 2")
        page.has_text("[aria-labelledby=p-what-apply-will-do]", "replicas of \"belt\"")
        self.shot("builder-change")
        self.assertEqual(self.server.get("/ions/sorter")["revision"], 1)
        self.look_back()
        # The browser reports each refused dry run; nothing else may fail.
        self.assertEqual([one for one in page.console_errors() if "dry_run" not in one["message"]], [])

    def look_back(self):
        """What the ION was, in a snapshot: its state at a moment, and what other policies would have said."""
        page = self.page
        page.go("ions/sorter/snapshots")
        page.button("Take a snapshot…").click()
        self.fill("name", "first-hour", "dialog")
        page.button("Take it", "dialog").click()
        page.has_text(".timeline", "marks")
        page.has_text("[aria-labelledby^=p-state-at]", "training → belt v1")
        page.has_text("[aria-labelledby^=p-state-at]", "4 since the begin")
        page.button("Replay").click()
        page.has_text("[role=status]", "Nothing would have been decided otherwise")
        select = page.one('select[name="replay-policies"]')
        page.js(SET_VALUE, select, "written")
        text = page.one('textarea[name="replay-document"]')
        page.until(lambda: "policy: always-update" in text.get_attribute("value"), "the document")
        page.js(SET_VALUE, text, text.get_attribute("value").replace("policy: always-update", "policy: always-reject"))
        page.button("Replay").click()
        page.has_text("[aria-label='Decisions that would be others']", "refused")
        self.shot("snapshots")
        page.go("ions/sorter/health")
        page.has_text("main", "No window was reported in this time")
        self.shot("health-real")


if __name__ == "__main__":
    harness.main()

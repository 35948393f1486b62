"""Descriptions and stages, changed where they stand: by mouse and by keys, refused, locked, and while somebody else changes them."""

import json

import fake_serve
from fixture import WithPage
from serve_test import choose
from track_test import WithRuns


class DescribeTest(WithPage):
    def describe(self, text):
        """As somebody else does it."""
        with self.state.lock:
            self.state.model_descriptions["clothes"] = text
            self.state.publish("models", {"name": "clothes"})

    def sent(self):
        return [(path, json.loads(body)) for method, path, _, body in self.state.requests if method == "PATCH"]

    def write(self, button, text):
        """Opens the fields by their button, and puts this text in place of what is there."""
        from selenium.webdriver.common.keys import Keys

        page = self.page
        page.button(button).click()
        page.until(lambda: page.js("return document.activeElement.name") == "description", "the focus in the text")
        page.press_with(Keys.CONTROL, "a")
        page.press(Keys.DELETE, text)

    def test_a_model_is_described_and_its_description_changed_and_taken_away(self):
        page = self.page
        page.go("models/clothes")
        self.write("Describe clothes", "Ten kinds\nof clothes")
        page.button("Save", "form").click()
        page.until(lambda: page.text("main .described") == "Ten kinds\nof clothes", "both of its lines")
        self.assertEqual(page.until(page.focused, "the focus"), "Edit the description of clothes", "the focus is where it was")
        self.write("Edit the description of clothes", " ")
        page.button("Save", "form").click()
        page.button("Describe clothes")
        self.assertEqual(page.all("main .described"), [])
        self.assertEqual(self.sent(), [("/api/v1/models/clothes", {"description": "Ten kinds\nof clothes"}), ("/api/v1/models/clothes", {"description": None})])

    def test_a_version_is_described_by_keys_alone(self):
        from selenium.webdriver.common.keys import Keys

        page = self.page
        page.go("models/clothes/v2")
        page.js("arguments[0].focus()", page.button("Describe clothes v2"))
        page.press(Keys.ENTER)
        page.until(lambda: page.js("return document.activeElement.name") == "description", "the focus in the text")
        page.press("never mind", Keys.ESCAPE)
        page.until(lambda: page.focused() == "Describe clothes v2", "the button, with the focus")
        self.assertEqual(self.sent(), [])
        page.press(Keys.ENTER)
        page.until(lambda: page.js("return document.activeElement.name") == "description", "the focus in the text")
        page.press("trained on j and k")  # letters that are keys of the page
        page.press_with(Keys.CONTROL, Keys.ENTER)
        page.has_text("[data-version] .described", "trained on j and k")
        self.assertEqual(self.sent(), [("/api/v1/models/clothes/versions/2", {"description": "trained on j and k"})])
        page.go("models/clothes/v1")
        page.button("Describe clothes v1")
        self.assertEqual(page.all("[data-version] .described"), [], "each version has its own")

    def test_what_the_server_refuses_stays_with_its_reason(self):
        page = self.page
        self.may_fail_requests = True
        page.go("models/clothes/v2")
        self.write("Describe clothes v2", "")
        page.js("""const e = document.querySelector('textarea[name=description]'); e.value = 'x'.repeat(1001)
            e.dispatchEvent(new Event('input', {bubbles: true}))""")
        page.button("Save", "form").click()
        page.has_text("form.in-place .failed[role=alert]", fake_serve.TOO_LONG)
        self.assertEqual(len(page.js("return document.querySelector('textarea[name=description]').value")), 1001, "what was typed is kept")
        page.button("Cancel", "form").click()
        page.button("Describe clothes v2").click()
        page.one("form.in-place")
        self.assertEqual(page.all("form.in-place .failed"), [])

    def test_somebody_elses_change_is_said_and_what_is_typed_stays(self):
        page = self.page
        self.describe("old")
        page.go("models/clothes")
        self.write("Edit the description of clothes", "mine")
        self.describe("theirs")
        page.has_text("form.in-place [role=status]", "to “theirs”. Saving puts yours in its place")
        self.assertEqual(page.js("return document.querySelector('textarea[name=description]').value"), "mine")

    def test_a_stage_is_set_and_others_of_it_are_archived(self):
        page = self.page
        with self.state.lock:
            versions = self.state.served["clothes"]
            next(one for one in versions if one["version"] == 1)["stage"] = "Production"
        page.go("models/clothes/v2")
        page.button("Edit the stage of v2").click()
        self.assertEqual(page.all("input[name=archive_others]"), [], "of no stage there are no others")
        choose(page, "select[name=stage]", "Production")
        page.one("input[name=archive_others]").click()
        page.button("Save", "form").click()
        page.has_text(".version-words .facts", "Production")
        page.until(lambda: page.focused() == "Edit the stage of v2", "the focus back")
        self.assertEqual(self.sent(), [("/api/v1/models/clothes/versions/2", {"stage": "Production", "archive_others": True})])
        page.go("models/clothes/v1")
        page.has_text(".version-words .facts", "Archived")

    def test_who_may_not_label_models_reads_plain_text(self):
        page = self.page
        with self.state.lock:
            self.state.rights.remove("label models")
            self.state.model_descriptions["clothes"] = "Ten kinds"
        page.driver.refresh()
        page.go("models/clothes/v2")
        page.has_text("main .described", "Ten kinds")
        page.has_text(".version-words .facts", "None")
        self.assertEqual(page.all(".in-place button"), [])

    def test_the_fields_fit_a_phone_and_every_text_can_be_read(self):
        page = self.page
        self.describe("long" * 300 + "\n" * 40 + "end")
        for width, shade in ((360, "dark"), (1280, "light")):
            page.resize(width, 800)
            page.media(shade)
            page.go("models/clothes/v2")
            page.one(".described[tabindex]")
            page.js("arguments[0].click()", page.button("Edit the stage of v2"))  # it may lie under the phone's bar
            choose(page, "select[name=stage]", "Staging")
            page.js("arguments[0].click()", page.button("Edit the description of clothes"))
            page.one("textarea[name=description]")
            self.assertLessEqual(page.overflow_px(), 0)
            self.assertEqual(page.weak_texts(), [])
            small = page.js("return [...document.querySelectorAll('.in-place button, .in-place select')].filter((e) => e.offsetHeight > 0 && e.offsetHeight < 24).map((e) => e.textContent)")
            self.assertEqual(small, [], "targets of 24 px or more")
            page.go("models")


class DescribeRunsTest(WithRuns):
    def save(self, button, text):
        page = self.page
        page.button(button).click()
        page.one("textarea[name=description]").send_keys(text)
        page.button("Save", "form").click()
        page.until(lambda: page.text("main .described") == text, "the text")

    def test_a_run_and_an_experiment_are_described_by_the_tag_of_mlflows_page(self):
        page = self.page
        page.go(f"runs/{self.id_of(400)}")
        self.save("Describe fashion-resnet-400", "with warm-up")
        self.assertEqual(json.loads(self.last_request()[3]), {"description": "with warm-up"})
        self.assertNotIn("mlflow.note.content", page.text("main"))
        page.go("experiments/fashion")
        self.save("Describe fashion", "The third try")
        self.assertEqual((self.last_request()[1], json.loads(self.last_request()[3])), ("/api/v1/experiments/1", {"description": "The third try"}))
        page.go("experiments")
        page.one("table.rows [data-row]")
        self.assertEqual(page.all(".in-place"), [], "all runs are no experiment")

    def test_who_may_not_change_them_reads_plain_text(self):
        page = self.page
        with self.state.lock:
            self.state.rights.remove("change experiments")
            self.state.rights.remove("change runs")
            self.state.experiment_tags["1"] = {"mlflow.note.content": "The third try"}
        page.driver.refresh()
        page.go("experiments/fashion")
        page.has_text("main .described", "The third try")
        self.assertEqual(page.all(".in-place button"), [])
        page.go(f"runs/{self.id_of(400)}")
        page.one(".tabs")
        self.assertEqual(page.all(".in-place"), [], "nothing is said, and nothing can be")


CASES = [DescribeTest, DescribeRunsTest]

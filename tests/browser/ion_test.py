"""How an ION does, and what it is tried with: health, review, production and sandboxes."""

import copy
import json
import shutil
import tempfile
from pathlib import Path

import fake_data as made
from fixture import ION, WithPage


class HealthTest(WithPage):
    def test_signals_stand_by_p_value_with_histogram_heat_map_and_worst_frames(self):
        page = self.page
        page.go(f"{ION}/health")
        page.has_text("main .banner", "1 of 5 signals drift")
        page.has_text("main .banner", "1 more is worth a look")
        self.assertEqual(page.all("main .note"), [], "what the banner says is not said twice")
        self.assertEqual([one.split(",")[0] for one in page.texts("[aria-label='Drift by signal'] tbody .phone-name")], ["brightness", "contrast", "score", "sharpness", "feature:a very long name of one"])
        self.assertEqual(len(page.all(".histogram .live")), 20)
        page.button("Table of brightness, entrance").click()
        page.has_text("[aria-label='brightness, entrance as a table']", "0.3000 to 0.3500")
        self.assertEqual(len(page.all(".heat-row .heat-cells")), 5)
        page.button("Table of Drift over time").click()
        self.assertEqual(len(page.all("[aria-label='Drift over time as a table'] tbody tr")), 36)
        page.until(lambda: len(page.all(".worst li")) == 10, "the worst frames")
        figures = page.js("return [...document.querySelectorAll('.worst b')].map((b) => b.parentElement.innerText)")
        self.assertEqual(figures[0], "0.0500 5.3 σ", "the farthest is of hours ago, and no decision of the newest")
        sigmas = [float(one.split()[1]) for one in figures]
        self.assertEqual(sigmas, sorted(sigmas, reverse=True))
        page.has_text("[aria-labelledby^=p-worst-frames]", "of 22 reports, last 6 h")
        page.until(lambda: len(page.all(".worst a img")) == 9, "their pictures, of those that are kept")
        self.assertFalse(any("/decisions?" in one for one in self.state.reads), "no decision is looked through for them")
        self.assertEqual(page.texts("[aria-label='Drift by signal'] tbody tr:first-child td:nth-child(4)"), ["< 0.0001"])
        wide = page.js("const t = document.querySelector(\"[aria-label='Drift by signal'] .cell-line svg\"); const p = t.closest('.panel'); return p.getBoundingClientRect().right - t.getBoundingClientRect().right")
        self.assertGreaterEqual(wide, 12, "the newest of a course is not at the panel's edge")

    def test_a_signal_has_an_address_and_truth_stands_by_group(self):
        page = self.page
        page.go(f"{ION}/health?feature=entrance/contrast&by=camera".replace("/contrast", "%2Fcontrast"))
        page.has_text("main", "contrast: the last report")
        page.until(lambda: len(page.all(".worst li")) == 10, "the worst frames of every signal of frames")
        page.has_text("[aria-labelledby=p-by-the-truth-that-came-later]", "93.0% right")
        self.assertEqual(page.texts("[aria-label='Accuracy by camera'] tbody td")[:5], ["garage", "3", "6", "40", "77.5%"])
        page.has_text("[aria-labelledby=p-business-figures]", "412 1/h")

    def test_a_review_shows_the_chain_the_approvals_and_what_service_says(self):
        page = self.page
        with self.state.lock:
            link = self.state.ions[0]["document"]["links"][0]
            link["policy"][1] = {"kind": "manual", "approvals": 2, "roles": ["approver"], "four_eyes": True}
            self.state.candidates[2].update(position=1, made_by="mara", approvals=[{"by": "lea", "roles": ["approver"], "time_ms": 1_764_000_000_000}])
            self.state.publish("ions", {"name": "building-security"})
        page.go(f"{ION}/review/v3")
        page.until(lambda: page.texts(".chain-strip li") and [" ".join(one.split()) for one in page.texts(".chain-strip li")] == ["rate limit passed", "manual asks people"], "the chain")
        for text in ("lea", "approved", "The approval of approver counts", "mara had it made, and cannot approve it"):
            page.has_text("[aria-labelledby='p-approvals-1-of-2']", text)
        page.has_text("[aria-labelledby=p-in-service]", "93.0% right of 200")

    def test_a_review_shows_what_the_two_disagree_on(self):
        page = self.page
        page.go(f"{ION}/review/v3")
        page.until(lambda: len(page.all(".disagreements li")) == 19, "all that are kept")
        for text in ("Of 400 pictures they answer 19 differently", "97.0% right, the live version 95.5%", "nobody can say which is better"):
            page.has_text("[aria-labelledby=p-what-they-disagree-on]", text)
        self.assertEqual([" ".join(one.split()) for one in page.texts("[aria-label='Which of them'] a")], ["all 19", "only v2 right 5", "only v3 right 11", "both wrong 3"])
        page.until(lambda: len(page.all(".disagreements img")) == 19, "their pictures")
        page.one("[aria-label='Which of them'] a:nth-child(4)").click()
        page.until(lambda: len(page.all(".disagreements li")) == 3, "those of a kind")
        self.assertIn("kind=both-wrong", page.address())
        self.assertEqual(page.texts("[aria-label='Taken for'] tbody tr:first-child td"), ["ada", "grace", "3", "9"])
        # Pictures in a folder of the server have names only.
        with self.state.lock:
            next(one for one in self.state.datasets if one["name"] == "people")["is_uploaded"] = False
        page.driver.refresh()
        page.has_text("[aria-labelledby=p-what-they-disagree-on]", "The pictures lie in a folder of the server")
        self.assertEqual(page.all(".disagreements img"), [])

    def test_a_review_without_a_comparison_says_how_to_get_one(self):
        page = self.page
        page.go(f"{ION}/review/v2")
        page.has_text("[aria-labelledby=p-what-they-disagree-on]", "no samples were compared")
        page.has_text("[aria-labelledby=p-what-they-disagree-on]", "a comparison pipeline does so")

    def test_a_snapshot_has_a_slider_a_state_and_a_replay(self):
        from selenium.webdriver.common.keys import Keys

        page = self.page
        page.go(f"{ION}/snapshots")
        self.assertEqual(page.texts(".picks b"), ["shift-b-was-refused", "before-revision-4"])
        page.has_text("[aria-labelledby^=p-state-at]", "training → entrance v2")
        slider = page.one(".timeline input")
        page.js("arguments[0].value = Number(arguments[0].min) + 3600000; arguments[0].dispatchEvent(new Event('input', {bubbles: true}))", slider)
        page.has_text("[aria-labelledby^=p-state-at]", "training → entrance v1")
        page.has_text("[aria-labelledby^=p-state-at]", "360 since the begin")
        slider.send_keys(Keys.SHIFT, Keys.ARROW_RIGHT)
        page.has_text("[aria-labelledby^=p-state-at]", "420 since the begin")
        page.until(lambda: "at=" in page.address(), "the moment in the address")
        page.driver.refresh()
        page.has_text("[aria-labelledby^=p-state-at]", "420 since the begin")
        page.button("Table of Not granted").click()
        page.until(lambda: len(page.all("[aria-label='Not granted as a table'] tbody tr")) == 24, "the course as a table")
        page.button("Replay").click()
        page.has_text(".replay-rules + .row, .panel [role=status]", "Nothing would have been decided otherwise")
        page.one('[name="false_alarm_rate"]').send_keys("0.01")
        page.js("""const s = document.querySelector('[name="replay-policies"]'); s.value = '4'; s.dispatchEvent(new Event('change', {bubbles: true}))""")
        page.button("Replay").click()
        page.has_text("[aria-label='Decisions that would be others']", "policy: always-update is manual")
        page.has_text("[aria-label='First alarms']", "p 0.004 is at most 0.01")
        self.assertEqual(json.loads(self.last_request()[3]), {"revision": 4, "false_alarm_rate": 0.01})

    def test_sandboxes_stand_apart_and_go_to_production(self):
        page = self.page
        with self.state.lock:
            self.state.ions.append({**copy.deepcopy(self.state.ions[0]), "name": "door-trial", "mode": "sandbox"})
            self.state.publish("ions", {"name": "door-trial"})
        page.go("ions")
        page.has_text("main h1", "1 of 1 production ION needs you")
        page.has_text("[aria-labelledby=p-sandboxes]", "door-trial")
        self.assertNotIn("door-trial", page.text("[aria-labelledby=p-production]"))
        page.go("ions/door-trial/graph")
        page.has_text(".page-head", "sandbox")
        page.button("To production…").click()
        page.has_text("dialog", "as it was tried")
        page.button("Take it into production", "dialog").click()
        self.assertEqual(self.last_request()[:2], ("POST", "/api/v1/ions/door-trial/promote"))


class AlertTest(WithPage):
    def test_rules_receivers_and_silences_are_shown_and_changed(self):
        page = self.page
        page.go("alerts?tab=rules")
        for text in ("drift-of-doors", "on-call, after 15 min boss", "retrain"):
            page.has_text("[aria-labelledby=p-rules]", text)
        page.button("Edit drift-of-doors").click()
        page.one('dialog [name="hold"]').send_keys("0")  # 5m becomes 5m0, which is none
        page.button("Set it", "dialog").click()
        page.has_text("dialog [role=alert]", "expected a time")
        page.js("document.querySelector('dialog [name=hold]').value = ''")
        page.one('dialog [name="hold"]').send_keys("10m")
        page.button("Set it", "dialog").click()
        method, path, _, body = self.last_request()
        sent = json.loads(body)
        self.assertEqual((method, path, sent["hold_ms"], sent["escalate_ms"], sent["actions"], sent["tells_end"]), ("PUT", "/api/v1/alert-rules/drift-of-doors", 600_000, 900_000, [{"kind": "retrain"}], True))
        page.go("alerts?tab=receivers")
        page.has_text("[aria-labelledby=p-messages]", "HTTP 500 (8 tries)")
        page.go("alerts?tab=silences")
        page.has_text("[aria-labelledby=p-silences]", "racks are moved")

    def test_an_alert_is_silenced_and_the_audit_verified(self):
        page = self.page
        alert = self.state.alerts[0]
        page.go(f"alerts?id={alert['id']}")
        page.has_text(".drawer", "given up")
        page.button("Silence…").click()
        page.one('dialog [name="note"]').send_keys("the lamp is replaced")
        page.button("Silence", "dialog").click()
        page.until(lambda: self.state.requests, "the silence")
        _, path, _, body = self.last_request()
        self.assertEqual((path, json.loads(body)["alert"], json.loads(body)["note"]), ("/api/v1/alert-silences", alert["id"], "the lamp is replaced"))
        page.until(lambda: not page.all("dialog"), "the dialog to close")
        page.go("audit")
        page.has_text(".page-head", "chain not checked in this visit")
        page.button("Verify").click()
        page.has_text("dialog", "The audit is whole")
        page.has_text(".page-head", "whole: 82 rows at ")




class EnrolTest(WithPage):
    ENROL = f"{ION}/people/new"

    def folder(self, files):
        root = Path(tempfile.mkdtemp()) / "new"
        self.addCleanup(shutil.rmtree, root.parent)
        for path, body in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(body)
        return root

    def choose(self, files):
        root = self.folder(files)
        self.page.one("input[name=files]").send_keys("\n".join(str(root / path) for path in files))

    def grades(self):
        return sorted(zip(self.page.texts(".taken .muted:nth-last-child(2)"), self.page.texts(".taken .state"), strict=True))

    def changes(self):
        return [f"{method} {path.split('/api/v1/')[1]}" for method, path, _, _ in self.state.requests if not path.endswith("/look")]

    def test_somebody_is_enrolled_from_photos_barred_known_by_the_door_and_taken_out_again(self):
        page, state = self.page, self.state
        page.go(f"{ION}/lists")
        page.press("e")
        page.until(lambda: page.address().endswith("/people/new"), "the screen, by a key")
        tiny = b"P5 40 40 255\n" + bytes(range(0, 200, 5)) * 40
        dark = b"P5 100 100 255\n" + bytes(10_000)
        self.choose({"a.png": made.face_png("noor"), "b.pgm": made.face_pgm("noor 2"), "c.png": made.face_png("noor 3"), "tiny.pgm": tiny, "dark.pgm": dark, "text.png": b"no picture",
                     "ada.pgm": made.face_pgm("ada")})
        page.until(lambda: len(page.all(".taken li")) == 7, "a look at each")
        self.assertEqual([word for _, word in self.grades()], ["usable"] * 4 + ["left out"] * 3, self.grades())
        for why in ("too small", "too dark, too blurred", "rather small", "the browser cannot read it as a picture"):
            page.has_text(".taken", why)
        page.has_text("main", "Nobody comes near")
        self.assertTrue(page.button("Enrol them").get_attribute("disabled"), "a name is missing")
        page.button("Remove ada.pgm").click()
        page.one("input[name=person]").send_keys("Ada")
        page.has_text("main", "is that the same person?")
        page.one("input[name=person]").send_keys("\ue009a\ue000noor")  # Ctrl A: clear() tells the page nothing
        page.one("select[name=list] option[value=deny]").click()
        self.assertEqual(self.changes(), [], "nothing is kept before")
        self.may_fail_requests = True
        state.faults["/api/v1/ions/building-security/members/noor"] = (403, "FORBIDDEN", "mia may not list people")
        page.until(lambda: not page.button("Enrol noor").get_attribute("disabled"), "a look by replicas")
        page.button("Enrol noor").click()
        page.has_text('[role="alert"]', "mia may not list people")
        state.faults.clear()
        page.button("Try again").click()
        page.has_text("[aria-label=Doors]", "does not know v8 yet")
        changes = self.changes()
        self.assertEqual(len(state.files["people"]), 3, "sent twice they are the same")
        self.assertEqual(changes[-2:], ["PUT ions/building-security/members/noor", "POST datasets/people/versions"], "barred before a door knows them")
        self.assertEqual(json.loads(state.requests[-2][3]), {"list": "deny", "not_enrolled": True})
        with state.lock:
            state.ions[0]["pipelines"][1]["deployment"]["gallery"]["version"] = 8
            state.publish("ions", state.ions[0])
        page.has_text("[aria-label=Doors]", "knows v8")
        page.button("Take out again").click()
        page.has_text("main", "Taken out again: people v9")
        self.assertEqual((state.files["people"], self.changes()[-1]), ({}, "DELETE ions/building-security/members/noor"), "off the list when no door knows them any more")

    def test_pictures_are_taken_with_the_camera_and_a_browser_that_refuses_it_is_told_of(self):
        page = self.page
        page.go(f"{self.ENROL}?from=webcam")
        page.has_text(".webcam", "Look straight ahead")
        for i, saying in enumerate(("Turn a little to your left", "Turn a little to your right"), 1):
            page.press(" ")
            page.until(lambda i=i: len(page.all(".taken li")) == i, "the picture")
            page.has_text(".webcam", saying)
        self.assertEqual(page.texts(".taken .muted:nth-last-child(2)"), ["webcam, ahead", "webcam, left"])
        self.assertEqual(page.texts(".taken .state"), ["good", "good"])
        page.js("window.tracks = document.querySelector('video').srcObject.getTracks()")
        page.press("p")
        page.one("input[name=files]")
        page.until(lambda: page.js("return window.tracks.map((one) => one.readyState)") == ["ended"], "the camera to be off")
        page.js("navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException('', 'NotAllowedError'))")
        page.press("w")
        page.has_text('[role="alert"]', "allow the camera for this page")
        page.js("[...document.querySelectorAll('main a')].find((one) => one.textContent.includes('photos instead')).click()")
        page.one("input[name=files]")
        self.assertEqual(len(page.all(".taken li")), 2, "what was taken stays")

    def test_many_are_enrolled_at_once_and_a_table_says_what_is_wrong(self):
        page, state = self.page, self.state
        files = {f"{person}/{i}.png": made.face_png(f"{person} {i}") for person, n in (("zoe", 3), ("ada", 1), ("yan", 2)) for i in range(n)}
        page.go(self.ENROL)
        page.one("input[name=folder]").send_keys(str(self.folder({**files, "yan/bad.png": b"none", "zoe/empty.png": b""})))
        page.until(lambda: len(page.all("[aria-label='People to enrol'] tbody tr")) == 3 and not page.all("main .muted[role=status]"), "a look at all")
        page.has_text("[aria-label='Files that are not taken']", "new/zoe/empty.png It is empty.")
        rows = {page.js("return arguments[0].querySelector('input').value", row): row.text for row in page.all("[aria-label='People to enrol'] tbody tr")}
        self.assertIn("adds to 100", rows["ada"])
        self.assertIn("stays out", rows["yan"])
        self.assertIn("2 usable: at least 3 are needed", rows["yan"])
        self.assertIn("1 picture left out", rows["yan"])
        page.until(lambda: not page.button("Enrol 2 people").get_attribute("disabled"), "a look by replicas")
        page.button("Enrol 2 people").click()
        page.has_text("[aria-label='What happened']", "people v8 is frozen")
        self.assertEqual(sorted({path.split("/")[0] for path in state.files["people"]}), ["ada", "zoe"])
        self.assertEqual(len(state.files["people"]), 4)

    def test_it_can_be_read_on_a_phone_and_in_the_dark(self):
        page = self.page
        page.go(f"{self.ENROL}?from=webcam")
        page.has_text(".webcam", "Look straight ahead")
        page.press(" ")
        page.until(lambda: page.all(".taken li"), "the picture")
        for shade in ("light", "dark"):
            page.media(shade)
            self.assertEqual(page.weak_texts(), [])
        page.resize(360, 800)
        self.assertEqual(page.overflow_px(), 0)

    def test_a_gallery_in_a_folder_of_the_server_says_so(self):
        with self.state.lock:
            next(one for one in self.state.datasets if one["name"] == "people")["is_uploaded"] = False
        self.page.go(self.ENROL)
        self.page.has_text("main", "people takes no pictures from here")


CASES = [HealthTest, AlertTest, EnrolTest]

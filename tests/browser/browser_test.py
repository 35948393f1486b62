#!/usr/bin/python3
"""The console in a real Chromium.

    tests/browser/browser_test.py                                       against the stand-in server (fake_server.py)
    tests/browser/browser_test.py share_test test_a_token              only those whose name has one of these in it
    WEIR_LOGIN_LINK=http://…/login?link=… tests/browser/browser_test.py   a smoke test against a real one
    (with WEIR_URL too: where the console is, if that is not where the link leads)

Exit: 0 passed, 1 failed, 77 skipped (no Chromium, chromedriver or Selenium).
"""

import gzip
import json
import os
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import builder_test
import cluster_test
import decisions_test
import describe_test
import experiments_test
import fixture
import frame_test
import ion_test
import lineage_test
import page as browser
import passage_test
import screens_test
import serve_test
import share_test
import track_test
from fake_server import COOKIE, CSRF, DIST, LATER, LINK
from fixture import ION, SCREENS, WithPage

SKIPPED = 77

# What readers stumble over: a control whose name is not what is written on it, a slider that tells no value, places of one
# kind and name, a head without words, a link within a text that only its colour tells.
READERS_JS = r"""
const said = (e) => e.innerText.replace(/\s+/g, ' ').trim().toLowerCase()
const short = (found) => found.map((e) => e.outerHTML.slice(0, 120))
const all = (css) => [...document.querySelectorAll(css)].filter((e) => e.checkVisibility())
const places = all('nav, aside, form[role], section[aria-labelledby], section[aria-label], [role=region], [role=search]').map((e) => [
    e.getAttribute('role') ?? e.tagName, e.getAttribute('aria-label') ?? document.getElementById(e.getAttribute('aria-labelledby'))?.innerText].join(' '))
const isInText = (a) => [...a.parentElement.childNodes].some((one) => one.nodeType === 3 && one.textContent.trim().length > 1)
return {
    'not named as it reads': short(all('button[aria-label], a[aria-label], summary[aria-label]').filter((e) => /[a-z]{2}/.test(said(e)) && !e.ariaLabel.toLowerCase().includes(said(e)))),
    'no value': short(all('[role=separator][tabindex], [role=slider], [role=progressbar]').filter((e) => e.getAttribute('aria-valuenow') === null)),
    'the same place twice': places.filter((one, i) => places.indexOf(one) !== i),
    'a head without words': short([...document.querySelectorAll('th')].filter((e) => e.textContent.trim() === '')),
    'only its colour tells the link': short(all('main p > a:not([class]), .panel-head .window > a').filter((a) => isInText(a) && !getComputedStyle(a).textDecorationLine.includes('underline'))),
}
"""

class LiveTest(WithPage):
    def setUp(self):
        super().setUp()
        self.page.go(f"{ION}/decisions")

    def test_decisions_appear_live_from_the_stream(self):
        page = self.page
        for verdict, label in (("grant", "Grant"), ("deny", "Deny"), ("unknown", "Unknown"), ("error", "Error")):
            record = self.state.push_decision(verdict=verdict, person=f"zoe-{verdict}", score=0.714, threshold=0.5, error=None)
            row = f'[data-decision="{record["id"]}"]'
            page.one(row)
            self.assertEqual(page.text(row + " .verdict"), label)
            self.assertEqual(len(page.all(row + " .verdict svg")), 1, "colour alone does not tell a verdict")
            self.assertIn("0.71 ≥ 0.50", page.text(row + " .score-cell"))
            self.assertIn(f"model v{record['model_version']}", page.text(row))
            self.assertIn("gallery v7", page.text(row))
            if verdict != "error":
                self.assertIn(f"zoe-{verdict}", page.text(row))
        colours = page.js("""return [...document.querySelectorAll('.decision')].slice(0, 4)
            .map((row) => getComputedStyle(row.querySelector('.verdict')).color)""")
        self.assertEqual(len(set(colours)), 4, colours)
        first = page.js("return document.querySelector('.decision').dataset.decision")
        self.assertEqual(first, record["id"], "the newest comes first")

    def test_a_classifiers_decision_shows_its_label(self):
        page = self.page
        named = self.state.push_decision(verdict="label", person=None, label="sneaker", gallery_version=0, score=0.91, threshold=0.5, error=None,
                                         labels=[{"label": "sneaker", "score": 0.91}, {"label": "boot", "score": 0.05}])
        unsure = self.state.push_decision(verdict="unknown", person=None, gallery_version=0, score=0.31, threshold=0.5, error=None)
        row = f'[data-decision="{named["id"]}"]'
        page.one(row)
        self.assertEqual(page.text(row + " .verdict"), "Label")
        self.assertEqual(page.text(row + " .who"), "sneaker")
        self.assertNotIn("gallery", page.text(row))
        self.assertEqual(page.text(f'[data-decision="{unsure["id"]}"] .who'), "no label")
        page.one(row + " a").click()
        page.has_text(".drawer", "sneaker 0.91 · boot 0.05")

    def test_faces_are_drawn_from_png_and_from_graymap(self):
        for person in ("even", "odd"):  # the length of the name decides the format, see fake_server
            record = self.state.push_decision(verdict="grant", person=person, image=f"{len(person):064x}")
            image = f'[data-decision="{record["id"]}"] img'
            self.page.one(image)
            size = "const i = document.querySelector(arguments[0]); return i ? [i.naturalWidth, i.naturalHeight] : []"
            self.page.until(lambda: self.page.js(size, image) == [92, 112], f"the face of {person}")
            self.assertIn(person, self.page.one(image).get_attribute("alt"))

    def test_pause_holds_the_list_and_resume_catches_up(self):
        page = self.page
        page.one("[data-decision]")  # until the list is there, the button moves
        page.button("Pause").click()
        page.button("Resume")
        record = self.state.push_decision()
        page.has_text(".live-state", "1 new")  # it is counted, and the bars go on
        page.until(lambda: self.state.summaries and page.all(".chart.bars rect"), "the bars")
        self.assertEqual(page.all(f'[data-decision="{record["id"]}"]'), [])
        page.button("Resume").click()
        page.one(f'[data-decision="{record["id"]}"]')

    def test_a_decision_opens_with_all_its_details(self):
        page = self.page
        record = self.state.push_decision(verdict="grant", person="ada", camera="garage", latency_us=4321, durable_us=777)
        page.one(f'[data-decision="{record["id"]}"] a').click()
        for text in ("garage", "ada", "4.3 ms", "777 µs", record["id"][-8:], "v7"):
            page.has_text(".drawer", text)
        self.assertEqual(page.one(".drawer .id").get_attribute("title"), record["id"])
        self.assertIn(f"id={record['id']}", page.address())
        page.driver.refresh()  # its address shows the same again, though no list has it yet
        page.has_text(".drawer", "777 µs")
        page.js("history.back()")
        page.until(lambda: not page.all(".drawer"), "Back to close the details")

    def test_the_graph_shows_the_running_pipelines_and_a_model_that_moves(self):
        page = self.page
        page.go(f"{ION}/graph")
        page.has_text('[data-pipeline="training"]', "epoch")
        page.has_text('[data-pipeline="entrance"]', "building-security.training v2")
        page.has_text('[data-link="training>entrance"]', "live v2")
        number = self.state.push_version()
        page.one(".traveller.pending")
        page.has_text('[data-link="training>entrance"]', f"waits v{number}")
        self.state.serve(number)
        page.one(".traveller.serving")
        page.has_text('[data-link="training>entrance"]', f"live v{number}")
        page.has_text('[data-pipeline="entrance"]', f"building-security.training v{number}")

    def test_curves_grow_while_a_run_trains(self):
        page = self.page
        page.go(f"runs/{self.state.runs[-1]['id']}")
        page.until(lambda: len(page.all(".chart-panel canvas")) == 3, "three charts")
        self.assertEqual(page.texts(".chart-panel figcaption b"), ["Loss", "Accuracy", "Images per second"])
        for _ in range(3):
            self.state.advance()
        page.has_text(".chart-panel figcaption", f"step {self.state.step}")
        drawn = page.js("""const c = document.querySelector('.chart-panel canvas')
            return new Set(c.getContext('2d').getImageData(0, 0, c.width, c.height).data).size""")
        self.assertGreater(drawn, 8, "the canvas must not be blank")

    def test_the_log_of_a_task_follows_and_stays_bounded(self):
        page = self.page
        page.go(f"jobs?job={self.state.jobs[0]['id']}")
        task = self.state.tasks[self.state.jobs[0]["id"]][0]["id"]
        page.has_text("pre.log", "worker_step rank 0 step 39")
        self.state.append_log(task, "the \x1b[31mlatest\x1b[0m line\n")
        page.has_text("pre.log", "the latest line")
        at_end = "const p = document.querySelector('pre.log'); return p.scrollHeight - p.scrollTop - p.clientHeight < 30"
        page.until(lambda: page.js(at_end), "the end of the log in view")
        self.state.append_log(task, "x" * 99 + "\n" + ("y" * 99 + "\n") * 9000 + "and the end\n")
        page.has_text("pre.log", "and the end")
        self.assertLess(page.js("return document.querySelector('pre.log').textContent.length"), 300_000)
        self.assertIn("earlier lines are not kept", page.text("pre.log"))

    def test_a_waiting_job_says_why(self):
        page = self.page
        page.go("jobs")
        waiting = next(job for job in self.state.jobs if job["state"] == "PENDING")
        page.one(f'a[href$="{waiting["id"]}"]').click()
        page.has_text(".why", waiting["reason"])


class ChangeTest(WithPage):
    def test_approve_sends_the_right_request_with_the_csrf_header(self):
        page = self.page
        page.go(f"{ION}/graph")
        page.button("Approve version 3").click()
        page.one("dialog textarea").send_keys("looks good")
        page.button("Approve", "dialog").click()
        method, path, headers, body = self.last_request()
        self.assertEqual((method, path), ("POST", "/api/v1/ions/building-security/approve"))
        self.assertEqual(headers.get("X-Weir-Csrf"), CSRF)
        self.assertEqual(headers.get("Content-Type"), "application/json")
        self.assertEqual(json.loads(body), {"version": 3, "link": "training:entrance", "note": "looks good"})
        page.has_text(".toasts", "Version 3 approved")
        page.until(lambda: not page.all("dialog"), "the dialog to close")
        page.has_text('[data-link="training>entrance"]', "live v3")
        page.until(lambda: not page.all(".attention"), "the request for approval to go")

    def test_reject_asks_for_a_reason_first(self):
        page = self.page
        page.go("models")
        page.button("Reject version 3 for building-security").click()
        page.one("dialog textarea")
        page.button("Reject", "dialog").click()
        self.assertEqual(self.state.requests, [])
        page.one("dialog textarea").send_keys("misses hats")
        page.button("Reject", "dialog").click()
        _, path, headers, body = self.last_request()
        self.assertEqual(path, "/api/v1/ions/building-security/reject")
        self.assertEqual(headers.get("X-Weir-Csrf"), CSRF)
        self.assertEqual(json.loads(body)["note"], "misses hats")
        page.has_text('[data-row="v3"]', "rejected")

    def test_roll_back_goes_to_a_version_that_served(self):
        page = self.page
        page.go("models")
        page.has_text('[data-row="v2"]', "serving")
        page.button("Roll back to v1").click()
        page.button("Roll back", "dialog").click()
        method, path, _, body = self.last_request()
        self.assertEqual((method, path), ("POST", "/api/v1/ions/building-security/rollback"))
        self.assertEqual(json.loads(body), {"version": 1, "link": "training:entrance"})
        page.has_text('[data-row="v1"]', "serving")

    def test_an_ion_goes_back_where_it_is_seen_and_by_name_from_anywhere(self):
        from selenium.webdriver.common.keys import Keys

        page = self.page
        page.go(f"{ION}/graph")
        page.button("Roll back…").click()
        page.has_text("dialog", "serves version 2 now")
        page.button("Roll back to v1", "dialog").click()
        self.until_requested("POST", f"{ION}/rollback")
        self.assertEqual(json.loads(self.last_request()[3]), {"version": 1, "link": "training:entrance"})
        page.until(lambda: not page.all("dialog"), "the dialog to close")
        page.has_text(".link-label", "live v1")

        page.go("datasets")
        page.press_with(Keys.CONTROL, "k")
        page.one("dialog.palette[open]")
        page.press("roll back")
        page.until(lambda: [one.split("\n")[0] for one in page.texts("#palette-list [role=option]")][:2] == ["Roll back building-security", "Roll back clothes"], "both ways back")
        page.press(Keys.ENTER)
        page.button("Roll back to v2", "dialog").click()
        page.until(lambda: json.loads(self.last_request()[3])["version"] == 2, "the way back again")

    def test_an_ion_is_given_a_model_kept_and_paused_from_its_menu(self):
        page = self.page
        page.go(f"{ION}/health")
        menu = ".acts-menu"
        for label, confirm, method, path, body in (
            ("Set model…", "Serve v3", "POST", f"/api/v1/{ION}/set-model", {"link": "training:entrance", "version": 3}),
            ("Pause…", "Pause", "POST", f"/api/v1/{ION}/pause", {}),
            ("Snapshot…", "Take it", "POST", "/api/v1/snapshots", None),
        ):
            page.one(f"{menu} summary").click()
            page.button(label, menu).click()
            self.assertFalse(page.js("return document.querySelector('.acts-menu').open"))
            page.button(confirm, "dialog").click()
            self.until_requested(method, path)
            if body is not None:
                self.assertEqual(json.loads(self.last_request()[3]), body)
            page.until(lambda: not page.all("dialog"), "the dialog to close")

    def test_lineage_names_data_run_code_and_parameters(self):
        page = self.page
        page.go("models")
        version = self.state.versions[1]
        for text in ("faces v4", version["code_version"][:12], "building-security / entrance", "accuracy", "Parameters (8)"):
            page.has_text('[data-version="2"]', text)

    def test_a_refused_change_keeps_the_dialog_with_the_reason(self):
        page = self.page
        self.may_fail_requests = True
        self.state.faults["/api/v1/ions/building-security/trigger"] = (409, "QUOTA_EXCEEDED", "quota exceeded: 0 slots left")
        page.go(f"{ION}/graph")
        page.button("Train now").click()
        page.button("Start training", "dialog").click()
        page.has_text("dialog [role=alert]", "quota exceeded: 0 slots left")
        self.state.faults.clear()
        page.button("Start training", "dialog").click()
        _, path, _, body = self.last_request()
        self.assertEqual((path, json.loads(body)), ("/api/v1/ions/building-security/trigger", {"pipeline": "training"}))
        page.until(lambda: not page.all("dialog"), "the dialog to close")

    def test_a_person_is_barred_from_a_decision(self):
        page = self.page
        page.go(f"{ION}/decisions")
        record = self.state.push_decision(verdict="grant", person="ada b")
        page.one(f'[data-decision="{record["id"]}"] a').click()
        page.button("Bar ada b").click()
        page.has_text("dialog h2", "Bar ada b?")
        page.button("Bar", "dialog").click()
        method, path, headers, body = self.last_request()
        self.assertEqual((method, path), ("PUT", "/api/v1/ions/building-security/members/ada b"))
        self.assertEqual(headers.get("X-Weir-Csrf"), CSRF)
        self.assertEqual(json.loads(body), {"list": "deny"})
        page.has_text(".toasts", "ada b is barred")
        page.until(lambda: not page.all("dialog"), "the dialog to close")

    def test_an_alert_is_acknowledged(self):
        page = self.page
        alert = next(one for one in self.state.alerts if one["state"] == "open")
        page.go("alerts")
        row = f'[data-row="{alert["id"]}"]'
        self.assertIn("nobody", page.text(row))
        page.button(f"Take it: {alert['message']}", row).click()
        _, path, headers, _ = self.last_request()
        self.assertEqual(path, f"/api/v1/alerts/{alert['id']}/acknowledge")
        self.assertEqual(headers.get("X-Weir-Csrf"), CSRF)
        page.has_text(row, "admin")

    def test_a_job_is_cancelled_after_a_question(self):
        page = self.page
        page.go(f"jobs?job={self.state.jobs[0]['id']}")
        page.button("Cancel building-security.training.5").click()
        page.button("Cancel the job", "dialog").click()
        _, path, _, _ = self.last_request()
        self.assertEqual(path, f"/api/v1/jobs/{self.state.jobs[0]['id']}/cancel")


class TroubleTest(WithPage):
    def test_a_lost_connection_is_said_and_resumed_without_a_gap(self):
        page = self.page
        self.may_fail_requests = True
        page.go(f"{ION}/decisions")
        page.one("[data-decision]")
        before = self.state.push_decision()
        page.one(f'[data-decision="{before["id"]}"]')
        seen = self.state.seq
        self.state.is_down = True
        self.state.cut_streams()
        page.has_text(".banner.offline", "Offline since")
        self.assertTrue(page.text(".connection").startswith("Offline"))
        missed = self.state.push_decision()
        self.state.is_down = False
        page.one(f'[data-decision="{missed["id"]}"]')
        page.until(lambda: not page.all(".banner.offline"), "the banner to go")
        self.assertEqual(page.text(".connection"), "Live")
        self.assertEqual(self.state.resumes[-1], seen, "Last-Event-ID of the reconnect")

    def test_a_failed_list_can_be_tried_again(self):
        page = self.page
        self.may_fail_requests = True
        self.state.faults["/api/v1/runs"] = (503, "UNAVAILABLE", "the store is being migrated")
        page.driver.get(f"{self.server.url}/p/-/runs")
        page.has_text(".failed", "the store is being migrated")
        self.state.faults.clear()
        page.button("Try again").click()
        page.one("table.rows [data-row]")
        self.assertEqual(page.all(".failed"), [])

    def test_what_one_may_not_see_is_no_outage(self):
        page = self.page
        self.may_fail_requests = True
        for path, screen, right in (("store/usage", "storage", "read platform"), ("jobs", "jobs", "read jobs"), ("nodes", "nodes", "read nodes")):
            self.state.faults[f"/api/v1/{path}"] = (403, "DENIED", f"GET /api/v1/{path} needs the right to {right} on the platform; this session of \"ada\" has the role \"viewer\", which does not give it: ask an admin")
            page.driver.get(f"{self.server.url}/p/-/{screen}")
            page.has_text(".denied", f"You may not {right}")
            self.assertEqual(page.texts(".failed"), [], screen)
            self.assertNotRegex(page.text(".page-head"), r"\b0\b", "a nought that nobody knows")
        asked = self.state.reads.count("nodes limit=1000")
        self.state.publish("nodes", {"name": "rack1-a"})
        self.state.publish("alerts", dict(self.state.alerts[0], message="told after it"))
        page.until(lambda: "health/summary" in self.state.reads[-3:], "what follows an alert")
        self.assertEqual(self.state.reads.count("nodes limit=1000"), asked, "a refusal is asked for again")
        # What is wrong with the request itself is not tried again, either; what a server cannot do now is.
        for status, is_tried in ((400, False), (503, True)):
            self.state.faults = {"/api/v1/datasets": (status, "INVALID", "it cannot be read")}
            page.driver.get(f"{self.server.url}/p/-/datasets")
            page.has_text(".failed", "it cannot be read")
            self.assertEqual("by itself in" in page.text(".failed"), is_tried, status)

    def test_nothing_can_be_done_while_the_server_is_away(self):
        page = self.page
        self.may_fail_requests = True
        page.go(f"{ION}/graph")
        page.button("Train now")
        self.state.is_down = True
        self.state.cut_streams()
        page.has_text(".banner.offline", "Offline since")
        self.assertEqual(fixture.acts_of(page), set())
        self.assertEqual(page.texts(".failed"), [], "the banner says it once")

    def test_without_a_session_the_page_says_how_to_sign_in(self):
        page = self.page
        self.may_fail_requests = True
        page.driver.delete_all_cookies()
        page.driver.get(self.server.url)
        page.has_text("h1", "Sign in")
        page.has_text(".command", "weir login")
        page.driver.get(f"{self.server.url}/login?link={LINK}")
        page.one("#log-in").click()
        page.one(".topbar")
        self.assertEqual(page.driver.get_cookie("weir_session")["value"], COOKIE)

    def test_an_unknown_page_does_not_break(self):
        self.page.driver.get(f"{self.server.url}/p/-/nonsense/%E0%A4%A")
        self.page.has_text("main", "There is no such page")


class EmptyTest(WithPage):
    is_empty = True

    def test_every_empty_screen_says_what_to_do_next(self):
        page = self.page
        for screen, text, command in (
            ("home", "No ION yet", "weir"),
            ("ions", "No ION yet", "weir"),
            ("experiments", "No runs yet", "weir job run"),
            ("models", "No models yet", "weir model push"),
            ("deployments", "No deployments yet", "weir deploy"),
            ("jobs", "No jobs yet", "weir"),
            ("datasets", "No datasets yet", "weir dataset"),
            ("events", "Nothing has happened yet", ""),
            ("audit", "Nothing in this time", ""),
            ("nodes", "No node has registered", "weir node join"),
        ):
            page.go(screen)
            page.has_text(".empty", text)
            self.assertTrue(page.text(".command code").startswith(command), screen)
            self.assertEqual(page.weak_texts(), [])


class AccessTest(WithPage):
    def test_the_keyboard_alone_reaches_and_rejects_a_model(self):
        from selenium.webdriver.common.keys import Keys

        page = self.page
        page.driver.get(f"{self.server.url}/p/-/{ION}/graph")
        page.button("Reject version 3")  # wait: it is among the first controls of the content once it is there
        page.press(Keys.TAB)
        self.assertEqual(page.focused(), "Skip to the content")
        shown = page.js("return document.activeElement.getBoundingClientRect().top >= 0")
        self.assertTrue(shown, "the skip link must be seen when it has the focus")
        page.press(Keys.ENTER)
        self.assertEqual(page.js("return document.activeElement.id"), "main")
        page.press(Keys.TAB)
        self.assertEqual(page.focused(), "IONs", "the first control of the content: where it is")
        outline = page.js("return getComputedStyle(document.activeElement).outlineStyle")
        self.assertEqual(outline, "solid", "the focus must be seen")
        for expected in ("default", "Live · last 5 min", "Roll back…", "Train now", "More acts of building-security", "Live graph", "Health", "Decisions", "Passages", "Review", "Snapshots", "Allow and deny", "Builder", "Document",
                         "Approve version 3", "Reject version 3"):
            page.press(Keys.TAB)
            self.assertTrue(page.focused().startswith(expected), f"{page.focused()}, and not {expected}")
        self.assertEqual(page.focused(), "Reject version 3")
        page.press(Keys.ENTER)
        page.one("dialog[open]")
        self.assertEqual(page.js("return document.activeElement.name"), "note", "focus starts at the note")
        for _ in range(12):
            page.press(Keys.TAB)
            inside = page.js("return document.activeElement === document.body || !!document.activeElement.closest('dialog')")
            self.assertTrue(inside, f"the dialog must keep the focus, now at {page.focused()}")
        page.press(Keys.ESCAPE)
        page.until(lambda: not page.all("dialog"), "Escape to close the dialog")
        self.assertEqual(page.focused(), "Reject version 3", "focus goes back to what opened the dialog")
        page.press(Keys.ENTER)
        page.one("dialog[open]")
        page.press("too few hats", Keys.TAB, Keys.TAB, Keys.ENTER)
        self.assertEqual(json.loads(self.last_request()[3])["note"], "too few hats")

    def test_a_change_of_screen_moves_focus_and_title(self):
        self.page.go("models")
        self.assertEqual(self.page.focused(), "Models")
        self.assertEqual(self.page.js("return document.title"), "Models · Weir")
        self.assertEqual(self.page.texts('.nav [aria-current="page"] span')[0], "Models")

    def test_every_control_has_a_name_and_every_id_is_unique(self):
        for screen in SCREENS:
            self.page.go(screen)
            nameless = self.page.js("""return [...document.querySelectorAll('button, a[href], input, select, textarea, summary')]
                .filter((e) => !(e.ariaLabel || e.textContent.trim() || e.labels?.[0]?.textContent.trim()))
                .map((e) => e.outerHTML.slice(0, 120))""")
            self.assertEqual(nameless, [], screen)
            ids = self.page.js("return [...document.querySelectorAll('[id]')].map((e) => e.id)")
            self.assertEqual(sorted(ids), sorted(set(ids)), screen)
            self.assertEqual(len(self.page.all("h1")), 1, screen)
            for what, found in self.page.js(READERS_JS).items():
                self.assertEqual(found, [], f"{screen}: {what}")

    def test_no_screen_scrolls_sideways_on_a_phone(self):
        page = self.page
        page.resize(360, 740)
        self.state.push_decision(person="x" * 60, camera="a-camera-with-a-very-long-name-indeed" * 2, verdict="grant")
        for screen in SCREENS:
            page.go(screen)
            self.assertLessEqual(page.overflow_px(), 0, screen)
        page.go(f"{ION}/decisions")
        page.one(".decision a")
        page.js("document.querySelector('.decision a').scrollIntoView({block: 'center'})")  # from behind the bar
        page.one(".decision a").click()
        page.has_text(".drawer", "a-camera-with-a-very-long-name")
        self.assertLessEqual(page.overflow_px(), 0, "drawer")
        page.go(f"{ION}/graph")
        page.button("Reject version 3").click()
        page.one("dialog[open]")
        self.assertLessEqual(page.overflow_px(), 0, "dialog")
        self.assertLessEqual(page.js("const d = document.querySelector('dialog'); return d.scrollWidth - d.clientWidth"), 0)

    def test_text_is_readable_in_light_and_in_dark(self):
        page = self.page
        page.media(motion="reduce")
        seen = {}
        for shade in ("light", "dark"):
            page.media(shade, "reduce")
            for screen in SCREENS:
                page.go(screen)
                self.assertEqual(page.weak_texts(), [], f"{screen}, {shade}")
            seen[shade] = page.js("const s = getComputedStyle(document.body); return [s.backgroundColor, s.color]")
            page.go(f"{ION}/graph")
            page.button("Reject version 3").click()
            page.one("dialog[open]")
            self.assertEqual(page.weak_texts(), [], f"dialog, {shade}")
            page.button("Cancel", "dialog").click()
        self.assertNotEqual(seen["light"], seen["dark"])
        self.assertLess(sum(map(int, seen["dark"][0][4:-1].split(","))), 120, "dark is dark")

    def test_the_theme_button_overrides_the_system_and_is_remembered(self):
        page = self.page
        background = "return getComputedStyle(document.body).backgroundColor"
        light = page.js(background)
        page.one(".person summary").click()
        page.button("Switch to dark colours").click()
        page.until(lambda: page.js(background) != light, "the other colours")
        dark = page.js(background)
        page.driver.refresh()
        page.one(".topbar")
        self.assertEqual(page.js(background), dark)
        page.one(".person summary").click()
        page.button("Switch to light colours").click()
        page.until(lambda: page.js(background) == light, "the first colours")

    def test_reduced_motion_stops_every_animation(self):
        page = self.page
        page.go(f"{ION}/graph")
        page.until(lambda: page.js("return document.getAnimations().length") > 0, "animations when they are welcome")
        page.media(motion="reduce")
        self.state.push_version()
        page.has_text('[data-link="training>entrance"]', "waits v4")
        self.state.push_decision()
        page.until(lambda: page.js("return document.getAnimations().length") == 0, "no animation")


class BundleTest(unittest.TestCase):
    def test_the_bundle_names_no_other_host_and_stays_small(self):
        total = 0
        for name in ("index.html", "app.js", "app.css", *LATER):
            content = (DIST / name).read_bytes()
            total += len(gzip.compress(content)) if name not in LATER else 0  # they come with what needs them first
            for scheme in (b"http://", b"https://"):
                # The one that is not an address to fetch is SVG's namespace.
                found = content.replace(b"http://www.w3.org/", b"").count(scheme)
                self.assertEqual(found, 0, f"{scheme} in {name}")
        self.assertLess(total, 200_000)


class SmokeTest(unittest.TestCase):
    """Against a real server: what holds for any contents."""

    def test_every_screen_of_a_real_server_works(self):
        page = fixture.shared()
        page.driver.get(os.environ["WEIR_LOGIN_LINK"])
        page.one("#log-in").click()
        if os.environ.get("WEIR_URL"):
            page.driver.get(os.environ["WEIR_URL"])
        page.one(".topbar")
        page.until(lambda: page.text(".connection") == "Live", "the stream")
        page.media(motion="reduce")
        for width in (1280, 360):
            page.resize(width, 900)
            for screen in SCREENS:
                page.go(screen)
                self.assertEqual(page.texts(".failed[role=alert]"), [], screen)
                self.assertLessEqual(page.overflow_px(), 0, f"{screen}, {width}")
                self.assertEqual(page.weak_texts(), [], screen)
                for word in ("undefined", "NaN", "[object"):
                    self.assertNotIn(word, page.text("main"), screen)
        self.assertEqual(page.console_errors(), [])


def missing():
    for file in (browser.CHROMIUM, browser.DRIVER):
        if not os.access(file, os.X_OK):
            return f"{file} is not installed"
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "python3-selenium is not installed (run with /usr/bin/python3)"
    return None


def main():
    reason = missing()
    if reason:
        print(f"skipped: {reason}")
        return SKIPPED
    is_smoke = bool(os.environ.get("WEIR_LOGIN_LINK"))
    own = [BundleTest, LiveTest, ChangeTest, TroubleTest, EmptyTest, AccessTest]
    cases = [SmokeTest] if is_smoke else [*own, *builder_test.CASES, *ion_test.CASES, *screens_test.CASES, *cluster_test.CASES, *share_test.CASES, *serve_test.CASES, *track_test.CASES, *experiments_test.CASES, *decisions_test.CASES, *describe_test.CASES, *lineage_test.CASES, *passage_test.CASES, *frame_test.CASES]
    wanted = sys.argv[1:]
    suite = unittest.TestSuite()
    for case in cases:
        for test in unittest.defaultTestLoader.loadTestsFromTestCase(case):
            if not wanted or any(word in test.id() for word in wanted):
                suite.addTest(test)
    if suite.countTestCases() == 0:
        print(f"no test is called {' or '.join(wanted)}")
        return 1
    start = time.monotonic()
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    fixture.close()
    print(f"{result.testsRun} browser tests in {time.monotonic() - start:.0f} s")
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())

"""The screens one by one: links that lead somewhere, nothing cut off, figures that say what they are."""

import random
import shutil
import tempfile
import unittest
from pathlib import Path

import fake_data as made
import fake_track
from fixture import ION, SCREENS, WithPage

ROOT = Path(__file__).resolve().parents[2]

# Elements whose text is wider than they are, although nothing marks it with an ellipsis; and what reaches out of its panel.
CUT_JS = """const cut = []
for (const e of document.querySelectorAll('main :is(.state, .ver, .count, b, h1, h2, h3, small, dd, dt, p, time, a, td, th, button)')) {
    if (!e.checkVisibility() || e.closest('.hidden')) continue
    const style = getComputedStyle(e)
    if (e.scrollWidth > e.clientWidth + 1 && style.display !== 'inline' && style.overflowX !== 'visible' && style.textOverflow !== 'ellipsis')
        cut.push(['hidden part', e.textContent.trim().slice(0, 50)])
    const panel = e.closest('.panel')
    if (panel && !e.closest('.table-wrap, .graph-host')) {
        const [mine, its] = [e.getBoundingClientRect(), panel.getBoundingClientRect()]
        if (mine.width > 0 && (mine.right > its.right + 1 || mine.left < its.left - 1)) cut.push(['out of its panel', e.textContent.trim().slice(0, 50)])
    }
}
return cut"""


def facts_of(page):
    """What the detail of a run says, by its labels; what is folded away is not looked at."""
    return dict(page.js("""return [...document.querySelectorAll('main .panel-body > .facts > div')]
        .map((e) => [e.querySelector('dt').innerText, e.querySelector('dd').innerText])"""))


class LinkTest(WithPage):
    def test_a_run_leads_to_the_version_that_it_made_and_names_its_architecture(self):
        page = self.page
        run = self.state.runs[3]
        page.go(f"runs/{run['id']}")
        page.has_text("#run-title", run["name"])
        facts = facts_of(page)
        self.assertEqual(facts["Architecture"], "face-embed")
        self.assertEqual(page.all('a[href="/p/-/models/face-embed"]'), [], "the registry has no such name")
        page.js("arguments[0].click()", page.one(f'.facts a[href="/p/-/models/{made.MODEL}/v{run["registered"]["version"]}"]'))
        page.has_text("#model-title", made.MODEL)
        self.assertEqual(page.texts(".failed"), [])

    def test_datasets_open_from_runs_versions_and_the_graph(self):
        page = self.page
        page.go(f"{ION}/graph")
        page.one('[data-dataset="passers-by"]').click()
        page.has_text("#dataset-title", "passers-by")
        page.has_text(".facts", "impostors of entrance")
        page.has_text(".drawer table", "v2")
        for screen in (f"runs/{self.state.runs[-1]['id']}", "models"):
            page.go(screen)
            page.js("arguments[0].click()", page.one('main a[href="/p/-/datasets/faces"]'))
            page.has_text("#dataset-title", "faces")

    def test_alerts_and_events_lead_to_what_they_are_about(self):
        page = self.page
        failed = self.state.jobs[3]
        page.go("events")
        for subject, address, text in (
            (f"job/{failed['id']}", f"p/-/jobs?job={failed['id']}", f"job {failed['name']}"),
            (f"ion/{made.ION}", f"p/-/ions/{made.ION}/graph", f"ION {made.ION}"),
            ("node/rack1-b", "p/-/nodes/rack1-b", "node rack1-b"),
            (f"model/{made.MODEL}", f"p/-/models/{made.MODEL}", f"model {made.MODEL}"),
        ):
            link = page.one(f'.event-list a[title="{subject}"]')
            self.assertEqual((link.get_attribute("href").split("/", 3)[3], link.text), (address, text))
        page.one(f'.event-list a[title="job/{failed["id"]}"]').click()
        page.has_text("#job-title", failed["name"])
        page.go("alerts")
        page.one('table.rows a[href="/p/-/nodes/rack1-b"]').click()
        page.has_text("#node-title", "rack1-b")

    def test_long_identifiers_are_cut_to_their_end_and_whole_on_hover(self):
        page = self.page
        run = self.state.runs[2]["id"]
        page.go("events")
        shown = page.one(f'.event-list abbr[title="{run}"]')
        self.assertEqual(shown.text, run[-8:])
        self.assertNotIn(run, page.text("main"))

    def test_a_model_version_can_be_downloaded(self):
        page = self.page
        page.go("models")
        version = self.state.versions[1]
        link = page.one('[data-version="2"] a[download]')
        self.assertEqual(link.get_attribute("download"), f"{made.MODEL}-v2.safetensors")
        found = page.driver.execute_async_script(
            "const done = arguments[1]; fetch(arguments[0].href).then((r) => r.text()).then(done)", link)
        self.assertEqual(found, f"model {version['blob']}")


class DatasetTest(WithPage):
    is_empty = True

    def folder(self, files):
        root = Path(tempfile.mkdtemp()) / "shapes"
        self.addCleanup(shutil.rmtree, root.parent)
        for path, body in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(body)
        return str(root)

    def test_a_folder_becomes_a_dataset_is_frozen_and_each_file_that_is_not_taken_is_named(self):
        page, state = self.page, self.state
        self.may_fail_requests = True
        state.refused_files = {b"too much"}
        page.go("datasets")
        page.button("Choose a folder")
        page.one("input[name=folder]").send_keys(self.folder({
            "round/a.png": b"1", "round/b.png": b"22", "square/a.png": b"333", "square/c.png": b"damaged", "square/d.png": b"too much", "square/e.png": b"",
            "square/.hidden": b"no"}))
        self.assertEqual(page.one("dialog input[name=name]").get_attribute("value"), "shapes")
        page.button("Make it, and send the files", "dialog").click()
        page.has_text("#dataset-title", "shapes")
        page.has_text('[role="status"]', "4 of 5 files")
        page.has_text("main", "2 files are not taken")
        self.assertEqual(sorted(page.texts("main ul.list code")), ["shapes/square/e.png", "square/d.png"])
        page.has_text("main", "the disk is full")
        self.assertEqual(sorted(state.files["shapes"]), ["round/a.png", "round/b.png", "square/a.png", "square/c.png"])
        state.refused_files = set()
        page.button("Send it again").click()
        page.has_text('[role="status"]', "1 of 1 file")
        page.has_text("main", "1 file is not taken")
        self.assertEqual(state.files["shapes"]["square/d.png"], b"too much")
        page.button("Freeze a version").click()
        page.has_text("main", "1 file of v1 seems damaged")
        page.has_text("main", "square/c.png: it is no picture")
        page.has_text('main table[aria-label="Versions"]', "v1")

    def test_an_empty_dataset_is_made_once_and_refused_where_it_stands(self):
        page = self.page
        page.go("datasets")
        for title in ("made", "refused"):
            page.button("New dataset").click()
            page.one("dialog input[name=name]").send_keys("faces")
            page.button("Make it", "dialog").click()
            if title == "made":
                page.has_text("#dataset-title", "faces")
                page.has_text("main", "No version yet")
        self.may_fail_requests = True
        page.has_text('dialog [role="alert"]', "there is a dataset faces")


class FigureTest(WithPage):
    def test_validation_stands_beside_training_and_each_says_which_it_is(self):
        page = self.page
        run = self.state.runs[3]  # training 97.8 %, validation 94.4 %
        page.go(f"runs/{run['id']}")
        page.has_text("#run-title", run["name"])
        facts = facts_of(page)
        self.assertEqual(facts["Validation accuracy"], "94.40%")
        self.assertEqual(facts["Training accuracy"], "97.80%")

    def test_a_run_says_when_it_was_submitted_when_it_started_and_with_what(self):
        page = self.page
        waiting = dict(self.state.runs[3], id=made.make_id(self.state.rng), name="waits", status="RUNNING", started_ms=None, finished_ms=None)
        self.state.runs.append(waiting)
        self.state.publish("runs", {"id": waiting["id"], "status": "RUNNING"})
        page.go("experiments")
        page.has_text(f'[data-row="{waiting["id"]}"]', "waits")
        page.go(f"runs/{waiting['id']}")
        page.has_text("#run-title", "waits")
        facts = facts_of(page)
        self.assertEqual((facts["Started"], facts["Took"]), ("waits", "–"))
        page.has_text(".parameters", "learning rate")
        run = self.state.runs[0]  # four days ago
        page.go(f"runs/{run['id']}")
        page.has_text("#run-title", run["name"])
        facts = facts_of(page)
        self.assertRegex(facts["Started"], r"^\w{3},? .*\d{2}:\d{2}:\d{2}$")
        self.assertNotEqual(facts["Submitted"], facts["Started"])

    def test_charts_name_their_series_and_cut_no_label(self):
        page = self.page
        run = self.state.runs[-1]["id"]
        self.state.more_metrics = [{"key": "learning_rate", "step": step, "value": 0.1 / step, "time_ms": None} for step in range(1, 351)]
        page.go(f"runs/{run}")
        page.until(lambda: len(page.all(".chart-panel canvas")) == 4, "four charts")
        titles = page.texts(".chart-panel figcaption b")
        self.assertEqual(titles, ["Loss", "Accuracy", "Images per second", "Learning rate"])
        legends = page.texts(".chart-panel .legend")
        self.assertIn("training", legends[0])
        self.assertIn("validation", legends[0])
        self.assertNotIn("value", " ".join(legends))
        # The ink of the last label ends before the canvas does: its right-most columns are empty.
        ink = page.js("""return [...document.querySelectorAll('.chart-panel canvas')].map((c) => {
            const strip = c.getContext('2d').getImageData(c.width - 2, 0, 2, c.height).data
            return strip.filter((_, i) => i % 4 === 3).reduce((a, b) => a + b, 0)
        })""")
        self.assertEqual(ink, [0, 0, 0, 0])


class LookTest(WithPage):
    def test_nothing_is_cut_off_at_any_width(self):
        page = self.page
        for width in (1440, 1100, 390):
            page.resize(width, 900)
            for screen in SCREENS:
                page.go(screen)
                self.assertEqual(page.js(CUT_JS), [], f"{screen} at {width} px")

    def test_the_graph_shows_every_dataset_and_no_name_is_cut_at_1440(self):
        page = self.page
        page.resize(1440, 900)
        page.go(f"{ION}/graph")
        page.has_text('[data-dataset="passers-by"]', "impostors")
        page.has_text('[data-dataset="people"]', "gallery v7")
        cut = page.js("""return [...document.querySelectorAll('.graph .node-line, .graph h3, .graph b, .graph small')]
            .filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.textContent)""")
        self.assertEqual(cut, [])
        crossed = page.js("""const label = document.querySelector('.link-label'), box = label.getBoundingClientRect()
            const line = box.top + box.height / 2
            return [...label.querySelectorAll('.above > span, .policy b, .policy > .muted')].filter((e) => {
                const r = e.getBoundingClientRect(); return r.top < line - 1 && r.bottom > line + 1 }).map((e) => e.textContent)""")
        self.assertEqual(crossed, [], "the line runs between the words")

    def test_every_line_of_a_graph_lies_inside_it(self):
        page, seed = self.page, random.randrange(1, 1 << 31)
        rng = random.Random(seed)
        page.resize(1440, 900)
        page.go(f"{ION}/graph")
        names = ["faces", "people", "passers-by", "more"]
        for trial in range(3):
            with self.state.lock:
                training, prediction = self.state.ions[0]["pipelines"][:2]
                # First the one that is most likely: of the same faces one is trained and people are known, and frames come from a folder.
                training["dataset"], prediction["impostors"] = ("faces", "passers-by") if trial == 0 else (rng.choice(names), rng.choice([*names, None]))
                prediction["deployment"]["gallery"]["dataset"] = "faces" if trial == 0 else rng.choice(names)
                prediction["deployment"]["gallery"]["version"] = 20 + trial
                prediction["source"] = {"kind": "directory", "path": "/srv/frames"} if trial == 0 or rng.random() < 0.5 else None
                more = [{**training, "name": f"more-{i}", "state": "IDLE", "job": None, "run": None, "dataset": rng.choice(names)} for i in range(rng.randrange(3) if trial > 0 else 0)]
                self.state.ions[0]["pipelines"][2:] = more
                self.state.publish("ions", {"name": made.ION})
            page.has_text('[data-pipeline="entrance"]', f"v{20 + trial}")
            outside = page.js("""const svg = document.querySelector('.graph svg'), [w, h] = [svg.width.baseVal.value, svg.height.baseVal.value]
                return [...svg.querySelectorAll('path')].filter((e) => !e.closest('defs')).map((e) => e.getBBox())
                    .filter((b) => b.x < 0 || b.y < 0 || b.x + b.width > w || b.y + b.height > h).map((b) => [b.x, b.y, b.width, b.height])""")
            self.assertEqual(outside, [], f"seed {seed}, trial {trial}")

    def test_on_a_phone_a_list_gives_way_to_what_was_chosen(self):
        page = self.page
        page.resize(390, 844)
        for screen in ("jobs", "models", "datasets", "alerts"):
            page.go(screen)
            inner = page.js("""return [...document.querySelectorAll('main .panel, main .table-wrap')].filter((e) => e.scrollHeight > e.clientHeight + 1).length""")
            self.assertEqual(inner, 0, "no box scrolls within the page")
            self.assertFalse(any(one.is_displayed() for one in page.all(".drawer-side h2")), screen)
            page.js("window.scrollTo(0, 500)")
            rows = [one for one in page.all(".list-side :is(table.rows .phone-name a, .picks a)") if one.is_displayed()]
            page.js("arguments[0].click()", rows[-1])
            page.until(lambda: page.one(".drawer-side h2").is_displayed(), "the detail")
            top = page.js("return document.querySelector('.drawer-side h2').getBoundingClientRect().top")
            self.assertTrue(0 <= top < 500, f"the detail's title is at {top} px")
            self.assertFalse(page.one(".list-side").is_displayed())
            page.one(".back").click()
            page.until(lambda: page.one(".list-side").is_displayed(), "the list again")

    def test_rows_stay_within_the_rounded_corners_of_their_panel(self):
        self.page.media("dark")
        for screen in SCREENS:
            self.page.go(screen)
            loose = self.page.js("""return [...document.querySelectorAll('.panel')].filter((e) => getComputedStyle(e).overflowX === 'visible').length""")
            self.assertEqual(loose, 0, screen)


class HealthTest(WithPage):
    def setUp(self):
        super().setUp()
        self.page.go(f"{ION}/graph")
        with self.state.lock:  # what the page makes of it where the server gives no verdict
            self.state.ions[0]["health"] = None
            self.state.publish("ions", {"name": made.ION})

    def health(self, tone, text):
        self.page.until(lambda: self.page.js("return document.querySelector('.health')?.dataset.health") == tone, f"a state that is {tone}")
        self.page.has_text("main", text)

    def change(self, **fields):
        with self.state.lock:
            self.state.ions[0]["pipelines"][1].update(fields)
            self.state.publish("ions", {"name": made.ION})

    def test_green_needs_a_young_decision_and_no_alert(self):
        with self.state.lock:
            self.state.alerts[0]["state"] = "resolved"
            self.state.publish("alerts", dict(self.state.alerts[0]))
        self.state.push_decision()
        self.health("good", "Serving")
        self.page.has_text(".page-head", "last decision")

    def test_home_says_that_a_version_waits_for_somebody_and_counts_what_there_is(self):
        page = self.page
        with self.state.lock:
            self.state.alerts[0]["state"] = "resolved"
            self.state.ions[0]["health"] = {"status": "ok", "reason": None, "since": None}
            # More than a page of jobs is over, and some that are older wait.
            self.state.jobs += [{**self.state.jobs[3], "id": made.make_id(self.state.rng), "ion": None, "name": f"over-{i}", "state": "SUCCEEDED", "created_ms": made.rfc3339(1e9 + i)} for i in range(200)]
            self.state.jobs += [{**self.state.jobs[2], "id": made.make_id(self.state.rng), "name": f"old-{i}", "created_ms": made.rfc3339(1e8)} for i in range(7)]
        self.state.many = fake_track.Many(2900)
        page.driver.get(f"{self.server.url}/p/-/home")
        self.state.push_decision()
        page.has_text("h1", "The ION needs you")
        page.has_text("[aria-labelledby=p-runs]", "All 2,900")
        page.has_text("[aria-labelledby=p-cluster] tbody", "default\t2\t8")
        page.go("jobs")
        page.has_text(".page-head .sub", "2 run · 8 wait")
        page.has_text("main .seg", "Waiting 8")
        self.state.many = None
        page.go("home")
        self.state.decide("reject", {"version": 3})
        self.state.push_decision()
        page.has_text("h1", "The ION works")

    def test_a_change_of_a_run_fetches_that_run_alone(self):
        page = self.page
        page.go("home")
        run = self.state.runs[2]
        with self.state.lock:
            self.state.reads.clear()
            run.update(status="KILLED")
            self.state.publish("runs", {"id": run["id"], "status": "KILLED"})
        page.has_text("[aria-labelledby=p-runs]", "killed")
        page.until(lambda: f"runs/{run['id']}" in self.state.reads, "the run")
        self.assertEqual([one for one in self.state.reads if one.startswith("runs ")], [], "the list is fetched for one run")

    def test_events_of_an_ion_are_its_own(self):
        page = self.page
        self.state.event("model_registered", "model/clothes-desk.training", "clothes-desk v2 is registered")
        self.state.event("drained", "node/rack1-a", "Node rack1-a takes no new tasks")
        self.state.event("shares_set", "deployment/clothes", "deployment clothes has other shares")
        self.state.event("applied", "ion/building-security-2", "an ION of a like name")
        self.state.event("model_registered", f"model/{made.MODEL}", "its own model has a version")
        page.go(f"{ION}/graph")
        page.has_text(".event-list", "its own model has a version")
        for other in ("clothes-desk", "rack1-a takes", "deployment clothes", "a like name"):
            self.assertNotIn(other, page.text(".event-list"))

    def test_a_pipeline_that_is_wanted_and_serves_nobody_is_not_green(self):
        self.state.push_decision()
        reason = "lenet is a classifier: a gallery needs a model that gives embeddings"
        self.change(state="DEPLOY_FAILED", state_reason=reason, served_revision=0)
        self.health("bad", reason)
        self.page.has_text('[data-pipeline="entrance"]', "deploy failed")
        self.page.has_text(".health", "Deployment failed")
        self.page.has_text('[data-pipeline="entrance"]', reason)
        self.change(state="DEPLOY_FAILED", state_reason=reason, served_revision=8)
        self.state.push_decision()
        self.health("warn", "Decides, needs you")
        self.change(state="WAITING", state_reason=None, served_revision=0)
        self.health("plain", "Nothing serves")

    def test_without_a_decision_nothing_is_proven(self):
        with self.state.lock:
            self.state.forgotten = self.state.decisions
            self.state.decisions = [{**one, "time_ms": made.rfc3339(made.seconds(one["time_ms"]) - 600)} for one in self.state.decisions]
            self.state.alerts.clear()
        self.page.driver.refresh()
        self.health("plain", "Nothing shows that it decides")

    def test_a_replica_that_is_started_again_does_not_decide(self):
        with self.state.lock:
            self.state.forgotten = self.state.decisions
            self.state.decisions = [{**one, "time_ms": made.rfc3339(made.seconds(one["time_ms"]) - 600)} for one in self.state.decisions]
            self.state.jobs[1].update(state="RESTARTING", reason="replica 0 restarts: cannot make its folder")
        self.page.driver.refresh()
        self.health("bad", "cannot make its folder")
        self.page.has_text('[data-pipeline="entrance"] .state', "restarting")

    def test_the_servers_verdict_goes_before_the_pages(self):
        for status, tone in (("down", "bad"), ("degraded", "warn"), ("waiting", "plain")):
            with self.state.lock:
                self.state.ions[0]["health"] = {"status": status, "reason": f"because of {status}", "since": made.rfc3339(0)}
                self.state.publish("ions", {"name": made.ION})
            self.health(tone, f"because of {status}")

    def test_when_the_server_is_not_heard_nothing_stays_green(self):
        self.may_fail_requests = True
        self.state.alerts[0]["state"] = "resolved"
        self.state.publish("alerts", dict(self.state.alerts[0]))
        self.state.push_decision()
        self.health("good", "Serving")
        self.state.is_down = True
        self.state.cut_streams()
        self.health("plain", "Unknown")

    def test_a_node_is_what_the_server_says(self):
        with self.state.lock:
            for node, state in zip(self.state.nodes, ("ready", "silent", "lost")):
                node.update(state=state, last_seen_ms=made.rfc3339(made.time.time() - 12))
            self.state.publish("nodes", {"name": self.state.nodes[0]["name"]})
        self.page.go("nodes")
        self.page.until(lambda: self.page.texts(".node-card .state") == ["lost", "silent", "ready"], "the server's states, the worst first")

    def test_while_the_server_is_not_heard_no_pipeline_is_called_serving(self):
        self.may_fail_requests = True
        self.page.has_text('[data-pipeline="entrance"] .state', "serving")
        self.state.is_down = True
        self.state.cut_streams()
        self.page.until(lambda: self.page.text('[data-pipeline="entrance"] .state') == "unknown", "a state that nobody knows")
        self.page.has_text('[data-link="training>entrance"]', "served last v2")

    def test_a_reason_cuts_no_other_line_of_its_box(self):
        reason = "lenet is a classifier: a gallery needs a model that gives embeddings, and this one has none"
        self.change(state="DEPLOY_FAILED", state_reason=reason, served_revision=0)
        self.page.has_text('[data-pipeline="entrance"]', reason)
        for width in (1440, 390):
            self.page.resize(width, 900)
            self.page.until(lambda: self.page.all(".graph.TB" if width == 390 else ".graph.LR"), "the graph of this width")
            cut = self.page.js("""const box = document.querySelector('[data-pipeline="entrance"]'), end = box.getBoundingClientRect().bottom
                return [...box.querySelectorAll('p')].filter((e) => !e.matches('.node-reason') && e.scrollHeight > e.clientHeight + 1
                    || e.getBoundingClientRect().bottom > end).map((e) => e.textContent)""")
            self.assertEqual(cut, [], f"{width} px")


class ThresholdTest(WithPage):
    def setUp(self):
        super().setUp()
        self.page.go(f"{ION}/graph")

    def threshold_facts(self):
        return dict(self.page.js("""return [...document.querySelectorAll('.threshold .facts > div')]
            .map((e) => [e.querySelector('dt').innerText, e.querySelector('dd').innerText])"""))

    def test_the_price_of_a_threshold_stands_with_its_pipeline(self):
        page = self.page
        page.has_text(".threshold h2", "Threshold of entrance")
        facts = self.threshold_facts()
        self.assertEqual(facts["Known from a score of"], "0.620")
        self.assertEqual(facts["90 % interval"], "0.588 to 0.655")
        self.assertEqual(facts["Own photos refused"], "4.3%")
        self.assertEqual(facts["Impostors accepted"], "0.8% expected, 1.0% asked")
        self.assertEqual(facts["Deny list from"], "0.547")
        self.assertEqual(facts["Set by"], "1,240 scores of 62 impostors")
        page.has_text(".threshold", "model v2 · gallery v7")

    def claim_rows(self):
        return {name: (value, why) for name, value, why in self.page.js("""return [...document.querySelectorAll('.threshold .claims tr')]
            .map((e) => [...e.children].map((cell) => cell.innerText))""")}

    def test_what_a_threshold_can_claim_stands_beside_it(self):
        self.page.has_text(".threshold .claims", "Unknown people let in a day, at most")
        rows = self.claim_rows()
        self.assertEqual(rows["People in the gallery"][0], "48")
        self.assertEqual(rows["Not known below"][0], "4.8%")
        self.assertEqual(rows["Unknown people let in a day, at most"][0], "9.68")
        self.assertIn("no liveness is claimed", rows["Unknown people let in a day, at most"][1])
        with self.state.lock:
            figures = self.state.ions[0]["pipelines"][1]["claims"]
            figures[5].update(value=None, rests_on="Not known before the pipeline has decided something.")
            self.state.publish("ions", {"name": made.ION})
        self.page.has_text(".threshold .claims", "before the pipeline has decided")
        self.assertEqual(self.claim_rows()["Unknown people let in a day, at most"][0], "not known")
        self.page.resize(390, 844)
        self.assertFalse(self.page.js("return document.documentElement.scrollWidth > innerWidth"), "the page scrolls sideways on a phone")

    def test_what_is_not_known_is_not_made_up(self):
        with self.state.lock:
            door = self.state.ions[0]["pipelines"][1]
            door["threshold"].update(rule="gallery", people=8, threshold_low=None, threshold_high=None, expected_rate=None,
                                     refused_share=None, deny_threshold=None)
            self.state.publish("ions", {"name": made.ION})
        self.page.has_text(".threshold", "the gallery names no impostors")
        facts = self.threshold_facts()
        self.assertEqual((facts["90 % interval"], facts["Own photos refused"]), ("–", "–"))
        self.assertEqual(facts["Deny list from"], "0.620", "then the threshold of all holds")
        self.assertEqual(facts["Set by"], "1,240 scores of 8 people in the gallery")
        with self.state.lock:
            door["threshold"] = None
            self.state.publish("ions", {"name": made.ION})
        self.page.until(lambda: not self.page.all(".threshold"), "no panel before a replica reported")


class AlertTest(WithPage):
    def raise_alert(self, kind, subject, message, severity="critical", state="open"):
        with self.state.lock:
            alert = self.state.alert(kind, subject, state, made.time.time(), message)
            alert["severity"] = severity
            self.state.alerts.append(alert)
            self.state.publish("alerts", {"kind": kind})
            return alert

    def test_other_peoples_failed_jobs_stay_off_the_ions_overview(self):
        page = self.page
        impostor = {**self.state.jobs[2], "id": made.make_id(self.state.rng), "name": "somebodys-script", "state": "FAILED"}
        with self.state.lock:
            self.state.jobs.append(impostor)
            self.state.publish("jobs", {"id": impostor["id"], "state": "FAILED"})
        self.raise_alert("job_failed", f"job/{impostor['id']}", "a script of somebody failed")
        mine = self.raise_alert("job_failed", f"job/{self.state.jobs[3]['id']}", "a training of this ION failed")
        page.go(f"{ION}/graph")
        page.one(f'.side [data-alert="{mine["id"]}"]')
        self.assertNotIn("a script of somebody failed", page.text(".side"))
        page.go("alerts")
        page.one(f'[data-row="{mine["id"]}"]')
        shown = page.texts("table.rows .phone-state")
        self.assertEqual(shown[:3], ["critical", "critical", "warning"], "the worst first")
        rows = page.js("return [...document.querySelectorAll('table.rows [data-row]')].map((e) => e.dataset.row)")
        self.assertEqual(rows[0], mine["id"], "and the newest")

    def test_several_are_acknowledged_at_once_without_a_dialog_and_the_resolved_move_away(self):
        page = self.page
        made_ids = {self.raise_alert("no_frames", f"ion/{made.ION}", f"camera {i} sends nothing", "warning")["id"] for i in range(3)}
        over = self.raise_alert("disk_filling", "server/main", "the disk was full", state="resolved")
        page.go("alerts")
        page.button("Take all 4").click()
        page.until(lambda: not page.all(".alert.open"), "no open alert")
        self.assertEqual(page.all("dialog"), [])
        asked = {path.split("/")[4] for _, path, _, _ in self.state.requests}
        self.assertEqual(len(asked), 4)
        self.assertLess(made_ids, asked)
        page.has_text(".toasts", "You look after 4 alerts")
        self.assertEqual(page.all(f'[data-row="{over["id"]}"]'), [])
        page.go("alerts?tab=history")
        page.has_text(f'[data-row="{over["id"]}"]', "the disk was full")

    def test_those_that_are_chosen_are_taken_and_no_other(self):
        page = self.page
        two = [self.raise_alert("no_frames", f"ion/{made.ION}", f"camera {i} sends nothing", "warning") for i in range(2)]
        page.go("alerts")
        page.one(f'[data-row="{two[0]["id"]}"] input').click()
        page.button("Take 1 chosen").click()
        page.has_text(f'[data-row="{two[0]["id"]}"]', "admin")
        self.assertEqual([path.split("/")[4] for _, path, _, _ in self.state.requests], [two[0]["id"]])
        self.assertIn("nobody", page.text(f'[data-row="{two[1]["id"]}"]'))


class JobTest(WithPage):
    def test_a_job_that_is_over_has_tasks_that_are_over(self):
        page = self.page
        job = self.state.jobs[0]
        page.go(f"jobs?job={job['id']}")
        page.has_text(".tasks", "running")
        with self.state.lock:
            job["state"] = "SUCCEEDED"
            self.state.publish("jobs", {"id": job["id"], "state": "SUCCEEDED"})
        page.has_text("#job-title + .aside", "succeeded")
        with self.state.lock:  # the tasks' own end is seen a little later
            self.state.tasks[job["id"]][0].update(state="EXITED", exit_code=0)
            self.state.tasks[job["id"]][1].update(state="EXITED", exit_code=-1, signal=9)
        page.until(lambda: "running" not in page.text(".tasks"), "tasks that are over too")
        page.has_text(".tasks", "exit 0")
        page.has_text(".tasks", "killed by SIGKILL")
        self.assertNotIn("-1", page.text(".tasks"))

    def test_the_log_of_an_earlier_attempt_can_be_read(self):
        page = self.page
        job = self.state.jobs[0]
        task = self.state.tasks[job["id"]][0]
        with self.state.lock:
            task["attempt"] = 2
            self.state.logs[task["id"] + "1"] = bytearray(b"the first attempt died here\n")
        page.go(f"jobs?job={job['id']}")
        page.has_text("pre.log", "step 39")
        page.js("""const e = document.querySelector('.attempt select'); e.value = '1'
            e.dispatchEvent(new Event('change', {bubbles: true}))""")
        page.has_text("pre.log", "the first attempt died here")
        self.assertNotIn("step 39", page.text("pre.log"))

    def test_lists_and_the_document_of_an_ion_can_be_read(self):
        page = self.page
        self.state.members.append({"id": "1", "ion": made.ION, "person": "georg", "list": "deny", "actor": "mara", "time_ms": made.rfc3339(0)})
        page.go(f"{ION}/lists")
        page.has_text("table.rows", "georg")
        page.has_text("table.rows", "barred")
        page.go(f"{ION}/document")
        page.has_text(".document", '"kind": "ion"')


class HeadingTest(WithPage):
    def test_headings_step_down_one_at_a_time(self):
        for screen in SCREENS:
            self.page.go(screen)
            levels = self.page.js("return [...document.querySelectorAll('h1, h2, h3, h4')].filter((e) => e.checkVisibility()).map((e) => Number(e.tagName[1]))")
            self.assertEqual(levels[0], 1, screen)
            for one, following in zip(levels, levels[1:]):
                self.assertLessEqual(following, one + 1, f"{screen}: {levels}")


class CommandTest(unittest.TestCase):
    def test_every_command_that_the_page_names_is_in_the_manual(self):
        manual = (ROOT / "man" / "weir.1.scd").read_text().replace("*", "").replace("_", "")
        source = (ROOT / "web" / "src" / "commands.ts").read_text()
        commands = [line.split("'")[1] for line in source.splitlines() if ": 'weir " in line]
        self.assertGreater(len(commands), 4)
        for command in commands:
            words = command.split(" -")[0].split()
            stem = " ".join(word for word in words if not word.isupper())
            self.assertIn(stem, manual, command)


CASES = [DatasetTest, LinkTest, FigureTest, LookTest, HealthTest, ThresholdTest, AlertTest, JobTest, HeadingTest, CommandTest]

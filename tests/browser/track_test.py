"""Experiments, runs and their comparison: found by a filter among many, looked at, and laid side by side."""

import json
import statistics

import fake_track
from fixture import WithPage

ACC = "metrics.val/acc"


class WithRuns(WithPage):
    n = 400

    def setUp(self):
        super().setUp()
        self.state.many = fake_track.Many(self.n)

    def id_of(self, number):
        return f"0192{number:08d}"

    def column(self, head):
        """The texts of a column of the list."""
        page = self.page
        place = page.until(lambda: [text.split(" ")[0] for text in page.texts("table.rows th")].index(head) + 1, f"a column {head}")
        return page.texts(f"table.rows tbody tr:not(.gap) td:nth-child({place})")

    def type(self, text):
        self.page.js("""const e = document.querySelector('input.query')
            e.value = arguments[0]
            e.dispatchEvent(new Event('input', {bubbles: true}))""", text)

    def sent(self, method):
        return [(path, json.loads(body)) for verb, path, _, body in self.state.requests if verb == method]


class ExperimentTest(WithRuns):
    def test_runs_are_ordered_and_filtered_by_the_server(self):
        page = self.page
        page.go(f"experiments/fashion?sort=-{ACC}")
        page.has_text("h1", "Experiments: fashion")
        page.has_text(".filter", "400 of 400 in ")
        shown = [float(text) for text in self.column("val/acc")]
        best = sorted((self.state.many.run(i)["metrics"]["val/acc"] for i in range(self.n)), reverse=True)
        self.assertEqual(shown, best[:len(shown)], "the best first")
        self.assertEqual(self.state.searches[-1]["order"], "metrics.`val/acc` DESC")
        self.type('metrics.val/acc > 0.92 and params.lr = "0.1"')
        few = [run for run in map(self.state.many.run, range(self.n)) if run["metrics"]["val/acc"] > 0.92 and run["params"]["lr"] == "0.1"]
        page.has_text(".filter", f"{len(few)} of 400")
        self.assertEqual(set(self.column("lr")), {"0.1"})
        self.assertIn("q=metrics.val%2Facc+%3E+0.92", page.address())

    def test_what_the_server_cannot_read_is_underlined_where_it_stands(self):
        page = self.page
        page.go("experiments/fashion")
        page.one("table.rows [data-row]")
        self.type("metrics.val/acc > 0.9 and parms.lr = 1")
        page.has_text(".filter .wrong", "character 27")
        self.assertEqual((page.text(".grammar u"), page.text(".grammar div")), ("parms.lr", "metrics.val/acc > 0.9 and parms.lr = 1"))
        box = page.js("const r = document.createRange(); r.selectNode(document.querySelector('.grammar u')); return r.getBoundingClientRect().left - document.querySelector('.grammar').getBoundingClientRect().left")
        wide = page.js("""const c = document.createElement('canvas').getContext('2d')
            c.font = getComputedStyle(document.querySelector('.grammar u')).font
            return c.measureText('metrics.val/acc > 0.9 and ').width""")
        self.assertAlmostEqual(box, wide, delta=2, msg="the mark stands under the letters of the field")
        self.assertTrue(page.all("table.rows [data-row]"), "the rows of before stay")
        self.assertEqual(page.weak_texts(), [])
        self.type("metrics.val/acc > 0.9")
        page.until(lambda: page.text(".filter .wrong") == "" and not page.all(".grammar u"), "the mark to go")

    def test_columns_are_chosen_and_stand_in_the_address(self):
        page = self.page
        page.go("experiments/fashion")
        page.one("table.rows [data-row]")
        self.assertNotIn("stage", page.texts("table.rows th"))
        page.js("[...document.querySelectorAll('main button')].find((b) => b.innerText.includes('Columns')).click()")
        page.one('dialog input[name="tags.stage"]').click()
        page.one('dialog input[name="params.batch"]').click()
        page.button("Close", "dialog").click()
        page.until(lambda: "stage" in page.texts("table.rows th"), "the new column")
        self.assertNotIn("batch", page.texts("table.rows th"))
        self.assertEqual(set(self.column("stage")), {"search"})
        self.assertIn("tags.stage", page.address())
        self.assertIn("tags.stage", self.state.searches[-1]["columns"].split(","), "the server sends what is shown")

    def test_figures_have_bars_after_their_size(self):
        page = self.page
        page.go(f"experiments/fashion?sort={ACC}")
        page.one("table.rows .in-cell")
        widths = page.js("return [...document.querySelectorAll('table.rows .in-cell i')].map((e) => parseFloat(e.style.width))")
        self.assertEqual(widths, sorted(widths))
        self.assertEqual(widths[0], 10)

    def test_chosen_runs_are_tagged_compared_deleted_and_brought_back(self):
        page = self.page
        page.go("experiments/fashion")
        page.one("table.rows [data-row]")
        page.press("jx")
        page.press("jx")
        page.has_text(".chosen-bar", "2 chosen")
        ids = [self.id_of(400), self.id_of(399)]
        page.button("Tag").click()
        page.one('dialog input[name="key"]').send_keys("good")
        page.one('dialog input[name="value"]').send_keys("yes")
        page.button("Set the tag", "dialog").click()
        page.until(lambda: len(self.sent("PATCH")) == 2, "both runs to be tagged")
        self.assertEqual(sorted(self.sent("PATCH")), sorted((f"/api/v1/runs/{one}", {"tags": {"good": "yes"}}) for one in ids))
        page.until(lambda: "pick" not in page.address(), "the choice to end with the act")
        page.go(f"experiments/fashion?pick={','.join(ids)}")
        page.has_text(".chosen-bar", "2 chosen")
        page.button("Delete").click()
        page.has_text("dialog", "They go to the bin")
        page.button("Delete 2 runs", "dialog").click()
        page.until(lambda: not page.all(f'[data-row="{ids[0]}"]'), "the rows to go")
        page.go("experiments/fashion?life=deleted")
        page.until(lambda: sorted(page.js("return [...document.querySelectorAll('[data-row]')].map((e) => e.dataset.row)")) == sorted(ids), "the bin")
        page.press("jx")
        page.button("Restore").click()
        page.until(lambda: len(page.all("[data-row]")) == 1, "one less in the bin")

    def test_the_old_list_of_runs_leads_to_all_experiments(self):
        page = self.page
        page.driver.get(f"{self.server.url}/p/-/runs?state=running")
        page.until(lambda: page.address() == "/p/-/experiments", "the list of all runs")
        page.one("table.rows [data-row]")

    def test_a_view_is_kept_for_all(self):
        page = self.page
        page.go("experiments/fashion?q=metrics.val%2Facc+%3E+0.9")
        page.one("table.rows [data-row]")
        page.button("Save this view").click()
        page.one('dialog input[name="name"]').send_keys("good ones")
        page.button("Save", "dialog").click()
        link = page.until(lambda: next((one for one in page.all(".list a") if one.text == "good ones"), None), "the view")
        self.assertTrue(link.get_attribute("href").endswith("/p/-/experiments/fashion?q=metrics.val%2Facc+%3E+0.9"))

    def test_who_may_not_change_runs_sees_the_acts_locked(self):
        page = self.page
        self.state.rights.remove("change runs")
        page.driver.refresh()
        page.go(f"experiments/fashion?pick={self.id_of(400)}")
        page.has_text(".chosen-bar", "1 chosen")
        page.button("Delete").click()
        page.has_text("dialog", "You may not change runs")


class ManyRunsTest(WithRuns):
    n = 100_000

    def test_a_hundred_thousand_runs_scroll_with_few_rows_and_pages_in_the_page(self):
        page = self.page
        page.go("experiments/fashion")
        page.has_text(".filter", "100,000 of 100,000")
        self.state.searches.clear()
        page.js("""window.most = 0
            window.works = []
            window.made = 0
            const seen = new MutationObserver((changes) => { made += works.length < 40 ? changes.reduce((n, one) => n + one.addedNodes.length, 0) : 0 })
            seen.observe(document.querySelector('table.rows tbody'), {childList: true})
            const step = async () => {
                const began = performance.now()
                window.scrollBy(0, works.length < 40 ? 300 : 4000)
                window.dispatchEvent(new Event('scroll'))
                await new Promise((resolve) => queueMicrotask(() => queueMicrotask(resolve))) // the rows are drawn
                document.body.offsetHeight
                works.push(performance.now() - began)
                most = Math.max(most, document.querySelectorAll('table.rows tr').length)
                scrollY < 2900 * 28 && requestAnimationFrame(step)
            }
            step()""")
        page.until(lambda: page.js("return scrollY >= 2900 * 28"), "more than the pages that are kept", 60)
        works = sorted(page.js("return works.slice(0, 40)"))
        print(f"{len(works)} steps of ten rows took {works[len(works) // 2]:.1f} ms (median), at most {works[-1]:.0f} ms ", end="", flush=True)
        self.assertLess(page.js("return most"), 90, "rows in the document")
        self.assertLess(page.js("return made"), 40 * 30, "a step of ten rows makes about ten: the others stay as they are")
        cursors = [one.get("cursor") or one.get("skip", "0") for one in self.state.searches]
        self.assertEqual(len(cursors), len(set(cursors)), "each page once")
        page.js("window.scrollTo(0, 0)")
        page.has_text(f'[data-row="{self.id_of(100_000)}"]', "fashion-resnet-100000")


class TrackedRunTest(WithRuns):
    def test_a_run_of_any_program_shows_its_curves_parameters_and_code(self):
        page = self.page
        page.go(f"runs/{self.id_of(399)}")
        page.has_text("#run-title", "fashion-resnet-399")
        page.until(lambda: len(page.all(".chart-panel canvas")) == 2, "two charts")
        self.assertEqual(page.texts(".chart-panel figcaption b"), ["Loss", "val/acc"])
        page.has_text(".parameters", "optimiser")
        self.assertIn("fashion", page.text(".crumbs"))
        page.one('.tabs a[href*="tab=code"]').click()
        page.has_text("main", "8b21c0de")
        page.has_text('[aria-label="Files of the code"]', "pictures/ada.pgm")
        self.assertNotIn("now.py", page.text('[aria-label="Files of the code"]'), "a link has no bytes of its own")
        page.one('[aria-label="Files of the code"] a[href*="train.py"]').click()
        page.has_text("pre.log", "import torch")
        self.assertTrue(page.one('a[download="changes.patch"]').get_attribute("href").endswith("/api/v1/blobs/source-2"))
        page.one('.tabs a[href*="tab=log"]').click()
        page.has_text("main", "its program runs elsewhere")

    def test_artifacts_are_walked_through_and_shown(self):
        page = self.page
        page.go(f"runs/{self.id_of(399)}?tab=artifacts")
        page.has_text('[aria-label="Files"]', "predictions.csv")
        open_it = lambda name: page.js("[...document.querySelectorAll('ul[aria-label=Files] a')].find((e) => e.innerText === arguments[0]).click()", name)
        open_it("predictions.csv")
        page.until(lambda: page.texts(".preview th, .preview td") == ["image", "label", "score, percent", "1", "shirt", "99,1", "2", 'sho"e', "87"], "the table")
        open_it("confusion.json")
        page.has_text("main pre", '  "classes": [')
        open_it("model/")
        page.has_text('[aria-label="Files"]', "model.onnx")
        open_it("model.onnx")
        page.has_text("main", "A page cannot show this kind of file.")
        link = page.one("a[download]")
        self.assertTrue(link.get_attribute("href").endswith(f"/api/v1/runs/{self.id_of(399)}/artifacts/model/model.onnx"))
        page.js("[...document.querySelectorAll('.crumbs a')].find((e) => e.innerText === 'all files').click()")
        page.has_text('[aria-label="Files"]', "plots/")
        open_it("plots/")
        page.has_text('[aria-label="Files"]', "confusion.png")
        open_it("confusion.png")
        page.until(lambda: page.js("return document.querySelector('img.picture')?.naturalWidth") == 92, "the picture")


class CompareTest(WithRuns):
    def go(self, numbers, more=""):
        self.page.go(f"experiments/fashion/compare?runs={','.join(map(self.id_of, numbers))}{more}")

    def test_differing_parameters_are_bold_and_the_best_figure_is_marked(self):
        page = self.page
        numbers = [399, 397, 395]
        self.go(numbers)
        page.has_text("h1", "Compare 3 runs")
        heads = page.texts("table.compare th")
        bold = page.js("return [...document.querySelectorAll('table.compare tbody tr:first-child td')].map((e) => e.querySelector(':scope > b') !== null)")
        by_head = dict(zip(heads, bold))
        runs = [self.state.many.at(self.id_of(one)) for one in numbers]
        for key in runs[0]["params"]:
            self.assertEqual(by_head[key], len({run["params"][key] for run in runs}) > 1, key)
        right = page.js("return Object.fromEntries([...document.querySelectorAll('table.compare th')].map((e) => [e.innerText, e.classList.contains('num')]))")
        self.assertEqual((right["lr"], right["batch"], right["optimiser"]), (True, True, False), "numbers stand at the right")
        best = page.texts("table.compare td.best")
        self.assertIn(f"{max(run['metrics']['val/acc'] for run in runs):.4f}", best)
        self.assertIn(f"{min(run['metrics']['val/loss'] for run in runs):.4f}", best)

    def test_curves_lie_over_each_other(self):
        page = self.page
        self.go([399, 397, 395])
        page.until(lambda: len(page.all(".chart-panel canvas")) == 3, "a chart for each metric")
        self.assertEqual(page.texts(".chart-panel figcaption b")[0], "val/acc")
        legend = page.text(".chart-panel .legend")
        for number in (399, 397, 395):
            self.assertIn(f"fashion-resnet-{number}", legend)
        page.one('.seg a[href*="x=relative"]').click()
        page.has_text(".chart-panel figcaption", "s since its start 468")
        page.one('.seg a[href*="smooth=0.9"]').click()
        page.has_text(".chart-panel figcaption", "smoothed 0.9")
        self.assertEqual(len(page.all(".panel .under-chart")), 3, "what can be done with a chart stands in its frame")
        page.one('.under-chart a[href*="log="]').click()
        page.has_text(".chart-panel figcaption", "log scale")

    def test_runs_are_chosen_on_an_axis_of_all_that_match(self):
        from selenium.webdriver.common.action_chains import ActionChains

        page = self.page
        self.go([399, 397])
        page.until(lambda: len(page.all(".parallel path[d]:not(.axis)")) == 400, "a line for each run")
        page.js("document.querySelector('.parallel').scrollIntoView({block: 'center'})")
        last = page.all(".parallel .catch")[-1]
        top = page.js("const b = arguments[0].getBoundingClientRect(); return [b.left + b.width / 2, b.top]", last)
        actions = ActionChains(page.driver)
        actions.w3c_actions.pointer_action.move_to_location(int(top[0]), int(top[1]) + 2).pointer_down().move_to_location(int(top[0]), int(top[1]) + 20).pointer_up()
        actions.perform()
        page.has_text("main", "of 400 pass")
        page.js("[...document.querySelectorAll('main button')].find((b) => b.innerText === 'Show these').click()")
        page.until(lambda: page.text("h1") != "Compare 2 runs", "other runs")
        accs = page.until(lambda: [float(text) for text in page.texts("table.compare tbody td:nth-child(2)")], "their figures")
        self.assertGreater(min(accs), 0.92, "those that are best")


    def test_more_runs_than_one_can_tell_apart_are_bands(self):
        page = self.page
        numbers = list(range(301, 361))  # one of them ended early, one logged every other step
        self.go(numbers, "&metrics=val/acc")
        page.has_text("h1", "Compare 60 runs")
        page.until(lambda: len(page.all(".chart-panel canvas")) == 1, "the chart")
        page.has_text(".chart-panel figcaption", "median and quartiles of 60 runs")
        self.assertEqual(len(page.all("table.compare tbody tr")), 60, "the table names every run")
        page.one(".chart-panel summary").click()
        self.assertEqual([text.split(" ")[0] for text in page.texts(".band-runs li a")], [f"fashion-resnet-{one}" for one in numbers], "and so does the legend")
        page.one(".chart-panel .tbl").click()
        rows = {float(row[0]): row[1:] for row in self.cells(".chart-panel table")}
        for step in (3, 7, 20, 21, 39):
            there = self.values(numbers, step)
            low, median, high = statistics.quantiles(there, n=4, method="inclusive")
            self.assertEqual(rows[step], [f"{median:.4f}", f"{low:.4f}", f"{high:.4f}"], step)
        page.js("document.querySelector('.seg a[href*=\"band=range\"]').click()")
        page.has_text(".chart-panel figcaption", "least to greatest")
        there = self.values(numbers, 39)
        self.assertEqual(self.cells(".chart-panel table")[0][2:], [f"{min(there):.4f}", f"{max(there):.4f}"])
        self.assertEqual(page.weak_texts(), [])

    def test_bands_are_of_the_values_of_a_parameter(self):
        page = self.page
        numbers = list(range(301, 361))
        self.go(numbers, "&metrics=val/acc")
        page.one("select[name=by]")
        page.js("const e = document.querySelector('select[name=by]'); e.value = 'optimiser'; e.dispatchEvent(new Event('change', {bubbles: true}))")
        page.has_text(".chart-panel .legend", "optimiser adamw")
        self.assertEqual([text.split()[1] for text in page.texts(".chart-panel .legend > span") if text.startswith("optimiser")], ["adamw", "lamb", "sgd"])
        tones = page.js("return [...document.querySelectorAll('table.compare tbody tr')].map((e) => e.querySelector('.sw').className)")
        of = [self.state.many.at(self.id_of(one))["params"]["optimiser"] for one in numbers]
        self.assertEqual(len(set(zip(of, tones))), 3, "a run has the colour of its band")
        page.until(lambda: len(page.all(".parallel path.many")) == 60, "all of them in the picture of all that match")

    def cells(self, css):
        return self.page.js("return [...document.querySelectorAll(arguments[0] + ' tbody tr')].map((row) => [...row.cells].map((e) => e.innerText))", css)

    def values(self, numbers, step):
        """Of each run at a step: straight between its points, nothing behind its last."""
        found = []
        for one in numbers:
            points = {point["step"]: point["value"] for point in fake_track.curve(self.id_of(one), "val/acc", 1000)}
            if step in points:
                found.append(points[step])
            elif step < max(points):
                found.append((points[step - 1] + points[step + 1]) / 2)
        return found


class SweepTest(WithPage):
    def test_a_sweep_says_what_it_found_and_which_trials_were_stopped_where(self):
        page = self.page
        page.go("sweeps")
        sweep, trials = self.state.sweeps[0], self.state.trials[self.state.sweeps[0]["id"]]
        row = page.one(f'[data-row="{sweep["id"]}"]').text
        self.assertIn(f"{40 - sweep['n_open']} of 64", row)
        page.go(f"sweeps/{sweep['id']}")
        page.has_text("#sweep-title", "lenet-lr")
        page.has_text(".strip", f"{sweep['best_value']:.4f}")
        page.until(lambda: len(page.all(".parallel path[d]:not(.axis)")) == 40, "a line for each trial")
        self.assertEqual(page.js("return [...document.querySelectorAll('.parallel .name')].map((e) => e.textContent)"), ["lr", "batch", "optimiser", "validation_accuracy"])
        rows = page.js("return [...document.querySelectorAll('table.rungs tbody tr')].map((e) => [...e.cells].slice(0, 3).map((c) => c.innerText))")
        came = [[one for one in trials if len(one["rungs"]) > k] for k in range(3)]
        stopped = [sum(one["state"] == "STOPPED" and len(one["rungs"]) == k + 1 for one in came[k]) for k in range(3)]
        self.assertEqual(rows, [[str(3 ** k), str(len(came[k])), str(stopped[k])] for k in range(3)])
        page.one('th a[href*="sort=value"]').click()
        values = page.until(lambda: [float(text) for text in page.texts('td[data-name="validation_accuracy"]') if text != "–"], "the values")
        self.assertEqual(values, sorted(values))

    def test_the_head_counts_one_sweep_as_one(self):
        page = self.page
        page.go("sweeps")
        running = [one for one in self.state.sweeps if one["state"] == "RUNNING"]
        self.assertEqual(len(running), 1)
        page.has_text("main", "1 sweep runs · each trial")
        page.has_text("main", "2 sweeps · newest first")
        page.go("sweeps?q=lenet-lr")
        page.until(lambda: "1 sweep" in page.texts(".panel-head")[0] and "newest" not in page.texts(".panel-head")[0], "one sweep, in no order")
        with self.state.lock:
            self.state.sweeps[0]["state"] = self.state.sweeps[1]["state"] = "RUNNING"
            self.state.publish("sweeps", {"id": self.state.sweeps[0]["id"]})
        page.has_text("main", "2 sweeps run · each trial")

    def test_a_sweep_is_checked_begun_and_stopped(self):
        page = self.page
        self.may_fail_requests = True
        page.go("sweeps")
        page.button("New sweep").click()
        area = page.one('dialog textarea[name="document"]')
        text = area.get_attribute("value")
        set_text = lambda new: page.js("const e = document.querySelector('dialog textarea'); e.value = arguments[0]; e.dispatchEvent(new Event('input', {bubbles: true}))", new)
        set_text(text.replace("asha", "magic"))
        page.button("Check", "dialog").click()
        page.has_text("dialog", "$.method.kind: expected asha")
        set_text(text)
        page.button("Check", "dialog").click()
        page.has_text("dialog", "It is right: 32 trials at most")
        self.assertEqual(len(self.state.sweeps), 2, "nothing has begun")
        page.button("Begin the sweep", "dialog").click()
        page.has_text("#sweep-title", "lenet")
        page.has_text(".empty", "No trials yet")
        page.button("Pause").click()
        page.button("Pause the sweep", "dialog").click()
        page.has_text(".page-head", "paused")
        page.button("Resume").click()
        page.button("Resume the sweep", "dialog").click()
        page.has_text(".page-head", "running")
        self.assertEqual([one[1].rsplit("/", 1)[1] for one in self.state.requests[-2:]], ["pause", "resume"])
        page.button("Stop").click()
        page.button("Stop the sweep", "dialog").click()
        page.has_text(".page-head", "cancelled")
        self.assertEqual(self.state.requests[-1][:2], ("POST", "/api/v1/sweeps/sweep-of-the-page/stop"))


class NotebookTest(WithPage):
    def row(self, name):
        return self.page.one(f'[data-row="id-of-{name}"]').text

    def test_notebooks_say_who_has_them_and_how_long_they_were_not_used(self):
        page = self.page
        page.go("notebooks")
        page.has_text(".page-head .sub", "3 of them run ·")
        self.assertIn("in use", self.row("notebook"))
        self.assertIn("idle 3 h", self.row("explore"))
        self.assertTrue(page.all('[data-row="id-of-explore"] .tone-warn'), "idle for more than an hour is amber")
        self.assertNotIn("Open", self.row("explore"), "it is another's, who has not shared it")
        self.assertIn("Open", self.row("board"))
        self.assertIn("idle for 8 h", self.row("old"))

    def test_a_notebook_is_opened_by_a_ticket_in_a_tab_of_its_own(self):
        page = self.page
        page.go("notebooks")
        page.one('[data-row="id-of-notebook"]')
        here = page.driver.current_window_handle
        page.button("Open notebook").click()
        page.until(lambda: len(page.driver.window_handles) == 2, "another tab")
        page.driver.switch_to.window(next(one for one in page.driver.window_handles if one != here))
        page.until(lambda: "ticket=1" in page.driver.current_url, "the notebook's address")
        page.driver.close()
        page.driver.switch_to.window(here)
        self.assertEqual(self.last_request()[:2], ("POST", "/api/v1/services/id-of-notebook/ticket"))

    def test_a_notebook_is_started_stopped_and_comes_back(self):
        page = self.page
        page.go("notebooks")
        page.button("Start a notebook").click()
        field = page.one('dialog input[name="name"]')
        field.clear()
        field.send_keys("fresh")
        page.one('dialog input[name="gpus"]').send_keys("1")
        page.one('dialog input[name="python"]').send_keys("torch matplotlib")
        page.button("Start the notebook", "dialog").click()
        page.until(lambda: page.all('[data-row="id-of-fresh"]'), "the notebook")
        self.assertEqual(json.loads(self.last_request()[3]), {"name": "fresh", "project": "default", "kind": "notebook", "is_shared": False,
                                                              "spec": {"python": "torch\nmatplotlib\n", "resources": {"accelerators": 1}}})
        page.button("Stop notebook").click()
        page.has_text("dialog", "Its folder stays")
        page.button("Stop the notebook", "dialog").click()
        page.until(lambda: "stopped" in self.row("notebook"), "it to stop")
        page.button("Start notebook").click()
        page.until(lambda: "starting" in self.row("notebook"), "it to come back")


CASES = [NotebookTest, SweepTest, ExperimentTest, ManyRunsTest, TrackedRunTest, CompareTest]

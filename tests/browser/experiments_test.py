"""The list of runs as people arrange it: in groups, with columns of their own widths; the best registered, one run again."""

import hashlib
import json
import os
import random
import tempfile

from track_test import WithRuns

BEST = "metrics.val/acc"


class HeadTest(WithRuns):
    def test_the_first_click_on_a_head_puts_the_best_first(self):
        page = self.page
        page.go("experiments/fashion?cols=metrics.val/acc,metrics.val/loss")
        page.one("table.rows [data-row]")
        for name, sort in (("val/acc", "-metrics.val/acc"), ("val/loss", "metrics.val/loss")):
            page.one(f'th[data-column="metrics.{name}"] a').click()
            page.until(lambda: f"sort={sort}" in page.address().replace("%2F", "/"), f"{sort} in {page.address()}")

    def test_experiments_of_one_name_have_their_projects_mark(self):
        page = self.page
        self.state.more_experiments = [{"id": 9, "name": "Default", "project": "speech"}]
        page.go("experiments")
        page.until(lambda: len(page.all('ul[aria-label="Experiments"] .own')) == 4, "a mark for each of them")
        self.assertEqual(sum("of speech" in one for one in page.texts('ul[aria-label="Experiments"] li')), 1)


class GroupTest(WithRuns):
    def runs(self):
        return [self.state.many.run(i) for i in range(self.n)]

    def headings(self):
        return self.page.texts("tr.heading")

    def open(self, text):
        self.page.js("[...document.querySelectorAll('tr.heading a')].find((e) => e.innerText.includes(arguments[0])).click()", text)

    def test_runs_are_grouped_with_counts_and_figures(self):
        page = self.page
        page.go("experiments/fashion")
        page.one("table.rows [data-row]")
        page.js("const e = document.querySelector('select[name=group]'); e.value = 'params.lr'; e.dispatchEvent(new Event('change', {bubbles: true}))")
        page.until(lambda: len(self.headings()) == 4, "a heading for each value")
        self.assertIn("group=params.lr", page.address())
        self.assertEqual(page.all("table.rows [data-row]"), [], "all are folded")
        for lr, heading in zip(["0.02", "0.05", "0.1", "0.2"], self.headings()):  # by size
            figures = [run["metrics"]["val/acc"] for run in self.runs() if run["params"]["lr"] == lr]
            self.assertIn(f"lr = {lr}", heading)
            self.assertIn(f"{len(figures)} runs", heading)
            self.assertIn(f"val/acc mean {sum(figures) / len(figures):.4f}"[:-1], heading)
            self.assertIn(f"best {max(figures):.4f}", heading)
        self.assertEqual(page.weak_texts(), [])

    def test_a_group_unfolds_in_its_place_and_is_in_the_address(self):
        page = self.page
        page.go(f"experiments/fashion?group=params.lr&sort=-{BEST}&q=metrics.val%2Facc+%3E+0.85")
        page.until(lambda: len(self.headings()) == 4, "the groups")
        self.open("lr = 0.05")
        best = sorted((run for run in self.runs() if run["params"]["lr"] == "0.05" and run["metrics"]["val/acc"] > 0.85), key=lambda run: -run["metrics"]["val/acc"])
        page.until(lambda: page.js("return [...document.querySelectorAll('tr[data-row]')].slice(0, 3).map((e) => e.dataset.row)") == [run["id"] for run in best[:3]], "its runs, the best first")
        order = page.js("return [...document.querySelectorAll('tr.heading, tr[data-row]')].map((e) => e.className.includes('heading')).slice(0, 4)")
        self.assertEqual(order, [True, True, False, False], "below its heading, before the next")
        self.assertIn("open=%253D0.05", page.address())
        page.driver.refresh()
        page.one(f'[data-row="{best[0]["id"]}"]')
        self.open("lr = 0.05")
        page.until(lambda: not page.all("tr[data-row]"), "it to fold")

    def test_runs_without_the_value_are_a_group_of_their_own(self):
        page = self.page
        page.go("experiments/fashion")
        page.one("table.rows [data-row]")
        self.state.many.changes[self.id_of(400)] = {"tags": {"team": "vision"}}
        page.go("experiments/fashion?group=tags.team")
        page.until(lambda: [one.strip().startswith(text) for one, text in zip(self.headings(), ("team = vision", "team not set"))] == [True, True], "both groups")
        self.open("team not set")
        page.one(f'[data-row="{self.id_of(399)}"]')
        self.assertEqual(page.all(f'[data-row="{self.id_of(400)}"]'), [])

    def test_groups_are_walked_and_unfolded_by_keys(self):
        page = self.page
        page.go("experiments/fashion?group=params.batch")
        page.until(lambda: len(self.headings()) == 3, "the groups")
        page.press("j")
        page.press("\ue007")
        page.until(lambda: page.all("tr[data-row]"), "its runs")
        page.press("jx")
        page.has_text(".chosen-bar", "1 chosen")


class ManyGroupedTest(WithRuns):
    n = 100_000

    def test_a_large_group_is_fetched_by_pages_as_it_is_scrolled(self):
        page = self.page
        page.go("experiments/fashion?group=params.lr&open=%253D0.1")
        page.one("tr[data-row]")
        tall = page.js("return document.querySelector('table.rows').offsetHeight")
        self.assertGreater(tall, 25_000 * 28, "the group has a place for each of its runs")
        self.state.searches.clear()
        page.js("window.scrollTo(0, 450 * 28)")
        page.until(lambda: page.all("tr[data-row]"), "rows there", 30)
        pages = [one for one in self.state.searches if "by" not in one]
        self.assertLess(len(pages), 6, "pages as far as one looks, not all")
        self.assertLess(len(page.all("table.rows tr")), 90)

    def test_the_bar_tells_where_one_is_and_the_end_is_one_press_away(self):
        page = self.page
        page.go("experiments/fashion")
        page.until(lambda: page.js("return document.querySelector('table.rows').offsetHeight") > 99_000 * 28, "a place for each run")
        page.has_text("[aria-label='Runs of the experiment'] .panel-foot", "100,000 runs")
        self.state.searches.clear()
        page.js("window.scrollTo(0, document.documentElement.scrollHeight)")
        page.one(f'[data-row="{self.id_of(1)}"]')
        self.assertLess(len([one for one in self.state.searches if "skip" in one or "cursor" in one]), 4, "the last page, and none between")
        page.js("window.scrollTo(0, 50000 * 28)")
        page.until(lambda: page.all("tr[data-row]"), "those in the middle")


class ColumnTest(WithRuns):
    def test_what_a_program_logged_comes_before_what_its_job_was_started_with(self):
        page = self.page
        with self.state.lock:
            spec = {"argv": '["python3"]', "cpu_slots": "4", "env": {"A": "1"}}
            for i in (0, 1):  # runs of which the page hears
                self.state.many.changes[self.id_of(self.n - i)] = {"parameters": spec, "params": {"argv": '["python3"]', "cpu_slots": "4", "env.A": "1", "width": "8", "zoom": "2"}}
        page.go("experiments/fashion")
        heads = lambda: [text.split("\n")[0].strip() for text in page.texts("table.rows th")]
        page.until(lambda: "batch" in heads(), "the first columns")
        self.assertNotIn("argv", heads())
        page.js("[...document.querySelectorAll('main button')].find((e) => e.textContent.includes('Columns')).click()")
        names = page.until(lambda: page.js("return [...document.querySelectorAll('dialog .choices input')].map((e) => e.name)"), "all columns")
        params = [name[7:] for name in names if name.startswith("params.")]
        self.assertEqual(params, ["batch", "epochs", "lr", "optimiser", "smoothing", "width", "zoom", "argv", "cpu_slots", "env.A"])
        page.press("\ue00c")
        page.go(f"runs/{self.id_of(self.n)}")
        rows = page.until(lambda: page.js("return [...document.querySelectorAll('table.parameters tbody td:first-child')].map((e) => e.title)"), "the run's table")
        self.assertEqual(rows[:10], ["lr", "batch", "optimiser", "epochs", "smoothing", "width", "zoom", "argv", "cpu_slots", "env"])


class WidthTest(WithRuns):
    def width(self, head):
        return self.page.js("return [...document.querySelectorAll('table.rows th')].find((e) => e.innerText.trim().startsWith(arguments[0])).getBoundingClientRect().width", head)

    def test_a_column_is_as_wide_as_it_is_dragged_and_stays_so(self):
        from selenium.webdriver.common.action_chains import ActionChains

        page = self.page
        page.go("experiments/fashion")
        grip = page.one('[aria-label="Width of Run"]')
        run, acc = self.width("Run"), self.width("val/acc")
        ActionChains(page.driver).drag_and_drop_by_offset(grip, 80, 0).perform()
        page.until(lambda: abs(self.width("Run") - run - 80) <= 2, f"80 px more than {run}, not {self.width('Run')}")
        self.assertAlmostEqual(self.width("val/acc"), acc, delta=2, msg="the others stay")
        page.driver.refresh()
        page.one("table.rows [data-row]")
        self.assertAlmostEqual(self.width("Run"), run + 80, delta=2)

    def test_a_width_is_set_by_keys_and_all_are_as_they_were(self):
        page = self.page
        page.go("experiments/fashion")
        before = page.js("return arguments[0].focus() ?? 0", page.one('[aria-label="Width of Run"]')) or self.width("Run")
        page.press("\ue014" * 3)
        page.until(lambda: abs(self.width("Run") - before - 24) <= 2, "24 px more")
        page.press("\ue017")
        page.until(lambda: abs(self.width("Run") - before) <= 1, "as at first")
        self.assertNotIn("j", page.js("return Object.keys(localStorage).filter((key) => key.startsWith('weir.widths')).join()"))


class RegisterTest(WithRuns):
    def best(self, among, metric, sign):
        return max(among, key=lambda run: sign * run["metrics"][metric])

    def form(self):
        self.page.button("Register best").click()
        self.page.one("dialog select[name=metric]")

    def choose(self, name, value):
        self.page.js("const e = document.querySelector(`dialog [name=${arguments[0]}]`); e.value = arguments[1]; e.dispatchEvent(new Event(e.tagName === 'SELECT' ? 'change' : 'input', {bubbles: true}))", name, value)

    def test_the_best_of_all_that_match_becomes_a_version(self):
        page = self.page
        page.go("experiments/fashion?q=params.batch+%3D+%22256%22")
        page.has_text(".filter", "134 of 400")
        self.form()
        mine = [run for run in map(self.state.many.run, range(self.n)) if run["params"]["batch"] == "256"]
        best = self.best(mine, "val/acc", 1)
        page.has_text("dialog .best-run", f"{best['name']}, val/acc {best['metrics']['val/acc']:.4f}")
        page.has_text("dialog .best-run", "model/model.onnx")
        self.choose("metric", "val/loss")
        self.assertEqual(page.js("return document.querySelector('dialog [name=direction]').value"), "-1", "of a loss the least is best")
        low = self.best(mine, "val/loss", -1)
        page.has_text("dialog .best-run", f"{low['name']}, val/loss")
        self.choose("model", "fashion-net")
        page.button("Register it", "dialog").click()
        page.has_text(".toasts", "fashion-net v1 is registered")
        method, path, _, body = next(one for one in self.state.requests if one[1].endswith("/versions"))
        sent = json.loads(body)
        self.assertEqual((method, path), ("POST", "/api/v1/models/fashion-net/versions"))
        self.assertEqual((sent["run"], sent["blob"], sent["project"], sent["parameters"], sent["metrics"]), (low["id"], "ab" * 32, "default", low["params"], low["metrics"]))
        self.assertRegex(sent["id"], r"^[0-9a-f]{8}-[0-9a-f]{4}-4")
        page.until(lambda: "/models/fashion-net/v1" in page.address(), "its page")

    def test_a_best_run_without_a_model_artifact_is_said_and_not_registered(self):
        page = self.page
        ids = [self.id_of(398), self.id_of(395)]  # batches of 1024
        page.go(f"experiments/fashion?pick={','.join(ids)}")
        page.has_text(".chosen-bar", "2 chosen")
        self.form()
        page.has_text("dialog .best-run", "no model artifact")
        self.assertTrue(page.js("return [...document.querySelectorAll('dialog button')].find((e) => e.innerText === 'Register it').disabled"))
        self.assertEqual(page.weak_texts(), [])

    def test_a_run_is_run_again_from_its_job_code_and_parameters(self):
        page = self.page
        run = self.state.runs[-1]
        self.state.jobs[0]["spec"] = {"argv": ["python3", "train.py", "--lr", "0.1"], "resources": {"accelerators": 1}}
        self.state.jobs[0]["kind"] = "command"
        page.go(f"runs/{run['id']}")
        page.button("Run again").click()
        page.has_text("h1", "Submit a job")
        page.has_text(".page-head .sub", f"Runs {run['name']} again")
        page.until(lambda: "python3 train.py --lr 0.1" in page.js("return document.querySelector('[name=argv]').value"), "its command")
        page.has_text("main", "batch_size" if "batch_size" in page.text("main") else "batch size")

    def test_a_run_of_elsewhere_is_begun_from_the_code_that_it_names(self):
        page = self.page
        page.go(f"experiments/fashion?pick={self.id_of(399)}")
        page.button("Run again").click()
        page.has_text("main", "Weir did not start fashion-resnet-399")
        self.assertEqual(page.js("return [document.querySelector('[name=argv]').value, document.querySelector('[name=name]').value, document.querySelector('[name=\"code.manifest\"]').value]"),
                         ["python3 train.py", "fashion-resnet-399", "tree-1"])
        page.has_text(".parameters", "optimiser")


class LineageTest(WithRuns):
    def step(self, text):
        return next((one for one in self.page.texts(".lineage > li") if text in one), "")

    def test_a_run_says_what_it_read_what_came_of_it_and_where_that_serves(self):
        page = self.page
        version = self.state.versions[1]  # which serves
        self.may_fail_requests = True  # its job was removed
        page.go(f"runs/{version['run']}?tab=lineage")
        name = f"{version['model']} v{version['version']}"
        page.until(lambda: self.step(name), "the version that came of it")
        self.assertIn("faces v", self.step("dataset version"))
        self.assertIn("building-security / entrance", self.step("link, serving"))
        page.js("[...document.querySelectorAll('.lineage a')].find((e) => e.innerText === arguments[0]).click()", name)
        page.until(lambda: f"/models/{version['model']}/v{version['version']}" in page.address(), "its page")
        run = next(one for one in self.state.runs if one["id"] == version["run"])
        page.until(lambda: run["name"] in self.step("run, code"), "the way back")
        page.js("[...document.querySelectorAll('.lineage a')].find((e) => e.innerText === arguments[0]).click()", run["name"])
        page.until(lambda: "tab=lineage" in page.address() and self.step(name), "the run's lineage")
        self.assertEqual(page.weak_texts(), [])

    def test_data_of_a_program_is_named_and_what_is_a_dataset_leads_there_and_back(self):
        page = self.page
        page.go(f"runs/{self.id_of(399)}?tab=lineage")
        page.until(lambda: "fashion.csv" in self.step("digest ab12cd34"), "what it read")
        page.has_text("main", "Nothing came of it")
        page.one('.lineage a[href$="/datasets/faces"]').click()
        page.has_text("#dataset-title", "faces")
        link = page.until(lambda: next((one for one in page.all(".drawer a") if one.text == "Runs that read it"), None), "the way back")
        self.assertIn("dataset.name", link.get_attribute("href"))

    def test_a_registered_run_leads_to_its_version(self):
        page = self.page
        page.go(f"runs/{self.id_of(399)}")
        page.button("Register").click()
        page.has_text("dialog .best-run", "model/model.onnx")
        page.button("Register it", "dialog").click()
        page.until(lambda: "/models/fashion/v1" in page.address(), "the version")
        page.go(f"runs/{self.id_of(399)}?tab=lineage")
        page.until(lambda: self.step("fashion v1"), "the version that came of it")
        page.has_text("main", "Nothing serves what came of it")


class ArtifactTest(WithRuns):
    PART = 8 << 20

    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.run_id = self.id_of(399)
        self.page.go(f"runs/{self.run_id}?tab=artifacts")
        self.page.has_text('[aria-label="Files"]', "predictions.csv")

    def upload(self, name, content):
        path = os.path.join(self.folder.name, name)
        with open(path, "wb") as file:
            file.write(content)
        self.page.driver.find_element("css selector", "input[name=artifact]").send_keys(path)

    def changes(self, word):
        return [(method, path) for method, path, _, _ in self.state.requests if word in path]

    def test_a_file_is_put_into_the_folder_that_is_open_and_deleted(self):
        page = self.page
        page.go(f"runs/{self.run_id}?tab=artifacts&at=plots/")
        page.has_text('[aria-label="Files"]', "confusion.png")
        self.upload("loss.txt", b"0.1\n")
        page.has_text('[aria-label="Files"]', "loss.txt")
        self.assertEqual(self.state.artifacts[self.run_id]["plots/loss.txt"], b"0.1\n")
        page.button("Delete plots/loss.txt").click()
        page.button("Delete the file", "dialog").click()
        page.until(lambda: "loss.txt" not in page.text('[aria-label="Files"]'), "it to go")
        page.go(f"runs/{self.run_id}?tab=artifacts")
        page.button("Delete model").click()
        page.has_text("dialog", "all files below it")
        page.button("Delete the folder", "dialog").click()
        page.until(lambda: "model/" not in page.text('[aria-label="Files"]'), "the folder to go")
        self.assertEqual(self.changes("/artifacts/")[-1], ("DELETE", f"/api/v1/runs/{self.run_id}/artifacts/model"))

    def test_a_large_file_comes_in_parts_and_goes_on_after_a_break(self):
        page = self.page
        self.may_fail_requests = True
        content = random.Random(5).randbytes(2 * self.PART + 1000)
        self.state.faults["/api/v1/runs/" + self.run_id + "/uploads/upload-0/parts/2"] = (503, "UNAVAILABLE", "the disk is full")
        self.upload("big.bin", content)
        page.has_text('[aria-label="On their way"]', "the disk is full")
        self.state.faults.clear()
        page.button("Try again").click()
        page.has_text('[aria-label="Files"]', "big.bin")
        self.assertEqual(hashlib.sha256(self.state.artifacts[self.run_id]["big.bin"]).digest(), hashlib.sha256(content).digest())
        parts = [path.rsplit("/", 1)[1] for _, path in self.changes("/parts/")]
        self.assertEqual(parts, ["1", "2", "3"], "the first is not sent twice")

    def test_an_upload_is_cancelled_and_nothing_of_it_stays(self):
        page = self.page
        self.state.lets.clear()
        self.upload("big.bin", bytes(2 * self.PART))
        page.has_text('[aria-label="On their way"]', "big.bin")
        page.until(lambda: self.state.uploads, "the upload")
        page.button("Cancel big.bin").click()
        self.state.lets.set()
        page.until(lambda: not self.state.uploads and not page.all('[aria-label="On their way"]'), "it to go")
        self.assertNotIn("big.bin", page.text('[aria-label="Files"]'))
        deleted = page.until(lambda: [one for one in self.changes("/uploads") if one[0] == "DELETE"], "its end")  # noted when it is answered
        self.assertEqual(deleted, [("DELETE", f"/api/v1/runs/{self.run_id}/uploads/upload-0")])

    def test_who_may_only_look_is_told_so(self):
        page = self.page
        self.state.rights.remove("change runs")
        page.driver.refresh()
        page.has_text("main", "takes the right to change runs")
        self.assertEqual(page.all('[aria-label^="Delete "]'), [])
        page.button("Upload").click()
        page.has_text("dialog", "You may not change runs")


class PhoneTest(WithRuns):
    def test_a_row_opens_what_can_be_done_with_it(self):
        page = self.page
        page.resize(390, 844)
        page.go("experiments/fashion")
        act = page.one(f'[aria-label="What can be done with fashion-resnet-399"]')
        box = page.js("const b = arguments[0].getBoundingClientRect(); return [b.width, b.height, b.right]", act)
        self.assertGreaterEqual(min(box[:2]), 32)
        self.assertLessEqual(box[2], 390)
        act.click()
        for name in ("Choose it, to compare", "Tag", "Run again", "Register", "Delete"):
            page.button(name, "dialog")
        self.assertEqual(page.weak_texts(), [])
        page.button("Delete", "dialog").click()
        page.button("Delete 1 run", "dialog").click()
        page.until(lambda: not page.all(f'[data-row="{self.id_of(399)}"]'), "the row to go")
        self.assertLessEqual(page.overflow_px(), 0)


CASES = [HeadTest, GroupTest, ManyGroupedTest, ColumnTest, WidthTest, RegisterTest, LineageTest, ArtifactTest, PhoneTest]

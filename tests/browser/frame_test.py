"""The frame: addresses and history, projects, views, the palette, keys, banners, filters."""

import re
import time

import fake_data as made
from fixture import ION, SCREENS, WithPage, acts_of


class AddressTest(WithPage):
    def test_the_root_leads_home(self):
        self.page.driver.get(self.server.url)
        self.page.until(lambda: self.page.address() == "/p/-/home", "the address of home")

    def test_an_address_without_its_project_leads_to_the_last_one_or_the_only_one(self):
        page, server = self.page, self.server.url
        page.driver.get(f"{server}/jobs?q=kind:train")
        page.until(lambda: page.address() == "/p/default/jobs?q=kind%3Atrain", "the only project")
        page.until(lambda: len(page.texts("table.rows .main")) == 2, "the two trainings")
        page.driver.get(f"{server}/p/-/jobs")
        page.one("table.rows [data-row]")
        page.driver.get(f"{server}/models/{made.MODEL}/v3")
        page.until(lambda: page.address() == f"/p/-/models/{made.MODEL}/v3", "all projects, which were shown last")
        with self.state.lock:
            self.state.projects.append({"name": "speech", "description": None, "created_ms": made.rfc3339(1)})
        page.js("localStorage.clear()")
        page.driver.get(f"{server}/jobs")
        page.until(lambda: page.address() == "/p/-/jobs", "none of two is the only one")
        page.driver.get(f"{server}/p/speech/jobs")
        page.one("main h1")
        page.driver.get(f"{server}/p/-/home")  # where everybody arrives
        page.one("main h1")
        page.driver.get(f"{server}/queues")
        page.until(lambda: page.address() == "/p/speech/queues", "the project that was shown last")
        with self.state.lock:
            self.state.projects.pop()
        page.driver.get(f"{server}/queues")
        page.until(lambda: page.address() == "/p/default/queues", "the only one, since the last one is gone")

    def test_a_pasted_address_shows_the_same_and_back_undoes_one_step(self):
        page = self.page
        job = self.state.jobs[0]["id"]
        page.driver.get(f"{self.server.url}/p/-/jobs?q=kind:train&sort=-name")
        page.until(lambda: page.texts("table.rows .main") == ["training.5", "training.2"], "the two trainings, the last name first")
        page.one(f'[data-row="{job}"] a').click()
        page.has_text("#job-title", "training.5")
        page.one('.seg a[href*="state=failed"]').click()
        page.until(lambda: page.texts("table.rows .main") == ["training.2"], "the one that failed")
        address = page.address()
        for part in ("q=kind%3Atrain", "sort=-name", f"job={job}", "state=failed"):
            self.assertIn(part, address)
        page.driver.get(self.server.url + address)
        page.until(lambda: page.texts("table.rows .main") == ["training.2"], "the same rows")
        page.has_text("#job-title", "training.5")
        page.one(".drawer .close").click()
        page.until(lambda: not page.all(".drawer"), "the drawer to close")
        page.js("history.back()")
        page.has_text("#job-title", "training.5")

    def test_letters_typed_in_a_row_are_one_step(self):
        page = self.page
        page.go("jobs")
        page.one("input[name=q]").send_keys("nightly")
        page.until(lambda: page.texts("table.rows .main") == ["nightly-evaluation"], "the one job of this name")
        page.js("history.back()")
        page.until(lambda: len(page.all("table.rows [data-row]")) == 4, "all jobs again")

    def test_every_screen_has_an_address_that_loads_it_and_no_act_for_who_has_no_right(self):
        page = self.page
        self.state.rights, self.state.role = [], "viewer"
        for screen in SCREENS:
            page.driver.get(f"{self.server.url}/p/default/{screen}")
            page.until(lambda: page.text("main h1"), screen)
            self.assertEqual(page.address(), f"/p/default/{screen}")
            self.assertNotIn("There is no such page", page.text("main"), screen)
            page.until(lambda: not page.all("main .loading"), "the data of the screen")
            self.assertEqual(acts_of(page), set(), screen)


class WordTest(WithPage):
    def test_one_of_anything_is_not_told_as_many(self):
        page = self.page
        for screen in SCREENS:
            page.go(screen)
            text = page.js("return document.body.innerText + [...document.querySelectorAll('[aria-label], [title]')].map((e) => `\\n${e.ariaLabel}\\n${e.title}`).join('')")
            many = re.findall(r"(?<![\d.,/–:-])\b1 [a-zA-Z]{3,}s\b.*", text)
            verbs = [one for one in many if re.match("1 (needs|drifts|waits) ?", one)]  # "building-security needs you", said of one
            self.assertEqual(sorted(set(many) - set(verbs)), [], screen)


class ProjectTest(WithPage):
    def setUp(self):
        super().setUp()
        with self.state.lock:
            other = {**self.state.jobs[2], "id": made.make_id(self.state.rng), "name": "speech-job", "project": "speech"}
            self.state.jobs.append(other)
            self.state.publish("jobs", other)

    def test_a_project_narrows_every_list_and_stays_in_the_address(self):
        page = self.page
        page.go("jobs")
        page.until(lambda: len(page.all("table.rows [data-row]")) == 5, "the jobs of both projects")
        page.one(".switcher").click()
        page.one('ul.menu-body a[href="/p/speech/jobs"]').click()
        page.until(lambda: page.texts("table.rows .main") == ["speech-job"], "the job of the project")
        self.assertEqual(page.address(), "/p/speech/jobs")
        page.one('.nav a[href="/p/speech/ions"]').click()
        page.has_text("main", "No ION yet")
        page.js("history.back()")
        page.js("history.back()")
        page.until(lambda: len(page.all("table.rows [data-row]")) == 5, "all projects again")

    def test_an_owner_has_a_colour_of_its_own(self):
        page = self.page
        page.go("jobs")
        page.until(lambda: len(page.all("table.rows [data-row]")) == 5, "the jobs of both projects")
        colours = page.js("return [...new Set([...document.querySelectorAll('table.rows .own i')].map((e) => getComputedStyle(e).backgroundColor))]")
        self.assertEqual(len(colours), 2)


class ViewTest(WithPage):
    def test_the_view_changes_the_order_and_no_address(self):
        page = self.page
        page.go("jobs")
        heads = lambda: page.texts(".nav-head")
        self.assertEqual(heads(), ["Build", "Serve", "Share", "Watch"])
        science = set(page.js("return [...document.querySelectorAll('.nav a')].map((e) => e.pathname)"))
        page.button("Operations").click()
        page.until(lambda: heads() == ["Cluster", "Watch", "Build", "Manage"], "the groups of Operations")
        self.assertEqual(set(page.js("return [...document.querySelectorAll('.nav a')].map((e) => e.pathname)")), science)
        self.assertEqual(page.address(), "/p/-/jobs")
        page.driver.refresh()
        page.until(lambda: heads() == ["Cluster", "Watch", "Build", "Manage"], "the choice, remembered")


class PaletteTest(WithPage):
    def open(self):
        from selenium.webdriver.common.keys import Keys

        self.page.press_with(Keys.CONTROL, "k")
        self.page.one("dialog.palette[open]")

    def choose(self, text):
        from selenium.webdriver.common.keys import Keys

        self.page.press(text)
        self.page.has_text("#palette-list [aria-selected=true]", text.lstrip("> "))
        self.page.press(Keys.ENTER)
        self.page.until(lambda: not self.page.all("dialog.palette"), "the palette to close")

    def test_it_finds_objects_and_screens(self):
        page = self.page
        page.until(lambda: self.state.jobs, "jobs")
        page.go("jobs")  # its names are there
        page.one("table.rows [data-row]")
        self.open()
        self.choose("nightly-evaluation")
        page.has_text("#job-title", "nightly-evaluation")
        self.open()
        self.choose("Cluster")
        page.until(lambda: page.address() == "/p/-/nodes", "the cluster")

    def test_it_does_what_the_screen_can_do(self):
        page = self.page
        page.go(f"{ION}/graph")
        page.button("Train now")
        self.open()
        self.choose("> Train training of building-security")
        page.button("Start training", "dialog").click()
        self.assertEqual(self.last_request()[1], "/api/v1/ions/building-security/trigger")

    def test_escape_closes_it_and_gives_the_focus_back(self):
        from selenium.webdriver.common.keys import Keys

        page = self.page
        page.js("document.querySelector('.search').focus()")
        page.press(Keys.ENTER)
        page.one("dialog.palette[open]")
        page.press(Keys.ESCAPE)
        page.until(lambda: not page.all("dialog.palette"), "the palette to close")
        self.assertEqual(page.focused(), "Search, or run a command Ctrl K")


class KeyTest(WithPage):
    def test_keys_go_filter_move_open_and_close(self):
        from selenium.webdriver.common.keys import Keys

        page = self.page
        page.press("gj")
        page.until(lambda: page.address() == "/p/-/jobs", "g j")
        page.one("table.rows [data-row]")
        page.press("jj", Keys.ENTER)
        page.has_text("#job-title", page.texts("table.rows .main")[1])
        page.press(Keys.ESCAPE)
        page.until(lambda: not page.all(".drawer"), "Esc to close the drawer")
        page.press("/")
        self.assertEqual(page.js("return document.activeElement.name"), "q")
        page.press("gm")  # typed, not pressed
        page.until(lambda: "q=gm" in page.address(), "the letters in the filter")

    def test_the_keys_are_listed_and_can_be_switched_off(self):
        page = self.page
        page.press("?")
        page.has_text("dialog .keys", "search, or run a command")
        page.one("dialog .check-line input").click()
        page.button("Close", "dialog").click()
        page.until(lambda: not page.all("dialog"), "the dialog to close")
        page.press("gj")
        page.press("[")
        self.assertEqual(page.address().split("?")[0], "/p/-/home")
        self.assertEqual(page.all(".is-folded"), [])


class FilterTest(WithPage):
    def test_a_wrong_key_gets_the_right_one_and_hides_nothing(self):
        page = self.page
        page.go("jobs?q=stat:running")
        page.has_text(".filter .wrong", "state:running")
        self.assertEqual(len(page.all("table.rows [data-row]")), 4)
        page.button("state:running").click()
        page.until(lambda: len(page.all("table.rows [data-row]")) == 2, "those that run")
        self.assertIn("q=state%3Arunning", page.address())

    def test_where_nothing_matches_the_part_to_drop_is_named_with_its_count(self):
        page = self.page
        page.go("jobs?q=kind:train+by:nobody")
        page.has_text(".empty", "Without by:nobody there would be 2.")
        page.button("Remove that part").click()
        page.until(lambda: len(page.all("table.rows [data-row]")) == 2, "the trainings")


class PlatformTest(WithPage):
    def test_what_is_wrong_with_the_platform_stands_on_every_screen(self):
        page = self.page
        reason = "2 % of the state folder's disk is free; everything stops when it is full"
        with self.state.lock:
            self.state.platform = [
                {"status": "degraded", "reason": "the ION's own trouble", "since": None, "kind": "drift", "severity": "warning", "subject": f"ion/{made.ION}", "alert": "1"},
                {"status": "down", "reason": reason, "since": made.rfc3339(time.time()), "kind": "disk_filling", "severity": "critical", "subject": "server/main", "alert": "2"}]
            self.state.publish("alerts", {"kind": "disk_filling"})
        page.has_text(".banner.platform", reason)
        self.assertNotIn("own trouble", page.text(".banner.platform"))
        for screen in ("jobs", f"{ION}/decisions", "models"):
            page.go(screen)
            page.has_text(".banner.platform", reason)
            self.assertEqual(page.weak_texts(), [])

    def test_the_disk_of_the_server_and_of_each_node_is_shown(self):
        page = self.page
        page.go("storage")
        page.has_text(".strip", "120 GiB")
        page.has_text(".strip", "of 500 GiB")
        page.has_text("main", "edge-door")
        page.has_text("table.rows", "30d,10GB")
        page.go("nodes?view=table")
        disk = page.texts("table.rows th").index("Disk free")
        cells = {row: page.texts(f'[data-row="{row}"] td')[disk] for row in ("edge-door", "rack1-b")}
        self.assertEqual(cells, {"edge-door": "320 GiB", "rack1-b": "–"}, "of a lost node nobody knows")


class LogSearchTest(WithPage):
    def test_words_are_found_in_a_log_and_stepped_through(self):
        from selenium.webdriver.common.keys import Keys

        page = self.page
        page.go(f"jobs?job={self.state.jobs[0]['id']}")
        page.has_text("pre.log", "step 39")
        page.one(".log-search input").send_keys("STEP 1")
        expected = bytes(self.state.logs[self.state.tasks[self.state.jobs[0]["id"]][0]["id"]]).lower().count(b"step 1")
        page.has_text(".log-search", f"{expected} places")
        self.assertEqual(len(page.all("pre.log mark")), expected)
        page.press(Keys.ENTER, Keys.ENTER)
        page.has_text(".log-search", f"2 of {expected}")
        self.assertEqual(page.js("return [...document.querySelectorAll('pre.log mark')].findIndex((e) => e.matches('.at'))"), 1)
        page.button("Follow")  # what was followed stands still


class PictureTest(WithPage):
    def test_a_dataset_shows_its_pictures_by_version_and_class(self):
        page = self.page
        page.go("datasets/faces")
        page.has_text(".drawer", "Pictures of v2")
        loaded = "return [...document.querySelectorAll('.pictures img')].filter((e) => e.naturalWidth === 92).length"
        page.until(lambda: page.js(loaded) == 40, "the first forty pictures, drawn from graymaps")
        page.button("60 more").click()
        page.until(lambda: page.js(loaded) == 80, "forty more")
        page.js("""const e = document.querySelector('select[name=class]'); e.value = 'hana'
            e.dispatchEvent(new Event('change', {bubbles: true}))""")
        page.until(lambda: page.js("return document.querySelector('.pictures img')?.alt") == "hana/0.pgm", "the pictures of the other")
        self.assertEqual(page.address(), "/p/-/datasets/faces?class=hana")
        page.js("""document.querySelector('.drawer a[href*="v=v1"]').scrollIntoView({block: 'center'})""")  # from under the drawer's head
        page.one('.drawer a[href*="v=v1"]').click()
        page.has_text(".drawer", "Pictures of v1")
        self.assertIn("class=hana", page.address())
        page.js("history.back()")
        page.has_text(".drawer", "Pictures of v2")


class ReviewTest(WithPage):
    def test_a_candidate_stands_beside_what_serves_and_is_decided(self):
        page = self.page
        page.go(f"{ION}/review")
        page.has_text("#review-title", f"{made.MODEL} v3 for entrance")
        rows = page.js("return [...document.querySelectorAll('.table-wrap[aria-label=Measures] tbody tr')].map((r) => [...r.cells].map((c) => c.innerText))")
        self.assertEqual(rows[0], ["accuracy", "0.9660", "0.9540", "+0.0120"])
        page.has_text("main", "manual: waits")
        page.has_text("main", "faces v5")
        page.press("r")
        page.one("dialog textarea").send_keys("misses hats")
        page.button("Reject", "dialog").click()
        self.assertEqual(self.last_request()[1], "/api/v1/ions/building-security/reject")
        page.has_text("main", "No version waits")
        page.go(f"{ION}/review/v3")
        page.has_text("main", "rejected")


class ScaleTest(WithPage):
    def test_a_long_table_draws_only_the_rows_in_view(self):
        page = self.page
        with self.state.lock:
            job = self.state.jobs[3]
            self.state.jobs += [{**job, "id": made.make_id(self.state.rng), "name": f"job-{i}"} for i in range(196)]
        page.driver.get(f"{self.server.url}/p/-/jobs")
        page.one("table.rows [data-row]")
        self.assertEqual(page.one("table.rows").get_attribute("aria-rowcount"), "201")
        self.assertLess(len(page.all("table.rows [data-row]")), 80)
        page.js("window.scrollTo(0, document.documentElement.scrollHeight)")
        page.until(lambda: page.all('table.rows [aria-rowindex="201"]'), "the last row")
        self.assertLess(len(page.all("table.rows [data-row]")), 80)


CASES = [AddressTest, WordTest, ProjectTest, ViewTest, PaletteTest, KeyTest, FilterTest, PlatformTest, LogSearchTest, PictureTest, ReviewTest, ScaleTest]


"""The screen of decisions: at the speed of three cameras, back in time, and still under the pointer. And the cameras themselves."""

import json
import re
import threading
import time
from datetime import datetime

import fake_camera
import fake_data as made
from fixture import ION, WithPage

PER_SECOND = 30  # three cameras with 10 frames a second
SLOW = 4  # how many times slower the browser's processor is made


class Feed:
    """Pushes decisions at a steady rate until it is closed, each with a face of its own now and then."""

    def __init__(self, state, per_second=PER_SECOND):
        self.is_over = threading.Event()
        self.n = 0

        def push():
            start = time.monotonic()
            while not self.is_over.wait(max(0, start + self.n / per_second - time.monotonic())):
                self.n += 1
                state.push_decision(verdict="grant", person=f"person-{self.n}", error=None, score=0.9, image=f"{self.n % 500 + 1000:064x}")

        self.thread = threading.Thread(target=push)
        self.thread.start()

    def close(self):
        self.is_over.set()
        self.thread.join()


class SpeedTest(WithPage):
    def setUp(self):
        super().setUp()
        self.feed = None

    def tearDown(self):
        if self.feed:
            self.feed.close()
        self.page.driver.execute_cdp_cmd("Emulation.setCPUThrottlingRate", {"rate": 1})
        super().tearDown()

    def watch(self, seconds):
        """Of the rows in view, every 50 ms for so long: how many were seen, how many had no face; ms of tasks over 50 ms."""
        script = """const done = arguments[1], seen = new Set()
        let bare = 0, looks = 0, long = 0
        const tasks = new PerformanceObserver((list) => list.getEntries().forEach((e) => { long += e.duration }))
        tasks.observe({type: 'longtask'})
        const end = performance.now() + arguments[0] * 1000
        const look = () => {
            for (const row of document.querySelectorAll('.decision')) {
                const box = row.getBoundingClientRect()
                if (box.bottom < 60 || box.top > innerHeight) continue
                seen.add(row.dataset.decision)
                const image = row.querySelector('.face img')
                if (!(image && image.complete && image.naturalWidth > 0)) bare++
                looks++
            }
            if (performance.now() < end) setTimeout(look, 50)
            else { tasks.disconnect(); done({rows: seen.size, bare, looks, long}) }
        }
        look()"""
        self.page.driver.set_script_timeout(seconds + 20)
        return self.page.driver.execute_async_script(script, seconds)

    def busy_share(self, work):
        """The share of a processor that the page's main thread took while work() ran, whoever else is on the machine."""
        driver = self.page.driver
        driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})

        def metrics():
            found = driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
            return {one["name"]: one["value"] for one in found}

        start, before = time.monotonic(), metrics()
        work()
        took, after = time.monotonic() - start, metrics()
        driver.execute_cdp_cmd("Performance.disable", {})
        return (after["TaskDuration"] - before["TaskDuration"]) / took

    def test_thirty_a_second_on_a_slow_core_show_every_face_and_leave_time(self):
        page = self.page
        page.go(f"{ION}/decisions")
        self.feed = Feed(self.state)
        page.has_text(".live-state", "showing 1 in")
        page.until(lambda: int(page.text(".live-state").split()[0]) > 20, "the rate of what comes")
        busy = self.busy_share(lambda: time.sleep(4))
        page.driver.execute_cdp_cmd("Emulation.setCPUThrottlingRate", {"rate": SLOW})
        seen = self.watch(6)
        print(f"  {PER_SECOND}/s: {busy:.0%} of a processor; at 1/{SLOW} of its speed {seen['rows']} rows seen, "
              f"{seen['bare']} of {seen['looks']} looks without a face, {seen['long']:.0f} of 6000 ms in long tasks")
        self.assertGreater(seen["rows"], 18, "the list must move")
        self.assertEqual(seen["bare"], 0, "every face is there when its row is")
        self.assertLess(busy, 0.5, "a processor half as fast has time left")

    def test_when_it_calms_down_nothing_is_left_out(self):
        page = self.page
        page.go(f"{ION}/decisions")
        self.feed = Feed(self.state)
        page.has_text(".live-state", "showing 1 in")
        self.feed.close()
        newest = [one["id"] for one in self.state.decisions[::-1][:8]]
        shown = "return [...document.querySelectorAll('.decision')].slice(0, 8).map((e) => e.dataset.decision)"
        page.until(lambda: page.js(shown) == newest, "the newest eight, none left out")

    def test_the_row_that_was_seen_is_the_row_that_opens(self):
        from selenium.webdriver.common.action_chains import ActionChains

        page = self.page
        page.go(f"{ION}/decisions")
        self.feed = Feed(self.state)
        page.has_text(".live-state", "showing 1 in")
        for i in range(4):
            # A person points at a place, not at a row: which one is there when the pointer comes, holds still.
            place = page.js("""const r = document.querySelectorAll('.decision')[arguments[0]].getBoundingClientRect()
                return [r.left + r.width / 2, r.top + r.height / 2].map(Math.round)""", 2 + i)
            pointer = ActionChains(page.driver)
            pointer.w3c_actions.pointer_action.move_to_location(*place)
            pointer.perform()
            seen = page.one(".decision:hover .who").text
            count = self.feed.n
            page.until(lambda: self.feed.n > count + 15, "half a second of others")
            ActionChains(page.driver).click().perform()
            page.has_text(".drawer .decision-top", seen)
            page.one(".drawer .close").click()
            page.until(lambda: not page.all(".drawer"), "the drawer to close")
            ActionChains(page.driver).move_by_offset(0, 0).move_to_element(page.one("h1")).perform()
            page.js("document.activeElement.blur()")

    def test_pointing_holds_the_list_and_leaving_shows_what_came(self):
        from selenium.webdriver.common.action_chains import ActionChains

        page = self.page
        page.go(f"{ION}/decisions")
        page.one("[data-decision]")
        ActionChains(page.driver).move_to_element(page.all(".decision")[1]).perform()
        before = page.js("return [...document.querySelectorAll('.decision')].map((e) => e.dataset.decision)")
        came = self.state.push_decision(verdict="grant", person="zoe", error=None)
        page.has_text(".live-state", "1 new")
        self.assertEqual(page.js("return [...document.querySelectorAll('.decision')].map((e) => e.dataset.decision)"), before)
        ActionChains(page.driver).move_to_element(page.one("h1")).perform()
        page.one(f'[data-decision="{came["id"]}"]')

    def test_only_what_has_just_come_is_tinted(self):
        page = self.page
        page.go(f"{ION}/decisions")
        page.one("[data-decision]")
        self.assertEqual(page.all(".decision.new"), [], "what was there is not new")
        came = self.state.push_decision(verdict="grant", person="zoe", error=None)
        page.one(f'[data-decision="{came["id"]}"]')
        self.assertEqual(page.js("return [...document.querySelectorAll('.decision.new')].map((e) => e.dataset.decision)"), [came["id"]])

    def test_space_pauses_and_goes_on(self):
        page = self.page
        page.go(f"{ION}/decisions")
        page.one("[data-decision]")
        page.press(" ")
        page.button("Resume")
        came = self.state.push_decision()
        page.has_text(".live-state", "1 new")
        self.assertEqual(page.all(f'[data-decision="{came["id"]}"]'), [])
        page.press(" ")
        page.one(f'[data-decision="{came["id"]}"]')


class PastTest(WithPage):
    def fill(self, n, **fields):
        """n decisions, one a second, the last one minute ago."""
        with self.state.lock:
            begin = time.time() - 60 - n
            self.state.forgotten = self.state.decisions
            self.state.decisions = [
                {**made.decision(self.state.rng, i + 1, self.state.next_frame(), begin + i, 2), "camera": made.CAMERAS[i % 3], **fields}
                for i in range(n)]

    def choose(self, name, value):
        select = f"select[name={name}]"
        self.page.until(lambda: value in self.page.js("return [...document.querySelectorAll(arguments[0] + ' option')].map((e) => e.value)", select),
                        f"{value!r} in {select}")
        self.page.js("""const e = document.querySelector(arguments[0]); e.value = arguments[1]
            e.dispatchEvent(new Event('change', {bubbles: true}))""", select, value)

    def test_older_pages_come_as_one_scrolls_and_only_rows_in_view_are_there(self):
        page = self.page
        self.fill(1500)
        page.go(f"{ION}/decisions")
        page.one("[data-decision]")
        oldest = self.state.decisions[0]["id"]

        def reached():
            page.js("window.scrollTo(0, document.documentElement.scrollHeight)")
            return page.all(f'[data-decision="{oldest}"]')

        page.until(reached, "the oldest decision")
        page.has_text(".list-foot", "There are no older ones")
        self.assertLess(len(page.all(".decision")), 60, "of 1500 rows only those in view are in the page")
        size = page.one(".virtual li").get_attribute("aria-setsize")
        self.assertEqual(size, "1500")
        anchor = page.js("return document.querySelectorAll('.decision')[8].getBoundingClientRect().top")
        self.state.push_decision()
        page.has_text(".live-state", "1 new")
        self.assertEqual(page.js("return document.querySelectorAll('.decision')[8].getBoundingClientRect().top"), anchor)
        page.button("1 new: show").click()
        page.until(lambda: page.js("return window.scrollY") == 0, "the top again")

    def test_time_camera_ion_verdict_and_person_narrow_what_is_asked_for(self):
        page = self.page
        self.fill(600, verdict="grant", person="ada", error=None)
        with self.state.lock:
            self.state.decisions[100].update(verdict="deny", person="georg")
            self.state.decisions[101].update(ion="warehouse")
            self.state.ions.append({**self.state.ions[0], "name": "warehouse"})
            self.state.publish("ions", {"name": "warehouse"})
        page.go("ions/warehouse/decisions")
        page.until(lambda: len(page.all(".decision")) == 1, "the one of the other ION")
        page.go(f"{ION}/decisions")
        self.choose("verdict", "deny")
        page.until(lambda: page.texts(".decision .who") == ["georg"], "the one who was denied")
        self.assertIn("verdict=deny", page.address())
        page.js("history.back()")
        page.until(lambda: len(page.all(".decision")) > 1, "Back to undo the choice")
        self.assertNotIn("verdict", page.address())
        self.choose("verdict", "deny")
        page.until(lambda: page.texts(".decision .who") == ["georg"], "the one who was denied, again")
        page.button("Clear").click()
        self.choose("camera", "garage")
        page.until(lambda: set(page.texts(".decision .place")) == {"garage"}, "only the garage")
        page.button("Clear").click()
        page.one(".time-range summary").click()
        page.button("Last 5 min").click()
        page.until(lambda: page.one(".virtual li").get_attribute("aria-setsize") == "100", "the first page of five minutes")
        self.assertIn("from=-5m", page.address())
        page.button("Clear").click()
        page.one(".time-range summary").click()
        at = made.seconds(self.state.decisions[50]["time_ms"])
        local = "(s) => { const d = new Date(s * 1000); return new Date(d - d.getTimezoneOffset() * 60000).toISOString().slice(0, 19) }"
        for name, moment in (("from", at - 10), ("to", at + 10)):
            page.js(f"""const e = arguments[0]; e.value = ({local})(arguments[1])
                e.dispatchEvent(new Event('change', {{bubbles: true}}))""", page.one(f"input[name={name}]"), moment)
        page.until(lambda: page.one(".virtual li").get_attribute("aria-setsize") in ("19", "20", "21"), "twenty seconds, one decision in each")
        late = self.state.push_decision(person="too late")
        page.go(f"{ION}/decisions")
        page.one(f'[data-decision="{late["id"]}"]')
        page.js("history.back()")
        page.until(lambda: page.one(".virtual li").get_attribute("aria-setsize") in ("19", "20", "21"), "the twenty seconds again")
        page.has_text(".list-foot", "There are no older ones")
        self.assertNotIn("too late", page.text("main"))

    def test_a_name_that_nobody_has_gets_those_that_were_seen(self):
        page = self.page
        self.fill(50, verdict="grant", person="vera", error=None)
        page.go(f"{ION}/decisions")
        page.one("[data-decision]")
        page.one("input[name=person]").send_keys("VER\n")
        page.has_text(".empty", "did you mean")
        page.button("vera").click()
        page.until(lambda: set(page.texts(".decision .who")) == {"vera"}, "only vera")

    def test_a_row_tells_camera_and_time_and_no_frame_number(self):
        page = self.page
        self.fill(3, verdict="grant", person="ada", error=None, frame=1795472328548)
        page.go(f"{ION}/decisions")
        row = page.one(".decision").text
        self.assertNotIn("1795472328548", row)
        self.assertRegex(row, r"\d\d:\d\d:\d\d")
        self.assertIn(self.state.decisions[2]["camera"], row)


class WindowTest(WithPage):
    def test_tiles_count_a_window_that_they_name(self):
        page = self.page
        page.go(f"{ION}/graph")
        page.has_text(".strip", "since")
        asked = self.state.summaries[-1]
        self.assertNotIn("after", asked)
        self.assertAlmostEqual(time.time() - made.seconds(asked["since"]), 300, delta=15)
        with self.state.lock:  # an older one: now the whole window is covered
            self.state.decisions.insert(0, {**self.state.decisions[0], "id": "old", "time_ms": made.rfc3339(time.time() - 900)})
        page.has_text(".strip", "last 5 min")
        page.has_text(".strip", "53")

    def test_the_rate_divides_by_the_time_that_was_really_covered(self):
        page = self.page
        feed = Feed(self.state)
        try:
            page.driver.get(f"{self.server.url}/p/-/{ION}/graph")
            page.one(".node-rate")
            rates = []

            def enough():
                text = page.text(".node-rate").split()[0]
                if text not in ("–", ""):
                    rates.append(float(text))
                return len(rates) > 40
            page.until(enough, "some seconds of the rate")
        finally:
            feed.close()
        self.assertGreater(min(rates), 0.6 * PER_SECOND, "it does not creep up from nothing")
        self.assertLess(max(rates), 1.4 * PER_SECOND)


class CameraTest(WithPage):
    """The wall of cameras, against the stand-in's six: what needs somebody, what is seen, and what is asked for."""

    def open(self, query=""):
        self.page.go(f"cameras{query}")
        return self.page

    def tiles(self):
        return self.page.js("return [...document.querySelectorAll('.cam')].map((e) => e.dataset.camera)")

    def pictures(self, n=5):
        self.page.until(lambda: self.page.js("return [...document.querySelectorAll('.seen img')].filter((e) => e.naturalWidth > 0).length") == n, f"{n} pictures")

    def asked(self, name):
        return sum(one.startswith(f"ions/{made.ION}/cameras/{name}/live") for one in self.state.reads)

    def tile(self, name, part=""):
        return f'.cam[data-camera="{name}"] {part}'

    def take_video(self, **camera):
        """The ION's document has a source of cameras."""
        with self.state.lock:
            document = self.state.ions[0]["document"]
            document["pipelines"][1]["source"] = {"kind": "rtsp", "cameras": [{"name": "dock", "url": "rtsp://weir@dock/1", **camera}]}

    def applied(self):
        self.page.until(lambda: any(one[:2] == ("POST", "/api/v1/ions") and "dry_run" not in one[1] for one in self.state.requests), "an ION that is applied")
        return json.loads([one for one in self.state.requests if one[:2] == ("POST", "/api/v1/ions")][-1][3])["pipelines"][1]["source"]

    def test_what_needs_somebody_comes_first_with_its_evidence_and_its_cure(self):
        with self.state.lock:
            alert = self.state.alert("camera_lost", f"ion/{made.ION}", "open", time.time(), "Camera dock of pipeline entrance gives no picture")
            self.state.alerts.append({**alert, "key": f"camera_lost:{made.ION}:{made.PIPELINE}:dock"})
            self.state.publish("alerts", {"kind": "camera_lost"})
        page = self.open()
        self.pictures()
        self.assertEqual(self.tiles(), ["dock", "door-3", "door-1", "door-2", "lobby", "garage"])
        self.assertEqual(page.text("h1"), "1 of 6 cameras gives no picture, 1 is too dark")
        for name, texts in {
            "dock": ["No picture since", "RTSP/1.0 401 Unauthorized", "Name the secret", "Choose the secret", "fails", "0.0 of 10 frames/s"],
            "door-3": ["too dark", "nobody known 0.31", "ines 0.91", "38 % unknown, 30 min"],
            "door-2": ["yuri 0.93", "6.1 of 10 frames/s"], "lobby": ["emil 0.92, barred", "sandbox, opens no door"], "garage": ["nobody there", "no decision, 30 min"]}.items():
            for text in texts:
                page.has_text(self.tile(name), text)
        self.assertEqual(self.asked("dock"), 0, "who gives no picture is not asked for one")
        colours = page.js("return ['.tone-good', '.tone-warn', '.tone-bad'].map((one) => getComputedStyle(document.querySelector(`.box${one}`)).borderTopColor)")
        self.assertEqual(len(set(colours)), 3)
        self.assertEqual(len(page.all(".box b .glyph")), len(page.all(".box b")), "a colour alone does not tell a verdict")
        at = page.js("""const [box, seen] = ['.cam[data-camera=door-1] .box', '.cam[data-camera=door-1] .seen'].map((one) => document.querySelector(one).getBoundingClientRect())
            return [(box.left - seen.left) / seen.width * 320, (box.top - seen.top) / seen.height * 180]""")
        self.assertLess(abs(at[0] - 130) + abs(at[1] - 50), 1.5, "a box lies where its face is")
        self.assertIn("2", page.text('.nav a[href="/p/-/cameras"] .count'))
        page.go("home")
        page.one('main a[href="/p/-/cameras"]')
        self.assertIn("2 cameras need you", page.text(".page-head .sub"))
        page.one('[data-alert] a[href*="camera%3Adock"]').click()
        page.until(lambda: self.tiles() == ["dock"], "the camera that an alert is about")

    def test_an_old_picture_is_taken_away_and_a_sentence_stands_in_its_place(self):
        self.may_fail_requests = True
        self.state.blind = {"garage"}
        page = self.open()
        self.pictures(4)
        page.has_text(self.tile("garage"), "no replica has sent a picture of garage yet")
        self.state.stuck = {"door-1"}
        page.until(lambda: not page.all(self.tile("door-1", "img")), "the picture to go")
        page.has_text(self.tile("door-1"), "No picture since")
        # While there is no picture the button stands: it goes as soon as one comes by itself.
        n = self.asked("garage")
        page.one(self.tile("garage", "button")).click()
        page.until(lambda: self.asked("garage") > n, "the picture that was asked for by hand")
        self.state.stuck, self.state.blind = set(), set()
        self.pictures(5)

    def test_nobody_is_asked_for_more_pictures_than_are_looked_at(self):
        page = self.open("?size=4")
        self.pictures(3)
        began, n = time.monotonic(), self.asked("door-1")
        page.until(lambda: self.asked("door-1") >= n + 4, "four more pictures of it")
        self.assertGreater(time.monotonic() - began, 1.4, "at most two a second")
        self.assertEqual(self.asked("garage"), 0, "it is on another page")
        page.has_text(".others", "nobody there")
        page.js("Object.defineProperty(document, 'hidden', { configurable: true, get: () => true })")
        n = self.asked("door-1") + self.asked("door-2") + self.asked("door-3")
        for _ in range(10):  # each is shown with the next quarter of a second
            record = self.state.push_decision(camera="door-1", verdict="grant", person="ada")
            page.one(f'[data-decision="{record["id"]}"]')
        self.assertLessEqual(self.asked("door-1") + self.asked("door-2") + self.asked("door-3") - n, 3, "those on their way, and no more")
        page.js("delete document.hidden")
        page.until(lambda: self.asked("door-1") > n, "pictures again")
        n, since = int(re.search(r"(\d+) decisions a minute", page.text("main"))[1]), time.time() - 60
        there = [one["name"] for one in self.state.cameras]
        young = [one for one in self.state.decisions if one["camera"] in there and datetime.fromisoformat(one["time_ms"].replace("Z", "+00:00")).timestamp() > since]
        self.assertLessEqual(abs(n - len(young)), 4, "of the last minute, as far as one changes meanwhile")

    def test_faces_are_hidden_by_choice_and_from_who_may_not_see_people(self):
        page = self.open()
        self.pictures()
        page.button("Hide faces").click()
        page.until(lambda: len(page.all(".box.shade")) == 6, "silhouettes")
        self.assertNotIn("ines", page.text("main"))
        page.has_text(self.tile("door-3"), "Grant 0.91")
        self.assertEqual(page.all(".film img"), [])
        page.driver.refresh()
        page.until(lambda: len(page.all(".box.shade")) == 6, "silhouettes, remembered")
        page.js("localStorage.clear()")
        self.state.rights = [one for one in self.state.rights if one != "read decisions"]
        page.driver.refresh()
        page.until(lambda: len(page.all(".box.shade")) == 6, "silhouettes for who may not")
        page.has_text(self.tile("door-1"), "You may not see people")
        self.assertEqual(page.all(".seen img, .film img"), [])
        self.assertNotIn("Hide faces", page.text("main"))

    def test_keys_walk_hold_open_and_enlarge(self):
        from selenium.webdriver.common.keys import Keys

        page = self.open()
        self.pictures()
        page.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_DOWN)
        self.assertEqual(page.js("return document.activeElement.closest('.cam').dataset.camera"), "lobby")
        page.press("f")
        page.until(lambda: page.js("return document.fullscreenElement?.dataset.camera") == "lobby", "it alone")
        page.press("f")
        page.until(lambda: page.js("return document.fullscreenElement === null"), "all of them")
        page.press(" ")
        page.has_text(self.tile("door-1"), "Held")
        page.button("Held")
        page.press(" ")
        page.until(lambda: "Held" not in page.text("main"), "pictures to go on")
        record = self.state.push_decision(camera="door-1", verdict="grant", person="ada")
        page.one(self.tile("door-1", "a")).send_keys(Keys.ENTER)
        page.until(lambda: page.address() == f"/p/-/ions/{made.ION}/decisions?id={record['id']}", "its last decision")

    def test_a_camera_is_added_with_its_password_as_a_secret(self):
        page = self.page
        self.take_video()
        page.driver.get(f"{self.server.url}/p/-/cameras")
        page.button("Add a camera").click()
        page.one("dialog input[name=address]").send_keys("rtsp://weir:o%40pen@cam-7.plant/main\t")
        page.until(lambda: page.js("return document.querySelector('dialog input[name=address]').value") == "rtsp://weir@cam-7.plant/main", "the address without its password")
        page.has_text("dialog", "entrance of building-security")
        page.button("Add cam-7", "dialog").click()
        self.assertEqual(self.applied()["cameras"][1], {"name": "cam-7", "url": "rtsp://weir@cam-7.plant/main", "secrets": ["password=cam-7-password"]})
        secret = next(one for one in self.state.requests if one[0] == "PUT")
        self.assertEqual((secret[1], json.loads(secret[3])), ("/api/v1/projects/default/secrets/cam-7-password", {"value": "o@pen"}))
        page.has_text("main", "No camera matches")  # until a list has it
        self.assertEqual(page.address(), "/p/-/cameras?q=ion%3Abuilding-security+camera%3Acam-7")

    def test_another_secret_is_named_where_a_camera_refuses_its_password(self):
        page = self.page
        self.take_video(password="***", rotate=90)
        page.driver.get(f"{self.server.url}/p/-/cameras")
        page.button("Choose the secret of dock").click()
        page.has_text("dialog select", "WANDB")
        page.js("const e = document.querySelector('dialog select'); e.value = 'WANDB'; e.dispatchEvent(new Event('change', { bubbles: true }))")
        page.button("Use WANDB", "dialog").click()
        self.assertEqual(self.applied()["cameras"], [{"name": "dock", "url": "rtsp://weir@dock/1", "rotate": 90, "secrets": ["password=WANDB"]}])

    def test_many_are_a_table_and_nine_a_page(self):
        with self.state.lock:
            self.state.cameras = [fake_camera.camera(f"gate-{i}", "lost" if i == 40 else "sees") for i in range(41)]
        page = self.open()
        page.until(lambda: page.texts("table.rows .main")[:2] == ["gate-40", "gate-0"], "a table, the worst first")
        page.go("cameras?view=wall")
        self.pictures(8)
        self.assertEqual(self.tiles()[:3], ["gate-40", "gate-0", "gate-1"])
        self.assertEqual(len(page.all(".others a")), 32)
        page.one('.others a[href*="page=5"]').click()
        page.until(lambda: self.tiles() == [f"gate-{i}" for i in range(35, 40)], "the last page")


class NoCameraTest(WithPage):
    is_empty = True

    def test_an_address_is_asked_for_where_no_camera_is(self):
        page = self.page
        page.go("cameras")
        page.has_text("main", "No camera yet")
        page.one("main input[name=address]").send_keys("rtsps://gate/1")
        page.button("Add a camera", "main").click()
        page.has_text("dialog", "rtsps and https are not supported")
        self.assertEqual(page.js("return document.querySelector('dialog [type=submit]').disabled"), True)


CASES = [CameraTest, NoCameraTest, SpeedTest, PastTest, WindowTest]

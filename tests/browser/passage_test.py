"""The screens of passages, and the enrolment that begins at one."""

import json

from fixture import ION, WithPage

LIST = f"{ION}/passages"


class PassageTest(WithPage):
    def of(self, seq):
        return next(one for one in self.state.passages if one["seq"] == seq)

    def open(self, seq):
        self.page.go(f"{LIST}/{self.of(seq)['id']}")
        self.page.one(".passage .shown img")

    def told(self):
        return [json.loads(body)["truth"] for method, path, _, body in self.state.requests if path.endswith("/feedback")]

    def test_a_passage_shows_its_frames_the_rule_the_door_and_is_gone_through_by_keys(self):
        page = self.page
        page.go(LIST)
        page.until(lambda: len(page.all(".decision")) == 6, "all passages")
        page.has_text(".decision:has(.nobody)", "came 3 times · 8 frames")
        page.all(".decision a")[0].click()
        page.has_text("h1", "rosa at door-1")
        page.one(".passage .shown img")
        self.assertEqual(page.texts(".film small"), ["0.58", "0.66", "0.74", "0.81", "0.84", "0.88", "0.86", "0.91", "0.94"])
        self.assertEqual(page.js("return [...document.querySelectorAll('.film input')].map((one, i) => one.checked ? i : -1).filter((i) => i >= 0)"), [5, 7, 8], "the best are to be enrolled")
        self.assertEqual(len(page.all(".chart circle")) // 2, 3, "circles are frames that name her; it is drawn for two widths")
        self.assertEqual(len(page.all(".n-of-m .tone-good")), 3)
        page.has_text("main", "3 of the last 5 frames that count name rosa: decided after 4.0 s.")
        page.has_text(".near", "0.71")
        page.has_text("main", "ines comes next, 0.23 away.")
        page.has_text("main", "after 71 ms")
        page.has_text(".shown", "frame 9 of 9")
        page.press("\ue012")  # left
        page.has_text(".shown", "frame 8 of 9")
        page.has_text(".shown", "rosa 0.91")
        self.assertIn("frame=7", page.address())
        page.until(lambda: page.js("return !document.querySelector('[aria-label^=\"Earlier\"]').disabled"), "the earlier one")
        page.press("k")
        page.has_text("h1", "nobody known at door-3")
        page.press("j")
        page.has_text("h1", "rosa at door-1")

    def test_people_say_who_it_was_and_who_is_barred_is_named_first(self):
        page = self.page
        self.open(906)
        page.press("1")
        page.has_text(".told", "rosa")
        page.press("3")
        page.has_text(".told", "Nobody known")
        page.press("2")
        page.one("dialog input[name=person]").send_keys("ines")
        page.button("It was this person", "dialog").click()
        page.has_text(".told", "ines")
        self.assertEqual(self.told(), ["rosa", "unknown", "ines"])
        page.button("Bar rosa…").click()
        page.has_text("dialog", "denies rosa at every camera")
        page.button("Cancel", "dialog").click()
        self.assertEqual([path for _, path, _, _ in self.state.requests if "members" in path], [])
        page.resize(390, 844)
        page.button("Was rosa", ".thumb").click()
        page.until(lambda: self.told()[-1] == "rosa", "the answer under the thumb")

    def test_what_was_refused_says_how_many_counted_and_what_was_missing_and_a_silent_door_is_red(self):
        page = self.page
        self.open(905)
        page.has_text("main", "4 frames count, in 2.5 s. 0 of the last 4 name one person: 3 more had to. The nearest, lena, has 0.55; 0.87 is needed. Of 8 frames these were not compared: 2 too dark.")
        self.assertEqual(page.all(".chart circle"), [], "no frame names anybody")
        self.open(904)
        page.has_text("main", "None of 6 frames could be compared with anybody. Of 6 frames these were not compared: 4 too dark.")
        self.assertEqual(page.all(".chart"), [], "there are no scores")
        self.state.order_state = "silent"
        self.open(906)
        page.has_text(".tone-bad", "the door did not answer")

    def test_an_unknown_person_who_came_again_is_one_group_and_is_enrolled_from_all_passages(self):
        page, state = self.page, self.state
        page.go(f"{LIST}?view=again")
        page.has_text(".visitors", "Came 3 times since")
        self.assertEqual(len(page.all(".visitors li")), 1, "who came once is no group")
        page.one(".visitors .button").click()
        page.until(lambda: len(page.all(".taken li")) == 6, "two frames of each passage")
        page.has_text("[aria-label=Resembles]", "lena")
        page.has_text("main", "Nobody comes near")
        page.one("input[name=person]").send_keys("noor")
        page.until(lambda: not page.button("Enrol noor").get_attribute("disabled"), "noor can be enrolled")
        state.look = {"ada": 0.83, "dora": 0.5}
        page.all(".taken button")[0].click()
        page.has_text("main", "Too much like ada: 0.83, and two people are confused from 0.80.")
        self.assertTrue(page.button("Enrol noor").get_attribute("disabled"), "refused")
        page.button("It is the same person: add to ada").click()
        page.until(lambda: not page.button("Enrol ada").get_attribute("disabled"), "whoever is the same is merged")
        self.assertEqual(json.loads(state.requests[-1][3])["person"], "ada", "she is not compared with herself")

    def test_frames_that_are_ticked_are_enrolled_and_without_a_replica_a_sentence_says_what_is_not_known(self):
        page = self.page
        self.may_fail_requests = True
        self.state.look = None
        self.open(905)
        page.all(".film input")[1].click()
        page.all(".film input")[5].click()
        page.js("[...document.querySelectorAll('main a')].find((one) => one.textContent.includes('Enrol 3 frames')).click()")
        page.until(lambda: len(page.all(".taken li")) == 3, "the frames that are ticked")
        self.assertEqual([one.split(", ")[-1] for one in page.texts(".taken .muted:nth-last-child(2)")], ["frame 2", "frame 3", "frame 4"])
        page.has_text("main", "whom it resembles, is not known: No replica of building-security serves: start one of its pipelines.")
        page.one("input[name=person]").send_keys("noor")
        page.until(lambda: not page.button("Enrol noor").get_attribute("disabled"), "it is no reason to refuse")


CASES = [PassageTest]

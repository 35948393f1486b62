"""Lineage of decisions, model versions and dataset versions, and the card of a version."""

import fake_data as made
from fixture import ION, WithPage


class LineageTest(WithPage):
    def steps(self):
        return [" ".join(one.split()) for one in self.page.texts(".lineage > li")]

    def test_a_decision_s_drawer_leads_back_to_data_and_to_who_let_the_model_through(self):
        page = self.page
        decision = self.state.push_decision(verdict="deny", person="georg", error=None)
        page.go(f"{ION}/decisions?id={decision['id']}")
        page.until(lambda: len(self.steps()) == 4, "the steps")
        for step, texts in zip(self.steps(), (("faces v4", "gallery, made by ann", "people v2"), ("train by ann, code 0123456789ab, because of manual by ann",),
                                              (made.MODEL, "registered by ann", "squares v3", "found what it is about"), (f"{made.ION} / {made.PIPELINE}", "training:entrance"))):
            for text in texts:
                self.assertIn(text, step)
        page.has_text(".drawer", "manual: promote by rita")
        page.has_text(".drawer", "fewer false denials")
        page.has_text(".drawer", "applied by eve")
        page.has_text(".drawer", "georg was forgotten")
        self.assertEqual(page.weak_texts(), [])

    def test_a_model_version_says_where_it_came_from_and_how_often_it_decided(self):
        page = self.page
        page.go(f"models/{made.MODEL}/v2")
        page.one('[data-version] a[href*="tab=lineage"]').click()
        page.until(lambda: "tab=lineage" in page.address() and len(self.steps()) == 4, "the steps")
        self.assertIn("one person was forgotten", self.steps()[0])
        self.assertIn(f"{made.ION} / {made.PIPELINE} finds with it since", self.steps()[3])
        page.has_text("[aria-labelledby=p-decisions-that-it-made]", "1,234")
        page.has_text("main", "a person approves")
        self.assertEqual(page.weak_texts(), [])

    def test_a_card_is_a_page_and_a_file(self):
        page = self.page
        page.go(f"models/{made.MODEL}/v2?tab=card")
        for text in ("No validation was measured", "For **doors**", "face-embed", "by ann; 1 people were forgotten", "0123456789abcdef", "north", "drift of score"):
            page.has_text("main", text)
        link = page.one("a[download]")
        self.assertIn(f"/models/{made.MODEL}/versions/2/card?format=markdown", link.get_attribute("href"))
        self.assertEqual(link.get_attribute("download"), f"{made.MODEL}-v2.md")
        self.assertEqual(page.weak_texts(), [])

    def test_a_dataset_version_leads_to_every_place_that_decided_with_it(self):
        page = self.page
        page.go("datasets/faces?v=v2")
        page.has_text(".drawer", "Lineage of v2")
        page.until(lambda: any("made by ann" in one for one in self.steps()), "the version")
        page.has_text(".drawer", "at least 1,234 decisions")
        page.has_text(".drawer", f"{made.MODEL} v1, serving")
        self.assertEqual(page.weak_texts(), [])


class PhoneTest(WithPage):
    def test_nothing_scrolls_sideways(self):
        page = self.page
        page.resize(390, 844)
        decision = self.state.push_decision(verdict="grant", person="ada b", error=None)
        for address in (f"models/{made.MODEL}/v2?tab=lineage", f"models/{made.MODEL}/v2?tab=card", "datasets/faces?v=v2", f"{ION}/decisions?id={decision['id']}"):
            page.go(address)
            page.one(".lineage, [aria-label='Known limits']")
            self.assertLessEqual(page.overflow_px(), 0, address)


CASES = [LineageTest, PhoneTest]

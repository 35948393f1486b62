"""What teams share: queues and quotas, jobs and what can be done to them, what was used."""

import json

from fixture import WithPage


def slide(page, name, value):
    """Moves a slider as a hand does: it follows, and is let go."""
    page.one(f'.slider input[name="{name}"]')
    page.js("""const s = document.querySelector(`.slider input[name="${arguments[0]}"]`)
        s.value = arguments[1]
        for (const kind of ['input', 'change']) s.dispatchEvent(new Event(kind, {bubbles: true}))""", name, value)


class QueueTest(WithPage):
    def test_a_bar_says_what_is_used_owed_borrowed_and_waited_for(self):
        page = self.page
        page.go("queues")
        page.has_text(".page-head .sub", "2 devices · guarantees 2 of 2 · 1 job waits for 1 device")
        labels = page.js("return [...document.querySelectorAll('.quota')].map((e) => e.ariaLabel)")
        self.assertEqual(labels[0], "default uses 2 devices of a limit of 2, guarantee 1, borrows 1")
        self.assertEqual(labels[1], "speech uses 0 devices of a limit of none, guarantee 1, waits for 1")
        widths = page.js("return [...document.querySelector('[data-row=default] .bar').children].map((e) => e.style.width)")
        self.assertEqual(widths, ["50%", "50%", "0%"])
        self.assertEqual(page.js("return document.querySelector('[data-row=default] .tick').style.left"), "50%")

    def test_a_guarantee_is_changed_after_one_has_seen_who_is_affected(self):
        page = self.page
        page.go("queues/speech")
        page.has_text("#queue-title", "Change speech")
        slide(page, "guarantee", 2)
        page.has_text(".slider", "1 → 2")
        page.has_text(".what-if", "nightly-evaluation")
        self.assertEqual([one[:2] for one in self.state.requests if one[1] != "/api/v1/what-if"], [], "nothing is changed by looking")
        asked = json.loads(self.last_request()[3])
        self.assertEqual(asked["shares"]["accelerators"], {"guarantee": 2, "weight": 1, "limit": None})
        page.has_text(".note", "Guarantees would be 3 of 2 devices. Take 1 from default, 1 → 0")
        self.assertFalse(page.button("Apply to speech").is_enabled())
        page.button("Take it from default").click()
        page.button("Apply to speech and default").click()
        page.until(lambda: len([one for one in self.state.requests if one[0] == "PUT"]) == 2, "both queues to be set")
        taken, given = [(path, json.loads(body)) for method, path, _, body in self.state.requests if method == "PUT"]
        self.assertEqual((taken[0], taken[1]["shares"]["accelerators"]["guarantee"]), ("/api/v1/queues/default", 0))
        self.assertEqual((given[0], given[1]["shares"]["accelerators"]["guarantee"]), ("/api/v1/queues/speech", 2))
        self.assertEqual(given[1]["project"], "speech", "all of it is set anew: what is not said would go")

    def test_who_may_not_change_a_queue_sees_who_can_give_the_right(self):
        page = self.page
        self.state.rights.remove("change queues")
        page.driver.refresh()
        page.go("queues/speech")
        slide(page, "weight", 3)
        page.has_text(".what-if", "Nobody")
        page.button("Apply to speech").click()
        page.has_text("dialog", "You may not change queues")
        page.has_text("dialog", "It takes the role admin")
        self.assertEqual([one[0] for one in self.state.requests if one[1] != "/api/v1/what-if"], [])

    def test_what_somebody_changed_meanwhile_is_not_overwritten(self):
        page = self.page
        page.go("queues/default")
        slide(page, "weight", 3)
        page.has_text(".what-if", "Nobody")
        self.state.queues[0]["priority"] = 7
        page.button("Apply to default").click()
        page.has_text(".what-if-box .failed", "Somebody has changed default meanwhile")
        self.assertEqual([one[0] for one in self.state.requests if one[0] == "PUT"], [])

    def test_a_queue_is_made_for_a_project(self):
        page = self.page
        page.go("queues")
        page.button("New queue").click()
        page.one('dialog input[name="name"]').send_keys("research")
        page.button("Make the queue", "dialog").click()
        page.has_text("#queue-title", "Change research")
        method, path, _, body = next(one for one in self.state.requests if one[0] == "PUT")
        self.assertEqual((path, json.loads(body)["priority"]), ("/api/v1/queues/research", 100))


CASES = [QueueTest]

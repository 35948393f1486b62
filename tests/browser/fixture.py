"""What the page's tests stand on: one browser for all of them, and a stand-in server for each."""

import re
import unittest

import page as browser
from fake_server import FakeServer

ION = "ions/building-security"
SCREENS = ["home", "ions", f"{ION}/graph", f"{ION}/decisions", f"{ION}/passages", f"{ION}/passages?view=again", f"{ION}/review", f"{ION}/health", f"{ION}/snapshots", f"{ION}/lists", f"{ION}/people/new", f"{ION}/builder", f"{ION}/builder?node=entrance&tab=yaml", "ions/new", f"{ION}/document", "experiments", "experiments/Default", "sweeps", "notebooks", "models", "deployments", "deployments/clothes", "jobs", "jobs/new", "cameras", "cameras?view=table", "alerts", "alerts?tab=history", "alerts?tab=rules", "alerts?tab=receivers", "alerts?tab=silences",
           "events", "audit", "nodes", "nodes?view=table", "clusters", "queues", "queues/default", "datasets", "storage", "people", "people?tab=roles", "people?tab=tokens", "people?tab=secrets", "people?tab=kept", "nodes/rack1-a", "usage"]

# Buttons that change nothing of the server's: what is shown, how, and what is copied from it.
LOOKS = {"More", "Try now", "Both", "v1", "v2", "Columns 6 of 12", "Download CSV", "Fit", "+", "−", "rate limit → manual", "Pause", "Replay", "Play", "Copy", "Following", "Ask again about dock"}


def acts_of(page):
    """What can be pressed in the screen that is shown and changes something, by its words: not what is locked, or off."""
    found = page.js("""return [...document.querySelectorAll('main button, main .acts-menu summary, main input:is([type=file], [type=range], [type=checkbox])')]
        .filter((b) => !b.disabled && !b.closest('fieldset[disabled]') && !b.classList.contains('locked') && !b.matches('.tbl, .id, .icon-button, .sketch-body, .port, .time-range *, .timeline *, [data-screen=queues] .slider *, table [type=checkbox]'))
        .map((b) => b.textContent.replace(/\\s+/g, ' ').trim() || b.ariaLabel)""")
    return {one for one in found if one not in LOOKS and not re.fullmatch(r"\d\d:\d\d:\d\d", one or "")}


_page = None


def shared():
    """The one browser of all tests: starting one takes seconds."""
    global _page
    _page = _page or browser.Page()
    return _page


def close():
    if _page:
        _page.close()


class WithPage(unittest.TestCase):
    maxDiff = None
    is_empty = False

    def setUp(self):
        self.page = shared()
        self.page.resize(1280, 900)
        self.page.media()
        self.server = FakeServer(is_empty=self.is_empty)
        self.state = self.server.state
        self.page.driver.get(self.server.login)
        self.page.one("#log-in").click()
        self.page.one(".topbar")
        self.page.js("localStorage.clear()")
        self.page.until(lambda: self.page.text(".connection") == "Live", "the stream")
        self.may_fail_requests = False

    def tearDown(self):
        self.page.driver.get("about:blank")  # before the log is read: what the page still asks for belongs to this test
        errors = self.page.console_errors()
        if self.may_fail_requests:  # the browser reports each refused request; scripts still must not fail
            errors = [one for one in errors if one["source"] != "network"]
        self.server.close()
        self.assertEqual(errors, [], "the console must stay clean")

    def last_request(self):
        self.page.until(lambda: self.state.requests, "a request that changes something")
        return self.state.requests[-1]

    def until_requested(self, method, path=""):
        """The newest change, once it is of this method and its path ends so."""
        def newest():
            return next((one for one in self.state.requests[-1:] if one[0] == method and one[1].endswith(path)), None)

        return self.page.until(newest, f"{method} …{path}")

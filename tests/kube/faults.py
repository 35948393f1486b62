"""Faults that a test switches on by name: how often, how likely, and for which requests.

    faults.on("throttle", count=3, retry_after=0)
    faults.on("drop", count=1, when="after", where="POST .*/jobs")

`where` is a regular expression that "METHOD path?query" must match. What a fault does is said where it is taken:

    gone             watches end with an ERROR event of code 410 after `after` events (0); with http=True they are answered 410
    throttle         429 with Retry-After: `retry_after` (1)
    conflict         409 for writes of what is there
    drop             the connection is cut: when="before" the effect, "after" it without an answer, or in the
                     "middle" of the answer, which is the default; a watch in the middle of its line after `after` events (0)
    slow_watch       events come `seconds` (0.5) late
    split_watch      the lines of a watch come in chunks of `size` (7) bytes, which end anywhere
    refuse_admission a webhook refuses what is created: `message`, `webhook`, `code` (403)
    quota            pods are refused as over a quota
    slow_binding     a binding takes `seconds` (0.5)
    error500, unavailable503
    silent           the request is read and never answered
    stale_list       lists with resourceVersion=0 answer the state `behind` (10) revisions ago
    apiserver_away   the port is closed and all connections are cut, for `seconds`, or until the fault is switched off
"""
import collections
import random
import re
import threading

NAMES = ("gone", "throttle", "conflict", "drop", "slow_watch", "split_watch", "refuse_admission", "quota", "slow_binding", "error500",
         "unavailable503", "silent", "stale_list", "apiserver_away")


class Fault:
    def __init__(self, name, count, probability, where, options):
        self.name, self.count, self.probability = name, count, probability
        self.where = re.compile(where) if where else None
        self.options = options


class Faults:
    """All faults that are on. `taken` counts how often each came to pass."""

    def __init__(self, seed=1):
        self.lock = threading.Lock()
        self.random = random.Random(seed)
        self.faults = []
        self.taken = collections.Counter()
        self.go_away = self.come_back = self.wake = None  # functions of the server
        self.is_away = False

    def on(self, name, count=None, probability=1.0, where=None, **options):
        """Switch a fault on: for `count` requests (None: until it is switched off), each with that probability."""
        if name not in NAMES:
            raise ValueError(f"no fault is called {name}")
        if name == "drop":
            options.setdefault("when", "middle")
        if name == "apiserver_away":
            self.leave(options.get("seconds"))
            return
        with self.lock:
            self.faults.append(Fault(name, count, probability, where, options))
        self.wake()  # watches that run are befallen, too

    def off(self, name=None):
        """Switch off a fault, or all."""
        with self.lock:
            self.faults = [fault for fault in self.faults if name not in (None, fault.name)]
        if name in (None, "apiserver_away"):
            self.return_again()

    def leave(self, seconds):
        """Close the server's port; open it again after so many seconds, or by off()."""
        self.taken["apiserver_away"] += 1
        self.is_away = True
        self.go_away()
        if seconds is not None:
            timer = threading.Timer(seconds, self.return_again)
            timer.daemon = True
            timer.start()

    def return_again(self):
        if self.is_away:
            self.is_away = False
            self.come_back()

    def take(self, name, what, **options):
        """The fault of that name that befalls a request, or None. `options` must be those of the fault."""
        if not self.faults:
            return None
        with self.lock:
            for fault in self.faults:
                if fault.name == name and self.befalls(fault, what, options):
                    return self.count(fault)
        return None

    def befalls(self, fault, what, options):
        if fault.where is not None and not fault.where.search(what):
            return False
        if any(fault.options.get(key) != value for key, value in options.items()):
            return False
        return fault.probability >= 1 or self.random.random() < fault.probability

    def count(self, fault):
        self.taken[fault.name] += 1
        if fault.count is not None:
            fault.count -= 1
            if fault.count <= 0:
                self.faults.remove(fault)
        return fault

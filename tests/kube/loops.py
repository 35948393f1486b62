"""What all controllers are made of: a thread with a queue of keys, each with the time when it is due."""
import heapq
import random
import threading
import time
import traceback


class Loop(threading.Thread):
    """Calls sync(key) some time after add(key). A key that is added again before is done once.

    `delay` is how long it waits, from … to seconds: what a real controller's watch and queue take. While `is_on` is False
    keys are kept and nothing is done.
    """

    def __init__(self, name, api):
        super().__init__(name=name, daemon=True)
        self.api, self.store = api, api.store
        self.delay = (0.0, 0.02)
        self.is_on = True
        self.is_stopping = False
        self.heap, self.due = [], {}
        self.condition = threading.Condition()
        self.random = random.Random(name)
        self.failures = []  # tracebacks of what went wrong in here

    def add(self, key, after=None):
        """Do a key after so many seconds; None: after the loop's delay."""
        when = time.monotonic() + (self.random.uniform(*self.delay) if after is None else after)
        with self.condition:
            if self.due.get(key, when + 1) <= when:
                return
            self.due[key] = when
            heapq.heappush(self.heap, (when, str(key), key))
            self.condition.notify()

    def switch(self, is_on):
        with self.condition:
            self.is_on = is_on
            self.condition.notify()

    def stop(self):
        with self.condition:
            self.is_stopping = True
            self.condition.notify()

    def run(self):
        while (key := self.take()) is not None:
            try:
                self.sync(key)
            except Exception:  # a loop goes on; a test looks at failures
                self.failures.append(traceback.format_exc())

    def take(self):
        """The next key that is due; None when the loop is to stop."""
        with self.condition:
            while not self.is_stopping:
                left = self.heap[0][0] - time.monotonic() if self.heap else None
                if self.is_on and left is not None and left <= 0:
                    when, _, key = heapq.heappop(self.heap)
                    if self.due.get(key) == when:
                        del self.due[key]
                        return key
                    continue
                self.condition.wait(left if self.is_on else None)
        return None

    def sync(self, key):
        raise NotImplementedError

    def follow(self, resource_key, event):
        """Called under the store's lock for every change: add what is to be done."""

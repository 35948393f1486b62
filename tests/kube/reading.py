"""Lists and watches: selectors, pages, revisions, bookmarks."""
import base64
import json
import time

from . import status, values
from .store import watch_line, whole
from .wire import Closed

BOOKMARK_SECONDS = 1.0
TOO_OLD_PAGE = ("The provided continue parameter is too old to display a consistent list result. You can start a new list without the "
                "continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with "
                "the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the "
                "first chunk was returned and now may show up in the list.")
FUTURE_WAIT_SECONDS = 0.5  # how long a read waits for a revision that has not come; the real server waits three seconds


class Selection:
    """Which objects a list or a watch is of."""

    def __init__(self, resource, namespace, query, name=""):
        self.namespace, self.tests = namespace, []
        if name:
            self.tests.append(lambda obj: obj["metadata"]["name"] == name)
        try:
            if query.get("labelSelector"):
                self.tests.append(values.label_selector(query["labelSelector"]))
            if query.get("fieldSelector"):
                self.tests.append(values.field_selector(query["fieldSelector"], resource.fields))
        except ValueError as problem:
            raise status.bad_request(str(problem)) from problem

    def has(self, item):
        if item is None or self.namespace and item.key[0] != self.namespace:
            return False
        return all(test(item.obj) for test in self.tests)


def number(query, key):
    """A number of the query; None when it is absent."""
    text = query.get(key, "")
    if text == "":
        return None
    if not text.isdigit():
        raise status.bad_request(f'strconv.ParseUint: parsing "{text}": invalid syntax')
    return int(text)


def page_token(revision, key):
    start = f"{key[0]}/{key[1]}\x00" if key[0] else f"{key[1]}\x00"
    record = {"v": "meta.k8s.io/v1", "rv": revision, "start": start}
    return base64.urlsafe_b64encode(json.dumps(record).encode()).decode().rstrip("=")


def read_page_token(text):
    """(revision, key after which the page begins)"""
    try:
        record = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        namespace, _, name = record["start"].rstrip("\x00").rpartition("/")
        return record["rv"], (namespace, name)
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise status.bad_request(f"continue key is not valid: {problem}") from problem


class Reader:
    def __init__(self, store, faults):
        self.store, self.faults = store, faults
        self.n_bookmarks = 0  # raised to send bookmarks before they are due

    # ---- lists --------------------------------------------------------------------------------------

    def list(self, resource, selection, query, what):
        """The body of a list."""
        limit, asked = number(query, "limit"), number(query, "resourceVersion")
        exact = query.get("resourceVersionMatch") == "Exact"
        with self.store.lock:
            table = self.store.table(resource.key)
            after = None
            if query.get("continue"):
                if asked:
                    raise status.bad_request("specifying resource version is not allowed when using continue")
                revision, after = read_page_token(query["continue"])
                items = self.page_items(table, revision, after)
                revision = self.store.revision if revision < 0 else revision
            else:
                revision, items = self.revision_items(table, asked, exact, limit, what)
        if asked == 0 and not exact:
            limit = None  # such lists come from the cache of the server, which knows no pages
        return list_body(resource, selection, revision, items, after, limit)

    def page_items(self, table, revision, after):
        if revision < 0:
            return table.items.copy()
        items = table.at(revision)
        if items is None:
            raise status.expired(TOO_OLD_PAGE, {"continue": page_token(-1, after)})
        return items

    def revision_items(self, table, asked, exact, limit, what):
        """(revision, items) of a list's first page."""
        current = self.store.revision
        if asked and asked > current:
            self.wait_for(table, asked)
            current = self.store.revision
        if asked and (exact or limit) and asked < current:
            items = table.at(asked)
            if items is None:
                raise status.expired("The resourceVersion for the provided list is too old.")
            return asked, items
        fault = self.faults.take("stale_list", what) if asked == 0 else None
        if fault is not None:
            older = max(current - fault.options.get("behind", 10), table.compacted)
            return older, table.at(older)
        return current, dict(table.items)

    def wait_for(self, table, revision):
        """Wait a little for a revision that has not come yet."""
        deadline = time.monotonic() + FUTURE_WAIT_SECONDS
        while self.store.revision < revision:
            left = deadline - time.monotonic()
            if left <= 0:
                raise status.too_large_version(revision, self.store.revision)
            table.changed.wait(left)

    # ---- watches ------------------------------------------------------------------------------------

    def watch(self, connection, resource, selection, query, what):
        """Stream events until the client leaves, its time is over, or a fault ends it."""
        Watch(self, connection, resource, selection, query, what).run()


def list_body(resource, selection, revision, items, after, limit):
    chosen = [item for key, item in sorted(items.items()) if (after is None or key > after) and selection.has(item)]
    meta = {"resourceVersion": str(revision)}
    if limit and len(chosen) > limit:
        meta["continue"] = page_token(revision, chosen[limit - 1].key)
        if not selection.tests:
            meta["remainingItemCount"] = len(chosen) - limit
        chosen = chosen[:limit]
    head = {"kind": resource.kind + "List", "apiVersion": resource.api_version, "metadata": meta}
    bodies = [whole(resource, item) if resource.is_custom else item.body() for item in chosen]
    return json.dumps(head, separators=(",", ":"))[:-1].encode() + b',"items":[' + b",".join(bodies) + b"]}"


class Watch:
    """One watch of a client."""

    def __init__(self, reader, connection, resource, selection, query, what):
        self.store, self.faults, self.reader = reader.store, reader.faults, reader
        self.connection, self.resource, self.selection, self.what = connection, resource, selection, what
        self.table = self.store.table(resource.key)
        self.wants_bookmarks = query.get("allowWatchBookmarks") in ("true", "1")
        seconds = number(query, "timeoutSeconds")
        self.end = time.monotonic() + (seconds if seconds else 1800)
        self.next_bookmark = time.monotonic() + BOOKMARK_SECONDS
        self.n_bookmarks = reader.n_bookmarks
        if self.faults.take("gone", what, http=True) is not None:
            raise status.expired("too old resource version: 1 (2)")
        self.gone = self.drop = None  # faults, and how many events are sent before they come to pass
        self.gone_at = self.drop_at = 0
        self.split = self.faults.take("split_watch", what)
        self.n_sent = 0
        self.revision = 0  # up to which the client knows all
        self.number = 0  # of the event that comes next
        self.first = self.first_lines(number(query, "resourceVersion"))

    def first_lines(self, asked):
        """Where the watch begins; the lines of what is there already, for one that names no revision. It may be too old."""
        with self.store.lock:
            if asked and asked > self.store.revision:
                self.reader.wait_for(self.table, asked)
            self.revision = asked or self.store.revision
            if not asked:
                self.number = self.table.next()
                return [watch_line("ADDED", self.resource, item) for _, item in sorted(self.table.items.items())
                        if self.selection.has(item)]
            self.number = self.table.number_after(asked)
            if self.number is None:
                return [self.error_line(f"too old resource version: {asked} ({self.table.compacted})")]
            return []

    @staticmethod
    def error_line(message):
        return json.dumps({"type": "ERROR", "object": status.expired(message).status}).encode() + b"\n"

    def run(self):
        self.connection.begin_stream()
        self.take_faults()
        self.send_all(self.first)
        while self.number is not None and not self.must_end():
            lines = self.next_lines()
            self.take_faults()
            if lines is None:
                self.connection.chunk(self.error_line(f"too old resource version: {self.revision} ({self.table.compacted})"))
                break
            fault = self.faults.take("slow_watch", self.what) if lines else None
            if fault is not None:
                time.sleep(fault.options.get("seconds", 0.5))
            self.send_all(lines)
            self.bookmark_if_due()
        self.connection.end_stream()

    def take_faults(self):
        """Faults may be switched on while the watch runs."""
        if self.gone is None:
            self.gone = self.faults.take("gone", self.what, http=None)
            self.gone_at = self.n_sent + (self.gone.options.get("after", 0) if self.gone is not None else 0)
        if self.drop is None:
            self.drop = self.faults.take("drop", self.what, when="middle")
            self.drop_at = self.n_sent + (self.drop.options.get("after", 0) if self.drop is not None else 0)

    def must_end(self):
        """Is the watch over? What the fault `gone` says is said here."""
        if self.gone is not None and self.n_sent >= self.gone_at:
            self.connection.chunk(self.error_line(f"too old resource version: {self.revision} ({self.store.revision})"))
            return True
        return time.monotonic() >= self.end

    def next_lines(self):
        """Wait for events, or for the time of a bookmark: the lines to send. None: the history no longer reaches back."""
        with self.table.changed:
            if self.table.next() == self.number:
                self.table.changed.wait(max(0.0, min(self.end, self.next_bookmark) - time.monotonic()))
            if self.connection.is_cut:
                raise Closed
            events = self.table.since(self.number)
            if events is None:
                return None
            self.number += len(events)
            self.revision = max(self.revision, events[-1].revision if events else self.store.revision)
        kinds = [(event, self.kind_of(event)) for event in events]
        return [event.line(kind, self.resource) for event, kind in kinds if kind is not None]

    def kind_of(self, event):
        """What an event is to this watch: objects enter and leave its selection."""
        was, is_now = self.selection.has(event.old), self.selection.has(event.new)
        if is_now:
            return "MODIFIED" if was else "ADDED"
        return "DELETED" if was else None

    def send_all(self, lines):
        """Send lines, together when nothing is to come between them."""
        if self.drop is None and self.gone is None and self.split is None:
            if lines:
                self.connection.chunk(b"".join(lines))
                self.n_sent += len(lines)
            return
        for line in lines:
            if self.gone is not None and self.n_sent >= self.gone_at:
                return
            self.send(line)

    def send(self, line):
        if self.drop is not None and self.n_sent >= self.drop_at:
            self.connection.part_of_chunk(line)
            raise Closed
        size = self.split.options.get("size", 7) if self.split is not None else len(line)
        for at in range(0, len(line), size):
            self.connection.chunk(line[at:at + size])
        self.n_sent += 1

    def bookmark_if_due(self):
        now = time.monotonic()
        if now < self.next_bookmark and self.n_bookmarks == self.reader.n_bookmarks:
            return
        self.next_bookmark, self.n_bookmarks = now + BOOKMARK_SECONDS, self.reader.n_bookmarks
        if self.connection.has_left():
            raise Closed
        if self.wants_bookmarks:
            empty = {"kind": self.resource.kind, "apiVersion": self.resource.api_version,
                     "metadata": {"resourceVersion": str(self.revision), "creationTimestamp": None}}
            self.connection.chunk(json.dumps({"type": "BOOKMARK", "object": empty}, separators=(",", ":")).encode() + b"\n")

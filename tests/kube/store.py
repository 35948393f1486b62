"""The objects of the server: one sequence of revisions, a table for each resource, and its history for watches.

Objects are dicts that nobody changes once they are stored, without kind and apiVersion: these are of the table. A list of
an older revision is made of the present and of the history backwards.
"""
import collections
import json
import threading

HISTORY = 20000
FIRST_REVISION = 1000


class Item:
    """One object as it is stored; `body` is its JSON without kind and apiVersion, made when it is first asked for."""

    __slots__ = ("key", "obj", "revision", "text")

    def __init__(self, key, obj, revision):
        self.key, self.obj, self.revision, self.text = key, obj, revision, None

    def body(self):
        if self.text is None:
            self.text = json.dumps(self.obj, separators=(",", ":"), ensure_ascii=False).encode()
        return self.text

    def copy(self):
        """The object, for one that changes it."""
        return json.loads(self.body())


class Event:
    """A change: `old` and `new` are items, one of them None when the object came or went. `item` is what watchers are shown."""

    __slots__ = ("revision", "old", "new", "item", "lines")

    def __init__(self, revision, old, new, item):
        self.revision, self.old, self.new, self.item, self.lines = revision, old, new, item, {}

    def line(self, kind, resource):
        """The line of a watch, made once for all watchers."""
        line = self.lines.get(kind, None)
        if line is None:
            line = self.lines[kind] = watch_line(kind, resource, self.item)
        return line


def whole(resource, item):
    """The JSON of an object with its kind and apiVersion."""
    return resource.prefix + b"," + item.body()[1:]


def watch_line(kind, resource, item):
    return b'{"type":"' + kind.encode() + b'","object":' + whole(resource, item) + b"}\n"


class Table:
    """The objects of one resource, by (namespace, name)."""

    def __init__(self, lock):
        self.items = {}
        self.history = collections.deque()
        self.first = 0  # the number of the oldest event of the history, counted from the table's beginning
        self.compacted = FIRST_REVISION  # what happened up to this revision is no longer known
        self.changed = threading.Condition(lock)

    def next(self):
        """The number that the next event will have."""
        return self.first + len(self.history)

    def number_after(self, revision):
        """The number of the first event that is newer than a revision; None when the history does not reach back so far."""
        if revision < self.compacted:
            return None
        number = self.next()
        for event in reversed(self.history):
            if event.revision <= revision:
                break
            number -= 1
        return number

    def since(self, number):
        """Events from a number on; None when they are no longer known."""
        if number < self.first:
            return None
        length = len(self.history)
        return [self.history[i] for i in range(number - self.first, length)]

    def at(self, revision):
        """Items as they were at a revision; None when it is too old."""
        if revision < self.compacted:
            return None
        items = dict(self.items)
        for event in reversed(self.history):
            if event.revision <= revision:
                break
            if event.old is None:
                items.pop(event.new.key, None)
            else:
                items[event.old.key] = event.old
        return items

    def drop_history(self, keep=0):
        """Forget all but the newest events: older revisions are then too old."""
        while len(self.history) > keep:
            self.compacted = self.history.popleft().revision
            self.first += 1


class Store:
    """All tables. A thread that reads or changes them holds `lock`."""

    def __init__(self, history=HISTORY):
        self.lock = threading.RLock()
        self.tables = {}
        self.revision = FIRST_REVISION
        self.history = history
        self.listeners = []  # functions (key of the resource, event), called under the lock

    def table(self, resource_key):
        if resource_key not in self.tables:
            self.tables[resource_key] = Table(self.lock)
        return self.tables[resource_key]

    def get(self, resource_key, namespace, name):
        return self.table(resource_key).items.get((namespace or "", name))

    def objects(self, resource_key, namespace=None):
        """The objects of a resource, in a namespace or in all. They must not be changed."""
        with self.lock:
            return [item.obj for item in self.table(resource_key).items.values() if namespace in (None, item.key[0])]

    def put(self, resource_key, obj):
        """Store an object under its name; its resourceVersion is set."""
        metadata = obj["metadata"]
        key = (metadata.get("namespace", ""), metadata["name"])
        table = self.table(resource_key)
        self.revision += 1
        metadata["resourceVersion"] = str(self.revision)
        item = Item(key, obj, self.revision)
        old = table.items.get(key)
        table.items[key] = item
        self.record(resource_key, table, Event(self.revision, old, item, item))
        return item

    def remove(self, resource_key, namespace, name):
        """Remove an object; watchers see its last state with the revision of its removal."""
        table = self.table(resource_key)
        old = table.items.pop((namespace or "", name))
        self.revision += 1
        last = Item(old.key, old.copy(), self.revision)
        last.obj["metadata"]["resourceVersion"] = str(self.revision)
        self.record(resource_key, table, Event(self.revision, old, None, last))
        return last

    def record(self, resource_key, table, event):
        table.history.append(event)
        if len(table.history) > self.history:
            table.drop_history(self.history)
        table.changed.notify_all()
        for listener in self.listeners:
            listener(resource_key, event)

    def compact(self, keep=0):
        """Make all revisions too old except the newest `keep` of each table."""
        with self.lock:
            for table in self.tables.values():
                table.drop_history(keep)
                if not table.history:
                    table.compacted = max(table.compacted, self.revision - keep)

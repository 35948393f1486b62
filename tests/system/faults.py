"""Faults of a plant (world.py), each of which can be undone: what fails is drawn, and how, and when."""
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import time

from harness import wait_until
from shims import DISK_FAULTS

LAST_MOST_S = 40


class Fault:
    """One thing that goes wrong. lasts: how long it can, in seconds; turn: of two, the one with the lower is undone first."""
    lasts, turn = (0.1, 3), 0

    def __init__(self, world, dice):
        self.world, self.dice, self.kind, self.what = world, dice, type(self).__name__.lower(), ""
        self.choose()

    def __str__(self):
        return f"{self.kind} {self.what}".strip()

    def choose(self):
        """Whom it hits."""

    def is_possible(self):
        return True

    def is_told(self):
        """Must the server say it, if it lasts?"""
        return False

    def begin(self):
        """It happens."""

    def end(self):
        """It is undone."""

    def until(self, condition, hidden):
        try:
            wait_until(condition, 10, hidden)
        except AssertionError:
            self.world.hidden.append(hidden)


def processes(world, word):
    return [pid for pid in world.server.pids(word) if pid != world.server.process.pid]


VICTIMS = {"server": None, "agent a": None, "agent b": None, "a door": "weir-worker predict", "a replica": "weir-worker serve",
           "a supervisor": "--supervise", "a job": "python3 -c"}


class OfProcess(Fault):
    def choose(self):
        self.victim = self.what = self.dice.choice(sorted(VICTIMS))
        self.pid = self.find()

    def find(self):
        world = self.world
        if self.victim == "server":
            return world.server.process.pid
        if self.victim == "agent b":
            return world.agent.pid
        if self.victim == "agent a":
            found = [pid for pid in processes(world, " agent ") if pid not in (world.agent.pid, *processes(world, "--supervise"))]
        else:
            found = processes(world, VICTIMS[self.victim])
        return self.dice.choice(sorted(found)) if found else None

    def is_possible(self):
        return self.pid is not None

    def signal(self, number):
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            pass  # it has ended since


class Kill(OfProcess):
    turn = 1

    def begin(self):
        if self.victim == "server":
            self.world.server.kill()
        elif self.victim == "agent b":
            self.world.agent.kill()
            self.world.agent.wait()
        else:
            self.signal(signal.SIGKILL)

    def end(self):
        if self.victim == "server":
            self.world.start_server()
        elif self.victim == "agent b":
            self.world.start_agent()


class Pause(OfProcess):
    lasts = (0.1, 8)

    def is_told(self):
        return self.victim in ("agent a", "agent b", "a door", "a replica")

    def begin(self):
        self.signal(signal.SIGSTOP)

    def end(self):
        self.signal(signal.SIGCONT)
        self.world.there_since = time.monotonic() if self.victim == "server" else self.world.there_since


class Disk(Fault):
    lasts = (0.1, 6)

    def choose(self):
        self.machine, self.how = self.dice.choice("aab"), self.dice.choice(sorted(DISK_FAULTS))
        self.what = f"of {self.machine} is {self.how}"

    def is_told(self):
        return True

    def set(self, text):
        (self.world.root / f"{self.machine}.disk").write_text(text)

    def begin(self):
        self.set(DISK_FAULTS[self.how])

    def end(self):
        self.set("0")


class Clock(Fault):
    lasts = (1, 5)

    def choose(self):
        self.machine, self.by = self.dice.choice("ab"), self.dice.choice((-86400, -3600, -5, 5, 3600, 86400))
        self.what = f"of {self.machine} by {self.by} s"

    def begin(self):
        (self.world.root / f"{self.machine}.clock").write_text(str(self.by))

    def end(self):
        (self.world.root / f"{self.machine}.clock").write_text("0")


class Cable(Fault):
    lasts = (0.5, 8)

    def is_told(self):
        return True

    def begin(self):
        self.world.over_there("ip", "link", "set", "eth0", "down")

    def end(self):
        self.world.over_there("ip", "link", "set", "eth0", "up")


class Blob(Fault):
    """Its bytes change on the disk: they are never given out, and whoever looks is told."""
    turn = 2

    def is_told(self):
        return True

    def choose(self):
        version = self.world.ledger.some("version", self.dice)
        self.name = self.world.ledger.sent["version"].get(version)
        self.what = self.dice.choice(("cut", "turned", "removed"))

    def is_possible(self):
        return self.name is not None

    def begin(self):
        self.path = self.world.server.state / "blobs" / self.name[:2] / self.name
        self.good = self.path.read_bytes()
        if self.what == "removed":
            self.path.unlink()
        elif self.what == "cut":
            os.truncate(self.path, self.dice.randrange(len(self.good)))
        else:
            i = self.dice.randrange(len(self.good))
            with open(self.path, "r+b") as file:
                file.seek(i)
                file.write(bytes([self.good[i] ^ 1 << self.dice.randrange(8)]))
        try:
            self.world.blob_is_right(self.name)
            self.world.hidden.append(f"blob {self.name} is {self.what}, and was answered")
        except OSError as error:
            if re.search(r": (404|500) ", str(error)):  # the server has seen it
                seen = time.monotonic()
                self.until(lambda: self.world.red(seen), f"blob {self.name} is {self.what}, which the server has seen, and it is green")
        if self.world.server.weir("store", "verify", check=False)[0] != 3:
            self.world.hidden.append(f"blob {self.name} is {self.what}, and `weir store verify` is content")

    def end(self):
        self.world.call("PUT", f"/blobs/{self.name}", self.good)


class Page(Fault):
    """Pages of the database are overwritten while the server is down. Nothing mends them but a backup."""
    lasts = (0, 0)

    def begin(self):
        world, dice = self.world, self.dice
        world.rest()
        self.at, self.backup = time.monotonic(), world.root / f"backup-{time.monotonic_ns()}"
        world.server.weir("backup", str(self.backup))
        world.server.kill(dice.choice((signal.SIGKILL, signal.SIGTERM)))
        database = world.server.state / "weir.db"
        n_pages = database.stat().st_size // 4096
        pages = [dice.randrange(1, n_pages) for _ in range(dice.choice((1, 1, 2, 8)))]
        with open(database, "r+b") as file:
            for page in pages:
                file.seek(page * 4096)
                file.write(dice.randbytes(4096))
        is_whole = self.is_whole(database)
        self.what = f"{pages} of {n_pages}, {'not needed' if is_whole else 'damaged'}"
        try:
            world.start_server()
        except AssertionError as error:
            if "restore" not in str(error):
                world.hidden.append(f"the server did not start, and does not say what to do: {error}")
            return
        world.go_on()
        begun = time.monotonic()
        self.until(lambda: world.red(begun) or (is_whole and world.is_well(begun)), f"{self}, and neither told nor working")

    def is_whole(self, database):
        """What SQLite itself says of a copy."""
        copy = self.world.root / "copy.db"
        for end in ("", "-wal"):
            if os.path.exists(f"{database}{end}"):
                shutil.copy(f"{database}{end}", f"{copy}{end}")
        try:
            connection = sqlite3.connect(copy)
            answer = connection.execute("PRAGMA integrity_check").fetchall()
            connection.close()
        except sqlite3.DatabaseError:
            answer = None
        for path in self.world.root.glob("copy.db*"):
            path.unlink()
        return answer == [("ok",)]

    def end(self):
        world = self.world
        world.going.clear()
        wait_until(lambda: all(probe.is_idle for probe in world.probes), 60, "the probes to rest")
        subprocess.run([world.server.program[0], "server", "stop", "--tasks", "--state", str(world.server.state)], check=False,
                       capture_output=True, timeout=120)
        world.server.kill()
        for pid in world.server.pids(str(world.server.state)):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for path in world.server.state.iterdir():  # the folder itself is the other machine's, too
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        subprocess.run([world.server.program[0], "restore", str(self.backup), "--state", str(world.server.state)], check=True,
                       capture_output=True)
        shutil.rmtree(self.backup)
        world.ledger.restored(self.at)
        world.start_server()
        world.go_on()


KINDS = (Kill, Kill, Kill, Pause, Pause, Disk, Disk, Clock, Cable, Blob)


def one_of(kinds, world, dice):
    while True:
        fault = dice.choice(kinds)(world, dice)
        if fault.is_possible():
            return fault


def draw(world, dice):
    """One fault, or two at once of different kinds; the database is damaged alone."""
    first = one_of((*KINDS, Page), world, dice)
    if isinstance(first, Page) or dice.random() < 0.75:
        return [first]
    return [first, one_of([kind for kind in KINDS if not isinstance(first, kind)], world, dice)]


def hold(chosen, dice, may_last):
    """Let them last, some until they are told. @return seconds"""
    begun, world = time.monotonic(), chosen[0].world
    if may_last and any(fault.is_told() for fault in chosen) and dice.random() < 0.15:
        try:
            wait_until(lambda: world.red(begun), LAST_MOST_S, "it to be told")
            checks = json.loads(world.server.weir("doctor", "-o", "json", check=False)[1])
            if {"platform": "ok"} in [{one["check"]: one["verdict"]} for one in checks] and world.red():
                world.hidden.append(f"`weir doctor` is content with {world.red()}")
        except AssertionError:
            world.hidden.append(f"{' and '.join(map(str, chosen))} lasted for {LAST_MOST_S} s and was not told")
    else:
        seconds = max(dice.uniform(*fault.lasts) for fault in chosen)
        time.sleep(seconds if may_last else seconds / 2)  # what is tried is that time passes
    return time.monotonic() - begun

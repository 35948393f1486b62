"""People walk by cameras and through doors while everything that has a part in it is killed, in bursts: what was seen, decided and done is compared.

The records are of others than the one that decides: of the cameras (who walked by, noted before it could be seen), of the server, of a file of
decisions, and of each door's controller (what it did).
"""
import collections
import datetime
import json
import math
import os
import pathlib
import random
import signal
import subprocess
import sys
import time
import zlib

import doors_test
import harness
import howto_given
from harness import HttpError, Server, wait_until

sys.path.insert(0, str(harness.ROOT / "bench"))
from kills import kill_process, start_time  # noqa: E402
from serving import drawn_face, free_port  # noqa: E402

KINDS = ("camera", "replica", "agent", "server", "controller", "broker")
TOUCHES = {"camera", "replica", "agent"}  # who walks by meanwhile may be seen in part, or not at all
CAMERAS = ("door-1", "door-2")
PEOPLE, BARRED, UNKNOWN = ["p0", "p1", "p2", "p3"], "p3", "p4"
WALK_MS, GONE_MS = 2400, 800  # how long they are in the picture; and not seen until they have passed
SLACK_MS = 200  # between a kill and our note of it
SIDE, SEEN, FACE = 32, 120, 40  # how wide a face is as drawn, in the cameras' picture, and in the detector's input
BRIGHT, WALL = 150, 66  # tones of a face and of the wall
NO_ANSWER = (OSError, ValueError, KeyError, HttpError)
OUTCOMES = {"done", "repeated", "late", "silent", "refused"}


def ms_of(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000


def draw_face(name, i):
    """A bright face, SIDE × SIDE."""
    pixels = drawn_face(zlib.crc32(name.encode()), i, SIDE)[-SIDE * SIDE:]
    lift = BRIGHT - sum(pixels) / len(pixels)
    return bytes(int(min(max(tone + lift, 0), 255)) for tone in pixels)


def write_photos(folder, name, n, is_seen):
    """Photos of one person; seen: as by a camera of the demo, before its wall, into which the edges go."""
    folder.mkdir(parents=True)
    for i in range(n):
        face, shown = draw_face(name, i), bytearray()
        for y in range(SEEN + 80 if is_seen else 0):
            for x in range(2 * SEEN):
                left, top = x - SEEN // 2, y - 40
                is_face = 0 <= left < SEEN and 0 <= top < SEEN
                share = min(1, min(left, SEEN - 1 - left, top) / 12) if is_face else 0
                shown.append(int(WALL + (face[top * SIDE // SEEN * SIDE + left * SIDE // SEEN] - WALL) * share) if is_face else WALL)
        size = (2 * SEEN, SEEN + 80) if is_seen else (SIDE, SIDE)
        (folder / f"{i}.pgm").write_bytes(b"P5\n%d %d\n255\n" % size + (shown or face))


def write_recogniser(file):
    """An ONNX file that knows a face by how bright its parts are: 6 × 6 of them, of 8 × 8 without the edges, before their mean."""
    inner = [8 * y + x for y in range(1, 7) for x in range(1, 7)]
    centred = [(row == column) - (row in inner) / len(inner) for row in range(64) for column in inner]
    file.write_bytes(harness.onnx_model(
        [("Conv", ["x", "part"], "parts", [("strides", [4, 4])]), ("Flatten", ["parts"], "flat"), ("MatMul", ["flat", "centred"], "y")],
        {"part": ((1, 1, 4, 4), [1 / 16] * 16), "centred": ((64, len(inner)), centred)}, ("x", (None, 1, SIDE, SIDE)), ("y", (None, len(inner)))))


def lines_of(path):
    """Whole lines: what stands behind the last newline is being written."""
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]] if path.exists() else []


class Site:
    """A server, two cameras of the network, a door at each, and a broker between."""

    def __init__(self, seed, say):
        self.dice, self.say = random.Random(seed), say
        self.server = Server("--listen", f"127.0.0.1:{free_port()}")  # where it is again after each kill
        self.root, self.programs, self.bursts, self.killed, self.deaths = self.server.root, {}, [], collections.Counter(), []
        self.ports = {"broker": free_port(), "cameras": free_port()}

    # ---- what runs --------------------------------------------------------------------------------------------------

    def begin(self, name):
        controller = [sys.executable, str(pathlib.Path(__file__).with_name("door_controller.py"))]
        argv = {"broker": [doors_test.BROKER, "-c", str(self.root / "mosquitto.conf")],
                "cameras": [harness.WEIR, "demo", "camera", "--faces", str(self.root / "people"), "--cameras", str(len(CAMERAS)), "--work",
                            str(self.root / "walks"), "--listen", f"127.0.0.1:{self.ports['cameras']}"],
                **{f"controller of {door}": [*controller, str(self.root / door), "mqtt", str(self.ports["broker"]), f"weir/default/door/{door}"]
                   for door in CAMERAS}}[name]
        self.programs[name] = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def end(self, name, number=signal.SIGKILL):
        program = self.programs.pop(name)
        program.send_signal(number)
        program.wait()

    def start(self):
        for name in (*PEOPLE, UNKNOWN):
            write_photos(self.root / "people" / name, name, 12, False)
        for door in CAMERAS:
            (self.root / door).mkdir()
        (self.root / "mosquitto.conf").write_text(f"listener {self.ports['broker']} 127.0.0.1\nallow_anonymous true\n"
                                                  f"persistence true\nuser root\npersistence_location {self.root}/\n")
        howto_given.detector(self.root / "faces.onnx", FACE, [math.log(FACE / 4)] * 2)
        for name in ("broker", "cameras", *(f"controller of {door}" for door in CAMERAS)):
            self.begin(name)
        server = self.server.start()
        server.post("/datasets", {"name": "faces"})
        for person in PEOPLE:
            write_photos(self.root / "faces" / person, person, 6, True)
        server.weir("dataset", "put", "faces", str(self.root / "faces"))
        server.post("/datasets/faces/versions")
        write_recogniser(self.root / "recogniser.onnx")
        (self.root / "rule.json").write_text(json.dumps({"width": SIDE, "height": SIDE, "output_kind": "embedding"}))
        server.weir("model", "push", "recogniser", str(self.root / "recogniser.onnx"), "--preprocess", str(self.root / "rule.json"))
        server.weir("model", "push", "finder", str(self.root / "faces.onnx"), "--input", "input.1=N,3,H,W")
        server.post("/ions", self.document())
        server.request("PUT", f"/api/v1/ions/site/members/{BARRED}", {"list": "deny"})
        self.wait_seen(0, 120)

    def document(self):
        cameras = [{"name": name, "url": f"rtsp://127.0.0.1:{self.ports['cameras']}/{name}"} for name in CAMERAS]
        doors = [{"name": name, "by": {"kind": "mqtt", "url": f"mqtt://127.0.0.1:{self.ports['broker']}"}} for name in CAMERAS]
        return {"kind": "ion", "name": "site", "pipelines": [
            {"name": "entrance", "type": "prediction", "source": {"kind": "rtsp", "fps": 10, "cameras": cameras}, "doors": doors,
             "gallery": {"dataset": "faces", "default": "allow", "false_accept_rate": 0.05},
             "sinks": [{"kind": "jsonl", "path": str(self.root / "decisions.jsonl")}],
             "stages": ["decode", {"kind": "detect", "model": "finder", "min_face": 60, "overlap": 0.1},
                        {"kind": "align", "by": "box", "left": 0, "top": 0, "right": 1, "bottom": 1}, "embed", "match",
                        {"kind": "track", "gone_ms": GONE_MS, "accept": 0.2}, "decide"]}],
            "links": [{"from": {"model": "recogniser"}, "to": "entrance", "policy": "always-update"}]}

    def stop(self):
        for name in list(self.programs):
            self.end(name)
        self.server.stop()

    # ---- kills ------------------------------------------------------------------------------------------------------

    def living(self, kind):
        """Processes of this kind: (pid, start time)."""
        words = {"camera": "weir-camera", "replica": "weir-worker predict"}.get(kind)
        pids = ([self.server.agent()] if kind == "agent" else
                [pid for pid in self.server.pids(words) if "--supervise" not in harness.line_of(pid)])
        return [(pid, begun) for pid in pids if pid for begun in [start_time(pid)] if begun]

    def kill(self, kind):
        """One of its processes, which is there within seconds. Ours are begun again, as a manager of services would."""
        if kind == "server":
            self.server.kill()
            time.sleep(self.dice.choice([0, 0.3, 1.5]))
            self.server.start()
        elif kind in ("controller", "broker"):
            name = f"controller of {self.dice.choice(CAMERAS)}" if kind == "controller" else kind
            self.end(name)
            time.sleep(self.dice.choice([0, 0.3, 1.5]))
            self.begin(name)
        else:
            def is_killed():
                try:
                    living = self.living(kind)
                except OSError:  # it ended meanwhile
                    return False
                return living and kill_process(*self.dice.choice(living))
            wait_until(is_killed, 40, f"a {kind} to kill, after {self.bursts[-2:]}\n{self.server.log_text()}")
        self.killed[kind] += 1
        self.deaths.append((kind, time.time() * 1000))

    def burst(self, kinds):
        """Kills, quickly one after the other, and how long it takes until everything is seen and decided again."""
        self.bursts.append({"kinds": kinds, "from_ms": time.time() * 1000})
        for kind in kinds:
            self.kill(kind)
            time.sleep(self.dice.choice([0, 0.05, 0.3]))
        begun = time.monotonic()
        self.wait_seen(time.time() * 1000, 90)
        self.bursts[-1] |= {"until_ms": time.time() * 1000, "back_s": time.monotonic() - begun}
        self.say(f"{sum(self.killed.values())} kills; {', '.join(kinds)}: back after {self.bursts[-1]['back_s']:.1f} s")

    def wait_seen(self, since_ms, seconds):
        """Until the server knows, of each camera, somebody who came since."""
        def is_seen():
            try:
                return all(any(ms_of(one["passage"]["first"]) >= since_ms for one in self.server.get(
                    f"/decisions?ion=site&camera={camera}&limit=5")["items"]) for camera in CAMERAS)
            except NO_ANSWER:
                return False
        wait_until(is_seen, seconds, f"somebody decided at each camera after {self.bursts[-1:]}\n{self.server.log_text()}")

    # ---- the reckoning ----------------------------------------------------------------------------------------------

    def all(self, path):
        found, after = [], 0
        while items := self.server.get(f"{path}&after={after}&limit=1000")["items"]:
            found, after = found + items, items[-1]["seq"]
        return found

    def settle(self):
        """Nobody comes any more, and all that was to be done is done."""
        self.end("cameras", signal.SIGTERM)
        written = self.root / "decisions.jsonl"
        wait_until(lambda: len(self.all("/decisions?ion=site")) >= len(lines_of(written)), 30, "the file's decisions on the server")

        def is_told():
            granted = {one["id"] for one in self.all("/decisions?ion=site&verdict=grant")}
            ended = {one["decision"] for one in self.orders() if one["state"] != "sent"}
            return granted <= ended
        wait_until(is_told, 30, "what came of each grant at its door")

    def orders(self):
        return self.all("/orders?ion=site")

    def walks(self):
        """Who walked by, and what was decided about them; and how many decisions were about nobody."""
        walks = lines_of(self.root / "walks/sent.jsonl")
        for walk in walks:
            walk["decisions"] = []
            walk["is_touched"] = any(TOUCHES & set(one["kinds"]) and one["from_ms"] < walk["time_ms"] + WALK_MS and walk["time_ms"] < one["until_ms"]
                                     for one in self.bursts)
        n_nobody = 0
        for one in self.all("/decisions?ion=site"):
            first, last = ms_of(one["passage"]["first"]), ms_of(one["passage"]["last"])
            there = [walk for walk in walks if walk["camera"] == one["camera"] and first < walk["time_ms"] + WALK_MS and last > walk["time_ms"]]
            if there:
                there[0]["decisions"].append(one)
            n_nobody += not there
        return walks, n_nobody

    def named_again(self, walk):
        """Pairs of passages, one after the other, of one who walked by once, that name the same person."""
        named = sorted((one["person"], one["passage"]["first"], one["passage"]["last"], one["id"]) for one in walk["decisions"] if one["person"])
        spans = [{"person": person, "from": ms_of(first), "to": ms_of(last), "id": name} for person, first, last, name in named]
        return [pair for pair in zip(spans, spans[1:]) if pair[0]["person"] == pair[1]["person"]]

    def check_decisions(self, report, wrong):
        """Each passage is one decision, here and in the file, and the same; who walked by undisturbed is decided once, and nobody is named twice,
        but for whom a camera's program was killed: who is not seen for GONE_MS has passed."""
        decisions, written = self.all("/decisions?ion=site"), lines_of(self.root / "decisions.jsonl")
        walks, report["of nobody"] = self.walks()
        report |= {"decisions": len(decisions), "walks": len(walks), "walks untouched by a kill": sum(not one["is_touched"] for one in walks)}
        for where, found in (("the server", decisions), ("the file", written)):
            for key, n in collections.Counter(one["passage"]["id"] for one in found).items():
                if n > 1:
                    wrong.append(f"passage {key} is decided {n} times at {where}")
        told = {one["id"]: (one["passage"]["id"], one["verdict"], one["person"]) for one in decisions}
        noted = {one["id"]: (one["passage"]["id"], one["verdict"], one["person"]) for one in written}
        if told != noted:
            wrong.append(f"server and file differ: {list(told.items() ^ noted.items())[:4]}")
        n_right = n_again = 0
        for walk in walks:
            for before, after in self.named_again(walk):
                killed = [kind for kind, at_ms in self.deaths if before["from"] - SLACK_MS < at_ms < after["from"]]
                n_again += 1
                if "camera" not in killed or after["from"] - before["to"] <= GONE_MS:
                    wrong.append(f"{walk['person']} is named again {after['from'] - before['to']:.0f} ms later, {killed} were killed: {before}, {after}")
            if not walk["is_touched"] and len(walk["decisions"]) != 1:
                wrong.append(f"one who walked by while nothing was killed is decided {len(walk['decisions'])} times: {walk}")
            wanted = {BARRED: "deny", UNKNOWN: "unknown"}.get(walk["person"], "grant")
            n_right += bool(walk["decisions"]) and all(one["verdict"] == wanted for one in walk["decisions"])
        report |= {"walks decided": sum(bool(one["decisions"]) for one in walks), "walks decided right": n_right,
                   "named again": n_again}

    def check_doors(self, report, wrong):
        """No command is carried out twice or late, each is of a grant, and each grant has an outcome that the controller's own record bears out."""
        granted = {one["id"]: one for one in self.all("/decisions?ion=site&verdict=grant")}
        deeds = [{**one, "at": door} for door in CAMERAS for one in lines_of(self.root / door / "opened.jsonl")]
        report["commands"] = len(deeds)
        report["doubled"] = sum(n - 1 for of in ("id", "decision", "key") for n in collections.Counter(one[of] for one in deeds).values())
        report["late"] = sum(not 0 <= one["done_ms"] - one["issued_ms"] < one["valid_ms"] for one in deeds)
        if report["doubled"] or report["late"]:
            wrong.append(f"{report['doubled']} commands were carried out twice, {report['late']} late")
        strange = [one for one in deeds if one["decision"] not in granted or granted[one["decision"]]["camera"] != one["at"]]
        if strange:
            wrong.append(f"{len(strange)} commands without a grant at their door: {strange[:2]}")
        orders = collections.defaultdict(list)
        for one in self.orders():
            orders[one["decision"]].append(one)
        report["outcomes"] = dict(collections.Counter(one["state"] for of in orders.values() for one in of))
        opened = {one["decision"] for one in deeds}
        for name in granted:
            states = [one["state"] for one in orders[name]]
            may_be = OUTCOMES - {"late", "refused"} if name in opened else OUTCOMES - {"done", "repeated"}
            if len(states) != 1 or states[0] not in may_be:
                wrong.append(f"grant {name} has the outcomes {states}, and was {'' if name in opened else 'not '}carried out: {orders[name]}")

    def reckon(self):
        """What was seen, as {name: figure}; "wrong" lists what may not be."""
        self.settle()
        report, wrong = {"kills": dict(self.killed), "bursts": len(self.bursts)}, []
        backs = sorted(one["back_s"] for one in self.bursts)
        report |= {"back, median s": round(backs[len(backs) // 2], 1), "back, at most s": round(backs[-1], 1)}
        self.check_decisions(report, wrong)
        self.check_doors(report, wrong)
        self.server.weir("delete", "ion", "site", "--force")
        wait_until(lambda: not self.server.pids("weir-worker predict") and not self.server.pids("weir-camera"), 20, "the end of all that the ION had")
        return report, [one[:3000] for one in wrong]

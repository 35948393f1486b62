"""Cameras, made up: one that refuses its password, one in the dark, doors with people, a garage without. A part of the stand-in server."""

import base64
import math
import struct
import time
import zlib

import fake_data as made

WIDTH, HEIGHT = 320, 180  # of pictures; boxes are in those of the camera, four times as large
SCALE = 4
REFUSED = "RTSP/1.0 401 Unauthorized"


def box(x, y, name, verdict, score, barred=False):
    return {"x": SCALE * x, "y": SCALE * y, "w": SCALE * 34, "h": SCALE * 42, "name": name, "verdict": verdict, "score": score, "barred": barred, "passage": None}


BOXES = {
    "door-3": [box(118, 60, None, "unknown", 0.31), box(190, 78, "ines", "grant", 0.91)],
    "door-1": [box(130, 50, "milo", "grant", 0.88)],
    "door-2": [box(92, 56, "yuri", "grant", 0.93), box(196, 8, "tess", None, None)],
    "lobby": [box(236, 62, "emil", "deny", 0.92, True)],
    "garage": [],
}


def camera(name, state, **more):
    """As GET /cameras has one."""
    now = time.time()
    return {"id": f"{made.ION}:{made.PIPELINE}:{name}", "project": "default", "ion": made.ION, "pipeline": made.PIPELINE, "name": name, "kind": "rtsp", "replica": "entrance-0",
            "state": state, "since_ms": made.rfc3339(now - 560), "error": None, "cure": None, "health": [], "fps": 10.2, "fps_expected": 10, "width": 1280, "height": 720,
            "codec": "h264", "age_ms": 120, "frames": 91_004, "dropped": 12, "damaged": 0, "lost": 3, "clock_off_ms": 40, "n_decided": 210, "n_unknown": 25,
            "last_decision_ms": made.rfc3339(now - 4), "reported_ms": made.rfc3339(now), "mode": "production", **more}


def cameras():
    refused = {"error": REFUSED, "cure": "The camera refuses the connection. Name the secret that has its password.", "fps": None, "width": None, "height": None, "codec": None, "age_ms": None, "n_decided": 0, "n_unknown": 0}
    return [
        camera("door-1", "sees", fps=10.4),
        camera("door-2", "sees", fps=6.1, n_unknown=28),
        camera("door-3", "unwell", health=["dark"], cure="Its picture is too dark to recognise anybody. Put on a light, or turn the camera from what dazzles it.", n_unknown=80),
        camera("dock", "lost", **refused),
        camera("garage", "sees", fps=5.0, fps_expected=5, n_decided=0, n_unknown=0, last_decision_ms=made.rfc3339(time.time() - 1500)),
        camera("lobby", "sees", mode="sandbox", n_unknown=50),
    ]


def png(rows):
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    raw = b"".join(b"\0" + row for row in rows)
    head = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(raw, 1)) + chunk(b"IEND", b"")


def scene(name, seq):
    """A corridor with somebody in each box; it flickers, so that two pictures are never the same."""
    light = 0.35 if name == "door-3" else 1
    rows = [bytearray(int(light * (70 + 90 * y / HEIGHT)) + (seq + y) % 3 for _ in range(WIDTH)) for y in range(HEIGHT)]
    for one in BOXES.get(name, []):
        left, top = one["x"] // SCALE, one["y"] // SCALE
        for y in range(42):
            half = int(15 * math.sqrt(max(0, 1 - ((y - 21) / 20) ** 2)))
            rows[top + y][left + 17 - half : left + 17 + half] = bytes([int(light * 190)]) * (2 * half)
    return png([bytes(row) for row in rows])


def live(state, name, after):
    """(HTTP status, answer): the next picture of a camera; the one after `after` is made when it is asked for."""
    known = next((one for one in state.cameras if one["name"] == name), None)
    if known is None:
        return 404, None
    if name in state.blind:
        return 503, f"no replica has sent a picture of {name} yet"
    seq = after if name in state.stuck else after + 1
    sees_people = "read decisions" in state.rights
    boxes = [one if sees_people else {**one, "name": None} for one in BOXES.get(name, [])]
    picture = base64.b64encode(scene(name, seq)).decode() if sees_people else None
    return 200, {"seq": seq, "time_ms": made.rfc3339(time.time()), "width": SCALE * WIDTH, "height": SCALE * HEIGHT, "boxes": boxes, "picture": picture}


def find(state, path, parts, query):
    if path == "cameras":
        now = made.rfc3339(time.time())
        return [{**one, "reported_ms": now} for one in state.cameras]
    return None

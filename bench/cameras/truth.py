"""What a clip shows beside what was decided: passages and single faces."""

import json
from pathlib import Path

SEEN, HALF_SEEN, OVERLAP = .85, .4, .4
FRAMES_SEEN = 10  # a passage counts that shows its face so often


class Clip:
    def __init__(self, folder):
        folder = Path(folder)
        self.frames = [json.loads(line)["people"] for line in (folder / "truth.jsonl").read_text().splitlines()]
        self.passages = json.loads((folder / "passages.json").read_text())

    def where(self, passage):
        """(frame, box, how much of it is visible) of each frame that a passage is in."""
        return [(number, one["box"], one["visible"]) for number, people in enumerate(self.frames) for one in people if one["passage"] == passage]

    def counted(self):
        """The passages that show their face."""
        return [one for one in self.passages if sum(visible >= SEEN for _, _, visible in self.where(one["passage"])) >= FRAMES_SEEN]


def overlap(a, b):
    """Area of both boxes over area of either."""
    width = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0])
    height = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])
    both = max(width, 0) * max(height, 0)
    return both / (a[2] * a[3] + b[2] * b[3] - both)


def box_of(decision):
    box = decision.get("box")
    return box and [box["x"], box["y"], box["w"], box["h"]]


def passage_of(clip, decision, first, last):
    """The passage that a decision is about: its box lies best on that one's face, in one of the frames first to last. None: no face."""
    box, best, number = box_of(decision), OVERLAP, None
    for people in clip.frames[max(first, 0):last + 1] if box else []:
        for one in people:
            if overlap(one["box"], box) > best:
                best, number = overlap(one["box"], box), one["passage"]
    return number


def is_right(passage, decisions):
    """Was this person decided as they should be, by all decisions about the passage together?"""
    granted = [one["person"] for one in decisions if one["verdict"] == "grant"]
    named = [one["person"] for one in decisions if one["person"]]
    if passage["role"] == "enrolled":
        return passage["person"] in granted and set(named) == {passage["person"]}
    if passage["role"] == "barred":
        return passage["person"] in [one["person"] for one in decisions if one["verdict"] == "deny"] and not granted
    return not granted


def count_faces(clip, found):
    """found: boxes by frame. @return Faces that are seen, and those of them found; half hidden, and found; boxes, and those on no face."""
    counts = dict.fromkeys(("seen", "seen_found", "half", "half_found", "boxes", "wrong"), 0)
    for number, people in enumerate(clip.frames):
        boxes = found.get(number, [])
        counts["boxes"] += len(boxes)
        counts["wrong"] += sum(all(overlap(one["box"], box) < .3 for one in people) for box in boxes)
        for one in people:
            kind = "seen" if one["visible"] >= SEEN else "half" if one["visible"] >= HALF_SEEN else None
            if kind:
                counts[kind] += 1
                counts[f"{kind}_found"] += any(overlap(one["box"], box) > OVERLAP for box in boxes)
    return counts

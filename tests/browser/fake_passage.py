"""Passages, made up: somebody known, somebody refused, and an unknown person who comes again. A part of the stand-in server."""

import random
import time

import fake_data as made

VISITOR = "1790000000000-7"
PEOPLE = ["rosa", "ines", "lena", "tess"]


def frame(at, score, threshold, who, why=None):
    return {"time_ms": made.rfc3339(at), "score": score, "person": who if score and score >= threshold else None, "counts": score is not None, "why": why,
            "box": {"x": 210.0, "y": 80.0, "w": 84.0, "h": 96.0}, "has_picture": True, "is_best": False}


def film(at, scores, threshold, who):
    frames = [frame(at - 0.5 * (len(scores) - i - 1), score, threshold, who, None if score else "too dark") for i, score in enumerate(scores)]
    frames[max(range(len(scores)), key=lambda i: scores[i] or 0)]["is_best"] = True
    return frames


def passage(rng, seq, at, verdict, who, scores, threshold=0.87, visitor=None):
    frames = film(at, scores, threshold, who)
    compared = [one for one in scores if one is not None]
    n_named = sum(one >= threshold for one in compared[-5:])
    best = max(compared, default=None)
    near = [] if best is None else [{"person": one, "score": round(best - step, 3)} for one, step in zip([who] + [one for one in PEOPLE if one != who], (0, 0.23, 0.26, 0.28, 0.31))]
    told = {"id": f"{int(at * 1000)}-{seq}", "first": frames[0]["time_ms"], "last": frames[-1]["time_ms"], "n_frames": len(scores) + 2, "n_counted": len(compared),
            "n_named": n_named, "refused": {"too dark": len(scores) - len(compared)} if len(compared) < len(scores) else {}, "frames": frames, "nearest": near,
            "rule": {"n": 3, "m": 5, "accept": 0.0001, "deny": 0.02, "gone_ms": 2000}, "visitor": visitor}
    return {**made.decision(rng, seq, seq, at, 2), "verdict": verdict, "person": who if verdict in ("grant", "deny") else None, "camera": f"door-{1 + seq % 3}", "score": best,
            "error": None, "threshold": threshold, "brightness": 0.14, "image": f"{7000 + seq:064x}", "passage": told, "is_sandbox": False, "key": f"passage/door/{told['id']}"}


def passages():
    """Newest first."""
    rng, now = random.Random(11), time.time()
    seen = {"id": VISITOR, "first_ms": made.rfc3339(now - 3 * 86_400)}
    known = [0.58, 0.66, 0.74, 0.81, 0.84, 0.88, 0.86, 0.91, 0.94]
    vague = [None, 0.41, 0.52, 0.47, None, 0.55]
    made_up = [passage(rng, 901, now - 3 * 86_400, "unknown", "lena", vague, visitor={**seen, "times": 1}),
               passage(rng, 902, now - 86_400, "unknown", "lena", vague, visitor={**seen, "times": 2}),
               passage(rng, 903, now - 900, "deny", "georg", [0.7, 0.89, 0.92, 0.93]),
               passage(rng, 904, now - 600, "unknown", "ines", [None, None, None, None], visitor={"id": "1790000000000-9", "times": 1, "first_ms": made.rfc3339(now - 600)}),
               passage(rng, 905, now - 120, "unknown", "lena", vague, visitor={**seen, "times": 3}),
               passage(rng, 906, now - 25, "grant", "rosa", known)]
    return made_up[::-1]


def order(state, of):
    sent = made.seconds(of["time_ms"])
    word = state.order_state
    return {"id": made.make_id(random.Random(3)), "door": of["camera"], "verb": "open", "sent_ms": of["time_ms"], "valid_until_ms": made.rfc3339(sent + 3), "state": word,
            "answered_ms": made.rfc3339(sent + 0.071) if word != "silent" else None, "detail": "by the lock" if word == "done" else "it has a lock that nobody reaches"}


def find(state, path, parts, query):
    """What GET answers; None: it is not of here."""
    if path == "feedback":
        return state.truths[::-1]
    if path == "passages":
        some = [one for one in state.passages if all(one[key] == query[key] for key in ("ion", "camera", "verdict", "person") if key in query)
                and query.get("since", "") <= one["time_ms"] < query.get("until", "~")]
        if "after" in query:
            some = [one for one in some[::-1] if one["seq"] > int(query["after"])]
        return some
    of = next((one for one in state.passages if parts[0] == "decisions" and one["id"] == parts[1:2][0]), None) if len(parts) > 1 else None
    if of is None:
        return None
    return of if len(parts) == 2 else [order(state, of)] if parts[2] == "orders" and of["verdict"] == "grant" else [] if parts[2] == "orders" else None


def picture(state, parts):
    """The bytes of a frame, or of the decision's picture; None: it is not of here."""
    of = next((one for one in state.passages if one["id"] == parts[1]), None)
    if of is None or (parts[-1] != "image" and parts[2] != "frames"):
        return None
    who = of["person"] or ("visitor" if of["passage"]["visitor"] else "somebody")
    return made.face_png(f"{who} {of['seq'] if parts[-1] == 'image' else parts[3]} of {of['seq']}")


def change(state, command, parts, document):
    """(HTTP status, answer) of a change, or of a question; None: it is none of these."""
    if command == "POST" and parts == ["feedback"]:
        state.truths.append({"decision": document["decision"], "truth": document["truth"]})
        return 200, {"seq": 1}
    if command == "POST" and parts[0] == "ions" and parts[-1] == "look":
        if state.look is None:
            return 503, {"error": {"status": "UNAVAILABLE", "message": "No replica of building-security serves: start one of its pipelines."}}
        nearest = [{"person": person, "score": score} for person, score in state.look.items() if person != document["person"]]
        seen = {"faces": 1, "box": None, "quality": {"width": 84.0, "sharpness": 0.8, "yaw": 4.0}, "usable": True, "why": None, "nearest": nearest}
        return 200, {"pictures": [seen] * len(document["pictures"]), "nearest": nearest, "threshold": 0.62, "confused_from": 0.8}
    return None

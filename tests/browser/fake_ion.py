"""What belongs to an ION, made up: its drift and its live accuracy. A part of the stand-in server."""

import math
import random
import time

import fake_data as made

POINTS = 36


def histogram(mean, deviation, n):
    """Counts of 20 bins of 0 to 1, as a replica sends them: inner edges only."""
    edges = [0.05 * (i + 1) for i in range(19)]
    weights = [math.exp(-(((0.05 * i + 0.025) - mean) / deviation) ** 2 / 2) for i in range(20)]
    return {"edges": edges, "counts": [round(n * one / sum(weights)) for one in weights], "mean": mean}


def farthest(state, begin):
    """Frames of the whole time, the farthest first: of decisions that the stand-in still has, and one of which nothing is kept."""
    kept = [one for one in state.decisions if one["image"]][:9]
    frames = [{"camera": one["camera"], "frame": one["frame"], "time_ms": one["time_ms"], "decision": one["id"], "has_picture": True} for one in kept]
    frames.insert(0, {"camera": "garage", "frame": 7, "time_ms": made.rfc3339(begin), "decision": None, "has_picture": False})
    return [{**one, "value": 0.05 + 0.001 * i, "sigmas": 5.3 - 0.2 * i} for i, one in enumerate(frames)]


def signal(name, state, p, began, rng):
    shift = {"drifts": 0.24, "watch": 0.06}.get(state, 0.01)
    cells = [None if i % 11 == 7 else max(p, 1e-6) * rng.uniform(1, 2) if state == "drifts" and i > 24 else rng.uniform(0.02, 1) for i in range(POINTS)]
    return {"pipeline": made.PIPELINE, "signal": name, "replica": "entrance-0", "model_version": 2, "statistic": "location" if state != "none" else "none",
            "value": shift / 0.1, "p_value": p, "drifted": state == "drifts", "state": state, "n_samples": 18_612, "n_windows": 22, "n_drifted": 9 if state == "drifts" else 0,
            "time_ms": made.rfc3339(time.time() - 40), "began_ms": made.rfc3339(began) if state == "drifts" else None, "effect": shift,
            "live_mean": 0.58 - shift, "live_stddev": 0.12, "baseline_mean": 0.58, "baseline_stddev": 0.1, "distances": {"ks": round(shift * 1.3, 3), "psi": round(shift * 2, 3)},
            "baseline": histogram(0.58, 0.1, 54_960), "cameras": ["garage"] if state == "drifts" else None, "live": histogram(0.58 - shift, 0.12, 18_612), "cells": cells}


def drift(state, is_empty):
    rng = random.Random(7)
    now = time.time()
    rows = [] if is_empty else [("brightness", "drifts", 0.0000004), ("contrast", "watch", 0.0041), ("score", "none", 0.22), ("sharpness", "none", 0.41), ("feature:a-very-long-name-of-one", "none", 0.9)]
    return {"ion": made.ION, "since_ms": made.rfc3339(now - 6 * 3600), "until_ms": made.rfc3339(now), "is_cut": False,
            "times": [made.rfc3339(now - 6 * 3600 + 600 * i) for i in range(POINTS)], "signals": [{**signal(name, word, p, now - 5400, rng), "farthest": [] if ":" in name else farthest(state, now - 5 * 3600)} for name, word, p in rows]}


def accuracy(n, right, **more):
    return {"n": n, "right": right, "taken": (n - right) // 3, "missed": n - right - (n - right) // 3, "accuracy": right / n if n else None, "low": max(0, right / max(1, n) - 0.05), "high": min(1, right / max(1, n) + 0.03), **more}


def health(by):
    groups = {"camera": [("garage", 40, 31), ("front-door", 160, 155)], "model_version": [("2", 200, 186)]}.get(by, [])
    return {"ion": made.ION, "since_ms": made.rfc3339(time.time() - 7 * 86400), "accuracy": accuracy(200, 186), "by": by,
            "groups": [accuracy(n, right, name=name) for name, n, right in groups],
            "kpis": [{"seq": 3, "ion": made.ION, "name": "people-per-hour", "value": 412.0, "unit": "1/h", "time_ms": made.rfc3339(time.time() - 600), "actor": "admin"}]}


SPAN_S = 6 * 3600


def snapshots(state, ion):
    """Two of them, the newest first: one is of the ION's begin, six hours long."""
    if ion != made.ION:
        return []
    begin = state.began - 4 * SPAN_S
    one = {"id": "s1", "ion": ion, "project": "default", "revision": 4, "created_by": "admin", "created_ms": made.rfc3339(begin + SPAN_S + 60), "from_ms": made.rfc3339(begin),
           "to_ms": made.rfc3339(begin + SPAN_S), "has_models": False, "is_imported": False, "bytes": 1_260_000, "n_rows": 6_741, "models": []}
    return [{**one, "name": "shift-b-was-refused"}, {**one, "id": "s0", "name": "before-revision-4", "has_models": True, "is_imported": True}]


def counted(passed):
    """What was decided by so many seconds of the span: with version 2 a third is unknown."""
    n, unknown = int(passed / 10), int(passed / 100 + max(0, passed - SPAN_S / 2) / 40)
    return {"n": n, "grant": n - unknown, "deny": 0, "unknown": unknown, "error": 0, "label": 0}


def course(begin, n_parts):
    ends = [SPAN_S * (i + 1) / n_parts for i in range(n_parts)]
    at = [counted(0)] + [counted(end) for end in ends]
    return [{**{key: at[i + 1][key] - at[i][key] for key in at[i]}, "time_ms": made.rfc3339(begin + ends[i])} for i in range(n_parts)]


def snapshot_state(state, query):
    """Version 1 serves until the middle of the span, then version 2."""
    begin = made.seconds(snapshots(state, made.ION)[0]["from_ms"])
    time_text = query.get("time") or made.rfc3339(begin + SPAN_S)
    passed = max(0, made.seconds(time_text) - begin)
    late = max(0, passed - SPAN_S / 2)
    link = {"id": "training:entrance", "from": "training", "to": made.PIPELINE, "model": made.MODEL, "version": 2 if late else 1, "policy": "always-update", "verdict": "promote",
            "actor": "policy", "rule": "always-update: the newest version is taken", "since_ms": made.rfc3339(begin + SPAN_S / 2 if late else begin), "waiting": []}
    events = [{"seq": 3, "time_ms": made.rfc3339(begin + SPAN_S / 2), "topic": "ions", "kind": "model_promoted", "severity": "info", "subject": f"ion/{made.ION}", "actor": "policy",
               "message": f"entrance serves {made.MODEL} v2", "data": None}] if late else []
    return {"time_ms": time_text, "revision": 4, "document": made.document(), "pipelines": [], "links": [link], "events": events, "alerts": [], "health": [],
            "decisions": counted(passed), **({"course": course(begin, int(query["points"]))} if "points" in query else {})}


def replay(state, rules):
    begin = snapshots(state, made.ION)[0]["from_ms"]
    is_other = "document" in rules or "revision" in rules
    told = {"verdict": "promote", "rule": "always-update: the newest version is taken"}
    decision = {"id": "d1", "time_ms": begin, "link": "training:entrance", "version": 2, "policy": "always-update", "position": 0, "recorded": told,
                "replayed": {"verdict": "wait", "rule": "manual: a person decides"} if is_other else told, "differs": is_other, "why": "policy: always-update is manual" if is_other else None}
    found = "false_alarm_rate" in rules
    signal_row = {"pipeline": made.PIPELINE, "replica": "entrance-0", "signal": "score", "model_version": 2, "n_values": 2160, "n_windows": 10, "recorded_alarm": None,
                  "replayed_alarm": begin if found else None, "differs": found, "why": "p 0.004 is at most 0.01" if found else None, "windows": []}
    return {"is_same": not (is_other or found), "candidates": [], "policies": {"n": 1, "n_same": int(not is_other), "n_differ": int(is_other), "n_by_hand": 0, "decisions": [decision]},
            "drift": {"false_alarm_rate": rules.get("false_alarm_rate", 0.001), "min_effect": 0.1, "window": 200, "confirm_k": 2, "confirm_n": 3, "signals": [signal_row]}}


def alerting(state):
    """Rules, receivers, silences and messages of alerts."""
    at = made.rfc3339(time.time() - 600)
    rule = {"name": "drift-of-doors", "project": None, "doc": "Lamps fail", "kinds": ["drift"], "subjects": ["ion/*"], "severities": None, "hold_ms": 300_000, "group_by": "none", "group_ms": 0,
            "receivers": ["on-call"], "tells_end": True, "escalate_ms": 900_000, "escalate_to": ["boss"], "actions": [{"kind": "retrain"}], "action_interval_ms": 3_600_000,
            "is_disabled": False, "created_by": "admin", "created_ms": at, "updated_ms": at, "n_fired": 4}
    receiver = {"name": "on-call", "kind": "webhook", "doc": None, "options": {"url": "https://hooks.example/x", "secret": "***"}, "projects": None, "created_by": "admin", "created_ms": at,
                "updated_ms": at, "is_failing": False, "n_waiting": 0, "last_sent_ms": at}
    silence = {"id": "s-1", "project": None, "alert": None, "kinds": ["node_lost"], "subjects": None, "severities": None, "until_ms": made.rfc3339(time.time() + 3600), "note": "racks are moved",
               "created_by": "admin", "created_ms": at, "ended_by": None, "ended_ms": None}
    delivery = {"id": "d-1", "seq": 1, "alert": None, "rule": "drift-of-doors", "project": None, "receiver": "on-call", "event": "raised", "state": "dead", "attempts": 8, "error": "HTTP 500",
                "created_ms": at, "done_ms": at, "due_ms": None, "message": None}
    return {"alert-rules": [rule], "alert-receivers": [receiver], "alert-silences": [silence], "alert-deliveries": [delivery]}


COMPARED = "run-that-compared"
PEOPLE = ("ada", "grace", "alan")


def comparison(version):
    """Of version 3 with the one that serves; of no other."""
    if version != "3":
        return {"comparison": None, "why": f"no samples were compared: version {version} was not measured beside what serves. For the next versions, a comparison pipeline does so."}
    one = {"run": COMPARED, "model": made.MODEL, "version": 3, "live_model": made.MODEL, "live_version": 2, "dataset": "people", "dataset_version": 2, "n_samples": 400, "n_errors": 0,
           "accuracy": 0.97, "live_accuracy": 0.955, "p_value": 0.31, "better": 0, "n_live_right": 5, "n_candidate_right": 11, "n_both_wrong": 3, "n_kept": 19, "time_ms": made.rfc3339(time.time() - 900),
           "confusions": [{"label": "ada", "answer": "grace", "n": 3, "live_n": 9}, {"label": "alan", "answer": "ada", "n": 5, "live_n": 1}]}
    return {"comparison": one, "why": None}


def disagreements():
    rows = []
    for kind, n in (("live-right", 5), ("candidate-right", 11), ("both-wrong", 3)):
        for i in range(n):
            label, other, third = (PEOPLE[(i + k) % 3] for k in range(3))
            answer, live = {"live-right": (other, label), "candidate-right": (label, other), "both-wrong": (other, third)}[kind]
            rows.append({"id": f"{COMPARED}/{len(rows):04}", "run": COMPARED, "place": len(rows), "kind": kind, "file": f"{label}/{i}.pgm", "sha256": f"photo-{label}", "label": label,
                         "answer": answer, "score": 0.9 - i / 50, "live_answer": live, "live_score": None if i == 4 else 0.8 - i / 50})
    return {"items": rows, "next": None}


def find(state, parts, query):
    """What GET answers below an ION, or of a snapshot; None: it is not of here."""
    if parts[0].startswith("alert-"):
        return alerting(state)[parts[0]]
    if parts == ["audit", "verify"]:
        chain = {"is_whole": True, "number": 41, "hash": "ab" * 32, "n_rows": 41, "n_before": 0, "begins_after": 0, "cut": None, "finding": None}
        return {"is_whole": True, "chains": [{**chain, "chain": "acts"}, {**chain, "chain": "accesses"}]}
    if parts[0] == "snapshots":
        return snapshot_state(state, query) if parts[-1] == "state" else snapshots(state, query.get("ion"))
    if parts == ["runs", COMPARED, "disagreements"]:
        return disagreements()
    if parts[0] != "ions" or len(parts) != 3:
        return None
    if parts[2] == "comparison":
        return comparison(query.get("version"))
    if parts[2] == "drift":
        return drift(state, is_empty=parts[1] != made.ION)
    if parts[2] == "revisions":
        return [{"id": f"{parts[1]}:4", "ion": parts[1], "revision": 4, "actor": "admin", "time_ms": made.rfc3339(0), "document": made.document()}]
    if parts[2] == "health":
        return health(query.get("by", "camera"))
    return None

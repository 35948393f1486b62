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


def signal(name, state, p, began, rng):
    shift = {"drifts": 0.24, "watch": 0.06}.get(state, 0.01)
    cells = [None if i % 11 == 7 else max(p, 1e-6) * rng.uniform(1, 2) if state == "drifts" and i > 24 else rng.uniform(0.02, 1) for i in range(POINTS)]
    return {"pipeline": made.PIPELINE, "signal": name, "replica": "entrance-0", "model_version": 2, "statistic": "location" if state != "none" else "none",
            "value": shift / 0.1, "p_value": p, "drifted": state == "drifts", "state": state, "n_samples": 18_612, "n_windows": 22, "n_drifted": 9 if state == "drifts" else 0,
            "time_ms": made.rfc3339(time.time() - 40), "began_ms": made.rfc3339(began) if state == "drifts" else None, "effect": shift,
            "live_mean": 0.58 - shift, "live_stddev": 0.12, "baseline_mean": 0.58, "baseline_stddev": 0.1, "distances": {"ks": round(shift * 1.3, 3), "psi": round(shift * 2, 3)},
            "baseline": histogram(0.58, 0.1, 54_960), "cameras": ["garage"] if state == "drifts" else None, "live": histogram(0.58 - shift, 0.12, 18_612), "cells": cells}


def drift(is_empty):
    rng = random.Random(7)
    now = time.time()
    rows = [] if is_empty else [("brightness", "drifts", 0.0004), ("contrast", "watch", 0.0041), ("score", "none", 0.22), ("sharpness", "none", 0.41), ("feature:a-very-long-name-of-one", "none", 0.9)]
    return {"ion": made.ION, "since_ms": made.rfc3339(now - 6 * 3600), "until_ms": made.rfc3339(now), "is_cut": False,
            "times": [made.rfc3339(now - 6 * 3600 + 600 * i) for i in range(POINTS)], "signals": [signal(name, state, p, now - 5400, rng) for name, state, p in rows]}


def accuracy(n, right, **more):
    return {"n": n, "right": right, "accuracy": right / n if n else None, "low": max(0, right / max(1, n) - 0.05), "high": min(1, right / max(1, n) + 0.03), **more}


def health(by):
    groups = {"camera": [("garage", 40, 31), ("front-door", 160, 155)], "model_version": [("2", 200, 186)]}.get(by, [])
    return {"ion": made.ION, "since_ms": made.rfc3339(time.time() - 7 * 86400), "accuracy": accuracy(200, 186), "by": by,
            "groups": [accuracy(n, right, name=name) for name, n, right in groups],
            "kpis": [{"seq": 3, "ion": made.ION, "name": "people-per-hour", "value": 412.0, "unit": "1/h", "time_ms": made.rfc3339(time.time() - 600), "actor": "admin"}]}


def find(state, parts, query):
    """What GET answers below an ION; None: it is not of here."""
    if parts[0] != "ions" or len(parts) != 3:
        return None
    if parts[2] == "drift":
        return drift(is_empty=parts[1] != made.ION)
    if parts[2] == "health":
        return health(query.get("by", "camera"))
    return None

"""Decisions by time, camera and person: pages of any hour, and sums that name their window."""
import sys
import unittest
from datetime import datetime, timedelta, timezone
from urllib.parse import quote

import harness
from harness import HttpError, Server

BEGIN = datetime(2026, 1, 31, 10, 0, 0, tzinfo=timezone.utc)
N = 900  # one decision a second
CAMERAS = ["front", "side", "garage"]
PEOPLE = ["ada", "ben", None]


def stamp(seconds):
    return (BEGIN + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def made(i):
    return {"id": f"d{i}", "ion": "door" if i % 10 else "gate", "pipeline": "p", "replica": "r", "camera": CAMERAS[i % 3], "frame": i,
            "time_ms": stamp(i), "verdict": "grant" if PEOPLE[i % 3] else "unknown", "person": PEOPLE[i % 3],
            "latency_us": 1000 + i, "durable_us": 2000}


class Decisions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--no-agent").start()
        cls.all = [made(i) for i in range(N)]
        # The late part first: a replica that was cut off ships its old decisions after newer ones.
        for part in (cls.all[N // 2:], cls.all[: N // 2]):
            cls.server.request("POST", "/api/v1/decisions", {"decisions": part})

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def pages(self, query, limit=70):
        found, cursor = [], None
        while True:
            page = self.server.get(f"/decisions?limit={limit}{query}" + (f"&cursor={quote(cursor)}" if cursor else ""))
            found += [one["id"] for one in page["items"]]
            cursor = page["next"]
            if not cursor:
                return found

    def wanted(self, holds):
        return [one["id"] for one in reversed(self.all) if holds(one)]

    def test_every_filter_with_a_span_gives_exactly_what_matches_newest_first(self):
        since, until = stamp(200), stamp(700)
        within = lambda one: since <= one["time_ms"] < until
        for query, holds in (
            ("", lambda one: True),
            (f"&since={since}", lambda one: one["time_ms"] >= since),
            (f"&until={until}", lambda one: one["time_ms"] < until),
            (f"&since={since}&until={until}", within),
            (f"&since={since}&until={until}&ion=gate", lambda one: within(one) and one["ion"] == "gate"),
            (f"&since={since}&ion=door&camera=side", lambda one: one["time_ms"] >= since and one["camera"] == "side" and one["ion"] == "door"),
            (f"&until={until}&person=ada", lambda one: one["time_ms"] < until and one["person"] == "ada"),
            ("&verdict=unknown&camera=garage", lambda one: one["verdict"] == "unknown" and one["camera"] == "garage"),
            ("&person=nobody", lambda one: False),
        ):
            self.assertEqual(self.pages(query), self.wanted(holds), query)

    def test_from_a_number_on_they_come_as_they_arrived(self):
        found = [one["id"] for one in self.server.get("/decisions?after=0&limit=1000")["items"]]
        self.assertEqual(found, [one["id"] for one in self.all[N // 2:] + self.all[: N // 2]])
        found = self.server.get(f"/decisions?after=0&limit=1000&until={stamp(10)}")["items"]
        self.assertEqual([one["id"] for one in found], [f"d{i}" for i in range(10)])

    def test_sums_name_their_window(self):
        mine = [one for one in self.all if one["ion"] == "door"]
        whole = self.server.get(f"/decisions/summary?ion=door&since={stamp(-5000)}")
        self.assertEqual((whole["decisions"], whole["from_ms"]), (len(mine), stamp(1)), "it covers no more than there is")
        part = self.server.get(f"/decisions/summary?ion=door&since={stamp(600)}")
        some = [one for one in mine if one["time_ms"] >= stamp(600)]
        self.assertEqual((part["decisions"], part["from_ms"]), (len(some), stamp(600)))
        self.assertEqual(part["verdicts"]["grant"], sum(one["verdict"] == "grant" for one in some))
        self.assertAlmostEqual(part["latency_ms"]["max"], max(one["latency_us"] for one in some) / 1000)
        none = self.server.get(f"/decisions/summary?ion=door&since={stamp(5000)}")
        self.assertEqual((none["decisions"], none["from_ms"], none["per_second"]), (0, None, 0.0))

    def test_what_is_no_time_is_refused_with_an_example(self):
        for path in ("/decisions?since=yesterday", "/decisions?until=12", "/decisions/summary?ion=door&since=now"):
            with self.assertRaises(HttpError) as caught:
                self.server.get(path)
            self.assertEqual(caught.exception.code, 400)
            self.assertIn("2026-01-31T10:00:00Z", caught.exception.error["message"])
        with self.assertRaises(HttpError) as caught:
            self.server.get(f"/decisions/summary?ion=door&after=1&since={stamp(0)}")
        self.assertIn("give one of them", caught.exception.error["message"])


if __name__ == "__main__":
    sys.exit(harness.main())

"""A door whose replica is killed again and again is never away long, and decides each frame once.

WEIR_KILLS=200 kills more often than the 12 times of every run; WEIR_SEED repeats one.
"""
import http.client
import os
import random
import statistics
import sys
import time
import unittest

import harness
from harness import Server, wait_until

sys.path.insert(0, str(harness.ROOT / "bench"))
from kills import kill_process, start_time  # noqa: E402
from serving import drawn_face, free_port  # noqa: E402

AWAY_MOST_S = 5


class Door(unittest.TestCase):
    def setUp(self):
        self.server, self.port, self.frame = Server().start(), free_port(), 0
        self.addCleanup(self.server.stop)
        server = self.server
        server.post("/datasets", {"name": "faces"})
        for person in range(6):
            for photo in range(4):
                server.request("PUT", f"/api/v1/datasets/faces/files/p{person}/{photo}.pgm", drawn_face(person, photo))
        server.post("/datasets/faces/versions")
        server.post("/ions", {
            "kind": "ion", "name": "doors",
            "pipelines": [
                {"name": "training", "type": "training", "dataset": "faces", "model": "face-embed",
                 "parameters": {"epochs": 2, "batch_size": 16}, "triggers": {"manual": True}},
                {"name": "door", "type": "prediction",
                 "source": {"kind": "http", "listen": f"127.0.0.1:{self.port}"},
                 "gallery": {"dataset": "faces", "false_accept_rate": 0.01, "default": "allow"}}],
            "links": [{"from": "training", "to": "door", "policy": "always-update"}]})
        server.post("/ions/doors/trigger", {"pipeline": "training"})
        self.photo = drawn_face(1, 5)

    def decides(self):
        """Is a frame answered with its decision? The same frame is sent until it is."""
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=2)
            connection.request("POST", f"/frames/cam/{self.frame}", self.photo)
            status = connection.getresponse().status
            connection.close()
        except (OSError, http.client.HTTPException):
            return False
        self.frame += status == 200
        return status == 200

    def replica(self):
        pids = [pid for pid in self.server.pids("weir-worker predict") if start_time(pid) is not None]
        return pids[0] if pids else None

    def test_a_door_is_back_within_seconds_however_often_it_is_killed(self):
        seed = int(os.environ.get("WEIR_SEED", random.SystemRandom().randrange(1 << 32)))
        dice, n_kills, away = random.Random(seed), int(os.environ.get("WEIR_KILLS", "12")), []
        print(f"seed {seed}", file=sys.stderr)
        wait_until(self.decides, 120, "a first decision")
        for _ in range(n_kills):
            ends = time.monotonic() + dice.choice([0, 0, 0.3, 1, 6 if n_kills > 100 else 0.1])
            while time.monotonic() < ends:
                self.decides()
            pid = wait_until(self.replica, 10, "the replica")
            begun = time.monotonic()
            self.assertTrue(kill_process(pid, start_time(pid)))
            wait_until(self.decides, 60, f"a decision after kill {len(away) + 1}")
            away.append(time.monotonic() - begun)
        away.sort()
        print(f"{n_kills} kills: away median {statistics.median(away):.2f} s, "
              f"p90 {away[int(0.9 * len(away))]:.2f} s, max {away[-1]:.2f} s", file=sys.stderr)
        self.assertLess(away[-1], AWAY_MOST_S)
        wait_until(lambda: self.server.get("/decisions/summary?ion=doors")["last_seq"] >= self.frame, 20, "decisions")
        self.assertEqual(self.server.get("/decisions/summary?ion=doors")["last_seq"], self.frame)


if __name__ == "__main__":
    harness.main()

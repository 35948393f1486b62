"""A door whose replica is killed again and again, and its agent too, is never away long, and decides each frame once.

Kills come in bursts: the replica, the agent, or one after the other before the door is back. Away is from the last of a burst.
WEIR_KILLS=200 has more bursts than the 10 of every run; WEIR_SEED repeats one. Of Everything, WEIR_KILLS are kills: one of each kind else.
"""
import http.client
import os
import pathlib
import random
import statistics
import sys
import time
import unittest

import doors_test
import harness
import passage_kills
from harness import Server, wait_until

sys.path.insert(0, str(harness.ROOT / "bench"))
from kills import kill_process, start_time  # noqa: E402
from serving import drawn_face, free_port  # noqa: E402

AWAY_MOST_S = 5
SEEN_AGAIN_MOST_S = 20  # until somebody has come by, who takes 4 s, and is decided


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

    def alive(self, *words):
        """The process with these words as the first of its command line, or None."""
        for pid in self.server.pids(words[0]):
            try:
                line = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            if line[1:1 + len(words)] == list(words) and "--supervise" not in line and start_time(pid) is not None:
                return pid
        return None

    def replica(self):
        return self.alive("predict")

    def agent(self):
        return self.alive("agent")

    def kill(self, find):
        """Kill the process that find() gives, once it is there."""
        pid = wait_until(find, 20, "a process to kill")
        return kill_process(pid, start_time(pid))

    def test_a_door_is_back_within_seconds_however_often_it_is_killed(self):
        seed = int(os.environ.get("WEIR_SEED", random.SystemRandom().randrange(1 << 32)))
        dice, n_bursts, away, n_kills = random.Random(seed), int(os.environ.get("WEIR_KILLS", "10")), [], 0
        print(f"seed {seed}", file=sys.stderr)
        wait_until(self.decides, 120, "a first decision")
        bursts = [(self.replica,), (self.agent, self.replica), (self.replica, self.agent), (self.replica, self.agent, self.agent),
                  (self.agent, self.agent, self.agent, self.replica)]
        for i in range(n_bursts):
            ends = time.monotonic() + dice.choice([0, 0, 0.3, 1, 6 if n_bursts > 100 else 0.1])
            while time.monotonic() < ends:
                self.decides()
            burst = bursts[i] if i < len(bursts) else dice.choice(bursts)
            for find in burst:
                n_kills += self.kill(find)
            begun = time.monotonic()
            wait_until(self.decides, 60, f"a decision after burst {len(away) + 1}")
            away.append(time.monotonic() - begun)
            print(f"burst of {len(burst)}: away {away[-1]:.2f} s", file=sys.stderr)
        away.sort()
        print(f"{n_kills} kills in {n_bursts} bursts: away median {statistics.median(away):.2f} s, "
              f"p90 {away[int(0.9 * len(away))]:.2f} s, max {away[-1]:.2f} s", file=sys.stderr)
        self.assertLess(away[-1], AWAY_MOST_S)
        wait_until(lambda: self.server.get("/decisions/summary?ion=doors")["last_seq"] >= self.frame, 20, "decisions")
        self.assertEqual(self.server.get("/decisions/summary?ion=doors")["last_seq"], self.frame)


@unittest.skipUnless(doors_test.BROKER and doors_test.can_mqtt() and (harness.BIN / "weir-camera").exists(),
                     "needs weir-camera, Debian's mosquitto, and Weir with libmosquitto")
class Everything(unittest.TestCase):
    def test_who_walks_by_is_decided_once_and_no_door_opens_twice_or_late_whatever_is_killed(self):
        seed = int(os.environ.get("WEIR_SEED", random.SystemRandom().randrange(1 << 32)))
        n_kills, kinds = int(os.environ.get("WEIR_KILLS", len(passage_kills.KINDS))), list(passage_kills.KINDS)
        print(f"seed {seed}", file=sys.stderr)
        site = passage_kills.Site(seed, lambda text: print(text, file=sys.stderr, flush=True))
        self.addCleanup(site.stop)
        site.start()
        while sum(site.killed.values()) < n_kills:
            left = n_kills - sum(site.killed.values())
            site.dice.shuffle(kinds)
            site.burst(kinds[:min(left, 6)] if n_kills <= len(kinds) else [site.dice.choice(kinds) for _ in range(min(left, site.dice.randint(1, 8)))])
        report, wrong = site.reckon()
        print(", ".join(f"{name} {figure}" for name, figure in report.items()), file=sys.stderr)
        self.assertEqual(wrong, [])
        self.assertLess(report["back, at most s"], SEEN_AGAIN_MOST_S)


if __name__ == "__main__":
    harness.main()

"""Processes die at random moments: nothing is lost, nothing is doubled, and everything comes back."""
import os
import sys
import unittest

import harness

sys.path.insert(0, str(harness.ROOT / "bench"))
from kills import DOORS, KINDS, Kills, show  # noqa: E402


class Killed(unittest.TestCase):
    def test_nothing_is_lost_doubled_or_promoted_twice_when_processes_are_killed_at_random_moments(self):
        seed = int(os.environ["WEIR_SEED"]) if "WEIR_SEED" in os.environ else None
        kills = Kills(n_kills=12, seed=seed, epochs=60, pause_s=1.5, allowed_s=15,
                      say=lambda text: print(text, file=sys.stderr))
        print(f"seed {kills.seed} (WEIR_SEED repeats it)", file=sys.stderr)
        report = kills.run(limit_s=60, least=8)
        show(report)
        self.assertEqual(report["wrong"], [])
        self.assertEqual((report["lost"], report["doubled"]), (0, 0))
        self.assertEqual(report["decisions"], report["frames"])
        self.assertGreater(report["frames"], 100)
        self.assertGreaterEqual(report["kills"], 8)
        killed = [kind for kind, row in report["kinds"].items() if row["kills"]]
        self.assertGreaterEqual(len(killed), len(KINDS) - 1, killed)
        self.assertEqual(report["promotions"], report["versions"])
        self.assertGreater(report["versions"], len(DOORS), "models that were made while processes died")


if __name__ == "__main__":
    harness.main()

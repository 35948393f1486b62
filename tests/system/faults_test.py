"""Random faults while the whole of it is used: never green while something does not work, and nothing acknowledged is lost.

Two machines (the server's, and one behind a cable, in a network of its own) decide frames of a folder and of HTTP, answer a model's
requests, run jobs and log metrics, while blobs, files, versions and feedback are stored. Probes ask for each of these by themselves, and
a ledger notes what was acknowledged. Meanwhile disks fail, clocks jump, processes and cables are stopped and cut, pages of the database
and blobs are damaged: one at a time, sometimes two. Laws:

1. Whatever a probe finds not to work for longer than the server may take to notice is told by `/health/summary`, and by `weir doctor`.
   RECOVERY_S after the last fault is undone all works, and all is green.
2. What the ledger holds is there once, with the right content; what is not in it was at least asked for.

WEIR_FAULTS: how many (6); with more than 20, some last until they are told. WEIR_SEED repeats one.
"""
import ctypes
import os
import random
import shutil
import sys
import time
import unittest

import faults
import harness
from harness import wait_until
from world import World

N = int(os.environ.get("WEIR_FAULTS", "6"))
SEED = int(os.environ.get("WEIR_SEED", random.randrange(1 << 31)))
RECOVERY_S = 60
CLONE_NEWNET = 0x40000000


class Faults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "nsenter", "unshare"))):
            raise unittest.SkipTest("networks of their own need root, ip, nsenter and unshare")
        if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
            raise unittest.SkipTest("no network namespaces here")

    def test_no_fault_is_hidden_and_nothing_acknowledged_is_lost(self):
        print(f"seed {SEED} (WEIR_SEED repeats it)", file=sys.stderr)
        dice, world = random.Random(SEED), World(SEED)
        self.addCleanup(world.stop)
        world.start()
        slowest, n = {}, 0
        while n < N:
            chosen = faults.draw(world, dice)
            for fault in chosen:
                fault.begin()
            names = " and ".join(map(str, chosen))
            lasted = faults.hold(chosen, dice, may_last=N > 20)
            for fault in sorted(chosen, key=lambda fault: fault.turn):
                fault.end()
            n += len(chosen)
            took = self.recovers(world, f"seed {SEED}, fault {n}: {names}")
            for fault in chosen:
                slowest[fault.kind] = max(slowest.get(fault.kind, 0), took)
            print(f"{n:3} {names}, {lasted:.1f} s: well again after {took:.1f} s", file=sys.stderr, flush=True)
            self.assertEqual(world.hidden, [], f"seed {SEED}, fault {n}: {names}")
            if n // 25 != (n - len(chosen)) // 25:
                self.reckon(world)
        self.reckon(world)
        print("told:", world.told(), "\nslowest recovery:", {kind: round(took, 1) for kind, took in slowest.items()}, file=sys.stderr)

    def recovers(self, world, what):
        begun = time.monotonic()
        try:
            wait_until(lambda: world.is_well(begun), RECOVERY_S, "all to work and to be green")
        except AssertionError as error:
            self.fail(f"{what}: {error}; {world.state()}")
        return time.monotonic() - begun

    def reckon(self, world):
        """Law 2, on a world at rest."""
        world.rest()
        self.assertEqual(world.reckon(), [], f"seed {SEED}")
        world.go_on()


if __name__ == "__main__":
    harness.main()

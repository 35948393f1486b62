"""Where the agent is root and there are no id-mapped mounts: under chroot the kernel makes no user namespaces, as in
some containers. The reference use case works there all the same: its cameras' frames, which root makes, are read and
taken away by a replica that is another user."""
import json
import os
import re
import shutil
import subprocess
import unittest

import harness
from harness import Server, wait_until

JAIL = 'mount --rbind / "$0" && exec chroot "$0" "$@"'


class Chroot(unittest.TestCase):
    def setUp(self):
        if os.geteuid() != 0 or shutil.which("unshare") is None:
            self.skipTest("not root: no other user is needed")
        self.server = Server()
        self.addCleanup(self.server.stop)
        jail = self.server.root / "jail"
        jail.mkdir()
        self.server.program = ["unshare", "--mount", "--propagation", "private", "sh", "-c", JAIL, str(jail), harness.WEIR]
        if subprocess.run([*self.server.program, "--version"], capture_output=True).returncode != 0:
            self.skipTest("no mount namespaces here")
        self.server.start()
        wait_until(lambda: self.server.get("/nodes")["items"], 20, "the node")
        isolation = self.server.get("/nodes")["items"][0]["inventory"]["isolation"]
        if not isolation["mounts"]:
            self.skipTest("no sandboxes here: " + "; ".join(isolation["missing"]))
        self.assertTrue(any("id-mapped" in text for text in isolation["missing"]), isolation)

    def start_demo(self):
        """It never ends by itself: 40 steps make no model that knows anybody."""
        example = self.server.root / "example"
        example.mkdir()
        document = (harness.ROOT / "examples/building-security/ion.yaml").read_text()
        shorter, n = re.subn(r"steps: \d+", "steps: 40", document)
        self.assertEqual(n, 1)
        (example / "ion.yaml").write_text(shorter)
        demo = subprocess.Popen(
            [harness.WEIR, "demo", "building-security", "--state", str(self.server.state), "--people", "6", "--photos",
             "8", "--passers", "20", "--example", str(example)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def stop():
            demo.kill()
            demo.wait()
        self.addCleanup(stop)
        return stop

    def decisions(self):
        return self.server.get("/decisions?limit=1000")["items"]

    def test_the_frames_of_the_reference_use_case_are_decided_and_taken_away(self):
        stop = self.start_demo()
        wait_until(lambda: len(self.decisions()) >= 60, 120, "60 decisions")
        stop()
        demo = self.server.state / "demo"
        wait_until(lambda: not list(demo.glob("frames/*/[0-9]*.pgm")), 20, "all frames to be taken away")
        sent = [json.loads(line) for line in (demo / "sent.jsonl").read_text().splitlines()]
        # The last frame of a camera may be in the ledger and not yet in the folder.
        wait_until(lambda: len(sent) - len(self.decisions()) <= 3, 20, "every frame to be decided")
        damaged = {(line["camera"], line["frame"]) for line in sent if line["damaged"]}
        wrong = {(d["camera"], d["frame"]) for d in self.decisions() if d["verdict"] == "error"}
        self.assertLessEqual(wrong, damaged)
        doors = [path.stat() for path in (demo / "frames").iterdir()]
        self.assertTrue(doors)
        for door in doors:  # the group of all tasks, and nobody else
            self.assertEqual((door.st_uid, oct(door.st_mode & 0o7777)), (0, "0o2770"))
            self.assertNotEqual(door.st_gid, 0)


if __name__ == "__main__":
    harness.main()

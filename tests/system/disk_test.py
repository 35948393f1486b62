"""What a task's folder may hold, on a file system with project quotas: writing fails at the bound, and a task cannot
leave its project."""
import os
import shutil
import subprocess
import tempfile
import unittest

import harness
from harness import Server, wait_until

ENDED = ("SUCCEEDED", "FAILED", "CANCELLED")
WRITER = """
import errno, fcntl, os, struct
try:
    with open("full", "wb") as file:
        for _ in range(64):
            file.write(bytes(1 << 20))
            file.flush()
    print("GOT more")
except OSError as error:
    print("refused", errno.errorcode[error.errno])
open("other", "w").close()
try:  # FS_IOC_FSSETXATTR: another project
    fcntl.ioctl(os.open("other", os.O_RDWR), 0x401c5820, struct.pack("5I8x", 0, 0, 0, 0, 0))
    print("GOT out")
except OSError as error:
    print("stayed")
"""


class Quota(unittest.TestCase):
    def setUp(self):
        if os.geteuid() != 0 or not shutil.which("mkfs.ext4"):
            self.skipTest("not root, or no mkfs.ext4")
        self.folder = tempfile.mkdtemp(prefix="weir-quota-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        image, mount = self.folder + "/image", self.folder + "/mount"
        os.mkdir(mount)
        with open(image, "wb") as file:
            file.truncate(512 << 20)
        made = subprocess.run(["mkfs.ext4", "-q", "-O", "quota,project", "-E", "quotatype=prjquota", image],
                              capture_output=True, text=True)
        mounted = made if made.returncode else subprocess.run(["mount", "-o", "loop,prjquota", image, mount],
                                                              capture_output=True, text=True)
        if mounted.returncode:
            self.skipTest("no file system with project quotas here: " + mounted.stderr.strip()[:200])
        self.addCleanup(subprocess.run, ["umount", "-l", mount])
        self.server = Server(state=mount + "/state")
        self.addCleanup(self.server.stop)
        self.server.start()

    def test_writing_fails_at_the_bound(self):
        wait_until(lambda: self.server.get("/nodes")["items"], 20, "the node")
        isolation = self.server.get("/nodes")["items"][0]["inventory"]["isolation"]
        self.assertEqual(isolation["disk"], "quota")
        job = self.server.post("/jobs", {"name": "x", "kind": "command", "max_restarts": 0, "spec": {
            "argv": ["python3", "-c", WRITER], "disk_max_bytes": 8 << 20}})["id"]
        wait_until(lambda: self.server.get(f"/jobs/{job}")["state"] in ENDED, 60, "its end")
        log = self.server.weir("logs", job)[1]
        self.assertIn("refused EDQUOT", log)
        self.assertIn("stayed", log)
        self.assertNotIn("GOT", log)


if __name__ == "__main__":
    harness.main()

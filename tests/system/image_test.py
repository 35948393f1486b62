"""A job in an OCI image: its root is the image's, its folders are the job's, and the sandbox is as any job's."""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import unittest

import harness
from harness import HttpError, Server, wait_until
from images import make_image, pack, programs

ENDED = ("SUCCEEDED", "FAILED", "CANCELLED")
PLAIN_USER = 64123  # without an account


class ImageTest(unittest.TestCase):
    def start_server(self, *program):
        if shutil.which("crun") is None:
            self.skipTest("no crun here")
        server = Server()
        self.addCleanup(server.stop)
        if program:
            server.root.chmod(0o755)
            os.chown(server.root, PLAIN_USER, PLAIN_USER)
            server.program = [*program, harness.WEIR]
        self.server = server.start()
        wait_until(lambda: server.get("/nodes")["items"], 20, "the node")
        self.isolation = server.get("/nodes")["items"][0]["inventory"]["isolation"]
        if not self.isolation["mounts"] or not self.isolation["namespaces"]:
            self.skipTest("no sandboxes here: " + "; ".join(self.isolation["missing"]))
        if self.isolation["images"] == "none":
            self.skipTest("no images here")
        first = [("./" + name, path) for name, path in programs("sh", "cat", "ls", "id", "sleep").items()]
        first += [("etc/os-release", b"NAME=tiny\n"), ("gone", b"x"), ("usr/bin", ("link", "/bin"))]
        self.files = make_image([first, [(".wh.gone", b""), ("usr/bin/hello", b"#!/bin/sh\necho hello from $COLOUR\n")]],
                                env=["PATH=/bin", "COLOUR=blue"])
        self.image = server.root / "tiny.tar"
        pack(self.files, self.image)

    def run_job(self, *argv, **spec):
        job = self.server.post("/jobs", {"name": "x", "kind": "command", "max_restarts": 0,
                                         "spec": {"argv": list(argv), **spec}})["id"]
        wait_until(lambda: self.server.get(f"/jobs/{job}")["state"] in ENDED, 60, "the job to end")
        return self.server.get(f"/jobs/{job}"), self.server.weir("logs", job)[1]

    def check_image(self, is_root):
        server = self.server
        done = subprocess.run([harness.WEIR, "job", "run", "--state", str(server.state), "--image", str(self.image),
                               "--no-files", "--follow", "--", "hello"], capture_output=True, text=True, timeout=60)
        self.assertIn("hello from blue", done.stdout, done.stderr)
        image = server.get("/jobs")["items"][0]["spec"]["image"]
        self.assertEqual(image, "sha256:" + hashlib.sha256(self.image.read_bytes()).hexdigest())
        job, log = self.run_job(
            "sh", "-c", "cat /etc/os-release; ls /; ls -a . /tmp; cat note; echo pwd $PWD home $HOME rank $WEIR_RANK; id; "
            "cat /proc/self/status; (echo x > /mine) 2>/dev/null && echo GOT root; (echo x > /bin/mine) 2> /dev/null && echo GOT bin; "
            "echo x > here && echo x > /tmp/t && echo wrote; ls /proc/1/root && echo GOT init; cat $S/admin.token && echo GOT; "
            "ls /usr /home /var/lib; exit 3", image=image, files={"note": "take note\n"}, env={"S": str(server.state)})
        self.assertEqual(job["state"], "FAILED", log)
        self.assertIn("(exit 3)", job["reason"])
        self.assertIn("NAME=tiny", log)
        self.assertIn("take note", log)
        self.assertIn("wrote", log)
        self.assertNotIn("GOT", log)
        self.assertNotIn("gone", log.split())
        self.assertIn("/work home", log)
        for line in ("NoNewPrivs:\t1", "Seccomp:\t2", "CapBnd:\t0000000000000000", "CapEff:\t0000000000000000"):
            self.assertIn(line, log)
        self.assertEqual("uid=0" in log, not is_root)  # a plain user's tasks are called root, and are that user
        self.assertEqual(self.left_over(), [])

    def check_look(self, is_root):
        """Into a task in an image: what is there is the image's, and nothing of the node's is needed for a file."""
        image = "sha256:" + hashlib.sha256(self.image.read_bytes()).hexdigest()
        job = self.server.post("/jobs", {"name": "look", "kind": "command", "spec": {"argv": ["sleep", "1000"], "image": image}})["id"]
        wait_until(lambda: self.server.get(f"/jobs/{job}/tasks")["items"][0]["state"] == "RUNNING", 30, "it to run")

        def look():
            return self.server.weir("job", "exec", job, "--", "sh", "-c", "cat /etc/os-release; echo $COLOUR $PWD; id -u; "
                                    "cat /proc/self/status; (echo x > /bin/mine) 2> /dev/null && echo GOT; ls /usr", check=False)[1]

        text = wait_until(lambda: "NAME=tiny" in (text := look()) and text, 20, "the program to have its root")
        self.assertIn("blue ", text)
        self.assertIn("/work", text)
        self.assertNotIn("GOT", text)
        for line in ("NoNewPrivs:\t1", "Seccomp:\t2", "CapBnd:\t0000000000000000", "CapEff:\t0000000000000000"):
            self.assertIn(line, text)
        self.assertEqual("\n0\n" in text, not is_root)
        (self.server.root / "note").write_bytes(b"from outside\n")
        self.server.weir("job", "cp", str(self.server.root / "note"), f"{job}:note")
        self.assertEqual(self.server.weir("job", "exec", job, "--", "cat", "note")[1], "from outside\n")
        self.server.weir("job", "cp", f"{job}:/etc/os-release", str(self.server.root / "back"))
        self.assertEqual((self.server.root / "back").read_bytes(), b"NAME=tiny\n")
        self.server.post(f"/jobs/{job}/cancel")
        wait_until(lambda: self.server.get(f"/jobs/{job}")["state"] == "CANCELLED", 30, "its end")
        self.assertEqual(self.left_over(), [])

    def left_over(self):
        return self.server.pids("crun")

    def test_under_an_agent_that_is_root(self):
        if os.geteuid() != 0:
            self.skipTest("not root")
        self.start_server()
        # It has room, and comes first; but it starts no images.
        self.server.request("PUT", "/api/v1/nodes/a-first", {"cpu_slots": 64, "inventory": {"isolation": {"images": "none"}}})
        self.check_image(True)
        self.check_look(True)
        self.check_stop()
        self.check_named()

    def check_stop(self):
        asked = "trap 'echo asked; exit 0' TERM; echo ready; while :; do sleep 0.1; done"
        # A shell dies of the signal: what it waited for is asked then, and has the rest of the grace.
        for argv in (["sh", "-c", asked], ["sh", "-c", 'sh -c "$ASKED"; echo never']):
            job = self.server.post("/jobs", {"name": "long", "kind": "command", "spec": {
                "argv": argv, "env": {"ASKED": asked},
                "image": "sha256:" + hashlib.sha256(self.image.read_bytes()).hexdigest()}})["id"]
            wait_until(lambda: "ready" in self.server.weir("logs", job)[1], 30, "its first words")
            self.server.post(f"/jobs/{job}/cancel")
            wait_until(lambda: self.server.get(f"/jobs/{job}")["state"] == "CANCELLED", 30, "its end")
            wait_until(lambda: "asked" in self.server.weir("logs", job)[1], 10, "its last words")
            self.assertNotIn("never", self.server.weir("logs", job)[1])
            self.assertEqual(self.left_over(), [])

    def check_named(self):
        """An image layout in the node's folder; names that lead elsewhere; images that are none."""
        folder = self.server.state / "agent/oci/small"
        for name, data in self.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
        self.assertIn("hello", self.run_job("hello", image="small")[1])
        for name in ("../small", "/etc", "", ".hidden", "sha256:12"):
            with self.assertRaises(HttpError) as refused:
                self.run_job("true", image=name)
            self.assertEqual(refused.exception.code, 400)
            self.assertIn("$.spec.image", refused.exception.body)
        missing = self.run_job("nosuch", image="small")[0]
        self.assertIn("exit 127", missing["reason"])
        self.assertIn("neither a file nor a folder", self.run_job("true", image="none")[0]["reason"])
        self.assertIn("there is no blob", self.run_job("true", image="sha256:" + "0" * 64)[0]["reason"])
        (folder / "index.json").unlink()
        self.assertIn("not a whole OCI image", self.run_job("true", image="small")[0]["reason"])
        (folder / "index.json").symlink_to("/etc/shadow")
        self.assertIn("not a whole OCI image", self.run_job("true", image="small")[0]["reason"])
        evil = make_image([[("up", ("link", "/")), ("up/etc/cron.d/evil", b"x"), ("x/../../../../evil", b"x")]])
        for name, data in evil.items():
            path = self.server.state / "agent/oci/evil" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        self.assertIn("leads out of it", self.run_job("true", image="evil")[0]["reason"])
        self.assertFalse(pathlib.Path("/etc/cron.d/evil").exists())

    def test_where_no_node_has_crun_it_is_refused(self):
        server = Server("--no-agent").start()
        self.addCleanup(server.stop)
        self.server = server
        server.request("PUT", "/api/v1/nodes/plain", {"cpu_slots": 64, "inventory": {"isolation": {"images": "none"}}})
        with self.assertRaises(HttpError) as refused:
            self.run_job("true", image="small")
        self.assertIn("no node can start", refused.exception.body)
        server.request("PUT", "/api/v1/nodes/able", {"cpu_slots": 1, "inventory": {"isolation": {"images": "crun"}}})
        job = server.post("/jobs", {"name": "x", "kind": "command", "spec": {"argv": ["true"], "image": "small"}})["id"]
        wait_until(lambda: server.get(f"/jobs/{job}/tasks")["items"][0]["node"] == "able", 20, "its node")

    def test_under_a_plain_users_agent(self):
        if os.geteuid() != 0:
            self.start_server()
        elif shutil.which("setpriv") is None:
            self.skipTest("no setpriv to become a plain user with")
        else:
            self.start_server("setpriv", f"--reuid={PLAIN_USER}", f"--regid={PLAIN_USER}", "--clear-groups", "env",
                              "HOME=/nonexistent")
        self.check_image(False)
        self.check_look(False)


if __name__ == "__main__":
    harness.main()

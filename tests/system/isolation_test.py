"""What a task may reach: an agent that is root starts it as a user of its own, in a namespace of its own
(src/agent/sandbox.h). Here an ML engineer's job tries what an attacker would."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

import harness
from harness import HttpError, Server, wait_until

sys.path.insert(0, str(harness.ROOT / "bench"))
from serving import drawn_face  # noqa: E402

ENDED = ("SUCCEEDED", "FAILED", "CANCELLED")


class Isolation(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server().start()
        cls.addClassCleanup(cls.server.stop)
        wait_until(lambda: cls.server.get("/nodes")["items"], 20, "the node")
        cls.isolation = cls.server.get("/nodes")["items"][0]["inventory"]["isolation"]
        cls.server.post("/users", {"name": "ada", "kind": "person", "role": "ml-engineer"})
        made = cls.server.weir("token", "create", "ada", "--role", "ml-engineer", "--user", "ada", "-o", "json")[1]
        cls.scientist = json.loads(made)["secret"]

    def setUp(self):
        if not self.isolation["mounts"]:
            self.skipTest("no sandboxes here: " + "; ".join(self.isolation["missing"]))

    def start(self, script, **spec):
        body = {"name": "steal", "kind": "command", "spec": {"argv": ["bash", "-c", script], **spec}, "max_restarts": 0}
        return self.server.request("POST", "/api/v1/jobs", body, token=self.scientist)["id"]

    def state(self, job):
        return self.server.get(f"/jobs/{job}")["state"]

    def end(self, job):
        try:
            wait_until(lambda: self.state(job) in ENDED, 60, "the job to end")
        except AssertionError as error:
            seen = self.server.weir("describe", "job", job)[1] + self.server.weir("logs", job)[1]
            raise AssertionError(f"{error}\n{seen}\n{self.server.log_text()}") from error
        return self.server.weir("logs", job)[1]

    def run_job(self, script, **spec):
        job = self.start(f"S='{self.server.state}'; {script}", **spec)
        log = self.end(job)
        return self.state(job), log

    def task_of(self, job):
        """The folder of its one task on this machine, and the pid."""
        def find():
            for folder in (self.server.state / "agent/tasks").iterdir():
                try:
                    if json.loads((folder / "task.json").read_text())["job"] == job:
                        return folder, json.loads((folder / "run.json").read_text())["pid"]
                except FileNotFoundError:
                    pass
            return None
        return wait_until(find, 20, "the task to start")

    def test_the_node_says_what_separates_its_tasks(self):
        self.assertTrue(self.isolation["user"])
        self.assertTrue(self.isolation["no_new_privs"])
        self.assertEqual(self.isolation["capabilities"], "none")

    def test_no_secret_of_the_server_is_read_and_nothing_of_it_written(self):
        before = (self.server.state / "admin.token").read_bytes()
        state, log = self.run_job(
            "for f in admin.token worker.token weir.db weir.db-wal agent/token agent/lock agent/agent.json; do "
            "head -c 20 $S/$f && echo GOT $f; done; "
            "find $S -type f -not -path \"$PWD/*\" -not -path '*/given/*' 2>/dev/null | sed 's/^/GOT /'; "
            "for d in $S $S/agent $S/datasets $S/agent/tasks; do touch $d/mine && echo GOT $d; done; "
            "cat /etc/shadow && echo GOT shadow; "
            "for p in /proc/[0-9]*; do [ -O $p ] || echo GOT $p; done; true")
        self.assertEqual(state, "SUCCEEDED", log)
        self.assertNotIn("GOT", log)
        self.assertEqual(before, (self.server.state / "admin.token").read_bytes())
        self.assertEqual([folder for folder in (".", "agent", "datasets", "agent/tasks")
                          if (self.server.state / folder / "mine").exists()], [])

    def test_jobs_reach_neither_each_others_files_nor_each_others_processes(self):
        victim = self.start("echo precious > secret; echo precious > /dev/shm/x; echo precious > /tmp/x; sleep 1000")
        folder, pid = self.task_of(victim)
        wait_until(lambda: (folder / "work/secret").exists(), 20, "the victim's file")
        user = os.stat(f"/proc/{pid}").st_uid
        state, log = self.run_job(
            f"cat {folder}/work/secret {folder}/work/token {folder}/task.json && echo GOT; "
            f"cat /dev/shm/x /tmp/x /var/tmp/x && echo GOT; ls -d /dev/shm/weir-* && echo GOT; "
            f"cat /proc/{pid}/environ && echo GOT; ls /proc/{pid}/cwd/ && echo GOT; kill -9 {pid} && echo GOT; "
            f"kill -CONT {pid} && echo GOT; [ $(id -u) = {user} ] && echo GOT; "
            "python3 -c 'import ctypes; l=ctypes.CDLL(None,use_errno=True); "
            f"print(\"GOT\" if l.ptrace(16,{pid},0,0) == 0 else \"refused\")'; true")
        self.assertEqual(state, "SUCCEEDED", log)
        self.assertNotIn("GOT", log)
        self.assertNotIn("precious", log)
        self.assertIn("refused", log)
        self.assertEqual(self.state(victim), "RUNNING")
        self.assertRegex(self.server.weir("get", "tasks", victim)[1], r" 1 +RUNNING +- ")
        self.server.post(f"/jobs/{victim}/cancel")
        self.end(victim)
        self.assertRegex(self.server.weir("get", "tasks", victim)[1], r" SIGTERM ")

    def test_no_way_back_to_root(self):
        state, log = self.run_job(
            "grep -E '^(Cap|NoNew)' /proc/self/status; su -c id root < /dev/null && echo GOT; "
            "mount -t tmpfs none /mnt && echo GOT; unshare -m true && echo GOT; chroot / id && echo GOT; "
            "echo $$ > /sys/fs/cgroup/cgroup.procs && echo GOT; umount /tmp && echo GOT; umount $S && echo GOT; "
            "umount /proc && echo GOT; mknod d b 8 0 && echo GOT; cp /bin/id i; chmod u+s i; ./i; true")
        self.assertEqual(state, "SUCCEEDED", log)
        self.assertNotIn("GOT", log)
        self.assertNotIn("uid=0", log)
        self.assertIn("NoNewPrivs:\t1", log)
        self.assertIn("CapBnd:\t0000000000000000", log)

    def test_what_a_job_leaves_vanishes_with_it(self):
        job = self.start("echo x > /dev/shm/x; echo x > /tmp/x; for i in $(seq 200); do setsid sleep 1000 & done; "
                         "echo ready; sleep 0.2")
        folder, pid = self.task_of(job)
        user = json.loads((folder / "task.json").read_text())["cell"]["user"]
        self.end(job)
        self.assertEqual([entry for entry in pathlib.Path("/proc").iterdir()
                          if entry.name.isdigit() and self.owner(entry) == user and not self.is_zombie(entry)], [])
        wait_until(lambda: not (self.server.state / "agent/jobs" / job).exists(), 30, "the job's folder to go")
        self.assertFalse(pathlib.Path(f"/dev/shm/weir-{user}").exists())
        self.assertFalse(pathlib.Path(f"/run/weir-users/{user}").exists())

    @staticmethod
    def is_zombie(path):
        """Dead, and waiting for a parent that may be slow to ask: a container's first process."""
        try:
            return (path / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except OSError:
            return True

    @staticmethod
    def owner(path):
        try:
            return path.stat().st_uid
        except OSError:
            return None

    def test_a_fork_bomb_is_bounded_and_named(self):
        # A shell that ends when it cannot fork: bash would try again for 15 s.
        state, log = self.run_job("exec dash -c 'while :; do sleep 1000 & done'")
        self.assertEqual(state, "FAILED")
        if self.isolation["cgroup_pids"] != "none":
            jobs = [job for job in self.server.get("/jobs")["items"] if "its limit of 4096 processes" in str(job)]
            self.assertTrue(jobs)

    def test_a_dataset_is_read_by_name_and_cannot_be_changed(self):
        folder = self.server.root / "faces"
        for person in range(2):
            (folder / f"p{person}").mkdir(parents=True)
            (folder / f"p{person}/0.pgm").write_bytes(drawn_face(person, 0))
        for command in (("create", "faces"), ("put", "faces", str(folder)), ("freeze", "faces")):
            self.server.weir("dataset", *command)
        state, log = self.run_job(
            "D=$(python3 -c 'import json,os; print(json.loads(os.environ[\"WEIR_DATASETS\"])[\"faces\"])'); "
            "cksum < $D/p1/0.pgm; touch $D/p1/x && echo GOT; rm $D/p1/0.pgm && echo GOT; true", datasets=["faces"])
        self.assertEqual(state, "SUCCEEDED", log)
        self.assertNotIn("GOT", log)
        self.assertIn(subprocess.run("cksum", input=drawn_face(1, 0), capture_output=True).stdout.decode().strip(), log)
        state, log = self.run_job("ls $S/datasets && echo GOT; true")
        self.assertNotIn("GOT", log)

    def test_weirs_own_folder_is_no_ones_data(self):
        for spec in ({"model": "lenet", "data": f"{self.server.state}/blobs"},
                     {"model": "lenet", "data": "/srv", "checkpoint_dir": f"{self.server.state}/checkpoints/other"},
                     {"model": "lenet", "data": f"/tmp/../{self.server.state}"}):
            with self.assertRaises(HttpError) as refused:
                self.server.request("POST", "/api/v1/jobs", {"name": "t", "kind": "train", "spec": spec},
                                    token=self.scientist)
            self.assertEqual(refused.exception.code, 400, spec)
        ion = {"kind": "ion", "name": "thief", "pipelines": [
            {"name": "training", "type": "training", "dataset": "faces", "model": "face-embed"},
            {"name": "door", "type": "prediction", "gallery": {"dataset": "faces"},
             "source": {"kind": "directory", "path": f"{self.server.state}/agent"}}],
               "links": [{"from": "training", "to": "door", "policy": "manual"}]}
        with self.assertRaises(HttpError) as refused:
            self.server.post("/ions", ion)
        self.assertIn("Weir's own folder", refused.exception.body)

    def test_of_the_machine_a_job_sees_programs_and_libraries_alone(self):
        folder = pathlib.Path(f"/var/lib/weir-test-{os.getpid()}")
        folder.mkdir(mode=0o755)
        self.addCleanup(shutil.rmtree, folder)
        (folder / "data").write_text("precious")
        program = folder / "go"
        program.write_text("#!/bin/sh\necho GOT\n")
        program.chmod(0o755)
        state, log = self.run_job(f"cat {folder}/data && echo GOT; ls /home/* /root /var/lib/* /srv/* && echo GOT; "
                                  "ls /usr/bin/env /etc/passwd /usr/lib && echo seen; getent hosts localhost && echo named")
        self.assertEqual(state, "SUCCEEDED", log)
        self.assertNotIn("GOT", log)
        self.assertNotIn("precious", log)
        self.assertIn("seen", log)
        self.assertIn("named", log)
        job = self.server.post("/jobs", {"name": "t", "kind": "command", "max_restarts": 0,
                                         "spec": {"argv": [str(program)]}})["id"]
        self.end(job)
        self.assertIn("start the agent with --share", self.server.get(f"/jobs/{job}")["reason"])

    def test_a_folder_out_of_reach_is_named_with_what_helps(self):
        private = pathlib.Path(f"/var/lib/weir-test-{os.getpid()}")
        private.mkdir(mode=0o700)
        self.addCleanup(private.rmdir)
        job = self.server.request("POST", "/api/v1/jobs", {"name": "t", "kind": "train", "max_restarts": 0,
                                                           "spec": {"model": "lenet", "data": str(private)}},
                                  token=self.scientist)["id"]
        self.end(job)
        reason = json.dumps(self.server.get(f"/jobs/{job}"))
        self.assertIn(f"cannot read {private}: let every user do so, or start the agent with --share {private}", reason)


if __name__ == "__main__":
    harness.main()

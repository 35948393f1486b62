"""A hostile job: what it tries from inside (hostile_task.py) is refused, whether its agent is root or a plain user, and in
an image.
The table of attempts and answers is printed."""
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import unittest

import harness
import images
from harness import Server, parent_of, wait_until

ENDED = ("SUCCEEDED", "FAILED", "CANCELLED")
KEY = 0x57656972
PLAIN_USER = 64123  # without an account
HOSTILE = (pathlib.Path(__file__).parent / "hostile_task.py").read_text()
VICTIM = """
import ctypes, os, pathlib, time
libc = ctypes.CDLL(None, use_errno=True)
for path in ("secret", "/dev/shm/victim", "/tmp/victim"):
    pathlib.Path(path).write_text("precious")
assert libc.shmget(KEY, 4096, 0o1666) >= 0 and libc.semget(KEY, 1, 0o1666) >= 0 and libc.msgget(KEY, 0o1666) >= 0
libc.syscall(240, b"victim", os.O_RDWR | os.O_CREAT, 0o666, None)
pathlib.Path("ready").write_text("")
time.sleep(1000)
""".replace("KEY", str(KEY))


class Hostile(unittest.TestCase):
    def start_server(self, *program):
        server = Server()
        self.addCleanup(server.stop)
        if program:
            server.root.chmod(0o755)
            os.chown(server.root, PLAIN_USER, PLAIN_USER)
            server.program = [*program, harness.WEIR]
        server.start()
        wait_until(lambda: server.get("/nodes")["items"], 20, "the node")
        node = server.get("/nodes")["items"][0]
        self.isolation = node["inventory"]["isolation"]
        self.node = node["name"]
        self.server = server
        if not self.isolation["mounts"] or not self.isolation["namespaces"]:
            self.skipTest("no sandboxes here: " + "; ".join(self.isolation["missing"]))

    def start(self, argv, **spec):
        return self.server.post("/jobs", {"name": "x", "kind": "command", "max_restarts": 0,
                                          "spec": {"argv": argv, **spec}})["id"]

    def end(self, job, seconds=60):
        wait_until(lambda: self.server.get(f"/jobs/{job}")["state"] in ENDED, seconds, "the job to end")
        return self.server.get(f"/jobs/{job}")

    def task_of(self, job):
        """Folder and run.json of its one task."""
        def find():
            for folder in (self.server.state / "agent/tasks").iterdir():
                try:
                    if json.loads((folder / "task.json").read_text())["job"] == job:
                        return folder, json.loads((folder / "run.json").read_text())
                except FileNotFoundError:
                    pass
            return None
        return wait_until(find, 20, "the task to start")

    def targets(self, victim, is_root):
        folder, run = self.task_of(victim)
        wait_until(lambda: (folder / "work/ready").exists(), 20, "the victim to be ready")
        return {"state": str(self.server.state), "victim_dir": str(folder), "victim": run["pid"], "victim_job": victim,
                "victim_task": folder.name.rpartition(".")[0], "node": self.node, "server": self.server.process.pid,
                "agent": self.server.agent(), "supervisor": parent_of(run["pid"]), "key": KEY, "queue": "victim", "is_root": is_root,
                "secrets": [(self.server.state / name).read_text().strip() for name in ("admin.token", "agent/token")
                            if (self.server.state / name).exists()],
                "groups": run["groups"]}

    def put_image(self):
        """An image with Python, in the node's folder of images. Returns its name."""
        files = images.python()
        if self.isolation["images"] == "none" or files is None:
            self.skipTest("no crun here, or no Python of the system's to make an image of")
        layer = [*images.programs("sh", "su", "id", "sleep", "setsid", "bash").items(), *files.items()]
        folder = self.server.state / "agent/oci"
        folder.mkdir(exist_ok=True)
        images.pack(images.make_image([layer], env=["PATH=/usr/bin:/bin"]), folder / "python.tar")
        return {"image": "python.tar"}

    def attack(self, is_root, **spec):
        if platform.machine() != "x86_64":
            self.skipTest("hostile_task.py knows the numbers of system calls of x86-64 alone")
        victim = self.start(["python3", "-c", VICTIM])
        targets = self.targets(victim, is_root)
        before = {name: (self.server.state / name).stat().st_mtime_ns for name in ("admin.token", "agent/token")
                  if (self.server.state / name).exists()}
        hostile = self.start(["python3", "hostile_task.py"], files={"hostile_task.py": HOSTILE},
                             env={"TARGETS": json.dumps(targets)}, **spec)
        ended = self.end(hostile, 120)
        log = self.server.weir("logs", hostile)[1]
        table = [json.loads(line[line.index("{"):]) for line in log.splitlines() if '{"attempt"' in line]
        for row in table:
            print(f"  {row['attempt']:60} {'GOT ' + row['got'] if row['got'] else 'refused: ' + row.get('answer', '')}",
                  file=sys.stderr)
        self.assertEqual(ended["state"], "SUCCEEDED", log[-2000:])
        self.assertEqual(table[-1]["attempt"], "end")
        self.assertGreaterEqual(len(table), 100)
        self.assertEqual([row for row in table if row["got"]], [])
        # Nobody was hurt, and nothing was followed, left behind, or kept from being removed.
        self.assertEqual(self.server.get(f"/jobs/{victim}")["state"], "RUNNING")
        self.assertEqual(before, {name: (self.server.state / name).stat().st_mtime_ns for name in before})
        self.assertNotIn("precious", log)
        self.assertNotIn("root:", log)
        wait_until(lambda: not (self.server.state / "agent/jobs" / hostile).exists(), 30, "the job's folder to go")
        self.assertFalse([pid for pid in self.server.pids("sleep 1000") if "hostile" in harness.line_of(pid)])
        self.assertTrue((self.server.state / "admin.token").exists())
        self.server.post(f"/jobs/{victim}/cancel")
        self.end(victim)

    def test_from_a_job_of_an_agent_that_is_root(self):
        if os.geteuid() != 0:
            self.skipTest("not root")
        self.start_server()
        self.attack(True)

    def test_from_a_job_in_an_image(self):
        if os.geteuid() != 0:
            self.skipTest("not root")
        self.start_server()
        self.attack(True, **self.put_image())

    def test_from_a_job_in_an_image_of_a_plain_users_agent(self):
        self.start_plain_server()
        self.attack(False, **self.put_image())

    def test_from_a_job_of_a_plain_users_agent(self):
        self.start_plain_server()
        self.attack(False)

    def start_plain_server(self):
        if os.geteuid() == 0:
            if shutil.which("setpriv") is None:
                self.skipTest("no setpriv to become a plain user with")
            self.start_server("setpriv", f"--reuid={PLAIN_USER}", f"--regid={PLAIN_USER}", "--clear-groups", "env",
                              "HOME=/nonexistent")
        else:
            self.start_server()

    def test_what_a_job_takes_is_bounded(self):
        self.start_server()
        # bash itself waits half a minute at the bound before it gives up.
        bomb = self.end(self.start(["bash", "-c", "for i in $(seq 5000); do sleep 1000 & done"]), 150)
        self.assertEqual(bomb["state"], "FAILED")
        if self.isolation["cgroup_memory"] != "none":
            greedy = self.end(self.start(["python3", "-c", "x = [bytearray(1 << 20) for _ in range(4096)]"],
                                         memory_max_bytes=64 << 20))
            self.assertIn("memory limit", greedy["reason"])
        write = "head -c 20000000 /dev/zero > f; sync; "
        takers = {what: self.start(["bash", "-c", line], **bound) for what, line, bound in (
            ("8388608", write + "exec sleep 1000", {"disk_max_bytes": 8 << 20}),
            ("8388607", "exec 5<> f; rm f; (head -c 20000000 /dev/zero >&5; sync); exec sleep 1000",
             {"disk_max_bytes": (8 << 20) - 1}),
            ("8388606", write + "exec python3 -c 'import mmap, os, time; f = open(\"f\"); os.unlink(\"f\"); "
             "m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ); os.close(f.fileno()); time.sleep(1000)'",
             {"disk_max_bytes": (8 << 20) - 2}),
            ("500", "mkdir d; cd d; touch $(seq 600); exec sleep 1000", {"files_max": 500}))}
        for bound, job in takers.items():
            self.assertIn(f"over its bound of {bound}", self.end(job)["reason"])
        alone = self.start(["python3", "-c", "import os, socket, urllib.parse as u\n"
                            "a = u.urlparse(os.environ['WEIR_SERVER'])\n"
                            "try: socket.create_connection((a.hostname, a.port), 5); print('GOT')\n"
                            "except OSError as e: print('refused', e)"], network="none")
        self.assertEqual(self.end(alone)["state"], "SUCCEEDED")
        log = self.server.weir("logs", alone)[1]
        self.assertIn("refused", log)
        self.assertNotIn("GOT", log)

    def test_where_nothing_can_be_built_the_node_says_so(self):
        """A plain user's agent where the kernel allows no user namespaces: jobs run, and what needs a sandbox is refused."""
        if os.geteuid() != 0 or shutil.which("setpriv") is None:
            self.skipTest("not root, or no setpriv to become a plain user with")
        closed = ["setpriv", f"--reuid={PLAIN_USER}", f"--regid={PLAIN_USER}", "--clear-groups", "unshare", "--user",
                  "--map-current-user", "--keep-caps", "sh", "-c", "echo 0 > /proc/sys/user/max_user_namespaces && "
                  "exec setpriv --inh-caps=-all --ambient-caps=-all --bounding-set=-all env HOME=/nonexistent \"$@\"", "sh"]
        if subprocess.run([*closed, "true"], capture_output=True).returncode:
            self.skipTest("user namespaces cannot be closed here")
        with self.assertRaises(unittest.SkipTest) as said:
            self.start_server(*closed)
        self.assertIn("user namespaces are not allowed here", str(said.exception))
        self.assertIn("jobs reach each other", str(said.exception))
        described = self.server.weir("describe", "node", self.node)[1]
        self.assertIn("user namespaces are not allowed here", described)
        self.assertEqual(self.isolation["images"], "none")
        self.assertEqual(self.end(self.start(["true"]))["state"], "SUCCEEDED")
        alone = self.end(self.start(["true"], network="none"))
        self.assertIn('network "none" is not supported on this node', alone["reason"])
        with self.assertRaises(harness.HttpError) as refused:
            self.start(["true"], image="x")
        self.assertIn("no node can start", refused.exception.body)

    def test_ranks_of_one_job_meet_in_shared_memory(self):
        """The sandbox is around the job, not between its tasks."""
        self.start_server()
        job = self.start(["bash", "-c", "echo $WEIR_RANK > /dev/shm/r$WEIR_RANK; readlink /proc/self/ns/pid; "
                          "while [ $(ls /dev/shm/r? | wc -l) -lt 2 ]; do sleep 0.05; done; echo $$ > /tmp/p$WEIR_RANK; "
                          "while [ $(ls /tmp/p? | wc -l) -lt 2 ]; do sleep 0.05; done; "
                          "ls /proc/$(cat /tmp/p$((1 - WEIR_RANK)))/fd > /dev/null && touch /tmp/ok$WEIR_RANK; "
                          "while [ $(ls /tmp/ok? | wc -l) -lt 2 ]; do sleep 0.05; done"], tasks=2)
        self.assertEqual(self.end(job)["state"], "SUCCEEDED")


if __name__ == "__main__":
    harness.main()

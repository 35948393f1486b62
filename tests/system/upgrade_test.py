"""An upgrade in place from a version of long ago: what ran runs on, what it decided arrives, and in the end all of it is
the new version's. The old programs are built from the history of the repository, once."""
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import unittest

import harness
from fault_test import put_faces
from harness import Server, wait_until

sys.path.insert(0, str(harness.ROOT / "bench"))
from serving import drawn_face  # noqa: E402

OLD = "e757b44b972a622339201e9307675025c3bd6332"
PROGRAMS = ("weir", "weir-worker")


def old_programs(test):
    """Where they are: WEIR_OLD_BIN, or built beside this build."""
    if "WEIR_OLD_BIN" in os.environ:
        return pathlib.Path(os.environ["WEIR_OLD_BIN"])
    known = ["git", "-C", harness.ROOT, "cat-file", "-e", OLD + "^{commit}"]
    if shutil.which("git") is None or subprocess.run(known, capture_output=True).returncode != 0:
        test.skipTest(f"this clone has no commit {OLD[:8]}, from which the upgrade begins")
    folder = harness.BIN.parent / f"upgrade-from-{OLD[:8]}"
    built = folder / "build/dev/programs"
    if not (built / "weir-worker").exists():
        folder.mkdir(exist_ok=True)
        archive = subprocess.Popen(["git", "-C", harness.ROOT, "archive", OLD], stdout=subprocess.PIPE)
        subprocess.run(["tar", "-x", "-C", folder], stdin=archive.stdout, check=True)
        subprocess.run(["cmake", "--preset", "dev"], cwd=folder, check=True, capture_output=True)
        subprocess.run(["ninja", "-C", "build/dev", "-j2", *PROGRAMS], cwd=folder, check=True, capture_output=True)
    return built


class Upgrade(unittest.TestCase):
    def setUp(self):
        self.old = old = old_programs(self)
        self.server = Server()
        self.addCleanup(self.server.stop)
        self.bin = self.server.root / "bin"
        self.bin.mkdir()
        self.server.program = [str(self.bin / "weir")]
        self.install(old)
        self.frames, self.sink, self.n_frames = self.server.root / "frames/cam", self.server.root / "decisions.jsonl", 0
        self.frames.mkdir(parents=True)

    def install(self, folder):
        """As a package does: another file under the same name."""
        for name in PROGRAMS:
            shutil.copy(folder / name, self.bin / (name + ".new"))
            (self.bin / (name + ".new")).rename(self.bin / name)

    def start_old(self, *flags):
        """With the options that it knew then."""
        server = self.server
        server.log = open(server.root / "server.log", "ab")
        server.process = subprocess.Popen([*server.program, "server", "--state", str(server.state), "--listen", "127.0.0.1:0", *flags],
                                          stderr=server.log, start_new_session=True)
        wait_until((server.state / "server.json").exists, 30, "the old server")
        server.url = json.loads((server.state / "server.json").read_text())["url"]
        server.token = (server.state / "admin.token").read_text().strip()

    def train(self, version):
        self.server.post("/ions", {
            "kind": "ion", "name": "doors", "pipelines": [
                {"name": "training", "type": "training", "dataset": "faces", "model": "face-embed",
                 "parameters": {"epochs": 3, "batch_size": 12, "seed": version}},
                {"name": "door", "type": "prediction", "source": {"kind": "directory", "path": str(self.frames.parent)},
                 "gallery": {"dataset": "faces", "default": "allow"}, "sinks": [{"kind": "jsonl", "path": str(self.sink)}]}],
            "links": [{"from": "training", "to": "door", "policy": "manual"}]})
        self.server.post("/ions/doors/trigger", {"pipeline": "training"})
        wait_until(lambda: any(c["version"] == version for c in self.server.get("/ions/doors/candidates")["items"]), 120,
                   f"version {version}")

    def decide(self, n, seconds):
        """n frames, and their decisions at the door's own sink."""
        for _ in range(n):
            (self.frames / ".new").write_bytes(drawn_face(self.n_frames % 6, 7))
            (self.frames / ".new").rename(self.frames / f"{self.n_frames}.pgm")
            self.n_frames += 1
        wait_until(lambda: self.sink.exists() and len(self.sink.read_bytes().splitlines()) >= self.n_frames, seconds,
                   f"{self.n_frames} decisions in {self.sink}")

    def arrived(self):
        return sorted(one["frame"] for one in self.server.get("/decisions?ion=doors&limit=1000")["items"])

    def door_job(self):
        return [job for job in self.server.get("/jobs?kind=predict")["items"]]

    def test_what_ran_runs_on_and_is_the_new_version_s_in_the_end(self):
        server = self.server
        self.start_old()
        put_faces(server)
        self.train(1)
        server.post("/ions/doors/approve", {"version": 1})
        self.decide(5, 60)
        wait_until(lambda: self.arrived() == list(range(5)), 30, "the decisions before")
        door = server.get("/jobs?kind=predict")["items"][0]["id"]
        gate = server.root / "gate"
        running = server.post("/jobs", {"name": "long", "kind": "command", "spec": {
            "argv": ["sh", "-c", f"while [ ! -e {gate} ]; do sleep 0.1; done"]}})["id"]
        wait_until(lambda: server.get("/jobs/" + running)["state"] == "RUNNING", 20, "a job of before")
        server.kill(signal.SIGTERM)
        self.decide(5, 20)
        self.install(harness.BIN)
        server.start()
        self.decide(5, 20)
        wait_until(lambda: self.arrived() == list(range(self.n_frames)), 60, "what was decided meanwhile")
        self.assertEqual([job["id"] for job in server.get("/jobs?kind=predict")["items"]], [door], "it is the same door")
        self.decide(5, 20)
        wait_until(lambda: self.arrived() == list(range(self.n_frames)), 30, "what is decided now")
        lines = [json.loads(line)["frame"] for line in self.sink.read_bytes().splitlines()]
        self.assertEqual(sorted(lines), list(range(self.n_frames)), "each once")
        gate.touch()
        wait_until(lambda: server.get("/jobs/" + running)["state"] == "SUCCEEDED", 20, "the end of the job of before")
        self.assertEqual(server.get("/jobs/" + running)["attempt"], 1)
        status, _, said = server.weir("job", "restart", door, check=False)
        self.assertNotEqual(status, 0)
        self.assertIn("weir ion pause doors door", said)
        self.train(2)
        server.post("/ions/doors/approve", {"version": 2})
        self.decide(1, 60)
        self.leave_decisions(door)

    def start_agent(self, programs, listen, *flags):
        """An agent as of another machine, which has programs of its own."""
        folder = self.server.root / "agent-b"
        if not folder.exists():
            folder.mkdir(mode=0o700)
            made = subprocess.run([programs / "weir", "token", "create", "b", "--role", "agent", "--user", "agent", "-o", "json",
                                   "--state", self.server.state], capture_output=True, check=True)
            (folder / "token").write_text(json.loads(made.stdout)["secret"])
        with open(self.server.root / "agent.log", "ab") as log:
            agent = subprocess.Popen([programs / "weir", "agent", "--server", "http://" + listen, "--dir", folder, "--node", "b", *flags],
                                     stderr=log, start_new_session=True)
        self.addCleanup(agent.wait)
        self.addCleanup(agent.kill)
        return agent

    def refused(self, method, path, body, token):
        """The status of the refusal; None: it was none."""
        try:
            self.server.request(method, "/api/v1" + path, body, token=token)
        except harness.HttpError as error:
            return error.code

    def test_decisions_of_a_machine_whose_agent_is_of_before_arrive(self):
        server = self.server
        self.start_old("--no-agent")
        listen = server.url.removeprefix("http://")
        agent = self.start_agent(self.old, listen)
        put_faces(server)
        self.train(1)
        server.post("/ions/doors/approve", {"version": 1})
        self.decide(5, 60)
        wait_until(lambda: self.arrived() == list(range(5)), 30, "the decisions before")
        shared = (server.state / "worker.token").read_text().strip()
        door = self.door_job()[0]["id"]
        server.kill(signal.SIGTERM)
        self.decide(5, 20)
        self.install(harness.BIN)
        server.start("--listen", listen, "--no-agent")
        self.decide(5, 20)
        wait_until(lambda: self.arrived() == list(range(15)), 60, "what is decided under the old agent")
        item = server.get("/decisions?ion=doors")["items"][0]
        self.assertTrue(server.request("GET", f"/api/v1/decisions/{item['id']}/image", raw=True), "its picture")
        self.assertFalse((server.state / "worker.token").exists())
        for method, path, body in (("GET", "/session", None), ("GET", "/ions/doors/pipelines/door/deployment", None),
                                   ("GET", "/blobs/" + item["image"], None), ("POST", "/health-reports", {})):
            self.assertEqual(self.refused(method, path, body, shared), 401, path)
        forged = {"id": "x", "camera": "cam", "frame": 99, "verdict": "deny", "ion": "doors", "pipeline": "door"}
        for replica in (None, door + "-1", "x-0"):
            self.assertEqual(self.refused("POST", "/decisions", {"decisions": [{**forged, "replica": replica}]}, shared), 403)
        agent.kill()
        agent.wait()
        self.start_agent(harness.BIN, listen, "--share", f"{server.root}:rw")
        self.decide(5, 60)
        wait_until(lambda: self.arrived() == list(range(20)), 60, "what is decided under the new one")
        self.assertEqual([job["id"] for job in self.door_job()], [door])
        wait_until(lambda: self.refused("POST", "/decisions", {"decisions": [{**forged, "replica": door + "-0"}]}, shared) == 401,
                   30, "the end of the token")

    def leave_decisions(self, door):
        """A replica's last decisions did not arrive, and its job is over: the next one of the pipeline hands them in."""
        server = self.server
        wait_until(lambda: self.arrived() == list(range(self.n_frames)), 30, "all so far")
        server.kill(signal.SIGTERM)
        self.decide(3, 20)
        for pid in server.pids():
            os.kill(pid, signal.SIGKILL)
        replicas = server.state / "replicas"
        (replicas / f"{door}-0").rename(replicas / "left-0")
        with sqlite3.connect(server.state / "weir.db") as database:
            database.row_factory = sqlite3.Row
            job = dict(database.execute("SELECT * FROM jobs WHERE id = ?", (door,)).fetchone())
            job.update(id="left", state="CANCELLED", finished_ms=job["created_ms"])
            database.execute(f"INSERT INTO jobs ({', '.join(job)}) VALUES ({', '.join('?' * len(job))})", list(job.values()))
        database.close()
        server.start()
        server.weir("ion", "pause", "doors", "door")
        wait_until(lambda: server.get(f"/jobs/{door}")["state"] == "CANCELLED", 60, "the door to end")
        server.weir("ion", "resume", "doors", "door")
        wait_until(lambda: self.arrived() == list(range(self.n_frames)), 60, "what was left")


if __name__ == "__main__":
    harness.main()

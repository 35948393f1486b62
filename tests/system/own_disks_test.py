"""Nodes that see neither the server's disk nor each other's: what a job keeps from one attempt to the next goes over the
server. A training whose nodes are lost, disks and all, goes on elsewhere with the same weights; a program finds its folder."""
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time
import unittest

import harness
from harness import Server, WEIR, wait_until

sys.path.insert(0, str(harness.ROOT / "bench"))
from serving import drawn_face  # noqa: E402

# The state folder is covered before the agent starts, for it and all that it starts.
HIDE = 'mount -t tmpfs none "$1" && shift && exec "$@"'


class OwnDisks(unittest.TestCase):
    def setUp(self):
        if os.geteuid() != 0 or shutil.which("unshare") is None:
            self.skipTest("mount namespaces need root and unshare")
        self.agents = {}
        self.server = Server()
        self.addCleanup(self.stop)
        self.server.start("--no-agent", "--node-timeout", "10")

    def stop(self):
        for name in list(self.agents):
            self.lose(name)
        self.server.stop()

    def folder(self, name):
        return self.server.root / f"agent-{name}"

    def start(self, name, *flags):
        """A node that sees all but the server's disk."""
        folder = self.folder(name)
        folder.mkdir(mode=0o700)
        made = json.loads(self.server.weir("token", "create", f"node-{name}", "--role", "agent", "--user", "agent", "--node",
                                           name, "-o", "json")[1])
        (folder / "token").write_text(made["secret"])
        with open(self.server.root / f"agent-{name}.log", "ab") as log:
            self.agents[name] = subprocess.Popen(
                ["unshare", "--mount", "--propagation", "private", "sh", "-c", HIDE, "sh", str(self.server.state), WEIR,
                 "agent", "--server", self.server.url, "--dir", str(folder), "--node", name, "--cpu-slots", "1",
                 *flags], stderr=log, start_new_session=True)
        wait_until(lambda: self.node(name) == "ready", 30, f"node {name}")

    def node(self, name):
        return next((node["state"] for node in self.server.get("/nodes")["items"] if node["name"] == name), None)

    def lose(self, name):
        """The machine burns: its processes end at once, and its disk is gone."""
        agent = self.agents.pop(name)
        while pids := self.server.pids(f"agent-{name}") or self.within(name):
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        agent.wait()
        shutil.rmtree(self.folder(name))

    def within(self, name):
        """Tasks: their working folder lies in the node's."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and os.readlink(entry / "cwd").startswith(str(self.folder(name))):
                    found.append(int(entry.name))
        return found

    def submit(self, name, kind, spec, **more):
        return self.server.post("/jobs", {"name": name, "kind": kind, "spec": spec, **more})["id"]

    def job(self, job):
        return self.server.get(f"/jobs/{job}")

    def tasks(self, job):
        return self.server.get(f"/jobs/{job}/tasks")["items"]

    def log(self, job):
        return "".join(self.server.request("GET", f"/api/v1/tasks/{task['id']}/log", raw=True).decode(errors="replace")
                       for task in self.tasks(job))

    def ended(self, job, state="SUCCEEDED", seconds=120):
        wait_until(lambda: self.job(job)["state"] in ("SUCCEEDED", "FAILED", "CANCELLED"), seconds, f"the end of {job}")
        self.assertEqual(self.job(job)["state"], state, f"{self.job(job).get('reason')}\n{self.log(job)}")

    def kept(self, job):
        """What the server has of the job's checkpoints."""
        return [file["path"] for file in self.server.get(f"/jobs/{job}/checkpoint")["files"]]

    def newest(self, job):
        """The newest step that the server has a checkpoint of, 0 at first: a training that goes on from there says nothing of it."""
        return max((int(name[5:17]) for name in self.kept(job) if name.startswith("step-")), default=0)

    def put_faces(self):
        """A dataset whose files lie with the server alone."""
        folder = self.server.root / "faces"
        for person in range(3):
            (folder / f"p{person}").mkdir(parents=True)
            for photo in range(4):
                (folder / f"p{person}" / f"{photo}.pgm").write_bytes(drawn_face(person, photo, 28))
        self.server.weir("dataset", "create", "faces")
        self.server.weir("dataset", "put", "faces", str(folder))
        self.server.weir("dataset", "freeze", "faces")
        shutil.rmtree(folder)

    def weights(self, job):
        """The tensors of the model that the training's run has, without what the file says of itself."""
        data = self.server.request("GET", f"/api/v1/runs/{self.job(job)['run']}/artifacts/model.safetensors", raw=True)
        return data[8 + int.from_bytes(data[:8], "little"):]

    def left_on(self, name, folder):
        """What a node keeps of the server's folders."""
        return sorted(path.name for path in (self.folder(name) / "state" / folder).glob("*"))

    def test_a_training_that_loses_its_nodes_ends_with_the_same_weights_on_others(self):
        seed = random.randrange(1 << 32)
        print(f"seed {seed}", file=sys.stderr)
        chance = random.Random(seed)
        self.put_faces()
        spec = {"model": "lenet", "dataset": "faces", "workers": 2, "epochs": 40, "batch_size": 2, "learning_rate": 0.0005,
                "seed": chance.randrange(1000), "checkpoint_every_s": 0.2}
        self.start("a")
        self.start("b", "--isolation", "none")
        undisturbed = self.submit("undisturbed", "train", spec)
        began = time.monotonic()
        self.ended(undisturbed)
        took = time.monotonic() - began
        disturbed = self.submit("disturbed", "train", spec)
        wait_until(lambda: self.newest(disturbed), 60, "a checkpoint with the server")
        time.sleep(chance.uniform(0, took / 4))  # the moment is chosen, and nothing waited for
        self.assertEqual({task["node"] for task in self.tasks(disturbed)}, {"a", "b"})
        self.lose("a")
        self.lose("b")
        newest = self.newest(disturbed)
        self.start("c", "--isolation", "none")
        self.start("d")
        self.ended(disturbed)
        self.assertIn(f"resumed  step {newest}", self.log(disturbed))
        self.assertEqual({task["node"] for task in self.tasks(disturbed)}, {"c", "d"})
        self.assertEqual(self.weights(disturbed), self.weights(undisturbed))
        self.assertEqual(self.left_on("c", "checkpoints") + self.left_on("d", "checkpoints"), [])

    def test_a_program_finds_its_folder_again_on_another_node(self):
        self.put_faces()
        self.start("a")
        program = ('data=$(echo "$WEIR_DATASETS" | sed \'s/.*:"//; s/".*//\'); cd "$WEIR_CHECKPOINT"; n=$(cat deep/n || echo 0)\n'
                   'echo "begins at $n with $(ls "$data"/*/*.pgm | wc -l) photos"; n=$((n + 1)); mkdir -p deep; echo $n > deep/n\n'
                   'cp deep/n only-$n; rm -f only-$((n - 1)); ln -sf /etc/passwd link; test $n = 2 || sleep 1000')
        job = self.submit("counts", "command", {"argv": ["sh", "-c", program], "datasets": ["faces"], "stop_grace_ms": 200})
        wait_until(lambda: self.kept(job) == ["deep/n", "only-1"], 30, "the folder to be with the server")
        self.server.weir("node", "drain", "a")
        self.start("b", "--isolation", "none")
        self.server.post(f"/jobs/{job}/requeue")
        self.ended(job)
        self.assertEqual([task["node"] for task in self.tasks(job)], ["b"])
        self.assertIn("begins at 1 with 12 photos", self.log(job))
        self.assertEqual(self.kept(job), ["deep/n", "only-2"])
        self.assertEqual((self.server.state / "checkpoints" / job / "deep/n").read_text(), "2\n")
        for name in "ab":
            self.assertEqual(self.left_on(name, "checkpoints"), [])

    def test_what_is_written_while_the_server_is_away_is_brought_when_it_is_back(self):
        shared = self.server.root / "shared"
        shared.mkdir(mode=0o777)
        self.start("a", "--share", f"{shared}:rw")
        program = f'cd "$WEIR_CHECKPOINT"; echo 1 > one; while ! test -e {shared}/go; do sleep 0.05; done; echo 2 > two'
        job = self.submit("ends", "command", {"argv": ["sh", "-c", program]})
        wait_until(lambda: self.kept(job) == ["one"], 30, "the first file to be with the server")
        port = self.server.url.rsplit(":", 1)[1]
        self.server.kill()
        (shared / "go").touch()
        wait_until(lambda: list((self.folder("a") / "tasks").glob("*/ended.json")), 10, "the program's end")
        self.server.start("--no-agent", "--node-timeout", "10", "--listen", f"127.0.0.1:{port}")
        self.ended(job)
        self.assertEqual(self.kept(job), ["one", "two"])
        self.assertIn("2 files of the folder of checkpoints brought", self.log(job))

    def test_an_ion_trains_and_decides(self):
        frames = self.server.root / "frames"
        frames.mkdir(mode=0o777)
        self.put_faces()
        for name in "ab":
            self.start(name, "--share", f"{frames}:rw")
        document = self.server.root / "ion.yaml"
        document.write_text(
            "kind: ion\nname: doors\npipelines:\n"
            "  - {name: training, type: training, dataset: faces, model: face-embed, triggers: {new_data: true},\n"
            "     parameters: {epochs: 1, register_timeout_s: 20}}\n"
            f"  - {{name: entrance, type: prediction, source: {{kind: directory, path: {frames}}},\n"
            "     gallery: {dataset: faces, default: allow}}\n"
            "links: [{from: training, to: entrance, policy: always-update}]\n")
        self.server.weir("apply", "-f", str(document))
        (frames / "door").mkdir(mode=0o777)
        os.chmod(frames / "door", 0o777)
        (frames / "door" / "1.pgm").write_bytes(drawn_face(1, 0))
        wait_until(lambda: self.server.get("/decisions")["items"], 90, "a decision of the replica")
        self.assertEqual([len(self.left_on(name, "replicas")) > 0 for name in "ab"].count(True), 1)

    def test_what_cannot_be_is_said_and_a_cancelled_training_is_resumed(self):
        self.put_faces()
        self.start("a")
        self.start("b", "--address", "203.0.113.0/24")
        spec = {"model": "lenet", "dataset": "faces", "workers": 2, "epochs": 2, "max_restarts": 0}
        job = self.submit("elsewhere", "train", spec)
        self.ended(job, "FAILED")
        self.assertIn("--address 203.0.113.0/24: it has ", self.job(job)["reason"])
        self.start("c")
        self.server.weir("node", "drain", "b")
        job = self.submit("parts", "train", {**spec, "parameter_servers": 1})
        self.ended(job, "FAILED")
        self.assertIn("need a disk that all their nodes see", self.job(job)["reason"])
        job = self.submit("long", "train", {**spec, "workers": 1, "epochs": 4000, "checkpoint_every_s": 0.2})
        wait_until(lambda: self.newest(job), 30, "a checkpoint with the server")
        self.server.post(f"/jobs/{job}/cancel")
        self.ended(job, "CANCELLED")
        self.server.weir("job", "resume", "long")
        resumed = self.server.get("/jobs?newest=1&limit=1")["items"][0]["id"]
        newest = self.newest(job)
        wait_until(lambda: f"resumed  step {newest}" in self.log(resumed), 30, "the training to go on")


if __name__ == "__main__":
    harness.main()

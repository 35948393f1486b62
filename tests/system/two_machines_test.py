"""An agent that reaches the server by another address than the server knows of itself, over TLS with
an authority of one's own (docs/howto/two-machines.md): its tasks go the agent's way."""
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

import harness
from harness import Server, WEIR, wait_until

sys.path.insert(0, str(harness.ROOT / "bench"))
from serving import drawn_face  # noqa: E402

# The way to the server is different for each: loopback addresses stand for two machines.
SERVER_ADDRESS, OTHER_ADDRESS = "127.0.0.1", "127.0.0.2"


def make_certificates(folder):
    """ca.pem, which no system trusts, and server.pem for both addresses."""
    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl("req", "-x509", *key, "-days", "2", "-subj", "/CN=test authority", "-keyout", "ca.key", "-out", "ca.pem")
    openssl("req", *key, "-subj", "/CN=test server", "-keyout", "server.key", "-out", "server.csr")
    (folder / "names").write_text(f"subjectAltName=IP:{SERVER_ADDRESS},IP:{OTHER_ADDRESS}\n")
    openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
            "-extfile", "names", "-out", "server.pem")


class TwoMachines(unittest.TestCase):
    def setUp(self):
        if shutil.which("openssl") is None:
            self.skipTest("no openssl command: no certificates can be made")
        self.agent = None
        self.server = server = Server()
        self.addCleanup(self.stop)
        make_certificates(server.root)
        self.ca = str(server.root / "ca.pem")
        server.start("--listen", "0.0.0.0:0", "--no-agent", "--tls-cert", str(server.root / "server.pem"),
                     "--tls-key", str(server.root / "server.key"))
        self.port = server.url.rsplit(":", 1)[1]
        self.start_agent()

    def stop(self):
        if self.agent is not None and self.agent.poll() is None:
            self.agent.kill()
            self.agent.wait()
        self.server.stop()

    def start_agent(self):
        folder = self.server.root / "agent-b"
        folder.mkdir(mode=0o700)
        made = json.loads(self.weir("token", "create", "node-b", "--role", "agent", "--user", "agent",
                                    "--node", "node-b", "-o", "json"))
        (folder / "token").write_text(made["secret"])
        with open(self.server.root / "agent.log", "ab") as log:
            self.agent = subprocess.Popen(
                [WEIR, "agent", "--server", f"https://{OTHER_ADDRESS}:{self.port}", "--dir", str(folder), "--node",
                 "node-b", "--ca-file", os.path.relpath(self.ca), "--share", f"{self.server.root}:rw"], stderr=log, start_new_session=True)
        wait_until(lambda: self.items("nodes"), 20, "the agent to register")

    def weir(self, *arguments):
        return self.server.weir(*arguments, "--ca-file", self.ca)[1]

    def items(self, noun):
        return json.loads(self.weir("get", noun, "-o", "json"))["items"]

    def has_cells(self):
        """Does the agent give its jobs users and folders of their own?"""
        return self.items("nodes")[0]["inventory"]["isolation"]["mounts"]

    def job(self, name):
        return next((job for job in self.items("jobs") if job["name"] == name), None)

    def put_faces(self):
        folder = self.server.root / "faces"
        for person in range(3):
            (folder / f"p{person}").mkdir(parents=True)
            for photo in range(4):
                (folder / f"p{person}" / f"{photo}.pgm").write_bytes(drawn_face(person, photo))
        self.weir("dataset", "create", "faces")
        self.weir("dataset", "put", "faces", str(folder))
        self.weir("dataset", "freeze", "faces")

    def test_a_command_a_training_and_a_replica_reach_the_server_as_their_agent_does(self):
        status, _, message = self.server.weir("get", "nodes", check=False)
        self.assertNotEqual(status, 0)
        self.assertIn("--ca-file", message)
        self.assertEqual([node["name"] for node in self.items("nodes")], ["node-b"])
        wish = self.server.root / "job.yaml"
        wish.write_text("name: ask\nkind: command\nspec: {argv: [sh, -c, 'echo $WEIR_SERVER $WEIR_CA_FILE']}\n")
        self.weir("job", "submit", "-f", str(wish))
        wait_until(lambda: self.job("ask")["state"] == "SUCCEEDED", 30, "the command")
        ca = self.server.root / "agent-b/given/ca.pem" if self.has_cells() else os.path.realpath(self.ca)
        told = f"https://{OTHER_ADDRESS}:{self.port} {ca}"
        wait_until(lambda: told in self.weir("logs", self.job("ask")["id"]), 10, told)
        self.put_faces()
        frames = self.server.root / "frames"
        frames.mkdir()
        document = self.server.root / "ion.yaml"
        document.write_text(
            "kind: ion\nname: doors\npipelines:\n"
            "  - {name: training, type: training, dataset: faces, model: face-embed, triggers: {new_data: true},\n"
            "     parameters: {epochs: 1, register_timeout_s: 20}}\n"
            f"  - {{name: entrance, type: prediction, source: {{kind: directory, path: {frames}}},\n"
            "     gallery: {dataset: faces, default: allow}}\n"
            "links: [{from: training, to: entrance, policy: always-update}]\n")
        self.weir("apply", "-f", str(document))
        wait_until(lambda: (self.job("doors.training.1") or {}).get("state") in ("SUCCEEDED", "FAILED"), 60,
                   "the training to end")
        self.assertEqual(self.job("doors.training.1")["state"], "SUCCEEDED")
        self.assertEqual({run["kind"]: run["status"] for run in self.items("runs")}, {"command": "FINISHED", "train": "FINISHED"})
        (frames / "door").mkdir()
        (frames / "door" / "1.pgm").write_bytes(drawn_face(1, 0))
        wait_until(lambda: self.items("decisions"), 60, "a decision of the replica")
        self.look_into(self.job("doors.entrance")["id"])

    def look_into(self, job):
        """A visit goes over the same encrypted connections, both ways."""
        data = os.urandom(1 << 20).hex()
        done = subprocess.run([WEIR, "job", "exec", "--state", str(self.server.state), "--ca-file", self.ca, job, "--", "cat"],
                              input=data, capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout == data, done.stderr), (0, True, ""))
        agent = json.loads((self.server.root / "agent-b/agent.json").read_text())["pid"]
        self.assertEqual(self.listens(agent), set())

    def listens(self, root):
        """The ports on which the agent, a supervisor or a visit of it listens: none."""
        found = set()
        for pid in self.server.pids("weir agent") + [root]:
            links = []
            for fd in pathlib.Path(f"/proc/{pid}/fd").glob("*"):
                with contextlib.suppress(OSError):
                    links.append(os.readlink(fd))
            inodes = {link[8:-1] for link in links if link.startswith("socket:[")}
            for table in ("tcp", "tcp6"):
                lines = []
                with contextlib.suppress(OSError):  # what an agent starts has its name for a moment
                    lines = pathlib.Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
                for words in map(str.split, lines):
                    if words[3] == "0A" and words[9] in inodes:
                        found.add(words[1])
        return found


if __name__ == "__main__":
    harness.main()

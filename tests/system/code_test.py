"""What a job brings along, as a person sees it: a folder by content, a commit, packages, secrets, and what it leaves."""
import contextlib
import hashlib
import http.server
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import threading
import unittest
import zipfile

import harness
from harness import HttpError, Server, wait_until

VALUE = "correct-horse-battery-staple"
ENDED = ("SUCCEEDED", "FAILED", "CANCELLED")


def serve(folder):
    """An HTTP server of a folder's files; (its address, what ends it)."""
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=str(folder))

        def log_message(self, *_):
            pass
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    def end():
        server.shutdown()
        server.server_close()
    return f"http://127.0.0.1:{server.server_address[1]}", end


class Code(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server().start()
        cls.addClassCleanup(cls.server.stop)
        wait_until(lambda: cls.server.get("/nodes")["items"], 20, "the node")

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-code-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, name, text, mode=0o644):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        path.chmod(mode)

    def weir(self, *arguments, status=0, text=None):
        n = 2 if arguments[0] == "job" else 1
        done = subprocess.run([harness.WEIR, *arguments[:n], "--state", str(self.server.state), *map(str, arguments[n:])],
                              input=text, capture_output=True, text=True, timeout=120, cwd=self.folder)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout, done.stderr

    def run_job(self, *arguments, status=0):
        return self.weir("job", "run", "--follow", *arguments, status=status)

    def newest(self, name):
        return self.server.get("/jobs?newest=1&limit=1&name=" + name)["items"][0]

    def git(self, *arguments):
        subprocess.run(["git", "-c", "user.email=a@b", "-c", "user.name=n", *arguments], cwd=self.folder, check=True,
                       capture_output=True)

    def test_a_folder_travels_as_it_is_and_then_only_what_has_changed(self):
        data = os.urandom(100000)
        self.write("train.py", "from pkg import words\nimport hashlib, os\nprint(words.TEXT, "
                   "hashlib.sha256(open('data/blob.bin', 'rb').read()).hexdigest())\n"
                   "print('files', sorted(os.path.join(d, f) for d, _, fs in os.walk('.') for f in fs "
                   "if not f.endswith('.pyc')))\nprint('runs', os.access('go.sh', os.X_OK), os.access('train.py', os.X_OK), "
                   "open('latest').readline()[:8])\n")
        self.write("pkg/__init__.py", "")
        self.write("pkg/words.py", "TEXT = 'bonjour é'\n")
        self.write("data/blob.bin", data)
        self.write("go.sh", "#!/bin/sh\necho gone\n", 0o6755)
        self.write(".gitignore", "*.log\n")
        self.write("pkg/.gitignore", "/local.txt\n")
        for ignored in ("a.log", "pkg/local.txt", "output/old.txt", "__pycache__/x.pyc"):
            self.write(ignored, "x")
        (self.folder / "latest").symlink_to("train.py")
        (self.folder / "outside").symlink_to("/etc/passwd")
        out, err = self.run_job("--", "python3", "train.py")
        self.assertIn("bonjour é " + hashlib.sha256(data).hexdigest(), out)
        self.assertIn("files ['./.gitignore', './data/blob.bin', './go.sh', './latest', './pkg/.gitignore', "
                      "'./pkg/__init__.py', './pkg/words.py', './token', './train.py']", out)
        self.assertIn("runs True False from pkg", out)
        self.assertIn("sent 7 of 7 files", err)
        self.assertIn("left out", err)
        self.write("pkg/words.py", "TEXT = 'au revoir'\n")
        out, err = self.run_job("--", "python3", "train.py")
        self.assertIn("au revoir", out)
        self.assertIn("sent 1 of 7 files", err)
        out, err = self.run_job("--dir", ".", "--", "./go.sh")
        self.assertIn("gone", out)
        self.assertIn("sent 0 of 7 files", err)
        self.run_job("--", "python3", "-m", "pkg.words")

    def test_a_jobs_file_names_the_folder_and_the_packages_beside_it(self):
        self.write("sub/src/main.py", "print('from', 'beside the file')\n")
        self.write("sub/requirements.txt", "# nothing but this line\n")
        self.write("sub/job.yaml", "name: beside\nkind: command\nspec:\n  argv: [python3, main.py]\n  code: ./src\n"
                   "  python: requirements.txt\n")
        self.weir("job", "submit", "-f", "sub/job.yaml")
        wait_until(lambda: self.newest("beside")["state"] in ("SUCCEEDED", "FAILED"), 60, "its end")
        self.assertIn("from beside the file", self.weir("logs", "beside")[0])
        self.assertEqual(self.newest("beside")["spec"]["python"], "# nothing but this line\n")
        self.write("sub/job.yaml", "name: beside\nkind: command\nspec: {argv: [echo], python: other.txt}\n")
        _, err = self.weir("job", "submit", "-f", "sub/job.yaml", status=4)
        self.assertIn("sub/job.yaml: $.spec.python: ", err)
        self.assertIn("sub/other.txt", err)

    def test_the_state_of_git_is_recorded_without_a_password(self):
        self.write("train.py", "print(1)\n")
        self.git("init", "-q", "-b", "topic", ".")
        self.git("add", "-A")
        self.git("commit", "-qm", "one")
        self.git("remote", "add", "origin", f"https://joe:{VALUE}@example.org/x.git")
        self.run_job("clean", "--", "python3", "train.py")
        clean = self.server.get("/jobs/" + self.newest("clean")["id"])["spec"]["code"]
        commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=self.folder, capture_output=True, text=True).stdout.strip()
        self.assertEqual({key: clean[key] for key in clean if key != "manifest"},
                         {"commit": commit, "branch": "topic", "dirty": False, "repository": "https://example.org/x.git"})
        self.write("train.py", "print(2)\n")
        self.run_job("dirty", "--", "python3", "train.py")
        dirty = self.server.get("/jobs/" + self.newest("dirty")["id"])["spec"]["code"]
        self.assertTrue(dirty["dirty"])
        patch = self.server.request("GET", "/api/v1/blobs/" + dirty["patch"], raw=True).decode()
        self.assertIn("-print(1)\n+print(2)\n", patch)
        again = self.server.post("/jobs/" + self.newest("dirty")["id"] + "/restart")
        wait_until(lambda: self.server.get("/jobs/" + again["id"])["state"] == "SUCCEEDED", 30, "the same folder again")

    def test_a_commit_of_a_repository_is_what_runs(self):
        self.write("train.py", "print('one')\n")
        self.git("init", "-q", ".")
        self.git("add", "-A")
        self.git("commit", "-qm", "one")
        first = subprocess.run(["git", "rev-parse", "HEAD"], cwd=self.folder, capture_output=True, text=True).stdout.strip()
        self.write("train.py", "print('two')\n")
        self.git("commit", "-qam", "two")
        self.git("clone", "-q", "--bare", ".", "bare")
        subprocess.run(["git", "update-server-info"], cwd=self.folder / "bare", check=True)
        address, end = serve(self.folder)
        self.addCleanup(end)
        self.assertEqual(self.run_job("--git", f"{address}/bare@{first}", "--", "python3", "train.py")[0].splitlines()[-1], "one")
        out, _ = self.run_job("newest", "--git", f"{address}/bare", "--", "python3", "train.py")
        self.assertEqual(out.splitlines()[-1], "two")
        code = self.server.get("/jobs/" + self.newest("newest")["id"])["spec"]["code"]
        self.assertEqual(len(code["commit"]), 40)
        out, err = self.run_job("--git", f"{address}/bare@{'0' * 40}", "--", "true", status=8)
        self.assertIn("weir: cannot", out)
        _, err = self.run_job("--git", f"{address}/none", "--", "true", status=9)
        self.assertIn("does not find", err)
        _, err = self.run_job("--git", f"https://u:{VALUE}@example.org/x@{first}", "--", "true", status=2)
        self.assertNotIn(VALUE, err)

    def wheel(self, name, version):
        path = self.folder / f"{name}-{version}-py3-none-any.whl"
        info = f"{name}-{version}.dist-info"
        with zipfile.ZipFile(path, "w") as file:
            file.writestr(f"{name}.py", f"VERSION = {version!r}\n")
            file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
            file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            file.writestr(f"{info}/RECORD", f"{name}.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")

    def test_packages_are_installed_once_for_a_project(self):
        if subprocess.run(["/usr/bin/python3", "-m", "pip", "--version"], capture_output=True).returncode != 0:
            self.skipTest("no pip of the system's")
        self.wheel("weirtestpackage", "1.5")
        address, end = serve(self.folder)
        self.addCleanup(end)
        self.write("requirements.txt", f"--no-index\n--find-links {address}/\nweirtestpackage==1.5\n")
        job = ("--python", "requirements.txt", "--no-files", "--env", "PIP_DISABLE_PIP_VERSION_CHECK=1", "--", "python3", "-c",
               "import weirtestpackage as w, os; a = os.path.dirname(os.environ['VIRTUAL_ENV']); b = os.path.dirname(a); "
               "print('sees', os.listdir(b), os.listdir(os.path.dirname(b))); print('has', w.VERSION, w.__file__)")
        first, _ = self.run_job(*job)
        self.assertIn("installing the job's Python packages", first)
        self.assertIn("has 1.5", first)
        if self.server.get("/nodes")["items"][0]["inventory"]["isolation"]["mounts"]:
            self.assertIn("sees ['python'] ['default']", first)  # of other projects' caches nothing
        second, _ = self.run_job(*job)
        self.assertIn("Collecting weirtestpackage", first)  # pip's own words, while it works
        self.assertNotIn("installing", second)
        self.assertIn("are here already", second)
        self.assertEqual(first.splitlines()[-1], second.splitlines()[-1])
        self.write("requirements.txt", f"--no-index\n--find-links {address}/\nweirtestpackage==9\n")
        out, err = self.run_job(*job, status=8)
        self.assertIn("could not be installed", err)
        self.write("requirements.txt", "-r other.txt\n")
        _, err = self.run_job(*job, status=2)
        self.assertIn("line 1", err)

    def test_a_secret_reaches_the_job_and_stands_nowhere_else(self):
        self.weir("secret", "set", "hf-token", text=VALUE + "\n")
        out, _ = self.weir("secret", "list")
        self.assertIn("hf-token", out)
        self.assertNotIn(VALUE, out)
        out, _ = self.run_job("with-secret", "--secret", "hf-token", "--secret", "OTHER=hf-token", "--", "python3", "-c",
                              "import os, hashlib; print(hashlib.sha256(os.environ['HF_TOKEN'].encode()).hexdigest(), "
                              "os.environ['OTHER'] == os.environ['HF_TOKEN'])")
        self.assertIn(hashlib.sha256(VALUE.encode()).hexdigest() + " True", out)
        job = self.newest("with-secret")["id"]
        places = [self.weir("describe", "job", job)[0], self.weir("explain", "job", job)[0],
                  json.dumps(self.server.get("/events?after=0&limit=1000")), json.dumps(self.server.get("/audit")),
                  json.dumps(self.server.get("/jobs")), json.dumps(self.server.get("/runs")),
                  json.dumps(self.server.get("/nodes/" + self.server.get("/nodes")["items"][0]["name"] + "/desired"))]
        self.assertEqual([place for place in places if VALUE in place], [])
        backup = self.folder / "backup"
        self.weir("backup", backup)
        self.assertTrue((backup / "state/secrets.key").exists())
        self.assertEqual((backup / "state/secrets.key").stat().st_mode & 0o777, 0o600)
        for root in (backup, self.server.state):
            for path in root.rglob("*"):
                if path.is_file() and not path.is_symlink() and "agent/tasks" not in str(path):
                    self.assertNotIn(VALUE.encode(), path.read_bytes(), path)
        _, err = self.run_job("--secret", "hf-token=OTHER", "--", "true", status=2)
        self.assertIn("write VARIABLE=hf-token", err)
        _, err = self.run_job("--secret", "none", "--", "true", status=4)
        self.assertIn('has no secret "none"', err)
        self.weir("secret", "delete", "hf-token")
        with self.assertRaises(HttpError) as refused:
            self.server.post(f"/jobs/{job}/restart")
        self.assertIn("hf-token", refused.exception.error["message"])

    def artifacts(self, run, path=""):
        found = {}
        for item in self.server.get(f"/runs/{run}/artifacts?limit=5000&path={path}")["items"]:
            found.update(self.artifacts(run, item["path"]) if item["is_folder"] else {item["path"]: item["bytes"]})
        return found

    def test_what_a_program_leaves_in_its_output_becomes_files_of_its_run(self):
        out, _ = self.run_job("leaves", "--tasks", "2", "--", "python3", "-c", "if True:\n"
                              " import os, pathlib\n"
                              " o = pathlib.Path(os.environ['WEIR_OUTPUT'])\n"
                              " (o / 'model').mkdir()\n"
                              " (o / 'model/a b.bin').write_bytes(b'w' * 100000)\n"
                              " (o / 'empty').write_text('')\n"
                              " os.symlink('/etc/passwd', o / 'link'); os.symlink('/etc', o / 'folder'); os.mkfifo(o / 'pipe')\n")
        self.assertIn("weir: 2 files of output kept", out)
        self.assertIn("3 not kept", out)
        run = self.newest("leaves")["run"]
        self.assertEqual(self.artifacts(run), {"model/a b.bin": 100000, "empty": 0, "rank-1/model/a b.bin": 100000,
                                               "rank-1/empty": 0})
        data = self.server.request("GET", f"/api/v1/runs/{run}/artifacts/model/a%20b.bin", raw=True)
        self.assertEqual(data, b"w" * 100000)
        out, _ = self.run_job("replaces", "--cpus", "0", "--tasks", "4", "--", "python3", "-c",
                              "import os, shutil; o = os.environ['WEIR_OUTPUT']; shutil.rmtree(o); "
                              "(lambda: os.symlink('/etc', o), lambda: os.symlink('..', o), lambda: open(o, 'w').write('x'), "
                              "lambda: os.mkfifo(o))[int(os.environ['WEIR_RANK'])]()")
        self.assertEqual(out.count("no folder"), 4, out)
        self.assertEqual(self.artifacts(self.newest("replaces")["run"]), {})

    def stopped(self, words):
        """The processes with these words, stopped: what they have done so far stays so. Those that end by themselves are left out."""
        found = []
        for pid in self.server.pids(words):
            stat = pathlib.Path(f"/proc/{pid}/stat")
            with contextlib.suppress(ProcessLookupError, FileNotFoundError):
                os.kill(pid, signal.SIGSTOP)
                wait_until(lambda: stat.read_text().rpartition(")")[2].split()[0] in "TZX", 20, "it to stop")
                found.append(pid)
        return found

    def test_a_supervisor_that_is_killed_while_it_fetches_or_sends_is_followed_by_one_that_goes_on(self):
        for i in range(300):
            self.write(f"data/{i % 10}/{i}", f"{i}\n")
        (self.folder / "data/link").symlink_to("1/1")
        self.weir("job", "run", "many", "--dir", ".", "--", "python3", "-c",
                  "import os, pathlib; n = sum(int(p.read_text()) for p in pathlib.Path('data').glob('*/*'))\n"
                  "for i in range(400): open(os.environ['WEIR_OUTPUT'] + f'/{i}', 'w').write(str(n))")
        job = self.newest("many")["id"]
        kills = {"fetching": 0, "sending": 0}
        while self.server.get("/jobs/" + job)["state"] not in ENDED:
            for folder in (self.server.state / "agent/tasks").iterdir():
                record = folder / "task.json"
                if not (text := record.read_text() if record.exists() else "") or json.loads(text)["job"] != job or (folder / "exit.json").exists():
                    continue
                doing = "sending" if (folder / "output.sent").exists() else "fetching"
                is_begun = (folder / "work/data").exists() if doing == "fetching" else (folder / "output.sent").stat().st_size
                if kills[doing] < 2 and is_begun:
                    pids = self.stopped("--supervise " + str(folder))
                    is_meant = doing == "sending" or not (folder / "run.json").exists()  # with that the program runs
                    for pid in pids:
                        os.kill(pid, signal.SIGKILL if is_meant else signal.SIGCONT)
                    kills[doing] += is_meant and len(pids) > 0
        self.assertTrue(all(kills.values()), kills)
        ended = self.server.get("/jobs/" + job)
        self.assertEqual((ended["state"], ended["attempt"]), ("SUCCEEDED", 1), ended["reason"])
        files = self.artifacts(ended["run"])
        self.assertEqual(len(files), 400)
        data = self.server.request("GET", f"/api/v1/runs/{ended['run']}/artifacts/399", raw=True)
        self.assertEqual(data, str(sum(range(300))).encode())


if __name__ == "__main__":
    harness.main()

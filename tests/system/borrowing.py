"""Two projects that share devices, wherever the nodes come from: a world for tests of own nodes, of Slurm and of Kubernetes, whose text is
one."""
import pathlib
import unittest

from harness import Server, wait_until


class World(unittest.TestCase):
    """A server without a node of its own, and the projects blue and green, each guaranteed 4 of 8 devices."""

    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.stop)
        self.server.start("--no-agent")
        self.work = self.server.root / "work"
        self.work.mkdir()
        self.work.chmod(0o777)
        for project in ("blue", "green"):
            self.server.post("/projects", {"name": project})
            self.server.weir("queue", "create", project, "--project", project, "--guarantee", "accelerators=4")
        self.supply()

    def submit(self, name, project, script, **spec):
        spec = {"argv": ["sh", "-c", script], "resources": {"cpus": 1, "accelerators": 1}, **spec}
        return self.server.post("/jobs", {"name": name, "kind": "command", "project": project, "max_restarts": 0, "spec": spec})["id"]

    def job(self, job):
        return self.server.get(f"/jobs/{job}")

    def await_all(self, jobs, state, seconds=40):
        try:
            wait_until(lambda: all(self.job(job)["state"] == state for job in jobs), seconds, f"all {state}")
        except AssertionError as error:
            found = [(self.job(job)["name"], self.job(job)["state"], self.job(job)["reason"]) for job in jobs]
            raise AssertionError(f"{error}: {found}; {self.server.get('/allocations')['items']}") from None

    def counter(self, name):
        """A script that counts up in a file, saves when it is told to end, and goes on from what was saved."""
        path = self.work / name
        return path, (f"trap 'echo saved >>{path}.saved; exit 75' TERM; echo start >>{path}.starts\n"
                      f"until test -e {path}.end; do sleep 0.05; done; echo end >>{path}.ends")

    def lines(self, path):
        return path.read_text().splitlines() if path.exists() else []

    def check_borrowed_comes_back(self):
        path, script = self.counter("first")
        first = [self.submit(f"first-{i}", "blue", script) for i in range(8)]
        self.await_all(first, "RUNNING")
        wait_until(lambda: len(self.lines(pathlib.Path(f"{path}.starts"))) == 8, 20, "each can save")
        other, script = self.counter("second")
        second = self.submit("second", "green", script, tasks=4)
        self.await_all([second], "RUNNING")
        victims = [job for job in first if self.job(job)["n_evictions"] > 0]
        self.assertEqual(len(victims), 4)
        self.assertEqual(len(self.lines(pathlib.Path(f"{path}.saved"))), 4)
        pathlib.Path(f"{other}.end").touch()
        self.await_all([second], "SUCCEEDED")
        self.await_all(victims, "RUNNING")
        pathlib.Path(f"{path}.end").touch()
        self.await_all(first, "SUCCEEDED")
        self.assertEqual(len(self.lines(pathlib.Path(f"{path}.ends"))), 8)
        self.assertEqual(len(self.lines(pathlib.Path(f"{path}.starts"))), 12)
        self.assertEqual({self.job(job)["n_restarts"] for job in [*first, second]}, {0})

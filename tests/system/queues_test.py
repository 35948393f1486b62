"""Two projects with half of eight devices each: what the first borrows comes back within one cycle, by whole devices, parts,
MIG slices and tasks of an elastic job, and what was stopped goes on later as if it had not been. What `weir explain job` and
`weir what-if` say is what then happens. Server, agent, supervisors and tasks are killed meanwhile: no device is had twice, no
job is lost, no restart is counted that was an eviction."""
import collections
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time
import unittest

import harness
from harness import Server, WEIR, wait_until

sys.path.insert(0, str(harness.ROOT / "bench"))
from serving import drawn_face  # noqa: E402

KILLS = int(os.environ.get("WEIR_KILLS", "20"))
SEED = int(os.environ.get("WEIR_SEED", "1"))
N_DEVICES = 8
UNITS = 4  # A quarter of a device is the least that a task here asks for.
FAKE_NVML = harness.BIN.parent / "src/device/libweir_fake_nvml.so"
ENDED = ("SUCCEEDED", "FAILED", "CANCELLED")

# A device is UNITS files, and a task locks as many of each of its devices as it was given parts. A lock is held as long as
# any process of the task lives, whoever is killed. Who locks a device does so alone, so what is not had is found free. No
# process is started for a note: it could be killed alone.
HOLD = r"""
node=$(pwd | sed 's,.*/agent-\([a-z]*\)/.*,\1,')
case ${WEIR_DEVICE_SHARE:-1} in 1) units=4 ;; 0.5) units=2 ;; 0.25) units=1 ;; esac
fd=10
for device in $(echo "$WEIR_DEVICES" | tr , ' '); do
    until test -r LOCKS/$node.$device.4; do :; done  # a node that has just come is given tasks before it has its files
    exec 9<LOCKS/$node.$device.door
    flock 9
    left=$units
    for unit in 1 2 3 4; do
        test $left -gt 0 || break
        eval "exec $fd<LOCKS/$node.$device.$unit"
        flock -n $fd && left=$((left - 1)) && fd=$((fd + 1))
    done
    exec 9<&-
    test $left -eq 0 || echo "$WEIR_TASK has $units/4 of $device, and others too much at ${EPOCHREALTIME/./}" >>LOCKS/doubled
done
note() { echo "$1 $WEIR_TASK $WEIR_ATTEMPT $$ $node $WEIR_DEVICES $units ${EPOCHREALTIME/./}" >>LOCKS/notes; }
note start
trap 'note end' EXIT
"""
WORK = r"""
trap 'echo "asked to save" >>STATE.$WEIR_RANK.saved; exit 75' TERM
done=$(cat STATE.$WEIR_RANK 2>/dev/null || echo 0)
while test $done -lt STEPS; do
    sleep 0.1
    done=$((done + 1))
    echo $done >STATE.$WEIR_RANK.new
    mv STATE.$WEIR_RANK.new STATE.$WEIR_RANK
done
"""


def put_faces(server, name, project):
    server.post("/datasets", {"name": name, "project": project})
    for person in range(4):
        for photo in range(4):
            server.request("PUT", f"/api/v1/datasets/{name}/files/p{person}/{photo}.pgm", drawn_face(person, photo, 28))
    server.post(f"/datasets/{name}/versions")


class Cluster(unittest.TestCase):
    """A server with an agent that has eight devices, and the projects blue and green, each guaranteed half of them."""

    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.stop)
        self.agents = {}
        self.addCleanup(self.stop_agents)
        self.server.start("--no-agent")
        self.port = self.server.url.rsplit(":", 1)[1]
        self.locks = self.server.root / "locks"
        self.locks.mkdir()
        for name in ("notes", "doubled"):
            self.open_to_all(self.locks / name)
        self.work = self.server.root / "work"
        self.work.mkdir()
        self.work.chmod(0o777)  # Tasks are users of their own.
        for project in ("blue", "green"):
            self.server.post("/projects", {"name": project})
        self.n_gates = 0
        self.add_node("a")
        for project in ("blue", "green"):
            done = self.server.weir("queue", "create", project, "--project", project, "--guarantee", self.guarantee())
            self.assertEqual(done[1], project + ": created\n")

    def guarantee(self):
        return "accelerators=4"

    @staticmethod
    def open_to_all(path):
        path.write_text("")
        path.chmod(0o666)

    def add_node(self, name):
        folder = self.server.root / f"agent-{name}"
        folder.mkdir()
        (folder / "token").write_text(self.server.post(
            "/tokens", {"name": name, "role": "agent", "user": "agent", "node": name})["secret"])
        self.describe_devices()
        self.start_agent(name)
        found = wait_until(lambda: len(self.devices(name)) == N_DEVICES and self.devices(name), 30, "the devices")
        for device in found:
            for unit in ["door", *range(1, UNITS + 1)]:
                self.open_to_all(self.locks / f"{name}.{device['id']}.{unit}")

    def describe_devices(self):
        text = json.dumps({"devices": [{"model": "X1", "count": N_DEVICES, "memory": "80GiB"}]})
        (self.server.root / "devices.yaml").write_text(text)
        self.options, self.environment = ["--devices", self.server.root / "devices.yaml"], {}

    def start_agent(self, name):
        with open(self.server.root / f"agent-{name}.log", "ab") as log:
            self.agents[name] = subprocess.Popen(
                [WEIR, "agent", "--server", self.server.url, "--dir", self.server.root / f"agent-{name}", "--node", name,
                 "--cpu-slots", "64", *self.options, "--share", f"{self.server.root}:rw"],
                stderr=log, stdout=log, start_new_session=True, env={**os.environ, **self.environment})

    def stop_agents(self):
        for agent in self.agents.values():
            agent.kill()
            agent.wait()

    def devices(self, node="a"):
        return [device for device in self.server.get(f"/devices?node={node}&limit=1000")["items"]
                if device["kind"] in ("declared", "mig") and device["state"] == "ok"]

    def submit(self, name, project, script, resources, **members):
        script = (HOLD + script).replace("LOCKS", str(self.locks))
        spec = {"argv": ["bash", "-c", f": LOAD-{name};" + script], "resources": {"cpus": 1, **resources}, **members}
        return self.server.post("/jobs", {"name": name, "kind": "command", "project": project, "max_restarts": 1000,
                                          "spec": spec})["id"]

    def gate(self):
        """A file, and a script that ends when it is there or when it is asked to save."""
        self.n_gates += 1
        path = self.work / f"gate-{self.n_gates}"
        return path, f"trap 'echo asked to save; exit 75' TERM\nuntil test -e {path}; do sleep 0.1; done\n"

    def job(self, job):
        return self.server.get(f"/jobs/{job}")

    def tasks(self, job):
        return self.server.get(f"/jobs/{job}/tasks")["items"]

    def in_state(self, jobs, state):
        return [job for job in jobs if self.job(job)["state"] == state]

    def await_all(self, jobs, state, seconds=60):
        try:
            wait_until(lambda: len(self.in_state(jobs, state)) == len(jobs), seconds, f"all {state}")
        except AssertionError as error:
            found = [(self.job(job)["name"], self.job(job)["state"], self.job(job)["reason"]) for job in jobs]
            raise AssertionError(f"{error}: {found}") from None

    def await_no_gaps(self):
        """What ends on its own has ended, and nothing is had."""
        wait_until(lambda: sum(device["used_milli"] for device in self.devices()) == 0, 30, "free devices")

    def evictions(self, job):
        return self.server.get(f"/events?after=0&kind=job_evicted&subject=job/{job}&limit=1000")["items"]

    def assert_none_is_doubled(self):
        """Nobody found a device had by others; and of what tasks noted of themselves no more is had at once than there is."""
        self.assertEqual((self.locks / "doubled").read_text(), "")
        begun, changes = {}, collections.defaultdict(list)
        for line in (self.locks / "notes").read_text().splitlines():
            what, task, attempt, pid, node, devices, units, at = line.split(" ")
            if what == "start":
                begun[task, attempt, pid] = int(at)
                continue
            since = begun.pop((task, attempt, pid))
            for device in devices.split(","):
                changes[node, device] += [(since, int(units)), (int(at), -int(units))]
        for device, steps in changes.items():
            had = 0
            for at, units in sorted(steps):
                had += units
                self.assertLessEqual(had, UNITS, f"{device} at {at}")

    def explain(self, job):
        return json.loads(self.server.weir("explain", "job", job, "-o", "json")[1])

    def what_if(self, *words):
        return json.loads(self.server.weir("what-if", *words, "-o", "json")[1])


class Reclaim(Cluster):
    def borrow_all(self, count, resources, **members):
        path, script = self.gate()
        first = [self.submit(f"first-{i}", "blue", script, resources, **members) for i in range(count)]
        self.await_all(first, "RUNNING")
        return path, first

    def reclaim_half(self, first, n_victims, resources, n_tasks):
        """A gang of the second project asks for what is guaranteed to it. @return (its gate, it, who left)."""
        path, script = self.gate()
        second = self.submit("second", "green", script, resources, tasks=n_tasks)
        wait_until(lambda: self.job(second)["state"] == "RUNNING", 30,
                   f"the second: {[self.job(job)['state'] for job in first]} {self.job(second)}")
        victims = [job for job in first if self.job(job)["n_evictions"] > 0]
        self.assertEqual(len(victims), n_victims, [[self.job(job)[key] for key in ("name", "state", "reason", "n_evictions")]
                                                   for job in first])
        asked = [event for job in victims for event in self.evictions(job)]
        self.assertEqual(len(asked), n_victims)
        self.assertEqual(len({event["time_ms"] for event in asked}), 1, "all in one cycle")
        for event in asked:
            self.assertIn("was asked to save what it has, and goes back to its queue: reclaimed by queue green", event["message"])
        self.await_all(victims, "PENDING")
        self.assertEqual(sorted(self.in_state(first, "RUNNING")), sorted(set(first) - set(victims)))
        return path, second, victims

    def come_back(self, first, gates, second, victims):
        gates[1].touch()
        self.await_all([second], "SUCCEEDED")
        self.await_all(victims, "RUNNING")
        gates[0].touch()
        self.await_all(first, "SUCCEEDED")
        for job in [*first, second]:
            self.assertEqual((self.job(job)["n_restarts"], self.job(job)["n_evictions"]), (0, int(job in victims)))
        self.assert_none_is_doubled()
        self.await_no_gaps()

    def test_whole_devices_and_what_was_said_of_them_before(self):
        gate, first = self.borrow_all(8, {"accelerators": 1})
        self.assertEqual(self.server.weir("queue", "set", "green", "--project", "green", "--guarantee", "accelerators=0")[1],
                         "green: set\n")
        said = self.what_if("--set-quota", "green", "--guarantee", "accelerators=4")
        self.assertEqual(said["jobs"], [])
        self.server.weir("queue", "set", "green", "--project", "green", "--guarantee", "accelerators=4")
        path, second, victims = self.reclaim_half(first, 4, {"accelerators": 1}, 4)
        for job in victims:
            told = self.explain(job)
            self.assertEqual((told["state"], told["queue"], told["resource"]), ("PENDING", "blue", "accelerators"), told)
            self.assertRegex(told["why"], "^reclaimed by queue green; now ")
        said = self.what_if("--add-node", "a")
        self.assertEqual({job["id"]: job["after"] for job in said["jobs"]}, {job: "starts" for job in victims})
        help_of = {change["change"]: change["outcome"] for change in self.explain(victims[0])["helps"]}
        self.assertEqual(help_of["one more node like a"], "starts")
        self.add_node("b")
        self.await_all(victims, "RUNNING")
        self.assertEqual({task["node"] for job in victims for task in self.tasks(job)}, {"b"})
        self.assertEqual(self.in_state([second], "RUNNING"), [second])
        self.come_back(first, (gate, path), second, victims)

    def test_parts_of_devices(self):
        gate, first = self.borrow_all(16, {"accelerator_share": 0.5})
        path, second, victims = self.reclaim_half(first, 8, {"accelerators": 1}, 4)
        self.come_back(first, (gate, path), second, victims)

    def test_an_elastic_job_shrinks_instead_and_grows_again(self):
        gate, script = self.gate()
        first = self.submit("first", "blue", script, {"accelerators": 1}, tasks={"min": 2, "max": 8})
        running = lambda: [task for task in self.tasks(first) if task["state"] == "RUNNING"]  # noqa: E731
        wait_until(lambda: len(running()) == 8, 30, "eight tasks")
        path, script = self.gate()
        second = self.submit("second", "green", script, {"accelerators": 1}, tasks=4)
        self.await_all([second], "RUNNING")
        kept = wait_until(lambda: len(running()) == 4 and running(), 10, "four that are left")
        self.assertEqual({task["attempt"] for task in kept}, {1})
        self.assertEqual(self.job(first)["state"], "RUNNING")
        self.assertEqual(len({event["time_ms"] for event in self.evictions(first)}), 1, "all in one cycle")
        path.touch()
        wait_until(lambda: len(running()) == 8, 30, "eight tasks again")
        self.assertTrue({task["id"] for task in kept} <= {task["id"] for task in running() if task["attempt"] == 1})
        gate.touch()
        self.await_all([first, second], "SUCCEEDED")
        self.assertEqual([self.job(job)["n_restarts"] for job in (first, second)], [0, 0])
        self.assertEqual(self.job(first)["n_evictions"], len(self.evictions(first)))
        self.assert_none_is_doubled()
        self.await_no_gaps()

    def test_a_training_that_was_reclaimed_ends_with_the_same_loss_and_weights(self):
        put_faces(self.server, "faces", "blue")
        undisturbed = self.train("undisturbed")
        gate, script = self.gate()
        kept = [self.submit(f"kept-{i}", "blue", script, {"accelerators": 1}) for i in range(6)]
        self.await_all(kept, "RUNNING")
        training = self.train("training")
        workers = wait_until(lambda: self.pids_of(training), 60, "its worker")
        wait_until(lambda: self.takes_steps(training, workers), 60, "its first steps")
        self.assertEqual(self.job(training)["state"], "RUNNING")
        path, script = self.gate()
        second = self.submit("second", "green", script, {"accelerators": 1}, tasks=4)
        wait_until(lambda: self.tasks(training)[0]["asked_ms"], 30, "it was asked to save")
        self.assertEqual(self.job(training)["reason"], "asked to save within 60 s: reclaimed by queue green")
        for pid in workers:
            os.kill(pid, signal.SIGCONT)
        self.await_all([second], "RUNNING")
        n_before = len(self.losses(training))
        path.touch()
        self.await_all([second, training, undisturbed], "SUCCEEDED", 120)
        gate.touch()
        self.await_all(kept, "SUCCEEDED")
        self.assertEqual((self.job(training)["n_restarts"], self.job(training)["n_evictions"]), (0, 1))
        self.assertEqual(self.job(undisturbed)["n_evictions"], 0)
        expected = self.losses(undisturbed)
        self.assertLess(n_before, len(expected))
        self.assertEqual(self.losses(training), expected)
        self.assertEqual(self.version(training), self.version(undisturbed))
        self.assert_none_is_doubled()

    def test_a_program_that_can_save_is_asked_and_leaves_when_it_has(self):
        gate, script = self.gate()
        kept = [self.submit(f"kept-{i}", "blue", script, {"accelerators": 1}) for i in range(7)]
        self.await_all(kept, "RUNNING")
        saves = self.work / "saves"
        first = self.submit("first", "blue", f"trap 'touch {saves}; until test -e {saves}.2; do sleep 0.1; done; : >$WEIR_SAVED' USR1\n"
                            f"touch {saves}.ready\n"
                            + script, {"accelerators": 1}, save_signal="USR1", save_within="10m")
        self.await_all([first], "RUNNING")
        wait_until((self.work / "saves.ready").exists, 30, "it knows the signal")
        path, script = self.gate()
        second = self.submit("second", "green", script, {"accelerators": 1})
        wait_until(saves.exists, 30, "it was asked to save")
        self.assertEqual((self.job(first)["state"], self.job(second)["state"]), ("RUNNING", "PENDING"))
        self.assertEqual(self.job(first)["reason"], "asked to save within 600 s: reclaimed by queue green")
        self.assertIn("Has a place".lower(), self.job(second)["reason"].lower())
        (self.work / "saves.2").touch()
        self.await_all([second], "RUNNING")
        told = [event["message"] for kind in ("job_asked_to_save", "job_saved", "job_evicted")
                for event in self.server.get(f"/events?after=0&kind={kind}&subject=job/{first}&limit=10")["items"]]
        self.assertEqual(len(told), 3, told)
        self.assertIn("was asked to save what it has within 600 s", told[0])
        self.assertIn("says that it has saved, ", told[1])
        self.assertIn("is stopped, since it has saved, and goes back to its queue: reclaimed by queue green", told[2])
        self.assertEqual(sum(self.job(job)["n_evictions"] for job in kept), 0)
        path.touch()
        gate.touch()
        self.await_all([*kept, first, second], "SUCCEEDED")
        self.assertEqual((self.job(first)["n_restarts"], self.job(first)["n_evictions"]), (0, 1))
        self.assert_none_is_doubled()

    def takes_steps(self, job, workers):
        """It runs for a moment at a time, so that it has not ended before it is seen to have begun."""
        for pid in workers:
            os.kill(pid, signal.SIGCONT)
        time.sleep(0.05)
        for pid in workers:
            os.kill(pid, signal.SIGSTOP)
        return self.losses(job)

    def pids_of(self, job):
        found = []
        for pid in self.server.pids("weir-worker"):
            try:
                own = f"WEIR_JOB={job}".encode() in pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            except OSError:
                own = False
            found += [pid] if own else []
        return found

    def train(self, name):
        spec = {"model": "lenet", "dataset": "faces", "input": "1,28,28", "epochs": 12, "learning_rate": 0.001, "batch_size": 4,
                "threads": 1, "display_every": 1, "model_name": name, "resources": {"accelerators": 1, "cpus": 1}}
        return self.server.post("/jobs", {"name": name, "kind": "train", "project": "blue", "spec": spec})["id"]

    def losses(self, job):
        """Of each step, bit for bit."""
        run = self.job(job)["run"]
        found = self.server.get(f"/runs/{run}/metrics?key=loss&limit=10000")["items"] if run else []
        return {point["step"]: point["value"] for point in found}

    def version(self, job):
        version = self.server.get(f"/models/{self.job(job)['name']}/versions")["items"][0]
        return version["blob"], version["metrics"]


class Slices(Cluster):
    """The same by MIG slices of two GPUs, of an NVML of the tests' own."""

    def describe_devices(self):
        faults = self.server.root / "faults"
        faults.write_text("count 2\nmig 0 1g.10gb 4\nmig 1 1g.10gb 4\n")
        self.options, self.environment = [], {"WEIR_NVML_LIBRARY": str(FAKE_NVML), "WEIR_FAKE_NVML": str(faults)}

    def guarantee(self):
        return "accelerators=0.5"  # A slice of 10 of 80 GiB counts as an eighth.

    def test_mig_slices(self):
        gate, first = Reclaim.borrow_all(self, 8, {"mig_profile": "1g.10gb"})
        path, second, victims = Reclaim.reclaim_half(self, first, 4, {"mig_profile": "1g.10gb"}, 4)
        Reclaim.come_back(self, first, (gate, path), second, victims)


class Kills(Cluster):
    """Jobs of both projects come and go, so that each borrows and gives back, while what runs them is killed."""
    SHAPES = [({"accelerators": 1}, 1), ({"accelerators": 2}, 1), ({"accelerator_share": 0.5}, 1), ({"accelerator_share": 0.25}, 2),
              ({"accelerators": 1}, 4), ({"accelerators": 1}, {"min": 1, "max": 4}), ({"accelerators": 4}, 1),
              ({"accelerators": 1}, {"min": 2, "max": 6})]
    N_ALIVE = 6  # More than there is room for.
    PHASE = 7  # So many kills long one project alone submits.

    def setUp(self):
        super().setUp()
        self.rng = random.Random(SEED)
        self.jobs, self.alive = {}, []
        self.n_kills_of = collections.Counter()  # Of each job's tasks and supervisors.

    def submit_one(self, project):
        name = f"{project}-{len(self.jobs)}"
        resources, tasks = self.rng.choice(self.SHAPES)
        state = self.work / name
        script = WORK.replace("STATE", str(state)).replace("STEPS", str(self.rng.randint(10, 30)))
        job = self.submit(name, project, script, resources, tasks=tasks)
        self.jobs[job] = project
        self.alive.append(job)

    def refill(self, project):
        """It has more than there is room for; the other only what it has left."""
        states = {job: self.job(job)["state"] for job in self.alive}
        self.alive = [job for job in self.alive if states[job] not in ENDED]
        n_there = sum(self.jobs[job] == project and states[job] != "RESTARTING" for job in self.alive)
        for _ in range(self.N_ALIVE - n_there):
            self.submit_one(project)
        return sum(device["used_milli"] for device in self.devices()) > 750 * N_DEVICES

    def take_turns(self, i):
        """When one has borrowed most there is, it is the other's turn, which wants back what is its own."""
        turn = i // self.PHASE
        if i > 0 and i % self.PHASE == 0:
            wait_until(lambda: self.refill(("blue", "green")[(turn - 1) % 2]), 60, "devices in use")
        self.refill(("blue", "green")[turn % 2])

    def job_of(self, pid):
        """(job, is it a supervisor) of a supervisor, and of a task's own process; not of what that has started."""
        try:
            line = self.words_of(pid)
            if "--supervise" in line:
                return json.loads((pathlib.Path(line[-1]) / "task.json").read_text())["job"], True
            parent = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1]
            words = pathlib.Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
            is_own = line[0] == "bash" and self.words_of(parent)[0] != "bash"
            return next(word[9:] for word in words if is_own and word.startswith("WEIR_JOB=")), False
        except (OSError, ValueError, KeyError, IndexError, StopIteration):
            return None, False

    @staticmethod
    def words_of(pid):
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")

    def kill_of_job(self, is_supervisor):
        found = [(pid, job) for pid in self.server.pids() for job, is_its in [self.job_of(pid)]
                 if job in self.jobs and is_its == is_supervisor]
        if not found:
            return False
        least = min(self.n_kills_of[job] for _, job in found)  # Else one would wait for long before it starts again.
        pid, job = self.rng.choice([one for one in found if self.n_kills_of[one[1]] == least])
        self.n_kills_of[job] += 1
        try:
            os.kill(pid, signal.SIGKILL)
            return True
        except ProcessLookupError:
            return False

    def kill_one(self):
        what = self.rng.choice(["agent", "server", "task", "task", "supervisor"])
        if what == "agent":
            self.agents["a"].kill()
            self.agents["a"].wait()
            self.start_agent("a")
        elif what == "server":
            self.server.kill()
            self.server.start("--no-agent", "--listen", f"127.0.0.1:{self.port}")
        elif not self.kill_of_job(what == "supervisor"):
            return self.kill_one()
        return what

    def await_change(self):
        """A task begins or ends, or nothing does for a second."""
        size, until = (self.locks / "notes").stat().st_size, time.monotonic() + 1
        while (self.locks / "notes").stat().st_size == size and time.monotonic() < until:
            time.sleep(0.02)

    def check_counts(self, job):
        """An eviction is told once and is no restart, and a task begins no more often than it was given a place."""
        row, name = self.job(job), self.job(job)["name"]
        self.assertEqual(row["n_evictions"], len(self.evictions(job)), name)
        self.assertLessEqual(row["n_restarts"], self.n_kills_of[job], f"{name} {row}")
        return row["n_evictions"]

    def test_no_device_is_had_twice_and_no_job_is_lost_whatever_is_killed(self):
        print(f"seed {SEED}, {KILLS} kills", file=sys.stderr)
        began, killed = time.monotonic(), collections.Counter()
        for i in range(KILLS):
            self.take_turns(i)
            self.await_change()
            killed[self.kill_one()] += 1
            self.assertEqual((self.locks / "doubled").read_text(), "")
        for job in self.jobs:  # What was killed often waits up to a minute before it starts again.
            wait_until(lambda job=job: self.job(job)["state"] in ENDED, 90, f"the end of {self.job(job)}")
        self.assertEqual({self.job(job)["state"] for job in self.jobs}, {"SUCCEEDED"})
        self.assert_none_is_doubled()
        self.await_no_gaps()
        n_evictions = sum(self.check_counts(job) for job in self.jobs)
        if KILLS > self.PHASE:
            self.assertGreater(n_evictions, 0)
        print(f"{len(self.jobs)} jobs, {n_evictions} evictions, {sum(self.job(job)['n_restarts'] for job in self.jobs)} restarts, "
              f"{dict(killed)} in {time.monotonic() - began:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    harness.main()

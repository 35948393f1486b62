#!/usr/bin/env python3
"""The driver of clusters under Slurm, with a real cluster: nothing is asked for twice, whatever is killed; how allocations
wait, run and end; each wrong configuration's sentence. What Weir says of an allocation is compared with what Slurm says.

The agent is a shell script that notes what it was given and ends at TERM. WEIR_TEST_SEED plays a law again. WEIR_SLURM_TIME=1
waits for the end of an allocation's time, too, which takes two minutes.
"""
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time
import unittest

import slurm_cluster
from harness import BIN, WEIR, Server, wait_until

CASE = str(BIN.parent / "tests/driver_case")
SECRET = f"secret-{os.urandom(12).hex()}"
AGENT = """\
#!/bin/bash
note={folder}/$3.$SLURM_NODEID
trap 'echo TERM >> $note; exit 0' TERM
echo "$WEIR_JOIN_SECRET|$WEIR_ACCELERATOR_MODEL|$CUDA_VISIBLE_DEVICES|$SLURM_CPUS_ON_NODE|$*" > $note
while [ ! -e {folder}/$3.fail ]; do sleep 0.05 & wait $!; done
echo "it did not start" >&2
exit 7
"""


class SlurmTest(unittest.TestCase):
    """What both clusters' tests share."""

    accounting = False
    options = {}

    @classmethod
    def setUpClass(cls):
        cls.cluster = slurm_cluster.Cluster(accounting=cls.accounting, **cls.options)
        cls.addClassCleanup(cls.cluster.stop)
        cls.cluster.start()
        cls.folder = cls.cluster.dir / "agents"
        cls.folder.mkdir(mode=0o777)
        os.chmod(cls.folder, 0o777)
        cls.agent = cls.cluster.dir / "agent"
        cls.agent.write_text(AGENT.format(folder=cls.folder), encoding="ascii")
        os.chmod(cls.agent, 0o755)

    def document(self, **options):
        return json.dumps({"kind": "slurm", "program": str(self.agent), "dir": str(self.folder), **options})

    def argv(self, verb, *words, options=None):
        return [CASE, "slurm", self.document(**(options or {})), verb, *words]

    def ask(self, verb, *words, options=None):
        """What an operation of the driver's answers."""
        done = subprocess.run(self.argv(verb, *words, options=options), env={**os.environ, **self.cluster.environment},
                              capture_output=True, text=True, check=False, timeout=120)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return json.loads(done.stdout)

    def wanted(self, tag, **values):
        return json.dumps({"tag": tag, "pool": "lo", "n_nodes": 1, "cpu_slots": 1, "memory_bytes": 1 << 26,
                           "server": "http://127.0.0.1:1", "secret": SECRET, "text": "it's a job | of ann", **values})

    def request(self, tag, options=None, **values):
        self.assertEqual(self.ask("request", self.wanted(tag, **values), options=options), {})
        return tag

    def poll(self, *tags, options=None):
        return self.ask("poll", *tags, options=options)

    def until(self, tag, phase, seconds=20, options=None):
        """Its report, once it is in that phase."""
        return wait_until(lambda: next((report for report in self.poll(tag, options=options) if report["phase"] == phase),
                                       None), seconds, f"{tag} is {phase}")

    def running(self, tag, n_nodes=1, **values):
        """Ask for it, and wait until all its agents run."""
        self.request(tag, n_nodes=n_nodes, **values)
        report = self.until(tag, "running")
        wait_until(lambda: len([path for path in self.folder.glob(f"{tag}.[0-9]") if path.stat().st_size]) == n_nodes, 20,
                   f"agents of {tag}")
        return report

    def notes(self, tag):
        return [path.read_text(encoding="ascii") for path in sorted(self.folder.glob(f"{tag}.[0-9]"))]

    def jobs(self, tag):
        """What Slurm has of that name: (state, time run, nodes)."""
        lines = self.cluster.run("squeue", "-h", "-a", "-t", "all", "-n", tag, "-o", "%T|%M|%N").splitlines()
        return [tuple(line.split("|")) for line in lines]

    def missing(self, **options):
        return self.ask("check", options=options)["missing"]


@unittest.skipIf(slurm_cluster.why_not(), slurm_cluster.why_not())
class PlainTest(SlurmTest):
    """A cluster without accounts, where a partition makes room for another."""

    options = {"grace": 3}

    def tearDown(self):
        self.cluster.run("scancel", "-u", "root", check=False)
        self.cluster.run("scontrol", "update", "partition=lo", "State=up")
        for node in ("n1", "n2", "n3", "n4"):
            self.cluster.run("scontrol", "update", f"nodename={node}", "state=resume", check=False)
        wait_until(lambda: not self.cluster.run("squeue", "-h"), 30, "Slurm has no job")

    def test_what_there_is(self):
        gib = 1 << 30
        shape = {"cpu_slots": 16, "memory_bytes": 64 * gib, "n_accelerators": 4, "accelerator": "h200", "time_max_ms": 0,
                 "max_nodes": 4, "why": None}
        self.assertEqual(self.ask("list"), [{"name": "lo", **shape}])
        self.assertEqual(self.ask("list", options={"partition": "hi,short"}), [
            {"name": "hi", **shape}, {"name": "short", **shape, "max_nodes": 2, "time_max_ms": 600000}])
        self.assertIsNone(self.missing())
        self.assertEqual(self.ask("guess")["partition"], "lo")

    def test_a_request_is_made_once_and_given_back(self):
        tag = f"once-{os.getpid()}"
        report = self.running(tag, n_nodes=2, cpu_slots=3, n_accelerators=2)
        self.request(tag, n_nodes=2)
        self.assertEqual(len(self.jobs(tag)), 1)
        self.assertEqual(len(report["nodes"]), 2)
        self.assertEqual(report["id"], self.cluster.run("squeue", "-h", "-n", tag, "-o", "%i").strip())
        notes = self.notes(tag)
        self.assertEqual(len(notes), 2)
        for note in notes:
            secret, model, devices, cpus, words = note.splitlines()[0].split("|", 4)
            self.assertEqual((secret, model, devices, cpus), (SECRET, "h200", "0,1", "3"))
            self.assertRegex(words, rf"^agent --allocation {tag} --server http://127.0.0.1:1 --dir \S+/weir-{tag}\.\w+$")
        self.nobody_reads_the_secret(tag)
        self.assertEqual(len(list(self.folder.glob(f"weir-{tag}.*"))), 2)
        for _ in range(2):
            self.assertEqual(self.ask("release", tag), {})
        report = self.until(tag, "ended")
        self.assertEqual((report["ending"], report["nodes"]), ("released", []))
        wait_until(lambda: all("TERM" in note for note in self.notes(tag)), 10, "agents are asked to end")
        wait_until(lambda: not list(self.folder.glob(f"weir-{tag}.*")), 10, "folders of agents are removed")
        wait_until(lambda: not os.path.exists(f"/tmp/weir-{tag}.out"), 10, "what agents said is removed")
        self.request(tag)  # it was asked for
        self.assertEqual(len(self.jobs(tag)), 1)
        self.assertEqual(self.ask("release", "never-asked-for"), {})
        self.assertEqual(self.poll("never-asked-for")[0]["phase"], "unknown")

    def nobody_reads_the_secret(self, tag):
        """Not in any argument list, nor in what Slurm tells of the job; not even root's."""
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes().decode(errors="replace")
            except OSError:
                continue
            self.assertNotIn(SECRET, words, path)
        job = self.cluster.run("squeue", "-h", "-n", tag, "-o", "%i").strip()
        for words in (["scontrol", "-dd", "show", "job", job], ["scontrol", "show", "step", job],
                      ["squeue", "-O", "ALL", "-j", job], ["scontrol", "write", "batch_script", job, "-"]):
            self.assertNotIn(SECRET, self.cluster.run(*words))
        # Other processes end while all are looked through.
        inside = self.cluster.run("sh", "-c", "grep -ls allocation /proc/[0-9]*/cmdline || true").split()
        self.assertTrue(inside, "the agent's own, at least")
        for path in {name.replace("cmdline", "environ") for name in inside if "self" not in name}:
            self.assertNotEqual(self.cluster.run("cat", path, user="nobody", check=False).returncode, 0, path)

    def test_whole_nodes_and_what_no_pool_has(self):
        self.running("whole", cpu_slots=0, memory_bytes=0)
        self.assertIn("|h200|0,1,2,3|16|", self.notes("whole")[0])
        for values, status, words in (
                ({"pool": "nope"}, "NOT_FOUND", 'no pool "nope"'), ({"n_nodes": 5}, "LIMIT", "at most 4 nodes, not 5"),
                ({"cpu_slots": 17}, "INVALID", "16 processors"), ({"n_accelerators": 5}, "INVALID", "4 accelerators"),
                ({"accelerator": "a100", "n_accelerators": 1}, "INVALID", "of the model h200, not a100")):
            answer = self.ask("request", self.wanted("refused", **values))
            self.assertEqual(answer.get("status"), status, answer)
            self.assertIn(words, answer["error"])
        answer = self.ask("request", self.wanted("refused", pool="short", time_ms=660000), options={"partition": "short"})
        self.assertIn("time: the partition short allows 10 minutes at the most, not 11", answer["error"])
        self.assertEqual(self.jobs("refused"), [])

    def test_whatever_is_killed_nothing_is_asked_for_twice(self):
        """Requests are killed at random times, while sbatch is on its way and after; the last one is not."""
        seed = int(os.environ.get("WEIR_TEST_SEED", random.randrange(1 << 32)))
        print(f"WEIR_TEST_SEED={seed}")
        rng = random.Random(seed)
        slow = self.cluster.dir / "slow"
        slow.mkdir()
        for name in ("squeue", "scancel", "sinfo", "scontrol", "sacct"):
            (slow / name).symlink_to(f"/usr/bin/{name}")
        (slow / "sbatch").write_text("#!/bin/sh\nsleep 0.1\nexec /usr/bin/sbatch \"$@\"\n", encoding="ascii")
        os.chmod(slow / "sbatch", 0o755)
        options, n_doubles = {"bin": str(slow)}, 0
        for i in range(12):
            tag = f"killed-{os.getpid()}-{i}"
            self.addCleanup(pathlib.Path(f"/tmp/weir-{tag}.out").unlink, missing_ok=True)  # of one that ended before its script began
            for _ in range(rng.randint(1, 3)):
                with subprocess.Popen(self.argv("request", self.wanted(tag), options=options),
                                      env={**os.environ, **self.cluster.environment}, stdout=subprocess.DEVNULL) as process:
                    time.sleep(rng.uniform(0, 0.2))  # chance, not a wait for something
                    process.kill()
            self.request(tag, options=options)
            wait_until(lambda: not any(b"/sbatch\0--" in path.read_bytes() for path in self.own_processes()), 10,
                       "no sbatch is on its way")
            report = self.poll(tag)[0]
            jobs = self.jobs(tag)
            n_doubles += len(jobs) > 1
            alive = [job for job in jobs if job[0] != "CANCELLED"]
            self.assertEqual(len(alive), 1, (seed, tag, jobs))
            self.assertIn(report["phase"], ("pending", "running"))
            for state, used, nodes in jobs:
                if state == "CANCELLED":
                    self.assertEqual((used, nodes), ("0:00", ""), (seed, tag, jobs))
            self.request(tag)
            self.assertEqual(len(self.jobs(tag)), len(jobs))
            self.ask("release", tag)
        print(f"sent twice: {n_doubles} of 12")

    @staticmethod
    def own_processes():
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                path.read_bytes()
                yield path
            except OSError:
                continue

    def test_it_waits_and_says_why(self):
        self.running("first", n_nodes=4, cpu_slots=16)
        self.request("second", n_nodes=4, cpu_slots=16)
        report = wait_until(lambda: next((r for r in self.poll("second") if "Resources" in (r["said"] or "")), None), 20,
                            "it waits for nodes")
        self.assertEqual((report["phase"], report["why"]), ("pending", "it waits for nodes that others have"))
        self.cluster.run("scontrol", "update", "partition=lo", "State=down")
        self.assertEqual(self.ask("list")[0]["why"], "the partition lo is down")
        self.assertIn("partition: the partition lo is down", self.missing())
        report = wait_until(lambda: next((r for r in self.poll("second") if r["why"] == "its partition is down"), None), 20,
                            "the partition is down")
        self.assertEqual(report["phase"], "pending")
        self.assertEqual(self.poll("first")[0]["phase"], "running")

    def test_a_drained_node_is_named(self):
        node = self.running("drained", n_nodes=2)["nodes"][1]
        self.cluster.run("scontrol", "update", f"nodename={node}", "state=drain", "reason=fan | broken")
        report = wait_until(lambda: next((r for r in self.poll("drained") if r["closed_node"]), None), 10, "a node is closed")
        self.assertEqual((report["phase"], report["closed_node"]), ("running", node))
        self.assertRegex(report["closed_why"], r"^drain\w*: fan \| broken$")

    def test_a_person_cancels_it(self):
        self.running("cancelled")
        self.cluster.run("scancel", "-n", "cancelled")
        report = self.until("cancelled", "ended")
        self.assertEqual((report["ending"], report["why"]), ("cancelled", "it was cancelled in Slurm"))

    def test_a_node_fails(self):
        nodes = self.running("failed-node", n_nodes=2)["nodes"]
        self.cluster.run("scontrol", "update", f"nodename={nodes[0]}", "state=down", "reason=off")
        report = self.until("failed-node", "ended")
        self.assertEqual((report["ending"], report["why"]), ("failed", "a node of it failed"))

    def test_agents_that_fail_are_quoted(self):
        tag = f"failing-{os.getpid()}"
        out = pathlib.Path(f"/tmp/weir-{tag}.out")
        self.addCleanup(out.unlink, missing_ok=True)
        self.running(tag)
        (self.folder / f"{tag}.fail").touch()
        report = self.until(tag, "ended")
        self.assertEqual(report["ending"], "failed")
        self.assertRegex(report["why"], rf"exit status 7: {out} of its first node \(n\d\)")
        self.assertIn("it did not start", out.read_text(encoding="ascii"))

    def test_it_is_taken_for_others(self):
        self.running("victim", n_nodes=4, cpu_slots=16)
        self.cluster.run("sbatch", "-p", "hi", "-N4", "-c16", "-o", "/dev/null", "--wrap", "true")
        report = self.until("victim", "ended")
        self.assertEqual((report["ending"], report["why"]), ("preempted", "Slurm took its nodes for others"))
        self.assertIn("TERM", self.notes("victim")[0])
        self.cluster.write_conf(grace=0)
        self.cluster.run("scontrol", "reconfigure")
        self.running("victim-at-once", n_nodes=4, cpu_slots=16)
        self.cluster.run("sbatch", "-p", "hi", "-N4", "-c16", "-o", "/dev/null", "--wrap", "true")
        report = self.until("victim-at-once", "ended")
        self.assertEqual((report["ending"], report["said"].split()[0]), ("preempted", "PREEMPTED"))
        self.cluster.write_conf(grace=3)
        self.cluster.run("scontrol", "reconfigure")

    @unittest.skipUnless(os.environ.get("WEIR_SLURM_TIME"), "WEIR_SLURM_TIME=1: it takes two minutes")
    def test_its_time_is_over(self):
        report = self.running("timed", time_ms=60000)
        self.assertAlmostEqual(report["ends_ms"] / 1000, time.time() + 60, delta=5)
        report = self.until("timed", "ended", seconds=180)
        self.assertEqual((report["ending"], report["why"]), ("time", "its time was over"))
        self.assertIn("TERM", self.notes("timed")[0])

    def test_the_controller_is_away_and_comes_back(self):
        before = self.running("survivor", n_nodes=2)
        hasty = {"conf": self.other_conf("hasty.conf", ("MessageTimeout=.*", "MessageTimeout=1"))}
        self.cluster.end("slurmctld", signal.SIGTERM)
        for words in (("poll", "survivor"), ("release", "other"), ("request", self.wanted("other")), ("check",), ("list",)):
            answer = self.ask(*words, options=hasty)
            self.assertEqual(answer["status"], "UNAVAILABLE", answer)
            self.assertIn("slurmctld does not run, or cannot be reached", answer["error"])
        self.cluster.start_ctld()
        for _ in range(20):
            self.assertEqual(self.poll("survivor")[0], before)
        self.assertNotIn("TERM", self.notes("survivor")[0])
        self.cluster.send("slurmctld", signal.SIGSTOP)
        answer = self.ask("poll", "survivor", options=hasty)
        self.cluster.send("slurmctld", signal.SIGCONT)
        self.assertEqual(answer["status"], "UNAVAILABLE", answer)
        self.assertIn("slurmctld does not answer", answer["error"])
        self.assertEqual(self.poll("survivor")[0], before)

    def test_wrong_configurations(self):
        folder = self.cluster.dir / "old"
        folder.mkdir()
        for name in ("sbatch", "squeue", "scancel", "sinfo", "scontrol"):
            (folder / name).write_text("#!/bin/sh\necho slurm 20.11.9\n", encoding="ascii")
            os.chmod(folder / name, 0o755)
        for options, pattern in (
                ({"partition": "nope"}, r'^partition: Slurm has no "nope" with nodes: there are lo, hi, short$'),
                ({"partition": "lo,"}, r"^partition: a name is missing"),
                ({"constraint": "nope"}, r'^constraint: .* says "Invalid feature specification": `sinfo -o %f`'),
                ({"reservation": "nope"}, r'^reservation: .* says "Requested reservation is invalid": `scontrol show res'),
                ({"partition": "short", "time": "11m"}, r"^time: 11m is more than the 10 minutes .* partition short allows$"),
                ({"time": "soon"}, r'^time: "soon" is no time'),
                ({"bin": "/nowhere"}, r"^bin: there is no sbatch in /nowhere .*slurm-client"),
                ({"bin": str(folder)}, r"^bin: sbatch .* is of Slurm 20\.11: the oldest that is supported is 21\.08"),
                ({"conf": "/nowhere"}, r"^conf: /nowhere cannot be read"),
                ({"server": "weir:80"}, r'^server: "weir:80" is no address'),
                ({"lines": ["--array=1-9"]}, r"^lines: --array is not taken: Weir says it itself"),
                ({"lines": ["--nonsense=1"]}, r"^lines: .*unrecognized option"),
                ({"lines": ["--licenses=nope:1"]}, r'^lines: .* says "Invalid license specification"'),
                ({"queues": {"vision": {"partition": "hi"}}}, r"^queues.vision.partition: ")):
            with self.subTest(options=options):
                self.assertRegex(self.missing(**options), pattern)

    def other_conf(self, name, *replacements):
        """A copy of slurm.conf with other words."""
        text = self.cluster.conf.read_text(encoding="ascii")
        for old, new in replacements:
            text = re.sub(old, new, text)
        path = self.cluster.dir / name
        path.write_text(text, encoding="ascii")
        return str(path)

    def test_wrong_credentials(self):
        folder = self.cluster.dir / "munge-other"
        conf = self.other_conf("other.conf", ("AuthInfo=socket=.*", f"AuthInfo=socket={folder}/socket"))
        started = time.monotonic()
        self.assertRegex(self.missing(conf=conf), r"^the service munge, .* does not answer at .*/socket .*munge\.key$")
        self.assertLess(time.monotonic() - started, 5)
        self.cluster.start_munge("munge-other")
        self.assertRegex(self.missing(conf=conf), r"this machine's munge\.key must be the cluster's, its clock right")


@unittest.skipIf(slurm_cluster.why_not(accounting=True), slurm_cluster.why_not(accounting=True))
class AccountsTest(SlurmTest):
    """A cluster with accounts and QOS."""

    accounting = True
    options = {"min_job_age": 2}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cluster.add_accounts()

    def test_accounts(self):
        self.payers_are_checked()
        self.queues_have_their_payers()
        self.what_slurm_forgot_is_in_the_accounts()

    def test_usage_agrees_with_the_accounts(self):
        """Random jobs through a server: node, CPU and GPU seconds by cluster are those of sacct, which counts whole seconds."""
        seed = int(os.environ.get("WEIR_TEST_SEED", str(random.SystemRandom().randrange(1 << 32))))
        print(f"WEIR_TEST_SEED={seed}")
        rng = random.Random(seed)
        server = Server()
        self.addCleanup(server.stop)
        server.start("--no-agent")
        words = {"conf": str(self.cluster.conf), "partition": "lo", "account": "vis", "qos": "over", "program": WEIR}
        server.weir("cluster", "add", "counted", "--driver", "slurm", "--yes", "--idle", "1s", *[word for pair in words.items() for word in ("--set", "=".join(pair))])
        jobs = []
        for i in range(6):
            devices = rng.choice(({}, {"accelerators": rng.randint(1, 4)}, {"accelerators": 1, "accelerator_share": rng.choice((0.2, 0.35))}))
            spec = {"argv": ["sleep", str(rng.randint(1, 5))], "tasks": rng.randint(1, 2), "resources": {"cpus": rng.randint(1, 6), **devices}}
            jobs.append(server.post("/jobs", {"name": f"u-{i}", "kind": "command", "spec": spec})["id"])
            time.sleep(rng.random())
        wait_until(lambda: all(server.get(f"/jobs/{job}")["state"] == "SUCCEEDED" for job in jobs), 60, "all have run")
        wait_until(lambda: not server.get("/allocations")["items"], 30, "all are given back")
        tags = {one["id"] for one in server.get("/allocations?view=all")["items"]}
        lines = wait_until(lambda: self.ended(tags), 30, "they have ended in Slurm's accounts")
        is_there = {"node": 0, "cpu": 0, "gpu": 0.0}
        may_differ = {"node": 0.0, "cpu": 0.0, "gpu": 0.0}
        for seconds, has in lines:
            for name in is_there:
                is_there[name] += seconds * has[name]
                may_differ[name] += 2 * has[name]
        found = server.get("/usage?by=cluster")["items"]
        self.assertEqual([one["key"] for one in found], ["counted"])
        for name, member in (("node", "node_s"), ("cpu", "given_cpu_s"), ("gpu", "given_device_s")):
            self.assertAlmostEqual(found[0][member], is_there[name], delta=may_differ[name], msg=f"{name}: {lines}")
        self.assertGreater(is_there["node"], may_differ["node"], "it ran for longer than it may differ")

    def ended(self, tags):
        """Of each of Slurm's jobs: its seconds, and what it had; once all have ended."""
        lines = []
        for line in self.cluster.run("sacct", "-X", "-n", "-P", "-S", "now-1hours", "-o", "jobname,end,elapsedraw,alloctres").splitlines():
            name, end, seconds, tres = line.split("|")
            if name in tags and end != "Unknown":
                had = dict(part.split("=") for part in tres.split(",") if part)
                lines.append((int(seconds), {"node": int(had.get("node", 0)), "cpu": int(had.get("cpu", 0)),
                                             "gpu": int(had.get("gres/gpu", 0)) + int(had.get("gres/shard", 0)) / 10}))
        return lines if len(lines) == len(tags) else None

    def payers_are_checked(self):
        guessed = self.ask("guess")
        self.assertEqual((guessed["partition"], guessed["account"]), ("lo", "root"))
        self.assertIsNone(self.missing(account="vis"))
        self.cluster.run("scontrol", "update", "partition=hi", "AllowAccounts=other")
        vision = {"vision": {"account": "vis", "qos": "guar"}}
        self.assertIsNone(self.missing(account="vis", queues=vision))
        for options, pattern in (
                ({"account": "nope"}, r'^account: .* says "Invalid account or account/partition combination specified": name'),
                ({"account": "other"}, r"^account: .* name one that the server's user has and the partition allows"),
                ({"account": "vis", "partition": "hi"},
                 r'^account: Slurm has AllowAccounts=other for the partition, and so takes nothing of "vis" there: name'),
                ({"account": "vis", "qos": "nope"}, r'^qos: .* says "Invalid qos specification": name one'),
                ({"queues": {"vision": {"account": "nope"}}}, r"^queues\.vision: account: "),
                ({"queues": {"vision": {"account": "vis", "qos": "nope"}}}, r"^queues\.vision: qos: ")):
            with self.subTest(options=options):
                self.assertRegex(self.missing(**options), pattern)

    def queues_have_their_payers(self):
        options = {"account": "vis", "qos": "over", "queues": {"vision": {"qos": "guar"}}}

        def has_its_payer(tag, queue, payer):
            self.until(tag, "running")
            self.assertEqual(self.cluster.run("squeue", "-h", "-n", tag, "-o", "%a/%q").strip(), payer)
            self.assertEqual(self.ask("payer", queue, options=options), payer)

        self.request("borrowed", options=options, queue="speech", n_nodes=4, n_accelerators=4)
        has_its_payer("borrowed", "speech", "vis/over")
        for tag in ("own", "beyond"):
            self.request(tag, options=options, queue="vision", n_nodes=2, n_accelerators=4)
        has_its_payer("own", "vision", "vis/guar")
        self.assertEqual(self.until("borrowed", "ended")["ending"], "preempted")
        report = wait_until(lambda: next((r for r in self.poll("beyond") if "QOSGrpGRES" in (r["said"] or "")), None), 20,
                            "its QOS has no more")
        self.assertEqual(report["why"], "its QOS has reached what all of it together may use")
        self.cluster.run("scancel", "-n", "beyond")
        self.ask("release", "own")

    def what_slurm_forgot_is_in_the_accounts(self):
        wait_until(lambda: not self.jobs("own") and not self.jobs("borrowed"), 60, "slurmctld has forgotten them")
        reports = self.poll("own", "borrowed", "nope")
        self.assertEqual([report["phase"] for report in reports], ["ended", "ended", "unknown"])
        self.assertEqual([report["ending"] for report in reports], ["released", "preempted", None])
        self.request("own")
        self.assertEqual(self.jobs("own"), [])


if __name__ == "__main__":
    if slurm_cluster.why_not():
        print(slurm_cluster.why_not())
        sys.exit(77)
    unittest.main(verbosity=2)

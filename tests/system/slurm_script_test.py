"""Batch scripts of Slurm on Weir's own node, with nothing of Slurm: what they print is what they would print there. Where sbatch
is installed, it says of made-up heads what it reads in them."""
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import unittest

import harness
from harness import Server, WEIR, wait_until

STEPS = """#!/bin/bash
#SBATCH --job-name="My Run"  # a comment
#SBATCH -N 2 --ntasks-per-node=2
#SBATCH --mem=100M -t 10 -p gpu
export WORD="it's $1"
unset GIVEN
cd "$SLURM_SUBMIT_DIR/sub"
echo "once: $SLURM_JOB_NAME, $SLURM_NTASKS tasks, $SLURM_TASKS_PER_NODE, memory $SLURM_MEM_PER_NODE"
nodes=( $(scontrol show hostnames "$SLURM_JOB_NODELIST") )
head=$(srun --nodes=1 --ntasks=1 -w "${nodes[0]}" cat ../data.txt)
echo "head: $head of ${#nodes[@]}"
srun sh -c 'echo "task $SLURM_PROCID/$SLURM_NTASKS $SLURM_NODEID/$SLURM_LOCALID $WORD ${GIVEN-gone} $(cat "$1")"' x "$PWD/../data.txt"
srun -n 3 sh -c 'exit $SLURM_PROCID'; echo "worst: $?"
srun -K sh -c 'test $SLURM_PROCID != 3 || exit 5; sleep 600' 2>/dev/null; echo "ended by the last: $?"
srun -n 9 true; echo "too many: $?"
srun --no-such true; echo "unknown: $?"
srun -w nowhere true; echo "nowhere: $?"
srun no-such-program; echo "missing: $?"
"""

PARTS = """#!/bin/sh
#SBATCH --array=1,3,5-9:2%2
echo "part $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT from $SLURM_ARRAY_TASK_MIN to $SLURM_ARRAY_TASK_MAX by \
$SLURM_ARRAY_TASK_STEP: $((SLURM_JOB_ID - SLURM_ARRAY_JOB_ID))"
"""

SAVING = """#!/bin/bash
#SBATCH -N 2 --signal=USR1@20
echo "start $SLURM_RESTART_COUNT"
srun sh -c 'trap "echo saved $SLURM_PROCID; exit 0" USR1; trap "echo told $SLURM_PROCID; exit 0" TERM
            echo up $SLURM_PROCID; while :; do sleep 0.1; done'
echo "the script goes on"
"""

HEADS = ["-N {n}", "--nodes={n}", "--ntasks {n}", "-n{n}", "--mem={n}G", "--mem {n}000", "-t {n}", "--time=1-{n}:{n}", "-t {n}:{n}:{n}",
         "-J 'a {n}'", "--job-name=\"b'{n}\"", "-c {n}", "--cpus-per-task={n}", "--ntasks-per-node={n}", "--comment='x # y'", "-HN{n}",
         "--nice", "--nod={n}", "--ntas={n}", "-t x{n}", "--time 1:2:3:4", "-n 0", "{n}", "--mem={n}X", "-J \"{n}", "--time=0", "# -N 9"]


class Scripts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server().start()
        cls.addClassCleanup(cls.server.stop)
        cls.folder = cls.server.root / "work"
        (cls.folder / "sub").mkdir(parents=True)
        (cls.folder / "data.txt").write_text("data\n")
        wait_until(lambda: cls.server.get("/nodes")["items"], 20, "the agent to register")

    def write(self, name, text):
        (self.folder / name).write_text(text)
        return name

    def weir(self, *words, env=None):
        return subprocess.run([WEIR, *words], cwd=self.folder, capture_output=True, text=True, timeout=60, check=False,
                              env=os.environ | {"WEIR_STATE": str(self.server.state)} | (env or {}))

    def run_script(self, *words, env=None):
        done = self.weir("job", "run", "--follow", "--cpus", "0.1", *words, env=env)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        return re.sub(r"^\S+ \| ", "", done.stdout, flags=re.M), done.stderr

    def test_a_script_runs_once_and_srun_in_all_tasks(self):
        out, said = self.run_script("--env", "GIVEN=yes", self.write("steps.sh", STEPS), "here")
        for line in ("once: My Run, 4 tasks, 2(x2), memory 100", "head: data of 2", "worst: 2", "ended by the last: 5", "too many: 2", "unknown: 2",
                     "nowhere: 2", "missing: 127"):
            self.assertEqual(out.splitlines().count(line), 1, line + "\n" + out)
        for i in range(4):
            self.assertIn(f"task {i}/4 {i // 2}/{i % 2} it's here gone data\n", out)
        self.assertIn("line 4, --partition: each project has a queue", said)
        self.assertIn("is none of the job's nodes", out)
        self.assertIn(("my-run", "sbatch"), [(job["name"], job["kind"]) for job in self.server.get("/jobs")["items"]])

    def test_each_part_of_an_array_has_its_own_number(self):
        out, _ = self.run_script(self.write("parts.sh", PARTS))
        self.assertEqual(sorted(line for line in out.splitlines() if line.startswith("part")),
                         [f"part {n} of 5 from 1 to 9 by 2: {i}" for i, n in enumerate((1, 3, 5, 7, 9))])

    def test_the_command_wins_and_what_is_not_taken_is_in_its_answer(self):
        self.write("wins.sh", "#!/bin/sh\n#SBATCH -J x -t 5 -N 2 --export=A=1,TAKEN -q high --no-requeue\nexit 0\n#SBATCH -n 3\n")
        done = self.weir("job", "run", "-o", "json", "--name", "mine", "--time-limit", "7m", "--nodes", "1", "--cpus", "0.1", "--env", "A=2",
                         "wins.sh", env={"TAKEN": "this"})
        self.assertEqual((done.returncode, done.stderr.count("line")), (0, 0), done.stderr)
        job = json.loads(done.stdout)
        self.assertEqual([(one["line"], one["option"]) for one in job["not_taken"]],
                         [(2, "--qos"), (2, "--no-requeue"), (4, "#SBATCH")])
        spec = self.server.get("/jobs/" + job["id"])["spec"]
        self.assertEqual((job["name"], spec["time_limit"], spec["nodes"], spec["tasks"], spec["preemptible"], spec["job_name"]),
                         ("mine", "7m", 1, 1, False, "x"))
        plain = json.loads(self.weir("job", "run", "-o", "json", "--", "sh", "wins.sh").stdout)
        self.assertEqual((plain["kind"], "not_taken" in plain), ("command", False))

    def test_a_wrong_head_is_refused_with_its_line(self):
        self.write("wrong.sh", "#!/bin/sh\n#SBATCH -N 1\n#SBATCH --ndoes=2\n")
        done = self.weir("job", "run", "wrong.sh")
        self.assertEqual((done.returncode, done.stderr), (2, "weir: wrong.sh: line 3: --ndoes=2: sbatch has no such option; did you "
                                                             "mean --nodes?\n"))
        self.write("plain.sh", "#!/bin/sh\n# SBATCH -N 2\necho plain\n")
        self.assertIn("put -- in front of the command", self.weir("job", "run", "plain.sh").stderr)

    def test_a_script_from_elsewhere_is_run_in_this_folder(self):
        elsewhere = self.server.root / "elsewhere.sh"
        elsewhere.write_text("#!/bin/bash -e\n#SBATCH --chdir=sub\necho \"$0 $1 $(ls)\"\n")
        (self.folder / "sub" / "inner.txt").write_text("x")
        out, _ = self.run_script(str(elsewhere), "argument")
        self.assertIn("elsewhere.sh argument", out)
        self.assertIn("inner.txt", out)
        self.assertNotIn("data.txt", out)

    def test_what_srun_has_started_is_asked_to_save_and_to_end(self):
        done = self.weir("job", "run", "-o", "json", "--cpus", "0.1", self.write("saving.sh", SAVING))
        job = json.loads(done.stdout)["id"]

        def said(*lines):
            def look():
                log = self.weir("logs", job).stdout
                return all(line in log for line in lines) and log
            return wait_until(look, 30, str(lines))
        said("up 0", "up 1")
        for program in ("sbatch-run", "mpi-serve"):  # as their agent asks them
            os.kill(next(pid for pid in self.server.pids() if command_of(pid).startswith(f"weir-worker {program} ")), signal.SIGUSR1)
        self.assertNotIn("told", said("saved 0", "saved 1", "the script goes on"))
        wait_until(lambda: self.server.get("/jobs/" + job)["state"] == "SUCCEEDED", 30, "its end")
        job = json.loads(self.weir("job", "run", "-o", "json", "--cpus", "0.1", "saving.sh").stdout)["id"]
        said("up 0", "up 1")
        self.weir("job", "requeue", job)
        said("start 1", "up 0", "up 1")
        self.weir("job", "cancel", job)
        said("told 0", "told 1")

    def test_sbatch_reads_the_same(self):
        if shutil.which("sbatch") is None:
            self.skipTest("sbatch is not installed")
        conf = self.server.root / "slurm.conf"  # no daemon is asked, and none is there
        conf.write_text("ClusterName=t\nSlurmctldHost=localhost(127.0.0.1)\nSlurmctldPort=1\nAuthType=auth/none\n"
                        "NodeName=n1 CPUs=4\nPartitionName=p Nodes=n1 Default=YES\n")
        seed = int(os.environ.get("WEIR_TEST_SEED", random.randrange(1 << 32)))
        print(f"WEIR_TEST_SEED={seed}")
        rng, n_good = random.Random(seed), 0
        for _ in range(25):
            words = [rng.choice(HEADS).format(n=rng.randint(1, 4)) for _ in range(rng.randint(1, 3))]
            head = rng.choice(["\n#SBATCH ", " "]).join(words)
            script = self.folder / "head.sh"
            script.write_text(f"#!/bin/sh\n#SBATCH {head}\nexit 0\n")
            theirs = reading_of_sbatch(script, conf)
            read = dict(re.findall(r"^sbatch: ([a-z-]+) +: (.*)$", theirs, re.M))
            ours = self.weir("job", "run", "-o", "json", "--cpus", "0.1", "head.sh")
            with self.subTest(head=head, theirs=theirs, ours=ours.stderr):
                self.assertEqual(ours.returncode == 0, "defined options" in theirs)
                if ours.returncode != 0:
                    self.assertIn("line ", ours.stderr)
                    continue
                n_good += 1
                spec = self.server.get("/jobs/" + json.loads(ours.stdout)["id"])["spec"]
                self.assertEqual(minutes(read.get("time")), int(spec.get("time_limit", "0m")[:-1]))
                self.assertEqual(spec.get("memory_max_bytes", 0), mib(read.get("mem")) << 20)
                self.assertEqual(spec["job_name"], read.get("job-name", "head.sh"))
                self.assertEqual(spec.get("cpus_per_task", 0), int(read.get("cpus-per-task", 0)))
                least = int(read.get("ntasks", 0))
                self.assertEqual(spec["tasks"], least or spec["nodes"] * int(read.get("ntasks-per-node", 1)))
                if "nodes" in read:
                    self.assertEqual(spec["nodes"], min(int(read["nodes"]), least or 9))
        self.assertGreater(n_good, 3)


def command_of(pid):
    """Its words, the program's without its folder."""
    try:
        words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return ""
    return " ".join([words[0].rpartition("/")[2], *words[1:]])


def reading_of_sbatch(script, conf):
    """What it says up to where it would ask its controller."""
    said = ""
    with subprocess.Popen(["sbatch", "-v", "--test-only", str(script)], env=os.environ | {"SLURM_CONF": str(conf)},
                          stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        for line in process.stderr:
            said += line
            if "end of defined options" in line:
                process.kill()
                break
    return said


def minutes(text):
    """Of D-HH:MM:SS, or UNLIMITED."""
    if text is None or text == "UNLIMITED":
        return 0
    days, _, clock = text.rpartition("-")
    hours, mins, _ = clock.split(":")
    return int(days or 0) * 1440 + int(hours) * 60 + int(mins)


def mib(text):
    return 0 if text is None else int(text[:-1]) << 10 if text.endswith("G") else int(text)


if __name__ == "__main__":
    harness.main()

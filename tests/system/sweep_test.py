"""Sweeps: a hundred small jobs that report their metric as jobs do, stopped early where they are bad; server, agent, supervisors and
tasks are killed meanwhile, and no trial is lost or doubled. What the sweep says is compared with what the jobs themselves noted."""
import collections
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import unittest

import harness
from harness import HttpError, Server, wait_until

KILLS = int(os.environ.get("WEIR_KILLS", "4"))
SEED = int(os.environ["WEIR_SEED"]) if "WEIR_SEED" in os.environ else random.SystemRandom().randrange(1 << 31)
N_TRIALS = int(os.environ.get("WEIR_TRIALS", "16"))

# A training in small, of shell and curl alone: it falls by a power law to where x says, reports each step to its run, tries again while
# the server is away, and keeps how far it is in a file of its own, so that a start after a kill goes on. Each start is noted. From
# trial WORSE on they are worse than any before, whatever x is.
TRIAL = r"""
set -e  # a kill may hit what computes a value, too
state=WORK/trial.$WEIR_TRIAL
step=$(cat $state 2>/dev/null || echo 0)
echo "$WEIR_TRIAL $WEIR_JOB $WEIR_ATTEMPT $step" >>WORK/starts
while test $step -lt STEPS; do
    step=$((step + 1))
    value=$(awk "BEGIN { print ($WEIR_PARAM_X - 0.3) ^ 2 + 1 / $step + ($WEIR_TRIAL >= WORSE) }")
    body="{\"metrics\": [{\"key\": \"loss\", \"step\": $step, \"value\": $value}]}"
    until curl -s -f -m 5 -o /dev/null -H "Authorization: Bearer $(cat token)" -d "$body" \
            $WEIR_SERVER/api/v1/runs/$WEIR_RUN/metrics; do sleep 0.2; done
    echo $step >$state.new.$WEIR_ATTEMPT && mv $state.new.$WEIR_ATTEMPT $state
    sleep PAUSE
done
"""


def document(name, work, steps=9, pause=0.05, worse=1000, **members):
    script = TRIAL.replace("WORK", str(work)).replace("STEPS", str(steps)).replace("PAUSE", str(pause)).replace("WORSE", str(worse))
    return {"name": name, "seed": SEED, "job": {"kind": "command", "max_restarts": 50, "spec": {"argv": ["sh", "-c", script], "cpu_slots": 1,
                                                                           "stop_grace_ms": 1000}},
            "parameters": {"x": {"kind": "uniform", "min": 0, "max": 1}},
            "goal": {"metric": "loss", "direction": "minimize"}, **members}


class Swept(unittest.TestCase):
    def setUp(self):
        print(f"seed {SEED} (WEIR_SEED repeats it)", file=sys.stderr)
        self.server = Server("--cpu-slots", "16")
        self.addCleanup(self.server.stop)
        self.server.start()
        self.work = self.server.root / "work"
        self.work.mkdir()
        self.work.chmod(0o777)
        for name in ("starts",):
            (self.work / name).write_text("")
            (self.work / name).chmod(0o666)

    def sweep(self, sweep):
        return self.server.get(f"/sweeps/{sweep}")

    def wait(self, sweep, seconds=60):
        def is_over():
            found = self.sweep(sweep)
            return found["state"] not in ("RUNNING", "STOPPING") and found
        return wait_until(is_over, seconds, f"the end of sweep {sweep}")

    def check_trials(self, sweep, n_trials):
        """Each trial once, with a job and a run of its own; none is open; what it tries is what its run says."""
        trials = self.server.get(f"/sweeps/{sweep['id']}/trials")["items"]
        self.assertEqual([trial["number"] for trial in trials], list(range(1, n_trials + 1)))
        jobs = [job for job in self.server.get("/jobs?limit=1000")["items"] if job["name"].startswith(sweep["name"] + ".")]
        self.assertEqual(sorted(job["id"] for job in jobs), sorted(trial["job"] for trial in trials))
        self.assertEqual(len({trial["run"] for trial in trials}), n_trials)
        started = collections.defaultdict(set)
        for line in (self.work / "starts").read_text().splitlines():
            number, job, attempt, _ = line.split()
            self.assertNotIn(attempt, started[number, job], "one attempt started twice")
            started[number, job].add(attempt)
        for number, job in started:
            self.assertEqual(trials[int(number) - 1]["job"], job)
        for trial in trials:
            self.assertIn(trial["state"], ("SUCCEEDED", "STOPPED"))
            run = self.server.get(f"/runs/{trial['run']}")
            self.assertEqual(run["status"], "FINISHED", trial)
        return trials

    def test_bad_trials_are_stopped_early_and_the_command_line_shows_what_came_of_it(self):
        path = self.server.root / "sweep.json"
        path.write_text(json.dumps(document("quick", self.work, trials=9, parallel=6, worse=7, pause=0.1,
                                            method={"kind": "asha", "min_resource": 1, "max_resource": 9, "eta": 3})))
        self.assertIn("is good: 9 trials", self.server.weir("sweep", "run", str(path), "--dry-run")[1])
        self.assertEqual(self.server.get("/sweeps")["items"], [])
        status, text, _ = self.server.weir("sweep", "run", str(path), "--follow")
        self.assertEqual(status, 0, text)
        [sweep] = self.server.get("/sweeps")["items"]
        trials = self.check_trials(sweep, 9)
        best = min((trial for trial in trials if trial["value"] is not None), key=lambda trial: trial["value"])
        self.assertEqual(sweep["best"], best["number"])
        # Of those before, each may have been the best one so far when it came to a rung: that depends on the seed.
        self.assertEqual([trial["state"] for trial in trials[6:]], ["STOPPED"] * 3)
        self.assertEqual(sweep["n_stopped"], sum(trial["state"] == "STOPPED" for trial in trials))
        self.assertEqual(sweep["n_failed"], 0)
        shown = self.server.weir("sweep", "get", "quick")[1]
        self.assertIn("STOPPED", shown)
        self.assertIn("at step", shown)
        self.assertIn("quick", self.server.weir("get", "sweeps")[1])
        self.assertEqual(len(json.loads(self.server.weir("get", "trials", "quick", "-ojson")[1])["items"]), 9)
        with self.assertRaises(HttpError) as refused:
            self.server.post(f"/sweeps/{sweep['id']}/stop")
        self.assertEqual(refused.exception.code, 409)
        self.server.weir("sweep", "delete", "quick")
        self.assertEqual(self.server.get("/sweeps")["items"], [])
        self.assertEqual(len(self.server.get("/runs")["items"]), 9)

    def test_a_folder_beside_the_document_travels_with_the_sweep(self):
        folder = self.server.root / "project/src"
        folder.mkdir(parents=True)
        (folder / "try.sh").write_text(
            'curl -s -f -H "Authorization: Bearer $(cat token)" -d "{\\"metrics\\":[{\\"key\\":\\"loss\\",\\"step\\":1,\\"value\\":$1}]}" '
            "$WEIR_SERVER/api/v1/runs/$WEIR_RUN/metrics\n")
        document = {"name": "coded", "job": {"kind": "command", "spec": {"code": "./src", "argv": ["sh", "try.sh", "{{x}}"]}},
                    "parameters": {"x": [3, 1, 2]}, "goal": {"metric": "loss", "direction": "minimize"}, "method": {"kind": "grid"}}
        (folder.parent / "sweep.json").write_text(json.dumps(document))
        self.server.weir("sweep", "run", str(folder.parent / "sweep.json"), "--follow")
        [sweep] = self.server.get("/sweeps")["items"]
        self.assertEqual((sweep["state"], sweep["best"], sweep["best_value"]), ("SUCCEEDED", 2, 1))

    def test_who_stops_a_sweep_gets_what_it_has(self):
        sweep = self.server.post("/sweeps", document("long", self.work, steps=100000, trials=9, parallel=3))
        wait_until(lambda: self.sweep(sweep["id"])["best"], 30, "a first value")
        self.server.weir("sweep", "stop", "long")
        sweep = self.wait(sweep["id"], 30)
        self.assertEqual((sweep["state"], sweep["n_open"], sweep["n_made"]), ("CANCELLED", 0, 3))
        self.assertGreater(sweep["best"], 0)
        jobs = self.server.get("/jobs")["items"]
        self.assertEqual([job["state"] for job in jobs], ["CANCELLED"] * 3)

    def kill_something(self, rng):
        """Server, agent, a supervisor or a task. @return What."""
        what = rng.choice(["server", "server", "agent", "supervisor", "task"])
        if what == "server":
            self.server.kill()
            self.server.start("--listen", self.server.url.split("//")[1])
            return what
        words = {"agent": "agent --server", "supervisor": "--supervise", "task": "sh -c"}
        found = self.server.pids(words[what])
        if found:
            try:
                os.kill(rng.choice(found), signal.SIGKILL)
            except ProcessLookupError:
                pass
        return what

    def check_rungs(self, trials):
        """Values at rungs follow from the numbers that the jobs computed."""
        for trial in trials:
            for k, value in enumerate(trial["rungs"]):
                expected = (trial["parameters"]["x"] - 0.3) ** 2 + 1 / 3 ** k
                self.assertAlmostEqual(value, expected, places=4)

    def kill_server(self):
        self.server.kill()
        self.server.start("--listen", self.server.url.split("//")[1])

    def test_a_paused_sweep_starts_no_trial_also_after_a_kill(self):
        sweep = self.server.post("/sweeps", document("paused", self.work, steps=4, trials=6, parallel=2, pause=0.1, time_s=600))
        wait_until(lambda: self.sweep(sweep["id"])["best"], 30, "a first value")
        out = self.server.weir("sweep", "pause", "paused")[1]
        self.assertIn("PAUSED", out)
        with self.assertRaises(HttpError) as refused:
            self.server.post(f"/sweeps/{sweep['id']}/pause")
        self.assertEqual(refused.exception.code, 409)
        self.kill_server()
        # Those that ran go on to their ends.
        wait_until(lambda: self.sweep(sweep["id"])["n_open"] == 0, 60, "the end of what runs")
        paused = self.sweep(sweep["id"])
        self.assertEqual((paused["state"], paused["n_made"]), ("PAUSED", paused["n_succeeded"]))
        self.assertIn("paused by", paused["reason"])
        self.assertLess(paused["n_made"], 6)
        self.kill_server()
        self.assertEqual(self.sweep(sweep["id"])["n_made"], paused["n_made"])
        self.server.weir("sweep", "resume", "paused")
        self.kill_server()
        sweep = self.wait(sweep["id"])
        self.assertEqual((sweep["state"], sweep["n_made"], sweep["reason"], sweep["paused_ms"]), ("SUCCEEDED", 6, None, None))
        self.assertGreater(sweep["pauses_ms"], 0)
        self.check_trials(sweep, 6)
        with self.assertRaises(HttpError) as refused:
            self.server.post(f"/sweeps/{sweep['id']}/resume")
        self.assertEqual(refused.exception.code, 409)

    def test_trials_wait_at_rungs_and_go_on_from_their_checkpoints(self):
        rng = random.Random(SEED)
        sweep = self.server.post("/sweeps", document(
            "waiting", self.work, steps=9, trials=N_TRIALS, parallel=4, pause=0.05, max_failures=N_TRIALS,
            method={"kind": "asha", "min_resource": 1, "max_resource": 9, "eta": 3, "at_rung": "wait"}))
        wait_until(lambda: self.sweep(sweep["id"])["n_paused"], 30, "a trial that waits")
        waiting = [trial for trial in self.server.get(f"/sweeps/{sweep['id']}/trials")["items"] if trial["state"] == "PAUSED"]
        self.assertIn("at step", waiting[0]["reason"])
        killed = collections.Counter()
        for i in range(KILLS):
            killed[self.kill_something(rng)] += 1
            if i == 1 and self.sweep(sweep["id"])["state"] == "RUNNING":
                self.server.weir("sweep", "pause", "waiting")
                self.kill_server()
                self.server.weir("sweep", "resume", "waiting")
        sweep = self.wait(sweep["id"], 150)
        print(f"killed {dict(killed)}; {sweep['n_succeeded']} succeeded, {sweep['n_stopped']} stopped at rungs, work {sweep['work']:g}",
              file=sys.stderr)
        self.assertEqual((sweep["state"], sweep["n_paused"], sweep["n_failed"]), ("SUCCEEDED", 0, 0), sweep)
        trials = self.check_trials(sweep, N_TRIALS)
        self.check_rungs(trials)
        self.assertGreaterEqual(sweep["n_succeeded"], 1)
        # Who went on from a rung did so where it was: its job started again, and not at step 0.
        starts = collections.defaultdict(list)
        for line in (self.work / "starts").read_text().splitlines():
            number, _, _, step = line.split()
            starts[int(number)].append(int(step))
        gone_on = [steps for trial in trials for steps in [starts[trial["number"]]] if trial["state"] == "SUCCEEDED" and len(steps) > 1]
        self.assertTrue(all(steps == sorted(steps) for steps in starts.values()), starts)
        print(f"starts of those that had all their work: {gone_on}", file=sys.stderr)
        # The best of each rung went on: as many as a third of those that came there, at least.
        for k in (0, 1):
            came = [trial for trial in trials if len(trial["rungs"]) > k]
            best = sorted(came, key=lambda trial: (trial["rungs"][k], trial["number"]))[:len(came) // 3]
            for trial in best:
                self.assertTrue(len(trial["rungs"]) > k + 1 or trial["state"] == "SUCCEEDED", (k, trial))
        self.assertEqual(self.server.get("/alerts?kind=job_failed")["items"], [])

    def test_no_trial_is_lost_or_doubled_when_processes_are_killed(self):
        rng = random.Random(SEED)
        sweep = self.server.post("/sweeps", document(
            "killed", self.work, steps=9, trials=N_TRIALS, parallel=8, pause=0.15, max_failures=N_TRIALS,
            method={"kind": "asha", "min_resource": 1, "max_resource": 9, "eta": 3}))
        wait_until(lambda: self.sweep(sweep["id"])["best"], 30, "a first value")
        killed = collections.Counter()
        for _ in range(KILLS):
            killed[self.kill_something(rng)] += 1
            seen = self.sweep(sweep["id"])
            n = seen["n_made"] + seen["work"]
            if seen["state"] == "RUNNING":
                wait_until(lambda: self.sweep(sweep["id"])["n_made"] + self.sweep(sweep["id"])["work"] > n, 40, "progress after a kill")
        sweep = self.wait(sweep["id"], 120)
        print(f"killed {dict(killed)}; {sweep['n_succeeded']} succeeded, {sweep['n_stopped']} stopped early, work {sweep['work']:g}",
              file=sys.stderr)
        self.assertEqual(sweep["state"], "SUCCEEDED", sweep)
        trials = self.check_trials(sweep, N_TRIALS)
        self.assertEqual((sweep["n_failed"], sweep["n_succeeded"] + sweep["n_stopped"]), (0, N_TRIALS))
        self.check_rungs(trials)
        self.assertEqual(self.server.get("/alerts?kind=job_failed")["items"], [])


if __name__ == "__main__":
    harness.main()

#!/usr/bin/python3
"""Kill -9 at random moments: server, agent, workers, parameter servers, replicas.

Starts a server of its own with two trainings (one sums by all-reduce, one through a parameter server)
and two doors, each with a camera that puts frames into a folder. While trainings run and frames come,
one process of a random kind is killed, again and again. The server, which an operator's service manager
would start again, is started here with the same command line; the rest is Weir's own business.

    bench/kills.py [--kills 100] [--seed S] [-o json]

Recovery is measured
  server            from its start to a decision arriving on it (it stays down for 0.3 to 2 s, in which
                    the doors must go on deciding, and in which sometimes another process is killed too);
  agent             from the kill to its next heartbeat;
  worker, server    from the kill to the job running as a later attempt, or done;
  of parameters
  replica           from the kill to the decision of a frame that was sent after it.

A job waits 1 s before its first restart, 2 s before its second, and so on. So that this measures
recovery and not patience with crash loops, a job is killed at most twice. A replica, which waits 1 s at
most, is killed however often the dice say (tests/system/door_kill_test.py kills nothing else).

At the end every frame must be decided exactly once on the server and in the file of JSON lines, by the
same decision; every training that was asked for must have succeeded as one job with one model version
that is whole; and no version may have been promoted twice. Status 1 if something is not so.
"""
import argparse
import collections
import datetime
import hashlib
import http.client
import json
import os
import pathlib
import random
import signal
import sqlite3
import statistics
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from serving import drawn_face, free_port  # noqa: E402
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests/system"))
import harness  # noqa: E402
from harness import HttpError, Server, wait_until  # noqa: E402

KINDS = ("server", "agent", "worker", "parameter_server", "replica")
DOORS = {"door": "summed", "gate": "served"}  # prediction pipeline: the training that it is linked to
NO_ANSWER = (OSError, ValueError, KeyError, HttpError, http.client.HTTPException)
KILLS_OF_A_JOB = 2


def ion(root, epochs):
    def training(name, n_servers):
        return {"name": name, "type": "training", "dataset": "faces", "model": "face-embed", "workers": 2,
                "parameter_servers": n_servers, "max_restarts": 20,
                "parameters": {"epochs": epochs, "batch_size": 16, "checkpoint_every_s": 2},
                "triggers": {"manual": True}}

    def prediction(name):
        return {"name": name, "type": "prediction", "replicas": 1,
                "source": {"kind": "directory", "path": str(root / "frames" / name)},
                "gallery": {"dataset": "faces", "false_accept_rate": 0.01, "default": "allow"},
                "sinks": [{"kind": "jsonl", "path": str(root / f"{name}.jsonl")}]}

    return {"kind": "ion", "name": "kills", "project": "default",
            "pipelines": [training("summed", 0), training("served", 1), *map(prediction, DOORS)],
            "links": [{"from": training, "to": door, "policy": "always-update"} for door, training in DOORS.items()]}


def start_time(pid):
    """When the process began, in ticks, or None: tells one owner of a pid from the next."""
    try:
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19])
    except (OSError, IndexError):
        return None


def kill_process(pid, begun):
    """SIGKILL to the process with this pid that began at that time; False if it has ended."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        if start_time(pid) != begun:
            return False
        signal.pidfd_send_signal(process, signal.SIGKILL)
        return True
    except ProcessLookupError:
        return False
    finally:
        os.close(process)


def now_text():
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Camera(threading.Thread):
    """Puts a frame into the door's folder at each tick; n_sent counts them before they can be seen."""

    def __init__(self, folder, name, fps, photos):
        super().__init__(daemon=True)
        self.folder, self.camera, self.fps, self.photos = folder / name, name, fps, photos
        self.n_sent, self.stopping = 0, threading.Event()
        self.folder.mkdir(parents=True)

    def run(self):
        due = time.monotonic()
        while not self.stopping.is_set():
            temporary = self.folder / f".{self.n_sent}.tmp"
            temporary.write_bytes(self.photos[self.n_sent % len(self.photos)])
            self.n_sent += 1
            temporary.rename(self.folder / f"{self.n_sent - 1}.pgm")
            due += 1 / self.fps
            time.sleep(max(0, due - time.monotonic()))

    def waiting(self):
        return sum(1 for entry in self.folder.iterdir() if not entry.name.startswith("."))


class Sink:
    """Follows a file of JSON lines."""

    def __init__(self, path):
        self.path, self.offset, self.lines = path, 0, []

    def read(self):
        if self.path.exists():
            with open(self.path, "rb") as file:
                file.seek(self.offset)
                text = file.read()
            whole = text[:text.rfind(b"\n") + 1]
            self.offset += len(whole)
            self.lines += [json.loads(line) for line in whole.splitlines()]
        return self.lines


class Operator(threading.Thread):
    """Asks for one training after the other, alternating; counts what the server acknowledged."""

    def __init__(self, kills):
        super().__init__(daemon=True)
        self.kills, self.stopping = kills, threading.Event()
        self.acknowledged = collections.Counter()

    def run(self):
        turn = 0
        while not self.stopping.wait(0.3):
            try:
                pipelines = self.kills.pipelines()
                if not any(p["state"] == "TRAINING" for p in pipelines.values()):
                    name = list(DOORS.values())[turn % len(DOORS)]
                    turn += 1
                    self.kills.server.post("/ions/kills/trigger", {"pipeline": name})
                    self.acknowledged[name] += 1
            except NO_ANSWER:
                pass  # the server is away


class Kills:
    def __init__(self, n_kills=100, seed=None, fps=10, epochs=120, pause_s=4.0, allowed_s=5.0, say=lambda text: None):
        self.n_kills, self.fps, self.epochs, self.pause_s, self.allowed_s = n_kills, fps, epochs, pause_s, allowed_s
        self.seed = seed if seed is not None else random.SystemRandom().randrange(1 << 32)
        self.random, self.say = random.Random(self.seed), say
        self.server = Server("--listen", f"127.0.0.1:{free_port()}")
        self.strikes, self.killed = [], collections.defaultdict(list)

    # ---- the plant ------------------------------------------------------------------------------

    def pipelines(self):
        return {p["name"]: p for p in self.server.get("/ions/kills")["pipelines"]}

    def serving(self, door):
        links = self.server.get("/ions/kills")["links"]
        return next(link["serving_version"] for link in links if link["to"] == door) or 0

    def prepare(self):
        server = self.server.start()
        server.post("/datasets", {"name": "faces"})
        for person in range(8):
            for photo in range(5):
                server.request("PUT", f"/api/v1/datasets/faces/files/p{person}/{photo}.pgm", drawn_face(person, photo))
        server.post("/datasets/faces/versions")
        self.sinks = {door: Sink(server.root / f"{door}.jsonl") for door in DOORS}
        photos = [drawn_face(person, photo) for person in range(8) for photo in (5, 6)]
        self.cameras = {door: Camera(server.root / "frames" / door, f"{door}-camera", self.fps, photos)
                        for door in DOORS}
        server.post("/ions", ion(server.root, 4))
        for training in DOORS.values():
            server.post("/ions/kills/trigger", {"pipeline": training})
        for door in DOORS:
            wait_until(lambda: self.serving(door), 120, f"a first model for {door}")
        server.post("/ions", ion(server.root, self.epochs))
        for camera in self.cameras.values():
            camera.start()
        for door, sink in self.sinks.items():
            wait_until(sink.read, 60, f"a first decision of {door}")
        self.operator = Operator(self)
        self.operator.start()

    # ---- who can be killed -----------------------------------------------------------------------

    def tasks(self, role):
        """Live tasks, from the agent's folder: it can be read while server and agent are dead."""
        found = []
        for folder in (self.server.state / "agent/tasks").iterdir():
            try:
                task = json.loads((folder / "task.json").read_text())
                run = json.loads((folder / "run.json").read_text())
            except (OSError, ValueError):
                continue
            if task["role"] == role and start_time(run["pid"]) == run["start_time"] \
                    and not (folder / "exit.json").exists():
                found.append({**task, "pid": run["pid"], "start_time": run["start_time"]})
        return found

    def agent_pid(self):
        try:
            record = json.loads((self.server.state / "agent/agent.json").read_text())
        except (OSError, ValueError):
            return None
        return record["pid"] if start_time(record["pid"]) == record["start_time"] else None

    def may_kill(self, task):
        """A job at most twice: see above."""
        return task["role"] == "replica" or len(self.killed[task["job"]]) < KILLS_OF_A_JOB

    def victims(self, kind):
        if kind == "server":
            return [self.server]
        if kind == "agent":
            return [pid for pid in [self.agent_pid()] if pid]
        return [task for task in self.tasks(kind) if self.may_kill(task)]

    # ---- killing, and waiting for it to be well again ---------------------------------------------

    def wait_well(self, kind, begun, is_well):
        """Seconds from `begun` until is_well(); no answer is "not yet"."""
        def asked():
            try:
                return is_well()
            except NO_ANSWER:
                return False
        wait_until(asked, 60, f"recovery from the kill of a {kind}: {self.strikes[-3:]}\n{self.server.log_text()}")
        return time.monotonic() - begun

    def kill_task(self, task):
        """False if it has ended since it was chosen."""
        if not kill_process(task["pid"], task["start_time"]):
            return False
        self.killed[task["id"] if task["role"] == "replica" else task["job"]].append(time.monotonic())
        self.say(f"kill {task['role']} {task['rank']} of job {task['job']}, attempt {task['attempt']}")
        return True

    def strike_task(self, task):
        """Seconds, or None if it has ended since it was chosen."""
        begun = time.monotonic()
        if not self.kill_task(task):
            return None
        if task["role"] == "replica":
            door = next(name for name, p in self.pipelines().items() if p["job"] == task["job"])
            return self.wait_well("replica", begun, self.later_decision(door))
        return self.wait_well(task["role"], begun, lambda: self.runs_again(task))

    def later_decision(self, door):
        first = self.cameras[door].n_sent
        return lambda: any(d["frame"] >= first for d in self.sinks[door].read()[-1000:])

    def runs_again(self, task):
        job = self.server.get("/jobs/" + task["job"])
        return job["state"] == "SUCCEEDED" or job["state"] == "RUNNING" and job["attempt"] > task["attempt"]

    def strike_agent(self, pid):
        begun, begun_text = time.monotonic(), now_text()
        self.say(f"kill agent {pid}")
        os.kill(pid, signal.SIGKILL)
        return self.wait_well("agent", begun,
                              lambda: self.server.get("/nodes")["items"][0]["last_seen_ms"] > begun_text)

    def strike_server(self, server):
        self.say(f"kill server {server.process.pid}")
        server.kill()
        down_s = self.random.uniform(0.3, 2)
        companion = self.random.choice([None, None, "agent", "worker", "parameter_server", "replica"])
        decided = {door: len(sink.read()) for door, sink in self.sinks.items()}
        hit = self.kill_beside(companion)
        ends = time.monotonic() + down_s
        if companion != "replica":
            for door, sink in self.sinks.items():
                if self.tasks("replica"):
                    wait_until(lambda: len(sink.read()) > decided[door] or len(self.tasks("replica")) < len(DOORS),
                               10, f"{door} to decide while the server is down")
        time.sleep(max(0, ends - time.monotonic()))
        begun = time.monotonic()
        server.start()
        base = self.server.get("/decisions/summary?ion=kills")["last_seq"]
        return self.wait_well("server", begun,
                              lambda: self.server.get("/decisions/summary?ion=kills")["last_seq"] > base), hit

    def kill_beside(self, kind):
        """Kill another process while the server is down. The agent is started again by the server's start."""
        victims = self.victims(kind) if kind else []
        if not victims:
            return None
        victim = self.random.choice(victims)
        if kind == "agent":
            self.say(f"kill agent {victim} beside")
            os.kill(victim, signal.SIGKILL)
            wait_until(lambda: self.agent_pid() is None or start_time(victim) is None, 10, "its end")
        elif not self.kill_task(victim):
            return None
        return kind

    def draw(self):
        counts = collections.Counter(s["kind"] for s in self.strikes)
        least = min(counts[kind] for kind in KINDS)
        able = [(kind, victims) for kind in KINDS if counts[kind] <= least + 1
                for victims in [self.victims(kind)] if victims]
        if not able:
            return None
        kind, victims = self.random.choice(able)
        return kind, self.random.choice(victims)

    def strike(self):
        """Kill one process: of the kinds that have had the fewest kills, one that has a live process."""
        kind, victim = wait_until(self.draw, 300, "a process that may be killed")
        at = round(time.monotonic() - self.begun, 1)
        strike = {"kind": kind, "at_s": at, "beside": None}
        self.strikes.append(strike)
        if kind == "server":
            strike["recovery_s"], strike["beside"] = self.strike_server(victim)
            if strike["beside"]:
                self.strikes.append({"kind": strike["beside"], "at_s": at, "recovery_s": None, "beside": "server"})
        elif kind == "agent":
            strike["recovery_s"] = self.strike_agent(victim)
        else:
            strike["recovery_s"] = self.strike_task(victim)
            if strike["recovery_s"] is None:
                self.strikes.remove(strike)
                return
        self.say(f"{len(self.strikes):3}/{self.n_kills} {at:6.1f} s {kind}: {strike['recovery_s']:.2f} s"
                 + (f" (with {strike['beside']})" if strike["beside"] else ""))
        if strike["recovery_s"] > min(self.allowed_s, 5):
            log = (self.server.state / "agent/agent.log").read_text(errors="replace").splitlines()
            self.say("that was slow; the agent's log ends:\n  " + "\n  ".join(log[-12:]))

    # ---- the reckoning ---------------------------------------------------------------------------

    def catch_up(self):
        self.operator.stopping.set()
        self.operator.join()
        wait_until(self.trainings_over, 240, "all trainings over")
        for camera in self.cameras.values():
            camera.stopping.set()
        for camera in self.cameras.values():
            camera.join()
        sent = sum(camera.n_sent for camera in self.cameras.values())
        wait_until(lambda: all(len(self.sinks[d].read()) >= self.cameras[d].n_sent for d in DOORS), 60,
                   "every frame in the files of JSON lines")
        wait_until(lambda: self.server.get("/decisions/summary?ion=kills")["decisions"] >= sent, 60,
                   "every decision on the server")
        wait_until(lambda: not any(camera.waiting() for camera in self.cameras.values()), 60, "empty folders")

    def trainings_over(self):
        is_idle = all(self.pipelines()[name]["state"] != "TRAINING" for name in DOORS.values())
        return is_idle and all(job["finished_ms"] for job in self.jobs())

    def jobs(self):
        return self.all("/jobs?limit=1000&kind=train")

    def all(self, path):
        items, cursor = [], ""
        while True:
            page = self.server.get(path + cursor)
            items += page["items"]
            if not page["next"]:
                return items
            cursor = ("&" if "?" in path else "?") + "cursor=" + page["next"]

    def decisions(self):
        found, after = [], 0
        while True:
            items = self.server.get(f"/decisions?ion=kills&after={after}&limit=1000")["items"]
            if not items:
                return found
            found, after = found + items, items[-1]["seq"]

    def check_decisions(self, report, wrong):
        decisions = self.decisions()
        report["frames"] = sum(camera.n_sent for camera in self.cameras.values())
        report["decisions"] = len(decisions)
        on_server = collections.defaultdict(list)
        for decision in decisions:
            on_server[decision["camera"], decision["frame"]].append(decision)
        in_file = collections.defaultdict(list)
        for sink in self.sinks.values():
            for line in sink.read():
                in_file[line["camera"], line["frame"]].append(line)
        sent = {(c.camera, frame) for c in self.cameras.values() for frame in range(c.n_sent)}
        for where, found in (("the server", on_server), ("the files", in_file)):
            report["lost"] = report.get("lost", 0) + len(sent - set(found))
            report["doubled"] = report.get("doubled", 0) + sum(len(d) - 1 for d in found.values())
            for name, frames in (("lost", sorted(sent - set(found))), ("unknown", sorted(set(found) - sent)),
                                 ("doubled", sorted(f for f, d in found.items() if len(d) > 1))):
                if frames:
                    wrong.append(f"{len(frames)} frames {name} on {where}: {frames[:5]}")
        differ = [frame for frame in set(on_server) & set(in_file)
                  if (on_server[frame][0]["id"], on_server[frame][0]["verdict"])
                  != (in_file[frame][0]["id"], in_file[frame][0]["verdict"])]
        if differ:
            wrong.append(f"{len(differ)} frames decided otherwise on the server than in the files: {differ[:5]}")
        errors = [decision for decision in decisions if decision["verdict"] == "error"]
        if errors:
            wrong.append(f"{len(errors)} errors: {errors[0]['error']}")
        report["model_went_back"] = sum(
            a["model_version"] > b["model_version"] for c in self.cameras.values()
            for frames in [sorted((d for d in decisions if d["camera"] == c.camera), key=lambda d: d["id"])]
            for a, b in zip(frames, frames[1:]))

    def check_trainings(self, report, wrong):
        jobs = self.jobs()
        report["trainings"] = len(jobs)
        bad = [f"job {j['name']} is {j['state']}: {j['reason']}" for j in jobs if j["state"] != "SUCCEEDED"]
        wrong += bad
        for training in DOORS.values():
            numbers = sorted(job["training"] for job in jobs if job["pipeline"] == training)
            asked = self.operator.acknowledged[training] + 1
            if numbers != list(range(1, len(numbers) + 1)) or len(numbers) < asked:
                wrong.append(f"{training}: {asked} trainings were acknowledged, the jobs are of {numbers}")
            versions = self.all(f"/models/kills.{training}/versions")
            report["versions"] = report.get("versions", 0) + len(versions)
            runs = [version["run"] for version in versions]
            jobs_runs = [job["run"] for job in jobs if job["pipeline"] == training]
            if sorted(runs) != sorted(jobs_runs):
                wrong.append(f"{training}: the runs of its models are not those of its jobs")
            for version in versions:
                blob = self.server.request("GET", f"/api/v1/blobs/{version['blob']}", raw=True)
                if hashlib.sha256(blob).hexdigest() != version["blob"]:
                    wrong.append(f"{training} version {version['version']}: its blob is damaged")
        promoted = collections.Counter((d["link"], d["version"]) for d in self.all("/ions/kills/policy-decisions")
                                       if d["verdict"] == "promote")
        report["promotions"] = sum(promoted.values())
        wrong += [f"{link} version {version} was promoted {n} times"
                  for (link, version), n in promoted.items() if n > 1]
        if len(promoted) != report["versions"]:
            wrong.append(f"{report['versions']} versions, but {len(promoted)} were promoted")

    def check_database(self, wrong):
        with sqlite3.connect(f"file:{self.server.state / 'weir.db'}?mode=ro", uri=True) as database:
            answer = database.execute("PRAGMA integrity_check").fetchall()
            broken = database.execute("PRAGMA foreign_key_check").fetchall()
        if answer != [("ok",)] or broken:
            wrong.append(f"database: {answer[:3]} {broken[:3]}")

    def is_enough(self, least):
        return len(self.strikes) >= least and len({s["kind"] for s in self.strikes}) >= len(KINDS) - 1

    def run(self, limit_s=float("inf"), least=0):
        """All of it. Returns the report; report["wrong"] lists what is not as it must be. After limit_s it
        ends with fewer kills, but not before `least` of them, of all kinds but one."""
        try:
            self.prepare()
            self.begun = time.monotonic()
            while len(self.strikes) < self.n_kills and not (
                    time.monotonic() - self.begun > limit_s and self.is_enough(least)):
                time.sleep(self.random.uniform(0, self.pause_s))
                self.strike()
            report, wrong = {"seed": self.seed, "seconds": round(time.monotonic() - self.begun)}, []
            self.catch_up()
            report["kinds"] = {kind: self.summary(kind) for kind in KINDS}
            report["kills"] = len(self.strikes)
            self.check_decisions(report, wrong)
            self.check_trainings(report, wrong)
            self.check_database(wrong)
            for kind, row in report["kinds"].items():
                if row["max_s"] is not None and row["max_s"] > self.allowed_s:
                    wrong.append(f"{kind}: recovery took {row['max_s']:.1f} s, more than {self.allowed_s:g} s")
            report["wrong"], report["strikes"] = wrong, self.strikes
            return report
        finally:
            self.server.stop()

    def summary(self, kind):
        times = [s["recovery_s"] for s in self.strikes if s["kind"] == kind and s["recovery_s"] is not None]
        return {"kills": sum(s["kind"] == kind for s in self.strikes), "measured": len(times),
                "median_s": statistics.median(times) if times else None, "max_s": max(times, default=None)}


def show(report):
    print(f"{'killed':18} {'kills':>5} {'recovery median':>16} {'max':>8}")
    for kind, row in report["kinds"].items():
        times = f"{row['median_s']:14.2f} s {row['max_s']:6.2f} s" if row["measured"] else f"{'-':>16} {'-':>8}"
        print(f"{kind.replace('_', ' '):18} {row['kills']:5} {times}")
    print(f"{report['kills']} kills in {report['seconds']} s (seed {report['seed']}): {report['frames']} frames, "
          f"{report['lost']} lost, {report['doubled']} doubled; {report['trainings']} trainings, "
          f"{report['versions']} model versions, {report['promotions']} promotions")
    for text in report["wrong"]:
        print("WRONG:", text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int)
    parser.add_argument("-o", dest="output", choices=["text", "json"], default="text")
    options = parser.parse_args()
    kills = Kills(options.kills, options.seed, say=lambda text: print(text, file=sys.stderr, flush=True))
    print(f"seed {kills.seed}", file=sys.stderr)
    report = kills.run()
    if options.output == "json":
        print(json.dumps(report, indent=2))
    else:
        show(report)
    return 1 if report["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())

"""Random acts of random roles, through both APIs and through tasks' tokens, against a model of who may what.

The model knows the matrix of rights (read anew from rights.def), who has which role where, whose a thing is, and three sentences:
who lacks a right is refused; what is of a project in which one has not got it is not there; a task may what its own role and who
it works for both may now, in the project of its job, and with runs only its own job's. MLflow's API has the same verdict as REST.
"""
import hashlib
import json
import pathlib
import random
import re
import urllib.parse
import uuid

from harness import HttpError, small_model, wait_until

RIGHTS = pathlib.Path(__file__).parents[2] / "src/store/rights.def"
LETTERS = {"viewer": "v", "approver": "a", "operator": "o", "data-scientist": "d", "ml-engineer": "m"}
PROJECTS = ("pine", "oak")
MLFLOW = "/api/2.0/mlflow/"


def read_matrix():
    """{right: (is of projects, letters)}"""
    rows = re.findall(r'^X\(\w+, "([^"]+)", "([^"]+)", (\w+), "(\w*)"\)', RIGHTS.read_text(), re.M)
    return {f"{verb} {noun}": (scope == "PROJECT", who) for noun, verb, scope, who in rows}


class Act:
    """One thing that can be done, in REST's words and in MLflow's.

    needs    the right
    rest     f(world, thing) -> (method, path, body); None: only MLflow's API has it
    mlflow   the same; None: only REST has it
    own      "run": a task does it with its own job's runs alone; "look": with those always, with others' as its sender may
    creates  it makes something in a project: who may not there is refused, by 403 or by 404
    finds    False: what it names is not there, for whoever may, too
    closed   no task does it, whoever it works for
    beyond   by a task it is an act, for the audit
    """

    def __init__(self, name, needs, rest=None, mlflow=None, own=None, creates=False, finds=True, closed=False, beyond=False):
        self.name, self.needs, self.rest, self.mlflow, self.own = name, needs, rest, mlflow, own
        self.creates, self.finds, self.closed, self.beyond = creates, finds, closed, beyond


def post(path, **body):
    return ("POST", MLFLOW + path, body)


def get(path, **query):
    return ("GET", MLFLOW + path + "?" + urllib.parse.urlencode(query), None)


def fresh():
    return "n" + uuid.uuid4().hex[:12]


ACTS = [
    Act("look at a run", "look runs", lambda w, t: ("GET", f"/api/v1/runs/{t['run']}", None), lambda w, t: get("runs/get", run_id=t["run"]), own="look"),
    Act("read metrics", "look runs", lambda w, t: ("GET", f"/api/v1/runs/{t['run']}/metrics", None),
        lambda w, t: get("metrics/get-history", run_id=t["run"], metric_key="loss"), own="look"),
    Act("list files", "look runs", lambda w, t: ("GET", f"/api/v1/runs/{t['run']}/artifacts", None),
        lambda w, t: get("artifacts/list", run_id=t["run"]), own="look"),
    Act("tag a run", "change runs", lambda w, t: ("PATCH", f"/api/v1/runs/{t['run']}", {"tags": {"k": "v"}}),
        lambda w, t: post("runs/set-tag", run_id=t["run"], key="k", value="v"), own="run"),
    Act("log a metric", "change runs", lambda w, t: ("POST", f"/api/v1/runs/{t['run']}/metrics", {"metrics": [{"key": "loss", "step": 1, "value": 1}]}),
        lambda w, t: post("runs/log-metric", run_id=t["run"], key="loss", value=1, timestamp=1, step=1), own="run"),
    Act("put a file", "change runs", lambda w, t: ("PUT", f"/api/v1/runs/{t['run']}/artifacts/a.txt", b"a"),
        lambda w, t: ("PUT", f"/api/2.0/mlflow-artifacts/artifacts/{t['experiment']}/{t['run']}/artifacts/a.txt", b"a"), own="run"),
    Act("restore a run", "change runs", lambda w, t: ("PATCH", f"/api/v1/runs/{t['run']}", {"lifecycle": "active"}),
        lambda w, t: post("runs/restore", run_id=t["run"]), own="run"),
    Act("look at an experiment", "read runs", lambda w, t: ("GET", f"/api/v1/experiments/{t['experiment']}", None),
        lambda w, t: get("experiments/get", experiment_id=t["experiment"])),
    Act("make an experiment", "change experiments", lambda w, t: ("POST", "/api/v1/experiments", {"name": fresh(), "project": t["project"]}),
        lambda w, t: ("POST", f"/p/{t['project']}{MLFLOW}experiments/create", {"name": fresh()}), creates=True, beyond=True),
    Act("tag an experiment", "change experiments", lambda w, t: ("PATCH", f"/api/v1/experiments/{t['experiment']}", {"tags": {"k": "v"}}),
        lambda w, t: post("experiments/set-experiment-tag", experiment_id=t["experiment"], key="k", value="v"), beyond=True),
    Act("rename an experiment", "change experiments", lambda w, t: ("PATCH", f"/api/v1/experiments/{t['spare']}", {"name": fresh()}),
        lambda w, t: post("experiments/update", experiment_id=t["spare"], new_name=fresh()), closed=True),
    Act("look at a model", "look models", lambda w, t: ("GET", f"/api/v1/models/{t['model']}", None),
        lambda w, t: get("registered-models/get", name=t["model"])),
    Act("look at a version", "look models", lambda w, t: ("GET", f"/api/v1/models/{t['model']}/versions/1", None),
        lambda w, t: get("model-versions/get", name=t["model"], version="1")),
    Act("list versions", "read models", lambda w, t: ("GET", f"/api/v1/models/{t['model']}/versions", None)),
    Act("describe a model", "label models", lambda w, t: ("PATCH", f"/api/v1/models/{t['model']}", {"description": "d"}),
        lambda w, t: ("PATCH", MLFLOW + "registered-models/update", {"name": t["model"], "description": "d"}), beyond=True),
    Act("tag a model", "label models", lambda w, t: ("PATCH", f"/api/v1/models/{t['model']}", {"tags": {"k": "v"}}),
        lambda w, t: post("registered-models/set-tag", name=t["model"], key="k", value="v"), beyond=True),
    Act("describe a version", "label models", lambda w, t: ("PATCH", f"/api/v1/models/{t['model']}/versions/1", {"description": "d"}),
        lambda w, t: ("PATCH", MLFLOW + "model-versions/update", {"name": t["model"], "version": "1", "description": "d"}), beyond=True),
    Act("tag a version", "label models", lambda w, t: ("PATCH", f"/api/v1/models/{t['model']}/versions/1", {"tags": {"k": "v"}}),
        lambda w, t: post("model-versions/set-tag", name=t["model"], version="1", key="k", value="v"), beyond=True),
    Act("set a stage", "label models", lambda w, t: ("PATCH", f"/api/v1/models/{t['model']}/versions/1", {"stage": "Staging"}),
        lambda w, t: post("model-versions/transition-stage", name=t["model"], version="1", stage="Staging"), beyond=True),
    Act("move an alias", "label models", lambda w, t: ("PUT", f"/api/v1/models/{t['model']}/aliases/champion", {"version": w.rng.choice((1, 2))}),
        lambda w, t: post("registered-models/alias", name=t["model"], alias="champion", version=w.rng.choice("12")), beyond=True),
    Act("rename a model", "name models", None, lambda w, t: post("registered-models/rename", name=t["model"], new_name=t["model"]), closed=True),
    Act("make a model", "register models", None, lambda w, t: ("POST", f"/p/{t['project']}{MLFLOW}registered-models/create", {"name": fresh()}),
        creates=True, beyond=True),
    Act("make a version", "register models",
        lambda w, t: ("POST", f"/api/v1/models/{t['model']}/versions", {"id": str(uuid.uuid4()), "blob": t["blob"], "bytes": t["bytes"]}),
        lambda w, t: post("model-versions/create", name=t["model"], source=f"models:/{t['model']}/1"), creates=True, beyond=True),
    Act("delete a version", "delete models", lambda w, t: ("DELETE", f"/api/v1/models/{t['model']}/versions/999", None),
        lambda w, t: ("DELETE", MLFLOW + "model-versions/delete", {"name": t["model"], "version": "999"}), finds=False, closed=True),
    Act("fetch a blob", "read blobs", lambda w, t: ("GET", f"/api/v1/blobs/{t['blob']}", None)),
    Act("fetch a photo", "read blobs", lambda w, t: ("GET", f"/api/v1/blobs/{t['photo']}", None)),
    Act("look at a dataset", "read datasets", lambda w, t: ("GET", f"/api/v1/datasets/{t['dataset']}", None), closed=True),
    Act("look at a job", "read jobs", lambda w, t: ("GET", f"/api/v1/jobs/{t['job']}", None), closed=True),
    Act("list secrets", "change secrets", lambda w, t: ("GET", f"/api/v1/projects/{t['project']}/secrets", None), closed=True),
    Act("see members", "read projects", lambda w, t: ("GET", f"/api/v1/projects/{t['project']}/members", None), closed=True),
    Act("train on a path", "submit jobs", lambda w, t: ("POST", "/api/v1/jobs", {
        "name": "x", "kind": "train", "project": w.rng.choice(PROJECTS),
        "spec": {"model": "lenet", w.rng.choice(("data", "validation", "weights", "tuning")): w.spell(t["path"])}}), creates=True, closed=True),
]
NEVER = {"train on a path"}  # whoever may submit is answered 400


class Person:
    def __init__(self, name, roles, limit, only, token):
        self.name, self.roles, self.limit, self.only, self.token = name, roles, limit, only, token
        self.is_disabled = False


class Task:
    def __init__(self, person, project, token, id, job, run):
        self.person, self.project, self.token, self.id, self.job, self.run = person, project, token, id, job, run
        self.n_beyond = 0


class World:
    """Two projects, people with random roles in both, and a task of some of them in each."""

    def __init__(self, server, seed, n_people=6, n_roles=4, n_tasks=4):
        self.server, self.rng, self.seed = server, random.Random(seed), seed
        self.matrix = read_matrix()
        self.of_projects = [right for right, (is_of_project, _) in self.matrix.items() if is_of_project]
        self.custom = {}
        self.things = {}
        for i in range(n_roles):
            self.define(f"acts-{i}", is_new=True)
        for project in PROJECTS:
            server.post("/projects", {"name": project})
            self.things[project] = self.fill(project)
        self.people = [self.make_person(f"acts-person-{i}") for i in range(n_people)]
        self.tasks = [self.make_task(self.people[i % n_people], PROJECTS[i % 2]) for i in range(n_tasks)]
        for person in self.people:
            self.move(person)
        self.n = {"ok": 0, "refused": 0, "by tasks": 0, "both": 0}

    # ---- what there is

    def fill(self, project):
        server, post_ = self.server, self.server.post
        post_("/datasets", {"name": f"{project}-faces", "project": project})
        photo = b"P5\n2 2\n255\n" + project.encode()[:3].ljust(4, b"!")
        server.request("PUT", f"/api/v1/datasets/{project}-faces/files/ann/1.pgm", photo)
        post_(f"/datasets/{project}-faces/versions")
        run = post_("/runs", {"name": f"{project}-run", "project": project, "experiment": f"{project}-acts"})  # not that of jobs
        model = small_model(f"{project}acts")
        blob = hashlib.sha256(model).hexdigest()
        server.request("PUT", f"/api/v1/blobs/{blob}?project={project}", model)
        for _ in range(2):
            post_(f"/models/{project}-acts/versions", {"id": str(uuid.uuid4()), "blob": blob, "bytes": len(model), "project": project})
        spare = post_("/experiments", {"name": f"{project}-spare", "project": project})["id"]
        job = post_("/jobs", {"name": f"{project}-acts", "kind": "command", "project": project, "spec": {"argv": ["true"]}})["id"]
        return {"project": project, "run": run["id"], "experiment": str(run["experiment"]), "spare": str(spare), "model": f"{project}-acts",
                "blob": blob, "bytes": len(model), "photo": hashlib.sha256(photo).hexdigest(), "dataset": f"{project}-faces", "job": job,
                "path": f"{server.state}/datasets/{project}-faces"}

    def spell(self, path):
        """A path below the state folder, written in one of the ways there are."""
        state, rest = str(self.server.state), path[len(str(self.server.state)):]
        return self.rng.choice((path, path + "/", "/" + path, state + "/." + rest, state + "/" + rest, state + "/datasets/../" + rest,
                                path + "/ann/1.pgm", "file://" + path, state + "/blobs", state, state + "/demo", "../../../.." + rest))

    def define(self, name, is_new=False):
        share = self.rng.choice((0.15, 0.4, 0.8))
        rights = {right for right in self.of_projects if self.rng.random() < share} | {"read projects"}
        body = {"rights": sorted(rights), **({"name": name} if is_new else {})}
        self.server.request("POST" if is_new else "PUT", "/api/v1/roles" + ("" if is_new else "/" + name), body)
        closed = set(rights)
        for right in rights:  # who reads looks; who names labels
            if right.startswith("read ") and right.replace("read ", "look ") in self.matrix:
                closed.add(right.replace("read ", "look "))
        if "name models" in rights:
            closed.add("label models")
        self.custom[name] = closed

    def any_role(self):
        return self.rng.choice([*LETTERS, "admin", *self.custom, *self.custom])

    def make_person(self, name):
        self.server.post("/users", {"name": name, "kind": "person", "role": "member"})
        limit = self.rng.choice(("admin", "admin", self.any_role()))
        only = self.rng.choice((None, None, None, *PROJECTS))
        body = {"name": "t", "user": name, "role": limit, **({"project": only} if only else {})}
        token = self.server.post("/tokens", body)["secret"]
        return Person(name, dict.fromkeys(PROJECTS), limit, only, token)

    def give(self, person, project, role):
        if role is not None:
            self.server.request("PUT", f"/api/v1/projects/{project}/members/user/{person.name}", {"role": role})
        elif person.roles[project] is not None:
            self.server.request("DELETE", f"/api/v1/projects/{project}/members/user/{person.name}")
        person.roles[project] = role

    def make_task(self, person, project):
        """Submitted while its person may, with a token that is limited as the person's own is."""
        self.give(person, project, "admin")
        limit = self.rng.choice(("admin", "ml-engineer", "data-scientist"))
        token = self.server.post("/tokens", {"name": "submits", "user": person.name, "role": limit})["secret"]
        place = self.server.root / "acts"
        place.mkdir(exist_ok=True)
        place.chmod(0o777)
        gone = place / fresh()  # where the job leaves its token
        argv = ["sh", "-c", f"cp token {gone}.new && chmod 644 {gone}.new && mv {gone}.new {gone} && exec sleep 1000"]
        job = self.server.request("POST", "/api/v1/jobs", {"name": "acts", "kind": "command", "project": project,
                                                           "spec": {"argv": argv, "stop_grace_ms": 100}}, token=token)
        wait_until(gone.exists, 60, "the token of a job of " + person.name)
        task = self.server.get(f"/jobs/{job['id']}/tasks")["items"][0]["id"]
        behind = Person(person.name, person.roles, limit, None, None)
        behind.of = person
        return Task(behind, project, gone.read_text().strip(), task, job["id"], self.server.get(f"/jobs/{job['id']}")["run"])

    def move(self, person):
        """Another role somewhere, or none."""
        for project in PROJECTS:
            self.give(person, project, self.rng.choice((None, self.any_role(), self.any_role())))

    def change(self):
        """Something changes for somebody: from the next request on."""
        person = self.rng.choice(self.people)
        what = self.rng.random()
        if what < 0.3:
            self.define(self.rng.choice(list(self.custom)))
        elif what < 0.8:
            self.move(person)
        else:
            person.is_disabled = not person.is_disabled
            self.server.request("PATCH", f"/api/v1/users/{person.name}", {"is_disabled": person.is_disabled})

    # ---- who may what

    def role_has(self, role, right):
        if role is None or role in self.custom:
            return role is not None and right in self.custom[role]
        return role == "admin" or LETTERS[role] in self.matrix[right][1]

    def person_has(self, person, project, right):
        return (self.role_has(person.roles[project], right) and self.role_has(person.limit, right) and
                person.only in (None, project))

    def verdict_of_person(self, person, act, project):
        if person.is_disabled:
            return {401}
        may = [one for one in PROJECTS if self.person_has(person, one, act.needs)]
        if not may:
            return {403}
        if project not in may:
            return {403, 404, 409} if act.creates else {404}
        return {200} if act.finds else {404}

    def sender_has(self, task, right):
        return not task.person.of.is_disabled and self.person_has(task.person, task.project, right)

    def verdict_of_task(self, task, act, project, is_mlflow, is_own):
        """AND of what its role and what its sender may."""
        refused = {403, 404}
        if is_own and act.own:
            return {200}
        if act.closed or "w" not in self.matrix[act.needs][1]:
            return refused
        if not is_mlflow and act.name not in ("fetch a blob", "fetch a photo"):
            return refused  # REST is for what is the task's own
        if act.own == "run":
            return refused
        if not self.sender_has(task, act.needs):
            return {403}
        if project != task.project:
            return refused if act.creates else {404}
        return {200} if act.finds else {404}

    # ---- one act

    def ask(self, request, token):
        method, path, body = request
        try:
            self.server.request(method, path, body, token=token, raw=True)
            return 200, ""
        except HttpError as error:
            return error.code, error.body

    def say(self, who, act, project, api, got, wanted):
        return f"seed {self.seed}: {who} {act.name} of {project} by {api}: {got[0]} {got[1][:300]}, not {sorted(wanted)}"

    def expected(self, act, wanted):
        """A spelling of a path is refused by its own sentence, once the right is there."""
        return wanted if act.name not in NEVER or wanted in ({401}, {403}) else {400, 403, 404}

    def act_of_person(self, act, project):
        person = self.rng.choice(self.people)
        wanted = self.verdict_of_person(person, act, project)
        who = f"{person.name} {person.roles} limited to {person.limit} in {person.only}"
        for api, request in (("REST", act.rest), ("MLflow", act.mlflow)):
            if request is not None:
                got = self.ask(request(self, self.things[project]), person.token)
                expected = self.expected(act, wanted)
                assert got[0] in expected, self.say(who, act, project, api, got, expected)
                self.n["ok" if got[0] == 200 else "refused"] += 1
        self.n["both"] += act.rest is not None and act.mlflow is not None

    def act_of_task(self, act, project):
        task = self.rng.choice(self.tasks)
        is_own = act.own is not None and self.rng.random() < 0.3
        thing = self.things[task.project] | {"run": task.run} if is_own else self.things[project]
        project = task.project if is_own else project
        who = f"a task of {task.person.name} {task.person.roles} limited to {task.person.limit} in {task.project}"
        for api, request in (("REST", act.rest), ("MLflow", act.mlflow)):
            if request is None or (is_own and api == "MLflow" and act.name == "put a file"):
                continue  # its address names the run's experiment, which the job has chosen
            wanted = self.verdict_of_task(task, act, project, api == "MLflow", is_own)
            got = self.ask(request(self, thing), task.token)
            assert got[0] in wanted, self.say(who, act, project, api, got, wanted)
            task.n_beyond += got[0] == 200 and act.beyond
            self.n["by tasks"] += 1
            self.n["ok" if got[0] == 200 else "refused"] += 1

    def run(self, n_acts):
        for i in range(n_acts):
            if i % 7 == 0:
                self.change()
            act, project = self.rng.choice(ACTS), self.rng.choice(PROJECTS)
            if self.rng.random() < 0.45:
                self.act_of_task(act, project)
            else:
                self.act_of_person(act, project)

    def check_audit(self):
        """Each change that a task made beyond its own runs, once, with the task, its job and who it works for."""
        for task in self.tasks:
            rows, cursor = [], ""
            while cursor is not None:
                page = self.server.get(f"/audit?actor=task/{task.id}&limit=1000" + (f"&cursor={cursor}" if cursor else ""))
                rows, cursor = rows + page["items"], page.get("next")
            rows = [row for row in rows if not row["kind"].endswith("_refused")]
            assert len(rows) == task.n_beyond, f"seed {self.seed}: {len(rows)} rows of {task.n_beyond} acts: {rows[:2]}"
            for row in rows:
                data = json.loads(row["data"]) if isinstance(row["data"], str) else row["data"]
                assert (data["task"], data["job"], data["created_by"]) == (task.id, task.job, task.person.name), row

#!/usr/bin/env python3
"""Is what is asked of a server with a long past answered without reading all of it?

Two laws. Every statement in the program, as the database plans it, walks through no table that grows with time unless
WALKS says why it may. And a server on a database with a past answers every GET route, plans its first cycle and starts a
job, without one statement that takes many steps. WEIR_HISTORY is the number of jobs in the past (20,000).
"""
import itertools
import json
import os
import pathlib
import random
import re
import sqlite3
import subprocess
import sys
import time
import unittest
import urllib.parse

from harness import WEIR, HttpError, Server, wait_until

N = int(os.environ.get("WEIR_HISTORY", "20000"))

# Tables whose rows people make, or that are few of each thing that people make, or that end with what runs.
SMALL = set("""
    counters settings schema_migrations audit_chains track_keys retention_bounds custom_roles
    projects project_members project_retention users groups group_members tokens sessions login_links node_joins
    queues nodes devices secrets alert_rules alert_receivers alert_silences forgotten_people dataset_tombstones
    ions ion_pipelines ion_members ion_triggers ion_arms deployments deployment_versions deployment_replicas
    datasets snapshots models services usage_totals past_use job_totals decision_totals unknown_days task_devices former_attempts
""".split())

# Why a statement may walk through a table that grows: a part of its text, and the reason.
ALL_BLOBS = "the sweep of blobs asks for all that are named, once an hour"
FORGETTING = "who forgets a person asks every row that may name it, once"
USAGE = "who asks what is stored counts it; retention itself asks at most once a minute"
WALKS = [
    (r"^SELECT (DISTINCT )?(blob|sha256|golden|parameters|summary|spec|definition|models) FROM \w+( WHERE \w+ (IS NOT NULL|= 0|< :before))*$", ALL_BLOBS),
    (r"^SELECT blob FROM \(SELECT blob, max", "lists of files, the newest first, until the one that names a blob is found"),
    (r"^SELECT blob, 'version ' \|\| version", "weir store verify and backups ask for all blobs that are named, on a connection of their own"),
    (r"FROM ion_revisions WHERE instr\(document", "documents that people applied; lineage of a gallery"),
    (r"(FROM|UPDATE) (feedback|outcomes) .*= :person", FORGETTING),
    (r"SELECT decision FROM feedback WHERE truth = :person", FORGETTING),
    (r"^SELECT count\(\*\) FROM \w+$", USAGE),
    (r"^UPDATE \w+ SET .*:by\b|FROM ion_candidates WHERE evaluation LIKE '%\"asked_ms\"%'$", "once, when somebody sets the wall clock"),
    (r"^SELECT count\(\*\) FROM runs r$", "a search without a filter says how many there are"),
    (r"^SELECT EXISTS \(SELECT 1 FROM run_logged_models\)$", "ends at the first"),
    (r"FROM ion_replicas( WHERE .*| ORDER BY 1, 2, 3)$", "one row of each replica that reported lately"),
    (r"FROM ion_candidates GROUP BY ion, link, state$", "a row of each version, by an index that holds all of it"),
    (r"FROM model_versions WHERE deleted_ms = 0 GROUP BY model$", "a row of each version"),
    (r"^DELETE FROM pools WHERE cluster", "a row of each pool: 256 of each of 64 clusters at most"),
    (r"FROM allocations WHERE state <> 'ended' GROUP BY", "those that have not ended, which are bounded, by an index of them alone"),
]
# The same of statements that a server with a past was seen to run: what takes many steps, and why it may; never more than 100
# for each job of the past, or than is said.
# Two filters of which neither is the ION, or the audit's topic.
TWO = (r'FROM "(decisions" WHERE "ion" = :f0 AND "\w+" = :f1 AND "\w+" =|events" WHERE (\+"topic"|"\w+" = :f0 AND "\w+" =)'
       r'|jobs" WHERE "\w+" = :f0 AND "\w+" =)')
COSTLY = [
    (r"FROM jobs j WHERE j\.state = 'SUCCEEDED' ORDER BY", "the newest 4,096, however many there are", 250_000),
    (r"^SELECT count\(\*\) FROM (events|decisions|feedback|statistics|attempts|metrics|health_reports|kpis|\(SELECT id FROM)", USAGE),
    (r"SELECT count\(\*\) FROM \(SELECT 1 FROM decisions WHERE", "as many as a summary may look at: 100,000"),
    (r"^SELECT CASE verdict WHEN 'grant'", "the same"),
    (r"FROM usage WHERE time_ms >= :from", "the sum of a span that was asked for"),
    (r"^SELECT count\(\*\) FROM runs r?", "who asks how many runs there are, or there are in an experiment"),
    (r"^SELECT count\(\*\) FROM \w+ WHERE (state|span_ms|time_ms)", USAGE),
    (WALKS[0][0], ALL_BLOBS),
    (r"^SELECT finished_ms FROM runs WHERE finished_ms > 0 AND EXISTS", USAGE),
    (r'FROM "(statistics|kpis|feedback|outcomes|alerts|alert_deliveries)" WHERE (.*= :f\d.*= :f\d|"(?!ion|deployment))',
     "retention keeps few: some tens of megabytes"),
    (r'FROM "events" WHERE .*"topic" = :f\d AND "time_ms" >=', "a span of the audit; retention keeps few of it"),
    (r'FROM "decisions" WHERE "ion" = :f0 AND "pipeline" = :f1 AND', "an ION has few pipelines that decide"),
    (r'FROM "decisions" WHERE "(camera|pipeline|verdict|time_ms)"', "those of all IONs"),
    (r'FROM "decisions" WHERE .*"seq" > ', "who follows, and has no cursor yet"),
    (TWO, "the rows that the first lets through are looked at for the second"),
    (r"FROM runs r WHERE .*\br\.\w+ = \?.*\br\.\w+ = \?", "runs by two things"),
    (r"^SELECT (r\.number|o0\.value), .* FROM runs r .*(latest_metrics|run_parameters|r\.name)", "a search, which looks at all runs"),
    (r"FROM track_keys k JOIN metrics m", "all points of a run were asked for"),
]
# Indexes of rows that are few, whatever has been: what is open, waits or is to be looked at.
FEW = set("""alerts_open jobs_open outbox_pending alerts_by_key alerts_open_by_subject alerts_not_looked alert_deliveries_pending
             model_versions_by_golden ion_candidates_in_use usage_meters_by_node""".split())
# Of rows that may go: retention's count of them, asked for with the usage, and its oldest.
OVER = set("jobs_over runs_finished alerts_resolved outbox_over alert_deliveries_done decisions_in_packs".split())


def statements():
    """Every constant of the program that is a statement."""
    data = pathlib.Path(WEIR).read_bytes()
    found = {match.group().decode() for match in re.finditer(rb"(?:SELECT|WITH|UPDATE|DELETE|INSERT)\b[\t\n\x20-\x7e]{8,}(?=\0)", data)}
    return sorted(text for text in found if ("\0" + text).encode() in data)


def plan_of(database, text):
    values = {name: 0 for name in re.findall(r":(\w+)", text)} if ":" in text else (0,) * text.count("?")
    return [row[3] for row in database.execute("EXPLAIN QUERY PLAN " + text, values)]


def walks_of(database, text, plan):
    """Lines of the plan that walk through a table that grows, but by an index of few rows."""
    names = {}
    for table, alias in re.findall(r"\b(?:FROM|JOIN|UPDATE|INTO|,)\s+(\w+)(?:\s+(?:AS\s+)?(?!FROM\b)(\w+))?", text):
        names[table] = names[alias or table] = table
    grows = {row[0] for row in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")} - SMALL
    found = []
    for line in plan:
        match = re.match(r"SCAN (\S+)(?:.*INDEX (\w+))?", line)
        if match and names.get(match[1]) in grows and match[2] not in FEW and not (
                match[2] in OVER and re.match(r"SELECT (count|min|pack|finished_ms)", text)):
            found.append(line)
    return found


PAST = """
CREATE TEMP TABLE n AS WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {n}) SELECT i FROM n;
CREATE TEMP TABLE m AS WITH RECURSIVE m (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM m WHERE i < {m}) SELECT i FROM m;
"""
T0 = 1_760_000_000_000
STATES = "CASE WHEN i % 10 < 7 THEN 'SUCCEEDED' WHEN i % 10 < 9 THEN 'FAILED' ELSE 'CANCELLED' END"


class Past:
    """Rows of a year, made of those that are there or of nothing: so many jobs, and so many decisions, events and metrics."""

    def __init__(self, path, now_ms, n_jobs=N, n_rows=5 * N):
        self.n_jobs, self.n_rows = n_jobs, n_rows
        self.database = sqlite3.connect(path, isolation_level=None)
        self.since = now_ms - 60 * 86_400_000  # within what is kept by default

    def fill(self, table, numbers="n", **columns):
        """A row for each number i: a column is SQL, else as its declaration has it."""
        names, values = [], []
        for _, name, kind, must, default, key in self.database.execute(f"PRAGMA table_info({table})"):
            if name in columns or (must and default is None):
                names.append(f'"{name}"')
                values.append(str(columns.get(name, "''" if kind == "TEXT" else "0")))
        self.database.execute(f"INSERT INTO {table} ({', '.join(names)}) SELECT {', '.join(values)} FROM {numbers}")

    def clone(self, table, key, **columns):
        """As fill, with the columns of a row that is there."""
        names = [row[1] for row in self.database.execute(f"PRAGMA table_info({table})")]
        values = ", ".join(str(columns.get(name, f'o."{name}"')) for name in names)
        self.database.execute(f"INSERT INTO {table} SELECT {values} FROM {table} o, n WHERE o.{key}")

    def make(self, job):
        run = self.database.execute
        self.database.executescript(PAST.format(n=self.n_jobs, m=self.n_rows))
        run("PRAGMA foreign_keys = OFF")
        run("PRAGMA synchronous = OFF")
        run("BEGIN")
        at = f"{self.since} + i"
        self.clone("jobs", f"id = '{job}'", id="printf('01990000-0000-7000-8000-%012d', i)", name="'past'", state=STATES,
                   kind="CASE WHEN i % 50 = 0 THEN 'train' ELSE o.kind END", created_ms=at, started_ms=at, queued_ms=at,
                   finished_ms=at + " + 1000", revision=f"-i")
        self.clone("tasks", f"job = '{job}'", id="printf('t-%d', i)", job="printf('01990000-0000-7000-8000-%012d', i)",
                   started_ms=at, finished_ms=at + " + 1000")
        self.fill("attempts", task="printf('t-%d', i)", number="1", node="'n'")
        self.fill("runs", number="i + 10", id="printf('run-%d', i)", name="'past'", project="'default'", kind="'train'",
                  status="'FINISHED'", job="printf('01990000-0000-7000-8000-%012d', i)", created_ms=at, start_ms=at,
                  finished_ms=at + " + 1000")
        run("INSERT INTO track_keys (id, name) VALUES (1001, 'past.loss'), (1002, 'past.rate')")
        self.fill("latest_metrics", run="i + 10", key="1001", step="1", time_ms=at, value="i")
        self.fill("run_parameters", run="i + 10", key="1002", value="'1'")
        self.fill("run_tags", run="i + 10", key="1002", value="'1'")
        self.fill("metrics", "m", run="11 + i % 5", key="1001", step="i", time_ms=at, value="i")
        seq = "(SELECT coalesce(max(seq), 0) FROM {0})".format
        for table, more in [
            ("decisions", dict(id="printf('d-%d', i)", ion="'door'", pipeline="'entrance'", camera="'c'", frame="i + 1000000",
                               verdict="'grant'", person="printf('p%d', i % 100)", model_version="1", latency_us="1000")),
            ("feedback", dict(decision="printf('d-%d', i)", ion="'door'", pipeline="'entrance'")),
            ("health_reports", dict(id="printf('h-%d', i)", ion="'door'", pipeline="'entrance'", signal="'score'")),
            ("kpis", dict(ion="'door'", name="'k'", value="i")),
            ("statistics", dict(id="printf('s-%d', i)", ion="'door'", name="'s'", kind="'number'", value="'1'")),
            ("events", dict(topic="CASE WHEN i % 5 THEN 'jobs' ELSE 'audit' END", kind="'past'", message="'m'", subject="'job/past'")),
            ("outcomes", dict(id="printf('o-%d', i)", deployment="'none'", name="'right'", answered_ms=at)),
            ("outbox", dict(key="printf('past-%d', i)", kind="'none'", payload="'{}'", state="'done'", done_ms=at)),
            ("alert_deliveries", dict(id="printf('a-%d', i)", receiver="'r'", event="'raised'", message="'{}'", state="'sent'", done_ms=at)),
        ]:
            numbers = {"decisions": "m", "events": "m", "alert_deliveries": "(SELECT i FROM n WHERE i <= 20000)"}.get(table, "n")
            self.fill(table, numbers, **{"seq": f"i + {run('SELECT ' + seq(table)).fetchone()[0]}", "time_ms": at, "created_ms": at, **more})
        for table, more in [
            ("alerts", dict(numbers="(SELECT i FROM n WHERE i <= 20000)", id="printf('past-%d', i)", key="printf('past-%d', i)", severity="'warning'", kind="'job_failed'",
                            subject="printf('job/%d', i)", message="'m'", state="'resolved'", raised_ms=at, last_ms=at, resolved_ms=at, looked="1")),
            ("alert_firings", dict(numbers="(SELECT i FROM n WHERE i <= 20000)", id="printf('past-%d', i)", rule="'r'", alert="printf('past-%d', i)", state="'over'", over_ms=at)),
            ("usage", dict(time_ms=f"{self.since} / 3600000 * 3600000 + i / 20 * 3600000", span_ms="3600000", project="'default'", user="printf('u%d', i % 20)")),
            ("queue_history", dict(time_ms=at, queue="'default'")),
            ("run_artifacts", dict(run="printf('run-%d', i)", path="'model'", blob="printf('%064d', i)")),
            ("sent_blobs", dict(project="'default'", sha256="printf('%064d', i)", hour_ms=at)),
        ]:
            self.fill(table, **more)
        for counter, table in [("decisions", "decisions"), ("events", "events"), ("feedback", "feedback"), ("health_reports", "health_reports"),
                               ("kpis", "kpis"), ("statistics", "statistics"), ("outbox", "outbox"), ("outcomes", "outcomes"),
                               ("alert_deliveries", "alert_deliveries")]:
            run(f"UPDATE counters SET value = (SELECT max(seq) FROM {table}) WHERE name = ?", (counter,))
        run("COMMIT")
        self.database.close()


# What stands for {name} in a path.
KNOWN = {"/runs": "run-1", "/ions": "door", "/datasets": "faces", "/projects": "default", "/queues": "default", "/users": "admin",
         "/tasks": "t-1", "/alerts": "past-1"}
# Values of each filter and order: of many rows, few or none. A list may refuse some.
FILTERS = {
    "node": ["n"], "cluster": ["none"], "model": ["none"], "ion": ["door", "none"], "project": ["default", "none"], "name": ["past", "none"], "view": ["all"],
    "kind": ["past", "train", "command", "gpu", "job_failed", "disk_filling", "nan", "low_score", "number", "wrong", "none"],
    "state": ["SUCCEEDED", "FAILED", "PENDING", "done", "open", "resolved", "ok", "sent", "pending", "none"], "status": ["FINISHED", "FAILED"],
    "filter": ["metrics.past.loss > 99999999", "name = 'past'"], "order": ["metrics.past.loss", "name", "start_ms"], "job": ["none"],
    "experiment": ["0", "none"], "columns": ["metrics.past.loss"], "metric": ["past.loss"],
    "link": ["training-entrance", "none"], "version": ["1", "none"], "pipeline": ["entrance", "none"], "camera": ["c", "none"],
    "verdict": ["grant", "deny"], "person": ["p7", "none"], "label": ["none"], "since": ["2020-01-01T00:00:00Z", "2100-01-01T00:00:00Z"],
    "until": ["2020-01-01T00:00:00Z", "2100-01-01T00:00:00Z"], "decided": ["none"], "truth": ["none"], "deployment": ["none", "other"],
    "subject": ["job/past", "none"], "topic": ["jobs", "audit", "models"], "severity": ["info", "warning", "error", "critical"],
    "actor": ["admin", "none"], "receiver": ["r", "none"], "rule": ["none"], "alert": ["past-1", "none"], "event": ["raised", "ended"], "skip": ["100"], "q": ["door", "none"], "door": ["door-1", "none"],
}


class History(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--log-level", "debug")
        cls.addClassCleanup(cls.server.stop)
        cls.server.start()
        cls.server.weir("dataset", "create", "faces")
        cls.server.post("/ions", {"kind": "ion", "name": "door", "pipelines": [
            {"name": "training", "type": "training", "model": "face-embed", "dataset": "faces"},
            {"name": "entrance", "type": "prediction", "gallery": {"dataset": "faces"}, "source": {"kind": "http", "listen": "127.0.0.1:0"}}],
            "links": [{"from": "training", "to": "entrance", "policy": "manual"}]})
        cls.job = cls.submit()
        cls.ends(cls.job, 60)
        cls.server.kill(15)
        Past(cls.server.state / "weir.db", int(time.time() * 1000)).make(cls.job)
        (cls.server.root / "server.log").unlink()
        cls.server.start()

    @classmethod
    def submit(cls):
        return cls.server.post("/jobs", {"name": "t", "kind": "command", "spec": {"argv": ["/bin/true"]}})["id"]

    @classmethod
    def ends(cls, job, seconds):
        return wait_until(lambda: cls.server.get(f"/jobs/{job}")["state"] == "SUCCEEDED", seconds, "the job has ended")

    def costly(self):
        log = (self.server.root / "server.log").read_text(errors="replace")
        found = (re.search(r'store_statement_costly steps=(\d+) sql="(.*)"$', line) for line in log.splitlines())
        seen = [(int(match[1]), match[2].replace('\\"', '"')) for match in found if match]
        return [text for n, text in seen
                if not any(re.search(part, text) and n <= (most or [100 * N])[0] for part, _, *most in COSTLY)]

    def answered(self, path):
        """Was it? Refused is what the past has not, or a server of this kind does not know."""
        try:
            self.server.request("GET", path, raw=True)
        except HttpError as error:
            self.assertLess(error.code, 500, path)
            return False
        return True

    def test_filtered_pages_of_what_is_rare_cost_as_much_as_of_what_is_common(self):
        """Each filter and order of each list, with what many rows have, few and none; and random pairs of them."""
        seed = os.environ.get("WEIR_SEED", str(random.randrange(1 << 30)))
        print("WEIR_SEED=" + seed)
        chance, slow, unasked, n = random.Random(seed), [], [], 0
        before = len(self.costly())
        for path, methods in sorted(self.server.get("/openapi.json")["paths"].items()):
            names = [parameter["name"] for parameter in methods.get("get", {}).get("parameters", []) if parameter["in"] == "query"]
            if "limit" in names and not path.endswith("/disagreements"):  # of one comparison
                path = re.sub(r"\{\w+\}", KNOWN.get("/" + path.split("/")[3], "{}"), path, count=1)
            if "limit" not in names or "{" in path:
                continue
            always = [("by", "parameters.past.rate")] if "by" in names else []
            filters = sorted(set(names) - {"limit", "cursor", "newest", "after", "by", "path"})
            asked = [[]] + [[(name, value)] for name in filters for value in FILTERS[name]]
            pairs = [chance.sample(filters, 2) for _ in range(12 if len(filters) > 1 else 0)]
            asked += [[(name, chance.choice(FILTERS[name])) for name in pair] for pair in pairs]
            ways = [""] + [f"&{name}={value}" for name, value in (("newest", 1), ("after", 0)) if name in names]
            found = set()
            for more, way in itertools.product(asked, ways):
                query = f"{path}?{urllib.parse.urlencode([*always, *more, ('limit', 100)])}{way}"
                found |= {name for name, _ in more} if self.answered(query) else set()
                n += 1
                lines = self.costly()
                slow += [(query, line) for line in lines[before:]]
                before = len(lines)
            unasked += [(path, name) for name in filters if name not in found]
        self.assertEqual(unasked, [], "FILTERS has no value that this list takes")
        self.assertGreater(n, 300)
        self.assertEqual(slow, [], "\n".join(f"{where}: {line[:1500]}" for where, line in slow))

    def test_no_statement_walks_through_what_grows(self):
        database = sqlite3.connect(self.server.state / "weir.db")
        n, bad, used = 0, [], set()
        for text in statements():
            try:
                plan = plan_of(database, text)
            except sqlite3.Error:
                continue  # a part of one, which is asked as a whole below
            n += 1
            walks = walks_of(database, text, plan)
            reasons = [i for i, (part, _) in enumerate(WALKS) if re.search(part, text)]
            if walks and not reasons:
                bad.append(f"{text}\n      {walks}")
            used.update(reasons if walks else [])
        self.assertGreater(n, 470)
        self.assertEqual(bad, [], "\n".join(bad))
        self.assertEqual([WALKS[i] for i in range(len(WALKS)) if i not in used], [], "a reason that nothing needs")

    def test_every_answer_costs_the_same_with_a_past(self):
        document = self.server.get("/openapi.json")
        job = self.submit()
        self.ends(job, 20)
        known = {"/jobs": self.job, **KNOWN}
        slow, before, n = [], len(self.costly()), 0
        for line in self.costly():
            slow.append(("by itself", line))
        for path, methods in document["paths"].items():
            if "get" not in methods or any(word in path for word in ("/stream", "/desired", "/follow")):
                continue
            short = path.removeprefix("/api/v1")
            name = known.get("/" + short.split("/")[1])
            if "{" in path and name is None:
                continue
            path = re.sub(r"\{\w+\}", name or "", path, count=1)
            if "{" in path:
                continue
            names = [parameter["name"] for parameter in methods["get"].get("parameters", []) if parameter["in"] == "query"]
            asked = [""] + [f"?{more}" for more in ("newest=1", "limit=1000", "kind=none", "project=none", "state=none", "project=default&newest=1",
                                                    "kind=train&newest=1", "state=SUCCEEDED&newest=1", "state=SUCCEEDED", "subject=none")
                            if {part.split("=")[0] for part in more.split("&")} <= set(names)]
            for more in asked:
                more += ("&" if more else "?") + "ion=door" if "ion" in names and short.startswith(("/decisions", "/health")) else ""
                began = time.monotonic()
                try:
                    self.server.request("GET", path + more, raw=True)
                except HttpError as error:
                    self.assertLess(error.code, 500, path + more)
                took, n = time.monotonic() - began, n + 1
                lines = self.costly()
                slow += [(f"{path}{more} {1000 * took:.0f} ms", line) for line in lines[before:]]
                before = len(lines)
                if os.environ.get("WEIR_HISTORY_TIMES"):
                    print(f"{1000 * took:8.1f} ms  {path}{more}")
        self.assertGreater(n, 100)
        self.assertEqual(slow, [], "\n".join(f"{where}: {line[:1500]}" for where, line in slow))


if __name__ == "__main__":
    import harness
    harness.main()

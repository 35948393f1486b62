"""What teams share: queues and quotas, jobs and what can be done to them, what was used."""

import json

import fake_data as made
from fixture import WithPage


def slide(page, name, value):
    """Moves a slider as a hand does: it follows, and is let go."""
    page.one(f'.slider input[name="{name}"]')
    page.js("""const s = document.querySelector(`.slider input[name="${arguments[0]}"]`)
        s.value = arguments[1]
        for (const kind of ['input', 'change']) s.dispatchEvent(new Event(kind, {bubbles: true}))""", name, value)


class QueueTest(WithPage):
    def test_a_bar_says_what_is_used_owed_borrowed_and_waited_for(self):
        page = self.page
        page.go("queues")
        page.has_text(".page-head .sub", "2 devices · guarantees 2 of 2 · 1 job waits for 1 device")
        labels = page.js("return [...document.querySelectorAll('.quota')].map((e) => e.ariaLabel)")
        self.assertEqual(labels[0], "default uses 2 devices of a limit of 2, guarantee 1, borrows 1")
        self.assertEqual(labels[1], "speech uses 0 devices of a limit of none, guarantee 1, waits for 1")
        widths = page.js("return [...document.querySelector('[data-row=default] .bar').children].map((e) => e.style.width)")
        self.assertEqual(widths, ["50%", "50%"])
        self.assertEqual(page.js("return document.querySelector('[data-row=default] .tick').style.left"), "50%")

    def test_a_guarantee_is_changed_after_one_has_seen_who_is_affected(self):
        page = self.page
        page.go("queues/speech")
        page.has_text("#queue-title", "Change speech")
        slide(page, "guarantee", 2)
        page.has_text(".slider", "1 → 2")
        page.has_text(".what-if", "nightly-evaluation")
        page.has_text(".what-if", "And 1 job of others: 1 evicted.")
        self.assertEqual([one[:2] for one in self.state.requests if one[1] != "/api/v1/what-if"], [], "nothing is changed by looking")
        asked = json.loads(self.last_request()[3])
        self.assertEqual(asked["shares"]["accelerators"], {"guarantee": 2, "weight": 1, "limit": None})
        page.has_text(".note", "Guarantees of 3 accelerators in all are more than the 2 accelerators that the nodes have. Take 1 from default, 1 → 0")
        self.assertFalse(page.button("Apply to speech").is_enabled())
        page.button("Take it from default").click()
        page.button("Apply to speech and default").click()
        page.until(lambda: len([one for one in self.state.requests if one[0] == "PUT"]) == 2, "both queues to be set")
        taken, given = [(path, json.loads(body)) for method, path, _, body in self.state.requests if method == "PUT"]
        self.assertEqual((taken[0], taken[1]["shares"]["accelerators"]["guarantee"]), ("/api/v1/queues/default", 0))
        self.assertEqual((given[0], given[1]["shares"]["accelerators"]["guarantee"]), ("/api/v1/queues/speech", 2))
        self.assertEqual(given[1]["project"], "speech", "all of it is set anew: what is not said would go")

    def test_who_may_not_change_a_queue_sees_who_can_give_the_right(self):
        page = self.page
        self.state.rights.remove("change queues")
        page.driver.refresh()
        page.go("queues/speech")
        slide(page, "weight", 3)
        page.has_text(".what-if", "Nobody")
        page.button("Apply to speech").click()
        page.has_text("dialog", "You may not change queues")
        page.has_text("dialog", "It takes the role admin")
        self.assertEqual([one[0] for one in self.state.requests if one[1] != "/api/v1/what-if"], [])

    def test_what_somebody_changed_meanwhile_is_not_overwritten(self):
        page = self.page
        page.go("queues/default")
        slide(page, "weight", 3)
        page.has_text(".what-if", "Nobody")
        self.state.unseen_changes = {"priority": 7}  # in the list it would be the page's own as soon as that is read again
        page.button("Apply to default").click()
        page.has_text(".what-if-box .failed", "Somebody has changed default meanwhile")
        self.assertEqual([one[0] for one in self.state.requests if one[0] == "PUT"], [])

    def test_a_queue_is_made_for_a_project(self):
        page = self.page
        page.go("queues")
        page.button("New queue").click()
        page.one('dialog input[name="name"]').send_keys("research")
        page.button("Make the queue", "dialog").click()
        page.has_text("#queue-title", "Change research")
        method, path, _, body = next(one for one in self.state.requests if one[0] == "PUT")
        self.assertEqual((path, json.loads(body)["priority"]), ("/api/v1/queues/research", 100))


class JobActTest(WithPage):
    def open(self, number):
        job = self.state.jobs[number]
        self.page.go(f"jobs?job={job['id']}")
        self.page.has_text("#job-title", job["name"])
        return job

    def test_a_waiting_job_answers_three_questions_and_says_what_would_help(self):
        page = self.page
        job = self.open(2)
        page.has_text(".questions", "Does it fit? Not now.")
        for text in ("May it? Yes. default uses 2 devices.", "1 job goes before it in its queue.", "needs 4 · there is 1 · accelerators"):
            self.assertIn(text, page.text(".questions"))
        page.has_text(".drawer", "one more node like rack1-a: starts")
        page.button("What if it went first?").click()
        page.has_text("dialog .what-if", "starts, not: waits")
        self.assertEqual(json.loads(self.last_request()[3]), {"first": job["id"]})

    def test_each_act_says_before_what_becomes_of_the_job(self):
        page = self.page
        job = self.open(0)
        page.button(f"Hold {job['name']}").click()
        page.has_text("dialog", "Its tasks write a checkpoint and stop")
        page.button("Hold the job", "dialog").click()
        page.has_text(".drawer .panel-head", "held")
        self.assertEqual(self.last_request()[:2], ("POST", f"/api/v1/jobs/{job['id']}/hold"))
        page.has_text(".drawer", "Stopped for others")
        page.button(f"Resume {job['name']}").click()
        self.until_requested("POST", "/resume")

    def test_the_priority_is_changed(self):
        page = self.page
        job = self.open(2)
        page.button(f"Priority of {job['name']}").click()
        field = page.one('dialog input[name="priority"]')
        field.clear()
        field.send_keys("80")
        page.button("Change the priority", "dialog").click()
        self.assertEqual(json.loads(self.until_requested("PATCH")[3]), {"priority": 80})

    def test_who_may_not_cancel_sees_the_act_locked(self):
        page = self.page
        self.state.rights.remove("cancel jobs")
        page.driver.refresh()
        job = self.open(2)
        page.button(f"Cancel {job['name']}").click()
        page.has_text("dialog", "It takes the role operator or data-scientist or ml-engineer or admin, in default or on the platform.")
        page.has_text("dialog .command", "weir project grant default admin operator")


class SubmitTest(WithPage):
    def test_a_form_offers_the_projects_in_which_one_may(self):
        page = self.page
        with self.state.lock:
            self.state.rights, self.state.own_projects = ["read projects", "read jobs", "read queues"], {"speech": ["submit jobs", "read jobs"]}
            self.state.projects.append({"name": "speech", "description": None, "created_ms": made.rfc3339(1)})
        page.driver.refresh()
        page.one(".topbar")
        page.go("jobs/new", project="default")
        page.until(lambda: page.texts("#job-project option") == ["speech"], f"speech alone, not {page.texts('#job-project option')}")

    def test_a_kind_that_the_page_never_heard_of_has_its_form(self):
        page = self.page
        page.go("jobs/new?kind=quantum")
        page.has_text("main", "Anneals.")
        page.has_text("main", "Not in this version: mpi.")
        page.one('input[name="name"]').send_keys("anneal")
        page.one('input[name="qubits"]').send_keys("65")
        page.has_text(".field .tone-bad-text", "expected a whole number from 1 to 64")
        page.one('input[name="qubits"]').send_keys("\b\b12")
        page.one('input[name="resources.accelerators"]').send_keys("2")
        page.one('input[name="time_limit"]').send_keys("90m")
        page.has_text(".code pre", "qubits: 12")
        page.button("Submit").click()
        page.has_text("#job-title", "anneal")
        method, path, _, body = next(one for one in self.state.requests if one[1] == "/api/v1/jobs")
        self.assertEqual(json.loads(body), {"name": "anneal", "kind": "quantum", "project": "default",
                                            "spec": {"qubits": 12, "time_limit": "90m", "resources": {"accelerators": 2}}})

    def test_the_same_job_is_shown_as_a_document_a_command_and_a_request(self):
        page = self.page
        page.go("jobs/new")
        page.one('input[name="name"]').send_keys("hello")
        page.one('input[name="argv"]').send_keys("sh -c 'echo it works'")
        page.has_text(".code pre", 'argv: ["sh", "-c", "echo it works"]')
        page.one('.panel-head a[href*="as=cli"]').click()
        page.has_text(".code pre", "-- sh -c 'echo it works'")
        page.one('.panel-head a[href*="as=rest"]').click()
        page.has_text(".code pre", '"kind": "command"')

    def test_a_gang_with_code_of_a_repository_and_secrets_has_its_command(self):
        page = self.page
        page.go("jobs/new?kind=pytorch&as=cli")
        page.has_text("main", "There are HF_TOKEN, WANDB")
        for name, text in (("name", "ddp"), ("argv", "python3 train.py"), ("code.git", "https://git.example/a.git"), ("code.commit", "8b21c0de"), ("nodes", "2"), ("processes_per_node", "4"),
                           ("resources.accelerators", "4")):
            page.one(f'input[name="{name}"]').send_keys(text)
        page.one('textarea[name="secrets"]').send_keys("TOKEN=HF_TOKEN\nWANDB")
        page.has_text(".code pre", "WANDB")
        command = page.text(".code pre")
        self.assertEqual(command.replace(" \\\n    ", " ").strip(),
                         "weir job run ddp --project default --kind pytorch --secret TOKEN=HF_TOKEN --secret WANDB --nodes 2 --set processes_per_node=4"
                         " --gpus 4 --git https://git.example/a.git@8b21c0de -- python3 train.py")
        page.one('textarea[name="python"]').send_keys("torch==2.5.1")
        page.has_text(".code pre", "weir job submit -f -")
        page.js("window.scrollTo(0, 0)")
        page.button("Submit").click()
        page.has_text("#job-title", "ddp")
        body = json.loads(next(one for one in self.state.requests if one[1] == "/api/v1/jobs")[3])
        self.assertEqual(body["spec"], {"argv": ["python3", "train.py"], "code": {"git": "https://git.example/a.git", "commit": "8b21c0de"}, "python": "torch==2.5.1",
                                        "secrets": ["TOKEN=HF_TOKEN", "WANDB"], "nodes": 2, "processes_per_node": 4, "resources": {"accelerators": 4}})

    def test_what_the_server_refuses_stands_at_its_field(self):
        page = self.page
        self.may_fail_requests = True
        page.go("jobs/new")
        page.one('input[name="name"]').send_keys("hello")
        page.one('input[name="argv"]').send_keys("true")
        page.one('input[name="time_limit"]').send_keys("soon")
        self.state.faults["/api/v1/jobs"] = (400, "INVALID", "$.spec.time_limit: expected a time as 90m, 12h or 2d")
        page.button("Submit").click()
        page.has_text(".field .tone-bad-text", "expected a time as 90m")
        self.assertEqual(page.one('[aria-invalid="true"]').get_attribute("name"), "time_limit")
        self.state.faults.clear()

    def test_a_job_is_the_beginning_of_another(self):
        page = self.page
        self.state.jobs[2].update(spec={"argv": ["sleep", "1 2"], "env": {"KEY": "***", "A": "b"}, "resources": {"accelerators": 3}})
        page.go(f"jobs/new?from={self.state.jobs[2]['id']}")
        page.has_text(".page-head .sub", "Copied from nightly-evaluation")
        value = lambda name: page.js("return document.querySelector(`[name='${arguments[0]}']`).value", name)
        self.assertEqual((value("argv"), value("env"), value("resources.accelerators")), ("sleep '1 2'", "A=b", "3"))


class UsageTest(WithPage):
    def test_who_had_how_much_is_added_up_by_project_and_can_be_had_as_a_file(self):
        page = self.page
        page.go("usage")
        page.has_text(".strip", "42")
        cells = dict(page.js("return [...document.querySelectorAll('[data-row^=default] td')].map((e) => [e.dataset.name, e.innerText])"))
        self.assertEqual((cells["device hours"], cells["guaranteed"], cells["borrowed"], cells["idle while held"], cells["busy"]), ("30", "20", "10", "6", "90%"))
        page.until(lambda: page.all(".stacked-bars .column"), "the bars")
        self.assertIn("default 15, speech 6", page.js("return document.querySelector('.stacked-bars .column').title").replace(", default", " default"))
        self.assertEqual(page.js("return [...document.querySelectorAll('.bars-axis small')].map((e) => e.textContent.trim())"), ["50 h", "25", "0"], "the bars have an axis")
        self.assertRegex(page.text(".stacked-bars .column small"), r"[A-Z][a-z]{2}", "a day as the rest of the page has it")
        heights = page.js("return [...document.querySelectorAll('.strip > div')].map((e) => Math.round(e.querySelector('.big').getBoundingClientRect().top))")
        self.assertEqual(len(set(heights)), 1, "figures stand in a line")
        address = page.one("a[download]").get_attribute("href")
        self.assertIn("/api/v1/usage?by=project&from=", address)
        self.assertIn("format=csv", address)
        page.one('.panel-head a[href*="by=user"]').click()
        page.has_text("main", "By person")

    def test_use_over_time_has_a_table_and_keeps_its_gaps(self):
        page = self.page
        page.watch_labels()
        page.go("queues")
        page.until(lambda: len(page.all(".chart-panel canvas")) == 2, "two charts")
        page.button("Table of Devices in use").click()
        rows = page.js("return [...document.querySelectorAll('.chart-table tbody tr')].map((e) => [...e.cells].slice(1).map((cell) => cell.innerText))")
        self.assertEqual(rows, [["2", "0"], ["2", "0.1667"], ["–", "–"], ["2", "0.5000"]])
        hours = {one[-5:] for one in page.labels() if one[-3:] == ":00"}
        self.assertGreaterEqual(len(hours), 6, f"the axis is of the 24 h that are asked for: {hours}")
        waits = page.js("return [...document.querySelectorAll('.quota')].map((e) => [e.getAttribute('aria-label'), e.querySelector('.waits') !== null])")
        self.assertTrue(waits and all(("waits for" in label) == has for label, has in waits), f"what waits for nothing has no stub: {waits}")


class SecretTest(WithPage):
    LIST = 'ul[aria-label="Secrets of default"]'

    def setUp(self):
        super().setUp()
        self.page.go("people?tab=secrets")

    def test_secrets_say_who_set_them_and_what_uses_them(self):
        page = self.page
        page.has_text(self.LIST, "HF_TOKEN set by mara")
        waiting = next(job for job in self.state.jobs if job["state"] == "PENDING")
        self.assertIn(f"job {waiting['name']}", page.text(f"{self.LIST} li:first-child"))
        self.assertIn("nothing uses it now", page.text(f"{self.LIST} li:last-child"))
        self.assertEqual(page.weak_texts(), [])

    def test_a_secret_is_set_and_its_value_is_shown_nowhere(self):
        page = self.page
        page.button("Set a secret of default").click()
        page.one('dialog input[name="name"]').send_keys("API_KEY")
        field = page.one('dialog input[name="value"]')
        self.assertEqual(field.get_attribute("type"), "password")
        field.send_keys("s3cr3t")
        page.button("Set it", "dialog").click()
        page.has_text(self.LIST, "API_KEY")
        self.assertEqual((self.state.requests[-1][:2], json.loads(self.state.requests[-1][3])), (("PUT", "/api/v1/projects/default/secrets/API_KEY"), {"value": "s3cr3t"}))
        self.assertNotIn("s3cr3t", page.driver.page_source)
        page.button("Set another value for WANDB").click()
        page.one('dialog input[name="value"]').send_keys("other")
        page.button("Set it", "dialog").click()
        page.has_text(".toasts", "WANDB is set")

    def test_a_deletion_says_what_would_break(self):
        page = self.page
        page.button("Delete HF_TOKEN of default").click()
        page.has_text("dialog", "do not start any more")
        self.assertIn("job nightly-evaluation", page.text("dialog"))
        page.button("Delete HF_TOKEN", "dialog").click()
        page.until(lambda: "HF_TOKEN" not in page.text(self.LIST), "it to go")
        page.button("Delete WANDB of default").click()
        page.has_text("dialog", "no service and no sweep that runs names it")

    def test_who_may_not_change_secrets_is_told_so(self):
        page = self.page
        self.state.rights.remove("change secrets")
        page.driver.refresh()
        page.has_text("main", "You may not see which secrets it has")
        page.button("Set a secret of default").click()
        page.has_text("dialog", "You may not change secrets of default")


class KeptTest(WithPage):
    def setUp(self):
        super().setUp()
        self.page.go("people?tab=kept")

    def change(self, kind, age):
        page = self.page
        page.button(f"Change how long {kind} of default are kept").click()
        field = page.one('dialog input[name="age"]')
        field.clear()
        field.send_keys(age)
        page.button("See what would go", "dialog").click()

    def test_a_time_is_changed_after_one_has_seen_what_would_go(self):
        page = self.page
        page.has_text("main", "What default keeps")
        page.has_text("main", f"pictures of {made.ION} / {made.PIPELINE}: 1d")
        self.change("decisions", "2d")
        page.has_text("dialog", "12 rows")
        self.assertEqual([one[0] for one in self.state.requests if one[0] == "PUT"], [], "nothing is changed by looking")
        page.button("Keep it so long", "dialog").click()
        page.has_text(".toasts", "decisions of default are kept for 2d")
        self.assertEqual((self.last_request()[:2], json.loads(self.last_request()[3])), (("PUT", "/api/v1/projects/default/retention"), {"decisions": "2d"}))
        self.change("logs", "20d")
        page.has_text("dialog", "Nothing goes now")
        self.assertEqual(page.weak_texts(), [])

    def test_who_may_not_change_it_is_told_so(self):
        page = self.page
        self.state.rights.remove("grant projects")
        page.driver.refresh()
        page.button("Change how long logs of default are kept").click()
        page.has_text("dialog", "You may not grant projects of default")


CASES = [KeptTest, SecretTest, UsageTest, QueueTest, JobActTest, SubmitTest]

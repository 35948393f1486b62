"""The cluster and its people: who holds which device, what is out, and what can be done about it."""

import json
import time

import fake_data as made
from fixture import WithPage


class ClusterTest(WithPage):
    def test_a_device_says_who_holds_it_how_busy_and_how_warm_it_is(self):
        page = self.page
        page.go("nodes")
        page.has_text('[data-device="rack1-a/4"]', f"{made.ION}.training.5")
        held = page.text('[data-device="rack1-a/4"]')
        for part in (f"{made.ION}.training.5", "92 %", "61 °C"):
            self.assertIn(part, held)
        self.assertIn("free", page.text('[data-device="rack1-a/5"]'))
        self.assertEqual(page.texts(".tile .t b"), ["0", "1"], "as nvidia-smi counts, not as the inventory does")
        page.has_text(".strip", "Accelerators in use")
        page.js("arguments[0].click()", page.one('[data-device="rack1-a/4"] a'))
        page.has_text("#job-title", "training.5")
        page.until(lambda: page.texts(".tasks small") == ["rack1-a / 0", "rack1-a / 1"], "the numbers of its devices")

    def test_what_is_out_comes_first_with_its_reason(self):
        page = self.page
        self.state.devices[1].update(state="bad", reason="its memory had 14 errors")
        self.state.nodes[2].update(state="ready")
        page.go("nodes")
        page.has_text("h1", "Something is wrong with 1 of 3 nodes")
        page.has_text('[data-node="rack1-a"]', "device 1 is out: its memory had 14 errors")
        self.assertEqual(page.js("return document.querySelector('[data-node]').dataset.node"), "rack1-a")

    def test_a_node_is_drained_after_a_question_that_says_who_is_there(self):
        page = self.page
        for job in self.state.jobs:
            job.update(time_limit_ms=3_600_000, started_ms=made.rfc3339(time.time() - 60))
        page.go("nodes")
        page.one('[data-node="rack1-a"] .node-disk button').click()
        page.has_text("dialog", "1 job runs there")
        page.has_text("dialog li", "building-security.training")
        page.has_text("dialog", "It is empty at ")
        page.one("dialog button.primary").click()
        method, path, *_, body = self.last_request()
        self.assertEqual((method, path, json.loads(body)), ("PATCH", "/api/v1/nodes/rack1-a", {"is_draining": True}))

    def test_a_thousand_nodes_are_one_picture_and_a_click_opens_one(self):
        page = self.page
        self.state.nodes[:] = [self.state.node(f"n{i:04}", made.seconds(self.state.nodes[0]["last_seen_ms"]), "x", 8, 16, 8) for i in range(1000)]
        self.state.devices[:] = [self.state.device(f"n{i:04}", 0, None) for i in range(1000)]
        page.go("nodes")
        page.until(lambda: "1,000 nodes with 1,000 accelerators" in (page.one(".heat-map canvas").get_attribute("aria-label") or ""), "the picture")
        self.assertEqual(page.all("[data-node]"), [])
        page.one(".heat-map canvas").click()
        page.until(lambda: page.texts("#node-title"), "a node")


class ClustersTest(WithPage):
    def card(self, name):
        return self.page.text(f'[data-cluster="{name}"]')

    def test_each_cluster_says_how_it_is_what_is_ours_and_what_is_waited_for_in_its_own_words(self):
        page = self.page
        page.go("clusters")
        page.has_text("h1", "hpc-south lacks something")
        page.until(lambda: "gpu-a100" in self.card("hpc-north"), "the pools")
        for text in ("takes work", "64 CPUs, 8 × A100, 512 GiB", "32 of 512 CPUs", "on 2 nodes of ours · others have 168 CPUs · 2 more asked for", "the partition is down", "2 nodes here, 2 asked for · at most 8", "jobs wait 10 min before"):
            self.assertIn(text, self.card("hpc-north"))
        others = page.js("""const [ours, others] = document.querySelectorAll('[data-cluster="hpc-north"] .pool .bar i')
            const all = ours.parentElement.getBoundingClientRect().width
            return [ours, others].map((one) => Math.round(100 * one.getBoundingClientRect().width / all))""")
        self.assertEqual(others, [6, 33], "of 512 CPUs 32 are ours, and 168 others'")
        self.assertIn("sacctmgr knows no account weir-vision", self.card("hpc-south"))
        self.assertIn("3 nodes that joined by themselves", self.card("local"))
        waiting = page.text('.table-wrap[aria-label="Waiting allocations"]')
        for text in ("PENDING (Priority)", "814223", "hpc-north · gpu-a100", f"{made.ION}.entrance"):
            self.assertIn(text, waiting)
        running = page.text('.table-wrap[aria-label="Allocations"]')
        for text in ("814102", "hpc-north · a100-07, a100-08", f"{made.ION}.training.5"):
            self.assertIn(text, running)

    def test_it_says_whose_jobs_go_where(self):
        self.state.queues[0].update(parent="speech")
        self.state.queues[1].update(clusters=["local", "hpc-north", "gone"], overflow_after_ms=60_000)
        page = self.page
        page.go("clusters")
        rules = '.table-wrap[aria-label="Rules"]'
        for text in ("speech and those below", "own nodes, hpc-north, gone (there is none)", "1 min", "8 nodes of hpc-north", "all other queues", "own nodes, hpc-north, hpc-south", "hpc-north: 10 min, hpc-south: at once"):
            page.has_text(rules, text)
        self.assertNotIn("default", page.text(rules))

    def test_it_is_checked_drained_and_its_nodes_given_back(self):
        page = self.page
        page.go("clusters")
        page.button("Check hpc-north", '[data-cluster="hpc-north"]').click()
        page.has_text(".toast", "hpc-north answers: gpu-a100: 8 nodes of 64 CPUs")
        page.one('[data-cluster="hpc-north"] .acts-menu summary').click()
        page.button("Drain hpc-north", '[data-cluster="hpc-north"]').click()
        page.button("Drain hpc-north", "dialog").click()
        page.until(lambda: "draining" in self.card("hpc-north"), "it drains")
        self.assertEqual(json.loads(self.last_request()[3]), {"is_draining": True})
        page.button(f"Release {self.state.allocations[0]['id']}", '.table-wrap[aria-label="Allocations"]').click()
        page.button("Give it back", "dialog").click()
        page.has_text('.table-wrap[aria-label="Allocations"]', "goes back")

    def test_a_cluster_is_tested_before_it_is_added(self):
        page = self.page
        page.go("clusters")
        page.button("Add a cluster").click()
        for name, text in (("name", "lab"), ("partition", "nope"), ("after_ms", "20m")):
            field = page.one(f'dialog input[name="{name}"]')
            field.clear()
            field.send_keys(text)
        page.button("Test and add", "dialog").click()
        page.has_text("dialog", "sinfo knows no partition nope")
        page.button("Save all the same", "dialog")
        self.assertEqual([one["name"] for one in self.state.clusters], ["hpc-north", "hpc-south"], "what lacks something is not added")
        page.one('dialog input[name="partition"]').send_keys("\b" * 4)
        page.button("Guess what is not said, by asking it", "dialog").click()
        page.until(lambda: page.one('dialog input[name="partition"]').get_attribute("value") == "gpu-a100", "what was guessed")
        page.button("Test and add", "dialog").click()
        page.until(lambda: page.all('[data-cluster="lab"]'), "it is there")
        self.assertEqual((self.state.clusters[-1]["after_ms"], self.state.clusters[-1]["options"]), (1_200_000, {"partition": "gpu-a100"}))

    def test_a_job_and_a_node_say_which_allocation_they_have(self):
        page = self.page
        page.go(f"jobs?job={self.state.jobs[0]['id']}")
        page.has_text(".drawer .facts", "hpc-north number 814102 there, ends ")
        self.state.nodes[0].update(cluster="hpc-north", allocation=self.state.allocations[0]["id"], ends_ms=self.state.allocations[0]["ends_ms"])
        page.go("nodes/rack1-a")
        page.has_text(".page-head", "(number 814102 there, ends ")


class NodeTest(WithPage):
    def test_a_node_has_a_page_with_its_devices_network_tasks_and_events(self):
        page = self.page
        page.go("nodes/rack1-a")
        page.has_text("#node-title", "rack1-a")
        for text in ("mlx5_0", "rdma true", "200,000"):
            page.has_text("main", text)
        page.has_text('.table-wrap[aria-label="Tasks on rack1-a"]', f"{made.ION}.training.5")
        page.go("nodes/rack1-b")
        page.has_text(".event-list", "rack1-b was not heard of for 60 s")

    def test_labels_and_taints_are_set_and_taken_away(self):
        page = self.page
        self.state.nodes[0]["labels"] = {"rack": "1", "old": "yes"}
        page.go("nodes/rack1-a")
        page.button("Labels and taints").click()
        for name, text in (("labels", "rack=2"), ("taints", "gpu=only:NoSchedule")):
            field = page.one(f'dialog input[name="{name}"]')
            field.clear()
            field.send_keys(text)
        page.button("Set them", "dialog").click()
        page.until(lambda: any(one[0] == "PATCH" for one in self.state.requests), "the change")
        self.assertEqual(json.loads(self.last_request()[3]), {"labels": {"rack": "2", "old": None}, "taints": [{"key": "gpu", "value": "only", "effect": "NoSchedule"}]})

    def test_a_machine_joins_by_a_command_that_is_shown_once(self):
        page = self.page
        page.go("nodes")
        page.button("Add a node").click()
        page.button("Make the command", "dialog").click()
        page.has_text("dialog .command", "weir node join http://127.0.0.1:")
        page.has_text("dialog .command", "weir_join-this-once")
        page.button("Done", "dialog").click()
        page.until(lambda: not page.all("dialog[open]"), "the dialog to close")

    def test_a_node_leaves_after_a_question(self):
        page = self.page
        page.go("nodes/edge-door")
        page.button("Remove").click()
        page.has_text("dialog", "Its tokens end")
        page.button("Remove edge-door", "dialog").click()
        self.until_requested("DELETE", "/api/v1/nodes/edge-door")

    def test_alerts_about_devices_and_nodes_are_shown_and_lead_to_them(self):
        page = self.page
        for kind, subject, message in (("device_bad", "node/rack1-a", "device 1 of rack1-a is out: 14 ECC errors"),
                                       ("node_unhealthy", "node/edge-door", "edge-door takes no tasks: its check failed")):
            self.state.alerts.append(self.state.alert(kind, subject, "open", made.seconds(self.state.nodes[0]["last_seen_ms"]), message))
        page.driver.refresh()
        page.go("alerts")
        for text in ("14 ECC errors", "its check failed", "rack1-b"):
            page.has_text("main", text)
        page.one('table.rows a[href="/p/-/nodes/edge-door"]').click()
        page.has_text("#node-title", "edge-door")


class PeopleTest(WithPage):
    def test_roles_in_projects_are_shown_given_and_taken(self):
        page = self.page
        self.state.users.append({"name": "mara", "kind": "person", "role": "member", "is_disabled": False, "created_ms": made.rfc3339(0)})
        self.state.members_of["default"] = [{"name": "default/user/mara", "project": "default", "user": "mara", "group": None, "role": "approver",
                                             "created_by": "admin", "created_ms": made.rfc3339(0)}]
        page.go("people")
        page.has_text('[data-row="mara"]', "approver")
        page.one('.people-projects .panel-head button').click()
        page.one('dialog input[name="who"]').send_keys("lea")
        page.js("const s = document.querySelector('dialog select[name=role]'); s.value = 'operator'; s.dispatchEvent(new Event('change', {bubbles: true}))")
        page.one("dialog button.primary").click()
        method, path, *_, body = self.last_request()
        self.assertEqual((method, path, json.loads(body)), ("PUT", "/api/v1/projects/default/members/user/lea", {"role": "operator"}))
        page.until(lambda: not page.all("dialog[open]"), "the dialog to close")
        page.one('.people-projects .icon-button').click()
        page.has_text("dialog", "sees and changes nothing of default")
        page.one("dialog button.danger").click()
        self.until_requested("DELETE", "/api/v1/projects/default/members/user/mara")


    def add_mara(self):
        self.state.users.append({"name": "mara", "kind": "person", "role": "member", "is_disabled": False, "created_ms": made.rfc3339(0)})

    def test_a_role_shows_what_it_gives_before_it_is_given(self):
        page = self.page
        self.add_mara()
        page.go("people?who=mara")
        page.button("Change role").click()
        page.js("const s = document.querySelector('dialog select'); s.value = 'operator'; s.dispatchEvent(new Event('change', {bubbles: true}))")
        page.has_text("dialog", "Gains: read jobs, read decisions, cancel jobs, operate nodes")
        page.button("Make it operator", "dialog").click()
        page.until(lambda: self.state.users[1]["role"] == "operator", "the role")
        page.has_text("#person-title", "mara")
        page.button("Set password").click()
        page.one('dialog input[name="password"]').send_keys("correct horse battery")
        page.button("Set the password", "dialog").click()
        self.until_requested("PUT", "/api/v1/users/mara/password")
        page.until(lambda: not page.all("dialog[open]"), "the dialog to close")
        page.button("Delete").click()
        page.button("Delete mara", "dialog").click()
        page.until(lambda: len(self.state.users) == 1, "the user to go")

    def test_groups_are_made_filled_and_emptied(self):
        page = self.page
        self.add_mara()
        page.go("people?tab=groups")
        page.button("New group").click()
        page.one('dialog input[name="name"]').send_keys("reviewers")
        page.button("Make the group", "dialog").click()
        page.button("Add to reviewers").click()
        page.js("const s = document.querySelector('dialog select'); s.value = 'mara'; s.dispatchEvent(new Event('change', {bubbles: true}))")
        page.button("Add", "dialog").click()
        page.button("Take mara out of reviewers").click()
        page.until(lambda: self.state.group_members == {"reviewers": []}, "mara to be out again")

    def test_a_token_is_shown_once(self):
        page = self.page
        page.go("people?tab=tokens")
        page.button("New token").click()
        page.one('dialog input[name="name"]').send_keys("ci")
        page.button("Make the token", "dialog").click()
        page.has_text("dialog", "weir_shown-this-once")
        page.button("I have it", "dialog").click()
        page.until(lambda: not page.all("dialog[open]"), "the dialog to close")
        page.has_text("main", "admin / ci")
        self.assertNotIn("weir_shown", page.text("main"))

    def test_the_matrix_says_who_may_what(self):
        page = self.page
        page.go("people?tab=roles")
        cells = page.texts('[data-right="cancel jobs"] td')
        self.assertEqual([cell.strip() for cell in cells[2:]], ["–", "–", "–", "yes", "yes", "yes", "yes"])

    def choose(self, selector, value):
        self.page.js(f"const s = document.querySelector('{selector}'); s.value = '{value}'; s.dispatchEvent(new Event('change', {{bubbles: true}}))")

    def test_a_role_is_defined_changed_and_deleted(self):
        page = self.page
        page.go("people?tab=roles")
        page.button("New role").click()
        page.one('dialog input[name="name"]').send_keys("night-shift")
        self.choose("dialog select[name=like]", "approver")
        page.until(lambda: page.one('dialog input[name="review ions"]').is_selected(), "the rights of an approver")
        page.one('dialog input[name="cancel jobs"]').click()
        page.button("Make the role", "dialog").click()
        page.until(lambda: not page.all("dialog[open]"), "the dialog to close")
        rights, about = self.state.custom_roles["night-shift"]
        self.assertEqual(({"review ions", "cancel jobs", "submit jobs"} & set(rights), about), ({"review ions", "cancel jobs"}, None))
        cells = page.texts('[data-right="cancel jobs"] td')
        self.assertEqual(len(cells), 10)
        self.assertEqual(cells[9].strip(), "yes")
        page.one('button[aria-label="Change the role night-shift"]').click()
        page.one('dialog input[name="cancel jobs"]').click()
        page.has_text("dialog", "Loses: cancel jobs")
        page.button("Change the role", "dialog").click()
        page.until(lambda: "cancel jobs" not in self.state.custom_roles["night-shift"][0], "the change")
        page.until(lambda: not page.all("dialog[open]"), "the dialog to close")
        page.one('button[aria-label="Change the role night-shift"]').click()
        page.button("Delete", "dialog").click()
        page.button("Delete night-shift", "dialog").click()
        page.until(lambda: not self.state.custom_roles, "the role to go")
        page.until(lambda: len(page.texts('[data-right="cancel jobs"] td')) == 9, "its column to go")

    def test_a_custom_role_is_given_in_a_project_and_not_on_the_platform(self):
        page = self.page
        self.add_mara()
        self.state.custom_roles["night-shift"] = (["read jobs", "cancel jobs"], "Whoever is there")
        self.state.members_of["default"] = [
            {"name": f"default/user/{name}", "project": "default", "user": name, "group": None, "role": role, "problem": problem, "created_by": "admin", "created_ms": made.rfc3339(0)}
            for name, role, problem in (("lea", "ghost", "the role ghost is gone: it gives no rights"), ("mara", "viewer", None))]
        page.go("people")
        page.has_text(".people-projects", "the role ghost is gone: it gives no rights")
        page.one('button[aria-label="Change viewer of mara in default"]').click()
        self.choose("dialog select[name=role]", "night-shift")
        page.has_text("dialog", "Gains: cancel jobs")
        page.button("Make it night-shift", "dialog").click()
        method, path, *_, body = self.last_request()
        self.assertEqual((method, path, json.loads(body)), ("PUT", "/api/v1/projects/default/members/user/mara", {"role": "night-shift"}))
        page.until(lambda: not page.all("dialog[open]"), "the dialog to close")
        page.button("New person").click()
        self.assertNotIn("night-shift", page.text("dialog select[name=role]"))


class AuditTest(WithPage):
    def fill(self, count):
        now = made.seconds(self.state.nodes[0]["last_seen_ms"])
        for i in range(count):
            self.state.events.append({"seq": 1000 + i, "time_ms": made.rfc3339(now - 60 * (count - i)), "topic": "jobs", "kind": "queue_set", "severity": "info",
                                      "subject": "queue/default", "actor": "mara" if i % 2 else "system", "message": f"Queue default was set, {i}.", "data": None})

    def test_acts_of_people_from_all_areas_are_there_by_pages_and_by_time(self):
        page = self.page
        self.fill(900)
        page.go("audit")
        page.has_text("table.rows", "Queue default was set, 899.")
        self.assertNotIn("Queue default was set, 898.", page.text("table.rows"), "Weir's own doings are not people's")
        for shown in (200, 400):
            page.until(lambda: f"{shown} of {shown}" in page.text(".panel-foot"), f"{shown}: {page.text('.panel-foot')}")
            page.button("Older entries").click()
        page.until(lambda: "that is all" in page.text(".panel-foot"), "the end of the log")
        self.assertIn("451 of 451", page.text(".panel-foot"), "and the login, which is of the audit")
        page.go("audit?from=-1h")
        page.until(lambda: "30 of 30" in page.text(".panel-foot") or "31 of 31" in page.text(".panel-foot"), "an hour: " + page.text(".panel-foot"))

    def test_tasks_are_no_people_and_have_their_jobs_name(self):
        page = self.page
        job = self.state.jobs[0]
        task = {"topic": "jobs", "kind": "models_register", "severity": "info", "subject": "model/x", "message": "made by a program", "time_ms": made.rfc3339(time.time())}
        self.state.events.append({**task, "seq": 2000, "actor": "task/01a2235b-4900-4000-8000-000000000001", "data": {"job": job["id"], "created_by": "ada"}})
        self.state.events.append({**task, "seq": 2001, "actor": "worker", "data": None, "message": "also by a program"})
        page.go("audit")
        page.has_text("table.rows", "login")
        self.assertNotIn("by a program", page.text("table.rows"))
        page.go("audit?who=all")
        page.has_text("table.rows", "also by a program")
        page.has_text("table.rows", f"job {job['name']}"[:14])
        self.assertNotIn("01a2235b", page.text("table.rows"))

    def test_a_filter_asks_the_server_and_the_log_can_be_had_as_a_file(self):
        page = self.page
        self.fill(10)
        page.go("audit?q=by:mara")
        page.has_text(".panel-foot", "5 of 5")
        page.js("window.made = []; URL.createObjectURL = (blob) => { blob.text().then((text) => window.made.push(text)); return 'blob:none' }; HTMLAnchorElement.prototype.click = () => {}")
        page.button("Download").click()
        text = page.until(lambda: page.js("return window.made[0]"), "the file")
        lines = text.strip().split("\r\n")
        self.assertEqual((len(lines), lines[0].split(",")[:4], lines[1].split(",")[2:5]), (6, ["number", "time", "who", "did"], ["mara", "queue_set", "queue/default"]))


CASES = [ClusterTest, ClustersTest, NodeTest, PeopleTest, AuditTest]

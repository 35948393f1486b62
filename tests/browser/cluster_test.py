"""The cluster and its people: who holds which device, what is out, and what can be done about it."""

import json

import fake_data as made
from fixture import WithPage


class ClusterTest(WithPage):
    def test_a_device_says_who_holds_it_how_busy_and_how_warm_it_is(self):
        page = self.page
        page.go("nodes")
        page.has_text('[data-device="rack1-a/0"]', f"{made.ION}.training.5")
        held = page.text('[data-device="rack1-a/0"]')
        for part in (f"{made.ION}.training.5", "92 %", "61 °C"):
            self.assertIn(part, held)
        self.assertIn("free", page.text('[data-device="rack1-a/1"]'))
        page.has_text(".strip", "Accelerators in use")
        page.js("arguments[0].click()", page.one('[data-device="rack1-a/0"] a'))
        page.has_text("#job-title", "training.5")

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
        page.go("nodes")
        page.one('[data-node="rack1-a"] .node-disk button').click()
        page.has_text("dialog", "1 job runs there")
        page.one("dialog button.primary").click()
        method, path, *_, body = self.last_request()
        self.assertEqual((method, path, json.loads(body)), ("PATCH", "/api/v1/nodes/rack1-a", {"is_draining": True}))

    def test_a_thousand_nodes_are_one_picture_and_a_click_opens_one(self):
        page = self.page
        self.state.nodes[:] = [self.state.node(f"n{i:04}", made.seconds(self.state.nodes[0]["last_seen_ms"]), "x", 8, 16, 8) for i in range(1000)]
        self.state.devices[:] = [self.state.device(f"n{i:04}", 0, None) for i in range(1000)]
        page.go("nodes")
        page.until(lambda: "1000 nodes with 1000 accelerators" in (page.one(".heat-map canvas").get_attribute("aria-label") or ""), "the picture")
        self.assertEqual(page.all("[data-node]"), [])
        page.one(".heat-map canvas").click()
        page.until(lambda: page.texts("#node-title"), "a node")


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
        page.until(lambda: self.state.requests[-1][:2] == ("DELETE", "/api/v1/projects/default/members/user/mara"), "the role to be taken")


CASES = [ClusterTest, PeopleTest]

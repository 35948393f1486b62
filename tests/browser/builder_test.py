"""The builder: nodes and links drawn by mouse and by keyboard, forms and YAML as one document, the server's word, the change, Apply."""

import json

from fixture import ION, WithPage

SET_VALUE = """const [e, value] = arguments
    Object.getOwnPropertyDescriptor(Object.getPrototypeOf(e), 'value').set.call(e, value)
    e.dispatchEvent(new Event(e.tagName === 'SELECT' ? 'change' : 'input', {bubbles: true}))"""
PROBLEMS, EFFECTS, CHANGES = "[aria-labelledby=p-problems]", "[aria-labelledby=p-what-apply-will-do]", "[aria-labelledby=p-change-to-revision-4]"


class BuilderTest(WithPage):
    def setUp(self):
        super().setUp()
        self.page.resize(1440, 1000)

    def fill(self, name, value):
        self.page.js(SET_VALUE, self.page.one(f'.builder-form [name="{name}"]'), value)

    def is_locked(self):
        return self.page.js("return [...document.querySelectorAll('.builder-acts button')].find((b) => b.textContent.startsWith('Apply')).disabled")

    def apply(self):
        """It can be pressed once the server has said that it would take the document."""
        self.page.until(lambda: not self.is_locked(), "Apply")
        self.page.button("Apply…").click()
        self.page.button("Apply", "dialog").click()
        self.page.until(lambda: self.page.address().endswith("/graph"), "the live graph")

    def applied(self):
        return next(json.loads(body) for _, path, _, body in self.state.requests[::-1] if path == "/api/v1/ions")

    def test_an_ion_is_drawn_by_keyboard_alone_and_applied(self):
        from selenium.webdriver.common.keys import Keys

        page = self.page
        page.go("ions/new")
        self.fill("name", "gate")
        page.button("Training", ".builder-add").send_keys(Keys.ENTER)
        self.fill("dataset", "faces")
        self.fill("model", "face-embed")
        page.button("Prediction", ".builder-add").send_keys(Keys.ENTER)
        page.has_text(PROBLEMS, "no link leads to it")
        page.one('[data-node="prediction"].is-wrong')
        node = page.one('[data-node="training"] .sketch-body')
        before = page.js("return arguments[0].parentElement.style.left", node)
        node.send_keys(Keys.ARROW_RIGHT)
        page.until(lambda: page.js("return document.querySelector('[data-node=training]').style.left") != before, "an arrow to move the node")
        page.one('[data-node="training"] .sketch-body').send_keys("l")
        page.one('[data-node="prediction"].is-target .sketch-body').send_keys(Keys.ENTER)
        page.one('[data-link="training>prediction"]')
        page.has_text(PROBLEMS, "it is not on the server's machine")
        page.has_text(EFFECTS, 'The replicas of "entrance" start.')
        self.assertEqual([one["name"] for one in self.state.ions], ["building-security"], "a dry run changes nothing")
        page.button("Apply…").click()
        page.has_text("dialog", 'The replicas of "entrance" start.')
        page.button("Apply", "dialog").click()
        page.until(lambda: page.address() == "/p/-/ions/gate/graph", "the live graph")
        self.assertEqual(self.applied()["links"], [{"from": "training", "to": "prediction", "policy": "manual"}])
        self.assertEqual(self.applied()["pipelines"][1], {"name": "prediction", "type": "prediction", "source": {"kind": "http"}})

    def test_form_yaml_and_canvas_are_one_document(self):
        page = self.page
        page.go(f"{ION}/builder?node=training>entrance".replace(">", "%3E"))
        page.has_text("#builder-form", "Link training → entrance")
        page.has_text("[aria-labelledby=p-change-to-revision-4]", "It is what runs")
        self.assertEqual(len(page.all('[data-link="training>entrance"] .gate')), 2, "a diamond for each policy of the chain")
        page.button("Take rate-limit out").click()
        page.has_text(CHANGES, "policy: manual")
        page.button("Undo").click()
        page.has_text(CHANGES, "It is what runs")
        page.js("document.querySelector('[data-node=entrance] .sketch-body').click()")
        self.fill("replicas", "many")
        page.has_text(".builder-form [role=alert]", "expected a whole number")
        self.fill("replicas", "3")
        page.has_text(CHANGES, "replicas: 3")
        page.has_text('[data-node="entrance"]', "3 replicas")
        page.js("[...document.querySelectorAll('.builder-form nav a')].find((a) => a.textContent === 'YAML').click()")
        text = page.js("return document.querySelector('.yaml textarea').value")
        self.assertIn("    replicas: 3\n", text)
        page.js(SET_VALUE, page.one(".yaml textarea"), text.replace("replicas: 3", "replicas: [3"))
        page.has_text(".yaml [role=alert]", "line ")
        page.js(SET_VALUE, page.one(".yaml textarea"), text.replace("replicas: 3", "replicas: 5  # all of them").replace("dataset: people", ""))
        page.has_text('[data-node="entrance"]', "5 replicas")
        page.driver.refresh()  # the draft is kept, and the address shows the same
        page.until(lambda: "replicas: 5" in page.js("return document.querySelector('.yaml textarea')?.value ?? ''"), "the draft after a reload")
        self.assertEqual(page.weak_texts(), [])

    def test_what_was_applied_meanwhile_is_not_overwritten_unseen(self):
        page = self.page
        page.go(f"{ION}/builder?node=entrance")
        self.fill("replicas", "2")
        page.has_text(CHANGES, "replicas: 2")
        with self.state.lock:
            self.state.ions[0]["revision"] = 5
            self.state.publish("ions", {"name": "building-security"})
        page.has_text(".banner.tone-warn", "Revision 5 was applied meanwhile")
        self.assertTrue(self.is_locked())
        page.button("Take theirs").click()
        page.until(lambda: "replicas" not in page.text("[aria-labelledby=p-change-to-revision-5]"), "their revision")

    def yaml(self):
        return self.page.js("return document.querySelector('.yaml textarea')?.value ?? ''")

    def test_a_token_that_a_kept_draft_lost_is_typed_again_before_apply(self):
        page = self.page
        page.go(f"{ION}/builder?node=entrance&tab=yaml")
        page.until(lambda: "kind: directory" in self.yaml(), "the document")
        page.js(SET_VALUE, page.one(".yaml textarea"), self.yaml().replace("kind: directory\n      path: /srv/frames", "kind: http\n      token: typed-by-hand"))
        page.has_text(CHANGES, "token: typed-by-hand")
        page.until(lambda: not self.is_locked(), "Apply")
        page.driver.refresh()
        page.has_text(PROBLEMS, "type it again")
        self.assertNotIn("typed-by-hand", page.js("return JSON.stringify(localStorage)"))
        page.until(self.is_locked, "Apply to be locked")
        page.js(SET_VALUE, page.one(".yaml textarea"), self.yaml().replace('"*** type it again ***"', "typed-again").replace("'*** type it again ***'", "typed-again"))
        self.apply()
        self.assertEqual(self.applied()["pipelines"][1]["source"], {"kind": "http", "token": "typed-again"})

    def test_triggers_are_a_list_and_the_object_of_old_documents_is_read_as_one(self):
        page = self.page
        page.go(f"{ION}/builder?node=training")
        page.has_text(".builder-form", "1 new data")
        page.has_text(".builder-form", "cron 0 0 3 * * *")
        page.js(SET_VALUE, page.js("return [...document.querySelectorAll('.builder-form select')].find((s) => s.textContent.includes('Add a trigger'))"), "drift")
        self.fill("signal", "score")
        page.has_text(CHANGES, "signal: score")
        self.apply()
        self.assertEqual(self.applied()["pipelines"][0]["triggers"], ["new-data", {"kind": "schedule", "cron": "0 0 3 * * *"}, {"kind": "drift", "signal": "score"}])

    def test_a_link_leads_to_a_deployment(self):
        page = self.page
        page.go(f"{ION}/builder?node=training")
        page.one('[data-node="entrance"]')
        page.js(SET_VALUE, page.js("return [...document.querySelectorAll('.builder-add select')].find((s) => s.textContent.includes('From training to'))"), "clothes")
        page.one('[data-node="deployment/clothes"]')
        page.has_text("#builder-form", "Link training → deployment/clothes")
        page.js(SET_VALUE, page.js("return [...document.querySelectorAll('.builder-form select')].find((s) => s.textContent.includes('Add a policy'))"), "canary")
        page.has_text(CHANGES, "deployment: clothes")
        self.apply()
        self.assertEqual(self.applied()["links"][1], {"from": "training", "to": {"deployment": "clothes"}, "policy": ["manual", "canary"]})

    def test_the_live_graph_shows_a_version_that_is_tried_at_a_deployment(self):
        page = self.page
        with self.state.lock:
            self.state.ions[0]["links"].append({
                "id": "training:deployment/clothes", "from": "training", "to": "deployment/clothes", "policy": "canary", "policies": ["canary"], "deployment_state": "SERVING", "wanted_version": 1,
                "waiting": [{**self.state.waiting(3), "state": "CANARY", "position": 0, "policy": "canary", "why": "canary: step 1 of 3, 5 % of requests"}], "serving_version": 1,
                "serving_model": "clothes", "pending_versions": []})
            self.state.publish("ions", {"name": "building-security"})
        page.go(f"{ION}/graph")
        self.assertTrue(page.one('[data-deployment="clothes"]').get_attribute("href").endswith("/deployments/clothes"))
        page.has_text('[data-link="training>deployment/clothes"]', "v3 is tried")
        self.assertEqual(page.weak_texts(), [])

    def test_a_policy_of_the_live_graph_opens_its_decisions(self):
        page = self.page
        page.go(f"{ION}/graph")
        page.has_text('[data-link="training>entrance"] .policy', "rate limit")
        gates = page.texts('[data-link="training>entrance"] .policy')
        self.assertEqual(["rate limit" in gates[0], "v3 passed" in gates[0], "v3 asks" in gates[1]], [True, True, True], gates)
        page.js("""document.querySelectorAll('[data-link="training>entrance"] .policy')[0].click()""")
        page.has_text("#history", "rate limit")
        page.has_text("[aria-labelledby=history]", "No version has come to this policy yet")
        page.js("""document.querySelectorAll('[data-link="training>entrance"] .policy')[1].click()""")
        page.has_text("[aria-labelledby=history]", "better at night")
        self.assertIn("policy=manual", page.address())
        page.one('[data-end="sink"]')

    def test_a_graph_of_all_sorts_of_pipelines_is_drawn_and_applied(self):
        from selenium.webdriver.common.keys import Keys

        page = self.page
        page.go("ions/new")
        self.fill("name", "gate")
        for label, fields in (("Preparation", {"output": "clean"}), ("Training", {"model": "lenet"}), ("Evaluation", {"dataset": "held-out"}), ("Prediction", {}), ("Comparison", {"dataset": "held-out", "against": "prediction"})):
            page.button(label, ".builder-add").click()
            page.one(f'[data-node="{label.lower()}"]')
            for name, value in fields.items():
                self.fill(name, value)
        for start, end in (("preparation", "training"), ("training", "evaluation"), ("training", "comparison"), ("training", "prediction")):
            page.one(f'[data-node="{start}"] .sketch-body').send_keys("l")
            page.one(f'[data-node="{end}"].is-target .sketch-body').send_keys(Keys.ENTER)
            page.one(f'[data-link="{start}>{end}"]')
        gates = [len(page.all(f'[data-link="{link}"] .gate')) for link in ("preparation>training", "training>evaluation", "training>prediction")]
        self.assertEqual(gates, [0, 0, 1], "only what serves has policies")
        page.has_text('[data-link="preparation>training"]', "data clean")
        page.js("document.querySelector('[data-node=preparation] .sketch-body').click()")
        self.fill("argv", "python3 clean.py")
        self.fill("restart-kind", "on-failure")
        self.fill("times", "5")
        self.assertEqual(page.weak_texts(), [])
        page.has_text(EFFECTS, 'The replicas of "entrance" start.')
        self.apply()
        self.assertEqual(page.address(), "/p/-/ions/gate/graph")
        applied = self.applied()
        self.assertEqual(applied["links"], [
            {"from": "preparation", "to": "training", "dataset": "clean"}, {"from": "training", "to": "evaluation"}, {"from": "training", "to": "comparison"},
            {"from": "training", "to": "prediction", "policy": "manual"}])
        self.assertEqual(applied["pipelines"][0], {"name": "preparation", "type": "preparation", "output": "clean", "parameters": {"argv": ["python3", "clean.py"]}, "restart": {"kind": "on-failure", "times": 5}})
        self.assertEqual(applied["pipelines"][1]["dataset"], "clean", "it learns from what is made")

    def test_the_live_graph_shows_what_is_prepared_and_measured(self):
        page = self.page
        with self.state.lock:
            ion = self.state.ions[0]
            blank = {**ion["pipelines"][0], "job": None, "run": None, "state": "IDLE", "model": None, "next_fire_ms": None, "new_data": True}
            ion["pipelines"] += [
                {**blank, "name": "prepare", "type": "preparation", "state": "FREEZING", "dataset": "raw", "output": "faces", "cause": "raw version 4"},
                {**blank, "name": "check", "type": "evaluation", "dataset": "held-out", "measured_model": "building-security.training", "measured_version": 3}]
            ion["starts"] = [{"id": "prepare:training", "from": "prepare", "to": "training", "dataset": "faces"}, {"id": "training:check", "from": "training", "to": "check", "dataset": None}]
            self.state.publish("ions", {"name": "building-security"})
        page.go(f"{ION}/graph")
        page.has_text('[data-pipeline="prepare"]', "makes faces")
        page.has_text('[data-pipeline="prepare"]', "reezing")
        page.has_text('[data-pipeline="check"]', "building-security.training v3")
        self.assertEqual(page.weak_texts(), [])
        self.assertEqual(page.overflow_px(), 0)


CASES = [BuilderTest]

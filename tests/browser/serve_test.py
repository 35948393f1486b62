"""What serves models: versions with what they take and give, deployments with their shares, and a place to try them."""

import json
import os
import random
import tempfile
import time
from pathlib import Path

import fake_data as made
import fake_serve
from fixture import WithPage
from share_test import slide

SEED = int(os.environ.get("WEIR_TEST_SEED", 0)) or random.randrange(1, 1 << 31)


def put_file(page, name, content, field):
    """Gives a file to a field, as a person who chooses one does."""
    folder = tempfile.TemporaryDirectory(prefix="weir-page-")
    path = Path(folder.name) / name
    path.write_bytes(content)
    page.one(f'input[name="{field}"]').send_keys(str(path))
    return folder  # until the page has read it


def choose(page, css, value):
    """Once it is among the options: some are of lists that come later."""
    page.until(lambda: page.js("return [...(document.querySelector(arguments[0])?.options ?? [])].some((one) => one.value === arguments[1])", css, value), f"{value} in {css}")
    page.js("""const e = document.querySelector(arguments[0]); e.value = arguments[1]
        e.dispatchEvent(new Event('change', {bubbles: true}))""", css, value)


class ModelTest(WithPage):
    def test_a_version_says_what_it_takes_what_runs_it_and_where_it_serves(self):
        page = self.page
        page.go("models/clothes/v2")
        signature = page.text("[aria-labelledby=p-signature-of-v2]")
        for text in ("onnx Weir runs it, because Weir has all of its operators", "x FP32 [n, 1, 28, 28]", "logits, in batches", "28 × 28 grey, stretched, as 0 to 1, minus 0.286, divided by 0.353",
                     "4: Pullover, Coat, Shirt, Bag"):
            self.assertIn(text, signature)
        self.assertLessEqual(page.overflow_px(), 0, "what it takes stands in its panel")
        self.assertEqual([" ".join(one.split()) for one in page.texts(".lineage li")],
                         [f"a file, sha {self.state.served['clothes'][1]['blob'][:8]} registered by admin", "v2 clothes · 4.0 KiB", "clothes deployment serves, 10 %"])
        page.has_text('[data-row="v1"], tr:has(a[aria-label="Version 1"])', "@stable")
        self.assertIn("/blobs/", page.js("return [...document.querySelectorAll('a[download]')][0].href"))

    def test_an_alias_is_set_and_taken_away(self):
        page = self.page
        page.go("models/clothes/v2")
        page.button("Set alias").click()
        page.one('dialog input[name="alias"]').send_keys("@better")
        page.button("Set the alias", "dialog").click()
        page.button("Remove @better").click()
        self.assertEqual(self.last_request()[:2], ("PUT", "/api/v1/models/clothes/aliases/better"))
        page.has_text("dialog", "Deployments keep the versions that they have")
        page.button("Remove @better", "dialog").click()
        self.until_requested("DELETE", "/aliases/better")
        page.until(lambda: "@better" not in page.text("main table"), "the table without it")

    def test_a_file_becomes_a_version_once_the_server_has_looked_at_it(self):
        page = self.page
        self.may_fail_requests = True
        page.go("models")
        page.button("Register a file").click()
        folder = put_file(page, "New Net.onnx", b"hello", "file")
        self.addCleanup(folder.cleanup)
        self.assertEqual(page.js("return document.querySelector('dialog input[name=model]').value"), "new-net")
        page.button("Register it", "dialog").click()
        page.has_text("dialog .failed", f"new-net: {fake_serve.REFUSED}")
        good = put_file(page, "net.onnx", b"\x08" + bytes(range(256)) * 40000, "file")
        labels = put_file(page, "labels.txt", b"cat\ndog\n", "labels")
        self.addCleanup(good.cleanup)
        self.addCleanup(labels.cleanup)
        page.one('dialog input[name="alias"]').send_keys("first")
        page.js("document.querySelector('dialog details').open = true")
        for name, value in (("width", "224"), ("mean", "0.5 0.5, 0.5")):
            page.one(f'dialog input[name="{name}"]').send_keys(value)
        choose(page, 'dialog select[name="fit"]', "crop")
        page.button("Register it", "dialog").click()
        page.has_text("#model-title", "new-net")
        self.assertEqual(page.address(), "/p/-/models/new-net/v1")
        refused, sent = [json.loads(body) for method, path, _, body in self.state.requests if path.endswith("/new-net/versions")]
        self.assertEqual(sent["id"], refused["id"], "an answer may be lost: the same again is the same version")
        self.assertEqual({key: sent[key] for key in ("labels", "preprocess", "alias", "project")},
                         {"labels": ["cat", "dog"], "preprocess": {"width": 224, "mean": [0.5, 0.5, 0.5], "fit": "crop"}, "alias": "first", "project": "default"})

    def test_a_version_is_deployed_by_the_form_of_deployments(self):
        page = self.page
        page.go("models/adder/v1")
        page.button("Deploy…").click()
        page.until(lambda: page.js("return document.querySelector('dialog select[name=version]')?.value") == "v1", "the version to be chosen")
        page.has_text("dialog footer", "Deploy adder v1")
        page.one('dialog input[name="name"]').send_keys("clothes")
        page.has_text("dialog .note", "clothes is there already, with v1=90,v2=10. All of its requests would go to v1")
        page.one('dialog input[name="name"]').send_keys("-2")
        page.button("Deploy adder v1", "dialog").click()
        page.has_text("#deployment-title", "clothes-2")
        method, path, _, body = self.last_request()
        self.assertEqual((method, path), ("PUT", "/api/v1/deployments/clothes-2"))
        self.assertEqual(json.loads(body), {"model": "adder", "version": "v1", "replicas": "1..1", "batch_max": 8, "delay_max_us": 2000, "cpus": 0.1})


class DeploymentTest(WithPage):
    def open(self, name="clothes"):
        self.page.go(f"deployments/{name}")
        self.page.has_text("#deployment-title", name)

    def puts(self):
        return [json.loads(body) for method, path, _, body in self.state.requests if method == "PUT" and path.startswith("/api/v1/deployments")]

    def test_green_is_proven_by_a_young_report(self):
        page = self.page
        self.open()
        page.has_text("h1", "1 of 2 deployments serves")
        page.has_text(".deployment-state", "1 of 1 replica answers, reported")
        with self.state.lock:
            its = self.state.deployments[0]["replicas"][0]
            its.update(is_silent=True, time_ms=made.rfc3339(made.seconds(its["time_ms"]) - 60))
            self.state.publish("deployments", {"name": "clothes"})
        page.has_text(".deployment-state", "unknown since")
        page.has_text("h1", "0 of 2 deployments serve")

    def test_two_versions_that_are_compared_stand_side_by_side_with_what_is_known(self):
        page = self.page
        one = fake_serve.comparison(1200, 300)
        self.state.deployments[0]["comparisons"] = [one]
        page.go("deployments/clothes")
        panel = "[aria-labelledby=p-conversion-of-v1-and-v2]"
        page.has_text(panel, "looks better: p = 0.2, decided at 0.05 or less")
        self.assertEqual([" ".join(row.split()) for row in page.texts(f"{panel} tbody tr")], ["v1 1,200 25.0% 22.6% to 27.5%", "v2 300 30.0% 25.1% to 35.4%"])
        for text in ("v2 answers 20.0% of the requests", "+20.0%", "+5.0 points, between −2.0 points and +12.0 points", "Time left", "Better by chance"):
            page.has_text(panel, text)
        one["arms"][1]["n"] = 40
        page.go("deployments")
        page.go("deployments/clothes")
        page.has_text(panel, "compared from 100 outcomes of each on; the fewer are 40")

    def test_the_worst_comes_first_with_the_reason(self):
        page = self.page
        with self.state.lock:
            self.state.deployments.append(fake_serve.deployment("zebra", "adder", [fake_serve.served(1, 100.0, n_ready=0)], state="FAILED", reason="3 replicas ended in a row", n_ready=0))
            self.state.publish("deployments", {"name": "zebra"})
        page.go("deployments")
        page.has_text("h1", "1 of 3 deployments needs you")
        self.assertEqual([one.split()[0] for one in page.texts(".picks li b")], ["zebra", "clothes", "sums"])
        page.has_text(".deployment-state", "3 replicas ended in a row")
        page.go("deployments/sums")
        page.has_text(".deployment-state", "the next request starts one")

    def apply_shares(self):
        self.page.button("Apply…").click()
        self.page.button("Apply", "dialog").click()

    def test_shares_are_a_draft_until_they_are_applied(self):
        page = self.page
        self.open()
        slide(page, "v2", 40)
        page.has_text(".share-draft", "Not applied: v1 60 %, v2 40 %. Now: v1 90 %, v2 10 %.")
        self.assertEqual(self.puts(), [])
        self.apply_shares()
        page.has_text(".share-outcome", "v1 60 %, v2 40 %: in effect after")
        self.assertEqual(page.all(".share-draft"), [])
        self.assertEqual(self.puts(), [{"traffic": [{"version": 1, "percent": 60}, {"version": 2, "percent": 40}]}])
        page.button("Roll back to v1 90 %, v2 10 %").click()
        page.has_text("dialog", "it takes effect at once, and no request fails")
        page.button("Roll back to v1 90 %, v2 10 %", "dialog").click()
        page.has_text('[data-version="2"] .slider-value', "10 %")
        self.assertEqual(self.puts()[-1], {"traffic": [{"version": 1, "percent": 90}, {"version": 2, "percent": 10}]})

    def test_keys_move_a_share_by_ones_and_tens_and_send_nothing(self):
        from selenium.webdriver.common.keys import Keys

        page = self.page
        self.open()
        at, rng = 10, random.Random(SEED)
        page.one('.slider input[name="v2"]')
        page.js("document.querySelector('.slider input[name=v2]').focus()")
        for _ in range(12):
            key, shift, by = rng.choice([(Keys.ARROW_RIGHT, False, 1), (Keys.ARROW_LEFT, False, -1), (Keys.ARROW_UP, True, 10), (Keys.ARROW_DOWN, True, -10), (Keys.PAGE_UP, False, 10), (Keys.PAGE_DOWN, False, -10)])
            page.press_with(Keys.SHIFT, key) if shift else page.press(key)
            at = min(100, max(0, at + by))
            self.assertEqual(page.js("return document.querySelector('.slider input[name=v2]').value"), str(at), f"seed {SEED}")
        self.assertEqual(self.puts(), [], f"seed {SEED}: a key applied something")
        slide(page, "v2", 35)
        page.button("Discard").click()
        page.has_text('[data-version="2"] .slider-value', "10 %")
        self.assertEqual(self.puts(), [])

    def test_a_version_that_cannot_be_loaded_leaves_the_shares_as_they_were(self):
        page = self.page
        self.open()
        choose(page, 'select[name="add"]', "3")
        slide(page, "v3", 30)
        self.apply_shares()
        page.has_text(".share-outcome", fake_serve.FAILED)
        page.has_text(".share-outcome", "In effect: v1=90,v2=10")
        self.assertEqual(self.puts(), [{"traffic": [{"version": 1, "percent": 63}, {"version": 2, "percent": 7}, {"version": 3, "percent": 30}]}])
        page.has_text(".picks li", "v3 refused")

    def test_a_mirror_is_chosen_and_replicas_are_scaled(self):
        page = self.page
        self.open()
        choose(page, 'select[name="mirror"]', "v3")
        page.has_text(".share-outcome", "Mirror v3: in effect")
        page.button("Scale").click()
        page.one('dialog input[name="replicas"]')
        page.js("""const e = document.querySelector('dialog input[name=replicas]'); e.value = '0..4'
            e.dispatchEvent(new Event('input', {bubbles: true}))""")
        page.button("Change it", "dialog").click()
        page.until(lambda: len(self.puts()) == 2, "both changes")
        self.assertEqual(self.puts(), [{"mirror": "v3"}, {"replicas": "0..4", "batch_max": 8, "delay_max_us": 2000, "queue_max": 1024}])
        page.has_text("[aria-labelledby=p-replicas]", "0 to 4 by load")

    def test_figures_are_of_a_window_and_each_chart_has_its_table(self):
        page = self.page
        page.watch_labels()
        begin = time.time()
        self.open()
        page.has_text(".chart-panel", "No figures yet.")
        page.until(lambda: page.text('tr[data-row="v2"] td:nth-child(2)') == "10.0", "two looks at the figures")
        page.until(page.label_times, "the labels of the axes")  # of one sample: a minute before and behind it
        for at in page.label_times():
            self.assertTrue(begin - 180 <= at <= time.time() + 120, f"a chart says {time.ctime(at)}")
        self.assertEqual(page.texts('tr[data-row="v2"] td')[2:4], ["5.1 ms", "12.3 ms"])
        page.has_text("[aria-labelledby=p-replicas]", "clothes-1")
        page.button("Table of Requests").click()
        page.has_text(".chart-table", "10")

    def test_a_picture_is_tried_on_both_versions_with_the_time_of_each_stage(self):
        page = self.page
        self.open()
        page.has_text(".drop", "Drop a picture here")
        folder = put_file(page, "shirt.png", made.face_png("georg"), "picture")
        self.addCleanup(folder.cleanup)
        page.until(lambda: len(page.all(".answer")) == 2, "both answers")
        self.assertEqual(self.state.asked, [(1, "image/png"), (2, "image/png")])
        self.assertEqual([one.split() for one in page.texts('[data-answer="v2"] .answers li')][0], ["Pullover", "0.903"])
        self.assertEqual(page.js("return document.querySelector('[data-answer=v2] .answers .bar i').style.width"), "90.3%")
        times = " ".join(page.text('[data-answer="v1"] .legend').split())
        for text in ("Read 4.1 ms", "Queue 0.2 ms", "Compute 1.7 ms", "Input 10 µs", "On the way"):
            self.assertIn(text, times)
        page.button("v1", ".seg").click()
        page.until(lambda: len(page.all(".answer")) == 1, "only v1")
        self.assertEqual(self.state.asked[2:], [(1, "image/png")])

    def test_tensors_are_tried_and_a_refusal_is_the_servers_sentence(self):
        page = self.page
        self.may_fail_requests = True
        self.open("sums")
        page.button("Ask with these tensors").click()
        page.has_text(".answers", "y FP32 [1, 4]")
        page.has_text(".answers", "2 3 4 5")
        asked = json.loads(self.state.requests[-1][3])
        self.assertEqual(asked, {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [0, 0, 0, 0]}]})
        self.state.faults["/v2/"] = (400, "INVALID", "model adder has no input 'z'; it has: x")
        page.button("Ask with these tensors").click()
        page.has_text(".answer .failed", "model adder has no input 'z'; it has: x")

    def test_undeploying_says_what_is_lost(self):
        page = self.page
        self.open()
        page.button("Undeploy").click()
        page.has_text("dialog", "get 404 from then on, its replica stops")
        page.button("Undeploy clothes", "dialog").click()
        self.until_requested("DELETE", "/api/v1/deployments/clothes")
        page.until(lambda: page.texts(".picks li b") == ["sums"], "the list without it")

    def test_who_may_not_sees_who_can_give_the_right(self):
        page = self.page
        for right in fake_serve.RIGHTS:
            if right != "read deployments":
                self.state.rights.remove(right)
        page.driver.refresh()
        self.open()
        self.assertFalse(page.one('.slider input[name="v1"]').is_enabled())
        for label, right, role in (("Scale", "change deployments", "data-scientist"), ("Try it", "predict with deployments", "data-scientist")):
            page.button(label).click()
            page.has_text("dialog", f"You may not {right} of default")
            page.has_text("dialog", role)
            page.button("Close", "dialog").click()
        page.go("models/clothes")
        page.button("Register a file").click()
        page.has_text("dialog", "You may not register models")
        self.assertEqual(self.state.requests, [])


class NothingServedTest(WithPage):
    is_empty = True

    def test_it_says_what_would_stand_here_and_how(self):
        self.page.go("deployments")
        self.page.has_text(".empty", "No deployments yet")
        self.page.has_text(".empty", "weir deploy MODEL")
        self.page.go("models")
        self.page.has_text(".empty", "weir model push NAME FILE")


CASES = [ModelTest, DeploymentTest, NothingServedTest]

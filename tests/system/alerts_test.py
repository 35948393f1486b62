"""Who is told of an alert: a webhook whose signature Python's hmac checks, letters to a mail server over STARTTLS with a
password, a real Prometheus Alertmanager where there is one; a receiver that is down, a server that is killed while it sends."""
import base64
import email
import email.policy
import hashlib
import hmac
import http.server
import json
import pathlib
import shutil
import socket
import socketserver
import ssl
import subprocess
import threading
import time
import unittest
import urllib.request

import harness
from harness import HttpError, Server, wait_until

SECRET = "a secret of the test"


class Hook:
    """Takes messages; `answer` says with which status, `holds` lets it not answer at all."""

    def __init__(self, port=0):
        self.calls, self.answer, self.holds = [], 200, threading.Event()
        self.holds.set()
        hook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                hook.calls.append((dict(self.headers), body))
                hook.holds.wait(30)
                try:
                    self.send_response(hook.answer)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                except OSError:
                    pass  # the server was killed meanwhile

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def messages(self, event=None):
        found = [json.loads(body) for _, body in list(self.calls)]
        return [message for message in found if event in (None, message["event"])]

    def stop(self):
        self.holds.set()
        self.server.shutdown()
        self.server.server_close()


class MailServer(socketserver.ThreadingTCPServer):
    """As much of RFC 5321 as a client needs, with STARTTLS and AUTH PLAIN; keeps letters, and who logged in."""
    allow_reuse_address = daemon_threads = True

    def __init__(self, context):
        self.context, self.letters, self.logins, self.envelopes = context, [], [], []
        super().__init__(("127.0.0.1", 0), MailSession)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class MailSession(socketserver.BaseRequestHandler):
    def line(self):
        while b"\r\n" not in self.buffer:
            more = self.sock.recv(4096)
            if not more:
                raise ConnectionError
            self.buffer += more
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        return line.decode()

    def say(self, text):
        self.sock.sendall(text.encode() + b"\r\n")

    def handle(self):
        self.sock, self.buffer, self.is_secure = self.request, b"", False
        self.envelope = []
        self.say("220 test")
        try:
            while self.answer(self.line()):
                pass
        except (ConnectionError, ssl.SSLError, OSError):
            pass

    def answer(self, line):
        word = line.split(" ")[0].upper()
        if word == "EHLO":
            self.say("250-test")
            self.say("250 AUTH PLAIN" if self.is_secure else "250 STARTTLS")
        elif word == "STARTTLS":
            self.say("220 go on")
            self.sock = self.server.context.wrap_socket(self.sock, server_side=True)
            self.buffer, self.is_secure = b"", True
        elif word == "AUTH":
            parts = line.split(" ")
            if len(parts) == 2:
                self.say("334 ")
                parts.append(self.line())
            self.server.logins.append(base64.b64decode(parts[2]).decode().split("\0")[1:])
            self.say("235 ok")
        elif word in ("MAIL", "RCPT"):
            self.envelope.append(line)
            self.say("250 ok")
        elif word == "DATA":
            self.say("354 go on")
            lines = []
            while (text := self.line()) != ".":
                lines.append(text[1:] if text.startswith(".") else text)
            self.server.letters.append("\r\n".join(lines))
            self.server.envelopes.append(self.envelope)
            self.say("250 ok")
        elif word == "QUIT":
            self.say("221 bye")
            return False
        else:
            self.say("250 ok")
        return True


class Alerts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--cpu-slots", "4").start()
        cls.addClassCleanup(cls.server.stop)
        wait_until(lambda: cls.server.get("/nodes")["items"], 30, "the node")
        cls.n_jobs = 0

    def tearDown(self):
        for alert in self.server.get("/alerts?kind=job_failed")["items"]:
            if alert["state"] != "resolved":
                self.server.post(f"/alerts/{alert['id']}/resolve")

    def own(self, name):
        """A name of this test alone: what is still under way of another goes elsewhere."""
        return f"{name}-{self._testMethodName[:40].rstrip('_').replace('_', '-')}"

    def receiver(self, name, kind, options):
        return self.server.request("PUT", f"/api/v1/alert-receivers/{name}", {"kind": kind, "options": options})

    def rule(self, name, **members):
        name = self.own(name)
        rule = self.server.request("PUT", f"/api/v1/alert-rules/{name}", members)
        self.addCleanup(lambda: self.server.request("DELETE", f"/api/v1/alert-rules/{name}"))
        return rule

    def hook(self):
        hook = Hook()
        self.addCleanup(hook.stop)
        self.receiver(self.own("hook"), "webhook", {"url": f"http://127.0.0.1:{hook.port}/in", "secret": SECRET})
        return hook

    def broken_job(self):
        """A job that fails raises an alert; its identifier."""
        type(self).n_jobs += 1
        name = f"broken-{self.n_jobs}"
        self.server.post("/jobs", {"name": name, "kind": "command", "spec": {"argv": ["false"]}})
        return wait_until(lambda: [alert["id"] for alert in self.server.get("/alerts?kind=job_failed&state=open")["items"]
                                   if name in alert["message"]], 30, "the alert")[0]

    def test_a_webhook_is_told_signed_and_escalated_to_until_somebody_takes_it(self):
        hook = self.hook()
        self.rule("jobs", kinds=["job_failed"], receivers=[self.own("hook")], escalate_ms=1000, escalate_to=[self.own("hook")])
        alert = self.broken_job()
        wait_until(lambda: hook.messages("escalated"), 20, "the escalation")
        for headers, body in hook.calls:
            expected = hmac.new(SECRET.encode(), headers["Weir-Timestamp"].encode() + b"." + body, hashlib.sha256).hexdigest()
            self.assertTrue(hmac.compare_digest(headers["Weir-Signature"], "v1=" + expected))
            self.assertEqual(json.loads(body)["id"], headers["Weir-Delivery"])
            self.assertLess(abs(int(headers["Weir-Timestamp"]) - time.time()), 60)
        self.assertEqual([a["id"] for a in hook.messages("raised")[0]["alerts"]], [alert])
        self.server.weir("alert", "ack", alert, "--note", "I look")
        self.server.weir("alert", "resolve", alert)
        ended = wait_until(lambda: [told for told in hook.messages("resolved") if told["alerts"][0]["id"] == alert], 20, "its end")
        self.assertEqual(ended[0]["alerts"][0]["acknowledged_by"], "admin")
        seen = self.server.get("/alerts/" + alert)
        self.assertEqual((seen["status"], seen["acknowledged_note"], seen["firings"][0]["state"]), ("resolved", "I look", "over"))
        self.assertNotIn(SECRET, json.dumps(self.server.get("/alert-receivers")))

    def test_a_silence_holds_back(self):
        hook = self.hook()
        self.rule("jobs", kinds=["job_failed"], receivers=[self.own("hook")], group_by="none")
        silence = json.loads(self.server.weir("alert", "silence", "--kind", "job_failed", "--for", "1h", "-o", "json")[1])
        self.addCleanup(self.server.weir, "alert", "unsilence", silence["id"], check=False)  # it would hold back others' alerts
        alert = self.broken_job()
        wait_until(lambda: self.server.get("/alerts/" + alert)["status"] == "silenced", 20, "the silence")
        self.assertEqual(hook.calls, [])
        self.server.weir("alert", "unsilence", silence["id"])
        wait_until(lambda: hook.messages("raised"), 20, "the message")

    def test_a_receiver_that_is_down_gets_it_later(self):
        hook = Hook()
        port = hook.port
        hook.stop()
        self.receiver("later", "webhook", {"url": f"http://127.0.0.1:{port}/"})
        status, _, said = self.server.weir("alert", "test", "later", check=False)
        self.assertNotEqual(status, 0)
        self.assertIn("later did not take it", said)
        hook = Hook(port)
        self.addCleanup(hook.stop)
        wait_until(lambda: hook.messages("test"), 30, "the test")

    def test_a_server_that_is_killed_while_it_sends_sends_again_with_the_same_identifier(self):
        hook = self.hook()
        hook.holds.clear()
        self.rule("jobs", kinds=["job_failed"], receivers=[self.own("hook")])
        self.broken_job()
        wait_until(lambda: hook.calls, 20, "the first try")
        self.server.kill()
        hook.holds.set()
        self.server.start()
        wait_until(lambda: len(hook.calls) > 1, 30, "the second try")
        wait_until(lambda: not self.server.get("/alert-deliveries?state=pending")["items"], 20, "all sent")
        identifiers = {headers["Weir-Delivery"] for headers, _ in hook.calls}
        self.assertEqual((len(identifiers), len(hook.calls)), (1, 2))

    @unittest.skipUnless(shutil.which("openssl"), "openssl makes the certificate")
    def test_letters_go_over_starttls_with_a_password(self):
        key, certificate = self.server.root / "mail.key", self.server.root / "mail.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
                        key, "-out", certificate, "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
                       check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        mail = MailServer(context)
        self.addCleanup(mail.server_close)
        self.addCleanup(mail.shutdown)
        password = self.server.root / "mail.password"
        password.write_text("pass word\n")
        options = {"server": f"smtp://localhost:{mail.server_address[1]}", "user": "weir", "password_file": str(password),
                   "from": "weir@example.org", "to": ["ann@example.org", "bob@example.org"], "ca_file": str(certificate)}
        with self.assertRaises(HttpError):
            self.receiver("letters", "email", {**options, "to": ["ann@example.org\r\nBcc: eve@example.org"]})
        self.receiver("letters", "email", options)
        self.assertNotIn("pass word", json.dumps(self.server.get("/alert-receivers/letters")))
        self.server.weir("alert", "test", "letters")
        self.assertEqual(mail.logins, [["weir", "pass word"]])
        self.rule("jobs", kinds=["job_failed"], receivers=["letters"])
        self.broken_job()
        wait_until(lambda: len(mail.letters) > 1, 20, "the letter")
        letter = email.message_from_string(mail.letters[1], policy=email.policy.default)
        self.assertIn("[warning] Job broken-", letter["Subject"])
        self.assertEqual(letter["To"], "ann@example.org, bob@example.org")
        self.assertIn("job_failed", letter.get_content())
        self.assertEqual(letter.defects, [])
        self.assertEqual(len(mail.envelopes[1]), 3)
        # without the authority nothing is sent
        self.receiver("letters", "email", {key: value for key, value in options.items() if key != "ca_file"})
        self.assertNotEqual(self.server.weir("alert", "test", "letters", check=False)[0], 0)
        self.assertEqual(len(mail.letters), 2)

    @unittest.skipUnless(shutil.which("prometheus-alertmanager"), "there is no prometheus-alertmanager")
    def test_a_real_alertmanager_shows_it_and_its_end(self):
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            port = found.getsockname()[1]
        config = self.server.root / "alertmanager.yml"
        config.write_text("route: {receiver: none}\nreceivers: [{name: none}]\n")
        with open(self.server.root / "alertmanager.log", "wb") as log:
            manager = subprocess.Popen(["prometheus-alertmanager", f"--config.file={config}", "--cluster.listen-address=",
                                        f"--storage.path={self.server.root}/am", f"--web.listen-address=127.0.0.1:{port}"],
                                       stdout=log, stderr=log)
        self.addCleanup(manager.wait)
        self.addCleanup(manager.kill)

        def alerts():
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v2/alerts", timeout=5) as answer:
                    return json.load(answer)
            except OSError:
                return None
        wait_until(lambda: alerts() is not None, 30, "the Alertmanager")
        self.receiver("prom", "alertmanager", {"url": f"http://127.0.0.1:{port}"})
        self.rule("jobs", kinds=["job_failed"], receivers=["prom"])
        alert = self.broken_job()
        seen = wait_until(lambda: [a for a in alerts() if a["labels"]["weir_alert"] == alert], 20, "it there")[0]
        self.assertEqual((seen["labels"]["alertname"], seen["labels"]["severity"]), ("job_failed", "warning"))
        self.server.weir("alert", "resolve", alert)
        wait_until(lambda: not [a for a in alerts() if a["labels"]["weir_alert"] == alert], 20, "its end there")

    def test_a_rule_is_set_by_file_and_flags(self):
        hook = self.hook()
        path = pathlib.Path(self.server.root) / "rule.yaml"
        path.write_text("name: filed\nkinds: [drift]\nsubjects: ['ion/door*']\nhold: 5m\nreceivers: [%s]\n"
                        "actions:\n  - kind: retrain\n    pipeline: training\n" % self.own("hook"))
        self.server.weir("alert", "rule", "set", "-f", str(path))
        self.server.weir("alert", "rule", "set", "filed", "--severity", "warning", "--group", "30s", "--do", "roll-back")
        rule = self.server.get("/alert-rules/filed")
        self.assertEqual((rule["kinds"], rule["hold_ms"], rule["group_ms"], rule["severities"], rule["actions"]),
                         (["drift"], 300000, 30000, ["warning"], [{"kind": "roll-back"}]))
        self.assertIn("filed", self.server.weir("alert", "rule", "get")[1])
        self.server.weir("alert", "rule", "delete", "filed")
        self.server.weir("alert", "receiver", "set", "by-flags", "--kind", "email", "--set", "server=smtp://localhost:25",
                         "--set", "from=a@h", "--set", "to=b@h", "--set", "to=c@h")
        self.assertEqual(self.server.get("/alert-receivers/by-flags")["options"]["to"], ["b@h", "c@h"])
        self.assertEqual(hook.calls, [])


if __name__ == "__main__":
    harness.main()

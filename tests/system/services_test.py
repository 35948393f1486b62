"""Services: a program with a page and a WebSocket behind the proxy; who gets in, what passes, what is left when it stops."""
import base64
import hashlib
import http.client
import json
import os
import pathlib
import signal
import socket
import ssl
import subprocess
import threading
import unittest
import urllib.parse

from harness import HttpError, Server, main, wait_until

# A program such as people have: HTTP with bodies of any length, and a WebSocket that echoes, with nothing but Python.
PROGRAM = r'''
import base64, hashlib, http.server, json, os, pathlib, socketserver, sys

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, body, status=200, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.headers.get("Upgrade") == "websocket":
            key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
            self.send_response(101)
            self.send_header("Upgrade", "websocket")
            self.send_header("Connection", "Upgrade")
            self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
            self.end_headers()
            while data := self.connection.recv(65536):
                self.connection.sendall(data)
            self.close_connection = True
        elif self.path == "/big":
            self.send_response(200)
            self.send_header("Content-Length", str(40 << 20))
            self.end_headers()
            for _ in range(40):
                self.wfile.write(b"x" * (1 << 20))
        elif self.path == "/note":
            note = pathlib.Path(os.environ["WEIR_FOLDER"], "note")
            self.answer(note.read_bytes() if note.exists() else b"none")
        else:
            about = {"path": self.path, "headers": dict(self.headers.items()), "env": dict(os.environ)}
            self.answer(json.dumps(about).encode(), Set_Cookie="weir_session=mine; Path=/", X_Frame_Options="ALLOWALL")

    def do_PUT(self):
        n, digest = int(self.headers["Content-Length"]), hashlib.sha256()
        while n > 0 and (data := self.rfile.read(min(n, 65536))):
            digest.update(data)
            n -= len(data)
        pathlib.Path(os.environ["WEIR_FOLDER"], "note").write_bytes(digest.hexdigest().encode())
        self.answer(digest.hexdigest().encode())

    def log_message(self, *_):
        pass

class Program(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True

Program(("127.0.0.1", int(os.environ["WEIR_PORT"])), Handler).serve_forever()
'''


class Browser:
    """Cookies of one host, and nothing else of a browser."""

    def __init__(self, url, cafile=None):
        self.url, self.cookies = urllib.parse.urlsplit(url), {}
        self.context = ssl.create_default_context(cafile=cafile) if cafile else None

    def connect(self):
        if self.context:
            return http.client.HTTPSConnection(self.url.hostname, self.url.port, timeout=60, context=self.context)
        return http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=60)

    def ask(self, method, path, body=None, **headers):
        connection = self.connect()
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.cookies:
            headers.setdefault("Cookie", "; ".join(f"{n}={v}" for n, v in self.cookies.items()))
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        answer.text = answer.read()
        for line in answer.headers.get_all("Set-Cookie") or []:
            name, _, value = line.split(";")[0].partition("=")
            self.cookies[name] = value
        connection.close()
        return answer

    def enter(self, url):
        place = urllib.parse.urlsplit(url)
        answer = self.ask("GET", f"{place.path}?{place.query}")
        assert answer.status == 303, (answer.status, answer.text)
        return self


def make_certificate(folder):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,DNS:*.localhost,IP:127.0.0.1", "-keyout",
                    str(folder / "key.pem"), "-out", str(folder / "cert.pem")], check=True, capture_output=True)
    return str(folder / "cert.pem"), str(folder / "key.pem")


class ServicesTest(unittest.TestCase):
    def start(self, *flags):
        self.server = Server("--services-listen", "127.0.0.1:0", *flags)
        self.addCleanup(self.server.stop)
        (self.server.root / "program.py").write_text(PROGRAM)
        return self.server.start()

    def run_program(self, name="web", *flags):
        program = str(self.server.root / "program.py")
        self.server.weir("service", "run", name, "--wait", *flags, "--", "python3", program)
        return self.wait_for(name)

    def wait_for(self, name):
        """Until its program listens."""
        service = self.server.get(f"/services?name={name}")["items"][0]
        browser = Browser(service["url"])
        wait_until(lambda: browser.ask("GET", self.path(service), Authorization="Bearer " + self.server.token).status == 200, 30,
                   "the program to listen")
        return service

    @staticmethod
    def path(service, rest=""):
        return urllib.parse.urlsplit(service["url"]).path + rest

    def ticket(self, service):
        return self.server.post(f"/services/{service['id']}/ticket")["url"]

    def websocket(self, browser, path, origin):
        """The socket, once the handshake is over, or the answer's first line."""
        sock = socket.create_connection((browser.url.hostname, browser.url.port), timeout=60)
        sock.sendall(f"GET {path} HTTP/1.1\r\nHost: {browser.url.netloc}\r\nOrigin: {origin}\r\nConnection: Upgrade\r\n"
                     f"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {base64.b64encode(b'k' * 16).decode()}\r\n"
                     f"Cookie: {'; '.join(f'{n}={v}' for n, v in browser.cookies.items())}\r\n\r\n".encode())
        head = b""
        while b"\r\n\r\n" not in head and (data := sock.recv(1)):
            head += data
        self.addCleanup(sock.close)
        return sock, head.decode()

    def test_what_passes_and_what_does_not(self):
        self.start()
        service = self.run_program()
        browser = Browser(service["url"]).enter(self.ticket(service))
        origin = f"http://{browser.url.netloc}"
        seen = json.loads(browser.ask("GET", self.path(service, "a/b?c=d"), Cookie="weir_session=console; " + "; ".join(
            f"{n}={v}" for n, v in browser.cookies.items()), X_Forwarded_For="6.6.6.6").text)
        self.assertEqual(seen["path"], "/a/b?c=d")
        self.assertEqual(seen["headers"]["X-Weir-User"], "admin")
        self.assertEqual(seen["headers"]["X-Weir-Secret"], seen["env"]["WEIR_SERVICE_SECRET"])
        self.assertEqual(seen["headers"]["X-Forwarded-For"], "127.0.0.1")
        self.assertNotIn("Cookie", seen["headers"])
        self.assertNotIn("Authorization", seen["headers"])
        self.assertEqual(seen["env"]["WEIR_SERVICE_PATH"], self.path(service))
        # Its own cookie has another name and no other path, and comes back under its own.
        self.assertIn(f"weir-svc-{service['id']}-weir_session", browser.cookies)
        self.assertEqual(json.loads(browser.ask("GET", self.path(service)).text)["headers"]["Cookie"], "weir_session=mine")
        # A body and an answer of tens of megabytes, in bounded memory.
        body = os.urandom(1 << 20) * 30
        put = browser.ask("PUT", self.path(service), body, Origin=origin)
        self.assertEqual(put.text.decode(), hashlib.sha256(body).hexdigest())
        self.assertEqual(len(browser.ask("GET", self.path(service, "big")).text), 40 << 20)
        # It keeps a tenth of a CPU, and its agent says what it uses.
        job, = self.server.get("/top/jobs")["items"]
        self.assertEqual((job["name"], job["cpus_used"]), ("web", 0.1))
        wait_until(lambda: self.server.get("/top/jobs")["items"][0]["cpus_busy"] is not None, 30, "the agent to say what is used")
        self.assertRegex(self.server.weir("top")[1], r"(?s)CPUS KEPT.*\n\S+ +ready +1 +\d+ +0\.1 ")
        status = pathlib.Path(f"/proc/{self.server.process.pid}/status").read_text()
        memory = int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])
        self.assertLess(memory, 200 << 10)
        # A page of another site can send nothing, and no WebSocket either; its own can.
        self.assertEqual(browser.ask("PUT", self.path(service), b"x", Origin="http://evil.example").status, 403)
        self.assertIn(" 403 ", self.websocket(browser, self.path(service, "ws"), "http://evil.example")[1])
        sock, head = self.websocket(browser, self.path(service, "ws"), origin)
        self.assertIn(" 101 ", head)
        sent, got = os.urandom(3 << 20), bytearray()
        threading.Thread(target=sock.sendall, args=(sent,), daemon=True).start()
        while len(got) < len(sent) and (data := sock.recv(1 << 16)):
            got += data
        self.assertEqual(bytes(got), sent)
        # Two lengths, and a length with chunks, are refused.
        for lines in ("Content-Length: 1\r\nContent-Length: 2", "Content-Length: 1\r\nTransfer-Encoding: chunked"):
            with socket.create_connection((browser.url.hostname, browser.url.port), timeout=30) as raw:
                raw.sendall(f"PUT {self.path(service)} HTTP/1.1\r\nHost: {browser.url.netloc}\r\n{lines}\r\n\r\n".encode())
                self.assertIn(b" 400 ", raw.recv(4096))

    def test_who_gets_in_and_what_is_left(self):
        server = self.start()
        for name, project in (("ada", "red"), ("eve", "blue")):
            server.post("/projects", {"name": project})
            server.post("/users", {"name": name, "kind": "person", "role": "member"})
            server.request("PUT", f"/api/v1/projects/{project}/members/user/{name}", {"role": "ml-engineer"})
        tokens = {name: server.post("/tokens", {"user": name, "name": "t", "role": "ml-engineer"})["secret"] for name in ("ada", "eve")}
        service = self.run_program()
        browser = Browser(service["url"])
        self.assertEqual(browser.ask("GET", self.path(service)).status, 401)
        for name in tokens:
            self.assertEqual(browser.ask("GET", self.path(service), Authorization="Bearer " + tokens[name]).status, 404)
            with self.assertRaises(HttpError) as refused:
                server.request("GET", f"/api/v1/services/{service['id']}", token=tokens[name])
            self.assertEqual(refused.exception.code, 404)
        # A person is led to the console and back; the ticket is good once, and for the browser that asked.
        login = server.post("/session/link")["url"].split("link=")[1]
        console = Browser(server.url)
        console.ask("POST", "/login", "link=" + login, Origin=server.url)
        asked = browser.ask("GET", self.path(service, "x"), Accept="text/html")
        self.assertEqual(asked.status, 303)
        place = urllib.parse.urlsplit(asked.headers["Location"])
        self.assertEqual(f"{place.scheme}://{place.netloc}", server.url)
        sent = console.ask("GET", f"{place.path}?{place.query}")
        self.assertEqual(sent.status, 303)
        entry = urllib.parse.urlsplit(sent.headers["Location"])
        self.assertEqual(Browser(service["url"]).ask("GET", f"{entry.path}?{entry.query}").status, 401)
        again = browser.ask("GET", f"{entry.path}?{entry.query}")
        self.assertEqual((again.status, again.headers["Location"]), (303, self.path(service, "x")))
        self.assertEqual(browser.ask("GET", f"{entry.path}?{entry.query}").status, 401)
        self.assertEqual(browser.ask("GET", self.path(service)).status, 200)
        # The server dies and comes back; the program does not notice, and the login is still good.
        browser.ask("PUT", self.path(service), b"kept", Origin=f"http://{browser.url.netloc}")
        pid = json.loads(browser.ask("GET", self.path(service)).text)["env"]["WEIR_ATTEMPT"]
        port = server.url.rsplit(":", 1)[1]
        agent = server.agent()
        os.kill(agent, signal.SIGSTOP)  # where the program is, the database says: the agent need not have called
        server.kill()
        server.start("--listen", f"127.0.0.1:{port}", "--services-listen", browser.url.netloc)
        self.assertEqual(browser.ask("GET", self.path(service)).status, 200)
        os.kill(agent, signal.SIGCONT)
        self.assertEqual(json.loads(browser.ask("GET", self.path(service)).text)["env"]["WEIR_ATTEMPT"], pid)
        # Logging out of the console is logging out of the service.
        csrf = json.loads(console.ask("GET", "/api/v1/session").text)["csrf"]
        console.ask("DELETE", "/api/v1/session", X_Weir_Csrf=csrf)
        self.assertEqual(browser.ask("GET", self.path(service)).status, 401)
        # Nobody uses it any more: it is stopped; its folder and its address stay.
        server.weir("service", "stop", "web")
        wait_until(lambda: server.get(f"/services/{service['id']}")["state"] == "STOPPED", 30, "its end")
        stranger = Browser(service["url"])
        bearer = "Bearer " + server.token
        self.assertEqual(stranger.ask("GET", self.path(service), Authorization=bearer).status, 409)
        server.weir("service", "start", "web")
        started = self.wait_for("web")
        self.assertEqual(started["url"], service["url"])
        self.assertEqual(stranger.ask("GET", self.path(service, "note"), Authorization=bearer).text.decode(),
                         hashlib.sha256(b"kept").hexdigest())

    def test_hosts_of_their_own_over_tls_and_an_idle_one_is_stopped(self):
        folder = self.start_tls()
        service = self.run_program("web", "--idle-after", "11s", "--network", "none") if self.has_networks() else \
            self.run_program("web", "--idle-after", "11s")
        self.assertTrue(service["url"].startswith(f"https://{service['id']}.localhost:"))
        browser = Browser(service["url"], cafile=folder)
        browser.url = urllib.parse.urlsplit(service["url"].replace(f"{service['id']}.localhost", "127.0.0.1"))
        host = urllib.parse.urlsplit(service["url"]).netloc
        entry = urllib.parse.urlsplit(self.ticket(service))
        entered = browser.ask("GET", f"{entry.path}?{entry.query}", Host=host)
        self.assertEqual(entered.status, 303)
        self.assertIn("__Host-weir_service", browser.cookies)
        self.assertEqual(json.loads(browser.ask("GET", "/deep", Host=host).text)["path"], "/deep")
        self.assertEqual(browser.ask("GET", f"/services/{service['id']}/", Host=browser.url.netloc).status, 404)
        sock = browser.context.wrap_socket(socket.create_connection(("127.0.0.1", browser.url.port), timeout=60), server_hostname="127.0.0.1")
        self.addCleanup(sock.close)
        sock.sendall((f"GET /ws HTTP/1.1\r\nHost: {host}\r\nOrigin: https://{host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                      f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {base64.b64encode(b'k' * 16).decode()}\r\n"
                      f"Cookie: __Host-weir_service={browser.cookies['__Host-weir_service']}\r\n\r\n").encode())
        head = b""
        while b"\r\n\r\n" not in head and (data := sock.recv(1)):
            head += data
        self.assertIn(b" 101 ", head)
        sock.sendall(b"frame")
        got = b""
        while len(got) < 5 and (data := sock.recv(5)):
            got += data
        self.assertEqual(got, b"frame")
        sock.close()
        state = wait_until(lambda: (one := self.server.get(f"/services/{service['id']}"))["state"] in ("STOPPING", "STOPPED") and one, 60,
                           "the idle service to be stopped")
        self.assertIn("nobody has used it for 11 s", state["why"] or state["reason"])

    def has_networks(self):
        node = wait_until(lambda: self.server.get("/nodes")["items"], 30, "a node")[0]
        return "namespaces" not in json.dumps((node["inventory"] or {}).get("isolation", {}).get("missing", []))

    def start_tls(self):
        self.server = Server()
        self.addCleanup(self.server.stop)
        cert, key = make_certificate(self.server.root)
        (self.server.root / "program.py").write_text(PROGRAM)
        os.environ["SSL_CERT_FILE"] = cert
        self.addCleanup(os.environ.pop, "SSL_CERT_FILE")
        self.server.flags = ("--services-listen", "127.0.0.1:0", "--services-domain", "localhost", "--tls-cert", cert, "--tls-key", key,
                             "--ca-file", cert)
        self.server.start()
        original = self.server.weir
        self.server.weir = lambda *words, **more: original(*words[:2], "--ca-file", cert, *words[2:], **more)
        self.wait_for = lambda name: wait_until(
            lambda: (one := self.server.get(f"/services?name={name}")["items"][0])["state"] == "RUNNING" and self.listens(one, cert) and one,
            30, "the program to listen")
        return cert

    def listens(self, service, cert):
        browser = Browser(service["url"], cafile=cert)
        host = browser.url.netloc
        browser.url = urllib.parse.urlsplit(service["url"].replace(f"{service['id']}.localhost", "127.0.0.1"))
        return browser.ask("GET", "/", Host=host, Authorization="Bearer " + self.server.token).status == 200


if __name__ == "__main__":
    main()

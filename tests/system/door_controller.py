"""A door's controller, as a program beside Weir should be: it carries no command out twice, and none late.

    door_controller.py FOLDER mqtt PORT TOPIC       TOPIC/command in, TOPIC/reply out; TOPIC/state and TOPIC/availability
    door_controller.py FOLDER webhook PORT SECRET   POST, signed as Standard Webhooks say

FOLDER/opened.jsonl is what it did, one line for each command, and all that it has to remember: a line is the deed.
It writes "ready" once it listens.
"""
import base64
import hmac
import http.server
import json
import os
import pathlib
import socket
import sys
import time

REMEMBERED = 256


class Controller:
    def __init__(self, folder):
        self.path = pathlib.Path(folder, "opened.jsonl")
        lines = self.path.read_bytes().split(b"\n") if self.path.exists() else []
        whole = [json.loads(line) for line in lines[:-1]]  # what stands behind the last newline was being written
        if lines and lines[-1]:
            os.truncate(self.path, sum(len(line) + 1 for line in lines[:-1]))
        self.ids = [one["id"] for one in whole][-REMEMBERED:]
        self.highest = {}
        for one in whole:
            self.highest[one["replica"]] = max(one["seq"], self.highest.get(one["replica"], 0))

    def take(self, command):
        """The answer, once all that it says is on the disk."""
        now = time.time() * 1000
        age = now - command["issued_ms"]
        if command["id"] in self.ids:
            word = "repeated"
        elif not -command["valid_ms"] < age < command["valid_ms"]:
            word = "late"
        elif command["verb"] not in ("open", "hold", "lock") or command["seq"] <= self.highest.get(command["replica"], 0):
            word = "refused"
        else:
            word = "done"
            with self.path.open("ab") as file:
                file.write(json.dumps({**command, "done_ms": now}).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
            self.ids = [*self.ids, command["id"]][-REMEMBERED:]
            self.highest[command["replica"]] = command["seq"]
        return {"id": command["id"], "answer": word, "at": int(now)}


# ---- MQTT 5, as much as it takes --------------------------------------------------------------------------------------

def number(value):
    out = b""
    while True:
        value, low = value >> 7, value & 0x7f
        out += bytes([low | 0x80 if value else low])
        if not value:
            return out


def text(value):
    value = value if isinstance(value, bytes) else value.encode()
    return len(value).to_bytes(2, "big") + value


class Mqtt:
    def __init__(self, port, will=None):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=5)
        self.socket.settimeout(None)
        last = b"\0" + text(will[0]) + text(will[1]) if will else b""
        self.send(0x10, text("MQTT") + b"\5" + bytes([0x2e if will else 0x02]) + (5).to_bytes(2, "big") + b"\0" +
                  text("") + last)
        kind, body = self.read()
        if kind != 0x20 or body[1] != 0:
            raise OSError(f"the broker refuses: {body!r}")

    def send(self, kind, body):
        self.socket.sendall(bytes([kind]) + number(len(body)) + body)

    def take(self, n):
        data = b""
        while len(data) < n:
            more = self.socket.recv(n - len(data))
            if not more:
                raise OSError("the broker is gone")
            data += more
        return data

    def read(self):
        kind, length, shift = self.take(1)[0], 0, 0
        while True:
            byte = self.take(1)[0]
            length |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return kind, self.take(length)

    def subscribe(self, topic):
        self.send(0x82, b"\0\1\0" + text(topic) + b"\1")

    def publish(self, topic, payload, retain=False):
        self.send(0x32 | retain, text(topic) + b"\0\7\0" + payload.encode())

    def messages(self):
        """(topic, payload, retained) for ever."""
        while True:
            kind, body = self.read()
            if kind & 0xf0 != 0x30:
                continue
            at = 2 + int.from_bytes(body[:2], "big")
            topic = body[2:at].decode()
            if kind & 6:
                self.send(0x40, body[at:at + 2])
                at += 2
            at += 1 + body[at]  # properties: fewer than 128 bytes
            yield topic, body[at:].decode(), bool(kind & 1)

    def keep(self, seconds=2):
        """A broker that hears nothing for 7 s lets go."""
        import threading
        def ping():
            while True:
                time.sleep(seconds)
                try:
                    self.send(0xc0, b"")
                except OSError:
                    return
        threading.Thread(target=ping, daemon=True).start()


def serve_mqtt(controller, port, topic):
    while True:
        try:
            broker = Mqtt(port, (f"{topic}/availability", "offline"))
            broker.keep()
            broker.subscribe(f"{topic}/command")
            broker.publish(f"{topic}/availability", "online", retain=True)
            broker.publish(f"{topic}/state", "LOCKED", retain=True)
            print("ready", flush=True)
            for _, payload, _ in broker.messages():
                broker.publish(f"{topic}/reply", json.dumps(controller.take(json.loads(payload))))
        except OSError:
            time.sleep(0.1)


# ---- webhook ------------------------------------------------------------------------------------------------------------

def serve_webhook(controller, port, secret):
    key = base64.b64decode(secret[6:]) if secret.startswith("whsec_") else secret.encode()

    class Hook(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            signed = f"{self.headers['webhook-id']}.{self.headers['webhook-timestamp']}.".encode() + body
            wanted = "v1," + base64.b64encode(hmac.new(key, signed, "sha256").digest()).decode()
            is_right = wanted in (self.headers["webhook-signature"] or "").split(" ") and \
                abs(time.time() - int(self.headers["webhook-timestamp"])) < 300
            answer = json.dumps(controller.take(json.loads(body)["data"]) if is_right else {}).encode()
            self.send_response(200 if is_right else 401)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *words):
            pass

    server = http.server.HTTPServer(("127.0.0.1", port), Hook)
    print("ready", server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    {"mqtt": serve_mqtt, "webhook": serve_webhook}[sys.argv[2]](Controller(sys.argv[1]), int(sys.argv[3]), sys.argv[4])

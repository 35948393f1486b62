"""HTTP/1.1 over TLS, as little as the server needs: requests with a length or in chunks, answers, and streams in chunks."""
import contextlib
import gzip
import json
import select
import socket
import ssl
import threading
import urllib.parse
import uuid

HEAD_MAX = 64 * 1024
BODY_MAX = 3 * 1024 * 1024
GZIP_LEAST = 128 * 1024  # the real server compresses answers from this size on
REASONS = {200: "OK", 201: "Created", 202: "Accepted", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found",
           405: "Method Not Allowed", 406: "Not Acceptable", 409: "Conflict", 410: "Gone", 413: "Request Entity Too Large",
           415: "Unsupported Media Type", 422: "Unprocessable Entity", 429: "Too Many Requests", 500: "Internal Server Error",
           503: "Service Unavailable", 504: "Gateway Timeout"}


class Closed(Exception):
    """The client has gone, or the connection is to be cut."""


class Malformed(Exception):
    """What came is no HTTP."""


class Request:
    def __init__(self, method, target, headers):
        self.method, self.target, self.headers = method, target, headers
        path, _, query = target.partition("?")
        self.path = urllib.parse.unquote(path)
        self.query_text = query
        self.query = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        self.body = b""
        self.duplicates = []  # keys that an object of the body has twice
        self.is_too_large = False
        self.certificate = None

    def what(self):
        """How faults see it."""
        return f"{self.method} {self.target}"


class Connection:
    """One client's connection. It answers with `answer`, or begins a stream that chunks follow."""

    def __init__(self, sock):
        self.sock = sock
        self.buffer = b""
        self.has_begun = False  # an answer
        self.record = None  # gets the status of the answer
        self.warnings = []
        self.takes_gzip = False
        self.is_cut = False

    # ---- reading ------------------------------------------------------------------------------------

    def receive(self):
        try:
            more = self.sock.recv(65536)
        except (OSError, ssl.SSLError) as problem:
            raise Closed from problem
        if not more:
            raise Closed
        self.buffer += more

    def take(self, n):
        while len(self.buffer) < n:
            self.receive()
        taken, self.buffer = self.buffer[:n], self.buffer[n:]
        return taken

    def take_line(self):
        while b"\n" not in self.buffer:
            if len(self.buffer) > HEAD_MAX:
                raise Malformed("a line that does not end")
            self.receive()
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line.rstrip(b"\r").decode("latin-1")

    def read(self):
        """The next request."""
        parts = self.take_line().split(" ")
        if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
            raise Malformed("no request line")
        headers = {}
        while line := self.take_line():
            name, colon, value = line.partition(":")
            if not colon:
                raise Malformed("no header line")
            headers[name.strip().lower()] = value.strip()
        request = Request(parts[0], parts[1], headers)
        request.certificate = self.sock.getpeercert() or None
        self.read_body(request)
        self.has_begun, self.warnings = False, []
        self.takes_gzip = "gzip" in headers.get("accept-encoding", "")
        return request

    def read_body(self, request):
        headers = request.headers
        length = int(headers.get("content-length", 0))
        if headers.get("expect", "").lower() == "100-continue":
            self.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        if headers.get("transfer-encoding", "").lower() == "chunked":
            request.body = self.read_chunks(request)
        elif length > BODY_MAX:
            request.is_too_large = True
            self.discard(length)
        elif length:
            request.body = self.take(length)

    def read_chunks(self, request):
        body = b""
        while size := int(self.take_line().partition(";")[0], 16):
            if len(body) + size > BODY_MAX:
                request.is_too_large = True
                self.discard(size)
            else:
                body += self.take(size)
            self.take_line()
        while self.take_line():
            pass
        return body

    def discard(self, n):
        """Read a body that is too large, so that the client comes to read the answer."""
        while n > 0:
            if not self.buffer:
                self.receive()
            taken = min(n, len(self.buffer))
            self.buffer = self.buffer[taken:]
            n -= taken

    def has_left(self):
        """Has the client closed the connection? What it sent meanwhile is kept."""
        if self.sock.pending() or select.select([self.sock], [], [], 0)[0]:
            try:
                self.receive()
            except Closed:
                return True
        return False

    # ---- writing ------------------------------------------------------------------------------------

    def send(self, data):
        try:
            self.sock.sendall(data)
        except (OSError, ssl.SSLError) as problem:
            raise Closed from problem

    def head(self, code, headers):
        self.has_begun = True
        if self.record is not None:
            self.record.status = code
        lines = [f"HTTP/1.1 {code} {REASONS.get(code, 'Other')}", f"Audit-Id: {uuid.uuid4()}", "Cache-Control: no-cache, private"]
        lines += [f"{name}: {value}" for name, value in headers]
        lines += [f'Warning: 299 - {json.dumps(warning)}' for warning in self.warnings]
        return "\r\n".join(lines + ["", ""]).encode("latin-1", "replace")

    def answer(self, code, body, kind="application/json", headers=()):
        if self.takes_gzip and len(body) >= GZIP_LEAST:
            body = gzip.compress(body, 1)
            headers = [*headers, ("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding")]
        head = self.head(code, [("Content-Type", kind), ("Content-Length", len(body)), *headers])
        self.send(head + body)

    def answer_part(self, code, body):
        """Begin an answer and break it off in its middle."""
        self.send(self.head(code, [("Content-Type", "application/json"), ("Content-Length", len(body))]) + body[:len(body) // 2])

    def begin_stream(self, kind="application/json"):
        self.send(self.head(200, [("Content-Type", kind), ("Transfer-Encoding", "chunked")]))

    def chunk(self, data):
        self.send(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def part_of_chunk(self, data):
        """A chunk that breaks off in its middle."""
        self.send(f"{len(data):x}\r\n".encode() + data[:len(data) // 2])

    def end_stream(self):
        self.send(b"0\r\n\r\n")

    def cut(self):
        """Close without an end of TLS, as a connection that breaks."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(OSError):
            self.sock.close()


class Listener:
    """Accepts connections and runs `serve` of each in a thread of its own. It can go away and come back on its port."""

    def __init__(self, context, serve, wake):
        self.context, self.serve, self.wake = context, serve, wake
        self.lock = threading.Lock()
        self.connections = set()
        self.socket = None
        self.port = 0
        self.threads = set()

    def open(self):
        listening = socket.socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", self.port))
        listening.listen(128)
        self.port = listening.getsockname()[1]
        self.socket = listening
        self.start_thread(self.accept, listening)

    def start_thread(self, function, *arguments):
        thread = threading.Thread(target=function, args=arguments, daemon=True)
        with self.lock:
            self.threads = {one for one in self.threads if one.is_alive()} | {thread}
        thread.start()

    def accept(self, listening):
        while True:
            try:
                sock, _ = listening.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.start_thread(self.run, sock)

    def run(self, sock):
        """One connection from its handshake to its end."""
        try:
            sock.settimeout(30)
            secured = self.context.wrap_socket(sock, server_side=True)
            secured.settimeout(None)
        except (OSError, ssl.SSLError):
            sock.close()
            return
        connection = Connection(secured)
        with self.lock:
            self.connections.add(connection)
        try:
            self.serve(connection)
        except (Closed, Malformed, ValueError, OSError):
            pass
        finally:
            with self.lock:
                self.connections.discard(connection)
            connection.cut()

    def close(self):
        """Close the port and all connections."""
        if self.socket is not None:
            with contextlib.suppress(OSError):
                self.socket.shutdown(socket.SHUT_RDWR)
            self.socket.close()
            self.socket = None
        with self.lock:
            connections, threads = list(self.connections), list(self.threads)
        for connection in connections:
            connection.is_cut = True
            with contextlib.suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)
        self.wake()
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join(timeout=5)

"""The surroundings of a gateway: a phone's connection, a backend that records requests, and the wire to the auth service."""

import http.client
import socket
import socketserver
import subprocess
import threading

import h2.connection
import h2.events


def end(process):
    """Ends a process. One that does not end in time is killed, and is an error."""
    process.terminate()
    try:
        process.wait(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise


class Server(socketserver.ThreadingTCPServer):
    """A server on a free port, in threads."""

    allow_reuse_address, daemon_threads = True, True

    def __init__(self, handle):
        handler = type("Handler", (socketserver.BaseRequestHandler,), {"handle": lambda connection: handle(connection.request)})
        super().__init__(("127.0.0.1", 0), handler)
        self.port = self.server_address[1]
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        """Ignores the error: a gateway may close its connection at any time."""


class Received:
    """A request as the backend got it."""

    def __init__(self, stream):
        line = stream.readline()
        if not line:
            raise ConnectionError
        self.method, self.target, _ = line.decode("latin-1").split(" ")
        self.headers = []
        while (line := stream.readline()) not in (b"\r\n", b""):
            name, _, value = line.decode("latin-1").rstrip("\r\n").partition(":")
            self.headers.append((name.lower(), value.strip()))
        if "chunked" in self.values("transfer-encoding"):
            self.body = b""
            while size := int(stream.readline(), 16):
                self.body += stream.read(size)
                stream.readline()
            stream.readline()
        else:
            self.body = stream.read(int("".join(self.values("content-length")) or 0))

    def values(self, name):
        """The non-empty values of a header, also under the names that CGI maps to it."""
        return [value for known, value in self.headers if known.replace("_", "-") == name and value]


class Backend:
    """Records each request before it answers."""

    def __init__(self):
        self.received, self.answers = [], True
        self.server = Server(self.serve)
        self.port = self.server.port

    def serve(self, connection):
        with connection.makefile("rb") as stream:
            while True:
                request = Received(stream)
                self.received.append(request)
                if not self.answers:
                    return
                if "websocket" in request.values("upgrade"):
                    connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
                    while data := connection.recv(1000):
                        connection.sendall(data.upper())
                    return
                body = b"" if request.method == "HEAD" else b"done"
                connection.sendall(b"HTTP/1.1 200 OK\r\nX-Backend: yes\r\nContent-Length: 4\r\n\r\n" + body)

    def take(self):
        """The requests that were received since the last call."""
        taken, self.received = self.received, []
        return taken


class Wire:
    """The connection from the gateway to the auth service. It can lose answers, be cut, or be silent."""

    def __init__(self, host):
        self.place = host.rsplit(":", 1)
        self.state, self.asked = "whole", 0
        self.server = Server(self.serve)
        self.port = self.server.port

    def serve(self, gateway):
        if self.state == "cut":
            return
        if self.state == "silent":
            while gateway.recv(65536):
                pass
            return
        with socket.create_connection(self.place) as service:
            threading.Thread(target=self.forward, args=(gateway, service), daemon=True).start()
            while data := service.recv(65536):
                if self.state == "loses answers":
                    break
                gateway.sendall(data)
            for end in (gateway, service):
                end.shutdown(socket.SHUT_RDWR)

    def forward(self, gateway, service):
        try:
            # A gateway may keep several connections from before the state changed.
            while (data := gateway.recv(65536)) and self.state != "cut":
                if self.state != "silent":
                    self.asked += data.count(b" HTTP/1.1\r\n")
                    service.sendall(data)
            service.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


class Answer:
    """The answer that the phone gets."""

    def __init__(self, status, headers, body=b""):
        self.status, self.body = status, body
        self.headers = {name.lower(): value for name, value in headers}

    def __repr__(self):
        return f"{self.status} {self.headers} {self.body[:200]}"


class Phone:
    """Sends requests with exactly the given bytes."""

    def __init__(self, port):
        self.port = port

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=20)

    @staticmethod
    def head(method, target, headers, *more):
        """The request line and the headers, as bytes. `headers` are pairs or a dictionary."""
        pairs = headers.items() if isinstance(headers, dict) else headers
        host = [] if any(name.lower() == "host" for name, _ in pairs) else ["Host: api.example.com"]
        lines = [f"{method} {target} HTTP/1.1", *host, *(f"{name}: {value}" for name, value in pairs), *more]
        return "".join(f"{line}\r\n" for line in lines).encode("latin-1") + b"\r\n"

    @staticmethod
    def answer(connection, method="GET"):
        response = http.client.HTTPResponse(connection, method=method)
        response.begin()
        return Answer(response.status, response.getheaders(), response.read())

    def send(self, method, target, headers, body=b"", chunked=False):
        with self.connect() as connection:
            if chunked:
                half = len(body) // 2
                connection.sendall(self.head(method, target, headers, "Transfer-Encoding: chunked"))
                for part in (body[:half], body[half:]):
                    if part:
                        connection.sendall(b"%x\r\n%b\r\n" % (len(part), part))
                connection.sendall(b"0\r\n\r\n")
            else:
                length = [f"Content-Length: {len(body)}"] if body or method in ("POST", "PUT") else []
                try:
                    connection.sendall(self.head(method, target, headers, *length) + body)
                except (BrokenPipeError, ConnectionResetError):
                    pass  # A gateway may answer before it has read a large body.
            return self.answer(connection, method)

    def send_http2(self, method, target, headers, body=b"", has_length=True):
        """Sends a request over HTTP/2 without TLS. If `has_length` is false, it has no Content-Length. Reads the answer even if the
        server closes the stream before it has read the body (RFC 9113, section 8.1); curl 7.88 sometimes loses such an answer.
        """
        pairs = [(":method", method), (":scheme", "http"), (":authority", "api.example.com"), (":path", target),
                 *((name.lower(), value) for name, value in headers.items())]
        if body and has_length:
            pairs.append(("content-length", str(len(body))))
        http2, answer = h2.connection.H2Connection(), None
        http2.initiate_connection()
        http2.send_headers(1, pairs, end_stream=has_length and not body)
        with self.connect() as connection:
            connection.sendall(http2.data_to_send())
            if body or not has_length:
                http2.send_data(1, body, end_stream=True)
                connection.sendall(http2.data_to_send())
            while data := connection.recv(65536):
                for event in http2.receive_data(data):
                    if isinstance(event, h2.events.ResponseReceived):
                        fields = dict(event.headers)
                        answer = Answer(int(fields.pop(b":status")), [(name.decode(), fields[name].decode()) for name in fields])
                    elif isinstance(event, h2.events.DataReceived):
                        answer.body += event.data
                    elif isinstance(event, (h2.events.StreamEnded, h2.events.StreamReset)) and answer:
                        return answer
                    elif isinstance(event, h2.events.StreamReset):
                        raise ConnectionError(f"{method} {target}: {event}")
                connection.sendall(http2.data_to_send())
        raise ConnectionError(f"{method} {target}: the connection ended before the answer")

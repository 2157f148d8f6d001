#!/usr/bin/env python3
"""Runs docs/vectors/backend.json against a subject: a small server with one of the libraries in it.

    Backends/testing/drive.py NAME --hides "empty query" --hides … -- COMMAND…

The subject reads one JSON line (`service`, `credential`, `quick_timeout`, `instances`), listens on loopback, and prints
`{"port": N}`. The first label of the Host header chooses the instance. Behind the middleware its app answers 200 with `identity`,
`observed`, `body` (base64) and `reserved` (names of identity headers that reached it). Then it reads JSON lines about tokens, and
answers each with one line. The driver plays the service: it compares the questions with the vectors, and answers from them.
--hides names what the subject's server does not show to an app. The cases with that value of `hidden` are skipped.
"""

import argparse
import base64
import contextlib
import json
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
VECTORS = json.loads((HERE.parents[1] / "docs/vectors/backend.json").read_text())
TOKENS = json.loads((HERE.parents[1] / "docs/vectors/tokens.json").read_text())
CREDENTIAL = "sk-of-the-drivers-own-0123456789"
QUICK_TIMEOUT = 0.5
UUID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


class Service:
    """Imitates the auth service, with the faults that a case of the vectors asks for."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.asked, self.answers, self.key_set, self.problems = [], [], (None, None), []
        self.fetches = self.connections = 0
        self.stopped = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    def begin(self, answers):
        self.asked, self.answers = [], list(answers)

    def _listen(self):
        while True:
            connection, _ = self.listener.accept()
            self.connections += 1
            threading.Thread(target=self._serve, args=[connection], daemon=True).start()

    def _serve(self, connection):
        # A fault of the case may break the connection. The error here is ignored: the case checks what the library does.
        with contextlib.suppress(OSError), connection, connection.makefile("rb") as reader:
            while line := reader.readline():
                method, path, _ = line.decode().split()
                headers = {}
                while (line := reader.readline().decode("latin-1").strip()):
                    name, _, value = line.partition(":")
                    headers[name.lower()] = value.strip()
                body = reader.read(int(headers.get("content-length", 0)))
                if not self._answer(connection, method, path, headers, body):
                    return

    def _answer(self, connection, method, path, headers, body):
        """Answers one request. Returns whether the connection is kept."""
        for name in ("upgrade", "http2-settings", "cookie", "expect", "transfer-encoding"):
            if name in headers:
                self.problems.append(f"the service is asked with the header {name}")
        if path == "/auth/v1/.well-known/jwks.json":
            return self._send_keys(connection)
        if (method, path) != ("POST", "/auth/v1/verify"):
            self.problems.append(f"the service is asked {method} {path}")
        if headers.get("authorization") != f"Bearer {CREDENTIAL}" or headers.get("content-type") != "application/json":
            self.problems.append(f"the service is asked with {headers}")
        self.asked.append(body)
        answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
        fault = answer.get("fault")
        if fault == "close":
            return False
        if fault == "silent":
            self.stopped.wait(10 * QUICK_TIMEOUT)
            return False
        if fault in ("drip", "drip head", "endless"):
            return self._drip(connection, fault)
        if fault == "cut":
            connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n{"verified": true')
            return False
        self._send(connection, answer["status"], answer.get("headers", {}), answer["body"] + " " * answer.get("spaces", 0))
        return fault != "close after"

    def _drip(self, connection, fault):
        if fault != "drip head":
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        else:
            connection.sendall(b"HTTP/1.1 200 OK\r\n")
        while not self.stopped.is_set():
            if fault == "endless":
                connection.sendall(b"1000\r\n" + b" " * 0x1000 + b"\r\n")
            else:
                connection.sendall(b"X-A: b\r\n" if fault == "drip head" else b"1\r\n \r\n")
                self.stopped.wait(QUICK_TIMEOUT / 4)
        return False

    def _send_keys(self, connection):
        self.fetches += 1
        keys, cache_control = self.key_set
        if keys is None:
            self._send(connection, 500, {}, "")
        elif keys == "redirect":
            self._send(connection, 302, {"Location": "/elsewhere"}, "")
        else:
            self._send(connection, 200, {"Cache-Control": cache_control} if cache_control else {},
                       keys if isinstance(keys, str) else json.dumps(keys))
        return True

    @staticmethod
    def _send(connection, status, headers, body):
        lines = [f"HTTP/1.1 {status} X", "Content-Type: application/json", *(f"{name}: {value}" for name, value in headers.items())]
        if status != 204:
            lines.append(f"Content-Length: {len(body)}")
        connection.sendall("\r\n".join([*lines, "", body]).encode())


class Response:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def __repr__(self):
        return f"{self.status} {self.headers} {self.body[:300]}"


class Subject:
    """The server with the library in it."""

    def __init__(self, command, service):
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True)
        start = self.ask({"service": service.url, "credential": CREDENTIAL, "quick_timeout": QUICK_TIMEOUT,
                          "instances": VECTORS["instances"]})
        self.port = start["port"]

    def ask(self, question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the subject ended: {self.stop()}")
        return json.loads(line)

    def stop(self):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    def send(self, instance, request):
        """The answer, None where the connection ended without one."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as connection:
            with contextlib.suppress(ConnectionError):
                connection.sendall(wire(instance, request))
            if request.get("framing") == "short":
                connection.shutdown(socket.SHUT_WR)
            with connection.makefile("rb") as reader:
                try:
                    return read_response(reader, request["method"])
                except ConnectionError:
                    return None


def wire(instance, request):
    """The bytes of a request."""
    body, framing = bytes.fromhex(request["body_hex"]), request.get("framing", "length")
    headers = [list(line) for line in request["headers"]]
    if not any(name == "Host" for name, _ in headers):
        headers.insert(0, ["Host", f"{instance}.test"])
    lengths = {"length": [str(len(body))] if body else [], "chunked": [], "both": [str(len(body))], "sign": [f"+{len(body)}"],
               "lengths": [str(len(body)), str(len(body) - 1)], "short": [str(len(body) + 3)]}[framing]
    headers += [["Content-Length", value] for value in lengths]
    if framing in ("chunked", "both"):
        headers.append(["Transfer-Encoding", "chunked"])
        half = len(body) // 2
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:half], body[half:]) if part)
        trailers = "".join(f"{name}: {value}\r\n" for name, value in request.get("trailers", []))
        body = chunks + b"0\r\n" + trailers.encode() + b"\r\n"
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
    return f"{request['method']} {request['target']} HTTP/1.1\r\n{lines}\r\n".encode("latin-1") + body


def read_response(reader, method):
    line = reader.readline()
    if not line:
        return None
    status, headers = int(line.split()[1]), {}
    while line := reader.readline().decode("latin-1").strip():
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    if 100 <= status < 200:
        return read_response(reader, method)
    if method == "HEAD":
        body = b""
    elif headers.get("transfer-encoding", "").lower() == "chunked":
        body = b""
        while size := int(reader.readline(), 16):
            body += reader.read(size)
            reader.readline()
    elif "content-length" in headers:
        body = reader.read(int(headers["content-length"]))
    else:
        body = reader.read()
    return Response(status, headers, body)


def normal(question):
    """A question in a normal form: sorted headers with lower-case names."""
    lines = sorted(([name.lower(), value] for name, value in question["headers"]), key=lambda line: line[0])
    return {**question, "headers": lines}


class Run:
    def __init__(self, name, subject, service, hides):
        self.name, self.subject, self.service, self.hides = name, subject, service, hides
        self.failures, self.count, self.ids, self.hidden = [], 0, set(), set()

    def check(self, case, condition, *what):
        if not condition:
            self.failures.append(f"{case['name']}: {' '.join(map(str, what))}")

    def questions(self):
        for case in VECTORS["questions"]:
            if case.get("hidden") in self.hides:
                self.hidden.add(case["hidden"])
                continue
            self.count += 1
            request = {**case["request"], "trailers": case.get("trailers", [])}
            self.service.begin([{"status": 200, "body": '{"verified": false, "observed": "INVALID_REQUEST"}'}])
            response = self.subject.send(case["instance"], request)
            asked = [json.loads(body) for body in self.service.asked]
            if case["asked"] is None:
                self.check(case, not asked, "asked", asked)
                refused = case["refused"]
                if refused["error"]:
                    self.refused(case, response, refused)
                else:
                    self.check(case, response is None or response.status >= 400, response)
                continue
            self.check(case, len(asked) == 1, "asked", len(asked), "times,", response)
            for question in asked:
                name = question.pop("verification_id", "")
                self.check(case, UUID.fullmatch(name) and name not in self.ids, "verification_id", name)
                self.ids.add(name)
                self.check(case, normal(question) == normal(case["asked"]), normal(question), "\n  instead of", normal(case["asked"]))
            self.passed(case, response, {"identity": None, "observed": "INVALID_REQUEST"}, case["request"]["body_hex"])

    def answers(self):
        for case in VECTORS["answers"]:
            self.count += 1
            self.service.begin(case["answers"])
            request = {**VECTORS["request"], "method": case.get("method", "POST")}
            if request["method"] == "HEAD":
                request["body_hex"] = ""
            for _ in range(case.get("requests", 1)):
                response = self.subject.send(case.get("instance", "origin"), request)
                if case.get("requests"):
                    # Gives the library time to notice that the service closed the connection.
                    time.sleep(0.05)
            asked = self.service.asked
            self.check(case, len(asked) == case["asked"], "asked", len(asked), "times")
            if not case.get("requests"):
                self.check(case, len(set(asked)) == 1, "a question changed when it was asked again")
            if "passes" in case:
                self.passed(case, response, case["passes"], request["body_hex"])
            else:
                self.refused(case, response, case["refused"])

    def passed(self, case, response, expected, body_hex):
        if response is None or response.status != 200:
            return self.check(case, False, "did not pass:", response)
        found = json.loads(response.body)
        self.check(case, found["identity"] == expected["identity"], "identity", found["identity"])
        self.check(case, found["observed"] == expected["observed"], "observed", found["observed"])
        self.check(case, base64.b64decode(found["body"]).hex() == body_hex, "another body reached the app:", found["body"])
        self.check(case, found["reserved"] == [], "identity headers reached the app:", found["reserved"])
        return None

    def refused(self, case, response, expected):
        if response is None or response.status != expected["status"]:
            return self.check(case, False, "not refused with", expected["status"], ":", response)
        self.check(case, response.headers.get("x-synheart-error") == expected["error"], response.headers)
        self.check(case, response.headers.get("cache-control") == "no-store", response.headers)
        for name, value in expected.get("headers", {}).items():
            self.check(case, response.headers.get(name.lower()) == value, name, response.headers.get(name.lower()))
        if case.get("method") == "HEAD":
            return None
        self.check(case, response.headers.get("content-type") == "application/json", response.headers)
        try:
            body = json.loads(response.body)
        except ValueError:
            return self.check(case, False, "no JSON:", response)
        self.check(case, set(body) == {"error", "message", "request_id", "server_timestamp"}, body)
        self.check(case, body.get("error") == expected["error"] and body.get("message") and body.get("request_id"), body)
        self.check(case, type(body.get("server_timestamp")) is int, body)
        if expected["error"] not in ("SERVICE_UNAVAILABLE", "PAYLOAD_TOO_LARGE", "MISDIRECTED_REQUEST") and "answers" in case:
            sent = json.loads(case["answers"][-1]["body"])
            self.check(case, all(body[name] == sent[name] for name in body), "what the service said was changed:", body)
        return None

    def tokens(self):
        vectors = VECTORS["tokens"]
        self.service.key_set = vectors["keys"], "max-age=300"
        members = ("issuer", "audience", "token_type", "channels", "leeway")
        for case in vectors["cases"]:
            self.token(case, {name: case.get(name, vectors[name]) for name in members}, case["token"], case["now"])
        self.service.key_set = TOKENS["jwks"], "max-age=300"
        for case in TOKENS["tokens"]:
            self.token(case, {"issuer": case["issuer"], "audience": case["audience"], "token_type": "synheart-device+jwt",
                              "channels": ["production"], "leeway": 0}, case["token"], case["now"])

    def token(self, case, configuration, token, now):
        self.count += 1
        self.subject.ask({"do": "verifier", "jwks_url": f"{self.service.url}/auth/v1/.well-known/jwks.json", **configuration})
        found = self.subject.ask({"do": "token", "token": token, "now": now, "monotonic": 0})
        self.check(case, found["outcome"] == ("valid" if case["valid"] else "refused"), found)
        if case["valid"]:
            claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
            expected = {"device_id": claims["sub"], "app_id": claims["app_id"], "channel": claims["channel"],
                        "platform": claims["platform"], "assurance": claims["assurance"], "expires_at": claims["exp"]}
            self.check(case, {name: found.get(name) for name in expected} == expected, found)

    def key_sets(self):
        vectors = VECTORS["key_sets"]
        for case in vectors["cases"]:
            self.count += 1
            self.service.fetches = 0
            self.subject.ask({"do": "verifier", "jwks_url": f"{self.service.url}/auth/v1/.well-known/jwks.json", **{
                name: VECTORS["tokens"][name] for name in ("issuer", "audience", "token_type", "channels", "leeway")}})
            for step in case["steps"]:
                keys = step["keys"]
                self.service.key_set = (
                    json.dumps(keys) + " " * step["spaces"] if "spaces" in step else keys, case["cache_control"])
                found = self.subject.ask(
                    {"do": "token", "token": step["token"], "now": vectors["now"], "monotonic": step["at"]})
                self.check(case, found["outcome"] == step["outcome"], "at", step["at"], found)
                self.check(case, self.service.fetches == step["fetches"], "at", step["at"], "fetches", self.service.fetches)

    def connections(self):
        """Checks that connections are kept, with 50 requests in sequence."""
        before = self.service.connections
        self.service.begin([{"status": 200, "body": '{"verified": false, "observed": "INVALID_REQUEST"}'}])
        for _ in range(50):
            self.subject.send("origin", VECTORS["request"])
        opened = self.service.connections - before
        self.check({"name": "connections are kept"}, opened <= 2, opened, "connections for 50 requests")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--hides", action="append", default=[], help="what this server does not show to an app")
    parser.add_argument("--no-tokens", action="store_true")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    begun, service = time.monotonic(), Service()
    subject = Subject(options.command, service)
    run = Run(options.name, subject, service, options.hides)
    log = ""
    try:
        run.questions()
        run.answers()
        run.connections()
        if not options.no_tokens:
            run.tokens()
            run.key_sets()
    finally:
        service.stopped.set()
        log = subject.stop()
        if sys.exc_info()[0]:
            print(log[-5000:], file=sys.stderr)
    run.check({"name": "--hides"}, run.hidden == set(options.hides), "no case has", set(options.hides) - run.hidden)
    once = {"name": "the log"}
    run.check(once, "UNAUTHORIZED" in log and "FORBIDDEN" in log, "does not name the errors of the credential")
    run.check(once, CREDENTIAL not in log, "has the credential")
    run.check(once, VECTORS["request"]["headers"][2][1] not in log, "has a signature")
    failures = run.failures + sorted(set(service.problems))
    for failure in failures:
        print(f"✘ {options.name}: {failure}", file=sys.stderr)
    if failures:
        print(log[-3000:], file=sys.stderr)
        sys.exit(1)
    print(f"{options.name}: {run.count} cases, {time.monotonic() - begun:.1f} s")


main()

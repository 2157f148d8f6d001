#!/usr/bin/env python3
"""Runs the files of docs/gateways in real gateways, between phones, the service, and a backend that records what it gets.

    Checks/gateways/run path/to/synheart-auth                                  every gateway, every case
    Checks/gateways/run path/to/synheart-auth nginx --case paths --case replay

Every case runs on each gateway. Then each file is broken in the ways of BROKEN, and the case that BROKEN names must fail. `run`
installs what this needs. `Checks/benchmarks/gateways` measures the delay.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time
import uuid

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "interop")]

from openapi_check import APP, Client, Device, Document, Service  # noqa: E402
from parts import Answer, Backend, Phone, Wire, end  # noqa: E402
from ports import free_port  # noqa: E402
from third_client import Key, b64, content_digest, signature_base, signature_parameters  # noqa: E402

OBSERVED, ASSERTING, STAGING = f"{APP}.observed", f"{APP}.asserting", f"{APP}.staging"
AUTHORITY, OTHER_AUTHORITY = "api.example.com", "pay.example.com"
IDENTITY = ["app", "device", "platform", "assurance"]
LIMIT = 1 << 20
# In nginx 1.22, one file cannot serve both HTTP/1.1 and HTTP/2 without TLS.
NGINX_HTTP2 = [("listen ${LISTEN_HOST}:${LISTEN_PORT};", "listen ${LISTEN_HOST}:${LISTEN_PORT} http2;")]


class Gateway:
    """A gateway with its file in docs/gateways."""

    FILES = {"nginx": "nginx.conf", "caddy": "Caddyfile", "envoy": "envoy.yaml"}

    def __init__(self, name):
        self.name = name
        self.text = (HERE.parents[1] / "docs/gateways" / self.FILES[name]).read_text()
        self.carries = name != "caddy"

    def command(self, file, folder):
        if self.name == "nginx":
            settings = f"daemon off; pid {folder}/pid; error_log {folder}/log;"
            return [*([] if os.geteuid() == 0 else ["sudo"]), "nginx", "-c", file, "-e", f"{folder}/log", "-g", settings]
        if self.name == "caddy":
            return ["caddy", "run", "--config", file, "--adapter", "caddyfile"]
        envoy = pathlib.Path(sys.executable).parent / "envoy"
        return [envoy, "--config-path", file, "--concurrency", "2", "--disable-hot-restart", "--log-level", "error"]

    def changed(self, changes):
        """The configuration text. `changes` are pairs of a text and its replacement."""
        text = self.text
        for old, new in changes:
            assert old in text, f"{self.name} has no {old!r}"
            text = text.replace(old, new)
        return text

    @contextlib.contextmanager
    def running(self, credential, auth, backend, changes=()):
        """Runs the gateway. Yields its port."""
        text, port = self.changed(changes), free_port()
        values = {"LISTEN_HOST": "127.0.0.1", "LISTEN_PORT": port, "AUTH_HOST": "127.0.0.1", "AUTH_PORT": auth,
                  "BACKEND_HOST": "127.0.0.1", "BACKEND_PORT": backend, "CREDENTIAL": credential}
        for name, value in values.items():
            text = text.replace(f"${{{name}}}", str(value))
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / self.FILES[self.name]
            file.write_text(text)
            environment = {**os.environ, "XDG_DATA_HOME": folder, "XDG_CONFIG_HOME": folder}
            with (pathlib.Path(folder) / "out").open("w+") as out:
                process = self.process = subprocess.Popen(self.command(file, folder), stdout=out, stderr=out, env=environment)
                try:
                    for _ in range(300):
                        with contextlib.suppress(ConnectionRefusedError), Phone(port).connect():
                            break
                        out.seek(0)
                        assert process.poll() is None, f"{self.name} ended: {out.read()}"
                        time.sleep(0.1)
                    yield port
                finally:
                    end(process)


class World:
    """The service with its apps and devices, and the backend. `phone` sends to the gateway under test."""

    def __init__(self, service, binary):
        self.service, self.binary, self.folder = service, binary, tempfile.TemporaryDirectory()
        self.client = Client(service, Document.of(service))
        self.backend, self.wire = Backend(), Wire(service.public)
        for app, ios, more in [
                (APP, {}, {"signature": {"authorities": [f"http://{AUTHORITY}", f"http://{OTHER_AUTHORITY}"]}}), (OBSERVED, {}, {"mode": "observe"}),
                (ASSERTING, {"assertions_required_on": ["/asserted"]}, {})]:
            record = {"app_id": app, "build_channel": "dev", "development_integrity_allowed": True,
                      "ios": {"app_ids": [f"TEAMID1234.{app}"], **ios}, **more}
            assert self.client.administer("POST", "/apps", record).status == 201
        # The app STAGING trusts the simulated phones of `synheart-auth conformance`. Their authority is in this file.
        self.authority = f"{self.folder.name}/authority.pem"
        staging = self.run("apps", "example", "--app", STAGING, "--authority", self.authority).stdout
        assert self.client.administer("POST", "/apps", json.loads(staging)).status == 201
        self.devices = {app: Device(self.client) for app in (APP, ASSERTING)}
        # A verified request under scheme 2 disables scheme 1 for the device.
        self.modern = Device(self.client)
        for device, app in [*((device, app) for app, device in self.devices.items()), (self.modern, APP)]:
            assert device.register(app).status == 200
        self.gateway = self.phone = None

    def run(self, *arguments):
        """Runs a command to its end."""
        return subprocess.run([self.binary, *arguments], capture_output=True, text=True)

    def credential(self, bodies):
        return self.client.administer("POST", "/credentials", {
            "name": bodies, "role": "service", "apps": [APP, OBSERVED, ASSERTING, STAGING], "body": bodies, "expires_in_seconds": 3600,
        }).json["credential"]

    @contextlib.contextmanager
    def behind(self, gateway, changes=(), http2=()):
        text = gateway.changed(changes)
        # The comment in the gateway's file says how the credential is made.
        credential = self.credential(re.search(r"credentials create .* --body (\w+)", text)[1])
        places = (credential, self.wire.port, self.backend.port)
        with contextlib.ExitStack() as ending:
            port = ending.enter_context(gateway.running(*places, changes))
            other = ending.enter_context(gateway.running(*places, [*changes, *http2])) if http2 else port
            self.gateway, self.phone, self.http2 = gateway, Phone(port), Phone(other)
            self.backend.take()
            yield

    def sign(self, method, path, body=b"", app=APP, at=None):
        return {**self.devices[app].headers(method, path, body, at), "X-App-ID": app}

    def sign_two(self, method, target, body=b"", authority=AUTHORITY):
        path, mark, query = target.partition("?")
        key, digest = Key(self.modern.key), content_digest(body)
        parameters = signature_parameters(int(time.time()), uuid.uuid4(), key.thumbprint)
        base = signature_base(method, "http", authority, path, query if mark else None, digest, APP, self.modern.id, parameters)
        return {"X-App-ID": APP, "X-Device-ID": self.modern.id, "Content-Digest": digest,
                "Signature-Input": f"synheart={parameters}", "Signature": f"synheart=:{b64(key.raw(base))}:"}

    def passed(self, answer, target, body=b"", device=None):
        """Requires that the backend received one request, with the identity and as it was sent. Returns that request."""
        assert answer.status == 200, answer
        [received] = self.backend.take()
        assert (received.target, received.body) == (target, body), (received.target, received.body[:100])
        found = [received.values(f"x-synheart-verified-{name}") for name in IDENTITY]
        assert found == [[APP], [(device or self.devices[APP]).id], ["ios"], ["app=development, key=unattested"]], found
        return received

    def refused(self, answer, code=None):
        """Requires a refusal by the service with this code, or, if `code` is None, by the service or the gateway."""
        assert answer.status >= 400, answer
        assert self.backend.take() == [], "it reached the backend"
        if code:
            assert answer.headers.get("x-synheart-error") == code, answer


def carried(world, send, target, body):
    """Sends a signed request with a body. Requires that it reaches the backend, or that it is refused if the gateway forwards no bodies."""
    answer = send(world.phone)
    if world.gateway.carries:
        assert world.passed(answer, target, body).method == "POST"
    else:
        world.refused(answer, "INVALID_REQUEST")


# The cases


def accepted(world):
    for method in ("GET", "HEAD", "OPTIONS", "POST", "PUT", "DELETE"):
        length = [] if method in ("GET", "HEAD") else [("Content-Length", "0")]
        with world.phone.connect() as connection:
            connection.sendall(Phone.head(method, "/v1/hello", [*world.sign(method, "/v1/hello").items(), *length]))
            answer = Phone.answer(connection, method)
        assert answer.headers.get("x-backend") == "yes", answer
        assert world.passed(answer, "/v1/hello").method == method
    carried(world, lambda phone: phone.send("POST", "/v1/hello", world.sign("POST", "/v1/hello", b'{"a":1}'), b'{"a":1}'),
            "/v1/hello", b'{"a":1}')


def scheme_two(world):
    forged = {"X-Forwarded-Host": "evil", "X-Forwarded-Proto": "https"}
    for target in ("/v2/hello", "/v2/hello?", "/v2/hello?a=1&b=%20"):
        world.passed(world.phone.send("POST", target, {**world.sign_two("POST", target), **forged}), target, device=world.modern)
    world.refused(world.phone.send("POST", "/v2/hello?a=2", world.sign_two("POST", "/v2/hello?a=1")), "INVALID_SIGNATURE")
    elsewhere = world.sign_two("POST", "/v2/hello", authority="other.example.com")
    world.refused(world.phone.send("POST", "/v2/hello", elsewhere), "INVALID_SIGNATURE")
    body = world.sign_two("POST", "/v2/hello", b"signed")
    world.refused(world.phone.send("POST", "/v2/hello", body, b"foreign"))


def forged_headers(world):
    forged = [(f"X-Synheart-Verified-{name}", "evil") for name in IDENTITY] + [
        (f"{mark}_Synheart{join}Verified{join}{name}", "evil") for mark in "Xx" for join in "-_" for name in IDENTITY] + [
        (f"X-Synheart{join}Verified.{name}", "evil") for join in "-." for name in IDENTITY] + [
        # The special characters besides `-`, `.` and `_` that a header name may have: a token, RFC 9110 section 5.6.2.
        (f"X{join}Synheart{join}Verified{join}Device", "evil") for join in "!#$%&'*+^`|~"] + [
        ("X-Synheart-Service-Credential", "sya_evil"), ("X-Synheart-Verified-App", "evil"), ("X-Original-Method", "GET"),
        ("X-Original-URI", "/evil"), ("X-Original-Content-Length", "0"), ("X-Original-Transfer-Encoding", "none"),
        ("X-Forwarded-Method", "GET"), ("X-Forwarded-Uri", "/evil"), ("X-Forwarded-Host", "evil")]
    # A gateway removes the headers that Connection names. It must not remove headers that the gateway itself has set.
    named = ("Connection", "close, " + ", ".join(f"X-Synheart-Verified-{name}" for name in IDENTITY))
    world.passed(world.phone.send("GET", "/forged", [*world.sign("GET", "/forged").items(), named]), "/forged")
    # The gateway removes other headers with the prefixes X-Original-, X-Forwarded- and X-Synheart-Verified-, or refuses the request.
    for name in ("X-Original-URL", "x-original-foo", "X-Forwarded-Prefix", "X-Forwarded-User", "X-Forwarded-Form", "X-Forwarded-P",
                 "X-Forwarded-Protocol", "X-Forwarded-", "X-Synheart-Verified-User", "X-Synheart-Verified-"):
        world.phone.send("GET", "/forged", [*world.sign("GET", "/forged").items(), (name, "evil")])
        for received in world.backend.take():
            assert not any(value == "evil" for _, value in received.headers), received.headers
    # A proxy in front of the gateway may add these headers, so the request passes. Their values must not reach the backend.
    for name in ("X-Forwarded-Port", "X-Forwarded-Server", "X-Original-Host", "X-HTTP-Method-Override", "X-HTTP-Method",
                 "X-Method-Override", "Daphne-Root-Path"):
        received = world.passed(world.phone.send("GET", "/forged", [*world.sign("GET", "/forged").items(), (name, "evil")]), "/forged")
        assert not any(value == "evil" for _, value in received.headers), received.headers
    observed = [("X-App-ID", OBSERVED)]
    for headers in ([*world.sign("GET", "/forged").items(), *forged], [*forged, *world.sign("GET", "/forged").items()]):
        received = world.passed(world.phone.send("GET", "/forged", headers), "/forged")
        assert not any("evil" in value or "sya_" in value for _, value in received.headers), received.headers
    for headers in (observed, [*forged, *observed], [*world.sign("GET", "/forged", app=APP).items(), *forged, *observed]):
        answer = world.phone.send("GET", "/forged", headers)
        if len(headers) > len(forged) + 1:
            world.refused(answer)  # Two X-App-ID headers name no app.
            continue
        assert answer.status == 200, answer
        [received] = world.backend.take()
        assert not any(received.values(f"x-synheart-verified-{name}") for name in IDENTITY), received.headers
        assert not any("evil" in value or "sya_" in value for _, value in received.headers), received.headers


def foreign_body(world):
    """An unsigned body never reaches the backend: neither in a request signed without a body, nor in place of the signed body."""
    foreign = b'{"pay": "me"}'
    for method in ("POST", "GET", "OPTIONS", "DELETE"):
        for send in (lambda *request: world.phone.send(*request), lambda *request: world.phone.send(*request, chunked=True),
                     lambda *request: world.http2.send_http2(*request),
                     lambda *request: world.http2.send_http2(*request, has_length=False)):
            answer = send(method, "/v1/pay", world.sign(method, "/v1/pay"), foreign)
            taken = world.backend.take()
            assert all(received.body == b"" for received in taken), f"{method}: {taken[0].body}"
            assert method == "GET" or answer.status >= 400 and not taken, f"{method}: {answer}"
    for chunked in (False, True):
        signed = world.sign("POST", "/v1/pay", b'{"pay": 1}')
        world.refused(world.phone.send("POST", "/v1/pay", signed, b'{"pay": 2}', chunked))
        signed = world.sign("POST", "/v1/pay", b'{"pay": 1}')
        world.refused(world.phone.send("POST", "/v1/pay", signed, b"", chunked))


def chunked_body(world):
    carried(world, lambda phone: phone.send("POST", "/c", world.sign("POST", "/c", b"in chunks"), b"in chunks", chunked=True),
            "/c", b"in chunks")


def http2(world):
    for has_length in (True, False):
        signed = world.sign("POST", "/v1/two", b"two")
        carried(world, lambda _: world.http2.send_http2("POST", "/v1/two", signed, b"two", has_length), "/v1/two", b"two")
    world.passed(world.http2.send_http2("GET", "/v1//two%2F;a?b=c", world.sign("GET", "/v1//two%2F;a")), "/v1//two%2F;a?b=c")
    world.refused(world.http2.send_http2("GET", "/v1/two", {"X-App-ID": APP}), "INVALID_REQUEST")


def expectation(world):
    body = b"after the interim answer"
    signed = world.sign("POST", "/e", body)
    with world.phone.connect() as connection:
        connection.sendall(Phone.head("POST", "/e", signed, f"Content-Length: {len(body)}", "Expect: 100-continue"))
        with connection.makefile("rb") as stream:
            status = int(stream.readline().split()[1])
            if status == 100:
                while stream.readline() != b"\r\n":
                    pass
                connection.sendall(body)
                status = int(stream.readline().split()[1])
            if not world.gateway.carries:
                return world.refused(Answer(status, []))
            world.passed(Answer(status, []), "/e", body)


def body_limit(world):
    for length, chunked in ((LIMIT, False), (LIMIT, True), (LIMIT + 1, False), (LIMIT + 1, True)):
        body = b"x" * length
        signed = world.sign("POST", "/large", body)
        answer = world.phone.send("POST", "/large", signed, body, chunked)
        if world.gateway.carries and length == LIMIT:
            world.passed(answer, "/large", body)
        else:
            world.refused(answer)


def partial_body(world):
    body = b"first half, second half"
    for framing, part in ((f"Content-Length: {len(body)}", body[:11]), ("Transfer-Encoding: chunked", b"b\r\n" + body[:11] + b"\r\n")):
        for signed_body in (body, body[:11]):
            signed = world.sign("POST", "/p", signed_body)
            with world.phone.connect() as connection:
                connection.sendall(Phone.head("POST", "/p", signed, framing) + part)
                time.sleep(0.2)
            time.sleep(0.2)
            assert world.backend.take() == []
        # The gateway did not ask the service about the incomplete requests. So the complete request is not a replay.
        carried(world, lambda phone: phone.send("POST", "/p", signed, signed_body), "/p", signed_body)


def paths(world):
    """The backend gets the bytes that were signed, or nothing."""
    plain = ["//v1/pay", "/a//b", "/a%2Fb", "/a%2fb", "/a;b=1/c", "/a%20b", "/%41", "/a+b", "/a/", "/.a", "/a..b", "/a:b@c", "/~a"]
    odd = ['/a"b', "/a|b", "/a{b}", "/a\\b", "/a'b", "/a%", "/a%zz", "/a%0A", "/a%00", "/a^b", "/a<b>", "/a`b", "/a#b", "///"]
    for path in plain:
        world.passed(world.phone.send("GET", path, world.sign("GET", path)), path)
    for path in odd:
        answer = world.phone.send("GET", path, world.sign("GET", path))
        if answer.status == 200:
            world.passed(answer, path)
        else:
            world.refused(answer)
    for path in ("/a/../b", "/a/./b", "/a/..", "/a/%2e%2e/b", "/a/..;/b", "/a/..%2fb", "/%2E/a", "/a\\..\\b"):
        for signed in (path, "/b", "/a/b"):
            world.refused(world.phone.send("GET", path, world.sign("GET", signed)))
    for signed, path in (("/a/b", "/a//b"), ("/a/b", "/a%2Fb"), ("/a%2Fb", "/a/b"), ("/A", "/a"), ("/a", "/%61"), ("/a", "/a;b"),
                         ("/a/b", "//a/b"), ("/a", "/a/"), ("/a%2fb", "/a%2Fb")):
        world.refused(world.phone.send("GET", path, world.sign("GET", signed)), "INVALID_SIGNATURE")
    for query in ("?", "?a=1&b=%20", "?a=/../b", "?a?b", "?a=%zz"):
        world.passed(world.phone.send("GET", f"/q{query}", world.sign("GET", "/q")), f"/q{query}")
        world.refused(world.phone.send("POST", f"/q{query}", world.sign("POST", "/q")), "INVALID_REQUEST")
    world.refused(world.phone.send("GET", "/q%3Fa", world.sign("GET", "/q")), "INVALID_SIGNATURE")
    absolute = f"http://{AUTHORITY}/absolute"
    answer = world.phone.send("GET", absolute, world.sign("GET", "/absolute"))
    if answer.status == 200:
        world.passed(answer, "/absolute")
    else:
        world.refused(answer)


def replay(world):
    signed = world.sign("POST", "/once")
    world.passed(world.phone.send("POST", "/once", signed), "/once")
    world.refused(world.phone.send("POST", "/once", signed), "NONCE_REPLAY")


def lost_answers(world):
    """An answer of the service is lost: the gateway asks once, and the request is refused. The next request passes."""
    for method in ("GET", "POST"):
        world.passed(world.phone.send(method, "/lost", world.sign(method, "/lost")), "/lost")
        signed, asked = world.sign(method, "/lost"), world.wire.asked
        world.wire.state = "loses answers"
        answer = world.phone.send(method, "/lost", signed)
        world.wire.state = "whole"
        assert world.wire.asked == asked + 1, f"asked {world.wire.asked - asked} times"
        assert answer.status in (502, 503), answer
        world.refused(answer)
        world.refused(world.phone.send(method, "/lost", signed), "NONCE_REPLAY")
        world.passed(world.phone.send(method, "/lost", world.sign(method, "/lost")), "/lost")


def lost_backend(world):
    """The backend ends the connection after it has run the request: the gateway does not send the request again."""
    for method in ("GET", "POST"):
        world.passed(world.phone.send(method, "/ran", world.sign(method, "/ran")), "/ran")
        world.backend.answers = False
        answer = world.phone.send(method, "/ran", world.sign(method, "/ran"))
        world.backend.answers = True
        assert answer.status in (502, 503), answer
        assert len(world.backend.take()) == 1
        world.passed(world.phone.send(method, "/ran", world.sign(method, "/ran")), "/ran")


def no_service(world):
    try:
        for state in ("cut", "silent"):
            world.wire.state = state
            for headers in (world.sign("GET", "/cut"), {"X-App-ID": OBSERVED}):
                answer = world.phone.send("GET", "/cut", headers)
                assert answer.status == 503, answer
                world.refused(answer)
    finally:
        world.wire.state = "whole"


def refusals(world):
    """The client gets the members of a refusal that it needs."""
    now = int(time.time())
    for headers, path, status, code in [
            ({}, "/r", 403, "INVALID_REQUEST"), (world.sign("POST", "/other"), "/r", 401, "INVALID_SIGNATURE"),
            (world.sign("POST", "/r", at=now - 1000), "/r", 401, "CLOCK_SKEW"),
            ({**world.sign("POST", "/r"), "X-Device-ID": str(uuid.uuid4())}, "/r", 401, "NOT_REGISTERED"),
            ({**world.sign("POST", "/r"), "X-App-ID": "com.example.stranger"}, "/r", 403, "FORBIDDEN"),
            (world.sign("POST", "/asserted/x", app=ASSERTING), "/asserted/x", 403, "ASSERTION_REQUIRED")]:
        answer = world.phone.send("POST", path, headers)
        world.refused(answer, code)
        assert answer.status == status and json.loads(answer.body)["error"] == code, answer
        assert abs(int(answer.headers["x-synheart-server-time"]) - now) < 60, answer
        assert answer.headers["content-type"] == "application/json", answer
        assert "no-store" in answer.headers["cache-control"], answer
    assert answer.headers.get("x-synheart-assertion") == 'required; prefix="/asserted"', answer


def upgrade(world):
    """A request for WebSocket is verified like any other. Then the gateway passes the connection on to the backend."""
    more = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="]
    for headers, expected in ((world.sign("GET", "/socket"), 101), (world.sign("GET", "/other"), 401)):
        with world.phone.connect() as connection, connection.makefile("rb") as stream:
            connection.sendall(Phone.head("GET", "/socket", headers, *more))
            status = int(stream.readline().split()[1])
            assert status == expected, status
            if status != 101:
                world.refused(Answer(status, []))
                continue
            while stream.readline() != b"\r\n":
                pass
            connection.sendall(b"hello")
            assert stream.read(5) == b"HELLO"
            [received] = world.backend.take()
            assert received.values("x-synheart-verified-device") == [world.devices[APP].id]


def other_upgrade(world):
    """Only WebSocket may take over a connection: over h2c, a client could send the backend requests that were not verified."""
    for wanted in ("h2c", "websocket, h2c", "h2c, websocket", "H2C", "tls/1.0"):
        more = ["Connection: Upgrade, HTTP2-Settings", f"Upgrade: {wanted}", "HTTP2-Settings: AAMAAABkAAQAAP__"]
        with world.phone.connect() as connection:
            connection.sendall(Phone.head("GET", "/tunnel", world.sign("GET", "/tunnel"), *more))
            status = Phone.answer(connection, "GET").status
            # Caddy speaks h2c itself: it sends 101 before it asks the service.
            connection.shutdown(socket.SHUT_WR)
            while status == 101 and connection.recv(4096):
                pass
        received = world.backend.take()
        for request in received:
            assert not request.values("upgrade") and not request.values("http2-settings"), request.headers
            assert request.values("x-synheart-verified-device") == [world.devices[APP].id], request.headers
        assert len(received) == (status == 200) or status == 101, (wanted, status)


def conformance(world):
    """The gateway also passes the cases that `synheart-auth conformance` has for backends."""
    listed = [json.loads(line)["case"] for line in world.run("conformance", "--list", "--json").stdout.splitlines()]
    chosen = [argument for case in listed if case.startswith("backend-") for argument in ("--case", case)]
    played = world.run(
        "conformance", "--url", f"http://{world.service.public}", "--backend", f"http://127.0.0.1:{world.phone.port}/v1/readings",
        "--app", STAGING, "--authority", world.authority, "--json", *([] if world.gateway.carries else ["--backend-get"]), *chosen)
    world.backend.take()
    results = [json.loads(line) for line in played.stdout.splitlines()]
    assert len(results) == len(chosen) // 2 > 10, played.stderr
    wrong = [(result["case"], result["reason"], result["exchanges"]) for result in results if result["result"] != "holds"]
    assert played.returncode == 0 and not wrong, wrong


def one_origin(world):
    """A gateway that names its own origin takes no request that was signed for another origin of the app."""
    world.passed(world.phone.send("GET", "/v2/own", world.sign_two("GET", "/v2/own")), "/v2/own", device=world.modern)
    for target in ("/v2/own", f"http://{AUTHORITY}/v2/own"):
        foreign = {**world.sign_two("GET", "/v2/own", authority=OTHER_AUTHORITY), "Host": OTHER_AUTHORITY}
        world.refused(world.phone.send("GET", target, foreign))


# The changes of docs/gateways.md, *One origin for each gateway*.
PINNED = {
    "nginx": [("        location / {\n            proxy_pass http://127.0.0.2",
               f'        if ($http_host != "{AUTHORITY}") {{\n            return 421;\n        }}\n        location / {{\n            proxy_pass http://127.0.0.2')],
    "caddy": [("\troute {\n", f"\troute {{\n\t\t@foreign not header Host {AUTHORITY}\n\t\trespond @foreign 421\n")],
    "envoy": [('domains: ["*"]', f'domains: ["{AUTHORITY}"]')],
}

CASES = [accepted, scheme_two, forged_headers, foreign_body, chunked_body, http2, expectation, body_limit, partial_body, paths,
         replay, lost_answers, lost_backend, no_service, refusals, upgrade, other_upgrade,
         conformance, one_origin]

# For each gateway: changes that break its file, and the case that must fail.
BROKEN = {
    "nginx": [
        (foreign_body, [("proxy_ignore_headers X-Accel-Redirect;", 'proxy_pass_request_body off; proxy_set_header Content-Length "";')]),
        (forged_headers, [("proxy_set_header X-Synheart-Verified-Device $device;", "")]),
        (forged_headers, [("underscores_in_headers off", "underscores_in_headers on")]),
        (paths, [("/auth/v1/forward$request_uri", "/auth/v1/forward$uri$is_args$args")]),
        (lost_backend, [("server ${BACKEND_HOST}:${BACKEND_PORT};", "server ${BACKEND_HOST}:${BACKEND_PORT}; " * 2),
                        ("proxy_next_upstream off", "proxy_next_upstream error non_idempotent")]),
        (lost_answers, [("server ${AUTH_HOST}:${AUTH_PORT};", "server ${AUTH_HOST}:${AUTH_PORT}; " * 2),
                        ("proxy_next_upstream off", "proxy_next_upstream error non_idempotent")]),
        (upgrade, [("proxy_set_header Upgrade $upgrade;", "")]),
        (other_upgrade, [("proxy_set_header Upgrade $upgrade;", "proxy_set_header Upgrade $http_upgrade;")]),
        (refusals, [("proxy_ignore_headers X-Accel-Redirect;", "proxy_hide_header X-Synheart-Assertion;")]),
        (body_limit, [("client_max_body_size 1m", "client_max_body_size 1k")]),
        (no_service, [("error_page 502 504 = @unavailable;", "")]),
        (no_service, [("proxy_read_timeout 5s;", "")])],
    "caddy": [
        (foreign_body, [("X-Original-Content-Length {length}", "X-Original-Content-Length 0")]),
        (foreign_body, [("method HEAD\n\t\t\t\t\treverse_proxy", "reverse_proxy")]),
        (foreign_body, [("none chunked", "none none")]),
        *((forged_headers, [(f"request_header -*{mark}*", "")]) for mark in "_.!#$%&'+^`|~*"),
        (forged_headers, [("request_header -Connection", "")]),
        (other_upgrade, [("request_header -Connection", ""), ("request_header @other -Upgrade", "")]),
        (forged_headers, [("request_header -X-Original-*", "")]),
        (paths, [("X-Original-URI {uri}", "X-Original-URI {http.request.orig_uri}")]),
        (lost_answers, [("keepalive off", "")]),
        (no_service, [("response_header_timeout 5s", "")]),
        (lost_backend, [("keepalive off", "")]),
        (scheme_two, [("request_header -X-Forwarded-*", "request_header X-Forwarded-Uri evil"),
                      ("header_up X-Original-Method", "header_up X-Forwarded-Method")])],
    "envoy": [
        (foreign_body, [("with_request_body: {max_request_bytes: 1048576, allow_partial_message: false}", "")]),
        (body_limit, [("max_request_bytes: 1048576", "max_request_bytes: 1000")]),
        (forged_headers, [("- remove_on_match: {key_matcher: {prefix: x-synheart-verified-}}", ""),
                          ("{prefix: x-synheart-verified-, ignore_case: true}", "{prefix: x-synheart-verified-app}")]),
        (forged_headers, [("headers_with_underscores_action: DROP_HEADER", "headers_with_underscores_action: ALLOW"),
                          ("[^a-z0-9-]", "[.]")]),
        (forged_headers, [("[^a-z0-9-]", "[_]")]),
        (paths, [("merge_slashes: false", "merge_slashes: true")]),
        (lost_backend, [("route: {cluster: backend}", 'route: {cluster: backend, retry_policy: {retry_on: "reset,5xx"}}')]),
        (no_service, [("failure_mode_allow: false", "failure_mode_allow: true")]),
        (refusals, [("- {prefix: x-synheart-, ignore_case: true}", "")]),
        (upgrade, [("upgrade_configs: [{upgrade_type: websocket}]", "")])],
}


# Mistakes that the service makes harmless: the case still passes.
HARMLESS = {
    "nginx": [],
    "caddy": [(foreign_body, [("--body headers", "--body whole")]), (chunked_body, [("--body headers", "--body whole")])],
    "envoy": [(body_limit, [("allow_partial_message: false", "allow_partial_message: true")])],
}


def notices(case, world):
    """The failure of a case; None if it passes."""
    try:
        case(world)
        return None
    except Exception as error:  # A gateway's answer may not be HTTP.
        return f"line {error.__traceback__.tb_next.tb_lineno}: {type(error).__name__} {error}"


def check(world, names, cases, failures):
    begun = time.monotonic()
    for name in names:
        gateway = Gateway(name)
        http2_changes = NGINX_HTTP2 if name == "nginx" else ()
        with world.behind(gateway, http2=http2_changes):
            for case in cases:
                if case is not one_origin and (failure := notices(case, world)):
                    failures.append(f"{name}, {case.__name__}, {failure}")
                    world.backend.take()
        noticed = 0
        for case, changes in [(case, changes) for case, changes in [*BROKEN[name], (one_origin, [])] if case in cases]:
            with world.behind(gateway, changes, http2_changes):
                if notices(case, world):
                    noticed += 1
                else:
                    failures.append(f"{name} with {changes}: {case.__name__} does not notice")
                world.backend.answers, world.wire.state = True, "whole"
        for case, changes in [(case, changes) for case, changes in [*HARMLESS[name], (one_origin, PINNED[name])] if case in cases]:
            with world.behind(gateway, changes, http2_changes):
                if failure := notices(case, world):
                    failures.append(f"{name} with {changes}, {case.__name__}, {failure}")
                    world.backend.take()
        print(f"{name}: {len(cases)} cases, {noticed} broken files noticed ({time.monotonic() - begun:.0f} s)")


def main():
    parser = argparse.ArgumentParser(prog="Checks/gateways/run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", help="the built service")
    parser.add_argument("gateways", nargs="*", metavar="GATEWAY", help=f"only these: {', '.join(Gateway.FILES)}")
    parser.add_argument("--case", action="append", choices=[case.__name__ for case in CASES], help="only this case; may be repeated")
    options = parser.parse_args()
    if not os.access(options.binary, os.X_OK):
        parser.error(f"no program {options.binary}: name the built service first, such as Service/.build/debug/synheart-auth")
    if unknown := set(options.gateways) - Gateway.FILES.keys():
        parser.error(f"no gateway {', '.join(sorted(unknown))}; there are {', '.join(Gateway.FILES)}")
    names = [name for name in Gateway.FILES if name in options.gateways or not options.gateways]
    cases = [case for case in CASES if not options.case or case.__name__ in options.case]
    page = (HERE.parents[1] / "docs/gateways.md").read_text()
    for name in names:
        assert Gateway(name).text in page, f"docs/gateways.md does not show {Gateway.FILES[name]}"
    failures, service = [], Service(options.binary)
    try:
        check(World(service, options.binary), names, cases, failures)
    finally:
        service.stop()
    assert not failures, "\n" + "\n".join(failures)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Runs the first example on each library's page against the built service, with a software device.

    Backends/testing/end_to_end.py path/to/synheart-auth BUILD_FOLDER LANGUAGE…

The example is used unchanged, except for the service's address and the port. BUILD_FOLDER/LANGUAGE/run-sample starts the example.
BUILD_FOLDER/LANGUAGE/run-subject starts the server that `drive.py` tests; this server checks a token of the running service.
`LANGUAGE/assemble` makes both scripts.
"""

import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import random
import re
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
APP = "com.example.app"
ORIGIN = "https://api.example.com"
LIMIT_OF_LINES = 20


class Service:
    """Runs the service's binary with one app, and the commands of its operator."""

    def __init__(self, binary, folder):
        self.binary, self.folder = binary, pathlib.Path(folder)
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("SYNHEART_AUTH_")}
        self.database = ["--database", f"{folder}/db.sqlite"]
        record = json.loads(self.run("apps", "example", "--app", APP, "--authority", f"{folder}/authority.pem"))
        record.setdefault("signature", {})["authorities"] = ["api.example.com"]
        self.channel = record["build_channel"]
        (self.folder / "app.json").write_text(json.dumps(record))
        self.process = subprocess.Popen(
            [binary, "serve", *self.database, "--port", "0", "--operations-port", "0", "--log-level", "error"],
            stdout=subprocess.PIPE, text=True, env=self.environment)
        words = dict(word.split("=", 1) for word in self.process.stdout.readline().split()[1:])
        self.url = words["public"]
        self.run("apps", "add", "--file", f"{folder}/app.json", *self.database)
        made = json.loads(self.run("credentials", "create", "--role", "service", "--app", APP, "--json", *self.database))
        self.credential = made["credential"]

    def run(self, *arguments, body=None):
        done = subprocess.run([self.binary, *arguments], capture_output=True, input=body, env=self.environment, timeout=60)
        if done.returncode:
            sys.exit(f"{' '.join(arguments)}: {done.returncode} {done.stderr.decode()}")
        return done.stdout.decode()

    def stop(self):
        self.process.terminate()
        self.process.wait(30)


class Device:
    """The SDK's software device, in a folder of its own."""

    def __init__(self, service, name):
        self.service = service
        self.where = ["--dir", f"{service.folder}/{name}", "--authority", f"{service.folder}/authority.pem", "--json"]
        self.id = json.loads(service.run("device", "register", "--url", service.url, "--app", APP, *self.where))["device_id"]

    def sign(self, method, path, body=b"", scheme=1, origin=ORIGIN):
        place = ["--path", path] if scheme == 1 else ["--url", origin + path]
        return json.loads(self.service.run(
            "device", "sign", "--method", method, "--scheme", str(scheme), *place, "--body", "-", *self.where, body=body))

    def token(self):
        headers = self.sign("POST", "/auth/v1/token", b"{}") | {"Content-Type": "application/json"}
        return json.loads(call(self.service.url, "POST", "/auth/v1/token", headers, b"{}")[2])["token"]


def call(url, method, path, headers, body=b""):
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)
    with contextlib.closing(connection):
        connection.request(method, path, body or None, headers)
        response = connection.getresponse()
        return response.status, dict((name.lower(), value) for name, value in response.getheaders()), response.read().decode()


def sample_of(page):
    """The first code block of a page."""
    text = re.search(r"^```[a-z]+\n(.*?)^```$", page.read_text(), re.S | re.M).group(1)
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > LIMIT_OF_LINES:
        sys.exit(f"{page}: the first use has {len(lines)} lines")
    return text


def free_port():
    """A free port below the range from which the system chooses ports. Concurrent tests get ports of that range, so they do not take it."""
    for port in random.sample(range(20_000, 32_000), 100):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    sys.exit("no port from 20000 to 32000 is free")


@contextlib.contextmanager
def running(service, build, language):
    """Runs the sample of the library's README.md, and yields its address."""
    port = free_port()
    text = sample_of(HERE.parent / language / "README.md")
    folder = service.folder / language
    folder.mkdir()
    (folder / "sample").write_text(text.replace("https://auth.example.com", service.url).replace("8000", str(port)))
    process = subprocess.Popen(
        [build / language / "run-sample", folder / "sample", str(port)], cwd=folder, stdin=subprocess.DEVNULL,
        env=service.environment | {"SYNHEART_CREDENTIAL": service.credential}, stdout=sys.stderr, start_new_session=True)
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except ConnectionRefusedError:
                if process.poll() is not None or time.monotonic() > deadline:
                    sys.exit(f"{language}: the page's sample does not listen")
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, 15)
        process.wait(30)


def check(service, build, language):
    device = Device(service, f"{language}-device")
    body = b'{"a": 1}'

    def expect(status, code, method, path, headers, body=b""):
        found = call(url, method, path, headers, body)
        if found[0] != status or (code and (json.loads(found[2])["error"] != code or found[1].get("x-synheart-error") != code)):
            sys.exit(f"{language}: {method} {path} is answered {found} instead of {status} {code}")
        return found[2]

    with running(service, build, language) as url:
        headers = device.sign("POST", "/hello", body)
        assert device.id in expect(200, None, "POST", "/hello", headers, body)
        expect(409, "NONCE_REPLAY", "POST", "/hello", headers, body)
        expect(401, "INVALID_SIGNATURE", "POST", "/hello", device.sign("POST", "/hello", body), b'{"a": 2}')
        expect(401, "INVALID_SIGNATURE", "POST", "/hello", device.sign("POST", "/hello"), body)
        expect(401, "INVALID_SIGNATURE", "POST", "/hello", device.sign("POST", "/other", body), body)
        expect(400, "INVALID_REQUEST", "POST", "/hello", {}, body)
        expect(400, "INVALID_REQUEST", "POST", "/hello?a=b", device.sign("POST", "/hello", body), body)
        forged = device.sign("POST", "/hello", body) | {"X-Device-ID": "123e4567-e89b-42d3-a456-426614174000"}
        expect(401, "NOT_REGISTERED", "POST", "/hello", forged | {"X-Synheart-Verified-Device": device.id}, body)
        token = device.token()
        assert device.id in expect(200, None, "GET", "/hello?a=b", device.sign("GET", "/hello?a=b", scheme=2))
        expect(401, "INVALID_SIGNATURE", "GET", "/hello?a=c", device.sign("GET", "/hello?a=b", scheme=2))
        elsewhere = device.sign("GET", "/hello", scheme=2, origin="https://other.example.com")
        expect(401, "INVALID_SIGNATURE", "GET", "/hello", elsewhere | {"X-Forwarded-Host": "other.example.com"})
        service.run("devices", "revoke", "--app", APP, device.id, *service.database)
        # The service sees another process's change within a second.
        limit = time.monotonic() + 5
        while call(url, "GET", "/hello", device.sign("GET", "/hello", scheme=2), b"")[0] == 200 and time.monotonic() < limit:
            time.sleep(0.05)
        expect(403, "DEVICE_REVOKED", "GET", "/hello", device.sign("GET", "/hello", scheme=2))
    check_token(service, build, language, token, device.id)
    return language


def check_token(service, build, language, token, device):
    process = subprocess.Popen([build / language / "run-subject"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(question):
        process.stdin.write(json.dumps(question) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    ask({"service": service.url, "credential": service.credential, "quick_timeout": 1, "instances": {"origin": {"origin": ORIGIN}}})
    for audience, outcome in ((APP, "valid"), ("com.example.other", "refused")):
        ask({"do": "verifier", "jwks_url": f"{service.url}/auth/v1/.well-known/jwks.json", "issuer": "synheart-auth",
             "audience": audience, "token_type": "synheart-device+jwt", "channels": [service.channel], "leeway": 5})
        found = ask({"do": "token", "token": token, "now": int(time.time()), "monotonic": 0})
        assert found["outcome"] == outcome, f"{language}: {found}"
        assert outcome == "refused" or found["device_id"] == device, f"{language}: {found}"
    process.stdin.close()
    process.wait(30)


def main():
    binary, build = (pathlib.Path(text).resolve() for text in sys.argv[1:3])
    with tempfile.TemporaryDirectory() as folder:
        service = Service(binary, folder)
        try:
            with concurrent.futures.ThreadPoolExecutor() as pool:
                done = list(pool.map(lambda language: check(service, build, language), sys.argv[3:]))
        finally:
            service.stop()
    print(f"against the running service: {', '.join(done)}: as it must be")


main()

#!/usr/bin/env python3
"""Device tokens of the running service, checked by third-party libraries, with the code of docs/tokens.md.

    Checks/tokens/check.py path/to/synheart-auth FOLDER

First: which tokens each library accepts by default, and which the page's code accepts. Then, while tokens are checked without a
pause, the signing keys rotate and one is revoked. libfaketime moves the clocks of the service and of the programs, except the Go
program. `run` makes FOLDER, with the compiled programs.
"""

import base64
import contextlib
import hashlib
import hmac
import json
import os
import pathlib
import platform
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "interop")]

from cryptography.hazmat.primitives import hashes, serialization  # noqa: E402
from cryptography.hazmat.primitives.asymmetric import ec  # noqa: E402
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature  # noqa: E402

from openapi_check import Client, Device, Document  # noqa: E402
from ports import free_port  # noqa: E402

FAKETIME = f"/usr/lib/{platform.machine()}-linux-gnu/faketime/libfaketimeMT.so.1"
AUDIENCE, OTHER_AUDIENCE = "https://api.example.com", "https://other.example.com"
APPS = {"synheart-device+jwt": "com.example.device", "at+jwt": "com.example.access", "JWT": "com.example.jwt"}
CHANNEL = "dev"
TYPES = list(APPS)
# For each library, the token types that it accepts by default, and the last word of its program's command.
LIBRARIES = {
    "PyJWT": (TYPES, "with_pyjwt.py"), "authlib": (["at+jwt"], "with_authlib.py"), "go-oidc": (TYPES, "with_go_oidc"),
    "google-oauth-client": (TYPES, "with_google_oauth"),
}
# Tokens that some library accepts although they are not for this backend.
UNCHECKED = {"an identity token", "another type"}
CHECKS_TYPES = {"authlib"}
# The token type that each library checks while keys rotate.
ROTATING = {"PyJWT": "synheart-device+jwt", "authlib": "at+jwt", "go-oidc": "JWT", "google-oauth-client": "synheart-device+jwt"}
# Seconds: the life of a token, the max-age of the key set, and how long a key is published before it signs.
LIFE, MAX_AGE, AHEAD = 600, 300, 360


class Clock:
    def __init__(self, folder):
        self.file, self.offset = folder / "clock", 0
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("SYNHEART_AUTH_")},
            "LD_PRELOAD": FAKETIME, "FAKETIME_TIMESTAMP_FILE": str(self.file), "FAKETIME_NO_CACHE": "1"}

    def set(self, offset):
        self.offset = offset
        (self.file.parent / "new-clock").write_text(f"{offset:+}")
        os.replace(self.file.parent / "new-clock", self.file)

    def move(self, seconds):
        self.set(self.offset + seconds)

    def now(self):
        return int(time.time()) + self.offset


class Service:
    """The binary on one port and over one database, both kept over restarts."""

    def __init__(self, binary, folder, clock):
        self.binary, self.folder, self.clock, self.admin, self.port = binary, folder, clock, None, free_port()
        self.issuer = f"http://127.0.0.1:{self.port}"

    @contextlib.contextmanager
    def running(self, origin):
        environment = self.clock.environment | {"FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        # Start by `env`: libfaketime changes the environment when it is loaded, and then Swift does not find its arguments.
        process = subprocess.Popen(
            ["/usr/bin/env", self.binary, "serve", "--database", self.folder / "db.sqlite", "--port", str(self.port),
             "--operations-port", "0", "--public-origin", origin, "--print-admin-credential", "--log-level", "error"],
            stdout=subprocess.PIPE, text=True, env=environment)
        try:
            if not self.admin:
                self.admin = process.stdout.readline().split()[1]
                (self.folder / "admin").write_text(self.admin)
            words = dict(word.split("=", 1) for word in process.stdout.readline().split()[1:])
            self.public, self.operations = (words[name].removeprefix("http://") for name in ("public", "operations"))
            yield Client(self, Document.of(self))
        finally:
            process.terminate()
            assert process.wait(timeout=30) == 0

    def keys(self, command, *more):
        """Starts `synheart-auth signing-keys COMMAND`."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SYNHEART_AUTH_")}
        return subprocess.Popen(
            [self.binary, "signing-keys", command, "--url", f"http://{self.operations}", "--credential-file", self.folder / "admin", *more],
            stdout=subprocess.DEVNULL, env=environment)


class Phone(Device):
    """A device of one of the apps."""

    def __init__(self, client, app, clock):
        super().__init__(client)
        self.app, self.clock = app, clock
        assert self.register(app).status == 200, app

    def signed(self, method, path, payload):
        return {**self.headers(method, path, payload, at=self.clock.now()), "X-App-ID": self.app}

    def token(self, client, audience=AUDIENCE):
        payload = json.dumps({"audience": audience}).encode()
        response = client.send("POST", "/auth/v1/token", json.loads(payload), self.signed("POST", "/auth/v1/token", payload), raw=payload)
        assert response.status == 200, response.body
        return response.json["token"]

    def identity_token(self, client, credential):
        """The identity token that a backend gets for AUDIENCE."""
        response = client.send("POST", "/auth/v1/verify", {
            "method": "POST", "scheme": "https", "authority": "api.example.com", "path": "/hello", "query": None, "body": "",
            "headers": list(map(list, self.signed("POST", "/hello", b"").items())), "identity_audience": AUDIENCE,
        }, {"Authorization": f"Bearer {credential}"})
        assert response.status == 200, response.body
        return response.json["identity_token"]


class Program:
    """A library in a process of its own, with its keys."""

    def __init__(self, name, token_type, service, folder, *more, channel=CHANNEL):
        self.name, self.type, self.channel = name, token_type, channel
        program = LIBRARIES[name][1]
        command = [sys.executable, HERE / program] if program.endswith(".py") else [folder / program]
        self.process = subprocess.Popen(
            [*command, service.issuer, AUDIENCE, token_type, channel, *more], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=(folder / f"{name}.log").open("w"), text=True, env=service.clock.environment)

    def ask(self, token):
        self.process.stdin.write(token + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"{self.name} ended"
        return json.loads(line)

    def accepts(self, token):
        """Whether the library and the page's code accept the token."""
        answer = self.ask(token)
        return "device" in answer["library"], "device" in answer["page"]

    def stop(self):
        if not self.process.stdin.closed:
            self.process.stdin.close()
            self.process.wait(timeout=30)


def encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decoded(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def header(token):
    return json.loads(decoded(token.split(".")[0]))


def forged(token, key):
    """Tokens that an attacker can make from a valid one and the published key."""
    head, claims, signature = token.split(".")
    other_claims = encoded(json.dumps({**json.loads(decoded(claims)), "sub": "123e4567-e89b-42d3-a456-426614174000"}).encode())
    bits = bytearray(decoded(signature))
    bits[40] ^= 1

    def with_header(change, sign):
        signed = f"{encoded(json.dumps({**header(token), **change}).encode())}.{other_claims}"
        return f"{signed}.{encoded(sign(signed.encode()))}"

    own = ec.generate_private_key(ec.SECP256R1())

    def with_own_key(message):
        return b"".join(number.to_bytes(32, "big") for number in decode_dss_signature(own.sign(message, ec.ECDSA(hashes.SHA256()))))

    numbers = own.public_key().public_numbers()
    jwk = {"kty": "EC", "crv": "P-256", "x": encoded(numbers.x.to_bytes(32, "big")), "y": encoded(numbers.y.to_bytes(32, "big"))}
    public = ec.EllipticCurvePublicNumbers(*(int.from_bytes(decoded(key[name]), "big") for name in "xy"), ec.SECP256R1()).public_key()
    pem = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return {
        "other claims": f"{head}.{other_claims}.{signature}",
        "a changed signature": f"{head}.{claims}.{encoded(bytes(bits))}",
        "no signature": f"{head}.{claims}.",
        "alg none": with_header({"alg": "none"}, lambda message: b""),
        "HS256 with the public key": with_header({"alg": "HS256"}, lambda message: hmac.digest(pem, message, hashlib.sha256)),
        "another key under the kid": with_header({}, with_own_key),
        "another key, in the header": with_header({"jwk": jwk}, with_own_key),
        "an unknown kid": with_header({"kid": "unknown"}, with_own_key),
        "no token": "x",
    }


def judge(programs, tokens):
    """Asks each program about each token, and compares the results with the page."""
    for program in programs:
        cases = {**tokens[program.type], **{f"another type, {other}": tokens[other]["valid"] for other in tokens if other != program.type}}
        for name, token in cases.items():
            if name == "valid":
                # The page's code accepts only the backend's own channel.
                expected = True, program.channel == CHANNEL
            else:
                expected = name.split(",")[0] in UNCHECKED and program.name not in CHECKS_TYPES, False
            answer = program.ask(token)
            found = tuple("device" in answer[code] for code in ("library", "page"))
            assert found == expected, f"{program.name} for {program.type}, {name}: {answer}"
            # `untouched` is the result of go-oidc without a list of algorithms.
            assert "device" not in answer.get("untouched", {}), f"{program.name} accepts ES256 without being told to"
    return len(cases)


class Stream:
    """Programs that check tokens continuously: each checks a new token, and every older token that has not expired."""

    def __init__(self, programs, phones, client, clock):
        self.programs, self.phones, self.client, self.clock = programs, phones, client, clock
        self.tokens, self.checked = {name: [] for name in programs}, 0

    def check(self, except_by=None, of_all_but=None):
        """Lets each program check its tokens, and a new one. Returns the kid of the newest token. If the program
        `except_by` gets a new token of a key other than `of_all_but`, it must refuse it: the key is not in its cache.
        """
        for name, program in self.programs.items():
            token = self.phones[program.type].token(self.client)
            kid = header(token)["kid"]
            if name == except_by and kid != of_all_but:
                assert program.accepts(token) == (False, False), f"{name} knows {kid} already"
                continue
            live = [(at, token) for at, token in self.tokens[name] if at > self.clock.now() - LIFE + 10]
            self.tokens[name] = [*live, (self.clock.now(), token)]
            for _, token in self.tokens[name]:
                assert program.accepts(token) == (True, True), f"{name}, new kid {kid}: {header(token)}: {program.ask(token)}"
                self.checked += 1
        return kid

    def during(self, command):
        """Checks until the command has ended, then once more."""
        while command.poll() is None:
            self.check()
        assert command.returncode == 0
        return self.check()

    def passing(self, seconds, **more):
        """Moves the clock by `seconds`, and checks after each minute of them. Returns the kids of the newest tokens."""
        kids = []
        for _ in range(seconds // 60):
            self.clock.move(60)
            kids.append(self.check(**more))
        return kids

    def restart(self, name, service, folder, *more):
        """Restarts a program, so that its cache is empty."""
        self.programs[name].stop()
        self.programs[name] = Program(name, self.programs[name].type, service, folder, *more)


def rotations(stream, service, folder, clock):
    first = stream.check()
    # The standby key was published long ago. So every cache has it, and it signs at once.
    second = stream.during(service.keys("rotate"))
    assert second != first
    assert set(stream.passing(LIFE)) == {second}
    # After an hour every cache has been refreshed. Go's clock does not move, so restart its program.
    clock.move(3600)
    stream.restart("go-oidc", service, folder)
    assert stream.check() == second
    third = stream.during(service.keys("rotate"))
    assert third not in (first, second)
    # Rotate again at once. The next key was just published: it signs only when every cache that obeys max-age has it.
    assert stream.during(service.keys("rotate")) == third
    assert set(stream.passing(MAX_AGE)) == {third}
    stream.restart("go-oidc", service, folder)
    # Google's client caches for an hour, whatever max-age says: two rotations within an hour are too fast for it.
    fourth = stream.passing(AHEAD + 60 - MAX_AGE, except_by="google-oauth-client", of_all_but=third)[-1]
    assert fourth not in (first, second, third)
    stream.restart("google-oauth-client", service, folder)
    assert set(stream.passing(AHEAD)) == {fourth}
    return fourth


def revocation(stream, service, folder, clock, signing):
    """The signing key is revoked: its tokens become invalid when a library reads the key set; tokens of the next key are valid at
    once.
    """
    # With the argument `expired`, the program of go-oidc treats every max-age as passed.
    stream.restart("go-oidc", service, folder, "expired")
    assert stream.check() == signing
    old = {name: stream.phones[program.type].token(stream.client) for name, program in stream.programs.items()}
    key = next(key for key in published(stream.client) if key["kid"] == signing)
    # After `--`, because one in 64 kids begins with "-".
    assert service.keys("revoke", "--", signing).wait() == 0
    stream.tokens = {name: [] for name in stream.programs}
    assert stream.check() != signing
    # A cache does not learn of the revocation before max-age has passed.
    for name, program in stream.programs.items():
        assert program.accepts(old[name]) == (True, True), f"{name} knows that {signing} is revoked"
    clock.move(MAX_AGE + 1)
    stream.check()
    for name, program in stream.programs.items():
        expected = name in ("go-oidc", "google-oauth-client")
        assert program.accepts(old[name]) == (expected, expected), f"{name}, after max-age: {program.ask(old[name])}"
    # go-oidc first tries its cached keys, however old. It reads new ones only if none verifies a token.
    go = stream.programs["go-oidc"]
    assert go.accepts(forged(old["go-oidc"], key)["an unknown kid"]) == (False, False)
    assert go.accepts(old["go-oidc"]) == (False, False), "go-oidc still has the revoked key"
    stream.restart("google-oauth-client", service, folder)
    assert stream.programs["google-oauth-client"].accepts(old["google-oauth-client"]) == (False, False)
    stream.check()


def published(client):
    return client.send("GET", "/auth/v1/.well-known/jwks.json").json["keys"]


def give_up(*_):
    sys.exit("not done after ten minutes")


def main():
    binary, built = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    begun = time.monotonic()
    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(600)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as ending:
        folder = pathlib.Path(folder)
        clock = Clock(folder)
        service = Service(binary, folder, clock)
        tokens = {token_type: {} for token_type in APPS}
        clock.set(-3000)
        with service.running(service.issuer) as client:
            for token_type, app in APPS.items():
                record = {"app_id": app, "build_channel": CHANNEL, "development_integrity_allowed": True,
                          "ios": {"app_ids": [f"TEAMID1234.{app}"]},
                          "signature": {"token_type": token_type, "token_audiences": [AUDIENCE, OTHER_AUDIENCE]}}
                assert client.administer("POST", "/apps", record).status == 201
            credential = client.administer("POST", "/credentials", {
                "name": "s", "role": "service", "apps": list(APPS.values()), "expires_in_seconds": 86400}).json["credential"]
            phones = {token_type: Phone(client, app, clock) for token_type, app in APPS.items()}
            for token_type, phone in phones.items():
                tokens[token_type]["expired"] = phone.token(client)
        clock.set(0)
        # The same keys under the name of another issuer.
        with service.running("http://127.0.0.1:1") as client:
            for token_type, phone in phones.items():
                tokens[token_type]["another issuer"] = phone.token(client)
        client = ending.enter_context(service.running(service.issuer))
        programs = [Program(name, token_type, service, built) for name, (types, _) in LIBRARIES.items() for token_type in types]
        programs += [Program(name, types[0], service, built, channel="production") for name, (types, _) in LIBRARIES.items()]
        ending.callback(lambda: [program.stop() for program in programs])
        keys = {key["kid"]: key for key in published(client)}
        for token_type, phone in phones.items():
            valid = phone.token(client)
            assert header(valid)["typ"] == token_type
            tokens[token_type] |= {
                "valid": valid, "another audience": phone.token(client, OTHER_AUDIENCE),
                "an identity token": phone.identity_token(client, credential), **forged(valid, keys[header(valid)["kid"]])}
        judged = judge(programs, tokens)
        print(f"{len(programs)} programs, {judged} tokens each, by default and with the page's code: as the page says "
              f"({time.monotonic() - begun:.0f} s)")
        stream = Stream(
            {program.name: program for program in programs
             if program.type == ROTATING[program.name] and program.channel == CHANNEL}, phones, client, clock)
        ending.callback(lambda: [program.stop() for program in stream.programs.values()])
        revocation(stream, service, built, clock, rotations(stream, service, built, clock))
        print(f"{stream.checked} tokens checked while keys rotated, and one was revoked: none failed "
              f"({time.monotonic() - begun:.0f} s)")


main()

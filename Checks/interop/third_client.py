#!/usr/bin/env python3
"""A third client of the protocol, besides the Swift and the Kotlin one, written from docs/protocol.md and docs/vectors alone.

    Checks/interop/third_client.py path/to/synheart-auth

First it runs the clients' vectors. Then it acts as a device against the built service: it registers, signs under both schemes,
gets tokens, rotates, sends assertions, and meets each refusal that it can provoke. If docs/protocol.md does not suffice,
correct that page, not this client.
"""

import base64
import hashlib
import http.client
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time
import urllib.parse
import uuid

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from openapi_check import Service  # starts the binary, and says where it listens

VECTORS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "vectors"
V1 = "/auth/v1"
SPKI = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d030107034200")


def sha256(data):
    return hashlib.sha256(data).digest()


def b64(data):
    return base64.b64encode(data).decode()


def b64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def from_b64url(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class Key:
    """A key of P-256 that signs."""

    def __init__(self, private=None):
        self.private = private or ec.generate_private_key(ec.SECP256R1())
        numbers = self.private.public_key().public_numbers()
        self.x, self.y = numbers.x.to_bytes(32, "big"), numbers.y.to_bytes(32, "big")

    @staticmethod
    def of(number):
        return Key(ec.derive_private_key(int.from_bytes(number, "big"), ec.SECP256R1()))

    @property
    def text(self):
        """The public key as it is sent."""
        return b64(SPKI + b"\4" + self.x + self.y)

    @property
    def thumbprint(self):
        return b64url(sha256(f'{{"crv":"P-256","kty":"EC","x":"{b64url(self.x)}","y":"{b64url(self.y)}"}}'.encode()))

    def der(self, message):
        return self.private.sign(message, ec.ECDSA(hashes.SHA256()))

    def raw(self, message):
        r, s = decode_dss_signature(self.der(message))
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")

    def verifies(self, der, message):
        try:
            self.private.public_key().verify(der, message, ec.ECDSA(hashes.SHA256()))
            return True
        except InvalidSignature:
            return False


# What is hashed and signed


def binding_nonce(challenge, public_key):
    return sha256(challenge + public_key.encode())


def key_proof_message(nonce):
    return b"synheart-auth/register/v1\n" + nonce


def new_key_proof_message(device, public_key):
    return f"synheart-auth/rotate/v1\n{device}\n{public_key}".encode()


def rotation_nonce(challenge, device, public_key):
    return sha256(b"synheart-auth/rotate/v1\n" + challenge + f"{device}\n{public_key}".encode())


def scheme1_message(method, path, timestamp, body):
    return f"{method.upper()}\n{path}\n{timestamp}\n".encode() + body


def content_digest(body):
    return f"sha-256=:{b64(sha256(body))}:"


def normal_authority(scheme, authority):
    default = ":443" if scheme == "https" else ":80"
    return authority.lower().removesuffix(default)


COMPONENTS = ("@method", "@scheme", "@authority", "@path", "@query", "content-digest", "x-app-id", "x-device-id")


def signature_parameters(created, nonce, keyid):
    names = " ".join(f'"{name}"' for name in COMPONENTS)
    return f'({names});created={created};nonce="{nonce}";keyid="{keyid}";tag="synheart-auth-v2";alg="ecdsa-p256-sha256"'


def signature_base(method, scheme, authority, path, query, digest, app, device, parameters):
    values = (method, scheme, normal_authority(scheme, authority), path, "?" + (query or ""), digest, app, device)
    return "\n".join([*(f'"{name}": {value}' for name, value in zip(COMPONENTS, values)),
                      f'"@signature-params": {parameters}']).encode()


# Parsing of answers.


def retry_after(text):
    return min(int(text), 300) if re.fullmatch("[0-9]+", text or "", re.ASCII) else None


def demand(text):
    """The parameters of a field that has the value `required`; None if it has another."""
    first, *rest = re.split(r";(?=(?:[^\"]*\"[^\"]*\")*[^\"]*$)", text or "")
    if first.strip() != "required":
        return None
    pairs = dict(part.strip().partition("=")[::2] for part in rest)
    return {name: value[1:-1] if value.startswith('"') else value for name, value in pairs.items()}


class Refusal(Exception):
    """An answer that is not a success. `code` is the service's code, or None if the answer has none, like a network error."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.code, self.server_time = status, headers, None, None
        if 400 <= status < 500:
            try:
                value = json.loads(body)
                self.code, self.server_time = value["error"], value["server_timestamp"]
            except (ValueError, KeyError, TypeError):
                self.code, self.server_time = headers.get("x-synheart-error"), headers.get("x-synheart-server-time")
        assert self.code is None or headers.get("x-synheart-error") == self.code, (status, headers, body)
        self.retry_after = retry_after(headers.get("retry-after"))
        super().__init__(f"{status} {self.code}")


# The vectors


class Vectors:
    """The vectors' cases for clients."""

    def __init__(self):
        self.count = 0
        self.keys = {item["name"]: Key.of(from_b64url(item["jwk"]["d"])) for item in self.load("keys")["keys"]}

    def load(self, name):
        return json.loads((VECTORS / f"{name}.json").read_text())

    def same(self, found, expected, what):
        self.count += 1
        assert found == expected, f"{what}: {found} instead of {expected}"

    def run(self):
        for item in self.load("keys")["keys"]:
            key = self.keys[item["name"]]
            self.same((key.text, key.thumbprint), (item["public_key"], item["thumbprint"]), item["name"])
        for item in self.load("registration")["bindings"]:
            nonce = binding_nonce(base64.b64decode(item["challenge"]), item["public_key"])
            self.same((nonce.hex(), key_proof_message(nonce).hex()), (item["binding_nonce_hex"], item["key_proof_message_hex"]), item)
        file = self.load("rotation")
        for item in file["new_key_proofs"]:
            self.same(new_key_proof_message(item["device_id"], item["new_public_key"]).hex(), item["message_hex"], item)
        for item in file["rotation_nonces"]:
            nonce = rotation_nonce(base64.b64decode(item["challenge"]), item["device_id"], item["new_public_key"])
            self.same(nonce.hex(), item["rotation_nonce_hex"], item)
        for item in file["rotate_fields"]:
            found = demand(item["text"]) or {}
            by = found.get("by", "")
            self.same(int(by) if re.fullmatch("-?[0-9]+", by) else None, item["by"], item)
        for item in self.load("scheme1")["messages"]:
            message = scheme1_message(item["method"], item["path"], item["timestamp"], bytes.fromhex(item["body_hex"]))
            self.same(message.hex(), item["message_hex"], item)
            assert self.keys[item["key"]].verifies(base64.b64decode(item["signature"]), message)
        for item in self.load("scheme2")["bases"]:
            base = signature_base(*(item[name] for name in ("method", "scheme", "authority", "path", "query", "content_digest", "app_id",
                                                            "device_id", "signature_params")))
            self.same((base.decode(), content_digest(bytes.fromhex(item["body_hex"]))), (item["signature_base"], item["content_digest"]), item)
        file = self.load("assertions")
        for item in file["client_data_hashes"]:
            self.same(sha256(bytes.fromhex(item["signed_hex"])).hex(), item["client_data_hash_hex"], item)
        for item in file["fields"]:
            found = demand(item["text"])
            self.same((found is not None, (found or {}).get("prefix")), (item["required"], item["prefix"]), item)
        for item in self.load("errors")["retry_after_fields"]:
            self.same(retry_after(item["text"]), item["seconds"], item)
        for item in self.load("clock")["timestamps"]:
            self.same((item["local_ms"] + item["offset_ms"]) // 1000, item["timestamp"], item)
        return self.count


# The client


class Phone:
    """App Attest on a phone: an attested key, which the test kit made, and its counter."""

    def __init__(self, folder, ios_app):
        [self.file] = pathlib.Path(folder, "app-attest").iterdir()
        raw, counter = self.file.read_text().split()
        self.key, self.counter, self.ios_app = Key.of(base64.b64decode(raw)), int(counter), ios_app

    def assertion(self, client_data_hash):
        self.counter += 1
        data = sha256(self.ios_app.encode()) + b"\x40" + self.counter.to_bytes(4, "big")
        signature = self.key.der(sha256(data + client_data_hash))
        assert len(data) == 37 and len(signature) < 256
        return b"\xa2\x69signature\x58" + bytes([len(signature)]) + signature + b"\x71authenticatorData\x58\x25" + data


class Client:
    """One identity of one app."""

    def __init__(self, origin, app, clock=time.time):
        self.origin, self.app, self.clock = origin, app, clock
        self.key, self.device, self.offset, self.scheme, self.phone = Key(), None, 0, 1, None
        self.asserts = set()
        self.rotate_demand = None

    # HTTP

    def exchange(self, method, path, body=None, headers=()):
        """Sends one request once. Returns the answer's JSON; throws a refusal."""
        url = urllib.parse.urlsplit(self.origin)
        connection = http.client.HTTPConnection(url.hostname, url.port, timeout=30)
        lines = dict(headers)
        if body is not None:
            lines["Content-Type"] = "application/json"
        connection.request(method, path, body, lines)
        answer = connection.getresponse()
        data = answer.read(65536)
        fields = {name.lower(): value for name, value in answer.getheaders()}
        connection.close()
        assert re.fullmatch("[0-9]{10}", fields["x-synheart-server-time"]) and fields["x-request-id"], fields
        self.rotate_demand = demand(fields.get("x-synheart-rotate"))
        if not 200 <= answer.status < 300:
            raise Refusal(answer.status, fields, data)
        return json.loads(data) if data else None

    # Signing

    def now(self):
        return int(self.clock() + self.offset)

    def sign(self, method, url, body=b"", scheme=None, asserting=None, key=None):
        """The signature headers of a request, and the bytes that they sign."""
        key = key or self.key
        parts = urllib.parse.urlsplit(url)
        path, query = parts.path or "/", url.partition("?")[2] if "?" in url else None
        if (scheme or self.scheme) == 1:
            timestamp = f"{self.now():010}"
            message = scheme1_message(method, path, timestamp, body)
            headers = {"X-App-ID": self.app, "X-Device-ID": self.device, "X-Synheart-Signature": b64(key.der(message)),
                       "X-Synheart-Timestamp": timestamp, "X-Synheart-Nonce": str(uuid.uuid4()), "X-Synheart-Sig-Version": "1"}
        else:
            parameters = signature_parameters(self.now(), uuid.uuid4(), key.thumbprint)
            digest = content_digest(body)
            message = signature_base(method, parts.scheme, parts.netloc, path, query, digest, self.app, self.device, parameters)
            headers = {"X-App-ID": self.app, "X-Device-ID": self.device, "Content-Digest": digest,
                       "Signature-Input": f"synheart={parameters}", "Signature": f"synheart=:{b64(key.raw(message))}:"}
        if asserting if asserting is not None else self.must_assert(parts.netloc, path):
            headers["X-Synheart-Assertion"] = b64(self.phone.assertion(sha256(message)))
        return headers

    def must_assert(self, authority, path):
        return self.phone is not None and any(
            origin == authority and (path == prefix or path.startswith(prefix.rstrip("/") + "/")) for origin, prefix in self.asserts)

    def learn_assertion(self, authority, path, refusal):
        found = demand(refusal.headers["x-synheart-assertion"])
        self.asserts.add((authority, found.get("prefix", path)))

    def call(self, method, route, body=None, asserting=None):
        """A signed call of the service. Recovers once from each refusal that a new signature can repair."""
        payload = None if body is None else json.dumps(body).encode()
        recovered = set()
        while True:
            try:
                url = self.origin + route
                return self.exchange(method, route, payload, self.sign(method, url, payload or b"", asserting=asserting))
            except Refusal as refusal:
                if refusal.code in recovered:
                    raise
                recovered.add(refusal.code)
                match refusal.code:
                    case "CLOCK_SKEW":
                        self.offset = int(refusal.server_time) - self.clock()
                    case "NONCE_REPLAY":
                        pass
                    case "UNSUPPORTED_SIG_VERSION":
                        self.scheme = 3 - self.scheme
                    case "ASSERTION_REQUIRED" if self.phone:
                        self.learn_assertion(urllib.parse.urlsplit(self.origin).netloc, route, refusal)
                    case _:
                        raise

    # Routes

    def challenge(self, purpose=None):
        body = {"app_id": self.app} | ({"purpose": purpose} if purpose else {})
        answer = self.exchange("POST", f"{V1}/device/challenge", json.dumps(body))
        assert answer["ttl_seconds"] == 90, answer
        return answer["challenge"]

    def register(self, key_proof=True, development=True):
        """Registers with a development proof, because this client has no phone."""
        challenge = self.challenge()
        nonce = binding_nonce(base64.b64decode(challenge), self.key.text)
        body = {"app_id": self.app, "public_key": self.key.text, "challenge": challenge, "platform": "ios", "proof": "development"}
        if key_proof:
            body["key_proof"] = b64(self.key.der(key_proof_message(nonce)))
        answer = self.exchange("POST", f"{V1}/device/register", json.dumps(body), {"X-Synheart-Dev-Mode": "true"} if development else {})
        self.device = answer["device_id"]
        return answer["status"]

    def status(self):
        return self.call("GET", f"{V1}/device/status")

    def token(self, **body):
        return self.call("POST", f"{V1}/token", body)

    def rotation(self, successor, reason):
        return {"app_id": self.app, "device_id": self.device, "new_public_key": successor.text, "reason": reason,
                "new_key_proof": b64(successor.der(new_key_proof_message(self.device, successor.text)))}

    def rotate(self, reason="scheduled", loses_answer=False):
        successor = Key()
        body = self.rotation(successor, reason)
        try:
            answer = self.call("POST", f"{V1}/device/rotate-key", body)
        except Refusal as refusal:
            if refusal.code != "ATTESTATION_REQUIRED":
                raise
            challenge = self.challenge("rotate")
            nonce = rotation_nonce(base64.b64decode(challenge), self.device, successor.text)
            body |= {"challenge": challenge, "assertion": b64(self.phone.assertion(nonce))}
            answer = self.call("POST", f"{V1}/device/rotate-key", body, asserting=False)  # the body has it
        if loses_answer:
            # Sends the same new key once more, signed by the old key; if the old key no longer verifies, by the new one.
            body = self.rotation(successor, reason)
            try:
                again = self.call("POST", f"{V1}/device/rotate-key", body)
            except Refusal as refusal:
                assert refusal.code == "INVALID_SIGNATURE", refusal
                self.key = successor
                again = self.call("POST", f"{V1}/device/rotate-key", body)
            assert again == answer, (again, answer)
        self.key = successor
        assert answer["status"] == "rotated", answer
        return answer["effective_at"]

    def deregister(self):
        try:
            self.call("DELETE", f"{V1}/device")
        except Refusal as refusal:
            if refusal.code not in ("NOT_REGISTERED", "DEVICE_REVOKED"):
                raise
        self.device = None


class Backend:
    """A server that asks the service about each request that it receives, and verifies tokens with the published keys."""

    authority = "api.example.com"

    def __init__(self, origin, credential):
        self.client = Client(origin, "com.example.backend")
        self.bearer = {"Authorization": f"Bearer {credential}"}

    def question(self, headers, method="POST", target="/v1/hsi", body=b"", **more):
        path, mark, query = target.partition("?")
        return {"method": method, "scheme": "https", "authority": self.authority, "path": path, "query": query if mark else None,
                "headers": [[name, value] for name, value in headers.items()], "body": b64(body), **more}

    def ask(self, question):
        return self.client.exchange("POST", f"{V1}/verify", json.dumps(question), self.bearer)

    def receives(self, client, method="POST", target="/v1/hsi", body=b"", **how):
        """Lets a client sign a request, and asks the service about it. The service must verify it."""
        headers = client.sign(method, f"https://{self.authority}{target}", body, **how)
        answer = self.ask(self.question(headers, method, target, body))
        assert answer["verified"] is True and answer["device_id"] == client.device, answer
        return answer

    def claims(self, token, audience):
        header, payload, signature = (from_b64url(part) for part in token.split("."))
        keys = {key["kid"]: key for key in self.client.exchange("GET", f"{V1}/.well-known/jwks.json")["keys"]}
        head, claims = json.loads(header), json.loads(payload)
        assert head["alg"] == "ES256" and head["typ"] == "synheart-device+jwt", head
        key = keys[head["kid"]]
        public = ec.EllipticCurvePublicNumbers(*(int.from_bytes(from_b64url(key[name]), "big") for name in "xy"), ec.SECP256R1())
        r, s = (int.from_bytes(part, "big") for part in (signature[:32], signature[32:]))
        public.public_key().verify(encode_dss_signature(r, s), token.rpartition(".")[0].encode(), ec.ECDSA(hashes.SHA256()))
        assert claims["iss"] == "synheart-auth" and claims["aud"] == audience, claims
        assert claims["iat"] <= time.time() + 60 and time.time() < claims["exp"] and claims["exp"] - claims["iat"] <= 600, claims
        return claims


class Operator:
    """An operator, who uses the admin API."""

    def __init__(self, service):
        self.service = service

    def administer(self, method, path, body=None):
        connection = http.client.HTTPConnection(self.service.operations, timeout=30)
        headers = {"Authorization": f"Bearer {self.service.admin}", "Content-Type": "application/json"}
        connection.request(method, f"/admin/v1{path}", None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        data = answer.read()
        assert answer.status < 300, f"{method} {path}: {answer.status} {data}"
        return json.loads(data) if data else None


def refused(code, action, *arguments, **more):
    try:
        answer = action(*arguments, **more)
    except Refusal as refusal:
        assert refusal.code == code, f"{refusal} instead of {code}"
        return refusal
    raise AssertionError(f"{answer} instead of {code}")


# A device's life


def development_device(origin, backend, operator, app):
    client = Client(origin, app)
    refused("DEV_MODE_NOT_ALLOWED", client.register, development=False)
    refused("INVALID_ATTESTATION", Client(origin, app).register, key_proof=False)
    refused("UNKNOWN_APP", Client(origin, "com.example.unknown").register)
    assert client.register() == "registered"
    first = client.device
    assert client.register() == "registered" and client.device == first, "the same key again is another device"

    status = client.status()
    assert (status["device_id"], status["status"], status["platform"]) == (first, "registered", "ios"), status
    assert status["key_thumbprint"] == client.key.thumbprint and status["key_rotated_at"] is None, status
    assert status["assurance"]["app"] == "development" and status["must_rotate"] is False, status

    # Scheme 1: a write, a GET without a body, escapes of a path that stay unchanged, and another destination.
    body = b'{"a":1}'
    assert backend.receives(client, body=body)["signature_scheme"] == 1
    backend.receives(client, "GET", "/v1/hsi?from=1?")
    backend.receives(client, "GET", "/v1/%0A/a%3Fb/...")
    headers = client.sign("POST", "https://api.example.com/v1/hsi", body)
    backend.ask(backend.question(headers, body=body) | {"authority": "elsewhere.example.net", "scheme": "http"})
    refused("NONCE_REPLAY", backend.ask, backend.question(headers, body=body))
    refused("NONCE_REPLAY", backend.ask, backend.question(headers | {"X-Synheart-Nonce": str(uuid.uuid4())}, body=body))
    refused("INVALID_SIGNATURE", backend.ask, backend.question(client.sign("POST", "https://api.example.com/v1/hsi", body), body=b"{}"))
    refused("INVALID_REQUEST", backend.receives, client, "POST", "/v1/hsi?from=1")
    for target in ("/a/../b", "/a;/%2e%2e/b", "http://api.example.com/v1", "/a%00", "/a#b", "a"):
        headers = client.sign("GET", "https://api.example.com/a")
        refused("INVALID_REQUEST", backend.ask, backend.question(headers, "GET", target))
    # A `?` in the path of a question, a question without a body, and the same question after a timeout.
    headers = client.sign("GET", "https://api.example.com/v1/hsi")
    refused("INVALID_REQUEST", backend.ask, backend.question(headers, "GET") | {"path": "/v1/hsi?"})
    question = backend.question(headers, "GET", verification_id=str(uuid.uuid4()))
    bodiless = {name: value for name, value in question.items() if name != "body"}
    assert json.dumps(bodiless) and refused("INVALID_REQUEST", backend.ask, bodiless)
    assert backend.ask(question) == backend.ask(question)

    # Tokens.
    token = client.token()
    assert token["token_type"] == "synheart-device+jwt" and 0 < token["expires_in"] <= 600, token
    claims = backend.claims(token["token"], app)
    assert claims["sub"] == first and claims["app_id"] == app and claims["cnf"]["jwk"]["x"] == b64url(client.key.x), claims
    backend.claims(client.token(audience="https://api.example.com")["token"], "https://api.example.com")
    refused("INVALID_REQUEST", client.token, audience="elsewhere")

    # A wrong clock: the client corrects its offset after the refusal.
    client.clock, client.offset = lambda: time.time() - 7200, 0
    refused("CLOCK_SKEW", backend.receives, client)
    client.status()
    assert abs(client.offset - 7200) < 5, client.offset
    backend.receives(client)

    # If a body names an app or a device, it must be the one in the headers.
    for other in ({"app_id": "com.example.other"}, {"device_id": str(uuid.uuid4())}, {"device_id": 1}):
        refused("INVALID_REQUEST", client.token, **other)
        refused("INVALID_REQUEST", client.call, "DELETE", f"{V1}/device", other)
    client.token(app_id=app, device_id=first)
    successor = Key()
    other = client.rotation(successor, "scheduled") | {"device_id": str(uuid.uuid4())}
    refused("INVALID_REQUEST", client.call, "POST", f"{V1}/device/rotate-key", other)
    refused("INVALID_ATTESTATION", client.call, "POST", f"{V1}/device/rotate-key",
            client.rotation(successor, "scheduled") | {"new_key_proof": b64(client.key.der(b"x"))})
    refused("ROTATION_FAILED", client.call, "POST", f"{V1}/device/rotate-key", client.rotation(client.key, "scheduled"))

    # Rotations: the old key in the overlap (it still verifies requests to backends, but none to the service), a lost
    # answer, and a compromise.
    old = client.key
    effective = client.rotate(loses_answer=True)
    assert client.status()["key_rotated_at"] == effective and client.device == first
    backend.receives(client, key=old)
    new, client.key = client.key, old
    refused("INVALID_SIGNATURE", client.token)
    refused("ROTATION_FAILED", client.call, "POST", f"{V1}/device/rotate-key", client.rotation(successor, "scheduled"))
    client.key = new
    client.rotate("compromise", loses_answer=True)
    refused("INVALID_SIGNATURE", backend.receives, client, key=new)

    # An operator demands a rotation.
    operator.administer("POST", f"/apps/{app}/devices/{first}/force-rotation", {"within_seconds": 3600})
    assert client.status()["must_rotate"] is True
    assert abs(int(client.rotate_demand["by"]) - time.time() - 3600) < 60, client.rotate_demand
    client.rotate(client.rotate_demand.get("reason", "scheduled"))
    assert client.status()["must_rotate"] is False and client.rotate_demand is None

    # Scheme 2, without a way back to scheme 1.
    client.scheme = 2
    assert backend.receives(client, "PUT", "/v1/hsi?a=b?c&d", body)["signature_scheme"] == 2
    backend.receives(client, "GET", "/v1/hsi?")
    assert client.status()["device_id"] == first
    client.rotate()
    headers = client.sign("POST", "https://api.example.com/v1/hsi", body)
    for change in ({"path": "/v1/hs"}, {"query": "a"}, {"method": "PUT"}, {"body": ""}):
        refused("INVALID_SIGNATURE", backend.ask, backend.question(headers, body=body) | change)
    for change in ({"scheme": "http"}, {"authority": "x.example.com"}):
        refused("MISDIRECTED_REQUEST", backend.ask, backend.question(headers, body=body) | change)
    refused("INVALID_REQUEST", backend.ask, backend.question(headers | {"Signature": headers["Signature"] + ";a=1"}, body=body))
    refused("INVALID_REQUEST", backend.ask, backend.question(headers | {"X-Synheart-Sig-Version": "1"}, body=body))
    late = headers["Signature-Input"].replace(';tag="', ';expires=1;tag="')
    refused("UNSUPPORTED_SIG_VERSION", backend.ask, backend.question(headers | {"Signature-Input": late}, body=body))
    question = backend.question(headers, body=body)
    del question["body"]
    backend.ask(question | {"body_sha256": b64(sha256(body))})
    refused("NONCE_REPLAY", backend.ask, backend.question(headers, body=body))
    refused("UNSUPPORTED_SIG_VERSION", backend.receives, client, scheme=1)
    client.scheme = 1
    client.status()
    assert client.scheme == 2, "the client did not turn to scheme 2"

    # A revoked device: every request is refused, and DELETE is treated as done.
    revoked = Client(origin, app)
    revoked.register()
    operator.administer("POST", f"/apps/{app}/devices/{revoked.device}/revoke", {"reason": "lost"})
    for action in (revoked.status, revoked.token, revoked.rotate, revoked.register):
        refused("DEVICE_REVOKED", action)
    revoked.deregister()

    # The end.
    client.deregister()
    client.device = first
    refused("NOT_REGISTERED", client.status)
    refused("INVALID_ATTESTATION", client.register)
    client.deregister()


def backends_question(backend, client):
    """Checks which refusals are about the client's request, and which are about the backend's question."""
    def answer(question, headers):
        return refused_body(backend.client, "POST", f"{V1}/verify", question, headers)

    good = backend.question(client.sign("GET", "https://api.example.com/v1/hsi"), "GET")
    assert answer(good, {}) == (401, "UNAUTHORIZED", None)
    assert answer([], backend.bearer) == (400, "INVALID_REQUEST", None)
    for change in ({"scheme": "ftp"}, {"method": 1}, {"headers": {}}, {"body": "x"}, {"body_sha256": b64(bytes(32))},
                   {"verification_id": "1"}):
        assert answer(good | change, backend.bearer) == (400, "INVALID_REQUEST", None), change
    for change in ({"method": "G T"}, {"path": "/a?b"}, {"path": "a"}, {"query": "#"}, {"headers": []}):
        assert answer(good | change, backend.bearer) == (400, "INVALID_REQUEST", False), change


def refused_body(client, method, path, body, headers):
    """Status, code, and the member `verified` of a refusal."""
    url = urllib.parse.urlsplit(client.origin)
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=30)
    connection.request(method, path, json.dumps(body), {"Content-Type": "application/json", **headers})
    answer = connection.getresponse()
    value = json.loads(answer.read())
    return answer.status, value["error"], value.get("verified")


def asserting_device(binary, folder, origin, backend, operator, record, authority):
    """An iPhone of the test kit, whose keys this client uses."""
    app = record["app_id"]
    registered = subprocess.run(
        [binary, "device", "register", "--url", origin, "--app", app, "--dir", f"{folder}/phone", "--authority", authority, "--json"],
        check=True, capture_output=True, timeout=60)
    client = Client(origin, app)
    client.device = json.loads(registered.stdout)["device_id"]
    [file] = pathlib.Path(folder, "phone", "keys").iterdir()
    client.key = Key.of(file.read_bytes())
    client.phone = Phone(f"{folder}/phone", record["ios"]["app_ids"][0])
    assert client.status()["assurance"]["app"] == "test", "the test kit passes for Apple"

    def policy(keys=None, **ios):
        operator.administer("PUT", f"/apps/{app}", record | {"ios": record["ios"] | ios, "keys": keys or {}})

    policy(assertions_required_on=["/v1/pay", "/auth/v1/token"])
    refusal = refused("ASSERTION_REQUIRED", backend.receives, client, target="/v1/pay/now?", method="GET")
    client.learn_assertion(backend.authority, "/v1/pay/now", refusal)
    assert client.asserts == {(backend.authority, "/v1/pay")}, client.asserts
    counter = client.phone.counter
    for scheme in (1, 2):
        backend.receives(client, target="/v1/pay/now", body=b"{}", scheme=scheme)
    client.scheme = 2
    backend.receives(client, target="/v1/other")
    assert client.phone.counter == counter + 2, "the client asserts where it need not, or not where it must"
    # The service refuses a counter that does not rise, an assertion of another request, and malformed base64.
    client.phone.counter -= 1
    refused("INVALID_ASSERTION", backend.receives, client, target="/v1/pay")
    other = client.sign("POST", "https://api.example.com/v1/pay", asserting=True)["X-Synheart-Assertion"]
    headers = client.sign("POST", "https://api.example.com/v1/pay", asserting=False)
    refused("INVALID_ASSERTION", backend.ask, backend.question(headers | {"X-Synheart-Assertion": other}, target="/v1/pay"))
    headers = client.sign("POST", "https://api.example.com/v1/pay", asserting=False)
    refused("INVALID_REQUEST", backend.ask, backend.question(headers | {"X-Synheart-Assertion": "A-_A"}, target="/v1/pay"))
    # The service's own routes need an assertion too.
    assert client.token()["expires_in"] > 0 and (urllib.parse.urlsplit(origin).netloc, "/auth/v1/token") in client.asserts
    # All paths except one need an assertion, and a rotation attests again. The body of the rotation has the assertion.
    policy(keys={"reattest_on_rotation": True}, assertions_required_except=["/public"])
    client.asserts.clear()
    client.rotate(loses_answer=True)
    assert client.status()["key_thumbprint"] == client.key.thumbprint
    return client, policy


def every_demand(client, policy, backend):
    """Checks that the service demands assertions on the same paths as the vectors."""
    demands = json.loads((VECTORS / "assertions.json").read_text())["demands"]
    for rule in {(item["list"], tuple(item["prefixes"])) for item in demands}:
        policy(**{rule[0]: list(rule[1])})
        for item in demands:
            if (item["list"], tuple(item["prefixes"])) != rule:
                continue
            question = backend.question(sign_path(client, item["path"]), "GET", "/") | {"path": item["path"]}
            if item["needed"]:
                refusal = refused("ASSERTION_REQUIRED", backend.ask, question)
                assert refusal.headers["x-synheart-assertion"] == item["header"], (item, refusal.headers)
            else:
                assert backend.ask(question)["verified"] is True, item
    return len(demands)


def sign_path(client, path):
    """The headers of a request that is signed with scheme 2, for a path that no URL can express, such as `//x`."""
    parameters = signature_parameters(client.now(), uuid.uuid4(), client.key.thumbprint)
    base = signature_base("GET", "https", Backend.authority, path, None, content_digest(b""), client.app, client.device, parameters)
    return {"X-App-ID": client.app, "X-Device-ID": client.device, "Content-Digest": content_digest(b""),
            "Signature-Input": f"synheart={parameters}", "Signature": f"synheart=:{b64(client.key.raw(base))}:"}


def main():
    binary = str(pathlib.Path(sys.argv[1]).resolve())
    cases = Vectors().run()
    service = Service(binary)
    try:
        with tempfile.TemporaryDirectory() as folder:
            origin, operator, authority = f"http://{service.public}", Operator(service), f"{folder}/authority.pem"
            app = f"com.example.third{random.randrange(1000)}"
            example = subprocess.run([binary, "apps", "example", "--app", app, "--authority", authority], capture_output=True, check=True)
            record = json.loads(example.stdout) | {
                "build_channel": "dev", "development_integrity_allowed": True,
                "signature": {"authorities": ["api.example.com"], "token_audiences": ["https://api.example.com"]}}
            operator.administer("POST", "/apps", record)
            operator.administer("POST", "/apps", {"app_id": "com.example.production", "build_channel": "production",
                                                  "ios": {"app_ids": ["TEAMID1234.com.example.production"]}})
            refused("DEV_MODE_NOT_ALLOWED", Client(origin, "com.example.production").register)
            credential = operator.administer("POST", "/credentials", {"name": "backend", "role": "service", "apps": [app]})["credential"]
            backend = Backend(origin, credential)
            development_device(origin, backend, operator, app)
            client, policy = asserting_device(binary, folder, origin, backend, operator, record, authority)
            backends_question(backend, client)
            demands = every_demand(client, policy, backend)
    finally:
        code = service.stop()
    assert code == 0, f"the service ended with {code}"
    print(f"a third client, from the page alone: {cases} cases of the vectors, {demands} paths, and a device's life, as they must be")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Implements the protocol a second time, from docs/protocol.md alone. Runs every vector of docs/vectors, and recomputes every
worked example of the document.

    Checks/interop/vectors_check.py

Reads nothing but docs/. Uses `cryptography` for P-256 and `http-sf` for structured fields (RFC 9651). A case that contradicts the
document is printed, and the status is 1.
"""

import base64
import binascii
import datetime
import decimal
import hashlib
import json
import pathlib
import re
import sys

import http_sf
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
COMPONENTS = ["@method", "@scheme", "@authority", "@path", "@query", "content-digest", "x-app-id", "x-device-id"]


class Refused(Exception):
    """A refusal with its error code."""

    def __init__(self, code="INVALID_REQUEST"):
        super().__init__(code)
        self.code = code


def require(condition, code="INVALID_REQUEST"):
    if not condition:
        raise Refused(code)


def sha256(data):
    return hashlib.sha256(data).digest()


# Names and encodings


def base64_decode(text):
    require(re.fullmatch(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", text))
    data = base64.b64decode(text)
    # The unused bits of the last character are zero.
    require(base64_encode(data) == text)
    return data


def base64_encode(data):
    return base64.b64encode(data).decode()


def base64url_decode(text):
    require(re.fullmatch(r"[A-Za-z0-9_-]*", text) and len(text) % 4 != 1)
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    require(base64url_encode(data) == text)
    return data


def base64url_encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def app_id(text):
    require(re.fullmatch(r"[A-Za-z0-9._-]{1,128}", text) and not text.endswith("_next"))
    return text


def device_id(text):
    require(re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", text))
    return text


def request_nonce(text):
    require(text.isascii())
    return device_id(text.lower())


def timestamp(text):
    require(re.fullmatch(r"[0-9]{10}", text, re.ASCII))
    return int(text)


def iso8601(text):
    require(re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z", text, re.ASCII))
    try:
        return int(datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S%z").timestamp())
    except ValueError:
        raise Refused()


class PublicKey:
    PREFIX = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d030107034200")

    def __init__(self, point):
        require(len(point) == 65 and point[0] == 4)
        try:
            self.key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
        except ValueError:
            raise Refused()
        self.point = point

    @classmethod
    def read(cls, text):
        data = base64_decode(text)
        return cls(data[26:] if len(data) == 91 and data[:26] == cls.PREFIX else data)

    @classmethod
    def of_jwk(cls, jwk):
        require(jwk["kty"] == "EC" and jwk["crv"] == "P-256")
        return cls(b"\4" + base64url_decode(jwk["x"]) + base64url_decode(jwk["y"]))

    @property
    def text(self):
        return base64_encode(self.PREFIX + self.point)

    @property
    def thumbprint_input(self):
        x, y = base64url_encode(self.point[1:33]), base64url_encode(self.point[33:])
        return f'{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}'

    @property
    def thumbprint(self):
        return base64url_encode(sha256(self.thumbprint_input.encode()))

    def verifies(self, signature, message):
        r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
        if not (0 < r < ORDER and 0 < s < ORDER):
            return False
        try:
            self.key.verify(encode_dss_signature(r, s), message, ec.ECDSA(hashes.SHA256()))
            return True
        except InvalidSignature:
            return False


def signature_of_der(der):
    """Decodes a signature in strict DER. Returns r || s, 64 bytes."""
    integers = []
    require(len(der) >= 2 and der[0] == 0x30 and der[1] < 0x80 and der[1] == len(der) - 2)
    rest = der[2:]
    while rest:
        require(len(integers) < 2 and len(rest) >= 3 and rest[0] == 2 and 0 < rest[1] < 0x80 and len(rest) >= 2 + rest[1])
        digits, rest = rest[2:2 + rest[1]], rest[2 + rest[1]:]
        require(digits[0] < 0x80 and (len(digits) == 1 or digits[0] != 0 or digits[1] >= 0x80))
        require(len(digits.lstrip(b"\0")) <= 32)
        integers.append(digits.lstrip(b"\0").rjust(32, b"\0"))
    require(len(integers) == 2)
    return integers[0] + integers[1]


def json_body(data):
    def members(pairs):
        require(len({name for name, _ in pairs}) == len(pairs))
        return dict(pairs)

    def constant(_):
        raise Refused()

    def depth(value):
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
        return 0 if inner is None else 1 + max(map(depth, inner), default=0)

    try:
        value = json.loads(data.decode(), object_pairs_hook=members, parse_constant=constant)
        json.dumps(value, ensure_ascii=False).encode()  # refuses an unpaired surrogate
    except (ValueError, UnicodeError):
        raise Refused()
    require(isinstance(value, dict) and depth(value) <= 16)
    return value


def member(body, name, kind, optional=False):
    value = body.get(name)
    require(isinstance(value, kind) or (optional and value is None))
    return value


def challenge_request(data):
    body = json_body(data)
    app_id(member(body, "app_id", str))
    purpose = member(body, "purpose", str, optional=True) or "register"
    require(purpose in ("register", "rotate"))
    return purpose


def rotate_request(body):
    app_id(member(body, "app_id", str))
    device_id(member(body, "device_id", str))
    member(body, "new_public_key", str)
    reason = member(body, "reason", str, optional=True) or "scheduled"
    require(reason in ("scheduled", "compromise"))
    for name in ("new_key_proof", "challenge", "assertion"):
        text = member(body, name, str, optional=True)
        if text is not None:
            base64_decode(text)
    chain = member(body, "key_attestation", list, optional=True)
    if chain is not None:
        require(1 <= len(chain) <= 6)
        for certificate in chain:
            base64_decode(certificate)
    return reason


# Messages


def binding_nonce(challenge, public_key):
    return sha256(challenge + public_key.encode())


def key_proof_message(nonce):
    return b"synheart-auth/register/v1\n" + nonce


def new_key_proof_message(device, public_key):
    return f"synheart-auth/rotate/v1\n{device}\n{public_key}".encode()


def rotation_nonce(challenge, device, public_key):
    return sha256(b"synheart-auth/rotate/v1\n" + challenge + f"{device}\n{public_key}".encode())


def scheme1_message(method, path, time, body):
    return f"{method.upper()}\n{path}\n{time}\n".encode() + body


def content_digest(body):
    return f"sha-256=:{base64_encode(sha256(body))}:"


def signature_base(method, scheme, authority, path, query, digest, app, device, parameters):
    values = [method, scheme, authority, path, "?" + (query or ""), digest, app, device]
    lines = [f'"{name}": {value}\n' for name, value in zip(COMPONENTS, values)]
    return ("".join(lines) + f'"@signature-params": {parameters}').encode()


# Requests


def path(text):
    require(text.startswith("/") and all(0x21 <= ord(c) <= 0x7E and c not in "#?" for c in text))
    require("%00" not in text)
    plain = re.sub(r"%(2e|2f|5c|3b)", lambda m: bytes.fromhex(m[1]).decode(), text, flags=re.IGNORECASE)
    require(not {".", ".."} & set(re.split(r"[/\\;]", plain)))
    return text


def target(text):
    first, mark, rest = text.partition("?")
    return path(first), query(rest) if mark else None


def query(text):
    require(text is None or all(0x21 <= ord(c) <= 0x7E and c != "#" for c in text))
    return text


def origin(scheme, authority):
    require(authority.isascii())
    scheme, authority = scheme.lower(), authority.lower()
    require(scheme in ("http", "https"))
    found = re.fullmatch(r"(\[[0-9a-f.]*:[0-9a-f:.]*\]|[a-z0-9._~-]+)(?::([1-9][0-9]{0,4}))?", authority)
    require(found and len(found[1]) <= 255)
    host, port = found[1], found[2]
    require(port is None or int(port) <= 65535)
    default = {"http": "80", "https": "443"}[scheme]
    return scheme, host if port in (None, default) else f"{host}:{port}"


class Headers:
    """Header lines as they were received."""

    def __init__(self, lines):
        self.lines = [(name, value.strip(" \t")) for name, value in lines]

    def values(self, name):
        return [value for other, value in self.lines if other.isascii() and other.lower() == name.lower()]

    def one(self, name):
        values = self.values(name)
        require(len(values) == 1)
        return values[0]

    def dictionary(self, name):
        """The member `synheart` of a dictionary field. Several header lines are joined as one text."""
        def twice(*_):
            raise Refused()

        text = ", ".join(self.values(name))
        require(text.isascii() and len(text) <= 8192)
        for encoded in re.findall(r"=:([^:]*):", text):
            base64_decode(encoded)
        try:
            return http_sf.parse(text.encode(), tltype="dictionary", on_duplicate_key=twice).get("synheart") if text else None
        except Refused:
            raise
        except Exception:
            raise Refused()


class Signed:
    """The signature headers of a request; `scheme` is 1 or 2."""

    def __init__(self, lines):
        headers = Headers(lines)
        versions, inputs = headers.values("X-Synheart-Sig-Version"), headers.values("Signature-Input")
        require(len(versions) <= 1)
        require(not (versions and inputs))
        require(versions or inputs)
        if versions:
            require(versions[0] == "1", "UNSUPPORTED_SIG_VERSION")
            self.scheme = 1
            self.scheme1(headers)
        else:
            self.scheme = 2
            self.scheme2(headers)
        self.app = app_id(headers.one("X-App-ID"))
        self.device = device_id(headers.one("X-Device-ID"))

    def scheme1(self, headers):
        self.time = timestamp(headers.one("X-Synheart-Timestamp"))
        self.nonce = request_nonce(headers.one("X-Synheart-Nonce"))
        self.signature = signature_of_der(base64_decode(headers.one("X-Synheart-Signature")))

    def scheme2(self, headers):
        ours = headers.dictionary("Signature-Input")
        unsupported = "UNSUPPORTED_SIG_VERSION"
        require(isinstance(ours, tuple) and isinstance(ours[0], list), unsupported)
        items, parameters = ours
        require([value for value, own in items if type(value) is str and not own] == COMPONENTS, unsupported)
        require(len(items) == len(COMPONENTS) and set(parameters) == {"created", "nonce", "keyid", "tag", "alg"}, unsupported)
        for name, value in (("tag", "synheart-auth-v2"), ("alg", "ecdsa-p256-sha256")):
            require(type(parameters[name]) is str and parameters[name] == value, unsupported)
        self.time, self.nonce, self.keyid = parameters["created"], parameters["nonce"], parameters["keyid"]
        require(type(self.time) is int and 0 <= self.time <= 999_999_999_999_999)
        require(type(self.nonce) is str and re.fullmatch(r"[!-~]{1,128}", self.nonce))
        require(type(self.keyid) is str and len(base64url_decode(self.keyid)) == 32)
        self.parameters = http_sf.ser({"synheart": ours})[len("synheart="):]
        value = headers.dictionary("Signature")
        require(isinstance(value, tuple) and isinstance(value[0], bytes) and len(value[0]) == 64 and not value[1])
        self.signature = value[0]
        self.content_digest = headers.one("Content-Digest")
        require(self.content_digest.startswith("sha-256=:") and self.content_digest.endswith(":"))
        self.digest = base64_decode(self.content_digest[len("sha-256=:"):-1])
        require(len(self.digest) == 32)


READS = ("GET", "HEAD", "OPTIONS")


class Verifier:
    """Judges requests in the document's order. `keys` are by name."""

    def __init__(self, app, device, policy, row, keys):
        self.app, self.device, self.policy, self.row, self.keys = app, device, policy, dict(row), keys
        self.claims = {}

    def verify(self, request, now):
        signed = Signed(request["headers"])
        require(re.fullmatch(r"[A-Za-z-]{1,32}", request["method"]))
        request_path, request_query = path(request["path"]), query(request["query"])
        require(signed.app == self.app, "UNKNOWN_APP")
        if signed.scheme == 2 and self.policy["authorities"]:
            require(origin(request["scheme"], request["authority"]) in self.origins(), "MISDIRECTED_REQUEST")
        require(now - signed.time <= self.policy["past_window_seconds"], "CLOCK_SKEW")
        require(signed.time - now <= self.policy["future_window_seconds"], "CLOCK_SKEW")
        require(signed.device == self.device, "NOT_REGISTERED")
        request_path = self.signed_path(request_path)
        is_read = request["method"].upper() in READS
        if signed.scheme == 1 and request_query is not None:
            rule = self.policy["unsigned_query"]
            require(rule == "allow" or (rule == "refuse_on_writes" and is_read))
        message, claims = self.message(signed, request, request_path, request_query)
        require(self.is_signed(signed, message, now), "INVALID_SIGNATURE")
        require(self.row["status"] != "pending", "DEVICE_PENDING")
        require(self.row["status"] != "revoked", "DEVICE_REVOKED")
        floor = max(self.policy["minimum_scheme"], self.row["highest_scheme"])
        require(signed.scheme >= floor, "UNSUPPORTED_SIG_VERSION")
        if self.policy["replay_on_reads"] or not is_read:
            self.claim(claims, signed.time + 660, now)
        self.row["highest_scheme"] = max(self.row["highest_scheme"], signed.scheme)
        return signed.scheme

    def origins(self):
        return [origin(*(text.split("://") if "://" in text else ("https", text))) for text in self.policy["authorities"]]

    def signed_path(self, text):
        prefix = self.policy["path_prefix_strip"]
        if prefix is None:
            return text
        require(text == prefix or text.startswith(prefix + "/"))
        return path(text[len(prefix):] or "/")

    def message(self, signed, request, request_path, request_query):
        body = base64_decode(request["body"]) if "body" in request else None
        if signed.scheme == 1:
            require(body is not None)
            message = scheme1_message(request["method"], request_path, f"{signed.time}", body)
            return message, [("nonce", signed.nonce), ("r", signed.signature[:32])]
        require(self.policy["authorities"], "UNSUPPORTED_SIG_VERSION")
        received = origin(request["scheme"], request["authority"])
        digest = sha256(body) if body is not None else base64_decode(request["body_sha256"])
        require(digest == signed.digest, "INVALID_SIGNATURE")
        message = signature_base(request["method"], *received, request_path, request_query, signed.content_digest,
                                 signed.app, signed.device, signed.parameters)
        return message, [("base", sha256(message))]

    def is_signed(self, signed, message, now):
        names = [self.row["key"]]
        if self.row["previous_key"] and now <= self.row["previous_key_until"]:
            names.append(self.row["previous_key"])
        for key in (self.keys[name] for name in names):
            if signed.scheme == 2 and signed.keyid != key.thumbprint:
                continue
            if key.verifies(signed.signature, message):
                return True
        return False

    def claim(self, claims, until, now):
        require(all(self.claims.get(claim, now) <= now for claim in claims), "NONCE_REPLAY")
        self.claims.update({claim: until for claim in claims})


# Assertions


def below(text, prefix):
    return text == prefix or text.startswith(prefix if prefix.endswith("/") else prefix + "/")


def demand(kind, prefixes, text):
    """The value of X-Synheart-Assertion if a path needs an assertion, else None."""
    if kind == "assertions_required_on" and not prefixes:
        return None
    if re.search(r"\\|;|%(?:2f|5c|25|3b|3f|23|[01][0-9a-f]|7f)|%(?![0-9a-f]{2})|\A//|%20\Z", text, re.IGNORECASE):
        return "required"
    if kind == "assertions_required_except":
        return None if any(below(text, prefix) for prefix in prefixes) else 'required; prefix="/"'
    plain = re.sub(r"%([0-9a-f]{2})", lambda m: chr(int(m[1], 16)), text, flags=re.IGNORECASE)
    plain = re.sub(r"/+", "/", plain).lower()
    lower = ((prefix, prefix.lower().removesuffix("/")) for prefix in prefixes)
    found = next((prefix for prefix, start in lower if below(plain, start) or plain.startswith(start + ".")), None)
    return found and f'required; prefix="{found}"'


def cbor_map(data):
    """Decodes a CBOR map from texts to byte strings, with definite and shortest lengths. Nothing may follow the map."""
    def head(kind):
        nonlocal data
        require(data and data[0] >> 5 == kind, "INVALID_ASSERTION")
        size = {24: 1, 25: 2}.get(data[0] & 31, 0)
        require(data[0] & 31 < 26 and len(data) > size, "INVALID_ASSERTION")
        length = int.from_bytes(data[1:1 + size], "big") if size else data[0] & 31
        require(length >= (0, 24, 256)[size], "INVALID_ASSERTION")
        data = data[1 + size:]
        return length

    def string(kind):
        nonlocal data
        length = head(kind)
        require(len(data) >= length, "INVALID_ASSERTION")
        found, data = data[:length], data[length:]
        return found

    count = head(5)
    members = {}
    for _ in range(count):
        name = string(3)
        require(name not in members, "INVALID_ASSERTION")
        members[name] = string(2)
    require(not data, "INVALID_ASSERTION")
    return members


def assertion_counter(lines, message, key, apps, previous):
    """The counter in the authenticator data of a request's assertion. Refuses a wrong assertion."""
    object_ = base64_decode(Headers(lines).one("X-Synheart-Assertion"))
    members = cbor_map(object_)
    require(set(members) == {b"signature", b"authenticatorData"}, "INVALID_ASSERTION")
    data = members[b"authenticatorData"]
    require(len(data) >= 37, "INVALID_ASSERTION")
    try:
        signature = signature_of_der(members[b"signature"])
    except Refused:
        raise Refused("INVALID_ASSERTION")
    require(key.verifies(signature, sha256(data + sha256(message))), "INVALID_ASSERTION")
    require(data[:32] in [sha256(app.encode()) for app in apps], "INVALID_ASSERTION")
    counter = int.from_bytes(data[33:37], "big")
    require(counter > previous, "INVALID_ASSERTION")
    return counter


def required_field(text):
    """The parameters of an item `required`; None if the field has another value."""
    try:
        value, parameters = http_sf.parse(text.encode(), tltype="item")
    except Exception:
        return None
    return parameters if isinstance(value, http_sf.Token) and str(value) == "required" else None


# Tokens


def token_claims(token, keys, issuer, audience, now):
    parts = token.split(".")
    require(len(parts) == 3)
    header, claims, signature = json_body(base64url_decode(parts[0])), json_body(base64url_decode(parts[1])), base64url_decode(parts[2])
    require(header.get("alg") == "ES256" and header.get("typ") == "synheart-device+jwt")
    found = [key for key in keys if key["kid"] == header.get("kid")]
    require(found and len(signature) == 64)
    require(PublicKey.of_jwk(found[0]).verifies(signature, ".".join(parts[:2]).encode()))
    require(claims.get("iss") == issuer and claims.get("aud") == audience)
    require(type(claims.get("iat")) is int and type(claims.get("exp")) is int)
    require(claims["iat"] <= now < claims["exp"] and claims["exp"] - claims["iat"] <= 600)
    return header, claims


# A client's judgement of an answer


def judge(answer, codes):
    """What a client takes from an answer that is no success: (code, retryable, recovery, Retry-After, server time)."""
    headers = Headers(answer["headers"])
    try:
        body = json_body(answer["body"].encode())
        member(body, "error", str), member(body, "server_timestamp", int)
    except Refused:
        body = None
    times = headers.values("X-Synheart-Server-Time")
    time = timestamp(times[0]) if times else body and body["server_timestamp"]
    wait = retry_after((headers.values("Retry-After") or [""])[0])
    if body is None or not 400 <= answer["status"] < 500:
        return "NETWORK_ERROR", True, "retry", wait, time
    code = body["error"] if re.fullmatch(r"[A-Z0-9_]{1,64}", body["error"]) else "UNKNOWN"
    known = codes.get(code, {"client_code": code, "retryable": False, "recovery": "none"})
    return known["client_code"], known["retryable"], known["recovery"], wait, time


def retry_after(text):
    return min(int(text), 300) if re.fullmatch(r"[0-9]+", text, re.ASCII) else None


def delay(policy, attempt, random, after):
    if attempt + 1 >= policy["attempts"]:
        return None
    if after is not None:
        return min(after, 300) * 1000
    return min(policy["base_ms"] * 2 ** attempt + random * policy["jitter_ms"], policy["maximum_ms"])


# The files


class Check:
    def __init__(self):
        self.count, self.failures = 0, []
        self.keys = {key["name"]: PublicKey.read(key["public_key"]) for key in self.load("keys")["keys"]}

    @staticmethod
    def load(name):
        return json.loads((DOCS / "vectors" / f"{name}.json").read_text())

    def equal(self, what, found, expected):
        self.count += 1
        if found != expected:
            self.failures.append(f"{what}:\n  found    {found!r}\n  expected {expected!r}")

    @staticmethod
    def attempt(action, *arguments):
        """Calls the action. Returns (value, None), or (None, code) if it refuses."""
        try:
            return action(*arguments), None
        except Refused as refused:
            return None, refused.code

    def reads(self, what, item, action, text, value):
        """Requires that `action` reads `text` as `value` in a valid case, and refuses it otherwise."""
        found, code = self.attempt(action, text)
        self.equal(f"{what} {item.get('name', text)!r}", (found, code is None), (value if item["valid"] else None, item["valid"]))

    @staticmethod
    def table(*titles):
        """The rows of the document's table whose first titles are these."""
        lines = iter((DOCS / "protocol.md").read_text().split("\n"))
        for line in lines:
            if cells(line)[:len(titles)] == list(titles):
                break
        next(lines)
        rows = []
        for line in lines:
            if not line.startswith("|"):
                return rows
            rows.append(cells(line))

    def run(self):
        names = {path.stem for path in (DOCS / "vectors").glob("*.json")}
        checks = {name[len("check_"):] for name in dir(self) if name.startswith("check_")} - {"document"}
        self.equal("files", names, checks)
        for name in sorted(names & checks):
            getattr(self, f"check_{name}")(self.load(name))
        self.check_document((DOCS / "protocol.md").read_text())

    def check_policies(self, file):
        """Checks that platforms and codes exist. Only a service can show the effect of a policy on a device."""
        codes = {code for item in self.load("errors")["codes"] for code in (item["code"], item["client_code"])}
        for item in file["policies"]:
            platforms, refusals = set(item["platforms"]), set(item["refusals"])
            self.equal(item["path"], (platforms - {"ios", "android"}, refusals - codes), (set(), set()))

    def check_keys(self, file):
        for item in file["keys"]:
            key, point = self.keys[item["name"]], bytes.fromhex(item["x963_hex"])
            self.equal(item["name"], (key.point, key.thumbprint, key.thumbprint_input),
                       (point, item["thumbprint"], item["thumbprint_input"]))
            private = ec.derive_private_key(int.from_bytes(base64url_decode(item["jwk"]["d"]), "big"), ec.SECP256R1())
            self.equal(item["name"], (private.public_key(), PublicKey.of_jwk(item["jwk"]).point), (key.key, point))

    def check_encodings(self, file):
        for name, action in [("app_ids", app_id), ("device_ids", device_id)]:
            for item in file[name]:
                self.reads(name, item, action, item["text"], item["text"])
        for name, action, member_ in [("request_nonces", request_nonce, "canonical"), ("timestamps", timestamp, "seconds"),
                                      ("times", iso8601, "seconds")]:
            for item in file[name]:
                self.reads(name, item, action, item["text"], item.get(member_))
        for name, action in [("base64", base64_decode), ("base64url", base64url_decode)]:
            for item in file[name]:
                self.reads(name, item, action, item["text"], bytes.fromhex(item.get("bytes_hex", "")))
        for item in file["public_keys"]:
            self.reads("public key", item, lambda text: [(k.text, k.thumbprint) for k in [PublicKey.read(text)]][0],
                       item["text"], (item.get("public_key"), item.get("thumbprint")))
        for item in file["signatures"]:
            self.reads("signature", item, lambda text: signature_of_der(base64_decode(text)), item["text"],
                       bytes.fromhex(item.get("r_hex", "") + item.get("s_hex", "")))
        for item in file["challenge_requests"]:
            self.reads("challenge request", item, challenge_request, bytes.fromhex(item["body_hex"]), item.get("purpose"))

    def proof(self, what, text, message, key, verifies):
        try:
            found = key.verifies(signature_of_der(base64_decode(text)), message)
        except Refused:
            found = False
        self.equal(what, found, verifies)

    def check_registration(self, file):
        for item in file["bindings"]:
            challenge = base64_decode(item["challenge"])
            nonce = binding_nonce(challenge, item["public_key"])
            self.equal(item["name"], (challenge.hex(), nonce.hex(), base64url_encode(nonce), key_proof_message(nonce).hex()),
                       (item["challenge_hex"], item["binding_nonce_hex"], item["play_nonce"], item["key_proof_message_hex"]))
        for item in file["key_proofs"]:
            self.proof(item["name"], item["key_proof"], key_proof_message(bytes.fromhex(item["binding_nonce_hex"])),
                       PublicKey.read(item["public_key"]), item["verifies"])

    def check_rotation(self, file):
        for item in file["new_key_proofs"]:
            message = new_key_proof_message(item["device_id"], item["new_public_key"])
            self.equal(item["name"], message.hex(), item["message_hex"])
            self.proof(item["name"], item["new_key_proof"], message, PublicKey.read(item["new_public_key"]), item["verifies"])
        for item in file["rotation_nonces"]:
            nonce = rotation_nonce(base64_decode(item["challenge"]), item["device_id"], item["new_public_key"])
            self.equal(item["name"], (nonce.hex(), base64url_encode(nonce)), (item["rotation_nonce_hex"], item["play_nonce"]))
        for item in file["bodies"]:
            self.reads("body", item, rotate_request, item["body"], item.get("reason"))
        for item in file["rotate_fields"]:
            parameters = required_field(item["text"]) or {}
            by, reason = parameters.get("by"), parameters.get("reason")
            by = by if type(by) is int else None
            self.equal(item["text"], (by, None if by is None or reason is None else str(reason)), (item["by"], item["reason"]))

    def check_scheme1(self, file):
        for item in file["messages"]:
            message = scheme1_message(item["method"], item["path"], item["timestamp"], bytes.fromhex(item["body_hex"]))
            self.equal(item["name"], message.hex(), item["message_hex"])
            self.proof(item["name"], item["signature"], message, self.keys[item["key"]], True)
        for item in file["signatures"]:
            self.proof(item["name"], item["signature"], bytes.fromhex(item["message_hex"]), self.keys[item["key"]], item["verifies"])
        for item in file["headers"]:
            signed, code = self.attempt(Signed, item["headers"])
            self.equal(item["name"], code, item.get("error"))
            if item["valid"]:
                self.equal(item["name"], (signed.app, signed.device, signed.time, signed.nonce, signed.signature[:32].hex()),
                           tuple(item[name] for name in ("app_id", "device_id", "timestamp", "nonce", "r_hex")))
        for item in file["paths"]:
            self.reads("path", item, path, item["path"], item["path"])
        for item in file["targets"]:
            self.reads("target", item, target, item["target"], (item.get("path"), item.get("query")))

    def check_scheme2(self, file):
        for item in file["origins"]:
            self.reads("origin", item, lambda pair: origin(*pair), (item["scheme"], item["authority"]),
                       (item.get("normal_scheme"), item.get("normal_authority")))
        for item in file["content_digests"]:
            self.equal("digest", content_digest(bytes.fromhex(item["body_hex"])), item["content_digest"])
        for item in file["bases"]:
            values = [item[name] for name in ("method", "scheme", "authority", "path", "query", "content_digest", "app_id",
                                              "device_id", "signature_params")]
            base = signature_base(*values)
            self.equal(item["name"], (base.decode(), sha256(base).hex(), content_digest(bytes.fromhex(item["body_hex"]))),
                       (item["signature_base"], item["claim_hex"], item["content_digest"]))
            self.equal(item["name"], self.keys[item["key"]].verifies(base64_decode(item["signature"]), base), True)
        for item in file["signatures"]:
            found = self.keys[item["key"]].verifies(base64_decode(item["signature"]), item["signature_base"].encode())
            self.equal(item["name"], found, item["verifies"])
        for item in file["headers"]:
            signed, code = self.attempt(Signed, item["headers"])
            self.equal(item["name"], code, item.get("error"))
            if item["valid"]:
                self.equal(item["name"], (signed.app, signed.device, signed.time, signed.nonce, signed.keyid, signed.parameters),
                           tuple(item[name] for name in ("app_id", "device_id", "created", "nonce", "keyid", "signature_params")))

    def check_requests(self, file):
        for case in file["cases"]:
            policy, row = {**file["policy"], **case.get("policy", {})}, {**file["device"], **case.get("device", {})}
            verifier = Verifier(file["app_id"], file["device_id"], policy, row, self.keys)
            for index, step in enumerate(case["steps"]):
                found = self.attempt(verifier.verify, step["request"], step["now"])
                self.equal(f"{case['name']}, step {index + 1}", found, (step.get("accepted"), step.get("error")))

    def check_assertions(self, file):
        for item in file["client_data_hashes"]:
            self.equal(item["name"], sha256(bytes.fromhex(item["signed_hex"])).hex(), item["client_data_hash_hex"])
        app, policy = (file["app_id"], file["device_id"]), self.load("requests")["policy"]
        row = {"key": file["key"], "previous_key": None, "status": "registered", "highest_scheme": 1}
        attested = self.keys[file["attested_key"]]
        for item in file["requests"]:
            asked, lines = item["request"], item["request"]["headers"]
            verifier = Verifier(*app, policy, row, self.keys)
            self.equal(item["name"], verifier.verify(asked, file["now"]), item["scheme"])
            message, _ = verifier.message(Signed(lines), asked, asked["path"], asked["query"])
            self.equal(item["name"], (message.hex(), sha256(message).hex()), (item["signed_hex"], item["client_data_hash_hex"]))
            found = self.attempt(assertion_counter, lines, message, attested, file["ios_app_ids"], item["previous_counter"])
            self.equal(item["name"], found, (item["counter"], None) if item["valid"] else (None, item["error"]))
            if "authenticator_data_hex" in item:
                members = cbor_map(base64_decode(Headers(lines).one("X-Synheart-Assertion")))
                self.equal(item["name"], members[b"authenticatorData"].hex(), item["authenticator_data_hex"])
        for item in file.get("demands", []):
            found = demand(item["list"], item["prefixes"], item["path"])
            self.equal(f"{item['list']} {item['prefixes']} {item['path']}", (found is not None, found), (item["needed"], item["header"]))
        for item in file.get("fields", []):
            parameters = required_field(item["text"])
            self.equal(item["text"], (parameters is not None, (parameters or {}).get("prefix")), (item["required"], item["prefix"]))

    def check_tokens(self, file):
        for item in file["tokens"]:
            found, _ = self.attempt(token_claims, item["token"], file["jwks"]["keys"], item["issuer"], item["audience"], item["now"])
            self.equal(item["name"], found, (item["header"], item["claims"]) if item["valid"] else None)
        for key in file["jwks"]["keys"]:
            self.equal("kid", PublicKey.of_jwk(key).thumbprint, key["kid"])

    def check_backend(self, file):
        """Checks bodies and codes, and that this script accepts the valid tokens too. Only a library's test server can show how the
        library behaves (Backends/testing).
        """
        codes = {item["code"]: item["status"] for item in self.load("errors")["codes"]}
        for item in file["questions"]:
            asked, body = item["asked"] or {}, bytes.fromhex(item["request"]["body_hex"])
            for name, value in (("body", body), ("body_sha256", hashlib.sha256(body).digest())):
                if name in asked:
                    self.equal(item["name"], base64_decode(asked[name]), value)
        for item in file["answers"]:
            refused = item.get("refused", {})
            self.equal(item["name"], refused.get("status"), codes.get(refused.get("error"), refused.get("status")))
        tokens = file["tokens"]
        for item in tokens["cases"]:
            if item["valid"] and "token_type" not in item and "leeway" not in item["name"]:
                found, _ = self.attempt(
                    token_claims, item["token"], tokens["keys"]["keys"], tokens["issuer"], tokens["audience"], item["now"])
                self.equal(item["name"], found is not None, True)

    def check_errors(self, file):
        codes = {item["code"]: item for item in file["codes"]}
        for item in file["answers"]:
            self.equal(item["name"], judge(item, codes),
                       tuple(item[name] for name in ("client_code", "retryable", "recovery", "retry_after_seconds", "server_time")))
        for item in file["retry_after_fields"]:
            self.equal(f"Retry-After {item['text']!r}", retry_after(item["text"]), item["seconds"])
        documented = {}
        for names, statuses, recovery, *_ in self.table("code", "status", "recovery"):
            names, statuses = re.findall(r"`([A-Z_]+)`", names), re.findall(r"[0-9]{3}", statuses)
            if len(statuses) == 1:
                statuses *= len(names)
            documented |= {name: (int(status), recovery.strip("`")) for name, status in zip(names, statuses)}
        for item in file["codes"]:
            self.equal(item["code"], (item["status"], item["recovery"]), documented.get(item["code"]))
            reported = "NETWORK_ERROR" if item["status"] >= 500 else item["code"].replace("INVALID_ATTESTATION", "ATTESTATION_FAILED")
            self.equal(item["code"], (item["client_code"], item["retryable"]), (reported, item["recovery"] == "retry"))

    def check_retry(self, file):
        policies = {policy["name"]: policy for policy in file["policies"]}
        rows = [[duration(text) for text in row[1:4]] + [int(row[4].split()[0])] for row in self.table("what", "base", "jitter")]
        own = [[policies[name][part] for part in ("base_ms", "jitter_ms", "maximum_ms", "attempts")]
               for name in ("registration", "rotation")]
        self.equal("policies", own, rows)
        for item in file["delays"]:
            found = delay(policies[item["policy"]], item["attempt"], item["random"], item["retry_after_seconds"])
            self.equal(f"{item}", found, item["delay_ms"])

    def check_clock(self, file):
        for item in file["offsets"]:
            offset = item["server_time"] * 1000 + item["round_trip_ms"] // 2 - item["received_at_ms"]
            self.equal(f"{item}", offset if abs(offset) <= 86_400_000 else None, item["offset_ms"])
        for item in file["timestamps"]:
            self.equal(f"{item}", (item["local_ms"] + item["offset_ms"]) // 1000, item["timestamp"])

    def check_states(self, file):
        rows = {(row["from"], row["cause"], row["to"]) for row in file["transitions"]}
        documented = set()
        for from_, cause, to, _ in self.table("from", "cause", "to"):
            for state in file["states"] if from_ == "any" else [from_.strip("`")]:
                documented.add((state, cause.strip("`"), to.strip("`")))
        self.equal("transitions", rows, documented)
        self.equal("one row for each state and cause", len({row[:2] for row in rows}), len(file["transitions"]))
        self.equal("states", {row[0] for row in rows}, set(file["states"]))
        self.equal("causes", {row[1] for row in rows}, set(file["causes"]))

    def check_access(self, file):
        documented = {}
        for state, *outcomes in self.table("state of device or key"):
            if "everywhere" in outcomes[0]:
                outcomes = outcomes[:1] * 5
            codes = [re.search(r"`([A-Z_]+)`", outcome) for outcome in outcomes]
            # "deregistered or unknown", "app disabled or unknown": two states in one row.
            for name in state.split(" or "):
                documented.setdefault(name, [code and code[1] for code in codes])
        rows = {row["state"]: [row[name] for name in ("status", "rotate_key", "deregister", "token", "verify")]
                for row in file["rows"]}
        for name in rows:
            self.equal(name, rows[name], documented.get(name))

    # The worked examples of the document

    def check_document(self, text):
        examples = dict(re.findall(r"<!-- example: (\S+) -->\n```\w*\n(.*?)\n```\n", text, re.DOTALL))
        self.equal("markers", len(examples), len(re.findall(r"^<!-- example: ", text, re.MULTILINE)))
        expected = self.examples(examples)
        self.equal("examples", sorted(examples), sorted(expected))
        for name in sorted(set(examples) & set(expected)):
            self.equal(f"example {name}", examples[name], expected[name])

    def examples(self, found):
        """The text of each example. `device` and `challenge` are read from the document: all other values follow from them."""
        device, challenge = json.loads(found["device"]), base64_decode(found["challenge"])
        app, identity = device["app_id"], device["device_id"]
        key, new_key = PrivateKey(device["key"]), PrivateKey(device["new_key"])
        nonce, now, body = "7f1c2a34-5b6d-4e8f-9a0b-1c2d3e4f5a6b", 1700000000, b'{"a":1}'

        def scheme1(method, target_, payload, time, nonce_):
            message = scheme1_message(method, target_, f"{time}", payload)
            return message, [("X-App-ID", app), ("X-Device-ID", identity),
                             ("X-Synheart-Signature", base64_encode(key.der(message))), ("X-Synheart-Timestamp", f"{time}"),
                             ("X-Synheart-Nonce", nonce_), ("X-Synheart-Sig-Version", "1")]

        bound = binding_nonce(challenge, key.text)
        proof = base64_encode(bytes.fromhex("a363666d746f6170706c652d6170706174746573746761747453746d74"))
        register = {"app_id": app, "public_key": key.text, "challenge": found["challenge"], "platform": "ios", "proof": proof,
                    "key_proof": base64_encode(key.der(key_proof_message(bound)))}
        message1, headers1 = scheme1("POST", "/v1/hsi", body, now, nonce)
        parameters = " ".join(f'"{name}"' for name in COMPONENTS)
        parameters = (f'({parameters});created={now};nonce="{nonce}";keyid="{key.thumbprint}";tag="synheart-auth-v2"'
                      ';alg="ecdsa-p256-sha256"')
        digest = content_digest(body)
        base = signature_base("POST", "https", "api.example.com", "/v1/hsi", "from=1", digest, app, identity, parameters)
        raw2 = signature_of_der(key.der(base))
        headers2 = [("X-App-ID", app), ("X-Device-ID", identity), ("Content-Digest", digest),
                    ("Signature-Input", f"synheart={parameters}"), ("Signature", f"synheart=:{base64_encode(raw2)}:")]
        rotation = new_key_proof_message(identity, new_key.text)
        rotate = compact({"app_id": app, "device_id": identity, "new_public_key": new_key.text, "reason": "scheduled",
                          "new_key_proof": base64_encode(new_key.der(rotation))})
        route = "/auth/v1/device/rotate-key"
        _, headers3 = scheme1("POST", route, rotate.encode(), now + 60, "0b9c8d7e-6f5a-4b3c-8d2e-1f0a9b8c7d6e")
        good = self.load("tokens")["tokens"][0]
        asked = {"method": "POST", "scheme": "https", "authority": "api.example.com", "path": "/v1/hsi", "query": None,
                 "headers": [list(pair) for pair in headers1], "body": base64_encode(body),
                 "verification_id": "6b1f0c52-9d3e-4a7b-8c21-5e4d3c2b1a09"}
        return {
            "device": found["device"], "challenge": found["challenge"],
            "public-key": key.text, "public-key-bytes": dump(key.PREFIX + key.point),
            "thumbprint-input": key.thumbprint_input, "thumbprint": key.thumbprint,
            "binding-nonce": bound.hex(), "play-nonce": base64url_encode(bound),
            "key-proof-message": dump(key_proof_message(bound)), "key-proof": register["key_proof"],
            "register-request": http("/auth/v1/device/register", "auth.example.com", [], compact(register)),
            "scheme1-message": dump(message1), "scheme1-digest": sha256(message1).hex(), "scheme1-der": dump(key.der(message1)),
            "scheme1-r": signature_of_der(key.der(message1))[:32].hex(),
            "scheme1-request": http("/v1/hsi", "api.example.com", headers1, body.decode()),
            "scheme2-base": base.decode(), "scheme2-signature-bytes": dump(raw2), "scheme2-claim": sha256(base).hex(),
            "scheme2-request": http("/v1/hsi?from=1", "api.example.com", headers2, body.decode()),
            "assertion-hash": sha256(message1).hex(), "assertion-header": "X-Synheart-Assertion: " + next(
                value for name, value in self.load("assertions")["requests"][0]["request"]["headers"] if name == "X-Synheart-Assertion"),
            "new-key-proof-message": rotation.decode(), "new-key-proof": base64_encode(new_key.der(rotation)),
            "rotate-request": http(route, "auth.example.com", headers3, rotate),
            "rotation-nonce": rotation_nonce(challenge, identity, new_key.text).hex(),
            "token-header": json.dumps(good["header"], indent=2), "token-claims": json.dumps(good["claims"], indent=2),
            "token": good["token"], "verify-request": json.dumps(asked, indent=2),
        }


class PrivateKey(PublicKey):
    def __init__(self, jwk):
        super().__init__(PublicKey.of_jwk(jwk).point)
        number = int.from_bytes(base64url_decode(jwk["d"]), "big")
        self.private = ec.derive_private_key(number, ec.SECP256R1())

    def der(self, message):
        """A signature in DER. It is deterministic (RFC 6979), like those of the document's examples."""
        return self.private.sign(message, ec.ECDSA(hashes.SHA256(), deterministic_signing=True))


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def duration(text):
    """Reads a duration such as `5 s`; a number without a unit is in milliseconds. Returns milliseconds."""
    number, *unit = text.split()
    return int(number) * {"ms": 1, "s": 1000, "h": 3_600_000}[unit[0] if unit else "ms"]


def compact(value):
    return json.dumps(value, separators=(",", ":"))


def dump(data):
    """A hex dump: in each line the offset, 16 bytes in hexadecimal, and the same bytes as ASCII."""
    lines = []
    for start in range(0, len(data), 16):
        part = data[start:start + 16]
        text = "".join(chr(byte) if 0x20 <= byte <= 0x7E else "." for byte in part)
        lines.append(f"{start:04x}  {part.hex(' '):<47}  |{text}|")
    return "\n".join(lines)


def http(target_, host, headers, body):
    lines = [f"POST {target_} HTTP/1.1", f"Host: {host}", "Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\n".join([*lines, *(f"{name}: {value}" for name, value in headers), "", body])


def main():
    check = Check()
    check.run()
    print("\n".join(check.failures))
    print(f"{check.count} checks, {len(check.failures)} failed")
    sys.exit(1 if check.failures else 0)


if __name__ == "__main__":
    main()

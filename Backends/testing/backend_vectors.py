#!/usr/bin/env python3
"""Makes docs/vectors/backend.json, the same bytes each time; with --check, says whether the file has them.

    Backends/testing/backend_vectors.py [--check]
"""

import base64
import hashlib
import hmac
import json
import pathlib
import sys

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

VECTORS = pathlib.Path(__file__).resolve().parents[2] / "docs/vectors"
KEYS = {key["name"]: key for key in json.loads((VECTORS / "keys.json").read_text())["keys"]}
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551

APP, DEVICE = "com.example.app", "123e4567-e89b-42d3-a456-426614174000"
OTHER_DEVICE = "123e4567-e89b-42d3-a456-426614174001"
BODY = b'{"a":1}'
LIMIT = 1024
ONE = [
    ["X-App-ID", APP], ["X-Device-ID", DEVICE],
    ["X-Synheart-Signature", "MEYCIQCvNRT4OL8MiUPqHppbF3m6iVmu6whKfuOownNUpb2HfQIhAKddO/XBYjKgNjpnQ5Qk/vdWjazkDWTkCYOMY+8mecqh"],
    ["X-Synheart-Timestamp", "1700000000"], ["X-Synheart-Nonce", "7f1c2a34-5b6d-4e8f-9a0b-1c2d3e4f5a6b"],
    ["X-Synheart-Sig-Version", "1"],
]
PARAMETERS = (
    '("@method" "@scheme" "@authority" "@path" "@query" "content-digest" "x-app-id" "x-device-id");created=1700000000;'
    f'nonce="7f1c2a34-5b6d-4e8f-9a0b-1c2d3e4f5a6b";keyid="{KEYS["device"]["thumbprint"]}";tag="synheart-auth-v2";'
    'alg="ecdsa-p256-sha256"')
SIGNATURE = "synheart=:khKbYyuifAzcDd0pcW7fvaSclze+kWxYC4ssskCOrCZfkmSzjwl8nv2WfoEa0pt+JB//50pAEJ/EcajK0eMftQ==:"


def base64_of(data):
    return base64.b64encode(data).decode()


def digest(body):
    return base64_of(hashlib.sha256(body).digest())


def two(body=BODY):
    return [["X-App-ID", APP], ["X-Device-ID", DEVICE], ["Content-Digest", f"sha-256=:{digest(body)}:"],
            ["Signature-Input", f"synheart={PARAMETERS}"], ["Signature", SIGNATURE]]


def question(name, target="/v1/hsi", *, method="POST", headers=ONE, body=BODY, extra=(), told=(), instance="origin",
             scheme="https", authority="api.example.com", framing=None, hidden=None, split=None, **more):
    """A case: a request, and the question that the backend must ask the service about it. `extra` are further headers of the request,
    and `told` those of them that the question has too.
    """
    path, mark, query = target.partition("?")
    asked = {"method": method, "scheme": scheme, "authority": authority, "path": path, "query": query if mark else None,
             "headers": [*headers, *told]}
    is_two = any(name == "Signature-Input" for name, _ in headers)
    asked |= {"body_sha256": digest(body)} if is_two else {"body": base64_of(body)}
    request = {"method": method, "target": target, "headers": [*headers, *extra], "body_hex": body.hex()}
    if framing:
        request["framing"] = framing
    case = {"name": name, "instance": instance, "request": request, "asked": asked}
    if hidden:
        case["hidden"] = hidden
    return case | more


def unasked(name, status, error, **options):
    """A case whose request the backend refuses without a question. `error` is null where the HTTP server may refuse before the library."""
    case = question(name, **options)
    return case | {"asked": None, "refused": {"status": status, "error": error}}


def questions():
    forwarded = [["X-Forwarded-Proto", "https"], ["X-Forwarded-Host", "api.example.com"]]
    via = {"instance": "proxies"}
    yield question("scheme 1: a write")
    yield question("scheme 1: a read", method="GET", body=b"")
    yield question("scheme 2: a write is asked about by its digest", headers=two())
    yield question("scheme 2: a read has the digest of no body", method="GET", body=b"", headers=two(b""))
    both = [*two(), ["X-Synheart-Sig-Version", "1"]]
    case = question("both schemes: the service sees the body, and refuses", headers=both)
    del case["asked"]["body_sha256"]
    yield case | {"asked": case["asked"] | {"body": base64_of(BODY)}}
    yield question("a request without a signature is asked about too", headers=[])
    yield question("a query", "/v1/hsi?from=1&to=%20?x=//&y")
    yield question("an empty query is a query", "/v1/hsi?", hidden="empty query")
    yield question("a path is not decoded", "/v1/%68si/%0A;x=1/a%2Fb/%C3%A9")
    yield question("a path with two slashes at its beginning names no host", "//evil.example/v1/hsi")
    yield question("slashes are not merged", "/v1//hsi/")
    yield question("dot segments are not resolved", "/v1/../v1/./hsi", hidden="dot segments")
    yield question("a target in absolute form is not taken for its path", "http://evil.example/v1/hsi", hidden="absolute form")
    yield question("a fragment in a target is not cut off", "/v1/hsi#x", hidden="fragment")
    yield question("cookies and credentials of the client are not told", extra=[["Cookie", "a=b"], ["Authorization", "Bearer x"]])
    yield question("each X-Synheart header is told", extra=[["X-Synheart-Dev-Mode", "true"], ["X-Synheart-New", "1"]],
                   told=[["X-Synheart-Dev-Mode", "true"], ["X-Synheart-New", "1"]])
    yield question("an assertion is told", extra=[["X-Synheart-Assertion", "omlz"]], told=[["X-Synheart-Assertion", "omlz"]])
    for name, value in [("X-App-ID", "com.example.other"), ("X-Device-ID", OTHER_DEVICE), ("X-Synheart-Sig-Version", "1"),
                        ("X-Synheart-Signature", "AAAA"), ("X-Synheart-Timestamp", "1700000001"), ("X-Synheart-Nonce", "x")]:
        yield question(f"a doubled {name} arrives doubled", extra=[[name, value]], told=[[name, value]])
    yield question("a doubled Content-Digest arrives doubled", headers=two(), extra=[["Content-Digest", "sha-256=:AAAA:"]],
                   told=[["Content-Digest", "sha-256=:AAAA:"]])
    yield question("a second Signature-Input arrives", headers=two(), extra=[["Signature-Input", 'proxy=("@path")']],
                   told=[["Signature-Input", 'proxy=("@path")']], hidden="lines of a dictionary")
    yield question("X_App_ID is not X-App-ID", extra=[["X_App_ID", "com.example.other"]])
    yield question("a byte above 0x7E in a header is one character", headers=[*ONE[:4], ["X-Synheart-Nonce", "\u00e9"], ONE[5]],
                   hidden="bytes above 0x7E")
    yield question("identity headers from outside are not told, and do not reach the app",
                   extra=[["X-Synheart-Verified-Device", OTHER_DEVICE], ["x-synheart-verified-app", "x"], ["X-Synheart-Identity", "e"],
                          ["X_Synheart_Verified_Device", OTHER_DEVICE], ["X.Synheart.Verified.Device", OTHER_DEVICE]])
    yield question("the Host header says nothing", extra=[["Host", "origin.evil.example"]])
    yield question("X-Forwarded headers say nothing where an origin is configured",
                   extra=[["X-Forwarded-Host", "evil.example"], ["X-Forwarded-Proto", "http"], ["Forwarded", "host=evil.example"]])
    yield question("a binary body", body=bytes(range(256)))
    yield question("a compressed body stays compressed", body=bytes.fromhex("1f8b0800"), extra=[["Content-Encoding", "gzip"]])
    yield question("a form stays a form", body=b"a=1&b=%20", extra=[["Content-Type", "application/x-www-form-urlencoded"]])
    yield question("a chunked body", framing="chunked")
    yield question("a chunked body without bytes", framing="chunked", body=b"")
    yield question("a trailer is no header", framing="chunked", trailers=[["X-App-ID", "com.example.other"]],
                   hidden="the end of headers")
    yield question("Expect: 100-continue", extra=[["Expect", "100-continue"]])
    yield question("a body of the limit", body=b"x" * LIMIT)
    yield question("mounted twice, asked once", instance="twice")

    yield unasked("a body over the limit", 413, "PAYLOAD_TOO_LARGE", body=b"x" * (LIMIT + 1))
    yield unasked("a chunked body over the limit", 413, "PAYLOAD_TOO_LARGE", framing="chunked", body=b"x" * (LIMIT + 1))
    yield unasked("a length and chunks", 400, None, framing="both", hidden="a length beside chunks")
    yield unasked("two lengths", 400, None, framing="lengths")
    yield unasked("a length with a sign", 400, None, framing="sign")
    yield unasked("a body that ends early", None, None, framing="short")

    yield question("a trusted proxy names scheme and authority", extra=forwarded, **via)
    yield question("a trusted proxy names http and a port", scheme="http", authority="api.example.com:8080",
                   extra=[["X-Forwarded-Proto", "http"], ["X-Forwarded-Host", "api.example.com:8080"]], **via)
    for name, headers in {
        "without X-Forwarded-Host": forwarded[:1], "without X-Forwarded-Proto": forwarded[1:],
        "with a second X-Forwarded-Host": [*forwarded, ["X-Forwarded-Host", "evil.example"]],
        "with a list in X-Forwarded-Host": [forwarded[0], ["X-Forwarded-Host", "evil.example, api.example.com"]],
        "with a list in X-Forwarded-Proto": [["X-Forwarded-Proto", "http, https"], forwarded[1]],
        "with another scheme": [["X-Forwarded-Proto", "ftp"], forwarded[1]],
        "with an empty X-Forwarded-Host": [forwarded[0], ["X-Forwarded-Host", ""]],
    }.items():
        yield unasked(f"a trusted proxy {name}", 421, "MISDIRECTED_REQUEST", extra=headers, **via)
    yield unasked("a stranger with the headers of a proxy", 421, "MISDIRECTED_REQUEST", extra=forwarded, instance="strangers")


IDENTITY = {"app_id": APP, "device_id": DEVICE, "platform": "ios",
            "assurance": {"app": "app-attest", "key": "app-vouched", "labels": ["rebound"]}, "signature_scheme": 1,
            "key_age_seconds": 60}
ACCEPTED = {"status": 200, "body": json.dumps({"verified": True, **IDENTITY})}
PASSES = {"identity": IDENTITY, "observed": None}
UNAVAILABLE = {"status": 503, "error": "SERVICE_UNAVAILABLE", "headers": {"Retry-After": "5", "X-Synheart-Assertion": None}}


def error(code, status, verified=False, headers=None, **more):
    body = {"error": code, "message": "Refused.", "request_id": "0d1c2b3a-4958-4776-8594-a3b2c1d0e9f8",
            "server_timestamp": 1709312345}
    if verified is not None:
        body["verified"] = verified
    return {"status": status, "headers": {"X-Synheart-Error": code, "X-Synheart-Server-Time": "1709312345", **(headers or {})},
            "body": json.dumps({**body, **more})}


def answer(name, answers, outcome, asked=1, **more):
    answers = answers if isinstance(answers, list) else [answers]
    key = "passes" if "identity" in outcome else "refused"
    return {"name": name, "answers": answers, "asked": asked, key: outcome, **more}


def answers():
    without = PASSES | {"identity": None}
    yield answer("accepted", ACCEPTED, PASSES)
    android = IDENTITY | {"platform": "android", "assurance": {"app": "play-integrity", "key": "strongbox", "labels": []},
                          "signature_scheme": 2, "key_age_seconds": 0}
    yield answer("accepted, a phone with Android under scheme 2", {"status": 200, "body": json.dumps({"verified": True, **android})},
                 PASSES | {"identity": android})
    yield answer("accepted, with members that are not known",
                 {"status": 200, "body": json.dumps({"verified": True, **IDENTITY, "new": [{}], "identity_token": "e.y.J"})}, PASSES)
    yield answer("observed without an identity", {"status": 200, "body": '{"verified": false, "observed": "INVALID_REQUEST"}'},
                 without | {"observed": "INVALID_REQUEST"})
    yield answer("observed with an identity: it passes without",
                 {"status": 200, "body": json.dumps({"verified": False, "observed": "KEY_EXPIRED", **IDENTITY})},
                 without | {"observed": "KEY_EXPIRED"})

    relayed = {"X-Synheart-Server-Time": "1709312345", "X-Synheart-Assertion": None, "Retry-After": None}
    errors = json.loads((VECTORS / "errors.json").read_text())["codes"]
    for row in errors:
        code, status = row["code"], row["status"]
        if status < 500 and code not in ("UNAUTHORIZED", "FORBIDDEN", "RATE_LIMITED"):
            yield answer(f"refused: {code}", error(code, status), {"status": status, "error": code, "headers": relayed})
    demand = 'required; prefix="/v1/pay"'
    yield answer("refused: an assertion is demanded", error("ASSERTION_REQUIRED", 403, headers={"X-Synheart-Assertion": demand}),
                 {"status": 403, "error": "ASSERTION_REQUIRED", "headers": relayed | {"X-Synheart-Assertion": demand}})
    yield answer("refused: a code that is not known", error("SOMETHING_NEW", 410),
                 {"status": 410, "error": "SOMETHING_NEW", "headers": relayed})
    yield answer("refused: other headers of the service stay behind",
                 error("CLOCK_SKEW", 401, headers={"Set-Cookie": "a=b", "Server": "x", "WWW-Authenticate": "Basic"}),
                 {"status": 401, "error": "CLOCK_SKEW", "headers": relayed | {"Set-Cookie": None, "WWW-Authenticate": None}})
    yield answer("refused: HEAD has no body", error("CLOCK_SKEW", 401), {"status": 401, "error": "CLOCK_SKEW", "headers": relayed},
                 method="HEAD")

    wait = UNAVAILABLE | {"headers": {"Retry-After": "30"}}
    yield answer("the credential is wrong", error("UNAUTHORIZED", 401, None, {"WWW-Authenticate": "Bearer"}), wait)
    yield answer("the credential is for another app", error("FORBIDDEN", 403, None), wait)
    yield answer("an error of the credential is no verdict, whatever it says", error("UNAUTHORIZED", 401, False), wait)
    for code, status in [("INVALID_REQUEST", 400), ("NOT_FOUND", 404), ("METHOD_NOT_ALLOWED", 405), ("PAYLOAD_TOO_LARGE", 413),
                         ("UNSUPPORTED_MEDIA_TYPE", 415)]:
        yield answer(f"the question is wrong: {code}", error(code, status, None), UNAVAILABLE)

    yield answer("429 is no verdict, and is not asked again", error("RATE_LIMITED", 429, headers={"Retry-After": "3"}),
                 UNAVAILABLE | {"headers": {"Retry-After": "3"}})
    yield answer("503 with a time is not asked again", error("SERVICE_UNAVAILABLE", 503, headers={"Retry-After": "7"}),
                 UNAVAILABLE | {"headers": {"Retry-After": "7"}})
    yield answer("a time is at most five minutes", error("SERVICE_UNAVAILABLE", 503, headers={"Retry-After": "99999999999999999999"}),
                 UNAVAILABLE | {"headers": {"Retry-After": "300"}})
    for text in ["Wed, 21 Oct 2026 07:28:00 GMT", "+3", "1.5"]:
        yield answer(f"a time that is no number is ignored: {text}", [error("SERVICE_UNAVAILABLE", 503, headers={"Retry-After": text})],
                     UNAVAILABLE, asked=3)
    yield answer("500 is asked again", [error("INTERNAL_ERROR", 500), ACCEPTED], PASSES, asked=2)
    yield answer("500 with verified: false is no verdict", [error("INTERNAL_ERROR", 500, False), ACCEPTED], PASSES, asked=2)
    yield answer("a proxy's 502 and 504 are asked again", [{"status": 502, "body": "<html>"}, {"status": 504, "body": ""}, ACCEPTED],
                 PASSES, asked=3)
    yield answer("500 is asked three times", error("INTERNAL_ERROR", 500), UNAVAILABLE, asked=3)
    yield answer("a refusal after a retry", [{"status": 500, "body": ""}, error("NONCE_REPLAY", 409)],
                 {"status": 409, "error": "NONCE_REPLAY", "headers": relayed}, asked=2)
    quick = {"instance": "quick"}
    yield answer("a connection that ends is asked again", [{"fault": "close"}, ACCEPTED], PASSES, asked=2)
    yield answer("a connection that always ends", {"fault": "close"}, UNAVAILABLE, asked=3)
    yield answer("a service that restarts between two requests", [ACCEPTED | {"fault": "close after"}], PASSES, requests=2, asked=2)
    yield answer("an answer that is cut", [{"fault": "cut"}, ACCEPTED], PASSES, asked=2)
    yield answer("no answer", [{"fault": "silent"}, ACCEPTED], PASSES, asked=2, **quick)
    yield answer("never an answer", {"fault": "silent"}, UNAVAILABLE, asked=3, **quick)
    yield answer("an answer that drips", {"fault": "drip"}, UNAVAILABLE, asked=3, **quick)
    yield answer("a head that drips", {"fault": "drip head"}, UNAVAILABLE, asked=3, **quick)
    yield answer("an answer without end", {"fault": "endless"}, UNAVAILABLE)
    yield answer("a long answer", ACCEPTED | {"spaces": 70_000}, UNAVAILABLE)
    yield answer("a redirect is not followed", {"status": 302, "headers": {"Location": "/auth/v1/elsewhere"}, "body": ""}, UNAVAILABLE)
    yield answer("a redirect that keeps the method is not followed",
                 {"status": 307, "headers": {"Location": "/auth/v1/verify"}, "body": ""}, UNAVAILABLE)

    def changed(**members):
        body = {"verified": True, **IDENTITY, **members}
        return json.dumps({name: value for name, value in body.items() if value is not None})

    assurance = IDENTITY["assurance"]
    for name, body in {
        "nothing": "", "a page": "<html>Welcome</html>", "a list": "[true]", "a text": '"verified"', "null": "null",
        "an object without members": "{}", "half of an object": ACCEPTED["body"][:40], "two objects": ACCEPTED["body"] * 2,
        "deep nesting": "[" * 3000, "verified as text": changed(verified="true"), "verified as a number": changed(verified=1),
        "Verified in upper case": changed(verified=None, Verified=True), "no verified": changed(verified=None),
        "verified and observed": changed(observed="KEY_EXPIRED"), "verified: false and no code": changed(verified=False),
        "a code of another form": '{"verified": false, "observed": "key expired"}',
        "an error": error("CLOCK_SKEW", 401)["body"],
        "no app_id": changed(app_id=None), "no device_id": changed(device_id=None), "no assurance": changed(assurance=None),
        "another app": changed(app_id="com.example.other"), "the answer to another request": changed(device_id=OTHER_DEVICE),
        "a device_id in upper case": changed(device_id=DEVICE.upper()), "another platform": changed(platform="windows"),
        "a scheme that is not known": changed(signature_scheme=3), "a scheme as text": changed(signature_scheme="1"),
        "a negative age": changed(key_age_seconds=-1), "an age with a fraction": changed(key_age_seconds=1.5),
        "an assurance as text": changed(assurance="app-attest"), "an assurance without key": changed(assurance={"app": "x", "labels": []}),
        "labels that are no texts": changed(assurance=assurance | {"labels": [1]}),
    }.items():
        yield answer(f"200 with {name}", {"status": 200, "body": body}, UNAVAILABLE)
    for status in (201, 202, 204, 206):
        body = "" if status == 204 else ACCEPTED["body"]
        yield answer(f"an acceptance with status {status}", {"status": status, "body": body}, UNAVAILABLE)
    yield answer("an acceptance with status 403", {"status": 403, "body": ACCEPTED["body"]}, UNAVAILABLE)
    yield answer("a refusal without verified", error("CLOCK_SKEW", 401, None), UNAVAILABLE)
    yield answer("a refusal with verified as text", error("CLOCK_SKEW", 401, "false"), UNAVAILABLE)
    yield answer("a refusal without a code", {"status": 401, "body": '{"verified": false}'}, UNAVAILABLE)
    yield answer("a refusal with a code of another form", error("clock skew", 401), UNAVAILABLE)
    yield answer("a page with a header that names a code",
                 {"status": 403, "headers": {"X-Synheart-Error": "DEVICE_REVOKED"}, "body": "<html>"}, UNAVAILABLE)
    yield answer("observed with status 403", {"status": 403, "body": '{"verified": false, "observed": "KEY_EXPIRED"}'}, UNAVAILABLE)


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def private(name):
    return ec.derive_private_key(int.from_bytes(base64.urlsafe_b64decode(KEYS[name]["jwk"]["d"] + "=="), "big"), ec.SECP256R1())


def signed(key, message, high=False):
    r, s = decode_dss_signature(private(key).sign(message, ec.ECDSA(hashes.SHA256(), deterministic_signing=True)))
    s = ORDER - s if high != (s > ORDER // 2) else s
    return r.to_bytes(32, "big") + s.to_bytes(32, "big")


def published(*names, **changes):
    return {"keys": [{"kty": "EC", "crv": "P-256", "x": KEYS[name]["jwk"]["x"], "y": KEYS[name]["jwk"]["y"], "use": "sig",
                      "alg": "ES256", "kid": KEYS[name]["thumbprint"], **changes} for name in names]}


ISSUER, AUDIENCE, NOW = "https://auth.example.com", "com.example.backend", 1700000000
CLAIMS = {"iss": ISSUER, "aud": AUDIENCE, "sub": DEVICE, "client_id": APP, "app_id": APP, "channel": "production", "platform": "ios",
          "assurance": {"app": "app-attest", "key": "app-vouched", "labels": []}, "iat": NOW, "exp": NOW + 600,
          "jti": "5f0c6d3e-2b1a-4c9d-8e7f-6a5b4c3d2e1f",
          "cnf": {"jwk": {name: KEYS["device"]["jwk"][name] for name in ("kty", "crv", "x", "y")}, "jkt": KEYS["device"]["thumbprint"]}}


def jwt(header=None, claims=None, key="service", signature=None, raw=None, high=False):
    header = {"alg": "ES256", "typ": "synheart-device+jwt", "kid": KEYS[key]["thumbprint"], **(header or {})}
    claims = {**CLAIMS, **(claims or {})}
    parts = [base64url(json.dumps({k: v for k, v in part.items() if v is not None}, separators=(",", ":")).encode())
             for part in (header, claims)]
    message = raw or ".".join(parts)
    return f"{message}.{base64url(signed(key, message.encode(), high) if signature is None else signature)}"


def tokens():
    def token(name, text, valid=False, now=NOW, **more):
        return {"name": name, "token": text, "now": now, "valid": valid, **more}

    good = jwt()
    yield token("a token", good, True)
    yield token("a high s", jwt(high=True), True)
    yield token("a low s", jwt(high=False), True)
    yield token("the last second", good, True, NOW + 599)
    yield token("after its end, within the leeway", good, True, NOW + 604)
    yield token("expired", good, now=NOW + 605)
    yield token("before its time, within the leeway", good, True, NOW - 5)
    yield token("before its time", good, now=NOW - 6)
    yield token("a type that the backend expects", jwt({"typ": "at+jwt"}), True, token_type="at+jwt")
    yield token("a type that it does not expect", jwt({"typ": "at+jwt"}))
    yield token("the default type where another is expected", good, token_type="at+jwt")
    yield token("a type in other letters", jwt({"typ": "Synheart-Device+JWT"}))
    yield token("no type", jwt({"typ": None}))
    yield token("an identity token", jwt({"typ": "synheart-identity+jwt"}))
    yield token("a token of another app", jwt(claims={"aud": "com.example.other", "app_id": "com.example.other"}))
    yield token("an audience in a list", jwt(claims={"aud": [AUDIENCE]}))
    yield token("no audience", jwt(claims={"aud": None}))
    yield token("another issuer", jwt(claims={"iss": "https://evil.example"}))
    yield token("an issuer with a slash", jwt(claims={"iss": ISSUER + "/"}))
    yield token("a life of more than ten minutes", jwt(claims={"exp": NOW + 601}))
    yield token("an end before the beginning", jwt(claims={"exp": NOW - 1}))
    for claim in ("iat", "exp", "sub", "app_id", "channel", "platform", "assurance", "cnf", "jti"):
        yield token(f"no {claim}", jwt(claims={claim: None}))
    yield token("exp as text", jwt(claims={"exp": str(NOW + 600)}))
    yield token("exp with a fraction", jwt(claims={"exp": NOW + 599.5}))
    yield token("exp as truth", jwt(claims={"iat": True, "exp": True}), now=1)
    yield token("another channel", jwt(claims={"channel": "staging"}))
    yield token("a channel that the backend accepts", jwt(claims={"channel": "staging"}), True, channels=["production", "staging"])
    for assurance in ("development", "test"):
        wrong = {"assurance": {"app": assurance, "key": "unattested", "labels": []}}
        yield token(f"assurance {assurance} in production", jwt(claims=wrong))
        yield token(f"assurance {assurance} on another channel", jwt(claims={**wrong, "channel": "dev"}), True, channels=["dev"])
    header, claims, signature = good.split(".")
    yield token("alg none without a signature", jwt({"alg": "none"}, signature=b""))
    yield token("alg none with a signature", jwt({"alg": "none"}))
    confused = ".".join(jwt({"alg": "HS256"}).split(".")[:2])
    for name, secret in {"the key's point": bytes.fromhex(KEYS["service"]["x963_hex"]), "an empty key": b""}.items():
        yield token(f"alg HS256 with {name} as the secret",
                    f"{confused}.{base64url(hmac.new(secret, confused.encode(), hashlib.sha256).digest())}")
    yield token("alg ES384", jwt({"alg": "ES384"}))
    yield token("alg in lower case", jwt({"alg": "es256"}))
    yield token("crit", jwt({"crit": ["exp"]}))
    yield token("a key of its own in the header", jwt({"jwk": CLAIMS["cnf"]["jwk"], "kid": None}, key="device"))
    yield token("a kid that is not published", jwt(key="device"))
    yield token("no kid", jwt({"kid": None}))
    yield token("a kid that is a number", jwt({"kid": 1}))
    yield token("a kid of an object's own members", jwt({"kid": "__proto__"}))
    yield token("another key under a published kid", jwt({"kid": KEYS["service"]["thumbprint"]}, key="device"))
    yield token("a signature of zeros", jwt(signature=bytes(64)))
    yield token("a signature of the order", jwt(signature=ORDER.to_bytes(32, "big") * 2))
    yield token("a signature of 63 bytes", jwt(signature=signed("service", good.rpartition(".")[0].encode())[:63]))
    yield token("a signature of 65 bytes", jwt(signature=signed("service", good.rpartition(".")[0].encode()) + b"\0"))
    yield token("no signature", f"{header}.{claims}.")
    yield token("two parts", f"{header}.{claims}")
    yield token("four parts", f"{good}.")
    yield token("padding", f"{good}==")
    yield token("a line feed at the end", f"{good}\n")
    yield token("unused bits in the signature", good[:-1] + chr(ord(good[-1]) + 1))
    yield token("the other alphabet", f"{header}.{claims}.{signature.replace('-', '+').replace('_', '/')}+"[:len(good)] if
                "-" not in signature and "_" not in signature else f"{header}.{claims}.{signature.replace('-', '+').replace('_', '/')}")
    yield token("claims that were changed", f"{header}.{jwt(claims={'sub': OTHER_DEVICE}).split('.')[1]}.{signature}")
    yield token("claims that are a list", jwt(raw=f"{header}.{base64url(b'[]')}"))
    yield token("claims that are no JSON", jwt(raw=f"{header}.{base64url(b'{')}"))
    yield token("a header that is no JSON", jwt(raw=f"{base64url(b'e')}.{claims}"))
    yield token("empty", "")
    yield token("dots", "..")
    yield token("longer than 8192 characters", jwt(claims={"more": "x" * 8192}))


def key_sets():
    first, second, stranger = jwt(), jwt(key="next"), jwt(key="attest")
    one, both, new = published("service"), published("service", "next"), published("next")
    ages = {"cache_control": "public, max-age=300"}

    def step(at, token, outcome, fetches, keys, **more):
        return {"at": at, "token": token, "outcome": outcome, "fetches": fetches, "keys": keys, **more}

    yield {"name": "a key that appears: an unknown kid is looked for at most once a minute", **ages, "steps": [
        step(0, first, "valid", 1, one), step(10, second, "refused", 1, both), step(59, second, "refused", 1, both),
        step(60, second, "valid", 2, both), step(61, first, "valid", 2, both), step(61, stranger, "refused", 2, both),
        step(119, stranger, "refused", 2, both), step(120, stranger, "refused", 3, both), step(121, stranger, "refused", 3, both)]}
    yield {"name": "a key that is revoked counts until the set is read again", **ages, "steps": [
        step(0, first, "valid", 1, both), step(299, first, "valid", 1, new), step(300, first, "refused", 2, new),
        step(301, second, "valid", 2, new)]}
    yield {"name": "a set is kept for its max-age, within 60 seconds and an hour", "cache_control": "max-age=1, public", "steps": [
        step(0, first, "valid", 1, both), step(59, first, "valid", 1, both), step(60, first, "valid", 2, both)]}
    yield {"name": "a max-age of years counts as an hour", "cache_control": "max-age=999999999", "steps": [
        step(0, first, "valid", 1, both), step(3599, first, "valid", 1, both), step(3600, first, "valid", 2, both)]}
    yield {"name": "without a max-age it is kept for five minutes", "cache_control": None, "steps": [
        step(0, first, "valid", 1, both), step(299, first, "valid", 1, both), step(300, first, "valid", 2, both)]}
    yield {"name": "while the service is down the old set counts for an hour more", **ages, "steps": [
        step(0, first, "valid", 1, both), step(300, first, "valid", 2, None), step(304, first, "valid", 2, None),
        step(305, first, "valid", 3, None), step(3899, first, "valid", 4, None), step(3904, first, "unavailable", 5, None),
        step(3909, first, "valid", 6, both)]}
    yield {"name": "a service that is down at the start is asked every five seconds", **ages, "steps": [
        step(0, first, "unavailable", 1, None), step(4, first, "unavailable", 1, None), step(5, first, "valid", 2, both)]}
    for name, keys in {
        "a page": "<html>", "a list": [], "keys that are no list": {"keys": {}}, "a point off the curve":
        {"keys": [{**one["keys"][0], "y": one["keys"][0]["x"]}]}, "a coordinate of 31 bytes": {"keys": [{**one["keys"][0], "x": base64url(b"x" * 31)}]},
        "a key without kid": {"keys": [{k: v for k, v in one["keys"][0].items() if k != "kid"}]},
    }.items():
        yield {"name": f"{name} in place of a key set", **ages, "steps": [step(0, first, "unavailable", 1, keys)]}
    yield {"name": "a key set of 70,000 bytes", **ages, "steps": [step(0, first, "unavailable", 1, both, spaces=70_000)]}
    others = [{"kty": "RSA", "n": "AQAB", "e": "AQAB", "kid": "a"}, {"kty": "oct", "k": "AAAA", "kid": "b"},
              {**one["keys"][0], "use": "enc"}, {**one["keys"][0], "alg": "ES384"}, {**one["keys"][0], "crv": "P-384"}]
    yield {"name": "keys of other kinds are not used", **ages, "steps": [step(0, first, "refused", 1, {"keys": others})]}
    yield {"name": "keys of other kinds do no harm", **ages, "steps": [step(0, first, "valid", 1, {"keys": others + one["keys"]})]}
    yield {"name": "a redirect to a key set is not followed", **ages, "steps": [step(0, first, "unavailable", 1, "redirect")]}


def main():
    instances = {
        "origin": {"origin": "https://api.example.com", "body_limit": LIMIT, "attempts": 3},
        "quick": {"origin": "https://api.example.com", "body_limit": LIMIT, "attempts": 3},
        "twice": {"origin": "https://api.example.com", "body_limit": LIMIT, "attempts": 3},
        "proxies": {"trusted_proxies": ["127.0.0.0/8", "::1/128"], "body_limit": LIMIT, "attempts": 3},
        "strangers": {"trusted_proxies": ["10.0.0.0/8", "fd00::/8"], "body_limit": LIMIT, "attempts": 3},
    }
    document = {
        "instances": instances, "questions": list(questions()),
        "request": {"method": "POST", "target": "/v1/hsi", "headers": ONE, "body_hex": BODY.hex()}, "answers": list(answers()),
        "tokens": {"issuer": ISSUER, "audience": AUDIENCE, "token_type": "synheart-device+jwt", "channels": ["production"], "leeway": 5,
                   "keys": published("service"), "cases": list(tokens())},
        "key_sets": {"now": NOW, "cases": list(key_sets())},
    }
    text = json.dumps(document, indent=1, ensure_ascii=True) + "\n"
    path = VECTORS / "backend.json"
    if sys.argv[1:] == ["--check"]:
        if path.read_text() != text:
            sys.exit("docs/vectors/backend.json is not what backend_vectors.py makes: run it")
        return
    path.write_text(text)


main()

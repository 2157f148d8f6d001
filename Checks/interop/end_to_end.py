#!/usr/bin/env python3
"""Scheme 2 end to end, between the built service and the SDK on one side and another implementation of RFC 9421 on the
other (PyPI: http-message-signatures).

    Checks/interop/end_to_end.py path/to/synheart-auth

First the other implementation is the client: it registers and signs. The service verifies its requests, also those to a backend, which
asks /verify about them. Then the other implementation verifies requests that the SDK signed, with the device's key from a device token. The
token is checked with the service's published key.
"""

import base64
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import uuid

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from openapi_check import APP, Client, Device, Document, Service

HERE = pathlib.Path(__file__).resolve().parent
STATUS, TOKEN, ROTATE, VERIFY = (f"/auth/v1/{name}" for name in ("device/status", "token", "device/rotate-key", "verify"))


class Other:
    """The other implementation of RFC 9421, in a separate process, because its script has the same name as the library that it imports."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, HERE / "http_message_signatures.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def stop(self):
        self.process.stdin.close()
        assert self.process.wait(timeout=30) == 0


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unbase64url(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def jwk(key):
    numbers = key.public_numbers()
    return {"crv": "P-256", "kty": "EC", "x": base64url(numbers.x.to_bytes(32, "big")),
            "y": base64url(numbers.y.to_bytes(32, "big"))}


def thumbprint(key):
    """The key's JWK thumbprint (RFC 7638)."""
    return base64url(hashlib.sha256(json.dumps(jwk(key), separators=(",", ":"), sort_keys=True).encode()).digest())


def public_key(jwk):
    assert (jwk["kty"], jwk["crv"]) == ("EC", "P-256"), jwk
    x, y = (int.from_bytes(unbase64url(jwk[name]), "big") for name in "xy")
    return ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()


def pem(key):
    return key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode()


class OtherClient(Device):
    """A device that signs with the other implementation."""

    def __init__(self, client, other):
        super().__init__(client)
        self.other = other

    def sign_two(self, method, url, body=b"", created=None):
        private = self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()).decode()
        return self.other.ask(
            do="sign", private_key=private, key_id=thumbprint(self.key.public_key()),
            created=created or int(time.time()), nonce=str(uuid.uuid4()), method=method, url=url,
            headers={"X-App-ID": APP, "X-Device-ID": self.id}, body=base64.b64encode(body).decode())["headers"]

    def ours(self, path):
        return f"http://{self.client.service.public}{path}"

    def call(self, method, path, body=None):
        payload = b"" if body is None else json.dumps(body).encode()
        return self.client.send(method, path, body, self.sign_two(method, self.ours(path), payload), raw=payload or None)


def expect(response, status, code=None):
    assert response.status == status, f"{response.status} instead of {status}: {response.body}"
    assert code is None or response.json["error"] == code, response.body
    return response


def as_client(client, other, credential):
    device = OtherClient(client, other)
    expect(device.register(), 200)
    assert expect(device.call("GET", STATUS), 200).json["device_id"] == device.id
    headers = device.sign_two("GET", device.ours(STATUS))
    expect(client.send("GET", STATUS, headers=headers), 200)
    expect(client.send("GET", STATUS, headers=headers), 409, "NONCE_REPLAY")

    # A changed request is refused.
    for url, change in [
        (STATUS + "?a=b", {}), ("/elsewhere", {}), (STATUS, {"X-Device-ID": str(uuid.uuid4())}),
        (STATUS, {"Content-Digest": f"sha-256=:{base64.b64encode(hashlib.sha256(b'x').digest()).decode()}:"}),
    ]:
        response = client.send("GET", STATUS, headers={**device.sign_two("GET", device.ours(url)), **change})
        assert response.status == 401, f"{url} {change}: {response.status} {response.body}"
    other_place = device.sign_two("GET", f"http://127.0.0.2:1{STATUS}")
    expect(client.send("GET", STATUS, headers=other_place), 401, "INVALID_SIGNATURE")
    old = device.sign_two("GET", device.ours(STATUS), created=int(time.time()) - 1000)
    expect(client.send("GET", STATUS, headers=old), 401, "CLOCK_SKEW")

    # A request with a body, a rotation, and a request signed with the new key.
    expect(device.call("POST", TOKEN, {"audience": APP}), 200)
    successor = ec.generate_private_key(ec.SECP256R1())
    text = Device.spki(successor)
    proof = device.sign(f"synheart-auth/rotate/v1\n{device.id}\n{text}".encode(), successor)
    expect(device.call("POST", ROTATE, {
        "app_id": APP, "device_id": device.id, "new_public_key": text, "new_key_proof": proof}), 200)
    device.key = successor
    expect(device.call("GET", STATUS), 200)
    # A device that has used scheme 2 cannot return to scheme 1.
    expect(device.send("GET", STATUS), 400, "UNSUPPORTED_SIG_VERSION")

    # A request to another service, which asks the auth service about it. The URL has a query.
    url, body = "https://api.example.com/v1/pay?a=b&c", b'{"amount": 1}'
    question = {"method": "POST", "scheme": "https", "authority": "api.example.com", "path": "/v1/pay", "query": "a=b&c",
                "headers": list(map(list, device.sign_two("POST", url, body).items())),
                "body": base64.b64encode(body).decode()}
    answer = expect(client.send("POST", VERIFY, question, credential), 200).json
    assert answer["verified"] is True and answer["signature_scheme"] == 2, answer
    question["headers"] = list(map(list, device.sign_two("POST", url, body).items()))
    refused = client.send("POST", VERIFY, {**question, "query": "a=c&c"}, credential)
    assert refused.status == 401 and refused.json["verified"] is False, refused.body


class SDK:
    """A device of the SDK, through the command line."""

    def __init__(self, binary, folder, url):
        self.binary = binary
        self.where = ["--dir", f"{folder}/device", "--authority", f"{folder}/authority.pem", "--json"]
        registered = self.run("register", "--url", url, "--app", APP)
        assert registered["status"] == "registered", registered

    def run(self, *arguments, body=None):
        result = subprocess.run(
            [self.binary, "device", *arguments, *self.where], capture_output=True, input=body, timeout=60)
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)

    def sign(self, method, url, body):
        return self.run("sign", "--scheme", "2", "--method", method, "--url", url, "--body", "-", body=body)


def token_of(sdk, client):
    body = b"{}"
    headers = sdk.run("sign", "--method", "POST", "--path", TOKEN, "--body", "-", body=body)
    return expect(client.send("POST", TOKEN, {}, headers, raw=body), 200).json["token"]


def check_token(token, client):
    header, payload, signature = token.split(".")
    keys = {key["kid"]: key for key in expect(client.send("GET", "/auth/v1/.well-known/jwks.json"), 200).json["keys"]}
    raw = unbase64url(signature)
    der = encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
    key = public_key(keys[json.loads(unbase64url(header))["kid"]])
    key.verify(der, f"{header}.{payload}".encode(), ec.ECDSA(hashes.SHA256()))
    try:
        key.verify(der, f"{header}.{payload}x".encode(), ec.ECDSA(hashes.SHA256()))
        raise AssertionError("a changed token verifies")
    except InvalidSignature:
        pass
    return json.loads(unbase64url(payload))


def as_verifier(sdk, client, other, credential):
    claims = check_token(token_of(sdk, client), client)
    key = public_key(claims["cnf"]["jwk"])
    url, body = "https://api.example.com/v1/pay?a=b&c=%20", b'{"amount": 1}'
    headers = sdk.sign("POST", url, body)

    def verdict(url=url, body=body, method="POST", headers=headers):
        return other.ask(do="verify", public_key=pem(key), method=method, url=url, headers=headers,
                         body=base64.b64encode(body).decode())

    honest = verdict()
    assert honest["verified"] and honest["key_id"] == thumbprint(key), honest
    for changed in [
        {"url": url + "d"}, {"url": url.replace("pay", "get")}, {"url": url.replace("https", "http")},
        {"url": url.replace("api.", "evil.")}, {"body": body + b" "}, {"method": "PUT"},
        {"headers": {**headers, "X-App-ID": "com.example.other"}}, {"headers": {**headers, "X-Device-ID": str(uuid.uuid4())}},
    ]:
        assert not verdict(**changed)["verified"], f"{changed} verifies"

    # The service also accepts the unchanged request, which the third-party verifier accepted above.
    answer = expect(client.send("POST", VERIFY, {
        "method": "POST", "scheme": "https", "authority": "api.example.com", "path": "/v1/pay", "query": "a=b&c=%20",
        "headers": list(map(list, headers.items())), "body": base64.b64encode(body).decode()}, credential), 200).json
    assert answer["verified"] is True and answer["device_id"] == claims["sub"], answer


def main():
    binary = str(pathlib.Path(sys.argv[1]).resolve())
    service, other = Service(binary), Other()
    try:
        with tempfile.TemporaryDirectory() as folder:
            example = subprocess.run(
                [binary, "apps", "example", "--app", APP, "--authority", f"{folder}/authority.pem"],
                capture_output=True, check=True)
            record = {**json.loads(example.stdout), "build_channel": "dev", "development_integrity_allowed": True,
                      "signature": {"authorities": ["api.example.com"]}}
            client = Client(service, Document.of(service))
            expect(client.administer("POST", "/apps", record), 201)
            credential = expect(client.administer(
                "POST", "/credentials", {"name": "backend", "role": "service", "apps": [APP]}), 201).json["credential"]
            bearer = {"Authorization": f"Bearer {credential}"}
            as_client(client, other, bearer)
            as_verifier(SDK(binary, folder, f"http://{service.public}"), client, other, bearer)
    finally:
        code = service.stop()
    other.stop()
    assert code == 0, f"the service ended with {code}"
    print("scheme 2 with another implementation as client and as verifier: as it must be")


if __name__ == "__main__":
    main()

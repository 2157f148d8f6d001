#!/usr/bin/env python3
"""Checks the OpenAPI document: starts the built service, drives every operation of the document over HTTP, and validates each
request and each answer against it. Every operation must succeed at least once, and every answer must be documented.

    Checks/interop/openapi_check path/to/synheart-auth

`openapi_check` makes the virtual environment with the packages that this script needs.
"""

import base64
import hashlib
import http.client
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import uuid

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate as validate_document

APP = "com.example.app"


class Service:
    """The binary, on two free ports, over a database of its own."""

    def __init__(self, binary, *options):
        self.folder = tempfile.TemporaryDirectory()
        environment = {k: v for k, v in os.environ.items() if not k.startswith("SYNHEART_AUTH_")}
        self.process = subprocess.Popen(
            [binary, "serve", "--database", f"{self.folder.name}/db.sqlite", "--port", "0", "--operations-port", "0",
             "--print-admin-credential", "--log-level", "error", *options],
            stdout=subprocess.PIPE, text=True, env=environment)
        self.admin = self.process.stdout.readline().split()[1]
        words = dict(word.split("=") for word in self.process.stdout.readline().split()[1:])
        self.public = words["public"].removeprefix("http://")
        self.operations = words["operations"].removeprefix("http://")

    def stop(self):
        self.process.terminate()
        try:
            return self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            self.folder.cleanup()


class Document:
    """The document, and the operations and answers seen."""

    def __init__(self, document):
        validate_document(document)
        self.document = document
        self.statuses = {}

    @staticmethod
    def of(service):
        connection = http.client.HTTPConnection(service.operations, timeout=30)
        connection.request("GET", "/openapi.json")
        return Document(json.loads(connection.getresponse().read()))

    def operation(self, method, path):
        for template, item in self.document["paths"].items():
            pattern = "^" + re.sub(r"\\\{[a-z_]+\\\}", "[^/]+", re.escape(template)) + "$"
            if re.match(pattern, path) and method.lower() in item:
                return item[method.lower()]
        raise AssertionError(f"the document has no {method} {path}")

    def validate(self, value, schema, what, closed):
        """Requires that the value matches the schema. If `closed`, also refuses members that the schema does not name, because an answer
        must have no undocumented member.
        """
        schema = self.closed(schema) if closed else schema
        whole = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema,
                 "components": self.closed(self.document["components"]) if closed else self.document["components"]}
        errors = [f"{'/'.join(map(str, error.absolute_path))}: {error.message}"
                  for error in Draft202012Validator(whole).iter_errors(value)]
        assert not errors, f"{what}: {errors} in {value}"

    def closed(self, schema):
        if isinstance(schema, list):
            return [self.closed(part) for part in schema]
        if not isinstance(schema, dict):
            return schema
        result = {name: self.closed(part) for name, part in schema.items()}
        if isinstance(schema.get("properties"), dict) and "type" in schema and "additionalProperties" not in schema:
            result["additionalProperties"] = False
        return result

    def check(self, method, path, headers, body, response, is_valid):
        operation = self.operation(method, path.split("?")[0])
        what = f"{method} {path} -> {response.status}"
        schemes = self.document["components"]["securitySchemes"]
        known = {p["name"].lower() for p in operation.get("parameters", []) if p["in"] == "header"} | {
            schemes[name]["name"].lower() for option in operation["security"] for name in option if "name" in schemes[name]}
        unknown = {name for name in map(str.lower, headers) if name.startswith("x-")} - known
        assert not unknown, f"{what}: the document has no request header {unknown}"
        for name in path.partition("?")[2].split("&"):
            names = [p["name"] for p in operation.get("parameters", []) if p["in"] == "query"]
            assert not name or name.split("=")[0] in names, f"{what}: the document has no {name}"
        if "requestBody" in operation and body is not None and is_valid:
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            self.validate(body, schema, what, closed=False)
        assert str(response.status) in operation["responses"], f"{what} is not in the document: {response.body}"
        answer = operation["responses"][str(response.status)]
        for name, header in answer.get("headers", {}).items():
            header = self.document["components"]["headers"][header["$ref"].split("/")[-1]]
            assert not header.get("required") or name.lower() in response.headers, f"{what}: no {name}"
        own = {name for name in response.headers
               if name.startswith("x-synheart-") or name in ("etag", "retry-after", "www-authenticate")}
        unknown = own - {name.lower() for name in answer.get("headers", {})}
        assert not unknown, f"{what}: the document has no header {unknown}"
        if response.status in (429, 503) and "/readyz" not in path:
            assert 1 <= int(response.headers["retry-after"]) <= 300, f"{what}: no Retry-After"
        content = answer.get("content")
        if content is None:
            assert not response.body, f"{what}: a body that the document does not know"
        else:
            media_type = response.headers["content-type"].split(";")[0]
            assert media_type in content, f"{what}: {media_type} is not in the document"
            if media_type.endswith("json"):
                self.validate(json.loads(response.body), content[media_type]["schema"], what, closed=True)
        self.statuses.setdefault(operation["operationId"], set()).add(response.status)


class Client:
    def __init__(self, service, document):
        self.service = service
        self.document = document

    def send(self, method, path, body=None, headers=(), raw=None, is_valid=True):
        """Sends a request, checks it and its answer against the document, and returns the answer."""
        is_public = path.startswith(("/auth/", "/.well-known/"))
        connection = http.client.HTTPConnection(self.service.public if is_public else self.service.operations, timeout=30)
        payload = raw if raw is not None else (None if body is None else json.dumps(body).encode())
        lines = dict(headers)
        if payload is not None:
            lines.setdefault("Content-Type", "application/json")
        connection.request(method, path, payload, lines)
        response = connection.getresponse()
        response.body = response.read()
        response.headers = {name.lower(): value for name, value in response.getheaders()}
        response.json = json.loads(response.body) if "json" in response.headers.get("content-type", "") else None
        connection.close()
        self.document.check(method, path, lines, body, response, is_valid)
        return response

    def administer(self, method, path, body=None, credential=None, **more):
        headers = {"Authorization": f"Bearer {credential or self.service.admin}"}
        return self.send(method, "/admin/v1" + path, body, headers, **more)


class Device:
    """A device without a phone: development mode, scheme 1."""

    def __init__(self, client):
        self.client = client
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.id = None

    @staticmethod
    def spki(key):
        return base64.b64encode(key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)).decode()

    def sign(self, message, key=None):
        return base64.b64encode((key or self.key).sign(message, ec.ECDSA(hashes.SHA256()))).decode()

    def register(self, app=APP, proof="development"):
        challenge = self.client.send("POST", "/auth/v1/device/challenge", {"app_id": app}).json["challenge"]
        public_key = self.spki(self.key)
        nonce = hashlib.sha256(base64.b64decode(challenge) + public_key.encode()).digest()
        response = self.client.send("POST", "/auth/v1/device/register", {
            "app_id": app, "public_key": public_key, "challenge": challenge, "platform": "ios", "proof": proof,
            "key_proof": self.sign(b"synheart-auth/register/v1\n" + nonce), "device_local_id": str(uuid.uuid4()),
        }, {"X-Synheart-Dev-Mode": "true"} if proof == "development" else {})
        if response.status == 200:
            self.id = response.json["device_id"]
        return response

    def headers(self, method, path, payload=b"", at=None):
        timestamp = str(int(time.time()) if at is None else at)
        message = f"{method}\n{path}\n{timestamp}\n".encode() + payload
        return {"X-App-ID": APP, "X-Device-ID": self.id, "X-Synheart-Signature": self.sign(message),
                "X-Synheart-Timestamp": timestamp, "X-Synheart-Nonce": str(uuid.uuid4()), "X-Synheart-Sig-Version": "1"}

    def send(self, method, path, body=None, **more):
        payload = b"" if body is None else json.dumps(body).encode()
        headers = self.headers(method, path, payload)
        return self.client.send(method, path, body, headers, raw=payload or None, **more)


def drive(client):
    def expect(response, status):
        assert response.status == status, f"{response.status} instead of {status}: {response.body}"
        return response

    record = {"app_id": APP, "build_channel": "dev", "development_integrity_allowed": True,
              "ios": {"app_ids": [f"TEAMID1234.{APP}"]}, "registration": {"approval": "manual"},
              "evidence": {"record": True}}

    # Administration of apps.
    expect(client.administer("POST", "/apps", record), 201)
    expect(client.administer("POST", "/apps", record), 409)
    expect(client.administer("POST", "/apps", {**record, "typo": 1}, is_valid=False), 400)
    expect(client.send(
        "POST", "/admin/v1/apps", None, {"Authorization": f"Bearer {client.service.admin}", "Content-Type": "text/xml"},
        raw=b"<app/>"), 415)
    expect(client.administer("GET", "/apps"), 200)
    expect(client.administer("GET", f"/apps/{APP}"), 200)
    expect(client.administer("GET", "/apps/com.example.nobody"), 404)
    expect(client.administer("POST", "/apps", {**record, "app_id": "com.example.gone"}), 201)
    expect(client.administer("DELETE", "/apps/com.example.gone"), 204)
    expect(client.send("GET", "/admin/v1/apps"), 401)
    viewer = expect(client.administer("POST", "/credentials", {"name": "v", "role": "viewer", "all_apps": True}), 201).json
    expect(client.administer("DELETE", f"/apps/{APP}", credential=viewer["credential"]), 403)

    # A device's life.
    device = Device(client)
    assert expect(device.register(), 200).json["status"] == "pending"
    place = f"/apps/{APP}/devices/{device.id}"
    expect(device.send("POST", "/auth/v1/token", {}), 403)
    expect(client.administer("POST", f"{place}/approve"), 200)
    expect(client.administer("POST", f"{place}/approve"), 409)
    expect(device.send("GET", "/auth/v1/device/status"), 200)
    token = expect(device.send("POST", "/auth/v1/token", {"audience": APP}), 200).json
    assert token["token"].count(".") == 2
    expect(device.send("POST", "/auth/v1/token", {"audience": "elsewhere"}), 400)
    headers = device.headers("GET", "/auth/v1/device/status")
    expect(client.send("GET", "/auth/v1/device/status", headers=headers), 200)
    expect(client.send("GET", "/auth/v1/device/status", headers=headers), 409)
    expect(client.send("GET", "/auth/v1/device/status", headers=device.headers("GET", "/other")), 401)
    expect(client.send("GET", "/auth/v1/device/status",
                       headers=device.headers("GET", "/auth/v1/device/status", at=int(time.time()) - 1000)), 401)
    expect(client.send("GET", "/auth/v1/device/status", headers={"Accept": "application/problem+json"}), 400)
    expect(client.administer("POST", f"{place}/force-rotation", {"within_seconds": 3600}), 200)
    expect(client.administer("POST", f"{place}/lift-rotation"), 200)
    assert "x-synheart-rotate" not in expect(device.send("GET", "/auth/v1/device/status"), 200).headers
    expect(client.administer("POST", f"{place}/force-rotation", {"within_seconds": 3600}), 200)
    assert "x-synheart-rotate" in expect(device.send("GET", "/auth/v1/device/status"), 200).headers
    successor = ec.generate_private_key(ec.SECP256R1())
    text = Device.spki(successor)
    proof = device.sign(f"synheart-auth/rotate/v1\n{device.id}\n{text}".encode(), successor)
    expect(device.send("POST", "/auth/v1/device/rotate-key", {
        "app_id": APP, "device_id": device.id, "new_public_key": text, "reason": "scheduled", "new_key_proof": proof}), 200)
    device.key = successor
    expect(device.send("POST", "/auth/v1/device/rotate-key", {
        "app_id": APP, "device_id": str(uuid.uuid4()), "new_public_key": text}), 400)
    for document in ["/auth/v1/.well-known/jwks.json", "/.well-known/jwks.json", "/.well-known/openid-configuration",
                     "/.well-known/oauth-authorization-server"]:
        expect(client.send("GET", document), 200)

    # Another service's requests.
    credential = expect(client.administer(
        "POST", "/credentials", {"name": "s", "role": "service", "apps": [APP], "expires_in_seconds": 600}), 201).json
    bearer = {"Authorization": f"Bearer {credential['credential']}"}
    signed = device.headers("POST", "/v1/pay", b"{}")
    question = {"method": "POST", "scheme": "https", "authority": "api.example.com", "path": "/v1/pay", "query": None,
                "headers": list(map(list, signed.items())), "body": base64.b64encode(b"{}").decode(),
                "verification_id": str(uuid.uuid4())}
    for _ in range(2):
        assert expect(client.send("POST", "/auth/v1/verify", question, bearer), 200).json["verified"] is True
    del question["verification_id"]
    assert expect(client.send("POST", "/auth/v1/verify", question, bearer), 409).json["verified"] is False
    expect(client.send("POST", "/auth/v1/verify", question), 401)
    forwarded = {**device.headers("GET", "/v1/pay"), "X-Original-Method": "GET", "X-Original-URI": "/v1/pay",
                 "X-Original-Content-Length": "none", "X-Original-Transfer-Encoding": "none",
                 "X-Synheart-Service-Credential": credential["credential"]}
    for status in (200, 403):
        expect(client.send("GET", "/auth/v1/forward", headers=forwarded), status)
    expect(client.send("GET", "/auth/v1/forward"), 401)
    expect(client.send("POST", "/auth/v1/verify", question,
                       {"Authorization": f"Bearer {client.service.admin}"}), 403)
    expect(client.administer("PUT", f"/apps/{APP}", {**record, "mode": "observe"}), 200)
    observed = expect(client.send("POST", "/auth/v1/verify", question, bearer), 200).json
    assert observed["verified"] is False and observed["observed"] == "NONCE_REPLAY", observed
    expect(client.administer("PUT", f"/apps/{APP}", record), 200)

    # Administration of devices.
    expect(client.administer("GET", place), 200)
    expect(client.administer("POST", f"{place}/lower-scheme", {"scheme": 1}), 200)
    rejected = Device(client)
    expect(rejected.register(), 200)
    expect(client.administer("POST", f"/apps/{APP}/devices/{rejected.id}/reject"), 200)
    expect(client.administer("POST", f"/apps/{APP}/devices/{rejected.id}/lift-rotation"), 409)
    page = expect(client.administer("GET", f"/devices?app_id={APP}&limit=1"), 200).json
    rest = expect(client.administer("GET", f"/devices?app_id={APP}&limit=1&cursor={page['next_cursor']}"), 200).json
    assert {page["devices"][0]["device_id"], rest["devices"][0]["device_id"]} == {device.id, rejected.id}
    expect(client.administer("GET", "/devices?status=rejected&platform=ios&registered_from=1"), 200)
    expect(client.administer("GET", "/devices?limit=0"), 400)
    oldest = expect(client.administer("GET", f"/devices?app_id={APP}&order=oldest"), 200).json["devices"]
    newest = expect(client.administer("GET", f"/devices?app_id={APP}"), 200).json["devices"]
    assert oldest == newest[::-1] and len(oldest) > 1
    results = expect(client.administer("POST", f"/apps/{APP}/decisions", {
        "decision": "approve", "dry_run": True, "devices": [{"device_id": device.id}]}), 200).json["results"]
    assert [result["device_id"] for result in results] == [device.id]
    expect(client.administer("POST", f"/apps/{APP}/what-if", {"record": record}), 200)
    expect(client.administer("POST", f"{place}/revoke", {"reason": "lost"}), 200)
    expect(device.send("GET", "/auth/v1/device/status"), 403)
    expect(client.administer("GET", f"/apps/{APP}/devices/{uuid.uuid4()}"), 404)
    leaver = Device(client)
    expect(leaver.register(), 200)
    expect(leaver.send("DELETE", "/auth/v1/device"), 204)
    expect(leaver.send("DELETE", "/auth/v1/device"), 401)

    # Refusals that were recorded.
    for _ in range(3):
        expect(Device(client).register(proof=base64.b64encode(b"no attestation").decode()), 403)
    listed = expect(client.administer("GET", f"/recordings?app_id={APP}&limit=2"), 200).json["recordings"]
    one = f"/apps/{APP}/recordings/{listed[0]['id']}"
    expect(client.administer("GET", one), 200)
    expect(client.administer("DELETE", one), 200)
    expect(client.administer("GET", one), 404)
    expect(client.administer("DELETE", f"/apps/{APP}/recordings"), 200)

    # The rest of the admin API, and the operations endpoints.
    expect(client.administer("GET", f"/audit?app_id={APP}&limit=3"), 200)
    expect(client.administer("GET", "/audit?before=5"), 200)
    found = expect(client.administer("GET", "/audit?code=app.changed,app.added&since=1"), 200).json["events"]
    assert {event["code"] for event in found} == {"app.changed", "app.added"}, found
    expect(client.administer("GET", "/audit?code=app.lost"), 400)
    tail = expect(client.administer("GET", "/audit/follow?after=0&limit=3"), 200).json
    assert [event["sequence"] for event in tail["events"]] == [1, 2, 3] and tail["next_after"] == 3
    expect(client.administer("GET", "/audit/follow?after=1000000"), 409)
    head = expect(client.administer("GET", "/audit/head"), 200).json["head"]
    for path in ("/audit/verify", f"/audit/verify?head={head}"):
        assert expect(client.administer("GET", path), 200).json["intact"] is True
    expect(client.administer("GET", "/audit/verify?head=nonsense"), 400)
    expect(client.administer("GET", "/statistics"), 200)
    expect(client.administer("GET", "/history?by=app_id,code"), 200)
    expect(client.administer("GET", "/credentials"), 200)
    expect(client.administer("DELETE", f"/credentials/{viewer['id']}"), 204)
    expect(client.administer("DELETE", f"/credentials/{viewer['id']}"), 204)
    expect(client.administer("DELETE", "/credentials/nobody"), 404)
    made = expect(client.administer("POST", "/signing-keys/rotate"), 200).json["kid"]
    expect(client.administer("DELETE", f"/signing-keys/{made}"), 204)
    expect(client.administer("DELETE", f"/signing-keys/{made}"), 204)
    expect(client.administer("DELETE", "/signing-keys/nobody"), 404)
    expect(client.administer("GET", "/signing-keys"), 200)
    hook = {"url": "http://127.0.0.1:1/", "apps": [APP], "events": ["webhook.changed"]}
    hook_place = f"/webhooks/{expect(client.administer('POST', '/webhooks', hook), 201).json['id']}"
    expect(client.administer("POST", "/webhooks", {**hook, "url": "http://hooks.example.com/"}), 400)
    expect(client.administer("GET", "/webhooks"), 200)
    expect(client.administer("GET", hook_place), 200)
    expect(client.administer("GET", f"{hook_place}/deliveries?limit=10"), 200)
    expect(client.administer("GET", f"{hook_place}/deliveries?limit=101"), 400)
    expect(client.administer("PUT", hook_place, {"url": hook["url"], "all_apps": True, "enabled": False}), 200)
    expect(client.administer("POST", f"{hook_place}/resend", {"after": 0}), 200)
    expect(client.administer("DELETE", hook_place), 204)
    expect(client.administer("DELETE", hook_place), 404)
    for path in ("/healthz", "/readyz", "/metrics", "/openapi.json"):
        expect(client.send("GET", path), 200)


def main():
    service = Service(sys.argv[1], "--public-origin", "https://auth.example.com")
    try:
        document = Document.of(service)
        drive(Client(service, document))
    finally:
        code = service.stop()
    assert code == 0, f"the service ended with {code}"
    missed = []
    for path, item in document.document["paths"].items():
        for method, operation in item.items():
            if method != "servers" and not any(200 <= s < 300 for s in document.statuses.get(operation["operationId"], ())):
                missed.append(f"{method.upper()} {path}")
    assert not missed, f"never succeeded: {missed}"
    answers = sum(map(len, document.statuses.values()))
    print(f"{len(document.statuses)} operations, {answers} pairs of operation and status, all as the document says")


if __name__ == "__main__":
    main()

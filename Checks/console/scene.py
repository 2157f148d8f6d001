"""A service with data for every page. Every value that outsiders can set contains markup."""

import base64
import contextlib
import datetime
import hashlib
import http.client
import json
import pathlib
import sqlite3
import sys
import uuid

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "monitoring"), str(HERE.parent / "interop")]

from service import APP, UNLIMITED, development, refusals  # noqa: E402
from third_client import Backend, Client, Operator  # noqa: E402

QUEUE, QUIET, PILOT = "com.example.queue", "com.example.quiet", "com.example.pilot"
# Fields whose values must be shown on some page, as text.
SEEN = {"admin", "app", "reason", "version"}
# Verdict counts for the whole time that the service keeps them, higher by day than at night. A third app version has counts only in the
# last third of that time. One app has a fourth version since yesterday, and all requests of that version are refused.
HISTORY = """
    WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 2880),
    steps(step, count) AS (VALUES (60, 2880), (300, 576), (900, 192), (3600, 2160), (21600, 360), (86400, 90)),
    slots AS (SELECT step, unixepoch() / step * step - i * step AS at, i, count FROM steps, n WHERE i < count),
    hours AS (SELECT *, at / 3600 % 24 AS hour FROM slots),
    rates AS (SELECT *, step * (30 + hour * (24 - hour) / 4 + i * 7919 % 9) / 60 AS rate FROM hours)
    INSERT OR IGNORE INTO verdict_counts
    SELECT step, at, app.value, kind.value, CASE code.key % 2 WHEN 0 THEN 'ios' ELSE 'android' END, code.value, '2', version.value,
           max(1, rate / (1 + version.key) / CASE code.key WHEN 0 THEN 1 ELSE 60 END)
    FROM rates, json_each(:apps) AS app, json_each('["verification","device"]') AS kind,
         json_each('["verified","INVALID_SIGNATURE","observed_CLOCK_SKEW","NONCE_REPLAY"]') AS code, json_each(:versions) AS version
    WHERE version.key < 2 OR i < count / 3
    UNION ALL
    SELECT step, at, :app, 'verification', 'ios', 'INVALID_SIGNATURE', '2', '2.1', rate FROM rates WHERE i * step < 72000
"""


def hostile(field):
    """A value that has an effect wherever it is not escaped, such as running a script. It begins with its field's name."""
    return f"{field}'\"><canary-x onclick=alert(1)><img src=//canary.invalid/ onerror=canary=1>{{{{7*7}}}}\u202e"


class Attacker(Client):
    """A device that sends values with markup."""

    def exchange(self, method, path, body=None, headers=()):
        ascii_only = hostile("agent").encode("ascii", "ignore").decode()
        return super().exchange(method, path, body, {"User-Agent": ascii_only, "X-Request-ID": ascii_only, **dict(headers)})


def forged_attestation(subject):
    """An attestation of App Attest whose certificates have this name."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, subject[:64])])
    now = datetime.datetime.now(datetime.timezone.utc)
    certificate = (x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(7)
                   .not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(now + datetime.timedelta(days=1))
                   .sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.DER))
    point = key.public_key().public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
    key_id = hashlib.sha256(point).digest()
    cose = b"\xa5\x01\x02\x03\x26\x20\x01\x21\x58\x20" + point[1:33] + b"\x22\x58\x20" + point[33:]
    data = hashlib.sha256(f"TESTTEAM01.{APP}".encode()).digest() + b"\x40" + bytes(4) + b"appattest".ljust(16, b"\0")
    data += b"\0\x20" + key_id + cose
    return cbor({"fmt": "apple-appattest", "attStmt": {"x5c": [certificate, certificate], "receipt": b"x"}, "authData": data})


def cbor(value):
    """CBOR of maps, lists, texts and bytes."""
    def head(major, length):
        size = 0 if length < 24 else 1 if length < 256 else 2
        return bytes([major << 5 | (23 + size if size else length)]) + (length.to_bytes(size, "big") if size else b"")
    if isinstance(value, dict):
        return head(5, len(value)) + b"".join(cbor(name) + cbor(part) for name, part in value.items())
    if isinstance(value, list):
        return head(4, len(value)) + b"".join(map(cbor, value))
    data = value.encode() if isinstance(value, str) else value
    return head(3 if isinstance(value, str) else 2, len(data)) + data


class Scene:
    """Apps, devices, credentials, refusals and events of a running service. `words` makes the text of a field."""

    def __init__(self, node, words=hostile):
        self.node, self.operator, self.words = node, Operator(node), words
        # The ids of credentials that are in use. A credential is `sya_`, its id, `_` and a secret.
        self.used = {node.admin.split("_")[1]}
        self.credentials = {"admin": self.credential("admin")}

    def credential(self, name, role=None, *apps):
        scope = {"apps": apps} if apps else {"all_apps": True}
        made = self.operator.administer("POST", "/credentials", {"name": self.words(name), "role": role or name, **scope})
        self.used.add(made["id"])
        return made["credential"]

    def fill(self):
        record = development(self.node) | {"name": self.words("app"), "evidence": {"record": True, "keep_days": 30}}
        self.node.add(record)
        queue = {part: {**record[part]} if isinstance(record[part], dict) else record[part] for part in record}
        self.node.add(queue | {"app_id": QUEUE, "registration": {"approval": "manual"}})
        # This app only observes. If it enforced, its devices would wait for a decision.
        self.node.add(record | {"app_id": PILOT, "mode": "observe", "registration": {"approval": "manual"}})
        self.node.add({"app_id": QUIET, "ios": {"app_ids": [f"TEAMID1234.{QUIET}"]}})
        self.credentials |= {
            "operator": self.credential("operator"), "viewer": self.credential("viewer"),
            "operator of one app": self.credential("one operator", "operator", APP),
            "viewer of two apps": self.credential("two viewer", "viewer", APP, QUEUE),
            "service": self.credential("service", "service", APP)}
        with contextlib.suppress(AssertionError):
            self.operator.administer("POST", "/webhooks", {"url": "http://127.0.0.1:9/" + self.words("hook"), "all_apps": True})
        for number in range(7):
            self.operator.administer("POST", "/webhooks", {"url": f"http://127.0.0.1:9/{number}?canary-x", "all_apps": True})
        for number in range(4):
            self.operator.administer("POST", "/credentials", {"name": f"spare {number}", "role": "viewer", "all_apps": True})
        self.devices()
        self.refuse()
        self.operator.administer("PUT", f"/apps/{APP}", record | {"evidence": {"record": True, "keep_days": 14}})
        self.restart(HISTORY, app=APP, apps=json.dumps([APP, PILOT]), versions=json.dumps(["1.4", "2.0", self.words("version")]))

    def devices(self):
        self.registered, self.pending = [self.device(APP) for _ in range(9)], []
        self.wait(9)
        for _ in range(2):
            self.device(PILOT)
        modern, rotated, *others = self.registered
        self.rotated, self.revoked = rotated, others[0]
        backend = Backend(self.node.origin, self.credentials["service"])
        for device in self.registered:
            backend.receives(device)
        modern.scheme = 2
        backend.receives(modern)
        rotated.rotate()
        for device, action, body in ((others[0], "revoke", {"reason": self.words("reason")}), (others[1], "force-rotation", {}),
                                     (others[2], "force-rotation", {"within_seconds": 0, "reason": "compromise"})):
            self.operator.administer("POST", f"/apps/{device.app}/devices/{device.device}/{action}", body)
        others[3].deregister()
        for decision in ("approve", "reject"):
            device = self.pending.pop()
            self.operator.administer("POST", f"/apps/{QUEUE}/devices/{device.device}/{decision}")
        self.registered = [modern, *others[4:]]
        for platform in ("ios", "android"):
            self.node.run("device", "register", *self.node.phone(platform), "--platform", platform)

    def restart(self, script, **values):
        """Stops the service, runs the script on its database, and starts it again. The service writes its counts when it stops."""
        self.node.stop()
        database = sqlite3.connect(self.node.folder / "db.sqlite", isolation_level=None)
        database.execute("PRAGMA synchronous = OFF")
        database.execute(script, values) if values else database.executescript(script)
        database.close()
        for name, address in (("PORT", self.node.origin), ("OPERATIONS_PORT", self.node.operations)):
            self.node.environment[f"SYNHEART_AUTH_{name}"] = address.rpartition(":")[2]
        self.node.start()

    def device(self, app):
        device = Attacker(self.node.origin, app)
        device.register()
        return device

    def wait(self, count):
        """Adds devices that wait for a decision."""
        self.pending += [self.device(QUEUE) for _ in range(count)]

    def refuse(self):
        """Sends requests and registrations that are refused, some of them recorded."""
        backend, device = Backend(self.node.origin, self.credentials["service"]), self.registered[-1]
        question = backend.question(device.sign("POST", "https://api.example.com/v1/hsi"))
        backend.ask(question)
        codes = refusals(4, backend.ask, question)
        for change in ({"X-Device-ID": str(uuid.uuid4())}, {"X-Synheart-Timestamp": "1000000000"}, {"X-App-ID": self.words("id")[:40]}):
            codes |= refusals(2, lambda: backend.ask(backend.question(
                device.sign("POST", "https://api.example.com/v1/hsi") | change, target="/v1/" + "<canary-x>", body=b"another")))
        assert len(codes) >= 3, codes
        for platform in ("ios", "android"):
            self.node.run("device", "register", *self.node.phone(f"forged-{platform}", "other.pem"), "--platform", platform, check=False)
        client = Attacker(self.node.origin, QUIET)
        refusals(2, client.register)
        client.app = APP
        for proof in (self.words("proof"), base64.b64encode(forged_attestation(self.words("subject"))).decode()):
            body = {"app_id": APP, "public_key": client.key.text, "challenge": client.challenge(), "platform": "ios", "proof": proof}
            refusals(1, client.exchange, "POST", "/auth/v1/device/register", json.dumps(body))
        connection = http.client.HTTPConnection(self.node.operations, timeout=30)
        connection.request("POST", "/console/sign-in", "credential=sya_x", {"Content-Type": "application/x-www-form-urlencoded"})
        connection.getresponse().read()

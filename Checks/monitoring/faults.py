"""Faults of a running service. Each yields the alerts that must fire, those that may, and series from before and after."""

import contextlib
import http.client
import http.server
import os
import resource
import socket
import subprocess
import tempfile
import threading
import time
import uuid

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from prometheus import Samples, held, lasting
from service import APP, PRODUCTION, UNLIMITED, Client, Operator, development, refusals, running
from stores import storage, stores


def requests(binary):
    """Faults caused by devices, backends and unknown clients."""
    with running(binary, UNLIMITED) as node:
        node.add(development(node))
        node.add({"app_id": PRODUCTION, "ios": {"app_ids": [f"TEAMID1234.{PRODUCTION}"]}})
        backend = node.backend()
        start = before = node.scrape()
        device, modern = node.device(), node.device()

        def fault(*alerts, also=()):
            nonlocal before
            after = node.scrape()
            earlier, before = before, after
            return set(alerts), set(also), lasting(earlier, after)

        yield fault("DevelopmentDevices")

        question = backend.question(device.sign("POST", "https://api.example.com/v1/hsi"))
        backend.ask(question)
        assert refusals(30, backend.ask, question) == {"NONCE_REPLAY"}
        yield fault("Replays")

        for codes, alert, change in [
            ("INVALID_SIGNATURE", "SignaturesFail", {}),
            ("NOT_REGISTERED", "DevicesUnknown", {"X-Device-ID": str(uuid.uuid4())}),
            ("CLOCK_SKEW", "ClocksApart", {"X-Synheart-Timestamp": f"{int(time.time()) - 7200}"}),
        ]:
            def ask():
                headers = device.sign("POST", "https://api.example.com/v1/hsi") | change
                backend.ask(backend.question(headers, body=b"another body"))
            assert refusals(30, ask) == {codes}
            yield fault(alert)

        def misdirected():
            headers = modern.sign("POST", "https://old.example.com/v1/hsi", scheme=2)
            backend.ask(backend.question(headers) | {"authority": "old.example.com"})
        assert refusals(15, misdirected) == {"MISDIRECTED_REQUEST"}
        yield fault("Misdirected")

        stranger = Client(node.origin, PRODUCTION)
        assert refusals(15, stranger.register) == {"DEV_MODE_NOT_ALLOWED"}
        yield fault("DevelopmentModeRefused")

        # For one address and one credential, the service answers ten wrong attempts, then six a minute. So each attempt names another
        # credential.
        wrong = [{"Authorization": f"Bearer sya_{number:016x}_" + "A" * 43} for number in range(15)]

        def ask_wrongly():
            backend.bearer = wrong.pop()
            backend.ask(question)
        assert refusals(15, ask_wrongly) == {"UNAUTHORIZED"}
        yield fault("BackendRefused")

        for number in range(15):
            connection = http.client.HTTPConnection(node.operations, timeout=30)
            bearer = {"Authorization": f"Bearer sya_{number:016x}_" + "A" * 43}
            connection.request("GET", "/admin/v1/apps", headers=bearer)
            answer = connection.getresponse()
            assert answer.read() and answer.status == 401 and connection.close() is None
        yield fault("AdminCredentialRefused")

        for name in range(12):
            node.run("device", "register", *node.phone(f"forged{name}", "other.pem"), check=False)
        yield fault("AttestationsRefused", "UnknownRoots")

        # Sets values that this check cannot cause: another version, the result of the hourly comparison of audit heads (the
        # signed ends of the audit log), and slow event loops.
        after = node.scrape()
        after.values["synheart_build_info", (("version", "0.9.0"),)] = 1.0
        yield {"VersionsDiffer"}, set(), held([before, after], 150)
        after = node.scrape()
        after.values["synheart_security_events_total", (("event", "audit_log_tampered"),)] += 1
        yield {"AuditLogTampered"}, set(), lasting(before, after)
        after = node.scrape()
        for name, labels in after.values:
            if name == "synheart_event_loop_delay_seconds_bucket" and float(dict(labels)["le"]) >= 0.25:
                after.values[name, labels] += 60
        yield {"EventLoopsSlow"}, set(), lasting(before, after)

        limit = len(os.listdir(f"/proc/{node.process.pid}/fd")) * 10 // 9
        resource.prlimit(node.process.pid, resource.RLIMIT_NOFILE, (limit, limit))
        yield fault("FewFilesLeft")

        starts = [start]
        for _ in range(4):
            node.stop()
            node.start()
            starts.append(node.scrape())
        yield {"Restarts"}, set(), held(starts, 8)

        node.stop()
        yield {"Down"}, set(), lasting(start, Samples())


def limits(binary):
    """One address exceeds its share of requests and connections."""
    with running(binary, {"PROTECTION_ENROLMENT_BURST": "1", "MAXIMUM_CONNECTIONS_PER_ADDRESS": "8"}) as node:
        node.add(development(node))
        before = node.scrape()
        assert "RATE_LIMITED" in refusals(80, Client(node.origin, APP).challenge)
        after = node.scrape()
        yield {"RateLimited"}, set(), lasting(before, after)

        with contextlib.ExitStack() as open_connections:
            host, _, port = node.origin.removeprefix("http://").rpartition(":")
            for _ in range(40):
                open_connections.enter_context(socket.create_connection((host, int(port))))
            time.sleep(0.5)
        yield {"ConnectionsRefused"}, set(), lasting(after, node.scrape())


def proxy(binary):
    """A trusted proxy that forgets X-Forwarded-For."""
    with running(binary, {"TRUSTED_PROXIES": "127.0.0.1", "DRAIN_SECONDS": "0"}) as node:
        node.add(development(node))
        before = node.scrape()
        Client(node.origin, APP).challenge()
        yield {"ProxyNamesNoClient"}, set(), lasting(before, node.scrape())


def expiry(binary):
    """Certificates and a credential that end soon."""
    for days, alerts in [(10, {"CertificateExpires"}), (1, {"CertificateExpires", "CertificateExpiresNow"})]:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(
                ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", str(days),
                 "-subj", "/CN=localhost", "-keyout", f"{folder}/key.pem", "-out", f"{folder}/certificate.pem"],
                check=True, capture_output=True)
            settings = {"TLS_CERTIFICATE": f"{folder}/certificate.pem", "TLS_KEY": f"{folder}/key.pem"}
            with running(binary, settings) as node:
                before = node.scrape()
                before.values = {key: value for key, value in before.values.items() if "tls" not in key[0]}
                after = node.scrape()
                yield alerts, set(), lasting(before, after, 80)
                if days == 1:
                    node.add(development(node))
                    node.run("credentials", "create", "--name", "ingest", "--role", "service", "--app", APP, "--days", "5")
                    time.sleep(1.5)
                    yield alerts | {"CredentialExpires"}, set(), lasting(before, node.scrape(), 80)


def logs(binary):
    """Nothing reads standard error."""
    reading, writing = os.pipe()
    try:
        with running(binary, {"LOG_LEVEL": "info"} | UNLIMITED, log=writing) as node:
            before = node.scrape()
            host, _, port = node.origin.removeprefix("http://").rpartition(":")
            request = (f"GET /auth/v1/device/status HTTP/1.1\r\nHost: {host}\r\nX-App-ID: {APP}\r\n"
                       f"X-Request-ID: {uuid.uuid4()}\r\n\r\n").encode()
            with socket.create_connection((host, int(port))) as connection:
                for _ in range(40):
                    connection.sendall(request * 250)
                    time.sleep(0.01)
                    with contextlib.suppress(BlockingIOError):
                        while connection.recv(1 << 20, socket.MSG_DONTWAIT):
                            pass
                def dropped(samples):
                    with contextlib.suppress(BlockingIOError):
                        connection.recv(1 << 20, socket.MSG_DONTWAIT)
                    return samples.values["synheart_log_lines_dropped_total", ()]
                after = node.scrape_until(dropped)
            yield {"LogLinesDropped"}, set(), lasting(before, after)
            os.set_blocking(reading, False)
            os.close(reading)
            reading = None
    finally:
        for end in (reading, writing):
            if end is not None:
                os.close(end)


class Google(http.server.BaseHTTPRequestHandler):
    """Grants access tokens, but its quota is used up."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        is_token = self.path == "/token"
        body = b'{"access_token": "token", "token_type": "Bearer", "expires_in": 3600}' if is_token else b"{}"
        self.send_response(200 if is_token else 429)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Logs nothing."""


def quota(binary):
    """Google's quota is used up."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Google)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    key = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()).decode()
    try:
        with running(binary, UNLIMITED | {"PROVIDERS_GOOGLE_URL": url}) as node:
            record = development(node)
            record["android"] |= {"proof": "play_integrity", "play_integrity": {"service_account": {
                "type": "service_account", "private_key_id": "key", "client_email": "auth@example.iam.gserviceaccount.com", "private_key": key, "token_uri": f"{url}/token"}}}
            node.add(record)
            before = node.scrape()
            name, labels = "synheart_play_integrity_quota_refusals_today", (("app", APP), ("package", APP))
            with node.asking("device", "register", *node.phone("phone"), "--platform", "android"):
                after = node.scrape_until(lambda samples: samples.values.get((name, labels), 0) > 0)
            yield {"PlayIntegrityQuota"}, {"ProviderUnavailable"}, lasting(before, after)
    finally:
        server.shutdown()


def providers(binary):
    """A list of revoked keys is lost."""
    with running(binary, UNLIMITED) as node:
        record, file = development(node), node.folder / "revoked.json"
        file.write_text('{"entries": {}}')
        record["android"]["key_attestation"]["status_list"] = str(file)
        record["android"]["proof"] = "key_attestation"
        node.add(record)
        node.run("device", "register", *node.phone("phone"), "--platform", "android")
        before = node.scrape()
        record["android"]["key_attestation"]["status_list"] = f"{node.folder}/missing.json"
        Operator(node).administer("PUT", f"/apps/{APP}", record)

        def unavailable(samples):
            return sum(value for (name, labels), value in samples.values.items()
                       if name == "synheart_attestations_total" and ("result", "unavailable") in labels)
        with contextlib.ExitStack() as phones:
            for number in range(8):
                phones.enter_context(node.asking("device", "register", *node.phone(f"phone{number}"), "--platform", "android"))
            # The service caches a check's result for a second, so wait until the metrics show the failure.
            degraded = ("synheart_degraded", (("check", "revocation_lists"),))
            after = node.scrape_until(lambda samples: unavailable(samples) >= 8 and samples.values[degraded] == 1)
        yield {"ProviderUnavailable", "RevocationListStale", "Degraded"}, set(), lasting(before, after)


def webhooks(binary):
    """A receiver of events is down."""
    with running(binary, UNLIMITED) as node:
        node.add(development(node))
        before = node.scrape()
        Operator(node).administer("POST", "/webhooks", {"url": "http://127.0.0.1:1/", "all_apps": True})
        node.device()
        failed = "synheart_webhook_deliveries_total", (("result", "failed"),)

        def backlog(samples):
            return sum(value for (name, _), value in samples.values.items() if name == "synheart_webhook_backlog")
        after = node.scrape_until(lambda samples: samples.values[failed] > 0 and backlog(samples) > 0)
        yield {"WebhookBehind"}, {"DevelopmentDevices"}, lasting(before, after)
        # Sets the value, because the service drops events only after a day.
        lost = node.scrape()
        lost.values["synheart_webhook_events_given_up_total", ()] += 1
        yield {"WebhookEventsGivenUp"}, {"WebhookBehind", "DevelopmentDevices"}, lasting(after, lost)


ALL = [requests, stores, limits, proxy, expiry, logs, storage, quota, providers, webhooks]

"""Tests beyond the vectors: configuration, frameworks, WebSockets, threads, forks."""

import asyncio
import base64
import concurrent.futures
import contextlib
import http.server
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest
import urllib.request
import uuid
from unittest import mock

import django
import flask
import uvicorn
import waitress
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application
from django.http import JsonResponse
from django.urls import path
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.testclient import TestClient, WebSocketDenialResponse

from synheart_auth_backend import Incoming, SynheartASGI, SynheartWSGI, Verifier, identity
from synheart_auth_backend.client import Client, Unreachable
from synheart_auth_backend.tokens import TokenRefused, _KeySet

CREDENTIAL = "a-secret-of-this-test"
ORIGIN = "https://api.example.com"
APP = "com.example.app"


class Service(http.server.BaseHTTPRequestHandler):
    """Imitates the auth service. Accepts a request whose signature header is `good`, as the device that the request names."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        headers = {name.lower(): value for name, value in question["headers"]}
        self.server.asked.append(question)
        if headers.get("x-synheart-signature") == "good":
            status, answer = 200, {
                "verified": True, "app_id": APP, "device_id": headers["x-device-id"], "platform": "ios", "signature_scheme": 1,
                "assurance": {"app": "app-attest", "key": "app-vouched", "labels": []}, "key_age_seconds": 1}
        else:
            status, answer = 401, {"verified": False, "error": "INVALID_SIGNATURE", "message": "No.", "request_id": "1",
                                   "server_timestamp": 1700000000}
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def signed(device=None, signature="good"):
    return {"X-App-ID": APP, "X-Device-ID": device or str(uuid.uuid4()), "X-Synheart-Signature": signature}


def pairs(headers):
    return list(headers.items())


class WithService(unittest.TestCase):
    def setUp(self):
        self.service = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
        self.service.asked = []
        threading.Thread(target=self.service.serve_forever, args=[0.01], daemon=True).start()
        self.addCleanup(self.service.server_close)
        self.addCleanup(self.service.shutdown)
        self.verifier = Verifier(f"http://127.0.0.1:{self.service.server_port}", CREDENTIAL, origin=ORIGIN, timeout=20)


class Configuration(unittest.TestCase):
    def refuses(self, service="https://auth.example.com", credential=CREDENTIAL, **options):
        with self.assertRaises(ValueError) as found:
            Verifier(service, credential, **options)
        self.assertNotIn(CREDENTIAL, str(found.exception))

    def test_what_cannot_be_meant_is_refused(self):
        for service in ("auth.example.com", "ftp://auth.example.com", "https://", "https://auth.example.com/auth", "https://a@b.example",
                        "http://auth.example.com", "https://auth.example.com?x"):
            with self.subTest(service):
                self.refuses(service, origin=ORIGIN)
        for credential in ("", "a\nb", "a b", "\u00e9"):
            self.refuses(credential=credential, origin=ORIGIN)
        for origin in ("api.example.com", "https://api.example.com/", "https://a@api.example.com", "wss://api.example.com", "https://a b"):
            with self.subTest(origin):
                self.refuses(origin=origin)
        self.refuses()
        self.refuses(origin=ORIGIN, trusted_proxies=["10.0.0.0/8"])
        self.refuses(trusted_proxies=["10.0.0.1/8"])
        self.refuses(trusted_proxies=["*"])
        self.refuses(origin=ORIGIN, attempts=0)
        self.refuses(origin=ORIGIN, timeout=0)
        self.refuses(origin=ORIGIN, body_limit=-1)

    def test_plain_http_is_for_loopback_unless_it_is_allowed(self):
        for service in ("http://127.0.0.1:8080", "http://[::1]:8080", "http://localhost"):
            Verifier(service, CREDENTIAL, origin=ORIGIN)
        Verifier("http://auth:8080", CREDENTIAL, origin=ORIGIN, insecure_http=True)

    def test_the_credential_is_not_shown(self):
        verifier = Verifier("https://auth.example.com", CREDENTIAL, origin=ORIGIN)
        self.assertNotIn(CREDENTIAL, repr(verifier) + str(verifier) + repr(verifier._client))


class Core(WithService):
    def test_a_unix_socket_is_a_proxy_where_it_is_named(self):
        url = f"http://127.0.0.1:{self.service.server_port}"
        lines = pairs(signed()) + [("X-Forwarded-Proto", "https"), ("X-Forwarded-Host", "api.example.com")]
        for proxies, status in ((["unix"], None), (["10.0.0.0/8"], 421)):
            found = Verifier(url, CREDENTIAL, trusted_proxies=proxies).verify(Incoming("GET", "/", lines, b"", None))
            self.assertEqual(getattr(found, "status", None), status)

    def test_addresses_of_peers(self):
        verifier = Verifier("https://auth.example.com", CREDENTIAL, trusted_proxies=["10.0.0.0/8", "fd00::/8", "fe80::/10"])
        for peer in ("10.1.2.3", "::ffff:10.1.2.3", "fd00::1", "fe80::1%eth0"):
            self.assertTrue(verifier._trusts(peer), peer)
        for peer in ("11.1.2.3", "::1", "", "10.1.2.3, 1.2.3.4", "x", None):
            self.assertFalse(verifier._trusts(peer), peer)

    def test_threads_do_not_get_the_answers_of_others(self):
        devices = [str(uuid.uuid4()) for _ in range(200)]
        with concurrent.futures.ThreadPoolExecutor(32) as pool:
            found = list(pool.map(lambda device: self.verifier.verify(Incoming("GET", "/", pairs(signed(device)), b"")), devices))
        self.assertEqual([verification.identity.device_id for verification in found], devices)
        self.assertEqual(len({question["verification_id"] for question in self.service.asked}), 200)

    def test_a_fork_opens_connections_of_its_own(self):
        self.verifier.verify(Incoming("GET", "/", pairs(signed()), b""))
        kept = self.verifier._client._idle[0]
        self.verifier._client._owner = os.getpid() + 1
        self.assertIsNot(self.verifier._client._take(), kept)

    def test_a_service_that_is_away_costs_a_bounded_time(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        with self.assertLogs("synheart_auth_backend", "WARNING"):
            found = Verifier(f"http://127.0.0.1:{port}", CREDENTIAL, origin=ORIGIN).verify(Incoming("GET", "/", [], b""))
        self.assertEqual(found.status, 503)

    def test_one_deadline_is_over_all_addresses(self):
        with socket.socket() as dead, contextlib.ExitStack() as fillers:
            dead.bind(("127.0.0.1", 0))
            dead.listen(0)
            for _ in range(4):
                # The backlog is soon full. Then the system answers no further connection.
                filler = fillers.enter_context(socket.socket())
                filler.setblocking(False)
                filler.connect_ex(dead.getsockname())
            family = (socket.AF_INET, socket.SOCK_STREAM, 0, "")
            addresses = [(*family, dead.getsockname())] * 8
            with mock.patch("socket.getaddrinfo", lambda *_, **__: addresses):
                begun = time.monotonic()
                with self.assertRaises(Unreachable):
                    Client("http://localhost:1", timeout=0.5).exchange("GET", "/", {})
                self.assertLess(time.monotonic() - begun, 2)
                # The first address does not answer, and may use only a part of the timeout. The rest is enough for the second.
                addresses[1:] = [(*family, self.service.server_address)]
                found = Client("http://localhost:1", timeout=3).exchange("POST", "/", {}, b'{"headers": []}')
                self.assertEqual(found.status, 401)

    def test_certificates_are_checked(self):
        client = Client("https://auth.example.com", timeout=1)
        self.assertTrue(client._tls.check_hostname)
        self.assertEqual(client._tls.verify_mode.name, "CERT_REQUIRED")


async def greet(request: Request) -> JSONResponse:
    device = identity(request.scope)
    return JSONResponse({"device": device and device.device_id, "body": (await request.body()).decode()})


async def greet_socket(socket):
    await socket.accept()
    await socket.send_json({"device": identity(socket.scope).device_id})
    await socket.close()


def get(url, path, headers):
    """The status and the text of the answer."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url + path, headers=headers), timeout=30) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


class ASGI(WithService):
    def client(self, **options):
        app = Starlette(
            routes=[Route("/v1/hsi", greet, methods=["GET", "POST"]), Route("/healthz", greet), WebSocketRoute("/ws", greet_socket)],
            middleware=[Middleware(SynheartASGI, verifier=self.verifier, **options)])
        return TestClient(app)

    def test_starlette(self):
        device = str(uuid.uuid4())
        found = self.client().post("/v1/hsi?a=b", headers=signed(device), content="hello")
        self.assertEqual((found.status_code, found.json()), (200, {"device": device, "body": "hello"}))
        question = self.service.asked[0]
        self.assertEqual((question["path"], question["query"], base64.b64decode(question["body"])), ("/v1/hsi", "a=b", b"hello"))
        refused = self.client().post("/v1/hsi", headers=signed(signature="bad"))
        self.assertEqual((refused.status_code, refused.json()["error"]), (401, "INVALID_SIGNATURE"))

    def test_an_exempt_path_passes_and_no_other_spelling_of_it(self):
        client = self.client(exempt=["/healthz"])
        self.assertEqual(client.get("/healthz").json()["device"], None)
        for spelling in ("/health%7A", "//healthz", "/healthz/", "/x"):
            self.assertEqual(client.get(spelling).status_code, 401, spelling)

    def test_a_websocket_is_verified_before_it_opens(self):
        device = str(uuid.uuid4())
        with self.client().websocket_connect("/ws?a", headers=signed(device)) as opened:
            self.assertEqual(opened.receive_json(), {"device": device})
        self.assertEqual((self.service.asked[0]["method"], self.service.asked[0]["body"]), ("GET", ""))
        with self.assertRaises(WebSocketDenialResponse) as found, self.client().websocket_connect("/ws", headers=signed(signature="bad")):
            pass
        self.assertEqual(found.exception.status_code, 401)
        self.assertEqual(found.exception.headers["X-Synheart-Error"], "INVALID_SIGNATURE")

    def call(self, scope, messages=({"type": "http.request", "body": b""},), **options):
        sent, waiting = [], list(messages)

        async def receive():
            return waiting.pop(0)

        async def send(message):
            sent.append(message)

        async def app(*_):
            self.fail("the app was reached")

        asyncio.run(SynheartASGI(app, self.verifier, **options)(scope, receive, send))
        return sent

    def test_a_websocket_of_a_server_without_denials_is_closed(self):
        sent = self.call({"type": "websocket", "raw_path": b"/ws", "headers": []}, [{"type": "websocket.connect"}])
        self.assertEqual(sent, [{"type": "websocket.close", "code": 1008}])

    def test_a_server_without_raw_path_is_refused(self):
        for scope in ({"path": "/"}, {"path": "/", "raw_path": None}):
            with self.assertLogs("synheart_auth_backend", "ERROR"):
                sent = self.call({"type": "http", "method": "GET", "headers": [], **scope})
            self.assertEqual(sent[0]["status"], 503)

    def test_a_root_path_that_is_not_configured_is_refused(self):
        for path in (b"/x/pay", b"/healthz"):
            with self.assertLogs("synheart_auth_backend", "WARNING"):
                sent = self.call({"type": "http", "method": "GET", "headers": [], "raw_path": path, "root_path": "/x"}, exempt=["/healthz"])
            self.assertEqual(sent[0]["status"], 400)
        self.assertEqual(self.service.asked, [])
        client = TestClient(Starlette(routes=[Mount("/x", SynheartASGI(
            Starlette(routes=[Route("/v1/hsi", greet)]), self.verifier, root_path="/x"))]))
        self.assertEqual(client.get("/x/v1/hsi", headers=signed()).status_code, 200)
        self.assertEqual(self.service.asked[0]["path"], "/x/v1/hsi")

    def test_no_header_moves_the_path_under_daphne(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "moved.py").write_text(textwrap.dedent(f"""
                from synheart_auth_backend import SynheartASGI, Verifier

                async def app(scope, receive, send):
                    await send({{"type": "http.response.start", "status": 200, "headers": []}})
                    await send({{"type": "http.response.body", "body": scope["path"].encode()}})

                verifier = Verifier("http://127.0.0.1:{self.service.server_port}", "{CREDENTIAL}", origin="{ORIGIN}", timeout=20)
                app = SynheartASGI(app, verifier, exempt=["/public"])
                """))
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            server = subprocess.Popen(
                [sys.executable, "-m", "daphne", "--bind", "127.0.0.1", "--port", str(port), "--verbosity", "0", "moved:app"],
                cwd=folder, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
            self.addCleanup(server.wait, 30)
            self.addCleanup(server.terminate)
            for _ in range(300):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                time.sleep(0.1)
            url = f"http://127.0.0.1:{port}"
            self.assertEqual(get(url, "/public", {}), (200, "/public"))
            self.assertEqual(get(url, "/x/pay", signed()), (200, "/x/pay"))
            for path, headers in (("/x/pay", signed()), ("/public", {})):
                self.assertEqual(get(url, path, {**headers, "Daphne-Root-Path": path[:2]})[0], 400)

    def test_a_client_that_leaves_is_not_asked_about(self):
        self.assertEqual(self.call({"type": "http", "method": "GET", "headers": [], "raw_path": b"/"}, [{"type": "http.disconnect"}]), [])
        self.assertEqual(self.service.asked, [])

    def test_another_type_is_not_let_through(self):
        with self.assertRaises(ValueError):
            self.call({"type": "mqtt"})


def django_view(request):
    device = identity(getattr(request, "scope", request.META))
    return JsonResponse({"device": device and device.device_id, "form": request.POST.dict()})


settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], DEBUG=False)
django.setup()
urlpatterns = [path("v1/hsi", django_view)]

flask_app = flask.Flask(__name__)


@flask_app.post("/v1/hsi")
def flask_view():
    return {"device": identity(flask.request.environ).device_id, "form": flask.request.form.to_dict()}


class Frameworks(WithService):
    """The middleware with frameworks on real servers."""

    def post(self, port):
        device = str(uuid.uuid4())
        for signature, status in (("good", 200), ("bad", 401)):
            request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/hsi", b"a=1&b=2", {
                **signed(device, signature), "Content-Type": "application/x-www-form-urlencoded"})
            try:
                with urllib.request.urlopen(request) as response:
                    self.assertEqual(json.load(response), {"device": device, "form": {"a": "1", "b": "2"}})
            except urllib.error.HTTPError as error:
                self.assertEqual(error.code, status)
                error.close()

    def on_waitress(self, app):
        listener = socket.create_server(("127.0.0.1", 0))
        server = waitress.create_server(SynheartWSGI(app, self.verifier), sockets=[listener])
        threading.Thread(target=server.run, daemon=True).start()
        self.post(listener.getsockname()[1])

    def test_flask(self):
        self.on_waitress(flask_app)

    def test_django_under_wsgi(self):
        self.on_waitress(get_wsgi_application())

    def test_django_under_asgi(self):
        listener = socket.create_server(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(SynheartASGI(get_asgi_application(), self.verifier), lifespan="off", log_level="error"))
        thread = threading.Thread(target=server.run, args=[[listener]])
        thread.start()
        self.post(listener.getsockname()[1])
        server.should_exit = True
        thread.join()

    def test_no_header_moves_the_path_under_gunicorn(self):
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/moved.py", "w") as file:
                file.write(textwrap.dedent(f"""\
                    from synheart_auth_backend import SynheartWSGI, Verifier

                    def app(environ, start_response):
                        start_response("200 OK", [])
                        return [environ["PATH_INFO"].encode()]

                    verifier = Verifier("http://127.0.0.1:{self.service.server_port}", "{CREDENTIAL}", origin="{ORIGIN}", timeout=20)
                    app = SynheartWSGI(app, verifier, exempt=["/public/users"])
                    """))
            server = subprocess.Popen(
                [sys.executable, "-m", "gunicorn", "--bind", f"fd://{listener.fileno()}", "--log-level", "error",
                 "--no-control-socket", "moved:app"],
                cwd=folder, pass_fds=[listener.fileno()], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
            self.addCleanup(server.wait, 30)
            self.addCleanup(server.terminate)
            listener.close()
            url = f"http://127.0.0.1:{port}"
            self.assertEqual(get(url, "/public/users", {}), (200, "/public/users"))
            self.assertEqual(get(url, "/x/pay", signed()), (200, "/x/pay"))
            for name in ("SCRIPT_NAME", "script_name"):
                self.assertEqual(get(url, "/public/users", {name: "/public"})[0], 400)
                self.assertEqual(get(url, "/x/pay", {**signed(), name: "/x"})[0], 400)
            self.assertEqual(get(url, "/public/users", {"PATH_INFO": "/users"})[0], 400)

    def test_flask_in_its_test_client(self):
        app = flask.Flask(__name__)
        app.add_url_rule("/v1/hsi", view_func=flask_view, methods=["POST"])
        app.wsgi_app = SynheartWSGI(app.wsgi_app, self.verifier)
        found = app.test_client().post("/v1/hsi", headers=signed(), data={"a": "1"})
        self.assertEqual((found.status_code, found.json["form"]), (200, {"a": "1"}))

    def test_a_server_without_the_raw_target_is_refused(self):
        statuses = []
        environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/v1/hsi", "wsgi.input": None}
        with self.assertLogs("synheart_auth_backend", "ERROR"):
            SynheartWSGI(flask_app, self.verifier)(environ, lambda status, _: statuses.append(status))
        self.assertEqual(statuses, ["503 Service Unavailable"])

    def test_what_no_header_frames_is_not_read(self):
        environ = {"REQUEST_METHOD": "POST", "RAW_URI": "/", "wsgi.input": None, "HTTP_TRANSFER_ENCODING": "chunked"}
        statuses = []
        SynheartWSGI(flask_app, self.verifier)(environ, lambda status, _: statuses.append(status))
        self.assertEqual(statuses, ["400 Bad Request"])


class Tokens(unittest.TestCase):
    # Any point of the curve is a valid public key. This is the curve's generator.
    KEY_SET = json.dumps({"keys": [{
        "kty": "EC", "crv": "P-256", "kid": "known", "x": "axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpY",
        "y": "T-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU"}]}).encode()

    def test_the_pages_sample_refuses_a_request_without_a_token(self):
        page = pathlib.Path(__file__).parents[1].joinpath("README.md").read_text()
        sample = re.search("## Device tokens\n\n```python\n(.*?)```", page, re.S).group(1)
        with self.assertRaises(TokenRefused):
            exec(sample, {"request": Request({"type": "http", "headers": []})})

    def test_a_fresh_key_does_not_wait_for_a_reader(self):
        hangs, released = threading.Event(), threading.Event()

        class Published(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                if clock[0]:
                    hangs.set()
                    released.wait(30)
                self.send_response(200)
                self.end_headers()
                self.wfile.write(Tokens.KEY_SET)

            def log_message(self, *_):
                pass

        clock = [0]
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Published)
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        keys = _KeySet(f"http://127.0.0.1:{server.server_port}/", 30, False, lambda: clock[0])
        with concurrent.futures.ThreadPoolExecutor() as pool:
            self.assertIsNotNone(keys.key("known"))
            clock[0] = 100
            unknown = pool.submit(keys.key, "unknown")
            self.assertTrue(hangs.wait(20))
            try:
                self.assertIsNotNone(pool.submit(keys.key, "known").result(10))
            finally:
                released.set()
            self.assertIsNone(unknown.result(20))


if __name__ == "__main__":
    unittest.main()

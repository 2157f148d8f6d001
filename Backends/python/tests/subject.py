"""The server that `testing/drive.py` drives: subject.py uvicorn-h11|uvicorn-httptools|gunicorn|waitress."""

import base64
import json
import logging
import socket
import sys
import threading

from synheart_auth_backend import SynheartASGI, SynheartWSGI, Verifier, identity, verification
from synheart_auth_backend.tokens import KeysUnavailable, TokenRefused, TokenVerifier


def verifiers(start):
    for name, options in start["instances"].items():
        timeout = start["quick_timeout"] if name == "quick" else 20
        yield name, Verifier(start["service"], start["credential"], timeout=timeout, **options)


def answer(request, body, names):
    found = verification(request)
    signer = identity(request)
    reserved = [name for name in names if "verified" in name.lower() or "identity" in name.lower()]
    return json.dumps({
        "identity": None if signer is None else vars(signer), "observed": found.observed, "body": base64.b64encode(body).decode(),
        "reserved": reserved}).encode()


async def asgi_app(scope, receive, send):
    body, more = b"", True
    while more:
        message = await receive()
        body += message["body"]
        more = message["more_body"]
    names = [name.decode() for name, _ in scope["headers"]]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": answer(scope, body, names)})


def wsgi_app(environ, start_response):
    body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
    assert environ["wsgi.input"].read() == b""
    start_response("200 OK", [])
    return [answer(environ, body, [key for key in environ if key.startswith("HTTP_")])]


def mounted(middleware, app, start):
    apps = {name: middleware(app, verifier) for name, verifier in verifiers(start)}
    apps["twice"] = middleware(apps["twice"], dict(verifiers(start))["twice"])
    return apps


def asgi(start):
    apps = mounted(SynheartASGI, asgi_app, start)

    async def chosen(scope, receive, send):
        host = dict(scope["headers"])[b"host"].decode()
        await apps[host.partition(".")[0]](scope, receive, send)

    return chosen


def wsgi(start):
    apps = mounted(SynheartWSGI, wsgi_app, start)
    return lambda environ, start_response: apps[environ["HTTP_HOST"].partition(".")[0]](environ, start_response)


def serve_uvicorn(listener, start, http):
    import uvicorn
    uvicorn.Server(uvicorn.Config(asgi(start), http=http, lifespan="off", log_level="error")).run([listener])


def serve_gunicorn(listener, start):
    from gunicorn.app.base import BaseApplication

    class Server(BaseApplication):
        def load_config(self):
            self.cfg.set("bind", f"fd://{listener.fileno()}")
            self.cfg.set("threads", 8)
            self.cfg.set("loglevel", "error")
            self.cfg.set("control_socket_disable", True) if "control_socket_disable" in self.cfg.settings else None

        def load(self):
            return wsgi(start)

    Server().run()


def serve_waitress(listener, start):
    import waitress
    # By default, waitress removes X-Forwarded headers.
    waitress.serve(wsgi(start), sockets=[listener], threads=8, clear_untrusted_proxy_headers=False)


class Tokens:
    def answer(self, question):
        if question.pop("do") == "verifier":
            self.verifier = TokenVerifier(**question, clock=lambda: self.now, monotonic=lambda: self.monotonic, timeout=20)
            return {}
        self.now, self.monotonic = question["now"], question["monotonic"]
        try:
            token = self.verifier.verify(question["token"])
        except TokenRefused:
            return {"outcome": "refused"}
        except KeysUnavailable:
            return {"outcome": "unavailable"}
        return {"outcome": "valid", **vars(token)}


def main():
    logging.basicConfig()
    listener = socket.create_server(("127.0.0.1", 0), backlog=100)
    # Accepted connections inherit TCP_NODELAY from the listener. asyncio sets this option only on sockets that asyncio makes. Without it,
    # each answer waits 40 ms for an acknowledgement, because uvicorn sends head and body in two writes.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    start = json.loads(sys.stdin.readline())
    print(json.dumps({"port": listener.getsockname()[1]}), flush=True)
    server = sys.argv[1]
    if server == "gunicorn":
        # gunicorn must run on the main thread. Another thread ends the process when the standard input closes.
        threading.Thread(target=end_with_input, daemon=True).start()
        return serve_gunicorn(listener, start)
    serve = {"uvicorn-h11": lambda: serve_uvicorn(listener, start, "h11"), "uvicorn-httptools": lambda: serve_uvicorn(listener, start, "httptools"),
             "waitress": lambda: serve_waitress(listener, start)}
    threading.Thread(target=serve[server], daemon=True).start()
    tokens = Tokens()
    for line in sys.stdin:
        print(json.dumps(tokens.answer(json.loads(line))), flush=True)


def end_with_input():
    import os
    import signal
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


main()

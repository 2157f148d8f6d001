"""A stand-in service that accepts everything: only as much of the protocol as the SDK's calls need, with no verification. Prints
its port.
"""
import base64
import http.server
import json
import os
import re
import time
import uuid


class StandInService(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    device = str(uuid.uuid4())
    registered = []
    # Whether the service rotates keys. If not, it answers that it is too busy.
    rotates = True

    # The requests of an app, with their bodies and headers.
    received = []

    def do_GET(self):
        self.app(b"")

    def do_POST(self):
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not self.path.startswith("/auth/v1/"):
            return self.app(data)
        body = json.loads(data)
        if self.path.endswith("/challenge"):
            answer = {"challenge": base64.b64encode(os.urandom(32)).decode(), "ttl_seconds": 90}
            answer["expires_at"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 90))
        elif self.path.endswith("/rotate-key") and not self.rotates:
            return self.answer(503, b"{}")
        elif self.path.endswith("/rotate-key"):
            answer = {"status": "rotated", "effective_at": int(time.time())}
        elif self.path.endswith("/token"):
            answer = {"token": "token", "token_type": "synheart-device+jwt", "expires_in": 600}
        else:
            StandInService.registered.append(body)
            answer = {"device_id": StandInService.device, "status": "registered"}
        self.answer(200, json.dumps(answer).encode())

    def app(self, data):
        """An app's own service: /v1/replay refuses the first nonce as replayed, /v1/expired refuses the key as expired, and a
        path that ends in a number answers with that status. The answer has the request's body.
        """
        StandInService.received.append((self.command, self.path, self.headers, data))
        same = [request for request in StandInService.received if request[1] == self.path]
        if self.path.startswith("/v1/replay") and len(same) == 1:
            refusal = {"error": "NONCE_REPLAY", "message": "", "request_id": "", "server_timestamp": int(time.time())}
            return self.answer(409, json.dumps(refusal).encode())
        if self.path.startswith("/v1/expired"):
            refusal = {"error": "KEY_EXPIRED", "message": "", "request_id": "", "server_timestamp": int(time.time())}
            return self.answer(403, json.dumps(refusal).encode())
        status = re.search(r"/(\d{3})(\?|$)", self.path)
        self.answer(int(status[1]) if status else 200, data)

    def do_DELETE(self):
        self.answer(204, b"")

    def answer(self, status, data):
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Length", str(len(data)))
        self.send_header("X-Synheart-Server-Time", str(int(time.time())))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments):
        pass


class Server(http.server.ThreadingHTTPServer):
    # The size of the listen queue. Each request opens its own connection, and the default size is only five.
    request_queue_size = 128


def start():
    return Server(("127.0.0.1", 0), StandInService)


if __name__ == "__main__":
    server = start()
    print(server.server_port, flush=True)
    server.serve_forever()

"""A service that says yes: enough of the wire for the SDK's calls, nothing of it verified. Prints its port."""
import base64
import http.server
import json
import os
import time
import uuid


class StandInService(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    device = str(uuid.uuid4())
    registered = []

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("/challenge"):
            answer = {"challenge": base64.b64encode(os.urandom(32)).decode(), "ttl_seconds": 90}
            answer["expires_at"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 90))
        elif self.path.endswith("/rotate-key"):
            answer = {"status": "rotated", "effective_at": int(time.time())}
        elif self.path.endswith("/token"):
            answer = {"token": "token", "token_type": "synheart-device+jwt", "expires_in": 600}
        else:
            StandInService.registered.append(body)
            answer = {"device_id": StandInService.device, "status": "registered"}
        self.answer(200, json.dumps(answer).encode())

    def do_DELETE(self):
        self.answer(204, b"")

    def answer(self, status, data):
        self.send_response(status)
        if data:
            self.send_header("Content-Length", str(len(data)))
        self.send_header("X-Synheart-Server-Time", str(int(time.time())))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments):
        pass


def start():
    return http.server.ThreadingHTTPServer(("127.0.0.1", 0), StandInService)


if __name__ == "__main__":
    server = start()
    print(server.server_port, flush=True)
    server.serve_forever()

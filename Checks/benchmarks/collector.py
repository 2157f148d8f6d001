#!/usr/bin/env python3
"""A trace collector that accepts every batch: collector.py PORT_FILE. `http --traces` starts it."""

import http.server
import pathlib
import sys


class Collector(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        """Logs nothing."""


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
pathlib.Path(sys.argv[1]).write_text(str(server.server_port))
server.serve_forever()

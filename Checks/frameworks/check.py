#!/usr/bin/env python3
"""Asks real servers and frameworks which spellings of a path reach its route, and the service which spellings of it pass without
an assertion. No spelling may do both.

    Checks/frameworks/check.py path/to/synheart-auth

`run` installs what this needs.
"""

import base64
import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "interop"))

from openapi_check import APP, Client, Device, Document, Service  # noqa: E402
from spellings import NOW, PAY, spellings  # noqa: E402

# For each server, the frameworks that run on it.
PYTHON = {name: ["flask", "django", "pyramid", "urlsplit"] for name in ("wsgiref", "werkzeug", "waitress", "gunicorn")}
PYTHON |= {name: ["starlette", "django"] for name in ("h11", "httptools")} | {"aiohttp": ["aiohttp"]}
OTHERS = {
    "node": ["node", "servers/node.js"],
    "go": ["go", "run", "servers/servemux.go"],
    "java": ["java", "-cp", ":".join(f"/usr/share/java/{name}.jar" for name in (
        "jetty9-server jetty9-servlet jetty9-security jetty9-http jetty9-io jetty9-util jetty9-util-ajax tomcat9-catalina tomcat9-coyote "
        "tomcat9-util tomcat9-util-scan tomcat9-juli tomcat9-annotations-api tomcat9-servlet-api tomcat9-jni tomcat9-jaspic-api tomcat9-api "
        "tomcat9-el-api tomcat9-jsp-api").split()), "servers/Servlets.java"],
    "ruby": ["ruby", "servers/rails.rb"],
}
COUNTS = {"node": 6, "go": 3, "java": 2, "ruby": 1}
# Spellings that are known to reach the route in some framework: each must be found, or the check is too weak.
KNOWN = {"/v1/pay%0a": "starlette", "//x/v1/pay": "node, new URL", "/v1/pay.json": "rails", "/V1/PAY": "express", "/v1/%70ay": "go"}
# A path in each app that needs no assertion.
OPEN = {f"{APP}.on": "/v1/payment", f"{APP}.except": "/open/x"}


@contextlib.contextmanager
def servers():
    """Starts the servers. Yields the port and the header of each framework, by name."""
    found, processes = {}, []
    # Receives the servers' messages about refused requests.
    noise = tempfile.TemporaryFile()
    environment = {**os.environ, "NODE_PATH": "/usr/share/nodejs:/usr/lib/nodejs", "GO111MODULE": "off"}
    try:
        for server, frameworks in PYTHON.items():
            listener = socket.create_server(("127.0.0.1", 0))
            processes.append(subprocess.Popen(
                [sys.executable, HERE / "servers/python.py", server, str(listener.fileno())], pass_fds=[listener.fileno()],
                stderr=noise))
            for framework in frameworks:
                found[f"{framework} on {server}"] = listener.getsockname()[1], framework
            listener.close()
        others = {name: subprocess.Popen(
            command, cwd=HERE, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=noise, text=True)
            for name, command in OTHERS.items()}
        processes += others.values()
        for name, process in others.items():
            for _ in range(COUNTS[name]):
                port, framework = process.stdout.readline().split(maxsplit=1)
                found[framework.strip()] = int(port), framework.strip()
        yield found
    except BaseException:
        noise.seek(0)
        sys.stderr.write(noise.read().decode(errors="replace")[-5000:])
        raise
    finally:
        for process in processes:
            if process.stdin:
                process.stdin.close()
            else:
                process.terminate()
        for process in processes:
            process.wait(timeout=30)


def reaching(port, framework, paths):
    """The spellings that this framework routes to the protected handler."""
    found = set()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    for path in paths:
        try:
            connection.request("GET", path, headers={"X-Framework": framework})
            response = connection.getresponse()
            if response.read() == b"pay" and response.status == 200:
                found.add(path)
        except (http.client.HTTPException, ConnectionError):
            # If the server ends the connection, the path has no route.
            connection.close()
    connection.close()
    return found


class Judge:
    """The service, with one app for each of the two lists of paths in POLICIES."""

    POLICIES = {f"{APP}.on": {"assertions_required_on": [PAY]}, f"{APP}.except": {"assertions_required_except": ["/open"]}}

    def __init__(self, binary):
        self.service = Service(binary)
        self.client = Client(self.service, Document.of(self.service))

    def passing(self, app, paths):
        """Returns the spellings of paths that the service verifies without an assertion."""
        record = {"app_id": app, "build_channel": "dev", "development_integrity_allowed": True,
                  "ios": {"app_ids": [f"TEAMID1234.{app}"], **self.POLICIES[app]}}
        assert self.client.administer("POST", "/apps", record).status == 201
        made = self.client.administer("POST", "/credentials", {
            "name": "s", "role": "service", "apps": [app], "expires_in_seconds": 600}).json
        device = Device(self.client)
        assert device.register(app).status == 200
        headers = {"Authorization": f"Bearer {made['credential']}", "Content-Type": "application/json"}
        connection = http.client.HTTPConnection(self.service.public, timeout=30)
        found, codes = set(), set()
        for path in paths:
            signed = {**device.headers("GET", path), "X-App-ID": app}
            connection.request("POST", "/auth/v1/verify", json.dumps({
                "method": "GET", "scheme": "https", "authority": "api.example.com", "path": path, "query": None,
                "headers": list(map(list, signed.items())), "body": base64.b64encode(b"").decode()}), headers)
            answer = json.loads(connection.getresponse().read())
            if answer["verified"]:
                found.add(path)
            else:
                codes.add(answer["error"])
        assert codes <= {"ASSERTION_REQUIRED", "INVALID_REQUEST"}, codes
        return found


def main():
    paths = [*spellings(), *OPEN.values()]
    judge = Judge(sys.argv[1])
    begun = time.monotonic()
    try:
        # Uses many threads, because some servers answer in two packets and wait for the acknowledgement in between.
        with servers() as found, concurrent.futures.ThreadPoolExecutor(64) as pool:
            asked = {name: pool.submit(reaching, *place, paths) for name, place in found.items()}
            passing = {app: judge.passing(app, paths) for app in Judge.POLICIES}
            reached = {name: task.result() for name, task in asked.items()}
    finally:
        judge.service.stop()
    for name, own in reached.items():
        assert {PAY, NOW} <= own, f"{name} does not route {PAY} and {NOW}"
        print(f"{len(own):4} of {len(paths)} spellings reach the route of {name}")
    for path, name in KNOWN.items():
        assert any(path in own for other, own in reached.items() if other.startswith(name)), f"no {name} takes {path} for {PAY}"
    failures = [f"{path} reaches {name} and passes {app}" for app, own in passing.items() for name, theirs in reached.items()
                for path in sorted(own & theirs)]
    for app, own in passing.items():
        # Without this check, a service that demands an App Attest assertion on every path would pass.
        assert OPEN[app] in own, f"{app} demands an assertion on {OPEN[app]}"
        print(f"{len(own):4} of {len(paths)} spellings need no assertion under {Judge.POLICIES[app]}")
    assert not failures, "\n".join(["passed by:", *failures])
    print(f"{len(reached)} frameworks, {time.monotonic() - begun:.0f} s")


main()

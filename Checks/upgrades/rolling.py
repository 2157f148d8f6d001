#!/usr/bin/env python3
"""Restarts two nodes behind nginx under load; see `rolling`, which installs what this needs."""

import argparse
import base64
import http.client
import json
import os
import pathlib
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "interop")]

from load import Fleet  # noqa: E402
from ports import free_port  # noqa: E402

APP = "com.example.rolling"
PAGE = TOP / "Service/Sources/AuthServer/AuthServer.docc/Upgrades.md"


def await_true(condition, what, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"{what} within {seconds} s")
        time.sleep(0.02)


class Node:
    """A node at its own address. Its port stays free while it is down, because no outgoing connection uses this address."""

    def __init__(self, folder, name, host, environment, front):
        self.log, self.name, self.host, self.port = open(folder / f"{name}.log", "ab"), name, host, free_port(host)
        self.environment, self.front, self.process = environment, front, None

    def start(self, binary):
        self.process = subprocess.Popen(
            [binary, "serve", "--host", self.host, "--port", str(self.port), "--operations-port", "0", "--trusted-proxy", "127.0.0.1",
             "--public-origin", f"http://{self.front}"], env=self.environment, stdout=subprocess.PIPE, stderr=self.log, text=True)
        line = self.process.stdout.readline()
        if not line.startswith("ready "):
            raise SystemExit(f"{self.name} did not start: {pathlib.Path(self.log.name).read_text()[-2000:]}")
        operations = re.search("operations=http://([^ \n]+)", line)[1]
        await_true(lambda: status(operations, "/readyz") == 200, f"{self.name} was not ready")

    def stop(self):
        """Stops as a service manager does. Fails if the process must be killed."""
        self.process.terminate()
        code = self.process.wait(timeout=60)
        if code != 0:
            raise SystemExit(f"{self.name} ended with {code}: {pathlib.Path(self.log.name).read_text()[-2000:]}")

    def end(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.log.close()


def status(address, path):
    connection = http.client.HTTPConnection(address, timeout=10)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except OSError:
        return None
    finally:
        connection.close()


def nginx_configuration(folder, front, nodes):
    [block] = re.findall("```nginx\n(.*?)```", PAGE.read_text(), re.S)
    for there, here in [("10.0.0.1:8080", f"{nodes[0].host}:{nodes[0].port}"), ("10.0.0.2:8080", f"{nodes[1].host}:{nodes[1].port}"),
                        ("listen 443 ssl;", f"listen {front};")]:
        assert block.count(there) == 1, f"{PAGE.name}: {there}"
        block = block.replace(there, here)
    folders = "".join(f"{kind}_temp_path {folder}/nginx-{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    return f"""daemon off;
worker_processes 2;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log;
events {{}}
http {{
access_log off;
add_header X-Upstream "$upstream_addr $upstream_status" always;
{folders}{block}}}
"""


class Servers:
    """PostgreSQL, Redis, nginx, and the nodes' environment."""

    def __init__(self, folder, options):
        self.folder, self.processes = folder, []
        redis = free_port("127.0.0.1")
        subprocess.run([TOP / "scripts/temporary-postgresql", folder / "postgresql"], check=True, stdout=subprocess.DEVNULL)
        self.run("redis", "redis-server", "--port", str(redis), "--bind", "127.0.0.1", "--dir", str(folder), "--save", "", "--appendonly",
                 "yes", "--maxmemory-policy", "noeviction")
        await_true(lambda: subprocess.run(["redis-cli", "-p", str(redis), "ping"], capture_output=True).returncode == 0, "Redis did not start")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("SYNHEART_AUTH_")} | {
            "SYNHEART_AUTH_STORES_POSTGRESQL": f"postgresql://auth@/auth?host={folder}/postgresql",
            "SYNHEART_AUTH_STORES_REDIS": f"redis://127.0.0.1:{redis}",
            "SYNHEART_AUTH_SERVICE_KEY": base64.b64encode(secrets.token_bytes(32)).decode(),
            # These limits are high, because all devices of the fleet have one address and rotate their keys more often than phones do.
            "SYNHEART_AUTH_PROTECTION_ENROLMENT_BURST": "1000000", "SYNHEART_AUTH_PROTECTION_ENROLMENT_PER_MINUTE": "1000000",
            "SYNHEART_AUTH_PROTECTION_ROTATION_BURST": "10000"}
        self.drain = {"SYNHEART_AUTH_DRAIN_SECONDS": str(options.drain)}
        self.front = f"127.0.0.1:{free_port('127.0.0.1')}"

    def run(self, name, *command):
        with open(self.folder / f"{name}.log", "wb") as log:
            self.processes.append(subprocess.Popen(command, stdout=log, stderr=log))

    def command(self, binary, *arguments):
        return subprocess.run([binary, *arguments], env=self.environment, check=True, stdout=subprocess.PIPE, text=True, timeout=60).stdout

    def serve(self, nodes):
        (self.folder / "nginx.conf").write_text(nginx_configuration(self.folder, self.front, nodes))
        self.run("nginx", "nginx", "-c", str(self.folder / "nginx.conf"))
        await_true(lambda: status(self.front, "/") is not None, "nginx did not start")

    def end(self):
        for process in self.processes:
            process.terminate()
            process.wait(timeout=30)
        subprocess.run([TOP / "scripts/temporary-postgresql", "--stop", self.folder / "postgresql"])


def start(node, binary, servers):
    """Starts a node. Sets drain_seconds only if the node's version knows this setting, because others refuse it."""
    help_text = subprocess.run([binary, "serve", "--help"], capture_output=True, text=True, check=True, timeout=60).stdout
    node.environment = servers.environment | (servers.drain if "server.drain_seconds" in help_text else {})
    node.start(binary)


def steps(options, binary, other):
    """The nodes to restart, each with its binary."""
    if other is None:
        return [(number % 2, binary) for number in range(options.restarts)]
    # An upgrade; both versions concurrently; the downgrade, on the migrated store; and the upgrade again.
    beside = [(0, binary), (1, other)] * (options.restarts // 2)
    back = [(0, other), (1, other)]
    return [(0, binary), *beside, (1, binary), *back, (0, binary), (1, binary)]


def build(commit, folder):
    """Builds the service of a commit, or of `previous()` if it is empty. Returns the binary's path."""
    commit = commit or previous()
    subprocess.run(["git", "clone", "--quiet", "--shared", "--no-checkout", TOP, folder], check=True)
    subprocess.run(["git", "-C", folder, "checkout", "--quiet", "--detach", commit], check=True)
    command = ["swift", "build", "--package-path", f"{folder}/Service", "--product", "synheart-auth"]
    subprocess.run(command, check=True, stdout=sys.stderr)
    path = subprocess.run([*command, "--show-bin-path"], check=True, capture_output=True, text=True).stdout.strip()
    return f"{path}/synheart-auth"


def previous():
    """The newest release before this commit; if there is none, the parent of this commit."""
    tag = subprocess.run(["git", "-C", TOP, "describe", "--tags", "--abbrev=0", "--first-parent", "--match", "v[0-9]*", "HEAD^"],
                         capture_output=True, text=True)
    return tag.stdout.strip() if tag.returncode == 0 else subprocess.run(
        ["git", "-C", TOP, "rev-parse", "HEAD^"], check=True, capture_output=True, text=True).stdout.strip()


def check(options, folder):
    folder.chmod(0o755)
    binary = str(pathlib.Path(options.binary).resolve())
    other = options.other and str(pathlib.Path(options.other).resolve())
    if options.build_other is not None:
        other = build(options.build_other, folder / "other")
    first = other or binary
    servers, nodes = Servers(folder, options), []
    try:
        record = json.loads(servers.command(binary, "apps", "example", "--app", APP, "--authority", str(folder / "authority.pem")))
        record |= {"build_channel": "dev", "development_integrity_allowed": True, "signature": {"authorities": ["api.example.com"]}}
        (folder / "app.json").write_text(json.dumps(record))
        servers.command(first, "apps", "add", "--file", str(folder / "app.json"))
        credential = json.loads(servers.command(first, "credentials", "create", "--role", "service", "--app", APP, "--json"))["credential"]
        for number, host in enumerate(("127.0.0.2", "127.0.0.3")):
            nodes.append(Node(folder, f"node{number}", host, servers.environment, servers.front))
            start(nodes[number], first, servers)
        servers.serve(nodes)
        if other:
            servers.command(binary, "migrate")
        answered = restart(options, servers, nodes, binary, other, credential)
        for version in {first, binary}:
            servers.command(version, "audit", "verify")
        return answered
    finally:
        for node in nodes:
            node.end()
        servers.end()
        if options.keep:
            subprocess.run(["cp", "-r", "--", folder, options.keep])


def restart(options, servers, nodes, binary, other, credential):
    """Restarts the nodes under load. Returns whether no answer was wrong, and no request was lost at a stop of this version."""
    phases, running = [], [other or binary] * 2
    with Fleet(f"http://{servers.front}", APP, credential, options.devices, options.rate) as fleet:
        time.sleep(2)
        for number, (index, next_binary) in enumerate(steps(options, binary, other)):
            began = time.monotonic()
            nodes[index].stop()
            stopped = time.monotonic()
            start(nodes[index], next_binary, servers)
            phases.append((began, stopped, time.monotonic(), number, nodes[index].name, running[index]))
            running[index] = next_binary
            time.sleep(options.pause)
    record, ours = fleet.record, []
    for began, ended, loss in record.lost:
        phase = next((p for p in phases if p[0] <= ended and began <= p[2] + 1), None)
        where = "between restarts" if phase is None else (
            f"restart {phase[3] + 1} of {phase[4]}, {ended - phase[0]:.2f} s after the signal (stopped after {phase[1] - phase[0]:.2f} s)")
        stops_other = phase is not None and other is not None and phase[5] == other
        ours += [] if stops_other else [loss]
        if not stops_other and len(ours) <= 50:
            print(f"lost: {loss}; {where}")
    for error in fleet.errors:
        print(f"a wrong answer: {error}")
    print(f"{len(phases)} restarts, {sum(record.answered.values())} requests answered, {record.writes} of them writes, the slowest after "
          f"{record.slowest:.2f} s; lost: {len(record.lost)}" + (f", {len(record.lost) - len(ours)} of them at a stop of the other version" if other else ""))
    print(", ".join(f"{count} {name}" for name, count in sorted(record.answered.items())))
    return not ours and not fleet.errors and record.writes > 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary", help="the service's binary")
    parser.add_argument("--restarts", type=int, default=3)
    parser.add_argument("--drain", type=int, default=3, help="server.drain_seconds; more than nginx's keepalive_timeout")
    parser.add_argument("--pause", type=float, default=0, help="seconds between two restarts")
    parser.add_argument("--devices", type=int, default=12, help="devices at the same time")
    parser.add_argument("--rate", type=float, default=100, help="requests a second of all devices, at most")
    parser.add_argument("--other", help="another version's binary")
    parser.add_argument("--build-other", nargs="?", const="", metavar="COMMIT",
                        help="build another version; default: the last release, else the commit before this one")
    parser.add_argument("--keep", metavar="FOLDER", help="copy the logs and stores into this new folder at the end")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(0 if check(options, pathlib.Path(folder)) else 1)


if __name__ == "__main__":
    main()

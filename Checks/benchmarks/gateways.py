"""The cost of asking the service about each request, for each gateway with a file in docs/gateways and for the proxy.

    Checks/benchmarks/gateways [SECONDS [ROUNDS]] [--record] [--service BINARY] [--traffic BINARY]

Each round measures every way to the backend in turn, for SECONDS (2) each. The figures are the medians of ROUNDS (9) rounds.
A ratio or a difference compares measurements of the same round. Delay: one request after another, over one connection. Rate: 32
connections. The peer of a rate is nginx as a plain reverse proxy that keeps its connections. Service, backend, gateway and wrk share
all cores.
"""

import argparse
import contextlib
import pathlib
import re
import sys

import charts
import figures
from load import HERE, Processes, Service, processor_time, ready, say, wrk

sys.path[:0] = [str(HERE.parent), str(HERE.parent / "gateways")]

from check import Gateway  # noqa: E402
from ports import free_port  # noqa: E402

BACKEND = """
worker_processes 1;
events {}
http {
    access_log off;
    keepalive_requests 1000000;
    server { listen 127.0.0.1:%d; location / { return 200 "hello"; } }
}
"""
# For each gateway: a pattern in its file, and the text that replaces the match. With that text, the gateway does not ask the service.
ALONE = {
    "nginx": (re.escape("proxy_pass http://127.0.0.2:${LISTEN_PORT};"), "proxy_pass http://backend;"),
    "caddy": (r"route \{.*\}", "reverse_proxy http://${BACKEND_HOST}:${BACKEND_PORT} {\n\t\timport once\n\t}\n}"),
    "envoy": (r"- name: envoy\.filters\.http\.ext_authz.*(?=- name: envoy\.filters\.http\.router)", ""),
}
PLAIN_NGINX = """
worker_processes auto;
events {}
http {
    upstream backend { server ${BACKEND_HOST}:${BACKEND_PORT}; keepalive 64; keepalive_requests 1000000; }
    server {
        listen ${LISTEN_HOST}:${LISTEN_PORT};
        keepalive_requests 1000000;
        location / {
            proxy_pass http://backend;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_set_header Host $http_host;
        }
    }
}
"""
ALONE_PEER = "nginx alone, connections kept"
ASKING = ["nginx", "envoy", "caddy", "proxy"]
NAMES = {"nginx": "nginx", "envoy": "Envoy", "caddy": "Caddy", "proxy": "`synheart-auth proxy`"}


class Bench:
    def __init__(self, processes, options):
        self.processes, self.options = processes, options
        self.service = Service(processes, options.service, options.traffic)
        self.backend = free_port()
        (processes.folder / "backend.conf").write_text(BACKEND % self.backend)
        processes.start("backend", ["nginx", "-c", processes.folder / "backend.conf", "-e", processes.folder / "backend.error", "-g",
                                    f"daemon off; pid {processes.folder}/backend.pid;"])
        self.most = {}

    @contextlib.contextmanager
    def way(self, name, asks):
        """Starts a gateway. Yields its URL and its process. The name `backend` is the backend itself, without a process."""
        if name == "backend":
            yield f"http://127.0.0.1:{self.backend}", None
        elif name == "proxy":
            with Processes() as own:
                process = own.start("proxy", [
                    self.options.service, "proxy", "--listen", "127.0.0.1:0", "--backend", f"http://127.0.0.1:{self.backend}",
                    "--service", self.service.url], SYNHEART_AUTH_CREDENTIAL=self.service.credentials["whole"])
                yield "http://" + ready(process, process.output, r"ready proxy=(\S+)"), process
        else:
            made = Gateway("nginx" if name == "plain" else name)
            if name == "plain":
                made.text = PLAIN_NGINX
            elif not asks:
                pattern, replacement = ALONE[name]
                made.text = re.sub(pattern, lambda _: replacement, made.text, flags=re.DOTALL)
            changes = [("http {", f"http {{ access_log {self.processes.folder}/access.log;")] if made.name == "nginx" else []
            credential = self.service.credentials["headers" if name == "caddy" else "whole"]
            with made.running(credential, int(self.service.url.rpartition(":")[2]), self.backend, changes) as port:
                yield f"http://127.0.0.1:{port}", made.process

    def take(self, name, asks, connections):
        """Measures one turn of a gateway. Returns its figures, and the processor time of each request in us."""
        seconds, key = self.options.seconds, (name, asks, connections)
        # When no requests are left, wrk repeats the last one. The service refuses such a copy, so a gateway that asks the service needs a
        # new request each time. A gateway that does not ask the service forwards copies, so 100 requests are enough.
        count = int(2 * seconds * (self.most.get(key, 4000 if connections == 1 else 12000))) if asks else 100
        traffic = self.service.sign(2 * count if connections == 1 else count)
        with self.way(name, asks) as (url, process):
            before = [processor_time(*([process] if process else [])), processor_time(self.service.process)]
            found = wrk(url, traffic, seconds, connections)
            after = [processor_time(*([process] if process else [])), processor_time(self.service.process)]
        requests = found["rate"] * seconds
        found["gateway us"], found["service us"] = ((end - begun) / requests * 1e6 for begun, end in zip(before, after))
        self.most[key] = max(self.most.get(key, 0), found["rate"])
        assert not found["refused"] and not found["failed"], f"{key}: {found}"
        return found


def measure(bench, rounds):
    delay, rate = {}, {}
    for number in range(rounds):
        for name in ASKING:
            alone = bench.take("backend" if name == "proxy" else name, False, 1)
            asks = bench.take(name, True, 1)
            row = {"alone p50": alone["p50"], "alone p99": alone["p99"], "added p50": asks["p50"] - alone["p50"],
                   "added p99": asks["p99"] - alone["p99"]}
            for column, value in row.items():
                delay.setdefault(NAMES[name], {}).setdefault(column, []).append(value)
        peer = bench.take("plain", False, 32)
        for name, found in [(ALONE_PEER, peer), *((NAMES[name], bench.take(name, True, 32)) for name in ASKING)]:
            row = {"rate": found["rate"], "p50": found["p50"], "p99": found["p99"], "gateway us": found["gateway us"],
                   "service us": found["service us"], "ratio": found["rate"] / peer["rate"],
                   "gateway ratio": peer["gateway us"] / found["gateway us"]}
            for column, value in row.items():
                rate.setdefault(name, {}).setdefault(column, []).append(value)
        say(f"round {number + 1} of {rounds}")
    return delay, rate


def main():
    parser = argparse.ArgumentParser(
        prog="Checks/benchmarks/gateways", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seconds", nargs="?", type=int, default=2)
    parser.add_argument("rounds", nargs="?", type=int, default=9)
    parser.add_argument("--record", action="store_true", help="write the figures to figures.json, and draw the charts")
    parser.add_argument("--service", type=pathlib.Path, required=True, help="the built service; `gateways` builds it")
    parser.add_argument("--traffic", type=pathlib.Path, required=True, help="the built SignedTraffic")
    options = parser.parse_args()
    with Processes() as processes:
        delay, rate = measure(Bench(processes, options), options.rounds)
    for section, rows in (("gateways-delay", delay), ("gateways-rate", rate)):
        found = {name: {column: figures.middle_half(values) for column, values in row.items()} for name, row in rows.items()}
        figures.show(found)
        if options.record:
            figures.record(section, found, options.rounds)
            charts.write()


if __name__ == "__main__":
    main()

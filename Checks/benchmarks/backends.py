"""How many calls of /verify a second the library of each language makes.

    Checks/benchmarks/backends [SECONDS [ROUNDS]] [--record] [--language LANGUAGE...] [--service BINARY] [--traffic BINARY]

Each language's test server, which the library's middleware guards, gets signed requests over 32 connections. For each request the
library calls /verify once. The peer, with which the rates are compared, is wrk: it sends the same calls itself over 32 connections. In
each round, every server and the peer are measured for SECONDS (2). The figures are the medians of ROUNDS (9) rounds. A ratio compares
rates of the same round. Service, server and wrk share all cores.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys

import charts
import figures
from load import HERE, Processes, Service, processor_time, ready, say, wrk

BACKENDS = HERE.parents[1] / "Backends"
BUILD = HERE.parents[1] / ".build/benchmarks"
PEER = "wrk itself"
# For each language: the name of its server in the figures, and the server's argument, if it needs one.
SERVERS = {
    "go": ["Go, `net/http`"], "java": ["Java, Tomcat"], "node": ["Node, `node:http`", "http"], "swift": ["Swift, Hummingbird"],
    "python-asgi": ["Python, ASGI, uvicorn", "uvicorn-httptools"], "python-wsgi": ["Python, WSGI, waitress", "waitress"],
}


def command(language, service):
    """The server's command. Compiles the server first if needed."""
    argument = SERVERS[language][1:]
    if language == "go":
        subprocess.run(["go", "build", "-o", BUILD / "go-server", "./internal/subject"], cwd=BACKENDS / "go", check=True,
                       env={**subprocess.os.environ, "GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOTOOLCHAIN": "local"})
        return [BUILD / "go-server"]
    if language == "java":
        jars = "/usr/share/java/tomcat10-embed-core.jar:/usr/share/java/jakarta-annotation-api.jar"
        sources = [str(path) for path in (BACKENDS / "java/src").rglob("*.java")]
        subprocess.run(["javac", "-nowarn", "--release", "17", "-cp", jars, "-d", BUILD / "java", *sources], check=True)
        return ["java", f"-Djava.io.tmpdir={BUILD}", "-cp", f"{BUILD}/java:{jars}", "ai.synheart.auth.backend.Subject"]
    if language == "swift":
        return [service.parent / "VerificationSubject"]
    if language == "node":
        return ["node", BACKENDS / "node/test/subject.js", *argument]
    return [sys.executable, BACKENDS / "python/tests/subject.py", *argument]


def measure(options):
    found = {}
    commands = {language: command(language, options.service) for language in options.language}
    with Processes() as processes:
        service = Service(processes, options.service, options.traffic)
        rates = {}
        # The requests have the Host header 127.0.0.1. Its first label, 127, chooses the instance.
        instance = {"origin": "http://api.example.com"}
        start = json.dumps({"service": service.url, "credential": service.credentials["whole"], "quick_timeout": 1,
                            "instances": {"127": instance, "twice": instance}})
        servers = {}
        for language in options.language:
            process = processes.start(language, commands[language], line=start, PYTHONPATH=str(BACKENDS / "python/src"))
            servers[SERVERS[language][0]] = (f"http://127.0.0.1:{ready(process, process.output, PORT)}", process)
        for number in range(options.rounds + 1):
            peer = None
            for name, (url, process) in [(PEER, (service.url, None)), *servers.items()]:
                traffic = service.sign(int(2 * options.seconds * rates.get(name, 8000)))
                if process is None:
                    traffic = traffic.replace("/status", "/verify")
                watched = [process] if process else []
                before = processor_time(*watched)
                assert process is None or process.poll() is None, f"{name} ended: {process.output.with_suffix('.log').read_text()[-2000:]}"
                got = wrk(url, traffic, options.seconds, 32)
                spent = processor_time(*watched) - before
                assert not got["refused"] and not got["failed"], f"{name}: {got}"
                rates[name] = max(rates.get(name, 2000), got["rate"])
                peer = peer or got["rate"]
                # The first round warms up just-in-time compilers.
                if number:
                    row = {"rate": got["rate"], "p50": got["p50"], "p99": got["p99"], "ratio": got["rate"] / peer,
                           "backend us": spent / got["rate"] / options.seconds * 1e6}
                    for column, value in row.items():
                        found.setdefault(name, {}).setdefault(column, []).append(value)
            say(f"round {number} of {options.rounds}")
    return {name: {column: figures.middle_half(values) for column, values in row.items()} for name, row in found.items()}


PORT = re.compile(r'"port": ?(\d+)')


def main():
    parser = argparse.ArgumentParser(
        prog="Checks/benchmarks/backends", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seconds", nargs="?", type=int, default=2)
    parser.add_argument("rounds", nargs="?", type=int, default=9)
    parser.add_argument("--language", action="append", choices=SERVERS)
    parser.add_argument("--record", action="store_true", help="write the figures to figures.json, and draw the charts")
    parser.add_argument("--service", type=pathlib.Path, required=True, help="the built service; `backends` builds it")
    parser.add_argument("--traffic", type=pathlib.Path, required=True, help="the built SignedTraffic")
    options = parser.parse_args()
    options.language = options.language or list(SERVERS)
    BUILD.mkdir(parents=True, exist_ok=True)
    rows = measure(options)
    figures.show(rows)
    if options.record:
        figures.record("backends", rows, options.rounds)
        charts.write()


main()

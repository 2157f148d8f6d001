"""Shared by the benchmarks of gateways and backends: a service with signed traffic, wrk, and processor time."""

import contextlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
APP = "bench.app"


def ready(process, file, pattern):
    """Waits for the pattern in a process's output, and returns its capture."""
    for _ in range(600):
        if found := re.search(pattern, file.read_text()):
            return found[1]
        assert process.poll() is None, f"{process.args[0]} ended: {file.with_suffix('.log').read_text()[-2000:]}"
        time.sleep(0.05)
    raise TimeoutError(f"{process.args[0]} does not get ready")


class Processes(contextlib.ExitStack):
    """Servers that end with this object. Their output is in a folder."""

    def __init__(self):
        super().__init__()
        self.folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))

    def start(self, name, command, line=None, **variables):
        """Starts a process. `line`, if given, goes to its standard input."""
        out, errors = (self.folder / f"{name}.{kind}" for kind in ("out", "log"))
        with out.open("w") as stdout, errors.open("w") as stderr:
            process = subprocess.Popen([str(word) for word in command], stdout=stdout, stderr=stderr, text=True,
                                       stdin=subprocess.PIPE if line else subprocess.DEVNULL, env={**os.environ, **variables})
        process.output = out
        if line:
            process.stdin.write(line + "\n")
            process.stdin.flush()
        self.callback(self.end, process)
        return process

    @staticmethod
    def end(process):
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Service:
    """The service with one app, over SQLite."""

    def __init__(self, processes, binary, traffic, **variables):
        self.binary, self.traffic, self.folder = str(binary), str(traffic), processes.folder
        self.stores = stores = ["--database", f"{self.folder}/auth.sqlite"]
        record = f'{{"app_id": "{APP}", "build_channel": "dev", "development_integrity_allowed": true, ' \
                 f'"ios": {{"app_ids": ["TEAMID1234.{APP}"]}}}}'
        subprocess.run([self.binary, "apps", "add", "--file", "-", *stores], input=record, text=True, check=True, capture_output=True)
        self.credentials = {}
        for body in ("whole", "headers"):
            made = subprocess.run([self.binary, "credentials", "create", "--role", "service", "--app", APP, "--name", body,
                                   "--body", body, *stores, "--json"], text=True, check=True, capture_output=True).stdout
            self.credentials[body] = re.search(r'"credential": *"([^"]*)"', made)[1]
        self.process = processes.start("service", [self.binary, "serve", "--port", "0", "--operations-port", "0", *stores],
                                       SYNHEART_AUTH_PROTECTION_ENROLMENT_BURST="1000000", **variables)
        self.url = ready(self.process, self.process.output, r"public=(\S+)")

    def administer(self, *words):
        """The output of a command on the service's stores."""
        return subprocess.run([self.binary, *words, *self.stores], text=True, check=True, capture_output=True).stdout

    def sign(self, count):
        """Signs new requests for `GET /auth/v1/device/status`. Returns the prefix of the names of their two files."""
        folder = tempfile.mkdtemp(dir=self.folder)
        subprocess.run([self.traffic, self.url, APP, self.credentials["whole"], folder, str(count)], check=True, capture_output=True)
        return f"{folder}/status"


def wrk(url, traffic, seconds, connections):
    """Runs wrk. Returns requests a second, p50 and p99 in ms, and how many requests were refused, and how many failed."""
    threads = min(2, connections)
    done = subprocess.run(["wrk", f"-t{threads}", f"-c{connections}", f"-d{seconds}s", "-s", HERE / "replay.lua", url],
                          env={**os.environ, "TRAFFIC": traffic}, capture_output=True, text=True)
    assert done.returncode == 0, f"wrk: {done.stdout}{done.stderr}"
    rate, p50, p99, refused, failed = (float(word) for word in re.search(r"RESULT (.*)", done.stdout)[1].split())
    return {"rate": rate, "p50": p50 / 1000, "p99": p99 / 1000, "refused": refused, "failed": failed}


def processor_time(*roots):
    """Seconds of processor time of these processes and of all that they started."""
    children, times = {}, {}
    for folder in pathlib.Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                children.setdefault(int(fields[1]), []).append(int(folder.name))
                times[int(folder.name)] = sum(map(int, fields[11:15]))
    waiting, total = [root.pid for root in roots], 0
    while waiting:
        pid = waiting.pop()
        total += times.get(pid, 0)
        waiting += children.get(pid, [])
    return total / os.sysconf("SC_CLK_TCK")


def say(text):
    print(text, flush=True, file=sys.stderr)

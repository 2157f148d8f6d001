"""A running service whose metrics are scraped, and devices and backends that use it."""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "interop"))

from prometheus import Samples  # noqa: E402
from third_client import Backend, Client, Operator, Refusal  # noqa: E402

APP, PRODUCTION = "com.example.app", "com.example.production"
# Lifts the limits of each address, where they are not under test.
UNLIMITED = {"PROTECTION_FAILED_SIGNATURE_BURST": "100000", "PROTECTION_ENROLMENT_BURST": "100000"}


class Node:
    """The binary with a database of its own, on free ports. `settings` are environment variables without the prefix SYNHEART_AUTH_."""

    def __init__(self, binary, folder, settings=(), prefix=(), log=None):
        self.binary, self.folder, self.prefix, self.log = binary, pathlib.Path(folder), list(prefix), log
        self.authority = self.folder / "authority.pem"
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("SYNHEART_AUTH_")}
        settings = {"DATABASE": f"{folder}/db.sqlite", "PORT": "0", "OPERATIONS_PORT": "0"} | dict(settings)
        self.environment |= {f"SYNHEART_AUTH_{name}": value for name, value in settings.items() if value is not None}
        self.process = None

    def start(self):
        log = self.log or (self.folder / "log").open("a")
        self.process = subprocess.Popen(
            [*self.prefix, self.binary, "serve", "--print-admin-credential"], stdout=subprocess.PIPE, stderr=log, text=True,
            env=self.environment, cwd=self.folder)
        for line in self.process.stdout:
            words = line.split()
            if words[0] == "admin-credential":
                self.admin = words[1]
            if words[0] == "ready":
                addresses = dict(word.split("=") for word in words[1:])
                self.origin, self.operations = addresses["public"], addresses["operations"].removeprefix("http://")
                return self
        self.process.wait()
        sys.exit(f"the service did not start: {(self.folder / 'log').read_text()[-2000:]}")

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise

    def scrape(self):
        with urllib.request.urlopen(f"http://{self.operations}/metrics", timeout=30) as answer:
            return Samples(answer.read().decode(), time.time())

    def scrape_until(self, condition):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            # A busy service may miss a scrape.
            with contextlib.suppress(OSError):
                samples = self.scrape()
                if condition(samples):
                    return samples
            time.sleep(0.2)
        raise AssertionError("the fault did not show in the metrics")

    @contextlib.contextmanager
    def asking(self, *words):
        """Runs a command of the binary while the body of `with` runs, then kills it."""
        command = self.spawn(*words)
        try:
            yield
        finally:
            command.kill()
            command.communicate()

    def spawn(self, *words):
        """Starts a command of the binary, over the service's own database."""
        own = {name: value for name, value in self.environment.items()
               if name == "SYNHEART_AUTH_DATABASE" or not name.startswith("SYNHEART_AUTH_")}
        return subprocess.Popen(
            [self.binary, *map(str, words)], env=own, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, *words, check=True):
        """Runs a command of the binary. Returns its output."""
        command = self.spawn(*words)
        output, errors = command.communicate()
        assert not check or command.returncode == 0, f"{words}: {errors}"
        return output

    def example(self):
        """The record of an app that trusts this folder's authority."""
        return json.loads(self.run("apps", "example", "--app", APP, "--authority", self.authority))

    def add(self, record):
        Operator(self).administer("POST", "/apps", record)

    def backend(self, name="backend"):
        made = Operator(self).administer("POST", "/credentials", {"name": name, "role": "service", "apps": [APP]})
        return Backend(self.origin, made["credential"])

    def device(self, app=APP):
        client = Client(self.origin, app)
        client.register()
        return client

    def phone(self, name, authority="authority.pem"):
        """The options of a device that the test kit attests. Another authority's devices are forgeries."""
        return "--url", self.origin, "--app", APP, "--dir", name, "--authority", self.folder / authority


@contextlib.contextmanager
def running(binary, settings=(), **more):
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        node = Node(binary, folder, settings, **more)
        try:
            yield node.start()
        finally:
            node.stop()


def development(node):
    """The record of the app of this check. It admits attested devices, and devices in development mode."""
    return node.example() | {
        "build_channel": "dev", "development_integrity_allowed": True, "signature": {"authorities": ["api.example.com"]}}


def refusals(count, action, *arguments, **more):
    """Repeats a call, and returns the codes of the refusals."""
    codes = set()
    for _ in range(count):
        try:
            action(*arguments, **more)
        except Refusal as refusal:
            codes.add(refusal.code or refusal.status)
    return codes

"""Devices that use the service through a load balancer, and count requests with a wrong answer or none."""

import collections
import http.client
import json
import random
import threading
import time
import urllib.parse

from third_client import V1, Backend, Client, Refusal, demand

# The clients' address. It differs from the load balancer's address, because the nodes trust the balancer's address.
CLIENT = "127.0.0.4"


class Lost(Exception):
    """A request without an answer, or with a wrong one."""


class Wire:
    """One persistent connection to the balancer. It never sends a request twice."""

    def __init__(self, origin, record):
        url = urllib.parse.urlsplit(origin)
        self.connection = http.client.HTTPConnection(url.hostname, url.port, timeout=30, source_address=(CLIENT, 0))
        self.record = record

    def exchange(self, client, method, path, body, headers):
        lines = dict(headers) | ({"Content-Type": "application/json"} if body is not None else {})
        began = time.monotonic()
        try:
            self.connection.request(method, path, body, lines)
            answer = self.connection.getresponse()
            data = answer.read(65536)
        except (OSError, http.client.HTTPException) as error:
            self.connection.close()
            self.record.note(method, path, began, repr(error))
            raise Lost(repr(error)) from error
        fields = {name.lower(): value for name, value in answer.getheaders()}
        if 200 <= answer.status < 300:
            self.record.note(method, path, began)
            client.rotate_demand = demand(fields.get("x-synheart-rotate"))
            return json.loads(data) if data else None
        what = fields.get("x-synheart-error", "without a code")
        expected = what == client.expects
        self.record.note(method, path, began, None if expected else f"{answer.status} {what} from {fields.get('x-upstream')}")
        if answer.status >= 500 or "x-synheart-error" not in fields:
            raise Lost(str(answer.status))
        raise Refusal(answer.status, fields, data)


class Record:
    """The results of all requests."""

    def __init__(self):
        self.lock, self.answered, self.lost, self.slowest = threading.Lock(), collections.Counter(), [], 0.0

    def note(self, method, path, began, loss=None):
        ended = time.monotonic()
        with self.lock:
            self.slowest = max(self.slowest, ended - began)
            if loss is None:
                self.answered[f"{method} {path.removeprefix(V1)}"] += 1
            else:
                self.lost.append((began, ended, f"{method} {path}: {loss}"))

    @property
    def writes(self):
        return sum(count for name, count in self.answered.items() if name.split("/")[-1] in ("register", "rotate-key", "device"))


class Device(Client):
    """A device that reads and writes, with signature scheme 2."""

    def __init__(self, origin, app, wire):
        super().__init__(origin, app)
        self.wire, self.scheme, self.expects = wire, 2, None

    def exchange(self, method, path, body=None, headers=()):
        return self.wire.exchange(self, method, path, body, headers)


class Fleet:
    """Concurrent devices, which together send `rate` requests a second."""

    def __init__(self, origin, app, credential, devices, rate):
        self.origin, self.app, self.credential = origin, app, credential
        self.record, self.pause, self.ends = Record(), devices / rate, threading.Event()
        self.errors = []
        self.threads = [threading.Thread(target=self.live, daemon=True) for _ in range(devices)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        for thread in self.threads:
            thread.join(timeout=60)

    def live(self):
        wire = Wire(self.origin, self.record)
        backend = Backend(self.origin, self.credential)
        backend.client = Device(self.origin, "com.example.backend", wire)
        while not self.ends.is_set():
            try:
                self.life(Device(self.origin, self.app, wire), backend)
            except (Lost, Refusal):
                self.ends.wait(0.5)  # The loss is counted. A new device replaces this one, whose state is unknown.
            except Exception as error:  # an answer with wrong content
                self.errors.append(repr(error))

    def life(self, device, backend):
        """One device, from its registration until it or the fleet ends."""
        if device.register() != "registered":
            raise ValueError("a device was not registered")
        for _ in range(random.randrange(20, 60)):
            if self.ends.wait(random.uniform(0, 2 * self.pause)):
                return
            # Half of these actions change devices: two rotate a key, and one registers and deregisters a device.
            random.choice([device.status, device.token, lambda: self.ask_twice(device, backend), device.rotate, device.rotate,
                           lambda: self.come_and_go(device)])()
        device.deregister()

    def ask_twice(self, device, backend):
        """A backend asks about a request twice, mostly at different nodes: the copy is refused."""
        question = backend.question(device.sign("POST", f"https://{backend.authority}/v1/hsi", b"{}"), body=b"{}")
        if backend.ask(question)["verified"] is not True:
            raise ValueError("a request was not verified")
        backend.client.expects = "NONCE_REPLAY"
        try:
            backend.ask(question)
            raise ValueError("a replay was accepted")
        except Refusal as refusal:
            if refusal.code != "NONCE_REPLAY":
                raise
        finally:
            backend.client.expects = None

    def come_and_go(self, device):
        """A further device registers, and deregisters."""
        guest = Device(self.origin, self.app, device.wire)
        guest.register()
        guest.deregister()

"""HTTP to the service: persistent connections, one deadline for each exchange, bounded answers, no redirects, no proxies."""

from __future__ import annotations

import http.client
import io
import ipaddress
import os
import socket
import ssl
import threading
import time
from dataclasses import dataclass
from typing import Any, Mapping, Optional
from urllib.parse import urlsplit

# The longest answer that is read, in bytes. The service's answers have a few hundred bytes.
ANSWER_LIMIT = 65_536
_IDLE_CONNECTIONS = 32


class Unreachable(Exception):
    """No whole answer came within the deadline."""


@dataclass(frozen=True)
class Answer:
    """An answer of the service. `body` is None if it is longer than the limit."""

    status: int
    headers: Mapping[str, str]
    body: Optional[bytes]

    @property
    def retry_after(self) -> Optional[int]:
        """Seconds of `Retry-After`, at most 300; None where it is absent or no number."""
        text = self.headers.get("retry-after", "")
        if not text.isascii() or not text.isdigit():
            return None
        return 300 if len(text) > 9 else min(int(text), 300)


class _TimedReader(io.RawIOBase):
    """Reads a socket until a deadline, however slowly the bytes come."""

    def __init__(self, sock: socket.socket, deadline: float) -> None:
        self._raw: Any = sock.makefile("rb", buffering=0)
        self._socket = sock
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> Optional[int]:
        self._socket.settimeout(_left(self._deadline))
        count: Optional[int] = self._raw.readinto(buffer)
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class _TimedSocket:
    """The interface that `HTTPResponse` expects of a socket."""

    def __init__(self, sock: socket.socket, deadline: float) -> None:
        self._socket = sock
        self._deadline = deadline

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_TimedReader(self._socket, self._deadline))


class Client:
    """A pool of connections to one origin. Threads may share a client. A forked child opens connections of its own."""

    def __init__(self, url: str, *, timeout: float, insecure_http: bool = False) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
            raise ValueError(f"expected an origin such as https://auth.example.com, found {url!r}")
        if parts.scheme == "http" and not insecure_http and not _is_loopback(parts.hostname):
            raise ValueError(f"{url!r} is plain http to another host: use https, or say insecure_http=True")
        if not timeout > 0:
            raise ValueError("timeout must be above 0 seconds")
        self._host, self._port, self._timeout = parts.hostname, parts.port, timeout
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._lock = threading.Lock()
        self._idle: list[http.client.HTTPConnection] = []
        self._owner = os.getpid()

    def exchange(self, method: str, path: str, headers: Mapping[str, str], body: Optional[bytes] = None) -> Answer:
        """One request and its answer.

        Raises:
            Unreachable: no whole answer came within the timeout.
        """
        deadline = time.monotonic() + self._timeout
        connection = self._take()
        try:
            return self._exchange(connection, deadline, method, path, headers, body)
        except (OSError, http.client.HTTPException, ValueError) as error:
            connection.close()
            # The service may have restarted: drop the other idle connections too.
            self._drop_idle()
            raise Unreachable(type(error).__name__) from error
        except BaseException:
            connection.close()
            raise

    def _exchange(
        self, connection: http.client.HTTPConnection, deadline: float, method: str, path: str, headers: Mapping[str, str],
        body: Optional[bytes],
    ) -> Answer:
        if connection.sock is None:
            connection.sock = self._connected(connection, deadline)
        connection.sock.settimeout(_left(deadline))
        setattr(connection, "response_class", lambda sock, *_, **options: http.client.HTTPResponse(
            _TimedSocket(sock, deadline), **options))  # type: ignore[arg-type]
        connection.request(method, path, body, dict(headers))
        response = connection.getresponse()
        found: Optional[bytes] = response.read(ANSWER_LIMIT + 1)
        if found is not None and len(found) > ANSWER_LIMIT:
            found = None
        elif response.length:
            raise http.client.IncompleteRead(found or b"", response.length)
        answer = Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, found)
        if found is not None and response.isclosed() and not response.will_close:
            self._give(connection)
        else:
            connection.close()
        return answer

    def _connected(self, connection: http.client.HTTPConnection, deadline: float) -> socket.socket:
        sock = _connect(connection.host, connection.port, deadline)
        if self._tls is None:
            return sock
        try:
            # This timeout limits the whole handshake, not each read.
            sock.settimeout(_left(deadline))
            return self._tls.wrap_socket(sock, server_hostname=connection.host)
        except BaseException:
            sock.close()
            raise

    def _take(self) -> http.client.HTTPConnection:
        with self._lock:
            if self._owner != os.getpid():
                self._idle, self._owner = [], os.getpid()
            if self._idle:
                return self._idle.pop()
        if self._tls is None:
            return http.client.HTTPConnection(self._host, self._port)
        return http.client.HTTPSConnection(self._host, self._port, context=self._tls)

    def _give(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if len(self._idle) < _IDLE_CONNECTIONS:
                self._idle.append(connection)
                return
        connection.close()

    def _drop_idle(self) -> None:
        with self._lock:
            dropped, self._idle = self._idle, []
        for connection in dropped:
            connection.close()


def _connect(host: str, port: int, deadline: float) -> socket.socket:
    """A connection to the first address that answers.

    The addresses share the time that is left, so that one that does not answer leaves time for the others. The look-up of the name
    has no timeout.
    """
    failure = OSError("the name has no address")
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    for index, (family, kind, protocol, _, address) in enumerate(addresses):
        sock = None
        try:
            sock = socket.socket(family, kind, protocol)
            sock.settimeout(_left(deadline) / (len(addresses) - index))
            sock.connect(address)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return sock
        except OSError as error:
            failure = error
            if sock is not None:
                sock.close()
    raise failure


def _left(deadline: float) -> float:
    """The seconds that are left, for a socket's timeout."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("the exchange took too long")
    return left


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

"""Middleware for ASGI: Starlette, FastAPI, Django, Quart."""

from __future__ import annotations

import asyncio
import logging
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Awaitable, Callable, Collection, List, MutableMapping, Optional, Tuple, Union

from .verifier import (
    VERIFICATION, Incoming, Lines, Refusal, Verification, Verifier, is_reserved, refusal, unavailable, verification)

_log = logging.getLogger("synheart_auth_backend")

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class SynheartASGI:
    """Lets a request reach an app only if it is verified, or passes in observe mode. `identity(scope)` tells who signed.

    Args:
        exempt: raw paths that pass without a signature, such as `/healthz`. They are compared exactly.
        root_path: the prefix under which the server or a router mounts this app (`root_path` of ASGI). A request with another one is
            refused: daphne takes it from a header of the client, and the app would run another path than the signed one.
        threads: how many requests are verified at once. A request whose verification, with the wait for a thread, takes more than
            `Verifier.longest` + 1 s is refused with 503.
    """

    def __init__(self, app: App, verifier: Verifier, *, exempt: Collection[str] = (), root_path: str = "",
                 threads: int = 32) -> None:
        self._app = app
        self._verifier = verifier
        self._exempt = frozenset(exempt)
        self._root_path = root_path
        self._pool = ThreadPoolExecutor(threads, "synheart-auth")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        if scope["type"] not in ("http", "websocket"):
            raise ValueError(f"cannot verify the ASGI type {scope['type']!r}")
        scope = dict(scope)
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        scope["headers"] = [pair for pair, (name, _) in zip(scope["headers"], headers) if not is_reserved(name)]
        if verification(scope) is not None:
            return await self._app(scope, receive, send)
        raw: Optional[bytes] = scope.get("raw_path")
        is_moved = (scope.get("root_path") or "") != self._root_path
        if not is_moved and raw is not None and raw.decode("latin-1") in self._exempt:
            return await self._app(scope, receive, send)
        is_socket = scope["type"] == "websocket"
        body: Union[bytes, Refusal, None]
        if is_moved:
            _log.warning("root_path is %r: if the server or a router set it, name it as root_path of SynheartASGI", scope.get("root_path"))
            body = refusal(400, "INVALID_REQUEST", "The request has another root path than this app.", str(uuid.uuid4()))
        else:
            body = b"" if is_socket else await self._body(receive)
        if body is None:
            return
        found = body if isinstance(body, Refusal) else await self._verify(scope, headers, body)
        if isinstance(found, Refusal):
            return await (_refuse_socket(scope, found, receive, send) if is_socket else _answer("http", found, send))
        scope[VERIFICATION] = found
        await self._app(scope, receive if is_socket or isinstance(body, Refusal) else _replayed(body, receive), send)

    async def _body(self, receive: Receive) -> Union[bytes, Refusal, None]:
        """The whole body, a refusal if it is over the limit, None if the client disconnected."""
        parts: List[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self._verifier.body_limit:
                return self._verifier.too_large()
            if not message.get("more_body", False):
                return b"".join(parts)

    async def _verify(self, scope: Scope, headers: Lines, body: bytes) -> Union[Verification, Refusal]:
        raw: Optional[bytes] = scope.get("raw_path")
        if raw is None:
            _log.error("this ASGI server does not give raw_path: what the device signed is not known")
            return unavailable(str(uuid.uuid4()))
        query: bytes = scope.get("query_string", b"")
        client: Optional[Tuple[str, int]] = scope.get("client")
        asked = asyncio.get_running_loop().run_in_executor(self._pool, self._verifier.verify, Incoming(
            # The scope of a WebSocket has no method: its handshake is a GET.
            scope.get("method", "GET"), (raw + (b"?" + query if query else b"")).decode("latin-1"), headers, body,
            client[0] if client and client[0] else None))
        try:
            return await asyncio.wait_for(asked, self._verifier.longest + 1)
        except asyncio.TimeoutError:
            return unavailable(str(uuid.uuid4()))


def _replayed(body: bytes, receive: Receive) -> Receive:
    """A `receive` that first returns the body, which was already read, and then what the server sends next, such as the disconnect."""
    waiting = [body]

    async def replayed() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return replayed


async def _answer(kind: str, found: Refusal, send: Send) -> None:
    headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in found.headers]
    await send({"type": f"{kind}.response.start", "status": found.status, "headers": headers})
    await send({"type": f"{kind}.response.body", "body": found.body})


async def _refuse_socket(scope: Scope, found: Refusal, receive: Receive, send: Send) -> None:
    await receive()
    if "websocket.http.response" in (scope.get("extensions") or {}):
        await _answer("websocket.http", found, send)
    else:
        await send({"type": "websocket.close", "code": 1008})

"""Middleware for WSGI: Flask, Django, Pyramid."""

from __future__ import annotations

import io
import logging
import re
import uuid
from http import HTTPStatus
from typing import Any, Callable, Collection, Iterable, List, MutableMapping, Tuple, Union

from .verifier import (
    VERIFICATION, Incoming, Refusal, Verifier, is_asked_about, is_reserved, refusal, unavailable, verification)

_log = logging.getLogger("synheart_auth_backend")

Environ = MutableMapping[str, Any]
StartResponse = Callable[..., Any]
App = Callable[[Any, Any], Iterable[bytes]]

# The headers SCRIPT_NAME and PATH_INFO. If a proxy on loopback sends SCRIPT_NAME, gunicorn removes its value from the start of the path
# that the app routes on. The device signs neither header, so a request that has one of them is refused.
_MOVING_THE_PATH = ("HTTP_SCRIPT_NAME", "HTTP_PATH_INFO")


class SynheartWSGI:
    """Lets a request reach an app only if it is verified, or passes in observe mode. `identity(environ)` tells who signed.

    The server must give the raw request target, as `RAW_URI` or `REQUEST_URI`: gunicorn, uWSGI, mod_wsgi, waitress and werkzeug do.

    Args:
        exempt: raw paths that pass without a signature, such as `/healthz`. They are compared exactly.
    """

    def __init__(self, app: App, verifier: Verifier, *, exempt: Collection[str] = ()) -> None:
        self._app = app
        self._verifier = verifier
        self._exempt = frozenset(exempt)

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        headers = _lines(environ)
        for key in [key for key in environ if key.startswith("HTTP_") and is_reserved(key[5:])]:
            del environ[key]
        if any(key in environ for key in _MOVING_THE_PATH):
            return _answer(environ, refusal(
                400, "INVALID_REQUEST", "The headers SCRIPT_NAME and PATH_INFO are not accepted.", str(uuid.uuid4())), start_response)
        target = environ.get("RAW_URI") or environ.get("REQUEST_URI")
        is_exempt = isinstance(target, str) and target.partition("?")[0] in self._exempt
        if verification(environ) is not None or is_exempt:
            return self._app(environ, start_response)
        if not isinstance(target, str):
            _log.error("this WSGI server gives neither RAW_URI nor REQUEST_URI: what the device signed is not known")
            return _answer(environ, unavailable(str(uuid.uuid4())), start_response)
        body = self._body(environ)
        if isinstance(body, Refusal):
            return _answer(environ, body, start_response)
        found = self._verifier.verify(Incoming(
            environ["REQUEST_METHOD"], target, headers, body, environ.get("REMOTE_ADDR") or None))
        if isinstance(found, Refusal):
            return _answer(environ, found, start_response)
        environ[VERIFICATION] = found
        environ["wsgi.input"] = io.BytesIO(body)
        environ["CONTENT_LENGTH"] = str(len(body))
        environ.pop("HTTP_TRANSFER_ENCODING", None)
        return self._app(environ, start_response)

    def _body(self, environ: Environ) -> Union[bytes, Refusal]:
        """The whole body, or a refusal. Bytes whose length no header tells are neither read nor passed to the app."""
        length = environ.get("CONTENT_LENGTH") or ""
        is_chunked = bool(environ.get("HTTP_TRANSFER_ENCODING"))
        unframed = refusal(400, "INVALID_REQUEST", "The body is not framed as the headers say.", str(uuid.uuid4()))
        if length:
            if is_chunked or not re.fullmatch("[0-9]{1,15}", length):
                return unframed
            if int(length) > self._verifier.body_limit:
                return self._verifier.too_large()
        elif not is_chunked:
            return b""
        elif not environ.get("wsgi.input_terminated"):
            # The body's length is unknown.
            return unframed
        wanted = int(length) if length else self._verifier.body_limit + 1
        parts: List[bytes] = []
        while wanted > 0:
            part: bytes = environ["wsgi.input"].read(min(wanted, 65_536))
            if not part:
                break
            parts.append(part)
            wanted -= len(part)
        if length:
            return b"".join(parts) if wanted == 0 else unframed
        return b"".join(parts) if wanted > 0 else self._verifier.too_large()


def _lines(environ: Environ) -> List[Tuple[str, str]]:
    """The header lines that the verifier needs.

    WSGI joins the lines of a header with commas. No header of a signed request has a comma in it, except the dictionaries
    `Signature-Input` and `Signature`. So a comma in another header means that the header was repeated. Each part is sent to the
    service as its own line, and the service refuses the repeated header.
    """
    lines: List[Tuple[str, str]] = []
    for key, value in environ.items():
        if not key.startswith("HTTP_"):
            continue
        name = key[5:].replace("_", "-")
        if name.startswith("X-FORWARDED-") or name.startswith("SIGNATURE"):
            lines.append((name, value))
        elif is_asked_about(name):
            lines += [(name, part.strip(" \t")) for part in value.split(",")]
    return lines


def _answer(environ: Environ, found: Refusal, start_response: StartResponse) -> Iterable[bytes]:
    try:
        phrase = HTTPStatus(found.status).phrase
    except ValueError:
        phrase = "Refused"
    start_response(f"{found.status} {phrase}", list(found.headers))
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [found.body]

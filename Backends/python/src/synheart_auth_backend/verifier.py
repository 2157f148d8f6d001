"""Asks `/verify` about a request, and turns the answer into an identity or a refusal. Depends on no framework."""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import json
import logging
import re
import time
import uuid
from dataclasses import dataclass
from typing import Any, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from .client import Answer, Client, Unreachable

_log = logging.getLogger("synheart_auth_backend")

Lines = Sequence[Tuple[str, str]]

VERIFICATION = "synheart.verification"
UNIX_SOCKET = "unix"

_CODE = re.compile(r"[A-Z0-9_]{1,64}")
_DEVICE = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_APP = re.compile(r"[A-Za-z0-9._-]{1,128}")
_ORIGIN = re.compile(r"(https?)://([A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?")
_AUTHORITY = re.compile(r"[\x21-\x2b\x2d-\x7e]{1,300}")
_SERVER_TIME = re.compile(r"[0-9]{10}")
_FIELD = re.compile(r"[\x20-\x7e]{1,1000}")
# The seconds of `Retry-After` if the service sends none.
_RETRY_AFTER = 5


@dataclass(frozen=True)
class Incoming:
    """A request as the server received it.

    Attributes:
        target: the path, with `?` and the query if there is one, as on the wire: not decoded.
        headers: every header line, also of a repeated header.
        body: the raw bytes.
        peer: the address of the other end of the connection; None for a UNIX socket.
    """

    method: str
    target: str
    headers: Lines
    body: bytes
    peer: Optional[str] = None


@dataclass(frozen=True)
class Identity:
    """The device that signed a request. `assurance` has the members `app`, `key` and `labels`."""

    app_id: str
    device_id: str
    platform: str
    assurance: Mapping[str, Any]
    signature_scheme: int
    key_age_seconds: int


@dataclass(frozen=True)
class Verification:
    """A request that may pass.

    Attributes:
        identity: who signed it. None if it passes only because its app is in observe mode.
        observed: the code that the service would have refused it with, if it passes only because of observe mode; else None.
    """

    identity: Optional[Identity] = None
    observed: Optional[str] = None


@dataclass(frozen=True)
class Refusal:
    """The answer to a request that may not pass."""

    status: int
    headers: Lines
    body: bytes


class Verifier:
    """Asks one service. Make one for each process and share it.

    Args:
        service: the service's origin, such as `https://auth.example.com`.
        credential: the service credential of this backend. It is never logged.
        origin: the scheme and authority that clients send their requests to, such as `https://api.example.com`.
        trusted_proxies: in place of `origin`: networks (CIDR) whose `X-Forwarded-Proto` and `X-Forwarded-Host` are believed. `unix`
            stands for UNIX sockets.
        body_limit: how many bytes a body may have. Above the service's own limit (1 MiB by default) the service refuses requests that are
            signed with scheme 1. For scheme 2 it gets only the body's digest.
        timeout: seconds for each attempt.
        attempts: the most attempts to ask the service about one request.
        insecure_http: allows plain http to a service that is not on loopback.
    """

    def __init__(
        self, service: str, credential: str, *, origin: Optional[str] = None, trusted_proxies: Iterable[str] = (),
        body_limit: int = 1_048_576, timeout: float = 2.0, attempts: int = 3, insecure_http: bool = False,
    ) -> None:
        proxies = list(trusted_proxies)
        if (origin is None) == (not proxies):
            raise ValueError("name either origin or trusted_proxies: the request itself proves neither scheme nor authority")
        if not re.fullmatch(r"[\x21-\x7e]+", credential):
            raise ValueError("the credential is empty, or has a character that no credential has")
        if urlparts := re.fullmatch(r"https?://[^/?#]+(.*)", service):
            if urlparts.group(1) not in ("", "/"):
                raise ValueError(f"expected an origin without a path, found {service!r}")
        if body_limit < 0 or attempts < 1:
            raise ValueError("body_limit must not be negative, and attempts must be at least 1")
        self._origin: Optional[Tuple[str, str]] = None
        if origin is not None:
            found = _ORIGIN.fullmatch(origin)
            if not found:
                raise ValueError(f"expected an origin such as https://api.example.com, found {origin!r}")
            self._origin = found.group(1), found.group(2) + (found.group(3) or "")
        self._trusts_unix = UNIX_SOCKET in proxies
        self._networks = [ipaddress.ip_network(text) for text in proxies if text != UNIX_SOCKET]
        self._client = Client(service, timeout=timeout, insecure_http=insecure_http)
        self._headers = {"Authorization": f"Bearer {credential}", "Content-Type": "application/json"}
        self._attempts = attempts
        self.body_limit = body_limit
        # The longest that `verify` takes, in seconds: all attempts, and the pauses between them. Name look-ups are not included.
        self.longest = attempts * timeout + sum(_pause(attempt) for attempt in range(1, attempts))

    def verify(self, request: Incoming) -> Union[Verification, Refusal]:
        """Judges a request. Call it once for each request: a second call is a replay. Blocks at most `longest`, plus name look-ups."""
        name = str(uuid.uuid4())
        if not _is_framed(request):
            return refusal(400, "INVALID_REQUEST", "The body is not framed as the headers say.", name)
        if len(request.body) > self.body_limit:
            return self.too_large()
        origin = self._origin or self._forwarded(request)
        if origin is None:
            return refusal(
                421, "MISDIRECTED_REQUEST", "The request did not come through a proxy that this backend trusts.", name)
        question = json.dumps(_question(request, *origin, name)).encode()
        return self._judge(self._ask(question), request, name)

    def too_large(self) -> Refusal:
        """The answer to a body beyond the limit."""
        return refusal(413, "PAYLOAD_TOO_LARGE", f"The body has more than {self.body_limit} bytes.", str(uuid.uuid4()))

    def _forwarded(self, request: Incoming) -> Optional[Tuple[str, str]]:
        """The scheme and authority that a trusted proxy sent; None unless it sent exactly one of each."""
        if not self._trusts(request.peer):
            return None
        schemes = values(request.headers, "x-forwarded-proto")
        authorities = values(request.headers, "x-forwarded-host")
        if len(schemes) != 1 or len(authorities) != 1 or schemes[0] not in ("http", "https"):
            return None
        return (schemes[0], authorities[0]) if _AUTHORITY.fullmatch(authorities[0]) else None

    def _trusts(self, peer: Optional[str]) -> bool:
        if peer is None:
            return self._trusts_unix
        try:
            address = ipaddress.ip_address(peer.partition("%")[0])
        except ValueError:
            return False
        mapped = getattr(address, "ipv4_mapped", None)
        return any((mapped or address) in network for network in self._networks)

    def _ask(self, question: bytes) -> Optional[Answer]:
        """The service's answer, None if there was none. After a failure, asks again with the same verification id. So the service takes
        the repeated question for a retry, not for a replay.
        """
        answer = None
        for attempt in range(self._attempts):
            time.sleep(_pause(attempt))
            try:
                answer = self._client.exchange("POST", "/auth/v1/verify", self._headers, question)
            except Unreachable as error:
                _log.warning("the auth service did not answer: %s", error)
                continue
            # If the answer has Retry-After, do not retry: the phone would wait too long.
            if answer.status < 500 or answer.retry_after is not None:
                break
        return answer

    def _judge(self, answer: Optional[Answer], request: Incoming, name: str) -> Union[Verification, Refusal]:
        if answer is None:
            return unavailable(name)
        body = _object(answer.body)
        code = body.get("error")
        if not isinstance(code, str) or not _CODE.fullmatch(code):
            code = None
        if answer.status == 200:
            passed = _passed(body, request)
            if passed is not None:
                return passed
        elif 400 <= answer.status < 500 and answer.status != 429 and code is not None:
            if code in ("UNAUTHORIZED", "FORBIDDEN"):
                _log.error(
                    "the auth service refuses this backend's credential (%s): see `synheart-auth credentials list`, and create "
                    "one of role service for the app", code)
                return unavailable(name, 30)
            if body.get("verified") is False:
                return _relayed(answer, body, code, name)
        if answer.status != 429 and answer.status < 500:
            _log.error("the auth service gave no verdict to a question: status %d, code %s, id %s", answer.status, code, name)
        return unavailable(name, answer.retry_after)


def identity(request: Mapping[str, Any]) -> Optional[Identity]:
    """The device that signed, from an ASGI scope, a WSGI environ or Django's `META`. None if only observe mode lets the request pass."""
    found = verification(request)
    return found.identity if found else None


def verification(request: Mapping[str, Any]) -> Optional[Verification]:
    """The middleware's result, from an ASGI scope, a WSGI environ or Django's `request.META`."""
    found = request.get(VERIFICATION)
    return found if isinstance(found, Verification) else None


def values(headers: Lines, name: str) -> List[str]:
    """The values of a header, line by line."""
    return [value.strip(" \t") for found, value in headers if found.lower() == name]


def is_asked_about(name: str) -> bool:
    """Whether a header is passed on to the service. Cookies and credentials of the client are not."""
    name = name.lower()
    if name.startswith("x-synheart-"):
        return not is_reserved(name)
    return name in ("x-app-id", "x-device-id", "content-digest", "signature-input", "signature")


def is_reserved(name: str) -> bool:
    """Whether a handler could take the header for a verified identity. Every character except letters and digits counts as `-`, because
    some frameworks change characters such as `_` and `.` to `-`.
    """
    name = re.sub("[^a-z0-9]", "-", name.lower())
    return name.startswith("x-synheart-verified-") or name == "x-synheart-identity"


def refusal(status: int, code: str, message: str, request_id: str, headers: Lines = ()) -> Refusal:
    """A refusal that this backend itself decides, in the protocol's form."""
    return _refusal(status, headers, {
        "error": code, "message": message, "request_id": request_id, "server_timestamp": int(time.time())})


def unavailable(request_id: str, retry_after: Optional[int] = None) -> Refusal:
    """The answer if the service gave no verdict: the request does not pass."""
    seconds = _RETRY_AFTER if retry_after is None else retry_after
    return refusal(
        503, "SERVICE_UNAVAILABLE", "The request cannot be verified now.", request_id, [("Retry-After", str(seconds))])


def _refusal(status: int, headers: Lines, body: Mapping[str, Any]) -> Refusal:
    data = json.dumps(body).encode()
    return Refusal(status, [
        ("Content-Type", "application/json"), ("Content-Length", str(len(data))), ("Cache-Control", "no-store"),
        ("X-Synheart-Error", body["error"]), *headers], data)


def _relayed(answer: Answer, body: Mapping[str, Any], code: str, name: str) -> Refusal:
    """Passes a verdict of the service on to the phone. Keeps only what the phone needs to recover."""
    message, request_id, moment = (body.get(member) for member in ("message", "request_id", "server_timestamp"))
    headers = []
    sent = answer.headers.get("x-synheart-server-time", "")
    if _SERVER_TIME.fullmatch(sent):
        headers.append(("X-Synheart-Server-Time", sent))
    demand = answer.headers.get("x-synheart-assertion", "")
    if _FIELD.fullmatch(demand):
        headers.append(("X-Synheart-Assertion", demand))
    if answer.retry_after is not None:
        headers.append(("Retry-After", str(answer.retry_after)))
    return _refusal(answer.status, headers, {
        "error": code, "message": message[:500] if isinstance(message, str) else "The request was refused.",
        "request_id": request_id[:128] if isinstance(request_id, str) else name,
        "server_timestamp": moment if type(moment) is int else int(time.time())})


def _passed(body: Mapping[str, Any], request: Incoming) -> Optional[Verification]:
    """The verdict in an answer with status 200, None if it has none."""
    observed = body.get("observed")
    if body.get("verified") is False and isinstance(observed, str) and _CODE.fullmatch(observed):
        return Verification(observed=observed)
    if body.get("verified") is not True or observed is not None:
        return None
    app, device, platform, scheme, age = (body.get(name) for name in (
        "app_id", "device_id", "platform", "signature_scheme", "key_age_seconds"))
    assurance = assurance_of(body)
    if (
        isinstance(app, str) and _APP.fullmatch(app) and isinstance(device, str) and _DEVICE.fullmatch(device)
        # App and device must be those that the request names. Otherwise the answer is about another request.
        and values(request.headers, "x-app-id") == [app] and values(request.headers, "x-device-id") == [device]
        and platform in ("ios", "android") and assurance is not None
        and type(scheme) is int and scheme in (1, 2) and type(age) is int and age >= 0
    ):
        return Verification(Identity(app, device, platform, assurance, scheme, age))
    return None


def assurance_of(members: Mapping[str, Any]) -> Optional[Mapping[str, Any]]:
    """The member `assurance`, None if it is malformed."""
    value = members.get("assurance")
    if not isinstance(value, dict) or not isinstance(value.get("app"), str) or not isinstance(value.get("key"), str):
        return None
    labels = value.get("labels")
    return value if isinstance(labels, list) and all(isinstance(label, str) for label in labels) else None


def _question(request: Incoming, scheme: str, authority: str, name: str) -> Mapping[str, Any]:
    path, mark, query = request.target.partition("?")
    named = [[name, value] for name, value in request.headers if is_asked_about(name)]
    question = {
        "method": request.method, "scheme": scheme, "authority": authority, "path": path, "query": query if mark else None,
        "headers": named, "verification_id": name}
    # Signature scheme 2 signs the digest of the body, so the service does not need the body itself.
    if values(request.headers, "signature-input") and not values(request.headers, "x-synheart-sig-version"):
        question["body_sha256"] = base64.b64encode(hashlib.sha256(request.body).digest()).decode()
    else:
        question["body"] = base64.b64encode(request.body).decode()
    return question


def _is_framed(request: Incoming) -> bool:
    """Whether the headers name no length, or the body's length once. Ambiguous framing allows request smuggling."""
    lengths = values(request.headers, "content-length")
    if not lengths:
        return True
    if len(lengths) > 1 or values(request.headers, "transfer-encoding"):
        return False
    return re.fullmatch("[0-9]{1,15}", lengths[0]) is not None and int(lengths[0]) == len(request.body)


def _object(body: Optional[bytes]) -> Mapping[str, Any]:
    """The JSON object in an answer's body; an empty object if the body is not a JSON object."""
    try:
        value = json.loads((body or b"").decode(), object_pairs_hook=_members)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _members(pairs: List[Tuple[str, Any]]) -> Mapping[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member occurs twice")
    return members


def _pause(attempt: int) -> float:
    """The pause before an attempt, in seconds. The first attempt has the number 0."""
    return 0.05 * 2 ** attempt if attempt else 0.0

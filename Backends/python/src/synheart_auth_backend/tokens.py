"""Checks device tokens offline, by the service's published keys. Needs `cryptography`: the extra `tokens`."""

from __future__ import annotations

import base64
import json
import logging
import re
import threading
import time
from dataclasses import dataclass
from typing import Any, Callable, Collection, Dict, Mapping, Optional
from urllib.parse import urlsplit

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDSA, SECP256R1, EllipticCurvePublicKey, EllipticCurvePublicNumbers)
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from .client import Client, Unreachable
from .verifier import assurance_of

_log = logging.getLogger("synheart_auth_backend")

_TOKEN_LIMIT = 8192
_LIFE = 600
# Seconds for which a key set is fresh: its max-age, limited to these bounds, or _USUAL if it has none.
_SHORTEST, _USUAL, _LONGEST = 60, 300, 3600
# Seconds for which an old key set stays valid while the service cannot be reached.
_STALE = 3600
# Seconds between two attempts to read the keys: for an unknown kid, and after a failure.
_UNKNOWN_PAUSE, _FAILURE_PAUSE = 60, 5
_MAX_AGE = re.compile(r"(?:^|[\s,])max-age=([0-9]{1,9})(?:$|[\s,])")


class TokenRefused(Exception):
    """The token is not one that this backend accepts: answer 401. The text is for the log."""


class KeysUnavailable(Exception):
    """The published keys cannot be read now: answer 503."""


@dataclass(frozen=True)
class DeviceToken:
    """The content of a token. `device_key` is the device's public key as a JWK; `assurance` has `app`, `key` and `labels`."""

    device_id: str
    app_id: str
    audience: str
    channel: str
    platform: str
    assurance: Mapping[str, Any]
    issued_at: int
    expires_at: int
    token_id: str
    device_key: Mapping[str, Any]


class TokenVerifier:
    """Checks the tokens of one issuer. Make one for each process and share it.

    Args:
        issuer: the expected `iss`: the service's public origin.
        audience: the audience of this backend. It must match exactly.
        jwks_url: where the keys are; `<issuer>/auth/v1/.well-known/jwks.json` if it is not named.
        token_type: the expected `typ`: the app's `signature.token_type`.
        channels: the channels that are accepted. Tokens of channel `production` with a development or test
            assurance are never accepted.
        leeway: how many seconds the clocks may differ, at most 60.
        timeout: the seconds in which the key set must arrive.
        insecure_http: whether `jwks_url` may be plain http to another machine.
        clock: unix time. For tests.
        monotonic: seconds that never run back. For tests.
    """

    def __init__(
        self, issuer: str, audience: str, *, jwks_url: Optional[str] = None, token_type: str = "synheart-device+jwt",
        channels: Collection[str] = ("production",), leeway: int = 5, timeout: float = 2.0, insecure_http: bool = False,
        clock: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        if not issuer or not audience or not token_type:
            raise ValueError("issuer, audience and token_type must not be empty")
        if not 0 <= leeway <= 60:
            raise ValueError("leeway must be 0 to 60 seconds")
        self._issuer, self._audience, self._type, self._leeway = issuer, audience, token_type, leeway
        self._channels = frozenset(channels)
        self._clock = clock
        self._keys = _KeySet(jwks_url or f"{issuer.rstrip('/')}/auth/v1/.well-known/jwks.json", timeout, insecure_http, monotonic)

    def verify(self, token: str) -> DeviceToken:
        """Checks the token that follows `Bearer` in the `Authorization` header.

        Raises:
            TokenRefused: answer 401.
            KeysUnavailable: answer 503.
        """
        if len(token) > _TOKEN_LIMIT:
            raise TokenRefused("longer than 8192 characters")
        parts = token.split(".")
        if len(parts) != 3:
            raise TokenRefused("not three parts")
        header, claims = (_object(_base64url(part)) for part in parts[:2])
        signature = _base64url(parts[2])
        if header.get("alg") != "ES256" or header.get("typ") != self._type or "crit" in header:
            raise TokenRefused("another alg or typ")
        kid = header.get("kid")
        if not isinstance(kid, str) or not 0 < len(kid) <= 128:
            raise TokenRefused("no kid")
        key = self._keys.key(kid)
        if key is None:
            raise TokenRefused("an unknown kid")
        if len(signature) != 64:
            raise TokenRefused("a signature that has not 64 bytes")
        der = encode_dss_signature(int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big"))
        try:
            key.verify(der, f"{parts[0]}.{parts[1]}".encode(), ECDSA(hashes.SHA256()))
        except InvalidSignature:
            raise TokenRefused("a wrong signature") from None
        return self._read(claims)

    def _read(self, claims: Mapping[str, Any]) -> DeviceToken:
        if claims.get("iss") != self._issuer:
            raise TokenRefused("another issuer")
        if claims.get("aud") != self._audience:
            raise TokenRefused("another audience")
        issued, expires, now = claims.get("iat"), claims.get("exp"), self._clock()
        if type(issued) is not int or type(expires) is not int or not 0 <= expires - issued <= _LIFE:
            raise TokenRefused("no life of at most 600 seconds")
        if not issued <= now + self._leeway:
            raise TokenRefused("not valid yet")
        if not now < expires + self._leeway:
            raise TokenRefused("expired")
        texts = {name: claims.get(name) for name in ("sub", "app_id", "channel", "platform", "jti")}
        assurance, cnf = assurance_of(claims), claims.get("cnf")
        if not all(isinstance(text, str) and text for text in texts.values()) or assurance is None:
            raise TokenRefused("a claim is missing")
        if not isinstance(cnf, dict) or not isinstance(cnf.get("jwk"), dict):
            raise TokenRefused("a claim is missing")
        if texts["channel"] not in self._channels:
            raise TokenRefused("another channel")
        if texts["channel"] == "production" and assurance["app"] in ("development", "test"):
            raise TokenRefused("an assurance that production does not accept")
        return DeviceToken(
            str(texts["sub"]), str(texts["app_id"]), self._audience, str(texts["channel"]), str(texts["platform"]), assurance,
            issued, expires, str(texts["jti"]), cnf["jwk"])


@dataclass(frozen=True)
class _Published:
    """A key set, when it was read, and the seconds for which it is fresh."""

    keys: Mapping[str, EllipticCurvePublicKey]
    read_at: float
    life: int

    def is_old(self, now: float) -> bool:
        return now - self.read_at >= self.life


class _KeySet:
    """The published keys: kept for their max-age, read again for an unknown kid at most once a minute."""

    def __init__(self, url: str, timeout: float, insecure_http: bool, monotonic: Callable[[], float]) -> None:
        parts = urlsplit(url)
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._client = Client(url, timeout=timeout, insecure_http=insecure_http)
        self._monotonic = monotonic
        # Held while the keys are read. Only one thread reads, because a second one would fetch the same key set.
        self._reading = threading.Lock()
        self._published: Optional[_Published] = None
        self._asked_at: Optional[float] = None
        self._failed = False

    def key(self, kid: str) -> Optional[EllipticCurvePublicKey]:
        found = self._published
        # A caller that needs a known, fresh key does not wait for a running read.
        if found is None or found.is_old(self._monotonic()) or kid not in found.keys:
            with self._reading:
                found = self._read_if_due(kid)
        if found is None or self._monotonic() - found.read_at >= found.life + _STALE:
            raise KeysUnavailable("the auth service's keys could not be read")
        return found.keys.get(kid)

    def _read_if_due(self, kid: str) -> Optional[_Published]:
        found, now = self._published, self._monotonic()
        is_old = found is None or found.is_old(now)
        if is_old or found is None or kid not in found.keys:
            pause = _FAILURE_PAUSE if self._failed else 0 if is_old else _UNKNOWN_PAUSE
            if self._asked_at is None or now - self._asked_at >= pause:
                self._read(now)
        return self._published

    def _read(self, now: float) -> None:
        self._asked_at = now
        self._failed = True
        try:
            answer = self._client.exchange("GET", self._path, {"Accept": "application/json"})
        except Unreachable as error:
            _log.warning("the auth service's keys could not be read: %s", error)
            return
        keys = _keys(answer.body) if answer.status == 200 and answer.body else None
        if keys is None:
            _log.warning("the auth service's keys could not be read: status %d", answer.status)
            return
        found = _MAX_AGE.search(answer.headers.get("cache-control", ""))
        life = min(max(int(found.group(1)), _SHORTEST), _LONGEST) if found else _USUAL
        self._published, self._failed = _Published(keys, now, life), False


def _keys(body: bytes) -> Optional[Dict[str, EllipticCurvePublicKey]]:
    """The keys that can sign tokens, None if this is no valid key set. Keys of other types are skipped."""
    try:
        listed = json.loads(body.decode())["keys"]
        if not isinstance(listed, list):
            return None
        keys: Dict[str, EllipticCurvePublicKey] = {}
        for jwk in listed:
            if (jwk["kty"], jwk.get("crv"), jwk.get("use", "sig"), jwk.get("alg", "ES256")) != ("EC", "P-256", "sig", "ES256"):
                continue
            x, y = _base64url(jwk["x"]), _base64url(jwk["y"])
            if len(x) != 32 or len(y) != 32 or not isinstance(jwk["kid"], str):
                return None
            numbers = EllipticCurvePublicNumbers(int.from_bytes(x, "big"), int.from_bytes(y, "big"), SECP256R1())
            keys[jwk["kid"]] = numbers.public_key()
        return keys
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, TokenRefused):
        return None


def _base64url(text: str) -> bytes:
    """Decodes base64url strictly: refuses padding, other characters, and any text that an encoder would not write."""
    if re.fullmatch(r"[A-Za-z0-9_-]*", text):
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)) if len(text) % 4 != 1 else b""
        if base64.urlsafe_b64encode(data).rstrip(b"=").decode() == text:
            return data
    raise TokenRefused("no base64url")


def _object(data: bytes) -> Mapping[str, Any]:
    try:
        value = json.loads(data.decode())
    except (ValueError, RecursionError):
        raise TokenRefused("no JSON") from None
    if not isinstance(value, dict):
        raise TokenRefused("no JSON object")
    return value

"""Verifies requests that devices signed, by asking a Synheart Auth service."""

from .asgi import SynheartASGI
from .verifier import Identity, Incoming, Refusal, Verification, Verifier, identity, verification
from .wsgi import SynheartWSGI

__all__ = [
    "Identity", "Incoming", "Refusal", "SynheartASGI", "SynheartWSGI", "Verification", "Verifier", "identity", "verification",
]

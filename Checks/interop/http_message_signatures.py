#!/usr/bin/env python3
"""Scheme 2 by another implementation of RFC 9421 (PyPI: http-message-signatures).

Reads one JSON object a line and answers each with one line:

  {"do": "sign", "private_key": PEM, "key_id", "created", "nonce", "method", "url", "headers": {name: value}, "body": base64}
      -> {"headers": {name: value}, "signature_base"}
  {"do": "verify", "public_key": PEM, "method", "url", "headers": {name: value}, "body": base64}
      -> {"verified": true, "key_id", "nonce", "created"} | {"verified": false, "reason"}
  {"do": "parse", "field": text}             a structured field dictionary
      -> {"canonical": text} | {"error": reason}

With --check it only exits: with 0 if the packages of requirements.txt are installed, else with 3.
"""

import base64
import datetime
import json
import pathlib
import sys
from types import SimpleNamespace

# Removes this script's folder from the search path. Otherwise the import of the library would find this script, which has its name.
HERE = pathlib.Path(__file__).resolve().parent
sys.path = [folder for folder in sys.path if pathlib.Path(folder).resolve() != HERE]

try:
    import http_sf
    from http_message_signatures import HTTPMessageSigner, HTTPMessageVerifier, MappingKeyResolver, algorithms
    from http_message_signatures.exceptions import HTTPMessageSignaturesException
except ImportError as missing:
    print(f"not installed: {missing.name}; pip install -r Checks/interop/requirements.txt", file=sys.stderr)
    sys.exit(3)

LABEL = "synheart"
TAG = "synheart-auth-v2"
COMPONENTS = (
    "@method", "@scheme", "@authority", "@path", "@query", "content-digest", "x-app-id", "x-device-id",
)


def message(request):
    return SimpleNamespace(method=request["method"], url=request["url"], headers=dict(request["headers"]))


def sign(request):
    signed = message(request)
    body = base64.b64decode(request["body"], validate=True)
    signer = HTTPMessageSigner(signature_algorithm=algorithms.ECDSA_P256_SHA256)
    prepared = signer.prepare(
        signed, key_id=request["key_id"], created=datetime.datetime.fromtimestamp(request["created"], datetime.timezone.utc),
        nonce=request["nonce"], label=LABEL, tag=TAG, covered_component_ids=COMPONENTS, body=body)
    key = algorithms.ECDSA_P256_SHA256(private_key=request["private_key"].encode())
    signer.apply(signed, prepared, key.sign(prepared.signature_base))
    return {"headers": signed.headers, "signature_base": prepared.signature_base.decode()}


def verify(request):
    body = base64.b64decode(request["body"], validate=True)

    class AnyKeyID(MappingKeyResolver):
        def resolve_public_key(self, key_id):
            return request["public_key"].encode()

    keys = AnyKeyID(public_keys={}, private_keys={})
    verifier = HTTPMessageVerifier(signature_algorithm=algorithms.ECDSA_P256_SHA256, key_resolver=keys)
    try:
        result, = verifier.verify(
            message(request), max_age=None, expect_tag=TAG, expect_label=LABEL, require_components=COMPONENTS,
            body=body)
    except HTTPMessageSignaturesException as refused:
        return {"verified": False, "reason": str(refused)}
    parameters = result.parameters
    return {
        "verified": True, "key_id": parameters["keyid"], "nonce": parameters["nonce"],
        "created": parameters["created"],
    }


def parse(request):
    def refuse_duplicate(key, context):
        raise ValueError(f"{key} stands twice")

    try:
        value = http_sf.parse(request["field"].encode(), tltype="dictionary", on_duplicate_key=refuse_duplicate)
        return {"canonical": http_sf.ser(value) if value else ""}
    except Exception as refused:  # every refusal is an answer
        return {"error": str(refused) or type(refused).__name__}


def main():
    if sys.argv[1:] == ["--check"]:
        return
    for line in sys.stdin:
        request = json.loads(line)
        answer = {"sign": sign, "verify": verify, "parse": parse}[request["do"]](request)
        print(json.dumps(answer), flush=True)


main()

#!/usr/bin/env python3
"""Writes the assertions of docs/vectors/assertions.json, with the published keys of keys.json. Signatures are deterministic (RFC 6979),
so the bytes are the same each time.

    Checks/interop/assertion_vectors.py            # writes the file
    Checks/interop/assertion_vectors.py --check    # fails if the file is not what it would write

The members `client_data_hashes`, `demands` and `fields` of the file are written by hand, and kept.
"""

import json
import sys

from vectors_check import (
    COMPONENTS, DOCS, ORDER, PrivateKey, base64_encode, base64url_encode, content_digest, encode_dss_signature, scheme1_message, sha256,
    signature_base, signature_of_der,
)

FILE = DOCS / "vectors" / "assertions.json"
APP, DEVICE, IOS_APP = "com.example.app", "123e4567-e89b-42d3-a456-426614174000", "TEAMID1234.com.example.app"
NONCE, NOW = "7f1c2a34-5b6d-4e8f-9a0b-1c2d3e4f5a6b", 1700000000
BODY = b'{"a":1}'
KEYS = {item["name"]: PrivateKey(item["jwk"]) for item in json.loads((DOCS / "vectors" / "keys.json").read_text())["keys"]}
MAP = "a2" + "77" + b"apple_bundle_version_01".hex() + "63" + b"1.0".hex() \
    + "781c" + b"apple_validation_category_01".hex() + "4401000000"


def cbor(value):
    """CBOR of maps, texts and byte strings, with definite and shortest lengths."""
    def head(kind, length):
        return bytes([kind << 5 | length]) if length < 24 else bytes([kind << 5 | 24, length]) if length < 256 \
            else bytes([kind << 5 | 25]) + length.to_bytes(2, "big")

    if isinstance(value, bytes):
        return head(2, len(value)) + value
    if isinstance(value, str):
        return head(3, len(value)) + value.encode()
    return head(5, len(value)) + b"".join(cbor(name) + cbor(member) for name, member in value.items())


def authenticator_data(counter, app=IOS_APP, flags=0x40, appended=b""):
    return sha256(app.encode()) + bytes([flags]) + counter.to_bytes(4, "big") + appended


def assertion(data, client_data_hash, key="attest"):
    return cbor({"signature": KEYS[key].der(sha256(data + client_data_hash)), "authenticatorData": data})


def request(scheme, method="POST", body=BODY, query=None):
    """A signed request as /verify describes it, and the bytes that it signs."""
    key = KEYS["device"]
    if scheme == 1:
        signed = scheme1_message(method, "/v1/hsi", f"{NOW}", body)
        headers = [("X-App-ID", APP), ("X-Device-ID", DEVICE), ("X-Synheart-Signature", base64_encode(key.der(signed))),
                   ("X-Synheart-Timestamp", f"{NOW}"), ("X-Synheart-Nonce", NONCE), ("X-Synheart-Sig-Version", "1")]
    else:
        names = " ".join(f'"{name}"' for name in COMPONENTS)
        parameters = (f'({names});created={NOW};nonce="{NONCE}";keyid="{key.thumbprint}";tag="synheart-auth-v2"'
                      ';alg="ecdsa-p256-sha256"')
        digest = content_digest(body)
        signed = signature_base(method, "https", "api.example.com", "/v1/hsi", query, digest, APP, DEVICE, parameters)
        signature = base64_encode(signature_of_der(key.der(signed)))
        headers = [("X-App-ID", APP), ("X-Device-ID", DEVICE), ("Content-Digest", digest),
                   ("Signature-Input", f"synheart={parameters}"), ("Signature", f"synheart=:{signature}:")]
    asked = {"method": method, "scheme": "https", "authority": "api.example.com", "path": "/v1/hsi", "query": query,
             "headers": [list(pair) for pair in headers], "body": base64_encode(body)}
    return asked, signed


def case(name, asked, signed, previous, header=None, headers=None, data=None, error=None):
    """A case of the file. Its request gets the header X-Synheart-Assertion with the value `header`, or once with each of `headers`."""
    lines = [header] if headers is None else headers
    asked = {**asked, "headers": asked["headers"] + [["X-Synheart-Assertion", value] for value in lines]}
    result = {"name": name, "scheme": 1 if signed[:1] != b'"' else 2, "previous_counter": previous, "request": asked,
              "signed_hex": signed.hex(), "client_data_hash_hex": sha256(signed).hex(), "valid": error is None}
    if data is not None:
        result |= {"authenticator_data_hex": data.hex(), "counter": int.from_bytes(data[33:37], "big")}
    return result | ({"error": error} if error else {})


def cases():
    wrong, malformed = "INVALID_ASSERTION", "INVALID_REQUEST"
    one, two, read = request(1), request(2, query="from=1"), request(1, "GET", b"")
    first = authenticator_data(1)

    def made(name, sent, previous, counter, error=None, over=None, key="attest", **options):
        data = authenticator_data(counter, **options)
        made_ = assertion(data, sha256(sent[1]) if over is None else over, key)
        return case(name, *sent, previous, base64_encode(made_), data=data, error=error)

    def raw(name, object_, error=wrong):
        return case(name, *one, 0, base64_encode(object_), error=error)

    good = assertion(first, sha256(one[1]))
    text = base64_encode(good)
    der = signature_of_der(KEYS["attest"].der(sha256(first + sha256(one[1]))))
    flipped = encode_dss_signature(int.from_bytes(der[:32], "big"), ORDER - int.from_bytes(der[32:], "big"))
    once = KEYS["attest"].der(first + sha256(one[1]))
    members = {"signature": KEYS["attest"].der(sha256(first + sha256(one[1]))), "authenticatorData": first}
    yield made("scheme 1, the first assertion of the key", one, 0, 1)
    yield made("scheme 2, a counter that skips some", two, 1, 7)
    yield made("scheme 1, a GET without a body", read, 7, 8)
    yield made("the largest counter", one, 2**32 - 2, 2**32 - 1)
    yield made("iOS 27 appends facts of the app", one, 0, 1, flags=0xC0, appended=bytes.fromhex(MAP))
    yield case("s is n - s", *one, 0, base64_encode(cbor({**members, "signature": flipped})), data=first)
    yield made("the counter of the last assertion", one, 1, 1, wrong)
    yield made("a counter below the last one", one, 7, 6, wrong)
    yield made("a counter of 0", one, 0, 0, wrong)
    yield made("over the request of another body", one, 0, 1, wrong, over=sha256(request(1, body=b'{"a":2}')[1]))
    yield made("over the scheme 1 message of a scheme 2 request", two, 0, 1, wrong, over=sha256(one[1]))
    yield made("over the signed bytes, not their SHA-256", one, 0, 1, wrong, over=one[1])
    yield made("over the SHA-256 of the SHA-256", one, 0, 1, wrong, over=sha256(sha256(one[1])))
    yield made("by the key that signs requests", one, 0, 1, wrong, key="device")
    yield made("of another app", one, 0, 1, wrong, app="TEAMID1234.com.example.other")
    yield case("the nonce is signed without being hashed again", *one, 0, base64_encode(cbor({**members, "signature": once})),
               data=first, error=wrong)
    yield raw("a byte after the map", good + b"\0")
    yield raw("a byte too few", good[:-1])
    yield raw("a third member", cbor({**members, "x": b""}))
    yield raw("no authenticator data", cbor({"signature": members["signature"]}))
    yield raw("the signature as r and s", cbor({**members, "signature": der}))
    yield raw("no CBOR", b"assertion")
    yield raw("an empty header", b"")
    yield case("twice", *one, 0, headers=[text, text], error=malformed)
    yield case("base64url", *one, 0, base64url_encode(good), error=malformed)
    yield case("a line break in the base64", *one, 0, text[:76] + "\n" + text[76:], error=malformed)


def pretty(value, indent=0, column=0):
    """JSON of a value, on one line if that fits in 129 columns. The whole file is never on one line."""
    one = json.dumps(value)
    if not isinstance(value, (dict, list)) or not value or (indent and column + len(one) <= 129):
        return one
    pairs = value.items() if isinstance(value, dict) else ((None, item) for item in value)
    lines = []
    for index, (name, item) in enumerate(pairs):
        start = " " * (indent + 2) + (f"{json.dumps(name)}: " if name is not None else "")
        lines.append(start + pretty(item, indent + 2, len(start) + (index < len(value) - 1)))
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return opening + "\n" + ",\n".join(lines) + "\n" + " " * indent + closing


def main():
    file = json.loads(FILE.read_text())
    made = {"app_id": APP, "device_id": DEVICE, "key": "device", "attested_key": "attest", "ios_app_ids": [IOS_APP], "now": NOW,
            **{name: file[name] for name in ("client_data_hashes", "demands", "fields")}, "requests": list(cases())}
    text = pretty(made) + "\n"
    if sys.argv[1:] == ["--check"]:
        assert FILE.read_text() == text, f"{FILE} is not what {sys.argv[0]} writes"
    else:
        FILE.write_text(text)


if __name__ == "__main__":
    main()

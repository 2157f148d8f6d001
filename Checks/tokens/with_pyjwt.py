"""Device tokens with PyJWT. docs/tokens.md shows the class. The code after it talks to `check.py`."""

import json
import urllib.request

import jwt


class DeviceTokens:
    """Checks device tokens. Keep one for the life of the process: it caches the keys."""

    def __init__(self, issuer, audience, token_type, channel):
        with urllib.request.urlopen(f"{issuer}/.well-known/openid-configuration", timeout=5) as answer:
            document = json.load(answer)
        if document["issuer"] != issuer:
            raise ValueError(f"{issuer} calls itself {document['issuer']}")
        self.keys = jwt.PyJWKClient(document["jwks_uri"], timeout=5)
        self.issuer, self.audience, self.token_type, self.channel = issuer, audience, token_type, channel

    def check(self, token):
        """Returns the claims. Raises jwt.PyJWTError: answer 401, or 503 if it is a PyJWKClientConnectionError."""
        decoded = jwt.decode_complete(
            token, self.keys.get_signing_key_from_jwt(token), algorithms=["ES256"], issuer=self.issuer, audience=self.audience,
            options={"require": ["exp", "sub"]})
        claims = decoded["payload"]
        # PyJWT checks neither the type nor the channel.
        if decoded["header"].get("typ") != self.token_type:
            raise jwt.InvalidTokenError("a token of another type")
        if claims.get("channel") != self.channel:
            raise jwt.InvalidTokenError("a token of another channel")
        return claims


if __name__ == "__main__":
    from driver import drive

    def library(tokens, token):
        key = tokens.keys.get_signing_key_from_jwt(token)
        return jwt.decode(token, key, algorithms=["ES256"], issuer=tokens.issuer, audience=tokens.audience)

    drive(DeviceTokens, library, DeviceTokens.check, jwt.PyJWTError)

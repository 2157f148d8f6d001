"""Device tokens with authlib and Flask. docs/tokens.md shows all but the last part, which talks to `check.py`."""

import time

import requests
from authlib.integrations.flask_oauth2 import ResourceProtector, current_token
from authlib.oauth2.rfc6750 import InvalidTokenError
from authlib.oauth2.rfc8414 import get_well_known_url
from authlib.oauth2.rfc9068 import JWTBearerTokenValidator
from flask import Flask
from joserfc.jwk import KeySet


class DeviceTokens(JWTBearerTokenValidator):
    """Checks device tokens of type at+jwt."""

    def __init__(self, issuer, audience, channel):
        super().__init__(issuer, audience)
        self.channel, self.keys, self.end = channel, None, 0

    def get_jwks(self):
        # The service sets a max-age of 300 s. A longer life here would miss a rotation.
        if time.monotonic() >= self.end:
            metadata = requests.get(get_well_known_url(self.issuer, external=True), timeout=5).json()
            if metadata["issuer"] != self.issuer:
                raise ValueError(f"{self.issuer} calls itself {metadata['issuer']}")
            self.keys = KeySet.import_key_set(requests.get(metadata["jwks_uri"], timeout=5).json())
            self.end = time.monotonic() + 300
        return self.keys

    def validate_token(self, token, scopes, request, **more):
        super().validate_token(token, scopes, request, **more)
        # authlib does not check the channel, and accepts a token without a typ.
        if token.header.get("typ") != "at+jwt" or token.get("channel") != self.channel:
            raise InvalidTokenError()


def app(issuer, audience, channel):
    require_device = ResourceProtector()
    require_device.register_token_validator(DeviceTokens(issuer, audience, channel))
    app = Flask(__name__)

    @app.get("/hello")
    @require_device()
    def hello():
        return {"device": current_token["sub"], "assurance": current_token["assurance"]}

    return app


if __name__ == "__main__":
    from driver import drive

    class Refused(Exception):
        pass

    def make(issuer, audience, token_type, channel):
        """The page's app, and one that uses the library's class and differs only in the source of the keys."""
        class Library(JWTBearerTokenValidator):
            get_jwks = DeviceTokens.get_jwks
            keys, end = None, 0

        protector = ResourceProtector()
        protector.register_token_validator(Library(issuer, audience))
        other = Flask(__name__)
        other.get("/hello")(protector()(lambda: {"device": current_token["sub"]}))
        return other.test_client(), app(issuer, audience, channel).test_client()

    def ask(client, token):
        answer = client.get("/hello", headers={"Authorization": f"Bearer {token}"})
        if answer.status_code != 200:
            raise Refused(f"{answer.status_code} {answer.json}")
        return {"sub": answer.json["device"]}

    drive(make, lambda clients, token: ask(clients[0], token), lambda clients, token: ask(clients[1], token), Refused)

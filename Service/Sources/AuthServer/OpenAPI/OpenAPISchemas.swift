/// The schemas of bodies (JSON Schema 2020-12), as text, which is easier to read than a tree of values.
enum OpenAPISchemas {
    /// All schemas except those that `OpenAPIDocument` makes from tables, as the text of one JSON object.
    static let text = "{\(deviceAPI), \(administration)}"

    /// The schemas of the device API, of the health and readiness checks, and of values that several bodies have.
    private static let deviceAPI = #"""
        "AppID": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,128}$", "description": "Must not end in _next."},
        "DeviceID": {"type": "string",
          "pattern": "^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"},
        "Base64": {"type": "string", "pattern": "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"},
        "Time": {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"},
        "OptionalTime": {"anyOf": [{"$ref": "#/components/schemas/Time"}, {"type": "null"}]},
        "UnixTime": {"type": "integer", "description": "Seconds since 1970-01-01T00:00:00Z."},
        "Platform": {"type": "string", "enum": ["ios", "android"]},
        "DeviceStatus": {"type": "string", "enum": ["pending", "registered", "rejected", "revoked", "deregistered"]},
        "Assurance": {"type": "object", "required": ["app", "key", "labels"], "properties": {
          "app": {"type": "string",
            "enum": ["app-attest", "app-attest-development", "play-integrity", "none", "development", "test"]},
          "key": {"type": "string", "enum": ["strongbox", "tee", "app-vouched", "rotated", "unattested"]},
          "labels": {"type": "array", "items": {"type": "string"}}}},
        "CertificateChain": {"type": "array", "minItems": 1, "maxItems": 6,
          "items": {"$ref": "#/components/schemas/Base64"}, "description": "DER certificates, leaf first."},

        "Error": {"type": "object", "required": ["error", "message", "request_id", "server_timestamp"], "properties": {
          "error": {"$ref": "#/components/schemas/ErrorCode"}, "message": {"type": "string"},
          "request_id": {"type": "string"}, "server_timestamp": {"$ref": "#/components/schemas/UnixTime"},
          "verified": {"const": false, "description": "There where the refusal is a verdict of /verify."}}},
        "Problem": {"type": "object", "description": "RFC 9457.",
          "required": ["type", "title", "status", "detail", "code", "request_id", "server_timestamp"], "properties": {
          "type": {"type": "string"}, "title": {"type": "string"}, "status": {"type": "integer"},
          "detail": {"type": "string"}, "code": {"$ref": "#/components/schemas/ErrorCode"},
          "request_id": {"type": "string"}, "server_timestamp": {"$ref": "#/components/schemas/UnixTime"},
          "verified": {"const": false}}},

        "ChallengeRequest": {"type": "object", "required": ["app_id"], "properties": {
          "app_id": {"$ref": "#/components/schemas/AppID"},
          "purpose": {"type": ["string", "null"], "enum": ["register", "rotate", null], "default": "register"}}},
        "ChallengeResponse": {"type": "object", "required": ["challenge", "expires_at", "ttl_seconds"], "properties": {
          "challenge": {"$ref": "#/components/schemas/Base64"}, "expires_at": {"$ref": "#/components/schemas/Time"},
          "ttl_seconds": {"type": "integer"}}},
        "RegisterRequest": {"type": "object", "required": ["app_id", "public_key", "challenge", "platform"],
          "properties": {
          "app_id": {"$ref": "#/components/schemas/AppID"},
          "public_key": {"$ref": "#/components/schemas/Base64",
            "description": "P-256, SPKI DER (91 bytes) or X9.63 (65 bytes)."},
          "challenge": {"$ref": "#/components/schemas/Base64"}, "platform": {"$ref": "#/components/schemas/Platform"},
          "proof": {"type": ["string", "null"],
            "description": "iOS: base64 of the attestation object. Android: the Play Integrity token, or absent where key_attestation replaces it."},
          "key_proof": {"anyOf": [{"$ref": "#/components/schemas/Base64"}, {"type": "null"}]},
          "key_attestation": {"anyOf": [{"$ref": "#/components/schemas/CertificateChain"}, {"type": "null"}]},
          "device_local_id": {"type": ["string", "null"], "format": "uuid",
            "pattern": "^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$"}}},
        "RegisterResponse": {"type": "object", "required": ["device_id", "status"], "properties": {
          "device_id": {"$ref": "#/components/schemas/DeviceID"},
          "status": {"type": "string", "enum": ["registered", "pending", "rejected"]}}},
        "RotateKeyRequest": {"type": "object", "required": ["app_id", "device_id", "new_public_key"], "properties": {
          "app_id": {"$ref": "#/components/schemas/AppID"}, "device_id": {"$ref": "#/components/schemas/DeviceID"},
          "new_public_key": {"$ref": "#/components/schemas/Base64"},
          "reason": {"type": ["string", "null"], "enum": ["scheduled", "compromise", null], "default": "scheduled"},
          "new_key_proof": {"anyOf": [{"$ref": "#/components/schemas/Base64"}, {"type": "null"}]},
          "challenge": {"anyOf": [{"$ref": "#/components/schemas/Base64"}, {"type": "null"}]},
          "assertion": {"anyOf": [{"$ref": "#/components/schemas/Base64"}, {"type": "null"}]},
          "proof": {"type": ["string", "null"]},
          "key_attestation": {"anyOf": [{"$ref": "#/components/schemas/CertificateChain"}, {"type": "null"}]}}},
        "RotateKeyResponse": {"type": "object", "required": ["status", "effective_at"], "properties": {
          "status": {"const": "rotated"}, "effective_at": {"$ref": "#/components/schemas/UnixTime"}}},
        "StatusResponse": {"type": "object",
          "required": ["device_id", "status", "platform", "registered_at", "key_rotated_at", "key_age_seconds",
            "key_thumbprint", "must_rotate", "assurance", "server_timestamp"], "properties": {
          "device_id": {"$ref": "#/components/schemas/DeviceID"},
          "status": {"$ref": "#/components/schemas/DeviceStatus"},
          "platform": {"$ref": "#/components/schemas/Platform"},
          "registered_at": {"$ref": "#/components/schemas/UnixTime"},
          "key_rotated_at": {"type": ["integer", "null"]}, "key_age_seconds": {"type": "integer", "minimum": 0},
          "key_thumbprint": {"type": "string"}, "must_rotate": {"type": "boolean"},
          "assurance": {"$ref": "#/components/schemas/Assurance"},
          "server_timestamp": {"$ref": "#/components/schemas/UnixTime"}}},
        "TokenRequest": {"type": "object", "properties": {"audience": {"type": ["string", "null"]}}},
        "TokenResponse": {"type": "object", "required": ["token", "token_type", "expires_in"], "properties": {
          "token": {"type": "string"}, "token_type": {"const": "synheart-device+jwt"},
          "expires_in": {"type": "integer", "maximum": 600}}},
        "VerifyRequest": {"type": "object", "required": ["method", "scheme", "authority", "path", "headers"],
          "properties": {
          "method": {"type": "string"}, "scheme": {"type": "string", "enum": ["http", "https"]},
          "authority": {"type": "string"}, "path": {"type": "string", "description": "As on the wire, undecoded."},
          "query": {"type": ["string", "null"], "description": "The text after ?; null where there was none."},
          "headers": {"type": "array", "items": {"type": "array", "prefixItems": [{"type": "string"},
            {"type": "string"}], "items": false, "minItems": 2}},
          "body": {"$ref": "#/components/schemas/Base64"},
          "body_sha256": {"$ref": "#/components/schemas/Base64", "description": "32 bytes; scheme 2 only."},
          "verification_id": {"type": ["string", "null"], "format": "uuid",
            "pattern": "^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$",
            "description": "UUID; for 60 s, the same id and content are judged again, and are no replay of themselves."},
          "identity_audience": {"type": ["string", "null"],
            "description": "One of the app's token_audiences: the answer then has identity_token."}},
          "oneOf": [{"required": ["body"]}, {"required": ["body_sha256"]}]},
        "VerifyResponse": {"type": "object", "required": ["verified"], "properties": {
          "verified": {"type": "boolean"}, "observed": {"$ref": "#/components/schemas/ErrorCode"},
          "app_id": {"$ref": "#/components/schemas/AppID"}, "device_id": {"$ref": "#/components/schemas/DeviceID"},
          "platform": {"$ref": "#/components/schemas/Platform"},
          "assurance": {"$ref": "#/components/schemas/Assurance"},
          "signature_scheme": {"type": "integer", "enum": [1, 2]},
          "key_age_seconds": {"type": "integer", "minimum": 0},
          "identity_token": {"type": "string", "description": "A JWT for a service behind the caller; one minute."}}},
        "IssuerMetadata": {"type": "object", "additionalProperties": false, "required": ["issuer", "jwks_uri",
            "id_token_signing_alg_values_supported", "subject_types_supported", "response_types_supported"],
          "properties": {
          "issuer": {"type": "string"}, "jwks_uri": {"type": "string"},
          "id_token_signing_alg_values_supported": {"const": ["ES256"]},
          "subject_types_supported": {"const": ["public"]}, "response_types_supported": {"const": ["none"]}}},
        "KeySet": {"type": "object", "required": ["keys"], "properties": {"keys": {"type": "array", "items":
          {"type": "object", "required": ["kty", "crv", "x", "y", "use", "alg", "kid"], "properties": {
            "kty": {"const": "EC"}, "crv": {"const": "P-256"}, "x": {"type": "string"}, "y": {"type": "string"},
            "use": {"const": "sig"}, "alg": {"const": "ES256"}, "kid": {"type": "string"}}}}}},

        "Health": {"type": "object", "required": ["status"], "properties": {"status": {"const": "ok"}}},
        "ReadinessReport": {"type": "object", "required": ["status", "checks", "failures", "degraded"], "properties": {
          "status": {"type": "string", "enum": ["ready", "not ready"]},
          "checks": {"type": "object", "additionalProperties": {"type": "boolean"}},
          "failures": {"type": "object", "additionalProperties": {"type": "string"}},
          "notes": {"type": "object", "additionalProperties": {"type": "string"}},
          "degraded": {"type": "object", "additionalProperties": {"type": "object", "required": ["reason", "until"], "properties": {
            "reason": {"type": "string"}, "until": {"type": ["string", "null"], "format": "date-time"}}}}}}
        """#
}

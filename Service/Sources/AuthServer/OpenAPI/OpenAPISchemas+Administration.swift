internal import AuthService

extension OpenAPISchemas {
    /// The schemas of administration.
    static let administration = #"""
        "AppRecord": {"type": "object", "required": ["app_id"], "additionalProperties": false, "properties": {
          "app_id": {"$ref": "#/components/schemas/AppID"}, "name": {"type": ["string", "null"]},
          "enabled": {"type": ["boolean", "null"], "default": true},
          "mode": {"type": ["string", "null"], "enum": ["enforce", "observe", null], "default": "enforce"},
          "build_channel": {"type": ["string", "null"], "enum": ["production", "staging", "dev", null],
            "default": "production"},
          "development_integrity_allowed": {"type": ["boolean", "null"], "default": false},
          "ios": {"type": ["object", "null"], "additionalProperties": false, "required": ["app_ids"], "properties": {
            "app_ids": {"type": "array", "minItems": 1, "items": {"type": "string"}},
            "environments": {"type": ["array", "null"], "minItems": 1, "items": {"type": "string",
              "enum": ["production", "development"]}},
            "trust_anchors": {"type": ["array", "null"], "items": {"type": "string"}},
            "categories": {"type": ["array", "null"], "items": {"type": "integer", "minimum": 0, "maximum": 4294967295}},
            "unknown_categories": {"type": ["string", "null"], "enum": ["allow", "refuse", null],
              "default": "refuse"},
            "require_category": {"type": ["boolean", "null"], "default": false},
            "minimum_bundle_version": {"type": ["string", "null"]},
            "require_bundle_version": {"type": ["boolean", "null"], "default": false},
            "assertions_required_on": {"type": ["array", "null"], "items": {"type": "string"}},
            "assertions_required_except": {"type": ["array", "null"], "items": {"type": "string"}, "default": null},
            "flag_risk_metric_above": {"type": ["integer", "null"], "minimum": 0, "maximum": 1000000}}},
          "android": {"type": ["object", "null"], "additionalProperties": false,
            "required": ["packages", "certificate_digests"], "properties": {
            "packages": {"type": "array", "minItems": 1, "items": {"type": "string"}},
            "certificate_digests": {"type": "array", "minItems": 1, "items": {"type": "string"}},
            "minimum_version_code": {"type": ["integer", "null"], "minimum": 0},
            "proof": {"type": ["string", "null"],
              "enum": ["play_integrity", "key_attestation", "both", "either", null]},
            "trust_anchors": {"type": ["array", "null"], "items": {"type": "string"}},
            "play_integrity": {"type": ["object", "null"], "additionalProperties": false, "properties": {
              "keys": {"type": ["array", "null"], "items": {"type": "object", "additionalProperties": false,
                "required": ["decryption_key", "verification_key"], "properties": {
                "decryption_key": {"type": "string"}, "verification_key": {"type": "string"}}}},
              "service_account": {"type": ["object", "string", "null"],
                "description": "A credential for some apps may name Google's token_uri or the one there is."},
              "device_labels": {"type": ["array", "null"], "items": {"type": "string"}},
              "require_licensed": {"type": ["boolean", "null"]},
              "maximum_age_seconds": {"type": ["integer", "null"], "minimum": 1, "maximum": 86400},
              "allow_test_responses": {"type": ["boolean", "null"]},
              "refuse_play_protect": {"type": ["array", "null"], "items": {"type": "string"}},
              "refuse_app_access_risk": {"type": ["array", "null"], "items": {"type": "string"}},
              "maximum_activity_level": {"type": ["string", "integer", "null"],
                "enum": ["LEVEL_1", "LEVEL_2", "LEVEL_3", "LEVEL_4", 1, 2, 3, 4, null]},
              "refuse_device_recall": {"type": ["array", "null"], "items": {"type": "string"}}}},
            "key_attestation": {"type": ["object", "null"], "additionalProperties": false, "properties": {
              "minimum_security_level": {"type": ["string", "null"], "enum": ["TrustedEnvironment", "StrongBox", null]},
              "boot_states": {"type": ["array", "null"], "minItems": 1, "items": {"type": "string",
                "enum": ["Verified", "SelfSigned"]}},
              "boot_keys": {"type": ["array", "null"], "items": {"type": "string"},
                "description": "SHA-256 of boot keys, hexadecimal or base64url. A locked device that booted SelfSigned with one of them is accepted."},
              "maximum_patch_age_days": {"type": ["integer", "null"], "minimum": 1, "maximum": 36500},
              "status_list": {"type": ["string", "null"],
                "description": "A credential for some apps may name Google's list, the one there is, or none."}}}}},
          "signature": {"type": ["object", "null"], "additionalProperties": false, "properties": {
            "minimum_scheme": {"type": ["integer", "null"], "enum": [1, 2, null]},
            "past_window_seconds": {"type": ["integer", "null"], "minimum": 1,
              "maximum": \#(SignaturePolicy.maximumPastWindow)},
            "future_window_seconds": {"type": ["integer", "null"], "minimum": 0,
              "maximum": \#(SignaturePolicy.maximumFutureWindow)},
            "unsigned_query": {"type": ["string", "null"], "enum": ["allow", "refuse_on_writes", "refuse", null]},
            "replay_on_reads": {"type": ["boolean", "null"]}, "path_prefix_strip": {"type": ["string", "null"]},
            "authorities": {"type": ["array", "null"], "items": {"type": "string"}},
            "token_audiences": {"type": ["array", "null"], "items": {"type": "string"}},
            "token_type": {"type": ["string", "null"], "enum": ["synheart-device+jwt", "at+jwt", "JWT", null],
              "default": "synheart-device+jwt",
              "description": "typ of the app's device tokens. A type other than the default needs token_audiences."}}},
          "keys": {"type": ["object", "null"], "additionalProperties": false, "properties": {
            "maximum_age_days": {"type": ["integer", "null"], "minimum": 1, "maximum": 36500},
            "grace_days": {"type": ["integer", "null"], "minimum": 0, "maximum": 3650, "default": 7},
            "overlap_seconds": {"type": ["integer", "null"], "minimum": 0, "maximum": 3600, "default": 60},
            "reattest_on_rotation": {"type": ["boolean", "null"]},
            "rebind_on_rotation": {"type": ["boolean", "null"]},
            "key_proof": {"type": ["string", "null"], "enum": ["optional", "required", null]},
            "compromise": {"anyOf": [{"type": "null"}, {"$ref": "#/components/schemas/Compromise"},
              {"type": "array", "maxItems": 16, "items": {"$ref": "#/components/schemas/Compromise"}}]}}},
          "registration": {"type": ["object", "null"], "additionalProperties": false, "properties": {
            "approval": {"type": ["string", "null"], "enum": ["auto", "manual", null]},
            "provider_outage": {"type": ["string", "null"], "enum": ["pending", "refuse", null]},
            "maximum_pending": {"type": ["integer", "null"], "minimum": 0, "maximum": 1000000, "default": 10000},
            "maximum_unproven": {"type": ["integer", "null"], "minimum": 0, "maximum": 1000000, "default": 10000}}},
          "evidence": {"type": ["object", "null"], "additionalProperties": false, "properties": {
            "record": {"type": ["boolean", "null"], "default": false},
            "keep_days": {"type": ["integer", "null"], "minimum": 1, "maximum": 365, "default": 30}}}}},
        "AppList": {"type": "object", "required": ["apps"], "properties": {
          "apps": {"type": "array", "items": {"$ref": "#/components/schemas/AppRecord"}}}},
        "Device": {"type": "object",
          "required": ["device_id", "app_id", "platform", "status", "assurance", "registered_at", "key_rotated_at",
            "last_seen", "key_thumbprint", "previous_key_until", "must_rotate_by", "must_rotate_reason", "highest_scheme",
            "admitted_under_observation", "device_local_id", "app_attest"], "properties": {
          "device_id": {"$ref": "#/components/schemas/DeviceID"}, "app_id": {"$ref": "#/components/schemas/AppID"},
          "platform": {"$ref": "#/components/schemas/Platform"},
          "status": {"$ref": "#/components/schemas/DeviceStatus"},
          "assurance": {"$ref": "#/components/schemas/Assurance"},
          "registered_at": {"$ref": "#/components/schemas/Time"},
          "key_rotated_at": {"$ref": "#/components/schemas/OptionalTime"},
          "last_seen": {"$ref": "#/components/schemas/OptionalTime"}, "key_thumbprint": {"type": "string"},
          "previous_key_until": {"$ref": "#/components/schemas/OptionalTime"},
          "must_rotate_by": {"$ref": "#/components/schemas/OptionalTime"},
          "must_rotate_reason": {"type": ["string", "null"], "enum": ["scheduled", "compromise", null]},
          "highest_scheme": {"type": "integer", "enum": [1, 2]}, "admitted_under_observation": {"type": "boolean"},
          "device_local_id": {"type": ["string", "null"]},
          "app_attest": {"type": ["object", "null"],
            "required": ["key_id", "app_id", "environment", "counter", "receipt", "risk_metric",
              "risk_flagged", "receipt_refreshed_at", "receipt_refresh", "receipt_due_at"], "properties": {
            "key_id": {"$ref": "#/components/schemas/Base64"}, "app_id": {"type": "string"},
            "environment": {"type": "string"}, "counter": {"type": "integer", "minimum": 0},
            "receipt": {"type": ["string", "null"]}, "risk_metric": {"type": ["integer", "null"]},
            "risk_flagged": {"type": "boolean",
              "description": "Above the app's ios.flag_risk_metric_above: a reason to look, nothing is refused."},
            "receipt_refreshed_at": {"$ref": "#/components/schemas/OptionalTime"},
            "receipt_refresh": {"type": ["string", "null"], "description": "`refreshed`, or why not."},
            "receipt_due_at": {"$ref": "#/components/schemas/OptionalTime"}}}}},
        "DevicePage": {"type": "object", "required": ["devices", "next_cursor"], "properties": {
          "devices": {"type": "array", "items": {"$ref": "#/components/schemas/Device"}},
          "next_cursor": {"type": ["string", "null"]}}},
        "Evidence": {"type": "object", "required": ["id", "app_id", "device_id", "recorded_at", "expires_at", "format",
          "code", "step"], "properties": {
          "id": {"type": "string"}, "app_id": {"$ref": "#/components/schemas/AppID"},
          "device_id": {"type": ["string", "null"], "description": "Where the device was known already."},
          "recorded_at": {"$ref": "#/components/schemas/Time"}, "expires_at": {"$ref": "#/components/schemas/Time"},
          "format": {"type": "string"}, "code": {"type": "string"}, "step": {"type": "string"}}},
        "EvidencePage": {"type": "object", "required": ["evidence", "next_cursor"], "properties": {
          "evidence": {"type": "array", "items": {"$ref": "#/components/schemas/Evidence"}},
          "next_cursor": {"type": ["string", "null"]}}},
        "EvidenceFile": {"type": "object", "description": "What `attestation replay` takes.",
          "required": ["synheart_evidence", "about", "input", "policy", "roots", "status_list", "verdict"],
          "properties": {
          "synheart_evidence": {"const": 1}, "about": {"type": "object"}, "input": {"type": "object"},
          "policy": {"type": ["object", "null"]}, "roots": {"type": ["object", "null"]},
          "status_list": {"type": ["object", "null"]}, "verdict": {"type": "object"}}},
        "EvidenceErased": {"type": "object", "required": ["erased"], "properties": {
          "erased": {"type": "integer", "minimum": 0}}},
        "Revocation": {"type": "object", "additionalProperties": false, "properties": {
          "reason": {"type": ["string", "null"], "maxLength": 1024}}},
        "Nothing": {"type": "object", "additionalProperties": false},
        "Approval": {"type": "object", "additionalProperties": false, "properties": {
          "unproven": {"type": ["boolean", "null"], "default": false,
            "description": "Approves a device though its proof never verified."}}},
        "ForcedRotation": {"type": "object", "additionalProperties": false, "properties": {
          "within_seconds": {"type": ["integer", "null"], "minimum": 0, "maximum": 31536000, "default": 86400},
          "reason": {"type": ["string", "null"], "enum": ["scheduled", "compromise", null], "default": "scheduled"}}},
        "SchemeFloor": {"type": "object", "additionalProperties": false, "required": ["scheme"], "properties": {
          "scheme": {"type": "integer", "enum": [1, 2]}}},
        "AuditPage": {"type": "object", "required": ["events", "next_before"], "properties": {
          "events": {"type": "array", "items": {"type": "object",
            "required": ["sequence", "at", "code", "actor", "app_id", "device_id", "detail", "hash"], "properties": {
            "sequence": {"type": "integer", "minimum": 1}, "at": {"$ref": "#/components/schemas/Time"},
            "code": {"$ref": "#/components/schemas/AuditCode"}, "actor": {"type": "string"},
            "app_id": {"type": ["string", "null"]}, "device_id": {"type": ["string", "null"]},
            "detail": {"type": "object"}, "hash": {"type": "string", "pattern": "^[0-9a-f]{64}$"}}}},
          "next_before": {"type": ["integer", "null"]}}},
        "AuditVerdict": {"type": "object", "required": ["intact", "finding", "first_broken", "message"], "properties": {
          "intact": {"type": "boolean"},
          "finding": {"type": "string", "enum": ["intact", "broken_link", "cut", "rewritten", "foreign_head"]},
          "first_broken": {"type": ["integer", "null"]}, "message": {"type": "string"}}},
        "AuditHeadText": {"type": "string", "pattern": "^audit-head-v1\\.[0-9]+\\.[0-9]+\\.[A-Za-z0-9_-]{43}\\.[A-Za-z0-9_-]{86}$"},
        "AuditHead": {"type": "object", "required": ["head", "sequence", "at", "hash", "public_key"], "properties": {
          "head": {"$ref": "#/components/schemas/AuditHeadText"},
          "sequence": {"type": "integer", "minimum": 0}, "at": {"$ref": "#/components/schemas/Time"},
          "hash": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
          "public_key": {"$ref": "#/components/schemas/Base64"}}},
        "DeviceCounts": {"type": "object",
          "required": ["pending", "registered", "rejected", "revoked", "deregistered"],
          "additionalProperties": {"type": "integer", "minimum": 0}},
        "Statistics": {"type": "object", "required": ["server_timestamp", "devices", "apps"], "properties": {
          "server_timestamp": {"$ref": "#/components/schemas/UnixTime"},
          "devices": {"$ref": "#/components/schemas/DeviceCounts"},
          "apps": {"type": "array", "items": {"type": "object", "required": ["app_id", "devices"], "properties": {
            "app_id": {"$ref": "#/components/schemas/AppID"},
            "devices": {"$ref": "#/components/schemas/DeviceCounts"},
            "play_integrity": {"type": "array", "items": {"$ref": "#/components/schemas/IntegrityUsage"}},
            "revocation_list": {"anyOf": [
              {"$ref": "#/components/schemas/RevocationList"}, {"type": "null"}]}}}}}},
        "IntegrityUsage": {"type": "object", "required": ["package", "day", "requests", "quota_refusals"],
          "description": "What the answering process asked of Google for a package on a day, UTC.", "properties": {
          "package": {"type": "string"}, "day": {"$ref": "#/components/schemas/Time"},
          "requests": {"type": "integer", "minimum": 0}, "quota_refusals": {"type": "integer", "minimum": 0}}},
        "RevocationList": {"type": "object", "required": ["source", "usable", "entries", "age_seconds", "failure"],
          "properties": {
          "source": {"type": "string"}, "usable": {"type": "boolean"},
          "entries": {"type": ["integer", "null"], "minimum": 0},
          "age_seconds": {"type": ["integer", "null"]}, "failure": {"type": ["string", "null"]}}},
        "Credential": {"type": "object",
          "required": ["id", "name", "role", "apps", "all_apps", "body", "created_at", "expires_at", "revoked_at"],
          "properties": {
          "id": {"type": "string"}, "name": {"type": "string"}, "role": {"$ref": "#/components/schemas/Role"},
          "apps": {"type": "array", "items": {"$ref": "#/components/schemas/AppID"}}, "all_apps": {"type": "boolean"},
          "body": {"type": ["string", "null"], "enum": ["whole", "headers", "digest", null],
            "description": "What the gateway that uses it forwards of bodies; null: no service credential."},
          "created_at": {"$ref": "#/components/schemas/Time"}, "expires_at": {"$ref": "#/components/schemas/Time"},
          "revoked_at": {"$ref": "#/components/schemas/OptionalTime"},
          "credential": {"type": "string", "description": "The text; in the answer that creates it and never again."}}},
        "CredentialList": {"type": "object", "required": ["credentials"], "properties": {
          "credentials": {"type": "array", "items": {"$ref": "#/components/schemas/Credential"}}}},
        "CredentialRequest": {"type": "object", "additionalProperties": false, "required": ["name", "role"],
          "properties": {
          "name": {"type": "string", "minLength": 1, "maxLength": 128}, "role": {"$ref": "#/components/schemas/Role"},
          "apps": {"type": ["array", "null"], "items": {"$ref": "#/components/schemas/AppID"}},
          "all_apps": {"type": ["boolean", "null"], "description": "Instead of apps: every app."},
          "body": {"type": ["string", "null"], "enum": ["whole", "headers", "digest", null],
            "description": "Role service only: what the gateway that uses it forwards of bodies. Default: headers."},
          "expires_in_seconds": {"type": ["integer", "null"], "minimum": 1, "maximum": 316224000,
            "default": 7776000}}},
        "SigningKeyList": {"type": "object", "required": ["signing_keys"], "properties": {
          "signing_keys": {"type": "array", "items": {"type": "object", "required": ["kid", "created_at", "use"],
            "properties": {"kid": {"type": "string"}, "created_at": {"$ref": "#/components/schemas/Time"},
              "use": {"type": "string", "enum": ["retiring", "signing", "standby"]}}}}}},
        "SigningKey": {"type": "object", "required": ["kid"], "properties": {"kid": {"type": "string"}}}
        """#
}

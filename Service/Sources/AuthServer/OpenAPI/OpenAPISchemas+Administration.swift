extension OpenAPISchemas {
    /// The schemas of administration.
    static let administration = #"""
        "AppList": {"type": "object", "required": ["apps"], "properties": {
          "apps": {"type": "array", "items": {"$ref": "#/components/schemas/AppRecord"}},
          "unreadable": {"type": "array", "items": {"$ref": "#/components/schemas/AppID"},
            "description": "Apps whose record is damaged, or of a newer version. Absent if there are none."}}},
        "Device": {"type": "object",
          "required": ["device_id", "app_id", "platform", "status", "assurance", "registered_at", "key_rotated_at",
            "last_seen", "key_thumbprint", "previous_key_until", "must_rotate_by", "must_rotate_reason", "highest_scheme",
            "admitted_under_observation", "version", "device_local_id", "app_attest"], "properties": {
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
          "version": {"type": "integer", "description": "The number of changes to the device so far."},
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
        "Recording": {"type": "object", "required": ["id", "app_id", "device_id", "recorded_at", "expires_at", "format",
          "code", "step"], "properties": {
          "id": {"type": "string"}, "app_id": {"$ref": "#/components/schemas/AppID"},
          "device_id": {"type": ["string", "null"], "description": "Where the device was known already."},
          "recorded_at": {"$ref": "#/components/schemas/Time"}, "expires_at": {"$ref": "#/components/schemas/Time"},
          "format": {"type": "string"}, "code": {"type": "string"}, "step": {"type": "string"}}},
        "RecordingPage": {"type": "object", "required": ["recordings", "next_cursor"], "properties": {
          "recordings": {"type": "array", "items": {"$ref": "#/components/schemas/Recording"}},
          "next_cursor": {"type": ["string", "null"]}}},
        "RecordingFile": {"type": "object", "description": "What `attestation replay` takes.",
          "required": ["synheart_evidence", "about", "input", "policy", "roots", "status_list", "verdict"],
          "properties": {
          "synheart_evidence": {"const": 1}, "about": {"type": "object"}, "input": {"type": "object"},
          "policy": {"type": ["object", "null"]}, "roots": {"type": ["object", "null"]},
          "status_list": {"type": ["object", "null"]}, "verdict": {"type": "object"}}},
        "RecordingsErased": {"type": "object", "required": ["erased"], "properties": {
          "erased": {"type": "integer", "minimum": 0}}},
        "Revocation": {"type": "object", "additionalProperties": false, "properties": {
          "reason": {"type": ["string", "null"], "maxLength": 1024}}},
        "Nothing": {"type": "object", "additionalProperties": false},
        "Approval": {"type": "object", "additionalProperties": false, "properties": {
          "unproven": {"type": ["boolean", "null"], "default": false,
            "description": "Approves a device though its proof never verified."}}},
        "ForcedRotation": {"type": "object", "additionalProperties": false, "properties": {
          "within_seconds": {"type": ["integer", "null"], "minimum": 0, "maximum": 31536000, "default": 86400},
          "by": {"type": ["string", "null"],
            "description": "The time itself, ISO 8601, not in the past, instead of within_seconds: a repeated call is then the same demand."},
          "reason": {"type": ["string", "null"], "enum": ["scheduled", "compromise", null], "default": "scheduled"}}},
        "SchemeFloor": {"type": "object", "additionalProperties": false, "required": ["scheme"], "properties": {
          "scheme": {"type": "integer", "enum": [1, 2]}}},
        "Decisions": {"type": "object", "additionalProperties": false, "required": ["decision", "devices"],
          "properties": {
          "decision": {"type": "string",
            "enum": ["approve", "reject", "revoke", "force-rotation", "lift-rotation", "lower-scheme"]},
          "with": {"type": ["object", "null"], "description": "The body of the call for one device."},
          "dry_run": {"type": ["boolean", "null"], "default": false},
          "devices": {"type": "array", "minItems": 1, "maxItems": 100, "items": {"type": "object",
            "additionalProperties": false, "required": ["device_id"], "properties": {
            "device_id": {"$ref": "#/components/schemas/DeviceID"},
            "version": {"type": ["integer", "null"], "description": "The version that was read. Default: any."}}}}}},
        "DecisionResults": {"type": "object", "required": ["dry_run", "results"], "properties": {
          "dry_run": {"type": "boolean"}, "results": {"type": "array", "items": {"type": "object",
            "required": ["device_id", "outcome", "status", "version", "code", "message"], "properties": {
            "device_id": {"$ref": "#/components/schemas/DeviceID"},
            "outcome": {"type": "string", "enum": ["changed", "unchanged", "refused"]},
            "status": {"type": ["string", "null"]}, "version": {"type": ["integer", "null"]},
            "code": {"type": ["string", "null"], "enum": ["NOT_FOUND", "CONFLICT", "PRECONDITION_FAILED", null]},
            "message": {"type": ["string", "null"]}}}}}},
        "WhatIf": {"type": "object", "additionalProperties": false, "required": ["record"], "properties": {
          "record": {"$ref": "#/components/schemas/AppRecord"},
          "limit": {"type": ["integer", "null"], "minimum": 0, "maximum": 1000, "default": 1000,
            "description": "The devices of a page. 0: only whether the record is valid, without devices and counts."},
          "cursor": {"type": ["string", "null"]}}},
        "WhatIfPage": {"type": "object", "required": ["app_id", "devices", "findings", "counts", "policies", "next_cursor"],
          "properties": {
          "app_id": {"$ref": "#/components/schemas/AppID"}, "devices": {"type": "integer", "minimum": 0},
          "findings": {"type": "array", "items": {"type": "object",
            "required": ["stage", "outcome", "code", "reason", "devices", "newly", "examples"], "properties": {
            "stage": {"type": "string", "enum": ["request", "registration"]},
            "outcome": {"type": "string", "enum": ["refused", "pending", "observed"]},
            "code": {"type": ["string", "null"]}, "reason": {"type": "string"},
            "devices": {"type": "integer", "minimum": 1}, "newly": {"type": "integer", "minimum": 0},
            "examples": {"type": "array", "items": {"$ref": "#/components/schemas/DeviceID"}}}}},
          "counts": {"type": ["object", "null"], "required": ["since", "passed", "findings"], "properties": {
            "since": {"$ref": "#/components/schemas/Time"},
            "passed": {"type": "object", "required": ["request", "registration"], "properties": {
              "request": {"type": "integer", "minimum": 0}, "registration": {"type": "integer", "minimum": 0}}},
            "findings": {"type": "array", "maxItems": 100, "items": {"type": "object",
              "required": ["stage", "outcome", "code", "reason", "platform", "scheme", "version", "verdicts", "newly"],
              "properties": {
              "stage": {"type": "string", "enum": ["request", "registration"]},
              "outcome": {"type": "string", "enum": ["refused", "pending", "observed"]},
              "code": {"type": ["string", "null"]}, "reason": {"type": "string"}, "platform": {"type": "string"},
              "scheme": {"type": "string"}, "version": {"type": "string"},
              "verdicts": {"type": "integer", "minimum": 1}, "newly": {"type": "integer", "minimum": 0}}}}}},
          "policies": {"type": "object", "description": "The record's policies, as `attestation replay --policy` takes them."},
          "next_cursor": {"type": ["string", "null"]}}},
        "AuditPage": {"type": "object", "required": ["events", "next_before"], "properties": {
          "events": {"type": "array", "items": {"$ref": "#/components/schemas/AuditEvent"}},
          "next_before": {"type": ["integer", "null"]}}},
        "AuditEvent": {"type": "object",
          "required": ["sequence", "at", "code", "actor", "app_id", "device_id", "detail", "hash"], "properties": {
          "sequence": {"type": "integer", "minimum": 1}, "at": {"$ref": "#/components/schemas/Time"},
          "code": {"type": "string", "description": "One of `AuditCode`, or a code of a newer version."}, "actor": {"type": "string"},
          "app_id": {"type": ["string", "null"]}, "device_id": {"type": ["string", "null"]},
          "detail": {"type": "object"}, "hash": {"type": "string", "pattern": "^[0-9a-f]{64}$"}}},
        "AuditTail": {"type": "object", "required": ["events", "next_after"], "properties": {
          "events": {"type": "array", "items": {"$ref": "#/components/schemas/AuditEvent"}},
          "next_after": {"type": "integer", "minimum": 0}}},
        "AuditVerdict": {"type": "object", "required": ["intact", "finding", "first_broken", "message"], "properties": {
          "intact": {"type": "boolean"},
          "finding": {"type": "string", "enum": ["intact", "broken_link", "cut", "rewritten", "foreign_head",
            "archive_missing", "archive_broken"]},
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
        "History": {"type": "object", "required": ["since", "until", "step_seconds", "by", "series"], "properties": {
          "since": {"$ref": "#/components/schemas/Time"}, "until": {"$ref": "#/components/schemas/Time"},
          "step_seconds": {"type": "integer", "minimum": 60, "maximum": 86400},
          "by": {"type": "array", "items": {"$ref": "#/components/schemas/VerdictMember"}},
          "series": {"type": "array", "description": "The largest first. Each has the members of `by`.",
            "items": {"type": "object", "required": ["total", "counts"], "properties": {
            "app_id": {"type": "string", "description": "`other`: apps beyond the busiest, and requests of no known app."},
            "kind": {"$ref": "#/components/schemas/VerdictKind"},
            "platform": {"type": "string", "enum": ["ios", "android", "unknown"]},
            "code": {"type": "string",
              "description": "`verified`, a status of a registration, an error code, or `observed_` and an error code."},
            "scheme": {"type": "string", "enum": ["1", "2", "unknown"]}, "version": {"type": "string"},
            "total": {"type": "integer", "minimum": 1},
            "counts": {"type": "array", "items": {"type": "integer", "minimum": 0},
              "description": "One for each step from `since` on."}}}}}},
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
        "SigningKey": {"type": "object", "required": ["kid"], "properties": {"kid": {"type": "string"}}},
        "WebhookURL": {"type": "string", "maxLength": 2048,
          "description": "https, or http to this machine; without user information and fragment."},
        "WebhookEvents": {"type": ["array", "null"], "minItems": 1, "items": {"$ref": "#/components/schemas/AuditCode"},
          "description": "The codes of the events; null: every code."},
        "WebhookRequest": {"type": "object", "additionalProperties": false, "required": ["url"], "properties": {
          "url": {"$ref": "#/components/schemas/WebhookURL"},
          "apps": {"type": ["array", "null"], "items": {"$ref": "#/components/schemas/AppID"}},
          "all_apps": {"type": ["boolean", "null"], "description": "Instead of apps: every app, and events of no app."},
          "events": {"$ref": "#/components/schemas/WebhookEvents"}}},
        "WebhookSettings": {"type": "object", "additionalProperties": false, "required": ["url"], "properties": {
          "url": {"$ref": "#/components/schemas/WebhookURL"},
          "apps": {"type": ["array", "null"], "items": {"$ref": "#/components/schemas/AppID"}},
          "all_apps": {"type": ["boolean", "null"], "description": "Instead of apps: every app, and events of no app."},
          "events": {"$ref": "#/components/schemas/WebhookEvents"},
          "enabled": {"type": ["boolean", "null"], "default": true}}},
        "Resending": {"type": "object", "additionalProperties": false, "required": ["after"], "properties": {
          "after": {"type": "integer", "minimum": 0,
            "description": "The number of an event: deliveries go on with the next one; 0: with the log's oldest."}}},
        "Webhook": {"type": "object",
          "required": ["id", "url", "apps", "all_apps", "events", "enabled", "created_at", "position", "failing_since",
            "failure"], "properties": {
          "id": {"type": "string"}, "url": {"$ref": "#/components/schemas/WebhookURL"},
          "apps": {"type": "array", "items": {"$ref": "#/components/schemas/AppID"}}, "all_apps": {"type": "boolean"},
          "events": {"$ref": "#/components/schemas/WebhookEvents"}, "enabled": {"type": "boolean"},
          "created_at": {"$ref": "#/components/schemas/Time"},
          "position": {"type": "integer", "minimum": 0,
            "description": "The number of an event: all up to it are delivered, given up or not wanted."},
          "failing_since": {"$ref": "#/components/schemas/OptionalTime"}, "failure": {"type": ["string", "null"]},
          "secret": {"type": "string", "description": "whsec_ and base64; in the answer that adds it and never again."}}},
        "WebhookList": {"type": "object", "required": ["webhooks"], "properties": {
          "webhooks": {"type": "array", "items": {"$ref": "#/components/schemas/Webhook"}}}},
        "Delivery": {"type": "object", "required": ["sequence", "attempt", "at", "took_milliseconds", "status", "failure"],
          "properties": {
          "sequence": {"type": "integer", "minimum": 1, "description": "The number of the event in the audit log."},
          "attempt": {"type": "integer", "minimum": 1,
            "description": "1 for the first attempt to deliver the event. It counts on from the attempts that are kept."},
          "at": {"$ref": "#/components/schemas/Time"}, "took_milliseconds": {"type": "integer", "minimum": 0},
          "status": {"type": ["integer", "null"], "description": "The status of the answer; null: there was none."},
          "failure": {"type": ["string", "null"], "maxLength": 200,
            "description": "Why the event is delivered again; null: it was delivered."}}},
        "DeliveryList": {"type": "object", "required": ["deliveries"], "properties": {
          "deliveries": {"type": "array", "maxItems": 100, "items": {"$ref": "#/components/schemas/Delivery"}}}}
        """#
}

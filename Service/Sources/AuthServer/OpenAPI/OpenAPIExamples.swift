internal import AuthContract
internal import AuthService
internal import StrictJSON

/// Examples of bodies, by schema, and of parameters, by name. A test validates each example of a body against its schema.
enum OpenAPIExamples {
    static let bySchema: JSONObject =
        (try? JSONValue(parsing: text, limits: .init(bytes: 1 << 20, depth: 32)))?.object ?? JSONObject()

    private static let text = #"""
        {
          "ChallengeRequest": {"app_id": "com.example.app"},
          "ChallengeResponse": {"challenge": "q83vASNFZ4mrze8BI0VniavN7wEjRWeJq83vASNFZ4k=",
            "expires_at": "2026-11-22T12:01:30Z", "ttl_seconds": 90},
          "RegisterRequest": {"app_id": "com.example.app",
            "public_key": "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q==",
            "challenge": "q83vASNFZ4mrze8BI0VniavN7wEjRWeJq83vASNFZ4k=", "platform": "ios", "proof": "o2NmbXRvYXBwbGUtYXBwYXR0ZXN0",
            "key_proof": "MEQCIFJ5cmU6c1hQRW9xQmZ1c3Vsa2Y4b0x3d0xBWUFLQQIgUnlyZTpzWFBFb3FCZnVzdWxrZjhvTHd3TEFZQUtB"},
          "RegisterResponse": {"device_id": "0b7c1b1e-5a52-4f3e-9f3a-0d5b7e2c9a11", "status": "registered"},
          "RotateKeyRequest": {"app_id": "com.example.app", "device_id": "0b7c1b1e-5a52-4f3e-9f3a-0d5b7e2c9a11",
            "new_public_key": "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q==",
            "reason": "scheduled"},
          "RotateKeyResponse": {"status": "rotated", "effective_at": 1795348800},
          "StatusResponse": {"device_id": "0b7c1b1e-5a52-4f3e-9f3a-0d5b7e2c9a11", "status": "registered", "platform": "ios",
            "registered_at": 1795262400, "key_rotated_at": null, "key_age_seconds": 86400,
            "key_thumbprint": "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs", "must_rotate": false,
            "assurance": {"app": "app-attest", "key": "app-vouched", "labels": []}, "server_timestamp": 1795348800},
          "TokenRequest": {"audience": "com.example.app"},
          "TokenResponse": {"token": "eyJ0eXAiOiJzeW5oZWFydC1kZXZpY2Urand0In0.eyJzdWIiOiIwYjdjIn0.c2lnbmF0dXJl",
            "token_type": "synheart-device+jwt", "expires_in": 600},
          "VerifyRequest": {"method": "POST", "scheme": "https", "authority": "api.example.com", "path": "/v1/pay", "query": null,
            "headers": [["X-App-ID", "com.example.app"], ["X-Device-ID", "0b7c1b1e-5a52-4f3e-9f3a-0d5b7e2c9a11"],
              ["X-Synheart-Signature", "MEQCIA=="], ["X-Synheart-Timestamp", "1795348800"],
              ["X-Synheart-Nonce", "6f1f1c0a-8a52-4f3e-9f3a-0d5b7e2c9a11"], ["X-Synheart-Sig-Version", "1"]],
            "body": "e30=", "verification_id": "6ba7b810-9dad-11d1-80b4-00c04fd430c8"},
          "VerifyResponse": {"verified": true, "app_id": "com.example.app",
            "device_id": "0b7c1b1e-5a52-4f3e-9f3a-0d5b7e2c9a11", "platform": "ios",
            "assurance": {"app": "app-attest", "key": "app-vouched", "labels": []}, "signature_scheme": 1,
            "key_age_seconds": 86400},
          "KeySet": {"keys": [{"kty": "EC", "crv": "P-256", "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
            "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0", "use": "sig", "alg": "ES256",
            "kid": "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"}]},
          "IssuerMetadata": {"issuer": "https://auth.example.com",
            "jwks_uri": "https://auth.example.com/.well-known/jwks.json",
            "id_token_signing_alg_values_supported": ["ES256"], "subject_types_supported": ["public"],
            "response_types_supported": ["none"]},
          "Health": {"status": "ok"},
          "ReadinessReport": {"status": "ready", "checks": {"accepting": true, "apps": true, "devices": true}, "failures": {}, "degraded": {}},
          "Document": {"openapi": "3.1.0"},
          "AppRecord": {"app_id": "com.example.app", "name": "Example", "build_channel": "production",
            "ios": {"app_ids": ["TEAMID1234.com.example.app"]}},
          "AppList": {"apps": [{"app_id": "com.example.app", "name": "Example",
            "ios": {"app_ids": ["TEAMID1234.com.example.app"]}}]},
          "Device": {"device_id": "0b7c1b1e-5a52-4f3e-9f3a-0d5b7e2c9a11", "app_id": "com.example.app", "platform": "ios",
            "status": "registered", "assurance": {"app": "app-attest", "key": "app-vouched", "labels": []},
            "registered_at": "2026-11-21T12:00:00Z", "key_rotated_at": null, "last_seen": "2026-11-22T11:00:00Z",
            "key_thumbprint": "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs", "previous_key_until": null,
            "must_rotate_by": null, "must_rotate_reason": null, "highest_scheme": 1, "admitted_under_observation": false,
            "device_local_id": null, "app_attest": null, "version": 3},
          "DevicePage": {"devices": [], "next_cursor": null},
          "Recording": {"id": "6b1f0c", "app_id": "com.example.app", "device_id": null, "recorded_at": "2026-11-22T12:00:00Z",
            "expires_at": "2026-12-22T12:00:00Z", "format": "app-attest", "code": "NONCE_MISMATCH", "step": "nonce"},
          "RecordingPage": {"recordings": [], "next_cursor": null},
          "RecordingFile": {"synheart_evidence": 1, "about": {}, "input": {}, "policy": null, "roots": null,
            "status_list": null, "verdict": {}},
          "RecordingsErased": {"erased": 1},
          "Revocation": {"reason": "stolen"},
          "Nothing": {},
          "Approval": {"unproven": true},
          "ForcedRotation": {"within_seconds": 86400},
          "SchemeFloor": {"scheme": 1},
          "Decisions": {"decision": "revoke", "with": {"reason": "stolen"}, "dry_run": false,
            "devices": [{"device_id": "0b7c1b1e-5a52-4f3e-9f3a-0d5b7e2c9a11", "version": 3}]},
          "DecisionResults": {"dry_run": false, "results": [{"device_id": "0b7c1b1e-5a52-4f3e-9f3a-0d5b7e2c9a11",
            "outcome": "changed", "status": "revoked", "version": 4, "code": null, "message": null}]},
          "WhatIf": {"record": {"app_id": "com.example.app", "ios": {"app_ids": ["TEAMID1234.com.example.app"]},
            "signature": {"minimum_scheme": 2}}},
          "WhatIfPage": {"app_id": "com.example.app", "devices": 1000, "findings": [{"stage": "request", "outcome": "refused",
            "code": "UNSUPPORTED_SIG_VERSION", "reason": "signature.minimum_scheme", "devices": 12, "newly": 12,
            "examples": ["0b7c1b1e-5a52-4f3e-9f3a-0d5b7e2c9a11"]}], "counts": {"since": "2026-08-24T00:00:00Z",
            "passed": {"request": 80000, "registration": 1000}, "findings": [{"stage": "request", "outcome": "refused",
            "code": "UNSUPPORTED_SIG_VERSION", "reason": "signature.minimum_scheme", "platform": "ios", "scheme": "1",
            "version": "41", "verdicts": 912, "newly": 912}]}, "policies": {}, "next_cursor": null},
          "AuditPage": {"events": [{"sequence": 7, "at": "2026-11-22T12:00:00Z", "code": "device.revoked",
            "actor": "admin:0123456789abcdef", "app_id": "com.example.app",
            "device_id": "0b7c1b1e-5a52-4f3e-9f3a-0d5b7e2c9a11", "detail": {"to": "revoked", "reason": "stolen"},
            "hash": "5feceb66ffc86f38d952786c6d696c79c2dbc239dd4e91b46729d73a27fb57e9"}], "next_before": null},
          "AuditEvent": {"sequence": 7, "at": "2026-11-22T12:00:00Z", "code": "device.revoked",
            "actor": "admin:0123456789abcdef", "app_id": "com.example.app",
            "device_id": "0b7c1b1e-5a52-4f3e-9f3a-0d5b7e2c9a11", "detail": {"to": "revoked", "reason": "stolen"},
            "hash": "5feceb66ffc86f38d952786c6d696c79c2dbc239dd4e91b46729d73a27fb57e9"},
          "AuditTail": {"events": [], "next_after": 7},
          "AuditVerdict": {"intact": true, "finding": "intact", "first_broken": null, "message": "the chain has no break"},
          "AuditHead": {"head": "audit-head-v1.7.1795348800.X-zrZv_IbzjZUnhsbWlsecLbwjndTpG0ZynXOif7V-k.X-zrZv_IbzjZUnhsbWlsecLbwjndTpG0ZynXOif7V-kX-zrZv_IbzjZUnhsbWlsecLbwjndTpG0ZynXOif7V-k",
            "sequence": 7, "at": "2026-11-22T12:00:00Z",
            "hash": "5feceb66ffc86f38d952786c6d696c79c2dbc239dd4e91b46729d73a27fb57e9",
            "public_key": "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="},
          "DeviceCounts": {"pending": 0, "registered": 1, "rejected": 0, "revoked": 0, "deregistered": 0},
          "Statistics": {"server_timestamp": 1795348800,
            "devices": {"pending": 0, "registered": 1, "rejected": 0, "revoked": 0, "deregistered": 0},
            "apps": [{"app_id": "com.example.app",
              "devices": {"pending": 0, "registered": 1, "rejected": 0, "revoked": 0, "deregistered": 0}}]},
          "History": {"since": "2026-11-22T12:00:00Z", "until": "2026-11-22T12:03:00Z", "step_seconds": 60, "by": ["code"],
            "series": [{"code": "verified", "total": 12, "counts": [7, 0, 5]},
              {"code": "observed_NONCE_REPLAY", "total": 1, "counts": [0, 0, 1]}]},
          "Credential": {"id": "0123456789abcdef", "name": "ingest", "role": "service", "apps": ["com.example.app"],
            "all_apps": false, "body": "headers", "created_at": "2026-11-22T12:00:00Z", "expires_at": "2027-02-20T12:00:00Z", "revoked_at": null},
          "CredentialList": {"credentials": []},
          "CredentialRequest": {"name": "ingest", "role": "service", "apps": ["com.example.app"],
            "expires_in_seconds": 7776000},
          "SigningKeyList": {"signing_keys": [{"kid": "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs",
            "created_at": "2026-11-22T12:00:00Z", "use": "signing"}]},
          "SigningKey": {"kid": "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"},
          "WebhookURL": "https://hooks.example.com/synheart",
          "WebhookEvents": ["device.revoked"],
          "WebhookRequest": {"url": "https://hooks.example.com/synheart", "apps": ["com.example.app"],
            "events": ["device.revoked"]},
          "WebhookSettings": {"url": "https://hooks.example.com/synheart", "all_apps": true, "enabled": false},
          "Resending": {"after": 7},
          "Webhook": {"id": "0123456789abcdef", "url": "https://hooks.example.com/synheart", "apps": ["com.example.app"],
            "all_apps": false, "events": ["device.revoked"], "enabled": true, "created_at": "2026-11-22T12:00:00Z",
            "position": 7, "failing_since": null, "failure": null},
          "WebhookList": {"webhooks": []},
          "Delivery": {"sequence": 7, "attempt": 1, "at": "2026-11-22T12:00:00Z", "took_milliseconds": 41, "status": 500,
            "failure": "status 500"},
          "DeliveryList": {"deliveries": [{"sequence": 7, "attempt": 2, "at": "2026-11-22T12:00:11Z",
            "took_milliseconds": 38, "status": 204, "failure": null}, {"sequence": 7, "attempt": 1,
            "at": "2026-11-22T12:00:00Z", "took_milliseconds": 41, "status": 500, "failure": "status 500"}]},
          "Error": {"error": "NONCE_REPLAY", "message": "This request was already seen. Sign again with a new nonce.",
            "request_id": "c51a6f75-8a52-4f3e-9f3a-0d5b7e2c9a11", "server_timestamp": 1795348800}
        }
        """#

    /// An example of a path, query or header parameter; nil if its schema is enough.
    static func parameter(_ name: String) -> JSONValue? {
        switch name {
        case "app_id": "com.example.app"
        case "device_id": "0b7c1b1e-5a52-4f3e-9f3a-0d5b7e2c9a11"
        case "device_hash": "261e1e6db9703f6c"
        case "credential_id": "0123456789abcdef"
        case "recording_id": "6b1f0c"
        case "by": "code,version"
        case "webhook_id": "0123456789abcdef"
        case "kid": "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"
        case "If-Match": "\"9f86d081884c7d659a2feaa0c55ad015\""
        default: nil
        }
    }

    /// An example of the metrics.
    static let metrics: JSONValue = "# TYPE synheart_ready gauge\nsynheart_ready{check=\"apps\"} 1\n"
}

extension Route {
    /// Information for developers beyond the summary.
    var explanation: String {
        switch self {
        case .challenge:
            "The challenge is 32 random bytes. It can be used once, within 90 s, for the purpose and the app that it was made for."
        case .register:
            "The proof covers the challenge and the text of public_key. `pending` and `rejected` are outcomes of the app's policy; the same key gets the same id again."
        case .status:
            "Names the key that counts now, whichever key signed the request, and whether the device must rotate."
        case .rotateKey:
            "The service replaces the key only if it is still the one that signed. Asking again for the same new key gets the same answer."
        case .device: "A tombstone stays, so that the key never belongs to another device."
        case .token:
            "The token is a bearer token for `audience`, the app's id by default. Revocation and rotation do not recall it: it lives for 10 minutes at most."
        case .verify:
            "A backend describes the request that it received, byte for byte, and asks once for each. With `verification_id` it may ask again after a timeout: for 60 s, the same id and content are judged again, and are no replay of themselves."
        case .forward:
            "For gateways. `X-Original-Method` and `X-Original-URI`, or `X-Forwarded-Method` and `X-Forwarded-Uri`, name the request. Every method is answered. Below this path, at `/auth/v1/forward/{original path}`, the request line names it. 200 with the identity in `X-Synheart-Verified-…`, empty under observation; else 401, 403 or 503, with the code in the body and in `X-Synheart-Error`."
        case .keySet, .wellKnownKeySet:
            "Read it again when its max-age is over, or when a token names a `kid` that is not in it."
        case .openIDConfiguration:
            "OpenID Connect Discovery 1.0, as far as it is about keys: there is no authorization endpoint. `NOT_FOUND` without `server.public_origin`."
        case .authorizationServer:
            "RFC 8414, as far as it is about keys: there is no token endpoint. `NOT_FOUND` without `server.public_origin`."
        }
    }
}

extension AdminRoute {
    /// Information for operators beyond the summary.
    var explanation: String {
        switch self {
        case .listApps: "Records with their secrets masked; those that the credential is for."
        case .addApp:
            "Members that are left out have their defaults; unknown members are refused. 409 if the id is taken."
        case .showApp: "The record with its secrets masked. `ETag` names its version."
        case .changeApp:
            "Replaces the whole record. Masked secrets stay as they are. With `If-Match` it is refused if the record was changed since."
        case .removeApp: "Only an app that never had a device can be removed: disable the others."
        case .listDevices:
            "Narrow it by the query. `device_hash` is the member `device` of a log line. Without `app_id`, `device_id`, `device_hash` and `status=pending` search all apps of the credential; other lists need a credential for all apps. `next_cursor` is the `cursor` of the next page in the same `order`, null on the last. The order is by registration, by default with the newest first."
        case .showDevice:
            "Everything that an operator may see of a device: no receipts, no keys. `ETag` names its version: a decision with `If-Match` is refused if the device was changed since."
        case .revokeDevice:
            "Revocation is permanent for this id. The phone may register a new key. Revoking a revoked device changes nothing and answers 200."
        case .approveDevice:
            "409 if the device is not pending, or if its proof never verified and `unproven` is not true."
        case .rejectDevice: "409 if the device is not pending."
        case .forceRotation:
            "The device is told with each answer to its requests. After the time its key counts as too old; with reason `compromise` only a new registration helps then. A demand for a compromise stays when a weaker one follows. 409 if the device is rejected or has ended."
        case .liftRotation:
            "A key that the demand had ended is accepted again. 409 if the device is rejected or has ended."
        case .lowerScheme:
            "For a device that went back to an older version of the app. 409 if it would raise the scheme, or if the device is rejected or has ended."
        case .decideDevices:
            "The devices are decided one after another. Each is a change of its own with its own audit event, saved only if the device still has the `version` that is named. A repeated call changes only what is left: what is already as decided is `unchanged`, also an approval. `with` has the members of the call for one device. A dry run says what would change. 503 if the store fails midway."
        case .whatIf:
            "Judges a page of devices by what their rows tell: their next request to another service, and a registration with their proof. `newly` counts those that the present record decides otherwise about, and `examples` names some of these. The first page has `counts`: how many requests to other services and registrations passed in the last 90 days, and which of these the record would decide otherwise by platform, scheme and what observation let through, the 100 largest. Masked secrets stand for those of the present record. Nothing is changed. 409 if a change to the record would be. `next_cursor` is the `cursor` of the next page, null on the last."
        case .listRecordings:
            "Of apps that record refusals. `next_cursor` is the `cursor` of the next page. On the deprecated path, the list's name is `evidence`."
        case .exportRecording: "The file that `attestation replay` takes. The export is recorded in the audit log."
        case .eraseRecording: "The erasure is recorded in the audit log."
        case .eraseRecordings: "Of this app alone. The erasure is recorded in the audit log."
        case .queryAudit:
            "`next_before` is the `before` of the next page, null on the last. A page ends at 4 MiB, so it may have fewer events than `limit` and not be the last. `code` names the codes of `AuditCode` to look for, with commas between them. If an event of such a code may name a device, one call looks for them in \(Self.searchedEvents) events, so a page may have fewer events than `limit`, or none, and not be the last. `since` leaves out older events. A page that ends at an older one is the last: if a clock was set back, or clocks of nodes differ, events near that time may be missing."
        case .followAudit:
            "Events after the one with the number `after`, or after the log's last. If there is none, the call waits for one, at most `wait_seconds`. `next_after` is the `after` of the next call. 409 if the log ends before `after`: another database was put back."
        case .verifyAudit: "Follows the whole chain. With `head` it also finds a log that was cut off or rewritten."
        case .showAuditHead: "Keep heads away from this machine: they prove later what the log was."
        case .showStatistics: "Counts of the apps that the credential is for."
        case .showHistory:
            "Verdicts on requests and registrations of the apps that the credential is for, from `since` (default: 24 h ago) to `until` (default: now), rounded to steps. `by` names members of the series, with commas between them (default: `code`). Minutes are kept for 48 hours, hours for 90 days; a minute is counted up to a minute after its end. Refused if it has too many counts: narrow it."
        case .listCredentials: "Without their texts, which the service does not keep. Revoked ones too."
        case .createCredential:
            "The text is in this answer and never again. Give `apps` with at least one id, or `all_apps: true`. A service credential names its apps."
        case .revokeCredential:
            "It is refused from now on. Revoking a revoked credential changes nothing and answers 204."
        case .listSigningKeys: "Oldest first."
        case .rotateSigningKeys:
            "The new key is the standby: it is published at once. The standby before it signs from now on, or as soon as caches of the key set have ended."
        case .revokeSigningKey:
            "The key leaves the key set at once, and the standby signs. Tokens of the key end when a backend reads the key set again."
        case .listWebhooks: "Those whose apps the credential is for. Without their secrets."
        case .addWebhook:
            "It gets the events from now on. A credential for all apps is needed. Give `apps` with at least one id, or `all_apps: true`. The secret is in this answer and never again."
        case .showWebhook:
            "With its position in the audit log, and why the last delivery failed. `ETag` names the version of its settings."
        case .changeWebhook:
            "Replaces all settings. Another `url` needs a credential for all apps. The secret stays: for another one, add another webhook. With `If-Match` it is refused if the settings were changed since."
        case .removeWebhook: "Events that wait for it are not delivered any more."
        case .resendWebhook:
            "Deliveries go on after the event with the number `after`, with the same ids as before."
        case .listDeliveries:
            "An attempt to deliver an event is a delivery, with the number of the event, its time, and the status of the answer. The last 100 of a webhook are kept. Nothing else of an answer is."
        }
    }
}

import AuthContract
import Bytes
import Crypto
import StrictJSON

/// App records for tests of the form.
enum FullRecord {
    /// A record in which no member has its default. This includes the members with lists and objects.
    static func json(_ app: String) -> JSONValue {
        let digest = Base64.url.encode([UInt8](repeating: 0x11, count: 32))
        let key = DevicePublicKey(P256.Signing.PrivateKey().publicKey).base64
        return [
            "app_id": .string(app), "name": "Example", "enabled": false, "mode": "observe", "build_channel": "staging",
            "development_integrity_allowed": true,
            "ios": [
                "app_ids": ["TEAMID1234.com.example.app", "TEAMID1234.com.example.app.beta"],
                "environments": ["development", "production"], "categories": [2, 4], "unknown_categories": "allow",
                "require_category": true, "minimum_bundle_version": "1.2.3", "require_bundle_version": true,
                "assertions_required_on": ["/v1/pay"], "flag_risk_metric_above": 8,
            ],
            "android": [
                "packages": ["com.example.app"], "certificate_digests": [.string(digest)], "minimum_version_code": 7,
                "proof": "either",
                "play_integrity": [
                    "keys": [
                        [
                            "decryption_key": .string(Base64.standard.encode([UInt8](repeating: 0xD1, count: 32))),
                            "verification_key": .string(key),
                        ]
                    ],
                    "service_account": [
                        "client_email": "a@example.com", "private_key": "S3CR3T",
                        "token_uri": "https://oauth2.googleapis.com/token",
                    ],
                    "device_labels": ["MEETS_STRONG_INTEGRITY"], "require_licensed": true, "maximum_age_seconds": 60,
                    "allow_test_responses": true, "refuse_play_protect": ["HIGH_RISK"],
                    "refuse_app_access_risk": ["UNKNOWN_CAPTURING"], "maximum_activity_level": "LEVEL_3",
                    "refuse_device_recall": ["bitFirst"],
                ],
                "key_attestation": [
                    "minimum_security_level": "StrongBox", "boot_states": ["SelfSigned", "Verified"],
                    "boot_keys": [.string(String(repeating: "0c", count: 32))], "maximum_patch_age_days": 90,
                    "status_list": "none",
                ],
            ],
            "signature": [
                "minimum_scheme": 2, "past_window_seconds": 600, "future_window_seconds": 300,
                "unsigned_query": "allow", "replay_on_reads": false, "path_prefix_strip": "/ingest",
                "authorities": ["api.example.com"], "token_audiences": ["x"], "token_type": "JWT",
            ],
            "keys": [
                "maximum_age_days": 90, "grace_days": 1, "overlap_seconds": 10, "reattest_on_rotation": true,
                "rebind_on_rotation": true, "key_proof": "required",
                "compromise": ["keys_before": "2026-11-01T00:00:00Z", "rotate_by": "2026-11-08T00:00:00Z"],
            ],
            "registration": [
                "approval": "manual", "provider_outage": "pending", "maximum_pending": 5, "maximum_unproven": 6,
            ],
            "evidence": ["record": true, "keep_days": 7],
        ]
    }

    /// The record with this value at a path, or without that member if the value is nil. Creates missing objects on the path.
    static func setting(_ record: JSONValue, _ path: ArraySlice<String>, _ value: JSONValue?) -> JSONValue {
        guard let name = path.first else { return value ?? .null }
        var object = record.object ?? JSONObject()
        object[name] =
            path.count == 1 ? value : setting(object[name] ?? .object(JSONObject()), path.dropFirst(), value)
        return .object(object)
    }
}

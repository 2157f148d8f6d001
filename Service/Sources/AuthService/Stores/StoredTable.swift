/// The permanent data of a deployment, as tables: `synheart-auth migrate-store` copies them between engines, and a backup
/// contains them.
///
/// The tables and columns are those of the SQLite file's current version, except `key_checks`: the file has it as a row of
/// `facts`. Challenges and claims are not included: a client that loses its challenge asks for a new one, and after the copy or
/// the restore the deployment refuses requests dated before it, as after any loss of history. Deliveries of webhooks are not
/// included either: nothing depends on them.
///
/// If you add a column, make it optional: a row of an older backup lacks it.
public enum StoredTable: String, Sendable, Hashable, CaseIterable {
    /// App records, with sealed secrets.
    case apps
    /// One row for each device, in every state.
    case devices
    /// Every key that is or was bound to a device.
    case keys
    /// Credentials, with the hash of the secret.
    case credentials
    /// The keys that sign device tokens, sealed, in the order in which they were added.
    case signingKeys = "signing_keys"
    /// Signing keys that were revoked. They are never valid again.
    case revokedSigningKeys = "revoked_signing_keys"
    /// Proofs that wait for their attestation provider, sealed.
    case pendingProofs = "pending_proofs"
    /// Recordings of refusals, in the order in which they were kept.
    case evidence
    /// Counts of verdicts by time.
    case verdictCounts = "verdict_counts"
    /// Webhooks, with sealed secrets.
    case webhooks
    /// The archives of the audit log, without their events: the range, the last hash and the seal of each.
    case auditArchives = "audit_archives"
    /// One row: the check values of the service key, separated by spaces.
    case keyChecks = "key_checks"
    /// The audit log, in the order of the chain. It is copied last: a complete log proves that all else was copied too.
    case audit

    /// A column: its name, its type, and whether it may be null.
    public struct Column: Sendable, Hashable {
        /// The type of its values.
        public enum Kind: Sendable, Hashable {
            /// A 64-bit integer. Times are unix seconds.
            case integer
            /// Text in UTF-8.
            case text
            /// Bytes.
            case bytes
        }

        /// The name, as in the SQLite file.
        public let name: String
        /// The type of its values.
        public let kind: Kind
        /// Whether it may be null.
        public let isOptional: Bool
    }

    /// The value of a column.
    public enum Cell: Sendable, Hashable {
        /// No value. Only an optional column may have it.
        case null
        /// The value of an integer column.
        case integer(Int64)
        /// The value of a text column.
        case text(String)
        /// The value of a bytes column.
        case bytes([UInt8])
    }

    /// A function that calls a closure with every row, in the order of the tables.
    package typealias Export = ((StoredTable, [Cell]) throws -> Void) throws -> Void

    /// The columns, in the order of a row's cells.
    public var columns: [Column] {
        switch self {
        case .apps: [text("app_id"), text("record")]
        case .devices:
            [
                text("device_id"), text("app_id"), text("platform"), text("status"), bytes("key"),
                text("key_thumbprint"), bytes("previous_key", optional), integer("previous_key_until", optional),
                text("assurance"), bytes("attested_key_id", optional), bytes("attested_public_key", optional),
                text("attested_app_id", optional), text("attested_environment", optional),
                integer("attested_extensions", optional), integer("attested_counter", optional),
                bytes("attested_receipt", optional), text("attested_receipt_outcome", optional),
                integer("attested_risk_metric", optional), integer("receipt_due_at", optional),
                integer("receipt_asked_at", optional), text("receipt_exchange_outcome", optional),
                integer("receipt_failures"), integer("registered_at"), integer("key_rotated_at", optional),
                integer("last_seen", optional), integer("highest_scheme"), integer("must_rotate_by", optional),
                text("must_rotate_reason", optional), integer("admitted_under_observation"),
                text("local_id", optional), integer("version"), text("app_version", optional),
                integer("ended_at", optional), integer("forgotten"),
            ]
        case .keys: [text("thumbprint"), text("device_id"), text("role")]
        case .credentials:
            [
                text("id"), text("name"), text("role"), text("apps"), bytes("secret_hash"), integer("created_at"),
                integer("expires_at"), integer("revoked_at", optional), text("bodies", optional),
            ]
        case .signingKeys:
            [text("id"), bytes("sealed_key"), integer("created_at"), integer("signs_from", optional)]
        case .revokedSigningKeys: [text("id"), integer("revoked_at")]
        case .pendingProofs:
            [text("device_id"), text("app_id"), integer("arrived_at"), bytes("sealed_request")]
        case .evidence:
            [
                text("id"), text("app_id"), text("device_id", optional), integer("recorded_at"),
                integer("expires_at"), text("format"), text("code"), text("step"), bytes("sealed"),
            ]
        case .verdictCounts:
            [
                integer("step"), integer("at"), text("app_id"), text("kind"), text("platform"), text("code"),
                text("scheme"), text("version"), integer("verdicts"),
            ]
        case .webhooks:
            [
                text("id"), bytes("sealed_secret"), integer("created_at"), integer("version"), text("url"),
                text("apps"), text("codes"), integer("is_enabled"), integer("position"),
                integer("failing_since", optional), text("failure", optional), text("lease_holder", optional),
                integer("lease_until", optional),
            ]
        case .auditArchives: [integer("first"), integer("last"), bytes("hash"), text("seal")]
        case .keyChecks: [text("value")]
        case .audit:
            [
                integer("sequence"), text("code"), integer("at"), text("actor"), text("app_id", optional),
                text("device_id", optional), text("detail"), bytes("hash"),
            ]
        }
    }

    private var optional: Bool { true }

    private func integer(_ name: String, _ isOptional: Bool = false) -> Column {
        Column(name: name, kind: .integer, isOptional: isOptional)
    }

    private func text(_ name: String, _ isOptional: Bool = false) -> Column {
        Column(name: name, kind: .text, isOptional: isOptional)
    }

    private func bytes(_ name: String, _ isOptional: Bool = false) -> Column {
        Column(name: name, kind: .bytes, isOptional: isOptional)
    }
}

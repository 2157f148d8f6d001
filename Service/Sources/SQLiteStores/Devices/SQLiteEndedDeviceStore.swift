internal import AuthContract
internal import AuthService
internal import GRDB

/// Forgets devices that were deregistered or rejected. Their rows keep the ids, and `keys` keeps the thumbprints.
struct SQLiteEndedDeviceStore: EndedDeviceStore {
    let database: StoreDatabase

    /// The migration's columns and index. The migration changes no row: `forgetDevices` sets `ended_at` of older devices.
    static let schema = """
        ALTER TABLE devices ADD COLUMN ended_at INTEGER;
        ALTER TABLE devices ADD COLUMN forgotten INTEGER NOT NULL DEFAULT 0;
        CREATE INDEX devices_ended ON devices (ended_at)
          WHERE status IN ('deregistered', 'rejected') AND forgotten = 0;
        """

    private static let ended =
        "SELECT device_id FROM devices WHERE status IN ('deregistered', 'rejected') AND forgotten = 0"

    func forgetDevices(
        endedBefore time: UnixTime, now: UnixTime, limit: Int, recording event: AuditEvent
    ) async throws(StoreError) -> Int {
        let limit = min(max(limit, 1), 1000)
        return try await database.write { database in
            try database.execute(
                sql: """
                    UPDATE devices SET ended_at = ?
                    WHERE device_id IN (\(Self.ended) AND ended_at IS NULL LIMIT ?)
                    """, arguments: [now.seconds, limit])
            let ids = try String.fetchAll(
                database, sql: "\(Self.ended) AND ended_at < ? ORDER BY ended_at LIMIT ?",
                arguments: [time.seconds, limit])
            for id in ids {
                try database.execute(sql: "DELETE FROM pending_proofs WHERE device_id = ?", arguments: [id])
                try database.execute(sql: Self.forget, arguments: [id])
            }
            if !ids.isEmpty { try database.append(event) }
            return ids.count
        }
    }

    private static let forget = """
        UPDATE devices SET forgotten = 1, platform = '', key = x'', previous_key = NULL, previous_key_until = NULL,
          assurance = '', attested_public_key = NULL, attested_app_id = NULL, attested_environment = NULL,
          attested_extensions = NULL, attested_counter = NULL, attested_receipt = NULL, attested_receipt_outcome = NULL,
          attested_risk_metric = NULL, receipt_due_at = NULL, receipt_asked_at = NULL, receipt_exchange_outcome = NULL,
          receipt_failures = 0, registered_at = 0, key_rotated_at = NULL, last_seen = NULL, highest_scheme = 0,
          must_rotate_by = NULL, must_rotate_reason = NULL, admitted_under_observation = 0, local_id = NULL,
          app_version = NULL, version = version + 1
        WHERE device_id = ?
        """
}

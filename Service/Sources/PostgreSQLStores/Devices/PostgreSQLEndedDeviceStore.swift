internal import AuthContract
internal import AuthService

/// Forgets devices that were deregistered or rejected. Their rows keep the ids, and `keys` keeps the thumbprints.
struct PostgreSQLEndedDeviceStore: EndedDeviceStore {
    let database: StoreDatabase

    private static let ended =
        "SELECT device_id FROM devices WHERE status IN ('deregistered', 'rejected') AND NOT forgotten"

    func forgetDevices(
        endedBefore time: UnixTime, now: UnixTime, limit: Int, recording event: AuditEvent
    ) async throws(StoreError) -> Int {
        let limit = Parameter.integer(Int64(min(max(limit, 1), 1000)))
        return try await database.write { (connection) throws(StoreError) in
            _ = try connection.rows(
                """
                UPDATE devices SET ended_at = $1
                WHERE device_id = ANY (ARRAY(\(Self.ended) AND ended_at IS NULL LIMIT $2 FOR UPDATE SKIP LOCKED))
                """, [.time(now), limit])
            let forgotten = try connection.rows(
                """
                UPDATE devices SET forgotten = TRUE, platform = '', key = ''::bytea, previous_key = NULL,
                  previous_key_until = NULL, assurance = '', attested_public_key = NULL, attested_app_id = NULL,
                  attested_environment = NULL, attested_extensions = FALSE, attested_counter = NULL,
                  attested_receipt = NULL, attested_receipt_outcome = NULL, attested_risk_metric = NULL,
                  receipt_due_at = NULL, receipt_asked_at = NULL, receipt_exchange_outcome = NULL, receipt_failures = 0,
                  registered_at = 0, key_rotated_at = NULL, last_seen = NULL, highest_scheme = 0, must_rotate_by = NULL,
                  must_rotate_reason = NULL, admitted_under_observation = FALSE, local_id = NULL, app_version = NULL,
                  version = version + 1
                WHERE device_id = ANY (
                  ARRAY(\(Self.ended) AND ended_at < $1 ORDER BY ended_at LIMIT $2 FOR UPDATE SKIP LOCKED))
                RETURNING device_id::text
                """, [.time(time), limit])
            guard forgotten.count > 0 else { return 0 }
            let ids = try forgotten.rows.map { (row) throws(StoreError) in try row.text("device_id") }
            connection.beforeCommit(
                Statement("DELETE FROM pending_proofs WHERE device_id = ANY ($1)", [.texts(ids)]))
            try connection.append(event)
            connection.tellOtherNodes()
            return ids.count
        }
    }
}

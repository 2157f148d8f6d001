internal import AuthContract
internal import AuthService

/// Due receipts, kept as columns of their devices.
struct PostgreSQLReceiptStore: ReceiptStore {
    let database: StoreDatabase

    func takeDueReceipt(at now: UnixTime, lease: UnixTime) async throws(StoreError) -> DueReceipt? {
        try await database.write { (connection) throws(StoreError) -> Result<DueReceipt?, StoreError>? in
            // Concurrent nodes lock different rows.
            let row = try connection.row(
                """
                UPDATE devices SET receipt_due_at = $2 WHERE device_id = (
                  SELECT device_id FROM devices
                  WHERE status = 'registered' AND receipt_due_at <= $1 AND attested_receipt IS NOT NULL
                  ORDER BY receipt_due_at LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED)
                RETURNING \(DeviceRecord.selection)
                """, [.time(now), .time(lease)])
            guard let row else { return nil }
            return Result { () throws(StoreError) in DueReceipt(try DeviceRecord(row: row)) }
        }?.get()
    }

    func record(
        _ change: ReceiptChange, of due: DueReceipt, recording event: AuditEvent?
    ) async throws(StoreError) -> Bool {
        var columns = AppAttestKeyState.refreshColumns
        var values = AppAttestKeyState.parameters(change.refresh)
        if let replacement = change.replacement {
            columns += ["attested_receipt", "attested_receipt_outcome", "attested_risk_metric"]
            values += [.bytes(replacement.receipt), .text("verified"), .integer(Int64(replacement.riskMetric))]
        }
        let conditions: [Parameter] = [
            .uuid(due.deviceID), .text(due.appID.text), .bytes(due.evidence.keyID), .bytes(due.receipt),
            .time(due.evidence.refresh.dueAt),
        ]
        let sql = """
            UPDATE devices SET \(assignments(columns, after: conditions.count))
            WHERE device_id = $1 AND app_id = $2 AND attested_key_id = $3 AND attested_receipt = $4
              AND receipt_due_at = $5
            """
        let parameters = conditions + values
        return try await database.write { (connection) throws(StoreError) in
            try connection.change(sql, parameters, recording: event) == 1
        }
    }
}

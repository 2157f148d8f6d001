internal import AuthContract
internal import AuthService
internal import GRDB

/// The App Attest receipts that must be exchanged for newer ones, kept as columns of their devices.
struct SQLiteReceiptStore: ReceiptStore {
    let database: StoreDatabase

    func takeDueReceipt(at now: UnixTime, lease: UnixTime) async throws(StoreError) -> DueReceipt? {
        // Read first: usually no receipt is due, and a read takes no write lock.
        guard try await database.read({ try $0.nextDue(at: now) != nil }) else { return nil }
        return try await database.write { database -> Result<DueReceipt?, StoreError>? in
            guard let row = try database.nextDue(at: now) else { return nil }
            try database.cachedStatement(sql: "UPDATE devices SET receipt_due_at = ? WHERE device_id = ?")
                .execute(arguments: [lease.seconds, try row.text("device_id")])
            return Result { () throws(StoreError) in
                var device = try DeviceRecord(row: row)
                device.appAttest?.refresh.dueAt = lease
                return DueReceipt(device)
            }
        }?.get()
    }

    func record(
        _ change: ReceiptChange, of due: DueReceipt, recording event: AuditEvent?
    ) async throws(StoreError) -> Bool {
        var columns = AppAttestKeyState.refreshColumns
        var values = AppAttestKeyState.arguments(change.refresh)
        if let replacement = change.replacement {
            columns += ["attested_receipt", "attested_receipt_outcome", "attested_risk_metric"]
            values += [replacement.receipt.data, "verified", Int64(replacement.riskMetric)]
        }
        let sql = """
            UPDATE devices SET \(columns.map { "\($0) = ?" }.joined(separator: ", "))
            WHERE device_id = ? AND app_id = ? AND attested_key_id = ? AND attested_receipt = ? AND receipt_due_at = ?
            """
        let arguments =
            values + [
                due.deviceID.text, due.appID.text, due.evidence.keyID.data, due.receipt.data,
                due.evidence.refresh.dueAt?.seconds,
            ]
        return try await database.write { try $0.change(sql, arguments, recording: event) == 1 }
    }
}

extension Database {
    fileprivate func nextDue(at now: UnixTime) throws -> StoredRow? {
        try Row.fetchOne(
            cachedStatement(
                sql: """
                    SELECT * FROM devices WHERE status = ? AND receipt_due_at <= ? AND attested_receipt IS NOT NULL
                    ORDER BY receipt_due_at LIMIT 1
                    """), arguments: [DeviceStatus.registered.rawValue, now.seconds]
        ).map { StoredRow($0) }
    }
}

internal import AuthContract
internal import AuthService

/// Sealed proofs whose provider did not answer.
struct PostgreSQLPendingProofStore: PendingProofStore {
    let database: StoreDatabase

    func keep(_ proof: PendingProof) async throws(StoreError) {
        try await database.write(sealing: true) { (connection) throws(StoreError) in
            _ = try connection.change(
                """
                INSERT INTO pending_proofs (device_id, app_id, arrived_at, sealed_request) VALUES ($1, $2, $3, $4)
                ON CONFLICT (device_id) DO UPDATE SET app_id = excluded.app_id, arrived_at = excluded.arrived_at,
                  sealed_request = excluded.sealed_request
                """,
                [
                    .text(proof.deviceID.text), .text(proof.appID.text), .integer(proof.arrivedAt.seconds),
                    .bytes(proof.sealedRequest),
                ], recording: nil, telling: false)
        }
    }

    func pendingProofs(after device: DeviceID?, limit: Int) async throws(StoreError) -> [PendingProof] {
        try await database.read { (connection) throws(StoreError) in
            try connection.rows(
                """
                SELECT device_id, app_id, arrived_at, sealed_request FROM pending_proofs
                WHERE device_id > $1 ORDER BY device_id LIMIT $2
                """, [.text(device?.text ?? ""), .integer(Int64(max(limit, 0)))]
            ).rows.map { (row) throws(StoreError) in try PendingProof(row: row) }
        }
    }

    func erasePendingProof(of device: DeviceID) async throws(StoreError) {
        try await database.write { (connection) throws(StoreError) in
            _ = try connection.change(
                "DELETE FROM pending_proofs WHERE device_id = $1", [.text(device.text)], recording: nil, telling: false)
        }
    }
}

internal import AuthContract
internal import AuthService
internal import GRDB

/// Sealed proofs of pending devices. The provider that must check a proof, such as Google, did not answer, so the
/// proof is kept for a later check.
struct SQLitePendingProofStore: PendingProofStore {
    let database: StoreDatabase

    func keep(_ proof: PendingProof) async throws(StoreError) {
        try await database.write { database in
            try database.execute(
                sql: """
                    INSERT OR REPLACE INTO pending_proofs (device_id, app_id, arrived_at, sealed_request)
                    VALUES (?, ?, ?, ?)
                    """,
                arguments: [
                    proof.deviceID.text, proof.appID.text, proof.arrivedAt.seconds, proof.sealedRequest.data,
                ])
        }
    }

    func pendingProofs(after device: DeviceID?, limit: Int) async throws(StoreError) -> [PendingProof] {
        try await database.read { database in
            try Row.fetchAll(
                database, sql: "SELECT * FROM pending_proofs WHERE device_id > ? ORDER BY device_id LIMIT ?",
                arguments: [device?.text ?? "", max(limit, 0)]
            ).map { try PendingProof(row: StoredRow($0)) }
        }
    }

    func erasePendingProof(of device: DeviceID) async throws(StoreError) {
        try await database.write { database in
            try database.execute(sql: "DELETE FROM pending_proofs WHERE device_id = ?", arguments: [device.text])
        }
    }
}

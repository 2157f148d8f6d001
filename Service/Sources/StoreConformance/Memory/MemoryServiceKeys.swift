internal import AuthContract
public import AuthService

extension MemoryStores: ServiceKeyStore {
    /// See `ServiceKeyStore`.
    public func keyChecks() throws(StoreError) -> [ServiceKeyCheck] {
        try check(.keyChecks)
        return knownKeyChecks
    }

    /// See `ServiceKeyStore`.
    public func replaceKeyChecks(
        _ current: [ServiceKeyCheck], with checks: [ServiceKeyCheck], recording event: AuditEvent?
    ) throws(StoreError) -> Bool {
        try check(.replaceKeyChecks)
        guard knownKeyChecks == current else { return false }
        knownKeyChecks = checks
        if let event { record(event) }
        return true
    }

    /// See `ServiceKeyStore`.
    public func sealedRows(_ kind: SealedRow.Kind, after id: String, limit: Int) throws(StoreError) -> [SealedRow] {
        try check(.sealedRows)
        return Array(allSealed(kind).filter { $0.id > id }.sorted { $0.id < $1.id }.prefix(max(limit, 0)))
    }

    /// See `ServiceKeyStore`.
    public func reseal(_ rows: [(row: SealedRow, value: [UInt8])]) throws(StoreError) -> Int {
        try check(.reseal)
        var count = 0
        for (row, value) in rows where allSealed(row.kind).contains(row) {
            count += 1
            switch row.kind {
            case .app:
                for (id, _) in appRecords where id.text == row.id {
                    appRecords[id] = StoredApp(appID: id, sealedJSON: String(decoding: value, as: UTF8.self))
                }
            case .signingKey:
                signingKeyRecords = signingKeyRecords.map {
                    guard $0.id == row.id else { return $0 }
                    return StoredSigningKey(
                        id: $0.id, sealedKey: value, createdAt: $0.createdAt, signsFrom: $0.signsFrom)
                }
            case .pendingProof:
                for (id, proof) in proofs where id.text == row.id {
                    proofs[id] = PendingProof(
                        appID: proof.appID, deviceID: id, arrivedAt: proof.arrivedAt, sealedRequest: value)
                }
            case .evidence:
                keptRecordings = keptRecordings.map {
                    $0.summary.id == row.id ? RecordedRefusal(summary: $0.summary, sealed: value) : $0
                }
            case .webhook: reseal(webhook: row.id, as: value)
            }
        }
        return count
    }

    private func allSealed(_ kind: SealedRow.Kind) -> [SealedRow] {
        switch kind {
        case .app: appRecords.values.map { SealedRow(kind: kind, id: $0.appID.text, value: Array($0.sealedJSON.utf8)) }
        case .signingKey: signingKeyRecords.map { SealedRow(kind: kind, id: $0.id, value: $0.sealedKey) }
        case .pendingProof: proofs.values.map { SealedRow(kind: kind, id: $0.deviceID.text, value: $0.sealedRequest) }
        case .evidence:
            keptRecordings.map {
                SealedRow(kind: kind, id: $0.summary.id, scope: $0.summary.appID.text, value: $0.sealed)
            }
        case .webhook: webhookRecords.values.map { SealedRow(kind: kind, id: $0.id, value: $0.sealedSecret) }
        }
    }
}

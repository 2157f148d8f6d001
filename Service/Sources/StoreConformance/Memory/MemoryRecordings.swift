public import AuthContract
public import AuthService

extension MemoryStores: RecordingStore {
    /// See `RecordingStore`.
    public func keep(_ evidence: RecordedRefusal, within bounds: RecordingBounds) throws(StoreError) {
        try check(.keepEvidence)
        guard evidence.sealed.count <= bounds.bytes, bounds.count > 0, appRecords[evidence.summary.appID] != nil else {
            return
        }
        keptEvidence.append(evidence)
        var (count, bytes) = (0, 0)
        var kept: [RecordedRefusal] = []
        for one in keptEvidence.reversed() {
            if one.summary.appID == evidence.summary.appID {
                (count, bytes) = (count + 1, bytes + one.sealed.count)
                guard count <= bounds.count, bytes <= bounds.bytes else { continue }
            }
            kept.append(one)
        }
        keptEvidence = kept.reversed()
    }

    /// See `RecordingStore`.
    public func evidence(of app: AppID?, before id: String?, limit: Int) throws(StoreError) -> [RecordingSummary] {
        try check(.evidence)
        var older = keptEvidence[...]
        if let id {
            guard let end = keptEvidence.firstIndex(where: { $0.summary.id == id }) else { return [] }
            older = keptEvidence[..<end]
        }
        let found = older.reversed().map(\.summary).filter { app == nil || $0.appID == app }
        return Array(found.prefix(max(limit, 0)))
    }

    /// See `RecordingStore`.
    public func evidence(_ id: String, of app: AppID) throws(StoreError) -> RecordedRefusal? {
        try check(.evidence)
        return keptEvidence.first { $0.summary.id == id && $0.summary.appID == app }
    }

    /// See `RecordingStore`.
    public func eraseEvidence(_ id: String?, of app: AppID, recording event: AuditEvent) throws(StoreError) -> Int {
        try check(.eraseEvidence)
        let before = keptEvidence.count
        keptEvidence.removeAll { $0.summary.appID == app && (id == nil || $0.summary.id == id) }
        let erased = before - keptEvidence.count
        if erased > 0 { record(event) }
        return erased
    }

    /// See `RecordingStore`.
    public func eraseEvidence(expiredAt now: UnixTime, limit: Int) throws(StoreError) -> Int {
        try check(.eraseEvidence)
        let expired = keptEvidence.map(\.summary).filter { $0.expiresAt <= now }.prefix(max(limit, 0)).map(\.id)
        keptEvidence.removeAll { expired.contains($0.summary.id) }
        return expired.count
    }
}

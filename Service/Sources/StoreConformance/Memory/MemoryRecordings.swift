public import AuthContract
public import AuthService

extension MemoryStores: RecordingStore {
    /// See `RecordingStore`.
    public func keep(_ recording: RecordedRefusal, within bounds: RecordingBounds) throws(StoreError) {
        try check(.keepRecording)
        guard recording.sealed.count <= bounds.bytes, bounds.count > 0, appRecords[recording.summary.appID] != nil
        else {
            return
        }
        keptRecordings.append(recording)
        var (count, bytes) = (0, 0)
        var kept: [RecordedRefusal] = []
        for one in keptRecordings.reversed() {
            if one.summary.appID == recording.summary.appID {
                (count, bytes) = (count + 1, bytes + one.sealed.count)
                guard count <= bounds.count, bytes <= bounds.bytes else { continue }
            }
            kept.append(one)
        }
        keptRecordings = kept.reversed()
    }

    /// See `RecordingStore`.
    public func recordings(of app: AppID?, before id: String?, limit: Int) throws(StoreError) -> [RecordingSummary] {
        try check(.recordings)
        var older = keptRecordings[...]
        if let id {
            guard let end = keptRecordings.firstIndex(where: { $0.summary.id == id }) else { return [] }
            older = keptRecordings[..<end]
        }
        let found = older.reversed().map(\.summary).filter { app == nil || $0.appID == app }
        return Array(found.prefix(max(limit, 0)))
    }

    /// See `RecordingStore`.
    public func recording(_ id: String, of app: AppID) throws(StoreError) -> RecordedRefusal? {
        try check(.recordings)
        return keptRecordings.first { $0.summary.id == id && $0.summary.appID == app }
    }

    /// See `RecordingStore`.
    public func eraseRecordings(_ id: String?, of app: AppID, recording event: AuditEvent) throws(StoreError) -> Int {
        try check(.eraseRecordings)
        let before = keptRecordings.count
        keptRecordings.removeAll { $0.summary.appID == app && (id == nil || $0.summary.id == id) }
        let erased = before - keptRecordings.count
        if erased > 0 { record(event) }
        return erased
    }

    /// See `RecordingStore`.
    public func eraseRecordings(expiredAt now: UnixTime, limit: Int) throws(StoreError) -> Int {
        try check(.eraseRecordings)
        let expired = keptRecordings.map(\.summary).filter { $0.expiresAt <= now }.prefix(max(limit, 0)).map(\.id)
        keptRecordings.removeAll { expired.contains($0.summary.id) }
        return expired.count
    }
}

public import AuthContract
public import AuthService

extension MemoryStores: AuditLog {
    /// See `AuditLog`.
    public func append(_ event: AuditEvent) throws(StoreError) {
        try check(.append)
        _ = try event.storedDetail()
        record(event)
    }

    /// See `AuditLog`.
    public func events(
        app: AppID?, device: DeviceID?, codes: Set<AuditEvent.Code>?, after: Int64, before: Int64?, limit: Int
    ) throws(StoreError) -> [RecordedAuditEvent] {
        try check(.events)
        let matching = log.reversed().lazy.filter { recorded in
            (app == nil || recorded.event.appID == app) && (device == nil || recorded.event.deviceID == device)
                && codes?.contains { $0 == recorded.event.code } ?? true && recorded.sequence > after
                && before.map { recorded.sequence < $0 } ?? true
        }
        return Array(matching.prefix(min(max(limit, 1), 1000)))
    }

    /// See `AuditLog`.
    public func events(
        app: AppID?, device: DeviceID?, after: Int64, limit: Int
    ) throws(StoreError) -> [RecordedAuditEvent] {
        try check(.events)
        let matching = log.lazy.filter { recorded in
            (app == nil || recorded.event.appID == app) && (device == nil || recorded.event.deviceID == device)
                && recorded.sequence > after
        }
        return Array(matching.prefix(min(max(limit, 1), 1000)))
    }

    /// See `AuditLog`.
    public func firstBrokenLink() throws(StoreError) -> Int64? {
        try check(.firstBrokenLink)
        let archived = AuditLink(sequence: archives.last?.last ?? 0, hash: archives.last?.hash ?? AuditChain.origin)
        var link = archived
        if let first = log.first, first.sequence <= archived.sequence {
            link = AuditLink(sequence: first.sequence, hash: first.hash)
            guard first.sequence < archived.sequence || link == archived else { return first.sequence }
        }
        for recorded in log where recorded.sequence > link.sequence {
            let next = link.sequence + 1
            let hash = AuditChain.hash(.init(recorded.event, sequence: next), after: link.hash)
            guard recorded.sequence == next, recorded.hash == hash, next != archived.sequence || hash == archived.hash
            else { return recorded.sequence }
            link = AuditLink(sequence: next, hash: hash)
        }
        return nil
    }

    /// See `AuditLog`.
    public func link(at sequence: Int64?) throws(StoreError) -> AuditLink? {
        try check(.link)
        guard let sequence else { return log.last.map { AuditLink(sequence: $0.sequence, hash: $0.hash) } }
        return log.first { $0.sequence == sequence }.map { AuditLink(sequence: $0.sequence, hash: $0.hash) }
    }

    func record(_ event: AuditEvent) {
        let sequence = (log.last?.sequence ?? 0) + 1
        let hash = AuditChain.hash(.init(event, sequence: sequence), after: log.last?.hash ?? AuditChain.origin)
        log.append(RecordedAuditEvent(sequence: sequence, event: event, hash: hash))
    }
}

extension MemoryStores: AuditArchiveStore {
    /// See `AuditArchiveStore`.
    public func auditArchives() throws(StoreError) -> [StoredAuditArchive] {
        try check(.auditArchives)
        return archives
    }

    /// See `AuditArchiveStore`.
    public func auditEntries(after sequence: Int64, limit: Int) throws(StoreError) -> [StoredAuditEntry] {
        try check(.events)
        return log.lazy.filter { $0.sequence > sequence }.prefix(min(max(limit, 1), 1000)).map { recorded in
            StoredAuditEntry(entry: .init(recorded.event, sequence: recorded.sequence), hash: recorded.hash)
        }
    }

    /// See `AuditArchiveStore`.
    public func add(_ archive: StoredAuditArchive) throws(StoreError) -> Bool {
        try check(.addArchive)
        guard archive.first == (archives.last?.last ?? 0) + 1, archive.last >= archive.first else { return false }
        archives.append(archive)
        return true
    }

    /// See `AuditArchiveStore`.
    public func removeArchivedEvents(limit: Int) throws(StoreError) -> Int {
        try check(.removeArchivedEvents)
        let last = archives.last?.last ?? 0
        let count = log.dropLast().prefix(min(max(limit, 1), 1000)).prefix { $0.sequence <= last }.count
        log.removeFirst(count)
        return count
    }
}

public import AuthContract
public import AuthService

extension MemoryStores: AuditLog {
    /// See `AuditLog`.
    public func append(_ event: AuditEvent) throws(StoreError) {
        try check(.append)
        record(event)
    }

    /// See `AuditLog`.
    public func events(
        app: AppID?, device: DeviceID?, before: Int64?, limit: Int
    ) throws(StoreError) -> [RecordedAuditEvent] {
        try check(.events)
        let matching = log.reversed().lazy.filter { recorded in
            (app == nil || recorded.event.appID == app) && (device == nil || recorded.event.deviceID == device)
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
        var previous = AuditChain.origin
        for (index, recorded) in log.enumerated() {
            let hash = AuditChain.hash(.init(recorded.event, sequence: Int64(index) + 1), after: previous)
            guard recorded.sequence == Int64(index) + 1, recorded.hash == hash else { return recorded.sequence }
            previous = hash
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
        let sequence = Int64(log.count) + 1
        let hash = AuditChain.hash(.init(event, sequence: sequence), after: log.last?.hash ?? AuditChain.origin)
        log.append(RecordedAuditEvent(sequence: sequence, event: event, hash: hash))
    }
}

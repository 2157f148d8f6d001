public import AuthContract
public import AuthService

extension MemoryStores: DeviceStore {
    /// See `DeviceStore`.
    public func device(_ id: DeviceID, of app: AppID) throws(StoreError) -> DeviceRecord? {
        try check(.device)
        return find(id, app)
    }

    /// See `DeviceStore`.
    public func binding(of thumbprint: String) throws(StoreError) -> KeyBinding? {
        try check(.binding)
        return bindings[thumbprint]
    }

    /// See `DeviceStore`.
    public func insert(
        _ device: DeviceRecord, under app: StoredApp, maximumPending: Int, recording event: AuditEvent
    ) throws(StoreError) -> InsertOutcome {
        try check(.insertDevice)
        guard isStored(app), app.appID == device.appID else { return .appChanged }
        for key in [device.key, device.previousKey].compactMap({ $0 }) {
            if let binding = bindings[key.thumbprint] { return .keyTaken(binding) }
        }
        guard !isAttestedKeyTaken(device.appAttest, of: device) else { return .attestedKeyTaken }
        if device.status == .pending {
            let isUnproven = device.assurance == .unproven
            let pending = deviceRecords.values.count {
                $0.appID == device.appID && $0.status == .pending && ($0.assurance == .unproven) == isUnproven
            }
            guard pending < maximumPending else { return .tooManyPending }
        }
        guard deviceRecords[device.deviceID] == nil, tombstones[device.deviceID] == nil else {
            throw StoreError(.unavailable, "the device id exists")
        }
        deviceRecords[device.deviceID] = device
        bind(device.key, to: device, as: .current)
        if let previous = device.previousKey { bind(previous, to: device, as: .previous) }
        record(event)
        return .inserted
    }

    /// See `DeviceStore`.
    public func save(_ changes: [DeviceChange]) throws(StoreError) -> [SaveOutcome] {
        try check(.save)
        return changes.map { change in
            let (before, after) = (change.before, change.after)
            // Compare the keys before the version, as the other stores do. A faster copy of the same request may already have bound
            // the key to this device. Then the outcome is `keyTaken`.
            guard !change.replacesKey || bindings[after.key.thumbprint] == nil,
                !change.replacesAppAttest || !isAttestedKeyTaken(after.appAttest, of: after)
            else { return .keyTaken }
            guard var device = find(before.deviceID, before.appID), device.version == before.version else {
                return .conflict
            }
            guard
                !change.replacesAppAttest
                    || device.highestScheme == before.highestScheme
                        && device.appAttest?.counter == before.appAttest?.counter
            else { return .conflict }
            if change.replacesKey {
                if let retired = device.previousKey { bind(retired, to: device, as: .retired) }
                bind(before.key, to: device, as: .previous)
                bind(after.key, to: device, as: .current)
            }
            (device.status, device.key, device.assurance) = (after.status, after.key, after.assurance)
            (device.previousKey, device.previousKeyUntil) = (after.previousKey, after.previousKeyUntil)
            (device.keyRotatedAt, device.mustRotate) = (after.keyRotatedAt, after.mustRotate)
            device.admittedUnderObservation = after.admittedUnderObservation
            device.appVersion = after.appVersion
            if change.replacesAppAttest { device.appAttest = after.appAttest }
            if change.lowersScheme { device.highestScheme = after.highestScheme }
            device.version += 1
            deviceRecords[device.deviceID] = device
            if let endedAt = change.endedAt { ends[device.deviceID] = endedAt }
            record(change.event)
            return .saved
        }
    }

    /// See `DeviceStore`.
    public func raise(_ fact: DeviceFact, of id: DeviceID, app: AppID) throws(StoreError) -> Bool {
        try check(.raise)
        return switch fact {
        case .counter(let counter, let key):
            change(
                id, app, where: { $0.appAttest.map { $0.keyID == key && $0.counter < counter } ?? false },
                recording: nil
            ) { $0.appAttest?.counter = counter }
        case .scheme(let scheme):
            change(id, app, where: { $0.highestScheme < scheme }, recording: nil) { $0.highestScheme = scheme }
        }
    }

    /// See `DeviceStore`.
    public func observedDevices(of app: AppID, limit: Int) throws(StoreError) -> [DeviceRecord] {
        try check(.observedDevices)
        return Array(
            deviceRecords.values.filter {
                $0.appID == app && $0.admittedUnderObservation && $0.status == .registered
            }.prefix(limit))
    }

    /// See `DeviceStore`.
    public func writeLastSeen(_ seen: [DeviceID: UnixTime]) throws(StoreError) {
        try check(.writeLastSeen)
        try LastSeen.check(seen.count)
        for (id, time) in seen {
            guard let device = deviceRecords[id],
                device.lastSeen.map({ abs($0 - time) > LastSeen.grain }) ?? true
            else { continue }
            deviceRecords[id]?.lastSeen = time
        }
    }

    /// See `DeviceStore`.
    public func devices(_ query: DeviceQuery) throws(StoreError) -> [DeviceRecord] {
        try check(.devices)
        let matching = deviceRecords.values.filter { device in
            (query.appID == nil || device.appID == query.appID)
                && query.scope.covers(device.appID)
                && (query.deviceID == nil || device.deviceID == query.deviceID)
                && query.deviceHash.map { DeviceHash(of: device.deviceID) == $0 } ?? true
                && (query.status == nil || device.status == query.status)
                && (query.platform == nil || device.platform == query.platform)
                && query.registeredFrom.map { device.registeredAt >= $0 } ?? true
                && query.registeredBefore.map { device.registeredAt < $0 } ?? true
                && query.after.map { precedes($0, .init(device), query.order) } ?? true
        }
        return Array(matching.sorted { precedes(.init($0), .init($1), query.order) }.prefix(query.limit))
    }

    /// See `DeviceStore`.
    public func knownIDs(after: DeviceQuery.PageToken?, limit: Int) throws(StoreError) -> [DeviceQuery.PageToken] {
        try check(.knownIDs)
        let known = deviceRecords.values.filter { $0.status != .deregistered }.map { DeviceQuery.PageToken($0) }
        let later = known.filter { token in after.map { precedes($0, token) } ?? true }
        return Array(later.sorted { precedes($0, $1) }.prefix(min(max(limit, 1), 1000)))
    }

    /// See `DeviceStore`.
    public func count(of app: AppID) throws(StoreError) -> [DeviceStatus: Int] {
        try check(.count)
        return deviceRecords.values.filter { $0.appID == app }.reduce(into: [:]) { $0[$1.status, default: 0] += 1 }
    }

    /// See `DeviceStore`.
    public func riskMetrics(of app: AppID) throws(StoreError) -> [Int: Int] {
        try check(.riskMetrics)
        let devices = deviceRecords.values.filter { $0.appID == app && $0.status == .registered }
        return devices.compactMap { $0.appAttest?.riskMetric }.reduce(into: [:]) { $0[$1, default: 0] += 1 }
    }

    /// Inserts a device as if its evidence had been judged under its app's current record. An app may have one pending device
    /// with the assurance `unproven`, and one with another assurance.
    public func insert(_ device: DeviceRecord, recording event: AuditEvent) throws(StoreError) -> InsertOutcome {
        guard let app = appRecords[device.appID] else { return .appChanged }
        return try insert(device, under: app, maximumPending: 1, recording: event)
    }

    /// Changes the current version of a device, as another caller would.
    @discardableResult
    public func change(
        _ id: DeviceID, of app: AppID, recording code: AuditEvent.Code = .securityEvent,
        _ body: (inout DeviceRecord) -> Void
    ) throws(StoreError) -> SaveOutcome {
        guard let before = find(id, app) else { return .conflict }
        var after = before
        body(&after)
        let event = AuditEvent(code, at: clock.now, actor: "test", appID: app, deviceID: id)
        return try save([DeviceChange(from: before, to: after, event: event)])[0]
    }

    private func find(_ id: DeviceID, _ app: AppID) -> DeviceRecord? {
        deviceRecords[id].flatMap { $0.appID == app ? $0 : nil }
    }

    func change(
        _ id: DeviceID, _ app: AppID, where condition: (DeviceRecord) -> Bool, recording event: AuditEvent?,
        _ body: (inout DeviceRecord) -> Void
    ) -> Bool {
        guard var device = find(id, app), condition(device) else { return false }
        body(&device)
        deviceRecords[id] = device
        if let event { record(event) }
        return true
    }

    private func bind(_ key: DevicePublicKey, to device: DeviceRecord, as role: KeyBinding.Role) {
        bindings[key.thumbprint] = KeyBinding(appID: device.appID, deviceID: device.deviceID, role: role)
    }

    private func isAttestedKeyTaken(_ evidence: AppAttestKeyState?, of device: DeviceRecord) -> Bool {
        guard let evidence else { return false }
        return deviceRecords.values.contains {
            $0.appID == device.appID && $0.deviceID != device.deviceID && $0.appAttest?.keyID == evidence.keyID
        } || tombstones.values.contains { $0.appID == device.appID && $0.attestedKeyID == evidence.keyID }
    }

    private func precedes(
        _ left: DeviceQuery.PageToken, _ right: DeviceQuery.PageToken, _ order: DeviceQuery.Order = .newest
    ) -> Bool {
        let (left, right) = order == .newest ? (left, right) : (right, left)
        return left.registeredAt == right.registeredAt
            ? left.deviceID.text < right.deviceID.text : left.registeredAt > right.registeredAt
    }
}

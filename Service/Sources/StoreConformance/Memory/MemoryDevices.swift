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
        _ device: DeviceRecord, maximumPending: Int, recording event: AuditEvent
    ) throws(StoreError) -> InsertOutcome {
        try check(.insertDevice)
        guard appRecords[device.appID] != nil else { return .appMissing }
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
        guard deviceRecords[device.deviceID] == nil else { throw StoreError(.unavailable, "the device id exists") }
        deviceRecords[device.deviceID] = device
        bind(device.key, to: device, as: .current)
        if let previous = device.previousKey { bind(previous, to: device, as: .previous) }
        record(event)
        return .inserted
    }

    /// See `DeviceStore`.
    public func rotate(_ change: RotationChange, recording event: AuditEvent) throws(StoreError) -> RotationOutcome {
        try check(.rotate)
        guard var device = find(change.deviceID, change.appID), device.status == .registered, device.key == change.from
        else { return .conflict }
        let isCompromised = device.mustRotate?.reason == .compromise
        guard !isCompromised || change.evidence == nil else { return .conflict }
        guard bindings[change.to.thumbprint] == nil, !isAttestedKeyTaken(change.evidence, of: device) else {
            return .keyTaken
        }
        if let retired = device.previousKey { bind(retired, to: device, as: .retired) }
        bind(change.from, to: device, as: .previous)
        bind(change.to, to: device, as: .current)
        device.previousKey = change.from
        device.previousKeyUntil = isCompromised ? nil : change.overlapUntil
        device.key = change.to
        device.keyRotatedAt = change.at
        device.mustRotate = nil
        device.assurance = change.assurance
        if let evidence = change.evidence { device.appAttest = evidence }
        deviceRecords[device.deviceID] = device
        record(event)
        return .rotated
    }

    /// See `DeviceStore`.
    public func setStatus(
        _ id: DeviceID, of app: AppID, from: Set<DeviceStatus>, to: DeviceStatus, recording event: AuditEvent
    ) throws(StoreError) -> Bool {
        try check(.setStatus)
        return change(id, app, where: { from.contains($0.status) }, recording: event) { $0.status = to }
    }

    /// See `DeviceStore`.
    public func admit(
        _ id: DeviceID, of app: AppID, known: Assurance, as assurance: Assurance, recording event: AuditEvent
    ) throws(StoreError) -> Bool {
        try check(.admit)
        return change(id, app, where: { $0.status == .pending && $0.assurance == known }, recording: event) {
            ($0.status, $0.assurance) = (.registered, assurance)
        }
    }

    /// See `DeviceStore`.
    public func replaceEvidence(
        of known: DeviceRecord, with evidence: AppAttestEvidence?, assurance: Assurance, recording event: AuditEvent
    ) throws(StoreError) -> Bool {
        try check(.replaceEvidence)
        return change(
            known.deviceID, known.appID,
            where: { device in
                device.key == known.key && device.assurance == known.assurance
                    && device.appAttest?.keyID == known.appAttest?.keyID
                    && device.appAttest?.counter == known.appAttest?.counter
                    && device.mustRotate == known.mustRotate && !isAttestedKeyTaken(evidence, of: device)
            }, recording: event
        ) { device in
            device.appAttest = evidence
            device.assurance = assurance
        }
    }

    /// See `DeviceStore`.
    public func advanceCounter(
        _ id: DeviceID, of app: AppID, attestedKey: [UInt8], to counter: UInt32
    ) throws(StoreError) -> Bool {
        try check(.advanceCounter)
        return change(
            id, app,
            where: { device in
                device.appAttest.map { $0.keyID == attestedKey && $0.counter < counter } ?? false
            }, recording: nil
        ) { $0.appAttest?.counter = counter }
    }

    /// See `DeviceStore`.
    public func raiseScheme(_ id: DeviceID, of app: AppID, to scheme: SignatureScheme) throws(StoreError) {
        try check(.raiseScheme)
        _ = change(id, app, where: { $0.highestScheme < scheme }, recording: nil) { $0.highestScheme = scheme }
    }

    /// See `DeviceStore`.
    public func lowerScheme(
        _ id: DeviceID, of app: AppID, to scheme: SignatureScheme, recording event: AuditEvent
    ) throws(StoreError) -> Bool {
        try check(.lowerScheme)
        return change(id, app, where: { _ in true }, recording: event) { $0.highestScheme = scheme }
    }

    /// See `DeviceStore`.
    public func setMustRotate(
        _ id: DeviceID, of app: AppID, to demand: RotationDemand?, recording event: AuditEvent
    ) throws(StoreError) -> Bool {
        try check(.setMustRotate)
        return change(id, app, where: { _ in true }, recording: event) { $0.mustRotate = demand }
    }

    /// See `DeviceStore`.
    public func endOverlap(
        _ id: DeviceID, of app: AppID, key: DevicePublicKey, recording event: AuditEvent
    ) throws(StoreError) -> Bool {
        try check(.endOverlap)
        return change(id, app, where: { $0.key == key && $0.previousKeyUntil != nil }, recording: event) {
            $0.previousKeyUntil = nil
        }
    }

    /// See `DeviceStore`.
    public func holdObserved(of app: AppID, limit: Int, recording event: AuditEvent) throws(StoreError) -> Int {
        try check(.holdObserved)
        let observed = deviceRecords.values.filter {
            $0.appID == app && $0.admittedUnderObservation && $0.status == .registered
        }.prefix(limit)
        for var device in observed {
            device.status = .pending
            device.admittedUnderObservation = false
            deviceRecords[device.deviceID] = device
        }
        if !observed.isEmpty { record(event) }
        return observed.count
    }

    /// See `DeviceStore`.
    public func noteSeen(_ seen: [DeviceID: UnixTime]) throws(StoreError) {
        try check(.noteSeen)
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
                && (query.status == nil || device.status == query.status)
                && (query.platform == nil || device.platform == query.platform)
                && query.registeredFrom.map { device.registeredAt >= $0 } ?? true
                && query.registeredBefore.map { device.registeredAt < $0 } ?? true
                && query.after.map { precedes($0, .init(device)) } ?? true
        }
        return Array(matching.sorted { precedes(.init($0), .init($1)) }.prefix(query.limit))
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

    private func isAttestedKeyTaken(_ evidence: AppAttestEvidence?, of device: DeviceRecord) -> Bool {
        guard let evidence else { return false }
        return deviceRecords.values.contains {
            $0.appID == device.appID && $0.deviceID != device.deviceID && $0.appAttest?.keyID == evidence.keyID
        }
    }

    private func precedes(_ left: DeviceQuery.PageToken, _ right: DeviceQuery.PageToken) -> Bool {
        left.registeredAt == right.registeredAt
            ? left.deviceID.text < right.deviceID.text : left.registeredAt > right.registeredAt
    }
}

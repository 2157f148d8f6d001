public import AuthContract
internal import StrictJSON

/// What operators do with devices. Every change is audited with its actor.
public struct DeviceAdministration: Sendable {
    private let store: any DeviceStore
    private let proofs: (any PendingProofStore)?
    private let apps: AppRegistry
    private let devices: DeviceDirectory
    private let clock: any ServiceClock

    init(
        store: any DeviceStore, proofs: (any PendingProofStore)?, apps: AppRegistry, devices: DeviceDirectory,
        clock: any ServiceClock
    ) {
        self.store = store
        self.apps = apps
        self.proofs = proofs
        self.devices = devices
        self.clock = clock
    }

    /// One page of devices.
    public func list(_ query: DeviceQuery) async throws(StoreError) -> [DeviceRecord] {
        try await store.devices(query)
    }

    /// One device, from the store.
    public func show(_ id: DeviceID, of app: AppID) async throws(StoreError) -> DeviceRecord? {
        try await store.device(id, of: app)
    }

    /// How many devices the app has in each status.
    public func count(of app: AppID) async throws(StoreError) -> [DeviceStatus: Int] {
        try await store.count(of: app)
    }

    /// How many registered devices of the app have each risk metric.
    public func riskMetrics(of app: AppID) async throws(StoreError) -> [Int: Int] {
        try await store.riskMetrics(of: app)
    }

    /// Ends an identity permanently. False if it was revoked or deregistered before, or does not exist.
    public func revoke(_ id: DeviceID, of app: AppID, reason: String?, actor: String) async throws(StoreError) -> Bool {
        try await setStatus(
            id, of: app, from: [.pending, .registered, .rejected], to: .revoked, .deviceRevoked, actor, reason: reason)
    }

    /// Approves a pending device. False if it is not pending, or its proof never verified.
    ///
    /// - Parameters:
    ///   - id: the device.
    ///   - app: its app.
    ///   - allowsUnproven: approves a device whose proof never verified, too. The device then has no assurance and the label
    ///     `unproven`, the audit log says so, and the stored proof is erased.
    ///   - actor: the actor in the audit log.
    public func approve(
        _ id: DeviceID, of app: AppID, allowsUnproven: Bool = false, actor: String
    ) async throws(StoreError) -> Bool {
        try await makePendingIfObserved(id, of: app, actor: actor)
        guard let device = try await store.device(id, of: app) else { return false }
        guard device.assurance.isUnproven else {
            return try await setStatus(id, of: app, from: [.pending], to: .registered, .deviceApproved, actor)
        }
        guard allowsUnproven else { return false }
        let detail = JSONObject([("to", .string(DeviceStatus.registered.rawValue)), ("unproven", true)])
        defer { devices.forget(id) }
        let admitted = try await store.admit(
            id, of: app, known: device.assurance, as: .approvedUnproven,
            recording: event(.deviceApproved, id, app, actor, detail))
        // If this fails, the next round over the pending proofs erases it.
        if admitted { try? await proofs?.erasePendingProof(of: id) }
        return admitted
    }

    /// Makes a device pending that was admitted under observation and whose app now enforces. The switch of the mode may have
    /// missed its row.
    private func makePendingIfObserved(_ id: DeviceID, of app: AppID, actor: String) async throws(StoreError) {
        guard let device = try await store.device(id, of: app), device.admittedUnderObservation,
            device.status == .registered
        else { return }
        try await apps.makeObservedPending(of: app, actor: actor)
    }

    /// Rejects a pending device. False if it is not pending.
    public func reject(_ id: DeviceID, of app: AppID, actor: String) async throws(StoreError) -> Bool {
        try await makePendingIfObserved(id, of: app, actor: actor)
        return try await setStatus(id, of: app, from: [.pending], to: .rejected, .deviceRejected, actor)
    }

    /// Makes a device rotate by a given time. False if there is no such device.
    ///
    /// After that time, a key that must rotate for `compromise` can no longer rotate. The device must register again.
    public func forceRotation(
        _ id: DeviceID, of app: AppID, by: UnixTime, reason: RotationReason = .scheduled, actor: String
    ) async throws(StoreError) -> Bool {
        let detail = JSONObject([("by", .integer(by.seconds)), ("reason", .string(reason.rawValue))])
        let event = event(.deviceMustRotate, id, app, actor, detail)
        defer { devices.forget(id) }
        return try await store.setMustRotate(
            id, of: app, to: RotationDemand(by: by, reason: reason), recording: event)
    }

    /// Lets a device sign under an older scheme again. False if there is no such device.
    public func lowerScheme(
        _ id: DeviceID, of app: AppID, to scheme: SignatureScheme, actor: String
    ) async throws(StoreError) -> Bool {
        let event = event(.deviceSchemeLowered, id, app, actor, JSONObject([("to", .integer(scheme.rawValue))]))
        defer { devices.forget(id) }
        return try await store.lowerScheme(id, of: app, to: scheme, recording: event)
    }

    private func setStatus(
        _ id: DeviceID, of app: AppID, from: Set<DeviceStatus>, to: DeviceStatus, _ code: AuditEvent.Code,
        _ actor: String, reason: String? = nil
    ) async throws(StoreError) -> Bool {
        var detail = JSONObject([("to", .string(to.rawValue))])
        if let reason { detail["reason"] = .string(reason) }
        defer { devices.forget(id) }
        return try await store.setStatus(
            id, of: app, from: from, to: to, recording: event(code, id, app, actor, detail))
    }

    private func event(
        _ code: AuditEvent.Code, _ id: DeviceID, _ app: AppID, _ actor: String, _ detail: JSONObject
    ) -> AuditEvent {
        AuditEvent(code, at: clock.now, actor: actor, appID: app, deviceID: id, detail: detail)
    }
}

public import AuthContract

/// The operations of operators on devices. Every change is audited with its actor.
public struct DeviceAdministration: Sendable {
    private let store: any DeviceStore
    private let proofs: (any PendingProofStore)?
    private let apps: AppRegistry
    let changes: DeviceChanges

    init(store: any DeviceStore, proofs: (any PendingProofStore)?, apps: AppRegistry, changes: DeviceChanges) {
        self.store = store
        self.apps = apps
        self.proofs = proofs
        self.changes = changes
    }

    /// One page of devices.
    public func list(_ query: DeviceQuery) async throws(StoreError) -> [DeviceRecord] {
        try await store.devices(query)
    }

    /// One device, from the store.
    public func show(_ id: DeviceID, of app: AppID) async throws(StoreError) -> DeviceRecord? {
        try await store.device(id, of: app)
    }

    /// The number of the app's devices in each status.
    public func count(of app: AppID) async throws(StoreError) -> [DeviceStatus: Int] {
        try await store.count(of: app)
    }

    /// The number of the app's registered devices for each risk metric.
    public func riskMetrics(of app: AppID) async throws(StoreError) -> [Int: Int] {
        try await store.riskMetrics(of: app)
    }

    // MARK: Decisions

    // Each decision returns the device after the change. It refuses with `UNKNOWN_APP` if there is no such app, with
    // `NOT_FOUND` if the app has no such device, and with `CONFLICT` if the device's state does not allow the decision.
    // Repeating a decision succeeds, but `approve` and `reject` conflict if the device is no longer pending.

    /// Ends an identity permanently. A device that deregistered cannot be revoked.
    @discardableResult
    public func revoke(
        _ id: DeviceID, of app: AppID, reason: String?, actor: String
    ) async throws(Refusal) -> DeviceRecord {
        try await decide(.revoke(reason: reason), id, of: app, actor: actor)
    }

    /// Approves a pending device.
    ///
    /// - Parameters:
    ///   - id: the device.
    ///   - app: its app.
    ///   - allowsUnproven: whether to approve also a device whose proof never verified. Such a device then has no
    ///     assurance and the label `unproven`, the audit log records this, and the stored proof is erased.
    ///   - actor: the actor in the audit log.
    @discardableResult
    public func approve(
        _ id: DeviceID, of app: AppID, allowsUnproven: Bool = false, actor: String
    ) async throws(Refusal) -> DeviceRecord {
        try await decide(.approve(allowsUnproven: allowsUnproven), id, of: app, actor: actor)
    }

    /// Rejects a pending device.
    @discardableResult
    public func reject(_ id: DeviceID, of app: AppID, actor: String) async throws(Refusal) -> DeviceRecord {
        try await decide(.reject, id, of: app, actor: actor)
    }

    /// Makes a pending or registered device rotate by a given time.
    ///
    /// After that time, a key that must rotate for `compromise` can no longer rotate, and the device must register again. A
    /// demand for `compromise` stays until the key is rotated or the demand is lifted. Neither a scheduled demand nor one
    /// with a later time replaces it.
    @discardableResult
    public func forceRotation(
        _ id: DeviceID, of app: AppID, by: UnixTime, reason: RotationReason = .scheduled, actor: String
    ) async throws(Refusal) -> DeviceRecord {
        try await decide(.demandRotation(RotationDemand(by: by, reason: reason)), id, of: app, actor: actor)
    }

    /// Lifts an operator's demand to rotate. If the service refuses the key because of the demand, it accepts the key again.
    @discardableResult
    public func liftRotation(_ id: DeviceID, of app: AppID, actor: String) async throws(Refusal) -> DeviceRecord {
        try await decide(.liftRotationDemand, id, of: app, actor: actor)
    }

    /// Lets a pending or registered device sign under an older scheme again. It never raises the scheme.
    @discardableResult
    public func lowerScheme(
        _ id: DeviceID, of app: AppID, to scheme: SignatureScheme, actor: String
    ) async throws(Refusal) -> DeviceRecord {
        try await decide(.lowerScheme(to: scheme), id, of: app, actor: actor)
    }

    func decide(
        _ command: DeviceCommand, _ id: DeviceID, of app: AppID, ifVersion version: Int64? = nil, actor: String
    ) async throws(Refusal) -> DeviceRecord {
        let record = try await storeCall { () async throws(StoreError) in try await apps.record(app) }
        guard let record else { throw Refusal(.unknownApp, "no app \(app)", hint: "There is no app \(app)") }
        return try await apply(command, id, of: record, ifVersion: version, actor: actor).device
    }

    /// Applies an operator's command to a device of this app.
    func apply(
        _ command: DeviceCommand, _ id: DeviceID, of app: AppRecord, ifVersion version: Int64? = nil,
        isDryRun: Bool = false, actor: String
    ) async throws(Refusal) -> Decided {
        let outcome = try await changes.apply(
            command, to: id, of: app, by: actor, ifVersion: version, isDryRun: isDryRun)
        guard case .done(let device, let isChanged)? = outcome else {
            // Name the id only in the hint: the operator already knows it. The reason is logged, and the log has no device ids.
            throw Refusal(.notFound, "no such device", hint: "\(app.appID) has no device \(id)")
        }
        // If this erasure fails, the background work over the pending proofs erases the proof later.
        if !isDryRun, device.assurance == .approvedUnproven { try? await proofs?.erasePendingProof(of: id) }
        return Decided(device: device, isChanged: isChanged)
    }
}

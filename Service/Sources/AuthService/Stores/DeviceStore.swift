public import AuthContract

/// Where a key is or ever was bound. Thumbprints of keys that no longer count are kept: a key has one role for ever.
public struct KeyBinding: Sendable, Hashable {
    /// What the key is to its device.
    public enum Role: String, Sendable, Hashable {
        case current, previous, retired
    }

    public let appID: AppID
    public let deviceID: DeviceID
    public let role: Role

    /// A binding of its parts.
    public init(appID: AppID, deviceID: DeviceID, role: Role) {
        self.appID = appID
        self.deviceID = deviceID
        self.role = role
    }
}

/// What came of inserting a device.
public enum InsertOutcome: Sendable, Hashable {
    case inserted
    /// The key is or was bound: to this.
    case keyTaken(KeyBinding)
    /// The App Attest key id is already another device's of this app.
    case attestedKeyTaken
    /// The app has as many pending devices as it may.
    case tooManyPending
    /// The app was removed.
    case appMissing
}

/// A rotation, as a condition and what becomes of it.
public struct RotationChange: Sendable {
    public let appID: AppID
    public let deviceID: DeviceID
    /// The key that must still be the current one.
    public let from: DevicePublicKey
    public let to: DevicePublicKey
    public let at: UnixTime
    /// Until when the previous key verifies; nil: not at all.
    public let overlapUntil: UnixTime?
    /// What is proven of the new key.
    public let assurance: Assurance
    /// A new attestation's evidence, where policy allowed one.
    public let evidence: AppAttestEvidence?

    /// A change of its parts.
    public init(
        appID: AppID, deviceID: DeviceID, from: DevicePublicKey, to: DevicePublicKey, at: UnixTime,
        overlapUntil: UnixTime?, assurance: Assurance, evidence: AppAttestEvidence? = nil
    ) {
        self.appID = appID
        self.deviceID = deviceID
        self.from = from
        self.to = to
        self.at = at
        self.overlapUntil = overlapUntil
        self.assurance = assurance
        self.evidence = evidence
    }
}

/// What came of a rotation.
public enum RotationOutcome: Sendable, Hashable {
    case rotated
    /// The current key or the status was no longer what the change requires.
    case conflict
    /// The new key is or ever was bound.
    case keyTaken
}

/// Which devices to list.
public struct DeviceQuery: Sendable {
    public var appID: AppID?
    public var status: DeviceStatus?
    public var platform: Platform?
    public var registeredFrom: UnixTime?
    public var registeredBefore: UnixTime?
    /// Continues after this device of the previous page.
    public var after: PageToken?
    /// 1 to 1000.
    public var limit: Int

    /// Where a page ended: devices are listed newest first, by id where they are of one second.
    public struct PageToken: Sendable, Hashable {
        public let registeredAt: UnixTime
        public let deviceID: DeviceID

        /// A token of its parts.
        public init(registeredAt: UnixTime, deviceID: DeviceID) {
            self.registeredAt = registeredAt
            self.deviceID = deviceID
        }

        /// The token that continues after this device.
        public init(_ device: DeviceRecord) {
            self.init(registeredAt: device.registeredAt, deviceID: device.deviceID)
        }
    }

    /// A query for everything.
    public init(limit: Int = 50) { self.limit = limit }
}

/// Keeps devices.
///
/// What it guarantees: a key has one device and one role for ever, across apps; an App Attest key id has one device of its
/// app; each method is one atomic, durable change of just what it names (no method writes a whole row), and appends its
/// audit event with it, where it changes something.
public protocol DeviceStore: Sendable {
    /// The device, whatever its status.
    func device(_ id: DeviceID, of app: AppID) async throws(StoreError) -> DeviceRecord?

    /// The role of a key, by its thumbprint.
    func binding(of thumbprint: String) async throws(StoreError) -> KeyBinding?

    /// Adds a device, where its app is there: a removal of the app and an insertion never both succeed.
    ///
    /// For a pending device `maximumPending` bounds the app's pending devices of the same kind: those of which nothing is
    /// proven (`Assurance.unproven`), or all others.
    func insert(
        _ device: DeviceRecord, maximumPending: Int, recording event: AuditEvent
    ) async throws(StoreError) -> InsertOutcome

    /// Replaces the current key, where it and the status `registered` still hold. The old key becomes the previous one,
    /// what was previous becomes retired; a demand to rotate is fulfilled by it. Evidence whose attested key is another
    /// device's counts as a taken key.
    ///
    /// Where the row demands the rotation because of a compromise, there is no overlap, and a change with evidence is a
    /// conflict. An operator may make that demand while a provider judges the rotation, so the store decides, in the same
    /// transaction.
    func rotate(_ change: RotationChange, recording event: AuditEvent) async throws(StoreError) -> RotationOutcome

    /// Changes the status, where it is one of `from`; false where it is not.
    func setStatus(
        _ id: DeviceID, of app: AppID, from: Set<DeviceStatus>, to: DeviceStatus, recording event: AuditEvent
    ) async throws(StoreError) -> Bool

    /// Lets a pending device in whose assurance is still `known`, and replaces that; false where either no longer holds.
    func admit(
        _ id: DeviceID, of app: AppID, known: Assurance, as assurance: Assurance, recording event: AuditEvent
    ) async throws(StoreError) -> Bool

    /// Replaces the evidence of a device, as long as what was known when the new evidence was judged still holds: the current
    /// key, the assurance, the App Attest key with its counter, and the demand to rotate. False where one of them changed, or
    /// the new App Attest key is another device's.
    ///
    /// - Parameters:
    ///   - known: the row that the evidence was judged by.
    ///   - evidence: what is kept of App Attest from now on.
    ///   - assurance: what is proven of the device from now on.
    ///   - event: the audit event of the change.
    func replaceEvidence(
        of known: DeviceRecord, with evidence: AppAttestEvidence?, assurance: Assurance, recording event: AuditEvent
    ) async throws(StoreError) -> Bool

    /// Stores an assertion's counter, where it is larger than the stored one of this attested key (its key id); false where
    /// not.
    func advanceCounter(
        _ id: DeviceID, of app: AppID, attestedKey: [UInt8], to counter: UInt32
    ) async throws(StoreError) -> Bool

    /// Raises the highest scheme seen of a device; never lowers it.
    func raiseScheme(_ id: DeviceID, of app: AppID, to scheme: SignatureScheme) async throws(StoreError)

    /// Sets the highest scheme: what an operator does for a device that has to go back.
    func lowerScheme(
        _ id: DeviceID, of app: AppID, to scheme: SignatureScheme, recording event: AuditEvent
    ) async throws(StoreError) -> Bool

    /// Sets or clears an operator's demand to rotate.
    func setMustRotate(
        _ id: DeviceID, of app: AppID, to demand: RotationDemand?, recording event: AuditEvent
    ) async throws(StoreError) -> Bool

    /// Ends the overlap of the rotation that made `key` the current one: the previous key verifies nothing from then on.
    /// False where another key is current, or no overlap is left to end.
    func endOverlap(
        _ id: DeviceID, of app: AppID, key: DevicePublicKey, recording event: AuditEvent
    ) async throws(StoreError) -> Bool

    /// Makes registered devices of the app that were admitted under observation pending, at most `limit` of them, and returns
    /// how many. Their mark is cleared: a device that an operator approves afterwards stays approved.
    ///
    /// Fewer than `limit`: no more are left. A marked row counts as pending already while the app enforces
    /// (`DeviceRecord.status(under:)`), so an interruption between two calls lets nothing in.
    func holdObserved(of app: AppID, limit: Int, recording event: AuditEvent) async throws(StoreError) -> Int

    /// Notes when devices were last seen, in one change: coarse, may be lost. More than `LastSeen.step` devices are refused.
    /// A row changes only where its value is more than `LastSeen.grain` away.
    func noteSeen(_ seen: [DeviceID: UnixTime]) async throws(StoreError)

    /// One page of devices.
    func devices(_ query: DeviceQuery) async throws(StoreError) -> [DeviceRecord]

    /// How many devices the app has in each status.
    func count(of app: AppID) async throws(StoreError) -> [DeviceStatus: Int]

    /// How many registered devices of the app have each risk metric; those without one are not counted.
    func riskMetrics(of app: AppID) async throws(StoreError) -> [Int: Int]

    /// What other processes change in the store, from now on: at the latest one second after it was committed.
    func externalChanges() -> AsyncStream<Void>

    /// Whether other processes give these devices new keys too. Then a device that asks which key counts, after an answer was
    /// lost, is told what the store says at that moment, not what was read a second ago.
    var rotatesElsewhere: Bool { get }
}

/// How coarse the time is at which a device was last seen.
public enum LastSeen {
    /// Seconds by which a stored time may be behind. Writing it less often keeps a busy fleet from rewriting its rows all day.
    public static let grain: Int64 = 3600
    /// Devices in one change, so that it ends well within the deadline of a write.
    public static let step = 1000

    /// Refuses more devices than one change may have.
    public static func check(_ count: Int) throws(StoreError) {
        guard count <= step else { throw StoreError(.unavailable, "\(count) devices in one change, at most \(step)") }
    }
}

extension DeviceStore {
    public var rotatesElsewhere: Bool { true }
}

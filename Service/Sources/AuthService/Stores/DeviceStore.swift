public import AuthContract

/// The device that a key is or was bound to. A store keeps the thumbprints of retired keys: a key belongs to one device for
/// good.
public struct KeyBinding: Sendable, Hashable {
    /// What the device uses the key for.
    public enum Role: String, Sendable, Hashable {
        case current, previous, retired
    }

    public let appID: AppID
    public let deviceID: DeviceID
    public let role: Role

    /// Memberwise initializer.
    public init(appID: AppID, deviceID: DeviceID, role: Role) {
        self.appID = appID
        self.deviceID = deviceID
        self.role = role
    }
}

/// The outcome of inserting a device.
public enum InsertOutcome: Sendable, Hashable {
    case inserted
    /// The key is or was bound to this device.
    case keyTaken(KeyBinding)
    /// Another device of the app has this App Attest key id.
    case attestedKeyTaken
    /// The app has `maximumPending` pending devices of this kind.
    case tooManyPending
    /// The app is not there.
    case appMissing
}

/// A rotation: what must still hold, and the new values.
public struct RotationChange: Sendable {
    public let appID: AppID
    public let deviceID: DeviceID
    /// The key that must still be current.
    public let from: DevicePublicKey
    public let to: DevicePublicKey
    public let at: UnixTime
    /// The time until which the previous key verifies; nil: it no longer does.
    public let overlapUntil: UnixTime?
    /// The assurance from now on.
    public let assurance: Assurance
    /// The evidence of a new attestation; nil: the stored evidence stays.
    public let evidence: AppAttestEvidence?

    /// Memberwise initializer.
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

/// The outcome of a rotation.
public enum RotationOutcome: Sendable, Hashable {
    case rotated
    /// The current key or the status is no longer what the change requires.
    case conflict
    /// The new key is or was bound, or the new App Attest key id belongs to another device of the app.
    case keyTaken
}

/// Which devices to list. All conditions apply together; nil is no condition.
public struct DeviceQuery: Sendable {
    public var appID: AppID?
    public var status: DeviceStatus?
    public var platform: Platform?
    /// Registered then or later.
    public var registeredFrom: UnixTime?
    /// Registered earlier.
    public var registeredBefore: UnixTime?
    /// Continues after this device of the previous page.
    public var after: PageToken?
    /// 1 to 1000. A value outside becomes the nearest one inside, so a store need not check it.
    public var limit: Int { didSet { limit = Self.bounded(limit) } }

    /// The last device of a page.
    public struct PageToken: Sendable, Hashable {
        public let registeredAt: UnixTime
        public let deviceID: DeviceID

        /// Memberwise initializer.
        public init(registeredAt: UnixTime, deviceID: DeviceID) {
            self.registeredAt = registeredAt
            self.deviceID = deviceID
        }

        /// The token that continues after this device.
        public init(_ device: DeviceRecord) {
            self.init(registeredAt: device.registeredAt, deviceID: device.deviceID)
        }
    }

    /// A query without conditions.
    public init(limit: Int = 50) { self.limit = Self.bounded(limit) }

    private static func bounded(_ limit: Int) -> Int { min(max(limit, 1), 1000) }
}

/// Keeps devices.
///
/// Guarantees:
/// - Each call is one atomic change, durable when it returns. It changes what it names and nothing else: no call writes a
///   whole row.
/// - A change and its audit event are one transaction. A call that returns false or 0, refuses or throws changes nothing and
///   appends no event.
/// - A device id exists once, across apps. A call that names a device with another app finds nothing.
/// - A key belongs to one device for good, across apps, also after that device has deregistered or rotated.
/// - An App Attest key id belongs to one device of an app. Another app may have a device with the same one.
public protocol DeviceStore: Sendable {
    /// The device, whatever its status; nil if the app has none with this id.
    func device(_ id: DeviceID, of app: AppID) async throws(StoreError) -> DeviceRecord?

    /// The device of a key, by the key's thumbprint; nil if the key was never bound.
    func binding(of thumbprint: String) async throws(StoreError) -> KeyBinding?

    /// Adds a device and binds its keys. Throws if its id exists.
    ///
    /// The removal of an app and an insertion into it never both succeed.
    ///
    /// - Parameters:
    ///   - device: the device; its app must be there.
    ///   - maximumPending: bounds a pending device: the app may have this many pending devices of the same kind, itself
    ///     included. One kind is unproven (`Assurance.unproven`), the other all the rest. Devices of other apps and with
    ///     another status do not count, and a device with another status is not bounded.
    ///   - event: the audit event of the insertion.
    func insert(
        _ device: DeviceRecord, maximumPending: Int, recording event: AuditEvent
    ) async throws(StoreError) -> InsertOutcome

    /// Replaces the current key. Of several callers that rotate from one key, or to one key, one succeeds.
    ///
    /// The old key becomes the previous one, and the previous one becomes retired. The key, `previousKey` and its time,
    /// `keyRotatedAt` and the assurance change; the demand to rotate is cleared; evidence is replaced if the change has some.
    ///
    /// The outcome is `conflict` unless `from` is the current key and the status is `registered`. If the row demands the
    /// rotation because of a compromise, a change with evidence is a conflict too, and there is no overlap. An operator may
    /// make that demand while a provider judges the rotation, so the store decides, in the same transaction.
    func rotate(_ change: RotationChange, recording event: AuditEvent) async throws(StoreError) -> RotationOutcome

    /// Changes the status. Returns false if it is none of `from`, or the device is not there.
    func setStatus(
        _ id: DeviceID, of app: AppID, from: Set<DeviceStatus>, to: DeviceStatus, recording event: AuditEvent
    ) async throws(StoreError) -> Bool

    /// Makes a pending device registered, with a new assurance. Returns false if it is not pending, or its assurance is no
    /// longer `known`.
    func admit(
        _ id: DeviceID, of app: AppID, known: Assurance, as assurance: Assurance, recording event: AuditEvent
    ) async throws(StoreError) -> Bool

    /// Replaces the evidence and the assurance of a device. Returns false if its current key, assurance, demand to rotate, App
    /// Attest key id or counter is no longer as in `known`, or if the new App Attest key id is another device's.
    ///
    /// - Parameters:
    ///   - known: the row that the new evidence was judged by.
    ///   - evidence: the new evidence; nil removes it.
    ///   - assurance: the new assurance.
    ///   - event: the audit event of the change.
    func replaceEvidence(
        of known: DeviceRecord, with evidence: AppAttestEvidence?, assurance: Assurance, recording event: AuditEvent
    ) async throws(StoreError) -> Bool

    /// Stores the counter of an assertion. Returns false unless it is larger than the stored one and `attestedKey` is the
    /// stored key id: of several callers with one value, one succeeds. It appends no event.
    func advanceCounter(
        _ id: DeviceID, of app: AppID, attestedKey: [UInt8], to counter: UInt32
    ) async throws(StoreError) -> Bool

    /// Raises the highest scheme of a device; never lowers it. It appends no event.
    func raiseScheme(_ id: DeviceID, of app: AppID, to scheme: SignatureScheme) async throws(StoreError)

    /// Sets the highest scheme, for an operator whose device must go back. Returns false if the device is not there.
    func lowerScheme(
        _ id: DeviceID, of app: AppID, to scheme: SignatureScheme, recording event: AuditEvent
    ) async throws(StoreError) -> Bool

    /// Sets an operator's demand to rotate; nil clears it. Returns false if the device is not there.
    func setMustRotate(
        _ id: DeviceID, of app: AppID, to demand: RotationDemand?, recording event: AuditEvent
    ) async throws(StoreError) -> Bool

    /// Ends the overlap of the rotation that made `key` the current one: `previousKeyUntil` becomes nil. Returns false if
    /// another key is current, or there is no overlap.
    func endOverlap(
        _ id: DeviceID, of app: AppID, key: DevicePublicKey, recording event: AuditEvent
    ) async throws(StoreError) -> Bool

    /// Makes registered devices of the app that were admitted under observation pending, and clears their mark, so that a device
    /// stays approved once an operator approves it. Returns how many; fewer than `limit` (1 to 1000): none are left.
    ///
    /// A marked row counts as pending already while the app enforces (`DeviceRecord.status(under:)`), so an interruption
    /// between two calls lets nothing in.
    func holdObserved(of app: AppID, limit: Int, recording event: AuditEvent) async throws(StoreError) -> Int

    /// Writes when devices were last seen, in one transaction. It may be lost, and appends no event.
    ///
    /// A row changes only if it has no time, or one that is more than `LastSeen.grain` before or after the new one. Unknown
    /// devices are skipped. More than `LastSeen.step` devices: it throws and writes nothing.
    func noteSeen(_ seen: [DeviceID: UnixTime]) async throws(StoreError)

    /// One page of devices: the latest `registeredAt` first, and within one second in the order of the ids' texts.
    func devices(_ query: DeviceQuery) async throws(StoreError) -> [DeviceRecord]

    /// The number of devices that the app has in each status; a status without devices is absent.
    func count(of app: AppID) async throws(StoreError) -> [DeviceStatus: Int]

    /// The number of registered devices of the app with each risk metric. Devices without a metric do not count.
    func riskMetrics(of app: AppID) async throws(StoreError) -> [Int: Int]

    /// A stream for one listener, with an element at most one second after another process committed a change. One element
    /// may stand for several changes, and changes of this process may cause one too.
    ///
    /// The stream stays open until the store is closed or its listener cancels: the service empties its caches by it, and a
    /// stream that ends leaves revocations of other processes unseen until the cache life is over.
    func externalChanges() -> AsyncStream<Void>

    /// Whether other processes rotate keys too. If so, the service reads the store, not its cache, to tell a device which key
    /// counts after a lost answer.
    var rotatesElsewhere: Bool { get }
}

/// Bounds of writing when devices were last seen.
public enum LastSeen {
    /// Seconds by which a stored time may be behind, so that a busy fleet does not rewrite its rows all day.
    public static let grain: Int64 = 3600
    /// Devices in one call, so that it ends well within the deadline of a write.
    public static let step = 1000

    /// Throws if one call has too many devices.
    public static func check(_ count: Int) throws(StoreError) {
        guard count <= step else { throw StoreError(.unavailable, "\(count) devices in one change, at most \(step)") }
    }
}

extension DeviceStore {
    public var rotatesElsewhere: Bool { true }
}

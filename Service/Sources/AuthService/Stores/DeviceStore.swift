public import AuthContract

/// The device that a key is or was bound to. A store keeps the thumbprints of retired keys: a key belongs to one device forever.
public struct KeyBinding: Sendable, Hashable {
    /// The role of the key for the device.
    public enum Role: String, Sendable, Hashable {
        /// The current key.
        case current
        /// The key before the current one. It may still be accepted, during the overlap after a rotation.
        case previous
        /// An older key. Only its thumbprint is kept.
        case retired
    }

    /// The app of the device.
    public let appID: AppID
    /// The device that the key belongs to.
    public let deviceID: DeviceID
    /// The role of the key for that device.
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
    /// The device is stored.
    case inserted
    /// A key of the new device is or was bound to the device that the `KeyBinding` names.
    case keyTaken(KeyBinding)
    /// Another device of the app has this App Attest key id.
    case attestedKeyTaken
    /// The app already has `maximumPending` pending devices of the same kind. The kinds are devices that wait for
    /// approval, and unproven devices, which wait for their attestation provider.
    case tooManyPending
    /// The app does not exist, or its record has changed since the device was judged under it.
    case appChanged
}

/// A decision about a device: the row before and after it.
public struct DeviceChange: Sendable, Hashable {
    /// The row as it was read. Its version must still be the stored one.
    public let before: DeviceRecord
    /// The row after the change, with the version of `before`.
    public let after: DeviceRecord
    /// The audit event of the change.
    public let event: AuditEvent

    /// A change. Both rows must be of the same device and app.
    public init(from before: DeviceRecord, to after: DeviceRecord, event: AuditEvent) {
        self.before = before
        self.after = after
        self.event = event
    }

    /// Whether the key is replaced: the current one becomes the previous one, and the previous one becomes retired.
    public var replacesKey: Bool { before.key != after.key }
    /// Whether the App Attest data is replaced. If not, the store keeps its stored counter and receipt.
    public var replacesAppAttest: Bool { before.appAttest?.keyID != after.appAttest?.keyID }
    /// Whether an operator lowers the scheme.
    public var lowersScheme: Bool { after.highestScheme < before.highestScheme }
    /// The row after the change, with its new version.
    public var saved: DeviceRecord {
        var saved = after
        saved.version = before.version + 1
        return saved
    }
}

/// The outcome of saving a change.
public enum SaveOutcome: Sendable, Hashable {
    /// The change is stored, under the next version.
    case saved
    /// The row no longer has the version of `DeviceChange.before`, a `DeviceFact` that `save` compares has changed, or
    /// the device does not exist.
    case conflict
    /// The new key is or was bound, or the new App Attest key id belongs to another device of the app.
    case keyTaken
}

/// A value of a device that only grows, unless a `DeviceChange` replaces it. Raising it does not change the row's version.
public enum DeviceFact: Sendable, Hashable {
    /// The counter of an assertion by the App Attest key with this id.
    case counter(UInt32, ofAppAttestKey: [UInt8])
    /// The highest scheme under which a request verified.
    case scheme(SignatureScheme)
}

/// The conditions for a list of devices. All apply together; nil is no condition.
public struct DeviceQuery: Sendable {
    /// Devices of this app.
    public var appID: AppID?
    /// Devices of the apps that a credential is for.
    public var scope = CredentialScope.allApps
    /// The device with this id.
    public var deviceID: DeviceID?
    /// Devices whose ids have this hash. The log names devices by this hash. So a store needs an index on it.
    public var deviceHash: DeviceHash?
    /// Devices in this stored state.
    public var status: DeviceStatus?
    /// Devices of this platform.
    public var platform: Platform?
    /// Devices that registered at this time or later.
    public var registeredFrom: UnixTime?
    /// Devices that registered before this time.
    public var registeredBefore: UnixTime?
    /// The order of the pages.
    public var order = Order.newest
    /// Continues after this device of the previous page, in the same order.
    public var after: PageToken?
    /// The largest number of devices: 1 to 1000. A value outside is clamped, so stores need not check it.
    public var limit: Int { didSet { limit = Self.bounded(limit) } }

    /// The order of devices, by the time of registration.
    public enum Order: String, Sendable, Hashable, CaseIterable {
        /// The latest `registeredAt` first, and within one second in the order of the ids' texts.
        case newest
        /// The reverse of `newest`.
        case oldest
    }

    /// The last device of a page.
    public struct PageToken: Sendable, Hashable {
        /// When the device registered: pages are in this order.
        public let registeredAt: UnixTime
        /// The device's id. It orders devices that registered in one second.
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

    /// Whether the query asks for the devices of all apps in one status other than `registered`, the status of most devices.
    package var listsUnregisteredOfAllApps: Bool { appID == nil && status != nil && status != .registered }

    /// A query without conditions.
    public init(limit: Int = 50) { self.limit = Self.bounded(limit) }

    private static func bounded(_ limit: Int) -> Int { min(max(limit, 1), 1000) }
}

/// Keeps devices. A store does not apply the protocol's rules: it saves a decision if the row has not changed since
/// it was read.
///
/// Guarantees:
/// - Each call is one atomic change, durable when it returns.
/// - A change and its audit event are one transaction. A call that saves nothing, refuses or throws changes nothing
///   and appends no event.
/// - A device id exists once, across apps. A call that names a device with another app finds nothing.
/// - A key belongs to one device forever, across apps, even after that device has deregistered or rotated.
/// - An App Attest key id belongs to one device of an app. Another app may have a device with the same key id.
public protocol DeviceStore: Sendable {
    /// The device, whatever its status; nil if the app has none with this id.
    func device(_ id: DeviceID, of app: AppID) async throws(StoreError) -> DeviceRecord?

    /// The device of a key, by the key's thumbprint; nil if the key was never bound.
    func binding(of thumbprint: String) async throws(StoreError) -> KeyBinding?

    /// Adds a device and binds its keys. Its version is stored unchanged. Throws if its id exists.
    ///
    /// Two calls never both succeed: the removal or replacement of an app's record, and an insertion that was judged under that
    /// record.
    ///
    /// - Parameters:
    ///   - device: the device.
    ///   - app: the stored record that the device was judged under. It must still be identical, byte for byte.
    ///   - maximumPending: the largest number of the app's pending devices of the same kind, including this one. The kinds are
    ///     unproven devices (`Assurance.unproven`) and all others. Devices of other apps or with another status are not counted,
    ///     and the bound does not apply to a device with another status.
    ///   - event: the audit event of the insertion.
    func insert(
        _ device: DeviceRecord, under app: StoredApp, maximumPending: Int, recording event: AuditEvent
    ) async throws(StoreError) -> InsertOutcome

    /// Saves changes whose devices still have the version of `DeviceChange.before`, each with its event, in one
    /// transaction. Each stored version increases by one. If several callers start from the same row, one succeeds.
    ///
    /// `lastSeen` and `registeredAt` are never written. `highestScheme` is written only if `lowersScheme`. The App Attest
    /// data, including its counter and receipt, is written only if `replacesAppAttest`. A change that replaces these data
    /// also conflicts if the stored counter or scheme differs from `before`, because `raise(_:of:app:)` changes them
    /// without a new version. If `replacesKey`, the new key is bound, the current key becomes the previous one, and the
    /// previous key becomes retired.
    ///
    /// - Parameter changes: 1 to 1000, of different devices.
    /// - Returns: the outcome of each change.
    func save(_ changes: [DeviceChange]) async throws(StoreError) -> [SaveOutcome]

    /// Raises a fact. Returns false unless the value is larger than the stored one: if several callers pass the same value, one
    /// succeeds. A counter is only raised if its App Attest key is the stored one. The call appends no event and keeps the
    /// version.
    func raise(_ fact: DeviceFact, of id: DeviceID, app: AppID) async throws(StoreError) -> Bool

    /// Registered devices of the app that were admitted only because the app was in mode `observe`. At most `limit` (1 to
    /// 1000), in any order.
    func observedDevices(of app: AppID, limit: Int) async throws(StoreError) -> [DeviceRecord]

    /// Writes when devices were last seen, in one transaction. A crash may lose the times. The call appends no event.
    ///
    /// A row changes only if it has no time, or one that is more than `LastSeen.grain` before or after the new one. Unknown
    /// devices are skipped. With more than `LastSeen.step` devices, it throws and writes nothing.
    func writeLastSeen(_ seen: [DeviceID: UnixTime]) async throws(StoreError)

    /// One page of devices, in the order of the query.
    func devices(_ query: DeviceQuery) async throws(StoreError) -> [DeviceRecord]

    /// One page of the devices that are not deregistered, the newest first as in `devices(_:)`. A service reads all pages when it
    /// starts, so a page must cost little.
    ///
    /// - Parameters:
    ///   - after: continues after this device of the previous page; nil: begins with the newest.
    ///   - limit: 1 to 1000.
    func knownIDs(after: DeviceQuery.PageToken?, limit: Int) async throws(StoreError) -> [DeviceQuery.PageToken]

    /// The number of devices that the app has in each status; a status without devices is absent.
    func count(of app: AppID) async throws(StoreError) -> [DeviceStatus: Int]

    /// The number of the app's registered devices for each risk metric. Devices without a metric are not counted.
    func riskMetrics(of app: AppID) async throws(StoreError) -> [Int: Int]

    /// A stream for one listener, with an element at most one second after another process committed a change. One element may
    /// represent several changes, and changes by this process may cause one too.
    ///
    /// The stream stays open until the store is closed or its listener cancels. The service uses it to empty its caches. If the
    /// stream ended, revocations by other processes would be unseen until cached rows expire.
    func externalChanges() -> AsyncStream<Void>

    /// Whether another process may have rotated the device's key since this row was read. By default true. If true, the service
    /// reads the row again, so that a device that lost the answer to a rotation learns its current key. If only this process
    /// rotates keys, the store returns false. Other stores may compare key and version with the stored ones, which costs less
    /// than reading the row.
    func mayHaveRotatedElsewhere(_ device: DeviceRecord) async throws(StoreError) -> Bool
}

/// Bounds for writing last-seen times.
public enum LastSeen {
    /// A new time replaces the stored one only if it differs by more than these seconds, so that a busy fleet rewrites few rows.
    public static let grain: Int64 = 3600
    /// The largest number of devices in one call, so that it ends well within the deadline of a write.
    public static let step = 1000

    /// Throws if one call has too many devices.
    public static func check(_ count: Int) throws(StoreError) {
        guard count <= step else { throw StoreError(.unavailable, "\(count) devices in one change, at most \(step)") }
    }
}

extension DeviceStore {
    public func mayHaveRotatedElsewhere(_ device: DeviceRecord) async throws(StoreError) -> Bool { true }

    /// Saves one change.
    public func save(_ change: DeviceChange) async throws(StoreError) -> SaveOutcome {
        try await save([change]).first ?? .conflict
    }
}

public import AuthContract
public import StrictJSON

/// A change: its actor, its time, and the values before and after. A store appends the event in the transaction of the change.
public struct AuditEvent: Sendable, Hashable {
    /// Stable codes.
    public enum Code: String, Sendable, Hashable, CaseIterable {
        case appAdded = "app.added"
        case appChanged = "app.changed"
        case appRemoved = "app.removed"
        case deviceRegistered = "device.registered"
        case devicePending = "device.pending"
        case deviceApproved = "device.approved"
        case deviceRejected = "device.rejected"
        case deviceRevoked = "device.revoked"
        case deviceDeregistered = "device.deregistered"
        case deviceEvidenceReplaced = "device.evidence_replaced"
        case deviceSchemeLowered = "device.scheme_lowered"
        case deviceMustRotate = "device.must_rotate"
        case deviceRotationLifted = "device.rotation_lifted"
        case keyRotated = "device.key_rotated"
        case overlapEnded = "device.overlap_ended"
        case credentialCreated = "credential.created"
        case credentialRevoked = "credential.revoked"
        case credentialNarrowed = "credential.narrowed"
        case signingKeyRotated = "signing_key.rotated"
        case signingKeyRevoked = "signing_key.revoked"
        case serviceKeyRotated = "service_key.rotated"
        case evidenceExported = "evidence.exported"
        case evidenceErased = "evidence.erased"
        case claimKeeperChanged = "claim_keeper.changed"
        case securityEvent = "security.event"
    }

    public let code: Code
    public let at: UnixTime
    /// The actor: `device`, `cli`, `admin:<credential>`, `service`.
    public let actor: String
    public let appID: AppID?
    public let deviceID: DeviceID?
    /// The values before and after, or other information for a reader. It never contains secrets, proofs or keys.
    public let detail: JSONObject

    /// Memberwise initializer.
    public init(
        _ code: Code, at: UnixTime, actor: String, appID: AppID? = nil, deviceID: DeviceID? = nil,
        detail: JSONObject = JSONObject()
    ) {
        self.code = code
        self.at = at
        self.actor = actor
        self.appID = appID
        self.deviceID = deviceID
        self.detail = detail
    }

    /// The detail as a log stores it: JSON on one line, which the hash covers.
    public var detailText: String { JSONValue.object(detail).text() }
}

/// The audit log.
///
/// Guarantees:
/// - It only grows. Events have the numbers 1, 2, 3… without a gap, in the order of one hash chain (`AuditChain`), also when
///   many callers append at once.
/// - The events that other stores append with their changes are in the same chain.
/// - An event is read as it was appended, its detail included.
public protocol AuditLog: Sendable {
    /// Appends an event that does not belong to another store's change.
    func append(_ event: AuditEvent) async throws(StoreError)

    /// Events, newest first. All conditions apply together.
    ///
    /// - Parameters:
    ///   - app: only events of this app; nil: events of all apps, and of none.
    ///   - device: only events of this device.
    ///   - before: only events with a smaller sequence number.
    ///   - limit: 1 to 1000.
    func events(
        app: AppID?, device: DeviceID?, before: Int64?, limit: Int
    ) async throws(StoreError) -> [RecordedAuditEvent]

    /// The number of the first event that does not continue the hash chain; nil if all do.
    func firstBrokenLink() async throws(StoreError) -> Int64?

    /// The number and hash of an event. Pass nil for the last event. Returns nil if there is none. The event's other members
    /// need not be readable.
    func link(at sequence: Int64?) async throws(StoreError) -> AuditLink?
}

/// The stored number and hash of an event.
public struct AuditLink: Sendable, Hashable {
    public let sequence: Int64
    public let hash: [UInt8]

    /// Memberwise initializer.
    public init(sequence: Int64, hash: [UInt8]) {
        self.sequence = sequence
        self.hash = hash
    }
}

/// A stored event.
public struct RecordedAuditEvent: Sendable, Hashable {
    /// 1, 2, 3… without a gap.
    public let sequence: Int64
    public let event: AuditEvent
    /// SHA-256 over the previous event's hash and this event, as `AuditChain` says.
    public let hash: [UInt8]

    /// Memberwise initializer.
    public init(sequence: Int64, event: AuditEvent, hash: [UInt8]) {
        self.sequence = sequence
        self.event = event
        self.hash = hash
    }
}

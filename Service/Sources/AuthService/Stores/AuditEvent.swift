public import AuthContract
public import StrictJSON

/// Something that was changed, by whom, from what to what: appended with the change, in one transaction.
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
        case keyRotated = "device.key_rotated"
        case overlapEnded = "device.overlap_ended"
        case credentialCreated = "credential.created"
        case credentialRevoked = "credential.revoked"
        case signingKeyRotated = "signing_key.rotated"
        case signingKeyRevoked = "signing_key.revoked"
        case serviceKeyRotated = "service_key.rotated"
        case evidenceExported = "evidence.exported"
        case evidenceErased = "evidence.erased"
        case securityEvent = "security.event"
    }

    public let code: Code
    public let at: UnixTime
    /// Who did it: `device`, `cli`, `admin:<credential>`, `service`.
    public let actor: String
    public let appID: AppID?
    public let deviceID: DeviceID?
    /// Before and after, or what else a reader needs. Never secrets, proofs or keys.
    public let detail: JSONObject

    /// An event of its parts.
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

    /// The detail as a log stores it: JSON on one line.
    public var detailText: String { JSONValue.object(detail).text() }
}

/// Appends what was changed where no other store's change goes with it.
public protocol AuditLog: Sendable {
    /// Appends an event.
    func append(_ event: AuditEvent) async throws(StoreError)

    /// Events, newest first, before the sequence number `before`.
    func events(
        app: AppID?, device: DeviceID?, before: Int64?, limit: Int
    ) async throws(StoreError) -> [RecordedAuditEvent]

    /// The number of the first event that does not continue the hash chain; nil where all do.
    func firstBrokenLink() async throws(StoreError) -> Int64?

    /// The event with this number, or the last one for nil, as a link of the chain; nil where there is none. Also of an
    /// event whose other members cannot be read.
    func link(at sequence: Int64?) async throws(StoreError) -> AuditLink?
}

/// Number and hash of an event, as they are stored.
public struct AuditLink: Sendable, Hashable {
    public let sequence: Int64
    public let hash: [UInt8]

    /// A link of its parts.
    public init(sequence: Int64, hash: [UInt8]) {
        self.sequence = sequence
        self.hash = hash
    }
}

/// An event as it stands in the log.
public struct RecordedAuditEvent: Sendable, Hashable {
    /// 1, 2, 3… without a gap.
    public let sequence: Int64
    public let event: AuditEvent
    /// SHA-256 over the previous event's hash and this event, as `AuditChain` says.
    public let hash: [UInt8]

    /// A recorded event of its parts.
    public init(sequence: Int64, event: AuditEvent, hash: [UInt8]) {
        self.sequence = sequence
        self.event = event
        self.hash = hash
    }
}

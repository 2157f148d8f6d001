public import AuthContract
public import StrictJSON

/// A change: its actor, its time, and the values before and after. A store appends the event in the transaction of the change.
public struct AuditEvent: Sendable, Hashable {
    /// The codes of the events. They never change.
    public enum Code: String, Sendable, Hashable, CaseIterable {
        /// An app record was added.
        case appAdded = "app.added"
        /// An app record was replaced. The detail has the record before and after, with masked secrets.
        case appChanged = "app.changed"
        /// An app record was removed.
        case appRemoved = "app.removed"
        /// A device registered, and may sign.
        case deviceRegistered = "device.registered"
        /// A device is pending: it waits for approval or for its attestation provider. It is new, or it was admitted only in
        /// mode `observe` and the app now enforces.
        case devicePending = "device.pending"
        /// A pending device became registered: an operator approved it, or policy admits it now.
        case deviceApproved = "device.approved"
        /// A pending device was rejected: by an operator, or because its proof failed or could not be checked in time.
        case deviceRejected = "device.rejected"
        /// An operator permanently revoked a device.
        case deviceRevoked = "device.revoked"
        /// A device deregistered itself.
        case deviceDeregistered = "device.deregistered"
        /// The proof of a device was replaced: its key registered again with a better or newer proof, or its pending proof
        /// verified after an outage of the provider.
        case deviceEvidenceReplaced = "device.evidence_replaced"
        /// An operator lowered the scheme that a device must use.
        case deviceSchemeLowered = "device.scheme_lowered"
        /// An operator set a time by which a device must rotate its key.
        case deviceMustRotate = "device.must_rotate"
        /// An operator lifted a demand to rotate.
        case deviceRotationLifted = "device.rotation_lifted"
        /// Devices that were deregistered or rejected long ago were forgotten. Each leaves only a tombstone.
        case devicesForgotten = "devices.forgotten"
        /// A device replaced its key.
        case keyRotated = "device.key_rotated"
        /// A repeated rotation reported that the previous key is compromised. From then on, that key was not accepted.
        case overlapEnded = "device.overlap_ended"
        /// An operator created a credential.
        case credentialCreated = "credential.created"
        /// A credential was revoked: by an operator, or because its last app was removed.
        case credentialRevoked = "credential.revoked"
        /// A credential lost an app that was removed.
        case credentialNarrowed = "credential.narrowed"
        /// A person signed in to the console. The actor is the credential.
        case consoleSignedIn = "console.signed_in"
        /// A person signed out of the console: of one session, or of all sessions of the person's credential at one node.
        case consoleSignedOut = "console.signed_out"
        /// A new key for device tokens was added.
        case signingKeyRotated = "signing_key.rotated"
        /// A key for device tokens was revoked. Its tokens are no longer valid.
        case signingKeyRevoked = "signing_key.revoked"
        /// Everything sealed was sealed again with a new service key.
        case serviceKeyRotated = "service_key.rotated"
        /// A node started with another version of the service than the node that started before it. The detail has both versions.
        case serviceVersionChanged = "service.version_changed"
        /// An operator read the document of a recorded refusal.
        case evidenceExported = "evidence.exported"
        /// An operator erased recorded refusals.
        case evidenceErased = "evidence.erased"
        /// Another store now keeps the replay claims (the record of accepted requests), or the same store keeps them under a new id.
        case claimKeeperChanged = "claim_keeper.changed"
        /// An operator added a webhook.
        case webhookAdded = "webhook.added"
        /// A webhook was changed: by an operator, because its app was removed, or because its receiver answered 410 Gone.
        case webhookChanged = "webhook.changed"
        /// A webhook was removed: by an operator, or because its last app was removed.
        case webhookRemoved = "webhook.removed"
        /// An operator chose the event with which a webhook's deliveries continue.
        case webhookResent = "webhook.resent"
        /// The database was made from a backup. Events between the backup and this event are not in the log.
        case databaseRestored = "database.restored"
        /// Something that no honest client does, or that an operator should see. The detail names the kind.
        case securityEvent = "security.event"

        /// Whether an event may name a device.
        public var isOfDevice: Bool {
            switch self {
            case .deviceRegistered, .devicePending, .deviceApproved, .deviceRejected, .deviceRevoked,
                .deviceDeregistered, .deviceEvidenceReplaced, .deviceSchemeLowered, .deviceMustRotate,
                .deviceRotationLifted, .keyRotated, .overlapEnded, .evidenceExported, .evidenceErased, .securityEvent:
                true
            case .appAdded, .appChanged, .appRemoved, .devicesForgotten, .credentialCreated, .credentialRevoked,
                .credentialNarrowed, .consoleSignedIn, .consoleSignedOut, .signingKeyRotated, .signingKeyRevoked,
                .serviceKeyRotated, .serviceVersionChanged, .claimKeeperChanged, .webhookAdded, .webhookChanged,
                .webhookRemoved, .webhookResent, .databaseRestored:
                false
            }
        }
    }

    /// The code of the change; nil if the row is damaged, or if only a newer version knows the code.
    public let code: Code?
    /// The text of the code, even if this version does not know the code.
    public let codeText: String
    /// The time of the change, on the service's clock.
    public let at: UnixTime
    /// The actor, such as `device`, `service`, `cli:<user>` or `admin:<credential id>`.
    public let actor: String
    /// The app that the change concerns; nil: none, or several.
    public let appID: AppID?
    /// The device that the change concerns; nil: none.
    public let deviceID: DeviceID?
    /// The values before and after, or other information for a reader. It never contains secrets, proofs or keys.
    public let detail: JSONObject

    /// An event of this version.
    public init(
        _ code: Code, at: UnixTime, actor: String, appID: AppID? = nil, deviceID: DeviceID? = nil,
        detail: JSONObject = JSONObject()
    ) {
        self.init(
            codeText: code.rawValue, at: at, actor: actor, appID: appID, deviceID: deviceID, detail: detail)
    }

    /// An event of any version, as a log keeps it.
    package init(
        codeText: String, at: UnixTime, actor: String, appID: AppID?, deviceID: DeviceID?, detail: JSONObject
    ) {
        (self.codeText, code) = (codeText, Code(rawValue: codeText))
        self.at = at
        self.actor = actor
        self.appID = appID
        self.deviceID = deviceID
        self.detail = detail
    }

    /// The detail as a log stores it: JSON on one line. The event's hash covers this text.
    public var detailText: String { JSONValue.object(detail).text() }

    /// The detail for a log: at most 1 MiB of JSON, because more could not be read back.
    ///
    /// - Throws: if it is larger. The change that the event is about must fail then.
    public func storedDetail() throws(StoreError) -> String {
        let text = detailText
        guard text.utf8.count <= JSONValue.Limits.stored.bytes else {
            throw StoreError(.unreadable, "the detail of \(codeText) has \(text.utf8.count) bytes")
        }
        return text
    }
}

extension Set<AuditEvent.Code> {
    /// Whether the set is not empty, and no event with one of its codes names a device. Such events are few, and a store finds
    /// them by an index.
    public var areOfNoDevice: Bool { !isEmpty && !contains { $0.isOfDevice } }
}

/// The audit log.
///
/// Guarantees:
/// - Events are never changed, and only archived events are removed (`AuditArchiveStore`). Events have the numbers 1,
///   2, 3… without a gap, in the order of one hash chain (`AuditChain`), even if many callers append concurrently.
/// - The events that other stores append with their changes are in the same chain.
/// - An event is read exactly as it was appended, with its detail. An event with too much detail is refused
///   (`AuditEvent.storedDetail()`).
public protocol AuditLog: Sendable {
    /// Appends an event that does not belong to another store's change.
    func append(_ event: AuditEvent) async throws(StoreError)

    /// Events, newest first. All conditions apply together.
    ///
    /// A rare code is found by reading all events between `after` and `before`. So the caller must limit this range.
    ///
    /// - Parameters:
    ///   - app: only events of this app; nil: all events, including those without an app.
    ///   - device: only events of this device.
    ///   - codes: only events with one of these codes; nil: all events.
    ///   - after: only events with a greater sequence number; 0: down to the first one.
    ///   - before: only events with a smaller sequence number; nil: from the newest one.
    ///   - limit: 1 to 1000.
    func events(
        app: AppID?, device: DeviceID?, codes: Set<AuditEvent.Code>?, after: Int64, before: Int64?, limit: Int
    ) async throws(StoreError) -> [RecordedAuditEvent]

    /// Events in the order in which they were appended. All conditions apply together.
    ///
    /// - Parameters:
    ///   - app: only events of this app; nil: all events, including those without an app.
    ///   - device: only events of this device.
    ///   - after: only events with a greater sequence number; 0: from the first one.
    ///   - limit: 1 to 1000.
    func events(
        app: AppID?, device: DeviceID?, after: Int64, limit: Int
    ) async throws(StoreError) -> [RecordedAuditEvent]

    /// The number of the first event that does not continue the hash chain; nil if all do.
    func firstBrokenLink() async throws(StoreError) -> Int64?

    /// The number and hash of an event. Pass nil for the last event. Returns nil if there is none. The event's other members
    /// need not be readable.
    func link(at sequence: Int64?) async throws(StoreError) -> AuditLink?
}

extension AuditLog {
    /// Events with any code, newest first.
    ///
    /// - Parameters:
    ///   - app: only events of this app; nil: all events, including those without an app.
    ///   - device: only events of this device.
    ///   - before: only events with a smaller sequence number; nil: from the newest one.
    ///   - limit: 1 to 1000.
    public func events(
        app: AppID?, device: DeviceID?, before: Int64?, limit: Int
    ) async throws(StoreError) -> [RecordedAuditEvent] {
        try await events(app: app, device: device, codes: nil, after: 0, before: before, limit: limit)
    }
}

/// The stored number and hash of an event.
public struct AuditLink: Sendable, Hashable {
    /// The number of the event: 1, 2, 3… without a gap.
    public let sequence: Int64
    /// The hash of the event, 32 bytes, as `AuditChain` computes it.
    public let hash: [UInt8]

    /// Memberwise initializer.
    public init(sequence: Int64, hash: [UInt8]) {
        self.sequence = sequence
        self.hash = hash
    }
}

/// A stored event.
public struct RecordedAuditEvent: Sendable, Hashable {
    /// The number of the event: 1, 2, 3… without a gap.
    public let sequence: Int64
    /// The event as it was appended. If the row is damaged, the event lacks the values that cannot be read, and its detail
    /// names their columns in `unreadable`: one damaged row must not hide other rows or hold up a webhook. `firstBrokenLink()`
    /// reports the row.
    public let event: AuditEvent
    /// SHA-256 over the previous event's hash and this event, as `AuditChain` computes it.
    public let hash: [UInt8]

    /// Memberwise initializer.
    public init(sequence: Int64, event: AuditEvent, hash: [UInt8]) {
        self.sequence = sequence
        self.event = event
        self.hash = hash
    }
}

internal import AuthContract

/// The events that change an identity's record.
enum IdentityEvent: Sendable, Hashable {
    // Registration, in the order of its steps.
    case challengeReceived(authOrigin: String)
    case keyReady(IdentityRecord.KeyReference, isReused: Bool)
    case attestationKeyMade(id: String, owner: String? = nil)
    case attestationKeyForgotten
    case registrationSending(Platform)
    case registered(DeviceID, at: UnixTime)
    case pending(DeviceID, at: UnixTime)
    /// `forgetsKey`: whether to drop the key, because it is lost, the service certainly does not know it, or the service
    /// will never accept it. Otherwise the next registration uses the key again.
    case registrationFailed(forgetsKey: Bool)

    // Rotation.
    /// If a rotation is already running, it keeps its key, and gets the stronger reason of the two. The reason is the app's: the
    /// journal does not keep the service's reason, because the service may withdraw its demand.
    case rotationStarted(KeyAlias, RotationReason)
    case rotationHandleMade(id: String)
    case rotationHandleForgotten
    /// `usesHandle`: the sent copy of the rotation request contains an attestation of the new handle (the id of a new App
    /// Attest key).
    case rotationSending(thumbprint: String, timestamp: UnixTime, usesHandle: Bool = false)
    /// The service recorded every sent copy against replay and then refused it, so no copy can take effect later.
    case rotationCopiesRefused
    /// By the service's clock, every copy of the rotation request was sent before this time. A copy with a later timestamp was dated
    /// by a wrong clock.
    case rotationCopiesSent(before: UnixTime)
    /// The new key of a rotation is dropped: it is lost, or its hardware attestation cannot name a new challenge. No
    /// sent copy of the rotation may still take effect.
    case rotationKeyForgotten
    /// `keepsDemand`: the service demands that the new key is rotated too, so the record keeps the demand.
    case rotationConfirmed(at: UnixTime, keepsDemand: Bool = false)
    /// The rotation did not succeed. The pending key is kept, because a sent copy of the rotation request may still arrive.
    case rotationSuspended(isRefused: Bool)
    /// The service certainly does not have the pending key.
    case rotationAbandoned
    /// Nil: the service demands no rotation any more. Ignored unless the record still names the key that signed the request. A late
    /// answer may be about a replaced key. If a demand is about the current key, the next answer repeats it.
    case rotationDemanded(RotationDemand?, of: IdentityRecord.KeyReference)
    case keyDisposed

    /// Ignored unless the record still names this key: a new one may have the same alias.
    case keyLost(IdentityRecord.KeyReference)
    case wiped
    /// Ignored unless the record names exactly this key.
    case keySuspected(IdentityRecord.KeyReference, Suspicion)
    /// The key has signed.
    case keyTrusted(KeyAlias)
    // Events about the key for assertions (the App Attest key). They are ignored unless the record still names this key.
    case assertionKeySuspected(id: String, Suspicion)
    case assertionKeyTrusted(id: String)
    case assertionKeyLost(id: String)

    case resetStarted(ResetReason)
    case clockLearned(ClockOffset)
    /// A request under this scheme was accepted, or the app is about to send one.
    case schemeUsed(SignatureScheme)
    /// The auth service moved to another host.
    case authOriginMoved(to: String)
}

/// Changes records. Pure: the same record and event give the same result.
enum IdentityReducer {
    static func reduce(_ record: IdentityRecord, _ event: IdentityEvent) throws(SynheartAuthError) -> IdentityRecord {
        var next = record
        switch event {
        case .challengeReceived(let origin):
            try next.move(.challenge)
            next.authOrigin = origin
        case .keyReady(let key, let isReused):
            try next.move(.key)
            if !isReused || next.journal == nil { next.journal = .registration(key, isSent: false) }
            if !isReused { next.suspicions[key.alias] = nil }
        case .attestationKeyMade(let id, let owner):
            next.attestationKey = IdentityRecord.AttestationKey(id: id, isUsed: false)
            next.attestationOwner = owner
        case .attestationKeyForgotten:
            next.attestationKey = nil
        case .registrationSending(let platform):
            guard case .registration(let key, _) = record.journal else { throw record.refusal(of: .registering) }
            try next.move(.attempt)
            next.platform = platform
            next.journal = .registration(key, isSent: true)
            next.attestationKey?.isUsed = true
        case .registered(let deviceID, let time):
            try next.settle(.active, deviceID, at: time)
        case .pending(let deviceID, let time):
            try next.settle(.pending, deviceID, at: time)
        case .registrationFailed(let forgetsKey):
            try next.fail(forgetsKey: forgetsKey)

        case .rotationStarted(let alias, let reason):
            guard alias != record.key?.alias else { throw record.refusal(of: .registering) }
            if record.state != .registering { try next.move(.rotation) }
            guard next.identity == .active else { throw record.refusal(of: .registering) }
            var rotation = PendingRotation(alias: alias, reason: reason)
            if case .rotation(let running) = record.journal { rotation = running }
            if reason == .compromise { rotation.reason = .compromise }
            next.journal = .rotation(rotation)
        case .rotationHandleMade(let id):
            try next.editRotation { $0.newHandle = IdentityRecord.AttestationKey(id: id, isUsed: false) }
        case .rotationHandleForgotten:
            try next.editRotation { $0.newHandle = nil }
        case .rotationSending(let thumbprint, let timestamp, let usesHandle):
            try next.editRotation { rotation in
                rotation.thumbprint = thumbprint
                rotation.lastCopy = max(rotation.lastCopy ?? timestamp, timestamp)
                rotation.isRefused = false
                if usesHandle { rotation.newHandle?.isUsed = true }
            }
        case .rotationCopiesRefused:
            try next.editRotation { $0.lastCopy = nil }
        case .rotationCopiesSent(let time):
            guard case .rotation(var rotation) = record.journal else { throw record.refusal(of: .registering) }
            rotation.lastCopy = rotation.lastCopy.map { min($0, time) }
            next.journal = .rotation(rotation)
        case .rotationKeyForgotten:
            guard case .rotation(let rotation) = record.journal, rotation.lastCopy == nil else {
                throw record.refusal(of: .registering)
            }
            try next.editRotation { $0.thumbprint = nil }
            next.suspicions[rotation.alias] = nil
        case .rotationConfirmed(let time, let keepsDemand):
            try next.promote(at: time, keepsDemand)
        case .rotationSuspended(let isRefused):
            try next.editRotation { $0.isRefused = isRefused }
            try next.move(.rotationEnd)
        case .rotationAbandoned:
            guard case .rotation(let rotation) = record.journal else { throw record.refusal(of: .registered) }
            try next.move(.rotationEnd)
            next.journal = .disposal(rotation.alias)
        case .rotationDemanded(let demand, let key):
            if record.names(key) { next.rotationDemand = demand }
        case .keyDisposed:
            if case .disposal(let alias) = record.journal {
                next.journal = nil
                next.suspicions[alias] = nil
            }

        case .keyLost(let key):
            guard record.identity == .active, record.key == key else { return record }
            // The state table has no transition from `registering` to `keyInvalid`, so go through `registered`.
            if next.state == .registering { try next.move(.rotationEnd) }
            try next.move(.keyLoss)
            next.identity = .none
        case .wiped:
            try next.move(.wipe)
            next = IdentityRecord(blank: next)
        case .keySuspected(let key, let suspicion):
            if record.names(key), record.suspicions[key.alias] == nil { next.suspicions[key.alias] = suspicion }
        case .keyTrusted(let alias):
            next.suspicions[alias] = nil
        case .assertionKeySuspected(let id, let suspicion):
            if record.attestationKey?.id == id, record.attestationKey?.suspicion == nil {
                next.attestationKey?.suspicion = suspicion
            }
        case .assertionKeyTrusted(let id):
            if record.attestationKey?.id == id { next.attestationKey?.suspicion = nil }
        case .assertionKeyLost(let id):
            if record.attestationKey?.id == id { next.attestationKey = nil }

        case .resetStarted(let reason):
            try next.move(.reset)
            next.identity = .none
            next.journal = .reset(reason)
        case .clockLearned(let offset):
            next.clockOffset = offset
        case .schemeUsed(let scheme):
            if record.identity == .active, scheme == .two { next.schemeFloor = .two }
        case .authOriginMoved(let origin):
            next.authOrigin = origin
        }
        return next
    }
}

extension IdentityRecord {
    /// A record that replaces a damaged one. Its state is `keyInvalid`, because the key's name is lost with the damaged record.
    init(damaged appID: AppID) {
        self.init(appID: appID)
        self.state = .keyInvalid
    }

    /// A record without an identity. It keeps the clock offset, which belongs to the device.
    fileprivate init(blank record: IdentityRecord) {
        self.init(appID: record.appID)
        self.clockOffset = record.clockOffset
    }

    func refusal(of state: IdentityState) -> SynheartAuthError {
        .invalidTransition(from: self.state, to: state)
    }

    fileprivate mutating func move(_ cause: StateTable.Cause) throws(SynheartAuthError) {
        self.state = try StateTable.next(self.state, cause)
    }

    fileprivate mutating func settle(
        _ identity: Identity, _ deviceID: DeviceID, at time: UnixTime
    ) throws(SynheartAuthError) {
        let target: IdentityState = identity == .active ? .registered : .registering
        guard self.state == .registering, self.identity != .active else { throw refusal(of: target) }
        if identity == .active { try move(.success) }
        if case .registration(let key, _) = self.journal { self.key = key }
        guard self.key != nil else { throw refusal(of: target) }
        self.identity = identity
        self.deviceID = deviceID
        self.registeredAt = self.registeredAt ?? time
        self.journal = nil
    }

    fileprivate mutating func fail(forgetsKey: Bool) throws(SynheartAuthError) {
        guard self.identity != .active else { throw refusal(of: .unregistered) }
        try move(.failure)
        // The service may know this key, so the next registration uses it again, unless `forgetsKey`.
        let kept: JournalEntry? =
            if case .registration = self.journal {
                self.journal
            } else {
                self.key.map { .registration($0, isSent: true) }
            }
        let before = self
        self = IdentityRecord(blank: self)
        if !forgetsKey {
            self.journal = kept
            self.attestationKey = before.attestationKey
            self.attestationOwner = before.attestationOwner
            self.suspicions = before.suspicions
        }
    }

    fileprivate mutating func editRotation(_ edit: (inout PendingRotation) -> Void) throws(SynheartAuthError) {
        guard self.state == .registering, self.identity == .active, case .rotation(var rotation) = self.journal else {
            throw refusal(of: .registering)
        }
        edit(&rotation)
        self.journal = .rotation(rotation)
    }

    fileprivate mutating func promote(at time: UnixTime, _ keepsDemand: Bool) throws(SynheartAuthError) {
        guard self.identity == .active, case .rotation(let rotation) = self.journal,
            let thumbprint = rotation.thumbprint, let old = self.key
        else { throw refusal(of: .registered) }
        try move(.rotationEnd)
        self.key = KeyReference(alias: rotation.alias, thumbprint: thumbprint)
        self.keyRotatedAt = time
        if !keepsDemand { self.rotationDemand = nil }
        if let handle = rotation.newHandle, handle.isUsed { self.attestationKey = handle }
        self.journal = .disposal(old.alias)
    }
}

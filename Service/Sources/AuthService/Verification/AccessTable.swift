internal import AuthContract

/// The operation that a signed request asks for.
public enum Operation: String, Sendable, Hashable, CaseIterable {
    /// Reads the state of the device.
    case status
    /// Replaces the key.
    case rotateKey
    /// Deregisters the device.
    case deregister
    /// Issues a device token.
    case token
    /// Another service's request, through `/verify` or forward authentication.
    case otherService
}

/// The table *Who may do what* of the protocol.
enum AccessTable {
    /// A row of the table: the state of a device, or of the key that signed.
    enum State: String, Sendable, Hashable {
        case registered, previousKey, pending, tooOldInGrace, tooOldPastGrace, rejected, revoked, deregistered

        init(_ status: DeviceStatus) {
            self =
                switch status {
                case .registered: .registered
                case .pending: .pending
                case .rejected: .rejected
                case .revoked: .revoked
                case .deregistered: .deregistered
                }
        }
    }

    /// A cell of the table: whether a state allows an operation.
    enum Access: Sendable, Hashable {
        case allowed
        /// A device may only repeat the rotation that replaced the key of this signature. Anything else is `ROTATION_FAILED`.
        case sameRotationOnly
        case refused(ErrorCode)
    }

    /// The states of a device for a request by one of its keys. They decide in this order: status, key, age of the key.
    struct States: Sendable, CustomStringConvertible {
        let status: State
        var key: State?
        var age: State?

        var description: String {
            [status, key, age].compactMap { $0?.rawValue }.joined(separator: ", ")
        }
    }

    /// The cell of the table for one state and operation.
    static func access(_ state: State, _ operation: Operation) -> Access {
        switch (state, operation) {
        case (.registered, _): .allowed

        case (.previousKey, .status), (.previousKey, .otherService): .allowed
        case (.previousKey, .rotateKey): .sameRotationOnly
        case (.previousKey, .deregister), (.previousKey, .token): .refused(.invalidSignature)

        case (.pending, .status), (.pending, .deregister): .allowed
        case (.pending, .rotateKey), (.pending, .token), (.pending, .otherService): .refused(.devicePending)

        case (.tooOldInGrace, .status), (.tooOldInGrace, .rotateKey), (.tooOldInGrace, .deregister): .allowed
        case (.tooOldInGrace, .token), (.tooOldInGrace, .otherService): .refused(.keyExpired)

        case (.tooOldPastGrace, .status), (.tooOldPastGrace, .deregister): .allowed
        case (.tooOldPastGrace, .rotateKey), (.tooOldPastGrace, .token), (.tooOldPastGrace, .otherService):
            .refused(.keyExpired)

        case (.rejected, .status), (.rejected, .deregister): .allowed
        case (.rejected, .rotateKey), (.rejected, .token), (.rejected, .otherService): .refused(.deviceRevoked)

        case (.revoked, _): .refused(.deviceRevoked)
        case (.deregistered, _): .refused(.notRegistered)
        }
    }

    /// The access that several states allow together: the first state that refuses decides.
    static func access(_ states: States, _ operation: Operation) -> Access {
        narrower(
            narrower(access(states.status, operation), states.key, operation), states.age, operation)
    }

    /// Refuses an operation that the states of a device do not allow. Only the body shows whether a rotation is a repetition, so
    /// `RotationRules` decides that.
    @discardableResult
    static func require(
        _ operation: Operation, of device: DeviceRecord, signedBy key: SigningKeyRole, mode: AppRecord.Mode,
        keys: KeyPolicy,
        now: UnixTime
    ) throws(Refusal) -> States {
        let states = states(of: device, signedBy: key, mode: mode, keys: keys, now: now)
        try require(operation, in: states)
        return states
    }

    /// Refuses an operation that these states do not allow.
    static func require(_ operation: Operation, in states: States) throws(Refusal) {
        if case .refused(let code) = access(states, operation) {
            throw Refusal(code, "a device in state \(states) may not \(operation.rawValue)")
        }
    }

    private static func narrower(_ access: Access, _ state: State?, _ operation: Operation) -> Access {
        guard let state, access == .allowed else { return access }
        return Self.access(state, operation)
    }

    /// The states of a device for a request by one of its keys.
    ///
    /// - Parameters:
    ///   - mode: the app's mode.
    ///   - keys: the app's policy for keys. Not the whole record, because a request would copy it.
    static func states(
        of device: DeviceRecord, signedBy key: SigningKeyRole, mode: AppRecord.Mode, keys: KeyPolicy, now: UnixTime
    ) -> States {
        States(
            status: State(device.status(under: mode)), key: key == .previous ? .previousKey : nil,
            age: ageState(of: device, under: keys, now: now))
    }

    private static func ageState(of device: DeviceRecord, under keys: KeyPolicy, now: UnixTime) -> State? {
        let overdue = device.rotationDemands(under: keys, at: now).filter { now > $0.by }
        // After a compromise there is no grace period, because a thief of the key could rotate it, too.
        guard !overdue.contains(where: { $0.reason == .compromise }) else { return .tooOldPastGrace }
        var isTooOld = !overdue.isEmpty
        if let maximum = keys.maximumAgeDays {
            let age = now - device.keySince
            if age > (maximum + keys.graceDays) * 86_400 { return .tooOldPastGrace }
            isTooOld = isTooOld || age > maximum * 86_400
        }
        return isTooOld ? .tooOldInGrace : nil
    }
}

/// The role of the key that signed.
public enum SigningKeyRole: Sendable, Hashable {
    /// The current key.
    case current
    /// The previous key, within the overlap.
    case previous
}

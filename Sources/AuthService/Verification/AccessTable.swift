internal import AuthContract

/// What a signed request asks for.
public enum Operation: String, Sendable, Hashable, CaseIterable {
    case status, rotateKey, deregister, token
    /// Another service's request, through `/verify` or the middleware.
    case foreign
}

/// *Who may do what* of the contract, as data.
enum AccessTable {
    /// A row: the state of a device or of the key that signed.
    enum State: String, Sendable, Hashable, CaseIterable {
        case registered, previousKey, pending, tooOldInGrace, tooOldPastGrace, rejected, revoked, deregistered
    }

    /// A cell.
    enum Access: Sendable, Hashable {
        case allowed
        /// Only the same rotation again; anything else is `ROTATION_FAILED`.
        case sameRotationOnly
        case refused(ErrorCode)
    }

    // The columns are status, rotate-key, DELETE, token, /verify and middleware.
    private static let rows: [State: [Access]] = [
        .registered: [.allowed, .allowed, .allowed, .allowed, .allowed],
        .previousKey: [
            .allowed, .sameRotationOnly, .refused(.invalidSignature), .refused(.invalidSignature), .allowed,
        ],
        .pending: [
            .allowed, .refused(.devicePending), .allowed, .refused(.devicePending), .refused(.devicePending),
        ],
        .tooOldInGrace: [.allowed, .allowed, .allowed, .refused(.keyExpired), .refused(.keyExpired)],
        .tooOldPastGrace: [
            .allowed, .refused(.keyExpired), .allowed, .refused(.keyExpired), .refused(.keyExpired),
        ],
        .rejected: [
            .allowed, .refused(.deviceRevoked), .allowed, .refused(.deviceRevoked), .refused(.deviceRevoked),
        ],
        .revoked: Array(repeating: .refused(.deviceRevoked), count: 5),
        .deregistered: Array(repeating: .refused(.notRegistered), count: 5),
    ]

    private static let columns: [Operation] = [.status, .rotateKey, .deregister, .token, .foreign]

    /// The cell of one state and operation; what is not in the table is refused.
    static func access(_ state: State, _ operation: Operation) -> Access {
        guard let row = rows[state], let column = columns.firstIndex(of: operation), row.indices.contains(column) else {
            return .refused(.internalError)
        }
        return row[column]
    }

    /// What several states together allow: the first that refuses decides.
    static func access(_ states: [State], _ operation: Operation) -> Access {
        var narrowest = Access.allowed
        for state in states {
            switch access(state, operation) {
            case .allowed: continue
            case .sameRotationOnly: narrowest = .sameRotationOnly
            case .refused(let code): return .refused(code)
            }
        }
        return narrowest
    }

    /// The states that a device is in, as one of its keys asks: its status first, then the key, then the key's age.
    static func states(of device: DeviceRecord, signedBy key: SigningKeyRole, app: AppRecord, now: UnixTime) -> [State]
    {
        let keys = app.keys
        var states: [State] = []
        switch device.status(under: app.mode) {
        case .registered: states.append(.registered)
        case .pending: states.append(.pending)
        case .rejected: states.append(.rejected)
        case .revoked: states.append(.revoked)
        case .deregistered: states.append(.deregistered)
        }
        if key == .previous { states.append(.previousKey) }
        if let maximum = keys.maximumAgeDays {
            let age = now - device.keySince
            if age > (maximum + keys.graceDays) * 86_400 {
                states.append(.tooOldPastGrace)
            } else if age > maximum * 86_400 {
                states.append(.tooOldInGrace)
            }
        }
        // Past the time by which it must rotate a key may still do that one thing.
        if let by = device.mustRotateBy(under: keys, at: now), now > by { states.append(.tooOldInGrace) }
        return states
    }
}

/// Which of a device's keys signed.
public enum SigningKeyRole: Sendable, Hashable {
    case current, previous
}

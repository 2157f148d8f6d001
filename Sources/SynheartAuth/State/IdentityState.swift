/// The state of an identity. The raw values are persisted, and apps see them.
public enum IdentityState: String, Sendable, Hashable, CaseIterable {
    /// This app has no device identity.
    case unregistered
    /// A challenge was fetched. The key comes next.
    case challengeReceived
    /// The key exists. The attestation comes next.
    case keyReady
    /// A registration or a rotation is running, or the service has not decided yet.
    case registering
    /// The identity is registered.
    case registered
    /// The key is lost: the operating system reports that it is gone, or the record that names it is damaged.
    case keyInvalid
}

/// A change of state.
public struct StateTransition: Sendable, Hashable {
    /// The state before.
    public let from: IdentityState
    /// The state after.
    public let to: IdentityState

    /// Memberwise initializer.
    public init(from: IdentityState, to: IdentityState) {
        self.from = from
        self.to = to
    }
}

/// The allowed transitions (RFC-AUTH-MOBILE-0001; state machine page). Everything else is `INVALID_STATE_TRANSITION`.
enum StateTable {
    /// The causes of transitions.
    enum Cause: Sendable, Hashable, CaseIterable {
        case challenge, key, attempt, success, failure, rotation, rotationEnd, keyLoss, wipe, reset
    }

    struct Row: Sendable {
        let from: IdentityState
        let cause: Cause
        let to: IdentityState

        init(_ from: IdentityState, _ cause: Cause, _ to: IdentityState) {
            self.from = from
            self.cause = cause
            self.to = to
        }
    }

    static let rows: [Row] = [
        Row(.unregistered, .challenge, .challengeReceived),
        Row(.challengeReceived, .key, .keyReady),
        Row(.keyReady, .attempt, .registering),
        Row(.registering, .success, .registered),
        Row(.registering, .failure, .unregistered),
        Row(.registered, .rotation, .registering),
        Row(.registering, .rotationEnd, .registered),
        Row(.registered, .keyLoss, .keyInvalid),
        Row(.keyInvalid, .wipe, .unregistered),
        // Failures before the request is sent: an expired challenge, a refused attestation.
        Row(.challengeReceived, .failure, .unregistered),
        Row(.keyReady, .failure, .unregistered),
        // Only `resetDeviceIdentity` causes the following transitions.
        Row(.unregistered, .reset, .unregistered),
        Row(.challengeReceived, .reset, .unregistered),
        Row(.keyReady, .reset, .unregistered),
        Row(.registering, .reset, .unregistered),
        Row(.registered, .reset, .unregistered),
        Row(.keyInvalid, .reset, .unregistered),
    ]

    /// The state that `cause` leads to.
    static func next(_ state: IdentityState, _ cause: Cause) throws(SynheartAuthError) -> IdentityState {
        guard let row = rows.first(where: { $0.from == state && $0.cause == cause }) else {
            throw SynheartAuthError.invalidTransition(from: state, to: target(of: cause))
        }
        return row.to
    }

    private static func target(of cause: Cause) -> IdentityState {
        rows.first { $0.cause == cause }?.to ?? .unregistered
    }
}

extension SynheartAuthError {
    static func invalidTransition(from: IdentityState, to: IdentityState) -> SynheartAuthError {
        SynheartAuthError(
            .invalidStateTransition, "\(from.rawValue) does not lead to \(to.rawValue)",
            transition: StateTransition(from: from, to: to))
    }
}

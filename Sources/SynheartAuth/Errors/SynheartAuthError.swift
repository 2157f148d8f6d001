internal import AuthContract

/// The error of every operation.
///
/// Two errors are equal if their codes are. The message is for the developer and holds no secret. `cause` is for logs of debug
/// builds.
public struct SynheartAuthError: Error, Sendable {
    /// The stable code (RFC-AUTH-MOBILE-0001 section 11).
    public let code: Code
    /// An explanation for the developer.
    public let message: String
    /// What the host can do.
    public let recovery: Recovery
    /// Whether the same call may succeed later.
    public var isRetryable: Bool { recovery == .retry }
    /// How long to wait before that, if the service or the SDK knows.
    public let retryAfter: Duration?
    /// The error below this one.
    public let cause: (any Error)?
    /// The refused transition of an `invalidStateTransition`.
    public let transition: StateTransition?
    /// What the SDK itself does about the error.
    let remedy: RetryTable.Remedy
    /// The service's clock, if the error is a verdict of the service.
    let serverTime: UnixTime?

    /// A stable code: one of the SDK's own, or a code of the service.
    public enum Code: Sendable, Hashable {
        case networkError, challengeExpired, attestationUnavailable, attestationFailed, keyInvalidated, keystoreError
        case secureEnclaveError, signingFailed, deviceRevoked, clockSkew, rotationFailed, nonceReplay
        case alreadyRegistered, notRegistered, notConfigured, registrationInProgress, cryptoError, storageError
        case invalidStateTransition
        /// A code of the service, as received.
        case server(String)
    }

    /// What the host can do about an error.
    public enum Recovery: String, Sendable, Hashable, CaseIterable {
        /// Report it to the developer.
        case none
        /// Call again, after `retryAfter` if it is known.
        case retry
        /// Call `configure` first.
        case configure
        /// Call `registerDevice`.
        case register
        /// Call `rotateKey`.
        case rotate
        /// Call `resetDeviceIdentity`, if the host agrees, then `registerDevice`.
        case reset
        /// Ask the user to correct the device's clock: the SDK does not learn an offset that large.
        case correctClock
    }

    /// An error with a code. ``RetryTable`` has its recovery.
    init(
        _ code: Code, _ message: String, retryAfter: Duration? = nil, cause: (any Error)? = nil,
        transition: StateTransition? = nil, serverTime: UnixTime? = nil
    ) {
        self.init(
            RetryTable.row(of: code), message, retryAfter: retryAfter, cause: cause, transition: transition,
            serverTime: serverTime)
    }

    /// An error of a situation. ``RetryTable`` has its code and recovery.
    init(
        _ situation: RetryTable.Situation, _ message: String, cause: (any Error)? = nil, serverTime: UnixTime? = nil
    ) {
        self.init(RetryTable.row(of: situation), message, cause: cause, serverTime: serverTime)
    }

    private init(
        _ row: RetryTable.Row, _ message: String, retryAfter: Duration? = nil, cause: (any Error)? = nil,
        transition: StateTransition? = nil, serverTime: UnixTime? = nil
    ) {
        code = row.code
        self.message = message
        recovery = row.recovery
        remedy = row.remedy
        self.retryAfter = retryAfter
        self.cause = cause
        self.transition = transition
        self.serverTime = serverTime
    }

    /// The error of a code that came through a platform channel or the C interface. A code that is not the SDK's own becomes
    /// `server`.
    public static func fromCode(_ code: String, _ message: String? = nil) -> SynheartAuthError {
        let code = Code(text: code)
        return SynheartAuthError(code, message ?? ErrorTable.row(of: code).message)
    }

    /// The error's class in facades of other languages.
    public var className: ErrorClass { ErrorTable.row(of: code).className }
}

extension SynheartAuthError: Equatable {
    /// Whether the codes are the same.
    public static func == (left: SynheartAuthError, right: SynheartAuthError) -> Bool { left.code == right.code }
}

extension SynheartAuthError: CustomStringConvertible {
    /// Code and message.
    public var description: String { "\(code.text): \(message)" }
}

extension SynheartAuthError.Code {
    /// The code as text, such as `NETWORK_ERROR`.
    public var text: String {
        if case .server(let text) = self { text } else { ErrorTable.row(of: self).text }
    }

    /// Reads a code. A text that is not 1 to 64 of `A-Z 0-9 _` becomes `server("UNKNOWN")`, so that codes are safe to log.
    public init(text: String) {
        self = ErrorTable.rows.first { $0.text == text }?.code ?? Self.service(text)
    }

    /// The service's code, also if the SDK has one with the same text.
    static func service(_ text: String) -> Self {
        let isCode = (1...64).contains(text.utf8.count) && text.utf8.allSatisfy(Self.isCodeCharacter)
        return .server(isCode ? text : "UNKNOWN")
    }

    private static func isCodeCharacter(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"): true
        default: false
        }
    }
}

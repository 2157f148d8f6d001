internal import AuthContract

/// What every operation of the SDK throws.
///
/// Two errors are equal when their codes are. The message is for the developer and holds no secret; `cause` is for logs
/// of debug builds.
public struct SynheartAuthError: Error, Sendable {
    /// The stable code (RFC-AUTH-MOBILE-0001 section 11).
    public let code: Code
    /// For the developer.
    public let message: String
    /// What to do about it.
    public let recovery: Recovery
    /// Whether the same call may succeed later.
    public var isRetryable: Bool { recovery == .retry }
    /// How long to wait before that, where the service or the SDK knows.
    public let retryAfter: Duration?
    /// What was below it.
    public let cause: (any Error)?
    /// From and to, of `invalidStateTransition`.
    public let transition: StateTransition?
    /// What the SDK does about it by itself.
    let remedy: RetryTable.Remedy
    /// What the service's clock said with it, where it is a verdict of the service.
    let serverTime: UnixTime?

    /// A stable code: those that the SDK knows, and any other code of the service.
    public enum Code: Sendable, Hashable {
        case networkError, challengeExpired, attestationUnavailable, attestationFailed, keyInvalidated, keystoreError
        case secureEnclaveError, signingFailed, deviceRevoked, clockSkew, rotationFailed, nonceReplay
        case alreadyRegistered, notRegistered, notConfigured, registrationInProgress, cryptoError, storageError
        case invalidStateTransition
        /// A code of the service that is none of the SDK's own, as it stood on the wire.
        case server(String)
    }

    /// What the host can do.
    public enum Recovery: String, Sendable, Hashable, CaseIterable {
        /// Nothing; tell the developer.
        case none
        /// Call again, after `retryAfter` where it is known.
        case retry
        /// Call `configure` first.
        case configure
        /// Call `registerDevice`.
        case register
        /// Call `rotateKey`.
        case rotate
        /// Call `resetDeviceIdentity`, if the host decides so, then `registerDevice`.
        case reset
        /// Correct the device's clock: it is further off than the SDK may learn.
        case correctClock
    }

    /// An error of this code. ``RetryTable`` says what the host can do about it.
    init(
        _ code: Code, _ message: String, retryAfter: Duration? = nil, cause: (any Error)? = nil,
        transition: StateTransition? = nil, serverTime: UnixTime? = nil
    ) {
        self.init(
            RetryTable.row(of: code), message, retryAfter: retryAfter, cause: cause, transition: transition,
            serverTime: serverTime)
    }

    /// An error of this situation. ``RetryTable`` says its code, and what the host can do about it.
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

    /// The error of a code that came through a platform channel or the C interface; a code that is not the SDK's own
    /// becomes `server`.
    public static func fromCode(_ code: String, _ message: String? = nil) -> SynheartAuthError {
        let code = Code(text: code)
        return SynheartAuthError(code, message ?? ErrorTable.row(of: code).message)
    }

    /// The name of the error's class in facades of other languages.
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
    /// The code as it is written everywhere, such as `NETWORK_ERROR`.
    public var text: String {
        if case .server(let text) = self { text } else { ErrorTable.row(of: self).text }
    }

    /// Reads a code. What is not a code at all (`A-Z 0-9 _`, at most 64) becomes `server("UNKNOWN")`: it may be logged.
    public init(text: String) {
        self = ErrorTable.rows.first { $0.text == text }?.code ?? Self.service(text)
    }

    /// A code of the service that stays the service's, even where the SDK has one of the same name.
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

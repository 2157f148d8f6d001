internal import AuthContract

/// The error of every operation. A cancelled caller gets `CancellationError` instead.
///
/// Two errors are equal if their codes are. The message is for the developer and holds no secret. `cause` is for logs of debug
/// builds.
public struct SynheartAuthError: Error, Sendable {
    /// The stable code (RFC-AUTH-MOBILE-0001 section 11).
    public var code: Code { details.code }
    /// An explanation for the developer.
    public var message: String { details.message }
    /// The remedy for the app.
    public var recovery: Recovery { details.recovery }
    /// Whether the same call may succeed later.
    public var isRetryable: Bool { recovery == .retry }
    /// The time to wait before another call, if the service or the SDK knows it.
    public var retryAfter: Duration? { details.retryAfter }
    /// Whether the request of a failed `send` may have taken effect.
    ///
    /// For a `send`, this is false only if nothing was sent, or if the service refused the request before it could take
    /// effect. It is true for errors of reading a streamed answer, and false for errors of other operations.
    public var mayHaveHappened: Bool { details.mayHaveHappened }
    /// The underlying error.
    public var cause: (any Error)? { details.cause }
    /// The refused transition of an `invalidStateTransition`.
    public var transition: StateTransition? { details.transition }
    /// The SDK's own remedy for the error.
    var remedy: RetryTable.Remedy { details.remedy }
    /// The service's time, if the service's answer names it.
    var serverTime: UnixTime? { details.serverTime }
    /// The demand for assertions in the service's answer, if any.
    var assertionDemand: AssertionDemand? { details.assertionDemand }

    /// A class, for code size: each call of an async function that throws this error has code that moves it, and a reference is
    /// only one word.
    private final class Details: Sendable {
        let code: Code
        let message: String
        let recovery: Recovery
        let remedy: RetryTable.Remedy
        let retryAfter: Duration?
        let cause: (any Error)?
        let transition: StateTransition?
        let serverTime: UnixTime?
        let assertionDemand: AssertionDemand?
        let mayHaveHappened: Bool

        init(
            _ row: RetryTable.Row, _ message: String, _ retryAfter: Duration?, _ cause: (any Error)?,
            _ transition: StateTransition?, _ serverTime: UnixTime?, _ assertionDemand: AssertionDemand?,
            _ mayHaveHappened: Bool
        ) {
            code = row.code
            self.message = message
            recovery = row.recovery
            remedy = row.remedy
            self.mayHaveHappened = mayHaveHappened
            self.retryAfter = retryAfter
            self.cause = cause
            self.transition = transition
            self.serverTime = serverTime
            self.assertionDemand = assertionDemand
        }
    }

    private let details: Details

    /// A stable code: one of the SDK's own, or one of the service. Later versions may add codes.
    public struct Code: Sendable, Hashable {
        /// The code as logs and platform channels write it, such as `NETWORK_ERROR`.
        public let text: String
        /// Whether it is a code of the service. The service may have a code with the same text as one of the SDK's own.
        public let isFromService: Bool

        private init(own text: String) {
            self.text = text
            isFromService = false
        }

        /// No answer came, or the answer is neither a valid result nor a valid refusal, such as a 5xx or a proxy's page.
        public static let networkError = Self(own: "NETWORK_ERROR")
        /// The challenge expired.
        public static let challengeExpired = Self(own: "CHALLENGE_EXPIRED")
        /// This device cannot attest.
        public static let attestationUnavailable = Self(own: "ATTESTATION_UNAVAILABLE")
        /// An attestation or an assertion failed or was refused.
        public static let attestationFailed = Self(own: "ATTESTATION_FAILED")
        /// The hardware key is no longer usable.
        public static let keyInvalidated = Self(own: "KEY_INVALIDATED")
        /// The key store failed.
        public static let keystoreError = Self(own: "KEYSTORE_ERROR")
        /// The Secure Enclave failed.
        public static let secureEnclaveError = Self(own: "SECURE_ENCLAVE_ERROR")
        /// The request could not be signed, or cannot be sent as it is.
        public static let signingFailed = Self(own: "SIGNING_FAILED")
        /// The service revoked this device.
        public static let deviceRevoked = Self(own: "DEVICE_REVOKED")
        /// The device's clock is off.
        public static let clockSkew = Self(own: "CLOCK_SKEW")
        /// The rotation failed, or its result is not known yet. The device keeps the old key.
        public static let rotationFailed = Self(own: "ROTATION_FAILED")
        /// The service has seen this nonce.
        public static let nonceReplay = Self(own: "NONCE_REPLAY")
        /// The device is registered.
        public static let alreadyRegistered = Self(own: "ALREADY_REGISTERED")
        /// The device is not registered.
        public static let notRegistered = Self(own: "NOT_REGISTERED")
        /// The configuration is missing or cannot be used. Call ``SynheartAuth/configure(baseUrl:)`` first.
        public static let notConfigured = Self(own: "NOT_CONFIGURED")
        /// A registration of this app is in progress.
        public static let registrationInProgress = Self(own: "REGISTRATION_IN_PROGRESS")
        /// A cryptographic operation failed.
        public static let cryptoError = Self(own: "CRYPTO_ERROR")
        /// The identity's record could not be read, locked or written.
        public static let storageError = Self(own: "STORAGE_ERROR")
        /// The answer is larger than the request allows, or its reader is too slow. The request may have succeeded.
        public static let answerTooLarge = Self(own: "ANSWER_TOO_LARGE")
        /// The caller was cancelled. Operations throw `CancellationError` instead.
        package static let cancelled = Self(own: "CANCELLED")
        /// The identity's present state does not allow the transition that the operation needs.
        public static let invalidStateTransition = Self(own: "INVALID_STATE_TRANSITION")

        /// A code of the service, as received. A text that is not 1 to 64 characters from `A-Z 0-9 _` becomes `UNKNOWN`, so
        /// that codes are safe to log.
        public static func server(_ text: String) -> Self { Self(received: text) }

        private init(received text: String) {
            let isCode = (1...64).contains(text.utf8.count) && text.utf8.allSatisfy(Self.isCodeCharacter)
            self.text = isCode ? text : "UNKNOWN"
            isFromService = true
        }

        /// Reads a code: one of the SDK's own, or else one of the service.
        public init(text: String) {
            self = ErrorTable.rows.first { $0.code.text == text }?.code ?? .server(text)
        }

        private static func isCodeCharacter(_ byte: UInt8) -> Bool {
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"): true
            default: false
            }
        }
    }

    /// The remedy for an error.
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
        /// Call `resetDeviceIdentity`, if the app agrees to lose the identity, then `registerDevice`.
        case reset
        /// Ask the user to correct the device's clock: the SDK does not learn an offset that large.
        case correctClock
    }

    /// An error with a code. ``RetryTable`` has its recovery.
    init(
        _ code: Code, _ message: String, retryAfter: Duration? = nil, cause: (any Error)? = nil,
        transition: StateTransition? = nil, serverTime: UnixTime? = nil, assertionDemand: AssertionDemand? = nil
    ) {
        self.init(
            RetryTable.row(of: code), message, retryAfter: retryAfter, cause: cause, transition: transition,
            serverTime: serverTime, assertionDemand: assertionDemand)
    }

    /// An error of a situation. ``RetryTable`` has its code and recovery.
    init(
        _ situation: RetryTable.Situation, _ message: String, retryAfter: Duration? = nil, cause: (any Error)? = nil,
        serverTime: UnixTime? = nil
    ) {
        self.init(
            RetryTable.row(of: situation), message, retryAfter: retryAfter, cause: cause, serverTime: serverTime)
    }

    private init(
        _ row: RetryTable.Row, _ message: String, retryAfter: Duration? = nil, cause: (any Error)? = nil,
        transition: StateTransition? = nil, serverTime: UnixTime? = nil, assertionDemand: AssertionDemand? = nil,
        mayHaveHappened: Bool = false
    ) {
        details = Details(
            row, message, retryAfter, cause, transition, serverTime, assertionDemand, mayHaveHappened)
    }

    /// The same error with this value of `mayHaveHappened`.
    func with(mayHaveHappened: Bool) -> SynheartAuthError {
        guard mayHaveHappened != self.mayHaveHappened else { return self }
        return SynheartAuthError(
            RetryTable.Row(code, remedy, then: recovery), message, retryAfter: retryAfter, cause: cause,
            transition: transition, serverTime: serverTime, assertionDemand: assertionDemand,
            mayHaveHappened: mayHaveHappened)
    }

    /// The error of a code from a platform channel or the C interface. A code that is not the SDK's own becomes `server`.
    public static func fromCode(
        _ code: String, _ message: String? = nil, mayHaveHappened: Bool = false
    ) -> SynheartAuthError {
        let code = Code(text: code)
        return SynheartAuthError(code, message ?? ErrorTable.row(of: code).message)
            .with(mayHaveHappened: mayHaveHappened)
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

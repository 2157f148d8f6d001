internal import AuthContract
internal import CSynheartAuth
internal import StrictJSON
internal import SynheartAuth

/// The place where a function stores its result or error: a JSON text that the caller frees (`synheart_auth_string_free`).
public typealias Result = UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>

/// Runs `body` and stores its value as JSON, which `read` makes on the calling thread. Returns by the deadline; nil means the deadline of
/// the instance. Other calls may have joined an operation that `body` began, so the operation continues after the deadline.
func run<Value: Sendable>(
    _ handle: OpaquePointer?, _ appID: UnsafePointer<CChar>?, _ result: Result?, deadline: Duration? = nil,
    _ body: @escaping @Sendable (SynheartAuth, String) async throws -> Value,
    _ read: (Value) -> JSONValue
) -> Int32 {
    guard let handle else { return invalidArgument("handle", result) }
    guard let appId = CText.string(appID) else { return invalidArgument("app_id", result) }
    guard !isForkedProcess else { return fail(.forked, result) }
    let instance = Instance.of(handle)
    let sdk = instance.sdk
    let limit = deadline ?? instance.deadline.withLock { $0 }
    let outcome = wait { () async -> Instance.Ending<Swift.Result<Value, any Error>>? in
        await instance.value(within: limit) { () -> Swift.Result<Value, any Error> in
            do { return .success(try await body(sdk, appId)) } catch { return .failure(error) }
        }
    }
    switch outcome {
    case .value(.success(let value)): return succeed(read(value), result)
    case .value(.failure(let error)): return fail(error as? SynheartAuthError ?? .cancelled, result)
    case .cancelled: return fail(.cancelled(isSend: deadline != nil), result)
    case .deadlinePassed, nil: return fail(.deadlinePassed(isSend: deadline != nil), result)
    }
}

func succeed(_ value: JSONValue, _ result: Result?) -> Int32 {
    result?.pointee = CText.copy(value.text())
    return 0
}

func fail(_ error: SynheartAuthError, _ result: Result?) -> Int32 {
    var json = JSONObject()
    json["code"] = .string(error.code.text)
    json["class"] = .string(error.className.rawValue)
    json["message"] = .string(error.message)
    json["recovery"] = .string(error.recovery.rawValue)
    json["retryable"] = .bool(error.isRetryable)
    json["may_have_happened"] = .bool(error.mayHaveHappened)
    json["retry_after_ms"] = error.retryAfter.map { .integer($0.wholeMilliseconds) }
    json["from"] = error.transition.map { .string($0.from.rawValue) }
    json["to"] = error.transition.map { .string($0.to.rawValue) }
    result?.pointee = CText.copy(JSONValue.object(json).text())
    return error.status
}

/// - Parameter problem: The argument's name, or the name, a colon and the reason.
func invalidArgument(_ problem: String, _ result: Result?) -> Int32 {
    let message = problem.contains(":") ? problem : "\(problem): missing, malformed or out of range"
    let json: JSONValue = [
        "code": "INVALID_ARGUMENT", "class": "ServerError",
        "message": .string(message), "recovery": "none", "retryable": false, "may_have_happened": false,
    ]
    result?.pointee = CText.copy(json.text())
    return Int32(SYNHEART_AUTH_INVALID_ARGUMENT.rawValue)
}

extension SynheartAuthError {
    /// The value of this error's code in `synheart_auth_status`, the enumeration of the C header.
    var status: Int32 {
        let status =
            switch code {
            case .networkError: SYNHEART_AUTH_NETWORK_ERROR
            case .challengeExpired: SYNHEART_AUTH_CHALLENGE_EXPIRED
            case .attestationUnavailable: SYNHEART_AUTH_ATTESTATION_UNAVAILABLE
            case .attestationFailed: SYNHEART_AUTH_ATTESTATION_FAILED
            case .keyInvalidated: SYNHEART_AUTH_KEY_INVALIDATED
            case .keystoreError: SYNHEART_AUTH_KEYSTORE_ERROR
            case .secureEnclaveError: SYNHEART_AUTH_SECURE_ENCLAVE_ERROR
            case .signingFailed: SYNHEART_AUTH_SIGNING_FAILED
            case .deviceRevoked: SYNHEART_AUTH_DEVICE_REVOKED
            case .clockSkew: SYNHEART_AUTH_CLOCK_SKEW
            case .rotationFailed: SYNHEART_AUTH_ROTATION_FAILED
            case .nonceReplay: SYNHEART_AUTH_NONCE_REPLAY
            case .alreadyRegistered: SYNHEART_AUTH_ALREADY_REGISTERED
            case .notRegistered: SYNHEART_AUTH_NOT_REGISTERED
            case .notConfigured: SYNHEART_AUTH_NOT_CONFIGURED
            case .registrationInProgress: SYNHEART_AUTH_REGISTRATION_IN_PROGRESS
            case .cryptoError: SYNHEART_AUTH_CRYPTO_ERROR
            case .storageError: SYNHEART_AUTH_STORAGE_ERROR
            case .invalidStateTransition: SYNHEART_AUTH_INVALID_STATE_TRANSITION
            case .answerTooLarge: SYNHEART_AUTH_ANSWER_TOO_LARGE
            case .cancelled: SYNHEART_AUTH_CANCELLED
            default: SYNHEART_AUTH_SERVER_ERROR
            }
        return Int32(status.rawValue)
    }
}

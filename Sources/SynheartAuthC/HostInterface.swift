internal import AuthContract
internal import Bytes
public import CSynheartAuth
internal import Foundation
internal import StrictJSON
internal import SynheartAuth

// The whole SDK for hosts. The header documents each function. They are public, because an optimised build drops others.

/// The place where a function stores its result or error: a JSON text that the caller frees (`synheart_auth_string_free`).
public typealias Result = UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>

/// The instance that a handle owns.
final class Instance: Sendable {
    /// The default deadline of every call except `send`, which has its own.
    static let usualDeadline = Duration.seconds(120)

    let sdk: SynheartAuth
    let sleeper: any Sleeper
    let deadline = Locked(Instance.usualDeadline)
    private let configuration: Locked<SynheartAuth.Configuration>
    private let calls = Locked(Calls())
    private let observation = Locked<Task<Void, Never>?>(nil)

    /// The calls under way, which `cancelCalls` ends.
    private struct Calls: Sendable {
        var last: UInt64 = 0
        var running: [UInt64: OnceValue<Void>] = [:]
    }

    deinit { observation.withLock { $0?.cancel() } }

    init(_ configuration: SynheartAuth.Configuration) {
        sdk = SynheartAuth(configuration)
        sleeper = configuration.sleeper
        self.configuration = Locked(configuration)
    }

    /// The instance of a handle. The handle still owns it.
    static func of(_ handle: OpaquePointer) -> Instance {
        Unmanaged<Instance>.fromOpaque(UnsafeRawPointer(handle)).takeUnretainedValue()
    }

    func change(_ change: (inout SynheartAuth.Configuration) -> Void) {
        configuration.withLock { configuration in
            change(&configuration)
            sdk.reconfigure(configuration)
        }
    }

    /// Tells the observer what happens from now on, in place of an earlier one.
    func observe(_ observer: HostObserver) {
        change { $0.logger = observer }
        let changes = sdk.stateChanges
        observation.withLock { task in
            task?.cancel()
            task = Task { for await change in changes { observer.changed(change) } }
        }
    }

    func cancelCalls() {
        let running = calls.withLock { Array($0.running.values) }
        for call in running { call.give(()) }
    }

    /// How a host's call ended.
    enum Ending<Value: Sendable>: Sendable {
        case value(Value)
        case deadlinePassed, cancelled
    }

    /// Runs `body` until the limit has passed or the host cancels its calls. The operation runs on.
    func value<Value: Sendable>(
        within limit: Duration, _ body: @escaping @Sendable () async -> Value
    ) async -> Ending<Value> {
        let end = OnceValue<Void>()
        let isCancelled = Locked(false)
        let id = calls.withLock { calls in
            calls.last += 1
            calls.running[calls.last] = end
            return calls.last
        }
        defer { calls.withLock { $0.running[id] = nil } }
        let sleeper = sleeper
        let work = Task { await withDeadline(limit, sleeper, body) }
        // Cancelled, it gives nil. Once it has ended, this does nothing.
        Task {
            await end.value
            isCancelled.withLock { $0 = true }
            work.cancel()
        }
        defer { end.give(()) }
        if let value = await work.value { return .value(value) }
        return isCancelled.withLock { $0 } ? .cancelled : .deadlinePassed
    }
}

@_cdecl("synheart_auth_create")
public func createInstance(
    _ baseURL: UnsafePointer<CChar>?, _ directory: UnsafePointer<CChar>?, _ host: UnsafePointer<synheart_auth_host>?,
    _ handle: UnsafeMutablePointer<OpaquePointer?>?, _ result: Result?
) -> Int32 {
    handle?.pointee = nil
    let table = host.map { synheart_auth_host.copy($0) }
    if case .some(nil) = table { return invalidArgument("host: version or size", result) }
    let platform = table.flatMap { $0 }.map { HostPlatform(callbacks: $0) }
    guard platform?.storageCallbacks != .some(.partial) else {
        return invalidArgument("read_record, write_record, remove_record: all of them, or none", result)
    }
    // The locks of the host's records need a directory. Only the host knows one that all its processes share and others cannot
    // enter.
    guard platform?.storageCallbacks != .some(.complete) || directory != nil else {
        return invalidArgument("directory: storage callbacks need one for their locks", result)
    }
    return create(baseURL, directory, handle, result) { configuration, directory in
        if let directory { configuration.storage = FileStorage(directory: directory) }
        guard let platform else { return }
        configuration.keyStore = platform
        configuration.attestation = platform
        if let directory, platform.storageCallbacks == .complete {
            configuration.storage = HostStorage(host: platform, files: FileStorage(directory: directory))
        }
    }
}

@_cdecl("synheart_auth_create_with_software_keys")
public func createInstanceWithSoftwareKeys(
    _ baseURL: UnsafePointer<CChar>?, _ directory: UnsafePointer<CChar>?,
    _ handle: UnsafeMutablePointer<OpaquePointer?>?, _ result: Result?
) -> Int32 {
    guard CText.string(directory) != nil else { return invalidArgument("directory", result) }
    return create(baseURL, directory, handle, result) { configuration, directory in
        guard let directory else { return }
        configuration.storage = FileStorage(directory: directory)
        configuration.keyStore = SoftwareKeyStore(directory: directory + "/keys")
        #if DEBUG
            configuration.attestation = DevelopmentAttestation()
        #endif
    }
}

private func create(
    _ baseURL: UnsafePointer<CChar>?, _ directory: UnsafePointer<CChar>?,
    _ handle: UnsafeMutablePointer<OpaquePointer?>?, _ result: Result?,
    _ change: (inout SynheartAuth.Configuration, String?) -> Void
) -> Int32 {
    handle?.pointee = nil
    guard let handle else { return invalidArgument("handle", result) }
    guard let baseURL = CText.string(baseURL) else { return invalidArgument("base_url", result) }
    // NULL means the platform's own directory. A text that cannot be read is not NULL.
    let directoryText = CText.string(directory)
    guard directory == nil || directoryText != nil else { return invalidArgument("directory", result) }
    do throws(SynheartAuthError) {
        var configuration = try SynheartAuth.Configuration(baseUrl: baseURL)
        change(&configuration, directoryText)
        handle.pointee = OpaquePointer(Unmanaged.passRetained(Instance(configuration)).toOpaque())
        return succeed([:], result)
    } catch {
        return fail(error, result)
    }
}

/// The deadline of the header's milliseconds, an hour at most; 0 is the default, nil is out of range.
func deadline(_ milliseconds: Int64, usual: Duration) -> Duration? {
    guard (0...3_600_000).contains(milliseconds) else { return nil }
    return milliseconds == 0 ? usual : .milliseconds(milliseconds)
}

@_cdecl("synheart_auth_set_deadline")
public func setDeadline(_ handle: OpaquePointer?, _ milliseconds: Int64, _ result: Result?) -> Int32 {
    guard let handle else { return invalidArgument("handle", result) }
    guard let limit = deadline(milliseconds, usual: Instance.usualDeadline) else {
        return invalidArgument("deadline_ms", result)
    }
    Instance.of(handle).deadline.withLock { $0 = limit }
    return succeed([:], result)
}

@_cdecl("synheart_auth_free")
public func freeInstance(_ handle: OpaquePointer?) {
    guard let handle else { return }
    Unmanaged<Instance>.fromOpaque(UnsafeRawPointer(handle)).release()
}

@_cdecl("synheart_auth_string_free")
public func freeString(_ text: UnsafeMutablePointer<CChar>?) { free(text) }

@_cdecl("synheart_auth_register_device")
public func registerDevice(_ handle: OpaquePointer?, _ appID: UnsafePointer<CChar>?, _ result: Result?) -> Int32 {
    run(handle, appID, result) { sdk, appId in
        let registration = try await sdk.registerDevice(appID: appId)
        return ["status": .string(registration.status.rawValue), "device_id": .string(registration.deviceId)]
    }
}

@_cdecl("synheart_auth_is_registered")
public func isRegistered(_ handle: OpaquePointer?, _ appID: UnsafePointer<CChar>?, _ result: Result?) -> Int32 {
    run(handle, appID, result) { sdk, appId in
        ["registered": .bool(try await sdk.isRegistered(appID: appId))]
    }
}

@_cdecl("synheart_auth_get_device_id")
public func getDeviceID(_ handle: OpaquePointer?, _ appID: UnsafePointer<CChar>?, _ result: Result?) -> Int32 {
    run(handle, appID, result) { sdk, appId in
        let id = try await sdk.getDeviceId(appID: appId)
        return ["device_id": id.map { .string($0) } ?? .null]
    }
}

@_cdecl("synheart_auth_get_state")
public func getState(_ handle: OpaquePointer?, _ appID: UnsafePointer<CChar>?, _ result: Result?) -> Int32 {
    run(handle, appID, result) { sdk, appId in
        ["state": .string(try await sdk.state(appID: appId).rawValue)]
    }
}

@_cdecl("synheart_auth_sign_request")
public func signRequest(
    _ handle: OpaquePointer?, _ appID: UnsafePointer<CChar>?, _ method: UnsafePointer<CChar>?,
    _ path: UnsafePointer<CChar>?, _ body: UnsafePointer<UInt8>?, _ bodyLength: Int64, _ result: Result?
) -> Int32 {
    guard let method = CText.string(method) else { return invalidArgument("method", result) }
    guard let path = CText.string(path) else { return invalidArgument("path", result) }
    guard let length = Int(exactly: bodyLength), let body = CText.bytes(body, length) else {
        return invalidArgument("body", result)
    }
    return run(handle, appID, result) { sdk, appId in
        let headers = try await sdk.signRequest(appID: appId, method: method, path: path, bodyBytes: body)
        return ["headers": .object(JSONObject(headers.fields.map { ($0.name, .string($0.value)) }))]
    }
}

@_cdecl("synheart_auth_rotate_key")
public func rotateKey(
    _ handle: OpaquePointer?, _ appID: UnsafePointer<CChar>?, _ reason: UnsafePointer<CChar>?, _ result: Result?
) -> Int32 {
    guard let reason = CText.string(reason).flatMap(RotationReason.init(rawValue:)) else {
        return invalidArgument("reason", result)
    }
    return run(handle, appID, result) { sdk, appId in
        let rotation = try await sdk.rotateKey(appID: appId, reason: reason)
        return ["device_id": .string(rotation.deviceId), "effective_at": .integer(rotation.effectiveAt.seconds)]
    }
}

@_cdecl("synheart_auth_reset_device_identity")
public func resetDeviceIdentity(
    _ handle: OpaquePointer?, _ appID: UnsafePointer<CChar>?, _ reason: UnsafePointer<CChar>?, _ result: Result?
) -> Int32 {
    guard let reason = CText.string(reason).flatMap(ResetReason.init(rawValue:)) else {
        return invalidArgument("reason", result)
    }
    return run(handle, appID, result) { sdk, appId in
        try await sdk.resetDeviceIdentity(appID: appId, reason: reason)
        return [:]
    }
}

@_cdecl("synheart_auth_device_token")
public func deviceToken(
    _ handle: OpaquePointer?, _ appID: UnsafePointer<CChar>?, _ audience: UnsafePointer<CChar>?, _ result: Result?
) -> Int32 {
    let audienceText = CText.string(audience)
    guard audience == nil || audienceText != nil else { return invalidArgument("audience", result) }
    return run(handle, appID, result) { sdk, appId in
        let token = try await sdk.deviceToken(appID: appId, audience: audienceText)
        return [
            "token": .string(token.token), "remaining_seconds": .integer(max(token.remaining.components.seconds, 0)),
        ]
    }
}

@_cdecl("synheart_auth_maintain")
public func maintain(_ handle: OpaquePointer?, _ appID: UnsafePointer<CChar>?, _ result: Result?) -> Int32 {
    run(handle, appID, result) { sdk, appId in
        try await sdk.maintain(appID: appId)
        return [:]
    }
}

@_cdecl("synheart_auth_correct_clock_skew")
public func correctClockSkew(
    _ handle: OpaquePointer?, _ appID: UnsafePointer<CChar>?, _ serverTimestamp: Double, _ result: Result?
) -> Int32 {
    run(handle, appID, result) { sdk, appId in
        try await sdk.correctClockSkew(serverTimestamp: serverTimestamp, appID: appId)
        return [:]
    }
}

private func run(
    _ handle: OpaquePointer?, _ appID: UnsafePointer<CChar>?, _ result: Result?,
    _ body: @escaping @Sendable (SynheartAuth, String) async throws -> JSONValue
) -> Int32 {
    run(handle, appID, result, body) { $0 }
}

/// Runs an operation and stores its value as JSON. `read` uses the rest of the value on this thread. The call returns by its
/// deadline (nil: the instance's); an operation that others may have joined runs on.
func run<Value: Sendable>(
    _ handle: OpaquePointer?, _ appID: UnsafePointer<CChar>?, _ result: Result?, deadline: Duration? = nil,
    _ body: @escaping @Sendable (SynheartAuth, String) async throws -> Value,
    _ read: (Value) -> JSONValue
) -> Int32 {
    guard let handle else { return invalidArgument("handle", result) }
    guard let appId = CText.string(appID) else { return invalidArgument("app_id", result) }
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

func invalidArgument(_ name: String, _ result: Result?) -> Int32 {
    let json: JSONValue = ["code": "INVALID_ARGUMENT", "class": "ServerError", "message": .string(name)]
    result?.pointee = CText.copy(json.text())
    return Int32(SYNHEART_AUTH_INVALID_ARGUMENT.rawValue)
}

extension SynheartAuthError {
    /// The status in the header's enumeration.
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

// Stand-in for DeviceCheck: an App Attest that generates keys, attests each of them once, and asserts with attested ones.
@_exported import Foundation

/// The error type, in the form in which the compiler imports Apple's NS_ERROR_ENUM.
public struct DCError: _BridgedStoredNSError {
    public let _nsError: NSError
    public static var _nsErrorDomain: String { "com.apple.devicecheck.error" }
    public static var errorDomain: String { _nsErrorDomain }

    public init(_nsError error: NSError) { _nsError = error }

    public enum Code: Int, Sendable, _ErrorCodeProtocol {
        public typealias _ErrorType = DCError
        case unknownSystemFailure = 0
        case featureUnsupported, invalidInput, invalidKey, serverUnavailable
    }

    public static var unknownSystemFailure: Code { .unknownSystemFailure }
    public static var featureUnsupported: Code { .featureUnsupported }
    public static var invalidInput: Code { .invalidInput }
    public static var invalidKey: Code { .invalidKey }
    public static var serverUnavailable: Code { .serverUnavailable }
}

/// The behaviour of App Attest that a test chooses.
public enum StandInAppAttest {
    /// The place in which the code runs.
    public enum Place: Sendable {
        case app
        /// A simulator or an old device: `isSupported` is false.
        case unsupported
        /// `isSupported` is true, and `generateKey` fails.
        case appExtension
    }

    struct State {
        var place = Place.app
        var keys: [String: Bool] = [:]
        var failures: [DCError.Code] = []
        var assertionFailures: [DCError.Code] = []
        var hangs = 0
        var isHanging = false
        var hashes: [Data] = []
        var asserted: [String] = []
    }

    private static let lock = NSLock()
    nonisolated(unsafe) private static var state = State()

    static func with<Value>(_ body: (inout State) throws -> Value) rethrows -> Value {
        try lock.withLock { try body(&state) }
    }

    public static func reset() { with { $0 = State() } }
    public static func run(in place: Place) { with { $0.place = place } }
    public static func setSupported(_ isSupported: Bool) { run(in: isSupported ? .app : .unsupported) }
    /// Makes the next calls of attestKey fail with these codes, one each.
    public static func fail(_ codes: DCError.Code...) { fail(codes) }
    public static func fail(_ codes: [DCError.Code]) { with { $0.failures = codes } }
    /// Makes the next calls of generateAssertion fail with these codes, one each.
    public static func failAssertions(_ codes: DCError.Code...) { with { $0.assertionFailures = codes } }
    /// Makes the next `times` calls of attestKey hang forever.
    public static func hang(times: Int) { with { $0.hangs = times } }
    public static var isHanging: Bool { with { $0.isHanging } }
    /// Makes App Attest forget all keys, as after a reinstallation.
    public static func forgetKeys() { with { $0.keys = [:] } }
    public static var clientDataHashes: [Data] { with { $0.hashes } }
    public static var generated: Int { with { $0.keys.count } }
    /// The key ids of the requested assertions.
    public static var asserted: [String] { with { $0.asserted } }
}

/// Not `Sendable`, as in Apple's SDK.
open class DCAppAttestService: NSObject {
    nonisolated(unsafe) private static let only = DCAppAttestService()

    open class var shared: DCAppAttestService { only }

    open var isSupported: Bool { StandInAppAttest.with { $0.place != .unsupported } }

    open func generateKey() async throws -> String {
        try StandInAppAttest.with { state in
            guard state.place == .app else { throw DCError(.featureUnsupported) }
            let id = Data((0..<32).map { _ in UInt8.random(in: 0...255) }).base64EncodedString()
            state.keys[id] = false
            return id
        }
    }

    open func attestKey(_ keyId: String, clientDataHash: Data) async throws -> Data {
        let isHanging = StandInAppAttest.with { state in
            state.hangs -= 1
            if state.hangs >= 0 { state.isHanging = true }
            return state.hangs >= 0
        }
        if isHanging { await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in } }
        return try StandInAppAttest.with { state in
            state.hashes.append(clientDataHash)
            if !state.failures.isEmpty { throw DCError(state.failures.removeFirst()) }
            guard clientDataHash.count == 32 else { throw DCError(.invalidInput) }
            // The key must be known, and must not have been attested before.
            guard state.place == .app, state.keys[keyId] == false else { throw DCError(.invalidKey) }
            state.keys[keyId] = true
            return Data("proof ".utf8) + clientDataHash + Data(keyId.utf8)
        }
    }

    open func generateAssertion(_ keyId: String, clientDataHash: Data) async throws -> Data {
        try StandInAppAttest.with { state in
            state.asserted.append(keyId)
            if !state.assertionFailures.isEmpty { throw DCError(state.assertionFailures.removeFirst()) }
            // The key must have been attested. The code must run in the app, because the keys do not belong to its extensions.
            guard state.place == .app, state.keys[keyId] == true else { throw DCError(.invalidKey) }
            return Data("assertion \(keyId) ".utf8) + clientDataHash
        }
    }
}

@available(*, unavailable) extension DCAppAttestService: Sendable {}

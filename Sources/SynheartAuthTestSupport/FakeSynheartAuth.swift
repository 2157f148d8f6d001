public import AuthContract
internal import Bytes
@_exported public import SynheartAuth

/// A stand-in for the SDK in the tests of an app: identities in memory, scripted answers and failures.
///
/// Without a script every operation succeeds as it would on a phone: a device must register before it signs, a second
/// registration is `alreadyRegistered`, a reset ends the identity. It has no key and no network, and no verifier accepts its
/// signatures.
public final class FakeSynheartAuth: DeviceAuthenticating {
    /// An operation of the SDK.
    public enum Operation: String, Sendable, Hashable, CaseIterable {
        /// Reads whether the device is registered.
        case isRegistered
        /// Registers the device.
        case registerDevice
        /// Reads the device id.
        case getDeviceId
        /// Reads the state of the identity.
        case state
        /// Signs a request that is given as method, path and body.
        case signRequest
        /// Signs a request that is given with its whole URL.
        case sign
        /// Signs a request and sends it. `data(for:)` sends too.
        case send
        /// Gets a device token.
        case deviceToken
        /// Replaces the key.
        case rotateKey
        /// Ends the identity.
        case resetDeviceIdentity
        /// Corrects the clock with the time from an answer. The app id of such a call is empty if the app passed nil.
        case correctClockSkew
        /// Performs due work, such as a rotation.
        case maintain
    }

    /// A call by the app.
    public struct Call: Sendable, Hashable {
        /// The operation.
        public let operation: Operation
        /// The app.
        public let appID: String
        /// The sent request, if the operation is `send`. `data(for:)` is recorded as `send` too.
        public let request: TransportRequest?
    }

    private struct Identity: Sendable {
        var state = IdentityState.unregistered
        var deviceId: String?
    }

    private struct State: Sendable {
        var identities: [String: Identity] = [:]
        var calls: [Call] = []
        var failures: [Operation: [any Error]] = [:]
        var registrations: [Registration.Status] = []
        var answers: [(urlSuffix: String, answer: TransportResponse)] = []
        var listeners: [AsyncStream<StateChange>.Continuation] = []
        var devices = 0
        var rotations: Int64 = 0

        /// The device id of an app's identity. Makes one if there is none.
        mutating func deviceId(of appID: String) -> String {
            if let known = identities[appID]?.deviceId { return known }
            devices += 1
            let number = String(devices)
            let id = "00000000-0000-4000-8000-" + String(repeating: "0", count: 12 - number.count) + number
            identities[appID, default: Identity()].deviceId = id
            return id
        }
    }

    private let script = Locked(State())

    /// A stand-in without identities and without a script.
    public init() {}

    // MARK: The script

    /// Makes the next calls of an operation throw these errors, one each. Create them by `SynheartAuthError.fromCode`.
    public func fail(_ operation: Operation, with errors: SynheartAuthError...) {
        script.withLock { $0.failures[operation, default: []] += errors.map { $0 as any Error } }
    }

    /// Makes the next call of an operation throw `CancellationError`, after the failures scripted before.
    public func cancel(_ operation: Operation) {
        script.withLock { $0.failures[operation, default: []].append(CancellationError()) }
    }

    /// Adds results for the next registrations, one each. Without a script they are `registered`, or `alreadyRegistered`.
    public func register(as statuses: Registration.Status...) { script.withLock { $0.registrations += statuses } }

    /// Makes the next request to a URL with this ending get this answer. Requests without such an answer get an empty 200.
    public func answer(_ urlSuffix: String, with answer: TransportResponse) {
        script.withLock { $0.answers.append((urlSuffix, answer)) }
    }

    /// Puts an identity into a state, as if an operation or the operating system had done it. A registered one gets a device id
    /// if it has none, and an unregistered one loses it.
    public func set(_ state: IdentityState, appID: String) { move(appID, to: state) }

    /// The calls until now, in order.
    public var calls: [Call] { script.withLock { $0.calls } }

    // MARK: The operations

    public func isRegistered(appID: String) async throws -> Bool {
        try begin(.isRegistered, appID)
        return identity(appID).state == .registered
    }

    public func registerDevice(appID: String, joins: Bool) async throws -> Registration {
        try begin(.registerDevice, appID)
        let status = script.withLock { script -> Registration.Status in
            if !script.registrations.isEmpty { return script.registrations.removeFirst() }
            return script.identities[appID]?.state == .registered ? .alreadyRegistered : .registered
        }
        let deviceId = script.withLock { $0.deviceId(of: appID) }
        move(appID, to: status == .pending ? .registering : .registered)
        return Registration(status: status, deviceId: deviceId)
    }

    public func getDeviceId(appID: String) async throws -> String? {
        try begin(.getDeviceId, appID)
        return identity(appID).deviceId
    }

    public func state(appID: String) async throws -> IdentityState {
        try begin(.state, appID)
        return identity(appID).state
    }

    public func signRequest(
        appID: String, method: String, path: String, bodyBytes: some Collection<UInt8>, scheme: SignatureScheme?
    ) async throws -> SignedHeaders {
        try begin(.signRequest, appID)
        return try signature(appID)
    }

    public func sign(
        appID: String, scheme: SignatureScheme?, method: String, url: String, bodyBytes: some Collection<UInt8>,
        asserting: Bool
    ) async throws -> SignedHeaders {
        try begin(.sign, appID)
        return try signature(appID)
    }

    private func signature(_ appID: String) throws(SynheartAuthError) -> SignedHeaders {
        SignedHeaders([
            (HeaderName.appID, appID), (HeaderName.deviceID, try registered(appID)), (HeaderName.signature, "ZmFrZQ=="),
            (HeaderName.timestamp, "1700000000"), (HeaderName.nonce, "00000000-0000-4000-8000-000000000000"),
            (HeaderName.signatureVersion, "1"),
        ])
    }

    public func send(
        _ request: TransportRequest, appID: String, scheme: SignatureScheme?, asserting: Bool
    ) async throws -> TransportResponse {
        try begin(.send, appID, request)
        _ = try registered(appID)
        return script.withLock { script in
            guard let index = script.answers.firstIndex(where: { request.url.hasSuffix($0.urlSuffix) }) else {
                return TransportResponse(status: 200).streamed(for: request)
            }
            return script.answers.remove(at: index).answer.streamed(for: request)
        }
    }

    public func deviceToken(appID: String, audience: String?) async throws -> DeviceToken {
        try begin(.deviceToken, appID)
        return DeviceToken(token: "fake.\(try registered(appID)).\(audience ?? appID)", remaining: .seconds(600))
    }

    public func rotateKey(appID: String, reason: RotationReason) async throws -> KeyRotation {
        try begin(.rotateKey, appID)
        let deviceId = try registered(appID)
        let number = script.withLock { script in
            script.rotations += 1
            return script.rotations
        }
        return KeyRotation(deviceId: deviceId, effectiveAt: UnixTime(1_700_000_000 + number))
    }

    public func resetDeviceIdentity(appID: String, reason: ResetReason) async throws {
        try begin(.resetDeviceIdentity, appID)
        move(appID, to: .unregistered)
    }

    /// Records the call, and throws a scripted failure if there is one. A fake has no clock to correct.
    public func correctClockSkew(serverTimestamp: Double, appID: String?) async throws {
        try begin(.correctClockSkew, appID ?? "")
    }

    public func maintain(appID: String) async throws { try begin(.maintain, appID) }

    public var stateChanges: AsyncStream<StateChange> {
        let (stream, continuation) = AsyncStream.makeStream(of: StateChange.self)
        script.withLock { $0.listeners.append(continuation) }
        return stream
    }

    // MARK: Shared steps

    private func begin(
        _ operation: Operation, _ appID: String, _ request: TransportRequest? = nil
    ) throws {
        let failure = script.withLock { script -> (any Error)? in
            script.calls.append(Call(operation: operation, appID: appID, request: request))
            guard script.failures[operation]?.isEmpty == false else { return nil }
            return script.failures[operation]?.removeFirst()
        }
        if let failure { throw failure }
    }

    private func identity(_ appID: String) -> Identity { script.withLock { $0.identities[appID] ?? Identity() } }

    private func registered(_ appID: String) throws(SynheartAuthError) -> String {
        let identity = identity(appID)
        guard identity.state != .keyInvalid else { throw .fromCode("KEY_INVALIDATED") }
        guard identity.state == .registered, let deviceId = identity.deviceId else { throw .fromCode("NOT_REGISTERED") }
        return deviceId
    }

    private func move(_ appID: String, to state: IdentityState) {
        let (listeners, from) = script.withLock { script in
            let from = script.identities[appID]?.state ?? .unregistered
            script.identities[appID, default: Identity()].state = state
            switch state {
            case .unregistered: script.identities[appID]?.deviceId = nil
            case .registered: _ = script.deviceId(of: appID)
            default: break
            }
            return (script.listeners, from)
        }
        guard from != state else { return }
        let change = StateChange(appID: appID, transition: StateTransition(from: from, to: state))
        for listener in listeners { listener.yield(change) }
    }
}

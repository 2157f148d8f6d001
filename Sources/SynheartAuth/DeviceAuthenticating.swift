public import AuthContract
internal import Foundation

/// The calls of ``SynheartAuth/SynheartAuth`` that an app makes. An app that uses this protocol can be tested without a device, a
/// service or a network: `SynheartAuthTestSupport` has a stand-in (<doc:TestingYourApp>).
public protocol DeviceAuthenticating: Sendable {
    /// Whether the device is registered. No network.
    func isRegistered(appID: String) async throws -> Bool

    /// Registers the device, or joins a registration in progress if `joins`.
    @discardableResult
    func registerDevice(appID: String, joins: Bool) async throws -> Registration

    /// The id that the service issued; nil if there is none.
    func getDeviceId(appID: String) async throws -> String?

    /// The state of the identity.
    func state(appID: String) async throws -> IdentityState

    /// The header fields of a signed request. No network.
    func signRequest(
        appID: String, method: String, path: String, bodyBytes: some Collection<UInt8>, scheme: SignatureScheme?
    ) async throws -> SignedHeaders

    /// The header fields of a signed request, from its whole URL. Uses no network unless `asserting` is true.
    func sign(
        appID: String, scheme: SignatureScheme?, method: String, url: String, bodyBytes: some Collection<UInt8>,
        asserting: Bool
    ) async throws -> SignedHeaders

    /// The header fields of a signed request whose body is a file.
    func sign(appID: String, method: String, url: String, bodyFile: String) async throws -> SignedHeaders

    /// Signs a request, sends it, and recovers once from each failure that the SDK can repair, such as a wrong clock.
    func send(
        _ request: TransportRequest, appID: String, scheme: SignatureScheme?, asserting: Bool
    ) async throws -> TransportResponse

    /// A token that any backend can check offline.
    func deviceToken(appID: String, audience: String?) async throws -> DeviceToken

    /// Replaces the key.
    @discardableResult
    func rotateKey(appID: String, reason: RotationReason) async throws -> KeyRotation

    /// Deregisters the device, and deletes its identity.
    func resetDeviceIdentity(appID: String, reason: ResetReason) async throws

    /// Finishes an interrupted rotation, and rotates a key that is due.
    func maintain(appID: String) async throws

    /// Sets the SDK's clock offset from the service's timestamp; for every app used so far if `appID` is nil.
    func correctClockSkew(serverTimestamp: Double, appID: String?) async throws

    /// The changes of state from now on.
    var stateChanges: AsyncStream<StateChange> { get }
}

extension SynheartAuth: DeviceAuthenticating {}

extension DeviceAuthenticating {
    /// Registers the device. A call joins a registration in progress.
    @discardableResult
    public func registerDevice(appID: String) async throws -> Registration {
        try await registerDevice(appID: appID, joins: true)
    }

    /// The header fields of a signed request, under the device's scheme.
    public func signRequest(
        appID: String, method: String, path: String, bodyBytes: some Collection<UInt8> = []
    ) async throws -> SignedHeaders {
        try await signRequest(appID: appID, method: method, path: path, bodyBytes: bodyBytes, scheme: nil)
    }

    /// The header fields of a signed request, under the device's scheme.
    public func sign(
        appID: String, method: String, url: String, bodyBytes: some Collection<UInt8> = []
    ) async throws -> SignedHeaders {
        try await sign(appID: appID, scheme: nil, method: method, url: url, bodyBytes: bodyBytes, asserting: false)
    }

    /// Signs the file's bytes as the body.
    public func sign(appID: String, method: String, url: String, bodyFile: String) async throws -> SignedHeaders {
        guard let bytes = FileManager.default.contents(atPath: bodyFile) else {
            throw SynheartAuthError(.signingFailed, "the body's file cannot be read")
        }
        return try await sign(appID: appID, method: method, url: url, bodyBytes: Array(bytes))
    }

    /// Signs a request under the device's scheme, sends it, and recovers once from each failure that the SDK can repair.
    public func send(_ request: TransportRequest, appID: String) async throws -> TransportResponse {
        try await send(request, appID: appID, scheme: nil, asserting: false)
    }

    /// A token for the app itself.
    public func deviceToken(appID: String) async throws -> DeviceToken {
        try await deviceToken(appID: appID, audience: nil)
    }

    /// Sets the SDK's clock offset from the service's timestamp, for every app used so far by this instance.
    public func correctClockSkew(serverTimestamp: Double) async throws {
        try await correctClockSkew(serverTimestamp: serverTimestamp, appID: nil)
    }

    /// Replaces the key, with the reason `scheduled`.
    @discardableResult
    public func rotateKey(appID: String) async throws -> KeyRotation {
        try await rotateKey(appID: appID, reason: .scheduled)
    }
}

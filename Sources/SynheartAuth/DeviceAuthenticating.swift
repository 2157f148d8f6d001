public import AuthContract

/// What an app calls of ``SynheartAuth/SynheartAuth``. An app that takes this protocol can be tested without a device, a service or a
/// network: `SynheartAuthTestSupport` has a stand-in (<doc:TestingYourApp>).
public protocol DeviceAuthenticating: Sendable {
    /// Whether the device is registered. No network.
    func isRegistered(appID: String) async throws(SynheartAuthError) -> Bool

    /// Registers the device, or joins a registration in progress if `joins`.
    @discardableResult
    func registerDevice(appID: String, joins: Bool) async throws(SynheartAuthError) -> Registration

    /// The id that the service issued; nil if there is none.
    func getDeviceId(appID: String) async throws(SynheartAuthError) -> String?

    /// The state of the identity.
    func state(appID: String) async throws(SynheartAuthError) -> IdentityState

    /// The header fields of a signed request. No network.
    func signRequest(
        appID: String, method: String, path: String, bodyBytes: some Collection<UInt8>, scheme: SignatureScheme?
    ) async throws(SynheartAuthError) -> SignedHeaders

    /// Signs a request, sends it and recovers.
    func send(
        _ request: TransportRequest, appID: String, scheme: SignatureScheme?, asserting: Bool
    ) async throws(SynheartAuthError) -> TransportAnswer

    /// A token that any backend can check offline.
    func deviceToken(appID: String, audience: String?) async throws(SynheartAuthError) -> DeviceToken

    /// Replaces the key.
    @discardableResult
    func rotateKey(appID: String, reason: RotationReason) async throws(SynheartAuthError) -> KeyRotation

    /// Gives the identity up.
    func resetDeviceIdentity(appID: String, reason: ResetReason) async throws(SynheartAuthError)

    /// Finishes an interrupted rotation, and rotates a key that is due.
    func maintain(appID: String) async throws(SynheartAuthError)

    /// The changes of state from now on.
    var stateChanges: AsyncStream<StateChange> { get }
}

extension SynheartAuth: DeviceAuthenticating {}

extension DeviceAuthenticating {
    /// Registers the device. A call joins a registration in progress.
    @discardableResult
    public func registerDevice(appID: String) async throws(SynheartAuthError) -> Registration {
        try await registerDevice(appID: appID, joins: true)
    }

    /// The header fields of a signed request, under the device's scheme.
    public func signRequest(
        appID: String, method: String, path: String, bodyBytes: some Collection<UInt8> = []
    ) async throws(SynheartAuthError) -> SignedHeaders {
        try await signRequest(appID: appID, method: method, path: path, bodyBytes: bodyBytes, scheme: nil)
    }

    /// Signs a request under the device's scheme, sends it and recovers.
    public func send(_ request: TransportRequest, appID: String) async throws(SynheartAuthError) -> TransportAnswer {
        try await send(request, appID: appID, scheme: nil, asserting: false)
    }

    /// A token for the app itself.
    public func deviceToken(appID: String) async throws(SynheartAuthError) -> DeviceToken {
        try await deviceToken(appID: appID, audience: nil)
    }

    /// Replaces the key as scheduled.
    @discardableResult
    public func rotateKey(appID: String) async throws(SynheartAuthError) -> KeyRotation {
        try await rotateKey(appID: appID, reason: .scheduled)
    }
}

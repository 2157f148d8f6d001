public import AuthContract
internal import Bytes
internal import StrictJSON

/// A hardware-backed identity of this device for each app, and the signatures that prove it.
///
/// Configure once at launch, register, then sign:
///
///     try SynheartAuth.shared.configure(baseUrl: "https://auth.example.com")
///     try await SynheartAuth.shared.registerDevice(appID: "com.example.app")
///     let headers = try await SynheartAuth.shared.signRequest(
///         appID: "com.example.app", method: "POST", path: "/v1/readings", bodyBytes: body)
///
/// Every operation throws `SynheartAuthError`, and `CancellationError` if its caller is cancelled. Cancelling a caller ends its
/// wait; the operation continues, because others may have joined it.
public final class SynheartAuth: Sendable {
    /// The instance for apps that need only one.
    public static let shared = SynheartAuth()

    private struct State: Sendable {
        var configuration: Configuration?
        var identities: [AppID: DeviceIdentity] = [:]
        /// The identity used last. If the app has only one identity, the SDK parses its app id only once.
        var latest: DeviceIdentity?
    }

    private let state: Locked<State>
    private let changes = StateChanges()
    private let resets = Resets()

    private init() {
        state = Locked(State())
        RuntimeInterface.keep()
    }

    /// An independent instance.
    public init(_ configuration: Configuration) {
        state = Locked(State(configuration: configuration))
        RuntimeInterface.keep()
    }

    /// Sets the auth service, and uses the platform's default for every part of ``Configuration``. Changes no identity.
    ///
    /// - Throws: `NOT_CONFIGURED` for a malformed URL, and for plain http to a host that is not loopback; and as ``configure(_:)``.
    public func configure(baseUrl: String) throws(SynheartAuthError) {
        try configure(try Configuration(baseUrl: baseUrl))
    }

    /// Configures the instance, once. Changes no identity.
    ///
    /// A second call with the same values changes nothing: operations, caches and tokens stay. If the app set a part, such as the
    /// key store, the part must be the same object or an equal value.
    ///
    /// - Throws: `NOT_CONFIGURED` with recovery `none` if the instance is configured with other values. An app that needs two
    ///   configurations creates two instances.
    public func configure(_ configuration: Configuration) throws(SynheartAuthError) {
        let differences = state.withLock { state -> [String] in
            if let current = state.configuration { return current.differences(from: configuration) }
            state.configuration = configuration
            return []
        }
        guard differences.isEmpty else {
            throw SynheartAuthError(
                .configuredOtherwise,
                "this instance is configured already, with another \(differences.joined(separator: ", ")); make an instance of its own for "
                    + "another configuration")
        }
    }

    /// Replaces the configuration. Changes no identity. Running operations finish with the old configuration.
    package func reconfigure(_ configuration: Configuration) {
        state.withLock { state in
            state.configuration = configuration
            state.identities = [:]
            state.latest = nil
        }
    }

    /// Runs an operation for its caller. If the operation fails, a cancelled caller gets `CancellationError`, whatever the error.
    func forCaller<Value>(_ body: () async throws(SynheartAuthError) -> Value) async throws -> Value {
        do throws(SynheartAuthError) {
            return try await body()
        } catch {
            if Task.isCancelled || error.code == .cancelled { throw CancellationError() }
            throw error
        }
    }

    /// Whether the device is registered according to the record, and its key exists. No network.
    public func isRegistered(appID: String) async throws -> Bool {
        try await forCaller { () async throws(SynheartAuthError) in
            try await identity(appID).context.isRegistered()
        }
    }

    /// Registers this device for an app. Idempotent: call it at every launch. If the device is registered, the call sends nothing.
    /// In the background, the SDK then finishes an interrupted rotation or makes one that is due, unless
    /// ``Configuration/rotatesAutomatically`` is false.
    ///
    /// - Parameters:
    ///   - appID: The app.
    ///   - joins: Whether a call joins a registration in progress. Otherwise it throws `REGISTRATION_IN_PROGRESS`.
    @discardableResult
    public func registerDevice(appID: String, joins: Bool = true) async throws -> Registration {
        try await forCaller { () async throws(SynheartAuthError) in try await identity(appID).register(joins: joins) }
    }

    /// The six headers of a signed request. The SDK makes timestamp and nonce. No network.
    ///
    /// - Parameters:
    ///   - appID: The app whose identity signs.
    ///   - method: The HTTP method. It is converted to upper case.
    ///   - path: The path as sent: escaped, without the query.
    ///   - bodyBytes: The body as sent.
    ///   - scheme: `one`, or nil for the scheme that the device signs with. Scheme 2 needs the whole URL
    ///     (``sign(appID:scheme:method:url:bodyBytes:asserting:)``).
    /// - Throws: `NOT_REGISTERED`, `KEY_INVALIDATED`, `SIGNING_FAILED`, `STORAGE_ERROR`. The SDK does not retry. A device that
    ///   signs under scheme 2 (`Configuration.scheme`, or the service has accepted it) throws `SIGNING_FAILED`.
    public func signRequest(
        appID: String, method: String, path: String, bodyBytes: some Collection<UInt8> = [],
        scheme: SignatureScheme? = nil
    ) async throws -> SignedHeaders {
        let body = Array(bodyBytes)
        return try await forCaller { () async throws(SynheartAuthError) in
            let context = try identity(appID).context
            guard scheme != .two else { throw .needsWholeURL }
            return SignedHeaders(
                try await RequestSigner(context: context).sign(method: method, path: path, body: body).fields)
        }
    }

    /// The id that the service issued, also of a pending device; nil if there is none.
    public func getDeviceId(appID: String) async throws -> String? {
        try await forCaller { () async throws(SynheartAuthError) in
            let record = try await identity(appID).context.ledger.load()
            return record.state == .unregistered ? nil : record.deviceID?.text
        }
    }

    /// The state of the identity.
    public func state(appID: String) async throws -> IdentityState {
        try await forCaller { () async throws(SynheartAuthError) in
            try await identity(appID).context.ledger.load().state
        }
    }

    /// Replaces the key and keeps the device id. Signing continues meanwhile. If the service demands new evidence, the
    /// rotation attests the device again.
    ///
    /// A call joins a rotation in progress, unless the running rotation is scheduled and this call follows a compromise.
    ///
    /// - Throws: `ROTATION_FAILED`; `NETWORK_ERROR` after three attempts; `ATTESTATION_FAILED` if the service refuses the
    ///   evidence. In these cases the old key stays active.
    @discardableResult
    public func rotateKey(appID: String, reason: RotationReason = .scheduled) async throws -> KeyRotation {
        try await forCaller { () async throws(SynheartAuthError) in
            try await identity(appID).rotate(RotationGoal(reason: reason))
        }
    }

    /// Gives up the identity: tells the service, if that works within 3 s, deletes the key, and clears the record.
    ///
    /// Use it only for one of the reasons of ``ResetReason``, never as a retry.
    public func resetDeviceIdentity(appID: String, reason: ResetReason) async throws {
        try await forCaller { () async throws(SynheartAuthError) in try await identity(appID).reset(reason) }
    }

    /// Learns the service's clock from the `server_timestamp` of a `CLOCK_SKEW` answer.
    ///
    /// - Parameters:
    ///   - serverTimestamp: Unix seconds, as received.
    ///   - appID: The app; nil for every app used so far.
    /// - Throws: `CLOCK_SKEW` if the clock is more than 24 hours off. The SDK then learns nothing.
    public func correctClockSkew(serverTimestamp: Double, appID: String? = nil) async throws {
        try await forCaller { () async throws(SynheartAuthError) in
            try await learnClock(serverTimestamp, appID)
        }
    }

    private func learnClock(_ serverTimestamp: Double, _ appID: String?) async throws(SynheartAuthError) {
        let configuration = try configuration()
        let difference = (serverTimestamp * 1000).rounded() - Double(configuration.clock.wallMilliseconds)
        guard difference.magnitude <= Double(ClockOffset.limit),
            let offset = ClockOffset(milliseconds: Int64(difference))
        else {
            throw SynheartAuthError(.clockTooFarOff, "the clock is more than 24 hours off")
        }
        if let appID {
            try await identity(appID).context.ledger.apply(.clockLearned(offset))
            return
        }
        for identity in state.withLock({ Array($0.identities.values) }) {
            try await identity.context.ledger.apply(.clockLearned(offset))
        }
    }

    /// The changes of state from now on, of all apps of this instance.
    public var stateChanges: AsyncStream<StateChange> { changes.stream() }

    func configuration() throws(SynheartAuthError) -> Configuration {
        guard let configuration = state.withLock({ $0.configuration }) else { throw Self.notConfigured }
        return configuration
    }

    private static var notConfigured: SynheartAuthError {
        SynheartAuthError(.notConfigured, "call configure(baseUrl) first")
    }

    func identity(_ text: String) throws(SynheartAuthError) -> DeviceIdentity {
        if let latest = state.withLock({ $0.latest }), latest.context.appID.text.hasSameBytes(as: text) {
            return latest
        }
        let appID: AppID
        do throws(ContractError) {
            appID = try AppID(text)
        } catch {
            throw SynheartAuthError(.notConfigured, error.description)
        }
        // Look up or create the identity in one step, so that no identity of an old configuration is used with a new one.
        let identity = state.withLock { state -> DeviceIdentity? in
            if state.identities[appID] == nil, let configuration = state.configuration {
                state.identities[appID] = DeviceIdentity(
                    context: IdentityContext(appID: appID, configuration: configuration, changes: changes),
                    resets: resets)
            }
            state.latest = state.identities[appID]
            return state.latest
        }
        guard let identity else { throw Self.notConfigured }
        return identity
    }
}

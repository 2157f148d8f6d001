internal import AuthContract
internal import Bytes
internal import StrictJSON
internal import SynheartAuth

/// One device of a fleet.
struct FleetDevice: Sendable {
    private let sdk: SynheartAuth
    private let appID: AppID
    private let url: String
    private let transport: LoggedTransport
    private let registered = Locked(false)

    /// The path and the body of a signed request to another service.
    private static let foreignPath = "/v1/readings"
    private static let foreignBody = Array(#"{"heart_rate":61,"at":1700000000}"#.utf8)
    /// The number of attempts to register. All devices share one address and its limit, so a device that gets 429 waits longer
    /// before each retry.
    private static let enrolments = 20

    init(_ settings: Fleet.Settings, kind: Fleet.Kind, transport: any HTTPTransport, log: FleetLog) throws {
        appID = settings.appID
        url = settings.url
        self.transport = LoggedTransport(
            base: transport, log: log, headers: kind == .development ? [(HeaderName.developmentMode, "true")] : [])
        var configuration = try SynheartAuth.Configuration(baseUrl: settings.url)
        configuration.transport = self.transport
        configuration.storage = VolatileStorage()
        configuration.keyStore = VolatileKeyStore()
        configuration.sleeper = ImpatientSleeper()
        configuration.rotatesAutomatically = false
        configuration.logger = SilentLogger()
        configuration.attestation =
            switch kind {
            case .ios:
                SimulatedAppAttest(
                    iosAppID: "\(SoftwareDevice.team).\(settings.appID)", authority: settings.apple, directory: nil)
            case .android: SimulatedAndroid(package: settings.appID.text, authority: settings.google)
            case .development: SimulatedDevelopment()
            }
        sdk = SynheartAuth(configuration)
    }

    var isRegistered: Bool { registered.withLock { $0 } }

    /// Registers the device. Returns whether the service confirmed a registration that is not pending.
    func enrol() async -> Bool {
        for attempt in 1...Self.enrolments {
            do {
                let isDone = try await sdk.registerDevice(appID: appID.text).status != .pending
                registered.withLock { $0 = isDone }
                return isDone
            } catch {
                guard let error = error as? SynheartAuthError,
                    error.code == .server(ErrorCode.rateLimited.rawValue), let wait = error.retryAfter,
                    (try? await Task.sleep(for: wait * attempt)) != nil
                else { return false }
            }
        }
        return false
    }

    /// Replaces the key.
    func rotate() async -> Bool {
        do {
            try await sdk.rotateKey(appID: appID.text)
            return true
        } catch { return false }
    }

    /// Signs a request. Sends it to the service, or for `verify` sends it as a question to `/verify`. Returns whether it was
    /// accepted.
    func send(_ question: Fleet.Load.Question, dueAt due: ContinuousClock.Instant) async -> Bool {
        do {
            let request: TransportRequest
            switch question {
            case .status:
                let signed = try await sdk.signRequest(
                    appID: appID.text, method: Route.status.method, path: Route.status.rawValue)
                request = TransportRequest(
                    method: Route.status.method, url: url + Route.status.rawValue,
                    headers: HeaderFields(signed.fields.map { ($0.name, $0.value) }), body: [])
            case .verify(let credential):
                let signed = try await sdk.signRequest(
                    appID: appID.text, method: "POST", path: Self.foreignPath, bodyBytes: Self.foreignBody)
                let question = VerifyRequest(
                    method: "POST", scheme: "https", authority: "api.example.com", path: Self.foreignPath, query: nil,
                    headers: HeaderFields(signed.fields.map { ($0.name, $0.value) }), body: .bytes(Self.foreignBody))
                request = TransportRequest(
                    method: Route.verify.method, url: url + Route.verify.rawValue,
                    headers: HeaderFields([
                        ("Authorization", "Bearer \(credential)"), ("Content-Type", "application/json"),
                    ]), body: question.bytes)
            }
            let answer = try await transport.send(request, dueAt: due)
            return answer.status == 200 && Self.isAccepted(answer, question)
        } catch { return false }
    }

    /// Whether the answer accepts the request. In mode `observe`, a refusal has status 200 too.
    private static func isAccepted(_ answer: TransportAnswer, _ question: Fleet.Load.Question) -> Bool {
        guard case .verify = question else { return true }
        guard case .verified? = try? VerifyResponse(parsing: answer.body) else { return false }
        return true
    }
}

/// Throws instead of pausing before a retry: a fleet counts each failure at once.
private struct ImpatientSleeper: Sleeper {
    func sleep(for duration: Duration, _ purpose: SleepPurpose) async throws {
        guard purpose != .retry else { throw CancellationError() }
        try await Task.sleep(for: duration)
    }
}

internal import AuthContract
internal import Bytes
internal import Crypto
internal import Foundation
internal import StrictJSON
internal import SynheartAuth

/// One device of a fleet.
struct FleetDevice: Sendable {
    private let sdk: SynheartAuth
    private let appID: AppID
    private let url: String
    private let transport: LoggedTransport
    private let registered = Locked(false)
    /// Whether the service demands assertions on status requests.
    private let asserts = Locked(false)

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

    /// Registers the device. Returns whether the registration succeeded and the device is not pending.
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

    /// Replaces the key. Returns whether that succeeded.
    func rotate() async -> Bool {
        do {
            try await sdk.rotateKey(appID: appID.text)
            return true
        } catch { return false }
    }

    /// Signs a request and sends it to the service. For `verify`, sends a description of the signed request to `/verify`
    /// instead. Returns whether the service accepted the signed request.
    func send(_ question: Fleet.Load.Question, dueAt due: ContinuousClock.Instant) async -> Bool {
        do {
            if case .status = question, asserts.withLock({ $0 }) { return try await sendAsserting() }
            let answer = try await transport.send(try await request(question), dueAt: due)
            guard case .status = question, LoggedTransport.code(of: answer) == ErrorCode.assertionRequired.rawValue
            else {
                return Self.isAccepted(answer, question)
            }
            asserts.withLock { $0 = true }
            return try await sendAsserting()
        } catch { return false }
    }

    /// Sends a status request through the SDK, which sends requests with assertions one at a time.
    private func sendAsserting() async throws -> Bool {
        try await sdk.send(
            TransportRequest(
                method: Route.status.method, url: url + Route.status.rawValue, headers: HeaderFields(), body: []),
            appID: appID.text, asserting: true
        ).status == 200
    }

    /// Sends a bad request. Returns whether the service refused it correctly.
    func sendBad(
        _ kind: BadTraffic, _ question: Fleet.Load.Question, dueAt due: ContinuousClock.Instant
    ) async -> Bool {
        do {
            let bad: TransportRequest
            switch kind {
            case .replay:
                bad = try await request(question)
                let first = try await transport.send(bad, kind, dueAt: due)
                if !Self.isAccepted(first, question) { return kind.isRefused(with: Self.code(of: first, question)) }
            case .signature: bad = try await request(question, signing: "/v1/other")
            case .stranger:
                bad = try await request(question, changing: [HeaderName.deviceID: DeviceID(from: SystemRandom()).text])
            case .clock:
                let time = Int64(Date().timeIntervalSince1970) - 3600
                bad = try await request(question, changing: [HeaderName.timestamp: String(time)])
            case .malformed: bad = try await request(question, changing: [HeaderName.nonce: "malformed"])
            case .attestation: bad = try await registration(dueAt: due)
            }
            let answer = try await transport.send(bad, kind, dueAt: kind == .replay ? .now : due)
            return kind.isRefused(with: Self.code(of: answer, kind == .attestation ? .status : question))
        } catch { return false }
    }

    /// A registration whose proof is not a valid attestation.
    private func registration(dueAt due: ContinuousClock.Instant) async throws -> TransportRequest {
        func request(_ route: Route, _ body: [UInt8]) -> TransportRequest {
            TransportRequest(
                method: route.method, url: url + route.rawValue,
                headers: HeaderFields([("Content-Type", "application/json")]), body: body)
        }
        let issued = try await transport.send(
            request(.challenge, ChallengeRequest(appID: appID).bytes), .attestation, dueAt: due)
        // If the service refused to issue a challenge, send the challenge request again. The service refuses it for the same reason.
        guard issued.status == 200 else { return request(.challenge, ChallengeRequest(appID: appID).bytes) }
        return request(
            .register,
            RegisterRequest(
                appID: appID, publicKeyText: DevicePublicKey(P256.Signing.PrivateKey().publicKey).base64,
                challenge: try ChallengeResponse(parsing: issued.body).challenge, platform: .ios,
                proof: Base64.standard.encode(SystemRandom().bytes(64))
            ).bytes)
    }

    /// A signed request.
    ///
    /// - Parameters:
    ///   - question: the kind of request.
    ///   - signedPath: the path that is signed, or nil to sign the request's own path.
    ///   - changes: values that replace those of the signature headers, by header name.
    private func request(
        _ question: Fleet.Load.Question, signing signedPath: String? = nil, changing changes: [String: String] = [:]
    ) async throws -> TransportRequest {
        func sign(_ method: String, _ path: String, _ body: [UInt8]) async throws -> HeaderFields {
            let signed = try await sdk.signRequest(
                appID: appID.text, method: method, path: signedPath ?? path, bodyBytes: body)
            return HeaderFields(signed.fields.map { ($0.name, changes[$0.name] ?? $0.value) })
        }
        switch question {
        case .status:
            return TransportRequest(
                method: Route.status.method, url: url + Route.status.rawValue,
                headers: try await sign(Route.status.method, Route.status.rawValue, []), body: [])
        case .verify(let credential):
            let question = VerifyRequest(
                method: "POST", scheme: "https", authority: "api.example.com", path: Self.foreignPath, query: nil,
                headers: try await sign("POST", Self.foreignPath, Self.foreignBody), body: .bytes(Self.foreignBody))
            return TransportRequest(
                method: Route.verify.method, url: url + Route.verify.rawValue,
                headers: HeaderFields([
                    ("Authorization", "Bearer \(credential)"), ("Content-Type", "application/json"),
                ]), body: question.bytes)
        }
    }

    /// The code of a refusal, even of one that mode `observe` does not enforce; nil if the request was accepted.
    private static func code(of answer: TransportResponse, _ question: Fleet.Load.Question) -> String? {
        if case .verify = question, case .observed(let code, _)? = try? VerifyResponse(parsing: answer.body) {
            return code.rawValue
        }
        return LoggedTransport.code(of: answer)
    }

    /// Whether the answer accepts the request. In mode `observe`, a refusal has status 200 too.
    private static func isAccepted(_ answer: TransportResponse, _ question: Fleet.Load.Question) -> Bool {
        guard answer.status == 200 else { return false }
        guard case .verify = question else { return true }
        guard case .verified? = try? VerifyResponse(parsing: answer.body) else { return false }
        return true
    }
}

/// Throws instead of pausing before a retry, because a fleet counts each failure immediately.
private struct ImpatientSleeper: Sleeper {
    func sleep(for duration: Duration, _ purpose: SleepPurpose) async throws {
        guard purpose != .retry else { throw CancellationError() }
        try await Task.sleep(for: duration)
    }
}

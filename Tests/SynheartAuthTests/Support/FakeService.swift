import AuthContract
import Crypto
import Foundation
import StrictJSON

@testable import SynheartAuth

/// An auth service in memory that keeps to the wire contract: single-use challenges, verified proofs and signatures,
/// replay claims, idempotent rotation. It is the transport that a test's SDK sends to.
actor FakeService: HTTPTransport {
    struct Device: Sendable {
        let id: DeviceID
        let appID: AppID
        let platform: Platform
        var key: DevicePublicKey
        var previousKey: (key: DevicePublicKey, until: Int64)?
        var status: DeviceStatus
        let registeredAt: UnixTime
        var keyRotatedAt: UnixTime?
        var mustRotateBy: UnixTime?
        var mustRotateReason = RotationReason.scheduled
        var isKeyExpired = false
        /// The handle of the App Attest key that makes the device's assertions.
        var handle: String?

        var demand: [(String, String)] {
            guard let by = mustRotateBy else { return [] }
            return [(HeaderName.rotate, RotationDemand(by: by, reason: mustRotateReason).headerValue)]
        }
    }

    /// The demands of the app's record.
    struct Policy: Sendable {
        /// The path prefixes that need an assertion (`assertions_required_on`).
        var assertionPrefixes: [String] = []
        /// Whether a refusal for a missing assertion names the prefix of the paths that need one.
        var namesPrefix = true
        /// Whether a rotation needs an assertion, a proof or a key attestation (`reattest_on_rotation`).
        var reattests = false
        /// Whether a rotation may replace the device's App Attest key (`rebind_on_rotation`).
        var rebinds = false
    }

    /// A refusal, which the service answers with the error body of the wire contract.
    struct Refusal: Error {
        let code: String
        let status: Int
        var retryAfter: Int?
        var assertionPrefix: String?

        init(_ code: ErrorCode, retryAfter: Int? = nil) {
            self.code = code.rawValue
            status = code.httpStatus
            self.retryAfter = retryAfter
        }
    }

    static let origin = "https://auth.test"
    let clock: TestClock
    /// The status for a registration with a verified proof.
    var decision = RegistrationStatus.registered
    private(set) var devices: [Device] = []
    private(set) var requests: [TransportRequest] = []
    /// The URLs of verified requests to paths that are not routes of the service.
    private(set) var accepted: [String] = []
    private var challenges: [[UInt8]: (appID: AppID, expires: Int64)] = [:]
    private var claims: Set<String> = []
    private var retired: Set<DevicePublicKey> = []
    private var planned: [(route: String, answer: @Sendable (TransportRequest) -> TransportResponse)] = []
    /// The error of the service's clock in its answers, in seconds.
    var serverTimeError: Int64 = 0
    var ttl: Int64 = 90
    /// Whether a registration needs a key attestation in addition to the provider's proof.
    var demandsKeyAttestation = false
    /// The number of issued tokens. Tokens are opaque to the SDK.
    private(set) var tokens = 0
    private var policy = Policy()
    private var refusedLater: (route: Route, code: ErrorCode)?
    /// The demand on the device that signed the request in hand.
    private var demand: [(String, String)] = []

    init(clock: TestClock) { self.clock = clock }

    private var now: Int64 { clock.trueMilliseconds / 1000 }

    func setPolicy(_ change: @Sendable (inout Policy) -> Void) { change(&policy) }

    func set(_ change: @Sendable (isolated FakeService) -> Void) { change(self) }

    func edit(_ id: String, _ change: @Sendable (inout Device) -> Void) {
        for index in devices.indices where devices[index].id.text == id { change(&devices[index]) }
    }

    /// Refuses the next requests of a route, whatever their content.
    func refuse(_ route: Route, _ code: ErrorCode, times: Int = 1, retryAfter: Int? = nil) {
        let answer = answer(Refusal(code, retryAfter: retryAfter))
        for _ in 0..<times { planned.append((route.rawValue, { _ in answer })) }
    }

    /// Serves the next request of a route, and refuses the one after it.
    func refuseLater(_ route: Route, _ code: ErrorCode) { refusedLater = (route, code) }

    func answer(path: String, with answer: TransportResponse, times: Int = 1) {
        for _ in 0..<times { planned.append((path, { _ in answer })) }
    }

    /// The life of new challenges, in seconds.
    func setLife(_ seconds: Int64) { ttl = seconds }

    func count(_ route: Route) -> Int {
        requests.count { $0.url.hasSuffix(route.rawValue) && $0.method == route.method }
    }

    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
        requests.append(request)
        if let index = planned.firstIndex(where: { request.url.hasSuffix($0.route) }) {
            return planned.remove(at: index).answer(request)
        }
        if let later = refusedLater, request.url.hasSuffix(later.route.rawValue) {
            refusedLater = nil
            refuse(later.route, later.code)
        }
        demand = []
        do {
            return try route(request)
        } catch let refusal as Refusal {
            return answer(refusal, demand)
        } catch {
            return answer(Refusal(.invalidRequest))
        }
    }

    func answer(_ refusal: Refusal, _ demand: [(String, String)] = []) -> TransportResponse {
        let body = ErrorBody(
            code: refusal.code, message: "refused", requestID: "r", serverTimestamp: UnixTime(now + serverTimeError))
        var lines = [("X-Synheart-Server-Time", String(now + serverTimeError))]
        if let seconds = refusal.retryAfter { lines.append(("Retry-After", String(seconds))) }
        if let prefix = refusal.assertionPrefix {
            lines.append((HeaderName.assertion, AssertionDemand(prefix: prefix).headerValue))
        }
        return TransportResponse(status: refusal.status, headers: HeaderFields(lines + demand), body: body.bytes)
    }

    private func ok(_ body: some WireBody, device: Device? = nil, status: Int = 200) -> TransportResponse {
        let lines = [("X-Synheart-Server-Time", String(now + serverTimeError))] + (device?.demand ?? [])
        return TransportResponse(status: status, headers: HeaderFields(lines), body: body.bytes)
    }

    private func route(_ request: TransportRequest) throws -> TransportResponse {
        guard request.url.hasPrefix(Self.origin) else { return try acceptSigned(request) }
        switch (request.method, String(request.url.dropFirst(Self.origin.count))) {
        case ("POST", Route.challenge.rawValue): return try challenge(request)
        case ("POST", Route.register.rawValue): return try register(request)
        case ("POST", Route.rotateKey.rawValue): return try rotate(request)
        case ("GET", Route.status.rawValue): return try status(request)
        case ("DELETE", Route.device.rawValue): return try deregister(request)
        case ("POST", Route.token.rawValue): return try token(request)
        default: return try acceptSigned(request)
        }
    }

    private func challenge(_ request: TransportRequest) throws -> TransportResponse {
        let body = try ChallengeRequest(parsing: request.body)
        let challenge = SystemRandom().bytes(32)
        challenges[challenge] = (body.appID, clock.trueMilliseconds + ttl * 1000)
        return ok(
            ChallengeResponse(challenge: challenge, expiresAt: UnixTime(now + ttl), ttlSeconds: ttl))
    }

    private func register(_ request: TransportRequest) throws -> TransportResponse {
        let body = try RegisterRequest(parsing: request.body)
        guard let taken = challenges.removeValue(forKey: body.challenge), taken.appID == body.appID else {
            throw Refusal(.invalidChallenge)
        }
        guard clock.trueMilliseconds < taken.expires else { throw Refusal(.challengeExpired) }
        let key = try DevicePublicKey(base64: body.publicKeyText)
        let nonce = BindingNonce(challenge: body.challenge, publicKeyText: body.publicKeyText)
        guard let proof = body.keyProof,
            try RequestSignature(der: proof).isValid(for: KeyProof.registration(nonce), by: key),
            let handle = TestAttestation.handle(in: body.proof, of: nonce),
            // In place of a certificate chain, a test sends the challenge that the hardware was given. A different
            // challenge is refused.
            body.keyAttestation.map({ $0 == [body.challenge] }) ?? !demandsKeyAttestation
        else { throw Refusal(.invalidAttestation) }
        if let known = devices.first(where: { $0.key == key && $0.appID == body.appID }) {
            switch known.status {
            case .revoked: throw Refusal(.deviceRevoked)
            case .deregistered: throw Refusal(.invalidAttestation)
            case .registered: return ok(RegisterResponse(deviceID: known.id, status: .registered))
            case .pending: return ok(RegisterResponse(deviceID: known.id, status: .pending))
            case .rejected: return ok(RegisterResponse(deviceID: known.id, status: .rejected))
            }
        }
        guard !retired.contains(key) else { throw Refusal(.invalidAttestation) }
        let status: DeviceStatus =
            switch decision {
            case .registered: .registered
            case .pending: .pending
            case .rejected: .rejected
            }
        let device = Device(
            id: DeviceID(from: SystemRandom()), appID: body.appID, platform: body.platform, key: key, status: status,
            registeredAt: UnixTime(now), handle: handle)
        devices.append(device)
        return ok(RegisterResponse(deviceID: device.id, status: decision))
    }

    /// The device that signed, and whether it used its current key. Checks in the order of the contract, the assertion last.
    private func verify(_ request: TransportRequest) throws -> (index: Int, isCurrent: Bool) {
        let headers = try SchemeOneHeaders(request.headers)
        guard abs(headers.timestamp.seconds - now) <= 300, headers.timestamp.seconds - now <= 60 else {
            throw Refusal(.clockSkew)
        }
        guard let index = devices.firstIndex(where: { $0.id == headers.deviceID && $0.appID == headers.appID }),
            devices[index].status != .deregistered
        else { throw Refusal(.notRegistered) }
        let path = URLComponents(string: request.url)?.percentEncodedPath ?? ""
        let message = SchemeOneMessage.bytes(
            method: request.method, path: path, timestamp: headers.timestamp, body: request.body)
        let isCurrent = headers.signature.isValid(for: message, by: devices[index].key)
        let isPrevious =
            devices[index].previousKey.map { previous in
                now < previous.until && headers.signature.isValid(for: message, by: previous.key)
            } ?? false
        guard isCurrent || isPrevious else { throw Refusal(.invalidSignature) }
        demand = devices[index].demand
        guard devices[index].status != .revoked else { throw Refusal(.deviceRevoked) }
        let claim = "\(headers.deviceID)"
        guard claims.insert("\(claim) n \(headers.nonce.text)").inserted,
            claims.insert("\(claim) r \(Array(headers.signature.r))").inserted
        else { throw Refusal(.nonceReplay) }
        try checkAssertion(request, index, path, message)
        return (index, isCurrent)
    }

    /// Checks the assertion of a request that has or needs one. A rotation may have the assertion in its body, or a proof instead.
    private func checkAssertion(
        _ request: TransportRequest, _ index: Int, _ path: String, _ message: [UInt8]
    ) throws {
        if let text = try request.headers.atMostOne(HeaderName.assertion) {
            let hash = Array(SHA256.hash(data: message))
            guard let handle = devices[index].handle,
                Base64.standard.decode(text) == TestAttestation.assertion(handle, hash)
            else { throw Refusal(.invalidAssertion) }
            return
        }
        guard
            let prefix = policy.assertionPrefixes.first(where: { path == $0 || path.hasPrefix($0 + "/") || $0 == "/" })
        else { return }
        if path == Route.rotateKey.rawValue, let body = try? RotateKeyRequest(parsing: request.body),
            body.assertion != nil || body.proof != nil
        {
            return
        }
        var refusal = Refusal(.assertionRequired)
        refusal.assertionPrefix = policy.namesPrefix ? prefix : nil
        throw refusal
    }

    private func reattest(_ body: RotateKeyRequest, _ index: Int) throws {
        guard body.assertion != nil || body.proof != nil || body.keyAttestation != nil else {
            if policy.reattests { throw Refusal(.attestationRequired) }
            return
        }
        guard let challenge = body.challenge, challenges.removeValue(forKey: challenge) != nil else {
            throw Refusal(.invalidChallenge)
        }
        let nonce = BindingNonce(
            rotationChallenge: challenge, deviceID: body.deviceID, newPublicKeyText: body.newPublicKeyText)
        if let assertion = body.assertion {
            guard let handle = devices[index].handle, assertion == TestAttestation.assertion(handle, nonce.bytes) else {
                throw Refusal(.invalidAttestation)
            }
        }
        guard body.keyAttestation.map({ $0 == [challenge] }) ?? true else { throw Refusal(.invalidAttestation) }
        if devices[index].platform == .ios, let proof = body.proof {
            guard policy.rebinds, body.reason != .compromise, devices[index].mustRotateReason != .compromise,
                let handle = TestAttestation.handle(in: proof, of: nonce)
            else { throw Refusal(.invalidAttestation) }
            devices[index].handle = handle
        }
    }

    private func rotate(_ request: TransportRequest) throws -> TransportResponse {
        let body = try RotateKeyRequest(parsing: request.body)
        let (index, isCurrent) = try verify(request)
        guard devices[index].status == .registered else {
            throw Refusal(devices[index].status == .pending ? .devicePending : .deviceRevoked)
        }
        let newKey = try DevicePublicKey(base64: body.newPublicKeyText)
        let message = KeyProof.rotation(deviceID: body.deviceID, newPublicKeyText: body.newPublicKeyText)
        guard let proof = body.newKeyProof, try RequestSignature(der: proof).isValid(for: message, by: newKey) else {
            throw Refusal(.invalidAttestation)
        }
        if newKey == devices[index].key {
            guard let at = devices[index].keyRotatedAt else { throw Refusal(.rotationFailed) }
            return ok(RotateKeyResponse(effectiveAt: at))
        }
        guard isCurrent, !retired.contains(newKey) else { throw Refusal(.rotationFailed) }
        try reattest(body, index)
        rotate(index, to: newKey, overlap: body.reason == .compromise ? 0 : 60)
        return ok(RotateKeyResponse(effectiveAt: UnixTime(now)))
    }

    private func rotate(_ index: Int, to key: DevicePublicKey, overlap: Int64) {
        retired.insert(devices[index].key)
        devices[index].previousKey = (devices[index].key, now + overlap)
        devices[index].key = key
        devices[index].keyRotatedAt = UnixTime(now)
        (devices[index].mustRotateBy, devices[index].mustRotateReason) = (nil, .scheduled)
        devices[index].isKeyExpired = false
    }

    /// Imitates a thief of the device's key, who rotates it to a key of their own.
    func steal(_ id: String) {
        guard let index = devices.firstIndex(where: { $0.id.text == id }) else { return }
        rotate(index, to: DevicePublicKey(P256.Signing.PrivateKey().publicKey), overlap: 60)
    }

    private func status(_ request: TransportRequest) throws -> TransportResponse {
        let (index, _) = try verify(request)
        let device = devices[index]
        return ok(
            StatusResponse(
                deviceID: device.id, status: device.status, platform: device.platform,
                registeredAt: device.registeredAt, keyRotatedAt: device.keyRotatedAt,
                keyAgeSeconds: now - (device.keyRotatedAt ?? device.registeredAt).seconds,
                keyThumbprint: device.key.thumbprint, mustRotate: device.mustRotateBy != nil,
                assurance: Assurance(app: .test, key: .unattested), serverTimestamp: UnixTime(now)), device: device)
    }

    private func deregister(_ request: TransportRequest) throws -> TransportResponse {
        let (index, isCurrent) = try verify(request)
        guard isCurrent else { throw Refusal(.invalidSignature) }
        devices[index].status = .deregistered
        return TransportResponse(status: 204)
    }

    private func token(_ request: TransportRequest) throws -> TransportResponse {
        let (index, isCurrent) = try verify(request)
        guard isCurrent else { throw Refusal(.invalidSignature) }
        try requireUsable(devices[index])
        tokens += 1
        return ok(TokenResponse(token: "token-\(tokens)", expiresIn: 600), device: devices[index])
    }

    private func acceptSigned(_ request: TransportRequest) throws -> TransportResponse {
        let (index, _) = try verify(request)
        try requireUsable(devices[index])
        accepted.append(request.url)
        let lines = [("X-Synheart-Server-Time", String(now + serverTimeError))] + devices[index].demand
        return TransportResponse(status: 200, headers: HeaderFields(lines), body: Array("ok".utf8))
    }

    private func requireUsable(_ device: Device) throws {
        switch device.status {
        case .registered: if device.isKeyExpired { throw Refusal(.keyExpired) }
        case .pending: throw Refusal(.devicePending)
        default: throw Refusal(.deviceRevoked)
        }
    }
}

import AuthContract
import AuthService
import Crypto
import Foundation
import SQLiteStores
import StrictJSON

/// A service over SQLite, with devices registered by development proof and requests that they signed in advance.
struct SignedFleet {
    let service: AuthService
    private let appID: AppID
    private let devices: [(id: DeviceID, key: P256.Signing.PrivateKey)]

    init(folder: URL, devices count: Int = 64) async throws {
        let stores = try SQLiteStores(path: folder.appendingPathComponent("bench.sqlite").path)
        guard let key = ServiceKey(SystemRandom().bytes(32)) else { fatalError("32 bytes") }
        var protection = ProtectionSettings()
        protection.device = Rate(burst: 1e9, perMinute: 1e9)
        protection.enrolment = Rate(burst: 1e9, perMinute: 1e9)
        service = AuthService(stores: stores.all, key: key, protection: protection)
        appID = try AppID("bench.app")
        let record = try JSONValue(
            parsing: """
                {"app_id":"bench.app","build_channel":"dev","development_integrity_allowed":true,
                 "ios":{"app_ids":["TEAM.bench.app"]}}
                """)
        _ = try await service.apps.add(AppRecord(JSONFields(record)), actor: "benchmark")
        var devices: [(DeviceID, P256.Signing.PrivateKey)] = []
        for _ in 0..<count { devices.append(try await Self.register(service, appID)) }
        self.devices = devices
    }

    private static let loopback = RequestProvenance(
        address: ClientAddress("127.0.0.1"), scheme: "http", authority: "localhost")

    private static func register(
        _ service: AuthService, _ appID: AppID
    ) async throws -> (DeviceID, P256.Signing.PrivateKey) {
        let http = IncomingRequest(
            method: "POST", target: try RequestTarget(Route.register.rawValue),
            headers: HeaderFields([(HeaderName.developmentMode, "true")]), body: .bytes([]), provenance: loopback)
        let challenge = try await service.issueChallenge(ChallengeRequest(appID: appID), http).challenge
        let key = P256.Signing.PrivateKey()
        let text = DevicePublicKey(key.publicKey).base64
        let nonce = BindingNonce(challenge: challenge, publicKeyText: text)
        let proof = try key.signature(for: KeyProof.registration(nonce)).derRepresentation
        let response = try await service.register(
            RegisterRequest(
                appID: appID, publicKeyText: text, challenge: challenge, platform: .ios,
                proof: RegisterRequest.developmentProof, keyProof: Array(proof)), http)
        return (response.deviceID, key)
    }

    /// The signature of a request, with its message and key.
    struct Signature {
        let message: [UInt8]
        let signature: RequestSignature
        let key: DevicePublicKey

        var isValid: Bool { signature.isValid(for: message, by: key) }
    }

    /// The signature of one of `requests`.
    func signature(of request: IncomingRequest) throws -> Signature {
        let headers = try SchemeOneHeaders(request.headers)
        guard let device = devices.first(where: { $0.id == headers.deviceID }) else { throw OutOfRequests() }
        return Signature(
            message: SchemeOneMessage.bytes(
                method: request.method, path: request.target.path.text, timestamp: headers.timestamp, body: []),
            signature: headers.signature, key: DevicePublicKey(device.key.publicKey))
    }

    /// Requests that can each be verified once.
    func requests(count: Int) throws -> [IncomingRequest] {
        let random = SystemRandom()
        let timestamp = service.clock.now
        return try (0..<count).map { index in
            let device = devices[index % devices.count]
            let message = SchemeOneMessage.bytes(
                method: "GET", path: Route.status.rawValue, timestamp: timestamp, body: [])
            let headers = SchemeOneHeaders(
                appID: appID, deviceID: device.id, signature: RequestSignature(try device.key.signature(for: message)),
                timestamp: timestamp, nonce: RequestNonce(from: random))
            return IncomingRequest(
                method: "GET", target: try RequestTarget(Route.status.rawValue),
                headers: HeaderFields(headers.fields.map { ($0.name, $0.value) }), body: .bytes([]),
                provenance: Self.loopback)
        }
    }
}

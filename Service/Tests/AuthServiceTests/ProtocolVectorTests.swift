import AuthContract
import AuthService
import StoreConformance
import StrictJSON
import Testing

/// The vectors of `docs/vectors` for verifiers: requests with their answers, and *Who may do what*.
@Suite("Vectors of the protocol")
struct ProtocolVectorTests {
    // MARK: requests.json

    private struct Requests: Decodable {
        let appId: String
        let deviceId: String
        let device: Device
        let cases: [Case]

        struct Device: Decodable {
            var key: String?
            var previousKey: String?
            var previousKeyUntil: Int64?
            var status: String?
            var highestScheme: Int?
        }

        struct Case: Decodable {
            let name: String
            let device: Device?
            let steps: [Step]
        }

        struct Step: Decodable {
            let now: Int64
            let request: Request
            let accepted: Int?
            let error: String?
        }

        struct Request: Decodable {
            let method: String
            let scheme: String
            let authority: String
            let path: String
            let query: String?
            let headers: [[String]]
            let body: String?
            let bodySha256: String?
        }
    }

    private struct Keys: Decodable {
        let keys: [Key]

        struct Key: Decodable {
            let name: String
            let publicKey: String
        }
    }

    private struct Malformed: Error { let what: String }

    @Test("each request of the vectors is answered as its case says")
    func requests() async throws {
        let file: Requests = try ProtocolVectors.load("requests")
        let names: Keys = try ProtocolVectors.load("keys")
        let keys = Dictionary(
            uniqueKeysWithValues: try names.keys.map { ($0.name, try DevicePublicKey(base64: $0.publicKey)) })
        // The policy of a case overrides members of the file's common policy. They are merged as JSON, because both are parts of
        // an app record.
        let raw = try #require(
            try JSONValue(parsing: ProtocolVectors.bytes("requests"), limits: .init(bytes: 1 << 20)).object)
        let policies = raw["cases"]?.array?.map { $0.object?["policy"]?.object } ?? []
        #expect(policies.count == file.cases.count)
        for (item, policy) in zip(file.cases, policies) {
            let world = try await World(["signature": Self.laid(policy, over: raw["policy"]?.object)])
            let row = try Self.row(item.device, file, keys)
            let event = AuditEvent(.deviceRegistered, at: row.registeredAt, actor: "test")
            let inserted = try await world.stores.insert(row, recording: event)
            try #require(inserted == .inserted)
            for (index, step) in item.steps.enumerated() {
                world.clock.advance(step.now - world.clock.now.seconds)
                let request = try Self.incoming(step.request, world)
                let outcome = try await Self.outcome(of: request, in: world)
                #expect(outcome == (step.error ?? "scheme \(step.accepted ?? 0)"), "\(item.name), step \(index + 1)")
            }
        }
    }

    private static func laid(_ policy: JSONObject?, over common: JSONObject?) -> JSONValue {
        var members: [String: JSONValue] = [:]
        for member in (common?.members ?? []) + (policy?.members ?? []) { members[member.name] = member.value }
        return .object(World.object(members))
    }

    private static func row(
        _ device: Requests.Device?, _ file: Requests, _ keys: [String: DevicePublicKey]
    ) throws -> DeviceRecord {
        let status = try #require(DeviceStatus(rawValue: device?.status ?? file.device.status ?? ""))
        let scheme = try #require(SignatureScheme(rawValue: device?.highestScheme ?? file.device.highestScheme ?? 0))
        return DeviceRecord(
            appID: try AppID(file.appId), deviceID: try DeviceID(file.deviceId), platform: .android, status: status,
            key: try #require(keys[device?.key ?? file.device.key ?? ""]),
            previousKey: try device?.previousKey.map { try #require(keys[$0]) },
            previousKeyUntil: device?.previousKeyUntil.map { UnixTime($0) },
            assurance: Assurance(app: .playIntegrity, key: .tee), registeredAt: UnixTime(1_690_000_000),
            highestScheme: scheme)
    }

    private static func incoming(_ request: Requests.Request, _ world: World) throws -> SentRequest {
        let body: VerifyRequest.Body
        switch (
            request.body.flatMap { Base64.standard.decode($0) },
            request.bodySha256.flatMap { Base64.standard.decode($0) }
        ) {
        case (let bytes?, nil): body = .bytes(bytes)
        case (nil, let digest?): body = .sha256(digest)
        default: throw Malformed(what: "body")
        }
        return SentRequest(
            method: request.method, scheme: request.scheme, authority: request.authority, path: request.path,
            query: request.query, headers: HeaderFields(request.headers.map { ($0[0], $0[1]) }), body: body,
            address: world.address)
    }

    /// The scheme of an accepted request, the code of a refusal, or `not enforced` for a refusal in mode `observe`.
    private static func outcome(of request: SentRequest, in world: World) async throws -> String {
        var answer: VerifyResponse?
        let refusal = try await refusal { answer = try await world.verify(request) }
        if let refusal { return refusal.code.rawValue }
        guard case .verified(let identity) = answer else { return "not enforced" }
        return "scheme \(identity.signatureScheme.rawValue)"
    }

    // MARK: access.json

    private struct Access: Decodable {
        let rows: [Row]

        struct Row: Decodable {
            let state: String
            let status: String?
            let rotateKey: String?
            let deregister: String?
            let token: String?
            let verify: String?
        }
    }

    @Test("the published table Who may do what is the table of the code")
    func access() throws {
        let file: Access = try ProtocolVectors.load("access")
        #expect(file.rows.count == AccessTests.State.allCases.count)
        for (row, state) in zip(file.rows, AccessTests.State.allCases) {
            let cells = AccessTests.cells.filter { $0.state == state }
            #expect(
                cells.map { $0.expected?.rawValue } == [
                    row.status, row.rotateKey, row.deregister, row.token, row.verify,
                ],
                "\(row.state)")
        }
    }

    // MARK: tokens.json

    @Test("an issued token has the header and the claims of the published one")
    func tokens() async throws {
        struct File: Decodable {
            let tokens: [Token]

            struct Token: Decodable { let token: String }
        }
        let file: File = try ProtocolVectors.load("tokens")
        let world = try await World(origin: "https://auth.example.com")
        let issued = try await world.token(try await world.device()).token
        let published = try #require(file.tokens.first?.token)
        for (ours, theirs) in zip(try Self.parts(issued), try Self.parts(published)) {
            #expect(Set(ours.members.map(\.name)) == Set(theirs.members.map(\.name)))
        }
    }

    private static func parts(_ token: String) throws -> [JSONObject] {
        try token.split(separator: ".").prefix(2).map { part in
            let bytes = try #require(Base64.url.decode(part))
            return try #require(try JSONValue(parsing: bytes).object)
        }
    }
}

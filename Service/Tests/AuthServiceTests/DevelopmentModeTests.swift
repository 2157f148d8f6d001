import AuthContract
import AuthService
import Crypto
import StoreConformance
import StrictJSON
import Testing

@Suite("Development mode")
struct DevelopmentModeTests {
    private static let production: [String: JSONValue] = [
        "build_channel": "production", "development_integrity_allowed": false,
    ]

    @Test(
        "a development proof needs the allowance, the channel and the header: all three",
        arguments: [
            ("dev", true, ["true"], nil), ("staging", true, ["true"], nil),
            ("dev", false, ["true"], .devModeNotAllowed),
            ("dev", true, [], .devModeNotAllowed), ("dev", true, ["TRUE"], .devModeNotAllowed),
            ("dev", true, ["1"], .devModeNotAllowed), ("dev", true, ["true", "true"], .devModeNotAllowed),
            ("dev", true, ["false"], .devModeNotAllowed), ("staging", false, ["true"], .devModeNotAllowed),
            ("production", false, [], .devModeNotAllowed),
        ] as [(String, Bool, [String], ErrorCode?)])
    func allThree(channel: String, isAllowed: Bool, header: [String], expected: ErrorCode?) async throws {
        let world = try await World([
            "build_channel": .string(channel), "development_integrity_allowed": .bool(isAllowed),
        ])
        for platform in Platform.allCases {
            let enrolment = try await world.enrolment(P256.Signing.PrivateKey(), platform: platform)
            let refusal = try await refusal {
                try await world.register(enrolment, header.map { (HeaderName.developmentMode, $0) })
            }
            #expect(refusal?.code == expected)
        }
    }

    @Test("a development proof of an iOS device has no key attestation")
    func chainOfPhone() async throws {
        let world = try await World()
        for platform in Platform.allCases {
            let enrolment = try await world.enrolment(P256.Signing.PrivateKey(), platform: platform)
            let request = RegisterRequest(
                appID: enrolment.appID, publicKeyText: enrolment.publicKeyText, challenge: enrolment.challenge,
                platform: platform, proof: enrolment.proof, keyProof: enrolment.keyProof, keyAttestation: [[1]])
            let refusal = try await refusal { try await world.register(request) }
            #expect(refusal?.code == (platform == .ios ? .invalidAttestation : nil))
        }
    }

    @Test("the header grants nothing by itself")
    func headerAlone() async throws {
        let world = try await World()
        let enrolment = try await world.enrolment(P256.Signing.PrivateKey(), proof: { _ in "AAAA" })
        try await expect(.invalidAttestation) { try await world.register(enrolment) }
    }

    @Test(
        "on production any such header is 403 on every device route and inside /verify, whatever its value",
        arguments: ["true", "false", "", "0"])
    func production(value: String) async throws {
        let world = try await World(Self.production)
        let header = (HeaderName.developmentMode.uppercased(), value)
        try await expect(.devModeNotAllowed) {
            try await world.service.issueChallenge(
                ChallengeRequest(appID: AppID(World.appID)), world.http([header]))
        }
        let enrolment = try await world.enrolment(P256.Signing.PrivateKey())
        try await expect(.devModeNotAllowed) { try await world.register(enrolment, [header]) }
        let device = try await Self.device(world)
        for operation in Operation.allCases where operation != .otherService {
            let request = try world.signed(device, for: operation).adding(header.0, value)
            try await expect(.devModeNotAllowed) { try await world.service.authenticate(request, for: operation) }
        }
        try await expect(.devModeNotAllowed) {
            try await world.verify(try world.signed(device).adding(header.0, value))
        }
        try await world.verify(device)
        try await world.status(device)
    }

    @Test("a development header on production is a security event, one a minute for each app and address")
    func securityEvents() async throws {
        let world = try await World(Self.production)
        let device = try await Self.device(world)
        func attempt(from address: String = "192.0.2.7") async throws {
            var request = try world.signed(device, for: .status).adding(HeaderName.developmentMode, "true")
            request.address = ClientAddress(address)
            try await expect(.devModeNotAllowed) { try await world.service.authenticate(request, for: .status) }
        }
        for _ in 0..<5 { try await attempt() }
        #expect(try await world.audited(.securityEvent).count == 1)
        try await attempt(from: "192.0.2.8")
        #expect(try await world.audited(.securityEvent).count == 2)
        world.clock.advance(60)
        try await attempt()
        let events = try await world.audited(.securityEvent)
        #expect(events.count == 3)
        #expect(events.first?.detail["event"] == "development_header_on_production")
        #expect(events.first?.detail["unrecorded_before"] == 4)
        #expect(events.first?.detail["address"] == "192.0.2.7")
    }

    @Test("one app causes at most 10 development-header events a minute, from any number of addresses")
    func rowsOfOneApp() async throws {
        let world = try await World(Self.production)
        func attempts(_ numbers: Range<Int>, app: String = World.appID) async throws {
            for number in numbers {
                let address = ClientAddress("2001:db8:\(String(number, radix: 16))::1")
                let http = try world.http([World.developmentHeader], from: address)
                try await expect(.devModeNotAllowed) {
                    try await world.service.issueChallenge(ChallengeRequest(appID: AppID(app)), http)
                }
            }
        }
        try await attempts(0..<6)
        world.clock.advance(30)
        try await attempts(6..<300)
        #expect(try await world.audited(.securityEvent).count == 10)
        // Now only the first six events are a minute old, so six more events are recorded, not ten.
        world.clock.advance(30)
        try await attempts(300..<400)
        #expect(try await world.audited(.securityEvent).count == 16)
        let first = try await world.audited(.securityEvent).reversed()[10]
        #expect(first.detail["unrecorded_of_app_before"] == .integer(290))
        #expect(first.detail["unrecorded_before"] == 0)
        var record = Self.production
        record["app_id"] = "com.example.other"
        try await world.add(World.record(record))
        try await attempts(0..<20, app: "com.example.other")
        #expect(try await world.audited(.securityEvent).count == 26)
    }

    @Test("on channels dev and staging the header is no security event", arguments: ["dev", "staging"])
    func otherChannels(channel: String) async throws {
        let world = try await World(["build_channel": .string(channel)])
        let device = try await world.device()
        try await world.verify(try world.signed(device).adding(HeaderName.developmentMode, "anything"))
        #expect(try await world.audited(.securityEvent).isEmpty)
    }

    /// A device of a production app, stored as if Google had attested it.
    private static func device(_ world: World) async throws -> TestDevice {
        let device = TestDevice(
            appID: try AppID(World.appID), id: DeviceID(from: world.random), key: P256.Signing.PrivateKey())
        _ = try await world.stores.insert(
            DeviceRecord(
                appID: device.appID, deviceID: device.id, platform: .android, status: .registered,
                key: device.publicKey,
                assurance: Assurance(app: .playIntegrity, key: .appVouched), registeredAt: world.clock.now),
            recording: AuditEvent(.deviceRegistered, at: world.clock.now, actor: "test"))
        return device
    }
}

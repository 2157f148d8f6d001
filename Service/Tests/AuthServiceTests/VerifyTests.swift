import AuthContract
import Crypto
import StoreConformance
import StrictJSON
import Testing

@testable import AuthService

@Suite("Requests of other services")
struct VerifyTests {
    private static let id = "7d444840-9dc0-4d1e-8e1b-9f0f6d3a2b10"

    @Test("a credential for another app is FORBIDDEN, also if that app is unknown")
    func otherApp() async throws {
        let world = try await World()
        try await world.add(World.record(["app_id": "com.example.third"]))
        let device = try await world.device("com.example.third")
        try await expect(.forbidden) { try await world.verify(device) }
        let nobody = try world.signed(device).with(HeaderName.appID, "com.example.nobody")
        try await expect(.forbidden) { try await world.verify(nobody) }
    }

    @Test("credentials of the admin API do not verify", arguments: [CredentialRole.viewer, .operator, .admin])
    func otherRoles(role: CredentialRole) async throws {
        let world = try await World()
        let device = try await world.device()
        let credential = try await world.service.credentials.create(
            name: "x", role: role, scope: .apps([device.appID]), life: 1000, actor: "test"
        ).credential
        try await expect(.forbidden) { try await world.verify(try world.signed(device), by: credential) }
    }

    // MARK: The same question again

    @Test("the same credential, verification_id and content within 60 s get the same verdict")
    func sameVerdict() async throws {
        let world = try await World()
        let device = try await world.device()
        let request = try world.signed(device)
        try await world.verify(request, id: Self.id)
        world.clock.advance(59)
        try await world.verify(request, id: Self.id)
        world.clock.advance(1)
        try await expect(.nonceReplay) { try await world.verify(request, id: Self.id) }
        let stale = try world.signed(device, RequestDraft().with { $0.ahead = -301 })
        let other = "8d444840-9dc0-4d1e-8e1b-9f0f6d3a2b10"
        for _ in 0..<2 { try await expect(.clockSkew) { try await world.verify(stale, id: other) } }
    }

    @Test(
        "a verification_id is a UUID of any version, in either case",
        arguments: [
            "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "019ac5a4-3c1b-7d3e-8b7a-1f2e3d4c5b6a",
            "00000000-0000-0000-0000-000000000000", "6BA7B810-9DAD-41D1-C0B4-00C04FD430C8",
        ])
    func anyUUID(id: String) async throws {
        let world = try await World()
        let request = try world.signed(try await world.device())
        for id in [id, id.lowercased()] {
            let question = try VerifyRequest(parsing: request.described(id: id, for: nil).bytes)
            let verdict = try await world.service.verify(question, by: world.credential, address: world.address)
            _ = try verdict.verdict()
        }
    }

    @Test("what no earlier question can have taken is not fresh, whoever signed it", arguments: [-361, 61, 100_000])
    func neverFresh(ahead: Int64) async throws {
        let world = try await World()
        let request = try world.signed(try await world.device(), RequestDraft().with { $0.ahead = ahead })
        let unknown = request.with(HeaderName.deviceID, DeviceID(from: SystemRandom()).text)
        try await expect(.clockSkew) { try await world.verify(unknown, id: Self.id) }
        try await expect(.clockSkew) { try await world.verify(request, id: Self.id) }
    }

    @Test("a first question about an old request is CLOCK_SKEW, whatever else is wrong with the request")
    func freshnessFirst() async throws {
        let world = try await World()
        let device = try await world.device()
        let unknown = TestDevice(
            appID: device.appID, id: DeviceID(from: world.random), key: P256.Signing.PrivateKey())
        let old = RequestDraft().with { $0.ahead = -320 }
        for request in [
            try world.signed(unknown, old), try world.signed(device, old.with { $0.query = "x=1" }),
            try world.signed(device, old.with { ($0.scheme, $0.signedBody) = (.two, [1]) }),
        ] {
            try await expect(.clockSkew) { try await world.verify(request, id: Self.id) }
        }
    }

    @Test("another node, and one after a restart, answers a question again")
    func anotherNode() async throws {
        let world = try await World()
        let device = try await world.device()
        for draft in [RequestDraft(), RequestDraft().with { $0.scheme = .two }] {
            let request = try world.signed(device, draft)
            try await world.verify(request, id: Self.id)
            let node = try world.anotherNode()
            try await world.verify(request, id: Self.id, at: node)
            try await expect(.nonceReplay) { try await world.verify(request, at: node) }
        }
    }

    @Test("a repeated question is not refused because its request is no longer fresh, and a first one is")
    func noLongerFresh() async throws {
        let world = try await World()
        let device = try await world.device()
        let request = try world.signed(device, RequestDraft().with { $0.ahead = -299 })
        let other = try world.signed(device, RequestDraft().with { $0.ahead = -299 })
        try await world.verify(request, id: Self.id)
        world.clock.advance(30)
        let node = try world.anotherNode()
        try await world.verify(request, id: Self.id, at: node)
        try await expect(.clockSkew) { try await world.verify(request, at: node) }
        for _ in 0..<2 { try await expect(.clockSkew) { try await world.verify(other, id: Self.id, at: node) } }
        world.clock.advance(30)
        try await expect(.clockSkew) { try await world.verify(request, id: Self.id, at: node) }
    }

    @Test("what changed since the first answer decides: a revoked device is refused")
    func revokedMeanwhile() async throws {
        let world = try await World()
        let device = try await world.device()
        let request = try world.signed(device)
        try await world.verify(request, id: Self.id)
        try await world.revoke(device)
        try await expect(.deviceRevoked) { try await world.verify(request, id: Self.id, at: try world.anotherNode()) }
    }

    @Test("a question that was refused is refused again")
    func refusedAgain() async throws {
        let world = try await World()
        let device = try await world.device()
        let request = try world.signed(device)
        try await world.verify(request)
        for _ in 0..<2 { try await expect(.nonceReplay) { try await world.verify(request, id: Self.id) } }
    }

    @Test("the same request to /verify without an id, or under two ids, is a replay")
    func twice() async throws {
        let world = try await World()
        let device = try await world.device()
        let request = try world.signed(device)
        try await world.verify(request, id: Self.id)
        try await expect(.nonceReplay) { try await world.verify(request) }
        try await expect(.nonceReplay) {
            try await world.verify(request, id: "8d444840-9dc0-4d1e-8e1b-9f0f6d3a2b10")
        }
    }

    @Test("other content or another credential under the id is judged anew")
    func judgedAnew() async throws {
        let world = try await World()
        let device = try await world.device()
        let request = try world.signed(device)
        try await world.verify(request, id: Self.id)
        try await expect(.nonceReplay) { try await world.verify(request.adding("X-Other", "x"), id: Self.id) }
        let another = try await world.service.credentials.create(
            name: "other", role: .service, scope: .apps([device.appID]), life: 1000, actor: "test"
        ).credential
        try await expect(.nonceReplay) { try await world.verify(request, id: Self.id, by: another) }
        try await world.verify(try world.signed(device), id: Self.id)
    }

    @Test("64 concurrent copies of one question get the same verdict")
    func concurrentQuestions() async throws {
        let world = try await World()
        let request = try world.signed(try await world.device())
        let outcomes = try await concurrently(Array(0..<64)) { _ in try await world.verify(request, id: Self.id) }
        #expect(outcomes.allSatisfy { $0 == nil })
    }

    @Test("a failed store and an exceeded rate are not cached as verdicts")
    func failuresAreNoVerdicts() async throws {
        let world = try await World { $0.device = Rate(burst: 1, perMinute: 60) }
        let device = try await world.device()
        let request = try world.signed(device)
        await world.stores.fail(.device)
        let node = try world.anotherNode()
        try await expect(.serviceUnavailable) { try await world.verify(request, id: Self.id, at: node) }
        await world.stores.recover()
        try await world.verify(request, id: Self.id, at: node)
        try await world.verify(device)
        let second = try world.signed(device)
        let other = "8d444840-9dc0-4d1e-8e1b-9f0f6d3a2b10"
        try await expect(.rateLimited) { try await world.verify(second, id: other) }
        world.clock.advance(1)
        try await world.verify(second, id: other)
    }

    // MARK: Observe

    @Test("under observation a refusal is 200, with an identity only if the signature verified")
    func observed() async throws {
        let world = try await World(["mode": "observe"])
        let device = try await world.device()
        let request = try world.signed(device)
        guard case .verified(let identity) = try await world.verify(request) else {
            Issue.record("not verified")
            return
        }
        #expect(try await world.verify(request) == .observed(.nonceReplay, identity))
        var stranger = device
        stranger.key = P256.Signing.PrivateKey()
        #expect(try await world.verify(stranger) == .observed(.invalidSignature, nil))
        #expect(
            try await world.verify(device, RequestDraft().with { $0.ahead = 61 }) == .observed(.clockSkew, nil))
        try await world.revoke(device)
        #expect(try await world.verify(device) == .observed(.deviceRevoked, identity))
    }

    @Test("a request passes if it is accepted or observed, never if it is refused", arguments: ["enforce", "observe"])
    func passed(mode: String) async throws {
        let world = try await World(["mode": .string(mode)])
        let device = try await world.device()
        let request = try world.signed(device)
        let accepted = try await world.verdict(request)
        #expect(accepted.passed?.deviceID == device.id)
        #expect(accepted.passed?.keyAgeSeconds == 0)
        let replayed = try await world.verdict(request)
        #expect(replayed.signed?.deviceID == device.id)
        #expect((replayed.passed != nil) == (mode == "observe"))
    }

    @Test("under observation an exceeded rate is observed, and not cached as the verdict")
    func observedRate() async throws {
        let world = try await World(["mode": "observe"]) { $0.device = Rate(burst: 1, perMinute: 60) }
        let device = try await world.device()
        try await world.verify(device)
        let second = try world.signed(device)
        guard case .observed(.rateLimited, _) = try await world.verify(second, id: Self.id) else {
            Issue.record("not observed")
            return
        }
        world.clock.advance(1)
        guard case .verified = try await world.verify(second, id: Self.id) else {
            Issue.record("not verified")
            return
        }
    }

    @Test("under observation a missing or malformed signature is observed")
    func observedMalformed() async throws {
        let world = try await World(["mode": "observe"])
        let request = try world.signed(try await world.device())
        #expect(
            try await world.verify(request.with(HeaderName.signature, nil)) == .observed(.invalidRequest, nil))
        #expect(
            try await world.verify(request.with(HeaderName.signatureVersion, "9"))
                == .observed(.unsupportedSigVersion, nil))
        var bare = request
        bare.headers = HeaderFields()
        // The credential is for two apps, and the request names none.
        try await expect(.invalidRequest) { try await world.verify(bare) }
        let single = try await world.service.credentials.create(
            name: "one", role: .service, scope: .apps([AppID(World.appID)]), life: 1000, actor: "test"
        ).credential
        #expect(try await world.verify(bare, by: single) == .observed(.invalidRequest, nil))
        try await world.change([:])
        try await expect(.invalidRequest) { try await world.verify(bare, by: single) }
    }

    @Test(
        "under observation a doubled, malformed or empty X-App-ID is judged for the credential's only app",
        arguments: [
            [World.appID, World.appID], [World.appID, "com.example.other"], ["com.example.other", World.appID], [""],
            ["a b"],
            ["com.example.app_next"], ["é"], ["", ""],
        ])
    func observedAppID(values: [String]) async throws {
        let world = try await World(["mode": "observe"])
        var request = try world.signed(try await world.device())
        request.headers = HeaderFields(
            request.headers.lines.filter { $0.name != HeaderName.appID }.map { ($0.name, $0.value) }
                + values.map { (HeaderName.appID, $0) })
        let single = try await world.service.credentials.create(
            name: "one", role: .service, scope: .apps([AppID(World.appID)]), life: 1000, actor: "test"
        ).credential
        #expect(try await world.verify(request, by: single) == .observed(.invalidRequest, nil))
        // The credential is for two apps, and the request does not name exactly one.
        try await expect(.invalidRequest) { try await world.verify(request) }
        try await world.change([:])
        try await expect(.invalidRequest) { try await world.verify(request, by: single) }
    }

    @Test("under observation one valid X-App-ID of another app is FORBIDDEN")
    func observedOtherApp() async throws {
        let world = try await World(["mode": "observe"])
        let request = try world.signed(try await world.device()).with(HeaderName.appID, "com.example.other")
        let single = try await world.service.credentials.create(
            name: "one", role: .service, scope: .apps([AppID(World.appID)]), life: 1000, actor: "test"
        ).credential
        try await expect(.forbidden) { try await world.verify(request, by: single) }
    }

    @Test("our own routes are enforced under observation", arguments: Operation.allCases.filter { $0 != .otherService })
    func ownRoutes(operation: Operation) async throws {
        let world = try await World(["mode": "observe"])
        let device = try await world.device()
        try await world.revoke(device)
        try await expect(.deviceRevoked) {
            try await world.service.authenticate(try world.signed(device, for: operation), for: operation)
        }
    }

    @Test("under observation a store failure is 503, and an unknown app is refused")
    func observedFailure() async throws {
        let world = try await World(["mode": "observe"])
        let device = try await world.device()
        await world.stores.fail(.claim)
        try await expect(.serviceUnavailable) { try await world.verify(device) }
        await world.stores.recover()
        try await world.change(["mode": "observe", "enabled": false])
        try await expect(.unknownApp) { try await world.verify(device) }
    }

    @Test("devices admitted under observation become pending once the app enforces, and an operator can approve them")
    func switchToEnforce() async throws {
        let manual: [String: JSONValue] = ["registration": ["approval": "manual"]]
        let world = try await World(manual.merging(["mode": "observe"]) { $1 })
        let device = try await world.device()
        #expect(try await world.row(device).admittedUnderObservation)
        try await world.verify(device)
        try await world.token(device)
        try await world.change(manual)
        #expect(try await world.row(device).status == .pending)
        try await expect(.devicePending) { try await world.verify(device) }
        try await world.approve(device)
        try await world.change(manual)
        try await world.verify(device)
    }

    @Test(
        "devices admitted under observation are pending even if the switch failed half-way, and a second switch repairs the rows"
    )
    func switchFails() async throws {
        let manual: [String: JSONValue] = ["registration": ["approval": "manual"]]
        let world = try await World(manual.merging(["mode": "observe"]) { $1 })
        let device = try await world.device()
        await world.stores.fail(.observedDevices)
        await #expect(throws: StoreError.self) { try await world.change(manual) }
        await world.stores.recover()
        #expect(try await world.row(device).status == .registered)
        try await expect(.devicePending) { try await world.verify(device) }
        #expect(try await world.status(device).status == .pending)
        try await world.change(manual)
        #expect(try await world.row(device).status == .pending)
    }

    private static let manual: [String: JSONValue] = ["registration": ["approval": "manual"]]

    @Test("a registration that races the switch to enforce waits for approval")
    func switchDuringARegistration() async throws {
        let world = try await World(Self.manual.merging(["mode": "observe"]) { $1 })
        let key = P256.Signing.PrivateKey()
        let enrolment = try await world.enrolment(key)
        // The mode becomes `enforce` just before the row is inserted as admitted under observation.
        let other = try await World(Self.manual)
        let enforcing = try #require(try await other.stores.app(AppID(World.appID)))
        await world.stores.interrupt(.insertDevice) { stores in
            guard let known = try? stores.app(enforcing.appID) else { return }
            _ = try? stores.save(
                AppChange(
                    from: known, to: enforcing.sealedJSON, needsNoDevices: false,
                    recording: AuditEvent(.appChanged, at: World.start, actor: "test")))
        }
        let answer = try await world.register(enrolment)
        #expect(answer.status == .pending)
        let device = TestDevice(appID: try AppID(World.appID), id: answer.deviceID, key: key)
        #expect(try await world.row(device).status == .pending)
        try await world.approve(device)
        try await world.verify(device)
    }

    @Test(
        "a marked row that a switch missed is pending for a registration, and can be approved",
        arguments: [true, false])
    func markedRowLeftBehind(registersAgain: Bool) async throws {
        let world = try await World(Self.manual.merging(["mode": "observe"]) { $1 })
        let device = try await world.device()
        await world.stores.fail(.observedDevices)
        await #expect(throws: StoreError.self) { try await world.change(Self.manual) }
        await world.stores.recover()
        if registersAgain {
            let answer = try await world.register(try await world.enrolment(device.key))
            #expect(answer == RegisterResponse(deviceID: device.id, status: .pending))
        }
        try await world.approve(device)
        try await world.verify(device)
        #expect(try await !world.row(device).admittedUnderObservation)
    }

    @Test("a marked row that a switch missed can be rejected, and under observation it cannot")
    func markedRowRejected() async throws {
        let world = try await World(Self.manual.merging(["mode": "observe"]) { $1 })
        let device = try await world.device()
        try await expect(.conflict) { try await world.reject(device) }
        try await expect(.conflict) { try await world.approve(device) }
        try await world.verify(device)
        await world.stores.fail(.observedDevices)
        await #expect(throws: StoreError.self) { try await world.change(Self.manual) }
        await world.stores.recover()
        try await world.reject(device)
        #expect(try await world.row(device).status == .rejected)
    }

    @Test("a switch to enforce makes any number of marked devices pending, in steps")
    func switchInSteps() async throws {
        let world = try await World(Self.manual.merging(["mode": "observe"]) { $1 })
        let app = try AppID(World.appID)
        let count = 2 * AppRegistry.pendingStep
        for _ in 0..<count {
            let device = DeviceRecord(
                appID: app, deviceID: DeviceID(from: world.random), platform: .ios, status: .registered,
                key: DevicePublicKey(P256.Signing.PrivateKey().publicKey), assurance: .unproven,
                registeredAt: World.start, admittedUnderObservation: true)
            _ = try await world.stores.insert(
                device, recording: AuditEvent(.deviceRegistered, at: World.start, actor: "test"))
        }
        try await world.change(Self.manual)
        #expect(try await world.stores.count(of: app) == [.pending: count])
        // `audited` reads the newest 1000 events: each is of a device that became pending.
        #expect(try await world.audited(.devicePending).count == 1000)
    }

    @Test("automatic approval marks no device")
    func automaticUnderObservation() async throws {
        let world = try await World(["mode": "observe"])
        let device = try await world.device()
        try await world.change([:])
        try await world.verify(device)
    }
}

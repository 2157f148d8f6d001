import AuthContract
import Testing

@testable import SynheartAuth

/// The life of device tokens: how long each is used, and when the next one is fetched.
@Suite struct TokenTests {
    private func answer(_ token: String, expiresIn: Int64) -> TransportResponse {
        TransportResponse(status: 200, body: TokenResponse(token: token, expiresIn: expiresIn).bytes)
    }

    @Test(
        arguments: [(-5, 0), (0, 0), (1, 1), (599, 599), (600, 600), (601, 600), (86_400, 600)] as [(Int64, Int64)])
    func `a token lives as long as the service says, ten minutes at most`(expiresIn: Int64, life: Int64) async throws {
        let (phone, sdk, _) = try await Phone.registered()
        await phone.service.answer(path: Route.token.rawValue, with: answer("t", expiresIn: expiresIn))
        #expect(try await sdk.deviceToken(appID: Phone.app).remaining == .seconds(life))
    }

    @Test func `a token's life counts from before it was requested`() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        await phone.network.plan(.answerLate, at: 0)
        #expect(try await sdk.deviceToken(appID: Phone.app).remaining == .seconds(500))
        phone.clock.advance(.seconds(199))
        #expect(try await sdk.deviceToken(appID: Phone.app).remaining == .seconds(301))
    }

    @Test(arguments: [(299_999, 1), (300_000, 2)])
    func `a token is renewed once half of its life is over`(milliseconds: Int, fetches: Int) async throws {
        let (phone, sdk, _) = try await Phone.registered()
        _ = try await sdk.deviceToken(appID: Phone.app)
        phone.clock.advance(.milliseconds(milliseconds))
        _ = try await sdk.deviceToken(appID: Phone.app)
        #expect(await phone.service.tokens == fetches)
    }

    @Test(arguments: [(599_999, true), (600_000, false)])
    func `a valid token is used while the service is down`(milliseconds: Int, isUsed: Bool) async throws {
        let (phone, sdk, _) = try await Phone.registered()
        let token = try await sdk.deviceToken(appID: Phone.app)
        await phone.network.setOffline(true)
        phone.clock.advance(.milliseconds(milliseconds))
        if isUsed {
            let used = try await sdk.deviceToken(appID: Phone.app)
            #expect(used.token == token.token && used.remaining == .milliseconds(600_000 - milliseconds))
        } else {
            await expectError(.networkError) { try await sdk.deviceToken(appID: Phone.app) }
        }
        await expectError(.networkError) { try await sdk.deviceToken(appID: Phone.app, audience: "b") }
    }

    @Test func `a valid token is not used once the service refuses the device`() async throws {
        let (phone, sdk, id) = try await Phone.registered()
        _ = try await sdk.deviceToken(appID: Phone.app)
        phone.clock.advance(.seconds(400))
        await phone.service.edit(id) { $0.status = .revoked }
        await expectError(.deviceRevoked) { try await sdk.deviceToken(appID: Phone.app) }
    }

    @Test func `a key that stays too old after a rotation is not rotated again`() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        await phone.service.refuse(.token, .keyExpired, times: 3)
        // Another rotation would not help, because the key is new.
        let error = await expectError(.rotationFailed) { try await sdk.deviceToken(appID: Phone.app) }
        #expect(error?.recovery == .retry)
        #expect(await phone.service.count(.rotateKey) == 1)
    }

    @Test func `another refusal of a token rotates nothing`() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        await phone.service.refuse(.token, .forbidden)
        await expectError(.server("FORBIDDEN")) { try await sdk.deviceToken(appID: Phone.app) }
        #expect(await phone.service.count(.rotateKey) == 0)
    }

    @Test func `a reset forgets the tokens`() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        let first = try await sdk.deviceToken(appID: Phone.app)
        try await sdk.resetDeviceIdentity(appID: Phone.app, reason: .userRequested)
        await expectError(.notRegistered) { try await sdk.deviceToken(appID: Phone.app) }
        try await sdk.registerDevice(appID: Phone.app)
        #expect(try await sdk.deviceToken(appID: Phone.app).token != first.token)
        #expect(await phone.service.tokens == 2)
    }

    @Test func `16 audiences are cached, and another one clears the cache`() {
        var cache = TokenCache()
        let audiences = [nil] + (1...15).map { "audience \($0)" }
        func entry(_ token: String) -> TokenCache.Entry {
            TokenCache.Entry(token: token, fetchedAt: .zero, life: .seconds(600), thumbprint: "t")
        }
        for audience in audiences { cache[audience] = entry("first") }
        cache["audience 7"] = entry("second")
        for audience in audiences {
            #expect(cache[audience]?.token == (audience == "audience 7" ? "second" : "first"))
        }
        cache["one more"] = entry("third")
        #expect(cache["one more"]?.token == "third")
        for audience in audiences { #expect(cache[audience] == nil) }
    }
}

/// The background work of `maintain`.
@Suite struct BackgroundMaintenanceTests {
    /// A registered device whose key is 91 days old, so that its rotation is due.
    private func due() async throws -> Phone {
        let (phone, _, _) = try await Phone.registered()
        phone.clock.advance(.seconds(91 * 86_400))
        return phone
    }

    /// Gives a background rotation the time to end: calls the storage far more often than a rotation does.
    private func settle(_ sdk: SynheartAuth) async throws {
        for _ in 0..<200 { _ = try await sdk.state(appID: Phone.app) }
    }

    private let request = TransportRequest(
        method: "GET", url: FakeService.origin + "/v1/own", headers: HeaderFields(), body: [])

    @Test func `nothing rotates by itself where the host forbids it`() async throws {
        let phone = try await due()
        let sdk = try phone.launch { $0.rotatesAutomatically = false }
        try await sdk.registerDevice(appID: Phone.app)
        #expect(try await sdk.send(request, appID: Phone.app).status == 200)
        try await settle(sdk)
        #expect(await phone.service.count(.rotateKey) == 0)
    }

    @Test func `send rotates a key that is due`() async throws {
        let phone = try await due()
        let sdk = try phone.launch { $0.rotatesAutomatically = true }
        #expect(try await sdk.send(request, appID: Phone.app).status == 200)
        try await eventually { await phone.service.count(.rotateKey) == 1 }
    }

    @Test func `a key is rotated again when it is due again`() async throws {
        let phone = try await due()
        let sdk = try phone.launch { $0.rotatesAutomatically = true }
        for rotations in 1...3 {
            try await eventually {
                try await sdk.registerDevice(appID: Phone.app)
                return await phone.service.count(.rotateKey) == rotations
            }
            try await eventually { try phone.record().journal == nil }
            phone.clock.advance(.seconds(91 * 86_400))
        }
    }

    @Test func `what failed in the background is tried again after an hour`() async throws {
        let phone = try await due()
        let sdk = try phone.launch { $0.rotatesAutomatically = true }
        await phone.service.refuse(.rotateKey, .unknownApp)
        try await sdk.registerDevice(appID: Phone.app)
        try await eventually { phone.logger.entries.contains { $0.event == .rotationFailed } }
        for _ in 0..<3 {
            try await settle(sdk)
            try await sdk.registerDevice(appID: Phone.app)
        }
        try await settle(sdk)
        #expect(await phone.service.count(.rotateKey) == 1)
        phone.clock.advance(.seconds(3600))
        try await eventually {
            try await sdk.registerDevice(appID: Phone.app)
            return await phone.service.count(.rotateKey) == 2
        }
    }

    @Test func `a young key, a pending device and no device are left alone`() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        let messages = await phone.network.messages
        try await sdk.maintain(appID: Phone.app)
        try await sdk.maintain(appID: "com.example.other")
        #expect(await phone.network.messages == messages)
        await phone.service.set { $0.decision = .pending }
        try await sdk.registerDevice(appID: "com.example.other")
        phone.clock.advance(.seconds(91 * 86_400))
        try await sdk.maintain(appID: "com.example.other")
        #expect(await phone.service.count(.rotateKey) == 0)
    }

    @Test func `a key is due by the service's clock, not by the device's`() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        let record = try phone.record()
        let registered = try #require(record.registeredAt)
        let due = try #require(
            stride(from: 81 * 86_400, through: 90 * 86_400, by: 3600).first {
                RotationSchedule.isDue(record, at: registered + Int64($0))
            })
        phone.clock.advance(.seconds(due))
        phone.clock.setError(.seconds(-3600))
        try await sdk.maintain(appID: Phone.app)
        #expect(await phone.service.count(.rotateKey) == 0)
        try await sdk.correctClockSkew(serverTimestamp: Double(phone.clock.wallMilliseconds) / 1000 + 3600)
        try await sdk.maintain(appID: Phone.app)
        #expect(await phone.service.count(.rotateKey) == 1)
    }

    @Test func `maintain deletes a replaced key without the network`() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        let ledger = try sdk.identity(Phone.app).context.ledger
        var record = try phone.record()
        let leftover = KeyAlias.next(record.appID)
        _ = try phone.keys.create(leftover, challenge: nil)
        record.journal = .disposal(leftover)
        phone.storage.put(record.bytes, RecordName(record.appID))
        let messages = await phone.network.messages
        try await sdk.maintain(appID: Phone.app)
        #expect(phone.keys.aliases == [KeyAlias.primary(record.appID).text])
        #expect(try await ledger.load().journal == nil)
        #expect(await phone.network.messages == messages)
    }

    @Test func `a key whose date is more than a day ahead is due: the device's clock was wrong`() async throws {
        let (phone, sdk, _) = try await Phone.registered()
        var record = try phone.record()
        let now = UnixTime(phone.clock.trueMilliseconds / 1000)
        record.registeredAt = now + 86_400
        #expect(!RotationSchedule.isDue(record, at: now))
        record.registeredAt = now + 86_401
        #expect(RotationSchedule.isDue(record, at: now))
        phone.storage.put(record.bytes, RecordName(record.appID))
        try await sdk.maintain(appID: Phone.app)
        #expect(await phone.service.count(.rotateKey) == 1)
        #expect(try !RotationSchedule.isDue(phone.record(), at: now))
    }

    @Test func `a demanded rotation is due only for an active identity with a registration time`() throws {
        var record = IdentityRecord(appID: try AppID(Phone.app))
        record.identity = .active
        record.deviceID = try DeviceID("00000000-0000-4000-8000-000000000000")
        let long = UnixTime(1_000_000_000)
        #expect(!RotationSchedule.isDue(record, at: long))
        record.keyRotatedAt = UnixTime(0)
        #expect(RotationSchedule.isDue(record, at: UnixTime(7_776_000)))
        // The age of the key decides, not the age of the registration.
        record.registeredAt = UnixTime(-7_776_000)
        #expect(!RotationSchedule.isDue(record, at: UnixTime(7_775_999)))
        record.rotationDemand = RotationDemand(by: long, reason: .scheduled)
        #expect(RotationSchedule.isDue(record, at: UnixTime(0)))
        record.identity = .pending
        #expect(!RotationSchedule.isDue(record, at: long))
        record.identity = .active
        record.deviceID = nil
        #expect(!RotationSchedule.isDue(record, at: long))
    }
}

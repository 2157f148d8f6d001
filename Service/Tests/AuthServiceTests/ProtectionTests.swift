import AuthContract
import AuthService
import Crypto
import StoreConformance
import StrictJSON
import Testing

@Suite("Protection")
struct ProtectionTests {
    @Test("by default one device holds at most 20,000 live claims")
    func liveClaims() {
        var settings = ProtectionSettings()
        // 4,000 requests at once, then 360 a minute for 660 s and the 300 s that a request may be dated ahead; two claims each.
        #expect(settings.liveClaimsOfOneDevice == 19_520)
        settings.device = Rate(burst: 1, perMinute: 0)
        #expect(settings.liveClaimsOfOneDevice == 2)
    }

    @Test("a request beyond the device's rate takes no claims")
    func deviceBeforeClaims() async throws {
        let world = try await World { $0.device = Rate(burst: 1, perMinute: 60) }
        let device = try await world.device()
        try await world.verify(device)
        let second = try world.signed(device)
        try await expect(.rateLimited) { try await world.verify(second) }
        world.clock.advance(1)
        try await world.verify(second)
    }

    @Test("an address that named too many unknown apps is refused before the store is read: challenge and registration")
    func unknownApps() async throws {
        let world = try await World { $0.strangers = Rate(burst: 3, perMinute: 1) }
        let enrolment = try await world.enrolment(P256.Signing.PrivateKey())
        for number in 0..<3 { try await expect(.unknownApp) { try await world.challenge("com.example.no\(number)") } }
        await world.stores.fail(.app)
        let refusal = try await expect(.rateLimited) { try await world.challenge("com.example.no9") }
        #expect(refusal?.retryAfter == 60)
        let unknown = try await world.enrolment(
            P256.Signing.PrivateKey(), app: "com.example.no9", challenge: [UInt8](repeating: 1, count: 32))
        try await expect(.rateLimited) { try await world.register(unknown) }
        // An app whose record was read earlier is exempt: its clients can still register from the limited address.
        try await world.register(enrolment)
        await world.stores.recover()
        world.clock.advance(6)
        _ = try await world.challenge()
        // The exemption remains after another process changes an app. After such a change, the record is read again.
        world.service.apps.forget()
        _ = try await world.challenge()
        world.clock.advance(54)
        try await expect(.unknownApp) { try await world.challenge("com.example.no9") }
    }

    @Test("signed requests of unknown apps count as strangers on our own routes, and never in other services' requests")
    func unknownAppsOfSignedRequests() async throws {
        let world = try await World { $0.strangers = Rate(burst: 2, perMinute: 1) }
        let device = try await world.device()
        await world.service.updateKnownDevices()
        let unknown = TestDevice(appID: device.appID, id: DeviceID(from: world.random), key: device.key)
        let stranger = RequestDraft(.status).with { $0.appID = try? AppID("com.example.nobody") }
        for _ in 0..<2 {
            let request = try world.signed(unknown, stranger)
            try await expect(.unknownApp) { try await world.service.authenticate(request, for: .status) }
        }
        await world.stores.fail(.app)
        let request = try world.signed(unknown, stranger)
        try await expect(.rateLimited) { try await world.service.authenticate(request, for: .status) }
        try await world.verify(device)
    }

    // MARK: Cached rows

    @Test("Re-reads are bounded for each device at each address, and for each device in other services' requests")
    func rereads() async throws {
        let world = try await World { $0.rereads = Rate(burst: 2, perMinute: 60) }
        let (device, other) = (try await world.device(), try await world.device())
        var stranger = device
        stranger.key = P256.Signing.PrivateKey()
        for device in [device, other] {
            try await world.verify(device)
            try await world.status(device)
        }
        for _ in 0..<2 { try await expect(.invalidSignature) { try await world.verify(stranger) } }
        // For requests through `/verify`, re-reads are counted for each device. For requests on our own routes, they are
        // counted separately, for each device at each address.
        try await expect(.rateLimited) { try await world.verify(stranger) }
        try await world.verify(device)
        stranger = other
        stranger.key = P256.Signing.PrivateKey()
        try await expect(.invalidSignature) { try await world.verify(stranger) }
        for _ in 0..<2 { try await expect(.invalidSignature) { try await world.status(stranger) } }
        try await expect(.rateLimited) { try await world.status(stranger) }
    }

    // MARK: In the background

    @Test("Last-seen times are written in batches of at most 1,000 devices")
    func batches() {
        let (seen, random) = (LastSeenBuffer(), SeededRandom(seed: 3))
        let devices = (0..<2500).map { _ in DeviceID(from: random) }
        for (number, device) in devices.enumerated() {
            seen.record(device, at: World.start)
            seen.record(device, at: World.start + Int64(number))
        }
        let batches = seen.flush()
        #expect(batches.map(\.count).sorted() == [500, 1000, 1000])
        #expect(batches.reduce(into: [:]) { $0.merge($1) { $1 } }.count == 2500)
        #expect(batches.compactMap { $0[devices[2]] } == [World.start + 2])
        // No batch was marked as written, so `flush` returns all times again. Then one device is seen again.
        #expect(seen.flush().reduce(0) { $0 + $1.count } == 2500)
        seen.record(devices[2], at: World.start + 3000)
        for batch in batches { seen.markWritten(batch) }
        // A registration may have read a device's row before the last-seen time was written to it. So the buffer still
        // reports the devices until the next flush.
        #expect(devices.allSatisfy(seen.mayContain))
        #expect(seen.flush() == [[devices[2]: World.start + 3000]])
        #expect(devices.filter(seen.mayContain) == [devices[2]])
    }

    @Test("a provider that does not answer delays no other background work", .timeLimit(.minutes(15)))
    func independentLoops() async throws {
        let world = try await World(["registration": ["provider_outage": "pending"]])
        world.google.goAway()
        let now = world.clock.now
        let enrolment = try await world.enrolment(
            P256.Signing.PrivateKey(), platform: .android, proof: { TestGoogle.token($0, at: now) })
        try await world.register(enrolment, [])
        let device = try await world.device()
        world.google.neverReturn()
        let (asked, written) = (AsyncStream<Void>.makeStream(), AsyncStream<Void>.makeStream())
        world.google.whenAsked { asked.continuation.yield() }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await world.service.run(noteEvery: .milliseconds(1)) }
            for await _ in asked.stream { break }
            await world.stores.interrupt(.writeLastSeen) { _ in written.continuation.yield() }
            try await world.verify(device)
            for await _ in written.stream { break }
            world.google.comeBack()
            group.cancelAll()
        }
    }
}

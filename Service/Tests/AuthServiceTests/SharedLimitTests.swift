import AuthContract
import AuthService
import Crypto
import StoreConformance
import StrictJSON
import Testing

@Suite("Rates that nodes share")
struct SharedLimitTests {
    @Test("a signed request takes its token and its claims in one call, and a replay is refused on any node")
    func oneCall() async throws {
        let world = try await World(sharesLimits: true)
        let limits = try #require(world.limits)
        let device = try await world.device()
        let request = try world.signed(device, for: .status)
        await limits.forgetCalls()
        _ = try await world.service.authenticate(request, for: .status)
        #expect(await limits.calls == ["claim"])
        let other = try world.anotherNode()
        try await expect(.nonceReplay) { try await other.authenticate(request, for: .status) }
    }

    @Test("two nodes spend one device's bucket, and a request beyond it takes no claims")
    func device() async throws {
        let world = try await World(sharesLimits: true) { $0.device = Rate(burst: 2, perMinute: 60) }
        let other = try world.anotherNode()
        let device = try await world.device()
        _ = try await world.service.authenticate(try world.signed(device, for: .status), for: .status)
        _ = try await other.authenticate(try world.signed(device, for: .status), for: .status)
        let third = try world.signed(device, for: .status)
        let refusal = try await expect(.rateLimited) { try await world.service.authenticate(third, for: .status) }
        #expect(refusal?.retryAfter == 1)
        world.clock.advance(1)
        _ = try await other.authenticate(third, for: .status)
    }

    @Test("reads without replay protection still count for the device")
    func readsWithoutClaims() async throws {
        let world = try await World(["signature": ["replay_on_reads": false]], sharesLimits: true) {
            $0.device = Rate(burst: 1, perMinute: 60)
        }
        let device = try await world.device()
        let limits = try #require(world.limits)
        await limits.forgetCalls()
        _ = try await world.service.authenticate(try world.signed(device, for: .status), for: .status)
        #expect(await limits.calls == ["take"])
        try await expect(.rateLimited) {
            try await world.service.authenticate(try world.signed(device, for: .status), for: .status)
        }
    }

    @Test("two nodes spend one address's enrolments, and if the store of limits fails nothing is admitted")
    func enrolment() async throws {
        let world = try await World(sharesLimits: true) { $0.enrolment = Rate(burst: 2, perMinute: 1) }
        let other = try world.anotherNode()
        try await world.service.admitEnrolment(from: world.address)
        try await other.admitEnrolment(from: world.address)
        try await expect(.rateLimited) { try await world.service.admitEnrolment(from: world.address) }
        let device = try await world.device()
        await world.limits?.fail()
        try await expect(.serviceUnavailable) {
            try await world.service.admitEnrolment(from: ClientAddress("192.0.2.99"))
        }
        try await expect(.serviceUnavailable) {
            try await world.service.authenticate(try world.signed(device, for: .status), for: .status)
        }
    }

    @Test("a device that failed at an address on other nodes is refused there after its first failure here")
    func failures() async throws {
        let world = try await World(sharesLimits: true) { $0.failedSignatures = Rate(burst: 2, perMinute: 1) }
        let other = try world.anotherNode()
        let (device, neighbour) = (try await world.device(), try await world.device())
        var wrong = device
        wrong.key = P256.Signing.PrivateKey()
        for _ in 0..<2 { try await expect(.invalidSignature) { try await world.status(wrong) } }
        try await expect(.invalidSignature) { try await world.status(wrong, at: other) }
        let refusal = try await expect(.rateLimited) { try await world.status(device, at: other) }
        #expect(refusal?.retryAfter == 60)
        for node in [world.service, other] { try await world.status(neighbour, at: node) }
        world.clock.advance(60)
        try await world.status(device, at: other)
    }

    @Test("an address that named strangers on other nodes is refused after its first stranger here")
    func strangers() async throws {
        let world = try await World(sharesLimits: true) { $0.strangers = Rate(burst: 2, perMinute: 1) }
        let other = try world.anotherNode()
        for _ in 0..<2 { try await expect(.unknownApp) { try await world.challenge("com.example.nobody") } }
        func ask() async throws {
            _ = try await other.issueChallenge(
                ChallengeRequest(appID: AppID("com.example.nobody"), purpose: .register), world.http())
        }
        try await expect(.unknownApp) { try await ask() }
        let refusal = try await expect(.rateLimited) { try await ask() }
        #expect(refusal?.retryAfter == 60)
        world.clock.advance(60)
        try await expect(.unknownApp) { try await ask() }
    }

    @Test("a clock that is set back does not extend a refusal that other nodes caused")
    func clockSetBack() async throws {
        let world = try await World(sharesLimits: true) { $0.strangers = Rate(burst: 2, perMinute: 1) }
        let other = try world.anotherNode()
        func ask(_ node: AuthService) async throws {
            _ = try await node.issueChallenge(
                ChallengeRequest(appID: AppID("com.example.nobody"), purpose: .register), world.http())
        }
        for _ in 0..<2 { try await expect(.unknownApp) { try await ask(world.service) } }
        try await expect(.unknownApp) { try await ask(other) }
        try await expect(.rateLimited) { try await ask(other) }
        world.clock.advance(-3600)
        try await expect(.unknownApp) { try await ask(other) }
    }

    @Test("claims on other nodes count for an app's share from the next exchange on")
    func shares() async throws {
        let world = try await World(sharesLimits: true) { $0.claimsOfOneApp = 100 }
        let limits = try #require(world.limits)
        let (device, app) = (try await world.device(), try AppID(World.appID))
        func request() async throws {
            _ = try await world.service.authenticate(try world.signed(device, for: .status), for: .status)
        }
        try await request()
        await limits.announceElsewhere([app: 98])
        try await request()
        await world.service.exchangeShares()
        try await expect(.rateLimited) { try await request() }
        await limits.announceElsewhere([app: 0])
        await limits.fail()
        await world.service.exchangeShares()
        try await expect(.rateLimited) { try await request() }
        await limits.fail(false)
        await world.service.exchangeShares()
        // The limit store works again, so the counts of the other nodes are current.
        try await request()
    }

    @Test("two nodes spend one device's rotations")
    func rotations() async throws {
        let world = try await World(sharesLimits: true) { $0.rotations = Rate(burst: 1, perHour: 1) }
        let limits = try #require(world.limits)
        let device = try await world.device()
        let bucket = SharedBucket.rotations(device.id)
        // Another node takes the same bucket's token.
        _ = try await limits.take(bucket, at: Rate(burst: 1, perHour: 1), isDryRun: false)
        let refusal = try await expect(.rateLimited) { try await world.rotated(device) }
        #expect(refusal?.retryAfter == 300)
    }
}

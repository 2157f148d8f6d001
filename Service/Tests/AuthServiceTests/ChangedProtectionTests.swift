import AuthContract
import Testing

@testable import AuthService

@Suite("Rates and bounds that change while the service runs")
struct ChangedProtectionTests {
    private let now = UnixTime(1_750_000_000)

    @Test("a lower burst bounds a bucket at its next use, and a higher one fills at the new rate")
    func rates() {
        let buckets = TokenBuckets<String>(Rate(burst: 100, perMinute: 60))
        #expect(buckets.take("a", now: now) == nil)
        buckets.apply(Rate(burst: 2, perMinute: 60))
        #expect(buckets.take("a", now: now) == nil)
        #expect(buckets.take("a", now: now) == nil)
        #expect(buckets.take("a", now: now) == 1)
        #expect(buckets.waiting("a", now: now) == 1)
        buckets.apply(Rate(burst: 10, perMinute: 600))
        for _ in 0..<10 { #expect(buckets.take("a", now: now + 1) == nil) }
        #expect(buckets.take("a", now: now + 1) == 1)
    }

    @Test("a lower share of claims refuses until claims end, and a higher one admits at once")
    func claims() throws {
        let (shares, app) = (LiveClaimQuota(maximum: 10), try AppID("a"))
        #expect(shares.take(4, of: app, until: now + 660, now: now) == nil)
        shares.apply(maximum: 3)
        #expect(shares.take(1, of: app, until: now + 660, now: now) != nil)
        shares.apply(maximum: 5)
        #expect(shares.take(1, of: app, until: now + 660, now: now) == nil)
    }

    @Test("every changed rate takes effect")
    func all() async throws {
        let protection = Protection(ProtectionSettings(), clock: FixedClock(now: now))
        var settings = ProtectionSettings()
        let one = Rate(burst: 1, perMinute: 1)
        (settings.enrolment, settings.failedSignatures, settings.strangers) = (one, one, one)
        (settings.device, settings.rotations, settings.rereads) = (one, one, one)
        settings.claimsOfOneApp = 1
        protection.apply(settings)
        let (address, device, app) = (ClientAddress("192.0.2.1"), DeviceID(from: SystemRandom()), try AppID("a"))
        try await protection.admitEnrolment(from: address)
        await #expect(throws: Refusal.self) { try await protection.admitEnrolment(from: address) }
        await protection.countFailure(of: device, from: address)
        #expect(throws: Refusal.self) { try protection.admitUnproven(device, from: address, mayExist: true) }
        try protection.admitStranger(from: address)
        await protection.countStranger(from: address)
        #expect(throws: Refusal.self) { try protection.admitStranger(from: address) }
        #expect(protection.allowsReread(of: device, from: address))
        #expect(!protection.allowsReread(of: device, from: address))
        #expect(protection.allowsReread(of: device, from: nil))
        #expect(!protection.allowsReread(of: device, from: nil))
        try await protection.admitDevice(device)
        await #expect(throws: Refusal.self) { try await protection.admitDevice(device) }
        await protection.countRotation(of: device)
        await #expect(throws: Refusal.self) { try await protection.admitRotation(of: device) }
        try protection.admitClaims(1, of: app, until: now + 660)
        #expect(throws: Refusal.self) { try protection.admitClaims(1, of: app, until: now + 660) }
    }

    private struct FixedClock: ServiceClock {
        let now: UnixTime
    }
}

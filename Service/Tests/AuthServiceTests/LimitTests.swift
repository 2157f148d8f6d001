import AuthContract
import Crypto
import StoreConformance
import StrictJSON
import Testing

import class Bytes.Locked

@testable import AuthService

/// The last accepted and the first refused value of limits that protect the service itself.
@Suite("Limits of the service")
struct LimitTests {
    private let now = World.start
    private let address = ClientAddress("192.0.2.1")

    // MARK: Claims and rates

    @Test("an app's claims count until the minute in which they expire is over, and the wait ends with it")
    func claimShares() throws {
        let (shares, app) = (LiveClaimQuota(maximum: 2), try AppID(World.appID))
        // The claims expire in the minute that begins at 600.
        #expect(shares.take(2, of: app, until: UnixTime(601), now: UnixTime(540)) == nil)
        #expect(shares.take(1, of: app, until: UnixTime(700), now: UnixTime(541)) == 119)
        #expect(shares.take(1, of: app, until: UnixTime(700), now: UnixTime(600)) == 60)
        #expect(shares.take(1, of: app, until: UnixTime(700), now: UnixTime(659)) == 1)
        #expect(shares.take(1, of: app, until: UnixTime(700), now: UnixTime(660)) == nil)
        // The two claims of a request do not fit beside the one that is left.
        #expect(shares.take(2, of: app, until: UnixTime(700), now: UnixTime(661)) == 59)
        #expect(shares.take(1, of: app, until: UnixTime(700), now: UnixTime(661)) == nil)
    }

    @Test("claims that are given back free their share, and those that stay do not")
    func claimsGivenBack() throws {
        let (shares, app) = (LiveClaimQuota(maximum: 4), try AppID(World.appID))
        #expect(shares.take(4, of: app, until: UnixTime(601), now: UnixTime(540)) == nil)
        shares.giveBack(2, of: app, until: UnixTime(601))
        #expect(shares.take(2, of: app, until: UnixTime(601), now: UnixTime(540)) == nil)
        #expect(shares.take(1, of: app, until: UnixTime(601), now: UnixTime(540)) == 120)
        shares.giveBack(4, of: app, until: UnixTime(601))
        #expect(shares.take(4, of: app, until: UnixTime(601), now: UnixTime(540)) == nil)
        // Claims of a past minute cannot be given back.
        shares.giveBack(4, of: app, until: UnixTime(1))
        #expect(shares.take(1, of: app, until: UnixTime(601), now: UnixTime(540)) == 120)
    }

    @Test("a count that other nodes may believe is announced until they heard that it fell")
    func announcedShares() throws {
        let (shares, app) = (LiveClaimQuota(maximum: 1000), try AppID(World.appID))
        #expect(shares.take(9, of: app, until: UnixTime(601), now: UnixTime(540)) == nil)
        #expect(shares.announcements(now: UnixTime(541)) == [:])
        #expect(shares.take(11, of: app, until: UnixTime(601), now: UnixTime(541)) == nil)
        // Other nodes may receive this announcement. So the later fall to 0 is announced until they have reported back.
        #expect(shares.announcements(now: UnixTime(542)) == [app: 20])
        #expect(shares.announcements(now: UnixTime(660)) == [app: 0])
        shares.applyReports([:], of: [app: 0])
        #expect(shares.announcements(now: UnixTime(661)) == [app: 0])
        shares.applyReports([app: 0], of: [app: 0])
        #expect(shares.announcements(now: UnixTime(662)) == [:])
        // A count of a hundredth of the maximum is announced, and so is its later fall to zero.
        #expect(shares.take(10, of: app, until: UnixTime(800), now: UnixTime(663)) == nil)
        #expect(shares.announcements(now: UnixTime(664)) == [app: 10])
        shares.applyReports([app: 3], of: [app: 10])
        #expect(shares.announcements(now: UnixTime(900)) == [app: 0])
    }

    @Test("a bucket's wait is the time until it has enough tokens, for a take and for a dry run")
    func waits() {
        let buckets = TokenBuckets<Int>(Rate(burst: 2, perMinute: 6))
        #expect(buckets.waiting(1, now: now) == nil)
        #expect(buckets.take(1, cost: 2, now: now) == nil)
        #expect(buckets.waiting(1, now: now) == 10)
        // The bucket has half a token.
        #expect(buckets.waiting(1, now: now + 5) == 5)
        #expect(buckets.take(1, now: now + 5) == 5)
        #expect(buckets.waiting(1, now: now + 10) == nil)
        let empty = TokenBuckets<Int>(Rate(burst: 1, perMinute: 0))
        #expect(empty.take(1, now: now) == nil)
        #expect(empty.take(1, now: now + 1_000_000) == 300)
    }

    @Test("the default rates are the documented ones")
    func defaults() {
        let settings = ProtectionSettings()
        #expect(settings.enrolment == Rate(burst: 300, perMinute: 300))
        #expect(settings.failedSignatures == Rate(burst: 100, perMinute: 60))
        #expect(settings.strangers == Rate(burst: 100, perMinute: 60))
        #expect(settings.rereads == Rate(burst: 200, perMinute: 200))
        #expect(settings.device == Rate(burst: 4000, perMinute: 360))
        #expect(settings.rotations == Rate(burst: 5, perHour: 12))
        #expect(settings.claimsOfOneApp == 18_000_000 && settings.cachedDevices == 100_000)
    }

    // MARK: Records

    @Test("a production app may be for Android alone")
    func androidAlone() throws {
        let members: [String: JSONValue] = [
            "build_channel": "production", "development_integrity_allowed": false, "ios": .null,
        ]
        #expect(try World.record(members).ios == nil)
        var anchored = members
        anchored["android"] = World.android(["trust_anchors": ["x"]])
        #expect(throws: ContractError("trust_anchors need build_channel dev or staging")) {
            try World.record(anchored)
        }
    }

    @Test("a stored record of more than a mebibyte is damaged")
    func storedRecords() {
        func stored(_ bytes: Int) -> [UInt8] {
            let text = Array(#"{"record":{},"sealed":"AAAA"}"#.utf8)
            return text + [UInt8](repeating: UInt8(ascii: " "), count: bytes - text.count)
        }
        #expect(StoredApp.Form(stored(1 << 20))?.sealed == [0, 0, 0])
        #expect(StoredApp.Form(stored(1 << 20 + 1)) == nil)
    }

    @Test("an app key counts as attested without an extension map unless its attestation had one")
    func attestedExtensions() {
        let evidence = AppAttestKeyState(keyID: [], publicKey: [], appID: "", environment: "production")
        #expect(!evidence.attestedExtensions && evidence.counter == 0)
    }

    // MARK: Credentials

    @Test("a credential without an id is refused before the store is read for it")
    func credentialWithoutID() async throws {
        let world = try await World()
        await world.stores.fail(.credential)
        for text in ["Bearer sya__secret", "Bearer sya_secret", "Bearer sya_id_"] {
            try await expect(.unauthorized, "\(text)") {
                try await world.service.credentials.authenticate(authorization: text, from: address)
            }
        }
        try await expect(.serviceUnavailable) {
            try await world.service.credentials.authenticate(authorization: "Bearer sya_id_secret", from: address)
        }
    }

    // MARK: Devices and evidence

    @Test("a device whose row was re-read too often is told to come back in a second")
    func rereads() async throws {
        let world = try await World { $0.rereads = Rate(burst: 1, perMinute: 60) }
        let device = try await world.device()
        try await world.verify(device)
        var stranger = device
        stranger.key = P256.Signing.PrivateKey()
        try await expect(.invalidSignature) { try await world.verify(stranger) }
        let refusal = try await expect(.rateLimited) { try await world.verify(stranger) }
        #expect(refusal?.retryAfter == 1)
        world.clock.advance(1)
        try await expect(.invalidSignature) { try await world.verify(stranger) }
    }

    @Test("of more than 200,000 devices that were seen the later ones wait, and known ones get their newer time")
    func seenDevices() throws {
        let (seen, random) = (LastSeenBuffer(), SeededRandom(seed: 5))
        let first = DeviceID(from: random)
        seen.record(first, at: now)
        let late = DeviceID(from: random)
        for _ in 1..<200_000 {
            #expect(!seen.mayContain(late))
            seen.record(DeviceID(from: random), at: now)
        }
        seen.record(late, at: now)
        seen.record(first, at: now + 9)
        // The full buffer did not record this device, so it must report that the device may have been seen.
        #expect(seen.mayContain(late))
        let taken = seen.flush()
        #expect(taken.reduce(0) { $0 + $1.count } == 200_000)
        #expect(taken.compactMap { $0[first] } == [now + 9])
        for batch in taken { seen.markWritten(batch) }
        #expect(seen.flush().isEmpty)
        #expect(!seen.mayContain(late))
        seen.record(late, at: now)
        #expect(seen.mayContain(late))
    }

    /// A store that records the limit of each call.
    private final class AskedEvidence: RecordingStore {
        let limits = Locked<[Int]>([])

        func keep(_ recording: RecordedRefusal, within bounds: RecordingBounds) async throws(StoreError) {}

        func recordings(of app: AppID?, before id: String?, limit: Int) async throws(StoreError) -> [RecordingSummary] {
            limits.withLock { $0.append(limit) }
            return []
        }

        func recording(_ id: String, of app: AppID) async throws(StoreError) -> RecordedRefusal? { nil }

        func eraseRecordings(_ id: String?, of app: AppID, recording event: AuditEvent) async throws(StoreError) -> Int
        {
            0
        }

        func eraseRecordings(expiredAt now: UnixTime, limit: Int) async throws(StoreError) -> Int {
            limits.withLock { $0.append(limit) }
            return 0
        }
    }

    @Test("a page of evidence has 1 to 1000 summaries, 50 by default; expired evidence is erased 500 at a time")
    func evidencePages() async throws {
        let (store, clock) = (AskedEvidence(), TestClock(at: now))
        let key = try #require(ServiceKey(World.serviceKey))
        let evidence = RecordingAdministration(store: store, audit: MemoryStores(), key: key, clock: clock)
        for limit in [-1, 0, 1, 1000, 1001, .max] { _ = try await evidence.list(of: nil, limit: limit) }
        _ = try await evidence.list(of: nil)
        await RefusalRecorder(store: store, writer: nil, key: key, clock: clock, random: SystemRandom()).sweep()
        #expect(store.limits.withLock { $0 } == [1, 1, 1, 1000, 1000, 1000, 50, 500])
    }

    @Test("a proof that could not be judged is tried after 1, 2, 4, 8 and then every 15 minutes")
    func postponedProofs() {
        let (proofs, device) = (PendingProofBackOff(), DeviceID(from: SystemRandom()))
        #expect(!proofs.isPostponed(device, at: now))
        for wait: Int64 in [60, 120, 240, 480, 900, 900] {
            proofs.postpone(device, from: now)
            #expect(proofs.isPostponed(device, at: now + wait - 1))
            #expect(!proofs.isPostponed(device, at: now + wait))
        }
        proofs.forget(device)
        proofs.postpone(device, from: now)
        #expect(!proofs.isPostponed(device, at: now + 60))
    }
}

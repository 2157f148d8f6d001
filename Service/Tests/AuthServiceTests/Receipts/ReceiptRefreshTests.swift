import AppAttest
import AttestationInspection
import AttestationTestKit
import AuthContract
import Bytes
import Crypto
import Foundation
import Logging
import StoreConformance
import StrictJSON
import Testing
import Verification

@testable import AuthService

/// The background job that refreshes receipts, with stores in memory and scripted answers of Apple.
@Suite(.timeLimit(.minutes(15))) struct ReceiptRefreshTests {
    private static let start = UnixTime(1_795_262_400)

    private final class Clock: ServiceClock {
        private let time = Locked(ReceiptRefreshTests.start)
        var now: UnixTime { time.withLock { $0 } }
        func advance(_ seconds: Int64) { time.withLock { $0 = $0 + seconds } }
        var date: Date { Date(timeIntervalSince1970: TimeInterval(now.seconds)) }
    }

    private struct NoRandom: RandomSource {
        func bytes(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }
    }

    /// Gives scripted answers and records the requests.
    private final class Apple: ReceiptExchange {
        private let answers: Locked<[ReceiptAnswer]>
        private let asked = Locked<[[UInt8]]>([])
        private let meanwhile: @Sendable () async -> Void

        init(_ answers: [ReceiptAnswer], meanwhile: @escaping @Sendable () async -> Void = {}) {
            self.answers = Locked(answers)
            self.meanwhile = meanwhile
        }

        var receipts: [[UInt8]] { asked.withLock { $0 } }

        func exchange(
            _ receipt: [UInt8], appID: AppleAppID, environment: AttestEnvironment
        ) async -> ReceiptAnswer {
            asked.withLock { $0.append(receipt) }
            await meanwhile()
            return answers.withLock {
                $0.isEmpty ? .unavailable(reason: "no script", retryAfter: nil) : $0.removeFirst()
            }
        }
    }

    private let clock = Clock()
    private let stores: MemoryStores
    private let authority: AppleAuthority
    private let phone: AppleDevice
    private let attested = AppleAttestKey()
    private let app: AuthContract.AppID

    init() throws {
        stores = MemoryStores(clock: clock)
        authority = try AppleAuthority(from: clock.date.addingTimeInterval(-86_400))
        phone = AppleDevice(
            system: .iOS("27.0"), app: AppleApp(appID: "TEAMID1234.com.example.app", environment: .production),
            authority: authority)
        app = try AuthContract.AppID("com.example.app")
    }

    private func receipt(
        metric: Int = 5, of key: AppleAttestKey? = nil, phone: AppleDevice? = nil,
        options: AppleReceiptOptions = AppleReceiptOptions()
    ) throws -> [UInt8] {
        try (phone ?? self.phone).exchangedReceipt(
            for: key ?? attested, clientDataHash: [1], riskMetric: metric, at: clock.date, options: options)
    }

    private func add(due: UnixTime? = start, key: AppleAttestKey? = nil, failures: Int = 0) async throws -> DeviceRecord
    {
        let key = key ?? attested
        let device = DeviceRecord(
            appID: app, deviceID: DeviceID(from: SystemRandom()), platform: .ios, status: .registered,
            key: DevicePublicKey(P256.Signing.PrivateKey().publicKey),
            assurance: Assurance(app: .appAttest, key: .appVouched),
            appAttest: AppAttestKeyState(
                keyID: key.keyID, publicKey: key.x963, appID: "TEAMID1234.com.example.app", environment: "production",
                receipt: [9, 9, 9], receiptOutcome: "verified", riskMetric: 1,
                refresh: ReceiptRefresh(dueAt: due, failures: failures)),
            registeredAt: Self.start)
        _ = try await stores.insert(
            StoredApp(appID: app, sealedJSON: "{}"), recording: AuditEvent(.appAdded, at: Self.start, actor: "test"))
        let event = AuditEvent(
            .deviceRegistered, at: Self.start, actor: "device", appID: app, deviceID: device.deviceID)
        #expect(try await stores.insert(device, recording: event) == .inserted)
        return device
    }

    private func evidence(_ device: DeviceRecord) async throws -> AppAttestKeyState {
        try #require(try await stores.device(device.deviceID, of: device.appID)?.appAttest)
    }

    /// Runs `turns` iterations of the job's loop. Returns the pause after each iteration, in seconds.
    private func work(
        _ apple: Apple, turns: Int, policy: ReceiptRefreshPolicy = ReceiptRefreshPolicy(),
        store: (any ReceiptStore)? = nil, flaggingAbove threshold: Int? = nil
    ) async throws -> [Double] {
        let anchors = try #require(
            TrustAnchors(attestationRoots: [authority.attestationRoot], receiptRoots: [authority.receiptRoot]))
        let waits = Locked<[Double]>([])
        let clock = clock
        await ReceiptRefreshJob(
            store: store ?? stores, exchange: apple, policy: policy, verifier: ReceiptVerifier(trustAnchors: anchors),
            clock: clock, random: NoRandom(),
            pause: { duration in
                let seconds = Double(duration.components.seconds) + Double(duration.components.attoseconds) / 1e18
                let count = waits.withLock { waits in
                    waits.append(seconds)
                    return waits.count
                }
                clock.advance(Int64(seconds.rounded(.up)))
                if count == turns { throw CancellationError() }
            }
        ).run { _ in threshold }
        return waits.withLock { $0 }
    }

    @Test func `a receipt that verifies replaces the stored one and is due after its not-before`() async throws {
        let device = try await add()
        let new = try receipt(metric: 5)
        let apple = Apple([.receipt(new)])
        #expect(try await work(apple, turns: 2) == [10, 60])
        #expect(apple.receipts == [[9, 9, 9]])
        let evidence = try await evidence(device)
        #expect(evidence.receipt == new)
        #expect(evidence.riskMetric == 5)
        #expect(
            evidence.refresh
                == ReceiptRefresh(
                    dueAt: Self.start + 86_400, askedAt: Self.start, outcome: "refreshed"))
        let events = try await stores.events(app: app, device: device.deviceID, before: nil, limit: 10)
        #expect(events.count == 1, "no threshold, no event")
    }

    @Test func `wrong receipts never replace the stored one`() throws {
        var sandbox = phone
        sandbox.app.environment = .development
        var elsewhere = phone
        elsewhere.app.appID = "TEAMID1234.com.example.other"
        var forger = phone
        forger.authority = try AppleAuthority(from: clock.date.addingTimeInterval(-86_400))
        var aged = AppleReceiptOptions()
        aged.age = -301
        let wrong: [(String, [UInt8])] = [
            ("PUBLIC_KEY_MISMATCH", try receipt(of: AppleAttestKey())),
            ("ENVIRONMENT_MISMATCH", try receipt(phone: sandbox)),
            ("APP_ID_NOT_ALLOWED", try receipt(phone: elsewhere)), ("MALFORMED_RECEIPT", [1, 2, 3]),
            ("RECEIPT_TOO_OLD", try receipt(options: aged)), ("UNTRUSTED_CHAIN", try receipt(phone: forger)),
        ]
        for (code, bytes) in wrong {
            let decision = try rules().decide(.receipt(bytes), on: try due(), at: clock.now, jitter: 0)
            #expect(decision.change.replacement == nil, "\(code)")
            #expect(decision.change.refresh.outcome == code)
            #expect(decision.change.refresh.failures == 1)
            #expect(decision.change.refresh.dueAt == clock.now + 86_400)
            #expect(decision.next == .goOn)
        }
    }

    private func rules() throws -> ReceiptRefreshRules {
        let anchors = try #require(
            TrustAnchors(attestationRoots: [authority.attestationRoot], receiptRoots: [authority.receiptRoot]))
        return ReceiptRefreshRules(verifier: ReceiptVerifier(trustAnchors: anchors))
    }

    private func due(failures: Int = 0) throws -> DueReceipt {
        try #require(
            DueReceipt(
                appID: app, deviceID: DeviceID(from: SystemRandom()),
                evidence: AppAttestKeyState(
                    keyID: attested.keyID, publicKey: attested.x963, appID: "TEAMID1234.com.example.app",
                    environment: "production", receipt: [9],
                    refresh: ReceiptRefresh(dueAt: clock.now, failures: failures))))
    }

    private static let table:
        [(ReceiptAnswer, failures: Int, outcome: String, after: Int64, next: ReceiptRefreshRules.Next, Int)] = [
            (.tooEarly, 2, "too_early", 86_400, .goOn, 2), (.noData, 2, "no_data", 7 * 86_400, .goOn, 0),
            (.noKey, 1, "no_key", 86_400, .withoutPause, 1),
            (.badReceipt, 0, "bad_receipt", 86_400, .goOn, 1), (.badReceipt, 3, "bad_receipt", 8 * 86_400, .goOn, 4),
            (.badReceipt, 1000, "bad_receipt", 30 * 86_400, .goOn, 1000),
            (.unauthorized, 1, "unauthorized", 3600, .backOff(atLeast: nil), 1),
            (.tooManyRequests(retryAfter: 9), 0, "too_many_requests", 3600, .backOff(atLeast: 9), 0),
            (.unavailable(reason: "", retryAfter: nil), 0, "unavailable", 600, .backOff(atLeast: nil), 1),
            (.unavailable(reason: "", retryAfter: 5), 4, "unavailable", 9600, .backOff(atLeast: 5), 5),
            (.unavailable(reason: "", retryAfter: nil), 1000, "unavailable", 86_400, .backOff(atLeast: nil), 1000),
        ]

    @Test(arguments: table.indices) func `every other answer of Apple keeps the receipt`(_ index: Int) throws {
        let (answer, failures, outcome, after, next, then) = Self.table[index]
        let decision = try rules().decide(answer, on: try due(failures: failures), at: clock.now, jitter: 0.5)
        #expect(decision.change.replacement == nil)
        #expect(decision.next == next)
        #expect(
            decision.change.refresh
                == ReceiptRefresh(
                    dueAt: clock.now + after, askedAt: clock.now, outcome: outcome, failures: then))
    }

    @Test func `a metric above the threshold is flagged, and nothing else happens to the device`() async throws {
        let device = try await add()
        _ = try await work(Apple([.receipt(try receipt(metric: 5))]), turns: 1, flaggingAbove: 4)
        let events = try await stores.events(app: app, device: device.deviceID, before: nil, limit: 10)
        #expect(events.map(\.event.code) == [.securityEvent, .deviceRegistered])
        #expect(events.first?.event.detail["metric"] == 5)
        #expect(events.first?.event.detail["threshold"] == 4)
        #expect(events.first?.event.detail["before"] == 1)
        #expect(try await stores.device(device.deviceID, of: app)?.status == .registered)
    }

    @Test(arguments: [5, nil]) func `a metric at the threshold, or without one, is not flagged`(
        threshold: Int?
    ) async throws {
        let device = try await add()
        _ = try await work(Apple([.receipt(try receipt(metric: 5))]), turns: 1, flaggingAbove: threshold)
        let events = try await stores.events(app: app, device: device.deviceID, before: nil, limit: 10)
        #expect(events.map(\.event.code) == [.deviceRegistered])
        #expect(try await evidence(device).riskMetric == 5)
    }

    @Test func `a refused receipt is recorded if the app asks for evidence, and replays`() async throws {
        let key = try #require(ServiceKey([UInt8](repeating: 1, count: 32)))
        let service = AuthService(
            stores: .init(
                challenges: stores, replay: stores, apps: stores, devices: stores, audit: stores, credentials: stores,
                signingKeys: stores, recordings: stores), key: key, recordings: RecordingFiles(), clock: clock)
        let record: JSONValue = [
            "app_id": "com.example.app", "ios": ["app_ids": ["TEAMID1234.com.example.app"]],
            "evidence": ["record": true],
        ]
        #expect(try await service.apps.add(AppRecord(JSONFields(record)), actor: "test"))
        let device = try await add()
        // A receipt of the test kit does not verify with Apple's roots.
        let job = ReceiptRefreshJob(
            store: stores, exchange: Apple([.receipt(try receipt())]), clock: clock, random: NoRandom(),
            pause: { _ in throw CancellationError() })
        await job.run(for: service)
        let kept = try await service.recordings.list(of: app)
        #expect(kept.map(\.code) == ["UNTRUSTED_CHAIN"] && kept.first?.deviceID == device.deviceID)
        #expect(try await evidence(device).refresh.outcome == "UNTRUSTED_CHAIN")
        let document = try await service.recordings.export(#require(kept.first).id, of: app, actor: "test")
        let file = try RecordingFile(parsing: #require(document))
        #expect(file.about["occasion"] == "refresh")
        #expect(file.verdict.agrees(with: try file.replay()))
    }

    @Test func `requests stay within the hourly budget`() async throws {
        for _ in 0..<8 { _ = try await add(key: AppleAttestKey()) }
        let apple = Apple([ReceiptAnswer](repeating: .noData, count: 8))
        let waits = try await work(apple, turns: 5, policy: ReceiptRefreshPolicy(requestsPerHour: 3))
        #expect(waits == [1200, 1200, 1200, 1200, 1200])
        #expect(apple.receipts.count == 5)
    }

    @Test func `the back-off grows to an hour, honours Retry-After, and ends with the first answer`() async throws {
        for _ in 0..<12 { _ = try await add(key: AppleAttestKey()) }
        let outage = ReceiptAnswer.unavailable(reason: "503", retryAfter: nil)
        let answers =
            [outage, .tooManyRequests(retryAfter: 100), .unauthorized] + [outage, outage, outage, outage, outage]
            + [.noData, outage]
        #expect(
            try await work(Apple(answers), turns: 10) == [30, 100, 120, 240, 480, 960, 1800, 1800, 10, 30])
    }

    @Test func `what Apple asks for is honoured up to six hours`() async throws {
        let wishes: [(asked: Int64, honoured: Double)] = [
            (21_599, 21_599), (21_600, 21_600), (21_601, 21_600), (.max, 21_600), (-1, 30),
        ]
        for wish in wishes {
            _ = try await add(key: AppleAttestKey())
            let apple = Apple([.tooManyRequests(retryAfter: wish.asked)])
            #expect(try await work(apple, turns: 1) == [wish.honoured])
        }
    }

    @Test func `a receipt that always fails does not delay the others`() async throws {
        let stumbling = try await add(due: Self.start - 100)
        _ = try await add(key: AppleAttestKey())
        let apple = Apple([.unavailable(reason: "500", retryAfter: nil), .noData])
        _ = try await work(apple, turns: 3)
        #expect(apple.receipts.count == 2)
        #expect(try await evidence(stumbling).refresh.failures == 1)
    }

    @Test func `the job continues after a failure of the store`() async throws {
        _ = try await add()
        await stores.fail(.takeDueReceipt)
        let apple = Apple([.noData])
        #expect(try await work(apple, turns: 2) == [30, 60])
        #expect(apple.receipts.isEmpty)
        await stores.recover()
        #expect(try await work(apple, turns: 1) == [10])
    }

    @Test func `a receipt that a crashed process took is due again after its lease`() async throws {
        let device = try await add()
        let taken = try await stores.takeDueReceipt(at: clock.now, lease: clock.now + ReceiptRefreshRules.lease)
        #expect(taken?.deviceID == device.deviceID)
        let apple = Apple([.noData])
        #expect(try await work(apple, turns: 14).count == 14)
        #expect(apple.receipts.isEmpty)
        #expect(try await work(apple, turns: 2) == [60, 10])
        #expect(apple.receipts.count == 1)
    }

    @Test func `a receipt that was replaced meanwhile is kept`() async throws {
        let device = try await add()
        let evidence = AppAttestKeyState(
            keyID: [8], publicKey: [9], appID: "TEAMID1234.com.example.app", environment: "production", receipt: [7])
        let stores = stores
        let apple = Apple([.receipt(try receipt())]) {
            _ = try? await stores.change(device.deviceID, of: device.appID) { $0.appAttest = evidence }
        }
        _ = try await work(apple, turns: 1)
        #expect(try await self.evidence(device) == evidence)
    }

    @Test func `a receipt of type ATTEST is not accepted as a refreshed one`() throws {
        var options = AppleReceiptOptions()
        options.fields = { fields in
            fields.filter { ![17, 19].contains($0.type) }.map { $0.type == 6 ? .init(6, "ATTEST") : $0 }
        }
        let decision = try rules().decide(
            .receipt(try receipt(options: options)), on: try due(), at: clock.now, jitter: 0)
        #expect(decision.change.refresh.outcome == "not_a_refreshed_receipt")
        #expect(decision.change.replacement == nil)
    }

    @Test(arguments: [(-86_400, 3600), (86_400, 86_400), (400 * 86_400, 30 * 86_400)] as [(Int64, Int64)])
    func `the next refresh is at not-before, within bounds`(_ notBefore: Int64, _ wait: Int64) throws {
        var options = AppleReceiptOptions()
        let text = (clock.now + notBefore).iso8601
        options.fields = { fields in fields.map { $0.type == 19 ? .init(19, text) : $0 } }
        let bytes = try receipt(options: options)
        let decision = try rules().decide(.receipt(bytes), on: try due(), at: clock.now, jitter: 0)
        #expect(decision.change.refresh.dueAt == clock.now + wait)
        let later = try rules().decide(.receipt(bytes), on: try due(), at: clock.now, jitter: 0.5)
        #expect(later.change.refresh.dueAt == clock.now + wait + 3 * 3600)
    }
}

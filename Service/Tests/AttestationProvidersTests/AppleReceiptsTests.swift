import AppAttest
import AttestationTestKit
import AuthContract
import AuthService
import Crypto
import StoreConformance
import StrictJSON
import Synchronization
import Testing

@testable import AttestationProviders

@Suite(.timeLimit(.minutes(15))) struct AppleReceiptsTests {
    private func run(
        deadline: Duration = .seconds(15), keys: Int = 1,
        _ body: (AppleStandIn, StandIn, AppleReceipts, AttestedAppID) async throws -> Void
    ) async throws {
        let apple = try AppleStandIn()
        let appID = try #require(AttestedAppID(AppleStandIn.appID))
        try await StandIn.run {
            try apple.answer($0)
        } _: { service in
            try await withHTTP { http in
                var settings = AppleReceiptSettings()
                settings.productionURL = service.url
                settings.developmentURL = "http://127.0.0.1:1"
                settings.deadline = deadline
                let receipts = AppleReceipts(
                    http: http, keys: keys == 0 ? [] : [try await apple.key()], settings: settings, clock: apple.clock)
                try await body(apple, service, receipts, appID)
            }
        }
    }

    @Test func `a receipt is exchanged with a signed request`() async throws {
        try await run { apple, service, receipts, appID async throws in
            let answer = await receipts.exchange(try apple.receipt(), appID: appID, environment: .production)
            guard case .receipt(let bytes) = answer else {
                Issue.record("\(answer), \(apple.complaints)")
                return
            }
            #expect(try Receipt(parsing: bytes).fields.riskMetric == 3)
            #expect(apple.complaints == [])
            #expect(service.received.count == 1)
        }
    }

    @Test func `a call to a provider carries the id of the request that it serves`() async throws {
        try await run { apple, service, receipts, appID async throws in
            _ = await receipts.exchange(try apple.receipt(), appID: appID, environment: .production)
            _ = try await RequestID.$current.withValue("trace-1") {
                await receipts.exchange(try apple.receipt(), appID: appID, environment: .production)
            }
            #expect(service.received.map { $0["X-Request-ID"] } == [nil, "trace-1"])
        }
    }

    /// Records observed calls, and adds a header.
    private final class Calls: ProviderObserver {
        private let kept = Mutex<[String]>([])
        var seen: [String] { kept.withLock { $0 } }

        func observing<Answer: Sendable>(
            _ call: ProviderCall,
            _ send: (_ headers: [(name: String, value: String)]) async -> (answer: Answer, result: ProviderResult)
        ) async -> Answer {
            let (answer, result) = await send([("traceparent", "00-1-2-01")])
            kept.withLock { $0.append("\(call.rawValue) \(result.rawValue)") }
            return answer
        }
    }

    @Test func `an observer sees how each call ended, and its headers are sent`() async throws {
        let apple = try AppleStandIn()
        let appID = try #require(AttestedAppID(AppleStandIn.appID))
        try await StandIn.run {
            try apple.answer($0)
        } _: { service in
            let calls = Calls()
            let http = ProviderHTTP(observer: calls)
            for url in [service.url, "http://127.0.0.1:1"] {
                var settings = AppleReceiptSettings()
                settings.productionURL = url
                let receipts = AppleReceipts(
                    http: http, keys: [try await apple.key()], settings: settings, clock: apple.clock)
                _ = await receipts.exchange(try apple.receipt(), appID: appID, environment: .production)
            }
            await http.shutdown()
            #expect(calls.seen == ["apple_receipt answered", "apple_receipt unreachable"])
            #expect(service.received.map { $0["traceparent"] } == ["00-1-2-01"])
        }
    }

    static let answers: [(StandIn.Answer, ReceiptAnswer)] = [
        (.whole(304), .tooEarly), (.text(400, "Bad Payload"), .badReceipt), (.whole(401), .unauthorized),
        (.text(404, "No Data Found"), .noData), (.whole(429), .tooManyRequests(retryAfter: nil)),
        (.whole(429, ["retry-after": "90"]), .tooManyRequests(retryAfter: 90)),
        (.whole(503, ["retry-after": "7"]), .unavailable(reason: "Apple's server answered 503", retryAfter: 7)),
        (.whole(500), .unavailable(reason: "Apple's server answered 500", retryAfter: nil)),
        (
            .text(302, "", ["location": "/v1/attestationData"]),
            .unavailable(reason: "Apple's server answered 302", retryAfter: nil)
        ),
        (.text(200, "<html>"), .unavailable(reason: "the body of the response is not base64", retryAfter: nil)),
        (.text(200, ""), .unavailable(reason: "the body of the response is not base64", retryAfter: nil)),
        (.text(200, "AAEC\n"), .receipt([0, 1, 2])),
        (
            .whole(200, [:], [UInt8](repeating: 0x41, count: 32 * 1024 + 1)),
            .unavailable(reason: "the response is too large", retryAfter: nil)
        ),
        (.silence, .unavailable(reason: "no response in time", retryAfter: nil)),
        (.drip, .unavailable(reason: "no response in time", retryAfter: nil)),
    ]

    @Test(arguments: answers.indices) func `every status has its documented meaning`(_ index: Int) async throws {
        let (scripted, meaning) = Self.answers[index]
        // Only the case without a response needs a short deadline. The other cases may be slow on a busy machine.
        let isKeptWaiting = meaning == .unavailable(reason: "no response in time", retryAfter: nil)
        try await run(deadline: isKeptWaiting ? .seconds(3) : .seconds(30)) {
            apple, service, receipts, appID async throws in
            apple.script.then(scripted)
            let answer = await receipts.exchange(try apple.receipt(), appID: appID, environment: .production)
            #expect(answer == meaning)
            #expect(service.received.count == 1)
            #expect(apple.complaints == [])
        }
    }

    @Test func `the development environment has a server of its own`() async throws {
        try await run { apple, service, receipts, appID async throws in
            let answer = await receipts.exchange(try apple.receipt(), appID: appID, environment: .development)
            guard case .unavailable(let reason, nil) = answer else {
                Issue.record("\(answer)")
                return
            }
            #expect(reason.hasPrefix("not reached"))
            #expect(service.received.count == 0)
        }
    }

    @Test func `without a key for the App ID's prefix no request is sent`() async throws {
        try await run { apple, service, receipts, _ async throws in
            let other = try #require(AttestedAppID("TEAMID12345.com.example.app"))
            #expect(await receipts.exchange([1], appID: other, environment: .production) == .noKey)
            #expect(service.received.count == 0)
        }
    }

    @Test func `only a P-256 key with ids of ten characters is a DeviceCheck key`() throws {
        let pem = P256.Signing.PrivateKey().pemRepresentation
        for (team, key, text) in [
            ("TEAMID123", "KEYID67890", pem), ("TEAMID1234", "KEY_D67890", pem), ("TEAMID1234", "KEYID67890", ""),
            ("TEAMID1234", "KEYID67890", P384.Signing.PrivateKey().pemRepresentation),
        ] {
            #expect(throws: ContractError.self) {
                try DeviceCheckKey(teamID: team, keyID: key, pem: text)
            }
        }
        let key = try DeviceCheckKey(teamID: "TEAMID1234", keyID: "KEYID67890", pem: pem)
        var dumped = ""
        dump(key, to: &dumped)
        #expect(!dumped.contains("PRIVATE") && "\(key)" == "TEAMID1234/KEYID67890")
    }

    @Test func `the job replaces a stored receipt by a verified one from Apple`() async throws {
        try await run { apple, service, receipts, appID async throws in
            let stores = MemoryStores(clock: apple.clock)
            let first = try apple.receipt(metric: 1)
            let device = DeviceRecord(
                appID: try AuthContract.AppID("app"), deviceID: DeviceID(from: SystemRandom()), platform: .ios,
                status: .registered, key: DevicePublicKey(P256.Signing.PrivateKey().publicKey),
                assurance: Assurance(app: .appAttest, key: .appVouched),
                appAttest: AppAttestKeyState(
                    keyID: apple.key.keyID, publicKey: apple.key.x963, appID: appID.text, environment: "production",
                    receipt: first, receiptOutcome: "verified", refresh: ReceiptRefresh(dueAt: noon)),
                registeredAt: noon)
            _ = try await stores.insert(
                StoredApp(appID: device.appID, sealedJSON: "{}"),
                recording: AuditEvent(.appAdded, at: noon, actor: "test"))
            _ = try await stores.insert(
                device, recording: AuditEvent(.deviceRegistered, at: noon, actor: "device"))
            let pauses = Pauses(apple.clock, limit: 3)
            let job = ReceiptRefreshJob(
                store: stores, exchange: receipts,
                verifier: try apple.verifier, clock: apple.clock, random: NoRandom(), pause: pauses.pause)
            await job.run { _ in 2 }
            let evidence = try #require(try await stores.device(device.deviceID, of: device.appID)?.appAttest)
            #expect(evidence.riskMetric == 3)
            #expect(evidence.receipt != first)
            #expect(evidence.refresh.outcome == "refreshed")
            #expect((evidence.refresh.dueAt ?? noon) - noon == 86_400)
            #expect(service.received.count == 1)
            let events = try await stores.events(app: device.appID, device: device.deviceID, before: nil, limit: 10)
            #expect(events.first?.event.code == .securityEvent)
            #expect(events.first?.event.detail["metric"] == 3)
            #expect(try await stores.device(device.deviceID, of: device.appID)?.status == .registered)
        }
    }
}

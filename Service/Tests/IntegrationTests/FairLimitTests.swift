import AuthContract
import Bytes
import Crypto
import StrictJSON
import Testing

/// Many phones behind one address, such as those of a carrier or an office. `Checks/benchmarks/fair-limits` measures how long they
/// wait.
@Suite struct FairLimitTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private static let phones = 200

    /// Starts the service with the default bursts for failed signatures, and for unknown devices, apps and credentials. The other
    /// limits stay as high as `ServiceFixture.start` sets them, so that all phones may register at once.
    private func started() async throws -> RunningService {
        try await ServiceFixture(database: folder.path("db.sqlite")).start(environment: [
            "SYNHEART_AUTH_PROTECTION_FAILED_SIGNATURE_BURST": "100",
            "SYNHEART_AUTH_PROTECTION_STRANGER_BURST": "100",
        ])
    }

    /// One request of each kind that a broken or hostile client repeats.
    private static func badRequests(of phone: DevelopmentDevice, number: Int) throws -> [WireRequest] {
        let wrong = DevelopmentDevice(id: phone.id, key: P256.Signing.PrivateKey())
        let invented = DevelopmentDevice(id: DeviceID(from: SystemRandom()), key: wrong.key)
        var unknownApp = try invented.request(.status)
        unknownApp.headers = unknownApp.headers.map {
            $0.0 == HeaderName.appID ? ($0.0, "com.example.no\(number)") : $0
        }
        let question = WireRequest(
            method: "POST", target: Route.verify.rawValue,
            headers: [("Authorization", "Bearer sya_0000000000000000_AAAA")], body: Array("{}".utf8))
        var malformed = try phone.request(.status)
        malformed.headers.append((HeaderName.deviceID, phone.id.text))
        return [try wrong.request(.status), try invented.request(.status), unknownApp, question, malformed]
    }

    /// The number of accepted requests, and of each error code.
    private struct Seen: Sendable {
        var accepted = 0
        var codes: [String: Int] = [:]

        mutating func note(_ answers: [WireResponse]) {
            for answer in answers {
                if answer.status == 200 { accepted += 1 } else { codes[answer.code ?? "none", default: 0] += 1 }
            }
        }
    }

    @Test func `of 200 phones behind one address one fails all the time, and every request of the others succeeds`()
        async throws
    {
        let service = try await started()
        let port = service.port
        let phones = try await withThrowingTaskGroup(of: [DevelopmentDevice].self) { tasks in
            for _ in 0..<8 {
                tasks.addTask {
                    var phones: [DevelopmentDevice] = []
                    while phones.count < Self.phones / 8 {
                        phones.append(
                            try #require(await DevelopmentDevice.register(P256.Signing.PrivateKey(), port: port)))
                    }
                    return phones
                }
            }
            return try await tasks.reduce(into: []) { $0 += $1 }
        }
        try #require(phones.count == Self.phones)
        let areDone = Locked(false)
        async let bad = Self.attack(phones[0], port: port) { areDone.withLock { $0 } }
        // Waits until the attack has exhausted its limits. Then the other phones send their first requests.
        var code: String?
        for _ in 0..<2000 where code != "RATE_LIMITED" { code = await Self.sent(by: phones[0], port: port) }
        #expect(code == "RATE_LIMITED")
        var good = Seen()
        try await withThrowingTaskGroup(of: Seen.self) { tasks in
            for start in stride(from: 1, to: Self.phones, by: 20) {
                tasks.addTask {
                    var seen = Seen()
                    for phone in phones[start..<min(start + 20, Self.phones)] {
                        let connection = try #require(WireConnection(port: port))
                        for _ in 0..<3 { seen.note(await connection.exchange([try phone.request(.status)])) }
                    }
                    return seen
                }
            }
            for try await seen in tasks {
                good.accepted += seen.accepted
                good.codes.merge(seen.codes) { $0 + $1 }
            }
        }
        areDone.withLock { $0 = true }
        let seen = try await bad
        #expect(good.accepted == 3 * (Self.phones - 1), "\(good.codes)")
        #expect(seen.accepted == 0)
        #expect(seen.codes["RATE_LIMITED", default: 0] > 0, "\(seen.codes)")
        #expect(seen.codes["NOT_REGISTERED", default: 0] + seen.codes["INVALID_SIGNATURE", default: 0] > 0)
        // At another address the failing phone works as before.
        let elsewhere = await WireConnection.exchange(port: port, from: 0x7F02, try phones[0].request(.status))
        #expect(elsewhere?.status == 200, "\(elsewhere?.text ?? "no answer")")
        #expect(service.stop() == 0)
    }

    /// Sends batches of bad requests, each on one connection, until the other clients are done.
    private static func attack(
        _ phone: DevelopmentDevice, port: Int, until isDone: @escaping @Sendable () -> Bool
    ) async throws -> Seen {
        var (seen, number) = (Seen(), 0)
        while !isDone() {
            let batch = try (0..<8).flatMap { try badRequests(of: phone, number: number + $0) }
            number += 8
            // The service may close a connection after a refusal.
            let answers = await WireConnection(port: port)?.exchange(batch) ?? []
            #expect(!answers.isEmpty)
            seen.note(answers)
        }
        return seen
    }

    /// Sends one more request of the failing phone, with its own key. Returns the error code; nil: accepted or not answered.
    private static func sent(by phone: DevelopmentDevice, port: Int) async -> String? {
        guard let request = try? phone.request(.status) else { return "RATE_LIMITED" }
        return await WireConnection.exchange(port: port, request)?.code
    }
}

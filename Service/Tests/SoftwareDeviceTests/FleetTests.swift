import AttestationTestKit
import AuthContract
import Bytes
import Foundation
import StrictJSON
import SynheartAuth
import Testing

@testable import SoftwareDevice

/// A fleet and a service with scripted answers.
@Suite struct FleetTests {
    /// Answers each route with a fixed status and body. Registers every device that asks.
    private struct ScriptedService: HTTPTransport {
        var answers: [Route: (status: Int, body: JSONValue)] = [:]
        /// Called with each request before it is answered.
        var onRequest: @Sendable (TransportRequest) -> Void = { _ in }
        let requests = Locked<[TransportRequest]>([])

        func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
            requests.withLock { $0.append(request) }
            onRequest(request)
            guard let route = Route.allCases.first(where: { request.url == "http://127.0.0.1:1" + $0.rawValue }) else {
                throw TransportError("no such route")
            }
            if let answer = answers[route] {
                guard answer.status > 0 else { throw TransportError("no listener") }
                return TransportResponse(status: answer.status, body: answer.body.bytes)
            }
            let body: JSONValue =
                switch route {
                case .challenge:
                    [
                        "challenge": .string(Base64.standard.encode(SystemRandom().bytes(32))),
                        "expires_at": "2026-11-21T00:00:00Z", "ttl_seconds": 90,
                    ]
                case .register: ["device_id": .string(DeviceID(from: SystemRandom()).text), "status": "registered"]
                case .rotateKey: .object(RotateKeyResponse(effectiveAt: UnixTime(1_795_000_000)).json)
                default: [:]
                }
            return TransportResponse(status: 200, body: body.bytes)
        }
    }

    private static let authorities = Result { (try AppleAuthority(from: Date()), try GoogleAuthority()) }

    private func fleet(
        _ service: ScriptedService, count: Int = 6, _ kinds: [Fleet.Kind] = Fleet.Kind.allCases
    ) throws -> Fleet {
        let (apple, google) = try Self.authorities.get()
        return try Fleet(
            .init(
                url: "http://127.0.0.1:1", appID: AppID("com.example.app"), count: count, kinds: kinds, apple: apple,
                google: google, concurrency: 3), transport: service)
    }

    private func load(_ requests: Int, rotations: Int = 0, _ question: Fleet.Load.Question = .status) -> Fleet.Load {
        Fleet.Load(end: .requests(requests), rate: nil, rotationPercent: rotations, question: question)
    }

    private static func refusal(_ code: String) -> JSONValue {
        ["error": .string(code), "message": "no", "request_id": "r", "server_timestamp": 1_700_000_000]
    }

    @Test func `every device registers, as its kind does`() async throws {
        let service = ScriptedService()
        let fleet = try fleet(service)
        let outcome = await fleet.enrol()
        #expect((outcome.succeeded, outcome.failed) == (6, 0))
        #expect(fleet.log.routes[.challenge]?.count == 6)
        #expect(fleet.log.routes[.register]?.latencies.count == 6)
        let registrations = try service.requests.withLock { $0 }.filter { $0.url.hasSuffix("/register") }.map {
            (try RegisterRequest(parsing: $0.body), $0.headers.values(HeaderName.developmentMode))
        }
        #expect(
            registrations.count { $0.0.platform == .android && $0.0.keyAttestation != nil && $0.0.proof != nil } == 2)
        #expect(registrations.count { $0.0.proof == RegisterRequest.developmentProof && $0.1 == ["true"] } == 2)
        #expect(registrations.count { $0.0.platform == .ios && $0.1.isEmpty } == 2)
    }

    @Test func `requests and rotations are counted by route`() async throws {
        let fleet = try fleet(ScriptedService())
        _ = await fleet.enrol()
        let outcome = await fleet.work(load(50, rotations: 10))
        #expect((outcome.succeeded, outcome.failed) == (50, 0))
        #expect(fleet.log.routes[.status]?.count == 45)
        #expect(fleet.log.routes[.rotateKey]?.count == 5)
    }

    @Test func `a refusal is counted under its code, and fails`() async throws {
        var service = ScriptedService()
        service.answers = [.status: (409, Self.refusal("NONCE_REPLAY")), .rotateKey: (502, "a proxy")]
        let fleet = try fleet(service)
        _ = await fleet.enrol()
        let outcome = await fleet.work(load(10, rotations: 20))
        #expect((outcome.succeeded, outcome.failed) == (0, 10))
        #expect(fleet.log.routes[.status]?.errors == ["NONCE_REPLAY": 8])
        #expect(fleet.log.routes[.rotateKey]?.errors == ["HTTP_502": 2])
    }

    private static func isBad(_ request: TransportRequest) -> Bool {
        request.headers.values(HeaderName.nonce) == ["malformed"]
    }

    @Test func `bad requests have devices, counts and latencies of their own`() async throws {
        var service = ScriptedService()
        service.answers = [.status: (400, Self.refusal("INVALID_REQUEST"))]
        let fleet = try fleet(service, count: 5, [.ios])
        _ = await fleet.enrol()
        var load = load(40)
        load.bad = BadShares(percent: [.malformed: 25])
        let outcome = await fleet.work(load)
        #expect((outcome.succeeded, outcome.refused, outcome.failed) == (0, 10, 30))
        #expect(fleet.log.bad[.malformed]?.errors == ["INVALID_REQUEST": 10])
        #expect(fleet.log.bad[.malformed]?.latencies.count == 10)
        #expect(fleet.log.routes[.status]?.count == 30)
        let sent = service.requests.withLock { $0 }.filter { $0.url.hasSuffix("/status") }
        let (bad, good) = (sent.filter(Self.isBad), sent.filter { !Self.isBad($0) })
        let attackers = Set(bad.flatMap { $0.headers.values(HeaderName.deviceID) })
        #expect(attackers.count == 1 && bad.count == 10)
        #expect(attackers.isDisjoint(with: good.flatMap { $0.headers.values(HeaderName.deviceID) }))
    }

    @Test(arguments: BadTraffic.allCases) func `a bad request that is accepted fails`(kind: BadTraffic) async throws {
        let fleet = try fleet(ScriptedService(), count: 2, [.ios])
        _ = await fleet.enrol()
        var load = load(10)
        load.bad = BadShares(percent: [kind: 50])
        let outcome = await fleet.work(load)
        #expect((outcome.succeeded, outcome.refused, outcome.failed) == (5, 0, 5))
    }

    @Test func `kinds of bad requests have their shares`() {
        let shares = BadShares(percent: [.replay: 3, .signature: 1, .clock: 6, .stranger: 0])
        let kinds = (0..<10_000).compactMap { shares.kind(of: $0) }
        #expect(kinds.count == 1000 && shares.count(before: 10_000) == 1000)
        for (kind, count) in [(BadTraffic.replay, 300), (.signature, 100), (.clock, 600)] {
            #expect(abs(kinds.count { $0 == kind } - count) <= 5, "\(kind)")
        }
        #expect(!kinds.contains(.stranger))
        #expect((0..<100).allSatisfy { BadShares().kind(of: $0) == nil })
    }

    @Test func `no answer is counted, and is no latency`() async throws {
        var service = ScriptedService()
        service.answers = [.status: (0, .null)]
        let fleet = try fleet(service)
        _ = await fleet.enrol()
        #expect(await fleet.work(load(4)).failed == 4)
        let line = try #require(fleet.log.routes[.status])
        #expect(line.errors == [FleetLog.noAnswer: 4])
        #expect(line.latencies.count == 0)
        #expect(line.count == 4)
    }

    @Test func `a fleet without a registered device has nothing to do`() async throws {
        var service = ScriptedService()
        service.answers = [.register: (403, Self.refusal("INVALID_ATTESTATION"))]
        let fleet = try fleet(service)
        #expect(await fleet.enrol().failed == 6)
        #expect(await fleet.work(load(10)) == Fleet.Outcome())
    }

    @Test func `a fleet that is stopped ends what it has begun, and begins nothing more`() async throws {
        let running = Locked<Fleet?>(nil)
        var service = ScriptedService()
        service.onRequest = { request in
            if request.url.hasSuffix("/status") { running.withLock { $0 }?.stop() }
        }
        let fleet = try fleet(service)
        running.withLock { $0 = fleet }
        _ = await fleet.enrol()
        let outcome = await fleet.work(load(1000))
        #expect((1...3).contains(outcome.succeeded))
        #expect(outcome.failed == 0)
        running.withLock { $0 = nil }
    }

    @Test func `what observe mode lets through is not verified`() async throws {
        var service = ScriptedService()
        service.answers = [.verify: (200, ["verified": false, "observed": "INVALID_SIGNATURE"])]
        let fleet = try fleet(service, count: 1, [.development])
        _ = await fleet.enrol()
        #expect(await fleet.work(load(3, .verify(credential: "sya_x"))).failed == 3)
        let asked = try #require(service.requests.withLock { $0 }.last)
        #expect(asked.headers.values("Authorization") == ["Bearer sya_x"])
        #expect(try VerifyRequest(parsing: asked.body).method == "POST")
    }
}

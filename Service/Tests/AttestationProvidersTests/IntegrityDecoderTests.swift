import AuthContract
import AuthService
import Foundation
import PlayIntegrity
import ServiceTestHelpers
import StrictJSON
import Testing

import class Bytes.Locked

@testable import AttestationProviders

@Suite(.timeLimit(.minutes(15))) struct IntegrityDecoderTests {
    private static var impatient: GoogleSettings {
        var settings = GoogleSettings()
        settings.decodeDeadline = .seconds(2)
        settings.accessTokenDeadline = .seconds(1)
        return settings
    }

    @Test func `the packages of an app share one deadline`() async throws {
        var settings = GoogleSettings()
        settings.decodeDeadline = .seconds(2)
        settings.accessTokenDeadline = .seconds(1)
        let packages = (1...8).map { "com.example.app\($0)" }
        try await GoogleUnderTest.run(settings, pause: { try await Task.sleep(for: $0) }) { test async throws in
            for package in packages { test.google.always(.text(429, ""), for: package) }
            _ = try await test.decode(for: packages)
            // If each package had its own deadline, each would be tried three times.
            #expect(test.decodings <= 2 * packages.count)
        }
    }

    private static let good = DecodeResult.decoded(requestHash: "aGFzaA")

    @Test func `a standard token is decoded by Google`() async throws {
        try await GoogleUnderTest.run { test async throws in
            #expect(try await test.decode() == Self.good)
            #expect(test.google.complaints == [])
            #expect(test.service.received.map(\.path) == ["/token", "/v1/com.example.app:decodeIntegrityToken"])
        }
    }

    @Test func `a hundred concurrent decodings share one request for an access token`() async throws {
        try await GoogleUnderTest.run { test async throws in
            let token = try test.google.token()
            let (caller, providers) = (try test.caller(), test.providers)
            let good = await withTaskGroup(of: Bool.self) { group in
                for _ in 0..<100 {
                    group.addTask {
                        let outcome = await providers.decode(
                            token, package: GoogleStandIn.package, for: caller)
                        return DecodeResult(outcome) == Self.good
                    }
                }
                return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
            }
            #expect(good == 100)
            #expect(test.google.tokensIssued == 1)
        }
    }

    @Test func `the access token is renewed five minutes before its end, and not sooner`() async throws {
        try await GoogleUnderTest.run { test async throws in
            #expect(try await test.decode() == Self.good)
            test.google.clock.advance(3298)
            #expect(try await test.decode() == Self.good)
            #expect(test.google.tokensIssued == 1)
            test.google.clock.advance(1)
            #expect(try await test.decode() == Self.good)
            #expect(test.google.tokensIssued == 2)
        }
    }

    @Test func `a failed renewal keeps the valid token`() async throws {
        try await GoogleUnderTest.run { test async throws in
            #expect(try await test.decode() == Self.good)
            test.google.clock.advance(3400)
            test.google.tokenScript.then(.text(503, ""), .text(503, ""), .text(503, ""))
            #expect(try await test.decode() == Self.good)
            #expect(test.google.tokensIssued == 1)
            test.google.clock.advance(30)
            #expect(try await test.decode() == Self.good)
            #expect(test.google.tokensIssued == 2)
        }
    }

    @Test func `a token that Google no longer accepts is replaced once`() async throws {
        try await GoogleUnderTest.run { test async throws in
            #expect(try await test.decode() == Self.good)
            test.google.withdrawTokens()
            #expect(try await test.decode() == Self.good)
            #expect(test.google.tokensIssued == 2)
            #expect(test.decodings == 3)
        }
    }

    @Test func `a new token that Google does not accept ends the attempts`() async throws {
        try await GoogleUnderTest.run { test async throws in
            test.google.decodeScript.then(.text(401, "{}"), .text(401, "{}"))
            #expect(try await test.decode() == .couldNotCheck(.unauthenticated))
            #expect(test.decodings == 2)
            #expect(test.google.tokensIssued == 2)
            #expect(test.pauses.all == [])
        }
    }

    @Test func `a token that Google refuses costs one request`() async throws {
        try await GoogleUnderTest.run { test async throws in
            #expect(try await test.decode("bm8") == .refused(.rejectedByGoogle))
            #expect(test.decodings == 1)
            #expect(test.pauses.all == [])
        }
    }

    @Test func `a project that is not linked is explained once, and again after it worked`() async throws {
        try await GoogleUnderTest.run { test async throws in
            let denied = #"{"error":{"code":403,"message":"…","status":"PERMISSION_DENIED"}}"#
            func explanations() -> Int {
                test.log.all.count { $0.text.contains("linked to the app in Play Console") }
            }
            test.google.decodeScript.then(.text(403, denied), .text(403, denied))
            for _ in 0..<2 { #expect(try await test.decode() == .couldNotCheck(.projectNotLinked)) }
            #expect(explanations() == 1)
            #expect(test.log.all.contains { $0.text.contains("verifier@example-project") })
            #expect(try await test.decode() == Self.good)
            test.google.decodeScript.then(.text(403, denied))
            #expect(try await test.decode() == .couldNotCheck(.projectNotLinked))
            #expect(explanations() == 2)
            #expect(test.decodings == 4)
        }
    }

    @Test(arguments: [500, 502, 503]) func `a short outage is retried`(_ status: Int) async throws {
        try await GoogleUnderTest.run { test async throws in
            test.google.decodeScript.then(.text(status, "<html>"), .text(status, ""))
            #expect(try await test.decode() == Self.good)
            #expect(test.pauses.all == [.milliseconds(250), .milliseconds(500)])
        }
    }

    @Test func `a lasting outage is an outcome`() async throws {
        try await GoogleUnderTest.run { test async throws in
            for _ in 0..<3 { test.google.decodeScript.then(.text(503, "{}")) }
            #expect(try await test.decode() == .couldNotCheck(.providerUnavailable))
            #expect(test.decodings == 3)
            #expect(try await test.decode() == Self.good, "without Retry-After the next token is asked for")
        }
    }

    @Test func `Retry-After is honoured within the deadline`() async throws {
        try await GoogleUnderTest.run { test async throws in
            test.google.decodeScript.then(.text(429, "{}", ["retry-after": "2"]))
            #expect(try await test.decode() == Self.good)
            #expect(test.pauses.all == [.seconds(2)])
        }
    }

    @Test func `a Retry-After beyond the deadline pauses requests until then`() async throws {
        try await GoogleUnderTest.run { test async throws in
            test.google.decodeScript.then(.text(429, "{}", ["retry-after": "120"]))
            #expect(try await test.decode() == .couldNotCheck(.quotaExceeded))
            #expect(test.pauses.all == [])
            test.google.clock.advance(119)
            #expect(try await test.decode() == .couldNotCheck(.quotaExceeded))
            #expect(test.decodings == 1)
            test.google.clock.advance(1)
            #expect(try await test.decode() == Self.good)
        }
    }

    @Test func `a pause and the quota of one app are not another's that names the same package`() async throws {
        try await GoogleUnderTest.run { test async throws in
            test.google.decodeScript.then(.text(429, "{}", ["retry-after": "300"]))
            #expect(try await test.decode(by: "com.example.other") == .couldNotCheck(.quotaExceeded))
            #expect(try await test.decode(by: "com.example.app") == Self.good)
            #expect(try await test.decode(by: "com.example.other") == .couldNotCheck(.quotaExceeded))
            let usage = await test.providers.report().integrityUsage
            #expect(usage.map(\.app.text) == ["com.example.app", "com.example.other"])
            #expect(usage.map(\.refused) == [0, 1])
        }
    }

    @Test func `quota is counted by app and day`() async throws {
        try await GoogleUnderTest.run { test async throws in
            #expect(await test.providers.report().integrityUsage == [])
            test.google.decodeScript.then(.text(429, "{}", ["retry-after": "1"]))
            #expect(try await test.decode() == Self.good)
            let today = UnixTime(noon.seconds / 86_400 * 86_400)
            #expect(
                await test.providers.report().integrityUsage == [
                    .init(
                        app: try AppID("com.example.app"), package: GoogleStandIn.package, day: today, requests: 2,
                        refused: 1)
                ])
            test.google.clock.advance(86_400)
            #expect(try await test.decode() == Self.good)
            #expect(await test.providers.report().integrityUsage.map(\.requests) == [2, 1])
            #expect(await test.providers.report().integrityUsage.map(\.day) == [today, today + 86_400])
            test.google.clock.advance(2 * 86_400)
            #expect(await test.providers.report().integrityUsage == [])
        }
    }

    @Test func `a refused service account causes no request for a while`() async throws {
        try await GoogleUnderTest.run { test async throws in
            test.google.tokenScript.then(.text(400, #"{"error":"invalid_grant"}"#))
            #expect(try await test.decode() == .couldNotCheck(.unauthenticated))
            #expect(try await test.decode() == .couldNotCheck(.unauthenticated))
            #expect(test.service.received.count == 1)
            #expect(test.log.all.contains { $0.text.contains("invalid_grant") })
            test.google.clock.advance(30)
            #expect(try await test.decode() == Self.good)
        }
    }

    @Test func `a malformed service account causes no request`() async throws {
        try await GoogleUnderTest.run { test async throws in
            let outcome = await test.providers.decode(
                "dG9rZW4", package: "com.example.app",
                for: IntegrityCaller(app: try AppID("com.example.app"), serviceAccount: Secret("{}")))
            #expect(DecodeResult(outcome) == .couldNotCheck(.unauthenticated))
            #expect(test.service.received.count == 0)
        }
    }

    @Test(arguments: [StandIn.Answer.silence, .drip])
    func `a slow service ends with the deadline`(_ answer: StandIn.Answer) async throws {
        try await GoogleUnderTest.run(Self.impatient) { test async throws in
            test.google.decodeScript.then(answer)
            let start = ContinuousClock.now
            #expect(try await test.decode() == .couldNotCheck(.network))
            #expect(ContinuousClock.now - start < .seconds(20))
        }
    }

    @Test func `a slow token endpoint ends with the deadline for every waiting caller`() async throws {
        try await GoogleUnderTest.run(Self.impatient) { test async throws in
            test.google.tokenScript.then(.silence)
            let start = ContinuousClock.now
            async let first = test.decode()
            async let second = test.decode()
            let both = try await [first, second]
            #expect(both == [.couldNotCheck(.network), .couldNotCheck(.network)])
            #expect(ContinuousClock.now - start < .seconds(20))
        }
    }

    static let strange: [StandIn.Answer] = [
        .text(200, "<html>"), .text(200, "[]"), .text(200, ""), .text(404, "{}"), .text(418, "{}"), .text(400, "{}"),
        .whole(200, [:], [UInt8](repeating: 0x20, count: 65 * 1024)),
        .text(302, "", ["location": "http://127.0.0.1:1/"]), .text(307, "", ["location": "/elsewhere"]),
    ]

    @Test(arguments: strange) func `an undocumented answer is no verdict and is not retried`(
        _ answer: StandIn.Answer
    ) async throws {
        try await GoogleUnderTest.run { test async throws in
            test.google.decodeScript.then(answer)
            #expect(try await test.decode() == .couldNotCheck(.unexpectedAnswer))
            #expect(test.service.received.count == 2)
        }
    }

    @Test func `a refused connection is retried, then an outcome`() async throws {
        try await withHTTP { http in
            let pauses = Pauses()
            let providers = GoogleProviders(
                http: http, lists: RevocationLists(http: http), settings: .patient, random: NoRandom(),
                pause: pauses.pause)
            let outcome = await providers.decode(
                "dG9rZW4", package: "com.example.app",
                for: IntegrityCaller(
                    app: try AppID("com.example.app"),
                    serviceAccount: GoogleStandIn.account(tokensAt: "http://127.0.0.1:1")))
            #expect(DecodeResult(outcome) == .couldNotCheck(.network))
            #expect(pauses.all.count >= 2)
        }
    }

    @Test func `a cancelled registration does not take the access token from the others`() async throws {
        try await GoogleUnderTest.run { test async throws in
            let token = try test.google.token()
            let (providers, caller) = (test.providers, try test.caller())
            let leaving = Task {
                await providers.decode(token, package: GoogleStandIn.package, for: caller)
            }
            leaving.cancel()
            #expect(try await test.decode() == Self.good)
            _ = await leaving.value
            #expect(test.google.tokensIssued == 1)
        }
    }

    @Test func `the documented answers mean what the documentation says`() async throws {
        let responses = GoogleStandIn.vectors["decode"]?.object?["responses"]?.array ?? []
        #expect(responses.count > 10)
        try await GoogleUnderTest.run { test async throws in
            for response in responses.compactMap(\.object) {
                guard let status = response["status"]?.integer, status != 429, status != 401 else { continue }
                let text = response["body"]?.text() ?? response["body_text"]?.string ?? ""
                for _ in 0..<(status >= 500 ? 3 : 1) { test.google.decodeScript.then(.text(Int(status), text)) }
                let result = try await test.decode()
                let name = response["name"]?.string ?? ""
                switch (status, name) {
                case (200, "empty-object"), (200, "payload-null"):
                    #expect(result == .refused(.answerMalformed), "\(name)")
                case (200, _):
                    guard case .decoded = result else {
                        Issue.record("\(name): \(result)")
                        continue
                    }
                case (400, _): #expect(result == .refused(.rejectedByGoogle), "\(name)")
                case (403, _): #expect(result == .couldNotCheck(.projectNotLinked), "\(name)")
                default: #expect(result == .couldNotCheck(.providerUnavailable), "\(name)")
                }
            }
        }
    }
}

import AuthContract
import AuthService
import Bytes
import RESP
import Testing

@testable import RedisStores

@Suite("Challenges that have ended", .enabled(if: ShiftedClock.isHere))
struct StaleChallengesTests {
    @Test func `the counts of sources whose challenges have ended push out no live challenge`() async throws {
        let (clock, clockOfNode) = (try ShiftedClock(), MovableClock())
        let server = try await RedisServer.start(environment: clock.environment)
        let stores = try await RedisStores.forTest(server.url, clock: clockOfNode) { $0.maximumChallenges = 40 }
        let app = try AppID("com.example.app")
        func put(_ source: String) async throws -> IssuedChallenge {
            let challenge = IssuedChallenge(
                bytes: SystemRandom().bytes(32), appID: app, purpose: .register, expiresAt: clockOfNode.now + 90)
            // Right after a jump of the clock, the stores' periodic check may reject the server.
            try await eventually("a challenge is kept") {
                (try? await stores.challenges.put(challenge, source: source)) != nil
            }
            return challenge
        }
        func move(to seconds: Int) async throws {
            clockOfNode.move(by: 500)
            try clock.move(to: seconds)
            try await eventually("a round confirmed the server") { (try? await stores.check()) != nil }
        }
        for number in 0..<38 { _ = try await put("192.0.2.\(number)") }
        try await move(to: 500)
        // The first challenges have expired. Redis keeps the counts of their sources as long as challenges are put.
        var live = [try await put("198.51.100.1")]
        try await move(to: 1000)
        for _ in 0..<30 { live.append(try await put("198.51.100.1")) }
        var taken = 0
        for challenge in live where try await stores.challenges.take(challenge.bytes) == challenge { taken += 1 }
        #expect(taken == live.count)
        #expect(try await server.command("GET", "synheart-auth:{0}:challenges").integer == 31)
        await stores.close()
    }
}

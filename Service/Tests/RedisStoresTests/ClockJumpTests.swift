import AuthContract
import AuthService
import RESP
import Testing

@testable import RedisStores

@Suite("A clock of Redis that jumps ahead and comes back", .enabled(if: ShiftedClock.isHere))
struct ClockJumpTests {
    /// The length of the jump, in seconds. Redis keeps the claim of a request dated now for a shorter time.
    private static let jump = 900

    /// Waits until Redis has removed every claim: its clock is past their expiry.
    private func forgotClaims(_ server: RedisServer) async throws {
        try await eventually("the claims expire") {
            try await server.command("KEYS", "synheart-auth:{0}:c:*").elements?.isEmpty == true
        }
    }

    @Test func `without a claim during the jump, claims that Redis removed are treated as lost`() async throws {
        let clock = try ShiftedClock()
        let server = try await RedisServer.start(environment: clock.environment)
        let stores = try await RedisStores.forTest(server.url)
        let request = SampleRequest()
        #expect(try await stores.claim(request) == .claimed)
        try clock.move(to: Self.jump)
        try await eventually("a round refuses the server") { (try? await stores.check()) == nil }
        try await forgotClaims(server)
        try clock.move(to: 0)
        #expect(try await stores.claimOnceAvailable(request).isHistoryLost)
        await stores.close()
    }

    @Test func `if the node's clock jumps with Redis's, claims that Redis removed are treated as lost`() async throws {
        let (clock, clockOfNode) = (try ShiftedClock(), MovableClock())
        let server = try await RedisServer.start(environment: clock.environment)
        let stores = try await RedisStores.forTest(server.url, clock: clockOfNode)
        let request = SampleRequest()
        #expect(try await stores.claim(request) == .claimed)
        clockOfNode.move(by: Int64(Self.jump))
        try clock.move(to: Self.jump)
        try await forgotClaims(server)
        // Further rounds of checks compare the node's clock with that of Redis. Both clocks have jumped, so the node finds no difference.
        try await eventually("a round confirmed the server") { (try? await stores.check()) != nil }
        let seen = ContinuousClock.now
        try await eventually("further rounds passed") { seen.duration(to: .now) > .seconds(3) }
        clockOfNode.move(by: -Int64(Self.jump))
        try clock.move(to: 0)
        #expect(try await stores.claimOnceAvailable(request).isHistoryLost)
        await stores.close()
    }

    /// - Parameter step: seconds from one claim to the next. After a longer gap than 720 seconds between two readings of
    ///   the clock, a new range of readings is recorded.
    @Test(arguments: [300, 700, 1000])
    func `both clocks are wrong for long: what was accepted is refused when its date comes`(step: Int) async throws {
        let (clock, clockOfNode) = (try ShiftedClock(), MovableClock())
        let server = try await RedisServer.start(environment: clock.environment)
        let stores = try await RedisStores.forTest(server.url, clock: clockOfNode)
        var ahead = 0
        func move(to seconds: Int) async throws {
            clockOfNode.move(by: Int64(seconds - ahead))
            ahead = seconds
            try clock.move(to: seconds)
            try await eventually("a round confirmed the server") { (try? await stores.check()) != nil }
        }
        var requests: [SampleRequest] = []
        let steps = stride(from: 3600, through: 3600 + 10 * step, by: step)
        for seconds in steps {
            try await move(to: seconds)
            let request = SampleRequest(at: clockOfNode.now)
            let outcome = try await stores.claimOnceAvailable(request, now: clockOfNode.now)
            // The outcome may be `taken`: a round of checks may end the session after the claim was made, and the next attempt
            // finds that claim.
            #expect(!outcome.isHistoryLost && outcome != .expired, "\(seconds): \(outcome)")
            requests.append(request)
        }
        try await move(to: 0)
        #expect(try await stores.claimOnceAvailable(SampleRequest()).isHistoryLost)
        for (request, seconds) in zip(requests, steps) {
            try await move(to: seconds)
            #expect(try await stores.claimOnceAvailable(request, now: clockOfNode.now).isHistoryLost, "\(seconds)")
        }
        await stores.close()
    }

    // A node of an older version does not change `since`, the start of the latest stretch of readings. So `since` is
    // ahead after the clock has fallen back.
    @Test func `a recorded reading ahead of the clock begins a new epoch, which has no reading ahead`() async throws {
        let server = try await RedisServer.start()
        let earlier = try await RedisStores.forTest(server.url)
        await earlier.close()
        let (epoch, ahead) = ("synheart-auth:{0}:epoch", SystemClock().now + 5000)
        try await server.command("HSET", epoch, "since", "\(ahead.seconds)")
        let stores = try await RedisStores.forTest(server.url)
        #expect(try await stores.claimOnceAvailable(SampleRequest()).isHistoryLost)
        #expect(try await stores.claim(SampleRequest(at: ahead), now: ahead).isHistoryLost)
        let since = try await server.command("HGET", epoch, "since").text.flatMap { Int64($0) }
        #expect(try #require(since) <= SystemClock().now.seconds)
        await stores.close()
    }

    @Test func `of many stretches the nearest become one, and those far apart stay`() async throws {
        let (clock, clockOfNode) = (try ShiftedClock(), MovableClock())
        let server = try await RedisServer.start(environment: clock.environment)
        let stores = try await RedisStores.forTest(server.url, clock: clockOfNode)
        let start = clockOfNode.now.seconds
        for step in 1...70 {
            clockOfNode.move(by: 1000)
            try clock.move(to: step * 1000)
            _ = try await stores.claimOnceAvailable(SampleRequest(at: clockOfNode.now), now: clockOfNode.now)
        }
        clockOfNode.move(by: 10_000_000)
        try clock.move(to: 10_070_000)
        _ = try await stores.claimOnceAvailable(SampleRequest(at: clockOfNode.now), now: clockOfNode.now)
        let trail = try await server.command("HGET", "synheart-auth:{0}:epoch", "trail").text ?? ""
        let stretches = trail.split(separator: ",").map { $0.split(separator: "-").compactMap { Int64($0) } }
        #expect(stretches.count == 64 && stretches.allSatisfy { $0.count == 2 && $0[0] <= $0[1] })
        #expect(stretches.first.map { $0[0] - start < 1000 } == true)
        #expect(stretches.last.map { $0[1] - start < 80_000 } == true)
        await stores.close()
    }
}

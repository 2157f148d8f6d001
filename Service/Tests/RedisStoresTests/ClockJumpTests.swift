import AuthService
import RESP
import Testing

@testable import RedisStores

@Suite("A clock of Redis that jumps ahead and comes back", .enabled(if: ShiftedClock.isHere))
struct ClockJumpTests {
    /// Longer than a claim lives in Redis.
    private static let jump = 900

    /// Waits until Redis has removed every claim: its clock is past their expiry.
    private func forgotClaims(_ server: RedisServer) async throws {
        try await eventually("the claims expire") { try await server.command("DBSIZE").integer == 1 }
    }

    @Test func `no claim runs meanwhile: what Redis forgot counts as lost`() async throws {
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

    @Test func `the clock of the node jumps with it: what Redis forgot counts as lost`() async throws {
        let (clock, clockOfNode) = (try ShiftedClock(), MovableClock())
        let server = try await RedisServer.start(environment: clock.environment)
        let stores = try await RedisStores.forTest(server.url, clock: clockOfNode)
        let request = SampleRequest()
        #expect(try await stores.claim(request) == .claimed)
        clockOfNode.move(by: Int64(Self.jump))
        try clock.move(to: Self.jump)
        try await forgotClaims(server)
        // Further rounds, which compare both clocks and find no difference.
        try await eventually("a round confirmed the server") { (try? await stores.check()) != nil }
        let seen = ContinuousClock.now
        try await eventually("further rounds passed") { seen.duration(to: .now) > .seconds(3) }
        clockOfNode.move(by: -Int64(Self.jump))
        try clock.move(to: 0)
        #expect(try await stores.claimOnceAvailable(request).isHistoryLost)
        await stores.close()
    }

    // At each step both clocks go on by less than a claim lives, as they do when they are wrong for hours.
    @Test func `both clocks are wrong for long: what was accepted is refused when its date comes`() async throws {
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
        let steps = stride(from: 3600, through: 7600, by: 400)
        for seconds in steps {
            try await move(to: seconds)
            let request = SampleRequest(at: clockOfNode.now)
            #expect(try await stores.claimOnceAvailable(request, now: clockOfNode.now) == .claimed)
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
}

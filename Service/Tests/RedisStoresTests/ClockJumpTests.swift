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
}

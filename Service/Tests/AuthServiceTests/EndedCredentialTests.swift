import AuthContract
import StoreConformance
import Testing

@testable import AuthService

/// An expired or revoked credential stays in the list for a while, and is then removed.
@Suite struct `Ended credentials` {
    private let clock = TestClock(at: World.start)
    private let stores: MemoryStores
    private let credentials: CredentialRules
    private let kept = CredentialRules.listedAfterEnd

    init() {
        stores = MemoryStores(clock: clock)
        credentials = Self.rules(stores, clock)
    }

    private static func rules(_ stores: MemoryStores, _ clock: TestClock) -> CredentialRules {
        CredentialRules(
            store: stores, protection: Protection(ProtectionSettings(), clock: clock), clock: clock,
            random: SystemRandom())
    }

    private func make(life: Int64) async throws -> String {
        try await credentials.create(
            name: "backend", role: .viewer, scope: .allApps, life: life, actor: "test"
        ).credential.id
    }

    private var listed: Set<String> { get async throws { Set(try await credentials.list().map(\.id)) } }

    private func sweepTwice() async {
        await credentials.sweep()
        await credentials.sweep()
    }

    @Test func `stay listed for 30 days after they expired, to the second`() async throws {
        let expiring = try await make(life: 100)
        clock.advance(1)
        let newest = try await make(life: 10 * kept)
        clock.advance(99 + kept)
        await sweepTwice()
        #expect(try await listed == [expiring, newest])
        clock.advance(1)
        await sweepTwice()
        #expect(try await listed == [newest])
    }

    @Test func `stay listed for 30 days after they were revoked`() async throws {
        let revoked = try await make(life: 10 * kept)
        clock.advance(1)
        let newest = try await make(life: 10 * kept)
        #expect(try await credentials.revoke(revoked, actor: "test"))
        clock.advance(kept)
        await sweepTwice()
        #expect(try await listed == [revoked, newest])
        clock.advance(1)
        await sweepTwice()
        #expect(try await listed == [newest])
    }

    @Test func `are not removed by a clock that is ahead at one sweep`() async throws {
        let expiring = try await make(life: 100)
        clock.advance(1)
        let newest = try await make(life: 100)
        await credentials.sweep()
        clock.advance(10 * kept)
        await credentials.sweep()
        clock.advance(-10 * kept)
        await credentials.sweep()
        #expect(try await listed == [expiring, newest])
        // The first sweep after a restart does not remove the expired credential either.
        clock.advance(10 * kept)
        let restarted = Self.rules(stores, clock)
        await restarted.sweep()
        #expect(try await listed == [expiring, newest])
        await restarted.sweep()
        #expect(try await listed == [newest])
    }

    @Test func `never leave the database without a credential, as though it were fresh`() async throws {
        let only = try await make(life: 100)
        clock.advance(10 * kept)
        await sweepTwice()
        #expect(try await listed == [only])
    }

    @Test func `are removed by the running service`() async throws {
        let world = try await World()
        world.clock.advance(1)
        _ = try await world.service.credentials.create(
            name: "newest", role: .admin, scope: .allApps, life: 1000 * 86_400, actor: "test")
        world.clock.advance(500 * 86_400)
        let running = Task { await world.service.run(noteEvery: .milliseconds(1)) }
        while try await world.service.credentials.list().count > 1 { await Task.yield() }
        running.cancel()
        await running.value
    }

    @Test func `are removed later where the store fails`() async throws {
        _ = try await make(life: 100)
        clock.advance(1)
        let newest = try await make(life: 10 * kept)
        clock.advance(2 * kept)
        await stores.fail(.saveCredential)
        await sweepTwice()
        await stores.recover()
        await credentials.sweep()
        #expect(try await listed == [newest])
    }
}

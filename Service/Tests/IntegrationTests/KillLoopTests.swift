import Foundation
import StrictJSON
import Testing

/// The service is killed at random moments while many clients use it. `KILL_LOOP_KILLS` is the number of kills (default 8).
/// `KILL_LOOP_SEED` repeats the choices of a run.
@Suite struct KillLoop {
    private static let environment = ProcessInfo.processInfo.environment
    static let kills = environment["KILL_LOOP_KILLS"].flatMap { Int($0) } ?? 8
    static let seed = environment["KILL_LOOP_SEED"].flatMap { UInt64($0) } ?? UInt64.random(in: 1...1_000_000)
    static let clients = 6

    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    @Test func `nothing acknowledged is lost and no claim forgotten, however often the service is killed`() async throws
    {
        let fixture = try await ServiceFixture(database: folder.path("db.sqlite"))
        var random = SeededNumbers(seed: Self.seed)
        var clients = (0..<Self.clients).map { LoadClient(fixture, seed: Self.seed &+ UInt64($0)) }
        var port = 0
        for _ in 0..<Self.kills {
            let service = try await fixture.start(port: port)
            port = service.port
            clients = await Self.each(clients) { await $0.check(service) }
            // One stop in four is orderly, and must not lose anything either.
            let isOrderly = Int.random(in: 0..<4, using: &random) == 0
            let trigger = Trigger(after: Int.random(in: 1...300, using: &random)) {
                if isOrderly { #expect(service.stop() == 0) } else { service.kill() }
            }
            clients = await Self.each(clients) { await $0.run(service) { trigger.count() } }
            #expect(!service.isRunning)
        }
        let service = try await fixture.start(port: port)
        clients = await Self.each(clients) { await $0.check(service) }

        let problems = clients.flatMap(\.problems)
        let told = "seed \(Self.seed), \(problems.count) problems: \(problems.prefix(10))"
        if !problems.isEmpty { Issue.record(Comment(rawValue: told)) }
        let audit = await WireConnection.exchange(
            port: service.operationsPort, fixture.administer("GET", "/audit/verify"))
        #expect(audit?.json["intact"]?.bool == true, "\(audit?.text ?? "no answer")")
        func sum(_ count: (LoadClient.Tally) -> Int) -> Int { clients.reduce(0) { $0 + count($1.tally) } }
        print(
            "ended \(Self.kills) times (seed \(Self.seed)): acknowledged \(sum(\.registrations)) registrations,",
            "\(sum(\.rotations)) rotations, \(sum(\.revocations)) revocations, \(sum(\.accepted)) requests;",
            "\(sum(\.refusedReplays)) replays refused")
        #expect(sum(\.registrations) > 0 && sum(\.rotations) > 0 && sum(\.accepted) > 0 && sum(\.refusedReplays) > 0)
        #expect(sum(\.unavailable) <= sum(\.accepted) / 20, "\(sum(\.unavailable)) answers of 503")
        #expect(service.stop() == 0)
    }

    /// Runs an action of every client concurrently.
    private static func each(
        _ clients: [LoadClient], _ act: @escaping @Sendable (inout LoadClient) async -> Void
    ) async -> [LoadClient] {
        await withTaskGroup(of: LoadClient.self) { group in
            for client in clients {
                group.addTask {
                    var client = client
                    await act(&client)
                    return client
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
    }
}

/// Runs an action once, at the n-th call of `count`.
private final class Trigger: @unchecked Sendable {
    // Unchecked: the lock guards `left`.
    private let lock = NSLock()
    private var left: Int
    private let action: @Sendable () -> Void

    init(after count: Int, _ action: @escaping @Sendable () -> Void) {
        left = count
        self.action = action
    }

    func count() {
        let isTime = lock.withLock {
            left -= 1
            return left == 0
        }
        if isTime { action() }
    }
}

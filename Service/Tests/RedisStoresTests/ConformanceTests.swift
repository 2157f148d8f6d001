import AuthService
import StoreConformance
import Testing

@testable import RedisStores

@Suite("Conformance", .enabled(if: RedisInstallation.isHere))
struct ConformanceTests {
    static let checks = StoreConformance.checks(of: .challenges, .replay)

    static func run(on stores: RedisStores, _ checks: [ConformanceCheck] = checks) async throws {
        var all = StoresUnderTest(MemoryStores(), now: SystemClock().now)
        (all.challenges, all.replay) = (stores.challenges, stores.replay)
        for check in checks { try await check.run(on: all) }
    }

    @Test(arguments: checks)
    func `the stores in one Redis server keep every guarantee`(_ check: ConformanceCheck) async throws {
        let server = try await RedisServer.start()
        let stores = try await RedisStores.forTest(server.url)
        try await Self.run(on: stores, [check])
        await stores.close()
    }
}

import AuthService
import ServiceTestHelpers
import Testing

@testable import PostgreSQLStores

extension AgainstPostgreSQL {
    @Suite
    struct VersionTests {
        @Test func `of nodes that start at once, one appends the event of their version`() async throws {
            let url = try await PostgreSQLServer.shared().database()
            let nodes = [try await open(url), try await open(url)]
            let key = try #require(ServiceKey([UInt8](repeating: 7, count: 32)))
            let services = nodes.map { AuthService(stores: $0.all, key: key, clock: FixedClock()) }
            for (version, count) in [("1.0.0", 0), ("1.1.0", 1), ("1.2.0", 2)] {
                try await withThrowingDiscardingTaskGroup { group in
                    for service in services + services {
                        group.addTask { try await service.recordStart(version: version) }
                    }
                }
                for node in nodes {
                    let events = try await node.audit.events(app: nil, device: nil, before: nil, limit: 10)
                    #expect(events.map(\.event.code) == Array(repeating: .serviceVersionChanged, count: count))
                    #expect(try await node.versions.serviceVersion() == version)
                }
            }
            for node in nodes { await node.close() }
        }
    }
}

import AuthService
import Testing

@testable import SQLiteStores

/// Starts of the service, with the same or another version, on one database file.
struct VersionTests {
    @Test func `a start with another version than the last one has an event, also after the file was closed`()
        async throws
    {
        let folder = try TemporaryFolder()
        for (version, count) in [("1.0.0", 0), ("1.0.0", 0), ("1.1.0", 1), ("1.1.0", 1), ("1.0.0", 2)] {
            let stores = try SQLiteStores.open(folder)
            let service = AuthService(
                stores: stores.all, key: try #require(ServiceKey([UInt8](repeating: 7, count: 32))),
                clock: FixedClock())
            try await service.recordStart(version: version)
            let events = try await stores.audit.events(app: nil, device: nil, before: nil, limit: 10)
            #expect(events.map(\.event.code) == Array(repeating: .serviceVersionChanged, count: count))
            #expect(try await stores.versions.serviceVersion() == version)
            await stores.close()
        }
    }
}

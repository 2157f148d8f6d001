import AuthService
import Foundation
import Testing

@testable import SQLiteStores

/// The check whether a service runs does not take the service's lock. Otherwise, a service that starts at that moment could not
/// take it.
@Suite struct `A look at whether a service runs` {
    private let path = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID()).sqlite").path

    @Test func `an inspection sees a running service, and that it ended`() async throws {
        defer {
            for end in ["", "-wal", "-shm", "-claims"] { try? FileManager.default.removeItem(atPath: path + end) }
        }
        let stores = try SQLiteStores(path: path)
        #expect(try DatabaseInspection.of(path).isServed)
        await stores.close()
        #expect(try !DatabaseInspection.of(path).isServed)
    }

    @Test func `the query takes no lock`() async throws {
        defer {
            for end in ["", "-wal", "-shm", "-claims"] { try? FileManager.default.removeItem(atPath: path + end) }
        }
        await (try SQLiteStores(path: path)).close()
        // A shared lock prevents an exclusive one, so a query that took the service's lock would fail here.
        let lock = open(path + "-claims/lock", O_RDONLY)
        defer { close(lock) }
        try #require(flock(lock, LOCK_SH) == 0)
        #expect(try !DatabaseInspection.of(path).isServed)
    }
}

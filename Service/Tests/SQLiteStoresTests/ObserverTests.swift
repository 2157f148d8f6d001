import AuthContract
import AuthService
import Foundation
import GRDB
import Testing

@testable import SQLiteStores

/// An observer sees each call of a store, its duration and its failure.
struct ObserverTests {
    private final class Observer: StoreObserver {
        private let lock = NSLock()
        // Guarded by the lock.
        nonisolated(unsafe) private var calls: [String] = []

        func called(_ operation: StoreOperation, took: Duration, failure: StoreError.Code?) {
            lock.withLock { calls.append("\(operation.rawValue) \(failure?.rawValue ?? "ok") \(took >= .zero)") }
        }

        var all: [String] { lock.withLock { calls } }
    }

    @Test func `the observer sees reads, writes and claims, and nothing else`() async throws {
        let folder = try TemporaryFolder()
        let observer = Observer()
        var options = SQLiteStores.Options()
        options.observer = observer
        let stores = try SQLiteStores.open(folder, options: options)
        let now = FixedClock().now
        _ = try await stores.apps.apps()
        try await stores.audit.append(sampleEvent())
        _ = try await stores.replay.claim(
            [ReplayClaim(high: 1, low: 2)], timestamp: now, expiresAt: now + 660, now: now, futureWindow: 60)
        #expect(observer.all == ["read ok true", "write ok true", "claim ok true"])
        #expect(stores.liveClaims == 1)
        await stores.close()
        await #expect(throws: StoreError.self) { try await stores.apps.apps() }
        await #expect(throws: StoreError.self) { try await stores.audit.append(sampleEvent()) }
        #expect(observer.all.suffix(2) == ["read unavailable true", "write unavailable true"])
    }

    @Test func `a database is inspected without being changed, and its service is seen`() async throws {
        let folder = try TemporaryFolder()
        #expect(throws: StoreOpenError.self) { try DatabaseInspection.of(folder.database) }
        let stores = try SQLiteStores.open(folder)
        #expect(
            try DatabaseInspection.of(folder.database)
                == DatabaseInspection(isOlder: false, damages: [], isServed: true))
        await stores.close()
        let whole = try Data(contentsOf: URL(fileURLWithPath: folder.database))
        #expect(try !DatabaseInspection.of(folder.database).isServed)
        #expect(try Data(contentsOf: URL(fileURLWithPath: folder.database)) == whole)

        let queue = try DatabaseQueue(path: folder.database)
        try await queue.write { database in
            try database.execute(sql: "DELETE FROM grdb_migrations WHERE identifier <> '1'")
        }
        try queue.close()
        #expect(try DatabaseInspection.of(folder.database).isOlder)
    }
}

import StoreConformance
import Testing

import class Bytes.Locked

@testable import AuthService

/// Behaves as if no service has the database open.
struct FreeLock: ServiceLock {
    func withoutService(_ change: () async throws -> Void) async throws -> Bool {
        try await change()
        return true
    }
}

/// Behaves as if a service has the database open.
struct TakenLock: ServiceLock {
    func withoutService(_ change: () async throws -> Void) async throws -> Bool { false }
}

/// A command holds the service's lock while it changes the check values, which identify the database's service keys.
///
/// Otherwise, a service that starts meanwhile would continue with a key that is soon removed.
@Suite struct `The service's lock` {
    /// A lock that records whether it is held.
    private final class WatchedLock: ServiceLock {
        let isHeld = Locked(false)

        func withoutService(_ change: () async throws -> Void) async throws -> Bool {
            isHeld.withLock { $0 = true }
            defer { isHeld.withLock { $0 = false } }
            try await change()
            return true
        }
    }

    private let stores = MemoryStores()
    private let lock = WatchedLock()
    private let wasHeld = Locked<[Bool]>([])
    private let old = [UInt8](repeating: 1, count: 32)
    private let new = [UInt8](repeating: 2, count: 32)

    private func rules(_ keys: [UInt8]...) throws -> ServiceKeyRules {
        ServiceKeyRules(store: stores, key: try #require(ServiceKey(keys)))
    }

    /// Records for each change of the check values whether the lock is held.
    private func watch() async {
        await stores.interrupt(.replaceKeyChecks) { [lock, wasHeld] in Self.watch($0, lock, wasHeld) }
    }

    private static func watch(_ stores: isolated MemoryStores, _ lock: WatchedLock, _ wasHeld: Locked<[Bool]>) {
        let isHeld = lock.isHeld.withLock { $0 }
        wasHeld.withLock { $0.append(isHeld) }
        stores.interrupt(.replaceKeyChecks) { watch($0, lock, wasHeld) }
    }

    private var seen: [Bool] { wasHeld.withLock { $0 } }

    @Test func `is held while a rotation records its new key, and free again while it seals`() async throws {
        try await rules(old).admit(writing: true)
        await watch()
        _ = try await rules(new, old).rotate(actor: "test", lock: lock)
        // The lock is held only for the first change. When the second one removes the old key, no service can start
        // without the new one.
        #expect(seen == [true, false])
        #expect(!lock.isHeld.withLock { $0 })
    }

    @Test func `is held while a command records a new first key`() async throws {
        try await rules(old).admit(writing: true)
        await watch()
        try await rules(new, old).admit(writing: true, lock: lock)
        #expect(seen == [true])
    }

    @Test func `is held while a command adopts a database that another of its keys sealed`() async throws {
        _ = try await SigningKeys(store: stores, key: #require(ServiceKey(old)), clock: SystemClock())
            .rotate(actor: "test")
        await watch()
        try await rules(new, old).admit(writing: false, lock: lock)
        #expect(seen == [true])
    }

    @Test func `is not needed where nothing changes, nor by the service itself`() async throws {
        try await rules(old).admit(writing: true)
        try await rules(old).admit(writing: true, lock: TakenLock())
        try await rules(new, old).admit(writing: false, lock: TakenLock())
        try await rules(new, old).admit(writing: true)
        #expect(try await stores.keyChecks() == #require(ServiceKey([new, old])).checks)
    }
}

internal import AuthContract
internal import Bytes

/// A cache in front of a store. Absence is not cached.
///
/// Code that changes a value calls `forget`. The store announces changes by other processes. If an announcement is lost, a
/// cached value is used for five seconds at most.
final class ReadThroughCache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private struct Entry: Sendable {
        let value: Value
        /// The times between which the value may be used. It also becomes unusable if the clock is set back, because that must
        /// not delay a revocation.
        let life: Range<UnixTime>
        /// `State.generation` at the time of the read.
        let generation: Int
    }

    private struct State: Sendable {
        var entries: BoundedCache<Key, Entry>
        /// The number of calls of `forget` and `forgetAll`, so that a value that was read before such a call is not cached
        /// after it.
        var invalidations = 0
        /// Counts the calls of `forgetAll()`. A value of an earlier generation must be re-read.
        var generation = 0
        var use = CacheUse()
    }

    private static var life: Int64 { 5 }

    private let clock: any ServiceClock
    private let state: Locked<State>

    /// - Parameter capacity: the largest number of cached values.
    init(capacity: Int, clock: any ServiceClock) {
        self.clock = clock
        state = Locked(State(entries: BoundedCache(capacity: capacity)))
    }

    /// Hits and misses of `value(_:)`.
    var use: CacheUse { state.withLock { $0.use } }

    /// The cached value; nil if it must be read from the store.
    func value(_ key: Key) -> Value? {
        let now = clock.now
        return state.withLock { state in
            let generation = state.generation
            let value = state.entries[key].flatMap {
                $0.generation == generation && $0.life.contains(now) ? $0.value : nil
            }
            state.use.count(hit: value != nil)
            return value
        }
    }

    /// The value that was last read, however old; nil if it was never read or is no longer in the cache. Use it only for
    /// rate limits, never to judge a request.
    func lastKnown(_ key: Key) -> Value? { state.withLock { $0.entries[key]?.value } }

    /// Reads the value from the store and caches it.
    func reading(
        _ key: Key, _ read: () async throws(Refusal) -> Value?
    ) async throws(Refusal) -> Value? {
        let (invalidations, now) = (state.withLock { $0.invalidations }, clock.now)
        guard let value = try await read() else {
            state.withLock { $0.entries[key] = nil }
            return nil
        }
        state.withLock { state in
            guard state.invalidations == invalidations else { return }
            state.entries[key] = Entry(value: value, life: now..<(now + Self.life), generation: state.generation)
        }
        return value
    }

    /// Drops a value that changed.
    func forget(_ key: Key) {
        state.withLock { state in
            state.invalidations += 1
            state.entries[key] = nil
        }
    }

    /// Marks all values for a re-read, because any of them may have changed. Until a value is re-read, `lastKnown(_:)`
    /// still returns the old one.
    func forgetAll() {
        state.withLock { state in
            state.invalidations += 1
            state.generation += 1
        }
    }
}

/// Hits and misses of a cache since the service began.
package struct CacheUse: Sendable, Hashable {
    /// The number of lookups that found a value.
    package var hits: UInt64 = 0
    /// The number of lookups that read the store.
    package var misses: UInt64 = 0

    mutating func count(hit: Bool) {
        if hit { hits &+= 1 } else { misses &+= 1 }
    }
}

/// A bounded dictionary that drops the least recently used entries.
///
/// It has two generations. A use moves an entry to the younger one. When that is full, the older one is dropped. So it holds the
/// `capacity / 2` to `capacity` last used entries. Every operation takes amortized constant time, even in a full cache.
struct BoundedCache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private var young: [Key: Value] = [:]
    private var old: [Key: Value] = [:]
    private let generation: Int

    init(capacity: Int) { generation = max(1, capacity / 2) }

    subscript(key: Key) -> Value? {
        mutating get {
            if let value = young[key] { return value }
            // Check `isEmpty` first: a removal hashes the key, even if the dictionary is empty.
            guard !old.isEmpty, let value = old.removeValue(forKey: key) else { return nil }
            insert(value, for: key)
            return value
        }
        set {
            if let newValue {
                insert(newValue, for: key)
            } else {
                young[key] = nil
                old[key] = nil
            }
        }
    }

    /// Changes an entry. A new entry begins as `initial`.
    mutating func update<Result>(
        _ key: Key, from initial: @autoclosure () -> Value, _ change: (inout Value) -> Result
    ) -> Result {
        if let place = young.index(forKey: key) { return change(&young.values[place]) }
        var value = old.removeValue(forKey: key) ?? initial()
        defer { insert(value, for: key) }
        return change(&value)
    }

    private mutating func insert(_ value: Value, for key: Key) {
        if young.count >= generation, young[key] == nil {
            old = young
            young = [:]
            young.reserveCapacity(generation)
        }
        young[key] = value
    }
}

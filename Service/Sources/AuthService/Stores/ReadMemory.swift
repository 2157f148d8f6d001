internal import AuthContract

/// A short memory in front of a store: what was read, until something changed it, and for seconds where the announcement of
/// a change was lost. Absence is not remembered.
final class ReadMemory<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private struct Remembered: Sendable {
        let value: Value
        /// How long it may be used without reading it again. A clock that is set back ends that as well: it must not
        /// lengthen what a revocation waits for.
        let life: Range<UnixTime>
        /// The value of `State.generation` when it was read.
        let generation: Int
    }

    private struct State: Sendable {
        var values: RecentMemory<Key, Remembered>
        /// Counts what made the memory forget, so that what was read before that is not remembered after it.
        var epoch = 0
        /// Counts the calls of `forgetAll()`. A value of an earlier generation must be read again.
        var generation = 0
        var use = CacheUse()
    }

    /// Seconds that a value is used where the announcement of a change was lost.
    private static var life: Int64 { 5 }

    private let clock: any ServiceClock
    private let state: Locked<State>

    /// - Parameter capacity: how many values are remembered at most.
    init(capacity: Int, clock: any ServiceClock) {
        self.clock = clock
        state = Locked(State(values: RecentMemory(capacity: capacity)))
    }

    /// How often a value was remembered.
    var use: CacheUse { state.access { $0.use } }

    /// The value, where it is remembered.
    func value(_ key: Key) -> Value? {
        let now = clock.now
        return state.access { state in
            let generation = state.generation
            let value = state.values[key].flatMap {
                $0.generation == generation && $0.life.contains(now) ? $0.value : nil
            }
            state.use.note(hit: value != nil)
            return value
        }
    }

    /// The value as it was when it was last read, however long ago: nothing to judge by, but it was there.
    func known(_ key: Key) -> Value? { state.access { $0.values[key]?.value } }

    /// The value from the store, remembered from then on.
    func reading(
        _ key: Key, _ read: () async throws(Refusal) -> Value?
    ) async throws(Refusal) -> Value? {
        let (epoch, now) = (state.access { $0.epoch }, clock.now)
        guard let value = try await read() else {
            state.access { $0.values[key] = nil }
            return nil
        }
        state.access { state in
            guard state.epoch == epoch else { return }
            state.values[key] = Remembered(
                value: value, life: now..<(now + Self.life), generation: state.generation)
        }
        return value
    }

    /// Forgets a value, because it changed.
    func forget(_ key: Key) {
        state.access { state in
            state.epoch += 1
            state.values[key] = nil
        }
    }

    /// Makes every value be read again, because any of them may have changed. `known(_:)` still returns the old values, until
    /// the store says that they are absent.
    func forgetAll() {
        state.access { state in
            state.epoch += 1
            state.generation += 1
        }
    }
}

/// A bounded memory of what was used lately: two generations, of which the older is dropped when the younger is full.
///
/// Between `capacity / 2` and `capacity` of the last used entries are there; every operation is constant time, so nobody can
/// make it slow by filling it.
struct RecentMemory<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private var young: [Key: Value] = [:]
    private var old: [Key: Value] = [:]
    private let generation: Int

    init(capacity: Int) { generation = max(1, capacity / 2) }

    subscript(key: Key) -> Value? {
        mutating get {
            if let value = young[key] { return value }
            guard let value = old.removeValue(forKey: key) else { return nil }
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

    /// Changes an entry, a new one from `initial`: where it lies, if it was used lately.
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

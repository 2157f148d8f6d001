/// A bounded dictionary that drops the least recently used entries.
///
/// It has two generations. A use moves an entry to the younger one; when that is full, the older one is dropped. So between
/// `capacity / 2` and `capacity` of the last used entries are there. Every operation takes constant time, and nobody slows
/// it down by filling it.
struct BoundedCache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
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

    /// Changes an entry. A new entry begins as `initial`.
    mutating func update<Result>(
        _ key: Key, from initial: @autoclosure () -> Value, _ change: (inout Value) -> Result
    ) -> Result {
        var value = self[key] ?? initial()
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

/// Finds the source with the most challenges, and its oldest challenge.
struct ChallengeEvictionIndex {
    /// The challenge numbers of one source, ascending. The number of a taken challenge leaves `live` at once, and `order` later.
    private struct Queue {
        var live: Set<UInt64> = []
        var order: [UInt64] = []
        var first = 0

        mutating func oldest() -> UInt64? {
            while first < order.count, !live.contains(order[first]) { first += 1 }
            return first < order.count ? order[first] : nil
        }

        /// Removes taken numbers, so that the queue is at most a small multiple of the live numbers.
        mutating func compact() {
            guard order.count > 2 * live.count + 16 else { return }
            order = order[first...].filter { live.contains($0) }
            first = 0
        }
    }

    private var queues: [String: Queue] = [:]
    /// The sources, grouped by the number of their challenges.
    private var byCount: [Int: Set<String>] = [:]
    private var busiest = 0

    mutating func add(_ number: UInt64, of source: String) {
        change(source) { queue in
            queue.live.insert(number)
            queue.order.append(number)
        }
    }

    mutating func remove(_ number: UInt64, of source: String) {
        change(source) { queue in
            queue.live.remove(number)
            queue.compact()
        }
    }

    mutating func oldestOfBusiest() -> UInt64? {
        guard let source = byCount[busiest]?.first else { return nil }
        return queues[source]?.oldest()
    }

    /// Changes one source's queue by at most one number, and updates the counts.
    private mutating func change(_ source: String, _ body: (inout Queue) -> Void) {
        let before = queues[source]?.live.count ?? 0
        body(&queues[source, default: Queue()])
        let after = queues[source]?.live.count ?? 0
        if after == 0 { queues[source] = nil }
        guard before != after else { return }
        if before > 0 {
            byCount[before]?.remove(source)
            if byCount[before]?.isEmpty == true { byCount[before] = nil }
        }
        if after > 0 { byCount[after, default: []].insert(source) }
        busiest = after > busiest ? after : (byCount[busiest] == nil ? max(busiest - 1, 0) : busiest)
    }
}

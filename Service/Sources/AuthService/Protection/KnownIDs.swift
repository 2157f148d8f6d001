internal import AuthContract

/// A Bloom filter of device ids: it contains every added id, and wrongly a few others.
///
/// A layer has 12 bits for each id, and each id sets 8 bits of it. So a full layer wrongly contains one id in 300. The hash
/// is seeded at random in each process, so a client cannot compute ids that the set wrongly contains. The set grows by layers,
/// each twice as large as the one before.
struct KnownIDs: Sendable {
    private struct Layer: Sendable {
        private var words: [UInt64]
        private(set) var room: Int
        let capacity: Int

        init(capacity: Int) {
            (self.capacity, room) = (capacity, capacity)
            words = [UInt64](repeating: 0, count: capacity * KnownIDs.bitsOfOneID / 64)
        }

        func contains(_ hash: UInt64) -> Bool {
            KnownIDs.probes.allSatisfy { probe in
                let bit = place(probe, of: hash)
                return words[Int(bit / 64)] & 1 << (bit % 64) != 0
            }
        }

        mutating func insert(_ hash: UInt64) {
            for probe in KnownIDs.probes {
                let bit = place(probe, of: hash)
                words[Int(bit / 64)] |= 1 << (bit % 64)
            }
            room -= 1
        }

        /// The bit of a probe, by double hashing. The start is the hash. The step is the hash with its halves swapped, made odd. The
        /// high bits select the bit, so start and step depend on different halves of the hash.
        private func place(_ probe: UInt64, of hash: UInt64) -> UInt64 {
            let step = hash << 32 | hash >> 32 | 1
            return (hash &+ probe &* step).multipliedFullWidth(by: UInt64(words.count) * 64).high
        }
    }

    private static let bitsOfOneID = 12
    private static let probes: Range<UInt64> = 0..<8
    /// The number of ids of the first layer, which takes 96 KiB.
    static let smallest = 1 << 16

    private let maximum: Int
    private var layers: [Layer] = []
    /// Whether more ids were added than layers within `maximum` can hold. Then every id is treated as contained.
    private var isOverfull = false

    /// An empty set.
    ///
    /// - Parameter maximum: the largest total capacity of the layers, in ids. The default takes at most 192 MiB.
    init(maximum: Int = 1 << 27) { self.maximum = maximum }

    /// Whether the id was added. A wrong answer is always `true`.
    func contains(_ id: DeviceID) -> Bool { isOverfull || contains(Self.hash(id)) }

    /// Adds an id.
    mutating func insert(_ id: DeviceID) {
        let hash = Self.hash(id)
        guard !isOverfull, !contains(hash) else { return }
        if layers.last?.room ?? 0 == 0 {
            let capacity = (layers.last?.capacity).map { $0 * 2 } ?? Self.smallest
            guard capacity <= maximum - layers.reduce(0, { $0 + $1.capacity }) else {
                (isOverfull, layers) = (true, [])
                return
            }
            layers.append(Layer(capacity: capacity))
        }
        layers[layers.count - 1].insert(hash)
    }

    private func contains(_ hash: UInt64) -> Bool { layers.contains { $0.contains(hash) } }

    private static func hash(_ id: DeviceID) -> UInt64 {
        var hasher = Hasher()
        hasher.combine(id)
        return UInt64(bitPattern: Int64(hasher.finalize()))
    }
}

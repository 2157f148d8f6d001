internal import AuthService

/// All live claims: open addressing in many small tables (shards) with 20 bytes a slot. A claim is in exactly one shard.
///
/// When a shard is full, it is rebuilt without its expired claims. Each rebuild is short: of 24 million live claims, it moves
/// 24,000.
struct ClaimTable {
    /// Slots in use, including those of expired claims.
    private(set) var used = 0

    private static let shardBits: UInt64 = 10
    static let shardCount = 1 << shardBits

    private var shards = [Shard](repeating: Shard(capacityFor: 0), count: shardCount)
    // Secret, so that an attacker cannot choose claims that collide.
    private let seeds = (UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max))

    /// Whether the claim is taken at `now`.
    func contains(_ claim: ReplayClaim, now: Int64) -> Bool {
        let hash = hash(claim)
        let shard = shardIndex(hash)
        guard let index = shards[shard].index(of: Slot(claim, 0), hash) else { return false }
        return Int64(shards[shard].slots[index].expiry) > now
    }

    /// Takes the claim until `expiry`, or until its current expiry if that is later.
    ///
    /// - Returns: the latest expiry of the claims that were dropped to make room, or `Int64.min` if none were dropped.
    mutating func insert(_ claim: ReplayClaim, expiry: UInt32, now: Int64) -> Int64 {
        let hash = hash(claim)
        let shard = shardIndex(hash)
        let slot = Slot(claim, expiry)
        if let index = shards[shard].index(of: slot, hash) {
            shards[shard].slots[index].expiry = max(shards[shard].slots[index].expiry, expiry)
            return .min
        }
        let droppedTo = shards[shard].isFull ? rebuild(shard, now: now, room: 1) : .min
        shards[shard].add(slot, hash)
        used += 1
        return droppedTo
    }

    /// Allocates space for this many claims, before they are read from the journal.
    mutating func reserve(_ count: Int) {
        for shard in shards.indices { _ = rebuild(shard, now: .min, room: count / Self.shardCount) }
    }

    /// Drops the expired claims of one shard and releases their memory.
    ///
    /// - Parameter latest: claims that expire later than this are dropped too.
    /// - Returns: the latest expiry of the expired claims that were dropped, or `Int64.min` if none were dropped.
    mutating func sweep(shard: Int, now: Int64, latest: Int64 = .max) -> Int64 {
        rebuild(shard, now: now, latest: latest, room: 0)
    }

    private mutating func rebuild(_ shard: Int, now: Int64, latest: Int64 = .max, room: Int) -> Int64 {
        var droppedTo = Int64.min
        let old = shards[shard].slots
        let live = old.reduce(into: 0) { count, slot in
            if !slot.isEmpty, Int64(slot.expiry) > now, Int64(slot.expiry) <= latest { count += 1 }
        }
        var new = Shard(capacityFor: live + room)
        for slot in old where !slot.isEmpty {
            if Int64(slot.expiry) > now {
                if Int64(slot.expiry) <= latest { new.add(slot, hash(slot.claim)) }
            } else {
                droppedTo = max(droppedTo, Int64(slot.expiry))
            }
        }
        used += new.count - shards[shard].count
        shards[shard] = new
        return droppedTo
    }

    private func hash(_ claim: ReplayClaim) -> UInt64 {
        let product = (claim.high ^ seeds.0).multipliedFullWidth(by: claim.low ^ seeds.1)
        return product.high ^ product.low
    }

    /// The slot at which the search in a shard begins, from the lower half of the hash. The top bits of the hash are the
    /// shard's number. The parentheses matter: in Swift, a shift binds more tightly than a product.
    static func place(of hash: UInt64, among slots: Int) -> Int { Int(((hash & 0xFFFF_FFFF) * UInt64(slots)) >> 32) }

    private func shardIndex(_ hash: UInt64) -> Int { Int(hash >> (64 - Self.shardBits)) }
}

/// A claim and its expiry in five words, so that a slot has no padding. An expiry of 0 marks an empty slot.
private struct Slot {
    private let words: (UInt32, UInt32, UInt32, UInt32)
    var expiry: UInt32

    static let empty = Slot(ReplayClaim(high: 0, low: 0), 0)

    init(_ claim: ReplayClaim, _ expiry: UInt32) {
        words = (
            UInt32(truncatingIfNeeded: claim.high >> 32), UInt32(truncatingIfNeeded: claim.high),
            UInt32(truncatingIfNeeded: claim.low >> 32), UInt32(truncatingIfNeeded: claim.low)
        )
        self.expiry = expiry
    }

    var isEmpty: Bool { expiry == 0 }

    var claim: ReplayClaim {
        ReplayClaim(high: UInt64(words.0) << 32 | UInt64(words.1), low: UInt64(words.2) << 32 | UInt64(words.3))
    }

    func isSameClaim(as other: Slot) -> Bool { words == other.words }
}

/// Open addressing with linear probing; at most about two thirds full after a rebuild, and never more than five sixths.
private struct Shard {
    var slots: [Slot]
    /// The number of slots. It is stored here, because reading it from the array costs one more cache miss.
    private let capacity: Int
    private(set) var count = 0

    init(capacityFor count: Int) {
        capacity = count == 0 ? 0 : max(96, count + count / 2)
        slots = [Slot](repeating: .empty, count: capacity)
    }

    var isFull: Bool { (count + 1) * 6 > capacity * 5 }

    func index(of slot: Slot, _ hash: UInt64) -> Int? {
        guard capacity > 0 else { return nil }
        var index = start(hash)
        while !slots[index].isEmpty {
            if slots[index].isSameClaim(as: slot) { return index }
            index = index + 1 == capacity ? 0 : index + 1
        }
        return nil
    }

    /// Adds a claim that is not in the shard. There must be a free slot.
    mutating func add(_ slot: Slot, _ hash: UInt64) {
        var index = start(hash)
        while !slots[index].isEmpty { index = index + 1 == capacity ? 0 : index + 1 }
        slots[index] = slot
        count += 1
    }

    private func start(_ hash: UInt64) -> Int { ClaimTable.place(of: hash, among: capacity) }
}

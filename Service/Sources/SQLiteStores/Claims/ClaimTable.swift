internal import AuthService

/// All live claims: open addressing in many small tables, 20 bytes a slot, one place to look.
///
/// Each shard is rebuilt when it fills, without what has expired: there is no other work for expiry, and no long pause.
struct ClaimTable {
    /// What has been dropped with an expiry up to here can no longer be recognised.
    private(set) var purgedTo: Int64
    /// Slots in use, expired ones included.
    private(set) var used = 0

    private static let shardBits: UInt64 = 12
    static let shardCount = 1 << shardBits

    private var shards = [Shard](repeating: Shard(), count: shardCount)
    // Secret, so that nobody can choose claims that fall into one place.
    private let seeds = (UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max))

    init(purgedTo: Int64) { self.purgedTo = purgedTo }

    /// Whether the claim is taken at `now`.
    func contains(_ claim: ReplayClaim, now: Int64) -> Bool {
        let hash = hash(claim)
        let shard = shards[shardIndex(hash)]
        guard let index = shard.index(of: Slot(claim, 0), hash) else { return false }
        return Int64(shard.slots[index].expiry) > now
    }

    /// Takes the claim until `expiry`, or until the time it is already taken to where that is later.
    mutating func insert(_ claim: ReplayClaim, expiry: UInt32, now: Int64) {
        let hash = hash(claim)
        let shard = shardIndex(hash)
        let slot = Slot(claim, expiry)
        if let index = shards[shard].index(of: slot, hash) {
            shards[shard].slots[index].expiry = max(shards[shard].slots[index].expiry, expiry)
            return
        }
        if shards[shard].isFull { rebuild(shard, now: now, room: 1) }
        shards[shard].add(slot, hash)
        used += 1
    }

    /// Notes what was dropped elsewhere.
    mutating func raisePurged(to expiry: Int64) { purgedTo = max(purgedTo, expiry) }

    /// Takes back what was purged by wrong readings of the clock; something else must refuse their requests.
    mutating func returnPurged(to expiry: Int64) { purgedTo = min(purgedTo, expiry) }

    /// Takes a claim that was read from the journal, or counts it as purged where it has expired.
    mutating func restore(_ claim: ReplayClaim, expiry: UInt32, now: Int64) {
        if Int64(expiry) > now {
            insert(claim, expiry: expiry, now: now)
        } else {
            purgedTo = max(purgedTo, Int64(expiry))
        }
    }

    /// Makes room for so many claims at once, before they are read from the journal.
    mutating func reserve(_ count: Int) {
        for shard in shards.indices { rebuild(shard, now: .min, room: count / Self.shardCount) }
    }

    /// Drops what has expired from one shard, and gives back its memory.
    ///
    /// - Parameter latest: what expires later is dropped too, and does not count as purged.
    mutating func sweep(shard: Int, now: Int64, latest: Int64 = .max) {
        rebuild(shard, now: now, latest: latest, room: 0)
    }

    private mutating func rebuild(_ shard: Int, now: Int64, latest: Int64 = .max, room: Int) {
        let old = shards[shard].slots
        shards[shard].slots = []
        let live = old.reduce(into: 0) { count, slot in
            if !slot.isEmpty, Int64(slot.expiry) > now, Int64(slot.expiry) <= latest { count += 1 }
        }
        var new = Shard(capacityFor: live + room)
        for slot in old where !slot.isEmpty {
            if Int64(slot.expiry) > now {
                if Int64(slot.expiry) <= latest { new.add(slot, hash(slot.claim)) }
            } else {
                purgedTo = max(purgedTo, Int64(slot.expiry))
            }
        }
        used += new.count - shards[shard].count
        shards[shard] = new
    }

    private func hash(_ claim: ReplayClaim) -> UInt64 {
        let product = (claim.high ^ seeds.0).multipliedFullWidth(by: claim.low ^ seeds.1)
        return product.high ^ product.low
    }

    /// Where in a shard of so many slots the search begins: by the lower half of the hash, of which the shard's number is the
    /// top. The parentheses matter: in Swift a shift binds closer than a product.
    static func place(of hash: UInt64, among slots: Int) -> Int { Int(((hash & 0xFFFF_FFFF) * UInt64(slots)) >> 32) }

    private func shardIndex(_ hash: UInt64) -> Int { Int(hash >> (64 - Self.shardBits)) }
}

/// A claim and its expiry in five words, so that a slot has no padding. An expiry of 0 is no claim.
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

/// Open addressing with linear probing; at most five sixths full.
private struct Shard {
    var slots: [Slot] = []
    private(set) var count = 0

    init() {}

    init(capacityFor count: Int) {
        slots = count == 0 ? [] : [Slot](repeating: .empty, count: max(8, count + count / 2))
    }

    var isFull: Bool { (count + 1) * 6 > slots.count * 5 }

    func index(of slot: Slot, _ hash: UInt64) -> Int? {
        guard !slots.isEmpty else { return nil }
        var index = start(hash)
        while !slots[index].isEmpty {
            if slots[index].isSameClaim(as: slot) { return index }
            index = index + 1 == slots.count ? 0 : index + 1
        }
        return nil
    }

    /// Adds a claim that is not there; there must be room.
    mutating func add(_ slot: Slot, _ hash: UInt64) {
        var index = start(hash)
        while !slots[index].isEmpty { index = index + 1 == slots.count ? 0 : index + 1 }
        slots[index] = slot
        count += 1
    }

    private func start(_ hash: UInt64) -> Int { ClaimTable.place(of: hash, among: slots.count) }
}

internal import AuthContract
internal import AuthService

/// A bounded set of challenges. When it is full, `put` drops the oldest expired challenge, which is kept only to explain its refusal. If none
/// has expired, `put` evicts the oldest challenge of the source that has the most challenges. Each call takes constant time on average,
/// even in a flood.
struct BoundedChallengeSet {
    private struct Entry {
        let challenge: IssuedChallenge
        let source: String
        let number: UInt64
    }

    private let maximum: Int
    private var entries: [[UInt8]: Entry] = [:]
    /// The challenge of each number. New challenges get larger numbers, so counting up from the number of the oldest challenge
    /// finds the next oldest.
    private var byNumber: [UInt64: [UInt8]] = [:]
    private var oldest: UInt64 = 0
    private var next: UInt64 = 0
    private var evictionIndex = ChallengeEvictionIndex()

    init(maximum: Int) { self.maximum = max(1, maximum) }

    mutating func put(_ challenge: IssuedChallenge, source: String, now: UnixTime) {
        forget { !Self.isKept($0, now) }
        remove(challenge.bytes)
        if entries.count >= maximum { forget(atMost: 1) { $0.expiresAt < now } }
        if entries.count >= maximum, let number = evictionIndex.oldestOfBusiest(), let victim = byNumber[number] {
            remove(victim)
        }
        entries[challenge.bytes] = Entry(challenge: challenge, source: source, number: next)
        byNumber[next] = challenge.bytes
        evictionIndex.add(next, of: source)
        next += 1
    }

    mutating func take(_ bytes: [UInt8], now: UnixTime) -> IssuedChallenge? {
        guard let entry = remove(bytes), Self.isKept(entry.challenge, now) else { return nil }
        return entry.challenge
    }

    mutating func drain() -> [(challenge: IssuedChallenge, source: String)] {
        defer { self = BoundedChallengeSet(maximum: maximum) }
        return entries.values.sorted { $0.number < $1.number }.map { ($0.challenge, $0.source) }
    }

    @discardableResult
    private mutating func remove(_ bytes: [UInt8]) -> Entry? {
        guard let entry = entries.removeValue(forKey: bytes) else { return nil }
        byNumber[entry.number] = nil
        evictionIndex.remove(entry.number, of: entry.source)
        return entry
    }

    /// Removes the oldest challenges while they meet the condition, and at most this many.
    private mutating func forget(atMost count: Int = .max, while condition: (IssuedChallenge) -> Bool) {
        var removed = 0
        while oldest < next, removed < count {
            if let bytes = byNumber[oldest], let entry = entries[bytes] {
                guard condition(entry.challenge) else { return }
                remove(bytes)
                removed += 1
            }
            oldest += 1
        }
    }

    private static func isKept(_ challenge: IssuedChallenge, _ now: UnixTime) -> Bool {
        now <= challenge.expiresAt + IssuedChallenge.keptAfterExpiry
    }
}

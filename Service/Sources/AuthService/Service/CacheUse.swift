/// How often a memory in front of a store had what was asked for, since the service began.
public struct CacheUse: Sendable, Hashable {
    public var hits: UInt64 = 0
    public var misses: UInt64 = 0

    mutating func note(hit: Bool) {
        if hit { hits &+= 1 } else { misses &+= 1 }
    }
}

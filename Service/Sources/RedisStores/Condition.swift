public import AuthContract
public import AuthService

extension RedisStores {
    /// Which partitions can be used, according to the last check of the servers (about once a second). Reading it sends
    /// nothing to Redis.
    public struct Condition: Sendable {
        /// The reason why a partition cannot be used; nil: every partition can.
        public var trouble: StoreError?
        /// The share of the partitions that cannot be used, from 0 to 1.
        public var unusable: Double = 0
        /// After a loss of claims: the seconds until requests that are dated now are no longer refused in any usable partition; nil: they
        /// are not refused.
        public var historyLost: Int64?
        /// Two bytes for each server. A device id or a challenge that begins with them belongs to a usable partition of this server,
        /// so a readiness check can reach each server.
        public var parts: [[UInt8]] = []
    }

    /// The condition of all partitions.
    ///
    /// - Parameters:
    ///   - now: the service's clock.
    ///   - futureWindow: how far ahead a request may be dated, in seconds.
    public func condition(at now: UnixTime, futureWindow: Int64) -> Condition {
        var condition = Condition()
        var (unusable, servers) = (0, Set<ObjectIdentifier>())
        for partition in 0..<router.partitions.count {
            do throws(StoreError) {
                let (session, epoch) = try router.route(partition)
                if servers.insert(ObjectIdentifier(session)).inserted {
                    condition.parts.append([
                        UInt8(truncatingIfNeeded: partition >> 8), UInt8(truncatingIfNeeded: partition),
                    ])
                }
                if let wait = epoch.history.retryAfter(timestamp: now, futureWindow: futureWindow) {
                    condition.historyLost = max(condition.historyLost ?? 0, wait)
                }
            } catch {
                condition.trouble = error
                unusable += 1
            }
        }
        condition.unusable = Double(unusable) / Double(router.partitions.count)
        return condition
    }
}

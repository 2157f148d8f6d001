public import AuthContract
public import AuthService

extension MemoryStores: ReplayStore {
    /// See `ReplayStore`.
    public func claim(
        _ claims: [ReplayClaim], of device: DeviceID, timestamp: UnixTime, expiresAt: UnixTime, now: UnixTime,
        futureWindow: Int64
    ) throws(StoreError) -> ClaimOutcome {
        try check(.claim)
        if let lost = historyLostAt, timestamp <= lost + futureWindow {
            return .historyLost(retryAfter: max(1, lost + futureWindow + 1 - timestamp))
        }
        purge(to: now)
        guard expiresAt > max(purgedTo, now) else { return .expired }
        for claim in claims where self.claims[claim] != nil { return .taken(claim) }
        for claim in claims { self.claims[claim] = expiresAt }
        return .claimed
    }

    private func purge(to now: UnixTime) {
        for (claim, expiry) in claims where expiry <= now {
            claims[claim] = nil
            purgedTo = max(purgedTo, expiry)
        }
    }
}

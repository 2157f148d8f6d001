public import AuthContract
public import AuthService

extension MemoryStores: ReplayStore {
    /// See `ReplayStore`.
    public func claim(
        _ claims: [ReplayClaim], of device: DeviceID, timestamp: UnixTime, expiresAt: UnixTime, now: UnixTime,
        futureWindow: Int64, tag: ClaimTag?
    ) throws(StoreError) -> ClaimOutcome {
        try check(.claim)
        purge(to: now)
        if let tag, self.claims[tag.claim] != nil { return .claimed }
        if let refusal = history.refusal(
            timestamp: timestamp, expiresAt: expiresAt, now: now, futureWindow: futureWindow)
        {
            return refusal
        }
        for claim in claims where self.claims[claim] != nil { return .taken(claim) }
        for claim in claims { self.claims[claim] = expiresAt }
        if let tag { self.claims[tag.claim] = now + ClaimTag.life }
        return .claimed
    }

    /// See `ReplayStore`.
    public func holds(_ tag: ClaimTag, of device: DeviceID, now: UnixTime) throws(StoreError) -> Bool {
        try check(.claim)
        return claims[tag.claim].map { $0 > now } ?? false
    }

    private func purge(to now: UnixTime) {
        for (claim, expiry) in claims where expiry <= now {
            claims[claim] = nil
            history.purged(to: expiry)
        }
    }
}

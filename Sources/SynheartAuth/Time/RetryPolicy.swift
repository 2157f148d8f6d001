internal import AuthContract

/// Exponential back-off: `min(base * 2^attempt + random(0, jitter), maximum)` (RFC-AUTH-MOBILE-0001 section 12).
///
/// The policies are defined next to ``RetryTable``.
struct RetryPolicy: Sendable {
    let base: Duration
    let jitter: Duration
    let maximum: Duration
    let attempts: Int

    /// The delay after an attempt; nil after the last one.
    ///
    /// - Parameters:
    ///   - attempt: The number of the attempt, from 0.
    ///   - random: The source of the jitter; nil for none.
    ///   - retryAfter: The service's `Retry-After`. It replaces the computed delay, also if it is shorter.
    func delay(after attempt: Int, random: (any RandomSource)?, retryAfter: Duration? = nil) -> Duration? {
        guard attempt + 1 < attempts else { return nil }
        if let retryAfter { return min(max(retryAfter, .zero), RetryTable.longestRetryAfter) }
        var delay = base
        for _ in 0..<attempt where delay < maximum { delay *= 2 }
        let fraction = random.map { Double($0.bytes(2).reduce(0) { $0 << 8 | Int($1) }) / 65_536 } ?? 0
        return min(delay + jitter * fraction, maximum)
    }
}

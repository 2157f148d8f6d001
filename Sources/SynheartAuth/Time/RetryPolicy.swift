internal import AuthContract

/// `min(base * 2^attempt + random(0, jitter), maximum)`, for so many attempts (RFC-AUTH-MOBILE-0001 section 12).
struct RetryPolicy: Sendable {
    let base: Duration
    let jitter: Duration
    let maximum: Duration
    let attempts: Int

    /// Challenge and registration.
    static let registration = RetryPolicy(
        base: .seconds(1), jitter: .milliseconds(500), maximum: .seconds(30), attempts: 5)
    /// A rotation's cycle.
    static let rotation = RetryPolicy(base: .seconds(60), jitter: .zero, maximum: .seconds(3600), attempts: 3)
    /// A record that cannot be read for the moment.
    static let storage = RetryPolicy(base: .milliseconds(100), jitter: .zero, maximum: .seconds(2), attempts: 5)

    /// How long to wait after the attempt of this number (from 0); nil when it was the last.
    func delay(after attempt: Int, random: (any RandomSource)?, retryAfter: Duration? = nil) -> Duration? {
        guard attempt + 1 < attempts else { return nil }
        // The service's word wins; it promises at most five minutes.
        if let retryAfter { return min(max(retryAfter, .zero), .seconds(300)) }
        var delay = base
        for _ in 0..<attempt where delay < maximum { delay *= 2 }
        let fraction = random.map { Double($0.bytes(2).reduce(0) { $0 << 8 | Int($1) }) / 65_536 } ?? 0
        return min(delay + jitter * fraction, maximum)
    }
}

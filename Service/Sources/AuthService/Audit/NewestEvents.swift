package import AuthContract

/// The result of comparing the newest events of the audit log with this node's clock.
package enum NewestEvents: Sendable, Hashable {
    /// No event is dated more than `ClaimHistory.clockTolerance` after the clock.
    case agree
    /// The newest event, or at least half of the events, are dated more than the tolerance after the clock: the clock is this many
    /// seconds behind. With this clock, the service would refuse honest clients and accept old requests.
    case clockBehind(Int64)
    /// Fewer than half of the events, and not the newest one, are dated more than the tolerance after the clock, and at most this
    /// many seconds: a clock was ahead when they were written.
    case someAhead(Int64)

    /// The number of events to compare. One is not enough: the latest ones may already have the dates of a wrong clock.
    private static let count = 100

    /// Compares the newest events of a log with a clock's time.
    package init(of audit: any AuditLog, at now: UnixTime) async throws(StoreError) {
        let page = try await audit.page(app: nil, device: nil, codes: nil, after: 0, before: nil, limit: Self.count)
        let leads = page.events.map { $0.event.at - now }
        let late = leads.filter { $0 > ClaimHistory.clockTolerance }
        guard let longest = late.max() else {
            self = .agree
            return
        }
        // If this node's clock is slow, its own new events agree with it. So the newest event alone is not enough.
        if let newest = leads.first, newest > ClaimHistory.clockTolerance {
            self = .clockBehind(newest)
        } else {
            self = late.count * 2 >= leads.count ? .clockBehind(longest) : .someAhead(longest)
        }
    }
}

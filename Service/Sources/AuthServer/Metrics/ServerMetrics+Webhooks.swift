internal import AuthService

/// The deliveries of this node. The series by webhook are bounded by the number of webhooks.
extension ServerMetrics: WebhookObserver {
    private static let deliveries = "synheart_webhook_deliveries_total"
    private static let givenUp = "synheart_webhook_events_given_up_total"
    private static let backlog = "synheart_webhook_backlog"

    func describeWebhooks() {
        registry.describe(Self.deliveries, .counter, "Attempts to deliver an event to a webhook, by result.")
        registry.describe(
            Self.givenUp, .counter, "Events that were given up because their webhook's receiver failed for 24 h.")
        registry.describe(
            Self.backlog, .gauge,
            "Events of the audit log after the place of a webhook, wanted or not; 0 where another node delivers.")
        for result in ["delivered", "failed"] { registry.count(Self.deliveries, [("result", result)], by: 0) }
        registry.count(Self.givenUp, by: 0)
    }

    package func attempted(delivered: Bool) {
        registry.count(Self.deliveries, [("result", delivered ? "delivered" : "failed")])
    }

    package func gaveUp() { registry.count(Self.givenUp) }

    package func backlog(_ events: [String: Int64]) {
        registry.replace(
            Self.backlog, with: events.sorted { $0.key < $1.key }.map { ([("webhook", $0.key)], Double($0.value)) })
    }
}

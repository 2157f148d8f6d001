internal import AuthContract

/// The next events of one webhook: the position, and the delivered events after it.
///
/// Events of one device are delivered in their order. Events of different devices are independent: an event that the
/// receiver refuses delays only the events of its device. But at most `size` events after the position are read. Later
/// events wait until the refused event is delivered or given up.
struct WebhookWindow: Sendable {
    /// The number of an event. Neither this event nor any earlier one needs a delivery any more.
    private(set) var position: Int64
    /// Events after the position that were delivered already.
    private var done: Set<Int64> = []

    /// How many events after the position are read, at most.
    static let size = 500
    /// Seconds after which an event that could not be delivered is given up.
    static let retryPeriod: Int64 = 86_400

    init(position: Int64) { self.position = position }

    /// The events to deliver, in the order of the log: one list for each device, and one for the events without a device.
    func lanes(_ events: [RecordedAuditEvent], of webhook: Webhook) -> [[RecordedAuditEvent]] {
        var (lanes, places) = ([[RecordedAuditEvent]](), [DeviceID?: Int]())
        for event in events where !done.contains(event.sequence) && webhook.wants(event.event) {
            if let place = places[event.event.deviceID] {
                lanes[place].append(event)
            } else {
                places[event.event.deviceID] = lanes.count
                lanes.append([event])
            }
        }
        return lanes
    }

    /// Records events that were delivered or given up, and moves the position to the last event before the first one that still
    /// needs a delivery.
    mutating func settle(_ delivered: Set<Int64>, in events: [RecordedAuditEvent], of webhook: Webhook) {
        done.formUnion(delivered)
        for event in events {
            guard done.contains(event.sequence) || !webhook.wants(event.event) else { break }
            done.remove(event.sequence)
            position = max(position, event.sequence)
        }
    }

    /// Moves the position to a later event.
    mutating func skip(to position: Int64) { self.position = max(self.position, position) }

    /// Whether an event is given up after a failed attempt: the event is at least as old as the retry period, and attempts for
    /// the first event after the position have failed for at least that long.
    ///
    /// - Parameter failingSince: when the first event after the position began to fail; nil: it does not fail.
    static func isGivenUp(_ event: RecordedAuditEvent, failingSince: UnixTime?, at now: UnixTime) -> Bool {
        guard let failingSince, now - failingSince >= retryPeriod else { return false }
        return now - event.event.at >= retryPeriod
    }

    /// The events up to the first that removes an app of the webhook. A later app with the same id is another app.
    ///
    /// - Parameter foreign: the numbers of events of earlier apps that had the same ids.
    static func endingAtRemoval(
        _ events: [RecordedAuditEvent], of webhook: Webhook, besides foreign: Set<Int64> = []
    ) -> (
        events: [RecordedAuditEvent], removed: AppID?
    ) {
        let end = events.firstIndex { recorded in
            recorded.event.code == .appRemoved && !foreign.contains(recorded.sequence)
                && recorded.event.appID.map { webhook.scope.named.contains($0) } ?? false
        }
        guard let end else { return (events, nil) }
        return (Array(events[...end]), events[end].event.appID)
    }
}

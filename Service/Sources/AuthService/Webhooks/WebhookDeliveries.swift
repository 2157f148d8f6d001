public import AuthContract
internal import Bytes
public import Logging

/// Delivers the events of the audit log to webhooks, in the background.
///
/// The log is the only queue: each webhook has its position in it. A receiver that is slow, dead or wrong delays only its own
/// webhook. Of several nodes, the node that holds the lease delivers for a webhook. Each event is delivered at least once, unless
/// it is given up: if a node ends after a delivery and before it saved the position, the event is delivered again, with the same
/// id.
public final class WebhookDeliveries: Sendable {
    /// This node's state of a webhook.
    struct Place: Sendable {
        /// The webhook as this node last read or saved it.
        var webhook: Webhook
        var window: WebhookWindow
        /// For each app that replaced a removed app with the same id: the number of the removed app's last event; nil: not read
        /// yet.
        var earlierApps: [AppID: Int64]?
        /// The number of attempts by event, for events after the position.
        private(set) var attempts: [Int64: Int64] = [:]
        /// The time of the last attempt of any node; nil: no attempt is known.
        private var lastAttempt: UnixTime?
        /// Deliveries that were not saved yet, oldest first: at most `WebhookDelivery.kept`.
        private(set) var unsaved: [WebhookDelivery] = []
        /// The number of consecutive failed rounds.
        var failures = 0
        /// The time before which nothing is delivered; nil: deliver at once.
        var nextAt: UnixTime?
        var isRunning = false

        init(webhook: Webhook, window: WebhookWindow, unsaved: [WebhookDelivery] = []) {
            (self.webhook, self.window, self.unsaved) = (webhook, window, unsaved)
        }

        /// Continues the counts of attempts from the stored deliveries, and forgets unsaved deliveries that were stored after
        /// all.
        mutating func resume(after stored: [WebhookDelivery]) {
            unsaved.removeAll { stored.contains($0) }
            for delivery in stored + unsaved { count(delivery) }
        }

        /// Counts attempts, and keeps them for the next save.
        mutating func note(_ deliveries: [WebhookDelivery]) {
            for delivery in deliveries { count(delivery) }
            attempts = attempts.filter { $0.key > window.position }
            unsaved = (unsaved + deliveries).suffix(WebhookDelivery.kept)
        }

        private mutating func count(_ delivery: WebhookDelivery) {
            attempts[delivery.sequence] = max(attempts[delivery.sequence] ?? 0, delivery.attempt)
            lastAttempt = max(lastAttempt ?? delivery.at, delivery.at)
        }

        /// When the receiver began to fail. If there was no attempt for a long time, because every node was stopped or the store
        /// did not answer, the length of that time is added: otherwise events would be given up after a single attempt.
        func failingSince(at now: UnixTime) -> UnixTime? {
            guard let since = webhook.failingSince, let lastAttempt else { return webhook.failingSince }
            let idle = now - lastAttempt
            return idle > 2 * WebhookDeliveries.longestPause ? min(since + idle, now) : since
        }

        /// Records that the webhook was saved with all deliveries.
        mutating func saved(as webhook: Webhook) {
            self.webhook = webhook
            self.webhook.version += 1
            unsaved = []
        }
    }

    /// Seconds of a lease. A node renews one that is older than `leaseRenewal` seconds.
    static let leaseSeconds: Int64 = 150
    static let leaseRenewal: Int64 = 30
    /// The seconds that must be left of a lease when an attempt begins: an attempt takes up to 10 s, and another node's clock may be
    /// ahead.
    static let leaseMargin = ClaimHistory.nodesApart + 15
    static let interval: Duration = .seconds(1)

    let webhooks: Webhooks
    let transport: any WebhookTransport
    let node: String
    let random: any RandomSource
    let logger: Logger
    private let isAlone: Bool
    private let observer: (any WebhookObserver)?
    private let places = Locked<[String: Place]>([:])

    /// Deliveries of a service.
    ///
    /// - Parameters:
    ///   - service: the service whose webhooks and audit log are used.
    ///   - transport: sends the deliveries.
    ///   - isAlone: whether no other node can use the stores. Then a lease of another node was left by a killed process.
    ///   - observer: counts attempts and events; nil: nothing is counted.
    ///   - random: names the node, and jitters pauses.
    ///   - logger: gets the events that are given up.
    public init(
        of service: AuthService, transport: any WebhookTransport, isAlone: Bool = false,
        observer: (any WebhookObserver)? = nil,
        random: any RandomSource = SystemRandom(), logger: Logger = Logger(label: "synheart.webhooks")
    ) {
        webhooks = service.webhooks
        (self.transport, self.observer, self.random, self.logger) = (transport, observer, random, logger)
        self.isAlone = isAlone
        node = Hexadecimal.encode(random.bytes(8))
    }

    /// Delivers until the task is cancelled. Then gives up its leases, so that another node, or this one after a restart,
    /// continues at once.
    public func run() async {
        guard webhooks.store != nil else { return }
        await withDiscardingTaskGroup { group in
            while !Task.isCancelled {
                for id in await due() { group.addTask { await self.deliver(id) } }
                guard (try? await Task.sleep(for: Self.interval)) != nil else { return }
            }
        }
        // Release in a separate task: this one is cancelled, and a store does not answer a cancelled caller.
        await Task { await release() }.value
    }

    /// Delivers the events that are due now, and returns when all attempts have ended.
    func round() async {
        await withDiscardingTaskGroup { group in
            for id in await due() { group.addTask { await self.deliver(id) } }
        }
    }

    /// Finds the webhooks with events that this node must deliver now. Marks them as running, and returns their ids.
    private func due() async -> [String] {
        // If the store fails, the next round reads it again.
        guard let all = try? await webhooks.list() else { return [] }
        guard !all.isEmpty, let end = try? await webhooks.audit.link(at: nil)?.sequence ?? 0 else {
            places.withLock { if all.isEmpty { $0 = [:] } }
            observer?.backlog([:])
            return []
        }
        let now = webhooks.clock.now
        let (due, backlog) = places.withLock { places in
            places = places.filter { known in all.contains { $0.id == known.key } || known.value.isRunning }
            var (due, backlog) = ([String](), [String: Int64]())
            for webhook in all {
                var place = current(webhook, places[webhook.id])
                // The node with the lease reports the backlog.
                let isElsewhere = isLeasedElsewhere(webhook, at: now)
                backlog[webhook.id] = isElsewhere || !webhook.isEnabled ? 0 : max(0, end - place.window.position)
                if webhook.isEnabled, !isElsewhere, !place.isRunning, place.window.position < end,
                    // Ignore a pause that is longer than `longestPause`: it began while a clock was ahead.
                    place.nextAt.map({ $0 <= now || $0 - now > Self.longestPause }) ?? true
                {
                    place.isRunning = true
                    due.append(webhook.id)
                }
                places[webhook.id] = place
            }
            return (due, backlog)
        }
        observer?.backlog(backlog)
        return due
    }

    /// Whether another node delivers for this webhook. A lease that ends too far in the future is ignored: the clock was ahead when
    /// the lease began.
    func isLeasedElsewhere(_ webhook: Webhook, at now: UnixTime) -> Bool {
        guard !isAlone, webhook.leaseHolder != node, let until = webhook.leaseUntil else { return false }
        return (now + 1...now + Self.leaseSeconds + ClaimHistory.nodesApart).contains(until)
    }

    /// This node's state of a webhook that was just read. If another caller changed the webhook, its failures and its pause are
    /// forgotten.
    private func current(_ webhook: Webhook, _ known: Place?) -> Place {
        guard let known else { return Place(webhook: webhook, window: WebhookWindow(position: webhook.position)) }
        guard !known.isRunning, known.webhook.version < webhook.version else { return known }
        // `resend` ends the lease, so a changed holder shows that `resend` set the position, even if it is the same as before. Then
        // forget which events after the position were delivered.
        let isMoved =
            known.webhook.position != webhook.position || known.webhook.leaseHolder != webhook.leaseHolder
        let window = isMoved ? WebhookWindow(position: webhook.position) : known.window
        return Place(webhook: webhook, window: window, unsaved: known.unsaved)
    }

    private func deliver(_ id: String) async {
        guard var place = places.withLock({ $0[id] }) else { return }
        do throws(StoreError) {
            while try await advance(&place) {}
        } catch {
            // The store failed. If it failed after a delivery, the next round repeats the delivery. If the receiver failed as well,
            // use the longer of the two pauses.
            let soon = webhooks.clock.now + 5
            place.nextAt = place.nextAt.map { max($0, soon) } ?? soon
        }
        place.isRunning = false
        places.withLock { [place] in $0[id] = place }
    }

    /// Reports an attempt to the observer.
    func attempted(_ outcome: WebhookOutcome) { observer?.attempted(delivered: outcome.failure == nil) }

    /// Reports events that are given up.
    func gaveUp(_ sequences: Set<Int64>, of webhook: Webhook) {
        guard let first = sequences.min() else { return }
        for _ in sequences { observer?.gaveUp() }
        logger.error(
            "a webhook's receiver failed for 24 h: events were given up",
            metadata: [
                "webhook": "\(webhook.id)", "first": "\(first)", "events": "\(sequences.count)",
                "reason": "\(webhook.failure ?? "")",
            ])
    }

    /// Reports events that left the log before they were delivered.
    func missed(_ sequences: Range<Int64>, of webhook: Webhook) {
        logger.error(
            "events were archived before a webhook got them",
            metadata: [
                "webhook": "\(webhook.id)", "first": "\(sequences.lowerBound)", "events": "\(sequences.count)",
            ])
    }

    private func release() async {
        for place in places.withLock({ Array($0.values) }) where place.webhook.leaseHolder == node {
            var after = place.webhook
            (after.position, after.leaseHolder, after.leaseUntil) = (place.window.position, nil, nil)
            // If this fails, the lease expires, and deliveries since the last save are repeated.
            let change = WebhookChange(from: place.webhook, to: after, noting: place.unsaved)
            _ = try? await webhooks.store?.save(change)
        }
    }
}

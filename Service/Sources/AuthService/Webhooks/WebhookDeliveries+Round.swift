internal import AuthContract

/// One step of one webhook: read the next events, send them, save the position.
extension WebhookDeliveries {
    private static let lanesAtOnce = 4
    /// After this many failures, the step begins no more lanes. A lane is the list of events of one device.
    private static let maximumFailures = 8
    /// The largest number of events by which the position may be ahead of the stored one while there is no delivery to save.
    private static let maximumLead: Int64 = 100
    static let longestPause: Int64 = 900
    private static let pause = BackOffPause(first: 10, longest: Double(longestPause))

    /// The result of sending.
    struct Sent: Sendable {
        var delivered: Set<Int64> = []
        /// All attempts.
        var deliveries: [WebhookDelivery] = []
        var failed: [RecordedAuditEvent] = []
        /// The failed events that are not sent again. An event is given up only after an attempt to send this very event
        /// failed: the receiver may refuse one event and accept the later ones.
        var givenUp: Set<Int64> = []
        var failure: String?
        /// The receiver answered 410 Gone: it wants no more deliveries (Standard Webhooks).
        var isGone = false

        mutating func merge(_ other: Sent) {
            delivered.formUnion(other.delivered)
            deliveries += other.deliveries
            failed += other.failed
            givenUp.formUnion(other.givenUp)
            failure = failure ?? other.failure
            isGone = isGone || other.isGone
        }
    }

    /// Delivers the next events, and saves the new position.
    ///
    /// - Returns: whether there may be more to deliver at once.
    func advance(_ place: inout Place) async throws(StoreError) -> Bool {
        guard !Task.isCancelled, try await lease(&place) else { return false }
        guard let earlierApps = place.earlierApps else {
            place.resume(after: try await webhooks.deliveries(of: place.webhook.id))
            place.earlierApps = try await webhooks.earlierApps(of: place.webhook, after: place.window.position)
            // Return first: reading may have taken so long that the lease must be renewed.
            return true
        }
        let read = try await webhooks.audit.page(
            app: nil, device: nil, after: place.window.position, limit: WebhookWindow.size)
        let page = read.events
        var webhook = place.webhook
        webhook.failingSince = place.failingSince(at: webhooks.clock.now)
        // At position 0, archived events are not reported as missed: `resend` from 0 asks only for the events of the log.
        if place.window.position > 0, let first = page.first?.sequence, first > place.window.position + 1 {
            missed(place.window.position + 1..<first, of: webhook)
            place.window.skip(to: first - 1)
        }
        let foreign = Set(
            page.lazy.filter { recorded in
                recorded.event.appID.flatMap { earlierApps[$0] }.map { recorded.sequence <= $0 } ?? false
            }.map(\.sequence))
        let (events, removed) = WebhookWindow.endingAtRemoval(page, of: webhook, besides: foreign)
        guard let last = events.last else { return false }
        let lanes = place.window.lanes(events.filter { !foreign.contains($0.sequence) }, of: webhook)
        let sent = await send(lanes, of: webhook, after: place.attempts)
        let passed = foreign.filter { $0 <= last.sequence }
        place.window.settle(sent.delivered.union(passed), in: events, of: webhook)
        // A cancelled attempt does not show that the receiver fails, so it is noted only if the receiver answered. `release`
        // saves the position.
        let isCancelled = Task.isCancelled
        place.note(sent.deliveries.filter { !isCancelled || $0.status != nil })
        guard !isCancelled else { return false }

        var after = webhook
        note(sent, in: events, &after, &place)
        after.position = place.window.position
        var event: AuditEvent?
        if let removed, place.window.position == last.sequence {
            after.scope = .apps(after.scope.named.subtracting([removed]))
            event = webhooks.event(.webhookChanged, after, "service", webhook)
        }
        if sent.isGone {
            after.isEnabled = false
            event = webhooks.event(.webhookChanged, after, "service", webhook)
        }
        if after.scope == .apps([]) {
            let removal = webhooks.event(.webhookRemoved, webhook, "service")
            _ = try await webhooks.store?.save(WebhookChange(from: webhook, to: nil, recording: removal))
            return false
        }
        let isWorthSaving =
            !place.unsaved.isEmpty || after.failure != webhook.failure || after.failingSince != webhook.failingSince
            || event != nil || after.position - webhook.position >= Self.maximumLead
            // Events that were given up must stay given up after a restart.
            || sent.failure != nil && after.position > webhook.position
        if isWorthSaving, try await !save(after, &place, recording: event) { return false }
        let isDone = read.isLast && place.window.position == page.last?.sequence
        return after.isEnabled && sent.failure == nil && !isDone
    }

    /// Records when and why the receiver began to fail, or that it does not fail, and the events that were given up.
    private func note(
        _ sent: Sent, in events: [RecordedAuditEvent], _ webhook: inout Webhook, _ place: inout Place
    ) {
        guard let failure = sent.failure else {
            (webhook.failure, webhook.failingSince, place.failures, place.nextAt) = (nil, nil, 0, nil)
            return
        }
        let now = webhooks.clock.now
        // `failingSince` starts again if the position moved to another event, or if this is the first failure.
        if place.window.position > webhook.position || webhook.failingSince == nil { webhook.failingSince = now }
        webhook.failure = failure
        place.nextAt = now + Int64(Self.pause.seconds(after: place.failures, random).rounded(.up))
        place.failures += 1
        place.window.settle(sent.givenUp, in: events, of: webhook)
        gaveUp(sent.givenUp, of: webhook)
    }

    // MARK: Sending

    /// Sends the lanes concurrently, and the events of each lane one after another. A lane ends with its first failure, unless
    /// the event is given up.
    ///
    /// - Parameter attempts: the number of earlier attempts by event.
    private func send(
        _ lanes: [[RecordedAuditEvent]], of webhook: Webhook, after attempts: [Int64: Int64]
    ) async -> Sent {
        guard !lanes.isEmpty else { return Sent() }
        let url: WebhookURL
        let secret: [UInt8]
        do {
            url = try WebhookURL(webhook.url, allowingHTTP: webhooks.allowsHTTP)
            secret = try webhooks.secret(of: webhook)
        } catch {
            return Sent(failed: lanes.compactMap(\.first), failure: "\(error)")
        }
        return await withTaskGroup(of: Sent.self) { group in
            // Lanes with the fewest attempts first: otherwise lanes that always fail would keep the others from being sent.
            func tries(_ lane: [RecordedAuditEvent]) -> Int64 { lane.first.flatMap { attempts[$0.sequence] } ?? 0 }
            let ordered = lanes.enumerated().sorted { (tries($0.element), $0.offset) < (tries($1.element), $1.offset) }
            var (rest, sent) = (ordered.map(\.element)[...], Sent())
            func startNext() {
                guard let lane = rest.popFirst() else { return }
                group.addTask { await self.send(lane, of: webhook, to: url, secret, after: attempts) }
            }
            for _ in 0..<Self.lanesAtOnce { startNext() }
            for await one in group {
                sent.merge(one)
                if sent.failed.count < Self.maximumFailures, !sent.isGone { startNext() }
            }
            sent.deliveries.sort { ($0.at, $0.sequence) < ($1.at, $1.sequence) }
            return sent
        }
    }

    private func send(
        _ lane: [RecordedAuditEvent], of webhook: Webhook, to url: WebhookURL, _ secret: [UInt8],
        after attempts: [Int64: Int64]
    ) async -> Sent {
        var sent = Sent()
        for event in lane {
            let now = webhooks.clock.now
            // Without enough time on the lease, another node might deliver the next event of the device first.
            guard !Task.isCancelled, let until = webhook.leaseUntil, until - now >= Self.leaseMargin else { break }
            let (message, start) = (WebhookMessage(event, of: webhook), ContinuousClock.now)
            let outcome = await transport.post(
                WebhookRequest(url: url, headers: message.headers(signedWith: secret, at: now), body: message.body))
            attempted(outcome)
            sent.deliveries.append(
                WebhookDelivery(
                    sequence: event.sequence, attempt: (attempts[event.sequence] ?? 0) + 1, at: now,
                    milliseconds: Int64((ContinuousClock.now - start) / .milliseconds(1)), status: outcome.status,
                    failure: outcome.failure))
            guard let failure = outcome.failure else {
                sent.delivered.insert(event.sequence)
                continue
            }
            sent.failed.append(event)
            (sent.failure, sent.isGone) = (failure, outcome == .answered(status: 410))
            guard !sent.isGone, WebhookWindow.isGivenUp(event, failingSince: webhook.failingSince, at: now) else {
                break
            }
            sent.givenUp.insert(event.sequence)
            guard sent.failed.count < Self.maximumFailures else { break }
        }
        return sent
    }

    // MARK: The row

    /// Whether this node holds the lease, after taking or renewing it if necessary.
    private func lease(_ place: inout Place) async throws(StoreError) -> Bool {
        let (webhook, now) = (place.webhook, webhooks.clock.now)
        let isMine = webhook.leaseHolder == node
        guard !isLeasedElsewhere(webhook, at: now) else { return false }
        if isMine, let until = webhook.leaseUntil, until - now >= Self.leaseSeconds - Self.leaseRenewal { return true }
        var after = webhook
        (after.leaseHolder, after.leaseUntil) = (node, now + Self.leaseSeconds)
        after.position = place.window.position
        return try await save(after, &place)
    }

    /// Saves the webhook. Returns false if another caller changed it: the next round begins with the stored webhook.
    private func save(
        _ webhook: Webhook, _ place: inout Place, recording event: AuditEvent? = nil
    ) async throws(StoreError) -> Bool {
        let change = WebhookChange(from: place.webhook, to: webhook, recording: event, noting: place.unsaved)
        guard try await webhooks.store?.save(change) == true else { return false }
        place.saved(as: webhook)
        return true
    }
}

internal import AuthContract
internal import AuthService

extension StoreConformance {
    static var webhookDeliveryChecks: [ConformanceCheck] {
        [
            ConformanceCheck("Deliveries are saved with the change that they led to, and listed newest first") {
                stores in
                guard let store = stores.webhooks else { return }
                let samples = try Samples(stores)
                let (webhook, other) = (try await stores.add(samples), try await stores.add(samples))
                let all = [
                    WebhookDelivery(
                        sequence: .max, attempt: 1, at: samples.now, milliseconds: 10_000, status: nil,
                        failure: "no answer in time"),
                    WebhookDelivery(
                        sequence: 4, attempt: .max, at: samples.now - 1, milliseconds: 0, status: 302, failure: "é\n"),
                    WebhookDelivery(
                        sequence: 4, attempt: 2, at: samples.now, milliseconds: 7, status: 204, failure: nil),
                ]
                try expect(try await store.deliveries(of: webhook.id, limit: 100), is: [], "what was there before")
                try expect(try await store.save(WebhookChange(from: webhook, to: webhook, noting: all)), "not saved")
                let newestFirst = Array(all.reversed())
                try expect(try await store.deliveries(of: webhook.id, limit: 100), is: newestFirst, "the deliveries")
                try expect(
                    try await store.deliveries(of: webhook.id, limit: 2), is: Array(newestFirst.prefix(2)), "the last 2"
                )
                for limit in [0, -1] {
                    try expect(try await store.deliveries(of: webhook.id, limit: limit), is: [], "the last \(limit)")
                }
                try expect(try await store.deliveries(of: other.id, limit: 100), is: [], "those of another webhook")
                try expect(
                    try await !store.save(WebhookChange(from: webhook, to: webhook, noting: all)),
                    "saved from an older version")
                try expect(
                    try await store.deliveries(of: webhook.id, limit: 100), is: newestFirst,
                    "what a refused change left")
                try await stores.remove(webhook, other)
            },
            ConformanceCheck("Of 16 changes with deliveries at once one succeeds, and its deliveries alone are kept") {
                stores in
                guard let store = stores.webhooks else { return }
                let samples = try Samples(stores)
                let webhook = try await stores.add(samples)
                let done = try await concurrently(16) { number in
                    try await store.save(
                        WebhookChange(from: webhook, to: webhook, noting: [samples.delivery(Int64(number) + 1)]))
                }
                let winner = try unwrap(done.firstIndex(of: true), "winner")
                try expect(
                    try await store.deliveries(of: webhook.id, limit: 100),
                    is: [samples.delivery(Int64(winner) + 1)], "the deliveries")
                try await stores.remove(webhook)
            },
            ConformanceCheck("A webhook keeps its newest 100 deliveries, and other webhooks keep theirs") { stores in
                guard let store = stores.webhooks else { return }
                let samples = try Samples(stores)
                let (webhook, other) = (try await stores.add(samples), try await stores.add(samples))
                let first = samples.delivery(1)
                try expect(try await store.save(WebhookChange(from: other, to: other, noting: [first])), "not saved")
                for range in [1...60, 61...120, 121...121, 122...400] as [ClosedRange<Int64>] {
                    let before = try unwrap(try await store.webhook(webhook.id), "webhook")
                    let change = WebhookChange(from: before, to: before, noting: range.map { samples.delivery($0) })
                    try expect(try await store.save(change), "not saved")
                    let end = range.upperBound
                    let kept = (max(1, end - 99)...end).reversed().map { samples.delivery($0) }
                    try expect(try await store.deliveries(of: webhook.id, limit: 1000), is: kept, "those up to \(end)")
                }
                try expect(
                    try await store.deliveries(of: other.id, limit: 100), is: [first], "those of another webhook")
                try await stores.remove(webhook, other)
            },
            ConformanceCheck("Removing a webhook removes its deliveries") { stores in
                guard let store = stores.webhooks else { return }
                let samples = try Samples(stores)
                let webhook = try await stores.add(samples)
                let change = WebhookChange(from: webhook, to: webhook, noting: [samples.delivery(1)])
                try expect(try await store.save(change), "not saved")
                let saved = try unwrap(try await store.webhook(webhook.id), "webhook")
                try expect(
                    try await store.save(WebhookChange(from: saved, to: nil, noting: [samples.delivery(2)])),
                    "not removed")
                try expect(try await store.deliveries(of: webhook.id, limit: 100), is: [], "what is left")
                // Adds a new webhook with the same id, which must have no deliveries of the removed one.
                try expect(try await store.insert(webhook, recording: samples.event(.webhookAdded)), "not added")
                try expect(try await store.deliveries(of: webhook.id, limit: 100), is: [], "those of the new webhook")
                try await stores.remove(webhook)
            },
        ]
    }
}

extension StoresUnderTest {
    /// Adds a webhook.
    fileprivate func add(_ samples: Samples) async throws -> Webhook {
        let store = try unwrap(webhooks, "store of webhooks")
        try await provide(samples.app, samples)
        let webhook = samples.webhook()
        try expect(try await store.insert(webhook, recording: samples.event(.webhookAdded)), "not added")
        return webhook
    }

    /// Removes the check's webhooks, because the store has room for only a few.
    fileprivate func remove(_ added: Webhook...) async throws {
        for webhook in added {
            guard let stored = try await webhooks?.webhook(webhook.id) else { continue }
            _ = try await webhooks?.save(WebhookChange(from: stored, to: nil))
        }
    }
}

extension Samples {
    fileprivate func delivery(_ sequence: Int64) -> WebhookDelivery {
        WebhookDelivery(
            sequence: sequence, attempt: 1, at: now, milliseconds: sequence, status: 500, failure: "status 500")
    }
}

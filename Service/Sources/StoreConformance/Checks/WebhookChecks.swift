internal import AuthContract
internal import AuthService

extension StoreConformance {
    static var webhookChecks: [ConformanceCheck] {
        [
            ConformanceCheck("A webhook is read as it was added, and its secret is listed as sealed") { stores in
                guard let store = stores.webhooks else { return }
                let samples = try Samples(stores)
                try await stores.provide(samples.app, samples)
                let webhook = samples.webhook()
                try expect(try await store.insert(webhook, recording: samples.event(.webhookAdded)), "not added")
                try expect(try await store.webhook(webhook.id), is: webhook, "the webhook")
                try expect(try await store.webhooks().filter { $0.id == webhook.id }, is: [webhook], "the list")
                try expect(try await stores.codes(samples), is: [.webhookAdded], "the codes")
                let rows = try await stores.serviceKeys.sealedRows(.webhook, after: "", limit: 1000)
                let row = try unwrap(rows.first { $0.id == webhook.id }, "sealed row of the webhook")
                try expect(row.value, is: webhook.sealedSecret, "the sealed secret")
                try expect(try await stores.serviceKeys.reseal([(row, [9, 8, 7])]), is: 1, "how many were replaced")
                try expect(try await store.webhook(webhook.id)?.sealedSecret, is: [9, 8, 7], "the replaced secret")
            },
            ConformanceCheck("A webhook for an app that is not there is not added") { stores in
                guard let store = stores.webhooks else { return }
                let samples = try Samples(stores)
                let webhook = samples.webhook()
                try expect(try await !store.insert(webhook, recording: samples.event(.webhookAdded)), "added")
                try expect(try await store.webhook(webhook.id), is: nil, "the webhook")
                try expect(try await stores.codes(samples), is: [], "the codes")
            },
            ConformanceCheck("Of 48 webhooks that are added at once, as many succeed as there is room for") { stores in
                guard let store = stores.webhooks else { return }
                let samples = try Samples(stores)
                try await stores.provide(samples.app, samples)
                let room = Webhooks.maximum - (try await store.webhooks().count)
                let added = try await concurrently(48) { _ in
                    let webhook = samples.webhook()
                    guard (try? await store.insert(webhook, recording: samples.event(.webhookAdded))) == true else {
                        return nil as Webhook?
                    }
                    return webhook
                }.compactMap { $0 }
                try expect(added.count, is: room, "how many were added")
                try expect(try await store.webhooks().count, is: Webhooks.maximum, "the number of webhooks")
                for webhook in added { _ = try await store.save(WebhookChange(from: webhook, to: nil)) }
            },
            ConformanceCheck("Of 64 changes of one webhook one succeeds, and keeps the secret") { stores in
                guard let store = stores.webhooks else { return }
                let samples = try Samples(stores)
                try await stores.provide(samples.app, samples)
                let webhook = samples.webhook()
                _ = try await store.insert(webhook, recording: samples.event(.webhookAdded))
                let done = try await concurrently(64) { number in
                    var after = webhook
                    (after.leaseHolder, after.leaseUntil) = ("node \(number)", samples.now + 60)
                    (after.position, after.failingSince, after.failure) = (7, samples.now, "status 500")
                    (after.url, after.codes, after.isEnabled, after.scope) = ("https://b.example/", [], false, .allApps)
                    return try await store.save(WebhookChange(from: webhook, to: after))
                }
                try expect(done.count { $0 }, is: 1, "how many did")
                let stored = try unwrap(try await store.webhook(webhook.id), "webhook")
                let winner = try unwrap(done.firstIndex(of: true), "winner")
                try expect(stored.leaseHolder, is: "node \(winner)", "the holder")
                try expect(stored.version, is: webhook.version + 1, "the version")
                try expect(stored.sealedSecret, is: webhook.sealedSecret, "the secret")
                try expect(
                    stored.position == 7 && stored.failure == "status 500" && stored.failingSince == samples.now
                        && stored.url == "https://b.example/" && stored.codes.isEmpty && !stored.isEnabled
                        && stored.scope == .allApps && stored.leaseUntil == samples.now + 60, "a member was not saved")
                let removal = samples.event(.webhookRemoved)
                try expect(
                    try await !store.save(WebhookChange(from: webhook, to: nil, recording: removal)),
                    "removed from an older version")
                try expect(
                    try await store.save(WebhookChange(from: stored, to: nil, recording: removal)), "not removed")
                try expect(try await store.webhook(webhook.id), is: nil, "the removed webhook")
                try expect(try await stores.codes(samples), is: [.webhookRemoved, .webhookAdded], "the codes")
            },
        ]
    }
}

extension Samples {
    /// A webhook of the app.
    func webhook() -> Webhook {
        Webhook(
            id: Hexadecimal.encode(bytes(8)), url: "https://a.example/events?key=1", scope: .apps([app]),
            codes: ["device.revoked", "device.registered"], sealedSecret: bytes(60), createdAt: now, position: 3)
    }
}

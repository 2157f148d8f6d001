public import AuthService

extension MemoryStores: WebhookStore {
    /// See `WebhookStore`.
    public func webhooks() throws(StoreError) -> [Webhook] {
        try check(.webhooks)
        return webhookRecords.values.sorted { $0.id < $1.id }
    }

    /// See `WebhookStore`.
    public func webhook(_ id: String) throws(StoreError) -> Webhook? {
        try check(.webhooks)
        return webhookRecords[id]
    }

    /// See `WebhookStore`.
    public func insert(_ webhook: Webhook, recording event: AuditEvent) throws(StoreError) -> Bool {
        try check(.saveWebhook)
        guard webhookRecords.count < Webhooks.maximum else {
            throw StoreError(.unavailable, "there are \(Webhooks.maximum) webhooks")
        }
        guard webhook.scope.named.allSatisfy({ appRecords[$0] != nil }) else { return false }
        guard webhookRecords[webhook.id] == nil else {
            throw StoreError(.unavailable, "the webhook's id exists")
        }
        webhookRecords[webhook.id] = webhook
        record(event)
        return true
    }

    /// See `WebhookStore`.
    public func save(_ change: WebhookChange) throws(StoreError) -> Bool {
        try check(.saveWebhook)
        guard let stored = webhookRecords[change.before.id], stored.version == change.before.version else {
            return false
        }
        webhookRecords[stored.id] = change.after.map { stored.replaced(by: $0) }
        let deliveries = (webhookDeliveries[stored.id] ?? []) + change.deliveries
        webhookDeliveries[stored.id] = change.after.map { _ in deliveries.suffix(WebhookDelivery.kept) }
        if let event = change.event { record(event) }
        return true
    }

    /// See `WebhookStore`.
    public func deliveries(of id: String, limit: Int) throws(StoreError) -> [WebhookDelivery] {
        try check(.webhooks)
        return (webhookDeliveries[id] ?? []).suffix(max(limit, 0)).reversed()
    }

    func reseal(webhook id: String, as value: [UInt8]) {
        guard let stored = webhookRecords[id] else { return }
        webhookRecords[id] = stored.replaced(by: stored, secret: value, version: stored.version)
    }
}

extension Webhook {
    /// This webhook with the changeable members of another one. If `secret` is nil, the webhook keeps its secret. If `version` is
    /// nil, it gets the next version.
    fileprivate func replaced(by other: Webhook, secret: [UInt8]? = nil, version: Int64? = nil) -> Webhook {
        Webhook(
            id: id, url: other.url, scope: other.scope, codes: other.codes, isEnabled: other.isEnabled,
            sealedSecret: secret ?? sealedSecret, createdAt: createdAt, position: other.position,
            failingSince: other.failingSince, failure: other.failure, leaseHolder: other.leaseHolder,
            leaseUntil: other.leaseUntil, version: version ?? self.version + 1)
    }
}

internal import AuthContract
internal import AuthService

/// Webhooks. The secret of each is sealed.
struct PostgreSQLWebhookStore: WebhookStore {
    let database: StoreDatabase

    private static let selection = Webhook.columns.joined(separator: ", ")

    func webhooks() async throws(StoreError) -> [Webhook] {
        try await database.read { (connection) throws(StoreError) in
            try connection.rows("SELECT \(Self.selection) FROM webhooks ORDER BY id").rows
                .map { (row) throws(StoreError) in try Webhook(row: row) }
        }
    }

    func webhook(_ id: String) async throws(StoreError) -> Webhook? {
        let statement = Statement("SELECT \(Self.selection) FROM webhooks WHERE id = $1", [.text(id)])
        return try await database.lookUp(statement) { (row) throws(StoreError) in try Webhook(row: row) }
    }

    func insert(_ webhook: Webhook, recording event: AuditEvent) async throws(StoreError) -> Bool {
        let inserted: Int? = try await database.write(sealing: true) { (connection) throws(StoreError) in
            // Concurrent transactions do not see each other's webhooks, so insertions are serialized.
            _ = try connection.rows("SELECT \(AdvisoryLock.webhooks.sql)")
            guard try connection.rows("SELECT 1 FROM webhooks").count < Webhooks.maximum else {
                throw StoreError(.unavailable, "there are \(Webhooks.maximum) webhooks")
            }
            let apps = webhook.scope.named.map(\.text).sorted()
            // The apps are locked, so that none can be removed before the insertion.
            let found = try connection.rows(
                "SELECT 1 FROM apps WHERE app_id = ANY ($1) ORDER BY app_id FOR KEY SHARE", [.texts(apps)])
            guard found.count == apps.count else { return nil }
            let values: [Parameter] = [
                .text(webhook.id), .bytes(webhook.sealedSecret), .time(webhook.createdAt), .integer(webhook.version),
            ]
            return try connection.change(
                """
                INSERT INTO webhooks (\(Self.selection)) VALUES (\(placeholders(Webhook.columns.count)))
                ON CONFLICT DO NOTHING
                """, values + webhook.changingParameters, recording: event, telling: false)
        }
        guard let inserted else { return false }
        guard inserted == 1 else { throw StoreError(.unavailable, "the webhook's id exists") }
        return true
    }

    func save(_ change: WebhookChange) async throws(StoreError) -> Bool {
        let key: [Parameter] = [.text(change.before.id), .integer(change.before.version)]
        return try await database.write { (connection) throws(StoreError) in
            guard let after = change.after else {
                return try connection.change(
                    "DELETE FROM webhooks WHERE id = $1 AND version = $2", key, recording: change.event, telling: false)
                    > 0
            }
            let changed = try connection.change(
                """
                UPDATE webhooks SET \(assignments(Webhook.changing, after: key.count)), version = version + 1
                WHERE id = $1 AND version = $2
                """, key + after.changingParameters, recording: change.event, telling: false)
            guard changed > 0 else { return false }
            connection.keep(change.deliveries, of: change.before.id)
            return true
        }
    }

    func deliveries(of id: String, limit: Int) async throws(StoreError) -> [WebhookDelivery] {
        try await database.read { (connection) throws(StoreError) in
            try connection.rows(
                """
                SELECT \(WebhookDelivery.columns.joined(separator: ", ")) FROM webhook_deliveries
                WHERE webhook_id = $1 ORDER BY number DESC LIMIT $2
                """, [.text(id), .integer(Int64(max(limit, 0)))]
            ).rows.map { (row) throws(StoreError) in try WebhookDelivery(row: row) }
        }
    }
}

extension Connection {
    /// Adds deliveries of a webhook with the commit, and removes the oldest ones beyond the number that is kept. The
    /// transaction holds the webhook's row, so no other transaction can add deliveries of the webhook meanwhile.
    fileprivate func keep(_ deliveries: [WebhookDelivery], of webhook: String) {
        guard !deliveries.isEmpty else { return }
        let columns = ["webhook_id"] + WebhookDelivery.columns
        for delivery in deliveries {
            beforeCommit(
                Statement(
                    """
                    INSERT INTO webhook_deliveries (\(columns.joined(separator: ", ")))
                    VALUES (\(placeholders(columns.count)))
                    """,
                    [
                        .text(webhook), .integer(delivery.sequence), .integer(delivery.attempt), .time(delivery.at),
                        .integer(delivery.milliseconds), .integer(delivery.status.map { Int64($0) }),
                        .text(delivery.failure),
                    ]))
        }
        beforeCommit(
            Statement(
                """
                DELETE FROM webhook_deliveries WHERE webhook_id = $1 AND number <= (
                  SELECT number FROM webhook_deliveries WHERE webhook_id = $1 ORDER BY number DESC OFFSET $2 LIMIT 1)
                """, [.text(webhook), .integer(Int64(WebhookDelivery.kept))]))
    }
}

extension Webhook {
    /// The values of `changing`, in its order.
    fileprivate var changingParameters: [Parameter] {
        [
            .text(url), .text(scope.storedText), .text(storedCodes), .bool(isEnabled), .integer(position),
            .time(failingSince), .text(failure), .text(leaseHolder), .time(leaseUntil),
        ]
    }
}

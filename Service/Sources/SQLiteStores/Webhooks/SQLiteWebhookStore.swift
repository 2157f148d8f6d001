internal import AuthContract
internal import AuthService
internal import GRDB

/// Webhooks. The secret of each is sealed.
struct SQLiteWebhookStore: WebhookStore {
    let database: StoreDatabase

    /// The statements of the migration that creates the table.
    static let schema = """
        CREATE TABLE webhooks (
          id TEXT PRIMARY KEY,
          sealed_secret BLOB NOT NULL,
          created_at INTEGER NOT NULL,
          version INTEGER NOT NULL,
          url TEXT NOT NULL,
          apps TEXT NOT NULL,
          codes TEXT NOT NULL,
          is_enabled INTEGER NOT NULL,
          position INTEGER NOT NULL,
          failing_since INTEGER,
          failure TEXT,
          lease_holder TEXT,
          lease_until INTEGER
        ) STRICT;
        """

    /// The statements of a later migration that creates the table of each webhook's last deliveries. Deliveries are removed with
    /// their webhook.
    static let deliveriesSchema = """
        CREATE TABLE webhook_deliveries (
          number INTEGER PRIMARY KEY,
          webhook_id TEXT NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
          sequence INTEGER NOT NULL,
          attempt INTEGER NOT NULL,
          at INTEGER NOT NULL,
          milliseconds INTEGER NOT NULL,
          status INTEGER,
          failure TEXT
        ) STRICT;
        CREATE INDEX webhook_deliveries_newest ON webhook_deliveries (webhook_id, number);
        """

    func webhooks() async throws(StoreError) -> [Webhook] {
        try await database.read { database in
            try Row.fetchAll(database, sql: "SELECT * FROM webhooks ORDER BY id")
                .map { try Webhook(row: StoredRow($0)) }
        }
    }

    func webhook(_ id: String) async throws(StoreError) -> Webhook? {
        try await database.read { database in
            try Row.fetchOne(database, sql: "SELECT * FROM webhooks WHERE id = ?", arguments: [id])
                .map { try Webhook(row: StoredRow($0)) }
        }
    }

    func insert(_ webhook: Webhook, recording event: AuditEvent) async throws(StoreError) -> Bool {
        let inserted: Int? = try await database.write { database in
            guard try Int.fetchOne(database, sql: "SELECT count(*) FROM webhooks") ?? 0 < Webhooks.maximum else {
                throw StoreError(.unavailable, "there are \(Webhooks.maximum) webhooks")
            }
            for app in webhook.scope.named {
                let exists = try Bool.fetchOne(
                    database, sql: "SELECT EXISTS (SELECT 1 FROM apps WHERE app_id = ?)", arguments: [app.text])
                guard exists == true else { return nil }
            }
            let values: StatementArguments = [
                webhook.id, webhook.sealedSecret.data, webhook.createdAt.seconds, webhook.version,
            ]
            return try database.change(
                """
                INSERT INTO webhooks (\(Webhook.columns.joined(separator: ", ")))
                VALUES (\(databaseQuestionMarks(count: Webhook.columns.count))) ON CONFLICT DO NOTHING
                """, values + webhook.changingArguments, recording: event)
        }
        guard let inserted else { return false }
        guard inserted == 1 else { throw StoreError(.unavailable, "the webhook's id exists") }
        return true
    }

    func save(_ change: WebhookChange) async throws(StoreError) -> Bool {
        let before = change.before
        return try await database.write { database in
            let key: StatementArguments = [before.id, before.version]
            guard let after = change.after else {
                return try database.change(
                    "DELETE FROM webhooks WHERE id = ? AND version = ?", key, recording: change.event) > 0
            }
            let assignments = Webhook.changing.map { "\($0) = ?" }.joined(separator: ", ")
            let changed = try database.change(
                "UPDATE webhooks SET \(assignments), version = version + 1 WHERE id = ? AND version = ?",
                after.changingArguments + key, recording: change.event)
            guard changed > 0 else { return false }
            try database.keep(change.deliveries, of: before.id)
            return true
        }
    }

    func deliveries(of id: String, limit: Int) async throws(StoreError) -> [WebhookDelivery] {
        let columns = WebhookDelivery.columns.joined(separator: ", ")
        return try await database.read { database in
            try Row.fetchAll(
                database,
                sql: "SELECT \(columns) FROM webhook_deliveries WHERE webhook_id = ? ORDER BY number DESC LIMIT ?",
                arguments: [id, max(limit, 0)]
            ).map { try WebhookDelivery(row: StoredRow($0)) }
        }
    }
}

extension Database {
    /// Adds deliveries of a webhook, and removes the oldest ones beyond the number that is kept.
    fileprivate func keep(_ deliveries: [WebhookDelivery], of webhook: String) throws {
        guard !deliveries.isEmpty else { return }
        let columns = ["webhook_id"] + WebhookDelivery.columns
        let insertion = try cachedStatement(
            sql: """
                INSERT INTO webhook_deliveries (\(columns.joined(separator: ", ")))
                VALUES (\(databaseQuestionMarks(count: columns.count)))
                """)
        for delivery in deliveries {
            try insertion.execute(
                arguments: [
                    webhook, delivery.sequence, delivery.attempt, delivery.at.seconds, delivery.milliseconds,
                    delivery.status, delivery.failure,
                ])
        }
        try cachedStatement(
            sql: """
                DELETE FROM webhook_deliveries WHERE webhook_id = ?1 AND number <= (
                  SELECT number FROM webhook_deliveries WHERE webhook_id = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?2)
                """
        ).execute(arguments: [webhook, WebhookDelivery.kept])
    }
}

extension Webhook {
    /// The values of the columns `Webhook.changing`, in the same order.
    fileprivate var changingArguments: StatementArguments {
        [
            url, scope.storedText, storedCodes, isEnabled ? 1 : 0, position, failingSince?.seconds, failure,
            leaseHolder, leaseUntil?.seconds,
        ]
    }
}

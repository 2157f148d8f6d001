internal import AuthContract
internal import AuthService
internal import Foundation
internal import GRDB

/// The audit log: a table that triggers protect from changes, and a hash chain that reveals changes made despite the triggers.
struct SQLiteAuditLog: AuditLog {
    let database: StoreDatabase

    /// The number of events checked in one transaction. A check of a long log must not keep one transaction open.
    private static let step: Int64 = 2000

    func append(_ event: AuditEvent) async throws(StoreError) {
        try await database.write { try $0.append(event) }
    }

    func events(
        app: AppID?, device: DeviceID?, codes: Set<AuditEvent.Code>?, after: Int64, before: Int64?, limit: Int
    ) async throws(StoreError) -> [RecordedAuditEvent] {
        try await events(app, device, codes, after: after, before: before, "DESC", limit)
    }

    func events(
        app: AppID?, device: DeviceID?, after: Int64, limit: Int
    ) async throws(StoreError) -> [RecordedAuditEvent] {
        try await events(app, device, nil, after: after, before: nil, "ASC", limit)
    }

    private func events(
        _ app: AppID?, _ device: DeviceID?, _ codes: Set<AuditEvent.Code>?, after: Int64, before: Int64?,
        _ order: String, _ limit: Int
    ) async throws(StoreError) -> [RecordedAuditEvent] {
        var table = "audit"
        var conditions = ["sequence > ? AND sequence < ?"]
        var arguments: StatementArguments = [after, before ?? .max]
        if let app {
            conditions.append("app_id = ?")
            arguments += [app.text]
        }
        if let device {
            conditions.append("device_id = ?")
            arguments += [device.text]
        }
        if let codes {
            conditions.append("code IN (\(codes.map { _ in "?" }.joined(separator: ", ")))")
            arguments += StatementArguments(codes.map(\.rawValue))
            if codes.areOfNoDevice {
                // Without this hint, SQLite's query planner reads all events, or all events of the app.
                table += " INDEXED BY audit_of_no_device"
                conditions.append("device_id IS NULL")
            }
        }
        arguments += [min(max(limit, 1), 1000)]
        let sql = """
            SELECT * FROM \(table) WHERE \(conditions.joined(separator: " AND ")) ORDER BY sequence \(order) LIMIT ?
            """
        let fetch: @Sendable (Database) throws -> [RecordedAuditEvent] = { [arguments] database in
            try Row.fetchAll(database, sql: sql, arguments: arguments).map {
                try RecordedAuditEvent(row: StoredRow($0))
            }
        }
        // A search for event codes reads many rows. At the deadline the caller gets an error, so the search must end then too.
        return try await codes == nil ? database.read(fetch) : database.readUntilDeadline(fetch)
    }

    func link(at sequence: Int64?) async throws(StoreError) -> AuditLink? {
        try await database.read { try $0.link(at: sequence) }
    }

    func firstBrokenLink() async throws(StoreError) -> Int64? {
        try await AuditChain.firstBrokenLink(from: { () async throws(StoreError) in
            try await database.read { database in
                let first = try Row.fetchOne(
                    database, sql: "SELECT sequence, hash FROM audit ORDER BY sequence LIMIT 1")
                return try AuditChain.Start(archived: database.lastArchivedLink(), first: first.map { StoredRow($0) })
            }
        }) { (link, archived) async throws(StoreError) in
            try await database.read { database in
                let rows = try Row.fetchAll(
                    database, sql: "SELECT * FROM audit WHERE sequence > ? ORDER BY sequence LIMIT ?",
                    arguments: [link.sequence, Self.step])
                return AuditChain.check(rows.map { StoredRow($0) }, after: link, archived: archived)
            }
        }
    }
}

extension Database {
    /// Appends an event to the log, in the same transaction as the change that the event records.
    func append(_ event: AuditEvent) throws {
        let last = try link(at: nil)
        let (next, overflow) = (last?.sequence ?? 0).addingReportingOverflow(1)
        guard !overflow else { throw StoreError(.unreadable, "the audit log has no sequence numbers left") }
        _ = try event.storedDetail()
        let entry = AuditChain.Entry(event, sequence: next)
        let hash = AuditChain.hash(entry, after: last?.hash ?? AuditChain.origin)
        try cachedStatement(
            sql: """
                INSERT INTO audit (sequence, code, at, actor, app_id, device_id, detail, hash)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?)
                """
        ).execute(arguments: [
            entry.sequence, entry.code, entry.at, entry.actor, entry.appID, entry.deviceID, entry.detail, hash.data,
        ])
    }

    func link(at sequence: Int64?) throws -> AuditLink? {
        let row =
            if let sequence {
                try Row.fetchOne(
                    cachedStatement(sql: "SELECT sequence, hash FROM audit WHERE sequence = ?"), arguments: [sequence])
            } else {
                try Row.fetchOne(
                    cachedStatement(sql: "SELECT sequence, hash FROM audit ORDER BY sequence DESC LIMIT 1"))
            }
        return try row.map { try AuditLink(row: StoredRow($0)) }
    }

    /// Runs one statement and returns the number of changed rows. Appends the event if rows changed.
    func change(_ sql: String, _ arguments: StatementArguments, recording event: AuditEvent?) throws -> Int {
        try cachedStatement(sql: sql).execute(arguments: arguments)
        let count = changesCount
        if count > 0, let event { try append(event) }
        return count
    }
}

internal import AuthContract
internal import AuthService
internal import Foundation
internal import GRDB
internal import StrictJSON

/// The audit log: a table that triggers protect from changes, and a hash chain that reveals changes made despite the triggers.
struct SQLiteAuditLog: AuditLog {
    let database: StoreDatabase

    /// The number of events checked in one transaction. A check of a long log must not keep one transaction open.
    private static let step: Int64 = 2000

    func append(_ event: AuditEvent) async throws(StoreError) {
        try await database.write { try $0.append(event) }
    }

    func events(
        app: AppID?, device: DeviceID?, before: Int64?, limit: Int
    ) async throws(StoreError) -> [RecordedAuditEvent] {
        try await database.read { database in
            var conditions = ["sequence < ?"]
            var arguments: StatementArguments = [before ?? .max]
            if let app {
                conditions.append("app_id = ?")
                arguments += [app.text]
            }
            if let device {
                conditions.append("device_id = ?")
                arguments += [device.text]
            }
            arguments += [min(max(limit, 1), 1000)]
            return try Row.fetchAll(
                database,
                sql: """
                    SELECT * FROM audit WHERE \(conditions.joined(separator: " AND "))
                    ORDER BY sequence DESC LIMIT ?
                    """,
                arguments: arguments
            ).map { try RecordedAuditEvent(row: StoredRow($0)) }
        }
    }

    func link(at sequence: Int64?) async throws(StoreError) -> AuditLink? {
        try await database.read { try $0.link(at: sequence) }
    }

    func firstBrokenLink() async throws(StoreError) -> Int64? {
        var link = AuditLink(sequence: 0, hash: AuditChain.origin)
        while true {
            let from = link
            let step = try await database.read { try Self.follow($0, from: from) }
            switch step {
            case .broken(let sequence): return sequence
            case .end: return nil
            case .intact(let next): link = next
            }
        }
    }

    private enum Step: Sendable {
        case intact(AuditLink)
        case broken(Int64)
        case end
    }

    private static func follow(_ database: Database, from start: AuditLink) throws -> Step {
        var link = start
        let rows = try Row.fetchCursor(
            database, sql: "SELECT * FROM audit WHERE sequence > ? ORDER BY sequence LIMIT ?",
            arguments: [start.sequence, step])
        while let row = try rows.next().map({ StoredRow($0) }) {
            let sequence = try row.integer("sequence")
            // A row that cannot be read breaks the chain. It is not a failure of the store.
            guard sequence == link.sequence + 1, let entry = try? AuditChain.Entry(row: row),
                let stored = try? row.bytes("hash")
            else { return .broken(link.sequence + 1) }
            let hash = AuditChain.hash(entry, after: link.hash)
            guard hash == stored else { return .broken(sequence) }
            link = AuditLink(sequence: sequence, hash: hash)
        }
        return link.sequence == start.sequence ? .end : .intact(link)
    }
}

extension Database {
    /// Appends an event to the log, in the transaction of its change.
    func append(_ event: AuditEvent) throws {
        let last = try link(at: nil)
        let (next, overflow) = (last?.sequence ?? 0).addingReportingOverflow(1)
        guard !overflow else { throw StoreError(.unreadable, "the audit log has no sequence numbers left") }
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

    fileprivate func link(at sequence: Int64?) throws -> AuditLink? {
        let row =
            if let sequence {
                try Row.fetchOne(
                    cachedStatement(sql: "SELECT sequence, hash FROM audit WHERE sequence = ?"), arguments: [sequence])
            } else {
                try Row.fetchOne(
                    cachedStatement(sql: "SELECT sequence, hash FROM audit ORDER BY sequence DESC LIMIT 1"))
            }
        return try row.map { StoredRow($0) }.map {
            AuditLink(sequence: try $0.integer("sequence"), hash: try $0.bytes("hash"))
        }
    }

    /// Runs one statement and returns the number of changed rows. Appends the event if rows changed.
    func change(_ sql: String, _ arguments: StatementArguments, recording event: AuditEvent?) throws -> Int {
        try cachedStatement(sql: sql).execute(arguments: arguments)
        let count = changesCount
        if count > 0, let event { try append(event) }
        return count
    }
}

extension AuditChain.Entry {
    init(row: StoredRow) throws(StoreError) {
        self.init(
            sequence: try row.integer("sequence"), code: try row.text("code"), at: try row.integer("at"),
            actor: try row.text("actor"), appID: try row.optionalText("app_id"),
            deviceID: try row.optionalText("device_id"), detail: try row.text("detail"))
    }
}

extension RecordedAuditEvent {
    fileprivate init(row: StoredRow) throws(StoreError) {
        let entry = try AuditChain.Entry(row: row)
        let event = AuditEvent(
            try row.parsed("code", entry.code) { AuditEvent.Code(rawValue: $0) }, at: UnixTime(entry.at),
            actor: entry.actor,
            appID: try entry.appID.map { text throws(StoreError) in try row.parsed("app_id", text) { try AppID($0) } },
            deviceID: try entry.deviceID.map { text throws(StoreError) in
                try row.parsed("device_id", text) { try DeviceID($0) }
            },
            detail: try row.parsed("detail", entry.detail) { try JSONValue(parsing: $0, limits: .stored).object })
        self.init(sequence: entry.sequence, event: event, hash: try row.bytes("hash"))
    }
}

internal import AuthContract
internal import AuthService
internal import StrictJSON

/// The audit log: a table that triggers protect from changes, and a hash chain that reveals changes made despite the triggers.
struct PostgreSQLAuditLog: AuditLog {
    let database: StoreDatabase

    /// The number of events checked in one read.
    private static let step: Int64 = 2000
    private static let columns = "sequence, code, at, actor, app_id, device_id, detail, hash"

    func append(_ event: AuditEvent) async throws(StoreError) {
        try await database.write { (connection) throws(StoreError) in connection.append(event) }
    }

    func events(
        app: AppID?, device: DeviceID?, before: Int64?, limit: Int
    ) async throws(StoreError) -> [RecordedAuditEvent] {
        try await database.chainAll()
        var conditions = ["sequence < $1"]
        var parameters: [Parameter] = [.integer(before ?? .max)]
        if let app {
            parameters.append(.text(app.text))
            conditions.append("app_id = $\(parameters.count)")
        }
        if let device {
            parameters.append(.text(device.text))
            conditions.append("device_id = $\(parameters.count)")
        }
        parameters.append(.integer(Int64(min(max(limit, 1), 1000))))
        let sql = """
            SELECT \(Self.columns) FROM audit WHERE \(conditions.joined(separator: " AND "))
            ORDER BY sequence DESC LIMIT $\(parameters.count)
            """
        let values = parameters
        return try await database.read { (connection) throws(StoreError) in
            try connection.rows(sql, values).rows.map { (row) throws(StoreError) in try RecordedAuditEvent(row: row) }
        }
    }

    func link(at sequence: Int64?) async throws(StoreError) -> AuditLink? {
        try await database.chainAll()
        return try await database.read { (connection) throws(StoreError) in
            let row =
                if let sequence {
                    try connection.row("SELECT sequence, hash FROM audit WHERE sequence = $1", [.integer(sequence)])
                } else {
                    try connection.row("SELECT sequence, hash FROM audit ORDER BY sequence DESC LIMIT 1")
                }
            guard let row else { return nil }
            return AuditLink(sequence: try row.integer("sequence"), hash: try row.bytes("hash"))
        }
    }

    func firstBrokenLink() async throws(StoreError) -> Int64? {
        try await database.chainAll()
        var link = AuditLink(sequence: 0, hash: AuditChain.origin)
        while true {
            let from = link
            let step = try await database.read { (connection) throws(StoreError) in
                try Self.follow(connection, from: from)
            }
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

    private static func follow(_ connection: isolated Connection, from start: AuditLink) throws(StoreError) -> Step {
        var link = start
        let rows = try connection.rows(
            "SELECT \(columns) FROM audit WHERE sequence > $1 ORDER BY sequence LIMIT $2",
            [.integer(start.sequence), .integer(step)])
        for row in rows.rows {
            // A row that cannot be read breaks the chain. It is not a failure of the store.
            guard let sequence = try? row.integer("sequence"), sequence == link.sequence + 1,
                let entry = try? AuditChain.Entry(row: row), let stored = try? row.bytes("hash")
            else { return .broken(link.sequence + 1) }
            let hash = AuditChain.hash(entry, after: link.hash)
            guard hash == stored else { return .broken(sequence) }
            link = AuditLink(sequence: sequence, hash: hash)
        }
        return link.sequence == start.sequence ? .end : .intact(link)
    }
}

extension Connection {
    /// Appends an event to the log, in the transaction of its change.
    func append(_ event: AuditEvent) {
        transaction?.hasEvents = true
        finally(
            Statement(
                """
                INSERT INTO audit_waiting (code, at, actor, app_id, device_id, detail) VALUES ($1, $2, $3, $4, $5, $6)
                """,
                [
                    .text(event.code.rawValue), .integer(event.at.seconds), .text(event.actor),
                    .text(event.appID?.text), .text(event.deviceID?.text), .text(event.detailText),
                ]))
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

extension JSONValue.Limits {
    /// Limits for text that this service wrote.
    static let stored = JSONValue.Limits(bytes: 1 << 20, depth: 64)
}

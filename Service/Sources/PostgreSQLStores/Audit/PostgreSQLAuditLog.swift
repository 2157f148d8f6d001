internal import AuthContract
internal import AuthService

/// The audit log: a table that triggers protect from changes, and a hash chain that reveals changes made despite the triggers.
struct PostgreSQLAuditLog: AuditLog {
    let database: StoreDatabase

    /// The number of events checked in one read.
    private static let step: Int64 = 2000
    private static let columns = "sequence, code, at, actor, app_id, device_id, detail, hash"

    func append(_ event: AuditEvent) async throws(StoreError) {
        try await database.write { (connection) throws(StoreError) in try connection.append(event) }
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
        try await database.chainAll()
        var conditions = ["sequence > $1 AND sequence < $2"]
        var parameters: [Parameter] = [.integer(after), .integer(before ?? .max)]
        if let app {
            parameters.append(.text(app.text))
            conditions.append("app_id = $\(parameters.count)")
        }
        if let device {
            parameters.append(.text(device.text))
            conditions.append("device_id = $\(parameters.count)")
        }
        if let codes {
            parameters.append(.texts(codes.map(\.rawValue)))
            conditions.append("code = ANY ($\(parameters.count))")
            if codes.areOfNoDevice { conditions.append("device_id IS NULL") }
        }
        parameters.append(.integer(Int64(min(max(limit, 1), 1000))))
        let sql = """
            SELECT \(Self.columns) FROM audit WHERE \(conditions.joined(separator: " AND "))
            ORDER BY sequence \(order) LIMIT $\(parameters.count)
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
            return if let row { try AuditLink(row: row) } else { nil }
        }
    }

    func firstBrokenLink() async throws(StoreError) -> Int64? {
        try await database.chainAll()
        return try await AuditChain.firstBrokenLink(from: { () async throws(StoreError) in
            try await database.read { (connection) throws(StoreError) in
                try AuditChain.Start(
                    archived: connection.lastArchivedLink(),
                    first: connection.row("SELECT sequence, hash FROM audit ORDER BY sequence LIMIT 1"))
            }
        }) { (link, archived) async throws(StoreError) in
            try await database.read { (connection) throws(StoreError) in
                let rows = try connection.rows(
                    "SELECT \(Self.columns) FROM audit WHERE sequence > $1 ORDER BY sequence LIMIT $2",
                    [.integer(link.sequence), .integer(Self.step)])
                return AuditChain.check(rows.rows, after: link, archived: archived)
            }
        }
    }
}

extension Connection {
    /// Appends an event to the log, in the transaction of its change.
    func append(_ event: AuditEvent) throws(StoreError) {
        let detail = try event.storedDetail()
        transaction?.hasEvents = true
        beforeCommit(
            Statement(
                """
                INSERT INTO audit_waiting (code, at, actor, app_id, device_id, detail) VALUES ($1, $2, $3, $4, $5, $6)
                """,
                [
                    .text(event.codeText), .integer(event.at.seconds), .text(event.actor),
                    .text(event.appID?.text), .text(event.deviceID?.text), .text(detail),
                ]))
    }
}

internal import AuthService

/// Statements that the stores run on a connection.
extension Connection {
    /// The first row of a statement; nil: there is none.
    func row(_ sql: String, _ parameters: [Parameter] = []) throws(StoreError) -> StoredRow? {
        try rows(sql, parameters).first
    }

    /// Whether a query has a row.
    func exists(_ sql: String, _ parameters: [Parameter]) throws(StoreError) -> Bool {
        try rows(sql, parameters).count > 0
    }

    /// Runs one statement and returns the number of changed rows. If rows changed, appends the event and notifies the other
    /// nodes.
    func change(
        _ sql: String, _ parameters: [Parameter], recording event: AuditEvent?, telling: Bool = true
    ) throws(StoreError) -> Int {
        let count = try rows(sql, parameters).changes
        guard count > 0 else { return 0 }
        if let event { try append(event) }
        if telling { tellOtherNodes() }
        return count
    }

    /// Notifies the other nodes at the commit that their cached rows may have changed.
    func tellOtherNodes() {
        guard transaction?.isTelling == false else { return }
        transaction?.isTelling = true
        beforeCommit(Statement("SELECT pg_notify('\(ExternalChanges.channel)', $1)", [.text(node.text)]))
    }
}

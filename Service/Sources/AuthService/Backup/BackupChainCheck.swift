/// Checks the chain of the audit log while its rows are read, and that it contains a head.
struct BackupChainCheck {
    private let head: AuditHead
    private var last = AuditLink(sequence: 0, hash: AuditChain.origin)
    private var hasHead: Bool

    init(head: AuditHead) {
        self.head = head
        hasHead = head.sequence == 0 && head.hash == AuditChain.origin
    }

    /// Checks a row of `StoredTable.audit`.
    mutating func add(_ cells: [StoredTable.Cell]) throws(BackupError) {
        let sequence = last.sequence + 1
        guard cells.count == 8, cells[0] == .integer(sequence), case .text(let code) = cells[1],
            case .integer(let at) = cells[2], case .text(let actor) = cells[3], case .text(let detail) = cells[6]
        else { throw broken(sequence) }
        let entry = AuditChain.Entry(
            sequence: sequence, code: code, at: at, actor: actor, appID: cells[4].text, deviceID: cells[5].text,
            detail: detail)
        let hash = AuditChain.hash(entry, after: last.hash)
        guard cells[7] == .bytes(hash) else { throw broken(sequence) }
        last = AuditLink(sequence: sequence, hash: hash)
        if sequence == head.sequence { hasHead = hash == head.hash }
    }

    /// Throws unless the rows had the head's event.
    func finish() throws(BackupError) {
        guard hasHead else {
            throw BackupError(.brokenAudit, "has an audit log that does not contain its head at event \(head.sequence)")
        }
    }

    private func broken(_ sequence: Int64) -> BackupError {
        BackupError(
            .brokenAudit, "has an audit log that is changed at event \(sequence): compare it with an earlier backup")
    }
}

extension StoredTable.Cell {
    fileprivate var text: String? { if case .text(let text) = self { text } else { nil } }
}

internal import AuthContract
internal import StrictJSON

/// Checks the chain of the audit log while its rows are read: that the archives connect to it, and that it contains a head.
///
/// The files of the archives are not read. `AuditTrail.verify(against:)` checks them.
struct BackupChainCheck {
    private let head: AuditHead
    private let key: ServiceKey
    /// The hash of the last event of each archive, by the event's number. Event 0 stands for the start of the chain.
    private var seams: [Int64: [UInt8]] = [0: AuditChain.origin]
    /// The number of the last archived event.
    private var archived: Int64 = 0
    private var seal: AuditHead?
    private var last: AuditLink?
    private var hasHead: Bool
    private var rotations: [JSONObject] = []

    init(head: AuditHead, key: ServiceKey) {
        (self.head, self.key) = (head, key)
        hasHead = head.sequence == 0 && head.hash == AuditChain.origin
    }

    /// Checks a row of `StoredTable.auditArchives`. These rows come before the events.
    mutating func add(archive cells: [StoredTable.Cell]) throws(BackupError) {
        guard last == nil, cells.count == 4, case .integer(let first) = cells[0], case .integer(let end) = cells[1],
            case .bytes(let hash) = cells[2], case .text(let text) = cells[3], first > 0, first - 1 == archived,
            end >= first, let seal = try? AuditHead(text), seal.kind == .archive, seal.sequence == end,
            seal.hash == hash
        else { throw brokenArchive }
        (archived, self.seal) = (end, seal)
        seams[end] = hash
    }

    /// Checks a row of `StoredTable.audit`.
    mutating func add(event cells: [StoredTable.Cell]) throws(BackupError) {
        let expected = (last?.sequence ?? archived).addingReportingOverflow(1).partialValue
        guard cells.count == 8, case .integer(let sequence) = cells[0], case .text(let code) = cells[1],
            case .integer(let at) = cells[2], case .text(let actor) = cells[3], case .text(let detail) = cells[6],
            case .bytes(let hash) = cells[7], hash.count == 32, sequence > 0, follows(sequence)
        else { throw broken(expected) }
        let entry = AuditChain.Entry(
            sequence: sequence, code: code, at: at, actor: actor, appID: cells[4].text, deviceID: cells[5].text,
            detail: detail)
        // The first row may be an archived event that was not removed yet. Then the previous hash is only in the archive's file,
        // and this row's hash is not checked here.
        if let before = last?.hash ?? seams[sequence - 1] {
            guard AuditChain.hash(entry, after: before) == hash else { throw broken(sequence) }
        }
        if let seam = seams[sequence], seam != hash { throw broken(sequence) }
        last = AuditLink(sequence: sequence, hash: hash)
        if sequence == head.sequence { hasHead = hash == head.hash }
        if code == AuditEvent.Code.serviceKeyRotated.rawValue,
            let rotation = (try? JSONValue(parsing: detail, limits: .stored))?.object
        {
            rotations.append(rotation)
        }
    }

    /// Throws unless the rows reach the last archived event and contain the head's event, and this service signed the last
    /// archive's seal.
    func finish() throws(BackupError) {
        guard archived <= last?.sequence ?? 0 else { throw broken(archived) }
        guard hasHead else {
            throw BackupError(.brokenAudit, "has an audit log that does not contain its head at event \(head.sequence)")
        }
        // Checking the last seal suffices: it covers all events before it. If the service key was rotated after this seal, the
        // rows have the rotation, which names the key of the seal. An earlier seal may need a rotation that is only in an
        // archive's file.
        if let seal, !isGenuine(seal) { throw brokenArchive }
    }

    /// Whether an event of this number may come next.
    private func follows(_ sequence: Int64) -> Bool {
        if let last { sequence - 1 == last.sequence } else { sequence - 1 <= archived }
    }

    private func isGenuine(_ seal: AuditHead) -> Bool {
        guard let present = try? AuditTrail.publicKeys(of: key) else { return false }
        if seal.isSigned(by: present) { return true }
        var former = FormerAuditKeys(before: present)
        for rotation in rotations.reversed() { former.add(rotation) }
        return seal.isSigned(by: former.keys)
    }

    private func broken(_ sequence: Int64) -> BackupError {
        BackupError(
            .brokenAudit, "has an audit log that is changed at event \(sequence): compare it with an earlier backup")
    }

    private var brokenArchive: BackupError {
        BackupError(
            .brokenAudit,
            "has archives of the audit log that are changed, do not join, or were not sealed by this service: "
                + "compare it with an earlier backup")
    }
}

extension StoredTable.Cell {
    fileprivate var text: String? { if case .text(let text) = self { text } else { nil } }
}

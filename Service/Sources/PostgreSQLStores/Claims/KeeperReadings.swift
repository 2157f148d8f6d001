internal import AuthService
internal import Bytes

/// Numbers this node's readings of the row that names the keeper of the claims (`KeeperTable`).
///
/// PostgreSQL stores the number of the node's last reading in `claim_nodes`. If the stored number is lower than one
/// that PostgreSQL acknowledged, its data went back to an earlier state: another copy of the database has its name or
/// address now, or a copy of the server was started without a promotion. Claims may be missing then, and the stored
/// identity of the server does not show it.
final class KeeperReadings: Sendable {
    private struct State: Sendable {
        var begun: Int64 = 0
        var acknowledged: (number: Int64, primary: PrimaryPlace?)?
    }

    let node: NodeID
    private let state = Locked(State())

    init(node: NodeID) { self.node = node }

    /// Returns the number of a reading of the keeper's row that begins now.
    func begin() -> Int64 {
        state.withLock { state in
            state.begun += 1
            return state.begun
        }
    }

    /// Records that a server has stored this node's reading with this number on its disk.
    func acknowledge(_ number: Int64, by primary: PrimaryPlace?) {
        state.withLock { state in
            if let known = state.acknowledged {
                // The answer of a former primary may come late.
                guard number > known.number, primary?.timeline ?? 0 >= known.primary?.timeline ?? 0 else { return }
            }
            state.acknowledged = (number, primary)
        }
    }

    /// The lowest number of a reading that a server may have stored for this node; 0: this server did not acknowledge the
    /// node's last reading.
    ///
    /// A promoted replica may lack the last readings. It is on a new timeline, which the stored identity of the server
    /// shows.
    func least(on primary: PrimaryPlace?) -> Int64 {
        state.withLock { state in
            guard let acknowledged = state.acknowledged, acknowledged.primary == primary else { return 0 }
            return acknowledged.number
        }
    }

    /// The statement that fails if this server's data went back to an earlier state.
    func requirement(on primary: PrimaryPlace?) -> Statement {
        Statement("SELECT require_claim_node($1::uuid, $2)", [.text(node.text), .integer(least(on: primary))])
    }

    /// Whether the server's data went back to an earlier state: the number of this node's last reading in `claim_nodes`
    /// is lower than one that this server acknowledged.
    func areAhead(of connection: isolated Connection) throws(StoreError) -> Bool {
        let row = try connection.row(
            "SELECT claims_went_back($1::uuid, $2) AS is_back",
            [.text(node.text), .integer(least(on: connection.place))])
        guard let row else { throw StoreError(.unreadable, "PostgreSQL does not say whether it went back") }
        return try row.bool("is_back")
    }
}

internal import AuthService

/// The last reading of the keeper's row by each node. By it, a node notices that PostgreSQL's data went back to an earlier state
/// (`KeeperReadings`).
extension Schema {
    static let claimNodes = [
        """
        CREATE TABLE claim_nodes (
          node uuid PRIMARY KEY,
          number bigint NOT NULL,
          read_at bigint NOT NULL
        )
        """,
        // Records a reading.
        """
        CREATE FUNCTION note_claim_node(asker uuid, turn bigint) RETURNS void LANGUAGE sql AS $$
          INSERT INTO claim_nodes AS known (node, number, read_at) VALUES (asker, turn, \(serverClock))
            ON CONFLICT (node) DO UPDATE SET number = greatest(known.number, excluded.number), read_at = excluded.read_at
        $$
        """,
        // Whether the data went back to an earlier state: a reading of the node `asker` that the server acknowledged is
        // missing. `lowest` is the number of the last acknowledged reading; 0 if there is none.
        """
        CREATE FUNCTION claims_went_back(asker uuid, lowest bigint) RETURNS boolean LANGUAGE sql STABLE AS $$
          SELECT lowest > 0 AND NOT EXISTS (SELECT 1 FROM claim_nodes WHERE node = asker AND number >= lowest)
        $$
        """,
        // Runs first in each transaction that makes claims. If the data went back to an earlier state, the function makes the
        // transaction fail, so that no claim and no tag (`ClaimTag`) is stored.
        """
        CREATE FUNCTION require_claim_node(asker uuid, lowest bigint) RETURNS void LANGUAGE plpgsql AS $$
        BEGIN
          IF claims_went_back(asker, lowest) THEN
            RAISE EXCEPTION 'it went back to an earlier state, and may have lost claims' USING ERRCODE = '\(wentBackState)';
          END IF;
        END $$
        """,
        // Reads the keeper's row for a node, renews the lease, and records the reading. If the data went back to an earlier state, the
        // reading is not recorded. The node then makes no claims here until it has named a new id (`KeeperTable.name`).
        """
        CREATE FUNCTION read_keeper_for_node(
          mine text, reading bigint, tolerance bigint, asker uuid, turn bigint, lowest bigint,
          OUT named text, OUT kept_in text, OUT renewed bigint, OUT present bigint, OUT marked bigint, OUT is_back boolean
        ) LANGUAGE plpgsql AS $$
        BEGIN
          SELECT kept.named, kept.kept_in, kept.renewed, kept.present, kept.marked
            INTO named, kept_in, renewed, present, marked FROM read_claim_history_id(mine, reading, tolerance) AS kept;
          is_back := claims_went_back(asker, lowest);
          IF mine IS NOT NULL AND NOT is_back THEN
            -- The commit need not wait for a replica: a promoted one is on a new timeline.
            PERFORM set_config('synchronous_commit', 'local', TRUE);
            PERFORM note_claim_node(asker, turn);
            IF lowest = 0 AND abs(reading - present) <= tolerance THEN
              -- The rows of nodes that stopped.
              DELETE FROM claim_nodes WHERE read_at < present - \(claimNodeLife);
            END IF;
          END IF;
        END $$
        """,
    ]

    /// The SQLSTATE of the error that `require_claim_node` raises.
    static let wentBackState = "SA001"

    /// Seconds for which a node's row is kept after the node's last reading: 30 days. A node that cannot reach PostgreSQL
    /// for longer treats the claims as lost.
    private static let claimNodeLife = 30 * 86_400
}

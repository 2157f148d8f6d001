internal import AuthService

/// The unclaimed end for a partition of a Redis Cluster whose server was replaced: the latest date of a request that was accepted
/// without a second claim. The id of the claims' history stays the same. `SecondClaim` explains why no request is accepted twice.
extension Schema {
    static let clusterParts = [
        // Until `unbound_until`, a part of a Redis Cluster has no unclaimed end, the latest date of a request without a
        // second claim. A node of the previous version may make claims with a clock reading that it took after it asked the
        // masters which server has the part, but `SecondClaim` requires an earlier reading.
        "ALTER TABLE claim_keeper ADD COLUMN unbound_until bigint NOT NULL DEFAULT 0",
        // Set `unbound_until`, because a node of the previous version may be running. If no node ever renewed the lease and no
        // device exists, no node has made a claim, so this is not needed.
        """
        UPDATE claim_keeper SET unbound_until = \(settlement)
          WHERE renewed_at IS NOT NULL OR EXISTS (SELECT 1 FROM devices)
        """,
        readingKeeper(as: "read_claim_history_id"),
        // Nodes of the previous version read the id of the claims' history by this function. So it sets `unbound_until` before they can
        // use the id.
        """
        CREATE OR REPLACE FUNCTION read_claim_keeper(
          mine text, reading bigint, tolerance bigint,
          OUT named text, OUT kept_in text, OUT renewed bigint, OUT present bigint, OUT marked bigint
        ) LANGUAGE plpgsql AS $$
        BEGIN
          SELECT kept.named, kept.kept_in, kept.renewed, kept.present, kept.marked
            INTO named, kept_in, renewed, present, marked FROM read_claim_history_id(mine, reading, tolerance) AS kept;
          IF kept_in = mine THEN
            PERFORM set_config('synchronous_commit', 'local', TRUE);
            UPDATE claim_keeper SET unbound_until = \(settlement)
              WHERE unbound_until < \(serverClock) + \(SecondClaim.settling)
                -- Such a node compares the clocks when it has the answer, and uses that up to a lease after it asked.
                AND abs(reading - \(serverClock)) <= tolerance + \(ClaimHistory.lease);
          END IF;
        END $$
        """,
        // Returns the latest date of the claims that are not in this database and were made before now, under this id or an
        // earlier one. Null if the date is not known, or if this id is not the current one. The function only locks the row, so
        // its commit need not wait for a replica.
        """
        CREATE FUNCTION unclaimed_end_of_part(present_id text) RETURNS bigint LANGUAGE plpgsql AS $$
        DECLARE
          latest bigint;
        BEGIN
          PERFORM set_config('synchronous_commit', 'off', TRUE);
          SELECT locked.unclaimed_end INTO latest FROM lock_claim_keeper(present_id) AS locked;
          -- In a statement of its own: it sees what was recorded while the one before waited for the row.
          IF EXISTS (SELECT 1 FROM claim_keeper WHERE unbound_until > \(serverClock)) THEN RETURN NULL; END IF;
          RETURN latest;
        END $$
        """,
        // Sets `settles_at`, until which PostgreSQL may lack second claims (`SecondClaim`): nodes may have made them in a
        // former primary until now. A primary that is promoted later records its own loss, so this record need not reach a
        // replica. If the server's clock may be wrong, nothing is recorded, because that clock may be years ahead. In that
        // case, returns how many seconds the node's clock is ahead of the server's.
        """
        CREATE FUNCTION settle_claim_keeper(reading bigint, tolerance bigint) RETURNS bigint LANGUAGE plpgsql AS $$
        DECLARE
          ahead bigint := reading - \(serverClock);
        BEGIN
          IF abs(ahead) > tolerance THEN RETURN ahead; END IF;
          PERFORM set_config('synchronous_commit', 'local', TRUE);
          UPDATE claim_keeper SET settles_at = \(settlement)
            WHERE settles_at < \(serverClock) + \(SecondClaim.settling);
          RETURN NULL;
        END $$
        """,
    ]

    /// SQL for a function by which nodes read the id of the claims' history and renew the keeper's lease.
    ///
    /// The node gets a reading of the clock as `marked`. Before that, the column `mark` has at least this value on the
    /// primary's disk, so a crash cannot lose the value before the row gets a later id. If the node's clock and the
    /// server's differ too much, the node makes no claims, and its call does not raise `mark`, which never decreases. The
    /// call does not record the server's start either, because the server's clock may be behind.
    static func readingKeeper(as name: String) -> String {
        """
        CREATE FUNCTION \(name)(
          mine text, reading bigint, tolerance bigint,
          OUT named text, OUT kept_in text, OUT renewed bigint, OUT present bigint, OUT marked bigint
        ) LANGUAGE plpgsql AS $$
        DECLARE
          raised bigint;
          agrees boolean;
        BEGIN
          present := \(serverClock);
          SELECT id, place, renewed_at, mark INTO named, kept_in, renewed, marked FROM claim_keeper;
          IF kept_in = mine
            AND (marked < present OR NOT coalesce(renewed BETWEEN present - 2 AND present, FALSE)) THEN
            PERFORM set_config('synchronous_commit', 'local', TRUE);
            agrees := abs(reading - present) <= tolerance;
            UPDATE claim_keeper SET renewed_at = present,
                mark = CASE WHEN agrees THEN greatest(mark, present) ELSE mark END,
                settles_at = CASE WHEN agrees AND server_start IS DISTINCT FROM pg_postmaster_start_time()
                  THEN greatest(settles_at, \(settlement)) ELSE settles_at END,
                server_start = CASE WHEN agrees THEN pg_postmaster_start_time() ELSE server_start END
              WHERE single IN (SELECT single FROM claim_keeper WHERE id = named FOR UPDATE SKIP LOCKED)
              RETURNING mark INTO raised;
          END IF;
          marked := least(coalesce(raised, marked), present);
        END $$
        """
    }
}

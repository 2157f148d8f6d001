internal import AuthService

/// The columns and functions for a failover to a replica that has every acknowledged commit.
extension Schema {
    static let losslessFailovers = [
        // Until `judged_at`, `take_claims` refuses every new request. The statements of this list lock no table except
        // `claim_history`.
        "ALTER TABLE claim_history ADD COLUMN judged_at bigint NOT NULL DEFAULT 0",
        // A call that repeats an earlier one waits for the replica, too. If only the wait of the earlier call was cancelled, the
        // primary has its claims, but a replica may lack them.
        taking(
            "take_claims", tag: "tag uuid DEFAULT NULL", if: keptElsewhere, repeating: waiting,
            judging: """
                -- A clock that fell back further is a loss, and no longer wait.
                  IF history.judged_at - \(serverClock) BETWEEN 1 AND \(ClaimHistory.lease + ClockHistory.tolerance) THEN
                    outcome := 'lost';
                    number := history.judged_at - \(serverClock);
                    RETURN;
                  END IF;

                """),
        taking("take_second_claims", tag: "tag uuid", if: mayLackSecondClaims, repeating: waiting),
        // Whether the server with the identity `present` continues the history of the server with the identity `former`: only the
        // timeline changed, to a later one.
        """
        CREATE FUNCTION is_promoted(former text, present text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
          SELECT regexp_replace(former, ':[^:]*', '') = regexp_replace(present, ':[^:]*', '')
            AND split_part(former, ':', 2) COLLATE "C" < split_part(present, ':', 2) COLLATE "C"
        $$
        """,
        // Updates the recorded identity of the server, for a node that made the claims `made` on earlier timelines, up to
        // `timeline`. The former primary acknowledged the commit of each claim. Returns the outcome:
        //
        // - `kept`: this node is the first to use a promoted replica, and found its claims there. The other nodes have the time
        //   of a lease to look for their claims, and no request is judged until then.
        // - `missing`: the server lacks at least one of these claims, so all claims are treated as lost.
        // - `lost`: the identity changed in another way. Claims may be lost: this node cannot exclude a loss if, for example, it
        //   has no live claim from the former primary's timeline to look for. Or another store became the keeper, which is no
        //   loss.
        // - `clock`: the node's clock is too far from the server's, by `number` seconds. Nothing changed.
        // - null: the identity did not change. If the server's clock fell back, a loss was recorded.
        """
        CREATE FUNCTION renew_claims(
          reading bigint, tolerance bigint, made uuid[], timeline bigint, OUT outcome text, OUT number bigint
        ) LANGUAGE plpgsql AS $$
        DECLARE
          former record;
          here text;
          present bigint;
        BEGIN
          SELECT * INTO former FROM claim_history FOR UPDATE;
          -- Read once, after the wait for the row.
          here := claim_identity();
          present := \(serverClock);
          IF abs(reading - present) > tolerance THEN
            outcome := 'clock';
            number := reading - present;
            RETURN;
          END IF;
          IF EXISTS (SELECT 1 FROM unnest(made) AS one WHERE one NOT IN (SELECT claim FROM claims WHERE claim = ANY (made))) THEN
            -- Claims of another identity are those of another server: all are lost.
            UPDATE claim_history SET identity = '', judged_at = 0;
            PERFORM note_claim_loss(reading);
            outcome := 'missing';
          ELSIF cardinality(made) > 0 AND is_promoted(former.identity, here)
            AND timeline = ('x' || split_part(former.identity, ':', 2))::bit(32)::bigint
            AND former.clock <= present + \(ClockHistory.tolerance)
            AND (SELECT place FROM claim_keeper) = \(Schema.here)
          THEN
            UPDATE claim_history AS history SET identity = here, clock = greatest(history.clock, present),
              judged_at = present + \(ClaimHistory.lease);
            outcome := 'kept';
          ELSE
            PERFORM renew_claims(reading);
            outcome := (SELECT 'lost' FROM claim_history WHERE identity <> former.identity);
          END IF;
        END $$
        """,
    ]

    /// Makes the commit wait for the replica, also if nothing changed. Every database user may call `pg_logical_emit_message`.
    private static let waiting = "PERFORM pg_logical_emit_message(TRUE, 'synheart-auth', '');\n    "
}

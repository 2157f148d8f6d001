internal import AuthService

/// A failover to a replica that has every acknowledged commit.
extension Schema {
    static let losslessFailovers = [
        // A call that repeats an earlier one waits for the replica, too. If only the wait of the earlier one was cancelled, the primary
        // has its claims and no replica may have them.
        taking(
            "take_claims", tag: "tag uuid DEFAULT NULL", if: keptElsewhere,
            repeating: "PERFORM pg_logical_emit_message(TRUE, 'synheart-auth', '');\n    "),
        // Whether this server continues the history of a replica's former primary: nothing but the timeline changed.
        """
        CREATE FUNCTION is_promoted(former text) RETURNS boolean LANGUAGE sql STABLE AS $$
          SELECT regexp_replace(former, ':[^:]*', '') = regexp_replace(present, ':[^:]*', '')
            AND split_part(former, ':', 2) COLLATE "C" < split_part(present, ':', 2) COLLATE "C"
          FROM claim_identity() AS present
        $$
        """,
        // `renew_claims` of a node that made these claims on earlier timelines and got the answer to each commit. Returns what it found:
        //
        // - `kept`: the first to meet a promoted replica, it found its claims there. The other nodes have the time of a lease to look for
        //   theirs, and no request is judged until then.
        // - `missing`: the server lacks one of them, and may lack more. All claims count as lost.
        // - `lost`: another loss, or one that this node cannot exclude, because it made no claim that is still live.
        // - null: nothing changed.
        """
        CREATE FUNCTION renew_claims(reading bigint, made uuid[]) RETURNS text LANGUAGE plpgsql AS $$
        DECLARE
          present bigint := \(serverClock);
          former record;
        BEGIN
          SELECT * INTO former FROM claim_history FOR UPDATE;
          IF EXISTS (SELECT 1 FROM unnest(made) AS one WHERE one NOT IN (SELECT claim FROM claims WHERE claim = ANY (made))) THEN
            -- Claims of another identity are those of another server: all are lost.
            UPDATE claim_history SET identity = '';
            PERFORM note_claim_loss(reading);
            RETURN 'missing';
          END IF;
          IF cardinality(made) > 0 AND is_promoted(former.identity) AND former.clock <= present + \(ClockHistory.tolerance) THEN
            UPDATE claim_history AS history SET identity = claim_identity(), clock = greatest(history.clock, present),
              \(closing(to: "present + \(ClaimHistory.lease)"));
            RETURN 'kept';
          END IF;
          PERFORM renew_claims(reading);
          RETURN (SELECT 'lost' FROM claim_history WHERE identity <> former.identity);
        END $$
        """,
    ]
}

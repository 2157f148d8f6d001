internal import AuthService

/// PostgreSQL becomes the keeper in place of a Redis, and refuses only the dates up to the unclaimed end: the latest date of a
/// request that was accepted without a second claim. `SecondClaim` explains why no request is accepted twice.
extension Schema {
    static let keeperHere = [
        // This statement is the first, because calls that make claims lock this table before `claim_keeper`. The columns hold the
        // first and the last date that are refused, whatever the app's future window is. Null: they refuse no date.
        "ALTER TABLE claim_history ADD COLUMN closed_from bigint, ADD COLUMN closed_to bigint",
        // Since `unbroken_since`, no gap between two renewals of the lease was longer than `ClaimHistory.lease`.
        "ALTER TABLE claim_keeper ADD COLUMN unbroken_since bigint NOT NULL DEFAULT 0",
        // Gaps were not recorded until now, so set `unbroken_since` to the present. If no node ever renewed the lease and no
        // device exists, no claim was made, so the column keeps 0.
        """
        UPDATE claim_keeper SET unbroken_since = \(serverClock)
          WHERE renewed_at IS NOT NULL OR EXISTS (SELECT 1 FROM devices)
        """,
        // A trigger, because nodes of the previous version renew the lease and name ids by statements of their own.
        """
        CREATE FUNCTION break_claim_keeper() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          NEW.unbroken_since := NEW.renewed_at;
          RETURN NEW;
        END $$
        """,
        """
        CREATE TRIGGER gaps_break_the_lease BEFORE UPDATE OF renewed_at ON claim_keeper
          FOR EACH ROW WHEN (NEW.renewed_at NOT BETWEEN OLD.renewed_at AND OLD.renewed_at + \(ClaimHistory.lease))
          EXECUTE FUNCTION break_claim_keeper()
        """,
        // Records the loss of the claims in the Redis: refuses the dates up to `unclaimed_end`. The caller passes the
        // `unclaimed_end` of `lock_claim_keeper`, before the row gets the new id. Returns whether the function recorded the
        // loss. If not, the first call under the new id records the loss with its whole interval (`note_claim_loss`). This
        // function must not record the whole interval: a commit may take long, and nodes use the Redis until the commit and
        // for a lease after it. The unclaimed end stays correct, because no node gets a later mark meanwhile.
        //
        // If the server's clock jumped ahead, no node's clock agrees with it. So no node sweeps, and no run in
        // `claim_history` reaches the clock's new time. A run is a time without a gap between clock readings. This function
        // must not record a reading of such a clock. Otherwise, when the clock is corrected, the recorded loss would reach
        // from the run before the jump to that reading.
        //
        // No claim in this database is lost, so the runs stay. The column `keeper` of `claim_history` stays too, so that a
        // later loss also covers the time in which nodes could still use the Redis.
        """
        CREATE FUNCTION keep_claims_here(named text, unclaimed_end bigint) RETURNS boolean LANGUAGE plpgsql AS $$
        DECLARE
          present bigint := \(serverClock);
          former record;
        BEGIN
          SELECT place, renewed_at, unbroken_since, (SELECT runs_to[cardinality(runs_to)] FROM claim_history) AS swept_at
            INTO former FROM claim_keeper;
          IF NOT coalesce(
            former.place <> \(here)
              AND former.renewed_at BETWEEN present - \(ClaimHistory.lease) AND present
              AND former.unbroken_since + \(SecondClaim.settling) <= present
              AND former.swept_at BETWEEN present - \(ClaimTable.gap) AND present
              AND unclaimed_end < present + \(ClaimHistory.clockTolerance + ClaimHistory.lease), FALSE)
          THEN RETURN FALSE; END IF;
          UPDATE claim_history AS history SET identity = regexp_replace(claim_identity(), '[^:]*$', named),
            clock = greatest(history.clock, present),
            purged_to = greatest(history.purged_to, present - \(ClaimHistory.clockTolerance)),
            closed_from = CASE WHEN history.closed_to >= present - \(lossBefore + 1)
              THEN least(history.closed_from, present - \(lossBefore)) ELSE present - \(lossBefore) END,
            closed_to = greatest(history.closed_to, unclaimed_end);
          RETURN TRUE;
        END $$
        """,
        taking("take_claims", tag: "tag uuid DEFAULT NULL", if: keptElsewhere),
        taking("take_second_claims", tag: "tag uuid", if: mayLackSecondClaims),
    ]

    /// SQL that refuses a call if another store keeps the claims. It ends with an `IF` whose condition holds if this database may
    /// lack claims.
    static let keptElsewhere = """
        SELECT place INTO keeper FROM claim_keeper;
          IF keeper.place IS DISTINCT FROM \(here) THEN
            outcome := 'elsewhere';
            RETURN;
          END IF;
          IF history.identity IS DISTINCT FROM claim_identity() THEN
        """

    /// An `IF` whose condition holds if this database may lack second claims.
    static let mayLackSecondClaims = "IF claim_identity() NOT IN (history.identity, \(identityElsewhere)) THEN"

    /// The current version of a function that makes claims. Unlike the earlier version, it also refuses the dates from
    /// `closed_from` to `closed_to`.
    ///
    /// - Parameters:
    ///   - name: its name.
    ///   - tag: its last parameter.
    ///   - lacks: SQL that ends with an `IF` whose condition holds if this database may lack claims.
    ///   - repeating: statements for a call whose claims an earlier call with the same tag made.
    ///   - judging: statements for every other call, which run before it is judged.
    static func taking(
        _ name: String, tag: String, if lacks: String, repeating: String = "", judging: String = ""
    ) -> String {
        """
        CREATE OR REPLACE FUNCTION \(name)(
          wanted uuid[], stamp bigint, expiry bigint, clock bigint, future bigint, tolerance bigint,
          \(tag), OUT outcome text, OUT number bigint
        ) LANGUAGE plpgsql AS $$
        DECLARE
          history record;
          keeper record;
          taken bigint;
          is_repeated boolean;
          next bigint := stamp;
          last bigint;
          ahead bigint := clock - \(serverClock);
        BEGIN
          IF abs(ahead) > tolerance THEN
            outcome := 'clock';
            number := ahead;
            RETURN;
          END IF;
          SELECT min(place_of.place) INTO taken FROM unnest(wanted) WITH ORDINALITY AS place_of (value, place)
            WHERE EXISTS (SELECT 1 FROM claims WHERE claim = place_of.value AND expires_at > clock);
          is_repeated := tag IS NOT NULL
            AND EXISTS (SELECT 1 FROM claims WHERE claim = tag AND expires_at > clock);
          SELECT * INTO history FROM claim_history;
          \(lacks)
            outcome := 'unknown';
            RETURN;
          END IF;
          IF is_repeated THEN
            \(repeating)outcome := 'claimed';
            RETURN;
          END IF;
          \(judging)LOOP
            SELECT max(lost.last) INTO last FROM (
                SELECT part.first, part.last + greatest(future, \(ClaimHistory.leastWindow))
                  FROM unnest(history.lost_from, history.lost_to) AS part (first, last)
                UNION ALL SELECT history.closed_from, history.closed_to
              ) AS lost (first, last)
              WHERE lost.first <= next AND next <= lost.last;
            EXIT WHEN last IS NULL;
            next := last + 1;
          END LOOP;
          IF next > stamp THEN
            outcome := 'lost';
            number := next - stamp;
          ELSIF expiry <= clock OR expiry <= history.purged_to THEN
            outcome := 'expired';
          ELSIF taken IS NOT NULL THEN
            outcome := 'taken';
            number := taken - 1;
          ELSIF history.is_full THEN
            outcome := 'full';
          ELSIF NOT insert_claims(wanted, expiry) THEN
            outcome := 'far';
          ELSE
            outcome := 'claimed';
            IF tag IS NOT NULL THEN
              PERFORM insert_claims(ARRAY[tag], clock + \(ClaimTag.life));
            END IF;
          END IF;
        END $$
        """
    }
}

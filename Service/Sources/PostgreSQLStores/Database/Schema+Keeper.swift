internal import AuthService

/// The keeper of the claims' history, and the functions that depend on it.
extension Schema {
    /// PostgreSQL's name as the keeper, in SQL. All statements use this one text, because another text would name another keeper.
    static let here = "'\(ClaimPlace.postgresql)'"

    private static let keeperLease = """
        CASE WHEN history.keeper IS DISTINCT FROM (SELECT id FROM claim_keeper) THEN \(ClaimHistory.lease) ELSE 0 END
        """
    private static let notingKeeper = ", keeper = (SELECT id FROM claim_keeper)"

    /// Replaces `note_claim_loss`, so that a loss covers all claims.
    ///
    /// The dates since the clock's last jump are refused, because the readings since then may turn out to be wrong.
    /// `purged_to` is set too, because the expired claims are also lost: if the clock steps back, their requests must be
    /// refused.
    static let totalLosses = [
        noteClaimLoss(
            lease: keeperLease, noting: notingKeeper,
            first: "least(history.clock, history.runs_from[cardinality(history.runs_from)])",
            purgedTo: """
                CASE WHEN history.identity IS DISTINCT FROM claim_identity()
                  THEN least(reading, present) - \(ClaimHistory.clockTolerance) ELSE \(purgedToAfterFall) END
                """)
    ]

    static let keeper = [
        // The keeper's id when a loss was last recorded. If the id has changed since, nodes may have used another keeper.
        "ALTER TABLE claim_history ADD COLUMN keeper text",
        // A node sets `renewed_at` to show that it uses the keeper.
        """
        CREATE TABLE claim_keeper (
          single boolean PRIMARY KEY DEFAULT TRUE CHECK (single),
          id text COLLATE "C" NOT NULL,
          place text,
          renewed_at bigint
        )
        """,
        // A database that kept its own claims stays the keeper. In a new database, the store of any node may become the keeper at once.
        """
        INSERT INTO claim_keeper (id, place, renewed_at)
          SELECT replace(gen_random_uuid()::text, '-', ''), CASE WHEN identity = claim_identity() THEN \(here) END,
            CASE WHEN EXISTS (SELECT 1 FROM devices) THEN \(serverClock) END
          FROM claim_history
        """,
        // The keeper's id changes whenever the keeper's history may start anew. The identity of the claims contains the id,
        // so the identity changes too.
        """
        CREATE OR REPLACE FUNCTION claim_identity() RETURNS text LANGUAGE sql STABLE AS $$
          SELECT concat_ws(':', (pg_control_system()).system_identifier,
            left(pg_walfile_name(pg_current_wal_lsn()), 8),
            (SELECT oid FROM pg_database WHERE datname = current_database()), 'claims'::regclass::oid,
            CASE WHEN current_setting('fsync') = 'off' OR current_setting('full_page_writes') = 'off'
              THEN pg_postmaster_start_time()::text END,
            (SELECT CASE place WHEN \(here) THEN id ELSE 'elsewhere' END FROM claim_keeper))
        $$
        """,
        """
        UPDATE claim_history SET identity = claim_identity(), keeper = id FROM claim_keeper WHERE place = \(here)
        """,
        noteClaimLoss(lease: keeperLease, noting: notingKeeper),
        // Losing a renewal of the lease does no harm, so a renewal waits neither for a replica nor for another node's renewal.
        """
        CREATE FUNCTION read_claim_keeper(
          mine text, OUT named text, OUT kept_in text, OUT renewed bigint, OUT present bigint
        ) LANGUAGE plpgsql AS $$
        BEGIN
          present := \(serverClock);
          SELECT id, place, renewed_at INTO named, kept_in, renewed FROM claim_keeper;
          IF kept_in = mine AND NOT coalesce(renewed BETWEEN present - 2 AND present, FALSE) THEN
            PERFORM set_config('synchronous_commit', 'off', TRUE);
            UPDATE claim_keeper SET renewed_at = present
              WHERE single IN (SELECT single FROM claim_keeper WHERE id = named FOR UPDATE SKIP LOCKED);
          END IF;
        END $$
        """,
        // The new function has a tag as its last parameter. Nodes of the previous version call it without one.
        "DROP FUNCTION take_claims(uuid[], bigint, bigint, bigint, bigint, bigint)",
        // A node with a wrong clock writes nothing: its claims would occupy tables that the other nodes need.
        //
        // The function reads the tables first, which prevents their truncation, so `purged_to` is consistent with the rows.
        """
        CREATE FUNCTION take_claims(
          wanted uuid[], stamp bigint, expiry bigint, clock bigint, future bigint, tolerance bigint,
          tag uuid DEFAULT NULL, OUT outcome text, OUT number bigint
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
          SELECT place INTO keeper FROM claim_keeper;
          IF keeper.place IS DISTINCT FROM \(here) THEN
            outcome := 'elsewhere';
            RETURN;
          END IF;
          IF history.identity IS DISTINCT FROM claim_identity() THEN
            outcome := 'unknown';
            RETURN;
          END IF;
          IF is_repeated THEN
            outcome := 'claimed';
            RETURN;
          END IF;
          LOOP
            SELECT max(lost.last + greatest(future, \(ClaimHistory.leastWindow))) INTO last
              FROM unnest(history.lost_from, history.lost_to) AS lost (first, last)
              WHERE lost.first <= next AND next <= lost.last + greatest(future, \(ClaimHistory.leastWindow));
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
        """,
        // Inserts claims into the table of their expiry; false: the table holds claims of another stretch of time.
        """
        CREATE FUNCTION insert_claims(wanted uuid[], expiry bigint) RETURNS boolean LANGUAGE plpgsql AS $$
        DECLARE
          place bigint := (expiry / \(ClaimTable.stretch)) % \(ClaimTable.slots);
          known bigint;
        BEGIN
          SELECT stretch INTO known FROM claim_slots WHERE slot = place;
          IF known IS NULL THEN
            UPDATE claim_slots SET stretch = expiry / \(ClaimTable.stretch) WHERE slot = place AND stretch IS NULL;
            SELECT stretch INTO known FROM claim_slots WHERE slot = place;
          END IF;
          IF known IS DISTINCT FROM expiry / \(ClaimTable.stretch) THEN RETURN FALSE; END IF;
          INSERT INTO claims (slot, claim, expires_at)
            SELECT DISTINCT place, value, expiry FROM unnest(wanted) AS value
            ON CONFLICT (claim, slot) DO UPDATE SET expires_at = excluded.expires_at;
          RETURN TRUE;
        END $$
        """,
    ]
}

internal import AuthService

/// Second claims, which nodes make in PostgreSQL in addition to the claims in Redis (`SecondClaim`): the columns of `claim_keeper` and the
/// functions for them.
extension Schema {
    static let secondClaims = [
        // `mark` is the latest reading of the server's clock that a node may have used. It never decreases. Until `settles_at`,
        // PostgreSQL may lack second claims: a node of an older version, which makes none, may have accepted requests dated ahead,
        // or the server may have started from an earlier state of its files. `server_start` is the start for which `settles_at` was
        // last recorded. `ruled_id` is the last id that a node named whose version makes second claims.
        """
        ALTER TABLE claim_keeper ADD COLUMN mark bigint NOT NULL DEFAULT 0,
          ADD COLUMN settles_at bigint NOT NULL DEFAULT 0, ADD COLUMN ruled_id text COLLATE "C",
          ADD COLUMN server_start timestamptz
        """,
        // Records the server's present start, so that nodes do not set `settles_at` for it. Files can be replaced by an earlier state only
        // while the server is stopped, and no second claim was made before this migration. So this start lost no second claim.
        "UPDATE claim_keeper SET server_start = pg_postmaster_start_time()",
        // Set `settles_at`, because a node of the previous version may be running. If no node ever renewed the lease and no
        // device exists, no node has made a claim, so this is not needed.
        """
        UPDATE claim_keeper SET settles_at = \(settlement)
          WHERE renewed_at IS NOT NULL OR EXISTS (SELECT 1 FROM devices)
        """,
        // Nodes of the previous version read the id by this function. It raises `settles_at` before they get the id, so a later replacement
        // of the id sees the raised value. If `settles_at` is already late enough, the function does not raise it.
        """
        CREATE OR REPLACE FUNCTION read_claim_keeper(
          mine text, OUT named text, OUT kept_in text, OUT renewed bigint, OUT present bigint
        ) LANGUAGE plpgsql AS $$
        DECLARE
          settles bigint;
        BEGIN
          present := \(serverClock);
          SELECT id, place, renewed_at, settles_at INTO named, kept_in, renewed, settles FROM claim_keeper;
          IF kept_in = mine AND settles < present + \(SecondClaim.settling) THEN
            PERFORM set_config('synchronous_commit', 'local', TRUE);
            UPDATE claim_keeper SET renewed_at = present, settles_at = greatest(settles_at, \(settlement))
              RETURNING id, place INTO named, kept_in;
          ELSIF kept_in = mine AND NOT coalesce(renewed BETWEEN present - 2 AND present, FALSE) THEN
            PERFORM set_config('synchronous_commit', 'off', TRUE);
            UPDATE claim_keeper SET renewed_at = present
              WHERE single IN (SELECT single FROM claim_keeper WHERE id = named FOR UPDATE SKIP LOCKED);
          END IF;
        END $$
        """,
        // Nodes of the previous version set a new id by an UPDATE, and make claims under it at once. The trigger records that in
        // `settles_at`.
        """
        CREATE FUNCTION unsettle_claim_keeper() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          NEW.settles_at := greatest(OLD.settles_at, \(settlement));
          RETURN NEW;
        END $$
        """,
        """
        CREATE TRIGGER unruled_ids_unsettle BEFORE UPDATE OF id ON claim_keeper
          FOR EACH ROW WHEN (NEW.id <> OLD.id AND NEW.ruled_id IS DISTINCT FROM NEW.id)
          EXECUTE FUNCTION unsettle_claim_keeper()
        """,
        readingKeeper(as: "read_claim_keeper"),
        // Locks the row before a new id is named in it. `marked` is null if another process has named an id in place of `old`.
        // `unclaimed_end` is a date: every claim that is dated later and was made under `old` or an earlier id is in this
        // database. It is null if no such date is known.
        """
        CREATE FUNCTION lock_claim_keeper(
          old text, OUT before text, OUT marked bigint, OUT unclaimed_end bigint
        ) LANGUAGE plpgsql AS $$
        DECLARE
          keeper record;
          history record;
          present bigint;
        BEGIN
          SELECT * INTO keeper FROM claim_keeper WHERE id = old FOR UPDATE;
          IF NOT FOUND THEN RETURN; END IF;
          -- Read after the row was locked, so no node gets a later mark under the old id.
          present := \(serverClock);
          before := keeper.place;
          marked := greatest(keeper.mark, present);
          SELECT * INTO history FROM claim_history;
          IF keeper.settles_at <= present AND keeper.server_start = pg_postmaster_start_time()
            AND claim_identity() IN (history.identity, \(identityElsewhere))
            AND history.clock <= present + \(ClockHistory.tolerance)
            AND NOT EXISTS (
              SELECT FROM unnest(history.lost_from, history.lost_to) AS lost (first, last)
              WHERE lost.first <= present + \(SecondClaim.settling) AND lost.last + \(SecondClaim.settling) > present)
          THEN
            unclaimed_end := marked + \(ClaimHistory.leastWindow);
          END IF;
        END $$
        """,
        // If another store becomes the keeper, no claim in this database is lost. The loss is recorded when PostgreSQL becomes the
        // keeper again: only then are the other store's claims missing.
        """
        CREATE OR REPLACE FUNCTION renew_claims(reading bigint) RETURNS void LANGUAGE plpgsql AS $$
        BEGIN
          UPDATE claim_history AS history SET identity = claim_identity()
            WHERE identity <> claim_identity() AND \(identityElsewhere) = claim_identity();
          PERFORM 1 FROM claim_history
            WHERE identity IS DISTINCT FROM claim_identity() OR clock > \(serverClock) + \(ClockHistory.tolerance)
            FOR UPDATE;
          IF FOUND THEN PERFORM note_claim_loss(reading); END IF;
        END $$
        """,
        // `take_claims` without the check of which store is the keeper. Both functions use the same tables with the same size
        // limit, and the same sweep frees them.
        """
        CREATE FUNCTION take_second_claims(
          wanted uuid[], stamp bigint, expiry bigint, clock bigint, future bigint, tolerance bigint,
          tag uuid, OUT outcome text, OUT number bigint
        ) LANGUAGE plpgsql AS $$
        DECLARE
          history record;
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
          IF claim_identity() NOT IN (history.identity, \(identityElsewhere)) THEN
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
    ]

    /// The recorded identity with `elsewhere` in place of the keeper's id, as it is while another store is the keeper.
    static let identityElsewhere = "regexp_replace(history.identity, '[^:]*$', 'elsewhere')"

    /// The end of the settling time (`SecondClaim.settling`) that begins now, plus 10 s. Because of the 10 s, reads of
    /// the id by nodes of the previous version record a new end at most every 10 s. After a start of the server, the
    /// first node that reads the id records the end once.
    static let settlement = "\(serverClock) + \(SecondClaim.settling + 10)"
}

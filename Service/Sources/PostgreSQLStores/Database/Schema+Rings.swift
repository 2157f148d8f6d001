internal import AuthService

/// Rows that live for minutes: rings of tables that are emptied one at a time.
extension Schema {
    /// Evicts expired challenges first, which are kept only to explain their refusal.
    static let expiredChallengesFirst = [
        evictChallenges(
            "CREATE OR REPLACE", "expires_at >= extract(epoch FROM clock_timestamp()), place DESC, expires_at")
    ]

    /// A function that, if there are more than `most` challenges, evicts those beyond `most`, and `slack` more, in this order. `place` is 1 for
    /// the newest challenge of a source.
    private static func evictChallenges(_ creation: String, _ order: String) -> String {
        """
        \(creation) FUNCTION evict_challenges(most bigint, slack bigint) RETURNS bigint LANGUAGE plpgsql AS $$
        DECLARE
          excess bigint;
          evicted bigint;
        BEGIN
          IF NOT pg_try_advisory_xact_lock(\(AdvisoryLock.challenges.keys)) THEN RETURN 0; END IF;
          SELECT count(*) - most INTO excess FROM challenges;
          IF excess <= 0 THEN RETURN 0; END IF;
          DELETE FROM challenges WHERE challenge IN (
            SELECT challenge FROM (
              SELECT challenge, expires_at,
                row_number() OVER (PARTITION BY source ORDER BY expires_at DESC, challenge) AS place
              FROM challenges) AS placed
            ORDER BY \(order) LIMIT excess + slack);
          GET DIAGNOSTICS evicted = ROW_COUNT;
          RETURN evicted;
        END $$
        """
    }

    /// Challenges, in a ring of tables by their expiry. A table is truncated when all its challenges have expired.
    ///
    /// The tables are unlogged. A crash empties them, and clients ask for new challenges. With logged tables and an
    /// asynchronous commit, a crash could restore a challenge that was taken.
    static let challenges =
        [
            """
            CREATE TABLE challenges (
              slot bigint NOT NULL,
              challenge bytea NOT NULL,
              app_id text NOT NULL,
              purpose text NOT NULL,
              expires_at bigint NOT NULL,
              source text COLLATE "C" NOT NULL
            ) PARTITION BY LIST (slot)
            """
        ]
        + (0..<slots).map { "CREATE UNLOGGED TABLE challenges_\($0) PARTITION OF challenges FOR VALUES IN (\($0))" } + [
            "CREATE INDEX challenges_by_value ON challenges (challenge)",
            // Each evicted challenge is the oldest one of the source that has the most challenges left.
            evictChallenges("CREATE", "place DESC, expires_at"),
            """
            CREATE FUNCTION purge_challenges(clock bigint) RETURNS void LANGUAGE plpgsql AS $$
            DECLARE
              cutoff bigint := least(clock, extract(epoch FROM clock_timestamp())::bigint)
                - \(ChallengeTable.keptAfterExpiry);
              newest bigint;
            BEGIN
              IF NOT pg_try_advisory_xact_lock(\(AdvisoryLock.challenges.keys)) THEN RETURN; END IF;
              FOR slot IN 0..\(slots - 1) LOOP
                EXECUTE format('SELECT max(expires_at) FROM challenges_%s', slot) INTO newest;
                IF newest < cutoff THEN EXECUTE format('TRUNCATE challenges_%s', slot); END IF;
              END LOOP;
            EXCEPTION WHEN lock_not_available THEN
              -- A long transaction reads the tables, such as that of pg_dump. A later sweep removes them.
              RETURN;
            END $$
            """,
        ]

    /// Replay claims, in a ring of tables by their expiry. `ClaimTable` describes what the functions guarantee.
    static let claims =
        [
            """
            CREATE TABLE claims (
              slot bigint NOT NULL,
              claim uuid NOT NULL,
              expires_at bigint NOT NULL,
              PRIMARY KEY (claim, slot)
            ) PARTITION BY LIST (slot)
            """
        ] + (0..<slots).map { "CREATE TABLE claims_\($0) PARTITION OF claims FOR VALUES IN (\($0))" } + [
            // The range of expiry times that a table of the ring currently has; NULL: the table is free. `left_at` is the last
            // time at which expired rows could not be removed; NULL: there are no such rows.
            "CREATE TABLE claim_slots (slot bigint PRIMARY KEY, stretch bigint, left_at bigint)",
            "INSERT INTO claim_slots (slot) SELECT generate_series(0, \(slots - 1))",
            // The claims that may be missing from the tables: claims that expire no later than `purged_to`, and claims dated from
            // `lost_from` to `lost_to` plus an app's future window. `clock` is the latest reading of the server's clock. The
            // runs are the times without a gap between readings.
            """
            CREATE TABLE claim_history (
              single boolean PRIMARY KEY DEFAULT TRUE CHECK (single),
              identity text NOT NULL,
              clock bigint NOT NULL,
              purged_to bigint NOT NULL,
              lost_from bigint[] NOT NULL DEFAULT '{}',
              lost_to bigint[] NOT NULL DEFAULT '{}',
              runs_from bigint[] NOT NULL DEFAULT '{}',
              runs_to bigint[] NOT NULL DEFAULT '{}',
              is_full boolean NOT NULL DEFAULT FALSE
            )
            """,
            // The identity of the server and its tables. If it changes, claims may be missing: another server is used, a replica
            // was promoted, a dump was restored, or a server that does not write its log to the disk was restarted.
            """
            CREATE FUNCTION claim_identity() RETURNS text LANGUAGE sql STABLE AS $$
              SELECT concat_ws(':', (pg_control_system()).system_identifier,
                left(pg_walfile_name(pg_current_wal_lsn()), 8),
                (SELECT oid FROM pg_database WHERE datname = current_database()), 'claims'::regclass::oid,
                CASE WHEN current_setting('fsync') = 'off' OR current_setting('full_page_writes') = 'off'
                  THEN pg_postmaster_start_time()::text END)
            $$
            """,
            "INSERT INTO claim_history (identity, clock, purged_to) VALUES (claim_identity(), 0, 0)",
            // A node with a wrong clock writes nothing: its claims would occupy tables that the other nodes need.
            //
            // The function reads the tables first, which prevents their truncation, so `purged_to` is consistent with the rows.
            """
            CREATE FUNCTION take_claims(
              wanted uuid[], stamp bigint, expiry bigint, clock bigint, future bigint, tolerance bigint,
              OUT outcome text, OUT number bigint
            ) LANGUAGE plpgsql AS $$
            DECLARE
              history record;
              place bigint := (expiry / \(stretch)) % \(slots);
              known bigint;
              taken bigint;
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
              SELECT * INTO history FROM claim_history;
              IF history.identity IS DISTINCT FROM claim_identity() THEN
                outcome := 'unknown';
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
              ELSE
                SELECT stretch INTO known FROM claim_slots WHERE slot = place;
                IF known IS NULL THEN
                  UPDATE claim_slots SET stretch = expiry / \(stretch) WHERE slot = place AND stretch IS NULL;
                  SELECT stretch INTO known FROM claim_slots WHERE slot = place;
                END IF;
                IF known IS DISTINCT FROM expiry / \(stretch) THEN
                  outcome := 'far';
                  RETURN;
                END IF;
                INSERT INTO claims (slot, claim, expires_at)
                  SELECT DISTINCT place, value, expiry FROM unnest(wanted) AS value
                  ON CONFLICT (claim, slot) DO UPDATE SET expires_at = excluded.expires_at;
                outcome := 'claimed';
              END IF;
            END $$
            """,
            noteClaimLoss(lease: "0", noting: ""),
            """
            CREATE FUNCTION renew_claims(reading bigint) RETURNS void LANGUAGE plpgsql AS $$
            BEGIN
              PERFORM 1 FROM claim_history
                WHERE identity IS DISTINCT FROM claim_identity() OR clock > \(serverClock) + \(ClockHistory.tolerance)
                FOR UPDATE;
              IF FOUND THEN PERFORM note_claim_loss(reading); END IF;
            END $$
            """,
            // Returns the number of tables that still hold expired rows; NULL: another node sweeps, or this node's clock is
            // wrong.
            //
            // Expired rows do no harm: a request that they could refuse is refused by `purged_to`. So a table whose rows cannot
            // be removed is freed anyway.
            """
            CREATE FUNCTION sweep_claims(reading bigint, most_bytes bigint, tolerance bigint) RETURNS bigint
            LANGUAGE plpgsql AS $$
            DECLARE
              history record;
              present bigint := \(serverClock);
              cutoff bigint := least(reading, present) - \(ClaimTable.margin);
              purged bigint;
              past record;
              is_read boolean := FALSE;
              run int;
            BEGIN
              IF abs(reading - present) > tolerance
                OR NOT pg_try_advisory_xact_lock(\(AdvisoryLock.history.keys)) THEN RETURN NULL; END IF;
              -- Before the reading is recorded: a loss needs the last one of before.
              PERFORM renew_claims(reading);
              SELECT * INTO history FROM claim_history FOR UPDATE;
              purged := history.purged_to;
              -- The lock on the row keeps a free table free until it is empty.
              FOR past IN SELECT slot, (stretch + 1) * \(stretch) AS ends FROM claim_slots
                WHERE (stretch + 1) * \(stretch) <= cutoff
                  OR (stretch IS NULL AND left_at + \(ClaimTable.pause) <= present)
                ORDER BY slot FOR UPDATE SKIP LOCKED LOOP
                IF NOT is_read THEN
                  BEGIN
                    EXECUTE format('TRUNCATE claims_%s', past.slot);
                  EXCEPTION WHEN lock_not_available OR insufficient_privilege THEN
                    -- One wait is enough: calls wait behind it.
                    is_read := TRUE;
                  END;
                END IF;
                UPDATE claim_slots SET stretch = NULL, left_at = CASE WHEN is_read THEN present END
                  WHERE slot = past.slot;
                purged := greatest(purged, past.ends);
              END LOOP;
              run := cardinality(history.runs_to);
              IF present - history.runs_to[run] <= \(ClaimTable.gap) THEN
                history.runs_to[run] := greatest(present, history.runs_to[run]);
              ELSE
                history.runs_from := history.runs_from || present;
                history.runs_to := history.runs_to || present;
              END IF;
              SELECT coalesce(array_agg(first ORDER BY last), '{}'), coalesce(array_agg(last ORDER BY last), '{}')
                INTO history.runs_from, history.runs_to
                FROM unnest(history.runs_from, history.runs_to) AS runs (first, last)
                WHERE last + \(ClaimTable.lossKept) > present;
              -- Requests of intervals that ended long ago are too old by now.
              SELECT coalesce(array_agg(first), '{}'), coalesce(array_agg(last), '{}')
                INTO history.lost_from, history.lost_to
                FROM unnest(history.lost_from, history.lost_to) AS lost (first, last)
                WHERE last + \(ClaimTable.lossKept) > least(reading, present);
              UPDATE claim_history SET clock = greatest(history.clock, present), purged_to = purged,
                lost_from = history.lost_from, lost_to = history.lost_to,
                runs_from = history.runs_from, runs_to = history.runs_to,
                is_full = (SELECT sum(pg_total_relation_size(format('claims_%s', slot)::regclass)) FROM claim_slots)
                  > most_bytes;
              RETURN (SELECT count(*) FROM claim_slots WHERE left_at IS NOT NULL);
            END $$
            """,
        ]

    /// The number of tables in the ring, and the seconds of expiry times that each holds. Together, the tables cover a longer time
    /// than any claim lives, even if clocks differ.
    private static var slots: Int { ClaimTable.slots }
    static var stretch: Int { ClaimTable.stretch }

    /// The server's clock in whole seconds, rounded down like a node's clock.
    static let serverClock = "floor(extract(epoch FROM clock_timestamp()))::bigint"
}

/// The tables. A released migration never changes: a later version adds another migration.
enum Schema {
    /// A step from one version of the tables to the next.
    struct Migration: Sendable {
        /// The oldest version of this software that works with the tables after this step. Nodes of two adjacent versions run
        /// side by side. So if version n cannot work with the tables after a step, version n + 1 gets the code that can, and
        /// version n + 2 gets the step.
        let oldest: Int64
        let statements: [String]
    }

    /// The migrations to the versions 1, 2, 3…
    static let migrations = [
        Migration(oldest: 1, statements: first), Migration(oldest: 1, statements: deviceVersions),
        Migration(oldest: 1, statements: keeper), Migration(oldest: 1, statements: forwardedBodies),
        Migration(oldest: 1, statements: totalLosses), Migration(oldest: 1, statements: history),
        Migration(oldest: 1, statements: webhooks + auditArchives + endedDevices),
        Migration(oldest: 1, statements: secondClaims), Migration(oldest: 1, statements: historySteps),
        Migration(oldest: 1, statements: auditOfNoDevice + devicesNotRegistered),
        Migration(oldest: 1, statements: webhookDeliveries),
        Migration(oldest: 1, statements: keeperHere), Migration(oldest: 1, statements: deviceHashes),
        Migration(oldest: 1, statements: clusterParts), Migration(oldest: 1, statements: losslessFailovers),
        Migration(oldest: 1, statements: claimNodes + expiredChallengesFirst),
    ]

    static var version: Int64 { Int64(migrations.count) }

    /// The names of the functions that migrations made, sorted.
    static var functions: [String] {
        let names = migrations.flatMap(\.statements).flatMap { statement in
            statement.matches(of: /FUNCTION\s+([a-z_]+)\s*\(/).map { String($0.1) }
        }
        return Set(names).sorted()
    }

    /// The table that records the version of the tables.
    static let table = "synheart_auth_schema"

    /// Tables that a backup does not have: their rows are not permanent data (`StoredTable`), are derived from it, or wait to
    /// become part of it.
    static let tablesOfNoBackup: Set = [
        "audit_waiting", "challenges", "claim_history", "claim_keeper", "claim_nodes", "claim_slots", "claims",
        "device_counts", "verdict_batches", "webhook_deliveries",
    ]
    /// The partitions of `challenges` and `claims`.
    static var ringTables: [String] { (0..<ClaimTable.slots).flatMap { ["challenges_\($0)", "claims_\($0)"] } }

    static let creation = """
        CREATE TABLE IF NOT EXISTS \(table) (
          version bigint PRIMARY KEY,
          oldest bigint NOT NULL,
          applied_at timestamptz NOT NULL DEFAULT now()
        )
        """

    /// The request bodies that a gateway forwards (`ForwardedBodies`). Null, as in rows that nodes of the previous
    /// version wrote, means `headers`.
    private static let forwardedBodies = ["ALTER TABLE credentials ADD COLUMN bodies text"]

    /// An index for the lists of one status over all apps, newest first, such as the pending devices.
    private static let devicesNotRegistered = [
        """
        CREATE INDEX devices_not_registered ON devices (status, registered_at DESC, device_id)
          WHERE status <> 'registered' AND NOT forgotten
        """
    ]

    /// An index by code of the events that belong to no device. They are few, even with a million devices.
    private static let auditOfNoDevice = [
        "CREATE INDEX audit_of_no_device ON audit (code, sequence) WHERE device_id IS NULL"
    ]

    /// The hash of a device's id (`DeviceHash`), as an expression that an index may have. PostgreSQL computes it, so the
    /// index also covers the rows that nodes of the previous version write.
    static let deviceHash = "substring(sha256(device_id::text::bytea) FROM 1 FOR 8)"
    private static let deviceHashes = ["CREATE INDEX devices_by_hash ON devices ((\(deviceHash)))"]

    /// The version of a device's row, which must be unchanged when a decision is saved. Nodes of the previous version change rows without
    /// raising the version. The trigger counts those changes too, so that no node overwrites the decision of another.
    private static let deviceVersions = [
        "ALTER TABLE devices ADD COLUMN version bigint NOT NULL DEFAULT 0",
        """
        CREATE FUNCTION count_device_version() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          NEW.version := OLD.version + 1;
          RETURN NEW;
        END $$
        """,
        """
        CREATE TRIGGER changed_devices_have_a_version
          BEFORE UPDATE OF status, key, previous_key, previous_key_until, assurance, attested_key_id, key_rotated_at,
            must_rotate_by, must_rotate_reason, admitted_under_observation ON devices
          FOR EACH ROW WHEN (NEW.version = OLD.version) EXECUTE FUNCTION count_device_version()
        """,
    ]

    private static let first =
        [
            """
            CREATE TABLE facts (
              name text COLLATE "C" PRIMARY KEY,
              value text NOT NULL
            )
            """,
            """
            CREATE TABLE apps (
              app_id text COLLATE "C" PRIMARY KEY,
              record text NOT NULL
            )
            """,
        ] + devices + audit + credentialsAndTokens + proofs + challenges + claims

    private static let devices = [
        """
        CREATE TABLE devices (
          device_id uuid PRIMARY KEY,
          app_id text COLLATE "C" NOT NULL REFERENCES apps (app_id),
          platform text COLLATE "C" NOT NULL,
          status text COLLATE "C" NOT NULL,
          key bytea NOT NULL,
          previous_key bytea,
          previous_key_until bigint,
          assurance text COLLATE "C" NOT NULL,
          attested_key_id bytea,
          attested_public_key bytea,
          attested_app_id text,
          attested_environment text,
          attested_extensions boolean NOT NULL,
          attested_counter bigint,
          attested_receipt bytea,
          attested_receipt_outcome text,
          attested_risk_metric bigint,
          receipt_due_at bigint,
          receipt_asked_at bigint,
          receipt_exchange_outcome text,
          receipt_failures bigint NOT NULL,
          registered_at bigint NOT NULL,
          key_rotated_at bigint,
          last_seen bigint,
          highest_scheme bigint NOT NULL,
          must_rotate_by bigint,
          must_rotate_reason text COLLATE "C",
          admitted_under_observation boolean NOT NULL,
          local_id text
        ) WITH (fillfactor = 90)
        """,
        """
        CREATE UNIQUE INDEX devices_attested_key ON devices (app_id, attested_key_id) WHERE attested_key_id IS NOT NULL
        """,
        "CREATE INDEX devices_newest ON devices (registered_at DESC, device_id)",
        "CREATE INDEX devices_of_app ON devices (app_id, registered_at DESC, device_id)",
        "CREATE INDEX devices_of_status ON devices (app_id, status, registered_at DESC, device_id)",
        "CREATE INDEX devices_pending ON devices (app_id, assurance) WHERE status = 'pending'",
        """
        CREATE INDEX devices_observed ON devices (app_id, device_id)
          WHERE status = 'registered' AND admitted_under_observation
        """,
        """
        CREATE INDEX devices_risk ON devices (app_id, status, attested_risk_metric)
          WHERE attested_risk_metric IS NOT NULL
        """,
        "CREATE INDEX devices_receipt_due ON devices (status, receipt_due_at) WHERE receipt_due_at IS NOT NULL",
        // The number of devices of an app with a status is the sum of its slots, because counting ten million rows takes
        // seconds. A connection always uses the same slot, so concurrent registrations seldom wait for each other.
        """
        CREATE TABLE device_counts (
          app_id text COLLATE "C" NOT NULL,
          status text COLLATE "C" NOT NULL,
          slot bigint NOT NULL,
          devices bigint NOT NULL,
          PRIMARY KEY (app_id, status, slot)
        ) WITH (fillfactor = 50)
        """,
        // Sorted, so that two transactions that share slots do not deadlock.
        """
        CREATE FUNCTION count_devices() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          IF TG_OP = 'INSERT' THEN
            INSERT INTO device_counts AS known
              SELECT app_id, status, pg_backend_pid() % 16, count(*) FROM new_devices
                GROUP BY app_id, status ORDER BY app_id, status
              ON CONFLICT (app_id, status, slot) DO UPDATE SET devices = known.devices + excluded.devices;
          ELSE
            INSERT INTO device_counts AS known
              SELECT OLD.app_id, change.status, pg_backend_pid() % 16, change.devices
                FROM (VALUES (OLD.status, -1), (CASE WHEN TG_OP = 'UPDATE' THEN NEW.status END, 1))
                  AS change (status, devices)
                WHERE change.status IS NOT NULL ORDER BY change.status
              ON CONFLICT (app_id, status, slot) DO UPDATE SET devices = known.devices + excluded.devices;
          END IF;
          RETURN NULL;
        END $$
        """,
        """
        CREATE TRIGGER new_devices_are_counted AFTER INSERT ON devices REFERENCING NEW TABLE AS new_devices
          FOR EACH STATEMENT EXECUTE FUNCTION count_devices()
        """,
        """
        CREATE TRIGGER changed_devices_are_counted AFTER UPDATE OF status ON devices
          FOR EACH ROW WHEN (OLD.status <> NEW.status) EXECUTE FUNCTION count_devices()
        """,
        """
        CREATE TRIGGER deleted_devices_are_counted AFTER DELETE ON devices
          FOR EACH ROW EXECUTE FUNCTION count_devices()
        """,
        // Every key that is or ever was bound. The primary key makes a key unique across apps, forever.
        """
        CREATE TABLE keys (
          thumbprint text COLLATE "C" PRIMARY KEY,
          device_id uuid NOT NULL REFERENCES devices (device_id),
          role text COLLATE "C" NOT NULL CHECK (role IN ('current', 'previous', 'retired'))
        )
        """,
        "CREATE INDEX keys_of_device ON keys (device_id, role)",
    ]

    private static let credentialsAndTokens = [
        """
        CREATE TABLE credentials (
          id text COLLATE "C" PRIMARY KEY,
          name text NOT NULL,
          role text NOT NULL,
          apps text NOT NULL,
          secret_hash bytea NOT NULL,
          created_at bigint NOT NULL,
          expires_at bigint NOT NULL,
          revoked_at bigint
        )
        """,
        "CREATE INDEX credentials_newest ON credentials (created_at DESC, id)",
        """
        CREATE TABLE signing_keys (
          number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
          id text COLLATE "C" NOT NULL UNIQUE,
          sealed_key bytea NOT NULL,
          created_at bigint NOT NULL,
          signs_from bigint
        )
        """,
        """
        CREATE TABLE revoked_signing_keys (
          id text COLLATE "C" PRIMARY KEY,
          revoked_at bigint NOT NULL
        )
        """,
    ]

    private static let proofs = [
        """
        CREATE TABLE pending_proofs (
          device_id text COLLATE "C" PRIMARY KEY,
          app_id text COLLATE "C" NOT NULL,
          arrived_at bigint NOT NULL,
          sealed_request bytea NOT NULL
        )
        """,
        """
        CREATE TABLE evidence (
          number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
          id text COLLATE "C" NOT NULL UNIQUE,
          app_id text COLLATE "C" NOT NULL,
          device_id text,
          recorded_at bigint NOT NULL,
          expires_at bigint NOT NULL,
          format text NOT NULL,
          code text NOT NULL,
          step text NOT NULL,
          size bigint NOT NULL,
          sealed bytea NOT NULL
        )
        """,
        "CREATE INDEX evidence_of_app ON evidence (app_id, number) INCLUDE (size)",
        "CREATE INDEX evidence_expiring ON evidence (expires_at)",
    ]
}

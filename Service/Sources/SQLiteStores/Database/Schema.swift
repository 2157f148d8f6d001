internal import GRDB

/// The tables. A released migration never changes: a later version adds another migration.
enum Schema {
    /// The application id, "SyAu" in ASCII, by which the program `file` and this code recognize the service's databases.
    static let applicationID: Int32 = 0x5379_4175
    /// The migrator's table of applied migrations.
    static let migrations = "grdb_migrations"

    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1") { database in
            try database.execute(sql: "PRAGMA application_id = \(applicationID)")
            try database.execute(sql: first)
            try database.execute(sql: credentialsAndTokens)
            try database.execute(sql: pendingProofs)
        }
        migrator.registerMigration("2") { try $0.execute(sql: receiptRefresh) }
        migrator.registerMigration("3") { try $0.execute(sql: evidence) }
        migrator.registerMigration("4") { try $0.execute(sql: rotationReason + pendingDevices) }
        migrator.registerMigration("5") { try $0.execute(sql: attestedExtensions) }
        migrator.registerMigration("6") { try $0.execute(sql: signingKeyRevocations + observedDevices) }
        migrator.registerMigration("7") { try $0.execute(sql: deviceVersions) }
        migrator.registerMigration("8") { try $0.execute(sql: forwardedBodies) }
        migrator.registerMigration("9") { try $0.execute(sql: history) }
        migrator.registerMigration("10") {
            try $0.execute(
                sql: SQLiteWebhookStore.schema + SQLiteAuditArchiveStore.schema + SQLiteEndedDeviceStore.schema)
        }
        migrator.registerMigration("11") { try $0.execute(sql: historySteps) }
        migrator.registerMigration("12") {
            try $0.execute(sql: deviceCounts + devicesNotRegistered + auditOfNoDevice)
        }
        migrator.registerMigration("13") { try $0.execute(sql: SQLiteWebhookStore.deliveriesSchema) }
        migrator.registerMigration("14") { database in
            try database.execute(sql: DeviceHashTable.schema)
            try DeviceHashTable.fill(database)
        }
        return migrator
    }

    /// An index by code of the events that belong to no device. They are few, even with a million devices.
    private static let auditOfNoDevice =
        "CREATE INDEX audit_of_no_device ON audit (code, sequence) WHERE device_id IS NULL;"

    /// The request bodies that a gateway forwards (`ForwardedBodies`). Older rows have null, which means `ForwardedBodies.headers`.
    private static let forwardedBodies = "ALTER TABLE credentials ADD COLUMN bodies TEXT;"

    /// The version of a device's row. A change is saved only if the version is the one that was read before the change.
    private static let deviceVersions = "ALTER TABLE devices ADD COLUMN version INTEGER NOT NULL DEFAULT 0;"

    /// The time from which a key signs after its predecessor was revoked, and a table of the revoked keys. A repeated
    /// revocation finds its key in this table.
    private static let signingKeyRevocations = """
        ALTER TABLE signing_keys ADD COLUMN signs_from INTEGER;
        CREATE TABLE revoked_signing_keys (
          id TEXT PRIMARY KEY,
          revoked_at INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;

        """

    /// An index of the devices that must become pending when an app switches to mode `enforce`. The switch reads no other rows.
    private static let observedDevices = """
        CREATE INDEX devices_observed ON devices (app_id)
          WHERE status = 'registered' AND admitted_under_observation <> 0;
        """

    /// The reason of an operator's demand to rotate. Null, as in older rows, means `scheduled`.
    private static let rotationReason = "ALTER TABLE devices ADD COLUMN must_rotate_reason TEXT;"

    /// Whether the attestation of an App Attest key had an extension map. For older rows, the migration infers this from
    /// a `category:` label.
    private static let attestedExtensions = """
        ALTER TABLE devices ADD COLUMN attested_extensions INTEGER;
        UPDATE devices SET attested_extensions = 1
          WHERE attested_key_id IS NOT NULL
            AND CASE WHEN json_valid(assurance)
              THEN EXISTS (SELECT 1 FROM json_each(assurance, '$.labels') WHERE value GLOB 'category:*')
              ELSE FALSE END;
        """

    /// Each registration of a pending device counts the pending devices by assurance. The index covers that query.
    private static let pendingDevices = """
        CREATE INDEX devices_pending ON devices (app_id, status, assurance) WHERE status = 'pending';
        """

    /// Recordings of refusals, and a covering index for counting risk metrics.
    private static let evidence = """
        CREATE TABLE evidence (
          number INTEGER PRIMARY KEY AUTOINCREMENT,
          id TEXT NOT NULL UNIQUE,
          app_id TEXT NOT NULL,
          device_id TEXT,
          recorded_at INTEGER NOT NULL,
          expires_at INTEGER NOT NULL,
          format TEXT NOT NULL,
          code TEXT NOT NULL,
          step TEXT NOT NULL,
          size INTEGER NOT NULL,
          sealed BLOB NOT NULL
        ) STRICT;
        CREATE INDEX evidence_of_app ON evidence (app_id, number, size);
        CREATE INDEX evidence_expiring ON evidence (expires_at);
        CREATE INDEX devices_risk ON devices (app_id, status, attested_risk_metric)
          WHERE attested_risk_metric IS NOT NULL;
        """

    /// The state of the exchange of receipts. In older rows, verified receipts are due at once, except for the assurance `test`.
    private static let receiptRefresh = """
        ALTER TABLE devices ADD COLUMN receipt_due_at INTEGER;
        ALTER TABLE devices ADD COLUMN receipt_asked_at INTEGER;
        ALTER TABLE devices ADD COLUMN receipt_exchange_outcome TEXT;
        ALTER TABLE devices ADD COLUMN receipt_failures INTEGER NOT NULL DEFAULT 0;
        UPDATE devices SET receipt_due_at = registered_at
          WHERE attested_receipt_outcome = 'verified'
            AND CASE WHEN json_valid(assurance) THEN json_extract(assurance, '$.app') <> 'test' ELSE FALSE END;
        CREATE INDEX devices_receipt_due ON devices (status, receipt_due_at) WHERE receipt_due_at IS NOT NULL;
        """

    private static let first = """
        CREATE TABLE apps (
          app_id TEXT PRIMARY KEY,
          record TEXT NOT NULL
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE devices (
          device_id TEXT PRIMARY KEY,
          app_id TEXT NOT NULL,
          platform TEXT NOT NULL,
          status TEXT NOT NULL,
          key BLOB NOT NULL,
          key_thumbprint TEXT NOT NULL,
          previous_key BLOB,
          previous_key_until INTEGER,
          assurance TEXT NOT NULL,
          attested_key_id BLOB,
          attested_public_key BLOB,
          attested_app_id TEXT,
          attested_environment TEXT,
          attested_counter INTEGER,
          attested_receipt BLOB,
          attested_receipt_outcome TEXT,
          attested_risk_metric INTEGER,
          registered_at INTEGER NOT NULL,
          key_rotated_at INTEGER,
          last_seen INTEGER,
          highest_scheme INTEGER NOT NULL,
          must_rotate_by INTEGER,
          admitted_under_observation INTEGER NOT NULL,
          local_id TEXT
        ) STRICT;
        CREATE UNIQUE INDEX devices_attested_key ON devices (app_id, attested_key_id) WHERE attested_key_id IS NOT NULL;
        CREATE INDEX devices_newest ON devices (registered_at DESC, device_id);
        CREATE INDEX devices_of_app ON devices (app_id, registered_at DESC, device_id);
        CREATE INDEX devices_of_status ON devices (app_id, status, registered_at DESC, device_id);

        -- Every key that is or ever was bound: the primary key is what makes a key unique across apps, for good.
        CREATE TABLE keys (
          thumbprint TEXT PRIMARY KEY,
          device_id TEXT NOT NULL REFERENCES devices (device_id),
          role TEXT NOT NULL CHECK (role IN ('current', 'previous', 'retired'))
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX keys_of_device ON keys (device_id, role);

        CREATE TABLE audit (
          sequence INTEGER PRIMARY KEY,
          code TEXT NOT NULL,
          at INTEGER NOT NULL,
          actor TEXT NOT NULL,
          app_id TEXT,
          device_id TEXT,
          detail TEXT NOT NULL,
          hash BLOB NOT NULL
        ) STRICT;
        CREATE INDEX audit_of_app ON audit (app_id, sequence) WHERE app_id IS NOT NULL;
        CREATE INDEX audit_of_device ON audit (device_id, sequence) WHERE device_id IS NOT NULL;
        CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
          BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
        CREATE TRIGGER audit_is_not_shortened BEFORE DELETE ON audit
          BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
        CREATE TRIGGER audit_has_no_gaps BEFORE INSERT ON audit
          WHEN NEW.sequence IS NOT (SELECT coalesce(max(sequence), 0) + 1 FROM audit)
          BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;

        -- Challenges live in the service's memory; here they wait from one start of it to the next.
        CREATE TABLE saved_challenges (
          challenge BLOB PRIMARY KEY,
          app_id TEXT NOT NULL,
          purpose TEXT NOT NULL,
          expires_at INTEGER NOT NULL,
          source TEXT NOT NULL
        ) STRICT;

        -- Facts about the store itself.
        CREATE TABLE facts (
          name TEXT PRIMARY KEY,
          value TEXT NOT NULL
        ) STRICT, WITHOUT ROWID;
        """

    private static let pendingProofs = """
        CREATE TABLE pending_proofs (
          device_id TEXT PRIMARY KEY,
          app_id TEXT NOT NULL,
          arrived_at INTEGER NOT NULL,
          sealed_request BLOB NOT NULL
        ) STRICT;
        """

    private static let credentialsAndTokens = """
        CREATE TABLE credentials (
          id TEXT PRIMARY KEY,
          name TEXT NOT NULL,
          role TEXT NOT NULL,
          apps TEXT NOT NULL,
          secret_hash BLOB NOT NULL,
          created_at INTEGER NOT NULL,
          expires_at INTEGER NOT NULL,
          revoked_at INTEGER
        ) STRICT;
        CREATE INDEX credentials_newest ON credentials (created_at DESC, id);

        CREATE TABLE signing_keys (
          number INTEGER PRIMARY KEY AUTOINCREMENT,
          id TEXT NOT NULL UNIQUE,
          sealed_key BLOB NOT NULL,
          created_at INTEGER NOT NULL
        ) STRICT;
        """
}

extension Schema {
    /// Webhooks. Nodes of the previous version do not read the table: events wait until a node of this version runs.
    static let webhooks = [
        """
        CREATE TABLE webhooks (
          id text COLLATE "C" PRIMARY KEY,
          sealed_secret bytea NOT NULL,
          created_at bigint NOT NULL,
          version bigint NOT NULL,
          url text NOT NULL,
          apps text NOT NULL,
          codes text NOT NULL,
          is_enabled boolean NOT NULL,
          position bigint NOT NULL,
          failing_since bigint,
          failure text,
          lease_holder text,
          lease_until bigint
        )
        """
    ]

    /// The last deliveries of each webhook. If a webhook is removed, even by a node of the previous version, its deliveries are
    /// removed too. Nodes of the previous version add no deliveries.
    static let webhookDeliveries = [
        """
        CREATE TABLE webhook_deliveries (
          number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
          webhook_id text COLLATE "C" NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
          sequence bigint NOT NULL,
          attempt bigint NOT NULL,
          at bigint NOT NULL,
          milliseconds bigint NOT NULL,
          status bigint,
          failure text
        )
        """,
        "CREATE INDEX webhook_deliveries_newest ON webhook_deliveries (webhook_id, number)",
    ]

    /// The archives of the audit log. Only archived events may be deleted. Nodes of the previous version archive nothing.
    static let auditArchives = [
        """
        CREATE TABLE audit_archives (
          first bigint PRIMARY KEY,
          last bigint NOT NULL,
          hash bytea NOT NULL,
          seal text NOT NULL
        )
        """,
        """
        CREATE FUNCTION audit_is_kept() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          IF TG_OP = 'DELETE' AND OLD.sequence <= (SELECT max(last) FROM audit_archives) THEN RETURN OLD; END IF;
          RAISE EXCEPTION 'the audit log is append-only';
        END $$
        """,
        "DROP TRIGGER audit_is_not_changed ON audit",
        """
        CREATE TRIGGER audit_is_not_changed BEFORE UPDATE OR DELETE ON audit
          FOR EACH ROW EXECUTE FUNCTION audit_is_kept()
        """,
        """
        CREATE TRIGGER audit_archives_are_not_changed BEFORE UPDATE OR DELETE ON audit_archives
          FOR EACH ROW EXECUTE FUNCTION audit_is_append_only()
        """,
    ]

    /// When a device ended, and whether it was forgotten. Nodes of the previous version do not record when a device ends: the
    /// time of the first `forgetDevices` call that finds the device is used instead. They cannot read a forgotten device, so set
    /// `devices.forget_days` only after their upgrade.
    static let endedDevices = [
        "ALTER TABLE devices ADD COLUMN ended_at bigint",
        "ALTER TABLE devices ADD COLUMN forgotten boolean NOT NULL DEFAULT FALSE",
        """
        CREATE INDEX devices_ended ON devices (ended_at)
          WHERE status IN ('deregistered', 'rejected') AND NOT forgotten
        """,
    ]
}

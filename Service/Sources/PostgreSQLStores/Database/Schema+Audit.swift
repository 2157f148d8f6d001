extension Schema {
    /// `AuditChain` as SQL functions, so that the lock on the end of the chain is held during one network round trip only: that of
    /// the commit.
    static let audit = [
        // Events of committed changes that are not in the chain yet.
        """
        CREATE TABLE audit_waiting (
          number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
          code text NOT NULL,
          at bigint NOT NULL,
          actor text NOT NULL,
          app_id text,
          device_id text,
          detail text NOT NULL
        )
        """,
        """
        CREATE TABLE audit (
          sequence bigint PRIMARY KEY,
          code text COLLATE "C" NOT NULL,
          at bigint NOT NULL,
          actor text COLLATE "C" NOT NULL,
          app_id text COLLATE "C",
          device_id text COLLATE "C",
          detail text COLLATE "C" NOT NULL,
          hash bytea NOT NULL
        )
        """,
        "CREATE INDEX audit_of_app ON audit (app_id, sequence) WHERE app_id IS NOT NULL",
        "CREATE INDEX audit_of_device ON audit (device_id, sequence) WHERE device_id IS NOT NULL",
        """
        CREATE FUNCTION audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          RAISE EXCEPTION 'the audit log is append-only';
        END $$
        """,
        """
        CREATE TRIGGER audit_is_not_changed BEFORE UPDATE OR DELETE ON audit
          FOR EACH ROW EXECUTE FUNCTION audit_is_append_only()
        """,
        """
        CREATE TRIGGER audit_is_not_shortened BEFORE TRUNCATE ON audit
          FOR EACH STATEMENT EXECUTE FUNCTION audit_is_append_only()
        """,
        // Encodes a member as its length and its bytes. The length -1 distinguishes a missing member from an empty one.
        """
        CREATE FUNCTION audit_member(member text) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
          SELECT int8send(coalesce(octet_length(convert_to(member, 'UTF8')), -1)::bigint)
            || coalesce(convert_to(member, 'UTF8'), '')
        $$
        """,
        """
        CREATE FUNCTION chain_audit(most bigint) RETURNS bigint LANGUAGE plpgsql AS $$
        DECLARE
          event record;
          last record;
          number bigint := 0;
          link bytea := decode(repeat('00', 32), 'hex');
          done bigint[] := '{}';
        BEGIN
          PERFORM \(AdvisoryLock.auditChain.sql);
          FOR last IN SELECT sequence, hash FROM audit ORDER BY sequence DESC LIMIT 1 LOOP
            number := last.sequence;
            link := last.hash;
          END LOOP;
          FOR event IN SELECT * FROM audit_waiting ORDER BY audit_waiting.number LIMIT most LOOP
            number := number + 1;
            link := sha256(
              convert_to(E'synheart-auth/audit/v1\\n', 'UTF8') || link || int8send(number) || int8send(event.at)
              || audit_member(event.code) || audit_member(event.actor) || audit_member(event.app_id)
              || audit_member(event.device_id) || audit_member(event.detail));
            INSERT INTO audit (sequence, code, at, actor, app_id, device_id, detail, hash)
            VALUES (number, event.code, event.at, event.actor, event.app_id, event.device_id, event.detail, link);
            done := done || event.number;
          END LOOP;
          DELETE FROM audit_waiting WHERE audit_waiting.number = ANY (done);
          RETURN cardinality(done);
        END $$
        """,
    ]
}

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
}

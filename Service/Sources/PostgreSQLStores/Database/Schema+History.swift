extension Schema {
    /// Counts of verdicts, of minutes and of hours (`step`, in seconds), the ids of the batches that were added, and the version
    /// of the app in a device's evidence. Nodes of the previous version leave the version null.
    static let history = [
        """
        CREATE TABLE verdict_counts (
          step bigint NOT NULL,
          at bigint NOT NULL,
          app_id text COLLATE "C" NOT NULL,
          kind text COLLATE "C" NOT NULL,
          platform text COLLATE "C" NOT NULL,
          code text COLLATE "C" NOT NULL,
          scheme text COLLATE "C" NOT NULL,
          version text COLLATE "C" NOT NULL,
          verdicts bigint NOT NULL,
          PRIMARY KEY (step, at, app_id, kind, platform, code, scheme, version)
        )
        """,
        """
        CREATE TABLE verdict_batches (
          minute bigint NOT NULL,
          id text COLLATE "C" NOT NULL,
          PRIMARY KEY (minute, id)
        )
        """,
        "ALTER TABLE devices ADD COLUMN app_version text",
    ]
}

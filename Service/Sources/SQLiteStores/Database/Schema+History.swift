extension Schema {
    /// Counts of verdicts, of minutes and of hours (`step`, in seconds), the ids of the batches that were added, and the version
    /// of the app in a device's evidence.
    static let history = """
        CREATE TABLE verdict_counts (
          step INTEGER NOT NULL,
          at INTEGER NOT NULL,
          app_id TEXT NOT NULL,
          kind TEXT NOT NULL,
          platform TEXT NOT NULL,
          code TEXT NOT NULL,
          scheme TEXT NOT NULL,
          version TEXT NOT NULL,
          verdicts INTEGER NOT NULL,
          PRIMARY KEY (step, at, app_id, kind, platform, code, scheme, version)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE verdict_batches (
          minute INTEGER NOT NULL,
          id TEXT NOT NULL,
          PRIMARY KEY (minute, id)
        ) STRICT, WITHOUT ROWID;
        ALTER TABLE devices ADD COLUMN app_version TEXT;
        """
}

extension Schema {
    /// Counts of verdicts by minute and by hour (`step`, in seconds), the ids of the batches that were added, and the version
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

    /// Adds the slots of 5 and 15 minutes and of 6 and 24 hours, and adds the minutes to their hours. Older versions merged old
    /// minutes into hours. Now every count is in the slots of all steps.
    static let historySteps = [(60, 300), (60, 900), (60, 3600), (3600, 21_600), (3600, 86_400)].map { from, step in
        """
        INSERT INTO verdict_counts (step, at, app_id, kind, platform, code, scheme, version, verdicts)
        SELECT \(step), at - at % \(step), app_id, kind, platform, code, scheme, version, sum(verdicts) FROM verdict_counts
          WHERE step = \(from) GROUP BY 2, 3, 4, 5, 6, 7, 8
          ON CONFLICT DO UPDATE SET verdicts = verdicts + excluded.verdicts;

        """
    }.joined()
}

extension Schema {
    /// Counts of verdicts per minute and per hour (`step`, in seconds), the ids of the batches that were added, and the version of
    /// the app in a device's evidence. Nodes of the previous version leave the version null.
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

    /// Adds the slots of 5 and 15 minutes and of 6 and 24 hours, and adds the minutes to the hours. Before this version, only old
    /// minutes were merged into hours. Now every count is in the slots of all steps.
    static let historySteps = [(60, 300), (60, 900), (60, 3600), (3600, 21_600), (3600, 86_400)].map { from, step in
        """
        INSERT INTO verdict_counts AS known (step, at, app_id, kind, platform, code, scheme, version, verdicts)
        SELECT \(step), at - at % \(step), app_id, kind, platform, code, scheme, version, sum(verdicts)::bigint
          FROM verdict_counts WHERE step = \(from) GROUP BY 2, 3, 4, 5, 6, 7, 8
          ON CONFLICT (step, at, app_id, kind, platform, code, scheme, version)
            DO UPDATE SET verdicts = known.verdicts + excluded.verdicts
        """
    }
}

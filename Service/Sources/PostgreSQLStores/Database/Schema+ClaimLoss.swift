internal import AuthService

/// The function that records a loss of claims.
extension Schema {
    /// SQL that creates `note_claim_loss`, which records a loss: request dates whose claims may be missing. The loss
    /// covers the dates around three clock readings: the last recorded one, the present one of this node and the present
    /// one of the server.
    ///
    /// If the server's clock fell back, its later readings were wrong. Then the loss also covers the runs (times without
    /// a gap between readings) that end later than now, and `purged_to` is set back. Tables of claims that expire more
    /// than `ClaimTable.reach` seconds from now are freed, and the loss covers the dates of their claims. The next sweep
    /// empties them.
    ///
    /// - Parameters:
    ///   - lease: the seconds by which each of the three intervals ends later, because nodes may have used another keeper
    ///     for that long. SQL over `history`, the row before the update.
    ///   - noting: further columns that the update sets.
    ///   - first: the reading around which the first interval begins. The interval ends after the last recorded reading.
    ///     SQL over `history`.
    ///   - purgedTo: the new `purged_to`, as SQL over `history`.
    static func noteClaimLoss(
        lease: String, noting: String, first: String = "history.clock", purgedTo: String = purgedToAfterFall
    ) -> String {
        """
        CREATE OR REPLACE FUNCTION note_claim_loss(reading bigint) RETURNS void LANGUAGE plpgsql AS $$
        DECLARE
          present bigint := \(serverClock);
          history record;
          lease bigint;
        BEGIN
          SELECT * INTO history FROM claim_history FOR UPDATE;
          lease := \(lease);
          history.lost_from := history.lost_from || \(first) - \(lossBefore)
            || reading - \(lossBefore) || present - \(lossBefore);
          history.lost_to := history.lost_to || history.clock + \(ClaimHistory.clockTolerance) + lease
            || reading + \(ClaimHistory.clockTolerance) + lease || present + \(ClaimHistory.clockTolerance) + lease;
          SELECT history.lost_from || coalesce(array_agg(first - \(lossBefore)), '{}'),
            history.lost_to || coalesce(array_agg(last + \(ClaimHistory.clockTolerance)), '{}')
            INTO history.lost_from, history.lost_to
            FROM unnest(history.runs_from, history.runs_to) AS runs (first, last)
            WHERE last > present + \(ClockHistory.tolerance);
          SELECT history.lost_from || coalesce(array_agg(stretch * \(stretch) - \(lossBefore)), '{}'),
            history.lost_to || coalesce(array_agg((stretch + 1) * \(stretch) - \(ReplayClaim.life)), '{}')
            INTO history.lost_from, history.lost_to
            FROM claim_slots WHERE stretch * \(stretch) > present + \(ClaimTable.reach);
          UPDATE claim_slots SET stretch = NULL, left_at = 0 WHERE stretch * \(stretch) > present + \(ClaimTable.reach);
          UPDATE claim_history SET identity = claim_identity(), clock = present,
            purged_to = \(purgedTo),
            lost_from = history.lost_from, lost_to = history.lost_to, runs_from = '{}', runs_to = '{}'\(noting);
        END $$
        """
    }

    /// `purged_to` after the server's clock fell back: at most `ClaimTable.margin` seconds before the present. With a correct
    /// clock, no claim that expires after that would have been purged.
    static let purgedToAfterFall = "least(history.purged_to, present - \(ClaimTable.margin))"

    /// A loss begins this many seconds before a reading of the clock: the life of a claim, and the clock tolerance, because a node's
    /// clock may have been behind.
    static let lossBefore = ReplayClaim.life + ClaimHistory.clockTolerance
}

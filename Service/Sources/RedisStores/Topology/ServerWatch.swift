internal import AuthContract
internal import AuthService

/// What this node saw of a server process: its wall clock, against a clock that only moves forward.
///
/// While the clock of Redis is ahead, Redis removes claims that still count. If it comes back before a claim is made in a bucket,
/// nothing in that bucket shows it. So a node that sees the clock ahead records the reading in every bucket, again and again for as
/// long as claims of before may count.
struct ServerWatch: Sendable {
    let runID: String
    /// How far the server's clock was ahead of the base, at the least.
    private var leastLead: Duration?
    private var base: ContinuousClock.Instant?
    /// Until when the clock may be wrong.
    private var suspectedUntil: ContinuousClock.Instant?
    private var recordedAt: ContinuousClock.Instant?

    /// The gain that makes a clock suspect.
    private static let tolerance: Duration = .seconds(5)
    /// How long a claim lives that a request made before the jump: its date may have been ahead.
    private static let suspicion: Duration = .seconds(ReplayClaim.life + 300)
    /// The pause between two records. Redis keeps a claim 60 s beyond its expiry, so a jump that removes a claim is longer.
    private static let pause: Duration = .seconds(10)

    init(runID: String) { self.runID = runID }

    /// Whether a reading must be recorded.
    ///
    /// - Parameters:
    ///   - reading: the server's clock.
    ///   - asked: before the question was sent.
    ///   - answered: after the answer arrived.
    ///   - clockOfNode: this node's clock.
    mutating func mustRecord(
        _ reading: UnixTime, asked: ContinuousClock.Instant, answered: ContinuousClock.Instant, clockOfNode: UnixTime
    ) -> Bool {
        let base = base ?? answered
        self.base = base
        // The delay of the answer counts as a gain, so that none is missed.
        let (most, least) = (
            Duration.seconds(reading.seconds) - base.duration(to: asked),
            Duration.seconds(reading.seconds) - base.duration(to: answered)
        )
        let hasGained = leastLead.map { most - $0 > Self.tolerance } ?? false
        leastLead = hasGained ? least : min(leastLead ?? least, least)
        if hasGained || reading - clockOfNode > Epoch.clockTolerance {
            suspectedUntil = answered + Self.suspicion
            if hasGained { recordedAt = nil }
        }
        guard let suspectedUntil, answered < suspectedUntil else { return false }
        return recordedAt.map { $0 + Self.pause <= answered } ?? true
    }

    /// Notes that the reading was recorded in all buckets.
    mutating func recorded(at instant: ContinuousClock.Instant) { recordedAt = instant }
}

internal import AuthContract
internal import AuthService

/// A server process's wall clock, compared with a monotonic clock.
///
/// While the clock of Redis is ahead, Redis removes claims that are still live. If the clock comes back before a claim is made in a
/// partition, the partition's epoch does not show the jump. So a node that sees the clock ahead records the reading in every
/// partition, repeatedly, for as long as earlier claims may be live.
struct ServerWatch: Sendable {
    let runID: String
    /// The smallest observed difference between the server's clock and the monotonic time that has passed since `base`. The
    /// measurement starts again whenever the server's clock has gained more than `tolerance`.
    private var leastLead: Duration?
    private var base: ContinuousClock.Instant?
    /// The time until which the clock may be wrong.
    private var suspectedUntil: ContinuousClock.Instant?
    private var recordedAt: ContinuousClock.Instant?

    /// If the server's clock gains more than this on the monotonic clock, it is suspect.
    private static let tolerance: Duration = .seconds(ClockHistory.tolerance)
    /// How long a clock stays suspect: as long as a claim from before the jump may be live, even if its request was dated ahead.
    private static let suspicion: Duration = .seconds(ReplayClaim.longestLife)
    /// The pause between two records. It is shorter than any jump that removes a live claim, because Redis keeps a claim
    /// for 60 s after its expiry.
    private static let pause: Duration = .seconds(10)

    init(runID: String) { self.runID = runID }

    /// Whether a reading must be recorded.
    ///
    /// - Parameters:
    ///   - reading: the server's clock.
    ///   - asked: a time before the request was sent.
    ///   - answered: a time after the reply arrived.
    ///   - clockOfNode: this node's clock.
    mutating func mustRecord(
        _ reading: UnixTime, asked: ContinuousClock.Instant, answered: ContinuousClock.Instant, clockOfNode: UnixTime
    ) -> Bool {
        let base = base ?? answered
        self.base = base
        // `most` and `least` are the bounds of the lead. A gain is measured from the least earlier lead to the most that the
        // lead can be now, so that no jump is missed.
        let (most, least) = (
            Duration.seconds(reading.seconds) - base.duration(to: asked),
            Duration.seconds(reading.seconds) - base.duration(to: answered)
        )
        let hasGained = leastLead.map { most - $0 > Self.tolerance } ?? false
        leastLead = hasGained ? least : min(leastLead ?? least, least)
        if hasGained || reading - clockOfNode > ClaimHistory.clockTolerance {
            suspectedUntil = answered + Self.suspicion
            if hasGained { recordedAt = nil }
        }
        guard let suspectedUntil, answered < suspectedUntil else { return false }
        return recordedAt.map { $0 + Self.pause <= answered } ?? true
    }

    /// Records that the reading was recorded in all partitions, and when.
    mutating func recorded(at instant: ContinuousClock.Instant) { recordedAt = instant }
}

/// The clocks of all servers, and the readings that the partitions' epochs still lack.
///
/// If a server's clock may have jumped ahead, the reading is recorded in every epoch of the server before anything else.
struct ClockWatch: Sendable {
    private var watches: [RedisURL.Endpoint: ServerWatch] = [:]
    /// The latest reading of the owner's clock that still has to be recorded in the partition's epoch.
    private var unrecorded: [UnixTime?]

    init(partitions count: Int) { unrecorded = Array(repeating: nil, count: count) }

    /// Compares the clock that a server's process reported with earlier readings and with this node's clock. The
    /// parameters that are not listed here are those of `ServerWatch.mustRecord`.
    ///
    /// - Parameter partitions: the partitions of the server.
    /// - Returns: whether the reading must be recorded in the epochs of the partitions.
    mutating func read(
        _ serverInfo: ServerInfo, of endpoint: RedisURL.Endpoint, _ partitions: [Int], asked: ContinuousClock.Instant,
        answered: ContinuousClock.Instant, clockOfNode: UnixTime
    ) -> Bool {
        var watch =
            watches[endpoint].flatMap { $0.runID == serverInfo.identity.runID ? $0 : nil }
            ?? ServerWatch(runID: serverInfo.identity.runID)
        defer { watches[endpoint] = watch }
        guard watch.mustRecord(serverInfo.time, asked: asked, answered: answered, clockOfNode: clockOfNode) else {
            return false
        }
        for partition in partitions {
            unrecorded[partition] = max(unrecorded[partition] ?? serverInfo.time, serverInfo.time)
        }
        return true
    }

    /// The reading that the partition's epoch lacks; nil: the epoch lacks no reading.
    func unrecorded(_ partition: Int) -> UnixTime? { unrecorded[partition] }

    /// Records that the partition's epoch has this reading. If a later reading is unrecorded, it stays unrecorded.
    mutating func recorded(_ reading: UnixTime?, in partition: Int) {
        if unrecorded[partition] == reading { unrecorded[partition] = nil }
    }

    /// Records that all partitions of a server have the reading.
    mutating func recordedAll(of endpoint: RedisURL.Endpoint, at instant: ContinuousClock.Instant) {
        watches[endpoint]?.recorded(at: instant)
    }
}

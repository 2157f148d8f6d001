internal import AuthContract
internal import AuthService

/// The claims of an open journal. Decides each call, and stores its claims in the segment.
struct JournalLedger {
    private var table: ClaimTable
    private var counter: LiveClaimCounter
    private var history: ClaimHistory
    private(set) var segment: JournalSegment
    private var segmentStart: Int64
    /// A segment that maintenance created. The next claim switches to it.
    var prepared: JournalSegment?
    /// A complete segment that maintenance has not handled yet. There is at most one, because the next switch needs another
    /// prepared segment from maintenance.
    private var retired: JournalSegment?
    /// Complete segments, oldest first. Each switch to a new segment moves the expired ones to `deletable`.
    private var closed: [ClosedSegment]
    private var deletable: [UInt64] = []
    /// Whether there is anything to write to the disk.
    var isDirty = false
    /// Whether maintenance must be told that there is work.
    var wakesMaintenance = false

    private var wrong: ClockHistory.WrongReadings?
    /// The number of times that the clock fell back.
    private var falls = 0
    private var recordedReading = Int64.min
    /// The latest reading of the clock whose record is on the disk.
    private var durableReading: Int64
    /// If set, the sweep drops not only the expired claims, but also those that expire later than this.
    private var latestKept: Int64?
    /// Whether the segment lacks room to record the lost dates (`HistoryLoss`) that a step of the clock revealed.
    private var mustSwitch = false

    private let settings: ClaimJournal.Settings

    /// Takes over the recovered state, and records it at the start of the first segment.
    init(_ recovery: JournalRecovery, segment: JournalSegment, now: Int64, settings: ClaimJournal.Settings) {
        (table, counter, history, closed) = (recovery.table, recovery.counter, recovery.history, recovery.segments)
        (self.segment, segmentStart, self.settings) = (segment, now, settings)
        // Opening the journal syncs these records before any claim is made.
        durableReading = now
        writeBeginning()
        writeReading(now, monotonic: settings.monotonic())
    }

    var size: (live: Int, slots: Int) { (counter.live, table.used) }

    /// The current state of the journal, for the database to record.
    ///
    /// - Parameter isLast: whether no more claims are made.
    func note(isLast: Bool = false) -> JournalNote {
        JournalNote(
            sequence: segment.header.sequence, length: segment.length, opening: segment.header.opening,
            clock: (history.latestReading ?? 0).adding(isLast ? 0 : JournalNote.life),
            loss: history.lossWithoutClaims)
    }

    // MARK: Claims

    /// Whether an earlier call made claims under this tag, and the tag has not expired at `now`.
    func holds(_ tag: ClaimTag, now: UnixTime) -> Bool { table.contains(tag.claim, now: now.seconds) }

    /// Makes the claims. Returns nil if they were made, now or by an earlier call with the same tag. Otherwise, returns
    /// the outcome or the error of the call.
    ///
    /// - Parameters:
    ///   - monotonic: the monotonic clock, in seconds.
    ///   - closed: the error that refuses new claims, or nil if the journal is open.
    mutating func decide(
        _ request: ClaimRequest, _ monotonic: Int64, closed: StoreError?
    ) -> Result<ClaimOutcome, StoreError>? {
        let now = request.now.seconds
        if closed == nil { read(now, monotonic) }
        // If an earlier call with this tag made the claims, they may not be on the disk yet. Return nil, so that the answer waits
        // for the disk if it must.
        if let tag = request.tag, holds(tag, now: request.now) { return closed.map { .failure($0) } }
        if let refusal = history.refusal(
            timestamp: request.timestamp, expiresAt: request.expiresAt, now: request.now,
            futureWindow: request.futureWindow)
        {
            return .success(refusal)
        }
        guard let expiry = UInt32(exactly: request.expiresAt.seconds), expiry > 0 else {
            return .failure(StoreError(.unavailable, "the claim would live longer than the journal can say"))
        }
        for claim in request.claims where table.contains(claim, now: now) { return .success(.taken(claim)) }
        if let closed { return .failure(closed) }
        let latest = history.latestReading ?? now
        counter.advance(to: latest)
        let count = request.claims.count + (request.tag == nil ? 0 : 1)
        guard counter.live + count <= settings.maximumClaims else {
            return .failure(StoreError(.unavailable, "the replay store is full"))
        }
        guard count > 0 else { return nil }
        switchSegment(latest)
        // Reserve one more record for the reading of the clock.
        guard !mustSwitch, segment.hasRoom(for: count + 1) else {
            return .failure(
                StoreError(.unavailable, "the disk has no room for the claims, or does not keep up with them"))
        }
        if latest > recordedReading { writeReading(latest, monotonic: monotonic) }
        for claim in request.claims { take(claim, until: expiry, now) }
        if let tag = request.tag {
            take(tag.claim, until: UInt32(clamping: (request.now + ClaimTag.life).seconds), now)
        }
        // Claims that find the state already dirty need not wake maintenance.
        if !isDirty { wakesMaintenance = true }
        isDirty = true
        return nil
    }

    /// Makes a claim in memory and in the segment.
    private mutating func take(_ claim: ReplayClaim, until expiry: UInt32, _ now: Int64) {
        history.purged(to: UnixTime(table.insert(claim, expiry: expiry, now: now)))
        segment.append(.claim(claim, expiry: expiry))
        counter.add(1, expiry: expiry)
    }

    /// Whether the claims of a decided call must be on the disk before the answer.
    func mustBeDurable(_ request: ClaimRequest) -> Bool {
        history.mustBeDurable(timestamp: request.timestamp, now: request.now, durable: durableReading)
    }

    // MARK: The clock

    /// Adds a reading of the clock. If it reveals wrong earlier readings, corrects the state.
    private mutating func read(_ now: Int64, _ monotonic: Int64) {
        switch history.read(now, monotonic: monotonic) {
        case .steady: break
        case .ahead:
            (recordedReading, latestKept) = (.min, nil)
            // The clock stepped soon after a restore from a backup. So `history.read` added a second interval of lost dates for
            // this restore, around `now`. Record it.
            if history.restoredAt == now { recordHistory(now, monotonic) }
        case .wrong(let wrong): recover(from: wrong, now: now, monotonic)
        }
    }

    /// Recovers from a clock that was ahead and fell back.
    private mutating func recover(from wrong: ClockHistory.WrongReadings, now: Int64, _ monotonic: Int64) {
        let latest = ClaimHistory.latestKept(now: now)
        latestKept = latest
        counter.forget(after: latest)
        segment.capExpiry(at: latest)
        for index in closed.indices { closed[index].latestExpiry = min(closed[index].latestExpiry, latest) }
        segmentStart = min(segmentStart, now)
        falls += 1
        self.wrong = wrong
        (recordedReading, durableReading) = (.min, .min)
        recordHistory(now, monotonic)
    }

    /// Records the lost dates (`HistoryLoss`) that a step of the clock revealed. If the segment has no room for them,
    /// claims are refused until the next segment, which begins with these records.
    private mutating func recordHistory(_ now: Int64, _ monotonic: Int64) {
        if segment.hasRoom(for: history.loss.intervals.count + 2) {
            writeHistory()
            writeReading(history.latestReading ?? now, monotonic: monotonic)
        } else {
            mustSwitch = true
        }
        (isDirty, wakesMaintenance) = (true, true)
    }

    // MARK: Segments

    /// Switches to the next segment if it exists. The new segment begins with the history that the earlier segments recorded, so
    /// that an earlier segment can be deleted when all its claims have expired.
    private mutating func switchSegment(_ latest: Int64) {
        guard let next = prepared else { return }
        prepared = nil
        retired = segment
        closed.append(ClosedSegment(sequence: segment.header.sequence, latestExpiry: segment.latestExpiry))
        (segment, segmentStart, mustSwitch) = (next, latest, false)
        // Forget the recorded reading, because each segment records its own readings.
        recordedReading = .min
        let expired = closed.prefix { $0.latestExpiry <= latest }
        for segment in expired { history.purged(to: UnixTime(segment.latestExpiry)) }
        deletable += expired.map(\.sequence)
        closed.removeFirst(expired.count)
        writeBeginning()
        (isDirty, wakesMaintenance) = (true, true)
    }

    /// Records the lost dates and the latest expiry of all purged claims. Recovery merges all recorded losses, but uses only the last
    /// recorded expiry. That record is written last, so a segment that contains it has all its first records.
    private mutating func writeHistory() {
        for interval in history.loss.intervals { segment.append(.loss(interval)) }
        segment.append(.purged(to: history.purgedTo, restoredAt: history.restoredAt))
    }

    /// Records the clock's readings from earlier segments, and the rest of the history.
    private mutating func writeBeginning() {
        for reading in history.clock.summary { segment.append(.clock(reading.wall, monotonic: reading.monotonic)) }
        writeHistory()
    }

    private mutating func writeReading(_ now: Int64, monotonic: Int64) {
        segment.append(.clock(now, monotonic: monotonic))
        recordedReading = now
    }

    /// Appends the seal. Called once everything before it is on the disk.
    func seal() { segment.append(.seal) }

    // MARK: The maintenance thread

    /// Whether maintenance must create the next segment.
    var wantsSegment: Bool {
        prepared == nil
            && ((history.latestReading ?? .min).subtracting(segmentStart) >= settings.segmentSeconds || isNearlyFull
                || mustSwitch)
    }

    /// Whether the segment has no room for another `segmentRecords` records.
    var isNearlyFull: Bool { !segment.hasRoom(for: settings.segmentRecords) }

    /// Returns the work that maintenance must do now.
    mutating func takeWork(isClosing: Bool) -> JournalState.MaintenanceWork {
        defer { (isDirty, retired, deletable, wrong) = (false, nil, [], nil) }
        return JournalState.MaintenanceWork(
            retired: retired, current: segment, isDirty: isDirty, reading: recordedReading, falls: falls,
            deletable: deletable, wrong: wrong, note: note(), isClosing: isClosing,
            wantsRotation: !isClosing && wantsSegment,
            wantsSweep: latestKept != nil || table.used > 2 * counter.live + 65_536)
    }

    /// Records that everything up to a reading of the clock is on the disk.
    ///
    /// - Parameter falls: how many times the clock had fallen back when the sync began. A sync that began before a fall
    ///   does not cover readings after the fall.
    mutating func synchronized(to reading: Int64, falls: Int) {
        if falls == self.falls { durableReading = max(durableReading, reading) }
    }

    /// Drops the expired claims of one shard of the table, and those that expire later than `latestKept`.
    mutating func sweep(shard: Int) {
        let latest = history.latestReading ?? .min
        // The clock advances during the sweep. A claim of the current time must not be swept away.
        if let kept = latestKept, latest.adding(ReplayClaim.longestLife) > kept { latestKept = nil }
        history.purged(to: UnixTime(table.sweep(shard: shard, now: latest, latest: latestKept ?? .max)))
        if shard == ClaimTable.shardCount - 1 { latestKept = nil }
    }
}

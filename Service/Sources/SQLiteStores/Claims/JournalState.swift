internal import AuthContract
internal import AuthService
internal import Dispatch
internal import Synchronization

/// The state that callers and the keeper share, behind one lock that is held only briefly.
///
/// A claim is decided and stored in the segment under the lock. Most callers are answered at once. If a caller's claims must be
/// on the disk, the caller waits for the keeper.
final class JournalState: Sendable {
    typealias Continuation = CheckedContinuation<Result<ClaimOutcome, StoreError>, Never>

    /// The decision about a call.
    enum Decision {
        case answered(Result<ClaimOutcome, StoreError>)
        /// The claims are made, and are answered once they are on the disk.
        case claimedAhead
    }

    private struct Waiter {
        let continuation: Continuation
        /// Nanoseconds on the monotonic clock.
        let deadline: UInt64
    }

    /// Work for the keeper.
    struct Upkeep {
        let retired: JournalSegment?
        let current: JournalSegment
        let isDirty: Bool
        /// The last recorded reading of the clock, and the number of its falls by then.
        let reading: Int64
        let falls: Int
        /// Segments without live claims.
        let deletable: [UInt64]
        /// Wrong readings.
        let wrong: ClockHistory.WrongReadings?
        /// The note that the database records once this work is on the disk.
        let note: JournalNote
        let isClosing: Bool
        let wantsRotation: Bool
        let wantsSweep: Bool
    }

    /// The variables, guarded by the lock.
    private struct Shared {
        var table: ClaimTable
        var census: ClaimCensus
        var segment: JournalSegment
        var segmentStart: Int64
        /// A segment that the keeper created. The next claim switches to it.
        var prepared: JournalSegment?
        /// A complete segment that the keeper has not handled. There is at most one, because only the keeper creates the next
        /// one.
        var retired: JournalSegment?

        var awaitingSync: [Waiter] = []
        /// The waiters that the keeper's next sync answers.
        var synchronizing: [Waiter] = []
        var isDirty = false

        var clock: ClockHistory
        var loss: HistoryLoss
        /// The dates that the database must refuse in addition if the journal is lost: those around wrong readings. The journal
        /// itself has their claims.
        var lossOfClaims: HistoryLoss
        /// Complete segments with live claims, oldest first.
        var closed: [ClosedSegment]
        var deletable: [UInt64] = []
        var wrong: ClockHistory.WrongReadings?
        /// The number of times that the clock fell back.
        var falls = 0
        /// The latest reading whose record is on the disk.
        var durableReading = Int64.min
        /// Claims that expire later are dropped; nil: none are dropped.
        var latestKept: Int64?
        /// Whether the segment has no room for the losses that a wrong reading revealed.
        var mustSwitch = false
        var recordedNow: Int64 = .min
        var isClosing = false
        var isSealing = false
        var isEnded = false
        /// Whether a sync failed. Its data may never reach the disk even if later syncs succeed, because the system no longer
        /// marks it as dirty.
        var hasLostWrites = false
    }

    private let shared: Mutex<Shared>
    private let keeperSignal = DispatchSemaphore(value: 0)
    private let settings: ClaimJournal.Settings

    /// Takes over the recovered state, and records it at the start of the first segment.
    init(_ recovery: JournalRecovery, segment: JournalSegment, now: Int64, settings: ClaimJournal.Settings) {
        self.settings = settings
        var initial = Shared(
            table: recovery.table, census: recovery.census, segment: segment, segmentStart: now, clock: recovery.clock,
            loss: recovery.loss, lossOfClaims: recovery.lossOfClaims, closed: recovery.segments)
        Self.writeBeginning(&initial)
        Self.writeClock(&initial, now: now, monotonic: settings.monotonic())
        // Opening the journal syncs this first.
        initial.durableReading = now
        shared = Mutex(initial)
    }

    var size: (live: Int, slots: Int) { shared.withLock { ($0.census.live, $0.table.used) } }

    /// The current note about the journal for the database.
    var note: JournalNote { shared.withLock { Self.note($0) } }

    private static func note(_ shared: borrowing Shared) -> JournalNote {
        var loss = shared.loss
        loss.add(shared.lossOfClaims)
        loss.add(belowTopOf: shared.clock)
        return JournalNote(
            sequence: shared.segment.header.sequence, length: shared.segment.length,
            clock: shared.clock.latest ?? 0, loss: loss)
    }

    // MARK: Callers

    func claim(_ request: ClaimRequest) -> Decision {
        let monotonic = settings.monotonic()
        return shared.withLock { shared in
            let now = note(request.now.seconds, monotonic, &shared)
            if let answer = decide(request, latest: now, monotonic, &shared) { return .answered(answer) }
            // After a loss of power, the last recorded reading bounds the dates of the lost claims. So no claim is answered at
            // a reading that is more than a second ahead of the one on the disk.
            let mustBeDurable =
                request.timestamp > request.now + HistoryLoss.durableAhead
                || now > shared.durableReading.adding(HistoryLoss.boundary - HistoryLoss.durableAhead)
            return mustBeDurable ? .claimedAhead : .answered(.success(.claimed))
        }
    }

    /// Whether a tag is taken at `now`.
    func holds(_ tag: ClaimTag, now: UnixTime) -> Bool {
        shared.withLock { $0.table.contains(tag.claim, now: now.seconds) }
    }

    /// Adds a reading of the clock. If it reveals wrong earlier readings, corrects the state. Returns the latest reading that
    /// is not known to be wrong.
    private func note(_ now: Int64, _ monotonic: Int64, _ shared: inout Shared) -> Int64 {
        guard !shared.isClosing else { return now }
        switch shared.clock.note(now, monotonic: monotonic) {
        case .steady: break
        case .ahead:
            shared.recordedNow = .min
            shared.latestKept = nil
        case .wrong(let wrong):
            take(wrong, now: now, monotonic, &shared)
        }
        return shared.clock.latest ?? now
    }

    /// Recovers from a clock that was ahead and fell back.
    private func take(
        _ wrong: ClockHistory.WrongReadings, now: Int64, _ monotonic: Int64, _ shared: inout Shared
    ) {
        shared.loss.add(wrong, now: now, purgedTo: shared.table.purgedTo)
        // Claims under earlier wrong readings are dropped too if they expire too late.
        shared.loss.add(shared.lossOfClaims, after: now)
        shared.lossOfClaims.add(around: wrong, isWhole: false)
        // With a correct clock, no claim that expires after `now` would have been purged.
        shared.table.returnPurged(to: now)
        let latest = HistoryLoss.latestKept(now: now)
        shared.latestKept = latest
        shared.census.forget(after: latest)
        shared.segment.capExpiry(at: latest)
        for index in shared.closed.indices {
            shared.closed[index].latestExpiry = min(shared.closed[index].latestExpiry, latest)
        }
        shared.segmentStart = min(shared.segmentStart, now)
        shared.falls += 1
        shared.durableReading = .min
        shared.wrong = wrong
        // Without room, claims are refused until the next segment, which begins with these records.
        shared.recordedNow = .min
        if shared.segment.hasRoom(for: shared.loss.intervals.count + 2) {
            Self.writeState(&shared)
            Self.writeClock(&shared, now: shared.clock.latest ?? now, monotonic: monotonic)
        } else {
            shared.mustSwitch = true
        }
        shared.isDirty = true
        keeperSignal.signal()
    }

    /// Records the losses and the purged expiry. If there are several such records, the last ones are valid. The purged expiry
    /// comes last: a segment without it was never used.
    private static func writeState(_ shared: inout Shared) {
        for interval in shared.loss.intervals { shared.segment.append(.loss(interval)) }
        shared.segment.append(.purged(to: shared.table.purgedTo))
    }

    /// Records the clock's history from earlier segments, and the rest of the state.
    private static func writeBeginning(_ shared: inout Shared) {
        for reading in shared.clock.summary {
            shared.segment.append(.clock(reading.wall, monotonic: reading.monotonic))
        }
        writeState(&shared)
    }

    private static func writeClock(_ shared: inout Shared, now: Int64, monotonic: Int64) {
        shared.segment.append(.clock(now, monotonic: monotonic))
        shared.recordedNow = now
    }

    /// Resumes the caller once everything claimed so far is on the disk.
    func awaitSync(_ continuation: Continuation) {
        let deadline = Self.monotonicNow &+ UInt64(max(0, settings.deadline.nanoseconds))
        let refusal: StoreError? = shared.withLock { shared in
            if shared.isEnded { return Self.closed }
            if shared.hasLostWrites { return Self.lostWrites }
            shared.awaitingSync.append(Waiter(continuation: continuation, deadline: deadline))
            shared.isDirty = true
            return nil
        }
        if let refusal {
            continuation.resume(returning: .failure(refusal))
        } else {
            keeperSignal.signal()
        }
    }

    /// The outcome if the claims cannot be made; nil if they can be made.
    ///
    /// - Parameters:
    ///   - latest: the latest reading of the clock that is not known to be wrong.
    ///   - monotonic: the monotonic clock, in seconds.
    private func decide(
        _ request: ClaimRequest, latest: Int64, _ monotonic: Int64, _ shared: inout Shared
    ) -> Result<ClaimOutcome, StoreError>? {
        let now = request.now.seconds
        // The claims of the first call may not be on the disk yet. The answer waits for them, as the first answer did.
        if let tag = request.tag, shared.table.contains(tag.claim, now: now) {
            return shared.isClosing ? .failure(Self.closed) : nil
        }
        if let seconds = shared.loss.retryAfter(timestamp: request.timestamp, futureWindow: request.futureWindow) {
            return .success(.historyLost(retryAfter: seconds))
        }
        guard request.expiresAt.seconds > max(shared.table.purgedTo, now) else { return .success(.expired) }
        guard let expiry = UInt32(exactly: request.expiresAt.seconds), expiry > 0 else {
            return .failure(StoreError(.unavailable, "the claim would live longer than the journal can say"))
        }
        for claim in request.claims where shared.table.contains(claim, now: now) { return .success(.taken(claim)) }
        if shared.isClosing { return .failure(Self.closed) }
        shared.census.advance(to: latest)
        guard shared.census.live + request.claims.count + (request.tag == nil ? 0 : 1) <= settings.maximumClaims else {
            return .failure(StoreError(.unavailable, "the replay store is full"))
        }
        let records = request.records(until: expiry)
        guard !records.isEmpty else { return nil }
        switchSegment(&shared, latest)
        // Plus one record for the reading of the clock.
        guard !shared.mustSwitch, shared.segment.hasRoom(for: records.count + 1) else {
            return .failure(
                StoreError(.unavailable, "the disk has no room for the claims, or does not keep up with them"))
        }
        if latest > shared.recordedNow { Self.writeClock(&shared, now: latest, monotonic: monotonic) }
        for (claim, expiry) in records {
            shared.table.insert(claim, expiry: expiry, now: now)
            shared.segment.append(.claim(claim, expiry: expiry))
            shared.census.add(1, expiry: expiry)
        }
        if !shared.isDirty { keeperSignal.signal() }
        shared.isDirty = true
        return nil
    }

    /// Switches to the next segment if it exists. The new segment begins with all knowledge of the earlier ones, so that those
    /// can be deleted when all their claims have expired.
    private func switchSegment(_ shared: inout Shared, _ latest: Int64) {
        guard let next = shared.prepared else { return }
        shared.prepared = nil
        shared.retired = shared.segment
        shared.closed.append(
            ClosedSegment(sequence: shared.segment.header.sequence, latestExpiry: shared.segment.latestExpiry))
        shared.segment = next
        shared.segmentStart = latest
        // Each segment records its own time.
        shared.recordedNow = .min
        shared.mustSwitch = false
        let expired = shared.closed.prefix { $0.latestExpiry <= latest }
        for segment in expired { shared.table.raisePurged(to: segment.latestExpiry) }
        shared.deletable += expired.map(\.sequence)
        shared.closed.removeFirst(expired.count)
        Self.writeBeginning(&shared)
        shared.isDirty = true
        // Later claims find the state dirty and send no signal.
        keeperSignal.signal()
    }

    private static let closed = StoreError(.unavailable, "the claim journal is closed")
    private static let lostWrites = StoreError(
        .unavailable,
        "the disk failed to take claims, and none can be promised to be on it until the service is restarted")

    /// Answers waiters whose deadline has passed.
    func expireWaiters() {
        let now = Self.monotonicNow
        let late = shared.withLock { shared in
            Self.takeLate(&shared.awaitingSync, now) + Self.takeLate(&shared.synchronizing, now)
        }
        for waiter in late {
            waiter.continuation.resume(returning: .failure(StoreError(.tooSlow, "the disk did not answer in time")))
        }
    }

    private static func takeLate(_ waiters: inout [Waiter], _ now: UInt64) -> [Waiter] {
        // Deadlines are in the order of arrival.
        let count = waiters.prefix { $0.deadline <= now }.count
        guard count > 0 else { return [] }
        defer { waiters.removeFirst(count) }
        return Array(waiters.prefix(count))
    }

    // MARK: The keeper

    /// Waits for work. Returns at once if a caller waits for the disk. Otherwise waits briefly, so that several claims share
    /// one sync.
    func nextUpkeep() -> Upkeep {
        if shared.withLock({ wantsRotation($0) }) {
            // The last attempt failed, or work became due meanwhile. No later call may signal that, so wait with a timeout.
            _ = keeperSignal.wait(timeout: .now() + .nanoseconds(Int(clamping: settings.retryInterval.nanoseconds)))
        } else {
            keeperSignal.wait()
        }
        let isPressed = shared.withLock { shared in
            !shared.awaitingSync.isEmpty || shared.isClosing || !shared.segment.hasRoom(for: settings.segmentRecords)
        }
        if !isPressed {
            _ = keeperSignal.wait(timeout: .now() + .nanoseconds(Int(clamping: settings.syncInterval.nanoseconds)))
        }
        return upkeep()
    }

    /// The work that is currently due.
    func upkeep() -> Upkeep {
        shared.withLock { shared in
            shared.synchronizing += shared.awaitingSync
            shared.awaitingSync = []
            defer { (shared.isDirty, shared.retired, shared.deletable, shared.wrong) = (false, nil, [], nil) }
            return Upkeep(
                retired: shared.retired, current: shared.segment, isDirty: shared.isDirty,
                reading: shared.recordedNow, falls: shared.falls,
                deletable: shared.deletable, wrong: shared.wrong, note: Self.note(shared),
                isClosing: shared.isClosing, wantsRotation: wantsRotation(shared),
                wantsSweep: shared.latestKept != nil || shared.table.used > 2 * shared.census.live + 65_536)
        }
    }

    private func wantsRotation(_ shared: borrowing Shared) -> Bool {
        guard shared.prepared == nil, !shared.isClosing else { return false }
        return (shared.clock.latest ?? .min).subtracting(shared.segmentStart) >= settings.segmentSeconds
            || !shared.segment.hasRoom(for: settings.segmentRecords) || shared.mustSwitch
    }

    /// Answers the waiters of a sync: their claims are on the disk, or that is unknown.
    ///
    /// - Parameters:
    ///   - reading: the last recorded reading of the clock when the sync began.
    ///   - falls: the number of the clock's falls by then.
    func didSynchronize(_ error: SystemError?, reading: Int64, falls: Int) {
        let (waiters, isLost) = shared.withLock { shared in
            if error != nil {
                shared.hasLostWrites = true
            } else if falls == shared.falls {
                shared.durableReading = max(shared.durableReading, reading)
            }
            defer { shared.synchronizing = [] }
            return (shared.synchronizing, shared.hasLostWrites)
        }
        let result: Result<ClaimOutcome, StoreError> = isLost ? .failure(Self.lostWrites) : .success(.claimed)
        for waiter in waiters { waiter.continuation.resume(returning: result) }
    }

    func prepare(_ next: JournalSegment) {
        shared.withLock { $0.prepared = next }
    }

    func takePrepared() -> JournalSegment? {
        shared.withLock { shared in
            defer { shared.prepared = nil }
            return shared.prepared
        }
    }

    func sweep(shard: Int) {
        shared.withLock { shared in
            let latest = shared.clock.latest ?? .min
            // The clock advances during the sweep. A claim of the current time must not be swept away.
            if let kept = shared.latestKept,
                latest.adding(SignaturePolicy.maximumFutureWindow + ReplayClaim.life) > kept
            {
                shared.latestKept = nil
            }
            shared.table.sweep(shard: shard, now: latest, latest: shared.latestKept ?? .max)
            if shard == ClaimTable.shardCount - 1 { shared.latestKept = nil }
        }
    }

    // MARK: Closing

    func beginClosing(sealing: Bool) {
        shared.withLock { shared in
            guard !shared.isClosing else { return }
            shared.isClosing = true
            shared.isSealing = sealing
        }
        keeperSignal.signal()
    }

    /// Whether the journal closes in order: after a request to close, and with everything on the disk.
    var endsInOrder: Bool { shared.withLock { $0.isSealing && !$0.hasLostWrites } }

    /// Appends the seal. Called once everything before it is on the disk.
    func seal() { shared.withLock { $0.segment.append(.seal) } }

    /// Refuses the waiting callers, which can no longer be served.
    func refuseWaiters() {
        let left = shared.withLock { shared in
            shared.isEnded = true
            defer { (shared.awaitingSync, shared.synchronizing) = ([], []) }
            return shared.awaitingSync + shared.synchronizing
        }
        for waiter in left { waiter.continuation.resume(returning: .failure(Self.closed)) }
    }

    private static var monotonicNow: UInt64 { DispatchTime.now().uptimeNanoseconds }
}

extension ClaimRequest {
    /// The claims that the call makes, each with its expiry.
    fileprivate func records(until expiry: UInt32) -> [(ReplayClaim, UInt32)] {
        let records = claims.map { ($0, expiry) }
        guard let tag else { return records }
        return records + [
            (tag.claim, UInt32(clamping: now.seconds.addingReportingOverflow(ClaimTag.life).partialValue))
        ]
    }
}

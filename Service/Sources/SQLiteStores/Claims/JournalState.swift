internal import AuthContract
internal import AuthService
internal import Dispatch
internal import Synchronization

/// What callers and the keeper share: one lock, held for a moment.
///
/// A claim is decided and stored in the segment under the lock. Most callers are answered at once; one whose claims must be
/// on the disk waits for the keeper.
final class JournalState: Sendable {
    typealias Continuation = CheckedContinuation<Result<ClaimOutcome, StoreError>, Never>

    /// What becomes of a call.
    enum Decision {
        case answered(Result<ClaimOutcome, StoreError>)
        /// Claimed, and to be answered when it is on the disk.
        case claimedAhead
    }

    private struct Waiter {
        let continuation: Continuation
        /// On the monotonic clock, in nanoseconds.
        let deadline: UInt64
    }

    /// What the keeper is to do now.
    struct Upkeep {
        let retired: JournalSegment?
        let current: JournalSegment
        let isDirty: Bool
        /// The reading of the clock that was recorded last, and how often the clock had fallen back by then.
        let reading: Int64
        let falls: Int
        /// Segments of which nothing lives.
        let deletable: [UInt64]
        /// Readings that turned out to be wrong.
        let wrong: ClockHistory.WrongReadings?
        /// What the database is told when this is on the disk.
        let note: JournalNote
        let isClosing: Bool
        let wantsRotation: Bool
        let wantsSweep: Bool
    }

    /// What varies.
    private struct Shared {
        var table: ClaimTable
        var census: ClaimCensus
        var segment: JournalSegment
        var segmentStart: Int64
        /// Made by the keeper, taken into use by the next claim.
        var prepared: JournalSegment?
        /// Complete, and not yet seen by the keeper; there is one at most, because the keeper makes the next one.
        var retired: JournalSegment?

        var awaitingSync: [Waiter] = []
        /// Taken by the keeper for the synchronization that it is about to make.
        var synchronizing: [Waiter] = []
        var isDirty = false

        var clock: ClockHistory
        var loss: HistoryLoss
        /// What the database is told to refuse in addition if the journal is lost: dates around wrong readings, of which the
        /// journal knows the claims.
        var lossOfClaims: HistoryLoss
        /// Complete segments that still hold something, oldest first.
        var closed: [ClosedSegment]
        var deletable: [UInt64] = []
        var wrong: ClockHistory.WrongReadings?
        /// How often the clock fell back.
        var falls = 0
        /// The latest reading whose record is on the disk.
        var durableReading = Int64.min
        /// What expires later is swept away; nil: nothing.
        var latestKept: Int64?
        /// Whether the segment has no room for what a wrong reading of the clock made known.
        var mustSwitch = false
        var recordedNow: Int64 = .min
        var isClosing = false
        var isSealing = false
        var isEnded = false
        /// A synchronization failed. What it was to bring to the disk may never get there, however well later ones go: the
        /// system has forgotten that it is to be written.
        var hasLostWrites = false
    }

    private let shared: Mutex<Shared>
    private let keeperSignal = DispatchSemaphore(value: 0)
    private let settings: ClaimJournal.Settings

    /// Takes over what was recovered, and writes it down at the beginning of the first segment.
    init(_ recovery: JournalRecovery, segment: JournalSegment, now: Int64, settings: ClaimJournal.Settings) {
        self.settings = settings
        var initial = Shared(
            table: recovery.table, census: recovery.census, segment: segment, segmentStart: now, clock: recovery.clock,
            loss: recovery.loss, lossOfClaims: recovery.lossOfClaims, closed: recovery.segments)
        Self.writeState(&initial)
        Self.writeClock(&initial, now: now, monotonic: settings.monotonic())
        // Whoever opens the journal brings this to the disk first.
        initial.durableReading = now
        shared = Mutex(initial)
    }

    var size: (live: Int, slots: Int) { shared.withLock { ($0.census.live, $0.table.used) } }

    /// What the database is told of the journal as it is now.
    var note: JournalNote { shared.withLock { Self.note($0) } }

    private static func note(_ shared: borrowing Shared) -> JournalNote {
        var loss = shared.loss
        loss.add(shared.lossOfClaims)
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
            // After a loss of power the last recorded reading bounds the dates of what was lost. So no claim is answered by
            // a reading that is more than a second ahead of what is on the disk.
            let mustBeDurable =
                request.timestamp > request.now + HistoryLoss.durableAhead
                || now > shared.durableReading.adding(HistoryLoss.boundary - HistoryLoss.durableAhead)
            return mustBeDurable ? .claimedAhead : .answered(.success(.claimed))
        }
    }

    /// Takes a reading of the clock, and what it shows of earlier ones; returns the latest that is not known to be wrong.
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

    /// Goes back to a clock that was ahead.
    private func take(
        _ wrong: ClockHistory.WrongReadings, now: Int64, _ monotonic: Int64, _ shared: inout Shared
    ) {
        shared.loss.add(wrong, now: now, purgedTo: shared.table.purgedTo)
        shared.lossOfClaims.add(around: wrong)
        // At the last right reading no more than this was purged.
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
        // Where there is no room, claims are refused until the next segment, which begins with this.
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

    /// Records what is refused and what was purged: what comes later in the journal counts. What was purged comes last; a
    /// segment without it was never used.
    private static func writeState(_ shared: inout Shared) {
        for interval in shared.loss.intervals { shared.segment.append(.loss(interval)) }
        shared.segment.append(.purged(to: shared.table.purgedTo))
    }

    private static func writeClock(_ shared: inout Shared, now: Int64, monotonic: Int64) {
        shared.segment.append(.clock(now, monotonic: monotonic))
        shared.recordedNow = now
    }

    /// Answers when everything claimed so far is on the disk.
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

    /// The answer, where it is another than that all are claimed.
    ///
    /// - Parameters:
    ///   - latest: the latest reading of the clock that is not known to be wrong.
    ///   - monotonic: the monotonic clock, in seconds.
    private func decide(
        _ request: ClaimRequest, latest: Int64, _ monotonic: Int64, _ shared: inout Shared
    ) -> Result<ClaimOutcome, StoreError>? {
        let now = request.now.seconds
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
        guard shared.census.live + request.claims.count <= settings.maximumClaims else {
            return .failure(StoreError(.unavailable, "the replay store is full"))
        }
        guard !request.claims.isEmpty else { return nil }
        switchSegment(&shared, latest)
        // One more for the clock.
        guard !shared.mustSwitch, shared.segment.hasRoom(for: request.claims.count + 1) else {
            return .failure(
                StoreError(.unavailable, "the disk has no room for the claims, or does not keep up with them"))
        }
        if latest > shared.recordedNow { Self.writeClock(&shared, now: latest, monotonic: monotonic) }
        for claim in request.claims {
            shared.table.insert(claim, expiry: expiry, now: now)
            shared.segment.append(.claim(claim, expiry: expiry))
        }
        shared.census.add(request.claims.count, expiry: expiry)
        if !shared.isDirty { keeperSignal.signal() }
        shared.isDirty = true
        return nil
    }

    /// Goes on in the next segment where there is one. It begins with what all segments before it have to say, so that the
    /// oldest ones can go: those whose claims have all expired.
    private func switchSegment(_ shared: inout Shared, _ latest: Int64) {
        guard let next = shared.prepared else { return }
        shared.prepared = nil
        shared.retired = shared.segment
        shared.closed.append(
            ClosedSegment(sequence: shared.segment.header.sequence, latestExpiry: shared.segment.latestExpiry))
        shared.segment = next
        shared.segmentStart = latest
        // Each segment says by itself what time it was.
        shared.recordedNow = .min
        shared.mustSwitch = false
        let expired = shared.closed.prefix { $0.latestExpiry <= latest }
        for segment in expired { shared.table.raisePurged(to: segment.latestExpiry) }
        shared.deletable += expired.map(\.sequence)
        shared.closed.removeFirst(expired.count)
        Self.writeState(&shared)
        shared.isDirty = true
    }

    private static let closed = StoreError(.unavailable, "the claim journal is closed")
    private static let lostWrites = StoreError(
        .unavailable,
        "the disk failed to take claims, and none can be promised to be on it until the service is restarted")

    /// Tells those who have waited for longer than their deadline.
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

    /// Waits until there is something to keep up: at once where somebody waits for the disk, else so that several claims
    /// share one synchronization.
    func nextUpkeep() -> Upkeep {
        if shared.withLock({ wantsRotation($0) }) {
            // The last attempt failed, or it is due since: nobody else may come to say so.
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

    /// What there is to keep up now.
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

    /// Answers those who waited for the disk: what they claimed is there, or nobody can say.
    ///
    /// - Parameters:
    ///   - reading: the reading of the clock that was recorded last when the synchronization began.
    ///   - falls: how often the clock had fallen back by then.
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
            // While it lasts the clock goes on; a claim of now is never swept away.
            if let kept = shared.latestKept,
                latest.adding(HistoryLoss.maximumFutureWindow + HistoryLoss.claimLife) > kept
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

    /// Whether the journal ends in order: asked to, and with everything on the disk that was to be there.
    var endsInOrder: Bool { shared.withLock { $0.isSealing && !$0.hasLostWrites } }

    /// Says that everything before it is on the disk, and so is called after that.
    func seal() { shared.withLock { $0.segment.append(.seal) } }

    /// Answers whoever cannot be served any more.
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

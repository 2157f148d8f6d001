internal import AuthContract
internal import AuthService
internal import Dispatch
internal import Synchronization

/// The state that callers and the maintenance thread share, behind one lock that is held only briefly.
///
/// A claim is decided and stored in the segment under the lock. Most callers are answered at once. If a caller's claims must be
/// on the disk, the caller waits for a sync by the maintenance thread.
final class JournalState: Sendable {
    typealias Continuation = CheckedContinuation<Result<ClaimOutcome, StoreError>, Never>

    /// The decision about a call.
    enum Decision {
        case answered(Result<ClaimOutcome, StoreError>)
        /// The claims are made. The caller gets its answer once they are on the disk.
        case claimedAhead
    }

    private struct Waiter {
        let continuation: Continuation
        /// Nanoseconds on the monotonic clock.
        let deadline: UInt64
    }

    /// Work for the maintenance thread.
    struct MaintenanceWork {
        let retired: JournalSegment?
        let current: JournalSegment
        let isDirty: Bool
        /// The last recorded reading of the clock, and how often the clock had stepped back by then.
        let reading: Int64
        let falls: Int
        /// Segments without live claims.
        let deletable: [UInt64]
        /// Readings of the clock that turned out to be wrong; nil if there are none.
        let wrong: ClockHistory.WrongReadings?
        /// The state of the journal that the database records once this work is on the disk.
        let note: JournalNote
        let isClosing: Bool
        let wantsRotation: Bool
        let wantsSweep: Bool
    }

    /// The variables, guarded by the lock.
    private struct Shared {
        var ledger: JournalLedger
        var awaitingSync: [Waiter] = []
        /// The waiters that maintenance answers after the current sync.
        var synchronizing: [Waiter] = []
        var isClosing = false
        var isSealing = false
        var isEnded = false
        /// Whether a sync failed. Its data may never reach the disk even if later syncs succeed, because the system no longer
        /// marks it as dirty.
        var hasLostWrites = false
        /// Whether the database and the journal's folder are at their paths, and the time of the last check, in seconds of
        /// the monotonic clock. Once a check found them elsewhere, `place` stays `elsewhere`: another service may have made
        /// claims, which the next start detects.
        var place = FileIdentity.Place.here
        var lookedUpAt = Int64.min

        var wantsSegment: Bool { !isClosing && ledger.wantsSegment }
    }

    private let shared: Mutex<Shared>
    private let workSignal = DispatchSemaphore(value: 0)
    private let settings: ClaimJournal.Settings
    private let filePlace: @Sendable () -> FileIdentity.Place

    /// Takes over the recovered state, and records it at the start of the first segment.
    ///
    /// - Parameters:
    ///   - recovery: the recovered state.
    ///   - segment: the first segment.
    ///   - now: the service's clock, unix seconds.
    ///   - settings: bounds and clocks.
    ///   - place: whether the journal's folder and the database are at their paths. If they are not, this journal makes
    ///     no claims, because another service may have started with the moved files.
    init(
        _ recovery: JournalRecovery, segment: JournalSegment, now: Int64, settings: ClaimJournal.Settings,
        place: @escaping @Sendable () -> FileIdentity.Place = { .here }
    ) {
        (self.settings, filePlace) = (settings, place)
        shared = Mutex(Shared(ledger: JournalLedger(recovery, segment: segment, now: now, settings: settings)))
    }

    var size: (live: Int, slots: Int) { shared.withLock { $0.ledger.size } }

    /// The current state of the journal, for the database to record.
    var note: JournalNote { shared.withLock { $0.ledger.note(isLast: $0.isEnded) } }

    // MARK: Callers

    func claim(_ request: ClaimRequest) -> Decision {
        let monotonic = settings.monotonic()
        // Check the paths once a second. That is shorter than the time for which another service refuses requests after its
        // start.
        let isDue = shared.withLock { shared in
            guard shared.lookedUpAt < monotonic else { return false }
            shared.lookedUpAt = monotonic
            return true
        }
        if isDue { _ = isInPlace() }
        return shared.withLock { shared in
            let answer = shared.ledger.decide(request, monotonic, closed: Self.closed(shared))
            if shared.ledger.wakesMaintenance {
                shared.ledger.wakesMaintenance = false
                workSignal.signal()
            }
            if let answer { return .answered(answer) }
            return shared.ledger.mustBeDurable(request) ? .claimedAhead : .answered(.success(.claimed))
        }
    }

    /// The error that refuses new claims; nil if claims can be made.
    private static func closed(_ shared: borrowing Shared) -> StoreError? {
        if shared.isClosing { return closed }
        return switch shared.place {
        case .here: nil
        case .elsewhere: moved
        case .unknown: StoreError(.unavailable, "the system does not say whether the claim journal is in its place")
        }
    }

    /// Whether the database and the journal's folder are at their paths, and no earlier check found them elsewhere. The
    /// file system may take long to answer, so this asks it without holding the lock.
    func isInPlace() -> Bool {
        let place = filePlace()
        return shared.withLock { shared in
            if shared.place != .elsewhere { shared.place = place }
            return shared.place == .here
        }
    }

    /// Whether an earlier call made claims under this tag, and the tag has not expired at `now`.
    func holds(_ tag: ClaimTag, now: UnixTime) -> Bool { shared.withLock { $0.ledger.holds(tag, now: now) } }

    /// Resumes the caller once all claims that were made so far are on the disk.
    func awaitSync(_ continuation: Continuation) {
        let deadline = Self.monotonicNow &+ UInt64(max(0, settings.deadline.nanoseconds))
        let refusal: StoreError? = shared.withLock { shared in
            if shared.isEnded { return Self.closed }
            if shared.hasLostWrites { return Self.lostWrites }
            shared.awaitingSync.append(Waiter(continuation: continuation, deadline: deadline))
            shared.ledger.isDirty = true
            return nil
        }
        if let refusal {
            continuation.resume(returning: .failure(refusal))
        } else {
            workSignal.signal()
        }
    }

    private static let closed = StoreError(.unavailable, "the claim journal is closed")
    private static let moved = StoreError(
        .unavailable,
        "the database or the folder of its claim journal was moved or removed: stop the service, put both back in their place, "
            + "and start it")
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
        // The waiters are in the order of arrival, so their deadlines ascend.
        let count = waiters.prefix { $0.deadline <= now }.count
        guard count > 0 else { return [] }
        defer { waiters.removeFirst(count) }
        return Array(waiters.prefix(count))
    }

    // MARK: The maintenance thread

    /// Waits for work. Then returns at once if a caller waits for the disk, the segment is nearly full or the journal closes.
    /// Otherwise, waits briefly first, so that several claims share one sync.
    func nextWork() -> MaintenanceWork {
        if shared.withLock({ $0.wantsSegment }) {
            // The last attempt to create a segment failed, or a segment became due meanwhile. Perhaps no later call signals
            // that, so wait with a timeout.
            _ = workSignal.wait(timeout: .now() + .nanoseconds(Int(clamping: settings.retryInterval.nanoseconds)))
        } else {
            workSignal.wait()
        }
        let isPressed = shared.withLock { shared in
            !shared.awaitingSync.isEmpty || shared.isClosing || shared.ledger.isNearlyFull
        }
        if !isPressed {
            _ = workSignal.wait(timeout: .now() + .nanoseconds(Int(clamping: settings.syncInterval.nanoseconds)))
        }
        return takeWork()
    }

    /// The work that is currently due.
    func takeWork() -> MaintenanceWork {
        shared.withLock { shared in
            shared.synchronizing += shared.awaitingSync
            shared.awaitingSync = []
            return shared.ledger.takeWork(isClosing: shared.isClosing)
        }
    }

    /// Answers the waiters of a sync. Their claims are on the disk, or, after an error, it is unknown whether they are.
    ///
    /// - Parameters:
    ///   - reading: the last recorded reading of the clock when the sync began.
    ///   - falls: how many times the clock had fallen back when the sync began.
    func didSynchronize(_ error: SystemError?, reading: Int64, falls: Int) {
        let (waiters, isLost) = shared.withLock { shared in
            if error == nil {
                shared.ledger.synchronized(to: reading, falls: falls)
            } else {
                shared.hasLostWrites = true
            }
            defer { shared.synchronizing = [] }
            return (shared.synchronizing, shared.hasLostWrites)
        }
        let result: Result<ClaimOutcome, StoreError> = isLost ? .failure(Self.lostWrites) : .success(.claimed)
        for waiter in waiters { waiter.continuation.resume(returning: result) }
    }

    func prepare(_ next: JournalSegment) {
        shared.withLock { $0.ledger.prepared = next }
    }

    func takePrepared() -> JournalSegment? {
        shared.withLock { shared in
            defer { shared.ledger.prepared = nil }
            return shared.ledger.prepared
        }
    }

    func sweep(shard: Int) { shared.withLock { $0.ledger.sweep(shard: shard) } }

    // MARK: Closing

    func beginClosing(sealing: Bool) {
        shared.withLock { shared in
            guard !shared.isClosing else { return }
            shared.isClosing = true
            shared.isSealing = sealing
        }
        workSignal.signal()
    }

    /// Whether the closing journal is to be sealed: it was not abandoned, and no sync has failed.
    var endsInOrder: Bool { shared.withLock { $0.isSealing && !$0.hasLostWrites } }

    /// Appends the seal. Called once everything before it is on the disk.
    func seal() { shared.withLock { $0.ledger.seal() } }

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

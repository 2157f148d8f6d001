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
        let latestNow: Int64
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
        var latestNow: Int64
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
    private let loss: HistoryLoss

    init(_ recovery: JournalRecovery, segment: JournalSegment, now: Int64, settings: ClaimJournal.Settings) {
        shared = Mutex(
            Shared(
                table: recovery.table, census: recovery.census, segment: segment, segmentStart: now, latestNow: now))
        loss = recovery.loss
        self.settings = settings
    }

    var size: (live: Int, slots: Int) { shared.withLock { ($0.census.live, $0.table.used) } }

    // MARK: Callers

    func claim(_ request: ClaimRequest) -> Decision {
        shared.withLock { shared in
            if let answer = decide(request, &shared) { return .answered(answer) }
            return request.timestamp > request.now + HistoryLoss.durableAhead
                ? .claimedAhead : .answered(.success(.claimed))
        }
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
    private func decide(_ request: ClaimRequest, _ shared: inout Shared) -> Result<ClaimOutcome, StoreError>? {
        let now = request.now.seconds
        if let seconds = loss.retryAfter(timestamp: request.timestamp, futureWindow: request.futureWindow) {
            return .success(.historyLost(retryAfter: seconds))
        }
        guard request.expiresAt.seconds > max(shared.table.purgedTo, now) else { return .success(.expired) }
        guard let expiry = UInt32(exactly: request.expiresAt.seconds), expiry > 0 else {
            return .failure(StoreError(.unavailable, "the claim would live longer than the journal can say"))
        }
        for claim in request.claims where shared.table.contains(claim, now: now) { return .success(.taken(claim)) }
        if shared.isClosing { return .failure(Self.closed) }
        shared.census.advance(to: now)
        guard shared.census.live + request.claims.count <= settings.maximumClaims else {
            return .failure(StoreError(.unavailable, "the replay store is full"))
        }
        guard !request.claims.isEmpty else { return nil }
        shared.latestNow = max(shared.latestNow, now)
        switchSegment(&shared)
        // One more for the clock.
        guard shared.segment.hasRoom(for: request.claims.count + 1) else {
            return .failure(
                StoreError(.unavailable, "the disk has no room for the claims, or does not keep up with them"))
        }
        if shared.latestNow > shared.recordedNow {
            shared.segment.append(.clock(shared.latestNow))
            shared.recordedNow = shared.latestNow
        }
        for claim in request.claims {
            shared.table.insert(claim, expiry: expiry, now: now)
            shared.segment.append(.claim(claim, expiry: expiry))
        }
        shared.census.add(request.claims.count, expiry: expiry)
        if !shared.isDirty { keeperSignal.signal() }
        shared.isDirty = true
        return nil
    }

    private func switchSegment(_ shared: inout Shared) {
        guard let next = shared.prepared else { return }
        shared.prepared = nil
        shared.retired = shared.segment
        shared.segment = next
        shared.segmentStart = shared.latestNow
        // Each segment says by itself what time it was.
        shared.recordedNow = .min
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
            defer { (shared.isDirty, shared.retired) = (false, nil) }
            return Upkeep(
                retired: shared.retired, current: shared.segment, isDirty: shared.isDirty,
                latestNow: shared.latestNow, isClosing: shared.isClosing, wantsRotation: wantsRotation(shared),
                wantsSweep: shared.table.used > 2 * shared.census.live + 65_536)
        }
    }

    private func wantsRotation(_ shared: borrowing Shared) -> Bool {
        guard shared.prepared == nil, !shared.isClosing else { return false }
        return shared.latestNow - shared.segmentStart >= settings.segmentSeconds
            || !shared.segment.hasRoom(for: settings.segmentRecords)
    }

    /// Answers those who waited for the disk: what they claimed is there, or nobody can say.
    func didSynchronize(_ error: SystemError?) {
        let (waiters, isLost) = shared.withLock { shared in
            if error != nil { shared.hasLostWrites = true }
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
        shared.withLock { $0.table.sweep(shard: shard, now: $0.latestNow) }
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

internal import AuthContract
internal import AuthService
internal import Foundation

/// What callers and the keeper share: one lock, held for a moment.
///
/// A claim is decided and stored in the segment under the lock. Most callers are answered at once; one whose claims must be
/// on the disk waits for the keeper.
final class JournalState: @unchecked Sendable {
    // Unchecked: `lock` guards everything that varies.
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

    private let lock = NSLock()
    private let keeperSignal = DispatchSemaphore(value: 0)
    private let settings: ClaimJournal.Settings
    private let loss: HistoryLoss

    private var table: ClaimTable
    private var census: ClaimCensus
    private var segment: JournalSegment
    private var segmentStart: Int64
    /// Made by the keeper, taken into use by the next claim.
    private var prepared: JournalSegment?
    /// Complete, and not yet seen by the keeper; there is one at most, because the keeper makes the next one.
    private var retired: JournalSegment?

    private var awaitingSync: [Waiter] = []
    /// Taken by the keeper for the synchronization that it is about to make.
    private var synchronizing: [Waiter] = []
    private var isDirty = false
    private var latestNow: Int64
    private var recordedNow: Int64 = .min
    private var isClosing = false
    private var isSealing = false
    private var isEnded = false
    /// A synchronization failed. What it was to bring to the disk may never get there, however well later ones go: the
    /// system has forgotten that it is to be written.
    private var hasLostWrites = false

    init(_ recovery: JournalRecovery, segment: JournalSegment, now: Int64, settings: ClaimJournal.Settings) {
        table = recovery.table
        census = recovery.census
        loss = recovery.loss
        self.segment = segment
        segmentStart = now
        latestNow = now
        self.settings = settings
    }

    var size: (live: Int, slots: Int) { locked { (census.live, table.used) } }

    // MARK: Callers

    func claim(_ request: ClaimRequest) -> Decision {
        locked {
            if let answer = decide(request) { return .answered(answer) }
            return request.timestamp > request.now + HistoryLoss.durableAhead
                ? .claimedAhead : .answered(.success(.claimed))
        }
    }

    /// Answers when everything claimed so far is on the disk.
    func awaitSync(_ continuation: Continuation) {
        let deadline = Self.monotonicNow &+ UInt64(max(0, settings.deadline.nanoseconds))
        let refusal: StoreError? = locked {
            if isEnded { return Self.closed }
            if hasLostWrites { return Self.lostWrites }
            awaitingSync.append(Waiter(continuation: continuation, deadline: deadline))
            isDirty = true
            return nil
        }
        if let refusal {
            continuation.resume(returning: .failure(refusal))
        } else {
            keeperSignal.signal()
        }
    }

    /// The answer, where it is another than that all are claimed.
    private func decide(_ request: ClaimRequest) -> Result<ClaimOutcome, StoreError>? {
        let now = request.now.seconds
        if let seconds = loss.retryAfter(timestamp: request.timestamp, futureWindow: request.futureWindow) {
            return .success(.historyLost(retryAfter: seconds))
        }
        guard request.expiresAt.seconds > max(table.purgedTo, now) else { return .success(.expired) }
        guard let expiry = UInt32(exactly: request.expiresAt.seconds), expiry > 0 else {
            return .failure(StoreError(.unavailable, "the claim would live longer than the journal can say"))
        }
        for claim in request.claims where table.contains(claim, now: now) { return .success(.taken(claim)) }
        if isClosing { return .failure(Self.closed) }
        census.advance(to: now)
        guard census.live + request.claims.count <= settings.maximumClaims else {
            return .failure(StoreError(.unavailable, "the replay store is full"))
        }
        guard !request.claims.isEmpty else { return nil }
        latestNow = max(latestNow, now)
        switchSegment()
        // One more for the clock.
        guard segment.hasRoom(for: request.claims.count + 1) else {
            return .failure(
                StoreError(.unavailable, "the disk has no room for the claims, or does not keep up with them"))
        }
        if latestNow > recordedNow {
            segment.append(.clock(latestNow))
            recordedNow = latestNow
        }
        for claim in request.claims {
            table.insert(claim, expiry: expiry, now: now)
            segment.append(.claim(claim, expiry: expiry))
        }
        census.add(request.claims.count, expiry: expiry)
        if !isDirty { keeperSignal.signal() }
        isDirty = true
        return nil
    }

    private func switchSegment() {
        guard let next = prepared else { return }
        prepared = nil
        retired = segment
        segment = next
        segmentStart = latestNow
        // Each segment says by itself what time it was.
        recordedNow = .min
    }

    private static let closed = StoreError(.unavailable, "the claim journal is closed")
    private static let lostWrites = StoreError(
        .unavailable,
        "the disk failed to take claims, and none can be promised to be on it until the service is restarted")

    /// Tells those who have waited for longer than their deadline.
    func expireWaiters() {
        let now = Self.monotonicNow
        let late = locked {
            Self.takeLate(&awaitingSync, now) + Self.takeLate(&synchronizing, now)
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
        if locked({ wantsRotation }) {
            // The last attempt failed, or it is due since: nobody else may come to say so.
            _ = keeperSignal.wait(timeout: .now() + .nanoseconds(Int(clamping: settings.retryInterval.nanoseconds)))
        } else {
            keeperSignal.wait()
        }
        if locked({ awaitingSync.isEmpty && !isClosing && segment.hasRoom(for: settings.segmentRecords) }) {
            _ = keeperSignal.wait(timeout: .now() + .nanoseconds(Int(clamping: settings.syncInterval.nanoseconds)))
        }
        return upkeep()
    }

    /// What there is to keep up now.
    func upkeep() -> Upkeep {
        locked {
            synchronizing += awaitingSync
            awaitingSync = []
            defer { (isDirty, retired) = (false, nil) }
            return Upkeep(
                retired: retired, current: segment, isDirty: isDirty,
                latestNow: latestNow, isClosing: isClosing, wantsRotation: wantsRotation,
                wantsSweep: table.used > 2 * census.live + 65_536)
        }
    }

    private var wantsRotation: Bool {
        prepared == nil && !isClosing
            && (latestNow - segmentStart >= settings.segmentSeconds || !segment.hasRoom(for: settings.segmentRecords))
    }

    /// Answers those who waited for the disk: what they claimed is there, or nobody can say.
    func didSynchronize(_ error: SystemError?) {
        let (waiters, isLost) = locked {
            if error != nil { hasLostWrites = true }
            defer { synchronizing = [] }
            return (synchronizing, hasLostWrites)
        }
        let result: Result<ClaimOutcome, StoreError> = isLost ? .failure(Self.lostWrites) : .success(.claimed)
        for waiter in waiters { waiter.continuation.resume(returning: result) }
    }

    func prepare(_ next: JournalSegment) {
        locked { prepared = next }
    }

    func takePrepared() -> JournalSegment? {
        locked {
            defer { prepared = nil }
            return prepared
        }
    }

    func sweep(shard: Int) {
        locked { table.sweep(shard: shard, now: latestNow) }
    }

    // MARK: Closing

    func beginClosing(sealing: Bool) {
        locked {
            guard !isClosing else { return }
            isClosing = true
            isSealing = sealing
        }
        keeperSignal.signal()
    }

    /// Whether the journal ends in order: asked to, and with everything on the disk that was to be there.
    var endsInOrder: Bool { locked { isSealing && !hasLostWrites } }

    /// Says that everything before it is on the disk, and so is called after that.
    func seal() { locked { segment.append(.seal) } }

    /// Answers whoever cannot be served any more.
    func refuseWaiters() {
        let left = locked {
            isEnded = true
            defer { (awaitingSync, synchronizing) = ([], []) }
            return awaitingSync + synchronizing
        }
        for waiter in left { waiter.continuation.resume(returning: .failure(Self.closed)) }
    }

    private func locked<Value>(_ body: () -> Value) -> Value {
        lock.lock()
        defer { lock.unlock() }
        return body()
    }

    private static var monotonicNow: UInt64 { DispatchTime.now().uptimeNanoseconds }
}

internal import AuthContract
internal import AuthService
internal import Foundation

/// What callers, the writer and the keeper share: one lock, held for a moment.
///
/// A claim is decided under the lock, so that of two callers one is told at once; its caller is answered when the writer
/// has written it.
final class JournalState: @unchecked Sendable {
    // Unchecked: `condition` guards everything that varies.
    typealias Continuation = CheckedContinuation<Result<ClaimOutcome, StoreError>, Never>

    private struct Waiter {
        let continuation: Continuation
        /// On the monotonic clock, in nanoseconds.
        let deadline: UInt64
        let needsSync: Bool
    }

    /// What the writer is to write now.
    struct Batch {
        let records: [ClaimRecord]
        let segment: JournalSegment
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

    private let condition = NSCondition()
    private let keeperSignal = DispatchSemaphore(value: 0)
    private let settings: ClaimJournal.Settings
    private let loss: HistoryLoss

    private var table: ClaimTable
    private var census: ClaimCensus
    private var segment: JournalSegment
    private var segmentStart: Int64
    private var segmentLength = SegmentHeader.size
    /// Made by the keeper, taken into use by the writer.
    private var prepared: JournalSegment?
    /// Complete, and not yet seen by the keeper; there is one at most, because the keeper makes the next one.
    private var retired: JournalSegment?

    private var pending: [ClaimRecord] = []
    private var waiting: [Waiter] = []
    private var inFlight: [Waiter] = []
    private var awaitingSync: [Waiter] = []
    /// Taken by the keeper for the synchronization that it is about to make.
    private var synchronizing: [Waiter] = []
    private var isDirty = false
    private var latestNow: Int64
    private var recordedNow: Int64 = .min
    private var failure: StoreError?
    private var isClosing = false
    private var isSealing = false
    private var hasUnwritten = false

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

    func claim(_ request: ClaimRequest, _ continuation: Continuation) {
        let decision: Result<ClaimOutcome, StoreError>? = locked {
            if let decided = decide(request) { return decided }
            let needsSync = request.timestamp > request.now + HistoryLoss.durableAhead
            let deadline = Self.monotonicNow &+ UInt64(max(0, settings.deadline.nanoseconds))
            waiting.append(Waiter(continuation: continuation, deadline: deadline, needsSync: needsSync))
            condition.signal()
            return nil
        }
        if let decision { continuation.resume(returning: decision) }
    }

    /// The answer, where there is one already; otherwise the claims are taken and wait to be written.
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
        if isClosing { return .failure(StoreError(.unavailable, "the claim journal is closed")) }
        if let failure { return .failure(failure) }
        census.advance(to: now)
        guard census.live + request.claims.count <= settings.maximumClaims else {
            return .failure(StoreError(.unavailable, "the replay store is full"))
        }
        guard pending.count + request.claims.count <= settings.maximumPending else {
            return .failure(StoreError(.unavailable, "the disk does not keep up with the claims"))
        }
        guard !request.claims.isEmpty else { return .success(.claimed) }
        latestNow = max(latestNow, now)
        if latestNow > recordedNow {
            pending.append(.clock(latestNow))
            recordedNow = latestNow
        }
        for claim in request.claims {
            table.insert(claim, expiry: expiry, now: now)
            pending.append(.claim(claim, expiry: expiry))
        }
        census.add(request.claims.count, expiry: expiry)
        return nil
    }

    /// Tells those who have waited for longer than their deadline.
    func expireWaiters() {
        let now = Self.monotonicNow
        let late = locked {
            Self.takeLate(&waiting, now) + Self.takeLate(&inFlight, now) + Self.takeLate(&awaitingSync, now)
                + Self.takeLate(&synchronizing, now)
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

    // MARK: The writer

    /// Waits for something to write; nil when there is nothing more to come.
    func nextBatch() -> Batch? {
        locked {
            while pending.isEmpty, !isClosing { condition.wait() }
            guard !pending.isEmpty, !isClosing || isSealing else { return nil }
            inFlight = waiting
            waiting = []
            defer {
                pending = []
                pending.reserveCapacity(min(2 * pending.count, 4096))
            }
            switchSegment()
            return Batch(records: pending, segment: segment)
        }
    }

    func didWrite(_ segment: JournalSegment) {
        let written = locked {
            failure = nil
            hasUnwritten = false
            segmentLength = segment.length
            let (later, now) = (inFlight.filter(\.needsSync), inFlight.filter { !$0.needsSync })
            inFlight = []
            awaitingSync += later
            if !isDirty || !later.isEmpty { keeperSignal.signal() }
            isDirty = true
            return now
        }
        for waiter in written { waiter.continuation.resume(returning: .success(.claimed)) }
    }

    /// The write failed: whoever waits is told, and until a write succeeds again nobody else can claim. What was claimed
    /// stays claimed.
    func didFail(_ error: SystemError) {
        let failure = StoreError(.unavailable, "the claim journal cannot be written: \(error)")
        let refused = locked {
            self.failure = failure
            hasUnwritten = true
            defer { (inFlight, waiting) = ([], []) }
            return inFlight + waiting
        }
        for waiter in refused { waiter.continuation.resume(returning: .failure(failure)) }
    }

    /// Waits until it is time to try again; false when closing.
    func pauseBeforeRetry() -> Bool {
        locked {
            let until = Date(timeIntervalSinceNow: Double(settings.retryInterval.nanoseconds) / 1e9)
            while !isClosing, condition.wait(until: until) {}
            return !isClosing
        }
    }

    private func switchSegment() {
        guard let next = prepared else { return }
        prepared = nil
        retired = segment
        segment = next
        segmentStart = latestNow
        segmentLength = next.length
        // Each segment says by itself what time it was.
        recordedNow = .min
    }

    // MARK: The keeper

    /// Waits until there is something to keep up: at once where somebody waits for the disk, else so that several writes
    /// share one synchronization.
    func nextUpkeep() -> Upkeep {
        keeperSignal.wait()
        if locked({ awaitingSync.isEmpty && !isClosing }) {
            _ = keeperSignal.wait(timeout: .now() + .nanoseconds(Int(clamping: settings.syncInterval.nanoseconds)))
        }
        return upkeep()
    }

    /// What there is to keep up now.
    func upkeep() -> Upkeep {
        locked {
            synchronizing = awaitingSync
            awaitingSync = []
            defer { (isDirty, retired) = (false, nil) }
            return Upkeep(
                retired: retired, current: segment, isDirty: isDirty,
                latestNow: latestNow, isClosing: isClosing,
                wantsRotation: prepared == nil && !isClosing
                    && (latestNow - segmentStart >= settings.segmentSeconds || segmentLength >= settings.segmentBytes),
                wantsSweep: table.used > 2 * census.live + 65_536)
        }
    }

    func didSynchronize(_ error: SystemError?) {
        let waiters = locked {
            defer { synchronizing = [] }
            return synchronizing
        }
        let result: Result<ClaimOutcome, StoreError> =
            error.map { .failure(StoreError(.unavailable, "the claim journal cannot be synchronized: \($0)")) }
            ?? .success(.claimed)
        for waiter in waiters { waiter.continuation.resume(returning: result) }
    }

    func prepare(_ next: JournalSegment) {
        locked { prepared = next }
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
            condition.broadcast()
        }
        keeperSignal.signal()
    }

    /// Whether the journal ends in order: asked to, and with everything written.
    var endsInOrder: Bool { locked { isSealing && !hasUnwritten && pending.isEmpty } }

    /// Answers whoever cannot be served any more.
    func refuseWaiters() {
        let left = locked {
            defer { (waiting, inFlight, awaitingSync, synchronizing) = ([], [], [], []) }
            return waiting + inFlight + awaitingSync + synchronizing
        }
        for waiter in left {
            waiter.continuation.resume(returning: .failure(StoreError(.unavailable, "the claim journal is closed")))
        }
    }

    private func locked<Value>(_ body: () -> Value) -> Value {
        condition.lock()
        defer { condition.unlock() }
        return body()
    }

    private static var monotonicNow: UInt64 { DispatchTime.now().uptimeNanoseconds }
}

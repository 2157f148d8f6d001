internal import Bytes
internal import Dispatch

/// The kinds of calls that may block. While a call hangs, the SDK makes no other call of its kind.
package enum BlockingCall: Sendable, Hashable {
    case createKey, loadKey, sign, deleteKey, askCanaries
    case readRecord, writeRecord, removeRecord, setRecordAside, lockRecord, askRecordCanary
    case attest

    /// Whether the call changes something that other processes read.
    var isChange: Bool {
        switch self {
        case .createKey, .deleteKey, .writeRecord, .removeRecord: true
        default: false
        }
    }
}

/// The result of a call.
package enum BlockingCallEnding<Value: Sendable>: Sendable {
    case returned(Value)
    /// The call did not return within its limit, its cancelled caller abandoned it, or an earlier call of its kind still hangs.
    case noAnswer
    /// The caller was cancelled before the call began.
    case cancelled
}

/// The time limit of a call, from its start.
package struct CallLimit: Sendable {
    let duration: Duration
    let sleeper: any Sleeper

    /// The limit of each call of a provider: 30 seconds.
    static func provider(_ sleeper: any Sleeper) -> CallLimit { CallLimit(duration: .seconds(30), sleeper: sleeper) }
}

/// Makes the blocking calls of one provider (files, Keychain, Secure Enclave, host callbacks) one after another, on a thread
/// outside Swift's pool.
///
/// A call that hangs is abandoned with its thread. Its caller gets `noAnswer`, queued calls continue on a new thread, and
/// calls of the same kind fail at once until the abandoned call returns. So a provider that hangs costs at most one thread
/// for each kind of call.
package final class BlockingCalls: Sendable {
    private struct Job: Sendable {
        let id: UInt64
        let kind: BlockingCall
        let limit: CallLimit?
        /// Makes the call, and returns a closure that passes the result to the caller.
        let work: @Sendable () -> (@Sendable () -> Void)
        /// Ends the caller's wait without a result.
        let giveUp: @Sendable (_ isCancelled: Bool) -> Void
    }

    private struct State: Sendable {
        var thread = BlockingCalls.newThread()
        var line: [Job] = []
        var running: Job?
        var leftBehind: [UInt64: BlockingCall] = [:]
        var lastID: UInt64 = 0
        /// The actions that wait for abandoned changes to end.
        var afterwards: [@Sendable () -> Void] = []
        /// The actions that wait for all changes to end.
        var afterPending: [@Sendable () -> Void] = []

        var hasChangeLeftBehind: Bool { leftBehind.values.contains { $0.isChange } }
        var hasPendingChange: Bool {
            hasChangeLeftBehind || running?.kind.isChange == true || line.contains { $0.kind.isChange }
        }
    }

    private let state = Locked(State())

    /// The calls of one provider.
    package init() {}

    /// Makes a call, after the calls queued before it.
    ///
    /// - Parameters:
    ///   - kind: The kind of the call.
    ///   - limit: The limit of the call; nil if the caller limits its own wait.
    ///   - leavesBehind: Whether cancelling the caller abandons a running call. Otherwise the caller waits for the call's end or limit.
    ///   - unclaimed: Receives a value that arrives too late.
    ///   - body: The call.
    package func run<Value: Sendable>(
        _ kind: BlockingCall, limit: CallLimit?, leavesBehind: Bool = false,
        unclaimed: @escaping @Sendable (Value) -> Void = { _ in }, _ body: @escaping @Sendable () -> Value
    ) async -> BlockingCallEnding<Value> {
        let answer = OnceValue<BlockingCallEnding<Value>>()
        let id = state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
        let job = Job(
            id: id, kind: kind, limit: limit,
            work: {
                let value = body()
                return { if !answer.give(.returned(value)) { unclaimed(value) } }
            }, giveUp: { isCancelled in answer.give(isCancelled ? .cancelled : .noAnswer) })
        return await withTaskCancellationHandler {
            put(job)
            // A cancellation before `put` found nothing to withdraw, so check again.
            if Task.isCancelled { withdraw(id, leavesBehind) }
            return await answer.value
        } onCancel: {
            withdraw(id, leavesBehind)
        }
    }

    /// Whether an abandoned change may still take effect.
    var hasChangeLeftBehind: Bool { state.withLock { $0.hasChangeLeftBehind } }

    /// Runs `action` when no abandoned change is left; immediately if there is none.
    ///
    /// Locks that guard changes are released this way, so that a late change does not overlap with a change of another process.
    func afterChanges(_ action: @escaping @Sendable () -> Void) {
        let isNow = state.withLock { state in
            if state.hasChangeLeftBehind { state.afterwards.append(action) }
            return !state.hasChangeLeftBehind
        }
        if isNow { action() }
    }

    /// Runs `action` when no change is queued, running or abandoned; immediately if there is none.
    func afterPendingChanges(_ action: @escaping @Sendable () -> Void) {
        let isNow = state.withLock { state in
            if state.hasPendingChange { state.afterPending.append(action) }
            return !state.hasPendingChange
        }
        if isNow { action() }
    }

    private func put(_ job: Job) {
        let isRefused = state.withLock { state in
            if state.leftBehind.values.contains(job.kind) { return true }
            state.line.append(job)
            return false
        }
        if isRefused { job.giveUp(false) } else { advance() }
    }

    private func withdraw(_ id: UInt64, _ leavesBehind: Bool) {
        let waiting = state.withLock { state in
            state.line.firstIndex { $0.id == id }.map { state.line.remove(at: $0) }
        }
        if let waiting { waiting.giveUp(true) } else if leavesBehind { leaveBehind(id) }
    }

    private func advance() {
        let next = state.withLock { state -> (job: Job, thread: DispatchQueue)? in
            guard state.running == nil, !state.line.isEmpty else { return nil }
            let job = state.line.removeFirst()
            state.running = job
            return (job, state.thread)
        }
        guard let (job, thread) = next else { return }
        let timer = job.limit.map { limit in
            Task {
                guard (try? await limit.sleeper.sleep(for: limit.duration, .deadline)) != nil else { return }
                self.leaveBehind(job.id)
            }
        }
        thread.async {
            let giveResult = job.work()
            timer?.cancel()
            // End the call before its caller gets the result: the app may be suspended right after that.
            let actions = self.end(job.id)
            giveResult()
            for action in actions { action() }
            self.advance()
        }
    }

    /// Notes that the call has returned, and returns the actions that need not wait any longer.
    private func end(_ id: UInt64) -> [@Sendable () -> Void] {
        state.withLock { state in
            if state.running?.id == id { state.running = nil } else { state.leftBehind[id] = nil }
            guard !state.hasChangeLeftBehind else { return [] }
            var actions = state.afterwards
            state.afterwards = []
            if !state.hasPendingChange {
                actions += state.afterPending
                state.afterPending = []
            }
            return actions
        }
    }

    private func leaveBehind(_ id: UInt64) {
        let given = state.withLock { state -> [Job] in
            guard let job = state.running, job.id == id else { return [] }
            state.running = nil
            state.leftBehind[id] = job.kind
            state.thread = Self.newThread()
            let alike = state.line.filter { $0.kind == job.kind }
            state.line.removeAll { $0.kind == job.kind }
            return [job] + alike
        }
        for job in given { job.giveUp(false) }
        advance()
    }

    private static func newThread() -> DispatchQueue { DispatchQueue(label: "ai.synheart.auth.blocking") }
}

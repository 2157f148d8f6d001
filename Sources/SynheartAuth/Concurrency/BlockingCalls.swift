internal import Bytes
internal import Dispatch

/// A call that may block, by what it does. One that hangs keeps others of its kind from being made.
package enum BlockingCall: Sendable, Hashable {
    case createKey, loadKey, sign, deleteKey
    case readRecord, writeRecord, removeRecord, setRecordAside, lockRecord
    case attest
    case digest

    /// Whether it changes what other processes find, for as long as it runs.
    var isChange: Bool {
        switch self {
        case .createKey, .deleteKey, .writeRecord, .removeRecord: true
        default: false
        }
    }
}

/// How a call ended.
package enum BlockingCallEnding<Value: Sendable>: Sendable {
    case returned(Value)
    /// It did not return within its limit, or an earlier one of its kind did not and still runs.
    case noAnswer
    /// The caller was cancelled before its turn came.
    case cancelled
}

/// When a call that may block counts as hung, measured from its start.
package struct CallLimit: Sendable {
    let duration: Duration
    let sleeper: any Sleeper

    /// The limit of every call of a provider.
    static func provider(_ sleeper: any Sleeper) -> CallLimit { CallLimit(duration: .seconds(30), sleeper: sleeper) }
}

/// Makes the blocking calls of one provider (files, Keychain, Secure Enclave, a host's callbacks) one after another, on a thread
/// that is not the pool's.
///
/// A call that hangs is left behind with its thread: its caller is told, the calls in line go on on another thread, and calls of
/// the same kind fail at once until it returns. So a provider that hangs costs one thread for each kind of call at most.
package final class BlockingCalls: Sendable {
    private struct Job: Sendable {
        let id: UInt64
        let kind: BlockingCall
        let limit: CallLimit?
        /// Makes the call, and tells its caller what it returned.
        let work: @Sendable () -> Void
        /// Tells the caller that it is not waited for; true: that it was cancelled.
        let giveUp: @Sendable (_ isCancelled: Bool) -> Void
    }

    private struct State: Sendable {
        var thread = BlockingCalls.newThread()
        var line: [Job] = []
        var running: Job?
        var leftBehind: [UInt64: BlockingCall] = [:]
        var lastID: UInt64 = 0
        /// What waits for the changes that were left behind.
        var afterwards: [@Sendable () -> Void] = []

        var hasChangeLeftBehind: Bool { leftBehind.values.contains { $0.isChange } }
    }

    private let state = Locked(State())

    /// Calls of one provider.
    package init() {}

    /// Makes a call once its turn has come.
    ///
    /// - Parameters:
    ///   - kind: What it does.
    ///   - limit: When it counts as hung; nil: the caller's own limit cancels this task.
    ///   - leavesBehind: Whether a caller that is cancelled leaves a running call behind as a hung one. Otherwise it waits for
    ///     its end or its limit.
    ///   - unclaimed: Receives a value that came too late.
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
                if !answer.give(.returned(value)) { unclaimed(value) }
            }, giveUp: { isCancelled in answer.give(isCancelled ? .cancelled : .noAnswer) })
        return await withTaskCancellationHandler {
            put(job)
            // A cancellation that came before found nothing to withdraw.
            if Task.isCancelled { withdraw(id, leavesBehind) }
            return await answer.value
        } onCancel: {
            withdraw(id, leavesBehind)
        }
    }

    /// Whether a change was left behind and may still take effect.
    var hasChangeLeftBehind: Bool { state.withLock { $0.hasChangeLeftBehind } }

    /// Runs `action` once no change is left behind: at once where none is.
    ///
    /// A lock that guards changes is released like this, so that no other process meets a change that comes late.
    func afterChanges(_ action: @escaping @Sendable () -> Void) {
        let isNow = state.withLock { state in
            if state.hasChangeLeftBehind { state.afterwards.append(action) }
            return !state.hasChangeLeftBehind
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
            job.work()
            timer?.cancel()
            self.finish(job.id)
        }
    }

    private func finish(_ id: UInt64) {
        let actions = state.withLock { state -> [@Sendable () -> Void] in
            if state.running?.id == id { state.running = nil } else { state.leftBehind[id] = nil }
            guard !state.hasChangeLeftBehind else { return [] }
            defer { state.afterwards = [] }
            return state.afterwards
        }
        for action in actions { action() }
        advance()
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

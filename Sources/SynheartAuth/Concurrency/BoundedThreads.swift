internal import Bytes
internal import Dispatch

/// Makes blocking calls on at most a few threads outside Swift's pool. More calls wait for a thread.
package final class BoundedThreads: Sendable {
    private struct Job: Sendable {
        let id: UInt64
        let work: @Sendable () -> Void
        let giveUp: @Sendable () -> Void
    }

    private struct State: Sendable {
        var line: [Job] = []
        var busy = 0
        var lastID: UInt64 = 0
    }

    private let limit: Int
    private let state = Locked(State())

    package init(limit: Int) { self.limit = limit }

    /// The number of threads with a running call.
    package var busy: Int { state.withLock { $0.busy } }

    /// The result of `body`; nil if the caller was cancelled before a thread was free. A call that began is not ended.
    package func run<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value? {
        await run(leavesBehind: false) { give in _ = give(body()) }
    }

    /// The value that `body` gives; nil if the caller was cancelled first. `body` may then continue on its thread.
    ///
    /// - Parameters:
    ///   - leavesBehind: Whether cancelling the caller abandons a call that has begun. Otherwise the caller waits for the value.
    ///   - body: Gives one value. `give` returns false if the caller has left.
    package func run<Value: Sendable>(
        leavesBehind: Bool, _ body: @escaping @Sendable (_ give: @Sendable (Value) -> Bool) -> Void
    ) async -> Value? {
        let answer = OnceValue<Value?>()
        let id = state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
        let job = Job(id: id, work: { body { answer.give($0) } }, giveUp: { answer.give(nil) })
        let leave = { @Sendable in
            self.withdraw(id)
            if leavesBehind { answer.give(nil) }
        }
        return await withTaskCancellationHandler {
            state.withLock { $0.line.append(job) }
            // A cancellation before the previous line found nothing to withdraw, so check again.
            if Task.isCancelled { leave() }
            advance()
            return await answer.value
        } onCancel: {
            leave()
        }
    }

    private func withdraw(_ id: UInt64) {
        let job = state.withLock { state in
            state.line.firstIndex { $0.id == id }.map { state.line.remove(at: $0) }
        }
        job?.giveUp()
    }

    private func advance() {
        let job = state.withLock { state -> Job? in
            guard state.busy < limit, !state.line.isEmpty else { return nil }
            state.busy += 1
            return state.line.removeFirst()
        }
        guard let job else { return }
        // A separate queue has a separate thread while its call blocks.
        DispatchQueue(label: "ai.synheart.auth.bounded").async {
            job.work()
            self.state.withLock { $0.busy -= 1 }
            self.advance()
        }
    }
}

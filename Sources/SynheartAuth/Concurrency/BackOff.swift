internal import Bytes

/// The pauses of one operation. Another operation can end them: a reset, or a rotation with a stronger reason, does not wait for
/// them.
final class BackOff: Sendable {
    private struct State: Sendable {
        var isEnded = false
        var pause: Task<Bool, Never>?
    }

    private let state = Locked(State())
    private let sleeper: any Sleeper

    init(_ sleeper: any Sleeper) { self.sleeper = sleeper }

    /// Whether the operation must stop.
    var isEnded: Bool { state.withLock { $0.isEnded } }

    /// Ends the current pause and all later ones.
    func end() {
        state.withLock { state in
            state.isEnded = true
            state.pause?.cancel()
        }
    }

    /// Waits.
    ///
    /// - Throws: `failure` if `end` or a cancellation ended the wait.
    func pause(_ duration: Duration, orThrow failure: SynheartAuthError) async throws(SynheartAuthError) {
        let sleeper = sleeper
        let pause = Task { (try? await sleeper.sleep(for: duration, .retry)) != nil }
        let isEnded = state.withLock { state in
            state.pause = pause
            return state.isEnded
        }
        if isEnded { pause.cancel() }
        let isOver = await withTaskCancellationHandler {
            await pause.value
        } onCancel: {
            pause.cancel()
        }
        guard isOver, !self.isEnded else { throw failure }
    }
}

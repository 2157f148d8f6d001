import Dispatch
import Glibc
import Synchronization

/// A signal ended a command. Thrown through the command, so that its cleanup runs.
struct Interrupted: Error {
    let signal: Int32

    /// Ends the process with the same signal, so that a shell sees the reason.
    func end() -> Never {
        Glibc.signal(signal, SIG_DFL)
        kill(getpid(), signal)
        exit(128 + signal)
    }
}

/// Runs work that ends cleanly at SIGINT (Ctrl-C), SIGTERM or SIGHUP.
///
/// - Parameter step: the action of the first signal; nil: the signal cancels the command, and the call throws `Interrupted` when
///   the work has ended. The next signal runs the action of the enclosing call of this function. If no call encloses this one, the
///   next signal ends the process at once.
func interruptible<Value>(
    by step: (@Sendable () -> Void)? = nil, _ work: () async throws -> Value
) async throws -> Value {
    Interrupts.begin(step)
    defer { Interrupts.end() }
    do {
        let value = try await work()
        try Interrupts.check()
        return value
    } catch {
        try Interrupts.check()
        throw error
    }
}

/// The actions of the process's signals.
enum Interrupts {
    private struct State {
        var cancel: (@Sendable () -> Void)?
        /// The actions of the next signals. The action of the innermost call is last. A nil action cancels the command.
        var steps: [(@Sendable () -> Void)?] = []
        var depth = 0
        var cancelledBy: Int32?
        var sources: [any DispatchSourceSignal] = []
    }

    private static let state = Mutex(State())

    /// Sets the task that a signal cancels.
    static func cancelling(_ command: Task<Void, Never>) { state.withLock { $0.cancel = { command.cancel() } } }

    fileprivate static func begin(_ step: (@Sendable () -> Void)?) {
        state.withLock { state in
            if state.depth == 0 { state.sources = [SIGINT, SIGTERM, SIGHUP].compactMap(source) }
            state.depth += 1
            state.steps.append(step)
        }
    }

    fileprivate static func end() {
        state.withLock { state in
            state.depth -= 1
            if state.steps.count > state.depth { state.steps.removeLast() }
            guard state.depth == 0 else { return }
            for source in state.sources {
                source.cancel()
                Glibc.signal(Int32(source.handle), SIG_DFL)
            }
            state.sources = []
        }
    }

    fileprivate static func check() throws(Interrupted) {
        if let signal = state.withLock(\.cancelledBy) { throw Interrupted(signal: signal) }
    }

    private static func source(_ number: Int32) -> (any DispatchSourceSignal)? {
        // If `nohup` made this process ignore SIGHUP, keep it ignored.
        if number == SIGHUP, isIgnored(number) { return nil }
        signal(number, SIG_IGN)
        let source = DispatchSource.makeSignalSource(signal: number)
        source.setEventHandler { received(number) }
        source.resume()
        return source
    }

    private static func received(_ number: Int32) {
        let action: (@Sendable () -> Void)? = state.withLock { state in
            guard let step = state.steps.popLast() else { return nil }
            if let step { return step }
            state.cancelledBy = number
            return state.cancel
        }
        guard let action else { Interrupted(signal: number).end() }
        action()
    }

    private static func isIgnored(_ number: Int32) -> Bool {
        var action = sigaction()
        guard sigaction(number, nil, &action) == 0 else { return false }
        return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
            == unsafeBitCast(SIG_IGN, to: Int.self)
    }
}

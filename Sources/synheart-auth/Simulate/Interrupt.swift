import Dispatch
import Glibc

/// Runs work that a first interrupt (Ctrl-C) asks to end in order, and that a second one ends at once.
func interruptible<Value>(
    by stop: @escaping @Sendable () -> Void, _ work: () async throws -> Value
) async rethrows -> Value {
    signal(SIGINT, SIG_IGN)
    let source = DispatchSource.makeSignalSource(signal: SIGINT)
    source.setEventHandler {
        signal(SIGINT, SIG_DFL)
        stop()
    }
    source.resume()
    defer {
        source.cancel()
        signal(SIGINT, SIG_DFL)
    }
    return try await work()
}

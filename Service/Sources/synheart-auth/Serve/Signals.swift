import Foundation

/// The signals of a service besides those that stop it.
enum Signals {
    /// From now on SIGHUP is delivered here, SIGUSR1 and SIGUSR2 do nothing, and a write to a pipe without a reader fails instead
    /// of ending the process.
    static func hangups() -> AsyncStream<Void> {
        for number in [SIGUSR1, SIGUSR2, SIGPIPE] { signal(number, SIG_IGN) }
        // Until the source is registered. Child processes would inherit SIG_IGN.
        signal(SIGHUP) { _ in }
        // Several pending signals are one.
        let (hangups, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        // Dispatch always makes this class, which is Sendable; the declared protocol is not.
        guard let source = DispatchSource.makeSignalSource(signal: SIGHUP, queue: .global()) as? DispatchSource else {
            return hangups
        }
        source.setEventHandler { continuation.yield() }
        continuation.onTermination = { _ in source.cancel() }
        source.resume()
        return hangups
    }
}

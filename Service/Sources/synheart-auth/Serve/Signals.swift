import Foundation

/// The signals of a service, except those that stop it.
enum Signals {
    /// Delivers SIGHUP to the stream, and ignores SIGUSR1 and SIGUSR2. Ignores SIGPIPE, so that a write to a pipe without a
    /// reader fails instead of ending the process.
    static func hangups() -> AsyncStream<Void> {
        for number in [SIGUSR1, SIGUSR2, SIGPIPE] { signal(number, SIG_IGN) }
        // Until the source is registered, this handler keeps SIGHUP from ending the process. It is not SIG_IGN, because child
        // processes would inherit that.
        signal(SIGHUP) { _ in }
        // Several pending signals become one.
        let (hangups, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        // Dispatch always creates this Sendable class, but the declared protocol is not Sendable.
        guard let source = DispatchSource.makeSignalSource(signal: SIGHUP, queue: .global()) as? DispatchSource else {
            return hangups
        }
        source.setEventHandler { continuation.yield() }
        continuation.onTermination = { _ in source.cancel() }
        source.resume()
        return hangups
    }
}

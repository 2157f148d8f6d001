import Foundation

/// The signals of a service, except those that stop it.
enum Signals {
    /// From now on, SIGHUP is delivered to the stream, and SIGUSR1 and SIGUSR2 do nothing. A write to a pipe without a reader
    /// fails and no longer ends the process.
    static func hangups() -> AsyncStream<Void> {
        for number in [SIGUSR1, SIGUSR2, SIGPIPE] { signal(number, SIG_IGN) }
        // Set until the source is registered. With SIG_IGN, child processes would inherit the setting.
        signal(SIGHUP) { _ in }
        // Several pending signals become one.
        let (hangups, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        // Dispatch always creates this class, which is Sendable. The declared protocol is not.
        guard let source = DispatchSource.makeSignalSource(signal: SIGHUP, queue: .global()) as? DispatchSource else {
            return hangups
        }
        source.setEventHandler { continuation.yield() }
        continuation.onTermination = { _ in source.cancel() }
        source.resume()
        return hangups
    }
}

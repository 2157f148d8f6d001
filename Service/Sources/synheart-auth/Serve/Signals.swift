import Foundation

/// The signals that a service gets beside those that stop it.
enum Signals {
    /// From now on SIGHUP does not end the process but is delivered here, SIGUSR1 and SIGUSR2 do nothing, and writing to a
    /// pipe that nobody reads is an error of that write alone.
    static func hangups() -> AsyncStream<Void> {
        for number in [SIGUSR1, SIGUSR2, SIGPIPE] { signal(number, SIG_IGN) }
        // Until the source is registered; SIG_IGN would be taken over by programs that this one starts.
        signal(SIGHUP) { _ in }
        // Several that arrive at once are one.
        let (hangups, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        // Dispatch makes nothing else; the protocol that it declares is not Sendable, and the class is.
        guard let source = DispatchSource.makeSignalSource(signal: SIGHUP, queue: .global()) as? DispatchSource else {
            return hangups
        }
        source.setEventHandler { continuation.yield() }
        continuation.onTermination = { _ in source.cancel() }
        source.resume()
        return hangups
    }
}

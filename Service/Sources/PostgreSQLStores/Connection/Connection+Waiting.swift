internal import AuthService
internal import Bytes
internal import CPostgreSQL
internal import Foundation

extension Connection {
    /// How long a cancelled statement may take to end.
    private static var grace: Duration { .milliseconds(500) }

    /// Waits for the socket. Cancels the statement at the deadline, or when the caller no longer waits, and closes the connection
    /// if the server does not react.
    ///
    /// A connection to another machine is closed at once: libpq sends the cancel key without TLS, and anyone who reads the key
    /// can cancel every later statement of the connection. The server's own deadline ends the statement.
    func wait(_ events: Int16) throws(StoreError) {
        while let handle {
            let end = cancellation?.end ?? deadline
            var pollers = [
                pollfd(fd: PQsocket(handle), events: events, revents: 0),
                pollfd(fd: thread.signal.descriptor, events: Int16(POLLIN), revents: 0),
            ]
            let count = poll(&pollers, 2, Self.milliseconds(until: end))
            if pollers[1].revents != 0 { thread.signal.clear() }
            if pollers[0].revents != 0 { return }
            let isOver = ContinuousClock.now >= end
            if cancellation != nil, isOver { break }
            if cancellation == nil, isOver || request?.isOver == true {
                guard PQstatus(handle) == CONNECTION_OK, server?.isLocal == true else { break }
                cancel(handle)
            }
            if count < 0, errno != EINTR { break }
        }
        _ = lost("no answer within the deadline")
        throw StoreError(.tooSlow, "PostgreSQL did not answer within the deadline")
    }

    private func cancel(_ handle: OpaquePointer) {
        let isSent = Locked(false)
        cancellation = Cancellation(isSent: isSent, end: ContinuousClock.now + Self.grace)
        guard let cancel = PQgetCancel(handle) else { return }
        let key = CancelKey(cancel)
        canceller.async { [signal = thread.signal] in
            key.send()
            isSent.withLock { $0 = true }
            signal.raise()
        }
    }

    /// Runs after a cancelled statement has ended. Makes sure that the cancellation does not hit the next statement.
    func settleCancellation() throws(StoreError) {
        guard let cancellation else { return }
        while !cancellation.isSent.withLock({ $0 }) {
            guard ContinuousClock.now < cancellation.end else {
                _ = lost("no answer to a cancellation")
                break
            }
            var poller = pollfd(fd: thread.signal.descriptor, events: Int16(POLLIN), revents: 0)
            if poll(&poller, 1, Self.milliseconds(until: cancellation.end)) > 0 { thread.signal.clear() }
        }
        self.cancellation = nil
        throw StoreError(.tooSlow, "PostgreSQL did not answer within the deadline")
    }

    private static func milliseconds(until end: ContinuousClock.Instant) -> Int32 {
        let (seconds, attoseconds) = ContinuousClock.now.duration(to: end).components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        // Rounded up, so that the caller's loop does not poll without waiting at the end. If more than an hour is left, the
        // loop waits again after an hour.
        return Int32(clamping: min(seconds, 3600) * 1000 + attoseconds / 1_000_000_000_000_000 + 1)
    }

    // MARK: Notifications

    /// Waits for notifications until a time or a signal. Returns their payloads.
    func notifications(until end: ContinuousClock.Instant) throws(StoreError) -> [String] {
        guard let handle else { throw lost("the connection is closed") }
        var texts: [String] = []
        for attempt in 0..<2 {
            guard PQconsumeInput(handle) == 1 else { throw lost(Self.message(of: handle, hiding: nil)) }
            while let notification = PQnotifies(handle) {
                texts.append(notification.pointee.extra.map { String(cString: $0) } ?? "")
                PQfreemem(notification)
            }
            guard texts.isEmpty, attempt == 0 else { break }
            waitForSignal(orSocketOf: handle, until: end)
        }
        return texts
    }

    /// Waits until the time has passed, or until the thread's signal is raised.
    func sleep(_ time: Duration) { waitForSignal(orSocketOf: nil, until: .now + time) }

    private func waitForSignal(orSocketOf handle: OpaquePointer?, until end: ContinuousClock.Instant) {
        var pollers = [
            pollfd(fd: handle.map { PQsocket($0) } ?? -1, events: Int16(POLLIN), revents: 0),
            pollfd(fd: thread.signal.descriptor, events: Int16(POLLIN), revents: 0),
        ]
        _ = poll(&pollers, 2, Self.milliseconds(until: end))
        if pollers[1].revents != 0 { thread.signal.clear() }
    }
}

/// libpq's key for cancelling a connection's statement. Only the queue that sends the cancellation uses it.
///
/// Unchecked: `PQcancel` may be called from any thread, and the pointer is freed only after the last use.
private final class CancelKey: @unchecked Sendable {
    private let key: OpaquePointer

    init(_ key: OpaquePointer) { self.key = key }

    deinit { PQfreeCancel(key) }

    func send() {
        var message = [CChar](repeating: 0, count: 256)
        _ = PQcancel(key, &message, Int32(message.count))
    }
}

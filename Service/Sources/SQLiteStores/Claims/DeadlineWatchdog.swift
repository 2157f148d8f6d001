internal import Foundation

/// Enforces deadlines while a thread of the journal hangs in a system call. It polls every tenth of a second.
final class DeadlineWatchdog: @unchecked Sendable {
    // Unchecked: a dispatch source is thread-safe, but not declared Sendable on Linux.
    private let timer: any DispatchSourceTimer

    init(_ state: JournalState) {
        timer = DispatchSource.makeTimerSource(queue: .global())
        timer.schedule(deadline: .now() + .milliseconds(100), repeating: .milliseconds(100), leeway: .milliseconds(20))
        timer.setEventHandler { [weak state] in state?.expireWaiters() }
        timer.activate()
    }

    deinit { timer.cancel() }
}

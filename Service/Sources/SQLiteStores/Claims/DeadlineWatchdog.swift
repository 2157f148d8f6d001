internal import Foundation

/// Keeps deadlines when a thread of the journal hangs in the system: looks every tenth of a second.
final class DeadlineWatchdog: @unchecked Sendable {
    // Unchecked: a dispatch source may be used from any thread; Linux does not declare it so.
    private let timer: any DispatchSourceTimer

    init(_ state: JournalState) {
        timer = DispatchSource.makeTimerSource(queue: .global())
        timer.schedule(deadline: .now() + .milliseconds(100), repeating: .milliseconds(100), leeway: .milliseconds(20))
        timer.setEventHandler { [weak state] in state?.expireWaiters() }
        timer.activate()
    }

    deinit { timer.cancel() }
}

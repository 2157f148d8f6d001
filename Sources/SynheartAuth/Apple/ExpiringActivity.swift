#if canImport(Security) && !os(macOS)
    internal import Bytes
    internal import Foundation
    internal import Security

    /// The time that `ProcessInfo.performExpiringActivity` gives, in apps and in their extensions
    /// (https://developer.apple.com/documentation/foundation/processinfo/performexpiringactivity(withreason:using:)).
    struct ExpiringActivity: RunningTime {
        func begin() -> @Sendable () -> Void {
            let end = DispatchSemaphore(value: 0)
            ProcessInfo.processInfo.performExpiringActivity(withReason: "Synheart Auth holds a lock") { isExpired in
                // The activity lasts as long as this call. It is called again, with true, when the time is over.
                if !isExpired { end.wait() }
            }
            return { end.signal() }
        }
    }
#endif

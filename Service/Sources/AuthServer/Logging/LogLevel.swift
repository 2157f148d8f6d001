internal import Bytes
package import Logging

/// The lowest level that is logged. All handlers share it, and it can change while the service runs.
package final class LogLevel: Sendable {
    private let level: Locked<Logger.Level>

    /// Starts with this level.
    package init(_ level: Logger.Level) { self.level = Locked(level) }

    /// The current level.
    package var current: Logger.Level {
        get { level.withLock { $0 } }
        set { level.withLock { $0 = newValue } }
    }
}

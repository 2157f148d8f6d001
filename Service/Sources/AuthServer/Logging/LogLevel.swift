package import Logging
internal import NIOConcurrencyHelpers

/// The lowest level that is logged. All handlers share it, and it can change while the service runs.
package final class LogLevel: Sendable {
    private let level: NIOLockedValueBox<Logger.Level>

    /// Starts with this level.
    package init(_ level: Logger.Level) { self.level = NIOLockedValueBox(level) }

    /// The current level.
    package var current: Logger.Level {
        get { level.withLockedValue { $0 } }
        set { level.withLockedValue { $0 = newValue } }
    }
}

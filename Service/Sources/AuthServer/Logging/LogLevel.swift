package import Logging
internal import NIOConcurrencyHelpers

/// The least level that is logged, shared by every handler and changed while the service runs.
package final class LogLevel: Sendable {
    private let level: NIOLockedValueBox<Logger.Level>

    /// A level to begin with.
    package init(_ level: Logger.Level) { self.level = NIOLockedValueBox(level) }

    /// The level now.
    package var current: Logger.Level {
        get { level.withLockedValue { $0 } }
        set { level.withLockedValue { $0 = newValue } }
    }
}

public import Logging
internal import NIOConcurrencyHelpers

/// The least level that is logged, shared by every handler and changed while the service runs.
public final class LogLevel: Sendable {
    private let level: NIOLockedValueBox<Logger.Level>

    /// A level to begin with.
    public init(_ level: Logger.Level) { self.level = NIOLockedValueBox(level) }

    /// The level now.
    public var current: Logger.Level {
        get { level.withLockedValue { $0 } }
        set { level.withLockedValue { $0 = newValue } }
    }
}

#if canImport(Security) && canImport(os)
    internal import os

    /// Writes log entries to the unified logging system, subsystem `ai.synheart.auth`. The default on Apple's systems.
    public struct SystemLogger: AuthLogger {
        private let logger = Logger(subsystem: "ai.synheart.auth", category: "identity")

        /// A logger.
        public init() {}

        /// Writes the entry without redaction: its types hold only values that may be logged.
        public func log(_ entry: LogEntry) {
            let level: OSLogType =
                switch entry.level {
                case .debug: .debug
                case .info: .info
                case .warning: .default
                case .error: .error
                }
            logger.log(level: level, "\(entry.description, privacy: .public)")
        }
    }
#endif

import Bytes
package import Logging

/// Records all log lines.
package final class LogLines: Sendable {
    package struct Line: Sendable {
        package let level: Logger.Level
        package let message: String
        package let metadata: [String: String]

        package var text: String { "\(level): \(message) \(metadata)" }
    }

    private let lines = Locked<[Line]>([])

    package init() {}

    package var all: [Line] { lines.withLock { $0 } }

    package var logger: Logger {
        var logger = Logger(label: "test") { _ in Handler(lines: self.lines) }
        logger.logLevel = .trace
        return logger
    }

    private struct Handler: LogHandler {
        let lines: Locked<[Line]>
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let line = Line(
                level: event.level, message: event.message.description,
                metadata: metadata.merging(event.metadata ?? [:]) { $1 }.mapValues(\.description))
            lines.withLock { $0.append(line) }
        }
    }
}

internal import AuthContract
internal import AuthService
package import Logging
internal import StrictJSON

/// Writes each log message as one line of JSON.
package struct JSONLogHandler: LogHandler {
    package var metadata: Logger.Metadata = [:]
    private let label: String
    private let level: LogLevel
    private let writer: LogWriter
    /// The level of this logger; nil: that of all loggers.
    private var ownLevel: Logger.Level?

    /// A handler for the logger `label`.
    ///
    /// - Parameters:
    ///   - label: the value of `logger` in each line.
    ///   - level: the level of loggers without their own level.
    ///   - writer: writes the lines.
    package init(label: String, level: LogLevel, writer: LogWriter) {
        self.label = label
        self.level = level
        self.writer = writer
    }

    /// The logger's own level, or else the level of all loggers.
    package var logLevel: Logger.Level {
        get { ownLevel ?? level.current }
        set { ownLevel = newValue }
    }

    package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    package func log(event: LogEvent) {
        var all = event.metadata ?? [:]
        if all["request_id"] == nil, let id = RequestID.current { all["request_id"] = .string(id) }
        if !metadata.isEmpty { all.merge(metadata) { event, _ in event } }
        var line = JSONLine()
        line.add("time", SystemClock().now.iso8601)
        line.add("level", event.level.rawValue)
        line.add("logger", label)
        line.add("message", LogText.bounded(event.message.description, to: LogText.textBytes))
        for (name, value) in all.sorted(by: { $0.key < $1.key }) where !Self.ownMembers.contains(name) {
            Self.add(LogText.bounded(name, to: LogText.reasonBytes), value, to: &line)
        }
        writer.write(line.bytes())
    }

    /// The members of every line. Metadata does not overwrite them.
    private static let ownMembers = ["time", "level", "logger", "message"]

    /// Adds a member. An empty text is left out. A text of digits stays a text: it may be an id.
    private static func add(_ name: String, _ value: Logger.MetadataValue, to line: inout JSONLine) {
        let text: String
        switch value {
        case .string(let string): text = string
        // Most numbers have one of these two types. The cast to a protocol, for other types, takes an eighth of a log line's
        // time.
        case .stringConvertible(let number as Int64): return line.add(name, number)
        case .stringConvertible(let number as Int): return line.add(name, Int64(number))
        case .stringConvertible(let number as any BinaryInteger):
            if let number = Int64(exactly: number) { return line.add(name, number) }
            text = "\(number)"
        case .stringConvertible, .array, .dictionary: text = value.description
        }
        guard !text.isEmpty else { return }
        line.add(name, LogText.bounded(text, to: name == "reason" ? LogText.reasonBytes : LogText.textBytes))
    }
}

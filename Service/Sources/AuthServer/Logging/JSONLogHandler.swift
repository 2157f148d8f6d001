internal import AuthContract
internal import AuthService
public import Logging
internal import StrictJSON

/// Gives each log message to a writer as one line of JSON.
public struct JSONLogHandler: LogHandler {
    public var metadata: Logger.Metadata = [:]
    private let label: String
    private let level: LogLevel
    private let writer: LogWriter
    /// The level of this logger alone, where one was set.
    private var ownLevel: Logger.Level?

    /// A handler for the logger `label`.
    ///
    /// - Parameters:
    ///   - label: what the lines name as their logger.
    ///   - level: the level of all loggers that have none of their own.
    ///   - writer: where the lines go.
    public init(label: String, level: LogLevel, writer: LogWriter) {
        self.label = label
        self.level = level
        self.writer = writer
    }

    /// The level of all loggers, unless this one was given its own.
    public var logLevel: Logger.Level {
        get { ownLevel ?? level.current }
        set { ownLevel = newValue }
    }

    public subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    public func log(event: LogEvent) {
        var all = event.metadata ?? [:]
        if !metadata.isEmpty { all.merge(metadata) { of, _ in of } }
        write(
            event.level, event.message.description,
            all.filter { !Self.own.contains($0.key) }.sorted { $0.key < $1.key }.map { ($0.key, FieldValue($0.value)) })
    }

    /// A further member of a line.
    typealias Field = (name: String, value: FieldValue)

    enum FieldValue {
        /// Left out where it is empty.
        case text(String)
        case number(Int64)

        /// A number only where one was meant: an id of digits alone is still a text.
        init(_ value: Logger.MetadataValue) {
            switch value {
            case .string(let text): self = .text(text)
            case .stringConvertible(let number as any BinaryInteger):
                self = Int64(exactly: number).map { .number($0) } ?? .text("\(number)")
            case .stringConvertible, .array, .dictionary: self = .text(value.description)
            }
        }
    }

    /// Writes one line, whatever the level.
    ///
    /// - Parameter fields: in the order in which they are to stand, none of them a line's own.
    func write(_ level: Logger.Level, _ message: String, _ fields: [Field]) {
        var line = JSONLine()
        line.add("time", SystemClock().now.iso8601)
        line.add("level", level.rawValue)
        line.add("logger", label)
        line.add("message", LogText.bounded(message, to: LogText.textBytes))
        for (name, value) in fields {
            switch value {
            case .text(let text):
                guard !text.isEmpty else { continue }
                line.add(name, LogText.bounded(text, to: name == "reason" ? LogText.reasonBytes : LogText.textBytes))
            case .number(let number): line.add(name, number)
            }
        }
        writer.write(line.bytes())
    }

    /// What a line has of its own, and no metadata overwrites.
    private static let own: Set = ["time", "level", "logger", "message"]
}

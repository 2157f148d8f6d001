internal import AuthContract
internal import AuthService
internal import Foundation
public import Logging
internal import StrictJSON

/// Writes each log message as one line of JSON on standard error.
public struct JSONLogHandler: LogHandler {
    public var metadata: Logger.Metadata = [:]
    public var logLevel: Logger.Level
    private let label: String

    /// A handler for the logger `label`.
    public init(label: String, level: Logger.Level = .info) {
        self.label = label
        logLevel = level
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
        line.add("message", message)
        for (name, value) in fields {
            switch value {
            case .text(let text): if !text.isEmpty { line.add(name, text) }
            case .number(let number): line.add(name, number)
            }
        }
        Self.write(line.bytes())
    }

    /// What a line has of its own, and no metadata overwrites.
    private static let own: Set = ["time", "level", "logger", "message"]

    /// One write a line, so that lines of several threads do not mix. A log that cannot be written is no reason to stop.
    private static func write(_ line: [UInt8]) {
        var rest = line[...]
        while !rest.isEmpty {
            let written = rest.withUnsafeBytes { Foundation.write(STDERR_FILENO, $0.baseAddress, $0.count) }
            if written < 0, errno == EINTR { continue }
            guard written > 0 else { return }
            rest = rest.dropFirst(written)
        }
    }
}

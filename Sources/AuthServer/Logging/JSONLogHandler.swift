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
        var line = JSONObject([
            ("time", .string(Date().formatted(.iso8601))), ("level", .string(event.level.rawValue)),
            ("logger", .string(label)), ("message", .string(event.message.description)),
        ])
        for (key, value) in metadata.merging(event.metadata ?? [:], uniquingKeysWith: { $1 }).sorted(by: {
            $0.key < $1.key
        }) {
            let text = value.description
            if !text.isEmpty { line[key] = Int64(text).map { .integer($0) } ?? .string(text) }
        }
        // One write a line, so that lines of several threads do not mix.
        FileHandle.standardError.write(Data((JSONValue.object(line).text() + "\n").utf8))
    }
}

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
        var line = JSONObject(reserving: 4 + all.count)
        line["time"] = .string(SystemClock().now.iso8601)
        line["level"] = .string(event.level.rawValue)
        line["logger"] = .string(label)
        line["message"] = .string(event.message.description)
        for (key, value) in all.sorted(by: { $0.key < $1.key }) {
            let text = if case .string(let text) = value { text } else { value.description }
            if !text.isEmpty { line[key] = Int64(text).map { .integer($0) } ?? .string(text) }
        }
        var bytes = JSONValue.object(line).bytes
        bytes.append(UInt8(ascii: "\n"))
        Self.write(bytes)
    }

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

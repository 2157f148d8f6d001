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
        var line = JSONLine()
        line.add("time", SystemClock().now.iso8601)
        line.add("level", event.level.rawValue)
        line.add("logger", label)
        line.add("message", event.message.description)
        var all = event.metadata ?? [:]
        if !metadata.isEmpty { all.merge(metadata) { of, _ in of } }
        for (key, value) in all.sorted(by: { $0.key < $1.key }) where !Self.own.contains(key) {
            let text = if case .string(let text) = value { text } else { value.description }
            guard !text.isEmpty else { continue }
            if let number = Int64(text) { line.add(key, number) } else { line.add(key, text) }
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

// Stand-in for os: a Logger whose messages a test can read.
import Foundation

public struct OSLogType: Hashable, Sendable {
    public let rawValue: UInt8
    public static let `default` = OSLogType(rawValue: 0)
    public static let info = OSLogType(rawValue: 1)
    public static let debug = OSLogType(rawValue: 2)
    public static let error = OSLogType(rawValue: 16)
}

public struct OSLogPrivacy: Sendable {
    public static let `public` = OSLogPrivacy()
    public static let auto = OSLogPrivacy()
}

public struct OSLogMessage: ExpressibleByStringInterpolation {
    let text: String

    public struct StringInterpolation: StringInterpolationProtocol {
        var text = ""
        public init(literalCapacity: Int, interpolationCount: Int) {}
        public mutating func appendLiteral(_ literal: String) { text += literal }
        public mutating func appendInterpolation(_ value: String, privacy: OSLogPrivacy = .auto) { text += value }
    }

    public init(stringLiteral value: String) { text = value }
    public init(stringInterpolation: StringInterpolation) { text = stringInterpolation.text }
}

public struct Logger: Sendable {
    private let name: String

    public init(subsystem: String, category: String) { name = "\(subsystem) \(category)" }

    public func log(level: OSLogType, _ message: OSLogMessage) { StandInLog.add(level, "\(name): \(message.text)") }
}

public enum StandInLog {
    private static let lock = NSLock()
    nonisolated(unsafe) private static var lines: [(OSLogType, String)] = []

    public static var messages: [(level: OSLogType, text: String)] { lock.withLock { lines } }
    static func add(_ level: OSLogType, _ text: String) { lock.withLock { lines.append((level, text)) } }
}

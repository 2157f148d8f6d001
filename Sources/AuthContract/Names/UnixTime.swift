internal import StrictJSON

/// A time in whole seconds since 1970-01-01T00:00:00Z.
public struct UnixTime: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// Seconds since the epoch.
    public let seconds: Int64

    /// The time `seconds` after the epoch.
    public init(_ seconds: Int64) { self.seconds = seconds }

    /// Parses a header timestamp: exactly ten decimal digits.
    public init(header text: String) throws(ContractError) {
        let seconds = text.withBytes { digits -> Int64? in
            guard digits.count == 10, digits.allSatisfy(\.isDigit) else { return nil }
            return digits.reduce(0) { $0 * 10 + Int64($1 - UInt8(ascii: "0")) }
        }
        guard let seconds else { throw ContractError("the timestamp must be ten digits: unix seconds") }
        self.seconds = seconds
    }

    public static func < (left: UnixTime, right: UnixTime) -> Bool { left.seconds < right.seconds }

    /// The time some seconds later, clamped to the range of `Int64`.
    public static func + (time: UnixTime, seconds: Int64) -> UnixTime {
        let (sum, overflow) = time.seconds.addingReportingOverflow(seconds)
        return UnixTime(overflow ? (seconds > 0 ? .max : .min) : sum)
    }

    /// The time some seconds earlier, clamped to the range of `Int64`.
    public static func - (time: UnixTime, seconds: Int64) -> UnixTime {
        let (difference, overflow) = time.seconds.subtractingReportingOverflow(seconds)
        return UnixTime(overflow ? (seconds > 0 ? .min : .max) : difference)
    }

    /// The seconds from `earlier` to `later`, clamped to the range of `Int64`.
    public static func - (later: UnixTime, earlier: UnixTime) -> Int64 {
        let (difference, overflow) = later.seconds.subtractingReportingOverflow(earlier.seconds)
        return overflow ? (later > earlier ? .max : .min) : difference
    }

    public var description: String { String(seconds) }

    /// The longest text: a sign and 19 digits.
    static let maximumDigits = 20

    /// Appends the digits of `description`.
    func appendDigits(to bytes: inout [UInt8]) {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Self.maximumDigits) { digits in
            var start = digits.count
            func put(_ byte: UInt8) {
                start -= 1
                digits[start] = byte
            }
            var rest = seconds.magnitude
            repeat {
                put(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10))
                rest /= 10
            } while rest > 0
            if seconds < 0 { put(UInt8(ascii: "-")) }
            bytes.append(contentsOf: UnsafeBufferPointer(rebasing: digits[start...]))
        }
    }
}

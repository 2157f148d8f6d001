/// The place of a span in a trace, as the header `traceparent` carries it
/// ([W3C Trace Context](https://www.w3.org/TR/trace-context/), level 1).
package struct TraceContext: Sendable, Hashable {
    /// 128 bits that all spans of a trace share, not all 0.
    package struct TraceID: Sendable, Hashable {
        package let high, low: UInt64

        /// An id of these two halves. Nil if all bits are 0.
        package init?(high: UInt64, low: UInt64) {
            guard high != 0 || low != 0 else { return nil }
            (self.high, self.low) = (high, low)
        }

        /// The id as 32 hexadecimal digits.
        package var text: String { TraceContext.text(high) + TraceContext.text(low) }
    }

    package let traceID: TraceID
    /// The id of the span, not 0.
    package let spanID: UInt64
    /// Whether the trace is recorded.
    package let isSampled: Bool

    /// The place of this span. Nil if the span's id is 0.
    package init?(_ traceID: TraceID, spanID: UInt64, isSampled: Bool) {
        guard spanID != 0 else { return nil }
        (self.traceID, self.spanID, self.isSampled) = (traceID, spanID, isSampled)
    }

    /// Reads the header; nil if it is malformed. Reads only the parts of version 0 if the header has a later version.
    package init?(traceparent: String) {
        let bytes = Array(traceparent.utf8)
        guard bytes.count >= 55, let version = Self.number(bytes[0..<2]), version != 0xFF,
            version == 0 ? bytes.count == 55 : bytes.count == 55 || bytes[55] == UInt8(ascii: "-"),
            [2, 35, 52].allSatisfy({ bytes[$0] == UInt8(ascii: "-") }),
            let high = Self.number(bytes[3..<19]), let low = Self.number(bytes[19..<35]),
            let spanID = Self.number(bytes[36..<52]), let flags = Self.number(bytes[53..<55]),
            let traceID = TraceID(high: high, low: low)
        else { return nil }
        self.init(traceID, spanID: spanID, isSampled: flags & 1 == 1)
    }

    /// The header.
    package var traceparent: String { "00-\(traceID.text)-\(Self.text(spanID))-0\(isSampled ? 1 : 0)" }

    /// The number as 16 hexadecimal digits.
    package static func text(_ number: UInt64) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 16 - digits.utf8.count) + digits
    }

    /// The value of up to 16 lower-case hexadecimal digits; nil for any other text.
    private static func number(_ digits: ArraySlice<UInt8>) -> UInt64? {
        var number: UInt64 = 0
        for digit in digits {
            switch digit {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): number = number << 4 | UInt64(digit - UInt8(ascii: "0"))
            case UInt8(ascii: "a")...UInt8(ascii: "f"): number = number << 4 | UInt64(digit - UInt8(ascii: "a") + 10)
            default: return nil
            }
        }
        return number
    }
}

public import NIOCore

/// Reads values from a stream of bytes, however it is split.
///
/// The decoder is strict: lines end with CRLF, and integers have no plus sign and no leading zeros. It refuses
/// streamed values and attributes, which servers send only to clients that ask for them. It bounds depth, elements,
/// lengths and the size of one value, and reserves no memory for announced lengths. It keeps its state between calls,
/// so that no byte is parsed twice.
public struct RESPDecoder: Sendable {
    /// The bounds of one value.
    public struct Limits: Sendable, Hashable {
        /// The maximum nesting of arrays, sets, maps and pushes.
        public var depth = 8
        /// The maximum number of elements of one value, at all depths together.
        public var elements = 262_144
        /// The maximum number of bytes of one bulk string.
        public var bulkLength = 1 << 20
        /// The maximum number of bytes of one line, without its end.
        public var lineLength = 4096
        /// The maximum number of bytes of one value, at all depths together.
        public var size = 16 << 20

        /// The defaults.
        public init() {}
    }

    private enum Aggregate { case array, map, push }

    /// An aggregate that still lacks elements.
    private struct Open {
        let kind: Aggregate
        var missing: Int
        var items: [RESPValue] = []
    }

    private enum Bulk { case text, verbatim, error }

    /// A value, or the beginning of an aggregate or of a bulk string.
    private enum Token {
        case value(RESPValue)
        case aggregate(Aggregate, count: Int)
        case bulk(Bulk, length: Int)
    }

    private let limits: Limits
    private var open: [Open] = []
    /// The bulk string whose length was read, while some of its bytes have not arrived; nil if there is none.
    private var pending: (kind: Bulk, length: Int)?
    /// The number of bytes of the current line that were searched without finding a line feed, so that no byte is searched twice.
    private var scanned = 0
    private var elements = 0
    private var size = 0

    /// A decoder with these limits.
    public init(limits: Limits = Limits()) { self.limits = limits }

    /// The next value; nil if more bytes are needed. After an error the stream cannot be read any further.
    public mutating func next(_ buffer: inout ByteBuffer) throws(RESPError) -> RESPValue? {
        while true {
            guard let token = try nextToken(&buffer) else { return nil }
            switch token {
            case .bulk(let kind, let length): pending = (kind, length)
            case .aggregate(let kind, let count):
                guard count > 0 else {
                    if let value = complete(Self.value(kind, [])) { return value }
                    continue
                }
                guard open.count < limits.depth else { throw RESPError("values are nested too deep") }
                open.append(Open(kind: kind, missing: count))
            case .value(let value):
                if let value = complete(value) { return value }
            }
        }
    }

    /// Adds a value to the innermost aggregate, if there is one. Returns the outermost value; nil if it still lacks elements.
    private mutating func complete(_ value: RESPValue) -> RESPValue? {
        var value = value
        while var innermost = open.popLast() {
            innermost.items.append(value)
            innermost.missing -= 1
            guard innermost.missing == 0 else {
                open.append(innermost)
                return nil
            }
            value = Self.value(innermost.kind, innermost.items)
        }
        (elements, size) = (0, 0)
        return value
    }

    private static func value(_ kind: Aggregate, _ items: [RESPValue]) -> RESPValue {
        switch kind {
        case .array: .array(items)
        case .map: .map(items)
        case .push: .push(items)
        }
    }

    private mutating func nextToken(_ buffer: inout ByteBuffer) throws(RESPError) -> Token? {
        if let (kind, length) = pending {
            guard let value = try Self.readBulk(kind, length, &buffer) else { return nil }
            pending = nil
            return .value(value)
        }
        guard var line = try readLine(&buffer) else { return nil }
        elements += 1
        guard elements <= limits.elements else { throw RESPError("a value has too many elements") }
        guard let type = line.readInteger(as: UInt8.self) else { throw RESPError("an empty line") }
        switch type {
        case UInt8(ascii: "+"): return .value(.simple(try Self.text(line)))
        case UInt8(ascii: "-"): return .value(.error(try Self.text(line)))
        case UInt8(ascii: ":"): return .value(.integer(try Self.integer(line)))
        case UInt8(ascii: "$"): return try bulk(.text, line)
        case UInt8(ascii: "="): return try bulk(.verbatim, line)
        case UInt8(ascii: "!"): return try bulk(.error, line)
        case UInt8(ascii: "*"): return try aggregate(.array, line, canBeNull: true)
        case UInt8(ascii: "~"): return try aggregate(.array, line)
        case UInt8(ascii: ">"):
            guard open.isEmpty else { throw RESPError("a push within another value") }
            return try aggregate(.push, line)
        case UInt8(ascii: "%"): return try aggregate(.map, line)
        case UInt8(ascii: "_"):
            guard line.readableBytes == 0 else { throw RESPError("a null with content") }
            return .value(.null)
        case UInt8(ascii: "#"):
            switch line.readString(length: line.readableBytes) {
            case "t": return .value(.boolean(true))
            case "f": return .value(.boolean(false))
            default: throw RESPError("a boolean that is neither t nor f")
            }
        case UInt8(ascii: ","): return .value(.double(try Self.double(line)))
        case UInt8(ascii: "("): return .value(.bigNumber(try Self.bigNumber(line)))
        default: throw RESPError("an unknown type")
        }
    }

    /// Reads a line and removes it with its CRLF; nil if its end has not arrived.
    private mutating func readLine(_ buffer: inout ByteBuffer) throws(RESPError) -> ByteBuffer? {
        let found = buffer.withUnsafeReadableBytes { bytes in
            bytes.dropFirst(scanned).firstIndex(of: UInt8(ascii: "\n"))
        }
        guard let end = found else {
            scanned = buffer.readableBytes
            guard scanned <= limits.lineLength + 2 else { throw RESPError("a line is too long") }
            return nil
        }
        scanned = 0
        let length = end + 1
        guard length <= limits.lineLength + 2 else { throw RESPError("a line is too long") }
        guard length >= 2, let line = buffer.readSlice(length: length - 2),
            buffer.readInteger(as: UInt16.self) == Self.lineEnd
        else { throw RESPError("a line does not end with CRLF") }
        guard !line.withUnsafeReadableBytes({ $0.contains(UInt8(ascii: "\r")) }) else {
            throw RESPError("a CR within a line")
        }
        try count(length)
        return line
    }

    private static let lineEnd: UInt16 = 0x0D0A

    private mutating func count(_ bytes: Int) throws(RESPError) {
        size += bytes
        guard size <= limits.size else { throw RESPError("a value is too large") }
    }

    private mutating func bulk(_ kind: Bulk, _ line: ByteBuffer) throws(RESPError) -> Token {
        let length = try Self.integer(line)
        if length == -1, kind == .text { return .value(.null) }
        guard length >= 0, length <= limits.bulkLength else { throw RESPError("a bulk string has a bad length") }
        try count(Int(length))
        return .bulk(kind, length: Int(length))
    }

    private func aggregate(
        _ kind: Aggregate, _ line: ByteBuffer, canBeNull: Bool = false
    ) throws(RESPError) -> Token {
        let count = try Self.integer(line)
        if count == -1, canBeNull { return .value(.null) }
        let items = kind == .map ? count.multipliedReportingOverflow(by: 2) : (count, false)
        guard count >= 0, !items.1, items.0 <= limits.elements else {
            throw RESPError("an aggregate has a bad number of elements")
        }
        return .aggregate(kind, count: Int(items.0))
    }

    private static func readBulk(
        _ kind: Bulk, _ length: Int, _ buffer: inout ByteBuffer
    ) throws(RESPError) -> RESPValue? {
        guard buffer.readableBytes >= length + 2 else { return nil }
        guard var bytes = buffer.readSlice(length: length), buffer.readInteger(as: UInt16.self) == lineEnd else {
            throw RESPError("a bulk string does not end with CRLF")
        }
        switch kind {
        case .text: return .bulk(bytes)
        case .error: return .error(try text(bytes))
        case .verbatim:
            // A verbatim string begins with three bytes that name its format, and a colon: `txt:`.
            guard bytes.readBytes(length: 4)?.last == UInt8(ascii: ":") else {
                throw RESPError("verbatim text without a format")
            }
            return .bulk(bytes)
        }
    }

    // MARK: Scalars

    private static func text(_ line: ByteBuffer) throws(RESPError) -> String {
        guard let text = String(validating: line.readableBytesView, as: UTF8.self) else {
            throw RESPError("text that is not UTF-8")
        }
        return text
    }

    /// A number without a plus sign and without leading zeros.
    private static func integer(_ line: ByteBuffer) throws(RESPError) -> Int64 {
        let digits = line.readableBytesView
        let isNegative = digits.first == UInt8(ascii: "-")
        let magnitude = isNegative ? digits.dropFirst() : digits[...]
        guard let first = magnitude.first, magnitude.count <= 19,
            first != UInt8(ascii: "0") || (magnitude.count == 1 && !isNegative)
        else { throw RESPError("a number in another form") }
        var value: Int64 = 0
        for digit in magnitude {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) else {
                throw RESPError("a number in another form")
            }
            let (product, productOverflow) = value.multipliedReportingOverflow(by: 10)
            // Accumulate the negative number, because the smallest Int64 has no positive counterpart.
            let (next, overflow) = product.subtractingReportingOverflow(Int64(digit - UInt8(ascii: "0")))
            guard !productOverflow, !overflow else { throw RESPError("a number out of range") }
            value = next
        }
        if isNegative { return value }
        guard value != .min else { throw RESPError("a number out of range") }
        return -value
    }

    private static func double(_ line: ByteBuffer) throws(RESPError) -> Double {
        let text = try text(line)
        switch text {
        case "inf": return .infinity
        case "-inf": return -.infinity
        case "nan", "-nan": return .nan
        default:
            guard text.utf8.count <= 64, text.utf8.allSatisfy({ "0123456789+-.eE".utf8.contains($0) }),
                let value = Double(text), value.isFinite
            else { throw RESPError("a double in another form") }
            return value
        }
    }

    private static func bigNumber(_ line: ByteBuffer) throws(RESPError) -> String {
        let text = try text(line)
        let digits = text.utf8.first == UInt8(ascii: "-") ? text.utf8.dropFirst() : text.utf8[...]
        guard !digits.isEmpty, digits.count <= 1024,
            digits.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
        else { throw RESPError("a big number in another form") }
        return text
    }
}

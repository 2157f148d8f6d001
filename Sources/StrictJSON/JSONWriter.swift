internal import Bytes

extension JSONValue {
    /// The layout of a text.
    public enum Layout: Sendable {
        /// One line without spaces.
        case compact
        /// Two spaces a level, for people.
        case pretty
    }

    /// The JSON text of this value.
    public func text(_ layout: Layout = .compact) -> String { String(decoding: bytes(layout), as: UTF8.self) }

    /// The JSON text as UTF-8.
    public var bytes: [UInt8] { bytes(.compact) }

    private func bytes(_ layout: Layout) -> [UInt8] {
        var writer = JSONWriter(layout: layout)
        writer.write(self)
        return writer.bytes
    }
}

/// Writes into an array of bytes. Appending to a string character by character is slower: the JSON of one response would take a
/// tenth of the time that one signature takes.
struct JSONWriter {
    private(set) var bytes: [UInt8] = []
    private let layout: JSONValue.Layout
    private var depth = 0

    init(layout: JSONValue.Layout) {
        self.layout = layout
        bytes.reserveCapacity(512)
    }

    mutating func write(_ value: JSONValue) {
        switch value {
        case .null: append("null")
        case .bool(let value): append(value ? "true" : "false")
        case .number(let value): append(value.digits)
        case .string(let value): write(value)
        case .array(let elements):
            write(elements, between: UInt8(ascii: "["), UInt8(ascii: "]")) { $0.write($1) }
        case .object(let object):
            write(object.members, between: UInt8(ascii: "{"), UInt8(ascii: "}")) { writer, member in
                writer.write(member.name)
                writer.append(UInt8(ascii: ":"))
                if writer.layout == .pretty { writer.append(UInt8(ascii: " ")) }
                writer.write(member.value)
            }
        }
    }

    private mutating func write<Element>(
        _ elements: [Element], between opening: UInt8, _ closing: UInt8,
        each: (inout JSONWriter, Element) -> Void
    ) {
        append(opening)
        depth += 1
        for (index, element) in elements.enumerated() {
            if index > 0 { append(UInt8(ascii: ",")) }
            beginLine()
            each(&self, element)
        }
        depth -= 1
        if !elements.isEmpty { beginLine() }
        append(closing)
    }

    private mutating func beginLine() {
        guard layout == .pretty else { return }
        append(UInt8(ascii: "\n"))
        for _ in 0..<depth { append("  ") }
    }

    mutating func write(_ string: String) {
        append(UInt8(ascii: "\""))
        string.withBytes { text in
            if Self.hasOnlyPlainBytes(text) { bytes.append(contentsOf: text) } else { writeEscaping(text) }
        }
        append(UInt8(ascii: "\""))
    }

    /// Whether a text is ASCII that needs no escapes. Most texts are.
    private static func hasOnlyPlainBytes(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
        // No early exit, so that the compiler can check many bytes at once.
        var others: UInt8 = 0
        for byte in text { others |= 0x20..<0x7F ~= byte && byte != 0x22 && byte != 0x5C ? 0 : 1 }
        return others == 0
    }

    private mutating func writeEscaping(_ text: UnsafeBufferPointer<UInt8>) {
        var written = 0
        // A slice would be copied byte by byte.
        func write(to end: Int) { bytes.append(contentsOf: UnsafeBufferPointer(rebasing: text[written..<end])) }
        for (index, byte) in text.enumerated() {
            switch byte {
            case 0..<0x20, 0x22, 0x5C, 0x7F:
                write(to: index)
                append(escape: byte)
                written = index + 1
            case 0xC2, 0xE2:
                // The bytes of a string are complete characters, so the following bytes of a multi-byte character
                // exist.
                guard let (escape, length) = Self.lineEnd(text[index...]) else { continue }
                write(to: index)
                append(escape)
                written = index + length
            default: continue
            }
        }
        write(to: text.count)
    }

    // The escape of a line separator of Unicode, or of a control character from U+0080 to U+009F; nil for other characters. With
    // these escapes, programs that split lines by Unicode's rules also read one line for each value.
    private static func lineEnd(_ text: Slice<UnsafeBufferPointer<UInt8>>) -> (escape: String, length: Int)? {
        let next = text.dropFirst()
        guard let second = next.first else { return nil }
        if text.first == 0xC2 { return second < 0xA0 ? ("\\u00" + Hexadecimal.encode([second]), 2) : nil }
        guard second == 0x80, let third = next.dropFirst().first, third == 0xA8 || third == 0xA9 else { return nil }
        return (third == 0xA8 ? "\\u2028" : "\\u2029", 3)
    }

    private mutating func append(escape byte: UInt8) {
        switch byte {
        case UInt8(ascii: "\""): append("\\\"")
        case UInt8(ascii: "\\"): append("\\\\")
        case UInt8(ascii: "\n"): append("\\n")
        case UInt8(ascii: "\r"): append("\\r")
        case UInt8(ascii: "\t"): append("\\t")
        default: append("\\u00" + Hexadecimal.encode([byte]))
        }
    }

    private mutating func append(_ text: String) { text.withBytes { bytes.append(contentsOf: $0) } }

    mutating func append(_ byte: UInt8) { bytes.append(byte) }
}

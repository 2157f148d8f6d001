import NIOCore
import RESP
import Testing

@Suite("Reading RESP")
struct RESPDecoderTests {
    private func decode(_ text: String, limits: RESPDecoder.Limits = .init()) throws -> [RESPValue] {
        try decode(Array(text.utf8), limits: limits)
    }

    private func decode(_ bytes: [UInt8], limits: RESPDecoder.Limits = .init()) throws -> [RESPValue] {
        var (decoder, buffer) = (RESPDecoder(limits: limits), ByteBuffer(bytes: bytes))
        var values: [RESPValue] = []
        while let value = try decoder.next(&buffer) { values.append(value) }
        return values
    }

    private static let examples: [(String, RESPValue)] = [
        ("+OK\r\n", .simple("OK")),
        ("+\r\n", .simple("")),
        ("-NOSCRIPT No matching script.\r\n", .error("NOSCRIPT No matching script.")),
        (":0\r\n", .integer(0)),
        (":-7\r\n", .integer(-7)),
        (":9223372036854775807\r\n", .integer(.max)),
        (":-9223372036854775808\r\n", .integer(.min)),
        ("$0\r\n\r\n", .bulk(ByteBuffer())),
        ("$4\r\na\r\nb\r\n", .bulk(ByteBuffer(string: "a\r\nb"))),
        ("$-1\r\n", .null),
        ("*-1\r\n", .null),
        ("*0\r\n", .array([])),
        ("*2\r\n*1\r\n:1\r\n*0\r\n", .array([.array([.integer(1)]), .array([])])),
        ("_\r\n", .null),
        ("#t\r\n", .boolean(true)),
        ("#f\r\n", .boolean(false)),
        (",1.5e3\r\n", .double(1500)),
        (",-inf\r\n", .double(-.infinity)),
        (
            "(-3492890328409238509324850943850943825024385\r\n",
            .bigNumber("-3492890328409238509324850943850943825024385")
        ),
        ("!5\r\nERR x\r\n", .error("ERR x")),
        ("=7\r\ntxt:abc\r\n", .bulk(ByteBuffer(string: "abc"))),
        ("~1\r\n+a\r\n", .array([.simple("a")])),
        ("%1\r\n+a\r\n:1\r\n", .map([.simple("a"), .integer(1)])),
        (">2\r\n+message\r\n+x\r\n", .push([.simple("message"), .simple("x")])),
    ]

    @Test(arguments: examples)
    func `each type is read`(_ text: String, _ value: RESPValue) throws {
        #expect(try decode(text) == [value])
        #expect(try decode(text + text) == [value, value])
    }

    @Test func `bytes split at every position give the same values`() throws {
        let bytes = Self.examples.flatMap { Array($0.0.utf8) }
        let values = Self.examples.map(\.1)
        for split in 0...bytes.count {
            var (decoder, buffer, found) = (RESPDecoder(), ByteBuffer(), [RESPValue]())
            for part in [bytes[..<split], bytes[split...]] {
                buffer.writeBytes(part)
                while let value = try decoder.next(&buffer) { found.append(value) }
            }
            #expect(found == values, "split at \(split)")
        }
        var (decoder, buffer, found) = (RESPDecoder(), ByteBuffer(), [RESPValue]())
        for byte in bytes {
            buffer.writeInteger(byte)
            while let value = try decoder.next(&buffer) { found.append(value) }
        }
        #expect(found == values)
    }

    @Test(arguments: [
        "\r\n", "OK\r\n", "+OK\n", "+a\rb\r\n", ":\r\n", ":+1\r\n", ":01\r\n", ":-0\r\n", ":1x\r\n", ": 1\r\n",
        ":9223372036854775808\r\n", ":-9223372036854775809\r\n", ":99999999999999999999\r\n", "$-2\r\n", "$01\r\na\r\n",
        "$1\r\nab\r\n", "$?\r\n", "*-2\r\n", "*?\r\n", "~-1\r\n", "%-1\r\n", "%9223372036854775807\r\n", "_x\r\n",
        "#\r\n", "#true\r\n", ",\r\n", ",0x10\r\n", ",1e999\r\n", ",1_0\r\n", "(\r\n", "(-\r\n", "(1.0\r\n",
        "=3\r\nabc\r\n",
        "=4\r\nabcd\r\n", "!-1\r\n", "|1\r\n+a\r\n+b\r\n:1\r\n", ".\r\n", "*1\r\n>0\r\n", "GET / HTTP/1.1\r\n",
        "*999999999\r\n", "$999999999\r\n",
    ])
    func `anything else is refused`(_ text: String) {
        #expect(throws: RESPError.self) { try decode(text) }
    }

    @Test func `text that is not UTF-8 is refused in a line and kept in a bulk string`() throws {
        #expect(throws: RESPError.self) { try decode([0x2B, 0xFF, 0x0D, 0x0A]) }
        let bulk = try decode(Array("$1\r\n".utf8) + [0xFF, 0x0D, 0x0A])
        #expect(bulk == [.bulk(ByteBuffer(bytes: [0xFF]))])
        #expect(bulk.first?.text == nil)
        #expect(bulk.first?.bytes == [0xFF])
    }

    @Test func `depth, elements, lengths and size are bounded`() throws {
        var limits = RESPDecoder.Limits()
        (limits.depth, limits.elements, limits.bulkLength, limits.lineLength, limits.size) = (2, 4, 8, 8, 30)
        #expect(try decode("*1\r\n*1\r\n:1\r\n", limits: limits).count == 1)
        #expect(throws: RESPError.self) { try decode("*1\r\n*1\r\n*1\r\n:1\r\n", limits: limits) }
        #expect(try decode("*3\r\n:1\r\n:1\r\n:1\r\n", limits: limits).count == 1)
        #expect(throws: RESPError.self) { try decode("*2\r\n*1\r\n:1\r\n*1\r\n:1\r\n", limits: limits) }
        #expect(try decode("$8\r\n12345678\r\n", limits: limits).count == 1)
        #expect(throws: RESPError.self) { try decode("$9\r\n", limits: limits) }
        #expect(try decode("+1234567\r\n", limits: limits).count == 1)
        #expect(throws: RESPError.self) { try decode("+12345678\r\n", limits: limits) }
        // A line that has no end, and an array whose total size is too large.
        #expect(throws: RESPError.self) { try decode("+123456789012345", limits: limits) }
        #expect(throws: RESPError.self) {
            try decode("*3\r\n$8\r\n12345678\r\n$8\r\n12345678\r\n$8\r\n12345678\r\n", limits: limits)
        }
        // The limits apply to each value separately.
        #expect(try decode(String(repeating: "$8\r\n12345678\r\n", count: 9), limits: limits).count == 9)
    }

    @Test func `after an error, the decoder reads further bytes without a trap`() throws {
        var decoder = RESPDecoder()
        var long = ByteBuffer(bytes: [UInt8](repeating: UInt8(ascii: "+"), count: 5000))
        #expect(throws: RESPError.self) { try decoder.next(&long) }
        var short = ByteBuffer(string: "+OK")
        #expect(try decoder.next(&short) == nil)
    }

    @Test func `random bytes never trap, and values survive being written and read`() throws {
        var random = SystemRandomNumberGenerator()
        let alphabet = Array("+-:$*_#,(!=%~>|\r\n0123456789tfx\u{0}".utf8)
        for _ in 0..<20_000 {
            let bytes = (0..<Int.random(in: 0...24, using: &random)).map { _ in
                alphabet.randomElement(using: &random) ?? 0
            }
            _ = try? decode(bytes)
        }
        for _ in 0..<2_000 {
            let value = Self.randomValue(depth: 3, &random)
            #expect(try decode(Self.written(value)) == [value])
        }
    }

    private static func randomValue(depth: Int, _ random: inout SystemRandomNumberGenerator) -> RESPValue {
        func many() -> [RESPValue] { (0..<Int.random(in: 0...3)).map { _ in randomValue(depth: depth - 1, &random) } }
        switch Int.random(in: 0...(depth > 0 ? 8 : 6), using: &random) {
        case 0: return .simple("text \(Int.random(in: 0...99, using: &random))")
        case 1: return .error("ERR \(Int.random(in: 0...99, using: &random))")
        case 2: return .integer(Int64.random(in: .min ... .max, using: &random))
        case 3:
            let bytes = (0..<Int.random(in: 0...20, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            return .bulk(ByteBuffer(bytes: bytes))
        case 4: return .null
        case 5: return .boolean(Bool.random(using: &random))
        case 6: return .double(Double(Int.random(in: -99...99, using: &random)) / 4)
        case 7: return .array(many())
        default:
            let items = many()
            return .map(items + items)
        }
    }

    private static func written(_ value: RESPValue) -> [UInt8] {
        func line(_ text: String) -> [UInt8] { Array("\(text)\r\n".utf8) }
        switch value {
        case .simple(let text): return line("+\(text)")
        case .error(let text): return line("-\(text)")
        case .integer(let number): return line(":\(number)")
        case .bulk(let bytes): return line("$\(bytes.readableBytes)") + Array(bytes.readableBytesView) + line("")
        case .array(let items): return line("*\(items.count)") + items.flatMap(written)
        case .map(let items): return line("%\(items.count / 2)") + items.flatMap(written)
        case .push(let items): return line(">\(items.count)") + items.flatMap(written)
        case .boolean(let value): return line("#\(value ? "t" : "f")")
        case .double(let value): return line(",\(value)")
        case .bigNumber(let digits): return line("(\(digits)")
        case .null: return line("_")
        }
    }
}

@Suite("Writing commands")
struct RESPCommandTests {
    @Test func `a command is an array of bulk strings`() {
        var command = RESPCommand("SET", "key", count: 6)
        #expect(!command.isComplete)
        command.add(bytes: [0, 255] as [UInt8])
        command.add(-12)
        command.add(.min)
        command.add("p:", bytes: [1] as [UInt8])
        #expect(command.isComplete)
        let expected =
            Array("*6\r\n$3\r\nSET\r\n$3\r\nkey\r\n$2\r\n".utf8) + [0, 255]
            + Array("\r\n$3\r\n-12\r\n$20\r\n-9223372036854775808\r\n$3\r\np:".utf8) + [1, 13, 10]
        #expect(Array(command.buffer.readableBytesView) == expected)
        #expect(RESPCommand("PING").buffer == ByteBuffer(string: "*1\r\n$4\r\nPING\r\n"))
    }
}

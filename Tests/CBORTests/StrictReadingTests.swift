import CBOR
import Testing

@Suite struct StrictReading {
    @Test(
        arguments: [
            ("1800", .nonMinimalHead), ("1817", .nonMinimalHead), ("1900ff", .nonMinimalHead),
            ("1a0000ffff", .nonMinimalHead), ("1b00000000ffffffff", .nonMinimalHead), ("3800", .nonMinimalHead),
            ("580100", .nonMinimalHead), ("780161", .nonMinimalHead), ("980100", .nonMinimalHead),
            ("b8010000", .nonMinimalHead), ("d80100", .nonMinimalHead),
            ("a2010002ff", .notWellFormed), ("a201000100", .duplicateKey), ("a2616101616102", .duplicateKey),
            ("a2a1010203a1010204", .duplicateKey), ("61ff", .invalidText), ("62c080", .invalidText),
            ("63eda080", .invalidText), ("0000", .trailingBytes), ("", .unexpectedEnd), ("1c", .notWellFormed),
            ("ff", .notWellFormed), ("f81f", .notWellFormed), ("5b8000000000000000", .unexpectedEnd),
            ("9bffffffffffffffff", .unexpectedEnd), ("bb7fffffffffffffff", .unexpectedEnd),
            ("5f4100ff", .indefiniteLength),
        ] as [(String, CBORError.Code)])
    func `malformed bytes are refused with their code`(bytes: String, expected: CBORError.Code) {
        #expect(code(hex(bytes)) == expected)
    }

    @Test func `keys of different types are different`() throws {
        let map = try CBORValue(parsing: hex("a2010061310a"))
        #expect(map.map?[1] == 0)
        #expect(map.map?["1"] == 10)
        #expect(map.map?["2"] == nil)
    }

    @Test func `entries keep their order`() throws {
        let value = try CBORValue(parsing: hex("a3030002000100"))
        #expect(value.map?.entries.map(\.key) == [3, 2, 1])
        #expect(value.encoded == hex("a3030002000100"))
        #expect(value.map.map { CBORValue.map($0.sorted).encoded } == hex("a3010002000300"))
    }

    @Test func `nesting is bounded`() {
        func nested(_ levels: Int) -> [UInt8] { [UInt8](repeating: 0x81, count: levels) + [0] }
        #expect(code(nested(8)) == nil)
        #expect(code(nested(9)) == .tooDeep)
        #expect(code([UInt8](repeating: 0xC1, count: 9) + [0]) == .tooDeep)
        #expect(code(nested(1_000_000), limits: .init(bytes: .max)) == .tooDeep)
    }

    @Test func `items and bytes are bounded`() {
        let thousand = CBORValue.array(Array(repeating: 0, count: 1023)).encoded
        #expect(code(thousand) == nil)
        #expect(code(CBORValue.array(Array(repeating: 0, count: 1024)).encoded) == .tooManyItems)
        #expect(code(CBORValue.bytes(Array(repeating: 0, count: 16 * 1024 - 3)).encoded) == nil)
        #expect(code(CBORValue.bytes(Array(repeating: 0, count: 16 * 1024 - 2)).encoded) == .tooLarge)
    }

    @Test func `an error says where`() {
        do throws(CBORError) {
            _ = try CBORValue(parsing: hex("82001800"))
            Issue.record("read")
        } catch {
            #expect(error.offset == 2)
            #expect(error.description == "a head is longer than it need be (at byte 2)")
        }
    }

    @Test func `one item is read from the front of more`() throws {
        let bytes = hex("a1010243ffffff")
        let first = try CBORValue.parsePrefix(of: bytes)
        #expect(first.value == [1: 2])
        #expect(first.end == 3)
        let second = try CBORValue.parsePrefix(of: bytes[first.end...])
        #expect(second.value == .bytes([0xFF, 0xFF, 0xFF]))
        #expect(second.end == 4)
        #expect(throws: CBORError.self) { try CBORValue.parsePrefix(of: bytes[7...]) }
    }

    @Test(arguments: [0, 23, 24, 255, 256, 65535, 65536, Int64(UInt32.max), Int64(UInt32.max) + 1, .max, -1, -25, .min])
    func `integers are written as they are read`(_ number: Int64) throws {
        let value = try CBORValue(parsing: CBORValue.integer(number).encoded)
        #expect(value.integer == number)
    }

    @Test func `integers beyond 64 bits are not integers`() throws {
        #expect(try CBORValue(parsing: hex("3bffffffffffffffff")).integer == nil)
        #expect(try CBORValue(parsing: hex("1bffffffffffffffff")).integer == nil)
        #expect(try CBORValue(parsing: hex("1bffffffffffffffff")).unsigned == .max)
    }

    /// Every change of one byte of a well-formed item gives a value or an error, and never a trap.
    @Test func `any bytes give a value or an error`() {
        let bytes = hex("a3636162638301023803644f4b4f4bf93c0043ff00ffc249010000000000000000")
        for position in bytes.indices {
            for byte in UInt8.min...UInt8.max {
                var changed = bytes
                changed[position] = byte
                if let value = try? CBORValue(parsing: changed) { #expect(value.encoded == changed) }
            }
            _ = try? CBORValue(parsing: bytes[..<position])
        }
    }
}

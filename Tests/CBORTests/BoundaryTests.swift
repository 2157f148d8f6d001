import CBOR
import Testing

/// The last accepted and the first refused value of every bound of the reader.
@Suite("Bounds")
struct BoundaryTests {
    private func nested(_ levels: Int) -> [UInt8] { [UInt8](repeating: 0x81, count: levels) + [0x00] }

    @Test("by default an item has at most 16 KiB, 8 levels and 1024 items")
    func defaults() {
        func octets(_ count: Int) -> [UInt8] { CBORValue.bytes([UInt8](repeating: 0, count: count)).encoded }
        #expect(octets(16_381).count == 16_384)
        #expect(code(octets(16_381)) == nil)
        #expect(code(octets(16_382)) == .tooLarge)
        #expect(code(nested(8)) == nil)
        #expect(code(nested(9)) == .tooDeep)
        func list(_ count: Int) -> [UInt8] { CBORValue.array([CBORValue](repeating: 0, count: count)).encoded }
        #expect(code(list(1023)) == nil)
        #expect(code(list(1024)) == .tooManyItems)
    }

    @Test("a limit is the greatest value that passes; arrays, maps and tags are levels, keys and values items")
    func limits() {
        #expect(code([0x41, 0x00], limits: .init(bytes: 2)) == nil)
        #expect(code([0x41, 0x00], limits: .init(bytes: 1)) == .tooLarge)
        for bytes in [[0x81, 0x00], [0xA1, 0x00, 0x00], [0xC1, 0x00]] as [[UInt8]] {
            #expect(code(bytes, limits: .init(depth: 1)) == nil)
            #expect(code(bytes, limits: .init(depth: 0)) == .tooDeep)
        }
        #expect(code([0x00], limits: .init(depth: 0, items: 1)) == nil)
        #expect(code([0x00], limits: .init(items: 0)) == .tooManyItems)
        #expect(code([0xA1, 0x00, 0x00], limits: .init(items: 3)) == nil)
        #expect(code([0xA1, 0x00, 0x00], limits: .init(items: 2)) == .tooManyItems)
    }

    @Test("an argument is in the fewest octets, when it is read and when it is written")
    func heads() throws {
        for (argument, octets) in [
            (0, []), (23, []), (24, [24]), (255, [255]), (256, [1, 0]), (65_535, [255, 255]), (65_536, [0, 1, 0, 0]),
            (0xFFFF_FFFF, [255, 255, 255, 255]), (0x1_0000_0000, [0, 0, 0, 1, 0, 0, 0, 0]),
            (.max, [UInt8](repeating: 255, count: 8)),
        ] as [(UInt64, [UInt8])] {
            for (major, value) in [(0, CBORValue.unsigned(argument)), (1, .negative(argument))] as [(UInt8, CBORValue)]
            {
                let information: UInt8 =
                    switch octets.count {
                    case 0: UInt8(argument)
                    case 1: 24
                    case 2: 25
                    case 4: 26
                    default: 27
                    }
                let bytes = [major << 5 | information] + octets
                #expect(value.encoded == bytes)
                #expect(try CBORValue(parsing: bytes) == value)
            }
        }
        for bytes in [
            [0x18, 23], [0x19, 0, 255], [0x1A, 0, 0, 255, 255], [0x1B, 0, 0, 0, 0, 255, 255, 255, 255],
        ] as [[UInt8]] {
            #expect(code(bytes) == .nonMinimalHead)
        }
        for information: UInt8 in 28...30 { #expect(code([information]) == .notWellFormed) }
        #expect(code([0x1F]) == .indefiniteLength)
    }

    @Test("simple values are 0 to 23 and, in two octets, 32 to 255")
    func simpleValues() throws {
        for value: UInt8 in 0...23 { #expect(try CBORValue(parsing: [0xE0 | value]) == .simple(value)) }
        for value: UInt8 in [0, 23, 24, 31] { #expect(code([0xF8, value]) == .notWellFormed) }
        for value: UInt8 in [32, 255] { #expect(try CBORValue(parsing: [0xF8, value]) == .simple(value)) }
        for initial: UInt8 in [0xFC, 0xFD, 0xFE, 0xFF] { #expect(code([initial]) == .notWellFormed) }
        let named: [(CBORValue, UInt8)] = [(.false, 20), (.true, 21), (.null, 22), (.undefined, 23)]
        for (value, number) in named { #expect(value == .simple(number) && value.encoded == [0xE0 | number]) }
    }

    @Test("an item ends where its length says, and what is cut off is refused at every place")
    func ends() throws {
        let map: CBORValue = ["a": [1, .bytes([1, 2]), .tagged(2, .float(CBORFloat(1.5)))], -500: "text"]
        let bytes = map.encoded
        #expect(try CBORValue(parsing: bytes) == map)
        for count in bytes.indices { #expect(code(Array(bytes.prefix(count))) == .unexpectedEnd, "\(count)") }
        #expect(code(bytes + [0]) == .trailingBytes)
        let (value, end) = try CBORValue.parsePrefix(of: bytes + [0xFF])
        #expect(value == map && end == bytes.count)
        // A count that equals the number of remaining bytes is accepted. A larger count is refused.
        #expect(try CBORValue(parsing: [0x82, 0x00, 0x00]) == [0, 0])
        #expect(throws: CBORError.self) { try CBORValue(parsing: [0x83, 0x00, 0x00]) }
        for head in [[0x9B], [0xBB], [0x5B], [0x7B]] as [[UInt8]] {
            let claimed = head + [UInt8](repeating: 0xFF, count: 8) + [0]
            #expect(code(claimed) == .unexpectedEnd)
        }
    }

    @Test("a count beyond what is left is refused before an item is read")
    func counts() {
        for head: UInt8 in [0x83, 0xA3] {
            let error = #expect(throws: CBORError.self) { try CBORValue(parsing: [head, 0x00, 0x01]) }
            #expect(error?.code == .unexpectedEnd && error?.offset == 1)
        }
    }

    @Test("integers of 64 bits with a sign are numbers, those beyond are not")
    func integers() {
        for (value, number) in [
            (.unsigned(0), 0), (.negative(0), -1), (.unsigned(UInt64(Int64.max)), .max),
            (.unsigned(UInt64(Int64.max) + 1), nil), (.negative(UInt64(Int64.max)), .min),
            (.negative(UInt64(Int64.max) + 1), nil), ("1", nil),
        ] as [(CBORValue, Int64?)] {
            #expect(value.integer == number)
            if let number { #expect(CBORValue.integer(number) == value) }
        }
        #expect(CBORValue.unsigned(5).unsigned == 5 && CBORValue.negative(5).unsigned == nil)
    }

    @Test("numbers of 16 bits are those of RFC 8949, appendix D")
    func halves() throws {
        for (bits, value) in [
            (0x0000, 0), (0x8000, -0.0), (0x0001, 0x1p-24), (0x03FF, 0x3FFp-24), (0x0400, 0x1p-14), (0x3C00, 1),
            (0xBC00, -1), (0x3C01, 1 + 0x1p-10), (0x7BFF, 65_504), (0x7C00, .infinity), (0xFC00, -.infinity),
        ] as [(UInt16, Double)] {
            guard case .float(let float) = try CBORValue(parsing: [0xF9, UInt8(bits >> 8), UInt8(bits & 0xFF)]) else {
                Issue.record("not a float")
                continue
            }
            #expect(float.value == value && float.value.sign == value.sign)
        }
        guard case .float(let nan) = try CBORValue(parsing: [0xF9, 0x7C, 0x01]) else { return }
        #expect(nan.value.isNaN)
    }
}

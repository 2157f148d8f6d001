import LenientDER
import Testing

private func node(_ bytes: [UInt8]) throws -> DERNode { try DERNode(parsing: bytes) }

private func failure(_ bytes: [UInt8], limits: DERNode.Limits = .init()) -> DERError.Code? {
    do {
        _ = try DERNode(parsing: bytes, limits: limits)
        return nil
    } catch {
        return error.code
    }
}

@Suite("The structure of DER is held strictly")
struct StructureTests {
    @Test("an element keeps the bytes it was read from, and their offsets")
    func keepsBytes() throws {
        let bytes: [UInt8] = [0x30, 0x06, 0x02, 0x01, 0x05, 0x04, 0x01, 0xAA]
        let children = try node(bytes).sequence()
        #expect(children.map { Array($0.encoded) } == [[0x02, 0x01, 0x05], [0x04, 0x01, 0xAA]])
        #expect(children.map(\.offset) == [2, 5])
        #expect(Array(try children[1].octetString()) == [0xAA])
    }

    @Test("a slice keeps the indices of the whole")
    func keepsIndices() throws {
        let bytes: [UInt8] = [0xFF, 0x04, 0x01, 0xAA]
        #expect(try DERNode(parsing: bytes[1...]).offset == 1)
    }

    @Test("tag numbers in the long form are read, in the fewest octets only")
    func highTagNumbers() throws {
        #expect(try node([0xBF, 0x85, 0x45, 0x02, 0x05, 0x00]).tag == .explicit(709))
        #expect(failure([0xBF, 0x80, 0x85, 0x45, 0x00]) == .invalidTag)
        #expect(failure([0xBF, 0x1E, 0x00]) == .invalidTag)
        #expect(failure([0xBF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F, 0x00]) == .invalidTag)
    }

    @Test(
        "lengths are definite, minimal, and fit",
        arguments: [
            ([0x30, 0x80, 0x00, 0x00], DERError.Code.indefiniteLength),
            ([0x04, 0x81, 0x01, 0xAA], .invalidLength),
            ([0x04, 0x82, 0x00, 0x80], .invalidLength),
            ([0x04, 0x85, 0x01, 0x00, 0x00, 0x00, 0x00], .invalidLength),
            ([0x04, 0xFF], .invalidLength),
            ([0x04, 0x84, 0xFF, 0xFF, 0xFF, 0xFF], .truncated),
            ([0x04, 0x02, 0xAA], .truncated),
            ([0x30, 0x03, 0x04, 0x02, 0xAA, 0xBB], .truncated),
            ([0x30, 0x01, 0x04, 0x00], .truncated),
            ([], .truncated),
            ([0x05, 0x00, 0x00], .trailingBytes),
        ] as [([UInt8], DERError.Code)])
    func lengths(bytes: [UInt8], code: DERError.Code) {
        #expect(failure(bytes) == code)
    }

    @Test("depth, elements and size are bounded")
    func bounds() {
        func nested(_ levels: Int) -> [UInt8] {
            (0..<levels).reduce([0x05, 0x00]) { inner, _ in
                [0x30] + (inner.count < 128 ? [UInt8(inner.count)] : [0x81, UInt8(inner.count)]) + inner
            }
        }
        #expect(failure(nested(49), limits: .init(depth: 1000)) == nil)
        #expect(failure(nested(50), limits: .init(depth: 1000)) == .tooDeep)
        #expect(failure([0x30, 0x04, 0x05, 0x00, 0x05, 0x00], limits: .init(nodes: 2)) == .tooManyNodes)
        #expect(failure([0x04, 0x01, 0x00], limits: .init(bytes: 2)) == .tooLarge)
    }
}

@Suite("Values tolerate what devices are known for, and say so")
struct ValueTests {
    @Test("any octet but zero is true; anything but 00 and FF is a quirk")
    func booleans() throws {
        var quirks: [DERQuirk] = []
        #expect(try node([0x01, 0x01, 0xFF]).boolean(noting: &quirks))
        #expect(try !node([0x01, 0x01, 0x00]).boolean(noting: &quirks))
        #expect(quirks.isEmpty)
        #expect(try node([0x01, 0x01, 0x01]).boolean(noting: &quirks))
        #expect(quirks.map(\.kind) == [.nonCanonicalBoolean(0x01)])
        #expect(throws: DERError.self) { try node([0x01, 0x02, 0xFF, 0xFF]).boolean(noting: &quirks) }
        #expect(throws: DERError.self) { try node([0x01, 0x00]).boolean(noting: &quirks) }
    }

    @Test("a SET OF is read in its own order; an unsorted one is a quirk")
    func sets() throws {
        var quirks: [DERQuirk] = []
        #expect(try node([0x31, 0x06, 2, 1, 2, 2, 1, 3]).set(noting: &quirks).count == 2)
        #expect(quirks.isEmpty)
        #expect(try node([0x31, 0x06, 2, 1, 3, 2, 1, 2]).set(noting: &quirks).count == 2)
        #expect(quirks.map(\.kind) == [.unsortedSet])
    }

    @Test(
        "integers of up to 64 bits are read; leading octets that are not needed are a quirk",
        arguments: [
            ([0x02, 0x01, 0x00], 0, 0), ([0x02, 0x01, 0x80], -128, 0), ([0x02, 0x02, 0x00, 0x80], 128, 0),
            ([0x02, 0x02, 0x00, 0x7F], 127, 1), ([0x02, 0x03, 0xFF, 0xFF, 0xFE], -2, 1),
            ([0x0A, 0x01, 0x02], 2, 0), ([0x02, 0x08, 0x80, 0, 0, 0, 0, 0, 0, 0], Int64.min, 0),
        ] as [([UInt8], Int64, Int)])
    func integers(bytes: [UInt8], value: Int64, quirkCount: Int) throws {
        var quirks: [DERQuirk] = []
        #expect(try node(bytes).integer(noting: &quirks) == value)
        #expect(quirks.count == quirkCount)
    }

    @Test("integers that are empty or too large are errors")
    func badIntegers() throws {
        var quirks: [DERQuirk] = []
        #expect(throws: DERError.self) { try node([0x02, 0x00]).integer(noting: &quirks) }
        #expect(throws: DERError.self) {
            try node([0x02, 0x09, 0, 0xFF, 0, 0, 0, 0, 0, 0, 0]).integer(noting: &quirks)
        }
    }

    @Test("named bits tolerate trailing zero bits and bits beyond the end; keys and signatures do not")
    func bitStrings() throws {
        var quirks: [DERQuirk] = []
        #expect(try node([0x03, 0x02, 0x07, 0x80]).namedBits(noting: &quirks) == [0x80])
        #expect(try node([0x03, 0x01, 0x00]).namedBits(noting: &quirks) == [])
        #expect(quirks.isEmpty)
        #expect(try node([0x03, 0x02, 0x00, 0x80]).namedBits(noting: &quirks) == [0x80])
        #expect(try node([0x03, 0x02, 0x07, 0x81]).namedBits(noting: &quirks) == [0x80])
        #expect(quirks.map(\.kind) == [.nonMinimalBitString, .nonMinimalBitString])
        #expect(throws: DERError.self) { try node([0x03, 0x02, 0x08, 0x80]).namedBits(noting: &quirks) }
        #expect(throws: DERError.self) { try node([0x03, 0x01, 0x01]).namedBits(noting: &quirks) }
        #expect(throws: DERError.self) { try node([0x03, 0x00]).namedBits(noting: &quirks) }
        #expect(throws: DERError.self) { try node([0x03, 0x02, 0x01, 0x80]).bitStringOctets() }
    }

    @Test("object identifiers are compared by their encoding and shown with dots")
    func objectIdentifiers() throws {
        let identifier = try node([0x06, 0x0A, 0x2B, 6, 1, 4, 1, 0xD6, 0x79, 2, 1, 17]).objectIdentifier()
        #expect(identifier == DEROID(1, 3, 6, 1, 4, 1, 11129, 2, 1, 17))
        #expect(identifier.description == "1.3.6.1.4.1.11129.2.1.17")
        #expect(DEROID(2, 999, 3).description == "2.999.3")
        for bad: [UInt8] in [[], [0x80, 0x01], [0x2B, 0x86], [0x2B] + Array(repeating: 0xFF, count: 10) + [0]] {
            #expect(DEROID(encoded: bad) == nil)
        }
    }

    @Test(
        "times are read to the second",
        arguments: [
            ("700101000000Z", 0), ("491231235959Z", 2_524_607_999), ("500101000000Z", -631_152_000),
            ("240229120000Z", 1_709_208_000), ("20500101000000Z", 2_524_608_000), ("19700101000000Z", 0),
        ] as [(String, Int64)])
    func times(text: String, seconds: Int64) throws {
        var quirks: [DERQuirk] = []
        let tag: UInt8 = text.utf8.count == 15 ? 0x18 : 0x17
        #expect(
            try node([tag, UInt8(text.utf8.count)] + Array(text.utf8)).secondsSince1970(noting: &quirks) == seconds)
        #expect(quirks.count == (text == "19700101000000Z" ? 1 : 0))
    }

    @Test(
        "times that are none are errors",
        arguments: ["230229000000Z", "231301000000Z", "230100000000Z", "230101240000Z", "2301010000Z", "23010100000aZ"])
    func badTimes(text: String) throws {
        var quirks: [DERQuirk] = []
        #expect(throws: DERError.self) {
            try node([0x17, UInt8(text.utf8.count)] + Array(text.utf8)).secondsSince1970(noting: &quirks)
        }
    }
}

import LenientDER
import Testing

private func node(_ bytes: [UInt8]) throws -> DERNode { try DERNode(parsing: bytes) }

/// An element with this tag and content, and a length in the fewest octets.
private func element(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
    var octets: [UInt8] = []
    var rest = content.count
    while rest > 0 {
        octets.insert(UInt8(rest & 0xFF), at: 0)
        rest >>= 8
    }
    let length = content.count < 0x80 ? [UInt8(content.count)] : [0x80 | UInt8(octets.count)] + octets
    return [tag] + length + content
}

private func failure(_ body: () throws -> some Any) -> DERError.Code? {
    do {
        _ = try body()
        return nil
    } catch {
        return (error as? DERError)?.code
    }
}

/// The last accepted and the first refused value of every bound of the reader.
@Suite("Bounds of the structure")
struct StructureBoundTests {
    private func nested(_ levels: Int) -> [UInt8] {
        (1..<levels).reduce([0x05, 0x00]) { inner, _ in element(0x30, inner) }
    }

    @Test("by default an input has at most 64 KiB, 32 levels and 4096 elements")
    func defaults() {
        #expect(failure { try node(element(0x04, [UInt8](repeating: 0, count: 65_532))) } == nil)
        #expect(failure { try node(element(0x04, [UInt8](repeating: 0, count: 65_533))) } == .tooLarge)
        #expect(failure { try node(nested(32)) } == nil)
        #expect(failure { try node(nested(33)) } == .tooDeep)
        func list(_ count: Int) -> [UInt8] { element(0x30, (0..<count).flatMap { _ in [0x05, 0x00] as [UInt8] }) }
        #expect(failure { try node(list(4095)) } == nil)
        #expect(failure { try node(list(4096)) } == .tooManyNodes)
    }

    @Test("a limit is the greatest value that passes, and the depth never more than 50")
    func limits() {
        func code(_ bytes: [UInt8], _ limits: DERNode.Limits) -> DERError.Code? {
            failure { try DERNode(parsing: bytes, limits: limits) }
        }
        #expect(code([0x04, 0x01, 0x00], .init(bytes: 3)) == nil)
        #expect(code([0x04, 0x01, 0x00], .init(bytes: 2)) == .tooLarge)
        #expect(code([0x05, 0x00], .init(nodes: 1)) == nil)
        #expect(code([0x05, 0x00], .init(nodes: 0)) == .tooManyNodes)
        #expect(code([0x30, 0x04, 0x05, 0x00, 0x05, 0x00], .init(nodes: 3)) == nil)
        #expect(code(nested(1), .init(depth: 1)) == nil)
        #expect(code(nested(2), .init(depth: 1)) == .tooDeep)
        #expect(DERNode.Limits(depth: 50).depth == 50 && DERNode.Limits(depth: 51).depth == 50)
    }

    @Test("a tag has a class, a form and a number of at most 28 bits")
    func tags() throws {
        for (bytes, tagClass, number, isConstructed) in [
            ([0x1E, 0x00], .universal, 30, false), ([0x21, 0x00], .universal, 1, true),
            ([0x40, 0x00], .application, 0, false), ([0xA0, 0x00], .contextSpecific, 0, true),
            ([0xC5, 0x00], .privateUse, 5, false), ([0x9F, 0x1F, 0x00], .contextSpecific, 31, false),
            ([0x9F, 0x7F, 0x00], .contextSpecific, 127, false),
            ([0x9F, 0x81, 0x00, 0x00], .contextSpecific, 128, false),
            ([0x9F, 0x81, 0x80, 0x01, 0x00], .contextSpecific, 16_385, false),
            ([0xFF, 0xFF, 0xFF, 0xFF, 0x7F, 0x00], .privateUse, 0x0FFF_FFFF, true),
        ] as [([UInt8], DERTag.Class, UInt32, Bool)] {
            #expect(try node(bytes).tag == DERTag(tagClass, number, constructed: isConstructed))
        }
        for bytes in [
            [0x00, 0x00], [0x20, 0x00], [0x9F, 0x1E, 0x00], [0x9F, 0x00, 0x00], [0x9F, 0x80, 0x1F, 0x00],
            [0x9F, 0x81, 0x80, 0x80, 0x80, 0x00, 0x00],
        ] as [[UInt8]] {
            #expect(failure { try node(bytes) } == .invalidTag)
        }
        #expect(failure { try node([0x9F, 0x81]) } == .truncated)
    }

    @Test("the universal tags have the numbers of X.680")
    func universalTags() {
        let numbers: [(DERTag, UInt32)] = [
            (.boolean, 1), (.integer, 2), (.bitString, 3), (.octetString, 4), (.null, 5), (.objectIdentifier, 6),
            (.enumerated, 10), (.utf8String, 12), (.sequence, 16), (.set, 17), (.printableString, 19),
            (.teletexString, 20), (.ia5String, 22), (.utcTime, 23), (.generalizedTime, 24),
        ]
        for (tag, number) in numbers {
            let isConstructed = tag == .sequence || tag == .set
            #expect(tag == DERTag(.universal, number, constructed: isConstructed), "\(number)")
        }
        #expect(DERTag.explicit(3) == DERTag(.contextSpecific, 3, constructed: true))
    }

    @Test("a length is written in the fewest octets, at most four")
    func lengths() throws {
        let limits = DERNode.Limits(bytes: 1 << 25)
        for count in [0, 127, 128, 255, 256, 65_535, 65_536, 16_777_215, 16_777_216] {
            let bytes = element(0x04, [UInt8](repeating: 0xAA, count: count))
            #expect(try DERNode(parsing: bytes, limits: limits).content.count == count)
        }
        for length in [
            [0x81, 0x00], [0x81, 0x7F], [0x82, 0x00, 0xFF], [0x83, 0x00, 0xFF, 0xFF], [0x84, 0x00, 0xFF, 0xFF, 0xFF],
            [0x85, 0x01, 0, 0, 0, 0],
        ] as [[UInt8]] {
            let bytes = [0x04] + length + [UInt8](repeating: 0, count: 300)
            #expect(failure { try node(bytes) } == .invalidLength)
        }
        #expect(failure { try node([0x04, 0x82, 0x01]) } == .truncated)
        #expect(failure { try node([0x04, 0x84, 0x01, 0x00, 0x00, 0x00]) } == .truncated)
    }

    @Test("an element inside another fills it, and neither ends later nor earlier")
    func children() throws {
        #expect(try node([0x30, 0x02, 0x05, 0x00]).children.count == 1)
        #expect(try node([0x30, 0x00]).children.isEmpty)
        #expect(failure { try node([0x30, 0x02, 0x04, 0x01, 0xAA]) } == .truncated)
        #expect(failure { try node([0x30, 0x03, 0x05, 0x00, 0x05]) } == .truncated)
        #expect(try node([0x24, 0x02, 0x04, 0x00]).children.count == 1)
        #expect(try node([0x04, 0x02, 0x04, 0x00]).children.isEmpty)
    }

    @Test("an error names its place")
    func places() {
        #expect(throws: DERError.self) { try node([0x30, 0x04, 0x05, 0x00, 0x04, 0x01, 0x00]) }
        do {
            _ = try node([0x30, 0x05, 0x05, 0x00, 0x1F, 0x80, 0x00])
        } catch {
            #expect("\(error)" == "invalidTag at byte 4")
        }
    }
}

@Suite("Bounds of values")
struct ValueBoundTests {
    @Test("each value has its type, and no other")
    func types() throws {
        var quirks: [DERQuirk] = []
        let values: [(tags: [UInt8], read: (DERNode) throws -> Any)] = [
            ([0x30], { try $0.sequence() }), ([0x31], { try $0.set(noting: &quirks) }),
            ([0x01], { try $0.boolean(noting: &quirks) }), ([0x02, 0x0A], { try $0.integer(noting: &quirks) }),
            ([0x04], { try $0.octetString() }), ([0x03], { try $0.bitStringOctets() }),
            ([0x03], { try $0.namedBits(noting: &quirks) }), ([0x05], { try $0.null() }),
            ([0x06], { try $0.objectIdentifier() }), ([0x0C, 0x13, 0x14, 0x16], { try $0.text() }),
            ([0x17, 0x18], { try $0.secondsSince1970(noting: &quirks) }),
        ]
        for (index, value) in values.enumerated() {
            for tag in [0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x0A, 0x0C, 0x13, 0x14, 0x16, 0x17, 0x18, 0x30, 0x31]
                as [UInt8]
            {
                let code = failure { try value.read(node([tag, 0x00])) }
                #expect((code == .unexpectedTag) == !value.tags.contains(tag), "\(index) \(tag)")
            }
        }
    }

    @Test("an explicit tag holds one element")
    func explicitContent() throws {
        #expect(try node([0xA0, 0x02, 0x05, 0x00]).explicitContent().tag == .null)
        #expect(failure { try node([0x80, 0x02, 0x05, 0x00]).explicitContent() } == .unexpectedTag)
        #expect(failure { try node([0xA0, 0x00]).explicitContent() } == .missing)
        #expect(failure { try node([0xA0, 0x04, 0x05, 0x00, 0x05, 0x00]).explicitContent() } == .trailingBytes)
    }

    @Test("equal elements of a set are in order")
    func equalElements() throws {
        var quirks: [DERQuirk] = []
        #expect(try node([0x31, 0x06, 2, 1, 2, 2, 1, 2]).set(noting: &quirks).count == 2)
        #expect(quirks.isEmpty)
    }

    @Test("a number has 1 to 8 octets that it needs")
    func integers() throws {
        for (content, value, isMinimal) in [
            ([0x7F], 127, true), ([0x00, 0x80], 128, true), ([0x00, 0x7F], 127, false), ([0x80], -128, true),
            ([0xFF], -1, true), ([0xFF, 0x7F], -129, true), ([0xFF, 0x80], -128, false), ([0x00, 0x00], 0, false),
            ([0x01, 0x00], 256, true), ([0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], .max, true),
            ([0x00, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], .max, false),
            ([0x80, 0, 0, 0, 0, 0, 0, 0], .min, true), ([0x00, 0x00, 0x01], 1, false),
        ] as [([UInt8], Int64, Bool)] {
            var quirks: [DERQuirk] = []
            #expect(try node(element(0x02, content)).integer(noting: &quirks) == value)
            #expect(quirks.map(\.kind) == (isMinimal ? [] : [.nonMinimalInteger]))
        }
        var quirks: [DERQuirk] = []
        #expect(failure { try node([0x02, 0x00]).integer(noting: &quirks) } == .invalidContent)
        let nine = element(0x02, [0x00, 0x80, 0, 0, 0, 0, 0, 0, 0])
        #expect(failure { try node(nine).integer(noting: &quirks) } == .outOfRange)
    }

    @Test("NULL is empty, BOOLEAN one octet, and a key or signature whole octets")
    func contents() throws {
        var quirks: [DERQuirk] = []
        #expect(failure { try node([0x05, 0x00]).null() } == nil)
        #expect(failure { try node([0x05, 0x01, 0x00]).null() } == .invalidContent)
        #expect(try node([0x01, 0x01, 0xFE]).boolean(noting: &quirks))
        #expect(quirks.map(\.kind) == [.nonCanonicalBoolean(0xFE)])
        #expect(try node([0x03, 0x02, 0x00, 0xAA]).bitStringOctets().elementsEqual([0xAA]))
        #expect(try node([0x03, 0x01, 0x00]).bitStringOctets().isEmpty)
        #expect(failure { try node([0x03, 0x00]).bitStringOctets() } == .invalidContent)
        #expect(failure { try node([0x0C, 0x01, 0xFF]).text() } == .invalidContent)
        #expect(try node([0x14, 0x02, 0xC3, 0xA4]).text() == "ä")
    }

    @Test("named bits end in a set bit, after which at most seven are unused")
    func namedBits() throws {
        for (unused, last, kept, isMinimal) in [
            (0, 0x01, 0x01, true), (0, 0x02, 0x02, false), (1, 0x02, 0x02, true), (1, 0x03, 0x02, false),
            (1, 0x04, 0x04, false), (7, 0x80, 0x80, true), (7, 0xFF, 0x80, false), (7, 0x7F, 0x00, false),
        ] as [(UInt8, UInt8, UInt8, Bool)] {
            var quirks: [DERQuirk] = []
            #expect(try node([0x03, 0x03, unused, 0xAA, last]).namedBits(noting: &quirks) == [0xAA, kept])
            #expect(quirks.map(\.kind) == (isMinimal ? [] : [.nonMinimalBitString]), "\(unused) \(last)")
        }
    }
}

@Suite("Bounds of object identifiers")
struct IdentifierBoundTests {
    @Test("the first two arcs share a number, each other arc has its own, seven bits an octet")
    func encodings() {
        for (identifier, encoded, text) in [
            (DEROID(0, 0), [0x00], "0.0"), (DEROID(0, 39), [0x27], "0.39"), (DEROID(1, 0), [0x28], "1.0"),
            (DEROID(1, 39), [0x4F], "1.39"), (DEROID(2, 0), [0x50], "2.0"), (DEROID(2, 40), [0x78], "2.40"),
            (DEROID(2, 47), [0x7F], "2.47"), (DEROID(2, 48), [0x81, 0x00], "2.48"),
            (DEROID(1, 2, 127), [0x2A, 0x7F], "1.2.127"), (DEROID(1, 2, 128), [0x2A, 0x81, 0x00], "1.2.128"),
            (DEROID(1, 2, 16_383), [0x2A, 0xFF, 0x7F], "1.2.16383"),
            (DEROID(1, 2, 16_384, 1), [0x2A, 0x81, 0x80, 0x00, 0x01], "1.2.16384.1"),
        ] as [(DEROID, [UInt8], String)] {
            #expect(identifier.encoded == encoded)
            #expect(identifier.description == text)
            #expect(DEROID(encoded: encoded) == identifier)
        }
        #expect(DEROID(1).encoded.isEmpty && DEROID().encoded.isEmpty && DEROID(2, .max).encoded.isEmpty)
    }

    @Test("an identifier has at most 64 octets, an arc at most nine, in the fewest")
    func bounds() {
        #expect(DEROID(encoded: [UInt8](repeating: 1, count: 64)) != nil)
        #expect(DEROID(encoded: [UInt8](repeating: 1, count: 65)) == nil)
        #expect(
            DEROID(encoded: [0x2A] + [UInt8](repeating: 0xFF, count: 8) + [0x7F])?.description == "1.2.\(Int64.max)")
        #expect(DEROID(encoded: [0x2A] + [UInt8](repeating: 0xFF, count: 9) + [0x7F]) == nil)
        #expect(DEROID(encoded: [0x2A, 0x80, 0x01]) == nil)
        #expect(DEROID(encoded: [0x2A, 0x81, 0x80, 0x01]) != nil)
        #expect(DEROID(encoded: [0x2A, 0x81]) == nil)
    }
}

@Suite("Bounds of times")
struct TimeBoundTests {
    private func seconds(_ text: String, quirks: inout [DERQuirk]) throws -> Int64 {
        try node(element(text.utf8.count < 15 ? 0x17 : 0x18, Array(text.utf8))).secondsSince1970(noting: &quirks)
    }

    private func isTime(_ text: String) -> Bool {
        var quirks: [DERQuirk] = []
        return (try? seconds(text, quirks: &quirks)) != nil
    }

    @Test("days are counted as the Gregorian calendar has them, from the year 0 to 9999")
    func calendar() throws {
        func digits(_ value: Int, _ count: Int) -> String {
            String(repeating: "0", count: count - String(value).count) + String(value)
        }
        let months = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        var day: Int64 = -719_528  // 0000-01-01, in days since 1970.
        for year in 0...9999 {
            let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
            defer { day += isLeap ? 366 : 365 }
            guard [0, 1, 4, 96, 99].contains(year % 100) else { continue }
            var first = day
            for month in 1...12 {
                let count = months[month - 1] + (month == 2 && isLeap ? 1 : 0)
                let prefix = digits(year, 4) + digits(month, 2)
                var quirks: [DERQuirk] = []
                #expect(try seconds("\(prefix)01000000Z", quirks: &quirks) == first * 86_400)
                #expect(quirks.isEmpty == (year >= 2050))
                first += Int64(count)
                #expect(try seconds("\(prefix)\(count)235959Z", quirks: &quirks) == first * 86_400 - 1)
                #expect(!isTime("\(prefix)\(count + 1)000000Z") && !isTime("\(prefix)00000000Z"))
            }
        }
    }

    @Test("two digits of a year are of 1950 to 2049, and the last second of 2049 needs no four")
    func centuries() throws {
        var quirks: [DERQuirk] = []
        for (text, other) in [
            ("500101000000Z", "19500101000000Z"), ("990101000000Z", "19990101000000Z"),
            ("000101000000Z", "20000101000000Z"), ("490101000000Z", "20490101000000Z"),
        ] {
            #expect(try seconds(text, quirks: &quirks) == seconds(other, quirks: &quirks))
        }
        quirks = []
        _ = try seconds("20491231235959Z", quirks: &quirks)
        #expect(quirks.map(\.kind) == [.generalizedTimeBefore2050])
    }

    @Test(
        "every part of a time is in its range, in digits, and ends in Z",
        arguments: [
            ("260101235959Z", true), ("260101240000Z", false), ("260101006000Z", false), ("260101000060Z", false),
            ("260001000000Z", false), ("261301000000Z", false), ("261231000000Z", true), ("260101000000z", false),
            ("2601010000Z", false), ("2601010000000Z", false), ("26010100000/Z", false), ("26010100000:Z", false),
            ("260101000000", false), ("20260101000000.5Z", false), ("20260101000000", false),
        ])
    func parts(text: String, isAccepted: Bool) {
        #expect(isTime(text) == isAccepted)
    }
}

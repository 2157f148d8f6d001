import Bytes
import Foundation
import Testing

@Suite struct HexadecimalTests {
    @Test func `every byte is written as two lower-case digits and read in either case`() {
        for byte in UInt8.min...UInt8.max {
            let text = Hexadecimal.encode([byte])
            #expect(text == String(format: "%02x", Int(byte)))
            #expect(Hexadecimal.decode(text) == [byte])
            #expect(Hexadecimal.decode(text.uppercased()) == [byte])
        }
        #expect(Hexadecimal.encode([0xDE, 0xAD, 0x00]) == "dead00")
        #expect(Hexadecimal.decode("DEad00") == [0xDE, 0xAD, 0x00])
    }

    @Test func `no other character is a hexadecimal digit`() {
        let digits = Array("0123456789abcdef".utf8)
        let capitals = Array("0123456789ABCDEF".utf8)
        for character in UInt8.min ... .max {
            let value = digits.firstIndex(of: character) ?? capitals.firstIndex(of: character)
            #expect(Hexadecimal.value(of: character) == value.map { UInt8($0) })
        }
    }

    @Test(arguments: ["0", "000", "0g", "g0", " 00", "0x00", "00 ", "-1", "é0", "/0", ":0", "@0", "`0", "G0"])
    func `anything but pairs of digits is refused`(text: String) {
        #expect(Hexadecimal.decode(text) == nil)
    }
}

@Suite struct ConstantTimeTests {
    @Test func `byte strings are equal only if every byte is`() {
        let bytes = (0..<40).map { UInt8($0) }
        #expect(constantTimeEquals(bytes, bytes[...]))
        #expect(constantTimeEquals([], []))
        for place in bytes.indices {
            for bit in 0..<8 {
                var other = bytes
                other[place] ^= 1 << bit
                #expect(!constantTimeEquals(bytes, other))
            }
        }
        #expect(!constantTimeEquals(bytes, bytes.dropLast()))
        #expect(!constantTimeEquals(bytes, bytes + [0]))
        #expect(!constantTimeEquals([], [0]))
    }
}

@Suite struct CivilTimeTests {
    private static let calendar: Calendar = {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = .gmt
        return calendar
    }()

    @Test(arguments: [
        (0, "1970-01-01T00:00:00Z"), (951_782_399, "2000-02-28T23:59:59Z"), (951_782_400, "2000-02-29T00:00:00Z"),
        (1_709_164_800, "2024-02-29T00:00:00Z"), (4_107_542_400, "2100-03-01T00:00:00Z"),
        (4_107_542_399, "2100-02-28T23:59:59Z"), (-1, "1969-12-31T23:59:59Z"),
        (-62_167_219_200, "0000-01-01T00:00:00Z"), (253_402_300_799, "9999-12-31T23:59:59Z"),
    ])
    func `known seconds are the known times`(seconds: Int64, text: String) {
        let time = CivilTime(secondsSince1970: seconds)
        #expect(time.iso8601 == text)
        #expect(time.secondsSince1970 == seconds)
        #expect(CivilTime(iso8601: text) == time)
    }

    @Test func `every day of 1890 to 2110 agrees with Foundation's calendar`() {
        for day in Int64(-29_220)...51_500 {
            let seconds = day * 86_400 + (day * 7_919 % 86_400 + 86_400) % 86_400
            let time = CivilTime(secondsSince1970: seconds)
            let parts = Self.calendar.dateComponents(
                [.year, .month, .day, .hour, .minute, .second, .weekday],
                from: Date(timeIntervalSince1970: Double(seconds)))
            guard time.year == Int64(parts.year ?? -1), time.month == Int64(parts.month ?? -1),
                time.day == Int64(parts.day ?? -1), time.hour == Int64(parts.hour ?? -1),
                time.minute == Int64(parts.minute ?? -1), time.second == Int64(parts.second ?? -1),
                time.weekday + 1 == parts.weekday, time.secondsSince1970 == seconds
            else {
                Issue.record("\(seconds): \(time.iso8601), weekday \(time.weekday)")
                return
            }
        }
    }

    @Test func `seconds beyond four-digit years are clamped`() {
        #expect(CivilTime(secondsSince1970: .max).iso8601 == "9999-12-31T23:59:59Z")
        #expect(CivilTime(secondsSince1970: 253_402_300_800).iso8601 == "9999-12-31T23:59:59Z")
        #expect(CivilTime(secondsSince1970: .min).iso8601 == "0000-01-01T00:00:00Z")
        #expect(CivilTime(secondsSince1970: -62_167_219_201).iso8601 == "0000-01-01T00:00:00Z")
    }

    @Test(arguments: [
        "2026-02-29T00:00:00Z", "2100-02-29T00:00:00Z", "2026-04-31T00:00:00Z", "2026-00-01T00:00:00Z",
        "2026-13-01T00:00:00Z", "2026-01-00T00:00:00Z", "2026-01-32T00:00:00Z", "2026-01-01T24:00:00Z",
        "2026-01-01T00:60:00Z", "2026-01-01T00:00:60Z", "2026-01-01T00:00:00z", "2026-01-01t00:00:00Z",
        "2026-01-01T00:00:00", "2026-01-01T00:00:00ZZ", "2026-1-01T00:00:00Z", "+026-01-01T00:00:00Z",
        "2026-01-01 00:00:00Z", "2026-01-01T00:00:00.0Z", "",
    ])
    func `a text that is no such time is refused`(text: String) {
        #expect(CivilTime(iso8601: text) == nil)
    }

    @Test func `numbers are 1 to 9 digits`() {
        #expect(CivilTime.number(Array("007".utf8)) == 7)
        #expect(CivilTime.number(Array("999999999".utf8)) == 999_999_999)
        for text in ["", "1234567890", "-1", "+1", " 1", "1a", "/", ":"] {
            #expect(CivilTime.number(Array(text.utf8)) == nil, "\(text)")
        }
    }
}

@Suite struct PEMTests {
    @Test func `blocks are read back as they were written, with text between them`() {
        let first = (0..<200).map { UInt8($0) }
        let second: [UInt8] = [1]
        let text =
            "a root\n" + PEM.encode(first, label: "CERTIFICATE") + "\r\n  \nanother\n"
            + PEM.encode(second, label: "CERTIFICATE").replacingOccurrences(of: "\n", with: " \r\n")
        #expect(PEM.blocks(in: text, label: "CERTIFICATE") == [first, second])
        #expect(PEM.encode(first, label: "X").split(separator: "\n").allSatisfy { $0.count <= 64 })
    }

    @Test func `a text without a block has none`() {
        #expect(PEM.blocks(in: "", label: "CERTIFICATE") == [])
        #expect(PEM.blocks(in: "no block", label: "CERTIFICATE") == [])
    }

    @Test(arguments: [
        "-----BEGIN CERTIFICATE-----\nAQ==\n", "-----END CERTIFICATE-----\n",
        "-----BEGIN CERTIFICATE-----\n-----BEGIN CERTIFICATE-----\nAQ==\n-----END CERTIFICATE-----\n",
        "-----BEGIN CERTIFICATE-----\nAQ=\n-----END CERTIFICATE-----\n",
        "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n",
        "-----BEGIN CERTIFICATE-----\nAQ==\n-----END PRIVATE KEY-----\n",
        "-----BEGIN PRIVATE KEY-----\nAQ==\n-----END PRIVATE KEY-----\n",
        "-----BEGIN CERTIFICATE-----\nProc-Type: 4,ENCRYPTED\n\nAQ==\n-----END CERTIFICATE-----\n",
    ])
    func `a block that does not end, is no base64 or is of another kind is refused`(text: String) {
        #expect(PEM.blocks(in: text, label: "CERTIFICATE") == nil)
    }

    @Test func `blocks of several kinds keep their labels`() throws {
        let text = PEM.encode([1], label: "CERTIFICATE") + PEM.encode([2], label: "PRIVATE KEY")
        let blocks = try #require(PEM.blocks(in: text))
        #expect(blocks.map(\.label) == ["CERTIFICATE", "PRIVATE KEY"])
        #expect(blocks.map(\.der) == [[1], [2]])
        #expect(PEM.blocks(in: text, label: "CERTIFICATE") == nil)
    }

    @Test func `a text beyond the limit is refused`() {
        let block = PEM.encode([1], label: "CERTIFICATE")
        let filler = String(repeating: "x", count: PEM.maximumLength - block.utf8.count - 1)
        #expect(PEM.blocks(in: filler + "\n" + block, label: "CERTIFICATE") == [[1]])
        #expect(PEM.blocks(in: filler + "x\n" + block, label: "CERTIFICATE") == nil)
    }
}

@Suite struct DERWriterTests {
    @Test func `integers have the fewest octets that keep their sign`() {
        let expected: [(Int64, [UInt8])] = [
            (0, [0]), (1, [1]), (127, [0x7F]), (128, [0, 0x80]), (255, [0, 0xFF]), (256, [1, 0]), (-1, [0xFF]),
            (-128, [0x80]), (-129, [0xFF, 0x7F]), (.max, [0x7F] + [UInt8](repeating: 0xFF, count: 7)),
            (.min, [0x80] + [UInt8](repeating: 0, count: 7)),
        ]
        for (value, octets) in expected {
            #expect(DERWriter.integer(value) == [0x02, UInt8(octets.count)] + octets)
        }
        #expect(DERWriter.integer(magnitude: []) == [0x02, 1, 0])
        #expect(DERWriter.integer(magnitude: [0, 0, 0x7F]) == [0x02, 1, 0x7F])
        #expect(DERWriter.integer(magnitude: [0x80]) == [0x02, 2, 0, 0x80])
    }

    @Test func `lengths take the short form up to 127`() {
        #expect(DERWriter.octetString([UInt8](repeating: 0, count: 127)).prefix(2) == [0x04, 0x7F])
        #expect(DERWriter.octetString([UInt8](repeating: 0, count: 128)).prefix(3) == [0x04, 0x81, 0x80])
        #expect(DERWriter.octetString([UInt8](repeating: 0, count: 256)).prefix(4) == [0x04, 0x82, 0x01, 0x00])
    }

    @Test func `object identifiers and high tags are written in base 128`() {
        #expect(
            DERWriter.objectIdentifier([1, 3, 6, 1, 4, 1, 11129, 2, 1, 17])
                == [0x06, 0x0A, 0x2B, 0x06, 0x01, 0x04, 0x01, 0xD6, 0x79, 0x02, 0x01, 0x11])
        #expect(DERWriter.explicit(30, []) == [0xBE, 0])
        #expect(DERWriter.explicit(31, []) == [0xBF, 0x1F, 0])
        #expect(DERWriter.explicit(704, []) == [0xBF, 0x85, 0x40, 0])
    }

    @Test func `a SET OF is sorted by its encodings`() {
        let elements = [DERWriter.integer(3), DERWriter.integer(1), DERWriter.integer(300)]
        #expect(DERWriter.set(of: elements) == [0x31, 10, 2, 1, 1, 2, 1, 3, 2, 2, 1, 0x2C])
        #expect(DERWriter.set(of: elements, isSorted: false) == [0x31, 10, 2, 2, 1, 0x2C, 2, 1, 3, 2, 1, 1])
    }

    @Test func `times are UTCTime in the years 1950 to 2049 alone`() {
        func text(_ iso: String) -> String? {
            CivilTime(iso8601: iso).map {
                let der = DERWriter.time(secondsSince1970: $0.secondsSince1970)
                return "\(der[0]) " + String(decoding: der.dropFirst(2), as: UTF8.self)
            }
        }
        #expect(text("1949-12-31T23:59:59Z") == "24 19491231235959Z")
        #expect(text("1950-01-01T00:00:00Z") == "23 500101000000Z")
        #expect(text("2049-12-31T23:59:59Z") == "23 491231235959Z")
        #expect(text("2050-01-01T00:00:00Z") == "24 20500101000000Z")
    }
}

@Suite struct OnceValueTests {
    @Test func `of many values at once the caller gets one`() async {
        for _ in 0..<50 {
            let given = Locked<[Int]>([])
            let once = OnceValue<Int>()
            await withTaskGroup { group in
                for number in 0..<8 {
                    group.addTask { if once.give(number) { given.withLock { $0.append(number) } } }
                }
            }
            #expect(given.withLock { $0 } == [await once.value])
        }
    }

    @Test func `a value that is given before it is awaited is kept`() async {
        let once = OnceValue<Int>()
        #expect(!once.isGiven)
        #expect(once.give(1))
        #expect(once.isGiven)
        #expect(!once.give(2))
        #expect(await once.value == 1)
        #expect(once.isGiven)
        #expect(!once.give(3))
    }

    @Test func `a value that is awaited before it is given arrives`() async {
        let once = OnceValue<Int>()
        async let value = once.value
        for _ in 0..<100 { await Task.yield() }
        #expect(!once.isGiven)
        #expect(once.give(1))
        #expect(await value == 1)
        #expect(once.isGiven)
        #expect(!once.give(2))
    }
}

@Suite struct LoopbackTests {
    @Test(
        "localhost, 127.0.0.0/8 and ::1 are this machine",
        arguments: ["localhost", "LOCALHOST", "127.0.0.1", "127.255.0.255", "::1", "[::1]"])
    func isLoopback(host: String) { #expect(Loopback.contains(host: host)) }

    @Test(
        "no other host and no other spelling is this machine",
        arguments: [
            "", "localhost.", "localhost.example.com", "127.1", "127.0.0.01", "127.0.0.256", "127.0.0.1.", "127.0.0.+1",
            "127.0.0.1.example.com", "128.0.0.1", "0.0.0.0", "::", "[::1", "::1]", "::2", "0:0:0:0:0:0:0:1",
            "::ffff:127.0.0.1", "2130706433", "example.com",
        ])
    func isElsewhere(host: String) { #expect(!Loopback.contains(host: host)) }

    @Test func `addresses are judged by their bytes`() {
        let sixteen = { (last: UInt8) in [UInt8](repeating: 0, count: 15) + [last] }
        #expect(Loopback.contains(address: [127, 0, 0, 1]))
        #expect(Loopback.contains(address: [127, 9, 8, 7]))
        #expect(!Loopback.contains(address: [10, 0, 0, 127]))
        #expect(Loopback.contains(address: sixteen(1)))
        #expect(!Loopback.contains(address: sixteen(2)))
        #expect(!Loopback.contains(address: [127] + sixteen(1).dropFirst()))
        #expect(!Loopback.contains(address: []))
    }

    @Test(
        "a secret may be sent over https, and over http to this machine",
        arguments: [
            "https://example.com", "HTTPS://example.com/path?query", "http://localhost:8080/x", "http://127.0.0.9",
            "http://[::1]:80/",
        ])
    func isSecure(url: String) { #expect(SecureURL.isSecure(url)) }

    @Test(
        "a secret is sent nowhere else",
        arguments: [
            "", "example.com", "http://example.com", "http://127.0.0.1:80@example.com", "https://user@example.com",
            "https://user:word@example.com", "http://user@localhost", "ftp://localhost", "https://",
            "file:///etc/passwd",
        ])
    func isNotSecure(url: String) { #expect(!SecureURL.isSecure(url)) }
}

@Suite struct LockedTests {
    @Test func `no change from another thread is lost`() async {
        let count = Locked(0)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 { group.addTask { for _ in 0..<1000 { count.withLock { $0 += 1 } } } }
        }
        #expect(count.withLock { $0 } == 8000)
    }
}

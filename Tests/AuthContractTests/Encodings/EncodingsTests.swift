import Foundation
import Testing

@testable import AuthContract

@Suite struct Base64Texts {
    /// RFC 4648 section 10.
    @Test(arguments: [
        ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
        ("foobar", "Zm9vYmFy"),
    ])
    func `the texts are those of RFC 4648`(_ plain: String, _ text: String) {
        #expect(Base64.standard.encode(Array(plain.utf8)) == text)
        #expect(Base64.standard.decode(text) == Array(plain.utf8))
        let unpadded = text.replacingOccurrences(of: "=", with: "")
        #expect(Base64.url.encode(Array(plain.utf8)) == unpadded)
        #expect(Base64.url.decode(unpadded) == Array(plain.utf8))
    }

    @Test func `the two alphabets differ in two characters`() {
        #expect(Base64.standard.encode([0xFB, 0xEF, 0xFF]) == "++//")
        #expect(Base64.url.encode([0xFB, 0xEF, 0xFF]) == "--__")
        #expect(Base64.standard.decode("--__") == nil)
        #expect(Base64.url.decode("++//") == nil)
    }

    @Test(arguments: [
        "Zg", "Zg=", "Zg===", "=", "==", "====", "A===", "=Zg=", "Z=g=", "Zg==Zg==", "Zg==\n", " Zg==", "Z g==",
        "Zm9v\r\n", "Zm9vY", "Zh==", "Zm9=", "Zm8=\u{0}", "Zm9é", "Ｚg==", "Zm9v====", "Z===",
    ])
    func `malformed padded base64 is refused`(_ text: String) {
        #expect(Base64.standard.decode(text) == nil)
    }

    @Test(arguments: ["Zg==", "Z", "Zm9vY", "Zh", "Zm9", "Zm 8", "Zm8="]) func `malformed base64url is refused`(
        _ text: String
    ) {
        #expect(Base64.url.decode(text) == nil)
    }

    @Test func `base64 agrees with Foundation`() {
        var random = SeededNumbers(seed: 2)
        for _ in 0..<500 {
            let bytes = random.bytes(in: 0...100)
            let text = Base64.standard.encode(bytes)
            #expect(text == Data(bytes).base64EncodedString())
            #expect(Base64.standard.decode(text) == bytes)
            #expect(Base64.url.decode(Base64.url.encode(bytes)) == bytes)
        }
    }

    @Test func `only characters of the alphabet are read`() {
        let text = Array("AAAABBBBCCA=".utf8)
        for position in 0..<10 {
            for character in UInt8.min ... .max {
                var changed = text
                changed[position] = character
                let isOne = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8.contains(character)
                let given = String(decoding: changed, as: UTF8.self)
                #expect((Base64.standard.decode(given) != nil) == isOne, "\(given)")
            }
        }
    }

    /// If a text decodes, encoding the bytes gives the same text.
    @Test func `each byte string has one text`() {
        var random = SeededNumbers(seed: 3)
        let alphabet = Array("AQgw/+-_=Zz \n".utf8)
        var decoded = 0
        for _ in 0..<20_000 {
            let text = String(
                decoding: (0..<Int.random(in: 0...8, using: &random)).compactMap { _ in
                    alphabet.randomElement(using: &random)
                }, as: UTF8.self)
            for base64 in [Base64.standard, .url] {
                guard let bytes = base64.decode(text) else { continue }
                decoded += 1
                #expect(base64.encode(bytes) == text)
            }
        }
        #expect(decoded > 100)
    }
}

@Suite struct HexadecimalTexts {
    @Test func `hexadecimal digits are lower case`() {
        #expect(Hexadecimal.encode([0x00, 0x0F, 0xA0, 0xFF]) == "000fa0ff")
        #expect(Hexadecimal.encode([]).isEmpty)
    }
}

@Suite struct ConstantTimeComparison {
    @Test func `constant-time equality is equality of bytes`() {
        #expect(constantTimeEquals([], []))
        #expect(constantTimeEquals([1, 2, 3], [1, 2, 3]))
        #expect(!constantTimeEquals([1, 2, 3], [1, 2]))
        #expect(!constantTimeEquals([1, 2], [1, 2, 3]))
        for bit in 0..<8 {
            #expect(!constantTimeEquals([0, 1 << bit], [0, 0]))
            #expect(!constantTimeEquals([1 << bit, 0], [0, 0]))
        }
        // Two equal differences must not cancel each other.
        #expect(!constantTimeEquals([1, 1], [0, 0]))
    }
}

@Suite struct SystemRandomness {
    @Test(arguments: [0, 1, 7, 8, 9, 16, 32, 256, 257, 1000])
    func `random bytes have the requested length`(count: Int) {
        #expect(SystemRandom().bytes(count).count == count)
    }

    @Test func `every random byte takes every value`() {
        var seen = [Set<UInt8>](repeating: [], count: 17)
        for _ in 0..<4000 {
            for (place, byte) in SystemRandom().bytes(17).enumerated() { seen[place].insert(byte) }
        }
        #expect(seen.allSatisfy { $0.count == 256 })
    }

    @Test func `random bytes differ each time`() {
        #expect(SystemRandom().bytes(32) != SystemRandom().bytes(32))
    }
}

@Suite struct ISO8601Times {
    @Test(arguments: [
        (0, "1970-01-01T00:00:00Z"), (-1, "1969-12-31T23:59:59Z"), (951_782_400, "2000-02-29T00:00:00Z"),
        (1_709_312_345, "2024-03-01T16:59:05Z"), (4_107_542_399, "2100-02-28T23:59:59Z"),
        (4_107_542_400, "2100-03-01T00:00:00Z"), (253_402_300_799, "9999-12-31T23:59:59Z"),
        (-62_167_219_200, "0000-01-01T00:00:00Z"),
    ])
    func `a time is written in UTC and read back`(_ seconds: Int64, _ text: String) throws {
        #expect(UnixTime(seconds).iso8601 == text)
        #expect(try UnixTime(iso8601: text) == UnixTime(seconds))
    }

    // The example of RFC 9110 section 5.6.7, and times on each weekday.
    @Test(arguments: [
        (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"), (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
        (-1, "Wed, 31 Dec 1969 23:59:59 GMT"), (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
        (1_709_312_345, "Fri, 01 Mar 2024 16:59:05 GMT"), (253_402_300_799, "Fri, 31 Dec 9999 23:59:59 GMT"),
        (-62_167_219_200, "Sat, 01 Jan 0000 00:00:00 GMT"), (1_690_156_800, "Mon, 24 Jul 2023 00:00:00 GMT"),
    ])
    func `a time is written as an HTTP date`(_ seconds: Int64, _ text: String) {
        #expect(UnixTime(seconds).httpDate == text)
    }

    @Test func `years beyond four digits are clamped`() {
        #expect(UnixTime(.max).iso8601 == "9999-12-31T23:59:59Z")
        #expect(UnixTime(.min).iso8601 == "0000-01-01T00:00:00Z")
    }

    @Test(arguments: [
        "", "1970-01-01", "1970-01-01T00:00:00", "1970-01-01T00:00:00z", "1970-01-01t00:00:00Z",
        "1970-01-01 00:00:00Z", "1970-01-01T00:00:00.0Z", "1970-01-01T00:00:00+00:00", "1970-1-01T00:00:000Z",
        "1970-00-01T00:00:00Z", "1970-13-01T00:00:00Z", "1970-01-00T00:00:00Z", "1970-01-32T00:00:00Z",
        "2023-02-29T00:00:00Z", "2100-02-29T00:00:00Z", "2024-04-31T00:00:00Z", "1970-01-01T24:00:00Z",
        "1970-01-01T00:60:00Z", "1970-01-01T00:00:60Z", "+970-01-01T00:00:00Z", "-970-01-01T00:00:00Z",
        "1970-01-01T00:00:0éZ", "19700101T000000Z    ", "1970-01-01T00:00:00Z\n",
    ])
    func `a malformed time is refused`(_ text: String) {
        #expect(throws: ContractError.self) { try UnixTime(iso8601: text) }
    }

    /// Compares times from 1600 on, where Foundation's calendar is Gregorian too.
    @Test func `times agree with Foundation`() throws {
        let formatter = ISO8601DateFormatter()
        var random = SeededNumbers(seed: 4)
        for _ in 0..<500 {
            let seconds = Int64.random(in: -11_676_096_000...253_402_300_799, using: &random)
            let text = formatter.string(from: Date(timeIntervalSince1970: TimeInterval(seconds)))
            #expect(UnixTime(seconds).iso8601 == text)
            #expect(try UnixTime(iso8601: text).seconds == seconds)
        }
    }

    @Test func `a written time is read as the same`() throws {
        var random = SeededNumbers(seed: 5)
        for _ in 0..<2000 {
            let time = UnixTime(Int64.random(in: -62_167_219_200...253_402_300_799, using: &random))
            #expect(try UnixTime(iso8601: time.iso8601) == time)
        }
    }
}

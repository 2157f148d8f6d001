import Testing

@testable import AuthContract

@Suite("Classes of ASCII characters") struct ASCIITests {
    @Test("every byte is in its classes, and bytes beyond ASCII are in none")
    func classes() {
        let (digits, lower, upper) = ("0123456789", "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
        for byte in UInt8.min...UInt8.max {
            #expect(byte.isDigit == digits.utf8.contains(byte))
            #expect(byte.isLowerCase == lower.utf8.contains(byte))
            #expect(byte.isUpperCase == upper.utf8.contains(byte))
            #expect(byte.isLetter == (lower + upper).utf8.contains(byte))
            #expect(byte.isTokenCharacter == (digits + lower + upper + "!#$%&'*+-.^_`|~").utf8.contains(byte))
            #expect(byte.isVisible == (byte > 0x20 && byte < 0x7F))
            #expect(byte.lowerCased == (upper.utf8.contains(byte) ? byte + 0x20 : byte))
            #expect(byte.upperCased == (lower.utf8.contains(byte) ? byte - 0x20 : byte))
        }
    }

    @Test("a token has 1 to 32 characters")
    func tokens() {
        for (count, isToken) in [(0, false), (1, true), (32, true), (33, false)] {
            #expect(String(repeating: "a", count: count).isToken == isToken)
        }
        #expect(!"a b".isToken && !"é".isToken)
    }
}

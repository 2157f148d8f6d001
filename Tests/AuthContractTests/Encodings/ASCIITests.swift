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

    @Test("a token has a character or more, a method 32 at most")
    func tokens() {
        for (count, isToken, isMethod) in [(0, false, false), (1, true, true), (32, true, true), (33, true, false)] {
            let text = String(repeating: "a", count: count)
            #expect((text.isToken, text.isMethod) == (isToken, isMethod))
        }
        #expect(!"a b".isToken && !"é".isToken && !"a b".isMethod)
    }
}

import Testing

@_spi(Service) @testable import AuthContract

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

    @Test func `a token has one character or more`() {
        for (text, isToken) in [
            ("", false), ("a", true), ("a1!#$%&'*+-.^_`|~", true), ("a b", false), ("é", false),
            (String(repeating: "a", count: 33), true),
        ] {
            #expect(text.isToken == isToken, "\(text)")
        }
    }

    @Test func `a method has 1 to 32 letters or hyphens`() {
        for (text, isMethod) in [
            ("", false), ("a", true), ("POST", true), ("VERSION-CONTROL", true), ("-", true),
            (String(repeating: "a", count: 32), true), (String(repeating: "a", count: 33), false), ("a b", false),
            ("GET\n", false), ("GET1", false), ("a_b", false), ("a!", false), ("a.b", false), ("é", false),
        ] {
            #expect(text.isMethod == isMethod, "\(text)")
        }
    }
}

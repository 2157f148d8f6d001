/// ASCII character classes for parsers of bytes.
extension UInt8 {
    var isDigit: Bool { UInt8(ascii: "0")...UInt8(ascii: "9") ~= self }
    var isLowerCase: Bool { UInt8(ascii: "a")...UInt8(ascii: "z") ~= self }
    var isUpperCase: Bool { UInt8(ascii: "A")...UInt8(ascii: "Z") ~= self }
    var isLetter: Bool { isLowerCase || isUpperCase }

    /// Whether the byte is a `tchar` of RFC 9110 section 5.6.2: a character of field names and tokens.
    var isTokenCharacter: Bool { isLetter || isDigit || "!#$%&'*+-.^_`|~".utf8.contains(self) }

    /// Whether the byte is printable and not a space.
    var isVisible: Bool { 0x21...0x7E ~= self }

    /// `A-Z` as `a-z`. Other bytes do not change.
    var lowerCased: UInt8 { isUpperCase ? self | 0x20 : self }

    /// `a-z` as `A-Z`. Other bytes do not change.
    var upperCased: UInt8 { isLowerCase ? self & ~0x20 : self }
}

extension String {
    /// Whether the text is a token (RFC 9110 section 5.6.2), such as the name of a header.
    package var isToken: Bool { !utf8.isEmpty && utf8.allSatisfy(\.isTokenCharacter) }

    /// Whether the text is a method that may be signed: 1 to 32 letters or `-`.
    @_spi(Service) public var isMethod: Bool {
        1...32 ~= utf8.count && utf8.allSatisfy { $0.isLetter || $0 == UInt8(ascii: "-") }
    }
}

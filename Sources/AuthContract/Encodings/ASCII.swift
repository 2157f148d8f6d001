/// Classes of ASCII characters, for parsers of bytes.
extension UInt8 {
    var isDigit: Bool { UInt8(ascii: "0")...UInt8(ascii: "9") ~= self }
    var isLowerCase: Bool { UInt8(ascii: "a")...UInt8(ascii: "z") ~= self }
    var isUpperCase: Bool { UInt8(ascii: "A")...UInt8(ascii: "Z") ~= self }
    var isLetter: Bool { isLowerCase || isUpperCase }

    /// `tchar` of RFC 9110 section 5.6.2: what methods, field names and tokens are made of.
    var isTokenCharacter: Bool { isLetter || isDigit || "!#$%&'*+-.^_`|~".utf8.contains(self) }

    /// Printable and not a space.
    var isVisible: Bool { 0x21...0x7E ~= self }

    /// `A-Z` as `a-z`; any other byte as it is.
    var lowerCased: UInt8 { isUpperCase ? self | 0x20 : self }

    /// `a-z` as `A-Z`; any other byte as it is.
    var upperCased: UInt8 { isLowerCase ? self & ~0x20 : self }
}

extension String {
    /// Whether the text is a token of RFC 9110 section 5.6.2, as a method is; 32 characters at most.
    var isToken: Bool { (1...32).contains(utf8.count) && utf8.allSatisfy(\.isTokenCharacter) }
}

/// Text from other people, made safe for a page: every character is visible.
enum VisibleText {
    /// The text with control characters, bidirectional controls and other invisible characters written as `\u{…}`.
    ///
    /// The template library escapes whole grapheme clusters, so it would not escape a quote followed by a combining mark. If a
    /// cluster has a character of HTML's syntax, its characters outside of ASCII are therefore written as `\u{…}`, too.
    ///
    /// - Parameter keepsLines: whether line feeds and tabs stay, for text that is shown with its line breaks.
    static func of(_ text: String, keepsLines: Bool = false) -> String {
        guard !isPlain(text) else { return text }
        var visible = ""
        for character in text {
            let scalars = character.unicodeScalars
            let isJoined = scalars.count > 1 && scalars.contains(where: isSyntax)
            for scalar in scalars {
                if keepsLines, scalar == "\n" || scalar == "\t" {
                    visible.unicodeScalars.append(scalar)
                } else if isHidden(scalar) || isJoined && !scalar.isASCII {
                    visible += "\\u{\(String(scalar.value, radix: 16))}"
                } else {
                    visible.unicodeScalars.append(scalar)
                }
            }
        }
        return visible
    }

    /// JSON text, or a draft of it, that a page can show and get back as the same JSON. If the text has an invisible character,
    /// all characters outside of printable ASCII become JSON escapes, except line feeds and tabs.
    static func ofJSON(_ text: String) -> String {
        guard of(text, keepsLines: true) != text else { return text }
        var escaped = ""
        for unit in text.utf16 {
            switch unit {
            case 0x0A, 0x09, 0x20...0x7E: escaped.unicodeScalars.append(Unicode.Scalar(UInt8(unit)))
            default:
                let digits = String(unit, radix: 16)
                escaped += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            }
        }
        return escaped
    }

    /// Whether the text is printable ASCII, as most texts are. Such a text needs no changes.
    private static func isPlain(_ text: String) -> Bool { text.utf8.allSatisfy { 0x20...0x7E ~= $0 } }

    private static func isSyntax(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case "<", ">", "&", "\"", "'": true
        default: false
        }
    }

    private static func isHidden(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: true
        case .spaceSeparator: scalar != " "
        default: scalar.properties.isDefaultIgnorableCodePoint
        }
    }
}

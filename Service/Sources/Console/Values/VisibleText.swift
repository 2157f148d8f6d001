/// Text of other people, as a page shows it: every character can be seen.
enum VisibleText {
    /// The text with control characters, bidirectional controls and other invisible characters written as `\u{…}`.
    ///
    /// A character of HTML's syntax is also kept from joining with its neighbours: the template library escapes whole grapheme
    /// clusters, so that a quote with a combining mark after it would not be escaped.
    ///
    /// - Parameter keepsLines: whether line feeds stay, for text that is shown with its lines.
    static func of(_ text: String, keepsLines: Bool = false) -> String {
        guard !isPlain(text) else { return text }
        var visible = ""
        for character in text {
            let scalars = character.unicodeScalars
            let isJoined = scalars.count > 1 && scalars.contains(where: isSyntax)
            for scalar in scalars {
                if keepsLines, scalar == "\n" {
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

    /// Most texts are printable ASCII.
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

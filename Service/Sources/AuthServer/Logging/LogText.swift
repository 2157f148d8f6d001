/// Makes external text safe for a log line: bounded, and without characters that control a terminal.
enum LogText {
    /// The maximum size of a `reason` or of a member's name, in bytes.
    static let reasonBytes = 512
    /// The maximum size of any other text, in bytes.
    static let textBytes = 2048

    /// The text with control and format characters escaped (`\u{1b}`). It is cut between characters, so that it has at most
    /// `limit` bytes of UTF-8.
    static func bounded(_ text: String, to limit: Int) -> String {
        // Check the bytes first: most text is printable ASCII, and Unicode scalars are slower to read.
        if text.utf8.count <= limit,
            text.utf8.withContiguousStorageIfAvailable({ $0.allSatisfy { 0x20..<0x7F ~= $0 } }) == true
        {
            return text
        }
        guard text.utf8.count > limit || text.unicodeScalars.contains(where: isControl) else { return text }
        var bounded = ""
        var room = limit
        for scalar in text.unicodeScalars {
            let written = isControl(scalar) ? "\\u{\(String(scalar.value, radix: 16))}" : String(scalar)
            room -= written.utf8.count
            guard room >= 0 else { break }
            bounded += written
        }
        return bounded
    }

    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        // The Unicode tables are slow, and most text is ASCII.
        if scalar.isASCII { return scalar.value < 0x20 || scalar.value == 0x7F }
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: return true
        default: return false
        }
    }
}

/// A table as CSV (RFC 4180).
enum CSV {
    static let contentType = "text/csv; charset=utf-8; header=present"

    /// The rows, each with its line end.
    static func bytes(_ rows: [[String]]) -> [UInt8] {
        var bytes: [UInt8] = []
        for row in rows {
            for (place, text) in row.enumerated() {
                if place > 0 { bytes.append(UInt8(ascii: ",")) }
                bytes.append(contentsOf: cell(text).utf8)
            }
            bytes.append(contentsOf: [0x0D, 0x0A])
        }
        return bytes
    }

    /// A cell, in quotes. Spreadsheets take text that begins with one of `=+-@` as a formula, and some of them split a cell at a
    /// semicolon, a tab or a line end. So each `=`, `+`, `-` or `@` at the start of the text or of one of these parts gets a `'`
    /// before it. Invisible characters are escaped, as on pages.
    static func cell(_ text: String) -> String {
        var safe = ""
        var isAtStart = true
        for scalar in text.unicodeScalars {
            if isAtStart, formulas.contains(scalar) { safe.unicodeScalars.append("'") }
            safe.unicodeScalars.append(scalar)
            isAtStart = ends.contains(scalar) || isAtStart && scalar.properties.isWhitespace
        }
        return "\"" + VisibleText.of(safe).replacing("\"", with: "\"\"") + "\""
    }

    private static let formulas = "=+-@＝＋－＠".unicodeScalars
    private static let ends = ";\t\r\n".unicodeScalars
}

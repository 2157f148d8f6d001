/// A table as text with commas (RFC 4180).
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

    /// A cell. Spreadsheets take text that begins with one of `=+-@`, a tab or a line end as a formula: a quote before it stops that.
    /// Invisible characters are written out, as on pages.
    static func cell(_ text: String) -> String {
        let isFormula = text.unicodeScalars.first.map { "=+-@\t\r\n＝＋－＠".unicodeScalars.contains($0) } ?? false
        let visible = (isFormula ? "'" : "") + VisibleText.of(text)
        let needsQuotes = visible.utf8.contains { [0x22, 0x2C, 0x0A, 0x0D].contains($0) }
        guard needsQuotes || visible.hasPrefix(" ") || visible.hasSuffix(" ") else { return visible }
        return "\"" + visible.replacing("\"", with: "\"\"") + "\""
    }
}

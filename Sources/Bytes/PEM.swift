/// PEM (RFC 7468): DER between `-----BEGIN LABEL-----` and `-----END LABEL-----` lines.
public enum PEM {
    /// Bytes beyond which a text is not read: 1 MiB.
    public static let maximumLength = 1024 * 1024

    /// The contents of the blocks with this label, in order; text between blocks is skipped, blank lines too.
    ///
    /// Nil where a block of any label does not end, is not base64, or is inside another, and where a text is longer than
    /// ``maximumLength``. Blocks with another label are refused too: a key among certificates is a mistake.
    public static func blocks(in text: String, label: String) -> [[UInt8]]? {
        guard text.utf8.count <= maximumLength else { return nil }
        var blocks: [[UInt8]] = []
        var base64: [UInt8]?
        for line in text.utf8.split(whereSeparator: { $0 == 0x0A || $0 == 0x0D }) {
            let line = trimmed(line)
            if line.elementsEqual("-----BEGIN \(label)-----".utf8) {
                guard base64 == nil else { return nil }
                base64 = []
            } else if line.elementsEqual("-----END \(label)-----".utf8) {
                guard let text = base64, !text.isEmpty, let block = Base64.standard.decode(bytes: text) else {
                    return nil
                }
                blocks.append(block)
                base64 = nil
            } else if line.starts(with: "-----".utf8) {
                return nil
            } else {
                base64?.append(contentsOf: line)
            }
        }
        return base64 == nil ? blocks : nil
    }

    /// One block, with lines of 64 characters and a line feed at the end.
    public static func encode(_ der: some Collection<UInt8>, label: String) -> String {
        var text = "-----BEGIN \(label)-----\n"
        var rest = Substring(Base64.standard.encode(der))
        while !rest.isEmpty {
            text += rest.prefix(64) + "\n"
            rest = rest.dropFirst(64)
        }
        return text + "-----END \(label)-----\n"
    }

    private static func trimmed(_ line: Substring.UTF8View) -> Substring.UTF8View {
        let isSpace: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 }
        var line = line.drop(while: isSpace)
        while let last = line.last, isSpace(last) { line.removeLast() }
        return line
    }
}

/// PEM (RFC 7468): DER between `-----BEGIN LABEL-----` and `-----END LABEL-----` lines.
public enum PEM {
    /// The largest text that is parsed by default, in bytes: 1 MiB.
    public static let maximumLength = 1024 * 1024

    /// One block of a text.
    public struct Block: Sendable, Hashable {
        /// The label, which names the type of the content, such as `CERTIFICATE`.
        public let label: String
        /// Its content.
        public let der: [UInt8]
    }

    /// The blocks of a text, in order. Text between blocks is skipped, and so are blank lines.
    ///
    /// - Returns: nil if a block does not end, is empty, is not base64 or is inside another one, if any other line begins with
    ///   `-----`, or if the text is longer than `maximumLength` bytes.
    public static func blocks(in text: String, maximumLength: Int = maximumLength) -> [Block]? {
        guard text.utf8.count <= maximumLength else { return nil }
        var blocks: [Block] = []
        var open: (label: String, base64: [UInt8])?
        for line in text.utf8.split(whereSeparator: { $0 == 0x0A || $0 == 0x0D }) {
            let line = trimmed(line)
            if let label = label(of: line, "-----BEGIN ") {
                guard open == nil else { return nil }
                open = (label, [])
            } else if let label = label(of: line, "-----END ") {
                guard let (begun, base64) = open, label == begun, !base64.isEmpty,
                    let der = Base64.standard.decode(bytes: base64)
                else { return nil }
                blocks.append(Block(label: label, der: der))
                open = nil
            } else if line.starts(with: "-----".utf8) {
                return nil
            } else {
                open?.base64.append(contentsOf: line)
            }
        }
        return open == nil ? blocks : nil
    }

    /// The contents of the blocks of a text that has only blocks with this label.
    ///
    /// - Returns: nil where ``blocks(in:maximumLength:)`` returns nil, and if a block has another label: a private key among
    ///   certificates is a mistake.
    public static func blocks(
        in text: String, label: String, maximumLength: Int = maximumLength
    ) -> [[UInt8]]? {
        guard let blocks = blocks(in: text, maximumLength: maximumLength),
            blocks.allSatisfy({ $0.label == label })
        else { return nil }
        return blocks.map(\.der)
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

    /// The label in a line that begins a block or ends one; nil for any other line.
    private static func label(of line: Substring.UTF8View, _ start: String) -> String? {
        let end = "-----".utf8
        guard line.starts(with: start.utf8), line.count > start.utf8.count + end.count,
            line.suffix(end.count).elementsEqual(end)
        else { return nil }
        return String(decoding: line.dropFirst(start.utf8.count).dropLast(end.count), as: UTF8.self)
    }

    private static func trimmed(_ line: Substring.UTF8View) -> Substring.UTF8View {
        let isSpace: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 }
        var line = line.drop(while: isSpace)
        while let last = line.last, isSpace(last) { line.removeLast() }
        return line
    }
}

internal import Yams

/// A name that appears twice in one group of a configuration file: its path and both lines.
///
/// Yams refuses such a text. Its error has neither the path nor the second line, and it returns no tree in which to find them.
/// So each repeated name gets a unique prefix until the text can be parsed.
struct RepeatedName {
    let path: String
    let lines: [Int]

    private static let prefix = "synheart-auth-repeated-"
    /// The largest number of attempts. It is bounded because each attempt parses the whole text. If all fail, the error has the
    /// line but not the path.
    private static let maximumAttempts = 8

    /// The first repeated name that the parser finds; nil if too many names are repeated, or if the text cannot be parsed for
    /// another reason.
    static func find(in text: String) -> RepeatedName? {
        var text = text
        guard !text.contains(prefix) else { return nil }
        for attempt in 0..<maximumAttempts {
            do {
                let parser = try Parser(yaml: text)
                let node = try parser.singleRoot()
                // Keep the parser alive: it owns the anchors, and nodes hold them weakly.
                defer { withExtendedLifetime(parser) {} }
                return node.flatMap { find(prefix + "0-", in: $0, at: "", depth: 0) }
            } catch YamlError.duplicatedKeysInMapping(_, let context) {
                guard let marked = insert("\(prefix)\(attempt)-", at: context.mark, of: text) else { return nil }
                text = marked
            } catch {
                return nil
            }
        }
        return nil
    }

    func error(in file: String) -> ConfigurationError {
        let place = lines.count == 2 ? "lines \(lines[0]) and \(lines[1])" : "line \(lines.first ?? 0)"
        return ConfigurationError(KeyName.shown(path), "appears twice (\(place) of \(file))")
    }

    private static func find(_ marker: String, in node: Node, at path: String, depth: Int) -> RepeatedName? {
        guard depth < 8, node.anchor == nil else { return nil }
        for element in node.sequence.map(Array.init) ?? [] {
            if let found = find(marker, in: element, at: path, depth: depth + 1) { return found }
        }
        for (key, value) in node.mapping.map(Array.init) ?? [] {
            guard let text = key.scalar?.string else { continue }
            let name = text.hasPrefix(marker) ? String(text.dropFirst(marker.count)) : text
            let below = path.isEmpty ? name : "\(path).\(name)"
            if text.hasPrefix(marker) {
                let other = node.mapping?.first { $0.key.scalar?.string == name }?.key
                return RepeatedName(path: below, lines: [key.mark?.line, other?.mark?.line].compactMap(\.self))
            }
            if let found = find(marker, in: value, at: below, depth: depth + 1) { return found }
        }
        return nil
    }

    /// The text with a marker at the start of the name at this position. In a quoted name, the marker follows the opening
    /// quotation mark. Nil if the text ends before the position.
    private static func insert(_ marker: String, at mark: Mark, of text: String) -> String? {
        var (line, column) = (1, 1)
        let scalars = text.unicodeScalars
        var index = scalars.startIndex
        while index < scalars.endIndex, (line, column) != (mark.line, mark.column) {
            let isEnd = ["\n", "\u{85}", "\u{2028}", "\u{2029}"].contains(scalars[index])
            let next = scalars.index(after: index)
            let isLoneReturn = scalars[index] == "\r" && (next == scalars.endIndex || scalars[next] != "\n")
            (line, column) = isEnd || isLoneReturn ? (line + 1, 1) : (line, column + 1)
            index = next
        }
        guard index < scalars.endIndex else { return nil }
        if ["\"", "'"].contains(scalars[index]) { index = scalars.index(after: index) }
        var marked = text
        marked.unicodeScalars.insert(contentsOf: marker.unicodeScalars, at: index)
        return marked
    }
}

extension JSONValue {
    /// How a text is laid out.
    public enum Layout: Sendable {
        /// One line without spaces.
        case compact
        /// Two spaces a level, for people.
        case pretty
    }

    /// The JSON text of this value.
    public func text(_ layout: Layout = .compact) -> String {
        var text = ""
        write(to: &text, layout: layout, indent: "\n")
        return text
    }

    /// The JSON text as UTF-8.
    public var bytes: [UInt8] { Array(text().utf8) }

    private func write(to text: inout String, layout: Layout, indent: String) {
        switch self {
        case .null: text += "null"
        case .bool(let value): text += value ? "true" : "false"
        case .number(let value): text += value.digits
        case .string(let value): Self.write(value, to: &text)
        case .array(let elements):
            Self.write(elements, between: ("[", "]"), to: &text, layout: layout, indent: indent) {
                element, text, inner in
                element.write(to: &text, layout: layout, indent: inner)
            }
        case .object(let object):
            Self.write(object.members, between: ("{", "}"), to: &text, layout: layout, indent: indent) {
                member, text, inner in
                Self.write(member.name, to: &text)
                text += layout == .pretty ? ": " : ":"
                member.value.write(to: &text, layout: layout, indent: inner)
            }
        }
    }

    private static func write<Element>(
        _ elements: [Element], between brackets: (String, String), to text: inout String, layout: Layout,
        indent: String, each: (Element, inout String, String) -> Void
    ) {
        let inner = indent + "  "
        text += brackets.0
        for (index, element) in elements.enumerated() {
            if index > 0 { text += "," }
            if layout == .pretty { text += inner }
            each(element, &text, inner)
        }
        if layout == .pretty, !elements.isEmpty { text += indent }
        text += brackets.1
    }

    private static func write(_ string: String, to text: inout String) {
        text += "\""
        for scalar in string.unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\n": text += "\\n"
            case "\r": text += "\\r"
            case "\t": text += "\\t"
            // Those beyond ASCII end a line for readers that split text by Unicode's rules: output has one line a value.
            case "\u{0}"..<"\u{20}", "\u{7F}"..."\u{9F}", "\u{2028}", "\u{2029}":
                let digits = String(scalar.value, radix: 16)
                text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: text.unicodeScalars.append(scalar)
            }
        }
        text += "\""
    }
}

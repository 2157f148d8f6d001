package import StrictJSON
package import Verification

/// The contents of an object for people, as JSON or as an indented tree.
package enum ObjectTree {
    /// The contents of an object and its format; nil if no format can read it.
    package static func inspect(_ object: [UInt8]) -> (format: EvidenceFormat, value: JSONValue)? {
        for format in EvidenceFormat.allCases {
            if let value = format.inspect(object) { return (format, value) }
        }
        return nil
    }

    /// The contents as text: one line for each part, indented by two spaces for each level.
    package static func render(_ value: JSONValue) -> String {
        var text = ""
        render(value, indent: "", to: &text)
        return text
    }

    private static func render(_ value: JSONValue, indent: String, to text: inout String) {
        switch value {
        case .object(let object):
            for member in object.members { render(name(member.name) + ":", member.value, indent: indent, to: &text) }
        case .array(let elements):
            for element in elements { render("-", element, indent: indent, to: &text) }
        default: text += indent + scalar(value) + "\n"
        }
    }

    private static func render(_ label: String, _ value: JSONValue, indent: String, to text: inout String) {
        switch value {
        case .object(let object) where object.members.isEmpty: text += "\(indent)\(label) {}\n"
        case .array(let elements) where elements.isEmpty: text += "\(indent)\(label) []\n"
        case .object, .array:
            text += "\(indent)\(label)\n"
            render(value, indent: indent + "  ", to: &text)
        default: text += "\(indent)\(label) \(scalar(value))\n"
        }
    }

    /// The name of a member. A name can come from the untrusted object, so it is quoted unless it looks like a name of this tool.
    private static func name(_ name: String) -> String {
        let isPlain = name.unicodeScalars.allSatisfy { scalar in
            scalar.isASCII
                && (scalar.properties.isAlphabetic || scalar.properties.numericType != nil
                    || "_ -.[]()".unicodeScalars.contains(scalar))
        }
        return isPlain && !name.isEmpty && !name.hasPrefix("-") ? name : "\"\(printable(name))\""
    }

    private static func scalar(_ value: JSONValue) -> String { value.string.map(printable) ?? value.text() }

    // Text from an object is untrusted. Everything but printable ASCII is escaped, because terminals interpret it.
    private static func printable(_ text: String) -> String {
        text.unicodeScalars.reduce(into: "") { text, scalar in
            text += (0x20...0x7E).contains(scalar.value) ? String(scalar) : "\\u{\(String(scalar.value, radix: 16))}"
        }
    }
}

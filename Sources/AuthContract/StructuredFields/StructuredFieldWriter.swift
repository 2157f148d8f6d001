/// The canonical text of each value (RFC 9651 section 4.1). Signatures cover it.
extension StructuredField.Dictionary {
    var text: String {
        entries.map { entry in
            switch entry.member {
            // True is written as only the key.
            case .item(let item) where item.value == .boolean(true):
                entry.key + StructuredField.text(item.parameters)
            case .item(let item): "\(entry.key)=\(item.text)"
            case .innerList(let list): "\(entry.key)=\(list.text)"
            }
        }.joined(separator: ", ")
    }
}

extension StructuredField.InnerList {
    var text: String {
        "(" + items.map(\.text).joined(separator: " ") + ")" + StructuredField.text(parameters)
    }
}

extension StructuredField.Item {
    var text: String { value.text + StructuredField.text(parameters) }
}

extension StructuredField {
    fileprivate static func text(_ parameters: [Parameter]) -> String {
        parameters.map { parameter in
            parameter.value == .boolean(true) ? ";\(parameter.key)" : ";\(parameter.key)=\(parameter.value.text)"
        }.joined()
    }
}

extension StructuredField.BareItem {
    var text: String {
        switch self {
        case .integer(let value): String(value)
        case .decimal(let thousandths): Self.decimalText(thousandths)
        case .string(let value): Self.quoted(value)
        case .token(let value): value
        case .bytes(let value): ":\(Base64.standard.encode(value)):"
        case .boolean(let value): value ? "?1" : "?0"
        case .date(let value): "@\(value)"
        }
    }

    private static func decimalText(_ thousandths: Int64) -> String {
        let (whole, rest) = thousandths.magnitude.quotientAndRemainder(dividingBy: 1000)
        // At least one digit after the point, but no further trailing zeros.
        var fraction = String(String(1000 + rest).dropFirst())
        while fraction.count > 1, fraction.hasSuffix("0") { fraction.removeLast() }
        return "\(thousandths < 0 ? "-" : "")\(whole).\(fraction)"
    }

    private static func quoted(_ text: String) -> String {
        var quoted: [UInt8] = [UInt8(ascii: "\"")]
        for byte in text.utf8 {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { quoted.append(UInt8(ascii: "\\")) }
            quoted.append(byte)
        }
        return String(decoding: quoted + [UInt8(ascii: "\"")], as: UTF8.self)
    }
}

/// The fields that a browser sends for a form of a page, in order.
struct FormFields {
    private(set) var all: [(String, String)] = []

    /// - Parameters:
    ///   - page: the page.
    ///   - marker: an attribute of the form. The default is an attribute of each form with a draft.
    init(_ page: String, with marker: String = "autocomplete=\"off\"") {
        guard let rest = page.components(after: marker) else { return }
        let text = rest.firstRange(of: "</form>").map { rest[..<$0.lowerBound] } ?? rest
        for tag in text.matches(of: /<(input|select|textarea)( [^>]*)>/) {
            let (kind, attributes) = (tag.1, tag.2)
            guard let name = Self.attribute("name", attributes) else { continue }
            let below = text[tag.range.upperBound...]
            let content = below.firstRange(of: "</\(kind)>").map { below[..<$0.lowerBound] } ?? below
            switch kind {
            case "select":
                let chosen = content.matches(of: /<option( [^>]*)>/).first { $0.1.contains(" selected") }
                let first = content.firstMatch(of: /<option( [^>]*)>/)
                all.append((name, (chosen ?? first).flatMap { Self.attribute("value", $0.1) } ?? ""))
            case "textarea":
                // A browser leaves out the line feed after the tag.
                all.append((name, Self.decoded(content.hasPrefix("\n") ? content.dropFirst() : content)))
            default:
                let isBox = attributes.contains("type=\"checkbox\"") || attributes.contains("type=\"radio\"")
                if isBox, !attributes.contains(" checked") { continue }
                all.append((name, Self.attribute("value", attributes) ?? ""))
            }
        }
    }

    /// The value of the field with this name; nil if there is no such field, or more than one.
    subscript(_ name: String) -> String? {
        get {
            let values = all.filter { $0.0 == name }
            return values.count == 1 ? values[0].1 : nil
        }
        set {
            let place = all.firstIndex { $0.0 == name }
            if let place { all.remove(at: place) }
            if let newValue { all.insert((name, newValue), at: place ?? all.endIndex) }
        }
    }

    private static func attribute(_ name: String, _ attributes: Substring) -> String? {
        attributes.firstRange(of: " \(name)=\"").map { found in
            decoded(attributes[found.upperBound...].prefix { $0 != "\"" })
        }
    }

    private static func decoded(_ text: Substring) -> String {
        String(text).replacing("&quot;", with: "\"").replacing("&#39;", with: "'").replacing("&lt;", with: "<")
            .replacing("&gt;", with: ">").replacing("&amp;", with: "&")
    }
}

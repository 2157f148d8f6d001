/// The tags of a page as a browser reads them: names, and the names of their attributes.
enum Markup {
    /// A text such as `a href` for each start tag, in order.
    static func tags(_ html: String) -> [String] {
        var tags: [String] = []
        var rest = Array(html.unicodeScalars)[...]
        while let scalar = rest.popFirst() {
            guard scalar == "<", let next = rest.first, next.properties.isAlphabetic, next.isASCII else { continue }
            tags.append(tag(&rest))
        }
        return tags
    }

    private static func tag(_ rest: inout ArraySlice<Unicode.Scalar>) -> String {
        var names = [
            String(
                String.UnicodeScalarView(rest.prefix { $0.properties.isAlphabetic || $0.properties.numericType != nil })
            )
        ]
        rest = rest.drop { $0.properties.isAlphabetic || $0.properties.numericType != nil }
        while let scalar = rest.first, scalar != ">" {
            if scalar.properties.isWhitespace || scalar == "/" {
                rest.removeFirst()
                continue
            }
            let name = rest.prefix { $0 != "=" && $0 != ">" && $0 != "/" && !$0.properties.isWhitespace }
            names.append(String(String.UnicodeScalarView(name)))
            rest = rest.dropFirst(max(1, name.count))
            guard rest.first == "=" else { continue }
            rest.removeFirst()
            if let quote = rest.first, quote == "\"" || quote == "'" {
                rest = rest.dropFirst().drop { $0 != quote }.dropFirst()
            } else {
                rest = rest.drop { $0 != ">" && !$0.properties.isWhitespace }
            }
        }
        return names.joined(separator: " ")
    }
}

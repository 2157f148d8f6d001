internal import AuthContract
internal import Mustache
internal import StrictJSON

/// A value of a template. `rendered` makes invisible characters visible, so that no page has to do it. The template library
/// escapes text for HTML.
enum PageValue: Sendable, Hashable {
    /// No value: the template leaves out its section. If the name were absent instead, the library would search the outer values.
    case none
    case text(String)
    /// Text that is shown with its line breaks, such as a command.
    case lines(String)
    case flag(Bool)
    case list([PageValue])
    case object([String: PageValue])

    /// The value for the template library.
    var rendered: Any {
        switch self {
        case .none: Nothing()
        case .text(let text): VisibleText.of(text)
        case .lines(let text): VisibleText.of(text, keepsLines: true)
        case .flag(let flag): flag
        case .list(let values): values.map(\.rendered)
        case .object(let members): members.mapValues(\.rendered)
        }
    }

    private struct Nothing: MustacheCustomRenderable {
        var renderText: String { "" }
        var isNull: Bool { true }
    }

    /// A text; nil becomes `none`.
    static func optional(_ text: String?) -> PageValue { text.map { .text($0) } ?? .none }

    /// A number with commas between groups of three digits.
    static func number(_ number: Int64) -> PageValue { .text(number.grouped) }

    /// A value of an answer of the API, in readable form.
    init(_ json: JSONValue?) {
        switch json {
        case nil, .null: self = .none
        case .string(let text): self = .text(text)
        case .bool(let flag): self = .text(flag ? "yes" : "no")
        case let value?: self = .text(value.integer?.grouped ?? value.text())
        }
    }
}

extension PageValue: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral, ExpressibleByArrayLiteral,
    ExpressibleByDictionaryLiteral
{
    init(stringLiteral value: String) { self = .text(value) }
    init(booleanLiteral value: Bool) { self = .flag(value) }
    init(arrayLiteral elements: PageValue...) { self = .list(elements) }
    init(dictionaryLiteral elements: (String, PageValue)...) {
        self = .object(Dictionary(elements, uniquingKeysWith: { $1 }))
    }
}

extension Int64 {
    /// The number with commas between groups of three digits, such as `1,234,567`.
    var grouped: String {
        let digits = String(magnitude)
        var text = ""
        for (place, digit) in digits.enumerated() {
            if place > 0, (digits.count - place) % 3 == 0 { text.append(",") }
            text.append(digit)
        }
        return self < 0 ? "-" + text : text
    }
}

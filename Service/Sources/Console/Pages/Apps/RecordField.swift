internal import AuthService
internal import StrictJSON

/// One member of an app record as a field of a form. It converts the member's value to the text that a person edits, and back.
struct RecordField: Sendable {
    /// The text of a field.
    struct Entry: Sendable, Hashable {
        var text: String
        /// Whether the text is JSON, because the value has no other text, such as an object or a text with invisible characters.
        var isJSON = false
    }

    enum Kind: Sendable {
        case choice([JSONValue])
        case integer(ClosedRange<Int64>)
        case text
        /// Text of several lines.
        case longText
        /// A list of texts, one per line. `of` lists the allowed texts; if it is nil, any text is allowed. A block of PEM is one text.
        case lines(of: [String]?, count: ClosedRange<Int>)
        case json
    }

    /// The path within the record, such as `ios.app_ids`.
    let name: String
    let member: JSONMemberDescription
    let kind: Kind

    init(_ member: JSONMemberDescription, at path: [String]) {
        name = (path + [member.name]).joined(separator: ".")
        self.member = member
        let kind = Kind(member.type)
        // A list whose default is null is edited as JSON: in a field without lines, null and the empty list, which are different
        // policies, would look the same.
        if case .lines = kind, member.defaultValue == .null { self.kind = .json } else { self.kind = kind }
    }

    /// The value of an absent member.
    var standard: JSONValue { member.defaultValue ?? .null }

    /// The text of a value. Reading it gives exactly this value. A required member that is null has an empty text.
    func entry(of value: JSONValue) -> Entry {
        if value.isNull, member.isRequired { return Entry(text: "", isJSON: isAlwaysJSON) }
        if let text = plainText(value), isShown(text), self.value(of: Entry(text: text)) == value {
            return Entry(text: text)
        }
        return Entry(text: VisibleText.ofJSON(value.text(.pretty)), isJSON: true)
    }

    /// The text in a form that a page can show. A text with characters that a page cannot show becomes JSON.
    func shown(_ entry: Entry) -> Entry {
        if entry.isJSON { return Entry(text: VisibleText.ofJSON(entry.text), isJSON: true) }
        return isShown(entry.text) ? entry : self.entry(of: value(of: entry) ?? .string(entry.text))
    }

    /// The value of a text; nil if the text breaks the field's rule. An empty field has a value only if that value is the
    /// default. Otherwise it would be unclear whether a person who empties the field wants the default or an empty value.
    func value(of entry: Entry) -> JSONValue? {
        guard let value = entry.isJSON ? try? JSONValue(parsing: entry.text) : value(entry.text) else { return nil }
        return member.isRequired && value.isNull ? nil : value
    }

    /// The rule for the text, as a sentence for the page.
    func rule(isJSON: Bool) -> String {
        if isJSON { return Self.jsonRule + (member.isRequired ? "" : " null is the default, [] an empty list.") }
        switch kind {
        case .choice(let values): return "One of \(values.map(Self.text).joined(separator: ", "))."
        case .integer(let range):
            let end = range.upperBound < .max ? "to \(range.upperBound)" : "on"
            return "An integer from \(range.lowerBound) \(end)."
        case .text, .longText: return "A text is needed."
        case .lines(let words?, _): return "At least one line, each one of \(words.joined(separator: ", "))."
        case .lines(nil, _): return "At least one line is needed."
        case .json: return Self.jsonRule
        }
    }

    private static let jsonRule = "JSON is needed."

    /// The text of a choice.
    static func text(_ choice: JSONValue) -> String { choice.string ?? choice.text() }

    // MARK: Values

    /// Whether the field's text is JSON for every value.
    var isAlwaysJSON: Bool { if case .json = kind { true } else { false } }

    private func isShown(_ text: String) -> Bool {
        switch kind {
        case .longText, .lines: VisibleText.of(text, keepsLines: true) == text
        case .choice, .integer, .text, .json: VisibleText.of(text) == text
        }
    }

    private func plainText(_ value: JSONValue) -> String? {
        if isAlwaysJSON { return nil }
        guard case .lines = kind else { return value.isNull ? "" : Self.text(value) }
        let texts = value.elements.compactMap(\.string)
        return value.array?.count == texts.count ? texts.joined(separator: "\n") : nil
    }

    private func value(_ text: String) -> JSONValue? {
        switch kind {
        case .lines(let words, let count): list(text, of: words, count)
        case .json: nil
        case _ where text.isEmpty: standard.isNull ? .null : nil
        case .choice(let values): values.first { Self.text($0) == text }
        case .integer(let range): Self.integer(text, in: range)
        case .text, .longText: .string(text)
        }
    }

    private static func integer(_ text: String, in range: ClosedRange<Int64>) -> JSONValue? {
        guard let number = Int64(text), String(number) == text, range.contains(number) else { return nil }
        return .integer(number)
    }

    private func list(_ text: String, of words: [String]?, _ count: ClosedRange<Int>) -> JSONValue? {
        let texts = Self.lines(text)
        if texts.isEmpty, standard != [] { return nil }
        guard count.contains(texts.count), texts.allSatisfy({ words?.contains($0) ?? true }) else { return nil }
        return .array(texts.map { .string($0) })
    }

    /// The lines without the space around them, and without empty ones. The lines of a block of PEM are one text.
    private static func lines(_ text: String) -> [String] {
        var (texts, block): ([String], [String]) = ([], [])
        for line in text.split(separator: "\n") {
            let line = String(line.drop(while: isSpace).reversed().drop(while: isSpace).reversed())
            if !block.isEmpty || line.hasPrefix("-----BEGIN ") { block.append(line) }
            if block.isEmpty, !line.isEmpty { texts.append(line) }
            if !block.isEmpty, line.hasPrefix("-----END ") {
                texts.append(block.joined(separator: "\n"))
                block = []
            }
        }
        return block.isEmpty ? texts : texts + [block.joined(separator: "\n")]
    }

    private static func isSpace(_ character: Character) -> Bool { character == " " || character == "\t" }
}

extension RecordField.Kind {
    init(_ type: JSONType) {
        switch type {
        case .text: self = .text
        case .boolean: self = .choice([true, false])
        case .integer(let range): self = .integer(range)
        case .choice(let values):
            // If there are names, use only them: the numbers in the list are other forms of the same values.
            let names = values.filter { $0.string != nil }
            self = .choice(names.isEmpty ? values : names)
        case .array(let element, let count):
            switch Self(element) {
            case .text: self = .lines(of: nil, count: count)
            case .choice(let values) where values.allSatisfy({ $0.string != nil }):
                self = .lines(of: values.compactMap(\.string), count: count)
            default: self = .json
            }
        case .either(let types) where types.contains(.text): self = .longText
        case .named(_, let type): self = Self(type)
        case .object, .anyObject, .either: self = .json
        }
    }
}

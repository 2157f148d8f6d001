internal import AuthServer
internal import StrictJSON

/// A record that a person edits, with the record and the version that they began with.
struct RecordDraft: Sendable {
    /// The JSON as the person left it.
    var text: String
    /// The `ETag` of the record that they began with.
    var tag: String
    /// That record, as JSON text: only what is shown depends on it.
    var base: String

    /// The draft of a form. A form without a version has an empty one, which the admin API refuses. So has one whose version is `*`.
    init(_ form: PageFields) {
        text = Self.lines(form["record"])
        tag = form["tag"].flatMap { $0.hasPrefix("\"") ? $0 : nil } ?? ""
        base = Self.lines(form["base"])
    }

    /// Browsers send each line feed of a form as CR LF (HTML, "constructing the entry list").
    private static func lines(_ text: String?) -> String { (text ?? "").replacing("\r\n", with: "\n") }

    /// A draft that is the record of an answer.
    init(_ answer: AdminAnswer) {
        text = Self.text(answer.body)
        tag = answer.entityTag ?? ""
        base = text
    }

    /// The record; nil: the text is no JSON object, as `problem` says.
    func record() throws(Problem) -> JSONObject {
        let value: JSONValue
        do {
            value = try JSONValue(parsing: text)
        } catch {
            throw Problem(message: "This is not JSON: \(error).")
        }
        guard let record = value.object else { throw Problem(message: "A record is a JSON object.") }
        return record
    }

    /// Why a draft is no record.
    struct Problem: Error {
        let message: String
    }

    /// The base in the layout of a text area; empty: it is no JSON.
    var shownBase: String { (try? JSONValue(parsing: base)).map(Self.text) ?? "" }

    /// JSON for a text area, from which the same JSON comes back. A page writes characters that cannot be seen as text of its own. So a
    /// record that has some is written with JSON's escapes.
    static func text(_ json: JSONValue) -> String {
        let text = json.text(.pretty)
        guard VisibleText.of(text, keepsLines: true) != text else { return text }
        var escaped = ""
        for unit in text.utf16 {
            if unit < 0x80 {
                escaped.unicodeScalars.append(Unicode.Scalar(UInt8(unit)))
            } else {
                let digits = String(unit, radix: 16)
                escaped += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            }
        }
        return escaped
    }
}

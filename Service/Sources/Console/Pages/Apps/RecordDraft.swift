internal import AuthServer
internal import StrictJSON

/// A record that a person edits, with the version that they began with.
struct RecordDraft: Sendable {
    /// The JSON as the person left it.
    var text: String
    /// The `ETag` of the record that they began with.
    var tag: String
    /// The JSON of the record that they began with, secrets masked. It is only compared with other versions, and never becomes a
    /// record by itself: whoever sends another one misleads only their own page.
    var base: String

    /// The draft of a form. A form without a version has an empty one, which the admin API refuses. So has one whose version is `*`.
    init(_ form: PageFields) {
        text = VisibleText.ofJSON(form["record"] ?? "")
        tag = form["tag"].flatMap { $0.hasPrefix("\"") ? $0 : nil } ?? ""
        base = VisibleText.ofJSON(form["base"] ?? "")
    }

    /// A draft that is the record of an answer.
    init(_ answer: AdminAnswer) {
        text = Self.text(answer.body)
        tag = answer.entityTag ?? ""
        base = VisibleText.ofJSON(answer.body.text())
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

    /// The record that they began with; nil: the form has none.
    var baseRecord: JSONObject? { (try? JSONValue(parsing: base))?.object }

    /// Why a draft is no record.
    struct Problem: Error {
        let message: String
    }

    /// JSON for a text area.
    static func text(_ json: JSONValue) -> String { VisibleText.ofJSON(json.text(.pretty)) }
}

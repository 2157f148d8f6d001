internal import AuthServer
internal import StrictJSON

/// A record that a person edits, with the version from which they started.
struct RecordDraft: Sendable {
    /// The JSON as the person edited it.
    var text: String
    /// The `ETag` of the original record.
    var tag: String
    /// The JSON of the original record, with masked secrets. It is only compared with other versions and never stored, so a
    /// forged one only affects the sender's own page.
    var base: String

    /// The draft of a form. A form without a version, or with `*`, gets an empty version, which the admin API refuses.
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

    /// The record; throws `problem` if the text is not a JSON object.
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

    /// The original record; nil: the form has none.
    var baseRecord: JSONObject? { (try? JSONValue(parsing: base))?.object }

    /// Why a draft is no record.
    struct Problem: Error {
        let message: String
    }

    /// JSON for a text area.
    static func text(_ json: JSONValue) -> String { VisibleText.ofJSON(json.text(.pretty)) }
}

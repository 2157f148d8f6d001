internal import AuthServer
internal import StrictJSON

/// A record that a person edits, with the version from which they started.
struct RecordDraft: Sendable {
    /// The JSON that the person edited, or the JSON of the fields. Empty if fields break their rules.
    var text: String
    /// The fields as the person edited them; nil: the person edited JSON, or nothing yet.
    let fields: RecordForm?
    /// Whether the next page shows fields. Otherwise it shows JSON.
    var showsFields: Bool
    /// The `ETag` of the original record.
    var tag: String
    /// The JSON of the original record, with masked secrets. It is compared with other versions, and decides which defaults the
    /// fields write. It is never stored, so a forged one only affects the sender's own draft.
    var base: String

    /// The draft of a form, as JSON or as fields. A form without a version, or with `*`, gets an empty version, which the admin
    /// API refuses.
    ///
    /// - Throws: if the form has both JSON and fields, or if it does not have exactly one field for each member.
    init(_ form: PageFields) throws(PageRefusal) {
        text = VisibleText.ofJSON(form["record"] ?? "")
        tag = form["tag"].flatMap { $0.hasPrefix("\"") ? $0 : nil } ?? ""
        base = VisibleText.ofJSON(form["base"] ?? "")
        let isJSON = !form.values("record").isEmpty
        fields = isJSON ? nil : try RecordForm(form)
        guard !isJSON || !RecordForm.isOne(form) else { throw RecordForm.incomplete }
        let view = [form["edit"], form["view"]].lazy.compactMap(\.self).first { ["form", "json"].contains($0) }
        showsFields = view.map { $0 == "form" } ?? !isJSON
        // Fields that break their rules have no JSON: the page with the problems shows the fields.
        if let record = try? fields?.record(over: baseRecord) { text = Self.text(.object(record)) }
    }

    /// A draft that starts with the record in an answer of the admin API.
    init(_ answer: AdminResponse) {
        text = Self.text(answer.body)
        (fields, showsFields) = (nil, true)
        tag = answer.entityTag ?? ""
        base = VisibleText.ofJSON(answer.body.text())
    }

    /// The record; throws if the text is not a JSON object, or if fields break their rules.
    func record() throws(Problem) -> JSONObject {
        if let fields { return try fields.record(over: baseRecord) }
        let value: JSONValue
        do {
            value = try Self.parsed(text)
        } catch {
            throw Problem(problems: [RecordProblem(message: "This is not JSON: \(error).")])
        }
        guard let record = value.object else {
            throw Problem(problems: [RecordProblem(message: "A record is a JSON object.")])
        }
        return record
    }

    /// The original record; nil: the form has none.
    var baseRecord: JSONObject? { (try? Self.parsed(base))?.object }

    /// Parses JSON of up to the size of a form, because an app's record can be larger than other JSON.
    private static func parsed(_ text: String) throws(JSONError) -> JSONValue {
        try JSONValue(parsing: text, limits: JSONValue.Limits(bytes: PageRequest.maximumForm))
    }

    /// The reasons why a draft is not a valid record.
    struct Problem: Error {
        let problems: [RecordProblem]
    }

    /// JSON for a text area.
    static func text(_ json: JSONValue) -> String { VisibleText.ofJSON(json.text(.pretty)) }
}

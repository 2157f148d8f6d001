import AuthContract
import AuthServer
import AuthService
import Foundation
import StrictJSON
import TestHelpers
import Testing

@testable import Console

/// Converts app records to form fields, and form fields back to app records.
@Suite struct RecordFormTests {
    /// The fields that a browser sends for an unchanged form.
    private static func fields(_ form: RecordForm) -> PageFields {
        let members = RecordGroup.fields.map { field -> (String, String) in
            let entry = field.shown(form.entries[field.name] ?? RecordField.Entry(text: ""))
            let isJSON = entry.isJSON || field.isAlwaysJSON
            return ((isJSON ? RecordForm.json : RecordForm.plain)(field.name), entry.text)
        }
        return PageFields(members + form.present.sorted().map { (RecordForm.box($0), "yes") })
    }

    private static func afterForm(_ record: JSONObject) throws -> JSONObject {
        try RecordForm(fields(RecordForm(record, over: record))).record(over: record)
    }

    /// The record as the service writes it, with secrets.
    private static func written(_ json: JSONValue) throws -> JSONObject {
        try AppRecord(JSONFields(json)).json(secrets: .plain)
    }

    private static let small: JSONValue = [
        "app_id": "com.example.app", "build_channel": "dev", "ios": ["app_ids": ["TEAMID1234.com.example.app"]],
    ]

    @Test(arguments: ["ios", "android", "both", "full"])
    func `unchanged fields give the record that the service wrote`(platform: String) throws {
        var record = platform == "full" ? FullRecord.json("com.example.app") : Self.small
        if ["android", "both"].contains(platform) {
            let android = FullRecord.json("x")["android"]
            record = FullRecord.setting(record, ["android", "packages"], android?["packages"])
            record = FullRecord.setting(record, ["android", "certificate_digests"], android?["certificate_digests"])
        }
        if platform == "android" { record = FullRecord.setting(record, ["ios"], nil) }
        let written = try Self.written(record)
        #expect(try Self.afterForm(written) == written)
        // Without the original, the form leaves out members that have their defaults. The record means the same.
        let short = try RecordForm(Self.fields(RecordForm(written, over: nil))).record(over: nil)
        #expect(try AppRecord(JSONFields(.object(short))) == AppRecord(JSONFields(.object(written))))
        #expect(platform == "full" || short.members.count < written.members.count)
    }

    /// Tests each value of each policy in `docs/vectors/policies.json`.
    @Test func `unchanged fields give the record of each vector`() throws {
        let file = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../../docs/vectors/policies.json")
        let cases = try JSONValue(parsing: Array(Data(contentsOf: file)))["policies"]?.elements ?? []
        var count = 0
        for policy in cases {
            let path = try #require(policy["path"]?.string).split(separator: ".").map(String.init)
            var record = FullRecord.json("com.example.app")
            for (name, value) in policy["beside"]?.pairs ?? [] {
                record = FullRecord.setting(record, name.split(separator: ".").map(String.init)[...], value)
            }
            record = FullRecord.setting(record, path[...], policy["value"])
            // Some values contradict the rest of the full record.
            guard let written = try? Self.written(record) else { continue }
            count += 1
            #expect(try Self.afterForm(written) == written, "\(path) \(policy["value"]?.text() ?? "")")
        }
        #expect(count > 90)
    }

    /// Tests values that the service would never write, too.
    @Test func `unchanged fields give any value of any member`() throws {
        let record = try Self.written(FullRecord.json("com.example.app"))
        let values: [JSONValue] =
            [
                .null, true, 0, -1, .integer(Int64.max), "", " ", "a\nb", "a\r\nb", "a\u{A0}b", "a\u{202E}b", "\u{301}",
                "[]", "null", "7", [], [[]], [""], ["a", ""], [" a"], ["a\nb"], ["a\u{200B}"], [1], [1, "a"],
                [.null], ["-----BEGIN X-----\nAA==\n-----END X-----\n"],
                ["-----BEGIN X-----\nAA==\n-----END X-----", "b"],
                ["-----BEGIN X-----"], ["-----END X-----"], [:], ["a": 1], "(secret 0123456789abcdef)",
            ] + EscapingTests.attacks.flatMap { [.string($0), [.string($0), "b"]] as [JSONValue] }
        for (row, field) in RecordGroup.fields.enumerated() {
            let path = field.name.split(separator: ".").map(String.init)
            for (column, value) in values.enumerated() where isSampled(row + column) {
                let changed = try #require(FullRecord.setting(.object(record), path[...], value).object)
                if value.isNull {
                    // Null means the default.
                    let form = try RecordForm(changed, over: record)
                    let standard = form.entries[field.name]
                    #expect(standard == field.entry(of: field.standard), "\(field.name)")
                } else {
                    #expect(try Self.afterForm(changed) == changed, "\(field.name) \(value.text())")
                }
            }
        }
    }

    @Test func `each text of a field can be shown by a page`() throws {
        let record = try Self.written(FullRecord.json("com.example.app"))
        for field in RecordGroup.fields {
            for text in ["a\u{A0}b", "a\u{202E}b", "\u{0}", "\"\u{301}", "12\u{200B}", "a\u{2028}b"] {
                for isJSON in [false, true] {
                    let shown = field.shown(RecordField.Entry(text: text, isJSON: isJSON)).text
                    #expect(VisibleText.of(shown, keepsLines: true) == shown, "\(field.name)")
                }
            }
        }
        #expect(try RecordForm(record, over: nil).entries.count == RecordGroup.fields.count)
    }

    @Test func `each member of the record's table has one field, or is an object of fields`() {
        let objects = AppRecord.objects.filter { $0.path != ["keys", "compromise"] }
        let groups = Set(objects.map { $0.path.joined(separator: ".") })
        let names = objects.flatMap { path, members in
            members.map { (path + [$0.name]).joined(separator: ".") }.filter { !groups.contains($0) }
        }
        #expect(RecordGroup.fields.map(\.name).sorted() == names.sorted())
        #expect(RecordGroup.optional.map(\.name) == ["ios", "android"])
        // The console refuses a form that has a longer field name.
        for field in RecordGroup.fields { #expect(RecordForm.plain(field.name).utf8.count <= 64, "\(field.name)") }
    }

    @Test(arguments: [
        ("signature.past_window_seconds", "601"), ("signature.past_window_seconds", "0"),
        ("signature.past_window_seconds", "1.5"), ("signature.past_window_seconds", "+7"), ("mode", "off"),
        ("signature.past_window_seconds", "9O"), ("signature.past_window_seconds", "007"),
        ("signature.past_window_seconds", ""), ("android.play_integrity.device_labels", ""),
        ("ios.assertions_required_except", ""), ("ios.categories", " \n"), ("keys.compromise", ""), ("mode", ""),
        ("enabled", "yes"), ("ios.environments", "development\nstaging"), ("ios.environments", "\n"),
        ("ios.app_ids", " \n"), ("android.packages", ""), ("keys.compromise", "{"),
        ("android.play_integrity.keys", "[}"),
    ])
    func `a text that breaks the rule of its field is a problem of that field alone`(name: String, text: String) throws
    {
        let record = try Self.written(FullRecord.json("com.example.app"))
        var fields = Self.fields(try RecordForm(record, over: nil)).all.map { ($0.name, $0.value) }
        let place = try #require(fields.firstIndex { $0.0.hasSuffix("." + name) || $0.0 == "member.\(name)" })
        fields[place].1 = text
        let form = try RecordForm(PageFields(fields))
        let problem = #expect(throws: RecordDraft.Problem.self) { try form.record(over: record) }
        #expect(problem?.problems.map(\.path) == [name])
        #expect(problem?.problems.first?.message.isEmpty == false)
    }

    @Test func `lines are texts, without the space around them, and a block of PEM is one text`() throws {
        let anchors = try #require(RecordGroup.fields.first { $0.name == "ios.trust_anchors" })
        let pem = "-----BEGIN CERTIFICATE-----\nAAAA\nBBBB\n-----END CERTIFICATE-----"
        func value(_ text: String) -> JSONValue? { anchors.value(of: RecordField.Entry(text: text)) }
        #expect(value(" a \n\n\tb c\n") == ["a", "b c"])
        #expect(value("\(pem)\n\n \(pem)\nx") == [.string(pem), .string(pem), "x"])
        #expect(anchors.entry(of: [.string(pem)]) == RecordField.Entry(text: pem))
        #expect(value("") == [])
        #expect(value("-----BEGIN CERTIFICATE-----\nAAAA") == ["-----BEGIN CERTIFICATE-----\nAAAA"])
    }

    @Test func `an empty field is a value only if that is the default`() throws {
        func value(_ name: String) throws -> JSONValue? {
            let field = try #require(RecordGroup.fields.first { $0.name == name })
            return field.value(of: RecordField.Entry(text: "", isJSON: field.isAlwaysJSON))
        }
        for name in ["keys.maximum_age_days", "android.play_integrity.maximum_activity_level", "name"] {
            #expect(try value(name) == .null, "\(name)")
        }
        #expect(try value("ios.assertions_required_on") == [])
        for field in RecordGroup.fields where try value(field.name) != nil {
            #expect(try value(field.name) == field.standard, "\(field.name)")
        }
    }

    @Test(arguments: ["ios.assertions_required_except", "ios.categories", "keys.compromise"])
    func `a list that may be null is JSON, so that removing its last element leaves an empty list`(name: String) throws
    {
        let field = try #require(RecordGroup.fields.first { $0.name == name })
        #expect(field.isAlwaysJSON)
        let texts = [JSONValue.null, [], ["/public"]].map { field.entry(of: $0).text }
        #expect(texts[0] == "null" && texts[1] == "[]" && texts[2].contains("/public"))
        let emptied = RecordField.Entry(text: texts[2].replacing("\"/public\"", with: ""), isJSON: true)
        #expect(field.value(of: emptied) == [])
        #expect(field.rule(isJSON: true).contains("[] an empty list"))
    }

    @Test func `an absent member is not null: a record that lacks what the original has is no form`() throws {
        let base = try Self.written(FullRecord.json("com.example.app"))
        func reasons(_ record: JSONValue) -> [String] {
            do throws(RecordDraft.Problem) {
                _ = try RecordForm(record.object ?? JSONObject(), over: base)
                return []
            } catch {
                return error.problems.map(\.message)
            }
        }
        #expect(reasons(.object(base)).isEmpty)
        for field in RecordGroup.fields {
            let path = field.name.split(separator: ".").map(String.init)
            let absent = reasons(FullRecord.setting(.object(base), path[...], nil))
            let known = path.reduce(JSONValue.object(base)) { $0[$1] ?? .null }
            let isDefault = known.isNull || known == field.standard
            #expect(absent.isEmpty == isDefault, "\(field.name)")
            if !isDefault { #expect(absent.first?.hasPrefix("\(field.name) is absent") == true) }
            #expect(reasons(FullRecord.setting(.object(base), path[...], .null)).isEmpty, "\(field.name)")
        }
        for value in [nil, JSONValue.null] {
            let keys = reasons(FullRecord.setting(.object(base), ["keys"], value))
            #expect(keys.contains { $0.hasPrefix("keys.compromise is absent") })
        }
    }

    @Test func `the fields of an object that the draft lacks are those of the original`() throws {
        let base = try Self.written(FullRecord.json("com.example.app"))
        for value in [nil, JSONValue.null] {
            let record = try #require(FullRecord.setting(.object(base), ["ios"], value).object)
            let form = try RecordForm(record, over: base)
            #expect(form.present == ["android"])
            #expect(try form.record(over: base)["ios"] == .null)
            // Ticking the box of `ios` again gives the original record.
            let fields = Self.fields(form).all.map { ($0.name, $0.value) } + [(RecordForm.box("ios"), "yes")]
            #expect(try RecordForm(PageFields(fields)).record(over: base) == base)
        }
    }

    @Test func `a new object has the members that are not defaults`() throws {
        let record = try Self.written(Self.small)
        var fields = Self.fields(try RecordForm(record, over: nil)).all.map { ($0.name, $0.value) }
        for (name, value) in [("packages", "com.example.app\n"), ("certificate_digests", "x"), ("proof", "both")] {
            let place = try #require(fields.firstIndex { $0.0 == RecordForm.plain("android." + name) })
            fields[place].1 = value
        }
        #expect(try RecordForm(PageFields(fields)).record(over: record) == record)
        let with = try RecordForm(PageFields(fields + [(RecordForm.box("android"), "yes")])).record(over: record)
        #expect(
            with["android"] == ["packages": ["com.example.app"], "certificate_digests": ["x"], "proof": "both"])
        // If the box is not ticked, the record does not have the object, whatever its fields contain.
        let without = fields.filter { $0.0 != RecordForm.box("ios") }
        #expect(try RecordForm(PageFields(without)).record(over: record)["ios"] == .null)
    }

    @Test(arguments: [
        (
            "The request is not valid. signature.past_window_seconds has the wrong type or range.",
            "signature.past_window_seconds"
        ),
        ("ios.app_ids is missing.", "ios.app_ids"), ("mode has the wrong type or range.", "mode"),
        ("android.play_integrity.keys[0].decryption_key has the wrong type or range.", "android.play_integrity.keys"),
        ("development_integrity_allowed needs build_channel dev or staging.", "development_integrity_allowed"),
        (
            "android.key_attestation.status_list: name a URL or a file of revoked keys",
            "android.key_attestation.status_list"
        ),
        ("keys.compromise is set: repeat it, or set it to null to lift it.", "keys.compromise"),
        ("trust_anchors need build_channel dev or staging.", "build_channel"),
        ("an app needs a platform: give ios or android.", nil), ("The name of the mode is not enabled here.", nil),
        ("", nil), ("...", nil),
    ])
    func `a refusal belongs to the first member that it names`(message: String, member: String?) {
        let answer = AdminResponse(status: 400, body: ["error": "INVALID_REQUEST", "message": .string(message)])
        let problem = RecordProblem(CallRefused(answer))
        #expect(problem.path == member && problem.message == "\(message) (INVALID_REQUEST)")
    }
}

import AuthContract
import AuthServer
import AuthService
import StrictJSON
import Testing

@testable import Console

/// Members and objects that a draft lacks.
@Suite struct RecordAbsenceTests {
    private static let path = "/console/apps/\(Desk.app)/change"

    private static func form(_ browser: Browser, at path: String = path) async throws -> FormFields {
        let page = await browser.get(path)
        try #require(page.status == 200)
        return FormFields(page.text)
    }

    @Test func `a record without its demand neither becomes a form nor lifts the demand`() async throws {
        let app = "com.example.full"
        let path = "/console/apps/\(app)/change"
        let desk = try await Desk()
        let record = try AppRecord(JSONFields(FullRecord.json(app)))
        try #require(try await desk.service.apps.add(record, actor: "test"))
        let browser = try await desk.signedIn(.admin)
        let form = try await Self.form(browser, at: path)
        let base = try #require(try JSONValue(parsing: form["base"] ?? "").object)
        for below in [["keys", "compromise"], ["keys"]] {
            let older = FullRecord.setting(.object(base), below[...], nil)
            let fields = form.all.filter { ["token", "tag", "base"].contains($0.0) } + [("record", older.text())]
            let refused = await browser.post(path, fields + [("edit", "form")])
            #expect(refused.status == 400 && refused.text.contains("keys.compromise is absent"))
            #expect(FormFields(refused.text)["record"].flatMap { try? JSONValue(parsing: $0) } == older)
            #expect(await browser.post(path, fields + [("confirm", "yes")]).status == 409)
        }
        let kept = try #require(try await desk.service.apps.record(AppID(app)))
        #expect(kept.keys.compromises == record.keys.compromises && !kept.keys.compromises.isEmpty)
    }

    @Test func `a merge keeps a member absent that the draft lacks`() throws {
        let base = try #require(FullRecord.json("com.example.full").object)
        func merged(_ mine: JSONValue) throws -> JSONObject {
            var theirs = base
            theirs["name"] = "Theirs"
            let merge = RecordMerge(base: base, theirs: theirs, mine: try #require(mine.object))
            #expect(merge.conflicts.isEmpty)
            return merge.merged([])
        }
        for keys in [nil, JSONValue.null, FullRecord.setting(base["keys"] ?? .null, ["compromise"], nil)] {
            let record = try merged(FullRecord.setting(.object(base), ["keys"], keys))
            #expect(record["name"] == "Theirs" && record["keys"]?.object != nil)
            #expect(record["keys"]?["compromise"] == nil)
        }
        let lifted = try merged(FullRecord.setting(.object(base), ["keys", "compromise"], .null))
        #expect(lifted["keys"]?["compromise"] == .null)
    }

    @Test func `the fields of a platform come back after its box was unticked`() async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.admin)
        let before = try await Self.form(browser)
        var form = before
        form["has.ios"] = nil
        form["has.android"] = "yes"
        form["member.android.packages"] = "com.example.app"
        form["member.android.certificate_digests"] =
            FullRecord.json("x")["android"]?["certificate_digests"]?.elements
            .first?.string
        let shown = await browser.post(Self.path, form.all)
        try #require(shown.status == 200)
        let again = FormFields(
            await browser.post(
                Self.path, FormFields(shown.text, with: "class=\"buttons\"").all + [("edit", "yes")]
            ).text)
        #expect(again["has.ios"] == nil && again["has.android"] == "yes")
        #expect(again["member.android.packages"] == "com.example.app")
        for name in RecordGroup.fields.map(\.name) where name.hasPrefix("ios.") {
            let fields = [RecordForm.plain(name), RecordForm.json(name)]
            #expect(fields.map { again[$0] } == fields.map { before[$0] }, "\(name)")
        }
        #expect(before["member.ios.app_ids"]?.isEmpty == false)
    }
}

import AuthContract
import AuthServer
import AuthService
import StrictJSON
import Testing

@testable import Console

/// The page with the fields of an app record, as a browser without script uses it.
@Suite struct RecordFormPageTests {
    private static let full = "com.example.full"
    private static let path = "/console/apps/\(Desk.app)/change"
    private static let fullPath = "/console/apps/\(full)/change"

    /// The form of a page that a person opens.
    private static func form(_ browser: Browser, at path: String = path) async throws -> FormFields {
        let page = await browser.get(path)
        try #require(page.status == 200)
        return FormFields(page.text)
    }

    /// The fields, without the token, of the form that carries the draft as JSON, for example on a confirmation page.
    private static func hidden(_ page: String) -> [(String, String)] {
        FormFields(page, with: "class=\"buttons\"").all.filter { $0.0 != "token" }
    }

    private static func record(_ desk: Desk, _ app: String = Desk.app) async throws -> JSONObject {
        try #require(try await desk.service.apps.record(AppID(app))).json(secrets: .plain)
    }

    /// A desk with a record in which no member has its default.
    private static func deskWithFullRecord() async throws -> Desk {
        let desk = try await Desk()
        let record = try AppRecord(JSONFields(FullRecord.json(full)))
        try #require(try await desk.service.apps.add(record, actor: "test"))
        return desk
    }

    @Test(arguments: [path, fullPath])
    func `an unchanged form changes nothing`(path: String) async throws {
        let desk = try await Self.deskWithFullRecord()
        let browser = try await desk.signedIn(.admin)
        let answer = await browser.post(path, try await Self.form(browser, at: path).all)
        #expect(answer.status == 200 && answer.text.contains("Nothing differs."))
    }

    @Test func `a field is labelled, explained, and has its default`() async throws {
        let browser = try await Desk().signedIn(.admin)
        let page = await browser.get(Self.path).text
        for name in RecordGroup.fields.map(\.name) {
            #expect(page.contains("<label for=\"member.\(name)\"><code>\(name)</code></label>"))
            #expect(page.contains(" id=\"member.\(name)\""))
            #expect(page.contains("aria-describedby=\"help.\(name) problem.\(name)\""))
            #expect(page.contains("id=\"help.\(name)\"") && page.contains("id=\"problem.\(name)\""))
        }
        #expect(page.contains("The maximum age of a request. An integer from 1 to 600. Default: 300."))
        #expect(page.contains("<option value=\"enforce\" selected>enforce (default)</option>"))
        #expect(
            page.contains("inputmode=\"numeric\" pattern=\"-?[0-9]+\" data-minimum=\"1\" data-maximum=\"600\""))
        #expect(page.contains("every path needs one. JSON. Default: null.</p>"))
        let everyday = try #require(page.firstRange(of: "id=\"member.mode\""))
        let advanced = try #require(page.firstRange(of: "id=\"member.evidence.record\""))
        let details = try #require(page.firstRange(of: "<details"))
        #expect(everyday.lowerBound < details.lowerBound && details.lowerBound < advanced.lowerBound)
    }

    @Test func `a field that a person changes is the only change, and keeps the secrets`() async throws {
        let desk = try await Self.deskWithFullRecord()
        let browser = try await desk.signedIn(.admin)
        let before = try await Self.record(desk, Self.full)
        var form = try await Self.form(browser, at: Self.fullPath)
        #expect(form["member.android.play_integrity.service_account"]?.hasPrefix("(secret ") == true)
        form["member.mode"] = "enforce"
        let shown = await browser.post(Self.fullPath, form.all)
        #expect(shown.text.contains("<span class=\"added\">+   &quot;mode&quot;: &quot;enforce&quot;,</span>"))
        #expect(shown.text.matches(of: /class="added"/).count == 1)
        #expect(try await Self.record(desk, Self.full) == before)
        let made = try await browser.confirm(Self.fullPath, Self.hidden(shown.text))
        #expect(made.location == "/console/apps/\(Self.full)")
        var expected = before
        expected["mode"] = "enforce"
        #expect(try await Self.record(desk, Self.full) == expected)
    }

    @Test func `a record of more than 64 KiB is shown and changed whole`() async throws {
        let desk = try await Self.deskWithFullRecord()
        let browser = try await desk.signedIn(.admin)
        var large = try #require(try await desk.service.apps.record(AppID(Self.full)))
        large.name = String(repeating: "n", count: 70_000)
        try #require(try await desk.service.apps.change(large, actor: "test"))
        let before = try await Self.record(desk, Self.full)
        var form = try await Self.form(browser, at: Self.fullPath)
        #expect(form["member.app_id"] == Self.full && form["member.name"]?.count == 70_000)
        form["member.mode"] = "enforce"
        let shown = await browser.post(Self.fullPath, form.all)
        #expect(shown.status == 200)
        #expect(try await browser.confirm(Self.fullPath, Self.hidden(shown.text)).location != nil)
        var expected = before
        expected["mode"] = "enforce"
        #expect(try await Self.record(desk, Self.full) == expected)
    }

    @Test(arguments: ["601", "0", "1.5", "x", "9O", "", "<script>", "1\u{A0}"])
    func `a wrong integer comes back with its problem beside the field`(text: String) async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.admin)
        var form = try await Self.form(browser)
        let name = "signature.past_window_seconds"
        form["member.\(name)"] = text
        form["member.name"] = "Kept"
        for further in [[], [("confirm", "yes")], [("edit", "json")]] {
            let answer = await browser.post(Self.path, form.all + further)
            #expect(answer.status == 400 && answer.text.contains("href=\"#member.\(name)\""))
            #expect(answer.text.contains("id=\"problem.\(name)\" aria-live=\"polite\">An integer from 1 to 600.</p>"))
            #expect(answer.text.matches(of: /aria-invalid="true"/).count == 1)
            // The advanced part with the invalid field is open.
            #expect(answer.text.matches(of: /<details open>/).count == 1)
            let again = FormFields(answer.text)
            #expect(again["member.name"] == "Kept")
            let typed = again["member.\(name)"] ?? again["json.\(name)"]
            #expect(typed == (text == "1\u{A0}" ? #""1\u00a0""# : text))
        }
        #expect(try await Self.record(desk)["name"]?.string == Desk.app)
    }

    @Test func `members that contradict each other are a problem of the first that the service names`() async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.admin)
        let before = try await desk.codes()
        var form = try await Self.form(browser)
        form["member.build_channel"] = "production"
        let name = "development_integrity_allowed"
        let answer = await browser.post(Self.path, form.all)
        #expect(answer.status == 400 && FormFields(answer.text)["member.build_channel"] == "production")
        let place = try #require(answer.text.components(after: "id=\"problem.\(name)\" aria-live=\"polite\">"))
        #expect(place.prefix { $0 != "<" }.contains("needs build_channel dev or staging"))
        // The page's script sends the form only to have it checked.
        let check = await browser.post(Self.path, form.all, check: true)
        #expect(check.status == 200 && check.text.contains("<p data-member=\"\(name)\">"))
        #expect(check.text.contains("<form") == false)
        form["member.\(name)"] = "false"
        let fine = await browser.post(Self.path, form.all, check: true)
        #expect(fine.status == 200 && fine.text.contains("data-member") == false)
        #expect(try await desk.codes() == before)
    }

    @Test func `a form that does not have each member once is refused`() async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.admin)
        let form = try await Self.form(browser)
        let members = form.all.filter { $0.0.hasPrefix("member.") || $0.0.hasPrefix("json.") }.map(\.0)
        #expect(members.count == RecordGroup.fields.count)
        var wrong: [[(String, String)]] = members.map { name in form.all.filter { $0.0 != name } }
        wrong += members.map { name in form.all + [(name, form[name] ?? "")] }
        wrong += [
            form.all + [("json.mode", "\"observe\"")], form.all + [("member.zzz", "")], form.all + [("x", "")],
            form.all + [("has.ios", "yes")], form.all + [("has.signature", "yes")], form.all + [("has.android", "no")],
            form.all + [("record", "{}")],
            [("record", "{}")] + form.all.filter { $0.0 == "token" } + [("has.ios", "yes")],
        ]
        for fields in wrong {
            for further in [[], [("confirm", "yes")]] {
                #expect(await browser.post(Self.path, fields + further).status == 400)
                #expect(await browser.post(Self.path, fields + further, check: true).status == 400)
            }
        }
        #expect(try await desk.codes().contains("app.changed") == false)
        #expect(await browser.post(Self.path, form.all).status == 200)
    }

    @Test func `a draft goes from fields to JSON and back`() async throws {
        let desk = try await Self.deskWithFullRecord()
        let browser = try await desk.signedIn(.admin)
        var form = try await Self.form(browser, at: Self.fullPath)
        form["member.ios.app_ids"] = "TEAMID1234.com.example.app\n\nTEAMID1234.com.example.next\n"
        form["member.name"] = ""
        let json = await browser.post(Self.fullPath, form.all + [("edit", "json")]).text
        let area = try #require(json.components(after: "name=\"record\""))
        #expect(area.contains("TEAMID1234.com.example.next") && area.contains("&quot;name&quot;: null"))
        #expect(json.contains("record-form") == false)
        let back = await browser.post(Self.fullPath, FormFields(json).all + [("edit", "form")])
        #expect(back.status == 200)
        let fields = FormFields(back.text)
        #expect(fields["member.ios.app_ids"] == "TEAMID1234.com.example.app\nTEAMID1234.com.example.next")
        #expect(fields["member.name"] == "" && fields["tag"] == form["tag"] && fields["base"] == form["base"])
    }

    @Test(arguments: [
        (#"{"app_id": "com.example.app", "zzz": 1}"#, "no field for zzz"),
        (#"{"app_id": "com.example.app", "keys": {"zzz": 1}}"#, "no field for keys.zzz"),
        (#"{"app_id": "com.example.app", "signature": []}"#, "no field for signature"), ("{", "not JSON"),
        ("[]", "JSON object"),
    ])
    func `JSON that the form cannot show stays JSON and says why`(text: String, reason: String) async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.admin)
        let form = try await Self.form(browser)
        let fields = form.all.filter { ["token", "tag", "base"].contains($0.0) } + [("record", text)]
        let answer = await browser.post(Self.path, fields + [("edit", "form")])
        #expect(answer.status == 400 && answer.text.contains(reason))
        #expect(answer.text.contains("name=\"record\"") && answer.text.contains("record-form") == false)
    }

    @Test func `a platform is added and removed by its box`() async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.admin)
        var form = try await Self.form(browser)
        #expect(form["has.ios"] == "yes" && form["has.android"] == nil)
        form["member.android.packages"] = "com.example.app"
        let digest = try #require(
            FullRecord.json("x")["android"]?["certificate_digests"]?.elements.first?.string)
        form["member.android.certificate_digests"] = digest
        form["has.android"] = "yes"
        form["has.ios"] = nil
        let shown = await browser.post(Self.path, form.all)
        #expect(shown.status == 200 && shown.text.contains("+   &quot;ios&quot;: null,"))
        #expect(try await browser.confirm(Self.path, Self.hidden(shown.text)).status == 303)
        let record = try await Self.record(desk)
        #expect(record["ios"] == .null && record["android"]?["packages"] == ["com.example.app"])
        // The record would have neither platform.
        form = try await Self.form(browser)
        form["has.android"] = nil
        let refused = await browser.post(Self.path, form.all)
        #expect(refused.status == 400 && refused.text.contains("an app needs a platform"))
        // The record has the object `ios`, but not its required field.
        form["has.ios"] = "yes"
        let missing = await browser.post(Self.path, form.all)
        #expect(missing.status == 400 && missing.text.contains("href=\"#member.ios.app_ids\""))
    }

    @Test func `after a conflict the form shows its fields again, for the current record`() async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.admin)
        var (mine, theirs) = (try await Self.form(browser), try await Self.form(browser))
        theirs["member.name"] = "Theirs"
        #expect(try await browser.confirm(Self.path, theirs.all.filter { $0.0 != "token" }).status == 303)
        mine["member.mode"] = "observe"
        let conflict = await browser.post(Self.path, mine.all)
        #expect(conflict.status == 412 && conflict.text.contains("The record changed since you began"))
        let merged = FormFields(conflict.text)
        #expect(merged["member.name"] == "Theirs" && merged["member.mode"] == "observe")
        #expect(merged["tag"] != mine["tag"])
        // Both people change the same member.
        theirs = try await Self.form(browser)
        theirs["member.mode"] = "observe"
        theirs["member.name"] = "Again"
        #expect(try await browser.confirm(Self.path, theirs.all.filter { $0.0 != "token" }).status == 303)
        mine = merged
        mine["member.name"] = "Mine"
        let choice = await browser.post(Self.path, mine.all)
        #expect(choice.status == 412 && choice.text.contains("name=\"choice-0\""))
        let draft = await browser.post(
            Self.path, FormFields(choice.text).all + [("choice-0", "mine"), ("merge", "yes")])
        #expect(draft.status == 200 && FormFields(draft.text)["member.name"] == "Mine")
    }

    @Test func `a confirmed draft that is refused comes back as fields`() async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.admin)
        let form = try await Self.form(browser)
        let shown = await browser.post(Self.path, form.all)
        let fields = Self.hidden(shown.text).map { name, value in
            (name, name == "record" ? value.replacing("TEAMID1234.", with: "x ") : value)
        }
        let refused = try await browser.confirm(Self.path, fields)
        #expect(refused.status == 400 && refused.text.contains("href=\"#member.ios.app_ids\""))
        #expect(FormFields(refused.text)["member.ios.app_ids"] == "x com.example.app")
        let edit = await browser.post(
            Self.path, Self.hidden(shown.text) + [("edit", "yes"), ("token", try await browser.token(at: Self.path))])
        #expect(edit.status == 200 && FormFields(edit.text)["member.app_id"] == Desk.app)
    }

    @Test func `hostile text in fields changes no tag of the page, and comes back`() async throws {
        func tags(_ text: String) async throws -> [String] {
            let browser = try await Desk().signedIn(.admin)
            var form = try await Self.form(browser)
            for name in [
                "name", "app_id", "mode", "ios.app_ids", "ios.trust_anchors", "signature.path_prefix_strip",
                "signature.past_window_seconds", "android.play_integrity.service_account",
            ] {
                form["member.\(name)"] = text
            }
            form["json.keys.compromise"] = text + "{"
            let answer = await browser.post(Self.path, form.all)
            #expect(answer.status == 400)
            let again = FormFields(answer.text)
            if VisibleText.of(text) == text { #expect(again["member.name"] == text) }
            #expect(again.all.contains { $0.0.hasSuffix("keys.compromise") })
            let check = await browser.post(Self.path, form.all, check: true)
            #expect(check.status == 200)
            return Markup.tags(answer.text) + Markup.tags(check.text)
        }
        // The form shows a text with invisible characters as JSON, in another kind of field.
        let harmless = (try await tags("harmless"), try await tags("harm\u{200B}less"))
        for attack in EscapingTests.attacks {
            let isShown = VisibleText.of(attack) == attack
            #expect(try await tags(attack) == (isShown ? harmless.0 : harmless.1), "\(attack)")
        }
    }
}

extension Browser {
    /// Confirms a draft with a new token.
    func confirm(_ path: String, _ fields: [(String, String)]) async throws -> PageAnswer {
        await post(path, fields + [("confirm", "yes"), ("token", try await token(at: path))])
    }
}

import AuthContract
import AuthServer
import AuthService
import StoreConformance
import StrictJSON
import Testing

@testable import Console

/// Pages about apps: the record, its change, and conflicts.
@Suite struct AppTests {
    private static let path = "/console/apps/\(Desk.app)"

    /// The fields of the change form, with the record changed.
    private static func draft(
        _ desk: Desk, _ change: (inout JSONObject) -> Void
    ) async throws -> [(String, String)] {
        let id = try await desk.credential(.admin).id
        let credential = try #require(try await desk.pages.credential(id))
        let answer = await desk.pages.answer(AdminCall(.showApp, ["app_id": Desk.app]), by: credential)
        var record = try #require(answer.body.object)
        change(&record)
        return [
            ("record", JSONValue.object(record).text(.pretty)), ("tag", try #require(answer.entityTag)),
        ]
    }

    private static func name(_ desk: Desk) async throws -> String? {
        try await desk.service.apps.record(AppID(Desk.app))?.name
    }

    @Test func `a change is checked, shown and then made`() async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.admin)
        let fields = try await Self.draft(desk) { $0["name"] = "Renamed" }
        let shown = try await browser.submit(Self.path + "/change", fields)
        #expect(shown.status == 200)
        #expect(shown.text.contains("<span class=\"added\">+   &quot;name&quot;: &quot;Renamed&quot;,</span>"))
        #expect(shown.text.contains("class=\"removed\""))
        #expect(shown.text.contains("If-Match: "))
        #expect(try await Self.name(desk) == Desk.app)
        let made = try await browser.submit(Self.path + "/change", fields + [("confirm", "yes")])
        #expect(made.location == Self.path)
        #expect(try await Self.name(desk) == "Renamed")
        #expect(try await desk.codes().first == "app.changed")
        #expect(await browser.get(Self.path).text.contains("The record is changed."))
    }

    @Test func `the list has the apps that can be read, and names the one that cannot`() async throws {
        let desk = try await Desk()
        let event = AuditEvent(.appAdded, at: desk.clock.now, actor: "test", appID: try AppID("com.example.damaged"))
        try #require(
            try await desk.stores.insert(
                StoredApp(appID: AppID("com.example.damaged"), sealedJSON: "{}"), recording: event))
        let page = try await desk.signedIn(.viewer).get("/console/apps")
        #expect(page.status == 200)
        #expect(page.text.contains("<a href=\"\(Self.path)\">\(Desk.app)</a>"))
        #expect(page.text.contains("of a newer version: com.example.damaged."), "\(page.text)")
    }

    /// The fields as a browser sends them, with CR LF.
    private static func sent(_ fields: [(String, String)]) throws -> [(String, String)] {
        let form = fields.map { name, value in
            "\(name)=\(PagePath.encoded(value).replacing("%0A", with: "%0D%0A"))"
        }
        return try PageFields(parsing: form.joined(separator: "&")).all.map { ($0.name, $0.value) }
    }

    /// The draft that is in the form of a page.
    private static func draft(in page: String) throws -> String {
        let rest = try #require(page.components(after: "name=\"record\""))
        let isArea = !rest.hasPrefix(" value=")
        let text = try #require(String(rest).components(after: isArea ? ">" : "value=\""))
            .prefix { $0 != (isArea ? "<" : "\"") }
        return String(text).replacing("&quot;", with: "\"").replacing("&#39;", with: "'").replacing("&lt;", with: "<")
            .replacing("&gt;", with: ">").replacing("&amp;", with: "&")
    }

    @Test(arguments: ["a\u{A0}b\u{200D}c\u{1F600}", "<&'\"\u{301}", "plain"])
    func `a draft stays the same JSON on every page that shows it`(name: String) async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.admin)
        var fields = try await Self.draft(desk) { $0["name"] = .string(name) }
        fields[0].1 = fields[0].1.replacing("  ", with: "\t")
        let draft = try JSONValue(parsing: fields[0].1)
        for (further, status) in [([], 200), ([("edit", "yes")], 200)] {
            let answer = try await browser.submit(Self.path + "/change", Self.sent(fields + further))
            #expect(answer.status == status)
            #expect(try JSONValue(parsing: Self.draft(in: answer.text)) == draft)
        }
        // This text is not valid JSON, so the page escapes only its invisible characters.
        let broken = fields.map { ($0.0, $0.0 == "record" ? $0.1 + "," : $0.1) }
        let refused = try await browser.submit(Self.path + "/change", Self.sent(broken))
        #expect(refused.status == 400)
        #expect(try JSONValue(parsing: String(Self.draft(in: refused.text).dropLast())) == draft)
        // The admin API refuses a record with another app's id.
        let other = fields.map { ($0.0, $0.0 == "record" ? $0.1.replacing(Desk.app, with: "com.example.other") : $0.1) }
        let put = try await browser.submit(Self.path + "/change", Self.sent(other + [("confirm", "yes")]))
        #expect((400..<500).contains(put.status))
        #expect(try JSONValue(parsing: Self.draft(in: put.text)) == JSONValue(parsing: other[0].1))
        // Another person changes the record.
        let others = try await Self.draft(desk) { $0["name"] = "Theirs" }
        #expect(try await browser.submit(Self.path + "/change", others + [("confirm", "yes")]).status == 303)
        for further in [[], [("confirm", "yes")]] {
            let conflict = try await browser.submit(Self.path + "/change", Self.sent(fields + further))
            #expect(conflict.status == 412)
            #expect(try JSONValue(parsing: Self.draft(in: conflict.text)) == draft)
        }
    }

    @Test func `a record is in a page twice: as the draft, and as what the person began with`() async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.admin)
        let text = await browser.get(Self.path + "/change").text
        #expect(text.matches(of: /TEAMID1234\.com\.example\.app(<|&quot;)/).count == 2)
    }

    @Test func `a form without a version changes nothing`() async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.admin)
        let fields = try await Self.draft(desk) { $0["name"] = "Mine" }
        let without = fields.filter { $0.0 != "tag" } + [("confirm", "yes")]
        #expect(try await browser.submit(Self.path + "/change", without).status == 400)
        #expect(try await browser.submit(Self.path + "/change", without + [("tag", "*")]).status == 400)
        #expect(try await Self.name(desk) == Desk.app)
    }

    @Test(arguments: [
        "", "{", "[]", "{\"app_id\": 1}", "{\"app_id\": \"com.example.other\", \"ios\": {}}", "{\"a\": 1, \"a\": 2}",
    ])
    func `a record that is not valid is refused beside the draft`(text: String) async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.admin)
        for further in [[], [("confirm", "yes")]] {
            var fields = try await Self.draft(desk) { _ in }
            fields[0].1 = text
            let answer = try await browser.submit(Self.path + "/change", fields + further)
            #expect(answer.status >= 400)
            #expect(answer.text.contains("id=\"problem\"") && answer.text.contains("<textarea"))
        }
        #expect(try await Self.name(desk) == Desk.app)
    }

    @Test func `a change that would refuse devices says which`() async throws {
        let desk = try await Desk()
        let device = try await desk.addDevice()
        let browser = try await desk.signedIn(.admin)
        let fields = try await Self.draft(desk) { $0["enabled"] = false }
        let page = try await browser.submit(Self.path + "/change", fields).text
        #expect(page.contains("would be decided about otherwise.") && page.contains(device))
        #expect(page.contains("UNKNOWN_APP"))
    }

    @Test(arguments: [CredentialRole.viewer, .operator, .admin])
    func `only an admin is offered a change`(role: CredentialRole) async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(role)
        let page = await browser.get(Self.path)
        #expect(page.status == 200)
        #expect(page.text.contains("href=\"\(Self.path)/change\"") == (role == .admin))
        #expect(await browser.get(Self.path + "/change").status == (role == .admin ? 200 : 403))
    }

    @Test func `the link to another mode begins a draft and changes nothing`() async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.admin)
        let before = try await desk.codes()
        let page = await browser.get(Self.path + "/change?mode=observe").text
        #expect(page.contains("<option value=\"observe\" selected>"))
        #expect(try await desk.codes() == before)
    }

    @Test func `the roll-out counts what would be refused, by version`() async throws {
        let desk = try await Desk()
        let app = try AppID(Desk.app)
        func verdict(_ code: String, _ version: String) -> CountedVerdict {
            CountedVerdict(
                appID: app, kind: .verification, platform: .ios, code: code, scheme: .one, version: version)
        }
        let time = desk.clock.now - 3600
        let counts = [
            verdict("verified", "2.0"): 97 as Int64, verdict("observed_NONCE_REPLAY", "2.0"): 3,
            verdict("verified", "1.0"): 1,
        ]
        try await desk.stores.add(VerdictBatch(id: "batch", minute: time - time.seconds % 60, counts: counts))
        let page = await (try await desk.signedIn(.viewer)).get(Self.path).text
        #expect(page.contains("verified: 98") && page.contains("observed_NONCE_REPLAY: 3"))
        #expect(page.contains(">3.0 %<") && page.contains(">0 %<"))
    }

    @Test func `the table of a record has every member once, everyday ones first`() throws {
        let record = try AppRecord(
            JSONFields([
                "app_id": "com.example.app", "build_channel": "dev",
                "ios": ["app_ids": ["TEAMID1234.com.example.app"]],
            ]))
        let mask = try #require(record.json(secrets: .plain)["ios"])
        #expect(mask.object != nil)
        let rows = RecordRow.all(.object(record.json(secrets: .plain)))
        #expect(Set(rows.map(\.name)).count == rows.count)
        for name in ["app_id", "mode", "ios.app_ids", "signature.minimum_scheme", "keys.maximum_age_days"] {
            #expect(rows.contains { $0.name == name }, "\(name)")
        }
        #expect(!rows.contains { $0.name.hasPrefix("android.") })
        #expect(rows.contains { !$0.isEveryday } && rows.allSatisfy { !$0.meaning.isEmpty })
    }

    @Test func `hostile text of a record changes no page`() async throws {
        func tags(_ text: String) async throws -> [[String]] {
            let desk = try await Desk()
            let browser = try await desk.signedIn(.admin)
            let fields = try await Self.draft(desk) { $0["name"] = .string(text) }
            let shown = try await browser.submit(Self.path + "/change", fields)
            let made = try await browser.submit(Self.path + "/change", fields + [("confirm", "yes")])
            #expect(shown.status == 200 && made.status == 303)
            var pages = [Markup.tags(shown.text)]
            _ = await browser.get("/console")
            for path in ["/console/apps", Self.path, Self.path + "/change"] {
                pages.append(Markup.tags(await browser.get(path).text))
            }
            return pages
        }
        // The form shows a text with invisible characters as JSON, in another kind of field.
        let harmless = (plain: try await tags("harmless"), json: try await tags("harm\u{200B}less"))
        for attack in EscapingTests.attacks {
            let expected = VisibleText.of(attack) == attack ? harmless.plain : harmless.json
            #expect(try await tags(attack) == expected, "\(attack)")
        }
    }

    @Test(arguments: EscapingTests.attacks + ["a\u{202E}b", "\u{1F600}", "Über", "a\nb"])
    func `a record comes back from its text area as it was`(text: String) throws {
        let record: JSONValue = ["name": .string(text)]
        let shown = VisibleText.of(RecordDraft.text(record), keepsLines: true)
        #expect(try JSONValue(parsing: shown) == record)
    }

    @Test func `a diff has the changed lines and the lines around them`() throws {
        let old = "a\nb\nc\nd\ne\nf\ng"
        let lines = try #require(LineDiff.lines(from: old, to: "a\nb\nc\nD\ne\nf\ng\nh"))
        #expect(lines.filter { $0.kind != .same }.map(\.text) == ["d", "D", "h"])
        #expect(lines.filter { $0.kind != .added }.map(\.text).joined(separator: "\n") == old)
        #expect(LineDiff.lines(from: old, to: String(repeating: "x\n", count: 10_000)) == nil)
    }
}

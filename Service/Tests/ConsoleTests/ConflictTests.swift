import AuthContract
import AuthServer
import AuthService
import StoreConformance
import StrictJSON
import Testing

@testable import Console

/// Two people change one app record.
@Suite struct ConflictTests {
    private static let path = "/console/apps/\(Desk.app)"
    private static let change = path + "/change"

    /// The record as the admin API shows it, and its version.
    private static func record(_ desk: Desk) async throws -> (record: JSONObject, tag: String) {
        let credential = try #require(try await desk.pages.credential(try await desk.credential(.admin).id))
        let answer = await desk.pages.answer(AdminCall(.showApp, ["app_id": Desk.app]), by: credential)
        return (try #require(answer.body.object), try #require(answer.entityTag))
    }

    /// The form fields of a person who opens the form now and changes the record.
    private static func draft(
        _ desk: Desk, base: Bool = true, _ change: (inout JSONObject) -> Void
    ) async throws -> [(String, String)] {
        let (old, tag) = try await record(desk)
        var new = old
        change(&new)
        return [("record", JSONValue.object(new).text(.pretty)), ("tag", tag)]
            + (base ? [("base", JSONValue.object(old).text())] : [])
    }

    /// Another person makes a change.
    private static func others(
        _ desk: Desk, _ browser: Browser, _ change: (inout JSONObject) -> Void
    ) async throws {
        let fields = try await draft(desk, change)
        try #require(try await browser.submit(Self.change, fields + [("confirm", "yes")]).status == 303)
    }

    /// The fields `tag`, `base` and `record` of a page's form, decoded.
    private static func fields(_ page: String) -> [(String, String)] {
        func decoded(_ text: Substring) -> String {
            String(text).replacing("&quot;", with: "\"").replacing("&#39;", with: "'").replacing("&lt;", with: "<")
                .replacing("&gt;", with: ">").replacing("&amp;", with: "&")
        }
        var fields = page.matches(of: /type="hidden" name="(tag|base|record)" value="([^"]*)"/)
            .map { (String($0.1), decoded($0.2)) }
        if let area = page.firstMatch(of: /name="record" class="code"[^>]*>([^<]*)</) {
            fields.append(("record", decoded(area.1)))
        }
        return fields
    }

    /// The table row of a member: its original value, its value in each of the two changes, and its value in the draft.
    /// Nil if the page has no such row.
    private static func row(_ name: String, _ page: String) -> String? {
        page.components(after: "<th scope=\"row\"><code>\(name)</code></th>").map { rest in
            String(rest.firstRange(of: "</tr>").map { rest[..<$0.lowerBound] } ?? rest)
        }
    }

    @Test(arguments: [[], [("confirm", "yes")]])
    func `changes of different members become one draft for the current version`(
        further: [(String, String)]
    ) async throws {
        let desk = try await Desk()
        let (id, text) = try await desk.credential(.admin)
        let (me, them) = (try await desk.signedIn(.admin), Browser(desk))
        try await them.signIn(text)
        let mine = try await Self.draft(desk) { $0["mode"] = "observe" }
        try await Self.others(desk, them) { $0["name"] = "Theirs" }
        let answer = try await me.submit(Self.change, mine + further)
        #expect(answer.status == 412)
        #expect(try await Self.record(desk).record["mode"]?.string == "enforce")
        let (name, mode) = (Self.row("name", answer.text), Self.row("mode", answer.text))
        #expect(name?.contains("&quot;Theirs&quot;") == true && name?.contains(">theirs<") == true)
        #expect(name?.matches(of: /com\.example\.app/).count == 2)
        #expect(mode?.contains(">yours<") == true && mode?.contains("&quot;observe&quot;") == true)
        #expect(Self.row("enabled", answer.text) == nil)
        // The page names the person who made the other change. It finds the name in the audit log.
        #expect(answer.text.contains("<code>admin:\(id)</code>"))
        let sequence = try #require(
            try await desk.stores.events(app: nil, device: nil, before: nil, limit: 100)
                .first { $0.event.code == .appChanged }?.sequence)
        #expect(answer.text.contains("/console/audit?app=\(Desk.app)&amp;before=\(sequence + 1)"))
        // The page has a draft with both changes. Its `tag` is the current version, so the draft can be confirmed.
        let form = Self.fields(answer.text)
        #expect(try await me.submit(Self.change, form + [("confirm", "yes")]).status == 303)
        let record = try await Self.record(desk).record
        #expect(record["mode"]?.string == "observe" && record["name"]?.string == "Theirs")
    }

    @Test(arguments: ["mine", "theirs"])
    func `the person chooses the value of a member that both people changed`(choice: String) async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.admin)
        let mine = try await Self.draft(desk) {
            $0["name"] = "Mine"
            $0["mode"] = "observe"
        }
        try await Self.others(desk, browser) { $0["name"] = "Theirs" }
        let answer = try await browser.submit(Self.change, mine + [("confirm", "yes")])
        #expect(answer.status == 412 && !answer.text.contains("<textarea"))
        let row = try #require(Self.row("name", answer.text))
        for value in [Desk.app, "Theirs", "Mine"] { #expect(row.contains("&quot;\(value)&quot;")) }
        #expect(row.contains("name=\"choice-0\" value=\"theirs\" required"))
        let form = Self.fields(answer.text) + [("merge", "yes")]
        // Without exactly one valid choice, the conflict is not resolved.
        for further in [[], [("choice-0", "both")], [("choice-0", "mine"), ("choice-0", "theirs")]] {
            let again = try await browser.submit(Self.change, form + further)
            #expect(again.status == 400 && again.text.contains("Choose whose value"))
        }
        let draft = try await browser.submit(Self.change, form + [("choice-0", choice)])
        #expect(draft.status == 200 && draft.text.contains("<textarea"))
        #expect(try await Self.record(desk).record["name"]?.string == "Theirs")
        #expect(
            try await browser.submit(Self.change, Self.fields(draft.text) + [("confirm", "yes")]).status == 303)
        let record = try await Self.record(desk).record
        #expect(record["name"]?.string == (choice == "mine" ? "Mine" : "Theirs"))
        #expect(record["mode"]?.string == "observe")
    }

    @Test func `a record that changes once more while the person chooses is a conflict again`() async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.admin)
        let mine = try await Self.draft(desk) { $0["name"] = "Mine" }
        try await Self.others(desk, browser) { $0["name"] = "Theirs" }
        let form = Self.fields(try await browser.submit(Self.change, mine).text)
        try await Self.others(desk, browser) { $0["name"] = "Third" }
        let again = try await browser.submit(Self.change, form + [("merge", "yes"), ("choice-0", "mine")])
        #expect(again.status == 412)
        let row = try #require(Self.row("name", again.text))
        // The base is still the person's original record.
        for value in [Desk.app, "Third", "Mine"] { #expect(row.contains("&quot;\(value)&quot;")) }
        // The page names the author of each of the two later changes.
        #expect(again.text.matches(of: /Changed by <code>/).count == 2)
    }

    @Test(arguments: ["", "{", "[]", nil])
    func `without a base the person chooses about each member that differs`(base: String?) async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.admin)
        let mine = try await Self.draft(desk, base: false) { $0["mode"] = "observe" }
        try await Self.others(desk, browser) { $0["name"] = "Theirs" }
        let answer = try await browser.submit(Self.change, mine + (base.map { [("base", $0)] } ?? []))
        #expect(answer.status == 412 && answer.text.contains("not known with which version"))
        #expect(answer.text.matches(of: /type="radio"/).count == 4)
        #expect(Self.row("mode", answer.text)?.contains("not known") == true)
    }

    @Test func `a forged base causes only changes that the page shows`() async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.admin)
        var mine = try await Self.draft(desk) { $0["mode"] = "observe" }
        // This base lacks members of the record, and has members and types that no record has.
        mine[2].1 = #"{"build_channel": "dev", "mode": "enforce", "x": 1, "ios": 7, "keys": {"y": []}}"#
        try await Self.others(desk, browser) { $0["name"] = "Theirs" }
        let form = try await browser.submit(Self.change, mine)
        #expect(form.status == 412)
        // The result is a draft at most. Nothing changes until the person confirms it.
        let draft = Self.fields(form.text).filter { $0.0 != "base" } + [("base", "{}")]
        let answer = try await browser.submit(Self.change, draft + [("merge", "yes")])
        #expect([200, 400].contains(answer.status))
        #expect(try await Self.record(desk).record["mode"]?.string == "enforce")
    }

    @Test func `a merge compares members by their objects, and absent ones by their defaults`() throws {
        func record(_ change: (inout JSONObject) -> Void) throws -> JSONObject {
            var record = try AppRecord(
                JSONFields([
                    "app_id": "com.example.app", "build_channel": "dev",
                    "ios": ["app_ids": ["TEAMID1234.com.example.app"]],
                ])
            ).json(secrets: .plain)
            change(&record)
            return record
        }
        let base = try record { _ in }
        let theirs = try record {
            $0["signature"] = ["past_window_seconds": 120, "future_window_seconds": 30]
            $0["evidence"] = ["record": true]
            $0["android"] = ["packages": ["a"]]
        }
        let mine = try record {
            $0["signature"] = ["past_window_seconds": 120, "future_window_seconds": 10, "unsigned_query": "refuse"]
            $0["keys"] = nil
            $0["zzz"] = 1
        }
        let merge = RecordMerge(base: base, theirs: theirs, mine: mine)
        #expect(
            merge.differences.map { "\($0.name) \($0.side)" } == [
                "android theirs", "signature.past_window_seconds alike", "signature.future_window_seconds both",
                "signature.unsigned_query mine", "evidence.record theirs",
            ])
        for isMine in [true, false] {
            let merged = merge.merged([isMine])
            #expect(merged["signature"]?["future_window_seconds"]?.integer == (isMine ? 10 : 30))
            #expect(merged["signature"]?["unsigned_query"]?.string == "refuse")
            #expect(merged["android"]?["packages"]?.elements.count == 1)
            // Unknown members stay, so that the admin API refuses them.
            #expect(merged["zzz"]?.integer == 1)
        }
        #expect(RecordMerge(base: base, theirs: base, mine: mine).conflicts.isEmpty)
        #expect(RecordMerge(base: nil, theirs: base, mine: base).differences.isEmpty)
    }

    @Test func `hostile text in all three records changes no tag of the page`() async throws {
        func tags(_ text: String) async throws -> [String] {
            let desk = try await Desk()
            let browser = try await desk.signedIn(.admin)
            try await Self.others(desk, browser) { $0["name"] = .string(text + "1") }
            let mine = try await Self.draft(desk) { $0["name"] = .string(text + "2") }
            try await Self.others(desk, browser) { $0["name"] = .string(text + "3") }
            let answer = try await browser.submit(Self.change, mine)
            #expect(answer.status == 412)
            return Markup.tags(answer.text)
        }
        let harmless = try await tags("harmless")
        for attack in EscapingTests.attacks { #expect(try await tags(attack) == harmless, "\(attack)") }
    }
}

import AuthContract
import AuthServer
import AuthService
import StoreConformance
import StrictJSON
import Testing

@testable import Console

/// The console's pages about credentials, signing keys and webhooks.
@Suite struct AccessTests {
    private static let path = "/console/access"
    private static let creation = path + "/credentials/create"

    private static func webhook(_ desk: Desk) async throws -> String {
        try await desk.service.webhooks.add(
            url: "https://receiver.example.com/events", scope: .allApps, codes: [], actor: "test"
        ).0.id
    }

    @Test func `a new credential's text is shown once, kept nowhere, and works`() async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.admin)
        let fields = [("name", "Ada"), ("role", "operator"), ("app", Desk.app), ("days", "7")]
        let preview = try await browser.submit(Self.creation, fields + [("preview", "yes")])
        #expect(!preview.text.contains("sya_"))
        #expect(preview.text.contains("credentials create --name Ada --role operator --app \(Desk.app) --days 7"))
        let answer = try await browser.submit(Self.creation, fields)
        #expect(answer.status == 200 && answer.cacheControl == "no-store")
        let text = try #require(answer.text.components(after: "class=\"secret\" tabindex=\"0\"><code>")).prefix {
            $0 != "<"
        }
        try await Browser(desk).signIn(String(text))
        for path in [Self.path, "/console/audit"] {
            #expect(await browser.get(path).text.contains(text) == false, "\(path)")
        }
        #expect(await browser.get(Self.path).text.contains("Ada"))
        let created = try #require(try await desk.service.credentials.list().first { $0.name == "Ada" })
        let app = try AppID(Desk.app)
        #expect(created.role == .operator && created.scope == .apps([app]))
        #expect(created.expiresAt == desk.clock.now + 7 * 86_400)
    }

    @Test(arguments: [
        [], [("app", Desk.app), ("app", Desk.app)], [("app", ""), ("app", Desk.app)],
    ]) func `a form that does not say once for which app creates nothing`(_ fields: [(String, String)]) async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.admin)
        let before = try await desk.service.credentials.list().count
        let answer = try await browser.submit(Self.creation, [("name", "x"), ("role", "viewer")] + fields)
        #expect(answer.status == 400)
        #expect(try await desk.service.credentials.list().count == before)
    }

    @Test func `a refused creation shows no text`() async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.admin)
        let answer = try await browser.submit(Self.creation, [("name", "x"), ("role", "service"), ("app", "")])
        #expect(answer.status >= 400 && answer.text.contains("role=\"alert\"") && !answer.text.contains("sya_"))
    }

    @Test(arguments: [
        ("a-b", "signing-keys revoke a-b --url http://\(Desk.host) --credential-file credential<"),
        ("-ab", "signing-keys revoke --url http://\(Desk.host) --credential-file credential -- -ab<"),
    ])
    func `the id of a signing key is no option of its command`(kid: String, command: String) async throws {
        let page = await (try await Desk().signedIn(.admin)).get("\(Self.path)/signing-keys/\(kid)/revoke").text
        #expect(page.contains("<code>synheart-auth \(command)"))
    }

    @Test(arguments: [CredentialRole.viewer, .operator, .admin])
    func `only an admin for all apps sees credentials and buttons`(role: CredentialRole) async throws {
        let desk = try await Desk()
        let id = try await desk.credential(.viewer, name: "other").id
        for apps in [[], [Desk.app]] {
            let browser = try await desk.signedIn(role, apps: apps)
            let page = await browser.get(Self.path)
            let isAll = role == .admin && apps.isEmpty
            #expect(page.status == 200)
            #expect(page.text.contains(id) == isAll)
            #expect(page.text.contains(Self.path + "/signing-keys/rotate") == isAll)
            for path in [
                Self.creation, Self.path + "/credentials/\(id)/revoke", Self.path + "/signing-keys/rotate",
                Self.path + "/signing-keys/x/revoke",
            ] {
                #expect(await browser.get(path).status == (isAll ? 200 : 403), "\(path)")
            }
        }
    }

    @Test func `a revoked credential's sessions end, also one's own`() async throws {
        let desk = try await Desk()
        let (id, text) = try await desk.credential(.admin)
        let browser = Browser(desk)
        try await browser.signIn(text)
        let path = Self.path + "/credentials/\(id)/revoke"
        #expect(await browser.get(path).text.contains("It is your own"))
        #expect(try await browser.submit(path).status == 303)
        #expect(await browser.get(Self.path).status == 303)
        #expect(try await desk.codes().first == "credential.revoked")
    }

    @Test func `signing keys are rotated and revoked`() async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.admin)
        #expect(try await browser.submit(Self.path + "/signing-keys/rotate").status == 303)
        #expect(try await desk.codes().first == "signing_key.rotated")
        let key = try #require(try await desk.service.signingKeys.list().first)
        #expect(await browser.get(Self.path).text.contains(key.id))
        #expect(try await browser.submit(Self.path + "/signing-keys/\(key.id)/revoke").status == 303)
        #expect(try await desk.codes().first == "signing_key.revoked")
    }

    @Test func `a webhook is switched off and on, delivers again, and is removed`() async throws {
        let desk = try await Desk()
        let id = try await Self.webhook(desk)
        let browser = try await desk.signedIn(.admin)
        let path = Self.path + "/webhooks/\(id)"
        func isShown(_ change: WebhookAction) async -> Bool {
            await browser.get(Self.path).text.contains("href=\"\(path)/\(change.rawValue)\"")
        }
        func isEnabled() async throws -> Bool? { try await desk.service.webhooks.webhook(id)?.isEnabled }
        #expect(await isShown(.disable))
        #expect(await isShown(.enable) == false)
        #expect(try await browser.submit(path + "/disable").status == 303)
        #expect(try await isEnabled() == false)
        #expect(await isShown(.enable))
        #expect(try await browser.submit(path + "/enable").status == 303)
        #expect(try await isEnabled() == true)
        for wrong in ["x", "-1", "99999999999999999999"] {
            #expect(try await browser.submit(path + "/resend", [("after", wrong)]).status == 400)
        }
        #expect(try await browser.submit(path + "/resend", [("after", "0")]).status == 303)
        #expect(try await desk.service.webhooks.webhook(id)?.position == 0)
        #expect(try await browser.submit(path + "/remove").status == 303)
        #expect(try await desk.service.webhooks.webhook(id) == nil)
        #expect(await browser.get(path + "/remove").status == 404)
    }

    @Test func `hostile names change no page`() async throws {
        func tags(_ text: String) async throws -> [[String]] {
            let desk = try await Desk()
            let browser = try await desk.signedIn(.admin)
            let id = try await desk.credential(.viewer, name: text).id
            var pages: [[String]] = []
            for path in [Self.path, Self.path + "/credentials/\(id)/revoke"] {
                // Sorted, because the list is in the order of the random ids, and the person's own row has an additional tag.
                pages.append(Markup.tags(await browser.get(path).text).sorted())
            }
            return pages
        }
        let harmless = try await tags("harmless")
        for attack in EscapingTests.attacks { #expect(try await tags(attack) == harmless, "\(attack)") }
    }
}

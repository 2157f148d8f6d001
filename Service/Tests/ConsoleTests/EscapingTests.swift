import AuthContract
import AuthServer
import AuthService
import StrictJSON
import TestHelpers
import Testing

@testable import Console

/// Text from other people is never markup.
@Suite struct EscapingTests {
    /// Texts that would end a tag, an attribute or an element if they were not escaped. Some of them join a syntax character with
    /// its neighbour into one grapheme cluster.
    static let attacks = [
        "<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "' onfocus=alert(1) autofocus='",
        "\"\u{301} onfocus=alert(1) autofocus x=\"", "\u{600}\" onfocus=alert(1) x=\"", "<\u{338}script>",
        "\"\u{200D} a=\"b",
        "</textarea></title></script><b>", "{{title}}{{{page.token}}}", "&lt;script&gt;", "javascript:alert(1)",
    ]

    @Test func `a page has the same tags whatever its texts are`() async throws {
        let renderer = try PageRenderer()
        let partial = Templates.partials.values.flatMap(Self.names)
        for (name, template) in Templates.all {
            let names = Set(Self.names(template) + partial)
            func tags(_ text: String) -> [String] {
                let values = Self.values(names, of: template, text)
                let answer = renderer.answer(Page(text, name, values), nil, at: UnixTime(0))
                return Markup.tags(answer.text)
            }
            let harmless = tags("harmless")
            #expect(harmless.count > 10)
            for attack in Self.attacks { #expect(tags(attack) == harmless, "\(name): \(attack)") }
        }
    }

    /// A value for every name of a template: a list for a section, a text otherwise.
    private static func values(_ names: Set<String>, of template: String, _ text: String) -> [String: PageValue] {
        let leaf = PageValue.object(Dictionary(uniqueKeysWithValues: names.map { ($0, .text(text)) }))
        return Dictionary(
            uniqueKeysWithValues: names.map { name in
                let isSection = template.contains("{{#\(name)}}")
                return (name, isSection ? .list([leaf]) : .text(text))
            })
    }

    private static func names(_ template: String) -> [String] {
        template.matches(of: /\{\{[#^]?([A-Za-z]+)\}\}/).map { String($0.1) }
    }

    @Test func `no template has a tag that does not escape`() {
        for (name, text) in Templates.all.merging(Templates.partials, uniquingKeysWith: { first, _ in first }) {
            for tag in ["{{{", "{{&", "{{=", "{{%", "{{> *", "{{>*", "{{<*"] {
                #expect(!text.contains(tag), "\(name) has \(tag)")
            }
            // Every attribute has its value in quotes. Without them, a text with a space would begin another attribute.
            #expect(text.firstMatch(of: /=\{\{/) == nil, "\(name)")
        }
    }

    @Test func `hostile text of devices, credentials and reasons changes no page`() async throws {
        func tags(_ text: String) async throws -> [[String]] {
            let desk = try await Desk()
            let device = try await desk.addDevice(label: text, localID: text)
            let browser = try await desk.signedIn(.admin, name: text)
            _ = try await browser.submit("/console/devices/\(Desk.app)/\(device)/revoke", [("reason", text)])
            var pages: [[String]] = []
            for path in [
                "/console", "/console/devices", "/console/devices/\(Desk.app)/\(device)", "/console/audit",
                "/console/account", "/console/audit/verification", "/console/history",
            ] {
                let answer = await browser.get(path)
                #expect(answer.status == 200, "\(path)")
                pages.append(Markup.tags(answer.text))
            }
            return pages
        }
        let harmless = try await tags("harmless")
        for attack in Self.attacks { #expect(try await tags(attack) == harmless, "\(attack)") }
    }

    @Test(arguments: [
        "/console/devices", "/console/audit", "/console/audit/verification", "/console/sign-in", "/console/history",
    ])
    func `hostile text of a query changes no page`(path: String) async throws {
        let browser = try await Desk().signedIn(.viewer)
        let names = [
            "app", "device", "status", "platform", "cursor", "before", "head", "next", "check", "period", "by", "kind",
            "code", "version",
        ]
        for (row, name) in names.enumerated() {
            func tags(_ value: String) async -> [String] {
                var request = browser.request("GET", path)
                request.query = PageFields([(name, value)])
                return Markup.tags(await browser.desk.console.answer(request, with: browser.desk.pages).text)
            }
            // Like the attacks, this value matches nothing, so the page must handle all of them in the same way.
            let harmless = await tags("no-such~value")
            for (column, attack) in Self.attacks.enumerated() where isSampled(row + column) {
                #expect(await tags(attack) == harmless, "\(name)=\(attack)")
            }
        }
    }

    @Test(arguments: [
        ("a\u{202E}b", "a\\u{202e}b"), ("a\u{0}b", "a\\u{0}b"), ("a\nb", "a\\u{a}b"), ("a\u{200B}b", "a\\u{200b}b"),
        ("a\u{FEFF}b", "a\\u{feff}b"), ("a\u{A0}b", "a\\u{a0}b"), ("é 鍵 ключ", "é 鍵 ключ"), ("a\"b<c>", "a\"b<c>"),
        ("\"\u{301}x", "\"\\u{301}x"), ("\u{E000}", "\\u{e000}"), ("\u{2028}", "\\u{2028}"),
        ("\u{E0041}", "\\u{e0041}"),
    ])
    func `characters that cannot be seen are written out`(text: String, shown: String) {
        #expect(VisibleText.of(text) == shown)
    }

    @Test func `the lines of a command stay`() {
        #expect(VisibleText.of("a \\\n\tb\r", keepsLines: true) == "a \\\n\tb\\u{d}")
    }

    @Test func `a command has its invisible characters as escapes of JSON`() {
        let call = AdminCall(
            .changeApp, ["app_id": Desk.app], body: JSONObject([("name", "a\u{A0}b\u{200D}\u{1F600}c\u{7F}")]))
        let curl = CallCommands(call, origin: "http://localhost").curl
        #expect(curl.contains(#"{"name":"a\u00a0b\u200d\ud83d\ude00c\u007f"}"#))
    }

    @Test(arguments: ["it's", "$(reboot)", "a b", "`id`", "", "a\nb", "!x", "\\", "*"])
    func `a word of a command is one word of the shell`(word: String) {
        let quoted = Shell.quoted(word)
        #expect(quoted.hasPrefix("'") && quoted.hasSuffix("'"))
        #expect(quoted.dropFirst().dropLast().replacing("'\\''", with: "").contains("'") == false)
    }
}

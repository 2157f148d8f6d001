import AuthContract
import AuthServer
import AuthService
import Bytes
import Crypto
import StoreConformance
import StrictJSON
import Testing

@testable import Console

/// The set-up of an app, step by step, and the wait for its first device.
@Suite struct SetUpTests {
    private static let path = "/console/set-up"
    private static let id = "com.example.new"
    private static let digest = [UInt8](repeating: 0xAB, count: 32)

    /// A person's input in each step.
    private static let answers: [SetUpStep: [(String, String)]] = [
        .app: [
            ("app_id", id), ("app_name", "New"), ("channel", "production"), ("with_ios", "yes"),
            ("with_android", "yes"),
        ],
        .ios: [("team_id", " TEAMID1234 "), ("bundle_id", id), ("environments", "production")],
        .android: [
            ("package", id), ("digests", digest.map { Hexadecimal.encode([$0]).uppercased() }.joined(separator: ":")),
            ("decryption_key", Base64.standard.encode([UInt8](repeating: 7, count: 32))),
            ("verification_key", DevicePublicKey(P256.Signing.PrivateKey().publicKey).base64),
        ],
        .policy: [("mode", "observe"), ("approval", "manual"), ("record_refusals", "yes")],
        .review: [],
    ]

    /// The current step of a page, and the hidden fields of its form.
    private static func form(_ page: String) throws -> (step: SetUpStep, hidden: [(String, String)]) {
        let hidden = page.matches(of: /<input type="hidden" name="([a-z_]+)" value="([^"]*)">/)
            .map { (String($0.1), String($0.2).replacing("&quot;", with: "\"").replacing("&amp;", with: "&")) }
        let step = try #require(hidden.first { $0.0 == "step" }.flatMap { SetUpStep(rawValue: $0.1) })
        return (step, hidden.filter { !["token", "step"].contains($0.0) })
    }

    /// Answers each step before `last`, and returns the page of `last`.
    private static func go(
        to last: SetUpStep, _ browser: Browser, but changed: [String: String] = [:]
    ) async throws -> String {
        var page = await browser.get(Self.path).text
        for _ in SetUpStep.allCases {
            let (step, hidden) = try form(page)
            if step == last { break }
            let typed = (answers[step] ?? []).map { ($0.0, changed[$0.0] ?? $0.1) }.filter { !$0.1.isEmpty }
            let fields = [("step", step.rawValue), ("go", "next")] + hidden + typed
            page = try await browser.submit(Self.path, fields).text
        }
        return page
    }

    private static func add(_ browser: Browser, _ page: String) async throws -> PageAnswer {
        let (step, hidden) = try form(page)
        return try await browser.submit(path, [("step", step.rawValue), ("go", "add")] + hidden)
    }

    @Test func `the steps end with one call that adds the record, and with the wait for a device`() async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.admin)
        let page = try await Self.go(to: .review, browser)
        #expect(try Self.form(page).step == .review)
        let before = try await desk.codes()
        #expect(page.contains("synheart-auth apps add --file app.json") && page.contains("/admin/v1/apps"))
        #expect(page.contains("aria-current=\"step\">Check and add</li>"))
        #expect(page.contains("<a href=\"/console/apps\" aria-current=\"page\">Apps</a>"))
        let answer = try await Self.add(browser, page)
        #expect(answer.location == "/console/apps/\(Self.id)/first-device")
        #expect(try await desk.codes().count == before.count + 1)
        #expect(try await desk.codes().first == "app.added")
        let record = try #require(try await desk.service.apps.record(AppID(Self.id)))
        #expect(record.name == "New" && record.mode == .observe && record.registration.approval == .manual)
        #expect(record.evidence.record && record.ios?.appIDs == ["TEAMID1234.\(Self.id)"])
        #expect(record.android?.certificateDigests == [Self.digest] && record.android?.packages == [Self.id])
        #expect(record.android?.playIntegrity.keys.count == 1)
        let next = await browser.get(try #require(answer.location)).text
        #expect(next.contains("The app is added.") && next.contains("No device has registered yet"))
        #expect(next.contains("data-refresh=\"5\""))
    }

    @Test func `no page shows a secret but in the form that sends it on`() async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.admin)
        let page = try await Self.go(to: .review, browser)
        let secret = try #require(Self.answers[.android]?.first { $0.0 == "decryption_key" }?.1)
        #expect(page.matches(of: /name="decryption_key"/).count == 1)
        #expect(page.split(separator: secret).count == 2)
        #expect(page.contains("(secret)"))
        _ = try await Self.add(browser, page)
        let next = await browser.get("/console/apps/\(Self.id)/first-device").text
        #expect(next.contains("The app is added.") && !next.contains(secret))
    }

    @Test(arguments: [
        (SetUpStep.app, "app_id", ""), (.app, "app_id", "a b"), (.app, "app_id", "<script>"),
        (.app, "app_id", Desk.app), (.app, "channel", "beta"), (.app, "app_name", "a\u{202E}b"),
        (.app, "app_name", String(repeating: "a", count: 129)), (.ios, "team_id", ""), (.ios, "bundle_id", ""),
        (.ios, "bundle_id", "a b"), (.ios, "environments", "sandbox"), (.android, "package", ""),
        (.android, "digests", ""), (.android, "digests", "AB:CD"),
        (.android, "digests", String(repeating: "z", count: 64)),
        (.android, "decryption_key", "AAAA"), (.android, "decryption_key", ""), (.android, "verification_key", "AAAA"),
        (.policy, "mode", "off"), (.policy, "approval", "no"),
    ])
    func `a wrong answer is told at its step, and marked`(step: SetUpStep, field: String, value: String) async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.admin)
        let page = try await Self.go(to: .review, browser, but: [field: value])
        #expect(try Self.form(page).step == step)
        #expect(page.contains("class=\"problem\" role=\"alert\"") && page.contains("aria-invalid=\"true\""))
        // Sending only the last step does not add the app either.
        let all = SetUpStep.allCases.flatMap { Self.answers[$0] ?? [] }.map { ($0.0, $0.0 == field ? value : $0.1) }
        let answer = try await browser.submit(Self.path, all + [("step", "review"), ("go", "add")])
        #expect(answer.status == 400)
        #expect(try Self.form(answer.text).step == step)
        #expect(try await desk.service.apps.records().count == 1)
    }

    @Test func `a record without a platform, and development mode in production, are refused`() async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.admin)
        for further in [[], [("with_ios", "yes"), ("development", "yes"), ("channel", "production")]] {
            let answer = try await browser.submit(
                Self.path, [("step", "app"), ("go", "next"), ("app_id", Self.id)] + further)
            #expect(answer.status == 400)
            #expect(answer.text.matches(of: /aria-invalid="true"/).count == 2)
        }
    }

    @Test(arguments: ["{", "[]", "{\"client_email\": 1}", "7"])
    func `text that is not a service account is refused`(text: String) async throws {
        let browser = try await Desk().signedIn(.admin)
        let page = try await Self.go(to: .android, browser)
        let (step, hidden) = try Self.form(page)
        let fields = hidden + (Self.answers[.android] ?? []) + [("service_account", text)]
        let answer = try await browser.submit(Self.path, fields + [("step", step.rawValue), ("go", "next")])
        #expect(answer.status == 400 && answer.text.contains("Service account"))
    }

    @Test func `going back keeps the answers without checking them`() async throws {
        let browser = try await Desk().signedIn(.admin)
        let (step, hidden) = try Self.form(try await Self.go(to: .android, browser))
        let page = try await browser.submit(
            Self.path, hidden + [("step", step.rawValue), ("go", "back"), ("package", "half")])
        #expect(page.status == 200)
        #expect(try Self.form(page.text).step == .ios)
        #expect(page.text.contains("name=\"bundle_id\" value=\"\(Self.id)\""))
        #expect(page.text.contains("<input type=\"hidden\" name=\"package\" value=\"half\">"))
    }

    @Test func `Android without keys and without an account is warned about`() async throws {
        let browser = try await Desk().signedIn(.admin)
        let page = try await Self.go(to: .review, browser, but: ["decryption_key": "", "verification_key": ""])
        #expect(try Self.form(page).step == .review)
        #expect(page.contains("There are neither response keys nor a service account"))
    }

    @Test func `an app that was added meanwhile is told on the last page`() async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.admin)
        let page = try await Self.go(to: .review, browser)
        try await desk.addApp(Self.id)
        let answer = try await Self.add(browser, page)
        #expect(answer.status == 400 && answer.text.contains("there is an app with this id already"))
    }

    @Test(arguments: [(CredentialRole.viewer, []), (.operator, []), (.admin, [Desk.app]), (.admin, [])])
    func `only an admin for all apps is offered a set-up`(role: CredentialRole, apps: [String]) async throws {
        let browser = try await Desk().signedIn(role, apps: apps)
        let may = role == .admin && apps.isEmpty
        #expect(await browser.get("/console/apps").text.contains("href=\"\(Self.path)\"") == may)
        #expect(await browser.get(Self.path).status == (may ? 200 : 403))
        let token = try await browser.token(at: "/console/account")
        let answer = await browser.post(Self.path, [("token", token), ("step", "app"), ("go", "next")])
        #expect(answer.status == (may ? 400 : 403))
    }

    @Test(arguments: [SetUpStep.app, .ios, .android])
    func `hostile answers change no tag of a page`(step: SetUpStep) async throws {
        let browser = try await Desk().signedIn(.admin)
        let (_, hidden) = try Self.form(try await Self.go(to: step, browser))
        func tags(_ text: String, _ go: String) async throws -> [String] {
            let fields = step.fields.map { field -> (String, String) in
                if case .check = field.kind { return (field.name, "yes") }
                return (field.name, text)
            }
            let answer = try await browser.submit(
                Self.path, hidden + fields + [("step", step.rawValue), ("go", go)])
            #expect(answer.status == (go == "next" ? 400 : 200))
            // The page marks the invalid fields. Which fields are invalid depends on the text, so the tags of fields are not compared.
            return Markup.tags(answer.text).filter { tag in
                !["input", "textarea", "select"].contains { tag.hasPrefix($0) }
            }
        }
        for go in ["next", "back"] {
            let harmless = try await tags("no id", go)
            for attack in EscapingTests.attacks { #expect(try await tags(attack, go) == harmless, "\(attack)") }
        }
    }

    // MARK: The first device

    private static func refuse(_ code: String, _ count: Int64, _ desk: Desk) async throws {
        let verdict = CountedVerdict(
            appID: try AppID(Desk.app), kind: .registration, platform: .ios, code: code, scheme: .one, version: nil)
        let time = desk.clock.now - 120
        try await desk.stores.add(
            VerdictBatch(
                id: DeviceID(from: SystemRandom()).text, minute: time - time.seconds % 60, counts: [verdict: count]))
    }

    @Test func `the wait says what was refused and what to check, until a device is registered`() async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.viewer)
        let path = "/console/apps/\(Desk.app)/first-device"
        #expect(await browser.get("/console/apps/\(Desk.app)").text.contains("href=\"\(path)\""))
        let empty = await browser.get(path).text
        #expect(empty.contains("No registration of this app has arrived."))
        // A viewer may not list recorded refusals, so the page does not offer them.
        #expect(!empty.contains("Recorded refusals"))
        try await Self.refuse("INVALID_ATTESTATION", 3, desk)
        let refused = await browser.get(path).text
        #expect(refused.contains("<code>INVALID_ATTESTATION</code>") && refused.contains("builds that Xcode installs"))
        #expect(refused.contains(">3</td>"))
        let pending = try await desk.addDevice(.pending)
        #expect(await browser.get(path).text.contains("/console/devices/\(Desk.app)/\(pending)"))
        let device = try await desk.addDevice()
        let done = await browser.get(path).text
        #expect(done.contains("The set-up is done.") && done.contains("/console/devices/\(Desk.app)/\(device)"))
        #expect(!done.contains("data-refresh"))
        #expect(await browser.get("/console/apps/\(Desk.app)").text.contains("href=\"\(path)\"") == false)
    }

    @Test func `an operator sees recorded refusals, and nobody sees another app's wait`() async throws {
        let desk = try await Desk()
        try await desk.addApp("com.example.other")
        let browser = try await desk.signedIn(.operator, apps: [Desk.app])
        let page = await browser.get("/console/apps/\(Desk.app)/first-device")
        #expect(page.status == 200 && page.text.contains("Recorded refusals"))
        #expect(await browser.get("/console/apps/com.example.other/first-device").status == 403)
        #expect(await browser.get("/console/apps/com.example.none/first-device").status == 403)
    }

    @Test func `every code of a refusal has a sentence`() {
        for code in ErrorCode.allCases {
            #expect(!RegistrationAdvice.sentence(code.rawValue, on: "android").isEmpty)
        }
        #expect(RegistrationAdvice.sentence("registered", on: "ios").isEmpty)
    }

    @Test func `the answers make a record that the parser accepts, with defaults for the rest`() throws {
        let fields = SetUpStep.allCases.flatMap { Self.answers[$0] ?? [] }
        let answers = SetUpAnswers(PageFields(fields))
        #expect(answers.steps == SetUpStep.allCases)
        let record = try AppRecord(JSONFields(.object(answers.record)))
        #expect(record.buildChannel == .production && record.signature.minimumScheme == .one)
        #expect(SetUpAnswers(PageFields()).steps == [.app, .policy, .review])
    }
}

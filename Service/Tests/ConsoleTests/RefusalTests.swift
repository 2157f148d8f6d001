import AttestationInspection
import AttestationTestKit
import AuthContract
import AuthServer
import Bytes
import Console
import Foundation
import StoreConformance
import StrictJSON
import Testing
import Verification

@testable import AuthService

/// Recorded refusals: who sees them, and their replay.
@Suite struct RefusalTests {
    private static let now = Date(timeIntervalSince1970: 1_790_000_000)
    private static let authority = try? AppleAuthority(from: now - 30 * 86400)
    private static let appID = "TEAMID1234.com.example.app"

    /// A recorded attestation that is refused only for its validation category. The recording has its roots and its policy.
    private static func evidence() throws -> RecordingFile {
        let authority = try #require(authority)
        let device = AppleDevice(system: .iOS("27.0.1"), app: AppleApp(appID: appID), authority: authority)
        let object = try device.attest(AppleAttestKey(), clientDataHash: [1, 2, 3], at: now)
        var options = VerificationOptions()
        options.rootsPEM = authority.rootsPEM
        options.policy = ["ios": ["app_ids": [.string(appID)], "categories": [2]]]
        let line = JSONObject([
            ("format", "app-attest-attestation"), ("object", .string(Base64.standard.encode(object))),
            ("client_data_hash", .string(Base64.standard.encode([1, 2, 3]))), ("valid_at", "2026-09-21T14:13:20Z"),
        ])
        let about = JSONObject([("occasion", "registration"), ("recorded_at", "2026-09-21T14:13:20Z")])
        return try RecordingFile(of: line, options: options, about: about)
    }

    /// Keeps a document as the service does, and returns its id.
    private static func keep(
        _ document: JSONObject, code: String = "CATEGORY_NOT_ALLOWED", step: String = "extensions", in desk: Desk
    ) async throws -> String {
        let id = DeviceID(from: SystemRandom()).text
        let app = try AppID(Desk.app)
        let key = try #require(ServiceKey([UInt8](repeating: 7, count: 32)))
        let summary = RecordingSummary(
            id: id, appID: app, deviceID: nil, recordedAt: desk.clock.now, expiresAt: desk.clock.now + 86_400,
            format: "app-attest-attestation", code: code, step: step)
        let sealed = try key.seal(
            JSONValue.object(document).bytes, context: RefusalRecorder.context(id, of: app))
        try await desk.stores.keep(RecordedRefusal(summary: summary, sealed: sealed), within: .standard)
        return id
    }

    @Test func `a refusal is replayed check by check, and the audit log has who read it`() async throws {
        let desk = try await Desk()
        let id = try await Self.keep(Self.evidence().json, in: desk)
        _ = try await Self.keep(Self.evidence().json, in: desk)
        let (credential, text) = try await desk.credential(.operator)
        let browser = Browser(desk)
        try await browser.signIn(text)
        let list = await browser.get("/console/refusals").text
        #expect(list.contains("/console/refusals/\(Desk.app)/\(id)"))
        #expect(list.contains("<button><span>CATEGORY_<wbr>NOT_<wbr>ALLOWED<wbr></span></button>"))
        let before = try await desk.codes()
        let closed = await browser.get("/console/refusals/\(Desk.app)/\(id)")
        #expect(closed.status == 200 && !closed.text.contains("CATEGORY_NOT_ALLOWED"))
        #expect(await browser.post("/console/refusals/\(Desk.app)/\(id)", []).status == 403)
        #expect(try await desk.codes() == before)
        let page = try await browser.submit("/console/refusals/\(Desk.app)/\(id)")
        #expect(page.status == 200)
        #expect(page.text.contains("Refusal CATEGORY_NOT_ALLOWED"))
        #expect(page.text.contains("<strong>extensions</strong></span> <span class=\"state\">failed</span>"))
        #expect(page.text.contains("The same checks refuse it again now."))
        #expect(page.text.contains("Certificate of the key"))
        #expect(page.text.contains("<dd>1 of those that are recorded</dd>"))
        let event = try #require(
            try await desk.stores.events(app: nil, device: nil, before: nil, limit: 1).first?.event)
        #expect(event.code == .evidenceExported && event.actor == "admin:\(credential)")
    }

    @Test func `a replay with another result says so`() async throws {
        let desk = try await Desk()
        var document = try Self.evidence().json
        document["policy"] = ["ios": ["app_ids": [.string(Self.appID)]]]
        let id = try await Self.keep(document, in: desk)
        let page = try await (try await desk.signedIn(.operator)).submit("/console/refusals/\(Desk.app)/\(id)").text
        #expect(page.contains("The same checks now say:") && !page.contains("refuse it again"))
    }

    @Test func `a viewer sees none, an operator erases none, an admin does both`() async throws {
        let desk = try await Desk()
        let id = try await Self.keep(Self.evidence().json, in: desk)
        let path = "/console/refusals/\(Desk.app)/\(id)"
        let viewer = try await desk.signedIn(.viewer)
        #expect(await viewer.get("/console/refusals").status == 403)
        #expect(await viewer.get(path).status == 403)
        #expect(await viewer.get("/console").text.contains("/console/refusals") == false)
        let person = try await desk.signedIn(.operator)
        #expect(try await person.submit(path).text.contains(path + "/erase") == false)
        #expect(await person.get(path + "/erase").status == 403)
        let admin = try await desk.signedIn(.admin)
        #expect(try await admin.submit(path).text.contains("href=\"\(path)/erase\""))
        #expect(try await admin.submit(path + "/erase").status == 303)
        #expect(try await desk.codes().first == "evidence.erased")
        #expect(try await admin.submit(path).status == 404)
    }

    @Test func `a credential for another app has no refusal`() async throws {
        let desk = try await Desk()
        try await desk.addApp("com.example.other")
        let id = try await Self.keep(Self.evidence().json, in: desk)
        let browser = try await desk.signedIn(.admin, apps: ["com.example.other"])
        #expect(await browser.get("/console/refusals/\(Desk.app)/\(id)").status == 403)
        #expect(await browser.get("/console/refusals").text.contains(id) == false)
    }

    @Test(arguments: EscapingTests.attacks)
    func `hostile text of a proof changes no page`(attack: String) async throws {
        func tags(_ text: String) async throws -> [[String]] {
            let desk = try await Desk()
            var document = try Self.evidence().json
            document["about"] = ["occasion": .string(text), "recorded_at": "2026-09-21T14:13:20Z"]
            document["verdict"] = ["outcome": "refused", "code": .string(text), "step": .string(text)]
            let id = try await Self.keep(document, code: text, step: text, in: desk)
            let browser = try await desk.signedIn(.operator)
            var pages: [[String]] = []
            let path = "/console/refusals/\(Desk.app)/\(id)"
            for answer in [
                await browser.get("/console/refusals"), await browser.get(path), try await browser.submit(path),
            ] {
                #expect(answer.status == 200)
                pages.append(Markup.tags(answer.text))
            }
            return pages
        }
        #expect(try await tags(attack) == tags("harmless"))
    }

    @Test func `a document that is no recording is explained`() async throws {
        let desk = try await Desk()
        let id = try await Self.keep(JSONObject([("synheart_evidence", 2)]), in: desk)
        let answer = try await (try await desk.signedIn(.operator)).submit("/console/refusals/\(Desk.app)/\(id)")
        #expect(answer.status == 500 && answer.text.contains("cannot be replayed"))
    }
}

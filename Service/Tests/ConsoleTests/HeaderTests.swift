import AuthServer
import AuthService
import Testing

@testable import Console

/// The headers of pages and files.
@Suite struct HeaderTests {
    private static let policy =
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
        + "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

    @Test func `every page forbids frames, other origins and caches`() async throws {
        let desk = try await Desk()
        let device = try await desk.addDevice()
        let browser = try await desk.signedIn(.admin)
        let paths = [
            "/console", "/console/", "/console/sign-in", "/console/account", "/console/devices", "/console/audit",
            "/console/audit/verification", "/console/devices/\(Desk.app)/\(device)",
            "/console/devices/\(Desk.app)/\(device)/revoke", "/console/nowhere", "/console/history",
            "/console/refusals",
            "/console/apps", "/console/apps/\(Desk.app)", "/console/apps/\(Desk.app)/change", "/console/access",
            "/console/access/credentials/create",
        ]
        for path in paths {
            let answer = await browser.get(path)
            #expect(answer.body != nil, "\(path)")
            #expect(answer.header("Content-Security-Policy") == Self.policy)
            #expect(answer.header("X-Frame-Options") == "DENY")
            #expect(answer.header("Referrer-Policy") == "same-origin")
            #expect(answer.header("Cross-Origin-Opener-Policy") == "same-origin")
            #expect(answer.header("Cross-Origin-Resource-Policy") == "same-origin")
            #expect(answer.header("Permissions-Policy") != nil)
            #expect(answer.cacheControl == "no-store")
            #expect(answer.contentType == "text/html; charset=utf-8")
        }
    }

    @Test func `files are named by their content and kept for ever`() async throws {
        let browser = Browser(try await Desk())
        let page = await browser.get("/console/sign-in").text
        for asset in [Assets.stylesheet, Assets.script] {
            #expect(page.contains("\"\(asset.path)\""))
            let answer = await browser.get(asset.path)
            #expect(answer.status == 200 && answer.body == asset.bytes)
            #expect(answer.cacheControl == "public, max-age=31536000, immutable")
            #expect(answer.route == nil)
        }
        #expect(await browser.get("/console/assets/console-0000000000000000.css").status == 303)
    }

    @Test func `no page has an inline style or script, or names another origin`() async throws {
        for (name, text) in Templates.all.merging(Templates.partials, uniquingKeysWith: { first, _ in first }) {
            #expect(!text.contains("style="), "\(name)")
            #expect(!text.contains("<style"), "\(name)")
            #expect(!text.contains("<script>"), "\(name)")
            #expect(!text.contains(" on" + "click="), "\(name)")
            #expect(!text.contains("//") || name == "layout", "\(name)")
        }
        // The only `//` is in the namespace of the icon, which is a name and not an address.
        #expect(Templates.layout.ranges(of: "//").count == 1)
    }
}

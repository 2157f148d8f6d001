import AuthContract
import AuthServer
import AuthService
import StoreConformance
import Testing

@testable import Console

/// The archived part of the audit log, and whether the archive files and the log form one chain.
@Suite struct AuditArchiveTests {
    private static let path = "/console/audit/archive"

    @Test func `a log that begins with its first event has no archive`() async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.admin)
        let page = await browser.get(Self.path)
        #expect(page.status == 200 && page.text.contains("Nothing is archived."))
        #expect(page.text.contains("synheart-auth audit verify --url"))
        #expect(await browser.get("/console/audit").text.contains("href=\"\(Self.path)\""))
    }

    @Test func `the page says which events are archived and since when the log goes on`() async throws {
        let desk = try await Desk()
        _ = try await desk.addDevice()
        let link = try #require(try await desk.stores.link(at: nil))
        desk.clock.advance(40 * 86_400)
        let browser = try await desk.signedIn(.admin)
        let archive = StoredAuditArchive(first: 1, last: link.sequence, hash: link.hash, seal: "seal")
        try #require(try await desk.stores.add(archive))
        #expect(try await desk.stores.removeArchivedEvents(limit: 1000) == Int(link.sequence))
        desk.clock.advance(3 * 3600)
        try await browser.signIn(try await desk.credential(.admin).text)
        let page = await browser.get(Self.path).text
        #expect(page.contains("Events 1 to \(link.sequence) are in archive files."))
        #expect(page.contains("begins with event \(link.sequence + 1)") && page.contains("3 hours ago"))
        // The check covers the archive too. The seal of this archive is not a valid signature.
        let checked = await browser.post(
            "/console/audit/verification", [("token", try await browser.token(at: Self.path))])
        #expect(checked.text.contains("Changed: the archive of event 1"))
    }

    @Test func `only a credential for all apps sees the archive`() async throws {
        let desk = try await Desk()
        #expect(await (try await desk.signedIn(.viewer)).get(Self.path).status == 200)
        let bound = try await desk.signedIn(.admin, apps: [Desk.app])
        #expect(await bound.get(Self.path).status == 403)
        #expect(await bound.get("/console/audit").text.contains(Self.path) == false)
    }
}

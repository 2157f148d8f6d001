import Foundation
import ServiceTestHelpers
import StrictJSON
import Testing

/// `synheart-auth conformance`, as an operator runs it.
@Suite(.serialized) struct ConformanceTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    // MARK: The list

    private static let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../../../docs/")

    /// The cases for services, or those for clients.
    private func list(_ command: [String] = []) async throws -> [JSONObject] {
        let listed = try await Binary.run(["conformance"] + command + ["--list", "--json"])
        #expect(listed.status == 0, "\(listed.errors)")
        return try listed.output.split(separator: "\n").map {
            try #require(try JSONValue(parsing: Array($0.utf8)).object)
        }
    }

    @Test func `the page lists the cases as the program does`() async throws {
        let text = try String(contentsOf: Self.page.appendingPathComponent("conformance.md"), encoding: .utf8)
        let rows = text.split(separator: "\n").filter { $0.hasPrefix("|") && $0.contains("](protocol.md#") }
        let expected = (try await list() + list(["client"])).map { row in
            let (id, section) = (row["case"]?.string ?? "", row["section"]?.string ?? "")
            let anchor = section.lowercased().replacing(" ", with: "-")
            return "| `\(id)` | [\(section)](protocol.md#\(anchor)) | \(row["sentence"]?.string ?? "") |"
        }
        #expect(rows.map(String.init) == expected)
    }

    @Test func `each case has an id of its own and a section of the protocol`() async throws {
        let rows = try await list() + list(["client"])
        for command in [[], ["client"]] {
            let ids = try await list(command).map { $0["case"]?.string }
            #expect(Set(ids).count == ids.count)
        }
        let text = try String(contentsOf: Self.page.appendingPathComponent("protocol.md"), encoding: .utf8)
        let headings = Set(
            text.split(separator: "\n").filter { $0.hasPrefix("#") }.map {
                $0.drop { $0 == "#" }.trimmingCharacters(in: .whitespaces)
            })
        for row in rows { #expect(headings.contains(row["section"]?.string ?? ""), "\(row)") }
    }

    // MARK: The service

    @Test func `every case holds at the service, and no phone is left`() async throws {
        let installation = try await ConformanceInstallation(in: folder, hasOrigin: true)
        let gateway = try installation.gateway()
        let port = installation.service.port
        let second = try MeddlingProxy { await MeddlingProxy.pass($0, to: port) }
        let (status, results, errors) = try await installation.run(
            nil, [],
            [
                "--second-url", second.url, "--backend", gateway.url + "/v1/readings", "--other-app",
                DevelopmentDevice.appID, "--credential-file", folder.path("credential"), "--asserted-path", "/v1/pay",
                "--operations", installation.service.operationsURL,
            ], environment: ["SYNHEART_AUTH_CREDENTIAL": installation.fixture.credential])
        #expect(status == 0, "\(errors)")
        for (id, result) in results where result["result"] == "fails" {
            Issue.record("\(id): \(result["reason"]?.string ?? "") \(result["exchanges"]?.text() ?? "")")
        }
        // Without `--wait`, the command skips these two cases, because each waits for more than a minute.
        let skipped = Set(results.filter { $0.value["result"] == "skipped" }.keys)
        #expect(skipped == ["challenge-expiry", "overlap-end"])
        #expect(results.count == (try await list()).count)
        let left = try await Binary.run(
            ["devices", "list", "--app", ConformanceInstallation.app, "--status", "registered", "--json"]
                + installation.fixture.stores)
        #expect(left.output.filter { !$0.isWhitespace } == "[]", "\(left.output)")
        withExtendedLifetime((gateway, second)) {}
    }

    // MARK: The command line

    @Test func `a URL without a service, an unknown app, and cases that cannot be played end with exit code 2`()
        async throws
    {
        let port = try LoopbackPort.reserve()
        let installation = try await ConformanceInstallation(in: folder)
        let url = installation.service.publicURL
        let gone = try await installation.run("http://127.0.0.1:\(port)")
        #expect(gone.status == 2 && gone.errors.contains("cannot reach"), "\(gone.errors)")
        let none = try await installation.run(url, ["nodes-replay", "backend-replay"])
        #expect(none.status == 2 && none.errors.contains("no case could be played"), "\(none.errors)")
        #expect(none.results["nodes-replay"]?["result"] == "skipped")
        let unknown = try await Binary.run(
            ["conformance", "--url", url, "--app", "com.example.unknown", "--authority", folder.path("authority.pem")])
        #expect(unknown.status == 2 && unknown.errors.contains("has no app com.example.unknown"), "\(unknown.errors)")
    }

    @Test func `an app that does not trust the authority fails, and the reason says what to do`() async throws {
        let installation = try await ConformanceInstallation(in: folder)
        let result = try await Binary.run([
            "conformance", "--url", installation.service.publicURL, "--app", ConformanceInstallation.app, "--authority",
            folder.path("other.pem"), "--case", "ios-registers", "--case", "signed-accepted",
        ])
        #expect(result.status == 1)
        #expect(result.output.contains("fails    ios-registers"), "\(result.output)")
        #expect(result.output.contains("403 INVALID_ATTESTATION"), "\(result.output)")
        #expect(result.output.contains("skipped  signed-accepted"), "\(result.output)")
        #expect(result.errors.contains("does the app trust the authority?"), "\(result.errors)")
    }

    @Test(arguments: [
        [], ["--url", "auth.example.com"], ["--url", "https://auth.example.com/auth"],
        ["--url", "http://127.0.0.1:1", "--case", "no-such-case"], ["--url", "http://127.0.0.1:1", "--wait", "601"],
        ["--url", "http://127.0.0.1:1", "--backend", "https://api.example.com"],
        ["--url", "http://127.0.0.1:1", "--asserted-path", "/v1/pay"],
    ]) func `a wrong command line is a usage error`(_ arguments: [String]) async throws {
        #expect(try await Binary.run(["conformance"] + arguments).status == 64)
    }
}

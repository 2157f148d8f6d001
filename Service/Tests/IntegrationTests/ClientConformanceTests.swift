import Foundation
import StrictJSON
import Testing

/// `synheart-auth conformance client`, with the Swift client and with clients that misbehave.
@Suite(.serialized) struct ClientConformanceTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func run(
        _ cases: [String], _ command: [String]
    ) async throws -> (status: Int32, results: [String: JSONObject], errors: String) {
        let result = try await Binary.run(
            ["conformance", "client", "--authority", folder.path("authority.pem"), "--json"]
                + cases.flatMap { ["--case", $0] } + ["--"] + command)
        let rows = try result.output.split(separator: "\n").map {
            try #require(try JSONValue(parsing: Array($0.utf8)).object)
        }
        return (
            result.status, Dictionary(rows.map { ($0["case"]?.string ?? "", $0) }) { $1 }, result.errors
        )
    }

    /// The SDK's own client, optionally with a misbehaviour.
    private func client(_ misbehaviour: String...) -> [String] {
        [Binary.crashingDevice.path, "conformance"] + misbehaviour
    }

    @Test func `the Swift client keeps every rule`() async throws {
        let (status, results, errors) = try await run([], client())
        for (id, result) in results where result["result"] != "holds" {
            Issue.record("\(id): \(result["reason"]?.string ?? "") \(result["exchanges"]?.text() ?? "")")
        }
        #expect(status == 0, "\(errors)")
        let listed = try await Binary.run(["conformance", "client", "--list", "--json"])
        #expect(results.count == listed.output.split(separator: "\n").count)
    }

    /// Each misbehaviour, and the cases that must fail.
    private static let misbehaviours: [(name: String, noticedBy: [String])] = [
        ("sends-again", ["lost-post", "lost-get"]), ("follows-redirects", ["redirect"]),
        ("ignores-retry-after", ["register-unavailable"]), ("changes-bodies", ["body"]), ("changes-paths", ["path"]),
        ("reuses-nonces", ["life"]), ("believes-pages", ["register-page"]),
        ("reads-codes-below-400", ["code-below-400"]), ("forgets-state", ["launch", "register-killed"]),
        ("registers-after-revocation", ["revoked"]), ("repeats-replays", ["replay-post"]),
        ("never-maintains", ["demanded"]),
    ]

    @Test func `a client that misbehaves is noticed`() async throws {
        for (name, cases) in Self.misbehaviours {
            let (status, results, errors) = try await run(cases, client(name))
            #expect(status == 1, "\(name): \(errors)")
            for id in cases { #expect(results[id]?["result"] == "fails", "\(name): \(id): \(results)") }
        }
    }

    @Test func `a command that ends with an error, or says too little, fails`() async throws {
        let failing = try await run(["life"], ["sh", "-c", "echo broken >&2; exit 3"])
        #expect(failing.status == 1)
        let reason = try #require(failing.results["life"]?["reason"]?.string)
        #expect(reason.contains("exit code 3") && reason.contains("broken"), "\(reason)")
        let silent = try await run(["life"], ["true"])
        #expect(silent.status == 1 && silent.results["life"]?["result"] == "fails", "\(silent.results)")
    }

    @Test func `a command that is not there ends the run with exit code 2`() async throws {
        let (status, results, errors) = try await run(["life"], [folder.path("no-such-client")])
        #expect(status == 2 && errors.contains("cannot be started"), "\(errors)")
        #expect(results.isEmpty)
    }

    @Test func `a step that the client does not support skips its case`() async throws {
        let command = ["sh", "-c", #"echo '{"unsupported":true}'"#]
        let (status, results, errors) = try await run(["launch"], command)
        #expect(status == 2 && errors.contains("no case could be played"), "\(errors)")
        #expect(results["launch"]?["result"] == "skipped")
        #expect(results["launch"]?["reason"]?.string == "the client does not support register")
    }

    @Test(arguments: [
        [], ["--case", "no-such-case", "--", "true"], ["--jobs", "0", "--", "true"], ["--timeout", "0", "--", "true"],
    ]) func `a wrong command line of the client's command is a usage error`(_ arguments: [String]) async throws {
        #expect(try await Binary.run(["conformance", "client"] + arguments).status == 64)
    }
}

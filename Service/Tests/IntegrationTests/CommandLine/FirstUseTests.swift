import AuthContract
import Foundation
import StrictJSON
import SynheartAuth
import Testing

/// The first commands of the help and of `docs/backend.md` work in order, in one folder.
@Suite(.serialized) struct `First use` {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func run(_ line: String, input: String? = nil) async throws -> Binary.Result {
        try await Binary.run(line.split(separator: " ").map(String.init), in: folder.url, input: input)
    }

    @Test func `from the example's record to a signed request`() async throws {
        let example = try await run("apps example")
        try Data(example.output.utf8).write(to: folder.url.appendingPathComponent("app.json"))
        #expect(try await run("apps add --file app.json").status == 0)
        let service = try await RunningService(database: folder.path("synheart-auth.sqlite"))
        // `docs/backend.md` uses port 8080. The test uses a free port, because port 8080 may be in use.
        let registered = try await run("device register --url \(service.publicURL)")
        #expect(registered.status == 0, "\(registered.errors)")
        let signed = try await run("device sign")
        #expect(signed.status == 0, "\(signed.errors)")
        let headers = signed.output.split(separator: "\n").map { line in
            let parts = line.split(separator: ":", maxSplits: 1)
            return (String(parts[0]), parts[1].trimmingCharacters(in: .whitespaces))
        }
        let answer = try await DefaultTransport().send(
            TransportRequest(
                method: "GET", url: service.publicURL + "/auth/v1/device/status", headers: HeaderFields(headers),
                body: []))
        #expect(answer.status == 200)
        let created = try await run("credentials create --role service --app com.example.app")
        #expect(created.status == 0, "\(created.errors)")
        #expect(created.output.contains("sya_"))
        let simulated = try await run("simulate --url \(service.publicURL) --devices 4 --requests 8")
        #expect(simulated.status == 0, "\(simulated.errors) \(simulated.output)")
        #expect(service.stop() == 0)
    }

    @Test func `the production example is a valid record and trusts no test kit`() async throws {
        let example = try await run("apps example --production")
        #expect(example.status == 0, "\(example.errors)")
        let record = try #require(try JSONValue(parsing: example.output).object)
        #expect(record["build_channel"] == "production")
        #expect(record["ios"]?.object?["trust_anchors"] == [])
        #expect(record["android"]?.object?["trust_anchors"] == [])
        #expect(record["android"]?.object?["play_integrity"]?.object?["keys"] == [])
        let added = try await run("apps add --file -", input: example.output)
        #expect(added.status == 0, "\(added.errors)")
        #expect(!FileManager.default.fileExists(atPath: folder.path("synheart-authority.pem")))
        // The service refuses phones of the test kit.
        let service = try await RunningService(database: folder.path("synheart-auth.sqlite"))
        for platform in ["ios", "android"] {
            let refused = try await run(
                "device register --url \(service.publicURL) --platform \(platform) --dir \(platform)")
            #expect(refused.status == 1, "\(refused.output) \(refused.errors)")
        }
        #expect(service.stop() == 0)
    }

    @Test func `an unreadable record creates no database`() async throws {
        for (line, input) in [("apps add --file nowhere.json", nil), ("apps add --file -", "{")] {
            #expect(try await run(line, input: input).status == 2)
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path) == [])
    }

    @Test func `a revocation is effective`() async throws {
        let created = try await run("credentials create --role admin --json")
        let id = try #require(try JSONValue(parsing: created.output).object?["id"]?.string)
        for _ in 0..<2 { #expect(try await run("credentials revoke \(id)").status == 0) }
        #expect(try await run("credentials revoke nobody").status == 1)
        let events = try JSONValue(parsing: try await run("audit list --json").output).array ?? []
        #expect(events.compactMap(\.object).count { $0["code"] == "credential.revoked" } == 1)
    }

    @Test func `two simultaneous first uses share one authority, which only its owner can read`() async throws {
        async let one = run("apps example")
        async let two = run("apps example")
        let records = try await [one, two].map { try JSONValue(parsing: $0.output).object }
        #expect(records[0]?["ios"]?.object?["trust_anchors"] == records[1]?["ios"]?.object?["trust_anchors"])
        // Each command issues new test certificates of Google, but both commands read Google's keys from the authority file.
        let keys = records.map { $0?["android"]?.object?["play_integrity"]?.object?["keys"] }
        #expect(keys[0] == keys[1] && keys[0] != nil)
        for name in ["synheart-authority.pem", "synheart-authority.google.json"] {
            let attributes = try FileManager.default.attributesOfItem(atPath: folder.path(name))
            #expect(attributes[.posixPermissions] as? Int == 0o600)
        }
    }
}

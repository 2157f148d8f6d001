import Foundation
import StrictJSON
import Testing

/// `synheart-auth simulate`, as a user runs it.
@Suite struct SimulateTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private var authorities: [String] {
        ["--authority", folder.path("authority.pem")]
    }

    private func operations(_ result: Binary.Result) throws -> [String: JSONObject] {
        let rows = try #require(try JSONValue(parsing: result.output).object?["operations"]?.array)
        return Dictionary(
            rows.compactMap { row in row.object.flatMap { o in o["operation"]?.string.map { ($0, o) } } }
        ) { $1 }
    }

    @Test func `a fleet of all kinds works against a service of its own`() async throws {
        let result = try await Binary.run(
            ["simulate", "--devices", "9", "--requests", "60", "--rotate-percent", "10", "--json"], in: folder.url)
        #expect(result.status == 0, "\(result.errors)")
        let operations = try operations(result)
        #expect(operations["challenge"]?["count"] == 9)
        #expect(operations["register"]?["count"] == 9)
        #expect(operations["status"]?["count"] == 54)
        #expect(operations["rotate"]?["count"] == 6)
        for row in operations.values {
            #expect(row["errors"]?.object?.members.isEmpty == true)
            let times = try ["p50_ms", "p90_ms", "p99_ms", "p999_ms", "max_ms"].map { try #require(row[$0]).text() }.map
            {
                try #require(Double($0))
            }
            #expect(times == times.sorted() && times[0] > 0)
        }
        let left = try FileManager.default.contentsOfDirectory(atPath: folder.url.path)
        #expect(left == [], "an embedded service leaves nothing behind")
    }

    @Test func `bad requests are refused, each with its code, and expectations decide the exit code`() async throws {
        let kinds = ["replay", "signature", "stranger", "clock", "malformed", "attestation"]
        let arguments = ["simulate", "--devices", "10", "--requests", "120", "--operation", "verify", "--json"]
        let result = try await Binary.run(
            arguments + kinds.flatMap { ["--bad", "\($0)=5"] } + ["--expect", "errors<=0", "--expect", "p99<60s"])
        #expect(result.status == 0, "\(result.errors)\(result.output)")
        let json = try #require(try JSONValue(parsing: result.output).object)
        #expect(json["work"]?.object?["refused"] == 36, "\(result.output)")
        #expect(json["bad"]?.array?.compactMap { $0.object?["operation"]?.string } == kinds)
        #expect(json["expectations"]?.array?.compactMap { $0.object?["holds"]?.bool } == [true, true])

        let missed = try await Binary.run(arguments + ["--expect", "p50<1us", "--expect", "errors<1%"])
        #expect(missed.status == 1)
        #expect(missed.errors.contains("does not hold: p50<1us ("), "\(missed.errors)")
    }

    @Test func `a simulation of a backend at a rate prints a table`() async throws {
        let result = try await Binary.run([
            "simulate", "--devices", "2", "--platform", "android", "--operation", "verify", "--rate", "100",
            "--duration", "0.2", "--rotate-percent", "0",
        ])
        #expect(result.status == 0, "\(result.errors)")
        #expect(result.output.contains("registered 2 devices"))
        #expect(result.output.contains("answered 20 requests"))
        #expect(result.output.contains("verify"))
        #expect(!result.output.contains("rotate"))
    }

    @Test func `a running service with an app of the example's record is loaded; one that is gone is unreachable`()
        async throws
    {
        let example = try await Binary.run(["apps", "example"] + authorities)
        let database = folder.path("db.sqlite")
        let added = try await Binary.run(
            ["apps", "add", "--file", "-", "--database", database], input: example.output)
        #expect(added.status == 0, "\(added.errors)")
        let service = try await RunningService(database: database)
        let arguments = ["simulate", "--url", service.publicURL, "--devices", "4", "--requests", "8", "--json"]
        for platform in [["--platform", "android"], []] {
            let good = try await Binary.run(arguments + platform + authorities)
            #expect(good.status == 0, "\(good.errors)")
            #expect(try operations(good)["register"]?["count"] == 4)
        }

        // The example's record does not allow development mode: the report lists the refusals by code, and the exit code is 1.
        let development = try await Binary.run(arguments + ["--platform", "development"] + authorities)
        #expect(development.status == 1)
        #expect(try operations(development)["register"]?["errors"]?.object?["DEV_MODE_NOT_ALLOWED"] == 4)
        #expect(development.errors.contains("4 operations did not finish"))

        service.stop()
        let gone = try await Binary.run(arguments + authorities)
        #expect(gone.status == 2)
        #expect(gone.errors.contains("cannot reach"))
    }

    @Test(arguments: [
        ["--devices", "0"], ["--requests", "1", "--duration", "1"], ["--rate", "0"], ["--platform", "windows"],
        ["--operation", "verify", "--url", "http://127.0.0.1:1"], ["--concurrency", "5000"],
        ["--bad", "replay"], ["--bad", "odd=1"], ["--bad", "replay=1", "--bad", "replay=2"],
        ["--bad", "replay=60", "--bad", "clock=50"], ["--expect", "p99<50"],
    ]) func `contradictory options are a usage error`(_ arguments: [String]) async throws {
        #expect(try await Binary.run(["simulate"] + arguments).status == 64)
    }
}

import Foundation
import StrictJSON
import Testing

/// `devices revoke|approve|…` about many devices, on the database and through the admin API.
@Suite struct FleetDecisionTests {
    let folder: TemporaryFolder
    private static let app = "com.example.app"

    init() throws { folder = try TemporaryFolder() }

    private var database: [String] { ["--database", folder.path("db.sqlite")] }

    private func run(
        _ arguments: [String], input: String? = nil, _ environment: [String: String] = [:]
    ) async throws
        -> Binary.Result
    {
        try await Binary.run(arguments, input: input, environment: environment)
    }

    /// The environment variables for the admin API, with a new credential for this app only.
    private func remote(_ service: RunningService, _ role: String) async throws -> [String: String] {
        let created = try await run(
            ["credentials", "create", "--name", role, "--role", role, "--app", Self.app, "--json"] + database)
        let text = try #require(try JSONValue(parsing: created.output).object?["credential"]?.string)
        return ["SYNHEART_AUTH_URL": service.operationsURL, "SYNHEART_AUTH_CREDENTIAL": text]
    }

    private func write(_ text: String, to name: String) throws -> String {
        try Data(text.utf8).write(to: URL(fileURLWithPath: folder.path(name)))
        return folder.path(name)
    }

    @Test func `a run is tried, made, and made again without an effect`() async throws {
        let authority = ["--authority", folder.path("authority.pem")]
        let example = try await run(["apps", "example"] + authority)
        #expect(try await run(["apps", "add", "--file", "-"] + database, input: example.output).status == 0)
        let service = try await RunningService(database: folder.path("db.sqlite"))
        let simulated = try await run(
            ["simulate", "--url", service.publicURL, "--devices", "4", "--requests", "0"] + authority)
        #expect(simulated.status == 0, "\(simulated.errors)")
        let listed = try await run(["devices", "list", "--json"] + database)
        let ids = try #require(try JSONValue(parsing: listed.output).array).compactMap {
            $0.object?["device_id"]?.string
        }
        #expect(ids.count == 4)

        // The command uses the admin API, and a query selects half of the fleet. A dry run comes first. The run then changes exactly
        // the devices that the dry run counted.
        let viewer = try await remote(service, "viewer")
        let operators = try await remote(service, "operator")
        let resume = folder.path("run")
        let revoke = ["devices", "revoke", "--app", Self.app, "--reason", "leak"]
        let android = revoke + ["--where", "platform=android", "--where", "status=registered", "--resume", resume]
        let refused = try await run(android, viewer)
        #expect(refused.status == 2 && refused.errors.contains("needs role operator"), "\(refused.errors)")
        let tried = try await run(android + ["--dry-run"], operators)
        #expect(
            tried.output == "revoke, 2 devices of \(Self.app): 2 would change\n" && tried.status == 0,
            "\(tried.output)\(tried.errors)")
        for counts in ["2 changed", "0 changed, 2 done before"] {
            let made = try await run(android, operators)
            #expect(
                made.output == "revoke, 2 devices of \(Self.app): \(counts)\n" && made.status == 0,
                "\(made.output)\(made.errors)")
        }
        let other = try await run(
            ["devices", "reject", "--app", Self.app, "--where", "platform=android", "--resume", resume], operators)
        #expect(other.status == 2 && other.errors.contains("of another run"), "\(other.errors)")

        // The command now opens the database itself, and takes the ids of all devices from a file.
        let file = try write("# of the incident\n" + ids.joined(separator: "\n") + "\n\n", to: "ids")
        let all = try await run(revoke + ["--from", file, "--json"] + database)
        #expect(all.status == 0, "\(all.errors)")
        let counts = try #require(try JSONValue(parsing: all.output).object)
        #expect(counts["changed"] == 2 && counts["unchanged"] == 2 && counts["left"] == 0, "\(all.output)")
        let events = try await run(["audit", "list", "--json", "--limit", "1000"] + database)
        let revocations = try #require(
            try JSONValue(parsing: events.output, limits: .init(bytes: 1 << 20, depth: 16)).array
        )
        .compactMap(\.object).filter { $0["code"] == "device.revoked" }
        #expect(revocations.count == 4, "one event a device: \(events.output)")
        #expect(revocations.allSatisfy { $0["detail"]?.object?["reason"] == "leak" })
    }

    @Test func `a device that is refused is named, and the exit code is 1`() async throws {
        let example = try await run(["apps", "example", "--authority", folder.path("authority.pem")])
        #expect(try await run(["apps", "add", "--file", "-"] + database, input: example.output).status == 0)
        let id = "0b7c1b1e-5a52-4f3e-9f3a-0d5b7e2c9a11"
        let file = try write(id + "\n", to: "ids")
        let missing = try await run(["devices", "approve", "--app", Self.app, "--from", file] + database)
        #expect(missing.status == 1)
        #expect(missing.errors.contains("\(id): NOT_FOUND: "), "\(missing.errors)")
        let odd = try write(id + "\n" + id + " registered\n", to: "odd")
        let damaged = try await run(["devices", "approve", "--app", Self.app, "--from", odd] + database)
        #expect(damaged.status == 2 && damaged.errors.contains("line 2"), "\(damaged.errors)")
        let none = try await run(["devices", "approve", "--app", Self.app, "--where", "status=pending"] + database)
        #expect(none.status == 0 && none.output == "no device is selected\n", "\(none.output)\(none.errors)")
    }

    @Test(arguments: [
        [], ["0b7c1b1e-5a52-4f3e-9f3a-0d5b7e2c9a11", "--from", "ids"], ["--from", "ids", "--where", "status=pending"],
        ["0b7c1b1e-5a52-4f3e-9f3a-0d5b7e2c9a11", "--dry-run"], ["--where", "status"], ["--where", "color=red"],
        ["--where", "status=pending", "--where", "status=revoked"], ["--where", "registered_before=yesterday"],
        ["--from", "ids", "--rate", "0"],
    ]) func `contradictory options are a usage error`(_ arguments: [String]) async throws {
        let result = try await run(["devices", "revoke", "--app", Self.app] + arguments)
        #expect(result.status == 64, "\(result.errors)")
    }
}

import Foundation
import ServiceTestHelpers
import StrictJSON
import Testing

/// What the cases of `synheart-auth conformance` need: a service with two apps, credentials, and a gateway for a backend.
struct ConformanceInstallation: Sendable {
    let service: RunningService
    let folder: TemporaryFolder
    let fixture: ServiceFixture
    let credential: String

    static let app = "com.example.staging"

    /// Adds two apps and the credentials to a new database, and starts a service on it.
    ///
    /// - Parameter hasOrigin: whether the service is configured for its own URL. If so, it accepts scheme 2 only at that URL.
    init(in folder: TemporaryFolder, hasOrigin: Bool = false) async throws {
        self.folder = folder
        let example = try await Binary.run(
            ["apps", "example", "--app", Self.app, "--authority", folder.path("authority.pem")])
        let record = example.output.replacing(
            #""assertions_required_on": []"#, with: #""assertions_required_on": ["/v1/pay"]"#
        ).replacing(#""authorities": []"#, with: #""authorities": ["api.example.com"]"#)
        try #require(record.contains("/v1/pay") && record.contains("api.example.com"))
        // The fixture adds the other app, that of `DevelopmentDevice`.
        fixture = try await ServiceFixture(database: folder.path("db.sqlite"))
        let added = try await Binary.run(["apps", "add", "--file", "-"] + fixture.stores, input: record)
        try #require(added.status == 0, "\(added.errors)")
        let created = try await Binary.run(
            ["credentials", "create", "--role", "service", "--app", Self.app, "--body", "whole", "--json"]
                + fixture.stores)
        credential = try #require(try JSONValue(parsing: created.output).object?["credential"]?.string)
        let file = folder.url.appendingPathComponent("credential")
        try credential.write(to: file, atomically: true, encoding: .utf8)
        let port = try LoopbackPort.reserve()
        service = try await fixture.start(
            port: port,
            environment: hasOrigin ? ["SYNHEART_AUTH_PUBLIC_ORIGIN": "http://127.0.0.1:\(port)"] : [:])
    }

    /// Acts as a gateway and its backend: changes the request with `change`, and asks the service about it. If the service
    /// accepts it, answers as the backend. Otherwise returns the refusal.
    func gateway(
        asking change: @escaping @Sendable (ProxiedRequest) -> ProxiedRequest = { $0 }
    ) throws -> MeddlingProxy {
        let (port, credential) = (service.port, credential)
        return try MeddlingProxy { request in
            var question = change(request)
            question.target = "/auth/v1/forward" + question.target
            question.headers.removeAll { $0.name.lowercased().hasPrefix("x-synheart-verified-") }
            question.headers.append(("X-Synheart-Service-Credential", credential))
            let verdict = await MeddlingProxy.pass(question, to: port)
            return verdict.status == 200 ? ProxiedAnswer(status: 200, body: Array("done".utf8)) : verdict
        }
    }

    /// Plays cases against a URL, by default the service's, and reads the results.
    func run(
        _ url: String? = nil, _ cases: [String] = [], _ arguments: [String] = [], environment: [String: String] = [:]
    ) async throws -> (status: Int32, results: [String: JSONObject], errors: String) {
        let result = try await Binary.run(
            [
                "conformance", "--url", url ?? service.publicURL, "--app", Self.app, "--authority",
                folder.path("authority.pem"),
                "--json",
            ] + cases.flatMap { ["--case", $0] } + arguments, environment: environment)
        let rows = try result.output.split(separator: "\n").map {
            try #require(try JSONValue(parsing: Array($0.utf8)).object)
        }
        return (
            result.status, Dictionary(rows.map { ($0["case"]?.string ?? "", $0) }) { $1 }, result.errors
        )
    }
}

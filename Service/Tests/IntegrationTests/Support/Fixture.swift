import Foundation
import StrictJSON
import Testing

/// Stores with an app, by default that of `DevelopmentDevice`, and an admin credential. Tests start services on these stores.
struct ServiceFixture: Sendable {
    /// The flags that name the stores.
    let stores: [String]
    /// The environment variables that every command needs.
    private let environment: [String: String]
    /// The text of an admin credential.
    let credential: String

    /// Creates the database through the command line, as an operator does.
    init(database: String) async throws {
        try await self.init(stores: ["--database", database])
    }

    /// Adds the app and an admin credential to these stores.
    init(stores: [String], environment: [String: String] = [:], app: String = DevelopmentDevice.app) async throws {
        (self.stores, self.environment) = (stores, environment)
        let added = try await Binary.run(
            ["apps", "add", "--file", "-"] + stores, input: app, environment: environment)
        try #require(added.status == 0, "\(added.errors)")
        let created = try await Binary.run(
            ["credentials", "create", "--name", "test", "--role", "admin", "--json"] + stores, environment: environment)
        try #require(created.status == 0, "\(created.errors)")
        credential = try #require(try JSONValue(parsing: created.output).object?["credential"]?.string)
    }

    /// Starts the service with rate limits that a test on one machine does not reach.
    ///
    /// - Parameter stores: other flags for the same stores; nil: the flags of this fixture.
    func start(
        stores: [String]? = nil, port: Int = 0, arguments: [String] = [], environment: [String: String] = [:],
        errors: FileHandle? = nil
    ) async throws -> RunningService {
        let unlimited = [
            "SYNHEART_AUTH_PROTECTION_ENROLMENT_BURST": "1000000",
            "SYNHEART_AUTH_PROTECTION_FAILED_SIGNATURE_BURST": "1000000",
            "SYNHEART_AUTH_PROTECTION_STRANGER_BURST": "1000000",
            "SYNHEART_AUTH_PROTECTION_DEVICE_BURST": "10000",
            "SYNHEART_AUTH_PROTECTION_ROTATION_BURST": "10000",
        ]
        return try await RunningService(
            stores: stores ?? self.stores, port: port, arguments: arguments,
            environment: unlimited.merging(self.environment) { $1 }.merging(environment) { $1 }, errors: errors)
    }

    /// Creates a credential of another service for the app of `DevelopmentDevice`, and returns its text.
    func serviceCredential() async throws -> String {
        let created = try await Binary.run(
            ["credentials", "create", "--role", "service", "--app", DevelopmentDevice.appID, "--json"] + stores,
            environment: environment)
        try #require(created.status == 0, "\(created.errors)")
        return try #require(try JSONValue(parsing: created.output).object?["credential"]?.string)
    }

    /// A request to the admin API.
    func administer(_ method: String, _ path: String, body: JSONObject? = nil) -> WireRequest {
        WireRequest(
            method: method, target: "/admin/v1" + path, headers: [("Authorization", "Bearer \(credential)")],
            body: body.map { JSONValue.object($0).bytes } ?? [])
    }
}

extension RunningService {
    var operationsPort: Int { operationsURL.split(separator: ":").last.flatMap { Int($0) } ?? 0 }
}

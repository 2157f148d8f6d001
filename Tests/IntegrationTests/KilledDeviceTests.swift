import AuthContract
import Foundation
import StrictJSON
import SynheartAuth
import Testing

/// The SDK in processes of their own, killed at every call to the outside and at every system call that changes a file,
/// against the service in another: whatever is left, the next launch ends in one device that can sign.
@Suite struct KilledDevice {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    enum Operation: String, CaseIterable { case register, rotate, reset }

    @Test func aDeviceThatIsKilledAnywhereEndsAsOneThatSigns() async throws {
        let world = try await World(folder)
        for operation in Operation.allCases {
            let points = try await world.points(of: operation)
            #expect(points > 20, "\(operation)")
            try await withThrowingTaskGroup(of: Void.self) { group in
                for point in 0..<points {
                    if point >= World.atOnce { try await group.next() }
                    group.addTask { try await world.killAndRecover(operation, at: point) }
                }
                try await group.waitForAll()
            }
        }
        #expect(world.service.stop() == 0)
    }

    @Test func twoProcessesThatRegisterAtOnceAreOneDevice() async throws {
        let world = try await World(folder)
        let app = try await world.newApp()
        try await withThrowingTaskGroup(of: Binary.Result.self) { group in
            for _ in 0..<6 { group.addTask { try await world.device("register", app) } }
            for try await result in group { #expect(result.status == 0, "\(result.errors)") }
        }
        #expect(try await world.devices(app).count == 1)
        try await world.expectRecovery(app, "six at once")
    }
}

/// A service with an app for each case, and devices beside it.
private struct World: Sendable {
    let service: RunningService
    private let folder: TemporaryFolder
    private let credential: String
    private let record: JSONObject

    static let atOnce = 4

    init(_ folder: TemporaryFolder) async throws {
        self.folder = folder
        let example = try await Binary.run(["apps", "example", "--authority", folder.path("authority.pem")])
        record = try #require(try JSONValue(parsing: example.output).object)
        let database = folder.path("db.sqlite")
        let made = try await Binary.run(
            ["credentials", "create", "--name", "test", "--role", "admin", "--database", database, "--json"])
        credential = try #require(try JSONValue(parsing: made.output).object?["credential"]?.string, "\(made.errors)")
        service = try await RunningService(
            database: database, environment: ["SYNHEART_AUTH_PROTECTION_ENROLMENT_BURST": "100000"])
    }

    /// A fresh app's id.
    func newApp() async throws -> String {
        let app = "com.example.\(UUID().uuidString.lowercased())"
        var record = record
        record["app_id"] = .string(app)
        let answer = try await administer("POST", "apps", .object(record))
        try #require(answer.status == 201, "\(String(decoding: answer.body, as: UTF8.self))")
        return app
    }

    func devices(_ app: String) async throws -> [JSONObject] {
        let answer = try await administer("GET", "devices?app_id=\(app)")
        let body = try JSONValue(parsing: answer.body)
        return (body.object?["devices"]?.array ?? []).compactMap(\.object)
    }

    private func administer(_ method: String, _ path: String, _ body: JSONValue? = nil) async throws -> TransportAnswer
    {
        try await URLSessionTransport().send(
            TransportRequest(
                method: method, url: "\(service.operationsURL)/admin/v1/\(path)",
                headers: HeaderFields([("Authorization", "Bearer \(credential)"), ("Content-Type", "application/json")]
                ),
                body: body?.bytes ?? []))
    }

    func device(_ operation: String, _ app: String, dyingAt point: Int? = nil) async throws -> Binary.Result {
        try await Binary.run(
            [operation, service.publicURL, app, folder.path(app), folder.path("authority.pem")],
            environment: point.map { ["CRASH_AT": String($0)] } ?? [:], of: Binary.crashingDevice)
    }

    /// How many points an operation has.
    func points(of operation: KilledDevice.Operation) async throws -> Int {
        let result = try await device(operation.rawValue, newApp())
        let points = try JSONValue(parsing: result.output).object?["points"]?.integer
        return Int(try #require(points, "\(result.errors)"))
    }

    func killAndRecover(_ operation: KilledDevice.Operation, at point: Int) async throws {
        let app = try await newApp()
        let killed = try await device(operation.rawValue, app, dyingAt: point)
        #expect(killed.status == SIGKILL && killed.output.isEmpty, "\(operation) at \(point): \(killed.errors)")
        try await expectRecovery(app, "\(operation) at \(point)")
    }

    /// The next launch: one device that counts, whose signature verifies, with one key.
    func expectRecovery(_ app: String, _ comment: Comment) async throws {
        let result = try await device("recover", app)
        let answer = try #require(try? JSONValue(parsing: result.output).object, "\(comment): \(result.errors)")
        #expect(answer["status"]?.integer == 200, comment)
        #expect(answer["keys"]?.integer == 1, comment)
        let live = try await devices(app).filter { $0["status"]?.string != "deregistered" }
        #expect(live.map { $0["device_id"]?.string } == [answer["device_id"]?.string], comment)
    }
}

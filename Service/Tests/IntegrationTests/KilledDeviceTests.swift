import AttestationTestKit
import AuthContract
import Foundation
import StrictJSON
import SynheartAuth
import Testing

/// The SDK in processes that are killed at every external call and at every system call that changes a file. The service runs
/// in another process. After each kill, the next launch ends with exactly one device that can sign.
@Suite struct KilledDevice {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    enum Operation: String, CaseIterable { case register, rotate, reset }

    /// The kind of the phone, and the proof that its app demands.
    enum Phone: Sendable {
        case apple
        case android(proof: String)
    }

    @Test func `a device killed at any call can sign in the end`() async throws {
        let world = try await World(folder, .apple)
        for operation in Operation.allCases { try await killEverywhere(operation, world) }
        #expect(world.service.stop() == 0)
    }

    // A key attestation chain names the challenge with which the key was created. The service refuses the chain with any other
    // challenge. So the launch after a kill must create a new key, or send the key without its chain.
    @Test(arguments: ["play_integrity", "both"])
    func `an Android phone whose hardware attests the key registers too`(proof: String) async throws {
        let world = try await World(folder, .android(proof: proof))
        try await killEverywhere(.register, world)
        #expect(world.service.stop() == 0)
    }

    @Test func `processes that register at once are one device`() async throws {
        let world = try await World(folder, .apple)
        let app = try await world.newApp()
        try await withThrowingTaskGroup(of: Binary.Result.self) { group in
            for _ in 0..<6 { group.addTask { try await world.device("register", app) } }
            for try await result in group { #expect(result.status == 0, "\(result.errors)") }
        }
        #expect(try await world.devices(app).count == 1)
        try await world.expectRecovery(app, "six at once")
    }

    private func killEverywhere(_ operation: Operation, _ world: World) async throws {
        let points = try await world.points(of: operation)
        #expect(points > 20, "\(operation)")
        let sampled = sample(0..<points)
        var kills = 0
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for (index, point) in sampled.enumerated() {
                if index >= World.atOnce, try await group.next() == true { kills += 1 }
                group.addTask { try await world.killAndRecover(operation, at: point) }
            }
            for try await killed in group where killed { kills += 1 }
        }
        // Runs differ in their number of crash points (the calls at which a test can kill the process), because a call may be
        // retried on a busy machine. So a run may end before its sampled point, without a kill.
        #expect(kills > sampled.count * 9 / 10, "\(operation): \(kills) of \(sampled.count)")
    }
}

/// A service with an app for each case, and the processes of its devices.
private struct World: Sendable {
    let service: RunningService
    private let folder: TemporaryFolder
    private let phone: KilledDevice.Phone
    private let credential: String
    private let record: JSONObject

    static let atOnce = 4

    init(_ folder: TemporaryFolder, _ phone: KilledDevice.Phone) async throws {
        self.folder = folder
        self.phone = phone
        record = try await Self.record(phone, authority: folder.path("authority"))
        let database = folder.path("db.sqlite")
        let made = try await Binary.run(
            ["credentials", "create", "--name", "test", "--role", "admin", "--database", database, "--json"])
        credential = try #require(try JSONValue(parsing: made.output).object?["credential"]?.string, "\(made.errors)")
        service = try await RunningService(
            database: database,
            environment: [
                "SYNHEART_AUTH_PROTECTION_ENROLMENT_BURST": "100000",
                "SYNHEART_AUTH_PROTECTION_ROTATION_BURST": "10000",
            ])
    }

    /// An app record that trusts a test authority, which is written to a file.
    private static func record(_ phone: KilledDevice.Phone, authority: String) async throws -> JSONObject {
        switch phone {
        case .apple:
            let example = try await Binary.run(["apps", "example", "--authority", authority])
            return try #require(try JSONValue(parsing: example.output).object)
        case .android(let proof):
            let google = try GoogleAuthority()
            try JSONEncoder().encode(google).write(to: URL(fileURLWithPath: authority))
            let keys: JSONValue = [
                "decryption_key": .string(google.decryptionKey),
                "verification_key": .string(try google.verificationKey()),
            ]
            let digest = Base64.url.encode([UInt8](repeating: 0x11, count: 32))
            let android: JSONValue = [
                "packages": ["com.example.app"], "certificate_digests": [.string(digest)], "proof": .string(proof),
                "trust_anchors": [.string(try google.rootsPEM())], "play_integrity": ["keys": [keys]],
                "key_attestation": ["status_list": "none"],
            ]
            return JSONObject([("build_channel", "staging"), ("android", android)])
        }
    }

    /// Adds a new app. Returns its id.
    func newApp() async throws -> String {
        let app = "com.example.\(UUID().uuidString.lowercased())"
        var record = record
        record["app_id"] = .string(app)
        var answer = try await administer("POST", "apps", .object(record))
        // Four devices run concurrently, so a write may miss its deadline and still take effect.
        for _ in 0..<5 where answer.status == 503 { answer = try await administer("POST", "apps", .object(record)) }
        try #require([201, 409].contains(answer.status), "\(String(decoding: answer.body, as: UTF8.self))")
        return app
    }

    func devices(_ app: String) async throws -> [JSONObject] {
        let answer = try await administer("GET", "devices?app_id=\(app)")
        let body = try JSONValue(parsing: answer.body)
        return (body.object?["devices"]?.array ?? []).compactMap(\.object)
    }

    private func administer(
        _ method: String, _ path: String, _ body: JSONValue? = nil
    ) async throws -> TransportResponse {
        try await DefaultTransport().send(
            TransportRequest(
                method: method, url: "\(service.operationsURL)/admin/v1/\(path)",
                headers: HeaderFields([("Authorization", "Bearer \(credential)"), ("Content-Type", "application/json")]
                ),
                body: body?.bytes ?? []))
    }

    func device(_ operation: String, _ app: String, dyingAt point: Int? = nil) async throws -> Binary.Result {
        let arguments = [operation, service.publicURL, app, folder.path(app), folder.path("authority")]
        let platform = if case .android = phone { ["android"] } else { [String]() }
        return try await Binary.run(
            arguments + platform, environment: point.map { ["CRASH_AT": String($0)] } ?? [:],
            of: Binary.crashingDevice)
    }

    /// The number of crash points of an operation: the calls at which a test can kill the process.
    func points(of operation: KilledDevice.Operation) async throws -> Int {
        let result = try await device(operation.rawValue, newApp())
        return try #require(points(result), "\(result.errors)")
    }

    private func points(_ result: Binary.Result) -> Int? {
        (try? JSONValue(parsing: result.output).object?["points"]?.integer).map { Int($0) }
    }

    /// Kills an operation at a crash point (the number of a call at which the process dies), and checks the next launch.
    /// Returns false if the operation ended before that point.
    func killAndRecover(_ operation: KilledDevice.Operation, at point: Int) async throws -> Bool {
        let app = try await newApp()
        let result = try await device(operation.rawValue, app, dyingAt: point)
        let killed = result.status == SIGKILL && result.output.isEmpty
        if !killed {
            let passed = try #require(points(result), "\(operation) at \(point): \(result.errors)")
            #expect(result.status == 0 && passed <= point, "\(operation) at \(point): \(result.errors)")
        }
        try await expectRecovery(app, "\(operation) at \(point)")
        return killed
    }

    /// Checks the next launch: one registered device with one key, whose signature verifies.
    func expectRecovery(_ app: String, _ comment: Comment) async throws {
        let result = try await device("recover", app)
        let answer = try #require(try? JSONValue(parsing: result.output).object, "\(comment): \(result.errors)")
        #expect(answer["status"]?.integer == 200, comment)
        #expect(answer["keys"]?.integer == 1, comment)
        let live = try await devices(app).filter { $0["status"]?.string != "deregistered" }
            .map { $0["device_id"]?.string }
        if case .android("both") = phone {
            // A registration whose answer was lost cannot be repeated with the same key, so its row may remain.
            #expect(live.contains(answer["device_id"]?.string) && live.count <= 2, comment)
        } else {
            #expect(live == [answer["device_id"]?.string], comment)
        }
    }
}

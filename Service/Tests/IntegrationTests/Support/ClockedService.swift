import AuthContract
import AuthServer
import AuthService
import Crypto
import Foundation
import Logging
import SQLiteStores
import StrictJSON
import Testing

/// A clock that a test moves.
final class MovableClock: ServiceClock, @unchecked Sendable {
    // Unchecked: the lock guards `time`.
    private let lock = NSLock()
    private var time = DevelopmentDevice.now

    var now: UnixTime { lock.withLock { time } }

    func move(_ seconds: Int64) { lock.withLock { time = time + seconds } }
}

/// The whole service with HTTP and SQLite in the test's process, so that the test can move its clock. It can be restarted with
/// the same database.
struct ClockedService: Sendable {
    let port: Int
    let service: AuthService

    /// Starts the service on a database, runs the body, and stops the service gracefully.
    static func with<Value: Sendable>(
        database: String, clock: MovableClock, protection: ProtectionSettings = ProtectionSettings(),
        _ body: @Sendable (ClockedService) async throws -> Value
    ) async throws -> Value {
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let stores = try SQLiteStores(path: database, clock: clock, logger: logger)
        let service = AuthService(
            stores: stores.all, key: try #require(ServiceKey([UInt8](repeating: 7, count: 32))),
            protection: protection, clock: clock)
        if try await service.apps.records().isEmpty {
            let added = try await service.apps.add(try record(), actor: "test")
            try #require(added)
        }
        var settings = ServerSettings()
        (settings.port, settings.operations.port) = (0, 0)
        let server = AuthServer(service: service, stores: stores.all, settings: settings, logger: logger)
        let (ready, continuation) = AsyncStream.makeStream(of: String.self)
        let result = try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask {
                defer { continuation.finish() }
                try await server.run(stopsOnSignals: false) { continuation.yield($0.publicURL) }
            }
            var iterator = ready.makeAsyncIterator()
            let url = try #require(await iterator.next(), "the service did not start")
            let port = try #require(url.split(separator: ":").last.flatMap { Int($0) })
            let result = try await body(ClockedService(port: port, service: service))
            tasks.cancelAll()
            _ = await tasks.nextResult()
            return result
        }
        await stores.close()
        return result
    }

    /// The app of `DevelopmentDevice` with this signature policy.
    static func record(signature: [(String, JSONValue)] = []) throws -> AppRecord {
        var record = try #require(JSONValue(parsing: Array(DevelopmentDevice.app.utf8)).object)
        record["signature"] = .object(JSONObject(signature))
        return try AppRecord(JSONFields(.object(record)))
    }

    /// Changes the app as an operator does.
    func change(signature: [(String, JSONValue)]) async throws {
        let changed = try await service.apps.change(try Self.record(signature: signature), actor: "test")
        try #require(changed)
    }

    func send(_ request: WireRequest) async throws -> WireResponse {
        try #require(await WireConnection.exchange(port: port, request), "no answer")
    }

    func device() async throws -> DevelopmentDevice {
        try #require(await DevelopmentDevice.register(.init(), port: port))
    }
}

import AuthContract
import AuthService
import Bytes
import Foundation
import Logging
import ServiceLifecycle
import StoreConformance
import StrictJSON
import Testing
import Verification

@testable import AuthServer

/// A clock that the test sets. It begins at the machine's time, because the tests' certificates are valid at that time.
final class TestClock: ServiceClock {
    private let time = Locked(SystemClock().now)

    var now: UnixTime { time.withLock { $0 } }

    func advance(_ seconds: Int64) { time.withLock { $0 = $0 + seconds } }
}

/// A server on free ports, over stores in memory.
struct TestServer: Sendable {
    let stores: MemoryStores
    let all: AuthService.Stores
    let service: AuthService
    let clock: TestClock
    let publicPort: Int
    let operationsPort: Int
    let addresses: AuthServer.Addresses
    let server: AuthServer

    static let appID = "com.example.app"

    /// A dev app, which admits registrations in development mode.
    static let record: JSONObject = JSONObject([
        ("app_id", .string(appID)), ("build_channel", "dev"), ("development_integrity_allowed", true),
        ("ios", ["app_ids": ["TEAMID1234.com.example.app"]] as JSONValue),
        // Without an authority, the app cannot use scheme 2.
        ("signature", ["authorities": ["api.example.com"]] as JSONValue),
    ])

    /// Starts a server, runs the body, and stops the server.
    static func with(
        settings: ServerSettings = ServerSettings(), publicOrigin: String? = nil,
        protection: ProtectionSettings = ProtectionSettings(),
        providers: any EvidenceProviders = NoProviders(),
        changing changeStores: (inout AuthService.Stores) -> Void = { _ in }, shutdown: ShutdownTrigger? = nil,
        pages: (any OperationsPages)? = nil, tracer: RequestTracer? = nil,
        logger: Logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
        _ body: @Sendable (TestServer) async throws -> Void
    ) async throws {
        let clock = TestClock()
        let memory = MemoryStores(clock: clock)
        var all = AuthService.Stores(
            challenges: memory, replay: memory, apps: memory, devices: memory, audit: memory, credentials: memory,
            signingKeys: memory, recordings: memory, history: memory, webhooks: memory)
        changeStores(&all)
        let key = try #require(ServiceKey([UInt8](repeating: 7, count: 32)))
        let service = AuthService(
            stores: all, key: key, publicOrigin: try publicOrigin.map { try RequestOrigin($0) }, providers: providers,
            recordings: PlainRecording(), protection: protection, clock: clock)
        _ = try await service.apps.add(AppRecord(JSONFields(.object(record))), actor: "test")
        var settings = settings
        (settings.port, settings.operations.port) = (0, 0)
        settings.metrics?.port = 0
        let server = AuthServer(
            service: service, stores: all, settings: settings, pages: pages, tracer: tracer, logger: logger)
        let (ready, continuation) = AsyncStream.makeStream(of: AuthServer.Addresses.self)
        let group = ServiceGroup(services: [Running(server: server, ready: continuation)], logger: logger)
        shutdown?.group.withLock { $0 = group }
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await group.run() }
            var iterator = ready.makeAsyncIterator()
            guard let addresses = await iterator.next() else {
                try await tasks.next()
                return
            }
            let ports = [addresses.publicURL, addresses.operationsURL].map { url in
                url.split(separator: ":").last.flatMap { Int($0) } ?? 0
            }
            try await body(
                TestServer(
                    stores: memory, all: all, service: service, clock: clock, publicPort: ports[0],
                    operationsPort: ports[1], addresses: addresses, server: server))
            tasks.cancelAll()
            _ = await tasks.nextResult()
        }
    }

    private struct Running: Service {
        let server: AuthServer
        let ready: AsyncStream<AuthServer.Addresses>.Continuation

        func run() async throws {
            defer { ready.finish() }
            try await server.run(stopsOnSignals: false) { ready.yield($0) }
        }
    }

    /// Adds another app like the first one.
    func addApp(_ id: String) async throws {
        var record = Self.record
        record["app_id"] = .string(id)
        try #require(try await service.apps.add(AppRecord(JSONFields(.object(record))), actor: "test"))
    }

    func credential(_ role: CredentialRole, apps: [String] = []) async throws -> String {
        try await service.credentials.create(
            name: "test \(role)", role: role,
            scope: apps.isEmpty ? .allApps : .apps(Set(try apps.map { try AppID($0) })), life: 3600, actor: "test"
        ).text.exposed
    }

    /// Sends one request to the public listener.
    func send(
        _ method: String, _ target: String, _ headers: [(String, String)] = [], body: [UInt8]? = nil
    ) async throws -> RawResponse {
        try await RawConnection.exchange(
            port: publicPort, RawRequest(method: method, target: target, headers: headers, body: body))
    }

    /// Posts JSON to the public listener.
    func post(_ route: Route, _ body: JSONValue, _ headers: [(String, String)] = []) async throws -> RawResponse {
        try await send("POST", route.rawValue, [("Content-Type", "application/json")] + headers, body: body.bytes)
    }

    /// Sends one request to the admin API.
    func administer(
        _ method: String, _ path: String, _ credential: String?, _ further: [(String, String)] = [],
        body: JSONValue? = nil
    ) async throws -> RawResponse {
        var headers = further + (credential.map { [("Authorization", "Bearer \($0)")] } ?? [])
        if body != nil { headers.append(("Content-Type", "application/json")) }
        return try await RawConnection.exchange(
            port: operationsPort,
            RawRequest(method: method, target: AdminRoute.base + path, headers: headers, body: body?.bytes))
    }

    /// Reads from the operations listener.
    func operations(_ path: String, host: String = "localhost") async throws -> RawResponse {
        try await RawConnection.exchange(port: operationsPort, RawRequest(method: "GET", target: path, host: host))
    }
}

/// Lets a test stop a server, as a signal does.
final class ShutdownTrigger: Sendable {
    let group = Locked<ServiceGroup?>(nil)

    func pull() async { await group.withLock { $0 }?.triggerGracefulShutdown() }
}

/// Writes the inputs of a refused proof as a plain document. The real service writes the documents of the module
/// AttestationInspection instead.
private struct PlainRecording: RecordingWriter {
    func document(of proof: RefusedProof, subject: JSONObject) -> (format: String, document: JSONObject) {
        let document = JSONObject([
            ("synheart_evidence", 1), ("about", .object(subject)), ("input", .object(proof.line)),
        ])
        return (proof.line["format"]?.string ?? "unknown", document)
    }
}

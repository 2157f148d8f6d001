import Foundation
import StrictJSON
import Testing

/// The service's log on standard error: a pipe that no process reads, or a file.
@Suite struct Logging {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// Sends requests that cause more log lines than a pipe holds.
    private func flood(_ service: RunningService) async throws {
        let missing = WireRequest(method: "GET", target: "/nowhere")
        for _ in 0..<20 {
            let connection = try #require(WireConnection(port: service.port))
            let answers = await connection.exchange(Array(repeating: missing, count: 100))
            #expect(answers.count == 100 && answers.allSatisfy { $0.status == 404 })
        }
    }

    private func expectAlive(_ service: RunningService) async {
        let health = await WireConnection.exchange(
            port: service.operationsPort, WireRequest(method: "GET", target: "/healthz"))
        #expect(health?.status == 200)
        let metrics = await WireConnection.exchange(
            port: service.operationsPort, WireRequest(method: "GET", target: "/metrics"))
        #expect(metrics?.text.contains("\nsynheart_log_lines_dropped_total ") == true)
        service.signal(SIGTERM)
        #expect(await service.exitCode() == 0)
    }

    @Test func `a full standard error stops neither the listeners nor SIGTERM`() async throws {
        let pipe = Pipe()
        let fixture = try await ServiceFixture(database: folder.path("db.sqlite"))
        let service = try await fixture.start(errors: pipe.fileHandleForWriting)
        try await flood(service)
        await expectAlive(service)
        // The pipe was full, so only the pipe's buffer was written.
        try pipe.fileHandleForWriting.close()
        let logged = try #require(try pipe.fileHandleForReading.readToEnd())
        #expect(logged.count <= 1 << 16 && logged.count > 1 << 15)
    }

    @Test func `a standard error without a reader does not stop the service`() async throws {
        let pipe = Pipe()
        let fixture = try await ServiceFixture(database: folder.path("db.sqlite"))
        let service = try await fixture.start(errors: pipe.fileHandleForWriting)
        try pipe.fileHandleForReading.close()
        try await flood(service)
        await expectAlive(service)
    }

    @Test func `a service logs a line when it starts and one when it stops, and no error`() async throws {
        let log = folder.path("log")
        try Data().write(to: URL(fileURLWithPath: log))
        let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: log))
        let fixture = try await ServiceFixture(database: folder.path("db.sqlite"))
        let service = try await fixture.start(errors: handle)
        #expect(service.stop() == 0)
        let lines = try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n").map {
            try #require(JSONValue(parsing: String($0)).object)
        }
        #expect(lines.allSatisfy { !["error", "critical"].contains($0["level"]?.string) }, "\(lines)")
        let start = try #require(lines.first { $0["message"] == "the service started" })
        #expect(start["public"]?.string == service.publicURL && start["operations"]?.string == service.operationsURL)
        #expect(start["version"]?.string?.isEmpty == false)
        #expect(start["stores"]?.string?.hasSuffix("db.sqlite") == true)
        let settings = start["settings"]?.string ?? ""
        #expect(settings.contains("database (flag --database)"), "\(settings)")
        #expect(settings.contains("protection.device_burst (environment SYNHEART_AUTH_PROTECTION_DEVICE_BURST)"))
        #expect(lines.last?["message"] == "the service stopped" && lines.last?["reason"] == "SIGTERM")
        #expect(lines.last?["ran_seconds"]?.integer != nil && lines.last?["stop_seconds"]?.integer != nil)
    }

    @Test func `the log is complete when the service ends`() async throws {
        let log = folder.path("log")
        try Data().write(to: URL(fileURLWithPath: log))
        let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: log))
        let fixture = try await ServiceFixture(database: folder.path("db.sqlite"))
        let service = try await fixture.start(errors: handle)
        try await flood(service)
        #expect(service.stop() == 0)
        let lines = try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n")
        #expect(lines.filter { $0.contains("\"outcome\":\"NOT_FOUND\"") }.count == 2000)
        #expect(lines.dropLast().last?.contains("audit head") == true, "\(lines.suffix(2))")
    }
}

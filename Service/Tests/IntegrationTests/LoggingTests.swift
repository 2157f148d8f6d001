import Foundation
import Testing

/// The service's standard error is a pipe that no process reads.
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
        // The pipe was full, so only the content of its buffer was written.
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
        #expect(lines.last?.contains("audit head") == true, "\(lines.last ?? "")")
    }
}

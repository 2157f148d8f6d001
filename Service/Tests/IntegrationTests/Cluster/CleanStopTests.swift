import Foundation
import StrictJSON
import Testing

/// The log of a node on PostgreSQL, with and without Redis, at its stop.
@Suite(.serialized) struct CleanStopTests {
    @Test(arguments: [true, false]) func `a clean stop logs a last head and no error`(hasRedis: Bool) async throws {
        let folder = try TemporaryFolder()
        let log = folder.path("log")
        try Data().write(to: URL(fileURLWithPath: log))
        let cluster = try await Cluster(hasRedis: hasRedis)
        let node = try await cluster.fixture.start(errors: FileHandle(forWritingTo: URL(fileURLWithPath: log)))
        #expect(node.stop() == 0)
        let lines = try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n").map {
            try #require(JSONValue(parsing: String($0)).object)
        }
        #expect(lines.allSatisfy { !["error", "critical"].contains($0["level"]?.string) }, "\(lines)")
        #expect(lines.count { $0["message"] == "audit head" } == 2)
        #expect(lines.last?["message"] == "the service stopped")
    }
}

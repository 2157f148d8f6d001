import StoreConformance
import StrictJSON
import Testing

@testable import AuthService

/// A start of the service with another version is recorded as an audit event.
@Suite struct VersionRecordTests {
    private static func changes(_ world: World) async throws -> [[String?]] {
        try await world.audited(.serviceVersionChanged).reversed().map { event in
            #expect(event.actor == "service" && event.appID == nil)
            return [event.detail["from"]?.string, event.detail["to"]?.string]
        }
    }

    @Test func `a store without a version gets it without an event, and each other version is one`() async throws {
        let world = try await World()
        try await world.service.recordStart(version: "1.0.0")
        #expect(try await world.stores.serviceVersion() == "1.0.0")
        #expect(try await Self.changes(world) == [])
        // During a rolling upgrade, nodes of both versions start.
        for version in ["1.0.0", "1.1.0", "1.1.0", "1.0.0", "1.1.0"] {
            try await world.service.recordStart(version: version)
        }
        #expect(try await Self.changes(world) == [["1.0.0", "1.1.0"], ["1.1.0", "1.0.0"], ["1.0.0", "1.1.0"]])
    }

    @Test func `of nodes that start at once with one version, one appends the event`() async throws {
        let world = try await World()
        try await world.service.recordStart(version: "1.0.0")
        let nodes = try (0..<16).map { _ in try world.anotherNode() }
        try await withThrowingDiscardingTaskGroup { group in
            for node in nodes { group.addTask { try await node.recordStart(version: "1.1.0") } }
        }
        #expect(try await Self.changes(world) == [["1.0.0", "1.1.0"]])
    }

    @Test func `a version that another node stored meanwhile is the one before`() async throws {
        let world = try await World()
        try await world.service.recordStart(version: "1.0.0")
        await world.stores.interrupt(.replaceServiceVersion) { stores in
            _ = try? stores.replaceServiceVersion("1.0.0", with: "1.2.0", recording: nil)
        }
        try await world.service.recordStart(version: "1.1.0")
        #expect(try await Self.changes(world) == [["1.2.0", "1.1.0"]])
    }

    @Test(arguments: [MemoryStores.Call.serviceVersion, .replaceServiceVersion])
    func `a store that fails throws, and a later start records the version`(_ call: MemoryStores.Call) async throws {
        let world = try await World()
        try await world.service.recordStart(version: "1.0.0")
        await world.stores.fail(call)
        await #expect(throws: StoreError.self) { try await world.service.recordStart(version: "1.1.0") }
        await world.stores.recover()
        #expect(try await Self.changes(world) == [])
        try await world.service.recordStart(version: "1.1.0")
        #expect(try await Self.changes(world) == [["1.0.0", "1.1.0"]])
    }
}

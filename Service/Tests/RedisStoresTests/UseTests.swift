import Testing

@testable import RedisStores

@Suite("The use of Redis")
struct UseTests {
    @Test func `a server that was replaced or restarted counts once, and a moved slot does not`() throws {
        var table = FakeTable(partitions: 4)
        func publish(_ processes: [String?]) throws {
            var round = FakeTable.Round(partitions: 4)
            for (partition, process) in processes.enumerated() {
                guard let process else { continue }
                let route = FakeTable.Route(
                    session: FakeSession(), epoch: Epoch(id: "e", losses: []),
                    identity: try ServerInfo.fake(run: process).identity, history: nil)
                round.confirmed(partition, .success(route))
            }
            _ = table.publish(round, leaseEnd: ContinuousClock.now)
        }
        for (processes, failovers) in [
            (["a", "a", "b", "b"], 0), (["a", "a", "a", "b"], 0), ([nil, nil, "c", nil], 1), (["c", "c", "c", "b"], 1),
            (["d", "d", "d", "b"], 2), (["d", "d", "e", "e"], 3), ([nil, nil, nil, nil], 3), (["d", "d", "e", "e"], 3),
        ] as [([String?], UInt64)] {
            try publish(processes)
            #expect(table.failovers == failovers, "\(processes)")
        }
    }

    @Test func `the size of a server is that of its database`() throws {
        let info = try ServerInfo.fake(more: "used_memory:1024\ndb0:keys=3,expires=2,avg_ttl=5\ndb12:keys=40,expires=1")
        for (database, keys) in [(0, 3), (12, 40), (1, 0)] as [(Int, Int64)] {
            #expect(info.size(ofDatabase: database) == ServerInfo.Size(keys: keys, memoryBytes: 1024))
        }
        #expect(try ServerInfo.fake().size(ofDatabase: 0) == ServerInfo.Size(keys: 0, memoryBytes: 0))
    }
}

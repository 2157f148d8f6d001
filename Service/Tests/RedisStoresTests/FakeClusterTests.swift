import AuthContract
import AuthService
import Bytes
import RESP
import Testing

@testable import RedisStores

/// Three masters of a Cluster, each with a third of the slots.
private struct FakeCluster {
    private(set) var servers: [FakeServer] = []

    /// The slots of the first server.
    static let slotsOfFirst = 0...5460

    /// - Parameter answer: a server's answer to a command, given the ports of all servers; nil: the answer of a healthy server.
    init(_ answer: @escaping @Sendable (Int, [String], [Int]) -> FakeServer.Answer?) async throws {
        let ports = Locked<[Int]>([])
        for number in 0..<3 {
            let server = try await FakeServer { words in
                let ports = ports.withLock { $0 }
                return answer(number, words, ports) ?? Self.healthy(words, ports)
            }
            servers.append(server)
            ports.withLock { $0.append(server.endpoint.port) }
        }
    }

    var url: String { "redis+cluster://127.0.0.1:\(servers[0].endpoint.port)" }

    private static func healthy(_ words: [String], _ ports: [Int]) -> FakeServer.Answer? {
        switch words.first {
        case "CLUSTER":
            let ranges = zip([slotsOfFirst, 5461...10922, 10923...16383], ports).map { slots, port in
                "*3\r\n:\(slots.lowerBound)\r\n:\(slots.upperBound)\r\n*2\r\n$9\r\n127.0.0.1\r\n:\(port)\r\n"
            }
            return .text("*\(ranges.count)\r\n" + ranges.joined())
        case "TIME": return .text("*2\r\n$10\r\n\(SystemClock().now.seconds)\r\n$1\r\n0\r\n")
        // The script that begins an epoch.
        case "EVALSHA" where words.count == 18: return .text("*3\r\n$1\r\na\r\n$0\r\n\r\n$0\r\n\r\n")
        case "EVALSHA": return .text(":1\r\n")
        default: return nil
        }
    }

    func close() async { for server in servers { await server.close() } }
}

@Suite("Errors of one server of a Cluster")
struct FakeClusterTests {
    @Test(arguments: ["LOADING later", "READONLY no", "NOAUTH no"])
    func `an error of the server that imports a slot ends its own session, and not that of the owner`(
        _ error: String
    ) async throws {
        let cluster = try await FakeCluster { number, words, ports in
            // The script of a token bucket.
            guard words.first == "EVALSHA", words.count == 9 else { return nil }
            return .text(number == 0 ? "-ASK 1 127.0.0.1:\(ports[1])\r\n" : "-\(error)\r\n")
        }
        let stores = try await RedisStores.forTest(cluster.url) { $0.deadline = .seconds(10) }
        let partitions = stores.router.partitions
        let addresses = (0...255).map { ClientAddress("192.0.2.\($0)") }
        let address = try #require(
            addresses.first {
                FakeCluster.slotsOfFirst.contains(partitions.slots[partitions.partition(of: $0.network)])
            })
        let sessions = stores.router.sessions
        let owner = try #require(sessions.first { $0.endpoint == cluster.servers[0].endpoint })
        let importing = try #require(sessions.first { $0.endpoint == cluster.servers[1].endpoint })
        await #expect(throws: StoreError.self) {
            try await stores.limits.take(.enrolment(address), at: Rate(burst: 1, perMinute: 1), isDryRun: false)
        }
        #expect(owner.isOpen && !importing.isOpen)
        await stores.close()
        await cluster.close()
    }

    @Test func `shares are exchanged for every app whose server takes them`() async throws {
        let isFull = Locked([0])
        let cluster = try await FakeCluster { number, words, _ in
            guard words.first == "EVALSHA", words.count > 3, words[3].contains(":s:") else { return nil }
            return .text(isFull.withLock { $0.contains(number) } ? "-OOM full\r\n" : ":7\r\n")
        }
        let stores = try await RedisStores.forTest(cluster.url) { $0.deadline = .seconds(10) }
        let partitions = stores.router.partitions
        let apps = try (0..<40).map { try AppID("com.example.app\($0)") }
        let usable = apps.filter {
            !FakeCluster.slotsOfFirst.contains(partitions.slots[partitions.partition(of: $0.text)])
        }
        #expect(!usable.isEmpty && usable.count < apps.count)
        let counts = Dictionary(uniqueKeysWithValues: apps.map { ($0, 1) })
        #expect(
            try await stores.limits.exchange(counts) == Dictionary(uniqueKeysWithValues: usable.map { ($0, 7) }))
        isFull.withLock { $0 = [0, 1, 2] }
        await #expect(throws: StoreError.self) { try await stores.limits.exchange(counts) }
        await stores.close()
        await cluster.close()
    }
}

import AuthService
import RESP
import Testing

@testable import RedisStores

@Suite("Votes of Sentinels")
struct SentinelVoteTests {
    /// The placement that Sentinels with these ids agree on. Each Sentinel names a master with its `port`, and reports
    /// `others` other Sentinels. `answer` replaces each Sentinel's reply to `MYID`.
    private func placement(
        _ sentinels: [(id: String, port: Int)], others: Int, answer: FakeServer.Answer? = nil
    ) async throws -> Result<Placement, StoreError> {
        var servers: [FakeServer] = []
        for sentinel in sentinels {
            servers.append(
                try await FakeServer { words in
                    switch words.dropFirst().first {
                    case "MYID": answer ?? .text("$\(sentinel.id.utf8.count)\r\n\(sentinel.id)\r\n")
                    case "MASTER":
                        .text(
                            "*4\r\n+name\r\n+num-other-sentinels\r\n+num-other-sentinels\r\n$\("\(others)".utf8.count)\r\n\(others)\r\n"
                        )
                    case "get-master-addr-by-name": .text("*2\r\n$9\r\n127.0.0.1\r\n$4\r\n\(sentinel.port)\r\n")
                    default: nil
                    }
                })
        }
        var settings = ConnectionSettings()
        settings.deadline = .seconds(10)
        let authority = Sentinels(
            endpoints: servers.map(\.endpoint), master: "main", connections: QueryConnections(settings))
        let result: Result<Placement, StoreError>
        do throws(StoreError) { result = .success(try await authority.placement()) } catch { result = .failure(error) }
        await authority.close()
        for server in servers { await server.close() }
        return result
    }

    @Test func `each process has one vote, however many addresses lead to it`() async throws {
        let three = try await placement([("a", 6379), ("b", 6379), ("c", 6380)], others: 2).get()
        #expect(three.owners.map { $0?.port } == [6379])
        #expect(three.sentinels?.answering == 3 && three.sentinels?.all == 3)
        let two = try await placement([("a", 6379), ("a", 6379), ("b", 6379)], others: 2).get()
        #expect(two.owners.map { $0?.port } == [6379] && two.sentinels?.answering == 2)
        for sentinels in [
            [("a", 6379), ("a", 6379), ("a", 6379)], [("a", 6379), ("a", 6379), ("b", 6380)],
            // One Sentinel names two masters.
            [("a", 6379), ("a", 6380), ("b", 6379)],
        ] {
            await #expect(throws: StoreError.self) { try await placement(sentinels, others: 2).get() }
        }
    }

    @Test func `Sentinels that are known but not listed count for the majority`() async throws {
        let sentinels = [("a", 6379), ("b", 6379), ("c", 6379)]
        #expect(try await placement(sentinels, others: 4).get().sentinels?.all == 5)
        await #expect(throws: StoreError.self) { try await placement(sentinels, others: 5).get() }
        await #expect(throws: StoreError.self) { try await placement([("a", 6379)], others: 2).get() }
    }

    @Test func `a Sentinel that does not say who it is has no vote, and a missing right is named`() async throws {
        let sentinels = [("a", 6379), ("b", 6379), ("c", 6379)]
        for answer in [
            "-NOPERM no\r\n", "$0\r\n\r\n", "$-1\r\n", ":1\r\n", "$65\r\n\(String(repeating: "x", count: 65))\r\n",
        ] {
            guard case .failure(let error) = try await placement(sentinels, others: 2, answer: .text(answer)) else {
                Issue.record("\(answer) has a vote")
                continue
            }
            #expect(error.reason.contains("ACL") == answer.hasPrefix("-NOPERM"))
        }
    }
}

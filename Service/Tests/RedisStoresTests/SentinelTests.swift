import AuthContract
import AuthService
import Foundation
import RESP
import ServiceTestHelpers
import Testing

@testable import RedisStores

@Suite("Behind Sentinel", .enabled(if: RedisInstallation.isHere))
struct SentinelTests {
    /// A master, a replica and three Sentinels.
    private struct Deployment {
        let master: RedisServer
        let replica: RedisServer
        var sentinels: [RedisServer] = []

        init() async throws {
            (master, replica) = (try await RedisServer.start(), try await RedisServer.start())
            try await replica.command("REPLICAOF", "127.0.0.1", "\(master.port)")
            try await eventually("the replica is in sync") {
                (try await replica.command("INFO", "replication").text ?? "").contains("master_link_status:up")
            }
            for _ in 0..<3 {
                let (port, folder) = (try LoopbackPort.reserve(), try TemporaryFolder())
                let file = folder.path + "/sentinel.conf"
                try """
                port \(port)
                bind 127.0.0.1
                dir \(folder.path)
                sentinel monitor main 127.0.0.1 \(master.port) 2
                sentinel down-after-milliseconds main 500
                sentinel failover-timeout main 5000
                """.write(toFile: file, atomically: true, encoding: .utf8)
                sentinels.append(try await RedisServer.start([file, "--sentinel"], port: port))
                folders.append(folder)
            }
            for sentinel in sentinels {
                try await eventually("the Sentinels know each other and the replica") {
                    let master = try await sentinel.command("SENTINEL", "MASTER", "main").elements ?? []
                    func field(_ name: String) -> String? {
                        master.firstIndex { $0.text == name }.map { master[$0 + 1].text } ?? nil
                    }
                    return field("num-other-sentinels") == "2" && field("num-slaves") == "1"
                }
            }
        }

        private var folders: [TemporaryFolder] = []

        var url: String {
            "redis+sentinel://" + sentinels.map { "127.0.0.1:\($0.port)" }.joined(separator: ",") + "/main"
        }
    }

    @Test
    func
        `the stores keep every guarantee, and after a failover they follow the new master and refuse what it may not know`()
        async throws
    {
        let deployment = try await Deployment()
        let stores = try await RedisStores.forTest(deployment.url)
        try await ConformanceTests.run(on: stores)
        let request = SampleRequest()
        #expect(try await stores.claim(request) == .claimed)
        deployment.master.kill()
        let killed = ContinuousClock.now
        #expect(try await stores.claimOnceAvailable(request).isHistoryLost)
        #expect(killed.duration(to: .now) < .seconds(20))
        let later = SampleRequest(at: SystemClock().now + 150)
        #expect(try await stores.claim(later, now: later.timestamp) == .claimed)
        #expect(try await deployment.replica.command("ROLE").elements?.first?.text == "master")
        await stores.close()
    }

    @Test func `what the Sentinels answer is told`() async throws {
        let deployment = try await Deployment()
        for (url, reason) in [
            (deployment.url.replacing("/main", with: "/nomain"), "No such master"),
            (deployment.url.replacing("redis+", with: "rediss+"), "did not answer in time"),
        ] {
            let sentence = try #require(await RedisStores.diagnose(url).first).sentence
            #expect(sentence.contains("0 name one") && sentence.contains(reason), "\(sentence)")
        }
    }

    @Test func `without a majority of the Sentinels the lease ends, and with it every answer`() async throws {
        let deployment = try await Deployment()
        let stores = try await RedisStores.forTest(deployment.url)
        let request = SampleRequest()
        #expect(try await stores.claim(request) == .claimed)
        func finding() async -> StoreCheckResult.Level? {
            await RedisStores.diagnose(deployment.url).first { $0.check == "redis_sentinels" }?.level
        }
        #expect(await finding() == .good)
        deployment.sentinels[0].kill()
        #expect(await finding() == .warning)
        // Two of three Sentinels are a majority. The loop runs longer than a lease.
        let end = ContinuousClock.now + .seconds(ClaimHistory.lease + 1)
        while ContinuousClock.now < end {
            #expect(try await stores.claim(request) == .taken(request.claims[0]))
            try await Task.sleep(for: .milliseconds(200))
        }
        deployment.sentinels[1].kill()
        try await eventually("the stores refuse") { (try? await stores.claim(SampleRequest())) == nil }
        await #expect(throws: StoreError.self) { try await stores.check() }
        #expect((try? await stores.claim(request)) == nil)
        await stores.close()
    }

    @Test func `a master that a majority does not name any more is not used, although it answers`() async throws {
        let deployment = try await Deployment()
        let stores = try await RedisStores.forTest(deployment.url)
        let request = SampleRequest()
        #expect(try await stores.claim(request) == .claimed)
        // Simulates a partition: the old master still runs, and does not learn of the failover.
        deployment.master.signal(SIGSTOP)
        try await eventually("the replica is promoted") {
            // Sentinel closes the clients' connections at a promotion.
            (try? await deployment.replica.command("ROLE"))?.elements?.first?.text == "master"
        }
        #expect(try await stores.claimOnceAvailable(request).isHistoryLost)
        deployment.master.signal(SIGCONT)
        for _ in 0..<20 {
            let outcome = try? await stores.claim(request)
            #expect(outcome == nil || outcome?.isHistoryLost == true)
        }
        await stores.close()
    }
}

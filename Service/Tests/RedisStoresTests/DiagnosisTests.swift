import AuthContract
import AuthService
import RESP
import ServiceTestHelpers
import Testing

@testable import RedisStores

@Suite("Diagnosis", .enabled(if: RedisInstallation.isHere))
struct DiagnosisTests {
    private func levels(_ findings: [StoreCheckResult]) -> [String: StoreCheckResult.Level] {
        Dictionary(findings.map { ($0.check, $0.level) }) { first, _ in first }
    }

    @Test func `a good server has good findings, and an open maxmemory is a warning`() async throws {
        let server = try await RedisServer.start()
        var findings = await RedisStores.diagnose(server.url)
        #expect(levels(findings)["redis_memory"] == .warning)
        #expect(findings.filter { $0.level != .good }.count == 1, "\(findings)")
        try await server.command("CONFIG", "SET", "maxmemory", "100mb")
        let stores = try await RedisStores.forTest(server.url)
        findings = await stores.diagnose()
        #expect(findings.allSatisfy { $0.level == .good }, "\(findings)")
        #expect(Set(findings.map(\.check)).count == findings.count)
        // 100 MB hold 667,000 claims.
        for (claims, level) in [(600_000, StoreCheckResult.Level.good), (700_000, .warning)] {
            #expect(levels(await RedisStores.diagnose(server.url, claimsOfOneApp: claims))["redis_memory"] == level)
        }
        await stores.close()
    }

    @Test func `a loss that still refuses requests is a warning, with its end`() async throws {
        let server = try await RedisServer.start()
        let stores = try await RedisStores.forTest(server.url) { $0.mayHaveHistory = { true } }
        let finding = await stores.diagnose().first { $0.check == "redis_history" }
        #expect(finding?.level == .warning)
        #expect(finding?.sentence.contains(" s.") == true, "\(finding?.sentence ?? "")")
        await stores.close()
    }

    @Test func `a closed port is told in plain words`() async throws {
        let finding = try #require(await RedisStores.diagnose("redis://127.0.0.1:\(try LoopbackPort.reserve())").first)
        #expect(finding.check == "redis_connection" && finding.sentence.contains("nothing listens there"))
        #expect(!finding.sentence.contains("NIO") && !finding.sentence.contains("errno"), "\(finding.sentence)")
    }

    @Test func `eviction, a clock apart, a replica and missing rights are failures`() async throws {
        let (server, replica) = (try await RedisServer.start(), try await RedisServer.start())
        try await server.command("CONFIG", "SET", "maxmemory", "100mb")
        try await server.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
        let clock = MovableClock()
        clock.move(by: -45)
        var found = levels(await RedisStores.diagnose(server.url, clock: clock))
        #expect(found["redis_eviction"] == .failure && found["redis_clock"] == .failure)
        #expect(found["redis_version"] == .good && found["redis_role"] == .good)

        try await replica.command("REPLICAOF", "127.0.0.1", "\(server.port)")
        found = levels(await RedisStores.diagnose(replica.url))
        #expect(found["redis_role"] == .failure)

        let rights = TLSTests.rights.split(separator: " ").map(String.init)
        // Every user may call HELLO and AUTH. The checks work without SELECT (they use database 0) and without a connection name.
        let others: Set = ["+hello", "+auth", "+select", "+client|setname"]
        for missing in rights where missing.hasPrefix("+") && !others.contains(missing) {
            try await server.command(
                ["ACL", "SETUSER", "few", "reset", "on", ">hush", "resetkeys", "-@all"]
                    + rights.filter { $0 != missing })
            let few = await RedisStores.diagnose("redis://few:hush@127.0.0.1:\(server.port)")
            let found = levels(few)
            #expect(found["redis_rights"] == .failure || found["redis_connection"] == .failure, "without \(missing)")
            #expect(!few.contains { $0.sentence.contains("hush") })
        }
    }

    @Test(arguments: [["--min-replicas-to-write", "1"], ["--maxmemory", "1", "--maxmemory-policy", "noeviction"]])
    func `a server that takes no writes is a failure`(arguments: [String]) async throws {
        let server = try await RedisServer.start(arguments)
        let found = levels(await RedisStores.diagnose(server.url))
        #expect(found["redis_writes"] == .failure && found["redis_rights"] == nil)
    }

    @Test func `a wrong URL, a closed port and a Cluster's node are failures`() async throws {
        #expect(levels(await RedisStores.diagnose("http://host")) == ["redis_url": .failure])
        let port = try LoopbackPort.reserve()
        #expect(levels(await RedisStores.diagnose("redis://127.0.0.1:\(port)")) == ["redis_connection": .failure])
        #expect(
            levels(await RedisStores.diagnose("redis+sentinel://127.0.0.1:\(port)/m")) == ["redis_connection": .failure]
        )
        let node = try await RedisServer.start(["--cluster-enabled", "yes"])
        #expect(levels(await RedisStores.diagnose(node.url))["redis_mode"] == .failure)
    }
}

@Suite("Diagnosis of Valkey")
struct ValkeyDiagnosisTests {
    @Test func `Valkey is named by its own version, and not by the one of Redis that it claims`() async throws {
        let info = FakeServer.info.replacing(
            "redis_version:7.0.15", with: "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1")
        let server = try await FakeServer { words in
            switch words.first {
            case "INFO": .text("$\(info.utf8.count)\r\n\(info)\r\n")
            case "TIME": .text("*2\r\n$10\r\n\(SystemClock().now.seconds)\r\n$1\r\n0\r\n")
            default: nil
            }
        }
        let findings = await RedisStores.diagnose("redis://127.0.0.1:\(server.endpoint.port)")
        let version = try #require(findings.first { $0.check == "redis_version" })
        #expect(version.level == .good && version.sentence.hasSuffix("is Valkey 8.0.1."), "\(version)")
        #expect(findings.first { $0.check == "redis_clock" }?.level == .good)
        await server.close()
    }
}

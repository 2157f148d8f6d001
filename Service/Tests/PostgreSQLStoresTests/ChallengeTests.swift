import AuthContract
import AuthService
import ServiceTestHelpers
import Testing

@testable import PostgreSQLStores

extension AgainstPostgreSQL {
    @Suite
    struct ChallengeTests {
        private func challenge(expiresIn seconds: Int64 = 90) throws -> IssuedChallenge {
            IssuedChallenge(
                bytes: SystemRandom().bytes(32), appID: try AppID("com.example.app"), purpose: .rotate,
                expiresAt: FixedClock().now + seconds)
        }

        private func options(_ maximum: Int) -> PostgreSQLStores.Options {
            var options = PostgreSQLStores.Options.patient
            options.maximumChallenges = maximum
            return options
        }

        @Test func `a full store evicts the oldest of the busiest source`() async throws {
            let stores = try await open(try await PostgreSQLServer.shared().database(), options: options(10))
            let quiet = try (0..<3).map { try challenge(expiresIn: Int64($0)) }
            for challenge in quiet { try await stores.challenges.put(challenge, source: "192.0.2.1") }
            let flood = try (0..<30).map { try challenge(expiresIn: 10 + Int64($0)) }
            for challenge in flood { try await stores.challenges.put(challenge, source: "192.0.2.2") }
            for challenge in quiet { #expect(try await stores.challenges.take(challenge.bytes) == challenge) }
            for challenge in flood.prefix(23) { #expect(try await stores.challenges.take(challenge.bytes) == nil) }
            for challenge in flood.suffix(7) { #expect(try await stores.challenges.take(challenge.bytes) == challenge) }
            await stores.close()
        }

        @Test func `an expired challenge makes room before one that can still be used`() async throws {
            let stores = try await open(try await PostgreSQLServer.shared().database(), options: options(10))
            let now = SystemClock().now
            func put(_ source: String, expiresIn seconds: Int64) async throws -> IssuedChallenge {
                let challenge = IssuedChallenge(
                    bytes: SystemRandom().bytes(32), appID: try AppID("com.example.app"), purpose: .register,
                    expiresAt: now + seconds)
                try await stores.challenges.put(challenge, source: source)
                return challenge
            }
            for number in 0..<6 { _ = try await put("192.0.2.\(number)", expiresIn: -60) }
            var busy: [IssuedChallenge] = []
            for _ in 0..<8 { busy.append(try await put("198.51.100.1", expiresIn: 90)) }
            for challenge in busy { #expect(try await stores.challenges.take(challenge.bytes) == challenge) }
            await stores.close()
        }

        @Test func `the bound holds when many nodes put at once`() async throws {
            let server = try await PostgreSQLServer.shared()
            let url = try server.database()
            let nodes = [try await open(url, options: options(20)), try await open(url, options: options(20))]
            try await withThrowingDiscardingTaskGroup { group in
                for number in 0..<200 {
                    group.addTask {
                        try await nodes[number % 2].challenges.put(try challenge(), source: "192.0.2.\(number)")
                    }
                }
            }
            try await nodes[0].challenges.put(try challenge(), source: "192.0.2.1")
            #expect(try #require(Int(server.sql("SELECT count(*) FROM challenges", in: url))) <= 20)
            for node in nodes { await node.close() }
        }

        @Test func `one node takes what another one put, once`() async throws {
            let url = try await PostgreSQLServer.shared().database()
            let nodes = [try await open(url), try await open(url)]
            let challenge = try challenge()
            try await nodes[0].challenges.put(challenge, source: "192.0.2.1")
            let taken = try await withThrowingTaskGroup(of: IssuedChallenge?.self) { group in
                for number in 0..<64 {
                    group.addTask { try await nodes[number % 2].challenges.take(challenge.bytes) }
                }
                return try await group.reduce(into: [IssuedChallenge]()) { if let taken = $1 { $0.append(taken) } }
            }
            #expect(taken == [challenge])
            for node in nodes { await node.close() }
        }

        @Test func `the sweep empties tables whose challenges have all ended, and no others`() async throws {
            let server = try await PostgreSQLServer.shared()
            let url = try server.database()
            let stores = try await open(url)
            try await stores.challenges.put(try challenge(expiresIn: -2000), source: "192.0.2.1")
            let live = try challenge()
            try await stores.challenges.put(live, source: "192.0.2.1")
            try await stores.sweeper?.sweep()
            #expect(try server.sql("SELECT count(*) FROM challenges", in: url) == "1")
            #expect(try await stores.challenges.take(live.bytes) == live)
            await stores.close()
        }
    }
}

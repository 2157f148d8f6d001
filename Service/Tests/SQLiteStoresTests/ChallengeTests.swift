import AuthContract
import AuthService
import Testing

@testable import SQLiteStores

struct ChallengeTests {
    @Test func `a challenge survives the end of the service in order, and is taken once`() async throws {
        let folder = try TemporaryFolder()
        let challenge = try sampleChallenge(1)
        let first = try SQLiteStores.open(folder)
        try await first.challenges.put(challenge, source: "192.0.2.1")
        await first.close()
        let second = try SQLiteStores.open(folder)
        #expect(try await second.challenges.take(challenge.bytes) == challenge)
        #expect(try await second.challenges.take(challenge.bytes) == nil)
        await second.close()
        let third = try SQLiteStores.open(folder)
        #expect(try await third.challenges.take(challenge.bytes) == nil)
        await third.close()
    }

    @Test
    func `beyond the bound, the oldest challenge of the busiest source is evicted, whatever was taken in between`()
        async throws
    {
        let held = InMemoryChallengeStore(clock: FixedClock(), maximum: 4)
        for (byte, source) in [(1, "quiet"), (2, "busy"), (3, "busy"), (4, "busy")] as [(UInt8, String)] {
            try await held.put(try sampleChallenge(byte), source: source)
        }
        _ = try await held.take(try sampleChallenge(2).bytes)
        try await held.put(try sampleChallenge(5), source: "busy")
        try await held.put(try sampleChallenge(6), source: "other")
        var left: [UInt8] = []
        for byte: UInt8 in 1...6 where try await held.take(try sampleChallenge(byte).bytes) != nil { left.append(byte) }
        #expect(left == [1, 4, 5, 6])
    }

    @Test func `an expired challenge makes room before one that can still be used`() throws {
        var challenges = BoundedChallengeSet(maximum: 10)
        let (app, now) = (try AppID("com.example.app"), FixedClock().now)
        func put(_ byte: UInt8, _ source: String, expiresIn seconds: Int64) {
            let bytes = [UInt8](repeating: byte, count: 32)
            let challenge = IssuedChallenge(bytes: bytes, appID: app, purpose: .register, expiresAt: now + seconds)
            challenges.put(challenge, source: source, now: now)
        }
        for byte: UInt8 in 0..<6 { put(byte, "flood \(byte)", expiresIn: -1 - Int64(byte)) }
        for byte: UInt8 in 10..<18 { put(byte, "busy", expiresIn: 60) }
        let left = challenges.drain().map { $0.challenge.bytes[0] }
        #expect(left == [4, 5] + (10..<18))
    }

    /// The challenges that remain after these steps. `b2` puts challenge 2 from source `b`. `T2` takes challenge 2.
    private func left(_ steps: [String], maximum: Int = 4) throws -> [UInt8] {
        var challenges = BoundedChallengeSet(maximum: maximum)
        for step in steps {
            let byte = try #require(UInt8(step.dropFirst()))
            if step.first == "T" {
                #expect(challenges.take([UInt8](repeating: byte, count: 32), now: FixedClock().now) != nil)
            } else {
                challenges.put(try sampleChallenge(byte), source: String(step.prefix(1)), now: FixedClock().now)
            }
        }
        return challenges.drain().map { $0.challenge.bytes[0] }
    }

    @Test(
        arguments: [
            (["b1", "b2", "b3", "q4", "o5"], [2, 3, 4, 5]),
            // After two evictions, another source is the busiest.
            (["q1", "b2", "b3", "b4", "o5", "o6", "o7"], [1, 4, 6, 7]),
            // Taking a challenge reduces the count of its source.
            (["b1", "b2", "b3", "T2", "q4", "o5", "x6"], [3, 4, 5, 6]),
            (["b1", "q2", "T1", "T2", "b3", "b4", "q5", "q6", "T3", "T5", "o7", "o8", "o9"], [4, 6, 8, 9]),
            // Each source has one challenge, so any of them may be evicted.
            (["a1", "b2", "c3", "d4", "e5"], nil),
        ] as [([String], [UInt8]?)])
    func `a challenge beyond the bound evicts the oldest challenge of the busiest source`(
        _ steps: [String], _ expected: [UInt8]?
    ) throws {
        let left = try left(steps)
        #expect(left.count == 4)
        if let expected { #expect(left == expected) }
    }

    @Test(arguments: [0, -1]) func `a bound below one is one`(_ maximum: Int) throws {
        #expect(try left(["a1", "a2"], maximum: maximum) == [2])
    }

    @Test func `a challenge put again counts once, with its new source`() throws {
        #expect(try left(["a1", "b2", "b3", "b1", "a4", "o5"]) == [3, 1, 4, 5])
    }

    @Test(arguments: [(690, true), (691, false)] as [(Int64, Bool)])
    func `a challenge is kept for ten minutes after its expiry`(_ age: Int64, _ isKept: Bool) throws {
        var challenges = BoundedChallengeSet(maximum: 10)
        let (start, challenge) = (FixedClock().now, try sampleChallenge(1))
        challenges.put(challenge, source: "a", now: start)
        #expect((challenges.take(challenge.bytes, now: start + age) != nil) == isKept)
        challenges.put(challenge, source: "a", now: start)
        challenges.put(try sampleChallenge(2), source: "b", now: start + age)
        #expect((challenges.drain().count == 2) == isKept)
    }

    @Test func `a flooding source never evicts another source's challenges`() async throws {
        let held = InMemoryChallengeStore(clock: FixedClock(), maximum: 100)
        let kept = try sampleChallenge(255)
        try await held.put(kept, source: "quiet")
        let random = SystemRandom()
        for _ in 0..<5000 {
            let challenge = IssuedChallenge(
                bytes: random.bytes(32), appID: kept.appID, purpose: .register, expiresAt: kept.expiresAt)
            try await held.put(challenge, source: "flood")
        }
        #expect(try await held.take(kept.bytes) == kept)
        #expect(held.drain().count == 99)
    }

    @Test func `challenges that expired long ago free their space`() throws {
        var challenges = BoundedChallengeSet(maximum: 10)
        let start = FixedClock().now
        for byte: UInt8 in 1...5 { challenges.put(try sampleChallenge(byte), source: "a", now: start) }
        challenges.put(try sampleChallenge(6, expiresIn: 2000), source: "b", now: start + 90 + 601)
        #expect(challenges.drain().map(\.challenge.bytes[0]) == [6])
    }
}

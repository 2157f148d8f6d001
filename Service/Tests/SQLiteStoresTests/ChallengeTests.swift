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
        let held = HeldChallenges(clock: FixedClock(), maximum: 4)
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

    @Test func `a flooding source never evicts another source's challenges`() async throws {
        let held = HeldChallenges(clock: FixedClock(), maximum: 100)
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

    @Test func `claims that expired long ago free their space`() throws {
        var book = ChallengeBook(maximum: 10)
        let start = FixedClock().now
        for byte: UInt8 in 1...5 { book.put(try sampleChallenge(byte), source: "a", now: start) }
        book.put(try sampleChallenge(6, expiresIn: 2000), source: "b", now: start + 90 + 601)
        #expect(book.drain().map(\.challenge.bytes[0]) == [6])
    }
}

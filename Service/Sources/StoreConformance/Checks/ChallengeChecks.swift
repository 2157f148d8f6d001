internal import AuthContract
internal import AuthService

extension StoreConformance {
    static var challengeChecks: [ConformanceCheck] {
        [
            ConformanceCheck("A challenge is taken once, as it was put") { stores in
                let samples = try Samples(stores)
                let challenge = samples.challenge()
                try await stores.challenges.put(challenge, source: "192.0.2.1")
                try expect(try await stores.challenges.take(challenge.bytes), is: challenge, "what was taken")
                try expect(try await stores.challenges.take(challenge.bytes), is: nil, "what was taken again")
            },
            ConformanceCheck("An unknown challenge is nothing") { stores in
                let samples = try Samples(stores)
                try expect(try await stores.challenges.take(samples.bytes()), is: nil, "what was taken")
                try expect(try await stores.challenges.take([]), is: nil, "what was taken for no bytes")
            },
            ConformanceCheck("Of 64 takers of one challenge exactly one gets it") { stores in
                let challenge = try Samples(stores).challenge()
                try await stores.challenges.put(challenge, source: "192.0.2.1")
                let taken = try await concurrently(64) { _ in try await stores.challenges.take(challenge.bytes) }
                try expect(taken.compactMap { $0 }, is: [challenge], "what 64 takers got")
            },
            ConformanceCheck("Challenges put at once are all kept apart") { stores in
                let samples = try Samples(stores)
                let challenges = (0..<64).map { _ in samples.challenge() }
                _ = try await concurrently(64) { number in
                    try await stores.challenges.put(challenges[number], source: "192.0.2.\(number)")
                }
                let taken = try await concurrently(64) { try await stores.challenges.take(challenges[$0].bytes) }
                try expect(taken, is: challenges, "what was taken")
            },
            ConformanceCheck("An expired challenge is kept long enough to be told from an unknown one") { stores in
                let samples = try Samples(stores)
                let expired = samples.challenge(expiresIn: -IssuedChallenge.keptAfterExpiry + 60)
                try await stores.challenges.put(expired, source: "192.0.2.1")
                try expect(try await stores.challenges.take(expired.bytes), is: expired, "the expired challenge")
            },
            ConformanceCheck("A challenge that expired long ago is gone") { stores in
                let samples = try Samples(stores)
                let old = samples.challenge(expiresIn: -IssuedChallenge.keptAfterExpiry - 60)
                try await stores.challenges.put(old, source: "192.0.2.1")
                try expect(try await stores.challenges.take(old.bytes), is: nil, "the old challenge")
            },
        ]
    }
}

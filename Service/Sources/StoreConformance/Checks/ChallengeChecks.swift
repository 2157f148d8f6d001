internal import AuthContract
internal import AuthService

extension StoreConformance {
    static var challengeChecks: [ConformanceCheck] {
        [
            ConformanceCheck("A challenge is taken once, unchanged") { stores in
                let samples = try Samples(stores)
                let challenge = samples.challenge()
                try await stores.challenges.put(challenge, source: "192.0.2.1")
                try expect(try await stores.challenges.take(challenge.bytes), is: challenge, "the take")
                try expect(try await stores.challenges.take(challenge.bytes), is: nil, "the second take")
            },
            ConformanceCheck("Taking an unknown challenge returns nothing") { stores in
                let samples = try Samples(stores)
                try expect(try await stores.challenges.take(samples.bytes()), is: nil, "the take")
                try expect(try await stores.challenges.take([]), is: nil, "the take of no bytes")
            },
            ConformanceCheck("Of 64 callers that take one challenge exactly one gets it") { stores in
                let challenge = try Samples(stores).challenge()
                try await stores.challenges.put(challenge, source: "192.0.2.1")
                let taken = try await concurrently(64) { _ in try await stores.challenges.take(challenge.bytes) }
                try expect(taken.compactMap { $0 }, is: [challenge], "the challenges of 64 takes")
            },
            ConformanceCheck("64 challenges put at once are all kept") { stores in
                let samples = try Samples(stores)
                let challenges = (0..<64).map { _ in samples.challenge() }
                _ = try await concurrently(64) { number in
                    try await stores.challenges.put(challenges[number], source: "192.0.2.\(number)")
                }
                let taken = try await concurrently(64) { try await stores.challenges.take(challenges[$0].bytes) }
                try expect(taken, is: challenges, "the take")
            },
            ConformanceCheck("An expired challenge is kept for ten minutes") { stores in
                let samples = try Samples(stores)
                let expired = samples.challenge(expiresIn: -IssuedChallenge.keptAfterExpiry + 60)
                try await stores.challenges.put(expired, source: "192.0.2.1")
                try expect(try await stores.challenges.take(expired.bytes), is: expired, "the expired challenge")
            },
            ConformanceCheck("A challenge that expired more than ten minutes ago is not returned") { stores in
                let samples = try Samples(stores)
                let old = samples.challenge(expiresIn: -IssuedChallenge.keptAfterExpiry - 60)
                try await stores.challenges.put(old, source: "192.0.2.1")
                try expect(try await stores.challenges.take(old.bytes), is: nil, "the old challenge")
            },
        ]
    }
}

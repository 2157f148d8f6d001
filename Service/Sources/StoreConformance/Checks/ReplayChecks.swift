internal import AuthContract
internal import AuthService

extension StoresUnderTest {
    /// Makes claims for a request, which is dated now unless `timestamp` is given. All calls name the same device. A claim is a hash
    /// over its device, so no caller makes the same claim for two devices.
    func claim(
        _ claims: [ReplayClaim], timestamp: UnixTime? = nil, expiresAt: UnixTime? = nil, now: UnixTime? = nil,
        tag: ClaimTag? = nil
    ) async throws -> ClaimOutcome {
        let timestamp = timestamp ?? self.now
        return try await replay.claim(
            claims, of: Samples.device, timestamp: timestamp, expiresAt: expiresAt ?? timestamp + ReplayClaim.life,
            now: now ?? self.now, futureWindow: 60, tag: tag)
    }

    /// Whether the store says that a call with this tag made claims within the last minute.
    func holds(_ tag: ClaimTag, now: UnixTime? = nil) async throws -> Bool {
        try await replay.holds(tag, of: Samples.device, now: now ?? self.now)
    }
}

extension StoreConformance {
    static var replayChecks: [ConformanceCheck] {
        [
            ConformanceCheck("A claimed value is taken, and the outcome names it") { stores in
                let samples = try Samples(stores)
                let (first, second, third) = (samples.claim(), samples.claim(), samples.claim())
                try expect(try await stores.claim([first, second]), is: .claimed, "the first claim")
                try expect(try await stores.claim([first, second]), is: .taken(first), "the same again")
                try expect(try await stores.claim([third, second]), is: .taken(second), "one old and one new")
            },
            ConformanceCheck("A refused set takes none of its claims") { stores in
                let samples = try Samples(stores)
                let (old, new) = (samples.claim(), samples.claim())
                try expect(try await stores.claim([old]), is: .claimed, "the first claim")
                try expect(try await stores.claim([new, old]), is: .taken(old), "one old and one new")
                try expect(try await stores.claim([new]), is: .claimed, "the new one by itself")
            },
            ConformanceCheck("Of 64 tasks that claim one pair one succeeds") { stores in
                let samples = try Samples(stores)
                let pair = [samples.claim(), samples.claim()]
                let outcomes = try await concurrently(64) { _ in try await stores.claim(pair) }
                try expect(outcomes.count { $0 == .claimed }, is: 1, "the number of winners")
                try expect(outcomes.count { $0 == .taken(pair[0]) }, is: 63, "the number of replays")
            },
            ConformanceCheck("Of 64 tasks that claim overlapping sets, at most one gets each claim") { stores in
                let samples = try Samples(stores)
                let claims = (0..<65).map { _ in samples.claim() }
                let outcomes = try await concurrently(64) { try await stores.claim([claims[$0], claims[$0 + 1]]) }
                let winners = outcomes.indices.filter { outcomes[$0] == .claimed }
                try expect(!winners.isEmpty, "no task succeeded")
                try expect(
                    zip(winners, winners.dropFirst()).allSatisfy { $1 - $0 > 1 }, "two got one claim: \(winners)")
                for (number, outcome) in outcomes.enumerated() where outcome != .claimed {
                    let free = !winners.contains(number - 1) && !winners.contains(number + 1)
                    try expect(!free, "task \(number) was refused, and no other task has its claims")
                }
            },
            ConformanceCheck("A claim lives until a second before its expiry") { stores in
                let claim = try Samples(stores).claim()
                let now = stores.now
                try expect(try await stores.claim([claim]), is: .claimed, "the first claim")
                let later = try await stores.claim([claim], expiresAt: now + 1200, now: now + ReplayClaim.life - 1)
                try expect(later, is: .taken(claim), "a second before expiry")
            },
            ConformanceCheck("A claim is free a minute after its expiry") { stores in
                let claim = try Samples(stores).claim()
                let now = stores.now
                try expect(try await stores.claim([claim]), is: .claimed, "the first claim")
                let later = try await stores.claim([claim], timestamp: now + 720, now: now + 720)
                try expect(later, is: .claimed, "a minute after expiry")
            },
            ConformanceCheck("An expired claim is refused") { stores in
                let claim = try Samples(stores).claim()
                let outcome = try await stores.claim([claim], expiresAt: stores.now)
                try expect(outcome, is: .expired, "the outcome")
            },
            ConformanceCheck("A clock that steps back does not free purged claims") { stores in
                let samples = try Samples(stores)
                let claim = samples.claim()
                let now = stores.now
                try expect(try await stores.claim([claim]), is: .claimed, "the first claim")
                _ = try await stores.claim([samples.claim()], timestamp: now + 2000, now: now + 2000)
                let replay = try await stores.claim([claim])
                try expect(replay != .claimed, "the replay was accepted after the clock had stepped back")
            },
            ConformanceCheck("Claims may be taken again under their tag, and under no other") { stores in
                let samples = try Samples(stores)
                let (first, second) = (samples.claim(), samples.claim())
                let (tag, other) = (ClaimTag(claim: samples.claim()), ClaimTag(claim: samples.claim()))
                try expect(try await stores.holds(tag), is: false, "whether the tag is held before")
                try expect(try await stores.claim([first, second], tag: tag), is: .claimed, "the first claim")
                try expect(try await stores.claim([first, second], tag: tag), is: .claimed, "the same tag again")
                try expect(try await stores.claim([first, second], tag: other), is: .taken(first), "another tag")
                try expect(try await stores.claim([first, second]), is: .taken(first), "no tag")
                try expect(try await stores.holds(tag), is: true, "whether the tag is held")
                try expect(try await stores.holds(other), is: false, "whether the tag of a refused call is held")
                try expect(try await stores.claim([first, second], tag: tag), is: .claimed, "the same tag once more")
            },
            ConformanceCheck("Claims without a tag may not be taken again under one") { stores in
                let samples = try Samples(stores)
                let (claim, tag) = (samples.claim(), ClaimTag(claim: samples.claim()))
                try expect(try await stores.claim([claim]), is: .claimed, "the first claim")
                try expect(try await stores.claim([claim], tag: tag), is: .taken(claim), "the same with a tag")
                try expect(try await stores.claim([claim], tag: tag), is: .taken(claim), "the same with the tag again")
                try expect(try await stores.holds(tag), is: false, "whether the tag is held")
            },
            ConformanceCheck("A tag lives for a minute, and its claims live on") { stores in
                let samples = try Samples(stores)
                let (claim, tag) = (samples.claim(), ClaimTag(claim: samples.claim()))
                let now = stores.now
                try expect(try await stores.claim([claim], tag: tag), is: .claimed, "the first claim")
                let (before, after) = (now + 59, now + 60)
                try expect(try await stores.claim([claim], now: before, tag: tag), is: .claimed, "after 59 s")
                try expect(try await stores.holds(tag, now: before), is: true, "whether the tag is held after 59 s")
                try expect(try await stores.holds(tag, now: after), is: false, "whether the tag is held after 60 s")
                try expect(try await stores.claim([claim], now: after, tag: tag), is: .taken(claim), "after 60 s")
            },
            ConformanceCheck("A tag can be taken without claims") { stores in
                let tag = ClaimTag(claim: try Samples(stores).claim())
                try expect(try await stores.claim([], tag: tag), is: .claimed, "the outcome")
                try expect(try await stores.holds(tag), is: true, "whether the tag is held")
            },
            ConformanceCheck("With a shared tag all of 64 tasks succeed; with different tags only one does") { stores in
                let samples = try Samples(stores)
                let (shared, contested) = (samples.claim(), samples.claim())
                let tag = ClaimTag(claim: samples.claim())
                let tags = (0..<64).map { _ in ClaimTag(claim: samples.claim()) }
                let together = try await concurrently(64) { _ in try await stores.claim([shared], tag: tag) }
                try expect(together.count { $0 == .claimed }, is: 64, "the number of winners with one tag")
                let apart = try await concurrently(64) { try await stores.claim([contested], tag: tags[$0]) }
                try expect(apart.count { $0 == .claimed }, is: 1, "the number of winners with tags of their own")
            },
            ConformanceCheck("2000 live claims are all kept") { stores in
                let samples = try Samples(stores)
                let claims = (0..<2000).map { _ in samples.claim() }
                for claim in claims { _ = try await stores.claim([claim]) }
                for claim in claims { try expect(try await stores.claim([claim]), is: .taken(claim), "a live claim") }
            },
        ]
    }
}

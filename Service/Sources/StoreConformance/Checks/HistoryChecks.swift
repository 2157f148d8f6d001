internal import AuthContract
internal import AuthService

extension StoreConformance {
    static var historyChecks: [ConformanceCheck] {
        [
            ConformanceCheck("Verdict counts of a minute add up, and a batch is added once") { stores in
                let samples = try HistorySamples(stores)
                let first = samples.batch(of: [samples.verdict(): 3, samples.verdict("NONCE_REPLAY"): 1])
                for batch in [first, samples.batch(of: [samples.verdict(): 4]), first] {
                    try await stores.history.add(batch)
                }
                let sums = try await stores.history.sums(samples.query(by: .code))
                try expect(
                    Set(sums), is: [samples.sum(7, [.code: "verified"]), samples.sum(1, [.code: "NONCE_REPLAY"])],
                    "the sums")
            },
            ConformanceCheck("Of 32 batches of one minute added at once every count is kept") { stores in
                let samples = try HistorySamples(stores)
                let verdicts = (0..<8).map { samples.verdict("CODE_\($0)") }
                _ = try await concurrently(32) { number in
                    var counts = Dictionary(uniqueKeysWithValues: verdicts.shuffled().map { ($0, Int64(1)) })
                    counts[verdicts[number % 8]] = 2
                    try await stores.history.add(samples.batch(of: counts))
                }
                let sums = try await stores.history.sums(samples.query(by: .code))
                try expect(
                    Set(sums), is: Set(verdicts.map { samples.sum(36, [.code: $0.code]) }), "the sums")
            },
            ConformanceCheck("Verdict counts are summed by slot and group, and narrowed by app and member") { stores in
                let (samples, other) = (try HistorySamples(stores), try HistorySamples(stores))
                let old = samples.verdict(platform: .ios, version: "1 \u{1F511}'")
                let new = samples.verdict(platform: .android, scheme: .two, version: "2")
                try await stores.history.add(samples.batch(of: [old: 1, new: 2]))
                try await stores.history.add(samples.batch(of: [old: 4], minutes: 5))
                try await stores.history.add(other.batch(of: [other.verdict(): 8]))
                var query = samples.query(by: .version, .platform)
                query.step = 300
                let texts: [[CountedVerdict.Member: String]] = [
                    [.version: "1 \u{1F511}'", .platform: "ios"], [.version: "2", .platform: "android"],
                ]
                let later = samples.sum(4, texts[0], at: samples.start + 300)
                let found = try await stores.history.sums(query)
                try expect(
                    Set(found), is: [samples.sum(1, texts[0]), samples.sum(2, texts[1]), later], "the sums by slot")
                try expect(found.last, is: later, "the last sum")
                query.limit = 2
                try expect(try await stores.history.sums(query).count, is: 2, "the number of sums within the limit")
                query = samples.query(by: .app)
                query.only = [
                    .scheme: "2", .platform: "android", .version: "2", .kind: "verification", .code: "verified",
                ]
                let only = samples.sum(2, [.app: samples.app.text])
                try expect(try await stores.history.sums(query), is: [only], "the narrowed sum")
                query = samples.query()
                query.since = samples.start + 1
                try expect(try await stores.history.sums(query).map(\.count), is: [4], "the sums of a later time")
                query.until = samples.start + 300
                try expect(try await stores.history.sums(query), is: [], "the sums of a time without verdicts")
                query = samples.query(by: .app)
                query.apps = nil
                let all = try await stores.history.sums(query)
                try expect(all.contains(other.sum(8, [.app: other.app.text])), "another app is not among all apps")
                query.apps = []
                try expect(try await stores.history.sums(query), is: [], "the sums of no app")
            },
            ConformanceCheck("Verdicts without an app appear only in a query of all apps") { stores in
                let samples = try HistorySamples(stores)
                let code = "OF_\(samples.app)"
                var verdict = samples.verdict(code)
                verdict.appID = nil
                try await stores.history.add(samples.batch(of: [verdict: 1]))
                var query = samples.query(by: .app, .scheme, .version)
                query.only = [.code: code]
                try expect(try await stores.history.sums(query), is: [], "the sums of an app")
                query.apps = nil
                let sum = samples.sum(1, [.app: "", .scheme: "unknown", .version: "unknown"])
                try expect(try await stores.history.sums(query), is: [sum], "the sums of all apps")
            },
            ConformanceCheck("Old minutes of verdicts are removed before hours, and change no sum of hours") { stores in
                let samples = try HistorySamples(stores)
                let batches = [0, 1, 59, 60, 119, 120].map { minutes in
                    samples.batch(of: [samples.verdict(): 1, samples.verdict("X"): 2], minutes: minutes)
                }
                for batch in batches { try await stores.history.add(batch) }
                var query = samples.query()
                query.step = VerdictHistory.hour
                let before = try await stores.history.sums(query)
                try expect(before.map(\.count), is: [9, 6, 3], "the sums of the hours")
                let end = samples.start + 119 * 60
                while try await stores.history.expire(minutesBefore: end, hoursBefore: samples.start) {}
                try expect(try await stores.history.sums(query), is: before, "the sums of the hours afterwards")
                query.step = 60
                let minutes = try await stores.history.sums(query)
                try expect(
                    minutes.map(\.slot), is: [119, 120].map { samples.start + $0 * 60 }, "the minutes that are left")
                try await stores.history.add(batches[4])
                try expect(try await stores.history.sums(query), is: minutes, "the sums after a batch was repeated")
                while try await stores.history.expire(minutesBefore: end, hoursBefore: samples.start + 3600) {}
                query.step = VerdictHistory.hour
                try expect(
                    try await stores.history.sums(query).map(\.count), is: [6, 3], "the sums of the hours that are left"
                )
            },
        ]
    }
}

/// Verdicts of an app that no other check uses, at times about a day ago.
private struct HistorySamples {
    let app: AppID
    /// The start of an hour.
    let start: UnixTime
    private let random = SystemRandom()

    init(_ stores: StoresUnderTest) throws {
        app = try Samples.appID()
        start = stores.now - stores.now.seconds % VerdictHistory.hour - 24 * VerdictHistory.hour
    }

    func verdict(
        _ code: String = "verified", platform: Platform? = nil, scheme: SignatureScheme? = nil, version: String? = nil
    ) -> CountedVerdict {
        CountedVerdict(
            appID: app, kind: .verification, platform: platform, code: code, scheme: scheme, version: version)
    }

    func batch(of counts: [CountedVerdict: Int64], minutes: Int64 = 0) -> VerdictBatch {
        VerdictBatch(id: RandomUUID(from: random).text, minute: start + minutes * 60, counts: counts)
    }

    /// A query of the app's verdicts in the three hours from `start`, with one slot for each minute.
    func query(by groups: CountedVerdict.Member...) -> VerdictQuery {
        VerdictQuery(
            since: start, until: start + 3 * VerdictHistory.hour, step: 60, apps: [app], groups: Set(groups),
            limit: 1000)
    }

    func sum(_ count: Int64, _ texts: [CountedVerdict.Member: String], at slot: UnixTime? = nil) -> VerdictSum {
        VerdictSum(slot: slot ?? start, texts: texts, count: count)
    }
}

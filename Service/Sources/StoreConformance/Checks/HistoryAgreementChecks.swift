internal import AuthContract
internal import AuthService

extension StoreConformance {
    static var historyAgreementChecks: [ConformanceCheck] {
        [
            ConformanceCheck("Counts of every step match the added batches after removals") { stores in
                var counted = try CountedBatches(stores)
                for _ in 0..<12 {
                    for _ in 0..<4 { try await stores.history.add(counted.addBatch()) }
                    for _ in 0..<6 {
                        let query = counted.query()
                        try expect(
                            Set(try await stores.history.sums(query)), is: counted.sums(query), "the sums of \(query)")
                    }
                    guard Bool.random() else { continue }
                    counted.removeSome()
                    let (minutes, hours) = (counted.minutesBefore, counted.hoursBefore)
                    while try await stores.history.expire(minutesBefore: minutes, hoursBefore: hours) {}
                }
            }
        ]
    }
}

/// Random batches of verdict counts within three days, and the sums that a store must return for them.
private struct CountedBatches {
    private static let day: Int64 = 86_400
    private static let days: Int64 = 3

    /// Slots shorter than an hour are removed if they ended by this time.
    private(set) var minutesBefore: UnixTime
    /// Slots of an hour or longer are removed if they ended by this time.
    private(set) var hoursBefore: UnixTime
    private let start: UnixTime
    private let verdicts: [CountedVerdict]
    private let app: AppID
    private var batches: [VerdictBatch] = []
    private let random = SystemRandom()

    init(_ stores: StoresUnderTest) throws {
        let app = try Samples.appID()
        self.app = app
        start = stores.now - stores.now.seconds % Self.day - Self.days * Self.day
        (minutesBefore, hoursBefore) = (start, start)
        verdicts = (0..<8).map { number in
            CountedVerdict(
                appID: app, kind: .verification, platform: number % 2 == 0 ? .ios : .android,
                code: "CODE_\(number / 4)", version: "\(number / 2 % 2)")
        }
    }

    /// Adds and returns a random batch for a minute whose counts have not been removed, because the service never
    /// sends a batch for a removed minute.
    mutating func addBatch() -> VerdictBatch {
        let first: Int64 = (minutesBefore - start + 59) / 60
        let minute = Int64.random(in: first..<Self.days * Self.day / 60)
        var counts: [CountedVerdict: Int64] = [:]
        for verdict in verdicts.shuffled().prefix(Int.random(in: 1...8)) { counts[verdict] = Int64.random(in: 1...9) }
        let batch = VerdictBatch(id: RandomUUID(from: random).text, minute: start + minute * 60, counts: counts)
        batches.append(batch)
        return batch
    }

    mutating func removeSome() {
        minutesBefore = max(minutesBefore, start + Int64.random(in: 0..<2 * Self.day))
        let most: Int64 = minutesBefore - start
        hoursBefore = max(hoursBefore, start + Int64.random(in: 0...most))
    }

    func query() -> VerdictQuery {
        let step: Int64 = [60, 120, 300, 600, 900, 1800, 3600, 7200, 21_600, 43_200, 86_400].randomElement() ?? 60
        let count = Self.days * Self.day / step
        let first = Int64.random(in: 0..<count)
        let members = CountedVerdict.Member.allCases.filter { _ in Bool.random() }
        return VerdictQuery(
            since: start + first * step, until: start + Int64.random(in: first + 1...count) * step, step: step,
            apps: [app], only: Bool.random() ? [.code: "CODE_1"] : [:], groups: Set(members), limit: 10_000)
    }

    func sums(_ query: VerdictQuery) -> Set<VerdictSum> {
        struct Key: Hashable {
            let slot: UnixTime
            let texts: [CountedVerdict.Member: String]
        }
        var sums: [Key: Int64] = [:]
        for batch in batches where batch.minute >= query.since && batch.minute < query.until {
            let end = query.keptStep < VerdictHistory.hour ? minutesBefore : hoursBefore
            guard batch.minute - batch.minute.seconds % query.keptStep + query.keptStep > end else { continue }
            for (verdict, count) in batch.counts
            where query.only.allSatisfy({ verdict.text($0.key) == $0.value }) {
                let texts = Dictionary(uniqueKeysWithValues: query.groups.map { ($0, verdict.text($0)) })
                sums[Key(slot: batch.minute - batch.minute.seconds % query.step, texts: texts), default: 0] += count
            }
        }
        return Set(sums.map { VerdictSum(slot: $0.key.slot, texts: $0.key.texts, count: $0.value) })
    }
}

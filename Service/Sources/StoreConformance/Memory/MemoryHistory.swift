public import AuthContract
public import AuthService

/// The key of a count: one kind of verdict in one slot.
struct CountedSlot: Hashable {
    let at: UnixTime
    /// The length of the slot in seconds.
    let step: Int64
    let verdict: CountedVerdict
}

extension MemoryStores: VerdictHistoryStore {
    /// See `VerdictHistoryStore`.
    public func add(_ batch: VerdictBatch) throws(StoreError) {
        try check(.addVerdicts)
        guard verdictBatches.updateValue(batch.minute, forKey: batch.id) == nil else { return }
        for (verdict, count) in batch.counts {
            for step in VerdictHistory.steps {
                let slot = CountedSlot(at: batch.minute.floored(to: step), step: step, verdict: verdict)
                verdictCounts[slot, default: 0] += count
            }
        }
    }

    /// See `VerdictHistoryStore`.
    public func sums(_ query: VerdictQuery) throws(StoreError) -> [VerdictSum] {
        try check(.sumVerdicts)
        struct Key: Hashable {
            let slot: UnixTime
            let texts: [CountedVerdict.Member: String]
        }
        var sums: [Key: Int64] = [:]
        for (counted, count) in verdictCounts where counted.step == query.keptStep {
            let verdict = counted.verdict
            guard counted.at >= query.since, counted.at < query.until,
                query.apps.map({ apps in verdict.appID.map { apps.contains($0) } ?? false }) ?? true,
                query.only.allSatisfy({ verdict.text($0.key) == $0.value })
            else { continue }
            let texts = Dictionary(uniqueKeysWithValues: query.groups.map { ($0, verdict.text($0)) })
            sums[Key(slot: counted.at.floored(to: query.step), texts: texts), default: 0] += count
        }
        return sums.map { VerdictSum(slot: $0.key.slot, texts: $0.key.texts, count: $0.value) }
            .sorted { $0.slot < $1.slot }.prefix(max(query.limit, 0)).map { $0 }
    }

    /// See `VerdictHistoryStore`.
    public func expire(minutesBefore: UnixTime, hoursBefore: UnixTime) throws(StoreError) -> Bool {
        try check(.expireVerdicts)
        verdictBatches = verdictBatches.filter { $0.value >= minutesBefore }
        let size = verdictCounts.count
        for step in VerdictHistory.steps {
            let end = (step < VerdictHistory.hour ? minutesBefore : hoursBefore) - step
            let oldest = verdictCounts.keys.filter { $0.step == step && $0.at <= end }.map(\.at).min()
            verdictCounts = verdictCounts.filter { $0.key.step != step || $0.key.at != oldest }
        }
        return verdictCounts.count < size
    }
}

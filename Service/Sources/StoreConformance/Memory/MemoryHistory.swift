public import AuthContract
public import AuthService

/// The verdicts of a minute or an hour.
struct CountedSlot: Hashable {
    let at: UnixTime
    /// Seconds of a minute or an hour.
    let step: Int64
    let verdict: CountedVerdict
}

extension MemoryStores: VerdictHistoryStore {
    /// See `VerdictHistoryStore`.
    public func add(_ batch: VerdictBatch) throws(StoreError) {
        try check(.addVerdicts)
        guard verdictBatches.updateValue(batch.minute, forKey: batch.id) == nil else { return }
        for (verdict, count) in batch.counts {
            let slot = CountedSlot(at: batch.minute, step: VerdictHistory.minute, verdict: verdict)
            verdictCounts[slot, default: 0] += count
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
        for (counted, count) in verdictCounts where counted.at >= query.since && counted.at < query.until {
            let verdict = counted.verdict
            guard query.apps.map({ apps in verdict.appID.map { apps.contains($0) } ?? false }) ?? true,
                query.only.allSatisfy({ verdict.text($0.key) == $0.value })
            else { continue }
            let texts = Dictionary(uniqueKeysWithValues: query.groups.map { ($0, verdict.text($0)) })
            let slot = counted.at - counted.at.seconds % query.step
            sums[Key(slot: slot, texts: texts), default: 0] += count
        }
        return sums.map { VerdictSum(slot: $0.key.slot, texts: $0.key.texts, count: $0.value) }
            .sorted { $0.slot < $1.slot }.prefix(max(query.limit, 0)).map { $0 }
    }

    /// See `VerdictHistoryStore`.
    public func condense(minutesBefore: UnixTime, hoursBefore: UnixTime) throws(StoreError) -> Bool {
        try check(.condenseVerdicts)
        verdictBatches = verdictBatches.filter { $0.value >= minutesBefore }
        func takeOldest(_ step: Int64, before end: UnixTime) -> [CountedSlot: Int64] {
            let oldest = verdictCounts.keys.filter { $0.step == step && $0.at < end }.map(\.at).min()
            let taken = verdictCounts.filter { $0.key.step == step && $0.key.at == oldest }
            for slot in taken.keys { verdictCounts[slot] = nil }
            return taken
        }
        let minutes = takeOldest(VerdictHistory.minute, before: minutesBefore)
        for (slot, count) in minutes {
            let hour = slot.at - slot.at.seconds % VerdictHistory.hour
            verdictCounts[CountedSlot(at: hour, step: VerdictHistory.hour, verdict: slot.verdict), default: 0] += count
        }
        return !takeOldest(VerdictHistory.hour, before: hoursBefore).isEmpty || !minutes.isEmpty
    }
}

internal import AuthContract

/// The bounds for the counts of one minute.
enum VerdictBounds {
    /// The number of apps that are counted separately in a minute: the busiest ones. Others are counted under `nil`.
    static let namedApps = 200
    /// The number of versions of an app that are counted separately: the most used ones. Others are counted as `other`.
    static let namedVersions = 20
    /// The largest number of different verdicts in a minute that keep app and version.
    static let named = 700

    /// Reduces the counts to the bounds, with the same total. The busiest apps and versions keep their names.
    static func bounded(_ counts: [CountedVerdict: Int64]) -> [CountedVerdict: Int64] {
        let busiest = Set(largest(namedApps, of: counts) { $0.appID })
        var bounded = merged(counts) { $0.appID.map(busiest.contains) == false ? $0.coarse : $0 }
        for (_, ofApp) in Dictionary(grouping: bounded.keys, by: \.appID) {
            let versions = Set(ofApp.map(\.version)).subtracting([CountedVerdict.unknown])
            guard versions.count > namedVersions else { continue }
            let counts = Dictionary(uniqueKeysWithValues: ofApp.map { ($0, bounded[$0] ?? 0) })
            let used = Set(largest(namedVersions, of: counts) { versions.contains($0.version) ? $0.version : nil })
            for verdict in ofApp where versions.contains(verdict.version) && !used.contains(verdict.version) {
                var other = verdict
                other.version = CountedVerdict.other
                guard other != verdict, let count = bounded.removeValue(forKey: verdict) else { continue }
                bounded[other, default: 0] += count
            }
        }
        guard bounded.count > named else { return bounded }
        let kept = Set(largest(named, of: bounded) { $0 })
        return merged(bounded) { kept.contains($0) ? $0 : $0.coarse }
    }

    private static func merged(
        _ counts: [CountedVerdict: Int64], as name: (CountedVerdict) -> CountedVerdict
    ) -> [CountedVerdict: Int64] {
        counts.reduce(into: [:]) { $0[name($1.key), default: 0] += $1.value }
    }

    /// The values with the most verdicts, at most `limit`. Verdicts whose value is nil are skipped.
    private static func largest<Value: Hashable>(
        _ limit: Int, of counts: [CountedVerdict: Int64], _ value: (CountedVerdict) -> Value?
    ) -> [Value] {
        var totals: [Value: Int64] = [:]
        for (verdict, count) in counts {
            if let value = value(verdict) { totals[value, default: 0] += count }
        }
        guard totals.count > limit else { return Array(totals.keys) }
        return totals.sorted { $0.value > $1.value }.prefix(limit).map(\.key)
    }
}

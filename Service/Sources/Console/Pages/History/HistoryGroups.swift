internal import StrictJSON

/// The series of a history answer from the admin API, as the groups of a chart: the largest series, and the sum of all others.
struct HistoryGroups: Sendable {
    static let others = "all others"

    private(set) var groups: [StackedChart.Group] = []

    /// - Parameters:
    ///   - answer: the admin API's answer to a history query, its largest series first.
    ///   - member: the member by which the answer is grouped.
    ///   - first: groups that are always shown, in this order, such as those of another period; nil: the largest
    ///     groups.
    init(_ answer: JSONValue, by member: String, first: [StackedChart.Group]? = nil) {
        let series = (answer["series"]?.elements ?? []).map { series in
            (
                name: series[member]?.string ?? "",
                counts: (series["counts"]?.elements ?? []).map { $0.integer ?? 0 }
            )
        }
        let length = series.map(\.counts.count).max() ?? 0
        let named =
            first.map { $0.filter { $0.pattern < StackedChart.maximumGroups }.map(\.name) }
            ?? series.prefix(StackedChart.maximumGroups).map(\.name)
        for (pattern, name) in named.enumerated() {
            let counts = series.first { $0.name == name }?.counts ?? [Int64](repeating: 0, count: length)
            groups.append(StackedChart.Group(name: name, counts: counts, pattern: pattern))
        }
        let rest = series.filter { !named.contains($0.name) }
        guard !rest.isEmpty || (first?.count ?? 0) > named.count else { return }
        var sums = [Int64](repeating: 0, count: length)
        for series in rest { for (slot, count) in series.counts.enumerated() { sums[slot] += count } }
        groups.append(StackedChart.Group(name: Self.others, counts: sums, pattern: StackedChart.maximumGroups))
    }

    var total: Int64 { groups.reduce(0) { $0 + $1.total } }
}

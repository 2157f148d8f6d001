internal import NIOConcurrencyHelpers

/// Counters, gauges and histograms, and their text for Prometheus.
///
/// Plain and small on purpose: label values come from fixed sets (routes, codes, platforms), so the number of series is
/// bounded by construction, and a limit holds where somebody forgets that.
final class MetricsRegistry: Sendable {
    /// Name and value of each label, in the order in which they are written.
    typealias Labels = [(name: String, value: String)]

    private struct Family {
        let type: String
        let help: String
        /// Series by the text of their labels.
        var series: [String: Series] = [:]
    }

    private enum Series {
        case value(Double)
        case histogram(counts: [UInt64], sum: Double)
    }

    /// Upper bounds of the buckets of a latency, in seconds.
    static let latencyBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
    private static let maximumSeries = 2000

    private let families: NIOLockedValueBox<[String: Family]>

    init() { families = NIOLockedValueBox([:]) }

    /// Says what a family is; a name that was never described is not counted.
    func describe(_ name: String, _ type: String, _ help: String) {
        families.withLockedValue { $0[name] = Family(type: type, help: help) }
    }

    /// Adds to a counter.
    func count(_ name: String, _ labels: Labels = [], by amount: Double = 1) {
        change(name, labels) { series in
            guard case .value(let value)? = series else { return .value(amount) }
            return .value(value + amount)
        }
    }

    /// Sets a gauge.
    func set(_ name: String, _ labels: Labels = [], to value: Double) {
        change(name, labels) { _ in .value(value) }
    }

    /// Sets all series of a gauge at once; those that are not among them are gone.
    func replace(_ name: String, _ values: [(labels: Labels, value: Double)]) {
        var series: [String: Series] = [:]
        for (labels, value) in values.prefix(Self.maximumSeries) { series[Self.text(labels)] = .value(value) }
        families.withLockedValue { [series] in $0[name]?.series = series }
    }

    /// Notes how long something took.
    func observe(_ name: String, _ labels: Labels, seconds: Double) {
        change(name, labels) { series in
            var (counts, sum): ([UInt64], Double) =
                if case .histogram(let counts, let sum)? = series {
                    (counts, sum)
                } else {
                    ([UInt64](repeating: 0, count: Self.latencyBuckets.count + 1), 0)
                }
            let bucket = Self.latencyBuckets.firstIndex { seconds <= $0 } ?? Self.latencyBuckets.count
            counts[bucket] += 1
            sum += seconds
            return .histogram(counts: counts, sum: sum)
        }
    }

    private func change(_ name: String, _ labels: Labels, _ change: (Series?) -> Series) {
        let key = Self.text(labels)
        families.withLockedValue { families in
            guard let family = families[name] else { return }
            let known = family.series[key]
            guard known != nil || family.series.count < Self.maximumSeries else { return }
            families[name]?.series[key] = change(known)
        }
    }

    /// The text exposition format, version 0.0.4.
    func text() -> String {
        let families = families.withLockedValue { $0 }
        var text = ""
        for (name, family) in families.sorted(by: { $0.key < $1.key }) {
            text += "# HELP \(name) \(family.help)\n# TYPE \(name) \(family.type)\n"
            for (labels, series) in family.series.sorted(by: { $0.key < $1.key }) {
                Self.write(name, labels, series, to: &text)
            }
        }
        return text
    }

    private static func write(_ name: String, _ labels: String, _ series: Series, to text: inout String) {
        switch series {
        case .value(let value): text += "\(name)\(braced(labels)) \(number(value))\n"
        case .histogram(let counts, let sum):
            var total: UInt64 = 0
            for (count, bound) in zip(counts, latencyBuckets.map(number) + ["+Inf"]) {
                total += count
                let bucket = labels.isEmpty ? "le=\"\(bound)\"" : "\(labels),le=\"\(bound)\""
                text += "\(name)_bucket{\(bucket)} \(total)\n"
            }
            text += "\(name)_sum\(braced(labels)) \(number(sum))\n\(name)_count\(braced(labels)) \(total)\n"
        }
    }

    private static func text(_ labels: Labels) -> String {
        labels.map { "\($0.name)=\"\(escaped($0.value))\"" }.joined(separator: ",")
    }

    private static func braced(_ labels: String) -> String { labels.isEmpty ? "" : "{\(labels)}" }

    private static func number(_ value: Double) -> String {
        value == value.rounded() && abs(value) < 1e15 ? String(Int64(value)) : String(value)
    }

    private static func escaped(_ value: String) -> String {
        var text = ""
        for character in value {
            switch character {
            case "\\": text += "\\\\"
            case "\"": text += "\\\""
            case "\n": text += "\\n"
            default: text.append(character)
            }
        }
        return text
    }
}

internal import Bytes

/// Counters, gauges and histograms, and their text for Prometheus.
///
/// It is simple on purpose. The callers bound the number of series: label values come from fixed sets (routes, codes, platforms)
/// or from bounded lists (apps, credentials). If a caller breaks that rule, a limit applies.
package final class MetricsRegistry: Sendable {
    /// Name and value of each label, in the order in which they are written.
    package typealias Labels = [(name: String, value: String)]

    /// The kind of a family.
    package enum Kind: Sendable {
        case counter, gauge
        /// A histogram, with the upper bounds of its buckets.
        case histogram([Double])

        fileprivate var name: String {
            switch self {
            case .counter: "counter"
            case .gauge: "gauge"
            case .histogram: "histogram"
            }
        }
    }

    /// A number with its own lock. Keep a reference to one that changes often, to save the lookup.
    package final class Value: Sendable {
        private let number = Locked(0.0)

        package func add(_ amount: Double = 1) { number.withLock { $0 += amount } }

        package func set(_ value: Double) { number.withLock { $0 = value } }

        fileprivate var current: Double { number.withLock { $0 } }
    }

    /// Counters by key. Each is looked up in the registry only once.
    final class Counters<Key: Hashable & Sendable>: Sendable {
        private let known = Locked<[Key: Value]>([:])
        private let find: @Sendable (Key) -> Value

        /// - Parameter find: the registry's counter of a key.
        init(_ find: @escaping @Sendable (Key) -> Value) { self.find = find }

        func count(_ key: Key, by amount: Double = 1) {
            let value = known.withLock { known in
                if let value = known[key] { return value }
                let value = find(key)
                known[key] = value
                return value
            }
            value.add(amount)
        }
    }

    /// The distribution of a quantity.
    package final class Histogram: Sendable {
        private let bounds: [Double]
        private let state: Locked<(counts: [UInt64], sum: Double)>

        fileprivate init(_ bounds: [Double]) {
            self.bounds = bounds
            state = Locked(([UInt64](repeating: 0, count: bounds.count + 1), 0))
        }

        package func observe(_ value: Double) {
            let bucket = bounds.firstIndex { value <= $0 } ?? bounds.count
            state.withLock { state in
                state.counts[bucket] += 1
                state.sum += value
            }
        }

        fileprivate func write(_ name: String, _ labels: String, to text: inout String) {
            let (counts, sum) = state.withLock { $0 }
            var total: UInt64 = 0
            for (count, bound) in zip(counts, bounds.map(MetricsRegistry.number) + ["+Inf"]) {
                total += count
                let bucket = labels.isEmpty ? "le=\"\(bound)\"" : "\(labels),le=\"\(bound)\""
                text += "\(name)_bucket{\(bucket)} \(total)\n"
            }
            text +=
                "\(name)_sum\(MetricsRegistry.braced(labels)) \(MetricsRegistry.number(sum))\n\(name)_count\(MetricsRegistry.braced(labels)) \(total)\n"
        }
    }

    private struct Family {
        let kind: Kind
        let help: String
        /// Series by the text of their labels.
        var series: [String: Series] = [:]
    }

    private enum Series {
        case value(Value)
        case histogram(Histogram)
    }

    /// Upper bounds of the buckets of a latency, in seconds.
    package static let latencyBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
    private static let maximumSeries = 2000
    /// A higher limit for families whose series are set together by a caller that bounds their number.
    private static let maximumReplaced = 20_000

    private let families: Locked<[String: Family]>

    /// An empty registry.
    package init() { families = Locked([:]) }

    /// Describes a family. Metrics without a description are not exposed.
    package func describe(_ name: String, _ kind: Kind, _ help: String) {
        families.withLock { $0[name] = Family(kind: kind, help: help) }
    }

    /// The counter or gauge with these labels. If its family already has the largest number of series, a new one is a
    /// dummy that is not exposed.
    package func value(_ name: String, _ labels: Labels = []) -> Value {
        let series = series(name, labels) { kind in
            if case .histogram = kind { nil } else { .value(Value()) }
        }
        guard case .value(let value)? = series else { return Value() }
        return value
    }

    /// The histogram with these labels. If its family already has the largest number of series, a new one is a dummy that is not exposed.
    package func histogram(_ name: String, _ labels: Labels = []) -> Histogram {
        let series = series(name, labels) { kind in
            if case .histogram(let bounds) = kind { .histogram(Histogram(bounds)) } else { nil }
        }
        guard case .histogram(let histogram)? = series else { return Histogram([]) }
        return histogram
    }

    /// Adds to a counter.
    package func count(_ name: String, _ labels: Labels = [], by amount: Double = 1) { value(name, labels).add(amount) }

    /// Replaces all series of a gauge or a counter.
    func replace(_ name: String, with series: [(labels: Labels, value: Double)]) {
        let named = series.prefix(Self.maximumReplaced).map { series in
            let value = Value()
            value.set(series.value)
            return (Self.text(series.labels), Series.value(value))
        }
        families.withLock { $0[name]?.series = Dictionary(named) { $1 } }
    }

    private func series(_ name: String, _ labels: Labels, make: (Kind) -> Series?) -> Series? {
        let key = Self.text(labels)
        return families.withLock { families in
            guard let family = families[name] else { return nil }
            if let known = family.series[key] { return known }
            guard family.series.count < Self.maximumSeries, let new = make(family.kind) else { return nil }
            families[name]?.series[key] = new
            return new
        }
    }

    /// The text exposition format, version 0.0.4.
    package func text() -> String {
        let families = families.withLock { $0 }
        var text = ""
        for (name, family) in families.sorted(by: { $0.key < $1.key }) {
            text += "# HELP \(name) \(family.help)\n# TYPE \(name) \(family.kind.name)\n"
            for (labels, series) in family.series.sorted(by: { $0.key < $1.key }) {
                switch series {
                case .value(let value): text += "\(name)\(Self.braced(labels)) \(Self.number(value.current))\n"
                case .histogram(let histogram): histogram.write(name, labels, to: &text)
                }
            }
        }
        return text
    }

    private static func text(_ labels: Labels) -> String {
        labels.map { "\($0.name)=\"\(escaped($0.value))\"" }.joined(separator: ",")
    }

    fileprivate static func braced(_ labels: String) -> String { labels.isEmpty ? "" : "{\(labels)}" }

    fileprivate static func number(_ value: Double) -> String {
        if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
        return value == value.rounded() && abs(value) < 1e15 ? String(Int64(value)) : String(value)
    }

    /// Escapes and bounds a label value, which may be a name that a person chose. The function works on scalars, because a
    /// combining mark must not hide the quotation mark before it.
    private static func escaped(_ value: String) -> String {
        value.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            LogText.bounded(String(line), to: LogText.textBytes).unicodeScalars.reduce(into: "") { text, scalar in
                if scalar == "\\" || scalar == "\"" { text.unicodeScalars.append("\\") }
                text.unicodeScalars.append(scalar)
            }
        }.joined(separator: "\\n")
    }
}

package import AuthContract

/// The measured results of a load that expectations are compared with.
package struct LoadMeasures: Sendable {
    /// The latencies of good requests, by operation.
    package var latencies: [String: LatencyHistogram]
    /// The operations of the load, without the registrations before it.
    package var operationsOfLoad: Set<String>
    /// The number of failed operations, including registrations.
    package var failed: Int
    /// The number of all operations, including registrations.
    package var count: Int
    /// Operations of the load a second.
    package var rate: Double

    /// Memberwise initializer.
    package init(
        latencies: [String: LatencyHistogram], operationsOfLoad: Set<String>, failed: Int, count: Int, rate: Double
    ) {
        self.latencies = latencies
        self.operationsOfLoad = operationsOfLoad
        self.failed = failed
        self.count = count
        self.rate = rate
    }
}

/// A condition on the result of a load, such as `p99<50ms`, `verify.p99.9<=20ms`, `errors<0.1%` or `rate>500`.
package struct LoadExpectation: Sendable, Hashable, CustomStringConvertible {
    /// The text as given.
    package let description: String

    private enum Metric: Hashable {
        /// The latency that a share (up to 1) of the requests does not exceed. If `operation` is nil, all operations of the
        /// load are included.
        case latency(share: Double, operation: String?)
        case errors, errorPercent, rate
    }

    private enum Comparison: String, CaseIterable {
        // The longer operators come first, so that `<=` is not read as `<`.
        case atMost = "<="
        case atLeast = ">="
        case below = "<"
        case above = ">"
    }

    private let metric: Metric
    private let comparison: Comparison
    /// The limit in the unit of the metric: milliseconds, a number, percent, or operations a second.
    private let limit: Double

    /// The operations whose latencies are measured.
    package static let operations = ["challenge", "register", "status", "verify", "rotate"]

    /// Parses an expectation.
    package init(_ text: String) throws(ContractError) {
        guard let start = text.firstIndex(where: { $0 == "<" || $0 == ">" }),
            let comparison = Comparison.allCases.first(where: { text[start...].hasPrefix($0.rawValue) })
        else { throw Self.malformed(text) }
        let (name, value) = (
            text[..<start].trimmed, text[start...].dropFirst(comparison.rawValue.count).trimmed
        )
        switch name {
        case "errors":
            let isPercent = value.hasSuffix("%")
            metric = isPercent ? .errorPercent : .errors
            limit = try Self.number(isPercent ? value.dropLast() : value[...], of: text)
        case "rate":
            metric = .rate
            limit = try Self.number(value[...], of: text)
        default:
            metric = try Self.latency(name, of: text)
            limit = try Self.milliseconds(value, of: text)
        }
        self.comparison = comparison
        description = text
    }

    private static func latency(_ name: String, of text: String) throws(ContractError) -> Metric {
        let operation = operations.first { name.hasPrefix($0 + ".") }
        let rest = name.dropFirst(operation.map { $0.count + 1 } ?? 0)
        if rest == "max" { return .latency(share: 1, operation: operation) }
        guard rest.hasPrefix("p") else { throw malformed(text) }
        let percent = try number(rest.dropFirst(), of: text)
        guard percent > 0, percent <= 100 else { throw malformed(text) }
        return .latency(share: percent / 100, operation: operation)
    }

    private static func milliseconds(_ value: String, of text: String) throws(ContractError) -> Double {
        for (unit, factor) in [("us", 0.001), ("ms", 1), ("s", 1000)] where value.hasSuffix(unit) {
            return try number(value.dropLast(unit.count), of: text) * factor
        }
        throw malformed(text)
    }

    private static func number(_ digits: some StringProtocol, of text: String) throws(ContractError) -> Double {
        guard (1...12).contains(digits.utf8.count), digits.allSatisfy({ $0.isASCII && ($0.isNumber || $0 == ".") }),
            let number = Double(String(digits))
        else { throw malformed(text) }
        return number
    }

    private static func malformed(_ text: String) -> ContractError {
        ContractError(
            "\(text) is no expectation: they are such as p99<50ms, verify.p99.9<=20ms, max<1s, errors<0.1%, errors<=0, rate>500"
        )
    }

    /// The measured value, in milliseconds, percent, a number, or operations a second; nil if nothing was measured.
    package func value(in measures: LoadMeasures) -> Double? {
        switch metric {
        case .latency(let share, let operation):
            let names = operation.map { Set([$0]) } ?? measures.operationsOfLoad
            let times = names.reduce(into: LatencyHistogram()) { sum, name in
                if let part = measures.latencies[name] { sum.add(part) }
            }
            guard times.count > 0 else { return nil }
            let (seconds, attoseconds) = (share == 1 ? times.maximum : times.percentile(share)).components
            return Double(seconds) * 1e3 + Double(attoseconds) / 1e15
        case .errors: return Double(measures.failed)
        case .errorPercent: return measures.count == 0 ? nil : Double(measures.failed) / Double(measures.count) * 100
        case .rate: return measures.rate
        }
    }

    /// Whether the condition holds. False if nothing was measured.
    package func holds(in measures: LoadMeasures) -> Bool {
        guard let value = value(in: measures) else { return false }
        return switch comparison {
        case .atMost: value <= limit
        case .atLeast: value >= limit
        case .below: value < limit
        case .above: value > limit
        }
    }

    /// Whether the condition bounds the number of failures.
    package var isAboutErrors: Bool { metric == .errors || metric == .errorPercent }

    /// The unit of the measured value.
    package var unit: String {
        switch metric {
        case .latency: "ms"
        case .errorPercent: "%"
        case .errors: ""
        case .rate: "/s"
        }
    }
}

extension Substring {
    fileprivate var trimmed: String { String(drop { $0 == " " }.reversed().drop { $0 == " " }.reversed()) }
}

import Testing

/// A parser of metrics in the text exposition format, version 0.0.4. It is stricter than Prometheus and `promtool check
/// metrics`.
struct ExpositionText {
    struct Malformed: Error, CustomStringConvertible {
        let description: String
    }

    struct Family {
        let type: String
        let help: String
        /// The samples in the order of the text. `series` is the name with its labels.
        var samples: [(series: String, labels: [(name: String, value: String)], value: Double)] = []
    }

    private(set) var families: [String: Family] = [:]

    /// Every series with its value.
    var series: [String: Double] {
        Dictionary(uniqueKeysWithValues: families.values.flatMap(\.samples).map { ($0.series, $0.value) })
    }

    init(_ text: String) throws {
        guard text.hasSuffix("\n") else { throw Malformed(description: "does not end with a line") }
        var lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()[...]
        while let help = lines.popFirst() {
            try readFamily(help, &lines)
        }
    }

    private mutating func readFamily(_ help: Substring, _ lines: inout ArraySlice<Substring>) throws {
        guard let head = help.wholeMatch(of: /# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)/),
            let type = lines.popFirst()?.wholeMatch(of: /# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|histogram)/),
            head.1 == type.1
        else { throw Malformed(description: "not HELP and TYPE of one family: \(help)") }
        let name = String(head.1)
        guard families[name] == nil else { throw Malformed(description: "\(name) comes twice") }
        guard (type.2 == "counter") == name.hasSuffix("_total") else {
            throw Malformed(description: "\(name) is a \(type.2)")
        }
        var family = Family(type: String(type.2), help: String(head.2))
        while let line = lines.first, !line.hasPrefix("#") {
            lines.removeFirst()
            family.samples.append(try Self.sample(line, of: name, type: family.type))
        }
        guard Set(family.samples.map(\.series)).count == family.samples.count else {
            throw Malformed(description: "a series of \(name) comes twice")
        }
        if family.type == "histogram" { try Self.checkHistogram(name, family) }
        families[name] = family
    }

    private static func sample(
        _ line: Substring, of family: String, type: String
    ) throws -> (series: String, labels: [(name: String, value: String)], value: Double) {
        guard
            let parts = line.wholeMatch(
                of: /([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.+)\})? ([^ ]+)/.matchingSemantics(.unicodeScalar))
        else {
            throw Malformed(description: "not a sample: \(line)")
        }
        let suffixes = type == "histogram" ? ["_bucket", "_sum", "_count"] : [""]
        guard suffixes.contains(where: { family + $0 == parts.1 }) else {
            throw Malformed(description: "a sample of another family than \(family): \(line)")
        }
        guard let value = number(String(parts.3)), type == "gauge" || value >= 0 else {
            throw Malformed(description: "not a value: \(line)")
        }
        let labels = try parts.2.map(labels) ?? []
        guard Set(labels.map(\.name)).count == labels.count else {
            throw Malformed(description: "a label comes twice: \(line)")
        }
        return (String(line.dropLast(parts.3.count + 1)), labels, value)
    }

    private static func number(_ text: String) -> Double? {
        switch text {
        case "+Inf": .infinity
        case "-Inf": -.infinity
        default: text.wholeMatch(of: /-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?/) == nil ? nil : Double(text)
        }
    }

    private static func labels(_ text: Substring) throws -> [(name: String, value: String)] {
        var labels: [(name: String, value: String)] = []
        var rest = text
        while true {
            // Prometheus reads bytes: a combining mark after a quotation mark must not hide the quotation mark.
            let pattern = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"/.matchingSemantics(.unicodeScalar)
            guard let label = rest.prefixMatch(of: pattern) else {
                throw Malformed(description: "not labels: \(text)")
            }
            labels.append((String(label.1), String(label.2)))
            rest = rest[label.range.upperBound...]
            if rest.isEmpty { return labels }
            guard rest.popFirst() == "," else { throw Malformed(description: "not labels: \(text)") }
        }
    }

    private static func checkHistogram(_ name: String, _ family: Family) throws {
        let groups = Dictionary(grouping: family.samples) { sample in
            sample.labels.filter { $0.name != "le" }.map { "\($0.name)=\($0.value)" }.joined(separator: ",")
        }
        for samples in groups.values {
            let buckets = samples.filter { $0.series.hasPrefix(name + "_bucket") }
            let bounds = buckets.map { number($0.labels.last?.value ?? "") ?? .nan }
            let count = samples.first { $0.series.hasPrefix(name + "_count") }?.value
            guard bounds.last == .infinity, bounds == bounds.sorted(),
                buckets.map(\.value) == buckets.map(\.value).sorted(),
                buckets.last?.value == count, samples.contains(where: { $0.series.hasPrefix(name + "_sum") })
            else { throw Malformed(description: "not a histogram: \(name)") }
        }
    }
}

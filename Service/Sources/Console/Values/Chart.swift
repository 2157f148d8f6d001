internal import AuthContract

/// Counts over time as stacked bars. The legend has the total of each series.
struct Chart: Sendable {
    /// One series. Series are stacked from the bottom.
    struct Series: Sendable {
        /// The class in the stylesheet: `good`, `warn`, `bad` or `dark`.
        let tone: String
        let name: String
        let counts: [Int64]

        var total: Int64 { counts.reduce(0, +) }
    }

    /// The chart's title, for readers who cannot see it.
    let title: String
    let start: UnixTime
    /// The length of one step, the time span of a bar, in seconds.
    let step: Int64
    let series: [Series]

    private static let width = 720.0
    private static let height = 160.0

    /// The value for the template partial `chart`; no value if all counts are 0.
    var value: PageValue {
        let length = series.map(\.counts.count).max() ?? 0
        let peak = (0..<length).map(total).max() ?? 0
        guard peak > 0 else { return .none }
        return [
            "title": .text(title), "width": .text(String(Int(Self.width))), "height": .text(String(Int(Self.height))),
            "peak": .number(peak), "bars": .list((0..<length).flatMap { bars(at: $0, of: length, peak: peak) }),
            "legend": .list(
                series.map { ["tone": .text($0.tone), "name": .text($0.name), "total": .number($0.total)] }),
            "from": .text(Moment(time: start, now: start).utc),
            "to": .text(Moment(time: start + Int64(length) * step, now: start).utc),
        ]
    }

    private func count(_ series: Series, _ slot: Int) -> Int64 {
        series.counts.indices.contains(slot) ? series.counts[slot] : 0
    }

    private func total(_ slot: Int) -> Int64 { series.reduce(0) { $0 + count($1, slot) } }

    private func bars(at slot: Int, of length: Int, peak: Int64) -> [PageValue] {
        let width = Self.width / Double(length)
        var bottom = Self.height
        return series.compactMap { series in
            let count = count(series, slot)
            guard count > 0 else { return nil }
            let height = max(1, Self.height * Double(count) / Double(peak))
            bottom -= height
            return [
                "tone": .text(series.tone), "x": Self.text(Double(slot) * width + 0.5), "y": Self.text(max(0, bottom)),
                "width": Self.text(max(1, width - 1)), "height": Self.text(height),
                "label": .text(
                    "\(Moment(time: start + Int64(slot) * step, now: start).utc): \(count.grouped) \(series.name)"),
            ]
        }
    }

    /// A coordinate with one digit after the point.
    private static func text(_ number: Double) -> PageValue {
        let tenths = Int64((number * 10).rounded())
        return .text("\(tenths / 10).\(tenths % 10)")
    }
}

extension Templates {
    static let chart = #"""
        <figure class="chart">
        <svg viewBox="0 0 {{width}} {{height}}" role="img" aria-label="{{title}}" preserveAspectRatio="none">
        {{#bars}}
        <rect class="{{tone}}" x="{{x}}" y="{{y}}" width="{{width}}" height="{{height}}"><title>{{label}}</title></rect>
        {{/bars}}
        </svg>
        <p class="axis"><span>{{from}}</span><span>highest: {{peak}}</span><span>{{to}}</span></p>
        <figcaption>{{#legend}}<span class="key {{tone}}">{{name}}: {{total}}</span> {{/legend}}</figcaption>
        </figure>
        """#
}

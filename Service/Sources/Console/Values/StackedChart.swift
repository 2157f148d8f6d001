internal import AuthContract

/// Counts over time by group, as stacked bars. Each group has a pattern besides its color. The legend has the total of each
/// group.
struct StackedChart: Sendable {
    /// The largest number of groups with their own pattern. One more pattern is for all others.
    static let maximumGroups = 8

    /// One group. Groups are stacked from the bottom.
    struct Group: Sendable {
        let name: String
        let counts: [Int64]
        /// The number of the group's pattern: 0 to ``StackedChart/maximumGroups``. The last one is for the group `all others`.
        let pattern: Int

        var total: Int64 { counts.reduce(0, +) }
    }

    /// The prefix of the chart's element ids. No other chart of the page uses it.
    let key: String
    let title: String
    let start: UnixTime
    /// The length of one step, the time span of a bar, in seconds.
    let step: Int64
    let groups: [Group]
    /// The highest bar that fits into the chart, as the sum of all groups' counts in one step. Charts next to each other
    /// use the same ceiling.
    let ceiling: Int64
    /// The number of steps, even if there are no counts.
    let length: Int
    /// Times to mark. Times outside the chart are left out.
    var markers: [HistoryMarkers.Marker] = []

    private static let width = 720.0
    private static let height = 200.0

    /// The highest bar: the largest sum of all groups' counts in one step.
    static func peak(_ groups: [Group]) -> Int64 {
        let length = groups.map(\.counts.count).max() ?? 0
        return (0..<length).map { slot in groups.reduce(0) { $0 + $1.count(at: slot) } }.max() ?? 0
    }

    /// The value for the template partial `stacked`.
    var value: PageValue {
        let (from, to) = (utc(0), utc(length))
        let peak = Self.peak(groups)
        let sum = groups.reduce(0) { $0 + $1.total }
        let listed = groups.map { "\($0.name) \($0.total.grouped)" }.joined(separator: ", ")
        return [
            "key": .text(key), "title": .text(title), "from": .text(from), "to": .text(to), "peak": .number(peak),
            "description": .text(
                "From \(from) to \(to): \(sum.grouped) in total; \(listed.isEmpty ? "none" : listed).\(marks)"),
            "width": .text(String(Int(Self.width))), "height": .text(String(Int(Self.height))),
            "bars": .list((0..<length).flatMap { bars(at: $0, of: length) }),
            "lines": .list(marked.map { ["x": Self.text($0.share * Self.width), "number": .text(String($0.number))] }),
            "labels": .list(labels), "isMarked": .flag(!marked.isEmpty),
            "legend": .list(
                groups.map {
                    ["pattern": .text(String($0.pattern)), "name": .text($0.name), "total": .number($0.total)]
                }),
        ]
    }

    /// The markers within the chart, with positions from 0 to 1.
    private var marked: [(number: Int, share: Double)] {
        let seconds = step * Int64(length)
        return markers.filter { (0..<seconds).contains($0.at - start) }
            .map { ($0.number, Double($0.at - start) / Double(seconds)) }
    }

    private var marks: String {
        let numbers = marked.map(\.number)
        guard let first = numbers.first, let last = numbers.last else { return "" }
        return first == last ? " Marked: change \(first)." : " Marked: changes \(first) to \(last)."
    }

    /// The labels above the markers' lines: the numbers of the markers. Markers that are close share a label, such as
    /// `2–4`, because the chart may be narrow.
    private var labels: [PageValue] {
        var groups: [(first: Int, last: Int, share: Double)] = []
        for (number, share) in marked {
            if let group = groups.last, share - group.share < Self.roomOfLabel {
                groups[groups.count - 1].last = number
            } else {
                groups.append((number, number, share))
            }
        }
        return groups.map { first, last, share in
            [
                "x": .text("\(Int((share * 100).rounded()))%"),
                "anchor": .text(share < 0.05 ? "start" : share > 0.95 ? "end" : "middle"),
                "text": .text(first == last ? String(first) : "\(first)–\(last)"),
            ]
        }
    }

    /// The share of the chart's width that a label may need on a narrow screen.
    private static let roomOfLabel = 0.15

    private func utc(_ slot: Int) -> String { Moment(time: start + Int64(slot) * step, now: start).utc }

    private func bars(at slot: Int, of length: Int) -> [PageValue] {
        let width = Self.width / Double(length)
        var bottom = Self.height
        return groups.compactMap { group in
            let count = group.count(at: slot)
            guard count > 0, ceiling > 0 else { return nil }
            let height = max(1, Self.height * Double(count) / Double(ceiling))
            bottom -= height
            return [
                "pattern": .text(String(group.pattern)), "x": Self.text(Double(slot) * width + 0.5),
                "y": Self.text(max(0, bottom)), "width": Self.text(max(1, width - 1)), "height": Self.text(height),
                "label": .text("\(utc(slot)): \(count.grouped) \(group.name)"),
            ]
        }
    }

    /// A coordinate with one digit after the point.
    private static func text(_ number: Double) -> PageValue {
        let tenths = Int64((number * 10).rounded())
        return .text("\(tenths / 10).\(tenths % 10)")
    }
}

extension StackedChart.Group {
    /// The group's count in a step; 0 if the step is outside of `counts`.
    func count(at slot: Int) -> Int64 { counts.indices.contains(slot) ? counts[slot] : 0 }
}

extension Templates {
    static let stacked = #"""
        <figure class="chart">
        {{#isMarked}}
        <svg class="marks" aria-hidden="true">{{#labels}}<text x="{{x}}" y="14" text-anchor="{{anchor}}">{{text}}</text>{{/labels}}</svg>
        {{/isMarked}}
        <svg viewBox="0 0 {{width}} {{height}}" role="img" aria-labelledby="{{key}}-title {{key}}-text" preserveAspectRatio="none">
        <title id="{{key}}-title">{{title}}</title>
        <desc id="{{key}}-text">{{description}}</desc>
        {{#bars}}
        <rect fill="url(#pattern-{{pattern}})" x="{{x}}" y="{{y}}" width="{{width}}" height="{{height}}"><title>{{label}}</title></rect>
        {{/bars}}
        {{#lines}}
        <line class="marker" x1="{{x}}" y1="0" x2="{{x}}" y2="{{height}}" vector-effect="non-scaling-stroke"><title>Change {{number}}</title></line>
        {{/lines}}
        </svg>
        <p class="axis"><span>{{from}}</span><span>highest: {{peak}}</span><span>{{to}}</span></p>
        <figcaption>{{#legend}}<span class="swatch"><svg width="14" height="14" aria-hidden="true"><rect fill="url(#pattern-{{pattern}})" width="14" height="14"/></svg> {{name}}: {{total}}</span> {{/legend}}</figcaption>
        </figure>
        """#

    /// The patterns of groups, which a page with charts contains once.
    static let patterns = #"""
        <svg class="hidden" width="0" height="0" aria-hidden="true" focusable="false"><defs>
        <pattern id="pattern-0" width="8" height="8" patternUnits="userSpaceOnUse"><rect class="group-0" width="8" height="8"/></pattern>
        <pattern id="pattern-1" width="8" height="8" patternUnits="userSpaceOnUse"><rect class="group-1" width="8" height="8"/><path class="ink" d="M0 8 8 0"/></pattern>
        <pattern id="pattern-2" width="8" height="8" patternUnits="userSpaceOnUse"><rect class="group-2" width="8" height="8"/><circle class="dot" cx="4" cy="4" r="1.8"/></pattern>
        <pattern id="pattern-3" width="8" height="8" patternUnits="userSpaceOnUse"><rect class="group-3" width="8" height="8"/><path class="ink" d="M0 4H8"/></pattern>
        <pattern id="pattern-4" width="8" height="8" patternUnits="userSpaceOnUse"><rect class="group-4" width="8" height="8"/><path class="ink" d="M4 0V8"/></pattern>
        <pattern id="pattern-5" width="8" height="8" patternUnits="userSpaceOnUse"><rect class="group-5" width="8" height="8"/><path class="ink" d="M0 0 8 8M0 8 8 0"/></pattern>
        <pattern id="pattern-6" width="8" height="8" patternUnits="userSpaceOnUse"><rect class="group-6" width="8" height="8"/><path class="ink" d="M0 0 8 8"/></pattern>
        <pattern id="pattern-7" width="8" height="8" patternUnits="userSpaceOnUse"><rect class="group-7" width="8" height="8"/><rect class="dot" width="4" height="4"/></pattern>
        <pattern id="pattern-8" width="8" height="8" patternUnits="userSpaceOnUse"><rect class="group-8" width="8" height="8"/><path class="ink" d="M0 4H8M4 0V8"/></pattern>
        </defs></svg>
        """#
}

/// The lines that differ between two texts, with a few common lines around them.
enum LineDiff {
    /// The largest number of lines of a text. Longer texts are not compared.
    private static let maximumLines = 5000
    private static let context = 2

    /// A line, and whether it was removed, added or kept.
    struct Line: Sendable, Hashable {
        enum Kind: String, Sendable {
            case added, removed, same
        }

        let kind: Kind
        let text: String
    }

    /// The lines in order: removed ones before added ones. Nil: a text is too long.
    static func lines(from old: String, to new: String) -> [Line]? {
        let (old, new) = (old.split(separator: "\n"), new.split(separator: "\n"))
        guard old.count <= maximumLines, new.count <= maximumLines else { return nil }
        let difference = new.difference(from: old)
        var (removed, added) = (Set<Int>(), Set<Int>())
        for change in difference {
            switch change {
            case .remove(let offset, _, _): removed.insert(offset)
            case .insert(let offset, _, _): added.insert(offset)
            }
        }
        var lines: [Line] = []
        var (left, right) = (0, 0)
        while left < old.count || right < new.count {
            if removed.contains(left) {
                lines.append(Line(kind: .removed, text: String(old[left])))
                left += 1
            } else if added.contains(right) {
                lines.append(Line(kind: .added, text: String(new[right])))
                right += 1
            } else {
                lines.append(Line(kind: .same, text: String(new[right])))
                (left, right) = (left + 1, right + 1)
            }
        }
        return lines
    }

    /// The value for the template partial `diff`. Common lines far from a change are left out.
    static func value(from old: String, to new: String) -> PageValue {
        guard let lines = lines(from: old, to: new) else {
            return ["same": .flag(false), "long": .flag(true), "differs": .flag(false), "lines": []]
        }
        let changed = lines.indices.filter { lines[$0].kind != .same }
        var shown = Set<Int>()
        for index in changed { shown.formUnion(max(0, index - context)...min(lines.count - 1, index + context)) }
        var values: [PageValue] = []
        var last = -1
        for index in shown.sorted() {
            if index > last + 1 { values.append(value(" ", "…", "same")) }
            let line = lines[index]
            let sign = line.kind == .added ? "+" : line.kind == .removed ? "-" : " "
            values.append(value(sign, line.text, line.kind.rawValue))
            last = index
        }
        return [
            "same": .flag(changed.isEmpty), "long": .flag(false), "differs": .flag(!changed.isEmpty),
            "lines": .list(values),
        ]
    }

    private static func value(_ sign: String, _ text: String, _ kind: String) -> PageValue {
        ["sign": .text(sign), "text": .text(text), "kind": .text(kind)]
    }
}

extension Templates {
    static let diff = #"""
        {{#same}}
        <p>Nothing differs.</p>
        {{/same}}
        {{#long}}
        <p>The texts are too long to be compared here.</p>
        {{/long}}
        {{#differs}}
        <pre class="diff" tabindex="0" aria-label="Lines with + are new, lines with - are gone"><code>{{#lines}}<span class="{{kind}}">{{sign}} {{text}}</span>{{/lines}}</code></pre>
        {{/differs}}
        """#
}

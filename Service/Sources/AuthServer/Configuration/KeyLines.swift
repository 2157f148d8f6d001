internal import Yams

/// The line numbers of the keys of a configuration file.
enum KeyLines {
    private static let maximumDepth = 8

    /// The line of each key, from 1, by the key's path.
    static func of(_ node: Node) -> [String: Int] {
        var lines: [String: Int] = [:]
        collect(node, at: "", depth: 0, into: &lines)
        return lines
    }

    /// The lines of the keys of a JSON file, which is parsed as YAML. A few forms of JSON are not YAML. A file with such
    /// a form has an empty result.
    static func ofJSON(_ text: String) -> [String: Int] {
        guard let node = try? Yams.compose(yaml: text) else { return [:] }
        return of(node)
    }

    private static func collect(_ node: Node, at path: String, depth: Int, into lines: inout [String: Int]) {
        guard let mapping = node.mapping, depth < maximumDepth else { return }
        for (key, value) in mapping {
            guard let name = key.scalar?.string else { continue }
            let below = path.isEmpty ? name : "\(path).\(name)"
            lines[below] = key.mark?.line
            collect(value, at: below, depth: depth + 1, into: &lines)
        }
    }
}

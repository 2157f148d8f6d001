internal import Foundation
internal import StrictJSON
internal import Yams

/// A configuration file, JSON or YAML, as the values of known keys.
///
/// The file holds secrets, so no error shows a value or any part of a line. Errors name the key's path and the line's
/// number.
package struct ConfigurationFile: Sendable {
    /// The path, which errors name as the source of a value.
    package let path: String
    /// Values by name: the name of a key, or the name of a secret with `_file` appended.
    let values: [String: JSONValue]
    /// The known line numbers of the names, from 1.
    private let lines: [String: Int]

    private static let maximumBytes = 1 << 20

    /// Reads the file at this path. Its extension tells JSON from YAML. A pipe such as `/dev/fd/3` has no extension. Its text
    /// is JSON if it begins with a brace, and YAML otherwise.
    package init(path: String) throws(ConfigurationError) {
        let contents: [UInt8]
        do throws(FileContents.Failure) {
            contents = try FileContents.read(path, maximum: Self.maximumBytes)
        } catch {
            throw ConfigurationError("config", "cannot read \(path): \(error)")
        }
        try self.init(path: path, contents: contents)
    }

    /// Reads a file's contents.
    ///
    /// - Throws: `ConfigurationError` if the contents cannot be parsed, or if a key is unknown or repeated.
    package init(path: String, contents: [UInt8]) throws(ConfigurationError) {
        guard contents.count <= Self.maximumBytes else { throw ConfigurationError("config", "\(path) is too large") }
        guard let text = String(bytes: contents, encoding: .utf8) else {
            throw ConfigurationError("config", "\(path) is not UTF-8")
        }
        self.path = path
        let (root, lines): (JSONValue, [String: Int]) =
            switch Self.language(path, contents) {
            case .json: (try Self.json(contents, text, path), KeyLines.ofJSON(text))
            case .yaml: try Self.yaml(text, path)
            case nil: throw ConfigurationError("config", "\(path) must end in .json, .yaml or .yml")
            }
        self.lines = lines
        var values: [String: JSONValue] = [:]
        let place = Place(path: path, lines: lines)
        try Self.collect(root, at: "", place, into: &values)
        self.values = values
    }

    /// The place of a name, as the end of a sentence, such as ` (line 3 of service.yaml)`.
    func place(of name: String) -> String { Place(path: path, lines: lines).of(name) }

    // MARK: Languages

    private enum Language { case json, yaml }

    private static func language(_ path: String, _ contents: [UInt8]) -> Language? {
        let name = path.split(separator: "/").last ?? ""
        switch name.split(separator: ".", omittingEmptySubsequences: false).dropFirst().last?.lowercased() {
        case "json": return .json
        case "yaml", "yml": return .yaml
        default:
            guard ["/dev/fd/", "/dev/stdin", "/proc/self/fd/"].contains(where: { path.hasPrefix($0) }) else {
                return nil
            }
            let first = contents.first { ![0x20, 0x09, 0x0A, 0x0D].contains($0) }
            return first == UInt8(ascii: "{") ? .json : .yaml
        }
    }

    private static func json(
        _ contents: [UInt8], _ text: String, _ path: String
    ) throws(ConfigurationError) -> JSONValue {
        do {
            return try JSONValue(parsing: contents, limits: .init(bytes: maximumBytes, depth: 8))
        } catch {
            if error.code == .duplicateName, let repeated = RepeatedName.find(in: text) {
                throw repeated.error(in: path)
            }
            let line = error.offset.map { offset in 1 + contents.prefix(offset).count { $0 == 0x0A } }
            throw ConfigurationError("config", "\(path): \(error)" + (line.map { ", line \($0)" } ?? ""))
        }
    }

    private static func yaml(
        _ text: String, _ path: String
    ) throws(ConfigurationError) -> (JSONValue, [String: Int]) {
        let parser: Parser
        let node: Node?
        do {
            parser = try Parser(yaml: text)
            node = try parser.singleRoot()
        } catch {
            throw yamlError(error, text, path)
        }
        guard let node else { return (.object(JSONObject()), [:]) }
        // Keep the parser alive: it owns the anchors, and nodes hold them weakly.
        defer { withExtendedLifetime(parser) {} }
        return (try value(node, at: "", path), KeyLines.of(node))
    }

    /// The parser's error without its description, which quotes the line or the whole text.
    private static func yamlError(_ error: any Error, _ text: String, _ path: String) -> ConfigurationError {
        guard let error = error as? YamlError else { return ConfigurationError("config", "\(path) is not YAML") }
        switch error {
        case .duplicatedKeysInMapping(_, let context):
            if let repeated = RepeatedName.find(in: text) { return repeated.error(in: path) }
            return ConfigurationError("config", "a key appears twice (line \(context.mark.line) of \(path))")
        case .scanner(_, let problem, let mark, _), .parser(_, let problem, let mark, _),
            .composer(_, let problem, let mark, _):
            // `problem` is one of the library's fixed texts, so it shows nothing of the file.
            return ConfigurationError(
                "config", "\(path) is not YAML: \(problem) (line \(mark.line), column \(mark.column))")
        default: return ConfigurationError("config", "\(path) is not YAML: it has a character that YAML does not allow")
        }
    }

    private static func value(_ node: Node, at path: String, _ file: String) throws(ConfigurationError) -> JSONValue {
        // Aliases are refused, because copies of copies grow exponentially. An alias's node has the anchor of the original.
        guard node.anchor == nil else { throw refusal(path, "anchors and aliases are not read", node, file) }
        switch node {
        case .scalar(let scalar): return value(scalar, node)
        case .sequence(let sequence):
            var elements: [JSONValue] = []
            for element in sequence { elements.append(try value(element, at: path, file)) }
            return .array(elements)
        case .mapping(let mapping):
            var object = JSONObject()
            for (key, element) in mapping {
                guard key.anchor == nil, let name = key.scalar?.string, !name.isEmpty else {
                    throw refusal(path, "has a key that is no name", key, file)
                }
                let below = path.isEmpty ? name : "\(path).\(name)"
                guard object[name] == nil else { throw refusal(below, "appears twice", key, file) }
                object[name] = try value(element, at: below, file)
            }
            return .object(object)
        case .alias: throw refusal(path, "anchors and aliases are not read", node, file)
        }
    }

    private static func value(_ scalar: Node.Scalar, _ node: Node) -> JSONValue {
        guard scalar.style == .plain || scalar.style == .any else { return .string(scalar.string) }
        if node.null != nil { return .null }
        if let bool = node.bool { return .bool(bool) }
        if let integer = Int64(scalar.string) { return .integer(integer) }
        return .string(scalar.string)
    }

    private static func refusal(_ path: String, _ reason: String, _ node: Node, _ file: String) -> ConfigurationError {
        let line = node.mark.map { " (line \($0.line) of \(file))" } ?? " (in \(file))"
        return ConfigurationError(path.isEmpty ? "config" : KeyName.shown(path), reason + line)
    }

    // MARK: Keys

    /// Descends into groups until it reaches the settings of `ConfigurationKey`. A name that is neither a setting nor a group
    /// is refused.
    private static func collect(
        _ value: JSONValue, at path: String, _ place: Place, into values: inout [String: JSONValue],
        seen: inout Set<String>
    ) throws(ConfigurationError) {
        if names.contains(path) {
            guard seen.insert(path).inserted else {
                throw ConfigurationError(
                    path, "appears twice, once as a name with a dot and once in its group" + place.of(path))
            }
            if !value.isNull { values[path] = value }
            return
        }
        guard path.isEmpty || names.contains(where: { $0.hasPrefix(path + ".") }) else {
            throw ConfigurationError(KeyName.shown(path), "is not known" + place.of(path))
        }
        guard let object = value.object else {
            if value.isNull { return }
            throw ConfigurationError(
                path.isEmpty ? "config" : path, "must be a group of keys" + (path.isEmpty ? "" : place.of(path)))
        }
        for member in object.members {
            guard !member.name.isEmpty else {
                throw ConfigurationError(path.isEmpty ? "config" : path, "has a key without a name")
            }
            let below = path.isEmpty ? member.name : "\(path).\(member.name)"
            try collect(member.value, at: below, place, into: &values, seen: &seen)
        }
    }

    private static func collect(
        _ value: JSONValue, at path: String, _ place: Place, into values: inout [String: JSONValue]
    ) throws(ConfigurationError) {
        var seen: Set<String> = []
        try collect(value, at: path, place, into: &values, seen: &seen)
    }

    private static let names = Set(
        ConfigurationKey.allCases.flatMap { key in
            key.kind.isSecret ? [key.rawValue, key.rawValue + "_file"] : [key.rawValue]
        })
}

/// The places of one file's keys, for error texts.
private struct Place {
    let path: String
    let lines: [String: Int]

    func of(_ name: String) -> String { lines[name].map { " (line \($0) of \(path))" } ?? " (in \(path))" }
}

/// A setting's name, in a form that errors may show.
enum KeyName {
    private static let maximumLength = 40
    private static let maximumDigits = 3

    /// The path, with a placeholder for each part that does not look like a name. After a mistake such as a missing space after a
    /// colon, a part may be a value.
    static func shown(_ path: String) -> String {
        let names = path.split(separator: ".", omittingEmptySubsequences: false)
        return names.map { isName($0) ? String($0) : "(a name that is not shown)" }.joined(separator: ".")
    }

    private static func isName(_ name: Substring) -> Bool {
        (1...maximumLength).contains(name.utf8.count)
            && name.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_" || $0 == "-") }
            && name.count { $0.isNumber } <= maximumDigits
    }
}

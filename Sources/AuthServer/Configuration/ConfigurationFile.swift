internal import Foundation
internal import StrictJSON
internal import Yams

/// A configuration file, JSON or YAML, as the values of known keys.
public struct ConfigurationFile: Sendable {
    /// The path, for saying where a value came from.
    public let path: String
    /// Values by the name under which they stand: of a key, or of a secret's `_file`.
    let values: [String: JSONValue]

    private static let maximumBytes = 1 << 20

    /// Reads the file at this path; its ending says in which language it is.
    public init(path: String) throws(ConfigurationError) {
        guard let data = try? Data(contentsOf: URL(fileURLWithPath: path)) else {
            throw ConfigurationError("config", "cannot read \(path)")
        }
        try self.init(path: path, contents: Array(data))
    }

    /// Reads a file's contents.
    ///
    /// - Throws: `ConfigurationError` for a key that is not known or stands twice.
    public init(path: String, contents: [UInt8]) throws(ConfigurationError) {
        guard contents.count <= Self.maximumBytes else { throw ConfigurationError("config", "\(path) is too large") }
        self.path = path
        let root: JSONValue
        switch path.split(separator: ".").last?.lowercased() {
        case "json": root = try Self.json(contents, path)
        case "yaml", "yml": root = try Self.yaml(contents, path)
        default: throw ConfigurationError("config", "\(path) must end in .json, .yaml or .yml")
        }
        var values: [String: JSONValue] = [:]
        try Self.collect(root, at: "", into: &values)
        self.values = values
    }

    private static func json(_ contents: [UInt8], _ path: String) throws(ConfigurationError) -> JSONValue {
        do {
            return try JSONValue(parsing: contents, limits: .init(bytes: maximumBytes, depth: 8))
        } catch {
            throw ConfigurationError("config", "\(path): \(error)")
        }
    }

    private static func yaml(_ contents: [UInt8], _ path: String) throws(ConfigurationError) -> JSONValue {
        let node: Node?
        do {
            node = try Yams.compose(yaml: String(decoding: contents, as: UTF8.self))
        } catch {
            throw ConfigurationError("config", "\(path): \(error)")
        }
        return try node.map { node throws(ConfigurationError) in try json(node, at: "") } ?? .object(JSONObject())
    }

    private static func json(_ node: Node, at path: String) throws(ConfigurationError) -> JSONValue {
        switch node {
        case .scalar(let scalar): return json(scalar, node)
        case .sequence(let sequence):
            var elements: [JSONValue] = []
            for element in sequence { elements.append(try json(element, at: path)) }
            return .array(elements)
        case .mapping(let mapping):
            var object = JSONObject()
            for (key, value) in mapping {
                let name = key.string ?? ""
                let below = path.isEmpty ? name : "\(path).\(name)"
                guard object[name] == nil else { throw ConfigurationError(below, "stands twice") }
                object[name] = try json(value, at: below)
            }
            return .object(object)
        // Nothing here is worth an anchor, and copies of copies grow without end.
        case .alias: throw ConfigurationError(path.isEmpty ? "config" : path, "aliases are not read")
        }
    }

    private static func json(_ scalar: Node.Scalar, _ node: Node) -> JSONValue {
        guard scalar.style == .plain || scalar.style == .any else { return .string(scalar.string) }
        if node.null != nil { return .null }
        if let bool = node.bool { return .bool(bool) }
        if let integer = Int64(scalar.string) { return .integer(integer) }
        return .string(scalar.string)
    }

    /// Walks down to the keys of the table; whatever is on no way to one is not known.
    private static func collect(
        _ value: JSONValue, at path: String, into values: inout [String: JSONValue]
    ) throws(ConfigurationError) {
        if names.contains(path) {
            if !value.isNull { values[path] = value }
            return
        }
        guard path.isEmpty || names.contains(where: { $0.hasPrefix(path + ".") }) else {
            throw ConfigurationError(path, "is not known")
        }
        guard let object = value.object else {
            if value.isNull { return }
            throw ConfigurationError(path.isEmpty ? "config" : path, "must be a group of keys")
        }
        for member in object.members {
            try collect(member.value, at: path.isEmpty ? member.name : "\(path).\(member.name)", into: &values)
        }
    }

    private static let names = Set(
        ConfigurationKey.allCases.flatMap { key in
            key.kind == .secret ? [key.rawValue, key.rawValue + "_file"] : [key.rawValue]
        })
}

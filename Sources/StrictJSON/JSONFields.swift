/// Reads the members of one object by name and type; a value of another type is an error that names its path.
///
/// A member that is `null` is read as absent, because Dart, Kotlin and Swift encoders write absent members as `null`.
public struct JSONFields: Sendable {
    private let object: JSONObject
    private let path: String

    /// The members of `value`, which must be an object. `path` is the path of `value` in errors, empty for the outermost object.
    public init(_ value: JSONValue, path: String = "") throws(JSONError) {
        guard case .object(let object) = value else {
            throw JSONError(.wrongType, path: path.isEmpty ? "the body" : path)
        }
        self.object = object
        self.path = path
    }

    /// The names of all members.
    public var names: [String] { object.members.map(\.name) }

    /// Refuses members other than these. For operators' input: without this check, a misspelled member would be ignored,
    /// and the default used instead.
    public func allowOnly(_ names: String...) throws(JSONError) { try allowOnly(names) }

    /// Refuses members other than these.
    public func allowOnly(_ names: [String]) throws(JSONError) {
        for member in object.members where !names.contains(member.name) {
            throw JSONError(.unknownName, path: pathOf(member.name))
        }
    }

    /// The value of a member that may be absent.
    public func optionalValue(_ name: String) -> JSONValue? {
        guard let value = object[name], !value.isNull else { return nil }
        return value
    }

    /// The value of a required member.
    public func value(_ name: String) throws(JSONError) -> JSONValue {
        guard let value = optionalValue(name) else { throw JSONError(.missing, path: pathOf(name)) }
        return value
    }

    /// A required string.
    public func string(_ name: String) throws(JSONError) -> String {
        try require(optionalString(name), name)
    }

    /// An optional string.
    public func optionalString(_ name: String) throws(JSONError) -> String? {
        try convert(name) { $0.string }
    }

    /// A required integer.
    public func integer(_ name: String) throws(JSONError) -> Int64 {
        try require(optionalInteger(name), name)
    }

    /// An optional integer.
    public func optionalInteger(_ name: String) throws(JSONError) -> Int64? {
        try convert(name) { $0.integer }
    }

    /// An optional integer within a range.
    public func optionalInteger(_ name: String, in range: ClosedRange<Int64>) throws(JSONError) -> Int64? {
        try convert(name) { value in value.integer.flatMap { range.contains($0) ? $0 : nil } }
    }

    /// A required boolean.
    public func bool(_ name: String) throws(JSONError) -> Bool {
        try require(optionalBool(name), name)
    }

    /// An optional boolean.
    public func optionalBool(_ name: String) throws(JSONError) -> Bool? {
        try convert(name) { $0.bool }
    }

    /// An array of strings that may be absent.
    public func optionalStrings(_ name: String) throws(JSONError) -> [String]? {
        try convert(name) { value in
            guard let elements = value.array else { return nil }
            let strings = elements.compactMap(\.string)
            return strings.count == elements.count ? strings : nil
        }
    }

    /// An optional array.
    public func optionalArray(_ name: String) throws(JSONError) -> [JSONValue]? {
        try convert(name) { $0.array }
    }

    /// The members of an object that may be absent.
    public func optionalObject(_ name: String) throws(JSONError) -> JSONFields? {
        guard let value = optionalValue(name) else { return nil }
        return try JSONFields(value, path: pathOf(name))
    }

    /// The members of a required object.
    public func object(_ name: String) throws(JSONError) -> JSONFields {
        try require(optionalObject(name), name)
    }

    /// A required member with one of a fixed set of words.
    public func choice<Choice: RawRepresentable<String>>(
        _ name: String, _ type: Choice.Type = Choice.self
    ) throws(JSONError) -> Choice {
        try require(optionalChoice(name, type), name)
    }

    /// An optional member with one of a fixed set of words.
    public func optionalChoice<Choice: RawRepresentable<String>>(
        _ name: String, _ type: Choice.Type = Choice.self
    ) throws(JSONError) -> Choice? {
        try convert(name) { $0.string.flatMap(Choice.init(rawValue:)) }
    }

    /// A required string, converted by `parse`. If `parse` throws, the error is `wrongType`.
    public func parsed<Value>(_ name: String, _ parse: (String) throws -> Value) throws(JSONError) -> Value {
        try require(optionalParsed(name, parse), name)
    }

    /// An optional string, converted by `parse`. If `parse` throws, the error is `wrongType`.
    public func optionalParsed<Value>(
        _ name: String, _ parse: (String) throws -> Value
    ) throws(JSONError) -> Value? {
        try convert(name) { value in value.string.flatMap { try? parse($0) } }
    }

    /// The path of the member `name`, for errors of the caller.
    public func pathOf(_ name: String) -> String {
        path.isEmpty ? name : "\(path).\(name)"
    }

    private func convert<Value>(_ name: String, _ convert: (JSONValue) -> Value?) throws(JSONError) -> Value? {
        guard let value = optionalValue(name) else { return nil }
        guard let converted = convert(value) else { throw JSONError(.wrongType, path: pathOf(name)) }
        return converted
    }

    private func require<Value>(_ value: Value?, _ name: String) throws(JSONError) -> Value {
        guard let value else { throw JSONError(.missing, path: pathOf(name)) }
        return value
    }
}

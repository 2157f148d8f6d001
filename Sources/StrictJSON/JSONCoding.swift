internal import Bytes

/// Reads values of one kind from JSON, and writes them to JSON.
public struct JSONCoding<Value: Sendable>: Sendable {
    /// The accepted JSON.
    public let type: JSONType
    /// The value of the member at this path, or an error that names the path.
    public let parse: @Sendable (_ json: JSONValue, _ path: String) throws(JSONError) -> Value
    /// The JSON of a value. `parse` accepts it.
    public let write: @Sendable (Value) -> JSONValue

    /// A coding from a function that reads and a function that writes.
    ///
    /// - Parameters:
    ///   - type: the allowed JSON.
    ///   - parse: the value of the member at a path, or an error that names the path.
    ///   - write: the JSON of a value.
    public init(
        _ type: JSONType, parse: @escaping @Sendable (_ json: JSONValue, _ path: String) throws(JSONError) -> Value,
        write: @escaping @Sendable (Value) -> JSONValue
    ) {
        self.type = type
        self.parse = parse
        self.write = write
    }

    /// A coding of values without members: `read` returns nil for JSON that is not understood.
    public init(
        _ type: JSONType, read: @escaping @Sendable (JSONValue) -> Value?,
        write: @escaping @Sendable (Value) -> JSONValue
    ) {
        self.init(
            type,
            parse: { json, path throws(JSONError) in
                guard let value = read(json) else { throw JSONError(.wrongType, path: path) }
                return value
            }, write: write)
    }

    /// The value; nil for JSON that is not understood.
    public func read(_ json: JSONValue) -> Value? { try? parse(json, "") }

    /// A value that is written as a string.
    ///
    /// - Parameters:
    ///   - parse: the value of a text; nil for one that is not understood.
    ///   - text: the text of a value.
    public static func text(
        _ parse: @escaping @Sendable (String) -> Value?, _ text: @escaping @Sendable (Value) -> String
    ) -> Self {
        Self(.text, read: { $0.string.flatMap(parse) }, write: { .string(text($0)) })
    }

    /// One of these values, written as a string.
    public static func choice(_ values: [Value], _ text: @escaping @Sendable (Value) -> String) -> Self {
        Self(
            .choice(values.map { .string(text($0)) }),
            read: { json in json.string.flatMap { word in values.first { text($0) == word } } },
            write: { .string(text($0)) })
    }

    /// A coding of `Other`, made from this coding by converting its values to `Other` and back.
    public func map<Other: Sendable>(
        _ convert: @escaping @Sendable (Value) -> Other?, back: @escaping @Sendable (Other) -> Value
    ) -> JSONCoding<Other> {
        JSONCoding<Other>(type, read: { read($0).flatMap(convert) }, write: { write(back($0)) })
    }

    /// This coding with a name for its type in schemas.
    public func named(_ name: String) -> Self { Self(.named(name, type), parse: parse, write: write) }
}

extension JSONCoding where Value: RawRepresentable<String> & CaseIterable, Value.AllCases == [Value] {
    /// One of a fixed set of words.
    public static var choice: Self { choice(Value.allCases) { $0.rawValue } }
}

extension JSONCoding where Value: JSONPolicy {
    /// The coding of an object in an app record (the service's record of an app). The object's members override those of
    /// `policy`.
    public static func object(over policy: Value) -> Self {
        Self(
            .object(policy.appRecordDescription),
            parse: { json, path throws(JSONError) in try policy.applying(appRecord: JSONFields(json, path: path)) },
            write: { .object($0.appRecordJSON) })
    }
}

extension JSONCoding where Value == Bool {
    /// `true` or `false`.
    public static var bool: Self { Self(.boolean, read: \.bool, write: { .bool($0) }) }
}

extension JSONCoding where Value == String {
    /// Text.
    public static var text: Self { Self(.text, read: \.string, write: { .string($0) }) }
}

extension JSONCoding where Value == Int64 {
    /// An integer of this range.
    public static func integer(in range: ClosedRange<Int64>) -> Self {
        Self(
            .integer(range), read: { $0.integer.flatMap { range.contains($0) ? $0 : nil } }, write: { .integer($0) })
    }
}

extension JSONCoding where Value == Int {
    /// An integer of this range.
    public static func integer(in range: ClosedRange<Int>) -> Self {
        JSONCoding<Int64>.integer(in: Int64(range.lowerBound)...Int64(range.upperBound))
            .map({ Int($0) }, back: { Int64($0) })
    }
}

extension JSONCoding where Value == [UInt8] {
    /// A SHA-256 digest, 32 bytes: hexadecimal, or base64url with or without padding. Written as hexadecimal.
    public static var sha256: Self {
        .text(
            { text in
                if text.utf8.count == 64 { return Hexadecimal.decode(text) }
                let unpadded = text.hasSuffix("=") ? text.dropLast() : text[...]
                return Base64.url.decode(unpadded).flatMap { $0.count == 32 ? $0 : nil }
            }, { Hexadecimal.encode($0) })
    }
}

extension JSONCoding {
    /// An array that is a set. Written in ascending order.
    ///
    /// - Parameters:
    ///   - element: the coding of its elements.
    ///   - minimum: the smallest number of elements.
    public static func set<Element: Hashable>(of element: JSONCoding<Element>, atLeast minimum: Int = 0) -> Self
    where Value == Set<Element> {
        let array = JSONCoding<[Element]>.array(of: element, atLeast: minimum)
        return Self(
            array.type, read: { array.read($0).map { Set($0) } },
            write: { .array($0.map(element.write).sorted(by: precedes)) })
    }

    /// An array, in its order.
    ///
    /// - Parameters:
    ///   - element: the coding of its elements.
    ///   - minimum: the smallest number of elements.
    public static func array<Element: Sendable>(of element: JSONCoding<Element>, atLeast minimum: Int = 0) -> Self
    where Value == [Element] {
        Self(
            .array(of: element.type, count: minimum...Int.max),
            read: { value in
                guard let array = value.array, array.count >= minimum else { return nil }
                let elements = array.compactMap(element.read)
                return elements.count == array.count ? elements : nil
            },
            write: { .array($0.map(element.write)) })
    }

    /// An array of objects. An error names the index.
    ///
    /// - Parameters:
    ///   - element: the coding of its elements.
    ///   - maximum: the largest number of elements.
    public static func objects<Element: JSONPolicy>(of element: JSONCoding<Element>, atMost maximum: Int = .max) -> Self
    where Value == [Element] {
        Self(
            .array(of: element.type, count: 0...maximum),
            parse: { json, path throws(JSONError) in
                guard let array = json.array, array.count <= maximum else { throw JSONError(.wrongType, path: path) }
                var elements: [Element] = []
                for (index, json) in array.enumerated() {
                    elements.append(try element.parse(json, "\(path)[\(index)]"))
                }
                return elements
            },
            write: { .array($0.map(element.write)) })
    }

    private static func precedes(_ left: JSONValue, _ right: JSONValue) -> Bool {
        if let left = left.integer, let right = right.integer { return left < right }
        return left.text() < right.text()
    }
}

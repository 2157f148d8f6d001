internal import Bytes

/// How values of one kind are read from JSON and written to it.
public struct JSONCoding<Value: Sendable>: Sendable {
    /// The value; nil for JSON that is not understood.
    public let read: @Sendable (JSONValue) -> Value?
    /// The JSON that ``read`` understands.
    public let write: @Sendable (Value) -> JSONValue

    /// A coding with these two directions.
    public init(read: @escaping @Sendable (JSONValue) -> Value?, write: @escaping @Sendable (Value) -> JSONValue) {
        self.read = read
        self.write = write
    }

    /// A value that is written as a string.
    ///
    /// - Parameters:
    ///   - parse: the value of a text; nil for one that is not understood.
    ///   - text: the text of a value.
    public static func text(
        _ parse: @escaping @Sendable (String) -> Value?, _ text: @escaping @Sendable (Value) -> String
    ) -> Self {
        Self(read: { $0.string.flatMap(parse) }, write: { .string(text($0)) })
    }

    /// The coding of another type, which is converted from and to this one.
    public func map<Other: Sendable>(
        _ convert: @escaping @Sendable (Value) -> Other?, back: @escaping @Sendable (Other) -> Value
    ) -> JSONCoding<Other> {
        JSONCoding<Other>(read: { read($0).flatMap(convert) }, write: { write(back($0)) })
    }
}

extension JSONCoding where Value: RawRepresentable<String> {
    /// One of a fixed set of words.
    public static var choice: Self { text({ Value(rawValue: $0) }, { $0.rawValue }) }
}

extension JSONCoding where Value == Bool {
    /// `true` or `false`.
    public static var bool: Self { Self(read: \.bool, write: { .bool($0) }) }
}

extension JSONCoding where Value == String {
    /// Text.
    public static var text: Self { Self(read: \.string, write: { .string($0) }) }
}

extension JSONCoding where Value == Int64 {
    /// An integer of this range.
    public static func integer(in range: ClosedRange<Int64>) -> Self {
        Self(read: { $0.integer.flatMap { range.contains($0) ? $0 : nil } }, write: { .integer($0) })
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
        Self(
            read: { value in
                guard let text = value.string else { return nil }
                if text.utf8.count == 64 { return Hexadecimal.decode(text) }
                let unpadded = text.hasSuffix("=") ? text.dropLast() : text[...]
                return Base64.url.decode(unpadded).flatMap { $0.count == 32 ? $0 : nil }
            },
            write: { .string(Hexadecimal.encode($0)) })
    }
}

extension JSONCoding {
    /// An array that is a set. Written in ascending order.
    public static func set<Element: Hashable>(of element: JSONCoding<Element>) -> Self where Value == Set<Element> {
        Self(
            read: { $0.set(of: element.read) },
            write: { .array($0.map(element.write).sorted(by: precedes)) })
    }

    /// An array, in its order.
    public static func array<Element: Sendable>(of element: JSONCoding<Element>) -> Self where Value == [Element] {
        Self(
            read: { value in
                guard let array = value.array else { return nil }
                let elements = array.compactMap(element.read)
                return elements.count == array.count ? elements : nil
            },
            write: { .array($0.map(element.write)) })
    }

    private static func precedes(_ left: JSONValue, _ right: JSONValue) -> Bool {
        if let left = left.integer, let right = right.integer { return left < right }
        return left.text() < right.text()
    }
}

/// A JSON text (RFC 8259) as a value. Members keep their order; numbers keep their digits.
public enum JSONValue: Sendable, Hashable {
    /// The literal `null`.
    case null
    /// The literals `true` and `false`.
    case bool(Bool)
    /// A number, as its digits, so that no precision is lost.
    case number(JSONNumber)
    /// A string, with its escapes resolved. The parser refuses lone surrogates, so the string is valid Unicode.
    case string(String)
    /// The elements, in their order.
    case array([JSONValue])
    /// The members, in order and without repeated names.
    case object(JSONObject)
}

extension JSONValue {
    /// Strings are equal if their code points are equal; numbers, if their digits are.
    ///
    /// String's own equality is canonical equivalence: it equates the Kelvin sign and K, so `A256KW` would have a
    /// look-alike.
    public static func == (left: JSONValue, right: JSONValue) -> Bool {
        switch (left, right) {
        case (.null, .null): true
        case (.bool(let left), .bool(let right)): left == right
        case (.number(let left), .number(let right)): left == right
        case (.string(let left), .string(let right)): left.hasSameBytes(as: right)
        case (.array(let left), .array(let right)): left == right
        case (.object(let left), .object(let right)): left == right
        default: false
        }
    }

    /// The number `value`, without fraction or exponent.
    public static func integer(_ value: some BinaryInteger) -> JSONValue {
        .number(JSONNumber(digits: String(value)))
    }

    /// The string, if the value is one.
    public var string: String? {
        if case .string(let value) = self { value } else { nil }
    }

    /// The boolean, if the value is one.
    public var bool: Bool? {
        if case .bool(let value) = self { value } else { nil }
    }

    /// The integer, if the value is a number that is written without fraction and exponent and fits 64 bits.
    public var integer: Int64? {
        if case .number(let value) = self { value.integer } else { nil }
    }

    /// The elements, if the value is an array.
    public var array: [JSONValue]? {
        if case .array(let value) = self { value } else { nil }
    }

    /// The members, if the value is an object.
    public var object: JSONObject? {
        if case .object(let value) = self { value } else { nil }
    }

    /// Whether the value is `null`.
    public var isNull: Bool { self == .null }
}

// No `nil` literal: depending on the inferred type, `nil` could mean JSON's null or an absent value.
extension JSONValue: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    public init(stringLiteral value: String) { self = .string(value) }
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    public init(integerLiteral value: Int64) { self = .integer(value) }
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    public init(dictionaryLiteral elements: (String, JSONValue)...) { self = .object(JSONObject(elements)) }
}

/// A number as it was written. The caller, which knows the expected range, converts it.
public struct JSONNumber: Sendable, Hashable {
    /// The literal, in the form of RFC 8259 section 6.
    public let digits: String

    init(digits: String) { self.digits = digits }

    /// The value, if it is written without fraction and exponent and fits 64 bits.
    public var integer: Int64? { Int64(digits) }

    /// The nearest binary floating point value; nil if it is not finite.
    public var double: Double? {
        Double(digits).flatMap { $0.isFinite ? $0 : nil }
    }
}

/// The members of a JSON object, in the order in which they were written.
public struct JSONObject: Sendable, Hashable {
    /// Name and value of each member.
    public private(set) var members: [Member] = []

    /// One member.
    public struct Member: Sendable, Hashable {
        /// The name, unescaped.
        public let name: String
        /// The value.
        public var value: JSONValue

        /// Memberwise initializer.
        public init(_ name: String, _ value: JSONValue) {
            self.name = name
            self.value = value
        }

        /// Names are equal if their code points are equal.
        public static func == (left: Member, right: Member) -> Bool {
            left.name.hasSameBytes(as: right.name) && left.value == right.value
        }
    }

    /// An object without members.
    public init() {}

    /// An object of these members. The caller guarantees that no name is repeated.
    public init(members: [Member]) { self.members = members }

    /// An object without members, with room for this many.
    public init(reserving count: Int) { members.reserveCapacity(count) }

    /// An object of these members. If several have the same name, the value of the last one is used.
    public init(_ members: some Sequence<(String, JSONValue)>) {
        self.members.reserveCapacity(members.underestimatedCount)
        for (name, value) in members { self[name] = value }
    }

    /// The value of the member `name`, compared by code points.
    public subscript(name: String) -> JSONValue? {
        get { index(of: name).map { members[$0].value } }
        set {
            switch (index(of: name), newValue) {
            case (let index?, let value?): members[index].value = value
            case (let index?, nil): members.remove(at: index)
            case (nil, let value?): members.append(Member(name, value))
            case (nil, nil): break
            }
        }
    }

    /// Adds a member. The caller guarantees that no other has its name, which saves a search.
    public mutating func append(_ member: Member) { members.append(member) }

    // Compares bytes: String's own equality is canonical equivalence, under which two different names can be equal.
    private func index(of name: String) -> Int? {
        members.firstIndex { $0.name.hasSameBytes(as: name) }
    }
}

/// A policy with a JSON form. ``jsonMembers`` is the only table of its members: it names, reads, writes and describes
/// them.
///
/// A JSON object sets a policy in one of two ways:
/// - In an *audit*, the object overrides a policy (``applying(_:ignoring:)``). It may have every member. Each member
///   defines the meaning of `null`, such as: not checked.
/// - In an *app record*, the object is the policy that a service enforces (``applying(appRecord:ignoring:)``). It may
///   have the members that ``JSONMember/isInAppRecord`` marks, with the values that ``JSONMember/AppRecordRule``
///   allows. `null` is read as absent.
public protocol JSONPolicy: Sendable {
    /// Every member, in the order in which they are written.
    static var jsonMembers: [JSONMember<Self>] { get }
}

extension JSONPolicy {
    /// This policy, overridden by the members of an object: an absent member keeps the value, and each member defines the meaning
    /// of `null`, such as: not checked.
    ///
    /// - Parameters:
    ///   - fields: the object. `description` and `note` are for people and have no effect.
    ///   - others: names of members that belong to another reader.
    /// - Throws: `unknownName` for any other member, `wrongType` for an invalid value or a refused `null`, with the member's path.
    public func applying(_ fields: JSONFields, ignoring others: [String] = []) throws(JSONError) -> Self {
        try fields.allowOnly(Self.jsonMembers.map(\.name) + ["description", "note"] + others)
        var policy = self
        for member in Self.jsonMembers where fields.names.contains(member.name) {
            try member.read(fields.optionalValue(member.name), fields.pathOf(member.name), &policy)
        }
        return policy
    }

    /// This policy, overridden by the members of an app record's object: absent members and `null` keep the value.
    ///
    /// - Parameters:
    ///   - fields: the object.
    ///   - others: names of members of the object that are not part of the policy. They are ignored.
    /// - Throws: `unknownName` for any other member, `missing` for a required one, `wrongType` for a value that is invalid or not
    ///   allowed in an app record, with the member's path.
    public func applying(appRecord fields: JSONFields, ignoring others: [String] = []) throws(JSONError) -> Self {
        try fields.allowOnly(Self.appRecordNames + others)
        var policy = self
        for member in Self.appRecordMembers {
            guard let value = fields.optionalValue(member.name) else {
                guard !member.isRequired else { throw JSONError(.missing, path: fields.pathOf(member.name)) }
                continue
            }
            try member.readAppRecord(value, fields.pathOf(member.name), &policy)
        }
        return policy
    }

    /// Every member, as ``applying(_:ignoring:)`` reads it.
    public var json: JSONObject {
        JSONObject(members: Self.jsonMembers.map { JSONObject.Member($0.name, $0.write(self)) })
    }

    /// The members of an app record, as ``applying(appRecord:ignoring:)`` reads them.
    public var appRecordJSON: JSONObject {
        JSONObject(
            members: Self.appRecordMembers.compactMap { member in
                member.writeAppRecord(self).map { JSONObject.Member(member.name, $0) }
            })
    }

    /// Descriptions of the members that an app record has. The values of this policy are the members' defaults.
    public var appRecordDescription: [JSONMemberDescription] {
        Self.appRecordMembers.map { member in
            JSONMemberDescription(
                name: member.name, type: member.appRecordType, isRequired: member.isRequired,
                defaultValue: member.hasDefault ? member.writeAppRecord(self) ?? member.write(self) : nil,
                meaning: member.text.sentence, isEveryday: member.text.isEveryday)
        }
    }

    /// The names of the members that an app record has, in the order in which they are written.
    public static var appRecordNames: [String] { appRecordMembers.map(\.name) }

    private static var appRecordMembers: [JSONMember<Self>] { jsonMembers.filter(\.isInAppRecord) }
}

/// The effect of an app record's member, and who sets it.
public enum JSONMemberText: Sendable, Hashable {
    /// Every operator sets the member.
    case everyday(String)
    /// The member's default is right for most apps. The documentation has the member on a separate page.
    case advanced(String)

    fileprivate var sentence: String {
        switch self {
        case .everyday(let sentence), .advanced(let sentence): sentence
        }
    }

    fileprivate var isEveryday: Bool { self == .everyday(sentence) }
}

/// One member of a policy's JSON.
public struct JSONMember<Policy: Sendable>: Sendable {
    /// The values that an app record may have for a member.
    public enum AppRecordRule<Value: Sendable>: Sendable {
        /// Every valid value.
        case any
        /// Only the values of this coding.
        case only(JSONCoding<Value>)
        /// None: app records lack the member.
        case none
    }

    /// Its name.
    public let name: String
    /// Whether app records have the member.
    public let isInAppRecord: Bool
    /// Whether app records must have the member.
    public private(set) var isRequired = false
    fileprivate let text: JSONMemberText
    fileprivate let appRecordType: JSONType
    fileprivate private(set) var hasDefault = true
    /// Sets the policy's property to the value. If there is no value, sets what `null` means, or throws if `null` is refused.
    fileprivate let read: @Sendable (JSONValue?, _ path: String, inout Policy) throws(JSONError) -> Void
    fileprivate private(set) var readAppRecord:
        @Sendable (JSONValue, _ path: String, inout Policy) throws(JSONError) -> Void
    fileprivate let write: @Sendable (Policy) -> JSONValue
    /// Returns the member's value in an app record; nil if the record leaves the member out.
    fileprivate private(set) var writeAppRecord: @Sendable (Policy) -> JSONValue?
}

extension JSONMember {
    /// A member that is always set.
    ///
    /// - Parameters:
    ///   - name: its name.
    ///   - path: its property in the policy.
    ///   - coding: how it is read and written.
    ///   - null: the meaning of `null` in an audit; nil if `null` is refused.
    ///   - inAppRecord: the values that an app record may have.
    ///   - text: its effect, for members of app records.
    public init<Value>(
        _ name: String, _ path: any WritableKeyPath<Policy, Value> & Sendable, _ coding: JSONCoding<Value>,
        null: Value? = nil, inAppRecord: AppRecordRule<Value> = .any, _ text: JSONMemberText = .advanced("")
    ) {
        self.init(
            name, coding, inAppRecord, text, write: { coding.write($0[keyPath: path]) },
            set: { policy, value in
                guard let value = value ?? null else { return false }
                policy[keyPath: path] = value
                return true
            })
    }

    /// A member that may be nil, which means not checked or without a value. Nil is written as `null`.
    public init<Value>(
        _ name: String, _ path: any WritableKeyPath<Policy, Value?> & Sendable, _ coding: JSONCoding<Value>,
        inAppRecord: AppRecordRule<Value> = .any, _ text: JSONMemberText = .advanced("")
    ) {
        self.init(
            name, coding, inAppRecord, text, write: { $0[keyPath: path].map(coding.write) ?? .null },
            set: { policy, value in
                policy[keyPath: path] = value
                return true
            })
    }

    /// A member, from a function that writes it and a function that sets it.
    ///
    /// - Parameter set: Sets the policy's property to the value, or, if the value is nil, to the meaning of `null`.
    ///   Returns false if `null` is refused.
    private init<Value>(
        _ name: String, _ coding: JSONCoding<Value>, _ inAppRecord: AppRecordRule<Value>, _ text: JSONMemberText,
        write: @escaping @Sendable (Policy) -> JSONValue, set: @escaping @Sendable (inout Policy, Value?) -> Bool
    ) {
        let rule = inAppRecord.coding ?? coding
        self.init(
            name: name, isInAppRecord: inAppRecord.isPresent, text: text, appRecordType: rule.type,
            read: { json, path, policy throws(JSONError) in
                var value: Value?
                if let json { value = try coding.parse(json, path) }
                guard set(&policy, value) else { throw JSONError(.wrongType, path: path) }
            },
            readAppRecord: { json, path, policy throws(JSONError) in
                _ = set(&policy, try rule.parse(json, path))
            }, write: write, writeAppRecord: write)
    }

    /// This member as a member of an outer policy, which has this policy at `path`.
    public func within<Outer: Sendable>(_ path: any WritableKeyPath<Outer, Policy> & Sendable) -> JSONMember<Outer> {
        var member = JSONMember<Outer>(
            name: name, isInAppRecord: isInAppRecord, text: text, appRecordType: appRecordType,
            read: { [read] json, place, outer throws(JSONError) in try read(json, place, &outer[keyPath: path]) },
            readAppRecord: { [readAppRecord] json, place, outer throws(JSONError) in
                try readAppRecord(json, place, &outer[keyPath: path])
            },
            write: { [write] in write($0[keyPath: path]) },
            writeAppRecord: { [writeAppRecord] in writeAppRecord($0[keyPath: path]) })
        (member.isRequired, member.hasDefault) = (isRequired, hasDefault)
        return member
    }

    /// This member, which every app record must have.
    public func required() -> Self {
        var member = withoutDefault()
        member.isRequired = true
        return member
    }

    /// This member without a fixed default: the default depends on other members, which the member's description explains.
    public func withoutDefault() -> Self {
        var member = self
        member.hasDefault = false
        return member
    }

    /// This member, whose value in an app record must agree with the members before it.
    public func agreeing(_ agrees: @escaping @Sendable (Policy) -> Bool) -> Self {
        var member = self
        member.readAppRecord = { [readAppRecord] json, place, policy throws(JSONError) in
            try readAppRecord(json, place, &policy)
            guard agrees(policy) else { throw JSONError(.wrongType, path: place) }
        }
        return member
    }

    /// This member, written as `null` in an app record if the policy has the default: the record then follows the default of
    /// later versions.
    ///
    /// - Parameter isDefault: whether a policy has the default.
    public func nullInAppRecord(where isDefault: @escaping @Sendable (Policy) -> Bool) -> Self {
        var member = self
        member.writeAppRecord = { [write] in isDefault($0) ? .null : write($0) }
        return member
    }

    /// This member, absent from an app record if the policy has the default. For members that are newer than stored records: an
    /// earlier version of the service, which may run on the same store, refuses unknown members.
    ///
    /// - Parameter isDefault: whether a policy has the default.
    public func absentFromAppRecord(where isDefault: @escaping @Sendable (Policy) -> Bool) -> Self {
        var member = self
        member.writeAppRecord = { [write] in isDefault($0) ? nil : write($0) }
        return member
    }
}

extension JSONMember.AppRecordRule {
    fileprivate var isPresent: Bool {
        if case .none = self { false } else { true }
    }

    fileprivate var coding: JSONCoding<Value>? {
        if case .only(let coding) = self { coding } else { nil }
    }
}

/// A policy with a JSON form. A table of members is the one place that names, reads and writes them.
///
/// There are two forms of an object:
/// - An *audit* lays an object over a policy (``applying(_:ignoring:)``). It may name every member. `null` means: not
///   checked.
/// - An *app record* is what a service enforces (``applying(appRecord:ignoring:)``). It may name the members that
///   ``JSONMember/isInAppRecord`` marks, and give them no value that switches protection off. `null` counts as absent.
public protocol JSONPolicy: Sendable {
    /// Every member, in the order in which they are written.
    static var jsonMembers: [JSONMember<Self>] { get }
}

extension JSONPolicy {
    /// This policy with the members of an object laid over it: absent keeps, `null` is not checked.
    ///
    /// - Parameters:
    ///   - fields: the object. `description` and `note` are for people and have no effect.
    ///   - others: names of members that belong to another reader.
    /// - Throws: `unknownName` for any other member, `wrongType` for a value that is not understood, with the member's
    ///   path.
    public func applying(_ fields: JSONFields, ignoring others: [String] = []) throws(JSONError) -> Self {
        try fields.allowOnly(Self.jsonMembers.map(\.name) + ["description", "note"] + others)
        var policy = self
        for member in Self.jsonMembers where fields.names.contains(member.name) {
            guard member.read(fields.optionalValue(member.name), false, &policy) else {
                throw JSONError(.wrongType, path: fields.pathOf(member.name))
            }
        }
        return policy
    }

    /// This policy with the members of an app record's object laid over it: absent and `null` keep.
    ///
    /// - Parameters:
    ///   - fields: the object.
    ///   - others: names of members that the record has beside the policy.
    /// - Throws: `unknownName` for any other member, `wrongType` for a value that is not understood or that an app record
    ///   may not have, with the member's path.
    public func applying(appRecord fields: JSONFields, ignoring others: [String] = []) throws(JSONError) -> Self {
        try fields.allowOnly(Self.appRecordNames + others)
        var policy = self
        for member in Self.appRecordMembers {
            guard let value = fields.optionalValue(member.name) else { continue }
            guard member.read(value, true, &policy) else {
                throw JSONError(.wrongType, path: fields.pathOf(member.name))
            }
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

    /// The names of the members that an app record has, in the order in which they are written.
    public static var appRecordNames: [String] { appRecordMembers.map(\.name) }

    private static var appRecordMembers: [JSONMember<Self>] { jsonMembers.filter(\.isInAppRecord) }
}

/// One member of a policy's JSON.
public struct JSONMember<Policy: Sendable>: Sendable {
    /// Which values an app record may have for a member.
    public enum AppRecordRule<Value: Sendable>: Sendable {
        /// Every value that is understood.
        case any
        /// Only these.
        case only(@Sendable (Value) -> Bool)
        /// None: app records do not have the member.
        case none
    }

    /// Its name.
    public let name: String
    /// Whether app records have it.
    public let isInAppRecord: Bool
    /// Sets the value, or what stands for `null`. Returns false for a value that is refused.
    fileprivate let read: @Sendable (_ value: JSONValue?, _ isOfAppRecord: Bool, inout Policy) -> Bool
    fileprivate let write: @Sendable (Policy) -> JSONValue
    /// Whether the value is a default, which app records write as `defaultForm`.
    private var isAppRecordDefault: @Sendable (Policy) -> Bool = { _ in false }
    /// How an app record writes the default; nil: it leaves the member out.
    private var defaultForm: JSONValue? = .null

    fileprivate func writeAppRecord(_ policy: Policy) -> JSONValue? {
        isAppRecordDefault(policy) ? defaultForm : write(policy)
    }

    /// This member, written as `null` in an app record whose policy has the default: the record then follows the default of
    /// a later version.
    ///
    /// - Parameter isDefault: whether a policy has the default.
    public func nullInAppRecord(where isDefault: @escaping @Sendable (Policy) -> Bool) -> Self {
        var member = self
        member.isAppRecordDefault = isDefault
        return member
    }

    /// This member, absent from an app record whose policy has the default. A member that is newer than stored records needs
    /// it: an earlier version of the service, which may run on the same store, refuses members that it does not know.
    ///
    /// - Parameter isDefault: whether a policy has the default.
    public func absentFromAppRecord(where isDefault: @escaping @Sendable (Policy) -> Bool) -> Self {
        var member = nullInAppRecord(where: isDefault)
        member.defaultForm = nil
        return member
    }

    /// A member that is always set.
    ///
    /// - Parameters:
    ///   - name: its name.
    ///   - path: where the policy keeps it.
    ///   - coding: how it is read and written.
    ///   - null: what `null` means.
    ///   - inAppRecord: what an app record may say.
    public init<Value>(
        _ name: String, _ path: any WritableKeyPath<Policy, Value> & Sendable, _ coding: JSONCoding<Value>,
        null: Value, inAppRecord: AppRecordRule<Value> = .any
    ) {
        self.name = name
        isInAppRecord = inAppRecord.isPresent
        read = { json, isOfAppRecord, policy in
            guard let json else {
                policy[keyPath: path] = null
                return true
            }
            guard let value = coding.read(json), !isOfAppRecord || inAppRecord.allows(value) else { return false }
            policy[keyPath: path] = value
            return true
        }
        write = { coding.write($0[keyPath: path]) }
    }

    /// A member that may be nil: not checked, or without a value. Written as `null`.
    public init<Value>(
        _ name: String, _ path: any WritableKeyPath<Policy, Value?> & Sendable, _ coding: JSONCoding<Value>,
        inAppRecord: AppRecordRule<Value> = .any
    ) {
        self.name = name
        isInAppRecord = inAppRecord.isPresent
        read = { json, isOfAppRecord, policy in
            guard let json else {
                policy[keyPath: path] = nil
                return true
            }
            guard let value = coding.read(json), !isOfAppRecord || inAppRecord.allows(value) else { return false }
            policy[keyPath: path] = value
            return true
        }
        write = { policy in policy[keyPath: path].map(coding.write) ?? .null }
    }
}

extension JSONMember.AppRecordRule {
    fileprivate var isPresent: Bool {
        if case .none = self { false } else { true }
    }

    fileprivate func allows(_ value: Value) -> Bool {
        switch self {
        case .any: true
        case .only(let isAllowed): isAllowed(value)
        case .none: false
        }
    }
}

package import StrictJSON

/// The kinds of policies, named as in a policy file and in an app record.
package enum PolicyKind: String, Sendable, CaseIterable {
    case ios
    case keyAttestation = "key_attestation"
    case playIntegrity = "play_integrity"

    /// The name of the member of an app record that has the settings for this kind's platform.
    package var platform: String { self == .ios ? "ios" : "android" }

    /// A policy of this kind in the form of a policy file: its members under the kind's name.
    package func file(_ members: JSONObject) -> JSONValue { .object(JSONObject([(rawValue, .object(members))])) }

    /// Ignored members: notes for people, and members of an app record for which a verification has separate options
    /// (trust anchors, list of revoked keys, response keys).
    private static let ignored: Set = ["description", "note", "trust_anchors", "status_list", "keys"]

    /// The members of a policy of this kind, without the ignored ones. Nil if the policy has other kinds, but not this kind.
    ///
    /// - Throws: if `policy` is not an object, or has an unknown member next to its kinds.
    func members(of policy: JSONValue, path: String = "policy") throws(JSONError) -> JSONFields? {
        let all = try JSONFields(policy, path: path)
        let kinds = Self.allCases.map(\.rawValue)
        guard all.names.contains(where: kinds.contains) else { return try Self.considered(policy, path) }
        for name in all.names where !kinds.contains(name) && !Self.ignored.contains(name) {
            throw JSONError(.unknownName, path: all.pathOf(name))
        }
        guard let own = all.optionalValue(rawValue) else { return nil }
        return try Self.considered(own, all.pathOf(rawValue))
    }

    private static func considered(_ policy: JSONValue, _ path: String) throws(JSONError) -> JSONFields {
        // This throws if the policy is not an object.
        _ = try JSONFields(policy, path: path)
        let members = (policy.object?.members ?? []).filter { !ignored.contains($0.name) }
        return try JSONFields(.object(JSONObject(members: members)), path: path)
    }
}

/// A source of policy members. Two sources override the default policy.
enum PolicyLayer {
    /// The `policy` of the input line. For App Attest, `AppAttestOptions` then applies the line's environment and App ID.
    case line(JSONFields?)
    /// `--policy`.
    case option(JSONFields?)

    /// The members of the policy; nil if there is no policy, or it lacks the kind.
    var members: JSONFields? {
        switch self {
        case .line(let members), .option(let members): members
        }
    }
}

extension VerificationOptions {
    /// The layers over the default, in order. The last one wins. By default the last layer is the operator's `--policy`, because
    /// an attacker may have written the line.
    ///
    /// - Parameter own: the line's member `policy`.
    func layers(of kind: PolicyKind, over own: JSONValue?) throws(JSONError) -> [PolicyLayer] {
        let line: PolicyLayer = .line(try own.flatMap { policy throws(JSONError) in try kind.members(of: policy) })
        let option: PolicyLayer = .option(
            try policy.flatMap { policy throws(JSONError) in try kind.members(of: policy) })
        return linePoliciesWin ? [option, line] : [line, option]
    }

    /// A default policy, overridden by the layers.
    ///
    /// - Parameters:
    ///   - policy: the default.
    ///   - kind: its kind.
    ///   - own: the line's member `policy`.
    ///   - others: the names of members that are ignored because they are part of an app record, but not of the policy.
    func overriding<Policy: JSONPolicy>(
        _ policy: Policy, _ kind: PolicyKind, with own: JSONValue?, ignoring others: [String] = []
    ) throws(JSONError) -> Policy {
        var policy = policy
        for layer in try layers(of: kind, over: own) {
            if let members = layer.members { policy = try policy.applying(members, ignoring: others) }
        }
        return policy
    }
}

extension JSONFields {
    /// The policy in an input line. If the member is a name, the policy is stored elsewhere, and the name is ignored.
    var ownPolicy: JSONValue? {
        optionalValue("policy").flatMap { value in
            // Any other text, such as JSON that was encoded twice, is returned, and is then refused as unreadable.
            let isName = value.string?.wholeMatch(of: /[A-Za-z0-9_.-]+/) != nil
            return isName ? nil : value
        }
    }
}

internal import StrictJSON

/// The kinds of policies, by the names that a policy file and an app record give them.
enum PolicyKind: String, CaseIterable {
    case ios
    case keyAttestation = "key_attestation"
    case playIntegrity = "play_integrity"

    /// Members that say nothing about one object: notes for people, and what an app record holds beside a policy.
    private static let ignored: Set = ["description", "note", "trust_anchors", "status_list", "keys"]

    /// The members of a policy of this kind, without those that are ignored. Nil where a policy of several kinds says nothing
    /// about this one.
    ///
    /// - Throws: where `policy` is no object, or is a policy of several kinds with an unknown member beside them.
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
        // An error for anything but an object.
        _ = try JSONFields(policy, path: path)
        let members = (policy.object?.members ?? []).filter { !ignored.contains($0.name) }
        return try JSONFields(.object(JSONObject(members: members)), path: path)
    }
}

/// One of the two sources that are laid over the default policy.
enum PolicyLayer {
    /// What an input line says itself: its `policy`, and after it the environment and the app that it names.
    case line(JSONFields?)
    /// `--policy`.
    case option(JSONFields?)

    /// The members of the policy; nil where it says nothing about the kind.
    var members: JSONFields? {
        switch self {
        case .line(let members), .option(let members): members
        }
    }
}

extension VerificationOptions {
    /// What is laid over the default for a line, in order: what comes last wins. By default that is the operator's `--policy`,
    /// because a line may come from an attacker who wants its object to verify.
    ///
    /// - Parameter own: the line's member `policy`.
    func layers(of kind: PolicyKind, over own: JSONValue?) throws(JSONError) -> [PolicyLayer] {
        let line: PolicyLayer = .line(try own.flatMap { policy throws(JSONError) in try kind.members(of: policy) })
        let option: PolicyLayer = .option(
            try policy.flatMap { policy throws(JSONError) in try kind.members(of: policy) })
        return linePoliciesWin ? [option, line] : [line, option]
    }
}

extension JSONFields {
    /// The policy that an input line brings along. Text there is the name of a policy that lies elsewhere, and says nothing.
    var ownPolicy: JSONValue? {
        optionalValue("policy").flatMap { $0.string == nil ? $0 : nil }
    }
}

public import StrictJSON

/// The members of an app record's `key_attestation` object, and further members for audits.
///
/// There is no member for `requiresGeneratedKey`, because every JSON policy requires a generated key.
extension KeyAttestationPolicy: JSONPolicy {
    /// Every member. Purposes and algorithms are KeyMint's names, or their numbers.
    public static let jsonMembers: [JSONMember<KeyAttestationPolicy>] = [
        JSONMember(
            "minimum_security_level", \.minimumSecurityLevel, .choice(SecurityLevel.allCases) { $0.name },
            inAppRecord: .only(.choice([.trustedEnvironment, .strongBox]) { $0.name }),
            .advanced("Where the key must live.")),
        JSONMember("require_equal_levels", \.requiresEqualLevels, .bool, null: false, inAppRecord: .none),
        JSONMember(
            "boot_states", \.bootStates, .set(of: .choice(VerifiedBootState.allCases) { $0.name }),
            inAppRecord: .only(.set(of: .choice([.verified, .selfSigned]) { $0.name }, atLeast: 1)),
            .advanced("The verified boot states that are accepted. `SelfSigned` accepts a system with any signature.")),
        JSONMember(
            "boot_keys", \.bootKeys, .set(of: .sha256), null: [],
            .advanced(
                "SHA-256 of boot keys of other systems, hexadecimal or base64url. A locked device that booted `SelfSigned` with one of them is accepted, whatever `boot_states` says."
            )
        ),
        JSONMember("purposes", \.purposes, .purposes, inAppRecord: .none),
        JSONMember("algorithms", \.algorithms, .set(of: .number(in: KeyMintNames.algorithms)), inAppRecord: .none),
        JSONMember(
            "maximum_patch_age_days", \.maximumPatchAgeDays, .integer(in: 0...36_500),
            inAppRecord: .only(.integer(in: 1...36_500)), .advanced("The maximum age of the security patch.")),
        JSONMember("dates", \.dates, .choice, null: .ignore, inAppRecord: .none),
        JSONMember("require_chained_names", \.requiresChainedNames, .bool, null: false, inAppRecord: .none),
        JSONMember("packages", \.packages, .set(of: .text), inAppRecord: .none),
        JSONMember("certificate_digests", \.certificateDigests, .set(of: .sha256), inAppRecord: .none),
    ]

    /// The 32 bytes of a SHA-256 in the form of policies, hexadecimal or base64url; nil for any other text.
    package static func digest(_ text: String) -> [UInt8]? { JSONCoding.sha256.read(.string(text)) }
}

extension JSONCoding where Value == KeyAttestationPolicy.Purposes {
    /// A list of the allowed purposes. `SIGN`, if listed, is also required.
    fileprivate static var purposes: Self {
        JSONCoding<Set<Int64>>.set(of: .number(in: KeyMintNames.purposes))
            .map({ Value(required: $0.intersection([2]), allowed: $0) }, back: { $0.allowed })
    }
}

extension JSONCoding where Value == Int64 {
    /// One of KeyMint's numbers, as its name or as a number. A number without a name is refused.
    fileprivate static func number(in names: [Int64: String]) -> Self {
        Self(
            .choice(names.sorted { $0.key < $1.key }.flatMap { [JSONValue.string($0.value), .integer($0.key)] }),
            read: { value in
                if let number = value.integer { return names[number] == nil ? nil : number }
                guard let name = value.string else { return nil }
                return names.first { $0.value == name }?.key
            },
            write: { number in names[number].map { .string($0) } ?? .integer(number) })
    }
}

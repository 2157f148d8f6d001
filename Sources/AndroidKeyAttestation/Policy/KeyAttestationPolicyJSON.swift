internal import Bytes
public import StrictJSON

extension KeyAttestationPolicy {
    /// A policy with single members replaced by those of an app record's `key_attestation` object: absent keeps, `null`
    /// is not checked.
    ///
    /// Members: `minimum_security_level`, `require_equal_levels`, `boot_states`, `boot_keys`, `purposes`, `algorithms`,
    /// `maximum_patch_age_days`, `dates`, `require_chained_names`, `packages`, `certificate_digests`. `status_list` is left
    /// to whoever fetches the list; `description` and `note` are for people. Any other member, and any value that is not
    /// understood, is an error: a typing error must not become a default.
    public func applying(_ fields: JSONFields) throws(JSONError) -> KeyAttestationPolicy {
        try fields.allowOnly(
            "minimum_security_level", "require_equal_levels", "boot_states", "boot_keys", "purposes", "algorithms",
            "maximum_patch_age_days", "dates", "require_chained_names", "packages", "certificate_digests",
            "status_list", "description", "note")
        var policy = self
        try fields.overlay("minimum_security_level", on: &policy.minimumSecurityLevel) { value in
            value.string.flatMap(SecurityLevel.init(name:))
        }
        try fields.overlay("require_equal_levels", on: &policy.requiresEqualLevels, none: false, \.bool)
        try fields.overlay("require_chained_names", on: &policy.requiresChainedNames, none: false, \.bool)
        try fields.overlay("boot_states", on: &policy.bootStates) { value in
            value.set { $0.string.flatMap(VerifiedBootState.init) }
        }
        try fields.overlay("boot_keys", on: &policy.bootKeys, none: []) { $0.set(of: \.digest) }
        try fields.overlay("purposes", on: &policy.purposes) { value in
            value.set { $0.number(in: KeyMintNames.purposes) }.map {
                Purposes(required: $0.intersection([2]), allowed: $0)
            }
        }
        try fields.overlay("algorithms", on: &policy.algorithms) { value in
            value.set { $0.number(in: KeyMintNames.algorithms) }
        }
        try fields.overlay("maximum_patch_age_days", on: &policy.maximumPatchAgeDays) { value in
            value.integer.flatMap { 0...36_500 ~= $0 ? Int($0) : nil }
        }
        try fields.overlay("dates", on: &policy.dates, none: .ignore) { $0.string.flatMap(Dates.init) }
        try fields.overlay("packages", on: &policy.packages) { $0.set(of: \.string) }
        try fields.overlay("certificate_digests", on: &policy.certificateDigests) { $0.set(of: \.digest) }
        return policy
    }

    /// Every member, as ``applying(_:)`` reads it; that the hardware must have generated the key is none of them.
    public var json: JSONObject {
        func names<Element>(_ values: Set<Element>?, _ name: (Element) -> String?) -> JSONValue {
            values.map { .array($0.compactMap(name).sorted().map { .string($0) }) } ?? .null
        }
        return JSONObject([
            ("minimum_security_level", minimumSecurityLevel.map { .string($0.name) } ?? .null),
            ("require_equal_levels", .bool(requiresEqualLevels)), ("boot_states", names(bootStates) { $0.name }),
            ("boot_keys", names(bootKeys) { Hexadecimal.encode($0) }),
            ("purposes", names(purposes?.allowed) { KeyMintNames.purposes[$0] }),
            ("algorithms", names(algorithms) { KeyMintNames.algorithms[$0] }),
            ("maximum_patch_age_days", maximumPatchAgeDays.map { .integer($0) } ?? .null),
            ("dates", .string(dates.rawValue)), ("require_chained_names", .bool(requiresChainedNames)),
            ("packages", names(packages) { $0 }),
            ("certificate_digests", names(certificateDigests) { Hexadecimal.encode($0) }),
        ])
    }
}

extension JSONValue {
    /// The number of a name.
    fileprivate func number(in names: [Int64: String]) -> Int64? {
        if let integer { return names[integer] == nil ? nil : integer }
        guard let string else { return nil }
        return names.first { $0.value == string }?.key
    }

    fileprivate var digest: [UInt8]? { string.flatMap { KeyAttestationPolicy.digest($0) } }
}

extension KeyAttestationPolicy {
    /// The 32 octets of a SHA-256 in hexadecimal, or in base64url with or without padding; nil for another text.
    @_spi(Service) public static func digest(_ text: String) -> [UInt8]? {
        if text.utf8.count == 64 { return Hexadecimal.decode(text) }
        let unpadded = text.hasSuffix("=") ? text.dropLast() : text[...]
        return Base64.url.decode(unpadded).flatMap { $0.count == 32 ? $0 : nil }
    }
}

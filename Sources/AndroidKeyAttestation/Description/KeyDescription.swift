internal import LenientDER

/// The content of the attestation extension, 1.3.6.1.4.1.11129.2.1.17: the device's statement about a key.
///
/// A parsed description is only as trustworthy as its chain. Checks of key and device use `hardwareEnforced`. Android asserts
/// `softwareEnforced`, and the hardware does not. Only `softwareEnforced` names the application.
public struct KeyDescription: Sendable, Hashable {
    /// The version of the schema, from 1. A description of a version above 500 is parsed as if it were 500, and noted as a quirk.
    public let attestationVersion: Int64
    /// The security level of the component that made the attestation.
    public let attestationSecurityLevel: SecurityLevel
    /// The version of Keymaster or KeyMint. It may differ from `attestationVersion`.
    public let keyMintVersion: Int64
    /// The security level of the component that holds the key.
    public let keyMintSecurityLevel: SecurityLevel
    /// The challenge in the attestation.
    public let attestationChallenge: [UInt8]
    /// An id of the device for privileged applications; empty for all others.
    public let uniqueID: [UInt8]
    /// The properties that Android asserts.
    public let softwareEnforced: AuthorizationList
    /// The properties that the hardware asserts.
    public let hardwareEnforced: AuthorizationList
    /// The deviations from the schema, for logs and inspection.
    let quirks: [String]

    /// The lower of the two levels: the attestation is only as trustworthy as the component that made it.
    public var securityLevel: SecurityLevel { min(attestationSecurityLevel, keyMintSecurityLevel) }

    /// The newest version whose schema is known. Later versions are parsed with the same schema, because versions only
    /// add tags.
    static let newestKnownVersion: Int64 = 500

    init(_ value: ArraySlice<UInt8>) throws(KeyAttestationError) {
        do {
            var noted = QuirkCollector()
            let root = try DERNode(parsing: value)
            var fields = DERFields(try root.sequence(), of: root)
            attestationVersion = try fields.next().integer(noting: &noted.quirks)
            attestationSecurityLevel = try Self.level(fields.next(), &noted)
            keyMintVersion = try fields.next().integer(noting: &noted.quirks)
            keyMintSecurityLevel = try Self.level(fields.next(), &noted)
            attestationChallenge = Array(try fields.next().octetString())
            uniqueID = Array(try fields.next().octetString())
            noted.take(as: "keyDescription")
            softwareEnforced = try AuthorizationList(fields.next(), named: "softwareEnforced", noting: &noted)
            hardwareEnforced = try AuthorizationList(fields.next(), named: "hardwareEnforced", noting: &noted)
            fields.skipRest(of: "keyDescription", noting: &noted)
            if attestationVersion > Self.newestKnownVersion {
                noted.note("unknown-attestation-version:\(attestationVersion)")
            }
            quirks = noted.found
        } catch {
            throw KeyAttestationError(.keyDescriptionMalformed, .keyDescription, "\(error)")
        }
        guard attestationVersion >= 1 else {
            throw KeyAttestationError(
                .attestationVersionUnsupported, .keyDescription, "version \(attestationVersion)")
        }
    }

    private static func level(
        _ node: DERNode, _ noted: inout QuirkCollector
    ) throws(DERError) -> SecurityLevel {
        let value = try node.integer(noting: &noted.quirks)
        guard node.tag == .enumerated, let level = Int(exactly: value).flatMap(SecurityLevel.init(rawValue:)) else {
            throw DERError(.outOfRange, at: node)
        }
        return level
    }
}

extension KeyAttestationChain {
    /// The key description of the leaf, unverified: for people who look at a chain, and for error reports.
    public func unverifiedDescription() throws(KeyAttestationError) -> KeyDescription {
        guard let value = leaf.firstExtension(.keyDescription)?.value else {
            throw KeyAttestationError(
                .attestationExtensionMissing, .attestationExtension, "no key description in the leaf")
        }
        return try KeyDescription(value)
    }
}

extension KeyAttestationChain {
    /// Whether any certificate of the chain carries a key description.
    public var hasKeyDescription: Bool {
        certificates.contains { $0.firstExtension(.keyDescription) != nil }
    }
}

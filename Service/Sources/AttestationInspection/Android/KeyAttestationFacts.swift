internal import AndroidKeyAttestation
internal import Bytes
internal import Crypto
internal import StrictJSON

/// The contents of an Android key attestation chain, as a JSON object.
enum KeyAttestationFacts {
    static func facts(_ audit: KeyAttestationAudit) -> JSONObject {
        var facts = audit.chain.map { Self.facts($0) } ?? JSONObject()
        if let findings = audit.findings { add(findings, to: &facts) }
        return facts
    }

    static func facts(_ chain: KeyAttestationChain) -> JSONObject {
        var facts = JSONObject()
        if let description = try? chain.unverifiedDescription() { add(description, to: &facts) }
        facts["attested_key_spki_sha256"] = .string(
            Hexadecimal.encode(SHA256.hash(data: chain.leaf.subjectPublicKeyInfo)))
        facts["quirks"] = .array(chain.quirks.map { .string($0.description) })
        facts["certificates"] = .array(chain.certificates.map(certificate))
        return facts
    }

    /// Adds the facts that are known only after verification.
    private static func add(_ verified: KeyAttestationAudit.Findings, to facts: inout JSONObject) {
        facts["provisioning"] = .string(verified.provisioning.rawValue)
        facts["strongbox_corroborated"] = .bool(verified.isStrongBoxCorroborated)
        facts["root"] = .object(
            JSONObject([
                ("label", .string(verified.anchor.label)), ("origin", .string(verified.anchor.origin.rawValue)),
                ("spki_sha256", .string(Hexadecimal.encode(verified.anchor.keyDigest))),
                ("in_chain", .bool(verified.isRootIncluded)),
            ]))
        if let info = verified.provisioningInfo {
            var object = JSONObject()
            object["certificates_issued"] = info.certificatesIssued.map { .integer($0) }
            object["manufacturer"] = info.manufacturer.map { .string($0) }
            object["map"] = .object(info.json)
            facts["provisioning_info"] = .object(object)
        }
    }

    private static func add(_ description: KeyDescription, to facts: inout JSONObject) {
        let hardware = description.hardwareEnforced
        let software = description.softwareEnforced
        facts["attestation_version"] = .integer(description.attestationVersion)
        facts["attestation_security_level"] = .string(description.attestationSecurityLevel.name)
        facts["keymint_version"] = .integer(description.keyMintVersion)
        facts["keymint_security_level"] = .string(description.keyMintSecurityLevel.name)
        facts["security_level"] = .string(description.securityLevel.name)
        facts["challenge_hex"] = .string(Hexadecimal.encode(description.attestationChallenge))
        facts["verified_boot_state"] = hardware.rootOfTrust.map { .string($0.verifiedBootState.name) }
        facts["device_locked"] = hardware.rootOfTrust.map { .bool($0.isDeviceLocked) }
        facts["verified_boot_key"] = hardware.rootOfTrust.map { .string(Hexadecimal.encode($0.verifiedBootKey)) }
        facts["verified_boot_hash"] = hardware.rootOfTrust?.verifiedBootHash.map { .string(Hexadecimal.encode($0)) }
        facts["os_version"] = hardware.osVersion.map { .integer($0) }
        facts["os_patch_level"] = hardware.osPatchLevel.map { .integer($0) }
        facts["vendor_patch_level"] = hardware.vendorPatchLevel.map { .integer($0) }
        facts["boot_patch_level"] = hardware.bootPatchLevel.map { .integer($0) }
        facts["algorithm"] = hardware.algorithm.map { name($0, KeyMintNames.algorithms) }
        facts["origin"] = hardware.origin.map { name($0, KeyMintNames.origins) }
        facts["purposes"] = hardware.purposes.map { .array($0.map { name($0, KeyMintNames.purposes) }) }
        if let application = software.attestationApplicationID {
            facts["packages"] = .array(
                application.packages.map { package in
                    .object(JSONObject([("name", .string(package.name)), ("version", .integer(package.version))]))
                })
            facts["signature_digests_hex"] = .array(
                application.signatureDigests.map { .string(Hexadecimal.encode($0)) })
        }
        facts["creation_time"] = (software.creationDateTime ?? hardware.creationDateTime).flatMap { time($0 / 1000) }
        facts["key_description"] = description.json
    }

    private static func certificate(_ certificate: AttestationCertificate) -> JSONValue {
        var object = JSONObject([
            ("subject", .string(certificate.subject.description)), ("issuer", .string(certificate.issuer.description)),
            ("serial_number", .string(certificate.serialNumber)),
        ])
        object["not_before"] = certificate.notBefore.flatMap(time)
        object["not_after"] = certificate.notAfter.flatMap(time)
        object["sha256"] = .string(Hexadecimal.encode(SHA256.hash(data: certificate.encoded)))
        return .object(object)
    }

    /// The name of a number, or the number itself if it has no name.
    private static func name(_ value: Int64, _ names: [Int64: String]) -> JSONValue {
        names[value].map { .string($0) } ?? .integer(value)
    }

    /// A time in RFC 3339; nil outside of the years 1900 to 9999.
    private static func time(_ secondsSince1970: Int64) -> JSONValue? {
        guard -2_208_988_800...253_402_300_799 ~= secondsSince1970 else { return nil }
        return .string(CivilTime(secondsSince1970: secondsSince1970).iso8601)
    }
}

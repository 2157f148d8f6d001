internal import Bytes
internal import Foundation

/// Writes the content of the attestation extension.
struct KeyDescriptionWriter {
    let options: KeyAttestationOptions
    let challenge: [UInt8]
    let time: Date

    var encoded: [UInt8] {
        var software: [UInt32: [UInt8]] = [
            701: DERWriter.integer(options.creationDateTime ?? Int64(time.timeIntervalSince1970 * 1000))
        ]
        if let application { software[709] = DERWriter.octetString(application) }
        var hardware: [UInt32: [UInt8]] = [:]
        if options.areClaimsInSoftware {
            software.merge(claims) { $1 }
        } else {
            hardware = claims
        }
        return DERWriter.sequence(
            DERWriter.integer(options.attestationVersion),
            DERWriter.enumerated(Int64(options.attestationSecurityLevel)),
            DERWriter.integer(options.keyMintVersion),
            DERWriter.enumerated(Int64(options.keyMintSecurityLevel)),
            DERWriter.octetString(challenge),
            DERWriter.octetString([]),
            Self.list(software),
            Self.list(hardware))
    }

    /// The authorizations that describe the key and the device, by tag.
    private var claims: [UInt32: [UInt8]] {
        var claims: [UInt32: [UInt8]] = [
            1: integers(options.purposes),
            2: DERWriter.integer(options.algorithm),
            3: DERWriter.integer(256),
            5: integers([4]),
            10: DERWriter.integer(1),
            503: DERWriter.null,
            705: DERWriter.integer(options.osVersion),
            706: DERWriter.integer(options.osPatchLevel ?? monthOfIssue),
        ]
        if let origin = options.origin { claims[702] = DERWriter.integer(origin) }
        if let root = options.rootOfTrust { claims[704] = Self.rootOfTrust(root) }
        if let level = options.vendorPatchLevel { claims[718] = DERWriter.integer(level) }
        if let level = options.bootPatchLevel { claims[719] = DERWriter.integer(level) }
        if options.isOpenToAllApplications { claims[600] = DERWriter.null }
        return claims.merging(options.additionalAuthorizations) { $1 }
    }

    private var application: [UInt8]? {
        options.packages.map { packages in
            DERWriter.sequence(
                DERWriter.set(
                    of: packages.map {
                        DERWriter.sequence(DERWriter.octetString($0.name.utf8), DERWriter.integer($0.version))
                    }, isSorted: !options.areSetsUnsorted),
                DERWriter.set(
                    of: options.signatureDigests.map { DERWriter.octetString($0) },
                    isSorted: !options.areSetsUnsorted))
        }
    }

    private var monthOfIssue: Int64 {
        let issued = CivilTime(time)
        return issued.year * 100 + issued.month
    }

    private func integers(_ values: [Int64]) -> [UInt8] {
        DERWriter.set(of: values.map { DERWriter.integer($0) }, isSorted: !options.areSetsUnsorted)
    }

    private static func rootOfTrust(_ root: KeyAttestationOptions.RootOfTrust) -> [UInt8] {
        DERWriter.sequence(
            of: [
                DERWriter.octetString(root.verifiedBootKey), DERWriter.boolean(octet: root.deviceLocked),
                DERWriter.enumerated(Int64(root.verifiedBootState)),
            ] + (root.verifiedBootHash.map { [DERWriter.octetString($0)] } ?? []))
    }

    private static func list(_ authorizations: [UInt32: [UInt8]]) -> [UInt8] {
        DERWriter.sequence(
            of: authorizations.sorted { $0.key < $1.key }.map { DERWriter.explicit($0.key, $0.value) })
    }
}

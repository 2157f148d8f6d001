internal import Bytes
internal import Crypto
internal import Foundation

/// The rules for the content of the key description.
struct ClaimRules {
    let description: KeyDescription
    let policy: KeyAttestationPolicy

    private var hardware: AuthorizationList { description.hardwareEnforced }

    func checkSecurityLevel(isStrongBoxCorroborated: Bool) throws(KeyAttestationError) {
        if let minimum = policy.minimumSecurityLevel {
            guard description.securityLevel >= minimum else {
                throw KeyAttestationError(
                    .securityLevelTooLow, .securityLevel, "\(description.securityLevel.name) is below \(minimum.name)")
            }
            // Attackers used keys that leaked from trusted execution environments to sign attestations that claim
            // StrongBox. So the attestation certificate must name StrongBox too.
            guard minimum < .strongBox || isStrongBoxCorroborated else {
                throw KeyAttestationError(
                    .strongBoxNotCorroborated, .securityLevel, "the attestation certificate does not say StrongBox")
            }
        }
        guard
            !policy.requiresEqualLevels || description.attestationSecurityLevel == description.keyMintSecurityLevel
        else {
            throw KeyAttestationError(
                .securityLevelsDiffer, .securityLevel,
                "\(description.attestationSecurityLevel.name) attests \(description.keyMintSecurityLevel.name)")
        }
    }

    func checkChallenge(_ challenge: [UInt8]) throws(KeyAttestationError) {
        guard constantTimeEquals(description.attestationChallenge, challenge) else {
            throw KeyAttestationError(.challengeMismatch, .challenge, "made for another challenge")
        }
    }

    func checkPublicKey(
        _ attested: P256.Signing.PublicKey?, is expected: P256.Signing.PublicKey
    ) throws(KeyAttestationError) {
        guard let attested else {
            throw KeyAttestationError(.attestedKeyUnsupported, .publicKey, "the attested key is not of P-256")
        }
        guard attested.rawRepresentation == expected.rawRepresentation else {
            throw KeyAttestationError(.attestedKeyMismatch, .publicKey, "another key is attested")
        }
    }

    func checkPackage(_ package: String?) throws(KeyAttestationError) {
        guard policy.packages != nil || policy.certificateDigests != nil || package != nil else { return }
        guard !hardware.isOpenToAllApplications, !description.softwareEnforced.isOpenToAllApplications else {
            throw KeyAttestationError(.allApplications, .package, "the key is open to all applications")
        }
        guard let application = description.softwareEnforced.attestationApplicationID else {
            throw KeyAttestationError(.applicationMissing, .package, "softwareEnforced names no application")
        }
        // Android package names are ASCII. Other names are ignored, because Swift compares by canonical equivalence: a Kelvin
        // sign would equal a K.
        let names = Set(application.packages.map(\.name).filter { $0.utf8.allSatisfy { $0 < 0x80 } })
        guard package.map(names.contains) ?? true, policy.packages.map({ !$0.isDisjoint(with: names) }) ?? true else {
            throw KeyAttestationError(.packageMismatch, .package, "made by \(names.sorted())")
        }
        guard policy.certificateDigests.map({ !$0.isDisjoint(with: application.signatureDigests) }) ?? true else {
            throw KeyAttestationError(
                .certificateDigestMismatch, .package,
                "signed with \(application.signatureDigests.map { Hexadecimal.encode($0) })")
        }
    }

    func checkBootState() throws(KeyAttestationError) {
        guard let states = policy.bootStates else { return }
        guard let root = hardware.rootOfTrust else {
            throw KeyAttestationError(.rootOfTrustMissing, .bootState, "hardwareEnforced has no root of trust")
        }
        let acceptsUnlocked = root.verifiedBootState == .unverified && states.contains(.unverified)
        guard root.isDeviceLocked || acceptsUnlocked else {
            throw KeyAttestationError(.deviceUnlocked, .bootState, "the boot loader is unlocked")
        }
        let hasListedKey = root.verifiedBootState == .selfSigned && policy.bootKeys.contains(root.verifiedBootKey)
        guard states.contains(root.verifiedBootState) || hasListedKey else {
            throw KeyAttestationError(.bootStateRefused, .bootState, "booted \(root.verifiedBootState.name)")
        }
    }

    func checkOrigin() throws(KeyAttestationError) {
        guard policy.requiresGeneratedKey else { return }
        guard hardware.origin == 0 else {
            throw KeyAttestationError(.originRefused, .origin, "origin \(hardware.origin.map(String.init) ?? "absent")")
        }
    }

    func checkPurposes() throws(KeyAttestationError) {
        guard let purposes = policy.purposes else { return }
        let attested = Set(hardware.purposes ?? [])
        guard attested.isSuperset(of: purposes.required), attested.isSubset(of: purposes.allowed) else {
            throw KeyAttestationError(.purposeRefused, .purposes, "purposes \(attested.sorted())")
        }
    }

    func checkAlgorithm() throws(KeyAttestationError) {
        guard let algorithms = policy.algorithms else { return }
        guard let algorithm = hardware.algorithm, algorithms.contains(algorithm) else {
            throw KeyAttestationError(
                .algorithmRefused, .algorithm, "algorithm \(hardware.algorithm.map(String.init) ?? "absent")")
        }
    }

    func checkPatchLevels(at time: Date) throws(KeyAttestationError) {
        guard let maximum = policy.maximumPatchAgeDays else { return }
        guard let system = PatchLevel(hardware.osPatchLevel) else {
            throw KeyAttestationError(.patchLevelMissing, .patchLevels, "no patch level of the system")
        }
        let others = [PatchLevel(hardware.vendorPatchLevel), PatchLevel(hardware.bootPatchLevel)].compactMap(\.self)
        for level in [system] + others where level.ageInDays(at: time) > Double(maximum) {
            throw KeyAttestationError(.patchLevelTooOld, .patchLevels, "patch level \(level.value)")
        }
    }
}

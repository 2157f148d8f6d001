import AttestationTestKit

/// The policies that chains are judged by.
enum ModelPolicy: CaseIterable {
    case registration, strongBox, patchAge, unchainedNames
}

/// The outcome that the specification demands for a chain, computed from the model. It never sees encoded
/// certificates, and shares no code with the verifier.
struct Oracle {
    enum Kind: String {
        case factory
        case remote = "rkp"
        case unknown
    }

    let sent: [SentCertificate]
    let policy: ModelPolicy

    /// The certificates below the root, and the root; nil if the last one sent is neither a root nor signed by a root.
    private var path: (belowRoot: ArraySlice<SentCertificate>, root: RootKind)? {
        guard let last = sent.last else { return nil }
        if case .root(let kind) = last { return (sent.dropLast(), kind) }
        guard case .root(let kind) = last.signer, last.signed?.isSignatureBroken == false else { return nil }
        return (sent[...], kind)
    }

    var isRootIncluded: Bool { if case .root? = sent.last { true } else { false } }

    /// The kind of chain, by the name of the certificate below the root.
    var kind: Kind {
        guard let name = path?.belowRoot.last?.subject else { return .unknown }
        let commonNames = name.compactMap { if case .commonName(let text) = $0 { text } else { nil } }
        let organizations = name.compactMap { if case .organization(let text) = $0 { text } else { nil } }
        if commonNames == ["Droid CA2"], organizations == ["Google LLC"] { return .remote }
        let isNumbered = name.contains { if case .serialNumber = $0 { true } else { false } }
        return isNumbered ? .factory : .unknown
    }

    private var attestationName: ModelCertificate.Name { sent.count > 1 ? sent[1].subject : [] }

    private func organizations(_ name: ModelCertificate.Name) -> [String] {
        name.compactMap { if case .organization(let text) = $0 { text } else { nil } }
    }

    var isStrongBoxCorroborated: Bool {
        let titles = attestationName.compactMap { if case .title(let text) = $0 { text } else { nil } }
        return titles == ["StrongBox"] || organizations(attestationName) == ["StrongBox"]
    }

    /// The count in the provisioning information of the certificate above the leaf; the first such extension is used.
    var certificatesIssued: Int64? {
        guard sent.count > 1 else { return nil }
        for found in sent[1].extensions {
            if case .provisioningInfo(let count) = found { return count.map { Int64($0) } }
        }
        return nil
    }

    var accepts: Bool { hasPath && hasNames && hasShape && isTimely && !isRevoked && hasClaims }

    private var hasPath: Bool {
        guard (1...6).contains(sent.count), let path else { return false }
        let isSigned = zip(sent, sent.dropFirst()).allSatisfy { certificate, issuer in
            certificate.signer == issuer.key && certificate.signed?.isSignatureBroken != true
        }
        let isRootRepeated = path.belowRoot.contains { $0.key == .root(path.root) } && isRootIncluded
        return isSigned && !isRootRepeated
    }

    private var hasNames: Bool {
        guard policy != .unchainedNames else { return true }
        let subjects = sent.dropFirst().map(\.subject) + [path?.root.subject ?? []]
        return zip(sent, subjects).allSatisfy { $0.issuer == $1 }
    }

    private var descriptions: [(index: Int, claims: ModelClaims)] {
        sent.enumerated().flatMap { index, certificate in
            certificate.extensions.compactMap { found in
                if case .description(let claims) = found { (index, claims) } else { nil }
            }
        }
    }

    private var hasShape: Bool {
        guard descriptions.count == 1, descriptions.first?.index == 0, let path else { return false }
        guard !sent.contains(where: { $0.extensions.contains(.virtualMachine) }) else { return false }
        switch kind {
        case .remote:
            let organizations = organizations(attestationName)
            return path.belowRoot.count == 4 && [["TEE"], ["StrongBox"]].contains(organizations)
        case .factory, .unknown: return path.belowRoot.count == 3
        }
    }

    private var isTimely: Bool {
        sent.dropFirst().compactMap { $0.signed?.certificate.validity }.allSatisfy { validity in
            switch validity {
            case .usual, .beginsNow, .endsNow: true
            case .past: kind == .factory
            case .future: false
            }
        }
    }

    private var isRevoked: Bool { sent.contains { $0.signed?.certificate.isRevoked == true } }

    private var hasClaims: Bool {
        guard let claims = descriptions.first?.claims, claims.whole == .written, claims.version >= 1 else {
            return false
        }
        let lowest = policy == .strongBox ? 2 : 1
        guard claims.attestationLevel == claims.keyLevel, lowest...2 ~= claims.keyLevel else { return false }
        guard policy != .strongBox || isStrongBoxCorroborated else { return false }
        guard claims.hasChallenge, sent.first?.key == .key(.registered) else { return false }
        guard !claims.isOpen, claims.packages?.contains("com.example.app") == true, claims.digests.contains(0x11) else {
            return false
        }
        guard !claims.isInSoftware, claims.origin == 0, claims.algorithm == 3 else { return false }
        guard claims.purposes.contains(2), Set(claims.purposes).isSubset(of: [2, 3]) else { return false }
        switch claims.boot {
        case .verified, .nonCanonicallyLocked, .listedKey: break
        case .otherKey, .unlocked, .unverified, .failed, .unknownState, .absent: return false
        }
        switch claims.extra {
        case .none, .unknown, .unknownSequence, .largestTag, .vendorPatchLevelZero, .keySizeOfAnotherType: break
        case .purposeOfAnotherType, .originOfAnotherType, .rootOfTrustOfAnotherType, .allApplications: return false
        }
        return policy != .patchAge || claims.patchLevel == nil || claims.patchLevel == 202_601
    }
}

internal import Crypto
internal import Foundation
internal import LenientDER

/// The rules for the certificates of a chain. ``ClaimRules`` has those for the content of the key description.
struct PathRules {
    let chain: KeyAttestationChain
    let anchors: KeyAttestationTrustAnchors
    /// The cache of verified signatures.
    let verified: VerifiedSteps
    private let keyDigests: [SHA256Digest]

    init(chain: KeyAttestationChain, anchors: KeyAttestationTrustAnchors, verified: VerifiedSteps) {
        self.chain = chain
        self.anchors = anchors
        self.verified = verified
        keyDigests = chain.certificates.map { SHA256.hash(data: $0.subjectPublicKeyInfo) }
    }

    /// The pinned key that signed the last certificate: the key of that certificate, or of a root that the chain leaves out.
    func findAnchor() throws(KeyAttestationError) -> (KeyAttestationTrustAnchors.Anchor, isRootIncluded: Bool) {
        guard let last = chain.certificates.last, let lastKeyDigest = keyDigests.last else {
            throw KeyAttestationError(.chainUnreadable, .anchor, "no certificate")
        }
        try refuseSoftwareRoot(last)
        if let anchor = anchors.anchors.first(where: { $0.keyDigest.elementsEqual(lastKeyDigest) }) {
            guard isSigned(last, by: anchor) else {
                throw KeyAttestationError(.signatureInvalid, .anchor, "the root is not signed by its own key")
            }
            try refuseRootBelowRoot(anchor)
            return (anchor, true)
        }
        guard let anchor = anchors.anchors.first(where: { isSigned(last, by: $0) }) else {
            throw KeyAttestationError(.untrustedRoot, .anchor, "the chain ends in \(last.subject)")
        }
        return (anchor, false)
    }

    /// Refuses a chain that has the root twice. Anyone can append Google's root a second time, and the signatures stay valid. The verifier
    /// reads the kind of provisioning from the certificate below the last one. In such a chain, that certificate is the root. The name of
    /// the RSA root looks like that of a factory's intermediate, and the dates of a factory's certificates are not checked. So expired
    /// certificates of a remotely provisioned device would be accepted.
    private func refuseRootBelowRoot(_ anchor: KeyAttestationTrustAnchors.Anchor) throws(KeyAttestationError) {
        for keyDigest in keyDigests.dropLast() where anchor.keyDigest.elementsEqual(keyDigest) {
            throw KeyAttestationError(.rootRepeated, .anchor, "the root is below the root")
        }
    }

    /// Refuses chains that end in a software root. The root is recognized by its key, or by its name if the chain leaves it out.
    /// A name proves nothing, but a chain to a root that is not pinned is refused in any case.
    private func refuseSoftwareRoot(_ last: AttestationCertificate) throws(KeyAttestationError) {
        for root in GoogleRoots.software
        where last.subjectPublicKeyInfo.elementsEqual(root.spki) || last.issuer.encoded.elementsEqual(root.subject) {
            throw KeyAttestationError(.softwareRoot, .anchor, "the chain ends in \(root.label)")
        }
    }

    /// Requires that every certificate but the last is signed by the key of the next.
    ///
    /// The signatures are checked from the anchor down. After the first invalid signature, no further one is verified,
    /// because each verification is expensive.
    func checkSignatures() throws(KeyAttestationError) {
        for (index, (certificate, issuer)) in zip(chain.certificates, chain.issuers).enumerated().reversed() {
            // Leaves are not cached.
            if index > 0, verified.contains(step(of: certificate, at: index)) { continue }
            guard let algorithm = SignatureAlgorithm(certificate.signatureAlgorithm) else {
                throw KeyAttestationError(
                    .signatureAlgorithmUnsupported, .signatures, "certificate \(index) is signed with another algorithm"
                )
            }
            guard let key = CertificateKey(subjectPublicKeyInfo: issuer.subjectPublicKeyNode) else {
                throw KeyAttestationError(
                    .signatureAlgorithmUnsupported, .signatures, "certificate \(index + 1) has a key that cannot sign")
            }
            guard certificate.isSigned(by: key, algorithm) else {
                throw KeyAttestationError(
                    .signatureInvalid, .signatures, "certificate \(index) is not signed by certificate \(index + 1)")
            }
        }
    }

    private func isSigned(_ last: AttestationCertificate, by anchor: KeyAttestationTrustAnchors.Anchor) -> Bool {
        verified.contains(SignatureStep(of: last, issuerKeyDigest: anchor.keyDigest)) || last.isSigned(by: anchor.key)
    }

    private func step(of certificate: AttestationCertificate, at index: Int) -> SignatureStep {
        SignatureStep(of: certificate, issuerKeyDigest: keyDigests[index + 1])
    }

    /// Caches the signatures of the authorities, and of the attestation certificate if a factory provisioned it. Call it only after
    /// the path has passed every path rule.
    func rememberSignatures(_ anchor: KeyAttestationTrustAnchors.Anchor, _ path: AttestationPath) {
        var authorities: [SignatureStep] = []
        for (index, certificate) in chain.certificates.enumerated().dropFirst(2).dropLast() {
            authorities.append(step(of: certificate, at: index))
        }
        if let last = chain.certificates.last {
            authorities.append(SignatureStep(of: last, issuerKeyDigest: anchor.keyDigest))
        }
        verified.insert(
            authorities: authorities,
            attestation: path.provisioning == .factory ? step(of: path.attestation, at: 1) : nil)
    }

    /// Requires that each certificate's issuer is the subject of the next one, byte for byte.
    func checkNames(_ anchor: KeyAttestationTrustAnchors.Anchor) throws(KeyAttestationError) {
        let subjects = chain.issuers.map(\.subject.encoded) + [anchor.subject[...]]
        for (index, (certificate, subject)) in zip(chain.certificates, subjects).enumerated()
        where !certificate.issuer.encoded.elementsEqual(subject) {
            throw KeyAttestationError(
                .issuerNameMismatch, .names, "certificate \(index) names \(certificate.issuer) as its issuer")
        }
    }

    /// Finds the only key description, which must be in the leaf. A second one, or one further up, means that an attested key
    /// issued certificates.
    func findAttestationExtension() throws(KeyAttestationError) -> ArraySlice<UInt8> {
        let found = chain.certificates.enumerated().flatMap { index, certificate in
            certificate.extensions.filter { $0.identifier == .keyDescription }.map { (index, $0.value) }
        }
        guard let (index, value) = found.first else {
            throw KeyAttestationError(
                .attestationExtensionMissing, .attestationExtension, "no certificate has a key description")
        }
        guard found.count == 1 else {
            throw KeyAttestationError(
                .attestationExtensionRepeated, .attestationExtension, "\(found.count) key descriptions")
        }
        guard index == 0 else {
            throw KeyAttestationError(
                .attestationExtensionNotInLeaf, .attestationExtension, "in certificate \(index)")
        }
        return value
    }

    /// Requires as many certificates as Google issues for a path of this kind, and no certificate of a virtual
    /// machine's key.
    ///
    /// The payload of a protected virtual machine has a key that is chained to Google's roots and can sign anything. Any
    /// other key that a device certifies could sign a leaf too. The chain of a leaf that such a key signed is longer than a
    /// genuine chain, or it names another organization in place of the TEE or StrongBox.
    func checkShape(rootIsIncluded: Bool) throws(KeyAttestationError) -> AttestationPath {
        for (index, certificate) in chain.certificates.enumerated()
        where certificate.firstExtension(.virtualMachine) != nil {
            throw KeyAttestationError(.chainShape, .pathShape, "certificate \(index) is of a virtual machine's key")
        }
        let belowRoot = chain.certificates.dropLast(rootIsIncluded ? 1 : 0)
        let provisioning = belowRoot.last.map { Provisioning(certificateBelowRoot: $0.subject) } ?? .unknown
        let count = provisioning == .remote ? 4 : 3
        guard belowRoot.count == count, let attestation = belowRoot.dropFirst().first else {
            throw KeyAttestationError(
                .chainShape, .pathShape,
                "\(belowRoot.count) certificates below the root, not \(count) as for \(provisioning.rawValue)")
        }
        let path = AttestationPath(provisioning: provisioning, attestation: attestation)
        guard provisioning != .remote || path.isOfSecureHardware else {
            throw KeyAttestationError(
                .chainShape, .pathShape, "the attestation key belongs to \(attestation.subject)")
        }
        return path
    }

    /// Checks the dates of the certificates above the leaf. The leaf's dates are ignored, because the app chose them.
    func checkDates(at time: Date, _ provisioning: Provisioning) throws(KeyAttestationError) {
        let now = time.timeIntervalSince1970
        for (offset, certificate) in chain.issuers.enumerated() {
            guard let notBefore = certificate.notBefore, let notAfter = certificate.notAfter else {
                throw KeyAttestationError(.certificateDatesUnreadable, .dates, "certificate \(offset + 1)")
            }
            guard now >= Double(notBefore) else {
                throw KeyAttestationError(.certificateNotYetValid, .dates, "certificate \(offset + 1)")
            }
            guard now <= Double(notAfter) || provisioning == .factory else {
                throw KeyAttestationError(.certificateExpired, .dates, "certificate \(offset + 1)")
            }
        }
    }

    func checkRevocation(
        _ list: RevocationStatusList, rootIsIncluded: Bool
    ) throws(KeyAttestationError) {
        for (index, certificate) in chain.certificates.dropLast(rootIsIncluded ? 1 : 0).enumerated() {
            guard let entry = list.entry(serialNumber: certificate.serialNumber) else { continue }
            throw KeyAttestationError(
                entry.isSuspension ? .certificateSuspended : .certificateRevoked, .revocation,
                "certificate \(index): \(entry.status) \(entry.reason ?? "")")
        }
    }

    func attestedKey() -> P256.Signing.PublicKey? {
        guard case .p256(let key) = CertificateKey(subjectPublicKeyInfo: chain.leaf.subjectPublicKeyNode) else {
            return nil
        }
        return key
    }
}

/// A path of the shape that Google issues. In such a path, only Google or a factory can have issued the certificate above the leaf, so the
/// content of that certificate can be trusted. In a path of another shape, an attested key could have signed the certificate.
struct AttestationPath {
    let provisioning: Provisioning
    /// The certificate of the key that signs attestations.
    let attestation: AttestationCertificate

    /// Whether remote provisioning certified a key of a TEE or a StrongBox.
    fileprivate var isOfSecureHardware: Bool {
        ["TEE", "StrongBox"].contains(attestation.subject.onlyValue(of: CertificateName.organization))
    }

    /// Whether the subject of the attestation certificate names StrongBox. The leaf's subject proves nothing, because the app
    /// chose it.
    var isStrongBoxCorroborated: Bool {
        attestation.subject.onlyValue(of: CertificateName.title) == "StrongBox"
            || attestation.subject.onlyValue(of: CertificateName.organization) == "StrongBox"
    }

    /// The information of Google's provisioning server.
    var provisioningInfo: ProvisioningInfo? {
        attestation.firstExtension(.provisioningInfo).flatMap { ProvisioningInfo($0.value) }
    }
}

extension AttestationCertificate {
    fileprivate func isSigned(by key: CertificateKey) -> Bool {
        SignatureAlgorithm(signatureAlgorithm).map { isSigned(by: key, $0) } ?? false
    }

    fileprivate func isSigned(by key: CertificateKey, _ algorithm: SignatureAlgorithm) -> Bool {
        algorithm.isMadeBy(key) && key.isValidSignature(signature, over: signedBytes, hash: algorithm.hash)
    }
}

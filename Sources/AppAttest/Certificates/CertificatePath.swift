internal import Foundation
internal import SwiftASN1
internal import X509

/// Verifies the only form of chain that Apple issues: a leaf, the intermediate that signed it, and a pinned root.
///
/// swift-certificates parses and checks signatures. Its own path validation is not used, because it does not enforce key usage,
/// accepts an authority as a leaf, and does not report which rule failed. For exactly three certificates, the rules of RFC 5280
/// section 6.1 are few.
struct CertificatePath: Sendable {
    let anchors: [AppleCertificate]
    private let known = KnownIssuers()

    init(anchors: [AppleCertificate]) {
        self.anchors = anchors
    }

    /// Verifies that an anchor signed `intermediate`, that `intermediate` signed `leaf`, and that all are valid at `date`. If `date` is
    /// nil, their dates are not checked.
    func verify(
        leaf: AppleCertificate, intermediate: [UInt8], at date: Date?, leeway: TimeInterval
    ) throws(AppAttestError) {
        let issuer = try verifiedIssuer(intermediate)
        if let date {
            try requireDates(of: issuer.anchor, at: date, leeway: leeway, "the root")
            try requireDates(of: issuer.certificate, at: date, leeway: leeway, "the intermediate")
            try requireDates(of: leaf, at: date, leeway: leeway, "the leaf")
        }
        try requireLeaf(leaf)
        try requireSignature(of: leaf, by: issuer.certificate)
    }

    /// The intermediate and its anchor, verified except for their dates. `verify` checks the dates for every leaf.
    ///
    /// Apple's intermediate has been the same bytes since 2020. Only intermediates that an anchor has signed are cached.
    private func verifiedIssuer(_ bytes: [UInt8]) throws(AppAttestError) -> KnownIssuers.Issuer {
        if let issuer = known[bytes] { return issuer }
        guard let certificate = AppleCertificate(bytes) else {
            throw AppAttestError(.malformedCertificate, .certificateChain, "the intermediate is not a DER certificate")
        }
        // A root is its own issuer. In place of the intermediate, it would directly certify a leaf.
        guard certificate.certificate.issuer != certificate.certificate.subject else {
            throw AppAttestError(
                .untrustedChain, .certificateChain, "a root stands where the intermediate belongs")
        }
        let namesakes = anchors.filter { $0.certificate.subject == certificate.certificate.issuer }
        guard !namesakes.isEmpty else {
            throw AppAttestError(
                .untrustedChain, .certificateChain, "no anchor is called \(certificate.certificate.issuer)")
        }
        try requireAlgorithm(of: certificate)
        guard let anchor = namesakes.first(where: { isSigned(certificate, by: $0) }) else {
            throw AppAttestError(.untrustedChain, .certificateChain, "no anchor has signed the intermediate")
        }
        try requireAuthority(anchor, intermediatesBelow: 1)
        try requireAuthority(certificate, intermediatesBelow: 0)
        try requireKnownCriticalExtensions(of: certificate)
        let issuer = KnownIssuers.Issuer(certificate: certificate, anchor: anchor)
        known.remember(issuer)
        return issuer
    }

    private func requireLeaf(_ leaf: AppleCertificate) throws(AppAttestError) {
        try requireAlgorithm(of: leaf)
        try requireKnownCriticalExtensions(of: leaf)
        if case .isCertificateAuthority? = try basicConstraints(of: leaf) {
            throw AppAttestError(.leafIsAuthority, .certificateChain, "the leaf is a certificate authority")
        }
        guard let usage = try keyUsage(of: leaf), usage.digitalSignature, !usage.keyCertSign else {
            throw AppAttestError(
                .wrongKeyUsage, .certificateChain, "the leaf's key may not sign, or it may sign certificates")
        }
    }

    private func requireSignature(
        of leaf: AppleCertificate, by issuer: AppleCertificate
    ) throws(AppAttestError) {
        guard leaf.certificate.issuer == issuer.certificate.subject else {
            throw AppAttestError(.issuerMismatch, .certificateChain, "the leaf names another issuer")
        }
        guard isSigned(leaf, by: issuer) else {
            throw AppAttestError(
                .certificateSignatureInvalid, .certificateChain, "the intermediate has not signed the leaf")
        }
    }

    private func isSigned(_ certificate: AppleCertificate, by issuer: AppleCertificate) -> Bool {
        issuer.certificate.publicKey.isValidSignature(
            certificate.certificate.signature, for: certificate.certificate)
    }

    private func requireDates(
        of certificate: AppleCertificate, at date: Date, leeway: TimeInterval, _ name: String
    ) throws(AppAttestError) {
        guard date.addingTimeInterval(leeway) >= certificate.notBefore else {
            throw AppAttestError(.certificateNotYetValid, .certificateChain, "\(name) is valid from a later time on")
        }
        guard date.addingTimeInterval(-leeway) <= certificate.notAfter else {
            throw AppAttestError(.certificateExpired, .certificateChain, "\(name) has expired")
        }
    }

    private func requireAlgorithm(of certificate: AppleCertificate) throws(AppAttestError) {
        switch certificate.certificate.signatureAlgorithm {
        case .ecdsaWithSHA256, .ecdsaWithSHA384: return
        case let other:
            throw AppAttestError(.algorithmNotAllowed, .certificateChain, "signed with \(other)")
        }
    }

    private func requireAuthority(
        _ certificate: AppleCertificate, intermediatesBelow count: Int
    ) throws(AppAttestError) {
        guard case .isCertificateAuthority(let maximum)? = try basicConstraints(of: certificate),
            maximum.map({ $0 >= count }) ?? true
        else { throw AppAttestError(.issuerNotAuthority, .certificateChain, "an issuer is not an authority") }
        guard try keyUsage(of: certificate)?.keyCertSign == true else {
            throw AppAttestError(.wrongKeyUsage, .certificateChain, "an issuer may not sign certificates")
        }
    }

    private func requireKnownCriticalExtensions(of certificate: AppleCertificate) throws(AppAttestError) {
        let understood: [ASN1ObjectIdentifier] = [
            .X509ExtensionID.basicConstraints, .X509ExtensionID.keyUsage, .X509ExtensionID.extendedKeyUsage,
        ]
        for found in certificate.certificate.extensions where found.critical && !understood.contains(found.oid) {
            throw AppAttestError(
                .unknownCriticalExtension, .certificateChain, "critical extension \(found.oid) is not known")
        }
    }

    private func basicConstraints(of certificate: AppleCertificate) throws(AppAttestError) -> BasicConstraints? {
        do {
            return try certificate.certificate.extensions.basicConstraints
        } catch {
            throw AppAttestError(.malformedCertificate, .certificateChain, "basic constraints cannot be read")
        }
    }

    private func keyUsage(of certificate: AppleCertificate) throws(AppAttestError) -> KeyUsage? {
        do {
            return try certificate.certificate.extensions.keyUsage
        } catch {
            throw AppAttestError(.malformedCertificate, .certificateChain, "the key usage cannot be read")
        }
    }
}

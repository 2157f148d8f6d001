internal import Bytes
internal import CBOR
package import Crypto
package import Foundation
internal import SwiftASN1
internal import X509

/// The checks of an attestation as separate functions. ``AttestationVerifier`` runs all of them, in this order.
///
/// They follow Apple, *Validating apps that connect to your server* (2026), and add checks that its text leaves out.
package struct AttestationSteps: Sendable {
    private let path: CertificatePath

    package init(trustAnchors: TrustAnchors) {
        path = CertificatePath(anchors: trustAnchors.attestation)
    }

    /// Step 1: the chain is a leaf, an intermediate and a pinned root, signed only with ECDSA. The leaf is not an authority, has
    /// Apple's own extended key usage or none (iOS 26.2 and earlier), and has a P-256 key.
    ///
    /// - Parameter date: the time at which the certificates must be valid; nil: their dates are not checked.
    package func verifyCertificateChain(
        _ object: AttestationObject, at date: Date?, leeway: TimeInterval
    ) throws(AppAttestError) -> AttestedLeaf {
        let leaf = try Self.leaf(of: object)
        guard let intermediate = object.certificates.last else {
            throw Self.wrongCount(object)
        }
        try path.verify(leaf: leaf, intermediate: intermediate, at: date, leeway: leeway)
        try requireAttestedKeyUsage(leaf)
        return try AttestedLeaf(leaf)
    }

    /// Step 2: the leaf certifies SHA-256 of the authenticator data and the client data hash. This proves that the attestation is
    /// fresh.
    package func verifyNonce(
        _ object: AttestationObject, _ leaf: AttestedLeaf, _ clientDataHash: ClientDataHash
    ) throws(AppAttestError) {
        guard let value = leaf.certificate.extensionValue(AppleIdentifier.nonce) else {
            throw AppAttestError(.nonceMissing, .nonce, "the leaf has no nonce extension")
        }
        guard value.count == Self.nonceHead.count + 32, value.starts(with: Self.nonceHead) else {
            throw AppAttestError(.nonceMalformed, .nonce, "the nonce extension has another form")
        }
        let nonce = clientDataHash.nonce(with: object.authenticatorData.bytes)
        guard constantTimeEquals(value.dropFirst(Self.nonceHead.count), nonce) else {
            throw AppAttestError(.nonceMismatch, .nonce, "the leaf certifies another nonce")
        }
    }

    /// Step 3: the leaf's key is the one that the device named, and the one in the authenticator data. Without an expectation,
    /// only the leaf and the authenticator data are compared with each other.
    package func verifyKey(
        _ object: AttestationObject, _ leaf: AttestedLeaf, _ expected: KeyID?
    ) throws(AppAttestError) -> KeyID {
        let keyID = KeyID(x963: leaf.x963)
        guard expected.map({ $0 == keyID }) ?? true else {
            throw AppAttestError(.keyIDMismatch, .keyID, "the leaf's key has another id than the one given")
        }
        let credential = try Self.credential(of: object)
        guard credential.identifier == keyID.bytes else {
            throw AppAttestError(.credentialIDMismatch, .keyID, "the credential id is not the id of the leaf's key")
        }
        guard credential.key.sorted == leaf.coseKey.sorted else {
            throw AppAttestError(.credentialKeyMismatch, .keyID, "the credential's key is not the leaf's key")
        }
        return keyID
    }

    /// Step 4: the app is an allowed one, and the leaf names the same app as text (authenticator data has only the hash
    /// of the App ID). If `allowed` is nil, any app that the leaf names is allowed.
    package func verifyAppID(
        _ object: AttestationObject, _ leaf: AttestedLeaf, _ allowed: Set<AppleAppID>?
    ) throws(AppAttestError) -> AppleAppID {
        guard let text = leaf.properties.appID else {
            throw AppAttestError(.appIDMissing, .appID, "the leaf names no app")
        }
        let hash = object.authenticatorData.relyingPartyIDHash
        if let allowed, !allowed.contains(where: { $0.hash == hash }) {
            throw AppAttestError(.appIDNotAllowed, .appID, "the app is not one of those allowed")
        }
        guard let appID = AppleAppID(text), appID.hash == hash else {
            throw AppAttestError(.appIDMismatch, .appID, "the leaf names another app than the authenticator data")
        }
        return appID
    }

    /// Step 5, first half: the key has not signed yet.
    package func verifyCounter(_ object: AttestationObject) throws(AppAttestError) {
        guard object.authenticatorData.counter == 0 else {
            throw AppAttestError(.counterNotZero, .counter, "the counter is \(object.authenticatorData.counter)")
        }
    }

    /// Step 5, second half: the AAGUID names an environment that is allowed.
    package func verifyEnvironment(
        _ object: AttestationObject, _ allowed: Set<AttestEnvironment>
    ) throws(AppAttestError) -> AttestEnvironment {
        guard let environment = AttestEnvironment(aaguid: try Self.credential(of: object).aaguid) else {
            throw AppAttestError(.unknownEnvironment, .environment, "the AAGUID is not one of App Attest's two")
        }
        guard allowed.contains(environment) else {
            throw AppAttestError(.environmentNotAllowed, .environment, "the key is of \(environment.rawValue)")
        }
        return environment
    }

    /// Step 6: the category of signing and the bundle version, if the device proves them or the policy requires them.
    ///
    /// Apple certifies SHA-256 of authenticator data *followed by* the client data hash, and that hash may have any
    /// length. On a system that appends no extension map, an attacker who controls the app can pass a map before the
    /// hash, and move it into the authenticator data afterwards. So a map is accepted only if the leaf names a system
    /// that appends one. Otherwise the attestation is refused.
    package func verifyExtensions(
        _ object: AttestationObject, _ leaf: AttestedLeaf, _ policy: AppAttestPolicy
    ) throws(AppAttestError) -> AuthenticatorExtensions? {
        if object.authenticatorData.extensions != nil, !leaf.properties.appendsExtensions {
            throw AppAttestError(
                .unexpectedExtensions, .extensions,
                "system version \(leaf.properties.systemVersion ?? "unknown") appends no map: it was moved there")
        }
        var extensions: AuthenticatorExtensions?
        if let map = object.authenticatorData.extensions { extensions = try AuthenticatorExtensions(map) }
        try policy.requireExtensions(extensions)
        return extensions
    }

    /// Step 7: on a Mac, if the policy requires it, the key's access control is the one that Apple publishes. iPhones have another
    /// value.
    package func verifyPlatform(_ leaf: AttestedLeaf, _ policy: AppAttestPolicy) throws(AppAttestError) {
        guard leaf.properties.isMac, policy.requiresMacAccessControl else { return }
        guard let accessControl = leaf.properties.accessControl else {
            throw AppAttestError(.accessControlMissing, .platform, "a Mac's leaf without access control")
        }
        guard accessControl == Self.macAccessControlExtension else {
            throw AppAttestError(.accessControlMismatch, .platform, "a Mac's leaf with another access control")
        }
    }

    /// The leaf, not verified.
    package static func leaf(of object: AttestationObject) throws(AppAttestError) -> AppleCertificate {
        guard object.certificates.count == 2, let bytes = object.certificates.first else {
            throw wrongCount(object)
        }
        guard let leaf = AppleCertificate(bytes) else {
            throw AppAttestError(.malformedCertificate, .certificateChain, "the leaf is not a DER certificate")
        }
        return leaf
    }

    private static func wrongCount(_ object: AttestationObject) -> AppAttestError {
        AppAttestError(
            .wrongCertificateCount, .certificateChain, "\(object.certificates.count) certificates instead of 2")
    }

    // An absent extension is accepted, because leaves before iOS 26.3 have none. Do not require a TLS usage (`serverAuth`
    // or `clientAuth`), as generic X.509 verifiers do: leaves since iOS 26.3 have only Apple's own usage.
    private func requireAttestedKeyUsage(_ leaf: AppleCertificate) throws(AppAttestError) {
        guard let found = leaf.certificate.extensions[oid: .X509ExtensionID.extendedKeyUsage] else { return }
        guard let usages = try? ExtendedKeyUsage(found), usages.count == 1,
            usages.first == ExtendedKeyUsage.Usage(oid: AppleIdentifier.attestedKeyUsage)
        else {
            throw AppAttestError(
                .wrongExtendedKeyUsage, .certificateChain, "an extended key usage that is not Apple's for attested keys"
            )
        }
    }

    private static func credential(
        of object: AttestationObject
    ) throws(AppAttestError) -> AuthenticatorData.Credential {
        guard let credential = object.authenticatorData.credential else {
            throw AppAttestError(.malformedAuthenticatorData, .format, "no credential data")
        }
        return credential
    }

    /// The bytes of the nonce extension before the 32 octets of the nonce: `SEQUENCE { [1] { OCTET STRING (32) } }`.
    private static let nonceHead: [UInt8] = [0x30, 0x24, 0xA1, 0x22, 0x04, 0x20]

    /// `SEQUENCE { [3] { OCTET STRING } }` around ``macAccessControl``: the whole extension.
    private static let macAccessControlExtension: [UInt8] = [0x30, 0x46, 0xA3, 0x44, 0x04, 0x42] + macAccessControl

    /// The value that Apple publishes for Macs: System Integrity Protection and Full Security.
    ///
    /// Base64 `MEAMAjExMDowCQwCb2uhAwEB/zAJDAJvYaEDAQH/MAsMBG9kZWyhAwEB/zAVDARvc2duoAYMBHJzZWMwBaYDAgEB`.
    package static let macAccessControl: [UInt8] = [
        0x30, 0x40, 0x0C, 0x02, 0x31, 0x31, 0x30, 0x3A, 0x30, 0x09, 0x0C, 0x02, 0x6F, 0x6B, 0xA1, 0x03, 0x01, 0x01,
        0xFF, 0x30, 0x09, 0x0C, 0x02, 0x6F, 0x61, 0xA1, 0x03, 0x01, 0x01, 0xFF, 0x30, 0x0B, 0x0C, 0x04, 0x6F, 0x64,
        0x65, 0x6C, 0xA1, 0x03, 0x01, 0x01, 0xFF, 0x30, 0x15, 0x0C, 0x04, 0x6F, 0x73, 0x67, 0x6E, 0xA0, 0x06, 0x0C,
        0x04, 0x72, 0x73, 0x65, 0x63, 0x30, 0x05, 0xA6, 0x03, 0x02, 0x01, 0x01,
    ]
}

/// The certificate of an attested key, verified up to a pinned root. Only
/// ``AttestationSteps/verifyCertificateChain(_:at:leeway:)`` creates one.
package struct AttestedLeaf: Sendable {
    let certificate: AppleCertificate
    /// The attested key.
    package let publicKey: P256.Signing.PublicKey
    /// The key in X9.63 form, 65 bytes.
    package let x963: [UInt8]
    /// The properties of key and device that Apple certifies.
    package let properties: LeafProperties

    fileprivate init(_ certificate: AppleCertificate) throws(AppAttestError) {
        guard let publicKey = certificate.publicKey else {
            throw AppAttestError(.wrongLeafKey, .certificateChain, "the leaf's key is not on P-256")
        }
        self.certificate = certificate
        self.publicKey = publicKey
        self.x963 = Array(publicKey.x963Representation)
        self.properties = try LeafProperties(certificate)
    }

    /// The key in COSE form, as authenticator data must hold it: these five entries and no other (RFC 9053, section 7.1.1).
    fileprivate var coseKey: CBORMap {
        CBORMap([
            .init(1, 2), .init(3, -7), .init(-1, 1), .init(-2, .bytes(Array(x963[1..<33]))),
            .init(-3, .bytes(Array(x963[33..<65]))),
        ])
    }
}

public import Foundation
public import StrictJSON

/// The content of an attestation or an assertion, unverified: for logs and inspection, never for decisions.
public struct UnverifiedClaims: Sendable {
    /// SHA-256 of the App ID, 32 bytes.
    public let relyingPartyIDHash: [UInt8]
    /// The flags byte, which has no meaning in App Attest.
    public let flags: UInt8
    /// The number of signatures that the key has made.
    public let counter: UInt32
    /// The extension map that iOS 27 and macOS 27 append to the authenticator data, with bytes as hexadecimal; nil if there is none.
    public let extensions: JSONObject?
    /// The way in which the app was signed; nil if the extension map is absent, does not name it or cannot be parsed.
    public let category: ValidationCategory?
    /// The app's `CFBundleVersion`; nil if the extension map is absent, does not name it or cannot be parsed.
    public let bundleVersion: String?
    /// The credential data; nil in an assertion.
    public let credential: Credential?
    /// The leaf; nil in an assertion, or if the leaf cannot be read.
    public let leaf: Leaf?

    /// The credential data of an attestation.
    public struct Credential: Sendable {
        /// 16 bytes.
        public let aaguid: [UInt8]
        /// The environment that the AAGUID names; nil for another AAGUID than App Attest's two.
        public let environment: AttestEnvironment?
        /// The key id.
        public let identifier: [UInt8]
    }

    /// The certificate of an attested key. Values of Apple's extensions are nil if they are absent or cannot be read.
    public struct Leaf: Sendable {
        /// The key in X9.63 form, 65 bytes; nil for a key that is not on P-256.
        public let publicKeyX963: [UInt8]?
        /// The start of the certificate's validity.
        public let notBefore: Date
        /// The end of the certificate's validity.
        public let notAfter: Date
        /// The App ID as text, not hashed.
        public let appID: String?
        /// The platform.
        public let platform: ApplePlatform?
        /// The version of the operating system, such as `27.0.1`.
        public let systemVersion: String?
        /// The build of the operating system, such as `24A446`.
        public let systemBuild: String?
    }
}

extension AttestationObject {
    /// The object's claims, unverified.
    public var unverifiedClaims: UnverifiedClaims {
        UnverifiedClaims(
            authenticatorData, leaf: certificates.first.flatMap(AppleCertificate.init).map { UnverifiedClaims.Leaf($0) }
        )
    }
}

extension AssertionObject {
    /// The object's claims, unverified.
    public var unverifiedClaims: UnverifiedClaims { UnverifiedClaims(authenticatorData, leaf: nil) }
}

extension Receipt {
    /// The id of the key in field 3, unverified; nil if the field holds no certificate of a P-256 key.
    public var unverifiedKeyID: KeyID? {
        AppleCertificate(fields.attestedCertificate)?.publicKey.map { KeyID(of: $0) }
    }
}

extension UnverifiedClaims {
    fileprivate init(_ data: AuthenticatorData, leaf: Leaf?) {
        relyingPartyIDHash = data.relyingPartyIDHash
        flags = data.flags
        counter = data.counter
        extensions = data.extensions.map { JSONObject($0) }
        let read = data.extensions.flatMap { try? AuthenticatorExtensions($0) }
        category = read?.category
        bundleVersion = read?.bundleVersion
        credential = data.credential.map { credential in
            Credential(
                aaguid: credential.aaguid, environment: AttestEnvironment(aaguid: credential.aaguid),
                identifier: credential.identifier)
        }
        self.leaf = leaf
    }
}

extension UnverifiedClaims.Leaf {
    fileprivate init(_ certificate: AppleCertificate) {
        let properties = try? LeafProperties(certificate)
        publicKeyX963 = certificate.x963
        notBefore = certificate.notBefore
        notAfter = certificate.notAfter
        appID = properties?.appID
        platform = properties?.platform
        systemVersion = properties?.systemVersion
        systemBuild = properties?.systemBuild
    }
}

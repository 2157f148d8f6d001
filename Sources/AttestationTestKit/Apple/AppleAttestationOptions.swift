public import CBOR
public import Foundation

/// What is to be unlike a real attestation. The defaults are valid; change one thing to get one that must be refused for it.
///
/// Where authenticator data is changed, the nonce is made of the changed data, so that nothing but the change is wrong.
public struct AppleAttestationOptions: Sendable {
    /// The nonce extension of the leaf.
    public enum Nonce: Sendable {
        /// As it must be.
        case correct
        /// No such extension.
        case missing
        /// Two such extensions.
        case doubled
        /// Two octet strings in the one.
        case twoOctetStrings
        /// A byte after the sequence.
        case trailingByte
        /// This value.
        case other([UInt8])
    }

    /// The curve of the leaf's key. The attested key stays on P-256.
    public enum Curve: Sendable {
        /// P-256, as Apple's leaves have.
        case p256
        /// P-384, which no verifier should accept in a leaf.
        case p384
    }

    // The leaf.

    /// Its first moment; by default 24 hours before the attestation, as Apple has it.
    public var notBefore: Date?
    /// Its last moment; by default 48 hours after the attestation.
    public var notAfter: Date?
    /// An authority whose intermediate signs the leaf, while this one's is sent along.
    public var signedBy: AppleAuthority?
    /// Whether the issuer's name is that of the intermediate that is sent along, even if another signed.
    public var namesSentIssuer = true
    /// Whether the leaf says that it is an authority.
    public var leafIsAuthority = false
    /// Key usage bits, the first in the highest bit.
    public var keyUsage: UInt8 = 0xF0
    /// Object identifiers of the extended key usage; by default what the system's version has.
    public var extendedKeyUsage: [[UInt64]]?
    /// The nonce extension.
    public var nonce = Nonce.correct
    /// The curve of the key that is certified.
    public var leafCurve = Curve.p256
    /// The key that is certified, if it is not the attested one.
    public var leafKey: AppleAttestKey?
    /// The digest under the leaf's signature.
    public var leafAlgorithm = AppleSignatureAlgorithm.sha256
    /// The App ID in the leaf; empty for none.
    public var leafAppID: String?
    /// The key's access control in the leaf; by default what platform and version have, and empty for none.
    public var accessControl: [UInt8]?
    /// What is done to the elements of the leaf's extension 1.2.840.113635.100.8.5, each in DER.
    public var keyProperties: @Sendable ([[UInt8]]) -> [[UInt8]] = { $0 }
    /// What is done to the elements of the leaf's extension 1.2.840.113635.100.8.7, each in DER; nil for no extension.
    public var systemProperties: @Sendable ([[UInt8]]) -> [[UInt8]]? = { $0 }
    /// What is done to the value of the leaf's access control extension 1.2.840.113635.100.8.6, in DER.
    public var accessControlExtension: @Sendable ([UInt8]) -> [UInt8] = { $0 }
    /// More extensions of the leaf.
    public var leafExtensions: [AppleCertificateExtension] = []
    /// What is done to the list of leaf and intermediate before it is sent.
    public var certificates: @Sendable ([[UInt8]]) -> [[UInt8]] = { $0 }

    // The authenticator data.

    /// The App ID whose hash is the relying party's.
    public var relyingParty: String?
    /// The flags; nil for what the system's version sends.
    public var flags: UInt8?
    /// The counter.
    public var counter: UInt32 = 0
    /// The AAGUID; nil for the environment's.
    public var aaguid: [UInt8]?
    /// The credential id; nil for the key id.
    public var credentialID: [UInt8]?
    /// The length that is written before the credential id; nil for its length.
    public var credentialIDLength: UInt16?
    /// What is done to the COSE key.
    public var coseKey: @Sendable (CBORMap) -> CBORMap = { $0 }
    /// What is done to the map that newer systems append.
    public var extensions: @Sendable (CBORMap) -> CBORMap = { $0 }
    /// What follows it.
    public var afterExtensions: [UInt8] = []
    /// What is done to the finished authenticator data, before the nonce is made.
    public var authenticatorData: @Sendable ([UInt8]) -> [UInt8] = { $0 }

    // The object.

    /// `fmt`.
    public var format = "apple-appattest"
    /// How the object is encoded.
    public var encode: @Sendable (CBORMap) -> [UInt8] = { CBORValue.map($0).encoded }
    /// What is to be unlike a real receipt.
    public var receipt = AppleReceiptOptions()
    /// The receipt, made before; nil for a new one, as `receipt` says.
    public var madeReceipt: [UInt8]?

    /// Everything as it must be.
    public init() {}
}

/// What is to be unlike a real assertion. The defaults are valid.
public struct AppleAssertionOptions: Sendable {
    /// How the signature is written.
    public enum Signature: Sendable {
        /// DER, as it must be.
        case der
        /// `r` and `s`, 32 octets each.
        case raw
        /// DER with `r` zero.
        case zeroR
        /// DER with a byte after it.
        case trailingByte
        /// Of the nonce as the digest, instead of SHA-256 of the nonce.
        case ofNonceAsDigest
    }

    /// The App ID whose hash is the relying party's.
    public var relyingParty: String?
    /// The flags; nil for what the system's version sends.
    public var flags: UInt8?
    /// The counter; nil for the key's next one.
    public var counter: UInt32?
    /// What is done to the map that newer systems append.
    public var extensions: @Sendable (CBORMap) -> CBORMap = { $0 }
    /// What is done to the finished authenticator data, before it is signed.
    public var authenticatorData: @Sendable ([UInt8]) -> [UInt8] = { $0 }
    /// What the app passes as the beginning of the client data hash and moves behind the authenticator data afterwards. The
    /// signature covers it, and no system wrote it.
    public var movedFromHash: [UInt8] = []
    /// How the signature is written.
    public var signature = Signature.der
    /// How the object is encoded.
    public var encode: @Sendable (CBORMap) -> [UInt8] = { CBORValue.map($0).encoded }

    /// Everything as it must be.
    public init() {}
}

/// What is to be unlike a real receipt. The defaults are valid.
public struct AppleReceiptOptions: Sendable {
    /// One of the receipt's fields.
    public struct Field: Sendable {
        /// Its number.
        public var type: Int
        /// Its value.
        public var value: [UInt8]

        /// A field.
        public init(_ type: Int, _ value: [UInt8]) {
            self.type = type
            self.value = value
        }

        /// A field of text.
        public init(_ type: Int, _ text: String) {
            self.init(type, Array(text.utf8))
        }
    }

    /// Signed attributes in SignerInfo.
    public enum SignedAttributes: Sendable, Equatable {
        /// None, as since October 2020.
        case none
        /// There, and not signed: the form of Apple's receipts until then.
        case unsigned
        /// There, with the digest of other content, and not signed.
        case unsignedOfOtherContent
        /// There, and signed instead of the content, by RFC 5652.
        case signed
        /// Present but not signed: exactly the bytes that Apple wrote until September 2020, with a signing time this many
        /// seconds after the second of creation.
        case appleUntil2020(delay: TimeInterval = 0)
    }

    /// The risk metric, for a receipt as Apple's server gives it; nil for one out of an attestation.
    public var riskMetric: Int?
    /// When it was made, in seconds after the attestation.
    public var age: TimeInterval = 0
    /// What is done to the fields.
    public var fields: @Sendable ([Field]) -> [Field] = { $0 }
    /// Bytes of each chunk of the content.
    public var chunkSize = 1000
    /// Whether lengths are indefinite and the content is in chunks, as Apple writes it; otherwise everything is DER.
    public var isIndefinite = true
    /// How often the signer's information is there.
    public var signerInfos = 1
    /// The issuer that the signer's information names, a distinguished name in DER; nil for the signer's.
    public var namedIssuer: [UInt8]?
    /// The serial number that the signer's information names; nil for the signer's.
    public var namedSerialNumber: [UInt8]?
    /// Signed attributes.
    public var signedAttributes = SignedAttributes.none
    /// What follows it.
    public var appended: [UInt8] = []
    /// The digest.
    public var algorithm = AppleSignatureAlgorithm.sha256
    /// The authority whose signer signs; its own chain is sent along.
    public var signedBy: AppleAuthority?
    /// What is done to the list of signer, intermediate and root before it is sent.
    public var certificates: @Sendable ([[UInt8]]) -> [[UInt8]] = { $0 }

    /// Everything as it must be.
    public init() {}
}

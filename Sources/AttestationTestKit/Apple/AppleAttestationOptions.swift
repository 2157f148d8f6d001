public import CBOR
public import Foundation

/// The deviations from a real attestation. The defaults are valid. Change one option to get an attestation that must be refused
/// for that reason.
///
/// If authenticator data is changed, the nonce is computed from the changed data, so that only the change is invalid.
public struct AppleAttestationOptions: Sendable {
    /// The nonce extension of the leaf.
    public enum Nonce: Sendable {
        /// The correct nonce.
        case correct
        /// No such extension.
        case missing
        /// Two such extensions.
        case doubled
        /// Two octet strings in the sequence.
        case twoOctetStrings
        /// A byte after the sequence.
        case trailingByte
        /// This content of the extension.
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

    /// The start of the leaf's validity; by default 24 hours before the attestation, as in real leaves.
    public var notBefore: Date?
    /// The end of the leaf's validity; by default 48 hours after the attestation.
    public var notAfter: Date?
    /// The authority that signs the leaf; nil: the device's. In both cases, the object has the intermediate of the device's authority.
    public var signedBy: AppleAuthority?
    /// Whether the leaf names the intermediate in the object as its issuer, even if the intermediate of `signedBy` signed it.
    public var namesSentIssuer = true
    /// Whether the leaf is marked as an authority.
    public var leafIsAuthority = false
    /// Key usage bits, the first in the highest bit.
    public var keyUsage: UInt8 = 0xF0
    /// Object identifiers of the extended key usage; nil: those that this version of the system has.
    public var extendedKeyUsage: [[UInt64]]?
    /// The nonce extension.
    public var nonce = Nonce.correct
    /// The curve of the key that is certified.
    public var leafCurve = Curve.p256
    /// The key that the leaf certifies; nil: the attested key.
    public var leafKey: AppleAttestKey?
    /// The hash algorithm of the signature on the leaf.
    public var leafAlgorithm = AppleSignatureAlgorithm.sha256
    /// The App ID in the leaf; nil: the app's own App ID; empty: none.
    public var leafAppID: String?
    /// The key's access control in the leaf; nil: the usual one of the platform and version; empty: none.
    public var accessControl: [UInt8]?
    /// Changes the elements of the leaf's extension 1.2.840.113635.100.8.5, each in DER.
    public var keyProperties: @Sendable ([[UInt8]]) -> [[UInt8]] = { $0 }
    /// Changes the elements of the leaf's extension 1.2.840.113635.100.8.7, each in DER; nil for no extension.
    public var systemProperties: @Sendable ([[UInt8]]) -> [[UInt8]]? = { $0 }
    /// Changes the value of the leaf's access control extension 1.2.840.113635.100.8.6, in DER.
    public var accessControlExtension: @Sendable ([UInt8]) -> [UInt8] = { $0 }
    /// More extensions of the leaf.
    public var leafExtensions: [AppleCertificateExtension] = []
    /// Changes the list of leaf and intermediate before it is sent.
    public var certificates: @Sendable ([[UInt8]]) -> [[UInt8]] = { $0 }

    // The authenticator data.

    /// The App ID whose hash is the relying party id hash; nil: the app's own App ID.
    public var relyingParty: String?
    /// The flags; nil: those that this version of the system sends.
    public var flags: UInt8?
    /// The counter.
    public var counter: UInt32 = 0
    /// The AAGUID; nil: the AAGUID of the app's environment.
    public var aaguid: [UInt8]?
    /// The credential id; nil for the key id.
    public var credentialID: [UInt8]?
    /// The length that is written before the credential id; nil: the correct one.
    public var credentialIDLength: UInt16?
    /// Changes the COSE key.
    public var coseKey: @Sendable (CBORMap) -> CBORMap = { $0 }
    /// Changes the extension map that iOS 27 and macOS 27 append to the authenticator data.
    public var extensions: @Sendable (CBORMap) -> CBORMap = { $0 }
    /// Bytes after the extension map.
    public var afterExtensions: [UInt8] = []
    /// Changes the finished authenticator data, before the nonce is made.
    public var authenticatorData: @Sendable ([UInt8]) -> [UInt8] = { $0 }

    // The object.

    /// `fmt`.
    public var format = "apple-appattest"
    /// Encodes the object.
    public var encode: @Sendable (CBORMap) -> [UInt8] = { CBORValue.map($0).encoded }
    /// The deviations from a real receipt.
    public var receipt = AppleReceiptOptions()
    /// A receipt made earlier; nil for a new one, as `receipt` describes.
    public var madeReceipt: [UInt8]?

    /// The defaults, which are valid.
    public init() {}
}

/// The deviations from a real assertion. The defaults are valid.
public struct AppleAssertionOptions: Sendable {
    /// The form of the signature.
    public enum Signature: Sendable {
        /// DER, as required.
        case der
        /// `r` and `s`, 32 octets each.
        case raw
        /// DER with `r` zero.
        case zeroR
        /// DER with a trailing byte.
        case trailingByte
        /// A signature over the nonce as the digest, instead of SHA-256 of the nonce.
        case ofNonceAsDigest
    }

    /// The App ID whose hash is the relying party id hash; nil: the app's own App ID.
    public var relyingParty: String?
    /// The flags; nil: those that this version of the system sends.
    public var flags: UInt8?
    /// The counter; nil: the key's next counter.
    public var counter: UInt32?
    /// Changes the extension map that iOS 27 and macOS 27 append to the authenticator data.
    public var extensions: @Sendable (CBORMap) -> CBORMap = { $0 }
    /// Changes the finished authenticator data, before it is signed.
    public var authenticatorData: @Sendable ([UInt8]) -> [UInt8] = { $0 }
    /// Bytes that the app passes at the start of the client data hash, and moves to the end of the authenticator data
    /// afterwards. The signature covers them, but the system did not write them.
    public var movedFromHash: [UInt8] = []
    /// The form of the signature.
    public var signature = Signature.der
    /// Encodes the object.
    public var encode: @Sendable (CBORMap) -> [UInt8] = { CBORValue.map($0).encoded }

    /// The defaults, which are valid.
    public init() {}
}

/// The deviations from a real receipt. The defaults are valid.
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
        /// No signed attributes, as in Apple's receipts since October 2020.
        case none
        /// The content type and the digest are present but not signed. Apple's receipts until September 2020 had two more attributes.
        case unsigned
        /// The content type and the digest of other content are present but not signed.
        case unsignedOfOtherContent
        /// The content type and the digest are present. The signature covers them instead of the content, as in RFC 5652.
        case signed
        /// The four attributes that Apple wrote until September 2020, byte for byte, and not signed. The signing time is `delay`
        /// seconds after the receipt's creation time, which is rounded down to the second.
        case appleUntil2020(delay: TimeInterval = 0)
    }

    /// The risk metric, for a receipt of Apple's server; nil for a receipt of an attestation.
    public var riskMetric: Int?
    /// The receipt's creation time, in seconds after the attestation, or after the exchange for an exchanged receipt.
    public var age: TimeInterval = 0
    /// Changes the fields.
    public var fields: @Sendable ([Field]) -> [Field] = { $0 }
    /// The number of bytes in each chunk of the content.
    public var chunkSize = 1000
    /// Whether lengths are indefinite and the content is in chunks, as Apple writes it; otherwise everything is DER.
    public var isIndefinite = true
    /// The number of SignerInfo structures.
    public var signerInfos = 1
    /// The issuer in SignerInfo, a distinguished name in DER; nil: the issuer of the signer's certificate.
    public var namedIssuer: [UInt8]?
    /// The serial number in SignerInfo; nil: the serial number of the signer's certificate.
    public var namedSerialNumber: [UInt8]?
    /// Signed attributes.
    public var signedAttributes = SignedAttributes.none
    /// Bytes after the receipt.
    public var appended: [UInt8] = []
    /// The hash algorithm of the signature on the receipt.
    public var algorithm = AppleSignatureAlgorithm.sha256
    /// The authority that signs the receipt and whose chain is sent with it; nil: the device's authority.
    public var signedBy: AppleAuthority?
    /// Changes the list of signer, intermediate and root before it is sent.
    public var certificates: @Sendable ([[UInt8]]) -> [[UInt8]] = { $0 }

    /// The defaults, which are valid.
    public init() {}
}

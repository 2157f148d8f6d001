internal import Crypto
internal import Foundation
internal import SwiftASN1

/// Attributes between content and signature, in Apple's receipts until September 2020.
///
/// By RFC 5652, section 5.4, the signer would have signed the attributes. Apple's did not: the signature is over the content, as
/// it is in receipts without them, and a verifier that goes by the RFC refuses every one of them (OpenSSL does). So nothing
/// authenticates the attributes, and nothing is taken from them; their digest of the content must agree all the same.
struct SignedAttributes: Sendable {
    /// 2020-11-01: no receipt since has any. The last one known that has is of 2020-09-28.
    static let end = Date(timeIntervalSince1970: 1_604_188_800)

    /// SHA-256 of the content.
    let messageDigest: [UInt8]

    /// The attributes of SignerInfo, `[0] IMPLICIT SET OF Attribute`: both that must be there are, once each.
    init(_ node: ASN1Node) throws(AppAttestError) {
        var attributes = try BERChildren(node, .context(0), "the signed attributes")
        var values: [ASN1ObjectIdentifier: ASN1Node] = [:]
        while !attributes.isAtEnd {
            var attribute = try BERChildren(attributes.next(), .sequence, "an attribute")
            guard let type = try? ASN1ObjectIdentifier(derEncoded: attribute.next()) else {
                throw Self.malformed("an attribute has no type")
            }
            var set = try BERChildren(attribute.next(), .set, "an attribute's values")
            let value = try set.next()
            guard set.isAtEnd, attribute.isAtEnd, values.updateValue(value, forKey: type) == nil else {
                throw Self.malformed("an attribute is there twice, or has two values")
            }
        }
        guard let contentType = values[Self.contentType], let digest = values[Self.messageDigest],
            (try? ASN1ObjectIdentifier(derEncoded: contentType)) == Self.data,
            let octets = try? ASN1OctetString(derEncoded: digest)
        else { throw Self.malformed("content type or message digest is missing") }
        messageDigest = Array(octets.bytes)
    }

    /// Whether the attributes are about this content.
    func describe(_ content: [UInt8]) -> Bool {
        constantTimeEqual(messageDigest, Array(SHA256.hash(data: content)))
    }

    private static let data: ASN1ObjectIdentifier = [1, 2, 840, 113549, 1, 7, 1]
    private static let contentType: ASN1ObjectIdentifier = [1, 2, 840, 113549, 1, 9, 3]
    private static let messageDigest: ASN1ObjectIdentifier = [1, 2, 840, 113549, 1, 9, 4]

    private static func malformed(_ reason: String) -> AppAttestError {
        AppAttestError(.malformedSignedAttributes, .format, reason)
    }
}

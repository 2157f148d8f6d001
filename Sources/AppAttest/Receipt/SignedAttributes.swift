internal import Bytes
internal import Crypto
internal import Foundation
internal import SwiftASN1

/// Attributes between content and signature, in Apple's receipts until September 2020.
///
/// RFC 5652 section 5.4 says that the signature covers the attributes. Apple's signature covers the content instead, as in
/// receipts without attributes, so a verifier that follows the RFC (such as OpenSSL) refuses all of these receipts. The
/// attributes are therefore not authenticated, and no value is taken from them. But they must be exactly those that Apple wrote:
/// the same four in every receipt, with the digest of its content and a signing time at most a second after its creation.
struct SignedAttributes: Sendable {
    /// 2020-11-01. No receipt since then has attributes. The last known receipt with attributes is from 2020-09-28.
    static let end = Date(timeIntervalSince1970: 1_604_188_800)

    /// The content of a UTCTime, without tag and length.
    private let signingTime: [UInt8]
    /// SHA-256 of the content.
    private let messageDigest: [UInt8]

    /// The attributes of SignerInfo, `[0] IMPLICIT SET OF Attribute`.
    init(_ node: ASN1Node) throws(AppAttestError) {
        var rest = node.encodedBytes
        func take(_ count: Int) -> [UInt8] {
            defer { rest = rest.dropFirst(count) }
            return Array(rest.prefix(count))
        }
        let (head, time, middle, digest) = (take(Self.head.count), take(13), take(Self.middle.count), take(32))
        guard head == Self.head, middle == Self.middle, digest.count == 32, rest.isEmpty else {
            throw AppAttestError(.malformedSignedAttributes, .format, "other attributes than those of 2020")
        }
        signingTime = time
        messageDigest = digest
    }

    /// Whether the attributes are about this content, created at this time. The signing time may be one second later,
    /// because Apple signs a receipt a moment after creating it.
    func describe(_ content: [UInt8], createdAt time: Date) -> Bool {
        constantTimeEquals(messageDigest, Array(SHA256.hash(data: content)))
            && [time, time + 1].contains { Self.universalTime($0) == signingTime }
    }

    /// The content of the UTCTime for this time, rounded down to the second.
    private static func universalTime(_ time: Date) -> [UInt8]? {
        Int64(exactly: time.timeIntervalSince1970.rounded(.down)).map { seconds in
            Array(DERWriter.time(secondsSince1970: seconds).dropFirst(2))
        }
    }

    // The bytes before the digits of the signing time.
    private static let head: [UInt8] = [
        // The tag [0] and the length of the attributes. Then the attribute content type, whose value is data.
        0xA0, 0x81, 0x95, 0x30, 0x18, 0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x09, 0x03, 0x31, 0x0B,
        0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x01,
        // Signing time.
        0x30, 0x1C, 0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x09, 0x05, 0x31, 0x0F, 0x17, 0x0D,
    ]

    // The bytes between the signing time and the digest.
    private static let middle: [UInt8] = [
        // CMS algorithm protection: SHA-256, ECDSA with SHA-256.
        0x30, 0x2A, 0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x09, 0x34, 0x31, 0x1D, 0x30, 0x1B, 0x30,
        0x0D, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01, 0x05, 0x00, 0xA1, 0x0A, 0x06, 0x08,
        0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x04, 0x03, 0x02,
        // Message digest.
        0x30, 0x2F, 0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x09, 0x04, 0x31, 0x22, 0x04, 0x20,
    ]
}

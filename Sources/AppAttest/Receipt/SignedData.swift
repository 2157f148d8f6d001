internal import Crypto
internal import SwiftASN1
internal import X509

/// The SignedData of a receipt (RFC 5652, section 5), parsed from BER but not verified.
///
/// It accepts only what Apple's receipts use: content in one or more chunks, SHA-256, ECDSA, one signer, and the signed
/// attributes of receipts until September 2020. Any other part is refused, because no signature covers it. ``ReceiptSteps``
/// refuses attributes in later receipts.
struct SignedData: Sendable {
    /// The signed content: the joined chunks.
    let content: [UInt8]
    /// The certificates inside, in their order.
    let certificates: [AppleCertificate]
    /// Issuer and serial number of the signer's certificate, as SignerInfo encodes them.
    let signerIssuer: ArraySlice<UInt8>
    let signerSerial: ArraySlice<UInt8>
    /// The attributes in receipts until September 2020; nil if there are none. Despite the name, no signature covers them.
    let signedAttributes: SignedAttributes?
    /// ECDSA in DER.
    let signature: [UInt8]

    init(parsing bytes: [UInt8]) throws(AppAttestError) {
        guard let root = try? BER.parse(bytes) else { throw Self.malformed("not BER") }
        var contentInfo = try BERChildren(root, .sequence, "ContentInfo")
        try contentInfo.requireIdentifier([1, 2, 840, 113549, 1, 7, 2], "the content type")
        var explicit = try BERChildren(contentInfo.next(), .context(0), "the content")
        var signedData = try BERChildren(explicit.next(), .sequence, "SignedData")
        try explicit.requireEnd()
        try contentInfo.requireEnd()

        try signedData.requireInteger(1, "the version")
        var digests = try BERChildren(signedData.next(), .set, "the digest algorithms")
        try Self.requireSHA256(digests.next())
        try digests.requireEnd()
        content = try Self.content(signedData.next())
        certificates = try Self.certificates(signedData.next())
        var signers = try BERChildren(signedData.next(), .set, "the signers")
        let signer = try signers.next()
        guard signers.isAtEnd else {
            throw AppAttestError(.wrongSignerCount, .format, "more than one signer")
        }
        try signedData.requireEnd()

        var info = try BERChildren(signer, .sequence, "SignerInfo")
        try info.requireInteger(1, "the signer's version")
        var identifier = try BERChildren(info.next(), .sequence, "the signer's identifier")
        signerIssuer = try identifier.next().encodedBytes
        signerSerial = try identifier.next().encodedBytes
        try identifier.requireEnd()
        try Self.requireSHA256(info.next())
        var algorithm = try info.next()
        if algorithm.identifier == .context(0) {
            signedAttributes = try SignedAttributes(algorithm)
            algorithm = try info.next()
        } else {
            signedAttributes = nil
        }
        try Self.requireAlgorithm(algorithm, [1, 2, 840, 10045, 4, 3, 2], "ECDSA with SHA-256")
        signature = try Self.octets(info.next())
        try info.requireEnd()
    }

    // SEQUENCE { OID data, [0] { OCTET STRING } }
    private static func content(_ node: ASN1Node) throws(AppAttestError) -> [UInt8] {
        var encapsulated = try BERChildren(node, .sequence, "the encapsulated content")
        try encapsulated.requireIdentifier([1, 2, 840, 113549, 1, 7, 1], "the type of the encapsulated content")
        var explicit = try BERChildren(encapsulated.next(), .context(0), "the encapsulated octets")
        let octets = try octets(explicit.next())
        try explicit.requireEnd()
        try encapsulated.requireEnd()
        return octets
    }

    private static func octets(_ node: ASN1Node) throws(AppAttestError) -> [UInt8] {
        guard node.identifier == .octetString else { throw malformed("an OCTET STRING is missing") }
        switch node.content {
        case .primitive(let octets): return Array(octets)
        case .constructed(let chunks):
            var joined: [UInt8] = []
            for chunk in chunks {
                // BER also allows chunks of chunks. No known receipt has them, so they are refused.
                guard chunk.identifier == .octetString, case .primitive(let octets) = chunk.content else {
                    throw malformed("a chunk is not a primitive OCTET STRING")
                }
                joined += octets
            }
            return joined
        }
    }

    private static func certificates(_ node: ASN1Node) throws(AppAttestError) -> [AppleCertificate] {
        var nodes = try BERChildren(node, .context(0), "the certificates")
        var certificates: [AppleCertificate] = []
        while !nodes.isAtEnd {
            guard certificates.count < 4, let certificate = AppleCertificate(Array(try nodes.next().encodedBytes))
            else { throw malformed("a certificate cannot be read, or there are more than four") }
            certificates.append(certificate)
        }
        return certificates
    }

    private static func requireSHA256(_ node: ASN1Node) throws(AppAttestError) {
        try requireAlgorithm(node, [2, 16, 840, 1, 101, 3, 4, 2, 1], "SHA-256")
    }

    private static func requireAlgorithm(
        _ node: ASN1Node, _ expected: ASN1ObjectIdentifier, _ name: String
    ) throws(AppAttestError) {
        var algorithm = try BERChildren(node, .sequence, "an algorithm")
        guard let identifier = try? ASN1ObjectIdentifier(derEncoded: algorithm.next()), identifier == expected else {
            throw AppAttestError(.algorithmNotAllowed, .format, "an algorithm is not \(name)")
        }
        guard !algorithm.isAtEnd else { return }
        guard (try? ASN1Null(derEncoded: algorithm.next())) != nil, algorithm.isAtEnd else {
            throw malformed("an algorithm has parameters")
        }
    }

    static func malformed(_ reason: String) -> AppAttestError {
        AppAttestError(.malformedReceipt, .format, reason)
    }
}

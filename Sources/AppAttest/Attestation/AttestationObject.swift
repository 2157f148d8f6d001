internal import CBOR

/// An attestation object, strictly parsed but not verified.
///
/// CBOR `{fmt, attStmt: {x5c, receipt}, authData}` (W3C Web Authentication, section 8.8).
public struct AttestationObject: Sendable {
    /// The largest object that is parsed, in bytes. Real ones have 5 to 6 kB.
    public static let maximumSize = 16 * 1024

    /// DER certificates, the leaf first.
    public let certificates: [[UInt8]]
    /// The receipt. ``ReceiptVerifier`` verifies it separately.
    public let receipt: [UInt8]
    /// The authenticator data. The nonce covers it and the client data hash.
    package let authenticatorData: AuthenticatorData

    /// Parses the result of `DCAppAttestService.attestKey(_:clientDataHash:)`.
    public init(parsing bytes: some Collection<UInt8>) throws(AppAttestError) {
        let object = try readObject(Array(bytes), maximumSize: Self.maximumSize)
        guard object.count == 3, let format = object["fmt"]?.text, let statement = object["attStmt"]?.map,
            let authenticatorData = object["authData"]?.bytes
        else { throw Self.malformed("members other than fmt, attStmt and authData") }
        guard format == "apple-appattest" else {
            throw AppAttestError(.unknownFormat, .format, "the format is not apple-appattest")
        }
        guard statement.count == 2, let x5c = statement["x5c"]?.array, let receipt = statement["receipt"]?.bytes else {
            throw Self.malformed("members of attStmt other than x5c and receipt")
        }
        self.certificates = x5c.compactMap(\.bytes)
        guard certificates.count == x5c.count else { throw Self.malformed("a certificate is not a byte string") }
        self.receipt = receipt
        self.authenticatorData = try AuthenticatorData(attestation: authenticatorData)
    }

    private static func malformed(_ reason: String) -> AppAttestError {
        AppAttestError(.malformedObject, .format, reason)
    }
}
